//! The options of `latsdb start`: from the command line, else from a file, else sensible ones.

use crate::{
    machine,
    node::{CUT_OFF_WAIT_MS, READ_PLACEMENT, RESPONSIVENESS, SPIN_METHOD},
    settings,
};
use anyhow::{Context, anyhow};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// Start a whole cluster on this machine: one process per node, supervised.
#[derive(clap::Args, Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct StartArgs {
    /// Data nodes [default: 2].
    #[arg(long)]
    nodes: Option<u16>,
    /// Replicas of each row (1 to 4); a divisor of the number of nodes [default: 2].
    #[arg(long)]
    replicas: Option<u16>,
    /// Where the cluster keeps its files [default: ./latsdb-data].
    #[arg(long)]
    data_dir: Option<PathBuf>,
    /// Node i serves MySQL clients on this port + i - 1 [default: 4306].
    #[arg(long)]
    sql_port: Option<u16>,
    /// Nodes and native clients: this port + i - 1 [default: the SQL port + 100].
    #[arg(long)]
    native_port: Option<u16>,
    /// Memory of each node, in MiB, for rows, statements and clients (docs/memory.md): 64, to what the machine or the container has
    /// for all of them [default: a quarter of that, or less if there are many nodes].
    #[arg(long)]
    memory_mib: Option<usize>,
    /// Keep nothing on disk: rows live as long as one replica of each does.
    #[arg(long)]
    ephemeral: bool,
    /// What commits wait for, unless a session sets the variable `durability`: replicated (all replicas have them in memory), or
    /// disk (they are on all disks) [default: replicated; for a cluster that starts again, what it was].
    #[arg(long)]
    durability: Option<Durability>,
    /// Archive redo logs in this directory, so that rows can be restored as of any moment (with a backup); `off` ends that
    /// [default: off; for a cluster that starts again, what it was].
    #[arg(long, value_name = "DIRECTORY")]
    archive: Option<PathBuf>,
    /// After a loss of all nodes: do not wait for nodes whose disks are gone, if others have their rows. What they alone knew
    /// is lost.
    #[arg(long)]
    #[serde(skip)]
    partial: bool,
    /// Return when the cluster serves; it goes on in the background.
    #[arg(long)]
    #[serde(skip)]
    detach: bool,
    /// Do not start nodes again that have died.
    #[arg(long)]
    no_restart: bool,
    /// How long to wait before a dead node is started again, in ms [default: 1000].
    #[arg(long)]
    restart_delay_ms: Option<u64>,
    /// The threads of each node, in the notation of docs/threads.md [default: by the processors that there are].
    #[arg(long, value_name = "MODULE={count=N,…},…")]
    thread_config: Option<String>,
    /// 0: large batches, which cost least, to 10: answers as soon as possible [default: 5].
    #[arg(long, value_parser = clap::value_parser!(u8).range(0..=10))]
    scheduler_responsiveness: Option<u8>,
    /// How threads wait: static, cost-based, or latency-optimised [default: static].
    #[arg(long)]
    spin_method: Option<String>,
    /// Who does reads where threads have the module `query`: adaptive, receiver, or owner [default: adaptive].
    #[arg(long)]
    read_placement: Option<String>,
    /// A thread with nothing to do wakes those that it has work for, instead of doing it in their place.
    #[arg(long)]
    no_helping: bool,
    /// How long statements wait at a node that is cut off from the majority of the cluster, in ms [default: 5000].
    #[arg(long, value_parser = clap::value_parser!(u64).range(100..=3_600_000))]
    cut_off_wait_ms: Option<u64>,
    /// How long a lease lasts, in ms: a machine that falls silent is replaced about so long later. Less than 300 is for networks that
    /// lose no packets and for nodes that never wait for a processor (docs/operations.md). It stays as it is for the life of the
    /// cluster [default: 300].
    #[arg(long)]
    lease_ms: Option<u64>,
    /// Location domains (racks, data centres), by commas: nodes go round them, and replicas of a row are in
    /// different ones. Reads prefer replicas in their own.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    locations: Option<Vec<String>>,
    /// A TOML file with these options, written like `sql_port = 4306`; the command line goes before it.
    #[arg(long)]
    #[serde(skip)]
    config: Option<PathBuf>,
}

/// What commits wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Durability {
    /// All replicas have it in memory.
    Replicated,
    /// It is on the disks of all replicas.
    Disk,
}

/// What `start` shall do.
pub(crate) struct Options {
    pub(crate) nodes: u16,
    pub(crate) replicas: u16,
    pub(crate) data_dir: PathBuf,
    pub(crate) sql_port: u16,
    pub(crate) native_port: u16,
    pub(crate) memory_mib: usize,
    /// Somebody has asked for that.
    pub(crate) says_memory: bool,
    pub(crate) detach: bool,
    pub(crate) no_restart: bool,
    pub(crate) restart_delay_ms: u64,
    /// One source says that nothing is started again, and when.
    pub(crate) restarts_disagree: bool,
    pub(crate) threads: ThreadOptions,
    /// None: what it was, or the usual one.
    pub(crate) lease_ms: Option<u64>,
    pub(crate) locations: Vec<String>,
    pub(crate) ephemeral: bool,
    pub(crate) durability: Option<Durability>,
    pub(crate) archive: Option<PathBuf>,
    pub(crate) partial: bool,
}

/// What each node is told about its threads.
#[derive(Clone, Debug)]
pub(crate) struct ThreadOptions {
    pub(crate) config: Option<String>,
    pub(crate) responsiveness: u8,
    pub(crate) spin_method: String,
    pub(crate) read_placement: String,
    pub(crate) no_helping: bool,
    pub(crate) cut_off_wait_ms: u64,
}

