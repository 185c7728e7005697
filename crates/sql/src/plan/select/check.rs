//! What a SELECT may contain: everything that is not known here is refused.

use super::SelectPlan;
use crate::error;
use crate::expr::AGGREGATE_BASE;
use crate::table::Table;
use lats_client::api::{LockMode, LockWait};
use lats_values::{Expr, SqlError};
use sqlparser::ast::{self, LockType};

/// The SELECT of a query without anything around it that we do not have.
///
/// # Errors
/// 1235.
pub fn only_select(query: &ast::Query) -> Result<&ast::Select, SqlError> {
    let ast::Query {
        with,
        body,
        order_by: _,
        limit_clause: _,
        fetch,
        locks: _,
        for_clause,
        settings,
        format_clause,
        pipe_operators,
    } = query;
    if with.is_some() {
        return Err(error::not_supported("WITH"));
    }
    if fetch.is_some()
        || for_clause.is_some()
        || settings.is_some()
        || format_clause.is_some()
        || !pipe_operators.is_empty()
    {
        return Err(error::not_supported("this form of SELECT"));
    }
    match &**body {
        ast::SetExpr::Select(select) => Ok(select),
        ast::SetExpr::SetOperation { op, .. } => Err(error::not_supported(&op.to_string())),
        ast::SetExpr::Query(_) => Err(error::not_supported("queries in parentheses")),
        _ => Err(error::not_supported("this form of query")),
    }
}

/// Refuses the clauses of SELECT that we do not have.
///
/// # Errors
/// 1235.
pub fn plain_select(select: &ast::Select) -> Result<(), SqlError> {
    let ast::Select {
        select_token: _,
        optimizer_hints: _,
        distinct,
        select_modifiers,
        top,
        top_before_distinct: _,
        projection: _,
        exclude,
        into,
        from: _,
        lateral_views,
        prewhere,
        selection: _,
        connect_by,
        group_by: _,
        cluster_by,
        distribute_by,
        sort_by,
        having: _,
        named_window,
        qualify,
        window_before_qualify: _,
        value_table_mode,
        flavor,
    } = select;
    if select_modifiers.as_ref().is_some_and(|m| m.sql_calc_found_rows) {
        return Err(error::not_supported("SQL_CALC_FOUND_ROWS"));
    }
    if matches!(distinct, Some(ast::Distinct::On(_))) {
        return Err(error::not_supported("DISTINCT ON"));
    }
    if into.is_some() {
        return Err(error::not_supported("SELECT … INTO"));
    }
    if !named_window.is_empty() {
        return Err(error::not_supported("window functions"));
    }
    let odd = top.is_some()
        || exclude.is_some()
        || !lateral_views.is_empty()
        || prewhere.is_some()
        || !connect_by.is_empty()
        || !cluster_by.is_empty()
        || !distribute_by.is_empty()
        || !sort_by.is_empty()
        || qualify.is_some()
        || value_table_mode.is_some()
        || *flavor != ast::SelectFlavor::Standard;
    if odd { Err(error::not_supported("this form of SELECT")) } else { Ok(()) }
}

/// Refuses `* EXCEPT` and its like.
///
/// # Errors
/// 1235.
pub fn plain_wildcard(options: &ast::WildcardAdditionalOptions) -> Result<(), SqlError> {
    let odd = options.opt_ilike.is_some()
        || options.opt_exclude.is_some()
        || options.opt_except.is_some()
        || options.opt_replace.is_some()
        || options.opt_rename.is_some()
        || options.opt_alias.is_some();
    if odd { Err(error::not_supported("this form of *")) } else { Ok(()) }
}

