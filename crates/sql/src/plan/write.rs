//! Plans of UPDATE and DELETE.

use super::select::{column_number, encode_strict_program};
use super::{Limit, insert};
use crate::access::Access;
use crate::bind::{Binder, hex_beside};
use crate::error;
use crate::expr::{External, has_externals};
use crate::syntax::{Context, optional_name, split_name};
use crate::table::{Table, check_not_system, find_table};
use lats_engine::ir::walk;
use lats_mysql_syntax::tree::{
    self, Delete, DeleteFrom, ExprId, OrderItem, TableName, Text, Update,
};
use lats_values::{Expr, Program, SqlError};
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
    pub program: Option<Arc<[u8]>>,
}

impl WritePlan {
    /// A program that finds rows. What is wrong with values in a condition is an error, as in MySQL.
    pub fn find_program(&self, filter: Option<Expr>, projection: Option<Vec<u16>>) -> Vec<u8> {
        encode_strict_program(filter, projection, self.strict)
    }

    /// The program of one row's operation.
    pub fn row_program(&self, filter: Option<Expr>, externals: &[lats_values::Value]) -> Vec<u8> {
        let filter = filter.map(|f| crate::expr::with_externals(&f, externals));
        match &self.assignments {
            None => self.find_program(filter, None),
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

type Planned = (WritePlan, Vec<External>, u16);

/// Plans an UPDATE of one table without subqueries; none for others.
///
/// # Errors
/// What MySQL says, or 1235.
pub fn plan_update(update: &Update, context: &Context<'_>) -> Result<Option<Planned>, SqlError> {
    if update.is_ignore {
        return Err(error::not_supported("UPDATE IGNORE"));
    }
    let Some((table, alias)) = one_table(&update.tables, context)? else { return Ok(None) };
    if update.with.is_some() {
        return Ok(None);
    }
    let mut binder = Binder::new(context);
    binder.add_table(&table, &alias);
    let mut bound = Vec::with_capacity(update.assignments.len());
    for assignment in &update.assignments {
        let column = insert::target(&mut binder, &table, assignment.column)?;
        bound.push((column, update_value(&table, column, assignment.value, &mut binder)?));
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
    let clauses =
        Clauses { filter: update.filter, order: &update.order, limit: update.limit.as_ref() };
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

/// Plans a DELETE from one table without subqueries; none for others.
///
/// # Errors
/// What MySQL says, or 1235.
pub fn plan_delete(delete: &Delete, context: &Context<'_>) -> Result<Option<Planned>, SqlError> {
    if delete.is_ignore {
        return Err(error::not_supported("DELETE IGNORE"));
    }
    let DeleteFrom::One { table, alias, partitions } = &delete.from else { return Ok(None) };
    if delete.with.is_some() {
        return Ok(None);
    }
    let Some((table, alias)) = named(table, *alias, partitions, context)? else { return Ok(None) };
    let mut binder = Binder::new(context);
    binder.add_table(&table, &alias);
    let clauses =
        Clauses { filter: delete.filter, order: &delete.order, limit: delete.limit.as_ref() };
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

type Named = (Arc<Table>, String);

fn one_table(tables: &[tree::TableId], context: &Context<'_>) -> Result<Option<Named>, SqlError> {
    let [only] = tables else { return Ok(None) };
    match context.tree().table(*only) {
        // Hints about indexes are about joins and scans: rows are the same without them.
        tree::Table::Named { name, partitions, alias, hints: _ } => {
            named(name, *alias, partitions, context)
        }
        _ => Ok(None),
    }
}

/// A table; none for a view.
fn named(
    name: &TableName,
    alias: Text,
    partitions: &[Text],
    context: &Context<'_>,
) -> Result<Option<Named>, SqlError> {
    if !partitions.is_empty() {
        return Err(error::not_supported("PARTITION (…)"));
    }
    let tree = context.tree();
    let place = split_name(tree, name, context.database)?;
    if context.view(&place.0, &place.1).is_some() {
        return Ok(None);
    }
    let table = find_table(context.catalog, tree, name, context.database)?;
    check_not_system(&table.def.database)?;
    let alias = optional_name(tree, alias)?.unwrap_or(&table.def.name).to_owned();
    Ok(Some((table, alias)))
}

struct Clauses<'a> {
    filter: Option<ExprId>,
    order: &'a [OrderItem],
    limit: Option<&'a tree::Limit>,
}

type BoundClauses = (Access, Vec<(Expr, bool)>, Limit);

impl Clauses<'_> {
    fn bind(&self, table: &Table, binder: &mut Binder<'_>) -> Result<BoundClauses, SqlError> {
        let filter = self.filter.map(|e| binder.bind_in("where clause", e)).transpose()?;
        let filter = filter.map(|filter| hex_beside(filter, true));
        let mut order = Vec::with_capacity(self.order.len());
        for item in self.order {
            let value = binder.bind_in("order clause", item.value)?;
            if !crate::expr::is_constant(&value) {
                order.push((value, item.direction == tree::Direction::Descending));
            }
        }
        let (count, _) = match self.limit {
            Some(limit) => binder.limit(limit)?,
            None => (None, None),
        };
        let access = Access::choose(table, filter).with_comparators(table, u32::MAX);
        Ok((access, order, Limit { count, offset: None }))
    }
}

fn finish(
    mut plan: WritePlan,
    table: &Table,
    binder: Binder<'_>,
) -> Result<Option<Planned>, SqlError> {
    binder.check_limits()?;
    let values = plan.assignments.iter().flatten().map(|(_, value)| value);
    let order = plan.order.iter().map(|(value, _)| value);
    let is_local = values.chain(order).chain(&plan.access.filter).any(walk::is_local);
    if binder.needs_query() || binder.compares_variables.get() || is_local {
        return Ok(None);
    }
    let columns: Option<Vec<(u16, bool)>> = plan
        .order
        .iter()
        .map(|(expr, descending)| match expr {
            Expr::Column(at) => Some((column_number(*at), *descending)),
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
        plan.program = Some(plan.row_program(plan.access.residual.clone(), &[]).into());
    }
    let parameters = binder.parameters();
    Ok(Some((plan, binder.externals, parameters)))
}

/// What a column becomes.
pub(crate) fn update_value(
    table: &Table,
    column: u16,
    value: ExprId,
    binder: &mut Binder<'_>,
) -> Result<Expr, SqlError> {
    if matches!(binder.tree().expr(value), tree::Expr::Default) {
        use lats_catalog::DefaultValue;
        let def = &table.def.columns[usize::from(column)];
        return match &def.default {
            DefaultValue::Literal(value) => Ok(Expr::Literal(value.clone())),
            DefaultValue::Now => Ok(binder.external(External::Now(def.column_type.kind.fsp()))),
            DefaultValue::None if def.column_type.nullable => {
                Ok(Expr::Literal(lats_values::Value::Null))
            }
            // The column's own default is 0, as in MySQL.
            DefaultValue::None if def.auto_increment => {
                Ok(Expr::Literal(lats_values::Value::Int(0)))
            }
            DefaultValue::None => Err(error::no_default(&def.name)),
        };
    }
    let number = table.types[usize::from(column)].kind.is_number();
    Ok(hex_beside(binder.bind_in("field list", value)?, number))
}
