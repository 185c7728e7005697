//! A node, assembled: which blocks it has and which executor each of them lives in.
//!
//! The only crate that knows all blocks. Both shells run what it builds.
#![forbid(unsafe_code)]

use lats_base::{Duration, Incarnation, NodeId};
use lats_control::{Control, Start};
use lats_kernel::{Block, Executor, Fault, Faults, ctx::Identity};
use lats_ldm::{Ldm, LdmConfig, Reader, RedoConfig, Slices};
use lats_signals::{BlockKind, BlockRef, Lane, Signal};
use lats_tc::Tc;
use shared::{Inbox, Owner, Query, Shared};
use std::collections::BTreeMap;

mod shared;

pub use shared::{LdmView, ldm_in, row_bytes};

pub use lats_control as control;
pub use lats_ldm as ldm;
pub use lats_tc as tc;

/// Where the blocks of a node live: one list of blocks per thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The blocks of each thread: kind and instance.
    pub threads: Vec<Vec<(BlockKind, u32)>>,
}

/// What a node is made of.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// The node.
    pub node: NodeId,
    /// This life of its process.
    pub incarnation: Incarnation,
    /// How it comes into its cluster.
    pub start: Start,
    /// It holds data (else it is a witness, or serves SQL only).
    pub holds_data: bool,
    /// LDM instances: the same on all nodes of a cluster.
    pub ldm_instances: u32,
    /// TC instances: the same on all nodes of a cluster.
    pub tc_instances: u32,
    /// Memory for rows and indexes, in bytes, over all LDM instances.
    pub memory_bytes: usize,
    /// How much a data manager does before it gives way (SLICE-1).
    pub slices: Slices,
    /// Where the blocks live.
    pub placement: Placement,
    /// Decides all random choices of its blocks.
    pub seed: u64,
    /// The files of its redo logs; none: it keeps nothing on disk.
    pub redo: Option<RedoFiles>,
    /// How long outcomes of transactions are kept (OUTCOME-8).
    pub outcome_kept: Duration,
    /// Faults to meet; none in production.
    pub faults: Faults,
}

/// What redo logs are written into.
#[derive(Clone, Copy, Debug)]
pub struct RedoFiles {
    /// The cluster that they belong to.
    pub cluster: u64,
    /// A new file is begun when one has so many bytes.
    pub segment_bytes: u64,
    /// With so many bytes in one data manager that wait for being written, changes are refused.
    pub waiting_bytes_max: usize,
}

impl Placement {
    /// Everything in one thread.
    pub fn single(holds_data: bool, tc_instances: u32, ldm_instances: u32) -> Self {
        let mut blocks = vec![(BlockKind::Control, 0)];
        if holds_data {
            blocks.extend((0..tc_instances).map(|i| (BlockKind::Tc, i)));
            blocks.extend((0..ldm_instances).map(|i| (BlockKind::Ldm, i)));
        }
        Self { threads: vec![blocks] }
    }

    /// Control in the first thread, every other block where `choose` says, of so many threads.
    pub fn spread(
        tc_instances: u32,
        ldm_instances: u32,
        threads: usize,
        mut choose: impl FnMut(usize) -> usize,
    ) -> Self {
        let mut all = Self::single(false, 0, 0).threads;
        all.resize(threads.max(1), Vec::new());
        let blocks = (0..tc_instances).map(|i| (BlockKind::Tc, i));
        for block in blocks.chain((0..ldm_instances).map(|i| (BlockKind::Ldm, i))) {
            let thread = choose(all.len()) % all.len();
            all[thread].push(block);
        }
        Self { threads: all }
    }

    /// Lets these threads read beside the data managers of others.
    pub fn with_queries(mut self, threads: impl IntoIterator<Item = usize>) -> Self {
        let ldms: Vec<(usize, u32)> = self
            .threads
            .iter()
            .enumerate()
            .flat_map(|(thread, blocks)| blocks.iter().map(move |block| (thread, *block)))
            .filter_map(|(thread, (kind, at))| (kind == BlockKind::Ldm).then_some((thread, at)))
            .collect();
        for thread in threads {
            let others = ldms.iter().filter(|(home, _)| *home != thread);
            let queries = others.map(|(_, instance)| (BlockKind::Query, *instance));
            self.threads[thread].extend(queries);
        }
        self
    }