impl StartArgs {
    /// What the command line says, then the file, then the defaults.
    pub(crate) fn resolve(&self) -> anyhow::Result<Options> {
        let file = self.config.as_deref().map_or_else(|| Ok(Self::default()), read)?;
        let disagrees = |it: &Self| it.no_restart && it.restart_delay_ms.is_some();
        let restarts_disagree = disagrees(self) || disagrees(&file);
        let sql_port = self.sql_port.or(file.sql_port).unwrap_or(4306);
        let native_port = self.native_port.or(file.native_port);
        let data_dir = self.data_dir.clone().or(file.data_dir);
        let nodes = self.nodes.or(file.nodes).unwrap_or(2);
        let memory_mib = self.memory_mib.or(file.memory_mib);
        let restart_delay_ms = self.restart_delay_ms.or(file.restart_delay_ms);
        let no_restart = self.no_restart || (file.no_restart && self.restart_delay_ms.is_none());
        let names = |all: Vec<String>| all.iter().map(|name| name.trim().to_string()).collect();
        Ok(Options {
            nodes,
            replicas: self.replicas.or(file.replicas).unwrap_or(2),
            data_dir: data_dir.unwrap_or_else(|| PathBuf::from("./latsdb-data")),
            sql_port,
            native_port: native_port.unwrap_or_else(|| sql_port.saturating_add(100)),
            says_memory: memory_mib.is_some(),
            memory_mib: memory_mib
                .unwrap_or_else(|| settings::default_memory_mib(nodes, &machine::memory())),
            detach: self.detach,
            no_restart,
            restart_delay_ms: restart_delay_ms.unwrap_or(1_000),
            restarts_disagree,
            threads: ThreadOptions {
                config: self.thread_config.clone().or(file.thread_config),
                responsiveness: self
                    .scheduler_responsiveness
                    .or(file.scheduler_responsiveness)
                    .unwrap_or(RESPONSIVENESS),
                spin_method: self
                    .spin_method
                    .clone()
                    .or(file.spin_method)
                    .unwrap_or_else(|| SPIN_METHOD.to_string()),
                read_placement: self
                    .read_placement
                    .clone()
                    .or(file.read_placement)
                    .unwrap_or_else(|| READ_PLACEMENT.to_string()),
                no_helping: self.no_helping || file.no_helping,
                cut_off_wait_ms: self
                    .cut_off_wait_ms
                    .or(file.cut_off_wait_ms)
                    .unwrap_or(CUT_OFF_WAIT_MS),
            },
            lease_ms: self.lease_ms.or(file.lease_ms),
            locations: self.locations.clone().or(file.locations).map(names).unwrap_or_default(),
            ephemeral: self.ephemeral || file.ephemeral,
            partial: self.partial,
            durability: self.durability.or(file.durability),
            archive: self.archive.clone().or(file.archive),
        })
    }
}

fn read(path: &Path) -> anyhow::Result<StartArgs> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the configuration {}", path.display()))?;
    parse(&text).map_err(|error| {
        // In one line, which says where.
        let at = error.span().map_or(0, |span| span.start).min(text.len());
        let line = 1 + text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count();
        anyhow!(
            "{} is no configuration: line {line}: {}; `latsdb start --help` names the options",
            path.display(),
            error.message().lines().collect::<Vec<_>>().join(" ")
        )
    })
}

fn parse(text: &str) -> Result<StartArgs, toml::de::Error> {
    toml::from_str(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_goes_before_the_file() {
        let path = std::env::temp_dir().join(format!("lats-options-{}.toml", std::process::id()));
        std::fs::write(&path, "nodes = 4\nsql_port = 5000\nno_restart = true\n").unwrap();
        let args = StartArgs { nodes: Some(6), config: Some(path.clone()), ..StartArgs::default() };
        let options = args.resolve().unwrap();
        std::fs::remove_file(path).unwrap();
        assert_eq!((options.nodes, options.sql_port, options.native_port), (6, 5_000, 5_100));
        assert!(options.no_restart && !options.detach);
        assert_eq!((options.replicas, options.restart_delay_ms), (2, 1_000));
    }

    #[test]
    fn the_last_port_is_used() {
        let both = (Some(65_534), Some(65_533));
        for (sql_port, native_port, last) in
            [(both.0, Some(5_000), 5_002), (Some(5_000), both.1, 65_535)]
        {
            let args = StartArgs { sql_port, native_port, ..StartArgs::default() };
            let options = args.resolve().unwrap();
            settings::check(&options).unwrap();
            assert_eq!(crate::start::entries(&options)[2].native_address.port(), last);
        }
    }

    #[test]
    fn the_command_line_may_set_aside_what_the_file_says_of_restarts() {
        let path = std::env::temp_dir().join(format!("lats-restarts-{}.toml", std::process::id()));
        std::fs::write(&path, "no_restart = true\nlocations = [' rack a', 'b']\n").unwrap();
        let args = StartArgs {
            restart_delay_ms: Some(5),
            config: Some(path.clone()),
            ..StartArgs::default()
        };
        let options = args.resolve().unwrap();
        assert!(!options.no_restart && !options.restarts_disagree && options.restart_delay_ms == 5);
        assert_eq!(options.locations, ["rack a", "b"]);
        let args =
            StartArgs { no_restart: true, restart_delay_ms: Some(5), ..StartArgs::default() };
        assert!(args.resolve().unwrap().restarts_disagree);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn files_with_other_words_are_refused() {
        for text in ["node = 4", "nodes = 'four'", "nodes", "nodes = 70000", "config = 'x'"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
