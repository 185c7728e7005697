//! What a process has promised to take part in, when the group is formed anew (REFORM-3; `docs/protocols/restart.md`).

use crate::{
    restart::{Present, Restart},
    state::ControlState,
};
use lats_base::{Incarnation, NodeId};
use lats_catalog::View;
use std::collections::{BTreeMap, BTreeSet};

#[cfg(test)]
mod tests;

/// A process, by its node and life.
type Life = (NodeId, Incarnation);

/// What was promised.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) state: Box<ControlState>,
    /// How many times the group had been formed whose state that goes on with.
    pub(crate) based_on: u32,
    /// Views before the first one of that state, for those that have missed them (REFORM-4).
    pub(crate) views: Vec<View>,
    pub(crate) asked_by: Life,
    /// Data managers of this node that have loaded their rows, and how many are to.
    pub(crate) loaded: BTreeSet<u32>,
    pub(crate) to_load: usize,
    /// Who asks: those that are ready.
    pub(crate) ready: BTreeSet<NodeId>,
}

/// So many promises are remembered that newer ones have taken the place of.
const SUPERSEDED_MAX: usize = 8;

impl Attempt {
    fn number(&self) -> u32 {
        self.state.restarts()
    }

    /// True if whoever has asked says that the group was not formed, and that it does not want that any more.
    fn is_void(&self, present: &BTreeMap<NodeId, Present>) -> bool {
        let (node, life) = self.asked_by;
        let Some(asker) = present.get(&node).filter(|p| p.said.member.incarnation == life) else {
            return false;
        };
        let has = &asker.has;
        let wants = has.whom() == self.asked_by && has.promised == self.number();
        // What it has said before it asked says nothing of this.
        has.promised >= self.number() && has.restarts < self.number() && !wants
    }

    /// True if this one is needed for it, has not promised, and never does: in the group that it is in, whoever has asked is over.
    fn is_refused_by(&self, present: &Present) -> bool {
        let (has, said) = (&present.has, &present.said);
        let (node, life) = self.asked_by;
        let is_needed = self.state.view.is_alive(said.member.node, said.member.incarnation)
            && self.state.view.data_nodes().any(|m| m.node == said.member.node);
        let has_not_promised = has.promised < self.number() && has.restarts < self.number();
        let newest = said.views.last().filter(|_| said.lives);
        is_needed && has_not_promised && newest.is_some_and(|view| view.is_over(node, life))
    }

    /// True if this one of those that are to take part cannot promise to any more.
    fn has_lost(&self, present: &Present) -> bool {
        let has = &present.has;
        // It does not confirm this one any more, though it may have dropped the newer one.
        let was_bound = has.promised > self.number();
        let is_bound = has.promised == self.number() && has.whom() != self.asked_by;
        was_bound || is_bound || has.restarts > self.based_on
    }

    /// True if this attempt of `me` cannot come about: somebody is gone that was to take part, or takes part in another one.
    pub(crate) fn is_lost(&self, me: NodeId, present: &BTreeMap<NodeId, Present>) -> bool {
        self.state.view.data_nodes().any(|m| match present.get(&m.node) {
            _ if m.node == me => false,
            Some(p) => p.said.member.incarnation != m.incarnation || self.has_lost(p),
            None => true,
        })
    }
}

impl Restart {
    /// What it has promised, the newest one last.
    fn promises(&self) -> impl Iterator<Item = &Attempt> {
        self.superseded.iter().chain(&self.attempt)
    }

    /// Number and asker of each, for a person.
    pub(crate) fn describe_promises(&self) -> Vec<(u32, NodeId)> {
        self.promises().map(|a| (a.number(), a.asked_by.0)).collect()
    }

    /// A promise to somebody else holds though what this node has asked for itself cannot come about any more.
    pub(crate) fn has_promises(&self) -> bool {
        self.promises().next().is_some()
    }

    /// REFORM-7: a survivor hears from one that takes part in the group that was formed for the so-manieth time. True if this node has
    /// promised that, and owes nothing to a newer one: what it has asked for itself is formed by nobody else, and what the sender
    /// was to take part in cannot be formed, as that one takes part in the older one.
    pub(crate) fn may_begin(&self, restarts: u64, me: NodeId, sender: Life) -> bool {
        let is_it = |a: &Attempt| u64::from(a.number()) == restarts;
        let is_in_the_way = |a: &Attempt| {
            let was_asked = a.state.view.is_alive(sender.0, sender.1)
                && a.state.view.data_nodes().any(|m| m.node == sender.0);
            let can_be_formed = u64::from(a.based_on) >= restarts || !was_asked;
            u64::from(a.number()) > restarts && a.asked_by.0 != me && can_be_formed
        };
        self.promises().any(is_it) && !self.promises().any(is_in_the_way)
    }

    /// True if this one has asked for it.
    pub(crate) fn was_asked_by(&self, restarts: u32, asker: Life) -> bool {
        self.promises().any(|a| a.number() == restarts && a.asked_by == asker)
    }

    /// The same promise, which is kept now; there are no others any more.
    pub(crate) fn take_promise(&mut self, restarts: u64) -> Option<Attempt> {
        let all = std::mem::take(&mut self.superseded).into_iter().chain(self.attempt.take());
        all.filter(|a| u64::from(a.number()) == restarts).last()
    }

    /// REFORM-3: a promise to somebody else stays, as the other one may count on it; but for one that asks for something else now and
    /// has not formed what it had asked for before.
    pub(crate) fn promise(&mut self, attempt: Attempt, me: NodeId) {
        let (asker, based_on) = (attempt.asked_by, attempt.based_on);
        self.superseded.extend(self.attempt.replace(attempt).filter(|a| a.asked_by.0 != me));
        self.superseded.retain(|a| a.asked_by != asker || a.number() <= based_on);
        let surplus = self.superseded.len().saturating_sub(SUPERSEDED_MAX);
        self.superseded.drain(..surplus);
    }

    /// The promise before it counts again.
    pub(crate) fn drop_newest(&mut self) {
        self.attempt = self.superseded.pop();
    }

    /// REFORM-7: promises are void of which those that had asked say so; or whose group can never be formed, as one that is needed for it
    /// has not promised, and is in a group that goes on without whoever has asked.
    pub(crate) fn drop_void_promises(
        &mut self,
        present: &BTreeMap<NodeId, Present>,
        hears_refusals: bool,
    ) {
        let is_refused = |a: &Attempt| present.values().any(|p| a.is_refused_by(p));
        let is_void = |a: &Attempt| a.is_void(present) || (hears_refusals && is_refused(a));
        self.superseded.retain(|a| !is_void(a));
        if self.attempt.as_ref().is_some_and(is_void) {
            self.drop_newest();
        }
    }
}
