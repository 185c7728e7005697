//! Reading days and times from text and numbers, in all the forms that MySQL takes.

use super::{DAY_MICROS, Date, DateTime, TIME_MICROS_MAX, Time};
use alloc::vec::Vec;

/// What a text or a number was read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parsed<T> {
    /// The value.
    pub value: T,
    /// Whether all of the text was used. Otherwise other text follows.
    pub complete: bool,
    /// Whether the value was cut to the range of its type.
    pub clipped: bool,
}

/// Reads digits and the punctuation between them.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Self {
        Self { bytes: text.trim_matches(|c: char| c.is_ascii_whitespace()).as_bytes(), at: 0 }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn done(&self) -> bool {
        self.at >= self.bytes.len()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn digit_run(&self) -> usize {
        self.bytes.iter().skip(self.at).take_while(|b| b.is_ascii_digit()).count()
    }

    /// A number up to the next sign, with any zeros before it, and its length; `None` when there is
    /// none, or it is larger than any part of a moment.
    fn whole_number(&mut self) -> Option<(u32, usize)> {
        let length = self.digit_run();
        let digits = self.bytes.get(self.at..self.at + length)?;
        let zeros = digits.iter().take_while(|b| **b == b'0').count().min(length.checked_sub(1)?);
        self.at += zeros;
        let value = self.number(7).filter(|v| *v <= PART_MAX)?;
        (self.digit_run() == 0).then_some((value, length))
    }

    /// A number of at most `most` digits.
    fn number(&mut self, most: usize) -> Option<u32> {
        let length = self.digit_run().min(most);
        if length == 0 {
            return None;
        }
        let digits = self.bytes.get(self.at..self.at + length)?;
        self.at += length;
        digits
            .iter()
            .try_fold(0_u32, |sum, b| sum.checked_mul(10)?.checked_add(u32::from(b - b'0')))
    }

    /// The digits after a point as microseconds, rounded, and how many count. Moves on.
    fn fraction(&mut self) -> (u32, u8) {
        if self.peek() != Some(b'.') {
            return (0, 0);
        }
        self.at += 1;
        let length = self.digit_run();
        let digits = self.bytes.get(self.at..self.at + length).unwrap_or(&[]);
        self.at += length;
        let mut micros = 0;
        for place in 0..6 {
            micros = micros * 10 + digits.get(place).map_or(0, |b| u32::from(b - b'0'));
        }
        let up = digits.get(6).is_some_and(|b| *b >= b'5');
        (micros + u32::from(up), length.min(6) as u8)
    }

    /// One or more punctuation characters between two fields.
    fn separators(&mut self) -> bool {
        let start = self.at;
        while self.peek().is_some_and(|b| b.is_ascii_punctuation()) {
            self.at += 1;
        }
        self.at > start
    }
}

/// Larger numbers are no part of a moment.
const PART_MAX: u32 = 999_999;

/// `69` is 2069, `70` is 1970; of one digit or of three it is the year itself.
fn full_year(year: u32, digits: usize) -> u32 {
    match (digits, year) {
        (2, 0..=69) => year + 2000,
        (2, _) => year + 1900,
        _ => year,
    }
}

/// The parts of a text that has the form of a moment, whether there is such a moment or not.
struct Fields {
    parts: [u32; 6],
    year_digits: usize,
    micros: u32,
    fsp: u8,
    /// Whether the day and the time are told apart, or there is nothing but digits.
    has_time: bool,
}

impl Fields {
    /// The moment, if there is one.
    fn moment(&self) -> Option<DateTime> {
        let mut parts = self.parts;
        // A short year in a date of nothing but zeros is the year 0.
        if parts.iter().any(|part| *part != 0) {
            parts[0] = full_year(parts[0], self.year_digits);
        }
        build(parts, self.micros, self.fsp)
    }
}

fn build(fields: [u32; 6], micros: u32, fsp: u8) -> Option<DateTime> {
    let [year, month, day, hour, minute, second] = fields;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let small = |value: u32| u8::try_from(value).ok();
    let date = Date::new(u16::try_from(year).ok()?, small(month)?, small(day)?)?;
    let (hour, minute, second) = (small(hour)?, small(minute)?, small(second)?);
    let value = DateTime { date, hour, minute, second, micros: 0, fsp };
    carry(value, micros)
}

