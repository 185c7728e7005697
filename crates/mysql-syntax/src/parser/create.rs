//! CREATE, ALTER and DROP: which of them it is, and the short ones.

use super::{Parser, Result};
use crate::Keyword;
use crate::token::Kind;
use crate::tree::{CheckOption, CreateView, OptionValue, Statement, TableOption, Text};
use Keyword as K;
use alloc::boxed::Box;
use alloc::vec::Vec;

impl Parser<'_> {
    pub(super) fn create(&mut self) -> Result<Statement> {
        match self.word_ahead(1) {
            K::TABLE | K::TEMPORARY => self.create_table(),
            K::INDEX | K::UNIQUE | K::FULLTEXT => self.create_index(),
            K::SPATIAL if self.word_ahead(2) != K::REFERENCE => self.create_index(),
            K::DATABASE | K::SCHEMA => self.create_database(),
            K::USER => self.user_change(false),
            K::ROLE => self.create_role(),
            K::OR if self.word_ahead(3) == K::SPATIAL => self.other(),
            K::OR | K::ALGORITHM | K::DEFINER | K::SQL | K::VIEW => self.create_view(false),
            K::PROCEDURE | K::FUNCTION | K::AGGREGATE | K::TRIGGER | K::EVENT => {
                self.advance();
                self.program(false)
            }
            _ => self.other(),
        }
    }

    pub(super) fn alter(&mut self) -> Result<Statement> {
        match self.word_ahead(1) {
            K::TABLE => self.alter_table(),
            K::DATABASE | K::SCHEMA => self.alter_database(),
            K::USER => self.user_change(true),
            K::ALGORITHM | K::DEFINER | K::SQL | K::VIEW => self.create_view(true),
            K::EVENT => {
                self.advance();
                self.program(true)
            }
            _ => self.other(),
        }
    }

    pub(super) fn drop_statement(&mut self) -> Result<Statement> {
        match self.word_ahead(1) {
            K::TABLE | K::TABLES | K::TEMPORARY => {
                self.advance();
                let is_temporary = self.eat_word(K::TEMPORARY);
                self.expect_one_of(&[K::TABLE, K::TABLES])?;
                let if_exists = self.eat_if_exists()?;
                let tables = self.table_names()?;
                self.eat_one_of(&[K::RESTRICT, K::CASCADE]);
                Ok(Statement::DropTables { is_temporary, if_exists, tables })
            }
            K::INDEX => self.drop_index(),
            K::VIEW => {
                self.advance();
                self.advance();
                let if_exists = self.eat_if_exists()?;
                let views = self.table_names()?;
                self.eat_one_of(&[K::RESTRICT, K::CASCADE]);
                Ok(Statement::DropViews { if_exists, views })
            }
            K::DATABASE | K::SCHEMA => {
                self.advance();
                self.advance();
                let if_exists = self.eat_if_exists()?;
                Ok(Statement::DropDatabase { if_exists, name: self.name()? })
            }
            K::USER | K::ROLE => self.drop_users(),
            K::PREPARE => self.deallocate(),
            _ => self.other(),
        }
    }

    fn create_database(&mut self) -> Result<Statement> {
        self.advance();
        self.advance();
        let if_not_exists = self.eat_if_not_exists()?;
        let name = self.name()?;
        let options = self.database_options(false)?;
        Ok(Statement::CreateDatabase { if_not_exists, name, options })
    }

    fn alter_database(&mut self) -> Result<Statement> {
        self.advance();
        self.advance();
        let name =
            if self.at_name() && !self.at_database_option() { self.name()? } else { Text::NONE };
        let options = self.database_options(true)?;
        if options.is_empty() {
            return Err(self.error());
        }
        Ok(Statement::AlterDatabase { name, options })
    }

    fn at_database_option(&self) -> bool {
        let is_charset = self.is_word(K::CHARSET) || self.is_word(K::ENCRYPTION);
        is_charset && !matches!(self.kind_ahead(1), Kind::End | Kind::Semicolon)
    }

    fn database_options(&mut self, is_alter: bool) -> Result<Vec<TableOption>> {
        let mut options = Vec::new();
        loop {
            let has_default = self.eat_word(K::DEFAULT);
            if self.eat_charset() {
                self.eat(Kind::Equal);
                let is_default = self.eat_word(K::DEFAULT);
                let value = if is_default {
                    OptionValue::Default
                } else {
                    OptionValue::Name(self.charset_name()?)
                };
                options.push(TableOption { name: K::CHARSET, value });
            } else if self.eat_word(K::COLLATE) {
                self.eat(Kind::Equal);
                let is_default = self.eat_word(K::DEFAULT);
                let value = if is_default {
                    OptionValue::Default
                } else {
                    OptionValue::Name(self.collation_name()?)
                };
                options.push(TableOption { name: K::COLLATE, value });
            } else if self.eat_word(K::ENCRYPTION) {
                self.eat(Kind::Equal);
                options.push(TableOption {
                    name: K::ENCRYPTION,
                    value: OptionValue::Text(self.text()?),
                });
            } else if is_alter && !has_default && self.eat_word(K::READ) {
                self.expect_word(K::ONLY)?;
                self.eat(Kind::Equal);
                let is_default = self.eat_word(K::DEFAULT);
                let value = if is_default {
                    OptionValue::Default
                } else {
                    OptionValue::Number(self.integer()?)
                };
                options.push(TableOption { name: K::READ, value });
            } else if has_default {
                return Err(self.error());
            } else {
                return Ok(options);
            }
        }
    }

    /// A view; what begins like one may also be a stored program with a definer.
    fn create_view(&mut self, is_alter: bool) -> Result<Statement> {
        self.advance();
        let or_replace = !is_alter && self.eat_words(&[K::OR, K::REPLACE]);
        let mut algorithm = K::None;
        if self.eat_word(K::ALGORITHM) {
            self.expect(Kind::Equal)?;
            algorithm = self.expect_one_of(&[K::UNDEFINED, K::MERGE, K::TEMPTABLE])?;
        }
        let mut definer = None;
        if self.eat_word(K::DEFINER) {
            self.expect(Kind::Equal)?;
            definer = Some(self.account()?);
        }
        let is_program =
            matches!(self.token().word, K::PROCEDURE | K::FUNCTION | K::TRIGGER | K::EVENT);
        if is_program
            && !or_replace
            && algorithm == K::None
            && (!is_alter || self.is_word(K::EVENT))
        {
            return self.program(is_alter);
        }
        let mut security = K::None;
        if self.eat_word(K::SQL) {
            self.expect_word(K::SECURITY)?;
            security = self.expect_one_of(&[K::DEFINER, K::INVOKER])?;
        }
        self.expect_word(K::VIEW)?;
        let view = self.table_name()?;
        let columns = if self.is(Kind::Open) { self.names_in_parentheses()? } else { Vec::new() };
        self.expect_word(K::AS)?;
        let start = self.token().start;
        let query = self.query()?;
        let query_span = self.span_from(start);
        let mut check = CheckOption::None;
        if self.eat_word(K::WITH) {
            check = match self.eat_one_of(&[K::CASCADED, K::LOCAL]) {
                Some(K::LOCAL) => CheckOption::Local,
                _ => CheckOption::Cascaded,
            };
            self.expect_words(&[K::CHECK, K::OPTION])?;
        }
        Ok(Statement::CreateView(Box::new(CreateView {
            or_replace,
            is_alter,
            algorithm,
            definer,
            security,
            view,
            columns,
            query,
            query_span,
            check,
        })))
    }

    pub(super) fn truncate(&mut self) -> Result<Statement> {
        self.advance();
        self.eat_word(K::TABLE);
        Ok(Statement::Truncate(self.table_name()?))
    }

    /// RENAME TABLE or RENAME USER.
    pub(super) fn rename(&mut self) -> Result<Statement> {
        self.advance();
        if self.eat_word(K::USER) {
            return Ok(Statement::RenameUsers(self.comma_list(|parser| {
                let old = parser.account()?;
                parser.expect_word(K::TO)?;
                Ok((old, parser.account()?))
            })?));
        }
        self.expect_one_of(&[K::TABLE, K::TABLES])?;
        Ok(Statement::RenameTables(self.comma_list(|parser| {
            let old = parser.table_name()?;
            parser.expect_word(K::TO)?;
            Ok((old, parser.table_name()?))
        })?))
    }
}
