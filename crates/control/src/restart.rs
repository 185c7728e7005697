//! The cluster comes up again from its disks, when none of its nodes is left (RESTART-1 to RESTART-5). Protocol:
//! `docs/protocols/restart.md`.

use crate::{
    Control, Start, TIMER_CAMPAIGN, TIMER_JOIN,
    consensus::{Consensus, raft_id},
    keep,
    lives::Origin,
    promises::Attempt,
    state::{ControlState, again::Participant},
};
use lats_base::{Duration, Epoch, Incarnation, Instant, NodeId};
use lats_catalog::{Group, Member, View};
use lats_files::{control::Unreadable, redo::newest_step};
use lats_kernel::{Ctx, Fault};
use lats_signals::{
    BlockKind, BlockRef, Signal,
    control::{NoteOrd, STATUS_WRONG_FILES, StopOrd},
    io::{FILE_CONTROL, FileName, IoListConf, IoListReq, IoReadConf, IoReadReq, IoRef},
    restart::{
        RestartConf, RestartOrd, RestartRep, RestartReq, RestoreReq, RestoredRep, SurveyRep,
        SurveyReq,
    },
};
use serde::{Deserialize, Serialize};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use zerocopy::IntoBytes;

/// How far a process is on its way into the cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It reads what a former life has kept.
    #[default]
    Reading,
    /// Its data managers read their logs.
    Surveying,
    /// It asks to join, and waits for others that have kept the same (RESTART-1).
    Waiting,
    /// It has promised to take part in a restart.
    Promised,
    /// It is a member, or asks to become one and has kept nothing.
    Running,
}

/// A restart of the cluster, as seen by a node.
#[derive(Debug, Default)]
pub(crate) struct Restart {
    pub(crate) phase: Phase,
    /// The files of former lives, and what has been read of the newest.
    files: Vec<u32>,
    bytes: Vec<u8>,
    /// What they have kept.
    kept: Option<Box<ControlState>>,
    surveys: BTreeMap<u32, Surveyed>,
    /// Who else waits, and what it has; this node, too.
    pub(crate) present: BTreeMap<NodeId, Present>,
    pub(crate) attempt: Option<Attempt>,
    /// What it had promised to others before, the newest one last: that may have been formed without its knowing (REFORM-3).
    pub(crate) superseded: Vec<Attempt>,
    waits_since: Option<Instant>,
    /// When somebody was told what it waits for.
    told_at: Option<Instant>,
    /// When the leader of a running cluster has said that this node's group is lost (RESTART-8).
    pub(crate) group_lost_at: Option<Instant>,
}

/// What the log of a data manager can give back: epochs, each with how many commands the state must know.
#[derive(Debug)]
struct Surveyed {
    newest: Epoch,
    durable: Epoch,
    steps: Vec<(u64, Epoch)>,
}

/// Who waits, and what it has.
#[derive(Clone, Debug)]
pub(crate) struct Present {
    pub(crate) has: RestartRep,
    pub(crate) said: Presence,
}

/// What a process tells others while the cluster is not up.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Presence {
    /// What it would be, or is.
    pub(crate) member: Member,
    pub(crate) origin: Origin,
    /// It is a member, and has its rows in memory (REFORM-1).
    pub(crate) lives: bool,
    /// The life of this node that has kept what is on its disk; 0: none is known.
    pub(crate) continues: Incarnation,
    /// The newest views, of one that lives (REFORM-4).
    pub(crate) views: Vec<View>,
    /// The state on its disk, if one that lives knows less.
    pub(crate) state: Vec<u8>,
}

const READ_BYTES: u32 = 256 << 10;
/// How long a partial restart waits for more nodes.
const PARTIAL_AFTER: Duration = Duration::from_millis(5_000);
/// How often a person is told what is waited for.
const TOLD_EVERY: Duration = Duration::from_millis(5_000);
/// What a node begins to say with, before the numbers of those that it waits for.
pub const WAITS_FOR_NODE: &str = "the cluster starts again when node ";
/// What a node says whose group the others go on without.
const GROUP_IS_LOST: &str = "the other nodes serve without the rows of this node's group, which was lost when its last full replica died; what its \
    disks have comes back when all nodes are stopped and started again: with everything as it was when the group was lost, and nothing of what has \
    been committed since";

