//! Column types and collations, as the catalog and the stored format know them.

mod wire;

use alloc::{format, string::String, vec::Vec};
use serde::{Deserialize, Serialize};

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TypeKind {
    /// One byte.
    TinyInt,
    /// Two bytes.
    SmallInt,
    /// Three bytes.
    MediumInt,
    /// Four bytes.
    Int,
    /// Eight bytes.
    BigInt,
    /// IEEE 754 single precision.
    Float,
    /// IEEE 754 double precision.
    Double,
    /// Exact decimal number.
    Decimal {
        /// Digits in all, at most 65.
        precision: u8,
        /// Digits after the point, at most 30 and at most `precision`.
        scale: u8,
    },
    /// Text whose trailing spaces are not kept.
    Char {
        /// Longest text, in characters.
        chars: u16,
    },
    /// Text.
    VarChar {
        /// Longest text, in characters.
        chars: u16,
    },
    /// Bytes, filled up with zeros.
    Binary {
        /// Length in bytes.
        bytes: u16,
    },
    /// Bytes.
    VarBinary {
        /// Longest value, in bytes.
        bytes: u16,
    },
    /// Text of up to 255 bytes.
    TinyText,
    /// Text of up to 64 KiB.
    Text,
    /// Text of up to 16 MiB.
    MediumText,
    /// Text of up to 4 GiB.
    LongText,
    /// Bytes, up to 255.
    TinyBlob,
    /// Bytes, up to 64 KiB.
    Blob,
    /// Bytes, up to 16 MiB.
    MediumBlob,
    /// Bytes, up to 4 GiB.
    LongBlob,
    /// A day.
    Date,
    /// A time of day or a span of up to 838 hours.
    Time {
        /// Digits of the second's fraction, at most 6.
        fsp: u8,
    },
    /// A day and a time of day.
    DateTime {
        /// Digits of the second's fraction, at most 6.
        fsp: u8,
    },
    /// A moment from 1970 to 2038.
    Timestamp {
        /// Digits of the second's fraction, at most 6.
        fsp: u8,
    },
    /// A year from 1901 to 2155, or 0.
    Year,
    /// One of the type's members. Like the types below it has its number here and on the wire, and is refused by name otherwise.
    Enum,
    /// Some of the type's members.
    Set,
    /// Bits.
    Bit {
        /// How many, at most 64.
        bits: u8,
    },
    /// A document.
    Json,
}

/// How text is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Collation {
    /// Byte by byte: the collation of byte strings and of everything that is not text.
    Binary,
    /// By code point; trailing spaces do not count.
    Utf8mb4Bin,
    /// By upper-cased base letter; trailing spaces do not count.
    Utf8mb4GeneralCi,
    /// By the Unicode Collation Algorithm's primary weights.
    #[default]
    Utf8mb4_0900AiCi,
}

impl Collation {
    /// Every collation.
    pub const ALL: [Self; 4] =
        [Self::Binary, Self::Utf8mb4Bin, Self::Utf8mb4GeneralCi, Self::Utf8mb4_0900AiCi];

    /// Its name in SQL.
    pub fn name(self) -> &'static str {
        match self {
            Self::Binary => "binary",
            Self::Utf8mb4Bin => "utf8mb4_bin",
            Self::Utf8mb4GeneralCi => "utf8mb4_general_ci",
            Self::Utf8mb4_0900AiCi => "utf8mb4_0900_ai_ci",
        }
    }

    /// Its number in the client protocol.
    pub fn id(self) -> u16 {
        match self {
            Self::Binary => 63,
            Self::Utf8mb4Bin => 46,
            Self::Utf8mb4GeneralCi => 45,
            Self::Utf8mb4_0900AiCi => 255,
        }
    }

    /// The collation of this name, in any case.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|c| c.name().eq_ignore_ascii_case(name))
    }

    /// The name of its character set.
    pub fn charset(self) -> &'static str {
        if self == Self::Binary { "binary" } else { "utf8mb4" }
    }

    /// Whether trailing spaces do not count in comparisons.
    pub fn pads_space(self) -> bool {
        matches!(self, Self::Utf8mb4Bin | Self::Utf8mb4GeneralCi)
    }
}

