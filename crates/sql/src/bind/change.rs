//! The query that finds the rows of an UPDATE or DELETE.

use super::lazy::filtered;
use super::query::BoundQuery;
use super::{Binder, Origin};
use crate::error;
use crate::plan::check::Check;
use lats_engine::ir::{ColumnId, Rel, SortKey, SourceId, walk};
use lats_mysql_syntax::tree::{
    self, Assignment, ExprId, OrderItem, TableId, TableName, Text, With,
};
use lats_values::{Expr, SqlError};

/// The clauses of the statement.
#[derive(Clone, Copy)]
pub struct Change<'t> {
    /// WITH.
    pub with: Option<&'t With>,
    /// The tables.
    pub tables: &'t [TableId],
    /// WHERE.
    pub filter: Option<ExprId>,
    /// SET.
    pub assignments: &'t [Assignment],
    /// ORDER BY.
    pub order: &'t [OrderItem],
    /// LIMIT.
    pub limit: Option<&'t tree::Limit>,
}

/// A table that is changed.
pub struct FoundTarget {
    /// Which.
    pub source: SourceId,
    /// The place of its key in the query's rows.
    pub first: usize,
    /// Columns, their new values, and the places of the values in the query's rows.
    pub assignments: Vec<(u16, Expr, usize)>,
    /// A value with a subquery reads a column that is assigned before it.
    pub reads_new_values: bool,
    /// What new rows must meet, and the places of values that this needs in the query's rows.
    pub check: Option<(Check, Vec<usize>)>,
}

/// The query and what it is for.
pub struct Found {
    /// The query.
    pub query: BoundQuery,
    /// The tables.
    pub targets: Vec<FoundTarget>,
}

type Targets<'a, 'b> = &'b dyn Fn(&mut Binder<'a>) -> Result<Vec<SourceId>, SqlError>;

impl<'a> Binder<'a> {
    /// Binds a statement over its tables; `targets` says which of them are changed.
    pub fn bind_change(
        &mut self,
        change: &Change<'_>,
        targets: impl Fn(&mut Self) -> Result<Vec<SourceId>, SqlError>,
    ) -> Result<Found, SqlError> {
        self.bind_with(change.with, |binder| {
            let from = binder.tables_of(change.tables)?;
            binder.changed(change, from, &targets)
        })
    }

    /// The same over one table.
    pub fn bind_change_of(
        &mut self,
        change: &Change<'_>,
        (table, partitions, alias): (&TableName, &[Text], Text),
        targets: impl Fn(&mut Self) -> Result<Vec<SourceId>, SqlError>,
    ) -> Result<Found, SqlError> {
        self.bind_with(change.with, |binder| {
            let (from, scope) = binder.named_table(table, partitions, alias, &[])?;
            binder.block().scope = scope;
            binder.changed(change, from, &targets)
        })
    }

    fn bind_with(
        &mut self,
        with: Option<&With>,
        work: impl FnOnce(&mut Self) -> Result<Found, SqlError>,
    ) -> Result<Found, SqlError> {
        if let Some(with) = with {
            self.with(with, 0)?;
        }
        work(self)
    }

    fn changed(
        &mut self,
        change: &Change<'_>,
        from: Rel,
        targets: Targets<'a, '_>,
    ) -> Result<Found, SqlError> {
        let targets = targets(self)?;
        let (filter, pending) = match change.filter {
            Some(id) => {
                let (bound, pending) = self.condition("where clause", id)?;
                (Some(bound), pending)
            }
            None => (None, Vec::new()),
        };
        let mut rel = filtered(from, filter, pending);
        let mut outputs: Vec<(ColumnId, String)> = Vec::new();
        let mut items = Vec::new();
        let mut found = Vec::with_capacity(targets.len());
        let mut assigned = Vec::with_capacity(change.assignments.len());
        for assignment in change.assignments {
            let (source, position) = self.assigned(assignment.column)?;
            assigned.push((source, position, self.new_value(source, position, assignment.value)?));
        }
        for source in targets {
            let first = outputs.len();
            let of = self.source(source);
            let keys: Vec<u16> = of.table.def.primary_key.clone();
            let base = of.first;
            outputs.extend(keys.iter().map(|at| (ColumnId(base + u32::from(*at)), String::new())));
            let mut assignments = Vec::new();
            let (mut before, mut reads_new_values) = (Vec::new(), false);
            for (_, position, value) in assigned.iter().filter(|(of, ..)| *of == source) {
                let of_type = self.type_of(value);
                let column = self.column("", of_type, None);
                items.push((column, value.clone()));
                assignments.push((*position, value.clone(), outputs.len()));
                reads_new_values |= self.reads_by_subquery(value, &before);
                before.push(ColumnId(base + u32::from(*position)));
                outputs.push((column, String::new()));
            }
            let check = self.check_of(source, !change.assignments.is_empty(), &mut outputs)?;
            found.push(FoundTarget { source, first, assignments, reads_new_values, check });
        }
        let keys = self.order_keys(change.order)?;
        let block = self.block();
        let mut pending = std::mem::take(&mut block.below);
        pending.append(&mut block.above);
        rel = Self::apply(rel, pending);
        let (early, late) = super::variables::split(items, &[]);
        if !early.is_empty() {
            rel = Rel::Extend { input: Box::new(rel), items: early };
        }
        rel = self.ordered(rel, keys, change.limit)?;
        if !late.is_empty() {
            rel = Rel::Extend { input: Box::new(rel), items: late };
        }
        Ok(Found { query: BoundQuery { rel, outputs, select: None }, targets: found })
    }

