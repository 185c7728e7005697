//! Sets of nodes, small enough to travel inside a signal.

use crate::{NodeId, limits};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A set of nodes: bit *n* stands for node *n*.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(transparent)]
pub struct NodeSet(u64);

const _: () = assert!(limits::NODES_MAX <= 64);

impl NodeSet {
    /// The empty set.
    pub const EMPTY: Self = Self(0);

    /// The set of one node.
    pub fn of(node: NodeId) -> Self {
        let mut set = Self::EMPTY;
        set.insert(node);
        set
    }

    /// Adds a node.
    pub fn insert(&mut self, node: NodeId) {
        crate::require!(usize::from(node.get()) < limits::NODES_MAX);
        self.0 |= 1 << node.get();
    }

    /// Removes a node; true if it was there.
    pub fn remove(&mut self, node: NodeId) -> bool {
        let was = self.contains(node);
        if was {
            self.0 &= !(1 << node.get());
        }
        was
    }

    /// True if the node is in the set.
    pub fn contains(self, node: NodeId) -> bool {
        usize::from(node.get()) < limits::NODES_MAX && self.0 & (1 << node.get()) != 0
    }

    /// True if there is no node in it.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How many nodes are in it.
    pub fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// Those in both sets.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Its nodes in ascending order.
    pub fn iter(self) -> impl Iterator<Item = NodeId> {
        (0..64u16).filter(move |n| self.0 & (1 << n) != 0).map(NodeId::new)
    }
}

impl FromIterator<NodeId> for NodeSet {
    fn from_iter<I: IntoIterator<Item = NodeId>>(nodes: I) -> Self {
        let mut set = Self::EMPTY;
        nodes.into_iter().for_each(|n| set.insert(n));
        set
    }
}
