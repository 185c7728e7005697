//! From the relational form to operators: columns become slots, and joins get an algorithm.

mod join;

pub use join::key_class;

use crate::estimate::Estimates;
use crate::ir::{
    ApplyKind, Bound, ColumnId, EXTERNAL_BASE, Frame, Rel, Scalar, Scan, SortKey, Types, walk,
};
use crate::physical::{
    AggregateCall, ApplyOutput, Op, OrderKey, PARAM_BASE, Plan, SourceSpec, WindowCall,
};
use crate::rewrite::{Context, Rules};
use alloc::{boxed::Box, sync::Arc, vec::Vec};
use core::cell::Cell;
use lats_values::{ColumnType, Expr};

/// Lowers plans of one statement.
pub struct Lowering<'a> {
    types: &'a Types,
    /// The types of values from outside, as far as they are known.
    externals: &'a Types,
    sources: Vec<SourceSpec>,
    rules: Rules,
    estimates: Estimates<'a>,
    /// A column is wanted that nobody makes.
    is_missing: Cell<bool>,
}

/// Where the values of columns are: in the row at hand, or in the parameters of the instance.
#[derive(Clone, Copy)]
struct Place<'p> {
    row: &'p [ColumnId],
    params: &'p [ColumnId],
}

impl<'a> Lowering<'a> {
    /// For a plan of a statement.
    pub fn new(rel: &Rel, context: Context<'a>) -> Self {
        let Context { types, externals, rules, .. } = context;
        let estimates = Estimates::new(rel, context);
        let (sources, is_missing) = (Vec::new(), Cell::new(false));
        Self { types, externals, sources, rules, estimates, is_missing }
    }

    /// The plan whose rows have these columns; none if an expression wants a column that is not made below it.
    pub fn plan(mut self, rel: &Rel, outputs: &[ColumnId]) -> Option<Plan> {
        let root = self.op(rel, &[]);
        let root = narrowed(root, &rel.columns(), outputs);
        (!self.is_missing.get()).then_some(Plan { root, sources: self.sources })
    }

    fn type_of(&self, expr: &Scalar) -> ColumnType {
        crate::ir::types::type_with(expr, self.types, self.externals)
    }

    fn column_type(&self, column: ColumnId) -> ColumnType {
        self.type_of(&column.scalar())
    }

    fn op(&mut self, rel: &Rel, params: &[ColumnId]) -> Op {
        match rel {
            Rel::Scan(scan) => self.scan(scan, None, &[], params),
            Rel::Values { columns, rows } => {
                let place = Place { row: &[], params };
                let rows = rows.iter().map(|row| self.all(row, place)).collect();
                let types = columns.iter().map(|column| self.column_type(*column)).collect();
                Op::Values { rows, types }
            }
            Rel::Filter { input, condition } => {
                let row = input.columns();
                let condition = self.scalar(condition, Place { row: &row, params });
                Op::Filter { input: Box::new(self.op(input, params)), condition }
            }
            Rel::Extend { input, items } => {
                let row = input.columns();
                let place = Place { row: &row, params };
                let items = items.iter();
                let items = items
                    .map(|(column, value)| (self.scalar(value, place), self.column_type(*column)))
                    .collect();
                Op::Extend { input: Box::new(self.op(input, params)), items }
            }
            Rel::Narrow { input, columns } => {
                narrowed(self.op(input, params), &input.columns(), columns)
            }
            Rel::Join { kind, left, right, on } => {
                self.join(*kind, left, right, on.as_ref(), params)
            }
            Rel::Apply { .. } => self.apply(rel, params),
            Rel::Aggregate { .. } => self.aggregate(rel, params),
            Rel::Window { .. } => self.window(rel, params),
            Rel::Distinct { input, columns } => {
                let slots = slots(&input.columns(), columns);
                Op::Distinct { input: Box::new(self.op(input, params)), slots }
            }
            Rel::Sort { input, keys } => {
                let row = input.columns();
                let keys = self.order(keys, Place { row: &row, params });
                Op::Sort { input: Box::new(self.op(input, params)), keys, top: None }
            }
            Rel::Limit { input, count, offset } => self.limit(input, count, offset, params),
            Rel::Set { op, all, left, right, .. } => Op::Set {
                op: *op,
                all: *all,
                left: Box::new(self.side(left, params)),
                right: Box::new(self.side(right, params)),
            },
            Rel::Recursive { id, columns, anchor, step, distinct, limit } => {
                let place = Place { row: &[], params };
                Op::Recursive {
                    id: *id,
                    anchor: Box::new(self.side(anchor, params)),
                    step: Box::new(self.side(step, params)),
                    distinct: *distinct,
                    limit: limit.as_ref().map(|limit| self.scalar(limit, place)),
                    types: columns.iter().map(|column| self.column_type(*column)).collect(),
                }
            }
            Rel::Working { id, .. } => Op::Working { id: *id },
            Rel::MaxOneRow { input } => Op::MaxOneRow { input: Box::new(self.op(input, params)) },
        }
    }

