//! UPDATE and DELETE.

use super::{Parser, Result};
use crate::token::Kind;
use crate::tree::{Delete, DeleteFrom, Statement, Table, TableName, Text, Update, With};
use crate::{Keyword, Span};
use Keyword as K;
use alloc::boxed::Box;
use alloc::vec::Vec;

impl Parser<'_> {
    pub(super) fn update(&mut self, with: Option<Box<With>>) -> Result<Statement> {
        self.advance();
        let hints = self.hints();
        let is_low_priority = self.eat_word(K::LOW_PRIORITY);
        let is_ignore = self.eat_word(K::IGNORE);
        let tables = self.table_references()?;
        self.expect_word(K::SET)?;
        let assignments = self.assignments()?;
        let filter = self.filter()?;
        let at = self.token().span();
        let order = self.order_by()?;
        let limit = self.simple_limit()?;
        let is_one = tables.len() == 1 && matches!(self.tree.table(tables[0]), Table::Named { .. });
        if !is_one && !order.is_empty() {
            return Err(self.usage("UPDATE", "ORDER BY", at));
        }
        if !is_one && limit.is_some() {
            return Err(self.usage("UPDATE", "LIMIT", at));
        }
        Ok(Statement::Update(Box::new(Update {
            with,
            hints,
            is_low_priority,
            is_ignore,
            tables,
            assignments,
            filter,
            order,
            limit,
        })))
    }

    pub(super) fn delete(&mut self, with: Option<Box<With>>) -> Result<Statement> {
        self.advance();
        let hints = self.hints();
        let mut delete = Delete {
            with,
            hints,
            is_low_priority: false,
            is_quick: false,
            is_ignore: false,
            from: DeleteFrom::Many { targets: Vec::new(), is_using: false, tables: Vec::new() },
            filter: None,
            order: Vec::new(),
            limit: None,
        };
        loop {
            match self.token().word {
                K::LOW_PRIORITY => delete.is_low_priority = true,
                // QUICK may also be the name of a table.
                K::QUICK if self.is_delete_option() => delete.is_quick = true,
                K::IGNORE => delete.is_ignore = true,
                _ => break,
            }
            self.advance();
        }
        if !self.eat_word(K::FROM) {
            let targets = self.comma_list(Self::delete_target)?;
            self.expect_word(K::FROM)?;
            let tables = self.table_references()?;
            delete.from = DeleteFrom::Many { targets, is_using: false, tables };
            delete.filter = self.filter()?;
            return Ok(Statement::Delete(Box::new(delete)));
        }
        let start = self.token().start;
        let first = self.delete_target_or_table()?;
        if first.1 || matches!(self.token().kind, Kind::Comma) || self.is_word(K::USING) {
            let mut targets = alloc::vec![first.0];
            while self.eat(Kind::Comma) {
                targets.push(self.delete_target()?);
            }
            self.expect_word(K::USING)?;
            let tables = self.table_references()?;
            delete.from = DeleteFrom::Many { targets, is_using: true, tables };
            delete.filter = self.filter()?;
            return Ok(Statement::Delete(Box::new(delete)));
        }
        let table = TableName { span: Span { start, end: first.0.span.end }, ..first.0 };
        let alias = self.table_alias()?;
        let partitions = self.partitions()?;
        delete.from = DeleteFrom::One { table, alias, partitions };
        delete.filter = self.filter()?;
        delete.order = self.order_by()?;
        delete.limit = self.simple_limit()?;
        Ok(Statement::Delete(Box::new(delete)))
    }

    /// True if QUICK is an option here, and not a table.
    fn is_delete_option(&self) -> bool {
        let next = self.ahead(1);
        let is_name =
            next.word == K::FROM && Self::is_name(self.ahead(2)) && self.word_ahead(3) == K::FROM;
        !matches!(next.kind, Kind::Comma | Kind::Dot) && !is_name
    }

    fn delete_target(&mut self) -> Result<TableName> {
        Ok(self.delete_target_or_table()?.0)
    }

    /// `t`, `s.t`, `t.*` or `s.t.*`, and whether there was a star.
    fn delete_target_or_table(&mut self) -> Result<(TableName, bool)> {
        let start = self.token().start;
        let (mut schema, mut name, mut has_star) = (Text::NONE, self.name()?, false);
        while self.eat(Kind::Dot) {
            if self.eat(Kind::Star) {
                has_star = true;
                break;
            }
            if schema.is_some() {
                return Err(self.error());
            }
            (schema, name) = (name, self.name()?);
        }
        Ok((TableName { schema, name, span: self.span_from(start) }, has_star))
    }
}
