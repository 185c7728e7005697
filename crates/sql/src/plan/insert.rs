//! Plans of INSERT and REPLACE.

mod through;

use super::check::Check;
use super::query::QueryPlan;
use super::write::update_value;
use crate::bind::query::BoundQuery;
use crate::bind::{Binder, hex_beside};
use crate::error;
use crate::expr::{EXTERNAL_BASE, External};
use crate::syntax::{Context, optional_name};
use crate::table::{Table, check_not_system};
use lats_engine::ir::{ColumnId, walk};
use lats_mysql_syntax::tree::{self, ExprId, Insert, InsertSource, List};
use lats_values::{ColumnType, Expr, SqlError, Value};
use std::sync::Arc;
use through::Target;

/// A value of an INSERT.
#[derive(Debug)]
pub enum Cell {
    /// Computed.
    Expr(Expr),
    /// DEFAULT.
    Default,
}

/// What happens to a row whose key is taken.
#[derive(Debug)]
pub enum OnConflict {
    /// The statement fails.
    Error,
    /// The row is left out, with a warning (IGNORE).
    Ignore,
    /// The row replaces the other (REPLACE).
    Replace,
    /// The other is updated; columns from the table's column count on are the new row's.
    Update(Vec<(u16, Expr)>),
}

/// An INSERT or REPLACE.
#[derive(Debug)]
pub struct InsertPlan {
    /// The table.
    pub table: Arc<Table>,
    /// For each of the table's columns, where in a row its value is.
    pub sources: Vec<Option<usize>>,
    /// The rows.
    pub rows: Vec<Vec<Cell>>,
    /// The query that gives the rows, of INSERT … SELECT.
    pub query: Option<Arc<QueryPlan>>,
    /// Values of the row itself are used in its values.
    pub names_columns: bool,
    /// What happens to a row whose key is taken.
    pub conflict: OnConflict,
    /// Values that do not fit are errors, not warnings.
    pub strict: bool,
    /// The view that rows go through.
    pub view: Option<(String, String)>,
    /// WITH CHECK OPTION.
    pub check: Option<Check>,
    /// Generated values are told. Behind a view without their column they are not.
    pub tells_ids: bool,
}

impl InsertPlan {
    /// True if it has one row, of so many values, and these are the statement's first parameters.
    pub(crate) fn is_template(&self, width: usize, externals: &[External]) -> bool {
        let is_parameter = |(number, cell): (u16, &Cell)| {
            let at = usize::from(number);
            let of_cell = Expr::Column(EXTERNAL_BASE + u32::from(number));
            matches!(cell, Cell::Expr(expr) if *expr == of_cell)
                && externals.get(at) == Some(&External::Parameter(number))
        };
        let [row] = self.rows.as_slice() else { return false };
        row.len() == width && (0u16..).zip(row).all(is_parameter)
    }
}

type Planned = (InsertPlan, Vec<External>, u16);

