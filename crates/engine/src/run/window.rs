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
    is_sorted: bool,
    part: Part,
}

/// The part that is computed: its rows, and what is known of it.
#[derive(Default)]
struct Part {
    from: usize,
    to: usize,
    /// The next row.
    at: usize,
    peers: Vec<(usize, usize)>,
    /// For each row, how many groups of peers there are up to it.
    ranks: Vec<usize>,
    /// For each function, what the rows of the frame so far come to.
    so_far: Vec<Option<frame::SoFar>>,
}

/// Rows that are handed on at once.
const ROWS_AT_ONCE: usize = 256;

impl<'p> Window<'p> {
    pub(super) fn new(input: Node<'p>, spec: Spec<'p>, params: Params) -> Self {
        let (rows, part) = (Vec::new(), Part::default());
        Self { input, spec, params, rows, is_sorted: false, part }
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

    fn sort(&mut self) {
        let keys = self.spec.order;
        self.rows.sort_by(|a, b| {
            compare_values(&a.partition, &b.partition)
                .then_with(|| compare(keys, &a.order, &b.order))
        });
        self.is_sorted = true;
    }

    /// Goes on to the part that begins with this row; false at the end.
    fn next_part(&mut self, from: usize) -> bool {
        let Some(first) = self.rows.get(from) else { return false };
        let key = bytes_of(&first.partition);
        let same = self.rows[from..].iter().take_while(|row| bytes_of(&row.partition) == key);
        let to = from + same.count();
        let peers = self.peers(&self.rows[from..to]);
        let mut ranks = Vec::with_capacity(peers.len());
        for (at, (first, _)) in peers.iter().enumerate() {
            let before = ranks.last().copied().unwrap_or(0);
            ranks.push(before + usize::from(*first == at));
        }
        let so_far = self.spec.calls.iter().map(|_| None).collect();
        self.part = Part { from, to, at: from, peers, ranks, so_far };
        true
    }

    /// The next rows with their results.
    fn compute(&mut self, run: &mut Run<'_>) -> Result<Vec<Row>, SqlError> {
        let mut out = Vec::new();
        while out.len() < ROWS_AT_ONCE {
            if self.part.at == self.part.to && !self.next_part(self.part.to) {
                break;
            }
            let (from, to, at) = (self.part.from, self.part.to, self.part.at);
            let mut results = Row::with_capacity(self.spec.calls.len());
            let mut so_far = core::mem::take(&mut self.part.so_far);
            for (call, so_far) in self.spec.calls.iter().zip(&mut so_far) {
                let value = self.value(run, call, &self.rows[from..to], at - from, so_far)?;
                results.push(present(value, &call.column_type));
            }
            self.part.so_far = so_far;
            self.part.at += 1;
            // The row stays: those behind it may look at it.
            let mut row = self.rows[at].row.clone();
            row.extend(results);
            out.push(row);
        }
        Ok(out)
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
        at: usize,
        so_far: &mut Option<frame::SoFar>,
    ) -> Result<Value, SqlError> {
        let (first, last) = self.part.peers[at];
        let count = part.len();
        let number = |n: usize| Value::UInt(n as u64);
        Ok(match &call.function {
            W::RowNumber => number(at + 1),
            W::Rank => number(first + 1),
            W::DenseRank => number(self.part.ranks[at]),
            W::PercentRank if count == 1 => Value::Double(0.0),
            W::PercentRank => Value::Double(first as f64 / (count - 1) as f64),
            W::CumeDist => Value::Double((last + 1) as f64 / count as f64),
            W::Ntile => self.ntile(run, call, part, at)?,
            W::Lag | W::Lead => self.neighbour(run, call, part, at)?,
            _ => frame::value(run, call, (part, (first, last), at), &self.params, so_far)?,
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
                Poll::Done => self.sort(),
                other => return Ok(other),
            }
        }
        let rows = self.compute(run)?;
        run.spend(rows.len());
        Ok(if rows.is_empty() { Poll::Done } else { Poll::Rows(rows) })
    }

    fn close(&mut self, run: &mut Run<'_>) {
        self.input.close(run);
        self.rows.clear();
        self.part = Part::default();
        self.is_sorted = true;
    }
}
