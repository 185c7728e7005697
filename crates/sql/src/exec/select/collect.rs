//! What happens to the rows that were read: expressions, groups, DISTINCT, order, limit.

use super::order::{self, OrderKey};
use crate::expr::RowSource;
use crate::plan::Columns;
use crate::plan::select::{Grouping, SelectPlan, input_type};
use crate::session::Share;
use lats_base::map::Map;
use lats_base::planted::{QueryBug, errs};
use lats_engine::run::{LEFT_BYTES_MIN, Sorter, Top};
use lats_values::{Accumulator, ColumnType, EvalContext, Expr, SqlError, Value, eval, group_key};

/// Groups or rows that are finished before others may work.
const ROWS_AT_ONCE: usize = 1_024;
/// Work in expressions after which others may work.
const WORK_AT_ONCE: u64 = 16_384;

struct Group {
    /// The image of its first row, for expressions that are equal for all its rows.
    row: Option<Vec<u8>>,
    accumulators: Vec<Accumulator>,
}

struct Sorted {
    order: OrderKey,
    row: Vec<Value>,
}

impl Sorted {
    /// Memory that it takes.
    fn bytes(&self) -> usize {
        row_bytes(&self.row) + self.order.bytes()
    }
}

/// Rows that are kept for their order.
enum Kept {
    /// So many are wanted at most.
    First(usize, Top<Sorted>),
    /// All are wanted.
    All(Sorter<Sorted>),
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
    kept: Kept,
    /// The groups that are still to be finished, when no more rows come.
    rest: Option<std::vec::IntoIter<Group>>,
    descending: Vec<bool>,
    /// The columns of ORDER BY, if it names columns only.
    order_columns: Option<Vec<u16>>,
    /// Rows that are equal to DISTINCT are those with the same key of ORDER BY.
    distinct_by_order: bool,
    /// The types of ORDER BY, GROUP BY and the arguments of aggregate functions.
    order_types: Vec<ColumnType>,
    key_types: Vec<ColumnType>,
    argument_types: Vec<ColumnType>,
    sorts: bool,
    columns: Columns,
    /// The row at hand, and a key of it: reused, so that a row costs no memory of its own.
    row: Vec<Value>,
    key: Vec<u8>,
    /// Values of the rows that can be sent, one row behind the other.
    pending: Vec<Value>,
    bytes: usize,
    share: Share,
    /// Rows that were given.
    given: u64,
    /// Rows that have come.
    taken: u64,
    /// The work that was left at the last pause.
    work_left: u64,
}

/// What many rows took is dropped elsewhere, and counted until then.
impl Drop for Collector<'_> {
    fn drop(&mut self) {
        if self.bytes < LEFT_BYTES_MIN {
            return;
        }
        let kept = std::mem::replace(&mut self.kept, Kept::All(Sorter::default()));
        let (groups, rest) = (std::mem::take(&mut self.groups), self.rest.take());
        let keys = (std::mem::take(&mut self.group_numbers), std::mem::take(&mut self.seen));
        let (share, report) = self.share.leave();
        crate::exec::drop_elsewhere((kept, groups, rest, keys, share), report);
    }
}

impl<'a> Collector<'a> {
    pub(super) fn new(
        plan: &'a SelectPlan,
        externals: &'a [Value],
        (offset, count): (u64, u64),
        (context, share): (EvalContext, Share),
    ) -> Self {
        let order_columns = order::plain_columns(plan);
        Self {
            plan,
            externals,
            work_left: context.work_left(),
            context,
            skip: offset,
            left: count,
            groups: Vec::new(),
            group_numbers: Map::default(),
            seen: Map::default(),
            kept: match usize::try_from(offset.saturating_add(count)) {
                Ok(wanted) if wanted < usize::MAX => Kept::First(wanted, Top::default()),
                _ => Kept::All(Sorter::default()),
            },
            rest: None,
            descending: plan.order.iter().map(|(_, descending)| *descending).collect(),
            order_types: match &order_columns {
                Some(_) => Vec::new(),
                None => types_of(plan, plan.order.iter().map(|(expr, _)| expr), externals),
            },
            distinct_by_order: plan.distinct && order::tells_all(plan, order_columns.as_deref()),
            order_columns,
            key_types: types_of(plan, plan.grouping.iter().flat_map(|g| &g.keys), externals),
            argument_types: argument_types(plan, externals),
            sorts: plan.sorts(),
            columns: plan.columns_with(externals),
            row: Vec::new(),
            key: Vec::new(),
            pending: Vec::new(),
            bytes: 0,
            share,
            given: 0,
            taken: 0,
        }
    }

