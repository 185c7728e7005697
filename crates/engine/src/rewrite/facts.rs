//! What is known of a plan's rows without looking at them.

use crate::ir::{ApplyKind, ColumnId, JoinKind, Rel, Scalar, Scan, walk};
use crate::reach::{self, Kinds};
use alloc::{collections::BTreeSet, vec::Vec};
use lats_base::planted::{QueryBug, errs};
use lats_values::{BinaryOp, Expr, UnaryOp};

/// True if there is never more than one row.
pub fn at_most_one_row(rel: &Rel, kinds: Kinds<'_>) -> bool {
    let at_most_one_row = |rel: &Rel| at_most_one_row(rel, kinds);
    match rel {
        Rel::Scan(scan) => has_key(scan, scan.condition.as_ref(), kinds),
        Rel::Values { rows, .. } => rows.len() <= 1,
        Rel::MaxOneRow { .. } => true,
        Rel::Filter { input, condition } => match &**input {
            Rel::Scan(scan) => {
                let terms = scan.condition.iter().chain([condition]).cloned();
                has_key(scan, walk::conjunction(terms.collect()).as_ref(), kinds)
            }
            other => at_most_one_row(other),
        },
        Rel::Aggregate { keys, rollup, .. } => keys.is_empty() && rollup.is_empty(),
        Rel::Join { left, right, kind, .. } => {
            let gives_pairs = matches!(kind, JoinKind::Inner | JoinKind::Left);
            at_most_one_row(left) && (!gives_pairs || at_most_one_row(right))
        }
        Rel::Apply { left, right, kind, .. } => {
            let gives_pairs = matches!(kind, ApplyKind::Join(_));
            at_most_one_row(left) && (!gives_pairs || at_most_one_row(right))
        }
        Rel::Extend { input, .. }
        | Rel::Narrow { input, .. }
        | Rel::Window { input, .. }
        | Rel::Distinct { input, .. }
        | Rel::Sort { input, .. }
        | Rel::Limit { input, .. } => at_most_one_row(input),
        Rel::Set { .. } | Rel::Recursive { .. } | Rel::Working { .. } => false,
    }
}

/// True if running the plan may end with error 1242. Then it runs only for the rows that need it.
pub fn may_have_too_many(rel: &Rel, kinds: Kinds<'_>) -> bool {
    let here = match rel {
        Rel::Apply { kind: ApplyKind::Single { .. }, right, .. } => !at_most_one_row(right, kinds),
        Rel::MaxOneRow { input } => !at_most_one_row(input, kinds),
        _ => false,
    };
    here || rel.inputs().into_iter().any(|input| may_have_too_many(input, kinds))
}

/// True if the condition says what a key of the table is, in the order of its columns: `'1' = id` of a text may be many rows.
fn has_key(scan: &Scan, condition: Option<&Scalar>, kinds: Kinds<'_>) -> bool {
    let terms = condition.cloned().map(walk::conjuncts).unwrap_or_default();
    let fixes = |term: &Scalar| reach::fixes(scan, term, &|_| true, kinds);
    let fixed: BTreeSet<ColumnId> = terms.iter().filter_map(fixes).collect();
    scan.keys.iter().any(|key| key.iter().all(|column| fixed.contains(column)))
}

/// True if the condition is not true for rows in which all these columns are NULL.
pub fn rejects_nulls(condition: &Scalar, columns: &BTreeSet<ColumnId>) -> bool {
    match condition {
        Expr::Binary { op: BinaryOp::And, left, right } => {
            rejects_nulls(left, columns) || rejects_nulls(right, columns)
        }
        Expr::Binary { op: BinaryOp::Or, left, right } => {
            let either = || rejects_nulls(left, columns) || rejects_nulls(right, columns);
            (rejects_nulls(left, columns) && rejects_nulls(right, columns))
                || (errs(QueryBug::OneAlternativeRejectsNulls) && either())
        }
        Expr::IsNull { arg, negated } if *negated || errs(QueryBug::IsNullRejectsNulls) => {
            is_null_with(arg, columns)
        }
        other => is_null_with(other, columns),
    }
}

/// True if the expression is NULL in rows in which all these columns are NULL.
fn is_null_with(expr: &Scalar, columns: &BTreeSet<ColumnId>) -> bool {
    match expr {
        Expr::Literal(value) => value.is_null(),
        Expr::Column(number) => columns.contains(&ColumnId(*number)),
        Expr::Unary { op: UnaryOp::Minus | UnaryOp::Not | UnaryOp::BitNot, arg }
        | Expr::Cast { arg, .. }
        | Expr::Collate { arg, .. }
        | Expr::In { arg, .. } => is_null_with(arg, columns),
        Expr::Binary { op, left, right } | Expr::Compare { op, left, right, .. } => match op {
            BinaryOp::And | BinaryOp::Or => false,
            BinaryOp::NullSafeEqual if !errs(QueryBug::NullSafeRejectsNulls) => false,
            _ => is_null_with(left, columns) || is_null_with(right, columns),
        },
        Expr::Between { arg, .. } => is_null_with(arg, columns),
        Expr::Like { arg, pattern, .. } => {
            is_null_with(arg, columns) || is_null_with(pattern, columns)
        }
        Expr::Call { args, .. } if errs(QueryBug::CallsRejectNulls) => {
            args.iter().any(|arg| is_null_with(arg, columns))
        }
        Expr::IsNull { .. } | Expr::Case { .. } | Expr::Call { .. } => false,
    }
}

/// The terms of a condition of which one must hold.
pub fn disjuncts(condition: &Scalar) -> Vec<&Scalar> {
    let mut found = Vec::new();
    let mut left = Vec::from([condition]);
    while let Some(expr) = left.pop() {
        match expr {
            Expr::Binary { op: BinaryOp::Or, left: a, right: b } => {
                left.push(b);
                left.push(a);
            }
            other => found.push(other),
        }
    }
    found
}

/// One condition of terms of which one must hold, as a balanced tree.
pub fn disjunction(mut terms: Vec<Scalar>) -> Option<Scalar> {
    while terms.len() > 1 {
        let mut pairs = Vec::with_capacity(terms.len().div_ceil(2));
        let mut rest = terms.into_iter();
        while let Some(left) = rest.next() {
            pairs.push(match rest.next() {
                Some(right) => {
                    Expr::Binary { op: BinaryOp::Or, left: left.into(), right: right.into() }
                }
                None => left,
            });
        }
        terms = pairs;
    }
    terms.pop()
}
