//! Sums of times, times from their parts, periods of months, and offsets from UTC.

use super::{Outcome, format, plain};
use crate::{
    DateTime, EvalContext, Function, SqlError, Time, Value,
    convert::moment::{moment, split_number, time},
    expr::to_integer,
    temporal::{DAY_MICROS, SECOND_MICROS, TIME_MICROS_MAX, parse_datetime},
};
use alloc::string::{String, ToString};

/// ADDTIME and SUBTIME: text gives text, other values keep their kind.
pub(super) fn add_time(
    value: &Value,
    span: &Value,
    backwards: bool,
    ctx: &mut EvalContext,
) -> Outcome {
    if matches!(span, Value::Date(_) | Value::DateTime(_)) {
        return Ok(Value::Null);
    }
    let Some(span) = time(span, ctx)? else { return Ok(Value::Null) };
    let micros = if backwards { -span.total_micros() } else { span.total_micros() };
    if is_moment(value) {
        let Some(start) = moment(value, false, ctx)? else { return Ok(Value::Null) };
        let Some(end) = later(start, micros, span.fsp) else { return overflow(ctx) };
        return Ok(match value {
            Value::Date(_) | Value::DateTime(_) => Value::DateTime(end),
            _ => plain(DateTime { fsp: whole_or_all(end.micros), ..end }.to_string()),
        });
    }
    let Some(start) = time(value, ctx)? else { return Ok(Value::Null) };
    let sum = limited(start.total_micros() + micros, start.fsp.max(span.fsp), ctx)?;
    Ok(match value {
        Value::Time(_) => Value::Time(sum),
        _ => plain(Time { fsp: whole_or_all(sum.micros), ..sum }.to_string()),
    })
}

/// Text shows all digits of a fraction, or none.
fn whole_or_all(micros: u32) -> u8 {
    if micros == 0 { 0 } else { 6 }
}

fn later(start: DateTime, micros: i64, fsp: u8) -> Option<DateTime> {
    let total = start.micros_of_day().checked_add(micros)?;
    DateTime::from_days_and_micros(start.date.days(), total, start.fsp.max(fsp))
}

fn overflow(ctx: &mut EvalContext) -> Outcome {
    ctx.warn(SqlError::datetime_overflow("datetime"))?;
    Ok(Value::Null)
}

fn limited(micros: i64, fsp: u8, ctx: &mut EvalContext) -> Result<Time, SqlError> {
    if micros.abs() > TIME_MICROS_MAX {
        let hours = micros / (3_600 * SECOND_MICROS);
        ctx.warn(SqlError::truncated_wrong_value("time", &alloc::format!("{hours}:00:00")))?;
    }
    Ok(Time::from_micros(micros, fsp))
}

/// Whether a value has a day: text that begins like one, and numbers that are as long.
fn is_moment(value: &Value) -> bool {
    match value {
        Value::Date(_) | Value::DateTime(_) => true,
        Value::Time(_) => false,
        Value::Text(..) | Value::Bytes(_) => {
            let text = value.to_display();
            let digits = text.trim_start().bytes().take_while(u8::is_ascii_digit).count();
            let after = text.trim_start().as_bytes().get(digits);
            (digits >= 12 || matches!(after, Some(b'-' | b'/'))) && parse_datetime(&text).is_some()
        }
        number => split_number(number).is_some_and(|(whole, ..)| whole >= 10_000_000_000),
    }
}

/// `TIMESTAMP(x, time)`.
pub(super) fn timestamp(value: &Value, span: &Value, ctx: &mut EvalContext) -> Outcome {
    let (start, span) = (moment(value, false, ctx)?, time(span, ctx)?);
    let (Some(start), Some(span)) = (start, span) else { return Ok(Value::Null) };
    match later(start, span.total_micros(), span.fsp) {
        Some(end) => Ok(Value::DateTime(end)),
        None => overflow(ctx),
    }
}

/// `MAKETIME(hour, minute, second)`.
pub(super) fn make_time(
    hour: &Value,
    minute: &Value,
    second: &Value,
    ctx: &mut EvalContext,
) -> Outcome {
    let (hour, minute) = (to_integer(hour, ctx)?, to_integer(minute, ctx)?);
    let Some((second, micros, digits)) = split_number(second) else { return Ok(Value::Null) };
    if !(0..60).contains(&minute) || !(0..60).contains(&second) || micros < 0 {
        return Ok(Value::Null);
    }
    let fsp = digits.min(6);
    // Beyond any TIME, it makes no difference.
    let hours = hour.clamp(-10_000, 10_000) as i64;
    let size = hours.abs() * 3_600 + minute as i64 * 60 + second;
    let size = size * SECOND_MICROS + micros;
    let sum = limited(if hours < 0 { -size } else { size }, fsp, ctx)?;
    Ok(Value::Time(sum))
}

/// `TIME_FORMAT(x, format)`: hours may be more than a day's.
pub(super) fn time_format(value: &Value, by: &Value, ctx: &mut EvalContext) -> Outcome {
    let by = by.to_display();
    if is_moment(value) {
        let text = moment(value, true, ctx)?.map(|m| format::format(m, &by));
        return Ok(text.flatten().map_or(Value::Null, plain));
    }
    let text = time(value, ctx)?.and_then(|t| format::format_time(t, &by));
    Ok(text.map_or(Value::Null, plain))
}

