//! The packets that a server sends, appended to one buffer.

use lats_values::{ColumnType, TypeKind, Value};

use crate::bytes::{put_lenenc_bytes, put_lenenc_int};
use crate::capabilities::{Capabilities, StatusFlags};
use crate::column::{ColumnInfo, put_column};
use crate::error::WireError;
use crate::packet::{FRAGMENT_BYTES_MAX, HEADER_BYTES};
use crate::row::{put_binary_row, put_text_row};

#[cfg(test)]
mod tests;

/// Bytes of an error message, as MySQL limits them.
const ERROR_MESSAGE_BYTES_MAX: usize = 512;
/// The first byte of an EOF packet, and of the OK packet that stands in for it.
const EOF_MARKER: u8 = 0xFE;

/// What an OK packet tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OkPacket<'a> {
    /// Rows that the statement changed.
    pub affected_rows: u64,
    /// The first AUTO_INCREMENT value that the statement made; 0 if none.
    pub last_insert_id: u64,
    /// The session's state after the statement.
    pub status: StatusFlags,
    /// Warnings that the statement left.
    pub warnings: u16,
    /// A line for people, such as `Rows matched: 1  Changed: 1  Warnings: 0`; may be empty.
    pub info: &'a str,
}

/// The payload of a binary row, to be sent later with [`PacketWriter::raw`].
///
/// # Errors
/// A value that does not fit its column's type.
pub fn binary_row_payload(values: &[Value], types: &[ColumnType]) -> Result<Vec<u8>, WireError> {
    let mut payload = Vec::new();
    put_binary_row(&mut payload, values, types)?;
    Ok(payload)
}

/// The column count and the definitions of a result's columns, made once and sent with many results.
#[derive(Clone, Debug)]
pub struct ColumnDefinitions {
    packets: Box<[u8]>,
    /// Where the packets begin: the last byte of each header is its sequence number.
    headers: Box<[usize]>,
}

impl<'a> FromIterator<ColumnInfo<'a>> for ColumnDefinitions {
    fn from_iter<I: IntoIterator<Item = ColumnInfo<'a>>>(columns: I) -> Self {
        let columns: Vec<ColumnInfo<'a>> = columns.into_iter().collect();
        let mut writer = PacketWriter::new();
        writer.column_count(columns.len());
        for column in &columns {
            writer.column(column);
        }
        let (mut headers, mut at) = (Vec::new(), 0);
        while let Some([low, middle, high]) = writer.buffer.get(at..).and_then(<[u8]>::first_chunk)
        {
            headers.push(at);
            at += HEADER_BYTES + u32::from_le_bytes([*low, *middle, *high, 0]) as usize;
        }
        Self { packets: writer.buffer.into(), headers: headers.into() }
    }
}

/// Gathers packets in a buffer, with their sequence numbers, for the shell to send.
#[derive(Clone, Debug, Default)]
pub struct PacketWriter {
    buffer: Vec<u8>,
    /// Bytes at its beginning that were sent.
    sent: usize,
    sequence: u8,
    capabilities: Capabilities,
}

impl PacketWriter {
    /// The writer of a new connection: sequence number 0, nothing known of the client.
    pub fn new() -> Self {
        Self::default()
    }

    /// What was agreed in the handshake; it decides between EOF and OK packets.
    pub fn set_capabilities(&mut self, capabilities: Capabilities) {
        self.capabilities = capabilities;
    }

    /// What was agreed in the handshake.
    pub fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    /// The packets that follow answer the request with this sequence number.
    pub fn start_reply(&mut self, request_sequence: u8) {
        self.sequence = request_sequence.wrapping_add(1);
    }

    /// The sequence number that the next packet gets.
    pub fn next_sequence(&self) -> u8 {
        self.sequence
    }

    /// The bytes to send.
    pub fn bytes(&self) -> &[u8] {
        self.buffer.get(self.sent..).unwrap_or_default()
    }

    /// Takes the bytes to send out; the sequence number goes on.
    pub fn take(&mut self) -> Vec<u8> {
        self.buffer.drain(..core::mem::take(&mut self.sent));
        core::mem::take(&mut self.buffer)
    }

    /// Forgets so many bytes at the beginning, which were sent.
    pub fn sent(&mut self, bytes: usize) {
        self.sent = self.buffer.len().min(self.sent + bytes);
        // Seldom: what is left is moved once for as many bytes at least.
        if self.sent > self.buffer.len() / 2 || self.sent == self.buffer.len() {
            self.buffer.drain(..core::mem::take(&mut self.sent));
        }
    }

    /// Forgets the bytes, which were sent, and keeps the buffer's space.
    pub fn clear(&mut self) {
        self.buffer.clear();
        self.sent = 0;
    }

