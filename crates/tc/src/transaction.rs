//! What a coordinator knows of a transaction.

use crate::{carry::Carry, index::IndexWork};
use alloc::{collections::BTreeMap, vec::Vec};
use lats_base::{
    Epoch, NodeSet, RefCode, SortedMap, SortedSet, TableId, TransactionId, ViewNumber, limits,
};
use lats_signals::{
    BlockRef,
    commit::{FLAG_COMMIT, FLAG_ROLLBACK_TO, TcKeyReq},
    deadlock::Blocker,
};

/// Idle → Preparing → Deciding → Committing; or Settling → Aborting → Aborted. A refused request:
/// Preparing → SettlingStatement → RollingBack → Idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Waits for its client.
    Idle,
    /// Operations are under way.
    Preparing,
    /// A request was refused: what it did will be taken back as soon as all that is under way has
    /// been answered (ABORT-1, STATEMENT-1).
    SettlingStatement,
    /// A statement is being taken back.
    RollingBack,
    /// The backups are being told that it commits: there is no way back from here (COMMIT-3).
    Deciding,
    /// The primaries are being told to make it visible.
    Committing,
    /// It will be rolled back as soon as all that is under way has been answered (ABORT-1).
    Settling,
    /// The participants are being told to take it back.
    Aborting,
    /// It is rolled back, and its client does not know yet.
    Aborted,
}

/// Data managers of a transaction: with few rows on few replicas, a few.
pub(crate) type Participants = SortedMap<BlockRef, Participant, 4>;
pub(crate) type Receivers = SortedSet<BlockRef, 4>;

#[derive(Debug)]
pub(crate) struct Transaction {
    pub(crate) state: State,
    /// Its client; none once it is gone, or when the transaction was taken over.
    pub(crate) client: Option<BlockRef>,
    pub(crate) answered_below: u64,
    pub(crate) epoch: Epoch,
    /// The epoch that is not done before this transaction is at its end (EPOCH-4).
    pub(crate) counted_in: Option<Epoch>,
    /// Its last row images carry the decision.
    pub(crate) carry: Carry,
    pub(crate) operations: usize,
    /// The tables of its operations.
    pub(crate) tables: SortedSet<TableId, 4>,
    pub(crate) participants: Participants,
    /// Batches that are not answered by everyone yet.
    pub(crate) batches: SortedMap<u32, Batch, 1>,
    pub(crate) next_batch: u32,
    /// No batch before this one waits any more: their requests are over.
    pub(crate) waits_from: u32,
    /// Batches that a former primary has given back, and that are yet to be sent again (HANDOVER-3).
    pub(crate) returned: Vec<Returned>,
    /// Participants whose answer the state waits for.
    pub(crate) waiting: Receivers,
    /// The view of the newest order to commit or to take back: answers to older ones do not count
    /// (OUTCOME-6).
    pub(crate) order_view: ViewNumber,
    /// While it is rolled back: from which statement on, and which part is under way.
    pub(crate) aborts_from: u32,
    pub(crate) abort_part: u32,
    pub(crate) request: Option<Request>,
    /// The newest statement.
    pub(crate) statement: u32,
    /// Searches for deadlocks that it has begun, and the newest that have come by, by who began.
    pub(crate) searches: u64,
    pub(crate) nudges: u32,
    pub(crate) seen_searches: BTreeMap<TransactionId, u64>,
    /// Why it, or its last request, is rolled back.
    pub(crate) refusal: Option<Refusal>,
    /// It has changed unique indexes, whose entries are shown when it is complete (UNIQUE-5).
    pub(crate) changes_index: bool,
    /// What became of it at nodes that are silent.
    pub(crate) debt: Debt,
}

/// Whether silent nodes have still to hear that the transaction is rolled back (SILENT-2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Debt {
    /// Everybody is waited for, or has heard.
    #[default]
    None,
    /// Some were passed over.
    Owed,
    /// The others are through, and its client knows: only those who were passed over are left.
    Last,
}

/// A local data manager that has to hear the end of the transaction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Participant {
    /// It executed operations as primary.
    pub(crate) primary: bool,
    /// It holds row images as backup.
    pub(crate) backup: bool,
    /// It holds locks for rows that no backup has images of.
    pub(crate) only_locks: bool,
}

/// A batch that is to be sent again.
#[derive(Debug)]
pub(crate) struct Returned {
    pub(crate) operations: Vec<u8>,
    pub(crate) reads_with_lock: bool,
    pub(crate) of_index: bool,
}

