//! Links between nodes: what was lost with them, who has to go for it, whose process is gone
//! (VIEW-5).
//!
//! Two data nodes work with each other over one link only (of two connections: THREAD-5). Signals that were lost with it are
//! never sent again: instead one of the two lives ends, and its successor is filled anew.

use crate::{Control, TIMER_CAMPAIGN, membership::EARLY};
use lats_base::{Duration, Incarnation, Instant, NodeId, NodeSet};
use lats_kernel::{Ctx, Fault};
use lats_signals::{
    BlockRef, Signal,
    control::{
        GONE, HeartbeatOrd, LOST, LaneProbeOrd, LinkDownRep, LinkUpRep, NoteOrd, SuspectRep,
    },
};

/// How often the lane of rows is probed, and how late threads are that explain why it passes nothing (LATE-5).
const PROBE: Duration = Duration::from_millis(1_000);
const EXPLAINS_MS: u64 = 1_000;
/// The witness lets data nodes stand for election first.
const WITNESS_PATIENCE: Duration = Duration::from_millis(15);

impl Control {
    pub(crate) fn on_link_up_rep(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let body = signal.body::<LinkUpRep>();
        let (node, life) =
            (NodeId::new(body.node as u16), Incarnation::new(body.incarnation as u32));
        self.welcome_founder(node, life, ctx.now());
        let peer = self.peers.entry(node).or_default();
        (peer.link, peer.link_nonce) = (life, body.nonce);
        peer.had_link = peer.had_link.max(life);
        self.tell_lease(ctx);
        if self.is_leader() && self.state.view.is_alive(node, life) {
            // What it was told before is lost. It has little time to answer a new leader (LEASE-6).
            self.consensus.ping();
            self.run_consensus(ctx);
        }
    }

    /// A link has ended, or only a connection of it. That proves nothing, and neither does a port that refuses: networks do both in the
    /// name of processes that live (DEATH-1).
    pub(crate) fn on_link_down_rep(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let body = signal.body::<LinkDownRep>();
        let node = NodeId::new(body.node as u16);
        let life = Incarnation::new(body.incarnation as u32);
        let peer = self.peers.entry(node).or_default();
        if peer.link == life {
            peer.link = Incarnation::default();
        }
        if body.lost == 0 {
            return;
        }
        peer.lost_link = peer.lost_link.max(life);
        if self.joined {
            self.watch_links(ctx);
        }
    }

    /// The end of this life is certified.
    pub(crate) fn is_gone(&mut self, node: NodeId, life: Incarnation, ctx: &mut Ctx<'_>) {
        if self.state.view.is_alive(node, life) && self.gone.insert(node, life) != Some(life) {
            let text =
                format!("the process of node {node}, its life {life}, has ended for certain");
            let shell = BlockRef::shell(ctx.node());
            ctx.send_with(shell, &NoteOrd { loud: 0 }, &[text.as_bytes()]);
        }
        if self.consensus.forget_leader(node, life) || self.leader().is_none() {
            self.plan_campaign_soon(ctx);
        }
        self.pursue_the_gone(ctx);
    }

    pub(crate) fn plan_campaign_soon(&mut self, ctx: &mut Ctx<'_>) {
        let patience = if self.roles_data { Duration::ZERO } else { WITNESS_PATIENCE };
        self.plan_campaign(patience, ctx);
    }

    fn plan_campaign(&mut self, span: Duration, ctx: &mut Ctx<'_>) {
        if !self.campaign_planned {
            self.campaign_planned = true;
            ctx.after(span, TIMER_CAMPAIGN);
        }
    }

    /// Stands for election while nobody leads. Voters that have not noticed yet that the leader is
    /// gone refuse, so it stands again soon.
    pub(crate) fn campaign(&mut self, ctx: &mut Ctx<'_>) {
        self.campaign_planned = false;
        let takes_part = !self.leaves_the_group() && !self.stands_aside(ctx);
        let may = self.joined && self.me_alive(ctx) && takes_part;
        if self.leader().is_some() || !may {
            return;
        }
        if self.gives_way_as_stuck(ctx.node()) {
            return;
        }
        self.consensus.campaign();
        self.run_consensus(ctx);
        if self.leader().is_none() {
            // Not in step with others who do the same.
            let span = Duration::from_micros(ctx.random().between(1_000, 4_000));
            self.plan_campaign(span, ctx);
        }
    }

    /// REST-3, with every tick, for as long as elections take: voters may have refused because their time had not come yet.
    pub(crate) fn stand_again(&mut self, ctx: &Ctx<'_>) {
        let waits = self.consensus.is_about_to_stand()
            && self.is_leaderless_for_long(ctx.now()) == Some(false);
        let may = self.joined && self.me_alive(ctx) && !self.leaves_the_group();
        if waits && may && !self.stands_aside(ctx) && !self.gives_way_as_stuck(ctx.node()) {
            self.consensus.campaign();
        }
    }

