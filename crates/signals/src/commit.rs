//! Signals of transactions. Protocol: docs/protocols/commit.md.

use crate::{BlockRef, NodeSet, body};
use lats_base::{Epoch, TransactionId, ViewNumber};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Commit with these operations.
pub const FLAG_COMMIT: u32 = 1;
/// Roll the whole transaction back.
pub const FLAG_ROLLBACK: u32 = 2;
/// First take back what statements `rollback_to` and later wrote.
pub const FLAG_ROLLBACK_TO: u32 = 4;
/// In a confirmation: the transaction is committed.
pub const FLAG_COMMITTED: u32 = 8;
/// In a refusal: only the request was taken back, the transaction lives on (STATEMENT-1).
pub const FLAG_OPEN: u32 = 16;

body! {
    /// Client → TC: operations of a transaction; payload: [`crate::list::Operation`]s.
    TcKeyReq {
        /// The transaction; unknown ones begin here.
        transaction: TransactionId,
        /// Given back in the answer.
        request: u64,
        /// The client has seen the outcome of all its transactions below this one.
        answered_below: u64,
        /// The largest epoch the client has seen.
        epoch_seen: Epoch,
        /// The statement these operations belong to; grows within a transaction.
        statement: u32,
        /// With `FLAG_ROLLBACK_TO`: the first statement to take back.
        rollback_to: u32,
        /// Number of operations.
        operation_count: u32,
        /// FLAG_…
        flags: u32,
    }
}
body! {
    /// TC → client: done; payload: [`crate::list::Outcome`]s in request order.
    TcKeyConf {
        /// The transaction.
        transaction: TransactionId,
        /// The request.
        request: u64,
        /// The commit epoch, if committed.
        epoch: Epoch,
        /// Number of results.
        result_count: u32,
        /// `FLAG_COMMITTED` or 0.
        flags: u32,
        /// How many times the cluster had been restarted.
        restarts: u32,
        /// Not used yet; zero.
        reserved: u32,
    }
}
body! {
    /// TC → client: refused; the request, or the whole transaction, is rolled back; payload: an
    /// error's text.
    TcKeyRef {
        /// The transaction.
        transaction: TransactionId,
        /// The request.
        request: u64,
        /// A `RefCode`.
        code: u32,
        /// For `ProgramFailed`: MySQL's error number; else 0.
        errno: u32,
        /// `FLAG_OPEN` or 0.
        flags: u32,
        /// Not used yet; zero.
        reserved: u32,
    }
}
body! {
    /// Client → TC: refuse this request of mine, if it still waits; there is no answer but the request's own.
    InterruptOrd {
        /// The transaction.
        transaction: TransactionId,
        /// The request that is under way.
        request: u64,
    }
}
body! {
    /// Client → TC: what became of a transaction whose coordinator was lost?
    OutcomeReq {
        /// The transaction.
        transaction: TransactionId,
        /// Given back in the answer.
        request: u64,
        /// So long ago the client asked for its commit, on the client's clock (OUTCOME-8).
        age_ms: u64,
    }
}
/// The outcome of a transaction is committed.
pub const OUTCOME_COMMITTED: u32 = 1;
/// The outcome of a transaction is rolled back, or it never was.
pub const OUTCOME_ABORTED: u32 = 2;
/// The outcome is being found out: ask again.
pub const OUTCOME_PENDING: u32 = 3;
/// Changes are still to be made visible here: whoever is told "committed" now could miss them.
pub const OUTCOME_HIDDEN: u32 = 4;
/// Nobody who lives knows of it; but a node group is lost, which may have committed it (LOST-4).
pub const OUTCOME_LOST: u32 = 5;
/// Nobody knows of it; but it is older than what is remembered (OUTCOME-8).
pub const OUTCOME_FORGOTTEN: u32 = 6;
/// How many rows a transaction has changed is not known.
pub const CHANGES_UNKNOWN: u32 = u32::MAX;

