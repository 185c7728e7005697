//! The consensus library behind a small face: bytes in, bytes out, commands applied to the state.
//!
//! The library is a pure state machine, with one exception that is closed here: it draws its
//! election timeout at random, between bounds that are made to leave it no choice.

#[cfg(test)]
mod tests;

use crate::state::{Command, ControlState};
use lats_base::{Incarnation, NodeId};
use lats_catalog::View;
use prost::Message as _;
use raft::{
    Config, GetEntriesContext, RaftState, RawNode, SnapshotStatus, Storage,
    eraftpb::{
        ConfChange, ConfChangeType, ConfState, Entry, EntryType, Message, MessageType, Snapshot,
    },
    storage::MemStorage,
};
use std::{collections::BTreeSet, sync::Arc};

/// The consensus id of one life of a node.
pub(crate) fn raft_id(node: NodeId, incarnation: Incarnation) -> u64 {
    u64::from(node.get()) << 32 | u64::from(incarnation.get())
}

/// The group that a term belongs to: how many times it was formed anew.
pub(crate) fn group_of(term: u64) -> u64 {
    term >> TERMS_PER_GROUP_BITS
}

/// A message of the library, encoded.
pub(crate) struct Outgoing {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) bytes: Vec<u8>,
}

#[derive(Default)]
pub(crate) struct Output {
    pub(crate) messages: Vec<Outgoing>,
    /// Every view that was agreed on, in order (VIEW-10).
    pub(crate) views: Vec<View>,
    /// Some were missed: the group's state came as a whole.
    pub(crate) missed_views: bool,
    snapshots_to: Vec<u64>,
}

pub(crate) struct Consensus {
    id: u64,
    raft: RawNode<Log>,
}

/// The log in memory, with the newest state as snapshot.
struct Log {
    entries: MemStorage,
    applied: u64,
    members: ConfState,
    /// Encoded when a peer needs it. None while something is applied, and until a process that joins has been told.
    state: Option<Arc<ControlState>>,
}

/// So many ticks without a word from the leader, and a node votes for another one; a leader that no majority has answered for so
/// long gives up.
const ELECTION_TICKS: usize = 21;
/// Each node stands for election so many ticks later than the one before it: all are ready to vote for the first, but for those
/// that hear late how much time has passed, because they rested. (Whoever is elected waits until the former leader's leases have
/// run out, LEASE-6. The first ones are elected before that.)
const RANK_TICKS: usize = 3;
/// A group has fewer elections than this many bits have.
const TERMS_PER_GROUP_BITS: u32 = 40;
/// With every tick at rest (REST-1).
const HEARTBEAT_TICKS: usize = 5;
/// The rule for half of the voters is argued and tested for groups up to this size (VIEW-8).
const STAND_IN_VOTERS_MAX: usize = 4;
/// Entries kept for followers that lag; those further behind get the snapshot.
const LOG_ENTRIES_KEPT: u64 = 1_024;

impl Consensus {
    /// A founding member: the log starts behind a snapshot that all founders share.
    pub(crate) fn found(id: u64, voters: Vec<u64>, state: &Arc<ControlState>) -> Self {
        let entries = MemStorage::new();
        let members = ConfState { voters, ..ConfState::default() };
        let mut snapshot = Snapshot::default();
        let metadata = snapshot.mut_metadata();
        metadata.index = 1;
        metadata.term = (u64::from(state.restarts()) << TERMS_PER_GROUP_BITS) + 1;
        metadata.conf_state = Some(members.clone());
        // Into an empty log this cannot fail.
        let _ = entries.wl().apply_snapshot(snapshot);
        Self::new(id, Log { entries, applied: 1, members, state: Some(Arc::clone(state)) })
    }

    /// A process that joins: everything comes from the leader.
    pub(crate) fn join(id: u64) -> Self {
        let log = Log {
            entries: MemStorage::new(),
            applied: 0,
            members: ConfState::default(),
            state: None,
        };
        Self::new(id, log)
    }

