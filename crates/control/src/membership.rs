//! Who may serve, and who has been silent for too long (VIEW-2, LEASE-1 to LEASE-4).

use crate::{Control, Peer, TICK, state::Command};
use lats_base::{Duration, Epoch, Incarnation, Instant, NodeId};
use lats_kernel::{Ctx, Fault};
use lats_signals::{
    BlockRef, Signal,
    control::{CloseLinkOrd, LeaderLeftOrd, LeaseConf, LeaseOrd, LeaseReq, NoteOrd},
};

/// This node's right to serve.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lease {
    /// Until when, on this node's clock.
    until: Instant,
    asked_at: Instant,
    /// When the newest answer came.
    answered_at: Instant,
    /// The newest answer granted nothing: the leader was not sure of its own place.
    refused: bool,
    /// The clock of the leader that answered last, to be echoed, and its term.
    leader_clock: u64,
    leader_term: u64,
    /// Who that is, and who led before it here; when the latter was last heard, or led here.
    followed: NodeId,
    former: NodeId,
    pub(crate) former_heard_at: Instant,
    /// Leader: until when a majority has followed it, in this term.
    led_until: Instant,
    /// What the blocks were told last.
    told: LeaseOrd,
}

/// Ticks are no more exact than this: what comes with every one at rest does not wait for the next one.
pub(crate) const EARLY: Duration = Duration::from_millis(TICK.as_millis() / 2);
/// The synced replica tells again that it is, until the view says so.
const SYNCED_RETRY: Duration = Duration::from_millis(100);

/// What clocks that run at different rates may differ by within a lease.
pub(crate) fn margin(lease: Duration) -> Duration {
    Duration::from_nanos(lease.as_nanos() / 32)
}

impl Control {
    /// What was silent before this moment counts no more.
    pub(crate) fn give_peers_time(&mut self, now: Instant) {
        self.peers.values_mut().for_each(|p| {
            (p.fresh_at, p.rows_passed_at, p.broken_since) = (now, now, None);
        });
    }

    pub(crate) fn membership_tick(&mut self, ctx: &mut Ctx<'_>) {
        let now = ctx.now();
        self.late.note_tick(self.ticks.is_late_by(now));
        let paused = self.ticks.begin(now, self.pace());
        if paused {
            // What peers sent meanwhile is still to be read: they get their time again.
            self.give_peers_time(now);
        }
        if !self.joined {
            return;
        }
        if !self.me_alive(ctx) {
            return self.leave_when_told(ctx);
        }
        if self.leave_if_declared_dead(ctx) || self.gives_way_to_restart(ctx) {
            return;
        }
        if self.is_leader() {
            self.renew_own_lease(ctx);
            // After a pause, what has come meanwhile is read first.
            if (self.has_lost_office(now) && !paused) || self.gives_way_as_stuck(ctx.node()) {
                return self.give_up_leadership(ctx);
            }
            self.advance_epoch_in_time(ctx);
        } else {
            let wait = if self.lease.refused { TICK } else { self.pace().renew() };
            if now.plus(EARLY).since(self.lease.asked_at) >= wait {
                self.ask_for_lease(ctx);
            }
        }
        self.install_what_waits(ctx);
        self.watch_links(ctx);
        self.note_silence(ctx);
        if self.is_leader() {
            self.doom(ctx);
            self.remove_the_silent(ctx);
        }
        self.pursue_the_gone(ctx);
        self.survivor_tick(ctx);
        self.hand_over_tick(ctx);
        self.directory_tick(ctx);
        self.stop_tick(ctx);
        self.close_tick(ctx);
        self.tell_untold_use(ctx);
        if now.since(self.synced_told_at) >= SYNCED_RETRY {
            self.propose_synced(ctx);
        }
        self.tell_lease(ctx);
    }

    /// True while the leader has granted this node a lease.
    pub(crate) fn has_lease(&self, now: Instant) -> bool {
        now < self.lease.until
    }

