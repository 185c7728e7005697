//! Changes through views: which table a view's rows and columns are those of.

use super::Binder;
use super::scope::{Pending, same_name};
use super::view::ViewUse;
use crate::error;
use lats_catalog::CheckOption;
use lats_engine::ir::{ColumnId, Scalar, SourceId, walk};
use lats_values::{Expr, SqlError};
use std::cell::Cell;
use std::collections::BTreeSet;

/// Parts that the values of views' columns may have together, in the place of their names.
const EXPANDED_MAX: usize = 4_096;

/// 1288.
pub fn not_updatable(alias: &str, verb: &str) -> SqlError {
    let text = format!("The target table {alias} of the {verb} is not updatable");
    error::make(1288, "HY000", &text)
}

/// 1348.
pub fn column_not_updatable(name: &str) -> SqlError {
    error::make(1348, "HY000", &format!("Column '{name}' is not updatable"))
}

/// 1393.
pub fn several_tables(view: &ViewUse) -> SqlError {
    let (database, name) = &view.place;
    let text =
        format!("Can not modify more than one base table through a join view '{database}.{name}'");
    error::make(1393, "HY000", &text)
}

/// 1395.
pub fn delete_from_join(view: &ViewUse) -> SqlError {
    let (database, name) = &view.place;
    error::make(1395, "HY000", &format!("Can not delete from join view '{database}.{name}'"))
}

