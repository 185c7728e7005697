//! A node that a person wants to end (CLOSE-1 to CLOSE-6; `docs/protocols/close.md`): it leaves the cluster if that can do without it;
//! else it takes nothing new, and ends when all that it has acknowledged is durable.

use crate::{Control, restart::Phase, state::Command};
use lats_base::{Duration, Epoch, Incarnation, Instant, NodeId};
use lats_catalog::{AfterStop, Member};
use lats_kernel::{Ctx, Fault};
use lats_signals::{
    BlockKind, BlockRef, Signal,
    control::{
        CLOSE_ALL, CLOSE_BEGUN, CLOSE_STAGE_DURABLE, CLOSE_STAGE_QUIET, CLOSE_STAGE_TOLD, CloseRep,
        EpochWantedRep, QuietRep, STATUS_ENDED, STATUS_NOT_DURABLE, StopOrd,
    },
};
use std::collections::BTreeMap;

/// A node that was told to end.
#[derive(Debug, Default)]
pub(crate) struct Close {
    told_at: Option<Instant>,
    /// When it knew a leader last.
    led_at: Instant,
    /// Since when it ends without leaving the cluster before.
    ends_at: Option<Instant>,
    /// What its blocks were told, and what each was told when it had nothing to do any more, with its epoch.
    closing: u64,
    quiet: BTreeMap<BlockRef, (u64, Epoch)>,
    /// Nothing that it has acknowledged is of a later epoch; known when all its blocks have ended.
    last: Option<Epoch>,
    asked_at: Instant,
    /// How far it is.
    stage: u64,
    /// Other nodes that were told to end: their lives, and how far they are.
    others: BTreeMap<NodeId, (Incarnation, u64)>,
}

/// Whoever is told to end together with others has heard of them by then.
const TOGETHER: Duration = Duration::from_millis(200);
/// How long a node may take to leave, and how long it looks for a leader that lets it.
const LEAVE_MAX: Duration = Duration::from_millis(11_000);
const LEADERLESS_MAX: Duration = Duration::from_millis(2_000);
/// How long transactions may take to end when no new ones begin.
const TRANSACTIONS_END: Duration = Duration::from_millis(3_000);
/// After this it ends in any case.
const CLOSE_MAX: Duration = Duration::from_millis(18_000);
/// How often it asks again.
const ASK_AGAIN: Duration = Duration::from_millis(50);

impl Control {
    /// A person wants this process to end.
    pub(crate) fn on_close_ord(&mut self, ctx: &mut Ctx<'_>) {
        if self.close.told_at.is_some() {
            return;
        }
        (self.close.told_at, self.close.led_at) = (Some(ctx.now()), ctx.now());
        self.close.stage = CLOSE_STAGE_TOLD;
        if !self.joined || self.restart.phase != Phase::Running {
            // It has served nobody.
            return self.end(STATUS_ENDED, "it was told to end before it was a member", ctx);
        }
        self.tell_stage(ctx);
    }

    /// True if this process was told to end.
    pub(crate) fn is_told_to_end(&self) -> bool {
        self.close.told_at.is_some()
    }

    /// What its coordinators and data managers are to know of it.
    pub(crate) fn closing(&self) -> u64 {
        self.close.closing
    }

    pub(crate) fn on_close_rep(&mut self, signal: &Signal<'_>) {
        let (node, life) = (signal.sender().node, Incarnation::new(signal.header.incarnation));
        let stage = signal.body::<CloseRep>().stage;
        let known = self.close.others.entry(node).or_default();
        if life >= known.0 {
            *known = (life, stage);
        }
    }

    pub(crate) fn note_quiet_at_the_end(&mut self, block: BlockRef, rep: &QuietRep) {
        let known = self.close.quiet.entry(block).or_default();
        *known = (rep.closing, known.1.max(rep.epoch));
    }

