//! Parameters of prepared statements: their types, their values and their long data.

use lats_values::{Collation, Decimal, Value};

use crate::bytes::Reader;
use crate::column::type_code as code;
use crate::error::WireError;
use crate::temporal::{read_date, read_date_time, read_time};

#[cfg(test)]
mod tests;

/// Characters of a decimal parameter that are looked at; the longest number needs 68.
const DECIMAL_CHARS_MAX: usize = 256;

/// What kind of cursor an execute request asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CursorFlags(pub u8);

impl CursorFlags {
    /// Whether rows shall wait at the server until they are fetched.
    pub fn read_only(self) -> bool {
        self.0 & 1 != 0
    }

    /// Whether the cursor shall be one for UPDATE or DELETE; MySQL opens a read-only one.
    pub fn for_update(self) -> bool {
        self.0 & 2 != 0
    }

    /// Whether the cursor shall go backwards too; MySQL refuses it.
    pub fn scrollable(self) -> bool {
        self.0 & 4 != 0
    }

    /// Whether any cursor is asked for.
    pub fn any(self) -> bool {
        self.0 & 7 != 0
    }
}

/// COM_STMT_EXECUTE, whose parameters cannot be read before the statement is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExecuteRequest<'a> {
    /// The statement.
    pub statement_id: u32,
    /// The cursor that the client wants.
    pub cursor: CursorFlags,
    /// Null bitmap, types and values, for [`StatementParameters::bind`].
    pub bindings: &'a [u8],
}

/// The type that a client bound a parameter to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ParameterType {
    code: u8,
    unsigned: bool,
}

/// What is remembered of a prepared statement's parameters between its executions.
#[derive(Clone, Debug, PartialEq)]
pub struct StatementParameters {
    count: u16,
    /// One for each parameter, or none before the first execution.
    types: Vec<ParameterType>,
    /// Pieces sent ahead, for parameters that have any, in the order of the parameters.
    long_data: Vec<(u16, Vec<u8>)>,
    collation: Collation,
}

impl StatementParameters {
    /// Of a statement with `count` parameters; text that is bound gets `collation`.
    pub fn new(count: u16, collation: Collation) -> Self {
        Self { count, types: Vec::new(), long_data: Vec::new(), collation }
    }

    /// How many parameters the statement has.
    pub fn count(&self) -> u16 {
        self.count
    }

    /// Bytes of long data that are held for the next execution.
    pub fn long_data_bytes(&self) -> usize {
        self.long_data.iter().map(|(_, data)| data.len()).sum()
    }

    /// Appends a piece of a parameter's value (COM_STMT_SEND_LONG_DATA). All pieces together may
    /// have `limit` bytes. That command has no reply: keep the error for the next execution.
    pub fn append_long_data(
        &mut self,
        parameter: u16,
        data: &[u8],
        limit: usize,
    ) -> Result<(), WireError> {
        if parameter >= self.count {
            return Err(WireError::BadParameter(parameter));
        }
        let bytes = self.long_data_bytes().saturating_add(data.len());
        if bytes > limit {
            return Err(WireError::PacketTooLarge { bytes, limit });
        }
        match self.long_data.binary_search_by_key(&parameter, |(index, _)| *index) {
            Ok(at) => {
                if let Some((_, held)) = self.long_data.get_mut(at) {
                    held.extend_from_slice(data);
                }
            }
            Err(at) => self.long_data.insert(at, (parameter, data.to_vec())),
        }
        Ok(())
    }

    /// Forgets long data (COM_STMT_RESET).
    pub fn reset(&mut self) {
        self.long_data = Vec::new();
    }

    /// The values of an execution, one for each parameter. Long data is used up, also by an
    /// execution that is refused; types are remembered for executions that bring none.
    ///
    /// Strings become text, or bytes if they are not UTF-8; BLOBs become bytes; YEAR becomes
    /// `UInt`; TIMESTAMP becomes `DateTime`.
    pub fn bind(&mut self, bindings: &[u8]) -> Result<Vec<Value>, WireError> {
        let long_data = core::mem::take(&mut self.long_data);
        if self.count == 0 {
            return Ok(Vec::new());
        }
        let mut reader = Reader::new(bindings);
        let nulls = reader.take(usize::from(self.count).div_ceil(8))?;
        if reader.u8()? != 0 {
            self.types = read_types(&mut reader, self.count)?;
        }
        if self.types.len() != usize::from(self.count) {
            return Err(WireError::UnboundParameters);
        }
        let mut long_data = long_data.into_iter().peekable();
        let mut values = Vec::with_capacity(self.types.len());
        for (index, bound) in (0..self.count).zip(&self.types) {
            // Long data goes before the null bit, as in MySQL.
            let value = if let Some((_, data)) = long_data.next_if(|(at, _)| *at == index) {
                self.long_value(bound.code, data)
            } else if is_null(nulls, index) {
                Value::Null
            } else {
                self.read_value(&mut reader, *bound, index)?
            };
            values.push(value);
        }
        Ok(values)
    }

