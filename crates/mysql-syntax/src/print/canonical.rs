//! Queries as MySQL keeps those of views: tables with their databases, columns with their tables, no stars, all names in quotes,
//! and operators in parentheses, so that the text means the same whoever reads it.
//!
//! What names stand for is told by who has looked them up ([`Resolved`]).

mod expr;
mod function;

use crate::tree::{
    Body, BodyId, Direction, ExprId, IndexHint, IndexHintKind, JoinCondition, JoinKind, Limit,
    List, OrderItem, QueryId, Select, SelectItem, SetOp, SetQuantifier, Table, TableId, TableName,
    Text, Tree, With,
};
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

/// A column with its table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Qualified {
    /// The table's database; none for a table with an alias, or without a database.
    pub database: Option<String>,
    /// The table's name in the query.
    pub table: String,
    /// The column.
    pub column: String,
}

/// What names of a query stand for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resolved {
    /// Names of columns.
    pub columns: BTreeMap<ExprId, Qualified>,
    /// Stars: columns, and the names that they have in the result.
    pub stars: BTreeMap<ExprId, Vec<(Qualified, String)>>,
    /// The names that items of select lists have in the result.
    pub names: BTreeMap<ExprId, String>,
    /// The databases of tables, by where their names stand in the text.
    pub tables: BTreeMap<u32, String>,
    /// What `TABLE t` gives, by where the name stands.
    pub whole: BTreeMap<u32, Vec<(Qualified, String)>>,
    /// The pairs that NATURAL and USING compare.
    pub joins: BTreeMap<TableId, Vec<(Qualified, Qualified)>>,
}

/// The text of a query; names of the hidden database are not shown.
#[must_use]
pub fn canonical(
    tree: &Tree,
    query: QueryId,
    resolved: &Resolved,
    hidden: Option<&str>,
) -> Vec<u8> {
    let mut printer = Canonical { tree, resolved, hidden, out: Vec::new() };
    printer.query(query, true);
    printer.out
}

struct Canonical<'t> {
    tree: &'t Tree,
    resolved: &'t Resolved,
    hidden: Option<&'t str>,
    out: Vec<u8>,
}

