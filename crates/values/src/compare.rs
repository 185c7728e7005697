//! Comparison between values of any types, and the orders of ORDER BY and GROUP BY.

#[cfg(test)]
mod tests;

use crate::{
    Collation, DateTime, Decimal, SqlError, Value, collation,
    temporal::{self, parse_datetime, parse_time},
    text::{self, Rest},
};
use alloc::vec::Vec;
use core::cmp::Ordering;
use lats_base::planted::{QueryBug, errs};

/// A value as a number.
#[derive(Clone, Debug)]
pub(crate) enum Number {
    /// Whole.
    Int(i128),
    /// Exact with decimals.
    Decimal(Decimal),
    /// Inexact.
    Double(f64),
}

impl Number {
    /// The number that a value counts as; NULL counts as 0.
    pub(crate) fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Int(0),
            Value::Int(v) => Self::Int(i128::from(*v)),
            Value::UInt(v) if errs(QueryBug::UnsignedComparedSigned) => {
                Self::Int(i128::from(*v as i64))
            }
            Value::UInt(v) => Self::Int(i128::from(*v)),
            Value::Float(v) => Self::Double(f64::from(*v)),
            Value::Double(v) => Self::Double(*v),
            Value::Decimal(v) => Self::Decimal(v.clone()),
            Value::Text(text, _) => Self::Double(text::double_prefix(text.as_bytes()).0),
            Value::Bytes(bytes) => Self::Double(text::double_prefix(bytes).0),
            Value::Date(v) => Self::Int(i128::from(v.to_number())),
            Value::Time(v) => with_fraction(v.to_number(), v.micros, v.negative, v.fsp),
            Value::DateTime(v) => with_fraction(v.to_number(), v.micros, false, v.fsp),
        }
    }

    pub(crate) fn to_f64(&self) -> f64 {
        match self {
            Self::Int(v) => *v as f64,
            Self::Decimal(v) => v.to_f64(),
            Self::Double(v) => *v,
        }
    }

    pub(crate) fn into_decimal(self) -> Option<Decimal> {
        match self {
            Self::Int(v) => Some(Decimal::new(v, 0)),
            Self::Decimal(v) => Some(v),
            Self::Double(v) => Decimal::from_f64(v),
        }
    }

    pub(crate) fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => a.cmp(b),
            (Self::Double(_), _) | (_, Self::Double(_)) => {
                self.to_f64().partial_cmp(&other.to_f64()).unwrap_or(Ordering::Equal)
            }
            (Self::Decimal(a), Self::Decimal(b)) => a.order(b),
            (Self::Int(a), Self::Decimal(b)) => Decimal::new(*a, 0).order(b),
            (Self::Decimal(a), Self::Int(b)) => a.order(&Decimal::new(*b, 0)),
        }
    }
}

/// A day or time as a number has a fraction when it shows one.
fn with_fraction(whole: i64, micros: u32, negative: bool, fsp: u8) -> Number {
    if fsp == 0 {
        return Number::Int(i128::from(whole));
    }
    let micros = if negative { -i128::from(micros) } else { i128::from(micros) };
    let exact = Decimal::new(i128::from(whole) * 1_000_000 + micros, 6);
    Number::Decimal(exact.truncate(fsp))
}

/// The collation that text of two collations is compared in; bytes make the comparison binary.
pub fn common_collation(a: Collation, b: Collation) -> Collation {
    let rank = |c: Collation| match c {
        Collation::Utf8mb4_0900AiCi => 0,
        Collation::Utf8mb4GeneralCi => 1,
        Collation::Utf8mb4Bin => 2,
        Collation::Binary => 3,
    };
    let turned = errs(QueryBug::WeakerCollationWins);
    if (rank(a) >= rank(b)) != turned { a } else { b }
}

/// Compares two values of any types; `None` when either is NULL.
///
/// Text that is compared with a day or time must be one (error 1525).
pub fn compare(a: &Value, b: &Value) -> Result<Option<Ordering>, SqlError> {
    if a.is_null() || b.is_null() {
        return Ok(None);
    }
    let collation = common_collation(a.collation(), b.collation());
    compare_in(a, b, collation).map(Some)
}

/// The same for values that are not NULL, with the collation given.
pub(crate) fn compare_in(a: &Value, b: &Value, with: Collation) -> Result<Ordering, SqlError> {
    match (a, b) {
        (Value::Text(x, _), Value::Text(y, _)) => Ok(collation::compare(with, x, y)),
        (Value::Bytes(x), Value::Bytes(y)) => Ok(x.cmp(y)),
        (Value::Text(x, _), Value::Bytes(y)) => Ok(compare_text_with_bytes(x, y, with)),
        (Value::Bytes(x), Value::Text(y, _)) => Ok(compare_text_with_bytes(y, x, with).reverse()),
        _ if a.is_temporal() && (b.is_temporal() || b.is_string()) => compare_temporal(a, b),
        _ if b.is_temporal() && a.is_string() => Ok(compare_temporal(b, a)?.reverse()),
        (Value::DateTime(x), _) if is_whole(b) => Ok(compare_moment_with_number(x, b)),
        (_, Value::DateTime(y)) if is_whole(a) => Ok(compare_moment_with_number(y, a).reverse()),
        _ if is_whole(a) && b.is_string() => Ok(compare_whole_with_text(a, b)),
        _ if is_whole(b) && a.is_string() => Ok(compare_whole_with_text(b, a).reverse()),
        _ => Ok(Number::of(a).cmp(&Number::of(b))),
    }
}

