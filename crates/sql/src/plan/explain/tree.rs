//! The steps of a plan as an indented tree.

use super::actual::Actual;
use super::not_shown;
use crate::access::Access;
use crate::plan::Plan;
use crate::plan::query::QueryPlan;
use crate::plan::select::SelectPlan;
use crate::table::Table;
use lats_client::api::{LockMode, PRIMARY_INDEX};
use lats_engine::ir::{JoinKind, SetOp};
use lats_engine::physical::{ApplyOutput, Op};
use lats_values::SqlError;

/// The tree of a statement.
pub(super) fn tree(plan: &Plan) -> Result<String, SqlError> {
    let mut out = Lines::default();
    match plan {
        Plan::Select(plan) => select(plan, &mut out),
        Plan::Query(plan) => out.op(&plan.plan.root, plan, 0),
        Plan::Insert(plan) => {
            out.line(0, &format!("Insert into {}", plan.table.def.name));
            match &plan.query {
                Some(query) => out.op(&query.plan.root, query, 1),
                None => {
                    out.line(1, &format!("Rows fetched before execution ({})", plan.rows.len()))
                }
            }
        }
        Plan::Write(plan) => {
            let verb = if plan.assignments.is_some() { "Update" } else { "Delete from" };
            out.line(0, &format!("{verb} {}", plan.table.def.name));
            out.line(1, &access(&plan.table, &plan.table.def.name, &plan.access));
        }
        Plan::Change(plan) => {
            let verb = if plan.updates { "Update" } else { "Delete from" };
            let names: Vec<&str> =
                plan.targets.iter().map(|target| target.table.def.name.as_str()).collect();
            out.line(0, &format!("{verb} {}", names.join(", ")));
            out.op(&plan.query.plan.root, &plan.query, 1);
        }
        Plan::CreateAs(_)
        | Plan::Show(_)
        | Plan::Set(_)
        | Plan::SetQuery(_)
        | Plan::Explain(_)
        | Plan::CreateView(_)
        | Plan::Kill(..)
        | Plan::Analyze(_)
        | Plan::Other(_) => {
            return Err(not_shown());
        }
    }
    Ok(out.text)
}

/// The tree of a query that has run.
pub(super) fn analyzed(plan: &Plan, actual: &Actual<'_>) -> String {
    let mut out = Lines { text: String::new(), actual: Some(actual) };
    match plan {
        Plan::Select(plan) => select(plan, &mut out),
        Plan::Query(plan) => out.op(&plan.plan.root, plan, 0),
        // No other is run.
        _ => {}
    }
    out.text
}

fn select(plan: &SelectPlan, out: &mut Lines<'_>) {
    let mut steps: Vec<String> = Vec::new();
    let mut step = |text: &str| steps.push(text.to_owned());
    if plan.limit.count.is_some() {
        step("Limit");
    }
    if plan.sorts() {
        step("Sort");
    }
    if plan.distinct {
        step("Remove duplicates");
    }
    if let Some(grouping) = &plan.grouping {
        let how = if grouping.keys.is_empty() { "Aggregate" } else { "Group aggregate by hash" };
        step(how);
    }
    match &plan.table {
        None => step("Rows fetched before execution"),
        Some(table) => {
            if plan.access.residual.is_some() {
                step("Filter (in data nodes)");
            }
            let order = match (plan.ordered_scan, plan.reverse) {
                (true, true) => ", in descending order",
                (true, false) => ", in order",
                (false, _) => "",
            };
            let lock = lock(plan.lock);
            step(&format!("{}{order}{lock}", access(table, &plan.alias, &plan.access)));
        }
    }
    let last = steps.len().saturating_sub(1);
    for (depth, text) in steps.into_iter().enumerate() {
        // The first line is the whole query, the last one what it reads; those between are parts of one step.
        let actual = match out.actual {
            Some(Actual::One { all, .. }) if depth == 0 => all.shown(),
            Some(Actual::One { read, .. }) if depth == last => read.shown(),
            _ => String::new(),
        };
        let trips = match out.actual {
            Some(Actual::One { read, .. }) if depth == last && plan.table.is_some() => {
                format!(" (round trips={})", read.trips)
            }
            _ => String::new(),
        };
        out.line(depth, &format!("{text}{actual}{trips}"));
    }
}

fn lock(mode: LockMode) -> &'static str {
    match mode {
        LockMode::Committed => "",
        LockMode::Shared => " (FOR SHARE)",
        LockMode::Exclusive => " (FOR UPDATE)",
    }
}

/// How rows of a table are found.
fn access(table: &Table, alias: &str, access: &Access) -> String {
    let index = match access.index {
        PRIMARY_INDEX => "PRIMARY",
        index => table.def.index(index).map_or("?", |index| &index.name),
    };
    let columns: Vec<&str> =
        access.columns.iter().map(|(column, _)| table.column_name(*column)).collect();
    let columns = columns.join(", ");
    match () {
        () if access.is_key_lookup || access.is_unique_lookup => {
            format!("Single-row index lookup on {alias} using {index} ({columns})")
        }
        () if columns.is_empty() && access.index == PRIMARY_INDEX => {
            format!("Table scan on {alias}")
        }
        () if columns.is_empty() => format!("Index scan on {alias} using {index}"),
        () => format!("Index range scan on {alias} using {index} ({columns})"),
    }
}

#[derive(Default)]
struct Lines<'a> {
    text: String,
    /// What the steps did.
    actual: Option<&'a Actual<'a>>,
}

