//! `STR_TO_DATE`.

use super::calendar;
use crate::{Date, DateTime, EvalContext, SqlError, Time, TypeKind, Value};
use alloc::vec::Vec;

/// The codes of parts of a day, and of parts of a time.
const DAY_CODES: &str = "aMbcDdejmUuVvWwXxYy";
const TIME_CODES: &str = "fHISThiklprs";

/// What a format reads: a day, a time, or both.
pub(crate) fn kind_of(format: &str) -> TypeKind {
    let codes = || format.split('%').skip(1).filter_map(|part| part.chars().next());
    let has = |of: &str| codes().any(|code| of.contains(code));
    let fsp = if has("f") { 6 } else { 0 };
    match (has(DAY_CODES), has(TIME_CODES)) {
        (true, false) => TypeKind::Date,
        (false, true) => TypeKind::Time { fsp },
        _ => TypeKind::DateTime { fsp },
    }
}

/// Week numbers: the first day of a week, and whether the year of the week was read with it.
#[derive(Clone, Copy)]
struct Week {
    number: i64,
    from_monday: bool,
    with_year: bool,
}

/// What has been read so far.
#[derive(Default)]
struct Parts {
    year: u32,
    month: u32,
    day: u32,
    hour: u32,
    minute: u32,
    second: u32,
    micros: u32,
    /// Whether the hour counts to twelve, and whether it is one after noon.
    twelve: bool,
    afternoon: bool,
    day_of_year: Option<i64>,
    /// 1 for Monday to 7 for Sunday.
    weekday: Option<i64>,
    week: Option<Week>,
    /// The year of a week, and whether its weeks begin with Monday.
    week_year: Option<(u32, bool)>,
}

struct Reader<'a> {
    text: &'a [char],
}

impl Reader<'_> {
    fn skip_while(&mut self, test: impl Fn(char) -> bool) {
        let count = self.text.iter().take_while(|c| test(**c)).count();
        self.text = self.text.get(count..).unwrap_or(&[]);
    }

    /// A number of at most so many digits, and how many it has.
    fn number(&mut self, most: usize) -> Option<(u32, usize)> {
        let digits: Vec<u32> = self.text.iter().take(most).map_while(|c| c.to_digit(10)).collect();
        self.text = self.text.get(digits.len()..)?;
        let value = digits.iter().fold(0, |sum, digit| sum * 10 + digit);
        (!digits.is_empty()).then_some((value, digits.len()))
    }

    /// The letters that follow.
    fn word(&mut self) -> alloc::string::String {
        let word = self.text.iter().take_while(|c| c.is_alphabetic()).collect();
        self.skip_while(char::is_alphabetic);
        word
    }
}

impl Parts {
    /// Reads what one code stands for; `None` if it is not there.
    fn read(&mut self, code: char, reader: &mut Reader<'_>) -> Option<()> {
        let mut two = || reader.number(2).map(|(value, _)| value);
        match code {
            'm' | 'c' => self.month = two()?,
            'd' | 'e' => self.day = two()?,
            'i' => self.minute = two()?,
            's' | 'S' => self.second = two()?,
            'H' | 'k' => self.hour = two()?,
            'h' | 'I' | 'l' => {
                self.hour = two()?;
                self.twelve = true;
            }
            'D' => {
                self.day = two()?;
                // The two letters of `1st`.
                reader.text = reader.text.get(2..)?;
            }
            'f' => {
                let (value, digits) = reader.number(6)?;
                self.micros = value * 10_u32.pow(6_u32.saturating_sub(digits as u32));
            }
            'Y' | 'y' => self.year = short_year(reader.number(if code == 'Y' { 4 } else { 2 })?),
            'p' => self.afternoon = self.half(reader)?,
            'r' | 'T' => {
                let format = if code == 'r' { "%I:%i:%S %p" } else { "%H:%i:%S" };
                self.follow(format, reader)?;
            }
            _ => self.read_day(code, reader)?,
        }
        Some(())
    }

    fn half(&self, reader: &mut Reader<'_>) -> Option<bool> {
        let word = reader.text.get(..2)?;
        reader.text = reader.text.get(2..)?;
        match (self.twelve, word) {
            (true, ['a' | 'A', 'm' | 'M']) => Some(false),
            (true, ['p' | 'P', 'm' | 'M']) => Some(true),
            _ => None,
        }
    }

