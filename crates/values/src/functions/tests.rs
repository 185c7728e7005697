//! Nothing that a program can ask for panics.

use super::*;
use crate::{
    ColumnType, ConvertContext, Expr, UnaryOp, cast, convert_to_column, eval, present, result_type,
    testing,
};
use lats_base::prng::Prng;
use std::{boxed::Box, string::String, vec::Vec};

/// Values near the ends of their types, and random ones.
fn any(types: &[ColumnType], random: &mut Prng) -> Value {
    match random.below(12) {
        0 => Value::Int(i64::MIN),
        1 => Value::Int(i64::MAX),
        2 => Value::UInt(u64::MAX),
        3 => Value::Double(f64::MAX),
        4 => Value::Decimal(crate::Decimal::max_of(65, random.below(31) as u8).neg()),
        5 => Value::Int(random.below(200) as i64 - 100),
        6 => {
            const ALPHABET: &[u8] = b"0123456789-:. %_e\\";
            let digits = (0..random.below(20))
                .map(|_| char::from(ALPHABET[random.below(ALPHABET.len() as u64) as usize]));
            Value::text(&digits.collect::<String>())
        }
        _ => {
            let column = &types[random.below(types.len() as u64) as usize];
            testing::value(column, random)
        }
    }
}

#[test]
fn every_function_takes_any_values() {
    let mut random = Prng::new(1);
    let types = testing::all_types();
    for function in Function::all() {
        let (low, high) = function.arity();
        for _ in 0..700 {
            let count = random.between(low as u64, high.min(low + 2) as u64);
            let args: Vec<Expr> =
                (0..count).map(|_| Expr::Literal(any(&types, &mut random))).collect();
            let expr = Expr::Call { function, args };
            let _ = result_type(&expr, &[]).sql_name();
            let _ = eval(&expr, &Vec::new(), &mut EvalContext::new(false));
        }
    }
}

#[test]
fn every_operator_takes_any_values() {
    use crate::BinaryOp::*;
    let mut random = Prng::new(2);
    let types = testing::all_types();
    for op in [
        Add,
        Subtract,
        Multiply,
        Divide,
        IntDivide,
        Modulo,
        Equal,
        NullSafeEqual,
        Less,
        Xor,
        BitAnd,
        ShiftLeft,
        ShiftRight,
    ] {
        for _ in 0..3_000 {
            let mut operand = || Box::new(Expr::Literal(any(&types, &mut random)));
            let expr = Expr::Binary { op, left: operand(), right: operand() };
            let _ = result_type(&expr, &[]);
            let _ = eval(&expr, &Vec::new(), &mut EvalContext::new(false));
            let negated = Expr::Unary { op: UnaryOp::Minus, arg: operand() };
            let _ = eval(&negated, &Vec::new(), &mut EvalContext::new(false));
        }
    }
}

#[test]
fn every_type_takes_any_value_and_keeps_its_own() {
    let mut random = Prng::new(3);
    let types = testing::all_types();
    for to in &types {
        for _ in 0..2_000 {
            let value = any(&types, &mut random);
            let _ = cast(value.clone(), to, &mut EvalContext::new(false));
            let _ = present(value.clone(), to);
            let mut ctx = ConvertContext::new(random.chance(1, 2), "a", 1);
            let Ok(stored) = convert_to_column(value, to, &mut ctx) else { continue };
            let layout = crate::RowLayout::new(core::slice::from_ref(to));
            let mut row = Vec::new();
            layout.encode(core::slice::from_ref(&stored), &mut row).unwrap();
            assert_eq!(layout.validate(&row), Ok(()), "{stored:?} in {}", to.sql_name());
            let mut strict = ConvertContext::new(true, "a", 1);
            let zero = matches!(&stored, Value::Date(d) if d.is_zero())
                || matches!(&stored, Value::DateTime(d) if d.date.is_zero());
            if !zero {
                assert_eq!(convert_to_column(stored.clone(), to, &mut strict), Ok(stored));
            }
        }
    }
}
