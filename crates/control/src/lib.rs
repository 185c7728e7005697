//! Control: the consensus group, membership, views, leases, and the catalog.
//!
//! The control state is replicated by a consensus library ([`consensus`]); what it is and how
//! commands change it is in [`state`]. Everything that serves data is told by signals.
//! Protocol: `docs/protocols/membership.md`.
#![forbid(unsafe_code)]

mod clients;
mod close;
mod consensus;
mod durable;
mod epoch;
mod gone;
mod hand_over;
mod install;
mod join;
mod keep;
mod late;
mod links;
mod lives;
mod membership;
mod pace;
mod promises;
mod reform;
mod removal;
mod rest;
mod restart;
mod silence;
mod state;
mod stop;

pub use keep::{Kept, decode as decode_kept};
pub use lives::Origin;
pub use restart::WAITS_FOR_NODE;
pub use state::{Command, ControlState, Founding, LifeSign, Status};

use consensus::{Consensus, raft_id};
use lats_base::{Duration, Incarnation, Instant, NodeId, NodeSet, Nonce, RefCode, ViewNumber};
use lats_catalog::{Member, View};
use lats_files::control::Owner;
use lats_kernel::{Block, Ctx, TimerToken};
use lats_signals::{BlockKind, BlockRef, Signal, SignalNumber, control::RaftOrd};
use raft::eraftpb::Message;
use restart::Phase;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// How a node comes into its cluster.
#[derive(Clone, Debug)]
pub enum Start {
    /// All founding members start with the same record.
    Found(Founding),
    /// Ask a node of a running cluster.
    Join {
        /// What this node is.
        member: Member,
        /// Which process it is.
        origin: Origin,
        /// Nodes that the shell tries to link to.
        seeds: Vec<NodeId>,
        /// In a restart of the whole cluster: a person does not want to wait for nodes that others can stand in for.
        partial: bool,
    },
}

impl Start {
    /// Which process of this node this is.
    pub fn nonce(&self, node: NodeId) -> Nonce {
        match self {
            Self::Found(founding) => Nonce::of_founder(founding.number, node),
            Self::Join { origin, .. } => origin.nonce,
        }
    }
}

/// The control block.
pub struct Control {
    start: Start,
    roles_data: bool,
    consensus: Consensus,
    state: Arc<ControlState>,
    /// The blocks of this node that install views and catalogs, with what they have confirmed.
    blocks: BTreeMap<BlockRef, (ViewNumber, u64)>,
    installed: (ViewNumber, u64),
    told: (ViewNumber, u64),
    /// Views that are to be installed when the newest one is on disk (FENCE-1).
    unfenced: Vec<View>,
    catalog_told_at: Instant,
    everywhere: u64,
    peers: BTreeMap<NodeId, Peer>,
    lease: membership::Lease,
    epochs: epoch::Epochs,
    hand_overs: hand_over::HandOvers,
    /// The members as they were written into the log last.
    members_noted: String,
    /// VIEW-12: what it does not agree to.
    refused: Option<Refused>,
    leave_taking: stop::Leave,
    close: close::Close,
    became_leader_at: Option<Instant>,
    /// When the group was formed anew that this node takes part in, if it was.
    formed_at: Instant,
    synced: BTreeMap<u32, u64>,
    subscribers: BTreeSet<BlockRef>,
    changes: BTreeMap<u64, clients::PendingChange>,
    changes_planned: bool,
    heard: clients::Heard,
    joined: bool,
    /// The group that has begun to take this process in, by how many times it was formed anew.
    joins_group: u64,
    started: bool,
    /// When this node began to take part.
    begun_at: Instant,
    /// Lives whose end is certified, until a view without them is here (DEATH-1).
    gone: BTreeMap<NodeId, Incarnation>,
    /// Leader: links between data nodes that are broken.
    broken: Vec<links::Broken>,
    campaign_planned: bool,
    farewell_ticks: u32,
    /// It has said that it will never be a member, and why; then it ends (REFORM-1).
    never_joins: Option<(RefCode, Instant)>,
    /// The shell was told to end the process.
    leaving: bool,
    /// Data nodes that cannot be asked (SILENT-1).
    silent: NodeSet,
    /// Those of them that clients were told of: none while this node has no lease.
    silent_told: NodeSet,
    /// This node, if clients were told that it has no lease.
    cut_off_told: Option<NodeId>,
    ticks: rest::Ticks,
    late: late::Late,
    beat_at: Instant,
    probed_at: Instant,
    synced_told_at: Instant,
    keep: keep::Keep,
    lost: Option<gone::Lost>,
    /// Lives of other nodes that have said that they have nothing on their disks.
    lost_others: BTreeMap<NodeId, Incarnation>,
    restart: restart::Restart,
    survivor: reform::Survivor,
}

