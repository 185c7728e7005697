//! Subqueries in expressions: each becomes a column that an Apply under the expression makes.

use super::operators::value_op;
use super::rows::Parts;
use super::scope::{Aggregates, Pending};
use super::{Binder, operand_columns};
use lats_base::planted::{QueryBug, errs};
use lats_engine::ir::{ApplyKind, ColumnId, Rel, Scalar};
use lats_mysql_syntax::tree::{self, ExprId, QueryId};
use lats_values::{BinaryOp, ColumnType, Expr, SqlError, TypeKind, UnaryOp};

impl Binder<'_> {
    /// `(SELECT …)` as a value.
    pub(super) fn scalar_subquery(&mut self, query: QueryId) -> Result<Expr, SqlError> {
        match self.row_subquery(query)? {
            Parts::One(value) => Ok(value),
            Parts::Row(_) => Err(operand_columns(1)),
        }
    }

    /// `(SELECT …)` as a value, or as a row if it has more columns.
    pub(super) fn row_subquery(&mut self, query: QueryId) -> Result<Parts, SqlError> {
        let made = match self.known_subquery(query) {
            Some(known) => known,
            None => {
                let (mut rel, of) = self.subquery(query)?;
                let mut columns = Vec::with_capacity(of.len());
                for of in of {
                    let of_type = self.types[of.0 as usize].clone();
                    let of = self.with_all_digits(&mut rel, of);
                    let of_type = ColumnType { nullable: true, ..of_type };
                    let mut look = self.look_of(&of.scalar());
                    look.declared = None;
                    let column = self.column("", of_type, None);
                    self.set_look(column, look);
                    let strength = self.strength_of(&of.scalar());
                    self.set_strength(column, strength);
                    columns.push((column, of));
                }
                let made = columns.iter().map(|(column, _)| *column).collect();
                let kind = ApplyKind::Single { columns };
                self.pend(query, Pending { rel, kind, on: None, when: None })?;
                made
            }
        };
        Ok(match *made {
            [only] => Parts::One(only.scalar()),
            _ => Parts::Row(made.iter().map(|column| Parts::One(column.scalar())).collect()),
        })
    }

    /// A quotient as the value of a subquery keeps the digits that it was computed with, and shows those of its type.
    /// Where it cannot be taken from where it is made, it has groups of nine.
    fn with_all_digits(&mut self, rel: &mut Rel, of: ColumnId) -> ColumnId {
        if !self.quotients.contains(&of) {
            return of;
        }
        if let Rel::Narrow { input, columns } = rel
            && columns.as_slice() == [of]
            && let Some(quotient) = rounded_from(input, of)
        {
            *columns = vec![quotient];
            return quotient;
        }
        self.keep_digits(of);
        of
    }

    fn keep_digits(&mut self, of: ColumnId) {
        if let TypeKind::Decimal { precision, scale } = &mut self.types[of.0 as usize].kind {
            let more = (scale.div_ceil(9) * 9).min(30) - (*scale).min(30);
            *scale += more;
            *precision = (*precision + more).min(65);
        }
    }

    /// False if the query has one column for sure.
    pub(super) fn may_be_row(&self, query: QueryId) -> bool {
        let tree = self.tree();
        let mut body = tree.query(query).body;
        loop {
            body = match tree.body(body) {
                tree::Body::Select(select) => {
                    let [item] = select.items.as_slice() else { return true };
                    return matches!(tree.expr(item.value), tree::Expr::Star { .. });
                }
                tree::Body::Set { left, .. } => *left,
                tree::Body::Nested(query) => tree.query(*query).body,
                tree::Body::Values(rows) => return rows.first().is_none_or(|row| row.len() != 1),
                tree::Body::Table(_) => return true,
            };
        }
    }

    pub(super) fn exists(&mut self, query: QueryId) -> Result<Expr, SqlError> {
        if let Some(known) = self.known_mark(query) {
            return Ok(known);
        }
        self.drop_groups(query);
        let (rel, _) = self.subquery(query)?;
        self.mark(query, rel, None, false)
    }

    /// `value IN (SELECT …)`.
    pub(super) fn in_query(
        &mut self,
        value: ExprId,
        is_not: bool,
        query: QueryId,
    ) -> Result<Expr, SqlError> {
        let left = self.bind_parts(value)?.flat()?;
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
        let left = self.bind_parts(left)?.flat()?;
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
            BinaryOp::Less if errs(QueryBug::AllWithWrongOpposite) => BinaryOp::Greater,
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
        if let Some(known) = self.known_mark(query) {
            return Ok(known);
        }
        if self.tree().query(query).limit.is_some() {
            return Err(crate::error::not_supported("LIMIT & IN/ALL/ANY/SOME subquery"));
        }
        self.drop_groups(query);
        let (rel, columns) = self.subquery(query)?;
        if columns.len() != left.len() {
            return Err(operand_columns(left.len()));
        }
        let right = columns.iter().map(|column| Parts::One(column.scalar())).collect();
        let left = left.into_iter().map(Parts::One).collect();
        let on = self.compare_rows(op, left, right)?;
        self.mark(query, rel, Some(on), true)
    }

    fn mark(
        &mut self,
        query: QueryId,
        rel: Rel,
        on: Option<Scalar>,
        nullable: bool,
    ) -> Result<Expr, SqlError> {
        let of_type = ColumnType::new(TypeKind::BigInt);
        let of_type = if nullable { of_type } else { of_type.not_null() };
        let column = self.column("", of_type, None);
        self.pend(query, Pending { rel, kind: ApplyKind::Mark(column), on, when: None })?;
        Ok(column.scalar())
    }

    /// Notes that it only counts whether the query has a row, of some kind.
    fn drop_groups(&mut self, query: QueryId) {
        let tree = self.tree();
        let found = tree.query(query);
        if found.with.is_none() && matches!(tree.body(found.body), tree::Body::Select(_)) {
            self.groups_dropped.insert(self.next_block);
        }
    }

    /// Binds a subquery; its rows and its columns in their order.
    fn subquery(&mut self, query: QueryId) -> Result<(Rel, Vec<ColumnId>), SqlError> {
        self.enter()?;
        let clause = std::mem::replace(&mut self.clause, "field list");
        let before = self.variables_bound();
        let bound = self.bind_query(query, 0);
        self.clause = clause;
        self.depth -= 1;
        let bound = bound?;
        self.check_variables(&bound.rel, before)?;
        let columns = bound.columns();
        Ok((bound.rel, columns))
    }

    /// Keeps a subquery until its place under the expression is known.
    fn pend(&mut self, query: QueryId, mut pending: Pending) -> Result<(), SqlError> {
        self.check_compared(pending.on.as_ref())?;
        pending.when = self.guarded_by();
        self.block().subqueries.push((query, pending.clone()));
        let last = self.blocks.len() - 1;
        self.place(last, pending);
        Ok(())
    }

    fn place(&mut self, at: usize, pending: Pending) {
        let block = &mut self.blocks[at];
        match block.aggregates {
            // Outside of an aggregate function, where groups may be made before.
            Aggregates::Allowed => block.above.push(pending),
            // In a condition or a key, or within an aggregate function.
            Aggregates::Inside | Aggregates::Refused => block.below.push(pending),
        }
    }

    /// The columns of a subquery that was bound before.
    fn known_subquery(&mut self, query: QueryId) -> Option<Vec<ColumnId>> {
        let last = self.blocks.len() - 1;
        let block = self.block();
        let (_, pending) = block.subqueries.iter().find(|(known, _)| *known == query)?;
        let pending = pending.clone();
        let columns = pending.columns();
        for needed in block.with_values(pending) {
            if !self.blocks[last].is_placed(&needed) {
                self.place(last, needed);
            }
        }
        Some(columns)
    }

    fn known_mark(&mut self, query: QueryId) -> Option<Expr> {
        let columns = self.known_subquery(query)?;
        columns.first().map(|column| column.scalar())
    }

    /// A value of the select list of an outer block, for a subquery that names it: it is a column of that block's rows.
    pub(super) fn named_value(&mut self, at: usize, name: &str, value: Expr) -> Expr {
        if matches!(value, Expr::Column(_)) {
            return value;
        }
        let known = self.blocks[at].values.iter().find(|(known, _)| *known == value).cloned();
        if let Some((_, pending)) = known {
            let column = pending.columns()[0];
            if !self.blocks[at].is_placed(&pending) {
                self.place(at, pending);
            }
            return column.scalar();
        }
        let of_type = self.type_of(&value);
        let of = self.column(name, of_type.clone(), None);
        let column = self.column(name, ColumnType { nullable: true, ..of_type }, None);
        for made in [of, column] {
            self.columns[made.0 as usize].block = self.blocks[at].number;
        }
        let rel = Rel::Values { columns: vec![of], rows: vec![vec![value.clone()]] };
        let kind = ApplyKind::Single { columns: vec![(column, of)] };
        let pending = Pending { rel, kind, on: None, when: None };
        self.blocks[at].values.push((value, pending.clone()));
        self.place(at, pending);
        column.scalar()
    }

    /// The rows with the columns of these subqueries.
    pub(crate) fn apply(mut rel: Rel, pending: Vec<Pending>) -> Rel {
        for Pending { rel: right, kind, on, when } in pending {
            rel = Rel::Apply { kind, left: Box::new(rel), right: Box::new(right), on, when };
        }
        rel
    }
}

/// The column that this one is a copy of, which has been rounded to the digits of its type.
fn rounded_from(rel: &Rel, of: ColumnId) -> Option<ColumnId> {
    match rel {
        Rel::Limit { input, .. } | Rel::Sort { input, .. } => rounded_from(input, of),
        Rel::Extend { items, input } => {
            let (_, value) = items.iter().find(|(column, _)| *column == of)?;
            match value {
                // A column of an outer query is no column of the rows here.
                Expr::Column(number) => {
                    Some(ColumnId(*number)).filter(|from| input.columns().contains(from))
                }
                _ => None,
            }
        }
        _ => None,
    }
}
