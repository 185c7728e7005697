//! Plans of SELECT over one table or none.

use super::{ColumnMeta, Columns, Limit};
use crate::access::Access;
use crate::bind::Binder;
use crate::bind::grouping::Select;
use crate::expr::{AGGREGATE_BASE, map_columns, type_of};
use crate::table::Table;
use lats_client::api::{LockMode, LockWait, PRIMARY_INDEX};
use lats_engine::ir::{Rel, SourceId, walk};
use lats_values::{AggregateKind, ColumnType, Expr, Look, Program, RowLayout, Value};
use std::sync::Arc;

/// A call of an aggregate function.
#[derive(Clone, Debug, PartialEq)]
pub struct AggregateCall {
    /// Which function.
    pub kind: AggregateKind,
    /// DISTINCT.
    pub distinct: bool,
    /// What it aggregates; none for COUNT(*).
    pub arg: Option<Expr>,
}

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
    pub program: Option<Arc<[u8]>>,
    /// The result's columns, where they are the same in every run.
    pub columns: Option<Columns>,
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
            return columns.clone();
        }
        let types = self.table.as_ref().map_or(&[][..], |t| &t.types);
        let aggregates = self.aggregate_types(externals);
        let meta = |output: &Output| match (&output.expr, &self.table) {
            (Expr::Column(at), Some(table)) if (*at as usize) < table.types.len() => {
                ColumnMeta::column(table, &self.alias, column_number(*at), &output.name)
            }
            (expr, _) => {
                let of = type_of(expr, types, &aggregates, externals);
                ColumnMeta::computed(&output.name, of, self.look_of(expr, types, externals))
            }
        };
        self.outputs.iter().map(meta).collect()
    }
}

impl SelectPlan {
    /// How values of an expression are shown.
    fn look_of(&self, expr: &Expr, types: &[ColumnType], externals: &[Value]) -> Look {
        let calls = self.grouping.as_ref().map_or(&[][..], |grouping| &grouping.calls);
        let looks: Vec<Look> = calls.iter().map(|call| look_of_call(call, types)).collect();
        let (plain, all) =
            crate::expr::renumbered(expr, types, &self.aggregate_types(externals), externals);
        let known = |number: u32| {
            let at = (number as usize).checked_sub(types.len())?;
            looks.get(at).copied()
        };
        match plain {
            // The result of an aggregate function itself.
            Expr::Column(number) => known(number).unwrap_or_default(),
            plain => Look::of(&plain, &all, &known),
        }
    }
}

