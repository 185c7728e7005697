//! Functions that cut, pad, repeat and replace text.

use super::{Form, Outcome, charge_search, limited, position};
use crate::{EvalContext, Function, SqlError, Value, expr::to_integer};
use alloc::vec::Vec;

/// A whole number cut to 64 bits.
fn number(value: &Value, ctx: &mut EvalContext) -> Result<i64, SqlError> {
    let wide = to_integer(value, ctx)?;
    Ok(i64::try_from(wide).unwrap_or(if wide < 0 { i64::MIN } else { i64::MAX }))
}

fn size(value: &Value, ctx: &mut EvalContext) -> Result<usize, SqlError> {
    Ok(usize::try_from(number(value, ctx)?.max(0)).unwrap_or(usize::MAX))
}

pub(super) fn call(function: Function, args: &[Value], ctx: &mut EvalContext) -> Outcome {
    match (function, args) {
        (Function::Left, [text, count]) => {
            let count = size(count, ctx)?;
            let form = Form::of([text].into_iter());
            Ok(form.value(form.chars(text).into_iter().take(count)))
        }
        (Function::Right, [text, count]) => {
            let count = size(count, ctx)?;
            let form = Form::of([text].into_iter());
            let chars = form.chars(text);
            let skip = chars.len().saturating_sub(count);
            Ok(form.value(chars.into_iter().skip(skip)))
        }
        (Function::Substring, [text, rest @ ..]) => substring(text, rest, ctx),
        (Function::SubstringIndex, [text, delimiter, count]) => {
            let count = number(count, ctx)?;
            Ok(substring_index(text, delimiter, count))
        }
        (Function::Trim | Function::LTrim | Function::RTrim, [text, rest @ ..]) => {
            Ok(trim(function, text, rest.first()))
        }
        (Function::Replace, [text, from, to]) => replace(text, from, to, ctx),
        (Function::Insert, [text, at, length, new]) => {
            let (at, length) = (number(at, ctx)?, number(length, ctx)?);
            Ok(insert(text, at, length, new))
        }
        (Function::Reverse, [text]) => {
            let form = Form::of([text].into_iter());
            Ok(form.value(form.chars(text).into_iter().rev()))
        }
        (Function::Repeat, [text, count]) => {
            let count = size(count, ctx)?;
            repeat(text, count, ctx)
        }
        (Function::Space, [count]) => {
            let count = size(count, ctx)?;
            repeat(&Value::text(" "), count, ctx)
        }
        (Function::Lpad | Function::Rpad, [text, length, pad]) => {
            let length = number(length, ctx)?;
            fill(function, text, length, pad, ctx)
        }
        _ => Err(SqlError::wrong_argument_count(function.name())),
    }
}

/// Positions count from 1, negative ones from the end; 0 is nowhere.
fn substring(text: &Value, rest: &[Value], ctx: &mut EvalContext) -> Outcome {
    let form = Form::of([text].into_iter());
    let chars = form.chars(text);
    let from = match rest.first() {
        Some(value) => number(value, ctx)?,
        None => 1,
    };
    let length = match rest.get(1) {
        Some(value) => size(value, ctx)?,
        None => usize::MAX,
    };
    let back = usize::try_from(from.unsigned_abs()).unwrap_or(usize::MAX);
    let skip = match from {
        0 => None,
        1.. => Some(back - 1),
        _ => chars.len().checked_sub(back),
    };
    let Some(skip) = skip else { return Ok(form.value([])) };
    Ok(form.value(chars.into_iter().skip(skip).take(length)))
}

/// Delimiters are found by their characters, not by collation.
fn substring_index(text: &Value, delimiter: &Value, count: i64) -> Value {
    let form = Form::of([text, delimiter].into_iter());
    let (chars, delimiter) = (form.chars(text), form.chars(delimiter));
    if count == 0 || delimiter.is_empty() || chars.is_empty() {
        return form.value([]);
    }
    let wanted = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    if count > 0 {
        let mut at = 0;
        for number in 1.. {
            match position(Form::Bytes, &delimiter, &chars, at) {
                Some(found) if number == wanted => {
                    return form.value(chars.into_iter().take(found));
                }
                Some(found) => at = found + delimiter.len(),
                None => break,
            }
        }
        return form.value(chars);
    }
    let mut end = chars.len();
    for number in 1.. {
        let ends = |at: &usize| chars.get(*at..at + delimiter.len()) == Some(&*delimiter);
        let last = end.checked_sub(delimiter.len());
        match last.and_then(|last| (0..=last).rev().find(ends)) {
            Some(found) if number == wanted => {
                return form.value(chars.iter().copied().skip(found + delimiter.len()));
            }
            Some(found) => end = found,
            None => break,
        }
    }
    form.value(chars)
}