/// The months of a period `YYYYMM` or `YYMM`.
fn months(value: &Value, function: Function, ctx: &mut EvalContext) -> Result<i64, SqlError> {
    let period = i64::try_from(to_integer(value, ctx)?).unwrap_or(-1);
    let (year, month) = (period / 100, period % 100);
    if !(0..=922_337_203_685_477_580).contains(&period) || !(1..=12).contains(&month) {
        return Err(SqlError::wrong_arguments(&function.name().to_ascii_lowercase()));
    }
    Ok(short_year(year) * 12 + month - 1)
}

fn short_year(year: i64) -> i64 {
    match year {
        0..=69 => year + 2000,
        70..=99 => year + 1900,
        _ => year,
    }
}

/// PERIOD_ADD and PERIOD_DIFF.
pub(super) fn period(function: Function, a: &Value, b: &Value, ctx: &mut EvalContext) -> Outcome {
    let start = months(a, function, ctx)?;
    if function == Function::PeriodDiff {
        return Ok(Value::Int(start - months(b, function, ctx)?));
    }
    let more = i64::try_from(to_integer(b, ctx)?).unwrap_or(0);
    let sum = start.checked_add(more).filter(|sum| *sum >= 0);
    Ok(Value::Int(sum.map_or(0, |sum| short_year(sum / 12) * 100 + sum % 12 + 1)))
}

/// Microseconds of `+05:30`; from -13:59 to +14:00.
fn offset(text: &str) -> Option<i64> {
    if text.eq_ignore_ascii_case("SYSTEM") {
        return Some(0);
    }
    let negative = text.starts_with('-');
    let (hours, minutes) = text.strip_prefix(['+', '-'])?.split_once(':')?;
    let part = |text: &str, lengths: core::ops::RangeInclusive<usize>| {
        let digits = lengths.contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
        if digits { text.parse::<i64>().ok() } else { None }
    };
    let minutes = part(minutes, 2..=2).filter(|m| *m < 60)? + part(hours, 1..=2)? * 60;
    let minutes = if negative { -minutes } else { minutes };
    (-839..=840).contains(&minutes).then_some(minutes * 60 * SECOND_MICROS)
}

/// `CONVERT_TZ(x, from, to)`: a node knows no other zones than offsets. What is no TIMESTAMP stays.
pub(super) fn convert_tz(
    value: &Value,
    from: &Value,
    to: &Value,
    ctx: &mut EvalContext,
) -> Outcome {
    const LAST: i64 = 32_536_771_199 * SECOND_MICROS + SECOND_MICROS - 1;
    let Some(local) = moment(value, false, ctx)? else { return Ok(Value::Null) };
    let offsets = offset(&from.to_display()).zip(offset(&to.to_display()));
    let Some((from, to)) = offsets else { return Ok(Value::Null) };
    let utc = local.to_unix_micros().map(|micros| micros - from);
    let Some(utc) = utc.filter(|micros| (SECOND_MICROS..=LAST).contains(micros)) else {
        return Ok(Value::DateTime(local));
    };
    let there = DateTime::from_unix_micros(utc + to, local.fsp);
    Ok(there.map_or(Value::Null, Value::DateTime))
}

/// `GET_FORMAT(kind, region)`.
pub(super) fn get_format(kind: &Value, region: &Value) -> Value {
    let (kind, region) = (kind.to_display(), region.to_display());
    let (kind, region) = (kind.to_ascii_uppercase(), region.to_ascii_uppercase());
    let found = match (kind.as_str(), region.as_str()) {
        ("DATE", "USA") => "%m.%d.%Y",
        ("DATE", "JIS" | "ISO") => "%Y-%m-%d",
        ("DATE", "EUR") => "%d.%m.%Y",
        ("DATE", "INTERNAL") => "%Y%m%d",
        ("DATETIME" | "TIMESTAMP", "USA" | "EUR") => "%Y-%m-%d %H.%i.%s",
        ("DATETIME" | "TIMESTAMP", "JIS" | "ISO") => "%Y-%m-%d %H:%i:%s",
        ("DATETIME" | "TIMESTAMP", "INTERNAL") => "%Y%m%d%H%i%s",
        ("TIME", "USA") => "%h:%i:%s %p",
        ("TIME", "JIS" | "ISO") => "%H:%i:%s",
        ("TIME", "EUR") => "%H.%i.%s",
        ("TIME", "INTERNAL") => "%H%i%s",
        _ => return Value::Null,
    };
    plain(String::from(found))
}

/// `TO_SECONDS`.
pub(super) fn to_seconds(value: &Value, ctx: &mut EvalContext) -> Outcome {
    let Some(at) = moment(value, false, ctx)? else { return Ok(Value::Null) };
    let day = DAY_MICROS / SECOND_MICROS;
    Ok(Value::Int(at.date.days() * day + at.micros_of_day() / SECOND_MICROS))
}
