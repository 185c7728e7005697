//! Rows on their way to the client.

use crate::error;
use crate::plan::Columns;
use crate::session::Sink;
use crate::sessions::Handle;
use lats_mysql_wire::{PacketWriter, StatusFlags};
use lats_values::{Ends, SqlError, Value};
use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};
use tokio::io::AsyncWrite;

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
    /// All that was gathered is leaving.
    pub(super) is_sending: bool,
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

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.is_sending |= self.is_full();
        while self.is_sending && !self.writer.bytes().is_empty() {
            // What was not sent goes before whatever comes next: no packet is cut.
            match ready!(Pin::new(&mut *self.io).poll_write(cx, self.writer.bytes()))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                bytes => self.writer.sent(bytes),
            }
        }
        self.is_sending = false;
        Poll::Ready(Ok(()))
    }

    fn has_begun(&self) -> bool {
        self.columns.is_some()
    }
}
