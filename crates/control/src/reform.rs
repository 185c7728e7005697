//! Full replicas that live without a majority form the control group anew, and lose nothing (REFORM-1 to REFORM-7;
//! `docs/protocols/restart.md`).

use crate::{
    Control,
    lives::Origin,
    promises::Attempt,
    restart::{Presence, Present, Restart},
    state::{Command, ControlState},
};
use lats_base::{Duration, Epoch, Incarnation, Instant, NodeId, Nonce};
use lats_catalog::{Group, Member, View};
use lats_kernel::{Ctx, Fault};
use lats_signals::{
    BlockRef, Signal,
    control::{DeclareDeadReq, NeverJoinedRep, NoteOrd},
    restart::{RestartRep, RestartReq},
};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// What a member does while it has no leader.
#[derive(Debug, Default)]
pub(crate) struct Survivor {
    /// Since when it knows no leader.
    leaderless_since: Option<Instant>,
    told_at: Instant,
    /// Lives of which a person has said that they are over (REFORM-5).
    pub(crate) words: BTreeMap<NodeId, Incarnation>,
    /// Views that not all survivors may have, in their order (REFORM-4).
    views: Vec<View>,
    /// Lives that are not accounted for.
    pub(crate) misses: Vec<(NodeId, Incarnation)>,
    /// Processes that have said that they were never members, and end (REFORM-1).
    pub(crate) never_joined: BTreeSet<(NodeId, Incarnation, Nonce)>,
    /// What it waits for, for a person.
    pub(crate) waits_for: String,
    /// Since when it writes down what it has, to end then (REFORM-6).
    gives_way: Option<Instant>,
}

/// Elections take less than this.
const LEADERLESS: Duration = Duration::from_millis(600);
const TELL_EVERY: Duration = Duration::from_millis(50);
/// So many of the newest views are remembered: more than are agreed on while somebody does not install them.
const VIEWS_KEPT: usize = 32;
/// After this a survivor gives way though its disk has not taken all.
const FLUSH_MAX: Duration = Duration::from_millis(10_000);

/// A disk knows more, and has not said what.
struct Untold;

/// Why no group can be formed anew.
enum Unable {
    /// These nodes, or their disks, may know of more.
    Misses(Vec<(NodeId, Incarnation)>),
    /// No full replica of this group lives: its rows are on disks only.
    NeedsDisks,
}

impl Control {
    /// A view was agreed on.
    pub(crate) fn remember_views(&mut self, views: &[View]) {
        let known = &mut self.survivor.views;
        known.extend(views.iter().cloned());
        let surplus = known.len().saturating_sub(VIEWS_KEPT);
        known.drain(..surplus);
    }

    /// With every tick of a member.
    pub(crate) fn survivor_tick(&mut self, ctx: &mut Ctx<'_>) {
        let now = ctx.now();
        if self.leader().is_some() || !self.roles_data || self.is_told_to_end() {
            (self.survivor.leaderless_since, self.survivor.gives_way) = (None, None);
            self.survivor.never_joined.clear();
            self.wait_for_nobody();
            return;
        }
        let since = *self.survivor.leaderless_since.get_or_insert(now);
        let hopeless = self.consensus.nobody_can_lead(|id| self.is_over_for_certain(id));
        let may_ask = hopeless || now.since(since) >= LEADERLESS;
        // REFORM-7: whoever has promised says so at once, and hears at once that the promise is void.
        if !may_ask && !self.leaves_the_group() {
            return;
        }
        if now.since(self.survivor.told_at) >= TELL_EVERY {
            self.survivor.told_at = now;
            self.tell_that_it_lives(ctx);
        }
        let present = self.present(ctx);
        self.drop_lost_promises(&present, ctx);
        if may_ask {
            self.try_to_reform(&present, ctx);
        }
    }

    /// True if this member has known no leader for longer than elections take; none if it knows one.
    pub(crate) fn is_leaderless_for_long(&self, now: Instant) -> Option<bool> {
        self.survivor.leaderless_since.map(|since| now.since(since) >= LEADERLESS)
    }

