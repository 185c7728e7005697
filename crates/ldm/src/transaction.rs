//! What a participant knows of a transaction.

use crate::ending::Ending;
use alloc::{collections::VecDeque, vec::Vec};
use lats_base::{Epoch, FragmentId, Incarnation, Instant, RowId, TableId};
use lats_signals::{BlockRef, commit::Carry};

/// A transaction at this participant, as primary or backup or both.
#[derive(Debug)]
pub(crate) struct Transaction {
    pub(crate) coordinator: BlockRef,
    pub(crate) coordinator_life: Incarnation,
    /// The coordinator said: it commits.
    pub(crate) decided: Option<Epoch>,
    /// Its images here carry their part of the decision, which others have a part in, too (CARRY-4).
    pub(crate) carry: Option<Carry>,
    /// It has been proved to be decided, though not yet in which epoch (CARRY-7).
    pub(crate) proven: bool,
    /// The rows of which this node is primary are visible; backup rows wait for completion.
    pub(crate) committed: bool,
    /// It was executed here, as primary.
    pub(crate) executed: bool,
    /// In the order in which they were done.
    pub(crate) ops: VecDeque<Op>,
    /// How many changes of rows were among them when it began to be committed (OUTCOME-9).
    pub(crate) changes: Option<u32>,
    /// Its end, if that is under way.
    pub(crate) ending: Option<Ending>,
    /// A batch that waits for a row lock.
    pub(crate) waiting: Option<WaitingBatch>,
    /// A long batch that has given way to other work.
    pub(crate) paused: Option<PausedBatch>,
    /// Its client has given another transaction the same id, which was refused.
    pub(crate) id_given_twice: bool,
}

/// A row that a transaction has locked or changed here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Op {
    pub(crate) table: TableId,
    pub(crate) fragment: FragmentId,
    /// It is an entry of a unique index.
    pub(crate) of_index: bool,
    /// Its row is dealt with at the transaction's end: its change is visible, and it is unlocked.
    pub(crate) settled: bool,
    pub(crate) row: RowId,
    /// The change's number, or 0 if the row is only locked.
    pub(crate) version: u64,
    pub(crate) statement: u32,
}

/// The rest of a batch that met a locked row.
#[derive(Debug)]
pub(crate) struct WaitingBatch {
    pub(crate) run: crate::prepare::Run,
    /// The operations from the one that waits on.
    pub(crate) rest: Vec<u8>,
    pub(crate) row: (TableId, FragmentId, RowId),
    pub(crate) gives_up: Instant,
    /// When the coordinator will next be told whom it waits for, and how often it was.
    pub(crate) next_report: Instant,
    pub(crate) reports: usize,
}

/// A batch in the middle of its operations.
#[derive(Debug)]
pub(crate) struct PausedBatch {
    pub(crate) run: crate::prepare::Run,
    /// Its operations, and how many bytes of them are done.
    pub(crate) operations: Vec<u8>,
    pub(crate) done_bytes: usize,
}

impl Transaction {
    /// One that has done nothing; `ops` is an empty list.
    pub(crate) fn new(
        coordinator: BlockRef,
        coordinator_life: Incarnation,
        ops: VecDeque<Op>,
    ) -> Self {
        Self {
            coordinator,
            coordinator_life,
            decided: None,
            carry: None,
            proven: false,
            committed: false,
            executed: false,
            ops,
            changes: None,
            ending: None,
            waiting: None,
            paused: None,
            id_given_twice: false,
        }
    }
}