impl Binder<'_> {
    /// The views that the statement itself names, not in subqueries.
    fn top_views(&self) -> impl Iterator<Item = &ViewUse> {
        self.views.iter().filter(|view| !view.is_inner)
    }

    /// The view whose table this is, if the statement names it.
    pub fn view_of(&self, source: SourceId) -> Option<&ViewUse> {
        self.top_views().find(|view| view.sources.contains(&(source.0 as usize)))
    }

    /// The view with this name in the statement.
    pub fn view_named(&self, database: Option<&str>, alias: &str) -> Option<&ViewUse> {
        let fits = |view: &&ViewUse| {
            view.alias == alias && database.is_none_or(|database| view.place.0 == database)
        };
        self.top_views().find(fits)
    }

    /// The view that has this column, if the statement names it.
    pub fn view_with(&self, column: ColumnId) -> Option<&ViewUse> {
        self.top_views().find(|view| view.columns.iter().any(|(_, id)| *id == column))
    }

    /// The table's column that a view's column is.
    ///
    /// # Errors
    /// 1288, 1348.
    pub fn column_of_view(
        &self,
        view: &ViewUse,
        column: ColumnId,
    ) -> Result<(SourceId, u16), SqlError> {
        let refused = || not_updatable(&view.alias, "UPDATE");
        let merged = view.merged.as_ref().filter(|_| view.is_updatable()).ok_or_else(refused)?;
        let origin = self.columns.get(column.0 as usize).and_then(|column| column.origin);
        match origin {
            Some(origin) if merged.bases.contains(&origin.source) => {
                Ok((origin.source, origin.position))
            }
            None if self.is_computed(view, column) => {
                let name = view.columns.iter().find(|(_, id)| *id == column);
                Err(column_not_updatable(name.map_or("", |(name, _)| name)))
            }
            _ => Err(refused()),
        }
    }

    /// True if a view's column is computed by it, or by one beneath it.
    fn is_computed(&self, view: &ViewUse, column: ColumnId) -> bool {
        let has = |view: &ViewUse| view.columns.iter().any(|(_, id)| *id == column);
        let below = view.children.iter().filter_map(|at| self.views.get(*at));
        match below.into_iter().find(|child| has(child)) {
            Some(child) => child.merged.is_some() && self.is_computed(child, column),
            None => view.merged.as_ref().is_some_and(|merged| {
                let mut both = view.columns.iter().zip(&merged.values);
                both.any(|((_, id), value)| {
                    *id == column && (*value != id.scalar() || merged.made.contains(id))
                })
            }),
        }
    }

    /// True if a view has a whole unique key of its table, without NULL, or all columns.
    pub fn has_key(&self, view: &ViewUse, source: SourceId) -> bool {
        let table = &self.source(source).table;
        let origins = view.columns.iter().filter_map(|(_, id)| {
            let origin = self.columns.get(id.0 as usize)?.origin?;
            (origin.source == source).then_some(origin.position)
        });
        let named: BTreeSet<u16> = origins.collect();
        let fits = |column: &u16| {
            let nullable = table.types.get(usize::from(*column)).is_none_or(|of| of.nullable);
            named.contains(column) && !nullable
        };
        let unique = table.def.unique_indexes().map(|(index, _)| &index.columns);
        let mut keys = unique.chain([&table.def.primary_key]);
        keys.any(|columns| columns.iter().all(fits))
            || table.visible().all(|column| named.contains(&column))
    }

    /// The table whose rows DELETE removes through a view.
    ///
    /// # Errors
    /// 1288, 1395.
    pub fn deleted_through(&self, view: &ViewUse) -> Result<SourceId, SqlError> {
        let refused = || not_updatable(&view.alias, "DELETE");
        let merged = view.merged.as_ref().filter(|_| view.is_updatable()).ok_or_else(refused)?;
        match merged.bases.as_slice() {
            [only] if !merged.is_join => Ok(*only),
            _ => Err(delete_from_join(view)),
        }
    }

    /// What rows must meet that are written through a view: conditions, and the subqueries in them.
    pub fn checks(&self, number: usize, cascaded: bool) -> (Vec<Scalar>, Vec<Pending>) {
        let Some(view) = self.views.get(number) else { return (Vec::new(), Vec::new()) };
        let all = cascaded || view.check == CheckOption::Cascaded;
        let (mut terms, mut pending) = (Vec::new(), Vec::new());
        for child in &view.children {
            let below = self.checks(*child, all);
            terms.extend(below.0);
            pending.extend(below.1);
        }
        if let Some(merged) = &view.merged
            && (all || view.check == CheckOption::Local)
        {
            terms.extend(merged.conditions.iter().cloned());
            pending.extend(merged.pending.iter().cloned());
        }
        (terms, pending)
    }

    /// The expression with the values of views' columns in the place of these columns.
    ///
    /// # Errors
    /// 1235 if it becomes too long: it doubles with each view that names a column twice.
    pub fn expanded(&self, expr: &Expr) -> Result<Expr, SqlError> {
        if self.views.is_empty() {
            return Ok(expr.clone());
        }
        let left = Cell::new(Some(EXPANDED_MAX));
        let expanded = self.expand(expr, &left);
        match left.get() {
            Some(_) => Ok(expanded),
            None => Err(error::not_supported("changes through views whose columns are that long")),
        }
    }

    /// Stops where no parts are left.
    fn expand(&self, expr: &Expr, left: &Cell<Option<usize>>) -> Expr {
        crate::expr::map_columns(expr, &|number| {
            let value = self.views.iter().find_map(|view| {
                let merged = view.merged.as_ref()?;
                let mut both = view.columns.iter().zip(&merged.values);
                let (_, value) = both.find(|((_, id), _)| id.0 == number)?;
                (*value != Expr::Column(number)).then_some(value)
            })?;
            let most = left.get()?;
            left.set(walk::size_within(value, most).map(|size| most - size));
            left.get()?;
            Some(self.expand(value, left))
        })
    }

    /// The tables in the FROM of a view, and in those of the views there, whose rows are those of the view.
    pub fn tables_of_view(&self, view: &ViewUse) -> Vec<usize> {
        let Some(merged) = &view.merged else { return Vec::new() };
        let is_own = |at: &usize| self.sources.get(*at).is_some_and(|s| s.block == merged.block);
        let mut found: Vec<usize> = view.sources.clone().filter(is_own).collect();
        for child in view.children.iter().filter_map(|at| self.views.get(*at)) {
            found.extend(self.tables_of_view(child));
        }
        found
    }

    /// 1093 and 1443: subqueries may not read the table that is changed, but for derived tables.
    ///
    /// # Errors
    /// These.
    pub fn refuse_reading(
        &self,
        id: lats_base::TableId,
        (alias, view): (&str, Option<&(String, String)>),
        verb: &str,
    ) -> Result<(), SqlError> {
        let prevents = |by: &str| {
            let text = format!(
                "The definition of table '{by}' prevents operation {verb} on table '{alias}'."
            );
            error::make(1443, "HY000", &text)
        };
        let own = || {
            let text =
                format!("You can't specify target table '{alias}' for update in FROM clause");
            error::make(1093, "HY000", &text)
        };
        for source in self.sources.iter().filter(|source| source.table.def.id == id) {
            if source.is_inner && !source.is_derived {
                return Err(if view.is_some() { prevents(alias) } else { own() });
            }
        }
        let in_subqueries = self.views.iter().filter(|view| view.is_inner && !view.is_derived);
        for inner in in_subqueries {
            let mut tables = self.tables_of_view(inner).into_iter();
            if tables.any(|at| self.sources.get(at).is_some_and(|s| s.table.def.id == id)) {
                let is_same = view.is_some_and(|place| *place == inner.place);
                return Err(if is_same { own() } else { prevents(&inner.alias) });
            }
        }
        Ok(())
    }

    /// The column of a view with this name.
    pub fn named_in_view(view: &ViewUse, name: &str) -> Option<ColumnId> {
        view.columns.iter().find(|(known, _)| same_name(known, name)).map(|(_, id)| *id)
    }
}
