//! Tables of stores: value, column, and what arrives in strict mode and outside it.

use super::*;
use crate::{Collation, expr::tests::parser::parse};
use std::{format, string::ToString};

fn store(text: &str, column: &ColumnType, strict: bool) -> String {
    let mut eval = crate::EvalContext::new(false);
    let value = crate::eval(&parse(text), &Vec::new(), &mut eval).unwrap();
    let mut ctx = ConvertContext::new(strict, "a", 1);
    match convert_to_column(value, column, &mut ctx) {
        Ok(value) => {
            let notes: String = ctx.warnings.iter().map(|w| format!(" [{}]", w.errno)).collect();
            value.to_display() + &notes
        }
        Err(error) => error.errno.to_string(),
    }
}

fn check(kind: ColumnType, table: &[(&str, &str, &str)]) {
    for (text, strict, lax) in table {
        assert_eq!(store(text, &kind, true), *strict, "{text} to {}, strict", kind.sql_name());
        assert_eq!(store(text, &kind, false), *lax, "{text} to {}", kind.sql_name());
    }
}

#[test]
fn numbers() {
    check(
        ColumnType::new(TypeKind::TinyInt),
        &[
            ("127", "127", "127"),
            ("128", "1264", "127 [1264]"),
            ("-129", "1264", "-128 [1264]"),
            ("'12'", "12", "12"),
            ("'12 '", "12", "12"),
            ("'1.5'", "2", "2"),
            ("'12abc'", "1265", "12 [1265]"),
            ("'abc'", "1366", "0 [1366]"),
            ("''", "1366", "0 [1366]"),
            ("2.5", "3", "3"),
            ("-2.5", "-3", "-3"),
            ("2.5e0", "2", "2"),
            ("1e30", "1264", "127 [1264]"),
            ("NULL", "NULL", "NULL"),
        ],
    );
    check(
        ColumnType::new(TypeKind::BigInt).unsigned(),
        &[
            ("18446744073709551615", "18446744073709551615", "18446744073709551615"),
            ("-1", "1264", "0 [1264]"),
            ("DATE'2024-01-31'", "20240131", "20240131"),
        ],
    );
    check(
        ColumnType::new(TypeKind::Decimal { precision: 5, scale: 2 }),
        &[
            ("1", "1.00", "1.00"),
            ("1.005", "1.01 [1265]", "1.01 [1265]"),
            ("999.995", "1264", "999.99 [1264]"),
            ("-1000", "1264", "-999.99 [1264]"),
            ("'1.5'", "1.50", "1.50"),
            ("'abc'", "1366", "0.00 [1366]"),
            ("1.5e0", "1.50", "1.50"),
        ],
    );
    check(
        ColumnType::new(TypeKind::Float),
        &[
            ("1.5", "1.5", "1.5"),
            ("1e39", "1264", "3.40282e38 [1264]"),
            ("'x'", "1265", "0 [1265]"),
        ],
    );
    let largest = "1.7976931348623157e308 [1264]";
    check(
        ColumnType::new(TypeKind::Double),
        &[("'1e1000'", "1264", largest), ("'1e-1000'", "0", "0"), ("'1.5x'", "1265", "1.5 [1265]")],
    );
    check(
        ColumnType::new(TypeKind::Year),
        &[
            ("69", "2069", "2069"),
            ("70", "1970", "1970"),
            ("0", "0", "0"),
            ("'0'", "2000", "2000"),
            ("2155", "2155", "2155"),
            ("2156", "1264", "0 [1264]"),
        ],
    );
}