    /// Sees to it that members whose process is gone leave the view, whoever leads.
    pub(crate) fn pursue_the_gone(&mut self, ctx: &mut Ctx<'_>) {
        let view = &self.state.view;
        self.gone.retain(|node, life| view.is_alive(*node, *life));
        for (node, life) in self.gone.clone() {
            if self.is_leader() {
                self.remove(node, "its process has ended for certain", ctx);
            } else {
                self.complain((node, life), GONE, ctx);
            }
        }
    }

    /// Sends heartbeats to the other data nodes, and complains of those that signals were lost to
    /// or that do not hear us.
    pub(crate) fn watch_links(&mut self, ctx: &mut Ctx<'_>) {
        if !self.roles_data || !self.me_alive(ctx) {
            return;
        }
        let now = ctx.now();
        let lease = Duration::from_millis(self.state.view.config.lease_ms);
        let beat = now.plus(EARLY).since(self.beat_at) >= self.pace().renew();
        if beat {
            self.beat_at = now;
        }
        let probes = beat && now.plus(EARLY).since(self.probed_at) >= PROBE;
        if probes {
            self.probed_at = now;
        }
        let (stalled_after, late_ms) = (self.stuck_after(), self.late.threads_ms());
        let me = ctx.node();
        for node in self.data_nodes().into_iter().filter(|n| *n != me) {
            let Some(life) = self.state.view.incarnation(node) else { continue };
            let is_awaited = self.awaits_founder(node, self.begun_at, now);
            let peer = self.peers.entry(node).or_default();
            let lost = peer.lost_link >= life;
            let is_silent = now.since(peer.fresh_at) > lease;
            if is_silent || late_ms.max(peer.late_ms) >= EXPLAINS_MS {
                // LATE-5: a link that passes nothing says nothing of that lane, and threads that are late do not hand on what comes by it.
                peer.rows_passed_at = now;
            }
            let stalls = now.since(peer.rows_passed_at) > stalled_after;
            let broken = lost || stalls || is_silent;
            peer.broken_since = broken.then(|| peer.broken_since.unwrap_or(now));
            if beat {
                let (clock, echo, late_ms) = (now.as_nanos(), peer.clock, self.late.now_ms());
                let body = HeartbeatOrd { clock, echo, late_ms, rows_echo: peer.rows_clock };
                ctx.send(BlockRef::control(node), &body);
            }
            if probes {
                ctx.send(BlockRef::control(node), &LaneProbeOrd { clock: now.as_nanos() });
            }
            if is_awaited {
                continue;
            }
            if broken && self.is_leader() {
                self.note_broken((node, me), lost, now);
            } else if broken {
                self.complain((node, life), if lost { LOST } else { 0 }, ctx);
            }
        }
    }

    pub(crate) fn on_heartbeat_ord(&mut self, signal: &Signal<'_>) {
        let body = signal.body::<HeartbeatOrd>();
        let node = signal.sender().node;
        let life = Incarnation::new(signal.header.incarnation);
        if !self.state.view.is_alive(node, life) {
            return;
        }
        let peer = self.peers.entry(node).or_default();
        peer.clock = peer.clock.max(body.clock);
        peer.late_ms = body.late_ms;
        let passed_at = Instant::from_nanos(body.rows_echo);
        peer.rows_passed_at = peer.rows_passed_at.max(passed_at);
        let echoed = Instant::from_nanos(body.echo);
        peer.fresh_at = peer.fresh_at.max(echoed);
        peer.lived_at = peer.lived_at.max(echoed);
    }

    /// LATE-5: the lane of rows has passed something; the next heartbeat says so.
    pub(crate) fn on_lane_probe_ord(&mut self, signal: &Signal<'_>) {
        let (node, clock) = (signal.sender().node, signal.body::<LaneProbeOrd>().clock);
        let life = Incarnation::new(signal.header.incarnation);
        if self.state.view.is_alive(node, life) {
            let peer = self.peers.entry(node).or_default();
            peer.rows_clock = peer.rows_clock.max(clock);
        }
    }

    /// The data nodes that have answered our heartbeats lately.
    pub(crate) fn heard_lately(&self, now: Instant) -> NodeSet {
        let lately = self.pace().heard_lately();
        let answered = |n: &NodeId| {
            let lived_at = self.peers.get(n).map(|p| p.lived_at).unwrap_or_default();
            lived_at > Instant::ZERO && now.since(lived_at) <= lately
        };
        self.data_nodes().into_iter().filter(answered).collect()
    }

