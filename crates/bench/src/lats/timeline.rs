//! The records of a load, in the orders in which figures ask for them: each figure looks at its own span, and at no other.

use super::load::{End, Record};
use lats_base::Instant;

/// What was sent then or later was answered first at these times.
#[derive(Clone, Copy, Debug)]
struct First {
    sent: Instant,
    answer: Instant,
    commit: Instant,
}

const NEVER: Instant = Instant::from_nanos(u64::MAX);

/// Records of operations.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    /// As they were due.
    records: Vec<Record>,
    /// Those that were answered, as they were: places in `records`.
    answered: Vec<usize>,
    /// The same, as they were sent.
    firsts: Vec<First>,
    updates: bool,
}

impl Timeline {
    pub(super) fn new(mut records: Vec<Record>) -> Self {
        records.sort_unstable_by_key(|r| r.due);
        let done = |at: &usize| records[*at].end == End::Done;
        let mut answered: Vec<usize> = (0..records.len()).filter(done).collect();
        answered.sort_unstable_by_key(|at| records[*at].sent);
        let (mut answer, mut commit) = (NEVER, NEVER);
        let backwards = answered.iter().rev().map(|at| {
            let Record { sent, ended, updates, .. } = records[*at];
            answer = answer.min(ended);
            commit = if updates { commit.min(ended) } else { commit };
            First { sent, answer, commit }
        });
        let mut firsts: Vec<First> = backwards.collect();
        firsts.reverse();
        answered.sort_unstable_by_key(|at| records[*at].ended);
        let updates = records.iter().any(|r| r.updates);
        Self { records, answered, firsts, updates }
    }

    /// All, as they were due.
    pub(super) fn all(&self) -> &[Record] {
        &self.records
    }

    /// Those that were due from one moment on, before another.
    pub(super) fn due(&self, (from, until): (Instant, Instant)) -> &[Record] {
        let place = |at: Instant| self.records.partition_point(|r| r.due < at);
        let (from, until) = (place(from), place(until));
        self.records.get(from..until).unwrap_or_default()
    }

    /// Those that were answered from one moment on, before another, in this order.
    pub(super) fn answered(
        &self,
        (from, until): (Instant, Instant),
    ) -> impl Iterator<Item = &Record> {
        let place = |at: Instant| self.answered.partition_point(|r| self.records[*r].ended < at);
        let some = self.answered.get(place(from)..place(until)).unwrap_or_default();
        some.iter().map(|at| &self.records[*at])
    }

    /// As [`Self::answered`]; but if anything is updated at all, of updates alone.
    pub(super) fn acknowledged(&self, span: (Instant, Instant)) -> impl Iterator<Item = &Record> {
        self.answered(span).filter(|r| r.updates || !self.updates)
    }

    /// When the first operation was answered that was sent then or later.
    pub(super) fn first_answer(&self, sent: Instant) -> Option<Instant> {
        self.first(sent, |first| first.answer)
    }

    /// When the first update was acknowledged that was sent then or later.
    pub(super) fn first_commit(&self, sent: Instant) -> Option<Instant> {
        self.first(sent, |first| first.commit)
    }

    fn first(&self, sent: Instant, of: fn(&First) -> Instant) -> Option<Instant> {
        let place = self.firsts.partition_point(|first| first.sent < sent);
        self.firsts.get(place).map(of).filter(|at| *at != NEVER)
    }
}

#[cfg(test)]
mod tests {
    use super::{super::bins::tests::record, *};
    use lats_base::{Duration, prng::Prng};

    fn at(ms: u64) -> Instant {
        Instant::ZERO.plus(Duration::from_millis(ms))
    }

    /// Operations in no order, some without an answer.
    fn some(seed: u64) -> Vec<Record> {
        let mut random = Prng::new(seed);
        let one = |_| {
            let due = random.below(50);
            let end = [End::Done, End::Done, End::Unknown, End::Open][random.below(4) as usize];
            record(due, due + random.below(30), random.chance(1, 2), end)
        };
        (0..40).map(one).collect()
    }

    #[test]
    fn each_span_has_what_a_look_at_all_records_finds() {
        for seed in 0..50 {
            let all = some(seed);
            let timeline = Timeline::new(all.clone());
            for (from, until) in [(0, 100), (10, 20), (20, 10), (33, 34), (90, 99)] {
                let (from, until) = (at(from), at(until));
                let due = all.iter().filter(|r| r.due >= from && r.due < until).count();
                assert_eq!(timeline.due((from, until)).len(), due);
                let done = all.iter().filter(|r| r.end == End::Done);
                let mut ends: Vec<Instant> = done.clone().map(|r| r.ended).collect();
                ends.retain(|ended| *ended >= from && *ended < until);
                ends.sort_unstable();
                let found = timeline.answered((from, until)).map(|r| r.ended);
                assert_eq!(found.collect::<Vec<_>>(), ends);
                let sent = done.filter(|r| r.sent >= from);
                let commits = sent.clone().filter(|r| r.updates);
                assert_eq!(timeline.first_answer(from), sent.map(|r| r.ended).min());
                assert_eq!(timeline.first_commit(from), commits.map(|r| r.ended).min());
            }
        }
    }
}
