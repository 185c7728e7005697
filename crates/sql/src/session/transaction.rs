//! Transactions of a session: when they begin, what they survive.

use super::{Outcome, Session, Sink};
use crate::error::{self, Failure, store_error};
use crate::sessions::{Handle, Why};
use crate::store::{Store, StoreTransaction};
use lats_base::{Epoch, RefCode};
use lats_catalog::TableDef;
use lats_client::api::{LockWait, RowOp, RowOpKind, RowResult, Scan, StoreError};
use lats_values::{SqlError, Value};
use std::sync::Arc;

const REPEATABLE: &str = "REPEATABLE-READ";
/// What an operation of a transaction takes in a node until it is through, about: its lock, its version, and its place in a request.
/// Requests with few of them go on when memory is short.
const OPERATION_BYTES: usize = 1 << 10;
const FEW_OPERATIONS: usize = 256;

/// A savepoint that the client named.
pub(super) struct Savepoint {
    pub(super) name: String,
    pub(super) mark: Option<u32>,
}

impl<S: Store> Session<S> {
    /// True if statements do not commit by themselves.
    pub fn in_transaction(&self) -> bool {
        self.explicit || !self.autocommit()
    }

    /// True if a transaction is open, for the client's status.
    pub fn transaction_is_open(&self) -> bool {
        self.explicit || self.transaction.is_some()
    }

    /// True if nothing was done in the open transaction, so that its first statement can be run
    /// again.
    pub(super) fn is_alone(&self) -> bool {
        let started = self.transaction.as_ref().is_some_and(StoreTransaction::is_started);
        !started && self.savepoints.is_empty() && !self.doomed
    }

    /// The `autocommit` variable.
    pub fn autocommit(&self) -> bool {
        self.variables.changed("autocommit") != Some(&Value::Int(0))
    }

    /// Refuses writes in read-only transactions.
    pub(crate) fn check_writable(&self) -> Result<(), SqlError> {
        if self.read_only {
            let text = "Cannot execute statement in a READ ONLY transaction.";
            return Err(error::make(1792, "25006", text));
        }
        Ok(())
    }

    /// The same of writes of a table; a temporary one may be written.
    pub(crate) fn check_writes(&self, table: &TableDef) -> Result<(), SqlError> {
        match self.temporaries.has(&table.database, &table.name) {
            true => Ok(()),
            false => self.check_writable(),
        }
    }

    /// True if plain reads take shared locks, as REPEATABLE READ does here.
    pub(crate) fn reads_repeatably(&self) -> bool {
        self.in_transaction() && {
            let changed = || self.variables.changed("transaction_isolation").map(Value::to_display);
            match self.isolation.is_empty() {
                true => changed().is_some_and(|isolation| isolation == REPEATABLE),
                false => self.isolation == REPEATABLE,
            }
        }
    }

    /// The transaction of this statement, begun if need be.
    pub(crate) fn open(&mut self) -> &mut S::Transaction {
        let store = &self.shared.store;
        self.transaction.get_or_insert_with(|| store.begin())
    }

    /// A mark before a statement's writes, to come back to when it fails.
    pub(crate) fn statement_mark(&mut self) -> Option<u32> {
        if !self.in_transaction() {
            return None;
        }
        Some(self.open().savepoint())
    }

    /// A mark within a statement, to come back to.
    pub(crate) fn mark(&mut self) -> u32 {
        self.open().savepoint()
    }

    /// Takes back what was done since the mark.
    pub(crate) async fn undo_to(&mut self, mark: u32) -> Result<(), Failure> {
        Ok(self.open().rollback_to(mark).await?)
    }

    /// Runs operations in the statement's transaction. With `last`, the statement's transaction
    /// commits with them if the session commits by itself.
    pub(crate) async fn run_operations(
        &mut self,
        mut operations: Vec<RowOp>,
        last: bool,
    ) -> Result<Vec<RowResult>, Failure> {
        self.limit_waits(&mut operations);
        let handle = Arc::clone(&self.client.handle);
        handle.check()?;
        if operations.len() > FEW_OPERATIONS {
            self.shared.memory().admit_operations(operations.len() * OPERATION_BYTES)?;
        }
        let commit = last && !self.in_transaction();
        if commit && self.variables.wants_disk() {
            self.open().commit_to_disk();
        }
        self.has_read_locked |= operations.iter().any(|op| matches!(op.kind, RowOpKind::Read(_)));
        let results = self.open().execute(operations, commit, &handle).await;
        self.note_trip();
        if commit {
            // Committed, or rolled back by the error.
            self.transaction = None;
            self.has_read_locked &= results.is_err() || !self.variables.wants_disk();
        }
        Ok(results?)
    }

