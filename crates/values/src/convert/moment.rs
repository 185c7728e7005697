//! Values as days, times and moments in expressions.

use crate::{
    Date, DateTime, Decimal, EvalContext, SqlError, Time, Value,
    compare::Number,
    temporal::{
        SECOND_MICROS, carry, datetime_from_number, parse_datetime, parse_time, time_from_number,
    },
};

/// The whole part of a number and its fraction in microseconds, which may round up to a second.
pub(crate) fn split_number(value: &Value) -> Option<(i64, i64, u8)> {
    let (scale, exact) = match Number::of(value) {
        Number::Int(v) => return i64::try_from(v).ok().map(|v| (v, 0, 0)),
        Number::Decimal(v) => (v.shown_scale().min(6), v),
        Number::Double(v) => (6, Decimal::from_f64(v)?),
    };
    let whole = exact.truncate(0);
    let million = Decimal::new(SECOND_MICROS.into(), 0);
    let micros = exact.sub(&whole).ok()?.mul(&million).ok()?.to_i128()?;
    Some((i64::try_from(whole.to_i128()?).ok()?, i64::try_from(micros).ok()?, scale))
}

/// The moment of a value without any check of zero dates; `None` when it is none.
pub(crate) fn raw_moment(value: &Value) -> Result<Option<(DateTime, bool)>, SqlError> {
    Ok(match value {
        Value::Null => None,
        Value::Date(v) => Some((v.at_midnight(), true)),
        Value::DateTime(v) => Some((*v, true)),
        // MySQL would put today's date before the time; a node has no "today".
        Value::Time(_) => return Err(SqlError::not_supported("TIME values as DATE or DATETIME")),
        Value::Text(text, _) => parse_datetime(text).map(|p| (p.value, p.complete)),
        Value::Bytes(bytes) => {
            core::str::from_utf8(bytes).ok().and_then(parse_datetime).map(|p| (p.value, p.complete))
        }
        number => split_number(number).and_then(|(whole, micros, fsp)| {
            let base = datetime_from_number(whole)?;
            if micros < 0 {
                return None;
            }
            let moment = carry(DateTime { fsp, ..base }, u32::try_from(micros).ok()?)?;
            Some((moment, true))
        }),
    })
}

/// The moment of a value, with a warning and `None` when it is none. `zero` allows dates with a
/// zero month or day, as the functions that only take parts of a date do.
pub(crate) fn moment(
    value: &Value,
    zero: bool,
    ctx: &mut EvalContext,
) -> Result<Option<DateTime>, SqlError> {
    if value.is_null() {
        return Ok(None);
    }
    let wrong = || SqlError::wrong_datetime("datetime", &value.to_display());
    match raw_moment(value)? {
        Some((moment, complete)) if zero || !moment.date.is_incomplete() => {
            if !complete {
                ctx.warn(SqlError::truncated_wrong_value("datetime", &value.to_display()))?;
            }
            Ok(Some(moment))
        }
        _ => {
            ctx.warn(wrong())?;
            Ok(None)
        }
    }
}

/// The day of a value.
pub(crate) fn day(
    value: &Value,
    zero: bool,
    ctx: &mut EvalContext,
) -> Result<Option<Date>, SqlError> {
    Ok(moment(value, zero, ctx)?.map(|m| m.date))
}

/// The time of a value: the time of day of a moment.
pub(crate) fn time(value: &Value, ctx: &mut EvalContext) -> Result<Option<Time>, SqlError> {
    let parsed = match value {
        Value::Null => return Ok(None),
        Value::Time(v) => return Ok(Some(*v)),
        Value::DateTime(v) => return Ok(Some(v.time())),
        Value::Date(_) => return Ok(Some(Time::from_micros(0, 0))),
        Value::Text(..) | Value::Bytes(_) => parse_time(&value.to_display()),
        number => split_number(number).and_then(|(whole, micros, fsp)| {
            let mut parsed = time_from_number(whole)?;
            let base = parsed.value.total_micros();
            parsed.value = Time::from_micros(base + micros, fsp);
            Some(parsed)
        }),
    };
    let Some(parsed) = parsed else {
        ctx.warn(SqlError::truncated_wrong_value("time", &value.to_display()))?;
        return Ok(None);
    };
    if parsed.clipped || !parsed.complete {
        ctx.warn(SqlError::truncated_wrong_value("time", &value.to_display()))?;
    }
    Ok(Some(parsed.value))
}