/// OUTCOME-8: true if whoever remembers all that happened in the last `remembered_ms` of its own clock would know of what happened
/// `age_ms` ago on another one's. Two clocks may differ in their rates by a quarter.
pub const fn is_remembered(age_ms: u64, remembered_ms: u64) -> bool {
    age_ms.saturating_add(age_ms / 4) <= remembered_ms
}
body! {
    /// TC → client: the outcome.
    OutcomeConf {
        /// The transaction.
        transaction: TransactionId,
        /// The request.
        request: u64,
        /// The commit epoch, if committed.
        epoch: Epoch,
        /// OUTCOME_…
        outcome: u32,
        /// How many times the cluster had been restarted.
        restarts: u32,
        /// All that ended in the last so many ms is remembered (OUTCOME-8).
        remembered_ms: u32,
        /// If committed: so many rows it has changed (OUTCOME-9), or [`CHANGES_UNKNOWN`].
        changes: u32,
    }
}
body! {
    /// TC → LDM of the primary: execute and lock; payload: [`crate::list::Operation`]s.
    PrepareReq {
        /// The transaction.
        transaction: TransactionId,
        /// The view that the coordinator routed by.
        view: ViewNumber,
        /// The largest epoch known to the coordinator.
        epoch: Epoch,
        /// This batch's number within the transaction.
        batch: u32,
        /// The statement it belongs to.
        statement: u32,
        /// Number of operations.
        operation_count: u32,
        /// `PART_OF_MANY`, or 0.
        flags: u16,
        /// When so many batches, of which this is one, are through, the whole transaction is prepared:
        /// their row images may carry the decision (CARRY-1). 0: they may not.
        carry_parts: u16,
    }
}
/// The request that the batch belongs to has other batches too (DEADLOCK-2).
pub const PART_OF_MANY: u16 = 2;
body! {
    /// LDM of the primary → TC: executed; payload: [`crate::list::Outcome`]s, then the
    /// [`crate::list::IndexChange`]s that the coordinator makes before it goes on (UNIQUE-1).
    PrepareConf {
        /// The transaction.
        transaction: TransactionId,
        /// The largest epoch known to the participant. If the row images carry the decision: the commit
        /// epoch is the largest one of all parts.
        epoch: Epoch,
        /// The replicas that the row images were sent to.
        backups: NodeSet,
        /// The participant's view.
        view: ViewNumber,
        /// The batch.
        batch: u32,
        /// Number of results.
        result_count: u32,
        /// 1 if the batch holds locks or changes, so that the participant must hear the end.
        holds: u32,
        /// 1 if the row images carry their part of the decision: the transaction commits, if those of
        /// all parts do.
        carried: u32,
        /// Number of changes of unique indexes.
        index_change_count: u32,
        /// Number of rows that the batch has changed: without any it only tells of rows (LEASE-7).
        change_count: u32,
    }
}
body! {
    /// LDM of the primary → TC: not executed; payload: an error's text. What the batch changed
    /// before stays until the abort that follows.
    PrepareRef {
        /// The transaction.
        transaction: TransactionId,
        /// The batch.
        batch: u32,
        /// A `RefCode`.
        code: u32,
        /// The replicas that the batch's row images were sent to; empty.
        backups: NodeSet,
        /// For `ProgramFailed`: MySQL's error number; else 0.
        errno: u32,
        /// Not used yet; zero.
        reserved: u32,
    }
}
body! {
    /// LDM of the primary → LDM of a backup: row images; payload: [`crate::list::Change`]s.
    ReplicateReq {
        /// The transaction.
        transaction: TransactionId,
        /// Its coordinator.
        coordinator: BlockRef,
        /// The primary's view.
        view: ViewNumber,
        /// If the images carry their part of the decision: that part.
        carry: Carry,
        /// The batch.
        batch: u32,
        /// The statement it belongs to.
        statement: u32,
        /// Number of changes.
        change_count: u32,
        /// The coordinator's life.
        coordinator_incarnation: u32,
    }
}
body! {
    /// LDM of a backup → TC: the row images are held.
    ReplicateConf {
        /// The transaction.
        transaction: TransactionId,
        /// The batch.
        batch: u32,
        /// Not used yet; zero.
        reserved: u32,
    }
}
body! {
    /// TC → LDM of a backup: the transaction commits.
    DecideReq {
        /// The transaction.
        transaction: TransactionId,
        /// Its commit epoch.
        epoch: Epoch,
        /// The coordinator's view: wait until it is installed.
        view: ViewNumber,
    }
}
body! {
    /// LDM of a backup → TC: decided here.
    DecideConf {
        /// The transaction.
        transaction: TransactionId,
    }
}
body! {
    /// TC → LDM of a primary: make the rows visible and unlock.
    CommitReq {
        /// The transaction.
        transaction: TransactionId,
        /// Its commit epoch.
        epoch: Epoch,
        /// The coordinator's view: wait until it is installed.
        view: ViewNumber,
    }
}
body! {
    /// LDM of a primary → TC: visible and unlocked.
    CommitConf {
        /// The transaction.
        transaction: TransactionId,
        /// The view of the order that it confirms: older orders are of no interest any more.
        view: ViewNumber,
    }
}
body! {
    /// TC → LDM of any replica: take back what statements from this one on wrote. Backups first,
    /// then primaries (ABORT-3).
    AbortReq {
        /// The transaction.
        transaction: TransactionId,
        /// The coordinator's view: wait until it is installed.
        view: ViewNumber,
        /// The first statement to take back; 0 ends the whole transaction; `CANCEL_WAIT` only
        /// refuses a batch that waits for a lock (and is not confirmed).
        from_statement: u32,
        /// ABORT_…
        part: u32,
    }
}
/// See [`AbortReq::from_statement`].
pub const CANCEL_WAIT: u32 = u32::MAX;
/// Take back rows of which the receiver is a backup: this comes first (ABORT-3).
pub const ABORT_AS_BACKUP: u32 = 1;
/// Take back the rest, and unlock it.
pub const ABORT_AS_PRIMARY: u32 = 2;
body! {
    /// LDM → TC: taken back.
    AbortConf {
        /// The transaction.
        transaction: TransactionId,
        /// As in the request.
        view: ViewNumber,
        /// As in the request.
        from_statement: u32,
        /// As in the request.
        part: u32,
    }
}
body! {
    /// TC → LDM of any replica, lazily: these transactions are committed everywhere; payload:
    /// [`CompleteEntry`]s.
    CompleteOrd {
        /// What is completed together has the same number (CARRY-5).
        generation: u64,
        /// Everyone has heard of the end of what came in earlier generations than this one.
        settled_below: u64,
        /// 1 if the coordinator has to know when this has been heard.
        asks: u32,
        /// Not used yet; zero.
        reserved: u32,
    }
}
body! {
    /// LDM of any replica → TC: it has heard of the end of these transactions.
    CompleteConf {
        /// As in the order.
        generation: u64,
    }
}
/// A completed transaction.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct CompleteEntry {
    /// The transaction.
    pub transaction: TransactionId,
    /// Its commit epoch.
    pub epoch: Epoch,
    /// The client has seen the outcome of all its transactions below this one.
    pub answered_below: u64,
}

