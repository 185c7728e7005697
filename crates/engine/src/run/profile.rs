//! What operators did, for EXPLAIN ANALYZE. Without a profile nothing is counted.

use super::{Node, Operator, Poll, Run};
use crate::physical::{Beyond, Op, Plan};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::{boxed::Box, vec::Vec};
use lats_values::SqlError;

/// What an operator did, in all of its instances together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpProfile {
    /// Rows that it gave.
    pub rows: u64,
    /// How often it ran.
    pub loops: u64,
    /// Time up to the first rows of each run, with what is below it and what was waited for.
    pub first: u64,
    /// Time up to the end.
    pub last: u64,
    /// The most memory that it held at a time by itself, about.
    pub peak_bytes: usize,
    /// Memory that it and those below it hold.
    held: isize,
}

/// What is counted of a run.
pub struct Profile {
    clock: fn() -> u64,
    /// The operators' numbers, by where they are.
    numbers: BTreeMap<usize, usize>,
    /// For each operator, those right below it.
    below: Vec<Vec<usize>>,
    counted: Vec<OpProfile>,
    /// Where joins have turned to reading their right side once.
    switched: BTreeSet<usize>,
}

fn place<T>(op: &T) -> usize {
    core::ptr::from_ref(op).addr()
}

impl Profile {
    /// For a plan, with a clock that only goes forward.
    pub fn new(plan: &Plan, clock: fn() -> u64) -> Self {
        let mut this = Self {
            clock,
            numbers: BTreeMap::new(),
            below: Vec::new(),
            counted: Vec::new(),
            switched: BTreeSet::new(),
        };
        this.number(&plan.root);
        this
    }

    fn number(&mut self, op: &Op) -> usize {
        let number = self.counted.len();
        self.numbers.insert(place(op), number);
        self.counted.push(OpProfile::default());
        self.below.push(Vec::new());
        let below: Vec<usize> = op.inputs().into_iter().map(|input| self.number(input)).collect();
        if let Some(list) = self.below.get_mut(number) {
            *list = below;
        }
        number
    }

    /// What an operator of the plan did.
    pub fn of(&self, op: &Op) -> OpProfile {
        let number = self.numbers.get(&place(op));
        number.and_then(|number| self.counted.get(*number)).copied().unwrap_or_default()
    }

    pub(super) fn note_switch(&mut self, to: &Beyond) {
        self.switched.insert(place(to));
    }

    /// True if a join has turned to reading its right side once, for some of its rows at least.
    pub fn has_switched(&self, to: &Beyond) -> bool {
        self.switched.contains(&place(to))
    }

    pub(super) fn measured<'p>(&self, op: &'p Op, node: Node<'p>) -> Node<'p> {
        match self.numbers.get(&place(op)) {
            None => node,
            Some(number) => Box::new(Measured {
                node,
                number: *number,
                spent: 0,
                waits_since: None,
                has_begun: false,
                has_rows: false,
                is_over: false,
            }),
        }
    }
}

/// An operator whose work is counted.
struct Measured<'p> {
    node: Node<'p>,
    number: usize,
    /// Time so far.
    spent: u64,
    /// It waits for answers, or for its turn, since then.
    waits_since: Option<u64>,
    has_begun: bool,
    has_rows: bool,
    is_over: bool,
}

impl Measured<'_> {
    fn end(&mut self, profile: &mut Profile) {
        if let Some(counted) = profile.counted.get_mut(self.number)
            && self.has_begun
            && !core::mem::replace(&mut self.is_over, true)
        {
            counted.last += self.spent;
            if !self.has_rows {
                counted.first += self.spent;
            }
        }
    }

    /// Counts what a call of the operator did.
    fn note(&mut self, run: &mut Run<'_>, polled: &Poll, (before, used): (u64, usize)) {
        let used_now = run.memory.used();
        let Some(profile) = &mut run.profile else { return };
        let now = (profile.clock)();
        let since = self.waits_since.take().unwrap_or(before);
        self.spent += now.saturating_sub(since);
        let below: isize = profile.below.get(self.number).map_or(0, |below| {
            below.iter().filter_map(|at| profile.counted.get(*at)).map(|below| below.held).sum()
        });
        let Some(counted) = profile.counted.get_mut(self.number) else { return };
        counted.held += used_now as isize - used as isize;
        let own = usize::try_from(counted.held - below).unwrap_or(0);
        counted.peak_bytes = counted.peak_bytes.max(own);
        counted.loops += u64::from(!core::mem::replace(&mut self.has_begun, true));
        match polled {
            Poll::Rows(rows) => {
                counted.rows += rows.len() as u64;
                if !core::mem::replace(&mut self.has_rows, true) {
                    counted.first += self.spent;
                }
            }
            Poll::Pending | Poll::Yield => self.waits_since = Some(now),
            Poll::Done => self.end(profile),
        }
    }
}

impl Operator for Measured<'_> {
    fn next(&mut self, run: &mut Run<'_>) -> Result<Poll, SqlError> {
        let before = run.profile.as_ref().map_or(0, |profile| (profile.clock)());
        let used = run.memory.used();
        let polled = self.node.next(run)?;
        self.note(run, &polled, (before, used));
        Ok(polled)
    }

    fn close(&mut self, run: &mut Run<'_>) {
        let used = run.memory.used();
        self.node.close(run);
        let used_now = run.memory.used();
        if let Some(profile) = &mut run.profile {
            if let Some(counted) = profile.counted.get_mut(self.number) {
                counted.held += used_now as isize - used as isize;
            }
            self.end(profile);
        }
    }
}
