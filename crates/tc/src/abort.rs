//! Giving up, as a whole or back to a savepoint (ABORT-1 to ABORT-3).

use crate::{
    Tc,
    transaction::{Debt, Participant, Refusal, Request, State},
};
use lats_base::{RefCode, TransactionId};
use lats_kernel::{Ctx, Fault};
use lats_signals::{
    BlockRef, Signal,
    commit::{
        ABORT_AS_BACKUP, ABORT_AS_PRIMARY, AbortConf, AbortReq, FLAG_OPEN, FLAG_ROLLBACK,
        InterruptOrd, TcKeyRef,
    },
};

impl Tc {
    /// Rolls the transaction back, unless it is decided already. What is under way is awaited
    /// first (ABORT-1): an abort must not overtake a row image on its way to a backup.
    pub(crate) fn abort(&mut self, id: TransactionId, refusal: Refusal, ctx: &mut Ctx<'_>) {
        let Some(t) = self.transactions.get_mut(&id) else { return };
        match t.state {
            State::Idle | State::Preparing | State::SettlingStatement | State::RollingBack => {
                t.state = State::Settling;
                t.refusal = Some(refusal);
                self.cancel_waits(id, ctx);
                self.when_settled(id, ctx);
            }
            State::Aborted => self.finish_abort(id, ctx),
            State::Deciding | State::Committing | State::Settling | State::Aborting => {}
        }
    }

    /// STATEMENT-1: a refused request is taken back as if it had never been asked for, and the
    /// transaction lives on; unless it was to commit, or something of the transaction is lost.
    pub(crate) fn refuse_request(
        &mut self,
        id: TransactionId,
        refusal: Refusal,
        ctx: &mut Ctx<'_>,
    ) {
        let Some(t) = self.transactions.get_mut(&id) else { return };
        if refusal.ends_transaction() || t.request.as_ref().is_none_or(Request::commits) {
            return self.abort(id, refusal, ctx);
        }
        t.state = State::SettlingStatement;
        t.waits_from = t.next_batch;
        t.refusal = Some(refusal);
        self.cancel_waits(id, ctx);
        self.when_settled(id, ctx);
    }

    /// STATEMENT-3: the client wants its request to end. One that is through, or decided, is answered as it is.
    pub(crate) fn on_interrupt_ord(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let InterruptOrd { transaction: id, request } = signal.body::<InterruptOrd>();
        let Some(t) = self.transactions.get(&id) else { return };
        let is_meant = t.request.as_ref().is_some_and(|r| r.id == request)
            && t.client == Some(signal.sender());
        let is_decided = matches!(t.state, State::Deciding | State::Committing);
        if is_meant && is_decided && ctx.fault(Fault::BugInterruptDecided) {
            return self.answer_refused(id, &RefCode::Interrupted.into(), ctx);
        }
        if is_meant && t.state == State::Preparing {
            self.refuse_request(id, RefCode::Interrupted.into(), ctx);
        }
    }

    /// STATEMENT-2: all parts of the refused request have been answered, so that none of its row
    /// images can come after the order to take them back.
    pub(crate) fn take_request_back(&mut self, id: TransactionId, ctx: &mut Ctx<'_>) {
        let forgets = ctx.fault(Fault::BugKeepRefusedStatement);
        let Some(t) = self.transactions.get_mut(&id) else { return };
        let statement = t.request.as_ref().map_or(t.statement, |r| r.statement);
        let asked = t.request.as_ref().and_then(|r| r.rollback_to);
        let from = if forgets { statement + 1 } else { statement };
        self.roll_back_to(id, asked.unwrap_or(from), ctx);
    }

    /// All that was under way has been answered: tell everyone.
    pub(crate) fn start_abort(&mut self, id: TransactionId, ctx: &mut Ctx<'_>) {
        let Some(t) = self.transactions.get_mut(&id) else { return };
        self.counters.aborts += u64::from(t.debt == Debt::None);
        t.state = State::Aborting;
        t.aborts_from = 0;
        self.send_abort(id, ABORT_AS_BACKUP, ctx);
    }

    /// Takes back what statements from `statement` on did.
    pub(crate) fn roll_back_to(&mut self, id: TransactionId, statement: u32, ctx: &mut Ctx<'_>) {
        let Some(t) = self.transactions.get_mut(&id) else { return };
        if t.needs_any_of(self.silent) {
            return self.abort(id, RefCode::NodeSilent.into(), ctx);
        }
        t.state = State::RollingBack;
        // FAIL-1: locks stay, and now without row images.
        t.participants.values_mut().filter(|p| p.primary).for_each(|p| p.only_locks = true);
        // Statement 0 would mean the whole transaction; a client's statements start at 1.
        t.aborts_from = statement.max(1);
        self.send_abort(id, ABORT_AS_BACKUP, ctx);
    }

