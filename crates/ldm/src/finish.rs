//! The participant's part of decide, commit, complete and abort (COMMIT-3 to COMMIT-7).

use crate::{
    Ldm,
    transaction::{Op, Transaction},
};
use alloc::vec::Vec;
use lats_base::{Epoch, RefCode, TransactionId, require};
use lats_kernel::{Ctx, Fault};
use lats_signals::{
    Signal,
    commit::{
        ABORT_AS_BACKUP, AbortConf, AbortReq, CANCEL_WAIT, CommitConf, CommitReq, CompleteEntry,
        DecideConf, DecideReq, OUTCOME_ABORTED, OUTCOME_COMMITTED, OUTCOME_PENDING,
        OutcomeFindConf, OutcomeFindReq,
    },
};
use zerocopy::FromBytes;

impl Ldm {
    pub(crate) fn on_decide_req(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let req = signal.body::<DecideReq>();
        if self.park_newer(req.view, signal) {
            return;
        }
        self.hear_epoch(req.epoch);
        if let Some(t) = self.transactions.get_mut(&req.transaction) {
            t.decided = Some(req.epoch);
        }
        ctx.send(signal.sender(), &DecideConf { transaction: req.transaction });
    }

    pub(crate) fn on_commit_req(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let req = signal.body::<CommitReq>();
        if self.park_newer(req.view, signal) {
            return;
        }
        self.hear_epoch(req.epoch);
        if let Some(mut t) = self.transactions.remove(&req.transaction) {
            // EPOCH-5: as the primary that executed it; a promoted one may come late.
            require!(t.committed || !t.executed || req.epoch > self.complete, "EPOCH-5");
            t.decided = Some(req.epoch);
            t.committed = true;
            let node = ctx.node();
            // UNIQUE-5: entries of unique indexes wait until the rows are visible everywhere.
            let early = ctx.fault(Fault::BugShowIndexEarly);
            let (own, others): (Vec<Op>, Vec<Op>) = t.ops.iter().partition(|op| {
                self.view.primary(op.fragment) == Some(node) && (early || !self.is_index(op.table))
            });
            t.ops = others;
            self.transactions.insert(req.transaction, t);
            self.make_visible(req.transaction, &own, req.epoch, ctx);
        }
        ctx.send(signal.sender(), &CommitConf { transaction: req.transaction });
    }

    /// EPOCH-3: makes changes the committed ones, unlocks their rows and lets those go on who waited.
    fn make_visible(&mut self, id: TransactionId, ops: &[Op], epoch: Epoch, ctx: &mut Ctx<'_>) {
        for op in ops.iter().filter(|op| op.version != 0) {
            self.on_fragment(op.table, op.fragment, |f, layout| {
                f.commit_version(op.row, op.version, epoch, layout);
            });
        }
        self.unlock(id, ops, ctx);
    }

    fn unlock(&mut self, id: TransactionId, ops: &[Op], ctx: &mut Ctx<'_>) {
        let mut granted = Vec::new();
        for op in ops {
            self.on_fragment(op.table, op.fragment, |f, _| {
                let Some(row) = f.row_mut(op.row) else { return };
                let Some(lock) = row.lock.as_mut() else { return };
                lock.release(id);
                granted.extend(lock.grant_next());
                if lock.is_free() {
                    row.lock = None;
                }
                f.collect(op.row);
            });
        }
        granted.into_iter().for_each(|t| self.resume_batch(t, ctx));
    }

    pub(crate) fn on_complete_ord(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let mut rest = signal.payload();
        while let Ok((entry, behind)) = CompleteEntry::read_from_prefix(rest) {
            self.complete(&entry, ctx);
            rest = behind;
        }
    }

