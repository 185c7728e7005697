//! Taking over the transactions of dead coordinators (TAKEOVER-1 to TAKEOVER-4).
//!
//! Every LDM reports what it holds of them to the coordinator that inherits each, and then the end
//! of its reports to all. When all have ended, each transaction is committed if any replica knows
//! that it is decided, or if all have the row images that carry the decision; else rolled back.

use crate::{
    Tc,
    transaction::{Participant, State, Transaction},
};
use alloc::collections::{BTreeMap, BTreeSet};
use lats_base::{Epoch, TransactionId, ViewNumber};
use lats_catalog::{Member, View};
use lats_kernel::{Ctx, Fault};
use lats_signals::{
    BlockRef, Signal,
    commit::{
        Carry, CompleteEntry, DecideReq, TAKE_OVER_CARRIED, TAKE_OVER_PREPARED, TakeOverEndRep,
        TakeOverEndedRep, TakeOverRep,
    },
};
use zerocopy::FromBytes;

/// What has been reported so far.
#[derive(Debug, Default)]
pub(crate) struct TakeOver {
    reports: BTreeMap<TransactionId, Report>,
    /// Up to which view each LDM has reported.
    ended: BTreeMap<BlockRef, ViewNumber>,
}

/// What replicas know of a transaction.
#[derive(Debug, Default)]
struct Report {
    /// The commit epoch, where one knows that it is decided.
    decided: Option<Epoch>,
    /// It has not ended everywhere.
    open: bool,
    carry: Carry,
    /// Who has its part of the images that carry the decision.
    carriers: BTreeSet<BlockRef>,
}

impl Report {
    /// CARRY-4: the commit epoch, if every live replica that the images were sent to has all parts.
    fn carried(&self, view: &View, any_will_do: bool) -> Option<Epoch> {
        let Carry { parts, receivers, sent_in, epoch, .. } = self.carry;
        let asked = |m: &&Member| receivers.contains(m.node) && m.joined_in <= sent_in;
        let has_all = |m: &Member| {
            self.carriers.iter().filter(|at| at.node == m.node).count() == parts as usize
        };
        let mut asked = view.data_nodes().filter(asked).map(has_all);
        let carried = if any_will_do { asked.any(|all| all) } else { asked.all(|all| all) };
        (parts != 0 && carried).then_some(epoch)
    }
}

impl Tc {
    pub(crate) fn on_take_over_rep(&mut self, signal: &Signal<'_>) {
        let rep = signal.body::<TakeOverRep>();
        if self.park_newer(rep.view, signal) {
            return;
        }
        let report = self.takeover.reports.entry(rep.transaction).or_default();
        report.open = true;
        match rep.state {
            TAKE_OVER_CARRIED => {
                report.carriers.insert(signal.sender());
                let epoch = report.carry.epoch.max(rep.carry.epoch);
                report.carry = Carry { epoch, ..rep.carry };
            }
            // It may have been reported as carried before.
            TAKE_OVER_PREPARED => drop(report.carriers.remove(&signal.sender())),
            _ => report.decided = report.decided.max(Some(rep.epoch)),
        }
    }

    /// CARRY-5: it was decided, or it had not ended.
    pub(crate) fn on_take_over_ended_rep(&mut self, signal: &Signal<'_>) {
        if self.park_newer(signal.body::<TakeOverEndedRep>().view, signal) {
            return;
        }
        let mut rest = signal.payload();
        while let Ok((entry, behind)) = CompleteEntry::read_from_prefix(rest) {
            let report = self.takeover.reports.entry(entry.transaction).or_default();
            report.decided = report.decided.max(Some(entry.epoch));
            rest = behind;
        }
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
        let hasty = ctx.fault(Fault::BugCommitPartlyHeld);
        while let Some((id, report)) = self.takeover.reports.pop_first() {
            if report.open && !self.transactions.contains_key(&id) {
                // Who has it proved knows the epoch of its own part only (CARRY-7).
                let known = report.decided.map(|epoch| epoch.max(report.carry.epoch));
                let decided = known.or_else(|| report.carried(&self.view, hasty));
                self.resolve(id, decided, &report, ctx);
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
    fn resolve(
        &mut self,
        id: TransactionId,
        decided: Option<Epoch>,
        report: &Report,
        ctx: &mut Ctx<'_>,
    ) {
        self.counters.taken_over += 1;
        let mut t = Transaction::new(None);
        let everything = Participant { primary: true, backup: true, only_locks: false };
        t.participants = self.all_ldms().into_iter().map(|l| (l, everything)).collect();
        let forgets = ctx.fault(Fault::BugAbortDecided);
        let Some(epoch) = decided.filter(|_| !forgets) else {
            t.state = State::Settling;
            self.transactions.insert(id, t);
            if report.carry.parts != 0 {
                self.count_unfinished(id, report.carry.epoch);
            }
            return self.start_abort(id, ctx);
        };
        self.hear_epoch(epoch);
        t.epoch = epoch;
        t.state = State::Deciding;
        t.waiting = t.participants.keys().copied().collect();
        let body = DecideReq { transaction: id, epoch, view: self.view.number };
        t.waiting.iter().for_each(|to| ctx.send(*to, &body));
        self.transactions.insert(id, t);
        self.count_decided(id, ctx);
        self.when_decided(id, ctx);
    }
}
