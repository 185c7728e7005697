//! Memory of a run: what operators hold is counted, and more than the statement may have is an error.

use super::{Row, Run, row_bytes};
use alloc::{boxed::Box, collections::BTreeMap, sync::Arc, vec::Vec};
use lats_base::map::Map;
use lats_values::SqlError;

/// What an entry of a table of keys takes beside the key.
pub(super) const ENTRY_BYTES: usize = 96;

/// What a run may hold.
#[derive(Clone)]
pub struct Budget {
    /// Bytes at most.
    pub bytes_max: usize,
    /// The error for more.
    pub too_much: fn() -> SqlError,
    /// What all runs together may hold; none where nobody counts it.
    pub pool: Option<Arc<dyn Pool>>,
}

/// Memory that runs share.
pub trait Pool: Send + Sync {
    /// Takes some for a run that has `all` of it then; false if there is not so much left.
    fn take(&self, bytes: usize, all: usize) -> bool;
    /// Gives some back.
    fn give_back(&self, bytes: usize);
    /// The error when there is none left.
    fn refusal(&self) -> SqlError;
}

/// What a run may have, and has.
pub(super) struct Memory {
    used: usize,
    peak: usize,
    budget: Budget,
    /// What was taken of the pool.
    taken: usize,
    /// Answers that can be found again; they go first when memory is needed.
    caches: BTreeMap<CacheId, Cache>,
    next_cache: u64,
}

/// So much is taken of the pool at once: a run that needs little asks once, and others see soon what was given back.
const SHARE_BYTES: usize = 256 << 10;

/// The number of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CacheId(u64);

#[derive(Default)]
struct Cache {
    known: Map<Vec<u8>, super::apply::Found>,
    bytes: usize,
}

/// A cache may have this part of the statement's memory.
const CACHE_PART: usize = 8;

impl Memory {
    pub(super) fn new(budget: Budget) -> Self {
        Self { used: 0, peak: 0, budget, taken: 0, caches: BTreeMap::new(), next_cache: 0 }
    }

    pub(super) fn used(&self) -> usize {
        self.used
    }

    pub(super) fn peak(&self) -> usize {
        self.peak
    }

    fn is_within(&self, bytes: usize) -> bool {
        self.used.saturating_add(bytes) <= self.budget.bytes_max
    }

    /// True if the pool gives what so many bytes more need.
    fn share(&mut self, bytes: usize) -> bool {
        let Some(pool) = &self.budget.pool else { return true };
        let missing = self.used.saturating_add(bytes).saturating_sub(self.taken);
        if missing == 0 {
            return true;
        }
        let share = missing.max(SHARE_BYTES);
        // The last of it goes in small parts.
        let share =
            [share, missing].into_iter().find(|share| pool.take(*share, self.taken + share));
        self.taken += share.unwrap_or(0);
        share.is_some()
    }

    fn has_room(&mut self, bytes: usize) -> bool {
        self.is_within(bytes) && self.share(bytes)
    }

    /// Counts memory that is held until it is released.
    pub(super) fn hold(&mut self, bytes: usize) -> Result<(), SqlError> {
        if !self.has_room(bytes) {
            self.drop_caches();
            if !self.is_within(bytes) {
                return Err((self.budget.too_much)());
            }
            if !self.share(bytes)
                && let Some(pool) = &self.budget.pool
            {
                return Err(pool.refusal());
            }
        }
        self.used += bytes;
        self.peak = self.peak.max(self.used);
        Ok(())
    }

    pub(super) fn release(&mut self, bytes: usize) {
        self.used = self.used.saturating_sub(bytes);
        let spare = self.taken.saturating_sub(self.used);
        if spare > 4 * SHARE_BYTES
            && let Some(pool) = &self.budget.pool
        {
            pool.give_back(spare - SHARE_BYTES);
            self.taken -= spare - SHARE_BYTES;
        }
    }

    fn drop_caches(&mut self) {
        for cache in self.caches.values_mut() {
            self.used = self.used.saturating_sub(cache.bytes);
            *cache = Cache::default();
        }
    }

    pub(super) fn new_cache(&mut self) -> CacheId {
        let id = CacheId(self.next_cache);
        self.next_cache += 1;
        self.caches.insert(id, Cache::default());
        id
    }

    pub(super) fn drop_cache(&mut self, id: CacheId) {
        if let Some(cache) = self.caches.remove(&id) {
            self.release(cache.bytes);
        }
    }

    pub(super) fn known(&self, id: CacheId, key: &[u8]) -> Option<&super::apply::Found> {
        self.caches.get(&id)?.known.get(key)
    }

