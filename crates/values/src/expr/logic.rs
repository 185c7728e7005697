//! Comparisons and conditions with three truth values, BETWEEN, IN and LIKE.

mod pattern;

use super::{BinaryOp, InList, eval, list::Search};
use crate::{
    Collation, ColumnSource, EvalContext, Expr, SqlError, Value,
    compare::{common_collation, compare_in},
    expr::{to_decimal, to_double, to_number},
};
use alloc::vec::Vec;
use core::cmp::Ordering;
use lats_base::planted::{QueryBug, errs};

type Truth = Option<bool>;

/// 1, 0 or NULL.
pub(super) fn value_of(truth: Truth, negated: bool) -> Value {
    truth.map_or(Value::Null, |t| Value::bool(t != negated))
}

/// The truth of a value, with the warning that text other than a number leaves.
pub(super) fn truth(value: &Value, ctx: &mut EvalContext) -> Result<Truth, SqlError> {
    if value.is_string() {
        return Ok(Some(to_number(value, ctx)?.to_f64() != 0.0));
    }
    Ok(value.truth())
}

/// AND and OR over the whole chain `((a AND b) AND c) AND …`, left to right; what decides the
/// result ends it.
pub(super) fn chain(
    op: BinaryOp,
    left: &Expr,
    right: &Expr,
    row: &dyn ColumnSource,
    ctx: &mut EvalContext,
) -> Result<Truth, SqlError> {
    let decisive = op == BinaryOp::Or;
    let mut operands = Vec::from([right]);
    let mut first = left;
    while let Expr::Binary { op: inner, left, right } = first
        && *inner == op
    {
        operands.push(right);
        first = left;
    }
    operands.push(first);
    let mut unknown = false;
    for operand in operands.into_iter().rev() {
        let value = eval(operand, row, ctx)?;
        match truth(&value, ctx)? {
            Some(t) if t == decisive => return Ok(Some(decisive)),
            Some(_) => {}
            None if op == BinaryOp::And && errs(QueryBug::AndStopsAtNull) => return Ok(None),
            None => unknown = true,
        }
    }
    Ok(if unknown { None } else { Some(!decisive) })
}

pub(super) fn xor(a: &Value, b: &Value, ctx: &mut EvalContext) -> Result<Value, SqlError> {
    let truth = match (truth(a, ctx)?, truth(b, ctx)?) {
        (Some(x), Some(y)) => Some(x != y),
        (Some(x), None) | (None, Some(x)) if errs(QueryBug::XorOfNull) => Some(x),
        _ => None,
    };
    Ok(value_of(truth, false))
}

impl BinaryOp {
    /// True for operators that compare two values.
    pub fn is_comparison(self) -> bool {
        use BinaryOp::*;
        matches!(
            self,
            Equal | NullSafeEqual | NotEqual | Less | LessOrEqual | Greater | GreaterOrEqual
        )
    }
}

/// A value and the expression that gave it.
pub(super) type Operand<'a> = (&'a Value, &'a Expr);

pub(super) fn comparison(
    op: BinaryOp,
    a: Operand<'_>,
    b: Operand<'_>,
    ctx: &mut EvalContext,
) -> Result<Value, SqlError> {
    if op == BinaryOp::NullSafeEqual && (a.0.is_null() || b.0.is_null()) {
        return Ok(Value::bool(a.0.is_null() && b.0.is_null()));
    }
    let Some(order) = order_of(a, b, ctx)? else { return Ok(Value::Null) };
    Ok(Value::bool(is_true_for(op, order)))
}

/// What a comparison of two values in this order says.
pub(super) fn is_true_for(op: BinaryOp, order: Ordering) -> bool {
    use BinaryOp::*;
    match op {
        NotEqual => order.is_ne(),
        Less => order.is_lt(),
        LessOrEqual => order.is_le(),
        Greater => order.is_gt(),
        GreaterOrEqual => order.is_ge(),
        _ => order.is_eq(),
    }
}