impl Restart {
    /// The process is a member.
    pub(crate) fn is_over() -> Self {
        Self { phase: Phase::Running, ..Self::default() }
    }
}

impl Control {
    /// First of all: what has a former life kept?
    pub(crate) fn read_what_was_kept(&mut self, ctx: &mut Ctx<'_>) {
        self.keep.requests += 1;
        let request = self.keep.requests;
        let body = IoListReq { request, kind: FILE_CONTROL, instance: 0, reserved: 0 };
        ctx.ask_io(&body, &[]);
    }

    pub(crate) fn on_io_list_conf(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        if signal.body::<IoListConf>().request != self.keep.requests {
            return;
        }
        let numbers = signal.payload().chunks_exact(size_of::<u32>());
        let numbers = numbers.filter_map(|b| Some(u32::from_le_bytes(b.try_into().ok()?)));
        self.restart.files = numbers.collect();
        match self.restart.files.last() {
            None => self.survey_logs(ctx),
            Some(_) => {
                self.keep.begin_behind(self.restart.files.clone());
                self.read_file(ctx);
            }
        }
    }

    fn read_file(&mut self, ctx: &mut Ctx<'_>) {
        let Some(number) = self.restart.files.last().copied() else { return };
        self.keep.requests += 1;
        let body = IoReadReq {
            request: self.keep.requests,
            file: FileName { kind: FILE_CONTROL, instance: 0, number },
            offset: self.restart.bytes.len() as u64,
            bytes: READ_BYTES,
            reserved: 0,
        };
        ctx.ask_io(&body, &[]);
    }

    pub(crate) fn on_io_read_conf(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let body = signal.body::<IoReadConf>();
        let Some(owner) = self.keep.owner.filter(|_| body.request == self.keep.requests) else {
            return;
        };
        self.restart.bytes.extend_from_slice(signal.payload());
        let more = (self.restart.bytes.len() as u64) < body.file_bytes;
        if more && !signal.payload().is_empty() {
            return self.read_file(ctx);
        }
        let bytes = core::mem::take(&mut self.restart.bytes);
        match keep::read(owner, &bytes) {
            Ok(kept) => {
                (self.keep.promised, self.keep.durable) = (kept.promised, kept.durable);
                self.restart.kept = Some(Box::new(kept.state));
                self.survey_logs(ctx);
            }
            Err(Unreadable::Wrong(why)) => self.refuse_control_file(why, ctx),
            // The power was lost while it was written: the one before it is there still.
            Err(Unreadable::Damaged(why)) => {
                let number = self.restart.files.pop().unwrap_or_default();
                let text = format!("the control file {number} is passed over: {why}");
                let note = NoteOrd { loud: 0 };
                ctx.send_with(BlockRef::shell(ctx.node()), &note, &[text.as_bytes()]);
                match self.restart.files.is_empty() {
                    true => {
                        // RESTART-9: its logs may be good; what they are worth the others know.
                        self.restart.kept = Some(Box::default());
                        self.survey_logs(ctx);
                    }
                    false => self.read_file(ctx),
                }
            }
        }
    }

    pub(crate) fn on_read_ref(&mut self, body: &IoRef, ctx: &mut Ctx<'_>) {
        if self.restart.phase == Phase::Reading && body.request == self.keep.requests {
            self.refuse_control_file("it cannot be read; see the kernel's log", ctx);
        }
    }

    fn refuse_control_file(&self, why: &str, ctx: &mut Ctx<'_>) {
        let number = self.restart.files.last().copied().unwrap_or_default();
        let text = format!(
            "the control file {number} cannot be used: {why}. Put the right file there, or empty this node's directory: \
             it is filled from the other replicas then"
        );
        let stop = StopOrd { status: STATUS_WRONG_FILES };
        ctx.send_with(BlockRef::shell(ctx.node()), &stop, &[text.as_bytes()]);
    }