    fn new(id: u64, log: Log) -> Self {
        let stands_at = ELECTION_TICKS + ((id >> 32) as usize % 8) * RANK_TICKS;
        let config = Config {
            id,
            election_tick: ELECTION_TICKS,
            min_election_tick: stands_at,
            max_election_tick: stands_at + 1,
            heartbeat_tick: HEARTBEAT_TICKS,
            applied: log.applied,
            max_size_per_msg: 1 << 20,
            max_inflight_msgs: 256,
            check_quorum: true,
            pre_vote: true,
            ..Config::default()
        };
        let logger = slog::Logger::root(slog::Discard, slog::o!());
        let raft = RawNode::new(&config, log, &logger);
        // The configuration above is constant and valid.
        #[expect(clippy::expect_used, reason = "start-up, with constant input")]
        Self { id, raft: raft.expect("a valid configuration of the consensus library") }
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// True while it asks whether others would vote for it.
    pub(crate) fn is_about_to_stand(&self) -> bool {
        self.raft.raft.state == raft::StateRole::PreCandidate
    }

    /// True if somebody asks for a vote, or whether there would be one.
    pub(crate) fn asks_for_vote(message: &Message) -> bool {
        let asks = |kind: MessageType| message.msg_type == kind as i32;
        asks(MessageType::MsgRequestVote) || asks(MessageType::MsgRequestPreVote)
    }

    /// The node whose life this is.
    pub(crate) fn node(&self) -> NodeId {
        NodeId::new((self.id >> 32) as u16)
    }

    pub(crate) fn is_leader(&self) -> bool {
        self.raft.raft.state == raft::StateRole::Leader
    }

    /// The leader's node, if one is known.
    pub(crate) fn leader(&self) -> Option<NodeId> {
        let id = self.raft.raft.leader_id;
        (id != raft::INVALID_ID).then(|| NodeId::new((id >> 32) as u16))
    }

    /// Its role and how far its log is, for a person.
    pub(crate) fn describe(&self) -> String {
        let raft = &self.raft.raft;
        let log = &raft.raft_log;
        let (last, committed) = (log.last_index(), log.committed);
        format!("{:?}, log to {last}, {committed} agreed, {} applied", raft.state, log.applied)
    }

    pub(crate) fn term(&self) -> u64 {
        self.raft.raft.term
    }

    /// Leader: everything that earlier leaders may have proposed is applied.
    pub(crate) fn has_settled(&self) -> bool {
        let log = &self.raft.raft.raft_log;
        self.is_leader() && log.term(log.applied).is_ok_and(|term| term == self.raft.raft.term)
    }

    pub(crate) fn tick(&mut self) {
        self.raft.tick();
    }

    pub(crate) fn voters(&self) -> Vec<u64> {
        self.raft.store().members.voters.clone()
    }

    /// Stands for election, if it may.
    pub(crate) fn campaign(&mut self) {
        let _ = self.raft.campaign();
    }

    /// The process of this life is gone for certain: if it led, forget it, so that this node may
    /// vote and stand at once. (Votes are refused while a leader is known and was heard of
    /// lately.) True if it led.
    pub(crate) fn forget_leader(&mut self, node: NodeId, incarnation: Incarnation) -> bool {
        let led = self.raft.raft.leader_id == raft_id(node, incarnation);
        if led {
            let term = self.raft.raft.term;
            self.raft.raft.become_follower(term, raft::INVALID_ID);
        }
        led
    }

    /// Leader: a heartbeat for everybody, now.
    pub(crate) fn ping(&mut self) {
        self.raft.ping();
    }

    /// Leads no more, without a successor.
    pub(crate) fn step_down(&mut self) {
        let term = self.raft.raft.term;
        self.raft.raft.become_follower(term, raft::INVALID_ID);
    }

    /// The one of the gone voters that counts as agreeing, if that may be (VIEW-8): the voters are an even
    /// number, just half of them are gone for certain, and nobody can have changed the voters without us
    /// who are left.
    pub(crate) fn stand_in(&self, gone: impl Fn(u64) -> bool) -> Option<u64> {
        let voters = &self.raft.store().members.voters;
        let lost = voters.iter().filter(|id| gone(**id));
        if voters.len() > STAND_IN_VOTERS_MAX
            || gone(self.id)
            || 2 * lost.clone().count() != voters.len()
            || self.inherits_a_change(&gone)
        {
            return None;
        }
        lost.min().copied()
    }

    /// True if the log has a change of the voters that is not applied here and that this node, as leader,
    /// has not made itself: it may be agreed on among others. (Not if it removes one of the gone: without
    /// that one, we who are left are more than half, and nobody can decide anything without one of us.)
    fn inherits_a_change(&self, gone: &impl Fn(u64) -> bool) -> bool {
        let term = self.raft.raft.term;
        let removes_the_gone = |entry: &Entry| {
            ConfChange::decode(&entry.data[..]).is_ok_and(|change| {
                change.change_type == ConfChangeType::RemoveNode as i32 && gone(change.node_id)
            })
        };
        let own = |entry: &Entry| self.is_leader() && entry.term == term;
        self.has_change(|entry| !(own(entry) || removes_the_gone(entry)))
    }

    /// RESTART-7: true if no majority is left that could elect anybody, whether changes of the voters that are not applied here
    /// were agreed on or not, and none of the gone counts as agreeing.
    pub(crate) fn nobody_can_lead(&self, gone: impl Fn(u64) -> bool) -> bool {
        let living = |ids: &BTreeSet<u64>| ids.iter().filter(|id| !gone(**id)).count();
        let voters: BTreeSet<u64> = self.voters().into_iter().collect();
        let with_new: BTreeSet<u64> = voters.iter().copied().chain(self.voters_to_be()).collect();
        // Half of them alone may have all rows: they wait for somebody to help.
        let is_half = 2 * living(&voters) == voters.len();
        2 * living(&voters) < voters.len()
            || is_half && 2 * living(&with_new) < with_new.len() && self.stand_in(&gone).is_none()
    }

    /// Who is added by changes of the voters that are not applied here.
    fn voters_to_be(&self) -> Vec<u64> {
        let entries = self.unapplied_changes().unwrap_or_default();
        let changes = entries.iter().filter_map(|entry| ConfChange::decode(&entry.data[..]).ok());
        let adds = changes.filter(|c| c.change_type == ConfChangeType::AddNode as i32);
        adds.map(|change| change.node_id).collect()
    }

    /// True if the log has any change of the voters that is not applied here.
    pub(crate) fn has_change_under_way(&self) -> bool {
        self.has_change(|_| true)
    }

    fn has_change(&self, is_meant: impl Fn(&Entry) -> bool) -> bool {
        self.unapplied_changes().is_none_or(|entries| entries.iter().any(is_meant))
    }

    /// VIEW-12: term and index of an entry by which a leader of an earlier term wanted to take out this node without a certificate, if that is in
    /// its log, not agreed on as far as it knows, or is offered to it now.
    pub(crate) fn inherited_own_removal(&self, offered: Option<&Message>) -> Option<(u64, u64)> {
        let term = offered.map_or(0, |message| message.term).max(self.raft.raft.term);
        let of_log = self.unapplied_changes().unwrap_or_default();
        let entries = offered.into_iter().flat_map(|message| &message.entries);
        let mut all = of_log.iter().chain(entries);
        let found = all.find(|entry| entry.term < term && self.takes_out_this_node(entry));
        found.map(|entry| (entry.term, entry.index))
    }

    /// The newest entry that has come about here.
    pub(crate) fn applied(&self) -> u64 {
        self.raft.raft.raft_log.applied
    }

    fn takes_out_this_node(&self, entry: &Entry) -> bool {
        entry.entry_type == EntryType::EntryConfChange as i32
            && matches!(command_of(entry), Some(Command::Remove { node, incarnation, certified: false })
                if raft_id(node, incarnation) == self.id)
    }

    /// Changes of the voters that the log has and that are not applied here; none if they cannot be read.
    fn unapplied_changes(&self) -> Option<Vec<Entry>> {
        let log = &self.raft.raft.raft_log;
        let (from, to) = (log.applied + 1, log.last_index() + 1);
        if from >= to {
            return Some(Vec::new());
        }
        let mut entries = log.slice(from, to, None, GetEntriesContext::empty(false)).ok()?;
        entries.retain(|entry| entry.entry_type == EntryType::EntryConfChange as i32);
        Some(entries)
    }

    /// Leader: how much of the log everybody has who is left.
    fn agreed_by_the_living(&self, gone: impl Fn(u64) -> bool) -> u64 {
        let raft = &self.raft.raft;
        let others = raft.prs().iter().filter(|(id, _)| **id != self.id && !gone(**id));
        others.map(|(_, progress)| progress.matched).fold(raft.raft_log.last_index(), u64::min)
    }

    /// Gives the library the consent of a gone voter (VIEW-8).
    pub(crate) fn consent(&mut self, gone: impl Fn(u64) -> bool) {
        // From asking for votes to being asked as leader, there are three steps.
        for _ in 0..3 {
            let Some(stand_in) = self.stand_in(&gone) else { return };
            // What the others of the gone have said while they lived does not make up for the living.
            let agreed = self.agreed_by_the_living(&gone);
            let raft = &mut self.raft.raft;
            let (kind, term) = match raft.state {
                raft::StateRole::Follower => return,
                raft::StateRole::PreCandidate => {
                    (MessageType::MsgRequestPreVoteResponse, raft.term + 1)
                }
                raft::StateRole::Candidate => (MessageType::MsgRequestVoteResponse, raft.term),
                raft::StateRole::Leader => (MessageType::MsgAppendResponse, raft.term),
            };
            let message = Message {
                msg_type: kind as i32,
                from: stand_in,
                to: self.id,
                term,
                index: agreed,
                ..Message::default()
            };
            // It is well-formed; whether it was of use shows in the state.
            self.hear(message);
        }
    }

    /// True if a leader has sent this.
    pub(crate) fn is_from_leader(message: &Message) -> bool {
        let leads = |kind: MessageType| message.msg_type == kind as i32;
        leads(MessageType::MsgAppend) || leads(MessageType::MsgHeartbeat)
    }

    /// A received message; nothing if it makes no sense.
    pub(crate) fn read(bytes: &[u8]) -> Option<Message> {
        Message::decode(bytes).ok()
    }

    /// The library does not expect a leader to learn, after its own removal, that more of its log is
    /// agreed on (it panics). Such a leader only stays to tell the others of its end.
    pub(crate) fn hear(&mut self, message: Message) {
        let raft = &self.raft.raft;
        let removed = self.is_leader() && raft.prs().get(self.id).is_none();
        if !(removed && message.msg_type == MessageType::MsgAppendResponse as i32) {
            let _ = self.raft.step(message);
        }
    }

    /// Leader: lets another member lead, as soon as that has the whole log.
    pub(crate) fn transfer_leadership(&mut self, node: NodeId, incarnation: Incarnation) {
        self.raft.transfer_leader(raft_id(node, incarnation));
    }

    /// Proposes a command, through the leader wherever it is; false if none is known.
    ///
    /// The voters are the members (VIEW-6): joining and removal are changes of both at once. One
    /// such change at a time: the library drops a second one, and whoever wants it asks again.
    pub(crate) fn propose(&mut self, command: &Command) -> bool {
        let bytes = lats_catalog::encode(command);
        let change = match command {
            Command::Join { member, .. } => {
                (ConfChangeType::AddNode, raft_id(member.node, member.incarnation))
            }
            Command::Remove { node, incarnation, .. } => {
                (ConfChangeType::RemoveNode, raft_id(*node, *incarnation))
            }
            Command::Synced { .. }
            | Command::Change { .. }
            | Command::EpochCeiling { .. }
            | Command::BeginHandOver { .. }
            | Command::EndHandOver { .. }
            | Command::CancelHandOver { .. }
            | Command::Stop { .. }
            | Command::DeclareDead { .. }
            | Command::ForgetChanges { .. } => {
                return self.raft.propose(Vec::new(), bytes).is_ok();
            }
        };
        let change = ConfChange {
            change_type: change.0 as i32,
            node_id: change.1,
            context: bytes,
            ..ConfChange::default()
        };
        self.raft.propose_conf_change(Vec::new(), change).is_ok()
    }

    /// True if a change of the voters can be proposed now: this node leads, and the last one is
    /// through.
    pub(crate) fn may_change_voters(&self) -> bool {
        self.is_leader() && !self.raft.raft.has_pending_conf()
    }

    /// Term and index of the newest entry of the log.
    pub(crate) fn newest_entry(&self) -> (u64, u64) {
        let log = &self.raft.raft.raft_log;
        (log.last_term(), log.last_index())
    }

    /// What the log has that is not applied here; none of it if it cannot be read.
    fn unapplied(&self) -> Vec<Command> {
        let log = &self.raft.raft.raft_log;
        let (from, to) = (log.applied + 1, log.last_index() + 1);
        let entries = match from < to {
            true => log.slice(from, to, None, GetEntriesContext::empty(false)).unwrap_or_default(),
            false => Vec::new(),
        };
        entries.iter().filter_map(command_of).collect()
    }

    /// How many commands a state knows with all that is in the log.
    pub(crate) fn commands_with_log(&self, state: &ControlState) -> u64 {
        state.commands + self.unapplied().len() as u64
    }

    /// REFORM-2: the state with all that is in the log, up to a command that ends it, and the views that it comes to.
    pub(crate) fn state_with_log(
        &self,
        state: &ControlState,
        ends: impl Fn(&ControlState, &Command) -> bool,
    ) -> (ControlState, Vec<View>) {
        let (mut state, mut views) = (state.clone(), Vec::new());
        for command in self.unapplied() {
            if ends(&state, &command) {
                break;
            }
            let before = state.view.number;
            state.apply(&command);
            if state.view.number > before {
                views.push(state.view.clone());
            }
        }
        (state, views)
    }

    /// REFORM-3: another group, with the members of this state. Its terms are above those of all groups before it.
    pub(crate) fn found_anew(&mut self, state: &Arc<ControlState>) {
        let alive = state.view.members.iter().filter(|m| m.alive);
        let voters = alive.map(|m| raft_id(m.node, m.incarnation)).collect();
        *self = Self::found(self.id, voters, state);
    }

    /// Lets the library work off what has come in.
    pub(crate) fn advance(&mut self, state: &mut Arc<ControlState>) -> Output {
        let mut output = Output::default();
        // Applying can lead to proposals, and these to more work; it ends when nothing new comes.
        while self.raft.has_ready() {
            let mut ready = self.raft.ready();
            output.send(ready.take_messages());
            self.take_snapshot(ready.snapshot(), state, &mut output);
            let agreed = ready.take_committed_entries();
            let log = &self.raft.store().entries;
            // The library never appends a gap.
            let _ = log.wl().append(ready.entries());
            if let Some(hard_state) = ready.hs() {
                log.wl().set_hardstate(hard_state.clone());
            }
            output.send(ready.take_persisted_messages());
            // Before anything is applied: a leader that has been removed may not hear of its own
            // entries any more (see `hear`).
            let mut light = self.raft.advance_append(ready);
            if let Some(commit) = light.commit_index() {
                self.raft.store().entries.wl().mut_hard_state().commit = commit;
            }
            output.send(light.take_messages());
            self.apply(agreed, state, &mut output);
            self.apply(light.take_committed_entries(), state, &mut output);
            self.raft.advance_apply();
            self.settle_snapshots(&mut output);
        }
        output
    }

    /// The library sends a peer nothing more before it hears what became of a snapshot. It is
    /// called sent at once: if it was lost, the peer refuses what follows and gets another one.
    fn settle_snapshots(&mut self, output: &mut Output) {
        for to in std::mem::take(&mut output.snapshots_to) {
            self.raft.report_snapshot(to, SnapshotStatus::Finish);
        }
    }

    fn take_snapshot(
        &mut self,
        snapshot: &Snapshot,
        state: &mut Arc<ControlState>,
        output: &mut Output,
    ) {
        if snapshot.data.is_empty() {
            return;
        }
        let Ok(decoded) = ControlState::decode(&snapshot.data) else { return };
        let metadata = snapshot.get_metadata().clone();
        let log = self.raft.mut_store();
        if log.entries.wl().apply_snapshot(snapshot.clone()).is_err() {
            return;
        }
        output.missed_views |= decoded.view.number.get() > state.view.number.get() + 1;
        output.views.push(decoded.view.clone());
        *state = Arc::new(decoded);
        log.applied = metadata.index;
        log.members = metadata.conf_state.unwrap_or_default();
        log.state = Some(Arc::clone(state));
    }

    fn apply(&mut self, entries: Vec<Entry>, state: &mut Arc<ControlState>, output: &mut Output) {
        for entry in entries {
            let (index, before) = (entry.index, state.view.number);
            if entry.entry_type == EntryType::EntryConfChange as i32 {
                self.apply_change_of_voters(&entry, state);
            } else if let Ok(command) = lats_catalog::decode::<Command>(&entry.data) {
                self.change(state, &command);
            }
            if state.view.number > before {
                output.views.push(state.view.clone());
            }
            let log = self.raft.mut_store();
            log.applied = index;
            let keep_from = index.saturating_sub(LOG_ENTRIES_KEPT);
            if index % 128 == 0 && keep_from > log.entries.first_index().unwrap_or(u64::MAX) {
                let _ = log.entries.wl().compact(keep_from);
            }
        }
    }

    /// Nobody else has the state meanwhile, so that it is not copied.
    fn change(&mut self, state: &mut Arc<ControlState>, command: &Command) {
        self.raft.mut_store().state = None;
        Arc::make_mut(state).apply(command);
        self.raft.mut_store().state = Some(Arc::clone(state));
    }

    fn apply_change_of_voters(&mut self, entry: &Entry, state: &mut Arc<ControlState>) {
        let Ok(change) = ConfChange::decode(&entry.data[..]) else { return };
        let command = lats_catalog::decode::<Command>(&change.context);
        // VIEW-6: who stays a member stays a voter.
        let stays = command.as_ref().is_ok_and(|command| state.keeps(command));
        if !stays && let Ok(members) = self.raft.apply_conf_change(&change) {
            let log = self.raft.mut_store();
            log.entries.wl().set_conf_state(members.clone());
            log.members = members;
        }
        if let Ok(command) = command {
            self.change(state, &command);
        }
    }
}

/// What an entry says; none: it only marks the beginning of a term.
fn command_of(entry: &Entry) -> Option<Command> {
    if entry.entry_type == EntryType::EntryConfChange as i32 {
        let change = ConfChange::decode(&entry.data[..]).ok()?;
        return lats_catalog::decode(&change.context).ok();
    }
    lats_catalog::decode(&entry.data).ok()
}

impl Output {
    fn send(&mut self, messages: Vec<Message>) {
        for message in messages {
            // A message to ourselves, or one that the library only notes.
            if message.to == message.from || message.msg_type == MessageType::MsgHup as i32 {
                continue;
            }
            let (from, to) = (message.from, message.to);
            if message.msg_type == MessageType::MsgSnapshot as i32 {
                self.snapshots_to.push(to);
            }
            self.messages.push(Outgoing { from, to, bytes: message.encode_to_vec() });
        }
    }
}

impl Storage for Log {
    fn initial_state(&self) -> raft::Result<RaftState> {
        self.entries.initial_state()
    }

    fn entries(
        &self,
        low: u64,
        high: u64,
        max_size: impl Into<Option<u64>>,
        context: GetEntriesContext,
    ) -> raft::Result<Vec<Entry>> {
        self.entries.entries(low, high, max_size, context)
    }

    fn term(&self, index: u64) -> raft::Result<u64> {
        self.entries.term(index)
    }

    fn first_index(&self) -> raft::Result<u64> {
        self.entries.first_index()
    }

    fn last_index(&self) -> raft::Result<u64> {
        self.entries.last_index()
    }

    fn snapshot(&self, _request_index: u64, _to: u64) -> raft::Result<Snapshot> {
        let data = self.state.as_ref().map(|state| state.encode()).unwrap_or_default();
        let mut snapshot = Snapshot { data, ..Snapshot::default() };
        let metadata = snapshot.mut_metadata();
        metadata.index = self.applied;
        metadata.term = self.entries.term(self.applied)?;
        metadata.conf_state = Some(self.members.clone());
        Ok(snapshot)
    }
}
