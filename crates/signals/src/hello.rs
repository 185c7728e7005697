//! The greeting on a new connection: who is there, and do we fit together?

use crate::{Lane, PROTOCOL_VERSION};
use lats_base::{Nonce, RefCode, limits};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The first bytes of every connection, in both directions: 48 bytes. A challenge follows ([`crate::proof`]), unless it is a
/// refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Hello {
    magic: [u8; 8],
    /// The protocol version that this side speaks.
    pub version: u16,
    kind: u16,
    /// The node, or 0 for a client.
    pub node: u16,
    /// 0, or the `RefCode` with which the connection is refused.
    pub refusal: u16,
    /// This life of the node.
    pub incarnation: u32,
    /// Of a node: which of the two connections this is, the number of a [`Lane`]; 0 from others.
    lane: u32,
    /// The cluster; 0 from a client that does not mind.
    pub cluster_id: u64,
    /// The client's id; of a node, the first half of its nonce.
    client_id: u64,
    /// Of a node: the second half of its nonce; else zero.
    spare: u64,
}

/// Who opens a connection, and so which signals may come over it (GREET-3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HelloKind {
    /// A node.
    Node,
    /// A client that reads and writes rows.
    Client,
    /// A client that also changes definitions, stops nodes, and ends sessions.
    Admin,
}

/// What both ends of a connection between nodes say first when the greeting is over (LINK-2): 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Resume {
    /// Which link between the two processes it is.
    pub number: u32,
    reserved: u32,
    /// Bytes of whole signals that have come by this lane of the link.
    pub received: u64,
}

/// Bytes of it.
pub const RESUME_BYTES: usize = core::mem::size_of::<Resume>();

impl Resume {
    /// What is to be said.
    pub fn new(number: u32, received: u64) -> Self {
        Self { number, reserved: 0, received }
    }

    /// Its bytes.
    pub fn to_bytes(&self) -> &[u8] {
        self.as_bytes()
    }

    /// Reads it.
    pub fn read(bytes: &[u8; RESUME_BYTES]) -> Self {
        zerocopy::transmute!(*bytes)
    }
}

/// Bytes of a greeting.
pub const HELLO_BYTES: usize = core::mem::size_of::<Hello>();
/// From this version on each end proves that it knows the cluster's secret.
const PROVING_VERSION: u16 = 2;
/// From this version on nodes understand each other: links outlive connections (LINK-1), and reports of waits name batches
/// (DEADLOCK-4).
const NODES_VERSION: u16 = 5;
/// What every greeting begins with.
pub const MAGIC: [u8; 8] = *b"LatsDB\r\n";

impl Hello {
    /// A node's greeting.
    pub fn node(node: u16, (incarnation, nonce): (u32, Nonce), cluster_id: u64) -> Self {
        let [first, spare] = nonce.halves();
        Self { spare, ..Self::new(HelloKind::Node, node, incarnation, cluster_id, first) }
    }

    /// A client's greeting.
    pub fn client(client_id: u64, cluster_id: u64) -> Self {
        Self::new(HelloKind::Client, 0, 0, cluster_id, client_id)
    }

    /// The greeting of a client that administers the cluster.
    pub fn admin(client_id: u64, cluster_id: u64) -> Self {
        Self::new(HelloKind::Admin, 0, 0, cluster_id, client_id)
    }

    fn new(kind: HelloKind, node: u16, incarnation: u32, cluster_id: u64, client_id: u64) -> Self {
        let kind = match kind {
            HelloKind::Node => 1,
            HelloKind::Client => 2,
            HelloKind::Admin => 3,
        };
        Self {
            magic: MAGIC,
            version: PROTOCOL_VERSION,
            kind,
            node,
            refusal: 0,
            incarnation,
            lane: 0,
            cluster_id,
            client_id,
            spare: 0,
        }
    }

    /// The same greeting, for this one of the connections between two nodes.
    #[must_use]
    pub fn on(mut self, lane: Lane) -> Self {
        self.lane = lane.number();
        self
    }

    /// Of a node: which process it is (LIFE-3).
    pub fn nonce(&self) -> Nonce {
        Nonce::new([self.client_id, self.spare])
    }

    /// Which of the connections between two nodes this is, if this version knows it.
    pub fn lane(&self) -> Option<Lane> {
        Lane::from_number(self.lane)
    }

    /// The same greeting, as a refusal.
    #[must_use]
    pub fn refusing(mut self, code: RefCode) -> Self {
        self.refusal = code.number();
        self
    }

    /// Who opens the connection.
    pub fn kind(&self) -> Option<HelloKind> {
        match self.kind {
            1 => Some(HelloKind::Node),
            2 => Some(HelloKind::Client),
            3 => Some(HelloKind::Admin),
            _ => None,
        }
    }

    /// Its bytes.
    pub fn to_bytes(&self) -> &[u8] {
        self.as_bytes()
    }

    /// Reads a greeting; none if these bytes are no greeting of any version.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let hello = Self::read_from_bytes(bytes).ok()?;
        (hello.magic == MAGIC && hello.kind().is_some()).then_some(hello)
    }

    /// Why a side with `cluster_id` cannot talk to the one that sent this. Only clients may leave open which cluster they want
    /// (GREET-4).
    pub fn misfit(&self, cluster_id: u64) -> Option<RefCode> {
        let least = match self.kind() {
            Some(HelloKind::Node) => NODES_VERSION,
            _ => PROVING_VERSION,
        };
        if self.version.abs_diff(PROTOCOL_VERSION) > 1 || self.version < least {
            return Some(RefCode::VersionUnsupported);
        }
        let is_open = self.cluster_id == 0 && self.kind() != Some(HelloKind::Node);
        let strange = !is_open && self.cluster_id != cluster_id;
        strange.then_some(RefCode::WrongCluster)
    }

    /// True if a node can have sent this: its number is one, its life is neither "none" nor the last of all numbers, after
    /// which no life could follow, and the connection is one of two (GREET-4).
    pub fn is_possible_node(&self) -> bool {
        let node = usize::from(self.node);
        let has_life = !matches!(self.incarnation, 0 | u32::MAX);
        (1..=limits::NODES_MAX).contains(&node) && has_life && self.lane().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_clients_leave_the_cluster_open() {
        assert_eq!(Hello::client(1, 0).misfit(7), None);
        assert_eq!(Hello::admin(1, 0).misfit(7), None);
        assert_eq!(Hello::node(1, (1, Nonce::default()), 0).misfit(7), Some(RefCode::WrongCluster));
        assert_eq!(Hello::node(1, (1, Nonce::default()), 7).misfit(7), None);
        assert_eq!(Hello::client(1, 8).misfit(7), Some(RefCode::WrongCluster));
    }

    #[test]
    fn a_version_without_proofs_is_refused() {
        let mut hello = Hello::node(1, (1, Nonce::default()), 7);
        for version in [0, 1, PROVING_VERSION - 1, PROTOCOL_VERSION + 2, u16::MAX] {
            hello.version = version;
            assert_eq!(hello.misfit(7), Some(RefCode::VersionUnsupported), "{version}");
        }
        hello.version = PROTOCOL_VERSION + 1;
        assert_eq!(hello.misfit(7), None);
    }

    #[test]
    fn lives_and_nodes_that_cannot_be() {
        assert!(Hello::node(1, (1, Nonce::default()), 7).is_possible_node());
        for (node, life) in [(0, 1), (1, 0), (1, u32::MAX), (u16::MAX, 1)] {
            assert!(
                !Hello::node(node, (life, Nonce::default()), 7).is_possible_node(),
                "{node} {life}"
            );
        }
    }
}
