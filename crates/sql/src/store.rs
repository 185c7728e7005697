//! What the SQL layer needs from the cluster. The native client provides it; tests have one in
//! memory.

use crate::sessions::Handle;
use lats_base::{NodeId, TableId};
use lats_catalog::statistics::TableStatistics;
use lats_catalog::{Builder, Catalog, Change, ChangeError};
use lats_client::api::{Committed, RowOp, RowResult, Scan, SessionCall, StoreError};
use lats_client::batch::ScanBatch;
use std::{future::Future, ops::Range, sync::Arc};

/// A cluster, or what stands for one.
pub trait Store: Clone + Send + Sync + 'static {
    /// A transaction.
    type Transaction: StoreTransaction;
    /// A running scan.
    type Scan: StoreScan;

    /// The node of this process, if it has been cut off from the majority of the cluster for so long that it is no use to wait.
    fn cut_off(&self) -> Option<NodeId> {
        None
    }

    /// The newest catalog this process knows.
    fn catalog(&self) -> Arc<Catalog>;

    /// Makes a change of the catalog; done when every serving node has it, and then
    /// [`Store::catalog`] shows it.
    fn change(
        &self,
        change: Change,
    ) -> impl Future<Output = Result<Result<(), ChangeError>, StoreError>> + Send;

    /// True if commits wait for disks unless a session says otherwise.
    fn commits_to_disk(&self) -> bool;

    /// Waits until all that was committed and defined by now is on the disks of all replicas.
    fn all_durable(&self) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Waits until all that this process has read by now without locks is on the disks of all replicas (READ-7).
    ///
    /// # Errors
    /// [`lats_base::RefCode::ReadNotOnDisk`] if that takes very long.
    fn reads_durable(&self) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Whose death ends the index builds of this process (UNIQUE-7).
    fn builder(&self) -> Builder;

    /// Begins a transaction. Costs nothing until its first operation.
    fn begin(&self) -> Self::Transaction;

    /// Committed reads outside any transaction, at the nearest replicas. One result per operation.
    fn read(
        &self,
        reads: Vec<RowOp>,
    ) -> impl Future<Output = Result<Vec<RowResult>, StoreError>> + Send;

    /// A scan outside any transaction.
    fn scan(&self, scan: Scan) -> Self::Scan;

    /// The nodes that live and serve MySQL clients.
    fn nodes(&self) -> Vec<NodeId>;

    /// Has a node do something with a session of its own: whether there is such a session, and the list if it was asked
    /// for.
    fn sessions(
        &self,
        node: NodeId,
        session: u32,
        call: SessionCall,
    ) -> impl Future<Output = Result<(bool, Vec<u8>), StoreError>> + Send;

    /// What is known about a table by now, if anything is.
    fn statistics(&self, table: TableId) -> Option<Arc<TableStatistics>>;

    /// Looks at a table, if nothing is known about it yet. Sessions that do so at the same time share a look.
    fn learn_statistics(
        &self,
        table: TableId,
    ) -> impl Future<Output = Option<Arc<TableStatistics>>> + Send;

    /// Looks at a table as it is now.
    fn take_statistics(
        &self,
        table: TableId,
    ) -> impl Future<Output = Option<Arc<TableStatistics>>> + Send;

    /// Reserves `count` values of a table's sequence. Never gives a value twice.
    fn reserve_sequence(
        &self,
        table: TableId,
        count: u64,
    ) -> impl Future<Output = Result<Range<u64>, StoreError>> + Send;

    /// Makes the table's sequence go on above `value`.
    fn raise_sequence(
        &self,
        table: TableId,
        value: u64,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
}

/// A transaction in progress. Dropping it rolls it back.
pub trait StoreTransaction: Send {
    /// A running scan.
    type Scan: StoreScan;

    /// Runs operations, and commits with them if asked. One result per operation. After an error
    /// none of them is done, and [`Self::is_open`] tells whether the transaction lives on. What waits when the
    /// statement of `handle` is to end is refused with [`lats_base::RefCode::Interrupted`].
    fn execute(
        &mut self,
        operations: Vec<RowOp>,
        commit: bool,
        handle: &Handle,
    ) -> impl Future<Output = Result<Vec<RowResult>, StoreError>> + Send;

    /// A scan that sees this transaction's own writes.
    fn scan(&mut self, scan: Scan) -> Self::Scan;

    /// A mark to come back to. Locks taken later are kept by [`Self::rollback_to`].
    fn savepoint(&mut self) -> u32;

    /// Takes back everything written since the mark.
    fn rollback_to(
        &mut self,
        savepoint: u32,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Its commit is to be answered when it is on the disks of all replicas.
    fn commit_to_disk(&mut self);

    /// Commits. A transaction without operations commits at once.
    fn commit(self) -> impl Future<Output = Result<Committed, StoreError>> + Send;

    /// Rolls back.
    fn rollback(self) -> impl Future<Output = ()> + Send;

    /// True once it holds operations.
    fn is_started(&self) -> bool;

    /// False once an error has rolled it back.
    fn is_open(&self) -> bool;
}

/// A stream of a scan's rows.
pub trait StoreScan: Send {
    /// The next rows; `None` at the end.
    fn next(&mut self) -> impl Future<Output = Result<Option<ScanBatch>, StoreError>> + Send;
}
