//! Functions of text and bytes.

mod about;
mod address;
mod cipher;
mod compress;
mod digest;
mod format;
mod radix;
mod sets;
mod shape;
mod uuid;

pub(crate) use about::coercibility;

use super::{Function, RESULT_BYTES_MAX};
use crate::{
    Collation, EvalContext, SqlError, Value, collation,
    compare::{common_collation, compare_in},
    expr::to_integer,
    text,
};
use alloc::{string::String, vec::Vec};

type Outcome = Result<Value, SqlError>;

/// What the result of several texts is: bytes when any of them is, else text of one collation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Bytes,
    Text(Collation),
}

impl Form {
    pub(super) fn of<'v>(values: impl Iterator<Item = &'v Value>) -> Self {
        let mut collation = None;
        for value in values {
            match value {
                Value::Bytes(_) => return Self::Bytes,
                Value::Text(_, c) => {
                    collation = Some(collation.map_or(*c, |with| common_collation(with, *c)));
                }
                _ => {}
            }
        }
        Self::Text(collation.unwrap_or_default())
    }

    /// The characters of a value; of bytes, each byte is one.
    pub(super) fn chars(self, value: &Value) -> Vec<char> {
        match self {
            Self::Bytes => {
                value.as_bytes().unwrap_or_default().iter().map(|b| char::from(*b)).collect()
            }
            Self::Text(_) => match value {
                Value::Text(text, _) => text.chars().collect(),
                other => other.to_display().chars().collect(),
            },
        }
    }

    /// The reverse of [`Self::chars`].
    pub(super) fn value(self, chars: impl IntoIterator<Item = char>) -> Value {
        match self {
            Self::Bytes => Value::Bytes(
                chars.into_iter().filter_map(|c| u8::try_from(u32::from(c)).ok()).collect(),
            ),
            Self::Text(collation) => Value::Text(chars.into_iter().collect(), collation),
        }
    }

    fn same(self, a: char, b: char) -> bool {
        match self {
            Self::Bytes => a == b,
            Self::Text(collation) => collation::chars_equal(collation, a, b),
        }
    }
}

/// Plain text of the default collation: what functions of numbers give.
pub(super) fn plain(text: String) -> Value {
    Value::Text(text, Collation::default())
}

pub(super) fn call(function: Function, args: &[Value], ctx: &mut EvalContext) -> Outcome {
    match function {
        Function::IsNull => return Ok(Value::bool(args.first().is_some_and(Value::is_null))),
        Function::ConcatWs => return concat_ws(args),
        Function::Field => return field(args),
        Function::Elt => return elt(args, ctx),
        Function::Quote if args.first().is_some_and(Value::is_null) => {
            return Ok(plain(String::from("NULL")));
        }
        Function::Char => return radix::char_of(args, ctx),
        Function::Charset | Function::CollationOf => {
            return Ok(args.first().map_or(Value::Null, |value| about::call(function, value)));
        }
        Function::Sha2 => return digest::sha2(args, ctx),
        Function::Format => return format::call(args, ctx),
        Function::MakeSet => return sets::make_set(args, ctx),
        Function::UuidToBin | Function::BinToUuid | Function::IsUuid => match args {
            [value, rest @ ..] if !value.is_null() => {
                return uuid::call(function, value, rest.first(), ctx);
            }
            _ => return Ok(Value::Null),
        },
        _ => {}
    }
    if args.iter().any(Value::is_null) {
        return Ok(Value::Null);
    }
    match function {
        Function::Concat => concat(args),
        Function::Lower | Function::Upper => Ok(case(function, args)),
        Function::Strcmp => match args {
            [a, b] => strcmp(a, b),
            _ => Err(SqlError::wrong_argument_count(function.name())),
        },
        Function::Length
        | Function::BitLength
        | Function::CharLength
        | Function::Ascii
        | Function::Ord => Ok(measure(function, args)),
        Function::Locate | Function::Instr | Function::FindInSet => find(function, args, ctx),
        Function::Hex
        | Function::Unhex
        | Function::Bin
        | Function::Oct
        | Function::Conv
        | Function::Quote => radix::call(function, args, ctx),
        Function::Md5 | Function::Sha1 | Function::ToBase64 | Function::FromBase64 => {
            digest::call(function, args)
        }
        Function::ExportSet => sets::export_set(args, ctx),
        Function::Compress | Function::Uncompress | Function::UncompressedLength => {
            compress::call(function, args, ctx)
        }
        Function::AesEncrypt | Function::AesDecrypt => Ok(cipher::call(function, args)),
        _ => match args {
            [value] => of_one(function, value, ctx),
            _ => shape::call(function, args, ctx),
        },
    }
}

