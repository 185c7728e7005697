//! A store in memory, for tests: one table of rows per table, undo lists for transactions, and
//! refusals on demand.

use crate::connection::statements::Statements;
use crate::plan::Columns;
use crate::session::{Client, Outcome, PreparedInfo, Session, Shared, Sink};
use crate::sessions::Handle;
use crate::store::{Store, StoreScan, StoreTransaction};
use lats_base::{IndexId, NodeId, RefCode, TableId};
use lats_catalog::statistics::{Gathered, Sample, TableStatistics};
use lats_catalog::{Builder, Catalog, Change, ChangeError, IndexDef, TableDef, unique};
use lats_client::api::{
    Committed, LockMode, LockWait, PRIMARY_INDEX, RowOp, RowOpKind, RowOutcome, RowResult, Scan,
    SessionCall, StoreError,
};
use lats_client::batch::{ScanBatch, ScanRow};
use lats_values::{Program, SqlError, Value};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;
type Undo = (TableId, Vec<u8>, Option<Vec<u8>>);
/// A key, and its new row; none: it is gone.
pub type Changed = (Vec<u8>, Option<Vec<u8>>);

#[derive(Default)]
pub struct Inner {
    pub catalog: Arc<Catalog>,
    tables: BTreeMap<TableId, Rows>,
    sequences: BTreeMap<TableId, u64>,
    statistics: BTreeMap<TableId, Arc<TableStatistics>>,
    /// Keys of rows that somebody else has locked.
    pub locked: Vec<Vec<u8>>,
    /// What others commit while one waits for the lock of a row: rows of its table.
    pub waits: BTreeMap<Vec<u8>, Vec<Changed>>,
    has_waited: bool,
    /// Scans wait once for each batch of rows, and who has changed the catalog is told later.
    pub is_slow: bool,
    /// Errors that the next requests get.
    pub refuse: VecDeque<RefCode>,
    /// Requests with operations, commits and scans, as lines.
    pub log: Vec<String>,
    /// The cluster's `durability`.
    to_disk: bool,
}

#[derive(Clone)]
pub struct Memory(Arc<Mutex<Inner>>);

impl Memory {
    pub fn new() -> Self {
        let inner = Inner { catalog: Arc::new(Catalog::initial()), ..Inner::default() };
        Self(Arc::new(Mutex::new(inner)))
    }

    pub fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap()
    }
}

impl Inner {
    fn refused(&mut self) -> Result<(), StoreError> {
        match self.refuse.pop_front() {
            Some(code) => Err(code.into()),
            None => Ok(()),
        }
    }

    fn put(&mut self, table: TableId, key: &[u8], row: Option<Vec<u8>>, undo: &mut Vec<Undo>) {
        let rows = self.tables.entry(table).or_default();
        let before = match row {
            Some(row) => rows.insert(key.to_vec(), row),
            None => rows.remove(key),
        };
        undo.push((table, key.to_vec(), before));
    }

    fn change(&mut self, change: &Change) -> Result<(), ChangeError> {
        if let Change::SetDurability { to_disk } = change {
            self.to_disk = *to_disk;
        }
        let mut catalog = (*self.catalog).clone();
        catalog.apply(change, 2)?;
        if let Change::CreateIndex { database, table, .. }
        | Change::DropIndex { database, table, .. } = change
        {
            // The table may have come back under a new id.
            let old = self.catalog.table(database, table).map(|t| t.id);
            let new = catalog.table(database, table).map(|t| t.id);
            if let (Some(old), Some(new)) = (old, new)
                && let Some(rows) = self.tables.remove(&old)
            {
                self.tables.insert(new, rows);
            }
        }
        self.catalog = Arc::new(catalog);
        Ok(())
    }

