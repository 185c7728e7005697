//! Joins by equal values: the right side is kept in a table by the bytes of its values.

use super::{Node, Operator, Params, Poll, Row, Run, keys, row_bytes};
use crate::ir::JoinKind;
use crate::physical::EqualPair;
use alloc::vec::Vec;
use lats_base::map::Map;
use lats_values::{Expr, SqlError, Value};

/// What is joined how.
pub(super) struct Spec<'p> {
    pub(super) kind: JoinKind,
    pub(super) pairs: &'p [EqualPair],
    pub(super) residual: Option<&'p Expr>,
    pub(super) right_width: usize,
}

/// The join while it runs.
pub(super) struct HashJoin<'p> {
    left: Node<'p>,
    right: Node<'p>,
    spec: Spec<'p>,
    params: Params,
    rows: Vec<Row>,
    /// The rows with the same key are a list: the first, and for each row the next.
    first: Map<Vec<u8>, u32>,
    next: Vec<u32>,
    is_built: bool,
    /// Rows of the left side that are not joined yet, the next one last.
    waiting: Vec<Row>,
}

const NONE: u32 = u32::MAX;
/// Rows that are handed on at once, about.
const ROWS_AT_ONCE: usize = 1_024;

impl<'p> HashJoin<'p> {
    pub(super) fn new((left, right): (Node<'p>, Node<'p>), spec: Spec<'p>, params: Params) -> Self {
        let (rows, next, waiting) = (Vec::new(), Vec::new(), Vec::new());
        let (first, is_built) = (Map::default(), false);
        Self { left, right, spec, params, rows, first, next, is_built, waiting }
    }

    fn key(
        &self,
        run: &mut Run<'_>,
        row: &[Value],
        of_left: bool,
    ) -> Result<Option<Vec<u8>>, SqlError> {
        let mut key = Vec::with_capacity(16);
        for pair in self.spec.pairs {
            let expr = if of_left { &pair.left } else { &pair.right };
            let value = run.eval(expr, row, &self.params)?;
            if !keys::append(pair.class, value, &mut key) && !pair.null_safe {
                return Ok(None);
            }
        }
        Ok(Some(key))
    }

    fn keep(&mut self, run: &mut Run<'_>, row: Row) -> Result<(), SqlError> {
        let Some(key) = self.key(run, &row, false)? else { return Ok(()) };
        run.hold(row_bytes(&row) + key.len() + 48)?;
        let at = u32::try_from(self.rows.len()).unwrap_or(NONE);
        let before = self.first.insert(key, at);
        self.next.push(before.unwrap_or(NONE));
        self.rows.push(row);
        Ok(())
    }

    /// The pairs of one row of the left side.
    fn join_row(
        &mut self,
        run: &mut Run<'_>,
        left: Row,
        out: &mut Vec<Row>,
    ) -> Result<(), SqlError> {
        let mut found = false;
        let key = self.key(run, &left, true)?;
        let mut at = key.and_then(|key| self.first.get(&key).copied()).unwrap_or(NONE);
        let mut partners = Vec::new();
        while at != NONE {
            partners.push(at);
            at = self.next.get(at as usize).copied().unwrap_or(NONE);
        }
        run.spend(partners.len());
        for at in partners.into_iter().rev() {
            let Some(right) = self.rows.get(at as usize) else { continue };
            if let Some(residual) = self.spec.residual
                && !run.is_true(residual, (&left, right), &self.params)?
            {
                continue;
            }
            found = true;
            if matches!(self.spec.kind, JoinKind::Semi | JoinKind::Anti) {
                break;
            }
            let mut row = Row::with_capacity(left.len() + right.len());
            row.extend(left.iter().cloned());
            row.extend(right.iter().cloned());
            out.push(row);
        }
        finish_row(self.spec.kind, found, left, self.spec.right_width, out);
        Ok(())
    }
}

/// What a row of the left side gives by itself, when its partners are known.
pub(super) fn finish_row(
    kind: JoinKind,
    found: bool,
    mut left: Row,
    right_width: usize,
    out: &mut Vec<Row>,
) {
    match (kind, found) {
        (JoinKind::Left, false) => {
            left.extend(core::iter::repeat_n(Value::Null, right_width));
            out.push(left);
        }
        (JoinKind::Semi, true) | (JoinKind::Anti, false) => out.push(left),
        _ => {}
    }
}

impl Operator for HashJoin<'_> {
    fn next(&mut self, run: &mut Run<'_>) -> Result<Poll, SqlError> {
        while !self.is_built {
            match self.right.next(run)? {
                Poll::Rows(rows) => {
                    let tired = run.spend(rows.len());
                    for row in rows {
                        self.keep(run, row)?;
                    }
                    if tired {
                        return Ok(Poll::Yield);
                    }
                }
                Poll::Done => self.is_built = true,
                other => return Ok(other),
            }
        }
        let mut out = Vec::new();
        loop {
            while let Some(left) = self.waiting.pop() {
                self.join_row(run, left, &mut out)?;
                if out.len() >= ROWS_AT_ONCE {
                    return Ok(Poll::Rows(out));
                }
            }
            if !out.is_empty() {
                return Ok(Poll::Rows(out));
            }
            match self.left.next(run)? {
                Poll::Rows(mut rows) => {
                    rows.reverse();
                    let tired = run.spend(rows.len());
                    self.waiting = rows;
                    if tired {
                        return Ok(Poll::Yield);
                    }
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