fn of_one(function: Function, value: &Value, ctx: &mut EvalContext) -> Outcome {
    use Function::*;
    match function {
        InetAton | InetNtoa | Inet6Aton | Inet6Ntoa | IsIpv4 | IsIpv6 | IsIpv4Compat
        | IsIpv4Mapped => address::call(function, value, ctx),
        Soundex => Ok(sets::soundex(value)),
        FormatBytes => sets::format_bytes(value, ctx),
        FormatPicoTime => sets::format_pico_time(value, ctx),
        _ => shape::call(function, core::slice::from_ref(value), ctx),
    }
}

fn limited(length: usize, function: Function, ctx: &mut EvalContext) -> Result<bool, SqlError> {
    if length <= RESULT_BYTES_MAX {
        return Ok(true);
    }
    ctx.warn(SqlError::result_too_long(&function.name().to_ascii_lowercase()))?;
    Ok(false)
}

fn join(form: Form, bytes: Vec<u8>) -> Value {
    match form {
        Form::Bytes => Value::Bytes(bytes),
        // Every part was UTF-8.
        Form::Text(collation) => {
            Value::Text(String::from_utf8(bytes).unwrap_or_default(), collation)
        }
    }
}

fn concat(args: &[Value]) -> Outcome {
    let mut bytes = Vec::new();
    for arg in args {
        bytes.extend_from_slice(&arg.as_bytes().unwrap_or_default());
    }
    if bytes.len() > RESULT_BYTES_MAX {
        return Ok(Value::Null);
    }
    Ok(join(Form::of(args.iter()), bytes))
}

/// NULLs are left out; a NULL separator makes the result NULL.
fn concat_ws(args: &[Value]) -> Outcome {
    let Some((separator, rest)) = args.split_first() else { return Ok(Value::Null) };
    let Some(separator) = separator.as_bytes() else { return Ok(Value::Null) };
    let mut bytes = Vec::new();
    let mut first = true;
    for part in rest.iter().filter_map(Value::as_bytes) {
        if !first {
            bytes.extend_from_slice(&separator);
        }
        bytes.extend_from_slice(&part);
        first = false;
    }
    if bytes.len() > RESULT_BYTES_MAX {
        return Ok(Value::Null);
    }
    Ok(join(Form::of(args.iter()), bytes))
}

/// Bytes have no case.
fn case(function: Function, args: &[Value]) -> Value {
    let Some(value) = args.first() else { return Value::Null };
    let (text, collation) = match value {
        Value::Bytes(_) => return value.clone(),
        Value::Text(text, collation) => (text.clone(), *collation),
        other => (other.to_display(), Collation::default()),
    };
    let text =
        if function == Function::Lower { collation::lower(&text) } else { collation::upper(&text) };
    Value::Text(text, collation)
}

/// The arguments as text or bytes, so that numbers compare as they are written.
fn as_string(value: &Value) -> Value {
    if value.is_string() { value.clone() } else { plain(value.to_display()) }
}

fn strcmp(a: &Value, b: &Value) -> Outcome {
    let (a, b) = (as_string(a), as_string(b));
    let with = common_collation(a.collation(), b.collation());
    Ok(Value::Int(compare_in(&a, &b, with)? as i64))
}

fn measure(function: Function, args: &[Value]) -> Value {
    let Some(value) = args.first() else { return Value::Null };
    let bytes = value.as_bytes().unwrap_or_default();
    let number = match function {
        Function::BitLength => bytes.len() * 8,
        Function::CharLength if !matches!(value, Value::Bytes(_)) => {
            core::str::from_utf8(&bytes).map_or(bytes.len(), |text| text.chars().count())
        }
        Function::Ascii => bytes.first().map_or(0, |b| usize::from(*b)),
        Function::Ord => return Value::Int(ord(value, &bytes)),
        _ => bytes.len(),
    };
    Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
}

