//! Groups and aggregate functions.

use super::memory::{Chunk, ENTRY_BYTES, Held, Waiting};
use super::ordered::Sorter;
use super::{Node, Operator, Params, Poll, Row, Run, row_bytes};
use crate::physical::AggregateCall;
use alloc::{sync::Arc, vec::Vec};
use lats_base::map::Map;
use lats_base::planted::{QueryBug, errs};
use lats_values::{Accumulator, ColumnType, Expr, SqlError, Value, group_key, present};

/// What is grouped how.
pub(super) struct Spec<'p> {
    pub(super) keys: &'p [(Expr, ColumnType)],
    pub(super) rollup: bool,
    pub(super) calls: &'p [AggregateCall],
    pub(super) width: usize,
}

/// One group.
struct Group {
    /// Its first row; none for the group of no rows.
    first: Option<Row>,
    /// The values of the keys.
    keys: Row,
    /// How many keys count: fewer in groups of totals.
    level: usize,
    accumulators: Vec<Accumulator>,
}

/// The operator while it runs.
pub(super) struct Aggregate<'p> {
    input: Node<'p>,
    spec: Spec<'p>,
    params: Params,
    waiting: Waiting,
    numbers: Map<Vec<u8>, usize>,
    groups: Vec<Group>,
    held: Held,
    /// The groups in their order, when all rows were added.
    built: Option<Built>,
}

/// Groups that are handed on.
enum Built {
    /// As they were found, the next one last.
    Found,
    /// Totals behind what they add up.
    Totals(Sorter<Group>),
}

impl<'p> Aggregate<'p> {
    pub(super) fn new(input: Node<'p>, spec: Spec<'p>, params: Params) -> Self {
        Self {
            input,
            spec,
            params,
            waiting: Waiting::default(),
            numbers: Map::default(),
            groups: Vec::new(),
            held: Held::default(),
            built: None,
        }
    }

    fn group(&self, first: Option<Row>, keys: Row, level: usize) -> Group {
        let accumulators = self.spec.calls.iter();
        let accumulators = accumulators.map(|call| Accumulator::of(Arc::clone(&call.spec)));
        Group { first, keys, level, accumulators: accumulators.collect() }
    }

    fn add(&mut self, run: &mut Run<'_>, row: &Row) -> Result<(), SqlError> {
        let mut keys = Row::with_capacity(self.spec.keys.len());
        for (expr, of) in self.spec.keys {
            let value = run.eval(expr, row, &self.params)?;
            keys.push(if matches!(expr, Expr::Column(_)) { value } else { present(value, of) });
        }
        let mut args = Vec::with_capacity(self.spec.calls.len());
        for call in self.spec.calls {
            let mut values = Row::with_capacity(call.args.len());
            for (expr, of) in &call.args {
                let value = run.eval(expr, row, &self.params)?;
                values.push(if matches!(expr, Expr::Column(_)) {
                    value
                } else {
                    present(value, of)
                });
            }
            args.push(values);
        }
        let fewest = if self.spec.rollup { 0 } else { keys.len() };
        for level in fewest..=keys.len() {
            self.add_to(run, row, &keys, level, &args)?;
        }
        Ok(())
    }

    fn add_to(
        &mut self,
        run: &mut Run<'_>,
        row: &Row,
        keys: &Row,
        level: usize,
        args: &[Row],
    ) -> Result<(), SqlError> {
        let mut key = Vec::new();
        if self.spec.rollup {
            key.push(u8::try_from(level).unwrap_or(u8::MAX));
        }
        group_key(&keys[..level], &mut key);
        let number = match self.numbers.get(&key) {
            Some(number) => *number,
            None => {
                let group = self.group(Some(row.clone()), keys.clone(), level);
                let states: usize = group.accumulators.iter().map(Accumulator::bytes).sum();
                let bytes = key.len() + ENTRY_BYTES + row_bytes(row) + row_bytes(keys) + states;
                self.held.grow(run, bytes)?;
                let number = self.groups.len();
                self.numbers.insert(key, number);
                self.groups.push(group);
                number
            }
        };
        let Some(group) = self.groups.get_mut(number) else { return Ok(()) };
        for (accumulator, values) in group.accumulators.iter_mut().zip(args) {
            let before = accumulator.bytes();
            accumulator.push(values, &mut run.context)?;
            self.held.grow(run, accumulator.bytes().saturating_sub(before))?;
        }
        Ok(())
    }

