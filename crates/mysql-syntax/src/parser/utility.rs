//! Statements that help: EXPLAIN, USE, PREPARE, KILL, FLUSH, and the care of tables.

use super::{Parser, Result};
use crate::Keyword;
use crate::token::Kind;
use crate::tree::{
    Explain, ExplainWhat, FlushItem, KillWhat, PrepareSource, Statement, TableAdmin, Text,
};
use Keyword as K;
use alloc::boxed::Box;
use alloc::vec::Vec;

impl Parser<'_> {
    /// EXPLAIN, DESCRIBE or DESC.
    pub(super) fn explain(&mut self) -> Result<Statement> {
        self.advance();
        let is_table = self.at_name() && !self.at_explain_option();
        if is_table {
            let table = self.table_name()?;
            let column = if self.at_name() || self.is(Kind::Text) {
                self.name_or_text()?
            } else {
                Text::NONE
            };
            return Ok(Statement::Describe { table, column });
        }
        let is_analyze = self.eat_word(K::ANALYZE);
        let (mut format, mut into, mut schema) = (Text::NONE, Text::NONE, Text::NONE);
        if self.eat_word(K::FORMAT) {
            self.expect(Kind::Equal)?;
            format = self.name_or_text()?;
        }
        if self.eat_word(K::INTO) {
            self.expect(Kind::At)?;
            into = self.variable_name()?;
        }
        if self.is_word(K::FOR) && matches!(self.word_ahead(1), K::SCHEMA | K::DATABASE) {
            self.advance();
            self.advance();
            schema = self.name()?;
        }
        let what = if self.is_word(K::FOR) && !is_analyze {
            self.advance();
            self.expect_word(K::CONNECTION)?;
            if !matches!(self.token().kind, Kind::Integer) {
                return Err(self.error());
            }
            ExplainWhat::Connection(self.operand()?)
        } else {
            let is_explainable = self.at_query()
                || self.is(Kind::Open)
                || matches!(self.token().word, K::INSERT | K::REPLACE | K::UPDATE | K::DELETE);
            if !is_explainable {
                return Err(self.error());
            }
            ExplainWhat::Statement(Box::new(self.statement()?))
        };
        Ok(Statement::Explain(Box::new(Explain { is_analyze, format, into, schema, what })))
    }

    /// FORMAT is an option before an equal sign, and a table otherwise.
    fn at_explain_option(&self) -> bool {
        self.is_word(K::FORMAT) && self.kind_ahead(1) == Kind::Equal
    }

    pub(super) fn prepare(&mut self) -> Result<Statement> {
        self.advance();
        let name = self.name()?;
        self.expect_word(K::FROM)?;
        let source = if self.eat(Kind::At) {
            PrepareSource::Variable(self.variable_name()?)
        } else {
            PrepareSource::Text(self.text()?)
        };
        Ok(Statement::Prepare { name, source })
    }

    pub(super) fn execute(&mut self) -> Result<Statement> {
        self.advance();
        let name = self.name()?;
        let mut variables = Vec::new();
        if self.eat_word(K::USING) {
            variables = self.comma_list(|parser| {
                parser.expect(Kind::At)?;
                parser.variable_name()
            })?;
        }
        Ok(Statement::Execute { name, variables })
    }

    /// DEALLOCATE PREPARE, or DROP PREPARE.
    pub(super) fn deallocate(&mut self) -> Result<Statement> {
        self.advance();
        self.expect_word(K::PREPARE)?;
        Ok(Statement::Deallocate(self.name()?))
    }

    pub(super) fn call_statement(&mut self) -> Result<Statement> {
        self.advance();
        let (mut schema, mut name) = (Text::NONE, self.name()?);
        if self.eat(Kind::Dot) {
            (schema, name) = (name, self.name()?);
        }
        let arguments = if self.is(Kind::Open) {
            self.arguments_in_parentheses()?
        } else {
            crate::tree::List::EMPTY
        };
        Ok(Statement::Call { schema, name, arguments })
    }

    pub(super) fn do_statement(&mut self) -> Result<Statement> {
        self.advance();
        let mark = self.scratch.len();
        loop {
            let value = self.expr()?;
            self.scratch.push(value);
            // As in SELECT, an alias may follow, which says nothing here.
            if self.eat_word(K::AS) || self.at_name() {
                let pool = self.tree.bytes.len();
                self.name_or_text()?;
                self.tree.bytes.truncate(pool);
            }
            if !self.eat(Kind::Comma) {
                break;
            }
        }
        Ok(Statement::Do(self.list_from(mark)))
    }

    pub(super) fn kill(&mut self) -> Result<Statement> {
        self.advance();
        let has_word = !matches!(self.kind_ahead(1), Kind::End | Kind::Semicolon);
        let what = match self.token().word {
            K::CONNECTION if has_word => KillWhat::Connection,
            K::QUERY if has_word => KillWhat::Query,
            _ => KillWhat::None,
        };
        if what != KillWhat::None {
            self.advance();
        }
        let id = self.expr()?;
        Ok(Statement::Kill { what, id })
    }

    pub(super) fn flush(&mut self) -> Result<Statement> {
        self.advance();
        let is_local = self.eat_one_of(&[K::NO_WRITE_TO_BINLOG, K::LOCAL]).is_some();
        if self.eat_one_of(&[K::TABLES, K::TABLE]).is_some() {
            let tables = if self.at_name() { self.table_names()? } else { Vec::new() };
            let (mut with_read_lock, mut for_export) = (false, false);
            if self.eat_word(K::WITH) {
                self.expect_words(&[K::READ, K::LOCK])?;
                with_read_lock = true;
            } else if !tables.is_empty() && self.eat_word(K::FOR) {
                self.expect_word(K::EXPORT)?;
                for_export = true;
            }
            let what = alloc::vec![FlushItem::Tables { tables, with_read_lock, for_export }];
            return Ok(Statement::Flush { is_local, what });
        }
        let what = self.comma_list(Self::flush_item)?;
        Ok(Statement::Flush { is_local, what })
    }

    fn flush_item(&mut self) -> Result<FlushItem> {
        let at = self.token().start;
        let word = self.token().word;
        self.advance();
        let logs = match word {
            K::ERROR => "ERROR LOGS",
            K::ENGINE => "ENGINE LOGS",
            K::GENERAL => "GENERAL LOGS",
            K::SLOW => "SLOW LOGS",
            K::BINARY => "BINARY LOGS",
            K::RELAY => {
                self.expect_word(K::LOGS)?;
                let channel = if self.eat_words(&[K::FOR, K::CHANNEL]) {
                    self.name_or_text()?
                } else {
                    Text::NONE
                };
                return Ok(FlushItem::RelayLogs(channel));
            }
            K::LOGS => return Ok(FlushItem::Logs("LOGS")),
            K::STATUS => return Ok(FlushItem::Logs("STATUS")),
            K::PRIVILEGES => return Ok(FlushItem::Logs("PRIVILEGES")),
            K::USER_RESOURCES => return Ok(FlushItem::Logs("USER_RESOURCES")),
            K::OPTIMIZER_COSTS => return Ok(FlushItem::Logs("OPTIMIZER_COSTS")),
            _ => return Err(self.error_at(at)),
        };
        self.expect_word(K::LOGS)?;
        Ok(FlushItem::Logs(logs))
    }

    /// ANALYZE, CHECK, CHECKSUM, OPTIMIZE or REPAIR TABLE.
    pub(super) fn table_admin(&mut self) -> Result<Statement> {
        let verb = self.token().word;
        self.advance();
        let may_be_local = matches!(verb, K::ANALYZE | K::OPTIMIZE | K::REPAIR);
        let is_local =
            may_be_local && self.eat_one_of(&[K::NO_WRITE_TO_BINLOG, K::LOCAL]).is_some();
        self.expect_one_of(&[K::TABLE, K::TABLES])?;
        let tables = self.table_names()?;
        let first = self.at;
        let pattern = match verb {
            K::ANALYZE => {
                "[ UPDATE HISTOGRAM ON { <name> }, \
                 [ WITH <int> BUCKETS [ AUTO UPDATE | MANUAL UPDATE ] | AUTO UPDATE | MANUAL UPDATE | USING DATA <text> ] \
                 | DROP HISTOGRAM ON { <name> }, ]"
            }
            K::CHECK => "[ FOR UPGRADE | QUICK | FAST | MEDIUM | EXTENDED | CHANGED ]*",
            K::CHECKSUM => "[ QUICK | EXTENDED ]",
            K::REPAIR => "[ QUICK | EXTENDED | USE_FRM ]*",
            _ => "",
        };
        self.follow(pattern)?;
        let options = if self.at == first { Text::NONE } else { self.raw_from(first) };
        Ok(Statement::TableAdmin(Box::new(TableAdmin { verb, is_local, tables, options })))
    }

    /// `RESET PERSIST`, or another RESET.
    pub(super) fn reset(&mut self) -> Result<Statement> {
        if self.word_ahead(1) != K::PERSIST {
            return self.other();
        }
        self.advance();
        self.advance();
        let if_exists = self.eat_if_exists()?;
        let mut name = Text::NONE;
        if if_exists || self.at_name() {
            let first = self.at;
            self.name()?;
            if self.eat(Kind::Dot) {
                self.name()?;
            }
            self.tree.bytes.clear();
            name = self.raw_from(first);
        }
        Ok(Statement::ResetPersist { if_exists, name })
    }
}