/// The type of a column or of an expression's result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnType {
    /// What it holds.
    pub kind: TypeKind,
    /// Whether the number type has no negative values.
    pub unsigned: bool,
    /// Whether NULL may be stored.
    pub nullable: bool,
    /// How its text is compared; [`Collation::Binary`] for everything that is not text.
    pub collation: Collation,
    /// It was declared as TINYINT(1) or BOOLEAN: drivers take such columns for truth values.
    pub is_boolean: bool,
    /// The members of ENUM and SET, in their order; empty for all other types.
    pub members: Vec<String>,
}

impl ColumnType {
    /// A nullable, signed column with the default collation of its kind.
    pub fn new(kind: TypeKind) -> Self {
        let collation = if kind.is_text() { Collation::default() } else { Collation::Binary };
        let (unsigned, nullable, is_boolean) = (false, true, false);
        Self { kind, unsigned, nullable, collation, is_boolean, members: Vec::new() }
    }

    /// The same without negative values.
    #[must_use]
    pub fn unsigned(self) -> Self {
        Self { unsigned: true, ..self }
    }

    /// The same without NULL.
    #[must_use]
    pub fn not_null(self) -> Self {
        Self { nullable: false, ..self }
    }

    /// The same as a truth value.
    #[must_use]
    pub fn boolean(self) -> Self {
        Self { is_boolean: true, ..self }
    }

    /// The same with this collation.
    #[must_use]
    pub fn collated(self, collation: Collation) -> Self {
        Self { collation, ..self }
    }

    /// The same with these members.
    #[must_use]
    pub fn with_members(self, members: Vec<String>) -> Self {
        Self { members, ..self }
    }

    /// The type as `SHOW COLUMNS` prints it.
    pub fn sql_name(&self) -> String {
        let fraction = |name: &str, fsp: u8| {
            if fsp == 0 { String::from(name) } else { format!("{name}({fsp})") }
        };
        let mut name = match self.kind {
            TypeKind::TinyInt if self.is_boolean => String::from("tinyint(1)"),
            TypeKind::Decimal { precision, scale } => format!("decimal({precision},{scale})"),
            TypeKind::Char { chars } => format!("char({chars})"),
            TypeKind::VarChar { chars } => format!("varchar({chars})"),
            TypeKind::Binary { bytes } => format!("binary({bytes})"),
            TypeKind::VarBinary { bytes } => format!("varbinary({bytes})"),
            TypeKind::Time { fsp } => fraction("time", fsp),
            TypeKind::DateTime { fsp } => fraction("datetime", fsp),
            TypeKind::Timestamp { fsp } => fraction("timestamp", fsp),
            kind => String::from(kind.base_name()),
        };
        if self.unsigned {
            name.push_str(" unsigned");
        }
        name
    }

    /// The most bytes that a stored value takes, without row overhead.
    pub fn max_bytes(&self) -> usize {
        self.kind.fixed_width().unwrap_or_else(|| self.kind.max_variable_bytes())
    }
}

