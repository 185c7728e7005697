//! The order in which tables are joined.
//!
//! Inner joins may be made in any order. An outer, semi- or anti-join adds its right side to any set of tables that has what its
//! condition names: it keeps or drops rows of the left side, or adds columns to them, by these alone. A condition of the inner joins
//! holds as soon as all that it names is there.

use crate::estimate::{Estimates, Size};
use crate::ir::{ColumnId, JoinKind, Rel, Scalar, SourceId, walk};
use alloc::{boxed::Box, collections::BTreeMap, vec, vec::Vec};
use lats_base::planted::{QueryBug, errs};

/// Up to so many tables, all orders are looked at.
const ALL_ORDERS_MAX: usize = 10;
/// Of more tables, so many are tried as the first one.
const STARTS_MAX: usize = 4;
/// More tables are joined as written.
const ITEMS_MAX: usize = 62;

/// The plan with its joins in the order that costs least.
pub fn joins(rel: Rel, estimates: &Estimates<'_>) -> Rel {
    match rel {
        Rel::Join { .. } => ordered(rel, estimates),
        Rel::Filter { ref input, .. } if matches!(**input, Rel::Join { .. }) => {
            ordered(rel, estimates)
        }
        other => other.map_inputs(&mut |input| joins(input, estimates)),
    }
}

/// One of the sides that are joined.
struct Item {
    kind: JoinKind,
    rel: Rel,
    size: Size,
    /// The condition of a join that is no inner one.
    on: Vec<Scalar>,
    /// What that needs.
    needs: u64,
}

/// Sides and conditions of a tree of joins.
struct Graph<'e, 'c> {
    estimates: &'e Estimates<'c>,
    items: Vec<Item>,
    /// Conditions of inner joins, and of filters, with the sides that they name.
    terms: Vec<(Scalar, u64)>,
}

/// Some of the sides, joined.
#[derive(Clone, Copy)]
struct State {
    size: Size,
    /// The side that was added last, and whether what was there before is kept in its stead.
    last: usize,
    keeps_left: bool,
}

fn ordered(rel: Rel, estimates: &Estimates<'_>) -> Rel {
    if count(&rel) > ITEMS_MAX {
        return rel.map_inputs(&mut |input| joins(input, estimates));
    }
    let hinted = estimates.order();
    let mut graph = Graph { estimates, items: Vec::new(), terms: Vec::new() };
    graph.flatten(rel);
    graph.name_needs();
    graph.obey(&hinted.before);
    let order = match graph.items.len() {
        0..=ALL_ORDERS_MAX => graph.best(),
        _ => graph.greedy(),
    };
    graph.built(&order)
}

fn mentions(rel: &Rel, source: SourceId) -> bool {
    match rel {
        Rel::Scan(scan) => scan.source == source,
        other => other.inputs().into_iter().any(|input| mentions(input, source)),
    }
}

fn count(rel: &Rel) -> usize {
    match rel {
        Rel::Join { kind: JoinKind::Inner, left, right, .. } => count(left) + count(right),
        Rel::Join { left, .. } => count(left) + 1,
        Rel::Filter { input, .. } if matches!(**input, Rel::Join { .. }) => count(input),
        _ => 1,
    }
}

impl Graph<'_, '_> {
    fn flatten(&mut self, rel: Rel) {
        match rel {
            Rel::Join { kind: JoinKind::Inner, left, right, on } => {
                self.flatten(*left);
                self.flatten(*right);
                self.add_terms(on);
            }
            Rel::Join { kind, left, right, on } => {
                self.flatten(*left);
                let on = on.map(walk::conjuncts).unwrap_or_default();
                self.add(kind, *right, on);
            }
            Rel::Filter { input, condition } if matches!(*input, Rel::Join { .. }) => {
                self.flatten(*input);
                self.add_terms(Some(condition));
            }
            other => self.add(JoinKind::Inner, other, Vec::new()),
        }
    }

