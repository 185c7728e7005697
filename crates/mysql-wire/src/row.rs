//! Rows of results, as text (queries) and in binary form (prepared statements).

use lats_values::{ColumnType, TypeKind, Value};

use crate::bytes::put_lenenc_bytes;
use crate::error::WireError;
use crate::temporal::{put_date, put_date_time, put_time};

#[cfg(test)]
mod tests;

/// Stands for NULL in a text row.
const NULL_MARKER: u8 = 0xFB;
/// The binary row's null bitmap starts at this bit; the two before it are reserved.
const NULL_BITMAP_OFFSET: usize = 2;

/// Appends the payload of a text row.
pub(crate) fn put_text_row(out: &mut Vec<u8>, values: &[Value], types: &[ColumnType]) {
    for (at, value) in values.iter().enumerate() {
        match value {
            Value::UInt(0) if types.get(at).is_some_and(|t| t.kind == TypeKind::Year) => {
                put_lenenc_bytes(out, b"0000");
            }
            // Numbers are the bulk of most results: no allocation for them.
            Value::Int(number) => put_integer(out, *number < 0, number.unsigned_abs()),
            Value::UInt(number) => put_integer(out, false, *number),
            other => match other.as_bytes() {
                Some(bytes) => put_lenenc_bytes(out, &bytes),
                None => out.push(NULL_MARKER),
            },
        }
    }
}

fn put_integer(out: &mut Vec<u8>, negative: bool, magnitude: u64) {
    let length_at = out.len();
    out.push(0);
    if negative {
        out.push(b'-');
    }
    let digits_at = out.len();
    let mut rest = magnitude;
    loop {
        out.push(b'0' + (rest % 10) as u8);
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    // At most 21 bytes, so that the length is one byte.
    let length = (out.len() - length_at - 1) as u8;
    if let Some(digits) = out.get_mut(digits_at..) {
        digits.reverse();
    }
    if let Some(place) = out.get_mut(length_at) {
        *place = length;
    }
}

/// Appends the payload of a binary row. On an error `out` holds a part of it.
pub(crate) fn put_binary_row(
    out: &mut Vec<u8>,
    values: &[Value],
    types: &[ColumnType],
) -> Result<(), WireError> {
    if values.len() != types.len() {
        return Err(WireError::ValueMismatch(values.len().min(types.len())));
    }
    out.push(0x00);
    let bitmap_at = out.len();
    let bitmap_bytes = (values.len() + NULL_BITMAP_OFFSET).div_ceil(8);
    out.resize(bitmap_at + bitmap_bytes, 0);
    for (index, (value, column)) in values.iter().zip(types).enumerate() {
        if value.is_null() {
            let bit = index + NULL_BITMAP_OFFSET;
            if let Some(byte) = out.get_mut(bitmap_at + bit / 8) {
                *byte |= 1 << (bit % 8);
            }
        } else {
            put_binary_value(out, value, column).ok_or(WireError::ValueMismatch(index))?;
        }
    }
    Ok(())
}

fn put_binary_value(out: &mut Vec<u8>, value: &Value, column: &ColumnType) -> Option<()> {
    use TypeKind as K;
    match column.kind {
        K::TinyInt => put_fixed::<1>(out, value)?,
        K::SmallInt | K::Year => put_fixed::<2>(out, value)?,
        K::MediumInt | K::Int => put_fixed::<4>(out, value)?,
        K::BigInt => put_fixed::<8>(out, value)?,
        K::Float => out.extend_from_slice(&(real(value)? as f32).to_le_bytes()),
        K::Double => out.extend_from_slice(&real(value)?.to_le_bytes()),
        K::Date => match value {
            Value::Date(date) => put_date(out, date),
            Value::DateTime(moment) => put_date(out, &moment.date),
            _ => return None,
        },
        K::Time { .. } => match value {
            Value::Time(time) => put_time(out, time),
            _ => return None,
        },
        K::DateTime { .. } | K::Timestamp { .. } => match value {
            Value::DateTime(moment) => put_date_time(out, moment),
            Value::Date(date) => put_date(out, date),
            _ => return None,
        },
        _ => put_lenenc_bytes(out, &value.as_bytes()?),
    }
    Some(())
}

/// The number's lowest `N` bytes, if it has no more, signed or unsigned.
fn put_fixed<const N: usize>(out: &mut Vec<u8>, value: &Value) -> Option<()> {
    let number = integer(value)?;
    let range = 1_i128 << (8 * N);
    if number < -(range / 2) || number >= range {
        return None;
    }
    let bytes = number.to_le_bytes();
    out.extend_from_slice(bytes.first_chunk::<N>()?);
    Some(())
}

fn integer(value: &Value) -> Option<i128> {
    match value {
        Value::Int(number) => Some(i128::from(*number)),
        Value::UInt(number) => Some(i128::from(*number)),
        Value::Decimal(number) => number.to_text().parse().ok(),
        _ => None,
    }
}

fn real(value: &Value) -> Option<f64> {
    match value {
        Value::Double(number) => Some(*number),
        Value::Float(number) => Some(f64::from(*number)),
        Value::Int(number) => Some(*number as f64),
        Value::UInt(number) => Some(*number as f64),
        Value::Decimal(number) => Some(number.to_f64()),
        _ => None,
    }
}
