//! Queries and tables.

use super::Printer;
use crate::tree::{
    Body, BodyId, FileFormat, Hint, IndexHint, IndexHintFor, IndexHintKind, Into, IntoTarget,
    JoinCondition, JoinKind, JsonColumn, Limit, Lock, LockKind, LockWait, QueryId, Select, SetOp,
    SetQuantifier, Table, TableId, With,
};
use alloc::vec::Vec;

pub(super) fn set_class(op: SetOp) -> u8 {
    if op == SetOp::Intersect { 2 } else { 1 }
}

fn join_words(kind: JoinKind) -> &'static str {
    match kind {
        JoinKind::Inner => "INNER JOIN",
        JoinKind::Cross => "CROSS JOIN",
        JoinKind::Plain => "JOIN",
        JoinKind::Straight => "STRAIGHT_JOIN",
        JoinKind::Left => "LEFT JOIN",
        JoinKind::Right => "RIGHT JOIN",
        JoinKind::Natural => "NATURAL JOIN",
        JoinKind::NaturalInner => "NATURAL INNER JOIN",
        JoinKind::NaturalLeft => "NATURAL LEFT JOIN",
        JoinKind::NaturalRight => "NATURAL RIGHT JOIN",
    }
}

impl Printer<'_> {
    pub(super) fn query_in_parentheses(&mut self, id: QueryId) {
        self.word("(");
        self.query(id);
        self.raw(")");
    }

    #[inline(never)]
    pub(super) fn query(&mut self, id: QueryId) {
        let query = self.tree.query(id);
        if let Some(with) = &query.with {
            self.with(with);
        }
        self.body(query.body);
        self.order_by(&query.order);
        if let Some(limit) = query.limit {
            self.limit(limit);
        }
        if let Some(into) = &query.into
            && !query.is_into_last
        {
            self.into(into);
        }
        for lock in &query.locks {
            self.lock(lock);
        }
        if let Some(into) = &query.into
            && query.is_into_last
        {
            self.into(into);
        }
    }

    pub(super) fn with(&mut self, with: &With) {
        self.word("WITH");
        self.word_if(with.is_recursive, "RECURSIVE");
        self.commas_ref(&with.tables, |printer, table| {
            printer.name(table.name);
            printer.names_in_parentheses(&table.columns);
            printer.word("AS");
            printer.query_in_parentheses(table.query);
        });
    }

    /// A body; set operations from the left in a loop.
    fn body(&mut self, id: BodyId) {
        let mut behind = Vec::new();
        let mut at = id;
        while let Body::Set { op, quantifier, left, right } = *self.tree.body(at) {
            behind.push((op, quantifier, right));
            if let Body::Set { op: inner, .. } = *self.tree.body(left)
                && set_class(inner) < set_class(op)
            {
                self.nested_body(left);
                return self.set_tails(&behind);
            }
            at = left;
        }
        self.simple_body(at);
        self.set_tails(&behind);
    }

    fn nested_body(&mut self, id: BodyId) {
        self.word("(");
        self.body(id);
        self.raw(")");
    }

    fn set_tails(&mut self, behind: &[(SetOp, SetQuantifier, BodyId)]) {
        for (op, quantifier, right) in behind.iter().rev() {
            self.word(match op {
                SetOp::Union => "UNION",
                SetOp::Intersect => "INTERSECT",
                SetOp::Except => "EXCEPT",
            });
            match quantifier {
                SetQuantifier::None => {}
                SetQuantifier::All => self.word("ALL"),
                SetQuantifier::Distinct => self.word("DISTINCT"),
            }
            match *self.tree.body(*right) {
                Body::Set { op: inner, .. } if set_class(inner) <= set_class(*op) => {
                    self.nested_body(*right)
                }
                Body::Set { .. } => self.body(*right),
                _ => self.simple_body(*right),
            }
        }
    }

    fn simple_body(&mut self, id: BodyId) {
        match self.tree.body(id) {
            Body::Select(select) => self.select(select),
            Body::Values(rows) => {
                self.word("VALUES");
                self.commas(rows, |printer, row| {
                    printer.word("ROW(");
                    printer.exprs(row);
                    printer.raw(")");
                });
            }
            Body::Table(table) => {
                self.word("TABLE");
                self.table_name(*table);
            }
            Body::Nested(query) => self.query_in_parentheses(*query),
            Body::Set { .. } => self.body(id),
        }
    }

    pub(super) fn hints(&mut self, hints: &[Hint]) {
        if hints.is_empty() {
            return;
        }
        self.word("/*+");
        for hint in hints {
            self.bytes(hint.name);
            self.raw("(");
            self.out.extend_from_slice(self.tree.text(hint.arguments));
            self.raw(")");
        }
        self.word("*/");
    }

    #[inline(never)]
    fn select(&mut self, select: &Select) {
        self.word("SELECT");
        self.hints(&select.hints);
        let options = select.options;
        self.word_if(options.is_all, "ALL");
        self.word_if(options.is_distinct, "DISTINCT");
        self.word_if(options.high_priority, "HIGH_PRIORITY");
        self.word_if(options.straight_join, "STRAIGHT_JOIN");
        self.word_if(options.small_result, "SQL_SMALL_RESULT");
        self.word_if(options.big_result, "SQL_BIG_RESULT");
        self.word_if(options.buffer_result, "SQL_BUFFER_RESULT");
        self.word_if(options.no_cache, "SQL_NO_CACHE");
        self.word_if(options.calc_found_rows, "SQL_CALC_FOUND_ROWS");
        self.commas(&select.items, |printer, item| {
            printer.expr(item.value);
            printer.name_behind("AS", item.alias);
        });
        if let Some(into) = &select.into {
            self.into(into);
        }
        self.word_if(select.is_from_dual, "FROM DUAL");
        if !select.from.is_empty() {
            self.word("FROM");
            self.commas(&select.from, Self::table);
        }
        self.clause("WHERE", select.filter);
        if !select.group.is_empty() {
            self.word("GROUP BY");
            self.exprs(select.group);
            self.word_if(select.with_rollup, "WITH ROLLUP");
        }
        self.clause("HAVING", select.having);
        if !select.windows.is_empty() {
            self.word("WINDOW");
            self.commas(&select.windows, |printer, (name, window)| {
                printer.name(name);
                printer.word("AS");
                printer.window(window);
            });
        }
    }

    /// A word and an expression, if there is one.
    pub(super) fn clause(&mut self, word: &str, value: Option<crate::tree::ExprId>) {
        if let Some(value) = value {
            self.word(word);
            self.expr(value);
        }
    }

    pub(super) fn limit(&mut self, limit: Limit) {
        self.word("LIMIT");
        match limit.offset {
            Some(offset) if limit.is_comma => {
                self.expr(offset);
                self.raw(",");
                self.expr(limit.count);
            }
            offset => {
                self.expr(limit.count);
                self.clause("OFFSET", offset);
            }
        }
    }

    fn lock(&mut self, lock: &Lock) {
        self.word(match lock.kind {
            LockKind::Update => "FOR UPDATE",
            LockKind::Share => "FOR SHARE",
            LockKind::ShareMode => "LOCK IN SHARE MODE",
        });
        if !lock.of.is_empty() {
            self.word("OF");
            self.commas(&lock.of, Self::table_name);
        }
        match lock.wait {
            LockWait::Wait => {}
            LockWait::NoWait => self.word("NOWAIT"),
            LockWait::SkipLocked => self.word("SKIP LOCKED"),
        }
    }

    fn into(&mut self, into: &Into) {
        self.word("INTO");
        match into {
            Into::Dumpfile(file) => self.text_behind("DUMPFILE", *file),
            Into::Outfile { file, charset, format } => {
                self.text_behind("OUTFILE", *file);
                self.name_behind("CHARACTER SET", *charset);
                self.file_format(format);
            }
            Into::Variables(targets) => self.commas(targets, |printer, target| match target {
                IntoTarget::User(name) => printer.variable(name),
                IntoTarget::Local(name) => printer.name(name),
            }),
        }
    }

    fn file_format(&mut self, format: &FileFormat) {
        self.word_if(format.has_fields, "FIELDS");
        // They are kept in the order in which they were written, by the numbers of their expressions.
        let mut parts: Vec<(crate::tree::ExprId, &str)> = Vec::new();
        let enclosed = if format.is_optionally { "OPTIONALLY ENCLOSED BY" } else { "ENCLOSED BY" };
        let fields = [
            (format.fields_terminated, "TERMINATED BY"),
            (format.enclosed, enclosed),
            (format.escaped, "ESCAPED BY"),
        ];
        parts.extend(fields.iter().filter_map(|(value, word)| Some(((*value)?, *word))));
        parts.sort_unstable();
        for (value, word) in parts.drain(..) {
            self.clause(word, Some(value));
        }
        self.word_if(format.has_lines, "LINES");
        let lines =
            [(format.lines_starting, "STARTING BY"), (format.lines_terminated, "TERMINATED BY")];
        parts.extend(lines.iter().filter_map(|(value, word)| Some(((*value)?, *word))));
        parts.sort_unstable();
        for (value, word) in parts {
            self.clause(word, Some(value));
        }
    }

    /// A table reference; joins from the left in a loop.
    #[inline(never)]
    pub(super) fn table(&mut self, id: TableId) {
        let mut behind = Vec::new();
        let mut at = id;
        while let Table::Join { left, .. } = *self.tree.table(at) {
            behind.push(at);
            at = left;
        }
        self.simple_table(at);
        while let Some(at) = behind.pop() {
            let Table::Join { kind, right, condition, .. } = self.tree.table(at) else { continue };
            self.word(join_words(*kind));
            self.simple_table(*right);
            match condition {
                JoinCondition::None => {}
                JoinCondition::On(condition) => self.clause("ON", Some(*condition)),
                JoinCondition::Using(columns) => {
                    self.word("USING");
                    self.names_in_parentheses(columns);
                }
            }
        }
    }

    fn simple_table(&mut self, id: TableId) {
        match self.tree.table(id) {
            Table::Named { name, partitions, alias, hints } => {
                self.table_name(*name);
                if !partitions.is_empty() {
                    self.word("PARTITION");
                    self.names_in_parentheses(partitions);
                }
                self.name_behind("AS", *alias);
                hints.iter().for_each(|hint| self.index_hint(hint));
            }
            Table::Derived { is_lateral, query, alias, columns, .. } => {
                self.word_if(*is_lateral, "LATERAL");
                self.query_in_parentheses(*query);
                self.name_behind("AS", *alias);
                self.names_in_parentheses(columns);
            }
            Table::Json { document, path, columns, alias } => {
                self.word("JSON_TABLE(");
                self.expr(*document);
                self.raw(",");
                self.text(*path);
                self.word("COLUMNS (");
                let count = self.json_level(columns, u32::MAX);
                debug_assert_eq!(count, columns.len());
                self.raw("))");
                self.name_behind("AS", *alias);
            }
            Table::Join { .. } => {
                self.word("(");
                self.table(id);
                self.raw(")");
            }
            Table::Cross(tables) => {
                self.word("(");
                self.commas(tables, Self::table);
                self.raw(")");
            }
        }
    }

    /// So many columns of JSON_TABLE with those in them; how many that were.
    fn json_level(&mut self, columns: &[JsonColumn], count: u32) -> usize {
        let (mut at, mut done) = (0, 0);
        while done < count && at < columns.len() {
            if done > 0 {
                self.raw(",");
            }
            done += 1;
            at += 1;
            match &columns[at - 1] {
                JsonColumn::Ordinality(name) => {
                    self.name(*name);
                    self.word("FOR ORDINALITY");
                }
                JsonColumn::Path {
                    name,
                    data_type,
                    collation,
                    is_exists,
                    path,
                    on_empty,
                    on_error,
                } => {
                    self.name(*name);
                    self.data_type(data_type);
                    self.name_behind("COLLATE", *collation);
                    self.word_if(*is_exists, "EXISTS");
                    self.text_behind("PATH", *path);
                    self.json_defaults(*on_empty, *on_error);
                }
                JsonColumn::Nested { path, columns: inner } => {
                    self.text_behind("NESTED PATH", *path);
                    self.word("COLUMNS (");
                    at += self.json_level(&columns[at..], *inner);
                    self.raw(")");
                }
            }
        }
        at
    }

    fn index_hint(&mut self, hint: &IndexHint) {
        self.word(match hint.kind {
            IndexHintKind::Use => "USE INDEX",
            IndexHintKind::Force => "FORCE INDEX",
            IndexHintKind::Ignore => "IGNORE INDEX",
        });
        match hint.purpose {
            IndexHintFor::All => {}
            IndexHintFor::Join => self.word("FOR JOIN"),
            IndexHintFor::OrderBy => self.word("FOR ORDER BY"),
            IndexHintFor::GroupBy => self.word("FOR GROUP BY"),
        }
        self.word("(");
        self.names(&hint.indexes);
        self.raw(")");
    }
}
