//! Nodes in network namespaces of their own, joined by a bridge, so that a machine can be cut off: nothing that it sends arrives, and
//! nothing reaches it. The gauge runs in the namespace of the bridge. No network of this machine is touched.

use super::{
    gauge::{self, Directory, Nodes},
    interrupts::apart,
};
use crate::{
    cluster_file::{ClusterFile, NodeEntry},
    private, random, secret, settings, supervisor,
};
use anyhow::{Context, bail};
use lats_bench::lats::{
    LatsArgs, Wish,
    scene::{Blow, Ground, Scene},
};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    collections::BTreeMap,
    fs::File,
    net::{Ipv4Addr, SocketAddr},
    process::{Child, Command, Stdio},
    time::Duration,
};

const BRIDGE: &str = "br0";
const SQL_PORT: u16 = 4_306;
const NATIVE_PORT: u16 = 4_406;
const LOOK: Duration = Duration::from_millis(20);
/// A process that has lost its lease ends within this.
const END_PATIENCE: Duration = Duration::from_secs(30);
/// A gauge that is told to end has taken down its cluster within this.
const DOWN_PATIENCE: Duration = Duration::from_secs(60);

/// A node's own, and with another name the bridge's.
fn name_of(net: &str, node: u16) -> String {
    format!("{net}-{node}")
}

fn hub(net: &str) -> String {
    format!("{net}-hub")
}

fn port(node: u16) -> String {
    format!("p{node}")
}

fn address(node: u16) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 0, node as u8)
}

/// The nodes, the witness too.
fn nodes(args: &LatsArgs) -> std::ops::RangeInclusive<u16> {
    1..=settings::node_count(args.nodes)
}

