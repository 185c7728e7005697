//! Badges: rows with a unique column. Each client has a badge of its own, which some row of it always
//! wears and which wanders between its rows; and all clients fight for a few others. Whoever looks
//! for a wandering badge must find it, however it moves (UNIQUE-6).

use super::{Doing, Ledger, SimClient};
use crate::tables::Numbers;
use lats_base::{Duration, ErrorClass, Instant};
use lats_client::{
    api::{RowOp, RowOutcome, RowResult},
    core::{Answer, Then, Ticket},
    unique::UniqueLookup,
};

/// The table of badges, and what is known of those that wander.
#[derive(Debug)]
pub struct Badges {
    /// Rows: id, badge, value.
    pub table: Numbers,
    /// Per client: the newest value of its badge that was acknowledged or seen.
    known: Vec<Option<i64>>,
    /// Per client: the newest value that was attempted.
    attempted: Vec<i64>,
}

/// What a client knows of its own badge.
#[derive(Debug, Default)]
pub(super) struct Wearer {
    /// The row that wears it.
    row: Option<i64>,
    value: i64,
    /// The outcome of a move is not known: it wanders no more.
    lost: bool,
}

/// What a client does with badges.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// Its own badge moves to a row.
    Moving { to: i64, ticket: Ticket },
    /// It tries to get one of those that all want; with a second request in the same transaction.
    Fighting { second: Option<(u64, RowOp)>, ticket: Ticket },
    /// It looks for a badge of a client, which had at least this value when it began.
    Finding {
        of: usize,
        floor: Option<i64>,
        lookup: Box<UniqueLookup>,
        ticket: Option<Ticket>,
        /// A commit is passing by: not before then it looks again.
        not_before: Instant,
    },
}

/// Badges that all want.
const WANTED: u64 = 5;
/// Rows of a client that fight.
const FIGHTERS: u64 = 4;

impl Badges {
    /// A table that will get this id.
    pub fn new(id: u32, clients: usize) -> Self {
        let columns = &["id", "badge", "value"];
        Self {
            table: Numbers::new(id, "badges", columns, Some(1)).with_unique_index(),
            known: vec![None; clients],
            attempted: vec![0; clients],
        }
    }
}

impl Step {
    pub(super) fn ticket(&self) -> Option<Ticket> {
        match self {
            Self::Moving { ticket, .. } | Self::Fighting { ticket, .. } => Some(*ticket),
            Self::Finding { ticket, .. } => *ticket,
        }
    }
}

impl SimClient {
    pub(super) fn start_badge(&mut self, ledger: &mut Ledger) {
        let own = self.number as usize <= ledger.badges.known.len() && !self.reader;
        match self.random.below(4) {
            0 if own && !self.wearer.lost => self.move_badge(ledger),
            1 if own => self.fight(ledger),
            _ => self.look_for_badge(ledger),
        }
    }

    fn move_badge(&mut self, ledger: &mut Ledger) {
        let at = self.number as usize - 1;
        let first = i64::from(self.number) * 1_000;
        let from = self.wearer.row;
        self.wearer.value += 1;
        let value = self.wearer.value;
        ledger.badges.attempted[at] = value;
        let stays = self.random.chance(1, 3);
        let to = match from {
            Some(row) if stays => row,
            Some(row) if row == first => first + 1,
            _ => first,
        };
        let table = &ledger.badges.table;
        let new = [to, -i64::from(self.number), value];
        let mut operations = match from {
            Some(row) if row != to => vec![table.delete(row), table.insert(&new)],
            _ => vec![table.write(&new)],
        };
        if self.random.chance(1, 2) {
            operations.reverse();
        }
        let sequence = self.core.begin();
        let ticket = self.core.step(sequence, &operations, Then::Commit);
        self.doing = Doing::Badge(Step::Moving { to, ticket });
    }

    /// One of its rows takes, changes or gives up a badge.
    fn blow(&mut self, ledger: &Ledger) -> RowOp {
        let row = i64::from(self.number) * 1_000 + 10 + self.random.below(FIGHTERS) as i64;
        let badge = 1 + self.random.below(WANTED) as i64;
        let table = &ledger.badges.table;
        match self.random.below(4) {
            0 => table.insert(&[row, badge, 0]),
            1 => table.write(&[row, badge, 0]),
            2 => table.add(row, 1, 1),
            _ => table.delete(row),
        }
    }

    fn fight(&mut self, ledger: &mut Ledger) {
        let mut operations = vec![self.blow(ledger)];
        if self.random.chance(1, 2) {
            operations.push(self.blow(ledger));
        }
        let sequence = self.core.begin();
        let goes_on = self.random.chance(1, 2);
        let then = if goes_on { Then::GoOn } else { Then::Commit };
        let ticket = self.core.step(sequence, &operations, then);
        let second = goes_on.then(|| (sequence, self.blow(ledger)));
        self.doing = Doing::Badge(Step::Fighting { second, ticket });
    }

