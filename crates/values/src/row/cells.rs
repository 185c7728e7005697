//! One column's bytes in a row.

use crate::{
    ColumnType, Date, DateTime, Decimal, Time, TypeKind, Value, temporal::TIME_MICROS_MAX,
};
use alloc::{string::String, vec::Vec};

/// Sets the bytes of a value of fixed width; `None` when it is not of the column's type.
pub(super) fn put(column: &ColumnType, value: &Value, out: &mut [u8]) -> Option<()> {
    let width = out.len();
    match (column.kind, value) {
        (TypeKind::Float, Value::Float(v)) => out.copy_from_slice(&v.to_le_bytes()),
        (TypeKind::Double, Value::Double(v)) => out.copy_from_slice(&v.to_le_bytes()),
        (TypeKind::Decimal { precision, scale }, Value::Decimal(v)) => {
            if !v.fits(precision, scale) {
                return None;
            }
            out.copy_from_slice(&v.to_signed_be(scale, width));
            out.reverse();
        }
        (TypeKind::Date, Value::Date(v)) => put_low(u64::from(v.packed()), out),
        (TypeKind::Time { .. }, Value::Time(v)) => put_low(v.total_micros() as u64, out),
        (TypeKind::DateTime { .. } | TypeKind::Timestamp { .. }, Value::DateTime(v)) => {
            put_low(v.packed(), out);
        }
        (TypeKind::Year, Value::UInt(v)) => *out.first_mut()? = year_byte(*v)?,
        (kind, value) if kind.is_integer() => {
            put_low(integer_bits(value, width, column.unsigned)?, out);
        }
        _ => return None,
    }
    Some(())
}

fn put_low(bits: u64, out: &mut [u8]) {
    let width = out.len();
    out.copy_from_slice(&bits.to_le_bytes()[..width]);
}

/// YEAR is stored as in MySQL: 0 for year 0, else the years after 1900.
fn year_byte(year: u64) -> Option<u8> {
    match year {
        0 => Some(0),
        1901..=2155 => u8::try_from(year - 1900).ok(),
        _ => None,
    }
}

/// The two's complement of a whole number; `None` when it does not fit.
pub(crate) fn integer_bits(value: &Value, width: usize, unsigned: bool) -> Option<u64> {
    let wide = match value {
        Value::Int(v) => i128::from(*v),
        Value::UInt(v) => i128::from(*v),
        _ => return None,
    };
    let (low, high) = integer_range(width, unsigned);
    (low..=high).contains(&wide).then_some(wide as u64)
}

/// The smallest and the largest number of a whole-number type.
pub(crate) fn integer_range(width: usize, unsigned: bool) -> (i128, i128) {
    let bits = 8 * width.min(8) as u32;
    if unsigned {
        (0, (1_i128 << bits) - 1)
    } else {
        (-(1_i128 << (bits - 1)), (1_i128 << (bits - 1)) - 1)
    }
}

fn low_bits(bytes: &[u8]) -> u64 {
    let mut all = [0; 8];
    for (to, from) in all.iter_mut().zip(bytes) {
        *to = *from;
    }
    u64::from_le_bytes(all)
}

fn signed_bits(bytes: &[u8]) -> i64 {
    let unused = 64 - 8 * bytes.len().clamp(1, 8) as u32;
    ((low_bits(bytes) << unused) as i64) >> unused
}

/// The value of these bytes; NULL when they are none, which `is_valid` rules out.
pub(super) fn get(column: &ColumnType, bytes: &[u8]) -> Value {
    read(column, bytes).unwrap_or(Value::Null)
}

fn read(column: &ColumnType, bytes: &[u8]) -> Option<Value> {
    Some(match column.kind {
        TypeKind::Float => Value::Float(f32::from_le_bytes(bytes.try_into().ok()?)),
        TypeKind::Double => Value::Double(f64::from_le_bytes(bytes.try_into().ok()?)),
        TypeKind::Decimal { scale, .. } => {
            let reversed: Vec<u8> = bytes.iter().rev().copied().collect();
            Value::Decimal(Decimal::from_signed_be(&reversed, scale))
        }
        TypeKind::Date => Value::Date(Date::from_packed(u32::try_from(low_bits(bytes)).ok()?)?),
        TypeKind::Time { fsp } => Value::Time(Time::from_micros(signed_bits(bytes), fsp)),
        TypeKind::DateTime { fsp } | TypeKind::Timestamp { fsp } => {
            Value::DateTime(DateTime::from_packed(low_bits(bytes), fsp)?)
        }
        TypeKind::Year => match *bytes.first()? {
            0 => Value::UInt(0),
            year => Value::UInt(1900 + u64::from(year)),
        },
        kind if kind.is_integer() && column.unsigned => Value::UInt(low_bits(bytes)),
        kind if kind.is_integer() => Value::Int(signed_bits(bytes)),
        kind if kind.is_text() => {
            Value::Text(String::from(core::str::from_utf8(bytes).ok()?), column.collation)
        }
        _ => Value::Bytes(bytes.to_vec()),
    })
}

/// Whether bytes from outside are a value of the column.
pub(super) fn is_valid(column: &ColumnType, bytes: &[u8]) -> bool {
    let fits = |chars: u16| {
        core::str::from_utf8(bytes).is_ok_and(|text| text.chars().count() <= usize::from(chars))
    };
    match column.kind {
        TypeKind::Char { chars } => fits(chars) && bytes.last() != Some(&b' '),
        TypeKind::VarChar { chars } => fits(chars),
        TypeKind::Binary { bytes: length } => bytes.len() == usize::from(length),
        kind if kind.is_text() => {
            bytes.len() <= kind.max_variable_bytes() && core::str::from_utf8(bytes).is_ok()
        }
        kind if kind.is_bytes() => bytes.len() <= kind.max_variable_bytes(),
        TypeKind::Decimal { precision, scale } => match read(column, bytes) {
            Some(Value::Decimal(value)) => value.fits(precision, scale),
            _ => false,
        },
        TypeKind::Time { .. } => signed_bits(bytes).abs() <= TIME_MICROS_MAX,
        TypeKind::Float => matches!(read(column, bytes), Some(Value::Float(v)) if v.is_finite()),
        TypeKind::Double => matches!(read(column, bytes), Some(Value::Double(v)) if v.is_finite()),
        _ => read(column, bytes).is_some(),
    }
}
