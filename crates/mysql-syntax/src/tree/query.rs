//! Queries, and the tables that they read.

#![allow(missing_docs, reason = "fields and variants have MySQL's words for what they hold")]

use super::{
    BodyId, DataType, ExprId, JsonDefault, List, OrderItem, QueryId, SideId, TableId, Text,
};
use crate::Span;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// A query with what belongs to it as a whole.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    pub with: Option<Box<With>>,
    pub body: BodyId,
    pub order: Vec<OrderItem>,
    pub limit: Option<Limit>,
    pub into: Option<Box<Into>>,
    pub locks: Vec<Lock>,
    /// INTO stands behind the locks.
    pub is_into_last: bool,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub struct With {
    pub is_recursive: bool,
    pub tables: Vec<CommonTable>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct CommonTable {
    pub name: Text,
    pub columns: Vec<Text>,
    pub query: QueryId,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetOp {
    Union,
    Intersect,
    Except,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetQuantifier {
    None,
    All,
    Distinct,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    Select(Box<Select>),
    /// `VALUES ROW(…), …`
    Values(Vec<List>),
    /// `TABLE t`
    Table(TableName),
    Set {
        op: SetOp,
        quantifier: SetQuantifier,
        left: BodyId,
        right: BodyId,
    },
    /// A query in parentheses with clauses of its own.
    Nested(QueryId),
}

/// LIMIT in its three forms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limit {
    pub count: ExprId,
    pub offset: Option<ExprId>,
    /// The offset came first, before a comma.
    pub is_comma: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Lock {
    pub kind: LockKind,
    pub of: Vec<TableName>,
    pub wait: LockWait,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockKind {
    Update,
    Share,
    /// `LOCK IN SHARE MODE`
    ShareMode,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockWait {
    Wait,
    NoWait,
    SkipLocked,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Into {
    Outfile {
        file: Text,
        charset: Text,
        format: FileFormat,
    },
    Dumpfile(Text),
    /// User variables, and names of local variables.
    Variables(Vec<IntoTarget>),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum IntoTarget {
    User(Text),
    Local(Text),
}

/// FIELDS and LINES.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FileFormat {
    pub has_fields: bool,
    pub fields_terminated: Option<ExprId>,
    pub enclosed: Option<ExprId>,
    pub is_optionally: bool,
    pub escaped: Option<ExprId>,
    pub has_lines: bool,
    pub lines_starting: Option<ExprId>,
    pub lines_terminated: Option<ExprId>,
}

/// The words between SELECT and its items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SelectOptions {
    pub is_all: bool,
    pub is_distinct: bool,
    pub high_priority: bool,
    pub straight_join: bool,
    pub small_result: bool,
    pub big_result: bool,
    pub buffer_result: bool,
    pub no_cache: bool,
    pub calc_found_rows: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Select {
    pub hints: Vec<Hint>,
    pub options: SelectOptions,
    pub items: Vec<SelectItem>,
    /// INTO stands before FROM.
    pub into: Option<Into>,
    /// Tables that commas part; empty if there is no FROM.
    pub from: Vec<TableId>,
    /// `FROM DUAL`
    pub is_from_dual: bool,
    pub filter: Option<ExprId>,
    pub group: List,
    pub with_rollup: bool,
    pub having: Option<ExprId>,
    pub windows: Vec<(Text, SideId)>,
    pub span: Span,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SelectItem {
    pub value: ExprId,
    pub alias: Text,
    /// The item without its alias: the name of the result's column is this text.
    pub span: Span,
}

/// An optimizer hint; unknown ones are left out, with a warning.
#[derive(Debug, Clone, PartialEq)]
pub struct Hint {
    pub name: Text,
    /// What stands between the parentheses, as it was written.
    pub arguments: Text,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TableName {
    pub schema: Text,
    pub name: Text,
    pub span: Span,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinKind {
    Inner,
    Cross,
    Plain,
    Straight,
    Left,
    Right,
    Natural,
    NaturalInner,
    NaturalLeft,
    NaturalRight,
}

#[derive(Debug, Clone, PartialEq)]
pub enum JoinCondition {
    None,
    On(ExprId),
    Using(Vec<Text>),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Table {
    Named {
        name: TableName,
        partitions: Vec<Text>,
        alias: Text,
        hints: Vec<IndexHint>,
    },
    Derived {
        is_lateral: bool,
        query: QueryId,
        alias: Text,
        columns: Vec<Text>,
        span: Span,
    },
    Json {
        document: ExprId,
        path: Text,
        columns: Vec<JsonColumn>,
        alias: Text,
    },
    Join {
        kind: JoinKind,
        left: TableId,
        right: TableId,
        condition: JoinCondition,
    },
    /// Tables in parentheses that commas part.
    Cross(Vec<TableId>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexHintKind {
    Use,
    Force,
    Ignore,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexHintFor {
    All,
    Join,
    OrderBy,
    GroupBy,
}

#[derive(Debug, Clone, PartialEq)]
pub struct IndexHint {
    pub kind: IndexHintKind,
    pub purpose: IndexHintFor,
    pub indexes: Vec<Text>,
}

/// A column of JSON_TABLE; nested ones follow the path that they belong to.
#[derive(Debug, Clone, PartialEq)]
pub enum JsonColumn {
    Ordinality(Text),
    Path {
        name: Text,
        data_type: DataType,
        collation: Text,
        is_exists: bool,
        path: Text,
        on_empty: Option<JsonDefault>,
        on_error: Option<JsonDefault>,
    },
    /// Its columns follow, as many as are counted, with theirs.
    Nested {
        path: Text,
        columns: u32,
    },
}
