//! Addresses of the Internet Protocol as text, numbers and bytes.

use super::{Function, Outcome, plain};
use crate::{EvalContext, SqlError, Value, expr::to_integer};
use alloc::{format, string::String, vec::Vec};
use core::{
    fmt::Write,
    net::{Ipv4Addr, Ipv6Addr},
};

/// Functions whose arguments are not NULL.
pub(super) fn call(function: Function, value: &Value, ctx: &mut EvalContext) -> Outcome {
    let wrong = |ctx: &mut EvalContext| {
        let name = function.name().to_ascii_lowercase();
        ctx.warn(SqlError::wrong_for_function("string", &value.to_display(), &name))?;
        Ok(Value::Null)
    };
    let found = match function {
        Function::InetAton => aton(&value.to_display()).map(|n| Value::UInt(n.into())),
        Function::InetNtoa => {
            let number = u32::try_from(to_integer(value, ctx)?).ok();
            number.map(|n| plain(format!("{}", Ipv4Addr::from(n))))
        }
        Function::Inet6Aton => {
            let text = value.to_display();
            let short = ipv4(&text).map(|octets| octets.to_vec());
            short.or_else(|| ipv6(&text).map(|octets| octets.to_vec())).map(Value::Bytes)
        }
        Function::Inet6Ntoa => ntoa(value).map(plain),
        _ => return Ok(Value::bool(is(function, value))),
    };
    match found {
        Some(found) => Ok(found),
        None => wrong(ctx),
    }
}

/// The short forms, too: `127.1` is 127.0.0.1, and an empty part is 0.
fn aton(text: &str) -> Option<u32> {
    if !text.ends_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let part = |p: &str| if p.is_empty() { Some(0) } else { octet(p, usize::MAX) };
    let mut parts: Vec<u8> = text.split('.').map(part).collect::<Option<_>>()?;
    let last = parts.pop()?;
    if parts.len() > 3 {
        return None;
    }
    let mut octets = [0; 4];
    octets.iter_mut().zip(parts).for_each(|(octet, part)| *octet = part);
    octets[3] = last;
    Some(u32::from_be_bytes(octets))
}

fn octet(text: &str, digits_max: usize) -> Option<u8> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if digits && text.len() <= digits_max { text.parse().ok() } else { None }
}

fn ipv4(text: &str) -> Option<[u8; 4]> {
    let octets: Vec<u8> = text.split('.').map(|part| octet(part, 3)).collect::<Option<_>>()?;
    octets.try_into().ok()
}

fn ipv6(text: &str) -> Option<[u8; 16]> {
    text.parse().ok().map(|address: Ipv6Addr| address.octets())
}

fn ntoa(value: &Value) -> Option<String> {
    let Value::Bytes(bytes) = value else { return None };
    if let Ok(short) = <[u8; 4]>::try_from(bytes.as_slice()) {
        return Some(format!("{}", Ipv4Addr::from(short)));
    }
    let long = <[u8; 16]>::try_from(bytes.as_slice()).ok()?;
    Some(written(Ipv6Addr::from(long)))
}

/// The longest run of zeros, of one at least, is left out; the addresses that hold one of version 4 show it.
fn written(address: Ipv6Addr) -> String {
    let groups = address.segments();
    let (mut start, mut length) = (0, 0);
    for from in 0..groups.len() {
        let run = groups.iter().skip(from).take_while(|group| **group == 0).count();
        if run > length {
            (start, length) = (from, run);
        }
    }
    let [.., a, b, c, d] = address.octets();
    let old = Ipv4Addr::new(a, b, c, d);
    match (start, length, groups[5]) {
        (0, 6, _) => return format!("::{old}"),
        (0, 5, 0xffff) => return format!("::ffff:{old}"),
        _ => {}
    }
    let mut out = String::new();
    for (index, group) in groups.iter().enumerate() {
        if length > 0 && index == start {
            out.push_str("::");
        } else if !(start..start + length).contains(&index) {
            let colon = if out.is_empty() || out.ends_with(':') { "" } else { ":" };
            // Writing to a String cannot fail.
            let _ = write!(out, "{colon}{group:x}");
        }
    }
    out
}

fn is(function: Function, value: &Value) -> bool {
    let long = match value {
        Value::Bytes(bytes) => <[u8; 16]>::try_from(bytes.as_slice()).ok(),
        _ => None,
    };
    let number = long.map(u128::from_be_bytes);
    match function {
        Function::IsIpv4 => ipv4(&value.to_display()).is_some(),
        Function::IsIpv6 => ipv6(&value.to_display()).is_some(),
        Function::IsIpv4Compat => number.is_some_and(|n| n > 1 && n >> 32 == 0),
        _ => number.is_some_and(|n| n >> 32 == 0xffff),
    }
}