#[test]
fn strings() {
    check(
        ColumnType::new(TypeKind::VarChar { chars: 3 }),
        &[
            ("'äbc'", "äbc", "äbc"),
            ("'abcd'", "1406", "abc [1265]"),
            ("'ab  '", "ab  [1265]", "ab  [1265]"),
            ("12.5", "1406", "12. [1265]"),
            ("X'FF'", "1366", " [1366]"),
        ],
    );
    check(
        ColumnType::new(TypeKind::Char { chars: 3 }),
        &[("'a '", "a", "a"), ("'abc  '", "abc", "abc")],
    );
    check(
        ColumnType::new(TypeKind::Char { chars: 6 }),
        &[
            ("2e6", "2e6", "2e6"),
            ("2e-5", "2e-5", "2e-5"),
            ("1.23456789e0", "1.2346", "1.2346"),
            ("1234567.89e0", "1.23e6", "1.23e6"),
            ("-1.2345e-10", "1406", "-1e-10 [1265]"),
            ("1234567", "1406", "123456 [1265]"),
        ],
    );
    check(
        ColumnType::new(TypeKind::VarBinary { bytes: 10 }),
        &[("0.1e0 + 0.2e0", "0.3", "0.3"), ("PI()", "3.14159265", "3.14159265")],
    );
    check(
        ColumnType::new(TypeKind::Binary { bytes: 2 }),
        &[("'a'", "a\0", "a\0"), ("'abc'", "1406", "ab [1265]")],
    );
    check(
        ColumnType::new(TypeKind::TinyText),
        &[("REPEAT('é', 127)", &"é".repeat(127), &"é".repeat(127))],
    );
    let column = ColumnType::new(TypeKind::Text).collated(Collation::Utf8mb4Bin);
    let mut ctx = ConvertContext::new(true, "a", 1);
    let stored = convert_to_column(Value::text("x"), &column, &mut ctx).unwrap();
    assert_eq!(stored, Value::Text(String::from("x"), Collation::Utf8mb4Bin));
}

#[test]
fn days_and_times() {
    check(
        ColumnType::new(TypeKind::Date),
        &[
            ("'2024-02-29'", "2024-02-29", "2024-02-29"),
            ("'2023-02-29'", "1292", "0000-00-00 [1265]"),
            ("'0000-00-00'", "1292", "0000-00-00 [1265]"),
            ("'2024-00-01'", "1292", "0000-00-00 [1265]"),
            ("'2024-02-29 10:00:00'", "2024-02-29 [1265]", "2024-02-29 [1265]"),
            ("20240229", "2024-02-29", "2024-02-29"),
            ("'70-1-1'", "1970-01-01", "1970-01-01"),
        ],
    );
    check(
        ColumnType::new(TypeKind::DateTime { fsp: 0 }),
        &[
            ("'2024-12-31 23:59:59.5'", "2025-01-01 00:00:00", "2025-01-01 00:00:00"),
            ("'2024-12-31'", "2024-12-31 00:00:00", "2024-12-31 00:00:00"),
            ("'2024-12-31 10:00:00+02:00'", "2024-12-31 08:00:00", "2024-12-31 08:00:00"),
            ("'9999-12-31 23:59:59.9'", "1292", "0000-00-00 00:00:00 [1265]"),
            ("'2024-12-31 24:00:00'", "1292", "0000-00-00 00:00:00 [1265]"),
        ],
    );
    check(
        ColumnType::new(TypeKind::Timestamp { fsp: 0 }),
        &[
            ("'1970-01-01 00:00:00'", "1292", "0000-00-00 00:00:00 [1265]"),
            ("'2038-01-19 03:14:07'", "2038-01-19 03:14:07", "2038-01-19 03:14:07"),
            ("'2038-01-19 03:14:08'", "1292", "0000-00-00 00:00:00 [1265]"),
        ],
    );
    check(
        ColumnType::new(TypeKind::Time { fsp: 1 }),
        &[
            ("'-10:11:12.55'", "-10:11:12.6", "-10:11:12.6"),
            ("'839:00:00'", "1292", "838:59:59.0 [1265]"),
            ("101112", "10:11:12.0", "10:11:12.0"),
            ("'10:60:00'", "1292", "00:00:00.0 [1265]"),
        ],
    );
}

#[test]
fn texts_of_errors() {
    for (error, expected) in [
        (
            SqlError::out_of_range("a", 2),
            "ERROR 1264 (22003): Out of range value for column 'a' at row 2",
        ),
        (
            SqlError::data_too_long("a", 1),
            "ERROR 1406 (22001): Data too long for column 'a' at row 1",
        ),
        (
            SqlError::incorrect_value("integer", "x", "a", 1),
            "ERROR 1366 (HY000): Incorrect integer value: 'x' for column 'a' at row 1",
        ),
        (SqlError::null_not_allowed("a"), "ERROR 1048 (23000): Column 'a' cannot be null"),
    ] {
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn results_take_the_type_of_their_metadata() {
    let decimal = ColumnType::new(TypeKind::Decimal { precision: 20, scale: 1 });
    assert_eq!(present(Value::Int(1), &decimal).to_display(), "1.0");
    let text = ColumnType::new(TypeKind::VarChar { chars: 20 });
    assert_eq!(present(Value::Int(1), &text), Value::text("1"));
    assert_eq!(present(Value::Null, &text), Value::Null);
}
