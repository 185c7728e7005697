//! Signals of committed reads and scans. Protocol: docs/protocols/read.md.

use crate::{BlockRef, Signal, body, list};
use lats_base::{Epoch, FragmentId, IndexId, TableId, TransactionId};

body! {
    /// Client → LDM of any replica: read committed rows; payload: [`crate::list::Operation`]s of
    /// kind `Read`, all of fragments of this LDM.
    ReadReq {
        /// The transaction whose own writes are to be seen, or none.
        transaction: TransactionId,
        /// Given back in the answer.
        request: u64,
        /// Who gets the answer: set where the request enters the cluster.
        reply_to: BlockRef,
        /// The complete epoch whose rows are to be read; 0: the newest rows. Any other is refused with `SnapshotTooOld`: no data
        /// manager keeps older versions for reads by key yet.
        as_of: Epoch,
        /// Number of operations.
        operation_count: u32,
        /// How often replicas have passed it on.
        hops: u32,
    }
}
body! {
    /// LDM → client: the rows; payload: [`crate::list::Outcome`]s.
    ReadConf {
        /// The request.
        request: u64,
        /// What was read belongs to this epoch or an earlier one.
        epoch: Epoch,
        /// What it shows is durable when this epoch is (READ-7).
        changed: Epoch,
        /// Number of results. May be a part of the request's: the indexes tell which.
        result_count: u32,
        /// Not used yet; zero.
        reserved: u32,
    }
}
body! {
    /// LDM → client: refused; payload: an error's text.
    ReadRef {
        /// The request.
        request: u64,
        /// A `RefCode`.
        code: u32,
        /// For `ProgramFailed`: MySQL's error number; else 0.
        errno: u32,
    }
}
/// Rows in index order.
pub const SCAN_ORDERED: u32 = 1;
/// From the end to the start.
pub const SCAN_REVERSE: u32 = 2;
/// Send each row's key in the scanned index: who merges fragments compares them.
pub const SCAN_INDEX_KEYS: u32 = 4;
/// Send each row's primary key.
pub const SCAN_PRIMARY_KEYS: u32 = 8;
/// Only keys, and those of rows too that are inserted or deleted but not committed (UNIQUE-7).
pub const SCAN_PENDING: u32 = 16;
/// A backup may do it, until it meets a row that is being changed (READ-4).
pub const SCAN_ANY_REPLICA: u32 = 32;
/// Few rows may be enough: the first batches are small, and each is larger than the one before (READ-6).
pub const SCAN_FEW: u32 = 128;
/// No rows are wanted, but what the index is like: a row for each of some places, with the entry's key there and a sample
/// (`lats_catalog::statistics`). The limit says how many places there may be.
pub const SCAN_SAMPLE: u32 = 64;
/// The rows will be locked: those count, too, of which others are changing a version that passes the filter (LOCK-7).
pub const SCAN_TO_LOCK: u32 = 256;
/// Of each range the first row that passes the filter is enough; more may come (READ-8).
pub const SCAN_FIRST: u32 = 512;
body! {
    /// Client → LDM of a primary, or of any replica: open a scan of one fragment; payload: [`crate::list::Range`]s,
    /// then the program.
    ScanReq {
        /// The transaction whose own writes are to be seen, or none.
        transaction: TransactionId,
        /// The client's number for this scan; given back in answers.
        scan: u64,
        /// Who gets the rows: set where the request enters the cluster.
        reply_to: BlockRef,
        /// No more rows than this are wanted.
        limit: u64,
        /// The complete epoch whose snapshot is to be read; 0: the newest rows.
        as_of: Epoch,
        /// The table.
        table: TableId,
        /// The version of its definition that the client knows.
        schema_version: u32,
        /// The fragment.
        fragment: FragmentId,
        /// The index.
        index: IndexId,
        /// Number of ranges.
        range_count: u32,
        /// Bytes of the program behind the ranges.
        program_bytes: u32,
        /// SCAN_…
        flags: u32,
    }
}
body! {
    /// Client → LDM: send more of a scan.
    ScanNextReq {
        /// The scan.
        scan: u64,
        /// Its client: set where the request enters the cluster.
        reply_to: BlockRef,
    }
}
body! {
    /// Client → LDM: no more is wanted of a scan.
    ScanCloseOrd {
        /// The scan.
        scan: u64,
        /// Its client: set where the request enters the cluster.
        reply_to: BlockRef,
    }
}
body! {
    /// LDM → client: rows; payload: [`crate::list::FoundRow`]s.
    ScanConf {
        /// The scan.
        scan: u64,
        /// What was read belongs to this epoch or an earlier one.
        epoch: Epoch,
        /// What it shows is durable when this epoch is (READ-7).
        changed: Epoch,
        /// Number of rows.
        row_count: u32,
        /// 1 if this is the end.
        done: u32,
    }
}
body! {
    /// LDM → client: the scan failed and is closed; payload: an error's text. `AskPrimary`: the ranges that are still to
    /// be read.
    ScanRef {
        /// The scan.
        scan: u64,
        /// A `RefCode`.
        code: u32,
        /// For `ProgramFailed`: MySQL's error number; else 0.
        errno: u32,
    }
}
body! {
    /// LDM to itself: go on with a scan.
    ScanResumeOrd {
        /// The scan.
        scan: u64,
        /// Its client.
        reply_to: BlockRef,
    }
}

/// True if the payload of a [`ScanReq`] holds its ranges and its program exactly.
pub(crate) fn check_scan(signal: &Signal<'_>) -> bool {
    let body = signal.body::<ScanReq>();
    let payload = signal.payload();
    let Some(split) = payload.len().checked_sub(body.program_bytes as usize) else {
        return false;
    };
    list::check::<list::Range>(&payload[..split], body.range_count)
}
