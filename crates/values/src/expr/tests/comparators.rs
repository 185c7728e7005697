//! Comparisons that name how they compare give what those give that find it out.

use super::*;
use crate::{Date, DateTime, Decimal, Time, TypeKind as T};
use lats_base::prng::Prng;

fn columns() -> Vec<ColumnType> {
    let text = |collation| ColumnType::new(T::VarChar { chars: 9 }).collated(collation);
    vec![
        ColumnType::new(T::Int),
        ColumnType::new(T::BigInt).unsigned(),
        ColumnType::new(T::Decimal { precision: 9, scale: 2 }),
        ColumnType::new(T::Double),
        text(Collation::Utf8mb4Bin),
        text(Collation::Utf8mb4GeneralCi),
        text(Collation::Utf8mb4_0900AiCi),
        ColumnType::new(T::VarBinary { bytes: 9 }),
        ColumnType::new(T::Date),
        ColumnType::new(T::DateTime { fsp: 6 }),
        ColumnType::new(T::Time { fsp: 0 }),
        ColumnType::new(T::Year),
    ]
}

fn compared(op: BinaryOp, left: Expr, right: Expr) -> Expr {
    Expr::Binary { op, left: Box::new(left), right: Box::new(right) }
}

fn named(left: Expr, right: Expr) -> Comparator {
    let mut expr = compared(BinaryOp::Equal, left, right);
    name_comparators(&mut expr, &columns(), &|number| number == 100);
    match expr {
        Expr::Compare { by, .. } => by,
        _ => Comparator::ByValues,
    }
}

#[test]
fn comparators_follow_from_types() {
    use Comparator as By;
    let (column, literal) = (Expr::Column, Expr::Literal);
    assert_eq!(named(column(0), column(1)), By::Integer);
    assert_eq!(named(column(0), literal(Value::Int(1))), By::Integer);
    assert_eq!(named(column(2), column(0)), By::Decimal);
    assert_eq!(named(literal(Value::Double(1.0)), column(2)), By::Double);
    assert_eq!(named(column(4), literal(Value::text("a"))), By::Text(Collation::Utf8mb4Bin));
    assert_eq!(named(literal(Value::text("a")), column(5)), By::Text(Collation::Utf8mb4GeneralCi));
    assert_eq!(named(column(7), literal(Value::Bytes(vec![1]))), By::Binary);
    assert_eq!(named(column(8), column(9)), By::Moment);
    assert_eq!(named(column(10), column(10)), By::Time);
    // A constant that is not known yet is compared by the column's collation if it is a text.
    assert_eq!(named(column(6), column(100)), By::Text(Collation::Utf8mb4_0900AiCi));
    for (left, right) in [
        // Of another row, of two collations, of COLLATE, of mixed types.
        (column(6), column(101)),
        (column(4), column(5)),
        (column(0), column(100)),
        (
            column(4),
            Expr::Collate {
                arg: Box::new(literal(Value::text("a"))),
                collation: Collation::Utf8mb4GeneralCi,
            },
        ),
        (column(0), literal(Value::text("1"))),
        (column(9), literal(Value::text("2024-01-01"))),
        (column(9), column(10)),
        (column(11), literal(Value::Int(1))),
        (column(0), literal(Value::Null)),
    ] {
        assert_eq!(named(left.clone(), right.clone()), By::ByValues, "{left:?} {right:?}");
    }
}

/// What stands for a constant decides nothing once the comparator is named.
#[test]
fn a_named_collation_stays() {
    let mut expr = compared(BinaryOp::Equal, Expr::Column(6), Expr::Column(100));
    name_comparators(&mut expr, &columns(), &|number| number == 100);
    let row: Vec<Value> = (0..101)
        .map(|at| match at {
            6 => Value::Text("a".into(), Collation::Utf8mb4_0900AiCi),
            100 => Value::Text("A".into(), Collation::Utf8mb4Bin),
            _ => Value::Null,
        })
        .collect();
    let truth = eval(&expr, &row, &mut EvalContext::new(false)).unwrap();
    assert_eq!(truth, Value::Int(1));
}

fn any(random: &mut Prng, of: &ColumnType) -> Value {
    let small = random.below(5) as i64 - 2;
    let words = ["a", "A", "b", "", "a ", "10"];
    let word = words[random.below(words.len() as u64) as usize];
    let date = Date { year: 2024, month: 1, day: 1 + random.below(3) as u8 };
    match of.kind {
        _ if random.chance(1, 8) => Value::Null,
        T::Int => Value::Int(small),
        T::BigInt => Value::UInt(small.unsigned_abs() * (u64::MAX / 2)),
        T::Decimal { .. } => Value::Decimal(Decimal::new((small * 50).into(), 2)),
        T::Double => Value::Double(small as f64 / 2.0),
        T::VarChar { .. } => Value::Text(word.into(), of.collation),
        T::VarBinary { .. } => Value::Bytes(word.into()),
        T::Date => Value::Date(date),
        T::DateTime { .. } => Value::DateTime(DateTime { hour: 1, ..date.at_midnight() }),
        T::Time { .. } => Value::Time(Time::from_micros(small * 1_000_000, 0)),
        _ => Value::Int(2024 + small),
    }
}

#[test]
fn named_comparisons_say_the_same() {
    use BinaryOp as B;
    let columns = columns();
    let operators = [
        B::Equal,
        B::NullSafeEqual,
        B::NotEqual,
        B::Less,
        B::LessOrEqual,
        B::Greater,
        B::GreaterOrEqual,
    ];
    let mut random = Prng::new(28);
    let mut count = 0;
    for _ in 0..20_000 {
        let row: Vec<Value> = columns.iter().map(|of| any(&mut random, of)).collect();
        let mut operand = || {
            let at = random.below(columns.len() as u64) as usize;
            match random.chance(1, 2) {
                true => Expr::Column(at as u32),
                false => Expr::Literal(any(&mut random, &columns[at])),
            }
        };
        let (left, right) = (operand(), operand());
        let op = operators[random.below(7) as usize];
        let plain = compared(op, left, right);
        let mut by_name = plain.clone();
        name_comparators(&mut by_name, &columns, &|_| false);
        count += usize::from(by_name != plain);
        let run = |expr: &Expr| {
            let mut ctx = EvalContext::new(false);
            let value = eval(expr, &row, &mut ctx).map_err(|error| error.errno);
            (value, ctx.warnings.len())
        };
        assert_eq!(run(&by_name), run(&plain), "{by_name:?} of {row:?}");
    }
    assert!(count > 3_000, "{count}");
}
