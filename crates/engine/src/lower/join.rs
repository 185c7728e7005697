//! Which algorithm a join gets.

use super::{Lowering, Place};
use crate::ir::{ColumnId, JoinKind, Rel, Scalar, Scan, walk};
use crate::physical::{EqualPair, KeyClass, Op};
use alloc::{boxed::Box, collections::BTreeSet, vec::Vec};
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
        if let Rel::Scan(scan) = right
            && self.reaches_key(scan, on, &lefts)
        {
            return self.lookup(kind, left, scan, on, params);
        }
        // A row of the left side with one row of the right one are the same pair turned round.
        if kind == JoinKind::Inner
            && let Rel::Scan(scan) = left
            && self.reaches_key(scan, on, &right.columns())
        {
            let below = self.lookup(kind, right, scan, on, params);
            let rights = right.columns();
            let made: Vec<ColumnId> = rights.iter().chain(&lefts).copied().collect();
            let wanted: Vec<ColumnId> = lefts.iter().chain(&rights).copied().collect();
            return super::narrowed(below, &made, &wanted);
        }
        self.hash_or_nested(kind, left, right, on, params)
    }

    /// True if the condition says what all columns of one of the table's keys are, given a row with these columns.
    fn reaches_key(&self, scan: &Scan, on: Option<&Scalar>, given: &[ColumnId]) -> bool {
        let terms: Vec<Scalar> =
            scan.condition.iter().chain(on).cloned().flat_map(walk::conjuncts).collect();
        let fixed: BTreeSet<ColumnId> =
            terms.iter().filter_map(|term| self.fixes(scan, term, given)).collect();
        let uses_given = on.is_some();
        self.rules.key_join
            && uses_given
            && scan.keys.iter().any(|key| key.iter().all(|column| fixed.contains(column)))
    }

    /// The column of the table that the term sets equal to something outside of it, in the column's own order.
    fn fixes(&self, scan: &Scan, term: &Scalar, given: &[ColumnId]) -> Option<ColumnId> {
        let Expr::Binary { op: BinaryOp::Equal, left, right } = term else { return None };
        [(left, right), (right, left)].into_iter().find_map(|(own, other)| {
            let Expr::Column(number) = **own else { return None };
            let column = ColumnId(number);
            let columns = walk::columns_of(other);
            let outside = columns.iter().all(|c| !scan.has(*c) && given.contains(c));
            let (own, other) = (self.type_of(own), self.type_of(other));
            let same_order = key_class(&own, &other).is_some_and(|class| orders_like(class, &own));
            (scan.has(column) && outside && same_order).then_some(column)
        })
    }

    fn lookup(
        &mut self,
        kind: JoinKind,
        left: &Rel,
        scan: &Scan,
        on: Option<&Scalar>,
        params: &[ColumnId],
    ) -> Op {
        let lefts = left.columns();
        let below = Box::new(self.op(left, params));
        let (source, requested) = self.source(scan, on, Place { row: &lefts, params });
        self.sources[source].by_key = true;
        let right_width = scan.columns.len() as u32;
        Op::LookupJoin { kind, left: below, source, params: requested, right_width }
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
        let mut pairs = Vec::new();
        let mut rest = Vec::new();
        for term in on.cloned().map(walk::conjuncts).unwrap_or_default() {
            match self.pair(&term, (of_left, &lefts), (of_right, &rights)) {
                Some(pair) if self.rules.hash_join => pairs.push(pair),
                _ => rest.push(term),
            }
        }
        let both: Vec<ColumnId> = lefts.iter().chain(&rights).copied().collect();
        let rest = walk::conjunction(rest);
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
            null_safe: op == BinaryOp::NullSafeEqual,
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

/// True if a column of this type is found by a value that compares with it so.
fn orders_like(class: KeyClass, column: &ColumnType) -> bool {
    match class {
        KeyClass::Integer | KeyClass::Text(_) | KeyClass::Bytes | KeyClass::Time => true,
        KeyClass::Decimal => !matches!(column.kind, TypeKind::Float | TypeKind::Double),
        KeyClass::Double => false,
        KeyClass::Moment => true,
    }
}
