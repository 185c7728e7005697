//! Days, times and moments, with MySQL's ranges, texts and arithmetic.

mod interval;
mod parse;
#[cfg(test)]
mod tests;

pub use interval::{Interval, add_interval, difference};
pub(crate) use parse::carry;
pub use parse::{Parsed, datetime_from_number, parse_datetime, parse_time, time_from_number};

use core::fmt;
use serde::{Deserialize, Serialize};

/// Days from day 0 of MySQL's `TO_DAYS` to 1970-01-01.
pub const UNIX_EPOCH_DAYS: i64 = 719_528;
/// Microseconds of a second.
pub const SECOND_MICROS: i64 = 1_000_000;
/// Microseconds of a day.
pub const DAY_MICROS: i64 = 86_400 * SECOND_MICROS;
/// The longest TIME, 838:59:59, in microseconds.
pub const TIME_MICROS_MAX: i64 = (838 * 3_600 + 59 * 60 + 59) * SECOND_MICROS;

/// A day. Zero months and days stand for MySQL's incomplete dates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "(u16, u8, u8)", into = "(u16, u8, u8)")]
pub struct Date {
    /// 0 to 9999.
    pub year: u16,
    /// 0 to 12.
    pub month: u8,
    /// 0 to 31.
    pub day: u8,
}

/// A time of day or a span of up to 838:59:59.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "(i64, u8)", into = "(i64, u8)")]
pub struct Time {
    /// Below zero.
    pub negative: bool,
    /// 0 to 838.
    pub hours: u16,
    /// 0 to 59.
    pub minutes: u8,
    /// 0 to 59.
    pub seconds: u8,
    /// 0 to 999999.
    pub micros: u32,
    /// Digits of the fraction that are shown, 0 to 6.
    pub fsp: u8,
}

/// A day and a time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "(u64, u8)", into = "(u64, u8)")]
pub struct DateTime {
    /// The day.
    pub date: Date,
    /// 0 to 23.
    pub hour: u8,
    /// 0 to 59.
    pub minute: u8,
    /// 0 to 59.
    pub second: u8,
    /// 0 to 999999.
    pub micros: u32,
    /// Digits of the fraction that are shown, 0 to 6.
    pub fsp: u8,
}

/// Whether the year has a 29th of February. MySQL's year 0 has none.
pub fn is_leap(year: u16) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400) && year != 0)
}

