//! Lists: clients append to them and read them, with locks and without, and keep the history that the
//! checker of `lats-history` looks for anomalies in.

use super::{Doing, Ledger, SimClient};
use crate::tables::Numbers;
use lats_base::{ErrorClass, Instant};
use lats_client::{
    api::{LockMode, RowOp, RowResult},
    core::{Answer, Then, Ticket},
};
use lats_history::{Action, Outcome, Transaction};
use std::collections::BTreeMap;

/// The lists of a run, and what clients were told of them.
#[derive(Debug)]
pub struct Lists {
    /// Lists: id, length, elements. A row that does not exist is an empty list.
    pub table: Numbers,
    /// What has happened.
    pub history: Vec<Transaction>,
    /// The list of each place that is in use: one that is full is left for the next.
    current: Vec<i64>,
    next_element: u64,
}

/// What a client does with lists.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// It locks lists and reads them, some of them to append to.
    Locking { sequence: u64, plan: Vec<(i64, bool)>, seen: Transaction, ticket: Ticket },
    /// It ends its transaction: with what it appends, or taking all back.
    Ending { seen: Transaction, commits: bool, ticket: Ticket },
    /// It reads one list at any replica.
    Looking { list: i64, seen: Transaction, ticket: Ticket },
}

/// Elements that fit into a row.
const LENGTH_MAX: usize = 14;
/// Lists that are in use at a time.
const PLACES: i64 = 4;
/// How far the ids of two places are apart.
const APART: i64 = 100_000;

impl Step {
    pub(super) fn ticket(&self) -> Ticket {
        match self {
            Self::Locking { ticket, .. }
            | Self::Ending { ticket, .. }
            | Self::Looking { ticket, .. } => *ticket,
        }
    }
}

impl Lists {
    pub(super) fn new(id: u32) -> Self {
        let columns: &[&str] = &[
            "id", "length", "e1", "e2", "e3", "e4", "e5", "e6", "e7", "e8", "e9", "e10", "e11",
            "e12", "e13", "e14",
        ];
        Self {
            table: Numbers::new(id, "lists", columns, None),
            history: Vec::new(),
            current: (0..PLACES).map(|place| place * APART).collect(),
            next_element: 1,
        }
    }

    /// The elements in an image of a list.
    pub fn elements(&self, image: Option<&[u8]>) -> Vec<u64> {
        let Some(image) = image else { return Vec::new() };
        let numbers = self.table.numbers(image);
        let length = numbers[1].clamp(0, LENGTH_MAX as i64) as usize;
        numbers[2..2 + length].iter().map(|n| *n as u64).collect()
    }

    fn row(&self, list: i64, elements: &[u64]) -> RowOp {
        let mut numbers = vec![list, elements.len() as i64];
        numbers.extend(elements.iter().map(|e| *e as i64));
        numbers.resize(2 + LENGTH_MAX, 0);
        self.table.write(&numbers)
    }

    fn note_length(&mut self, list: i64, length: usize) {
        let place = &mut self.current[(list / APART) as usize];
        if length >= LENGTH_MAX && *place == list {
            *place += 1;
        }
    }

    /// All lists as they are in the end, as one more transaction saw them.
    pub fn close(&mut self, now: Instant, rows: &BTreeMap<i64, Vec<u8>>) {
        let all = (0..PLACES).flat_map(|place| place * APART..=self.current[place as usize]);
        let actions = all.map(|list| {
            let image = rows.get(&list).map(Vec::as_slice);
            Action::Read { list: list as u64, elements: self.elements(image) }
        });
        let seen = Transaction {
            client: 0,
            begun_ns: now.as_nanos(),
            ended_ns: now.as_nanos() + 1,
            outcome: Outcome::Committed,
            locks: true,
            actions: actions.collect(),
        };
        self.history.push(seen);
    }
}

impl SimClient {
    fn new_history(&self, locks: bool) -> Transaction {
        let begun_ns = self.now.as_nanos();
        Transaction {
            client: self.number.into(),
            begun_ns,
            ended_ns: begun_ns,
            outcome: Outcome::Unknown,
            locks,
            actions: Vec::new(),
        }
    }

