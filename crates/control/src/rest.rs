//! How soon control's next tick comes: soon while anything waits for it, late in a cluster at rest (REST-1 to REST-3;
//! `docs/protocols/membership.md`).

use crate::{Control, TICK, TIMER_TICK, membership::EARLY, pace::Pace, stop::Leaves};
use lats_base::{Duration, Instant};
use lats_catalog::View;
use lats_kernel::Ctx;

/// When ticks come.
#[derive(Debug, Default)]
pub(crate) struct Ticks {
    /// The last one.
    at: Instant,
    /// The next one.
    due: Instant,
    /// The earliest timer that has not come yet. A timer that comes before a tick is due is nobody's.
    armed: Instant,
    /// Up to where the consensus library has heard of the time.
    heard: Instant,
    /// Leader: when somebody is silent for so long that it may be removed, if nothing comes from it before.
    pub(crate) judges_at: Option<Instant>,
}

impl Ticks {
    /// Begins one. True if the process was paused before it.
    pub(crate) fn begin(&mut self, now: Instant, pace: Pace) -> bool {
        let last = std::mem::replace(&mut self.at, now);
        self.is_late_by(now) > pace.paused() || now.since(last) > pace.paused_at_rest()
    }

    /// How much later than it was due a tick comes now.
    pub(crate) fn is_late_by(&self, now: Instant) -> Duration {
        if self.due == Instant::ZERO { Duration::ZERO } else { now.since(self.due) }
    }

    /// How many ticks of the consensus library have passed: one at least, unless this one comes early, and no more than a pause is short of.
    /// A paused node knows nothing of the time that it missed.
    pub(crate) fn passed(&mut self, now: Instant, pace: Pace) -> u64 {
        let passed = self.passed_meanwhile(now, pace);
        if passed > 0 || now.since(self.at) < EARLY {
            return passed;
        }
        self.heard = now;
        1
    }

    /// The same between two ticks: none, if it was paused.
    pub(crate) fn passed_meanwhile(&mut self, now: Instant, pace: Pace) -> u64 {
        let tick = pace.consensus_tick().as_nanos();
        let passed = now.since(self.heard).as_nanos() / tick;
        if passed > pace.paused_at_rest().as_nanos() / tick {
            return 0;
        }
        self.heard = self.heard.plus(Duration::from_nanos(passed * tick));
        passed
    }
}

impl Control {
    /// Its timer has come.
    pub(crate) fn on_tick_timer(&mut self, ctx: &mut Ctx<'_>) {
        if ctx.now() >= self.ticks.due {
            self.tick(ctx);
        } else {
            self.plan_tick_at(self.ticks.due, ctx);
        }
    }

    /// At the end of a tick: the next one.
    pub(crate) fn plan_tick(&mut self, ctx: &mut Ctx<'_>) {
        // REST-3: whoever hears no leader stands for election in time.
        let is_led = self.is_leader() || self.lease_rests(ctx.now());
        let span = match (self.is_at_rest(ctx), self.is_leader()) {
            (false, _) if self.joined && !is_led => self.pace().consensus_tick(),
            (false, _) => TICK,
            (true, true) => self.pace().rest(),
            (true, false) => self.pace().rest_alone(),
        };
        let tick = ctx.now().plus(span);
        // REST-3: a silent member is removed when its time is over, and not up to a tick later.
        let judges_at = self.ticks.judges_at.filter(|at| self.is_leader() && *at > ctx.now());
        self.plan_tick_at(judges_at.map_or(tick, |at| at.min(tick)), ctx);
    }

    fn plan_tick_at(&mut self, due: Instant, ctx: &mut Ctx<'_>) {
        self.ticks.due = due;
        let now = ctx.now();
        if self.ticks.armed <= now || due < self.ticks.armed {
            self.ticks.armed = due;
            ctx.after(due.since(now), TIMER_TICK);
        }
    }

