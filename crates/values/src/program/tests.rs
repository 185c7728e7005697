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
    for column in [u32::from(u16::MAX), 65_536, u32::MAX] {
        refused(&Program { filter: Some(Expr::Column(column)), ..Program::default() });
    }
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

/// Any value, near the ends of its type or in it.
fn any_value(types: &[ColumnType], random: &mut Prng) -> Value {
    const TEXTS: [&str; 6] = ["", "%a_%", "\\\\", "2024-02-30", "-1e9", "äß"];
    match random.below(8) {
        0 => Value::Int(random.next_u64() as i64),
        1 => Value::UInt(u64::MAX),
        2 => Value::Int(random.below(9) as i64),
        3 => Value::text(TEXTS[random.below(6) as usize]),
        _ => crate::testing::value(&types[random.below(types.len() as u64) as usize], random),
    }
}

/// Any expression: all kinds of nodes and all functions.
fn any_expr(types: &[ColumnType], depth: u32, random: &mut Prng) -> Expr {
    if depth == 0 || random.chance(1, 8) {
        return match random.chance(1, 2) {
            true => Expr::Literal(any_value(types, random)),
            false => Expr::Column(random.below(types.len() as u64) as u32),
        };
    }
    let of = |random: &mut Prng| Box::new(any_expr(types, depth - 1, random));
    let negated = random.chance(1, 2);
    match random.below(12) {
        0 => {
            use crate::UnaryOp::{BitNot, Minus, Not};
            let op = [Minus, Not, BitNot][random.below(3) as usize];
            Expr::Unary { op, arg: of(random) }
        }
        1..4 => Expr::Binary { op: any_operator(random), left: of(random), right: of(random) },
        4 => Expr::IsNull { arg: of(random), negated },
        5 => Expr::Between { arg: of(random), low: of(random), high: of(random), negated },
        6 => {
            let list = (0..random.below(4) * random.between(1, 5)).map(|_| *of(random)).collect();
            Expr::In { arg: of(random), list, negated }
        }
        7 => {
            let escape = random.chance(1, 3).then_some('%');
            Expr::Like { arg: of(random), pattern: of(random), escape, negated }
        }
        8 => {
            let branches = (0..random.below(3)).map(|_| (*of(random), *of(random))).collect();
            let operand = random.chance(1, 2).then(|| of(random));
            Expr::Case { operand, branches, otherwise: random.chance(1, 2).then(|| of(random)) }
        }
        9 => {
            let to = types[random.below(types.len() as u64) as usize].clone();
            Expr::Cast { arg: of(random), to }
        }
        10 => Expr::Collate { arg: of(random), collation: crate::Collation::Binary },
        _ => {
            let functions: Vec<crate::Function> =
                crate::Function::all().filter(|f| !f.is_local()).collect();
            let function = functions[random.below(functions.len() as u64) as usize];
            let (low, high) = function.arity();
            let count = random.between(low as u64, high.min(low + 2) as u64);
            Expr::Call { function, args: (0..count).map(|_| *of(random)).collect() }
        }
    }
}

fn any_operator(random: &mut Prng) -> BinaryOp {
    use BinaryOp::*;
    const OPERATORS: [BinaryOp; 19] = [
        Add,
        Subtract,
        Multiply,
        Divide,
        IntDivide,
        Modulo,
        Equal,
        NullSafeEqual,
        NotEqual,
        Less,
        LessOrEqual,
        Greater,
        And,
        Or,
        Xor,
        BitAnd,
        BitXor,
        ShiftLeft,
        ShiftRight,
    ];
    OPERATORS[random.below(OPERATORS.len() as u64) as usize]
}

/// Any program for these columns.
fn any_program(types: &[ColumnType], random: &mut Prng) -> Program {
    let depth = random.below(6) as u32;
    let column = |random: &mut Prng| random.below(types.len() as u64) as u16;
    let assignments = (0..2).map(|_| (column(random), any_expr(types, depth, random))).collect();
    Program {
        filter: random.chance(1, 3).then(|| any_expr(types, depth, random)),
        assignments,
        projection: random.chance(1, 2).then(|| vec![column(random)]),
        strict: random.chance(1, 2),
    }
}

/// Changes some of the bytes.
fn mutate(bytes: &mut Vec<u8>, changes: u64, random: &mut Prng) {
    for _ in 0..changes {
        let at = random.below(bytes.len() as u64) as usize;
        match random.below(4) {
            0 => bytes[at] = random.next_u64() as u8,
            1 => bytes[at] ^= 1 << random.below(8),
            2 => bytes.truncate(at.max(1)),
            _ => bytes.insert(at, random.next_u64() as u8),
        }
    }
}

/// PROGRAM-1, PROGRAM-3: no bytes panic, run for long, or make a row that is none.
#[test]
fn no_bytes_harm_a_node() {
    let mut random = Prng::new(11);
    let types = crate::testing::all_types();
    let layout = RowLayout::new(&types);
    let (mut decoded, mut mutated) = (0, 0);
    for round in 0..12_000_u64 {
        let values: Vec<Value> =
            types.iter().map(|t| crate::testing::value(t, &mut random)).collect();
        let mut row = Vec::new();
        layout.encode(&values, &mut row).unwrap();
        let mut bytes = any_program(&types, &mut random).encode();
        mutate(&mut bytes, round % 4, &mut random);
        let Ok(program) = Program::decode(&bytes, &types) else {
            assert!(round % 4 > 0, "what we encode, we decode");
            continue;
        };
        decoded += 1;
        mutated += u32::from(round % 4 > 0);
        let mut work_left = limits::PROGRAM_WORK_MAX;
        if let Ok(Some(after)) = program.updated_within(&layout, &row, Vec::new(), &mut work_left) {
            assert_eq!(layout.validate(&after), Ok(()), "{program:?}");
            program.project(&layout, &after, &mut Vec::new());
        }
    }
    assert!(decoded > 3_200 && mutated > 300, "{decoded} {mutated}");
}

#[test]
fn programs_that_would_run_for_long_are_stopped() {
    let layout = RowLayout::new(&columns());
    let row = row([Value::Int(5), Value::text("abc"), Value::Null]);
    for text in [
        "REPEAT('a', 100000) LIKE CONCAT('%', REPEAT('a', 50000), 'b')",
        "INSTR(REPEAT('a', 1000000), REPEAT('a', 500000)) = 2",
        "REPLACE(REPEAT('a', 100000), CONCAT(REPEAT('a', 50000), 'b'), '') = ''",
    ] {
        let program = Program { filter: Some(parse(text)), ..Program::default() };
        let mut work_left = limits::PROGRAM_WORK_MAX;
        let result = program.matches_within(&layout, &row, &mut work_left);
        assert_eq!(result.unwrap_err().errno, 3024, "{text}");
    }
    // All of a request's programs share what it may do.
    let program = Program { filter: Some(parse("c1 LIKE '%c'")), ..Program::default() };
    let mut work_left = 40;
    let mut runs = 0;
    while let Ok(true) = program.matches_within(&layout, &row, &mut work_left) {
        runs += 1;
    }
    assert!((2..10).contains(&runs), "{runs}");
}
