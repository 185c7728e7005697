//! The cluster as the SQL layer sees it: the native client behind the SQL crate's traits.

use lats_base::{NodeId, RefCode, TableId};
use lats_catalog::statistics::TableStatistics;
use lats_catalog::{Builder, Catalog, Change, ChangeError, SEQUENCES_TABLE, TableDef};
use lats_client::{
    api::{
        Committed, LockWait, RowOp, RowOpKind, RowOutcome, RowResult, Scan, SessionCall, StoreError,
    },
    batch::ScanBatch,
    net::{Client, ScanStream, Transaction},
};
use lats_sql::sessions::{Handle, Why};
use lats_sql::store::{Store, StoreScan, StoreTransaction};
use lats_values::{BinaryOp, Expr, Program, Value, encode_key_value};
use std::{ops::Range, sync::Arc, time::Duration};

/// A cluster that SQL sessions work on.
#[derive(Clone)]
pub(crate) struct ClusterStore {
    client: Client,
    /// All clients of this process: what one of them has defined the others shall know at once.
    all: Arc<[Client]>,
}

/// A transaction of a SQL session.
pub(crate) struct ClusterTransaction {
    transaction: Transaction,
}

/// A scan of a SQL session.
pub(crate) struct ClusterScan {
    stream: ScanStream,
}

/// How long a definition waits until all threads of its node know it.
const TOLD_WITHIN: Duration = Duration::from_millis(500);

impl ClusterStore {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, all: Arc::default() }
    }

    /// The same, beside other clients in this process.
    pub(crate) fn beside(self, all: Arc<[Client]>) -> Self {
        Self { all, ..self }
    }

    /// Lets the other clients read the catalog. Who cannot now, because its thread is busy, does later.
    async fn tell_others(&self) {
        let version = self.client.catalog().version;
        let told = async {
            for other in self.all.iter().filter(|other| other.catalog().version < version) {
                let _ = other.fetch_catalog().await;
            }
        };
        let _ = tokio::time::timeout(TOLD_WITHIN, told).await;
    }

    /// Waits until all threads have heard of it, for sessions that begin next.
    async fn hear_of_durability(&self, to_disk: bool) {
        let heard = async {
            while self.all.iter().any(|client| client.commits_to_disk() != to_disk) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let _ = tokio::time::timeout(TOLD_WITHIN, heard).await;
    }

    /// Adds to a sequence and reads it, or founds it.
    async fn advance(&self, table: TableId, count: u64) -> Result<Option<u64>, StoreError> {
        let catalog = self.client.catalog();
        let sequences = Sequences::of(&catalog)?;
        let sum = Expr::Binary {
            op: BinaryOp::Add,
            left: Box::new(Expr::Column(1)),
            right: Box::new(Expr::Literal(Value::UInt(count))),
        };
        let add = Program {
            assignments: vec![(1, sum)],
            projection: Some(vec![0, 1]),
            ..Program::default()
        };
        let operations = [sequences.op(RowOpKind::Update, table, Vec::new(), add.encode())];
        let mut transaction = self.client.begin_replicated();
        let (results, _) = transaction.execute(&operations, true).await?;
        match &results[..] {
            [RowResult { outcome: RowOutcome::Done, row: Some(row), .. }] => {
                Ok(Some(sequences.next_value(row)))
            }
            _ => Ok(None),
        }
    }

    async fn found(&self, table: TableId, next: u64) -> Result<bool, StoreError> {
        let catalog = self.client.catalog();
        let sequences = Sequences::of(&catalog)?;
        let row = sequences.row(table, next)?;
        let insert = [sequences.op(RowOpKind::Insert, table, row, Vec::new())];
        let mut transaction = self.client.begin_replicated();
        let (results, _) = transaction.execute(&insert, true).await?;
        Ok(results.first().is_some_and(|r| r.outcome == RowOutcome::Done))
    }
}

/// The table of sequences.
struct Sequences<'a> {
    def: &'a TableDef,
}

impl<'a> Sequences<'a> {
    fn of(catalog: &'a Catalog) -> Result<Self, RefCode> {
        let def = catalog.tables.get(&SEQUENCES_TABLE).ok_or(RefCode::NotServing)?;
        Ok(Self { def })
    }

    fn op(&self, kind: RowOpKind, table: TableId, row: Vec<u8>, program: Vec<u8>) -> RowOp {
        let mut key = Vec::new();
        let id = Value::UInt(u64::from(table.get()));
        encode_key_value(&self.def.columns[0].column_type, &id, &mut key);
        RowOp {
            table: SEQUENCES_TABLE,
            schema_version: self.def.schema_version,
            kind,
            key,
            row,
            program: program.into(),
            wait: LockWait::Wait,
        }
    }

    fn row(&self, table: TableId, next: u64) -> Result<Vec<u8>, StoreError> {
        let mut row = Vec::new();
        let values = [Value::UInt(u64::from(table.get())), Value::UInt(next)];
        let encoded = self.def.layout().encode(&values, &mut row);
        encoded.map_err(|sql| StoreError { code: RefCode::ProgramFailed, sql: Some(sql) })?;
        Ok(row)
    }

    fn next_value(&self, row: &[u8]) -> u64 {
        match self.def.layout().value(row, 1) {
            Value::UInt(next) => next,
            _ => 0,
        }
    }
}