    fn is_over_for_certain(&self, voter: u64) -> bool {
        crate::is_among(&self.gone, voter) || crate::is_among(&self.survivor.words, voter)
    }

    /// What this member has, as others are told.
    fn survivors_presence(&self, ctx: &Ctx<'_>) -> Option<Present> {
        let member = self.state.view.member(ctx.node()).filter(|m| m.alive)?.clone();
        let (term, index) = self.consensus.newest_entry();
        let asked = self.restart.attempt.as_ref().map(|a| a.asked_by);
        let has = RestartRep {
            restarts: self.state.restarts(),
            promised: self.keep.promised.max(self.state.restarts()),
            commands: self.consensus.commands_with_log(&self.state),
            limit: self.state.commands,
            restorable: Epoch::default(),
            newest: self.epochs.current,
            durable: self.epochs.disk.durable,
            asked_by: asked.map(|a| a.1).unwrap_or_default(),
            asker: asked.map_or(0, |a| u32::from(a.0.get())),
            term,
            index,
        };
        let origin = Origin { nonce: self.nonce_of(ctx.node()), ended: Vec::new() };
        let continues = member.incarnation;
        let views = self.survivor.views.clone();
        let said = Presence { member, origin, lives: true, continues, views, state: Vec::new() };
        Some(Present { has, said })
    }

    fn tell_that_it_lives(&mut self, ctx: &mut Ctx<'_>) {
        let Some(own) = self.survivors_presence(ctx) else { return };
        let bytes = lats_catalog::encode(&own.said);
        for (node, _) in self.peers.iter().filter(|(_, p)| p.link.get() != 0) {
            ctx.send_with(BlockRef::control(*node), &own.has, &[&bytes]);
        }
        self.restart.present.insert(ctx.node(), own);
        if let Some(attempt) = &self.restart.attempt
            && attempt.asked_by == (ctx.node(), ctx.incarnation())
        {
            self.ask_survivors(ctx);
        }
    }

    /// REFORM-2: the survivor with the newest log proposes, if everybody is accounted for.
    fn try_to_reform(&mut self, present: &BTreeMap<NodeId, Present>, ctx: &mut Ctx<'_>) {
        let age = |(node, p): &(&NodeId, &Present)| {
            (p.has.restarts, p.has.term, p.has.index, Reverse(node.get()))
        };
        let survivors = present.iter().filter(|(_, p)| p.said.lives);
        let newest = survivors.max_by_key(age).map(|(node, _)| *node);
        self.wait_for_nobody();
        if newest != Some(ctx.node()) || self.has_promised(present) {
            return;
        }
        let (mut state, mut views) = self.state_to_go_on_with(present, ctx);
        views.splice(0..0, present.values().flat_map(|p| p.said.views.iter().cloned()));
        let Ok(newer) = newer_on_a_disk(&state, present) else {
            // It says more when it has heard that this node lives.
            self.survivor.waits_for = "what a newer disk knows".to_string();
            return;
        };
        let is_agreed = newer.is_some();
        state = newer.unwrap_or(state);
        let me = (ctx.node(), ctx.incarnation());
        if !state.view.is_alive(me.0, me.1) {
            self.survivor.waits_for = "those who had removed it".to_string();
            let why = "the others had removed this node before they ended: it waits until they serve again, and is filled then";
            return self.tell_why_it_waits(why, ctx);
        }
        // What a log takes out, and nobody may have agreed on, counts as in.
        let agreed = if is_agreed { &state } else { &*self.state };
        match self.survivors((&state, agreed), present, ctx) {
            Ok(survivors) => self.reform((state, views), &survivors, present, ctx),
            Err(Unable::Misses(nodes)) => self.tell_who_is_missed(&nodes, ctx),
            Err(Unable::NeedsDisks) => self.give_way(ctx),
        }
    }

