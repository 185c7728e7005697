//! Row values: `(a, b) = (1, 2)` and its like, as conditions over their parts.

use super::operators::{balanced, value_op};
use super::{Binder, operand_columns};
use crate::error;
use lats_mysql_syntax::tree::{self, ExprId};
use lats_values::{BinaryOp, Expr, SqlError, UnaryOp};

impl Binder<'_> {
    pub(super) fn is_row(&self, id: ExprId) -> bool {
        matches!(self.tree().expr(id), tree::Expr::Row { .. })
    }

    /// The parts of a row value, or the value itself.
    pub(super) fn bind_parts(&mut self, id: ExprId) -> Result<Vec<Expr>, SqlError> {
        match *self.tree().expr(id) {
            tree::Expr::Row { list, .. } => {
                let parts = self.tree().list(list);
                parts.iter().map(|part| self.bind(*part)).collect()
            }
            _ => Ok(vec![self.bind(id)?]),
        }
    }

    pub(super) fn row_comparison(
        &mut self,
        op: tree::BinaryOp,
        left: ExprId,
        right: ExprId,
    ) -> Result<Expr, SqlError> {
        let Some(op) = value_op(op).filter(|_| super::operators::is_comparison(op)) else {
            return Err(operand_columns(1));
        };
        if let Some(found) = self.row_beside_subquery(op, left, right)? {
            return Ok(found);
        }
        let (left, right) = (self.bind_parts(left)?, self.bind_parts(right)?);
        self.compare_rows(op, left, right)
    }

    /// A comparison of rows, part by part.
    pub(super) fn compare_rows(
        &self,
        op: BinaryOp,
        left: Vec<Expr>,
        right: Vec<Expr>,
    ) -> Result<Expr, SqlError> {
        if left.len() != right.len() {
            return Err(operand_columns(left.len()));
        }
        let each = |op: BinaryOp| {
            let pairs = left.iter().cloned().zip(right.iter().cloned());
            let terms = pairs.map(|(a, b)| self.combine(op, a, b)).collect();
            balanced(terms, BinaryOp::And).ok_or_else(|| operand_columns(1))
        };
        match op {
            BinaryOp::Equal | BinaryOp::NullSafeEqual => each(op),
            BinaryOp::NotEqual => {
                Ok(Expr::Unary { op: UnaryOp::Not, arg: Box::new(each(BinaryOp::Equal)?) })
            }
            _ => self.row_order(op, left, right),
        }
    }

    /// `(a, b) < (c, d)` is `a < c OR (a = c AND b < d)`.
    fn row_order(&self, op: BinaryOp, left: Vec<Expr>, right: Vec<Expr>) -> Result<Expr, SqlError> {
        let strict = match op {
            BinaryOp::LessOrEqual => BinaryOp::Less,
            BinaryOp::GreaterOrEqual => BinaryOp::Greater,
            other => other,
        };
        let mut found: Option<Expr> = None;
        for (a, b) in left.into_iter().zip(right).rev() {
            found = Some(match found {
                None => self.combine(op, a, b),
                Some(rest) => {
                    let less = self.combine(strict, a.clone(), b.clone());
                    let equal = self.combine(BinaryOp::Equal, a, b);
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
            terms.push(self.compare_rows(BinaryOp::Equal, left.clone(), right)?);
        }
        let any = balanced(terms, BinaryOp::Or).ok_or_else(|| error::internal("IN has a list"))?;
        Ok(if is_not { Expr::Unary { op: UnaryOp::Not, arg: Box::new(any) } } else { any })
    }
}
