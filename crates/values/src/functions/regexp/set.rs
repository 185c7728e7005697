//! Sets of characters, and escapes that stand for a character or a set.

use super::pattern::{LINE_ENDS, Reader, bad_escape, too_large, unimplemented};
use super::{error, illegal_argument};
use crate::SqlError;
use alloc::string::String;

/// Sets within sets.
const DEPTH_MAX: usize = 24;

/// A set, behind its bracket.
pub(super) fn set(reader: &mut Reader<'_>, depth: usize) -> Result<(), SqlError> {
    if depth > DEPTH_MAX {
        return Err(too_large());
    }
    reader.out.push('[');
    if reader.peek() == Some('^') {
        reader.at += 1;
        reader.out.push('^');
    }
    let mut is_first = true;
    loop {
        let Some(c) = reader.next() else { return Err(unclosed()) };
        match c {
            ']' if !is_first => break,
            '[' if reader.peek() == Some(':') => posix(reader)?,
            '[' => set(reader, depth + 1)?,
            '&' if operator(reader, '&') => reader.out.push_str("&&"),
            '-' if !is_first && operator(reader, '-') => reader.out.push_str("--"),
            '\\' => {
                if !class_escape(reader)? {
                    let low = char_escape(reader)?;
                    range(reader, low)?;
                }
            }
            other => range(reader, other)?,
        }
        is_first = false;
    }
    reader.out.push(']');
    Ok(())
}

/// `&&`, or `&` before a set.
fn operator(reader: &mut Reader<'_>, c: char) -> bool {
    match reader.peek() {
        Some(next) if next == c => {
            reader.at += 1;
            true
        }
        Some('[') => reader.peek_at(1) != Some(':') || c == '&',
        _ => false,
    }
}

/// A character, or all from it to another one.
fn range(reader: &mut Reader<'_>, low: char) -> Result<(), SqlError> {
    let is_range =
        reader.peek() == Some('-') && !matches!(reader.peek_at(1), None | Some(']' | '-' | '['));
    reader.literal(low);
    if !is_range {
        return Ok(());
    }
    reader.at += 1;
    let high = match reader.next() {
        Some('\\') => {
            if matches!(
                reader.peek(),
                Some('d' | 'D' | 's' | 'S' | 'w' | 'W' | 'p' | 'P' | 'h' | 'H' | 'v' | 'V')
            ) {
                return Err(reader.rule());
            }
            char_escape(reader)?
        }
        Some(c) => c,
        None => return Err(unclosed()),
    };
    if high < low {
        let text =
            "The regular expression contains an [x-y] character range where x comes after y.";
        return Err(error(3697, text));
    }
    reader.out.push('-');
    reader.literal(high);
    Ok(())
}

/// `[:alpha:]`, behind its bracket.
fn posix(reader: &mut Reader<'_>) -> Result<(), SqlError> {
    let from = reader.at + 1;
    let rest = reader.chars.get(from..).unwrap_or_default();
    let length = rest.windows(2).position(|pair| pair == [':', ']']);
    let Some(length) = length else { return Err(unclosed()) };
    let name: String = rest.iter().take(length).collect();
    let (is_not, name) = match name.strip_prefix('^') {
        Some(name) => (true, name),
        None => (false, name.as_str()),
    };
    let members = match name.to_ascii_lowercase().as_str() {
        "alpha" => r"\p{Alphabetic}",
        "alnum" => r"\p{Alphabetic}\p{Nd}",
        "ascii" => r"\x00-\x7F",
        "blank" => r"\t\p{Zs}",
        "cntrl" => r"\p{Cc}",
        "digit" => r"\p{Nd}",
        "graph" => r"[^\p{White_Space}\p{Cc}\p{Cn}]",
        "lower" => r"\p{Lowercase}",
        "print" => r"[^\p{Cc}\p{Cn}\x{2028}\x{2029}]",
        "punct" => r"\p{P}",
        "space" => r"\p{White_Space}",
        "upper" => r"\p{Uppercase}",
        "word" => r"\w",
        "xdigit" => r"\p{Nd}\p{Hex_Digit}",
        _ => return Err(illegal_argument()),
    };
    reader.at = from + length + 2;
    reader.out.push_str(if is_not { "[^" } else { "[" });
    reader.out.push_str(members);
    reader.out.push(']');
    Ok(())
}

/// Writes what stands for a set behind a backslash; false if it is something else.
pub(super) fn class_escape(reader: &mut Reader<'_>) -> Result<bool, SqlError> {
    let Some(c) = reader.peek() else { return Err(bad_escape()) };
    match c {
        'd' | 'D' | 's' | 'S' | 'w' | 'W' => {
            reader.out.push('\\');
            reader.out.push(c);
        }
        'h' => reader.out.push_str(r"[\t\p{Zs}]"),
        'H' => reader.out.push_str(r"[^\t\p{Zs}]"),
        'v' | 'V' => {
            reader.out.push_str(if c == 'v' { "[" } else { "[^" });
            reader.out.push_str(LINE_ENDS);
            reader.out.push(']');
        }
        'p' | 'P' => {
            reader.at += 1;
            property(reader, c)?;
            return Ok(true);
        }
        _ => return Ok(false),
    }
    reader.at += 1;
    Ok(true)
}

/// `\p{name}`, at its brace.
fn property(reader: &mut Reader<'_>, kind: char) -> Result<(), SqlError> {
    if reader.next() != Some('{') {
        return Err(bad_escape());
    }
    reader.out.push('\\');
    reader.out.push(kind);
    reader.out.push('{');
    loop {
        match reader.next() {
            Some('}') => break,
            Some(c) if c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ' ' | '=') => {
                reader.out.push(c);
            }
            _ => return Err(illegal_argument()),
        }
    }
    reader.out.push('}');
    reader.has_property = true;
    Ok(())
}

/// The character that stands behind a backslash.
pub(super) fn char_escape(reader: &mut Reader<'_>) -> Result<char, SqlError> {
    let Some(c) = reader.next() else { return Err(bad_escape()) };
    Ok(match c {
        'a' => '\u{7}',
        'e' => '\u{1b}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'N' => return Err(unimplemented()),
        'c' => {
            let control = reader.next().map_or(0, |c| u32::from(c) & 0x1f);
            char::from_u32(control).ok_or_else(bad_escape)?
        }
        '0' => coded(reader, 8, (1, 3))?,
        'x' if reader.peek() == Some('{') => {
            reader.at += 1;
            let c = coded(reader, 16, (1, 6))?;
            if reader.next() != Some('}') {
                return Err(bad_escape());
            }
            c
        }
        'x' => coded(reader, 16, (2, 2))?,
        'u' => coded(reader, 16, (4, 4))?,
        'U' => coded(reader, 16, (8, 8))?,
        other => other,
    })
}

fn coded(
    reader: &mut Reader<'_>,
    base: u32,
    (low, high): (usize, usize),
) -> Result<char, SqlError> {
    let (mut code, mut digits) = (0_u32, 0);
    while digits < high
        && let Some(digit) = reader.peek().and_then(|c| c.to_digit(base))
    {
        code = code.checked_mul(base).and_then(|c| c.checked_add(digit)).ok_or_else(bad_escape)?;
        digits += 1;
        reader.at += 1;
    }
    if digits < low {
        return Err(bad_escape());
    }
    char::from_u32(code).ok_or_else(bad_escape)
}

/// 3696.
fn unclosed() -> SqlError {
    error(3696, "The regular expression contains an unclosed bracket expression.")
}
