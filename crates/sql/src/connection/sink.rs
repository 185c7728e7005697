//! Rows on their way to the client.

use crate::error;
use crate::plan::{ColumnMeta, Columns};
use crate::session::Sink;
use crate::sessions::{Handle, Why};
use lats_mysql_wire::{ColumnFlags, ColumnInfo, PacketWriter, StatusFlags};
use lats_values::{ColumnType, SqlError, Value};
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
    pub(super) types: Vec<ColumnType>,
    /// The columns of doubles with a fixed number of digits.
    pub(super) fixed: Vec<(usize, u8)>,
    pub(super) begun: bool,
    pub(super) handle: &'a Handle,
}

/// How a column looks on the wire.
pub(super) fn column_info(column: &ColumnMeta) -> ColumnInfo<'_> {
    ColumnInfo {
        schema: &column.database,
        table: &column.table,
        org_table: &column.org_table,
        name: &column.name,
        org_name: &column.org_name,
        column_type: &column.column_type,
        flags: ColumnFlags::NONE
            .with(ColumnFlags::PRIMARY_KEY, column.primary_key)
            .with(ColumnFlags::PART_KEY, column.primary_key || column.indexed)
            .with(ColumnFlags::UNIQUE_KEY, column.unique)
            .with(ColumnFlags::MULTIPLE_KEY, column.indexed && !column.unique)
            .with(ColumnFlags::AUTO_INCREMENT, column.auto_increment),
        look: column.look,
    }
}

pub(super) fn column_infos(columns: &Columns) -> Vec<ColumnInfo<'_>> {
    columns.iter().map(column_info).collect()
}

impl<T: AsyncWrite + Unpin + Send> Sink for WireSink<'_, T> {
    fn begin(&mut self, columns: &Columns) {
        self.begun = true;
        self.types = columns.iter().map(|column| column.column_type.clone()).collect();
        let fixed = columns.iter().enumerate();
        self.fixed = fixed.filter_map(|(at, of)| Some((at, of.look.decimals?))).collect();
        self.writer.column_count(columns.len());
        for column in columns.iter() {
            self.writer.column(&column_info(column));
        }
        self.writer.columns_end(self.status, 0);
    }

    fn row(&mut self, values: &[Value]) -> Result<(), SqlError> {
        if !self.binary && !self.fixed.is_empty() {
            let mut shown = values.to_vec();
            for (at, decimals) in &self.fixed {
                if let Some(value @ Value::Double(_)) = shown.get_mut(*at)
                    && let Some(text) = value.to_text_with(Some(*decimals))
                {
                    *value = Value::Bytes(text);
                }
            }
            self.writer.text_row(&shown, &self.types);
            return Ok(());
        }
        if !self.binary {
            self.writer.text_row(values, &self.types);
            return Ok(());
        }
        self.writer
            .binary_row(values, &self.types)
            .map_err(|error| error::make(error.errno(), "HY000", &error.to_string()))
    }

    async fn flush(&mut self) -> io::Result<()> {
        if self.writer.bytes().len() < SEND_BYTES {
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
        self.begun
    }
}
