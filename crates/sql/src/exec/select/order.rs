//! What rows are sorted by.

use super::collect::{row_bytes, typed_value};
use crate::expr::{AGGREGATE_BASE, RowSource};
use crate::plan::select::SelectPlan;
use lats_values::{ColumnType, EvalContext, Expr, SqlError, Value, sort_order};
use std::cmp::Ordering;

/// What one row is sorted by.
pub(super) enum OrderKey {
    /// Nothing.
    None,
    /// Bytes that order as the columns do: they are made once, and compared often.
    Bytes(Vec<u8>),
    /// The values of expressions.
    Values(Vec<Value>),
}

/// The places of the columns of ORDER BY in the rows that are read, if it names columns of the table only.
pub(super) fn plain_columns(plan: &SelectPlan) -> Option<Vec<u16>> {
    if plan.table.is_none() || plan.grouping.is_some() {
        return None;
    }
    let place = |number: u32| {
        let own = crate::plan::select::column_number(number);
        (number < AGGREGATE_BASE)
            .then(|| plan.positions.get(usize::from(own)).copied().unwrap_or(own))
    };
    let columns = plan.order.iter().map(|(expr, _)| match expr {
        Expr::Column(number) => place(*number),
        _ => None,
    });
    columns.collect()
}

/// True if the outputs are columns of text, all of which ORDER BY names: its key then tells all rows apart that DISTINCT does.
/// (Keys of other types may tell zeros apart.)
pub(super) fn tells_all(plan: &SelectPlan, order: Option<&[u16]>) -> bool {
    let Some(order) = order else { return false };
    let is_told = |expr: &Expr| match expr {
        Expr::Column(number) if *number < AGGREGATE_BASE => {
            let own = crate::plan::select::column_number(*number);
            let place = plan.positions.get(usize::from(own)).copied().unwrap_or(own);
            let column = plan.layout.columns().get(usize::from(place));
            column.is_some_and(|column| column.kind.is_text()) && order.contains(&place)
        }
        _ => false,
    };
    plan.outputs.iter().all(|output| is_told(&output.expr))
}

impl OrderKey {
    pub(super) fn of_columns(
        plan: &SelectPlan,
        columns: &[u16],
        descending: &[bool],
        image: &[u8],
    ) -> Self {
        let mut key = Vec::new();
        for (column, descending) in columns.iter().zip(descending) {
            let start = key.len();
            plan.layout.key_of(image, std::slice::from_ref(column), &mut key);
            if *descending {
                // No key is the beginning of another one, so this turns their order around.
                key.iter_mut().skip(start).for_each(|byte| *byte = !*byte);
            }
        }
        Self::Bytes(key)
    }

    pub(super) fn of_values(
        plan: &SelectPlan,
        types: &[ColumnType],
        source: &RowSource<'_>,
        context: &mut EvalContext,
    ) -> Result<Self, SqlError> {
        let order = plan.order.iter().zip(types);
        let values = order.map(|((expr, _), kind)| typed_value(expr, kind, source, context));
        values.collect::<Result<_, _>>().map(Self::Values)
    }

    /// Which row comes first. Keys of one statement are of one kind.
    pub(super) fn compare(&self, other: &Self, descending: &[bool]) -> Ordering {
        match (self, other) {
            (Self::Bytes(a), Self::Bytes(b)) => a.cmp(b),
            (Self::Values(a), Self::Values(b)) => compare_rows(a, b, descending),
            _ => Ordering::Equal,
        }
    }

    /// Memory that it takes.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Bytes(key) => key.capacity() + 24,
            Self::Values(values) => row_bytes(values),
        }
    }
}

/// Compares rows of ORDER BY values.
pub(crate) fn compare_rows(a: &[Value], b: &[Value], descending: &[bool]) -> Ordering {
    for ((a, b), descending) in a.iter().zip(b).zip(descending) {
        let order = sort_order(a, b);
        if order != Ordering::Equal {
            return if *descending { order.reverse() } else { order };
        }
    }
    Ordering::Equal
}
