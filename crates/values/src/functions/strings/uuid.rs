//! UUIDs as text and as bytes.

use super::{Function, Outcome, plain};
use crate::{EvalContext, SqlError, Value, expr::to_integer, text::hex};
use alloc::{format, vec::Vec};

/// Functions whose first argument is not NULL.
pub(super) fn call(
    function: Function,
    value: &Value,
    swap: Option<&Value>,
    ctx: &mut EvalContext,
) -> Outcome {
    let swap = match swap {
        Some(flag) if !flag.is_null() => to_integer(flag, ctx)? != 0,
        _ => false,
    };
    let found = match function {
        Function::IsUuid => return Ok(Value::bool(read(value).is_some())),
        Function::UuidToBin => {
            read(value).map(|id| Value::Bytes(if swap { swapped(id) } else { id }.to_vec()))
        }
        _ => match value {
            Value::Bytes(bytes) => <[u8; 16]>::try_from(bytes.as_slice()).ok(),
            _ => None,
        }
        .map(|id| written(if swap { unswapped(id) } else { id })),
    };
    let name = function.name().to_ascii_lowercase();
    found.ok_or_else(|| SqlError::wrong_for_function("string", &value.to_display(), &name))
}

/// 32 hexadecimal digits, with or without dashes; with dashes also in braces.
fn read(value: &Value) -> Option<[u8; 16]> {
    let bytes = value.as_bytes()?;
    let braced = bytes.strip_prefix(b"{").and_then(|b| b.strip_suffix(b"}"));
    let bytes = braced.filter(|b| b.len() == 36).unwrap_or(&bytes);
    let dashed = bytes.len() == 36;
    let dashes = [8, 13, 18, 23];
    if dashed && dashes.iter().any(|at| bytes.get(*at) != Some(&b'-')) {
        return None;
    }
    let kept = bytes.iter().enumerate().filter(|(at, _)| !(dashed && dashes.contains(at)));
    let digit = |(_, byte): (usize, &u8)| char::from(*byte).to_digit(16);
    let digits: Vec<u32> = kept.map(digit).collect::<Option<_>>()?;
    let octets: Vec<u8> = digits
        .chunks_exact(2)
        .map(|pair| pair.iter().fold(0, |sum, digit| sum << 4 | *digit as u8))
        .collect();
    if digits.len() == 32 { octets.try_into().ok() } else { None }
}

/// The high part of the time before its middle and its low part: identifiers made one after the other
/// then stand near each other.
fn swapped(id: [u8; 16]) -> [u8; 16] {
    let [a, b, c, d, e, f, g, h, rest @ ..] = id;
    joined([g, h, e, f, a, b, c, d], rest)
}

fn unswapped(id: [u8; 16]) -> [u8; 16] {
    let [g, h, e, f, a, b, c, d, rest @ ..] = id;
    joined([a, b, c, d, e, f, g, h], rest)
}

fn joined(front: [u8; 8], back: [u8; 8]) -> [u8; 16] {
    let number = u128::from(u64::from_be_bytes(front)) << 64 | u128::from(u64::from_be_bytes(back));
    number.to_be_bytes()
}

fn written(id: [u8; 16]) -> Value {
    let digits = hex(&id).to_ascii_lowercase();
    let part = |from: usize, to: usize| digits.get(from..to).unwrap_or("");
    let parts = (part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32));
    plain(format!("{}-{}-{}-{}-{}", parts.0, parts.1, parts.2, parts.3, parts.4))
}
