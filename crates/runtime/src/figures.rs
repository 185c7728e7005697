//! What a thread has done: counted without locks, and shown to others a few times a second.

use crate::disk::DiskFigures;
use lats_base::Duration;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Counts of one thread since it was started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figures {
    /// Turns: by the thread itself, and by others who did its work while it slept.
    pub turns: u64,
    /// Turns that others have done.
    pub helped: u64,
    /// Signals and timers handled.
    pub signals: u64,
    /// The most that one round of the mailbox has handled.
    pub largest_batch: u64,
    /// Rounds of the mailbox that handled anything.
    pub batches: u64,
    /// Time in turns, by whoever did them, in ns.
    pub busy_ns: u64,
    /// Processor time of the thread itself, in ns.
    pub cpu_ns: u64,
    /// How often it has slept.
    pub sleeps: u64,
    /// How often it has spun, and how often something came meanwhile.
    pub spins: u64,
    /// Spins that something came in.
    pub spins_met: u64,
    /// Reads of sockets.
    pub reads: u64,
    /// Signals from sockets.
    pub from_sockets: u64,
    /// Signals from clients in this process.
    pub from_ports: u64,
    /// Signals from other threads.
    pub from_threads: u64,
    /// Signals handled, by number.
    pub by_number: Vec<u64>,
    /// The longest turn, in ns.
    pub longest_turn_ns: u64,
    /// Bytes of rows and indexes that its data managers have now: the node adds them up.
    #[serde(skip)]
    pub row_bytes: u64,
}

impl Figures {
    pub(crate) fn executed(&mut self, handled: usize) {
        let handled = handled as u64;
        self.signals += handled;
        self.batches += u64::from(handled > 0);
        self.largest_batch = self.largest_batch.max(handled);
    }

    pub(crate) fn worked(&mut self, span: Duration) {
        self.busy_ns += span.as_nanos();
        self.longest_turn_ns = self.longest_turn_ns.max(span.as_nanos());
    }
}

/// A thread's figures for others to read.
#[derive(Debug, Default)]
pub(crate) struct Published(Mutex<Figures>);

/// How old what others see may be, of a thread that works and of one that goes to sleep.
pub(crate) const PUBLISHED_EVERY: Duration = Duration::from_millis(100);
pub(crate) const PUBLISHED_EVERY_SLEEP: Duration = Duration::from_millis(10);

impl Published {
    pub(crate) fn read(&self) -> Figures {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn show(&self, figures: &Figures) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone_from(figures);
    }
}

/// What a node says about its threads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeFigures {
    /// Its clock, in ns: differences say how long ago an earlier answer was.
    pub at_ns: u64,
    /// What each thread does, and what it has done.
    pub threads: Vec<(String, Figures)>,
    /// Connections that were refused at the native port.
    pub refused: u64,
    /// Its disk, if it keeps anything there.
    pub disk: Option<DiskFigures>,
    /// What the process has memory for; the first is all of it.
    pub memory: Vec<MemoryUse>,
}

/// What the process has memory for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryUse {
    /// What it is for.
    pub name: String,
    /// Bytes now.
    pub bytes: u64,
    /// The most that there was.
    pub most_bytes: u64,
    /// The most that there may be.
    pub limit_bytes: u64,
    /// How often somebody wanted more, and was refused.
    pub refused: u64,
}

impl MemoryUse {
    /// The name of what data managers have, and count themselves.
    pub const ROWS: &str = "rows";
    /// The name of what waits for native clients.
    pub const NATIVE_OUTPUT: &str = "native_output";
}

/// The figures of all threads of a node, once there are all.
pub(crate) type Board = Arc<OnceLock<Vec<(String, Arc<Published>)>>>;

/// What is on the board now.
pub(crate) fn read(
    board: &Board,
    refused: u64,
    disk: Option<DiskFigures>,
    mut memory: Vec<MemoryUse>,
    now: lats_base::Instant,
) -> NodeFigures {
    let threads = board.get().into_iter().flatten();
    let threads: Vec<(String, Figures)> =
        threads.map(|(name, published)| (name.clone(), published.read())).collect();
    if let Some(rows) = memory.iter_mut().find(|of| of.name == MemoryUse::ROWS) {
        rows.bytes = threads.iter().map(|(_, figures)| figures.row_bytes).sum();
        rows.most_bytes = rows.bytes;
    }
    memory.push(crate::output::memory_use());
    NodeFigures { at_ns: now.as_nanos(), threads, refused, disk, memory }
}
