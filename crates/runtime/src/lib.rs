//! The runtime: the shell that runs a node on a machine. Threads, rings between them, sockets,
//! timers, wake-ups. It holds no protocol decision.
//!
//! Thread 0 owns the sockets and the ports of clients in the same process; the other threads are
//! reached by rings. Each thread sleeps in `epoll` until a socket, its doorbell or a timer wakes it. While thread 0
//! sleeps, a client's thread does its work (`engine.rs`).
#![deny(unsafe_code)]

pub mod clock;
mod connection;
mod doorbell;
mod engine;
mod gate;
mod links;
mod main_thread;
pub mod port;
mod report;
pub mod ring;
mod worker;

pub use lats_signals::hello::{Hello, HelloKind};
pub use port::Port;

use doorbell::Doorbell;
use lats_catalog::View;
use lats_node::NodeConfig;
use std::{
    net::{SocketAddr, TcpListener},
    sync::{Arc, mpsc},
};

/// How a node runs on this machine.
pub struct RuntimeConfig {
    /// The node.
    pub node: NodeConfig,
    /// The cluster that it belongs to.
    pub cluster_id: u64,
    /// Where it listens for nodes and clients.
    pub listener: TcpListener,
    /// Addresses of nodes to join through, or of the other founders: node and address.
    pub peers: Vec<(lats_base::NodeId, SocketAddr)>,
    /// Clients in this process: their ends of the ports.
    pub ports: Vec<port::NodeEnd>,
    /// Told of each new view, by the thread that serves the sockets: it must not take long.
    pub on_view: Box<dyn FnMut(&View) + Send>,
}

/// A node that runs.
pub struct Running {
    threads: Vec<std::thread::JoinHandle<()>>,
    stopped: mpsc::Receiver<Stopped>,
}

/// Why a node has stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// The exit status that the process should have.
    pub status: i32,
    /// For a person.
    pub why: String,
}

/// Starts the threads of a node.
///
/// # Errors
/// When the machine refuses a thread, an epoll instance or a doorbell.
pub fn start(config: RuntimeConfig) -> std::io::Result<Running> {
    let (tell_stopped, stopped) = mpsc::channel();
    report::install();
    let executors = lats_node::build(&config.node);
    let placement = config.node.placement.clone();
    let count = executors.len();
    let bells: Vec<Arc<Doorbell>> =
        (0..count).map(|_| Doorbell::new().map(Arc::new)).collect::<Result<_, _>>()?;
    let mut mesh = worker::mesh(&bells);
    let mut threads = Vec::new();
    let mut executors = executors.into_iter();
    let mut ends = mesh.drain(..);
    let (Some(first), Some(first_ends)) = (executors.next(), ends.next()) else {
        return Err(std::io::Error::other("a node has at least one thread"));
    };
    for ((index, executor), ends) in executors.enumerate().zip(ends) {
        let placement = placement.clone();
        let worker = worker::Worker::new(executor, ends, placement, config.node.node)?;
        threads.push(spawn(&format!("lats-exec-{}", index + 1), move || worker.run())?);
    }
    let slots: Vec<_> = config.ports.iter().map(|end| end.engine.clone()).collect();
    let main = main_thread::MainThread::new(config, first, first_ends, tell_stopped)?;
    let engine = engine::Engine::new(main);
    for slot in slots {
        // Each port is given to one node only.
        let _ = slot.set(engine.clone());
    }
    threads.push(spawn("lats-exec-0", move || engine.run())?);
    Ok(Running { threads, stopped })
}

fn spawn(
    name: &str,
    work: impl FnOnce() + Send + 'static,
) -> std::io::Result<std::thread::JoinHandle<()>> {
    std::thread::Builder::new().name(name.to_string()).spawn(work)
}

impl Running {
    /// Waits until the node stops, and says why it did.
    pub fn wait(&self) -> Stopped {
        self.stopped.recv().unwrap_or_else(|_| Stopped {
            status: 70,
            why: format!("{} threads of the node have ended", self.threads.len()),
        })
    }
}

/// The addresses in a view, for the links.
fn addresses(view: &View) -> Vec<(lats_base::NodeId, u32, SocketAddr)> {
    let alive = view.members.iter().filter(|m| m.alive);
    alive
        .filter_map(|m| Some((m.node, m.incarnation.get(), m.native_address.parse().ok()?)))
        .collect()
}