/// Days of a month; 31 for month 0.
pub fn days_in_month(year: u16, month: u8) -> u8 {
    match month {
        2 => 28 + u8::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

impl Date {
    /// `0000-00-00`.
    pub const ZERO: Self = Self { year: 0, month: 0, day: 0 };

    /// The day, if there is one of these numbers; month and day may be zero.
    pub fn new(year: u16, month: u8, day: u8) -> Option<Self> {
        let ok = year <= 9999 && month <= 12 && day <= days_in_month(year, month);
        ok.then_some(Self { year, month, day })
    }

    /// Whether it is `0000-00-00`.
    pub fn is_zero(self) -> bool {
        self == Self::ZERO
    }

    /// Whether month or day is zero.
    pub fn is_incomplete(self) -> bool {
        self.month == 0 || self.day == 0
    }

    /// MySQL's `TO_DAYS`.
    pub fn days(self) -> i64 {
        if self.is_zero() {
            return 0;
        }
        let (year, month) = (i64::from(self.year), i64::from(self.month));
        // Days before the year, in a calendar whose year 0 is no leap year.
        let past = (year - 1).max(0);
        let leaps = past / 4 - past / 100 + past / 400;
        let before_year = 365 * year + if year > 0 { leaps } else { 0 };
        let before_month: i64 =
            (1..month).map(|m| i64::from(days_in_month(self.year, m as u8))).sum();
        before_year + before_month + i64::from(self.day)
    }

    /// The reverse of [`Self::days`], from 0000-01-01 to 9999-12-31.
    pub fn from_days(days: i64) -> Option<Self> {
        if !(1..=3_652_424).contains(&days) {
            return None;
        }
        let mut year = u16::try_from((days * 400 / 146_097).min(9999)).ok()?;
        let first = |year: u16| Self { year, month: 1, day: 1 }.days();
        while year > 0 && first(year) > days {
            year -= 1;
        }
        while year < 9999 && first(year + 1) <= days {
            year += 1;
        }
        let mut rest = days - first(year);
        let mut month = 1;
        while month < 12 && rest >= i64::from(days_in_month(year, month)) {
            rest -= i64::from(days_in_month(year, month));
            month += 1;
        }
        Some(Self { year, month, day: u8::try_from(rest + 1).ok()? })
    }

    /// `20240131`.
    pub fn to_number(self) -> i64 {
        i64::from(self.year) * 10_000 + i64::from(self.month) * 100 + i64::from(self.day)
    }

    /// 0 for Monday to 6 for Sunday.
    pub fn weekday(self) -> u8 {
        ((self.days() + 5).rem_euclid(7)) as u8
    }

    /// 1 for the first of January.
    pub fn day_of_year(self) -> i64 {
        self.days() - Self { month: 1, day: 1, ..self }.days() + 1
    }

    /// The start of the day.
    pub fn at_midnight(self) -> DateTime {
        DateTime { date: self, hour: 0, minute: 0, second: 0, micros: 0, fsp: 0 }
    }

    pub(crate) fn packed(self) -> u32 {
        (u32::from(self.year) << 9) | (u32::from(self.month) << 5) | u32::from(self.day)
    }

    pub(crate) fn from_packed(packed: u32) -> Option<Self> {
        let year = u16::try_from(packed >> 9).ok()?;
        Self::new(year, (packed >> 5 & 15) as u8, (packed & 31) as u8)
    }
}

impl Time {
    /// The span of this many microseconds, cut to the range of TIME.
    pub fn from_micros(total: i64, fsp: u8) -> Self {
        let fsp = fsp.min(6);
        let rest = total.clamp(-TIME_MICROS_MAX, TIME_MICROS_MAX).unsigned_abs();
        let seconds = rest / 1_000_000;
        Self {
            negative: total < 0,
            hours: (seconds / 3_600) as u16,
            minutes: (seconds / 60 % 60) as u8,
            seconds: (seconds % 60) as u8,
            micros: (rest % 1_000_000) as u32,
            fsp,
        }
    }

    /// Its length in microseconds, with its sign.
    pub fn total_micros(self) -> i64 {
        let seconds =
            i64::from(self.hours) * 3_600 + i64::from(self.minutes) * 60 + i64::from(self.seconds);
        let total = seconds * SECOND_MICROS + i64::from(self.micros);
        if self.negative { -total } else { total }
    }

    /// Rounded to this many digits of the fraction.
    #[must_use]
    pub fn round(self, fsp: u8) -> Self {
        let total = self.total_micros();
        let rounded = round_micros(total.abs(), fsp);
        Self::from_micros(if total < 0 { -rounded } else { rounded }, fsp)
    }

    /// `hhmmss`, without the fraction.
    pub fn to_number(self) -> i64 {
        let number = i64::from(self.hours) * 10_000
            + i64::from(self.minutes) * 100
            + i64::from(self.seconds);
        if self.negative { -number } else { number }
    }
}

/// Rounds half up to this many digits of a second's fraction.
pub(crate) fn round_micros(micros: i64, fsp: u8) -> i64 {
    let unit = 10_i64.pow(6 - u32::from(fsp.min(6)));
    micros.saturating_add(unit / 2).div_euclid(unit).saturating_mul(unit)
}

impl DateTime {
    /// `0000-00-00 00:00:00`.
    pub const ZERO: Self =
        Self { date: Date::ZERO, hour: 0, minute: 0, second: 0, micros: 0, fsp: 0 };

    /// Microseconds since the start of the day.
    pub fn micros_of_day(self) -> i64 {
        let seconds =
            i64::from(self.hour) * 3_600 + i64::from(self.minute) * 60 + i64::from(self.second);
        seconds * SECOND_MICROS + i64::from(self.micros)
    }

    /// Its time of day.
    pub fn time(self) -> Time {
        Time::from_micros(self.micros_of_day(), self.fsp)
    }

    /// The moment this many microseconds after the start of day number `days`.
    pub fn from_days_and_micros(days: i64, micros: i64, fsp: u8) -> Option<Self> {
        let date = Date::from_days(days.checked_add(micros.div_euclid(DAY_MICROS))?)?;
        Self::at(date, micros.rem_euclid(DAY_MICROS), fsp)
    }

    pub(crate) fn at(date: Date, micros: i64, fsp: u8) -> Option<Self> {
        if !(0..DAY_MICROS).contains(&micros) {
            return None;
        }
        let seconds = micros / SECOND_MICROS;
        Some(Self {
            date,
            hour: (seconds / 3_600) as u8,
            minute: (seconds / 60 % 60) as u8,
            second: (seconds % 60) as u8,
            micros: (micros % SECOND_MICROS) as u32,
            fsp: fsp.min(6),
        })
    }

    /// The moment this many microseconds after 1970-01-01 00:00:00.
    pub fn from_unix_micros(micros: i64, fsp: u8) -> Option<Self> {
        let day = micros.div_euclid(DAY_MICROS);
        Self::from_days_and_micros(UNIX_EPOCH_DAYS + day, micros.rem_euclid(DAY_MICROS), fsp)
    }

    /// Microseconds after 1970-01-01 00:00:00; `None` for incomplete dates.
    pub fn to_unix_micros(self) -> Option<i64> {
        if self.date.is_incomplete() {
            return None;
        }
        Some((self.date.days() - UNIX_EPOCH_DAYS) * DAY_MICROS + self.micros_of_day())
    }

    /// Rounded to this many digits of the fraction; `None` past the year 9999.
    pub fn round(self, fsp: u8) -> Option<Self> {
        let micros = round_micros(self.micros_of_day(), fsp);
        if micros < DAY_MICROS {
            return Self::at(self.date, micros, fsp);
        }
        if self.date.is_incomplete() {
            return None;
        }
        Self::from_days_and_micros(self.date.days(), micros, fsp)
    }

    /// Whether a TIMESTAMP holds it: 1970-01-01 00:00:01 to 2038-01-19 03:14:07.
    pub fn fits_timestamp(self) -> bool {
        self.to_unix_micros()
            .is_some_and(|m| (SECOND_MICROS..(1_i64 << 31) * SECOND_MICROS).contains(&m))
    }

    /// `20240131235959`, without the fraction.
    pub fn to_number(self) -> i64 {
        self.date.to_number() * 1_000_000
            + i64::from(self.hour) * 10_000
            + i64::from(self.minute) * 100
            + i64::from(self.second)
    }

    /// One number that orders as the moments do.
    pub fn packed(self) -> u64 {
        (u64::from(self.date.packed()) << 37) | self.micros_of_day() as u64
    }

    pub(crate) fn from_packed(packed: u64, fsp: u8) -> Option<Self> {
        let date = Date::from_packed(u32::try_from(packed >> 37).ok()?)?;
        let micros = i64::try_from(packed & ((1 << 37) - 1)).ok()?;
        Self::at(date, micros, fsp)
    }
}

impl From<Date> for (u16, u8, u8) {
    fn from(date: Date) -> Self {
        (date.year, date.month, date.day)
    }
}

impl TryFrom<(u16, u8, u8)> for Date {
    type Error = &'static str;

    fn try_from((year, month, day): (u16, u8, u8)) -> Result<Self, Self::Error> {
        Self::new(year, month, day).ok_or("no such day")
    }
}

impl From<Time> for (i64, u8) {
    fn from(time: Time) -> Self {
        (time.total_micros(), time.fsp)
    }
}

impl TryFrom<(i64, u8)> for Time {
    type Error = &'static str;

    fn try_from((total, fsp): (i64, u8)) -> Result<Self, Self::Error> {
        let ok = total.checked_abs().is_some_and(|t| t <= TIME_MICROS_MAX) && fsp <= 6;
        if ok { Ok(Self::from_micros(total, fsp)) } else { Err("no such time") }
    }
}

impl From<DateTime> for (u64, u8) {
    fn from(value: DateTime) -> Self {
        (value.packed(), value.fsp)
    }
}

impl TryFrom<(u64, u8)> for DateTime {
    type Error = &'static str;

    fn try_from((packed, fsp): (u64, u8)) -> Result<Self, Self::Error> {
        if fsp > 6 {
            return Err("no such precision");
        }
        Self::from_packed(packed, fsp).ok_or("no such moment")
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

/// Writes a point and as many digits of the fraction as are shown.
fn write_fraction(f: &mut fmt::Formatter<'_>, micros: u32, fsp: u8) -> fmt::Result {
    if fsp == 0 {
        return Ok(());
    }
    let fsp = fsp.min(6);
    let shown = micros / 10_u32.pow(6 - u32::from(fsp));
    write!(f, ".{shown:0width$}", width = usize::from(fsp))
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.negative { "-" } else { "" };
        write!(f, "{sign}{:02}:{:02}:{:02}", self.hours, self.minutes, self.seconds)?;
        write_fraction(f, self.micros, self.fsp)
    }
}

impl fmt::Display for DateTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:02}:{:02}:{:02}", self.date, self.hour, self.minute, self.second)?;
        write_fraction(f, self.micros, self.fsp)
    }
}
