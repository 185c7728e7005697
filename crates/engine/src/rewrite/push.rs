//! Conditions move to the tables that they are about: fewer rows travel, and indexes are used.
//!
//! A term of a filter above an inner join holds for a row of the join if and only if it holds for the part of the row that it is
//! about. Of a left join, only terms about the kept side may move; terms of ON about the other side may move into that side.
//! A term about keys of groups holds for all rows of a group or for none.

use super::{Context, common, equal, facts};
use crate::ir::{ColumnId, JoinKind, Rel, Scalar, walk};
use alloc::{boxed::Box, collections::BTreeSet, vec::Vec};
use lats_base::planted::{QueryBug, errs};
use lats_values::{Expr, TypeKind};

type Columns = BTreeSet<ColumnId>;

/// The plan with filters as far down as they may go.
pub fn filters(rel: Rel, context: Context<'_>) -> Rel {
    push(rel, Vec::new(), context)
}

/// The rows of `rel` for which all terms are true.
fn push(rel: Rel, terms: Vec<Scalar>, context: Context<'_>) -> Rel {
    // What is another value each time is looked at where it stands: elsewhere it would be for other rows.
    let (held, terms): (Vec<_>, Vec<_>) = terms.into_iter().partition(walk::is_volatile);
    push_all(rel, terms, context).filter(walk::conjunction(held))
}

fn push_all(rel: Rel, mut terms: Vec<Scalar>, context: Context<'_>) -> Rel {
    match rel {
        Rel::Filter { input, condition } => {
            terms.splice(0..0, split_up(condition, context));
            push(*input, terms, context)
        }
        Rel::Scan(mut scan) => {
            let mut all = scan.condition.take().map(walk::conjuncts).unwrap_or_default();
            let (local, terms): (Vec<_>, Vec<_>) = terms.into_iter().partition(walk::is_local);
            for term in terms {
                if !all.contains(&term) {
                    all.push(term);
                }
            }
            scan.condition = walk::conjunction(all);
            Rel::Scan(scan).filter(walk::conjunction(local))
        }
        Rel::Join { kind, left, right, on } => join(kind, (*left, *right), on, terms, context),
        Rel::Apply { .. } => apply(rel, terms, context),
        Rel::Extend { input, items } => {
            let made: Columns = items.iter().map(|(column, _)| *column).collect();
            let (above, below) = partition(terms, |columns| columns.is_disjoint(&made));
            let input = Box::new(push(*input, below, context));
            Rel::Extend { input, items }.filter(walk::conjunction(above))
        }
        Rel::Narrow { input, columns } => {
            Rel::Narrow { input: Box::new(push(*input, terms, context)), columns }
        }
        Rel::Sort { input, keys } => {
            Rel::Sort { input: Box::new(push(*input, terms, context)), keys }
        }
        Rel::Aggregate { .. } | Rel::Window { .. } | Rel::Distinct { .. } => {
            let shared = shared_columns(&rel, context);
            if errs(QueryBug::PushBelowRollup) {
                terms = terms.into_iter().map(|term| of_rollup_keys(&rel, term)).collect();
            }
            let passes_windows = |columns: &Columns| {
                errs(QueryBug::PushBelowWindow)
                    && matches!(rel, Rel::Window { .. })
                    && rel.inputs().iter().any(|i| columns.is_subset(&set(&i.columns())))
            };
            let (above, below) = partition(terms, |columns| {
                !columns.is_empty() && (columns.is_subset(&shared) || passes_windows(columns))
            });
            let mut below = Some(below);
            let rel =
                rel.map_inputs(&mut |input| push(input, below.take().unwrap_or_default(), context));
            rel.filter(walk::conjunction(above))
        }
        Rel::Limit { input, count, offset } if errs(QueryBug::PushBelowLimit) => {
            Rel::Limit { input: Box::new(push(*input, terms, context)), count, offset }
        }
        other => {
            let below = other.map_inputs(&mut |input| push(input, Vec::new(), context));
            below.filter(walk::conjunction(terms))
        }
    }
}

