//! UNION, INTERSECT and EXCEPT.

use super::{Node, Operator, Poll, Row, Run};
use crate::ir::SetOp;
use alloc::vec::Vec;
use lats_base::map::Map;
use lats_values::{SqlError, group_key};

/// The operator while it runs.
pub(super) struct Set<'p> {
    op: SetOp,
    all: bool,
    left: Node<'p>,
    right: Node<'p>,
    /// For UNION: the left side is done. Otherwise: the right side is counted.
    is_turned: bool,
    /// Rows of the right side and how many of each there are; for UNION, rows that were given.
    counts: Map<Vec<u8>, u64>,
    /// Rows that were given, without ALL.
    given: Map<Vec<u8>, ()>,
}

impl<'p> Set<'p> {
    pub(super) fn new(op: SetOp, all: bool, left: Node<'p>, right: Node<'p>) -> Self {
        let (counts, given) = (Map::default(), Map::default());
        Self { op, all, left, right, is_turned: false, counts, given }
    }

    fn union(&mut self, run: &mut Run<'_>) -> Result<Poll, SqlError> {
        loop {
            let side = if self.is_turned { &mut self.right } else { &mut self.left };
            match side.next(run)? {
                Poll::Rows(rows) if self.all => return Ok(Poll::Rows(rows)),
                Poll::Rows(rows) => {
                    let tired = run.spend(rows.len());
                    let mut out = Vec::with_capacity(rows.len());
                    for row in rows {
                        if self.is_new(run, &row)? {
                            out.push(row);
                        }
                    }
                    if !out.is_empty() {
                        return Ok(Poll::Rows(out));
                    }
                    if tired {
                        return Ok(Poll::Yield);
                    }
                }
                Poll::Done if !self.is_turned => self.is_turned = true,
                other => return Ok(other),
            }
        }
    }

    fn is_new(&mut self, run: &mut Run<'_>, row: &Row) -> Result<bool, SqlError> {
        let key = key_of(row);
        let bytes = key.len() + 64;
        let is_new = self.given.insert(key, ()).is_none();
        if is_new {
            run.hold(bytes)?;
        }
        Ok(is_new)
    }

    /// Counts the rows of the right side.
    fn count(&mut self, run: &mut Run<'_>) -> Result<Option<Poll>, SqlError> {
        while !self.is_turned {
            match self.right.next(run)? {
                Poll::Rows(rows) => {
                    for row in &rows {
                        let key = key_of(row);
                        let bytes = key.len() + 64;
                        let count = self.counts.entry(key).or_insert(0);
                        *count += 1;
                        if *count == 1 {
                            run.hold(bytes)?;
                        }
                    }
                    if run.spend(rows.len()) {
                        return Ok(Some(Poll::Yield));
                    }
                }
                Poll::Done => self.is_turned = true,
                other => return Ok(Some(other)),
            }
        }
        Ok(None)
    }

    /// True if a row of the left side belongs to the result.
    fn passes(&mut self, run: &mut Run<'_>, row: &Row) -> Result<bool, SqlError> {
        let key = key_of(row);
        let count = self.counts.get_mut(&key);
        let found = count.as_ref().is_some_and(|count| **count > 0);
        if self.all
            && let Some(count) = count
        {
            *count = count.saturating_sub(1);
        }
        let wanted = found == (self.op == SetOp::Intersect);
        match wanted && !self.all {
            true => self.is_new(run, row),
            false => Ok(wanted),
        }
    }
}

fn key_of(row: &Row) -> Vec<u8> {
    let mut key = Vec::new();
    group_key(row, &mut key);
    key
}

impl Operator for Set<'_> {
    fn next(&mut self, run: &mut Run<'_>) -> Result<Poll, SqlError> {
        if self.op == SetOp::Union {
            return self.union(run);
        }
        if let Some(polled) = self.count(run)? {
            return Ok(polled);
        }
        loop {
            let rows = match self.left.next(run)? {
                Poll::Rows(rows) => rows,
                other => return Ok(other),
            };
            let tired = run.spend(rows.len());
            let mut out = Vec::with_capacity(rows.len());
            for row in rows {
                if self.passes(run, &row)? {
                    out.push(row);
                }
            }
            if !out.is_empty() {
                return Ok(Poll::Rows(out));
            }
            if tired {
                return Ok(Poll::Yield);
            }
        }
    }

    fn close(&mut self, run: &mut Run<'_>) {
        self.left.close(run);
        self.right.close(run);
    }
}
