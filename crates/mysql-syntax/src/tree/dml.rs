//! Statements that change rows.

#![allow(missing_docs, reason = "fields and variants have MySQL's words for what they hold")]

use super::{ExprId, Hint, Limit, List, OrderItem, QueryId, TableId, TableName, Text, With};
use alloc::boxed::Box;
use alloc::vec::Vec;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Priority {
    None,
    Low,
    High,
    Delayed,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Insert {
    pub is_replace: bool,
    pub hints: Vec<Hint>,
    pub priority: Priority,
    pub is_ignore: bool,
    pub table: TableName,
    pub partitions: Vec<Text>,
    /// The columns; `None` if there is no list.
    pub columns: Option<Vec<ExprId>>,
    pub source: InsertSource,
    /// `AS new (a, b)`
    pub row_alias: Text,
    pub column_aliases: Vec<Text>,
    pub on_duplicate: Vec<Assignment>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum InsertSource {
    /// The values of the rows; DEFAULT may be among them.
    Rows(Vec<List>),
    Set(Vec<Assignment>),
    Query(QueryId),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Assignment {
    pub column: ExprId,
    pub value: ExprId,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Update {
    pub with: Option<Box<With>>,
    pub hints: Vec<Hint>,
    pub is_low_priority: bool,
    pub is_ignore: bool,
    pub tables: Vec<TableId>,
    pub assignments: Vec<Assignment>,
    pub filter: Option<ExprId>,
    pub order: Vec<OrderItem>,
    pub limit: Option<Limit>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Delete {
    pub with: Option<Box<With>>,
    pub hints: Vec<Hint>,
    pub is_low_priority: bool,
    pub is_quick: bool,
    pub is_ignore: bool,
    pub from: DeleteFrom,
    pub filter: Option<ExprId>,
    pub order: Vec<OrderItem>,
    pub limit: Option<Limit>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum DeleteFrom {
    One {
        table: TableName,
        alias: Text,
        partitions: Vec<Text>,
    },
    /// `DELETE t1, t2 FROM …`, or `DELETE FROM t1, t2 USING …`
    Many {
        targets: Vec<TableName>,
        is_using: bool,
        tables: Vec<TableId>,
    },
}
