//! The clusters of `latsdb bench lats`: started for it, struck by it, and ended after it.

use super::latsdb;
use crate::{
    bench::namespaces,
    status::{self, Target},
};
use anyhow::{Context, bail};
use lats_base::NodeId;
use lats_bench::{
    Place,
    lats::{
        self, LatsArgs,
        scene::{Blow, NodeSeen, Scene, Seen},
    },
};
use lats_runtime::clock;
use rustix::process::{Pid, Signal, kill_process};
use std::{
    io::Write,
    path::{Path, PathBuf},
};

/// Runs the gauge; how much was wrong.
pub(super) fn run(args: &LatsArgs) -> anyhow::Result<u64> {
    args.check()?;
    if args.wants_namespaces() && args.net.is_none() {
        return namespaces::run_inside(args);
    }
    // Where the JSON is printed, people read the rest elsewhere.
    let is_printed = args.output.json.as_ref().is_some_and(|path| path.as_os_str() == "-");
    let out: &mut dyn Write =
        if is_printed { &mut std::io::stderr() } else { &mut std::io::stdout() };
    let seed = crate::random::number()?;
    let directory = Directory::make()?;
    writeln!(out, "starting a cluster in {}", directory.0.display())?;
    let scene: Box<dyn Scene> = match &args.net {
        Some(net) => Box::new(namespaces::Spread::start(args, net, directory)?),
        None => Box::new(Supervised::start(args, directory)?),
    };
    lats::run(args, scene, seed, out)
}

/// A directory for a cluster and its log.
pub(super) struct Directory(PathBuf);

impl Directory {
    fn make() -> anyhow::Result<Self> {
        let name = format!("latsdb-lats-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&directory).with_context(|| {
            format!("cannot make {}; TMPDIR names another place", directory.display())
        })?;
        Ok(Self(directory))
    }

    pub(super) fn data(&self) -> PathBuf {
        self.0.join("cluster")
    }

    pub(super) fn log(&self) -> PathBuf {
        self.0.join("cluster.log")
    }

    pub(super) fn remove(&self, keeps_log: bool) {
        let gone = if keeps_log { self.data() } else { self.0.clone() };
        let _ = std::fs::remove_dir_all(gone);
    }
}

/// Nodes on the loopback, under `latsdb start`.
struct Supervised {
    directory: Directory,
    place: Place,
    aim: Option<Pid>,
}

impl Supervised {
    fn start(args: &LatsArgs, directory: Directory) -> anyhow::Result<Self> {
        let number = |number: u64| number.to_string();
        let (nodes, replicas) = (number(args.nodes.into()), number(args.replicas.into()));
        let (port, memory) = (number(args.sql_port.into()), number(args.memory_mib.into()));
        // A node comes back when the gauge says so.
        let mut options = vec!["--detach", "--no-restart", "--nodes", &nodes];
        options.extend(["--replicas", &replicas, "--sql-port", &port, "--memory-mib", &memory]);
        options.extend((!args.durable).then_some("--ephemeral"));
        if let Err(error) = latsdb("start", &directory.data(), &options) {
            directory.remove(true);
            return Err(error.context("no cluster can be started (--sql-port names other ports)"));
        }
        let options = Target::of_directory(directory.data()).client_options()?;
        Ok(Self { directory, place: Place { options, clock: clock::now }, aim: None })
    }
}

impl Scene for Supervised {
    fn place(&self) -> Place {
        self.place.clone()
    }

    fn read(&self, status: &[u8]) -> Option<Seen> {
        seen(status)
    }

    fn aim(&mut self, node: u16) -> anyhow::Result<()> {
        self.aim = Some(process_of(&self.directory.data(), node)?);
        Ok(())
    }

    fn strike(&mut self, node: u16, blow: Blow) -> anyhow::Result<()> {
        let signal = match blow {
            Blow::Kill => Signal::KILL,
            Blow::Freeze => Signal::STOP,
            Blow::Thaw => Signal::CONT,
            Blow::Cut | Blow::Heal => {
                bail!("the nodes of this cluster are on one machine, and none can be cut off")
            }
        };
        send(self.aim.with_context(|| format!("node {node} was not aimed at"))?, signal)
    }

    fn start_node(&mut self, node: u16) -> anyhow::Result<()> {
        latsdb("start-node", &self.directory.data(), &[&node.to_string()])
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.directory.log()).unwrap_or_default()
    }

    fn log_path(&self) -> String {
        self.directory.log().display().to_string()
    }

    fn wall_us(&self) -> i64 {
        clock::unix_micros()
    }

    fn end(&mut self, keeps_log: bool) {
        if let Err(error) = latsdb("stop", &self.directory.data(), &["--force"]) {
            tracing::warn!("{error:#}");
        }
        self.directory.remove(keeps_log);
    }
}

/// What the gauge needs of a status record.
pub(super) fn seen(status: &[u8]) -> Option<Seen> {
    let status = status::decoded(status).ok()?;
    let nodes = status.view.members.iter().map(|member| NodeSeen {
        node: member.node.get(),
        life: member.incarnation.get(),
        alive: member.alive,
        data: member.roles.data,
        in_sync: status.view.is_in_sync(NodeId::new(member.node.get())),
        silent: status.silent.contains(&member.node),
    });
    Some(Seen { view: status.view.number.get(), nodes: nodes.collect() })
}

/// The process of a node of the cluster in a directory.
fn process_of(data_dir: &Path, node: u16) -> anyhow::Result<Pid> {
    let wanted = format!("--data-dir\0{}\0--node-id\0{node}\0", data_dir.display());
    let entries = std::fs::read_dir("/proc").context("there is no /proc")?;
    let mut pids = entries.flatten().filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok());
    let found = pids.find(|pid| {
        let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split('\0').nth(1) == Some("node") && line.contains(&wanted)
    });
    found.and_then(Pid::from_raw).with_context(|| format!("node {node} has no process"))
}

pub(super) fn send(pid: Pid, signal: Signal) -> anyhow::Result<()> {
    kill_process(pid, signal).context("the signal cannot be sent")
}
