//! What happens to the rows that were read: expressions, groups, DISTINCT, order, limit.

use super::compare_rows;
use crate::error;
use crate::expr::RowSource;
use crate::plan::Columns;
use crate::plan::select::{Grouping, SelectPlan, input_type};
use crate::session::STATEMENT_BYTES_MAX;
use lats_base::map::Map;
use lats_values::{Accumulator, EvalContext, Expr, SqlError, Value, eval, group_key};

/// Rows beyond a limit that are kept until the next sort.
const SORT_SLACK: usize = 4_096;

struct Group {
    /// The image of its first row, for expressions that are equal for all its rows.
    row: Option<Vec<u8>>,
    accumulators: Vec<Accumulator>,
}

struct Sorted {
    order: Vec<Value>,
    row: Vec<Value>,
}

/// Turns row images into the rows of a result.
pub(super) struct Collector<'a> {
    plan: &'a SelectPlan,
    externals: &'a [Value],
    context: EvalContext,
    skip: u64,
    left: u64,
    groups: Vec<Group>,
    group_numbers: Map<Vec<u8>, usize>,
    seen: Map<Vec<u8>, ()>,
    sorted: Vec<Sorted>,
    descending: Vec<bool>,
    sorts: bool,
    columns: Columns,
    pending: Vec<Vec<Value>>,
    bytes: usize,
}

impl<'a> Collector<'a> {
    pub(super) fn new(
        plan: &'a SelectPlan,
        externals: &'a [Value],
        offset: u64,
        count: u64,
    ) -> Self {
        Self {
            plan,
            externals,
            context: EvalContext::new(false),
            skip: offset,
            left: count,
            groups: Vec::new(),
            group_numbers: Map::default(),
            seen: Map::default(),
            sorted: Vec::new(),
            descending: plan.order.iter().map(|(_, descending)| *descending).collect(),
            sorts: plan.sorts(),
            columns: plan.columns_with(externals),
            pending: Vec::new(),
            bytes: 0,
        }
    }

    pub(super) fn externals(&self) -> &'a [Value] {
        self.externals
    }

    pub(super) fn columns(&self) -> Columns {
        Columns::clone(&self.columns)
    }

    /// No more rows than this are needed of a scan that filters.
    pub(super) fn scan_limit(&self) -> Option<u64> {
        let all = self.buffers() || self.plan.distinct || self.left == u64::MAX;
        (!all).then(|| self.skip.saturating_add(self.left))
    }

    /// The scan does not give the order after all.
    pub(super) fn must_sort(&mut self) {
        self.sorts = !self.plan.order.is_empty();
    }

    /// True if rows cannot be passed on as they come.
    pub(super) fn buffers(&self) -> bool {
        self.plan.grouping.is_some() || self.sorts
    }

    pub(super) fn pending(&self) -> &[Vec<Value>] {
        &self.pending
    }

    pub(super) fn take(&mut self) -> Vec<Vec<Value>> {
        std::mem::take(&mut self.pending)
    }

    pub(super) fn warnings(&mut self) -> Vec<SqlError> {
        std::mem::take(&mut self.context.warnings)
    }

    /// The condition of a SELECT without a table.
    pub(super) fn dummy_matches(&mut self) -> Result<bool, SqlError> {
        match &self.plan.access.filter {
            None => Ok(true),
            Some(filter) => {
                let source = RowSource::constant(self.externals);
                lats_values::is_true(filter, &source, &mut self.context)
            }
        }
    }

    /// Takes a row; true if no more are wanted.
    pub(super) fn push(&mut self, image: &[u8]) -> Result<bool, SqlError> {
        if let Some(grouping) = &self.plan.grouping {
            self.accumulate(grouping, image)?;
            return Ok(false);
        }
        let source = source(self.plan, self.externals, Some(image), &[]);
        let row = output(self.plan, &self.columns, &source, &mut self.context)?;
        let order = order_values(self.plan, self.sorts, &source, &mut self.context)?;
        self.emit(row, order)
    }

    /// No more rows come.
    pub(super) fn finish(&mut self) -> Result<(), SqlError> {
        if let Some(grouping) = &self.plan.grouping {
            self.finish_groups(grouping)?;
        }
        if self.sorts {
            self.sort();
            for sorted in std::mem::take(&mut self.sorted) {
                self.deliver(sorted.row);
            }
        }
        Ok(())
    }

    pub(super) fn check_memory(&self, more: usize) -> Result<(), SqlError> {
        if self.bytes.saturating_add(more) > STATEMENT_BYTES_MAX {
            return Err(error::out_of_statement_memory());
        }
        Ok(())
    }

    fn emit(&mut self, row: Vec<Value>, order: Vec<Value>) -> Result<bool, SqlError> {
        if self.plan.distinct {
            let mut key = Vec::new();
            group_key(&row, &mut key);
            self.bytes += key.len() + 64;
            self.check_memory(0)?;
            if self.seen.insert(key, ()).is_some() {
                return Ok(false);
            }
        }
        if !self.sorts {
            return Ok(self.deliver(row));
        }
        self.bytes += row_bytes(&row) + row_bytes(&order);
        self.sorted.push(Sorted { order, row });
        let wanted = usize::try_from(self.skip.saturating_add(self.left)).unwrap_or(usize::MAX);
        if self.sorted.len() >= wanted.saturating_mul(2).saturating_add(SORT_SLACK) {
            self.sort();
            self.sorted.truncate(wanted);
            let kept = self.sorted.iter().map(|s| row_bytes(&s.row) + row_bytes(&s.order));
            self.bytes = kept.sum();
        }
        self.check_memory(0)?;
        Ok(false)
    }

    /// Sends a row on unless OFFSET or LIMIT leave it out; true if no more are wanted.
    fn deliver(&mut self, row: Vec<Value>) -> bool {
        if self.skip > 0 {
            self.skip -= 1;
        } else if self.left > 0 {
            self.left -= 1;
            self.pending.push(row);
        }
        self.left == 0
    }

    fn sort(&mut self) {
        let descending = &self.descending;
        self.sorted.sort_by(|a, b| compare_rows(&a.order, &b.order, descending));
    }

    fn accumulate(&mut self, grouping: &Grouping, image: &[u8]) -> Result<(), SqlError> {
        let source = source(self.plan, self.externals, Some(image), &[]);
        let number = if grouping.keys.is_empty() {
            0
        } else {
            let mut values = Vec::with_capacity(grouping.keys.len());
            for key in &grouping.keys {
                values.push(eval(key, &source, &mut self.context)?);
            }
            let mut key = Vec::new();
            group_key(&values, &mut key);
            let next = self.groups.len();
            let entry = key.len() + 64;
            let number = *self.group_numbers.entry(key).or_insert(next);
            if number == next {
                self.bytes += entry;
            }
            number
        };
        if number == self.groups.len() {
            let group = new_group(self.plan, grouping, self.externals, Some(image));
            self.bytes += image.len() + 96 * (1 + grouping.calls.len());
            if self.bytes > STATEMENT_BYTES_MAX {
                return Err(error::out_of_statement_memory());
            }
            self.groups.push(group);
        }
        let Some(group) = self.groups.get_mut(number) else { return Ok(()) };
        for (call, accumulator) in grouping.calls.iter().zip(&mut group.accumulators) {
            let value = match &call.arg {
                Some(arg) => eval(arg, &source, &mut self.context)?,
                None => Value::Int(1),
            };
            if call.distinct {
                self.bytes += row_bytes(std::slice::from_ref(&value));
            }
            accumulator.add(&value)?;
        }
        if self.bytes > STATEMENT_BYTES_MAX {
            return Err(error::out_of_statement_memory());
        }
        Ok(())
    }

    fn finish_groups(&mut self, grouping: &Grouping) -> Result<(), SqlError> {
        let mut groups = std::mem::take(&mut self.groups);
        if groups.is_empty() && grouping.keys.is_empty() {
            groups.push(new_group(self.plan, grouping, self.externals, None));
        }
        for group in groups {
            let aggregates: Vec<Value> =
                group.accumulators.into_iter().map(|a| a.finish()).collect();
            let source = source(self.plan, self.externals, group.row.as_deref(), &aggregates);
            if let Some(having) = &grouping.having
                && !lats_values::is_true(having, &source, &mut self.context)?
            {
                continue;
            }
            let row = output(self.plan, &self.columns, &source, &mut self.context)?;
            let order = order_values(self.plan, self.sorts, &source, &mut self.context)?;
            if self.emit(row, order)? {
                break;
            }
        }
        Ok(())
    }
}