    /// Keeps no more space than this, if there is not more in it.
    pub fn shrink_to(&mut self, bytes: usize) {
        if self.buffer.capacity() > bytes {
            self.buffer.shrink_to(bytes);
        }
    }

    /// A packet with any payload, split where it is longer than one packet may be.
    pub fn raw(&mut self, payload: &[u8]) {
        self.packet(|out| out.extend_from_slice(payload));
    }

    /// An OK packet.
    pub fn ok(&mut self, ok: &OkPacket<'_>) {
        self.ok_with_marker(0x00, ok);
    }

    /// An ERR packet. Messages are cut at 512 bytes, as MySQL's are.
    pub fn err(&mut self, errno: u16, sqlstate: &[u8; 5], message: &str) {
        // A client that has not said what it speaks gets the oldest form, as from MySQL.
        let with_state = self.capabilities.contains(Capabilities::PROTOCOL_41);
        self.packet(|out| {
            out.push(0xFF);
            out.extend_from_slice(&errno.to_le_bytes());
            if with_state {
                out.push(b'#');
                out.extend_from_slice(sqlstate);
            }
            out.extend_from_slice(cut(message, ERROR_MESSAGE_BYTES_MAX).as_bytes());
        });
    }

    /// The ERR packet of a refused request.
    pub fn wire_err(&mut self, error: &WireError) {
        self.err(error.errno(), &error.sqlstate(), &error.to_string());
    }

    /// An EOF packet, whatever the client asked for. Results, COM_SET_OPTION and COM_DEBUG end with
    /// [`Self::result_end`].
    pub fn eof(&mut self, status: StatusFlags, warnings: u16) {
        self.packet(|out| {
            out.push(EOF_MARKER);
            out.extend_from_slice(&warnings.to_le_bytes());
            out.extend_from_slice(&status.bits().to_le_bytes());
        });
    }

    /// The packet that starts a result set: how many columns it has.
    pub fn column_count(&mut self, count: usize) {
        self.packet(|out| put_lenenc_int(out, count as u64));
    }

    /// The definition of one column (or of one parameter of a prepared statement).
    pub fn column(&mut self, column: &ColumnInfo<'_>) {
        self.packet(|out| put_column(out, column));
    }

    /// Column count and definitions.
    pub fn definitions(&mut self, of: &ColumnDefinitions) {
        let start = self.buffer.len();
        self.buffer.extend_from_slice(&of.packets);
        for header in &of.headers {
            if let Some(sequence) = self.buffer.get_mut(start + header + HEADER_BYTES - 1) {
                *sequence = self.sequence;
            }
            self.sequence = self.sequence.wrapping_add(1);
        }
    }

    /// The definition of one column as COM_FIELD_LIST answers it, with the default value as text.
    pub fn field_list_column(&mut self, column: &ColumnInfo<'_>, default: Option<&str>) {
        self.packet(|out| {
            put_column(out, column);
            match default {
                Some(text) => put_lenenc_bytes(out, text.as_bytes()),
                None => out.push(0xFB),
            }
        });
    }

    /// What follows the column definitions: an EOF packet, or nothing if the client does without.
    pub fn columns_end(&mut self, status: StatusFlags, warnings: u16) {
        if !self.capabilities.contains(Capabilities::DEPRECATE_EOF) {
            self.eof(status, warnings);
        }
    }

