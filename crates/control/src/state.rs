//! The replicated control state, and the commands that change it. Applying is deterministic: every
//! member computes the same state from the same log.

use lats_base::{Epoch, Incarnation, NodeId, Nonce, RefCode, ViewNumber, limits};
use lats_catalog::{
    AfterStop, Builder, Catalog, Change, ChangeError, ChangeErrorKind, ClusterConfig,
    EncodedCatalog, Group, Member, Replica, View, former::CatalogBeforeViews,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// What founds a cluster: the same record on every founding member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Founding {
    /// What it begins with.
    pub config: ClusterConfig,
    /// The first members.
    pub members: Vec<Member>,
    /// Random: no other cluster was founded with it.
    pub number: u64,
}

impl Founding {
    /// The node groups: data nodes in their order, but replicas of a group in different locations as far
    /// as that goes.
    pub fn groups(&self) -> Vec<Vec<NodeId>> {
        let replicas = usize::from(self.config.replicas.max(1));
        let mut left: Vec<&Member> = self.members.iter().filter(|m| m.roles.data).collect();
        let mut groups = Vec::new();
        while !left.is_empty() {
            let mut group: Vec<&Member> = Vec::new();
            while group.len() < replicas && !left.is_empty() {
                let is_new = |m: &&Member| group.iter().all(|g| g.location != m.location);
                // From where most nodes are left, so that the last groups can still be spread.
                let crowd = |m: &Member| left.iter().filter(|o| o.location == m.location).count();
                let candidates = left.iter().enumerate();
                let best = candidates.max_by_key(|(at, m)| {
                    let alike = if is_new(m) { crowd(m) } else { 0 };
                    (is_new(m), alike, usize::MAX - at)
                });
                let Some((at, _)) = best else { break };
                group.push(left.remove(at));
            }
            groups.push(group.iter().map(|m| m.node).collect());
        }
        groups
    }
}

/// All that the control group agrees on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ControlState {
    /// Who may serve what.
    pub view: View,
    /// Databases and tables.
    pub catalog: Catalog,
    /// What became of the newest catalog changes, by request, so that a repeated request is not
    /// done twice.
    pub recent_changes: VecDeque<(u64, Result<u64, ChangeError>)>,
    /// No epoch above this is begun or called complete (EPOCH-1).
    pub epoch_ceiling: Epoch,
    /// How many commands have been applied since the cluster was founded: the more, the newer.
    pub commands: u64,
    /// The epochs that restarts of the whole cluster have begun with: what was later is void (RESTART-3).
    pub restored: Vec<Epoch>,
    /// Which process the newest life of each node is (LIFE-1).
    pub nonces: BTreeMap<NodeId, Nonce>,
    /// The command that has last removed a data node whose end was not certified (FENCE-1).
    pub fence: u64,
}

/// The state as it was before processes had nonces.
#[derive(Deserialize)]
pub(crate) struct StateBeforeNonces {
    view: View,
    catalog: Catalog,
    recent_changes: VecDeque<(u64, Result<u64, ChangeError>)>,
    epoch_ceiling: Epoch,
    commands: u64,
    restored: Vec<Epoch>,
}

impl From<StateBeforeNonces> for ControlState {
    fn from(former: StateBeforeNonces) -> Self {
        let StateBeforeNonces { view, catalog, recent_changes, epoch_ceiling, commands, restored } =
            former;
        let (nonces, fence) = (BTreeMap::new(), 0);
        Self { view, catalog, recent_changes, epoch_ceiling, commands, restored, nonces, fence }
    }
}

/// The state as it was before there were views.
#[derive(Deserialize)]
pub(crate) struct StateBeforeViews {
    view: View,
    catalog: CatalogBeforeViews,
    recent_changes: VecDeque<(u64, Result<u64, ChangeError>)>,
    epoch_ceiling: Epoch,
    commands: u64,
    restored: Vec<Epoch>,
}

impl From<StateBeforeViews> for ControlState {
    fn from(former: StateBeforeViews) -> Self {
        Self {
            view: former.view,
            catalog: former.catalog.into(),
            recent_changes: former.recent_changes,
            epoch_ceiling: former.epoch_ceiling,
            commands: former.commands,
            restored: former.restored,
            nonces: BTreeMap::new(),
            fence: 0,
        }
    }
}

