//! Functions between numbers and text: HEX, CONV, CHAR and QUOTE.

use super::{Form, Outcome, plain};
use crate::{EvalContext, Function, SqlError, Value, expr::to_integer, text};
use alloc::{format, vec::Vec};

pub(super) fn call(function: Function, args: &[Value], ctx: &mut EvalContext) -> Outcome {
    match (function, args) {
        (Function::Hex, [value]) => hex(value, ctx),
        (Function::Unhex, [value]) => Ok(unhex(&value.as_bytes().unwrap_or_default())),
        // As CONV: of what the value looks like.
        (Function::Bin, [value]) => Ok(conv(&value.to_display(), 10, 2)),
        (Function::Oct, [value]) => Ok(conv(&value.to_display(), 10, 8)),
        (Function::Conv, [value, from, to]) => {
            // MySQL keeps 32 bits of a base.
            let (from, to) = (to_integer(from, ctx)? as i32, to_integer(to, ctx)? as i32);
            Ok(conv(&value.to_display(), from, to))
        }
        (Function::Quote, [value]) => Ok(quote(value)),
        _ => Err(SqlError::wrong_argument_count(function.name())),
    }
}

fn hex(value: &Value, ctx: &mut EvalContext) -> Outcome {
    if value.is_string() || value.is_temporal() {
        return Ok(plain(text::hex(&value.as_bytes().unwrap_or_default())));
    }
    let bits = to_integer(value, ctx)? as u64;
    Ok(plain(format!("{bits:X}")))
}

/// An odd number of digits has a zero before it; anything but digits gives NULL.
fn unhex(bytes: &[u8]) -> Value {
    let digit = |b: u8| char::from(b).to_digit(16).map(|d| d as u8);
    let mut out = Vec::with_capacity(bytes.len() / 2 + 1);
    let (odd, pairs) = bytes.split_at(bytes.len() % 2);
    for byte in odd {
        match digit(*byte) {
            Some(low) => out.push(low),
            None => return Value::Null,
        }
    }
    for pair in pairs.chunks_exact(2) {
        match pair {
            [a, b] => match (digit(*a), digit(*b)) {
                (Some(high), Some(low)) => out.push(high << 4 | low),
                _ => return Value::Null,
            },
            _ => return Value::Null,
        }
    }
    Value::Bytes(out)
}

/// Bases 2 to 36. A negative base to convert from reads a signed number, one to convert to writes it.
fn conv(text: &str, from: i32, to: i32) -> Value {
    let base = |b: i32| Some(b.unsigned_abs()).filter(|b| (2..=36).contains(b));
    let (Some(source), Some(target)) = (base(from), base(to)) else { return Value::Null };
    if text.is_empty() {
        return Value::Null;
    }
    let value = read_number(text.trim_start(), source, from < 0);
    let signed = to < 0 && (value as i64) < 0;
    let mut rest = if signed { value.wrapping_neg() } else { value };
    let mut out = Vec::new();
    loop {
        let digit = (rest % u64::from(target)) as u32;
        out.push(char::from_digit(digit, target).unwrap_or('0').to_ascii_uppercase());
        rest /= u64::from(target);
        if rest == 0 {
            break;
        }
    }
    if signed {
        out.push('-');
    }
    plain(out.into_iter().rev().collect())
}

/// The bits of the number that a text begins with; one beyond the range stops at its end.
fn read_number(text: &str, base: u32, signed: bool) -> u64 {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let size = digits
        .chars()
        .map_while(|c| c.to_digit(base))
        .fold(0_u128, |sum, digit| (sum * u128::from(base) + u128::from(digit)).min(1 << 65));
    const LOWEST: u128 = 1 << 63;
    match (signed, negative) {
        (true, true) => size.min(LOWEST).wrapping_neg() as u64,
        (true, false) => size.min(LOWEST - 1) as u64,
        (false, true) if size > u128::from(u64::MAX) => 0,
        (false, true) => (size as u64).wrapping_neg(),
        (false, false) => u64::try_from(size).unwrap_or(u64::MAX),
    }
}

fn quote(value: &Value) -> Value {
    let form = Form::of([value].into_iter());
    let mut out = Vec::from(['\'']);
    for c in form.chars(value) {
        match c {
            '\'' | '\\' => out.extend(['\\', c]),
            '\0' => out.extend(['\\', '0']),
            '\u{1a}' => out.extend(['\\', 'Z']),
            _ => out.push(c),
        }
    }
    out.push('\'');
    form.value(out)
}

/// `CHAR(77, 121)`: the bytes of the numbers, without leading zeros; NULLs are left out.
pub(super) fn char_of(args: &[Value], ctx: &mut EvalContext) -> Outcome {
    let mut out = Vec::new();
    for arg in args.iter().filter(|a| !a.is_null()) {
        let bytes = (to_integer(arg, ctx)? as u32).to_be_bytes();
        let skip = bytes.iter().position(|b| *b != 0).unwrap_or(3);
        out.extend(bytes.iter().skip(skip));
    }
    Ok(Value::Bytes(out))
}