impl Canonical<'_> {
    fn raw(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    fn lower(&mut self, text: &str) {
        self.out.extend(text.bytes().map(|byte| byte.to_ascii_lowercase()));
    }

    fn quoted(&mut self, name: &[u8]) {
        self.out.push(b'`');
        for byte in name {
            if *byte == b'`' {
                self.out.push(b'`');
            }
            self.out.push(*byte);
        }
        self.out.push(b'`');
    }

    fn name(&mut self, name: Text) {
        self.quoted(self.tree.text(name));
    }

    fn names_in_parentheses(&mut self, names: &[Text]) {
        if !names.is_empty() {
            self.raw(" (");
            self.commas(names, |printer, name| printer.name(*name));
            self.raw(")");
        }
    }

    fn commas<T>(&mut self, things: &[T], mut one: impl FnMut(&mut Self, &T)) {
        for (at, thing) in things.iter().enumerate() {
            if at > 0 {
                self.raw(",");
            }
            one(self, thing);
        }
    }

    fn exprs(&mut self, list: List) {
        let list = self.tree.list(list);
        self.commas(list, |printer, id| printer.expr(*id));
    }

    fn database(&mut self, database: &[u8]) {
        if self.hidden.is_none_or(|hidden| hidden.as_bytes() != database) {
            self.quoted(database);
            self.raw(".");
        }
    }

    fn qualified(&mut self, of: &Qualified) {
        if let Some(database) = &of.database {
            self.database(database.as_bytes());
        }
        self.quoted(of.table.as_bytes());
        self.raw(".");
        self.quoted(of.column.as_bytes());
    }

    fn query(&mut self, id: QueryId, with_names: bool) {
        let query = self.tree.query(id);
        if let Some(with) = &query.with {
            self.with(with);
        }
        self.body(query.body, with_names);
        self.order_by(" order by ", &query.order);
        if let Some(limit) = query.limit {
            self.limit(limit);
        }
    }

    fn query_in_parentheses(&mut self, id: QueryId, with_names: bool) {
        self.raw("(");
        self.query(id, with_names);
        self.raw(")");
    }

    fn with(&mut self, with: &With) {
        self.raw(if with.is_recursive { "with recursive " } else { "with " });
        for (at, table) in with.tables.iter().enumerate() {
            self.raw(if at > 0 { ", " } else { "" });
            self.name(table.name);
            self.names_in_parentheses(&table.columns);
            self.raw(" as ");
            self.query_in_parentheses(table.query, true);
        }
        self.raw(" ");
    }

    /// A body; set operations from the left in a loop.
    fn body(&mut self, id: BodyId, with_names: bool) {
        let mut behind = Vec::new();
        let mut at = id;
        while let Body::Set { op, quantifier, left, right } = *self.tree.body(at) {
            behind.push((op, quantifier, right));
            at = left;
            if let Body::Set { op: inner, .. } = *self.tree.body(left)
                && super::query::set_class(inner) < super::query::set_class(op)
            {
                break;
            }
        }
        self.part(at, with_names);
        for (op, quantifier, right) in behind.iter().rev() {
            self.raw(match op {
                SetOp::Union => " union ",
                SetOp::Intersect => " intersect ",
                SetOp::Except => " except ",
            });
            if *quantifier == SetQuantifier::All {
                self.raw("all ");
            }
            self.part(*right, with_names);
        }
    }

    fn nested(&mut self, id: BodyId, with_names: bool) {
        self.raw("(");
        self.body(id, with_names);
        self.raw(")");
    }

    /// A part of a set operation, or a query that is none.
    fn part(&mut self, id: BodyId, with_names: bool) {
        match self.tree.body(id) {
            Body::Select(select) => self.select(select, with_names),
            Body::Values(rows) => {
                self.raw("values ");
                self.commas(rows, |printer, row| {
                    printer.raw("row(");
                    printer.exprs(*row);
                    printer.raw(")");
                });
            }
            Body::Table(table) => self.whole_table(*table),
            Body::Nested(query) => self.query_in_parentheses(*query, with_names),
            Body::Set { .. } => self.nested(id, with_names),
        }
    }

    fn whole_table(&mut self, table: TableName) {
        let Some(columns) = self.resolved.whole.get(&table.span.start) else {
            self.raw("table ");
            return self.table_name(table);
        };
        self.raw("select ");
        self.columns(columns);
        self.raw(" from ");
        self.table_name(table);
    }

    fn columns(&mut self, columns: &[(Qualified, String)]) {
        self.commas(columns, |printer, (column, name)| {
            printer.qualified(column);
            printer.raw(" AS ");
            printer.quoted(name.as_bytes());
        });
    }

    #[inline(never)]
    fn select(&mut self, select: &Select, with_names: bool) {
        self.raw("select ");
        if select.options.is_distinct {
            self.raw("distinct ");
        }
        if select.options.straight_join {
            self.raw("straight_join ");
        }
        self.commas(&select.items, |printer, item| printer.item(item, with_names));
        if !select.from.is_empty() {
            self.raw(" from ");
            self.tables(&select.from);
        }
        self.clause(" where ", select.filter);
        if !select.group.is_empty() {
            self.raw(" group by ");
            self.exprs(select.group);
            if select.with_rollup {
                self.raw(" with rollup");
            }
        }
        self.clause(" having ", select.having);
        if !select.windows.is_empty() {
            self.raw(" window ");
            self.commas(&select.windows, |printer, (name, window)| {
                printer.name(*name);
                printer.raw(" AS ");
                printer.window(*window);
            });
        }
    }

    fn item(&mut self, item: &SelectItem, with_names: bool) {
        if let Some(columns) = self.resolved.stars.get(&item.value) {
            return self.columns(columns);
        }
        self.expr(item.value);
        match self.resolved.names.get(&item.value) {
            Some(name) if with_names => {
                self.raw(" AS ");
                self.quoted(name.as_bytes());
            }
            _ if item.alias.is_some() => {
                self.raw(" AS ");
                self.name(item.alias);
            }
            _ => {}
        }
    }

    fn clause(&mut self, word: &str, value: Option<ExprId>) {
        if let Some(value) = value {
            self.raw(word);
            self.expr(value);
        }
    }

    fn order_by(&mut self, word: &str, order: &[OrderItem]) {
        if !order.is_empty() {
            self.raw(word);
            self.commas(order, |printer, item| {
                printer.expr(item.value);
                if item.direction == Direction::Descending {
                    printer.raw(" desc");
                }
            });
        }
    }

    fn limit(&mut self, limit: Limit) {
        self.raw(" limit ");
        if let Some(offset) = limit.offset {
            self.expr(offset);
            self.raw(",");
        }
        self.expr(limit.count);
    }

    /// Tables that commas part are joined from the left.
    fn tables(&mut self, tables: &[TableId]) {
        let [first, rest @ ..] = tables else { return };
        rest.iter().for_each(|_| self.raw("("));
        self.table(*first);
        for table in rest {
            self.raw(" join ");
            self.table(*table);
            self.raw(")");
        }
    }

    fn table(&mut self, id: TableId) {
        match self.tree.table(id) {
            Table::Named { name, alias, hints, .. } => {
                self.table_name(*name);
                self.alias(*alias, name.name);
                hints.iter().for_each(|hint| self.index_hint(hint));
            }
            Table::Derived { is_lateral, query, alias, columns, .. } => {
                self.raw(if *is_lateral { "lateral " } else { "" });
                self.query_in_parentheses(*query, true);
                self.alias(*alias, Text::NONE);
                self.names_in_parentheses(columns);
            }
            Table::Join { kind, left, right, condition } => {
                self.join(id, *kind, (*left, *right), condition);
            }
            Table::Cross(tables) => self.tables(tables),
            Table::Json { .. } => {
                // Refused where names are looked up.
                let mut printer = super::Printer::new(self.tree);
                printer.table(id);
                self.out.extend_from_slice(&printer.out);
            }
        }
    }

    fn table_name(&mut self, table: TableName) {
        match self.resolved.tables.get(&table.span.start) {
            Some(database) => self.database(database.as_bytes()),
            None if table.schema.is_some() => self.database(self.tree.text(table.schema)),
            None => {}
        }
        self.name(table.name);
    }

    fn alias(&mut self, alias: Text, name: Text) {
        if alias.is_some() && self.tree.text(alias) != self.tree.text(name) {
            self.raw(" ");
            self.name(alias);
        }
    }

    fn join(
        &mut self,
        id: TableId,
        kind: JoinKind,
        (left, right): (TableId, TableId),
        condition: &JoinCondition,
    ) {
        use JoinKind as K;
        let (left, right, word) = match kind {
            K::Inner | K::Cross | K::Plain | K::Natural | K::NaturalInner => {
                (left, right, " join ")
            }
            K::Straight => (left, right, " straight_join "),
            K::Left | K::NaturalLeft => (left, right, " left join "),
            // The same rows, from the other side.
            K::Right | K::NaturalRight => (right, left, " left join "),
        };
        self.raw("(");
        self.table(left);
        self.raw(word);
        self.table(right);
        match (condition, self.resolved.joins.get(&id)) {
            (JoinCondition::On(condition), _) => {
                self.raw(" on(");
                self.expr(*condition);
                self.raw(")");
            }
            (_, Some(pairs)) if !pairs.is_empty() => self.on_pairs(pairs),
            (JoinCondition::Using(names), None) => {
                self.raw(" using");
                self.names_in_parentheses(names);
            }
            // NATURAL, without a column that both sides have.
            _ => self.raw(if word == " left join " { " on(true)" } else { "" }),
        }
        self.raw(")");
    }

    fn on_pairs(&mut self, pairs: &[(Qualified, Qualified)]) {
        self.raw(if pairs.len() > 1 { " on((" } else { " on(" });
        for (at, (left, right)) in pairs.iter().enumerate() {
            self.raw(if at > 0 { " and (" } else { "(" });
            self.qualified(left);
            self.raw(" = ");
            self.qualified(right);
            self.raw(")");
        }
        self.raw(if pairs.len() > 1 { "))" } else { ")" });
    }

    fn index_hint(&mut self, hint: &IndexHint) {
        self.raw(match hint.kind {
            IndexHintKind::Use => " USE INDEX (",
            IndexHintKind::Force => " FORCE INDEX (",
            IndexHintKind::Ignore => " IGNORE INDEX (",
        });
        self.commas(&hint.indexes, |printer, index| printer.name(*index));
        self.raw(")");
    }
}
