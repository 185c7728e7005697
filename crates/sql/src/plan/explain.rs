//! EXPLAIN: what a statement would do, as a tree or as MySQL's table.

pub(crate) mod actual;
mod rows;
mod tree;

use super::{ColumnMeta, Columns, Plan};
use crate::error;
use crate::syntax::Context;
use lats_base::TableId;
use lats_mysql_syntax::tree::{Explain, ExplainWhat};
use lats_values::{ColumnType, SqlError, TypeKind, Value};

/// What EXPLAIN shows.
#[derive(Debug)]
pub struct ExplainPlan {
    /// The columns.
    pub columns: Columns,
    /// The rows.
    pub rows: Vec<Vec<Value>>,
    /// The tables of the statement's query, and how many rows each was taken to have.
    pub tables: Vec<(TableId, Option<f64>)>,
}

/// What EXPLAIN ANALYZE runs.
#[derive(Debug)]
pub struct AnalyzePlan {
    /// The columns of what it shows.
    pub columns: Columns,
    /// The query.
    pub plan: Plan,
}

/// How a plan is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A tree of steps.
    Tree,
    /// A row for each table, with MySQL's twelve columns.
    Traditional,
    /// A tree of steps, with what they did.
    Analyze,
}

/// The format that EXPLAIN asks for.
///
/// # Errors
/// 1791 for unknown ones, 1235.
pub fn format(explain: &Explain, context: &Context<'_>) -> Result<Format, SqlError> {
    if explain.into.is_some() || explain.schema.is_some() {
        return Err(error::not_supported("EXPLAIN INTO and FOR SCHEMA"));
    }
    if matches!(explain.what, ExplainWhat::Connection(_)) {
        return Err(error::not_supported("EXPLAIN FOR CONNECTION"));
    }
    let shown = crate::syntax::name(context.tree(), explain.format)?;
    let name = shown.to_ascii_uppercase();
    if explain.is_analyze {
        return match name.as_str() {
            "" | "TREE" => Ok(Format::Analyze),
            name => Err(error::not_supported(&format!("EXPLAIN ANALYZE with {name} format"))),
        };
    }
    match name.as_str() {
        "" | "TRADITIONAL" => Ok(Format::Traditional),
        "TREE" => Ok(Format::Tree),
        "JSON" => Err(error::not_supported("EXPLAIN FORMAT=JSON")),
        _ => Err(error::make(1791, "HY000", &format!("Unknown EXPLAIN format name: '{shown}'"))),
    }
}

/// Shows a plan, or says how it is shown when it has run.
///
/// # Errors
/// 1235 for statements that EXPLAIN does not show.
pub fn explain(plan: Plan, format: Format) -> Result<Plan, SqlError> {
    let of = ColumnType::new(TypeKind::LongText);
    let columns = || Columns::from([ColumnMeta::expression("EXPLAIN", of)]);
    let shown = match format {
        Format::Analyze if matches!(plan, Plan::Select(_) | Plan::Query(_)) => {
            let analyze = AnalyzePlan { columns: columns(), plan };
            return Ok(Plan::Analyze(Box::new(analyze)));
        }
        Format::Analyze => {
            return Err(error::not_supported("EXPLAIN ANALYZE of other statements than queries"));
        }
        Format::Tree => {
            let text = tree::tree(&plan)?;
            let tables = plan.tables().to_vec();
            ExplainPlan { columns: columns(), rows: vec![vec![Value::text(&text)]], tables }
        }
        Format::Traditional => rows::rows(&plan)?,
    };
    Ok(Plan::Explain(Box::new(shown)))
}

/// The tree of a query that has run.
pub(crate) fn analyzed(plan: &Plan, actual: &actual::Actual<'_>) -> String {
    tree::analyzed(plan, actual)
}

/// 1235 for what has no plan.
fn not_shown() -> SqlError {
    error::not_supported("EXPLAIN of this statement")
}
