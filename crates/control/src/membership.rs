//! Who lives: links, leases, suspicion, joining (VIEW-2, VIEW-3, LEASE-1 to LEASE-3).

use crate::{Control, JOIN_RETRY, Start, TIMER_CAMPAIGN, TIMER_JOIN, state::Command};
use lats_base::{Duration, Epoch, Incarnation, Instant, NodeId, RefCode};
use lats_catalog::Member;
use lats_kernel::Ctx;
use lats_signals::{
    BlockRef, Signal,
    control::{
        CloseLinkOrd, JoinRef, JoinReq, LeaseConf, LeaseOrd, LeaseReq,
        LinkDownRep, LinkUpRep, StopOrd, SuspectRep,
    },
    copy::FragmentsSyncedRep,
};

/// This node's right to serve.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lease {
    /// Until when, on this node's clock.
    until: Instant,
    asked_at: Instant,
    /// The clock of the leader that answered last, to be echoed, and its term.
    leader_clock: u64,
    leader_term: u64,
    told: Instant,
}

/// How often the lease is renewed; the lease must survive two lost renewals.
const RENEW: Duration = Duration::from_millis(50);

impl Control {
    pub(crate) fn membership_tick(&mut self, ctx: &mut Ctx<'_>) {
        if !self.joined || !self.me_alive(ctx) {
            return;
        }
        if self.is_leader() {
            self.epoch = Epoch::new(self.epoch.get() + 1);
            self.renew_own_lease(ctx);
            self.remove_the_silent(ctx);
        } else if ctx.now().since(self.lease.asked_at) >= RENEW {
            self.ask_for_lease(ctx);
        }
        self.pursue_the_gone(ctx);
        self.tell_lease(ctx);
    }

    fn ask_for_lease(&mut self, ctx: &mut Ctx<'_>) {
        let Some(leader) = self.leader() else { return };
        self.lease.asked_at = ctx.now();
        let same_term = self.lease.leader_term == self.consensus.term();
        let body = LeaseReq {
            asked_at: ctx.now().as_nanos(),
            view: self.installed.0,
            epoch: self.epoch,
            catalog_version: self.installed.1,
            leader_clock: if same_term { self.lease.leader_clock } else { 0 },
        };
        ctx.send(BlockRef::control(leader), &body);
    }

    /// Leader: a member lives and wants to go on serving.
    pub(crate) fn on_lease_req(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let req = signal.body::<LeaseReq>();
        let node = signal.sender().node;
        let life = Incarnation::new(signal.header.incarnation);
        self.epoch = self.epoch.max(req.epoch);
        if !self.is_leader() {
            return;
        }
        if !self.state.view.is_alive(node, life) {
            // It was removed and does not know it.
            let body = JoinRef { token: 0, code: u64::from(RefCode::StaleView.number()) };
            ctx.send(BlockRef::control(node), &body);
            return;
        }
        let now = ctx.now();
        let lease_ms = self.state.view.config.lease_ms;
        let own_lease = self.lease.until;
        let everywhere = self.everywhere;
        let term = self.consensus.term();
        let peer = self.peers.entry(node).or_default();
        if peer.doomed {
            return;
        }
        peer.incarnation = life;
        peer.heard_at = Some(now);
        peer.echoed = peer.echoed.max(Instant::from_nanos(req.leader_clock));
        peer.installed = (req.view, req.catalog_version);
        // LEASE-2: a leader that may have been replaced grants nothing. (Its very first grants
        // carry no lease: they only start the echo.)
        let granted_ms = if now < own_lease { lease_ms } else { 0 };
        peer.granted_until = peer.granted_until.max(now.plus(Duration::from_millis(granted_ms)));
        let body = LeaseConf {
            asked_at: req.asked_at,
            lease_ms: granted_ms,
            epoch: self.epoch,
            leader_clock: now.as_nanos(),
            term,
            catalog_everywhere: everywhere,
        };
        ctx.send(BlockRef::control(node), &body);
        self.count_installed(ctx);
    }