    /// True if it ever was granted to this node.
    pub(crate) fn has_served(&self) -> bool {
        self.lease.until > Instant::ZERO
    }

    /// True if it was granted to this node lately, and for long.
    pub(crate) fn lease_rests(&self, now: Instant) -> bool {
        !self.lease.refused
            && self.has_lease(now)
            && now.since(self.lease.answered_at) <= self.pace().unanswered()
    }

    /// Somebody else leads now: it hears at once that this node lives, for it is in doubt of the former leader (LEASE-6).
    pub(crate) fn greet_leader(&mut self, ctx: &mut Ctx<'_>) {
        if !self.is_leader() && self.leader().is_some() && self.me_alive(ctx) {
            self.ask_for_lease(ctx);
        }
    }

    fn ask_for_lease(&mut self, ctx: &mut Ctx<'_>) {
        let now = ctx.now();
        self.lease.asked_at = now;
        let term = self.consensus.term();
        let same_term = self.lease.leader_term == term;
        let body = LeaseReq {
            term,
            silence_ns: now.since(self.former_leader(term).1).as_nanos(),
            asked_at: now.as_nanos(),
            view: self.installed.0,
            epoch: self.epochs.current,
            catalog_version: self.installed.1,
            leader_clock: if same_term { self.lease.leader_clock } else { 0 },
            heard: self.heard_lately(now),
            late_ms: self.late.threads_ms(),
        };
        let leader = self.leader();
        if now.since(self.lease.answered_at) <= self.pace().unanswered()
            && let Some(leader) = leader
        {
            return ctx.send(BlockRef::control(leader), &body);
        }
        // Who was removed is not told so by the consensus group, which has forgotten it. Anybody
        // can tell.
        let me = ctx.node();
        for node in self.alive().iter().filter(|n| *n != me) {
            ctx.send(BlockRef::control(node), &body);
        }
    }

    /// A member lives and wants to go on serving. Only the leader grants; anybody can tell a node
    /// that it is no member any more.
    pub(crate) fn on_lease_req(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let req = signal.body::<LeaseReq>();
        let node = signal.sender().node;
        let life = Incarnation::new(signal.header.incarnation);
        let is_of_former_group =
            crate::consensus::group_of(req.term) < u64::from(self.state.restarts());
        let is_member = self.state.view.is_alive(node, life);
        // REFORM-3: a member has promised to take part in this group, and has not heard yet that it was formed.
        let is_lost = !is_member || ctx.fault(Fault::BugSendPromisedAway);
        if self.is_over(node, life) || (is_of_former_group && self.joined && is_lost) {
            return self.tell_over(node, life, ctx);
        }
        self.hear_epoch(req.epoch);
        if !self.is_leader() || !is_member {
            return;
        }
        let (now, term, everywhere) = (ctx.now(), self.consensus.term(), self.everywhere);
        let lease = Duration::from_millis(self.state.view.config.lease_ms);
        // The clock of another leader, that the sender still believes in, says nothing here.
        let ours = req.term == term;
        let echo = if ours { Instant::from_nanos(req.leader_clock) } else { Instant::ZERO };
        let settled = self.consensus.has_settled();
        let is_stuck = self.takes_for_stuck(req.late_ms) && self.can_do_without(node, ctx.node());
        // SILENT-4: nor to one whose removal a person has asked for.
        let leaving = self.is_leaving(node, ctx) || self.state.view.is_declared_dead(node);
        let peer = self.peers.entry(node).or_default();
        peer.installed = (req.view, req.catalog_version);
        peer.late_ms = req.late_ms;
        peer.echoed = peer.echoed.max(echo);
        if ours {
            let heard = Instant::from_nanos(now.as_nanos().saturating_sub(req.silence_ns));
            peer.followed_another = Some(peer.followed_another.map_or(heard, |at| at.min(heard)));
        }
        if echo > Instant::ZERO && req.view == self.state.view.number {
            self.note_heard(req.heard, echo);
        }
        let peer = self.peers.entry(node).or_default();
        // LEASE-4: only who hears us counts as heard, or a node that cannot hear would hold its
        // place for ever.
        // LATE-2: nor does one whose threads are stuck. It asks on, to hear of its end.
        let is_heard = now.since(peer.echoed) <= lease && !is_stuck;
        let removing = peer.removing || leaving;
        if is_heard {
            peer.heard_at = peer.heard_at.max(Some(peer.echoed));
        }
        // VIEW-5: a doomed one gets no lease, and is removed if it stays doomed.
        let hears = is_heard && !peer.doomed;
        self.renew_own_lease(ctx);
        // LEASE-2: a leader that may have been replaced grants nothing. LEASE-5: nor does it to a
        // node whose removal may be agreed on already.
        let sure = now < self.lease.led_until && settled && !removing;
        // LEASE-6: no lease that it grants outlasts its own.
        let granted =
            if hears && sure { lease.min(self.lease.led_until.since(now)) } else { Duration::ZERO };
        if let Some(peer) = self.peers.get_mut(&node).filter(|_| granted > Duration::ZERO) {
            peer.granted_until = peer.granted_until.max(now.plus(granted).plus(margin(lease)));
        }
        let body = LeaseConf {
            asked_at: req.asked_at,
            lease_ms: granted.as_millis(),
            epoch: self.epochs.current,
            leader_clock: now.as_nanos(),
            term,
            catalog_everywhere: everywhere,
        };
        ctx.send(BlockRef::control(node), &body);
        self.count_installed(ctx);
    }

