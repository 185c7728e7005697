//! What a condition says of one column holds for columns that are equal to it.
//!
//! With `o.id = l.order_id AND o.id = 5`, the rows of `l` are found with `l.order_id = 5`, without waiting for those of `o`.

use super::Context;
use crate::ir::{ColumnId, EXTERNAL_BASE, Scalar, Types, types::type_with, walk};
use alloc::{collections::BTreeSet, vec::Vec};
use lats_base::planted::{QueryBug, errs};
use lats_values::{BinaryOp, Expr};

/// More implied terms help nobody, and a statement could ask for millions of them.
const IMPLIED_MAX: usize = 64;
const TRIES_MAX: usize = 4_096;

/// Terms that follow from these, [`IMPLIED_MAX`] at most.
pub(super) fn implied(terms: &[Scalar], context: Context<'_>) -> Vec<Scalar> {
    let classes = classes(terms, context.types);
    let mut found: Vec<Scalar> = Vec::new();
    let mut tries = 0;
    for term in terms {
        let Some(column) = compared(term, context) else { continue };
        let Some(class) = classes.iter().find(|class| class.contains(&column)) else { continue };
        for other in class.iter().filter(|other| **other != column) {
            tries += 1;
            if tries > TRIES_MAX || found.len() >= IMPLIED_MAX {
                return found;
            }
            let moved =
                walk::map_columns(term, &|number| (number == column.0).then(|| other.scalar()));
            if !terms.contains(&moved) && !found.contains(&moved) {
                found.push(moved);
            }
        }
    }
    found
}

/// Columns of one type that are equal to each other.
fn classes(terms: &[Scalar], types: &Types) -> Vec<BTreeSet<ColumnId>> {
    let mut classes: Vec<BTreeSet<ColumnId>> = Vec::new();
    for term in terms {
        let Some((a, b)) = equal_columns(term, types) else { continue };
        let mut class = BTreeSet::from([a, b]);
        classes.retain(|other| {
            let meets = other.contains(&a) || other.contains(&b);
            if meets {
                class.extend(other.iter().copied());
            }
            !meets
        });
        classes.push(class);
    }
    classes
}

fn equal_columns(term: &Scalar, types: &Types) -> Option<(ColumnId, ColumnId)> {
    let Expr::Binary { op: BinaryOp::Equal, left, right } = term else { return None };
    let (Expr::Column(a), Expr::Column(b)) = (&**left, &**right) else { return None };
    let (of_a, of_b) = (types.get(*a as usize)?, types.get(*b as usize)?);
    // Of another type, the same comparison would be another one.
    let alike = of_a.kind == of_b.kind && of_a.collation == of_b.collation;
    (alike || errs(QueryBug::EqualColumnsOfOtherTypes)).then_some((ColumnId(*a), ColumnId(*b)))
}

/// The column that a term compares with what is the same for all rows, in the column's own manner.
fn compared(term: &Scalar, context: Context<'_>) -> Option<ColumnId> {
    let column = |scalar: &Scalar| match scalar {
        Expr::Column(number) if *number < EXTERNAL_BASE => Some(ColumnId(*number)),
        _ => None,
    };
    let (own, others) = match term {
        Expr::Binary { op, left, right } => {
            let compares = matches!(
                op,
                BinaryOp::Equal
                    | BinaryOp::Less
                    | BinaryOp::LessOrEqual
                    | BinaryOp::Greater
                    | BinaryOp::GreaterOrEqual
            );
            let own = column(left).or_else(|| column(right)).filter(|_| compares)?;
            let other = if column(left).is_some() { right } else { left };
            (own, Vec::from([&**other]))
        }
        Expr::Between { arg, low, high, negated: false } => {
            (column(arg)?, Vec::from([&**low, &**high]))
        }
        Expr::In { arg, list, negated: false } => (column(arg)?, list.iter().collect()),
        _ => return None,
    };
    let own_type = context.types.get(own.0 as usize)?;
    let is_own_manner = |other: &&Scalar| {
        // Beside bytes or an explicit collation, a text is compared otherwise than with other texts.
        let is_text = type_with(other, context.types, context.externals).kind.is_text();
        let is_plain = matches!(other, Expr::Literal(_) | Expr::Column(_));
        let is_fixed = walk::columns_of(other).is_empty() && !walk::is_volatile(other);
        is_fixed && (!own_type.kind.is_text() || (is_text && is_plain))
    };
    others.iter().all(is_own_manner).then_some(own)
}
