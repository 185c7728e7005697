//! Running plans against the store.

pub mod insert;
pub mod select;
pub mod sequence;
mod unique;
pub mod write;

use crate::error::{self, Failure};
use crate::expr::RowSource;
use crate::plan::Limit;
pub(crate) use unique::duplicate;

use lats_client::api::{LockWait, RowOp, RowOpKind};
use lats_values::{EvalContext, Expr, SqlError, Value};

use crate::table::Table;

/// Bytes of operations that one request carries at most: well below what a signal may have.
pub(crate) const REQUEST_BYTES_MAX: usize = 1 << 20;

/// Writes of a table with unique indexes that one request carries at most.
const UNIQUE_WRITES_MAX: usize = 256;

/// An operation on a table.
pub(crate) fn operation(table: &Table, kind: RowOpKind, key: Vec<u8>) -> RowOp {
    RowOp {
        table: table.def.id,
        schema_version: table.def.schema_version,
        kind,
        key,
        row: Vec::new(),
        program: Vec::new(),
        wait: LockWait::Wait,
    }
}

/// LIMIT's numbers: rows to leave out, rows to give.
pub(crate) fn limits(limit: &Limit, externals: &[Value]) -> Result<(u64, u64), SqlError> {
    let offset = limit.offset.as_ref().map(|e| row_count(e, externals)).transpose()?;
    let count = limit.count.as_ref().map(|e| row_count(e, externals)).transpose()?;
    Ok((offset.unwrap_or(0), count.unwrap_or(u64::MAX)))
}

fn row_count(expr: &Expr, externals: &[Value]) -> Result<u64, SqlError> {
    let source = RowSource::constant(externals);
    match lats_values::eval(expr, &source, &mut EvalContext::new(false))? {
        Value::UInt(count) => Ok(count),
        Value::Int(count) if count >= 0 => Ok(count.unsigned_abs()),
        // Clients that write parameters as text.
        Value::Text(text, _) if text.parse::<u64>().is_ok() => Ok(text.parse().unwrap_or(u64::MAX)),
        _ => Err(error::make(1210, "HY000", "Incorrect arguments to LIMIT")),
    }
}

/// Cuts operations into requests.
pub(crate) struct Chunks {
    operations: std::iter::Peekable<std::vec::IntoIter<RowOp>>,
    at_most: usize,
}

impl Chunks {
    pub(crate) fn new(operations: Vec<RowOp>) -> Self {
        let at_most = lats_base::limits::OPERATIONS_PER_REQUEST_MAX;
        Self { operations: operations.into_iter().peekable(), at_most }
    }

    /// Writes of a table: fewer at once where each brings changes of unique indexes with it.
    pub(crate) fn of_writes(table: &Table, operations: Vec<RowOp>) -> Self {
        let all = Self::new(operations);
        match table.has_unique_index() {
            true => Self { at_most: UNIQUE_WRITES_MAX, ..all },
            false => all,
        }
    }

    /// The next request's operations, and whether they are the last.
    pub(crate) fn next_chunk(&mut self) -> Option<(Vec<RowOp>, bool)> {
        let mut chunk = Vec::new();
        let mut bytes = 0;
        while let Some(next) = self.operations.peek() {
            let size = next.key.len() + next.row.len() + next.program.len() + 64;
            let full = chunk.len() >= self.at_most || bytes + size > REQUEST_BYTES_MAX;
            if full && !chunk.is_empty() {
                return Some((chunk, false));
            }
            bytes += size;
            chunk.extend(self.operations.next());
        }
        (!chunk.is_empty()).then_some((chunk, true))
    }
}

/// Programs know columns by their numbers only: puts the names into an error's text.
pub(crate) fn with_column_names(failure: Failure, table: &Table) -> Failure {
    let renamed = |text: &str| {
        let (before, rest) = text.split_once("'column ")?;
        let (number, after) = rest.split_once('\'')?;
        let at = number.parse::<u16>().ok()?.checked_sub(1)?;
        Some(format!("{before}'{}'{after}", table.column_name(at)))
    };
    match failure {
        Failure::Sql(mut error) => {
            error.message = renamed(&error.message).unwrap_or(error.message);
            Failure::Sql(error)
        }
        Failure::Store(mut error) => {
            if let Some(sql) = &mut error.sql
                && let Some(text) = renamed(&sql.message)
            {
                sql.message = text;
            }
            Failure::Store(error)
        }
        gone => gone,
    }
}
