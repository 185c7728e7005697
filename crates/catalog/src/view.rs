//! Views: who the members are, which replicas are in sync, and who is primary of what.

use alloc::{string::String, vec::Vec};
use lats_base::{FragmentId, Incarnation, NodeGroupId, NodeId, NodeSet, RefCode, ViewNumber};
use serde::{Deserialize, Serialize};

/// What was decided when the cluster was founded, and what may be changed of that.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterConfig {
    /// Random; tells clusters apart.
    pub cluster_id: u64,
    /// Replicas of each node group.
    pub replicas: u16,
    /// LDM instances of every node: see [`View::ldm_instance`].
    pub ldm_instances: u32,
    /// TC instances of every node.
    pub tc_instances: u32,
    /// How long a lease lasts, and so how long a silent node is waited out, in ms.
    pub lease_ms: u64,
    /// How long a transaction waits for a row lock, in ms.
    pub lock_wait_ms: u64,
    /// Data nodes keep what is committed on disk.
    pub keeps: bool,
    /// Commits wait for disks unless a session or transaction says otherwise; see
    /// [`Change::SetDurability`](crate::Change::SetDurability).
    pub to_disk: bool,
}

/// What a node does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Roles {
    /// Holds data.
    pub data: bool,
    /// Serves SQL.
    pub sql: bool,
}

/// A node in the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// The node.
    pub node: NodeId,
    /// The life of its process that is meant.
    pub incarnation: Incarnation,
    /// What it does; neither data nor SQL: a witness.
    pub roles: Roles,
    /// Where other nodes and native clients connect.
    pub native_address: String,
    /// Where MySQL clients connect; empty if nowhere.
    pub sql_address: String,
    /// Its location domain (a rack, a data centre); empty if it was not told.
    pub location: String,
    /// The view in which this life became a member.
    pub joined_in: ViewNumber,
    /// Its process, for a person.
    pub pid: u32,
    /// False once it was removed; a new life makes it true again.
    pub alive: bool,
    /// It was told to stop: it is to be primary of nothing, and will be removed. What then?
    pub stopping: Option<AfterStop>,
    /// A person has said that this life is over, though nobody can see it (SILENT-4).
    pub declared_dead: bool,
    /// When it came, there was something on its disk.
    pub had_kept: bool,
}

/// What becomes of a node that was told to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AfterStop {
    /// Somebody starts it again.
    StayDown,
    /// Whoever supervises it starts it again at once.
    Restart,
}

/// A replica of a node group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replica {
    /// The node.
    pub node: NodeId,
    /// It holds every committed row. Else it is being filled.
    pub in_sync: bool,
}

/// A node group: replicas of the same fragments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// The nodes that belong to it, alive or not.
    pub nodes: Vec<NodeId>,
    /// Its live replicas.
    pub replicas: Vec<Replica>,
    /// The primary of each slot; node 0 if the group is lost. Fragments go round the slots.
    pub primaries: Vec<NodeId>,
    /// Whom a hand-over under way is to make primary of each slot; empty if there is none.
    pub next: Vec<NodeId>,
    /// If the group is lost: the node that was the last full replica.
    pub last: Vec<NodeId>,
}

impl Group {
    /// True if the node is the only full replica.
    pub fn is_last_full(&self, node: NodeId) -> bool {
        let mut full = self.replicas.iter().filter(|r| r.in_sync);
        full.next().is_some_and(|r| r.node == node) && full.next().is_none()
    }

    /// True if the node is a full replica, or was the last one of a lost group.
    pub fn had(&self, node: NodeId) -> bool {
        self.replicas.iter().any(|r| r.in_sync && r.node == node) || self.last.contains(&node)
    }

    /// LOST-1: the last replica that held every row has died.
    pub fn is_lost(&self) -> bool {
        self.primaries.iter().all(|n| n.get() == 0)
    }
}

/// Who may serve what, from one change to the next.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// Its number.
    pub number: ViewNumber,
    /// How many times the cluster has been restarted as a whole.
    pub restarts: u32,
    /// What the cluster was founded with, and what commits wait for.
    pub config: ClusterConfig,
    /// All nodes, dead ones too.
    pub members: Vec<Member>,
    /// The node groups.
    pub groups: Vec<Group>,
}

