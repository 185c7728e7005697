//! EXPLAIN: what a statement would do, as a tree or as MySQL's table.

pub(crate) mod actual;
mod blocks;
mod json;
mod rows;
mod tree;

use super::{ColumnMeta, Columns, Plan, known};
use crate::access::Access;
use crate::error;
use crate::syntax::Context;
use crate::table::Table;
use blocks::{Block, Blocks, Outside};
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
    /// A tree of JSON, with MySQL's names.
    Json,
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
        "JSON" => Ok(Format::Json),
        _ => Err(error::make(1791, "HY000", &format!("Unknown EXPLAIN format name: '{shown}'"))),
    }
}

/// Shows a plan, or says how it is shown when it has run.
///
/// # Errors
/// 1235 for statements that EXPLAIN does not show.
pub fn explain(plan: Plan, format: Format, context: &Context<'_>) -> Result<Plan, SqlError> {
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
        Format::Traditional => {
            let (block, _) = block(&plan, context)?;
            let (columns, rows) = (rows::columns(), rows::rows(&block));
            ExplainPlan { columns, rows, tables: plan.tables().to_vec() }
        }
        Format::Json => {
            let (block, verb) = block(&plan, context)?;
            let rows = vec![vec![Value::text(&json::text(&block, verb))]];
            ExplainPlan { columns: columns(), rows, tables: plan.tables().to_vec() }
        }
    };
    Ok(Plan::Explain(Box::new(shown)))
}

/// The outermost block of a plan, and what its first table suffers.
fn block(plan: &Plan, context: &Context<'_>) -> Result<(Block, Option<&'static str>), SqlError> {
    let of_table = |place: (&Table, &str, &Access), projection: Option<&[u16]>| {
        let outside = Outside { values: context.values, constants: u32::MAX, given: &[] };
        let mut line = blocks::line(place, projection, &outside);
        line.touched = known::touched(place.0, place.2, context);
        line
    };
    let block = |select_type: &str, lines| Block {
        id: 1,
        select_type: select_type.to_owned(),
        lines,
        ..Block::default()
    };
    Ok(match plan {
        Plan::Select(plan) => {
            let line = plan.table.as_ref().map(|table| {
                of_table((table, &plan.alias, &plan.access), plan.projection.as_deref())
            });
            let groups = plan.grouping.as_ref().is_some_and(|grouping| !grouping.keys.is_empty());
            let (sorts, distinct) = (plan.sorts(), plan.distinct);
            let block = block("SIMPLE", line.into_iter().collect());
            (Block { sorts, groups, distinct, ..block }, None)
        }
        Plan::Query(plan) => (Blocks::new(plan, context.values).root("SIMPLE"), None),
        Plan::Insert(plan) => {
            let access = Access::choose(&plan.table, None);
            let place = (&*plan.table, plan.table.def.name.as_str(), &access);
            let mut line = of_table(place, None);
            (line.touched, line.possible) = (None, Vec::new());
            let mut block = block("INSERT", vec![line]);
            if let Some(query) = &plan.query {
                block.inner.push(Blocks::new(query, context.values).root("SIMPLE"));
            }
            (block, Some("insert"))
        }
        Plan::Write(plan) => {
            let (select_type, verb) = match plan.assignments {
                Some(_) => ("UPDATE", "update"),
                None => ("DELETE", "delete"),
            };
            let place = (&*plan.table, plan.table.def.name.as_str(), &plan.access);
            let mut line = of_table(place, None);
            // As MySQL says: rows that are changed are found by ranges.
            if matches!(line.kind, "const" | "ref") {
                line.kind = "range";
            }
            (block(select_type, vec![line]), Some(verb))
        }
        Plan::Change(plan) => {
            let (select_type, verb) =
                if plan.updates { ("UPDATE", "update") } else { ("DELETE", "delete") };
            (Blocks::new(&plan.query, context.values).root(select_type), Some(verb))
        }
        _ => return Err(not_shown()),
    })
}

/// The tree of a query that has run.
pub(crate) fn analyzed(plan: &Plan, actual: &actual::Actual<'_>) -> String {
    tree::analyzed(plan, actual)
}

/// 1235 for what has no plan.
fn not_shown() -> SqlError {
    error::not_supported("EXPLAIN of this statement")
}
