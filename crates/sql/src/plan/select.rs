//! Plans of SELECT over one table or none.

mod check;

use super::{ColumnMeta, Columns, Limit};
use crate::access::Access;
use crate::bind::{AggregateCall, Binder};
use crate::error;
use crate::expr::type_of;
use crate::parse::Tokens;
use crate::table::{Table, find_table, single_name};
use lats_catalog::Catalog;
use lats_client::api::{LockMode, LockWait, PRIMARY_INDEX};
use lats_values::{ColumnType, Expr, Program, RowLayout, SqlError, Value};
use sqlparser::ast::{self, SelectItem, SelectItemQualifiedWildcardKind};
use std::sync::Arc;

/// A column of the result.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// Its value.
    pub expr: Expr,
    /// Its name.
    pub name: String,
}

/// GROUP BY and aggregate functions.
#[derive(Debug)]
pub struct Grouping {
    /// The expressions that rows are grouped by; without any, all rows are one group.
    pub keys: Vec<Expr>,
    /// The aggregate functions.
    pub calls: Vec<AggregateCall>,
    /// HAVING.
    pub having: Option<Expr>,
}

/// A SELECT.
#[derive(Debug)]
pub struct SelectPlan {
    /// The table; none for SELECT without FROM.
    pub table: Option<Arc<Table>>,
    /// The table's name in the statement.
    pub alias: String,
    /// How its rows are found.
    pub access: Access,
    /// The columns of the table that are read; none for all.
    pub projection: Option<Vec<u16>>,
    /// The layout of what is read.
    pub layout: RowLayout,
    /// Where in what is read each column of the table is.
    pub positions: Vec<u16>,
    /// The columns of the result.
    pub outputs: Vec<Output>,
    /// GROUP BY and aggregate functions.
    pub grouping: Option<Grouping>,
    /// HAVING without grouping.
    pub distinct: bool,
    /// ORDER BY; true for descending.
    pub order: Vec<(Expr, bool)>,
    /// The scan gives the order.
    pub ordered_scan: bool,
    /// The scan goes from the end to the start.
    pub reverse: bool,
    /// LIMIT.
    pub limit: Limit,
    /// FOR UPDATE, FOR SHARE.
    pub lock: LockMode,
    /// What happens to rows that others have locked.
    pub wait: LockWait,
    /// What data nodes run for the residual condition, where it is the same in every run.
    pub program: Option<Vec<u8>>,
    /// The result's columns, where they are the same in every run.
    pub columns: Option<Columns>,
}

/// What a plan is made from besides the statement itself.
pub struct Context<'a> {
    /// The catalog.
    pub catalog: &'a Catalog,
    /// The current database.
    pub database: Option<&'a str>,
    /// The statement's text.
    pub text: &'a str,
    /// Its tokens.
    pub tokens: &'a Tokens,
    /// `sql_mode` has ONLY_FULL_GROUP_BY.
    pub full_group_by: bool,
    /// `sql_mode` has STRICT_TRANS_TABLES.
    pub strict: bool,
}

impl SelectPlan {
    /// True if rows must be sorted.
    pub fn sorts(&self) -> bool {
        !self.order.is_empty() && !self.ordered_scan
    }

    /// The types of the aggregate functions' results.
    pub fn aggregate_types(&self, externals: &[Value]) -> Vec<ColumnType> {
        let types = self.table.as_ref().map_or(&[][..], |t| &t.types);
        let calls = self.grouping.as_ref().map_or(&[][..], |g| &g.calls);
        calls
            .iter()
            .map(|call| {
                let input = input_type(call, types, externals);
                lats_values::aggregate::result_type(call.kind, &input)
            })
            .collect()
    }

    /// The result's columns in a run with these values from outside.
    pub fn columns_with(&self, externals: &[Value]) -> Columns {
        if let Some(columns) = &self.columns {
            return Arc::clone(columns);
        }
        let types = self.table.as_ref().map_or(&[][..], |t| &t.types);
        let aggregates = self.aggregate_types(externals);
        let meta = |output: &Output| match (&output.expr, &self.table) {
            (Expr::Column(at), Some(table)) if usize::from(*at) < table.types.len() => {
                ColumnMeta::column(table, &self.alias, *at, &output.name)
            }
            (expr, _) => {
                ColumnMeta::expression(&output.name, type_of(expr, types, &aggregates, externals))
            }
        };
        self.outputs.iter().map(meta).collect()
    }
}

