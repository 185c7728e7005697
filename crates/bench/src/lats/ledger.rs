//! What clients were told of each row's counter, and whether the counters agree with it. Nothing that was acknowledged may be missing, at
//! the end or in any read; and nothing may be there that nobody has asked for, or that was refused.

use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// Of one row.
#[derive(Debug, Default)]
struct Counter {
    begun: AtomicU64,
    acknowledged: AtomicU64,
    refused: AtomicU64,
}

/// Of all rows.
#[derive(Debug)]
pub(super) struct Ledger {
    rows: Vec<Counter>,
    reads: AtomicU64,
    stale: AtomicU64,
    ahead: AtomicU64,
    missing: AtomicU64,
}

impl Ledger {
    pub(super) fn new(rows: u64) -> Self {
        let none = AtomicU64::default;
        let rows = (0..rows).map(|_| Counter::default()).collect();
        Self { rows, reads: none(), stale: none(), ahead: none(), missing: none() }
    }

    fn add(&self, row: u64, which: impl Fn(&Counter) -> &AtomicU64) {
        if let Some(counter) = self.rows.get(row as usize) {
            which(counter).fetch_add(1, SeqCst);
        }
    }

    /// A row will be counted up, once.
    pub(super) fn begin(&self, row: u64) {
        self.add(row, |counter| &counter.begun);
    }

    /// It was.
    pub(super) fn acknowledge(&self, row: u64) {
        self.add(row, |counter| &counter.acknowledged);
    }

    /// It was not, for certain.
    pub(super) fn refuse(&self, row: u64) {
        self.add(row, |counter| &counter.refused);
    }

    /// What a read that begins now must show at least.
    pub(super) fn floor(&self, row: u64) -> u64 {
        self.rows.get(row as usize).map_or(0, |c| c.acknowledged.load(SeqCst))
    }

    /// A read has shown so much (none: no row), and `floor` was due.
    pub(super) fn note_read(&self, row: u64, floor: u64, shown: Option<u64>) {
        self.reads.fetch_add(1, SeqCst);
        let begun = self.rows.get(row as usize).map_or(0, |c| c.begun.load(SeqCst));
        match shown {
            None => drop(self.missing.fetch_add(1, SeqCst)),
            Some(n) if n < floor => drop(self.stale.fetch_add(1, SeqCst)),
            Some(n) if n > begun => drop(self.ahead.fetch_add(1, SeqCst)),
            Some(_) => {}
        }
    }

    /// An update has found no row.
    pub(super) fn note_missing(&self) {
        self.missing.fetch_add(1, SeqCst);
    }

    /// Compares with all rows, as they are at the end: number and counter.
    pub(super) fn check(&self, found: &[(u64, u64)]) -> Verdict {
        let load = |counter: &AtomicU64| counter.load(SeqCst);
        let sum = |of: fn(&Counter) -> &AtomicU64| self.rows.iter().map(|c| load(of(c))).sum();
        let mut verdict = Verdict {
            rows: found.len() as u64,
            begun: sum(|c| &c.begun),
            acknowledged: sum(|c| &c.acknowledged),
            refused: sum(|c| &c.refused),
            reads: load(&self.reads),
            reads_that_miss: load(&self.stale),
            reads_of_too_much: load(&self.ahead),
            rows_not_found: load(&self.missing),
            ..Verdict::default()
        };
        let mut there = vec![None; self.rows.len()];
        for (row, n) in found {
            match there.get_mut(*row as usize) {
                Some(place) => *place = Some(*n),
                None => verdict.too_many += 1,
            }
        }
        for (row, (counter, there)) in self.rows.iter().zip(there).enumerate() {
            let (least, refused) = (load(&counter.acknowledged), load(&counter.refused));
            let most = load(&counter.begun).saturating_sub(refused);
            verdict.note(row, there, least, most);
        }
        verdict
    }
}

/// What the ledger says at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) rows: u64,
    pub(super) begun: u64,
    pub(super) acknowledged: u64,
    pub(super) refused: u64,
    pub(super) reads: u64,
    /// Acknowledged, and not there at the end.
    pub(super) lost: u64,
    /// There, and refused or never asked for.
    pub(super) too_many: u64,
    pub(super) reads_that_miss: u64,
    pub(super) reads_of_too_much: u64,
    pub(super) rows_not_found: u64,
    pub(super) example: Option<String>,
}

