//! Rows in memory, read by their primary keys: all that the measured statements ask of a cluster.

use lats_base::{NodeId, RefCode, TableId};
use lats_catalog::statistics::TableStatistics;
use lats_catalog::{Builder, Catalog, Change, ChangeError, TableDef};
use lats_client::api::{Committed, RowOp, RowOutcome, RowResult, Scan, SessionCall, StoreError};
use lats_client::batch::ScanBatch;
use lats_sql::sessions::Handle;
use lats_sql::store::{Store, StoreScan, StoreTransaction};
use lats_values::Program;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Tables and their rows by key. They do not change.
pub(super) struct Tables {
    pub(super) catalog: Arc<Catalog>,
    pub(super) rows: BTreeMap<TableId, BTreeMap<Vec<u8>, Vec<u8>>>,
    /// What data nodes would tell of the tables: as many rows as there are.
    pub(super) statistics: BTreeMap<TableId, Arc<TableStatistics>>,
    /// What is done from now on counts.
    pub(super) counts: AtomicBool,
}

/// The store of a session.
#[derive(Clone)]
pub(super) struct Rows(pub(super) Arc<Tables>);

impl Rows {
    pub(super) fn count(&self) {
        self.0.counts.store(true, Ordering::Relaxed);
    }

    pub(super) fn counts(&self) -> bool {
        self.0.counts.load(Ordering::Relaxed)
    }

    fn read_one(&self, read: &RowOp) -> Result<RowResult, StoreError> {
        let table: &TableDef =
            self.0.catalog.tables.get(&read.table).ok_or(RefCode::TableUnknown)?;
        let layout = table.layout();
        let program = match &*read.program {
            [] => Program::default(),
            bytes => Program::decode(bytes, layout.columns()).map_err(StoreError::from)?,
        };
        let found = self.0.rows.get(&read.table).and_then(|rows| rows.get(&read.key));
        let Some(image) = found else {
            return Ok(RowResult { outcome: RowOutcome::Missing, row: None, waited: false });
        };
        let mut row = Vec::new();
        program.project(&layout, image, &mut row);
        Ok(RowResult { outcome: RowOutcome::Done, row: Some(row), waited: false })
    }
}

fn refused<T>() -> Result<T, StoreError> {
    Err(RefCode::NotServing.into())
}

impl Store for Rows {
    type Transaction = NoTransaction;
    type Scan = NoScan;

    fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.0.catalog)
    }

    async fn change(&self, _: Change) -> Result<Result<(), ChangeError>, StoreError> {
        refused()
    }

    fn commits_to_disk(&self) -> bool {
        false
    }

    async fn reads_durable(&self) -> Result<(), StoreError> {
        Ok(())
    }

    async fn all_durable(&self) -> Result<(), StoreError> {
        refused()
    }

    fn builder(&self) -> Builder {
        Builder::default()
    }

    fn begin(&self) -> NoTransaction {
        NoTransaction
    }

    async fn read(&self, reads: Vec<RowOp>) -> Result<Vec<RowResult>, StoreError> {
        // A statement waits for data nodes.
        tokio::task::yield_now().await;
        let work = || reads.iter().map(|read| self.read_one(read)).collect();
        if self.counts() { super::uncounted(work) } else { work() }
    }

    fn scan(&self, _: Scan) -> NoScan {
        NoScan
    }

    fn nodes(&self) -> Vec<NodeId> {
        vec![NodeId::new(1)]
    }

    async fn sessions(
        &self,
        _: NodeId,
        _: u32,
        _: SessionCall,
    ) -> Result<(bool, Vec<u8>), StoreError> {
        refused()
    }

    fn statistics(&self, table: TableId) -> Option<Arc<TableStatistics>> {
        self.0.statistics.get(&table).cloned()
    }

    async fn learn_statistics(&self, table: TableId) -> Option<Arc<TableStatistics>> {
        self.statistics(table)
    }

    async fn take_statistics(&self, table: TableId) -> Option<Arc<TableStatistics>> {
        self.statistics(table)
    }

    async fn reserve_sequence(&self, _: TableId, _: u64) -> Result<Range<u64>, StoreError> {
        refused()
    }

    async fn raise_sequence(&self, _: TableId, _: u64) -> Result<(), StoreError> {
        refused()
    }
}

/// Nothing is changed.
pub(super) struct NoTransaction;

impl StoreTransaction for NoTransaction {
    type Scan = NoScan;

    async fn execute(
        &mut self,
        _: Vec<RowOp>,
        _: bool,
        _: &Handle,
    ) -> Result<Vec<RowResult>, StoreError> {
        refused()
    }

    fn scan(&mut self, _: Scan) -> NoScan {
        NoScan
    }

    fn savepoint(&mut self) -> u32 {
        0
    }

    async fn rollback_to(&mut self, _: u32) -> Result<(), StoreError> {
        refused()
    }

    fn commit_to_disk(&mut self) {}

    async fn commit(self) -> Result<Committed, StoreError> {
        Ok(Committed::default())
    }

    async fn rollback(self) {}

    fn is_started(&self) -> bool {
        false
    }

    fn is_open(&self) -> bool {
        true
    }
}

/// Nothing is scanned.
pub(super) struct NoScan;

impl StoreScan for NoScan {
    async fn next(&mut self) -> Result<Option<ScanBatch>, StoreError> {
        refused()
    }
}
