//! A data node without sockets.

use lats_base::{Incarnation, Instant, NodeId};
use lats_kernel::{Executor, Faults, ctx::Identity, executor::Budget};
use lats_ldm::{Ldm, LdmConfig, OUTCOME_KEPT, RedoConfig, Slices};
use lats_signals::{
    BlockKind, BlockRef, Principal, SignalBuffer, SignalNumber, admit,
    buffer::{Route, parse},
    io::{IoConf, IoWriteReq},
};
use lats_tc::Tc;
use std::collections::BTreeMap;

/// Memory for the rows, in bytes.
const MEMORY_BYTES: usize = 1 << 30;
/// Bytes of a segment of its log: no checkpoint begins while it is measured.
const SEGMENT_BYTES: u64 = 1 << 30;
/// What may wait for the disk.
const WAITING_BYTES_MAX: usize = 64 << 20;

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
    /// One that writes redo logs, or none. Its disk is done with a write when more bytes come.
    pub(crate) fn new(node: NodeId, ldm_instances: u32, logs: bool) -> Self {
        let life = Incarnation::new(1);
        let identity = Identity { node, incarnation: life };
        let mut executor = Executor::new(identity, 1, Faults::default());
        executor.add(BlockKind::Tc, 0, Box::new(Tc::new()));
        let redo = logs.then_some(RedoConfig {
            cluster: 1,
            node,
            life,
            segment_bytes: SEGMENT_BYTES,
            waiting_bytes_max: WAITING_BYTES_MAX,
        });
        let config = LdmConfig {
            memory_bytes: MEMORY_BYTES,
            slices: Slices::default(),
            redo,
            outcome_kept: OUTCOME_KEPT,
        };
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
                    admit(&signal, Principal::Client, client, 1, &mut self.entering)
                        .map_err(|m| anyhow::anyhow!("{m}"))?;
                }
            }
        }
        while let Some(signal) = self.entering.pop() {
            self.executor.mailbox().push_signal(&signal);
        }
        self.entering.compact();
        self.answer_writes();
        while self.executor.has_work() {
            self.executor.step(now, Budget::ROUND);
        }
        self.route();
        Ok(())
    }

    fn answer_writes(&mut self) {
        let mut asked = core::mem::take(self.executor.for_io());
        while let Some(signal) = asked.pop() {
            if signal.number() == Some(SignalNumber::IoWriteReq) {
                let request = signal.body::<IoWriteReq>().request;
                let (sender, receiver) = (BlockRef::io(self.node), signal.sender());
                let route = Route { sender, receiver, incarnation: 1 };
                self.executor.mailbox().push(route, &IoConf { request }, &[]);
            }
        }
        asked.compact();
        *self.executor.for_io() = asked;
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
