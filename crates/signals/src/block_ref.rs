//! Addresses of blocks.

use lats_base::NodeId;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The kinds of blocks, and of other ends that signals come from and go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u16)]
pub enum BlockKind {
    /// The shell: links, files, the process.
    Shell = 0,
    /// Control: consensus, views, catalog, membership.
    Control = 1,
    /// Transaction coordinator.
    Tc = 2,
    /// Local data manager.
    Ldm = 3,
    /// A client connection of the node; the instance is the connection's slot.
    Client = 4,
    /// Reads fragments of the local data manager with the same instance, beside it. A node may have several.
    Query = 5,
    /// The node's files.
    Io = 6,
}

impl BlockKind {
    /// The kind with this number.
    pub fn from_number(number: u16) -> Option<Self> {
        Some(match number {
            0 => Self::Shell,
            1 => Self::Control,
            2 => Self::Tc,
            3 => Self::Ldm,
            4 => Self::Client,
            5 => Self::Query,
            6 => Self::Io,
            _ => return None,
        })
    }
}

/// The address of a block: node, kind, instance.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    FromBytes,
    IntoBytes,
    Immutable,
    KnownLayout,
)]
#[repr(C)]
pub struct BlockRef {
    /// The node it is on; 0 means "the node this runs on".
    pub node: NodeId,
    kind: u16,
    /// Which one of its kind.
    pub instance: u32,
}

impl BlockRef {
    /// The address of instance `instance` of `kind` on `node`.
    pub const fn new(node: NodeId, kind: BlockKind, instance: u32) -> Self {
        Self { node, kind: kind as u16, instance }
    }

    /// The control block of a node.
    pub const fn control(node: NodeId) -> Self {
        Self::new(node, BlockKind::Control, 0)
    }

    /// A coordinator of a node.
    pub const fn tc(node: NodeId, instance: u32) -> Self {
        Self::new(node, BlockKind::Tc, instance)
    }

    /// A local data manager of a node.
    pub const fn ldm(node: NodeId, instance: u32) -> Self {
        Self::new(node, BlockKind::Ldm, instance)
    }

    /// Those who read beside a local data manager.
    pub const fn query(node: NodeId, instance: u32) -> Self {
        Self::new(node, BlockKind::Query, instance)
    }

    /// The shell of a node.
    pub const fn shell(node: NodeId) -> Self {
        Self::new(node, BlockKind::Shell, 0)
    }

    /// The files of a node.
    pub const fn io(node: NodeId) -> Self {
        Self::new(node, BlockKind::Io, 0)
    }

    /// Its kind; none for a number that another version may use.
    pub fn kind(self) -> Option<BlockKind> {
        BlockKind::from_number(self.kind)
    }
}
