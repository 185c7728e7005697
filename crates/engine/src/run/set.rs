//! UNION, INTERSECT and EXCEPT.

use super::memory::{Chunk, ENTRY_BYTES, Held, Waiting};
use super::{Node, Operator, Poll, Row, Run};
use crate::ir::SetOp;
use alloc::vec::Vec;
use lats_base::map::Map;
use lats_base::planted::{QueryBug, errs};
use lats_values::{SqlError, group_key};

/// The operator while it runs.
pub(super) struct Set<'p> {
    op: SetOp,
    all: bool,
    left: Node<'p>,
    right: Node<'p>,
    /// For UNION: the left side is done. Otherwise: the right side is counted.
    is_turned: bool,
    waiting: Waiting,
    /// Rows of the right side and how many of each there are; for UNION, rows that were given.
    counts: Map<Vec<u8>, u64>,
    /// Rows that were given, without ALL.
    given: Map<Vec<u8>, ()>,
    held: Held,
}

impl<'p> Set<'p> {
    pub(super) fn new(op: SetOp, all: bool, left: Node<'p>, right: Node<'p>) -> Self {
        let (counts, given) = (Map::default(), Map::default());
        let (waiting, held) = (Waiting::default(), Held::default());
        Self { op, all, left, right, is_turned: false, waiting, counts, given, held }
    }

    fn is_new(&mut self, run: &mut Run<'_>, row: &Row) -> Result<bool, SqlError> {
        let key = key_of(row);
        if self.given.contains_key(&key) {
            return Ok(false);
        }
        self.held.grow(run, key.len() + ENTRY_BYTES)?;
        self.given.insert(key, ());
        Ok(true)
    }

    /// Counts the rows of the right side; what a pause is, or none when all are counted.
    fn count(&mut self, run: &mut Run<'_>) -> Result<Option<Poll>, SqlError> {
        while !self.is_turned {
            while let Some(row) = self.waiting.pop(run) {
                let key = key_of(&row);
                match self.counts.get_mut(&key) {
                    Some(_) if errs(QueryBug::ExceptAllCountsOnce) => {}
                    Some(count) => *count += 1,
                    None => {
                        self.held.grow(run, key.len() + ENTRY_BYTES)?;
                        self.counts.insert(key, 1);
                    }
                }
                if run.spend(1) {
                    return Ok(Some(Poll::Yield));
                }
            }
            match self.right.next(run)? {
                Poll::Rows(rows) => self.waiting.fill(run, rows)?,
                Poll::Done => {
                    self.right.close(run);
                    self.is_turned = true;
                }
                other => return Ok(Some(other)),
            }
        }
        Ok(None)
    }

    /// True if a row belongs to the result.
    fn passes(&mut self, run: &mut Run<'_>, row: &Row) -> Result<bool, SqlError> {
        if self.op == SetOp::Union {
            return Ok(self.all || self.is_new(run, row)?);
        }
        let count = self.counts.get_mut(&key_of(row));
        let found = count.as_ref().is_some_and(|count| **count > 0);
        if self.all
            && let Some(count) = count
        {
            *count = count.saturating_sub(1);
        }
        let wanted = found == (self.op == SetOp::Intersect);
        let twice = self.op == SetOp::Except && errs(QueryBug::ExceptGivesTwice);
        let once = !self.all && !twice;
        match wanted && once {
            true => self.is_new(run, row),
            false => Ok(wanted),
        }
    }

    /// The next rows of the side that is at hand; UNION turns to the other one.
    fn next_rows(&mut self, run: &mut Run<'_>) -> Result<Poll, SqlError> {
        let is_union = self.op == SetOp::Union;
        if is_union && !self.is_turned {
            match self.left.next(run)? {
                Poll::Done => {
                    self.left.close(run);
                    self.is_turned = true;
                }
                other => return Ok(other),
            }
        }
        if is_union { self.right.next(run) } else { self.left.next(run) }
    }
}

fn key_of(row: &Row) -> Vec<u8> {
    let mut key = Vec::new();
    group_key(row, &mut key);
    key
}

impl Operator for Set<'_> {
    fn next(&mut self, run: &mut Run<'_>) -> Result<Poll, SqlError> {
        if self.op != SetOp::Union
            && let Some(pause) = self.count(run)?
        {
            return Ok(pause);
        }
        let mut out = Chunk::new(run);
        loop {
            while let Some(row) = self.waiting.pop(run) {
                if self.passes(run, &row)? {
                    out.push(row);
                }
                if run.spend(1) || out.is_full() {
                    return Ok(out.or(Poll::Yield));
                }
            }
            if !out.is_empty() {
                return Ok(out.or(Poll::Yield));
            }
            match self.next_rows(run)? {
                Poll::Rows(rows) => self.waiting.fill(run, rows)?,
                other => return Ok(other),
            }
        }
    }

    fn close(&mut self, run: &mut Run<'_>) {
        self.left.close(run);
        self.right.close(run);
        self.waiting.clear(run);
        let counts = core::mem::take(&mut self.counts);
        self.held.leave(run, (counts, core::mem::take(&mut self.given)));
    }
}