/// FOR UPDATE and FOR SHARE: how rows are locked, and what happens to those that others have
/// locked. `table` is the name of the table in the query.
///
/// # Errors
/// 3568 for OF another table, 1235 for more than one such clause.
pub fn lock_mode(query: &ast::Query, table: &str) -> Result<(LockMode, LockWait), SqlError> {
    let clause = match query.locks.as_slice() {
        [] => return Ok((LockMode::Committed, LockWait::Wait)),
        [only] => only,
        _ => return Err(error::not_supported("more than one locking clause")),
    };
    if let Some(of) = &clause.of
        && !super::single_name(of)?.eq_ignore_ascii_case(table)
    {
        let text = format!("Unresolved table name '{of}' in locking clause.");
        return Err(error::make(3568, "HY000", &text));
    }
    let mode = match clause.lock_type {
        LockType::Share => LockMode::Shared,
        LockType::Update => LockMode::Exclusive,
    };
    Ok((
        mode,
        match clause.nonblock {
            None => LockWait::Wait,
            Some(ast::NonBlock::Nowait) => LockWait::Refuse,
            Some(ast::NonBlock::SkipLocked) => LockWait::Skip,
        },
    ))
}

/// The rules of ONLY_FULL_GROUP_BY.
///
/// # Errors
/// 1055 with GROUP BY, 1140 without.
pub fn grouping(plan: &SelectPlan, full_group_by: bool) -> Result<(), SqlError> {
    let (Some(grouping), true) = (&plan.grouping, full_group_by) else { return Ok(()) };
    if determines_all(&grouping.keys, plan.table.as_deref()) {
        return Ok(());
    }
    let lists = plan.outputs.iter().map(|o| (&o.expr, "SELECT list"));
    let lists = lists.chain(grouping.having.iter().map(|h| (h, "HAVING clause")));
    let lists = lists.chain(plan.order.iter().map(|(e, _)| (e, "ORDER BY clause")));
    let mut place = 0;
    let mut last = "";
    for (expr, clause) in lists {
        place = if clause == last { place + 1 } else { 1 };
        last = clause;
        let Some(column) = free_column(expr, &grouping.keys) else { continue };
        let name = column_name(plan, column);
        if grouping.keys.is_empty() {
            return Err(error::make(
                1140,
                "42000",
                &format!(
                    "In aggregated query without GROUP BY, expression #{place} of {clause} contains \
                 nonaggregated column '{name}'; this is incompatible with \
                 sql_mode=only_full_group_by"
                ),
            ));
        }
        return Err(error::make(
            1055,
            "42000",
            &format!(
                "Expression #{place} of {clause} is not in GROUP BY clause and contains nonaggregated \
             column '{name}' which is not functionally dependent on columns in GROUP BY clause; \
             this is incompatible with sql_mode=only_full_group_by"
            ),
        ));
    }
    Ok(())
}

fn column_name(plan: &SelectPlan, column: u16) -> String {
    match &plan.table {
        Some(table) => {
            format!("{}.{}.{}", table.def.database, plan.alias, table.column_name(column))
        }
        None => String::new(),
    }
}

/// Grouping by the primary key fixes every column.
fn determines_all(keys: &[Expr], table: Option<&Table>) -> bool {
    table.is_some_and(|t| t.def.primary_key.iter().all(|c| keys.contains(&Expr::Column(*c))))
}

/// A column in the expression that no grouping expression covers.
fn free_column(expr: &Expr, keys: &[Expr]) -> Option<u16> {
    if keys.contains(expr) {
        return None;
    }
    match expr {
        Expr::Column(number) if *number < AGGREGATE_BASE => Some(*number),
        other => crate::expr::children(other).into_iter().find_map(|c| free_column(c, keys)),
    }
}

/// DISTINCT leaves no rows to order by what is not in the select list.
///
/// # Errors
/// 3065.
pub fn distinct_order(plan: &SelectPlan) -> Result<(), SqlError> {
    if !plan.distinct {
        return Ok(());
    }
    let outside = plan.order.iter().position(|(expr, _)| {
        let selected: Vec<Expr> = plan.outputs.iter().map(|o| o.expr.clone()).collect();
        free_column(expr, &selected).is_some()
            || (crate::expr::has_aggregates(expr) && !selected.contains(expr))
    });
    match outside {
        None => Ok(()),
        Some(at) => Err(error::make(
            3065,
            "HY000",
            &format!(
                "Expression #{} of ORDER BY clause is not in SELECT list, references column which is \
             not in SELECT list; this is incompatible with DISTINCT",
                at + 1
            ),
        )),
    }
}
