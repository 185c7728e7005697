//! Functions of days and times.

mod calendar;
mod format;
pub(crate) mod parse;
mod shift;
mod span;

use super::{Function, IntervalUnit, strings::plain};
use crate::{
    Date, DateTime, Decimal, EvalContext, SqlError, Time, Value,
    convert::moment::{day, moment, split_number, time},
    expr::to_integer,
    temporal::{self, DAY_MICROS, SECOND_MICROS, TIME_MICROS_MAX},
};
use alloc::string::String;

type Outcome = Result<Value, SqlError>;

pub(super) fn call(function: Function, args: &[Value], ctx: &mut EvalContext) -> Outcome {
    if args.iter().any(Value::is_null) {
        return Ok(Value::Null);
    }
    match (function, args) {
        (Function::DateAdd { unit }, [x, amount]) => shift::add(x, amount, unit, false, ctx),
        (Function::DateSub { unit }, [x, amount]) => shift::add(x, amount, unit, true, ctx),
        (Function::TimestampDiff { unit }, [from, to]) => {
            let (from, to) = (moment(from, false, ctx)?, moment(to, false, ctx)?);
            let span = from.zip(to).and_then(|(f, t)| temporal::difference(unit, f, t));
            Ok(span.map_or(Value::Null, Value::Int))
        }
        (Function::Extract { unit }, [x]) => extract(unit, x, ctx),
        (Function::DateDiff, [a, b]) => {
            let (a, b) = (day(a, false, ctx)?, day(b, false, ctx)?);
            Ok(a.zip(b).map_or(Value::Null, |(a, b)| Value::Int(a.days() - b.days())))
        }
        (Function::TimeDiff, [a, b]) => time_diff(a, b, ctx),
        (Function::MakeDate, [year, number]) => {
            let (year, number) = (to_integer(year, ctx)?, to_integer(number, ctx)?);
            Ok(calendar::make_date(year, number).map_or(Value::Null, Value::Date))
        }
        (Function::DateFormat, [x, format]) => {
            let text = moment(x, true, ctx)?.map(|m| format::format(m, &format.to_display()));
            Ok(text.flatten().map_or(Value::Null, plain))
        }
        (Function::Week | Function::YearWeek, [x, rest @ ..]) => {
            let mode = match rest.first() {
                Some(mode) => to_integer(mode, ctx)?,
                None => 0,
            };
            let Some(date) = day(x, false, ctx)? else { return Ok(Value::Null) };
            let with_year = function == Function::YearWeek;
            let (year, week) = calendar::week(date, mode as u32 & 7, with_year);
            Ok(Value::Int(if with_year { year * 100 + week } else { week }))
        }
        (Function::FromUnixtime, [x]) => from_unix(x),
        (Function::FromUnixtime, [x, format]) => Ok(match from_unix(x)? {
            Value::DateTime(m) => {
                format::format(m, &format.to_display()).map_or(Value::Null, plain)
            }
            _ => Value::Null,
        }),
        (Function::FromDays, [x]) => {
            let days = i64::try_from(to_integer(x, ctx)?).unwrap_or(0);
            Ok(Value::Date(Date::from_days(days).unwrap_or(Date::ZERO)))
        }
        (Function::SecToTime, [x]) => sec_to_time(x, ctx),
        (Function::Timestamp, [x, span]) => span::timestamp(x, span, ctx),
        (Function::ToSeconds, [x]) => span::to_seconds(x, ctx),
        (_, [x, y]) => of_two(function, x, y, ctx),
        (Function::MakeTime, [hour, minute, second]) => span::make_time(hour, minute, second, ctx),
        (Function::ConvertTz, [x, from, to]) => span::convert_tz(x, from, to, ctx),
        (_, [x]) => one(function, x, ctx),
        _ => Err(SqlError::wrong_argument_count(function.name())),
    }
}

