//! The stored row: the number of its layout, a bitmap of NULLs, columns of fixed width at fixed places,
//! the ends of the variable ones, then their bytes. Any column is found without reading the others.

mod cells;
pub(crate) use cells::{integer_bits, integer_range};
#[cfg(test)]
mod tests;

use crate::{ColumnType, SqlError, Value, key};
use alloc::vec::Vec;
use core::ops::Range;
use lats_base::{RefCode, limits};

/// First byte of every row: which of its table's layouts has written it. A table has one layout until its columns can change.
const FIRST_LAYOUT: u8 = 1;

/// Where a column's bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Fixed {
        offset: usize,
        width: usize,
    },
    /// The how-manieth variable column.
    Variable(usize),
}

/// What a column is to hold.
#[derive(Clone, Copy)]
enum Cell<'a> {
    Null,
    Value(&'a Value),
    /// Bytes of a row of the same layout.
    Stored(&'a [u8]),
}

impl<'a> Cell<'a> {
    fn of(value: &'a Value) -> Self {
        if value.is_null() { Self::Null } else { Self::Value(value) }
    }

    /// The bytes of a variable column.
    fn variable(self) -> Option<&'a [u8]> {
        match self {
            Self::Null => Some(&[]),
            Self::Value(Value::Text(text, _)) => Some(text.as_bytes()),
            Self::Value(Value::Bytes(bytes)) => Some(bytes),
            Self::Value(_) => None,
            Self::Stored(bytes) => Some(bytes),
        }
    }
}

/// How the rows of a table are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowLayout {
    columns: Vec<ColumnType>,
    places: Vec<Place>,
    variable_count: usize,
    /// Where the end offsets begin.
    ends_start: usize,
    /// Where the variable bytes begin.
    heap_start: usize,
}

impl RowLayout {
    /// The layout of rows with these columns.
    pub fn new(columns: &[ColumnType]) -> Self {
        let mut offset = 1 + columns.len().div_ceil(8);
        let mut variable_count = 0;
        let mut places = Vec::with_capacity(columns.len());
        for column in columns {
            places.push(match column.kind.fixed_width() {
                Some(width) => {
                    offset += width;
                    Place::Fixed { offset: offset - width, width }
                }
                None => {
                    variable_count += 1;
                    Place::Variable(variable_count - 1)
                }
            });
        }
        let heap_start = offset + 2 * variable_count;
        Self { columns: columns.to_vec(), places, variable_count, ends_start: offset, heap_start }
    }

    /// The columns.
    pub fn columns(&self) -> &[ColumnType] {
        &self.columns
    }

    /// Appends the row of these values, which must be of the columns' types.
    pub fn encode(&self, values: &[Value], out: &mut Vec<u8>) -> Result<(), SqlError> {
        if values.len() != self.columns.len() {
            return Err(mismatch());
        }
        self.encode_cells(|index| values.get(index).map_or(Cell::Null, Cell::of), out)
    }