/// Adds a rounded fraction, which may be a whole second.
pub(crate) fn carry(value: DateTime, micros: u32) -> Option<DateTime> {
    let total = value.micros_of_day() + i64::from(micros);
    if total < DAY_MICROS {
        return DateTime::at(value.date, total, value.fsp);
    }
    DateTime::from_days_and_micros(value.date.days(), total, value.fsp)
}

/// Reads `2024-01-31 23:59:59.5` and its kin: any punctuation, short years, no punctuation at all,
/// `T` before the time, an offset from UTC behind it.
pub fn parse_datetime(text: &str) -> Option<Parsed<DateTime>> {
    let mut reader = Reader::new(text);
    let fields = fields(&mut reader)?;
    finish(&mut reader, &fields)
}

fn finish(reader: &mut Reader<'_>, fields: &Fields) -> Option<Parsed<DateTime>> {
    let value = offset(reader, fields.moment()?)?;
    Some(Parsed { value, complete: reader.done(), clipped: false })
}

/// The parts of what has the form of a moment.
fn fields(reader: &mut Reader<'_>) -> Option<Fields> {
    let digits = reader.digit_run();
    if digits == 0 {
        return None;
    }
    let run = reader.bytes.iter().take_while(|b| b.is_ascii_digit() || **b == b'T').count();
    let after = reader.bytes.get(run).copied();
    if after.is_none() || after == Some(b'.') { compact(reader, digits) } else { delimited(reader) }
}

/// `20240131235959`, `240131`, …: fields of two digits, and of four for the year when the run is
/// 4, 8 or at least 14 digits long.
fn compact(reader: &mut Reader<'_>, run: usize) -> Option<Fields> {
    let year_digits = if run == 4 || run == 8 || run >= 14 { 4 } else { 2 };
    let mut parts = [0_u32; 6];
    let mut found = 1;
    parts[0] = reader.number(year_digits)?;
    for part in parts.iter_mut().skip(1) {
        // `T` leads to the time; a point may stand between any two parts.
        let lead = reader.peek() == Some(b'.') || (reader.peek() == Some(b'T') && found == 3);
        if lead && reader.bytes.get(reader.at + 1).is_some_and(u8::is_ascii_digit) {
            reader.at += 1;
        }
        let Some(value) = reader.number(2) else { break };
        *part = value;
        found += 1;
    }
    if found < 3 {
        return None;
    }
    let (micros, fsp) = if found == 6 { reader.fraction() } else { (0, 0) };
    Some(Fields { parts, year_digits, micros, fsp, has_time: true })
}

fn delimited(reader: &mut Reader<'_>) -> Option<Fields> {
    let mut parts = [0_u32; 6];
    let (year, year_digits) = reader.whole_number()?;
    parts[0] = year;
    let mut found = 1;
    let mut has_time = false;
    for (index, part) in parts.iter_mut().enumerate().skip(1) {
        let start = reader.at;
        let led = if index == 3 {
            let mark = matches!(reader.peek(), Some(b'T' | b' '));
            while matches!(reader.peek(), Some(b'T' | b' ')) {
                reader.at += 1;
            }
            has_time |= mark;
            mark || reader.separators()
        } else {
            reader.separators()
        };
        if !led || reader.digit_run() == 0 {
            reader.at = start;
            break;
        }
        (*part, _) = reader.whole_number()?;
        found += 1;
    }
    if found < 3 {
        return None;
    }
    let (micros, fsp) = if found == 6 { reader.fraction() } else { (0, 0) };
    Some(Fields { parts, year_digits, micros, fsp, has_time })
}

/// `+05:30` behind the time: the moment in UTC.
fn offset(reader: &mut Reader<'_>, value: DateTime) -> Option<DateTime> {
    let start = reader.at;
    let negative = match reader.peek() {
        Some(b'+') => false,
        Some(b'-') => true,
        _ => return Some(value),
    };
    reader.at += 1;
    let hours = reader.number(2);
    let minutes = if reader.take(b':') { reader.number(2) } else { None };
    let (Some(hours @ 0..=14), Some(minutes @ 0..=59), true) = (hours, minutes, reader.done())
    else {
        reader.at = start;
        return Some(value);
    };
    let span = (i64::from(hours) * 60 + i64::from(minutes)) * 60 * super::SECOND_MICROS;
    let shift = if negative { span } else { -span };
    DateTime::from_days_and_micros(value.date.days(), value.micros_of_day() + shift, value.fsp)
}

