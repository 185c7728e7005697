//! Aggregates over small lists.

use super::*;
use crate::{AggregateKind::*, TypeKind};

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
        (Sum, TypeKind::Date, "decimal(30,0)"),
        (Avg, TypeKind::Date, "decimal(12,4)"),
        (Sum, TypeKind::Year, "decimal(26,0)"),
        (Sum, TypeKind::Time { fsp: 2 }, "decimal(31,2)"),
        (Sum, TypeKind::Text, "double"),
        (StdPop, TypeKind::Int, "double"),
        (VarSamp, TypeKind::Decimal { precision: 10, scale: 2 }, "double"),
        (BitAnd, TypeKind::Int, "bigint unsigned"),
        (BitOr, TypeKind::VarBinary { bytes: 5 }, "varbinary(5)"),
        (AnyValue, TypeKind::VarChar { chars: 10 }, "varchar(10)"),
        (GroupConcat, TypeKind::Int, "text"),
        (GroupConcat, TypeKind::VarBinary { bytes: 5 }, "blob"),
    ] {
        assert_eq!(result_type(kind, &ColumnType::new(input)).sql_name(), expected);
    }
}

/// The spec of an aggregate of as many arguments of one type.
fn spec(kind: AggregateKind, input: TypeKind, count: usize) -> AggregateSpec {
    AggregateSpec::new(kind, alloc::vec![ColumnType::new(input); count])
}

/// The result over rows and the numbers of its warnings; the rows in two halves give the same.
fn over(spec: AggregateSpec, rows: &[Vec<Value>]) -> String {
    let spec = Arc::new(spec);
    let filled = |rows: &[Vec<Value>], ctx: &mut EvalContext| {
        let mut out = Accumulator::of(spec.clone());
        rows.iter().for_each(|row| out.push(row, ctx).unwrap());
        out
    };
    let shown = |of: Accumulator, mut ctx: EvalContext| {
        let value = of.finish_with(&mut ctx).unwrap().to_display();
        let notes = ctx.warnings.iter().map(|w| alloc::format!(" [{}]", w.errno));
        value + &notes.collect::<String>()
    };
    let mut ctx = EvalContext::new(false);
    let whole = filled(rows, &mut ctx);
    assert!(whole.bytes() >= size_of::<Accumulator>());
    let whole = shown(whole, ctx);
    for at in 0..=rows.len() {
        let mut ctx = EvalContext::new(false);
        let mut front = filled(&rows[..at], &mut ctx);
        let back = filled(&rows[at..], &mut ctx);
        front.merge(back, &mut ctx).unwrap();
        let parts = shown(front, ctx);
        let near = |a: &str, b: &str| {
            let number = |t: &str| t.parse::<f64>().unwrap_or(f64::NAN);
            (number(a) - number(b)).abs() < 1e-12
        };
        assert!(parts == whole || near(&parts, &whole), "{parts} and {whole}, cut at {at}");
    }
    whole
}

fn column(values: &[Value]) -> Vec<Vec<Value>> {
    values.iter().map(|value| alloc::vec![value.clone()]).collect()
}

#[test]
fn deviations_and_variances() {
    let ints = column(&[Value::Int(1), Value::Null, Value::Int(2), Value::Int(2)]);
    let one = column(&[Value::Int(7)]);
    for (kind, expected, of_one) in [
        (StdPop, "0.4714045207910317", "0"),
        (StdSamp, "0.5773502691896257", "NULL"),
        (VarPop, "0.2222222222222222", "0"),
        (VarSamp, "0.3333333333333333", "NULL"),
    ] {
        assert_eq!(over(spec(kind, TypeKind::Int, 1), &ints), expected, "{kind:?}");
        assert_eq!(over(spec(kind, TypeKind::Int, 1), &one), of_one, "{kind:?} of one");
        assert_eq!(over(spec(kind, TypeKind::Int, 1), &[]), "NULL", "{kind:?} of none");
    }
    let doubles = column(&[Value::Double(1.5), Value::Double(2.5), Value::Double(0.1)]);
    assert_eq!(over(spec(VarSamp, TypeKind::Double, 1), &doubles), "1.4533333333333331");
    let texts = column(&[Value::text("3"), Value::text("5x")]);
    assert_eq!(over(spec(VarPop, TypeKind::Text, 1), &texts), "1 [1292]");
}

