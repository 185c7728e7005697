//! `DATE_ADD` and `DATE_SUB`.

use super::Outcome;
use crate::{
    Collation, DateTime, EvalContext, IntervalUnit, SqlError, Time, Value,
    convert::moment::{moment, raw_moment, split_number},
    expr::to_integer,
    temporal::{Interval, SECOND_MICROS, TIME_MICROS_MAX, add_interval},
};
use alloc::string::{String, ToString};

/// The span of an amount; `None`, as in MySQL, where the text of a compound unit is none.
fn interval(
    amount: &Value,
    unit: IntervalUnit,
    ctx: &mut EvalContext,
) -> Result<Option<Interval>, SqlError> {
    if unit.is_compound() {
        return Ok(Interval::parse(unit, &amount.to_display()));
    }
    if unit == IntervalUnit::Second {
        // The only unit whose fractions count.
        return Ok(split_number(amount).map(|(seconds, micros, _)| Interval {
            months: 0,
            micros: i128::from(seconds) * i128::from(SECOND_MICROS) + i128::from(micros),
        }));
    }
    let count = i64::try_from(to_integer(amount, ctx)?).ok();
    Ok(count.and_then(|count| Interval::of_units(unit, count)))
}

fn overflow(ctx: &mut EvalContext) -> Outcome {
    ctx.warn(SqlError::datetime_overflow("datetime"))?;
    Ok(Value::Null)
}

pub(super) fn add(
    value: &Value,
    amount: &Value,
    unit: IntervalUnit,
    backwards: bool,
    ctx: &mut EvalContext,
) -> Outcome {
    let Some(span) = interval(amount, unit, ctx)? else { return overflow(ctx) };
    let span = if backwards { span.negated() } else { span };
    let exact = matches!(split_number(amount), Some((_, _, fsp @ 1..)) if fsp > 0);
    let fraction = match amount {
        _ if unit.has_micros() => 6,
        Value::Decimal(d) if exact && unit == IntervalUnit::Second => d.shown_scale().min(6),
        _ => 0,
    };
    if let Value::Time(time) = value {
        return add_to_time(*time, span, fraction, ctx);
    }
    let Some(start) = moment(value, false, ctx)? else { return Ok(Value::Null) };
    let Some(end) = add_interval(start, span, start.fsp.max(fraction)) else {
        return overflow(ctx);
    };
    Ok(match value {
        Value::Date(_) if !unit.has_time() => Value::Date(end.date),
        Value::Text(text, collation) => {
            let has_time = raw_moment(value)?.is_some() && text.trim().len() > 10;
            Value::Text(written(end, has_time || unit.has_time()), *collation)
        }
        Value::Bytes(_) => Value::Text(written(end, unit.has_time()), Collation::default()),
        _ => Value::DateTime(end),
    })
}

/// Text gives text: with a time where there was one or the unit adds one.
fn written(moment: DateTime, with_time: bool) -> String {
    if !with_time {
        return moment.date.to_string();
    }
    let fsp = if moment.micros == 0 { 0 } else { 6 };
    DateTime { fsp, ..moment }.to_string()
}

fn add_to_time(time: Time, span: Interval, fraction: u8, ctx: &mut EvalContext) -> Outcome {
    let total = i128::from(time.total_micros()).checked_add(span.micros);
    match total.and_then(|t| i64::try_from(t).ok()) {
        Some(total) if span.months == 0 && total.abs() <= TIME_MICROS_MAX => {
            Ok(Value::Time(Time::from_micros(total, time.fsp.max(fraction))))
        }
        _ => {
            ctx.warn(SqlError::datetime_overflow("time"))?;
            Ok(Value::Null)
        }
    }
}
