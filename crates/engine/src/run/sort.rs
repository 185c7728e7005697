//! Rows in an order.

use super::{Node, Operator, Params, Poll, Row, Run, row_bytes};
use crate::physical::OrderKey;
use alloc::vec::Vec;
use core::cmp::Ordering;
use lats_values::{Expr, SqlError, Value, present, sort_order};

/// The operator while it runs.
pub(super) struct Sort<'p> {
    input: Node<'p>,
    keys: &'p [OrderKey],
    top: Option<&'p (Expr, Option<Expr>)>,
    params: Params,
    rows: Vec<(Vec<Value>, Row)>,
    wanted: Option<usize>,
    is_sorted: bool,
    bytes: usize,
}

/// Rows beyond the wanted ones that are kept until the next sort.
const SLACK: usize = 4_096;
/// Rows that are handed on at once.
const ROWS_AT_ONCE: usize = 1_024;

impl<'p> Sort<'p> {
    pub(super) fn new(
        input: Node<'p>,
        keys: &'p [OrderKey],
        top: Option<&'p (Expr, Option<Expr>)>,
        params: Params,
    ) -> Self {
        let (rows, wanted) = (Vec::new(), None);
        Self { input, keys, top, params, rows, wanted, is_sorted: false, bytes: 0 }
    }

    /// How many rows are wanted at most.
    fn wanted(&mut self, run: &mut Run<'_>) -> Result<usize, SqlError> {
        if let Some(wanted) = self.wanted {
            return Ok(wanted);
        }
        let wanted = match self.top {
            None => u64::MAX,
            Some((count, offset)) => {
                let count = run.count(count, &self.params)?;
                let offset = offset.as_ref().map(|o| run.count(o, &self.params)).transpose()?;
                count.saturating_add(offset.unwrap_or(0))
            }
        };
        let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
        self.wanted = Some(wanted);
        Ok(wanted)
    }

    fn keep(&mut self, run: &mut Run<'_>, row: Row) -> Result<(), SqlError> {
        let key = order_values(run, self.keys, &row, &self.params)?;
        let bytes = row_bytes(&row) + row_bytes(&key);
        run.hold(bytes)?;
        self.bytes += bytes;
        self.rows.push((key, row));
        let wanted = self.wanted(run)?;
        if self.rows.len() >= wanted.saturating_mul(2).saturating_add(SLACK) {
            self.sort();
            self.rows.truncate(wanted);
            let kept = self.rows.iter().map(|(key, row)| row_bytes(key) + row_bytes(row)).sum();
            run.release(self.bytes);
            self.bytes = kept;
            run.hold(kept)?;
        }
        Ok(())
    }

    fn sort(&mut self) {
        let keys = self.keys;
        self.rows.sort_by(|(a, _), (b, _)| compare(keys, a, b));
    }
}

/// The values that a row is ordered by.
pub(super) fn order_values(
    run: &mut Run<'_>,
    keys: &[OrderKey],
    row: &[Value],
    params: &[Value],
) -> Result<Vec<Value>, SqlError> {
    let mut values = Vec::with_capacity(keys.len());
    for key in keys {
        let value = run.eval(&key.value, row, params)?;
        values.push(match key.value {
            Expr::Column(_) => value,
            _ => present(value, &key.column_type),
        });
    }
    Ok(values)
}

/// Compares rows by the values of their keys.
pub(super) fn compare(keys: &[OrderKey], a: &[Value], b: &[Value]) -> Ordering {
    for ((a, b), key) in a.iter().zip(b).zip(keys) {
        let order = sort_order(a, b);
        if order != Ordering::Equal {
            return if key.descending { order.reverse() } else { order };
        }
    }
    Ordering::Equal
}

impl Operator for Sort<'_> {
    fn next(&mut self, run: &mut Run<'_>) -> Result<Poll, SqlError> {
        while !self.is_sorted {
            match self.input.next(run)? {
                Poll::Rows(rows) => {
                    let tired = run.spend(rows.len());
                    for row in rows {
                        self.keep(run, row)?;
                    }
                    if tired {
                        return Ok(Poll::Yield);
                    }
                }
                Poll::Done => {
                    self.sort();
                    // The next rows are taken from the end.
                    self.rows.reverse();
                    self.is_sorted = true;
                }
                other => return Ok(other),
            }
        }
        let count = self.rows.len().min(ROWS_AT_ONCE);
        if count == 0 {
            run.release(core::mem::take(&mut self.bytes));
            return Ok(Poll::Done);
        }
        let rest = self.rows.split_off(self.rows.len() - count);
        Ok(Poll::Rows(rest.into_iter().rev().map(|(_, row)| row).collect()))
    }

    fn close(&mut self, run: &mut Run<'_>) {
        self.input.close(run);
        self.rows.clear();
        self.is_sorted = true;
    }
}
