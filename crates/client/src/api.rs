//! What a program asks of the cluster: row operations, scans, results, errors.

use lats_base::{Epoch, ErrorClass, IndexId, RefCode, TableId};
use lats_signals::control::{
    SESSIONS_KILL, SESSIONS_KILL_QUERY, SESSIONS_LIST, SESSIONS_STATEMENT,
};
use lats_values::SqlError;
use std::sync::Arc;

/// How a read protects what it read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockMode {
    /// Takes no lock; sees the newest committed version (and the transaction's own writes).
    Committed,
    /// Others may read and share, none may write, until the transaction ends.
    Shared,
    /// None may lock or write until the transaction ends.
    Exclusive,
}

/// What an operation does about a row that another transaction has locked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LockWait {
    /// Waits for its turn, until the cluster's lock timeout.
    #[default]
    Wait,
    /// Waits for so many ms at most; longer than some hours is cut to that.
    AtMost(u32),
    /// The whole request is refused with [`RefCode::LockNotFree`].
    Refuse,
    /// Leaves the row out: [`RowOutcome::Skipped`].
    Skip,
}

/// What a node is asked to do with the sessions of its MySQL clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionCall {
    /// Lists them.
    List,
    /// Ends what a session runs, if that is the statement with this number.
    KillQuery(u64),
    /// Ends a session, and what it runs.
    Kill,
    /// Tells the number of the statement that a session runs, or has run last.
    Statement,
}

impl SessionCall {
    /// Its number on the wire.
    pub(crate) fn number(self) -> u32 {
        match self {
            Self::List => SESSIONS_LIST,
            Self::KillQuery(_) => SESSIONS_KILL_QUERY,
            Self::Kill => SESSIONS_KILL,
            Self::Statement => SESSIONS_STATEMENT,
        }
    }

    /// The statement that it is about; 0 if it is about none.
    pub(crate) fn statement(self) -> u64 {
        if let Self::KillQuery(statement) = self { statement } else { 0 }
    }

    /// The call with this number; none if this version does not know it.
    pub fn from_number(number: u32, statement: u64) -> Option<Self> {
        let all = [Self::List, Self::KillQuery(statement), Self::Kill, Self::Statement];
        all.into_iter().find(|call| call.number() == number)
    }
}

/// What an operation does with the row of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowOpKind {
    /// Reads it; the program's filter and projection apply.
    Read(LockMode),
    /// Stores `row`; [`RowOutcome::Exists`] if the key is taken.
    Insert,
    /// Runs the program's filter and assignments on it, and answers with the columns of the new
    /// row that the program asks for.
    Update,
    /// Stores `row`, whether or not the key exists.
    Write,
    /// Deletes it if the program's filter holds (or there is no program), and answers with the
    /// columns of it that the program asks for.
    Delete,
    /// Enters it into the unique indexes that are being built.
    Reindex,
}

/// One operation on one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowOp {
    /// The table.
    pub table: TableId,
    /// The version of its definition that the operation was made for.
    pub schema_version: u32,
    /// What to do.
    pub kind: RowOpKind,
    /// The encoded primary key (see `lats_values::encode_key_value`).
    pub key: Vec<u8>,
    /// The row image of an insert or write, else empty.
    pub row: Vec<u8>,
    /// An encoded `lats_values::Program` (see [`crate::program::RowProgram`]), or empty. Many operations have the same one.
    pub program: Arc<[u8]>,
    /// What to do if the row's lock cannot be had at once.
    pub wait: LockWait,
}

/// What became of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowOutcome {
    /// It was done.
    Done,
    /// An update that changed nothing: the row has these values already.
    Unchanged,
    /// There is no such row.
    Missing,
    /// The row exists, but the program's filter is false for it.
    NotMatched,
    /// An insert found the key taken. The row is locked; nothing was changed.
    Exists,
    /// Another transaction has locked the row; see [`LockWait::Skip`].
    Skipped,
    /// Another row has the same key in a unique index ([`RowResult::holder`]): the whole request was
    /// taken back, or the whole transaction if the request was to commit it.
    Duplicate,
    /// It was done, and taken back because of another operation's [`RowOutcome::Duplicate`].
    Undone,
}