/// Plans an INSERT or REPLACE.
///
/// # Errors
/// What MySQL says, or 1235.
pub fn plan(
    insert: &Insert,
    context: &Context<'_>,
    external_types: &[ColumnType],
) -> Result<Planned, SqlError> {
    if !insert.partitions.is_empty() {
        return Err(error::not_supported("PARTITION (…)"));
    }
    let target_table = Target::of(insert, context)?;
    let table = Arc::clone(&target_table.table);
    check_not_system(&table.def.database)?;
    let mut binder = Binder::new(context).with_external_types(external_types);
    binder.add_table(&table, &table.def.name);
    target_table.name_columns(&mut binder);
    let mut columns = Vec::new();
    for column in insert.columns.iter().flatten() {
        columns.push(target(&mut binder, &table, *column)?);
    }
    let no_columns = insert.columns.as_ref().is_none_or(Vec::is_empty);
    if no_columns && !matches!(insert.source, InsertSource::Set(_)) {
        columns = target_table.names.iter().map(|(_, at)| *at).collect();
    }
    let (mut query, mut selected) = (None, false);
    let mut rows = match &insert.source {
        InsertSource::Rows(rows) => value_rows(no_columns, rows, &columns, &mut binder)?,
        InsertSource::Set(assignments) => {
            let mut row = Vec::with_capacity(assignments.len());
            for assignment in assignments {
                columns.push(target(&mut binder, &table, assignment.column)?);
                row.push(cell(assignment.value, &mut binder)?);
            }
            vec![row]
        }
        InsertSource::Query(id) => {
            let (plan, names_known) = source_query(*id, columns.len(), &mut binder)?;
            (query, selected) = (Some(plan), names_known);
            Vec::new()
        }
    };
    let mut bound_rows = None;
    if binder.has_subqueries() || (binder.assigns_variables() && !rows.is_empty()) {
        let view = target_table.view.as_ref();
        let alias = view.map_or(table.def.name.as_str(), |(_, name)| name);
        binder.refuse_reading(table.def.id, (alias, view), "INSERT")?;
        bound_rows = Some(rows_query(&rows, &mut binder)?);
        rows = Vec::new();
    }
    read_hex(&mut rows, &columns, &table);
    let sources = sources(&table, &columns)?;
    let names_columns = rows.iter().flatten().any(names_columns);
    let conflict = on_conflict(insert, &target_table, selected, &mut binder)?;
    // Plans of queries number what they ask for behind all values from outside.
    if let Some(bound) = bound_rows {
        query = Some(super::query::finish(bound, &mut binder)?);
    }
    binder.check_limits()?;
    let strict = context.strict && !insert.is_ignore;
    let query = query.map(|query| Arc::new(query.with_strict(strict)));
    let parameters = binder.parameters();
    let tells_ids = target_table.has_ids();
    let Target { view, check, .. } = target_table;
    let plan = InsertPlan {
        table,
        sources,
        rows,
        query,
        names_columns,
        conflict,
        strict,
        view,
        check,
        tells_ids,
    };
    Ok((plan, binder.externals, parameters))
}

fn names_columns(cell: &Cell) -> bool {
    match cell {
        Cell::Expr(expr) => crate::expr::names_columns(expr),
        Cell::Default => false,
    }
}

/// For each of the table's columns, where in a row its value is.
fn sources(table: &Table, columns: &[u16]) -> Result<Vec<Option<usize>>, SqlError> {
    let mut sources = vec![None; table.types.len()];
    for (at, column) in columns.iter().enumerate() {
        let slot = &mut sources[usize::from(*column)];
        if slot.is_some() {
            let name = table.column_name(*column);
            return Err(error::make(1110, "42000", &format!("Column '{name}' specified twice")));
        }
        *slot = Some(at);
    }
    Ok(sources)
}

/// Hexadecimal literals for columns of numbers are numbers.
fn read_hex(rows: &mut [Vec<Cell>], columns: &[u16], table: &Table) {
    for row in rows {
        for (cell, column) in row.iter_mut().zip(columns) {
            if let Cell::Expr(expr @ Expr::Literal(Value::Bytes(_))) = cell {
                let number = table.types[usize::from(*column)].kind.is_number();
                *expr = hex_beside(expr.clone(), number);
            }
        }
    }
}

/// The column that is written: its position in the table.
pub(super) fn target(
    binder: &mut Binder<'_>,
    table: &Table,
    column: ExprId,
) -> Result<u16, SqlError> {
    match binder.bind_in("field list", column)? {
        Expr::Column(number) if (number as usize) < table.types.len() => {
            Ok(super::select::column_number(number))
        }
        _ => {
            let shown = crate::syntax::shown_column(binder.tree(), column);
            Err(error::unknown_column(&shown, "field list"))
        }
    }
}

fn value_rows(
    no_columns: bool,
    rows: &[List],
    columns: &[u16],
    binder: &mut Binder<'_>,
) -> Result<Vec<Vec<Cell>>, SqlError> {
    let mut bound = Vec::with_capacity(rows.len());
    for (number, row) in rows.iter().enumerate() {
        // `VALUES ()` stands for defaults.
        let is_empty = row.is_empty() && no_columns;
        if row.len() != columns.len() && !is_empty {
            return Err(error::value_count(number + 1));
        }
        let mut cells = Vec::with_capacity(columns.len());
        for value in binder.tree().list(*row) {
            cells.push(cell(*value, binder)?);
        }
        cells.resize_with(columns.len(), || Cell::Default);
        bound.push(cells);
    }
    Ok(bound)
}

fn cell(value: ExprId, binder: &mut Binder<'_>) -> Result<Cell, SqlError> {
    if matches!(binder.tree().expr(value), tree::Expr::Default) {
        return Ok(Cell::Default);
    }
    binder.bind_in("field list", value).map(Cell::Expr)
}

