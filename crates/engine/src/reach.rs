//! Which columns of a table a condition fixes, so that its rows are found by an index.

use crate::estimate::Statistics;
use crate::ir::{ColumnId, Scalar, Scan, Types, types::type_with, walk};
use crate::lower::key_class;
use crate::physical::KeyClass;
use alloc::vec::Vec;
use lats_values::{BinaryOp, ColumnType, Expr, TypeKind};

/// How a table's rows are found with values of other rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Reach {
    /// The columns of the index.
    pub index: Vec<ColumnId>,
    /// Those of its leading columns that are fixed.
    pub fixed: Vec<ColumnId>,
    /// No two rows have the same values there.
    pub is_key: bool,
    /// It is the primary key.
    pub is_primary: bool,
}

/// The types of a statement's columns, and of values from outside as far as they are known.
#[derive(Clone, Copy)]
pub struct Kinds<'a> {
    /// The columns'.
    pub types: &'a Types,
    /// The others'.
    pub externals: &'a Types,
}

/// The column of the table that the term sets equal to something given outside of it, in the column's own order.
pub fn fixes(
    scan: &Scan,
    term: &Scalar,
    given: &dyn Fn(ColumnId) -> bool,
    kinds: Kinds<'_>,
) -> Option<ColumnId> {
    let Expr::Binary { op: BinaryOp::Equal, left, right } = term else { return None };
    let type_of = |scalar: &Scalar| type_with(scalar, kinds.types, kinds.externals);
    [(left, right), (right, left)].into_iter().find_map(|(own, other)| {
        let Expr::Column(number) = **own else { return None };
        let column = ColumnId(number);
        if !scan.has(column) {
            return None;
        }
        let outside = walk::columns_of(other).into_iter().all(|c| !scan.has(c) && given(c));
        let (own, other) = (type_of(own), type_of(other));
        let same_order = key_class(&own, &other).is_some_and(|class| orders_like(class, &own));
        (outside && same_order).then_some(column)
    })
}

/// True if a column of this type is found by a value that compares with it so.
fn orders_like(class: KeyClass, column: &ColumnType) -> bool {
    match class {
        KeyClass::Integer | KeyClass::Text(_) | KeyClass::Bytes | KeyClass::Time => true,
        KeyClass::Decimal => !matches!(column.kind, TypeKind::Float | TypeKind::Double),
        KeyClass::Double => false,
        KeyClass::Moment => true,
    }
}

/// True if each value of one side is a value of the column on the other side, or lies between two of them.
/// With other values a request by index would have to look at the whole table.
fn is_of_one_kind(term: &Scalar, kinds: Kinds<'_>) -> bool {
    let Expr::Binary { left, right, .. } = term else { return false };
    let type_of = |scalar: &Scalar| type_with(scalar, kinds.types, kinds.externals);
    let (left, right) = (type_of(left), type_of(right));
    (left.kind == right.kind && left.kind != TypeKind::Year)
        || (left.kind.is_integer() && right.kind.is_integer())
}

/// The best index for rows of a table for which the terms hold, of which at least one names a given column.
pub fn reach(
    scan: &Scan,
    terms: &[&Scalar],
    given: &dyn Fn(ColumnId) -> bool,
    kinds: Kinds<'_>,
    statistics: &dyn Statistics,
) -> Option<Reach> {
    let mut fixed: Vec<ColumnId> = Vec::new();
    let mut surely: Vec<ColumnId> = Vec::new();
    let mut by_given: Vec<ColumnId> = Vec::new();
    for term in terms {
        let Some(column) = fixes(scan, term, given, kinds) else { continue };
        fixed.push(column);
        if is_of_one_kind(term, kinds) {
            surely.push(column);
        }
        if walk::columns_of(term).into_iter().any(|column| !scan.has(column)) {
            by_given.push(column);
        }
    }
    let key = scan.keys.iter().find(|key| {
        key.iter().all(|column| fixed.contains(column))
            && key.iter().any(|column| by_given.contains(column))
    });
    if let Some(key) = key {
        let is_primary = scan.keys.first() == Some(key);
        return Some(Reach { index: key.clone(), fixed: key.clone(), is_key: true, is_primary });
    }
    let mut best: Option<(f64, Reach)> = None;
    for index in &scan.indexes {
        let led: Vec<ColumnId> =
            index.iter().copied().take_while(|column| surely.contains(column)).collect();
        if !led.iter().any(|column| by_given.contains(column)) {
            continue;
        }
        let distinct = statistics.distinct(scan, &led).unwrap_or(led.len() as f64);
        if best.as_ref().is_none_or(|(before, _)| distinct > *before) {
            let index = index.clone();
            best = Some((distinct, Reach { index, fixed: led, is_key: false, is_primary: false }));
        }
    }
    best.map(|(_, reach)| reach)
}
