//! Nodes in network namespaces of their own, joined by a bridge, so that a machine can be cut off: nothing that it sends arrives, and
//! nothing reaches it. The gauge runs in the namespace of the bridge. No network of this machine is touched.

use super::gauge::{Directory, seen, send};
use crate::{
    cluster_file::{ClusterFile, NodeEntry},
    private, random, secret, settings,
    status::Target,
};
use anyhow::{Context, bail};
use lats_bench::{
    Place,
    lats::{
        LatsArgs,
        scene::{Blow, Scene, Seen},
    },
};
use lats_runtime::clock;
use rustix::process::{Pid, Signal};
use std::{
    collections::BTreeMap,
    fs::File,
    net::{Ipv4Addr, SocketAddr},
    process::{Child, Command, Stdio},
    time::Duration,
};
use tokio::signal::unix;

const BRIDGE: &str = "br0";
const SQL_PORT: u16 = 4_306;
const NATIVE_PORT: u16 = 4_406;
const LOOK: Duration = Duration::from_millis(20);
/// A process that has lost its lease ends within this.
const END_PATIENCE: Duration = Duration::from_secs(30);

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

fn ip(words: &[&str]) -> anyhow::Result<()> {
    let done = Command::new("ip").args(words).stdin(Stdio::null()).output();
    let done = done.context("there is no command `ip` (package iproute2)")?;
    if !done.status.success() {
        bail!("ip {}: {}", words.join(" "), String::from_utf8_lossy(&done.stderr).trim());
    }
    Ok(())
}

/// Namespaces that go when this goes.
struct Net {
    name: String,
    nodes: std::ops::RangeInclusive<u16>,
}

impl Net {
    fn build(&self) -> anyhow::Result<()> {
        let hub = &hub(&self.name);
        ip(&["netns", "add", hub])?;
        ip(&["-n", hub, "link", "set", "lo", "up"])?;
        ip(&["-n", hub, "link", "add", BRIDGE, "type", "bridge"])?;
        ip(&["-n", hub, "addr", "add", "10.77.0.200/24", "dev", BRIDGE])?;
        ip(&["-n", hub, "link", "set", BRIDGE, "up"])?;
        for node in self.nodes.clone() {
            let (own, port) = (&name_of(&self.name, node), &port(node));
            let address = &format!("{}/24", address(node));
            ip(&["netns", "add", own])?;
            ip(&["-n", own, "link", "set", "lo", "up"])?;
            let pair = ["type", "veth", "peer", "name", port, "netns", hub];
            ip(&[&["link", "add", "eth0", "netns", own], &pair[..]].concat())?;
            ip(&["-n", hub, "link", "set", port, "master", BRIDGE, "up"])?;
            ip(&["-n", own, "addr", "add", address, "dev", "eth0"])?;
            ip(&["-n", own, "link", "set", "eth0", "up"])?;
        }
        Ok(())
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        let own = self.nodes.clone().map(|node| name_of(&self.name, node));
        for name in own.chain([hub(&self.name)]) {
            let _ = ip(&["netns", "del", &name]);
        }
    }
}

/// Runs this command again where the bridge is.
pub(super) fn run_inside(args: &LatsArgs) -> anyhow::Result<u64> {
    let net = Net { name: format!("lats{}", std::process::id()), nodes: nodes(args) };
    net.build().context(
        "a silent machine is a network namespace that is cut off, and none can be made here (that needs root, `ip`, and a kernel \
         with bridges); run this as root, or leave `silent` out of --kind",
    )?;
    // An interrupt is for the command inside; the namespaces go when it has ended.
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let _heard = tokio.block_on(async { unix::signal(unix::SignalKind::interrupt()) })?;
    let mut inside = Command::new("ip");
    inside.args(["netns", "exec", &hub(&net.name)]).arg(std::env::current_exe()?);
    let status = inside.args(std::env::args_os().skip(1)).args(["--net", &net.name]).status()?;
    // It has said what was wrong.
    Ok(u64::from(!status.success()))
}

/// A cluster whose nodes are in namespaces.
pub(super) struct Spread {
    net: String,
    directory: Directory,
    place: Place,
    children: BTreeMap<u16, Child>,
}

impl Spread {
    pub(super) fn start(args: &LatsArgs, net: &str, directory: Directory) -> anyhow::Result<Self> {
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
        cluster.keeps = args.durable;
        cluster.founding = random::number()?;
        cluster.write(&data_dir)?;
        secret::make(&data_dir)?;
        File::create(directory.log())?;
        let options = Target::of_directory(data_dir).client_options()?;
        let place = Place { options, clock: clock::now };
        let children = BTreeMap::new();
        let mut scene = Self { net: net.to_string(), directory, place, children };
        for node in nodes(args) {
            if let Err(error) = scene.spawn(node, true) {
                scene.end(true);
                return Err(error);
            }
        }
        Ok(scene)
    }

    fn spawn(&mut self, node: u16, founds: bool) -> anyhow::Result<()> {
        let log = File::options().append(true).open(self.directory.log())?;
        let mut line = Command::new("ip");
        line.args(["netns", "exec", &name_of(&self.net, node)])
            .arg(std::env::current_exe()?)
            .args(["node", "--insecure", "--data-dir"])
            .arg(self.directory.data())
            .args(["--node-id", &node.to_string()])
            .args(founds.then_some("--found"))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        let child = line.spawn().with_context(|| format!("cannot start node {node}"))?;
        self.children.insert(node, child);
        Ok(())
    }

    /// What `ip` has begun is the node itself by now.
    fn process_of(&self, node: u16) -> anyhow::Result<Pid> {
        let child = self.children.get(&node).with_context(|| format!("there is no node {node}"))?;
        Ok(Pid::from_child(child))
    }
}

impl Scene for Spread {
    fn place(&self) -> Place {
        self.place.clone()
    }

    fn read(&self, status: &[u8]) -> Option<Seen> {
        seen(status)
    }

    fn aim(&mut self, node: u16) -> anyhow::Result<()> {
        self.process_of(node).map(drop)
    }

    fn strike(&mut self, node: u16, blow: Blow) -> anyhow::Result<()> {
        let (hub, port) = (&hub(&self.net), &port(node));
        match blow {
            Blow::Kill => send(self.process_of(node)?, Signal::KILL),
            Blow::Freeze => send(self.process_of(node)?, Signal::STOP),
            Blow::Thaw => send(self.process_of(node)?, Signal::CONT),
            // The machine sees its cable and gets no word: as if the other end had no power.
            Blow::Cut => ip(&["-n", hub, "link", "set", port, "nomaster"]),
            Blow::Heal => ip(&["-n", hub, "link", "set", port, "master", BRIDGE]),
        }
    }

    fn start_node(&mut self, node: u16) -> anyhow::Result<()> {
        if let Some(child) = self.children.get_mut(&node) {
            let mut looks = END_PATIENCE.as_millis() / LOOK.as_millis();
            while child.try_wait()?.is_none() {
                looks -= 1;
                if looks == 0 {
                    bail!("node {node} was removed, and its process does not end; see the log");
                }
                crate::supervisor::pause(LOOK);
            }
        }
        self.spawn(node, false)
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
        for child in self.children.values_mut() {
            let _ = child.kill();
            let _ = child.wait();
        }
        self.directory.remove(keeps_log);
    }
}