impl Store for ClusterStore {
    type Transaction = ClusterTransaction;
    type Scan = ClusterScan;

    fn cut_off(&self) -> Option<NodeId> {
        self.client.cut_off()
    }

    fn catalog(&self) -> Arc<Catalog> {
        self.client.catalog()
    }

    async fn change(&self, change: Change) -> Result<Result<(), ChangeError>, StoreError> {
        let durability = match change {
            Change::SetDurability { to_disk } => Some(to_disk),
            _ => None,
        };
        let changed = self.client.change(change).await;
        self.tell_others().await;
        if let (Some(to_disk), Ok(Ok(()))) = (durability, &changed) {
            self.hear_of_durability(to_disk).await;
        }
        changed
    }

    fn commits_to_disk(&self) -> bool {
        self.client.commits_to_disk()
    }

    async fn all_durable(&self) -> Result<(), StoreError> {
        self.client.all_durable().await
    }

    async fn reads_durable(&self) -> Result<(), StoreError> {
        self.client.reads_durable().await
    }

    fn builder(&self) -> Builder {
        self.client.builder()
    }

    fn begin(&self) -> Self::Transaction {
        ClusterTransaction { transaction: self.client.begin_replicated() }
    }

    async fn read(&self, reads: Vec<RowOp>) -> Result<Vec<RowResult>, StoreError> {
        self.client.read_replicated(reads).await
    }

    fn scan(&self, scan: Scan) -> Self::Scan {
        ClusterScan { stream: self.client.scan_replicated(scan) }
    }

    fn nodes(&self) -> Vec<NodeId> {
        let map = self.client.map();
        let serves = map.view.members.iter().filter(|m| m.alive && !m.sql_address.is_empty());
        serves.map(|member| member.node).collect()
    }

    async fn sessions(
        &self,
        node: NodeId,
        session: u32,
        call: SessionCall,
    ) -> Result<(bool, Vec<u8>), StoreError> {
        self.client.sessions(node, session, call).await
    }

    fn statistics(&self, table: TableId) -> Option<Arc<TableStatistics>> {
        self.client.statistics(table)
    }

    async fn learn_statistics(&self, table: TableId) -> Option<Arc<TableStatistics>> {
        self.client.learn_statistics(table).await
    }

    async fn take_statistics(&self, table: TableId) -> Option<Arc<TableStatistics>> {
        self.client.take_statistics(table).await
    }

    async fn reserve_sequence(&self, table: TableId, count: u64) -> Result<Range<u64>, StoreError> {
        loop {
            if let Some(next) = self.advance(table, count).await? {
                return Ok(next.saturating_sub(count)..next);
            }
            if self.found(table, 1 + count).await? {
                return Ok(1..1 + count);
            }
        }
    }

    async fn raise_sequence(&self, table: TableId, value: u64) -> Result<(), StoreError> {
        let next = value.saturating_add(1);
        let catalog = self.client.catalog();
        let sequences = Sequences::of(&catalog)?;
        let lower = Expr::Binary {
            op: BinaryOp::Less,
            left: Box::new(Expr::Column(1)),
            right: Box::new(Expr::Literal(Value::UInt(next))),
        };
        let raise = Program {
            filter: Some(lower),
            assignments: vec![(1, Expr::Literal(Value::UInt(next)))],
            ..Program::default()
        };
        let update = [sequences.op(RowOpKind::Update, table, Vec::new(), raise.encode())];
        loop {
            let mut transaction = self.client.begin_replicated();
            let (results, _) = transaction.execute(&update, true).await?;
            let missing = results.first().is_some_and(|r| r.outcome == RowOutcome::Missing);
            if !missing || self.found(table, next).await? {
                return Ok(());
            }
        }
    }
}

impl StoreTransaction for ClusterTransaction {
    type Scan = ClusterScan;

    async fn execute(
        &mut self,
        operations: Vec<RowOp>,
        commit: bool,
        handle: &Handle,
    ) -> Result<Vec<RowResult>, StoreError> {
        let count = operations.len();
        let ended = handle.ended(Why::Query);
        let (results, _) = self.transaction.execute_until(&operations, commit, ended).await?;
        if results.len() < count {
            // OUTCOME-9: committed, and some of its operations may have found nothing to do.
            return Err(RefCode::ResultsLost.into());
        }
        Ok(results)
    }

    fn scan(&mut self, scan: Scan) -> Self::Scan {
        ClusterScan { stream: self.transaction.scan(scan) }
    }

    fn savepoint(&mut self) -> u32 {
        self.transaction.savepoint()
    }

    async fn rollback_to(&mut self, savepoint: u32) -> Result<(), StoreError> {
        self.transaction.rollback_to(savepoint).await
    }

    fn commit_to_disk(&mut self) {
        self.transaction.commit_to_disk(true);
    }

    async fn commit(self) -> Result<Committed, StoreError> {
        self.transaction.commit().await
    }

    async fn rollback(self) {
        self.transaction.rollback().await;
    }

    fn is_started(&self) -> bool {
        self.transaction.is_started()
    }

    fn is_open(&self) -> bool {
        self.transaction.is_open()
    }
}

impl StoreScan for ClusterScan {
    async fn next(&mut self) -> Result<Option<ScanBatch>, StoreError> {
        self.stream.next().await
    }
}