/// Operations sent to one primary.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) primary: BlockRef,
    pub(crate) operations: u32,
    pub(crate) reads_with_lock: bool,
    /// Its operations are changes of unique indexes.
    pub(crate) of_index: bool,
    /// The primary has answered.
    pub(crate) executed: bool,
    /// Backups whose answer is missing.
    pub(crate) backups: NodeSet,
    /// Backups that have answered before the primary.
    pub(crate) early: NodeSet,
    /// It waits for a row lock, as the primary has last reported.
    pub(crate) wait: Option<Wait>,
}

/// Whom a batch waits for, and which row it waits for.
#[derive(Debug)]
pub(crate) struct Wait {
    pub(crate) blockers: Vec<Blocker>,
    pub(crate) row: Vec<u8>,
}

/// The client's request that is being worked on.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) id: u64,
    pub(crate) flags: u32,
    pub(crate) statement: u32,
    /// It takes back what was done from this statement on, and does nothing else.
    pub(crate) rollback_to: Option<u32>,
    pub(crate) outcomes: Vec<u8>,
    pub(crate) outcome_count: u32,
    pub(crate) index_work: IndexWork,
}

#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    pub(crate) code: u32,
    pub(crate) errno: u32,
    pub(crate) text: Vec<u8>,
}

impl Refusal {
    /// True if the whole transaction goes with it.
    pub(crate) fn ends_transaction(&self) -> bool {
        RefCode::from_number(self.code as u16).ends_transaction()
    }
}

impl From<RefCode> for Refusal {
    fn from(code: RefCode) -> Self {
        Self { code: u32::from(code.number()), errno: 0, text: Vec::new() }
    }
}

impl Transaction {
    pub(crate) fn new(client: Option<BlockRef>) -> Self {
        Self {
            state: State::Idle,
            client,
            answered_below: 0,
            epoch: Epoch::default(),
            counted_in: None,
            carry: Carry::default(),
            operations: 0,
            tables: SortedSet::new(),
            participants: SortedMap::new(),
            batches: SortedMap::new(),
            next_batch: 1,
            waits_from: 1,
            returned: Vec::new(),
            waiting: SortedSet::new(),
            order_view: ViewNumber::default(),
            aborts_from: 0,
            abort_part: 0,
            request: None,
            statement: 0,
            searches: 0,
            nudges: 0,
            seen_searches: BTreeMap::new(),
            refusal: None,
            changes_index: false,
            debt: Debt::None,
        }
    }
}

impl Transaction {
    /// Enters a batch that is about to be sent; its number.
    pub(crate) fn add_batch(&mut self, batch: Batch) -> u32 {
        let number = self.next_batch;
        self.next_batch += 1;
        self.batches.insert(number, batch);
        number
    }

    /// True if its client may ask for the next thing.
    pub(crate) fn is_between_requests(&self) -> bool {
        self.request.is_none()
            && matches!(
                self.state,
                State::Idle | State::Settling | State::Aborting | State::Aborted
            )
    }
}

impl Request {
    /// Adds a part's results; false if they do not fit into an answer.
    pub(crate) fn take_outcomes(&mut self, outcomes: &[u8], count: u32) -> bool {
        if self.outcomes.len() + outcomes.len() > limits::BATCH_BYTES_MAX {
            return false;
        }
        self.outcomes.extend_from_slice(outcomes);
        self.outcome_count += count;
        true
    }

    /// One that nothing was done for; `outcomes` is an empty list.
    pub(crate) fn new(req: &TcKeyReq, outcomes: Vec<u8>) -> Self {
        Self {
            id: req.request,
            flags: req.flags,
            statement: req.statement,
            rollback_to: (req.flags & FLAG_ROLLBACK_TO != 0).then_some(req.rollback_to),
            outcomes,
            outcome_count: 0,
            index_work: IndexWork::default(),
        }
    }

    /// True if it commits when it is through.
    pub(crate) fn commits(&self) -> bool {
        self.flags & FLAG_COMMIT != 0
    }
}

impl Batch {
    /// One that nobody has answered yet.
    pub(crate) fn new(primary: BlockRef, operations: u32) -> Self {
        Self {
            primary,
            operations,
            reads_with_lock: false,
            of_index: false,
            executed: false,
            backups: NodeSet::EMPTY,
            early: NodeSet::EMPTY,
            wait: None,
        }
    }

    /// True if it brings changes to a syncing replica, and does nothing (REJOIN-5).
    pub(crate) fn adopts(&self) -> bool {
        self.operations == 0
    }

    pub(crate) fn is_settled(&self) -> bool {
        self.executed && self.backups.is_empty()
    }
}