    /// RESTART-2: what can the logs give back?
    fn survey_logs(&mut self, ctx: &mut Ctx<'_>) {
        self.restart.phase = Phase::Surveying;
        let restored = self.restart.kept.as_ref().map_or(&[][..], |state| &state.restored);
        let body = SurveyReq { cluster: self.keep.owner.map_or(0, |owner| owner.cluster) };
        for ldm in self.blocks.keys().filter(|b| b.kind() == Some(BlockKind::Ldm)) {
            ctx.send_with(*ldm, &body, &[restored.as_bytes()]);
        }
        self.end_survey(ctx);
    }

    pub(crate) fn on_survey_rep(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let SurveyRep { newest, durable, instance, .. } = signal.body();
        let Ok(steps) = lats_catalog::decode(signal.payload()) else { return };
        self.restart.surveys.insert(instance, Surveyed { newest, durable, steps });
        self.end_survey(ctx);
    }

    fn ldm_count(&self) -> usize {
        self.blocks.keys().filter(|b| b.kind() == Some(BlockKind::Ldm)).count()
    }

    fn end_survey(&mut self, ctx: &mut Ctx<'_>) {
        if self.restart.phase != Phase::Surveying || self.restart.surveys.len() < self.ldm_count() {
            return;
        }
        let has_logs = self.restart.surveys.values().any(|s| s.newest > Epoch::default());
        if has_logs && self.restart.kept.is_none() {
            // RESTART-9: its control file is gone.
            self.restart.kept = Some(Box::default());
        }
        match (&self.restart.kept, &self.start) {
            (None, _) => {
                self.restart.phase = Phase::Running;
                self.begin(ctx);
            }
            (Some(_), Start::Found(_)) => {
                let why = "this node's directory has a cluster already; it can only be started again, not founded";
                let stop = StopOrd { status: STATUS_WRONG_FILES };
                ctx.send_with(BlockRef::shell(ctx.node()), &stop, &[why.as_bytes()]);
            }
            (Some(_), Start::Join { .. }) => {
                self.restart.phase = Phase::Waiting;
                if let Start::Join { member, .. } = &mut self.start {
                    member.had_kept = true;
                }
                self.note_own_presence(ctx);
                ctx.after(Duration::from_millis(1), TIMER_JOIN);
            }
        }
    }

    fn note_own_presence(&mut self, ctx: &mut Ctx<'_>) {
        let (Some(kept), Start::Join { member, origin, .. }) = (&self.restart.kept, &self.start)
        else {
            return;
        };
        let surveys = || self.restart.surveys.values();
        // RESTART-6: of later epochs that state does not know enough.
        let present = self.present(ctx);
        let heard = present.values().map(|p| (p.has.restarts, p.has.commands));
        let newest = heard.fold((kept.restarts(), kept.commands), Ord::max);
        let beyond = ctx.fault(Fault::BugRestartBeyondState);
        let limit = if beyond { u64::MAX } else { newest.1 };
        let restorable = |s: &Surveyed| newest_step(&s.steps, limit);
        let has = RestartRep {
            restarts: kept.restarts(),
            promised: self.keep.promised,
            commands: kept.commands,
            limit: newest.1,
            restorable: surveys().map(restorable).min().unwrap_or_default(),
            newest: surveys().map(|s| s.newest).max().unwrap_or_default(),
            // The logs may be gone, and with them what they said.
            durable: surveys().map(|s| s.durable).fold(self.keep.durable, Epoch::max),
            asked_by: self.restart.attempt.as_ref().map(|a| a.asked_by.1).unwrap_or_default(),
            asker: self.restart.attempt.as_ref().map_or(0, |a| u32::from(a.asked_by.0.get())),
            term: 0,
            index: 0,
        };
        // REFORM-2: one that lives may know less than this disk.
        let knows_less = |p: &Present| {
            p.said.lives && (p.has.restarts, p.has.limit) < (kept.restarts(), kept.commands)
        };
        let state = if present.values().any(knows_less) { kept.encode() } else { Vec::new() };
        let continues = kept.view.member(ctx.node()).map(|m| m.incarnation).unwrap_or_default();
        let (member, origin, views) = (member.clone(), origin.clone(), Vec::new());
        let said = Presence { member, origin, lives: false, continues, views, state };
        self.restart.present.insert(ctx.node(), Present { has, said });
    }

