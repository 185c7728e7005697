//! The runtime: the shell that runs a node on a machine. Threads, rings between them, sockets,
//! timers, wake-ups. It holds no protocol decision.
//!
//! Each thread has an executor with some of the node's blocks, may read sockets, and puts what its blocks send into rings
//! to other threads and into the outputs to nodes and clients, which all threads share. Thread 0 is the one with control
//! and what happens once in a node. A thread that has nothing to do sleeps in `epoll`; meanwhile others do its work in its
//! place (`engine.rs`). Which modules live in which threads is configuration (`plan.rs`).
#![deny(unsafe_code)]

mod assemble;
mod attendance;
mod blocks;
pub mod clock;
mod closer;
mod connection;
pub mod cpus;
mod directory;
mod disk;
mod doorbell;
pub mod ends;
mod engine;
mod figures;
pub mod files;
mod gate;
mod ground;
mod io;
mod links;
mod output;
mod pace;
pub mod plan;
pub mod port;
mod pulse;
pub mod random;
mod reads;
mod report;
pub mod ring;
mod rings;
mod sender;
mod sequential;
pub mod sockets;
mod spin;
mod strangers;
mod thread;

pub use assemble::start;
pub use closer::Closer;
pub use disk::DiskFigures;
pub use figures::{Figures, MemoryUse, NodeFigures};
pub use plan::ThreadPlan;
pub use port::Port;
pub use reads::ReadPlacement;
pub use spin::SpinMethod;

use lats_base::{NodeId, Nonce};
use lats_catalog::View;
use lats_node::NodeConfig;
use lats_signals::proof::Secret;
use links::Process;
use std::{
    collections::BTreeMap,
    net::{SocketAddr, TcpListener},
    sync::mpsc,
};

/// How a node runs on this machine.
pub struct RuntimeConfig {
    /// The node.
    pub node: NodeConfig,
    /// The cluster that it belongs to.
    pub cluster_id: u64,
    /// What nodes and native clients prove to know before they may talk to this node.
    pub secret: Secret,
    /// Where it listens for nodes and clients.
    pub listener: TcpListener,
    /// Addresses of nodes to join through, or of the other founders: node and address.
    pub peers: Vec<(lats_base::NodeId, SocketAddr)>,
    /// Its threads; `node.placement` must be theirs.
    pub threads: Vec<ThreadPlan>,
    /// 0 to 10: large batches, which cost least, to answers as soon as possible.
    pub responsiveness: u8,
    /// How a thread waits.
    pub spin_method: SpinMethod,
    /// Who does reads, where there are threads with the module `query`.
    pub reads: ReadPlacement,
    /// A thread with nothing to do does the work of those that sleep, instead of waking them.
    pub helping: bool,
    /// Where the node's files are, if it keeps anything on disk.
    pub files: Option<files::FilesConfig>,
    /// Clients in this process: their ends of the ports.
    pub ports: Vec<port::NodeEnd>,
    /// Told of each new view, by the thread that serves the sockets: it must not take long.
    pub on_view: Box<dyn FnMut(&View) + Send>,
    /// Told that a later life of this node is known than this one (LIFE-2), by the same thread.
    pub on_known_life: Box<dyn FnMut(u32) + Send>,
    /// Lists or ends sessions of MySQL clients in this process. It takes a session's number and a call (SESSIONS_…), and
    /// gives whether there is such a session, and the list if it was asked for. Any thread calls it: it must not take long.
    pub sessions: SessionsCall,
    /// What the process has memory for. Any thread calls it: it must not take long.
    pub memory: MemoryCall,
}

/// See [`RuntimeConfig::memory`].
pub type MemoryCall = std::sync::Arc<dyn Fn() -> Vec<MemoryUse> + Send + Sync>;

/// See [`RuntimeConfig::sessions`].
pub type SessionsCall = std::sync::Arc<dyn Fn(u32, u32, u64) -> (bool, Vec<u8>) + Send + Sync>;

/// A node that runs.
pub struct Running {
    threads: Vec<std::thread::JoinHandle<()>>,
    stopped: mpsc::Receiver<Stopped>,
    closer: Closer,
}

/// Why a node has stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// The exit status that the process should have.
    pub status: i32,
    /// For a person.
    pub why: String,
}

impl Running {
    /// What tells the node to end.
    pub fn closer(&self) -> Closer {
        self.closer.clone()
    }

    /// Waits until the node stops, and says why it did.
    pub fn wait(&self) -> Stopped {
        self.stopped.recv().unwrap_or_else(|_| Stopped {
            status: 70,
            why: format!("{} threads of the node have ended", self.threads.len()),
        })
    }
}

/// The addresses in a view, for the links.
fn addresses(view: &View, nonces: &BTreeMap<NodeId, Nonce>) -> Vec<(u16, Process, SocketAddr)> {
    let alive = view.members.iter().filter(|m| m.alive);
    let nonce = |node| nonces.get(&node).copied().unwrap_or_default();
    alive
        .filter_map(|m| {
            let process = Process { life: m.incarnation.get(), nonce: nonce(m.node) };
            Some((m.node.get(), process, m.native_address.parse().ok()?))
        })
        .collect()
}