    /// Leader: a follower has echoed our clock, and says whom it has heard. They have lived since a bit before that echo.
    pub(crate) fn note_heard(&mut self, heard: NodeSet, echo: Instant) {
        let lately = self.pace().heard_lately();
        let lived_at = echo.as_nanos().saturating_sub(lately.as_nanos());
        for node in heard.iter() {
            if let Some(peer) = self.peers.get_mut(&node) {
                peer.lived_at = peer.lived_at.max(Instant::from_nanos(lived_at));
            }
        }
    }

    /// Leader: true if it is proved that the node has lived after this moment: it has answered us, or somebody who follows us.
    fn has_lived_since(&self, node: NodeId, since: Instant, me: NodeId) -> bool {
        let peer = self.peers.get(&node).copied().unwrap_or_default();
        node == me || peer.echoed.max(peer.lived_at) > since
    }

    fn complain(&self, (node, life): (NodeId, Incarnation), what: u64, ctx: &mut Ctx<'_>) {
        let Some(leader) = self.leader().filter(|l| *l != ctx.node()) else { return };
        let body =
            SuspectRep { node: u64::from(node.get()), incarnation: u64::from(life.get()), what };
        ctx.send(BlockRef::control(leader), &body);
    }

    pub(crate) fn on_suspect_rep(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let body = signal.body::<SuspectRep>();
        let node = NodeId::new(body.node as u16);
        let life = Incarnation::new(body.incarnation as u32);
        let from = signal.sender().node;
        let member = self.state.view.is_alive(from, Incarnation::new(signal.header.incarnation));
        if !self.is_leader() || !member || !self.state.view.is_alive(node, life) {
            return;
        }
        if body.what == GONE {
            self.gone.insert(node, life);
            self.pursue_the_gone(ctx);
        } else {
            self.note_broken((node, from), body.what == LOST, ctx.now());
            self.doom(ctx);
        }
    }

    /// Leader: the link between these two is broken. The first complaint stays the first.
    fn note_broken(&mut self, (suspect, complainer): (NodeId, NodeId), lost: bool, now: Instant) {
        self.forget_mended(now);
        let of_last = self.is_last_in_sync(suspect) || self.is_last_in_sync(complainer);
        let same = |b: &&mut Broken| {
            (b.suspect, b.complainer) == (suspect, complainer)
                || (b.suspect, b.complainer) == (complainer, suspect)
        };
        match self.broken.iter_mut().find(same) {
            Some(broken) => {
                broken.heard_at = now;
                broken.lost |= lost;
            }
            None => self.broken.push(Broken {
                suspect,
                complainer,
                lost,
                of_last,
                since: now,
                heard_at: now,
                answered_at: None,
            }),
        }
    }

    fn forget_mended(&mut self, now: Instant) {
        let (view, lasts) = (&self.state.view, self.pace().complaint_lasts());
        let alive = |n: NodeId| view.incarnation(n).is_some();
        self.broken
            .retain(|b| now.since(b.heard_at) < lasts && alive(b.suspect) && alive(b.complainer));
    }

    /// Leader: true if the node has followed us lately. One that hears nobody complains as loudly as
    /// the others.
    fn hears_us(&self, node: NodeId, ctx: &Ctx<'_>) -> bool {
        let lately = Duration::from_millis(self.state.view.config.lease_ms / 2);
        let echoed = self.peers.get(&node).map(|p| p.echoed).unwrap_or_default();
        node == ctx.node() || ctx.now().since(echoed) <= lately
    }

    /// Leader: notes of which broken links both ends are proved to have lived on. That nobody complains of an end is no
    /// proof: whoever was slow complains late.
    fn note_answers(&mut self, ctx: &mut Ctx<'_>) {
        if self.broken.is_empty() {
            return;
        }
        let (me, now) = (ctx.node(), ctx.now());
        let of_data = self.data_nodes();
        let by_silence = ctx.fault(Fault::BugAnsweredBySilence);
        let silent: NodeSet =
            of_data.into_iter().filter(|n| by_silence && self.is_unheard_by_all(*n, ctx)).collect();
        let lease = Duration::from_millis(self.state.view.config.lease_ms);
        let mut links = std::mem::take(&mut self.broken);
        for broken in links.iter_mut().filter(|b| b.answered_at.is_none()) {
            let since = broken.since;
            let late = by_silence && now.since(since) > lease;
            let lives =
                |n: NodeId| self.has_lived_since(n, since, me) || (late && !silent.contains(n));
            if lives(broken.suspect) && lives(broken.complainer) {
                broken.answered_at = Some(now);
            }
        }
        self.broken = links;
    }

