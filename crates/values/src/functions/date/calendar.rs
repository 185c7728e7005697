//! Names of days and months, numbers of weeks.

use crate::{Date, temporal::is_leap};
use lats_base::planted::{QueryBug, errs};

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

const DAYS: [&str; 7] =
    ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// The name of a month from 1; there is none for 0.
pub(super) fn month_name(month: u8) -> Option<&'static str> {
    MONTHS.get(usize::from(month).checked_sub(1)?).copied()
}

/// Whether a word is a name, or its first three letters; in any case.
fn is_name(word: &str, name: &str, short: bool) -> bool {
    let name = if short { name.get(..3).unwrap_or(name) } else { name };
    name.eq_ignore_ascii_case(word)
}

/// The number of a month, from 1.
pub(super) fn month_of(word: &str, short: bool) -> Option<u32> {
    (1..).zip(MONTHS).find(|(_, name)| is_name(word, name, short)).map(|(number, _)| number)
}

/// The number of a weekday, from 1 for Monday.
pub(super) fn weekday_of(word: &str, short: bool) -> Option<i64> {
    (1..).zip(DAYS).find(|(_, name)| is_name(word, name, short)).map(|(number, _)| number)
}

/// The name of a day of the week; 0 is Monday.
pub(super) fn day_name(weekday: u8) -> &'static str {
    DAYS.get(usize::from(weekday)).copied().unwrap_or("")
}

fn days_in_year(year: i64) -> i64 {
    365 + i64::from(u16::try_from(year).is_ok_and(is_leap))
}

/// The year that a week belongs to and its number, for the modes 0 to 7 of WEEK. With `with_year`
/// the days before the first week belong to the last week of the year before.
pub(super) fn week(date: Date, mode: u32, with_year: bool) -> (i64, i64) {
    let monday_first = mode & 1 != 0;
    let mut week_year = mode & 2 != 0 || with_year;
    // Whether week 1 begins with the year's first Sunday or Monday, not with its first four days.
    let first_weekday = (mode & 4 != 0) == monday_first;
    let mut first = Date { month: 1, day: 1, ..date }.days();
    let mut year = i64::from(date.year);
    let mut weekday = (first + 5 + i64::from(!monday_first)).rem_euclid(7);
    let starts_late = |weekday: i64| if first_weekday { weekday != 0 } else { weekday >= 4 };
    if date.month == 1 && i64::from(date.day) <= 7 - weekday {
        if !week_year && starts_late(weekday) {
            return (year, 0);
        }
        if starts_late(weekday) {
            week_year = true;
            year -= 1;
            let days = days_in_year(year);
            first -= days;
            weekday = (weekday + 53 * 7 - days) % 7;
        }
    }
    let start = if starts_late(weekday) { first + 7 - weekday } else { first - weekday };
    let days = date.days() - start;
    if week_year && days >= 52 * 7 && !errs(QueryBug::WeekOfNextYear) {
        let next = (weekday + days_in_year(year)) % 7;
        if !starts_late(next) {
            return (year + 1, 1);
        }
    }
    (year, days / 7 + 1)
}

/// `MAKEDATE`: day `number` of a year; years below 100 are short ones.
pub(super) fn make_date(year: i128, number: i128) -> Option<Date> {
    let year = match year {
        0..=69 => year + 2000,
        70..=99 => year + 1900,
        _ => year,
    };
    let year = u16::try_from(year).ok().filter(|y| *y <= 9999)?;
    let number = i64::try_from(number).ok().filter(|n| *n > 0)?;
    let first = Date { year, month: 1, day: 1 };
    Date::from_days((first.days() - 1).checked_add(number)?)
}
