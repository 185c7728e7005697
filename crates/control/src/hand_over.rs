//! Leader: primaries go back to where they belong, and away from nodes that are to stop, while all live
//! (HANDOVER-1 to HANDOVER-5; `docs/protocols/hand-over.md`).

use crate::{Control, state::Command};
use lats_base::{Duration, Instant, NodeId, ViewNumber};
use lats_kernel::{Ctx, Fault};
use lats_signals::{BlockKind, BlockRef, Signal, control::TakeOverReadyRep};
use std::collections::BTreeSet;

/// What this node knows of hand-overs.
#[derive(Debug, Default)]
pub(crate) struct HandOvers {
    /// The view that all this is about, and since when this node has it.
    view: ViewNumber,
    since: Instant,
    /// Data managers of this node that can become primary.
    ready_here: BTreeSet<BlockRef>,
    /// Leader: nodes that can.
    ready: BTreeSet<NodeId>,
    /// Leader: hand-overs that did not come through, one after the other, and when to try again.
    failed: u32,
    next_at: Instant,
}

/// A view must have lasted so long before primaries are moved only to spread the load.
const SETTLED: Duration = Duration::from_millis(300);
/// How long new transactions wait for a hand-over before it is called off, the first time (HANDOVER-5).
const PATIENCE: Duration = Duration::from_millis(20);
/// The longest that they wait where transactions take so long; and for one that a node's stop depends on.
const PATIENCE_MAX: Duration = Duration::from_millis(160);
const STOP_PATIENCE_MAX: Duration = Duration::from_millis(1_000);
const RETRY: Duration = Duration::from_millis(100);
const RETRY_MAX: Duration = Duration::from_millis(5_000);

impl Control {
    /// A new view is installed here.
    pub(crate) fn note_view(&mut self, ctx: &Ctx<'_>) {
        self.note_stops(ctx);
        let handed = std::mem::take(&mut self.hand_overs);
        self.hand_overs = HandOvers {
            view: self.state.view.number,
            since: ctx.now(),
            failed: handed.failed,
            next_at: handed.next_at,
            ..HandOvers::default()
        };
    }

    pub(crate) fn hand_over_tick(&mut self, ctx: &mut Ctx<'_>) {
        if self.state.view.hands_over() {
            // It may have been lost with a leader.
            self.report_ready(ctx);
            self.end_hand_over(ctx);
        } else if self.is_leader() {
            self.begin_hand_over(ctx);
        }
    }

    pub(crate) fn on_take_over_ready_rep(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let sender = signal.sender();
        if signal.body::<TakeOverReadyRep>().view != self.hand_overs.view {
            return;
        }
        if sender.kind() == Some(BlockKind::Ldm) {
            self.hand_overs.ready_here.insert(sender);
            self.report_ready(ctx);
        } else {
            self.hand_overs.ready.insert(sender.node);
        }
        self.end_hand_over(ctx);
    }

    fn report_ready(&mut self, ctx: &mut Ctx<'_>) {
        let all = self.state.view.config.ldm_instances as usize;
        if self.hand_overs.ready_here.len() < all {
            return;
        }
        match self.leader() {
            Some(leader) if leader != ctx.node() => {
                let body = TakeOverReadyRep { view: self.hand_overs.view };
                ctx.send(BlockRef::control(leader), &body);
            }
            _ => drop(self.hand_overs.ready.insert(ctx.node())),
        }
    }

    /// Leader: HANDOVER-4 when all are ready, HANDOVER-5 when it takes too long.
    fn end_hand_over(&mut self, ctx: &mut Ctx<'_>) {
        let view = &self.state.view;
        if !self.is_leader() || !view.hands_over() || self.hand_overs.view != view.number {
            return;
        }
        let number = view.number;
        let heirs: BTreeSet<NodeId> = view.moves().map(|(_, to)| to).collect();
        if heirs.is_subset(&self.hand_overs.ready) {
            if ctx.crash_point(Fault::CrashAtHandOverEnd) {
                return;
            }
            self.hand_overs.failed = 0;
            self.hand_overs.next_at = Instant::ZERO;
            self.propose(&Command::EndHandOver { view: number }, ctx);
        } else if ctx.now().since(self.hand_overs.since) > self.patience() {
            let wait = Duration::from_millis(RETRY.as_millis() << self.hand_overs.failed.min(10));
            self.hand_overs.next_at = ctx.now().plus(wait.min(RETRY_MAX));
            self.hand_overs.failed += 1;
            self.propose(&Command::CancelHandOver { view: number }, ctx);
        }
    }

    fn patience(&self) -> Duration {
        let stops = self.state.view.members.iter().any(|m| m.alive && m.stopping.is_some());
        let doubled = PATIENCE.as_millis() << self.hand_overs.failed.min(10);
        let longest = if stops { STOP_PATIENCE_MAX } else { PATIENCE_MAX };
        Duration::from_millis(doubled).min(longest)
    }

    /// HANDOVER-1: when nothing else is the matter.
    fn begin_hand_over(&mut self, ctx: &mut Ctx<'_>) {
        let (now, view) = (ctx.now(), &self.state.view);
        let stops = view.members.iter().any(|m| m.alive && m.stopping.is_some());
        let since = now.since(self.hand_overs.since);
        let settled = stops || since >= SETTLED;
        if !settled || now < self.hand_overs.next_at || !self.is_quiet(ctx) {
            return;
        }
        for (number, group) in (0u16..).zip(&view.groups) {
            let next = view.balanced_primaries(group);
            let full = group.replicas.iter().all(|r| r.in_sync);
            if full && next != group.primaries {
                let view = view.number;
                self.propose(&Command::BeginHandOver { view, group: number, next }, ctx);
                return;
            }
        }
    }

    /// Leader: true if all members have this view, and none of them is in trouble.
    pub(crate) fn is_quiet(&self, ctx: &Ctx<'_>) -> bool {
        let number = self.state.view.number;
        let has_view = |node: NodeId| {
            if node == ctx.node() {
                return self.installed.0 == number;
            }
            let peer = self.peers.get(&node);
            peer.is_some_and(|p| p.installed.0 == number && !p.doomed && !p.removing)
        };
        let all_have_it = self.state.view.data_nodes().all(|m| has_view(m.node));
        all_have_it && self.broken.is_empty() && self.gone.is_empty() && self.may_judge(ctx.now())
    }
}
