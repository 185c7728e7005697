//! Window functions: rows are sorted by parts and order, and each part is computed as a whole.

mod frame;

use super::memory::{Chunk, Held, Waiting};
use super::ordered::Sorter;
use super::sort::{compare, order_values};
use super::{Node, Operator, Params, Poll, Row, Run, row_bytes};
use crate::ir::WindowFunction as W;
use crate::physical::{OrderKey, WindowCall};
use alloc::vec::Vec;
use core::cmp::Ordering;
use lats_base::planted::{QueryBug, errs};
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

impl Keyed {
    fn bytes(&self) -> usize {
        row_bytes(&self.row) + row_bytes(&self.partition) + row_bytes(&self.order)
    }
}

/// The operator while it runs.
pub(super) struct Window<'p> {
    input: Node<'p>,
    spec: Spec<'p>,
    params: Params,
    waiting: Waiting,
    sorter: Sorter<Keyed>,
    is_sorted: bool,
    /// The first row of the next part.
    next: Option<Keyed>,
    part: Part,
    held: Held,
}

/// The part that is computed: its rows, and what is known of it.
#[derive(Default)]
struct Part {
    rows: Vec<Keyed>,
    /// The bytes that its rows have in common.
    key: Vec<u8>,
    /// All of its rows are there.
    is_whole: bool,
    /// The next row, and the results of its first functions.
    at: usize,
    results: Row,
    /// For each row, which group of peers it is in; where the groups begin.
    group_of: Vec<u32>,
    groups: Vec<usize>,
    /// For each function, what the rows of the frame so far come to.
    so_far: Vec<Option<frame::SoFar>>,
}

/// Memory of a row's place in its part.
const PLACE_BYTES: usize = 16;

impl Part {
    /// The first and the last of the rows with the same order as a row.
    fn peers(&self, at: usize) -> (usize, usize) {
        let group = self.group_of.get(at).map_or(0, |group| *group as usize);
        let first = self.groups.get(group).copied().unwrap_or(at);
        let next = self.groups.get(group + 1).copied().unwrap_or(self.rows.len());
        (first, next.saturating_sub(1).max(first))
    }

    /// How many groups of peers there are up to a row.
    fn dense_rank(&self, at: usize) -> usize {
        self.group_of.get(at).map_or(1, |group| *group as usize + 1)
    }

    fn push(&mut self, keyed: Keyed, order: &[OrderKey]) {
        let is_peer = self
            .rows
            .last()
            .is_some_and(|last| compare(order, &last.order, &keyed.order) == Ordering::Equal);
        if !is_peer {
            self.groups.push(self.rows.len());
        }
        self.group_of.push(u32::try_from(self.groups.len() - 1).unwrap_or(u32::MAX));
        self.rows.push(keyed);
    }
}

impl<'p> Window<'p> {
    pub(super) fn new(input: Node<'p>, spec: Spec<'p>, params: Params) -> Self {
        Self {
            input,
            spec,
            params,
            waiting: Waiting::default(),
            sorter: Sorter::default(),
            is_sorted: false,
            next: None,
            part: Part::default(),
            held: Held::default(),
        }
    }

    fn keep(&mut self, run: &mut Run<'_>, row: Row) -> Result<(), SqlError> {
        let mut partition = Row::with_capacity(self.spec.partition.len());
        for (expr, of) in self.spec.partition {
            partition.push(present(run.eval(expr, &row, &self.params)?, of));
        }
        let order = order_values(run, self.spec.order, &row, &self.params)?;
        let keyed = Keyed { partition, order, row };
        self.held.grow(run, keyed.bytes() + PLACE_BYTES)?;
        self.sorter.push(keyed, &by_part(self.spec.order));
        Ok(())
    }

    /// Goes on with all rows; what a pause is, or none when all are there.
    fn build(&mut self, run: &mut Run<'_>) -> Result<Option<Poll>, SqlError> {
        while !self.is_sorted {
            while let Some(row) = self.waiting.pop(run) {
                self.keep(run, row)?;
                if run.spend(2) {
                    return Ok(Some(Poll::Yield));
                }
            }
            match self.input.next(run)? {
                Poll::Rows(rows) => self.waiting.fill(run, rows)?,
                Poll::Done => {
                    self.input.close(run);
                    self.is_sorted = true;
                    self.next = self.sorter.pop(&by_part(self.spec.order));
                }
                other => return Ok(Some(other)),
            }
        }
        Ok(None)
    }