/// Runs `ip`; gives what it says.
fn ip(words: &[&str]) -> anyhow::Result<String> {
    let done = apart(Command::new("ip")).args(words).stdin(Stdio::null()).output();
    let done = done.context("there is no command `ip` (package iproute2)")?;
    if !done.status.success() {
        bail!("ip {}: {}", words.join(" "), String::from_utf8_lossy(&done.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

/// Namespaces that go when this goes, with all processes in them.
struct Net {
    name: String,
    nodes: std::ops::RangeInclusive<u16>,
    /// Those that are there: what somebody else has made is left alone.
    made: Vec<String>,
}

impl Net {
    fn build(&mut self) -> anyhow::Result<()> {
        let hub = &hub(&self.name);
        self.add(hub)?;
        ip(&["-n", hub, "link", "add", BRIDGE, "type", "bridge"])?;
        ip(&["-n", hub, "addr", "add", "10.77.0.200/24", "dev", BRIDGE])?;
        ip(&["-n", hub, "link", "set", BRIDGE, "up"])?;
        for node in self.nodes.clone() {
            let (own, port) = (&name_of(&self.name, node), &port(node));
            let address = &format!("{}/24", address(node));
            self.add(own)?;
            let pair = ["type", "veth", "peer", "name", port, "netns", hub];
            ip(&[&["link", "add", "eth0", "netns", own], &pair[..]].concat())?;
            ip(&["-n", hub, "link", "set", port, "master", BRIDGE, "up"])?;
            ip(&["-n", own, "addr", "add", address, "dev", "eth0"])?;
            ip(&["-n", own, "link", "set", "eth0", "up"])?;
        }
        Ok(())
    }

    fn add(&mut self, name: &str) -> anyhow::Result<()> {
        ip(&["netns", "add", name])?;
        self.made.push(name.to_string());
        ip(&["-n", name, "link", "set", "lo", "up"]).map(drop)
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for name in &self.made {
            let pids = ip(&["netns", "pids", name]).unwrap_or_default();
            let pids = pids.lines().filter_map(|line| Pid::from_raw(line.trim().parse().ok()?));
            // Guardians, which end by themselves a moment later; and nodes, if the gauge could not end them.
            for pid in pids {
                let _ = kill_process(pid, Signal::KILL);
            }
            if let Err(error) = ip(&["netns", "del", name]) {
                tracing::warn!("{error:#}");
            }
        }
    }
}

/// Runs this command again where the bridge is.
pub(super) fn run_inside(args: &LatsArgs, wish: &Wish) -> anyhow::Result<u64> {
    let name = format!("lats{}", std::process::id());
    let mut net = Net { name, nodes: nodes(args), made: Vec::new() };
    net.build().context(
        "a silent machine is a network namespace that is cut off, and none can be made here (that needs root, `ip`, and a kernel \
         with bridges); run this as root, or leave `silent` out of --kind",
    )?;
    wish.check()?;
    let mut inside = Command::new("ip");
    inside.args(["netns", "exec", &hub(&net.name)]).arg(std::env::current_exe()?);
    inside.args(std::env::args_os().skip(1)).args(["--net", &net.name]);
    let mut inside = inside.spawn().context("cannot run `ip`")?;
    // A wish is for the command inside; the namespaces go when it has ended.
    let mut left = DOWN_PATIENCE;
    let status = loop {
        if let Some(status) = inside.try_wait()? {
            break status;
        }
        if wish.is_told() {
            if left == DOWN_PATIENCE {
                // A terminal has told it already.
                let _ = kill_process(Pid::from_child(&inside), Signal::TERM);
            }
            left = left.saturating_sub(LOOK);
            if left.is_zero() {
                let _ = inside.kill();
            }
        }
        supervisor::pause(LOOK);
    };
    // It has said what was wrong.
    Ok(u64::from(!status.success()))
}

/// A cluster whose nodes are in namespaces.
pub(super) struct Spread {
    net: String,
    nodes: Nodes,
    children: BTreeMap<u16, Child>,
    wish: Wish,
}

impl Spread {
    pub(super) fn start(
        args: &LatsArgs,
        net: &str,
        directory: Directory,
        wish: Wish,
    ) -> anyhow::Result<Self> {
        ip(&["netns", "pids", &hub(net)]).context("--net is for the gauge itself")?;
        let data_dir = directory.data();
        private::directory(&data_dir)?;
        let socket = |node, port| SocketAddr::from((address(node), port));
        let entries = nodes(args).map(|node_id| NodeEntry {
            node_id,
            data: node_id <= args.nodes,
            native_address: socket(node_id, NATIVE_PORT),
            sql_address: (node_id <= args.nodes).then(|| socket(node_id, SQL_PORT)),
            location: String::new(),
        });
        let mut cluster = ClusterFile::new(random::number()? | 1, args.replicas, entries.collect());
        cluster.memory_mib = args.memory_mib as usize;
        cluster.lease_ms = args.lease_ms;
        cluster.keeps = args.durable;
        cluster.founding = random::number()?;
        cluster.write(&data_dir)?;
        secret::make(&data_dir)?;
        File::create(directory.log())?;
        let ground = gauge::ground(args, &directory)?;
        let (net, children) = (net.to_string(), BTreeMap::new());
        let mut scene = Self { net, nodes: Nodes::new(directory, ground), children, wish };
        for node in nodes(args) {
            let spawned = scene.wish.check().and_then(|()| scene.spawn(node, true));
            if let Err(error) = spawned {
                scene.end(!scene.wish.is_told());
                return Err(error);
            }
        }
        Ok(scene)
    }

    fn spawn(&mut self, node: u16, founds: bool) -> anyhow::Result<()> {
        let directory = &self.nodes.directory;
        let log = File::options().append(true).open(directory.log())?;
        let mut line = apart(Command::new("ip"));
        line.args(["netns", "exec", &name_of(&self.net, node)])
            .arg(std::env::current_exe()?)
            .args(["node", "--insecure", "--data-dir"])
            .arg(directory.data())
            .args(["--node-id", &node.to_string()])
            .args(founds.then_some("--found"))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        let child = line.spawn().with_context(|| format!("cannot start node {node}"))?;
        self.children.insert(node, child);
        Ok(())
    }
}

impl Scene for Spread {
    fn ground(&self) -> &Ground {
        &self.nodes.ground
    }

    fn aim(&mut self, node: u16) -> anyhow::Result<()> {
        self.nodes.aim(node)
    }

    fn strike(&mut self, node: u16, blow: Blow) -> anyhow::Result<()> {
        let (hub, port) = (&hub(&self.net), &port(node));
        match blow {
            // The machine sees its cable and gets no word: as if the other end had no power.
            Blow::Cut => ip(&["-n", hub, "link", "set", port, "nomaster"]).map(drop),
            Blow::Heal => ip(&["-n", hub, "link", "set", port, "master", BRIDGE]).map(drop),
            Blow::Kill | Blow::Freeze | Blow::Thaw => self.nodes.strike(node, blow),
        }
    }

    fn start_node(&mut self, node: u16) -> anyhow::Result<()> {
        if let Some(child) = self.children.get_mut(&node) {
            let mut left = END_PATIENCE;
            while child.try_wait()?.is_none() {
                self.wish.check()?;
                if left.is_zero() {
                    bail!("node {node} was removed, and its process does not end; see the log");
                }
                left = left.saturating_sub(LOOK);
                supervisor::pause(LOOK);
            }
        }
        self.spawn(node, false)
    }

    fn end(&mut self, keeps_log: bool) {
        for child in self.children.values_mut() {
            let _ = child.kill();
            let _ = child.wait();
        }
        self.nodes.end(keeps_log);
    }
}