    /// All rows were added: the groups are handed on.
    fn finish(&mut self) {
        // Totals are there also if there are no rows.
        let is_total = self.spec.keys.is_empty() || self.spec.rollup;
        if self.groups.is_empty() && is_total && !errs(QueryBug::NoGroupOfNoRows) {
            let keys = self.spec.keys.iter().map(|_| Value::Null).collect();
            let group = self.group(None, keys, 0);
            self.groups.push(group);
        }
        self.groups.reverse();
        self.numbers = Map::default();
        self.built = Some(match self.spec.rollup {
            true => Built::Totals(Sorter::default()),
            false => Built::Found,
        });
    }

    /// Goes on with the groups; what a pause is, or none when all are there.
    fn build(&mut self, run: &mut Run<'_>) -> Result<Option<Poll>, SqlError> {
        while self.built.is_none() {
            while let Some(row) = self.waiting.pop(run) {
                self.add(run, &row)?;
                let levels = if self.spec.rollup { self.spec.keys.len() } else { 0 };
                if run.spend(1 + levels) {
                    return Ok(Some(Poll::Yield));
                }
            }
            match self.input.next(run)? {
                Poll::Rows(rows) => self.waiting.fill(run, rows)?,
                Poll::Done => {
                    self.input.close(run);
                    self.finish();
                }
                other => return Ok(Some(other)),
            }
        }
        if let Some(Built::Totals(sorter)) = &mut self.built {
            while let Some(group) = self.groups.pop() {
                sorter.push(group, &compare_totals);
                if run.spend(2) {
                    return Ok(Some(Poll::Yield));
                }
            }
        }
        Ok(None)
    }

    fn next_group(&mut self) -> Option<Group> {
        match &mut self.built {
            Some(Built::Totals(sorter)) => sorter.pop(&compare_totals),
            _ => self.groups.pop(),
        }
    }

    fn row(&self, run: &mut Run<'_>, group: Group) -> Result<Row, SqlError> {
        let nulls = || core::iter::repeat_n(Value::Null, self.spec.width).collect();
        let mut row: Row = group.first.unwrap_or_else(nulls);
        if self.spec.rollup {
            for (at, key) in group.keys.into_iter().enumerate() {
                let is_total =
                    at >= group.level || (key.is_null() && errs(QueryBug::TotalOfNullKey));
                row.push(if is_total { Value::Null } else { key });
                row.push(Value::bool(is_total));
            }
        }
        for accumulator in group.accumulators {
            // What it comes to may be as long as what was gathered for it.
            run.spend(accumulator.bytes() / 256);
            row.push(accumulator.finish_with(&mut run.context)?);
        }
        Ok(row)
    }
}

/// The order of ROLLUP: by the keys, and each total behind what it adds up.
fn compare_totals(a: &Group, b: &Group) -> core::cmp::Ordering {
    let common = a.level.min(b.level);
    for (x, y) in a.keys[..common].iter().zip(&b.keys[..common]) {
        let order = lats_values::sort_order(x, y);
        if order.is_ne() {
            return order;
        }
    }
    b.level.cmp(&a.level)
}

impl Operator for Aggregate<'_> {
    fn next(&mut self, run: &mut Run<'_>) -> Result<Poll, SqlError> {
        if let Some(pause) = self.build(run)? {
            return Ok(pause);
        }
        let mut out = Chunk::new(run);
        while !out.is_full()
            && let Some(group) = self.next_group()
        {
            out.push(self.row(run, group)?);
            if run.spend(1) {
                break;
            }
        }
        Ok(out.or(Poll::Done))
    }

    fn close(&mut self, run: &mut Run<'_>) {
        self.input.close(run);
        self.waiting.clear(run);
        let groups = core::mem::take(&mut self.groups);
        let built = self.built.replace(Built::Found);
        self.held.leave(run, (core::mem::take(&mut self.numbers), groups, built));
    }
}
