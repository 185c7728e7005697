//! What a session asks of a plan.

use crate::plan::Plan;
use lats_mysql_syntax::Statement as Syntax;

/// True if a table of the plan has a YEAR: constants beside it are read in a way of their own.
pub(super) fn reads_years(plan: &Plan) -> bool {
    let has_year = |table: &crate::table::Table| {
        table.types.iter().any(|of| of.kind == lats_values::TypeKind::Year)
    };
    match plan {
        Plan::Select(plan) => plan.table.as_ref().is_some_and(|table| has_year(table)),
        Plan::Query(plan) => plan.sources.iter().any(|source| has_year(&source.table)),
        Plan::Write(plan) => has_year(&plan.table),
        Plan::Change(plan) => plan.query.sources.iter().any(|source| has_year(&source.table)),
        _ => false,
    }
}

/// True for statements that read no table: what the statement before has left stays, as in MySQL.
pub(super) fn keeps_diagnostics(plan: &Plan) -> bool {
    match plan {
        Plan::Show(show) => show.reads_diagnostics(),
        Plan::Select(select) => select.table.is_none(),
        Plan::Set(_) => true,
        _ => false,
    }
}

/// True for COMMIT and ROLLBACK.
pub(super) fn ends_transaction(plan: &Plan) -> bool {
    matches!(plan, Plan::Other(parsed)
        if matches!(parsed.statement, Syntax::Rollback(_) | Syntax::Commit(_)))
}
