//! A data node without sockets.

use lats_base::{Incarnation, Instant, NodeId};
use lats_kernel::{Executor, Faults, ctx::Identity, executor::Budget};
use lats_ldm::{Ldm, LdmConfig, Slices};
use lats_signals::{BlockKind, BlockRef, SignalBuffer, admit, buffer::parse};
use lats_tc::Tc;
use std::collections::BTreeMap;

/// Memory for the rows, in bytes.
const MEMORY_BYTES: usize = 1 << 30;

/// Whom bytes come from or go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Peer {
    Client,
    Node(NodeId),
}

/// A node: its blocks in one executor, and what would be the output of its sockets.
pub(crate) struct Node {
    node: NodeId,
    executor: Executor,
    entering: SignalBuffer,
    outputs: BTreeMap<Peer, Vec<u8>>,
}

impl Node {
    pub(crate) fn new(node: NodeId, ldm_instances: u32) -> Self {
        let identity = Identity { node, incarnation: Incarnation::new(1) };
        let mut executor = Executor::new(identity, 1, Faults::default());
        executor.add(BlockKind::Tc, 0, Box::new(Tc::new()));
        let config =
            LdmConfig { memory_bytes: MEMORY_BYTES, slices: Slices::default(), redo: None };
        for instance in 0..ldm_instances {
            executor.add(BlockKind::Ldm, instance, Box::new(Ldm::new(instance, config)));
        }
        Self { node, executor, entering: SignalBuffer::new(), outputs: BTreeMap::new() }
    }

    /// Bytes that have come from a peer, who sends whole signals, and all that follows from them.
    pub(crate) fn receive(&mut self, from: Peer, input: &[u8], now: Instant) -> anyhow::Result<()> {
        let mut used = 0;
        while let Some(signal) = parse(&input[used..]).map_err(|m| anyhow::anyhow!("{m}"))? {
            used += signal.bytes().len();
            match from {
                Peer::Node(_) => self.entering.push_signal(&signal),
                Peer::Client => {
                    let client = BlockRef::new(self.node, BlockKind::Client, 1);
                    admit(&signal, client, 1, &mut self.entering)
                        .map_err(|m| anyhow::anyhow!("{m}"))?;
                }
            }
        }
        while let Some(signal) = self.entering.pop() {
            self.executor.mailbox().push_signal(&signal);
        }
        self.entering.compact();
        while self.executor.has_work() {
            self.executor.step(now, Budget::ROUND);
        }
        self.route();
        Ok(())
    }

    fn route(&mut self) {
        let mut outgoing = core::mem::take(self.executor.outgoing());
        while let Some(signal) = outgoing.pop() {
            let receiver = signal.header.receiver;
            let own = receiver.node == self.node || receiver.node.get() == 0;
            let to = match receiver.kind() {
                Some(BlockKind::Client) if own => Peer::Client,
                _ if own => continue,
                _ => Peer::Node(receiver.node),
            };
            self.outputs.entry(to).or_default().extend_from_slice(signal.bytes());
        }
        outgoing.compact();
        *self.executor.outgoing() = outgoing;
    }

    /// What it has for a peer now; the buffer given is filled next.
    pub(crate) fn take_output(&mut self, to: Peer, empty: Vec<u8>) -> Vec<u8> {
        core::mem::replace(self.outputs.entry(to).or_default(), empty)
    }
}