    /// With every tick of a node that was told to end.
    pub(crate) fn close_tick(&mut self, ctx: &mut Ctx<'_>) {
        let Some(told_at) = self.close.told_at else { return };
        let since = ctx.now().since(told_at);
        if self.leader().is_some() {
            self.close.led_at = ctx.now();
        }
        self.tell_stage(ctx);
        let is_told = |m: &Member| m.node == ctx.node() || self.stage_of(m.node) > 0;
        if since < TOGETHER && !self.state.view.data_nodes().all(is_told) {
            return;
        }
        if !self.roles_data {
            return self.close_witness(since, ctx);
        }
        if self.close.ends_at.is_none() {
            if self.may_leave(since, ctx) {
                return self.ask_to_leave(ctx);
            }
            self.close.ends_at = Some(ctx.now());
        }
        self.end_work(ctx);
        self.end_when_durable(since, ctx);
    }

    fn tell_stage(&self, ctx: &mut Ctx<'_>) {
        let (me, body) = (ctx.node(), CloseRep { stage: self.close.stage });
        for node in self.alive().iter().filter(|n| *n != me) {
            ctx.send(BlockRef::control(node), &body);
        }
    }

    /// CLOSE-1: somebody stays who has all rows of this node, and a leader can let it go.
    fn may_leave(&self, since: Duration, ctx: &Ctx<'_>) -> bool {
        let (me, view) = (ctx.node(), &self.state.view);
        let leaderless = ctx.now().since(self.close.led_at) >= LEADERLESS_MAX;
        if since >= LEAVE_MAX || leaderless || self.is_lost(me) {
            return false;
        }
        let stays = |n: NodeId| {
            let ends = view.is_stopping(n) || self.stage_of(n) > 0 || self.gone.contains_key(&n);
            n != me && !ends && self.has_disk(n, ctx)
        };
        let group = view.group_of_node(me).map(|(_, group)| &group.replicas);
        group.is_some_and(|all| all.iter().any(|r| r.in_sync && stays(r.node)))
    }

    fn is_lost(&self, node: NodeId) -> bool {
        self.state.view.group_of_node(node).is_none_or(|(_, group)| group.is_lost())
    }

    /// How far another node is that was told to end; 0: it was not.
    pub(crate) fn stage_of(&self, node: NodeId) -> u64 {
        let life = self.state.view.incarnation(node);
        let said = self.close.others.get(&node).filter(|(said, _)| Some(*said) == life);
        said.map_or(0, |(_, stage)| *stage)
    }

    /// STOP-1: as if a person had asked for it with `latsdb stop-node`.
    fn ask_to_leave(&mut self, ctx: &mut Ctx<'_>) {
        let (node, incarnation, then) = (ctx.node(), ctx.incarnation(), AfterStop::StayDown);
        let told = self.state.view.member(node).and_then(|m| m.stopping);
        if told != Some(then) && ctx.now().since(self.close.asked_at) >= ASK_AGAIN {
            self.close.asked_at = ctx.now();
            self.propose(&Command::Stop { node, incarnation, then }, ctx);
        }
    }

    /// CLOSE-4: a witness has nothing to lose, and others may need its vote to end.
    fn close_witness(&mut self, since: Duration, ctx: &mut Ctx<'_>) {
        let data = || self.state.view.data_nodes().map(|m| m.node);
        let is_there = |n: &NodeId| self.is_in_touch(*n);
        let ends =
            |n: &NodeId| is_there(n) && (self.stage_of(*n) > 0 || self.state.view.is_stopping(*n));
        if since >= CLOSE_MAX || !data().any(|n| is_there(&n)) {
            return self.end(STATUS_ENDED, "it was told to end; it holds no rows", ctx);
        }
        if !data().any(|n| ends(&n)) {
            self.ask_to_leave(ctx);
        }
    }

    /// True if there is a link to the node's life, as far as is known.
    fn is_in_touch(&self, node: NodeId) -> bool {
        let peer = self.peers.get(&node);
        !self.gone.contains_key(&node) && peer.is_some_and(|p| p.link.get() != 0)
    }