    /// Another row with the same key in a unique index, as the cluster reports it.
    fn conflict(&mut self, def: &TableDef, key: &[u8], row: &[u8]) -> Option<RowResult> {
        let layout = def.layout();
        let key_in = |index: &IndexDef, row: &[u8]| {
            let mut key = Vec::new();
            layout.key_of(row, &index.columns, &mut key);
            key
        };
        let rows = self.tables.entry(def.id).or_default();
        for (index, _) in def.unique_indexes() {
            if index.columns.iter().any(|c| layout.is_null(row, *c)) {
                continue;
            }
            let own = key_in(index, row);
            let other = rows.iter().find(|(k, r)| k.as_slice() != key && key_in(index, r) == own);
            if let Some((other, _)) = other {
                let mut holder = index.id.get().to_le_bytes().to_vec();
                holder.extend(unique::row(&own, other).unwrap());
                return Some(RowResult {
                    outcome: RowOutcome::Duplicate,
                    row: Some(holder),
                    waited: false,
                });
            }
        }
        None
    }

    /// Reads an entry of a unique index.
    fn entry(&mut self, of: (TableId, IndexId), key: &[u8]) -> RowResult {
        let catalog = Arc::clone(&self.catalog);
        let def = &catalog.tables[&of.0];
        let index = def.index(of.1).unwrap();
        let layout = def.layout();
        let mut holders = Vec::new();
        for (primary_key, row) in self.tables.entry(of.0).or_default().iter() {
            let mut own = Vec::new();
            layout.key_of(row, &index.columns, &mut own);
            if unique::key(&own) == key {
                holders.extend(lats_client::unique::holder(1, primary_key));
            }
        }
        let outcome = if holders.is_empty() { RowOutcome::Missing } else { RowOutcome::Done };
        RowResult { outcome, row: Some(holders), waited: false }
    }

    fn run(&mut self, op: &RowOp, undo: &mut Vec<Undo>) -> Result<RowResult, StoreError> {
        let catalog = Arc::clone(&self.catalog);
        let def = catalog.tables.get(&op.table).ok_or(RefCode::TableUnknown)?;
        if let Some(of) = def.index_of {
            return Ok(self.entry(of, &op.key));
        }
        if def.schema_version != op.schema_version {
            return Err(RefCode::SchemaVersionOld.into());
        }
        let layout = def.layout();
        let program = decode(&op.program, &layout)?;
        let old = self.tables.entry(op.table).or_default().get(&op.key).cloned();
        let failed = |sql: SqlError| StoreError { code: RefCode::ProgramFailed, sql: Some(sql) };
        let just = |outcome| Ok(RowResult { outcome, row: None, waited: false });
        check_row(op, def, &layout)?;
        let locks = op.kind != RowOpKind::Read(LockMode::Committed);
        if locks && old.is_some() && self.locked.contains(&op.key) {
            return match op.wait {
                LockWait::Wait | LockWait::AtMost(_) => Err(RefCode::LockTimeout.into()),
                LockWait::Refuse => Err(RefCode::LockNotFree.into()),
                LockWait::Skip => just(RowOutcome::Skipped),
            };
        }
        if locks && self.waits.contains_key(&op.key) {
            return self.wait(op, undo);
        }
        match (op.kind, old) {
            (RowOpKind::Insert, Some(_)) => just(RowOutcome::Exists),
            (RowOpKind::Insert | RowOpKind::Write, _) => {
                if let Some(conflict) = self.conflict(def, &op.key, &op.row) {
                    return Ok(conflict);
                }
                self.put(op.table, &op.key, Some(op.row.clone()), undo);
                just(RowOutcome::Done)
            }
            (_, None) => just(RowOutcome::Missing),
            (RowOpKind::Reindex, Some(row)) => {
                let conflict = self.conflict(def, &op.key, &row);
                conflict.map_or_else(|| just(RowOutcome::Done), Ok)
            }
            (RowOpKind::Read(_), Some(row)) => {
                if !program.matches(&layout, &row).map_err(failed)? {
                    return just(RowOutcome::NotMatched);
                }
                let row = Some(projected(&program, &layout, &row));
                Ok(RowResult { outcome: RowOutcome::Done, row, waited: false })
            }
            (RowOpKind::Update, Some(row)) => {
                let Some(new) = program.updated(&layout, &row).map_err(failed)? else {
                    return just(RowOutcome::NotMatched);
                };
                if new == row {
                    return just(RowOutcome::Unchanged);
                }
                if let Some(conflict) = self.conflict(def, &op.key, &new) {
                    return Ok(conflict);
                }
                self.put(op.table, &op.key, Some(new), undo);
                just(RowOutcome::Done)
            }
            (RowOpKind::Delete, Some(row)) => {
                if !program.matches(&layout, &row).map_err(failed)? {
                    return just(RowOutcome::NotMatched);
                }
                self.put(op.table, &op.key, None, undo);
                let row = program.projection.is_some().then(|| projected(&program, &layout, &row));
                Ok(RowResult { outcome: RowOutcome::Done, row, waited: false })
            }
        }
    }

