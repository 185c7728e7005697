//! Signals that fill a new replica. Protocol: docs/protocols/rejoin.md.

use crate::{BlockRef, Signal, body, list};
use lats_base::{Epoch, FragmentId, RowId, TableId, TransactionId, ViewNumber};

/// [`CopyRowsConf::code`]: the replica does not have what the primary takes for unchanged (REJOIN-9).
pub const COPY_WHOLE: u32 = 1 << 16;

body! {
    /// LDM of a syncing replica → LDMs of its group that are in sync, in each view: send rows now. Those that have not changed
    /// since an epoch need not be sent (REJOIN-8).
    CopySinceReq {
        /// The replica's view.
        view: ViewNumber,
        /// Its log can give back this epoch; 0: none.
        since: Epoch,
    }
}
body! {
    /// LDM of a primary → LDM of a syncing replica: committed rows; payload: a bit for each row id from `first_row` on, the lowest of
    /// each byte first: 1 if the row has not changed since the epoch that the replica has named (REJOIN-9); then
    /// [`crate::list::Change`]s.
    CopyRowsOrd {
        /// The primary's view.
        view: ViewNumber,
        /// The table.
        table: TableId,
        /// The fragment.
        fragment: FragmentId,
        /// Not used yet; zero.
        reserved: u16,
        /// Number of rows.
        row_count: u32,
        /// The copy's step; given back in the answer.
        step: u32,
        /// The row that the first bit is about.
        first_row: RowId,
        /// XXH3-64 of the ids and numbers (of their last changes) of the rows whose bits are set, 16 bytes each.
        digest: u64,
        /// Bytes with such bits: a multiple of 8.
        unchanged_bytes: u32,
        /// Not used yet; zero.
        reserved_too: u32,
    }
}
body! {
    /// LDM of a syncing replica → LDM of the primary: stored; send more.
    CopyRowsConf {
        /// As in the order.
        view: ViewNumber,
        /// The table.
        table: TableId,
        /// The fragment.
        fragment: FragmentId,
        /// Not used yet; zero.
        reserved: u16,
        /// As in the order.
        step: u32,
        /// [`COPY_WHOLE`], or a `RefCode` if the rows could not be stored, else 0.
        code: u32,
    }
}
body! {
    /// LDM of a primary → LDM of a syncing replica: outcomes that clients may still ask for;
    /// payload: [`crate::commit::KnownOutcome`]s.
    OutcomesOrd {
        /// All that ended in the last so many ms is among them (OUTCOME-8).
        remembered_ms: u64,
    }
}
body! {
    /// LDM of a primary → LDM of a syncing replica: the fragment is whole.
    CopyEndOrd {
        /// The primary's view.
        view: ViewNumber,
        /// The table.
        table: TableId,
        /// The fragment.
        fragment: FragmentId,
        /// Not used yet; zero.
        reserved: u16,
        /// No change that was made before the end of copying is of a later epoch.
        epoch: Epoch,
    }
}
body! {
    /// LDM → control of the same node: every fragment of this LDM is whole.
    FragmentsSyncedRep {
        /// The view in which they became whole.
        view: ViewNumber,
        /// The catalog that they were counted by.
        catalog_version: u64,
        /// The LDM's instance.
        instance: u32,
        /// Not used yet; zero.
        reserved: u32,
    }
}
body! {
    /// LDM to itself: go on with the copying.
    CopyResumeOrd {
        /// The node that is copied to.
        target: u64,
    }
}
body! {
    /// LDM of a primary → TC: an open transaction has changed rows before a syncing replica came, which is
    /// to hear its end, too (REJOIN-5).
    AdoptReq {
        /// The transaction.
        transaction: TransactionId,
        /// The primary's view.
        view: ViewNumber,
        /// The node of the syncing replica.
        target: u64,
    }
}
body! {
    /// TC → LDM of the primary: send such changes now, as a batch. Answer: `PrepareConf`.
    AdoptOrd {
        /// The transaction.
        transaction: TransactionId,
        /// The coordinator's view.
        view: ViewNumber,
        /// The node of the syncing replica.
        target: u64,
        /// The batch.
        batch: u32,
        /// Not used yet; zero.
        reserved: u32,
    }
}
body! {
    /// LDM of a primary → LDM of a syncing replica: changes of an open transaction; payload:
    /// [`crate::list::OpenChange`]s. Answer: `ReplicateConf` to the coordinator.
    AdoptChangesReq {
        /// The transaction.
        transaction: TransactionId,
        /// Its coordinator.
        coordinator: BlockRef,
        /// The primary's view.
        view: ViewNumber,
        /// The batch.
        batch: u32,
        /// Number of changes.
        change_count: u32,
        /// The coordinator's life.
        coordinator_incarnation: u32,
        /// Not used yet; zero.
        reserved: u32,
    }
}

/// True if the bits and the rows of a [`CopyRowsOrd`] are what its body says.
pub(crate) fn check_rows(signal: &Signal<'_>) -> bool {
    let body = signal.body::<CopyRowsOrd>();
    let bits = body.unchanged_bytes as usize;
    let rows = signal.payload().get(bits..);
    bits.is_multiple_of(size_of::<u64>())
        && rows.is_some_and(|rows| list::check::<list::Change>(rows, body.row_count))
}
