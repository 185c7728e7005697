//! Which record an operation is about. As in YCSB (B. Cooper and others: "Benchmarking Cloud Serving Systems with YCSB",
//! 2010): by Zipf's law, the popular ones anywhere in the table, or the newest ones most of all.

use lats_base::{hash::partition_hash, prng::Prng};
use std::{
    collections::BTreeSet,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// How uneven it is: YCSB's constant.
const THETA: f64 = 0.99;

/// Numbers by Zipf's law, 0 the most likely one. After J. Gray and others: "Quickly Generating Billion-Record Synthetic
/// Databases", 1994.
#[derive(Clone, Debug)]
pub(crate) struct Zipfian {
    items: u64,
    zeta: f64,
    eta: f64,
}

impl Zipfian {
    /// Of so many numbers, at least one.
    pub(crate) fn new(items: u64) -> Self {
        let items = items.max(1);
        let zeta = zeta(items);
        let eta = (1.0 - (2.0 / items as f64).powf(1.0 - THETA)) / (1.0 - zeta_of_two() / zeta);
        Self { items, zeta, eta }
    }

    pub(crate) fn draw(&self, random: &mut Prng) -> u64 {
        let part = (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        let place = part * self.zeta;
        if place < 1.0 {
            return 0;
        }
        if place < zeta_of_two() {
            return 1.min(self.items - 1);
        }
        let power = 1.0 / (1.0 - THETA);
        let drawn = self.items as f64 * (self.eta * part - self.eta + 1.0).powf(power);
        (drawn as u64).min(self.items - 1)
    }
}

fn zeta(items: u64) -> f64 {
    (1..=items).map(|item| (item as f64).powf(-THETA)).sum()
}

fn zeta_of_two() -> f64 {
    zeta(2)
}

/// The key of a record: in no order that has to do with when it was inserted.
pub(super) fn key(record: u64) -> Vec<u8> {
    format!("user{:020}", partition_hash(&record.to_le_bytes())).into_bytes()
}

/// The records that there are: those of the beginning, and those inserted since by all clients.
#[derive(Debug)]
pub(super) struct Records(Mutex<Inserted>);

#[derive(Debug)]
struct Inserted {
    next: u64,
    /// All records below this are there.
    there: u64,
    /// Others that are there.
    done: BTreeSet<u64>,
}

impl Records {
    pub(super) fn new(count: u64) -> Self {
        Self(Mutex::new(Inserted { next: count, there: count, done: BTreeSet::new() }))
    }

    fn inner(&self) -> MutexGuard<'_, Inserted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of a record that is to be inserted now.
    pub(super) fn begin_insert(&self) -> u64 {
        let mut inner = self.inner();
        inner.next += 1;
        inner.next - 1
    }

    /// It is there. (Where one has failed nobody reads beyond it.)
    pub(super) fn end_insert(&self, record: u64) {
        let mut inner = self.inner();
        inner.done.insert(record);
        while inner.done.first() == Some(&inner.there) {
            inner.done.pop_first();
            inner.there += 1;
        }
    }

    /// Records from 0 to below this are there.
    pub(super) fn there(&self) -> u64 {
        self.inner().there
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_popular_come_as_often_as_the_law_says() {
        for items in [1, 2, 3, 1_000] {
            let (zipfian, mut random) = (Zipfian::new(items), Prng::new(items));
            let mut counts = vec![0_u64; items as usize];
            const DRAWS: u64 = 200_000;
            (0..DRAWS).for_each(|_| counts[zipfian.draw(&mut random) as usize] += 1);
            for (item, count) in counts.iter().enumerate().take(2) {
                let wanted = (item as f64 + 1.0).powf(-THETA) / zeta(items);
                let part = *count as f64 / DRAWS as f64;
                assert!((part - wanted).abs() < 0.01, "{item} of {items}: {part} not {wanted}");
            }
            // The method is exact for the first two only.
            let tenth: u64 = counts.iter().take(items as usize / 10).sum();
            let wanted = zeta(items / 10) / zeta(items);
            let part = tenth as f64 / DRAWS as f64;
            assert!(items < 10 || (part - wanted).abs() < 0.03, "{part} not {wanted}");
        }
    }

    #[test]
    fn records_are_there_when_all_before_them_are() {
        let records = Records::new(10);
        let (first, second, third) =
            (records.begin_insert(), records.begin_insert(), records.begin_insert());
        assert_eq!((first, second, third), (10, 11, 12));
        records.end_insert(second);
        assert_eq!(records.there(), 10);
        records.end_insert(first);
        assert_eq!(records.there(), 12);
        records.end_insert(third);
        assert_eq!(records.there(), 13);
    }
}