    /// What new rows of a table must meet, if it is changed through a view.
    fn check_of(
        &self,
        source: SourceId,
        updates: bool,
        outputs: &mut Vec<(ColumnId, String)>,
    ) -> Result<Option<(Check, Vec<usize>)>, SqlError> {
        let Some(view) = self.view_of(source).filter(|_| updates) else { return Ok(None) };
        let bases = view.merged.iter().flat_map(|merged| &merged.bases);
        let number = bases.into_iter().position(|base| *base == source).unwrap_or(0);
        let Some(check) = Check::of(&self.context, &view.place, number)? else { return Ok(None) };
        let mut places = Vec::with_capacity(check.others.len());
        for column in &check.others {
            places.push(outputs.len());
            outputs.push((ColumnId(view.first_column + column), String::new()));
        }
        Ok(Some((check, places)))
    }

    /// True if a value has a subquery or a function that data nodes do not have, and reads one of these columns, there or beside it.
    fn reads_by_subquery(&mut self, value: &Expr, columns: &[ColumnId]) -> bool {
        let used = walk::columns_of(value);
        let block = self.block();
        let pending = block.below.iter().chain(&block.above);
        let own: Vec<_> = pending.filter(|p| p.makes(&used)).collect();
        let within = own.iter().any(|p| {
            let free = p.needs();
            columns.iter().any(|column| free.contains(column))
        });
        (!own.is_empty() || walk::is_local(value))
            && (within || columns.iter().any(|column| used.contains(column)))
    }

    /// Rows of expressions in which there are subqueries of this block.
    ///
    /// # Errors
    /// 1235 for values that name columns.
    pub fn rows_of(&mut self, rows: Vec<Vec<Expr>>) -> Result<BoundQuery, SqlError> {
        let block = self.block();
        let mut pending = std::mem::take(&mut block.below);
        pending.append(&mut block.above);
        let made: Vec<ColumnId> = pending.iter().flat_map(super::scope::Pending::columns).collect();
        let mut all = Vec::with_capacity(rows.len());
        for row in rows {
            let mut needed = std::collections::BTreeSet::new();
            for value in &row {
                walk::add_columns(value, &mut needed);
            }
            if needed.iter().any(|column| !made.contains(column)) {
                return Err(error::not_supported("names of columns beside subqueries in VALUES"));
            }
            let own = pending.iter();
            let own = own.filter(|p| p.makes(&needed));
            let rel = Self::apply(Rel::one_row(), own.cloned().collect());
            let mut items = Vec::with_capacity(row.len());
            for value in row {
                let of_type = self.type_of(&value);
                items.push((self.column("", of_type, None), value));
            }
            let outputs = items.iter().map(|(column, _)| (*column, String::new())).collect();
            let rel = Rel::Extend { input: Box::new(rel), items };
            let next = BoundQuery { rel, outputs, select: None };
            all.push(next);
        }
        self.beneath(all)
    }

    fn ordered(
        &mut self,
        mut rel: Rel,
        keys: Vec<SortKey>,
        limit: Option<&tree::Limit>,
    ) -> Result<Rel, SqlError> {
        if !keys.is_empty() {
            rel = Rel::Sort { input: Box::new(rel), keys };
        }
        if let Some(limit) = limit {
            let (count, offset) = self.limit(limit)?;
            rel = Rel::Limit { input: Box::new(rel), count, offset };
        }
        Ok(rel)
    }

    /// The column that is assigned: its table and its position there.
    ///
    /// # Errors
    /// 1288 for a column of a derived table, 1054.
    pub fn assigned(&mut self, column: ExprId) -> Result<(SourceId, u16), SqlError> {
        let Expr::Column(number) = self.bind_in("field list", column)? else {
            return Err(error::internal("a column was expected"));
        };
        if let Some(view) = self.view_with(ColumnId(number)) {
            return self.column_of_view(view, ColumnId(number));
        }
        let origin: Option<Origin> = self.columns.get(number as usize).and_then(|c| c.origin);
        match origin {
            Some(origin) if !self.source(origin.source).is_inner => {
                Ok((origin.source, origin.position))
            }
            _ => {
                let shown = match self.tree().expr(column) {
                    tree::Expr::Column { table, .. } if table.is_some() => self.name(*table)?,
                    _ => "derived",
                };
                let text = format!("The target table {shown} of the UPDATE is not updatable");
                Err(error::make(1288, "HY000", &text))
            }
        }
    }

    fn new_value(
        &mut self,
        source: SourceId,
        position: u16,
        value: ExprId,
    ) -> Result<Expr, SqlError> {
        let table = std::sync::Arc::clone(&self.source(source).table);
        crate::plan::write::update_value(&table, position, value, self)
    }
}