    fn complete(&mut self, entry: &CompleteEntry, ctx: &mut Ctx<'_>) {
        let id = entry.transaction;
        self.hear_epoch(entry.epoch);
        if let Some(t) = self.transactions.remove(&id) {
            self.make_visible(id, &t.ops, entry.epoch, ctx);
            self.outcomes.insert(id, (entry.epoch, ctx.now()));
        }
        let from = TransactionId { client: id.client, sequence: 0 };
        let below = TransactionId { client: id.client, sequence: entry.answered_below };
        while let Some((heard, _)) = self.outcomes.range(from..below).next() {
            let heard = *heard;
            self.outcomes.remove(&heard);
        }
    }

    pub(crate) fn on_abort_req(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let req = signal.body::<AbortReq>();
        if self.park_newer(req.view, signal) {
            return;
        }
        if req.from_statement == CANCEL_WAIT {
            return self.cancel_wait(req.transaction, RefCode::TransactionAborted, ctx);
        }
        if let Some(t) = self.transactions.remove(&req.transaction) {
            require!(t.decided.is_none(), "ABORT-4: what is decided stays");
            let id = req.transaction;
            if req.part == ABORT_AS_BACKUP {
                self.take_back_as_backup(id, t, req.from_statement, ctx);
            } else {
                self.take_back(id, t, req.from_statement, ctx);
            }
        }
        let conf = AbortConf {
            transaction: req.transaction,
            from_statement: req.from_statement,
            part: req.part,
        };
        ctx.send(signal.sender(), &conf);
    }

    /// Takes back what statements from `from` on changed in rows of which this node is a backup.
    fn take_back_as_backup(
        &mut self,
        id: TransactionId,
        mut t: Transaction,
        from: u32,
        ctx: &Ctx<'_>,
    ) {
        let node = ctx.node();
        let (gone, kept): (Vec<Op>, Vec<Op>) = t
            .ops
            .iter()
            .partition(|op| op.statement >= from && self.view.primary(op.fragment) != Some(node));
        self.drop_versions(&gone, from);
        t.ops = kept;
        if from > 0 || !t.ops.is_empty() {
            self.transactions.insert(id, t);
        }
    }

    /// Takes back what statements from `from` on changed; from 0: everything, with the locks.
    fn take_back(&mut self, id: TransactionId, mut t: Transaction, from: u32, ctx: &mut Ctx<'_>) {
        self.drop_versions(&t.ops, from);
        if from == 0 {
            return self.unlock(id, &t.ops, ctx);
        }
        // LOCK-5: locks stay until the end of the transaction.
        t.ops.iter_mut().filter(|op| op.statement >= from).for_each(|op| op.version = 0);
        self.transactions.insert(id, t);
    }

    fn drop_versions(&mut self, ops: &[Op], from: u32) {
        for op in ops.iter().rev().filter(|op| op.version != 0 && op.statement >= from) {
            self.on_fragment(op.table, op.fragment, |f, layout| {
                f.drop_version(op.row, op.version, layout);
            });
        }
    }

    pub(crate) fn on_outcome_find_req(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let req = signal.body::<OutcomeFindReq>();
        // OUTCOME-4: what comes from a node that the asker knows to be dead must not come any more.
        if self.park_newer(req.view, signal) {
            return;
        }
        let (outcome, epoch) = match self.transactions.get(&req.transaction) {
            Some(Transaction { committed: true, decided: Some(epoch), .. }) => {
                (OUTCOME_COMMITTED, *epoch)
            }
            Some(_) => (OUTCOME_PENDING, Epoch::default()),
            None => match self.outcomes.get(&req.transaction) {
                Some((epoch, _)) => (OUTCOME_COMMITTED, *epoch),
                None => {
                    // OUTCOME-2: it must stay that way.
                    self.refused.insert(req.transaction, ctx.now());
                    (OUTCOME_ABORTED, Epoch::default())
                }
            },
        };
        let conf = OutcomeFindConf {
            transaction: req.transaction,
            request: req.request,
            epoch,
            outcome,
            reserved: 0,
        };
        ctx.send(signal.sender(), &conf);
    }
}
