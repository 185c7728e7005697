//! Days, times and moments: forms, ranges, arithmetic.

use super::*;
use lats_base::prng::Prng;
use std::{format, string::String, string::ToString};

fn moment(text: &str) -> String {
    match parse_datetime(text) {
        None => String::from("none"),
        Some(parsed) => format!("{}{}", parsed.value, if parsed.complete { "" } else { " +" }),
    }
}

#[test]
fn forms_of_moments() {
    for (text, expected) in [
        ("2024-01-31", "2024-01-31 00:00:00"),
        ("2024/1/3", "2024-01-03 00:00:00"),
        ("24-1-3", "2024-01-03 00:00:00"),
        ("70-01-01", "1970-01-01 00:00:00"),
        ("20240131", "2024-01-31 00:00:00"),
        ("240131", "2024-01-31 00:00:00"),
        ("20240131101112", "2024-01-31 10:11:12"),
        ("240131101112", "2024-01-31 10:11:12"),
        ("20240131T101112", "2024-01-31 10:11:12"),
        ("20240131101112.5", "2024-01-31 10:11:12.5"),
        ("2024-01-31 10:11", "2024-01-31 10:11:00"),
        ("2024-01-31T10:11:12.123456", "2024-01-31 10:11:12.123456"),
        ("2024-01-31 10:11:12.1234567", "2024-01-31 10:11:12.123457"),
        ("2024-01-31 23:59:59.9999999", "2024-02-01 00:00:00.000000"),
        (" 2024-01-31 ", "2024-01-31 00:00:00"),
        ("2024-01-31x", "2024-01-31 00:00:00 +"),
        ("2024-01-31 10:11:12Z", "2024-01-31 10:11:12 +"),
        ("2024-01-31 10:11:12-03:30", "2024-01-31 13:41:12"),
        ("0000-00-00", "0000-00-00 00:00:00"),
        ("2024-00-00", "2024-00-00 00:00:00"),
        ("2024-02-30", "none"),
        ("2024-13-01", "none"),
        ("2024-01-01 24:00:00", "none"),
        ("2024-01-01 10:60:00", "none"),
        ("2024-01", "none"),
        ("1-2-3", "0001-02-03 00:00:00"),
        ("001-2-3", "0001-02-03 00:00:00"),
        ("0-1-1", "0000-01-01 00:00:00"),
        ("00-1-1", "2000-01-01 00:00:00"),
        ("00-00-00", "0000-00-00 00:00:00"),
        ("2002-011-012", "2002-11-12 00:00:00"),
        ("02002-01-12", "2002-01-12 00:00:00"),
        ("20020-01-12", "none"),
        ("2002-01-12 0000010:011:012.5", "2002-01-12 10:11:12.5"),
        ("2024-01-31 101112", "none"),
        ("20240131 101112", "none"),
        ("20240131T10:11:12", "none"),
        ("24013110", "none"),
        ("2401311011", "2024-01-31 10:11:00"),
        ("2002011", "2020-02-01 01:00:00"),
        ("101.5", "2010-01-05 00:00:00"),
        ("1.2.3", "2001-02-03 00:00:00"),
        ("20240131.5", "2024-01-31 05:00:00"),
        ("2024", "none"),
        ("2024-01-31T10", "2024-01-31 10:00:00"),
        ("2024-01-31.10", "2024-01-31 10:00:00"),
        ("2024-01-31-10-11-12", "2024-01-31 10:11:12"),
        ("abc", "none"),
        ("", "none"),
    ] {
        assert_eq!(moment(text), expected, "{text:?}");
    }
}

#[test]
fn forms_of_times() {
    for (text, expected) in [
        ("10:11:12", "10:11:12"),
        ("10:11", "10:11:00"),
        ("101112", "10:11:12"),
        ("12", "00:00:12"),
        ("1112.5", "00:11:12.5"),
        ("-1 1:2:3", "-25:02:03"),
        ("2 10", "58:00:00"),
        ("838:59:59", "838:59:59"),
        ("999:00:00", "838:59:59"),
        ("2024-01-31 10:11:12", "10:11:12"),
        ("2020-01-01 10:11:12+01:00", "09:11:12"),
        ("2011-02-03", "00:20:11"),
        ("2011-02-3x 8:46:06", "00:20:11"),
        ("101:11:12.123456", "101:11:12.123456"),
    ] {
        assert_eq!(parse_time(text).unwrap().value.to_string(), expected, "{text:?}");
    }
    for text in
        ["", "a", "10:60", "10:11:61", "2011-02-32 8:46:06", "20111303101112", "2011-13-03 8:46:06"]
    {
        assert_eq!(parse_time(text), None, "{text:?}");
    }
}

#[test]
fn days_count_up_through_all_years() {
    let mut date = Date { year: 0, month: 1, day: 1 };
    for days in 1..=3_652_424 {
        assert_eq!(date.days(), days);
        if days % 97 == 0 || date.day == 1 {
            assert_eq!(Date::from_days(days), Some(date));
        }
        date.day += 1;
        if date.day > days_in_month(date.year, date.month) {
            (date.month, date.day) = (date.month + 1, 1);
        }
        if date.month > 12 {
            (date.year, date.month) = (date.year + 1, 1);
        }
    }
    assert_eq!(date.year, 10_000);
    assert_eq!(Date::from_days(3_652_425), None);
    assert_eq!(Date { year: 1970, month: 1, day: 1 }.days(), UNIX_EPOCH_DAYS);
}

#[test]
fn moments_survive_their_encodings() {
    let mut random = Prng::new(1);
    for _ in 0..20_000 {
        let micros = random.below(4_000_000_000_000_000) as i64 - 1_000_000_000_000_000;
        let moment = DateTime::from_unix_micros(micros, 6).unwrap();
        assert_eq!(moment.to_unix_micros(), Some(micros));
        assert_eq!(DateTime::from_packed(moment.packed(), 6), Some(moment));
        let parsed = parse_datetime(&moment.to_string()).unwrap();
        assert_eq!(parsed.value, moment);
        let time = Time::from_micros(micros % TIME_MICROS_MAX, 6);
        assert_eq!(parse_time(&time.to_string()).unwrap().value, time);
    }
}

#[test]
fn any_text_is_read_without_panic() {
    const ALPHABET: &[u8] = b"0123456789-:. T+/x";
    let mut random = Prng::new(2);
    for _ in 0..100_000 {
        let text: String = (0..random.below(24))
            .map(|_| char::from(ALPHABET[random.below(ALPHABET.len() as u64) as usize]))
            .collect();
        if let Some(parsed) = parse_datetime(&text) {
            assert!(DateTime::try_from((parsed.value.packed(), parsed.value.fsp)).is_ok());
        }
        if let Some(parsed) = parse_time(&text) {
            assert!(Time::try_from((parsed.value.total_micros(), parsed.value.fsp)).is_ok());
        }
        let number = random.next_u64() as i64 >> random.below(64);
        let _ = (datetime_from_number(number), time_from_number(number));
    }
}