/// VIEW-12: an entry that would take out this node: its term and index, and the newest term of a leader that has offered it.
#[derive(Clone, Copy, Debug)]
struct Refused {
    entry: (u64, u64),
    term: u64,
}

/// What is known of another node.
#[derive(Clone, Copy, Debug, Default)]
struct Peer {
    /// The life that the view names.
    incarnation: Incarnation,
    /// The life that there is a link to; 0 for none.
    link: Incarnation,
    /// Its process.
    link_nonce: Nonce,
    /// The newest life that there ever was a link to.
    had_link: Incarnation,
    /// The newest life that signals were lost to, or from, because a link to it was closed.
    lost_link: Incarnation,
    /// Leader: our newest clock that it has echoed as a member: it lived and heard us then.
    heard_at: Option<Instant>,
    /// Leader: until when a lease granted here may be believed by it.
    granted_until: Instant,
    /// Leader: when it last heard an earlier leader, on our clock, or later than that.
    followed_another: Option<Instant>,
    /// Leader: our clock, as echoed by it: it followed us then.
    echoed: Instant,
    installed: (ViewNumber, u64),
    /// Leader: a link of it is broken, and it is the end that goes. It gets no lease any more.
    doomed: bool,
    /// Leader: its removal was proposed.
    removing: bool,
    /// Leader: it is to stop, and says how far it is.
    leaves: stop::Leaves,
    /// Its clock in its newest heartbeat.
    clock: u64,
    /// Our clock, as echoed by its heartbeats: packets passed both ways then.
    fresh_at: Instant,
    /// The newest moment, on our clock, at which it is proved to have lived: it has answered a heartbeat of ours, or
    /// (leader) of somebody who follows us. No pause of ours moves it.
    lived_at: Instant,
    /// Since when nothing can be exchanged with it.
    broken_since: Option<Instant>,
    /// How late its threads are, as it has said last, in ms (LATE-1).
    late_ms: u64,
    /// Its clock in its newest probe of the lane of rows.
    rows_clock: u64,
    /// Our clock in a probe that it has had, or later if what is late explains why it has not (LATE-5).
    rows_passed_at: Instant,
}

pub(crate) const TICK: Duration = Duration::from_millis(10);
const TIMER_TICK: TimerToken = 0;
const TIMER_CAMPAIGN: TimerToken = 1;
const TIMER_JOIN: TimerToken = 2;
const TIMER_KEEP: TimerToken = 3;
const TIMER_EPOCH: TimerToken = 4;
const TIMER_CHANGES: TimerToken = 5;
const JOIN_RETRY: Duration = Duration::from_millis(100);

