//! Plans of INSERT and REPLACE.

use super::{select::Context, write::update_value};
use crate::bind::{Binder, hex_beside};
use crate::error;
use crate::expr::{EXTERNAL_BASE, External};
use crate::table::{Table, check_not_system, find_table, single_name, split_name};
use lats_values::{Expr, SqlError, Value};
use sqlparser::ast;
use std::sync::Arc;

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
    /// What happens to a row whose key is taken.
    pub conflict: OnConflict,
    /// Values that do not fit are errors, not warnings.
    pub strict: bool,
}

impl InsertPlan {
    /// True if it has one row, of so many values, and these are the statement's first parameters.
    pub(crate) fn is_template(&self, width: usize, externals: &[External]) -> bool {
        let is_parameter = |(number, cell): (u16, &Cell)| {
            let at = usize::from(number);
            let of_cell = Expr::Column(EXTERNAL_BASE.saturating_add(number));
            matches!(cell, Cell::Expr(expr) if *expr == of_cell)
                && externals.get(at) == Some(&External::Parameter(number))
        };
        let [row] = self.rows.as_slice() else { return false };
        row.len() == width && (0u16..).zip(row).all(is_parameter)
    }
}

/// Plans an INSERT or REPLACE.
///
/// # Errors
/// What MySQL says, or 1235.
pub fn plan(
    insert: &ast::Insert,
    context: &Context<'_>,
) -> Result<(InsertPlan, Vec<External>, u16), SqlError> {
    refuse_odd(insert)?;
    let ast::TableObject::TableName(name) = &insert.table else {
        return Err(error::not_supported("INSERT INTO a function"));
    };
    let table = find_table(context.catalog, name, context.database)?;
    check_not_system(&table.def.database)?;
    let mut columns: Vec<u16> = Vec::with_capacity(insert.columns.len());
    for column in &insert.columns {
        columns.push(target(&table, column)?);
    }
    let mut binder = Binder::new(None, "").with_placeholders(context.tokens);
    let mut rows = if insert.assignments.is_empty() {
        if columns.is_empty() {
            columns = table.visible().collect();
        }
        value_rows(insert, &columns, &mut binder)?
    } else {
        let mut row = Vec::with_capacity(insert.assignments.len());
        for assignment in &insert.assignments {
            columns.push(assigned(&table, assignment)?);
            row.push(cell(&assignment.value, &mut binder)?);
        }
        vec![row]
    };
    read_hex(&mut rows, &columns, &table);
    let mut sources = vec![None; table.types.len()];
    for (at, column) in columns.iter().enumerate() {
        let slot = &mut sources[usize::from(*column)];
        if slot.is_some() {
            let name = table.column_name(*column);
            return Err(error::make(1110, "42000", &format!("Column '{name}' specified twice")));
        }
        *slot = Some(at);
    }
    let (conflict, externals, parameters) = on_conflict(insert, &table, binder)?;
    let strict = context.strict && !insert.ignore;
    Ok((InsertPlan { table, sources, rows, conflict, strict }, externals, parameters))
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

fn refuse_odd(insert: &ast::Insert) -> Result<(), SqlError> {
    let ast::Insert {
        insert_token: _,
        optimizer_hints: _,
        or,
        ignore: _,
        into: _,
        table: _,
        table_alias,
        columns: _,
        overwrite,
        source: _,
        assignments: _,
        partitioned,
        after_columns,
        has_table_keyword,
        on: _,
        returning,
        output,
        replace_into: _,
        priority: _,
        insert_alias: _,
        settings,
        format_clause,
        multi_table_insert_type,
        multi_table_into_clauses,
        multi_table_when_clauses,
        multi_table_else_clause,
    } = insert;
    if returning.is_some() {
        return Err(error::not_supported("RETURNING"));
    }
    let odd = or.is_some()
        || table_alias.is_some()
        || *overwrite
        || partitioned.is_some()
        || !after_columns.is_empty()
        || *has_table_keyword
        || output.is_some()
        || settings.is_some()
        || format_clause.is_some()
        || multi_table_insert_type.is_some()
        || !multi_table_into_clauses.is_empty()
        || !multi_table_when_clauses.is_empty()
        || multi_table_else_clause.is_some();
    if odd { Err(error::not_supported("this form of INSERT")) } else { Ok(()) }
}

fn target(table: &Table, column: &ast::ObjectName) -> Result<u16, SqlError> {
    let (qualifier, name) = split_name(column, Some(""))?;
    let fits = qualifier.is_empty() || qualifier == table.def.name;
    let found = table.column(&name).filter(|_| fits);
    found.ok_or_else(|| error::unknown_column(&name, "field list"))
}

/// The column that an assignment is for.
///
/// # Errors
/// 1054, 1235.
pub fn assigned(table: &Table, assignment: &ast::Assignment) -> Result<u16, SqlError> {
    match &assignment.target {
        ast::AssignmentTarget::ColumnName(name) => target(table, name),
        ast::AssignmentTarget::Tuple(_) => Err(error::not_supported("row values")),
    }
}

fn value_rows(
    insert: &ast::Insert,
    columns: &[u16],
    binder: &mut Binder<'_>,
) -> Result<Vec<Vec<Cell>>, SqlError> {
    let Some(query) = &insert.source else {
        return Err(error::not_supported("INSERT without VALUES"));
    };
    let ast::SetExpr::Values(values) = &*query.body else {
        return Err(error::not_supported("INSERT … SELECT"));
    };
    if query.with.is_some() || query.order_by.is_some() || query.limit_clause.is_some() {
        return Err(error::not_supported("this form of INSERT"));
    }
    let mut rows = Vec::with_capacity(values.rows.len());
    for (number, row) in values.rows.iter().enumerate() {
        let row = &row.content;
        // `VALUES ()` stands for defaults.
        if row.len() != columns.len() && !(row.is_empty() && insert.columns.is_empty()) {
            return Err(error::value_count(number + 1));
        }
        let mut cells = Vec::with_capacity(columns.len());
        for expr in row {
            cells.push(cell(expr, binder)?);
        }
        cells.resize_with(columns.len(), || Cell::Default);
        rows.push(cells);
    }
    Ok(rows)
}

fn cell(expr: &ast::Expr, binder: &mut Binder<'_>) -> Result<Cell, SqlError> {
    if let ast::Expr::Identifier(ident) = expr
        && ident.quote_style.is_none()
        && ident.value.eq_ignore_ascii_case("DEFAULT")
    {
        return Ok(Cell::Default);
    }
    binder.bind_in("field list", expr).map(Cell::Expr)
}

type Bound = (OnConflict, Vec<External>, u16);

fn on_conflict(insert: &ast::Insert, table: &Table, values: Binder<'_>) -> Result<Bound, SqlError> {
    let (externals, parameters) = (values.externals, values.parameters);
    let plain = |conflict| Ok((conflict, externals.clone(), parameters));
    match &insert.on {
        None if insert.replace_into => plain(OnConflict::Replace),
        None if insert.ignore => plain(OnConflict::Ignore),
        None => plain(OnConflict::Error),
        Some(ast::OnInsert::DuplicateKeyUpdate(assignments)) => {
            let mut binder = Binder::new(Some(table), &table.def.name);
            binder.externals = externals;
            binder.external_places = values.external_places;
            binder.placeholders = values.placeholders;
            binder.parameters = parameters;
            binder.values_base = u16::try_from(table.types.len()).ok();
            if let Some(alias) = &insert.insert_alias {
                if alias.col_aliases.as_ref().is_some_and(|list| !list.is_empty()) {
                    return Err(error::not_supported("column aliases"));
                }
                binder.values_alias = Some(single_name(&alias.row_alias)?);
            }
            let mut bound = Vec::with_capacity(assignments.len());
            for assignment in assignments {
                let column = assigned(table, assignment)?;
                let itself = |value: &ast::Expr| match value {
                    ast::Expr::Identifier(name) => table.def.column(&name.value) == Some(column),
                    _ => false,
                };
                if itself(&assignment.value) {
                    // Nothing changes, not even a key.
                    continue;
                }
                if table.def.primary_key.contains(&column) {
                    return Err(error::not_supported(
                        "ON DUPLICATE KEY UPDATE of a primary key column",
                    ));
                }
                let value = update_value(table, column, &assignment.value, &mut binder)?;
                bound.push((column, value));
            }
            binder.check_limits()?;
            Ok((OnConflict::Update(bound), binder.externals, parameters))
        }
        Some(_) => Err(error::not_supported("ON CONFLICT")),
    }
}
