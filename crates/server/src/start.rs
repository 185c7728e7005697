//! `latsdb start`: found a cluster on this machine and keep it running.

use crate::say::say;
use crate::{
    archive,
    cluster_file::{ClusterFile, LEASE_MS, NodeEntry},
    options::{Durability, Options, StartArgs},
    ports, private, random, secret, settings,
    supervisor::{self, Supervisor, starting_file},
};
use anyhow::{Context, bail};
use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    time::Duration,
};

/// How long a new cluster may take to serve.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long one may take that loads its rows from disk.
const RESTART_PATIENCE: Duration = Duration::from_secs(3_600);

pub(crate) fn run(args: &StartArgs) -> anyhow::Result<ExitCode> {
    let args = &args.resolve()?;
    settings::check(args)?;
    if args.detach {
        return detach(args);
    }
    let cluster = prepare(args)?;
    let mut supervisor = Supervisor::new(&args.data_dir, cluster, args.threads.clone())?;
    say!(
        "latsdb: starting {} data node(s), {} replica(s) of each row, in {}",
        args.nodes,
        args.replicas,
        args.data_dir.display()
    );
    supervisor.to_disk = args.durability.map(|d| d == Durability::Disk);
    let mut signals = supervisor.signals()?;
    let founds = supervisor.start_all(args.partial)?;
    let restart = (!args.no_restart).then(|| Duration::from_millis(args.restart_delay_ms));
    let patience = if founds { PATIENCE } else { RESTART_PATIENCE };
    supervisor.wait_until_serving(patience, restart.filter(|_| !founds), &mut signals)?;
    say!("latsdb: the cluster serves. Connect with");
    say!("    mariadb -h 127.0.0.1 -P {} -u root", args.sql_port);
    say!("    latsdb status --data-dir {}", args.data_dir.display());
    supervisor.supervise(restart, signals)
}

/// How many data managers and coordinators each node is to have: as many as there are threads for them.
fn instances(args: &Options) -> anyhow::Result<(u32, u32)> {
    use lats_runtime::{ThreadPlan, plan};
    let threads = match &args.threads.config {
        Some(config) => plan::parse(config).map_err(anyhow::Error::msg)?,
        None => plan::automatic(plan::Processors::of_this_machine(usize::from(args.nodes))),
    };
    let count = |module| ThreadPlan::count(&threads, module);
    Ok((count(plan::Module::Ldm), count(plan::Module::Tc)))
}

/// Makes the directory and its `cluster.json`.
fn prepare(args: &Options) -> anyhow::Result<ClusterFile> {
    let nodes = entries(args);
    check_directory(&args.data_dir, args)?;
    let mut wanted: Vec<(SocketAddr, &str)> =
        nodes.iter().map(|n| (n.native_address, "nodes and native clients")).collect();
    wanted.extend(nodes.iter().filter_map(|n| Some((n.sql_address?, "MySQL clients"))));
    ports::check_free(&wanted)?;
    private::directory(&args.data_dir)?;
    if let Some(mut former) = kept(&args.data_dir) {
        if args.says_memory {
            former.memory_mib = args.memory_mib;
        }
        if let Some(lease_ms) = args.lease_ms.filter(|ms| *ms != former.lease_ms) {
            bail!(
                "the cluster in {} has leases of {} ms since it was founded, and --lease-ms is {lease_ms}: start it without that option",
                args.data_dir.display(),
                former.lease_ms
            );
        }
        former.to_disk = args.durability.map_or(former.to_disk, |d| d == Durability::Disk);
        archive::set(&mut former, args.archive.as_deref())?;
        former.write(&args.data_dir)?;
        if secret::make(&args.data_dir)? {
            let file = secret::path(&args.data_dir);
            say!(
                "latsdb: the cluster had no secret and has a new one, {}; copy it to its nodes and clients elsewhere",
                file.display()
            );
        }
        return Ok(former);
    }
    let mut cluster = ClusterFile::new(random::number()? | 1, args.replicas, nodes);
    cluster.memory_mib = args.memory_mib;
    cluster.lease_ms = args.lease_ms.unwrap_or(LEASE_MS);
    cluster.keeps = !args.ephemeral;
    cluster.to_disk = args.durability == Some(Durability::Disk);
    (cluster.ldm_instances, cluster.tc_instances) = instances(args)?;
    archive::set(&mut cluster, args.archive.as_deref())?;
    cluster.write(&args.data_dir)?;
    secret::make(&args.data_dir)?;
    Ok(cluster)
}

/// The cluster that has kept something in the directory.
fn kept(data_dir: &Path) -> Option<ClusterFile> {
    let former = ClusterFile::read(data_dir).ok().filter(|former| former.keeps)?;
    former.has_files(data_dir).then_some(former)
}

pub(crate) fn entries(args: &Options) -> Vec<NodeEntry> {
    let native = args.native_port;
    (1..=settings::node_count(args.nodes))
        .map(|node_id| {
            let data = node_id <= args.nodes;
            NodeEntry {
                node_id,
                data,
                native_address: ports::loopback(native + (node_id - 1)),
                sql_address: data.then(|| ports::loopback(args.sql_port + (node_id - 1))),
                location: location(args, node_id),
            }
        })
        .collect()
}

/// Nodes go round the locations.
fn location(args: &Options, node_id: u16) -> String {
    let at = usize::from(node_id - 1) % args.locations.len().max(1);
    args.locations.get(at).cloned().unwrap_or_default()
}