    pub(crate) fn on_lease_conf(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let conf = signal.body::<LeaseConf>();
        self.hear_epoch(conf.epoch);
        if self.is_leader() || conf.term != self.consensus.term() {
            return;
        }
        let first = self.lease.leader_term != conf.term;
        if first {
            (self.lease.former, self.lease.former_heard_at) = self.former_leader(conf.term);
        }
        self.lease.followed = signal.sender().node;
        self.lease.answered_at = ctx.now();
        // A short one is worth as little: the leader needs an echo soon.
        self.lease.refused = conf.lease_ms < 2 * self.pace().renew().as_millis();
        self.lease.leader_clock = self.lease.leader_clock.max(conf.leader_clock);
        if first {
            self.lease.leader_clock = conf.leader_clock;
        }
        self.lease.leader_term = conf.term;
        // LEASE-1: counted from when it was asked for.
        let until = Instant::from_nanos(conf.asked_at).plus(Duration::from_millis(conf.lease_ms));
        self.lease.until = self.lease.until.max(until);
        self.everywhere = self.everywhere.max(conf.catalog_everywhere);
        if first {
            // Echo at once, so that a new leader need not wait for the next round.
            self.ask_for_lease(ctx);
        }
        self.tell_lease(ctx);
        self.answer_changes(ctx);
    }

    /// When the leader has lived, if this node is it: it has answered then.
    pub(crate) fn lease_answered_at(&self, node: NodeId) -> Instant {
        if self.lease.followed == node { self.lease.answered_at } else { Instant::ZERO }
    }

    /// Who led in a term before this one, as far as it was heard here, and when it last was.
    pub(crate) fn former_leader(&self, term: u64) -> (NodeId, Instant) {
        let lease = &self.lease;
        if lease.leader_term == term {
            (lease.former, lease.former_heard_at)
        } else {
            // Whoever has led here itself has been heard until then.
            (lease.followed, lease.answered_at.max(lease.former_heard_at))
        }
    }

    /// Leader: what is known of every voter, in order; of a gone one that counts as agreeing (VIEW-8) by
    /// `stand_in`.
    fn of_voters(
        &self,
        (own, stand_in): (Instant, Instant),
        of: impl Fn(Option<&Peer>) -> Instant,
    ) -> Vec<Instant> {
        let agreeing = self.stand_in();
        let voters = self.consensus.voters().into_iter();
        let mut all: Vec<Instant> = voters
            .map(|id| {
                let life = id as u32;
                let peer = self.peers.get(&NodeId::new((id >> 32) as u16));
                match id {
                    id if id == self.consensus.id() => own,
                    id if Some(id) == agreeing => stand_in,
                    _ => of(peer.filter(|p| p.incarnation.get() == life)),
                }
            })
            .collect();
        all.sort_unstable();
        all
    }

