//! Tables of expressions and what MySQL 8.4 gives for them.

mod comparators;
mod functions;
mod looks;
mod more_dates;
mod more_texts;
pub mod parser;

use super::*;
use parser::{parse, run};
use std::{format, string::String, vec, vec::Vec};

/// Runs a table; the warnings' numbers stand behind the value.
pub fn check(table: &[(&str, &str)]) {
    let wrong: Vec<String> = table
        .iter()
        .filter_map(|(text, expected)| {
            let found = run(text, false);
            (found != *expected)
                .then(|| format!("{text}\n  gives    {found}\n  expected {expected}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn arithmetic() {
    check(&[
        ("1 + 1", "2"),
        ("7 / 2", "3.5000"),
        ("1 / 3", "0.3333"),
        ("2 / 3", "0.6667"),
        ("1 / 3 * 3", "1.0000"),
        ("1 / 3 / 7", "0.04761905"),
        ("10.5 / 3.25", "3.23077"),
        ("1 / 0", "NULL [1365]"),
        ("1 % 0", "NULL [1365]"),
        ("1 DIV 0", "NULL [1365]"),
        ("7 DIV 2", "3"),
        ("-7 DIV 2", "-3"),
        ("7.5 DIV 2", "3"),
        ("-7 % 3", "-1"),
        ("7 % -3", "1"),
        ("7.5 % 2", "1.5"),
        ("5.5e0 % 2", "1.5"),
        ("1.5 + 1", "2.5"),
        ("1.50 + 1.5", "3.00"),
        ("1.1 * 1.1", "1.21"),
        ("0.1 + 0.2", "0.3"),
        ("0.1e0 + 0.2e0", "0.30000000000000004"),
        ("'10abc' + 5", "15 [1292]"),
        ("'abc' + 5", "5 [1292]"),
        ("' 7 ' + 1", "8"),
        ("'1e2' + 0", "100"),
        ("'3' * '4'", "12"),
        ("NULL + 1", "NULL"),
        (
            "9223372036854775807 + 1",
            "ERROR 1690: BIGINT value is out of range in '(9223372036854775807 + 1)'",
        ),
        (
            "9223372036854775807 * 2",
            "ERROR 1690: BIGINT value is out of range in '(9223372036854775807 * 2)'",
        ),
        ("18446744073709551615 + 0", "18446744073709551615"),
        (
            "18446744073709551615 + 1",
            "ERROR 1690: BIGINT UNSIGNED value is out of range in '(18446744073709551615 + 1)'",
        ),
        (
            "CAST(1 AS UNSIGNED) - 2",
            "ERROR 1690: BIGINT UNSIGNED value is out of range in '(cast(1 as bigint unsigned) - 2)'",
        ),
        ("-9223372036854775808", "-9223372036854775808"),
        ("-18446744073709551615", "-18446744073709551615"),
        (
            "-9223372036854775808 DIV -1",
            "ERROR 1690: BIGINT value is out of range in '(-(9223372036854775808) DIV -(1))'",
        ),
        ("1e308 * 10", "ERROR 1690: DOUBLE value is out of range in '(1e308 * 10)'"),
        ("12345678901234567890123 + 1", "12345678901234567890124"),
        ("-1 & 255", "255"),
        ("~0", "18446744073709551615"),
        ("1 << 63", "9223372036854775808"),
        ("1 << 64", "0"),
        ("5 ^ 1", "4"),
        ("2.5 | 0", "3"),
        ("DATE'2024-01-31' + 1", "20240132"),
        ("TIMESTAMP'2024-01-31 10:11:12.5' + 0", "20240131101112.5"),
        ("TIME'-10:11:12' + 0", "-101112"),
        ("-'5'", "-5"),
    ]);
}

#[test]
fn numbers_beyond_their_types() {
    check(&[
        ("-(-(9223372036854775808))", "9223372036854775808"),
        ("-(-9223372036854775807 - 1)", "9223372036854775808"),
        ("-(-(9223372036854775807))", "9223372036854775807"),
        ("-(9223372036854775809)", "-9223372036854775809"),
        ("'1e1000' + 0", "1.7976931348623157e308 [1292]"),
        ("-'1e400'", "-1.7976931348623157e308 [1292]"),
    ]);
}

#[test]
fn constants_with_many_digits() {
    let sevens = "7".repeat(37);
    for (text, expected) in [
        (format!(".{sevens}"), format!("0.{sevens}")),
        (format!("CONCAT(.{sevens}, '')"), format!("0.{sevens}")),
        (format!(".{sevens} + 0"), format!("0.{sevens}")),
        (format!("-.{sevens}"), format!("-0.{sevens}")),
        (format!("ABS(.{sevens})"), format!("0.{sevens}")),
        (format!("IF(1, .{sevens}, 1)"), format!("0.{sevens}")),
        (format!(".{sevens} * 1"), format!("0.{}8", "7".repeat(29))),
        (format!("ROUND(.{sevens}, 35)"), format!("0.{}8", "7".repeat(29))),
        (format!("1 / .{sevens}"), String::from("1.2857")),
        (format!("0.{}", "7".repeat(75)), format!("0.{}", "7".repeat(72))),
        (format!("12345.{}", "7".repeat(75)), format!("12345.{}", "7".repeat(72))),
        (format!("0.{}1", "0".repeat(99)), format!("0.{}", "0".repeat(72))),
        (format!("CAST(.{sevens} AS DECIMAL(40,30))"), format!("0.{}8", "7".repeat(29))),
    ] {
        assert_eq!(run(&text, false), expected, "{text}");
    }
}

/// Computes an expression over a row.
fn over(text: &str, row: &[Value]) -> String {
    let mut ctx = EvalContext::new(false);
    let value = eval(&parse(text), &row, &mut ctx).unwrap().to_display();
    value + &ctx.warnings.iter().map(|w| format!(" [{}]", w.errno)).collect::<String>()
}

#[test]
fn decimals_are_compared_with_constant_texts_digit_by_digit() {
    let decimal = |text: &str| Value::Decimal(crate::Decimal::parse(text).unwrap());
    let row = [
        decimal("100000000000000000000001"),
        decimal("1.50"),
        Value::text("100000000000000000000002"),
        Value::Int(9_007_199_254_740_993),
        Value::text("1.50abc"),
    ];
    for (text, expected) in [
        ("c0 = '100000000000000000000002'", "0"),
        ("c0 = '100000000000000000000001'", "1"),
        ("'100000000000000000000002' > c0", "1"),
        ("c0 + 0 = '100000000000000000000002'", "0"),
        ("c0 IN ('100000000000000000000002')", "0"),
        ("c0 BETWEEN '100000000000000000000002' AND '100000000000000000000003'", "0"),
        ("c0 = c2", "1"),
        ("100000000000000000000001 = '100000000000000000000002'", "1"),
        ("c1 = '1.5abc'", "1 [1292]"),
        ("c1 = 'abc'", "0 [1292]"),
        ("c1 = c4", "1 [1292]"),
        ("c3 = '9007199254740993.0'", "1"),
        ("c3 = '9007199254740993'", "1"),
        ("c3 = '9007199254740992'", "0"),
        ("c4", "1.50abc"),
        ("c4 = 1.5", "1 [1292]"),
        ("NOT c4", "0 [1292]"),
        ("c4 IN (2, 1.5)", "1 [1292] [1292]"),
        ("c4 BETWEEN 1 AND 2", "1 [1292]"),
        ("c3 IN ('2abc', 3)", "0 [1292]"),
    ] {
        assert_eq!(over(text, &row), expected, "{text}");
    }
}

#[test]
fn constants_beside_year_columns_become_years() {
    let columns = [ColumnType::new(crate::TypeKind::Year), ColumnType::new(crate::TypeKind::Int)];
    for (text, year, expected) in [
        ("c0 = 99", 1999, "1"),
        ("99 = c0", 1999, "1"),
        ("c0 = 98 + 1", 1999, "1"),
        ("c0 = c2", 1999, "1"),
        ("c2 > c0", 1998, "1"),
        ("c0 BETWEEN c2 AND c2", 1999, "0"),
        ("c0 = 99.0", 1999, "1"),
        ("c0 = '99'", 1999, "1"),
        ("c0 = '0'", 2000, "1"),
        ("c0 = '00'", 2000, "1"),
        ("c0 = '0'", 0, "0"),
        ("c0 = 0", 0, "1"),
        ("c0 = 0", 2000, "0"),
        ("c0 < 5", 2000, "1"),
        ("c0 < 5", 2005, "0"),
        ("c0 = '1999abc'", 1999, "1"),
        ("c0 = '1999-01-01'", 1999, "1"),
        ("c0 > DATE'1999-01-01'", 2000, "1"),
        ("c0 = 70000", 0, "0"),
        ("c0 = 1e2", 0, "0"),
        ("c0 BETWEEN 70 AND 5", 2005, "1"),
        ("c0 BETWEEN 70 AND 5", 2006, "0"),
        ("c0 IN (99, 5)", 1999, "0"),
        ("c0 + 0 = 99", 1999, "0"),
        ("NOT (c0 <> 99 OR c1 = 99)", 1999, "1"),
        ("c0 = ABS(99)", 1999, "1"),
        ("c0 = CONCAT('9', '9')", 1999, "1"),
        ("c0 > LEAST(69, 100)", 2000, "0"),
        ("ABS(99) <=> c0", 1999, "1"),
        ("c0 BETWEEN ABS(99) AND ABS(1)", 2000, "1"),
        ("c0 BETWEEN c4 AND c4 - 98", 2001, "1"),
        ("c0 = c4", 1999, "1"),
        ("c0 = c4 + 1", 2000, "0"),
        ("c0 = CONCAT(c4, '')", 1999, "1"),
        ("c0 = ABS(c1 + 1)", 1999, "0"),
        ("c0 < ABS(3000)", 1999, "1"),
        ("c0 < c4 + 3000", 1999, "1"),
        ("c0 IN (ABS(99), c4)", 1999, "0"),
    ] {
        let mut expr = parse(text);
        let mut outside = |number| match number {
            2 => YearOperand::Year(Expr::Column(3)),
            4 => YearOperand::Constant,
            _ => YearOperand::Row,
        };
        adapt_years(&mut expr, &columns, &mut outside);
        let row =
            [Value::UInt(year), Value::Int(98), Value::Int(99), Value::UInt(1999), Value::Int(99)]
                .to_vec();
        let value = eval(&expr, &row, &mut EvalContext::new(false)).unwrap();
        assert_eq!(value.to_display(), expected, "{text} with {year}");
    }
}

#[test]
fn doubles_of_pi_are_shown_with_six_digits() {
    let columns = [ColumnType::new(crate::TypeKind::Decimal { precision: 30, scale: 10 })];
    for (text, expected) in [
        ("PI()", "3.141593"),
        ("-PI()", "-3.141593"),
        ("PI() + 0", "3.141593"),
        ("PI() + 1.5", "4.641593"),
        ("PI() + 0.000000000000000000", "3.141592653589793000"),
        ("PI() * 1e0", "3.141592653589793"),
        ("ABS(PI())", "3.141593"),
        ("IF(1, PI(), 1)", "3.141593"),
        ("COALESCE(PI(), 1.5)", "3.141593"),
        ("DEGREES(PI())", "180"),
        ("GREATEST(PI(), 1e0)", "3.141592653589793"),
        ("SQRT(2) + PI()", "4.555806215962888"),
        ("CONCAT(PI(), '')", "3.141593"),
        ("CAST(PI() AS CHAR)", "3.141593"),
        ("LENGTH(PI())", "8"),
        ("FORMAT(PI(), 10)", "3.1415926536"),
        ("PI() + c0", "4.1415926536"),
    ] {
        let expr = parse(text);
        let one = Value::Decimal(crate::Decimal::new(10_000_000_000, 10));
        let value = eval(&expr, &vec![one], &mut EvalContext::new(false)).unwrap();
        let shown = value.to_text_with(shown_decimals(&expr, &columns)).unwrap();
        assert_eq!(String::from_utf8(shown).unwrap(), expected, "{text}");
    }
}

#[test]
fn comparisons() {
    check(&[
        ("'a' = 'A'", "1"),
        ("'a' = 'á'", "1"),
        ("'a' = 'a '", "0"),
        ("'a' = 'A' COLLATE utf8mb4_bin", "0"),
        ("'a' = 'a ' COLLATE utf8mb4_bin", "1"),
        ("'ß' = 'ss'", "1"),
        ("'ß' = 's' COLLATE utf8mb4_general_ci", "1"),
        ("X'61' = 'A'", "0"),
        ("'a' < 'b'", "1"),
        ("'10' < '9'", "1"),
        ("'10' < 9", "0"),
        ("'abc' = 0", "1 [1292]"),
        ("1 = 1.0", "1"),
        ("1 = '1.0'", "1"),
        ("9007199254740993 = 9007199254740992.0", "0"),
        ("9007199254740993 = '9007199254740993'", "1"),
        ("9223372036854775807 < 18446744073709551615", "1"),
        ("-1 < 18446744073709551615", "1"),
        ("0.1 = 0.1e0", "1"),
        ("NULL = NULL", "NULL"),
        ("NULL <=> NULL", "1"),
        ("1 <=> NULL", "0"),
        ("1 <> 2", "1"),
        ("DATE'2024-01-31' = '2024-1-31'", "1"),
        ("DATE'2024-01-31' = '20240131'", "1"),
        ("DATE'2024-01-31' < '2024-01-31 00:00:01'", "1"),
        ("DATE'2024-01-31' = 20240131", "1"),
        ("TIMESTAMP'2024-01-31 00:00:00' = 20240131", "1"),
        ("DATE'2024-01-31' = TIMESTAMP'2024-01-31 00:00:00'", "1"),
        ("DATE'2024-01-31' = 'abc'", "ERROR 1525: Incorrect DATE value: 'abc'"),
        ("TIME'10:00:00' = '10:00'", "1"),
        ("TIME'10:00:00' < 110000", "1"),
        ("2 BETWEEN 1 AND 3", "1"),
        ("2 NOT BETWEEN 1 AND 3", "0"),
        ("2 BETWEEN NULL AND 1", "0"),
        ("2 BETWEEN NULL AND 3", "NULL"),
        ("'5' BETWEEN 1 AND '10'", "1"),
        ("'a' BETWEEN 0 AND '1'", "1 [1292]"),
        ("5 BETWEEN '1' AND '10'", "1"),
        ("'5' BETWEEN '1' AND 10", "1"),
        ("'5' BETWEEN '1' AND '10'", "0"),
        ("1.5 BETWEEN '1' AND 2", "1"),
        ("5 BETWEEN '1abc' AND '10'", "1 [1292]"),
        ("'5' BETWEEN NULL AND 1", "0"),
        ("9007199254740993 BETWEEN 9007199254740992e0 AND 9007199254740992", "1"),
        ("'2020-01-01' BETWEEN DATE'2019-01-01' AND '2021-1-1'", "1"),
        ("1 IN (2, NULL)", "NULL"),
        ("1 IN (1, NULL)", "1"),
        ("1 NOT IN (2, 3)", "1"),
        ("'A' IN ('b', 'a')", "1"),
        ("NULL IN (1)", "NULL"),
    ]);
}

#[test]
fn conditions() {
    check(&[
        ("1 AND NULL", "NULL"),
        ("0 AND NULL", "0"),
        ("NULL AND 0", "0"),
        ("1 OR NULL", "1"),
        ("0 OR NULL", "NULL"),
        ("NOT NULL", "NULL"),
        ("NOT 0", "1"),
        ("NOT '0abc'", "1 [1292]"),
        ("1 XOR 1", "0"),
        ("1 XOR NULL", "NULL"),
        ("0 AND 1/0", "0"),
        ("1 OR 1/0", "1"),
        ("'0.5' AND 1", "1"),
        ("NULL IS NULL", "1"),
        ("1 IS NOT NULL", "1"),
        ("CASE 2 WHEN 1 THEN 'a' WHEN 2 THEN 'b' END", "b"),
        ("CASE WHEN NULL THEN 'a' ELSE 'c' END", "c"),
        ("CASE NULL WHEN NULL THEN 1 ELSE 2 END", "2"),
        ("CASE 1 WHEN 2 THEN 3 END", "NULL"),
    ]);
}

#[test]
fn like() {
    check(&[
        ("'abc' LIKE 'A%'", "1"),
        ("'abc' LIKE 'a_c'", "1"),
        ("'abc' LIKE 'a_'", "0"),
        ("'a%c' LIKE 'a\\%c'", "1"),
        ("'abc' LIKE 'a\\%c'", "0"),
        ("'abc' LIKE '%b%'", "1"),
        ("'abcbd' LIKE '%b_'", "1"),
        ("'' LIKE '%'", "1"),
        ("'' LIKE '_'", "0"),
        ("'á' LIKE 'A'", "1"),
        ("'abc' COLLATE utf8mb4_bin LIKE 'A%'", "0"),
        ("X'61' LIKE 'A'", "0"),
        ("123 LIKE '1%'", "1"),
        ("NULL LIKE 'a'", "NULL"),
        ("'abc' NOT LIKE 'abc'", "0"),
        ("'a ' LIKE 'a'", "0"),
    ]);
}

#[test]
fn casts() {
    check(&[
        ("CAST('10abc' AS SIGNED)", "10 [1292]"),
        ("CAST('1.5' AS SIGNED)", "1 [1292]"),
        ("CAST(1.5 AS SIGNED)", "2"),
        ("CAST(-1.5 AS SIGNED)", "-2"),
        ("CAST(2.5e0 AS SIGNED)", "2"),
        ("CAST(-1 AS UNSIGNED)", "18446744073709551615"),
        ("CAST(18446744073709551615 AS SIGNED)", "-1"),
        ("CAST(1e20 AS SIGNED)", "9223372036854775807"),
        ("CAST('1.555' AS DECIMAL(5,2))", "1.56"),
        ("CAST(12345 AS DECIMAL(4,1))", "999.9 [1264]"),
        ("CAST('abc' AS CHAR(2))", "ab [1292]"),
        ("CAST(1.50 AS CHAR)", "1.50"),
        ("CAST('a' AS BINARY(3)) = X'610000'", "1"),
        ("CAST('2024-02-30' AS DATE)", "NULL [1292]"),
        ("CAST('2024-2-3' AS DATE)", "2024-02-03"),
        ("CAST('0000-00-00' AS DATE)", "NULL [1292]"),
        ("CAST('240203' AS DATE)", "2024-02-03"),
        ("CAST(20240203 AS DATETIME)", "2024-02-03 00:00:00"),
        ("CAST('2024-02-03T04:05:06.789' AS DATETIME(1))", "2024-02-03 04:05:06.8"),
        ("CAST('2024-02-03 04:05:06.5' AS DATETIME)", "2024-02-03 04:05:07"),
        ("CAST('1:2:3' AS TIME)", "01:02:03"),
        ("CAST('900:00:00' AS TIME)", "838:59:59 [1292]"),
        ("CAST('1 2:3' AS TIME)", "26:03:00"),
        ("CAST(101112 AS TIME)", "10:11:12"),
        ("CAST(NULL AS SIGNED)", "NULL"),
        ("CAST('2002-011-012' AS DATE)", "2002-11-12"),
        ("CAST('1:2:3' AS DATE)", "0001-02-03"),
        ("CAST(20171231235959.9999999 AS DATETIME(6))", "2018-01-01 00:00:00.000000"),
        ("CAST(20171231235959.9999994 AS DATETIME(6))", "2017-12-31 23:59:59.999999"),
        ("CAST(20171231235959.1234 AS DATETIME(6))", "2017-12-31 23:59:59.123400"),
        ("CAST(20171231235959.5 AS DATETIME)", "2018-01-01 00:00:00"),
        ("CAST(99991231235959.9999999 AS DATETIME(6))", "NULL [1292]"),
        ("CAST(-20171231 AS DATE)", "NULL [1292]"),
        ("CAST(235959.9999999 AS TIME(6))", "24:00:00.000000"),
        ("CAST(2.5e0 AS TIME(6))", "00:00:02.500000"),
        ("CAST('1e1000' AS DOUBLE)", "1.7976931348623157e308 [1292]"),
    ]);
}

#[test]
fn strict_mode_turns_warnings_about_data_into_errors() {
    for (text, expected) in [
        ("1 / 0", "ERROR 1365: Division by 0"),
        ("'10abc' + 5", "ERROR 1292: Truncated incorrect DOUBLE value: '10abc'"),
        ("CAST('x' AS DATE)", "ERROR 1292: Incorrect datetime value: 'x'"),
        ("'5' + 5", "10"),
    ] {
        assert_eq!(run(text, true), expected, "{text}");
    }
}

#[test]
fn warnings_are_bounded() {
    let mut ctx = EvalContext::new(false);
    let expr = parse("1 / 0");
    for _ in 0..1000 {
        eval(&expr, &Vec::new(), &mut ctx).unwrap();
    }
    assert_eq!(ctx.warnings.len(), 64);
}

#[test]
fn long_chains_need_no_deep_stack() {
    for (op, expected) in [(BinaryOp::Or, "1"), (BinaryOp::Add, "20000")] {
        let mut expr = Expr::Literal(Value::Int(i64::from(op == BinaryOp::Add)));
        for _ in 1..20_000 {
            let right = Box::new(Expr::Literal(Value::Int(1)));
            expr = Expr::Binary { op, left: Box::new(expr), right };
        }
        let value = eval(&expr, &Vec::new(), &mut EvalContext::new(false)).unwrap();
        assert_eq!(value.to_display(), expected);
        // Dropping it would recurse.
        core::mem::forget(expr);
    }
}

#[test]
fn nested_expressions_stop_before_the_stack_does() {
    let nested = |levels: usize| {
        let mut expr = Expr::Literal(Value::Int(1));
        for _ in 0..levels {
            let list = vec![expr];
            let arg = Box::new(Expr::Call { function: Function::Concat, args: list });
            expr =
                Expr::In { arg, list: vec![Expr::Literal(Value::Int(1))].into(), negated: false };
        }
        eval(&expr, &Vec::new(), &mut EvalContext::new(false))
    };
    assert_eq!(nested(90), Ok(Value::Int(1)));
    assert_eq!(nested(1_000).map_err(|e| e.errno), Err(1235));
}

#[test]
fn columns_are_read_from_rows() {
    let types = [
        ColumnType::new(crate::TypeKind::Int),
        ColumnType::new(crate::TypeKind::VarChar { chars: 10 }).collated(Collation::Utf8mb4Bin),
    ];
    let layout = RowLayout::new(&types);
    let mut row = Vec::new();
    let text = Value::Text(String::from("abc"), Collation::Utf8mb4Bin);
    layout.encode(&[Value::Int(7), text], &mut row).unwrap();
    let view = RowView { layout: &layout, row: &row };
    let mut ctx = EvalContext::new(false);
    for (text, expected) in [
        ("c0 + 1", "8"),
        ("c1 = 'ABC'", "0"),
        ("c1 = 'ABC' COLLATE utf8mb4_0900_ai_ci", "1"),
        ("c9 IS NULL", "1"),
    ] {
        assert_eq!(eval(&parse(text), &view, &mut ctx).unwrap().to_display(), expected, "{text}");
    }
}

#[test]
fn result_types() {
    let columns = vec![
        ColumnType::new(crate::TypeKind::Int),
        ColumnType::new(crate::TypeKind::BigInt).unsigned(),
        ColumnType::new(crate::TypeKind::Decimal { precision: 10, scale: 2 }),
        ColumnType::new(crate::TypeKind::VarChar { chars: 20 }),
        ColumnType::new(crate::TypeKind::DateTime { fsp: 3 }),
        ColumnType::new(crate::TypeKind::Double),
    ];
    for (text, expected) in [
        ("c0", "int"),
        ("c0 + 1", "bigint"),
        ("c0 + c1", "bigint unsigned"),
        ("c0 / 2", "decimal(14,4)"),
        ("c2 + 1", "decimal(11,2)"),
        ("c2 * c2", "decimal(20,4)"),
        ("c0 + c5", "double"),
        ("c3 + 1", "double"),
        ("c0 = 1", "bigint"),
        ("CONCAT(c3, 'ab')", "varchar(22)"),
        ("IF(c0, 1, 1.5)", "decimal(20,1)"),
        ("COALESCE(c4, DATE'2024-01-01')", "datetime(3)"),
        ("IFNULL(c0, 'a')", "varchar(11)"),
        ("DATE_ADD(c4, INTERVAL 1 DAY)", "datetime(3)"),
        ("~c0", "bigint unsigned"),
        ("CAST(c3 AS SIGNED)", "bigint"),
        ("LENGTH(c3)", "bigint"),
        ("ROUND(c2, 1)", "decimal(10,1)"),
        ("-9223372036854775808", "bigint"),
        ("STR_TO_DATE(c3, '%Y-%m-%d')", "date"),
        ("STR_TO_DATE(c3, '%H')", "time"),
        ("STR_TO_DATE(c3, '%H %f')", "time(6)"),
        ("STR_TO_DATE(c3, '%Y %H')", "datetime"),
        ("STR_TO_DATE(c3, c3)", "datetime(6)"),
        ("ADDTIME(c3, c3)", "varchar(29)"),
        ("ADDTIME(c4, '1')", "datetime(3)"),
        ("ADDTIME(TIME'10:00:00', '1.25')", "time(2)"),
        ("MAKETIME(1, 1, 1)", "time"),
        ("MAKETIME(1, 1, 1.5)", "time(1)"),
        ("MAKETIME(1, 1, '1')", "time(6)"),
        ("CONVERT_TZ(c4, '+00:00', '+01:00')", "datetime(3)"),
        ("TO_SECONDS(c4)", "bigint"),
        ("PERIOD_ADD(200801, 1)", "bigint"),
        ("FROM_UNIXTIME(c0, '%Y')", "varchar(255)"),
        ("INET_ATON(c3)", "bigint unsigned"),
        ("INET_NTOA(c0)", "varchar(31)"),
        ("INET6_ATON(c3)", "varbinary(16)"),
        ("IS_UUID(c3)", "bigint"),
        ("UUID_TO_BIN(c3)", "varbinary(16)"),
        ("BIN_TO_UUID(X'00')", "varchar(36)"),
        ("MD5(c3)", "varchar(32)"),
        ("TO_BASE64('abcd')", "varchar(8)"),
        ("FROM_BASE64('abcd')", "varbinary(6)"),
        ("SOUNDEX('a')", "varchar(4)"),
        ("INTERVAL(c0, 1, 2)", "bigint"),
        ("MAKE_SET(1, 'a', 'bcd')", "varchar(5)"),
        ("EXPORT_SET(1, 'a', 'bb')", "varchar(191)"),
        ("FORMAT_BYTES(c0)", "varchar(11)"),
        ("COT(c0)", "double"),
        ("-(-9223372036854775808)", "decimal(20,0)"),
        ("-18446744073709551615", "decimal(20,0)"),
    ] {
        assert_eq!(result_type(&parse(text), &columns).sql_name(), expected, "{text}");
    }
}

/// A long list of constants is searched: with the result of a chain of comparisons.
#[test]
fn long_lists_are_searched_with_the_result_of_a_walk() {
    let words = ["", "a", "A ", "ä", "b", "Straße", "STRASSE", "zz", "10", "ab", "é", "e"];
    let mut random = lats_base::prng::Prng::new(7);
    let mut any = |text: bool| match (text, random.below(3)) {
        (true, _) => Value::text(words[random.below(words.len() as u64) as usize]),
        (false, 0) => Value::UInt(random.below(3) * (u64::MAX / 2)),
        (false, 1) => Value::UInt(random.below(30)),
        (false, _) => Value::Int(random.below(30) as i64 - 15),
    };
    let mut found = [0, 0];
    for round in 0..2_000 {
        let text = round % 2 == 0;
        let items: Vec<Expr> = (0..12).map(|_| Expr::Literal(any(text))).collect();
        // Values of another kind, too.
        let value = any(text != (round % 7 == 0));
        let columns = vec![value.clone()];
        let arg = || Box::new(Expr::Column(0));
        let chain = items.iter().fold(Expr::Literal(Value::Int(0)), |left, item| Expr::Binary {
            op: BinaryOp::Or,
            left: Box::new(left),
            right: Box::new(Expr::Binary {
                op: BinaryOp::Equal,
                left: arg(),
                right: Box::new(item.clone()),
            }),
        });
        let mut listed = Expr::In { arg: arg(), list: items.into(), negated: false };
        sort_lists(&mut listed);
        let run = |expr: &Expr| eval(expr, &columns, &mut EvalContext::new(false)).unwrap();
        assert_eq!(run(&listed), run(&chain), "{value:?} in {listed:?}");
        found[usize::from(run(&listed) == Value::Int(1))] += 1;
    }
    assert!(found.iter().all(|n| *n > 200), "{found:?}");
}