pub(super) fn equal(
    a: Operand<'_>,
    b: Operand<'_>,
    ctx: &mut EvalContext,
) -> Result<Truth, SqlError> {
    Ok(order_of(a, b, ctx)?.map(Ordering::is_eq))
}

/// Compares two values where they stand in a statement: COLLATE decides, then a column's collation
/// over a literal's; text that is no number or moment leaves a warning.
fn order_of(
    a: Operand<'_>,
    b: Operand<'_>,
    ctx: &mut EvalContext,
) -> Result<Option<Ordering>, SqlError> {
    if a.0.is_null() || b.0.is_null() {
        return Ok(None);
    }
    if let Some(order) = decimal_with_constant(a, b, ctx)? {
        return Ok(Some(order));
    }
    if let Some(order) = decimal_with_constant(b, a, ctx)? {
        return Ok(Some(order.reverse()));
    }
    if a.0.is_string() != b.0.is_string() {
        let (text, other) = if a.0.is_string() { (a, b) } else { (b, a) };
        if !other.0.is_temporal() {
            to_number(text.0, ctx)?;
        } else if let Err(error) = compare_in(a.0, b.0, Collation::Binary) {
            // A constant must be a moment; a column's text that is none equals nothing.
            if error.errno != 1525 || matches!(text.1, Expr::Literal(_)) {
                return Err(error);
            }
            ctx.warn(SqlError::wrong_datetime("datetime", &text.0.to_display()))?;
            return Ok(None);
        }
    }
    compare_in(a.0, b.0, collation_of(a, b)).map(Some)
}

/// A decimal that is no constant itself is compared with a constant text digit by digit.
fn decimal_with_constant(
    a: Operand<'_>,
    b: Operand<'_>,
    ctx: &mut EvalContext,
) -> Result<Option<Ordering>, SqlError> {
    let (Value::Decimal(number), Value::Text(..)) = (a.0, b.0) else { return Ok(None) };
    if matches!(a.1, Expr::Literal(_)) || !matches!(b.1, Expr::Literal(_)) {
        return Ok(None);
    }
    Ok(Some(number.order(&to_decimal(b.0, ctx)?)))
}

pub(super) fn collation_of(a: Operand<'_>, b: Operand<'_>) -> Collation {
    // Smaller is stronger, as MySQL's coercibility.
    let strength = |expr: &Expr| match expr {
        Expr::Collate { .. } if !expr.is_converted() => 0,
        Expr::Literal(_) if errs(QueryBug::LiteralDecidesCollation) => 0,
        Expr::Literal(_) => 2,
        _ => 1,
    };
    let (x, y) = (a.0.collation(), b.0.collation());
    match strength(a.1).cmp(&strength(b.1)) {
        Ordering::Less => x,
        Ordering::Greater => y,
        Ordering::Equal => common_collation(x, y),
    }
}

pub(super) fn between(
    arg: &Expr,
    low: &Expr,
    high: &Expr,
    row: &dyn ColumnSource,
    ctx: &mut EvalContext,
) -> Result<Truth, SqlError> {
    let value = eval(arg, row, ctx)?;
    if value.is_null() {
        return Ok(None);
    }
    let (from, to) = (eval(low, row, ctx)?, eval(high, row, ctx)?);
    if compares_doubles([&value, &from, &to]) {
        return between_doubles(&value, &from, &to, ctx);
    }
    let above = order_of((&value, arg), (&from, low), ctx)?.map(Ordering::is_ge);
    let below = order_of((&value, arg), (&to, high), ctx)?.map(Ordering::is_le);
    Ok(both(above, below))
}