/// Rows with subqueries in their values: they are the rows of a query.
fn rows_query(rows: &[Vec<Cell>], binder: &mut Binder<'_>) -> Result<BoundQuery, SqlError> {
    let mut exprs = Vec::with_capacity(rows.len());
    for row in rows {
        let values = row.iter().map(|cell| match cell {
            Cell::Expr(expr) => Ok(expr.clone()),
            Cell::Default => Err(error::not_supported("DEFAULT beside subqueries in VALUES")),
        });
        exprs.push(values.collect::<Result<Vec<Expr>, SqlError>>()?);
    }
    binder.rows_of(exprs)
}

/// The query of INSERT … SELECT.
fn source_query(
    id: tree::QueryId,
    width: usize,
    binder: &mut Binder<'_>,
) -> Result<(QueryPlan, bool), SqlError> {
    super::query::refuse_locks(id, &binder.context)?;
    // The query does not see the table that is written.
    let bound = binder.bind_query(id, 1)?;
    if bound.outputs.len() != width {
        return Err(error::value_count(1));
    }
    // Columns of a query without groups are known in ON DUPLICATE KEY UPDATE.
    let names_known = bound.select.as_ref().is_some_and(|select| !select.is_grouped);
    Ok((super::query::finish(bound, binder)?, names_known))
}

fn on_conflict(
    insert: &Insert,
    target_table: &Target,
    selected: bool,
    binder: &mut Binder<'_>,
) -> Result<OnConflict, SqlError> {
    let table = &target_table.table;
    if insert.on_duplicate.is_empty() {
        return Ok(match (insert.is_replace, insert.is_ignore) {
            (true, _) => OnConflict::Replace,
            (false, true) => OnConflict::Ignore,
            (false, false) => OnConflict::Error,
        });
    }
    let tree = binder.tree();
    let alias = optional_name(tree, insert.row_alias)?;
    let mut names = Vec::with_capacity(insert.column_aliases.len());
    for name in &insert.column_aliases {
        names.push(crate::syntax::name(tree, *name)?.to_owned());
    }
    let known = (table, target_table.names.as_slice());
    binder.add_new_row(known, alias.map(|alias| (alias, names.as_slice())));
    let mut columns = Vec::with_capacity(insert.on_duplicate.len());
    for assignment in &insert.on_duplicate {
        columns.push(target(binder, table, assignment.column)?);
    }
    if selected {
        binder.add_query_scope();
    }
    let mut bound = Vec::with_capacity(insert.on_duplicate.len());
    for (assignment, column) in insert.on_duplicate.iter().zip(columns) {
        let value = update_value(table, column, assignment.value, binder)?;
        let value = of_rows(&value, table, binder)?;
        if value == ColumnId(u32::from(column)).scalar() {
            // Nothing changes, not even a key.
            continue;
        }
        if table.def.primary_key.contains(&column) {
            return Err(error::not_supported("ON DUPLICATE KEY UPDATE of a primary key column"));
        }
        bound.push((column, value));
    }
    if binder.has_subqueries() {
        return Err(error::not_supported("subqueries in ON DUPLICATE KEY UPDATE"));
    }
    if bound.iter().any(|(_, value)| walk::is_local(value)) {
        return Err(error::not_supported(
            "this function, or so deep an expression, in ON DUPLICATE KEY UPDATE",
        ));
    }
    Ok(OnConflict::Update(bound))
}

/// The value over the columns of the table, behind which stand those of the new row.
///
/// # Errors
/// 1235 for columns of a query.
fn of_rows(value: &Expr, table: &Table, binder: &Binder<'_>) -> Result<Expr, SqlError> {
    let width = u32::try_from(table.types.len()).unwrap_or(u32::MAX);
    let base = binder.values_base.unwrap_or(width);
    let mut others = false;
    crate::expr::visit_columns(value, &mut |number| others |= (width..base).contains(&number));
    if others {
        let what = "columns of the query in ON DUPLICATE KEY UPDATE";
        return Err(error::not_supported(what));
    }
    Ok(crate::expr::map_columns(value, &|number| {
        let is_new = (base..EXTERNAL_BASE).contains(&number);
        is_new.then(|| Expr::Column(number - base + width))
    }))
}
