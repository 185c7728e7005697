//! Types of columns, and of CAST.

use super::{Parser, Result};
use crate::token::Kind;
use crate::tree::{Charset, DataType, SideId, Text, TypeName};
use crate::{Keyword, Span};
use Keyword as K;
use alloc::vec::Vec;

/// What may follow the name of a type.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Arguments {
    None,
    /// `(n)`, and UNSIGNED and its like.
    Integer,
    /// `(n)`, `(n, m)`, and UNSIGNED and its like.
    Real,
    /// `(n, m)` or nothing.
    Double,
    /// `(n)` or nothing.
    Length,
    /// `(n)`.
    NeedsLength,
    /// `(n)` or nothing, and a character set.
    Char,
    /// `(n)`, and a character set.
    VarChar,
    /// `(n)` or nothing, and a character set.
    Text,
    /// A character set.
    TextOnly,
    Members,
}

fn arguments_of(name: TypeName) -> Arguments {
    use TypeName as T;
    match name {
        T::TinyInt | T::SmallInt | T::MediumInt | T::Int | T::BigInt => Arguments::Integer,
        T::Float | T::Decimal => Arguments::Real,
        T::Real | T::Double => Arguments::Double,
        T::Bit | T::Year | T::Time | T::Timestamp | T::DateTime | T::Binary | T::Blob => {
            Arguments::Length
        }
        T::VarBinary => Arguments::NeedsLength,
        T::Char | T::NationalChar => Arguments::Char,
        T::VarChar | T::NationalVarChar => Arguments::VarChar,
        T::Text => Arguments::Text,
        T::TinyText | T::MediumText | T::LongText => Arguments::TextOnly,
        T::Enum | T::Set => Arguments::Members,
        _ => Arguments::None,
    }
}