    /// `innodb_lock_wait_timeout`, for sessions that have set it.
    fn limit_waits(&self, operations: &mut [RowOp]) {
        let Some(seconds) = self.variables.changed_number("innodb_lock_wait_timeout") else {
            return;
        };
        let ms = u32::try_from(seconds.max(1)).unwrap_or(u32::MAX).saturating_mul(1_000);
        for operation in operations.iter_mut().filter(|op| op.wait == LockWait::Wait) {
            operation.wait = LockWait::AtMost(ms);
        }
    }

    /// Commits the statement's transaction if the session commits by itself.
    pub(crate) async fn finish_statement(&mut self) -> Result<(), Failure> {
        if self.in_transaction() {
            return Ok(());
        }
        if let Some(transaction) = self.transaction.take() {
            self.commit_store(transaction).await?;
        }
        self.drop_dropped().await;
        Ok(())
    }

    async fn commit_store(&mut self, mut transaction: S::Transaction) -> Result<(), Failure> {
        let to_disk = self.variables.wants_disk();
        if to_disk {
            transaction.commit_to_disk();
        }
        let has_run = transaction.commit().await?.epoch > Epoch::default();
        // Its epoch is not older than those of what it has read.
        self.has_read_locked &= !(to_disk && has_run);
        Ok(())
    }

    /// Gives rows a chance to leave: what the client sees is durable, where commits wait for disks (READ-7).
    pub(crate) async fn let_out(&mut self, sink: &mut dyn Sink) -> Result<(), Failure> {
        if sink.is_full() {
            self.wait_for_what_is_seen().await?;
        }
        tokio::select! {
            biased;
            sent = std::future::poll_fn(|cx| sink.poll_flush(cx)) => Ok(sent?),
            () = self.client.handle.ended(Why::Query) => {
                Err(std::io::Error::from(std::io::ErrorKind::Interrupted).into())
            }
        }
    }

    /// READ-7: what a statement is about to show is durable.
    pub(super) async fn when_durable(
        &mut self,
        outcome: Result<Outcome, Failure>,
    ) -> Result<Outcome, Failure> {
        let Ok(Outcome::Rows) = outcome else { return outcome };
        match self.wait_for_what_is_seen().await {
            Ok(()) => outcome,
            Err(failure) => Err(self.fail(failure).await),
        }
    }

    async fn wait_for_what_is_seen(&mut self) -> Result<(), Failure> {
        if !self.variables.wants_disk() {
            return Ok(());
        }
        let handle = Arc::clone(&self.client.handle);
        let has_read = std::mem::take(&mut self.has_read);
        if std::mem::take(&mut self.has_read_locked) {
            // Nobody says of which epochs that was.
            return Ok(handle.unless_ended(self.shared.store.all_durable()).await??);
        }
        if !has_read {
            return Ok(());
        }
        Ok(handle.unless_ended(self.shared.store.reads_durable()).await??)
    }

    /// Committed reads: in the open transaction if it has something of its own to see.
    pub(crate) async fn read_rows(
        &mut self,
        operations: Vec<RowOp>,
    ) -> Result<Vec<RowResult>, Failure> {
        self.has_read = true;
        let handle = Arc::clone(&self.client.handle);
        let results = match &mut self.transaction {
            Some(transaction) if transaction.is_started() => {
                handle.check()?;
                self.has_read_locked = true;
                transaction.execute(operations, false, &handle).await?
            }
            _ => handle.unless_ended(self.shared.store.read(operations)).await??,
        };
        self.note_trip();
        Ok(results)
    }

    /// Starts a scan where [`Session::read_rows`] would read.
    pub(crate) fn start_scan(&mut self, scan: Scan) -> Running<S> {
        self.has_read = true;
        let handle = Arc::clone(&self.client.handle);
        if let Some(transaction) = &mut self.transaction
            && transaction.is_started()
        {
            return Running { scan: RunningScan::Own(transaction.scan(scan)), handle };
        }
        Running { scan: RunningScan::Free(self.shared.store.scan(scan)), handle }
    }

    /// Settles what a failed statement leaves behind, and gives the client's error.
    pub(super) async fn fail(&mut self, failure: Failure) -> Failure {
        self.row_count = -1;
        let failure = match failure {
            // SESSION-4: the statement has been taken back, and its transaction lives on.
            Failure::Store(error) if error.code == RefCode::Interrupted => {
                self.lost(&error);
                Failure::Sql(self.client.handle.error())
            }
            Failure::Store(error) => Failure::Sql(self.lost(&error)),
            other => other,
        };
        if !self.in_transaction() {
            // Dropping rolls back what a statement that commits by itself had begun.
            self.transaction = None;
        }
        if let Failure::Sql(error) = &failure {
            self.warnings = vec![error.clone()];
            self.error_count = 1;
        }
        failure
    }

    /// Takes back a failed statement's writes within a transaction that goes on.
    pub(crate) async fn undo_statement(&mut self, mark: Option<u32>) {
        let (Some(mark), Some(transaction)) = (mark, &mut self.transaction) else { return };
        if transaction.is_open() && transaction.rollback_to(mark).await.is_err() {
            self.transaction = None;
            self.doomed = true;
        }
    }