    /// After each signal: REST-1, what it has begun is not to wait for a late tick.
    pub(crate) fn look_up(&mut self, ctx: &mut Ctx<'_>) {
        let soon = ctx.now().plus(TICK);
        if self.ticks.due > soon && !self.is_at_rest(ctx) {
            self.plan_tick_at(soon, ctx);
        }
    }

    /// The leader has ticked. REST-2: whoever rests does so, too, so that all wake up together.
    pub(crate) fn tick_with_leader(&mut self, ctx: &mut Ctx<'_>) {
        let rests = self.ticks.due > ctx.now().plus(TICK);
        if rests && ctx.now().plus(TICK).since(self.ticks.at) >= self.pace().rest() {
            self.tick(ctx);
        }
    }

    /// True if nothing waits for a tick but what may come with every renewal: heartbeats, leases and epochs.
    fn is_at_rest(&self, ctx: &Ctx<'_>) -> bool {
        let now = ctx.now();
        self.joined
            && self.me_alive(ctx)
            && !self.leaving
            && !self.is_told_to_end()
            && !self.campaign_planned
            && self.knows_leader()
            && !self.consensus.has_change_under_way()
            && self.changes.is_empty()
            && self.gone.is_empty()
            && self.broken.is_empty()
            && self.silent.is_empty()
            && self.silent_told.is_empty()
            && self.lost.is_none()
            && is_whole(&self.state.view)
            && self.all_have_all()
            && self.peers_are_well(now)
            && if self.is_leader() { self.leads_at_rest(now) } else { self.lease_rests(now) }
    }

    /// The newest view and catalog are in use everywhere.
    fn all_have_all(&self) -> bool {
        let newest = (self.state.view.number, self.state.catalog.version);
        let installed = self.installed == newest && self.told == newest;
        installed && self.everywhere >= self.state.catalog.version
    }

    /// Every other data node is in touch, as far as this one knows.
    fn peers_are_well(&self, now: Instant) -> bool {
        let lately = self.lately();
        let is_well = |p: &crate::Peer| {
            let linked = p.link == p.incarnation && p.lost_link < p.incarnation;
            linked
                && now.since(p.fresh_at) <= lately
                && p.broken_since.is_none()
                && !p.doomed
                && !p.removing
                && p.leaves == Leaves::No
        };
        let me = self.consensus.node();
        let others = self.state.view.data_nodes().filter(|m| m.node != me);
        // Witnesses exchange no heartbeats.
        !self.roles_data || others.into_iter().all(|m| self.peers.get(&m.node).is_some_and(is_well))
    }

    /// Half a lease: who was heard within it has missed one renewal at most.
    fn lately(&self) -> Duration {
        Duration::from_millis(self.state.view.config.lease_ms / 2)
    }

    /// Leader: everybody has followed it lately, no epoch is used, and there is nothing to be handed over.
    fn leads_at_rest(&self, now: Instant) -> bool {
        let (view, lately) = (&self.state.view, self.lately());
        let me = self.consensus.node();
        let heard = |n| self.peers.get(&n).and_then(|p| p.heard_at);
        let follows = |n| heard(n).is_some_and(|at| now.since(at) <= lately);
        let balanced = |g: &lats_catalog::Group| view.balanced_primaries(g) == g.primaries;
        self.consensus.has_settled()
            && self.may_judge(now)
            && !self.epochs_are_used(now)
            && view.groups.iter().all(balanced)
            && self.alive().iter().filter(|n| *n != me).all(follows)
    }
}

/// True if all members live, have all their rows and stay.
fn is_whole(view: &View) -> bool {
    let stays = |m: &lats_catalog::Member| {
        m.alive && m.stopping.is_none() && !view.is_declared_dead(m.node)
    };
    let full = |g: &lats_catalog::Group| g.replicas.iter().all(|r| r.in_sync) && !g.is_lost();
    view.members.iter().all(stays) && view.groups.iter().all(full) && !view.hands_over()
}
