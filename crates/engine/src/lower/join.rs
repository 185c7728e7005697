//! Which algorithm a join gets.

use super::{Lowering, Place};
use crate::estimate::Size;
use crate::ir::{ColumnId, JoinKind, Rel, Scalar, Scan, walk};
use crate::physical::{Beyond, EqualPair, KeyClass, Op};
use crate::reach::{self, Kinds, Reach};
use crate::rewrite::facts;
use alloc::{boxed::Box, collections::BTreeSet, vec::Vec};
use lats_base::planted::{QueryBug, errs};
use lats_values::{BinaryOp, Collation, ColumnType, Expr, TypeKind};

impl Lowering<'_> {
    pub(super) fn join(
        &mut self,
        kind: JoinKind,
        left: &Rel,
        right: &Rel,
        on: Option<&Scalar>,
        params: &[ColumnId],
    ) -> Op {
        let lefts = left.columns();
        let terms = on.cloned().map(walk::conjuncts).unwrap_or_default();
        let (local, others): (Vec<_>, Vec<_>) = terms.into_iter().partition(walk::is_local);
        if !local.is_empty() {
            // Tables that are asked by key check the whole condition.
            if kind != JoinKind::Inner {
                return self.hash_or_nested(kind, left, right, on, params);
            }
            let others = walk::conjunction(others);
            let input = Box::new(self.join(kind, left, right, others.as_ref(), params));
            let row: Vec<ColumnId> = lefts.into_iter().chain(right.columns()).collect();
            return match walk::conjunction(local) {
                Some(local) => {
                    let condition = self.scalar(&local, Place { row: &row, params });
                    Op::Filter { input, condition }
                }
                None => *input,
            };
        }
        let terms: Vec<&Scalar> = others.iter().collect();
        let (of_left, of_right) = (self.estimates.size(left), self.estimates.size(right));
        let by = self.lookup_cost(kind, (of_left, of_right), right, &terms);
        // A row of the left side with one row of the right one are the same pair turned round.
        let turned = match kind {
            JoinKind::Inner if self.estimates.order().is_free() => {
                self.lookup_cost(kind, (of_right, of_left), left, &terms)
            }
            _ => None,
        };
        let turns = match (&by, &turned) {
            (Some((_, cost)), Some((_, other))) => other < cost,
            (by, _) => by.is_none(),
        };
        match (right, left, by, turned) {
            (Rel::Scan(scan), _, Some((reach, _)), _) if !turns => {
                self.lookup(kind, (left, scan), &reach, on, params)
            }
            (_, Rel::Scan(scan), _, Some((reach, _))) => {
                let below = self.lookup(kind, (right, scan), &reach, on, params);
                let rights = right.columns();
                let made: Vec<ColumnId> = rights.iter().chain(&lefts).copied().collect();
                let wanted: Vec<ColumnId> = lefts.iter().chain(&rights).copied().collect();
                super::narrowed(below, &made, &wanted)
            }
            _ => self.hash_or_nested(kind, left, right, on, params),
        }
    }

    /// By which index the right side is asked for, and what that costs, if that is the best way.
    fn lookup_cost(
        &self,
        kind: JoinKind,
        sizes: (Size, Size),
        right: &Rel,
        terms: &[&Scalar],
    ) -> Option<(Reach, f64)> {
        let ways = self.estimates.join(kind, sizes, right, terms);
        ways.looks_up().map(|reach| (reach.clone(), ways.cost()))
    }

    /// Asks for rows by an index: the terms that fix its columns say which rows are asked for, the others are looked at here.
    fn lookup(
        &mut self,
        kind: JoinKind,
        (left, scan): (&Rel, &Scan),
        reach: &Reach,
        on: Option<&Scalar>,
        params: &[ColumnId],
    ) -> Op {
        let lefts = left.columns();
        let below = Box::new(self.op(left, params));
        let kinds = Kinds { types: self.types, externals: self.externals };
        let mut open: BTreeSet<ColumnId> = reach.fixed.iter().copied().collect();
        let (asked, rest): (Vec<Scalar>, Vec<Scalar>) =
            on.cloned().map(walk::conjuncts).unwrap_or_default().into_iter().partition(|term| {
                reach::fixes(scan, term, &|_| true, kinds).is_some_and(|c| open.remove(&c))
            });
        let asked = walk::conjunction(asked);
        let whole = scan;
        let mut scan = scan.clone();
        if matches!(kind, JoinKind::Semi | JoinKind::Anti) {
            // Whether there is a partner is known by what the others look at.
            let mut seen = BTreeSet::new();
            rest.iter().for_each(|term| walk::add_columns(term, &mut seen));
            scan.columns.retain(|column| seen.contains(column));
        }
        let scan = &scan;
        let place = Place { row: &lefts, params };
        let (source, requested) = self.source(scan, asked.as_ref(), place);
        let first = scan.first.0;
        // What is not looked at here decides in the data nodes whether there is a partner.
        let one_is_enough = matches!(kind, JoinKind::Semi | JoinKind::Anti) && rest.is_empty();
        let touched = self.estimates.touched_by(scan, reach);
        if let Some(spec) = self.sources.get_mut(source) {
            spec.by_key = reach.is_key;
            spec.index = Some(reach.index.iter().map(|column| column.0 - first).collect());
            spec.touched = touched;
            spec.one_is_enough = one_is_enough;
        }
        let both: Vec<ColumnId> = lefts.iter().chain(&scan.columns).copied().collect();
        let rest = walk::conjunction(rest);
        let residual = rest.map(|rest| self.scalar(&rest, Place { row: &both, params }));
        let right_width = scan.columns.len() as u32;
        let beyond = self.beyond((left, whole), on, place);
        let (left, params) = (below, requested);
        let at_once = crate::cost::at_once(touched.found) as u32;
        Op::LookupJoin { kind, left, source, params, residual, at_once, beyond, right_width }
    }

    /// From how many rows on it is better to read the right side once, and how; none if it is too large to be kept for a guess.
    fn beyond(
        &mut self,
        (left, scan): (&Rel, &Scan),
        on: Option<&Scalar>,
        place: Place<'_>,
    ) -> Option<Box<Beyond>> {
        let kinds = Kinds { types: self.types, externals: self.externals };
        if !self.rules.hash_join || facts::at_most_one_row(left, kinds) {
            return None;
        }
        let right = Rel::Scan(Box::new(scan.clone()));
        let terms = on.cloned().map(walk::conjuncts).unwrap_or_default();
        let terms: Vec<&Scalar> = terms.iter().collect();
        let asked = self.estimates.lookups_max(self.estimates.size(left), &right, &terms)?;
        let of_right = Place { row: &scan.columns, params: place.params };
        let (pairs, rest) = self.equal_pairs(on, (place, place.row), (of_right, &scan.columns));
        if pairs.is_empty() {
            return None;
        }
        let both: Vec<ColumnId> = place.row.iter().chain(&scan.columns).copied().collect();
        let residual = rest.map(|rest| self.scalar(&rest, Place { row: &both, ..place }));
        let right = self.op(&right, place.params);
        Some(Box::new(Beyond { asked, right, pairs, residual }))
    }

    /// The parts of a condition that are equalities between both sides, and the rest.
    fn equal_pairs(
        &self,
        on: Option<&Scalar>,
        left: (Place<'_>, &[ColumnId]),
        right: (Place<'_>, &[ColumnId]),
    ) -> (Vec<EqualPair>, Option<Scalar>) {
        let (mut pairs, mut rest) = (Vec::new(), Vec::new());
        for term in on.cloned().map(walk::conjuncts).unwrap_or_default() {
            match self.pair(&term, left, right) {
                Some(pair) if self.rules.hash_join => pairs.push(pair),
                _ => rest.push(term),
            }
        }
        (pairs, walk::conjunction(rest))
    }

    fn hash_or_nested(
        &mut self,
        kind: JoinKind,
        left: &Rel,
        right: &Rel,
        on: Option<&Scalar>,
        params: &[ColumnId],
    ) -> Op {
        let (lefts, rights) = (left.columns(), right.columns());
        let (of_left, of_right) = (Place { row: &lefts, params }, Place { row: &rights, params });
        let (pairs, rest) = self.equal_pairs(on, (of_left, &lefts), (of_right, &rights));
        let both: Vec<ColumnId> = lefts.iter().chain(&rights).copied().collect();
        let rest = rest.map(|rest| self.scalar(&rest, Place { row: &both, params }));
        let right_width = rights.len() as u32;
        let (left, right) = (Box::new(self.op(left, params)), Box::new(self.op(right, params)));
        match pairs.is_empty() {
            true => Op::NestedJoin { kind, left, right, on: rest, right_width },
            false => Op::HashJoin { kind, left, right, pairs, residual: rest, right_width },
        }
    }

    pub(super) fn pair(
        &self,
        term: &Scalar,
        (of_left, lefts): (Place<'_>, &[ColumnId]),
        (of_right, rights): (Place<'_>, &[ColumnId]),
    ) -> Option<EqualPair> {
        let (op, a, b) = match term {
            Expr::Binary { op: op @ (BinaryOp::Equal | BinaryOp::NullSafeEqual), left, right } => {
                (*op, &**left, &**right)
            }
            _ => return None,
        };
        let within = |expr: &Scalar, columns: &[ColumnId]| {
            let used = walk::columns_of(expr);
            !used.is_empty() && used.iter().all(|column| columns.contains(column))
        };
        let (a, b) = match (within(a, lefts), within(b, rights)) {
            (true, true) => (a, b),
            _ if within(b, lefts) && within(a, rights) => (b, a),
            _ => return None,
        };
        let class = key_class(&self.type_of(a), &self.type_of(b))?;
        Some(EqualPair {
            left: self.scalar(a, of_left),
            right: self.scalar(b, of_right),
            class,
            null_safe: op == BinaryOp::NullSafeEqual && !errs(QueryBug::HashForgetsNullSafe),
        })
    }
}

/// How values of these types are compared, where equal values can have equal bytes.
pub fn key_class(a: &ColumnType, b: &ColumnType) -> Option<KeyClass> {
    let number = |t: &ColumnType| t.kind.is_number() && t.kind != TypeKind::Year;
    let moment = |t: &ColumnType| {
        matches!(t.kind, TypeKind::Date | TypeKind::DateTime { .. } | TypeKind::Timestamp { .. })
    };
    let inexact = |t: &ColumnType| matches!(t.kind, TypeKind::Float | TypeKind::Double);
    let exact = |t: &ColumnType| matches!(t.kind, TypeKind::Decimal { .. });
    Some(match () {
        () if number(a) && number(b) && (inexact(a) || inexact(b)) => KeyClass::Double,
        () if number(a) && number(b) && (exact(a) || exact(b)) => KeyClass::Decimal,
        () if number(a) && number(b) => KeyClass::Integer,
        () if a.kind == TypeKind::Year && b.kind == TypeKind::Year => KeyClass::Integer,
        () if a.kind.is_text() && b.kind.is_text() && a.collation == b.collation => {
            match a.collation {
                Collation::Binary => KeyClass::Bytes,
                collation => KeyClass::Text(collation),
            }
        }
        () if a.kind.is_bytes() && b.kind.is_bytes() => KeyClass::Bytes,
        () if moment(a) && moment(b) => KeyClass::Moment,
        () if matches!((a.kind, b.kind), (TypeKind::Time { .. }, TypeKind::Time { .. })) => {
            KeyClass::Time
        }
        () => return None,
    })
}