fn both(a: Truth, b: Truth) -> Truth {
    match (a, b) {
        (None, _) | (_, None) if errs(QueryBug::BetweenWithNullIsNull) => None,
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

/// Whether the operands of a BETWEEN are compared as doubles: all three have one type of comparison. That
/// of exact numbers, of texts and of moments is what they have two by two.
fn compares_doubles(operands: [&Value; 3]) -> bool {
    let any = |test: fn(&Value) -> bool| operands.iter().any(|v| test(v));
    let exact = |v: &Value| !v.is_null() && !v.is_string() && !v.is_real();
    if any(Value::is_temporal) {
        return false;
    }
    let numbers = any(Value::is_real) || operands.iter().any(|v| exact(v));
    any(Value::is_real) || (operands[0].is_string() && numbers)
}

fn between_doubles(
    value: &Value,
    from: &Value,
    to: &Value,
    ctx: &mut EvalContext,
) -> Result<Truth, SqlError> {
    let mut double = |v: &Value| -> Result<Option<f64>, SqlError> {
        if v.is_null() { Ok(None) } else { to_double(v, ctx).map(Some) }
    };
    let (value, from, to) = (double(value)?, double(from)?, double(to)?);
    let above = value.zip(from).map(|(v, low)| v >= low);
    let below = value.zip(to).map(|(v, high)| v <= high);
    Ok(both(above, below))
}

pub(super) fn in_list(
    arg: &Expr,
    list: &InList,
    row: &dyn ColumnSource,
    ctx: &mut EvalContext,
) -> Result<Truth, SqlError> {
    let value = eval(arg, row, ctx)?;
    if value.is_null() {
        return Ok(None);
    }
    if !matches!(arg, Expr::Literal(_) | Expr::Collate { .. }) {
        match list.search(&value) {
            Search::Found => return Ok(Some(true)),
            Search::Missing => return Ok(Some(false)),
            Search::Walk => {}
        }
    }
    let mut unknown = false;
    for expr in list {
        let found = match expr {
            // No copy of the constants, of which there may be thousands.
            Expr::Literal(other) => equal((&value, arg), (other, expr), ctx)?,
            _ => equal((&value, arg), (&eval(expr, row, ctx)?, expr), ctx)?,
        };
        match found {
            Some(true) => return Ok(Some(true)),
            Some(false) => {}
            None => unknown = !errs(QueryBug::InForgetsNull),
        }
    }
    Ok(if unknown { None } else { Some(false) })
}

pub(super) fn like(
    arg: &Expr,
    pattern: &Expr,
    escape: Option<char>,
    row: &dyn ColumnSource,
    ctx: &mut EvalContext,
) -> Result<Truth, SqlError> {
    let value = eval(arg, row, ctx)?;
    if value.is_null() {
        return Ok(None);
    }
    let like = eval(pattern, row, ctx)?;
    if like.is_null() {
        return Ok(None);
    }
    let escape = match escape {
        None => Some('\\'),
        Some('\0') => None,
        some => some,
    };
    if matches!(value, Value::Bytes(_)) || matches!(like, Value::Bytes(_)) {
        let chars = |v: &Value| -> Vec<char> {
            v.as_bytes().unwrap_or_default().iter().map(|b| char::from(*b)).collect()
        };
        let (text, like) = (chars(&value), chars(&like));
        return fits(pattern::matches(&text, &like, escape, |a, b| a == b, &mut ctx.work_left));
    }
    // Numbers have no collation; the pattern's counts then.
    let collation = match (&value, &like) {
        (Value::Text(..), Value::Text(..)) => collation_of((&value, arg), (&like, pattern)),
        (Value::Text(_, c), _) | (_, Value::Text(_, c)) => *c,
        _ => Collation::default(),
    };
    let chars = |v: &Value| -> Vec<char> { v.to_display().chars().collect() };
    let collation = match errs(QueryBug::LikeByBytes) {
        true => Collation::Utf8mb4Bin,
        false => collation,
    };
    let same = |a, b| crate::collation::chars_equal(collation, a, b);
    fits(pattern::matches(&chars(&value), &chars(&like), escape, same, &mut ctx.work_left))
}

/// Whether a pattern fits, if that could be found out with the work that was allowed.
fn fits(found: Option<bool>) -> Result<Truth, SqlError> {
    found.map(Some).ok_or_else(SqlError::too_much_work)
}
