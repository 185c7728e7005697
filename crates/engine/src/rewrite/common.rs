//! What all alternatives of a condition have in common is taken out of them.
//!
//! `(a AND b) OR (a AND c)` is `a AND (b OR c)`: so an equality is seen that joins tables.
//! Of alternatives that each say something about one table, that table's rows are already less.

use super::facts::{disjunction, disjuncts};
use crate::ir::{ColumnId, Scalar, walk};
use alloc::{collections::BTreeSet, vec::Vec};
use lats_base::planted::{QueryBug, errs};

/// Alternatives of which more are not looked at: the work grows with their square.
const ALTERNATIVES_MAX: usize = 32;

/// The same condition as terms that all must hold.
pub(super) fn taken_out(terms: Vec<Scalar>) -> Vec<Scalar> {
    terms.into_iter().flat_map(of_term).collect()
}

fn of_term(term: Scalar) -> Vec<Scalar> {
    let alternatives = disjuncts(&term);
    if !(2..=ALTERNATIVES_MAX).contains(&alternatives.len()) {
        return Vec::from([term]);
    }
    let parts: Vec<Vec<Scalar>> =
        alternatives.into_iter().map(|one| walk::conjuncts(one.clone())).collect();
    let Some((first, others)) = parts.split_first() else { return Vec::from([term]) };
    let looked_at = if errs(QueryBug::CommonToTwoAlternatives) { 1 } else { others.len() };
    let shared = |part: &Scalar| others.iter().take(looked_at).all(|other| other.contains(part));
    let mut common: Vec<Scalar> = Vec::new();
    for part in first.iter().filter(|part| shared(part)) {
        if !common.contains(part) {
            common.push(part.clone());
        }
    }
    if common.is_empty() {
        return Vec::from([term]);
    }
    let rests = parts.into_iter().map(|part| {
        walk::conjunction(part.into_iter().filter(|one| !common.contains(one)).collect())
    });
    // An alternative that is nothing but what is common makes the others needless.
    let rests: Option<Vec<Scalar>> = rests.collect();
    let rest = rests.and_then(disjunction);
    common.into_iter().chain(rest).collect()
}

/// What a condition's alternatives say about these columns alone, if each of them says something.
pub(super) fn about(term: &Scalar, columns: &BTreeSet<ColumnId>) -> Option<Scalar> {
    let alternatives = disjuncts(term);
    if !(2..=ALTERNATIVES_MAX).contains(&alternatives.len()) {
        return None;
    }
    let is_about = |part: &Scalar| {
        let used = walk::columns_of(part);
        !used.is_empty() && used.iter().all(|column| columns.contains(column))
    };
    let of_one = |one: &Scalar| {
        let parts = walk::conjuncts(one.clone()).into_iter().filter(|part| is_about(part));
        walk::conjunction(parts.collect())
    };
    if errs(QueryBug::AboutSomeAlternatives) {
        return disjunction(alternatives.into_iter().filter_map(of_one).collect());
    }
    let all: Option<Vec<Scalar>> = alternatives.into_iter().map(of_one).collect();
    all.and_then(disjunction)
}