/// What the group agrees to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Command {
    /// A process becomes a member; an earlier life of the node is removed.
    Join {
        /// What it is.
        member: Member,
        /// Which process it is.
        nonce: Nonce,
    },
    /// A life of a node is over.
    Remove {
        /// The node.
        node: NodeId,
        /// The life.
        incarnation: Incarnation,
        /// Its end is certified. Else it was waited out, and may still have what it holds (FENCE-1).
        certified: bool,
    },
    /// A syncing replica holds every committed row.
    Synced {
        /// The node.
        node: NodeId,
        /// The life.
        incarnation: Incarnation,
        /// The catalog that its fragments were counted by.
        catalog_version: u64,
    },
    /// Change the catalog.
    Change {
        /// The client's number for it.
        request: u64,
        /// The change.
        change: Change,
    },
    /// The primaries of a group are to become these (HANDOVER-1).
    BeginHandOver {
        /// The view that this is about: nothing has changed since.
        view: ViewNumber,
        /// The group's number.
        group: u16,
        /// By slot.
        next: Vec<NodeId>,
    },
    /// They have become it, in the view after this one (HANDOVER-4).
    EndHandOver {
        /// The view that began it.
        view: ViewNumber,
    },
    /// They stay what they were.
    CancelHandOver {
        /// The view that began it.
        view: ViewNumber,
    },
    /// A node is to be primary of nothing: it wants to leave.
    Stop {
        /// The node.
        node: NodeId,
        /// The life.
        incarnation: Incarnation,
        /// What becomes of it.
        then: AfterStop,
    },
    /// A person knows that a life is over (SILENT-4).
    DeclareDead {
        /// The node.
        node: NodeId,
        /// The life.
        incarnation: Incarnation,
        /// Also if no full replica of its rows is left then.
        give_up_rows: bool,
    },
    /// Leaders may begin epochs up to this one.
    EpochCeiling {
        /// The last of them.
        ceiling: Epoch,
    },
    /// Nobody will ask for these changes any more (CHANGE-2).
    ForgetChanges {
        /// Their requests.
        requests: Vec<u64>,
    },
}

/// The cluster's state, for a person.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The view.
    pub view: View,
    /// The newest epoch this node knows.
    pub epoch: Epoch,
    /// The newest complete epoch this node knows.
    pub complete: Epoch,
    /// The newest epoch that it knows to be on all disks.
    pub durable: Epoch,
    /// The leader of the control group, if this node knows one.
    pub leader: Option<NodeId>,
    /// The catalog's version.
    pub catalog_version: u64,
    /// The node that answers.
    pub node: NodeId,
    /// Data nodes that it has not heard for long (SILENT-1).
    pub silent: Vec<NodeId>,
    /// The newest epoch that the node that answers has on its own disk. Nodes of earlier versions do not say this, nor what follows.
    pub own_durable: Epoch,
    /// How long ago more became durable last, in ms; at a leader: since when something is used that is not durable.
    pub undurable_ms: u64,
    /// When it has heard the live members, and how late they are.
    pub life_signs: Vec<LifeSign>,
    /// What a full replica without a leader waits for, in words (REFORM-1).
    pub waits_for: String,
    /// Lives among that which a person may say are over (REFORM-5).
    pub misses: Vec<(NodeId, Incarnation)>,
}

/// What a node knows of a member that lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LifeSign {
    /// The member.
    pub node: NodeId,
    /// How long ago it has surely lived, in ms; none: it is not asked (witnesses are by the leader only).
    pub heard_ms: Option<u64>,
    /// How late its threads are, as it has said last, in ms; less than 100 is not told.
    pub late_ms: u64,
    /// The largest of that since its start, if it is the node that answers.
    pub largest_ms: Option<u64>,
}

/// So many changes are remembered for each member, and for a few nodes more (CHANGE-3): as many as a node admits at once.
const CHANGES_PER_MEMBER: usize = limits::CHANGES_PER_NODE_MAX;
const MEMBERS_MORE: usize = 2;

impl ControlState {
    /// The state of a new cluster.
    pub fn found(founding: &Founding) -> Self {
        let groups = founding.groups().iter().map(|nodes| first_group(nodes)).collect();
        let mut members = founding.members.clone();
        members.iter_mut().for_each(|m| {
            m.alive = true;
            m.joined_in = ViewNumber::new(1);
        });
        let config = founding.config.clone();
        let view = View { number: ViewNumber::new(1), restarts: 0, config, members, groups };
        let number = founding.number;
        let founders = view.members.iter().map(|m| m.node);
        let nonces = founders.map(|node| (node, Nonce::of_founder(number, node))).collect();
        Self { view, catalog: Catalog::initial(), nonces, ..Self::default() }
    }