    /// Somebody else has locked the row, and commits meanwhile.
    fn wait(&mut self, op: &RowOp, undo: &mut Vec<Undo>) -> Result<RowResult, StoreError> {
        if op.wait == LockWait::Refuse {
            return Err(RefCode::LockNotFree.into());
        }
        for (key, row) in self.waits.remove(&op.key).unwrap_or_default() {
            self.put(op.table, &key, row, &mut Vec::new());
        }
        self.has_waited = true;
        self.run(op, undo)
    }

    fn scan(&mut self, scan: &Scan) -> Result<VecDeque<Found>, StoreError> {
        self.refused()?;
        self.log.push(format!("scan {} x{}", scan.index, scan.ranges.len()));
        let catalog = Arc::clone(&self.catalog);
        let def = catalog.tables.get(&scan.table).ok_or(RefCode::TableUnknown)?;
        let layout = def.layout();
        let program = decode(&scan.program, &layout)?;
        let mut found = Vec::new();
        for (primary_key, row) in self.tables.entry(scan.table).or_default().iter() {
            let mut index_key = Vec::new();
            if scan.index == PRIMARY_INDEX {
                index_key.clone_from(primary_key);
            } else {
                let index = def.index(scan.index).ok_or(RefCode::IndexUnknown)?;
                layout.key_of(row, &index.columns, &mut index_key);
                index_key.extend_from_slice(primary_key);
            }
            let within = scan.ranges.iter().position(|range| {
                index_key >= range.lower && range.upper.as_ref().is_none_or(|u| index_key < *u)
            });
            let Some(range) = within.and_then(|at| u32::try_from(at).ok()) else { continue };
            let failed =
                |sql: SqlError| StoreError { code: RefCode::ProgramFailed, sql: Some(sql) };
            if program.matches(&layout, row).map_err(failed)? {
                let mut out = Vec::new();
                program.project(&layout, row, &mut out);
                found.push(Found { range, index_key, primary_key: primary_key.clone(), row: out });
            }
        }
        found.sort_by(|a, b| a.index_key.cmp(&b.index_key));
        if scan.reverse {
            found.reverse();
        }
        found.truncate(scan.limit.map_or(usize::MAX, |l| l as usize));
        if !scan.primary_keys {
            found.iter_mut().for_each(|row| row.primary_key.clear());
        }
        Ok(found.into())
    }
}

/// The row of a change must fit the table, and have the key that it came with.
fn check_row(
    op: &RowOp,
    def: &TableDef,
    layout: &lats_values::RowLayout,
) -> Result<(), StoreError> {
    if !op.row.is_empty() {
        layout.validate(&op.row).map_err(StoreError::from)?;
        let mut key = Vec::new();
        layout.key_of(&op.row, &def.primary_key, &mut key);
        assert_eq!(key, op.key, "the key of the row");
    }
    Ok(())
}