impl SelectPlan {
    /// The type of an expression of this plan.
    pub fn type_of(&self, expr: &Expr, externals: &[Value]) -> ColumnType {
        let types = self.table.as_ref().map_or(&[][..], |t| &t.types);
        type_of(expr, types, &self.aggregate_types(externals), externals)
    }
}

/// The type of an aggregate function's argument.
pub fn input_type(call: &AggregateCall, types: &[ColumnType], externals: &[Value]) -> ColumnType {
    match &call.arg {
        Some(arg) => type_of(arg, types, &[], externals),
        None => ColumnType::new(lats_values::TypeKind::BigInt),
    }
}

/// Plans a query.
///
/// # Errors
/// What MySQL says, or 1235.
pub fn plan<'a>(
    query: &ast::Query,
    context: &Context<'a>,
) -> Result<(SelectPlan, Vec<crate::expr::External>, u16), SqlError> {
    let select = check::only_select(query)?;
    check::plain_select(select)?;
    let (table, alias) = from_table(select, context)?;
    let mut binder = Binder::new(table.as_deref(), &alias).with_placeholders(context.tokens);
    let filter =
        select.selection.as_ref().map(|e| binder.bind_in("where clause", e)).transpose()?;
    let outputs = outputs(select, context, &mut binder)?;
    let keys = group_keys(&select.group_by, &outputs, &mut binder)?;
    let having = having(select, &outputs, &mut binder)?;
    let order = order_by(query.order_by.as_ref(), &outputs, &mut binder)?;
    let limit = limit(query.limit_clause.as_ref(), &mut binder)?;
    binder.check_limits()?;
    let calls = std::mem::take(&mut binder.aggregates);
    let grouped = !keys.is_empty() || !calls.is_empty();
    let grouping = grouped.then_some(Grouping { keys, calls, having: having.clone() });
    if grouping.is_none() && having.is_some() {
        return Err(error::not_supported("HAVING without GROUP BY or aggregate functions"));
    }
    let distinct = matches!(select.distinct, Some(ast::Distinct::Distinct));
    let (lock, wait) = check::lock_mode(query, &alias)?;
    let plan = SelectPlan {
        access: Access {
            index: lats_client::api::PRIMARY_INDEX,
            columns: Vec::new(),
            is_key_lookup: false,
            is_unique_lookup: false,
            residual: None,
            filter: filter.clone(),
            fixed: 0,
        },
        alias,
        projection: None,
        layout: RowLayout::new(&[]),
        positions: Vec::new(),
        outputs,
        grouping,
        distinct,
        order,
        ordered_scan: false,
        reverse: false,
        limit,
        lock,
        wait,
        program: None,
        columns: None,
        table: table.clone(),
    };
    let externals = std::mem::take(&mut binder.externals);
    let parameters = binder.parameters;
    drop(binder);
    let plan = finish(plan, filter, context)?;
    Ok((plan, externals, parameters))
}

fn finish(
    mut plan: SelectPlan,
    filter: Option<Expr>,
    context: &Context<'_>,
) -> Result<SelectPlan, SqlError> {
    check::grouping(&plan, context.full_group_by)?;
    check::distinct_order(&plan)?;
    if let Some(table) = plan.table.clone() {
        plan.access = Access::choose(&table, filter);
        choose_order(&mut plan, &table);
        project(&mut plan, &table);
        if !plan.access.residual.as_ref().is_some_and(crate::expr::has_externals) {
            let filter = plan.access.residual.clone();
            plan.program = Some(encode_program(filter, plan.projection.clone()));
        }
    }
    let fixed = plan.outputs.iter().all(|o| !crate::expr::has_externals(&o.expr))
        && plan.grouping.as_ref().is_none_or(|g| {
            g.calls.iter().all(|c| !c.arg.as_ref().is_some_and(crate::expr::has_externals))
        });
    if fixed {
        plan.columns = Some(plan.columns_with(&[]));
    }
    Ok(plan)
}

/// A program that only reads; nothing for one that does nothing.
pub fn encode_program(filter: Option<Expr>, projection: Option<Vec<u16>>) -> Vec<u8> {
    if filter.is_none() && projection.is_none() {
        return Vec::new();
    }
    Program { filter, assignments: Vec::new(), projection, strict: false }.encode()
}

