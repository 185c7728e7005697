//! Storing into columns of days, times and moments.

use super::{ConvertContext, moment};
use crate::{
    Date, DateTime, SqlError, Time, Value,
    temporal::{Parsed, parse_time, time_from_number},
};

type Ctx<'a, 'b> = &'a mut ConvertContext<'b>;

/// Strict: the value is incorrect. Otherwise a warning, and the caller stores what it can.
fn refuse(kind: &str, value: &Value, ctx: Ctx<'_, '_>) -> Result<(), SqlError> {
    if ctx.strict {
        let text = value.to_display();
        return Err(SqlError::bad_datetime(kind, &text, ctx.column, ctx.row_number));
    }
    ctx.note(ctx.truncated());
    Ok(())
}

/// The moment of a value; the zero moment, after a warning, when it is none or incomplete.
fn moment_of(kind: &str, value: &Value, ctx: Ctx<'_, '_>) -> Result<DateTime, SqlError> {
    match moment::raw_moment(value)? {
        Some((moment, complete)) if !moment.date.is_incomplete() => {
            if !complete {
                refuse(kind, value, ctx)?;
            }
            Ok(moment)
        }
        _ => {
            refuse(kind, value, ctx)?;
            Ok(DateTime::ZERO)
        }
    }
}

pub(super) fn store_date(value: &Value, ctx: Ctx<'_, '_>) -> Result<Value, SqlError> {
    let moment = moment_of("date", value, ctx)?;
    if moment.micros_of_day() != 0 {
        ctx.note(ctx.truncated());
    }
    Ok(Value::Date(moment.date))
}

pub(super) fn store_moment(
    value: &Value,
    fsp: u8,
    timestamp: bool,
    ctx: Ctx<'_, '_>,
) -> Result<Value, SqlError> {
    let zero = DateTime { fsp, ..DateTime::ZERO };
    let moment = moment_of("datetime", value, ctx)?;
    if moment.date == Date::ZERO {
        return Ok(Value::DateTime(zero));
    }
    match moment.round(fsp) {
        Some(rounded) if !timestamp || rounded.fits_timestamp() => Ok(Value::DateTime(rounded)),
        _ => {
            refuse("datetime", value, ctx)?;
            Ok(Value::DateTime(zero))
        }
    }
}

pub(super) fn store_time(value: &Value, fsp: u8, ctx: Ctx<'_, '_>) -> Result<Value, SqlError> {
    let zero = Time::from_micros(0, fsp);
    let parsed = match value {
        Value::Time(v) => whole(*v),
        Value::DateTime(v) => {
            ctx.note(ctx.truncated());
            whole(v.time())
        }
        Value::Date(_) => {
            ctx.note(ctx.truncated());
            whole(zero)
        }
        Value::Text(..) | Value::Bytes(_) => parse_time(&value.to_display()),
        number => moment::split_number(number).and_then(|(seconds, micros, digits)| {
            let mut parsed = time_from_number(seconds)?;
            let base = parsed.value.total_micros();
            parsed.value = Time::from_micros(base + micros, digits);
            Some(parsed)
        }),
    };
    let Some(parsed) = parsed else {
        refuse("time", value, ctx)?;
        return Ok(Value::Time(zero));
    };
    if parsed.clipped || !parsed.complete {
        refuse("time", value, ctx)?;
    }
    Ok(Value::Time(parsed.value.round(fsp)))
}

fn whole(value: Time) -> Option<Parsed<Time>> {
    Some(Parsed { value, complete: true, clipped: false })
}
