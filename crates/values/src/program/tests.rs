//! Programs run, travel, and are refused when they are malformed.

use super::*;
use crate::{BinaryOp, TypeKind, Value, expr::tests::parser::parse};
use lats_base::prng::Prng;
use std::{boxed::Box, vec};

fn columns() -> Vec<ColumnType> {
    vec![
        ColumnType::new(TypeKind::Int).not_null(),
        ColumnType::new(TypeKind::VarChar { chars: 5 }),
        ColumnType::new(TypeKind::Decimal { precision: 6, scale: 2 }),
    ]
}

fn row(values: [Value; 3]) -> Vec<u8> {
    let mut out = Vec::new();
    RowLayout::new(&columns()).encode(&values, &mut out).unwrap();
    out
}

fn sample() -> Program {
    Program {
        filter: Some(parse("c0 BETWEEN 1 AND 9 AND (c1 LIKE 'a%' OR c2 IN (1.5, NULL))")),
        assignments: vec![
            (0, parse("c0 + 1")),
            (2, parse("CASE WHEN c0 = 6 THEN c0 * 1.125 ELSE IFNULL(c2, 0) END")),
            (1, parse("CONCAT(CAST(c0 AS CHAR), c1)")),
        ],
        projection: Some(vec![2, 0]),
        strict: true,
    }
}

#[test]
fn programs_travel() {
    let program = sample();
    assert_eq!(Program::decode(&program.encode(), &columns()), Ok(program));
    let empty = Program::default();
    assert_eq!(Program::decode(&empty.encode(), &[]), Ok(empty));
}

#[test]
fn an_update_runs_left_to_right_and_converts() {
    let (program, layout) = (sample(), RowLayout::new(&columns()));
    let before = row([Value::Int(5), Value::text("abc"), Value::Null]);
    let after = program.updated(&layout, &before).unwrap().unwrap();
    let shown: Vec<_> = layout.decode(&after).iter().map(Value::to_display).collect();
    assert_eq!(shown, ["6", "6abc", "6.75"]);
    let mut projected = Vec::new();
    program.project(&layout, &after, &mut projected);
    let kinds = columns();
    let layout2 = RowLayout::new(&[kinds[2].clone(), kinds[0].clone()]);
    layout2.validate(&projected).unwrap();
    assert_eq!(layout2.value(&projected, 1), Value::Int(6));
    let other = row([Value::Int(50), Value::text("abc"), Value::Null]);
    assert_eq!(program.updated(&layout, &other), Ok(None));
}

#[test]
fn updates_fail_as_in_strict_mode() {
    let layout = RowLayout::new(&columns());
    let before = row([Value::Int(5), Value::text("abc"), Value::Null]);
    for (column, text, errno) in [
        (0, "NULL", 1048),
        (0, "c0 + 2147483647", 1264),
        (0, "'x'", 1366),
        (0, "c0 / 0", 1365),
        (1, "CONCAT(c1, c1)", 1406),
        (2, "99999", 1264),
        (0, "9223372036854775807 + c0", 1690),
    ] {
        let mut program =
            Program { assignments: vec![(column, parse(text))], ..Program::default() };
        program.strict = true;
        assert_eq!(program.updated(&layout, &before).unwrap_err().errno, errno, "{text}");
    }
}

#[test]
fn bad_programs_are_refused() {
    let refused = |program: &Program| {
        assert_eq!(Program::decode(&program.encode(), &columns()), Err(RefCode::ProgramMalformed));
    };
    refused(&Program { filter: Some(parse("c3 = 1")), ..Program::default() });
    refused(&Program { assignments: vec![(3, parse("1"))], ..Program::default() });
    refused(&Program { projection: Some(vec![3]), ..Program::default() });
    refused(&Program { projection: Some(vec![1, 1]), ..Program::default() });
    refused(&Program { filter: Some(parse("ABS(1, 2)")), ..Program::default() });
    let infinite = Expr::Literal(Value::Double(f64::INFINITY));
    refused(&Program { filter: Some(infinite), ..Program::default() });
    let mut deep = Expr::Column(0);
    for _ in 0..limits::PROGRAM_DEPTH_MAX {
        deep = Expr::Unary { op: crate::UnaryOp::Not, arg: Box::new(deep) };
    }
    refused(&Program { filter: Some(deep), ..Program::default() });
    assert!(Program::decode(&[0; 10], &columns()).is_err());
    assert!(Program::decode(&vec![1; limits::PROGRAM_BYTES_MAX + 1], &columns()).is_err());
}

#[test]
fn long_chains_of_or_are_balanced() {
    let mut filter = parse("c0 = 0");
    for number in 1..2_000 {
        let right = Box::new(Expr::Binary {
            op: BinaryOp::Equal,
            left: Box::new(Expr::Column(0)),
            right: Box::new(Expr::Literal(Value::Int(number))),
        });
        filter = Expr::Binary { op: BinaryOp::Or, left: Box::new(filter), right };
    }
    let program = Program { filter: Some(filter), ..Program::default() };
    let decoded = Program::decode(&program.encode(), &columns()).unwrap();
    let layout = RowLayout::new(&columns());
    for (number, expected) in [(0, true), (1_999, true), (2_000, false)] {
        let row = row([Value::Int(number), Value::Null, Value::Null]);
        assert_eq!(decoded.matches(&layout, &row), Ok(expected));
    }
}

#[test]
fn garbage_never_panics() {
    let mut random = Prng::new(1);
    let good = sample().encode();
    let layout = RowLayout::new(&columns());
    let row = row([Value::Int(5), Value::text("abc"), Value::Null]);
    let mut decoded = 0;
    for _ in 0..50_000 {
        let mut bytes = if random.chance(1, 4) {
            let length = random.below(60);
            core::iter::once(1).chain((0..length).map(|_| random.next_u64() as u8)).collect()
        } else {
            good.clone()
        };
        for _ in 0..random.below(4) {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = random.next_u64() as u8;
        }
        if let Ok(program) = Program::decode(&bytes, &columns()) {
            decoded += 1;
            if let Ok(Some(after)) = program.updated(&layout, &row) {
                assert_eq!(layout.validate(&after), Ok(()));
                program.project(&layout, &after, &mut Vec::new());
            }
        }
    }
    assert!(decoded > 1_000);
}
