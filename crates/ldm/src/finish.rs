//! The participant's part of decide, commit, complete and abort (COMMIT-3 to COMMIT-5): what it is
//! told, and what it answers. The work itself is in `ending.rs`.

use crate::{
    Ldm, OUTCOMES_MAX,
    ending::{Answer, Goal, taken_back},
    transaction::{Op, Transaction},
};
use lats_base::{Epoch, Incarnation, NodeId, RefCode, require};
use lats_kernel::{Ctx, Fault};
use lats_signals::{
    Signal,
    commit::{
        ABORT_AS_BACKUP, AbortReq, CANCEL_WAIT, CHANGES_UNKNOWN, CommitConf, CommitReq,
        CompleteConf, CompleteEntry, CompleteOrd, DecideConf, DecideReq, OUTCOME_ABORTED,
        OUTCOME_COMMITTED, OUTCOME_FORGOTTEN, OUTCOME_HIDDEN, OUTCOME_PENDING, OutcomeFindConf,
        OutcomeFindReq, is_remembered,
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
        let remembered_ms = self.remembered_ms(ctx);
        let none = (Epoch::default(), CHANGES_UNKNOWN);
        let (outcome, (epoch, changes)) = match self.transactions.get(&req.transaction) {
            Some(t) if self.hides_rows_of(t, ctx.node()) => (OUTCOME_HIDDEN, none),
            Some(Transaction { committed: true, decided: Some(epoch), changes, .. }) => {
                (OUTCOME_COMMITTED, (*epoch, changes.unwrap_or(CHANGES_UNKNOWN)))
            }
            Some(_) => (OUTCOME_PENDING, none),
            None => match self.outcomes.find(req.transaction) {
                Some(known) => (OUTCOME_COMMITTED, known),
                None => (self.say_that_it_never_was(&req, remembered_ms, ctx), none),
            },
        };
        let conf = OutcomeFindConf {
            transaction: req.transaction,
            request: req.request,
            epoch,
            outcome,
            remembered_ms: u32::try_from(remembered_ms).unwrap_or(u32::MAX),
            changes,
            reserved: 0,
        };
        ctx.send(signal.sender(), &conf);
    }

    /// OUTCOME-8: how far back it knows all outcomes.
    fn remembered_ms(&self, ctx: &mut Ctx<'_>) -> u64 {
        if ctx.fault(Fault::BugForgetAge) {
            return u64::from(u32::MAX);
        }
        self.outcomes.remembered(ctx.now(), self.config.outcome_kept).as_millis()
    }

    /// OUTCOME-8: nothing is known of the transaction, which proves nothing if it is too old. Who is being filled does not count:
    /// others of its group know more.
    fn say_that_it_never_was(
        &mut self,
        req: &OutcomeFindReq,
        remembered_ms: u64,
        ctx: &Ctx<'_>,
    ) -> u32 {
        let counts = self.view.is_in_sync(ctx.node());
        let is_old = counts && !is_remembered(req.age_ms, remembered_ms);
        // OUTCOME-2: it must stay that way (OUTCOME-7).
        if is_old || !self.outcomes.refuse(req.transaction, ctx.now(), OUTCOMES_MAX) {
            return OUTCOME_FORGOTTEN;
        }
        OUTCOME_ABORTED
    }

    /// OUTCOME-5: true if this node is primary of changes that nobody else sees yet.
    fn hides_rows_of(&self, t: &Transaction, me: NodeId) -> bool {
        let hidden =
            |op: &Op| op.version != 0 && !op.of_index && self.view.primary(op.fragment) == Some(me);
        t.ops.iter().any(hidden)
    }
}
