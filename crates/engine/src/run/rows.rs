//! Operators that look at one row at a time.

use super::memory::{Chunk, Waiting};
use super::{Node, Operator, Params, Poll, Row, Run, more_than_one_row};
use alloc::vec::Vec;
use lats_values::{ColumnType, Expr, SqlError, present};

/// Rows of expressions.
pub(super) struct ValueRows<'p> {
    rows: &'p [Vec<Expr>],
    types: &'p [ColumnType],
    params: Params,
    at: usize,
}

impl<'p> ValueRows<'p> {
    /// No rows.
    pub(super) fn none() -> Self {
        Self::new(&[], &[], Params::from([]))
    }

    pub(super) fn new(rows: &'p [Vec<Expr>], types: &'p [ColumnType], params: Params) -> Self {
        Self { rows, types, params, at: 0 }
    }
}

impl Operator for ValueRows<'_> {
    fn next(&mut self, run: &mut Run<'_>) -> Result<Poll, SqlError> {
        let mut chunk = Chunk::new(run);
        while !chunk.is_full()
            && let Some(exprs) = self.rows.get(self.at)
        {
            let mut row = Row::with_capacity(exprs.len());
            for (expr, column_type) in exprs.iter().zip(self.types) {
                row.push(present(run.eval(expr, &[], &self.params)?, column_type));
            }
            chunk.push(row);
            self.at += 1;
            if run.spend(1) {
                break;
            }
        }
        Ok(chunk.or(Poll::Done))
    }

    fn close(&mut self, _: &mut Run<'_>) {
        self.at = self.rows.len();
    }
}

/// Rows for which a condition is true.
pub(super) struct Filter<'p> {
    input: Node<'p>,
    condition: &'p Expr,
    params: Params,
    waiting: Waiting,
}

impl<'p> Filter<'p> {
    pub(super) fn new(input: Node<'p>, condition: &'p Expr, params: Params) -> Self {
        Self { input, condition, params, waiting: Waiting::default() }
    }
}

impl Operator for Filter<'_> {
    fn next(&mut self, run: &mut Run<'_>) -> Result<Poll, SqlError> {
        let mut chunk = Chunk::new(run);
        loop {
            while let Some(row) = self.waiting.pop(run) {
                if run.is_true(self.condition, (&row, &[]), &self.params)? {
                    chunk.push(row);
                }
                if run.spend(1) || chunk.is_full() {
                    return Ok(chunk.or(Poll::Yield));
                }
            }
            if !chunk.is_empty() {
                return Ok(chunk.or(Poll::Yield));
            }
            match self.input.next(run)? {
                Poll::Rows(rows) => self.waiting.fill(run, rows)?,
                other => return Ok(other),
            }
        }
    }

    fn close(&mut self, run: &mut Run<'_>) {
        self.input.close(run);
        self.waiting.clear(run);
    }
}

/// Computed values behind each row.
pub(super) struct Extend<'p> {
    input: Node<'p>,
    items: &'p [(Expr, ColumnType)],
    params: Params,
    waiting: Waiting,
}

impl<'p> Extend<'p> {
    pub(super) fn new(input: Node<'p>, items: &'p [(Expr, ColumnType)], params: Params) -> Self {
        Self { input, items, params, waiting: Waiting::default() }
    }

    fn extended(&self, run: &mut Run<'_>, mut row: Row) -> Result<Row, SqlError> {
        let width = row.len();
        row.reserve_exact(self.items.len());
        for (expr, column_type) in self.items {
            // The new values do not see each other.
            let value = run.eval(expr, &row[..width], &self.params)?;
            row.push(present(value, column_type));
        }
        Ok(row)
    }
}

