//! The backup's part of prepare: keep the primary's row images as tentative versions (COMMIT-2),
//! or as decided ones if they carry the decision (CARRY-2).

use crate::{
    Ldm,
    fragment::Fragment,
    fragment::Version,
    transaction::{Op, Transaction},
};
use alloc::{boxed::Box, vec::Vec};
use lats_base::{Epoch, Incarnation, RowId, TransactionId, require};
use lats_kernel::{Ctx, Fault};
use lats_signals::{
    Signal,
    commit::{ReplicateConf, ReplicateReq},
    list::{self, Change},
};
use lats_values::RowLayout;

impl Ldm {
    pub(crate) fn on_replicate_req(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let req = signal.body::<ReplicateReq>();
        if self.park_newer(req.view, signal) {
            return;
        }
        let newest = list::items::<Change>(signal.payload()).map(|(c, _)| c.table).max();
        if newest.is_some_and(|table| self.park_unknown_table(table, signal)) {
            return;
        }
        let life = Incarnation::new(req.coordinator_incarnation);
        if !self.view.is_alive(req.coordinator.node, life) {
            // TAKEOVER-3: this replica has reported what it held of the dead coordinator's
            // transactions. This one was not fully prepared, so it cannot have been decided.
            return;
        }
        self.transactions
            .entry(req.transaction)
            .or_insert_with(|| Transaction::new(req.coordinator, life));
        self.hear_decision(&req, ctx);
        let mut forgets = ctx.fault(Fault::BugForgetTentativeRow);
        for (change, [key, row, _]) in list::items::<Change>(signal.payload()) {
            if !core::mem::take(&mut forgets) {
                self.hold(&req, &change, key, row);
            }
        }
        if ctx.crash_point(Fault::CrashAfterReplicate) {
            return;
        }
        let conf = ReplicateConf { transaction: req.transaction, batch: req.batch, reserved: 0 };
        ctx.send(req.coordinator, &conf);
    }

    /// CARRY-2: these images are the transaction's last ones, and this is the only backup.
    fn hear_decision(&mut self, req: &ReplicateReq, ctx: &mut Ctx<'_>) {
        if req.decided == Epoch::default() || ctx.fault(Fault::BugDropCarriedDecision) {
            return;
        }
        self.hear_epoch(req.decided);
        if let Some(t) = self.transactions.get_mut(&req.transaction) {
            t.decided = Some(req.decided);
        }
    }

    /// FAIL-5: versions of undecided transactions where another row is to be. What this replica has not heard
    /// decided was committed nowhere (COMMIT-4); a new primary that never got it may give the row's id, or
    /// its key another one.
    fn undecided_in_the_way(&self, change: &Change, key: &[u8]) -> Vec<(RowId, u64)> {
        let Some(fragment) = self.fragment(change.table, change.fragment) else {
            return Vec::new();
        };
        let other_key = fragment.row(change.row_id).filter(|r| *r.key != *key);
        if other_key.is_none() && fragment.row(change.row_id).is_some() {
            return Vec::new();
        }
        let other_id = fragment.find(key).filter(|id| *id != change.row_id);
        let rows = other_key.map(|_| change.row_id).into_iter().chain(other_id);
        rows.filter_map(|id| Some((id, fragment.row(id)?)))
            .flat_map(|(id, row)| row.pending.iter().map(move |v| (id, v)))
            .filter(|(_, v)| self.is_undecided(v.transaction))
            .map(|(id, v)| (id, v.number))
            .collect()
    }

    /// True if this replica does not know that the transaction commits.
    pub(crate) fn is_undecided(&self, id: TransactionId) -> bool {
        self.transactions.get(&id).is_some_and(|t| t.decided.is_none() && !t.committed)
    }

    /// Puts one row image on its row's stack.
    fn hold(&mut self, req: &ReplicateReq, change: &Change, key: &[u8], row: &[u8]) {
        self.counters.replicated += 1;
        let image: Option<Box<[u8]>> = (change.deleted == 0).then(|| row.into());
        let version = Version {
            transaction: req.transaction,
            number: change.version,
            statement: req.statement,
            image,
            replicated: true,
        };
        let now = self.epoch;
        let lost = self.undecided_in_the_way(change, key);
        let held = self.on_fragment(change.table, change.fragment, |f, layout| {
            // REJOIN-5: a batch that waits in the middle may have been adopted that far.
            let known = f.row(change.row_id).is_some_and(|r| r.holds_version(&version));
            if !known {
                f.drop_lost(&lost, layout);
                f.place(change.row_id, key, now, layout);
                f.push_version(change.row_id, version, layout);
            }
            !known
        });
        // A table that was dropped meanwhile: the change has nowhere to go and nobody to miss it.
        if held != Some(true) {
            return;
        }
        let of_index = self.is_index(change.table);
        if let Some(t) = self.transactions.get_mut(&req.transaction) {
            t.ops.push_back(Op {
                table: change.table,
                fragment: change.fragment,
                of_index,
                row: change.row_id,
                version: change.version,
                statement: req.statement,
            });
        }
    }
}

impl Fragment {
    /// They never happened (FAIL-5).
    fn drop_lost(&mut self, lost: &[(RowId, u64)], layout: &RowLayout) {
        lost.iter().for_each(|(id, number)| self.drop_version(*id, *number, layout));
    }

    /// Makes a record for the key at the id that the primary chose. What else is there must have
    /// been deleted at the primary, whose completion has not reached us yet: a newer image for the
    /// same id or key proves that it committed (COMMIT-6).
    pub(crate) fn place(&mut self, id: RowId, key: &[u8], now: Epoch, layout: &RowLayout) {
        let at_id = self.row(id).map(|r| *r.key == *key);
        if at_id == Some(true) {
            return;
        }
        if at_id == Some(false) {
            self.settle_deleted(id, now, layout);
        }
        if let Some(other) = self.find(key) {
            self.settle_deleted(other, now, layout);
        }
        self.create_at(id, key);
    }

    fn settle_deleted(&mut self, id: RowId, now: Epoch, layout: &RowLayout) {
        let numbers: Vec<u64> =
            self.row(id).map(|r| r.pending.iter().map(|v| v.number).collect()).unwrap_or_default();
        if let Some(newest) = numbers.last() {
            // ABORT-3: it was not rolled back, or the backups would have heard so first.
            self.commit_version(id, *newest, now, layout, false);
        }
        let gone = self.row(id).is_none_or(|r| r.committed.is_none());
        require!(gone, "row {id} gives way to a newer one without having been deleted");
        // SNAP-3: whatever snapshots could see of it is lost here.
        self.snapshot_floor = self.snapshot_floor.max(now);
        self.release(id, Epoch::new(u64::MAX), layout);
        let syncing = core::mem::take(&mut self.syncing);
        self.collect(id);
        self.syncing = syncing;
    }
}
