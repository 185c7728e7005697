//! Storing into columns of text and bytes.

use super::ConvertContext;
use crate::{ColumnType, SqlError, TypeKind, Value, text};
use alloc::{format, string::String, vec::Vec};

type Ctx<'a, 'b> = &'a mut ConvertContext<'b>;

pub(super) fn store_text(
    value: Value,
    to: &ColumnType,
    ctx: Ctx<'_, '_>,
) -> Result<Value, SqlError> {
    let mut text = match value {
        Value::Text(text, _) => text,
        Value::Bytes(bytes) => utf8(bytes, ctx)?,
        Value::Double(number) => double(number, to.kind, ctx)?,
        other => other.to_display(),
    };
    let fit = fitting(&text, to.kind);
    if fit < text.len() {
        let spaces = text.get(fit..).is_some_and(|rest| rest.bytes().all(|b| b == b' '));
        if spaces {
            // Only spaces are lost: never an error, and for CHAR not even a note.
            if !matches!(to.kind, TypeKind::Char { .. }) {
                ctx.note(ctx.truncated());
            }
        } else {
            too_long(ctx)?;
        }
        text.truncate(fit);
    }
    if matches!(to.kind, TypeKind::Char { .. }) {
        text.truncate(text.trim_end_matches(' ').len());
    }
    Ok(Value::Text(text, to.collation))
}

/// A double loses digits behind the point before it is too long.
fn double(number: f64, kind: TypeKind, ctx: Ctx<'_, '_>) -> Result<String, SqlError> {
    let width = match kind {
        TypeKind::Char { chars } | TypeKind::VarChar { chars } => chars,
        TypeKind::Binary { bytes } | TypeKind::VarBinary { bytes } => bytes,
        _ => u16::MAX,
    };
    let (text, fits) = text::double_in_width(number, usize::from(width));
    if !fits {
        too_long(ctx)?;
    }
    Ok(text)
}

fn too_long(ctx: Ctx<'_, '_>) -> Result<(), SqlError> {
    if ctx.strict {
        return Err(SqlError::data_too_long(ctx.column, ctx.row_number));
    }
    ctx.note(ctx.truncated());
    Ok(())
}

/// Bytes of the longest front of the text that fits the column.
fn fitting(text: &str, kind: TypeKind) -> usize {
    match kind {
        TypeKind::Char { chars } | TypeKind::VarChar { chars } => {
            text::first_chars(text, usize::from(chars)).len()
        }
        _ => text.floor_char_boundary(kind.max_variable_bytes()),
    }
}

fn utf8(bytes: Vec<u8>, ctx: Ctx<'_, '_>) -> Result<String, SqlError> {
    String::from_utf8(bytes).or_else(|error| {
        let good = error.utf8_error().valid_up_to();
        let mut bytes = error.into_bytes();
        let bad: String = bytes.iter().skip(good).take(6).map(|b| format!("\\x{b:02X}")).collect();
        ctx.warn(ctx.incorrect("string", &bad))?;
        bytes.truncate(good);
        Ok(String::from_utf8(bytes).unwrap_or_default())
    })
}

pub(super) fn store_bytes(
    value: Value,
    to: &ColumnType,
    ctx: Ctx<'_, '_>,
) -> Result<Value, SqlError> {
    let mut bytes = match value {
        Value::Text(text, _) => text.into_bytes(),
        Value::Bytes(bytes) => bytes,
        Value::Double(number) => double(number, to.kind, ctx)?.into_bytes(),
        other => other.to_text().unwrap_or_default(),
    };
    let limit = to.kind.max_variable_bytes();
    if bytes.len() > limit {
        too_long(ctx)?;
        bytes.truncate(limit);
    }
    if let TypeKind::Binary { bytes: length } = to.kind {
        bytes.resize(usize::from(length), 0);
    }
    Ok(Value::Bytes(bytes))
}