    fn read_day(&mut self, code: char, reader: &mut Reader<'_>) -> Option<()> {
        match code {
            'M' => self.month = calendar::month_of(&reader.word(), false)?,
            'b' => self.month = calendar::month_of(&reader.word(), true)?,
            'W' => self.weekday = Some(calendar::weekday_of(&reader.word(), false)?),
            'a' => self.weekday = Some(calendar::weekday_of(&reader.word(), true)?),
            'w' => {
                let (number, _) = reader.number(1).filter(|(n, _)| *n < 7)?;
                self.weekday = Some(if number == 0 { 7 } else { number.into() });
            }
            'j' => self.day_of_year = Some(reader.number(3)?.0.into()),
            'U' | 'u' | 'V' | 'v' => {
                let (number, _) = reader.number(2).filter(|(n, _)| *n <= 53)?;
                let from_monday = matches!(code, 'u' | 'v');
                let with_year = matches!(code, 'V' | 'v');
                self.week = Some(Week { number: number.into(), from_monday, with_year });
            }
            'X' | 'x' => self.week_year = Some((short_year(reader.number(4)?), code == 'x')),
            '.' => reader.skip_while(|c| c.is_ascii_punctuation()),
            '@' => reader.skip_while(char::is_alphabetic),
            '#' => reader.skip_while(|c| c.is_ascii_digit()),
            _ => return None,
        }
        Some(())
    }

    /// Reads a text as its format says, up to the end of either.
    fn follow(&mut self, format: &str, reader: &mut Reader<'_>) -> Option<()> {
        let mut format = format.chars();
        while let Some(c) = format.next() {
            reader.skip_while(char::is_whitespace);
            if reader.text.is_empty() {
                break;
            }
            match c {
                '%' => self.read(format.next()?, reader)?,
                c if c.is_whitespace() => {}
                c => {
                    if reader.text.first() != Some(&c) {
                        return None;
                    }
                    reader.text = reader.text.get(1..)?;
                }
            }
        }
        Some(())
    }

    fn hour(&self) -> Option<u32> {
        match self.twelve {
            false => Some(self.hour),
            true if !(1..=12).contains(&self.hour) => None,
            true => Some(self.hour % 12 + if self.afternoon { 12 } else { 0 }),
        }
    }

    fn date(&self) -> Option<Date> {
        let first =
            |year: u32| Some(Date { year: u16::try_from(year).ok()?, month: 1, day: 1 }.days());
        if let Some(number) = self.day_of_year.filter(|n| *n > 0) {
            return Date::from_days(first(self.year)? + number - 1);
        }
        if let (Some(week), Some(weekday)) = (self.week, self.weekday) {
            return self.of_week(week, weekday, first);
        }
        let small = |value: u32| u8::try_from(value).ok();
        Date::new(u16::try_from(self.year).ok()?, small(self.month)?, small(self.day)?)
    }

    fn of_week(
        &self,
        week: Week,
        weekday: i64,
        first: impl Fn(u32) -> Option<i64>,
    ) -> Option<Date> {
        let year = match (week.with_year, self.week_year) {
            (true, Some((year, from_monday))) if from_monday == week.from_monday => year,
            (false, None) => self.year,
            _ => return None,
        };
        let start = first(year)?;
        // 0 is the first day of a week.
        let of_start = (start + 5 + i64::from(!week.from_monday)).rem_euclid(7);
        let late = if week.from_monday { of_start > 3 } else { of_start > 0 };
        let begins = start - of_start + if late { 7 } else { 0 };
        let place = if week.from_monday { weekday - 1 } else { weekday % 7 };
        Date::from_days(begins + (week.number - 1) * 7 + place)
    }

    fn value(&self, kind: TypeKind) -> Option<Value> {
        let hour = self.hour().filter(|h| *h < 24)?;
        if self.minute > 59 || self.second > 59 {
            return None;
        }
        let seconds = i64::from(hour * 3_600 + self.minute * 60 + self.second);
        let micros = seconds * 1_000_000 + i64::from(self.micros);
        if let TypeKind::Time { fsp } = kind {
            return Some(Value::Time(Time::from_micros(micros, fsp)));
        }
        let date = self.date().filter(|date| !date.is_incomplete())?;
        match kind {
            TypeKind::Date => Some(Value::Date(date)),
            _ => DateTime::at(date, micros, kind.fsp()).map(Value::DateTime),
        }
    }
}

fn short_year((year, digits): (u32, usize)) -> u32 {
    match (digits, year) {
        (..=2, ..=69) => year + 2000,
        (..=2, _) => year + 1900,
        _ => year,
    }
}

/// Reads a text as its format says.
pub(super) fn str_to_date(
    text: &Value,
    format: &Value,
    ctx: &mut EvalContext,
) -> Result<Value, SqlError> {
    let (text, format) = (text.to_display(), format.to_display());
    let chars: Vec<char> = text.chars().collect();
    let mut reader = Reader { text: &chars };
    let mut parts = Parts::default();
    let kind = kind_of(&format);
    let read = parts.follow(&format, &mut reader).and_then(|()| parts.value(kind));
    let Some(value) = read else {
        ctx.warn(SqlError::wrong_for_function("datetime", &text, "str_to_date"))?;
        return Ok(Value::Null);
    };
    if reader.text.iter().any(|c| !c.is_whitespace()) {
        let name = kind.base_name();
        ctx.warn(SqlError::truncated_wrong_value(name, &text))?;
    }
    Ok(value)
}