    /// Leader: true of a last replica that this broken link says nothing about: it has not been heard of since, and
    /// nobody else hears it either. If it has died there is nothing to be chosen, so nobody goes for the link.
    fn may_have_died(&self, node: NodeId, broken: &Broken, ctx: &Ctx<'_>) -> bool {
        let (me, now, view) = (ctx.node(), ctx.now(), &self.state.view);
        let last = self.is_last_in_sync(node);
        if node == me || !(last || broken.of_last) {
            return false;
        }
        if let Some(answered_at) = broken.answered_at {
            // It lives. If it was only slow, the complaints end now. If it was cut off, they end when packets are sent
            // again: TCP may wait as long for that as nothing has come through, and a bit. A link that is lost heals never.
            let silent_ms = 2 * answered_at.since(broken.since).as_millis();
            let resent_in = Duration::from_millis(silent_ms).min(RESENT_IN_MAX);
            let cut_off = if broken.lost { Duration::ZERO } else { resent_in };
            // Heartbeats come through again in this time when the other end goes on.
            return broken.heard_at < answered_at.plus(self.pace().heard_lately().max(cut_off));
        }
        if !last {
            return false;
        }
        let lease = Duration::from_millis(view.config.lease_ms);
        let leader_serves = !self.roles_data || view.is_in_sync(me);
        let lives = self.has_lived_since(node, broken.since, me);
        now.since(broken.since) <= lease || (leader_serves && !lives)
    }

    /// Leader: all data nodes complain of this one, but for those that cannot be heard themselves.
    pub(crate) fn is_unheard_by_all(&self, node: NodeId, ctx: &Ctx<'_>) -> bool {
        let complains = |n: NodeId| self.broken.iter().any(|b| b.is_between(n, node));
        let others = self.data_nodes().into_iter().filter(|n| *n != node);
        others.filter(|n| self.hears_us(*n, ctx)).all(complains)
    }

    /// Leader: of each broken link, one end gets no lease any more, and is removed when its last one
    /// has run out. Nobody is removed for a link to somebody who goes anyway.
    pub(crate) fn doom(&mut self, ctx: &mut Ctx<'_>) {
        self.forget_mended(ctx.now());
        self.note_answers(ctx);
        let judges = self.may_judge(ctx.now());
        let (me, view) = (ctx.node(), &self.state.view);
        let mut doomed = NodeSet::EMPTY;
        for broken in &self.broken {
            let (suspect, complainer) = (broken.suspect, broken.complainer);
            if [suspect, complainer].iter().any(|n| self.may_have_died(*n, broken, ctx)) {
                continue;
            }
            if doomed.contains(suspect) || doomed.contains(complainer) {
                continue;
            }
            // A replica with the only copy of its data stays; one that does not hear the leader goes
            // first, then one that is being filled; the leader stays if it can.
            let worth = |n: NodeId| {
                let last = self.is_last_in_sync(n);
                (last, self.hears_us(n, ctx), view.is_in_sync(n), n == me, n == complainer)
            };
            let victim = if worth(suspect) < worth(complainer) { suspect } else { complainer };
            if !self.is_last_in_sync(victim) {
                doomed.insert(victim);
            }
        }
        for (node, peer) in &mut self.peers {
            // Who cannot judge dooms nobody, and may have to let go.
            peer.doomed = doomed.contains(*node) && (judges || peer.doomed);
        }
        if judges && doomed.contains(me) && self.is_leader() {
            self.leave("signals of this node were lost; a new process can join", ctx);
        }
    }
}

/// A link between two data nodes that has lost signals, or that passes none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Broken {
    suspect: NodeId,
    complainer: NodeId,
    /// Signals were lost with it. Else it passes none.
    lost: bool,
    /// One of the ends was a last replica then. (Another one may be filled from it meanwhile.)
    of_last: bool,
    /// When the first complaint came, and when the last one did.
    since: Instant,
    heard_at: Instant,
    /// When it was first known that both ends have lived on without the link.
    answered_at: Option<Instant>,
}

impl Broken {
    fn is_between(&self, a: NodeId, b: NodeId) -> bool {
        [(a, b), (b, a)].contains(&(self.suspect, self.complainer))
    }

    /// True if this holds for one of its ends.
    pub(crate) fn is_about(&self, is_meant: impl Fn(NodeId) -> bool) -> bool {
        is_meant(self.suspect) || is_meant(self.complainer)
    }
}

/// A link that brings nothing for so long after its ends were heard again is taken for lost.
const RESENT_IN_MAX: Duration = Duration::from_millis(30_000);
