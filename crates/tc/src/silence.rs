//! Data nodes that do not answer and cannot be replaced (SILENT-1, SILENT-2; `docs/protocols/membership.md`).

use crate::{
    Tc,
    abort::send_refusal,
    transaction::{Batch, Debt, Refusal, State, Transaction},
};
use alloc::vec::Vec;
use lats_base::{NodeSet, RefCode, TransactionId};
use lats_kernel::{Ctx, Fault};
use lats_signals::commit::FLAG_ROLLBACK;

impl Tc {
    /// Control has not heard these nodes for long.
    pub(crate) fn hear_silence(&mut self, silent: NodeSet, ctx: &mut Ctx<'_>) {
        let newly = silent.iter().any(|n| !self.silent.contains(n));
        self.silent = silent;
        if !newly || ctx.fault(Fault::BugWaitForTheSilent) {
            return;
        }
        let waits = |t: &Transaction| t.waits_for_any_of(silent);
        let waiting = self.transactions.iter().filter(|(_, t)| waits(t)).map(|(id, _)| id);
        let waiting: Vec<TransactionId> = waiting.collect();
        waiting.into_iter().for_each(|id| self.stop_waiting(id, ctx));
    }

    /// SILENT-2: nobody waits for a silent node. What is not decided is rolled back where that can be done; of what
    /// is, the client is told that the outcome is not known: it will be committed if that node lives.
    fn stop_waiting(&mut self, id: TransactionId, ctx: &mut Ctx<'_>) {
        let silent = self.silent;
        let Some(t) = self.transactions.get_mut(&id) else { return };
        match t.state {
            // Its images may be about to decide it, and a silent backup to have them. The answers will tell.
            State::Preparing if t.carry.parts != 0 && t.waits_for_primary_not_in(silent) => {}
            State::Preparing | State::SettlingStatement | State::RollingBack => {
                self.abort(id, RefCode::NodeSilent.into(), ctx);
            }
            State::Settling => self.when_settled(id, ctx),
            State::Aborting => {
                t.pass_over(silent);
                self.when_aborted(id, ctx);
            }
            State::Deciding | State::Committing => {
                self.dismiss_client(id, &RefCode::OutcomeUnknown.into(), ctx);
            }
            State::Idle | State::Aborted => {}
        }
    }

    /// All others have taken it back. Its client need not wait for those that were passed over: they are told as soon
    /// as they can be, or die.
    pub(crate) fn keep_for_the_silent(&mut self, id: TransactionId, ctx: &mut Ctx<'_>) {
        let forgets = ctx.fault(Fault::BugForgetTheSilent);
        let Some(t) = self.transactions.get_mut(&id) else { return };
        if forgets {
            return self.finish_abort(id, ctx);
        }
        t.debt = Debt::Last;
        t.state = State::Settling;
        self.tell_without_the_silent(id, ctx);
        self.when_settled(id, ctx);
    }

    /// Tells the client of a transaction that only silent nodes have still to take back; when it asks, if it does not now
    /// (ABORT-2).
    pub(crate) fn tell_without_the_silent(&mut self, id: TransactionId, ctx: &mut Ctx<'_>) {
        let Some(t) = self.transactions.get_mut(&id) else { return };
        let Some(request) = &t.request else { return };
        let rolls_back = request.flags & FLAG_ROLLBACK != 0;
        let known = t.refusal.take().unwrap_or_else(|| RefCode::NodeSilent.into());
        // CARRY-5: if this node has been removed, heirs may have found the parts of a decision that it has taken back.
        let carried = t.carry.has_begun();
        let refusal = if carried { RefCode::OutcomeUnknown.into() } else { known };
        if rolls_back {
            self.answer(id, false, ctx);
        }
        self.dismiss_client(id, &refusal, ctx);
    }

    /// The transaction waits for other answers than before: perhaps for a node that is silent already.
    pub(crate) fn stop_waiting_for_the_silent(&mut self, id: TransactionId, ctx: &mut Ctx<'_>) {
        let silent = self.silent;
        if silent.is_empty() || ctx.fault(Fault::BugWaitForTheSilent) {
            return;
        }
        if self.transactions.get(&id).is_some_and(|t| t.waits_for_any_of(silent)) {
            self.stop_waiting(id, ctx);
        }
    }

    /// The client hears why its request failed, and has nothing more to do with the transaction.
    fn dismiss_client(&mut self, id: TransactionId, refusal: &Refusal, ctx: &mut Ctx<'_>) {
        let Some(t) = self.transactions.get_mut(&id) else { return };
        let (request, client) = (t.request.take(), t.client.take());
        if let (Some(request), Some(client)) = (request, client) {
            send_refusal(client, id, request.id, (refusal, 0), ctx);
        }
    }
}

impl Batch {
    /// True if answers of these nodes are all that is missing.
    pub(crate) fn waits_only_for(&self, nodes: NodeSet) -> bool {
        match self.executed {
            true => self.backups.iter().all(|n| nodes.contains(n)),
            false => nodes.contains(self.primary.node),
        }
    }
}

impl Transaction {
    /// True if it cannot be committed without one of these nodes.
    pub(crate) fn needs_any_of(&self, nodes: NodeSet) -> bool {
        !nodes.is_empty()
            && self
                .participants
                .iter()
                .any(|(at, p)| (p.primary || p.backup) && nodes.contains(at.node))
    }

    /// True if an answer of one of these nodes is missing.
    fn waits_for_any_of(&self, nodes: NodeSet) -> bool {
        let waits = |b: &Batch| {
            (!b.executed && nodes.contains(b.primary.node)) || !b.backups.and(nodes).is_empty()
        };
        self.batches.values().any(waits) || self.waiting.iter().any(|at| nodes.contains(at.node))
    }

    fn waits_for_primary_not_in(&self, nodes: NodeSet) -> bool {
        self.batches.values().any(|b| !b.executed && !nodes.contains(b.primary.node))
    }

    /// While it is rolled back: these nodes are not waited for, and have to be told later.
    pub(crate) fn pass_over(&mut self, nodes: NodeSet) {
        if self.state != State::Aborting || self.debt == Debt::Last {
            return;
        }
        let before = self.waiting.len();
        self.waiting.retain(|at| !nodes.contains(at.node));
        if self.waiting.len() < before || !self.batches.is_empty() {
            self.debt = Debt::Owed;
        }
    }
}