/// The terms of a condition.
fn split_up(condition: Scalar, context: Context<'_>) -> Vec<Scalar> {
    let terms = walk::conjuncts(condition);
    if context.rules.common_terms { common::taken_out(terms) } else { terms }
}

/// The terms whose columns do not pass the test, and those whose do.
fn partition(terms: Vec<Scalar>, test: impl Fn(&Columns) -> bool) -> (Vec<Scalar>, Vec<Scalar>) {
    terms.into_iter().partition(|term| !test(&walk::columns_of(term)))
}

/// For the planted bug: a term about the keys below the groups, which are never those of totals.
fn of_rollup_keys(rel: &Rel, term: Scalar) -> Scalar {
    let Rel::Aggregate { keys, rollup, .. } = rel else { return term };
    walk::map_columns(&term, &|number| {
        let at = rollup.iter().position(|(column, _)| column.0 == number)?;
        keys.get(at).cloned()
    })
}

/// Columns in which all rows of a group, a part, or a set of equal rows have the very same value.
fn shared_columns(rel: &Rel, context: Context<'_>) -> Columns {
    let of_keys = |keys: &[Scalar]| -> Columns {
        let column = |key: &Scalar| match key {
            Expr::Column(number) => Some(ColumnId(*number)),
            _ => None,
        };
        keys.iter().filter_map(column).collect()
    };
    let mut columns = match rel {
        Rel::Aggregate { keys, rollup, .. }
            if rollup.is_empty() || errs(QueryBug::PushBelowRollup) =>
        {
            of_keys(keys)
        }
        Rel::Window { partition, .. } => of_keys(partition),
        Rel::Distinct { columns, .. } => columns.iter().copied().collect(),
        _ => Columns::new(),
    };
    // Texts and doubles that are equal need not be the same: 'a' and 'A', 0 and -0.
    columns.retain(|column| {
        let of = context.types.get(column.0 as usize);
        of.is_some_and(|of| {
            let inexact = matches!(of.kind, TypeKind::Float | TypeKind::Double);
            let is_same = !of.kind.is_text() && !of.kind.is_bytes() && !inexact;
            is_same || errs(QueryBug::PushTextKeyBelowGroups)
        })
    });
    columns
}

fn set(columns: &[ColumnId]) -> Columns {
    columns.iter().copied().collect()
}

/// Terms about each side alone, and the rest.
struct Split {
    left: Vec<Scalar>,
    right: Vec<Scalar>,
    both: Vec<Scalar>,
}

fn split(terms: Vec<Scalar>, lefts: &Columns, rights: &Columns) -> Split {
    let mut found = Split { left: Vec::new(), right: Vec::new(), both: Vec::new() };
    for term in terms {
        let columns = walk::columns_of(&term);
        let of_left = columns.iter().any(|column| lefts.contains(column));
        let of_right = columns.iter().any(|column| rights.contains(column));
        match (of_left, of_right) {
            _ if walk::is_volatile(&term) => found.both.push(term),
            (true, false) => found.left.push(term),
            (false, true) => found.right.push(term),
            // Of neither: it holds for all rows or for none.
            _ => found.both.push(term),
        }
    }
    found
}

fn apply(rel: Rel, terms: Vec<Scalar>, context: Context<'_>) -> Rel {
    let Rel::Apply { kind, left, right, on, when } = rel else {
        return rel.filter(walk::conjunction(terms));
    };
    // What is about the left side alone is looked at before the right side runs.
    let (lefts, rights) = (set(&left.columns()), set(&right.columns()));
    let made = kind.made();
    let (above, below) = partition(terms, |columns| {
        !columns.iter().any(|c| rights.contains(c) || made.contains(c))
            && (columns.iter().any(|c| lefts.contains(c)) || columns.is_empty())
    });
    let left = Box::new(push(*left, below, context));
    let right = Box::new(push(*right, Vec::new(), context));
    Rel::Apply { kind, left, right, on, when }.filter(walk::conjunction(above))
}

