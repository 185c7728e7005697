//! Functions of numbers.

mod exp;

use super::Function;
use crate::{
    DateTime, Decimal, EvalContext, SqlError, Value,
    compare::{Number, common_collation, compare_in},
    convert::moment::moment,
    expr::{modulo, to_decimal, to_double, to_integer, to_number},
};
use alloc::{format, string::String};

type Outcome = Result<Value, SqlError>;

pub(super) fn call(function: Function, args: &[Value], ctx: &mut EvalContext) -> Outcome {
    if function == Function::Interval {
        return interval(args, ctx);
    }
    if args.iter().any(Value::is_null) {
        return Ok(Value::Null);
    }
    match (function, args) {
        (Function::Pi, _) => Ok(Value::Double(core::f64::consts::PI)),
        (Function::Greatest | Function::Least, _) => {
            greatest_or_least(function == Function::Greatest, args, ctx)
        }
        (Function::Mod, [a, b]) => modulo(a, b, ctx),
        (Function::Round, [x]) => place(x, &Value::Int(0), true, ctx),
        (Function::Round, [x, places]) => place(x, places, true, ctx),
        (Function::Truncate, [x, places]) => place(x, places, false, ctx),
        (Function::Pow | Function::Log | Function::Atan, [x, y]) => {
            let (x, y) = (to_double(x, ctx)?, to_double(y, ctx)?);
            two(function, x, y, ctx)
        }
        (Function::Crc32, [x]) => Ok(Value::UInt(crc32(&x.as_bytes().unwrap_or_default()).into())),
        (Function::BitCount, [x]) => {
            Ok(Value::Int((to_integer(x, ctx)? as u64).count_ones().into()))
        }
        (Function::Abs | Function::Ceil | Function::Floor | Function::Sign, [x]) => {
            exact(function, x, ctx)
        }
        (_, [x]) => {
            let x = to_double(x, ctx)?;
            one(function, x, ctx)
        }
        _ => Err(SqlError::wrong_argument_count(function.name())),
    }
}

/// A double, or the range error of the function.
fn finite(function: Function, value: f64, args: &str) -> Outcome {
    if value.is_finite() {
        return Ok(Value::Double(value));
    }
    let text = format!("{}({args})", function.name().to_ascii_lowercase());
    Err(SqlError::out_of_range_expr("DOUBLE", &text))
}

fn bad_logarithm(ctx: &mut EvalContext) -> Outcome {
    let text = String::from("Invalid argument for logarithm");
    ctx.warn(SqlError::new(3020, *b"2201E", text))?;
    Ok(Value::Null)
}

fn two(function: Function, x: f64, y: f64, ctx: &mut EvalContext) -> Outcome {
    let value = match function {
        Function::Pow => exp::pow(x, y),
        Function::Log if x <= 0.0 || x == 1.0 || y <= 0.0 => return bad_logarithm(ctx),
        Function::Log => exp::ln(y) / exp::ln(x),
        _ => libm::atan2(x, y),
    };
    finite(function, value, &format!("{x},{y}"))
}

fn one(function: Function, x: f64, ctx: &mut EvalContext) -> Outcome {
    let value = match function {
        Function::Sqrt if x < 0.0 => return Ok(Value::Null),
        Function::Asin | Function::Acos if !(-1.0..=1.0).contains(&x) => return Ok(Value::Null),
        Function::Ln | Function::Log | Function::Log2 | Function::Log10 if x <= 0.0 => {
            return bad_logarithm(ctx);
        }
        Function::Sqrt => libm::sqrt(x),
        Function::Exp => exp::exp(x),
        Function::Ln | Function::Log => exp::ln(x),
        Function::Log2 => libm::log2(x),
        Function::Log10 => libm::log10(x),
        Function::Sin => libm::sin(x),
        Function::Cos => libm::cos(x),
        Function::Tan => libm::tan(x),
        Function::Cot => 1.0 / libm::tan(x),
        Function::Asin => libm::asin(x),
        Function::Acos => libm::acos(x),
        Function::Atan => libm::atan(x),
        Function::Degrees => x * (180.0 / core::f64::consts::PI),
        _ => x * (core::f64::consts::PI / 180.0),
    };
    finite(function, value, &format!("{x}"))
}

