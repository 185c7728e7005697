//! Groups and aggregate functions.

use super::{Node, Operator, Params, Poll, Row, Run, row_bytes};
use crate::physical::AggregateCall;
use alloc::{sync::Arc, vec::Vec};
use lats_base::map::Map;
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
    numbers: Map<Vec<u8>, usize>,
    groups: Vec<Group>,
    is_built: bool,
    given: usize,
}

/// Rows that are handed on at once.
const ROWS_AT_ONCE: usize = 1_024;

impl<'p> Aggregate<'p> {
    pub(super) fn new(input: Node<'p>, spec: Spec<'p>, params: Params) -> Self {
        let (numbers, groups) = (Map::default(), Vec::new());
        Self { input, spec, params, numbers, groups, is_built: false, given: 0 }
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
                run.hold(key.len() + row_bytes(row) + 96 * (1 + self.spec.calls.len()))?;
                let number = self.groups.len();
                self.numbers.insert(key, number);
                let group = self.group(Some(row.clone()), keys.clone(), level);
                self.groups.push(group);
                number
            }
        };
        let Some(group) = self.groups.get_mut(number) else { return Ok(()) };
        for (accumulator, values) in group.accumulators.iter_mut().zip(args) {
            let before = accumulator.bytes();
            accumulator.push(values, &mut run.context)?;
            run.hold(accumulator.bytes().saturating_sub(before))?;
        }
        Ok(())
    }

    /// All rows were added: totals come behind their groups.
    fn finish(&mut self) {
        self.is_built = true;
        // Totals are there also if there are no rows.
        if self.groups.is_empty() && (self.spec.keys.is_empty() || self.spec.rollup) {
            let keys = self.spec.keys.iter().map(|_| Value::Null).collect();
            let group = self.group(None, keys, 0);
            self.groups.push(group);
        }
        if self.spec.rollup {
            self.groups.sort_by(compare_totals);
        }
    }

    fn row(&self, run: &mut Run<'_>, group: Group) -> Result<Row, SqlError> {
        let nulls = || core::iter::repeat_n(Value::Null, self.spec.width).collect();
        let mut row: Row = group.first.unwrap_or_else(nulls);
        if self.spec.rollup {
            for (at, key) in group.keys.into_iter().enumerate() {
                let is_total = at >= group.level;
                row.push(if is_total { Value::Null } else { key });
                row.push(Value::bool(is_total));
            }
        }
        for accumulator in group.accumulators {
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
        while !self.is_built {
            match self.input.next(run)? {
                Poll::Rows(rows) => {
                    let tired = run.spend(rows.len());
                    for row in &rows {
                        self.add(run, row)?;
                    }
                    if tired {
                        return Ok(Poll::Yield);
                    }
                }
                Poll::Done => {
                    self.finish();
                    // The next groups are taken from the end.
                    self.groups.reverse();
                    self.numbers = Map::default();
                }
                other => return Ok(other),
            }
        }
        let mut out = Vec::new();
        while out.len() < ROWS_AT_ONCE
            && let Some(group) = self.groups.pop()
        {
            self.given += 1;
            out.push(self.row(run, group)?);
        }
        Ok(if out.is_empty() { Poll::Done } else { Poll::Rows(out) })
    }

    fn close(&mut self, run: &mut Run<'_>) {
        self.input.close(run);
        self.groups.clear();
        self.is_built = true;
    }
}