    /// Keeps an answer if there is room: a cache is never what makes a statement fail.
    pub(super) fn keep(&mut self, id: CacheId, key: &[u8], found: &super::apply::Found) {
        let bytes = key.len() + ENTRY_BYTES + found.bytes();
        let has_room = self.has_room(bytes);
        let Some(cache) = self.caches.get_mut(&id) else { return };
        if !has_room || cache.bytes.saturating_add(bytes) > self.budget.bytes_max / CACHE_PART {
            return;
        }
        if cache.known.insert(key.to_vec(), found.clone()).is_none() {
            cache.bytes += bytes;
            self.used += bytes;
            self.peak = self.peak.max(self.used);
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Some(pool) = &self.budget.pool {
            pool.give_back(self.taken);
        }
    }
}

/// Memory that an operator holds. Whoever drops an operator closes it before, and then it holds none.
#[derive(Default)]
pub(super) struct Held(usize);

impl Held {
    pub(super) fn grow(&mut self, run: &mut Run<'_>, bytes: usize) -> Result<(), SqlError> {
        run.memory.hold(bytes)?;
        self.0 += bytes;
        Ok(())
    }

    pub(super) fn shrink(&mut self, run: &mut Run<'_>, bytes: usize) {
        let bytes = bytes.min(self.0);
        self.0 -= bytes;
        run.memory.release(bytes);
    }

    pub(super) fn free(&mut self, run: &mut Run<'_>) {
        run.memory.release(core::mem::take(&mut self.0));
    }

    /// Drops what was held. When the whole run ends, much of it is left over instead, and counted until that is dropped.
    pub(super) fn leave(&mut self, run: &mut Run<'_>, what: impl Send + 'static) {
        if run.is_ending && self.0 >= LEFT_BYTES_MIN {
            run.left_bytes += core::mem::take(&mut self.0);
            return run.left.push(Box::new(what));
        }
        drop(what);
        self.free(run);
    }
}

/// What takes longer than a moment to drop.
pub const LEFT_BYTES_MIN: usize = 1 << 20;

/// What is left of a run: rows by the hundred thousand, which take some ten milliseconds to drop. Whoever has to answer at once
/// drops them elsewhere.
pub struct Leftovers {
    left: Vec<Box<dyn Send>>,
    /// What is counted for them; it goes after them.
    memory: Memory,
}

impl Leftovers {
    pub(super) fn new(left: Vec<Box<dyn Send>>, memory: Memory) -> Self {
        Self { left, memory }
    }

    /// True if dropping it takes no time.
    pub fn is_small(&self) -> bool {
        self.left.is_empty()
            && self.memory.caches.values().all(|cache| cache.bytes < LEFT_BYTES_MIN)
    }
}

/// Rows that wait for their operator.
#[derive(Default)]
pub(super) struct Waiting {
    /// The next one is the last.
    rows: Vec<Row>,
    held: Held,
}

impl Waiting {
    /// Takes rows when there are none.
    pub(super) fn fill(&mut self, run: &mut Run<'_>, mut rows: Vec<Row>) -> Result<(), SqlError> {
        self.held.free(run);
        // Rows that are handed on together are few enough that the first may stand for all.
        let bytes = rows.first().map_or(0, |row| row_bytes(row));
        self.held.grow(run, rows.len() * bytes)?;
        rows.reverse();
        self.rows = rows;
        Ok(())
    }

    pub(super) fn pop(&mut self, run: &mut Run<'_>) -> Option<Row> {
        let row = self.rows.pop()?;
        // What came together is counted until all of it is gone: it is not much, and counting takes time.
        if self.rows.is_empty() {
            self.held.free(run);
        }
        Some(row)
    }

    pub(super) fn last(&self) -> Option<&Row> {
        self.rows.last()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub(super) fn clear(&mut self, run: &mut Run<'_>) {
        self.rows = Vec::new();
        self.held.free(run);
    }
}

/// How many go at once after so many: few were not enough.
pub(super) fn more_at_once(before: usize) -> usize {
    [16, 128].into_iter().find(|more| *more > before).unwrap_or(CHUNK_ROWS)
}

/// Rows that are handed on together.
pub(super) struct Chunk {
    rows: Vec<Row>,
    bytes: usize,
    rows_max: usize,
}

/// Rows that are handed on at once.
pub(super) const CHUNK_ROWS: usize = 1_024;
/// Bytes that are handed on at once, but for a row that is larger by itself.
const CHUNK_BYTES: usize = 256 << 10;

impl Chunk {
    /// Of one row where each row must be through with all operators before the next one begins.
    pub(super) fn new(run: &Run<'_>) -> Self {
        let rows_max = if run.one_by_one { 1 } else { CHUNK_ROWS };
        Self { rows: Vec::new(), bytes: 0, rows_max }
    }

    pub(super) fn push(&mut self, row: Row) {
        self.bytes += row_bytes(&row);
        self.rows.push(row);
    }

    pub(super) fn is_full(&self) -> bool {
        self.rows.len() >= self.rows_max || self.bytes >= CHUNK_BYTES
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The rows, or what a pause or the end is.
    pub(super) fn or(self, poll: super::Poll) -> super::Poll {
        match self.rows.is_empty() {
            true => poll,
            false => super::Poll::Rows(self.rows),
        }
    }
}
