//! Nodes that are late: they live, and do not come on (LATE-1, LATE-2, LATE-4; `docs/protocols/membership.md`).

use crate::{Control, state::LifeSign};
use lats_base::{Duration, Incarnation, Instant, NodeId, ViewNumber};
use lats_kernel::Ctx;
use lats_signals::{Signal, control::LateRep};

/// How late this node is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Late {
    /// The thread that is most behind, as the shell has said last, in ms.
    threads_ms: u64,
    /// How much later than it was due the last tick came, in ms.
    tick_ms: u64,
    /// The largest of both since the start, in ms.
    largest_ms: u64,
}

/// A thread that has not come on for so many leases, and at least for that long, is stuck (LATE-2): a short lease is for machines that have
/// died, and a busy machine is no reason to remove a node.
const STUCK_LEASES: u64 = 30;
const STUCK_MIN_MS: u64 = 9_000;
/// How long founders wait for one that has not come.
const FOUNDER_PATIENCE: Duration = Duration::from_millis(10_000);

impl Late {
    pub(crate) fn note_tick(&mut self, late: Duration) {
        self.tick_ms = late.as_millis();
        self.largest_ms = self.largest_ms.max(self.tick_ms);
    }

    /// How late the thread is that is most behind.
    pub(crate) fn threads_ms(&self) -> u64 {
        self.threads_ms
    }

    /// What other nodes are told.
    pub(crate) fn now_ms(&self) -> u64 {
        self.threads_ms.max(self.tick_ms)
    }
}

impl Control {
    pub(crate) fn on_late_rep(&mut self, signal: &Signal<'_>) {
        self.late.threads_ms = signal.body::<LateRep>().late_ms;
        self.late.largest_ms = self.late.largest_ms.max(self.late.threads_ms);
    }

    /// LATE-2: a thread of this node does not come on any more, so it must not lead, if others can do without it.
    pub(crate) fn gives_way_as_stuck(&self, me: NodeId) -> bool {
        self.takes_for_stuck(self.late.threads_ms) && self.can_do_without(me, me)
    }

    /// LATE-2: commits wait for a node that is so late.
    pub(crate) fn takes_for_stuck(&self, late_ms: u64) -> bool {
        Duration::from_millis(late_ms) >= self.stuck_after()
    }

    pub(crate) fn stuck_after(&self) -> Duration {
        let leases_ms = STUCK_LEASES * self.state.view.config.lease_ms;
        Duration::from_millis(leases_ms.max(STUCK_MIN_MS))
    }

    /// LATE-2: another full replica of its rows is on time. What makes all of them late is no reason to remove one.
    pub(crate) fn can_do_without(&self, node: NodeId, me: NodeId) -> bool {
        let late_ms = |n: NodeId| match n == me {
            true => self.late.threads_ms,
            false => self.peers.get(&n).map(|p| p.late_ms).unwrap_or_default(),
        };
        let on_time = |n: NodeId| n != node && !self.takes_for_stuck(late_ms(n));
        let group = self.state.view.group_of_node(node);
        group.is_none_or(|(_, g)| g.replicas.iter().any(|r| r.in_sync && on_time(r.node)))
    }

    /// LATE-2: a node that is stuck, and that the others cannot do without.
    pub(crate) fn is_stuck(&self, node: NodeId) -> bool {
        self.peers.get(&node).is_some_and(|p| self.takes_for_stuck(p.late_ms))
    }

    /// LATE-4: this founder has not come yet; nobody serves before it has, or is given up.
    pub(crate) fn awaits_founder(&self, node: NodeId, since: Instant, now: Instant) -> bool {
        self.is_to_come(node) && now.since(since) < FOUNDER_PATIENCE
    }

    /// A founder that this node was never linked with.
    fn is_to_come(&self, node: NodeId) -> bool {
        let view = &self.state.view;
        let founder = view.member(node).filter(|m| m.alive && m.joined_in == ViewNumber::new(1));
        let had_link = self.peers.get(&node).map(|p| p.had_link).unwrap_or_default();
        founder.is_some_and(|m| had_link < m.incarnation)
    }

    /// LATE-4: a founder comes, and its time begins now.
    pub(crate) fn welcome_founder(&mut self, node: NodeId, life: Incarnation, now: Instant) {
        if self.is_to_come(node) && self.state.view.is_alive(node, life) {
            let peer = self.peers.entry(node).or_default();
            (peer.heard_at, peer.fresh_at, peer.broken_since) = (Some(now), now, None);
            peer.rows_passed_at = now;
            self.broken.retain(|b| !b.is_about(|n| n == node));
        }
    }

    /// What is known here of the other members.
    pub(crate) fn life_signs(&self, ctx: &Ctx<'_>) -> Vec<LifeSign> {
        let alive = self.state.view.members.iter().filter(|m| m.alive);
        alive.map(|member| self.life_sign(member.node, ctx)).collect()
    }

    fn life_sign(&self, node: NodeId, ctx: &Ctx<'_>) -> LifeSign {
        if node == ctx.node() {
            let Late { largest_ms, .. } = self.late;
            return LifeSign {
                node,
                heard_ms: Some(0),
                late_ms: self.late.now_ms(),
                largest_ms: Some(largest_ms),
            };
        }
        let peer = self.peers.get(&node).copied().unwrap_or_default();
        let answered = self.lease_answered_at(node);
        let heard_at = peer.lived_at.max(peer.echoed).max(answered);
        let heard = (heard_at > Instant::ZERO).then(|| ctx.now().since(heard_at).as_millis());
        LifeSign { node, heard_ms: heard, late_ms: peer.late_ms, largest_ms: None }
    }
}