impl Operator for Extend<'_> {
    fn next(&mut self, run: &mut Run<'_>) -> Result<Poll, SqlError> {
        if self.waiting.is_empty() {
            match self.input.next(run)? {
                Poll::Rows(rows) => self.waiting.fill(run, rows)?,
                other => return Ok(other),
            }
        }
        let mut chunk = Chunk::new(run);
        while !chunk.is_full()
            && let Some(row) = self.waiting.pop(run)
        {
            chunk.push(self.extended(run, row)?);
            if run.spend(1) {
                break;
            }
        }
        Ok(chunk.or(Poll::Yield))
    }

    fn close(&mut self, run: &mut Run<'_>) {
        self.input.close(run);
        self.waiting.clear(run);
    }
}

/// Some slots of each row.
pub(super) struct Narrow<'p> {
    pub(super) input: Node<'p>,
    pub(super) slots: &'p [u32],
}

impl Operator for Narrow<'_> {
    fn next(&mut self, run: &mut Run<'_>) -> Result<Poll, SqlError> {
        let mut rows = match self.input.next(run)? {
            Poll::Rows(rows) => rows,
            other => return Ok(other),
        };
        for row in &mut rows {
            let value = |slot: &u32| row.get(*slot as usize).cloned();
            *row = self.slots.iter().filter_map(value).collect();
        }
        run.spend(rows.len());
        Ok(Poll::Rows(rows))
    }

    fn close(&mut self, run: &mut Run<'_>) {
        self.input.close(run);
    }
}

/// Some of the rows.
pub(super) struct Limit<'p> {
    input: Node<'p>,
    count: Option<&'p Expr>,
    offset: Option<&'p Expr>,
    params: Params,
    /// Rows to leave out, and rows to give, once they are known.
    left: Option<(u64, u64)>,
}

impl<'p> Limit<'p> {
    pub(super) fn new(
        input: Node<'p>,
        count: Option<&'p Expr>,
        offset: Option<&'p Expr>,
        params: Params,
    ) -> Self {
        Self { input, count, offset, params, left: None }
    }

    fn numbers(&self, run: &mut Run<'_>) -> Result<(u64, u64), SqlError> {
        let skip = self.offset.map(|expr| run.count(expr, &self.params)).transpose()?;
        let take = self.count.map(|expr| run.count(expr, &self.params)).transpose()?;
        Ok((skip.unwrap_or(0), take.unwrap_or(u64::MAX)))
    }
}

impl Operator for Limit<'_> {
    fn next(&mut self, run: &mut Run<'_>) -> Result<Poll, SqlError> {
        let (mut skip, mut take) = match self.left {
            Some(left) => left,
            None => self.numbers(run)?,
        };
        loop {
            if take == 0 {
                self.left = Some((0, 0));
                self.input.close(run);
                return Ok(Poll::Done);
            }
            let mut rows = match self.input.next(run)? {
                Poll::Rows(rows) => rows,
                other => {
                    self.left = Some((skip, take));
                    return Ok(other);
                }
            };
            let tired = run.spend(rows.len());
            let skipped = rows.len().min(usize::try_from(skip).unwrap_or(usize::MAX));
            rows.drain(..skipped);
            skip -= skipped as u64;
            rows.truncate(usize::try_from(take).unwrap_or(usize::MAX));
            take -= rows.len() as u64;
            self.left = Some((skip, take));
            if !rows.is_empty() {
                return Ok(Poll::Rows(rows));
            }
            if tired {
                return Ok(Poll::Yield);
            }
        }
    }

    fn close(&mut self, run: &mut Run<'_>) {
        self.left = Some((0, 0));
        self.input.close(run);
    }
}

/// The same rows, at most one.
pub(super) struct MaxOneRow<'p> {
    pub(super) input: Node<'p>,
    pub(super) seen: usize,
}

impl Operator for MaxOneRow<'_> {
    fn next(&mut self, run: &mut Run<'_>) -> Result<Poll, SqlError> {
        let polled = self.input.next(run)?;
        if let Poll::Rows(rows) = &polled {
            self.seen += rows.len();
            if self.seen > 1 {
                return Err(more_than_one_row());
            }
        }
        Ok(polled)
    }

    fn close(&mut self, run: &mut Run<'_>) {
        self.input.close(run);
    }
}