impl Verdict {
    fn note(&mut self, row: usize, there: Option<u64>, least: u64, most: u64) {
        let n = there.unwrap_or_default();
        self.rows_not_found += u64::from(there.is_none());
        self.lost += least.saturating_sub(n);
        self.too_many += n.saturating_sub(most);
        if there.is_none() || n < least || n > most {
            let shown = there.map_or("is not there".to_string(), |n| format!("is at {n}"));
            self.example.get_or_insert_with(|| {
                format!("row {row} {shown}: {least} acknowledged, {most} at most")
            });
        }
    }

    /// True if nothing contradicts what clients were told.
    pub(super) fn is_right(&self) -> bool {
        let wrong = [self.lost, self.too_many, self.reads_that_miss, self.reads_of_too_much];
        wrong.iter().all(|count| *count == 0) && self.rows_not_found == 0
    }

    pub(super) fn as_json(&self) -> Value {
        json!({
            "right": self.is_right(),
            "rows": self.rows,
            "updates": self.begun,
            "acknowledged": self.acknowledged,
            "refused": self.refused,
            "unknown": self.begun - self.acknowledged - self.refused,
            "reads": self.reads,
            "lost": self.lost,
            "too_many": self.too_many,
            "reads_that_miss_acknowledged": self.reads_that_miss,
            "reads_of_what_nobody_wrote": self.reads_of_too_much,
            "rows_not_found": self.rows_not_found,
            "example": self.example,
        })
    }

    /// For a person.
    pub(super) fn words(&self) -> String {
        if self.is_right() {
            return format!(
                "ledger: right; {} acknowledged updates are there, {} reads missed none, {} updates were refused, of {} nobody knows",
                self.acknowledged,
                self.reads,
                self.refused,
                self.begun - self.acknowledged - self.refused
            );
        }
        format!(
            "ledger: WRONG; {} acknowledged updates are lost, {} are there that were refused or never asked for, {} reads missed some, \
             {} showed too much, {} rows were not found; e.g. {}",
            self.lost,
            self.too_many,
            self.reads_that_miss,
            self.reads_of_too_much,
            self.rows_not_found,
            self.example.as_deref().unwrap_or("only in reads")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two rows: 0 has two acknowledged updates, one refused and one unknown; 1 has none.
    fn ledger() -> Ledger {
        let ledger = Ledger::new(2);
        (0..4).for_each(|_| ledger.begin(0));
        (0..2).for_each(|_| ledger.acknowledge(0));
        ledger.refuse(0);
        ledger
    }

    #[test]
    fn what_nobody_knows_may_be_there_or_not() {
        for n in [2, 3] {
            let verdict = ledger().check(&[(0, n), (1, 0)]);
            assert!(verdict.is_right() && verdict.acknowledged == 2, "{verdict:?}");
        }
    }

    #[test]
    fn what_is_lost_too_much_or_missing_is_wrong() {
        let counts = |v: &Verdict| (v.lost, v.too_many, v.rows_not_found);
        for (found, wanted) in [
            (vec![(0, 1), (1, 0)], (1, 0, 0)),
            (vec![(0, 4), (1, 0)], (0, 1, 0)),
            (vec![(0, 2), (1, 1)], (0, 1, 0)),
            (vec![(1, 0)], (2, 0, 1)),
            (vec![(0, 2), (1, 0), (7, 0)], (0, 1, 0)),
        ] {
            let verdict = ledger().check(&found);
            assert_eq!(counts(&verdict), wanted, "{found:?}");
            assert!(!verdict.is_right() && verdict.as_json()["right"] == false);
            assert!(verdict.words().contains("WRONG"), "{}", verdict.words());
        }
    }

    #[test]
    fn reads_must_show_what_was_acknowledged_and_no_more_than_was_asked_for() {
        let whole = [(0, 2), (1, 0)];
        for (shown, is_right) in
            [(Some(1), false), (Some(2), true), (Some(4), true), (Some(5), false), (None, false)]
        {
            let ledger = ledger();
            ledger.note_read(0, ledger.floor(0), shown);
            assert_eq!(ledger.check(&whole).is_right(), is_right, "{shown:?}");
        }
    }
}
