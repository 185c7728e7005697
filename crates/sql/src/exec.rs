//! Running plans against the store.

mod change;
mod check;
pub mod insert;
mod look;
mod query;
pub mod select;
pub mod sequence;
mod unique;
pub mod write;

pub(crate) use query::OnlyRow;
pub(crate) use unique::duplicate;

use crate::error::{self, Failure};
use crate::expr::RowSource;
use crate::plan::Limit;
use lats_base::limits::{INDEX_CHANGE_BYTES_MAX, OPERATIONS_PER_REQUEST_MAX};
use lats_catalog::TableDef;
use lats_client::api::{LockWait, RowOp, RowOpKind};
use lats_values::{EvalContext, Expr, SqlError, Value};

use crate::table::Table;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};

/// Bytes of operations that one request carries at most: well below what a signal may have.
pub(crate) const REQUEST_BYTES_MAX: usize = 1 << 20;

/// Bytes of rows that one request may lead to.
const ROWS_BYTES_MAX: usize = lats_base::limits::BATCH_BYTES_MAX - (128 << 10);
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
        program: Arc::default(),
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

/// How many rows of a table one request may change: each may bring two changes of every unique index, and
/// all of them must fit into what a request may bring about.
fn unique_writes_max(table: &TableDef) -> usize {
    let key_bytes = |columns: &[u16]| -> usize {
        let of = |column: &u16| table.columns.get(usize::from(*column));
        // The weights of a text are longer than the text.
        let bytes = columns.iter().filter_map(of).map(|c| 4 * c.column_type.max_bytes() + 8);
        bytes.sum::<usize>().min(lats_base::limits::KEY_BYTES_MAX)
    };
    let row_bytes: usize = table
        .unique_indexes()
        .map(|(index, _)| 2 * (2 * key_bytes(&index.columns) + key_bytes(&table.primary_key) + 128))
        .sum();
    (INDEX_CHANGE_BYTES_MAX / row_bytes.max(1)).clamp(1, UNIQUE_WRITES_MAX)
}

/// Cuts operations into requests.
pub(crate) struct Chunks {
    operations: std::vec::IntoIter<RowOp>,
    /// What a row may need in an answer, or as the image of a change.
    row_bytes: usize,
    at_most: usize,
}

impl Chunks {
    pub(crate) fn new(operations: Vec<RowOp>) -> Self {
        Self {
            operations: operations.into_iter(),
            row_bytes: 0,
            at_most: OPERATIONS_PER_REQUEST_MAX,
        }
    }

    /// With changes or reads of rows that are not in the request: their images must fit, too.
    pub(crate) fn changing(operations: Vec<RowOp>, table: &Table) -> Self {
        let values: usize = table
            .types
            .iter()
            .map(|t| t.max_bytes().min(lats_base::limits::ROW_BYTES_MAX) + 8)
            .sum();
        let row_bytes = values.min(lats_base::limits::ROW_BYTES_MAX) + 256;
        Self { row_bytes, ..Self::of_writes(operations, table) }
    }

    /// Writes of a table: fewer at once where each brings changes of unique indexes with it.
    pub(crate) fn of_writes(operations: Vec<RowOp>, table: &Table) -> Self {
        let all = Self::new(operations);
        match table.has_unique_index() {
            true => Self { at_most: unique_writes_max(&table.def), ..all },
            false => all,
        }
    }

    /// Rows that one request may have.
    pub(crate) fn rows_max(&self) -> usize {
        (ROWS_BYTES_MAX / self.row_bytes.max(1)).min(self.at_most)
    }

    /// The next request's operations, and whether they are the last.
    pub(crate) fn next_chunk(&mut self) -> Option<(Vec<RowOp>, bool)> {
        let (mut count, mut bytes) = (0, 0);
        for next in self.operations.as_slice().iter().take(self.rows_max().max(1)) {
            bytes += next.key.len() + next.row.len() + next.program.len() + 64;
            if bytes > REQUEST_BYTES_MAX && count > 0 {
                break;
            }
            count += 1;
        }
        let last = count == self.operations.len();
        let chunk: Vec<RowOp> = match last {
            // Mostly all fit, and nothing is moved.
            true => std::mem::take(&mut self.operations).collect(),
            false => self.operations.by_ref().take(count).collect(),
        };
        (!chunk.is_empty()).then_some((chunk, last))
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

/// So much may wait to be dropped; beyond, who leaves it drops it.
const LEFT_MAX: usize = 64;

/// Something to drop, and what is to be done behind it.
type Left = (Box<dyn Send>, fn());

/// Drops what takes long in another thread: nobody waits for it, neither who is answered or was killed nor others of this thread.
pub(crate) fn drop_elsewhere(left: impl Send + 'static, report: fn()) {
    static DROPPER: OnceLock<Option<SyncSender<Left>>> = OnceLock::new();
    let dropper = DROPPER.get_or_init(|| {
        let (sender, receiver) = sync_channel::<Left>(LEFT_MAX);
        let drops = move || {
            for (left, report) in receiver {
                drop(left);
                report();
            }
        };
        let started = std::thread::Builder::new().name("lats-drop".to_string()).spawn(drops);
        started.ok().map(|_| sender)
    });
    if let Some(sender) = dropper {
        // What does not go there is dropped here.
        drop(sender.try_send((Box::new(left), report)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lats_base::{TableId, limits};
    use lats_catalog::{ColumnDef, TableDef};
    use lats_values::{ColumnType, TypeKind};

    fn table(chars: u16) -> Table {
        let column = |name: &str, kind| ColumnDef::new(name, ColumnType::new(kind).not_null());
        Table::new(&TableDef {
            id: TableId::new(7),
            schema_version: 1,
            database: "test".to_string(),
            name: "wide".to_string(),
            columns: vec![column("id", TypeKind::BigInt), column("v", TypeKind::VarChar { chars })],
            primary_key: vec![0],
            indexes: Vec::new(),
            fragment_count: 2,
            comment: String::new(),
            partition_key: Vec::new(),
            index_of: None,
        })
    }

    #[test]
    fn a_request_leaves_room_for_the_rows_that_it_changes() {
        for chars in [10, 1_000, 16_000] {
            let table = table(chars);
            let update = |id: u16| operation(&table, RowOpKind::Update, id.to_be_bytes().to_vec());
            let mut chunks = Chunks::changing((0..9_000).map(update).collect(), &table);
            let row_bytes = (usize::from(chars) * 4).min(limits::ROW_BYTES_MAX);
            let mut operations = 0;
            while let Some((chunk, _)) = chunks.next_chunk() {
                assert!(chunk.len() * row_bytes < limits::BATCH_BYTES_MAX);
                operations += chunk.len();
            }
            assert_eq!(operations, 9_000);
        }
    }
}
