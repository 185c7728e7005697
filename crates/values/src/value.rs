//! One SQL value and its text.

#[cfg(test)]
mod tests;

use crate::{Collation, Date, DateTime, Decimal, Time, text};
use alloc::{
    borrow::Cow,
    string::{String, ToString},
    vec::Vec,
};
use serde::{Deserialize, Serialize};

/// A value. TIMESTAMP columns give `DateTime`, YEAR columns `UInt`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Value {
    /// No value.
    Null,
    /// A signed whole number.
    Int(i64),
    /// An unsigned whole number.
    UInt(u64),
    /// Single precision.
    Float(f32),
    /// Double precision.
    Double(f64),
    /// Exact decimal.
    Decimal(Decimal),
    /// Text and how it is compared.
    Text(String, Collation),
    /// Bytes.
    Bytes(#[serde(with = "serde_bytes")] Vec<u8>),
    /// A day.
    Date(Date),
    /// A time of day or a span.
    Time(Time),
    /// A day and a time of day.
    DateTime(DateTime),
}

impl Value {
    /// Text with the default collation.
    pub fn text(value: &str) -> Self {
        Self::Text(String::from(value), Collation::default())
    }

    /// 1 or 0.
    pub fn bool(value: bool) -> Self {
        Self::Int(i64::from(value))
    }

    /// Whether it is NULL.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// The bytes that MySQL's text protocol sends; `None` for NULL.
    pub fn to_text(&self) -> Option<Vec<u8>> {
        self.as_bytes().map(Cow::into_owned)
    }

    /// The same as [`Self::to_text`], without a copy where there is one to borrow.
    pub fn as_bytes(&self) -> Option<Cow<'_, [u8]>> {
        let owned = match self {
            Self::Null => return None,
            Self::Text(text, _) => return Some(Cow::Borrowed(text.as_bytes())),
            Self::Bytes(bytes) => return Some(Cow::Borrowed(bytes)),
            Self::Int(value) => value.to_string(),
            Self::UInt(value) => value.to_string(),
            Self::Float(value) => text::format_float(*value),
            Self::Double(value) => text::format_double(*value),
            Self::Decimal(value) => value.to_text(),
            Self::Date(value) => value.to_string(),
            Self::Time(value) => value.to_string(),
            Self::DateTime(value) => value.to_string(),
        };
        Some(Cow::Owned(owned.into_bytes()))
    }

    /// The same as [`Self::to_text`], with so many digits after the point of a double (see
    /// [`crate::shown_decimals`]).
    pub fn to_text_with(&self, decimals: Option<u8>) -> Option<Vec<u8>> {
        match (self, decimals) {
            (Self::Double(value), Some(decimals)) => {
                Some(text::format_double_fixed(*value, decimals).into_bytes())
            }
            _ => self.to_text(),
        }
    }

    /// The same as text for messages: bytes that are no UTF-8 are replaced.
    pub fn to_display(&self) -> String {
        match self.as_bytes() {
            Some(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            None => String::from("NULL"),
        }
    }

    /// What it counts as in a condition: `None` for NULL, false for zero and for text that begins
    /// with no number other than zero.
    pub fn truth(&self) -> Option<bool> {
        match self {
            Self::Null => None,
            Self::Int(value) => Some(*value != 0),
            Self::UInt(value) => Some(*value != 0),
            Self::Float(value) => Some(*value != 0.0),
            Self::Double(value) => Some(*value != 0.0),
            Self::Decimal(value) => Some(!value.is_zero()),
            Self::Text(text, _) => Some(text::double_prefix(text.as_bytes()).0 != 0.0),
            Self::Bytes(bytes) => Some(text::double_prefix(bytes).0 != 0.0),
            Self::Date(value) => Some(value.to_number() != 0),
            Self::Time(value) => Some(value.total_micros() != 0),
            Self::DateTime(value) => Some(value.packed() != 0),
        }
    }

    /// Whether it is text or bytes.
    pub fn is_string(&self) -> bool {
        matches!(self, Self::Text(..) | Self::Bytes(_))
    }

    /// Whether it is a day or a time.
    pub fn is_temporal(&self) -> bool {
        matches!(self, Self::Date(_) | Self::Time(_) | Self::DateTime(_))
    }

    /// Whether it is FLOAT or DOUBLE.
    pub fn is_real(&self) -> bool {
        matches!(self, Self::Float(_) | Self::Double(_))
    }

    /// The collation of text; binary for everything else.
    pub fn collation(&self) -> Collation {
        match self {
            Self::Text(_, collation) => *collation,
            _ => Collation::Binary,
        }
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::text(value)
    }
}