impl Control {
    /// The control block of one life of a node. `blocks`: the coordinators and data managers of
    /// this node, which install views and catalogs. `cluster`: its id, if the node keeps what it knows on disk.
    pub fn new(
        node: NodeId,
        incarnation: Incarnation,
        start: Start,
        blocks: Vec<BlockRef>,
        cluster: Option<u64>,
    ) -> Self {
        let owner = cluster.map(|cluster| Owner { cluster, node });
        let id = raft_id(node, incarnation);
        let (state, consensus, roles_data) = match &start {
            Start::Found(founding) => {
                let state = Arc::new(ControlState::found(founding));
                let voters = state.view.members.iter().map(|m| raft_id(m.node, m.incarnation));
                let consensus = Consensus::found(id, voters.collect(), &state);
                let data = state.view.member(node).is_some_and(|m| m.roles.data);
                (state, consensus, data)
            }
            Start::Join { member, .. } => (Arc::default(), Consensus::join(id), member.roles.data),
        };
        Self {
            joined: matches!(start, Start::Found(_)),
            start,
            roles_data,
            consensus,
            state,
            blocks: blocks.into_iter().map(|b| (b, Default::default())).collect(),
            installed: Default::default(),
            told: Default::default(),
            unfenced: Vec::new(),
            catalog_told_at: Instant::ZERO,
            everywhere: 0,
            peers: BTreeMap::new(),
            lease: membership::Lease::default(),
            epochs: epoch::Epochs::default(),
            hand_overs: hand_over::HandOvers::default(),
            members_noted: String::new(),
            refused: None,
            leave_taking: stop::Leave::default(),
            close: close::Close::default(),
            became_leader_at: None,
            formed_at: Instant::ZERO,
            synced: BTreeMap::new(),
            subscribers: BTreeSet::new(),
            changes: BTreeMap::new(),
            changes_planned: false,
            joins_group: 0,
            heard: clients::Heard::default(),
            started: false,
            begun_at: Instant::ZERO,
            gone: BTreeMap::new(),
            broken: Vec::new(),
            campaign_planned: false,
            farewell_ticks: 0,
            never_joins: None,
            leaving: false,
            silent: NodeSet::EMPTY,
            silent_told: NodeSet::EMPTY,
            cut_off_told: None,
            ticks: rest::Ticks::default(),
            late: late::Late::default(),
            beat_at: Instant::ZERO,
            probed_at: Instant::ZERO,
            synced_told_at: Instant::ZERO,
            keep: keep::Keep::of(owner),
            lost: None,
            lost_others: BTreeMap::new(),
            restart: restart::Restart::default(),
            survivor: reform::Survivor::default(),
        }
    }

    /// The replicated state as this node knows it.
    pub fn state(&self) -> &ControlState {
        &self.state
    }

    /// True if this node leads the control group.
    pub fn is_leader(&self) -> bool {
        self.consensus.is_leader()
    }

    /// True if this node knows of no trouble, but perhaps with these: every other member lives and
    /// is in touch. For the simulator, which does not break more than can be broken.
    ///
    /// Nobody may be leading.
    pub fn is_calm(&self, but_for: &[NodeId]) -> bool {
        let troubled = |m: &Member| {
            self.peers.get(&m.node).is_some_and(|p| p.doomed || p.lost_link >= m.incarnation)
        };
        let mut others = self.state.view.members.iter().filter(|m| !but_for.contains(&m.node));
        self.lost.is_none()
            && self.gone.keys().all(|n| but_for.contains(n))
            && self.broken.iter().all(|b| b.is_about(|n| but_for.contains(&n)))
            && others.all(|m| m.alive && !(m.roles.data && troubled(m)))
    }

    /// The voters' lives as this node knows them, if no change of them is under way here: what it decides
    /// alone, if it must, it decides among these (VIEW-8). For the simulator.
    pub fn settled_voters(&self) -> Option<Vec<(NodeId, Incarnation)>> {
        let life = |id: u64| (NodeId::new((id >> 32) as u16), Incarnation::new(id as u32));
        let settled = !self.consensus.has_change_under_way();
        settled.then(|| self.consensus.voters().into_iter().map(life).collect())
    }

    /// What it believes, for a person.
    pub fn describe(&self) -> String {
        let life = |id: u64| format!("{}:{}", id >> 32, id as u32);
        let voters: Vec<String> = self.consensus.voters().into_iter().map(life).collect();
        format!(
            "view {} ({} restarts), groups {:?}, leader {:?}, term {}, {}; voters {voters:?}, change under way: {}; gone {:?}; joined {}; promised {:?}; waits for {:?}",
            self.state.view.number,
            self.state.restarts(),
            self.state.view.groups,
            self.leader(),
            self.consensus.term(),
            self.consensus.describe(),
            self.consensus.has_change_under_way(),
            self.gone,
            self.joined,
            self.promises(),
            self.survivor.waits_for,
        )
    }

