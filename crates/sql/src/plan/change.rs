//! Plans of UPDATE and DELETE whose rows a query finds: of several tables, or with subqueries.

use super::check::Check;
use super::query::{self, QueryPlan};
use crate::bind::change::{Change, Found, FoundTarget};
use crate::bind::through::several_tables;
use crate::bind::{Binder, hex_beside};
use crate::error;
use crate::expr::External;
use crate::syntax::{Context, optional_name};
use crate::table::{Table, check_not_system};
use lats_client::api::{LockMode, LockWait};
use lats_engine::ir::{SourceId, walk};
use lats_mysql_syntax::tree::{self, Delete, DeleteFrom, Update};
use lats_values::{ColumnType, Expr, SqlError};
use std::sync::Arc;

/// An UPDATE or DELETE.
#[derive(Debug)]
pub struct ChangePlan {
    /// Gives a row for each row to change: keys and new values.
    pub query: QueryPlan,
    /// The tables that are changed.
    pub targets: Vec<Target>,
    /// Values that do not fit are errors, not warnings.
    pub strict: bool,
    /// It is an UPDATE.
    pub updates: bool,
    /// It has a LIMIT.
    pub is_limited: bool,
    /// The view that it has a LIMIT for, without a whole key of its table.
    pub keyless: Option<String>,
}

/// What is said of a change, beside its tables.
struct Clauses {
    strict: bool,
    updates: bool,
    is_limited: bool,
    several: bool,
}

/// A table that is changed.
#[derive(Debug)]
pub struct Target {
    /// The table.
    pub table: Arc<Table>,
    /// The place of the first column of its primary key in the query's rows; the others follow.
    pub first: usize,
    /// What an UPDATE assigns, in order.
    pub assignments: Vec<(u16, NewValue)>,
    /// What new rows must meet, and the places of values that this needs in the query's rows.
    pub check: Option<(Check, Vec<usize>)>,
}

/// A new value.
#[derive(Debug)]
pub enum NewValue {
    /// It is computed from the row itself, as earlier assignments have left it.
    OfRow(Expr),
    /// It stands in this place of the query's rows.
    Found(usize),
}

type Planned = (ChangePlan, Vec<External>, u16);

/// Plans an UPDATE.
///
/// # Errors
/// What MySQL says, or 1235.
pub fn plan_update(
    update: &Update,
    context: &Context<'_>,
    external_types: &[ColumnType],
) -> Result<Planned, SqlError> {
    if update.is_ignore {
        return Err(error::not_supported("UPDATE IGNORE"));
    }
    let several = is_several(&update.tables, context);
    check_clauses(several, update)?;
    let mut binder = Binder::new(context).with_external_types(external_types);
    let change = Change {
        with: update.with.as_deref(),
        tables: &update.tables,
        filter: update.filter,
        assignments: &update.assignments,
        order: &update.order,
        limit: update.limit.as_ref(),
    };
    let bound = binder.bind_change(&change, |binder| {
        let mut targets: Vec<SourceId> = Vec::new();
        for assignment in change.assignments {
            let (source, _) = binder.assigned(assignment.column)?;
            if !targets.contains(&source) {
                targets.push(source);
            }
        }
        one_table_a_view(&targets, binder)?;
        Ok(targets)
    })?;
    let joins = |target: &FoundTarget| {
        let view = binder.view_of(target.source).and_then(|view| view.merged.as_ref());
        view.is_some_and(|merged| merged.is_join)
    };
    let several = several || bound.targets.iter().any(joins);
    check_clauses(several, update)?;
    let is_limited = update.limit.is_some();
    finish(bound, binder, Clauses { strict: context.strict, updates: true, is_limited, several })
}

/// 1221: the rows of several tables have no order.
fn check_clauses(several: bool, update: &Update) -> Result<(), SqlError> {
    if several && !(update.order.is_empty() && update.limit.is_none()) {
        let what = if update.order.is_empty() { "LIMIT" } else { "ORDER BY" };
        let text = format!("Incorrect usage of UPDATE and {what}");
        return Err(error::make(1221, "HY000", &text));
    }
    Ok(())
}

/// 1393: through a view only one of its tables can be changed.
fn one_table_a_view(targets: &[SourceId], binder: &Binder<'_>) -> Result<(), SqlError> {
    for (at, target) in targets.iter().enumerate() {
        let Some(view) = binder.view_of(*target) else { continue };
        let is_same = |other: &SourceId| view.sources.contains(&(other.0 as usize));
        if targets[..at].iter().any(is_same) {
            return Err(several_tables(view));
        }
    }
    Ok(())
}

