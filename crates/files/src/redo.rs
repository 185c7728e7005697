//! The redo log of a data manager: what was committed, in records, in segment files (REDO-1 to REDO-4;
//! `docs/protocols/durability.md`). Format: `docs/formats/redo.md`.

mod coverage;
mod read;
mod survey;
#[cfg(test)]
mod tests;
mod write;

pub use coverage::{Coverage, Span, first_gap};
pub use read::{Change, End, Record, RecordKind, Segment, changes_in};
pub use survey::{Survey, newest_step, void_after};
pub use write::{Place, Taken, Writer};

use lats_base::{Epoch, FragmentId, Incarnation, NodeId, RowId, TableId, TransactionId, hash};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// What a segment file begins with.
pub const MAGIC: [u8; 8] = *b"LATSREDO";
/// The version of the format.
pub const VERSION: u32 = 3;

/// Bytes of a segment's head.
pub const SEGMENT_HEAD_BYTES: u32 = size_of::<SegmentHead>() as u32;
/// So many zeros stand behind the last record, until the next one is written: a file may have been used before.
pub const END_BYTES: usize = size_of::<RecordHead>();
/// What is wrong with a file that this version cannot read.
pub const OTHER_VERSION: &str = "another version of LatsDB has written it";

/// Which log it is: records of one are no records of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct LogId {
    /// The cluster.
    pub cluster: u64,
    /// The node.
    pub node: NodeId,
    /// The data manager.
    pub instance: u16,
    /// The life of the node that has written it.
    pub life: Incarnation,
}

impl LogId {
    fn hash(&self) -> u64 {
        hash::partition_hash(self.as_bytes())
    }
}

/// The first 72 bytes of a segment file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct SegmentHead {
    magic: [u8; 8],
    version: u32,
    head_bytes: u32,
    log: LogId,
    /// 1, 2, 3, … of a log.
    segment: u64,
    /// The number of its first record.
    first_record: u64,
    /// The segment with which the log begins: nothing before that counts any more.
    origin: u32,
    /// How many times the cluster had been restarted.
    restarts: u32,
    /// Records of earlier segments are of no later epoch.
    before: Epoch,
    /// Of all before it.
    checksum: u64,
}

/// What a record begins with: 64 bytes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
struct RecordHead {
    /// Of all after it, and of the log's identity.
    checksum: u64,
    /// The whole record, this head included; a multiple of 8.
    length_bytes: u32,
    kind: u16,
    reserved: u16,
    /// 1, 2, 3, … in the log, across segments.
    number: u64,
    epoch: Epoch,
    transaction: TransactionId,
    change_count: u32,
    reserved_too: [u32; 3],
}

/// What stands behind the head of a seal: 24 bytes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
struct SealBody {
    /// The newest epoch that was known to be durable in the whole cluster.
    durable: Epoch,
    /// How many commands of the control group its changes may depend on.
    commands: u64,
    /// 1: the log has all rows as they were then; 0: they are still being copied from other replicas.
    whole: u64,
}

/// What a seal says: everything of the epoch, and of earlier ones, that is to be in the log stands before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seal {
    /// The epoch.
    pub epoch: Epoch,
    /// The newest epoch that was known to be durable in the whole cluster.
    pub durable: Epoch,
    /// How many commands of the control group a state must know that the epoch is restored with (RESTART-6).
    pub commands: u64,
    /// False while rows are still being copied from other replicas: the epoch cannot be given back (REJOIN-8).
    pub whole: bool,
}

/// What a change of a row begins with: 32 bytes. Key and image follow, padded to 8 bytes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
struct ChangeHead {
    table: TableId,
    fragment: FragmentId,
    /// 1: the row is deleted.
    deleted: u16,
    row: RowId,
    /// The change's number within its fragment.
    number: u64,
    key_bytes: u32,
    image_bytes: u32,
}

const CHANGES: u16 = 1;
const SEAL: u16 = 2;
/// Bytes behind a record's checksum.
const CHECKED_FROM: usize = size_of::<u64>();

/// The checksum of a record of this log, of which these are the bytes behind the checksum.
fn checksum(log_hash: u64, checked: &[u8]) -> u64 {
    hash::partition_hash(checked) ^ log_hash
}
