//! Literals and type names.

use super::collation_named;
use crate::error;
use crate::syntax::name;
use lats_mysql_syntax::Tree;
use lats_mysql_syntax::tree::{self, DataType, ExprId, TemporalKind, Text, TypeName};
use lats_values::{Collation, ColumnType, Decimal, EvalContext, Expr, SqlError, TypeKind, Value};

/// The value of a literal; none for what is no literal.
///
/// # Errors
/// What is wrong with the literal, or 1235 for kinds of literals that we do not have.
pub fn literal(tree: &Tree, id: ExprId) -> Result<Option<Value>, SqlError> {
    use tree::Expr as E;
    Ok(Some(match *tree.expr(id) {
        E::Null => Value::Null,
        E::True => Value::Int(1),
        E::False => Value::Int(0),
        E::Number { digits, .. } => number(name(tree, digits)?)?,
        E::Text { charset, text, .. } => text_literal(tree, charset, text)?,
        E::Hex { charset, digits } => {
            let digits = name(tree, digits)?;
            with_charset(tree, charset, hex_bytes(digits))?
        }
        E::Bits { charset, digits } => {
            let digits = name(tree, digits)?;
            with_charset(tree, charset, bit_bytes(digits))?
        }
        E::Temporal { kind, text } => temporal(kind, name(tree, text)?)?,
        E::Unary(tree::UnaryOp::Minus, inner) => match *tree.expr(inner) {
            E::Number { digits, .. } => number(&format!("-{}", name(tree, digits)?))?,
            _ => return Ok(None),
        },
        E::Unary(tree::UnaryOp::Plus, inner) => match *tree.expr(inner) {
            E::Number { digits, .. } => number(name(tree, digits)?)?,
            _ => return Ok(None),
        },
        _ => return Ok(None),
    }))
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

/// Text is utf8mb4 as it comes; what is not is a string of bytes.
fn text_literal(tree: &Tree, charset: Text, text: Text) -> Result<Value, SqlError> {
    let bytes = tree.text(text);
    if charset.is_some() {
        return with_charset(tree, charset, bytes.to_vec());
    }
    Ok(match core::str::from_utf8(bytes) {
        Ok(text) => Value::text(text),
        Err(_) => Value::Bytes(bytes.to_vec()),
    })
}

/// Bytes behind an introducer such as `_utf8mb4`.
fn with_charset(tree: &Tree, charset: Text, bytes: Vec<u8>) -> Result<Value, SqlError> {
    if charset.is_none() {
        return Ok(Value::Bytes(bytes));
    }
    let charset = name(tree, charset)?;
    match charset_collation(charset)? {
        Collation::Binary => Ok(Value::Bytes(bytes)),
        _ => match String::from_utf8(bytes) {
            Ok(text) => Ok(Value::text(&text)),
            Err(error) => {
                let (at, bytes) = (error.utf8_error().valid_up_to(), error.as_bytes());
                let rest = bytes.get(at..).unwrap_or(bytes);
                let hex: String = rest.iter().take(6).map(|byte| format!("{byte:02X}")).collect();
                let text = format!("Invalid {charset} character string: '{hex}'");
                Err(error::make(1300, "HY000", &text))
            }
        },
    }
}

fn hex_bytes(digits: &str) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).unwrap_or(0);
    let padded = if digits.len() % 2 == 1 { format!("0{digits}") } else { digits.to_owned() };
    let pair = |pair: &[u8]| u8::try_from(digit(pair[0]) * 16 + digit(pair[1])).unwrap_or(0);
    padded.as_bytes().chunks_exact(2).map(pair).collect()
}

fn bit_bytes(digits: &str) -> Vec<u8> {
    let missing = (8 - digits.len() % 8) % 8;
    let padded = format!("{}{digits}", "0".repeat(missing));
    let byte = |bits: &[u8]| bits.iter().fold(0u8, |byte, bit| byte << 1 | (bit - b'0'));
    padded.as_bytes().chunks_exact(8).map(byte).collect()
}

fn temporal(kind: TemporalKind, shown: &str) -> Result<Value, SqlError> {
    // The literal has as many digits of a fraction as were written.
    let digits = shown.split_once('.').map_or(0, |(_, digits)| digits.len().min(6));
    let fsp = u8::try_from(digits).unwrap_or(6);
    let (kind, name) = match kind {
        TemporalKind::Date => (TypeKind::Date, "DATE"),
        TemporalKind::Time => (TypeKind::Time { fsp }, "TIME"),
        TemporalKind::Timestamp => (TypeKind::DateTime { fsp }, "DATETIME"),
    };
    let text = Expr::Literal(Value::text(shown));
    let cast = Expr::Cast { arg: Box::new(text), to: ColumnType::new(kind) };
    let none: &[Value] = &[];
    let source = crate::expr::ValuesSource { row: none, externals: none };
    match lats_values::eval(&cast, &source, &mut EvalContext::new(false))? {
        Value::Null => {
            Err(error::make(1525, "HY000", &format!("Incorrect {name} value: '{shown}'")))
        }
        value => Ok(value),
    }
}

/// A number in a type's parentheses.
pub(super) fn length(tree: &Tree, text: Text) -> Result<Option<u64>, SqlError> {
    if text.is_none() {
        return Ok(None);
    }
    let digits = name(tree, text)?;
    digits.parse().map(Some).map_err(|_| error::make(1439, "42000", "Display width out of range"))
}