impl TypeKind {
    /// The type's name without lengths.
    pub fn base_name(self) -> &'static str {
        match self {
            Self::TinyInt => "tinyint",
            Self::SmallInt => "smallint",
            Self::MediumInt => "mediumint",
            Self::Int => "int",
            Self::BigInt => "bigint",
            Self::Float => "float",
            Self::Double => "double",
            Self::Decimal { .. } => "decimal",
            Self::Char { .. } => "char",
            Self::VarChar { .. } => "varchar",
            Self::Binary { .. } => "binary",
            Self::VarBinary { .. } => "varbinary",
            Self::TinyText => "tinytext",
            Self::Text => "text",
            Self::MediumText => "mediumtext",
            Self::LongText => "longtext",
            Self::TinyBlob => "tinyblob",
            Self::Blob => "blob",
            Self::MediumBlob => "mediumblob",
            Self::LongBlob => "longblob",
            Self::Date => "date",
            Self::Time { .. } => "time",
            Self::DateTime { .. } => "datetime",
            Self::Timestamp { .. } => "timestamp",
            Self::Year => "year",
            Self::Enum => "enum",
            Self::Set => "set",
            Self::Bit { .. } => "bit",
            Self::Json => "json",
        }
    }

    /// Whether its types list members.
    pub fn has_members(self) -> bool {
        matches!(self, Self::Enum | Self::Set)
    }

    /// Whether there are columns and values of it; if not, it is refused by name.
    pub fn is_supported(self) -> bool {
        !matches!(self, Self::Enum | Self::Set | Self::Bit { .. } | Self::Json)
    }

    /// Whether its values are text.
    pub fn is_text(self) -> bool {
        matches!(
            self,
            Self::Char { .. }
                | Self::VarChar { .. }
                | Self::TinyText
                | Self::Text
                | Self::MediumText
                | Self::LongText
        )
    }

    /// Whether its values are bytes.
    pub fn is_bytes(self) -> bool {
        matches!(
            self,
            Self::Binary { .. }
                | Self::VarBinary { .. }
                | Self::TinyBlob
                | Self::Blob
                | Self::MediumBlob
                | Self::LongBlob
        )
    }

    /// Whether its values are whole numbers; YEAR is not one of them.
    pub fn is_integer(self) -> bool {
        self.integer_bytes().is_some()
    }

    /// Whether its values are numbers.
    pub fn is_number(self) -> bool {
        self.is_integer() || self.is_real() || matches!(self, Self::Decimal { .. } | Self::Year)
    }

    /// Whether its values are days or times.
    pub fn is_temporal(self) -> bool {
        matches!(
            self,
            Self::Date | Self::Time { .. } | Self::DateTime { .. } | Self::Timestamp { .. }
        )
    }

    /// Whether it is FLOAT or DOUBLE.
    pub fn is_real(self) -> bool {
        matches!(self, Self::Float | Self::Double)
    }

    /// Width of a whole-number type.
    pub fn integer_bytes(self) -> Option<usize> {
        match self {
            Self::TinyInt => Some(1),
            Self::SmallInt => Some(2),
            Self::MediumInt => Some(3),
            Self::Int => Some(4),
            Self::BigInt => Some(8),
            _ => None,
        }
    }

    /// Bytes in the fixed part of a row; `None` for types of variable length.
    pub fn fixed_width(self) -> Option<usize> {
        match self {
            Self::Float => Some(4),
            Self::Double | Self::DateTime { .. } | Self::Timestamp { .. } => Some(8),
            Self::Decimal { precision, .. } => Some(decimal_width(precision)),
            Self::Date => Some(3),
            Self::Time { .. } => Some(6),
            Self::Year => Some(1),
            kind => kind.integer_bytes(),
        }
    }

    /// Digits of the second's fraction; 0 for everything that has none.
    pub fn fsp(self) -> u8 {
        match self {
            Self::Time { fsp } | Self::DateTime { fsp } | Self::Timestamp { fsp } => fsp,
            _ => 0,
        }
    }

    /// The most bytes of a value of variable length; 0 for types of fixed width.
    pub fn max_variable_bytes(self) -> usize {
        match self {
            Self::Char { chars } | Self::VarChar { chars } => usize::from(chars) * 4,
            Self::Binary { bytes } | Self::VarBinary { bytes } => usize::from(bytes),
            Self::TinyText | Self::TinyBlob => 255,
            Self::Text | Self::Blob => 65_535,
            Self::MediumText | Self::MediumBlob => (1 << 24) - 1,
            Self::LongText | Self::LongBlob => u32::MAX as usize,
            _ => 0,
        }
    }

    /// Whether lengths, precisions and scales are within the limits of SQL.
    pub fn is_valid(self) -> bool {
        match self {
            Self::Decimal { precision, scale } => {
                (1..=65).contains(&precision) && scale <= 30 && scale <= precision
            }
            Self::Char { chars } => chars <= 255,
            Self::Binary { bytes } => bytes <= 255,
            kind => kind.fsp() <= 6 && kind.is_supported(),
        }
    }
}

/// Bytes that hold every signed number of this many decimal digits.
pub(crate) fn decimal_width(precision: u8) -> usize {
    // 10^p needs p·log2(10) bits; 3.32193 is just above log2(10). One bit more for the sign.
    let bits = (usize::from(precision) * 332_193).div_ceil(100_000) + 1;
    bits.div_ceil(8)
}