/// A text column's collation holds for bytes beside it (`v = 0x61`) if they are text.
fn compare_text_with_bytes(text: &str, bytes: &[u8], with: Collation) -> Ordering {
    match core::str::from_utf8(bytes) {
        Ok(other) => collation::compare(with, text, other),
        Err(_) => text.as_bytes().cmp(bytes),
    }
}

fn is_whole(value: &Value) -> bool {
    matches!(value, Value::Int(_) | Value::UInt(_))
}

/// Numbers that name a moment are compared as one: `20240131` is midnight.
fn compare_moment_with_number(moment: &DateTime, number: &Value) -> Ordering {
    let wide = Number::of(number);
    if let Number::Int(v) = wide
        && let Ok(v) = i64::try_from(v)
        && let Some(other) = temporal::datetime_from_number(v)
    {
        return moment.packed().cmp(&other.packed());
    }
    Number::of(&Value::DateTime(*moment)).cmp(&wide)
}

/// Text that is a whole number is compared exactly, other text as a double.
fn compare_whole_with_text(whole: &Value, text: &Value) -> Ordering {
    let bytes = text.as_bytes().unwrap_or_default();
    let (value, rest) = text::integer_prefix(&bytes);
    let number = match rest {
        Rest::Nothing => Number::Int(value),
        _ => Number::of(text),
    };
    Number::of(whole).cmp(&number)
}

fn compare_temporal(a: &Value, b: &Value) -> Result<Ordering, SqlError> {
    match (a, b) {
        (Value::Time(x), Value::Time(y)) => Ok(x.total_micros().cmp(&y.total_micros())),
        (Value::Time(x), other) if other.is_string() => {
            let text = other.to_display();
            let parsed = parse_time(&text).ok_or_else(|| SqlError::wrong_value("TIME", &text))?;
            Ok(x.total_micros().cmp(&parsed.value.total_micros()))
        }
        (Value::Time(_), _) | (_, Value::Time(_)) => {
            // MySQL would put today's date before the time; a node has no "today".
            Err(SqlError::not_supported("comparing TIME with DATE or DATETIME"))
        }
        _ => Ok(moment_of(a, a)?.packed().cmp(&moment_of(b, a)?.packed())),
    }
}

/// A day or text as a moment; `like` says which type the message names.
fn moment_of(value: &Value, like: &Value) -> Result<DateTime, SqlError> {
    match value {
        Value::Date(v) => Ok(v.at_midnight()),
        Value::DateTime(v) => Ok(*v),
        other => {
            let text = other.to_display();
            let kind = if matches!(like, Value::Date(_)) { "DATE" } else { "DATETIME" };
            match parse_datetime(&text) {
                Some(parsed) => Ok(parsed.value),
                None => Err(SqlError::wrong_value(kind, &text)),
            }
        }
    }
}

/// The order of ORDER BY, MIN and MAX: NULL first. Total, for values of one column.
pub fn sort_order(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Null, Value::Null) => Ordering::Equal,
        (Value::Null, _) if errs(QueryBug::NullsSortLast) => Ordering::Greater,
        (_, Value::Null) if errs(QueryBug::NullsSortLast) => Ordering::Less,
        (Value::Null, _) => Ordering::Less,
        (_, Value::Null) => Ordering::Greater,
        (Value::Double(x), Value::Double(y)) => total(*x, *y),
        (Value::Float(x), Value::Float(y)) => total(f64::from(*x), f64::from(*y)),
        _ => match compare(a, b) {
            Ok(Some(order)) => order,
            _ => a.as_bytes().cmp(&b.as_bytes()),
        },
    }
}

/// Doubles with both zeros alike.
fn total(a: f64, b: f64) -> Ordering {
    let plain = |v: f64| if v == 0.0 { 0.0 } else { v };
    plain(a).total_cmp(&plain(b))
}

/// Appends bytes that are the same for lists of values that GROUP BY and DISTINCT take as equal.
pub fn group_key(values: &[Value], out: &mut Vec<u8>) {
    for value in values {
        append_group(value, out);
    }
}

fn append_group(value: &Value, out: &mut Vec<u8>) {
    let mut fixed = |tag: u8, bytes: &[u8]| {
        out.push(tag);
        out.extend_from_slice(bytes);
    };
    let is_zero = |v: f64| v == 0.0 && !errs(QueryBug::GroupsTellZerosApart);
    let double = |v: f64| (if is_zero(v) { 0.0 } else { v }).to_bits().to_be_bytes();
    match value {
        Value::Null => fixed(0, &[]),
        Value::Int(v) => fixed(1, &i128::from(*v).to_be_bytes()),
        Value::UInt(v) => fixed(1, &i128::from(*v).to_be_bytes()),
        Value::Float(v) => fixed(2, &double(f64::from(*v))),
        Value::Double(v) => fixed(2, &double(*v)),
        Value::Decimal(v) => {
            let bytes = v.canonical_bytes();
            fixed(3, &[bytes.len() as u8]);
            out.extend_from_slice(&bytes);
        }
        Value::Text(text, collation) => {
            out.push(4);
            collation::append_key(*collation, text, out);
        }
        Value::Bytes(bytes) => {
            out.push(5);
            collation::append_escaped(bytes, out);
        }
        Value::Date(v) => fixed(6, &v.packed().to_be_bytes()),
        Value::Time(v) => fixed(7, &v.total_micros().to_be_bytes()),
        Value::DateTime(v) => fixed(8, &v.packed().to_be_bytes()),
    }
}
