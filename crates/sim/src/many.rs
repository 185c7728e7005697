//! Many runs, on several threads.

use crate::{Counts, Kind, Options, Outcome, planted::Planted, run_caught};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Which runs.
#[derive(Clone, Copy, Debug)]
pub struct Many {
    /// The first seed; the others follow it.
    pub first: u64,
    /// So many of them at most.
    pub seeds: u64,
    /// Of this kind.
    pub kind: Kind,
    /// With this bug: the first run that fails ends the search.
    pub bug: Option<&'static Planted>,
    /// Each seed twice: both runs must be the same.
    pub twice: bool,
    /// Print what happens.
    pub verbose: bool,
    /// Threads.
    pub jobs: u64,
}

/// What came of them.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// What they have counted.
    pub counts: Counts,
    /// Seeds that failed, and why.
    pub failures: Vec<(u64, String)>,
}

impl Many {
    /// Runs them, until it is over.
    pub fn run(&self, is_over: &(dyn Fn() -> bool + Sync)) -> Totals {
        let (next, found) = (AtomicU64::new(0), AtomicBool::new(false));
        let mut totals = Totals::default();
        std::thread::scope(|scope| {
            let work = || {
                let mut own = Totals::default();
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= self.seeds || found.load(Ordering::Relaxed) || is_over() {
                        return own;
                    }
                    let seed = self.first.wrapping_add(index);
                    let outcome = self.one(seed);
                    own.counts.add(&outcome.counts);
                    if let Some(failure) = outcome.failure {
                        own.failures.push((seed, failure));
                        found.store(self.bug.is_some(), Ordering::Relaxed);
                    }
                }
            };
            let workers: Vec<_> = (0..self.jobs.max(1)).map(|_| scope.spawn(work)).collect();
            for worker in workers {
                match worker.join() {
                    Ok(own) => {
                        totals.counts.add(&own.counts);
                        totals.failures.extend(own.failures);
                    }
                    Err(_) => totals.failures.push((0, "a worker panicked".to_string())),
                }
            }
        });
        totals.failures.sort();
        totals
    }

    fn one(&self, seed: u64) -> Outcome {
        let Self { bug, kind, verbose, .. } = *self;
        let options = Options { seed, bug, kind, verbose };
        let mut outcome = run_caught(&options);
        if self.twice && outcome.failure.is_none() {
            let again = run_caught(&options);
            if again.digest != outcome.digest {
                outcome.failure = Some("the same seed gave another run".to_string());
            }
        }
        outcome
    }
}