    /// Which formations of the group it has promised to take part in, and who has asked for each.
    pub fn promises(&self) -> Vec<(u32, NodeId)> {
        self.restart.describe_promises()
    }

    /// True while its log has a change of the members that is not agreed on, as far as it knows.
    pub fn changes_members(&self) -> bool {
        self.consensus.has_change_under_way()
    }

    /// The data nodes that it has not heard for long (SILENT-1).
    pub fn silent(&self) -> NodeSet {
        self.silent
    }

    /// Lives that a survivor without a leader waits for: it cannot know whether they have gone on without it (REFORM-1).
    pub fn misses(&self) -> &[(NodeId, Incarnation)] {
        &self.survivor.misses
    }

    /// True if it knows who leads.
    pub fn knows_leader(&self) -> bool {
        self.leader().is_some()
    }

    fn me_alive(&self, ctx: &Ctx<'_>) -> bool {
        self.state.view.is_alive(ctx.node(), ctx.incarnation())
    }

    fn leader(&self) -> Option<NodeId> {
        self.consensus.leader()
    }

    fn begin(&mut self, ctx: &mut Ctx<'_>) {
        self.begun_at = ctx.now();
        if let Start::Found(_) = self.start {
            self.install(&[], ctx);
            // The first founder stands at once; without this the others would wait for its
            // election timeout.
            let first = self.state.view.members.iter().map(|m| m.node).min();
            if first == Some(ctx.node()) {
                self.campaign_planned = true;
                ctx.after(Duration::from_millis(1), TIMER_CAMPAIGN);
            }
        } else {
            ctx.after(Duration::from_millis(1), TIMER_JOIN);
        }
    }

    fn tick(&mut self, ctx: &mut Ctx<'_>) {
        if !self.started {
            self.started = true;
            if self.keep.owner.is_some() {
                self.read_what_was_kept(ctx);
            } else {
                self.restart.phase = Phase::Running;
                self.begin(ctx);
            }
        }
        if matches!(self.restart.phase, Phase::Reading | Phase::Surveying) {
            return self.plan_tick(ctx);
        }
        let passed = self.ticks.passed(ctx.now(), self.pace());
        self.tick_consensus(passed, ctx);
        self.stand_again(ctx);
        self.membership_tick(ctx);
        self.repropose_changes(ctx);
        self.run_consensus(ctx);
        self.plan_tick(ctx);
    }

    /// Time passes for the consensus library.
    fn tick_consensus(&mut self, passed: u64, ctx: &Ctx<'_>) {
        // REFORM-3: who has promised to leave the group decides nothing in it any more.
        if !self.leaves_the_group() && !self.stands_aside(ctx) {
            (0..passed).for_each(|_| self.consensus.tick());
        }
    }

