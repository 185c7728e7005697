//! Requests for ranges of an index that go together: one scan reads for many of them, and numbers what it finds.

use super::fetch::{SCANS_AT_ONCE, all, decode, scan};
use crate::error::Failure;
use crate::plan::query::QueryPlan;
use crate::session::{Running, Session};
use crate::store::Store;
use lats_client::api::{KeyRange, LockMode, StoreError};
use lats_client::batch::ScanBatch;
use lats_engine::run::{Answer, AskId, Row};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What one request wants of an index.
pub(super) struct Wanted {
    pub(super) id: AskId,
    pub(super) request: u32,
    pub(super) source: usize,
    pub(super) ranges: Vec<KeyRange>,
    /// What data nodes run.
    pub(super) program: Arc<[u8]>,
}

/// An ask, and which of its requests.
type Taker = (AskId, u32);
/// Ranges, and whom each is for.
type Part = Vec<(KeyRange, Taker)>;

/// A scan for many requests.
struct Group<S: Store> {
    source: usize,
    running: Running<S>,
    /// Whom the rows of each range are for.
    takers: Vec<Vec<Taker>>,
    ids: BTreeSet<AskId>,
    is_done: bool,
}

/// All scans for many requests.
pub(super) struct Together<S: Store> {
    groups: Vec<Group<S>>,
}

/// What was read.
#[derive(Default)]
pub(super) struct ReadTogether {
    pub(super) answers: BTreeMap<AskId, Answer>,
    /// How many rows of each source.
    pub(super) rows: BTreeMap<usize, usize>,
    /// How often data nodes were waited for.
    pub(super) trips: usize,
}

/// Ranges of one scan.
const RANGES_AT_ONCE: usize = 4_096;
/// Rows that are answered at once, about, by all scans that are waited for together.
const ROWS_AT_ONCE: usize = 4_096;

impl<S: Store> Together<S> {
    pub(super) fn new() -> Self {
        Self { groups: Vec::new() }
    }

    /// True if there may be more rows for an ask.
    pub(super) fn has_more(&self, id: AskId) -> bool {
        self.groups.iter().any(|group| group.ids.contains(&id))
    }

    /// Nobody wants more rows of an ask.
    pub(super) fn close(&mut self, id: AskId) {
        for group in &mut self.groups {
            group.ids.remove(&id);
        }
        self.groups.retain(|group| !group.ids.is_empty());
    }

    /// Begins scans for all of these.
    pub(super) fn begin(&mut self, session: &mut Session<S>, plan: &QueryPlan, all: Vec<Wanted>) {
        let mut parts: BTreeMap<(usize, Arc<[u8]>), Part> = BTreeMap::new();
        for Wanted { id, request, source, ranges, program } in all {
            let part = parts.entry((source, program)).or_default();
            part.extend(ranges.into_iter().map(|range| (range, (id, request))));
        }
        for ((source, program), mut part) in parts {
            part.sort_unstable_by(|(a, _), (b, _)| (&a.lower, &a.upper).cmp(&(&b.lower, &b.upper)));
            while !part.is_empty() {
                let (ranges, takers, rest) = apart(part);
                part = rest;
                let ids = takers.iter().flatten().map(|(id, _)| *id).collect();
                let Some(of) = plan.sources.get(source) else { continue };
                let mut scan = scan(of, ranges, program.clone(), LockMode::Committed);
                scan.first_of_range = of.one_is_enough;
                let running = session.start_scan(scan);
                self.groups.push(Group { source, running, takers, ids, is_done: false });
            }
        }
    }