    fn side(&mut self, (rel, columns): &(Box<Rel>, Vec<ColumnId>), params: &[ColumnId]) -> Op {
        narrowed(self.op(rel, params), &rel.columns(), columns)
    }

    fn limit(
        &mut self,
        input: &Rel,
        count: &Option<Scalar>,
        offset: &Option<Scalar>,
        params: &[ColumnId],
    ) -> Op {
        let place = Place { row: &[], params };
        let count = count.as_ref().map(|count| self.scalar(count, place));
        let offset = offset.as_ref().map(|offset| self.scalar(offset, place));
        let mut below = self.op(input, params);
        if let (Op::Sort { top, .. }, Some(count)) = (&mut below, &count) {
            *top = Some((count.clone(), offset.clone()));
        }
        Op::Limit { input: Box::new(below), count, offset }
    }

    /// A table's rows: with a further condition that takes values of a row beside it, which become parameters of the request.
    fn scan(
        &mut self,
        scan: &Scan,
        on: Option<&Scalar>,
        row: &[ColumnId],
        params: &[ColumnId],
    ) -> Op {
        let (source, params) = self.source(scan, on, Place { row, params });
        Op::Source { source, params }
    }

    /// Adds a source; its number, and the parameters of requests over the place's row.
    fn source(&mut self, scan: &Scan, on: Option<&Scalar>, place: Place<'_>) -> (usize, Vec<Expr>) {
        let terms = scan.condition.iter().chain(on).cloned().flat_map(walk::conjuncts).collect();
        let condition = walk::conjunction(terms);
        let mut outside: Vec<ColumnId> = Vec::new();
        if let Some(condition) = &condition {
            let all = walk::columns_of(condition);
            outside.extend(all.into_iter().filter(|column| !scan.has(*column)));
        }
        let condition = condition.map(|condition| {
            walk::map_columns(&condition, &|number| {
                let column = ColumnId(number);
                if number >= EXTERNAL_BASE {
                    return None;
                }
                if scan.has(column) {
                    return Some(Expr::Column(number - scan.first.0));
                }
                let at = outside.iter().position(|other| *other == column)?;
                Some(Expr::Column(PARAM_BASE + at as u32))
            })
        });
        let requested = outside.iter().map(|column| self.scalar(&column.scalar(), place)).collect();
        let columns = scan.columns.iter().map(|column| column.0 - scan.first.0).collect();
        let by_key = false;
        let params = outside.len();
        let touched = self.estimates.touched(scan);
        let (source, index, given) = (scan.source, None, outside);
        let one_is_enough = false;
        let spec = SourceSpec {
            source,
            columns,
            condition,
            params,
            given,
            by_key,
            index,
            touched,
            one_is_enough,
        };
        self.sources.push(spec);
        (self.sources.len() - 1, requested)
    }

    fn apply(&mut self, rel: &Rel, params: &[ColumnId]) -> Op {
        let Rel::Apply { kind, left, right, on, when } = rel else {
            return Op::Values { rows: Vec::new(), types: Vec::new() };
        };
        let on = on.as_ref();
        let (lefts, rights) = (left.columns(), right.columns());
        let inner: Vec<ColumnId> = walk::free_columns(right).into_iter().collect();
        let place = Place { row: &lefts, params };
        let given = inner.iter().map(|column| self.scalar(&column.scalar(), place)).collect();
        let (output, of) = match kind {
            ApplyKind::Join(kind) => (ApplyOutput::Join(*kind), Vec::new()),
            ApplyKind::Mark(_) => (ApplyOutput::Mark, Vec::new()),
            ApplyKind::Single { columns } => {
                (ApplyOutput::Single, columns.iter().map(|(_, of)| *of).collect())
            }
        };
        let slots = slots(&rights, &of);
        let when = when.as_ref().map(|when| Box::new(self.scalar(when, place)));
        let both: Vec<ColumnId> = lefts.iter().chain(&rights).copied().collect();
        let keeps = self.rules.apply_cache && !walk::makes_volatile(right);
        let once = inner.is_empty() && keeps && !matches!(output, ApplyOutput::Join(_));
        let equal = on.filter(|_| once && output == ApplyOutput::Mark && self.rules.hash_join);
        let of_right = Place { row: &rights, params };
        let equal = equal.and_then(|on| self.pair(on, (place, &lefts), (of_right, &rights)));
        let equal = equal.filter(|pair| !pair.null_safe);
        let on = on.map(|on| self.scalar(on, Place { row: &both, params }));
        let left = Box::new(self.op(left, params));
        let right = Box::new(self.op(right, &inner));
        let right_width = rights.len() as u32;
        let params = given;
        Op::Apply { output, left, right, params, on, right_width, keeps, once, slots, when, equal }
    }

