//! Where signals go: to the own executor, another thread, another node, a client, the shell itself.

use super::Thread;
use lats_node::Placement;
use lats_signals::{BlockKind, BlockRef, Signal};
use std::collections::BTreeMap;

/// Which thread each block of the node lives in.
pub(crate) struct Homes {
    threads: BTreeMap<(u16, u32), usize>,
    blocks: Vec<(BlockKind, u32)>,
}

impl Homes {
    pub(crate) fn new(placement: &Placement) -> Self {
        let numbered = placement.threads.iter().enumerate();
        let all = numbered.flat_map(|(thread, blocks)| blocks.iter().map(move |b| (*b, thread)));
        let threads = all.map(|((kind, instance), thread)| ((kind as u16, instance), thread));
        Self { threads: threads.collect(), blocks: placement.threads.concat() }
    }

    pub(crate) fn blocks(&self) -> impl Iterator<Item = (BlockKind, u32)> {
        self.blocks.iter().copied()
    }

    fn thread_of(&self, kind: BlockKind, instance: u32) -> Option<usize> {
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
            if !self.outputs.queue_for_node(node, signal.bytes()) {
                tracing::warn!(node, "a node does not take its signals: closing the link");
            }
            return;
        }
        match receiver.kind() {
            Some(BlockKind::Client) => self.send_to_client(receiver.instance, signal),
            // From control, which lives in the same thread, or a client's question.
            Some(BlockKind::Shell) => self.on_shell_signal(signal),
            Some(kind) => self.send_inside(kind, receiver, signal),
            None => {}
        }
    }

    pub(super) fn send_to_client(&mut self, slot: u32, signal: &Signal<'_>) {
        if !self.outputs.queue_for_client(slot, signal.bytes()) {
            tracing::warn!("a client does not read its answers: closing its connection");
        }
    }

    /// To a block of this node. (The shell is with control.)
    fn send_inside(&mut self, kind: BlockKind, receiver: BlockRef, signal: &Signal<'_>) {
        if self.executor.hosts(kind, receiver.instance) {
            return self.executor.mailbox().push_signal(signal);
        }
        if let Some(thread) = self.place.homes.thread_of(kind, receiver.instance) {
            self.rings.send(thread, signal);
        }
    }
}