/// ABS, CEIL, FLOOR and SIGN: exact for exact numbers.
fn exact(function: Function, value: &Value, ctx: &mut EvalContext) -> Outcome {
    let number = to_number(value, ctx)?;
    let zero = Decimal::zero();
    Ok(match (function, number) {
        (Function::Abs, Number::Int(_)) => match value {
            Value::Int(v) => {
                let overflow = || SqlError::out_of_range_expr("BIGINT", &format!("abs({v})"));
                Value::Int(v.checked_abs().ok_or_else(overflow)?)
            }
            other => other.clone(),
        },
        (Function::Abs, Number::Decimal(v)) => Value::Decimal(v.abs()),
        (Function::Abs, Number::Double(v)) => Value::Double(libm::fabs(v)),
        (Function::Sign, Number::Int(v)) => Value::Int(v.signum() as i64),
        (Function::Sign, Number::Decimal(v)) => Value::Int(v.order(&zero) as i64),
        (Function::Sign, Number::Double(v)) => Value::Int(i64::from(v > 0.0) - i64::from(v < 0.0)),
        (Function::Ceil, Number::Decimal(v)) => whole(v.ceil()),
        (_, Number::Decimal(v)) => whole(v.floor()),
        (Function::Ceil, Number::Double(v)) => Value::Double(libm::ceil(v)),
        (_, Number::Double(v)) => Value::Double(libm::floor(v)),
        (_, Number::Int(_)) if matches!(value, Value::UInt(_)) => value.clone(),
        (_, Number::Int(v)) => Value::Int(i64::try_from(v).unwrap_or(i64::MAX)),
    })
}

/// A whole decimal as BIGINT where it fits.
fn whole(value: Decimal) -> Value {
    match value.to_i128().and_then(|v| i64::try_from(v).ok()) {
        Some(fit) => Value::Int(fit),
        None => Value::Decimal(value),
    }
}

/// ROUND and TRUNCATE.
fn place(value: &Value, places: &Value, round: bool, ctx: &mut EvalContext) -> Outcome {
    let wide = to_integer(places, ctx)?;
    let places = i64::try_from(wide).unwrap_or(i64::MAX);
    match to_number(value, ctx)? {
        Number::Int(v) if places >= 0 => match value {
            Value::Int(_) | Value::UInt(_) => Ok(value.clone()),
            _ => Ok(Value::Int(i64::try_from(v).unwrap_or(i64::MAX))),
        },
        Number::Int(v) => {
            let rounded = Decimal::new(v, 0).at_place(places, round).to_i128().unwrap_or(0);
            let unsigned = matches!(value, Value::UInt(_));
            crate::expr::integer_result(rounded, unsigned).ok_or_else(|| {
                let kind = if unsigned { "BIGINT UNSIGNED" } else { "BIGINT" };
                SqlError::out_of_range_expr(kind, &format!("round({v},{places})"))
            })
        }
        Number::Decimal(v) => Ok(Value::Decimal(v.at_place(places, round))),
        Number::Double(v) => Ok(Value::Double(place_double(v, places, round))),
    }
}

/// Doubles are rounded half to even after scaling, as MySQL does.
fn place_double(value: f64, places: i64, round: bool) -> f64 {
    let power = libm::pow(10.0, places.unsigned_abs().min(400) as f64);
    let scaled = if places < 0 { value / power } else { value * power };
    if places >= 0 && !scaled.is_finite() {
        return value;
    }
    if places < 0 && !power.is_finite() {
        return 0.0;
    }
    let whole = if round { libm::rint(scaled) } else { libm::trunc(scaled) };
    if places < 0 { whole * power } else { whole / power }
}

