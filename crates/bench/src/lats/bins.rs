//! What was done in each 10 ms. Answers and errors count when they came; latencies count where the operation was due, so that a bin shows
//! what its operations had to wait.

use super::load::{End, Record};
use lats_base::{Duration, Instant};
use serde_json::{Value, json};

/// How long a bin is.
pub(super) const WIDTH: Duration = Duration::from_millis(10);

/// One of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Bin {
    /// Operations that were due.
    pub(super) due: u64,
    /// Answers that came.
    pub(super) answers: u64,
    /// Updates among those.
    pub(super) commits: u64,
    /// Operations that failed, or of which nobody knows.
    pub(super) errors: u64,
    /// Operations that were due, and were not sent.
    pub(super) unsent: u64,
    /// Further attempts of those that were due.
    pub(super) retries: u64,
    /// Of those that were due and answered, in us: 50 %, 99 %, all.
    pub(super) latency_us: [u64; 3],
}

/// A whole number of bins.
pub(super) fn bins(records: &[Record], begun: Instant, until: Instant) -> Vec<Bin> {
    let count = (until.since(begun).as_nanos() / WIDTH.as_nanos()) as usize;
    let mut bins = vec![Bin::default(); count];
    let mut latencies: Vec<Vec<u64>> = vec![Vec::new(); count];
    let at = |time: Instant| (time.since(begun).as_nanos() / WIDTH.as_nanos()) as usize;
    for record in records {
        if let Some(bin) = bins.get_mut(at(record.due)) {
            bin.due += 1;
            bin.retries += u64::from(record.retries);
        }
        if let Some(bin) = bins.get_mut(at(record.ended)) {
            match record.end {
                End::Done => {
                    bin.answers += 1;
                    bin.commits += u64::from(record.updates);
                }
                End::Refused | End::Unknown => bin.errors += 1,
                End::Unsent => bin.unsent += 1,
            }
        }
        if let (End::Done, Some(latencies)) = (record.end, latencies.get_mut(at(record.due))) {
            latencies.push(record.ended.since(record.due).as_nanos() / 1_000);
        }
    }
    for (bin, latencies) in bins.iter_mut().zip(&mut latencies) {
        latencies.sort_unstable();
        bin.latency_us = [0.5, 0.99, 1.0].map(|part| quantile(latencies, part).unwrap_or_default());
    }
    bins
}

/// The smallest of these, which are in order, that this part of all does not exceed.
pub(super) fn quantile<T: Copy>(sorted: &[T], part: f64) -> Option<T> {
    let rank = (part * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.clamp(1, sorted.len().max(1)) - 1).copied()
}

/// Column by column.
pub(super) fn as_json(bins: &[Bin]) -> Value {
    let column = |of: fn(&Bin) -> u64| bins.iter().map(of).collect::<Vec<u64>>();
    json!({
        "width_ms": WIDTH.as_millis(),
        "count": bins.len(),
        "due": column(|b| b.due),
        "answers": column(|b| b.answers),
        "commits": column(|b| b.commits),
        "errors": column(|b| b.errors),
        "unsent": column(|b| b.unsent),
        "retries": column(|b| b.retries),
        "p50_us": column(|b| b.latency_us[0]),
        "p99_us": column(|b| b.latency_us[1]),
        "max_us": column(|b| b.latency_us[2]),
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// An operation due and ended so many ms after the beginning.
    pub(in super::super) fn record(due: u64, ended: u64, updates: bool, end: End) -> Record {
        let at = |ms: u64| Instant::ZERO.plus(Duration::from_millis(ms));
        Record { due: at(due), sent: at(due), ended: at(ended), updates, retries: 0, end }
    }

    #[test]
    fn answers_count_when_they_come_and_latencies_where_they_were_due() {
        let records = [
            record(1, 2, false, End::Done),
            record(5, 25, true, End::Done),
            record(11, 12, true, End::Refused),
            record(12, 22, true, End::Unknown),
            record(21, 21, false, End::Unsent),
            record(25, 99, false, End::Done),
        ];
        let bins = bins(&records, Instant::ZERO, Instant::ZERO.plus(Duration::from_millis(30)));
        let counts: Vec<_> =
            bins.iter().map(|b| [b.due, b.answers, b.commits, b.errors, b.unsent]).collect();
        assert_eq!(counts, [[2, 1, 0, 0, 0], [2, 0, 0, 1, 0], [2, 1, 1, 1, 1]]);
        assert_eq!(bins[0].latency_us, [1_000, 20_000, 20_000]);
        assert_eq!(bins[1].latency_us, [0, 0, 0]);
        assert_eq!(bins[2].latency_us, [74_000; 3]);
    }

    #[test]
    fn quantiles_are_of_what_was_seen() {
        let some: Vec<u64> = (1..=20).collect();
        let parts = [0.0, 0.5, 0.95, 0.99, 1.0].map(|part| quantile(&some, part));
        assert_eq!(parts, [Some(1), Some(10), Some(19), Some(20), Some(20)]);
        assert_eq!(quantile::<u64>(&[], 0.5), None);
    }
}
