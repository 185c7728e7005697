//! When which operation is due: drawn in advance from a seed, whatever the cluster answers and when. Arrivals are evenly spread, so that
//! each bin has its share; each comes at a drawn moment of its slot.

use super::Workload;
use crate::ycsb::Zipfian;
use lats_base::{hash::partition_hash, prng::Prng};

/// An operation that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrival {
    /// How long after the beginning, in ns.
    pub(super) due_ns: u64,
    /// It counts the row up; else it reads it.
    pub(super) updates: bool,
    pub(super) row: u64,
}

/// All arrivals, in order and without an end.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    workload: Workload,
    rows: u64,
    per_second: u64,
    zipfian: Zipfian,
    random: Prng,
    next: u64,
}

impl Schedule {
    pub(super) fn new(workload: Workload, rows: u64, per_second: u64, seed: u64) -> Self {
        let zipfian = Zipfian::new(rows);
        Self { workload, rows, per_second, zipfian, random: Prng::new(seed), next: 0 }
    }
}

impl Iterator for Schedule {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        let slot_begins =
            |slot: u64| (u128::from(slot) * 1_000_000_000 / u128::from(self.per_second)) as u64;
        let (begin, end) = (slot_begins(self.next), slot_begins(self.next + 1));
        self.next += 1;
        let due_ns = begin + self.random.below((end - begin).max(1));
        let (updates, row) = match self.workload {
            Workload::A => {
                let popular = self.zipfian.draw(&mut self.random);
                let row = partition_hash(&popular.to_be_bytes()) % self.rows;
                (self.random.chance(1, 2), row)
            }
            Workload::Lookups => (false, self.random.below(self.rows)),
        };
        Some(Arrival { due_ns, updates, row })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bin_has_its_share_and_a_seed_says_all() {
        let drawn = |seed| Schedule::new(Workload::A, 100, 3_000, seed);
        let some: Vec<Arrival> = drawn(1).take(9_000).collect();
        assert!(some.windows(2).all(|pair| pair[0].due_ns <= pair[1].due_ns));
        for bin in 0..300 {
            let in_bin = some.iter().filter(|a| a.due_ns / 10_000_000 == bin).count();
            assert!((29..=31).contains(&in_bin), "{in_bin} in bin {bin}");
        }
        let updates = some.iter().filter(|a| a.updates).count();
        assert!((4_200..4_800).contains(&updates), "{updates}");
        assert_eq!(some, drawn(1).take(9_000).collect::<Vec<_>>());
        assert_ne!(some, drawn(2).take(9_000).collect::<Vec<_>>());
    }

    #[test]
    fn look_ups_change_nothing_and_visit_all_rows() {
        let some: Vec<Arrival> = Schedule::new(Workload::Lookups, 50, 100, 1).take(2_000).collect();
        let rows: std::collections::BTreeSet<u64> = some.iter().map(|a| a.row).collect();
        assert!(rows.len() == 50 && some.iter().all(|a| !a.updates));
    }
}
