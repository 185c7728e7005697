//! Keys whose bytes order as the values do, so that an index compares bytes only.
//!
//! Every column begins with a marker (NULL first) and ends by itself, so keys can be joined.

#[cfg(test)]
mod tests;

use crate::{Collation, ColumnType, ConvertContext, TypeKind, Value, collation, convert_to_column};
use alloc::vec::Vec;

const NULL: u8 = 0;
const PRESENT: u8 = 1;

/// Appends the key of one value, which must be of the column's own type.
pub fn encode_key_value(column: &ColumnType, value: &Value, out: &mut Vec<u8>) {
    if value.is_null() {
        out.push(NULL);
        return;
    }
    let start = out.len();
    out.push(PRESENT);
    if put(column, value, out).is_some() {
        return;
    }
    // Not of the column's type: as it would be stored.
    out.truncate(start);
    let mut ctx = ConvertContext::new(false, "", 0);
    let stored = convert_to_column(value.clone(), column, &mut ctx).unwrap_or(Value::Null);
    out.push(PRESENT);
    if stored.is_null() || put(column, &stored, out).is_none() {
        out.truncate(start);
        out.push(NULL);
    }
}

/// Appends the key of a text, as [`encode_key_value`] does.
pub(crate) fn encode_key_text(collation: Collation, text: &str, out: &mut Vec<u8>) {
    out.push(PRESENT);
    collation::append_key(collation, text, out);
}

/// Appends the key of a whole number that is stored like this, as [`encode_key_value`] does.
pub(crate) fn encode_key_integer(unsigned: bool, stored: &[u8], out: &mut Vec<u8>) {
    out.push(PRESENT);
    let start = out.len();
    out.extend(stored.iter().rev());
    if !unsigned {
        flip_sign(out.get_mut(start..).unwrap_or_default());
    }
}

fn put(column: &ColumnType, value: &Value, out: &mut Vec<u8>) -> Option<()> {
    match (column.kind, value) {
        (TypeKind::Float, Value::Float(v)) => put_double(f64::from(*v), out),
        (TypeKind::Double, Value::Double(v)) => put_double(*v, out),
        (TypeKind::Decimal { precision, scale }, Value::Decimal(v)) if v.fits(precision, scale) => {
            let mut bytes = v.to_signed_be(scale, column.max_bytes());
            flip_sign(&mut bytes);
            out.extend_from_slice(&bytes);
        }
        (TypeKind::Date, Value::Date(v)) => put_low(u64::from(v.packed()), 3, out),
        (TypeKind::Time { .. }, Value::Time(v)) => {
            put_low((v.total_micros() as u64) ^ (1 << 47), 6, out);
        }
        (TypeKind::DateTime { .. } | TypeKind::Timestamp { .. }, Value::DateTime(v)) => {
            put_low(v.packed(), 8, out);
        }
        (TypeKind::Year, Value::UInt(v)) => put_low(*v, 2, out),
        (kind, Value::Text(text, _)) if kind.is_text() => {
            collation::append_key(column.collation, text, out);
        }
        (kind, Value::Bytes(bytes)) if kind.is_bytes() => collation::append_escaped(bytes, out),
        (kind, value) => {
            let width = kind.integer_bytes()?;
            let bits = crate::row::integer_bits(value, width, column.unsigned)?;
            let flip = if column.unsigned { 0 } else { 1 << (8 * width - 1) };
            put_low(bits ^ flip, width, out);
        }
    }
    Some(())
}

fn put_low(bits: u64, width: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(bits.to_be_bytes().get(8 - width..).unwrap_or(&[]));
}

fn flip_sign(bytes: &mut [u8]) {
    if let Some(first) = bytes.first_mut() {
        *first ^= 0x80;
    }
}

/// Negative numbers upside down; both zeros alike.
fn put_double(value: f64, out: &mut Vec<u8>) {
    let bits = (if value == 0.0 { 0.0 } else { value }).to_bits();
    let ordered = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
    out.extend_from_slice(&ordered.to_be_bytes());
}

/// How many bytes at the beginning of a key are the key of one value, as [`encode_key_value`] has
/// written it; none if they are no such key.
pub fn key_value_bytes(column: &ColumnType, key: &[u8]) -> Option<usize> {
    let (first, rest) = key.split_first()?;
    let bytes = match (*first, column.kind) {
        (NULL, _) => return Some(1),
        (PRESENT, TypeKind::Float | TypeKind::Double) => 8,
        (PRESENT, TypeKind::DateTime { .. } | TypeKind::Timestamp { .. }) => 8,
        (PRESENT, TypeKind::Decimal { .. }) => column.max_bytes(),
        (PRESENT, TypeKind::Date) => 3,
        (PRESENT, TypeKind::Time { .. }) => 6,
        (PRESENT, TypeKind::Year) => 2,
        (PRESENT, kind) if kind.is_text() => collation::key_bytes(column.collation, rest)?,
        (PRESENT, kind) if kind.is_bytes() => collation::key_bytes(Collation::Binary, rest)?,
        (PRESENT, kind) => kind.integer_bytes()?,
        _ => return None,
    };
    (bytes <= rest.len()).then_some(1 + bytes)
}

/// The smallest key above every key that starts with `prefix`; `None` if there is none.
pub fn next_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != 0xff)?;
    let mut next = prefix.get(..=last)?.to_vec();
    let byte = next.last_mut()?;
    *byte += 1;
    Some(next)
}
