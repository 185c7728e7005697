//! Row values: `(a, b) = (1, 2)` and its like, as conditions over their parts.

use super::operators::{balanced, value_op};
use super::{Binder, operand_columns};
use crate::error;
use lats_mysql_syntax::tree::{self, ExprId};
use lats_values::{BinaryOp, Expr, SqlError, UnaryOp};

/// A value, or a row of values and rows.
#[derive(Clone)]
pub(super) enum Parts {
    /// A value.
    One(Expr),
    /// A row.
    Row(Vec<Parts>),
}

impl Parts {
    fn width(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Row(parts) => parts.len(),
        }
    }

    /// A value, or the values of a row without rows in it.
    ///
    /// # Errors
    /// 1241.
    pub(super) fn flat(self) -> Result<Vec<Expr>, SqlError> {
        let one = |part| match part {
            Self::One(value) => Ok(value),
            Self::Row(_) => Err(operand_columns(1)),
        };
        match self {
            Self::One(value) => Ok(vec![value]),
            Self::Row(parts) => parts.into_iter().map(one).collect(),
        }
    }
}

impl Binder<'_> {
    /// True for what is a row, or a subquery that may be one.
    pub(super) fn is_row(&self, id: ExprId) -> bool {
        match *self.tree().expr(id) {
            tree::Expr::Row { .. } => true,
            tree::Expr::Subquery(query) => self.may_be_row(query),
            _ => false,
        }
    }

    /// The parts of a row value, or the value itself.
    pub(super) fn bind_parts(&mut self, id: ExprId) -> Result<Parts, SqlError> {
        self.enter()?;
        let bound = match *self.tree().expr(id) {
            tree::Expr::Row { list, .. } => {
                let parts = self.tree().list(list);
                let parts = parts.iter().map(|part| self.bind_parts(*part));
                parts.collect::<Result<_, _>>().map(Parts::Row)
            }
            tree::Expr::Subquery(query) => self.row_subquery(query),
            _ => self.bind(id).map(Parts::One),
        };
        self.depth -= 1;
        bound
    }

    pub(super) fn row_comparison(
        &mut self,
        op: tree::BinaryOp,
        left: ExprId,
        right: ExprId,
    ) -> Result<Expr, SqlError> {
        let op = value_op(op).ok_or_else(|| operand_columns(1))?;
        let (left, right) = (self.bind_parts(left)?, self.bind_parts(right)?);
        self.compare(op, left, right)
    }

    /// A comparison of two values or two rows.
    fn compare(&self, op: BinaryOp, left: Parts, right: Parts) -> Result<Expr, SqlError> {
        match (left, right) {
            (Parts::One(left), Parts::One(right)) => {
                self.check_collations(op, &left, &right)?;
                Ok(self.combine(op, left, right))
            }
            (Parts::Row(left), Parts::Row(right)) => self.compare_rows(op, left, right),
            (left, _) => Err(operand_columns(left.width())),
        }
    }

    /// A comparison of rows, part by part.
    pub(super) fn compare_rows(
        &self,
        op: BinaryOp,
        left: Vec<Parts>,
        right: Vec<Parts>,
    ) -> Result<Expr, SqlError> {
        if left.len() != right.len() {
            return Err(operand_columns(left.len()));
        }
        match op {
            BinaryOp::Equal | BinaryOp::NullSafeEqual => self.each(op, left, right),
            BinaryOp::NotEqual => {
                let equal = self.each(BinaryOp::Equal, left, right)?;
                Ok(Expr::Unary { op: UnaryOp::Not, arg: Box::new(equal) })
            }
            _ => self.row_order(op, left, right),
        }
    }

    fn each(&self, op: BinaryOp, left: Vec<Parts>, right: Vec<Parts>) -> Result<Expr, SqlError> {
        let pairs = left.into_iter().zip(right);
        let terms = pairs.map(|(a, b)| self.compare(op, a, b)).collect::<Result<_, _>>()?;
        balanced(terms, BinaryOp::And).ok_or_else(|| operand_columns(1))
    }

    /// `(a, b) < (c, d)` is `a < c OR (a = c AND b < d)`.
    fn row_order(
        &self,
        op: BinaryOp,
        left: Vec<Parts>,
        right: Vec<Parts>,
    ) -> Result<Expr, SqlError> {
        let strict = match op {
            BinaryOp::LessOrEqual => BinaryOp::Less,
            BinaryOp::GreaterOrEqual => BinaryOp::Greater,
            other => other,
        };
        let mut found: Option<Expr> = None;
        for (a, b) in left.into_iter().zip(right).rev() {
            found = Some(match found {
                None => self.compare(op, a, b)?,
                Some(rest) => {
                    let less = self.compare(strict, a.clone(), b.clone())?;
                    let equal = self.compare(BinaryOp::Equal, a, b)?;
                    let (and, or) = (BinaryOp::And, BinaryOp::Or);
                    let later =
                        Expr::Binary { op: and, left: Box::new(equal), right: Box::new(rest) };
                    Expr::Binary { op: or, left: Box::new(less), right: Box::new(later) }
                }
            });
        }
        found.ok_or_else(|| error::internal("a row has parts"))
    }

    /// `(a, b) IN ((1, 2), …)`.
    pub(super) fn row_in_list(
        &mut self,
        value: ExprId,
        is_not: bool,
        items: &[ExprId],
    ) -> Result<Expr, SqlError> {
        let left = self.bind_parts(value)?;
        let mut terms = Vec::with_capacity(items.len());
        for item in items {
            let right = self.bind_parts(*item)?;
            terms.push(self.compare(BinaryOp::Equal, left.clone(), right)?);
        }
        let any = balanced(terms, BinaryOp::Or).ok_or_else(|| error::internal("IN has a list"))?;
        Ok(if is_not { Expr::Unary { op: UnaryOp::Not, arg: Box::new(any) } } else { any })
    }
}