    /// REFORM-2: what its log has counts, but for entries that would take out a survivor, and that no survivor has seen agreed on: whoever
    /// has acknowledged anything without that one has the removal on its disk (FENCE-1), which is asked, too.
    fn state_to_go_on_with(
        &self,
        present: &BTreeMap<NodeId, Present>,
        ctx: &Ctx<'_>,
    ) -> (ControlState, Vec<View>) {
        let me = (ctx.node(), ctx.incarnation());
        let survivors = || present.values().filter(|p| p.said.lives);
        let lives = |life: (NodeId, Incarnation)| {
            let is_it = |p: &Present| (p.said.member.node, p.said.member.incarnation) == life;
            life == me || survivors().any(is_it)
        };
        self.consensus.state_with_log(&self.state, |state, command| match command {
            Command::Remove { node, incarnation, certified: false } => {
                let is_agreed = survivors().any(|p| p.has.limit > state.commands);
                let is_member = state.view.is_alive(*node, *incarnation);
                is_member && lives((*node, *incarnation)) && !is_agreed
            }
            _ => false,
        })
    }

    fn wait_for_nobody(&mut self) {
        self.survivor.misses.clear();
        self.survivor.waits_for.clear();
    }

    /// REFORM-7: what this node has asked for and cannot come about any more, and what others do not want any more.
    fn drop_lost_promises(&mut self, present: &BTreeMap<NodeId, Present>, ctx: &mut Ctx<'_>) {
        let me = (ctx.node(), ctx.incarnation());
        let own = self.restart.attempt.as_ref().filter(|a| a.asked_by == me);
        let is_lost = own.is_some_and(|a| a.is_lost(me.0, present));
        if is_lost && !ctx.fault(Fault::BugNeverGivesIn) {
            self.restart.drop_newest();
        }
        let hears_refusals = !ctx.fault(Fault::BugBoundToTheDead);
        self.restart.drop_void_promises(present, hears_refusals);
    }

    /// True if this node has promised to take part in what somebody asks who is there.
    fn has_promised(&self, present: &BTreeMap<NodeId, Present>) -> bool {
        let Some(attempt) = &self.restart.attempt else { return false };
        let (node, life) = attempt.asked_by;
        present.get(&node).is_some_and(|p| p.said.member.incarnation == life)
    }

    /// REFORM-1: everybody is accounted for, and each group has a full replica that lives. Who they are.
    fn survivors(
        &self,
        (state, agreed): (&ControlState, &ControlState),
        present: &BTreeMap<NodeId, Present>,
        ctx: &mut Ctx<'_>,
    ) -> Result<BTreeSet<NodeId>, Unable> {
        let mut survivors = BTreeSet::new();
        let mut missing = Vec::new();
        let is_out = |m: &&Member| !state.view.is_alive(m.node, m.incarnation);
        for member in agreed.view.data_nodes().filter(is_out) {
            if !self.is_accounted_for(agreed, member, present.get(&member.node)) {
                missing.push((member.node, member.incarnation));
            }
        }
        for member in state.view.data_nodes() {
            let here = present.get(&member.node);
            let lives = here
                .is_some_and(|p| p.said.lives && p.said.member.incarnation == member.incarnation);
            if lives {
                survivors.insert(member.node);
            } else if !self.is_accounted_for(state, member, here) {
                missing.push((member.node, member.incarnation));
            }
        }
        // The rows of a group that was lost before are on disks only, too.
        let lives = |g: &Group| g.replicas.iter().any(|r| r.in_sync && survivors.contains(&r.node));
        if !state.view.groups.iter().all(lives) {
            return Err(Unable::NeedsDisks);
        }
        match missing.is_empty() || ctx.fault(Fault::BugReformWithoutAll) {
            true => Ok(survivors),
            false => Err(Unable::Misses(missing)),
        }
    }