/// How values of an aggregate function are shown.
fn look_of_call(call: &AggregateCall, types: &[ColumnType]) -> Look {
    let of_arg = call.arg.as_ref().map(|arg| Look::of(arg, types, &|_| None)).unwrap_or_default();
    let plain = Look { is_expression: true, ..Look::default() };
    match call.kind {
        AggregateKind::Count | AggregateKind::CountStar => Look { width: Some(21), ..plain },
        AggregateKind::Min | AggregateKind::Max => Look { declared: None, ..of_arg },
        AggregateKind::Sum => Look { decimals: of_arg.decimals, ..plain },
        AggregateKind::Avg => {
            Look { decimals: of_arg.decimals.map(|digits| (digits + 4).min(30)), ..plain }
        }
        _ => plain,
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

/// The plan of a SELECT that reads one table or none, without subqueries and windows; none for others.
pub fn plan(
    select: &Select,
    binder: &Binder<'_>,
    lock: (LockMode, LockWait),
) -> Option<SelectPlan> {
    let table = match &select.from {
        Rel::Scan(scan) if scan.source == SourceId(0) && binder.sources[0].first == 0 => {
            Some(&binder.sources[0])
        }
        Rel::Values { columns, .. } if columns.is_empty() => None,
        _ => return None,
    };
    let is_plain = select.in_filter.is_empty()
        && select.below.is_empty()
        && select.above.is_empty()
        && select.windows.is_empty()
        && select.rollup.is_empty()
        && !select.counts_all
        && (select.is_grouped || select.having.is_none());
    if !is_plain || table.is_some_and(|source| !source.hints.is_empty()) {
        return None;
    }
    let calls = aggregate_calls(select)?;
    if select.filter.as_ref().is_some_and(walk::is_local) {
        return None;
    }
    let values = select.outputs.iter().map(|output| &output.expr);
    let order = select.order.iter().map(|key| &key.value);
    if values.chain(order).chain(&select.keys).any(walk::is_volatile) {
        return None;
    }
    // The results of aggregate functions have numbers of their own here.
    let renumber = |expr: &Expr| {
        map_columns(expr, &|number| {
            let at = select.calls.iter().position(|call| call.column.0 == number)?;
            Some(Expr::Column(AGGREGATE_BASE + u32::try_from(at).ok()?))
        })
    };
    let keys = select.keys.clone();
    let having = select.having.as_ref().map(renumber);
    let outputs = select.outputs.iter();
    let outputs = outputs.map(|o| Output { expr: renumber(&o.expr), name: o.name.clone() });
    let order = select.order.iter().map(|key| (renumber(&key.value), key.descending)).collect();
    let plan = SelectPlan {
        access: Access {
            index: PRIMARY_INDEX,
            columns: Vec::new(),
            is_key_lookup: false,
            is_unique_lookup: false,
            residual: None,
            filter: select.filter.clone(),
            fixed: 0,
        },
        alias: table.map_or_else(String::new, |source| source.alias.clone()),
        projection: None,
        layout: RowLayout::new(&[]),
        positions: Vec::new(),
        outputs: outputs.collect(),
        grouping: select.is_grouped.then_some(Grouping { keys, calls, having }),
        distinct: select.distinct,
        order,
        ordered_scan: false,
        reverse: false,
        limit: Limit { count: select.limit.0.clone(), offset: select.limit.1.clone() },
        lock: lock.0,
        wait: lock.1,
        program: None,
        columns: None,
        table: table.map(|source| Arc::clone(&source.table)),
    };
    Some(finish(plan, select.filter.clone()))
}

/// The aggregate functions, if all are of the plain kinds.
fn aggregate_calls(select: &Select) -> Option<Vec<AggregateCall>> {
    use AggregateKind as A;
    let call = |call: &lats_engine::ir::Call| {
        let kind = call.spec.kind;
        let is_plain = matches!(kind, A::Count | A::CountStar | A::Sum | A::Avg | A::Min | A::Max);
        (is_plain && call.args.len() <= 1).then(|| AggregateCall {
            kind,
            distinct: call.spec.distinct,
            arg: call.args.first().cloned(),
        })
    };
    select.calls.iter().map(call).collect()
}

fn finish(mut plan: SelectPlan, filter: Option<Expr>) -> SelectPlan {
    if let Some(table) = plan.table.clone() {
        plan.access = Access::choose(&table, filter).with_comparators(&table, u32::MAX);
        choose_order(&mut plan, &table);
        project(&mut plan, &table);
        if !plan.access.residual.as_ref().is_some_and(crate::expr::has_externals) {
            let filter = plan.access.residual.clone();
            plan.program = Some(encode_program(filter, plan.projection.clone()).into());
        }
    }
    let fixed = plan.outputs.iter().all(|o| !crate::expr::has_externals(&o.expr))
        && plan.grouping.as_ref().is_none_or(|g| {
            g.calls.iter().all(|c| !c.arg.as_ref().is_some_and(crate::expr::has_externals))
        });
    if fixed {
        plan.columns = Some(plan.columns_with(&[]));
    }
    plan
}

/// A program that only reads; nothing for one that does nothing.
pub fn encode_program(filter: Option<Expr>, projection: Option<Vec<u16>>) -> Vec<u8> {
    encode_strict_program(filter, projection, false)
}

/// The same; with `strict`, values that do not fit are errors.
pub fn encode_strict_program(
    filter: Option<Expr>,
    projection: Option<Vec<u16>>,
    strict: bool,
) -> Vec<u8> {
    if filter.is_none() && projection.is_none() {
        return Vec::new();
    }
    Program { filter, assignments: Vec::new(), projection, strict }.encode()
}

/// A column's position in its table; tables have fewer than that many columns.
pub(crate) fn column_number(number: u32) -> u16 {
    u16::try_from(number).unwrap_or(u16::MAX)
}

fn choose_order(plan: &mut SelectPlan, table: &Table) {
    let columns: Option<Vec<(u16, bool)>> = plan
        .order
        .iter()
        .map(|(expr, descending)| match expr {
            Expr::Column(at) if (*at as usize) < table.types.len() => {
                Some((column_number(*at), *descending))
            }
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
    let mut visit = |number: u32| {
        if (number as usize) < table.types.len() {
            needed.insert(column_number(number));
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