/// A column's type as written in a definition.
///
/// # Errors
/// 1235 for types that we do not have, 1074 and its like for lengths out of range.
pub fn data_type(
    tree: &Tree,
    data_type: &DataType,
    collation: Collation,
) -> Result<ColumnType, SqlError> {
    use TypeName as T;
    if data_type.is_zerofill {
        return Err(error::not_supported("ZEROFILL"));
    }
    let collation = match data_type.charset {
        tree::Charset::None if data_type.is_binary => collation_named("utf8mb4_bin")?,
        tree::Charset::None => collation,
        tree::Charset::Name(text) if data_type.is_binary => {
            charset_collation(name(tree, text)?)?;
            collation_named("utf8mb4_bin")?
        }
        tree::Charset::Name(text) => charset_collation(name(tree, text)?)?,
        tree::Charset::Ascii => return Err(error::not_supported("character set latin1")),
        tree::Charset::Unicode => return Err(error::not_supported("character set ucs2")),
        tree::Charset::Byte => Collation::Binary,
    };
    let kind = kind_of(tree, data_type)?;
    let mut found = ColumnType::new(kind);
    found.unsigned = data_type.is_unsigned;
    if kind.is_text() {
        if collation == Collation::Binary {
            return Err(error::not_supported("CHARACTER SET binary for text; use BINARY or BLOB"));
        }
        found.collation = collation;
    }
    let one_digit = length(tree, data_type.length)? == Some(1);
    found.is_boolean = data_type.name == T::Bool || (data_type.name == T::TinyInt && one_digit);
    Ok(found)
}

fn kind_of(tree: &Tree, data_type: &DataType) -> Result<TypeKind, SqlError> {
    use TypeKind as K;
    use TypeName as T;
    let length = length(tree, data_type.length)?;
    let decimals = self::length(tree, data_type.decimals)?;
    Ok(match data_type.name {
        T::TinyInt | T::Bool => K::TinyInt,
        T::SmallInt => K::SmallInt,
        T::MediumInt => K::MediumInt,
        T::Int => K::Int,
        T::BigInt => K::BigInt,
        T::Real | T::Double => match length {
            None => K::Double,
            Some(_) => return Err(error::not_supported("DOUBLE with a number of digits")),
        },
        T::Float => match (length, decimals) {
            (None | Some(0..=24), None) => K::Float,
            (Some(25..=53), None) => K::Double,
            (Some(_), None) => return Err(column_specifier()),
            _ => return Err(error::not_supported("FLOAT with a number of digits")),
        },
        T::Decimal => decimal(length, decimals)?,
        T::Char | T::NationalChar => K::Char { chars: bounded(length.unwrap_or(1), 255)? },
        T::VarChar | T::NationalVarChar => {
            K::VarChar { chars: bounded(length.unwrap_or(0), 16_383)? }
        }
        T::Binary => K::Binary { bytes: bounded(length.unwrap_or(1), 255)? },
        T::VarBinary => K::VarBinary { bytes: bounded(length.unwrap_or(0), 65_535)? },
        T::Year => K::Year,
        T::Date => K::Date,
        T::Time => K::Time { fsp: fraction(length)? },
        T::DateTime => K::DateTime { fsp: fraction(length)? },
        T::Timestamp => K::Timestamp { fsp: fraction(length)? },
        T::TinyBlob => K::TinyBlob,
        T::Blob => sized(length, [K::TinyBlob, K::Blob, K::MediumBlob, K::LongBlob], 1),
        T::MediumBlob => K::MediumBlob,
        T::LongBlob => K::LongBlob,
        T::TinyText => K::TinyText,
        T::Text => sized(length, [K::TinyText, K::Text, K::MediumText, K::LongText], 4),
        T::MediumText => K::MediumText,
        T::LongText => K::LongText,
        T::Signed | T::Unsigned => K::BigInt,
        other => return Err(error::not_supported(&format!("type {}", type_name(other)))),
    })
}

fn type_name(name: TypeName) -> String {
    format!("{name:?}").to_ascii_uppercase()
}

/// The smallest of the four sizes of TEXT or BLOB that holds so many characters.
fn sized(length: Option<u64>, kinds: [TypeKind; 4], bytes_per_char: u64) -> TypeKind {
    let [tiny, plain, medium, long] = kinds;
    match length.map(|length| length.saturating_mul(bytes_per_char)) {
        None | Some(256..=65_535) => plain,
        Some(0..=255) => tiny,
        Some(65_536..=16_777_215) => medium,
        Some(_) => long,
    }
}

fn column_specifier() -> SqlError {
    error::make(1063, "42000", "Incorrect column specifier for column")
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

pub(super) fn fraction(fsp: Option<u64>) -> Result<u8, SqlError> {
    match u8::try_from(fsp.unwrap_or(0)) {
        Ok(fsp) if fsp <= 6 => Ok(fsp),
        _ => Err(error::make(1426, "42000", "Too-big precision specified. Maximum is 6.")),
    }
}

/// DECIMAL's precision and scale.
///
/// # Errors
/// 1426, 1425 and 1427 for numbers out of range.
pub(super) fn decimal(precision: Option<u64>, scale: Option<u64>) -> Result<TypeKind, SqlError> {
    let precision = precision.filter(|precision| *precision > 0).unwrap_or(10);
    match (u8::try_from(precision), u8::try_from(scale.unwrap_or(0))) {
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
