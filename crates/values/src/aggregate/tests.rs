//! Aggregates over small lists.

use super::*;
use crate::AggregateKind::*;

fn run(
    kind: AggregateKind,
    distinct: bool,
    input: TypeKind,
    values: &[Value],
) -> alloc::string::String {
    let mut sum = Accumulator::new(kind, distinct, &ColumnType::new(input));
    for value in values {
        sum.add(value).unwrap();
    }
    sum.finish().to_display()
}

#[test]
fn aggregates() {
    let ints = [Value::Int(1), Value::Null, Value::Int(2), Value::Int(2)];
    let texts = [Value::text("b"), Value::text("A"), Value::text("B"), Value::Null];
    for (kind, distinct, expected) in [
        (CountStar, false, "4"),
        (Count, false, "3"),
        (Count, true, "2"),
        (Sum, false, "5"),
        (Sum, true, "3"),
        (Avg, false, "1.6667"),
        (Avg, true, "1.5000"),
        (Min, false, "1"),
        (Max, false, "2"),
    ] {
        assert_eq!(run(kind, distinct, TypeKind::Int, &ints), expected, "{kind:?} {distinct}");
    }
    let text = TypeKind::VarChar { chars: 5 };
    assert_eq!(run(Count, true, text, &texts), "2");
    assert_eq!(run(Min, false, text, &texts), "A");
    assert_eq!(run(Max, false, text, &texts), "b");
    let large = [Value::Int(i64::MAX), Value::Int(i64::MAX)];
    assert_eq!(run(Sum, false, TypeKind::BigInt, &large), "18446744073709551614");
    assert_eq!(run(Sum, false, TypeKind::Double, &[Value::Double(0.5)]), "0.5");
    assert_eq!(run(Sum, false, text, &[Value::text("3abc")]), "3");
    for kind in [Sum, Avg, Min, Max] {
        assert_eq!(run(kind, false, TypeKind::Int, &[Value::Null]), "NULL");
    }
}

#[test]
fn types() {
    for (kind, input, expected) in [
        (Count, TypeKind::Int, "bigint"),
        (Sum, TypeKind::Int, "decimal(32,0)"),
        (Avg, TypeKind::Int, "decimal(14,4)"),
        (Sum, TypeKind::Decimal { precision: 10, scale: 2 }, "decimal(32,2)"),
        (Avg, TypeKind::Decimal { precision: 10, scale: 2 }, "decimal(14,6)"),
        (Avg, TypeKind::Float, "double"),
        (Min, TypeKind::Date, "date"),
    ] {
        assert_eq!(result_type(kind, &ColumnType::new(input)).sql_name(), expected);
    }
}
