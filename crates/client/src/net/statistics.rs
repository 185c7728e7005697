//! What is known about tables (READ-5): kept by each client, and taken anew in the background while it is asked for.
//!
//! Of tables that change much they are taken each second, of others less often.

use super::{Client, answer_of, unexpected};
use crate::api::{AsOf, KeyRange, Scan, StoreError};
use crate::core::Answer;
use lats_base::{Duration, FragmentId, IndexId, Instant, RefCode, TableId};
use lats_catalog::statistics::{Gathered, Sample, TableStatistics};
use lats_catalog::{PRIMARY_INDEX, TableDef};
use std::collections::BTreeMap;
use std::sync::{Arc, MutexGuard, PoisonError};

/// Statistics by table.
#[derive(Default)]
pub(super) struct Kept(BTreeMap<TableId, Entry>);

struct Entry {
    value: Option<Arc<TableStatistics>>,
    taken: Instant,
    /// When they are too old.
    age: Duration,
    is_being_taken: bool,
}

/// Statistics older than this are taken anew when somebody asks, if the table has changed much.
const AGE: Duration = Duration::from_millis(1_000);
/// Statistics older than this are taken anew in any case.
const AGE_MAX: Duration = Duration::from_millis(16_000);
/// Places of an index that are looked at in each fragment.
const PLACES: u64 = 256;
/// As many entries as this tell enough: no more fragments are looked at.
const ENTRIES_ENOUGH: u64 = 4_096;

impl Client {
    /// What is known about a table by now, if anything is.
    pub fn statistics(&self, table: TableId) -> Option<Arc<TableStatistics>> {
        let now = (self.inner.clock)();
        let mut kept = self.kept();
        let entry = kept.0.get_mut(&table)?;
        let value = entry.value.clone();
        if now.since(entry.taken) > entry.age && !entry.is_being_taken {
            entry.is_being_taken = true;
            drop(kept);
            let client = self.clone();
            tokio::spawn(async move { client.take_statistics(table).await });
        }
        value
    }

    /// Looks at a table now, and keeps what was found.
    pub async fn take_statistics(&self, table: TableId) -> Option<Arc<TableStatistics>> {
        let def = self.catalog().tables.get(&table).cloned();
        let found = match &def {
            Some(def) => self.look_at(def).await.ok().map(Arc::new),
            None => None,
        };
        let taken = (self.inner.clock)();
        let catalog = self.catalog();
        let mut kept = self.kept();
        kept.0.retain(|id, _| catalog.tables.contains_key(id));
        let before = kept.0.remove(&table);
        let age = next_age(before.as_ref(), found.as_deref());
        let value = found.or(before.and_then(|entry| entry.value));
        if catalog.tables.contains_key(&table) {
            let entry = Entry { value: value.clone(), taken, age, is_being_taken: false };
            kept.0.insert(table, entry);
        }
        value
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.inner.statistics.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn look_at(&self, def: &TableDef) -> Result<TableStatistics, StoreError> {
        let mut fragments: Vec<FragmentId> = (0..def.fragment_count).map(FragmentId::new).collect();
        // Its own node's first: they cost no network.
        self.with(|core| fragments.sort_by_key(|fragment| !core.is_at_home(*fragment)));
        let mut statistics = TableStatistics::default();
        let indexes = std::iter::once(PRIMARY_INDEX).chain(def.indexes.iter().map(|i| i.id));
        for index in indexes {
            let mut gathered = Gathered::new();
            for fragment in &fragments {
                gathered.add(self.samples(def, index, *fragment).await?);
                if gathered.entries() >= ENTRIES_ENOUGH {
                    break;
                }
            }
            if index == PRIMARY_INDEX {
                statistics.rows = gathered.rows(u32::from(def.fragment_count));
                statistics.images = gathered.images();
            }
            statistics.indexes.extend(gathered.index(def, index));
        }
        Ok(statistics)
    }

    async fn samples(
        &self,
        def: &TableDef,
        index: IndexId,
        fragment: FragmentId,
    ) -> Result<Vec<(Vec<u8>, Sample)>, StoreError> {
        let scan = Scan {
            table: def.id,
            schema_version: def.schema_version,
            index,
            ranges: vec![KeyRange::default()],
            ordered: false,
            reverse: false,
            primary_keys: false,
            program: Vec::new(),
            limit: Some(PLACES),
            as_of: AsOf::Newest,
            pending: false,
        };
        let mut opened = Err(RefCode::NotServing);
        let mut receiver = self.request(|core| {
            opened = core.open_sample(&scan, fragment);
            opened.map_or(u64::MAX, |(_, ticket)| ticket)
        });
        opened?;
        match answer_of(&mut receiver).await {
            Answer::Batch { rows, .. } => Ok(rows
                .iter()
                .filter_map(|row| Some((row.index_key.to_vec(), Sample::decode(row.row)?)))
                .collect()),
            other => Err(unexpected(other)),
        }
    }
}

/// How long new statistics are good for.
fn next_age(before: Option<&Entry>, found: Option<&TableStatistics>) -> Duration {
    let Some(Entry { value: Some(value), age, .. }) = before else { return AGE };
    let change = found.map_or(0.0, |found| (found.rows - value.rows).abs());
    match change > value.rows * 0.2 {
        true => AGE,
        false => Duration::from_nanos(age.as_nanos().saturating_mul(2)).min(AGE_MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_that_do_not_change_are_looked_at_less_often() {
        let of = |rows: f64| TableStatistics { rows, ..TableStatistics::default() };
        let mut entry = Entry {
            value: Some(Arc::new(of(1_000.0))),
            taken: Instant::default(),
            age: next_age(None, Some(&of(1_000.0))),
            is_being_taken: false,
        };
        let mut ages = Vec::new();
        for rows in [1_000.0, 1_100.0, 1_000.0, 1_000.0, 1_000.0, 1_300.0] {
            entry.age = next_age(Some(&entry), Some(&of(rows)));
            ages.push(entry.age);
        }
        let seconds = |s: u64| Duration::from_millis(s * 1_000);
        assert_eq!(ages, [2, 4, 8, 16, 16, 1].map(seconds));
    }
}