    pub(super) fn start_list(&mut self, ledger: &Ledger) {
        let lists = &ledger.lists;
        if self.reader || self.random.chance(1, 3) {
            let list = lists.current[self.random.below(PLACES as u64) as usize];
            let ticket = self.core.read(vec![lists.table.read(list, LockMode::Committed)]);
            let seen = self.new_history(false);
            self.doing = Doing::List(Step::Looking { list, seen, ticket });
            return;
        }
        let mut plan: Vec<(i64, bool)> = Vec::new();
        for _ in 0..self.random.between(1, 3) {
            let list = lists.current[self.random.below(PLACES as u64) as usize];
            let appends = self.random.chance(1, 2);
            if plan.iter().all(|(other, _)| *other != list) {
                plan.push((list, appends));
            }
        }
        let mode = |appends| if appends { LockMode::Exclusive } else { LockMode::Shared };
        let reads: Vec<RowOp> =
            plan.iter().map(|(list, appends)| lists.table.read(*list, mode(*appends))).collect();
        let sequence = self.core.begin();
        let ticket = self.core.step(sequence, &reads, Then::GoOn);
        let seen = self.new_history(true);
        self.doing = Doing::List(Step::Locking { sequence, plan, seen, ticket });
    }

    pub(super) fn after_list(&mut self, step: Step, answer: &Answer, ledger: &mut Ledger) {
        match (step, answer) {
            (Step::Looking { list, mut seen, .. }, Answer::Rows { results, .. }) => {
                self.see(list, &results[0], &mut seen, ledger);
                self.finish_list(seen, Outcome::Committed, ledger);
            }
            (Step::Looking { .. }, _) => {}
            (Step::Locking { sequence, plan, seen, .. }, Answer::Rows { results, .. }) => {
                self.append_to_lists(sequence, &plan, seen, results, ledger);
            }
            (Step::Locking { sequence, seen, .. }, _) => {
                // A row that nobody has locked because it is not there may be refused too.
                if self.core.is_open(sequence) {
                    let ticket = self.core.step(sequence, &[], Then::RollBack);
                    self.doing = Doing::List(Step::Ending { seen, commits: false, ticket });
                }
            }
            (Step::Ending { seen, commits, .. }, answer) => {
                let outcome = match answer {
                    Answer::Rows { committed: Some(_), .. } if commits => Outcome::Committed,
                    Answer::Failed(e) if e.class() == ErrorClass::UnknownOutcome => {
                        Outcome::Unknown
                    }
                    _ => Outcome::RolledBack,
                };
                ledger.commits += u64::from(outcome == Outcome::Committed);
                self.finish_list(seen, outcome, ledger);
            }
        }
    }

    /// Notes what a list was; gives its elements.
    fn see(
        &self,
        list: i64,
        result: &RowResult,
        seen: &mut Transaction,
        ledger: &mut Ledger,
    ) -> Vec<u64> {
        ledger.reads += 1;
        let elements = ledger.lists.elements(result.row.as_deref());
        ledger.lists.note_length(list, elements.len());
        seen.actions.push(Action::Read { list: list as u64, elements: elements.clone() });
        elements
    }

    fn append_to_lists(
        &mut self,
        sequence: u64,
        plan: &[(i64, bool)],
        mut seen: Transaction,
        results: &[RowResult],
        ledger: &mut Ledger,
    ) {
        let mut writes = Vec::new();
        for ((list, appends), result) in plan.iter().zip(results) {
            if result.row.is_none() {
                // What is not there is not locked: nothing can be said of it. Somebody makes it.
                if *appends {
                    writes.push(ledger.lists.table.insert(&first_row(*list)));
                }
                continue;
            }
            let mut elements = self.see(*list, result, &mut seen, ledger);
            if *appends && elements.len() < LENGTH_MAX {
                let element = ledger.lists.next_element;
                ledger.lists.next_element += 1;
                elements.push(element);
                seen.actions.push(Action::Append { list: *list as u64, element });
                writes.push(ledger.lists.row(*list, &elements));
            }
        }
        let commits = !self.random.chance(1, 8);
        let then = if commits { Then::Commit } else { Then::RollBack };
        let writes = if commits { writes } else { Vec::new() };
        let ticket = self.core.step(sequence, &writes, then);
        self.doing = Doing::List(Step::Ending { seen, commits, ticket });
    }

    fn finish_list(&mut self, mut seen: Transaction, outcome: Outcome, ledger: &mut Ledger) {
        seen.outcome = outcome;
        seen.ended_ns = self.now.as_nanos();
        ledger.lists.history.push(seen);
    }
}

/// An empty list.
fn first_row(list: i64) -> Vec<i64> {
    let mut numbers = vec![0; 2 + LENGTH_MAX];
    numbers[0] = list;
    numbers
}
