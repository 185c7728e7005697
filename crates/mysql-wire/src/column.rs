//! Column definitions: how our types look to a client of MySQL 8.

use lats_values::{Collation, ColumnType, Look, TypeKind};

use crate::bytes::put_lenenc_bytes;
use crate::capabilities::bit_set;
use core::ops::{BitAnd, BitOr};

#[cfg(test)]
mod tests;

/// The numbers of types on the wire (`MYSQL_TYPE_*`).
pub(crate) mod type_code {
    pub(crate) const DECIMAL: u8 = 0;
    pub(crate) const TINY: u8 = 1;
    pub(crate) const SHORT: u8 = 2;
    pub(crate) const LONG: u8 = 3;
    pub(crate) const FLOAT: u8 = 4;
    pub(crate) const DOUBLE: u8 = 5;
    pub(crate) const NULL: u8 = 6;
    pub(crate) const TIMESTAMP: u8 = 7;
    pub(crate) const LONGLONG: u8 = 8;
    pub(crate) const INT24: u8 = 9;
    pub(crate) const DATE: u8 = 10;
    pub(crate) const TIME: u8 = 11;
    pub(crate) const DATETIME: u8 = 12;
    pub(crate) const YEAR: u8 = 13;
    pub(crate) const VARCHAR: u8 = 15;
    pub(crate) const BIT: u8 = 16;
    pub(crate) const JSON: u8 = 245;
    pub(crate) const NEWDECIMAL: u8 = 246;
    pub(crate) const TINY_BLOB: u8 = 249;
    pub(crate) const MEDIUM_BLOB: u8 = 250;
    pub(crate) const LONG_BLOB: u8 = 251;
    pub(crate) const BLOB: u8 = 252;
    pub(crate) const VAR_STRING: u8 = 253;
    pub(crate) const STRING: u8 = 254;
    pub(crate) const GEOMETRY: u8 = 255;
}

/// The character set number of everything that is not text.
const BINARY_CHARSET: u16 = 63;
/// Most bytes of a character in utf8mb4; lengths of text are told in bytes.
const BYTES_PER_CHAR: u32 = 4;
/// The number of decimals that means "as many as the value has".
const DECIMALS_NOT_FIXED: u8 = 31;

/// Flags of a column. Those that its type decides (NOT_NULL, BLOB, UNSIGNED, ZEROFILL of YEAR,
/// BINARY) are added by the writer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ColumnFlags(pub u16);

bit_set!(ColumnFlags, u16);

impl ColumnFlags {
    /// No flag.
    pub const NONE: Self = Self(0);
    /// NULL is not allowed.
    pub const NOT_NULL: Self = Self(1);
    /// Part of the primary key.
    pub const PRIMARY_KEY: Self = Self(1 << 1);
    /// Part of a unique key.
    pub const UNIQUE_KEY: Self = Self(1 << 2);
    /// The first column of a key that is not unique.
    pub const MULTIPLE_KEY: Self = Self(1 << 3);
    /// TEXT or BLOB.
    pub const BLOB: Self = Self(1 << 4);
    /// Has no negative values.
    pub const UNSIGNED: Self = Self(1 << 5);
    /// Is filled up with zeros.
    pub const ZEROFILL: Self = Self(1 << 6);
    /// Is compared byte by byte.
    pub const BINARY: Self = Self(1 << 7);
    /// AUTO_INCREMENT.
    pub const AUTO_INCREMENT: Self = Self(1 << 9);
    /// A TIMESTAMP that is set by itself.
    pub const TIMESTAMP: Self = Self(1 << 10);
    /// Has no default value, so that INSERT must give one.
    pub const NO_DEFAULT_VALUE: Self = Self(1 << 12);
    /// Is set to the current time by UPDATE.
    pub const ON_UPDATE_NOW: Self = Self(1 << 13);
    /// Part of some key.
    pub const PART_KEY: Self = Self(1 << 14);
}

/// What a client is told of one column of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnInfo<'a> {
    /// The database; empty for an expression.
    pub schema: &'a str,
    /// The table, or its alias in the query; empty for an expression.
    pub table: &'a str,
    /// The table; empty for an expression.
    pub org_table: &'a str,
    /// The column's name in the result.
    pub name: &'a str,
    /// The column's name in its table; empty for an expression.
    pub org_name: &'a str,
    /// Its type.
    pub column_type: &'a ColumnType,
    /// Flags beyond those that the type decides.
    pub flags: ColumnFlags,
    /// How its values are shown, beside what its type says.
    pub look: Look,
}

impl<'a> ColumnInfo<'a> {
    /// The column of an expression.
    pub fn expression(name: &'a str, column_type: &'a ColumnType) -> Self {
        Self {
            schema: "",
            table: "",
            org_table: "",
            name,
            org_name: "",
            column_type,
            flags: ColumnFlags::NONE,
            look: Look::default(),
        }
    }
}

/// What a type looks like on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WireType {
    pub(crate) code: u8,
    /// The longest value as text, in bytes.
    pub(crate) length: u32,
    pub(crate) decimals: u8,
    pub(crate) charset: u16,
    pub(crate) flags: ColumnFlags,
}

impl WireType {
    pub(crate) fn of(column: &ColumnType) -> Self {
        let (code, length, decimals) = code_and_length(column);
        let text = column.kind.is_text() && column.collation != Collation::Binary;
        let charset = if text { column.collation.id() } else { BINARY_CHARSET };
        Self { code, length, decimals, charset, flags: type_flags(column) }
    }