/// An operation's result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowResult {
    /// What became of it.
    pub outcome: RowOutcome,
    /// The (projected) row image: of reads that are `Done`, and of changes whose program asks for
    /// it.
    pub row: Option<Vec<u8>>,
    /// Some lock was waited for before this was done: what was looked at before that, without a lock, may have
    /// changed (LOCK-7).
    pub waited: bool,
}

impl RowResult {
    /// For [`RowOutcome::Duplicate`]: the index, and the primary key of the row that has the key.
    pub fn holder(&self) -> Option<(IndexId, Vec<u8>)> {
        let row = self.row.as_deref().filter(|_| self.outcome == RowOutcome::Duplicate)?;
        let (index, entry) = row.split_first_chunk::<2>()?;
        let index = IndexId::new(u16::from_le_bytes(*index));
        Some((index, lats_catalog::unique::primary_key_of(entry)))
    }
}

/// A range of an index: encoded key bytes.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct KeyRange {
    /// First key of the range, or none for the start. Included.
    pub lower: Vec<u8>,
    /// End of the range, or none for the end of the index. Excluded. (Use
    /// `lats_values::next_prefix` to include a key and everything that starts with it.)
    pub upper: Option<Vec<u8>>,
}

/// A scan over a table by one of its ordered indexes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scan {
    /// The table.
    pub table: TableId,
    /// The version of its definition that the scan was made for.
    pub schema_version: u32,
    /// The index; [`PRIMARY_INDEX`] for the primary key's.
    pub index: IndexId,
    /// Ranges to read, ascending and not overlapping.
    pub ranges: Vec<KeyRange>,
    /// Rows in index order over all fragments (else in any order, which is cheaper).
    pub ordered: bool,
    /// From the end to the start (with `ordered`).
    pub reverse: bool,
    /// Rows come with their primary keys.
    pub primary_keys: bool,
    /// Filter and projection: an encoded `lats_values::Program`, or empty.
    pub program: Arc<[u8]>,
    /// No more than this many rows are wanted.
    pub limit: Option<u64>,
    /// Few rows may be enough: they come in small batches at first, and none is sent before it is wanted.
    pub few: bool,
    /// Of each range the first row that passes the filter is enough, and more may come (READ-8).
    pub first_of_range: bool,
    /// Only the primary keys of the rows, and of those too that others have inserted or deleted but
    /// not yet committed: for filling a new index.
    pub pending: bool,
    /// The rows will be locked: those come, too, of which others are changing a version that passes the filter, and
    /// what comes of them may be of such a version (LOCK-7).
    pub to_lock: bool,
    /// Which rows.
    pub as_of: AsOf,
}

/// Which state of the rows a scan reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AsOf {
    /// Each row's newest committed version when the scan comes to it.
    #[default]
    Newest,
    /// A consistent snapshot: all that was committed in epochs up to the newest complete one.
    Complete,
    /// A consistent snapshot as of this epoch. Refused if versions as old as that are not kept.
    Epoch(Epoch),
}

pub use lats_catalog::PRIMARY_INDEX;

/// A commit's receipt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Committed {
    /// The epoch that the transaction belongs to.
    pub epoch: Epoch,
    /// How many times the cluster had been restarted then: a later restart may have made the transaction void, if it was not
    /// durable.
    pub restarts: u32,
    /// If the results were lost with the coordinator: so many rows the transaction has changed, if that could be found out
    /// (OUTCOME-9).
    pub changes: Option<u32>,
}

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.text())]
pub struct StoreError {
    /// The kind of refusal.
    pub code: RefCode,
    /// For [`RefCode::ProgramFailed`]: the error of the computation.
    pub sql: Option<SqlError>,
}

impl StoreError {
    /// What the caller can do about it.
    pub fn class(&self) -> ErrorClass {
        self.code.class()
    }

    fn text(&self) -> String {
        match &self.sql {
            Some(sql) => sql.message.clone(),
            None => self.code.to_string(),
        }
    }
}

impl From<RefCode> for StoreError {
    fn from(code: RefCode) -> Self {
        Self { code, sql: None }
    }
}
