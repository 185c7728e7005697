//! Conditions of a subquery that name columns of the rows around it are taken out of it: what is left is the same for all rows.

use super::facts;
use crate::ir::{ApplyKind, ColumnId, JoinKind, Rel, Scalar, walk};
use crate::reach::Kinds;
use alloc::{boxed::Box, collections::BTreeSet, vec::Vec};
use lats_base::planted::{QueryBug, errs};

/// What a subquery is without these conditions.
pub(super) struct Lifted {
    /// The rows; more than before.
    pub(super) rel: Rel,
    /// The conditions that say which of them are meant.
    pub(super) terms: Vec<Scalar>,
}

/// Takes the conditions out; none if the rows still depend on `outer`, or if a condition names what is no longer to be seen.
/// Where only the existence of a row counts, `exact` is false: rows may come in another number and order.
pub(super) fn correlated(rel: &Rel, outer: &BTreeSet<ColumnId>, exact: bool) -> Option<Lifted> {
    // Such rows are made anew for each row around them.
    if walk::makes_volatile(rel) {
        return None;
    }
    let mut terms = Vec::new();
    let rel = lift(rel.clone(), outer, exact, &mut terms);
    if walk::free_columns(&rel).iter().any(|column| outer.contains(column)) {
        return None;
    }
    let made: BTreeSet<ColumnId> = rel.columns().into_iter().collect();
    let around = walk::free_columns(&rel);
    let is_seen = |column: &ColumnId| {
        made.contains(column) || outer.contains(column) || around.contains(column)
    };
    let all_seen = terms.iter().flat_map(walk::columns_of).all(|column| is_seen(&column));
    all_seen.then_some(Lifted { rel, terms })
}

fn lift(rel: Rel, outer: &BTreeSet<ColumnId>, exact: bool, terms: &mut Vec<Scalar>) -> Rel {
    let below = |rel: Box<Rel>, terms: &mut Vec<Scalar>| lift(*rel, outer, exact, terms);
    match rel {
        Rel::Filter { input, condition } => {
            let input = below(input, terms);
            input.filter(without(Some(condition), outer, terms))
        }
        Rel::Scan(mut scan) => {
            scan.condition = without(scan.condition.take(), outer, terms);
            Rel::Scan(scan)
        }
        Rel::Extend { input, items } => Rel::Extend { input: Box::new(below(input, terms)), items },
        Rel::Join { kind: JoinKind::Inner, left, right, on } => {
            let left = Box::new(below(left, terms));
            let right = Box::new(below(right, terms));
            let on = without(on, outer, terms);
            Rel::Join { kind: JoinKind::Inner, left, right, on }
        }
        // What the other sides give for a row of the left side stays as it is.
        Rel::Join { kind, left, right, on } => {
            Rel::Join { kind, left: Box::new(below(left, terms)), right, on }
        }
        Rel::Apply { kind, left, right, on, when } => {
            Rel::Apply { kind, left: Box::new(below(left, terms)), right, on, when }
        }
        Rel::Sort { input, .. } | Rel::Distinct { input, .. } if !exact => below(input, terms),
        Rel::Limit { input, .. } if !exact && errs(QueryBug::LiftPastLimit) => below(input, terms),
        other => other,
    }
}

/// The terms that name no column of `outer`; the others are added to `terms`.
fn without(
    condition: Option<Scalar>,
    outer: &BTreeSet<ColumnId>,
    terms: &mut Vec<Scalar>,
) -> Option<Scalar> {
    let all = condition.map(walk::conjuncts).unwrap_or_default();
    let (lifted, stay): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|term| walk::columns_of(term).iter().any(|c| outer.contains(c)));
    terms.extend(lifted);
    walk::conjunction(stay)
}

/// An Apply that gives rows beside rows becomes a join where its right side can do without the left one.
pub(super) fn joined(
    kind: JoinKind,
    left: Rel,
    right: Rel,
    on: Option<Scalar>,
    kinds: Kinds<'_>,
) -> Rel {
    let outer: BTreeSet<ColumnId> = left.columns().into_iter().collect();
    let exact = matches!(kind, JoinKind::Inner | JoinKind::Left);
    let lifted = correlated(&right, &outer, exact).filter(|lifted| {
        // Without its conditions it is computed for rows that nobody asked for.
        let fails = !lifted.terms.is_empty() && kinds.plan_may_fail(&lifted.rel);
        !fails && !facts::may_have_too_many(&right, kinds)
    });
    // Whether there is a row at all is known with the first one: an Apply stops there.
    let is_needed = exact || on.is_some() || lifted.as_ref().is_some_and(|l| !l.terms.is_empty());
    match lifted {
        Some(Lifted { rel, terms }) if is_needed => {
            let terms = on.map(walk::conjuncts).unwrap_or_default().into_iter().chain(terms);
            let on = walk::conjunction(terms.collect());
            let kind = match kind {
                JoinKind::Semi if errs(QueryBug::SemiJoinGivesPairs) => JoinKind::Inner,
                other => other,
            };
            Rel::Join { kind, left: Box::new(left), right: Box::new(rel), on }
        }
        _ => {
            let kind = ApplyKind::Join(kind);
            Rel::Apply { kind, left: Box::new(left), right: Box::new(right), on, when: None }
        }
    }
}
