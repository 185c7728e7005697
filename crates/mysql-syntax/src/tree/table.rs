//! Definitions of tables, indexes and views.

#![allow(missing_docs, reason = "fields and variants have MySQL's words for what they hold")]

use super::{Account, ExprId, List, OrderItem, QueryId, TableName, Text};
use crate::{Keyword, Span};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// A type's name; synonyms have become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TypeName {
    TinyInt,
    SmallInt,
    MediumInt,
    Int,
    BigInt,
    /// DOUBLE, or FLOAT with REAL_AS_FLOAT.
    Real,
    Double,
    Float,
    Decimal,
    Bit,
    Bool,
    Char,
    /// NCHAR: utf8mb3.
    NationalChar,
    VarChar,
    NationalVarChar,
    Binary,
    VarBinary,
    Year,
    Date,
    Time,
    Timestamp,
    DateTime,
    TinyBlob,
    Blob,
    MediumBlob,
    LongBlob,
    TinyText,
    Text,
    MediumText,
    LongText,
    Enum,
    Set,
    Json,
    Serial,
    Geometry,
    GeometryCollection,
    Point,
    MultiPoint,
    LineString,
    MultiLineString,
    Polygon,
    MultiPolygon,
    /// CAST's SIGNED.
    Signed,
    /// CAST's UNSIGNED.
    Unsigned,
}

/// A type with its arguments.
#[derive(Debug, Clone, PartialEq)]
pub struct DataType {
    pub name: TypeName,
    /// The first number in parentheses.
    pub length: Text,
    /// The second number.
    pub decimals: Text,
    pub is_unsigned: bool,
    pub is_signed: bool,
    pub is_zerofill: bool,
    /// The members of ENUM and SET.
    pub members: Vec<Text>,
    pub charset: Charset,
    /// `BINARY` beside a character set: its binary collation.
    pub is_binary: bool,
    /// CAST's ARRAY.
    pub is_array: bool,
    pub span: Span,
}