    /// ABORT-3: first the backups forget the rows, then the primaries do, who unlock them: so
    /// whatever the next writer sends to a backup finds nothing there that never happened.
    fn send_abort(&mut self, id: TransactionId, part: u32, ctx: &mut Ctx<'_>) {
        let view = self.view.number;
        let Some(t) = self.transactions.get_mut(&id) else { return };
        let takes_part = |p: &Participant| match part {
            ABORT_AS_BACKUP => p.backup,
            _ => p.primary,
        };
        t.abort_part = part;
        t.order_view = view;
        t.waiting =
            t.participants.iter().filter(|(_, p)| takes_part(p)).map(|(at, _)| *at).collect();
        t.pass_over(self.silent);
        let body = AbortReq { transaction: id, view, from_statement: t.aborts_from, part };
        t.waiting.iter().for_each(|to| ctx.send(*to, &body));
        self.when_aborted(id, ctx);
    }

    pub(crate) fn on_abort_conf(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let conf = signal.body::<AbortConf>();
        let Some(t) = self.transactions.get_mut(&conf.transaction) else { return };
        let awaited = matches!(t.state, State::Aborting | State::RollingBack)
            && conf.view == t.order_view
            && conf.from_statement == t.aborts_from
            && conf.part == t.abort_part;
        if awaited {
            t.waiting.remove(&signal.sender());
            self.when_aborted(conf.transaction, ctx);
        }
    }

    /// Goes on with the abort when all have confirmed its current part.
    pub(crate) fn when_aborted(&mut self, id: TransactionId, ctx: &mut Ctx<'_>) {
        let Some(t) = self.transactions.get_mut(&id) else { return };
        let aborting = matches!(t.state, State::Aborting | State::RollingBack);
        if !aborting || !t.waiting.is_empty() {
            return;
        }
        if t.abort_part == ABORT_AS_BACKUP {
            return self.send_abort(id, ABORT_AS_PRIMARY, ctx);
        }
        let state = t.state;
        if state == State::Aborting && t.debt == Debt::Owed {
            return self.keep_for_the_silent(id, ctx);
        }
        if state == State::Aborting {
            self.count_finished(id, ctx);
        }
        let Some(t) = self.transactions.get_mut(&id) else { return };
        match state {
            State::RollingBack => {
                t.state = State::Idle;
                match t.refusal.take() {
                    Some(refusal) => self.answer_refused(id, &refusal, ctx),
                    None => self.answer(id, false, ctx),
                }
                self.forget_if_untouched(id);
            }
            State::Aborting if t.client.is_some() && t.request.is_none() => {
                // ABORT-2: the client hears of it when it asks for the next thing.
                t.state = State::Aborted;
                t.participants.clear();
            }
            _ => self.finish_abort(id, ctx),
        }
    }

    /// A node is lost in the middle of it: whoever is primary now must take its rows back too.
    pub(crate) fn repeat_abort(&mut self, id: TransactionId, ctx: &mut Ctx<'_>) {
        self.send_abort(id, ABORT_AS_BACKUP, ctx);
    }

    /// Tells the client, and forgets the transaction.
    pub(crate) fn finish_abort(&mut self, id: TransactionId, ctx: &mut Ctx<'_>) {
        let asked =
            self.transactions.get(&id).and_then(|t| t.request.as_ref()).map(|r| (r.id, r.flags));
        if let Some((_, flags)) = asked
            && flags & FLAG_ROLLBACK != 0
        {
            self.answer(id, false, ctx);
        }
        let Some(t) = self.transactions.remove(&id) else { return };
        let (Some(request), Some(client)) = (t.request, t.client) else { return };
        let refusal = t.refusal.unwrap_or_else(|| RefCode::TransactionAborted.into());
        send_refusal(client, id, request.id, (&refusal, 0), ctx);
    }

    /// Tells the client that its request was refused and its transaction lives on.
    fn answer_refused(&mut self, id: TransactionId, refusal: &Refusal, ctx: &mut Ctx<'_>) {
        let Some(t) = self.transactions.get_mut(&id) else { return };
        let (Some(request), Some(client)) = (t.request.take(), t.client) else { return };
        send_refusal(client, id, request.id, (refusal, FLAG_OPEN), ctx);
    }
}

/// Tells a client that a request was refused.
pub(crate) fn send_refusal(
    client: BlockRef,
    transaction: TransactionId,
    request: u64,
    (refusal, flags): (&Refusal, u32),
    ctx: &mut Ctx<'_>,
) {
    let (code, errno) = (refusal.code, refusal.errno);
    let body = TcKeyRef { transaction, request, code, errno, flags, reserved: 0 };
    ctx.send_with(client, &body, &[&refusal.text]);
}