fn join(
    kind: JoinKind,
    (left, right): (Rel, Rel),
    on: Option<Scalar>,
    terms: Vec<Scalar>,
    context: Context<'_>,
) -> Rel {
    let (lefts, rights) = (set(&left.columns()), set(&right.columns()));
    let on = on.map(|on| split_up(on, context)).unwrap_or_default();
    let drops = |term: &Scalar| facts::rejects_nulls(term, &rights);
    let kind = match kind {
        JoinKind::Left if context.rules.outer_to_inner && terms.iter().any(drops) => {
            JoinKind::Inner
        }
        other => other,
    };
    if kind == JoinKind::Inner {
        return inner((left, right), (&lefts, &rights), on.into_iter().chain(terms), context);
    }
    let mut above = split(terms, &lefts, &rights);
    let mut within = split(on, &lefts, &rights);
    if context.rules.equal_columns {
        let mut known: Vec<Scalar> =
            above.left.iter().chain(&within.left).chain(&within.both).cloned().collect();
        if errs(QueryBug::ImpliedLeavesLeftRowsOut) {
            known.extend(within.right.iter().cloned());
        }
        let implied = split(equal::implied(&known, context), &lefts, &rights);
        within.right.extend(implied.right);
        if errs(QueryBug::ImpliedLeavesLeftRowsOut) {
            above.left.extend(implied.left);
        }
    }
    if errs(QueryBug::WhereIntoOuterSide) {
        within.right.append(&mut above.right);
    }
    // Terms of ON about the left side alone decide about partners, not about the row.
    if errs(QueryBug::OnLeavesLeftRowsOut) {
        above.left.append(&mut within.left);
    }
    let on = walk::conjunction(within.left.into_iter().chain(within.both).collect());
    let left = Box::new(push(left, above.left, context));
    let right = Box::new(push(right, within.right, context));
    let rest = above.right.into_iter().chain(above.both).collect();
    Rel::Join { kind, left, right, on }.filter(walk::conjunction(rest))
}

fn inner(
    (mut left, mut right): (Rel, Rel),
    (lefts, rights): (&Columns, &Columns),
    terms: impl Iterator<Item = Scalar>,
    context: Context<'_>,
) -> Rel {
    let mut all: Vec<Scalar> = terms.collect();
    if context.rules.equal_columns {
        // Conditions of joins below say what is equal, too.
        hoist(&mut left, &mut all, context);
        hoist(&mut right, &mut all, context);
        all.extend(equal::implied(&all, context));
    }
    let mut split = split(all, lefts, rights);
    if context.rules.common_terms {
        for term in split.both.iter().filter(|term| !walk::is_volatile(term)) {
            split.left.extend(common::about(term, lefts));
            split.right.extend(common::about(term, rights));
        }
    }
    let left = Box::new(push(left, split.left, context));
    let right = Box::new(push(right, split.right, context));
    Rel::Join { kind: JoinKind::Inner, left, right, on: walk::conjunction(split.both) }
}

/// Takes the conditions of inner joins that stand directly below.
fn hoist(rel: &mut Rel, terms: &mut Vec<Scalar>, context: Context<'_>) {
    match rel {
        Rel::Join { kind: JoinKind::Inner, left, right, on } => {
            terms.extend(on.take().into_iter().flat_map(|on| split_up(on, context)));
            hoist(left, terms, context);
            hoist(right, terms, context);
        }
        Rel::Filter { .. } => {
            let Rel::Filter { input, condition } = core::mem::replace(rel, Rel::one_row()) else {
                return;
            };
            terms.extend(split_up(condition, context));
            *rel = *input;
            hoist(rel, terms, context);
        }
        _ => {}
    }
}
