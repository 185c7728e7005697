//! INSERT, UPDATE and DELETE.

use super::Printer;
use crate::tree::{Assignment, Delete, DeleteFrom, Insert, InsertSource, Priority, Update};

impl Printer<'_> {
    pub(super) fn insert(&mut self, insert: &Insert) {
        self.word(if insert.is_replace { "REPLACE" } else { "INSERT" });
        self.hints(&insert.hints);
        match insert.priority {
            Priority::None => {}
            Priority::Low => self.word("LOW_PRIORITY"),
            Priority::High => self.word("HIGH_PRIORITY"),
            Priority::Delayed => self.word("DELAYED"),
        }
        self.word_if(insert.is_ignore, "IGNORE");
        self.word("INTO");
        self.table_name(insert.table);
        if !insert.partitions.is_empty() {
            self.word("PARTITION");
            self.names_in_parentheses(&insert.partitions);
        }
        if let Some(columns) = &insert.columns {
            self.word("(");
            self.commas(columns, Self::expr);
            self.raw(")");
        }
        match &insert.source {
            InsertSource::Rows(rows) => {
                self.word("VALUES");
                self.commas(rows, |printer, row| {
                    printer.word("(");
                    printer.exprs(row);
                    printer.raw(")");
                });
            }
            InsertSource::Set(assignments) => {
                self.word("SET");
                self.assignments(assignments);
            }
            InsertSource::Query(query) => self.query(*query),
        }
        self.name_behind("AS", insert.row_alias);
        self.names_in_parentheses(&insert.column_aliases);
        if !insert.on_duplicate.is_empty() {
            self.word("ON DUPLICATE KEY UPDATE");
            self.assignments(&insert.on_duplicate);
        }
    }

    fn assignments(&mut self, assignments: &[Assignment]) {
        self.commas(assignments, |printer, assignment| {
            printer.expr(assignment.column);
            printer.word("=");
            printer.expr(assignment.value);
        });
    }

    pub(super) fn update(&mut self, update: &Update) {
        if let Some(with) = &update.with {
            self.with(with);
        }
        self.word("UPDATE");
        self.hints(&update.hints);
        self.word_if(update.is_low_priority, "LOW_PRIORITY");
        self.word_if(update.is_ignore, "IGNORE");
        self.commas(&update.tables, Self::table);
        self.word("SET");
        self.assignments(&update.assignments);
        self.clause("WHERE", update.filter);
        self.order_by(&update.order);
        if let Some(limit) = update.limit {
            self.limit(limit);
        }
    }

    pub(super) fn delete(&mut self, delete: &Delete) {
        if let Some(with) = &delete.with {
            self.with(with);
        }
        self.word("DELETE");
        self.hints(&delete.hints);
        self.word_if(delete.is_low_priority, "LOW_PRIORITY");
        self.word_if(delete.is_quick, "QUICK");
        self.word_if(delete.is_ignore, "IGNORE");
        match &delete.from {
            DeleteFrom::One { table, alias, partitions } => {
                self.word("FROM");
                self.table_name(*table);
                self.name_behind("AS", *alias);
                if !partitions.is_empty() {
                    self.word("PARTITION");
                    self.names_in_parentheses(partitions);
                }
            }
            DeleteFrom::Many { targets, is_using, tables } => {
                self.word_if(*is_using, "FROM");
                self.commas(targets, Self::table_name);
                self.word(if *is_using { "USING" } else { "FROM" });
                self.commas(tables, Self::table);
            }
        }
        self.clause("WHERE", delete.filter);
        self.order_by(&delete.order);
        if let Some(limit) = delete.limit {
            self.limit(limit);
        }
    }
}
