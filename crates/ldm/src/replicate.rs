//! The backup's part of prepare: keep the primary's row images as tentative versions (COMMIT-2),
//! or as decided ones if they carry the decision (`carry.rs`).

use crate::{
    Ldm,
    fragment::Fragment,
    row::Version,
    transaction::{Op, Transaction},
};
use alloc::{collections::BTreeSet, vec::Vec};
use lats_base::{
    Epoch, Incarnation, RowId, TableId, TransactionId, ViewNumber, hash::partition_hash, require,
};
use lats_kernel::{Ctx, Fault};
use lats_signals::{
    BlockRef, Signal,
    commit::{ReplicateConf, ReplicateReq},
    list::{self, Change},
};
use lats_values::RowLayout;

impl Ldm {
    pub(crate) fn on_replicate_req(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let req = signal.body::<ReplicateReq>();
        let newest = list::items::<Change>(signal.payload()).map(|(c, _)| c.table).max();
        let life = Incarnation::new(req.coordinator_incarnation);
        let sender = (req.transaction, req.coordinator, life);
        if !self.takes_part(sender, (req.view, newest), signal) {
            return;
        }
        self.stir_at_the_end(ctx);
        self.hear_carried(&req, ctx);
        let mut forgets = ctx.fault(Fault::BugForgetTentativeRow);
        for (change, [key, row, _]) in list::items::<Change>(signal.payload()) {
            if !core::mem::take(&mut forgets) {
                self.hold((req.transaction, req.statement), &change, [key, row], false, ctx);
            }
        }
        if ctx.crash_point(Fault::CrashAfterReplicate) {
            return;
        }
        let conf = ReplicateConf { transaction: req.transaction, batch: req.batch, reserved: 0 };
        ctx.send(req.coordinator, &conf);
    }

    /// True if changes of the transaction can be held here now: else they are parked, or too late.
    pub(crate) fn takes_part(
        &mut self,
        (id, coordinator, life): (TransactionId, BlockRef, Incarnation),
        (view, newest): (ViewNumber, Option<TableId>),
        signal: &Signal<'_>,
    ) -> bool {
        if self.park_newer(view, signal)
            || newest.is_some_and(|table| self.park_unknown_table(table, signal))
        {
            return false;
        }
        // TAKEOVER-3: this replica has reported what it held of a dead coordinator's transactions. This
        // one was not fully prepared, so it cannot have been decided.
        let alive = self.view.is_alive(coordinator.node, life);
        if alive {
            let ops = &mut self.spare_ops;
            self.transactions
                .get_or_insert_with(id, || Transaction::new(coordinator, life, ops.take()));
        }
        alive
    }

    /// Puts one row image on its row's stack; one that is `adopted`, below newer ones that may be there.
    pub(crate) fn hold(
        &mut self,
        (id, statement): (TransactionId, u32),
        change: &Change,
        [key, row]: [&[u8]; 2],
        adopted: bool,
        ctx: &mut Ctx<'_>,
    ) {
        let number = change.version;
        let version = Version { transaction: id, number, statement, image: None, replicated: true };
        let (table, fragment, row_id) = (change.table, change.fragment, change.row_id);
        let put = |f: &mut Fragment, mut version: Version, layout: &RowLayout| {
            version.image = (change.deleted == 0).then(|| f.image_of(row_id, row));
            match adopted {
                true => f.insert_version(row_id, version, layout),
                false => f.push_version(row_id, version, layout),
            }
        };
        let mut of_index = false;
        let held = self.on_fragment(table, fragment, |f, layout| {
            of_index = f.of_index;
            let row = f.row(row_id);
            if row.is_some_and(|r| r.holds_version(&version)) {
                return Held::Known;
            }
            let below = row.and_then(|r| r.pending().last()).filter(|v| v.transaction != id);
            let below = below.map(|v| (v.transaction, v.is_passed_by(change)));
            if !f.make_room(row_id, key) {
                return Held::InTheWay(version);
            }
            put(f, version, layout);
            Held::New(below.filter(|_| !adopted))
        });
        match held {
            Some(Held::New(Some(below))) => self.look_below(change, below, ctx),
            Some(Held::New(None)) => {}
            // REJOIN-3: what is older than this change is taken first, or it might come back behind it.
            Some(Held::InTheWay(_)) if !self.arrived.is_empty() => {
                while self.take_arrived(ctx) {}
                return self.hold((id, statement), change, [key, row], adopted, ctx);
            }
            Some(Held::InTheWay(version)) => {
                self.clear_the_way(change, key);
                self.on_fragment(table, fragment, |f, layout| put(f, version, layout));
            }
            // Or its table was dropped meanwhile, and nobody misses it.
            Some(Held::Known) | None => return,
        }
        self.counters.replicated += 1;
        if let Some(t) = self.transactions.get_mut(&id) {
            let row = row_id;
            let op =
                Op { table, fragment, of_index, settled: false, row, version: number, statement };
            t.ops.push_back(op);
        }
    }