    /// Sends what the consensus library wants sent, and applies what it has agreed on.
    fn run_consensus(&mut self, ctx: &mut Ctx<'_>) {
        let was_leader = self.became_leader_at.is_some();
        let before = (self.state.view.number, self.state.catalog.version);
        // REFORM-3: whoever has promised to leave decides nothing here, not for the gone either.
        if !self.leaves_the_group() {
            let gone = |id: u64| is_among(&self.gone, id);
            self.consensus.consent(gone);
        }
        let output = self.consensus.advance(&mut self.state);
        // Something else was agreed on in its place, or the removal.
        let applied = self.consensus.applied();
        self.refused = self.refused.filter(|refused| refused.entry.1 > applied);
        for message in output.messages {
            let to = NodeId::new((message.to >> 32) as u16);
            let restarts = self.group();
            let body = RaftOrd { from: message.from, to: message.to, restarts };
            ctx.send_with(BlockRef::control(to), &body, &[&message.bytes]);
        }
        if self.consensus.is_leader() != was_leader {
            self.turn_leader(was_leader, ctx.now());
            self.became_leader_at = self.consensus.is_leader().then(|| ctx.now());
            self.broken.clear();
            for peer in self.peers.values_mut() {
                peer.echoed = Instant::ZERO;
                peer.heard_at = None;
                peer.followed_another = None;
                peer.doomed = false;
                peer.removing = false;
                peer.leaves = stop::Leaves::No;
            }
        }
        if self.is_leader() {
            // EPOCH-6: the first view of a new leader may be the one that lets this node serve alone.
            self.renew_own_lease(ctx);
            if self.consensus.may_change_voters() {
                // None is under way: what was proposed has come about, or did not fit any more.
                self.peers.values_mut().for_each(|peer| peer.removing = false);
            }
        }
        if self.joined && output.missed_views && self.me_alive(ctx) {
            return self
                .leave("it has missed changes of the cluster's view; a new process can join", ctx);
        }
        self.remember_views(&output.views);
        if before != (self.state.view.number, self.state.catalog.version) {
            self.install(&output.views, ctx);
        }
        self.keep_state(ctx);
        // One that is refused, or that changes nothing, makes no new version.
        self.answer_changes(ctx);
        if self.is_leader() {
            // At once, when a new leader has settled or the last change of voters is through.
            self.pursue_the_gone(ctx);
        }
    }

    /// How many times the consensus group was formed anew that this node takes part in, or is about to.
    fn group(&self) -> u64 {
        if self.joined { u64::from(self.state.restarts()) } else { self.joins_group }
    }

    fn on_raft_ord(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let body = signal.body::<RaftOrd>();
        if body.to != self.consensus.id() || self.leave_if_left_behind(ctx) || self.gives_up() {
            return;
        }
        // It works already: it has begun without saying so, or that was lost.
        let sender = (signal.sender().node, Incarnation::new(signal.header.incarnation));
        if self.leaves_the_group() && self.restart.may_begin(body.restarts, ctx.node(), sender) {
            self.begin_reformed(body.restarts, ctx);
        }
        if !self.joined {
            self.joins_group = body.restarts;
        }
        let Some(message) = Consensus::read(signal.payload()) else { return };
        if body.restarts != self.group() {
            return;
        }
        if Consensus::is_from_leader(&message) {
            self.give_up_own_proposal(ctx);
        }
        if self.leaves_the_group() {
            return;
        }
        let waits = matches!(self.restart.phase, Phase::Reading | Phase::Surveying);
        let (from, life) = (signal.sender().node, Incarnation::new(signal.header.incarnation));
        if self.refuses(&message, from, ctx) {
            self.consensus.forget_leader(from, life);
        } else if !waits {
            let before = self.leader();
            if self.joined && Consensus::asks_for_vote(&message) {
                // REST-3: whoever rests knows, too, for how long it has heard no leader.
                let passed = self.ticks.passed_meanwhile(ctx.now(), self.pace());
                self.tick_consensus(passed, ctx);
            }
            self.consensus.hear(message);
            self.run_consensus(ctx);
            if self.joined && self.leader() != before {
                self.greet_leader(ctx);
            }
        }
    }

    /// VIEW-12: a message of the consensus group that would have this node agree to its own removal, or help whoever wants that.
    fn refuses(&mut self, message: &Message, from: NodeId, ctx: &Ctx<'_>) -> bool {
        if !self.is_alone(from, ctx) {
            self.refused = None;
            return false;
        }
        if let Some(entry) = self.consensus.inherited_own_removal(Some(message)) {
            self.refused = Some(Refused { entry, term: message.term });
            return true;
        }
        // Of that leader nothing is heard any more; and nobody is elected who has that entry.
        self.refused.is_some_and(|refused| {
            let is_vote = Consensus::asks_for_vote(message);
            let has_it = (message.log_term, message.index) >= refused.entry;
            message.term <= refused.term || (is_vote && has_it)
        })
    }

