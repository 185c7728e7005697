//! Rows in an order.

use super::memory::{Chunk, Held, Waiting};
use super::ordered::{Sorter, Top};
use super::{Node, Operator, Params, Poll, Row, Run, row_bytes};
use crate::physical::OrderKey;
use alloc::vec::Vec;
use core::cmp::Ordering;
use lats_base::planted::{QueryBug, errs};
use lats_values::{Expr, SqlError, Value, present, sort_order};

/// What a row is ordered by, and the row.
type Keyed = (Vec<Value>, Row);

/// The operator while it runs.
pub(super) struct Sort<'p> {
    input: Node<'p>,
    keys: &'p [OrderKey],
    top: Option<&'p (Expr, Option<Expr>)>,
    params: Params,
    waiting: Waiting,
    rows: Rows,
    held: Held,
    is_built: bool,
}

/// Rows that are kept.
enum Rows {
    /// It is not known yet how many are wanted.
    Unknown,
    /// All of them.
    All(Sorter<Keyed>),
    /// So many at most.
    Some(usize, Top<Keyed>),
}

fn bytes_of((key, row): &Keyed) -> usize {
    row_bytes(key) + row_bytes(row)
}

impl<'p> Sort<'p> {
    pub(super) fn new(
        input: Node<'p>,
        keys: &'p [OrderKey],
        top: Option<&'p (Expr, Option<Expr>)>,
        params: Params,
    ) -> Self {
        let (waiting, held) = (Waiting::default(), Held::default());
        Self { input, keys, top, params, waiting, rows: Rows::Unknown, held, is_built: false }
    }

    /// How many rows are wanted at most.
    fn wanted(&self, run: &mut Run<'_>) -> Result<Rows, SqlError> {
        let Some((count, offset)) = self.top else { return Ok(Rows::All(Sorter::default())) };
        let count = run.count(count, &self.params)?;
        let offset = offset.as_ref().map(|o| run.count(o, &self.params)).transpose()?;
        let offset = offset.filter(|_| !errs(QueryBug::TopForgetsOffset));
        let wanted = count.saturating_add(offset.unwrap_or(0));
        Ok(match usize::try_from(wanted) {
            Ok(wanted) if wanted < usize::MAX => Rows::Some(wanted, Top::default()),
            _ => Rows::All(Sorter::default()),
        })
    }

    /// Keeps a row, if it is wanted; true if it is time to pause.
    fn keep(&mut self, run: &mut Run<'_>, row: Row) -> Result<bool, SqlError> {
        let keyed = (order_values(run, self.keys, &row, &self.params)?, row);
        let keys = self.keys;
        let order = |a: &Keyed, b: &Keyed| compare(keys, &a.0, &b.0);
        let bytes = bytes_of(&keyed);
        let steps = match &mut self.rows {
            Rows::Unknown => 0,
            Rows::All(sorter) => {
                self.held.grow(run, bytes)?;
                sorter.push(keyed, &order);
                1
            }
            Rows::Some(wanted, top) => {
                let gone = top.push(keyed, *wanted, &order);
                let gone = gone.map_or(0, |gone| bytes_of(&gone));
                match bytes.checked_sub(gone) {
                    Some(more) => self.held.grow(run, more)?,
                    None => self.held.shrink(run, gone - bytes),
                }
                top.steps() / 2
            }
        };
        Ok(run.spend(1 + steps))
    }

    /// Goes on with all rows; what a pause is, or none when they are in order.
    fn build(&mut self, run: &mut Run<'_>) -> Result<Option<Poll>, SqlError> {
        if matches!(self.rows, Rows::Unknown) {
            self.rows = self.wanted(run)?;
        }
        while !self.is_built {
            while let Some(row) = self.waiting.pop(run) {
                if self.keep(run, row)? {
                    return Ok(Some(Poll::Yield));
                }
            }
            match self.input.next(run)? {
                Poll::Rows(rows) => self.waiting.fill(run, rows)?,
                Poll::Done => {
                    self.input.close(run);
                    self.is_built = true;
                }
                other => return Ok(Some(other)),
            }
        }
        let keys = self.keys;
        if let Rows::Some(_, top) = &mut self.rows {
            while top.sort_one(&|a, b| compare(keys, &a.0, &b.0)) {
                if run.spend(1 + top.steps() / 2) {
                    return Ok(Some(Poll::Yield));
                }
            }
        }
        Ok(None)
    }

    /// The next row, and how much work it is.
    fn pop(&mut self) -> Option<(Keyed, usize)> {
        let keys = self.keys;
        match &mut self.rows {
            Rows::Unknown => None,
            Rows::All(sorter) => {
                let steps = 1 + sorter.steps() / 2;
                sorter.pop(&|a, b| compare(keys, &a.0, &b.0)).map(|keyed| (keyed, steps))
            }
            Rows::Some(_, top) => top.pop().map(|keyed| (keyed, 1)),
        }
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
            let descending = match errs(QueryBug::FirstDirectionForAll) {
                true => keys.first().is_some_and(|key| key.descending),
                false => key.descending,
            };
            return if descending { order.reverse() } else { order };
        }
    }
    Ordering::Equal
}

impl Operator for Sort<'_> {
    fn next(&mut self, run: &mut Run<'_>) -> Result<Poll, SqlError> {
        if let Some(pause) = self.build(run)? {
            return Ok(pause);
        }
        let mut out = Chunk::new(run);
        while !out.is_full()
            && let Some((keyed, steps)) = self.pop()
        {
            self.held.shrink(run, bytes_of(&keyed));
            out.push(keyed.1);
            if run.spend(steps) {
                break;
            }
        }
        Ok(out.or(Poll::Done))
    }

    fn close(&mut self, run: &mut Run<'_>) {
        self.input.close(run);
        self.waiting.clear(run);
        let rows = core::mem::replace(&mut self.rows, Rows::All(Sorter::default()));
        self.is_built = true;
        self.held.leave(run, rows);
    }
}
