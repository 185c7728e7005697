//! `+ - * / DIV %`, the bit operators, and the ranges of their results.

use super::{BinaryOp, UnaryOp, print, to_decimal, to_integer, to_number};
use crate::{Decimal, EvalContext, Expr, SqlError, Value, compare::Number, decimal::DecimalError};
use alloc::vec::Vec;
use lats_base::planted::{QueryBug, errs};

fn is_arithmetic(op: BinaryOp) -> bool {
    use BinaryOp::*;
    matches!(
        op,
        Add | Subtract
            | Multiply
            | Divide
            | IntDivide
            | Modulo
            | BitAnd
            | BitOr
            | BitXor
            | ShiftLeft
            | ShiftRight
    )
}

/// One step of a chain: operator, right operand, and what stands to the left (for messages).
type Step<'e> = (BinaryOp, &'e Expr, &'e Expr);

/// Takes a chain `((a + b) + c) + …` apart, so that long ones need no deep recursion: its first
/// operand and the steps after it. `left` is the left operand of the outermost operator `op`.
pub(super) fn spine(op: BinaryOp, left: &Expr) -> (&Expr, Vec<Step<'_>>) {
    let mut steps = Vec::new();
    let mut first = left;
    while let Expr::Binary { op: inner, left, right } = first
        && is_arithmetic(op)
        && is_arithmetic(*inner)
    {
        steps.push((*inner, &**right, &**left));
        first = left;
    }
    steps.reverse();
    (first, steps)
}

/// Applies an operator of this module; NULL gives NULL.
pub(super) fn compute(
    op: BinaryOp,
    a: &Value,
    b: &Value,
    at: (&Expr, &Expr),
    ctx: &mut EvalContext,
) -> Result<Value, SqlError> {
    use BinaryOp::*;
    if a.is_null() || b.is_null() {
        return Ok(Value::Null);
    }
    match op {
        BitAnd | BitOr | BitXor | ShiftLeft | ShiftRight => bits(op, a, b, ctx),
        Divide => divide(a, b, at, ctx),
        IntDivide => int_divide(a, b, at, ctx),
        Modulo => modulo(a, b, ctx),
        _ => add_or_multiply(op, a, b, at, ctx),
    }
}

fn out_of_range(kind: &str, op: BinaryOp, at: (&Expr, &Expr)) -> SqlError {
    SqlError::out_of_range_expr(kind, &print::binary(op, at.0, at.1))
}

/// A whole number as BIGINT or BIGINT UNSIGNED; `None` when it does not fit.
pub(crate) fn integer_result(value: i128, unsigned: bool) -> Option<Value> {
    if unsigned {
        u64::try_from(value).ok().map(Value::UInt)
    } else {
        i64::try_from(value).ok().map(Value::Int)
    }
}

fn integer_kind(unsigned: bool) -> &'static str {
    if unsigned { "BIGINT UNSIGNED" } else { "BIGINT" }
}

fn is_unsigned(value: &Value) -> bool {
    matches!(value, Value::UInt(_))
}

fn add_or_multiply(
    op: BinaryOp,
    a: &Value,
    b: &Value,
    at: (&Expr, &Expr),
    ctx: &mut EvalContext,
) -> Result<Value, SqlError> {
    match (to_number(a, ctx)?, to_number(b, ctx)?) {
        (Number::Int(x), Number::Int(y)) => {
            let unsigned = is_unsigned(a) || is_unsigned(b);
            let wide = match op {
                BinaryOp::Add => x.checked_add(y),
                BinaryOp::Subtract => x.checked_sub(y),
                _ => x.checked_mul(y),
            };
            wide.and_then(|v| integer_result(v, unsigned))
                .ok_or_else(|| out_of_range(integer_kind(unsigned), op, at))
        }
        (x @ Number::Double(_), y) | (x, y @ Number::Double(_)) => {
            let (x, y) = (x.to_f64(), y.to_f64());
            let value = match op {
                BinaryOp::Add => x + y,
                BinaryOp::Subtract => x - y,
                _ => x * y,
            };
            double_result(value).ok_or_else(|| out_of_range("DOUBLE", op, at))
        }
        (x, y) => {
            let result = match (op, exact(x), exact(y)) {
                (BinaryOp::Add, x, y) => x.add(&y),
                (BinaryOp::Subtract, x, y) => x.sub(&y),
                (_, x, y) => x.mul(&y),
            };
            result.map(Value::Decimal).map_err(|_| out_of_range("DECIMAL", op, at))
        }
    }
}

/// Numbers that are not doubles are exact.
fn exact(number: Number) -> Decimal {
    number.into_decimal().unwrap_or_else(Decimal::zero)
}

fn double_result(value: f64) -> Option<Value> {
    value.is_finite().then_some(Value::Double(value))
}

fn divide(
    a: &Value,
    b: &Value,
    at: (&Expr, &Expr),
    ctx: &mut EvalContext,
) -> Result<Value, SqlError> {
    let (x, y) = (to_number(a, ctx)?, to_number(b, ctx)?);
    if matches!(x, Number::Double(_)) || matches!(y, Number::Double(_)) {
        let divisor = y.to_f64();
        if divisor == 0.0 {
            return ctx.division_by_zero();
        }
        let quotient = double_result(x.to_f64() / divisor);
        return quotient.ok_or_else(|| out_of_range("DOUBLE", BinaryOp::Divide, at));
    }
    match exact(x).div(&exact(y)) {
        Ok(value) => Ok(Value::Decimal(value)),
        Err(DecimalError::DivisionByZero) => ctx.division_by_zero(),
        Err(DecimalError::Overflow) => Err(out_of_range("DECIMAL", BinaryOp::Divide, at)),
    }
}

