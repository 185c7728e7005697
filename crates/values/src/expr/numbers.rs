//! Values as numbers, with the warnings that text leaves.

use crate::{
    Decimal, EvalContext, SqlError, Value,
    compare::Number,
    decimal::PRECISION_MAX,
    text::{self, Rest},
};

/// The number that a value counts as in arithmetic.
pub(crate) fn to_number(value: &Value, ctx: &mut EvalContext) -> Result<Number, SqlError> {
    if let Some(bytes) = string_bytes(value) {
        let (number, rest) = text::double_prefix(bytes);
        if rest != Rest::Nothing {
            ctx.warn(SqlError::truncated_wrong_value("DOUBLE", &text::lossy(bytes)))?;
        }
        return Ok(Number::Double(number));
    }
    Ok(Number::of(value))
}

fn string_bytes(value: &Value) -> Option<&[u8]> {
    match value {
        Value::Text(text, _) => Some(text.as_bytes()),
        Value::Bytes(bytes) => Some(bytes),
        _ => None,
    }
}

/// The value as a double.
pub(crate) fn to_double(value: &Value, ctx: &mut EvalContext) -> Result<f64, SqlError> {
    Ok(to_number(value, ctx)?.to_f64())
}

/// The value as an exact decimal; what is too large becomes the largest.
pub(crate) fn to_decimal(value: &Value, ctx: &mut EvalContext) -> Result<Decimal, SqlError> {
    let Some(bytes) = string_bytes(value) else {
        let number = Number::of(value);
        let negative = number.to_f64() < 0.0;
        return Ok(number.into_decimal().unwrap_or_else(|| largest(negative)));
    };
    let text = text::lossy(bytes);
    let wrong = || SqlError::truncated_wrong_value("DECIMAL", &text);
    match Decimal::parse_prefix(&text) {
        None => {
            ctx.warn(wrong())?;
            Ok(Decimal::zero())
        }
        Some((parsed, used)) => {
            let rest = text.as_bytes().get(used..).unwrap_or(&[]);
            if parsed.is_err() || !rest.iter().all(|b| text::is_space(*b)) {
                ctx.warn(wrong())?;
            }
            Ok(parsed.unwrap_or_else(|sign| largest(sign.negative)))
        }
    }
}

fn largest(negative: bool) -> Decimal {
    let max = Decimal::max_of(PRECISION_MAX, 0);
    if negative { max.neg() } else { max }
}

/// The value as a whole number between the smallest BIGINT and the largest BIGINT UNSIGNED.
pub(crate) fn to_integer(value: &Value, ctx: &mut EvalContext) -> Result<i128, SqlError> {
    let limit = |v: i128| v.clamp(i128::from(i64::MIN), i128::from(u64::MAX));
    if let Some(bytes) = string_bytes(value) {
        let (number, rest) = text::integer_prefix(bytes);
        if rest != Rest::Nothing || number != limit(number) {
            ctx.warn(SqlError::truncated_wrong_value("INTEGER", &text::lossy(bytes)))?;
        }
        return Ok(limit(number));
    }
    Ok(match Number::of(value) {
        Number::Int(v) => v,
        Number::Decimal(v) => {
            let out = if v.is_negative() { i128::MIN } else { i128::MAX };
            limit(v.to_i128().unwrap_or(out))
        }
        // The cast cuts what is too large and makes NaN zero.
        Number::Double(v) => limit(libm::rint(v) as i128),
    })
}
