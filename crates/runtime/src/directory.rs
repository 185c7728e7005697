//! Which outputs there are: one list for all threads, and what each thread remembers of it.

use crate::output::Output;
use lats_signals::Lane;
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

/// All outputs of a node. Thread 0 changes it.
#[derive(Default)]
pub(crate) struct Directory {
    version: AtomicU64,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    nodes: BTreeMap<(u16, Lane), Arc<Output>>,
    clients: BTreeMap<u32, Arc<Output>>,
}

impl Directory {
    /// One of the connections of a link is there. Who hears something by it can answer by it, also before both are.
    pub(crate) fn set_lane(&self, node: u16, lane: Lane, output: Arc<Output>) {
        self.lock().nodes.insert((node, lane), output);
        self.version.fetch_add(1, Ordering::Release);
    }

    /// A node has no link any more.
    pub(crate) fn forget_node(&self, node: u16) {
        let mut known = self.lock();
        Lane::ALL.into_iter().for_each(|lane| drop(known.nodes.remove(&(node, lane))));
        self.version.fetch_add(1, Ordering::Release);
    }

    pub(crate) fn set_client(&self, slot: u32, output: Option<Arc<Output>>) {
        let mut known = self.lock();
        match output {
            // Nobody can know a new slot yet.
            Some(output) => drop(known.clients.insert(slot, output)),
            None => {
                known.clients.remove(&slot);
                self.version.fetch_add(1, Ordering::Release);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What one thread knows of the directory, and what it has filled.
pub(crate) struct Outputs {
    directory: Arc<Directory>,
    version: u64,
    nodes: ByName<(u16, Lane)>,
    clients: ByName<u32>,
}

/// Outputs of one kind by their name.
struct ByName<K> {
    by_name: BTreeMap<K, usize>,
    /// Outputs, and whether this thread has put something in since it has last flushed them.
    outputs: Vec<(Arc<Output>, bool)>,
    filled: Vec<usize>,
}

impl Outputs {
    pub(crate) fn new(directory: Arc<Directory>) -> Self {
        Self { directory, version: 0, nodes: ByName::new(), clients: ByName::new() }
    }

    /// Call it before each batch of signals is sent: forgets what has changed. `flush` gets what was filled before.
    pub(crate) fn refresh(&mut self, flush: impl FnMut(&Arc<Output>)) {
        let version = self.directory.version.load(Ordering::Acquire);
        if version != self.version {
            self.take_filled().for_each(flush);
            self.version = version;
            self.nodes = ByName::new();
            self.clients = ByName::new();
        }
    }

    /// Queues a signal for a node. Without a link it is lost, as with a link that ends (LINK-4): control hears of both.
    /// False if too much waits for that node.
    pub(crate) fn queue_for_node(&mut self, node: u16, lane: Lane, signal: &[u8]) -> bool {
        let directory = &self.directory;
        let find = || directory.lock().nodes.get(&(node, lane)).cloned();
        self.nodes.queue((node, lane), signal, find)
    }

    /// Queues a signal for a client, unless it is gone. False if too much waits for it.
    pub(crate) fn queue_for_client(&mut self, slot: u32, signal: &[u8]) -> bool {
        let directory = &self.directory;
        self.clients.queue(slot, signal, || directory.lock().clients.get(&slot).cloned())
    }

    /// The outputs that this thread has put something into since the last call. Those to nodes first: while we still
    /// write to clients, they work already.
    pub(crate) fn take_filled(&mut self) -> impl Iterator<Item = &Arc<Output>> {
        self.nodes.take_filled().chain(self.clients.take_filled())
    }
}

impl<K: Ord> ByName<K> {
    fn new() -> Self {
        Self { by_name: BTreeMap::new(), outputs: Vec::new(), filled: Vec::new() }
    }

    fn queue(&mut self, name: K, signal: &[u8], find: impl Fn() -> Option<Arc<Output>>) -> bool {
        let at = match self.by_name.get(&name) {
            Some(at) => *at,
            None => {
                let Some(output) = find() else { return true };
                self.by_name.insert(name, self.outputs.len());
                self.outputs.push((output, false));
                self.outputs.len() - 1
            }
        };
        let (output, is_filled) = &mut self.outputs[at];
        if !output.queue(signal) {
            output.close();
            return false;
        }
        if !*is_filled {
            *is_filled = true;
            self.filled.push(at);
        }
        true
    }

    fn take_filled(&mut self) -> impl Iterator<Item = &Arc<Output>> {
        for at in &self.filled {
            self.outputs[*at].1 = false;
        }
        let outputs = &self.outputs;
        self.filled.drain(..).map(move |at| &outputs[at].0)
    }
}
