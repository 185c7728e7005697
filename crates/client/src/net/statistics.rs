//! What is known about tables (READ-5): kept by the clients of a process together, and taken anew in the background while it is
//! asked for.
//!
//! Of tables that change much they are taken each second, of others less often. Who asks while somebody looks waits for what that
//! finds.

use super::{Client, unexpected};
use crate::api::{AsOf, KeyRange, Scan, StoreError};
use crate::core::Answer;
use lats_base::{Duration, FragmentId, IndexId, Instant, RefCode, TableId};
use lats_catalog::statistics::{Gathered, Sample, TableStatistics};
use lats_catalog::{PRIMARY_INDEX, TableDef};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// What clients know about tables. Its clones are the same: clients that are given one know what the others know.
#[derive(Clone, Debug, Default)]
pub struct KnownTables(Arc<Mutex<BTreeMap<TableId, Entry>>>);

#[derive(Debug, Default)]
struct Entry {
    value: Option<Arc<TableStatistics>>,
    /// When the look began that has found the value, and when the last one began that has ended.
    begun: Option<Instant>,
    tried: Option<Instant>,
    /// When the last look ended.
    ended: Instant,
    /// When they are too old.
    age: Duration,
    /// Is closed when the look that is under way ends, or is given up.
    under_way: Option<watch::Receiver<()>>,
}

/// Statistics older than this are taken anew when somebody asks, if the table has changed much.
const AGE: Duration = Duration::from_millis(1_000);
/// Statistics older than this are taken anew in any case.
const AGE_MAX: Duration = Duration::from_millis(16_000);
/// Places of an index that are looked at in each fragment.
const PLACES: u64 = 256;
/// As many entries as this tell enough: no more fragments are looked at.
const ENTRIES_ENOUGH: u64 = 4_096;

impl Entry {
    fn is_being_taken(&self) -> bool {
        self.under_way.as_ref().is_some_and(|look| look.has_changed().is_ok())
    }
}

/// Who is to look at a table, or what was found by another who has.
enum Turn {
    Mine(watch::Sender<()>),
    Found(Option<Arc<TableStatistics>>),
}

impl KnownTables {
    fn entries(&self) -> MutexGuard<'_, BTreeMap<TableId, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known about a table, and whether it is time to look again.
    fn get(&self, table: TableId, now: Instant) -> (Option<Arc<TableStatistics>>, bool) {
        let entries = self.entries();
        let Some(entry) = entries.get(&table) else { return (None, false) };
        let is_old = entry.tried.is_some() && now.since(entry.ended) > entry.age;
        (entry.value.clone(), is_old && !entry.is_being_taken())
    }

    /// Waits for a look that began at this time or later, if one is under way; otherwise the caller is to look.
    async fn turn(&self, table: TableId, since: Instant) -> Turn {
        let mut has_waited = false;
        loop {
            let look = {
                let mut entries = self.entries();
                let entry = entries.entry(table).or_default();
                if entry.begun.is_some_and(|begun| begun >= since) {
                    return Turn::Found(entry.value.clone());
                }
                // Whoever has waited for a look in vain does not look once more.
                if has_waited && entry.tried.is_some_and(|tried| tried >= since) {
                    return Turn::Found(None);
                }
                match &entry.under_way {
                    Some(look) if entry.is_being_taken() => look.clone(),
                    _ => {
                        let (mine, look) = watch::channel(());
                        entry.under_way = Some(look);
                        return Turn::Mine(mine);
                    }
                }
            };
            let mut look = look;
            // Nothing is ever sent: it ends.
            let _ = look.changed().await;
            has_waited = true;
        }
    }

    /// Looks at a table, unless somebody else has begun to since then: what was found. A look that fails leaves what was known,
    /// and is no new look.
    async fn look(
        &self,
        (table, since): (TableId, Instant),
        clock: impl Fn() -> Instant,
        exists: impl Fn(TableId) -> bool,
        look: impl Future<Output = Option<TableStatistics>>,
    ) -> Option<Arc<TableStatistics>> {
        let mine = match self.turn(table, since).await {
            Turn::Mine(mine) => mine,
            Turn::Found(found) => return found,
        };
        let begun = clock();
        let found = look.await.map(Arc::new);
        let mut entries = self.entries();
        entries.retain(|id, _| exists(*id));
        let before = entries.remove(&table);
        let age = next_age(before.as_ref(), found.as_deref());
        let before = before.unwrap_or_default();
        if exists(table) {
            let (value, since) = match &found {
                Some(_) => (found.clone(), Some(begun)),
                None => (before.value, before.begun),
            };
            let (tried, ended) = (Some(begun), clock());
            let entry = Entry { value, begun: since, tried, ended, age, under_way: None };
            entries.insert(table, entry);
        }
        drop((entries, mine));
        found
    }
}

impl Client {
    /// What is known about a table by now, if anything is.
    pub fn statistics(&self, table: TableId) -> Option<Arc<TableStatistics>> {
        let (value, is_old) = self.known().get(table, (self.inner.clock)());
        if is_old {
            let client = self.clone();
            tokio::spawn(async move { client.take_statistics(table).await });
        }
        value
    }

    /// Looks at a table now, and keeps what was found.
    pub async fn take_statistics(&self, table: TableId) -> Option<Arc<TableStatistics>> {
        self.look_since(table, (self.inner.clock)()).await
    }

    /// Looks at a table, if nothing is known about it yet.
    pub async fn learn_statistics(&self, table: TableId) -> Option<Arc<TableStatistics>> {
        self.look_since(table, Instant::default()).await
    }