/// What a client needs to find its way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterMap {
    /// The view.
    pub view: View,
    /// The newest catalog version that the answering node has installed.
    pub catalog_version: u64,
    /// Data nodes of the view that the answering node does not hear, while it serves itself (SILENT-3); the node itself while it
    /// has no lease (SILENT-5).
    pub silent: Vec<NodeId>,
}

impl View {
    /// The member with this id.
    pub fn member(&self, node: NodeId) -> Option<&Member> {
        self.members.iter().find(|m| m.node == node)
    }

    /// The first view that this life of the node was a member of.
    pub fn joined_in(&self, node: NodeId, incarnation: Incarnation) -> Option<ViewNumber> {
        self.member(node).filter(|m| m.incarnation == incarnation).map(|m| m.joined_in)
    }

    /// True if this life of the node is a live member.
    pub fn is_alive(&self, node: NodeId, incarnation: Incarnation) -> bool {
        self.member(node).is_some_and(|m| m.alive && m.incarnation == incarnation)
    }

    /// True if this life of the node is over: it was removed, or has a successor, or its number is another process's.
    pub fn is_over(&self, node: NodeId, life: Incarnation) -> bool {
        self.member(node)
            .is_some_and(|m| m.incarnation > life || (m.incarnation == life && !m.alive))
    }

    /// The life of a live member.
    pub fn incarnation(&self, node: NodeId) -> Option<Incarnation> {
        self.member(node).filter(|m| m.alive).map(|m| m.incarnation)
    }

