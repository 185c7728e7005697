//! Conversions: into a column, by CAST, and to the type of a result.

mod cast;
pub(crate) mod moment;
mod numbers;
mod store_temporal;
mod strings;
#[cfg(test)]
mod tests;

pub use cast::{cast, present};

use crate::{
    ColumnType, Date, DateTime, Decimal, SqlError, Time, TypeKind, Value, error::push_warning,
};
use alloc::{string::String, vec::Vec};
use core::fmt;

/// How messages name a column.
#[derive(Clone, Copy, Debug)]
pub enum ColumnName<'a> {
    /// By its name.
    Name(&'a str),
    /// By its place, from 1: where nobody knows its name. Who asked puts that in.
    Place(u32),
}

impl fmt::Display for ColumnName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Place(place) => write!(f, "column {place}"),
        }
    }
}

impl<'a> From<&'a str> for ColumnName<'a> {
    fn from(name: &'a str) -> Self {
        Self::Name(name)
    }
}

/// What a store conversion needs for its messages, and the warnings that it leaves.
#[derive(Clone, Debug)]
pub struct ConvertContext<'a> {
    /// Whether a value that has to be changed is an error, as in MySQL's strict mode.
    pub strict: bool,
    /// The column.
    pub column: ColumnName<'a>,
    /// The number of the row in the statement, from 1.
    pub row_number: u64,
    /// Warnings, at most 64.
    pub warnings: Vec<SqlError>,
}

impl<'a> ConvertContext<'a> {
    /// Without warnings yet.
    pub fn new(strict: bool, column: impl Into<ColumnName<'a>>, row_number: u64) -> Self {
        Self { strict, column: column.into(), row_number, warnings: Vec::new() }
    }

    /// Keeps a warning, or fails with it when strict.
    pub(crate) fn warn(&mut self, warning: SqlError) -> Result<(), SqlError> {
        if self.strict {
            return Err(warning);
        }
        self.note(warning);
        Ok(())
    }

    /// Keeps a warning that is never an error.
    pub(crate) fn note(&mut self, warning: SqlError) {
        push_warning(&mut self.warnings, warning);
    }

    fn out_of_range(&self) -> SqlError {
        SqlError::out_of_range(self.column, self.row_number)
    }

    fn truncated(&self) -> SqlError {
        SqlError::truncated(self.column, self.row_number)
    }

    fn incorrect(&self, kind: &str, value: &str) -> SqlError {
        SqlError::incorrect_value(kind, value, self.column, self.row_number)
    }
}

/// True if a value that [`convert_to_column`] would give back as it is; not of every such value, but of byte strings, which
/// are long.
pub(crate) fn is_stored_as_it_is(value: &Value, to: &ColumnType) -> bool {
    match (value, to.kind) {
        (Value::Bytes(value), TypeKind::Binary { bytes }) => value.len() == usize::from(bytes),
        (Value::Bytes(value), kind) if kind.is_bytes() => value.len() <= kind.max_variable_bytes(),
        _ => false,
    }
}

/// Makes a value one of the column's type: range, length, padding. NULL stays NULL, whether the
/// column takes it or not.
pub fn convert_to_column(
    value: Value,
    to: &ColumnType,
    ctx: &mut ConvertContext<'_>,
) -> Result<Value, SqlError> {
    if value.is_null() {
        return Ok(Value::Null);
    }
    match to.kind {
        TypeKind::Float | TypeKind::Double => numbers::store_real(&value, to, ctx),
        TypeKind::Decimal { precision, scale } => {
            numbers::store_decimal(&value, precision, scale, to.unsigned, ctx)
        }
        TypeKind::Date => store_temporal::store_date(&value, ctx),
        TypeKind::Time { fsp } => store_temporal::store_time(&value, fsp, ctx),
        TypeKind::DateTime { fsp } => store_temporal::store_moment(&value, fsp, false, ctx),
        TypeKind::Timestamp { fsp } => store_temporal::store_moment(&value, fsp, true, ctx),
        TypeKind::Year => numbers::store_year(&value, ctx),
        kind if kind.is_text() => strings::store_text(value, to, ctx),
        kind if kind.is_bytes() => strings::store_bytes(value, to, ctx),
        _ => numbers::store_integer(&value, to, ctx),
    }
}

/// The value that MySQL stores outside strict mode where NULL may not be: zero or nothing.
pub fn implicit_default(column: &ColumnType) -> Value {
    match column.kind {
        TypeKind::Float => Value::Float(0.0),
        TypeKind::Double => Value::Double(0.0),
        TypeKind::Decimal { scale, .. } => Value::Decimal(Decimal::new(0, scale)),
        TypeKind::Date => Value::Date(Date::ZERO),
        TypeKind::Time { fsp } => Value::Time(Time::from_micros(0, fsp)),
        TypeKind::DateTime { fsp } | TypeKind::Timestamp { fsp } => {
            Value::DateTime(DateTime { fsp, ..DateTime::ZERO })
        }
        TypeKind::Year => Value::UInt(0),
        TypeKind::Binary { bytes } => Value::Bytes(alloc::vec![0; usize::from(bytes)]),
        kind if kind.is_text() => Value::Text(String::new(), column.collation),
        kind if kind.is_bytes() => Value::Bytes(Vec::new()),
        _ if column.unsigned => Value::UInt(0),
        _ => Value::Int(0),
    }
}
