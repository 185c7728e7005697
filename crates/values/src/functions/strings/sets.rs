//! Sets of bits as text, SOUNDEX, and numbers for people.

use super::{Form, Outcome, join, plain};
use crate::{
    EvalContext, Value,
    expr::{to_double, to_integer},
};
use alloc::{format, string::String, vec::Vec};

/// `MAKE_SET(bits, a, b, …)`: the texts whose bits are set, but NULLs.
pub(super) fn make_set(args: &[Value], ctx: &mut EvalContext) -> Outcome {
    let Some((bits, texts)) = args.split_first() else { return Ok(Value::Null) };
    if bits.is_null() {
        return Ok(Value::Null);
    }
    let bits = to_integer(bits, ctx)? as u64;
    let chosen = |(index, _): &(usize, &Value)| *index < 64 && bits >> index & 1 == 1;
    let parts: Vec<_> =
        texts.iter().enumerate().filter(chosen).filter_map(|(_, text)| text.as_bytes()).collect();
    Ok(join(Form::of(texts.iter()), parts.join(&b","[..])))
}

/// `EXPORT_SET(bits, on, off, separator, count)`: one text for each bit, the lowest first.
pub(super) fn export_set(args: &[Value], ctx: &mut EvalContext) -> Outcome {
    let [bits, on, off, rest @ ..] = args else { return Ok(Value::Null) };
    let bits = to_integer(bits, ctx)? as u64;
    let separator = match rest.first() {
        Some(separator) => separator.as_bytes().unwrap_or_default().into_owned(),
        None => Vec::from([b',']),
    };
    let count = match rest.get(1) {
        Some(count) => u32::try_from(to_integer(count, ctx)?).unwrap_or(64).min(64),
        None => 64,
    };
    let text =
        |bit: u32| if bits >> bit & 1 == 1 { on } else { off }.as_bytes().unwrap_or_default();
    let mut out = Vec::new();
    for bit in 0..count {
        if bit > 0 {
            out.extend_from_slice(&separator);
        }
        out.extend_from_slice(&text(bit));
    }
    Ok(join(Form::of([on, off].into_iter().chain(rest.first())), out))
}

/// The class of a letter's sound; vowels and the like have none.
fn sound(letter: char) -> Option<char> {
    Some(match letter {
        'B' | 'F' | 'P' | 'V' => '1',
        'C' | 'G' | 'J' | 'K' | 'Q' | 'S' | 'X' | 'Z' => '2',
        'D' | 'T' => '3',
        'L' => '4',
        'M' | 'N' => '5',
        'R' => '6',
        _ => return None,
    })
}

/// The first letter and the sounds of the others; a sound that follows itself counts once.
pub(super) fn soundex(value: &Value) -> Value {
    let form = Form::of([value].into_iter());
    let chars = form.chars(value);
    let upper = |c: char| c.to_uppercase().next().unwrap_or(c);
    let mut letters = chars.into_iter().filter(|c| c.is_alphabetic()).map(upper);
    let Some(first) = letters.next() else { return form.value([]) };
    let mut out = Vec::from([first]);
    let mut last = sound(first);
    for code in letters.filter_map(sound) {
        if last != Some(code) {
            out.push(code);
        }
        last = Some(code);
    }
    while out.len() < 4 {
        out.push('0');
    }
    form.value(out)
}

/// A unit's size and its name, smallest first.
type Units = [(f64, &'static str)];

const BYTES: &Units = &[
    (1_024.0, "KiB"),
    (1_048_576.0, "MiB"),
    (1_073_741_824.0, "GiB"),
    (1_099_511_627_776.0, "TiB"),
    (1_125_899_906_842_624.0, "PiB"),
    (1_152_921_504_606_846_976.0, "EiB"),
];

const PICOSECONDS: &Units = &[
    (1e3, "ns"),
    (1e6, "us"),
    (1e9, "ms"),
    (1e12, "s"),
    (6e13, "min"),
    (3.6e15, "h"),
    (8.64e16, "d"),
];

/// `FORMAT_BYTES(x)`.
pub(super) fn format_bytes(value: &Value, ctx: &mut EvalContext) -> Outcome {
    let number = to_double(value, ctx)?;
    Ok(plain(in_units(number, BYTES).unwrap_or_else(|| format!("{:>4} bytes", number as i64))))
}

/// `FORMAT_PICO_TIME(x)`.
pub(super) fn format_pico_time(value: &Value, ctx: &mut EvalContext) -> Outcome {
    let number = to_double(value, ctx)?;
    Ok(plain(in_units(number, PICOSECONDS).unwrap_or_else(|| format!("{:>3} ps", number as i64))))
}

fn in_units(number: f64, units: &Units) -> Option<String> {
    let (size, name) = units.iter().rev().find(|(size, _)| number.abs() >= *size)?;
    let count = number / size;
    if count.abs() < 100_000.0 {
        return Some(format!("{count:.2} {name}"));
    }
    // As C writes it: two digits of the exponent at least, and its sign.
    let text = format!("{count:.2e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    Some(format!("{digits}e+{exponent:0>2} {name}"))
}