    /// Does what was agreed. A command that does not fit (any more) changes nothing.
    pub(crate) fn apply(&mut self, command: &Command) {
        self.commands += 1;
        match command {
            Command::Join { member, nonce } => self.join(member, *nonce),
            Command::Remove { node, incarnation, certified } => {
                if self.view.is_alive(*node, *incarnation) && !self.keeps(command) {
                    let holds_data = self.view.member(*node).is_some_and(|m| m.roles.data);
                    if holds_data && !certified {
                        self.fence = self.commands;
                    }
                    self.remove(*node);
                    self.next_view();
                }
            }
            Command::Synced { node, incarnation, catalog_version } => {
                self.synced(*node, *incarnation, *catalog_version);
            }
            Command::Change { request, change } => self.change(*request, change),
            Command::BeginHandOver { view, group, next } if *view == self.view.number => {
                self.begin_hand_over(*group, next);
            }
            Command::BeginHandOver { .. } => {}
            Command::EndHandOver { view } => self.end_hand_over(*view, true),
            Command::CancelHandOver { view } => self.end_hand_over(*view, false),
            Command::Stop { node, incarnation, then } => self.stop(*node, *incarnation, *then),
            Command::DeclareDead { node, incarnation, give_up_rows } => {
                self.declare_dead(*node, *incarnation, *give_up_rows);
            }
            Command::EpochCeiling { ceiling } => {
                self.epoch_ceiling = self.epoch_ceiling.max(*ceiling);
            }
            Command::ForgetChanges { requests } => {
                self.recent_changes.retain(|(request, _)| !requests.contains(request));
            }
        }
    }

    /// VIEW-1: true of the removal of a last full replica whose end is not certified, unless a person has given up its rows: it
    /// stays. Another one may have died since this was proposed.
    pub(crate) fn keeps(&self, command: &Command) -> bool {
        let Command::Remove { node, incarnation, certified: false } = command else { return false };
        let is_last = self.view.groups.iter().any(|group| group.is_last_full(*node));
        is_last && self.view.is_alive(*node, *incarnation) && !self.view.is_declared_dead(*node)
    }

    /// HANDOVER-5: whatever else changes ends a hand-over.
    fn next_view(&mut self) {
        self.view.number = ViewNumber::new(self.view.number.get() + 1);
        self.view.groups.iter_mut().for_each(|g| g.next.clear());
    }

    fn join(&mut self, member: &Member, nonce: Nonce) {
        let known = self.view.member(member.node).map(|m| (m.incarnation, m.alive));
        if known.is_some_and(|(life, _)| life >= member.incarnation) {
            return;
        }
        if known.is_some_and(|(_, alive)| alive) {
            self.remove(member.node);
        }
        self.next_view();
        self.nonces.insert(member.node, nonce);
        let mut member = member.clone();
        member.alive = true;
        member.stopping = None;
        member.declared_dead = false;
        member.joined_in = self.view.number;
        self.view.members.retain(|m| m.node != member.node);
        if member.roles.data
            && let Some(group) =
                self.view.groups.iter_mut().find(|g| g.nodes.contains(&member.node))
        {
            group.replicas.push(Replica { node: member.node, in_sync: false });
        }
        self.view.members.push(member);
        self.view.members.sort_by_key(|m| m.node);
    }

    /// VIEW-1: only an in-sync replica becomes primary; STOP-3: and none that is to stop.
    pub(crate) fn remove(&mut self, node: NodeId) {
        if let Some(member) = self.view.members.iter_mut().find(|m| m.node == node) {
            member.alive = false;
            // UNIQUE-7: nobody will complete the indexes that it was building.
            self.catalog.drop_builds_of(Builder { node, incarnation: member.incarnation });
        }
        for group in &mut self.view.groups {
            if group.is_last_full(node) {
                // RESTART-3: what is on its disk is all that is left of these rows.
                group.last = vec![node];
            }
            group.replicas.retain(|r| r.node != node);
        }
        self.keep_the_last();
        let stopping: Vec<NodeId> =
            self.view.members.iter().filter(|m| m.stopping.is_some()).map(|m| m.node).collect();
        for group in &mut self.view.groups {
            let full = group.replicas.iter().filter(|r| r.in_sync).map(|r| r.node);
            let heirs: Vec<NodeId> = full.filter(|n| !stopping.contains(n)).collect();
            for (slot, primary) in group.primaries.iter_mut().enumerate() {
                if *primary == node {
                    let heir = heirs.get(slot % heirs.len().max(1));
                    *primary = heir.copied().unwrap_or_default();
                }
            }
        }
    }

