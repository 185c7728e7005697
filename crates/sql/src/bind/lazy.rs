//! Subqueries run for rows whose other values do not decide without them: the rest of an AND behind what is false, a branch of CASE
//! that is not taken, and what WHERE has left out.

use super::Binder;
use super::scope::Pending;
use lats_engine::ir::{ColumnId, Rel, Scalar, walk};
use lats_mysql_syntax::tree::{self, ExprId};
use lats_values::{BinaryOp, Expr, SqlError, UnaryOp, Value};
use std::collections::BTreeSet;

/// Conditions that a subquery is guarded by, at most. With fewer it runs more often, for the same value.
const GUARDS_MAX: usize = 64;
/// Parts of such a condition, at most: each subquery that it guards has a copy.
const GUARD_PARTS_MAX: usize = 1_024;

impl Binder<'_> {
    /// What is bound from now on is needed only where the condition is true.
    pub(super) fn guard(&mut self, condition: impl FnOnce() -> Scalar) {
        if self.has_queries && self.block().guards.len() < GUARDS_MAX {
            let condition = condition();
            // Computed twice, it could be true once and false once.
            let is_small = walk::size_within(&condition, GUARD_PARTS_MAX).is_some();
            if is_small && !walk::is_volatile(&condition) {
                self.block().guards.push(condition);
            }
        }
    }

    /// How many guards there are, for [`Binder::unguard`].
    pub(super) fn guards(&mut self) -> usize {
        self.block().guards.len()
    }

    /// Takes back guards, but for so many.
    pub(super) fn unguard(&mut self, count: usize) {
        self.block().guards.truncate(count);
    }

    /// All guards as one condition.
    pub(super) fn guarded_by(&mut self) -> Option<Scalar> {
        let mut all = walk::conjunction(self.block().guards.clone())?;
        self.adapt_years(&mut all);
        Some(all)
    }

    /// A condition: its terms are looked at one after the other, so that they need no guards.
    pub(super) fn terms(&mut self, id: ExprId) -> Result<Scalar, SqlError> {
        let tree::Expr::And(list) = *self.tree().expr(id) else { return self.bind(id) };
        self.enter()?;
        let mut terms = Vec::with_capacity(list.len());
        for term in self.tree().list(list) {
            terms.push(super::hex_beside(self.terms(*term)?, true));
        }
        self.depth -= 1;
        let all = super::balanced(terms, BinaryOp::And);
        all.ok_or_else(|| crate::error::internal("a condition was expected"))
    }
}

fn choose(condition: Scalar, (yes, no): (i64, i64)) -> Scalar {
    let literal = |number| Expr::Literal(Value::Int(number));
    let branches = vec![(condition, literal(yes))];
    Expr::Case { operand: None, branches, otherwise: Some(Box::new(literal(no))) }
}

/// False or unknown.
pub(super) fn not_true(condition: Scalar) -> Scalar {
    choose(condition, (0, 1))
}

/// True or unknown.
pub(super) fn not_false(condition: Scalar) -> Scalar {
    choose(Expr::Unary { op: UnaryOp::Not, arg: Box::new(condition) }, (0, 1))
}

/// NULL, or not.
pub(super) fn is_null(value: Scalar, negated: bool) -> Scalar {
    Expr::IsNull { arg: Box::new(value), negated }
}

/// Rows to which the columns of subqueries come when they are needed.
pub(super) struct Steps {
    /// The rows.
    pub(super) rel: Rel,
    left: Vec<Pending>,
}

impl Steps {
    /// Rows, and the subqueries that may be needed.
    pub(super) fn new(rel: Rel, left: Vec<Pending>) -> Self {
        Self { rel, left }
    }

    /// Adds these columns, as far as subqueries make them.
    pub(super) fn need(&mut self, mut columns: BTreeSet<ColumnId>) {
        let mut now = Vec::new();
        let mut later = Vec::new();
        // A subquery takes columns of those before it.
        for pending in std::mem::take(&mut self.left).into_iter().rev() {
            if pending.makes(&columns) {
                columns.extend(pending.needs());
                now.push(pending);
            } else {
                later.push(pending);
            }
        }
        now.reverse();
        later.reverse();
        self.left = later;
        self.change(|rel| Binder::apply(rel, now));
    }

    /// Leaves rows out. Terms without subqueries are looked at first, and then each term before the subqueries of the next one run.
    pub(super) fn filter(&mut self, condition: Option<Scalar>) {
        let terms = condition.map(walk::conjuncts).unwrap_or_default();
        let is_plain = |term: &Scalar| {
            let columns = walk::columns_of(term);
            !self.left.iter().any(|pending| pending.makes(&columns))
        };
        let (plain, rest): (Vec<_>, Vec<_>) = terms.into_iter().partition(is_plain);
        self.change(|rel| rel.filter(walk::conjunction(plain)));
        for term in rest {
            self.need(walk::columns_of(&term));
            self.change(|rel| rel.filter(Some(term)));
        }
    }

    pub(super) fn change(&mut self, change: impl FnOnce(Rel) -> Rel) {
        let before = std::mem::replace(&mut self.rel, Rel::one_row());
        self.rel = change(before);
    }
}

/// The rows that pass a condition.
pub(super) fn filtered(from: Rel, filter: Option<Scalar>, pending: Vec<Pending>) -> Rel {
    let mut steps = Steps::new(from, pending);
    steps.filter(filter);
    steps.rel
}