    pub(crate) fn on_lease_conf(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let conf = signal.body::<LeaseConf>();
        self.epoch = self.epoch.max(conf.epoch);
        if self.is_leader() || conf.term != self.consensus.term() {
            return;
        }
        let first = self.lease.leader_term != conf.term || conf.lease_ms == 0;
        self.lease.leader_clock = conf.leader_clock;
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

    /// Leader: LEASE-2. Its own lease counts from a moment at which a majority surely followed it.
    fn renew_own_lease(&mut self, ctx: &mut Ctx<'_>) {
        let voters = self.consensus.voters();
        let mut followed: Vec<Instant> = voters
            .iter()
            .map(|id| {
                let node = NodeId::new((id >> 32) as u16);
                if *id == self.consensus.id() {
                    return ctx.now();
                }
                let life = *id as u32;
                let peer = self.peers.get(&node).filter(|p| p.incarnation.get() == life);
                peer.map_or(Instant::ZERO, |p| p.echoed)
            })
            .collect();
        followed.sort_unstable();
        followed.reverse();
        let majority = voters.len() / 2;
        let Some(since) = followed.get(majority) else { return };
        if *since > Instant::ZERO {
            let lease = Duration::from_millis(self.state.view.config.lease_ms);
            self.lease.until = self.lease.until.max(since.plus(lease));
        }
    }

    /// Tells the blocks of this node until when they may serve.
    pub(crate) fn tell_lease(&mut self, ctx: &mut Ctx<'_>) {
        // LEASE-3: nobody can take over from the only replica of all its data.
        let alone = self
            .state
            .view
            .group_of_node(ctx.node())
            .is_some_and(|(_, g)| g.replicas.len() == 1 && g.replicas[0].node == ctx.node());
        let until = if alone { Instant::from_nanos(u64::MAX) } else { self.lease.until };
        self.lease.told = until;
        let body = LeaseOrd { valid_until: until.as_nanos(), epoch: self.epoch };
        for block in self.blocks.keys() {
            ctx.send(*block, &body);
        }
    }

    /// Leader: removes members that have been silent until every lease that they may believe in
    /// has run out (VIEW-2).
    fn remove_the_silent(&mut self, ctx: &mut Ctx<'_>) {
        let Some(leader_since) = self.became_leader_at else { return };
        let lease = Duration::from_millis(self.state.view.config.lease_ms);
        let old_leases_over = leader_since.plus(lease).plus(lease);
        let now = ctx.now();
        if now < old_leases_over || now >= self.lease.until {
            return;
        }
        let me = ctx.node();
        for node in self.alive().iter().filter(|n| *n != me) {
            let peer = self.peers.entry(node).or_default();
            let heard = peer.heard_at.unwrap_or(leader_since);
            let silent = now.since(heard) > lease && now >= peer.granted_until;
            if silent {
                self.remove(node, ctx);
            }
        }
    }

    fn remove(&mut self, node: NodeId, ctx: &mut Ctx<'_>) {
        let Some(incarnation) = self.state.view.incarnation(node) else { return };
        self.propose(&Command::Remove { node, incarnation }, ctx);
    }

    pub(crate) fn on_link_up_rep(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let body = signal.body::<LinkUpRep>();
        let node = NodeId::new(body.node as u16);
        let peer = self.peers.entry(node).or_default();
        peer.link = true;
        if !self.joined {
            self.ask_to_join(ctx);
        }
    }

    /// A link is closed. That alone proves nothing; a port that refuses does.
    pub(crate) fn on_link_down_rep(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let body = signal.body::<LinkDownRep>();
        let node = NodeId::new(body.node as u16);
        self.peers.entry(node).or_default().link = false;
        let life = self.state.view.incarnation(node);
        // The refusal is about the life that we had a link to, or the one that we know of.
        let same = body.incarnation == 0 || life.is_some_and(|l| l.get() == body.incarnation as u32);
        let Some(life) = life.filter(|_| same) else { return };
        if body.gone != 0 {
            self.gone.insert(node, life);
            if self.leader() == Some(node) {
                self.consensus.leader_is_gone();
                // A data node stands at once; the witness only if nobody does.
                let patience = if self.roles_data { 0 } else { 15 };
                ctx.after(Duration::from_millis(patience), TIMER_CAMPAIGN);
            }
            self.pursue_the_gone(ctx);
        } else if body.incarnation != 0 && self.roles_data && self.holds_data(node) {
            self.suspect(node, life, ctx);
        }
    }

    fn holds_data(&self, node: NodeId) -> bool {
        self.state.view.member(node).is_some_and(|m| m.roles.data)
    }

    /// Sees to it that members whose process is gone leave the view, whoever leads.
    pub(crate) fn pursue_the_gone(&mut self, ctx: &mut Ctx<'_>) {
        let view = &self.state.view;
        self.gone.retain(|node, life| view.is_alive(*node, *life));
        for (node, life) in self.gone.clone() {
            if self.is_leader() {
                self.remove(node, ctx);
            } else if let Some(leader) = self.leader().filter(|l| *l != node) {
                let body = SuspectRep {
                    node: u64::from(node.get()),
                    incarnation: u64::from(life.get()),
                    gone: 1,
                };
                ctx.send(BlockRef::control(leader), &body);
            }
        }
    }

    /// VIEW-5: signals between two data nodes were lost with their link, so one of them has to go.
    fn suspect(&mut self, node: NodeId, life: Incarnation, ctx: &mut Ctx<'_>) {
        match self.leader() {
            Some(leader) if leader == ctx.node() => self.doom(node, ctx.node()),
            Some(leader) => {
                let body = SuspectRep {
                    node: u64::from(node.get()),
                    incarnation: u64::from(life.get()),
                    gone: 0,
                };
                ctx.send(BlockRef::control(leader), &body);
            }
            None => {}
        }
    }

    /// Leader: of the two ends of a lost link, the one that is not the leader gets no lease any
    /// more, and is removed when its last one has run out. The first complaint counts.
    fn doom(&mut self, suspect: NodeId, complainer: NodeId) {
        if self.peers.get(&complainer).is_some_and(|p| p.doomed) {
            return;
        }
        let victim = if self.leader() == Some(suspect) { complainer } else { suspect };
        self.peers.entry(victim).or_default().doomed = true;
    }

    pub(crate) fn on_suspect_rep(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let body = signal.body::<SuspectRep>();
        let node = NodeId::new(body.node as u16);
        let same = self.state.view.incarnation(node).map(|l| u64::from(l.get()));
        if !self.is_leader() || same != Some(body.incarnation) {
            return;
        }
        if body.gone != 0 {
            self.remove(node, ctx);
        } else {
            self.doom(node, signal.sender().node);
        }
    }

    /// Leader, right after winning an election: those that were found gone before are removed now.
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

    pub(crate) fn ask_to_join(&mut self, ctx: &mut Ctx<'_>) {
        let Start::Join { member, seed } = &self.start else { return };
        if self.joined {
            return;
        }
        let token = u64::from(member.incarnation.get());
        let bytes = lats_catalog::encode(member);
        ctx.send_with(BlockRef::control(*seed), &JoinReq { token }, &[&bytes]);
        ctx.after(JOIN_RETRY, TIMER_JOIN);
    }

    pub(crate) fn on_join_req(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let req = signal.body::<JoinReq>();
        let Ok(member) = lats_catalog::decode::<Member>(signal.payload()) else { return };
        let known = self.state.view.member(member.node).map(|m| m.incarnation);
        if self.state.view.is_alive(member.node, member.incarnation) {
            return;
        }
        if known.is_none_or(|life| life >= member.incarnation) {
            let code = if known.is_none() { RefCode::WrongCluster } else { RefCode::StaleView };
            let body = JoinRef { token: req.token, code: u64::from(code.number()) };
            return ctx.send(BlockRef::control(member.node), &body);
        }
        self.propose(&Command::Join(member), ctx);
    }

    /// We are not a member (any more): the process ends, and its next life joins.
    pub(crate) fn on_join_ref(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let body = signal.body::<JoinRef>();
        let removed = body.token == 0 && self.joined;
        let refused = body.token == u64::from(ctx.incarnation().get());
        if removed || refused {
            let code = RefCode::from_number(body.code as u16);
            let why = if removed {
                "the cluster has removed this node; a new process can join again".to_string()
            } else {
                format!("the cluster does not take this node in: {code}")
            };
            let stop = StopOrd { status: 3 };
            ctx.send_with(BlockRef::shell(ctx.node()), &stop, &[why.as_bytes()]);
        }
    }

    /// All fragments of one of our data managers are filled.
    pub(crate) fn on_fragments_synced_rep(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let rep = signal.body::<FragmentsSyncedRep>();
        self.synced.insert(rep.instance, rep.catalog_version);
        self.propose_synced(ctx);
    }

    pub(crate) fn propose_synced(&mut self, ctx: &mut Ctx<'_>) {
        let version = self.state.catalog.version;
        let instances = self.state.view.config.ldm_instances;
        let all = (0..instances).all(|i| self.synced.get(&i) == Some(&version));
        let waits = self.joined
            && self.me_alive(ctx)
            && self.state.view.is_replica_of_own_group(ctx.node())
            && !self.state.view.is_in_sync(ctx.node());
        if all && waits && instances > 0 {
            let command = Command::Synced {
                node: ctx.node(),
                incarnation: ctx.incarnation(),
                catalog_version: version,
            };
            self.propose(&command, ctx);
        }
    }
}
