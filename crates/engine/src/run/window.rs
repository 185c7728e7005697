//! Window functions: rows are sorted by parts and order, and each part is computed as a whole.

mod frame;

use super::sort::{compare, order_values};
use super::{Node, Operator, Params, Poll, Row, Run, row_bytes};
use crate::ir::WindowFunction as W;
use crate::physical::{OrderKey, WindowCall};
use alloc::vec::Vec;
use core::cmp::Ordering;
use lats_values::{ColumnType, Expr, SqlError, Value, group_key, present, sort_order};

/// What the windows are.
pub(super) struct Spec<'p> {
    pub(super) partition: &'p [(Expr, ColumnType)],
    pub(super) order: &'p [OrderKey],
    pub(super) calls: &'p [WindowCall],
}

/// A row with what it is sorted by.
struct Keyed {
    partition: Row,
    order: Row,
    row: Row,
}

/// The operator while it runs.
pub(super) struct Window<'p> {
    input: Node<'p>,
    spec: Spec<'p>,
    params: Params,
    rows: Vec<Keyed>,
    is_built: bool,
    out: Vec<Row>,
}

/// Rows that are handed on at once.
const ROWS_AT_ONCE: usize = 1_024;

impl<'p> Window<'p> {
    pub(super) fn new(input: Node<'p>, spec: Spec<'p>, params: Params) -> Self {
        let (rows, out) = (Vec::new(), Vec::new());
        Self { input, spec, params, rows, is_built: false, out }
    }

    fn keep(&mut self, run: &mut Run<'_>, row: Row) -> Result<(), SqlError> {
        let mut partition = Row::with_capacity(self.spec.partition.len());
        for (expr, of) in self.spec.partition {
            partition.push(present(run.eval(expr, &row, &self.params)?, of));
        }
        let order = order_values(run, self.spec.order, &row, &self.params)?;
        run.hold(row_bytes(&row) + row_bytes(&partition) + row_bytes(&order))?;
        self.rows.push(Keyed { partition, order, row });
        Ok(())
    }

    fn compute(&mut self, run: &mut Run<'_>) -> Result<(), SqlError> {
        let keys = self.spec.order;
        let mut rows = core::mem::take(&mut self.rows);
        rows.sort_by(|a, b| {
            compare_values(&a.partition, &b.partition)
                .then_with(|| compare(keys, &a.order, &b.order))
        });
        let mut from = 0;
        while from < rows.len() {
            let key = bytes_of(&rows[from].partition);
            let same = rows[from..].iter().take_while(|row| bytes_of(&row.partition) == key);
            let to = from + same.count();
            let results = self.part(run, &rows[from..to])?;
            for (keyed, values) in rows[from..to].iter_mut().zip(results) {
                keyed.row.extend(values);
            }
            from = to;
        }
        self.out = rows.into_iter().rev().map(|keyed| keyed.row).collect();
        Ok(())
    }

    /// The results of all functions for each row of a part.
    fn part(&self, run: &mut Run<'_>, part: &[Keyed]) -> Result<Vec<Row>, SqlError> {
        let peers = self.peers(part);
        let mut results: Vec<Row> = part.iter().map(|_| Row::new()).collect();
        for call in self.spec.calls {
            for (at, result) in results.iter_mut().enumerate() {
                let value = self.value(run, call, part, &peers, at)?;
                result.push(present(value, &call.column_type));
            }
        }
        Ok(results)
    }

    /// For each row, the first and the last of the rows with the same order.
    fn peers(&self, part: &[Keyed]) -> Vec<(usize, usize)> {
        let mut peers = Vec::with_capacity(part.len());
        let mut from = 0;
        while from < part.len() {
            let same = |row: &&Keyed| {
                compare(self.spec.order, &part[from].order, &row.order) == Ordering::Equal
            };
            let to = from + part[from..].iter().take_while(same).count().max(1);
            peers.extend((from..to).map(|_| (from, to - 1)));
            from = to;
        }
        peers
    }