impl Lines<'_> {
    /// A line of an operator.
    fn of(&mut self, depth: usize, op: &Op, text: &str) {
        let actual = self.actual.map_or_else(String::new, |actual| actual.of(op));
        self.line(depth, &format!("{text}{actual}"));
    }

    fn line(&mut self, depth: usize, text: &str) {
        self.text.push_str(&"    ".repeat(depth));
        self.text.push_str("-> ");
        self.text.push_str(text);
        self.text.push('\n');
    }

    /// A line of a table, which an operator reads, or a join by key.
    fn source(&mut self, op: &Op, (number, plan): (usize, &QueryPlan), depth: usize) {
        let Some(source) = plan.sources.get(number) else { return };
        let filter = match source.access.residual {
            Some(_) => "; filter in data nodes",
            None => "",
        };
        let found = access(&source.table, &source.alias, &source.access);
        let rows = source.touched.found;
        let rows = if rows < 9.5 { format!("{rows:.1}") } else { format!("{rows:.0}") };
        let actual = match (self.actual, op) {
            (None, _) => String::new(),
            (Some(actual), Op::LookupJoin { .. }) => actual.of_lookups(number, source),
            (Some(actual), _) => actual.of_source(op, (number, source)),
        };
        let lock = lock(source.lock.0);
        self.line(depth, &format!("{found}{filter}{lock} (rows={rows}){actual}"));
    }

    fn op(&mut self, op: &Op, plan: &QueryPlan, depth: usize) {
        let below = depth + 1;
        match op {
            Op::Source { source, .. } => self.source(op, (*source, plan), depth),
            Op::Values { rows, .. } => {
                self.of(depth, op, &format!("Rows fetched before execution ({})", rows.len()));
            }
            // Columns cost no step of their own.
            Op::Narrow { input, .. } | Op::Extend { input, .. } => self.op(input, plan, depth),
            Op::HashJoin { kind, left, right, pairs, .. } => {
                self.of(depth, op, &format!("{} hash join ({} columns)", join(*kind), pairs.len()));
                self.op(left, plan, below);
                self.line(below, "Hash");
                self.op(right, plan, below + 1);
            }
            Op::NestedJoin { kind, left, right, .. } => {
                self.of(depth, op, &format!("Nested loop {} join", join(*kind).to_lowercase()));
                self.op(left, plan, below);
                self.line(below, "Materialize");
                self.op(right, plan, below + 1);
            }
            Op::LookupJoin { kind, left, source, residual, beyond, .. } => {
                let kind = join(*kind).to_lowercase();
                let rest = if residual.is_some() { ", filter" } else { "" };
                let turned = match (self.actual, beyond) {
                    (Some(actual), Some(beyond)) => actual.of_switch(beyond),
                    _ => String::new(),
                };
                let text =
                    format!("Nested loop {kind} join, keys of many rows at once{rest}{turned}");
                self.of(depth, op, &text);
                self.op(left, plan, below);
                self.source(op, (*source, plan), below);
            }
            Op::Apply { output, left, right, when, .. } => {
                let what = match output {
                    ApplyOutput::Join(kind) => {
                        format!("Apply ({} join)", join(*kind).to_lowercase())
                    }
                    ApplyOutput::Mark => "Apply (condition with a subquery)".to_owned(),
                    ApplyOutput::Single => "Apply (value of a subquery)".to_owned(),
                };
                self.of(depth, op, &what);
                self.op(left, plan, below);
                let needed = if when.is_some() { ", where it is needed" } else { "" };
                let text = "For each row, and once for rows with the same parameters";
                self.line(below, &format!("{text}{needed}"));
                self.op(right, plan, below + 1);
            }
            other => self.one_input(other, plan, depth),
        }
    }

    fn one_input(&mut self, op: &Op, plan: &QueryPlan, depth: usize) {
        let (text, inputs): (&str, Vec<&Op>) = match op {
            Op::Filter { input, .. } => ("Filter", vec![input]),
            Op::Aggregate { input, keys, rollup, .. } => match (keys.is_empty(), rollup) {
                (true, _) => ("Aggregate", vec![input]),
                (false, false) => ("Group aggregate by hash", vec![input]),
                (false, true) => ("Group aggregate by hash, with totals", vec![input]),
            },
            Op::Window { input, .. } => ("Window aggregate", vec![input]),
            Op::Distinct { input, .. } => ("Remove duplicates", vec![input]),
            Op::Sort { input, top: Some(_), .. } => ("Sort, and keep the first rows", vec![input]),
            Op::Sort { input, .. } => ("Sort", vec![input]),
            Op::Limit { input, .. } => ("Limit", vec![input]),
            Op::MaxOneRow { input } => ("At most one row", vec![input]),
            Op::Set { op, all, left, right } => {
                let text = match (op, all) {
                    (SetOp::Union, true) => "Append",
                    (SetOp::Union, false) => "Union, without duplicates",
                    (SetOp::Intersect, _) => "Intersect",
                    (SetOp::Except, _) => "Except",
                };
                (text, vec![left, right])
            }
            Op::Recursive { anchor, step, .. } => {
                ("Repeat until no row is new", vec![anchor, step])
            }
            Op::Working { .. } => ("Rows of the step before", vec![]),
            _ => ("?", vec![]),
        };
        self.of(depth, op, text);
        for input in inputs {
            self.op(input, plan, depth + 1);
        }
    }
}

fn join(kind: JoinKind) -> &'static str {
    match kind {
        JoinKind::Inner => "Inner",
        JoinKind::Left => "Left",
        JoinKind::Semi => "Semi",
        JoinKind::Anti => "Anti",
    }
}
