//! A subquery with an aggregate function that is equal to the row around it in some values becomes a join with groups.
//!
//! `(SELECT f(…) FROM s WHERE s.k = r.k)` is the result of the group of `s` with `r`'s value of `k`.
//! Where there is no such group, it is what `f` gives without rows: NULL, or 0 of COUNT.
//! Whatever stands around the aggregate functions is computed above the join, for rows with a group and for others alike.

use super::lift::{self, Lifted};
use super::{Context, Types, facts};
use crate::cost;
use crate::estimate::{Estimates, Size};
use crate::ir::{ApplyKind, Call, ColumnId, JoinKind, Rel, Scalar, types::type_with, walk};
use crate::lower::key_class;
use crate::physical::KeyClass;
use crate::reach::Kinds;
use alloc::{boxed::Box, collections::BTreeSet, vec::Vec};
use lats_base::planted::{QueryBug, errs};
use lats_values::aggregate::AggregateKind;
use lats_values::{BinaryOp, ColumnType, Expr, TypeKind, Value};

/// Parts of a value that is computed above the groups; with more of them a subquery stays as it is.
const PARTS_MAX: usize = 4_096;

/// The plan with joins in the place of such subqueries.
pub fn joins(rel: Rel, context: Context<'_>) -> Rel {
    let estimates = Estimates::new(&rel, context);
    changed(rel, &estimates, context).0
}

/// The same, and the size of what it gives: each part is estimated once, however many subqueries stand above it.
fn changed(rel: Rel, estimates: &Estimates<'_>, context: Context<'_>) -> (Rel, Size) {
    let mut below = Vec::new();
    let rel = rel.map_inputs(&mut |input| {
        let (input, size) = changed(input, estimates, context);
        below.push(size);
        input
    });
    let rel = match rel {
        Rel::Apply { kind: ApplyKind::Single { columns }, left, right, on: None, when: None } => {
            let made = match *columns.as_slice() {
                [(column, of)] => {
                    join(&left, &right, of, context.kinds()).map(|made| (column, made))
                }
                _ => None,
            };
            let of_left = below.first().copied().unwrap_or_default();
            let chosen = made.and_then(|(column, made)| {
                let (grouped, on, value) = &made;
                if is_rounded(value, column, context.types) {
                    return None;
                }
                let size = cheaper((&right, grouped, on), (of_left, estimates), context)?;
                Some((column, made, size))
            });
            if let Some((column, made, size)) = chosen {
                return (beside(left, column, made), size);
            }
            let kind = ApplyKind::Single { columns };
            Rel::Apply { kind, left, right, on: None, when: None }
        }
        other => other,
    };
    let size = estimates.size_above(&rel, &below);
    (rel, size)
}

/// True if a quotient would be rounded to the digits of its type, which it is not as the value of a subquery with HAVING.
fn is_rounded(value: &Scalar, column: ColumnId, types: &Types) -> bool {
    let of = types.get(column.0 as usize);
    of.is_some_and(|of| matches!(of.kind, TypeKind::Decimal { .. }))
        && matches!(value, Expr::Case { .. })
}

/// The rows with the values of their groups.
fn beside(
    left: Box<Rel>,
    column: ColumnId,
    (mut grouped, on, value): (Rel, Scalar, Scalar),
) -> Rel {
    let join = |right: Rel| {
        let right = Box::new(right);
        Rel::Join { kind: JoinKind::Left, left, right, on: Some(on) }
    };
    if let Rel::Aggregate { calls, .. } = &mut grouped
        && let Some(call) = calls.iter_mut().find(|call| call.column.scalar() == value)
    {
        // It is the result of the call as it is: nothing is to be computed, nor rounded.
        call.column = column;
        return join(grouped);
    }
    Rel::Extend { input: Box::new(join(grouped)), items: Vec::from([(column, value)]) }
}

