//! Benchmarks of a running cluster, through its own clients. A benchmark reports; it is no test.
#![forbid(unsafe_code)]

mod draw;
pub mod flex;
pub mod keys;
pub mod lats;
pub mod layouts;
mod measure;
mod mysql;
mod native;
mod patience;
pub mod report;
mod threads;
pub mod ycsb;

use lats_base::{Instant, prng::Prng};
use lats_client::net::ClientOptions;

/// Where the cluster is, and how to tell the time.
#[derive(Clone, Debug)]
pub struct Place {
    /// How its clients find it.
    pub options: ClientOptions,
    /// A monotonic clock.
    pub clock: fn() -> Instant,
}

impl Place {
    /// The same place for another run: its clients must not give transactions the ids of an earlier run's.
    fn with_new_clients(&self, run: u64) -> Self {
        let mut place = self.clone();
        place.options.seed = Prng::new(self.options.seed.wrapping_add(run)).next_u64();
        place
    }
}

/// How long the cluster may take to answer at first.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(10);

/// So many different numbers below `own`, which must not be less: from a random one on, with a random step between
/// them, so that rows which were inserted together are not visited together.
fn distinct(count: u64, own: u64, random: &mut Prng) -> impl Iterator<Item = u64> + use<> {
    let (first, step) = (random.below(own), 1 + random.below(own / count));
    (0..count).map(move |number| (first + number * step) % own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_rows_of_a_transaction_are_different_ones() {
        let mut random = Prng::new(1);
        let mut visited = BTreeSet::new();
        for (count, own) in [(1, 1), (32, 32), (32, 33), (32, 1_000), (100, 199)] {
            for _ in 0..200 {
                let drawn: BTreeSet<u64> = distinct(count, own, &mut random).collect();
                assert_eq!(drawn.len() as u64, count, "{count} of {own}");
                assert!(drawn.iter().all(|at| *at < own));
                visited.extend(drawn.into_iter().filter(|_| own == 1_000));
            }
        }
        assert!(visited.len() > 950, "{} of 1000 rows visited", visited.len());
    }
}
