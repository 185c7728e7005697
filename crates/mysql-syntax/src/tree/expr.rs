//! Expressions.

#![allow(missing_docs, reason = "fields and variants have MySQL's words for what they hold")]

use super::{ExprId, List, Offset, QueryId, SideId, Text};
use crate::{Keyword, Span};
use alloc::vec::Vec;

/// An operator between two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BinaryOp {
    Xor,
    Equal,
    NullSafeEqual,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    BitOr,
    BitAnd,
    ShiftLeft,
    ShiftRight,
    Add,
    Subtract,
    Multiply,
    Divide,
    IntegerDivide,
    Modulo,
    BitXor,
    /// `||` with PIPES_AS_CONCAT.
    Concat,
    SoundsLike,
    MemberOf,
}

/// An operator before a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnaryOp {
    /// `NOT`, which binds loosely.
    Not,
    /// `!`, and `NOT` with HIGH_NOT_PRECEDENCE.
    Bang,
    Minus,
    Plus,
    BitNot,
    Binary,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberKind {
    Integer,
    Decimal,
    Float,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Truth {
    Null,
    True,
    False,
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TemporalKind {
    Date,
    Time,
    Timestamp,
}

/// The scope before a system variable's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    None,
    Global,
    Session,
    Local,
    Persist,
    PersistOnly,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrimSide {
    None,
    Both,
    Leading,
    Trailing,
}

/// `AGAINST (… IN BOOLEAN MODE)` and its like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatchMode {
    None,
    NaturalLanguage,
    NaturalLanguageWithExpansion,
    Boolean,
    WithExpansion,
}

/// An expression. The names of functions are as they were written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Expr {
    Null,
    True,
    False,
    /// `DEFAULT` where a value may stand.
    Default,
    /// `*` as the argument of COUNT or an item of SELECT.
    Star {
        schema: Text,
        table: Text,
    },
    Number {
        kind: NumberKind,
        digits: Text,
    },
    /// `first` is the length of the first of several texts: it alone is the name of a column.
    Text {
        charset: Text,
        is_national: bool,
        text: Text,
        first: Offset,
    },
    /// The digits.
    Hex {
        charset: Text,
        digits: Text,
    },
    Bits {
        charset: Text,
        digits: Text,
    },
    Temporal {
        kind: TemporalKind,
        text: Text,
    },
    Parameter(u32),
    Column {
        schema: Text,
        table: Text,
        name: Text,
    },
    UserVariable(Text),
    SystemVariable {
        scope: Scope,
        component: Text,
        name: Text,
    },
    Assign {
        variable: Text,
        value: ExprId,
    },
    Unary(UnaryOp, ExprId),
    Binary(BinaryOp, ExprId, ExprId),
    /// Two or more.
    And(List),
    Or(List),
    Is {
        value: ExprId,
        is_not: bool,
        truth: Truth,
    },
    /// `value = ANY (SELECT …)`
    Quantified {
        op: BinaryOp,
        left: ExprId,
        is_all: bool,
        query: QueryId,
    },
    In {
        value: ExprId,
        is_not: bool,
        list: List,
    },
    InQuery {
        value: ExprId,
        is_not: bool,
        query: QueryId,
    },
    /// The list has the lower and the upper bound.
    Between {
        value: ExprId,
        is_not: bool,
        bounds: List,
    },
    /// The list has the pattern and, if it was written, the escape character.
    Like {
        value: ExprId,
        is_not: bool,
        pattern: List,
    },
    Regexp {
        value: ExprId,
        is_not: bool,
        pattern: ExprId,
    },
    /// `value + INTERVAL amount unit`; with `is_first`, the interval stands on the left.
    AddInterval {
        value: ExprId,
        amount: ExprId,
        unit: Keyword,
        is_minus: bool,
        is_first: bool,
    },
    /// Two or more values; with `is_named`, ROW stands before them.
    Row {
        list: List,
        is_named: bool,
    },
    Subquery(QueryId),
    Exists(QueryId),
    /// The list has conditions and results in turn.
    Case {
        operand: Option<ExprId>,
        whens: List,
        otherwise: Option<ExprId>,
    },
    /// `zone` is that of AT TIME ZONE; `is_interval` if INTERVAL stands before it.
    Cast {
        value: ExprId,
        data_type: SideId,
        zone: Text,
        is_interval: bool,
        is_convert: bool,
    },
    ConvertUsing {
        value: ExprId,
        charset: Text,
    },
    Collate {
        value: ExprId,
        collation: Text,
    },
    /// A function with a name of its own.
    Call {
        schema: Text,
        name: Text,
        arguments: List,
    },
    /// A function whose name is a keyword; `has_parentheses` is false for CURRENT_TIMESTAMP and its like.
    Function {
        name: Keyword,
        arguments: List,
        has_parentheses: bool,
    },
    Aggregate(SideId),
    Match {
        columns: List,
        has_parentheses: bool,
        against: ExprId,
        mode: MatchMode,
    },
    Extract {
        unit: Keyword,
        value: ExprId,
    },
    /// The list has what is removed, if it was written, and the text.
    Trim {
        side: TrimSide,
        list: List,
    },
    /// `SUBSTRING(a FROM b FOR c)`, which may also be written with commas.
    Substring {
        list: List,
        has_words: bool,
        name: Keyword,
    },
    Position {
        part: ExprId,
        text: ExprId,
    },
    GetFormat {
        kind: Keyword,
        style: ExprId,
    },
    /// TIMESTAMPADD or TIMESTAMPDIFF.
    Timestamp {
        name: Keyword,
        unit: Keyword,
        list: List,
    },
    /// DATE_ADD and its like with an interval.
    DateArithmetic {
        name: Keyword,
        value: ExprId,
        amount: ExprId,
        unit: Keyword,
    },
    Char {
        list: List,
        charset: Text,
    },
    /// `WEIGHT_STRING(a AS CHAR(3))`; the type is CHAR or BINARY, or none.
    WeightString {
        value: ExprId,
        kind: Keyword,
        length: Text,
    },
    /// `VALUES(column)` in an upsert.
    Values(ExprId),
    /// `DEFAULT(column)`.
    DefaultOf(ExprId),
    JsonValue(SideId),
    /// `column -> '$.path'`, or `->>`.
    Arrow {
        column: ExprId,
        is_unquoted: bool,
        path: Text,
    },
    /// `{d '2024-01-01'}`
    Odbc {
        name: Text,
        value: ExprId,
    },
}