    /// REFORM-1: its end is certified, and its disk is there and goes on where that life has ended; or a person has given the word.
    fn is_accounted_for(
        &self,
        state: &ControlState,
        member: &Member,
        here: Option<&Present>,
    ) -> bool {
        let (node, life) = (member.node, member.incarnation);
        if self.survivor.words.get(&node) == Some(&life) {
            return true;
        }
        let nonce = state.nonces.get(&node).copied().unwrap_or_default();
        let here = here.filter(|p| !p.said.lives);
        if self.survivor.never_joined.contains(&(node, life, nonce)) {
            return true;
        }
        let Some(here) = here else { return false };
        let is_certified =
            self.gone.get(&node) == Some(&life) || here.said.origin.ended.contains(&(life, nonce));
        let was_full = state.view.is_in_sync(node);
        // A disk that knows less than all of them did once is not the one that the life had.
        let is_whole = !was_full || here.has.commands >= self.epochs.disk.kept_everywhere;
        // REDO-2: a replica is full only if its disk knows that its life is a member.
        let goes_on = here.said.continues == life || !was_full;
        is_certified && goes_on && is_whole
    }

    fn tell_who_is_missed(&mut self, lives: &[(NodeId, Incarnation)], ctx: &mut Ctx<'_>) {
        let list: Vec<String> = lives.iter().map(|(node, _)| node.to_string()).collect();
        self.survivor.misses = lives.to_vec();
        let list = list.join(", ");
        self.survivor.waits_for = format!("node {list}");
        let why = format!(
            "THIS NODE HAS ITS ROWS AND WAITS: there is no majority, and node {list} may have gone on without it. It serves again when node {list} \
             is back, or starts again with its disk. If that is gone for ever: `latsdb declare-dead NODE --give-up-rows` (what it has acknowledged \
             alone is lost then). \
             Do not end this process before"
        );
        self.tell_why_it_waits(&why, ctx);
    }

    /// REFORM-3: the survivors form the group anew; whoever asks has the newest state of all that are there.
    fn reform(
        &mut self,
        (state, views): (ControlState, Vec<View>),
        survivors: &BTreeSet<NodeId>,
        present: &BTreeMap<NodeId, Present>,
        ctx: &mut Ctx<'_>,
    ) {
        // What this node is known to have promised may be older than its last promise.
        let promised = present.values().map(|p| p.has.promised).fold(self.keep.promised, u32::max);
        let newest = present.values().map(|p| p.has.newest).max().unwrap_or_default();
        let (restarts, based_on) = (promised.max(state.restarts()) + 1, state.restarts());
        let state = state.reformed((restarts, newest), survivors);
        let views = in_order(views, &state.view);
        let asked_by = (ctx.node(), ctx.incarnation());
        self.promise_to_reform((state, based_on), views, asked_by, ctx);
        self.ask_survivors(ctx);
        self.note_ready(ctx.node(), ctx);
    }

    fn ask_survivors(&mut self, ctx: &mut Ctx<'_>) {
        let Some(attempt) = &self.restart.attempt else { return };
        let restarts = attempt.state.restarts();
        let body = RestartReq { restarts, based_on: attempt.based_on };
        let bytes = lats_catalog::encode(&(&*attempt.state, &attempt.views));
        let me = ctx.node();
        let others = attempt.state.view.data_nodes().map(|m| m.node);
        for node in others.filter(|n| *n != me && !attempt.ready.contains(n)) {
            ctx.send_with(BlockRef::control(node), &body, &[&bytes]);
        }
    }

    /// REFORM-3: from here on it takes no part in decisions of the former group. Nobody waits for a disk: the promise ends with this
    /// process.
    pub(crate) fn promise_to_reform(
        &mut self,
        (state, based_on): (ControlState, u32),
        views: Vec<View>,
        asked_by: (NodeId, Incarnation),
        ctx: &Ctx<'_>,
    ) {
        self.keep.promised = self.keep.promised.max(state.restarts());
        let (loaded, ready, to_load) = (BTreeSet::new(), BTreeSet::new(), 0);
        let state = Box::new(state);
        let attempt = Attempt { state, based_on, views, asked_by, loaded, to_load, ready };
        self.restart.promise(attempt, ctx.node());
        // It does not stand for election any more: those that have not promised may elect it else.
        self.consensus.step_down();
    }