fn int_divide(
    a: &Value,
    b: &Value,
    at: (&Expr, &Expr),
    ctx: &mut EvalContext,
) -> Result<Value, SqlError> {
    let unsigned = is_unsigned(a) || is_unsigned(b);
    let whole = |v: &Value| matches!(v, Value::Int(_) | Value::UInt(_) | Value::Date(_));
    let quotient = if whole(a) && whole(b) {
        let (x, y) = (to_integer(a, ctx)?, to_integer(b, ctx)?);
        if y == 0 {
            return ctx.division_by_zero();
        }
        match errs(QueryBug::DivRoundsDown) {
            true => x.checked_div_euclid(y),
            false => x.checked_div(y),
        }
    } else {
        match to_decimal(a, ctx)?.div_whole(&to_decimal(b, ctx)?) {
            Ok(value) => value.to_i128(),
            Err(DecimalError::DivisionByZero) => return ctx.division_by_zero(),
            Err(DecimalError::Overflow) => None,
        }
    };
    quotient
        .and_then(|v| integer_result(v, unsigned))
        .ok_or_else(|| out_of_range(integer_kind(unsigned), BinaryOp::IntDivide, at))
}

/// The remainder, with the sign of the dividend.
pub(crate) fn modulo(a: &Value, b: &Value, ctx: &mut EvalContext) -> Result<Value, SqlError> {
    match (to_number(a, ctx)?, to_number(b, ctx)?) {
        (Number::Int(_), Number::Int(0)) => ctx.division_by_zero(),
        (Number::Int(x), Number::Int(y)) => {
            // Smaller than the divisor and the dividend, so it fits.
            let rest = match errs(QueryBug::ModuloHasDivisorsSign) {
                true => x.rem_euclid(y),
                false => x.checked_rem(y).unwrap_or(0),
            };
            Ok(integer_result(rest, is_unsigned(a)).unwrap_or(Value::Int(0)))
        }
        (x @ Number::Double(_), y) | (x, y @ Number::Double(_)) => {
            let divisor = y.to_f64();
            if divisor == 0.0 {
                return ctx.division_by_zero();
            }
            Ok(Value::Double(libm::fmod(x.to_f64(), divisor)))
        }
        (x, y) => match exact(x).rem(&exact(y)) {
            Ok(value) => Ok(Value::Decimal(value)),
            Err(_) => ctx.division_by_zero(),
        },
    }
}

fn bits(op: BinaryOp, a: &Value, b: &Value, ctx: &mut EvalContext) -> Result<Value, SqlError> {
    let (x, y) = (to_integer(a, ctx)? as u64, to_integer(b, ctx)? as u64);
    let shift = u32::try_from(y).unwrap_or(u32::MAX);
    Ok(Value::UInt(match op {
        BinaryOp::BitAnd => x & y,
        BinaryOp::BitOr => x | y,
        BinaryOp::BitXor => x ^ y,
        BinaryOp::ShiftLeft => x.checked_shl(shift).unwrap_or(0),
        _ => x.checked_shr(shift).unwrap_or(0),
    }))
}

/// Whether `-arg` is a decimal though `arg` is a whole number: of constants beyond BIGINT.
pub(crate) fn negation_is_decimal(arg: &Expr) -> bool {
    const LOWEST: u64 = 1 << 63;
    match arg {
        Expr::Literal(Value::UInt(v)) => *v > LOWEST,
        Expr::Literal(Value::Int(v)) => *v == i64::MIN,
        // The smallest BIGINT, as it is written.
        Expr::Unary { op: UnaryOp::Minus, arg } => {
            matches!(&**arg, Expr::Literal(Value::UInt(LOWEST)))
        }
        _ => false,
    }
}

/// Whether there is no column in it. Only asked for numbers that do not fit, so it may take its time.
fn is_constant(expr: &Expr) -> bool {
    let mut left = Vec::from([expr]);
    while let Some(expr) = left.pop() {
        if matches!(expr, Expr::Column(_)) {
            return false;
        }
        left.extend(expr.children());
    }
    true
}

/// `-a`. A constant beyond BIGINT becomes a decimal.
pub(crate) fn negate(value: &Value, arg: &Expr, ctx: &mut EvalContext) -> Result<Value, SqlError> {
    match to_number(value, ctx)? {
        Number::Int(v) => match i64::try_from(-v) {
            Ok(negated) => Ok(Value::Int(negated)),
            Err(_) if is_constant(arg) => Ok(Value::Decimal(Decimal::new(-v, 0))),
            Err(_) => {
                let text = alloc::format!("-({})", print::expression(arg));
                Err(SqlError::out_of_range_expr("BIGINT", &text))
            }
        },
        Number::Decimal(v) => Ok(Value::Decimal(v.neg())),
        Number::Double(v) => Ok(Value::Double(-v)),
    }
}
