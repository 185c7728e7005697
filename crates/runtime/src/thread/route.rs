//! Where signals go: to the own executor, another thread, another node, a client, the shell itself.

use super::Thread;
use crate::io::thread_of;
use lats_node::Placement;
use lats_signals::{BlockKind, BlockRef, Lane, Signal};
use std::collections::BTreeMap;

/// Which thread each block of the node lives in.
pub(crate) struct Homes {
    threads: BTreeMap<(u16, u32), usize>,
    blocks: Vec<(BlockKind, u32)>,
    /// The threads that read beside each data manager.
    queries: Vec<Vec<usize>>,
}

impl Homes {
    pub(crate) fn new(placement: &Placement) -> Self {
        let numbered = placement.threads.iter().enumerate();
        let all = numbered.flat_map(|(thread, blocks)| blocks.iter().map(move |b| (*b, thread)));
        let (queries, blocks): (Vec<_>, Vec<_>) =
            all.partition(|((k, _), _)| *k == BlockKind::Query);
        let threads =
            blocks.iter().map(|((kind, instance), thread)| ((*kind as u16, *instance), *thread));
        let threads: BTreeMap<_, _> = threads.collect();
        let mut beside = Vec::new();
        for ((_, instance), thread) in queries {
            let at = instance as usize;
            beside.resize(beside.len().max(at + 1), Vec::new());
            beside[at].push(thread);
        }
        Self {
            threads,
            blocks: blocks.into_iter().map(|(block, _)| block).collect(),
            queries: beside,
        }
    }

    pub(crate) fn blocks(&self) -> impl Iterator<Item = (BlockKind, u32)> {
        self.blocks.iter().copied()
    }

    /// All that read beside data managers: which one, and where they live.
    pub(super) fn readers(&self) -> impl Iterator<Item = (u32, usize)> {
        let all = (0..).zip(&self.queries);
        all.flat_map(|(instance, threads)| threads.iter().map(move |thread| (instance, *thread)))
    }

    fn queries_of(&self, instance: u32) -> &[usize] {
        self.queries.get(instance as usize).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn thread_of(&self, kind: BlockKind, instance: u32) -> Option<usize> {
        self.threads.get(&(kind as u16, instance)).copied()
    }
}

impl Thread {
    /// Takes what the executor has sent.
    pub(super) fn route_outgoing(&mut self) {
        let (unsent, news_for) = (&mut self.unsent, &mut self.news_for);
        self.outputs.refresh(|output| super::flush(output, unsent, news_for));
        let mut outgoing = core::mem::take(self.executor.outgoing());
        while let Some(signal) = outgoing.pop() {
            self.route(&signal);
        }
        outgoing.compact();
        *self.executor.outgoing() = outgoing;
        self.ask_for_files();
    }

    /// Takes what has come into the node from outside.
    pub(super) fn enter(&mut self) {
        let mut entering = core::mem::take(&mut self.entering);
        while let Some(signal) = entering.pop() {
            self.route(&signal);
        }
        entering.compact();
        // Handling may have let more signals enter.
        if self.entering.is_empty() {
            self.entering = entering;
        }
    }

    fn route(&mut self, signal: &Signal<'_>) {
        let receiver = signal.header.receiver;
        let own = self.place.node;
        if receiver.node != own && receiver.node.get() != 0 {
            let node = receiver.node.get();
            if !self.outputs.queue_for_node(node, Lane::of(signal), signal.bytes()) {
                tracing::warn!(node, "a node does not take its signals: closing the link");
            }
            return;
        }
        match receiver.kind() {
            Some(BlockKind::Client) => self.send_to_client(receiver.instance, signal),
            // From control, which lives in the same thread, or a client's question.
            Some(BlockKind::Shell) => self.on_shell_signal(signal),
            // What is for io lies in a buffer of its own.
            Some(BlockKind::Io) | None => {}
            Some(kind) => self.send_inside(kind, receiver, signal),
        }
    }

    pub(super) fn send_to_client(&mut self, slot: u32, signal: &Signal<'_>) {
        if !self.outputs.queue_for_client(slot, signal.bytes()) {
            tracing::warn!("a client does not read its answers: closing its connection");
        }
    }

    /// Hands over what blocks want of files. A node that keeps nothing on disk has nobody to ask.
    fn ask_for_files(&mut self) {
        let (threads, requests) = (&self.place.io, self.executor.for_io());
        if requests.is_empty() {
            return;
        }
        let of_signal = |signal: &Signal<'_>| thread_of(signal.sender(), threads.len());
        let mut of = requests.upcoming(usize::MAX).map(|signal| of_signal(&signal));
        let first = of.next().unwrap_or_default();
        if let Some(thread) = threads.get(first).filter(|_| of.all(|other| other == first)) {
            return thread.ask_all(requests);
        }
        while let Some(signal) = requests.pop() {
            if let Some(thread) = threads.get(of_signal(&signal)) {
                thread.ask(&signal);
            }
        }
        requests.compact();
    }

    /// To a block of this node. (The shell is with control.)
    fn send_inside(&mut self, kind: BlockKind, receiver: BlockRef, signal: &Signal<'_>) {
        if kind == BlockKind::Ldm && self.send_to_reader(receiver, signal) {
            return;
        }
        if self.executor.hosts(kind, receiver.instance) {
            return self.executor.mailbox().push_signal(signal);
        }
        if let Some(thread) = self.place.homes.thread_of(kind, receiver.instance) {
            self.rings.send(thread, signal);
        }
    }

    /// True if somebody reads it beside its data manager.
    fn send_to_reader(&mut self, receiver: BlockRef, signal: &Signal<'_>) -> bool {
        let homes = &self.place.homes;
        let beside = homes.queries_of(receiver.instance);
        if beside.is_empty() || !lats_node::may_be_served_beside(signal) {
            return false;
        }
        let Some(owner) = homes.thread_of(BlockKind::Ldm, receiver.instance) else { return false };
        let sizes = (signal.bytes().len(), self.executor.mailbox().len_bytes());
        let thread = self.reads.choose(owner, beside, sizes);
        if thread == owner {
            return false;
        }
        let query = BlockRef::query(receiver.node, receiver.instance);
        if thread == self.place.number {
            self.executor.mailbox().push_for(signal, query);
            return true;
        }
        self.redirected.push_for(signal, query);
        self.send_redirected(thread);
        true
    }

    pub(super) fn send_redirected(&mut self, thread: usize) {
        while let Some(signal) = self.redirected.pop() {
            self.rings.send(thread, &signal);
        }
        self.redirected.compact();
    }
}
