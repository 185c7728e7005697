//! Signals that fill a new replica. Protocol: docs/protocols/rejoin.md.

use crate::{BlockRef, body};
use lats_base::{Epoch, FragmentId, TableId, TransactionId, ViewNumber};

body! {
    /// LDM of a primary → LDM of a syncing replica: committed rows; payload:
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
        /// A `RefCode` if the rows could not be stored, else 0.
        code: u32,
    }
}
body! {
    /// LDM of a primary → LDM of a syncing replica: outcomes that clients may still ask for;
    /// payload: [`crate::commit::CompleteEntry`]s.
    OutcomesOrd {
        /// Not used yet; zero.
        reserved: u64,
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
