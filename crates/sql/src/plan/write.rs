//! Plans of UPDATE and DELETE.

use super::select::{Context, encode_program, limit_value, order_list, table_name};
use super::{Limit, insert};
use crate::access::Access;
use crate::bind::{Binder, hex_beside};
use crate::error;
use crate::expr::{External, has_externals};
use crate::table::{Table, check_not_system, find_table};
use lats_values::{Expr, Program, SqlError};
use sqlparser::ast;
use std::sync::Arc;

/// An UPDATE or DELETE.
#[derive(Debug)]
pub struct WritePlan {
    /// The table.
    pub table: Arc<Table>,
    /// How its rows are found.
    pub access: Access,
    /// What an UPDATE assigns; none for DELETE.
    pub assignments: Option<Vec<(u16, Expr)>>,
    /// New rows are computed here rather than in the data nodes: a key column is assigned, or a
    /// column has ON UPDATE CURRENT_TIMESTAMP.
    pub by_image: bool,
    /// Which rows LIMIT takes first; true for descending.
    pub order: Vec<(Expr, bool)>,
    /// The scan gives that order.
    pub ordered_scan: bool,
    /// LIMIT.
    pub limit: Limit,
    /// Values that do not fit are errors, not warnings.
    pub strict: bool,
    /// What data nodes run for the residual condition, where it is the same in every run.
    pub program: Option<Vec<u8>>,
}

impl WritePlan {
    /// The program of one row's operation.
    pub fn row_program(&self, filter: Option<Expr>, externals: &[lats_values::Value]) -> Vec<u8> {
        let filter = filter.map(|f| crate::expr::with_externals(&f, externals));
        match &self.assignments {
            None => encode_program(filter, None),
            Some(assignments) => {
                let bound = |(column, expr): &(u16, Expr)| {
                    (*column, crate::expr::with_externals(expr, externals))
                };
                let assignments = assignments.iter().map(bound).collect();
                Program { filter, assignments, projection: None, strict: self.strict }.encode()
            }
        }
    }
}

/// Plans an UPDATE.
///
/// # Errors
/// What MySQL says, or 1235.
pub fn plan_update(
    update: &ast::Update,
    context: &Context<'_>,
) -> Result<(WritePlan, Vec<External>, u16), SqlError> {
    let ast::Update {
        update_token: _,
        optimizer_hints: _,
        table,
        assignments,
        from,
        selection,
        returning,
        output,
        or,
        order_by,
        limit,
    } = update;
    if from.is_some() || returning.is_some() || output.is_some() || or.is_some() {
        return Err(error::not_supported("this form of UPDATE"));
    }
    let (name, alias) = table_name(table)?;
    let table = find_table(context.catalog, name, context.database)?;
    check_not_system(&table.def.database)?;
    let alias = alias.unwrap_or_else(|| table.def.name.clone());
    let mut binder = Binder::new(Some(&table), &alias).with_placeholders(context.tokens);
    let mut bound = Vec::with_capacity(assignments.len());
    for assignment in assignments {
        let column = update_target(&table, &alias, assignment)?;
        bound.push((column, update_value(&table, column, &assignment.value, &mut binder)?));
    }
    // What an AUTO_INCREMENT column becomes must be known here, for the sequence.
    let keyed = bound.iter().any(|(column, _)| {
        let sequenced = table.def.columns[usize::from(*column)].auto_increment;
        table.def.primary_key.contains(column) || sequenced
    });
    let touched = table
        .def
        .columns
        .iter()
        .zip(0u16..)
        .any(|(def, at)| def.on_update_now && !bound.iter().any(|(column, _)| *column == at));
    let clauses = Clauses { selection: selection.as_ref(), order_by, limit: limit.as_ref() };
    let (access, order, limit) = clauses.bind(&table, &mut binder)?;
    let plan = WritePlan {
        access,
        assignments: Some(bound),
        by_image: keyed || touched,
        order,
        ordered_scan: false,
        limit,
        strict: context.strict,
        program: None,
        table: Arc::clone(&table),
    };
    finish(plan, &table, binder)
}