    fn long_value(&self, type_code: u8, data: Vec<u8>) -> Value {
        if is_binary_string(type_code) { Value::Bytes(data) } else { self.string(data) }
    }

    fn string(&self, bytes: Vec<u8>) -> Value {
        match String::from_utf8(bytes) {
            Ok(text) => Value::Text(text, self.collation),
            // Drivers bind byte arrays as strings as well.
            Err(error) => Value::Bytes(error.into_bytes()),
        }
    }

    fn read_value(
        &self,
        reader: &mut Reader<'_>,
        bound: ParameterType,
        index: u16,
    ) -> Result<Value, WireError> {
        let wrong = || WireError::BadParameter(index);
        Ok(match bound.code {
            code::NULL => Value::Null,
            code::FLOAT => Value::Float(f32::from_bits(reader.u32()?)),
            code::DOUBLE => Value::Double(f64::from_bits(reader.u64()?)),
            code::TINY | code::SHORT | code::YEAR | code::LONG | code::INT24 | code::LONGLONG => {
                read_integer(reader, bound)?
            }
            code::DECIMAL | code::NEWDECIMAL => {
                Value::Decimal(decimal(reader.lenenc_bytes()?).ok_or_else(wrong)?)
            }
            code::DATE => Value::Date(read_date(reader)?.ok_or_else(wrong)?),
            code::TIME => Value::Time(read_time(reader)?.ok_or_else(wrong)?),
            code::DATETIME | code::TIMESTAMP => {
                Value::DateTime(read_date_time(reader)?.ok_or_else(wrong)?)
            }
            other if is_binary_string(other) => Value::Bytes(reader.lenenc_bytes()?.to_vec()),
            _ => self.string(reader.lenenc_bytes()?.to_vec()),
        })
    }
}

fn read_types(reader: &mut Reader<'_>, count: u16) -> Result<Vec<ParameterType>, WireError> {
    let bytes = reader.take(usize::from(count) * 2)?;
    let (pairs, _) = bytes.as_chunks::<2>();
    pairs
        .iter()
        .map(|&[code, flags]| {
            if is_bindable(code) {
                Ok(ParameterType { code, unsigned: flags & 0x80 != 0 })
            } else {
                Err(WireError::UnsupportedParameterType(code))
            }
        })
        .collect()
}

/// Whether clients may bind this type: the rest exists only inside MySQL's own files.
fn is_bindable(type_code: u8) -> bool {
    matches!(type_code, code::DECIMAL..=code::YEAR | code::VARCHAR | code::BIT)
        // JSON to GEOMETRY: decimals, enumerations and strings of every kind.
        || matches!(type_code, code::JSON..=code::GEOMETRY)
}

fn is_binary_string(type_code: u8) -> bool {
    use code::{BIT, BLOB, GEOMETRY, LONG_BLOB, MEDIUM_BLOB, TINY_BLOB};
    matches!(type_code, TINY_BLOB | MEDIUM_BLOB | LONG_BLOB | BLOB | BIT | GEOMETRY)
}

fn is_null(bitmap: &[u8], index: u16) -> bool {
    bitmap.get(usize::from(index / 8)).is_some_and(|byte| byte >> (index % 8) & 1 != 0)
}

fn read_integer(reader: &mut Reader<'_>, bound: ParameterType) -> Result<Value, WireError> {
    let (unsigned, signed) = match bound.code {
        code::TINY => {
            let raw = reader.u8()?;
            (u64::from(raw), i64::from(raw as i8))
        }
        code::SHORT | code::YEAR => {
            let raw = reader.u16()?;
            (u64::from(raw), i64::from(raw as i16))
        }
        code::LONG | code::INT24 => {
            let raw = reader.u32()?;
            (u64::from(raw), i64::from(raw as i32))
        }
        _ => {
            let raw = reader.u64()?;
            (raw, raw as i64)
        }
    };
    let unsigned_type = bound.unsigned || bound.code == code::YEAR;
    Ok(if unsigned_type { Value::UInt(unsigned) } else { Value::Int(signed) })
}

fn decimal(bytes: &[u8]) -> Option<Decimal> {
    if bytes.len() > DECIMAL_CHARS_MAX {
        return None;
    }
    Decimal::parse(core::str::from_utf8(bytes).ok()?.trim())
}