    /// REFORM-7: the group has elected a leader after all, and those that hear it do not promise to leave it. Whoever has promised hears
    /// that this node does not want that any more.
    pub(crate) fn give_up_own_proposal(&mut self, ctx: &mut Ctx<'_>) {
        let me = (ctx.node(), ctx.incarnation());
        if self.joined && self.restart.attempt.as_ref().is_some_and(|a| a.asked_by == me) {
            self.restart.drop_newest();
            self.tell_that_it_lives(ctx);
        }
    }

    /// REFORM-7: somebody has promised to take part in what this node does not want any more, or what somebody wanted whose life is over,
    /// and may not have heard that.
    pub(crate) fn release_from_promise(&self, node: NodeId, has: &RestartRep, ctx: &mut Ctx<'_>) {
        let me = (ctx.node(), ctx.incarnation());
        let asks = self.restart.attempt.as_ref().is_some_and(|a| a.asked_by == me);
        let (asker, life) = has.whom();
        let is_void = (asker, life) == me && !asks || self.is_over(asker, life);
        if is_void
            && node != me.0
            && let Some(own) = self.survivors_presence(ctx)
        {
            ctx.send_with(BlockRef::control(node), &own.has, &[&lats_catalog::encode(&own.said)]);
        }
    }

    /// True while it has promised to leave the group for another one.
    pub(crate) fn leaves_the_group(&self) -> bool {
        self.joined && self.restart.has_promises()
    }

    /// REFORM-6: the rows of another group are on disks only, and nobody has more of them: this node writes down what it has, and
    /// takes part in the restart with its next life.
    fn give_way(&mut self, ctx: &mut Ctx<'_>) {
        self.survivor.waits_for = "disks of all others".to_string();
        if !self.all_others_wait(ctx) || ctx.fault(Fault::BugKeepAlone) {
            let why = "THIS NODE HAS ITS ROWS AND WAITS: all full replicas of another node group have ended, and their rows are on disks only: all \
                       nodes are to be started again with their disks. Do not end this process before";
            return self.tell_why_it_waits(why, ctx);
        }
        self.survivor.waits_for = "its own disk".to_string();
        let now = ctx.now();
        let since = *self.survivor.gives_way.get_or_insert(now);
        self.epochs.disk.seal = self.epochs.disk.seal.max(self.epochs.complete);
        self.tell_lease(ctx);
        let own = self.epochs.disk.own(self.state.view.number, self.blocks.keys());
        let is_written = own.is_some_and(|own| own >= self.epochs.complete) && self.state_is_kept();
        if is_written || now.since(since) >= FLUSH_MAX {
            let why = "all nodes of another node group have died: a new process takes part in the restart of the cluster from its disks";
            self.leave(why, ctx);
        }
    }

    /// REFORM-5: a person says that a life is over which nobody can ask.
    pub(crate) fn take_word(&mut self, req: &DeclareDeadReq, ctx: &mut Ctx<'_>) {
        let (node, life) = (NodeId::new(req.node as u16), Incarnation::new(req.incarnation as u32));
        let is_meant = self.survivor.misses.contains(&(node, life));
        let is_leaderless = self.survivor.leaderless_since.is_some();
        let is_heard = self.heard_lately(ctx.now()).contains(node);
        // Nobody knows whether it has gone on alone: what it has acknowledged then is given up.
        let may = req.give_up_rows != 0;
        if is_leaderless && is_meant && may && !is_heard && node != ctx.node() {
            self.survivor.words.insert(node, life);
            let text = format!("a person has declared that life {life} of node {node} is over");
            let shell = BlockRef::shell(ctx.node());
            ctx.send_with(shell, &NoteOrd { loud: 1 }, &[text.as_bytes()]);
        }
    }

    /// REFORM-1: a survivor waits for a life that has never been told that it was taken in: it is asked to end.
    pub(crate) fn end_if_missed(&self, node: NodeId, life: Incarnation, ctx: &mut Ctx<'_>) {
        if self.survivor.misses.contains(&(node, life)) {
            self.tell_over(node, life, ctx);
        }
    }