fn projected(program: &Program, layout: &lats_values::RowLayout, row: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    program.project(layout, row, &mut out);
    out
}

fn decode(bytes: &[u8], layout: &lats_values::RowLayout) -> Result<Program, StoreError> {
    if bytes.is_empty() {
        return Ok(Program::default());
    }
    Program::decode(bytes, layout.columns()).map_err(StoreError::from)
}

impl Inner {
    /// Statistics of all rows.
    fn look_at(&mut self, table: TableId) -> Option<TableStatistics> {
        let catalog = Arc::clone(&self.catalog);
        let def = catalog.tables.get(&table)?;
        let layout = def.layout();
        let rows = self.tables.entry(table).or_default();
        let mut found = TableStatistics { rows: rows.len() as f64, ..TableStatistics::default() };
        found.images = rows.values().cloned().collect();
        for index in std::iter::once(PRIMARY_INDEX).chain(def.indexes.iter().map(|i| i.id)) {
            let columns = def.key_columns(index)?;
            let sample = |(primary_key, row): (&Vec<u8>, &Vec<u8>)| {
                let mut key = Vec::new();
                layout.key_of(row, columns, &mut key);
                key.extend_from_slice(primary_key);
                (key, Sample { entries: rows.len() as u64, ..Sample::default() })
            };
            let mut gathered = Gathered::new();
            gathered.add(rows.iter().map(sample).collect());
            (1..def.fragment_count).for_each(|_| gathered.add(Vec::new()));
            found.indexes.extend(gathered.index(def, index));
        }
        Some(found)
    }
}

struct Found {
    range: u32,
    index_key: Vec<u8>,
    primary_key: Vec<u8>,
    row: Vec<u8>,
}

pub struct MemoryScan {
    store: Memory,
    rows: Result<VecDeque<Found>, StoreError>,
}

impl StoreScan for MemoryScan {
    async fn next(&mut self) -> Result<Option<ScanBatch>, StoreError> {
        if self.store.inner().is_slow {
            self.store.inner().log.push("wait".to_owned());
            tokio::task::yield_now().await;
            self.store.inner().log.push("go on".to_owned());
        }
        match &mut self.rows {
            Err(error) => Err(error.clone()),
            Ok(rows) if rows.is_empty() => Ok(None),
            Ok(rows) => {
                let mut batch = ScanBatch::default();
                for found in rows.drain(..rows.len().min(3)) {
                    let Found { range, index_key, primary_key, row } = found;
                    let (index_key, primary_key) = (&index_key[..], &primary_key[..]);
                    batch.push(ScanRow { index_key, primary_key, row: &row, range });
                }
                Ok(Some(batch))
            }
        }
    }
}

pub struct MemoryTransaction {
    store: Memory,
    undo: Vec<Undo>,
    started: bool,
    over: bool,
}

impl MemoryTransaction {
    fn undo_to(&mut self, mark: usize) {
        let mut inner = self.store.inner();
        while self.undo.len() > mark {
            let Some((table, key, before)) = self.undo.pop() else { return };
            let rows = inner.tables.entry(table).or_default();
            match before {
                Some(row) => rows.insert(key, row),
                None => rows.remove(&key),
            };
        }
    }
}

impl Drop for MemoryTransaction {
    fn drop(&mut self) {
        self.undo_to(0);
    }
}

impl StoreTransaction for MemoryTransaction {
    type Scan = MemoryScan;

