//! AUTO_INCREMENT values, from ranges that this process has reserved.

use crate::error::Failure;
use crate::session::{Session, Shared};
use crate::store::Store;
use lats_base::TableId;

/// Values reserved at once.
const RESERVED: u64 = 512;

/// What this process knows of a table's sequence.
#[derive(Clone, Debug, Default)]
pub struct Cached {
    next: u64,
    end: u64,
    /// The sequence goes on above this for sure.
    floor: u64,
}

impl Cached {
    fn take(&mut self, count: u64) -> Option<u64> {
        let first = self.next;
        let after = first.checked_add(count)?;
        if after > self.end {
            return None;
        }
        self.next = after;
        Some(first)
    }
}

impl<S: Store> Shared<S> {
    fn cached<T>(&self, table: TableId, work: impl FnOnce(&mut Cached) -> T) -> T {
        work(self.sequences().entry(table).or_default())
    }
}

impl<S: Store> Session<S> {
    /// The first of `count` values in a row that nobody else gets. They must be in a row: clients
    /// compute the keys of a multi-row INSERT from the first.
    pub(crate) async fn generate(&mut self, table: TableId, count: u64) -> Result<u64, Failure> {
        let cached = self.shared.cached(table, |cached| cached.take(count));
        if let Some(first) = cached {
            return Ok(first);
        }
        let wanted = count.max(RESERVED).saturating_add(1);
        let range = self.shared.store.reserve_sequence(table, wanted).await?;
        let first = range.start.max(1);
        self.shared.cached(table, |cached| {
            cached.floor = cached.floor.max(range.end.saturating_sub(1));
            let rest = first.saturating_add(count);
            // Another session may have reserved in the meantime: the later range is kept.
            if rest >= cached.end {
                cached.next = rest;
                cached.end = range.end.max(rest);
            }
        });
        Ok(first)
    }

    /// Values that were given explicitly are not generated later.
    pub(crate) async fn observe(&mut self, table: TableId, value: u64) -> Result<(), Failure> {
        let known = self.shared.cached(table, |cached| {
            if value >= cached.next && cached.next < cached.end {
                cached.next = (value + 1).min(cached.end);
            }
            value <= cached.floor
        });
        if known {
            return Ok(());
        }
        self.shared.store.raise_sequence(table, value).await?;
        self.shared.cached(table, |cached| {
            cached.floor = cached.floor.max(value);
            if cached.next <= value {
                cached.next = cached.end;
            }
        });
        Ok(())
    }
}
