//! From trees to text: what is printed parses to the same tree.
//!
//! Chains of operators are printed in a loop; the depth of the calls follows the nesting of the statement, which the parser limits.

mod account;
pub mod canonical;
mod column;
mod dml;
mod expr;
mod function;
mod query;
mod show;
mod statement;
mod table;
mod table_options;

use crate::tree::{ExprId, List, OrderItem, TableName, Text, Tree};
use crate::{Keyword, Mode, Parsed};
use alloc::vec::Vec;

/// The text of a statement, for a parser in the same mode.
#[must_use]
pub fn print(parsed: &Parsed, mode: Mode) -> Vec<u8> {
    let mut printer = Printer { tree: &parsed.tree, mode, out: Vec::new(), behind_dot: 0 };
    printer.statement(&parsed.statement);
    printer.out
}

/// The text of one expression.
#[must_use]
pub fn print_expr(tree: &Tree, expr: ExprId, mode: Mode) -> Vec<u8> {
    let mut printer = Printer { tree, mode, out: Vec::new(), behind_dot: 0 };
    printer.expr(expr);
    printer.out
}

/// The text of a query.
#[must_use]
pub fn print_query(tree: &Tree, query: crate::tree::QueryId, mode: Mode) -> Vec<u8> {
    let mut printer = Printer { tree, mode, out: Vec::new(), behind_dot: 0 };
    printer.query(query);
    printer.out
}

struct Printer<'t> {
    tree: &'t Tree,
    mode: Mode,
    out: Vec<u8>,
    /// The place behind the last point between names, where no blank may stand.
    behind_dot: usize,
}

impl<'t> Printer<'t> {
    fn new(tree: &'t Tree) -> Self {
        Self { tree, mode: Mode::default(), out: Vec::new(), behind_dot: 0 }
    }
}

impl Printer<'_> {
    /// A blank, unless there is one, or a sign that wants none behind it.
    fn blank(&mut self) {
        if self.behind_dot != self.out.len()
            && !matches!(self.out.last(), None | Some(b' ' | b'(' | b'@' | b'{'))
        {
            self.out.push(b' ');
        }
    }

    /// A point between names.
    fn dot(&mut self) {
        self.out.push(b'.');
        self.behind_dot = self.out.len();
    }

    /// Words, after a blank.
    fn word(&mut self, word: &str) {
        self.blank();
        self.raw(word);
    }

    /// Words, if the condition holds.
    fn word_if(&mut self, condition: bool, word: &str) {
        if condition {
            self.word(word);
        }
    }

    fn keyword(&mut self, word: Keyword) {
        if word != Keyword::None {
            self.word(word.name());
        }
    }

    /// Text without a blank before it.
    fn raw(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    /// What was kept as it was written.
    fn source(&mut self, text: Text) {
        if text.is_some() && !self.tree.text(text).is_empty() {
            self.blank();
            self.out.extend_from_slice(self.tree.text(text));
        }
    }

    fn bytes(&mut self, text: Text) {
        self.blank();
        self.out.extend_from_slice(self.tree.text(text));
    }

    /// A name, in quotes if it needs them.
    fn name(&mut self, name: Text) {
        self.blank();
        let bytes = self.tree.text(name);
        let is_plain = bytes.first().is_some_and(|first| !first.is_ascii_digit() && *first != b'$')
            && bytes.iter().all(|byte| {
                byte.is_ascii_alphanumeric() || *byte == b'_' || *byte == b'$' || *byte >= 0x80
            })
            && Keyword::find(bytes) == Keyword::None
            && !(bytes[0] == b'_' && crate::lexer::is_charset(&bytes[1..]));
        if is_plain {
            self.out.extend_from_slice(bytes);
        } else {
            self.quoted_name(bytes);
        }
    }

    fn quoted_name(&mut self, bytes: &[u8]) {
        self.out.push(b'`');
        for byte in bytes {
            if *byte == b'`' {
                self.out.push(b'`');
            }
            self.out.push(*byte);
        }
        self.out.push(b'`');
    }

    /// A text in quotes.
    fn text(&mut self, text: Text) {
        self.blank();
        self.quoted(text);
    }

    fn quoted(&mut self, text: Text) {
        self.out.push(b'\'');
        for byte in self.tree.text(text) {
            if *byte == b'\'' || (*byte == b'\\' && !self.mode.no_backslash_escapes) {
                self.out.push(*byte);
            }
            self.out.push(*byte);
        }
        self.out.push(b'\'');
    }

    /// A user variable.
    fn variable(&mut self, name: Text) {
        self.blank();
        self.out.push(b'@');
        let bytes = self.tree.text(name);
        if !bytes.is_empty()
            && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"._$".contains(byte))
        {
            self.out.extend_from_slice(bytes);
        } else {
            self.quoted(name);
        }
    }

    fn table_name(&mut self, table: TableName) {
        self.qualified(table.schema, table.name);
    }

    fn qualified(&mut self, schema: Text, name: Text) {
        if schema.is_some() {
            self.name(schema);
            self.dot();
        }
        self.name(name);
    }

    /// Things that commas part.
    fn commas<T: Copy>(&mut self, things: &[T], mut one: impl FnMut(&mut Self, T)) {
        for (at, thing) in things.iter().enumerate() {
            if at > 0 {
                self.raw(",");
            }
            one(self, *thing);
        }
    }

    fn commas_ref<T>(&mut self, things: &[T], mut one: impl FnMut(&mut Self, &T)) {
        for (at, thing) in things.iter().enumerate() {
            if at > 0 {
                self.raw(",");
            }
            one(self, thing);
        }
    }

    fn names(&mut self, names: &[Text]) {
        self.commas(names, Self::name);
    }

    /// ` (a, b)`, or nothing.
    fn names_in_parentheses(&mut self, names: &[Text]) {
        if !names.is_empty() {
            self.word("(");
            self.names(names);
            self.raw(")");
        }
    }

    fn exprs(&mut self, list: List) {
        let list = self.tree.list(list);
        self.commas(list, Self::expr);
    }

    fn order_items(&mut self, order: &[OrderItem]) {
        self.commas(order, |printer, item| {
            printer.expr(item.value);
            printer.direction(item.direction);
        });
    }

    fn direction(&mut self, direction: crate::tree::Direction) {
        match direction {
            crate::tree::Direction::None => {}
            crate::tree::Direction::Ascending => self.word("ASC"),
            crate::tree::Direction::Descending => self.word("DESC"),
        }
    }

    /// ` ORDER BY …`, or nothing.
    fn order_by(&mut self, order: &[OrderItem]) {
        if !order.is_empty() {
            self.word("ORDER BY");
            self.order_items(order);
        }
    }
}