    async fn look_since(&self, table: TableId, since: Instant) -> Option<Arc<TableStatistics>> {
        let look = async {
            let def = self.catalog().tables.get(&table).cloned();
            self.look_at(&*def?).await.ok()
        };
        let clock = self.inner.clock;
        let exists = |table: TableId| self.catalog().tables.contains_key(&table);
        self.known().look((table, since), clock, exists, look).await
    }

    fn known(&self) -> &KnownTables {
        &self.inner.options.known
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
            program: Arc::default(),
            limit: Some(PLACES),
            as_of: AsOf::Newest,
            pending: false,
            to_lock: false,
            few: false,
            first_of_range: false,
        };
        let mut opened = Err(RefCode::NotServing);
        let mut receiver = self.request(|core| {
            opened = core.open_sample(&scan, fragment);
            opened.map_or(u64::MAX, |(_, ticket)| ticket)
        });
        opened?;
        match self.answer_of(&mut receiver).await {
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
    let Some(found) = found else { return AGE };
    match (found.rows - value.rows).abs() > value.rows * 0.2 {
        true => AGE,
        false => Duration::from_nanos(age.as_nanos().saturating_mul(2)).min(AGE_MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};
    use tokio::sync::Notify;

    fn of(rows: f64) -> TableStatistics {
        TableStatistics { rows, ..TableStatistics::default() }
    }

    #[test]
    fn tables_that_do_not_change_are_looked_at_less_often() {
        let mut entry = Entry {
            value: Some(Arc::new(of(1_000.0))),
            age: next_age(None, Some(&of(1_000.0))),
            ..Entry::default()
        };
        let mut ages = Vec::new();
        for rows in [1_000.0, 1_100.0, 1_000.0, 1_000.0, 1_000.0, 1_300.0] {
            entry.age = next_age(Some(&entry), Some(&of(rows)));
            ages.push(entry.age);
        }
        let seconds = |s: u64| Duration::from_millis(s * 1_000);
        assert_eq!(ages, [2, 4, 8, 16, 16, 1].map(seconds));
    }

    const TABLE: TableId = TableId::new(7);

    /// What several sessions know, the looks that were begun, and what lets them end.
    #[derive(Default)]
    struct Shared {
        known: KnownTables,
        looks: AtomicU64,
        end: Notify,
    }

    impl Shared {
        /// A look that finds as many rows as looks were begun, or nothing.
        async fn look(&self, since: u64, finds: bool) -> Option<f64> {
            let look = async {
                let number = self.looks.fetch_add(1, Ordering::Relaxed) + 1;
                self.end.notified().await;
                finds.then(|| of(number as f64))
            };
            // The time is the number of looks so far.
            let clock = || Instant::from_nanos(self.looks.load(Ordering::Relaxed) + 1);
            let since = Instant::from_nanos(since);
            let exists = |table: TableId| table == TABLE;
            let found = self.known.look((TABLE, since), clock, exists, look).await;
            found.map(|found| found.rows)
        }
    }

    /// Lets so many looks end, one after the other, while these wait.
    async fn ending<T>(shared: &Shared, looks: usize, waiting: impl Future<Output = T>) -> T {
        let ends = async {
            for _ in 0..looks {
                tokio::task::yield_now().await;
                shared.end.notify_one();
            }
        };
        tokio::join!(waiting, ends).0
    }

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
    }

    #[test]
    fn who_learns_while_somebody_looks_waits_for_that() {
        let shared = Shared::default();
        let learn = || shared.look(0, true);
        let all = async { tokio::join!(learn(), learn(), learn()) };
        let found = block_on(ending(&shared, 1, all));
        assert_eq!(found, (Some(1.0), Some(1.0), Some(1.0)));
        // What is known is not looked for again.
        assert_eq!(block_on(learn()), Some(1.0));
        assert_eq!(shared.looks.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn who_wants_it_new_is_not_content_with_a_look_that_began_before() {
        let shared = Shared::default();
        let both = async {
            tokio::join!(shared.look(0, true), shared.look(2, true), shared.look(2, true))
        };
        assert_eq!(block_on(ending(&shared, 2, both)), (Some(1.0), Some(2.0), Some(2.0)));
    }

    #[test]
    fn a_look_that_fails_is_no_new_one() {
        let shared = Shared::default();
        block_on(async {
            assert_eq!(ending(&shared, 1, shared.look(0, true)).await, Some(1.0));
            let failed = async { tokio::join!(shared.look(2, false), shared.look(2, false)) };
            assert_eq!(ending(&shared, 1, failed).await, (None, None));
            assert_eq!(shared.looks.load(Ordering::Relaxed), 2);
            // What was known is known still, and it is soon looked at again.
            let at = |ms: u64| Instant::from_nanos(3 + ms * 1_000_000);
            let known = |ms| shared.known.get(TABLE, at(ms));
            assert_eq!(known(0).0.map(|known| known.rows), Some(1.0));
            assert_eq!((known(900).1, known(1_100).1), (false, true));
            // Who wants to know what it was like then does not take the old one.
            assert_eq!(ending(&shared, 1, shared.look(3, true)).await, Some(3.0));
        });
    }

    #[test]
    fn a_look_that_is_given_up_or_fails_holds_nobody_up() {
        let shared = Shared::default();
        block_on(async {
            let given_up = shared.look(0, true);
            tokio::select! { biased; _ = given_up => {}, () = tokio::task::yield_now() => {} }
            assert!(!shared.known.entries()[&TABLE].is_being_taken());
            let failed = async { tokio::join!(shared.look(0, false), shared.look(0, false)) };
            assert_eq!(ending(&shared, 1, failed).await, (None, None));
            assert_eq!(ending(&shared, 1, shared.look(0, true)).await, Some(3.0));
        });
        assert_eq!(
            shared.known.get(TABLE, Instant::default()).0.map(|known| known.rows),
            Some(3.0)
        );
    }
}