    /// The live data nodes.
    pub fn data_nodes(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|m| m.alive && m.roles.data)
    }

    /// The group of a fragment.
    pub fn group_of(&self, fragment: FragmentId) -> Option<&Group> {
        let groups = self.groups.len();
        (groups > 0).then(|| &self.groups[usize::from(fragment.get()) % groups])
    }

    /// The group that a node belongs to.
    pub fn group_of_node(&self, node: NodeId) -> Option<(NodeGroupId, &Group)> {
        let at = self.groups.iter().position(|g| g.nodes.contains(&node))?;
        Some((NodeGroupId::new(at as u16), &self.groups[at]))
    }

    /// The primary of a fragment, if its group is not lost.
    pub fn primary(&self, fragment: FragmentId) -> Option<NodeId> {
        let (group, slot) = self.slot_of(fragment)?;
        Some(group.primaries[slot]).filter(|n| n.get() != 0)
    }

    /// The primary of a fragment, for who has to go there.
    ///
    /// # Errors
    /// `NodeGroupLost` if nobody has its rows any more; `NotServing` before the first view.
    pub fn route(&self, fragment: FragmentId) -> Result<NodeId, RefCode> {
        let unknown =
            if self.groups.is_empty() { RefCode::NotServing } else { RefCode::NodeGroupLost };
        self.primary(fragment).ok_or(unknown)
    }

    /// The groups of which no full replica is left (LOST-1).
    pub fn lost_groups(&self) -> impl Iterator<Item = (NodeGroupId, &Group)> {
        let numbered = self.groups.iter().enumerate();
        numbered.filter(|(_, g)| g.is_lost()).map(|(at, g)| (NodeGroupId::new(at as u16), g))
    }

    /// The group of a fragment, and its place in it.
    fn slot_of(&self, fragment: FragmentId) -> Option<(&Group, usize)> {
        let group = self.group_of(fragment)?;
        let slots = group.primaries.len();
        (slots > 0).then(|| (group, usize::from(fragment.get()) / self.groups.len() % slots))
    }

    /// Who is to become primary of a fragment in the place of who is, by a hand-over.
    pub fn next_primary(&self, fragment: FragmentId) -> Option<NodeId> {
        let (group, slot) = self.slot_of(fragment)?;
        group.next.get(slot).copied().filter(|next| *next != group.primaries[slot])
    }

    /// True while primaries are being handed over.
    pub fn hands_over(&self) -> bool {
        self.groups.iter().any(|g| !g.next.is_empty())
    }

    /// The primaries that are being handed over: who gives, and who takes.
    pub fn moves(&self) -> impl Iterator<Item = (NodeId, NodeId)> {
        let moving = self.groups.iter().filter(|g| !g.next.is_empty());
        let slots = moving.flat_map(|g| g.primaries.iter().copied().zip(g.next.iter().copied()));
        slots.filter(|(from, to)| from != to)
    }

    /// True if another full replica of the node's group stays, so that the node can do without (STOP-1).
    /// True, too, of a node without data, and of one whose group is lost.
    pub fn is_replaceable(&self, node: NodeId) -> bool {
        let leaves = |node| self.is_stopping(node) || self.is_declared_dead(node);
        let stays = |r: &Replica| r.in_sync && r.node != node && !leaves(r.node);
        self.group_of_node(node)
            .is_none_or(|(_, group)| group.is_lost() || group.replicas.iter().any(stays))
    }

    /// Of how many slots the node is primary: its part of the work.
    pub fn primary_slots(&self, node: NodeId) -> usize {
        self.groups.iter().flat_map(|g| &g.primaries).filter(|n| **n == node).count()
    }

    /// True if a person has declared this life of the node dead, and it is still to be removed.
    pub fn is_declared_dead(&self, node: NodeId) -> bool {
        self.member(node).is_some_and(|m| m.alive && m.declared_dead)
    }

    /// True if the node was told to stop.
    pub fn is_stopping(&self, node: NodeId) -> bool {
        self.member(node).is_some_and(|m| m.alive && m.stopping.is_some())
    }

    /// Who should be primary of each slot of a group: the node that the slot was made for, where it
    /// can be; else whoever is, or the others in turn.
    pub fn balanced_primaries(&self, group: &Group) -> Vec<NodeId> {
        let can = |n: &NodeId| {
            group.replicas.iter().any(|r| r.node == *n && r.in_sync) && !self.is_stopping(*n)
        };
        let able: Vec<NodeId> = group.nodes.iter().copied().filter(can).collect();
        let mut balanced = group.primaries.clone();
        for (slot, primary) in balanced.iter_mut().enumerate() {
            let made_for = group.nodes.get(slot).copied().filter(can);
            let turn = || able.get(slot % able.len().max(1)).copied();
            let current = Some(*primary).filter(can);
            *primary = made_for.or(current).or_else(turn).unwrap_or(*primary);
        }
        balanced
    }

    /// The replicas that get a fragment's row images from its primary: in sync or being filled.
    pub fn backups(&self, fragment: FragmentId) -> NodeSet {
        let primary = self.primary(fragment);
        let Some(group) = self.group_of(fragment) else { return NodeSet::EMPTY };
        group.replicas.iter().map(|r| r.node).filter(|n| Some(*n) != primary).collect()
    }

    /// The replicas of a fragment that may answer reads.
    pub fn in_sync(&self, fragment: FragmentId) -> NodeSet {
        let Some(group) = self.group_of(fragment) else { return NodeSet::EMPTY };
        group.replicas.iter().filter(|r| r.in_sync).map(|r| r.node).collect()
    }

    /// True if the node is an in-sync replica of its group.
    pub fn is_in_sync(&self, node: NodeId) -> bool {
        self.group_of_node(node)
            .is_some_and(|(_, g)| g.replicas.iter().any(|r| r.node == node && r.in_sync))
    }

    /// True if the node is a live replica, in sync or being filled, of its group.
    pub fn is_replica_of_own_group(&self, node: NodeId) -> bool {
        self.group_of_node(node).is_some_and(|(_, g)| g.replicas.iter().any(|r| r.node == node))
    }

    /// True if the node is a replica, in sync or being filled, of the fragment.
    pub fn is_replica(&self, node: NodeId, fragment: FragmentId) -> bool {
        self.group_of(fragment).is_some_and(|g| g.replicas.iter().any(|r| r.node == node))
    }

    /// How many fragments a new table gets: as many that each data manager of each node is primary of one.
    pub fn fragments_per_table(&self) -> u16 {
        let fragments = self.slots() * usize::from(self.ldm_instances());
        fragments.clamp(1, usize::from(u16::MAX)) as u16
    }

    /// The instance of the data managers that a fragment belongs to, on every node: fragments go round the slots
    /// first, so that those of one slot are spread over its node's instances.
    pub fn ldm_instance(&self, fragment: FragmentId) -> u32 {
        let round = usize::from(fragment.get()) / self.slots().max(1);
        (round % usize::from(self.ldm_instances())) as u32
    }

    fn ldm_instances(&self) -> u16 {
        self.config.ldm_instances.clamp(1, u32::from(u16::MAX)) as u16
    }

    fn slots(&self) -> usize {
        self.groups.iter().map(|g| g.primaries.len()).sum()
    }
}