    fn aggregate(&mut self, rel: &Rel, params: &[ColumnId]) -> Op {
        let Rel::Aggregate { input, keys, rollup, calls } = rel else {
            return Op::Values { rows: Vec::new(), types: Vec::new() };
        };
        let row = input.columns();
        let place = Place { row: &row, params };
        let keys = keys.iter().map(|key| (self.scalar(key, place), self.type_of(key))).collect();
        let calls = calls
            .iter()
            .map(|call| AggregateCall {
                spec: Arc::new(call.spec.clone()),
                args: self.typed(&call.args, place),
            })
            .collect();
        let input = Box::new(self.op(input, params));
        let rollup = !rollup.is_empty();
        Op::Aggregate { input, keys, rollup, calls, width: row.len() as u32 }
    }

    fn window(&mut self, rel: &Rel, params: &[ColumnId]) -> Op {
        let Rel::Window { input, partition, order, calls } = rel else {
            return Op::Values { rows: Vec::new(), types: Vec::new() };
        };
        let row = input.columns();
        let place = Place { row: &row, params };
        let partition = self.typed(partition, place);
        let order = self.order(order, place);
        let calls = calls
            .iter()
            .map(|call| WindowCall {
                function: call.function.clone(),
                args: self.typed(&call.args, place),
                column_type: self.column_type(call.column),
                frame: self.frame(&call.frame, place),
            })
            .collect();
        Op::Window { input: Box::new(self.op(input, params)), partition, order, calls }
    }

    fn frame(&self, frame: &Frame, place: Place<'_>) -> Frame {
        let bound = |bound: &Bound| match bound {
            Bound::Preceding(value) => Bound::Preceding(self.scalar(value, place)),
            Bound::Following(value) => Bound::Following(self.scalar(value, place)),
            Bound::Value { distance, limit } => Bound::Value {
                distance: self.scalar(distance, place),
                limit: self.scalar(limit, place),
            },
            other => other.clone(),
        };
        Frame { is_range: frame.is_range, start: bound(&frame.start), end: bound(&frame.end) }
    }

    fn order(&self, keys: &[SortKey], place: Place<'_>) -> Vec<OrderKey> {
        let key = |key: &SortKey| OrderKey {
            value: self.scalar(&key.value, place),
            column_type: self.type_of(&key.value),
            descending: key.descending,
        };
        keys.iter().map(key).collect()
    }

    fn typed(&self, list: &[Scalar], place: Place<'_>) -> Vec<(Expr, ColumnType)> {
        list.iter().map(|expr| (self.scalar(expr, place), self.type_of(expr))).collect()
    }

    fn all(&self, list: &[Scalar], place: Place<'_>) -> Vec<Expr> {
        list.iter().map(|expr| self.scalar(expr, place)).collect()
    }

    /// An expression over slots and parameters.
    fn scalar(&self, expr: &Scalar, place: Place<'_>) -> Expr {
        walk::map_columns(expr, &|number| {
            if number >= EXTERNAL_BASE {
                return None;
            }
            let column = ColumnId(number);
            let in_row = place.row.iter().position(|other| *other == column);
            let found = match in_row {
                Some(slot) => slot as u32,
                None => {
                    let at = place.params.iter().position(|other| *other == column);
                    self.is_missing.set(self.is_missing.get() || at.is_none());
                    PARAM_BASE + at.map_or(0, |at| at as u32)
                }
            };
            Some(Expr::Column(found))
        })
    }
}

/// The slots of these columns.
fn slots(row: &[ColumnId], columns: &[ColumnId]) -> Vec<u32> {
    let slot =
        |column: &ColumnId| row.iter().position(|other| other == column).unwrap_or(row.len());
    columns.iter().map(|column| slot(column) as u32).collect()
}

fn narrowed(input: Op, row: &[ColumnId], columns: &[ColumnId]) -> Op {
    if row == columns {
        return input;
    }
    Op::Narrow { input: Box::new(input), slots: slots(row, columns) }
}