    /// CARRY-7: what is known now of the transaction whose version this change stands above.
    fn look_below(
        &mut self,
        change: &Change,
        (below, passed): (TransactionId, bool),
        ctx: &mut Ctx<'_>,
    ) {
        let passed = passed && !ctx.fault(Fault::BugLosePassedPart);
        let carried = self.transactions.get(&below).is_some_and(|t| t.carry.is_some());
        if carried && self.judge(below, passed) {
            self.on_fragment(change.table, change.fragment, |f, layout| {
                f.drop_versions_of(change.row_id, below, layout);
            });
        }
    }

    /// Another row has the id, or another id has the key: makes a record all the same. What is undecided here
    /// never happened (FAIL-5). The rest must have been deleted at the primary, whose completion has not
    /// reached us yet: a newer image for the same id or key proves that it committed (COMMIT-6).
    fn clear_the_way(&mut self, change: &Change, key: &[u8]) {
        let Some(fragment) = self.fragment(change.table, change.fragment) else { return };
        let in_the_way: BTreeSet<RowId> =
            fragment.find(key).into_iter().chain([change.row_id]).collect();
        let rows = in_the_way.iter().filter_map(|id| Some((*id, fragment.row(*id)?)));
        let pending = rows.flat_map(|(id, row)| {
            let deleted = row.pending().last().is_some_and(|top| top.image.is_none());
            row.pending().iter().map(move |v| (id, v.transaction, deleted))
        });
        let pending: BTreeSet<(RowId, TransactionId, bool)> = pending.collect();
        let lost = |(_, id, deleted): &(RowId, TransactionId, bool)| self.judge(*id, *deleted);
        let lost: Vec<(RowId, TransactionId, bool)> = pending.into_iter().filter(lost).collect();
        let now = self.epoch;
        let (table, fragment) = (change.table, change.fragment);
        self.on_fragment(table, fragment, |f, layout| {
            lost.iter().for_each(|(row, id, _)| f.drop_versions_of(*row, *id, layout));
        });
        in_the_way.iter().for_each(|id| self.keep_for_redo((table, fragment, *id), |_| true));
        self.on_fragment(table, fragment, |f, layout| {
            in_the_way.iter().for_each(|id| f.settle_deleted(*id, now, layout));
            f.create_at(change.row_id, key);
        });
    }
}

/// What became of a change that is to be held.
enum Held {
    /// It is there now; above another transaction's version, which the primary had or had not.
    New(Option<(TransactionId, bool)>),
    /// It was there already. REJOIN-5: a batch that waits in the middle may have been adopted that far.
    Known,
    /// There is another row where it belongs.
    InTheWay(Version),
}

impl Version {
    /// CARRY-7: true if the primary had this version when it made the change above it: the row's newest one then,
    /// or its deletion, of which no number is left.
    fn is_passed_by(&self, change: &Change) -> bool {
        self.number == change.over || (change.over == 0 && self.image.is_none())
    }
}

impl Fragment {
    /// Makes sure that there is a record for the key at the id that the primary chose; false if another row
    /// is in the way.
    pub(crate) fn make_room(&mut self, id: RowId, key: &[u8]) -> bool {
        let hash = partition_hash(key);
        match self.row(id) {
            Some(row) => return *row.key == *key,
            None if self.find_hashed(key, hash).is_some() => return false,
            None => {}
        }
        self.put_row(id, key, hash);
        true
    }

    fn settle_deleted(&mut self, id: RowId, now: Epoch, layout: &RowLayout) {
        let numbers: Vec<u64> = self
            .row(id)
            .map(|r| r.pending().iter().map(|v| v.number).collect())
            .unwrap_or_default();
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
