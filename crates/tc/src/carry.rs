//! Row images that carry the decision, from the coordinator's side: one round trip (CARRY-1, CARRY-3).

use crate::{
    Tc,
    request::Parts,
    transaction::{Participant, State},
};
use lats_base::Epoch;
use lats_kernel::{Ctx, Fault};
use lats_signals::{
    BlockRef,
    commit::{FLAG_COMMIT, PrepareConf, TcKeyReq},
};

/// What a coordinator knows of a decision that row images carry.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Carry {
    /// How many batches carry a part of it; 0: none, it has a round trip of its own.
    pub(crate) parts: u16,
    /// How many of them are executed and carry theirs.
    arrived: u16,
    /// The largest epoch of these.
    epoch: Epoch,
    /// No replica knows the decision from its own part: the transaction's end is of interest to others
    /// (CARRY-5).
    pub(crate) shared: bool,
}

impl Carry {
    pub(crate) fn of(parts: u16) -> Self {
        Self { parts, ..Self::default() }
    }

    /// True if images carry a part of the decision.
    pub(crate) fn has_begun(&self) -> bool {
        self.arrived > 0
    }

    /// True if the transaction is decided by its row images.
    pub(crate) fn decides(&self) -> bool {
        self.parts != 0 && self.arrived == self.parts
    }
}

impl Tc {
    /// CARRY-1: of how many parts the decision is that the request's row images may carry; 0: they may not.
    pub(crate) fn carry_parts(&self, req: &TcKeyReq, parts: &Parts, ctx: &mut Ctx<'_>) -> u16 {
        if req.flags & FLAG_COMMIT == 0 {
            return 0;
        }
        if ctx.fault(Fault::BugCarryInParts) {
            return 1;
        }
        let Some(t) = self.transactions.get(&req.transaction) else { return 0 };
        let me = ctx.node();
        // Replicas of what another data manager has changed before would not hear of the decision.
        let dies_with_us = |(at, p): (&BlockRef, &Participant)| {
            !p.primary || (at.node == me && parts.contains_key(at))
        };
        let others = ctx.fault(Fault::BugCarryPastOthers);
        let carries = parts.keys().all(|primary| primary.node == me)
            && (others || t.participants.iter().all(dies_with_us));
        if carries { u16::try_from(parts.len()).unwrap_or_default() } else { 0 }
    }

    /// The images of a batch carry its part of the decision. True if the transaction is decided by that.
    pub(crate) fn hear_carried(&mut self, conf: &PrepareConf, ctx: &mut Ctx<'_>) -> bool {
        let Some(t) = self.transactions.get_mut(&conf.transaction) else { return false };
        t.carry.arrived += 1;
        t.carry.epoch = t.carry.epoch.max(conf.epoch);
        t.carry.shared |= t.carry.parts > 1 || conf.backups.len() > 1;
        // CARRY-3: the only part has decided the transaction, even if it was to be rolled back meanwhile. Of
        // several parts this node alone knows that all are there, so it may still roll back.
        if !t.carry.decides() {
            return false;
        }
        if t.carry.parts > 1 && t.state != State::Preparing {
            let epoch = t.carry.epoch;
            self.count_unfinished(conf.transaction, epoch);
            return false;
        }
        t.state = State::Deciding;
        t.epoch = t.carry.epoch;
        t.waiting.clear();
        self.counters.carried += 1;
        self.count_decided(conf.transaction, ctx);
        true
    }
}