/// Plans a DELETE.
///
/// # Errors
/// What MySQL says, or 1235.
pub fn plan_delete(
    delete: &Delete,
    context: &Context<'_>,
    external_types: &[ColumnType],
) -> Result<Planned, SqlError> {
    if delete.is_ignore {
        return Err(error::not_supported("DELETE IGNORE"));
    }
    let mut binder = Binder::new(context).with_external_types(external_types);
    let (tables, names): (&[tree::TableId], &[tree::TableName]) = match &delete.from {
        DeleteFrom::Many { targets, tables, .. } => (tables, targets),
        DeleteFrom::One { .. } => (&[], &[]),
    };
    let change = Change {
        with: delete.with.as_deref(),
        tables,
        filter: delete.filter,
        assignments: &[],
        order: &delete.order,
        limit: delete.limit.as_ref(),
    };
    let bound = match &delete.from {
        DeleteFrom::Many { .. } => binder.bind_change(&change, |binder| {
            names.iter().map(|name| named_target(binder, name)).collect()
        })?,
        DeleteFrom::One { table, alias, partitions } => {
            let place = (table, partitions.as_slice(), *alias);
            binder
                .bind_change_of(&change, place, |binder| only_target(binder).map(|of| vec![of]))?
        }
    };
    let several = matches!(delete.from, DeleteFrom::Many { .. });
    let is_limited = delete.limit.is_some();
    finish(bound, binder, Clauses { strict: context.strict, updates: false, is_limited, several })
}

fn is_several(tables: &[tree::TableId], context: &Context<'_>) -> bool {
    match tables {
        [only] => !matches!(context.tree().table(*only), tree::Table::Named { .. }),
        _ => true,
    }
}

/// The one table of a DELETE.
fn only_target(binder: &Binder<'_>) -> Result<SourceId, SqlError> {
    match binder.views.iter().find(|view| !view.is_inner) {
        Some(view) => binder.deleted_through(view),
        None => Ok(SourceId(0)),
    }
}

/// A table that DELETE names, among those behind FROM.
fn named_target(binder: &Binder<'_>, name: &tree::TableName) -> Result<SourceId, SqlError> {
    let tree = binder.tree();
    let database = optional_name(tree, name.schema)?;
    let alias = binder.name(name.name)?;
    if let Some(view) = binder.view_named(database, alias) {
        return binder.deleted_through(view);
    }
    let fits = |source: &crate::bind::Source| {
        source.alias == alias && database.is_none_or(|d| source.table.def.database == d)
    };
    let found = binder.sources.iter().position(|source| !source.is_inner && fits(source));
    let unknown = || {
        let text = format!("Unknown table '{alias}' in MULTI DELETE");
        error::make(1109, "42S02", &text)
    };
    found.and_then(|at| u32::try_from(at).ok()).map(SourceId).ok_or_else(unknown)
}

fn finish(
    found: Found,
    mut binder: Binder<'_>,
    Clauses { strict, updates, is_limited, several }: Clauses,
) -> Result<Planned, SqlError> {
    binder.check_limits()?;
    let parameters = binder.parameters();
    let Found { query, targets } = found;
    for target in &targets {
        let table = &binder.source(target.source).table;
        check_not_system(&table.def.database)?;
        let view = binder.view_of(target.source);
        let alias = view.map_or(&binder.source(target.source).alias, |view| &view.alias);
        let verb = if updates { "UPDATE" } else { "DELETE" };
        binder.refuse_reading(table.def.id, (alias, view.map(|view| &view.place)), verb)?;
        if !several && target.reads_new_values {
            let what =
                "subqueries or such functions in SET beside columns that are assigned before";
            return Err(error::not_supported(what));
        }
    }
    let sources: Vec<SourceId> = targets.iter().map(|target| target.source).collect();
    let keyless = sources.iter().filter(|_| is_limited).find_map(|source| {
        let view = binder.view_of(*source)?;
        (!binder.has_key(view, *source)).then(|| view.alias.clone())
    });
    let targets = targets
        .into_iter()
        .map(|target| {
            let table = Arc::clone(&binder.source(target.source).table);
            let of_row = !several;
            let first = binder.source(target.source).first;
            let mut assignments = Vec::with_capacity(target.assignments.len());
            for (column, value, place) in target.assignments {
                let number = table.types[usize::from(column)].kind.is_number();
                let value = binder.expanded(&value)?;
                let is_own = of_row
                    && !walk::is_local(&value)
                    && uses_only(&value, first, table.types.len());
                let value = match is_own {
                    true => NewValue::OfRow(hex_beside(renumbered(&value, first), number)),
                    false => NewValue::Found(place),
                };
                assignments.push((column, value));
            }
            Ok(Target { table, first: target.first, assignments, check: target.check })
        })
        .collect::<Result<_, SqlError>>()?;
    let mut query = query::finish(query, &mut binder)?.with_strict(strict);
    let specs: Vec<SourceId> = query.plan.sources.iter().map(|spec| spec.source).collect();
    for (source, spec) in query.sources.iter_mut().zip(specs) {
        // Rows that are changed are locked when they are found.
        if sources.contains(&spec) {
            source.lock = (LockMode::Exclusive, LockWait::Wait);
        }
    }
    let plan = ChangePlan { query, targets, strict, updates, is_limited, keyless };
    Ok((plan, binder.externals, parameters))
}

/// True if an expression takes columns of one table only, and nothing that subqueries give.
fn uses_only(expr: &Expr, first: u32, width: usize) -> bool {
    let end = first + u32::try_from(width).unwrap_or(u32::MAX);
    let mut only = true;
    crate::expr::visit_columns(expr, &mut |number| {
        only &= number >= crate::expr::EXTERNAL_BASE || (first..end).contains(&number);
    });
    only
}

/// The expression over positions in the table.
fn renumbered(expr: &Expr, first: u32) -> Expr {
    crate::expr::map_columns(expr, &|number| {
        (number < crate::expr::EXTERNAL_BASE).then(|| Expr::Column(number - first))
    })
}
