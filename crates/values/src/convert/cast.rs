//! CAST, and bringing a result to the type that its metadata names.

use super::{ConvertContext, convert_to_column, moment};
use crate::{
    Collation, ColumnType, Decimal, EvalContext, SqlError, Time, TypeKind, Value,
    compare::Number,
    expr::{to_decimal, to_double, to_integer},
    text,
};
use alloc::{format, vec::Vec};

/// `CAST(value AS type)`. BIGINT stands for SIGNED and UNSIGNED, LONGTEXT and LONGBLOB for CHAR and
/// BINARY without length.
pub fn cast(value: Value, to: &ColumnType, ctx: &mut EvalContext) -> Result<Value, SqlError> {
    if value.is_null() {
        return Ok(Value::Null);
    }
    match to.kind {
        TypeKind::BigInt => integer(&value, to.unsigned, ctx),
        TypeKind::Double => Ok(Value::Double(to_double(&value, ctx)?)),
        TypeKind::Float => {
            let number = to_double(&value, ctx)? as f32;
            if number.is_finite() {
                return Ok(Value::Float(number));
            }
            Err(SqlError::out_of_range_expr("FLOAT", &value.to_display()))
        }
        TypeKind::Decimal { precision, scale } => decimal(&value, precision, scale, ctx),
        TypeKind::Date => Ok(moment::day(&value, false, ctx)?.map_or(Value::Null, Value::Date)),
        TypeKind::DateTime { fsp } | TypeKind::Timestamp { fsp } => {
            let moment = moment::moment(&value, false, ctx)?.and_then(|m| m.round(fsp));
            Ok(moment.map_or(Value::Null, Value::DateTime))
        }
        TypeKind::Time { fsp } => {
            Ok(moment::time(&value, ctx)?.map_or(Value::Null, |t| Value::Time(t.round(fsp))))
        }
        kind if kind.is_text() => text_cast(value, to, ctx),
        kind if kind.is_bytes() => bytes_cast(value, kind, ctx),
        _ => {
            // Not in MySQL's CAST: as a store that warns.
            let mut store = ConvertContext::new(ctx.strict, "", 1);
            let result = convert_to_column(value, to, &mut store);
            store.warnings.into_iter().for_each(|warning| ctx.note(warning));
            result
        }
    }
}

fn integer(value: &Value, unsigned: bool, ctx: &mut EvalContext) -> Result<Value, SqlError> {
    let wide = match Number::of(value) {
        // Exact decimals and doubles stop at the ends of the type; other numbers keep their bits.
        Number::Decimal(_) => {
            let wide = to_integer(value, ctx)?;
            let (low, high) = crate::row::integer_range(8, unsigned);
            if !(low..=high).contains(&wide) {
                ctx.warn(SqlError::truncated_wrong_value("DECIMAL", &value.to_display()))?;
            }
            wide.clamp(low, high)
        }
        Number::Double(_) if !value.is_string() && !unsigned => {
            to_integer(value, ctx)?.min(i128::from(i64::MAX))
        }
        _ => to_integer(value, ctx)?,
    };
    Ok(if unsigned { Value::UInt(wide as u64) } else { Value::Int(wide as i64) })
}

fn decimal(
    value: &Value,
    precision: u8,
    scale: u8,
    ctx: &mut EvalContext,
) -> Result<Value, SqlError> {
    let exact = to_decimal(value, ctx)?;
    let rounded = exact.round(scale);
    if rounded.fits(precision, scale) {
        return Ok(Value::Decimal(rounded));
    }
    ctx.warn(SqlError::out_of_range("", 1))?;
    let max = Decimal::max_of(precision, scale);
    Ok(Value::Decimal(if exact.is_negative() { max.neg() } else { max }))
}

fn text_cast(value: Value, to: &ColumnType, ctx: &mut EvalContext) -> Result<Value, SqlError> {
    let (mut text, collation) = match value {
        Value::Text(text, collation) => (text, collation),
        Value::Bytes(bytes) => match alloc::string::String::from_utf8(bytes) {
            Ok(text) => (text, Collation::default()),
            Err(error) => {
                ctx.warn(SqlError::invalid_utf8(error.as_bytes()))?;
                return Ok(Value::Null);
            }
        },
        other => (other.to_display(), Collation::default()),
    };
    if let TypeKind::Char { chars } | TypeKind::VarChar { chars } = to.kind {
        let fit = text::first_chars(&text, usize::from(chars)).len();
        if fit < text.len() {
            ctx.warn(SqlError::truncated_wrong_value(&format!("CHAR({chars})"), &text))?;
            text.truncate(fit);
        }
    }
    Ok(Value::Text(text, collation))
}

fn bytes_cast(value: Value, kind: TypeKind, ctx: &mut EvalContext) -> Result<Value, SqlError> {
    let mut bytes: Vec<u8> = match value {
        Value::Text(text, _) => text.into_bytes(),
        Value::Bytes(bytes) => bytes,
        other => other.to_text().unwrap_or_default(),
    };
    if let TypeKind::Binary { bytes: length } | TypeKind::VarBinary { bytes: length } = kind {
        if bytes.len() > usize::from(length) {
            let shown = text::lossy(&bytes);
            ctx.warn(SqlError::truncated_wrong_value(&format!("BINARY({length})"), &shown))?;
            bytes.truncate(usize::from(length));
        }
        if matches!(kind, TypeKind::Binary { .. }) {
            bytes.resize(usize::from(length), 0);
        }
    }
    Ok(Value::Bytes(bytes))
}

/// Brings a computed value to the type that [`crate::result_type`] names, as the last step before
/// a result row is sent: the branches of IF, CASE, COALESCE and UNION take one common type.
pub fn present(value: Value, to: &ColumnType) -> Value {
    match (to.kind, value) {
        (_, Value::Null) => Value::Null,
        (TypeKind::Decimal { scale, .. }, v @ (Value::Int(_) | Value::UInt(_))) => {
            match Number::of(&v).into_decimal() {
                Some(exact) => Value::Decimal(exact.round(scale)),
                None => v,
            }
        }
        // A constant shows more digits than a column has.
        (TypeKind::Decimal { scale, .. }, Value::Decimal(v))
            if v.shown_scale() <= crate::decimal::SCALE_MAX =>
        {
            Value::Decimal(v.round(scale))
        }
        (TypeKind::Double, v) if !v.is_string() && !v.is_temporal() => {
            Value::Double(Number::of(&v).to_f64())
        }
        (TypeKind::DateTime { fsp }, Value::Date(v)) => {
            Value::DateTime(crate::DateTime { fsp, ..v.at_midnight() })
        }
        (TypeKind::DateTime { fsp }, Value::DateTime(v)) if v.fsp < fsp => {
            Value::DateTime(crate::DateTime { fsp, ..v })
        }
        (TypeKind::Time { fsp }, Value::Time(v)) if v.fsp < fsp => Value::Time(Time { fsp, ..v }),
        (kind, v) if kind.is_text() && !v.is_string() => Value::Text(v.to_display(), to.collation),
        (kind, Value::Text(text, _)) if kind.is_bytes() => Value::Bytes(text.into_bytes()),
        (kind, v) if kind.is_bytes() && !v.is_string() => Value::Bytes(v.to_display().into_bytes()),
        (kind, Value::Text(text, _)) if kind.is_text() => Value::Text(text, to.collation),
        (_, v) => v,
    }
}