fn from_table(
    select: &ast::Select,
    context: &Context<'_>,
) -> Result<(Option<Arc<Table>>, String), SqlError> {
    match select.from.as_slice() {
        [] => Ok((None, String::new())),
        [only] if is_dual(only) => Ok((None, String::new())),
        [only] => {
            let (name, alias) = table_name(only)?;
            let table = find_table(context.catalog, name, context.database)?;
            let alias = alias.unwrap_or_else(|| table.def.name.clone());
            Ok((Some(table), alias))
        }
        _ => Err(error::not_supported("joins")),
    }
}

fn is_dual(from: &ast::TableWithJoins) -> bool {
    from.joins.is_empty()
        && matches!(table_name(from), Ok((name, None))
            if single_name(name).is_ok_and(|n| n.eq_ignore_ascii_case("dual")))
}

/// The one table of a FROM clause and its alias.
///
/// # Errors
/// 1235 for anything but a table.
pub fn table_name(
    from: &ast::TableWithJoins,
) -> Result<(&ast::ObjectName, Option<String>), SqlError> {
    if !from.joins.is_empty() {
        return Err(error::not_supported("joins"));
    }
    match &from.relation {
        ast::TableFactor::Table {
            name,
            alias,
            args: None,
            with_hints,
            version: None,
            with_ordinality: false,
            partitions,
            json_path: None,
            sample: None,
            index_hints: _,
        } if with_hints.is_empty() && partitions.is_empty() => {
            let alias = match alias {
                Some(alias) if !alias.columns.is_empty() || alias.at.is_some() => {
                    return Err(error::not_supported("column aliases"));
                }
                other => other.as_ref().map(|a| a.name.value.clone()),
            };
            Ok((name, alias))
        }
        ast::TableFactor::Derived { .. } => Err(error::not_supported("subqueries")),
        other => {
            let text: String = other.to_string().chars().take(100).collect();
            Err(error::not_supported(&text))
        }
    }
}

fn outputs(
    select: &ast::Select,
    context: &Context<'_>,
    binder: &mut Binder<'_>,
) -> Result<Vec<Output>, SqlError> {
    let texts = context.tokens.select_items(context.text);
    let mut outputs = Vec::with_capacity(select.projection.len());
    binder.aggregates_allowed = true;
    for (at, item) in select.projection.iter().enumerate() {
        match item {
            SelectItem::UnnamedExpr(expr) => {
                let bound = binder.bind_in("field list", expr)?;
                let name = match expr {
                    ast::Expr::Identifier(ident) => ident.value.clone(),
                    ast::Expr::CompoundIdentifier(parts)
                        if !parts.first().is_some_and(|p| p.value.starts_with('@')) =>
                    {
                        parts.last().map_or_else(String::new, |p| p.value.clone())
                    }
                    ast::Expr::Value(ast::ValueWithSpan {
                        value:
                            ast::Value::SingleQuotedString(text) | ast::Value::DoubleQuotedString(text),
                        ..
                    }) => text.clone(),
                    _ => texts.get(at).cloned().unwrap_or_else(|| expr.to_string()),
                };
                outputs.push(Output { expr: bound, name });
            }
            SelectItem::ExprWithAlias { expr, alias } => {
                let bound = binder.bind_in("field list", expr)?;
                outputs.push(Output { expr: bound, name: alias.value.clone() });
            }
            SelectItem::Wildcard(options) => {
                check::plain_wildcard(options)?;
                star(binder, &mut outputs)?;
            }
            SelectItem::QualifiedWildcard(kind, options) => {
                check::plain_wildcard(options)?;
                check_qualifier(kind, binder)?;
                star(binder, &mut outputs)?;
            }
            SelectItem::ExprWithAliases { .. } => {
                return Err(error::not_supported("several aliases"));
            }
        }
    }
    binder.aggregates_allowed = false;
    Ok(outputs)
}

fn star(binder: &Binder<'_>, outputs: &mut Vec<Output>) -> Result<(), SqlError> {
    let Some(table) = binder.table else {
        return Err(error::make(1096, "HY000", "No tables used"));
    };
    outputs.extend(
        table
            .visible()
            .map(|at| Output { expr: Expr::Column(at), name: table.column_name(at).to_owned() }),
    );
    Ok(())
}

