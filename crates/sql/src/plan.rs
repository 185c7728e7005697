//! Plans: statements bound to the catalog, ready to run many times with other values.

pub mod change;
pub mod check;
mod columns;
pub mod explain;
pub mod insert;
pub mod known;
pub mod query;
pub mod select;
pub mod view;
pub mod write;

use crate::expr::External;
pub use columns::{ColumnMeta, Columns};
use lats_base::TableId;
use lats_values::{ColumnType, Expr};
use std::sync::Arc;

/// A statement that is ready to run.
#[derive(Debug)]
pub struct Prepared {
    /// What to do.
    pub plan: Plan,
    /// The values that it takes from outside.
    pub externals: Vec<External>,
    /// Number of `?`.
    pub parameters: u16,
    /// The catalog that it was bound to.
    pub catalog_version: u64,
    /// Its constants mean more than their values: they are not taken out of its text.
    pub reads_constants: bool,
    /// The hint MAX_EXECUTION_TIME; 0: none.
    pub time_limit_ms: u32,
    /// Bytes that it takes, if somebody has measured it.
    pub bytes: usize,
}

impl Prepared {
    /// The types of its values from outside that it was made for; none if it is the same for all types.
    pub fn external_types(&self) -> Option<&[ColumnType]> {
        let query = self.plan.query().filter(|_| !self.externals.is_empty())?;
        Some(&query.external_types)
    }

    /// It may be kept for others that send the same text.
    pub fn is_kept(&self) -> bool {
        matches!(
            self.plan,
            Plan::Select(_) | Plan::Query(_) | Plan::Insert(_) | Plan::Write(_) | Plan::Change(_)
        )
    }
}

/// What a statement does.
#[derive(Debug)]
pub enum Plan {
    /// SELECT from one table.
    Select(Box<select::SelectPlan>),
    /// Any other query.
    Query(Box<query::QueryPlan>),
    /// INSERT and REPLACE.
    Insert(Box<insert::InsertPlan>),
    /// UPDATE and DELETE.
    Write(Box<write::WritePlan>),
    /// UPDATE and DELETE of rows that a query finds.
    Change(Box<change::ChangePlan>),
    /// CREATE TABLE … SELECT.
    CreateAs(Box<CreateAsPlan>),
    /// CREATE VIEW and ALTER VIEW.
    CreateView(Box<view::CreateViewPlan>),
    /// EXPLAIN.
    Explain(Box<explain::ExplainPlan>),
    /// EXPLAIN ANALYZE.
    Analyze(Box<explain::AnalyzePlan>),
    /// SHOW and its like.
    Show(Box<crate::show::Show>),
    /// SET.
    Set(Vec<crate::set::Setting>),
    /// SET with subqueries.
    SetQuery(Box<SetQueryPlan>),
    /// KILL: of the session as a whole, or of its statement.
    Kill(bool, Expr),
    /// Everything that needs no plan.
    Other(Box<lats_mysql_syntax::Parsed>),
}

impl Plan {
    /// The query that it runs, if it runs one.
    pub fn query(&self) -> Option<&query::QueryPlan> {
        match self {
            Self::Query(plan) => Some(plan),
            Self::Change(change) => Some(&change.query),
            Self::CreateAs(create) => Some(&create.query),
            Self::SetQuery(set) => Some(&set.query),
            Self::Insert(insert) => insert.query.as_deref(),
            Self::Analyze(analyze) => analyze.plan.query(),
            _ => None,
        }
    }

    /// The tables of its query, and how many rows each was taken to have.
    pub fn tables(&self) -> &[(TableId, Option<f64>)] {
        match self {
            Self::Explain(plan) => &plan.tables,
            other => other.query().map_or(&[], |query| &query.tables),
        }
    }

    /// True if the tables have about as many rows as it was made for.
    pub fn fits(&self, look: known::Look<'_>) -> bool {
        self.tables().iter().all(|(table, taken)| match (taken, look(*table)) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(taken), Some(now)) => {
                let (less, more) = (taken.min(now.rows), taken.max(now.rows));
                more <= less * FACTOR + ROWS
            }
        })
    }
}

/// A plan is made anew when a table has so many times as many rows as then, or as few, and these more.
const FACTOR: f64 = 3.0;
const ROWS: f64 = 200.0;

/// A SET with subqueries in its values.
#[derive(Debug)]
pub struct SetQueryPlan {
    /// The assignments; values of the query stand behind the values from outside.
    pub settings: Vec<crate::set::Setting>,
    /// Gives one row of values.
    pub query: query::QueryPlan,
}

/// A CREATE TABLE … SELECT.
#[derive(Debug)]
pub struct CreateAsPlan {
    /// The statement.
    pub parsed: lats_mysql_syntax::Parsed,
    /// The query.
    pub query: Arc<query::QueryPlan>,
}

/// LIMIT and OFFSET.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limit {
    /// Rows at most.
    pub count: Option<Expr>,
    /// Rows left out before.
    pub offset: Option<Expr>,
}
