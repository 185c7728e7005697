//! Taking over the transactions of dead coordinators (TAKEOVER-1 to TAKEOVER-4).
//!
//! Every LDM reports what it holds of them to the coordinator that inherits each, and then the end
//! of its reports to all. When all have ended, each transaction is committed if any replica knows
//! that it is decided, else rolled back.

use crate::{
    Tc,
    transaction::{Participant, State, Transaction},
};
use alloc::collections::BTreeMap;
use lats_base::{Epoch, TransactionId, ViewNumber};
use lats_kernel::{Ctx, Fault};
use lats_signals::{
    BlockRef, Signal,
    commit::{DecideReq, TAKE_OVER_PREPARED, TakeOverEndRep, TakeOverRep},
};

/// What has been reported so far.
#[derive(Debug, Default)]
pub(crate) struct TakeOver {
    /// The commit epoch, where some replica knows that the transaction is decided.
    reports: BTreeMap<TransactionId, Option<Epoch>>,
    /// Up to which view each LDM has reported.
    ended: BTreeMap<BlockRef, ViewNumber>,
}

impl Tc {
    pub(crate) fn on_take_over_rep(&mut self, signal: &Signal<'_>) {
        let rep = signal.body::<TakeOverRep>();
        if self.park_newer(rep.view, signal) {
            return;
        }
        let decided = (rep.state != TAKE_OVER_PREPARED).then_some(rep.epoch);
        let known = self.takeover.reports.entry(rep.transaction).or_default();
        *known = (*known).max(decided);
    }

    pub(crate) fn on_take_over_end_rep(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let rep = signal.body::<TakeOverEndRep>();
        // In an older view the others seem to have ended their reports already.
        if self.park_newer(rep.view, signal) {
            return;
        }
        self.takeover.ended.insert(signal.sender(), rep.view);
        self.resolve_when_reported(ctx);
    }

    /// TAKEOVER-2: nothing is decided before every live LDM has reported in this view.
    pub(crate) fn resolve_when_reported(&mut self, ctx: &mut Ctx<'_>) {
        if !self.has_inherited_all() {
            return;
        }
        while let Some((id, decided)) = self.takeover.reports.pop_first() {
            if !self.transactions.contains_key(&id) {
                self.resolve(id, decided, ctx);
            }
        }
    }

    /// True if every live LDM has ended its reports in this view.
    pub(crate) fn has_inherited_all(&self) -> bool {
        let view = self.view.number;
        let ldms = self.all_ldms();
        if view == ViewNumber::new(1) {
            // Nobody has died yet. (Founders may report before they are linked.)
            return true;
        }
        let ended = |l| self.takeover.ended.get(l).is_some_and(|v| *v >= view);
        !ldms.is_empty() && ldms.iter().all(ended)
    }

    /// TAKEOVER-4: finish it everywhere, whoever holds a part of it.
    fn resolve(&mut self, id: TransactionId, decided: Option<Epoch>, ctx: &mut Ctx<'_>) {
        self.counters.taken_over += 1;
        let mut t = Transaction::new(None);
        let everything = Participant { primary: true, backup: true, only_locks: false };
        t.participants = self.all_ldms().into_iter().map(|l| (l, everything)).collect();
        let forgets = ctx.fault(Fault::BugAbortDecided);
        let Some(epoch) = decided.filter(|_| !forgets) else {
            t.state = State::Settling;
            self.transactions.insert(id, t);
            return self.start_abort(id, ctx);
        };
        self.hear_epoch(epoch);
        t.epoch = epoch;
        t.state = State::Deciding;
        t.waiting = t.participants.keys().copied().collect();
        let body = DecideReq { transaction: id, epoch, view: self.view.number };
        t.waiting.iter().for_each(|to| ctx.send(*to, &body));
        self.transactions.insert(id, t);
        self.count_decided(id);
        self.when_decided(id, ctx);
    }
}