/// Plans a DELETE.
///
/// # Errors
/// What MySQL says, or 1235.
pub fn plan_delete(
    delete: &ast::Delete,
    context: &Context<'_>,
) -> Result<(WritePlan, Vec<External>, u16), SqlError> {
    let ast::Delete {
        delete_token: _,
        optimizer_hints: _,
        tables,
        from,
        using,
        selection,
        returning,
        output,
        order_by,
        limit,
    } = delete;
    if !tables.is_empty() || using.is_some() {
        return Err(error::not_supported("DELETE from several tables"));
    }
    if returning.is_some() || output.is_some() {
        return Err(error::not_supported("this form of DELETE"));
    }
    let (ast::FromTable::WithFromKeyword(from) | ast::FromTable::WithoutKeyword(from)) = from;
    let [from] = from.as_slice() else {
        return Err(error::not_supported("DELETE from several tables"));
    };
    let (name, alias) = table_name(from)?;
    let table = find_table(context.catalog, name, context.database)?;
    check_not_system(&table.def.database)?;
    let alias = alias.unwrap_or_else(|| table.def.name.clone());
    let mut binder = Binder::new(Some(&table), &alias).with_placeholders(context.tokens);
    let clauses = Clauses { selection: selection.as_ref(), order_by, limit: limit.as_ref() };
    let (access, order, limit) = clauses.bind(&table, &mut binder)?;
    let plan = WritePlan {
        access,
        assignments: None,
        by_image: false,
        order,
        ordered_scan: false,
        limit,
        strict: context.strict,
        program: None,
        table: Arc::clone(&table),
    };
    finish(plan, &table, binder)
}

struct Clauses<'a> {
    selection: Option<&'a ast::Expr>,
    order_by: &'a [ast::OrderByExpr],
    limit: Option<&'a ast::Expr>,
}

type BoundClauses = (Access, Vec<(Expr, bool)>, Limit);

impl Clauses<'_> {
    fn bind(&self, table: &Table, binder: &mut Binder<'_>) -> Result<BoundClauses, SqlError> {
        let filter = self.selection.map(|e| binder.bind_in("where clause", e)).transpose()?;
        let order = order_list(self.order_by, &[], binder)?;
        let count = self.limit.map(|e| limit_value(e, binder)).transpose()?;
        Ok((Access::choose(table, filter), order, Limit { count, offset: None }))
    }
}

fn finish(
    mut plan: WritePlan,
    table: &Table,
    binder: Binder<'_>,
) -> Result<(WritePlan, Vec<External>, u16), SqlError> {
    binder.check_limits()?;
    let columns: Option<Vec<(u16, bool)>> = plan
        .order
        .iter()
        .map(|(expr, descending)| match expr {
            Expr::Column(at) => Some((*at, *descending)),
            _ => None,
        })
        .collect();
    if let Some(columns) = columns
        && !columns.is_empty()
    {
        plan.access.order_by_index(table, &columns);
        plan.ordered_scan = plan.access.gives_order(table, &columns);
    }
    let dynamic = plan.access.residual.iter().any(has_externals)
        || plan.assignments.iter().flatten().any(|(_, expr)| has_externals(expr));
    if !dynamic && !plan.by_image {
        plan.program = Some(plan.row_program(plan.access.residual.clone(), &[]));
    }
    let Binder { externals, parameters, .. } = binder;
    Ok((plan, externals, parameters))
}

fn update_target(
    table: &Table,
    alias: &str,
    assignment: &ast::Assignment,
) -> Result<u16, SqlError> {
    if let ast::AssignmentTarget::ColumnName(name) = &assignment.target
        && let [ast::ObjectNamePart::Identifier(first), ast::ObjectNamePart::Identifier(last)] =
            name.0.as_slice()
        && first.value == alias
    {
        let found = table.column(&last.value);
        return found.ok_or_else(|| error::unknown_column(&name.to_string(), "field list"));
    }
    insert::assigned(table, assignment)
}

pub(super) fn update_value(
    table: &Table,
    column: u16,
    value: &ast::Expr,
    binder: &mut Binder<'_>,
) -> Result<Expr, SqlError> {
    if let ast::Expr::Identifier(ident) = value
        && ident.quote_style.is_none()
        && ident.value.eq_ignore_ascii_case("DEFAULT")
    {
        use lats_catalog::DefaultValue;
        let def = &table.def.columns[usize::from(column)];
        return match &def.default {
            DefaultValue::Literal(value) => Ok(Expr::Literal(value.clone())),
            DefaultValue::Now => Ok(binder.external(External::Now(def.column_type.kind.fsp()))),
            DefaultValue::None if def.column_type.nullable => {
                Ok(Expr::Literal(lats_values::Value::Null))
            }
            DefaultValue::None => Err(error::no_default(&def.name)),
        };
    }
    let number = table.types[usize::from(column)].kind.is_number();
    Ok(hex_beside(binder.bind_in("field list", value)?, number))
}
