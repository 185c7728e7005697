//! Rows, byte by byte.

use super::*;
use lats_values::{Collation, Date, DateTime, Decimal, Time};

fn text_row(values: &[Value]) -> Vec<u8> {
    let mut out = Vec::new();
    put_text_row(&mut out, values, &[]);
    out
}

fn binary(value: Value, kind: TypeKind) -> Result<Vec<u8>, WireError> {
    let mut out = Vec::new();
    put_binary_row(&mut out, &[value], &[ColumnType::new(kind)])?;
    assert_eq!(out[..2], [0, 0]);
    Ok(out.split_off(2))
}

#[test]
fn text_rows() {
    let row = [
        Value::Null,
        Value::Int(i64::MIN),
        Value::Int(0),
        Value::UInt(u64::MAX),
        Value::Text("é".into(), Collation::Utf8mb4Bin),
        Value::Bytes(vec![0, 255]),
        Value::Decimal(Decimal::new(-150, 2)),
    ];
    let mut expected = vec![0xFB, 20];
    expected.extend_from_slice(b"-9223372036854775808\x010\x1418446744073709551615");
    expected.extend_from_slice(&[2, 0xC3, 0xA9, 2, 0, 255, 5]);
    expected.extend_from_slice(b"-1.50");
    assert_eq!(text_row(&row), expected);
    assert_eq!(text_row(&[Value::Int(-10), Value::UInt(1_002)]), b"\x03-10\x041002");
}

#[test]
fn binary_numbers() {
    let cases: Vec<(Value, TypeKind, Vec<u8>)> = vec![
        (Value::Int(-1), TypeKind::TinyInt, vec![0xFF]),
        (Value::UInt(200), TypeKind::TinyInt, vec![200]),
        (Value::Int(-2), TypeKind::SmallInt, vec![0xFE, 0xFF]),
        (Value::UInt(1999), TypeKind::Year, vec![0xCF, 7]),
        (Value::Int(1), TypeKind::MediumInt, vec![1, 0, 0, 0]),
        (Value::Int(1), TypeKind::Int, vec![1, 0, 0, 0]),
        (Value::Int(1), TypeKind::BigInt, vec![1, 0, 0, 0, 0, 0, 0, 0]),
        (Value::UInt(u64::MAX), TypeKind::BigInt, vec![255; 8]),
        (Value::Float(10.2), TypeKind::Float, vec![0x33, 0x33, 0x23, 0x41]),
        (
            Value::Double(10.2),
            TypeKind::Double,
            vec![0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x24, 0x40],
        ),
        (
            Value::Decimal(Decimal::new(1234, 2)),
            TypeKind::Decimal { precision: 6, scale: 2 },
            b"\x0512.34".to_vec(),
        ),
        (Value::text("foo"), TypeKind::VarChar { chars: 9 }, b"\x03foo".to_vec()),
    ];
    for (value, kind, bytes) in cases {
        assert_eq!(binary(value.clone(), kind), Ok(bytes), "{value:?} as {kind:?}");
    }
    assert!(binary(Value::Int(256), TypeKind::TinyInt).is_err());
    assert!(binary(Value::Int(-129), TypeKind::TinyInt).is_err());
    assert!(binary(Value::text("x"), TypeKind::Int).is_err());
}

#[test]
fn binary_days_and_times() {
    let date = Date { year: 2010, month: 10, day: 17 };
    let moment = |hour, minute, second, micros| {
        Value::DateTime(DateTime { date, hour, minute, second, micros, fsp: 6 })
    };
    let kind = TypeKind::DateTime { fsp: 6 };
    let full = vec![11, 0xDA, 7, 0x0A, 0x11, 0x13, 0x1B, 0x1E, 1, 0, 0, 0];
    assert_eq!(binary(moment(19, 27, 30, 1), kind), Ok(full));
    let seconds = vec![7, 0xDA, 7, 0x0A, 0x11, 0x13, 0x1B, 0x1E];
    assert_eq!(binary(moment(19, 27, 30, 0), kind), Ok(seconds));
    let day = vec![4, 0xDA, 7, 0x0A, 0x11];
    assert_eq!(binary(moment(0, 0, 0, 0), kind), Ok(day.clone()));
    assert_eq!(binary(Value::Date(date), TypeKind::Date), Ok(day));
    assert_eq!(binary(Value::Date(Date::ZERO), TypeKind::Date), Ok(vec![0]));
    let time = |micros| {
        let (hours, minutes, seconds) = (120 * 24 / 4 + 19, 27, 30);
        Value::Time(Time { negative: true, hours, minutes, seconds, micros, fsp: 6 })
    };
    let kind = TypeKind::Time { fsp: 6 };
    let full = vec![12, 1, 0x1E, 0, 0, 0, 0x13, 0x1B, 0x1E, 1, 0, 0, 0];
    assert_eq!(binary(time(1), kind), Ok(full));
    assert_eq!(binary(time(0), kind), Ok(vec![8, 1, 0x1E, 0, 0, 0, 0x13, 0x1B, 0x1E]));
}

#[test]
fn the_null_bitmap_of_binary_rows_starts_at_bit_two() {
    let types = vec![ColumnType::new(TypeKind::TinyInt); 7];
    let mut values = vec![Value::Int(5); 7];
    values[0] = Value::Null;
    values[6] = Value::Null;
    let mut out = Vec::new();
    put_binary_row(&mut out, &values, &types).unwrap();
    assert_eq!(out, [0, 0b100, 0b1, 5, 5, 5, 5, 5]);
    let short = put_binary_row(&mut Vec::new(), &values[..3], &types);
    assert_eq!(short, Err(WireError::ValueMismatch(3)));
}