    /// Appends the row with these columns set, and all others as they are: they are not decoded.
    pub fn encode_over<'v>(
        &'v self,
        row: &'v [u8],
        set: impl Fn(u16) -> Option<&'v Value>,
        out: &mut Vec<u8>,
    ) -> Result<(), SqlError> {
        let cell = |index| match set(index as u16) {
            Some(value) => Cell::of(value),
            None if self.null_at(row, index) => Cell::Null,
            None => self.bytes_of(row, index).map_or(Cell::Null, Cell::Stored),
        };
        self.encode_cells(cell, out)
    }

    /// Sets a column of a row where it stands. False if that cannot be done: something is NULL, has another
    /// length, or is of another type.
    pub fn overwrite(&self, row: &mut [u8], column: u16, value: &Value) -> bool {
        let index = usize::from(column);
        let (Some(kind), Some(range)) = (self.columns.get(index), self.range_of(row, index)) else {
            return false;
        };
        if value.is_null() || self.null_at(row, index) {
            return false;
        }
        let is_variable = matches!(self.places[index], Place::Variable(_));
        let Some(bytes) = row.get_mut(range) else { return false };
        if !is_variable {
            return cells::put(kind, value, bytes).is_some();
        }
        match Cell::Value(value).variable().filter(|new| new.len() == bytes.len()) {
            Some(new) => bytes.copy_from_slice(new),
            None => return false,
        }
        true
    }

    fn encode_cells<'v>(
        &self,
        cell: impl Fn(usize) -> Cell<'v>,
        out: &mut Vec<u8>,
    ) -> Result<(), SqlError> {
        let start = out.len();
        let result = self.encode_parts(cell, start, out);
        if result.is_err() {
            out.truncate(start);
        }
        result
    }

    fn encode_parts<'v>(
        &self,
        cell: impl Fn(usize) -> Cell<'v>,
        start: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), SqlError> {
        out.push(FIRST_LAYOUT);
        out.resize(start + 1 + self.columns.len().div_ceil(8), 0);
        for (index, (column, place)) in self.columns.iter().zip(&self.places).enumerate() {
            let cell = cell(index);
            if matches!(cell, Cell::Null)
                && let Some(byte) = out.get_mut(start + 1 + index / 8)
            {
                *byte |= 1 << (index % 8);
            }
            let Place::Fixed { width, .. } = place else { continue };
            if let Cell::Stored(bytes) = cell {
                out.extend_from_slice(bytes);
                continue;
            }
            let at = out.len();
            out.resize(at + width, 0);
            if let Cell::Value(value) = cell {
                cells::put(column, value, &mut out[at..]).ok_or_else(mismatch)?;
            }
        }
        let ends = out.len();
        out.resize(ends + 2 * self.variable_count, 0);
        for (index, place) in self.places.iter().enumerate() {
            let Place::Variable(number) = place else { continue };
            out.extend_from_slice(cell(index).variable().ok_or_else(mismatch)?);
            let length = out.len() - start;
            if length > limits::ROW_BYTES_MAX {
                return Err(SqlError::row_too_large());
            }
            let end = u16::try_from(length - self.heap_start).map_err(|_| mismatch())?;
            let at = ends + 2 * number;
            if let Some(slot) = out.get_mut(at..at + 2) {
                slot.copy_from_slice(&end.to_le_bytes());
            }
        }
        if out.len() - start > limits::ROW_BYTES_MAX {
            return Err(SqlError::row_too_large());
        }
        Ok(())
    }

    /// Checks a row that comes from outside. Afterwards every column of it reads as what it is.
    pub fn validate(&self, row: &[u8]) -> Result<(), RefCode> {
        if row.len() > limits::ROW_BYTES_MAX {
            return Err(RefCode::RowTooLarge);
        }
        let ok = row.first() == Some(&FIRST_LAYOUT)
            && row.len() >= self.heap_start
            && self.spare_bits_clear(row)
            && self.ends_ordered(row)
            && (0..self.columns.len()).all(|index| self.column_valid(row, index));
        if ok { Ok(()) } else { Err(RefCode::RowMalformed) }
    }

    fn spare_bits_clear(&self, row: &[u8]) -> bool {
        let used = self.columns.len() % 8;
        used == 0 || row.get(self.columns.len().div_ceil(8)).is_some_and(|b| b >> used == 0)
    }

    fn ends_ordered(&self, row: &[u8]) -> bool {
        let mut before = 0;
        for number in 0..self.variable_count {
            match self.end_of(row, number) {
                Some(end) if end >= before => before = end,
                _ => return false,
            }
        }
        self.heap_start + before == row.len()
    }

    fn column_valid(&self, row: &[u8], index: usize) -> bool {
        let Some(column) = self.columns.get(index) else { return false };
        let Some(bytes) = self.bytes_of(row, index) else { return false };
        if self.null_at(row, index) {
            return column.nullable && bytes.iter().all(|b| *b == 0);
        }
        cells::is_valid(column, bytes)
    }

    fn end_of(&self, row: &[u8], number: usize) -> Option<usize> {
        let at = self.ends_start + 2 * number;
        let bytes = row.get(at..at + 2)?;
        Some(usize::from(u16::from_le_bytes(bytes.try_into().ok()?)))
    }

    fn bytes_of<'r>(&self, row: &'r [u8], index: usize) -> Option<&'r [u8]> {
        row.get(self.range_of(row, index)?)
    }

    fn range_of(&self, row: &[u8], index: usize) -> Option<Range<usize>> {
        Some(match *self.places.get(index)? {
            Place::Fixed { offset, width } => offset..offset + width,
            Place::Variable(number) => {
                let start = if number == 0 { 0 } else { self.end_of(row, number - 1)? };
                let end = self.end_of(row, number)?;
                self.heap_start + start..self.heap_start + end
            }
        })
    }

    fn null_at(&self, row: &[u8], index: usize) -> bool {
        row.get(1 + index / 8).is_none_or(|byte| byte >> (index % 8) & 1 == 1)
    }

    /// Whether the column is NULL; a column that is not there is.
    pub fn is_null(&self, row: &[u8], column: u16) -> bool {
        self.null_at(row, usize::from(column))
    }

    /// The column's value; NULL for a column that is not there.
    pub fn value(&self, row: &[u8], column: u16) -> Value {
        let index = usize::from(column);
        match (self.columns.get(index), self.bytes_of(row, index)) {
            (Some(column), Some(bytes)) if !self.null_at(row, index) => cells::get(column, bytes),
            _ => Value::Null,
        }
    }

    /// Appends the order-preserving encoding of these columns.
    pub fn key_of(&self, row: &[u8], columns: &[u16], out: &mut Vec<u8>) {
        for column in columns {
            let index = usize::from(*column);
            let Some(kind) = self.columns.get(index) else { continue };
            if let (Some(width), false) = (kind.kind.integer_bytes(), self.null_at(row, index))
                && let Some(stored) = self.bytes_of(row, index).filter(|bytes| bytes.len() == width)
            {
                key::encode_key_integer(kind.unsigned, stored, out);
                continue;
            }
            match self.text_at(row, index) {
                Some(text) => key::encode_key_text(kind.collation, text, out),
                None => key::encode_key_value(kind, &self.value(row, *column), out),
            }
        }
    }

    /// The text in a column that holds one.
    fn text_at<'r>(&self, row: &'r [u8], index: usize) -> Option<&'r str> {
        let is_text = self.columns.get(index).is_some_and(|column| column.kind.is_text());
        if !is_text || self.null_at(row, index) {
            return None;
        }
        core::str::from_utf8(self.bytes_of(row, index)?).ok()
    }

    /// Appends the row of these columns only, as a layout of just them would encode it. Bytes are copied as
    /// they are: nothing is decoded.
    pub fn project(&self, row: &[u8], columns: &[u16], out: &mut Vec<u8>) {
        let start = out.len();
        out.push(FIRST_LAYOUT);
        out.resize(start + 1 + columns.len().div_ceil(8), 0);
        for (at, column) in columns.iter().enumerate() {
            if self.null_at(row, usize::from(*column))
                && let Some(byte) = out.get_mut(start + 1 + at / 8)
            {
                *byte |= 1 << (at % 8);
            }
        }
        let variable = |column: &&u16| {
            matches!(self.places.get(usize::from(**column)), Some(Place::Variable(_)))
        };
        for column in columns.iter().filter(|column| !variable(column)) {
            out.extend_from_slice(self.bytes_of(row, usize::from(*column)).unwrap_or(&[]));
        }
        let mut end = 0;
        for column in columns.iter().filter(variable) {
            end += self.bytes_of(row, usize::from(*column)).map_or(0, <[u8]>::len);
            // A part of a row is not longer than the row.
            out.extend_from_slice(&u16::try_from(end).unwrap_or(u16::MAX).to_le_bytes());
        }
        for column in columns.iter().filter(variable) {
            out.extend_from_slice(self.bytes_of(row, usize::from(*column)).unwrap_or(&[]));
        }
    }

    /// All values.
    pub fn decode(&self, row: &[u8]) -> Vec<Value> {
        (0..self.columns.len()).map(|index| self.value(row, index as u16)).collect()
    }
}

/// The caller gave values of other types than the columns': a mistake inside LatsDB.
fn mismatch() -> SqlError {
    SqlError::new(1815, *b"HY000", alloc::string::String::from("Internal error: row type mismatch"))
}