    /// A process that ends says that it was never a member, and will not be one.
    pub(crate) fn on_never_joined_rep(&mut self, signal: &Signal<'_>) {
        let NeverJoinedRep { nonce } = signal.body();
        let (node, life) = (signal.sender().node, Incarnation::new(signal.header.incarnation));
        if self.survivor.misses.contains(&(node, life)) {
            self.survivor.never_joined.insert((node, life, nonce));
        }
    }

    /// A survivor asks this one to form the group anew.
    pub(crate) fn hear_reform(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let sent = lats_catalog::decode::<(ControlState, Vec<View>)>(signal.payload());
        let Ok((state, views)) = sent else { return };
        let asker = (signal.sender().node, Incarnation::new(signal.header.incarnation));
        let again = |a: &Attempt| a.asked_by == asker && a.state.restarts() == state.restarts();
        if self.restart.attempt.as_ref().is_some_and(again) {
            return self.confirm_promise(ctx);
        }
        let based_on = signal.body::<RestartReq>().based_on;
        let is_newer = state.restarts() > self.keep.promised.max(self.state.restarts())
            && based_on >= self.state.restarts()
            && state.commands > self.state.commands;
        // Of whoever is over nothing is promised (REFORM-7: others count on that).
        let fits = state.view.is_alive(ctx.node(), ctx.incarnation())
            && self.leader().is_none()
            && !self.is_over(asker.0, asker.1);
        if is_newer && fits {
            self.promise_to_reform((state, based_on), views, asker, ctx);
            self.confirm_promise(ctx);
        }
    }

    /// All have promised: the group begins anew, with the processes that live.
    pub(crate) fn begin_reformed(&mut self, restarts: u64, ctx: &mut Ctx<'_>) {
        let Some(attempt) = self.restart.take_promise(restarts) else { return };
        let Attempt { state, views, .. } = attempt;
        let state = Arc::new(*state);
        self.consensus.found_anew(&state);
        self.survivor = Survivor::default();
        self.refused = None;
        self.restart = Restart::is_over();
        self.state = state;
        self.gone.retain(|node, life| self.state.view.is_alive(*node, *life));
        let told = self.told.0;
        let mut all: Vec<View> = views.into_iter().filter(|v| v.number > told).collect();
        all.push(self.state.view.clone());
        self.install(&all, ctx);
        self.keep_state(ctx);
        // All have promised a moment ago, however long they could not be heard before.
        self.formed_at = ctx.now();
        self.give_peers_time(ctx.now());
        let first = self.state.view.data_nodes().map(|m| m.node).min();
        if first == Some(ctx.node()) {
            self.plan_campaign_soon(ctx);
        }
    }
}

/// REFORM-2: what a disk knows that is newer than what any survivor knows.
fn newer_on_a_disk(
    state: &ControlState,
    present: &BTreeMap<NodeId, Present>,
) -> Result<Option<ControlState>, Untold> {
    let age = |p: &&Present| (p.has.restarts, p.has.commands);
    let own = (state.restarts(), state.commands);
    let newer = present.values().filter(|p| !p.said.lives && age(p) > own);
    let Some(newest) = newer.max_by_key(age) else { return Ok(None) };
    ControlState::decode(&newest.said.state).map(Some).map_err(|_| Untold)
}

/// Views of several nodes: each once, in their order, and older than the new one.
fn in_order(views: Vec<View>, newest: &View) -> Vec<View> {
    let by_number: BTreeMap<_, View> = views.into_iter().map(|v| (v.number, v)).collect();
    by_number.into_values().filter(|v| v.number < newest.number).collect()
}

impl ControlState {
    /// This state, for a group that these survivors form anew; there may be changes up to the epoch `newest`. Nothing is void.
    pub(crate) fn reformed(
        &self,
        (restarts, newest): (u32, Epoch),
        survivors: &BTreeSet<NodeId>,
    ) -> Self {
        let mut state = self.clone();
        let dead = state.view.members.iter().filter(|m| m.alive && !survivors.contains(&m.node));
        for node in dead.map(|m| m.node).collect::<Vec<NodeId>>() {
            state.remove(node);
        }
        state.begin_anew(restarts, newest);
        state.restored.resize(restarts as usize, Epoch::new(u64::MAX));
        state
    }
}
