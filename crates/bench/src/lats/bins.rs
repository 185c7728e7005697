//! What was done in each 10 ms. Answers and errors count when they came; latencies count where the operation was due, so that a bin shows
//! what its operations had to wait.

use super::{
    load::{End, Record},
    spread::Spread,
    timeline::Timeline,
};
use lats_base::{Duration, Instant};
use serde_json::{Value, json};
use std::ops::Range;

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
    /// Operations that were due, and had not come back when nobody waited any longer.
    pub(super) open: u64,
    /// Further attempts of those that were due.
    pub(super) retries: u64,
    /// Of those that were due and answered, in us.
    pub(super) latency_us: Spread<u64>,
}

/// The bin that has this moment.
pub(super) fn number(at: Instant, begun: Instant) -> usize {
    (at.since(begun).as_nanos() / WIDTH.as_nanos()) as usize
}

/// How many answers came in each of some bins.
pub(super) fn answers(timeline: &Timeline, begun: Instant, bins: Range<usize>) -> Vec<u64> {
    let edge = |bin: usize| begun.plus(Duration::from_nanos(bin as u64 * WIDTH.as_nanos()));
    let mut counts = vec![0; bins.len()];
    for record in timeline.answered((edge(bins.start), edge(bins.end))) {
        if let Some(count) = counts.get_mut(number(record.ended, begun) - bins.start) {
            *count += 1;
        }
    }
    counts
}

/// A whole number of bins.
pub(super) fn bins(records: &[Record], begun: Instant, until: Instant) -> Vec<Bin> {
    let count = number(until, begun);
    let mut bins = vec![Bin::default(); count];
    let mut latencies: Vec<Vec<u64>> = vec![Vec::new(); count];
    let at = |time: Instant| number(time, begun);
    for record in records {
        if let Some(bin) = bins.get_mut(at(record.due)) {
            bin.due += 1;
            bin.retries += u64::from(record.retries);
            bin.unsent += u64::from(record.end == End::Unsent);
            bin.open += u64::from(record.end == End::Open);
        }
        if let Some(bin) = bins.get_mut(at(record.ended)) {
            match record.end {
                End::Done => {
                    bin.answers += 1;
                    bin.commits += u64::from(record.updates);
                }
                End::Refused | End::Unknown => bin.errors += 1,
                End::Unsent | End::Open => {}
            }
        }
        if let (End::Done, Some(latencies)) = (record.end, latencies.get_mut(at(record.due))) {
            latencies.push(record.ended.since(record.due).as_nanos() / 1_000);
        }
    }
    for (bin, latencies) in bins.iter_mut().zip(&mut latencies) {
        latencies.sort_unstable();
        bin.latency_us = Spread::of(latencies).unwrap_or_default();
    }
    bins
}

/// Column by column. Where too few operations were due, a bin has no 99 %.
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
        "open": column(|b| b.open),
        "retries": column(|b| b.retries),
        "p50_us": column(|b| b.latency_us.median),
        "p99_us": bins.iter().map(|b| b.latency_us.p99).collect::<Vec<_>>(),
        "max_us": column(|b| b.latency_us.worst),
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
            record(26, 29, true, End::Open),
        ];
        let bins = bins(&records, Instant::ZERO, Instant::ZERO.plus(Duration::from_millis(30)));
        let counts: Vec<_> = bins
            .iter()
            .map(|b| [b.due, b.answers, b.commits, b.errors, b.unsent, b.open])
            .collect();
        assert_eq!(counts, [[2, 1, 0, 0, 0, 0], [2, 0, 0, 1, 0, 0], [3, 1, 1, 1, 1, 1]]);
        let latencies: Vec<_> =
            bins.iter().map(|b| [b.latency_us.median, b.latency_us.worst]).collect();
        assert_eq!(latencies, [[1_000, 20_000], [0, 0], [74_000, 74_000]]);
        let counted: Vec<u64> = bins.iter().map(|b| b.answers).collect();
        let timeline = Timeline::new(records.to_vec());
        assert_eq!(answers(&timeline, Instant::ZERO, 0..3), counted);
        assert_eq!(answers(&timeline, Instant::ZERO, 2..3), counted[2..]);
    }
}