    /// With every attempt to join: the others that wait hear what this node has.
    pub(crate) fn tell_presence(&mut self, ctx: &mut Ctx<'_>) {
        if !matches!(self.restart.phase, Phase::Waiting | Phase::Promised) {
            return;
        }
        if self.has_lost_a_participant(ctx) {
            self.restart.attempt = None;
            self.restart.phase = Phase::Waiting;
        }
        self.ask_again(ctx);
        self.note_own_presence(ctx);
        let Some(own) = self.restart.present.get(&ctx.node()) else { return };
        let bytes = lats_catalog::encode(&own.said);
        let linked = self.peers.iter().filter(|(_, p)| p.link.get() != 0);
        for (node, _) in linked {
            ctx.send_with(BlockRef::control(*node), &own.has, &[&bytes]);
        }
        self.try_restart(ctx);
    }

    /// RESTART-1: a person does not want to wait for nodes whose disks are gone. The others get some time to come.
    fn may_be_partial(&mut self, ctx: &Ctx<'_>) -> bool {
        let since = *self.restart.waits_since.get_or_insert(ctx.now());
        let wanted = matches!(self.start, Start::Join { partial: true, .. });
        wanted && ctx.now().since(since) >= PARTIAL_AFTER
    }

    /// True if this node has asked for a restart that cannot begin any more.
    fn has_lost_a_participant(&self, ctx: &Ctx<'_>) -> bool {
        let Some(attempt) = &self.restart.attempt else { return false };
        let me = (ctx.node(), ctx.incarnation());
        let (ours, restarts) = (attempt.asked_by == me, attempt.state.restarts());
        // It has promised the same, or more, to somebody else.
        let serves_another = |has: &RestartRep| {
            has.promised >= restarts && (has.asker, has.asked_by) != (u32::from(me.0.get()), me.1)
        };
        let takes_part = |m: &Member| {
            let here = self.peers.get(&m.node).is_some_and(|p| p.link == m.incarnation);
            let has = self.restart.present.get(&m.node).map(|p| p.has);
            m.node == me.0 || (here && !has.is_some_and(|has| serves_another(&has)))
        };
        ours && !attempt.state.view.data_nodes().all(takes_part)
    }

    /// What was asked, or answered, may have been lost with a link that broke for a moment.
    fn ask_again(&mut self, ctx: &mut Ctx<'_>) {
        let Some(attempt) = &self.restart.attempt else { return };
        let me = ctx.node();
        if attempt.asked_by == (me, ctx.incarnation()) {
            let restarts = attempt.state.restarts();
            let (body, bytes) =
                (RestartReq { restarts, based_on: attempt.based_on }, attempt.state.encode());
            let all = attempt.state.view.data_nodes().map(|m| m.node);
            // Who has promised goes on by itself.
            let asker = (u32::from(me.get()), ctx.incarnation());
            let has_heard = |n: &NodeId| {
                let has = self.restart.present.get(n).map(|p| p.has);
                has.is_some_and(|has| {
                    has.promised >= restarts && (has.asker, has.asked_by) == asker
                })
            };
            for node in all.filter(|n| !has_heard(n) && *n != me) {
                ctx.send_with(BlockRef::control(node), &body, &[&bytes]);
            }
        }
        self.confirm_promise(ctx);
    }

    /// True if this life of a node waits as well: it has not taken us for a member.
    pub(crate) fn waits_too(&self, node: NodeId, life: Incarnation) -> bool {
        self.restart.present.get(&node).is_some_and(|p| p.said.member.incarnation == life)
    }

    pub(crate) fn on_restart_rep(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let Ok(said) = lats_catalog::decode::<Presence>(signal.payload()) else { return };
        let (has, node) = (signal.body::<RestartRep>(), signal.sender().node);
        let life = said.member.incarnation;
        if self.joined {
            if self.leader().is_some() && self.is_over(node, life) && said.lives {
                // RESTART-11: the others have gone on without it.
                return self.tell_over(node, life, ctx);
            }
            self.hear_origin(node, &said.origin, ctx);
            self.release_from_promise(node, &has, ctx);
        }
        self.restart.present.insert(node, Present { has, said });
        if matches!(self.restart.phase, Phase::Waiting | Phase::Promised) {
            self.try_restart(ctx);
        }
    }

