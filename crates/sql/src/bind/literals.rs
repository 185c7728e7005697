//! Literals and type names.

use super::{Binder, collation_named};
use crate::error;
use crate::expr::External;
use lats_values::{Collation, ColumnType, Decimal, Expr, SqlError, TypeKind, Value};
use sqlparser::ast::{
    self, BinaryLength, CharacterLength, DataType, ExactNumberInfo, TimezoneInfo, ValueWithSpan,
};

impl Binder<'_> {
    pub(super) fn value(&mut self, value: &ValueWithSpan) -> Result<Expr, SqlError> {
        if let ast::Value::Placeholder(text) = &value.value {
            if text != "?" {
                return Err(error::syntax(&format!("near '{text}'")));
            }
            let at = (value.span.start.line, value.span.start.column);
            let Some(number) = self.placeholders.get(&at).copied() else {
                return Err(error::syntax("near '?'"));
            };
            return Ok(self.external(External::Parameter(number)));
        }
        literal(&value.value).map(Expr::Literal)
    }
}

/// The value of a literal.
///
/// # Errors
/// 1235 for kinds of literals that we do not have.
pub fn literal(value: &ast::Value) -> Result<Value, SqlError> {
    match value {
        ast::Value::Number(text, _) => number(text),
        ast::Value::SingleQuotedString(text)
        | ast::Value::DoubleQuotedString(text)
        | ast::Value::NationalStringLiteral(text) => Ok(Value::text(text)),
        ast::Value::HexStringLiteral(digits) => hex(digits),
        ast::Value::Boolean(value) => Ok(Value::bool(*value)),
        ast::Value::Null => Ok(Value::Null),
        other => Err(error::not_supported(&format!("literal {other}"))),
    }
}

/// A number as MySQL types it: whole numbers, exact decimals, or with an exponent DOUBLE.
pub(crate) fn number(text: &str) -> Result<Value, SqlError> {
    if let Ok(value) = text.parse::<i64>() {
        return Ok(Value::Int(value));
    }
    if let Ok(value) = text.parse::<u64>() {
        return Ok(Value::UInt(value));
    }
    let real = text.contains(['e', 'E']);
    if !real && let Some(value) = Decimal::parse(text) {
        return Ok(Value::Decimal(value));
    }
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(Value::Double(value)),
        Ok(_) => Err(error::make(1367, "22007", &format!("Illegal double '{text}' value found"))),
        Err(_) => Err(error::syntax(&format!("near '{text}'"))),
    }
}

fn hex(digits: &str) -> Result<Value, SqlError> {
    let padded = if digits.len() % 2 == 1 { format!("0{digits}") } else { digits.to_owned() };
    let pairs = padded.as_bytes().chunks(2);
    let bytes: Option<Vec<u8>> =
        pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect();
    bytes.map(Value::Bytes).ok_or_else(|| error::syntax(&format!("near '{digits}'")))
}

/// A column's type as written in a definition.
///
/// # Errors
/// 1235 for types that we do not have, 1074 and its like for lengths out of range.
pub fn data_type(data_type: &DataType, collation: Collation) -> Result<ColumnType, SqlError> {
    use TypeKind as K;
    let (kind, unsigned) = match data_type {
        DataType::TinyInt(_) | DataType::Bool | DataType::Boolean => (K::TinyInt, false),
        DataType::TinyIntUnsigned(_) => (K::TinyInt, true),
        DataType::SmallInt(_) | DataType::Int2(_) => (K::SmallInt, false),
        DataType::SmallIntUnsigned(_) | DataType::Int2Unsigned(_) => (K::SmallInt, true),
        DataType::MediumInt(_) => (K::MediumInt, false),
        DataType::MediumIntUnsigned(_) => (K::MediumInt, true),
        DataType::Int(_) | DataType::Integer(_) | DataType::Int4(_) => (K::Int, false),
        DataType::IntUnsigned(_) | DataType::IntegerUnsigned(_) | DataType::Int4Unsigned(_) => {
            (K::Int, true)
        }
        DataType::BigInt(_) | DataType::Int8(_) => (K::BigInt, false),
        DataType::BigIntUnsigned(_) | DataType::Int8Unsigned(_) => (K::BigInt, true),
        DataType::Float(info) => (float(info)?, false),
        DataType::FloatUnsigned(info) => (float(info)?, true),
        DataType::Float4 => (K::Float, false),
        DataType::Double(info) => (double(info)?, false),
        DataType::DoubleUnsigned(info) => (double(info)?, true),
        DataType::DoublePrecision | DataType::Real | DataType::Float8 => (K::Double, false),
        DataType::DoublePrecisionUnsigned | DataType::RealUnsigned => (K::Double, true),
        DataType::Decimal(info) | DataType::Numeric(info) | DataType::Dec(info) => {
            (decimal(info)?, false)
        }
        DataType::DecimalUnsigned(info) | DataType::DecUnsigned(info) => (decimal(info)?, true),
        other => (other_kind(other, collation)?, false),
    };
    let mut found = ColumnType::new(kind);
    found.unsigned = unsigned;
    if kind.is_text() {
        if collation == Collation::Binary {
            return Err(error::not_supported("CHARACTER SET binary for text; use BINARY or BLOB"));
        }
        found.collation = collation;
    }
    found.is_boolean =
        matches!(data_type, DataType::TinyInt(Some(1)) | DataType::Bool | DataType::Boolean);
    Ok(found)
}

