//! The leader removes members that are silent (VIEW-2, VIEW-9, LEASE-6; `docs/protocols/membership.md`).

use crate::{Control, TICK, membership::margin};
use lats_base::{Duration, Instant, NodeId};
use lats_kernel::{Ctx, Fault};

/// A lease is over when more time than this has passed since its end.
const JUST_AFTER: Duration = Duration::from_micros(1);

impl Control {
    /// Leader: removes members that have been silent until every lease that they may believe in has run out (VIEW-2). Notes when to look
    /// again, if somebody could be removed before the next tick.
    pub(crate) fn remove_the_silent(&mut self, ctx: &mut Ctx<'_>) {
        self.ticks.judges_at = None;
        let Some(leader_since) = self.became_leader_at else { return };
        let lease = Duration::from_millis(self.state.view.config.lease_ms);
        let now = ctx.now();
        let forgets = ctx.fault(Fault::BugForgetEarlierLeases);
        let over_at = if forgets { now } else { self.old_leases_end(now).unwrap_or(now) };
        if now < over_at || !self.may_judge(now) {
            self.ticks.judges_at = Some(over_at);
            return;
        }
        let former = self.former_leader(self.consensus.term()).0;
        let former_since = if forgets { Instant::ZERO } else { self.former_silent_since(now) };
        // Links may have been broken all over; they get a lease to come right, and complaints time to cease.
        let mended = leader_since.plus(lease).plus(margin(lease));
        let settled_in = now >= mended.plus(self.pace().complaint_lasts());
        let mut next: Option<Instant> = None;
        for node in self.alive().iter().filter(|n| *n != ctx.node()) {
            let declared = self.state.view.is_declared_dead(node);
            if !self.may_be_silent_for(node, declared, leader_since, now) {
                continue;
            }
            let peer = self.peers.entry(node).or_default();
            let since = if node == former { former_since } else { leader_since };
            let heard = peer.heard_at.unwrap_or(since);
            let due = heard.plus(lease).plus(JUST_AFTER).max(peer.granted_until);
            let unheard = now >= due || (peer.doomed && settled_in);
            if (unheard || declared) && now >= peer.granted_until {
                let why = why_removed(declared, peer.doomed, now.since(heard).as_millis());
                return self.remove(node, &why, ctx);
            }
            next = Some(next.map_or(due, |at| at.min(due)));
        }
        self.ticks.judges_at = next;
    }

    /// True of a member that is removed for silence, or because a person has declared it dead.
    fn may_be_silent_for(
        &self,
        node: NodeId,
        declared: bool,
        leader_since: Instant,
        now: Instant,
    ) -> bool {
        // A witness serves nothing that somebody could take over, and keeps its vote until a person says that it is over.
        let can_go = self.holds_data(node) && !self.is_last_in_sync(node);
        declared || (can_go && !self.awaits_founder(node, leader_since, now))
    }

    /// Leader: LEASE-6. Since when the former leader is silent, if it has not spoken to this one. (Nobody
    /// else had to before this one was elected.) It gets a renewal and a tick to do so. Where the group was formed anew, it has promised to then.
    fn former_silent_since(&self, now: Instant) -> Instant {
        let lease = Duration::from_millis(self.state.view.config.lease_ms);
        let elected = self.became_leader_at.unwrap_or(now);
        let heard_by = elected.plus(self.pace().renew()).plus(TICK);
        let floor = Instant::from_nanos(heard_by.as_nanos().saturating_sub(lease.as_nanos()));
        self.earlier_leaders_heard_at(now).min(elected).max(floor).max(self.formed_at)
    }

    /// Leader: LEASE-6. When all that earlier leaders have granted has run out, as far as this one knows by now.
    fn old_leases_end(&self, now: Instant) -> Option<Instant> {
        let lease = Duration::from_millis(self.state.view.config.lease_ms);
        let since = self.became_leader_at?;
        let followed = self.earlier_leaders_heard_at(now).min(since);
        Some(followed.plus(lease).plus(margin(lease)))
    }

    /// Leader: LEASE-6. What earlier leaders have granted has run out.
    pub(crate) fn old_leases_are_over(&self, now: Instant) -> bool {
        self.old_leases_end(now).is_some_and(|end| now >= end)
    }
}

/// Why a member is removed, for a person.
fn why_removed(declared: bool, doomed: bool, silent_ms: u64) -> String {
    match (declared, doomed) {
        (true, _) => "a person has declared it dead".to_string(),
        (_, true) => format!("it lacks a link to another node; heard {silent_ms} ms ago"),
        _ => format!("it has not been heard for {silent_ms} ms"),
    }
}