impl Parser<'_> {
    fn plain_type(name: TypeName, span: Span) -> DataType {
        DataType {
            name,
            length: Text::NONE,
            decimals: Text::NONE,
            is_unsigned: false,
            is_signed: false,
            is_zerofill: false,
            members: Vec::new(),
            charset: Charset::None,
            is_binary: false,
            is_array: false,
            span,
        }
    }

    /// The type of a column.
    pub(super) fn column_type(&mut self) -> Result<DataType> {
        let start = self.token().start;
        let name = self.type_name()?;
        let mut data_type = Self::plain_type(name, Span::default());
        self.type_arguments(&mut data_type)?;
        data_type.span = self.span_from(start);
        Ok(data_type)
    }

    fn type_name(&mut self) -> Result<TypeName> {
        use TypeName as T;
        let word = self.token().word;
        let name = match word {
            K::TINYINT | K::INT1 => T::TinyInt,
            K::SMALLINT | K::INT2 => T::SmallInt,
            K::MEDIUMINT | K::INT3 | K::MIDDLEINT => T::MediumInt,
            K::INT | K::INTEGER | K::INT4 => T::Int,
            K::BIGINT | K::INT8 => T::BigInt,
            K::REAL if self.mode.real_as_float => T::Float,
            K::REAL => T::Real,
            K::DOUBLE | K::FLOAT8 => T::Double,
            K::FLOAT | K::FLOAT4 => T::Float,
            K::DECIMAL | K::DEC | K::NUMERIC | K::FIXED => T::Decimal,
            K::BIT => T::Bit,
            K::BOOL | K::BOOLEAN => T::Bool,
            K::CHAR
            | K::CHARACTER
            | K::NCHAR
            | K::NATIONAL
            | K::VARCHAR
            | K::VARCHARACTER
            | K::NVARCHAR
            | K::LONG => {
                return self.text_type_name();
            }
            K::BINARY => T::Binary,
            K::VARBINARY => T::VarBinary,
            K::YEAR => T::Year,
            K::DATE => T::Date,
            K::TIME => T::Time,
            K::TIMESTAMP => T::Timestamp,
            K::DATETIME => T::DateTime,
            K::TINYBLOB => T::TinyBlob,
            K::BLOB => T::Blob,
            K::MEDIUMBLOB => T::MediumBlob,
            K::LONGBLOB => T::LongBlob,
            K::TINYTEXT => T::TinyText,
            K::TEXT => T::Text,
            K::MEDIUMTEXT => T::MediumText,
            K::LONGTEXT => T::LongText,
            K::ENUM => T::Enum,
            K::SET => T::Set,
            K::JSON => T::Json,
            K::SERIAL => T::Serial,
            K::GEOMETRY => T::Geometry,
            K::GEOMETRYCOLLECTION | K::GEOMCOLLECTION => T::GeometryCollection,
            K::POINT => T::Point,
            K::MULTIPOINT => T::MultiPoint,
            K::LINESTRING => T::LineString,
            K::MULTILINESTRING => T::MultiLineString,
            K::POLYGON => T::Polygon,
            K::MULTIPOLYGON => T::MultiPolygon,
            _ => return Err(self.error()),
        };
        self.advance();
        if word == K::DOUBLE {
            self.eat_word(K::PRECISION);
        }
        Ok(name)
    }

    /// The many names of CHAR and VARCHAR, and LONG.
    fn text_type_name(&mut self) -> Result<TypeName> {
        use TypeName as T;
        let word = self.token().word;
        self.advance();
        let is_varying = |parser: &mut Self| parser.eat_word(K::VARYING);
        Ok(match word {
            K::CHAR | K::CHARACTER => {
                if is_varying(self) {
                    T::VarChar
                } else {
                    T::Char
                }
            }
            K::NCHAR => {
                let varies =
                    is_varying(self) || self.eat_one_of(&[K::VARCHAR, K::VARCHARACTER]).is_some();
                if varies { T::NationalVarChar } else { T::NationalChar }
            }
            K::NATIONAL => {
                match self.expect_one_of(&[K::CHAR, K::CHARACTER, K::VARCHAR, K::VARCHARACTER])? {
                    K::CHAR | K::CHARACTER if !is_varying(self) => T::NationalChar,
                    _ => T::NationalVarChar,
                }
            }
            K::NVARCHAR => T::NationalVarChar,
            K::LONG => {
                if self.eat_word(K::VARBINARY) {
                    T::MediumBlob
                } else if self.eat_one_of(&[K::CHAR, K::CHARACTER]).is_some() {
                    self.expect_word(K::VARYING)?;
                    T::MediumText
                } else {
                    self.eat_one_of(&[K::VARCHAR, K::VARCHARACTER]);
                    T::MediumText
                }
            }
            _ => T::VarChar,
        })
    }

    fn type_arguments(&mut self, data_type: &mut DataType) -> Result<()> {
        match arguments_of(data_type.name) {
            Arguments::None => Ok(()),
            Arguments::Integer => {
                data_type.length = self.optional_length()?;
                self.number_options(data_type);
                Ok(())
            }
            Arguments::Real | Arguments::Double => {
                let needs_two = arguments_of(data_type.name) == Arguments::Double;
                self.precision(data_type, needs_two)?;
                self.number_options(data_type);
                Ok(())
            }
            Arguments::Length => {
                data_type.length = self.optional_length()?;
                Ok(())
            }
            Arguments::NeedsLength => {
                if !self.is(Kind::Open) {
                    return Err(self.error());
                }
                data_type.length = self.optional_length()?;
                Ok(())
            }
            Arguments::Char | Arguments::Text => {
                data_type.length = self.optional_length()?;
                self.type_charset(data_type)
            }
            Arguments::VarChar => {
                if !self.is(Kind::Open) {
                    return Err(self.error());
                }
                data_type.length = self.optional_length()?;
                self.type_charset(data_type)
            }
            Arguments::TextOnly => self.type_charset(data_type),
            Arguments::Members => {
                self.expect(Kind::Open)?;
                data_type.members = self.comma_list(Self::text_or_digits)?;
                self.expect(Kind::Close)?;
                self.type_charset(data_type)
            }
        }
    }

    /// `(n, m)`, or `(n)` where that is enough.
    fn precision(&mut self, data_type: &mut DataType, needs_two: bool) -> Result<()> {
        if !self.eat(Kind::Open) {
            return Ok(());
        }
        data_type.length = self.integer()?;
        if needs_two || self.is(Kind::Comma) {
            self.expect(Kind::Comma)?;
            data_type.decimals = self.integer()?;
        }
        self.expect(Kind::Close)
    }

    fn number_options(&mut self, data_type: &mut DataType) {
        while let Some(word) = self.eat_one_of(&[K::UNSIGNED, K::SIGNED, K::ZEROFILL]) {
            match word {
                K::UNSIGNED => data_type.is_unsigned = true,
                K::SIGNED => data_type.is_signed = true,
                _ => data_type.is_zerofill = true,
            }
        }
    }

    /// CHARACTER SET and BINARY behind a type, in either order.
    fn type_charset(&mut self, data_type: &mut DataType) -> Result<()> {
        if matches!(data_type.name, TypeName::NationalChar | TypeName::NationalVarChar) {
            data_type.is_binary = self.eat_word(K::BINARY);
            return Ok(());
        }
        if self.is_word(K::BINARY) {
            self.advance();
            data_type.is_binary = true;
        }
        if self.eat_charset() {
            data_type.charset = Charset::Name(self.charset_name()?);
        } else if self.eat_word(K::ASCII) {
            data_type.charset = Charset::Ascii;
        } else if self.eat_word(K::UNICODE) {
            data_type.charset = Charset::Unicode;
        } else if !data_type.is_binary && self.eat_word(K::BYTE) {
            data_type.charset = Charset::Byte;
            return Ok(());
        }
        if data_type.charset != Charset::None && !data_type.is_binary {
            data_type.is_binary = self.eat_word(K::BINARY);
        }
        Ok(())
    }

    /// A type of CAST, CONVERT and JSON_VALUE.
    pub(super) fn cast_type(&mut self, may_be_array: bool) -> Result<SideId> {
        use TypeName as T;
        let start = self.token().start;
        let word = self.token().word;
        let name = match word {
            K::SIGNED => T::Signed,
            K::UNSIGNED => T::Unsigned,
            K::BINARY => T::Binary,
            K::CHAR | K::CHARACTER => T::Char,
            K::NCHAR | K::NATIONAL => T::NationalChar,
            K::DATE => T::Date,
            K::YEAR => T::Year,
            K::TIME => T::Time,
            K::DATETIME => T::DateTime,
            K::DECIMAL | K::DEC | K::NUMERIC | K::FIXED => T::Decimal,
            K::JSON => T::Json,
            K::REAL if self.mode.real_as_float => T::Float,
            K::REAL => T::Real,
            K::DOUBLE => T::Double,
            K::FLOAT => T::Float,
            K::POINT => T::Point,
            K::LINESTRING => T::LineString,
            K::POLYGON => T::Polygon,
            K::MULTIPOINT => T::MultiPoint,
            K::MULTILINESTRING => T::MultiLineString,
            K::MULTIPOLYGON => T::MultiPolygon,
            K::GEOMETRYCOLLECTION | K::GEOMCOLLECTION => T::GeometryCollection,
            _ => return Err(self.error()),
        };
        self.advance();
        let mut data_type = Self::plain_type(name, Span::default());
        match word {
            K::SIGNED | K::UNSIGNED => {
                self.eat_one_of(&[K::INT, K::INTEGER]);
            }
            K::NATIONAL => {
                self.expect_one_of(&[K::CHAR, K::CHARACTER])?;
                data_type.length = self.optional_length()?;
            }
            K::CHAR | K::CHARACTER => {
                data_type.length = self.optional_length()?;
                self.type_charset(&mut data_type)?;
            }
            K::NCHAR | K::BINARY | K::TIME | K::DATETIME => {
                data_type.length = self.optional_length()?
            }
            K::DECIMAL | K::DEC | K::NUMERIC | K::FIXED => self.precision(&mut data_type, false)?,
            K::FLOAT => data_type.length = self.optional_length()?,
            K::DOUBLE => {
                self.eat_word(K::PRECISION);
            }
            _ => {}
        }
        data_type.is_array = may_be_array && self.eat_word(K::ARRAY);
        data_type.span = self.span_from(start);
        Ok(self.tree.add_type(data_type))
    }
}