#[test]
fn bits() {
    let ints = column(&[Value::Int(1), Value::Null, Value::UInt(3), Value::Int(7)]);
    let bytes =
        column(&[Value::Bytes(alloc::vec![0x0f, 0xf0]), Value::Bytes(alloc::vec![3, 0x33])]);
    for (kind, expected, of_bytes, of_none) in [
        (BitAnd, "1", [3, 0x30], "18446744073709551615"),
        (BitOr, "7", [0x0f, 0xf3], "0"),
        (BitXor, "5", [0x0c, 0xc3], "0"),
    ] {
        assert_eq!(over(spec(kind, TypeKind::Int, 1), &ints), expected, "{kind:?}");
        assert_eq!(over(spec(kind, TypeKind::Int, 1), &[]), of_none, "{kind:?} of none");
        let of = spec(kind, TypeKind::VarBinary { bytes: 4 }, 1);
        let expected = String::from_utf8_lossy(&of_bytes).into_owned();
        assert_eq!(over(of, &bytes), expected, "{kind:?} of bytes");
    }
    let none = Accumulator::of(Arc::new(spec(BitAnd, TypeKind::Binary { bytes: 2 }, 1)));
    assert_eq!(none.finish(), Value::Bytes(alloc::vec![0xff, 0xff]));
    let mut unequal = Accumulator::new(BitOr, false, &ColumnType::new(TypeKind::Blob));
    unequal.add(&Value::Bytes(alloc::vec![1])).unwrap();
    assert_eq!(unequal.add(&Value::Bytes(alloc::vec![1, 2])).unwrap_err().errno, 3513);
    assert_eq!(unequal.add(&Value::Bytes(alloc::vec![0; 512])).unwrap_err().errno, 3514);
}

#[test]
fn distinct_over_several_arguments() {
    let row = |a: i64, b: &str| alloc::vec![Value::Int(a), Value::text(b)];
    let mut rows = alloc::vec![row(1, "a"), row(1, "A"), row(1, "b"), row(2, "a"), row(2, "a")];
    rows.push(alloc::vec![Value::Null, Value::text("a")]);
    rows.push(alloc::vec![Value::Int(3), Value::Null]);
    assert_eq!(over(spec(Count, TypeKind::Int, 2).distinct(), &rows), "3");
    assert_eq!(over(spec(Count, TypeKind::Int, 1).distinct(), &rows), "3");
    assert_eq!(over(spec(Sum, TypeKind::Int, 1).distinct(), &rows), "6");
    assert_eq!(over(spec(Avg, TypeKind::Int, 1).distinct(), &rows), "2.0000");
    assert_eq!(over(spec(Max, TypeKind::Int, 1).distinct(), &rows), "3");
    assert_eq!(over(spec(CountStar, TypeKind::Int, 0), &rows), "7");
}

#[test]
fn any_value_is_that_of_the_first_row() {
    let of = |values: &[Value]| over(spec(AnyValue, TypeKind::Int, 1), &column(values));
    assert_eq!(of(&[Value::Int(2), Value::Int(1)]), "2");
    assert_eq!(of(&[Value::Null, Value::Int(1)]), "NULL");
    assert_eq!(of(&[]), "NULL");
}

#[test]
fn texts_are_joined() {
    let row = |a: &str, b: i64| alloc::vec![Value::text(a), Value::Int(b)];
    let rows = [row("a", 1), row("B", 2), row("b", 3), row("A", 4)];
    let text = || spec(GroupConcat, TypeKind::VarChar { chars: 9 }, 1);
    let by = |order: &[(usize, bool)]| AggregateSpec { order: order.to_vec(), ..text() };
    assert_eq!(over(text(), &rows), "a,B,b,A");
    assert_eq!(over(by(&[(0, false)]), &rows), "A,a,b,B");
    assert_eq!(over(by(&[(0, true), (1, true)]), &rows), "b,B,A,a");
    assert_eq!(over(text().distinct(), &rows), "a,B");
    assert_eq!(over(by(&[(1, true)]).distinct(), &rows), "B,a");
    let two =
        AggregateSpec { separator: String::from("; "), ..spec(GroupConcat, TypeKind::Text, 2) };
    assert_eq!(over(two, &rows), "a1; B2; b3; A4");
    assert_eq!(over(text(), &[]), "NULL");
    let null = [alloc::vec![Value::Null, Value::Int(1)], row("", 1), row("x", 2)];
    assert_eq!(over(text(), &null), ",x");
    let collated = Value::Text(String::from("a"), crate::Collation::Utf8mb4Bin);
    let mut one = Accumulator::new(GroupConcat, false, &ColumnType::new(TypeKind::Text));
    one.add(&collated).unwrap();
    assert_eq!(one.finish(), collated);
    let mut bytes = Accumulator::new(GroupConcat, false, &ColumnType::new(TypeKind::Blob));
    bytes.add(&Value::Bytes(alloc::vec![0xff])).unwrap();
    assert_eq!(bytes.finish(), Value::Bytes(alloc::vec![0xff]));
}