    /// Those that wait now.
    pub(crate) fn present(&self, ctx: &Ctx<'_>) -> BTreeMap<NodeId, Present> {
        let waits = |node: NodeId, p: &Present| {
            node == ctx.node()
                || self.peers.get(&node).is_some_and(|peer| peer.link == p.said.member.incarnation)
        };
        let all = self.restart.present.iter().filter(|(node, p)| waits(**node, p));
        all.map(|(node, p)| (*node, p.clone())).collect()
    }

    /// RESTART-1: whoever has the newest state begins, when every data node is there that was alive in it.
    fn try_restart(&mut self, ctx: &mut Ctx<'_>) {
        let Some(kept) = self.restart.kept.clone() else { return };
        let present = self.present(ctx);
        let age =
            |(node, p): &(&NodeId, &Present)| (p.has.restarts, p.has.commands, Reverse(node.get()));
        let disks = present.iter().filter(|(_, p)| !p.said.lives);
        let newest = disks.max_by_key(age).map(|(node, _)| *node);
        let asked = self.restart.attempt.as_ref().is_some_and(|a| {
            let (node, life) = a.asked_by;
            present.get(&node).is_some_and(|p| p.said.member.incarnation == life)
        });
        if newest != Some(ctx.node()) || asked {
            return;
        }
        let may_go_on = |(node, p): (&NodeId, &Present)| {
            p.said.lives && kept.view.is_alive(*node, p.said.member.incarnation)
        };
        if let Some((node, _)) = present.iter().find(|(n, p)| may_go_on((n, p))) {
            // REFORM-1: it goes on with its memory, or gives way.
            let why =
                format!("node {node} lives and has its rows: the cluster goes on with what it has");
            return self.tell_why_it_waits(&why, ctx);
        }
        if kept.commands == 0 {
            let why = "the control file of this node is damaged or gone, so it cannot know with whom the cluster can start again: it waits for \
                       another node that knows";
            return self.tell_why_it_waits(why, ctx);
        }
        let hasty = self.may_be_partial(ctx) || ctx.fault(Fault::BugRestartWithoutAll);
        let trusts = ctx.fault(Fault::BugTrustDamagedLog);
        let present: BTreeMap<NodeId, Present> =
            present.into_iter().filter(|(_, p)| !p.said.lives).collect();
        let (epoch, participants) = match participants(&kept, &present, (hasty, trusts)) {
            Ok(found) => found,
            Err(_) if self.is_group_lost(ctx) => return self.tell_why_it_waits(GROUP_IS_LOST, ctx),
            Err(why) => return self.tell_why_it_waits(&why, ctx),
        };
        let promised = present.values().map(|p| p.has.promised).max().unwrap_or_default();
        let latest = present.values().map(|p| p.has.newest).max().unwrap_or_default();
        let (restarts, based_on) = (promised.max(kept.restarts()) + 1, kept.restarts());
        let state = kept.again(restarts, (epoch, latest), &participants);
        let (body, bytes) = (RestartReq { restarts, based_on }, state.encode());
        let me = ctx.node();
        for node in participants.keys().filter(|n| **n != me) {
            ctx.send_with(BlockRef::control(*node), &body, &[&bytes]);
        }
        self.promise((state, based_on), (ctx.node(), ctx.incarnation()), ctx);
    }

    /// True if the others serve without this node's group.
    fn is_group_lost(&self, ctx: &Ctx<'_>) -> bool {
        let told = self.restart.group_lost_at.map(|at| ctx.now().since(at));
        told.is_some_and(|ago| ago <= TOLD_EVERY)
    }

    pub(crate) fn tell_why_it_waits(&mut self, why: &str, ctx: &mut Ctx<'_>) {
        let now = ctx.now();
        let at = self.restart.told_at.get_or_insert(now);
        if now.since(*at) >= TOLD_EVERY {
            *at = now;
            ctx.send_with(BlockRef::shell(ctx.node()), &NoteOrd { loud: 0 }, &[why.as_bytes()]);
        }
    }