/// Reads `-838:59:59.5`, `1 10:00`, `101112` and whole moments, of which the time is taken.
pub fn parse_time(text: &str) -> Option<Parsed<Time>> {
    let mut reader = Reader::new(text);
    let negative = reader.take(b'-');
    if reader.digit_run() == 0 && reader.peek() != Some(b'.') {
        return None;
    }
    if !negative && reader.bytes.len() >= 12 {
        // A text this long that has the form of a moment is one, or nothing.
        let mut whole = Reader::new(text);
        if let Some(fields) = fields(&mut whole)
            && fields.has_time
        {
            let moment = finish(&mut whole, &fields)?;
            let value = moment.value.time();
            return Some(Parsed { value, complete: moment.complete, clipped: false });
        }
    }
    let mut fields = Vec::new();
    let days = day_part(&mut reader);
    while let Some(value) = reader.number(10) {
        fields.push(i64::from(value));
        if fields.len() == 3 || !colon_digit(&mut reader) {
            break;
        }
    }
    let (hours, minutes, seconds) = match (days, fields.as_slice()) {
        (_, [h, m, s]) => (*h, *m, *s),
        (_, [h, m]) => (*h, *m, 0),
        (Some(_), [h]) => (*h, 0, 0),
        (None, [n]) => (n / 10_000, n / 100 % 100, n % 100),
        (Some(_), _) => return None,
        _ => (0, 0, 0),
    };
    let (micros, fsp) = reader.fraction();
    let hours = days.unwrap_or(0) * 24 + hours;
    span(negative, [hours, minutes, seconds], i64::from(micros), fsp, reader.done())
}

/// `1 ` before the hours.
fn day_part(reader: &mut Reader<'_>) -> Option<i64> {
    let start = reader.at;
    let days = reader.number(9).map(i64::from);
    let spaces = reader.take(b' ');
    while spaces && reader.take(b' ') {}
    if spaces && reader.digit_run() > 0 {
        return days;
    }
    reader.at = start;
    None
}

fn colon_digit(reader: &mut Reader<'_>) -> bool {
    let found = reader.peek() == Some(b':')
        && reader.bytes.get(reader.at + 1).is_some_and(u8::is_ascii_digit);
    reader.at += usize::from(found);
    found
}

fn span(
    negative: bool,
    [hours, minutes, seconds]: [i64; 3],
    micros: i64,
    fsp: u8,
    complete: bool,
) -> Option<Parsed<Time>> {
    if minutes > 59 || seconds > 59 {
        return None;
    }
    let seconds = hours.checked_mul(3_600)?.checked_add(minutes * 60 + seconds)?;
    let total = seconds.saturating_mul(super::SECOND_MICROS).saturating_add(micros);
    let clipped = total > TIME_MICROS_MAX;
    let value = Time::from_micros(if negative { -total } else { total }, fsp);
    Some(Parsed { value, complete, clipped })
}

/// Reads `20240131`, `240131`, `20240131235959`, `240131235959`. Zero is the zero moment.
pub fn datetime_from_number(number: i64) -> Option<DateTime> {
    let full = match number {
        0 => return Some(DateTime::ZERO),
        101..=691_231 => (number + 20_000_000) * 1_000_000,
        700_101..=991_231 => (number + 19_000_000) * 1_000_000,
        10_000_101..=99_991_231 => number * 1_000_000,
        101_000_000..=691_231_235_959 => number + 20_000_000_000_000,
        700_101_000_000..=991_231_235_959 => number + 19_000_000_000_000,
        10_000_101_000_000..=99_991_231_235_959 => number,
        _ => return None,
    };
    let part = |unit: i64, size: i64| u32::try_from(full / unit % size).unwrap_or(u32::MAX);
    let fields = [
        part(10_000_000_000, 10_000),
        part(100_000_000, 100),
        part(1_000_000, 100),
        part(10_000, 100),
        part(100, 100),
        part(1, 100),
    ];
    build(fields, 0, 0)
}

/// Reads `hhmmss`; longer numbers are moments.
pub fn time_from_number(number: i64) -> Option<Parsed<Time>> {
    if number >= 10_000_000_000 {
        let value = datetime_from_number(number)?.time();
        return Some(Parsed { value, complete: true, clipped: false });
    }
    let size = i64::try_from(number.unsigned_abs()).ok()?;
    let negative = number < 0;
    if size > 8_385_959 {
        let limit = if negative { -TIME_MICROS_MAX } else { TIME_MICROS_MAX };
        return Some(Parsed { value: Time::from_micros(limit, 0), complete: true, clipped: true });
    }
    span(negative, [size / 10_000, size / 100 % 100, size % 100], 0, 0, true)
}
