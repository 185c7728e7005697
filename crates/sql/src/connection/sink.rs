//! Rows on their way to the client.

use crate::error;
use crate::plan::Columns;
use crate::session::Sink;
use crate::sessions::{Handle, Why};
use lats_mysql_wire::{PacketWriter, StatusFlags};
use lats_values::{Ends, SqlError, Value};
use std::io;
use tokio::io::{AsyncWrite, AsyncWriteExt};

/// Gathered bytes are sent from here on.
pub(super) const SEND_BYTES: usize = 64 << 10;

/// Writes rows as packets.
pub(super) struct WireSink<'a, T> {
    pub(super) io: &'a mut T,
    pub(super) writer: &'a mut PacketWriter,
    /// For prepared statements.
    pub(super) binary: bool,
    pub(super) status: StatusFlags,
    /// What the client was told of the rows.
    pub(super) columns: Option<Columns>,
    pub(super) handle: &'a Handle,
}

/// Rows with larger values are written only where there is memory for them once more.
const LARGE_BYTES: usize = 64 << 10;

impl<T> WireSink<'_, T> {
    fn has_room(&self, values: &[Value]) -> Result<(), SqlError> {
        let large = |value: &Value| match value {
            Value::Text(text, _) if text.len() >= LARGE_BYTES => text.len(),
            Value::Bytes(bytes) if bytes.len() >= LARGE_BYTES => bytes.len(),
            _ => 0,
        };
        let bytes: usize = values.iter().map(large).sum();
        let refusal = if bytes > 0 { self.handle.no_room(2 * bytes) } else { None };
        refusal.map_or(Ok(()), Err)
    }
}

impl<T: AsyncWrite + Unpin + Send> Sink for WireSink<'_, T> {
    fn begin(&mut self, columns: &Columns) {
        self.columns = Some(columns.clone());
        self.writer.definitions(columns.definitions());
        self.writer.columns_end(self.status, 0);
    }

    fn row(&mut self, values: &[Value]) -> Result<(), SqlError> {
        self.has_room(values)?;
        let Some(columns) = &self.columns else { return Ok(()) };
        let types = columns.types();
        if self.binary {
            let written = self.writer.binary_row(values, types);
            return written
                .map_err(|error| error::make(error.errno(), "HY000", &error.to_string()));
        }
        if columns.fixed().is_empty() {
            self.writer.text_row(values, types);
            return Ok(());
        }
        let mut shown = values.to_vec();
        for (at, decimals) in columns.fixed() {
            if let Some(value @ Value::Double(_)) = shown.get_mut(*at)
                && let Some(text) = value.to_text_with(Some(*decimals))
            {
                *value = Value::Bytes(text);
            }
        }
        self.writer.text_row(&shown, types);
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.writer.bytes().len() >= SEND_BYTES
    }

    async fn flush(&mut self) -> io::Result<()> {
        if !self.is_full() {
            return Ok(());
        }
        // What was not sent goes before whatever comes next: no packet is cut.
        let mut sent = 0;
        let mut result = Ok(());
        while let Some(rest) = self.writer.bytes().get(sent..).filter(|rest| !rest.is_empty()) {
            let written = tokio::select! {
                biased;
                written = self.io.write(rest) => written,
                () = self.handle.ended(Why::Query) => Err(io::ErrorKind::Interrupted.into()),
            };
            match written {
                Ok(0) => result = Err(io::ErrorKind::WriteZero.into()),
                Ok(bytes) => sent += bytes,
                Err(error) => result = Err(error),
            }
            if result.is_err() {
                break;
            }
        }
        self.writer.sent(sent);
        result
    }

    fn has_begun(&self) -> bool {
        self.columns.is_some()
    }
}