/// The bytes of the first character as one number.
fn ord(value: &Value, bytes: &[u8]) -> i64 {
    let length = match value {
        Value::Text(text, _) => text.chars().next().map_or(0, char::len_utf8),
        _ => 1,
    };
    bytes.iter().take(length).fold(0, |sum, b| sum * 256 + i64::from(*b))
}

/// Counts what looking for all places of `what` costs at worst.
fn charge_search(what: &[char], text: &[char], ctx: &mut EvalContext) -> Result<(), SqlError> {
    // Most places differ at once.
    const CHARS_PER_WORK: u64 = 8;
    ctx.charge((what.len() as u64).saturating_mul(text.len() as u64) / CHARS_PER_WORK)
}

/// The place of `what` at or after character `from`.
fn position(form: Form, what: &[char], text: &[char], from: usize) -> Option<usize> {
    let last = text.len().checked_sub(what.len())?;
    (from..=last).find(|at| {
        text.get(*at..*at + what.len())
            .is_some_and(|part| part.iter().zip(what).all(|(a, b)| form.same(*a, *b)))
    })
}

fn find(function: Function, args: &[Value], ctx: &mut EvalContext) -> Outcome {
    let (what, text, from) = match (function, args) {
        (Function::Instr, [text, what]) => (what, text, 1),
        (Function::FindInSet, [what, list]) => return Ok(find_in_set(what, list)),
        (_, [what, text]) => (what, text, 1),
        (_, [what, text, from]) => (what, text, to_integer(from, ctx)?),
        _ => return Err(SqlError::wrong_argument_count(function.name())),
    };
    let form = Form::of([what, text].into_iter());
    let found = match usize::try_from(from) {
        Ok(from @ 1..) => {
            let (what, text) = (form.chars(what), form.chars(text));
            charge_search(&what, &text, ctx)?;
            position(form, &what, &text, from - 1)
        }
        _ => None,
    };
    Ok(Value::Int(found.map_or(0, |at| at as i64 + 1)))
}

fn find_in_set(what: &Value, list: &Value) -> Value {
    let form = Form::of([what, list].into_iter());
    let (what, list) = (form.chars(what), form.chars(list));
    if list.is_empty() {
        return Value::Int(0);
    }
    let same = |part: &[char]| {
        part.len() == what.len() && part.iter().zip(&what).all(|(a, b)| form.same(*a, *b))
    };
    let found = list.split(|c| *c == ',').position(same);
    Value::Int(found.map_or(0, |at| at as i64 + 1))
}

/// All text: as text; all numbers: as numbers; else as doubles. NULL is found nowhere.
fn field(args: &[Value]) -> Outcome {
    let Some((what, list)) = args.split_first() else { return Ok(Value::Int(0)) };
    if what.is_null() {
        return Ok(Value::Int(0));
    }
    let mixed =
        args.iter().any(Value::is_string) && !args.iter().all(|v| v.is_string() || v.is_null());
    let plain = |v: &Value| if mixed { Value::Double(double(v)) } else { v.clone() };
    for (index, value) in list.iter().enumerate() {
        if value.is_null() {
            continue;
        }
        let with = common_collation(what.collation(), value.collation());
        if compare_in(&plain(what), &plain(value), with)?.is_eq() {
            return Ok(Value::Int(index as i64 + 1));
        }
    }
    Ok(Value::Int(0))
}

fn double(value: &Value) -> f64 {
    match value.as_bytes() {
        Some(bytes) => text::double_prefix(&bytes).0,
        None => 0.0,
    }
}

fn elt(args: &[Value], ctx: &mut EvalContext) -> Outcome {
    let Some(Some((index, list))) = args.first().map(|i| (!i.is_null()).then_some((i, args)))
    else {
        return Ok(Value::Null);
    };
    let index = usize::try_from(to_integer(index, ctx)?).unwrap_or(0);
    Ok(match list.get(index) {
        Some(value) if index > 0 && !value.is_null() => as_string(value),
        _ => Value::Null,
    })
}