    pub(super) fn externals(&self) -> &'a [Value] {
        self.externals
    }

    pub(super) fn columns(&self) -> Columns {
        self.columns.clone()
    }

    /// No more rows than this are needed of a scan that filters.
    pub(super) fn scan_limit(&self) -> Option<u64> {
        let distinct = self.plan.distinct && !errs(QueryBug::DistinctBehindLimit);
        let all = self.buffers() || distinct || self.left == u64::MAX;
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

    /// The rows that can be sent.
    pub(super) fn pending(&self) -> impl ExactSizeIterator<Item = &[Value]> {
        self.pending.chunks_exact(self.plan.outputs.len().max(1))
    }

    /// How many rows were given.
    pub(super) fn given(&self) -> u64 {
        self.given
    }

    /// How many rows have come.
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    /// They have been sent.
    pub(super) fn clear_pending(&mut self) {
        self.pending.clear();
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
        self.taken += 1;
        if let Some(grouping) = &self.plan.grouping {
            self.accumulate(grouping, image)?;
            return Ok(false);
        }
        let source = source(self.plan, self.externals, Some(image), &[]);
        output(self.plan, &self.columns, &source, &mut self.context, &mut self.row)?;
        let order = match &self.order_columns {
            _ if !self.sorts => OrderKey::None,
            Some(columns) => OrderKey::of_columns(self.plan, columns, &self.descending, image),
            None => OrderKey::of_values(self.plan, &self.order_types, &source, &mut self.context)?,
        };
        self.emit(order)
    }

    /// True if so much was computed that others may work now.
    pub(super) fn is_tired(&mut self) -> bool {
        let left = self.context.work_left();
        let is_tired = self.work_left.saturating_sub(left) >= WORK_AT_ONCE;
        if is_tired {
            self.work_left = left;
        }
        is_tired
    }

    /// No more rows come: goes on with what is left to be done, and makes some rows that can be sent; true if there are no more.
    pub(super) fn finish_some(&mut self) -> Result<bool, SqlError> {
        if let Some(grouping) = &self.plan.grouping
            && !self.finish_groups(grouping)?
        {
            return Ok(false);
        }
        if !self.sorts {
            return Ok(true);
        }
        if !self.order_some() {
            return Ok(false);
        }
        for _ in 0..ROWS_AT_ONCE {
            let Some(mut sorted) = self.next_in_order() else { return Ok(true) };
            if self.deliver(&mut sorted.row) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Takes some of the first rows to their places; true if all are in order.
    fn order_some(&mut self) -> bool {
        let (kept, descending) = (&mut self.kept, &self.descending);
        let Kept::First(_, top) = kept else { return true };
        (0..ROWS_AT_ONCE).any(|_| !top.sort_one(&|a, b| a.order.compare(&b.order, descending)))
    }

    fn next_in_order(&mut self) -> Option<Sorted> {
        let descending = &self.descending;
        match &mut self.kept {
            Kept::First(_, top) => top.pop(),
            Kept::All(rows) => rows.pop(&|a, b| a.order.compare(&b.order, descending)),
        }
    }

    pub(super) fn check_memory(&mut self, more: usize) -> Result<(), SqlError> {
        self.share.cover(self.bytes.saturating_add(more))
    }

    /// Takes the row at hand; true if no more are wanted.
    fn emit(&mut self, order: OrderKey) -> Result<bool, SqlError> {
        if self.plan.distinct && !self.is_new(&order)? {
            return Ok(false);
        }
        let mut row = std::mem::take(&mut self.row);
        if !self.sorts {
            let enough = self.deliver(&mut row);
            self.row = row;
            return Ok(enough);
        }
        self.keep(Sorted { order, row });
        self.check_memory(0)?;
        Ok(false)
    }

    /// True if DISTINCT has not seen the row at hand before.
    fn is_new(&mut self, order: &OrderKey) -> Result<bool, SqlError> {
        let key = match order {
            OrderKey::Bytes(key) if self.distinct_by_order => key,
            _ => {
                self.key.clear();
                group_key(&self.row, &mut self.key);
                &self.key
            }
        };
        if self.seen.contains_key(key) {
            return Ok(false);
        }
        self.bytes += key.len() + 64;
        self.share.cover(self.bytes)?;
        self.seen.insert(key.clone(), ());
        Ok(true)
    }

    fn keep(&mut self, sorted: Sorted) {
        let descending = &self.descending;
        let order = |a: &Sorted, b: &Sorted| a.order.compare(&b.order, descending);
        self.bytes += sorted.bytes();
        match &mut self.kept {
            Kept::First(wanted, top) => {
                let gone = top.push(sorted, *wanted, &order);
                self.bytes = self.bytes.saturating_sub(gone.map_or(0, |gone| gone.bytes()));
            }
            Kept::All(rows) => rows.push(sorted, &order),
        }
    }

    /// Sends a row on unless OFFSET or LIMIT leave it out; true if no more are wanted.
    fn deliver(&mut self, row: &mut Vec<Value>) -> bool {
        if self.skip > 0 {
            self.skip -= 1;
        } else if self.left > 0 {
            self.left -= 1;
            self.given += 1;
            self.pending.append(row);
        }
        self.left == 0
    }

    fn accumulate(&mut self, grouping: &Grouping, image: &[u8]) -> Result<(), SqlError> {
        let source = source(self.plan, self.externals, Some(image), &[]);
        let number = if grouping.keys.is_empty() {
            0
        } else {
            let mut values = Vec::with_capacity(grouping.keys.len());
            for (key, kind) in grouping.keys.iter().zip(&self.key_types) {
                values.push(typed_value(key, kind, &source, &mut self.context)?);
            }
            self.key.clear();
            group_key(&values, &mut self.key);
            match self.group_numbers.get(&self.key) {
                Some(number) => *number,
                None => {
                    self.bytes += self.key.len() + 64;
                    let next = self.groups.len();
                    self.group_numbers.insert(self.key.clone(), next);
                    next
                }
            }
        };
        if number == self.groups.len() {
            let group = new_group(self.plan, grouping, self.externals, Some(image));
            self.bytes += image.len() + 96 * (1 + grouping.calls.len());
            self.share.cover(self.bytes)?;
            self.groups.push(group);
        }
        let Some(group) = self.groups.get_mut(number) else { return Ok(()) };
        let arguments = grouping.calls.iter().zip(&self.argument_types);
        for ((call, kind), accumulator) in arguments.zip(&mut group.accumulators) {
            let value = match &call.arg {
                Some(arg) => typed_value(arg, kind, &source, &mut self.context)?,
                None => Value::Int(1),
            };
            if call.distinct {
                self.bytes += row_bytes(std::slice::from_ref(&value));
            }
            accumulator.add(&value)?;
        }
        self.share.cover(self.bytes)
    }

    /// Finishes some groups; true if no more are left, or wanted.
    fn finish_groups(&mut self, grouping: &Grouping) -> Result<bool, SqlError> {
        let mut rest = match self.rest.take() {
            Some(rest) => rest,
            None => {
                let mut groups = std::mem::take(&mut self.groups);
                if groups.is_empty() && grouping.keys.is_empty() {
                    groups.push(new_group(self.plan, grouping, self.externals, None));
                }
                groups.into_iter()
            }
        };
        let mut enough = false;
        for group in rest.by_ref().take(ROWS_AT_ONCE) {
            enough = self.finish_group(grouping, group)?;
            if enough {
                break;
            }
        }
        if enough {
            rest = Vec::new().into_iter();
        }
        let is_over = rest.len() == 0;
        self.rest = Some(rest);
        Ok(is_over)
    }

    /// Makes the row of a group; true if no more are wanted.
    fn finish_group(&mut self, grouping: &Grouping, group: Group) -> Result<bool, SqlError> {
        let aggregates: Vec<Value> = group.accumulators.into_iter().map(|a| a.finish()).collect();
        let source = source(self.plan, self.externals, group.row.as_deref(), &aggregates);
        if let Some(having) = &grouping.having
            && !lats_values::is_true(having, &source, &mut self.context)?
        {
            return Ok(false);
        }
        output(self.plan, &self.columns, &source, &mut self.context, &mut self.row)?;
        let order = match self.sorts {
            true => OrderKey::of_values(self.plan, &self.order_types, &source, &mut self.context)?,
            false => OrderKey::None,
        };
        self.emit(order)
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
    row: &mut Vec<Value>,
) -> Result<(), SqlError> {
    row.clear();
    for (output, column) in plan.outputs.iter().zip(columns.iter()) {
        row.push(typed_value(&output.expr, &column.column_type, source, context)?);
    }
    Ok(())
}

/// The value of an expression. What is computed takes the type that the expression has for the client:
/// branches of IF or CASE may give values of several types, which have no common order.
pub(super) fn typed_value(
    expr: &Expr,
    kind: &ColumnType,
    source: &RowSource<'_>,
    context: &mut EvalContext,
) -> Result<Value, SqlError> {
    match expr {
        Expr::Column(number) => context.kept(lats_values::ColumnSource::column(source, *number)),
        other => Ok(lats_values::present(eval(other, source, context)?, kind)),
    }
}

fn types_of<'e>(
    plan: &SelectPlan,
    exprs: impl Iterator<Item = &'e Expr>,
    externals: &[Value],
) -> Vec<ColumnType> {
    exprs.map(|expr| plan.type_of(expr, externals)).collect()
}

fn argument_types(plan: &SelectPlan, externals: &[Value]) -> Vec<ColumnType> {
    let types = plan.table.as_ref().map_or(&[][..], |t| &t.types);
    let calls = plan.grouping.iter().flat_map(|grouping| &grouping.calls);
    calls.map(|call| input_type(call, types, externals)).collect()
}

pub(crate) fn row_bytes(row: &[Value]) -> usize {
    let heap = |value: &Value| match value {
        Value::Text(text, _) => text.capacity(),
        Value::Bytes(bytes) => bytes.capacity(),
        _ => 0,
    };
    48 + row.iter().map(|v| size_of::<Value>() + heap(v)).sum::<usize>()
}