    /// What an error of the store means for the transaction. Most refuse only the statement, as in
    /// MySQL. Of the others, 1213 says that the transaction is gone; after another one the client
    /// would go on writing in what it takes for the same transaction, so its next statement gets
    /// 1213, unless that is ROLLBACK.
    fn lost(&mut self, error: &StoreError) -> SqlError {
        let sql = match self.shared.store.cut_off() {
            Some(node) if error.code == RefCode::NotServing => crate::error::cut_off(node),
            _ => store_error(error),
        };
        let lives = self.transaction.as_ref().is_none_or(StoreTransaction::is_open);
        // LOCK-6: 1205 says that the transaction lives on. This one was lost, or could not take its statement back.
        if sql.errno == 1205 && self.in_transaction() && (!lives || self.doomed) {
            self.end();
            return error::transaction_lost();
        }
        if lives || !self.in_transaction() {
            return sql;
        }
        self.transaction = None;
        self.savepoints.clear();
        if sql.errno == 1213 {
            self.end();
        } else {
            self.doomed = true;
        }
        sql
    }

    /// True if a statement that was refused in a transaction can be run again there: only its plan
    /// was old, and it has been taken back.
    pub(super) fn may_repeat(&self, failure: &Failure) -> bool {
        let lives = self.transaction.as_ref().is_some_and(StoreTransaction::is_open);
        failure.is_outdated() && self.in_transaction() && lives && !self.doomed
    }

    pub(super) fn end(&mut self) {
        self.explicit = false;
        self.doomed = false;
        self.read_only = false;
        self.isolation.clear();
        self.savepoints.clear();
        self.transaction = None;
    }

    /// BEGIN.
    pub(super) async fn begin(&mut self, read_only: Option<bool>) -> Result<(), Failure> {
        self.commit().await?;
        self.explicit = true;
        let next = self.next_read_only.take();
        let default = self.variables.get("transaction_read_only") == Value::Int(1);
        self.read_only = read_only.or(next).unwrap_or(default);
        self.isolation = self.isolation_next.take().unwrap_or_default();
        Ok(())
    }

    /// COMMIT.
    ///
    /// # Errors
    /// 1213 if the transaction was rolled back before.
    pub async fn commit(&mut self) -> Result<(), Failure> {
        let doomed = self.doomed;
        let transaction = self.transaction.take();
        self.end();
        if doomed {
            return Err(error::transaction_lost().into());
        }
        if let Some(transaction) = transaction {
            self.commit_store(transaction).await?;
        }
        Ok(())
    }

    /// ROLLBACK.
    pub async fn rollback(&mut self) {
        let transaction = self.transaction.take();
        self.end();
        if let Some(transaction) = transaction {
            transaction.rollback().await;
        }
        self.drop_dropped().await;
    }

    pub(super) fn set_savepoint(&mut self, name: &str) {
        if !self.in_transaction() {
            return;
        }
        let mark = Some(self.open().savepoint());
        self.savepoints.retain(|s| !s.name.eq_ignore_ascii_case(name));
        self.savepoints.push(Savepoint { name: name.to_owned(), mark });
    }

    pub(super) async fn rollback_to(&mut self, name: &str) -> Result<(), Failure> {
        let at = self.find_savepoint(name)?;
        self.savepoints.truncate(at + 1);
        let mark = self.savepoints.last().and_then(|s| s.mark);
        if let (Some(mark), Some(transaction)) = (mark, &mut self.transaction) {
            transaction.rollback_to(mark).await?;
        }
        Ok(())
    }

    pub(super) fn release_savepoint(&mut self, name: &str) -> Result<(), SqlError> {
        let at = self.find_savepoint(name)?;
        self.savepoints.truncate(at);
        Ok(())
    }

    fn find_savepoint(&self, name: &str) -> Result<usize, SqlError> {
        let found = self.savepoints.iter().position(|s| s.name.eq_ignore_ascii_case(name));
        found.ok_or_else(|| error::make(1305, "42000", &format!("SAVEPOINT {name} does not exist")))
    }
}

/// A scan in a transaction or outside.
enum RunningScan<S: Store> {
    /// Within the session's transaction.
    Own(<S::Transaction as StoreTransaction>::Scan),
    /// Outside any.
    Free(S::Scan),
}

/// A scan of a statement.
pub(crate) struct Running<S: Store> {
    scan: RunningScan<S>,
    handle: Arc<Handle>,
}

impl<S: Store> Running<S> {
    /// The next rows; none at the end.
    pub(crate) async fn next(
        &mut self,
    ) -> Result<Option<lats_client::batch::ScanBatch>, StoreError> {
        use crate::store::StoreScan;
        match &mut self.scan {
            RunningScan::Own(scan) => self.handle.unless_ended(scan.next()).await?,
            RunningScan::Free(scan) => self.handle.unless_ended(scan.next()).await?,
        }
    }
}