    async fn execute(
        &mut self,
        operations: Vec<RowOp>,
        commit: bool,
        handle: &Handle,
    ) -> Result<Vec<RowResult>, StoreError> {
        handle.check()?;
        assert!(operations.len() <= lats_base::limits::OPERATIONS_PER_REQUEST_MAX);
        if self.over {
            return Err(RefCode::TransactionAborted.into());
        }
        self.started = true;
        let mut results = Vec::new();
        let refused = {
            let mut inner = self.store.inner();
            let line =
                format!("execute {}{}", operations.len(), if commit { " commit" } else { "" });
            inner.log.push(line);
            inner.refused()
        };
        let mut failure = refused.err();
        let mark = self.undo.len();
        self.store.inner().has_waited = false;
        for op in &operations {
            if failure.is_some() {
                break;
            }
            let outcome = self.store.inner().run(op, &mut self.undo);
            let waited = self.store.inner().has_waited;
            match outcome {
                Ok(result) => results.push(RowResult { waited, ..result }),
                Err(error) => failure = Some(error),
            }
        }
        if let Some(error) = failure {
            self.over = commit || error.code.ends_transaction();
            self.undo_to(if self.over { 0 } else { mark });
            return Err(error);
        }
        if results.iter().any(|r| r.outcome == RowOutcome::Duplicate) {
            self.undo_to(if commit { 0 } else { mark });
            self.over = commit;
            for result in results.iter_mut().filter(|r| r.outcome == RowOutcome::Done) {
                result.outcome = RowOutcome::Undone;
            }
        } else if commit {
            self.undo.clear();
        }
        Ok(results)
    }

    fn scan(&mut self, scan: Scan) -> MemoryScan {
        let rows = self.store.inner().scan(&scan);
        MemoryScan { store: self.store.clone(), rows }
    }

    fn savepoint(&mut self) -> u32 {
        self.undo.len() as u32
    }

    async fn rollback_to(&mut self, savepoint: u32) -> Result<(), StoreError> {
        if self.over {
            return Err(RefCode::TransactionAborted.into());
        }
        let refused = self.store.inner().refused();
        if let Err(error) = refused {
            self.over = true;
            self.undo_to(0);
            return Err(error);
        }
        self.undo_to(savepoint as usize);
        Ok(())
    }

    fn commit_to_disk(&mut self) {
        self.store.inner().log.push("to disk".to_owned());
    }

    async fn commit(mut self) -> Result<Committed, StoreError> {
        self.store.inner().log.push("commit".to_owned());
        self.store.inner().refused()?;
        self.undo.clear();
        Ok(Committed::default())
    }

    async fn rollback(self) {}

    fn is_started(&self) -> bool {
        self.started
    }

    fn is_open(&self) -> bool {
        !self.over
    }
}

impl Store for Memory {
    type Transaction = MemoryTransaction;
    type Scan = MemoryScan;

    fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.inner().catalog)
    }

    async fn change(&self, change: Change) -> Result<Result<(), ChangeError>, StoreError> {
        let changed = self.inner().change(&change);
        if self.inner().is_slow {
            // It is made, but nobody has been told.
            tokio::task::yield_now().await;
        }
        Ok(changed)
    }

    fn commits_to_disk(&self) -> bool {
        self.inner().to_disk
    }

    async fn reads_durable(&self) -> Result<(), StoreError> {
        self.inner().log.push("reads to disk".to_string());
        Ok(())
    }

    async fn all_durable(&self) -> Result<(), StoreError> {
        self.inner().log.push("all to disk".to_owned());
        Ok(())
    }

    fn nodes(&self) -> Vec<NodeId> {
        vec![NodeId::new(9)]
    }

    async fn sessions(
        &self,
        node: NodeId,
        session: u32,
        call: SessionCall,
    ) -> Result<(bool, Vec<u8>), StoreError> {
        self.inner().log.push(format!("node {node}: session {session} {call:?}"));
        let found = session & 1 == 1;
        let is_asked = found && call == SessionCall::Statement;
        Ok((found, if is_asked { 5_u64.to_le_bytes().to_vec() } else { Vec::new() }))
    }

    fn builder(&self) -> Builder {
        Builder::default()
    }

    fn begin(&self) -> MemoryTransaction {
        MemoryTransaction { store: self.clone(), undo: Vec::new(), started: false, over: false }
    }

    async fn read(&self, reads: Vec<RowOp>) -> Result<Vec<RowResult>, StoreError> {
        let mut inner = self.inner();
        inner.log.push(format!("read {}", reads.len()));
        inner.refused()?;
        let mut none = Vec::new();
        assert!(reads.iter().all(|r| r.kind == RowOpKind::Read(LockMode::Committed)));
        reads.iter().map(|read| inner.run(read, &mut none)).collect()
    }

    fn scan(&self, scan: Scan) -> MemoryScan {
        let rows = self.inner().scan(&scan);
        MemoryScan { store: self.clone(), rows }
    }

    fn statistics(&self, table: TableId) -> Option<Arc<TableStatistics>> {
        self.inner().statistics.get(&table).cloned()
    }

    async fn learn_statistics(&self, table: TableId) -> Option<Arc<TableStatistics>> {
        match self.statistics(table) {
            Some(known) => Some(known),
            None => self.take_statistics(table).await,
        }
    }

    async fn take_statistics(&self, table: TableId) -> Option<Arc<TableStatistics>> {
        let mut inner = self.inner();
        let taken = Arc::new(inner.look_at(table)?);
        inner.statistics.insert(table, Arc::clone(&taken));
        Some(taken)
    }

    async fn reserve_sequence(&self, table: TableId, count: u64) -> Result<Range<u64>, StoreError> {
        let mut inner = self.inner();
        let next = inner.sequences.entry(table).or_insert(1);
        let range = *next..*next + count;
        *next = range.end;
        Ok(range)
    }

    async fn raise_sequence(&self, table: TableId, value: u64) -> Result<(), StoreError> {
        let mut inner = self.inner();
        let next = inner.sequences.entry(table).or_insert(1);
        *next = (*next).max(value + 1);
        Ok(())
    }
}

/// Keeps what a statement gave.
#[derive(Default)]
pub struct Kept {
    pub columns: Option<Columns>,
    pub rows: Vec<Vec<Value>>,
}

impl Sink for Kept {
    fn begin(&mut self, columns: &Columns) {
        assert!(self.columns.is_none(), "columns come once");
        self.columns = Some(columns.clone());
    }

    fn row(&mut self, values: &[Value]) -> Result<(), SqlError> {
        let columns = self.columns.as_ref().expect("columns come first");
        assert_eq!(columns.len(), values.len());
        self.rows.push(values.to_vec());
        Ok(())
    }

    fn has_begun(&self) -> bool {
        self.columns.is_some()
    }
}

pub fn now() -> i64 {
    1_700_000_000_123_456
}

/// A session and its store.
pub struct Desk {
    pub store: Memory,
    pub session: Session<Memory>,
    runtime: tokio::runtime::Runtime,
}

/// A clock that goes on by a microsecond whenever it is read.
fn ticks() -> u64 {
    thread_local! {
        static TICKS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
    }
    TICKS.set(TICKS.get() + 1_000);
    TICKS.get()
}

impl Desk {
    pub fn new() -> Self {
        let store = Memory::new();
        let shared = Arc::new(Shared::new(store.clone(), now).measured_by(ticks));
        let session = Session::new(shared, client());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .thread_stack_size(crate::STACK_BYTES)
            .start_paused(true)
            .build()
            .expect("a runtime");
        let mut desk = Self { store, session, runtime };
        assert_eq!(desk.run("CREATE DATABASE IF NOT EXISTS test"), "ok 1");
        assert_eq!(desk.run("USE test"), "ok 0");
        desk
    }

    /// Runs statements and prints what came of the last: rows as `a|b;c|d`, or `ok N`, or
    /// `ERROR number text`.
    pub fn run(&mut self, text: &str) -> String {
        let mut last = String::new();
        let mut statements = Statements::new(text.as_bytes());
        loop {
            match statements.next(self.session.syntax_mode(), usize::MAX) {
                Ok(Some(piece)) => last = self.run_one(piece.text),
                Ok(None) => return last,
                Err(_) => return self.run_one(statements.rest()),
            }
        }
    }

