//! Joins that look at all pairs of rows; the right side is kept.

use super::hash_join::finish_row;
use super::{Node, Operator, Params, Poll, Row, Run, row_bytes};
use crate::ir::JoinKind;
use alloc::vec::Vec;
use lats_values::{Expr, SqlError};

/// The join while it runs.
pub(super) struct NestedJoin<'p> {
    kind: JoinKind,
    left: Node<'p>,
    right: Node<'p>,
    on: Option<&'p Expr>,
    right_width: usize,
    params: Params,
    rows: Vec<Row>,
    is_built: bool,
    /// Rows of the left side that are not joined yet, the next one last.
    waiting: Vec<Row>,
    /// How far the next one has come, and whether it has found a partner.
    at: usize,
    found: bool,
}

/// Pairs that are looked at before rows are handed on.
const PAIRS_AT_ONCE: usize = 1_024;

impl<'p> NestedJoin<'p> {
    pub(super) fn new(
        kind: JoinKind,
        (left, right): (Node<'p>, Node<'p>),
        on: Option<&'p Expr>,
        right_width: usize,
        params: Params,
    ) -> Self {
        let (rows, waiting) = (Vec::new(), Vec::new());
        let (is_built, at, found) = (false, 0, false);
        Self { kind, left, right, on, right_width, params, rows, is_built, waiting, at, found }
    }

    /// Looks at pairs of the row at hand; true if all of them were looked at.
    fn pairs(&mut self, run: &mut Run<'_>, out: &mut Vec<Row>) -> Result<bool, SqlError> {
        let Some(left) = self.waiting.last() else { return Ok(true) };
        let end = self.rows.len().min(self.at + PAIRS_AT_ONCE);
        while self.at < end {
            let right = &self.rows[self.at];
            self.at += 1;
            if let Some(on) = self.on
                && !run.is_true(on, (left, right), &self.params)?
            {
                continue;
            }
            self.found = true;
            if matches!(self.kind, JoinKind::Semi | JoinKind::Anti) {
                self.at = self.rows.len();
                break;
            }
            let mut row = Row::with_capacity(left.len() + right.len());
            row.extend(left.iter().cloned());
            row.extend(right.iter().cloned());
            out.push(row);
        }
        Ok(self.at == self.rows.len())
    }
}

impl Operator for NestedJoin<'_> {
    fn next(&mut self, run: &mut Run<'_>) -> Result<Poll, SqlError> {
        while !self.is_built {
            match self.right.next(run)? {
                Poll::Rows(rows) => {
                    for row in &rows {
                        run.hold(row_bytes(row))?;
                    }
                    self.rows.extend(rows);
                }
                Poll::Done => self.is_built = true,
                other => return Ok(other),
            }
        }
        let mut out = Vec::new();
        loop {
            while !self.waiting.is_empty() {
                let before = self.at;
                let is_through = self.pairs(run, &mut out)?;
                let tired = run.spend(self.at - before);
                if is_through && let Some(left) = self.waiting.pop() {
                    finish_row(self.kind, self.found, left, self.right_width, &mut out);
                    (self.at, self.found) = (0, false);
                }
                if out.len() >= PAIRS_AT_ONCE || (tired && !out.is_empty()) {
                    return Ok(Poll::Rows(out));
                }
                if tired {
                    return Ok(Poll::Yield);
                }
            }
            if !out.is_empty() {
                return Ok(Poll::Rows(out));
            }
            match self.left.next(run)? {
                Poll::Rows(mut rows) => {
                    rows.reverse();
                    self.waiting = rows;
                }
                other => return Ok(other),
            }
        }
    }

    fn close(&mut self, run: &mut Run<'_>) {
        self.left.close(run);
        self.right.close(run);
        self.waiting.clear();
    }
}