fn check_qualifier(
    kind: &SelectItemQualifiedWildcardKind,
    binder: &Binder<'_>,
) -> Result<(), SqlError> {
    let SelectItemQualifiedWildcardKind::ObjectName(name) = kind else {
        return Err(error::not_supported("this form of *"));
    };
    let (database, table) = crate::table::split_name(name, Some(""))?;
    let fits = binder.table.is_some_and(|t| database.is_empty() || t.def.database == database);
    if fits && table == binder.alias {
        return Ok(());
    }
    Err(error::make(1051, "42S02", &format!("Unknown table '{table}'")))
}

fn select_names(outputs: &[Output], binder: &mut Binder<'_>) {
    binder.select_names = outputs
        .iter()
        .rev()
        .map(|output| (output.name.to_lowercase(), output.expr.clone()))
        .collect();
}

/// A select list's expression by its number or its name.
fn by_position_or_name(
    expr: &ast::Expr,
    outputs: &[Output],
    clause: &str,
    names_first: bool,
) -> Result<Option<Expr>, SqlError> {
    match expr {
        ast::Expr::Value(ast::ValueWithSpan { value: ast::Value::Number(text, _), .. }) => {
            let at = text.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
            match at.and_then(|at| outputs.get(at)) {
                Some(output) => Ok(Some(output.expr.clone())),
                None => Err(error::unknown_column(text, clause)),
            }
        }
        ast::Expr::Identifier(ident) if names_first && !ident.value.starts_with('@') => {
            let found = outputs.iter().find(|o| o.name.eq_ignore_ascii_case(&ident.value));
            Ok(found.map(|o| o.expr.clone()))
        }
        _ => Ok(None),
    }
}

fn group_keys(
    group_by: &ast::GroupByExpr,
    outputs: &[Output],
    binder: &mut Binder<'_>,
) -> Result<Vec<Expr>, SqlError> {
    let ast::GroupByExpr::Expressions(list, modifiers) = group_by else {
        return Err(error::not_supported("GROUP BY ALL"));
    };
    if !modifiers.is_empty() {
        return Err(error::not_supported("GROUP BY … WITH"));
    }
    select_names(outputs, binder);
    let mut keys = Vec::with_capacity(list.len());
    for expr in list {
        let key = match by_position_or_name(expr, outputs, "group statement", false)? {
            Some(found) => found,
            None => binder.bind_in("group statement", expr)?,
        };
        if crate::expr::has_aggregates(&key) {
            return Err(error::make(1056, "42000", &format!("Can't group on '{expr}'")));
        }
        keys.push(key);
    }
    binder.select_names.clear();
    Ok(keys)
}

fn having(
    select: &ast::Select,
    outputs: &[Output],
    binder: &mut Binder<'_>,
) -> Result<Option<Expr>, SqlError> {
    let Some(having) = &select.having else { return Ok(None) };
    select_names(outputs, binder);
    binder.aggregates_allowed = true;
    let bound = binder.bind_in("having clause", having)?;
    binder.aggregates_allowed = false;
    binder.select_names.clear();
    Ok(Some(bound))
}

/// Binds ORDER BY.
///
/// # Errors
/// What MySQL says, or 1235.
pub fn order_by(
    order_by: Option<&ast::OrderBy>,
    outputs: &[Output],
    binder: &mut Binder<'_>,
) -> Result<Vec<(Expr, bool)>, SqlError> {
    let Some(order_by) = order_by else { return Ok(Vec::new()) };
    let ast::OrderByKind::Expressions(list) = &order_by.kind else {
        return Err(error::not_supported("ORDER BY ALL"));
    };
    if order_by.interpolate.is_some() {
        return Err(error::not_supported("INTERPOLATE"));
    }
    select_names(outputs, binder);
    binder.aggregates_allowed = true;
    let bound = order_list(list, outputs, binder);
    binder.aggregates_allowed = false;
    binder.select_names.clear();
    bound
}

