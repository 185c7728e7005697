//! The greeting on a new connection: who is there, and do we fit together?

use crate::PROTOCOL_VERSION;
use lats_base::RefCode;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The first bytes of every connection, in both directions: 48 bytes.
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
    /// Not used yet; zero.
    pub reserved: u32,
    /// The cluster; 0 from a client that does not mind.
    pub cluster_id: u64,
    /// The client's id, or 0.
    pub client_id: u64,
    /// Not used yet; zero.
    pub spare: u64,
}

/// Who opens a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HelloKind {
    /// A node.
    Node,
    /// A client.
    Client,
}

/// Bytes of a greeting.
pub const HELLO_BYTES: usize = core::mem::size_of::<Hello>();
const MAGIC: [u8; 8] = *b"LatsDB\r\n";

impl Hello {
    /// A node's greeting.
    pub fn node(node: u16, incarnation: u32, cluster_id: u64) -> Self {
        Self::new(HelloKind::Node, node, incarnation, cluster_id, 0)
    }

    /// A client's greeting.
    pub fn client(client_id: u64, cluster_id: u64) -> Self {
        Self::new(HelloKind::Client, 0, 0, cluster_id, client_id)
    }

    fn new(kind: HelloKind, node: u16, incarnation: u32, cluster_id: u64, client_id: u64) -> Self {
        let kind = match kind {
            HelloKind::Node => 1,
            HelloKind::Client => 2,
        };
        Self {
            magic: MAGIC,
            version: PROTOCOL_VERSION,
            kind,
            node,
            refusal: 0,
            incarnation,
            reserved: 0,
            cluster_id,
            client_id,
            spare: 0,
        }
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

    /// Why a side with `cluster_id` cannot talk to the one that sent this.
    pub fn misfit(&self, cluster_id: u64) -> Option<RefCode> {
        if self.version.abs_diff(PROTOCOL_VERSION) > 1 {
            return Some(RefCode::VersionUnsupported);
        }
        let strange = self.cluster_id != 0 && self.cluster_id != cluster_id;
        strange.then_some(RefCode::WrongCluster)
    }
}
