//! The clusters of `latsdb bench lats`: started for it, struck by it, and ended after it.

use super::{interrupts, latsdb};
use crate::{
    bench::namespaces,
    status::{self, Target},
};
use anyhow::{Context, bail};
use lats_base::NodeId;
use lats_bench::{
    Place,
    lats::{
        self, LatsArgs, Wish,
        scene::{Blow, Ground, NodeSeen, Scene, Seen},
    },
};
use lats_runtime::clock;
use rustix::process::{Pid, Signal, kill_process};
use std::{
    io::{ErrorKind, Write},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    time::Duration,
};

/// Processes beside the nodes' (guardians) end within this.
const LAST_END: Duration = Duration::from_secs(3);
const LOOK: Duration = Duration::from_millis(20);

/// Runs the gauge; how much was wrong.
pub(super) fn run(args: &LatsArgs) -> anyhow::Result<u64> {
    args.check()?;
    let wish = interrupts::hear()?;
    if args.wants_namespaces() && args.net.is_none() {
        return namespaces::run_inside(args, &wish);
    }
    // Where the JSON is printed, people read the rest elsewhere.
    let is_printed = args.output.json.as_ref().is_some_and(|path| path.as_os_str() == "-");
    let out: &mut dyn Write =
        if is_printed { &mut std::io::stderr() } else { &mut std::io::stdout() };
    let seed = crate::random::number()?;
    let directory = Directory::make(wish.clone())?;
    writeln!(out, "starting a cluster in {}", directory.path.display())?;
    let scene: Box<dyn Scene> = match &args.net {
        Some(net) => Box::new(namespaces::Spread::start(args, net, directory, wish.clone())?),
        None => Box::new(Supervised::start(args, directory, &wish)?),
    };
    lats::run(args, scene, seed, &wish, out)
}

/// A directory for a cluster and its log. It goes with this, when all processes in it have ended.
pub(super) struct Directory {
    path: PathBuf,
    /// None: the log stays, unless somebody wants an end.
    keeps_log: Option<bool>,
    wish: Wish,
}

impl Directory {
    /// A new one: what an earlier run has left stays as it is.
    fn make(wish: Wish) -> anyhow::Result<Self> {
        let own = format!("latsdb-lats-{}", std::process::id());
        for number in 0_u32.. {
            let name = if number == 0 { own.clone() } else { format!("{own}-{number}") };
            let path = std::env::temp_dir().join(name);
            match std::fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self { path, keeps_log: None, wish }),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => {
                    return Err(error).with_context(|| {
                        format!("cannot make {}; TMPDIR names another place", path.display())
                    });
                }
            }
        }
        bail!("all names of directories are taken")
    }

    pub(super) fn data(&self) -> PathBuf {
        self.path.join("cluster")
    }

    pub(super) fn log(&self) -> PathBuf {
        self.path.join("cluster.log")
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let data_dir = self.data();
        let mut left = LAST_END;
        while !left.is_zero() && status::processes(|line| is_in(line, &data_dir)).next().is_some() {
            crate::supervisor::pause(LOOK);
            left = left.saturating_sub(LOOK);
        }
        let keeps_log = self.keeps_log.unwrap_or(!self.wish.is_told()) && self.log().exists();
        let gone = if keeps_log { self.data() } else { self.path.clone() };
        match std::fs::remove_dir_all(&gone) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                tracing::warn!("cannot remove {}: {error}", gone.display());
            }
            _ => {}
        }
    }
}

/// What clusters of both kinds have: files, and processes that signals are sent to.
pub(super) struct Nodes {
    pub(super) directory: Directory,
    pub(super) ground: Ground,
    aim: Option<Pid>,
}

/// Of a cluster that has a description and a secret by now.
pub(super) fn ground(args: &LatsArgs, directory: &Directory) -> anyhow::Result<Ground> {
    let options = Target::of_directory(directory.data()).client_options()?;
    Ok(Ground {
        place: Place { options, clock: clock::now },
        data_nodes: args.nodes,
        read: seen,
        log: directory.log(),
        wall_us: clock::unix_micros,
    })
}