    /// Goes on to the next part, if this one is through; what a pause is, or none when the part is whole or there is none.
    fn next_part(&mut self, run: &mut Run<'_>) -> Option<Poll> {
        if self.part.is_whole && self.part.at < self.part.rows.len() {
            return None;
        }
        if self.part.is_whole || self.part.rows.is_empty() {
            let before = core::mem::take(&mut self.part);
            let bytes = before.rows.iter().map(|keyed| keyed.bytes() + PLACE_BYTES).sum();
            self.held.shrink(run, bytes);
            before.so_far.into_iter().for_each(|so_far| frame::SoFar::free(so_far, run));
            let first = self.next.as_ref()?;
            self.part.key = bytes_of(&first.partition);
            self.part.so_far = self.spec.calls.iter().map(|_| None).collect();
        }
        while let Some(keyed) = self.next.take() {
            if bytes_of(&keyed.partition) != self.part.key {
                self.next = Some(keyed);
                break;
            }
            self.part.push(keyed, self.spec.order);
            self.next = self.sorter.pop(&by_part(self.spec.order));
            if run.spend(1 + self.sorter.steps() / 2) {
                return Some(Poll::Yield);
            }
        }
        self.part.is_whole = true;
        None
    }

    /// The next row with its results; none if it takes longer, and is to be asked for again.
    fn compute(&mut self, run: &mut Run<'_>) -> Result<Option<Row>, SqlError> {
        let at = self.part.at;
        let mut so_far = core::mem::take(&mut self.part.so_far);
        let from = self.part.results.len();
        for (call, so_far) in self.spec.calls.iter().zip(&mut so_far).skip(from) {
            let Some(value) = self.value(run, call, at, so_far)? else { break };
            self.part.results.push(present(value, &call.column_type));
        }
        self.part.so_far = so_far;
        if self.part.results.len() < self.spec.calls.len() {
            return Ok(None);
        }
        self.part.at += 1;
        // The row stays: those behind it may look at it.
        let mut row = self.part.rows.get(at).map_or_else(Row::new, |keyed| keyed.row.clone());
        row.append(&mut self.part.results);
        Ok(Some(row))
    }

    fn value(
        &self,
        run: &mut Run<'_>,
        call: &WindowCall,
        at: usize,
        so_far: &mut Option<frame::SoFar>,
    ) -> Result<Option<Value>, SqlError> {
        let part = self.part.rows.as_slice();
        let (first, last) = self.part.peers(at);
        let count = part.len();
        let number = |n: usize| Value::UInt(n as u64);
        Ok(Some(match &call.function {
            W::RowNumber => number(at + 1),
            W::Rank if errs(QueryBug::RankOfPlace) => number(at + 1),
            W::Rank => number(first + 1),
            W::DenseRank => number(self.part.dense_rank(at)),
            W::PercentRank if count == 1 => Value::Double(0.0),
            W::PercentRank => Value::Double(first as f64 / (count - 1) as f64),
            W::CumeDist => Value::Double((last + 1) as f64 / count as f64),
            W::Ntile => self.ntile(run, call, part, at)?,
            W::Lag | W::Lead => self.neighbour(run, call, part, at)?,
            _ => {
                let (keys, place) = (self.spec.order, (part, (first, last), at));
                return frame::value(run, call, keys, place, &self.params, so_far);
            }
        }))
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
        if errs(QueryBug::NtileEndsLarger) {
            let (turned, size) = (part.len() - 1 - at, size.max(1));
            let larger = more * (size + 1);
            let from_end = match turned < larger {
                true => turned / (size + 1),
                false => more + (turned - larger) / size,
            };
            return Ok(Value::UInt(pieces.min(part.len()).saturating_sub(from_end).max(1) as u64));
        }
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
                let place = if errs(QueryBug::LagForgetsDefault) { 3 } else { 2 };
                let value = argument(run, call, place, &part[at].row, &self.params)?;
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

/// By parts, and by the order within them.
fn by_part(order: &[OrderKey]) -> impl Fn(&Keyed, &Keyed) -> Ordering {
    move |a, b| {
        compare_values(&a.partition, &b.partition).then_with(|| compare(order, &a.order, &b.order))
    }
}

impl Operator for Window<'_> {
    fn next(&mut self, run: &mut Run<'_>) -> Result<Poll, SqlError> {
        if let Some(pause) = self.build(run)? {
            return Ok(pause);
        }
        let mut out = Chunk::new(run);
        while !out.is_full() {
            if let Some(pause) = self.next_part(run) {
                return Ok(out.or(pause));
            }
            if self.part.rows.is_empty() {
                return Ok(out.or(Poll::Done));
            }
            match self.compute(run)? {
                Some(row) => out.push(row),
                None => return Ok(out.or(Poll::Yield)),
            }
            if run.spend(1) {
                break;
            }
        }
        Ok(out.or(Poll::Yield))
    }

    fn close(&mut self, run: &mut Run<'_>) {
        self.input.close(run);
        self.waiting.clear(run);
        let sorter = core::mem::take(&mut self.sorter);
        self.next = None;
        let part = core::mem::take(&mut self.part);
        part.so_far.into_iter().for_each(|so_far| frame::SoFar::free(so_far, run));
        self.is_sorted = true;
        self.held.leave(run, (sorter, part.rows, part.results));
    }
}