    /// Leader: LEASE-6. By then a majority had heard earlier leaders for the last time, if they have told.
    pub(crate) fn earlier_leaders_heard_at(&self, now: Instant) -> Instant {
        let own = self.former_leader(self.consensus.term()).1;
        let told = |peer: Option<&Peer>| peer.and_then(|p| p.followed_another).unwrap_or(now);
        let heard = self.of_voters((own, Instant::ZERO), told);
        heard.get(heard.len() / 2).copied().unwrap_or(now)
    }

    /// Leader: LEASE-2. Its own lease counts from a moment at which a majority surely followed it.
    pub(crate) fn renew_own_lease(&mut self, ctx: &mut Ctx<'_>) {
        if !self.consensus.has_settled() {
            // LEASE-5: an earlier leader may have asked for our removal.
            return;
        }
        self.rise_above_earlier_epochs();
        let now = ctx.now();
        let echoed = |peer: Option<&Peer>| peer.map_or(Instant::ZERO, |p| p.echoed);
        let followed = self.of_voters((now, now), echoed);
        let majority = followed.len() / 2;
        let Some(since) = followed.iter().nth_back(majority) else { return };
        if *since > Instant::ZERO {
            let lease = Duration::from_millis(self.state.view.config.lease_ms);
            self.lease.led_until = self.lease.led_until.max(since.plus(lease));
            self.lease.until = self.lease.until.max(self.lease.led_until);
        }
    }

    /// LEASE-3: it is the only replica of all its data, and has had a lease.
    pub(crate) fn serves_alone(&self, ctx: &Ctx<'_>) -> bool {
        let had_lease = self.lease.until > Instant::ZERO;
        let alone = self.state.view.group_of_node(ctx.node()).is_some_and(
            |(_, g)| matches!(g.replicas[..], [only] if only.node == ctx.node() && only.in_sync),
        );
        had_lease && alone
    }

    /// Until when this node may serve.
    pub(crate) fn serves_until(&self, ctx: &Ctx<'_>) -> Instant {
        // LEASE-3: nobody can take over from the only replica of all its data. It has had a lease, and with
        // that an epoch in which it may commit (EPOCH-6).
        let declared = self.state.view.is_declared_dead(ctx.node());
        match (self.had_all_links(ctx), self.serves_alone(ctx) && !declared) {
            (false, _) => Instant::ZERO,
            // Not for ever: a thread may hear late that the node is not alone any more.
            (true, true) => ctx.now().plus(Duration::from_millis(self.state.view.config.lease_ms)),
            (true, false) => self.lease.until,
        }
    }

    /// Tells the blocks of this node until when they may serve.
    pub(crate) fn tell_lease(&mut self, ctx: &mut Ctx<'_>) {
        let until = self.serves_until(ctx);
        // RESTART-4: the logs of former lives are left alone until the disk knows that this one is a member.
        let seal =
            if self.keep.knows_this_life() { self.epochs.disk.seal } else { Epoch::default() };
        let body = LeaseOrd {
            valid_until: until.as_nanos(),
            epoch: self.epochs.current,
            complete: self.epochs.complete,
            silent: self.silent,
            seal,
            commands: self.epochs.disk.commands,
            durable: self.epochs.disk.durable,
            closing: self.closing(),
        };
        // Nobody is woken for what it knows, while more than half of the lease that it knows is left.
        let known = LeaseOrd { valid_until: self.lease.told.valid_until, ..body };
        let left = Instant::from_nanos(known.valid_until).since(ctx.now()).as_millis();
        let extends = body.valid_until >= known.valid_until;
        if self.lease.told == known && extends && 2 * left > self.state.view.config.lease_ms {
            return;
        }
        self.lease.told = body;
        for block in self.blocks.keys() {
            ctx.send(*block, &body);
        }
    }