fn new_group(
    plan: &SelectPlan,
    grouping: &Grouping,
    externals: &[Value],
    image: Option<&[u8]>,
) -> Group {
    let types = plan.table.as_ref().map_or(&[][..], |t| &t.types);
    let accumulators = grouping
        .calls
        .iter()
        .map(|c| Accumulator::new(c.kind, c.distinct, &input_type(c, types, externals)))
        .collect();
    Group { row: image.map(<[u8]>::to_vec), accumulators }
}

fn source<'a>(
    plan: &'a SelectPlan,
    externals: &'a [Value],
    row: Option<&'a [u8]>,
    aggregates: &'a [Value],
) -> RowSource<'a> {
    let layout = plan.table.is_some().then_some(&plan.layout);
    RowSource { layout, row, positions: &plan.positions, aggregates, externals }
}

fn output(
    plan: &SelectPlan,
    columns: &Columns,
    source: &RowSource<'_>,
    context: &mut EvalContext,
) -> Result<Vec<Value>, SqlError> {
    let mut row = Vec::with_capacity(plan.outputs.len());
    for (output, column) in plan.outputs.iter().zip(columns.iter()) {
        let value = value(&output.expr, source, context)?;
        // What is computed takes the type that the client was told.
        row.push(match output.expr {
            Expr::Column(_) => value,
            _ => lats_values::present(value, &column.column_type),
        });
    }
    Ok(row)
}

fn value(
    expr: &Expr,
    source: &RowSource<'_>,
    context: &mut EvalContext,
) -> Result<Value, SqlError> {
    match expr {
        Expr::Column(number) => Ok(lats_values::ColumnSource::column(source, *number)),
        Expr::Literal(value) => Ok(value.clone()),
        other => eval(other, source, context),
    }
}

fn order_values(
    plan: &SelectPlan,
    sorts: bool,
    source: &RowSource<'_>,
    context: &mut EvalContext,
) -> Result<Vec<Value>, SqlError> {
    if !sorts {
        return Ok(Vec::new());
    }
    plan.order.iter().map(|(expr, _)| value(expr, source, context)).collect()
}

fn row_bytes(row: &[Value]) -> usize {
    let heap = |value: &Value| match value {
        Value::Text(text, _) => text.capacity(),
        Value::Bytes(bytes) => bytes.capacity(),
        _ => 0,
    };
    48 + row.iter().map(|v| size_of::<Value>() + heap(v)).sum::<usize>()
}