/// The size of the join with all groups; none if rows of this left side ask for so little that running the subquery for each of
/// them costs less.
fn cheaper(
    (right, grouped, on): (&Rel, &Rel, &Scalar),
    (of_left, estimates): (Size, &Estimates<'_>),
    context: Context<'_>,
) -> Option<Size> {
    let size = |rel: &Rel| {
        let rel = match context.rules.join_order && !context.order.is_fixed {
            true => super::ordered(rel.clone(), context),
            false => rel.clone(),
        };
        Estimates::new(&rel, context).size(&rel)
    };
    let kind = ApplyKind::Single { columns: Vec::new() };
    let applied = estimates.apply(&kind, (of_left, size(right)), right);
    let terms = walk::conjuncts(on.clone());
    let terms: Vec<&Scalar> = terms.iter().collect();
    let joined = estimates.join(JoinKind::Left, (of_left, size(grouped)), grouped, &terms);
    let size = Size { rows: joined.rows, cost: joined.cost() + joined.rows * cost::PASS };
    (size.cost <= applied.cost).then_some(size)
}

/// The groups, what they share with the row, and the value of the subquery.
fn join(left: &Rel, right: &Rel, of: ColumnId, kinds: Kinds<'_>) -> Option<(Rel, Scalar, Scalar)> {
    let outer: BTreeSet<ColumnId> = left.columns().into_iter().collect();
    if walk::makes_volatile(right) {
        return None;
    }
    let (aggregate, value) = value_above(right, of.scalar())?;
    let Rel::Aggregate { input, keys, rollup, calls } = aggregate else { return None };
    let names_outer = |scalar: &Scalar| walk::columns_of(scalar).iter().any(|c| outer.contains(c));
    let is_plain = keys.is_empty() && rollup.is_empty();
    if !is_plain || calls.iter().flat_map(|call| &call.args).any(names_outer) {
        return None;
    }
    // For one row, an index of the subquery's table is better.
    if facts::at_most_one_row(left, kinds) || facts::may_have_too_many(input, kinds) {
        return None;
    }
    let Lifted { rel, terms } = lift::correlated(input, &outer, true)?;
    // Groups are made of rows that nobody asked for, too.
    if kinds.calls_may_fail(calls) || kinds.plan_may_fail(&rel) {
        return None;
    }
    let made: BTreeSet<ColumnId> = rel.columns().into_iter().collect();
    let mut keys = Vec::with_capacity(terms.len());
    for term in &terms {
        keys.push(key_of(term, &made, &outer, kinds)?);
    }
    if keys.is_empty() {
        return None;
    }
    let value = walk::map_columns(&value, &|number| {
        let call = calls.iter().find(|call| call.column == ColumnId(number))?;
        without_rows(call)
    });
    let on = walk::conjunction(terms)?;
    let (input, calls) = (Box::new(rel), calls.clone());
    Some((Rel::Aggregate { input, keys, rollup: Vec::new(), calls }, on, value))
}

/// The aggregation of a subquery, and its value as an expression over that.
fn value_above(rel: &Rel, value: Scalar) -> Option<(&Rel, Scalar)> {
    match rel {
        Rel::Aggregate { .. } => Some((rel, value)),
        Rel::Narrow { input, .. } | Rel::MaxOneRow { input } | Rel::Sort { input, .. } => {
            value_above(input, value)
        }
        Rel::Extend { input, items } => {
            // What stands for a column is copied into each use of it: levels of that would grow without end.
            let mut sizes = items.iter().map(|(_, item)| walk::size_within(item, PARTS_MAX));
            let largest = sizes.try_fold(1, |most, size| size.map(|size| most.max(size)))?;
            if walk::size_within(&value, PARTS_MAX)?.checked_mul(largest)? > PARTS_MAX {
                return None;
            }
            let replace = |number: u32| {
                let item = items.iter().find(|(column, _)| column.0 == number);
                item.map(|(_, value)| value.clone())
            };
            value_above(input, walk::map_columns(&value, &replace))
        }
        Rel::Filter { input, .. } if errs(QueryBug::GroupedWithoutHaving) => {
            value_above(input, value)
        }
        // HAVING: without the row there is no value.
        Rel::Filter { input, condition } => {
            let branches = Vec::from([(condition.clone(), value)]);
            value_above(input, Expr::Case { operand: None, branches, otherwise: None })
        }
        _ => None,
    }
}

/// The subquery's side of an equality with the row around it, if equal values of it are one group.
fn key_of(
    term: &Scalar,
    made: &BTreeSet<ColumnId>,
    outer: &BTreeSet<ColumnId>,
    kinds: Kinds<'_>,
) -> Option<Scalar> {
    let Expr::Binary { op: BinaryOp::Equal, left, right } = term else { return None };
    let within = |scalar: &Scalar, columns: &BTreeSet<ColumnId>| {
        let used = walk::columns_of(scalar);
        !used.is_empty() && used.iter().all(|column| columns.contains(column))
    };
    let (own, other) = match (within(left, made), within(right, made)) {
        (true, false) => (left, right),
        (false, true) => (right, left),
        _ => return None,
    };
    let foreign = walk::columns_of(other).iter().all(|c| outer.contains(c) || !made.contains(c));
    let type_of = |scalar: &Scalar| type_with(scalar, kinds.types, kinds.externals);
    let (own_type, other_type) = (type_of(own), type_of(other));
    let class = key_class(&own_type, &other_type)?;
    (foreign && groups_like(class, &own_type)).then(|| (**own).clone())
}

/// True if values of this type that are equal to one value by this comparison are equal to each other.
fn groups_like(class: KeyClass, own: &ColumnType) -> bool {
    match class {
        KeyClass::Double => matches!(own.kind, TypeKind::Float | TypeKind::Double),
        KeyClass::Bytes => own.kind.is_bytes(),
        _ => true,
    }
}

/// The result of a call, also for rows without a group; none if that is NULL, as it comes from the join.
fn without_rows(call: &Call) -> Option<Scalar> {
    let value = match call.spec.kind {
        AggregateKind::CountStar | AggregateKind::Count if !errs(QueryBug::CountWithoutGroup) => {
            Value::Int(0)
        }
        AggregateKind::BitAnd => Value::UInt(u64::MAX),
        AggregateKind::BitOr | AggregateKind::BitXor => Value::UInt(0),
        _ => return None,
    };
    let is_null = Expr::IsNull { arg: Box::new(call.column.scalar()), negated: false };
    let branches = Vec::from([(is_null, Expr::Literal(value))]);
    let otherwise = Some(Box::new(call.column.scalar()));
    Some(Expr::Case { operand: None, branches, otherwise })
}