    fn value(
        &self,
        run: &mut Run<'_>,
        call: &WindowCall,
        part: &[Keyed],
        peers: &[(usize, usize)],
        at: usize,
    ) -> Result<Value, SqlError> {
        let (first, last) = peers[at];
        let count = part.len();
        let number = |n: usize| Value::UInt(n as u64);
        Ok(match &call.function {
            W::RowNumber => number(at + 1),
            W::Rank => number(first + 1),
            W::DenseRank => {
                let before = peers[..at].iter().filter(|(from, _)| *from != first);
                let mut starts: Vec<usize> = before.map(|(from, _)| *from).collect();
                starts.dedup();
                number(starts.len() + 1)
            }
            W::PercentRank if count == 1 => Value::Double(0.0),
            W::PercentRank => Value::Double(first as f64 / (count - 1) as f64),
            W::CumeDist => Value::Double((last + 1) as f64 / count as f64),
            W::Ntile => self.ntile(run, call, part, at)?,
            W::Lag | W::Lead => self.neighbour(run, call, part, at)?,
            _ => frame::value(run, call, part, peers[at], at, &self.params)?,
        })
    }

    /// The part in so many pieces: the first ones have one row more.
    fn ntile(
        &self,
        run: &mut Run<'_>,
        call: &WindowCall,
        part: &[Keyed],
        at: usize,
    ) -> Result<Value, SqlError> {
        let Some(pieces) = argument(run, call, 0, &part[at].row, &self.params)? else {
            return Err(frame::wrong_arguments("ntile"));
        };
        let pieces = match pieces {
            Value::Null => return Ok(Value::Null),
            Value::Int(n) if n > 0 => n.unsigned_abs() as usize,
            Value::UInt(n) if n > 0 => usize::try_from(n).unwrap_or(usize::MAX),
            _ => return Err(frame::wrong_arguments("ntile")),
        };
        let (size, more) = (part.len() / pieces, part.len() % pieces);
        let in_larger = more * (size + 1);
        let piece = match at < in_larger {
            true => at / (size + 1),
            false => more + (at - in_larger) / size.max(1),
        };
        Ok(Value::UInt(piece as u64 + 1))
    }

    /// LAG and LEAD.
    fn neighbour(
        &self,
        run: &mut Run<'_>,
        call: &WindowCall,
        part: &[Keyed],
        at: usize,
    ) -> Result<Value, SqlError> {
        let is_lag = call.function == W::Lag;
        let name = if is_lag { "lag" } else { "lead" };
        let distance = match argument(run, call, 1, &part[at].row, &self.params)? {
            None => 1,
            Some(Value::Int(n)) if n >= 0 => n.unsigned_abs() as usize,
            Some(Value::UInt(n)) => usize::try_from(n).unwrap_or(usize::MAX),
            Some(_) => return Err(frame::wrong_arguments(name)),
        };
        let place = match is_lag {
            true => at.checked_sub(distance),
            false => at.checked_add(distance).filter(|place| *place < part.len()),
        };
        match place {
            Some(place) => {
                let value = argument(run, call, 0, &part[place].row, &self.params)?;
                Ok(value.unwrap_or(Value::Null))
            }
            None => {
                let value = argument(run, call, 2, &part[at].row, &self.params)?;
                Ok(value.unwrap_or(Value::Null))
            }
        }
    }
}

/// An argument of a function for a row; none if it is not there.
fn argument(
    run: &mut Run<'_>,
    call: &WindowCall,
    at: usize,
    row: &[Value],
    params: &[Value],
) -> Result<Option<Value>, SqlError> {
    call.args.get(at).map(|(expr, _)| run.eval(expr, row, params)).transpose()
}

fn bytes_of(values: &[Value]) -> Vec<u8> {
    let mut bytes = Vec::new();
    group_key(values, &mut bytes);
    bytes
}

fn compare_values(a: &[Value], b: &[Value]) -> Ordering {
    let orders = a.iter().zip(b).map(|(a, b)| sort_order(a, b));
    orders.into_iter().find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

impl Operator for Window<'_> {
    fn next(&mut self, run: &mut Run<'_>) -> Result<Poll, SqlError> {
        while !self.is_built {
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
                    self.is_built = true;
                    self.compute(run)?;
                }
                other => return Ok(other),
            }
        }
        let count = self.out.len().min(ROWS_AT_ONCE);
        if count == 0 {
            return Ok(Poll::Done);
        }
        let mut rows = self.out.split_off(self.out.len() - count);
        rows.reverse();
        Ok(Poll::Rows(rows))
    }

    fn close(&mut self, run: &mut Run<'_>) {
        self.input.close(run);
        self.out.clear();
        self.rows.clear();
        self.is_built = true;
    }
}
