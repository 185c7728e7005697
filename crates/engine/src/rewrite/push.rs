//! Conditions move to the tables that they are about: fewer rows travel, and indexes are used.
//!
//! A term of a filter above an inner join holds for a row of the join if and only if it holds for the part of the row that it is
//! about. Of a left join, only terms about the kept side may move; terms of ON about the other side may move into that side.

use crate::ir::{ApplyKind, ColumnId, JoinKind, Rel, Scalar, Types, walk};
use alloc::{boxed::Box, collections::BTreeSet, vec::Vec};

/// The plan with filters as far down as they may go.
pub fn filters(rel: Rel, types: &Types) -> Rel {
    push(rel, Vec::new(), types)
}

/// The rows of `rel` for which all terms are true.
fn push(rel: Rel, mut terms: Vec<Scalar>, types: &Types) -> Rel {
    match rel {
        Rel::Filter { input, condition } => {
            terms.splice(0..0, walk::conjuncts(condition));
            push(*input, terms, types)
        }
        Rel::Scan(mut scan) => {
            let all = scan.condition.take().into_iter().flat_map(walk::conjuncts).chain(terms);
            scan.condition = walk::conjunction(all.collect());
            Rel::Scan(scan)
        }
        Rel::Join { kind, left, right, on } => join(kind, *left, *right, on, terms, types),
        Rel::Apply { kind, left, right, on } => {
            // What is about the left side alone is looked at before the right side runs.
            let lefts = set(&left.columns());
            let rights = set(&right.columns());
            let made = match &kind {
                ApplyKind::Mark(column) | ApplyKind::Single { column, .. } => Some(*column),
                ApplyKind::Join(_) => None,
            };
            let about_left = |term: &Scalar| {
                let columns = walk::columns_of(term);
                !columns.iter().any(|c| rights.contains(c) || Some(*c) == made)
                    && (columns.iter().any(|c| lefts.contains(c)) || columns.is_empty())
            };
            let (below, above): (Vec<_>, Vec<_>) = terms.into_iter().partition(about_left);
            let left = Box::new(push(*left, below, types));
            let right = Box::new(push(*right, Vec::new(), types));
            Rel::Apply { kind, left, right, on }.filter(walk::conjunction(above))
        }
        Rel::Extend { input, items } => {
            let made: BTreeSet<ColumnId> = items.iter().map(|(column, _)| *column).collect();
            let (above, below): (Vec<_>, Vec<_>) = terms
                .into_iter()
                .partition(|term| walk::columns_of(term).iter().any(|c| made.contains(c)));
            let input = Box::new(push(*input, below, types));
            Rel::Extend { input, items }.filter(walk::conjunction(above))
        }
        Rel::Narrow { input, columns } => {
            Rel::Narrow { input: Box::new(push(*input, terms, types)), columns }
        }
        Rel::Sort { input, keys } => {
            Rel::Sort { input: Box::new(push(*input, terms, types)), keys }
        }
        other => {
            let below = other.map_inputs(&mut |input| push(input, Vec::new(), types));
            below.filter(walk::conjunction(terms))
        }
    }
}

fn set(columns: &[ColumnId]) -> BTreeSet<ColumnId> {
    columns.iter().copied().collect()
}

/// Terms about each side alone, and the rest.
struct Split {
    left: Vec<Scalar>,
    right: Vec<Scalar>,
    both: Vec<Scalar>,
}

fn split(terms: Vec<Scalar>, lefts: &BTreeSet<ColumnId>, rights: &BTreeSet<ColumnId>) -> Split {
    let mut found = Split { left: Vec::new(), right: Vec::new(), both: Vec::new() };
    for term in terms {
        let columns = walk::columns_of(&term);
        let of_left = columns.iter().any(|column| lefts.contains(column));
        let of_right = columns.iter().any(|column| rights.contains(column));
        match (of_left, of_right) {
            (true, false) => found.left.push(term),
            (false, true) => found.right.push(term),
            // Of neither: it holds for all rows or for none.
            _ => found.both.push(term),
        }
    }
    found
}

fn join(
    kind: JoinKind,
    left: Rel,
    right: Rel,
    on: Option<Scalar>,
    terms: Vec<Scalar>,
    types: &Types,
) -> Rel {
    let (lefts, rights) = (set(&left.columns()), set(&right.columns()));
    let on = on.map(walk::conjuncts).unwrap_or_default();
    if kind == JoinKind::Inner {
        let split = split(on.into_iter().chain(terms).collect(), &lefts, &rights);
        let left = Box::new(push(left, split.left, types));
        let right = Box::new(push(right, split.right, types));
        return Rel::Join { kind, left, right, on: walk::conjunction(split.both) };
    }
    let above = split(terms, &lefts, &rights);
    let within = split(on, &lefts, &rights);
    // Terms of ON about the left side alone decide about partners, not about the row.
    let on = walk::conjunction(within.left.into_iter().chain(within.both).collect());
    let left = Box::new(push(left, above.left, types));
    let right = Box::new(push(right, within.right, types));
    let rest = above.right.into_iter().chain(above.both).collect();
    Rel::Join { kind, left, right, on }.filter(walk::conjunction(rest))
}
