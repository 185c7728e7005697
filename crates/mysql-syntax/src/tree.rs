//! The syntax tree of one statement.
//!
//! Expressions, queries and tables lie in arenas and name each other by numbers: no tree is too deep to be dropped,
//! copied or compared.

#![allow(missing_docs, reason = "fields and variants have MySQL's words for what they hold")]

pub mod account;
pub mod dml;
pub mod expr;
pub mod query;
pub mod statement;
pub mod table;

use crate::Span;
pub use account::*;
use alloc::vec::Vec;
pub use dml::*;
pub use expr::*;
pub use query::*;
pub use statement::*;
pub use table::*;

/// A text in the tree's pool: a name, a literal's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Text {
    start: u32,
    length: u32,
}

impl Text {
    /// No text at all; an empty text is something else.
    pub const NONE: Self = Self { start: u32::MAX, length: 0 };

    #[must_use]
    pub fn is_some(self) -> bool {
        self.start != u32::MAX
    }

    #[must_use]
    pub fn is_none(self) -> bool {
        !self.is_some()
    }
}

/// The number of an expression in its tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExprId(pub u32);

/// The number of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct QueryId(pub u32);

/// The number of the body of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct BodyId(pub u32);

/// The number of a table reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TableId(pub u32);

/// The number of something in one of the smaller arenas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SideId(pub u32);

/// Some expressions one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct List {
    pub(crate) start: u32,
    pub(crate) length: u32,
}

impl List {
    pub const EMPTY: Self = Self { start: 0, length: 0 };

    #[must_use]
    pub fn len(self) -> usize {
        self.length as usize
    }

    #[must_use]
    pub fn is_empty(self) -> bool {
        self.length == 0
    }
}

/// A warning that the parser gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    pub number: u16,
    pub message: alloc::string::String,
}

/// The arenas of a statement.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tree {
    pub(crate) bytes: Vec<u8>,
    pub(crate) exprs: Vec<Expr>,
    pub(crate) spans: Vec<Span>,
    pub(crate) lists: Vec<ExprId>,
    pub(crate) queries: Vec<Query>,
    pub(crate) bodies: Vec<Body>,
    pub(crate) tables: Vec<Table>,
    pub(crate) calls: Vec<Aggregate>,
    pub(crate) windows: Vec<Window>,
    pub(crate) types: Vec<DataType>,
    pub(crate) json_values: Vec<JsonValue>,
    /// How many `?` the statement has.
    pub parameters: u32,
    /// What MySQL would warn about.
    pub warnings: Vec<Warning>,
}

impl Tree {
    /// The bytes of a text; none for [`Text::NONE`].
    #[must_use]
    pub fn text(&self, text: Text) -> &[u8] {
        let start = text.start as usize;
        self.bytes.get(start..start + text.length as usize).unwrap_or(&[])
    }

    #[must_use]
    pub fn expr(&self, id: ExprId) -> &Expr {
        &self.exprs[id.0 as usize]
    }

    /// Bytes that the arenas take, without the room that they have for more.
    #[must_use]
    pub fn used_bytes(&self) -> usize {
        let small = self.queries.len() * size_of::<Query>()
            + self.bodies.len() * size_of::<Body>()
            + self.tables.len() * size_of::<Table>()
            + self.calls.len() * size_of::<Aggregate>()
            + self.windows.len() * size_of::<Window>()
            + self.types.len() * size_of::<DataType>()
            + self.json_values.len() * size_of::<JsonValue>();
        small
            + self.bytes.len()
            + self.exprs.len() * size_of::<Expr>()
            + self.spans.len() * size_of::<Span>()
            + self.lists.len() * size_of::<ExprId>()
    }

    /// All expressions, in no order that means something.
    pub fn all_exprs(&self) -> impl Iterator<Item = &Expr> {
        self.exprs.iter()
    }

    /// The names of all tables that queries, UPDATE and DELETE read, common tables among them.
    pub fn table_names(&self) -> impl Iterator<Item = TableName> + '_ {
        let of_tables = self.tables.iter().filter_map(|table| match table {
            Table::Named { name, .. } => Some(*name),
            _ => None,
        });
        let of_bodies = self.bodies.iter().filter_map(|body| match body {
            Body::Table(name) => Some(*name),
            _ => None,
        });
        of_tables.chain(of_bodies)
    }

    /// Where an expression stands in the text.
    #[must_use]
    pub fn span(&self, id: ExprId) -> Span {
        self.spans[id.0 as usize]
    }

    #[must_use]
    pub fn list(&self, list: List) -> &[ExprId] {
        let start = list.start as usize;
        &self.lists[start..start + list.length as usize]
    }

    /// How many queries the statement has, one within the other.
    #[must_use]
    pub fn queries(&self) -> usize {
        self.queries.len()
    }

    #[must_use]
    pub fn query(&self, id: QueryId) -> &Query {
        &self.queries[id.0 as usize]
    }

    #[must_use]
    pub fn body(&self, id: BodyId) -> &Body {
        &self.bodies[id.0 as usize]
    }

    #[must_use]
    pub fn table(&self, id: TableId) -> &Table {
        &self.tables[id.0 as usize]
    }

    /// An aggregate or window function.
    #[must_use]
    pub fn aggregate(&self, id: SideId) -> &Aggregate {
        &self.calls[id.0 as usize]
    }

    #[must_use]
    pub fn window(&self, id: SideId) -> &Window {
        &self.windows[id.0 as usize]
    }

    #[must_use]
    pub fn data_type(&self, id: SideId) -> &DataType {
        &self.types[id.0 as usize]
    }

    #[must_use]
    pub fn json_value(&self, id: SideId) -> &JsonValue {
        &self.json_values[id.0 as usize]
    }

    pub(crate) fn add_text(&mut self, bytes: &[u8]) -> Text {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(bytes);
        Text { start, length: bytes.len() as u32 }
    }

    /// The text whose bytes were added one by one from this place on.
    pub(crate) fn text_from(&self, start: usize) -> Text {
        Text { start: start as u32, length: (self.bytes.len() - start) as u32 }
    }

    pub(crate) fn add_expr(&mut self, expr: Expr, span: Span) -> ExprId {
        self.exprs.push(expr);
        self.spans.push(span);
        ExprId(self.exprs.len() as u32 - 1)
    }

    pub(crate) fn add_list(&mut self, list: &[ExprId]) -> List {
        let start = self.lists.len() as u32;
        self.lists.extend_from_slice(list);
        List { start, length: list.len() as u32 }
    }

    pub(crate) fn add_query(&mut self, query: Query) -> QueryId {
        self.queries.push(query);
        QueryId(self.queries.len() as u32 - 1)
    }

    pub(crate) fn add_body(&mut self, body: Body) -> BodyId {
        self.bodies.push(body);
        BodyId(self.bodies.len() as u32 - 1)
    }

    pub(crate) fn add_table(&mut self, table: Table) -> TableId {
        self.tables.push(table);
        TableId(self.tables.len() as u32 - 1)
    }

    pub(crate) fn add_type(&mut self, data_type: DataType) -> SideId {
        self.types.push(data_type);
        SideId(self.types.len() as u32 - 1)
    }
}
