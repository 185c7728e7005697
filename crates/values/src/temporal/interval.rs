//! Spans of time: `INTERVAL '1:30' MINUTE_SECOND` and what adding one gives.

use super::{DAY_MICROS, Date, DateTime, SECOND_MICROS, days_in_month};
use crate::functions::IntervalUnit;
use alloc::vec::Vec;
use lats_base::planted::{QueryBug, errs};

/// A span: months are kept apart because they have no fixed length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    /// Months.
    pub months: i64,
    /// Everything shorter, in microseconds.
    pub micros: i128,
}

const MINUTE: i128 = 60 * SECOND_MICROS as i128;
const HOUR: i128 = 60 * MINUTE;
const DAY: i128 = DAY_MICROS as i128;

/// The size of each field of a compound unit, first field first.
fn fields_of(unit: IntervalUnit) -> &'static [i128] {
    const SECOND: i128 = SECOND_MICROS as i128;
    match unit {
        IntervalUnit::SecondMicrosecond => &[SECOND, 1],
        IntervalUnit::MinuteMicrosecond => &[MINUTE, SECOND, 1],
        IntervalUnit::MinuteSecond => &[MINUTE, SECOND],
        IntervalUnit::HourMicrosecond => &[HOUR, MINUTE, SECOND, 1],
        IntervalUnit::HourSecond => &[HOUR, MINUTE, SECOND],
        IntervalUnit::HourMinute => &[HOUR, MINUTE],
        IntervalUnit::DayMicrosecond => &[DAY, HOUR, MINUTE, SECOND, 1],
        IntervalUnit::DaySecond => &[DAY, HOUR, MINUTE, SECOND],
        IntervalUnit::DayMinute => &[DAY, HOUR, MINUTE],
        IntervalUnit::DayHour => &[DAY, HOUR],
        _ => &[],
    }
}

impl Interval {
    /// `amount` whole units; `None` for compound units, which are read from text.
    pub fn of_units(unit: IntervalUnit, amount: i64) -> Option<Self> {
        let months = |size: i64| Some(Self { months: amount.checked_mul(size)?, micros: 0 });
        let micros =
            |size: i128| Some(Self { months: 0, micros: i128::from(amount).checked_mul(size)? });
        match unit {
            IntervalUnit::Year => months(12),
            IntervalUnit::Quarter => months(3),
            IntervalUnit::Month => months(1),
            IntervalUnit::Week => micros(7 * DAY),
            IntervalUnit::Day => micros(DAY),
            IntervalUnit::Hour => micros(HOUR),
            IntervalUnit::Minute => micros(MINUTE),
            IntervalUnit::Second => micros(i128::from(SECOND_MICROS)),
            IntervalUnit::Microsecond => micros(1),
            _ => None,
        }
    }

    /// Reads the text of a compound unit: numbers with anything between them. With too few of
    /// them, the first ones are missing.
    pub fn parse(unit: IntervalUnit, text: &str) -> Option<Self> {
        let negative = text.trim_start().starts_with('-');
        let mut numbers: Vec<(i64, usize)> = Vec::new();
        for part in text.split(|c: char| !c.is_ascii_digit()).filter(|p| !p.is_empty()) {
            numbers.push((part.parse().ok()?, part.len()));
        }
        let sign = if negative { -1 } else { 1 };
        if unit == IntervalUnit::YearMonth {
            let months = match numbers.as_slice() {
                [(months, _)] => *months,
                [(years, _), (months, _)] => years.checked_mul(12)?.checked_add(*months)?,
                _ => return None,
            };
            return Some(Self { months: sign * months, micros: 0 });
        }
        let sizes = fields_of(unit);
        if numbers.len() > sizes.len() {
            return None;
        }
        if sizes.last() == Some(&1)
            && let Some((value, length)) = numbers.last_mut()
            && *length < 6
        {
            // The microseconds of '1.5' are 500000.
            *value *= 10_i64.pow(6 - *length as u32);
        }
        let sizes = sizes.get(sizes.len() - numbers.len()..)?;
        let mut micros = 0_i128;
        for ((value, _), size) in numbers.iter().zip(sizes) {
            micros = micros.checked_add(i128::from(*value).checked_mul(*size)?)?;
        }
        Some(Self { months: 0, micros: i128::from(sign) * micros })
    }

    /// The span backwards.
    #[must_use]
    pub fn negated(self) -> Self {
        Self { months: self.months.saturating_neg(), micros: -self.micros }
    }
}

/// The moment a span later; `None` outside the years 0 to 9999. Adding months keeps the day, or
/// takes the month's last.
pub fn add_interval(moment: DateTime, interval: Interval, fsp: u8) -> Option<DateTime> {
    let date = add_months(moment.date, interval.months)?;
    if interval.micros == 0 {
        return Some(DateTime { date, fsp, ..moment });
    }
    let total = i128::from(moment.micros_of_day()).checked_add(interval.micros)?;
    let days = i64::try_from(total.div_euclid(DAY)).ok()?;
    let micros = i64::try_from(total.rem_euclid(DAY)).ok()?;
    DateTime::from_days_and_micros(date.days().checked_add(days)?, micros, fsp)
}

fn add_months(date: Date, months: i64) -> Option<Date> {
    if months == 0 {
        return Some(date);
    }
    let total = (i64::from(date.year) * 12 + i64::from(date.month) - 1).checked_add(months)?;
    let year = u16::try_from(total.div_euclid(12)).ok().filter(|y| *y <= 9999)?;
    let month = u8::try_from(total.rem_euclid(12) + 1).ok()?;
    let last = days_in_month(year, month);
    if date.day > last && errs(QueryBug::MonthsRunOver) {
        let first = Date { year, month, day: 1 };
        return Date::from_days(first.days().checked_add(i64::from(date.day) - 1)?);
    }
    let day = date.day.min(last);
    Some(Date { year, month, day })
}

/// `TIMESTAMPDIFF`: whole units from `from` to `to`.
pub fn difference(unit: IntervalUnit, from: DateTime, to: DateTime) -> Option<i64> {
    let micros = i128::from(to.date.days() - from.date.days()) * DAY
        + i128::from(to.micros_of_day() - from.micros_of_day());
    let months = |size: i64| Some(whole_months(from, to) / size);
    let span = |size: i128| i64::try_from(micros / size).ok();
    match unit {
        IntervalUnit::Year => months(12),
        IntervalUnit::Quarter => months(3),
        IntervalUnit::Month => months(1),
        IntervalUnit::Week => span(7 * DAY),
        IntervalUnit::Day => span(DAY),
        IntervalUnit::Hour => span(HOUR),
        IntervalUnit::Minute => span(MINUTE),
        IntervalUnit::Second => span(i128::from(SECOND_MICROS)),
        IntervalUnit::Microsecond => span(1),
        _ => None,
    }
}

fn whole_months(from: DateTime, to: DateTime) -> i64 {
    if to.packed() < from.packed() {
        return -whole_months(to, from);
    }
    let count = |d: DateTime| i64::from(d.date.year) * 12 + i64::from(d.date.month);
    let time = |d: DateTime| match errs(QueryBug::MonthsBetweenForgetTime) {
        true => 0,
        false => d.micros_of_day(),
    };
    let early = (to.date.day, time(to)) < (from.date.day, time(from));
    count(to) - count(from) - i64::from(early)
}