/// The order in which rows come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    None,
    Ascending,
    Descending,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OrderItem {
    pub value: ExprId,
    pub direction: Direction,
}

/// An aggregate or window function.
#[derive(Debug, Clone, PartialEq)]
pub struct Aggregate {
    pub name: Keyword,
    pub is_distinct: bool,
    /// `ALL` was written.
    pub is_all: bool,
    pub arguments: List,
    /// GROUP_CONCAT's.
    pub order: Vec<OrderItem>,
    pub separator: Text,
    /// NTH_VALUE's FROM FIRST.
    pub from_first: bool,
    pub nulls: Nulls,
    pub over: Over,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nulls {
    None,
    Respect,
    Ignore,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    None,
    Name(Text),
    Window(SideId),
}

/// `(base PARTITION BY … ORDER BY … ROWS …)`
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    pub base: Text,
    pub partition: List,
    pub order: Vec<OrderItem>,
    pub frame: Option<Frame>,
    pub span: Span,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Frame {
    /// ROWS or RANGE.
    pub is_range: bool,
    pub start: Bound,
    /// The bound behind AND.
    pub end: Option<Bound>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    CurrentRow,
    UnboundedPreceding,
    UnboundedFollowing,
    Preceding { value: ExprId, unit: Keyword },
    Following { value: ExprId, unit: Keyword },
}

#[derive(Debug, Clone, PartialEq)]
pub struct JsonValue {
    pub document: ExprId,
    pub path: Text,
    pub returning: Option<SideId>,
    pub on_empty: Option<JsonDefault>,
    pub on_error: Option<JsonDefault>,
}

/// What JSON_VALUE or JSON_TABLE give instead of a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum JsonDefault {
    Error,
    Null,
    Default(ExprId),
}