    pub(crate) fn on_restart_req(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        if self.joined {
            return self.hear_reform(signal, ctx);
        }
        if self.gives_up() {
            return;
        }
        let Ok(state) = ControlState::decode(signal.payload()) else { return };
        let Some(kept) = &self.restart.kept else { return };
        let waits = matches!(self.restart.phase, Phase::Waiting | Phase::Promised);
        let asker = (signal.sender().node, Incarnation::new(signal.header.incarnation));
        let again = |a: &Attempt| a.asked_by == asker && a.state.restarts() == state.restarts();
        if self.restart.attempt.as_ref().is_some_and(again) {
            return self.confirm_promise(ctx);
        }
        let is_newer = state.restarts() > kept.restarts()
            && state.commands > kept.commands
            && state.restarts() > self.keep.promised;
        if !waits || !is_newer || !state.view.is_alive(ctx.node(), ctx.incarnation()) {
            return;
        }
        let based_on = signal.body::<RestartReq>().based_on;
        self.promise((state, based_on), asker, ctx);
    }

    /// RESTART-3: takes part in no earlier restart any more, and loads the rows.
    fn promise(
        &mut self,
        (state, based_on): (ControlState, u32),
        asked_by: (NodeId, Incarnation),
        ctx: &mut Ctx<'_>,
    ) {
        let Some(kept) = self.restart.kept.clone() else { return };
        self.restart.phase = Phase::Promised;
        self.keep.write(&kept, 0, state.restarts(), ctx);
        let mut to_load = 0;
        if state.view.is_in_sync(ctx.node()) {
            let catalog = state.catalog.encode();
            let known = lats_catalog::encode(&(&state.view, &state.restored, &catalog));
            let epoch = state.restored.last().copied().unwrap_or_default();
            let restarts = u64::from(state.restarts());
            for ldm in self.blocks.keys().filter(|b| b.kind() == Some(BlockKind::Ldm)) {
                ctx.send_with(*ldm, &RestoreReq { epoch, restarts }, &[&known]);
                to_load += 1;
            }
        }
        let (loaded, ready, views) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
        let state = Box::new(state);
        let attempt = Attempt { state, based_on, views, asked_by, loaded, to_load, ready };
        self.restart.attempt = Some(attempt);
    }

    pub(crate) fn on_restored_rep(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let RestoredRep { instance, restarts } = signal.body();
        let attempt = self.restart.attempt.as_mut();
        if let Some(attempt) = attempt.filter(|a| a.state.restarts() == restarts) {
            attempt.loaded.insert(instance);
            self.confirm_promise(ctx);
        }
    }

    /// When the promise is on disk and the rows are loaded, whoever has asked may count on this node.
    pub(crate) fn confirm_promise(&mut self, ctx: &mut Ctx<'_>) {
        let Some(attempt) = &self.restart.attempt else { return };
        let restarts = attempt.state.restarts();
        if attempt.loaded.len() < attempt.to_load || self.keep.promised != restarts {
            return;
        }
        let (node, asked_by) = attempt.asked_by;
        if node == ctx.node() {
            self.note_ready(node, ctx);
        } else {
            ctx.send(BlockRef::control(node), &RestartConf { restarts, asked_by });
        }
    }

    pub(crate) fn on_restart_conf(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let conf = signal.body::<RestartConf>();
        let attempt = self.restart.attempt.as_ref();
        let me = (ctx.node(), ctx.incarnation());
        let is_it = |a: &Attempt| a.asked_by == me && a.state.restarts() == conf.restarts;
        if attempt.is_some_and(is_it) && conf.asked_by == me.1 {
            self.note_ready(signal.sender().node, ctx);
        }
    }