    /// The threads that read beside this data manager.
    pub fn queries_of(&self, instance: u32) -> impl Iterator<Item = usize> {
        let query = (BlockKind::Query, instance);
        (0..self.threads.len()).filter(move |at| self.threads[*at].contains(&query))
    }

    /// The thread of a block; none for the shell and for clients, whose connections belong to threads that read sockets.
    pub fn thread_of(&self, receiver: BlockRef) -> Option<usize> {
        let kind = receiver.kind()?;
        self.threads.iter().position(|blocks| blocks.contains(&(kind, receiver.instance)))
    }
}

/// True if a signal to a data manager may be served by those who read beside it. What they leave to it they send on
/// themselves: that is for none of them (QUERY-3).
pub fn may_be_served_beside(signal: &Signal<'_>) -> bool {
    let sender = signal.sender();
    let left =
        sender.kind() == Some(BlockKind::Query) && sender.node == signal.header.receiver.node;
    signal.header.receiver.kind() == Some(BlockKind::Ldm) && !left && Ldm::may_serve_beside(signal)
}

/// The connection that a signal from one node to another takes (THREAD-5), where faults are armed.
pub fn lane(signal: &Signal<'_>, faults: &Faults) -> Lane {
    if faults.is_armed(Fault::BugHeartbeatsBehindData) { Lane::Data } else { Lane::of(signal) }
}

/// Builds a node: an executor for each thread of the placement.
pub fn build(config: &NodeConfig) -> Vec<Executor> {
    let identity = Identity { node: config.node, incarnation: config.incarnation };
    let data_blocks: Vec<BlockRef> = config
        .placement
        .threads
        .iter()
        .flatten()
        .filter(|(kind, _)| matches!(kind, BlockKind::Tc | BlockKind::Ldm))
        .map(|(kind, instance)| BlockRef::new(config.node, *kind, *instance))
        .collect();
    let ldm = LdmConfig {
        memory_bytes: config.memory_bytes / config.ldm_instances.max(1) as usize,
        slices: config.slices,
        redo: config.redo.map(|files| RedoConfig {
            cluster: files.cluster,
            node: config.node,
            life: config.incarnation,
            segment_bytes: files.segment_bytes,
            waiting_bytes_max: files.waiting_bytes_max,
        }),
        outcome_kept: config.outcome_kept,
    };
    // Only what is read by others pays for it.
    let shared: BTreeMap<u32, (Shared<Ldm>, Inbox)> = config
        .placement
        .threads
        .iter()
        .flatten()
        .filter(|(kind, _)| *kind == BlockKind::Query)
        .map(|(_, instance)| {
            let mut shared = Ldm::new(*instance, ldm);
            shared.share();
            (*instance, (Shared::new(shared), Inbox::new()))
        })
        .collect();
    let mut executors = Vec::new();
    for (thread, blocks) in config.placement.threads.iter().enumerate() {
        let seed = config.seed.wrapping_add(thread as u64);
        let mut executor = Executor::new(identity, seed, config.faults.clone());
        for (kind, instance) in blocks {
            match kind {
                BlockKind::Control => {
                    let (node, life) = (config.node, config.incarnation);
                    let start = config.start.clone();
                    let kept = config.redo.filter(|_| config.holds_data).map(|r| r.cluster);
                    let control = Control::new(node, life, start, data_blocks.clone(), kept);
                    executor.add(*kind, *instance, Box::new(control));
                }
                BlockKind::Tc => executor.add(*kind, *instance, Box::new(Tc::new())),
                BlockKind::Ldm => executor.add(*kind, *instance, owner(*instance, ldm, &shared)),
                BlockKind::Query => {
                    let Some((ldm, begun)) = shared.get(instance).cloned() else { continue };
                    let reader = Reader::default();
                    let query = Query { ldm, begun, instance: *instance, reader };
                    executor.add(*kind, *instance, Box::new(query));
                }
                BlockKind::Shell | BlockKind::Client | BlockKind::Io => {}
            }
        }
        executors.push(executor);
    }
    executors
}

fn owner(
    instance: u32,
    config: LdmConfig,
    shared: &BTreeMap<u32, (Shared<Ldm>, Inbox)>,
) -> Box<dyn Block> {
    match shared.get(&instance).cloned() {
        Some((ldm, begun)) => Box::new(Owner { ldm, begun, reader: Reader::default() }),
        None => Box::new(Ldm::new(instance, config)),
    }
}
