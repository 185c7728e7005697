//! Joins that look at all pairs of rows.

use super::hash_join::{finish_row, pair};
use super::memory::{Chunk, Held, Waiting};
use super::{Node, Operator, Params, Poll, Row, Run, row_bytes};
use crate::ir::JoinKind;
use alloc::vec::Vec;
use lats_base::planted::{QueryBug, errs};
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
    held: Held,
    is_built: bool,
    /// Rows of the left side that are not joined yet.
    waiting: Waiting,
    /// How far the next one has come, and whether it has found a partner.
    at: usize,
    found: bool,
}

impl<'p> NestedJoin<'p> {
    pub(super) fn new(
        kind: JoinKind,
        (left, right): (Node<'p>, Node<'p>),
        on: Option<&'p Expr>,
        right_width: usize,
        params: Params,
    ) -> Self {
        Self {
            kind,
            left,
            right,
            on,
            right_width,
            params,
            rows: Vec::new(),
            held: Held::default(),
            is_built: false,
            waiting: Waiting::default(),
            at: 0,
            found: false,
        }
    }

    /// Goes on keeping the right side; what a pause is, or none when all is there.
    fn build(&mut self, run: &mut Run<'_>) -> Result<Option<Poll>, SqlError> {
        while !self.is_built {
            match self.right.next(run)? {
                Poll::Rows(rows) => {
                    self.held.grow(run, rows.iter().map(|row| row_bytes(row)).sum())?;
                    let tired = run.spend(rows.len());
                    self.rows.extend(rows);
                    if tired {
                        return Ok(Some(Poll::Yield));
                    }
                }
                Poll::Done => {
                    self.right.close(run);
                    self.is_built = true;
                }
                other => return Ok(Some(other)),
            }
        }
        Ok(None)
    }

    /// Looks at pairs of the row at hand; true if it is time to hand on what was found.
    fn pairs(&mut self, run: &mut Run<'_>, out: &mut Chunk) -> Result<bool, SqlError> {
        let Some(left) = self.waiting.last() else { return Ok(false) };
        while let Some(right) = self.rows.get(self.at) {
            self.at += 1;
            let fits = match self.on {
                None => true,
                Some(on) => run.is_true(on, (left, right), &self.params)?,
            };
            if fits {
                self.found = true;
                if matches!(self.kind, JoinKind::Semi | JoinKind::Anti) {
                    self.at = self.rows.len();
                    break;
                }
                out.push(pair(left, right));
            }
            if run.spend(1) || out.is_full() {
                break;
            }
        }
        if self.at >= self.rows.len()
            && let Some(left) = self.waiting.pop(run)
        {
            let found = self.found
                || (errs(QueryBug::NestedAntiWithoutRows)
                    && self.kind == JoinKind::Anti
                    && self.rows.is_empty());
            finish_row(self.kind, found, left, self.right_width, out);
            (self.at, self.found) = (0, self.found && errs(QueryBug::NestedRemembersPartner));
        }
        Ok(run.spend(1) || out.is_full())
    }
}

impl Operator for NestedJoin<'_> {
    fn next(&mut self, run: &mut Run<'_>) -> Result<Poll, SqlError> {
        if let Some(pause) = self.build(run)? {
            return Ok(pause);
        }
        let mut out = Chunk::new(run);
        loop {
            while !self.waiting.is_empty() {
                if self.pairs(run, &mut out)? {
                    return Ok(out.or(Poll::Yield));
                }
            }
            if !out.is_empty() {
                return Ok(out.or(Poll::Yield));
            }
            match self.left.next(run)? {
                Poll::Rows(rows) => self.waiting.fill(run, rows)?,
                other => return Ok(other),
            }
        }
    }

    fn close(&mut self, run: &mut Run<'_>) {
        self.left.close(run);
        self.right.close(run);
        self.waiting.clear(run);
        self.held.leave(run, core::mem::take(&mut self.rows));
    }
}
