//! What names stand for, noted while a view's query is bound, so that its text can be kept with full names.

use super::Binder;
use super::scope::{Output, Scope};
use lats_engine::ir::ColumnId;
use lats_mysql_syntax::print::canonical::{Qualified, Resolved};
use lats_mysql_syntax::tree::{ExprId, TableId, TableName};
use lats_values::Expr;
use std::collections::BTreeSet;

/// The notes.
#[derive(Debug, Default)]
pub struct Notes {
    /// What names stand for.
    pub resolved: Resolved,
    /// Tables that have other names in the query, by database and such a name.
    aliased: BTreeSet<(String, String)>,
}

impl Binder<'_> {
    /// Notes from now on what names stand for.
    pub fn take_notes(&mut self) {
        self.notes = Some(Box::default());
    }

    pub(super) fn note_table(
        &mut self,
        table: &TableName,
        database: &str,
        name: &str,
        alias: &str,
    ) {
        let Some(notes) = &mut self.notes else { return };
        notes.resolved.tables.insert(table.span.start, database.to_owned());
        if name != alias {
            notes.aliased.insert((database.to_owned(), alias.to_owned()));
        }
    }

    /// Notes which column a name stands for, if it is a table's.
    pub(super) fn note_column(&mut self, id: ExprId, expr: &Expr) {
        if self.notes.is_none() {
            return;
        }
        let Expr::Column(number) = *expr else { return };
        let found = self.qualified(ColumnId(number));
        if let (Some(notes), Some(found)) = (&mut self.notes, found) {
            notes.resolved.columns.insert(id, found);
        }
    }

    pub(super) fn note_name(&mut self, id: ExprId, name: &str) {
        if let Some(notes) = &mut self.notes {
            notes.resolved.names.insert(id, name.to_owned());
        }
    }

    /// Notes the columns of a star.
    pub(super) fn note_star(&mut self, id: ExprId, outputs: &[Output]) {
        if self.notes.is_none() {
            return;
        }
        let columns = outputs.iter().filter_map(|output| match output.expr {
            Expr::Column(number) => Some((self.qualified(ColumnId(number))?, output.name.clone())),
            _ => None,
        });
        let columns = columns.collect();
        if let Some(notes) = &mut self.notes {
            notes.resolved.stars.insert(id, columns);
        }
    }

    /// Notes the columns of `TABLE t`.
    pub(super) fn note_whole(&mut self, table: &TableName, scope: &Scope) {
        let Some(notes) = &self.notes else { return };
        let columns = scope
            .visible
            .iter()
            .filter_map(|v| Some((within(notes, scope, v.id)?, v.name.clone())))
            .collect();
        if let Some(notes) = &mut self.notes {
            notes.resolved.whole.insert(table.span.start, columns);
        }
    }

    /// Notes the pairs of columns that USING or NATURAL compare.
    pub(super) fn note_join(&mut self, id: TableId, left: &Scope, right: &Scope, names: &[String]) {
        let Some(notes) = &self.notes else { return };
        let find = |scope: &Scope, name: &String| {
            let id = scope.find((None, None, name), "from clause").ok().flatten()?;
            within(notes, scope, id)
        };
        let pairs: Option<Vec<(Qualified, Qualified)>> =
            names.iter().map(|name| Some((find(left, name)?, find(right, name)?))).collect();
        if let (Some(notes), Some(pairs)) = (&mut self.notes, pairs) {
            notes.resolved.joins.insert(id, pairs);
        }
    }

    /// The table of a column, and its name there.
    fn qualified(&self, id: ColumnId) -> Option<Qualified> {
        let notes = self.notes.as_ref()?;
        self.blocks.iter().rev().find_map(|block| {
            let key = block.rollup.iter().position(|(column, _)| *column == id);
            let id = match key.and_then(|at| block.keys.get(at)) {
                Some(Expr::Column(number)) => ColumnId(*number),
                _ => id,
            };
            within(notes, &block.scope, id)
        })
    }
}

/// The column's table in a scope.
fn within(notes: &Notes, scope: &Scope, id: ColumnId) -> Option<Qualified> {
    scope.tables.iter().find_map(|table| {
        let (column, _) = table.columns.iter().find(|(_, column)| *column == id)?;
        let database = table.database.clone();
        let database =
            database.filter(|d| !notes.aliased.contains(&(d.clone(), table.alias.clone())));
        Some(Qualified { database, table: table.alias.clone(), column: column.clone() })
    })
}