    fn add(&mut self, kind: JoinKind, rel: Rel, on: Vec<Scalar>) {
        let rel = joins(rel, self.estimates);
        let size = self.estimates.size(&rel);
        self.items.push(Item { kind, rel, size, on, needs: 0 });
    }

    fn add_terms(&mut self, condition: Option<Scalar>) {
        let terms = condition.map(walk::conjuncts).unwrap_or_default();
        self.terms.extend(terms.into_iter().map(|term| (term, 0)));
    }

    /// Finds out which sides the conditions name.
    fn name_needs(&mut self) {
        let mut makers: BTreeMap<ColumnId, u64> = BTreeMap::new();
        for (at, item) in self.items.iter().enumerate() {
            let is_shown = matches!(item.kind, JoinKind::Inner | JoinKind::Left);
            let columns = if is_shown { item.rel.columns() } else { Vec::new() };
            makers.extend(columns.into_iter().map(|column| (column, 1 << at)));
        }
        let sides = |term: &Scalar| {
            let columns = walk::columns_of(term);
            columns.iter().filter_map(|column| makers.get(column)).fold(0, |all, one| all | one)
        };
        for (term, needs) in &mut self.terms {
            // What is not the same each time is looked at once for each row of the whole join.
            *needs = if walk::is_volatile(term) { 0 } else { sides(term) };
        }
        for (at, item) in self.items.iter_mut().enumerate() {
            let needs = item.on.iter().map(&sides).fold(0, |all, one| all | one);
            item.needs = needs & !(1 << at);
        }
    }

    /// The order that the statement asks for is one more need.
    fn obey(&mut self, before: &[(SourceId, SourceId)]) {
        for (first, second) in before {
            let of =
                |source: &SourceId| self.items.iter().position(|item| mentions(&item.rel, *source));
            let (Some(first), Some(second)) = (of(first), of(second)) else { continue };
            if first != second
                && let Some(item) = self.items.get_mut(second)
            {
                item.needs |= 1 << first;
            }
        }
    }

    /// The terms that can be looked at when this side is added to the set, and could not before.
    fn due(&self, set: u64, at: usize) -> impl Iterator<Item = &Scalar> {
        let (own, all) = (1 << at, set | 1 << at);
        let due = move |needs: u64| needs & own != 0 && needs & !all == 0;
        self.terms.iter().filter(move |(_, needs)| due(*needs)).map(|(term, _)| term)
    }

    fn extended(&self, set: u64, state: &State, at: usize) -> Option<State> {
        let item = self.items.get(at)?;
        if set & 1 << at != 0 || item.needs & !set != 0 {
            return None;
        }
        let on: Vec<&Scalar> = match item.kind {
            JoinKind::Inner => self.due(set, at).collect(),
            _ => item.on.iter().collect(),
        };
        let ways = self.estimates.join(item.kind, (state.size, item.size), &item.rel, &on);
        let keeps_left = ways.looks_up().is_none() && ways.keep_left < ways.keep_right;
        let size = Size { rows: ways.rows, cost: ways.cost() };
        Some(State { size, last: at, keeps_left })
    }

    /// True if a condition ties the side to one of the set.
    fn is_tied(&self, set: u64, at: usize) -> bool {
        let is_inner = self.items.get(at).is_some_and(|item| item.kind == JoinKind::Inner);
        !is_inner || self.terms.iter().any(|(_, needs)| needs & 1 << at != 0 && needs & set != 0)
    }

    fn firsts(&self) -> impl Iterator<Item = (usize, State)> {
        let may_begin = |item: &Item| item.kind == JoinKind::Inner && item.needs == 0;
        let inner = self.items.iter().enumerate().filter(move |(_, item)| may_begin(item));
        inner.map(|(at, item)| (at, State { size: item.size, last: at, keeps_left: false }))
    }

    /// The sides that may come next: those that are tied to the set, if there are any.
    fn next(&self, set: u64, state: &State) -> Vec<State> {
        let all = (0..self.items.len()).filter_map(|at| self.extended(set, state, at));
        let (tied, loose): (Vec<State>, Vec<State>) =
            all.partition(|state| self.is_tied(set, state.last));
        if tied.is_empty() { loose } else { tied }
    }

