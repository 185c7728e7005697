//! `DATE_FORMAT`.

use super::calendar::{day_name, month_name, week};
use crate::{Date, DateTime, Time};
use alloc::string::String;
use core::fmt::{self, Write};

/// The moment in a format; `None` where a name is asked of a date that has none.
pub(super) fn format(moment: DateTime, format: &str) -> Option<String> {
    let mut out = String::new();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        // A single % at the end stands for itself.
        let code = chars.next().unwrap_or('%');
        put(moment, code, &mut out).ok()?;
    }
    Some(out)
}

/// A time in a format: what a day would show is zero, and names of days are none.
pub(super) fn format_time(time: Time, format: &str) -> Option<String> {
    let moment = DateTime {
        date: Date::ZERO,
        hour: (time.hours % 24) as u8,
        minute: time.minutes,
        second: time.seconds,
        micros: time.micros,
        fsp: time.fsp,
    };
    let mut out = String::from(if time.negative { "-" } else { "" });
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        match chars.next().unwrap_or('%') {
            'H' => write!(out, "{:02}", time.hours),
            'k' => write!(out, "{}", time.hours),
            'T' => {
                write!(out, "{:02}:{:02}:{:02}", time.hours, time.minutes, time.seconds)
            }
            'D' => Err(fmt::Error),
            code => put(moment, code, &mut out),
        }
        .ok()?;
    }
    Some(out)
}

fn put(moment: DateTime, code: char, out: &mut String) -> fmt::Result {
    match code {
        'H' | 'k' | 'h' | 'I' | 'l' | 'i' | 's' | 'S' | 'f' | 'p' | 'r' | 'T' => {
            put_time(moment, code, out)
        }
        'a' | 'W' | 'w' | 'j' | 'U' | 'u' | 'V' | 'v' | 'X' | 'x' => put_week(moment, code, out),
        _ => put_date(moment, code, out),
    }
}

fn put_date(moment: DateTime, code: char, out: &mut String) -> fmt::Result {
    let date = moment.date;
    match code {
        'Y' => write!(out, "{:04}", date.year),
        'y' => write!(out, "{:02}", date.year % 100),
        'm' => write!(out, "{:02}", date.month),
        'c' => write!(out, "{}", date.month),
        'd' => write!(out, "{:02}", date.day),
        'e' => write!(out, "{}", date.day),
        'D' => write!(out, "{}{}", date.day, ordinal(date.day)),
        'M' => out.write_str(month_name(date.month).ok_or(fmt::Error)?),
        'b' => {
            let name = month_name(date.month).ok_or(fmt::Error)?;
            out.write_str(name.get(..3).unwrap_or(name))
        }
        other => out.write_char(other),
    }
}

fn ordinal(day: u8) -> &'static str {
    match (day, day % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    }
}

fn put_time(moment: DateTime, code: char, out: &mut String) -> fmt::Result {
    let (hour, minute, second) = (moment.hour, moment.minute, moment.second);
    let short = (hour + 11) % 12 + 1;
    let half = if hour < 12 { "AM" } else { "PM" };
    match code {
        'H' => write!(out, "{hour:02}"),
        'k' => write!(out, "{hour}"),
        'h' | 'I' => write!(out, "{short:02}"),
        'l' => write!(out, "{short}"),
        'i' => write!(out, "{minute:02}"),
        's' | 'S' => write!(out, "{second:02}"),
        'f' => write!(out, "{:06}", moment.micros),
        'p' => out.write_str(half),
        'r' => write!(out, "{short:02}:{minute:02}:{second:02} {half}"),
        _ => write!(out, "{hour:02}:{minute:02}:{second:02}"),
    }
}

fn put_week(moment: DateTime, code: char, out: &mut String) -> fmt::Result {
    let date = moment.date;
    if date.is_incomplete() {
        return Err(fmt::Error);
    }
    let name = day_name(date.weekday());
    match code {
        'a' => out.write_str(name.get(..3).unwrap_or(name)),
        'W' => out.write_str(name),
        'w' => write!(out, "{}", (date.weekday() + 1) % 7),
        'j' => write!(out, "{:03}", date.day_of_year()),
        'U' => write!(out, "{:02}", week(date, 0, false).1),
        'u' => write!(out, "{:02}", week(date, 1, false).1),
        'V' => write!(out, "{:02}", week(date, 2, true).1),
        'v' => write!(out, "{:02}", week(date, 3, true).1),
        'X' => write!(out, "{:04}", week(date, 2, true).0),
        _ => write!(out, "{:04}", week(date, 3, true).0),
    }
}
