//! Numbers as text and text as numbers, the way MySQL writes and reads them.

#[cfg(test)]
mod tests;
mod width;

pub use width::double_in_width;

use alloc::{
    format,
    string::{String, ToString},
};

/// A double in the fewest digits that name it.
pub fn format_double(value: f64) -> String {
    if !value.is_finite() {
        return non_finite(value);
    }
    layout(&format!("{value:e}"))
}

/// A single-precision number in six significant digits, as MySQL shows FLOAT columns.
pub fn format_float(value: f32) -> String {
    if !value.is_finite() {
        return non_finite(f64::from(value));
    }
    layout(&format!("{:.5e}", f64::from(value)))
}

/// No computation gives these; programs from outside can hold them.
fn non_finite(value: f64) -> String {
    String::from(if value.is_nan() {
        "nan"
    } else if value > 0.0 {
        "inf"
    } else {
        "-inf"
    })
}

/// Rewrites `-d.ddde-x`: plain when the point falls near the digits, else with an exponent.
fn layout(scientific: &str) -> String {
    let (sign, rest) = match scientific.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", scientific),
    };
    let (mantissa, exponent) = rest.split_once('e').unwrap_or((rest, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let mut digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let kept = digits.trim_end_matches('0').len();
    digits.truncate(kept.max(1));
    if digits == "0" {
        return String::from(if sign.is_empty() { "0" } else { "-0" });
    }
    let point = exponent + 1;
    let length = digits.len() as i32;
    let body = if !(-14..=15).contains(&point) {
        let (first, others) = digits.split_at(1);
        let dot = if others.is_empty() { "" } else { "." };
        format!("{first}{dot}{others}e{exponent}")
    } else if point <= 0 {
        format!("0.{}{digits}", "0".repeat(point.unsigned_abs() as usize))
    } else if point >= length {
        format!("{digits}{}", "0".repeat((point - length) as usize))
    } else {
        let (whole, fraction) = digits.split_at(point as usize);
        format!("{whole}.{fraction}")
    };
    format!("{sign}{body}")
}

/// How much of a text a number took up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// Everything but spaces.
    Nothing,
    /// Other text follows.
    Garbage,
    /// There is no number at all.
    NoNumber,
    /// The number is beyond the range of its type.
    TooLarge,
}

/// A double with this many digits after the point: behind the fewest that name it, they are zeros.
pub fn format_double_fixed(value: f64, decimals: u8) -> String {
    if !value.is_finite() {
        return non_finite(value);
    }
    let decimals = usize::from(decimals);
    let shortest = format!("{value}");
    let behind = shortest.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    if behind > decimals {
        return format!("{value:.decimals$}");
    }
    let point = if behind == 0 && decimals > 0 { "." } else { "" };
    format!("{shortest}{point}{}", "0".repeat(decimals - behind))
}

/// The number that a text begins with (0 when none), and what is left over. A number beyond the range
/// of doubles is the largest one, and the text counts as one with something left over.
pub fn double_prefix(bytes: &[u8]) -> (f64, Rest) {
    let start = bytes.iter().position(|b| !is_space(*b)).unwrap_or(bytes.len());
    let bytes = bytes.get(start..).unwrap_or(&[]);
    let length = number_length(bytes);
    if length == 0 {
        return (0.0, Rest::NoNumber);
    }
    let number = bytes.get(..length).and_then(|b| core::str::from_utf8(b).ok()).unwrap_or("0");
    let value: f64 = number.parse().unwrap_or(0.0);
    let blank = bytes.get(length..).is_none_or(|rest| rest.iter().all(|b| is_space(*b)));
    let rest = match (value.is_finite(), blank) {
        (false, _) => Rest::TooLarge,
        (true, true) => Rest::Nothing,
        (true, false) => Rest::Garbage,
    };
    (value.clamp(-f64::MAX, f64::MAX), rest)
}

/// Whether MySQL takes the byte for white space.
pub fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r')
}

/// Length of `[sign] digits [. digits] [e [sign] digits]` at the start; 0 when there is none.
fn number_length(bytes: &[u8]) -> usize {
    let digits = |from: usize| bytes.iter().skip(from).take_while(|b| b.is_ascii_digit()).count();
    let sign = |at: usize| usize::from(matches!(bytes.get(at), Some(b'+' | b'-')));
    let mut at = sign(0);
    let whole = digits(at);
    at += whole;
    let mut fraction = 0;
    if bytes.get(at) == Some(&b'.') {
        fraction = digits(at + 1);
        if whole + fraction > 0 {
            at += 1 + fraction;
        }
    }
    if whole + fraction == 0 {
        return 0;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let after = at + 1 + sign(at + 1);
        let exponent = digits(after);
        if exponent > 0 {
            return after + exponent;
        }
    }
    at
}

/// The whole number that a text begins with, cut to the range of 64 bits either way, and what is
/// left over. No fraction, no exponent.
pub fn integer_prefix(bytes: &[u8]) -> (i128, Rest) {
    let start = bytes.iter().position(|b| !is_space(*b)).unwrap_or(bytes.len());
    let bytes = bytes.get(start..).unwrap_or(&[]);
    let negative = bytes.first() == Some(&b'-');
    let sign = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
    let digits = bytes.get(sign..).unwrap_or(&[]);
    let length = digits.iter().take_while(|b| b.is_ascii_digit()).count();
    if length == 0 {
        return (0, Rest::NoNumber);
    }
    let value = digits
        .iter()
        .take(length)
        .fold(0_i128, |sum, b| sum.saturating_mul(10).saturating_add(i128::from(b - b'0')));
    let value = if negative { -value } else { value };
    let blank = digits.get(length..).is_none_or(|rest| rest.iter().all(|b| is_space(*b)));
    (value, if blank { Rest::Nothing } else { Rest::Garbage })
}

/// Upper-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    use core::fmt::Write;
    let mut out = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = write!(out, "{byte:02X}");
    }
    out
}

/// At most `chars` characters from the front.
pub fn first_chars(text: &str, chars: usize) -> &str {
    match text.char_indices().nth(chars) {
        Some((end, _)) => text.get(..end).unwrap_or(text),
        None => text,
    }
}

/// The text of a value for a message: quotes nothing, replaces what is no UTF-8.
pub fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).to_string()
}