/// Numbers among themselves as numbers; with any day, as moments; with any text, as text.
fn greatest_or_least(greatest: bool, args: &[Value], ctx: &mut EvalContext) -> Outcome {
    if args.iter().any(|v| matches!(v, Value::Date(_) | Value::DateTime(_))) {
        return latest_or_earliest(greatest, args, ctx);
    }
    let times = args.iter().filter(|v| matches!(v, Value::Time(_))).count();
    let mixed = times > 0 && times < args.len();
    let collation =
        args.iter().filter(|v| v.is_string()).map(Value::collation).reduce(common_collation);
    let collation = collation.or(mixed.then(crate::Collation::default));
    // Whichever value it is, it is compared further in the collation of all of them.
    let converted = |value: &Value| match (collation, value) {
        (Some(with), Value::Text(text, _)) if with != crate::Collation::Binary => {
            Value::Text(text.clone(), with)
        }
        (Some(with), value) if !value.is_string() => Value::Text(value.to_display(), with),
        _ => value.clone(),
    };
    let mut best: Option<Value> = None;
    for arg in args {
        let value = converted(arg);
        let better = match &best {
            None => true,
            Some(current) => {
                let with = collation.unwrap_or(crate::Collation::Binary);
                let order = compare_in(&value, current, with)?;
                // As in MySQL, of equal values the last one is the greatest, and the first one the least.
                if greatest { order.is_ge() } else { order.is_lt() }
            }
        };
        if better {
            best = Some(value);
        }
    }
    let best = best.unwrap_or(Value::Null);
    common_number(best, args, ctx)
}

/// Days as long as no argument is a day with a time.
fn latest_or_earliest(latest: bool, args: &[Value], ctx: &mut EvalContext) -> Outcome {
    let mut best: Option<DateTime> = None;
    for arg in args {
        let Some(value) = moment(arg, true, ctx)? else { return Ok(Value::Null) };
        let better = best.is_none_or(|current| match latest {
            true => value.packed() > current.packed(),
            false => value.packed() < current.packed(),
        });
        if better {
            best = Some(value);
        }
    }
    let with_time = args.iter().any(|v| matches!(v, Value::DateTime(_)));
    Ok(best
        .map_or(Value::Null, |m| if with_time { Value::DateTime(m) } else { Value::Date(m.date) }))
}

/// The result takes the common type of all arguments: 2 of (2, 1.5) is 2.0.
fn common_number(best: Value, args: &[Value], ctx: &mut EvalContext) -> Outcome {
    if args.iter().any(|v| v.is_string() || v.is_temporal()) {
        return Ok(best);
    }
    if args.iter().any(Value::is_real) {
        return Ok(Value::Double(to_double(&best, ctx)?));
    }
    let scale = args.iter().filter_map(|v| match v {
        Value::Decimal(d) => Some(d.shown_scale()),
        _ => None,
    });
    match scale.max() {
        Some(scale) => Ok(Value::Decimal(to_decimal(&best, ctx)?.round(scale))),
        None => Ok(best),
    }
}

/// `INTERVAL(n, a, b, …)`: how many of the others, which ascend, are not above the first; NULLs are not.
fn interval(args: &[Value], ctx: &mut EvalContext) -> Outcome {
    let Some((first, others)) = args.split_first() else { return Ok(Value::Null) };
    if first.is_null() {
        return Ok(Value::Int(-1));
    }
    let first = to_number(first, ctx)?;
    for (count, other) in (0_i64..).zip(others) {
        if !other.is_null() && to_number(other, ctx)?.cmp(&first).is_gt() {
            return Ok(Value::Int(count));
        }
    }
    Ok(Value::Int(i64::try_from(others.len()).unwrap_or(i64::MAX)))
}

/// The CRC of IEEE 802.3, bit by bit: it is rare, and a table would only cost memory.
fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = !0_u32;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            let mask = (crc & 1).wrapping_neg();
            crc = (crc >> 1) ^ (0xedb8_8320 & mask);
        }
    }
    !crc
}
