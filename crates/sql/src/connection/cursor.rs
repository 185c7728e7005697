//! Cursors: results of prepared statements that wait here until the client fetches them.
//!
//! The rows are those of the moment when the statement ran, as in MySQL; so they are kept, and count as the memory of a statement.

use super::{Connection, Cursor};
use crate::error::{self, Failure};
use crate::plan::{ColumnMeta, Columns};
use crate::session::{Kept, Kind, Outcome, Sink};
use crate::store::Store;
use lats_mysql_wire::StatusFlags;
use lats_mysql_wire::writer::binary_row_payload;
use lats_values::{SqlError, Value};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};

/// Memory that a row takes beside its bytes.
const ROW_OVERHEAD: usize = 32;

/// Keeps rows as they will be sent.
struct CursorSink {
    columns: Option<Columns>,
    rows: VecDeque<Box<[u8]>>,
    bytes: usize,
    bytes_max: usize,
    kept: Kept,
}

impl Sink for CursorSink {
    fn begin(&mut self, columns: &Columns) {
        self.columns = Some(columns.clone());
    }

    fn row(&mut self, values: &[Value]) -> Result<(), SqlError> {
        let types = self.columns.as_ref().map(Columns::types).unwrap_or_default();
        let row = binary_row_payload(values, types)
            .map_err(|error| error::make(error.errno(), "HY000", &error.to_string()))?;
        self.bytes += row.len() + ROW_OVERHEAD;
        if self.bytes > self.bytes_max {
            return Err(error::out_of_statement_memory());
        }
        if self.bytes > self.kept.bytes() {
            self.kept.becomes(self.bytes + (self.bytes / 8).max(row.len()))?;
        }
        self.rows.push_back(row.into_boxed_slice());
        Ok(())
    }

    // The client has seen nothing: the statement may run again.
    fn has_begun(&self) -> bool {
        !self.rows.is_empty()
    }
}

impl<S, T> Connection<S, T>
where
    S: Store,
    T: AsyncRead + AsyncWrite + Unpin + Send,
{
    /// Runs a prepared query, and keeps its rows.
    pub(super) async fn open_cursor(&mut self, id: u32, values: &[Value]) -> io::Result<()> {
        let mut sink = CursorSink {
            columns: None,
            rows: VecDeque::new(),
            bytes: 0,
            bytes_max: self.shared.memory().statement_max(),
            kept: self.kept(Kind::Cursors),
        };
        let handle = Arc::clone(&self.client.handle);
        let (wire, session) = (&mut self.wire, &mut self.session);
        let result = {
            let run = std::pin::pin!(session.execute(id, values, &mut sink));
            wire.input.with_end_watched(&handle, run).await
        };
        match result {
            Err(Failure::Gone(error)) => return Err(error),
            Err(failure) => self.err(&failure.into_sql()),
            Ok(Outcome::Done(_)) => self.ok(),
            Ok(Outcome::Rows) => {
                let columns = sink.columns.iter().flat_map(|columns| columns.iter());
                let columns: Vec<_> = columns.map(ColumnMeta::info).collect();
                let (status, warnings) = (self.status(), self.session.new_warning_count());
                self.wire.writer.cursor_opened(&columns, status, warnings);
                if let Some(bound) = self.statements.get_mut(&id) {
                    bound.cursor = Some(Cursor { rows: sink.rows, kept: sink.kept });
                }
            }
        }
        Ok(())
    }

    /// COM_STMT_FETCH.
    pub(super) async fn fetch(&mut self, id: u32, count: u32) -> io::Result<()> {
        let Some(bound) = self.statements.get_mut(&id) else {
            let text =
                format!("Unknown prepared statement handler ({id}) given to mysqld_stmt_fetch");
            self.err(&error::make(1243, "HY000", &text));
            return Ok(());
        };
        let Some(mut cursor) = bound.cursor.take() else {
            let text = format!("The statement ({id}) has no open cursor.");
            self.err(&error::make(1421, "HY000", &text));
            return Ok(());
        };
        let mut left = count;
        while left > 0
            && let Some(row) = cursor.rows.pop_front()
        {
            left -= 1;
            cursor.kept.shrink(row.len() + ROW_OVERHEAD);
            self.wire.writer.raw(&row);
            if self.wire.writer.bytes().len() >= super::sink::SEND_BYTES {
                self.wire.send().await?;
            }
        }
        // As in MySQL: the end is told to who asks for more than there is.
        let is_through = left > 0;
        let status = match is_through {
            true => self.status() | StatusFlags::LAST_ROW_SENT,
            false => self.status() | StatusFlags::CURSOR_EXISTS,
        };
        if !is_through && let Some(bound) = self.statements.get_mut(&id) {
            bound.cursor = Some(cursor);
        }
        self.wire.writer.result_end(status, 0);
        Ok(())
    }
}
