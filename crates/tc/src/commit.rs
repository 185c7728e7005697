//! Decide, commit, complete (COMMIT-3 to COMMIT-5).

use crate::{
    Tc,
    transaction::{Receivers, State},
};
use lats_base::{TransactionId, require};
use lats_kernel::{Ctx, Fault};
use lats_signals::{
    Signal,
    commit::{CommitConf, CommitReq, CompleteEntry, DecideConf, DecideReq},
};

impl Tc {
    /// COMMIT-3: all is prepared everywhere; from here on the outcome is "committed".
    pub(crate) fn decide(&mut self, id: TransactionId, ctx: &mut Ctx<'_>) {
        let early = ctx.fault(Fault::BugAnswerEarly);
        let (view, epoch) = (self.view.number, self.epochs.current);
        let Some(t) = self.transactions.get_mut(&id) else { return };
        require!(t.batches.is_empty());
        // EPOCH-2: the largest of the coordinator's, the participants' and the client's.
        t.epoch = t.epoch.max(epoch);
        t.state = State::Deciding;
        t.waiting = t.participants.iter().filter(|(_, p)| p.backup).map(|(at, _)| *at).collect();
        let body = DecideReq { transaction: id, epoch: t.epoch, view };
        t.waiting.iter().for_each(|to| ctx.send(*to, &body));
        self.count_decided(id, ctx);
        if early {
            self.answer(id, true, ctx);
        }
        if ctx.crash_point(Fault::CrashAfterDecide) {
            return;
        }
        self.when_decided(id, ctx);
    }

    pub(crate) fn on_decide_conf(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let id = signal.body::<DecideConf>().transaction;
        let Some(t) = self.transactions.get_mut(&id) else { return };
        if t.state == State::Deciding {
            t.waiting.remove(&signal.sender());
            self.when_decided(id, ctx);
        }
    }

    /// COMMIT-4: every backup has confirmed the decision; now rows may be seen.
    pub(crate) fn when_decided(&mut self, id: TransactionId, ctx: &mut Ctx<'_>) {
        let Some(t) = self.transactions.get_mut(&id) else { return };
        if t.state != State::Deciding || !t.waiting.is_empty() || !t.batches.is_empty() {
            return;
        }
        if t.carry.decides() && ctx.crash_point(Fault::CrashAfterCarry) {
            return;
        }
        let Some(t) = self.transactions.get(&id) else { return };
        let primaries = t.participants.iter().filter(|(_, p)| p.primary).map(|(at, _)| *at);
        let primaries: Receivers = primaries.collect();
        self.send_commit(id, primaries, ctx);
    }

    /// Tells participants to make their rows visible. Those that have done so confirm again.
    pub(crate) fn send_commit(&mut self, id: TransactionId, to: Receivers, ctx: &mut Ctx<'_>) {
        let view = self.view.number;
        let Some(t) = self.transactions.get_mut(&id) else { return };
        t.state = State::Committing;
        t.order_view = view;
        t.waiting = to;
        let body = CommitReq { transaction: id, epoch: t.epoch, view };
        t.waiting.iter().for_each(|to| ctx.send(*to, &body));
        self.stop_waiting_for_the_silent(id, ctx);
        self.when_committed(id, ctx);
    }

    pub(crate) fn on_commit_conf(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let conf = signal.body::<CommitConf>();
        let Some(t) = self.transactions.get_mut(&conf.transaction) else { return };
        if t.state == State::Committing && conf.view == t.order_view {
            t.waiting.remove(&signal.sender());
            self.when_committed(conf.transaction, ctx);
        }
    }

    /// COMMIT-5: visible at all primaries: answer the client, complete lazily.
    pub(crate) fn when_committed(&mut self, id: TransactionId, ctx: &mut Ctx<'_>) {
        let done = self
            .transactions
            .get(&id)
            .is_some_and(|t| t.state == State::Committing && t.waiting.is_empty());
        if !done || ctx.crash_point(Fault::CrashBeforeAnswer) {
            return;
        }
        self.answer(id, true, ctx);
        if ctx.crash_point(Fault::CrashAfterAnswer) {
            return;
        }
        let counted_in = self.transactions.get(&id).map(|t| (t.counted_in, Some(t.epoch)));
        require!(counted_in.is_some_and(|(counted, epoch)| counted == epoch), "EPOCH-4");
        self.count_finished(id, ctx);
        let Some(t) = self.transactions.remove(&id) else { return };
        self.counters.commits += 1;
        let entry =
            CompleteEntry { transaction: id, epoch: t.epoch, answered_below: t.answered_below };
        for participant in t.participants.keys() {
            self.queue_completion(*participant, (&entry, t.carry.shared), ctx);
        }
        // Others may be waiting for the entries that are locked until then (UNIQUE-5), or for the next primary to
        // be ready (HANDOVER-4).
        if t.changes_index || self.view.hands_over() {
            for participant in t.participants.keys() {
                self.flush_completions(*participant, ctx);
                if ctx.crash_point(Fault::CrashBetweenCompletions) {
                    return;
                }
            }
        }
    }
}
