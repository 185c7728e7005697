//! How clients are told that results look: widths, digits and NULLs are those that MySQL tells.

use super::parser::parse;
use super::*;
use crate::{ColumnType, TypeKind};

/// TINYINT, INT, INT UNSIGNED NOT NULL, BIGINT UNSIGNED, DECIMAL(10,2), DOUBLE, VARCHAR(20), INT NOT NULL.
fn columns() -> Vec<ColumnType> {
    let of = ColumnType::new;
    vec![
        of(TypeKind::TinyInt),
        of(TypeKind::Int),
        of(TypeKind::Int).unsigned().not_null(),
        of(TypeKind::BigInt).unsigned(),
        of(TypeKind::Decimal { precision: 10, scale: 2 }),
        of(TypeKind::Double),
        of(TypeKind::VarChar { chars: 20 }),
        of(TypeKind::Int).not_null(),
    ]
}

#[test]
fn whole_numbers_are_as_wide_as_in_mysql() {
    for (text, width) in [
        ("1", 2),
        ("127", 4),
        ("9223372036854775807", 20),
        ("c0 + c1", 12),
        ("c1 + 1", 12),
        ("c0 + 1", 5),
        ("c2 + c1", 11),
        ("c1 + c3", 21),
        ("c0 * c1", 14),
        ("c1 * c1", 21),
        ("c3 * c3", 40),
        ("c1 DIV c4", 13),
        ("c1 DIV c1", 11),
        ("c1 % c1", 11),
        ("c0 % 1", 4),
        ("c3 % 3", 21),
        ("c1 & 1", 21),
        ("c1 = 1", 1),
        ("c1 IS NULL", 1),
        ("NOT c1", 1),
        ("-c0", 4),
        ("-c3", 21),
        ("~c0", 21),
        ("ABS(c1)", 11),
        ("CEIL(c0)", 21),
        ("LENGTH(c6)", 11),
        ("ASCII(c6)", 4),
        ("CRC32(c6)", 10),
        ("MONTH(c6)", 3),
        ("TO_DAYS(c6)", 8),
        ("IFNULL(c0, c1)", 11),
        ("MOD(c0, 3)", 4),
    ] {
        let look = Look::of(&parse(text), &columns(), &|_| None);
        assert_eq!(look.width, Some(width), "{text}");
    }
    for text in ["c4 + 1", "c5 * 2", "c6", "1.5", "'a'"] {
        assert_eq!(Look::of(&parse(text), &columns(), &|_| None).width, None, "{text}");
    }
}

#[test]
fn tables_made_of_results_have_an_int_where_numbers_fit() {
    for (text, declared) in [
        ("1", Some(TypeKind::Int)),
        ("2147483648", None),
        ("c0 + 1", Some(TypeKind::Int)),
        ("c1 + 1", None),
        ("c1 = 1", Some(TypeKind::Int)),
        ("LENGTH(c6)", Some(TypeKind::Int)),
        ("CEIL(c0)", None),
        ("IFNULL(c0, c0)", None),
        ("COALESCE(c0, c0)", Some(TypeKind::Int)),
        ("COALESCE(c1, 2147483648)", None),
        ("c4 * 2", None),
    ] {
        let look = Look::of(&parse(text), &columns(), &|_| None);
        assert_eq!(look.declared, declared, "{text}");
    }
}

#[test]
fn results_are_null_only_where_they_may_be() {
    for (text, nullable) in [
        ("c7 + c2", false),
        ("c7 + c1", true),
        ("c7 / 2", true),
        ("c7 % 2", true),
        ("c7 = 1", false),
        ("c7 <=> NULL", false),
        ("c7 = NULL", true),
        ("c1 IS NULL", false),
        ("c7 IN (1, 2)", false),
        ("c7 IN (1, c1)", true),
        ("c7 BETWEEN 1 AND c1", true),
        ("-c7", false),
        ("ABS(c7)", false),
        ("ABS(c1)", true),
        ("LENGTH(c6)", true),
        ("FIELD(c6, 'a')", false),
        ("UPPER('a')", true),
    ] {
        assert_eq!(result_type(&parse(text), &columns()).nullable, nullable, "{text}");
    }
}

#[test]
fn types_are_united_as_in_mysql() {
    let of = ColumnType::new;
    let float = || of(TypeKind::Float);
    for (a, b, united) in [
        (float(), of(TypeKind::TinyInt), float()),
        (float(), of(TypeKind::Int), of(TypeKind::Double)),
        (float(), of(TypeKind::BigInt), float()),
        (of(TypeKind::BigInt), float(), of(TypeKind::Double)),
        (of(TypeKind::TinyInt).unsigned(), of(TypeKind::TinyInt), of(TypeKind::SmallInt)),
        (of(TypeKind::BigInt), of(TypeKind::Int).unsigned(), of(TypeKind::BigInt)),
        (of(TypeKind::Int), of(TypeKind::Int).unsigned(), of(TypeKind::BigInt)),
        (of(TypeKind::Year), of(TypeKind::Int).unsigned(), of(TypeKind::Int).unsigned()),
        (
            of(TypeKind::BigInt).unsigned(),
            of(TypeKind::TinyInt),
            of(TypeKind::Decimal { precision: 20, scale: 0 }),
        ),
    ] {
        let found = result_type(&parse("COALESCE(c0, c1)"), &[a.clone(), b.clone()]);
        assert_eq!((found.kind, found.unsigned), (united.kind, united.unsigned), "{a:?} {b:?}");
    }
    let text = result_type(&parse("CONCAT(c0, 'x')"), &[of(TypeKind::Int)]);
    assert_eq!(text.kind, TypeKind::VarChar { chars: 12 });
}