/// Refuses directories that are in use, or that are something else.
fn check_directory(data_dir: &Path, args: &Options) -> anyhow::Result<()> {
    if !data_dir.exists() {
        return Ok(());
    }
    let mut files = std::fs::read_dir(data_dir)
        .with_context(|| format!("{} cannot be read as a directory", data_dir.display()))?;
    if !ClusterFile::path(data_dir).exists() {
        if files.next().is_none() {
            return Ok(());
        }
        bail!(
            "{} holds something else than a LatsDB cluster; name an empty or new directory with \
             --data-dir",
            data_dir.display()
        );
    }
    let former = ClusterFile::read(data_dir)?;
    if let Some(pid) = supervisor::running(data_dir) {
        bail!(
            "a cluster runs in {} already (process {pid}); stop it with `latsdb stop --data-dir \
             {}`, or name another directory",
            data_dir.display(),
            data_dir.display()
        );
    }
    // Earlier versions kept blanks around the names of location domains.
    let trimmed = |mut node: NodeEntry| {
        node.location = node.location.trim().to_string();
        node
    };
    let same = former.nodes.iter().cloned().map(trimmed).eq(entries(args));
    if former.replicas != args.replicas || !same {
        bail!(
            "{} is the directory of another cluster ({} nodes, {} replicas, first port {}); start \
             it with its own options, or name another directory with --data-dir",
            data_dir.display(),
            former.nodes.iter().filter(|n| n.data).count(),
            former.replicas,
            former.nodes.first().map(|n| n.native_address.port()).unwrap_or_default()
        );
    }
    match kept(data_dir) {
        Some(_) if args.ephemeral => bail!(
            "{} has the rows of a cluster, and --ephemeral keeps nothing; start it without that option, or name another \
             directory with --data-dir",
            data_dir.display()
        ),
        Some(_) => {
            say!("latsdb: {} has a cluster; it starts again with its rows", data_dir.display())
        }
        None => {
            if former.keeps {
                refuse_lost_files(&former, data_dir)?;
            }
            say!(
                "latsdb: the cluster in {} has kept nothing: a new one starts empty",
                data_dir.display()
            );
        }
    }
    Ok(())
}

/// Disks that are not mounted must not become those of a new, empty cluster: nodes that had all rows leave a mark beside their directories.
fn refuse_lost_files(former: &ClusterFile, data_dir: &Path) -> anyhow::Result<()> {
    let had_rows = |node: &&NodeEntry| supervisor::full_file(data_dir, node.node_id).exists();
    let nodes = former.nodes.iter().filter(had_rows);
    let directories: Vec<String> = nodes
        .map(|n| crate::node::node_directory(data_dir, n.node_id).display().to_string())
        .collect();
    if directories.is_empty() {
        return Ok(());
    }
    bail!(
        "the cluster in {} has kept rows, and there are no files in {}: mount or put back what belongs there; for an empty \
         cluster name a new directory with --data-dir, or remove this one",
        data_dir.display(),
        directories.join(", ")
    )
}

/// Starts the supervisor in the background and waits until the cluster serves.
fn detach(args: &Options) -> anyhow::Result<ExitCode> {
    use std::os::unix::process::CommandExt;
    // What can be wrong is said here, where it is seen; the background process checks again.
    check_directory(&args.data_dir, args)?;
    let nodes = entries(args);
    let all = nodes.iter().flat_map(|n| [Some(n.native_address), n.sql_address]).flatten();
    ports::check_free(&all.map(|a| (a, "the cluster")).collect::<Vec<_>>())?;
    private::directory(&args.data_dir)?;
    // The directory must stay empty until the supervisor looks at it, or hold a cluster.
    let _ = std::fs::remove_file(starting_file(&args.data_dir));
    let log_path = log_beside(&args.data_dir);
    let log = private::file(&log_path)?;
    let arguments = std::env::args_os().skip(1).filter(|a| a != "--detach");
    let mut child = Command::new(std::env::current_exe()?)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .process_group(0)
        .spawn()
        .context("cannot start the supervisor")?;
    let ready = supervisor::serving_file(&args.data_dir);
    let patience = if kept(&args.data_dir).is_some() { RESTART_PATIENCE } else { PATIENCE };
    let tries = patience.as_millis() / 20;
    let mut told = String::new();
    for _ in 0..tries {
        if let Some(status) = child.try_wait()? {
            let text = std::fs::read_to_string(&log_path).unwrap_or_default();
            // It may have several lines.
            let last = text.rsplit_once("\nlatsdb: ").map_or(text.as_str(), |(_, last)| last);
            let (last, log) = (last.trim(), log_path.display());
            bail!("the cluster did not start ({status}): {last} (see {log})");
        }
        let serves = std::fs::read_to_string(&ready).ok();
        if serves.is_some_and(|pid| pid.trim() == child.id().to_string()) {
            say!("latsdb: the cluster serves; its log is {}", log_path.display());
            return Ok(ExitCode::SUCCESS);
        }
        let news = std::fs::read_to_string(starting_file(&args.data_dir)).unwrap_or_default();
        if !news.is_empty() && news != told {
            say!("{news}");
            told = news;
        }
        supervisor::pause(Duration::from_millis(20));
    }
    bail!("the cluster did not serve within {patience:?}; see {}", log_path.display())
}

fn log_beside(data_dir: &Path) -> PathBuf {
    // `.` has a name, too.
    let absolute = std::path::absolute(data_dir).ok();
    let data_dir = absolute.as_deref().unwrap_or(data_dir);
    let mut name = data_dir.file_name().unwrap_or_default().to_os_string();
    name.push(".log");
    data_dir.with_file_name(name)
}
