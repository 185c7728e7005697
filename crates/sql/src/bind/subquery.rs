//! Subqueries in expressions: each becomes a column that an Apply under the expression makes.

use super::operators::value_op;
use super::scope::{Aggregates, Pending};
use super::{Binder, operand_columns};
use lats_engine::ir::{ApplyKind, ColumnId, Rel, Scalar};
use lats_mysql_syntax::tree::{self, ExprId, QueryId};
use lats_values::{BinaryOp, ColumnType, Expr, SqlError, TypeKind, UnaryOp};

impl Binder<'_> {
    /// `(SELECT …)` as a value.
    pub(super) fn scalar_subquery(&mut self, query: QueryId) -> Result<Expr, SqlError> {
        if let Some(known) = self.known_subquery(query) {
            return Ok(known);
        }
        let (rel, columns) = self.subquery(query)?;
        let [of] = *columns else { return Err(operand_columns(1)) };
        let of_type = ColumnType { nullable: true, ..self.types[of.0 as usize].clone() };
        let column = self.column("", of_type, None);
        self.pend(query, Pending { rel, kind: ApplyKind::Single { column, of }, on: None });
        Ok(column.scalar())
    }

    pub(super) fn exists(&mut self, query: QueryId) -> Result<Expr, SqlError> {
        if let Some(known) = self.known_subquery(query) {
            return Ok(known);
        }
        let (rel, _) = self.subquery(query)?;
        Ok(self.mark(query, rel, None, false))
    }

    /// `value IN (SELECT …)`.
    pub(super) fn in_query(
        &mut self,
        value: ExprId,
        is_not: bool,
        query: QueryId,
    ) -> Result<Expr, SqlError> {
        let left = self.bind_parts(value)?;
        let found = self.any_of(BinaryOp::Equal, left, query)?;
        Ok(if is_not { Expr::Unary { op: UnaryOp::Not, arg: Box::new(found) } } else { found })
    }

    /// `value op ANY (SELECT …)`; ALL is NOT ANY of the opposite.
    pub(super) fn quantified(
        &mut self,
        op: tree::BinaryOp,
        left: ExprId,
        is_all: bool,
        query: QueryId,
    ) -> Result<Expr, SqlError> {
        let op = value_op(op).ok_or_else(|| operand_columns(1))?;
        let left = self.bind_parts(left)?;
        // Rows are compared with = ANY and <> ALL only.
        let for_rows =
            matches!((op, is_all), (BinaryOp::Equal, false) | (BinaryOp::NotEqual, true));
        if left.len() > 1 && !for_rows {
            return Err(operand_columns(1));
        }
        if !is_all {
            return self.any_of(op, left, query);
        }
        let opposite = match op {
            BinaryOp::Equal => BinaryOp::NotEqual,
            BinaryOp::NotEqual => BinaryOp::Equal,
            BinaryOp::Less => BinaryOp::GreaterOrEqual,
            BinaryOp::LessOrEqual => BinaryOp::Greater,
            BinaryOp::Greater => BinaryOp::LessOrEqual,
            BinaryOp::GreaterOrEqual => BinaryOp::Less,
            other => other,
        };
        let found = self.any_of(opposite, left, query)?;
        Ok(Expr::Unary { op: UnaryOp::Not, arg: Box::new(found) })
    }

    fn any_of(&mut self, op: BinaryOp, left: Vec<Expr>, query: QueryId) -> Result<Expr, SqlError> {
        if let Some(known) = self.known_subquery(query) {
            return Ok(known);
        }
        if self.tree().query(query).limit.is_some() {
            return Err(crate::error::not_supported("LIMIT & IN/ALL/ANY/SOME subquery"));
        }
        let (rel, columns) = self.subquery(query)?;
        if columns.len() != left.len() {
            return Err(operand_columns(left.len()));
        }
        let right = columns.iter().map(|column| column.scalar()).collect();
        let on = self.compare_rows(op, left, right)?;
        Ok(self.mark(query, rel, Some(on), true))
    }

    fn mark(&mut self, query: QueryId, rel: Rel, on: Option<Scalar>, nullable: bool) -> Expr {
        let of_type = ColumnType::new(TypeKind::BigInt);
        let of_type = if nullable { of_type } else { of_type.not_null() };
        let column = self.column("", of_type, None);
        self.pend(query, Pending { rel, kind: ApplyKind::Mark(column), on });
        column.scalar()
    }

    /// `(a, b) = (SELECT …)`: the row of the subquery, of which there is at most one.
    pub(super) fn row_beside_subquery(
        &mut self,
        op: BinaryOp,
        left: ExprId,
        right: ExprId,
    ) -> Result<Option<Expr>, SqlError> {
        let query = |id: ExprId| match *self.tree().expr(id) {
            tree::Expr::Subquery(query) => Some(query),
            _ => None,
        };
        let (parts, query, turned) = match (query(left), query(right)) {
            (None, Some(query)) => (left, query, false),
            (Some(query), None) => (right, query, true),
            _ => return Ok(None),
        };
        let parts = self.bind_parts(parts)?;
        if let Some(known) = self.known_subquery(query) {
            return Ok(Some(known));
        }
        let (rel, columns) = self.subquery(query)?;
        if columns.len() != parts.len() {
            return Err(operand_columns(parts.len()));
        }
        let row: Vec<Expr> = columns.iter().map(|column| column.scalar()).collect();
        let on = match turned {
            false => self.compare_rows(op, parts, row)?,
            true => self.compare_rows(op, row, parts)?,
        };
        // Without a row the comparison is unknown, not false.
        let value = self.column("", ColumnType::new(TypeKind::BigInt), None);
        let rel = Rel::Extend {
            input: Box::new(Rel::MaxOneRow { input: Box::new(rel) }),
            items: vec![(value, on)],
        };
        let column = self.column("", ColumnType::new(TypeKind::BigInt), None);
        self.pend(query, Pending { rel, kind: ApplyKind::Single { column, of: value }, on: None });
        Ok(Some(column.scalar()))
    }

    /// Binds a subquery; its rows and its columns in their order.
    fn subquery(&mut self, query: QueryId) -> Result<(Rel, Vec<ColumnId>), SqlError> {
        self.enter()?;
        let clause = std::mem::replace(&mut self.clause, "field list");
        let bound = self.bind_query(query, 0);
        self.clause = clause;
        self.depth -= 1;
        let bound = bound?;
        let columns = bound.columns();
        Ok((bound.rel, columns))
    }

    /// Keeps a subquery until its place under the expression is known.
    fn pend(&mut self, query: QueryId, pending: Pending) {
        self.block().subqueries.push((query, pending.clone()));
        self.place(pending);
    }

    fn place(&mut self, pending: Pending) {
        let block = self.block();
        match block.aggregates {
            // Outside of an aggregate function, where groups may be made before.
            Aggregates::Allowed => block.above.push(pending),
            // In a condition or a key, or within an aggregate function.
            Aggregates::Inside | Aggregates::Refused => block.below.push(pending),
        }
    }

    /// The column of a subquery that was bound before.
    fn known_subquery(&mut self, query: QueryId) -> Option<Expr> {
        let block = self.block();
        let (_, pending) = block.subqueries.iter().find(|(known, _)| *known == query)?;
        let pending = pending.clone();
        let column = pending.column()?;
        if !block.below.contains(&pending) && !block.above.contains(&pending) {
            self.place(pending);
        }
        Some(column.scalar())
    }

    /// The rows with the columns of these subqueries.
    pub(crate) fn apply(mut rel: Rel, pending: Vec<Pending>) -> Rel {
        for Pending { rel: right, kind, on } in pending {
            rel = Rel::Apply { kind, left: Box::new(rel), right: Box::new(right), on };
        }
        rel
    }
}