    /// The best order of all: sets of sides, from small ones to large ones, each with its best way.
    fn best(&self) -> Vec<State> {
        let full = (1_usize << self.items.len()) - 1;
        let mut found: Vec<Option<State>> = vec![None; full + 1];
        for (at, state) in self.firsts() {
            if let Some(place) = found.get_mut(1 << at) {
                *place = Some(state);
            }
        }
        for set in 1..=full {
            let Some(state) = found.get(set).copied().flatten() else { continue };
            for next in self.next(set as u64, &state) {
                let Some(place) = found.get_mut(set | 1 << next.last) else { continue };
                if place.is_none_or(|before| next.size.cost < before.size.cost) {
                    *place = Some(next);
                }
            }
        }
        let mut order = Vec::with_capacity(self.items.len());
        let mut set = full;
        while let Some(state) = found.get(set).copied().flatten() {
            order.push(state);
            set &= !(1 << state.last);
        }
        order.reverse();
        order
    }

    /// A good order: from some sides with few rows, always the cheapest next step.
    fn greedy(&self) -> Vec<State> {
        let mut firsts: Vec<(usize, State)> = self.firsts().collect();
        firsts.sort_by(|(_, a), (_, b)| a.size.rows.total_cmp(&b.size.rows));
        let mut best: Vec<State> = Vec::new();
        for (at, first) in firsts.into_iter().take(STARTS_MAX) {
            let (mut set, mut order) = (1_u64 << at, vec![first]);
            while let Some(state) = order.last().copied()
                && let Some(next) = self
                    .next(set, &state)
                    .into_iter()
                    .min_by(|a, b| a.size.cost.total_cmp(&b.size.cost))
            {
                set |= 1 << next.last;
                order.push(next);
            }
            let cost = |order: &[State]| order.last().map_or(f64::INFINITY, |s| s.size.cost);
            if order.len() == self.items.len() && cost(&order) < cost(&best) {
                best = order;
            }
        }
        best
    }

    /// The joins in this order; as they were written if it lacks some.
    fn built(mut self, order: &[State]) -> Rel {
        let all = order.len() == self.items.len();
        let plain: Vec<(usize, bool)> = match all {
            true => order.iter().map(|state| (state.last, state.keeps_left)).collect(),
            false => (0..self.items.len()).map(|at| (at, false)).collect(),
        };
        let mut set = 0_u64;
        let mut built: Option<Rel> = None;
        for (at, keeps_left) in plain {
            let due: Vec<Scalar> = self.due(set, at).cloned().collect();
            set |= 1 << at;
            let Some(item) = self.items.get_mut(at) else { continue };
            let rel = core::mem::replace(&mut item.rel, Rel::one_row());
            let (kind, on) = (item.kind, core::mem::take(&mut item.on));
            built = Some(match built {
                None => rel.filter(walk::conjunction(due)),
                Some(before) if kind == JoinKind::Inner => {
                    let (left, right) = if keeps_left { (rel, before) } else { (before, rel) };
                    let (left, right) = (Box::new(left), Box::new(right));
                    Rel::Join { kind, left, right, on: walk::conjunction(due) }
                }
                Some(before) => {
                    let (left, right) = (Box::new(before), Box::new(rel));
                    if errs(QueryBug::DueTermsIntoOn) {
                        let on = walk::conjunction(on.into_iter().chain(due).collect());
                        built = Some(Rel::Join { kind, left, right, on });
                        continue;
                    }
                    let on = walk::conjunction(on);
                    Rel::Join { kind, left, right, on }.filter(walk::conjunction(due))
                }
            });
        }
        // Terms that name no side hold for all rows or for none.
        let keeps = |needs: u64| needs == 0 && !errs(QueryBug::ConstantTermsLost);
        let rest = self.terms.into_iter().filter(|(_, needs)| keeps(*needs)).map(|(term, _)| term);
        let rel = built.unwrap_or_else(Rel::one_row);
        rel.filter(walk::conjunction(rest.collect()))
    }
}