    /// True if nothing is read for many asks.
    pub(super) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Reads on for those who ask; the answers are for all who take part. Scans are waited for together.
    pub(super) async fn go_on(
        &mut self,
        plan: &QueryPlan,
        asking: &[AskId],
    ) -> Result<ReadTogether, Failure> {
        let mut done = ReadTogether::default();
        let asked =
            self.groups.iter_mut().filter(|group| asking.iter().any(|id| group.ids.contains(id)));
        let mut asked: Vec<&mut Group<S>> = asked.collect();
        for part in asked.chunks_mut(SCANS_AT_ONCE) {
            let enough = ROWS_AT_ONCE.div_ceil(part.len());
            done.trips += 1;
            let read = all(part.iter_mut().map(|group| group.read(enough))).await;
            for (group, batches) in part.iter().zip(read) {
                for batch in batches? {
                    group.hand_out(plan, &batch, &mut done);
                }
                for id in &group.ids {
                    done.answers.entry(*id).or_default();
                }
            }
        }
        self.groups.retain(|group| !group.is_done);
        Ok(done)
    }
}

impl<S: Store> Group<S> {
    /// Reads some rows: so many are enough.
    async fn read(&mut self, enough: usize) -> Result<Vec<ScanBatch>, StoreError> {
        let (mut batches, mut rows) = (Vec::new(), 0);
        while rows < enough {
            let Some(batch) = self.running.next().await? else {
                self.is_done = true;
                break;
            };
            rows += batch.len();
            batches.push(batch);
        }
        Ok(batches)
    }

    /// Gives rows to those whose ranges they are in.
    fn hand_out(&self, plan: &QueryPlan, batch: &ScanBatch, done: &mut ReadTogether) {
        let Some(source) = plan.sources.get(self.source) else { return };
        *done.rows.entry(self.source).or_insert(0) += batch.len();
        for found in batch.iter() {
            let takers = self.takers.get(found.range as usize);
            let takers = takers.into_iter().flatten().filter(|(id, _)| self.ids.contains(id));
            let mut row: Option<Row> = None;
            for (id, request) in takers {
                let row = row.get_or_insert_with(|| decode(source, found.row)).clone();
                done.answers.entry(*id).or_default().rows.push((*request, row));
            }
        }
    }
}

/// Ranges that do not overlap and whom each is for, of sorted ones; and the rest.
fn apart(sorted: Part) -> (Vec<KeyRange>, Vec<Vec<Taker>>, Part) {
    let (mut ranges, mut takers, mut rest) = (Vec::<KeyRange>::new(), Vec::new(), Vec::new());
    for (range, taker) in sorted {
        match (ranges.last(), takers.last_mut()) {
            (Some(last), Some(of_last)) if *last == range => {
                let of_last: &mut Vec<Taker> = of_last;
                of_last.push(taker);
            }
            (Some(last), _)
                if ranges.len() >= RANGES_AT_ONCE
                    || last.upper.as_ref().is_none_or(|upper| range.lower < *upper) =>
            {
                rest.push((range, taker));
            }
            _ => {
                ranges.push(range);
                takers.push(Vec::from([taker]));
            }
        }
    }
    (ranges, takers, rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_one_scan_do_not_overlap() {
        let range = |lower: u8, upper: Option<u8>| KeyRange {
            lower: vec![lower],
            upper: upper.map(|upper| vec![upper]),
        };
        let all = [
            range(1, Some(2)),
            range(1, Some(2)),
            range(2, Some(5)),
            range(3, Some(4)),
            range(4, None),
            range(9, None),
        ];
        let mut part: Part = (0..).zip(all).map(|(n, range)| (range, (AskId(7), n))).collect();
        let mut scans = Vec::new();
        while !part.is_empty() {
            let (ranges, takers, rest) = apart(part);
            assert_eq!(ranges.len(), takers.len());
            let of = |of: &Vec<(AskId, u32)>| of.iter().map(|(_, n)| *n).collect::<Vec<_>>();
            scans.push(takers.iter().map(of).collect::<Vec<_>>());
            part = rest;
        }
        assert_eq!(scans, [vec![vec![0, 1], vec![2], vec![5]], vec![vec![3], vec![4]]]);
    }
}