    /// Leader: VIEW-9. Whoever hears nobody must not take the others for silent: a majority has followed
    /// it lately.
    pub(crate) fn may_judge(&self, now: Instant) -> bool {
        self.lease.led_until.since(now).as_millis() >= self.state.view.config.lease_ms / 2
    }

    /// True if no majority has followed this leader for so long that it can decide nothing.
    fn has_lost_office(&self, now: Instant) -> bool {
        let lease = Duration::from_millis(self.state.view.config.lease_ms);
        let elected = self.became_leader_at.unwrap_or(now).plus(lease);
        let renew = self.pace().renew();
        now >= self.lease.led_until.max(elected).plus(renew).plus(renew)
    }

    /// This node begins or ends to lead.
    pub(crate) fn turn_leader(&mut self, was_leader: bool, now: Instant) {
        self.lease.led_until = Instant::ZERO;
        if was_leader {
            // Nobody else has led since this node did.
            self.lease.followed = NodeId::default();
            self.lease.former_heard_at = now;
        }
    }

    /// Such a leader may still be heard: it says that it leads no more, and the others need not find
    /// out.
    fn give_up_leadership(&mut self, ctx: &mut Ctx<'_>) {
        let body = LeaderLeftOrd { term: self.consensus.term() };
        let me = ctx.node();
        self.consensus.step_down();
        // What it has still said as leader goes first.
        self.run_consensus(ctx);
        for node in self.alive().iter().filter(|n| *n != me) {
            ctx.send(BlockRef::control(node), &body);
        }
    }

    pub(crate) fn on_leader_left_ord(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let term = signal.body::<LeaderLeftOrd>().term;
        let life = Incarnation::new(signal.header.incarnation);
        if term != self.consensus.term() {
            return;
        }
        if self.consensus.forget_leader(signal.sender().node, life) {
            self.plan_campaign_soon(ctx);
        }
    }

    /// True if nobody else has the data of this node: a view without it would lose them (VIEW-1).
    pub(crate) fn is_last_in_sync(&self, node: NodeId) -> bool {
        let view = &self.state.view;
        let others =
            |g: &lats_catalog::Group| g.replicas.iter().any(|r| r.in_sync && r.node != node);
        view.is_in_sync(node) && view.group_of_node(node).is_none_or(|(_, g)| !others(g))
    }

    /// Leader: proposes a view without this node. Why is in its log.
    pub(crate) fn remove(&mut self, node: NodeId, why: &str, ctx: &mut Ctx<'_>) {
        let Some(incarnation) = self.state.view.incarnation(node) else { return };
        if self.consensus.may_change_voters() && !self.all_have_closed(ctx) {
            // Before it is proposed: it may be agreed on at once.
            self.peers.entry(node).or_default().removing = true;
            let certified = self.gone.get(&node) == Some(&incarnation);
            let text = format!(
                "the cluster is to go on without node {node}, its life {incarnation}: {why}"
            );
            ctx.send_with(BlockRef::shell(ctx.node()), &NoteOrd { loud: 1 }, &[text.as_bytes()]);
            if !self.propose(&Command::Remove { node, incarnation, certified }, ctx)
                && let Some(peer) = self.peers.get_mut(&node)
            {
                peer.removing = false;
            }
        }
    }

    /// A view without them is installed: their links are closed.
    pub(crate) fn forget_links(&self, ctx: &mut Ctx<'_>) {
        let dead = self.state.view.members.iter().filter(|m| !m.alive);
        for member in dead {
            let body = CloseLinkOrd {
                node: u64::from(member.node.get()),
                incarnation: u64::from(member.incarnation.get()),
            };
            ctx.send(BlockRef::shell(ctx.node()), &body);
        }
    }
}