#[test]
fn a_text_that_is_too_long_is_cut_where_a_character_ends() {
    let rows = column(&["a", "B", "b", "c", "d"].map(Value::text));
    let text = |max_bytes: usize, separator: &str| AggregateSpec {
        max_bytes,
        separator: String::from(separator),
        ..spec(GroupConcat, TypeKind::Text, 1)
    };
    assert_eq!(over(text(4, ","), &rows), "a,B, [1260]");
    assert_eq!(over(text(4, "äö"), &rows), "aä [1260]");
    assert_eq!(over(text(9, ","), &rows), "a,B,b,c,d");
    let ordered = AggregateSpec { order: alloc::vec![(0, true)], ..text(3, ",") };
    assert_eq!(over(ordered, &rows), "d,c [1260]");
    let mut long = Accumulator::of(Arc::new(text(10, ",")));
    for _ in 0..1_000 {
        long.add(&Value::text("0123456789")).unwrap();
    }
    assert!(long.bytes() < 1_000, "{}", long.bytes());
    let mut strict = EvalContext::new(true);
    assert_eq!(
        long.finish_with(&mut strict).unwrap_err().message,
        "Row 2 was cut by GROUP_CONCAT()"
    );
}

#[test]
fn rows_behind_the_longest_result_are_not_kept() {
    let mut random = lats_base::prng::Prng::new(5);
    let rows: Vec<Vec<Value>> = (0..30_000)
        .map(|at| {
            alloc::vec![Value::text(&alloc::format!("{at}")), Value::Int(random.below(500) as i64)]
        })
        .collect();
    for (max_bytes, descending) in [(100, false), (2_000, true), (1 << 20, false)] {
        let ordered = AggregateSpec {
            max_bytes,
            order: alloc::vec![(1, descending)],
            ..spec(GroupConcat, TypeKind::Text, 1)
        };
        // Of equal rows the later one comes first.
        let mut sorted: Vec<(i64, usize)> = (0..)
            .zip(&rows)
            .map(|(at, row)| match row[1] {
                Value::Int(by) => (if descending { -by } else { by }, usize::MAX - at),
                _ => (0, at),
            })
            .collect();
        sorted.sort_unstable();
        let all: Vec<String> =
            sorted.iter().map(|(_, at)| alloc::format!("{}", usize::MAX - at)).collect();
        let all = all.join(",");
        let is_cut = all.len() > max_bytes;
        let expected = alloc::format!(
            "{}{}",
            &all[..all.len().min(max_bytes)],
            if is_cut { " [1260]" } else { "" }
        );
        let spec = Arc::new(ordered);
        for cut_at in [rows.len(), 11_111] {
            let mut ctx = EvalContext::new(false);
            let (mut front, mut back) =
                (Accumulator::of(spec.clone()), Accumulator::of(spec.clone()));
            rows[..cut_at].iter().for_each(|row| front.push(row, &mut ctx).unwrap());
            rows[cut_at..].iter().for_each(|row| back.push(row, &mut ctx).unwrap());
            assert!(!is_cut || front.bytes() < 1_500_000, "{}", front.bytes());
            front.merge(back, &mut ctx).unwrap();
            let text = front.finish_with(&mut ctx).unwrap().to_display();
            let warned = if ctx.warnings.is_empty() { "" } else { " [1260]" };
            assert_eq!(text + warned, expected);
        }
    }
}

#[test]
fn names() {
    for (name, kind) in [("variance", VarPop), ("STD", StdPop), ("Group_Concat", GroupConcat)] {
        assert_eq!(AggregateKind::from_name(name), Some(kind));
    }
    assert_eq!(AggregateKind::from_name("ABS"), None);
    assert_eq!(CountStar.name(), "COUNT");
    assert!(Sum.takes_distinct() && !StdPop.takes_distinct());
    assert!(Count.takes_several(true) && !Count.takes_several(false));
}