    /// VIEW-12: a leader of an earlier term has proposed to take out this node, and that needs this node's own vote. It may be the last full
    /// replica that lives, so it gives none, and leads nobody.
    fn stands_aside(&self, ctx: &Ctx<'_>) -> bool {
        (self.refused.is_some() || self.consensus.inherited_own_removal(None).is_some())
            && self.is_alone(NodeId::default(), ctx)
    }

    /// True if it is a full replica that is to stay, and hears no other one of its group, but perhaps `heard`.
    fn is_alone(&self, heard: NodeId, ctx: &Ctx<'_>) -> bool {
        let (me, view) = (ctx.node(), &self.state.view);
        let is_full = |r: &lats_catalog::Replica| r.in_sync && r.node != me;
        let (true, Some((_, group))) = (self.joined, view.group_of_node(me)) else { return false };
        if !view.is_in_sync(me) || group.replicas.iter().any(|r| is_full(r) && r.node == heard) {
            return false;
        }
        let stays = |m: &lats_catalog::Member| m.alive && m.stopping.is_none() && !m.declared_dead;
        let lately = self.heard_lately(ctx.now());
        view.member(me).is_some_and(stays)
            && !group.replicas.iter().any(|r| is_full(r) && lately.contains(r.node))
    }

    /// REFORM-1: it has said that it will never be a member.
    fn gives_up(&self) -> bool {
        self.never_joins.is_some()
    }

    /// The gone voter that counts as agreeing, if there is one (VIEW-8).
    fn stand_in(&self) -> Option<u64> {
        self.consensus.stand_in(|id| is_among(&self.gone, id))
    }

    /// Proposes a command; false if there is no leader to take it.
    fn propose(&mut self, command: &Command, ctx: &mut Ctx<'_>) -> bool {
        let taken = self.consensus.propose(command);
        // What was not taken leads to nothing; whoever wants it asks again with the next tick.
        if taken {
            self.run_consensus(ctx);
        }
        taken
    }

    /// The live data nodes, this one too.
    fn data_nodes(&self) -> BTreeSet<NodeId> {
        self.state.view.data_nodes().map(|m| m.node).collect()
    }

    fn holds_data(&self, node: NodeId) -> bool {
        self.state.view.member(node).is_some_and(|m| m.roles.data)
    }

    fn alive(&self) -> NodeSet {
        self.state.view.members.iter().filter(|m| m.alive).map(|m| m.node).collect()
    }
}

/// True if a voter is among these lives.
fn is_among(lives: &BTreeMap<NodeId, Incarnation>, voter: u64) -> bool {
    lives.iter().any(|(node, life)| raft_id(*node, *life) == voter)
}

