//! Random values for the tests.

use crate::{
    Collation, ColumnType, Date, DateTime, Decimal, Time, TypeKind, Value,
    temporal::{DAY_MICROS, TIME_MICROS_MAX, round_micros},
};
use lats_base::prng::Prng;
use std::{string::String, vec::Vec};

/// One column type of every kind and collation.
pub fn all_types() -> Vec<ColumnType> {
    let mut types = Vec::new();
    for kind in [
        TypeKind::TinyInt,
        TypeKind::SmallInt,
        TypeKind::MediumInt,
        TypeKind::Int,
        TypeKind::BigInt,
    ] {
        types.push(ColumnType::new(kind));
        types.push(ColumnType::new(kind).unsigned());
    }
    for (precision, scale) in [(1, 0), (10, 2), (18, 18), (38, 10), (39, 0), (65, 30)] {
        types.push(ColumnType::new(TypeKind::Decimal { precision, scale }));
    }
    for collation in Collation::ALL.into_iter().skip(1) {
        types.push(ColumnType::new(TypeKind::VarChar { chars: 12 }).collated(collation));
        types.push(ColumnType::new(TypeKind::Char { chars: 12 }).collated(collation));
        types.push(ColumnType::new(TypeKind::TinyText).collated(collation));
    }
    for kind in [
        TypeKind::Float,
        TypeKind::Double,
        TypeKind::Binary { bytes: 4 },
        TypeKind::VarBinary { bytes: 8 },
        TypeKind::Blob,
        TypeKind::Date,
        TypeKind::Time { fsp: 0 },
        TypeKind::Time { fsp: 6 },
        TypeKind::DateTime { fsp: 3 },
        TypeKind::Timestamp { fsp: 0 },
        TypeKind::Year,
    ] {
        types.push(ColumnType::new(kind));
    }
    types
}

/// A value of a column; sometimes NULL, often near another one.
pub fn value(column: &ColumnType, random: &mut Prng) -> Value {
    if random.chance(1, 10) {
        return Value::Null;
    }
    match column.kind {
        TypeKind::Float => Value::Float(double(random) as f32),
        TypeKind::Double => Value::Double(double(random)),
        TypeKind::Decimal { precision, scale } => Value::Decimal(decimal(precision, scale, random)),
        TypeKind::Date => Value::Date(Date::from_days(day(random)).unwrap()),
        TypeKind::Time { fsp } => {
            let micros = random.below(2 * TIME_MICROS_MAX as u64) as i64 - TIME_MICROS_MAX;
            Value::Time(Time::from_micros(micros, fsp).round(fsp))
        }
        TypeKind::DateTime { fsp } | TypeKind::Timestamp { fsp } => {
            let micros = random.below(DAY_MICROS as u64 - 1_000_000) as i64;
            let micros = round_micros(micros, fsp);
            Value::DateTime(DateTime::from_days_and_micros(day(random), micros, fsp).unwrap())
        }
        TypeKind::Year => Value::UInt(random.between(1901, 2155)),
        kind if kind.is_text() => {
            let text = text(random);
            let kept = if matches!(kind, TypeKind::Char { .. }) {
                text.trim_end_matches(' ')
            } else {
                &text
            };
            Value::Text(String::from(kept), column.collation)
        }
        TypeKind::Binary { bytes } => Value::Bytes(bytes_of(bytes.into(), random)),
        kind if kind.is_bytes() => {
            let length = random.below(5) as usize;
            Value::Bytes(bytes_of(length, random))
        }
        kind => {
            let bits = 8 * kind.integer_bytes().unwrap() as u32;
            let raw = random.next_u64() >> (64 - bits) >> random.below(u64::from(bits));
            let sign = if random.chance(1, 2) { -1 } else { 1 };
            if column.unsigned { Value::UInt(raw) } else { Value::Int((raw >> 1) as i64 * sign) }
        }
    }
}

fn day(random: &mut Prng) -> i64 {
    random.between(1, 3_652_424) as i64
}

fn double(random: &mut Prng) -> f64 {
    match random.below(4) {
        0 => 0.0,
        1 => -0.0,
        2 => random.below(10) as f64 - 5.0,
        _ => (random.next_u64() as i64) as f64 / 1e9,
    }
}

fn decimal(precision: u8, scale: u8, random: &mut Prng) -> Decimal {
    let digits = random.between(1, u64::from(precision)) as usize;
    let mut text = String::from(if random.chance(1, 2) { "-" } else { "" });
    let whole = digits.saturating_sub(scale.into());
    for place in 0..digits {
        if place == whole {
            text.push('.');
        }
        text.push(char::from(b'0' + random.below(10) as u8));
    }
    Decimal::parse(&text).unwrap().truncate(scale)
}

/// Text of few characters, so that equal and nearly equal ones are common.
pub fn text(random: &mut Prng) -> String {
    const ALPHABET: [char; 24] = [
        'a', 'A', 'b', 'B', 'ä', 'é', 'ß', 's', 'S', ' ', ' ', '\t', '\u{1}', '\0', '0', '9', '-',
        'я', 'Я', '中', '😀', '\u{301}', '~', '_',
    ];
    let length = random.below(7);
    (0..length).map(|_| ALPHABET[random.below(24) as usize]).collect()
}

fn bytes_of(length: usize, random: &mut Prng) -> Vec<u8> {
    (0..length).map(|_| [0, 1, 255, 97][random.below(4) as usize]).collect()
}
