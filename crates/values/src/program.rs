//! What data nodes run: a filter, an update, a projection; and their encoding.
//!
//! Trees travel as lists of nodes in postfix order, so that reading one from outside needs no
//! recursion and its depth is checked before it exists.

#[cfg(test)]
mod tests;
mod wire;

use crate::{
    ColumnName, ColumnSource, ColumnType, ConvertContext, EvalContext, Expr, RowLayout, SqlError,
    Value, convert::is_stored_as_it_is, convert_to_column, eval, expr::RowView, is_true,
};
use alloc::{borrow::Cow, vec::Vec};
use lats_base::{RefCode, SortedMap, limits};
use serde::{Deserialize, Serialize};

/// A filter, an update and a projection, each of which may be missing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Program {
    /// Rows for which this is not true are passed over.
    pub filter: Option<Expr>,
    /// Columns and their new values, in order; later ones see what earlier ones set.
    pub assignments: Vec<(u16, Expr)>,
    /// The columns that are sent, in this order; all of them when missing.
    pub projection: Option<Vec<u16>>,
    /// Whether warnings about data are errors.
    pub strict: bool,
}

/// A row some of whose columns have been set.
struct Changing<'a> {
    layout: &'a RowLayout,
    row: &'a [u8],
    set: SortedMap<u16, Cow<'a, Value>, 2>,
}

impl ColumnSource for Changing<'_> {
    fn column(&self, index: u32) -> Value {
        let Ok(index) = u16::try_from(index) else { return Value::Null };
        let set = self.set.get(&index).map(|value| Value::clone(value));
        set.unwrap_or_else(|| self.layout.value(self.row, index))
    }
}

impl Program {
    /// True if it may change one of these columns.
    pub fn assigns_any(&self, columns: &[u16]) -> bool {
        self.assignments.iter().any(|(column, _)| columns.contains(column))
    }

    /// The bytes that [`Self::decode`] reads. Chains of AND and OR are made as flat as they can be.
    /// A column whose number is above 65,534 makes a program that the reader refuses: no table has it.
    pub fn encode(&self) -> Vec<u8> {
        wire::encode(self)
    }

    /// Reads and checks a program from outside: size, depth, columns, argument counts.
    pub fn decode(bytes: &[u8], columns: &[ColumnType]) -> Result<Self, RefCode> {
        if bytes.len() > limits::PROGRAM_BYTES_MAX {
            return Err(RefCode::ProgramMalformed);
        }
        wire::decode(bytes, columns).ok_or(RefCode::ProgramMalformed)
    }

    /// True if a change with this program answers with a row (PROGRAM-2), or if it is none that can be read.
    pub fn wants_row(bytes: &[u8]) -> bool {
        !bytes.is_empty() && wire::wants_row(bytes)
    }

    /// Whether the row passes the filter.
    pub fn matches(&self, layout: &RowLayout, row: &[u8]) -> Result<bool, SqlError> {
        self.matches_within(layout, row, &mut { u64::MAX })
    }

    /// Whether the row passes the filter; takes what it costs from `work_left` (PROGRAM-3).
    pub fn matches_within(
        &self,
        layout: &RowLayout,
        row: &[u8],
        work_left: &mut u64,
    ) -> Result<bool, SqlError> {
        let Some(filter) = &self.filter else { return Ok(true) };
        let mut ctx = EvalContext::within(self.strict, *work_left);
        let passes = is_true(filter, &RowView { layout, row }, &mut ctx);
        *work_left = ctx.work_left;
        passes
    }

    /// The row after the assignments, maybe the same; `None` when it does not pass the filter.
    pub fn updated(&self, layout: &RowLayout, row: &[u8]) -> Result<Option<Vec<u8>>, SqlError> {
        self.updated_within(layout, row, Vec::new(), &mut { u64::MAX })
    }

    /// As [`Self::updated`], in memory that is empty; takes what it costs from `work_left` (PROGRAM-3).
    pub fn updated_within(
        &self,
        layout: &RowLayout,
        row: &[u8],
        mut out: Vec<u8>,
        work_left: &mut u64,
    ) -> Result<Option<Vec<u8>>, SqlError> {
        if !self.matches_within(layout, row, work_left)? {
            return Ok(None);
        }
        let mut after = Changing { layout, row, set: SortedMap::new() };
        for (column, expr) in &self.assignments {
            let kind = layout.columns().get(usize::from(*column));
            let value = match (expr, kind) {
                // Nothing is to be computed or converted.
                (Expr::Literal(value), Some(kind)) if is_stored_as_it_is(value, kind) => {
                    Cow::Borrowed(value)
                }
                _ => {
                    let mut ctx = EvalContext::within(self.strict, *work_left);
                    let value = eval(expr, &after, &mut ctx)?;
                    *work_left = ctx.work_left;
                    Cow::Owned(self.assigned(layout, *column, value)?)
                }
            };
            after.set.insert(*column, value);
        }
        out.extend_from_slice(row);
        if after.set.iter().all(|(column, value)| layout.overwrite(&mut out, *column, value)) {
            return Ok(Some(out));
        }
        out.clear();
        let set = |column| after.set.get(&column).map(|value| &**value);
        layout.encode_over(row, set, &mut out)?;
        Ok(Some(out))
    }

    fn assigned(&self, layout: &RowLayout, column: u16, value: Value) -> Result<Value, SqlError> {
        let Some(kind) = layout.columns().get(usize::from(column)) else {
            return Ok(Value::Null);
        };
        let name = ColumnName::Place(u32::from(column) + 1);
        let mut ctx = ConvertContext::new(self.strict, name, 1);
        if value.is_null() {
            return match (kind.nullable, self.strict) {
                (true, _) => Ok(Value::Null),
                (false, true) => Err(SqlError::null_not_allowed(name)),
                (false, false) => Ok(crate::convert::implicit_default(kind)),
            };
        }
        convert_to_column(value, kind, &mut ctx)
    }

    /// Prepares it for many rows: long lists of constants are sorted.
    pub fn for_many_rows(&mut self) {
        self.filter.iter_mut().for_each(crate::expr::sort_lists);
    }

    /// Appends the projected row, in the layout of the projected columns.
    pub fn project(&self, layout: &RowLayout, row: &[u8], out: &mut Vec<u8>) {
        match &self.projection {
            Some(columns) => layout.project(row, columns, out),
            None => out.extend_from_slice(row),
        }
    }
}