    pub(crate) fn note_ready(&mut self, node: NodeId, ctx: &mut Ctx<'_>) {
        let Some(attempt) = &mut self.restart.attempt else { return };
        attempt.ready.insert(node);
        let all: BTreeSet<NodeId> = attempt.state.view.data_nodes().map(|m| m.node).collect();
        if attempt.ready != all {
            return;
        }
        let body = RestartOrd { restarts: attempt.state.restarts(), reserved: 0 };
        let me = ctx.node();
        for node in all.into_iter().filter(|n| *n != me) {
            ctx.send(BlockRef::control(node), &body);
        }
        let restarts = u64::from(body.restarts);
        self.begin_again(restarts, ctx);
        self.campaign_planned = true;
        ctx.after(Duration::from_millis(1), TIMER_CAMPAIGN);
    }

    pub(crate) fn on_restart_ord(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let restarts = signal.body::<RestartOrd>().restarts;
        let asked_by = (signal.sender().node, Incarnation::new(signal.header.incarnation));
        let is_free = || self.restart.may_begin(u64::from(restarts), ctx.node(), asked_by);
        if self.restart.was_asked_by(restarts, asked_by) && (!self.joined || is_free()) {
            self.begin_again(u64::from(restarts), ctx);
        }
    }

    /// All have promised: the control group begins anew, with the new lives.
    fn begin_again(&mut self, restarts: u64, ctx: &mut Ctx<'_>) {
        if self.joined {
            return self.begin_reformed(restarts, ctx);
        }
        let Some(attempt) = self.restart.attempt.take().filter(|_| !self.gives_up()) else {
            return;
        };
        self.restart = Restart::is_over();
        let state = Arc::new(*attempt.state);
        let alive = state.view.members.iter().filter(|m| m.alive);
        let voters = alive.map(|m| raft_id(m.node, m.incarnation)).collect();
        let id = raft_id(ctx.node(), ctx.incarnation());
        self.consensus = Consensus::found(id, voters, &state);
        let epoch = state.restored.last().copied().unwrap_or_default();
        self.state = state;
        self.hear_epoch(epoch);
        self.epochs.complete = epoch;
        self.epochs.disk.durable = epoch;
        self.joined = true;
        self.install(&[], ctx);
        self.keep_state(ctx);
    }

    /// RESTART-7: nobody has any rows any more, and nothing is left to serve. True if it ends.
    pub(crate) fn gives_way_to_restart(&mut self, ctx: &mut Ctx<'_>) -> bool {
        let view = &self.state.view;
        // CLOSE-5: who is told to end has its own way to do so.
        let lost = !self.is_told_to_end() && view.groups.iter().all(Group::is_lost);
        let ends = view.config.keeps && lost;
        if ends {
            let why = "the nodes that had the rows have died; a new process takes part in the restart of the cluster";
            self.leave(why, ctx);
        }
        ends
    }

    /// REFORM-6: newer lives of all data nodes but those that live as members wait with their disks: nothing but these lives keeps the
    /// cluster from its restart.
    pub(crate) fn all_others_wait(&self, ctx: &Ctx<'_>) -> bool {
        let present = self.present(ctx);
        let waits = |m: &Member| {
            let is_proved = |p: &Present| {
                let nonce = self.nonce_of(m.node);
                self.gone.get(&m.node) == Some(&m.incarnation)
                    || p.said.origin.ended.contains(&(m.incarnation, nonce))
            };
            let here = present.get(&m.node);
            m.node == ctx.node() || here.is_some_and(|p| p.said.lives || is_proved(p))
        };
        let view = &self.state.view;
        let is_here = |n: &NodeId| *n == ctx.node() || present.contains_key(n);
        view.data_nodes().all(waits) && view.groups.iter().flat_map(|g| &g.last).all(is_here)
    }

    /// The consensus group works with this node already, which has not heard that the restart has begun: it cannot know what
    /// it has missed.
    pub(crate) fn leave_if_left_behind(&mut self, ctx: &mut Ctx<'_>) -> bool {
        let behind = self.restart.phase == Phase::Promised;
        if behind {
            self.leave("the cluster has restarted without this node; a new process can join", ctx);
        }
        behind
    }
}