impl Block for Control {
    fn handle(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let Some(number) = signal.number() else { return };
        match number {
            SignalNumber::RaftOrd => self.on_raft_ord(signal, ctx),
            SignalNumber::LeaseReq => self.on_lease_req(signal, ctx),
            SignalNumber::LeaseConf => self.on_lease_conf(signal, ctx),
            SignalNumber::HeartbeatOrd => self.on_heartbeat_ord(signal),
            SignalNumber::LaneProbeOrd => self.on_lane_probe_ord(signal),
            SignalNumber::SuspectRep => self.on_suspect_rep(signal, ctx),
            SignalNumber::LeaderLeftOrd => self.on_leader_left_ord(signal, ctx),
            SignalNumber::JoinReq => self.on_join_req(signal, ctx),
            SignalNumber::JoinRef => self.on_join_ref(signal, ctx),
            SignalNumber::CertificateOrd => self.on_certificate_ord(signal, ctx),
            SignalNumber::InstalledRep => self.on_installed_rep(signal, ctx),
            SignalNumber::TakeOverReadyRep => self.on_take_over_ready_rep(signal, ctx),
            SignalNumber::EverywhereRep => self.on_everywhere_rep(signal, ctx),
            SignalNumber::InstallConf => self.on_install_conf(signal, ctx),
            SignalNumber::FragmentsSyncedRep => self.on_fragments_synced_rep(signal, ctx),
            SignalNumber::EpochOrd => self.on_epoch_ord(signal, ctx),
            SignalNumber::EpochReq => self.on_epoch_req(signal, ctx),
            SignalNumber::EpochUsedRep => self.on_epoch_used_rep(signal, ctx),
            SignalNumber::EpochDoneRep => self.on_epoch_done_rep(signal, ctx),
            SignalNumber::EpochDurableRep => self.on_epoch_durable_rep(signal, ctx),
            SignalNumber::EpochWantedRep => self.on_epoch_wanted_rep(signal, ctx),
            SignalNumber::IoConf => self.on_io_conf(signal, ctx),
            SignalNumber::IoRef => self.on_io_ref(signal, ctx),
            SignalNumber::DirectoryRep => self.on_directory_rep(signal, ctx),
            SignalNumber::IoListConf => self.on_io_list_conf(signal, ctx),
            SignalNumber::IoReadConf => self.on_io_read_conf(signal, ctx),
            SignalNumber::SurveyRep => self.on_survey_rep(signal, ctx),
            SignalNumber::RestoredRep => self.on_restored_rep(signal, ctx),
            SignalNumber::RestartRep => self.on_restart_rep(signal, ctx),
            SignalNumber::RestartReq => self.on_restart_req(signal, ctx),
            SignalNumber::RestartConf => self.on_restart_conf(signal, ctx),
            SignalNumber::RestartOrd => self.on_restart_ord(signal, ctx),
            SignalNumber::NeverJoinedRep => self.on_never_joined_rep(signal),
            SignalNumber::LinkUpRep => self.on_link_up_rep(signal, ctx),
            SignalNumber::LinkDownRep => self.on_link_down_rep(signal, ctx),
            SignalNumber::MapReq => self.on_map_req(signal, ctx),
            SignalNumber::CatalogReq => self.on_catalog_req(signal, ctx),
            SignalNumber::ChangeReq => self.on_change_req(signal, ctx),
            SignalNumber::ChangeHeardOrd => self.on_change_heard_ord(signal, ctx),
            SignalNumber::StatusReq => self.on_status_req(signal, ctx),
            SignalNumber::StopNodeReq => self.on_stop_node_req(signal, ctx),
            SignalNumber::DeclareDeadReq => self.on_declare_dead_req(signal, ctx),
            SignalNumber::LateRep => self.on_late_rep(signal),
            SignalNumber::LeaveOrd => self.on_leave_ord(ctx),
            SignalNumber::CloseOrd => self.on_close_ord(ctx),
            SignalNumber::CloseRep => self.on_close_rep(signal),
            SignalNumber::QuietRep => self.on_quiet_rep(signal, ctx),
            SignalNumber::LeaveRep => self.on_leave_rep(signal),
            SignalNumber::ClientGoneRep => {
                let slot = signal.body::<lats_signals::control::ClientGoneRep>().slot;
                self.forget_client(BlockRef::new(ctx.node(), BlockKind::Client, slot as u32));
            }
            // Signals of other blocks: a sender of another version, or a client that errs.
            _ => {}
        }
        self.look_up(ctx);
    }

    fn on_timer(&mut self, token: TimerToken, ctx: &mut Ctx<'_>) {
        match token {
            TIMER_CAMPAIGN => self.campaign(ctx),
            TIMER_JOIN => self.ask_to_join(ctx),
            TIMER_KEEP => self.keep_again(ctx),
            TIMER_EPOCH => self.hurry_epoch(ctx),
            TIMER_CHANGES => self.on_changes_timer(ctx),
            _ => self.on_tick_timer(ctx),
        }
        self.look_up(ctx);
    }

    fn on_idle(&mut self, _ctx: &mut Ctx<'_>) {}

    fn leaks(&self) -> Option<String> {
        (!self.changes.is_empty()).then(|| format!("control holds changes {:?}", self.changes))
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}
