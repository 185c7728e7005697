//! Types and columns.

use super::Printer;
use crate::Keyword;
use crate::tree::{
    Charset, Check, ColumnAttribute, ColumnDef, DataType, ReferenceOption, References, TypeName,
};

fn type_word(name: TypeName) -> &'static str {
    use TypeName as T;
    match name {
        T::TinyInt => "TINYINT",
        T::SmallInt => "SMALLINT",
        T::MediumInt => "MEDIUMINT",
        T::Int => "INT",
        T::BigInt => "BIGINT",
        T::Real => "REAL",
        T::Double => "DOUBLE",
        T::Float => "FLOAT",
        T::Decimal => "DECIMAL",
        T::Bit => "BIT",
        T::Bool => "BOOL",
        T::Char => "CHAR",
        T::NationalChar => "NCHAR",
        T::VarChar => "VARCHAR",
        T::NationalVarChar => "NVARCHAR",
        T::Binary => "BINARY",
        T::VarBinary => "VARBINARY",
        T::Year => "YEAR",
        T::Date => "DATE",
        T::Time => "TIME",
        T::Timestamp => "TIMESTAMP",
        T::DateTime => "DATETIME",
        T::TinyBlob => "TINYBLOB",
        T::Blob => "BLOB",
        T::MediumBlob => "MEDIUMBLOB",
        T::LongBlob => "LONGBLOB",
        T::TinyText => "TINYTEXT",
        T::Text => "TEXT",
        T::MediumText => "MEDIUMTEXT",
        T::LongText => "LONGTEXT",
        T::Enum => "ENUM",
        T::Set => "SET",
        T::Json => "JSON",
        T::Serial => "SERIAL",
        T::Geometry => "GEOMETRY",
        T::GeometryCollection => "GEOMETRYCOLLECTION",
        T::Point => "POINT",
        T::MultiPoint => "MULTIPOINT",
        T::LineString => "LINESTRING",
        T::MultiLineString => "MULTILINESTRING",
        T::Polygon => "POLYGON",
        T::MultiPolygon => "MULTIPOLYGON",
        T::Signed => "SIGNED",
        T::Unsigned => "UNSIGNED",
    }
}

impl Printer<'_> {
    pub(super) fn data_type(&mut self, data_type: &DataType) {
        self.word(type_word(data_type.name));
        if data_type.length.is_some() {
            self.raw("(");
            self.bytes(data_type.length);
            if data_type.decimals.is_some() {
                self.raw(",");
                self.bytes(data_type.decimals);
            }
            self.raw(")");
        }
        if !data_type.members.is_empty() {
            self.raw("(");
            // A member may have been written in digits, which stay as they are.
            self.commas(&data_type.members, |printer, member| printer.text_or_digits(member));
            self.raw(")");
        }
        self.word_if(data_type.is_signed, "SIGNED");
        self.word_if(data_type.is_unsigned, "UNSIGNED");
        self.word_if(data_type.is_zerofill, "ZEROFILL");
        match data_type.charset {
            Charset::None => {}
            Charset::Name(name) => self.name_behind("CHARACTER SET", name),
            Charset::Ascii => self.word("ASCII"),
            Charset::Unicode => self.word("UNICODE"),
            Charset::Byte => self.word("BYTE"),
        }
        self.word_if(data_type.is_binary, "BINARY");
        self.word_if(data_type.is_array, "ARRAY");
    }

    pub(super) fn column_def(&mut self, column: &ColumnDef) {
        self.name(column.name);
        self.data_type(&column.data_type);
        self.name_behind("COLLATE", column.collation);
        if let Some(generated) = column.generated {
            self.word("GENERATED ALWAYS AS (");
            self.expr(generated.value);
            self.raw(")");
            self.keyword(generated.storage);
        }
        column.attributes.iter().for_each(|attribute| self.column_attribute(attribute));
    }

    fn column_attribute(&mut self, attribute: &ColumnAttribute) {
        use ColumnAttribute as A;
        match attribute {
            A::Null => self.word("NULL"),
            A::NotNull => self.word("NOT NULL"),
            A::Default { value, has_parentheses } => {
                self.word("DEFAULT");
                self.word_if(*has_parentheses, "(");
                self.expr(*value);
                if *has_parentheses {
                    self.raw(")");
                }
            }
            A::OnUpdate(value) => self.clause("ON UPDATE", Some(*value)),
            A::AutoIncrement => self.word("AUTO_INCREMENT"),
            A::SerialDefaultValue => self.word("SERIAL DEFAULT VALUE"),
            A::PrimaryKey => self.word("PRIMARY KEY"),
            A::Unique => self.word("UNIQUE"),
            A::Comment(text) => self.text_behind("COMMENT", *text),
            A::Collate(name) => self.name_behind("COLLATE", *name),
            A::ColumnFormat(word) => {
                self.word("COLUMN_FORMAT");
                self.keyword(*word);
            }
            A::Storage(word) => {
                self.word("STORAGE");
                self.keyword(*word);
            }
            A::Srid(number) => {
                self.word("SRID");
                self.bytes(*number);
            }
            A::Visible => self.word("VISIBLE"),
            A::Invisible => self.word("INVISIBLE"),
            A::EngineAttribute(text) => self.text_behind("ENGINE_ATTRIBUTE", *text),
            A::SecondaryEngineAttribute(text) => {
                self.text_behind("SECONDARY_ENGINE_ATTRIBUTE", *text)
            }
            A::NotSecondary => self.word("NOT SECONDARY"),
            A::Check(check) => self.check(*check),
            A::References(references) => self.references(references),
        }
    }

    pub(super) fn constraint(&mut self, has_constraint: bool, name: crate::tree::Text) {
        self.word_if(has_constraint, "CONSTRAINT");
        if name.is_some() {
            self.name(name);
        }
    }

    pub(super) fn check(&mut self, check: Check) {
        self.constraint(check.has_constraint, check.name);
        self.word("CHECK (");
        self.expr(check.condition);
        self.raw(")");
        match check.enforced {
            None => {}
            Some(true) => self.word("ENFORCED"),
            Some(false) => self.word("NOT ENFORCED"),
        }
    }

    pub(super) fn references(&mut self, references: &References) {
        self.word("REFERENCES");
        self.table_name(references.table);
        self.names_in_parentheses(&references.columns);
        self.word_if(references.match_kind != Keyword::None, "MATCH");
        self.keyword(references.match_kind);
        for (option, word) in
            [(references.on_delete, "ON DELETE"), (references.on_update, "ON UPDATE")]
        {
            self.word_if(option != ReferenceOption::None, word);
            match option {
                ReferenceOption::None => {}
                ReferenceOption::Restrict => self.word("RESTRICT"),
                ReferenceOption::Cascade => self.word("CASCADE"),
                ReferenceOption::SetNull => self.word("SET NULL"),
                ReferenceOption::NoAction => self.word("NO ACTION"),
                ReferenceOption::SetDefault => self.word("SET DEFAULT"),
            }
        }
    }
}
