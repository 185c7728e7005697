//! MySQL's table of EXPLAIN: a row for each table, in the order in which tables are read.

use super::{ExplainPlan, not_shown};
use crate::access::Access;
use crate::plan::query::QueryPlan;
use crate::plan::{ColumnMeta, Columns, Plan};
use crate::table::Table;
use lats_client::api::PRIMARY_INDEX;
use lats_engine::physical::{Op, Touched};
use lats_values::{ColumnType, SqlError, TypeKind, Value};

/// The names of the columns, and which of them are numbers.
const COLUMNS: [(&str, bool); 12] = [
    ("id", true),
    ("select_type", false),
    ("table", false),
    ("partitions", false),
    ("type", false),
    ("possible_keys", false),
    ("key", false),
    ("key_len", false),
    ("ref", false),
    ("rows", true),
    ("filtered", false),
    ("Extra", false),
];

pub(super) fn rows(plan: &Plan) -> Result<ExplainPlan, SqlError> {
    let mut found = Found::default();
    match plan {
        Plan::Select(plan) => match &plan.table {
            None => found.no_table("SIMPLE"),
            Some(table) => {
                let mut extra = Vec::new();
                if plan.access.residual.is_some() {
                    extra.push("Using where");
                }
                if plan.grouping.as_ref().is_some_and(|g| !g.keys.is_empty()) || plan.distinct {
                    extra.push("Using temporary");
                }
                if plan.sorts() {
                    extra.push("Using filesort");
                }
                found.table("SIMPLE", (table, &plan.alias, &plan.access), &extra, false);
            }
        },
        Plan::Query(plan) => found.query(plan, "SIMPLE"),
        Plan::Insert(plan) => {
            found.row("INSERT", Some(&plan.table.def.name), "ALL", None, &[]);
            if let Some(query) = &plan.query {
                found.query(query, "SIMPLE");
            }
        }
        Plan::Write(plan) => {
            let verb = if plan.assignments.is_some() { "UPDATE" } else { "DELETE" };
            let place = (&*plan.table, plan.table.def.name.as_str(), &plan.access);
            found.table(verb, place, &["Using where"], false);
        }
        Plan::Change(plan) => {
            found.query(&plan.query, if plan.updates { "UPDATE" } else { "DELETE" });
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
    Ok(ExplainPlan { columns: columns(), rows: found.rows, tables: plan.tables().to_vec() })
}

fn columns() -> Columns {
    let of = |number: bool| match number {
        true => ColumnType::new(TypeKind::BigInt).unsigned(),
        false => ColumnType::new(TypeKind::VarChar { chars: 512 }),
    };
    COLUMNS.iter().map(|(name, number)| ColumnMeta::expression(name, of(*number))).collect()
}

#[derive(Default)]
struct Found {
    rows: Vec<Vec<Value>>,
}

impl Found {
    fn query(&mut self, plan: &QueryPlan, select_type: &str) {
        let before = self.rows.len();
        self.op(&plan.plan.root, plan, select_type, false);
        if self.rows.len() == before {
            self.no_table(select_type);
        }
    }

    fn op(&mut self, op: &Op, plan: &QueryPlan, select_type: &str, joined: bool) {
        match op {
            Op::Source { source, .. } => self.source(plan, *source, select_type, joined),
            Op::LookupJoin { left, source, .. } => {
                self.op(left, plan, select_type, joined);
                self.asked(plan, *source, select_type);
            }
            Op::HashJoin { left, right, .. } | Op::NestedJoin { left, right, .. } => {
                self.op(left, plan, select_type, joined);
                self.op(right, plan, select_type, true);
            }
            Op::Apply { left, right, .. } => {
                self.op(left, plan, select_type, joined);
                self.op(right, plan, "SUBQUERY", false);
            }
            Op::Set { left, right, .. } => {
                self.op(left, plan, "PRIMARY", false);
                self.op(right, plan, "UNION", false);
            }
            Op::Recursive { anchor, step, .. } => {
                self.op(anchor, plan, "PRIMARY", false);
                self.op(step, plan, "UNION", false);
            }
            Op::Filter { input, .. }
            | Op::Extend { input, .. }
            | Op::Narrow { input, .. }
            | Op::Aggregate { input, .. }
            | Op::Window { input, .. }
            | Op::Distinct { input, .. }
            | Op::Sort { input, .. }
            | Op::Limit { input, .. }
            | Op::MaxOneRow { input } => self.op(input, plan, select_type, joined),
            Op::Values { .. } | Op::Working { .. } => {}
        }
    }

    /// A table that is asked with values of the rows before.
    fn asked(&mut self, plan: &QueryPlan, number: usize, select_type: &str) {
        let Some(source) = plan.sources.get(number) else { return };
        let extra: &[&str] = if source.access.residual.is_some() { &["Using where"] } else { &[] };
        let place = (&*source.table, source.alias.as_str(), &source.access);
        self.table(select_type, place, extra, true);
        if let Some(row) = self.rows.last_mut() {
            estimate(source.touched, row);
        }
    }

    fn source(&mut self, plan: &QueryPlan, number: usize, select_type: &str, joined: bool) {
        let Some(source) = plan.sources.get(number) else { return };
        let mut extra = Vec::new();
        if source.access.residual.is_some() {
            extra.push("Using where");
        }
        let is_lookup = source.access.is_key_lookup || source.access.is_unique_lookup;
        if joined && !is_lookup {
            extra.push("Using join buffer (hash join)");
        }
        let place = (&*source.table, source.alias.as_str(), &source.access);
        self.table(select_type, place, &extra, joined);
        if let Some(row) = self.rows.last_mut() {
            estimate(source.touched, row);
        }
    }

    fn table(
        &mut self,
        select_type: &str,
        (table, alias, access): (&Table, &str, &Access),
        extra: &[&str],
        joined: bool,
    ) {
        let index = match access.index {
            PRIMARY_INDEX => "PRIMARY",
            index => table.def.index(index).map_or("PRIMARY", |index| &index.name),
        };
        let kind = match (access.is_key_lookup || access.is_unique_lookup, joined) {
            (true, true) => "eq_ref",
            (true, false) => "const",
            (false, true) if access.fixed > 0 => "ref",
            (false, _) if !access.columns.is_empty() => "range",
            (false, _) if access.index != PRIMARY_INDEX => "index",
            (false, _) => "ALL",
        };
        let key = (kind != "ALL").then_some(index);
        let key_bytes: usize = access
            .columns
            .iter()
            .filter_map(|(column, _)| table.types.get(usize::from(*column)))
            .map(|of| of.max_bytes() + usize::from(of.nullable))
            .sum();
        let key = key.map(|key| (key, key_bytes));
        self.row(select_type, Some(alias), kind, key, extra);
    }

    fn no_table(&mut self, select_type: &str) {
        self.row(select_type, None, "", None, &["No tables used"]);
    }

    fn row(
        &mut self,
        select_type: &str,
        table: Option<&str>,
        kind: &str,
        key: Option<(&str, usize)>,
        extra: &[&str],
    ) {
        let (key, key_bytes) = key.unzip();
        let text = |text: Option<&str>| text.map_or(Value::Null, Value::text);
        let key_bytes = key_bytes.map(|bytes| bytes.to_string());
        self.rows.push(vec![
            Value::UInt(1),
            Value::text(select_type),
            text(table),
            Value::Null,
            text(Some(kind).filter(|kind| !kind.is_empty())),
            text(key),
            text(key),
            text(key_bytes.as_deref()),
            Value::Null,
            Value::Null,
            Value::Null,
            text(Some(extra.join("; ").as_str()).filter(|extra| !extra.is_empty())),
        ]);
    }
}

/// The rows that are looked at for each row of the tables before, and how many of a hundred of them pass the condition.
fn estimate(touched: Touched, row: &mut [Value]) {
    let Touched { looked_at, found } = touched;
    let filtered = (100.0 * found / looked_at.max(0.01)).clamp(0.01, 100.0);
    if let Some([rows, percent]) = row.get_mut(9..11) {
        *rows = Value::UInt(looked_at.max(1.0).round() as u64);
        *percent = Value::text(&format!("{filtered:.2}"));
    }
}