/// A part of the decision to commit a transaction, which row images carry (CARRY-2).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Carry {
    /// The commit epoch is the largest one of all parts. 0: there is no such part.
    pub epoch: Epoch,
    /// The primary's view when it sent the images.
    pub sent_in: ViewNumber,
    /// Whom it sent them to.
    pub receivers: NodeSet,
    /// How many parts there are.
    pub parts: u32,
    /// Not used yet; zero.
    pub reserved: u32,
}

/// The replica has the transaction prepared.
pub const TAKE_OVER_PREPARED: u32 = 1;
/// The replica knows that it commits.
pub const TAKE_OVER_DECIDED: u32 = 2;
/// The replica has committed it and only keeps its outcome.
pub const TAKE_OVER_COMMITTED: u32 = 3;
/// The replica has its part of the row images that carry the decision.
pub const TAKE_OVER_CARRIED: u32 = 4;
body! {
    /// LDM → surviving TC: a transaction whose coordinator is dead.
    TakeOverRep {
        /// The transaction.
        transaction: TransactionId,
        /// Its commit epoch, if decided.
        epoch: Epoch,
        /// The view without the dead coordinator.
        view: ViewNumber,
        /// If its images carry the decision: what they say of it.
        carry: Carry,
        /// TAKE_OVER_…
        state: u32,
        /// Not used yet; zero.
        reserved: u32,
    }
}
body! {
    /// LDM → surviving TC: transactions of dead coordinators that have ended here, but perhaps not yet
    /// everywhere (CARRY-5); payload: [`CompleteEntry`]s.
    TakeOverEndedRep {
        /// The view without the dead coordinator.
        view: ViewNumber,
    }
}
body! {
    /// LDM → every surviving TC: all its orphaned transactions are reported.
    TakeOverEndRep {
        /// The view without the dead coordinators.
        view: ViewNumber,
    }
}
body! {
    /// TC → every LDM: do you know this transaction's outcome?
    OutcomeFindReq {
        /// The transaction.
        transaction: TransactionId,
        /// Given back in the answer.
        request: u64,
        /// The coordinator's view: wait until it is installed (OUTCOME-4).
        view: ViewNumber,
        /// As the client has said.
        age_ms: u64,
    }
}
body! {
    /// LDM → TC: what it knows.
    OutcomeFindConf {
        /// The transaction.
        transaction: TransactionId,
        /// As in the request.
        request: u64,
        /// The commit epoch, if committed.
        epoch: Epoch,
        /// OUTCOME_…; `OUTCOME_ABORTED` means "nothing known here".
        outcome: u32,
        /// All that ended here in the last so many ms is remembered (OUTCOME-8).
        remembered_ms: u32,
        /// If committed: so many rows it has changed here, or [`CHANGES_UNKNOWN`].
        changes: u32,
        /// Not used yet; zero.
        reserved: u32,
    }
}
/// What a replica tells another of a transaction (OUTCOME-3).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct KnownOutcome {
    /// The transaction.
    pub transaction: TransactionId,
    /// Its commit epoch; 0 if it is refused.
    pub epoch: Epoch,
    /// So many rows it has changed, or [`CHANGES_UNKNOWN`].
    pub changes: u32,
    /// 1 if it is refused: its client was told that it never was (OUTCOME-2).
    pub refused: u32,
}
body! {
    /// LDM of a former primary → TC: nothing was done, another node is primary now (HANDOVER-3);
    /// payload: the batch's operations.
    BatchReturnedRep {
        /// The transaction.
        transaction: TransactionId,
        /// The view in which the other one is primary.
        view: ViewNumber,
        /// The batch.
        batch: u32,
        /// Zero.
        reserved: u32,
    }
}
body! {
    /// LDM to itself: go on with a transaction's batch (SLICE-5).
    BatchResumeOrd {
        /// The transaction.
        transaction: TransactionId,
    }
}
body! {
    /// LDM to itself: go on with a transaction's end (SLICE-1).
    EndingResumeOrd {
        /// The transaction.
        transaction: TransactionId,
    }
}
