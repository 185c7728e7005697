//! Bytes that are equal where values are.

use crate::physical::KeyClass;
use alloc::vec::Vec;
use lats_base::planted::{QueryBug, errs};
use lats_values::{Decimal, Value, group_key};

/// Appends a value's bytes for comparisons of a class; false for NULL.
pub(super) fn append(class: KeyClass, value: Value, key: &mut Vec<u8>) -> bool {
    if value.is_null() {
        key.push(0);
        return false;
    }
    let canonical = match (class, value) {
        (KeyClass::Decimal, value @ Value::Int(_)) if errs(QueryBug::HashWholeBesideDecimal) => {
            value
        }
        (KeyClass::Decimal, Value::Int(number)) => {
            Value::Decimal(Decimal::new(i128::from(number), 0))
        }
        (KeyClass::Decimal, Value::UInt(number)) => {
            Value::Decimal(Decimal::new(i128::from(number), 0))
        }
        (KeyClass::Double, value) => Value::Double(to_double(&value)),
        (KeyClass::Text(_), Value::Text(text, _)) if errs(QueryBug::HashTextsByBytes) => {
            Value::Bytes(text.into_bytes())
        }
        (KeyClass::Text(collation), Value::Text(text, _)) => Value::Text(text, collation),
        (KeyClass::Bytes, Value::Text(text, _)) => Value::Bytes(text.into_bytes()),
        (KeyClass::Moment, Value::Date(date)) if !errs(QueryBug::HashDateBesideMoment) => {
            Value::DateTime(date.at_midnight())
        }
        (_, value) => value,
    };
    group_key(core::slice::from_ref(&canonical), key);
    true
}

fn to_double(value: &Value) -> f64 {
    match value {
        Value::Int(number) => *number as f64,
        Value::UInt(number) => *number as f64,
        Value::Float(number) => f64::from(*number),
        Value::Double(number) => *number,
        Value::Decimal(number) => number.to_f64(),
        _ => 0.0,
    }
}