    /// Column count, definitions and their end: everything of a result set before its rows.
    pub fn result_start(&mut self, columns: &[ColumnInfo<'_>], status: StatusFlags) {
        self.column_count(columns.len());
        for column in columns {
            self.column(column);
        }
        self.columns_end(status, 0);
    }

    /// The end of a result set, of a fetched batch or of COM_FIELD_LIST: an EOF packet, or the OK
    /// packet that stands in for it.
    pub fn result_end(&mut self, status: StatusFlags, warnings: u16) {
        if self.capabilities.contains(Capabilities::DEPRECATE_EOF) {
            let ok = OkPacket { status, warnings, ..OkPacket::default() };
            self.ok_with_marker(EOF_MARKER, &ok);
        } else {
            self.eof(status, warnings);
        }
    }

    /// The whole answer to an execute request that opens a cursor: definitions, and one packet
    /// with CURSOR_EXISTS instead of rows.
    pub fn cursor_opened(
        &mut self,
        columns: &[ColumnInfo<'_>],
        status: StatusFlags,
        warnings: u16,
    ) {
        self.column_count(columns.len());
        for column in columns {
            self.column(column);
        }
        self.result_end(status | StatusFlags::CURSOR_EXISTS, warnings);
    }

    /// One row of a query's result.
    pub fn text_row(&mut self, values: &[Value], types: &[ColumnType]) {
        self.packet(|out| put_text_row(out, values, types));
    }

    /// One row of a prepared statement's result. Nothing is written if a value does not fit its
    /// column's type.
    pub fn binary_row(&mut self, values: &[Value], types: &[ColumnType]) -> Result<(), WireError> {
        let start = self.begin();
        match put_binary_row(&mut self.buffer, values, types) {
            Ok(()) => {
                self.finish(start);
                Ok(())
            }
            Err(error) => {
                self.buffer.truncate(start);
                Err(error)
            }
        }
    }

    /// The whole answer to COM_STMT_PREPARE: the statement's id, its parameters and its columns
    /// (none for a statement without a result).
    pub fn prepare_ok(
        &mut self,
        statement_id: u32,
        parameters: u16,
        columns: &[ColumnInfo<'_>],
        status: StatusFlags,
        warnings: u16,
    ) {
        // No table that the catalog admits has more columns than 16 bits count.
        let columns = columns.get(..usize::from(u16::MAX)).unwrap_or(columns);
        self.packet(|out| {
            out.push(0x00);
            out.extend_from_slice(&statement_id.to_le_bytes());
            out.extend_from_slice(&(columns.len() as u16).to_le_bytes());
            out.extend_from_slice(&parameters.to_le_bytes());
            out.push(0x00);
            out.extend_from_slice(&warnings.to_le_bytes());
        });
        if parameters > 0 {
            // Nobody knows the type of a parameter before it is bound.
            let unknown = ColumnType::new(TypeKind::VarBinary { bytes: 0 });
            let parameter = ColumnInfo::expression("?", &unknown);
            for _ in 0..parameters {
                self.column(&parameter);
            }
            self.columns_end(status, 0);
        }
        if !columns.is_empty() {
            for column in columns {
                self.column(column);
            }
            self.columns_end(status, 0);
        }
    }

    /// The answer to COM_STATISTICS: a line of text.
    pub fn statistics(&mut self, line: &str) {
        self.packet(|out| out.extend_from_slice(line.as_bytes()));
    }

    fn ok_with_marker(&mut self, marker: u8, ok: &OkPacket<'_>) {
        self.packet(|out| {
            out.push(marker);
            put_lenenc_int(out, ok.affected_rows);
            put_lenenc_int(out, ok.last_insert_id);
            out.extend_from_slice(&ok.status.bits().to_le_bytes());
            out.extend_from_slice(&ok.warnings.to_le_bytes());
            if !ok.info.is_empty() {
                // The documentation calls it a string up to the packet's end, but MySQL sends,
                // and its client library reads, a length-encoded one.
                put_lenenc_bytes(out, cut(ok.info, ERROR_MESSAGE_BYTES_MAX).as_bytes());
            }
        });
    }

    fn packet(&mut self, fill: impl FnOnce(&mut Vec<u8>)) {
        let start = self.begin();
        fill(&mut self.buffer);
        self.finish(start);
    }

    /// Leaves room for a header; gives where it stands.
    fn begin(&mut self) -> usize {
        let start = self.buffer.len();
        self.buffer.extend_from_slice(&[0; HEADER_BYTES]);
        start
    }

    /// Fills in the header at `start`, now that the payload behind it is complete.
    fn finish(&mut self, start: usize) {
        let payload_at = start + HEADER_BYTES;
        let length = self.buffer.len().saturating_sub(payload_at);
        if length < FRAGMENT_BYTES_MAX {
            let header = self.header(length);
            if let Some(place) = self.buffer.get_mut(start..payload_at) {
                place.copy_from_slice(&header);
            }
            return;
        }
        let payload = self.buffer.split_off(payload_at);
        self.buffer.truncate(start);
        for fragment in payload.chunks(FRAGMENT_BYTES_MAX) {
            self.fragment(fragment);
        }
        if payload.len().is_multiple_of(FRAGMENT_BYTES_MAX) {
            // A full last packet would promise another one: an empty one keeps the promise.
            self.fragment(&[]);
        }
    }

    fn fragment(&mut self, payload: &[u8]) {
        let header = self.header(payload.len());
        self.buffer.extend_from_slice(&header);
        self.buffer.extend_from_slice(payload);
    }

    fn header(&mut self, length: usize) -> [u8; HEADER_BYTES] {
        let [a, b, c, ..] = length.to_le_bytes();
        let sequence = self.sequence;
        self.sequence = sequence.wrapping_add(1);
        [a, b, c, sequence]
    }
}

/// The longest beginning of `text` that has at most `bytes` bytes.
fn cut(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end = end.saturating_sub(1);
    }
    text.get(..end).unwrap_or_default()
}