fn of_two(function: Function, x: &Value, y: &Value, ctx: &mut EvalContext) -> Outcome {
    match function {
        Function::AddTime => span::add_time(x, y, false, ctx),
        Function::SubTime => span::add_time(x, y, true, ctx),
        Function::StrToDate => parse::str_to_date(x, y, ctx),
        Function::TimeFormat => span::time_format(x, y, ctx),
        Function::PeriodAdd | Function::PeriodDiff => span::period(function, x, y, ctx),
        Function::GetFormat => Ok(span::get_format(x, y)),
        _ => Err(SqlError::wrong_argument_count(function.name())),
    }
}

fn one(function: Function, x: &Value, ctx: &mut EvalContext) -> Outcome {
    use Function as F;
    match function {
        F::Time | F::Hour | F::Minute | F::Second | F::Microsecond | F::TimeToSec => {
            Ok(time(x, ctx)?.map_or(Value::Null, |t| of_time(function, t)))
        }
        F::Date => Ok(day(x, false, ctx)?.map_or(Value::Null, Value::Date)),
        F::Timestamp => Ok(moment(x, false, ctx)?.map_or(Value::Null, Value::DateTime)),
        F::UnixTimestamp => Ok(moment(x, false, ctx)?.map_or(Value::Null, unix)),
        F::LastDay => {
            let last = day(x, true, ctx)?
                .filter(|d| d.month > 0)
                .map(|d| Date { day: temporal::days_in_month(d.year, d.month), ..d });
            Ok(last.map_or(Value::Null, Value::Date))
        }
        F::Year | F::Quarter | F::Month | F::Day | F::MonthName => {
            Ok(day(x, true, ctx)?.map_or(Value::Null, |d| part_of_date(function, d)))
        }
        _ => Ok(day(x, false, ctx)?.map_or(Value::Null, |d| of_date(function, d))),
    }
}

fn of_time(function: Function, time: Time) -> Value {
    Value::Int(match function {
        Function::Time => return Value::Time(time),
        Function::Hour => time.hours.into(),
        Function::Minute => time.minutes.into(),
        Function::Second => time.seconds.into(),
        Function::Microsecond => time.micros.into(),
        _ => time.total_micros() / SECOND_MICROS,
    })
}

/// What is there even in incomplete dates.
fn part_of_date(function: Function, date: Date) -> Value {
    Value::Int(match function {
        Function::Year => date.year.into(),
        Function::Quarter => (i64::from(date.month) + 2) / 3,
        Function::Month => date.month.into(),
        Function::Day => date.day.into(),
        _ => {
            let name = calendar::month_name(date.month);
            return name.map_or(Value::Null, |n| plain(String::from(n)));
        }
    })
}

fn of_date(function: Function, date: Date) -> Value {
    let weekday = i64::from(date.weekday());
    Value::Int(match function {
        Function::DayOfWeek => (weekday + 1) % 7 + 1,
        Function::Weekday => weekday,
        Function::DayOfYear => date.day_of_year(),
        Function::ToDays => date.days(),
        Function::WeekOfYear => calendar::week(date, 3, false).1,
        _ => return plain(String::from(calendar::day_name(date.weekday()))),
    })
}

/// Moments before 1970 and after the year 3001 are 0.
fn unix(moment: DateTime) -> Value {
    let limit = 32_536_771_199 * SECOND_MICROS + 999_999;
    let micros = moment.to_unix_micros().filter(|m| (0..=limit).contains(m)).unwrap_or(0);
    if moment.fsp == 0 {
        return Value::Int(micros / SECOND_MICROS);
    }
    Value::Decimal(Decimal::new(micros.into(), 6).truncate(moment.fsp))
}

fn from_unix(value: &Value) -> Outcome {
    let Some((seconds, micros, fsp)) = split_number(value) else { return Ok(Value::Null) };
    let fsp = if value.is_string() { 6 } else { fsp };
    if seconds < 0 || micros < 0 || seconds > 32_536_771_199 {
        return Ok(Value::Null);
    }
    let moment = DateTime::from_unix_micros(seconds * SECOND_MICROS + micros, fsp);
    Ok(moment.map_or(Value::Null, Value::DateTime))
}