    /// STOP-1: whoever has the only full replica left stays.
    fn keep_the_last(&mut self) {
        for group in &self.view.groups {
            let full = || group.replicas.iter().filter(|r| r.in_sync).map(|r| r.node);
            if full().all(|n| self.view.member(n).is_some_and(|m| m.stopping.is_some())) {
                let last: Vec<NodeId> = full().collect();
                for member in self.view.members.iter_mut().filter(|m| last.contains(&m.node)) {
                    member.stopping = None;
                }
            }
        }
    }

    /// LOST-2: in a lost group nobody has every row any more.
    fn synced(&mut self, node: NodeId, incarnation: Incarnation, catalog_version: u64) {
        if self.view.group_of_node(node).is_some_and(|(_, group)| group.is_lost()) {
            return;
        }
        if !self.view.is_alive(node, incarnation) || self.catalog.version != catalog_version {
            return;
        }
        let replicas = self.view.groups.iter_mut().flat_map(|g| &mut g.replicas);
        let waiting = replicas.filter(|r| r.node == node && !r.in_sync);
        let mut changed = false;
        for replica in waiting {
            replica.in_sync = true;
            changed = true;
        }
        if changed {
            self.next_view();
        }
    }

    /// HANDOVER-1: between replicas that hold every row, and one group at a time.
    fn begin_hand_over(&mut self, group: u16, next: &[NodeId]) {
        let Some(at) = self.view.groups.get(usize::from(group)) else { return };
        let full = |n: &NodeId| at.replicas.iter().any(|r| r.node == *n && r.in_sync);
        let fits = next.len() == at.primaries.len()
            && next != at.primaries
            && next.iter().chain(&at.primaries).all(full)
            && at.replicas.iter().all(|r| r.in_sync);
        if fits && !self.view.hands_over() {
            self.next_view();
            self.view.groups[usize::from(group)].next = next.to_vec();
        }
    }

    /// HANDOVER-4.
    fn end_hand_over(&mut self, view: ViewNumber, done: bool) {
        if self.view.number != view || !self.view.hands_over() {
            return;
        }
        for group in self.view.groups.iter_mut().filter(|g| done && !g.next.is_empty()) {
            group.primaries = core::mem::take(&mut group.next);
        }
        self.next_view();
    }

    /// STOP-1: somebody must be left to take over.
    fn stop(&mut self, node: NodeId, incarnation: Incarnation, then: AfterStop) {
        if !self.view.is_replaceable(node) {
            return;
        }
        let member = self.view.members.iter_mut().find(|m| m.node == node);
        let member =
            member.filter(|m| m.alive && m.incarnation == incarnation && m.stopping != Some(then));
        if let Some(member) = member {
            member.stopping = Some(then);
            self.next_view();
        }
    }

    /// SILENT-4: it gets no lease any more, and is removed when its last one has run out. Who has decided that its rows
    /// may be lost is asked here: another replica may have died since the person has looked.
    fn declare_dead(&mut self, node: NodeId, incarnation: Incarnation, give_up_rows: bool) {
        if !give_up_rows && !self.view.is_replaceable(node) {
            return;
        }
        let member = self.view.members.iter_mut().find(|m| m.node == node);
        let member = member.filter(|m| m.alive && m.incarnation == incarnation && !m.declared_dead);
        if let Some(member) = member {
            member.declared_dead = true;
            self.next_view();
        }
    }

    fn change(&mut self, request: u64, change: &Change) {
        if self.recent_changes.iter().any(|(r, _)| *r == request) {
            return;
        }
        let result = self.apply_change(change).map(|()| self.catalog.version);
        self.recent_changes.push_back((request, result));
        // CHANGE-3.
        let most = (self.view.members.len() + MEMBERS_MORE) * CHANGES_PER_MEMBER;
        while self.recent_changes.len() > most {
            self.recent_changes.pop_front();
        }
    }

