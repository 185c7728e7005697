//! The participant's part of decide, commit, complete and abort (COMMIT-3 to COMMIT-5): what it is
//! told, and what it answers. The work itself is in `ending.rs`.

use crate::{
    Ldm, OUTCOME_KEPT, OUTCOMES_MAX,
    ending::{Answer, Goal, taken_back},
    transaction::{Op, Transaction},
};
use lats_base::{Epoch, Incarnation, NodeId, RefCode, require};
use lats_kernel::Ctx;
use lats_signals::{
    Signal,
    commit::{
        ABORT_AS_BACKUP, AbortReq, CANCEL_WAIT, CommitConf, CommitReq, CompleteConf, CompleteEntry,
        CompleteOrd, DecideConf, DecideReq, OUTCOME_ABORTED, OUTCOME_COMMITTED, OUTCOME_HIDDEN,
        OUTCOME_PENDING, OutcomeFindConf, OutcomeFindReq,
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
        self.learn_epoch(req.transaction, req.epoch);
        if let Some(t) = self.transactions.get_mut(&req.transaction) {
            t.decided = Some(req.epoch);
            t.carry = None;
        }
        ctx.send(signal.sender(), &DecideConf { transaction: req.transaction });
    }

    pub(crate) fn on_commit_req(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let req = signal.body::<CommitReq>();
        if self.park_newer(req.view, signal) {
            return;
        }
        self.hear_epoch(req.epoch);
        self.learn_epoch(req.transaction, req.epoch);
        let Some(t) = self.transactions.get_mut(&req.transaction) else {
            let conf = CommitConf { transaction: req.transaction, view: req.view };
            return ctx.send(signal.sender(), &conf);
        };
        // EPOCH-5: as the primary that executed it; a promoted one may come late.
        require!(t.committed || !t.executed || req.epoch > self.complete, "EPOCH-5");
        t.decided = Some(req.epoch);
        t.committed = true;
        let answer = Answer { to: signal.sender(), view: req.view };
        self.end(req.transaction, Goal::Commit { answer }, ctx);
    }

    pub(crate) fn on_complete_ord(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let ord = signal.body::<CompleteOrd>();
        let coordinator = (signal.sender(), Incarnation::new(signal.header.incarnation));
        self.ended.settle(coordinator, ord.settled_below);
        let mut rest = signal.payload();
        while let Ok((entry, behind)) = CompleteEntry::read_from_prefix(rest) {
            if self.transactions.get(&entry.transaction).is_some_and(|t| t.carry.is_some()) {
                self.ended.note(coordinator, ord.generation, entry);
            }
            self.complete(&entry, ctx);
            rest = behind;
        }
        if ord.asks != 0 {
            ctx.send(signal.sender(), &CompleteConf { generation: ord.generation });
        }
        self.seal_what_was_held_back(ctx);
    }

    fn complete(&mut self, entry: &CompleteEntry, ctx: &mut Ctx<'_>) {
        let id = entry.transaction;
        self.hear_epoch(entry.epoch);
        self.learn_epoch(id, entry.epoch);
        if let Some(t) = self.transactions.get_mut(&id) {
            t.decided = Some(entry.epoch);
            t.committed = true;
            self.end(id, Goal::Complete, ctx);
        }
        self.outcomes.forget_heard(id.client, entry.answered_below);
    }

    pub(crate) fn on_abort_req(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let req = signal.body::<AbortReq>();
        if self.park_newer(req.view, signal) {
            return;
        }
        if req.from_statement == CANCEL_WAIT {
            return self.cancel_wait(req.transaction, RefCode::TransactionAborted, ctx);
        }
        let from = req.from_statement;
        let answer = Answer { to: signal.sender(), view: req.view };
        let as_backup = req.part == ABORT_AS_BACKUP;
        match self.transactions.get_mut(&req.transaction) {
            // The other one's end is not this one's.
            Some(Transaction { decided: Some(_), id_given_twice: true, .. }) => {
                ctx.send(answer.to, &taken_back(req.transaction, answer, from, as_backup));
            }
            Some(t) => {
                require!(t.decided.is_none(), "ABORT-4: what is decided stays");
                t.carry = None;
                self.end(req.transaction, Goal::TakeBack { answer, from, as_backup }, ctx);
            }
            None => ctx.send(answer.to, &taken_back(req.transaction, answer, from, as_backup)),
        }
    }

    pub(crate) fn on_outcome_find_req(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let req = signal.body::<OutcomeFindReq>();
        // OUTCOME-4: what comes from a node that the asker knows to be dead must not come any more.
        if self.park_newer(req.view, signal) {
            return;
        }
        let (outcome, epoch) = match self.transactions.get(&req.transaction) {
            Some(t) if self.hides_rows_of(t, ctx.node()) => (OUTCOME_HIDDEN, Epoch::default()),
            Some(Transaction { committed: true, decided: Some(epoch), .. }) => {
                (OUTCOME_COMMITTED, *epoch)
            }
            Some(_) => (OUTCOME_PENDING, Epoch::default()),
            None => match self.outcomes.epoch_of(req.transaction) {
                Some(epoch) => (OUTCOME_COMMITTED, epoch),
                // OUTCOME-7.
                None if self.may_have_forgotten(ctx) => (OUTCOME_PENDING, Epoch::default()),
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

    /// OUTCOME-7: true if "nothing known" could be wrong, or could not be kept true.
    fn may_have_forgotten(&self, ctx: &Ctx<'_>) -> bool {
        let lately = self.forgot_at.is_some_and(|at| ctx.now().since(at) < OUTCOME_KEPT);
        lately || self.refused.len() >= OUTCOMES_MAX
    }

    /// OUTCOME-5: true if this node is primary of changes that nobody else sees yet.
    fn hides_rows_of(&self, t: &Transaction, me: NodeId) -> bool {
        let hidden =
            |op: &Op| op.version != 0 && !op.of_index && self.view.primary(op.fragment) == Some(me);
        t.ops.iter().any(hidden)
    }
}