impl Nodes {
    pub(super) fn new(directory: Directory, ground: Ground) -> Self {
        Self { directory, ground, aim: None }
    }

    pub(super) fn aim(&mut self, node: u16) -> anyhow::Result<()> {
        self.aim = Some(process_of(&self.directory.data(), node)?);
        Ok(())
    }

    /// Strikes the process that was aimed at; a machine is not struck so.
    pub(super) fn strike(&mut self, node: u16, blow: Blow) -> anyhow::Result<()> {
        let signal = match blow {
            Blow::Kill => Signal::KILL,
            Blow::Freeze => Signal::STOP,
            Blow::Thaw => Signal::CONT,
            Blow::Cut | Blow::Heal => {
                bail!("the nodes of this cluster are on one machine, and none can be cut off")
            }
        };
        let pid = self.aim.with_context(|| format!("node {node} was not aimed at"))?;
        // Its number may soon be another's.
        self.aim = self.aim.filter(|_| blow == Blow::Freeze);
        kill_process(pid, signal).with_context(|| format!("node {node} cannot be sent {signal:?}"))
    }

    /// Has the node go on that may be frozen: only so it ends when it is told to.
    fn thaw(&self) {
        // It may have ended.
        let _ = self.aim.map(|pid| kill_process(pid, Signal::CONT));
    }

    pub(super) fn end(&mut self, keeps_log: bool) {
        self.directory.keeps_log = Some(keeps_log);
    }
}

/// Nodes on the loopback, under `latsdb start`.
struct Supervised(Nodes);

impl Supervised {
    fn start(args: &LatsArgs, directory: Directory, wish: &Wish) -> anyhow::Result<Self> {
        let number = |number: u64| number.to_string();
        let (nodes, replicas) = (number(args.nodes.into()), number(args.replicas.into()));
        let (port, memory) = (number(args.sql_port.into()), number(args.memory_mib.into()));
        // A node comes back when the gauge says so.
        let mut options = vec!["--detach", "--no-restart", "--nodes", &nodes];
        options.extend(["--replicas", &replicas, "--sql-port", &port, "--memory-mib", &memory]);
        let lease = number(args.lease_ms);
        options.extend(["--lease-ms", &lease]);
        options.extend((!args.durable).then_some("--ephemeral"));
        let started = latsdb("start", &directory.data(), &options)
            .context("no cluster can be started (--sql-port names other ports)")
            .and_then(|()| wish.check())
            .and_then(|()| ground(args, &directory))
            // Also what has come up in part.
            .inspect_err(|_| stop(&directory.data()));
        Ok(Self(Nodes::new(directory, started?)))
    }
}

/// Ends whatever runs in a directory, if something does.
fn stop(data_dir: &Path) {
    if !data_dir.join("cluster.json").exists() {
        return;
    }
    if let Err(error) = latsdb("stop", data_dir, &["--force"]) {
        tracing::warn!("{error:#}");
    }
}

impl Scene for Supervised {
    fn ground(&self) -> &Ground {
        &self.0.ground
    }

    fn aim(&mut self, node: u16) -> anyhow::Result<()> {
        self.0.aim(node)
    }

    fn strike(&mut self, node: u16, blow: Blow) -> anyhow::Result<()> {
        self.0.strike(node, blow)
    }

    fn start_node(&mut self, node: u16) -> anyhow::Result<()> {
        latsdb("start-node", &self.0.directory.data(), &[&node.to_string()])
    }

    fn end(&mut self, keeps_log: bool) {
        self.0.thaw();
        stop(&self.0.directory.data());
        self.0.end(keeps_log);
    }
}

/// What the gauge needs of a status record.
fn seen(status: &[u8]) -> Option<Seen> {
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
    let found = status::node_processes(node, |line| is_in(line, data_dir)).next();
    let pid = found.and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
    pid.with_context(|| format!("node {node} has no process"))
}

fn is_in(command_line: &str, data_dir: &Path) -> bool {
    status::directory_in(command_line).is_some_and(|named| Path::new(named) == data_dir)
}
