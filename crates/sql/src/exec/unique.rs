//! Finding rows by the keys of a unique index, and saying which key is taken.

use crate::error::{self, Failure};
use crate::session::Session;
use crate::store::Store;
use crate::table::Table;
use lats_base::{IndexId, RefCode};
use lats_client::api::{LockMode, RowOpKind, RowResult, StoreError};
use lats_client::unique::{FoundByKey, UniqueLookup};
use lats_values::{Program, SqlError};
use std::{collections::BTreeSet, time::Duration};

/// Keys that are looked for at once: their rows come whole.
pub(in crate::exec) const LOOKUPS_MAX: usize = 100;

/// 1062: the text of the columns, and the name of the key.
fn taken(table: &Table, name: &str, columns: &[u16], row: &[u8]) -> SqlError {
    let text = |column: &u16| table.layout.value(row, *column).to_display();
    let parts: Vec<String> = columns.iter().map(text).collect();
    error::duplicate_entry(&parts.join("-"), &table.def.name, name)
}

/// 1062 for a row that could not be stored: its primary key is taken, or the key of a unique index.
pub(crate) fn duplicate(table: &Table, result: Option<&RowResult>, row: &[u8]) -> SqlError {
    let index = result.and_then(RowResult::holder).and_then(|(index, _)| table.def.index(index));
    match index {
        Some(index) => taken(table, &index.name, &index.columns, row),
        None => taken(table, "PRIMARY", &table.def.primary_key, row),
    }
}

/// The keys of a unique index whose rows are still to be locked. A key may pass to another row while
/// the lock of the one that had it is waited for: then it is looked up again.
pub(super) struct Pursuit {
    index: IndexId,
    keys: Vec<Vec<u8>>,
    /// Primary keys that were locked for it before.
    tried: BTreeSet<Vec<u8>>,
    rounds: u32,
}

/// A key that passes on more often than this is let go.
const PURSUITS_MAX: u32 = 100;

impl Pursuit {
    pub(super) fn new(index: IndexId, keys: Vec<Vec<u8>>) -> Self {
        Self { index, keys, tried: BTreeSet::new(), rounds: 0 }
    }

    /// True if its operations may commit by themselves: nothing else can come after them.
    pub(super) fn is_single(&self) -> bool {
        self.keys.len() == 1
    }

    /// The primary keys to lock next; none: it is over.
    pub(super) async fn next<S: Store>(
        &mut self,
        session: &mut Session<S>,
        table: &Table,
    ) -> Result<Vec<Vec<u8>>, Failure> {
        self.rounds += 1;
        let mut next = Vec::new();
        let mut pursued = Vec::new();
        if self.rounds <= PURSUITS_MAX {
            for part in std::mem::take(&mut self.keys).chunks(LOOKUPS_MAX) {
                let found = session.find_unique(table, self.index, part).await?;
                for (key, row) in part.iter().zip(found) {
                    // One that was locked before has the key, and not what else was asked for.
                    let Some(row) = row.filter(|r| !self.tried.contains(&r.primary_key)) else {
                        continue;
                    };
                    self.tried.insert(row.primary_key.clone());
                    next.push(row.primary_key);
                    pursued.push(key.clone());
                }
            }
        }
        self.keys = pursued;
        Ok(next)
    }

    /// Keeps the keys whose rows did not match when they were locked: one result for each.
    pub(super) fn keep_missed(&mut self, matched: impl Iterator<Item = bool>) {
        let keys = std::mem::take(&mut self.keys);
        self.keys = keys.into_iter().zip(matched).filter(|(_, m)| !m).map(|(k, _)| k).collect();
    }
}

impl<S: Store> Session<S> {
    /// The rows with these keys of a unique index, as committed reads see them: one for each key.
    pub(in crate::exec) async fn find_unique(
        &mut self,
        table: &Table,
        index: IndexId,
        keys: &[Vec<u8>],
    ) -> Result<Vec<Option<FoundByKey>>, Failure> {
        let def = table.def.index(index);
        let lookup = def.and_then(|i| UniqueLookup::new(&table.def, i, keys.to_vec()));
        let mut lookup = lookup.ok_or(StoreError::from(RefCode::IndexUnknown))?;
        loop {
            let reads = lookup.next_reads();
            if reads.is_empty() {
                return Ok(lookup.found());
            }
            if let Some(pause) = lookup.pause() {
                let pause = tokio::time::sleep(Duration::from_nanos(pause.as_nanos()));
                self.client.handle.unless_ended(pause).await?;
            }
            let results = self.read_rows(reads).await?;
            lookup.take(results)?;
        }
    }

    /// Their primary keys.
    pub(super) async fn find_keys(
        &mut self,
        table: &Table,
        index: IndexId,
        keys: &[Vec<u8>],
    ) -> Result<Vec<Vec<u8>>, Failure> {
        let mut found = Vec::with_capacity(keys.len());
        for part in keys.chunks(LOOKUPS_MAX) {
            let rows = self.find_unique(table, index, part).await?;
            found.extend(rows.into_iter().flatten().map(|row| row.primary_key));
        }
        Ok(found)
    }

    /// 1062 for an update in a data node: the new row is computed again, for its text.
    pub(super) async fn duplicate_in_update(
        &mut self,
        table: &Table,
        (key, program): (Vec<u8>, &[u8]),
        result: &RowResult,
    ) -> Failure {
        let read = super::operation(table, RowOpKind::Read(LockMode::Committed), key);
        let old = match self.read_rows(vec![read]).await {
            Ok(rows) => rows.into_iter().next().and_then(|r| r.row).unwrap_or_default(),
            Err(failure) => return failure,
        };
        let program = Program::decode(program, table.layout.columns());
        let new = program.ok().and_then(|p| p.updated(&table.layout, &old).ok().flatten());
        duplicate(table, Some(result), &new.unwrap_or(old)).into()
    }
}