    /// UNIQUE-7: an index whose builder has died before it came would have nobody to fill it or to
    /// take it away.
    fn apply_change(&mut self, change: &Change) -> Result<(), ChangeError> {
        if let Change::CreateIndex { builder: Some(builder), .. } = change
            && !self.view.is_alive(builder.node, builder.incarnation)
        {
            return Err(temporary("the node that was to build the index has died; try again"));
        }
        // The same of a temporary table: nobody would drop it.
        if let Change::CreateTemporary { table } = change
            && let Some(owner) = table.owner()
            && !self.view.is_alive(owner.node, owner.incarnation)
        {
            return Err(temporary("the node of the session has died; try again"));
        }
        self.check_groups(change)?;
        if let Change::SetDurability { to_disk } = change {
            self.set_durability(*to_disk)?;
        }
        self.catalog.apply(change, self.view.fragments_per_table())
    }

    fn set_durability(&mut self, to_disk: bool) -> Result<(), ChangeError> {
        let config = &mut self.view.config;
        if to_disk && !config.keeps {
            let message =
                "this cluster keeps nothing on disk (--ephemeral): commits cannot wait for it";
            return Err(ChangeError {
                kind: ChangeErrorKind::NotSupported,
                message: message.to_string(),
            });
        }
        config.to_disk = to_disk;
        Ok(())
    }

    /// LOST-3: new tables and indexes would have a part in a lost group, and truncated ones would be taken
    /// for whole.
    fn check_groups(&self, change: &Change) -> Result<(), ChangeError> {
        let needs_no_group = matches!(
            change,
            Change::DropDatabase { .. }
                | Change::DropTable { .. }
                | Change::DropIndex { .. }
                | Change::DropBuild { .. }
                | Change::SetDurability { .. }
                | Change::PutView { .. }
                | Change::DropView { .. }
                | Change::Rename { .. }
                | Change::DropViews { .. }
        );
        match self.view.lost_groups().next() {
            Some((number, group)) if !needs_no_group => Err(ChangeError {
                kind: ChangeErrorKind::NodeGroupLost,
                message: format!(
                    "all nodes of node group {number} ({}) have died, and with them a part of every table; \
                     definitions can only be dropped",
                    group.nodes.iter().map(|n| n.to_string()).collect::<Vec<_>>().join(", ")
                ),
            }),
            _ => Ok(()),
        }
    }

    /// What became of a change, if it was made lately.
    pub(crate) fn change_result(&self, request: u64) -> Option<&Result<u64, ChangeError>> {
        self.recent_changes.iter().find(|(r, _)| *r == request).map(|(_, result)| result)
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        lats_catalog::encode(self)
    }

    /// The same as the encoding of a promise, this state and the durable epoch, at the price of what has changed in the catalog.
    pub(crate) fn encode_to_keep(
        &self,
        (promised, durable): (u32, Epoch),
        encoded: &mut EncodedCatalog,
    ) -> Vec<u8> {
        let Self {
            view,
            catalog,
            recent_changes,
            epoch_ceiling,
            commands,
            restored,
            nonces,
            fence,
        } = self;
        let mut out = lats_catalog::encode(&(promised, view));
        encoded.append(catalog, &mut out);
        let rest = (recent_changes, epoch_ceiling, commands, restored, nonces, fence, durable);
        // Without its format version.
        out.extend_from_slice(&lats_catalog::encode(&rest)[1..]);
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, RefCode> {
        lats_catalog::decode(bytes)
    }
}

/// The error of a change that the cluster could not work on.
pub(crate) fn temporary(message: &str) -> ChangeError {
    ChangeError { kind: ChangeErrorKind::Temporary, message: message.to_string() }
}

/// The error of a change of which nobody knows whether it was made.
pub(crate) fn unknown(message: &str) -> ChangeError {
    ChangeError { kind: ChangeErrorKind::OutcomeUnknown, message: message.to_string() }
}

fn first_group(nodes: &[NodeId]) -> Group {
    Group {
        nodes: nodes.to_vec(),
        replicas: nodes.iter().map(|n| Replica { node: *n, in_sync: true }).collect(),
        primaries: nodes.to_vec(),
        next: Vec::new(),
        last: Vec::new(),
    }
}

pub(crate) mod again;
#[cfg(test)]
mod tests;
