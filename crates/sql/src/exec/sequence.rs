//! AUTO_INCREMENT values, from ranges that this process has reserved.

use crate::error::Failure;
use crate::session::{Session, Shared};
use crate::store::Store;
use lats_base::TableId;
use std::sync::PoisonError;

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

impl<S: Store> Shared<S> {
    fn cached<T>(&self, table: TableId, work: impl FnOnce(&mut Cached) -> T) -> T {
        let mut all = self.sequences.lock().unwrap_or_else(PoisonError::into_inner);
        work(all.entry(table).or_default())
    }
}

impl<S: Store> Session<S> {
    /// `count` values that nobody else gets, ascending, not always in a row.
    pub(crate) async fn generate(
        &mut self,
        table: TableId,
        count: u64,
    ) -> Result<Vec<u64>, Failure> {
        let mut values = Vec::new();
        loop {
            self.shared.cached(table, |cached| {
                while cached.next < cached.end && (values.len() as u64) < count {
                    values.push(cached.next);
                    cached.next += 1;
                }
            });
            let missing = count - values.len() as u64;
            if missing == 0 {
                return Ok(values);
            }
            let range = self.shared.store.reserve_sequence(table, missing.max(RESERVED)).await?;
            self.shared.cached(table, |cached| {
                cached.floor = cached.floor.max(range.end.saturating_sub(1));
                // Another session may have reserved in the meantime: the later range is kept.
                if range.start >= cached.end {
                    cached.next = range.start.max(1);
                    cached.end = range.end;
                }
            });
        }
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