fn sec_to_time(value: &Value, ctx: &mut EvalContext) -> Outcome {
    let Some((seconds, micros, fsp)) = split_number(value) else { return Ok(Value::Null) };
    let total = seconds.saturating_mul(SECOND_MICROS).saturating_add(micros);
    if !(-TIME_MICROS_MAX..=TIME_MICROS_MAX).contains(&total) {
        ctx.warn(SqlError::truncated_wrong_value("time", &value.to_display()))?;
    }
    let fsp = if value.is_string() { 6 } else { fsp };
    Ok(Value::Time(Time::from_micros(total, fsp)))
}

/// Both must be times or both moments; otherwise NULL.
fn time_diff(a: &Value, b: &Value, ctx: &mut EvalContext) -> Outcome {
    let is_moment = |v: &Value| match v {
        Value::Date(_) | Value::DateTime(_) => true,
        Value::Text(text, _) => temporal::parse_datetime(text).is_some() && text.len() > 10,
        _ => false,
    };
    let micros = match (is_moment(a), is_moment(b)) {
        (true, true) => {
            let (Some(a), Some(b)) = (moment(a, false, ctx)?, moment(b, false, ctx)?) else {
                return Ok(Value::Null);
            };
            let days = a.date.days() - b.date.days();
            (days * DAY_MICROS + a.micros_of_day() - b.micros_of_day(), a.fsp.max(b.fsp))
        }
        (false, false) => {
            let (Some(a), Some(b)) = (time(a, ctx)?, time(b, ctx)?) else {
                return Ok(Value::Null);
            };
            (a.total_micros() - b.total_micros(), a.fsp.max(b.fsp))
        }
        _ => return Ok(Value::Null),
    };
    if micros.0.abs() > TIME_MICROS_MAX {
        let shown = Time::from_micros(micros.0, 0);
        ctx.warn(SqlError::truncated_wrong_value("time", &alloc::format!("{shown}")))?;
    }
    Ok(Value::Time(Time::from_micros(micros.0, micros.1)))
}

/// Compound units read as one number: DAY_HOUR of the 3rd at 4 o'clock is 304.
fn extract(unit: IntervalUnit, value: &Value, ctx: &mut EvalContext) -> Outcome {
    use IntervalUnit as U;
    let days = !matches!(value, Value::Time(_)) && unit.name().starts_with("DAY");
    if !unit.has_time() || days {
        let Some(m) = moment(value, true, ctx)? else { return Ok(Value::Null) };
        let (year, month) = (i64::from(m.date.year), i64::from(m.date.month));
        let day = i64::from(m.date.day);
        return Ok(Value::Int(match unit {
            U::Year => year,
            U::Quarter => (month + 2) / 3,
            U::Month => month,
            U::YearMonth => year * 100 + month,
            U::Week => calendar::week(m.date, 0, false).1,
            U::Day => day,
            _ => joined(unit, day, m.time()),
        }));
    }
    let Some(time) = time(value, ctx)? else { return Ok(Value::Null) };
    let number = joined(unit, 0, time);
    Ok(Value::Int(if time.negative { -number } else { number }))
}

fn joined(unit: IntervalUnit, day: i64, time: Time) -> i64 {
    use IntervalUnit as U;
    let (h, m, s) = (i64::from(time.hours), i64::from(time.minutes), i64::from(time.seconds));
    let micros = i64::from(time.micros);
    match unit {
        U::Hour => h,
        U::Minute => m,
        U::Second => s,
        U::Microsecond => micros,
        U::DayHour => day * 100 + h,
        U::DayMinute => (day * 100 + h) * 100 + m,
        U::DaySecond => ((day * 100 + h) * 100 + m) * 100 + s,
        U::DayMicrosecond => (((day * 100 + h) * 100 + m) * 100 + s) * 1_000_000 + micros,
        U::HourMinute => h * 100 + m,
        U::HourSecond => (h * 100 + m) * 100 + s,
        U::HourMicrosecond => ((h * 100 + m) * 100 + s) * 1_000_000 + micros,
        U::MinuteSecond => m * 100 + s,
        U::MinuteMicrosecond => (m * 100 + s) * 1_000_000 + micros,
        _ => s * 1_000_000 + micros,
    }
}
