//! Parameters of every type, byte by byte, remembered types, long data, and bytes from nowhere.

use super::*;
use lats_base::prng::Prng;
use lats_values::{Date, DateTime, Time};

const COLLATION: Collation = Collation::Utf8mb4_0900AiCi;

fn bind_one(type_code: u8, flags: u8, value: &[u8]) -> Result<Value, WireError> {
    let bindings = [&[0, 1, type_code, flags], value].concat();
    let mut values = StatementParameters::new(1, COLLATION).bind(&bindings)?;
    Ok(values.remove(0))
}

#[test]
fn numbers() {
    let cases: Vec<(u8, u8, Vec<u8>, Value)> = vec![
        (1, 0, vec![0xFF], Value::Int(-1)),
        (1, 0x80, vec![0xFF], Value::UInt(255)),
        (2, 0, vec![0, 0x80], Value::Int(-32_768)),
        (2, 0x80, vec![0, 0x80], Value::UInt(32_768)),
        (13, 0, vec![0xE8, 7], Value::UInt(2_024)),
        (3, 0, vec![0xFE, 255, 255, 255], Value::Int(-2)),
        (9, 0, vec![1, 0, 0, 0], Value::Int(1)),
        (3, 0x80, vec![255; 4], Value::UInt(0xFFFF_FFFF)),
        (8, 0, vec![255; 8], Value::Int(-1)),
        (8, 0x80, vec![255; 8], Value::UInt(u64::MAX)),
        (4, 0, vec![0x33, 0x33, 0x23, 0x41], Value::Float(10.2)),
        (5, 0, vec![0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x24, 0x40], Value::Double(10.2)),
        (246, 0, b"\x06-12.50".to_vec(), Value::Decimal(Decimal::new(-1250, 2))),
        (0, 0, b"\x017".to_vec(), Value::Decimal(Decimal::new(7, 0))),
        (6, 0, vec![], Value::Null),
    ];
    for (code, flags, bytes, value) in cases {
        assert_eq!(bind_one(code, flags, &bytes), Ok(value), "type {code}");
    }
    assert_eq!(bind_one(246, 0, b"\x03abc"), Err(WireError::BadParameter(0)));
}

#[test]
fn strings() {
    for code in [15, 245, 247, 248, 253, 254] {
        let text = Value::Text("é".into(), COLLATION);
        assert_eq!(bind_one(code, 0, b"\x02\xC3\xA9"), Ok(text));
        assert_eq!(bind_one(code, 0, b"\x01\xFF"), Ok(Value::Bytes(vec![0xFF])));
    }
    for code in [16, 249, 250, 251, 252, 255] {
        assert_eq!(bind_one(code, 0, b"\x01a"), Ok(Value::Bytes(b"a".to_vec())));
    }
    for code in [14, 17, 20, 200, 244] {
        assert_eq!(bind_one(code, 0, b"\x01a"), Err(WireError::UnsupportedParameterType(code)));
    }
}

#[test]
fn days_and_times() {
    let date = Date { year: 2010, month: 10, day: 17 };
    let day = [4, 0xDA, 7, 0x0A, 0x11];
    assert_eq!(bind_one(10, 0, &day), Ok(Value::Date(date)));
    assert_eq!(bind_one(10, 0, &[0]), Ok(Value::Date(Date::ZERO)));
    let moment = |hour, minute, second, micros, fsp| {
        Value::DateTime(DateTime { date, hour, minute, second, micros, fsp })
    };
    assert_eq!(bind_one(12, 0, &day), Ok(moment(0, 0, 0, 0, 0)));
    let full = [11, 0xDA, 7, 0x0A, 0x11, 0x13, 0x1B, 0x1E, 1, 0, 0, 0];
    assert_eq!(bind_one(12, 0, &full), Ok(moment(19, 27, 30, 1, 6)));
    assert_eq!(bind_one(7, 0, &full), Ok(moment(19, 27, 30, 1, 6)));
    let time = |negative, hours, minutes, seconds, micros, fsp| {
        Ok(Value::Time(Time { negative, hours, minutes, seconds, micros, fsp }))
    };
    let span = [12, 1, 0x1E, 0, 0, 0, 0x13, 0x1B, 0x1E, 1, 0, 0, 0];
    assert_eq!(bind_one(11, 0, &span), time(true, 739, 27, 30, 1, 6));
    assert_eq!(bind_one(11, 0, &[0]), time(false, 0, 0, 0, 0, 0));
    let long = [8, 0, 0xFF, 0xFF, 0xFF, 0xFF, 23, 0, 0];
    assert_eq!(bind_one(11, 0, &long), time(false, 838, 59, 59, 0, 0));
    for wrong in [&[4, 0xDA, 7, 13, 1][..], &[4, 0xDA, 7, 2, 30], &[7, 0xDA, 7, 1, 1, 24, 0, 0]] {
        assert_eq!(bind_one(12, 0, wrong), Err(WireError::BadParameter(0)));
    }
    assert!(bind_one(12, 0, &[3, 1, 1, 1]).is_err());
    assert!(bind_one(11, 0, &[4, 1, 1, 1, 1]).is_err());
}

