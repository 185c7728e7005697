//! EXPLAIN: what a statement would do, as a tree or as MySQL's table.

mod rows;
mod tree;

use super::{ColumnMeta, Columns, Plan};
use crate::error;
use crate::syntax::Context;
use lats_mysql_syntax::tree::{Explain, ExplainWhat};
use lats_values::{ColumnType, SqlError, TypeKind, Value};

/// What EXPLAIN shows.
#[derive(Debug)]
pub struct ExplainPlan {
    /// The columns.
    pub columns: Columns,
    /// The rows.
    pub rows: Vec<Vec<Value>>,
}

/// How a plan is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A tree of steps.
    Tree,
    /// A row for each table, with MySQL's twelve columns.
    Traditional,
}

/// The format that EXPLAIN asks for.
///
/// # Errors
/// 1791 for unknown ones, 1235.
pub fn format(explain: &Explain, context: &Context<'_>) -> Result<Format, SqlError> {
    if explain.is_analyze {
        return Err(error::not_supported("EXPLAIN ANALYZE"));
    }
    if explain.into.is_some() || explain.schema.is_some() {
        return Err(error::not_supported("EXPLAIN INTO and FOR SCHEMA"));
    }
    if matches!(explain.what, ExplainWhat::Connection(_)) {
        return Err(error::not_supported("EXPLAIN FOR CONNECTION"));
    }
    let name = crate::syntax::name(context.tree(), explain.format)?;
    match name.to_ascii_uppercase().as_str() {
        "" | "TRADITIONAL" => Ok(Format::Traditional),
        "TREE" => Ok(Format::Tree),
        "JSON" => Err(error::not_supported("EXPLAIN FORMAT=JSON")),
        _ => Err(error::make(1791, "HY000", &format!("Unknown EXPLAIN format name: '{name}'"))),
    }
}

/// Shows a plan.
///
/// # Errors
/// 1235 for statements that EXPLAIN does not show.
pub fn explain(plan: &Plan, format: Format) -> Result<ExplainPlan, SqlError> {
    match format {
        Format::Tree => {
            let text = tree::tree(plan)?;
            let of = ColumnType::new(TypeKind::LongText);
            let columns = Columns::from([ColumnMeta::expression("EXPLAIN", of)]);
            Ok(ExplainPlan { columns, rows: vec![vec![Value::text(&text)]] })
        }
        Format::Traditional => rows::rows(plan),
    }
}

/// 1235 for what has no plan.
fn not_shown() -> SqlError {
    error::not_supported("EXPLAIN of this statement")
}
