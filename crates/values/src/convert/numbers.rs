//! Storing into number columns.

use super::ConvertContext;
use crate::{
    ColumnType, Decimal, SqlError, TypeKind, Value,
    compare::Number,
    decimal::PRECISION_MAX,
    expr::integer_result,
    row::integer_range,
    text::{self, Rest},
};

type Ctx<'a, 'b> = &'a mut ConvertContext<'b>;

pub(super) fn store_integer(
    value: &Value,
    to: &ColumnType,
    ctx: Ctx<'_, '_>,
) -> Result<Value, SqlError> {
    let wide = whole(value, ctx)?;
    let (low, high) = integer_range(to.kind.integer_bytes().unwrap_or(8), to.unsigned);
    if !(low..=high).contains(&wide) {
        ctx.warn(ctx.out_of_range())?;
    }
    let fit = wide.clamp(low, high);
    Ok(integer_result(fit, to.unsigned).unwrap_or(Value::Null))
}

/// The nearest whole number; what is beyond any column saturates.
fn whole(value: &Value, ctx: Ctx<'_, '_>) -> Result<i128, SqlError> {
    match value {
        Value::Text(text, _) => whole_of_text(text, ctx),
        Value::Bytes(bytes) => whole_of_text(&text::lossy(bytes), ctx),
        Value::DateTime(v) => Ok(i128::from(v.round(0).unwrap_or(*v).to_number())),
        Value::Time(v) => Ok(i128::from(v.round(0).to_number())),
        other => Ok(match Number::of(other) {
            Number::Int(v) => v,
            Number::Decimal(v) => saturated(&v),
            // Half to even, as MySQL's rint; the cast saturates.
            Number::Double(v) => libm::rint(v) as i128,
        }),
    }
}

fn saturated(value: &Decimal) -> i128 {
    let out = if value.is_negative() { i128::MIN } else { i128::MAX };
    value.to_i128().unwrap_or(out)
}

/// Text is rounded half away from zero, not by way of a double.
fn whole_of_text(text: &str, ctx: Ctx<'_, '_>) -> Result<i128, SqlError> {
    let Some((parsed, used)) = Decimal::parse_prefix(text) else {
        ctx.warn(ctx.incorrect("integer", text))?;
        return Ok(0);
    };
    if !blank_after(text, used) {
        ctx.warn(ctx.truncated())?;
    }
    Ok(match parsed {
        Ok(value) => saturated(&value),
        Err(sign) if sign.negative => i128::MIN,
        Err(_) => i128::MAX,
    })
}

fn blank_after(text: &str, used: usize) -> bool {
    text.as_bytes().get(used..).is_none_or(|rest| rest.iter().all(|b| text::is_space(*b)))
}

pub(super) fn store_real(
    value: &Value,
    to: &ColumnType,
    ctx: Ctx<'_, '_>,
) -> Result<Value, SqlError> {
    let mut number = match value.as_bytes() {
        Some(bytes) if value.is_string() => {
            let (number, rest) = text::double_prefix(&bytes);
            match rest {
                Rest::Nothing => {}
                Rest::TooLarge => ctx.warn(ctx.out_of_range())?,
                Rest::Garbage | Rest::NoNumber => ctx.warn(ctx.truncated())?,
            }
            number
        }
        _ => Number::of(value).to_f64(),
    };
    if number.is_nan() || (to.unsigned && number < 0.0) {
        ctx.warn(ctx.out_of_range())?;
        number = 0.0;
    }
    let limit = if to.kind == TypeKind::Float { f64::from(f32::MAX) } else { f64::MAX };
    if number.abs() > limit {
        ctx.warn(ctx.out_of_range())?;
        number = number.clamp(-limit, limit);
    }
    if to.kind == TypeKind::Float {
        return Ok(Value::Float((number as f32).clamp(f32::MIN, f32::MAX)));
    }
    Ok(Value::Double(number))
}

pub(super) fn store_decimal(
    value: &Value,
    precision: u8,
    scale: u8,
    unsigned: bool,
    ctx: Ctx<'_, '_>,
) -> Result<Value, SqlError> {
    let exact = decimal_of(value, ctx)?;
    if unsigned && exact.is_negative() {
        ctx.warn(ctx.out_of_range())?;
        return Ok(Value::Decimal(Decimal::new(0, scale)));
    }
    let rounded = exact.round(scale);
    if !rounded.fits(precision, scale) {
        ctx.warn(ctx.out_of_range())?;
        let max = Decimal::max_of(precision, scale);
        return Ok(Value::Decimal(if exact.is_negative() { max.neg() } else { max }));
    }
    if rounded.order(&exact).is_ne() && !value.is_real() {
        ctx.note(ctx.truncated());
    }
    Ok(Value::Decimal(rounded))
}

fn decimal_of(value: &Value, ctx: Ctx<'_, '_>) -> Result<Decimal, SqlError> {
    let largest = |negative: bool| {
        let max = Decimal::max_of(PRECISION_MAX + 1, 0);
        if negative { max.neg() } else { max }
    };
    if !value.is_string() {
        let number = Number::of(value);
        let negative = number.to_f64() < 0.0;
        return Ok(number.into_decimal().unwrap_or_else(|| largest(negative)));
    }
    let text = value.to_display();
    let parsed = Decimal::parse_prefix(&text);
    match parsed {
        Some((Ok(number), used)) if blank_after(&text, used) => Ok(number),
        Some((Err(sign), _)) => Ok(largest(sign.negative)),
        Some((Ok(number), _)) => {
            if ctx.strict {
                return Err(ctx.incorrect("decimal", &text));
            }
            ctx.note(ctx.truncated());
            Ok(number)
        }
        None => {
            ctx.warn(ctx.incorrect("decimal", &text))?;
            Ok(Decimal::zero())
        }
    }
}

/// `69` is 2069, `70` is 1970; the text `0` is 2000, the number 0 is 0.
pub(super) fn store_year(value: &Value, ctx: Ctx<'_, '_>) -> Result<Value, SqlError> {
    let number = match value {
        Value::Date(v) => i128::from(v.year),
        Value::DateTime(v) => i128::from(v.date.year),
        other => whole(other, ctx)?,
    };
    let long = value.to_display().trim().len() >= 4;
    let year = match number {
        0 if value.is_string() && !long => 2000,
        0 => 0,
        1..=69 => number + 2000,
        70..=99 => number + 1900,
        1901..=2155 => number,
        _ => {
            ctx.warn(ctx.out_of_range())?;
            0
        }
    };
    Ok(Value::UInt(u64::try_from(year).unwrap_or(0)))
}