    fn run_one(&mut self, statement: &[u8]) -> String {
        let mut kept = Kept::default();
        let result = self.runtime.block_on(self.session.query(statement, &mut kept));
        shown(result.map_err(crate::error::Failure::into_sql), &kept)
    }

    /// Prepares a statement.
    pub fn prepare(&mut self, text: &[u8]) -> Result<PreparedInfo, SqlError> {
        self.runtime.block_on(self.session.prepare(text))
    }

    /// Prepares a statement as a client's command does.
    pub fn prepare_for_client(&mut self, text: &[u8]) -> Result<PreparedInfo, SqlError> {
        self.runtime.block_on(self.session.prepare_for_client(text))
    }

    /// Prepares and runs a statement.
    pub fn execute(&mut self, text: &str, parameters: &[Value]) -> String {
        let info = match self.prepare(text.as_bytes()) {
            Ok(info) => info,
            Err(error) => return shown(Err(error), &Kept::default()),
        };
        self.again(info.id, parameters)
    }

    pub fn again(&mut self, id: u32, parameters: &[Value]) -> String {
        let mut kept = Kept::default();
        let result = self.runtime.block_on(self.session.execute(id, parameters, &mut kept));
        shown(result.map_err(crate::error::Failure::into_sql), &kept)
    }

    /// Begins with a statement, which nobody waits for when it waits for the first time.
    pub fn cut_off(&mut self, text: &str) {
        let mut kept = Kept::default();
        self.runtime.block_on(async {
            tokio::select! {
                biased;
                _ = self.session.query(text.as_bytes(), &mut kept) => panic!("it did not wait"),
                () = std::future::ready(()) => {}
            }
            // What it leaves behind is done by others.
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        });
    }

    /// Puts another session in the place of this one, which ends.
    pub fn end(&mut self, next: Session<Memory>) {
        let ended = std::mem::replace(&mut self.session, next);
        self.runtime.block_on(async {
            drop(ended);
            // What it leaves behind is done by others.
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        });
    }

    /// Runs a table of statements and what is to come of them, one pair in two lines.
    pub fn check(&mut self, script: &str) {
        let mut lines = script.lines().map(str::trim).filter(|l| !l.is_empty());
        while let Some(statement) = lines.next() {
            let wanted = lines.next().unwrap_or("").strip_prefix("=> ").unwrap_or("");
            let found = self.run(statement);
            let fits = match wanted.strip_suffix('…') {
                Some(prefix) => found.starts_with(prefix),
                None => found == wanted,
            };
            assert!(fits, "\n{statement}\nwanted: {wanted}\nfound:  {found}");
        }
    }

    pub fn columns(&mut self, text: &str) -> Columns {
        let mut kept = Kept::default();
        let result = self.runtime.block_on(self.session.query(text.as_bytes(), &mut kept));
        result.expect("a result");
        kept.columns.expect("columns")
    }
}

pub fn client() -> Client {
    let (user, host) = ("root".into(), "localhost".into());
    let handle = Arc::default();
    Client {
        connection_id: 7,
        user,
        host,
        found_rows: false,
        interactive: false,
        secret: [7; 20],
        handle,
    }
}

fn shown(result: Result<Outcome, SqlError>, kept: &Kept) -> String {
    let row = |row: &Vec<Value>| row.iter().map(Value::to_display).collect::<Vec<_>>().join("|");
    match result {
        Ok(Outcome::Rows) => {
            assert!(kept.columns.is_some());
            kept.rows.iter().map(row).collect::<Vec<_>>().join(";")
        }
        Ok(Outcome::Done(done)) => format!("ok {}", done.affected_rows),
        Err(error) => format!("ERROR {} {}", error.errno, error.message),
    }
}
