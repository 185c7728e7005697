//! CREATE UNIQUE INDEX on a table that is in use. The catalog holds writers to the index before this
//! begins; here the rows that were there before it are entered (UNIQUE-7).

use crate::error::{self, Failure, change_error};
use crate::exec::duplicate;
use crate::sessions::Handle;
use crate::store::{Store, StoreScan, StoreTransaction};
use crate::table::Table;
use lats_base::{IndexId, RefCode, TableId};
use lats_catalog::{Builder, Change, TableDef};
use lats_client::api::{
    AsOf, KeyRange, LockMode, PRIMARY_INDEX, RowOpKind, RowOutcome, RowResult, Scan, StoreError,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;

/// Rows that are entered by one transaction.
const ROWS_MAX: usize = 128;
/// How long an index that could not be filled is tried to be taken away: its definition is of no use, but in the way,
/// while a silent node keeps all definitions from being changed.
const CLEAN_UP_TRIES: u32 = 3_600;
const CLEAN_UP_PAUSE: Duration = Duration::from_secs(1);
/// How often something that failed for the moment is tried in a row, and after what pause.
const TRIES: u32 = 200;
const PAUSE: Duration = Duration::from_millis(20);

/// Fills the index, or takes it away again.
///
/// # Errors
/// 1062 if two rows have the same key; what the cluster refuses.
pub(super) async fn build<S: Store>(
    store: S,
    (database, table, name): (String, String, String),
    builder: Builder,
    handle: Arc<Handle>,
) -> Result<(), Failure> {
    let catalog = store.catalog();
    let def = catalog.table(&database, &table);
    let def = def.ok_or_else(|| error::unknown_table(&database, &table))?;
    // Somebody else may have dropped it already.
    let (index, entries) =
        unfinished(def, &name, builder).ok_or_else(|| error::dropped_index(&name))?;
    let table = def.id;
    let filled =
        Build { store: store.clone(), table, index, handle, done: Vec::new() }.fill().await;
    let last = match &filled {
        Ok(()) => Change::IndexReady { table, entries },
        Err(_) => Change::DropBuild { table, entries },
    };
    let ended = end(&store, last).await;
    if let Err(Failure::Store(_)) = &ended {
        // Also one that is filled: its client is told that it has failed.
        tokio::spawn(clean_up(store.clone(), Change::DropBuild { table, entries }));
    }
    if let (Ok(()), Err(refused)) = (&filled, &ended)
        && !matches!(refused, Failure::Store(_))
    {
        // It could not be made whole, and nobody else will do that.
        let _ = end(&store, Change::DropBuild { table, entries }).await;
    }
    filled.and(ended)
}

/// Takes an index away whose making has failed for the client, if it turns up.
pub(super) async fn abandon<S: Store>(
    store: S,
    (database, table, name): (String, String, String),
    builder: Builder,
    _watch: OwnedSemaphorePermit,
) {
    for look in 0..TRIES + CLEAN_UP_TRIES {
        let catalog = store.catalog();
        let found = catalog
            .table(&database, &table)
            .and_then(|def| Some((def.id, unfinished(def, &name, builder)?.1)));
        if let Some((table, entries)) = found {
            let change = Change::DropBuild { table, entries };
            // Nobody is left to be told.
            return clean_up(store, change).await;
        }
        // What was proposed may still be on its way to a leader that cannot be reached.
        tokio::time::sleep(if look < TRIES { PAUSE } else { CLEAN_UP_PAUSE }).await;
    }
}

/// An index that this builder has not finished, and its entries.
fn unfinished(def: &TableDef, name: &str, builder: Builder) -> Option<(IndexId, TableId)> {
    let index = def.indexes.iter().find(|i| i.name.eq_ignore_ascii_case(name))?;
    let unique = index.unique.filter(|u| u.builder == Some(builder))?;
    Some((index.id, unique.table))
}

async fn end<S: Store>(store: &S, change: Change) -> Result<(), Failure> {
    for _ in 0..TRIES {
        match store.change(change.clone()).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(refused)) if !refused.kind.may_pass() => {
                return Err(change_error(&refused, true).into());
            }
            Ok(Err(_)) | Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
    Err(StoreError::from(RefCode::NotServing).into())
}

async fn clean_up<S: Store>(store: S, change: Change) {
    for _ in 0..CLEAN_UP_TRIES {
        match store.change(change.clone()).await {
            // Done, or somebody else has done it.
            Ok(Ok(())) => return,
            Ok(Err(refused)) if !refused.kind.may_pass() => return,
            Ok(Err(_)) | Err(_) => tokio::time::sleep(CLEAN_UP_PAUSE).await,
        }
    }
}

/// The entering of the rows that were there before the index.
struct Build<S> {
    store: S,
    table: TableId,
    index: IndexId,
    /// What the statement is ended by.
    handle: Arc<Handle>,
    /// The primary key up to which all rows are entered. (Rows that come later enter themselves.)
    done: Vec<u8>,
}

fn is_passing(error: &StoreError) -> bool {
    error.class() == lats_base::ErrorClass::Temporary && error.code != RefCode::MemoryFull
}

impl<S: Store> Build<S> {
    /// Enters all rows; goes on where it was after what passes, as long as it gets on.
    async fn fill(mut self) -> Result<(), Failure> {
        let mut tries = 0;
        loop {
            let before = self.done.clone();
            let def = self.store.catalog().tables.get(&self.table).cloned();
            let def = Table::new(&*def.ok_or(StoreError::from(RefCode::TableUnknown))?);
            match self.enter_all(&def).await {
                Err(Failure::Store(error)) if is_passing(&error) => {
                    tries = if self.done == before { tries + 1 } else { 0 };
                    if tries > TRIES {
                        return Err(error.into());
                    }
                    self.handle.unless_ended(tokio::time::sleep(PAUSE)).await?;
                }
                ended => return ended,
            }
        }
    }

    async fn enter_all(&mut self, table: &Table) -> Result<(), Failure> {
        let mut running = self.store.scan(Scan {
            table: table.def.id,
            schema_version: table.def.schema_version,
            index: PRIMARY_INDEX,
            ranges: vec![KeyRange { lower: self.done.clone(), upper: None }],
            // So that one key says how far it is.
            ordered: true,
            reverse: false,
            primary_keys: true,
            program: Default::default(),
            limit: None,
            pending: true,
            to_lock: false,
            few: false,
            first_of_range: false,
            as_of: AsOf::Newest,
        });
        while let Some(rows) = self.handle.unless_ended(running.next()).await?? {
            let keys: Vec<Vec<u8>> = rows.iter().map(|row| row.primary_key.to_vec()).collect();
            for part in keys.chunks(ROWS_MAX) {
                self.enter(table, part).await?;
                self.done = part.last().cloned().unwrap_or_default();
            }
        }
        Ok(())
    }

    async fn enter(&self, table: &Table, keys: &[Vec<u8>]) -> Result<(), Failure> {
        let operation =
            |key: &Vec<u8>| crate::exec::operation(table, RowOpKind::Reindex, key.clone());
        let mut transaction = self.store.begin();
        let operations = keys.iter().map(operation).collect();
        let results = transaction.execute(operations, true, &self.handle).await?;
        let taken = results.iter().zip(keys).find(|(r, _)| r.outcome == RowOutcome::Duplicate);
        match taken {
            Some((result, _)) if result.holder().is_some_and(|(index, _)| index != self.index) => {
                // Another index that is being built cannot be: it will go away, and this one come.
                Err(StoreError::from(RefCode::SchemaVersionOld).into())
            }
            Some((result, key)) => Err(duplicate_of(&self.store, table, result, key).await),
            None => Ok(()),
        }
    }
}

/// 1062 for a row whose key another one has.
async fn duplicate_of<S: Store>(
    store: &S,
    table: &Table,
    result: &RowResult,
    key: &[u8],
) -> Failure {
    let read = crate::exec::operation(table, RowOpKind::Read(LockMode::Committed), key.to_vec());
    match store.read(vec![read]).await {
        Ok(rows) => {
            let row = rows.into_iter().next().and_then(|r| r.row).unwrap_or_default();
            duplicate(table, Some(result), &row).into()
        }
        Err(error) => error.into(),
    }
}