/// DEATH-2: a node that is there, and cannot certify that the life has ended which the state names. One that lives as a member is
/// not among those that are present here.
fn not_proved_to_be_dead(
    kept: &ControlState,
    present: &BTreeMap<NodeId, Present>,
) -> Option<NodeId> {
    let is_proved = |m: &Member| {
        let Some(here) = present.get(&m.node) else { return true };
        let Origin { nonce: own, ended } = &here.said.origin;
        let life = here.said.member.incarnation;
        // It may be that very process, which has not heard that it was taken in: it promises not to be.
        let is_dead = |nonce| ended.contains(&(m.incarnation, nonce));
        let is_itself = |nonce| (m.incarnation, nonce) == (life, *own);
        // States of earlier versions name no processes.
        kept.nonces.get(&m.node).is_none_or(|nonce| is_dead(*nonce) || is_itself(*nonce))
    };
    kept.view.data_nodes().find(|m| !is_proved(m)).map(|m| m.node)
}

/// Who takes part in a restart, and with which epoch it begins; else what is missing.
fn participants(
    kept: &ControlState,
    present: &BTreeMap<NodeId, Present>,
    (hasty, trusts): (bool, bool),
) -> Result<(Epoch, BTreeMap<NodeId, Participant>), String> {
    let view = &kept.view;
    let last = view.groups.iter().flat_map(|g| &g.last).copied();
    let needed = view.data_nodes().map(|m| m.node).chain(last);
    let missing: Vec<String> =
        needed.filter(|n| !present.contains_key(n)).map(|n| n.to_string()).collect();
    if !missing.is_empty() && !hasty {
        return Err(format!(
            "{WAITS_FOR_NODE}{} is there with its disk; if that is gone, stop, and start with --partial",
            missing.join(", ")
        ));
    }
    if let Some(node) = not_proved_to_be_dead(kept, present).filter(|_| !hasty) {
        return Err(format!(
            "the directory of node {node} was on another machine, or is a copy: its former process may live and serve. If it is gone for certain, \
             stop, and start with --partial"
        ));
    }
    let restored = kept.restored_at();
    let had = |node: NodeId| view.groups.iter().any(|g| g.had(node));
    let unaware = |(node, p): &(&NodeId, &Present)| had(**node) && p.has.limit != kept.commands;
    if let Some((node, _)) = present.iter().find(unaware) {
        return Err(format!("node {node} has not said yet what it can give back"));
    }
    // Whoever has been in the cluster since its last restart knows as well.
    let knows = |(node, p): &(&NodeId, &Present)| had(**node) || p.has.restarts == kept.restarts();
    let known = present.iter().filter(knows).map(|(_, p)| p.has.durable);
    let durable = known.fold(restored, Epoch::max);
    let is_whole = |p: &&Present| p.has.restorable >= durable || trusts;
    let full = |node: NodeId| present.get(&node).filter(is_whole).filter(|_| had(node));
    let nodes = || view.groups.iter().flat_map(|g| &g.nodes).copied();
    // What a person gives up stays lost.
    let given_up = |g: &Group| hasty && g.is_lost();
    let nobody = |g: &&Group| g.nodes.iter().all(|n| full(*n).is_none()) && !given_up(g);
    if let Some(group) = view.groups.iter().find(nobody) {
        let nodes: Vec<String> = group.nodes.iter().map(|n| n.to_string()).collect();
        return Err(format!(
            "none of nodes {} can give back epoch {durable}, which was durable: their redo logs are damaged or gone. Put the right \
             files into their directories, or restore a backup",
            nodes.join(", ")
        ));
    }
    // RESTART-2: the newest epoch that a replica of each group can give back. Whose log has less, or is damaged, is filled by the others.
    let best = |g: &Group| g.nodes.iter().filter_map(|n| Some(full(*n)?.has.restorable)).max();
    let epoch = view.groups.iter().filter_map(best).min().unwrap_or_default();
    let here = nodes().filter_map(|n| Some((n, present.get(&n)?)));
    let participants = here.map(|(node, p)| {
        let is_full = full(node).is_some_and(|p| p.has.restorable >= epoch || trusts);
        (node, Participant { member: p.said.member.clone(), nonce: p.said.origin.nonce, is_full })
    });
    Ok((epoch, participants.collect()))
}