#[test]
fn types_are_remembered() {
    let mut parameters = StatementParameters::new(9, COLLATION);
    assert_eq!(parameters.bind(&[0, 0, 0, 5]), Err(WireError::UnboundParameters));
    let mut bindings = vec![0b1111_1110, 0, 1];
    bindings.extend_from_slice(&[1, 0].repeat(9));
    bindings.extend_from_slice(&[7, 8]);
    let mut expected = vec![Value::Null; 9];
    (expected[0], expected[8]) = (Value::Int(7), Value::Int(8));
    assert_eq!(parameters.bind(&bindings), Ok(expected.clone()));
    expected[8] = Value::Null;
    assert_eq!(parameters.bind(&[0b1111_1110, 1, 0, 7]), Ok(expected));
    assert!(parameters.bind(&[0b1111_1110, 0, 0, 7]).is_err());
}

#[test]
fn long_data_takes_the_place_of_a_value_once() {
    let mut parameters = StatementParameters::new(3, COLLATION);
    parameters.append_long_data(2, b"fo", 10).unwrap();
    parameters.append_long_data(0, b"\xFF", 10).unwrap();
    parameters.append_long_data(2, b"o", 10).unwrap();
    assert_eq!(parameters.long_data_bytes(), 4);
    assert!(parameters.append_long_data(3, b"x", 10).is_err());
    let large = parameters.append_long_data(1, b"1234567", 10);
    assert_eq!(large, Err(WireError::PacketTooLarge { bytes: 11, limit: 10 }));
    // Its null bit does not count.
    let bindings = [0b100, 1, 252, 0, 1, 0, 254, 0, 9];
    let first = vec![Value::Bytes(vec![0xFF]), Value::Int(9), Value::Text("foo".into(), COLLATION)];
    assert_eq!(parameters.bind(&bindings), Ok(first));
    let second = vec![Value::Null, Value::Int(9), Value::Null];
    assert_eq!(parameters.bind(&[0b101, 0, 9]), Ok(second));
    parameters.append_long_data(2, b"x", 10).unwrap();
    parameters.reset();
    assert_eq!(parameters.long_data_bytes(), 0);
}

#[test]
fn a_statement_without_parameters_has_no_bindings() {
    assert_eq!(StatementParameters::new(0, COLLATION).bind(&[]), Ok(vec![]));
}

#[test]
fn random_bindings_never_break_the_parser() {
    let mut prng = Prng::new(3);
    for round in 0..30_000_u32 {
        let count = prng.below(12) as u16;
        let mut parameters = StatementParameters::new(count, COLLATION);
        let mut bytes = vec![0; usize::from(count).div_ceil(8)];
        bytes.push(1);
        for _ in 0..count {
            let code = if prng.chance(1, 3) { prng.between(245, 255) } else { prng.below(17) };
            bytes.extend_from_slice(&[code as u8, (prng.next_u64() & 0x80) as u8]);
        }
        // Small numbers, so that lengths are often plausible.
        bytes.extend((0..prng.below(120)).map(|_| prng.below(14) as u8));
        for _ in 0..prng.below(3) {
            let at = prng.below(bytes.len() as u64) as usize;
            bytes[at] = prng.next_u64() as u8;
        }
        if prng.chance(1, 3) {
            let _ = parameters.append_long_data(prng.below(12) as u16, &bytes, 64);
        }
        for attempt in [&bytes[..], &bytes[..bytes.len() / 2]] {
            if let Ok(values) = parameters.bind(attempt) {
                assert_eq!(values.len(), usize::from(count), "round {round}");
            }
        }
    }
}
