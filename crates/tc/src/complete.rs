//! Completions: participants hear lazily, and of many at once, that transactions are committed everywhere
//! (COMMIT-5); and how far all of them have heard (CARRY-5).

use crate::Tc;
use alloc::{
    collections::{BTreeMap, BTreeSet},
    vec::Vec,
};
use lats_base::NodeId;
use lats_kernel::{Ctx, Fault};
use lats_signals::{
    BlockRef, Signal,
    commit::{CompleteConf, CompleteEntry, CompleteOrd},
};
use zerocopy::IntoBytes;

/// Completions on their way to participants.
#[derive(Debug, Default)]
pub(crate) struct Completions {
    queues: BTreeMap<BlockRef, Queue>,
    /// Grows when all queues have been sent: by then every participant of a transaction has been told.
    generation: u64,
    /// How many orders of a generation a participant is still to confirm.
    unconfirmed: BTreeMap<(u64, BlockRef), u32>,
}

/// What has not been sent to a participant yet.
#[derive(Debug, Default)]
struct Queue {
    entries: Vec<u8>,
    /// One of them has to be heard of by everyone.
    asks: bool,
}

/// Completions wait for company no longer than the executor is busy, and never above this.
const COMPLETION_BYTES_MAX: usize = 32 << 10;

impl Completions {
    /// True if nobody is to hear or to confirm anything.
    pub(crate) fn is_empty(&self) -> bool {
        self.queues.is_empty() && self.unconfirmed.is_empty()
    }

    pub(crate) fn lose_nodes(&mut self, dead: &BTreeSet<NodeId>) {
        self.queues.retain(|to, _| !dead.contains(&to.node));
        self.unconfirmed.retain(|(_, to), _| !dead.contains(&to.node));
    }

    /// CARRY-5: all participants have confirmed the generations below this one.
    fn settled_below(&self) -> u64 {
        self.unconfirmed.first_key_value().map_or(self.generation, |((first, _), _)| *first)
    }

    fn send(&mut self, to: BlockRef, queue: &Queue, ctx: &mut Ctx<'_>) {
        if queue.asks {
            *self.unconfirmed.entry((self.generation, to)).or_default() += 1;
        }
        let body = CompleteOrd {
            generation: self.generation,
            settled_below: self.settled_below(),
            asks: u32::from(queue.asks),
            reserved: 0,
        };
        ctx.send_with(to, &body, &[&queue.entries]);
    }
}

impl Tc {
    /// Queues the news that a transaction is committed everywhere. `asks`: as long as one participant has not
    /// heard it, the others have to remember (CARRY-5).
    pub(crate) fn queue_completion(
        &mut self,
        participant: BlockRef,
        (entry, asks): (&CompleteEntry, bool),
        ctx: &mut Ctx<'_>,
    ) {
        let room = &mut self.spare_lists;
        let queue = self.completions.queues.entry(participant);
        let queue = queue.or_insert_with(|| Queue { entries: room.take(), asks: false });
        queue.entries.extend_from_slice(entry.as_bytes());
        queue.asks |= asks;
        if queue.entries.len() >= COMPLETION_BYTES_MAX {
            self.flush_completions(participant, ctx);
        }
    }

    /// Sends the completions of a participant without waiting for more.
    pub(crate) fn flush_completions(&mut self, participant: BlockRef, ctx: &mut Ctx<'_>) {
        if let Some(queue) = self.completions.queues.remove(&participant) {
            self.completions.send(participant, &queue, ctx);
            self.spare_lists.keep(queue.entries);
        }
    }

    pub(crate) fn flush_all_completions(&mut self, ctx: &mut Ctx<'_>) {
        while let Some((participant, queue)) = self.completions.queues.pop_first() {
            self.completions.send(participant, &queue, ctx);
            self.spare_lists.keep(queue.entries);
            if queue.asks && ctx.crash_point(Fault::CrashBetweenCompletions) {
                return;
            }
        }
        let newest = self.completions.unconfirmed.last_key_value().map(|((newest, _), _)| *newest);
        if newest == Some(self.completions.generation) {
            self.completions.generation += 1;
        }
    }

    pub(crate) fn on_complete_conf(&mut self, signal: &Signal<'_>) {
        let at = (signal.body::<CompleteConf>().generation, signal.sender());
        if let Some(left) = self.completions.unconfirmed.get_mut(&at) {
            *left -= 1;
            if *left == 0 {
                self.completions.unconfirmed.remove(&at);
            }
        }
    }
}
