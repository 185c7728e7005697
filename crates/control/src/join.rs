//! Coming into the cluster, becoming a full replica, and leaving (REJOIN-1, VIEW-4, VIEW-6).

use crate::{Control, JOIN_RETRY, Start, TIMER_JOIN, lives::Applicant, state::Command};
use lats_base::{Duration, Incarnation, NodeId, Nonce, RefCode};
use lats_catalog::Member;
use lats_kernel::Ctx;
use lats_signals::{
    BlockRef, Signal,
    control::{JoinRef, JoinReq, NeverJoinedRep, StopOrd},
    copy::FragmentsSyncedRep,
};

/// Three heartbeats of the consensus group, which tell what is agreed on.
const FAREWELL_TICKS: u32 = 10;
/// A last word is sent within this time.
const WORDS_TRAVEL: Duration = Duration::from_millis(5);

impl Control {
    pub(crate) fn ask_to_join(&mut self, ctx: &mut Ctx<'_>) {
        if let Some((code, at)) = self.never_joins {
            // The timer may be one from before.
            if ctx.now() >= at {
                self.leave(&format!("the cluster does not take this node in: {code}"), ctx);
            }
            return;
        }
        if self.joined {
            return;
        }
        self.tell_presence(ctx);
        let Start::Join { member, seeds, origin, .. } = &self.start else { return };
        if self.joined {
            return;
        }
        let lossy = |(node, p): (&NodeId, &crate::Peer)| {
            p.link.get() != 0 && p.link == p.lost_link && !self.waits_too(*node, p.link)
        };
        if self.peers.iter().any(lossy) {
            // Members that know us already may have sent something that was lost.
            return self.leave("a link was lost while joining; a new process can join", ctx);
        }
        let linked: Vec<(NodeId, Incarnation, Nonce)> = self
            .peers
            .iter()
            .filter(|(_, p)| p.link.get() != 0)
            .map(|(n, p)| (*n, p.link, p.link_nonce))
            .collect();
        let token = u64::from(member.incarnation.get());
        let applicant = Applicant { member: member.clone(), origin: origin.clone(), linked };
        let bytes = lats_catalog::encode(&applicant);
        for seed in seeds {
            ctx.send_with(BlockRef::control(*seed), &JoinReq { token }, &[&bytes]);
        }
        ctx.after(JOIN_RETRY, TIMER_JOIN);
    }

    /// The leader takes a process in when no earlier life of it is a member any more, and when it
    /// has links to the lives of all data nodes (VIEW-7): from the view on that names it, they send to it. What it takes for a link
    /// to a former life is none.
    pub(crate) fn on_join_req(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let req = signal.body::<JoinReq>();
        if !self.joined || !self.takes_in() {
            // It asks somebody who waits to be taken in itself.
            return;
        }
        let sent = lats_catalog::decode::<Applicant>(signal.payload());
        let Ok(Applicant { member, origin, linked }) = sent else { return };
        let (node, life) = (member.node, member.incarnation);
        self.end_if_missed(node, life, ctx);
        let Some(known) = self.state.view.member(node).map(|m| (m.incarnation, m.alive)) else {
            let code = u64::from(RefCode::WrongCluster.number());
            let body = JoinRef { token: req.token, code, known: 0 };
            return ctx.send(BlockRef::control(node), &body);
        };
        let is_another = known.0 == life && self.nonce_of(node) != origin.nonce;
        if self.is_over(node, life) || is_another {
            return self.tell_over(node, life, ctx);
        }
        if known == (life, true) {
            return;
        }
        if known.1 {
            // DEATH-4: a member that lives is not displaced. One that has ended without a certificate is waited out.
            return self.hear_origin(node, &origin, ctx);
        }
        if member.had_kept && self.state.view.group_of_node(node).is_some_and(|(_, g)| g.is_lost())
        {
            // RESTART-8: its disk may have all that is left of these rows.
            let code = u64::from(RefCode::NodeGroupLost.number());
            let body = JoinRef { token: u64::from(life.get()), code, known: 0 };
            return ctx.send(BlockRef::control(node), &body);
        }
        let lacks = |m: &Member| !linked.contains(&(m.node, m.incarnation, self.nonce_of(m.node)));
        let missing = self.state.view.data_nodes().any(lacks);
        // The other end of our own link may know of it first.
        let is_linked =
            self.peers.get(&node).is_some_and(|p| (p.link, p.link_nonce) == (life, origin.nonce));
        if !missing && is_linked && self.consensus.may_change_voters() {
            self.propose(&Command::Join { member, nonce: origin.nonce }, ctx);
        }
    }

    /// We are not a member (any more): the process ends, and its next life joins.
    pub(crate) fn on_join_ref(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let body = signal.body::<JoinRef>();
        if body.token != u64::from(ctx.incarnation().get()) {
            return;
        }
        let code = RefCode::from_number(body.code as u16);
        if code == RefCode::NodeGroupLost {
            // RESTART-8.
            self.restart.group_lost_at = Some(ctx.now());
        } else if self.joined {
            self.leave_when_told(ctx);
        } else {
            self.note_known_life(body.known, ctx);
            self.never_join(signal.sender(), code, ctx);
        }
    }

    /// REFORM-1: whoever does not take it in may count on that it never was a member. It ends when that was sent.
    fn never_join(&mut self, teller: BlockRef, code: RefCode, ctx: &mut Ctx<'_>) {
        let Start::Join { origin, .. } = &self.start else { return };
        ctx.send(teller, &NeverJoinedRep { nonce: origin.nonce });
        if self.never_joins.is_none() {
            self.never_joins = Some((code, ctx.now().plus(WORDS_TRAVEL)));
            self.restart.attempt = None;
            ctx.after(WORDS_TRAVEL, TIMER_JOIN);
        }
    }

    /// This node has found itself removed. If it leads, because the removal is older than its
    /// leadership, it stays until the others surely know, or they could not elect anybody.
    pub(crate) fn leave_when_told(&mut self, ctx: &mut Ctx<'_>) {
        self.farewell_ticks += 1;
        if !self.is_leader() || self.farewell_ticks > FAREWELL_TICKS {
            let told = self.state.view.member(ctx.node()).is_some_and(|m| m.stopping.is_some());
            let why = match told {
                true if self.lost.is_some() => crate::gone::WHY,
                true => "it was told to stop, and nobody needs it any more",
                false => "the cluster has removed this node; a new process can join",
            };
            self.leave(why, ctx);
        }
    }

    /// Ends this process in an orderly way.
    pub(crate) fn leave(&mut self, why: &str, ctx: &mut Ctx<'_>) {
        if !self.leaving {
            self.leaving = true;
            let stop = StopOrd { status: self.exit_status(ctx) };
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
            && !self.state.view.is_in_sync(ctx.node())
            && !self.state.view.group_of_node(ctx.node()).is_some_and(|(_, g)| g.is_lost());
        if all && waits && instances > 0 {
            self.synced_told_at = ctx.now();
            let command = Command::Synced {
                node: ctx.node(),
                incarnation: ctx.incarnation(),
                catalog_version: version,
            };
            self.propose(&command, ctx);
        }
    }
}