    fn look_for_badge(&mut self, ledger: &mut Ledger) {
        let of = self.random.below(ledger.badges.known.len() as u64) as usize;
        let floor = ledger.badges.known[of];
        let badge = -(of as i64) - 1;
        let lookup = ledger.badges.table.lookup(badge);
        let (lookup, not_before) = (Box::new(lookup), self.now);
        let step = Step::Finding { of, floor, lookup, ticket: None, not_before };
        self.doing = Doing::Badge(step);
        self.go_on_looking();
    }

    /// Reads what a search needs next, if it does not wait for an answer.
    pub(super) fn go_on_looking(&mut self) {
        let Doing::Badge(Step::Finding { lookup, ticket: waiting @ None, not_before, .. }) =
            &mut self.doing
        else {
            return;
        };
        if self.now >= *not_before {
            *waiting = Some(self.core.read(lookup.next_reads()));
        }
    }

    pub(super) fn after_badge(&mut self, step: Step, answer: Answer, ledger: &mut Ledger) {
        match step {
            Step::Moving { to, .. } => self.after_move(to, &answer, ledger),
            Step::Fighting { second, .. } => self.after_blow(second, &answer, ledger),
            Step::Finding { of, floor, mut lookup, .. } => {
                let Answer::Rows { results, .. } = answer else { return };
                if let Err(error) = lookup.take(results) {
                    // Who reaches both sides of a cut sees a commit on one of them only, until it is mended.
                    if ledger.silence && error.class() == ErrorClass::Temporary {
                        return;
                    }
                    return ledger.violate(format!("badge {of}: {error}"));
                }
                if lookup.next_reads().is_empty() {
                    return check_found(of, floor, *lookup, ledger);
                }
                let not_before = self.now.plus(lookup.pause().unwrap_or(Duration::ZERO));
                let step = Step::Finding { of, floor, lookup, ticket: None, not_before };
                self.doing = Doing::Badge(step);
                self.go_on_looking();
            }
        }
    }

    fn after_move(&mut self, to: i64, answer: &Answer, ledger: &mut Ledger) {
        let at = self.number as usize - 1;
        match answer {
            Answer::Rows { committed: Some(_), results } => {
                ledger.commits += 1;
                self.wearer.row = Some(to);
                ledger.badges.known[at] = ledger.badges.known[at].max(Some(self.wearer.value));
                let undone = |r: &RowResult| r.outcome != RowOutcome::Done;
                if results.iter().any(undone) {
                    ledger.violate(format!("badge {at}: a move was half done: {results:?}"));
                }
            }
            // Nobody else wants this badge.
            Answer::Rows { results, .. } => {
                ledger.violate(format!("badge {at}: a move was refused: {results:?}"));
            }
            Answer::Failed(e) if e.class() == ErrorClass::UnknownOutcome => self.wearer.lost = true,
            _ => ledger.aborts += 1,
        }
    }

    fn after_blow(&mut self, second: Option<(u64, RowOp)>, answer: &Answer, ledger: &mut Ledger) {
        let Answer::Rows { results, committed } = answer else {
            ledger.aborts += 1;
            // STATEMENT-1: the transaction may live on.
            if let Some((sequence, operation)) = second.filter(|s| self.core.is_open(s.0)) {
                let ticket = self.core.step(sequence, &[operation], Then::Commit);
                self.doing = Doing::Badge(Step::Fighting { second: None, ticket });
            }
            return;
        };
        let refused = results.iter().any(|r| r.outcome == RowOutcome::Duplicate);
        let done = results.iter().any(|r| r.outcome == RowOutcome::Done);
        if refused && (done || committed.is_some()) {
            ledger.violate(format!("a refused request was half done: {results:?}"));
        }
        match second {
            Some((sequence, operation)) => {
                let ticket = self.core.step(sequence, &[operation], Then::Commit);
                self.doing = Doing::Badge(Step::Fighting { second: None, ticket });
            }
            None if committed.is_none() && !refused => {
                ledger.violate(format!("a commit was not made: {results:?}"));
            }
            None => ledger.commits += u64::from(committed.is_some()),
        }
    }
}

fn check_found(of: usize, floor: Option<i64>, lookup: UniqueLookup, ledger: &mut Ledger) {
    ledger.reads += 1;
    let found = lookup.found().pop().flatten();
    let value = found.map(|f| ledger.badges.table.numbers(&f.row)[2]);
    if value < floor {
        ledger.violate(format!(
            "badge {of}: found {value:?}, although {floor:?} was acknowledged or seen before"
        ));
    }
    if value.is_some_and(|v| v > ledger.badges.attempted[of]) {
        ledger.violate(format!("badge {of}: found {value:?}, which nobody wrote"));
    }
    ledger.badges.known[of] = ledger.badges.known[of].max(value);
}