    /// What is computed looks otherwise than a table's column of the type.
    fn with(mut self, column: &ColumnType, look: Look) -> Self {
        let kind = column.kind;
        if look.is_expression {
            self.flags.0 &= !ColumnFlags::BLOB.0;
            if kind.is_text() || kind.is_bytes() {
                self.decimals = DECIMALS_NOT_FIXED;
            } else {
                self.flags = self.flags.with(ColumnFlags::BINARY, true);
            }
            self.length = match kind {
                TypeKind::Float | TypeKind::Double => 23,
                TypeKind::TinyText | TypeKind::Text | TypeKind::MediumText => {
                    self.length.saturating_mul(BYTES_PER_CHAR)
                }
                _ => self.length,
            };
        }
        self.length = look.width.unwrap_or(self.length);
        self.decimals = look.decimals.unwrap_or(self.decimals);
        if let (Some(decimals), TypeKind::Double) = (look.decimals, kind) {
            self.length = u32::from(decimals) + 2;
        }
        self
    }
}

/// The type's number, the display length in bytes and the decimals, as MySQL 8 reports them.
fn code_and_length(column: &ColumnType) -> (u8, u32, u8) {
    use TypeKind as K;
    use type_code as code;
    let unsigned = u32::from(column.unsigned);
    match column.kind {
        K::TinyInt if column.is_boolean => (code::TINY, 1, 0),
        K::TinyInt => (code::TINY, 4 - unsigned, 0),
        K::SmallInt => (code::SHORT, 6 - unsigned, 0),
        K::MediumInt => (code::INT24, 9 - unsigned, 0),
        K::Int => (code::LONG, 11 - unsigned, 0),
        K::BigInt => (code::LONGLONG, 20, 0),
        K::Float => (code::FLOAT, 12, DECIMALS_NOT_FIXED),
        K::Double => (code::DOUBLE, 22, DECIMALS_NOT_FIXED),
        K::Decimal { precision, scale } => {
            let signs = 1 - unsigned + u32::from(scale > 0);
            (code::NEWDECIMAL, u32::from(precision) + signs, scale)
        }
        K::Date => (code::DATE, 10, 0),
        K::Time { fsp } => (code::TIME, with_fraction(10, fsp), fsp),
        K::DateTime { fsp } => (code::DATETIME, with_fraction(19, fsp), fsp),
        K::Timestamp { fsp } => (code::TIMESTAMP, with_fraction(19, fsp), fsp),
        K::Year => (code::YEAR, 4, 0),
        string => {
            let (code, length) = string_code_and_length(string);
            (code, length, 0)
        }
    }
}

fn string_code_and_length(kind: TypeKind) -> (u8, u32) {
    use TypeKind as K;
    use type_code as code;
    match kind {
        K::Char { chars } => (code::STRING, u32::from(chars) * BYTES_PER_CHAR),
        K::VarChar { chars } => (code::VAR_STRING, u32::from(chars) * BYTES_PER_CHAR),
        K::Binary { bytes } => (code::STRING, u32::from(bytes)),
        K::VarBinary { bytes } => (code::VAR_STRING, u32::from(bytes)),
        // Every TEXT and BLOB is of the type BLOB on the wire; the length tells them apart.
        K::TinyText => (code::BLOB, 0xFF * BYTES_PER_CHAR),
        K::Text => (code::BLOB, 0xFFFF * BYTES_PER_CHAR),
        K::MediumText => (code::BLOB, 0xFF_FFFF * BYTES_PER_CHAR),
        K::TinyBlob => (code::BLOB, 0xFF),
        K::Blob => (code::BLOB, 0xFFFF),
        K::MediumBlob => (code::BLOB, 0xFF_FFFF),
        _ => (code::BLOB, u32::MAX),
    }
}

fn with_fraction(length: u32, fsp: u8) -> u32 {
    if fsp == 0 { length } else { length + 1 + u32::from(fsp) }
}

fn type_flags(column: &ColumnType) -> ColumnFlags {
    use TypeKind as K;
    let kind = column.kind;
    let blob = matches!(
        kind,
        K::TinyText | K::Text | K::MediumText | K::LongText | K::TinyBlob | K::Blob | K::MediumBlob
    ) || kind == K::LongBlob;
    let temporal =
        matches!(kind, K::Date | K::Time { .. } | K::DateTime { .. } | K::Timestamp { .. });
    let byte_text =
        kind.is_text() && matches!(column.collation, Collation::Binary | Collation::Utf8mb4Bin);
    let year = kind == K::Year;
    ColumnFlags::NONE
        .with(ColumnFlags::NOT_NULL, !column.nullable)
        .with(ColumnFlags::BLOB, blob)
        .with(ColumnFlags::UNSIGNED, column.unsigned || year)
        .with(ColumnFlags::ZEROFILL, year)
        .with(ColumnFlags::BINARY, temporal || kind.is_bytes() || byte_text)
}

/// Appends the payload of a ColumnDefinition41 packet.
pub(crate) fn put_column(out: &mut Vec<u8>, column: &ColumnInfo<'_>) {
    let wire = WireType::of(column.column_type).with(column.column_type, column.look);
    let names = [column.schema, column.table, column.org_table, column.name, column.org_name];
    put_lenenc_bytes(out, b"def");
    for name in names {
        put_lenenc_bytes(out, name.as_bytes());
    }
    // The length of the fields that follow.
    out.push(0x0C);
    out.extend_from_slice(&wire.charset.to_le_bytes());
    out.extend_from_slice(&wire.length.to_le_bytes());
    out.push(wire.code);
    out.extend_from_slice(&(column.flags | wire.flags).bits().to_le_bytes());
    out.extend_from_slice(&[wire.decimals, 0, 0]);
}
