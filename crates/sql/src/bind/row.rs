//! A condition over a row whose columns have names, such as that of SHOW.

use super::Binder;
use super::query::BoundQuery;
use crate::expr::External;
use lats_engine::ir::{ColumnId, Rel, Scalar, walk};
use lats_mysql_syntax::tree::ExprId;
use lats_values::{ColumnType, SqlError, TypeKind};

/// A condition over a row.
pub(crate) enum RowCondition {
    /// It is computed from the row, whose columns have the numbers of their places.
    Plain(Scalar),
    /// It has subqueries: a query gives its value, and takes the row's values as [`External::OfRow`].
    Query(BoundQuery),
}

impl Binder<'_> {
    /// Binds a condition over a row with these columns; nothing was bound before it.
    pub(crate) fn row_condition(
        &mut self,
        columns: &[(String, ColumnType)],
        id: ExprId,
    ) -> Result<RowCondition, SqlError> {
        self.bind_names(columns);
        let (condition, pending) = self.condition("where clause", id)?;
        if pending.is_empty() {
            return Ok(RowCondition::Plain(condition));
        }
        let mut needed = walk::columns_of(&condition);
        needed.extend(pending.iter().flat_map(super::scope::Pending::needs));
        let of_row = |column: &ColumnId| (column.0 as usize) < columns.len();
        let mut rel = Rel::one_row();
        let taken: Vec<ColumnId> = needed.into_iter().filter(of_row).collect();
        if !taken.is_empty() {
            let items = taken.iter().map(|id| (*id, self.external(External::OfRow(id.0))));
            rel = Rel::Extend { items: items.collect(), input: Box::new(rel) };
        }
        let rel = Self::apply(rel, pending);
        let value = self.column("", ColumnType::new(TypeKind::BigInt), None);
        let rel = Rel::Extend { input: Box::new(rel), items: vec![(value, condition)] };
        let outputs = vec![(value, String::new())];
        Ok(RowCondition::Query(BoundQuery { rel, outputs, select: None }))
    }
}