fn trim(function: Function, text: &Value, what: Option<&Value>) -> Value {
    let form = Form::of([text].into_iter().chain(what));
    let chars = form.chars(text);
    let what = what.map_or_else(|| Vec::from([' ']), |w| form.chars(w));
    let mut rest = chars.as_slice();
    if what.is_empty() {
        return form.value(chars);
    }
    if function != Function::RTrim {
        while let Some(shorter) = rest.strip_prefix(&*what) {
            rest = shorter;
        }
    }
    if function != Function::LTrim {
        while let Some(shorter) = rest.strip_suffix(&*what) {
            rest = shorter;
        }
    }
    form.value(rest.iter().copied())
}

/// By characters, not by collation: REPLACE tells upper from lower case.
fn replace(text: &Value, from: &Value, to: &Value, ctx: &mut EvalContext) -> Outcome {
    let form = Form::of([text, from, to].into_iter());
    let (chars, from, to) = (form.chars(text), form.chars(from), form.chars(to));
    if from.is_empty() {
        return Ok(form.value(chars));
    }
    charge_search(&from, &chars, ctx)?;
    let mut out = Vec::with_capacity(chars.len());
    let mut at = 0;
    while let Some(found) = position(Form::Bytes, &from, &chars, at) {
        out.extend(chars.iter().take(found).skip(at));
        out.extend_from_slice(&to);
        at = found + from.len();
        if !limited(out.len(), Function::Replace, ctx)? {
            return Ok(Value::Null);
        }
    }
    out.extend(chars.iter().skip(at));
    Ok(form.value(out))
}

fn insert(text: &Value, at: i64, length: i64, new: &Value) -> Value {
    let form = Form::of([text, new].into_iter());
    let (chars, new) = (form.chars(text), form.chars(new));
    let start = match usize::try_from(at) {
        Ok(at @ 1..) if at <= chars.len() => at - 1,
        _ => return form.value(chars),
    };
    let rest = chars.len() - start;
    // A negative length means all of the rest.
    let length = usize::try_from(length).map_or(rest, |l| l.min(rest));
    let before = chars.iter().take(start);
    let after = chars.iter().skip(start + length);
    form.value(before.chain(&new).chain(after).copied())
}

fn repeat(text: &Value, count: usize, ctx: &mut EvalContext) -> Outcome {
    let form = Form::of([text].into_iter());
    let chars = form.chars(text);
    let bytes = text.as_bytes().unwrap_or_default().len().saturating_mul(count);
    if !limited(bytes, Function::Repeat, ctx)? {
        return Ok(Value::Null);
    }
    let total = chars.len() * count;
    Ok(form.value(chars.into_iter().cycle().take(total)))
}

/// LPAD and RPAD. A text that is longer is cut at its end.
fn fill(
    function: Function,
    text: &Value,
    length: i64,
    pad: &Value,
    ctx: &mut EvalContext,
) -> Outcome {
    let form = Form::of([text, pad].into_iter());
    let (chars, pad) = (form.chars(text), form.chars(pad));
    let Ok(length) = usize::try_from(length) else { return Ok(Value::Null) };
    if !limited(length.saturating_mul(4), function, ctx)? {
        return Ok(Value::Null);
    }
    if length <= chars.len() {
        return Ok(form.value(chars.into_iter().take(length)));
    }
    if pad.is_empty() {
        return Ok(form.value([]));
    }
    let missing = length - chars.len();
    let filling = pad.iter().copied().cycle().take(missing);
    Ok(if function == Function::Lpad {
        form.value(filling.chain(chars))
    } else {
        form.value(chars.into_iter().chain(filling))
    })
}
