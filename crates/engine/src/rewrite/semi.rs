//! EXISTS, IN and their negations in conditions become semi-joins and anti-joins.
//!
//! A condition `mark` lets a row pass if the subquery has a row for which its condition is true: that is a semi-join.
//! A condition `NOT mark` lets it pass if all of them are false: that is an anti-join, if none can be unknown.

use super::{Context, lift};
use crate::ir::{ApplyKind, ColumnId, JoinKind, Rel, Scalar, Types, walk};
use alloc::{boxed::Box, collections::BTreeMap, vec::Vec};
use lats_base::planted::{QueryBug, errs};
use lats_values::{BinaryOp, Expr, UnaryOp};

/// The plan with joins where rows of subqueries only decide about rows.
pub fn joins(rel: Rel, wanted: &[ColumnId], context: Context<'_>) -> Rel {
    let mut uses = BTreeMap::new();
    wanted.iter().for_each(|column| *uses.entry(*column).or_default() += 1);
    count(&rel, &mut uses);
    change(rel, &uses, context)
}

type Uses = BTreeMap<ColumnId, u32>;

/// How often columns are named.
fn count(rel: &Rel, uses: &mut Uses) {
    let mut add = |column: ColumnId| *uses.entry(column).or_default() += 1;
    for scalar in rel.scalars() {
        walk::visit_numbers(scalar, &mut |number| add(ColumnId(number)));
    }
    match rel {
        Rel::Narrow { columns, .. } | Rel::Distinct { columns, .. } => {
            columns.iter().copied().for_each(add);
        }
        Rel::Set { left, right, .. } => left.1.iter().chain(&right.1).copied().for_each(add),
        Rel::Recursive { anchor, step, .. } => {
            anchor.1.iter().chain(&step.1).copied().for_each(add);
        }
        Rel::Apply { kind: ApplyKind::Single { columns }, .. } => {
            columns.iter().for_each(|(_, of)| add(*of));
        }
        _ => {}
    }
    rel.inputs().into_iter().for_each(|input| count(input, uses));
}

fn change(rel: Rel, uses: &Uses, context: Context<'_>) -> Rel {
    let rel = rel.map_inputs(&mut |input| change(input, uses, context));
    match rel {
        Rel::Filter { input, condition } => {
            let mut rest = Vec::new();
            let mut input = *input;
            for term in walk::conjuncts(condition) {
                let found = decided_by(&term).filter(|(mark, _)| uses.get(mark) == Some(&1));
                match found {
                    Some((mark, kind)) => {
                        let (changed, is_done) = decide(input, mark, kind, context);
                        input = changed;
                        if !is_done {
                            rest.push(term);
                        }
                    }
                    None => rest.push(term),
                }
            }
            input.filter(walk::conjunction(rest))
        }
        Rel::Apply { kind: ApplyKind::Join(kind), left, right, on, when: None } => {
            lift::joined(kind, *left, *right, on, context.kinds())
        }
        other => other,
    }
}

/// `mark` or `NOT mark`.
fn decided_by(term: &Scalar) -> Option<(ColumnId, JoinKind)> {
    match term {
        Expr::Column(number) => Some((ColumnId(*number), JoinKind::Semi)),
        Expr::Unary { op: UnaryOp::Not, arg } => match **arg {
            Expr::Column(number) => Some((ColumnId(number), JoinKind::Anti)),
            _ => None,
        },
        _ => None,
    }
}

/// The chain of subqueries with the one of this mark as a join; the chain as it was if it is not there or cannot be one.
fn decide(rel: Rel, mark: ColumnId, join: JoinKind, context: Context<'_>) -> (Rel, bool) {
    let Rel::Apply { kind, left, right, on, when } = rel else { return (rel, false) };
    match kind {
        ApplyKind::Mark(own) if own == mark => {
            let is_known = join == JoinKind::Semi
                || errs(QueryBug::AntiJoinOfUnknown)
                || never_unknown(on.as_ref(), [&left, &right], context.types);
            if !is_known || when.is_some() {
                return (Rel::Apply { kind, left, right, on, when }, false);
            }
            match lift::joined(join, *left, *right, on, context.kinds()) {
                // It stays an Apply, which keeps results for rows with the same parameters only as a mark.
                Rel::Apply { left, right, on, .. } => {
                    (Rel::Apply { kind, left, right, on, when }, false)
                }
                joined => (joined, true),
            }
        }
        ApplyKind::Mark(_) | ApplyKind::Single { .. } => {
            let (left, is_done) = decide(*left, mark, join, context);
            (Rel::Apply { kind, left: Box::new(left), right, on, when }, is_done)
        }
        ApplyKind::Join(_) => (Rel::Apply { kind, left, right, on, when }, false),
    }
}

/// True if the condition is true or false for each pair of rows of these sides.
fn never_unknown(on: Option<&Scalar>, sides: [&Rel; 2], types: &Types) -> bool {
    let terms = on.cloned().map(walk::conjuncts).unwrap_or_default();
    terms.iter().all(|term| match term {
        Expr::Binary { op: BinaryOp::Equal, left, right } => {
            [left, right].into_iter().all(|operand| never_null(operand, sides, types))
        }
        _ => false,
    })
}

fn never_null(operand: &Scalar, sides: [&Rel; 2], types: &Types) -> bool {
    match operand {
        Expr::Literal(value) => !value.is_null(),
        Expr::Column(number) => {
            let column = ColumnId(*number);
            let declared = types.get(*number as usize).is_some_and(|of| !of.nullable);
            declared && sides.into_iter().any(|side| walk::always_made(side, column))
        }
        _ => false,
    }
}