    /// Others that were told to end, or to stop, and have not ended yet.
    fn others_who_end(&self, ctx: &Ctx<'_>) -> impl Iterator<Item = NodeId> {
        let me = ctx.node();
        let ends = move |m: &&Member| {
            let told = m.stopping.is_some() || self.stage_of(m.node) > 0;
            m.node != me && told && self.is_in_touch(m.node)
        };
        self.state.view.data_nodes().filter(ends).map(|m| m.node)
    }

    /// CLOSE-2: first nothing begins any more, then what is not decided is rolled back, and nothing comes in from others.
    fn end_work(&mut self, ctx: &mut Ctx<'_>) {
        let Some(ends_at) = self.close.ends_at else { return };
        let overdue = ctx.now().since(ends_at) >= TRANSACTIONS_END;
        let is_quiet = self.all_quiet(CLOSE_BEGUN, |b| b.kind() == Some(BlockKind::Tc));
        if is_quiet && (self.changes.is_empty() || overdue) {
            self.close.stage = self.close.stage.max(CLOSE_STAGE_QUIET);
        }
        let waits = |n| self.stage_of(n) < CLOSE_STAGE_QUIET;
        let is_through = is_quiet && self.changes.is_empty();
        let all = is_through && !self.others_who_end(ctx).any(waits);
        let closing = if all || overdue { CLOSE_ALL } else { CLOSE_BEGUN };
        if closing > self.close.closing {
            self.close.closing = closing;
            if closing == CLOSE_ALL {
                // Whoever has asked for them is not answered any more.
                self.changes.clear();
            }
            self.tell_lease(ctx);
        }
        self.note_last();
    }

    /// The last epoch of this node. It may grow: a primary that ends later has brought something.
    fn note_last(&mut self) {
        let is_quiet = self.all_quiet(CLOSE_ALL, |_| true);
        let known = self.close.quiet.values().map(|(_, epoch)| *epoch).max();
        let last = known.max(self.close.last.or(Some(self.epochs.current)));
        if !is_quiet || last != self.close.last {
            self.close.stage = self.close.stage.min(CLOSE_STAGE_QUIET);
        }
        if is_quiet {
            self.close.last = last;
            self.close.stage = self.close.stage.max(CLOSE_STAGE_QUIET);
        }
    }

    fn all_quiet(&self, closing: u64, which: impl Fn(&BlockRef) -> bool) -> bool {
        let said = |b: &BlockRef| self.close.quiet.get(b).map_or(0, |(said, _)| *said);
        self.blocks.keys().filter(|b| which(b)).all(|b| said(b) >= closing)
    }

    /// CLOSE-3: it ends when its last epoch is durable, and when those that end with it know the same of theirs.
    fn end_when_durable(&mut self, since: Duration, ctx: &mut Ctx<'_>) {
        let is_quiet = self.all_quiet(CLOSE_ALL, |_| true);
        if let Some(last) = self.close.last.filter(|_| is_quiet) {
            if !self.is_safe(last, ctx) {
                // A definition, or a change that has come late, may have to be written yet.
                self.close.stage = CLOSE_STAGE_QUIET;
                self.want_last(last, ctx);
            } else if self.close.stage < CLOSE_STAGE_DURABLE {
                self.close.stage = CLOSE_STAGE_DURABLE;
                // Others hear of it before it ends, with a later tick.
                return self.tell_stage(ctx);
            }
        }
        let is_durable = self.close.stage == CLOSE_STAGE_DURABLE;
        let waits = |n| self.stage_of(n) < CLOSE_STAGE_DURABLE;
        if is_durable && (since >= CLOSE_MAX || !self.others_who_end(ctx).any(waits)) {
            return self.end(STATUS_ENDED, self.why_it_ends(), ctx);
        }
        // A lost group's rows of these epochs are nowhere: nobody can make them durable.
        let never = self.close.last.is_some() && self.state.view.lost_groups().next().is_some();
        if !is_durable && (since >= CLOSE_MAX || (never && self.keeps_on_disk())) {
            let why = self.what_is_not_durable(ctx);
            self.end(STATUS_NOT_DURABLE, &why, ctx);
        }
    }