/// `CHARACTER SET …`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Charset {
    None,
    Name(Text),
    Ascii,
    Unicode,
    Byte,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ColumnDef {
    pub name: Text,
    pub data_type: DataType,
    /// COLLATE before GENERATED.
    pub collation: Text,
    pub generated: Option<Generated>,
    pub attributes: Vec<ColumnAttribute>,
    pub span: Span,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Generated {
    pub value: ExprId,
    /// VIRTUAL, STORED, or no word.
    pub storage: Keyword,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ColumnAttribute {
    Null,
    NotNull,
    /// A literal or CURRENT_TIMESTAMP; an expression if it stands in parentheses.
    Default {
        value: ExprId,
        has_parentheses: bool,
    },
    OnUpdate(ExprId),
    AutoIncrement,
    SerialDefaultValue,
    PrimaryKey,
    Unique,
    Comment(Text),
    Collate(Text),
    ColumnFormat(Keyword),
    Storage(Keyword),
    Srid(Text),
    Visible,
    Invisible,
    EngineAttribute(Text),
    SecondaryEngineAttribute(Text),
    NotSecondary,
    Check(Check),
    References(Box<References>),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Check {
    pub has_constraint: bool,
    pub name: Text,
    pub condition: ExprId,
    pub enforced: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReferenceOption {
    None,
    Restrict,
    Cascade,
    SetNull,
    NoAction,
    SetDefault,
}

#[derive(Debug, Clone, PartialEq)]
pub struct References {
    pub table: TableName,
    pub columns: Vec<Text>,
    /// FULL, PARTIAL, SIMPLE, or no word.
    pub match_kind: Keyword,
    pub on_delete: ReferenceOption,
    pub on_update: ReferenceOption,
}

#[derive(Debug, Clone, PartialEq)]
pub enum TableElement {
    Column(Box<ColumnDef>),
    Key(Box<KeyDef>),
    ForeignKey(Box<ForeignKey>),
    Check(Check),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    Index,
    Unique,
    Primary,
    Fulltext,
    Spatial,
}

#[derive(Debug, Clone, PartialEq)]
pub struct KeyDef {
    pub has_constraint: bool,
    pub constraint: Text,
    pub kind: KeyKind,
    pub name: Text,
    /// USING before the columns: BTREE, HASH or RTREE.
    pub algorithm: Keyword,
    pub parts: Vec<KeyPart>,
    pub options: Vec<KeyOption>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KeyPart {
    pub value: KeyValue,
    pub direction: super::Direction,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum KeyValue {
    Column { name: Text, length: Text },
    Expr(ExprId),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum KeyOption {
    BlockSize(Text),
    Using(Keyword),
    Parser(Text),
    Comment(Text),
    Visible,
    Invisible,
    EngineAttribute(Text),
    SecondaryEngineAttribute(Text),
}

#[derive(Debug, Clone, PartialEq)]
pub struct ForeignKey {
    pub has_constraint: bool,
    pub constraint: Text,
    pub name: Text,
    pub columns: Vec<Text>,
    pub references: References,
}

/// An option of a table or database. The name is its first word: DATA stands for DATA DIRECTORY, CHARSET for CHARACTER SET.
#[derive(Debug, Clone, PartialEq)]
pub struct TableOption {
    pub name: Keyword,
    pub value: OptionValue,
}

#[derive(Debug, Clone, PartialEq)]
pub enum OptionValue {
    Number(Text),
    Name(Text),
    Text(Text),
    Word(Keyword),
    Default,
    Tables(Vec<TableName>),
    Null,
}

#[derive(Debug, Clone, PartialEq)]
pub struct CreateTable {
    pub is_temporary: bool,
    pub if_not_exists: bool,
    pub table: TableName,
    pub content: TableContent,
}

#[derive(Debug, Clone, PartialEq)]
pub enum TableContent {
    Like {
        table: TableName,
        has_parentheses: bool,
    },
    Elements {
        elements: Vec<TableElement>,
        options: Vec<TableOption>,
        partitioning: Option<Box<Partitioning>>,
        /// IGNORE, REPLACE, or no word.
        duplicates: Keyword,
        query: Option<QueryId>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PartitionBy {
    Hash(ExprId),
    Range(ExprId),
    List(ExprId),
}

#[derive(Debug, Clone, PartialEq)]
pub enum PartitionKind {
    Value { by: PartitionBy, is_linear: bool },
    Key { is_linear: bool, algorithm: Text, columns: Vec<Text> },
    RangeColumns(Vec<Text>),
    ListColumns(Vec<Text>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Partitioning {
    pub kind: PartitionKind,
    pub count: Text,
    pub sub: Option<(PartitionKind, Text)>,
    pub partitions: Vec<Partition>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Partition {
    pub name: Text,
    pub values: PartitionValues,
    pub options: Vec<TableOption>,
    pub parts: Vec<(Text, Vec<TableOption>)>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum PartitionValues {
    None,
    /// VALUES LESS THAN MAXVALUE, without parentheses.
    MaxValue,
    /// `None` is MAXVALUE.
    LessThan(Vec<Option<ExprId>>),
    /// Rows of values, with parentheses of their own if there are several columns.
    In {
        rows: Vec<List>,
        are_rows: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Place {
    None,
    First,
    After(Text),
}

#[derive(Debug, Clone, PartialEq)]
pub struct AlterTable {
    pub table: TableName,
    pub actions: Vec<AlterAction>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum AlterAction {
    Add {
        element: TableElement,
        place: Place,
    },
    /// `ADD COLUMN (…)`
    AddMany(Vec<TableElement>),
    Change {
        old: Text,
        column: Box<ColumnDef>,
        place: Place,
    },
    Modify {
        column: Box<ColumnDef>,
        place: Place,
    },
    DropColumn(Text),
    DropForeignKey(Text),
    DropPrimaryKey,
    DropKey(Text),
    DropCheck(Text),
    DropConstraint(Text),
    DisableKeys,
    EnableKeys,
    SetDefault {
        column: Text,
        value: ExprId,
        has_parentheses: bool,
    },
    DropDefault(Text),
    ColumnVisibility {
        column: Text,
        is_visible: bool,
    },
    IndexVisibility {
        index: Text,
        is_visible: bool,
    },
    Enforce {
        is_check: bool,
        name: Text,
        is_enforced: bool,
    },
    RenameColumn {
        old: Text,
        new: Text,
    },
    RenameTo(TableName),
    RenameKey {
        old: Text,
        new: Text,
    },
    ConvertTo {
        charset: Text,
        collation: Text,
    },
    Force,
    OrderBy(Vec<OrderItem>),
    Options(Vec<TableOption>),
    Algorithm(Text),
    Lock(Text),
    WithValidation,
    WithoutValidation,
    PartitionBy(Box<Partitioning>),
    RemovePartitioning,
    /// What LatsDB does not do: its name, and its text.
    Other {
        name: &'static str,
        text: Text,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub struct CreateIndex {
    pub key: KeyDef,
    pub table: TableName,
    pub lock_and_algorithm: Vec<AlterAction>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct CreateView {
    pub or_replace: bool,
    pub is_alter: bool,
    /// UNDEFINED, MERGE, TEMPTABLE, or no word.
    pub algorithm: Keyword,
    pub definer: Option<Account>,
    /// DEFINER, INVOKER, or no word.
    pub security: Keyword,
    pub view: TableName,
    pub columns: Vec<Text>,
    pub query: QueryId,
    /// The text of the query.
    pub query_span: Span,
    pub check: CheckOption,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckOption {
    None,
    Cascaded,
    Local,
}
