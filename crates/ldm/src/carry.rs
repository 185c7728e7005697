//! Row images that carry the decision, from the backup's side: what it knows of transactions that are decided
//! when others hold their images, too (CARRY-4), and of those that have ended here but perhaps not everywhere
//! (CARRY-5). Protocol: `docs/protocols/commit.md`.

use crate::{
    Ldm,
    transaction::{Op, Transaction},
    view::heir_of,
};
use alloc::{
    collections::{BTreeMap, VecDeque},
    vec::Vec,
};
use lats_base::{Epoch, Incarnation, TransactionId};
use lats_catalog::View;
use lats_kernel::{Ctx, Fault};
use lats_signals::{
    BlockRef,
    commit::{
        Carry, CompleteEntry, ReplicateReq, TAKE_OVER_PREPARED, TakeOverEndedRep, TakeOverRep,
    },
};
use zerocopy::IntoBytes;

/// Decided transactions that have ended here, until all replicas have heard of the end (CARRY-5). Who does not
/// confirm completions is removed when its lease is over: there are never more than commit in that time.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    by_coordinator: BTreeMap<(BlockRef, Incarnation), EndedOf>,
}

/// Those of one coordinator.
#[derive(Debug, Default)]
struct EndedOf {
    /// In the order of their generations.
    transactions: VecDeque<(u64, CompleteEntry)>,
    /// The coordinator is dead: when this epoch is complete its transactions have been inherited (EPOCH-4).
    needed_until: Option<Epoch>,
}

/// Entries that one signal brings to an heir.
const ENDED_PER_SIGNAL: usize = 1_000;

impl Ended {
    pub(crate) fn note(
        &mut self,
        coordinator: (BlockRef, Incarnation),
        generation: u64,
        entry: CompleteEntry,
    ) {
        let of = self.by_coordinator.entry(coordinator).or_default();
        of.transactions.push_back((generation, entry));
    }

    /// Everyone has heard of the end of what came before this generation.
    pub(crate) fn settle(&mut self, coordinator: (BlockRef, Incarnation), below: u64) {
        let Some(of) = self.by_coordinator.get_mut(&coordinator) else { return };
        while of.transactions.front().is_some_and(|(generation, _)| *generation < below) {
            of.transactions.pop_front();
        }
    }

    /// Forgets those of dead coordinators whose transactions have been inherited.
    pub(crate) fn forget_inherited(&mut self, complete: Epoch) {
        self.by_coordinator.retain(|_, of| of.needed_until.is_none_or(|until| complete < until));
    }

    /// Those of dead coordinators, by heir.
    fn of_the_dead(&mut self, view: &View, now: Epoch) -> BTreeMap<BlockRef, Vec<CompleteEntry>> {
        let mut by_heir: BTreeMap<BlockRef, Vec<CompleteEntry>> = BTreeMap::new();
        for ((coordinator, life), of) in &mut self.by_coordinator {
            if view.is_alive(coordinator.node, *life) {
                continue;
            }
            of.needed_until.get_or_insert(Epoch::new(now.get() + 1));
            for (_, entry) in &of.transactions {
                if let Some(heir) = heir_of(entry.transaction, view) {
                    by_heir.entry(heir).or_default().push(*entry);
                }
            }
        }
        by_heir
    }
}

impl Ldm {
    /// CARRY-2: the images are the last ones of this part of the transaction. Whoever is their only receiver, of
    /// the only part, knows that it is decided; else this takes all of them (CARRY-4).
    pub(crate) fn hear_carried(&mut self, req: &ReplicateReq, ctx: &mut Ctx<'_>) {
        let carry = req.carry;
        if carry.epoch == Epoch::default() || ctx.fault(Fault::BugDropCarriedDecision) {
            return;
        }
        self.hear_epoch(carry.epoch);
        let Some(t) = self.transactions.get_mut(&req.transaction) else { return };
        if carry.parts == 1 && carry.receivers.len() == 1 {
            t.decided = Some(carry.epoch);
        } else {
            t.carry = Some(carry);
        }
    }

    /// CARRY-2: true if the transaction holds a row here that it has not changed.
    pub(crate) fn only_locks(&self, id: TransactionId, t: &Transaction) -> bool {
        let changed = |op: &Op| {
            let row = self.fragment(op.table, op.fragment).and_then(|f| f.row(op.row));
            row.is_some_and(|row| row.pending().iter().any(|v| v.transaction == id))
        };
        !t.ops.iter().filter(|op| op.version == 0).all(changed)
    }

    /// True if this replica knows that the transaction was committed nowhere (COMMIT-4, CARRY-7), should one of
    /// its versions stand below another one.
    pub(crate) fn is_undecided(&self, id: TransactionId) -> bool {
        let undecided = |t: &Transaction| t.decided.is_none() && !t.committed && !t.proven;
        self.transactions.get(&id).is_some_and(undecided)
    }

    /// CARRY-7: a primary has sent a change that stands above a version of the transaction, or in its place. If it
    /// had the version, the transaction has been committed. Else it never will be (FAIL-5): true then, and the
    /// version must go.
    pub(crate) fn judge(&mut self, id: TransactionId, primary_had_it: bool) -> bool {
        if !self.is_undecided(id) {
            return false;
        }
        let Some(t) = self.transactions.get_mut(&id) else { return false };
        t.proven = primary_had_it && t.carry.is_some();
        let lost = !t.proven;
        if lost {
            self.lose_part(id);
        }
        lost
    }

    /// FAIL-5: some image of the transaction is no more; so it must not be taken for one that is held here.
    pub(crate) fn lose_part(&mut self, id: TransactionId) {
        let Some(t) = self.transactions.get_mut(&id) else { return };
        if t.carry.take().is_some() {
            self.lost_parts.push(id);
        }
    }

    /// The epoch of a decided transaction is known for sure. If a part of it was made visible before that, no
    /// snapshot up to it is right.
    pub(crate) fn learn_epoch(&mut self, id: TransactionId, epoch: Epoch) {
        if !self.shown_early.remove(&id) {
            return;
        }
        let ops = self.transactions.get(&id).map(|t| t.ops.clone()).unwrap_or_default();
        for op in ops {
            if let Some(fragment) = self.fragment_mut(op.table, op.fragment) {
                fragment.snapshot_floor = fragment.snapshot_floor.max(epoch);
                fragment.changed = fragment.changed.max(epoch);
            }
        }
    }

    /// Tells the heirs what has been lost since they were told that it is held here.
    pub(crate) fn report_lost_parts(&mut self, ctx: &mut Ctx<'_>) {
        for transaction in core::mem::take(&mut self.lost_parts) {
            if !self.is_undecided(transaction) {
                continue;
            }
            let Some(t) = self.transactions.get(&transaction) else { continue };
            let body = TakeOverRep {
                transaction,
                epoch: Epoch::default(),
                view: self.view.number,
                carry: Carry::default(),
                state: TAKE_OVER_PREPARED,
                reserved: 0,
            };
            ctx.send(t.coordinator, &body);
        }
    }

    /// CARRY-5: what has ended here may be open elsewhere, and only we know how it ended.
    pub(crate) fn report_ended(&mut self, ctx: &mut Ctx<'_>) {
        let by_heir = self.ended.of_the_dead(&self.view, self.epoch);
        if ctx.fault(Fault::BugForgetEnded) {
            return;
        }
        let body = TakeOverEndedRep { view: self.view.number };
        for (heir, entries) in by_heir {
            for part in entries.chunks(ENDED_PER_SIGNAL) {
                ctx.send_with(heir, &body, &[part.as_bytes()]);
            }
        }
    }
}