    fn why_it_ends(&self) -> &'static str {
        match self.state.view.config.keeps {
            true => "it was told to end; all that it has acknowledged is on the disks",
            false => {
                "it was told to end; this cluster keeps nothing on disk (--ephemeral): what no other node has is gone"
            }
        }
    }

    /// True if nothing is lost with this process that it has acknowledged.
    fn is_safe(&self, last: Epoch, ctx: &mut Ctx<'_>) -> bool {
        let has_served = self.has_served();
        // GONE-2: what was durable once is nowhere, if no node has it on a disk.
        let is_kept = self.has_disk(ctx.node(), ctx) || self.is_on_another_disk(ctx.node(), ctx);
        let is_durable = is_kept && self.epochs.disk.durable >= last && self.state_is_kept();
        !self.state.view.config.keeps
            || !has_served
            || is_durable
            || ctx.fault(Fault::BugCloseEarly)
    }

    /// The leader is to make it durable. It may be another one than before.
    fn want_last(&mut self, last: Epoch, ctx: &mut Ctx<'_>) {
        if ctx.now().since(self.close.asked_at) < ASK_AGAIN {
            return;
        }
        self.close.asked_at = ctx.now();
        match self.leader() {
            Some(leader) if leader != ctx.node() => {
                ctx.send(BlockRef::control(leader), &EpochWantedRep { epoch: last });
            }
            Some(_) => self.want_epoch(last, ctx),
            None => {}
        }
    }

    /// CLOSE-3: who ends with the others is not missed: all of them have the same last view on their disks.
    pub(crate) fn all_have_closed(&self, ctx: &Ctx<'_>) -> bool {
        let me = ctx.node();
        let is_durable = |n: NodeId| match n == me {
            true => self.close.stage == CLOSE_STAGE_DURABLE,
            false => self.stage_of(n) == CLOSE_STAGE_DURABLE,
        };
        self.is_told_to_end() && self.state.view.data_nodes().all(|m| is_durable(m.node))
    }

    /// CLOSE-6: none joins a cluster that ends.
    pub(crate) fn takes_in(&self) -> bool {
        let ends = |m: &Member| self.stage_of(m.node) > 0;
        !self.is_told_to_end() && !self.state.view.data_nodes().any(ends)
    }

    fn what_is_not_durable(&self, ctx: &Ctx<'_>) -> String {
        let (last, durable) = (self.epochs.current, self.epochs.disk.durable);
        let view = &self.state.view;
        let lost: Vec<String> = view.lost_groups().map(|(number, _)| number.to_string()).collect();
        let gone = |m: &&Member| m.node != ctx.node() && !self.is_in_touch(m.node);
        let missing: Vec<String> =
            view.data_nodes().filter(gone).map(|m| m.node.to_string()).collect();
        let why = if !self.has_disk(ctx.node(), ctx) {
            "THIS NODE HAS NO DIRECTORY, and none of its rows are on its disk".to_string()
        } else if !lost.is_empty() {
            format!("node group {} is lost", lost.join(", "))
        } else if self.close.last.is_none() {
            "transactions of other nodes are still open here".to_string()
        } else if !missing.is_empty() {
            format!("node {} does not answer", missing.join(", "))
        } else if self.epochs.disk.own(view.number, self.blocks.keys()) < self.close.last {
            "the disk of this node is full or slow".to_string()
        } else {
            "the disk of another node is full or slow, or there is no majority".to_string()
        };
        format!(
            "it was told to end, and not all that it has acknowledged is known to be on the disks of all its replicas: {why}. \
             Durable is epoch {durable} of {last}; later commits may be lost if all nodes start again"
        )
    }

    fn end(&mut self, status: u64, why: &str, ctx: &mut Ctx<'_>) {
        if !self.leaving {
            self.leaving = true;
            ctx.send_with(BlockRef::shell(ctx.node()), &StopOrd { status }, &[why.as_bytes()]);
        }
    }
}
