//! Doubles in a given number of characters, as they are stored into CHAR and VARCHAR.

use super::format_double;
use alloc::{
    format,
    string::{String, ToString},
};

/// Farther than this from the digits, the point is written as an exponent even where it has room.
const POINT_MAX: i32 = 15;

/// The digits of a number, without zeros at the end, and the place of the point behind the first.
struct Digits {
    text: String,
    point: i32,
}

impl Digits {
    /// The digits that name the number, rounded to so many.
    fn of(value: f64, most: usize) -> Self {
        let all = Self::read(&format!("{value:e}"));
        if all.text.len() <= most {
            return all;
        }
        Self::read(&format!("{value:.0$e}", most.max(1) - 1))
    }

    /// Reads `d.ddde-x`.
    fn read(scientific: &str) -> Self {
        let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
        let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
        let text = digits.trim_end_matches('0').to_string();
        Self { text, point: exponent.parse().unwrap_or(0) + 1 }
    }

    fn count(&self) -> i32 {
        self.text.len() as i32
    }

    /// The characters of the number without an exponent.
    fn plain_width(&self) -> i32 {
        match self.point {
            ..=0 => 2 - self.point + self.count(),
            point if point >= self.count() => point,
            _ => self.count() + 1,
        }
    }

    fn written(&self) -> String {
        let digits = &self.text;
        let zeros = |count: i32| "0".repeat(usize::try_from(count).unwrap_or(0));
        if self.point <= 0 {
            return format!("0.{}{digits}", zeros(-self.point));
        }
        match digits.split_at_checked(usize::try_from(self.point).unwrap_or(0)) {
            Some((whole, "")) => whole.to_string(),
            Some((whole, fraction)) => format!("{whole}.{fraction}"),
            None => format!("{digits}{}", zeros(self.point - self.count())),
        }
    }

    /// The number without an exponent, in so many characters, or `None` when it is better written
    /// with one.
    fn plain(&self, value: f64, width: i32) -> Option<String> {
        let fits = self.plain_width() <= width;
        let loses_no_more = match self.point {
            1.. => self.point <= width,
            -1..=0 => true,
            // In four characters only an exponent leaves a digit.
            -2 => self.count() > 1 && width != 4,
            _ => false,
        };
        let near = (-POINT_MAX + 1..=POINT_MAX).contains(&self.point) || self.count() > self.point;
        if fits {
            return near.then(|| self.written());
        }
        if !loses_no_more {
            return None;
        }
        let decimals = if self.point > 0 { width - self.point - 1 } else { width - 2 };
        let mut text = format!("{value:.0$}", usize::try_from(decimals).unwrap_or(0));
        if text.contains('.') {
            text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
        }
        (text.len() <= usize::try_from(width).unwrap_or(0)).then_some(text)
    }

    /// Characters behind the digits: `e-12`.
    fn exponent_width(&self) -> i32 {
        let digits = match self.point {
            101.. | ..=-99 => 3,
            11.. | ..=-9 => 2,
            _ => 1,
        };
        1 + digits + i32::from(self.point <= 0)
    }
}

/// A double in at most so many characters: digits behind the point are rounded off, and a number that is
/// too long gets an exponent. The flag is false where no digit but the first had room.
pub fn double_in_width(value: f64, width: usize) -> (String, bool) {
    let shortest = format_double(value);
    if !value.is_finite() || value == 0.0 || width == 0 {
        let fits = shortest.len() <= width;
        return (super::first_chars(&shortest, width).to_string(), fits);
    }
    let sign = if value < 0.0 { "-" } else { "" };
    let size = value.abs();
    let room = i32::try_from(width - sign.len()).unwrap_or(i32::MAX);
    let digits = Digits::of(size, usize::try_from(room).unwrap_or(1));
    if let Some(text) = digits.plain(size, room) {
        // A number that is rounded to nothing has no sign.
        let sign = if text == "0" { "" } else { sign };
        return (format!("{sign}{text}"), true);
    }
    let left = room - digits.exponent_width() - i32::from(digits.count() > 1);
    let digits = Digits::of(size, usize::try_from(left.max(1)).unwrap_or(1));
    let (first, others) = digits.text.split_at(1);
    let point = if others.is_empty() { "" } else { "." };
    let text = format!("{sign}{first}{point}{others}e{}", digits.point - 1);
    let fits = left > 0 && text.len() <= width;
    (super::first_chars(&text, width).to_string(), fits)
}