fn other_kind(data_type: &DataType, _collation: Collation) -> Result<TypeKind, SqlError> {
    use TypeKind as K;
    Ok(match data_type {
        DataType::Char(length) | DataType::Character(length) => {
            K::Char { chars: characters(length.as_ref(), Some(1), 255)? }
        }
        DataType::Varchar(length)
        | DataType::CharVarying(length)
        | DataType::CharacterVarying(length)
        | DataType::Nvarchar(length) => {
            K::VarChar { chars: characters(length.as_ref(), None, 16_383)? }
        }
        DataType::Binary(length) => K::Binary { bytes: bounded(length.unwrap_or(1), 255)? },
        DataType::Varbinary(Some(BinaryLength::IntegerLength { length })) => {
            K::VarBinary { bytes: bounded(*length, 65_535)? }
        }
        DataType::TinyText => K::TinyText,
        DataType::Text => K::Text,
        DataType::MediumText => K::MediumText,
        DataType::LongText => K::LongText,
        DataType::TinyBlob => K::TinyBlob,
        DataType::Blob(None) => K::Blob,
        DataType::MediumBlob => K::MediumBlob,
        DataType::LongBlob => K::LongBlob,
        DataType::Date => K::Date,
        DataType::Time(fsp, TimezoneInfo::None) => K::Time { fsp: fraction(*fsp)? },
        DataType::Datetime(fsp) => K::DateTime { fsp: fraction(*fsp)? },
        DataType::Timestamp(fsp, TimezoneInfo::None) => K::Timestamp { fsp: fraction(*fsp)? },
        DataType::Custom(name, args) => custom(&name.to_string(), args)?,
        other => return Err(error::not_supported(&format!("type {other}"))),
    })
}

fn custom(name: &str, args: &[String]) -> Result<TypeKind, SqlError> {
    match (name.to_ascii_uppercase().as_str(), args) {
        ("YEAR", []) => Ok(TypeKind::Year),
        ("YEAR", [four]) if four == "4" => Ok(TypeKind::Year),
        _ => Err(error::not_supported(&format!("type {name}"))),
    }
}

fn characters(
    length: Option<&CharacterLength>,
    default: Option<u16>,
    limit: u16,
) -> Result<u16, SqlError> {
    match length {
        Some(CharacterLength::IntegerLength { length, unit: None }) => bounded(*length, limit),
        Some(other) => Err(error::not_supported(&format!("length {other}"))),
        None => default.ok_or_else(|| error::syntax("VARCHAR needs a length")),
    }
}

fn bounded(length: u64, limit: u16) -> Result<u16, SqlError> {
    match u16::try_from(length) {
        Ok(length) if length <= limit => Ok(length),
        _ => Err(error::make(
            1074,
            "42000",
            &format!("Column length too big (max = {limit}); use BLOB or TEXT instead"),
        )),
    }
}

fn fraction(fsp: Option<u64>) -> Result<u8, SqlError> {
    match u8::try_from(fsp.unwrap_or(0)) {
        Ok(fsp) if fsp <= 6 => Ok(fsp),
        _ => Err(error::make(1426, "42000", "Too-big precision specified. Maximum is 6.")),
    }
}

fn float(info: &ExactNumberInfo) -> Result<TypeKind, SqlError> {
    match info {
        ExactNumberInfo::None => Ok(TypeKind::Float),
        ExactNumberInfo::Precision(0..=24) => Ok(TypeKind::Float),
        ExactNumberInfo::Precision(25..=53) => Ok(TypeKind::Double),
        other => Err(error::not_supported(&format!("FLOAT{other}"))),
    }
}

fn double(info: &ExactNumberInfo) -> Result<TypeKind, SqlError> {
    match info {
        ExactNumberInfo::None => Ok(TypeKind::Double),
        other => Err(error::not_supported(&format!("DOUBLE{other}"))),
    }
}

/// DECIMAL's precision and scale.
///
/// # Errors
/// 1426, 1425 and 1427 for numbers out of range.
pub(super) fn decimal(info: &ExactNumberInfo) -> Result<TypeKind, SqlError> {
    let (precision, scale) = match info {
        ExactNumberInfo::None => (10, 0),
        ExactNumberInfo::Precision(precision) => (*precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => (*precision, *scale),
    };
    let precision = if precision == 0 { 10 } else { precision };
    match (u8::try_from(precision), u8::try_from(scale)) {
        (Ok(precision @ ..=65), Ok(scale @ ..=30)) if scale <= precision => {
            Ok(TypeKind::Decimal { precision, scale })
        }
        (Ok(..=65), Ok(..=30)) => Err(error::make(
            1427,
            "42000",
            "For float(M,D), double(M,D) or decimal(M,D), M must be >= D.",
        )),
        (Ok(..=65), _) => {
            Err(error::make(1425, "42000", "Too big scale specified. Maximum is 30."))
        }
        _ => Err(error::make(1426, "42000", "Too-big precision specified. Maximum is 65.")),
    }
}

/// The collation that a character set's name stands for.
///
/// # Errors
/// 1115 for unknown names, 1235 for character sets that we do not have.
pub fn charset_collation(name: &str) -> Result<Collation, SqlError> {
    match name.to_ascii_lowercase().as_str() {
        "utf8mb4" | "utf8" | "utf8mb3" => collation_named("utf8mb4_0900_ai_ci"),
        "binary" => Ok(Collation::Binary),
        "latin1" | "ascii" | "ucs2" | "utf16" | "utf32" | "cp1252" | "gbk" | "sjis" => {
            Err(error::not_supported(&format!("character set {name}; use utf8mb4")))
        }
        _ => Err(error::make(1115, "42000", &format!("Unknown character set: '{name}'"))),
    }
}