/// Binds a list of ORDER BY.
///
/// # Errors
/// As [`order_by`].
pub fn order_list(
    list: &[ast::OrderByExpr],
    outputs: &[Output],
    binder: &mut Binder<'_>,
) -> Result<Vec<(Expr, bool)>, SqlError> {
    let mut order = Vec::with_capacity(list.len());
    for item in list {
        if item.options.nulls_first.is_some() || item.with_fill.is_some() {
            return Err(error::not_supported("this form of ORDER BY"));
        }
        let expr = match by_position_or_name(&item.expr, outputs, "order clause", true)? {
            Some(found) => found,
            None => binder.bind_in("order clause", &item.expr)?,
        };
        // A constant orders nothing.
        if !crate::expr::is_constant(&expr) {
            order.push((expr, item.options.asc == Some(false)));
        }
    }
    Ok(order)
}

fn limit(clause: Option<&ast::LimitClause>, binder: &mut Binder<'_>) -> Result<Limit, SqlError> {
    let (count, offset) = match clause {
        None => (None, None),
        Some(ast::LimitClause::LimitOffset { limit, offset, limit_by }) => {
            if !limit_by.is_empty() {
                return Err(error::not_supported("LIMIT BY"));
            }
            (limit.as_ref(), offset.as_ref().map(|o| &o.value))
        }
        Some(ast::LimitClause::OffsetCommaLimit { offset, limit }) => (Some(limit), Some(offset)),
    };
    let count = count.map(|e| limit_value(e, binder)).transpose()?;
    let offset = offset.map(|e| limit_value(e, binder)).transpose()?;
    Ok(Limit { count, offset })
}

/// Binds a number of rows.
///
/// # Errors
/// 1064 for anything but a number or `?`.
pub fn limit_value(expr: &ast::Expr, binder: &mut Binder<'_>) -> Result<Expr, SqlError> {
    match expr {
        ast::Expr::Value(value)
            if matches!(value.value, ast::Value::Number(..) | ast::Value::Placeholder(_)) =>
        {
            match binder.bind_in("limit clause", expr)? {
                Expr::Literal(Value::Decimal(_) | Value::Double(_)) => {
                    Err(error::syntax(&format!("near 'LIMIT {expr}'")))
                }
                bound => Ok(bound),
            }
        }
        _ => Err(error::syntax(&format!("near 'LIMIT {expr}'"))),
    }
}

fn choose_order(plan: &mut SelectPlan, table: &Table) {
    let columns: Option<Vec<(u16, bool)>> = plan
        .order
        .iter()
        .map(|(expr, descending)| match expr {
            Expr::Column(at) if usize::from(*at) < table.types.len() => Some((*at, *descending)),
            _ => None,
        })
        .collect();
    let usable = plan.grouping.is_none()
        && !plan.access.is_key_lookup
        && !plan.access.is_unique_lookup
        && !plan.order.is_empty();
    let Some(columns) = columns.filter(|_| usable) else { return };
    plan.access.order_by_index(table, &columns);
    // Rows are locked and read after they were found: until then, only their primary key is sure
    // not to change.
    if plan.lock != LockMode::Committed && plan.access.index != PRIMARY_INDEX {
        return;
    }
    if plan.access.gives_order(table, &columns) {
        plan.ordered_scan = true;
        plan.reverse = columns.first().is_some_and(|(_, descending)| *descending);
    }
}

fn project(plan: &mut SelectPlan, table: &Table) {
    let mut needed = std::collections::BTreeSet::new();
    let mut visit = |number: u16| {
        if usize::from(number) < table.types.len() {
            needed.insert(number);
        }
    };
    let grouping = plan.grouping.iter();
    let grouped = grouping.flat_map(|g| {
        g.keys.iter().chain(g.calls.iter().filter_map(|c| c.arg.as_ref())).chain(&g.having)
    });
    let exprs = plan.outputs.iter().map(|o| &o.expr);
    for expr in exprs.chain(plan.order.iter().map(|(e, _)| e)).chain(grouped) {
        crate::expr::visit_columns(expr, &mut visit);
    }
    plan.positions = vec![u16::MAX; table.types.len()];
    for (at, column) in needed.iter().enumerate() {
        plan.positions[usize::from(*column)] = u16::try_from(at).unwrap_or(u16::MAX);
    }
    let types: Vec<ColumnType> =
        needed.iter().map(|column| table.types[usize::from(*column)].clone()).collect();
    plan.layout = RowLayout::new(&types);
    if needed.len() < table.types.len() {
        plan.projection = Some(needed.into_iter().collect());
    }
}
