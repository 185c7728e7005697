//! Stored programs: procedures, functions, triggers and events, with their bodies. They are only read.

use super::{Parser, Result};
use crate::Keyword;
use crate::token::Kind;
use crate::tree::{Statement, Tree};
use Keyword as K;

/// What may stand between the head of a routine and its body.
const CHARACTERISTICS: &str = "[ COMMENT <text> | LANGUAGE SQL | NO SQL | CONTAINS SQL | READS SQL DATA | MODIFIES SQL DATA \
    | SQL SECURITY { DEFINER | INVOKER } | DETERMINISTIC | NOT DETERMINISTIC ]*";

impl Parser<'_> {
    /// A stored program, from the word that says what it is.
    pub(super) fn program(&mut self, is_alter: bool) -> Result<Statement> {
        self.is_in_program = true;
        let name = match self.token().word {
            K::PROCEDURE => self.procedure()?,
            K::FUNCTION => self.function()?,
            K::AGGREGATE => {
                self.advance();
                self.expect_word(K::FUNCTION)?;
                self.eat_if_not_exists()?;
                self.name()?;
                self.loadable_function()?
            }
            K::TRIGGER => self.trigger()?,
            K::EVENT if is_alter => self.alter_event()?,
            K::EVENT => self.event()?,
            _ => return Err(self.error()),
        };
        self.is_in_program = false;
        self.tree.warnings = alloc::vec::Vec::new();
        Ok(self.other_since(name, 0))
    }

    fn procedure(&mut self) -> Result<&'static str> {
        self.advance();
        self.eat_if_not_exists()?;
        self.table_name()?;
        self.expect(Kind::Open)?;
        if !self.is(Kind::Close) {
            self.comma_list(|parser| {
                if matches!(parser.token().word, K::IN | K::OUT | K::INOUT) {
                    parser.advance();
                }
                parser.name()?;
                parser.variable_type()
            })?;
        }
        self.expect(Kind::Close)?;
        self.follow(CHARACTERISTICS)?;
        self.program_statement()?;
        Ok("CREATE PROCEDURE")
    }

    fn function(&mut self) -> Result<&'static str> {
        self.advance();
        self.eat_if_not_exists()?;
        self.table_name()?;
        if self.is_word(K::RETURNS) {
            return self.loadable_function();
        }
        self.expect(Kind::Open)?;
        if !self.is(Kind::Close) {
            self.comma_list(|parser| {
                parser.name()?;
                parser.variable_type()
            })?;
        }
        self.expect(Kind::Close)?;
        self.expect_word(K::RETURNS)?;
        self.variable_type()?;
        self.follow(CHARACTERISTICS)?;
        self.program_statement()?;
        Ok("CREATE FUNCTION")
    }

    fn loadable_function(&mut self) -> Result<&'static str> {
        self.follow("RETURNS { STRING | REAL | INTEGER | INT | DECIMAL } SONAME <text>")?;
        Ok("CREATE FUNCTION SONAME")
    }

    fn variable_type(&mut self) -> Result<()> {
        self.column_type()?;
        if self.eat_word(K::COLLATE) {
            self.collation_name()?;
        }
        Ok(())
    }

    fn trigger(&mut self) -> Result<&'static str> {
        self.advance();
        self.eat_if_not_exists()?;
        self.table_name()?;
        self.follow("{ BEFORE | AFTER } { INSERT | UPDATE | DELETE } ON <table> FOR EACH ROW")?;
        if self.eat_one_of(&[K::FOLLOWS, K::PRECEDES]).is_some() {
            self.name_or_text()?;
        }
        self.program_statement()?;
        Ok("CREATE TRIGGER")
    }

    fn event(&mut self) -> Result<&'static str> {
        self.advance();
        self.eat_if_not_exists()?;
        self.table_name()?;
        self.expect_words(&[K::ON, K::SCHEDULE])?;
        self.schedule()?;
        self.follow("[ ON COMPLETION [ NOT ] PRESERVE ] [ ENABLE | DISABLE [ ON { REPLICA | SLAVE } ] ] [ COMMENT <text> ]")?;
        self.expect_word(K::DO)?;
        self.program_statement()?;
        Ok("CREATE EVENT")
    }

    fn alter_event(&mut self) -> Result<&'static str> {
        self.advance();
        self.table_name()?;
        let first = self.at;
        if self.eat_words(&[K::ON, K::SCHEDULE]) {
            self.schedule()?;
        }
        self.follow(
            "[ ON COMPLETION [ NOT ] PRESERVE ] [ RENAME TO <table> ] [ ENABLE | DISABLE [ ON { REPLICA | SLAVE } ] ] [ COMMENT <text> ]",
        )?;
        if self.eat_word(K::DO) {
            self.program_statement()?;
        }
        if self.at == first {
            return Err(self.error());
        }
        Ok("ALTER EVENT")
    }

    fn schedule(&mut self) -> Result<()> {
        if self.eat_word(K::AT) {
            self.expr()?;
            return Ok(());
        }
        self.expect_word(K::EVERY)?;
        self.expr()?;
        self.interval_unit()?;
        if self.eat_word(K::STARTS) {
            self.expr()?;
        }
        if self.eat_word(K::ENDS) {
            self.expr()?;
        }
        Ok(())
    }

    /// A statement within a program, without its semicolon.
    fn program_statement(&mut self) -> Result<()> {
        self.enter()?;
        let has_label = self.kind_ahead(1) == Kind::Colon && self.at_name();
        let label = if has_label {
            let label = self.label()?;
            self.advance();
            Some(label)
        } else {
            None
        };
        match self.token().word {
            K::BEGIN => self.block()?,
            K::LOOP => {
                self.advance();
                self.statements()?;
                self.expect_words(&[K::END, K::LOOP])?;
            }
            K::REPEAT => {
                self.advance();
                self.statements()?;
                self.expect_word(K::UNTIL)?;
                self.expr()?;
                self.expect_words(&[K::END, K::REPEAT])?;
            }
            K::WHILE => {
                self.advance();
                self.expr()?;
                self.expect_word(K::DO)?;
                self.statements()?;
                self.expect_words(&[K::END, K::WHILE])?;
            }
            _ if label.is_some() => return Err(self.error()),
            word => self.unlabeled(word)?,
        }
        if let Some(label) = label
            && self.at_name()
            && self.is(Kind::Word)
        {
            let (at, end) = (self.token().start, self.label()?);
            if !self.tree.text(end).eq_ignore_ascii_case(self.tree.text(label)) {
                let end = alloc::string::String::from_utf8_lossy(self.tree.text(end)).into_owned();
                let message = alloc::format!("End-label {end} without match");
                return Err(alloc::boxed::Box::new(crate::SyntaxError::new(
                    1310, "42000", &message, at,
                )));
            }
        }
        self.leave();
        Ok(())
    }

    fn unlabeled(&mut self, word: Keyword) -> Result<()> {
        match word {
            K::IF => self.if_statement(),
            K::CASE => self.case_statement(),
            K::RETURN => {
                self.advance();
                self.expr().map(drop)
            }
            K::LEAVE | K::ITERATE => {
                self.advance();
                self.label().map(drop)
            }
            K::OPEN | K::CLOSE => {
                self.advance();
                self.name().map(drop)
            }
            K::FETCH => {
                self.advance();
                if self.eat_word(K::NEXT) {
                    self.expect_word(K::FROM)?;
                } else {
                    self.eat_word(K::FROM);
                }
                self.name()?;
                self.expect_word(K::INTO)?;
                self.names().map(drop)
            }
            _ => {
                self.statement()?;
                // Nothing of the statement is needed any more.
                if self.depth == 1 {
                    self.tree = Tree::default();
                }
                Ok(())
            }
        }
    }

    /// Statements that semicolons end; at least one.
    fn statements(&mut self) -> Result<()> {
        loop {
            self.program_statement()?;
            self.expect(Kind::Semicolon)?;
            if matches!(self.token().word, K::END | K::ELSE | K::ELSEIF | K::WHEN | K::UNTIL) {
                return Ok(());
            }
        }
    }

    fn block(&mut self) -> Result<()> {
        self.advance();
        while self.is_word(K::DECLARE) {
            self.declaration()?;
            self.expect(Kind::Semicolon)?;
        }
        while !self.is_word(K::END) {
            self.program_statement()?;
            self.expect(Kind::Semicolon)?;
        }
        self.advance();
        Ok(())
    }

    fn declaration(&mut self) -> Result<()> {
        self.advance();
        if self.eat_one_of(&[K::CONTINUE, K::EXIT, K::UNDO]).is_some() {
            self.expect_words(&[K::HANDLER, K::FOR])?;
            self.follow(
                "{ SQLSTATE [ VALUE ] <text> | SQLWARNING | NOT FOUND | SQLEXCEPTION | <int> | <name> },",
            )?;
            return self.program_statement();
        }
        self.names()?;
        if self.eat_word(K::CONDITION) {
            return self.follow("FOR { SQLSTATE [ VALUE ] <text> | <int> }");
        }
        if self.eat_word(K::CURSOR) {
            self.expect_word(K::FOR)?;
            self.query_expression()?;
            return Ok(());
        }
        self.variable_type()?;
        if self.eat_word(K::DEFAULT) {
            self.expr()?;
        }
        Ok(())
    }

    fn if_statement(&mut self) -> Result<()> {
        self.advance();
        loop {
            self.expr()?;
            self.expect_word(K::THEN)?;
            self.statements()?;
            if !self.eat_word(K::ELSEIF) {
                break;
            }
        }
        if self.eat_word(K::ELSE) {
            self.statements()?;
        }
        self.expect_words(&[K::END, K::IF])
    }

    fn case_statement(&mut self) -> Result<()> {
        self.advance();
        if !self.is_word(K::WHEN) {
            self.expr()?;
        }
        self.expect_word(K::WHEN)?;
        loop {
            self.expr()?;
            self.expect_word(K::THEN)?;
            self.statements()?;
            if !self.eat_word(K::WHEN) {
                break;
            }
        }
        if self.eat_word(K::ELSE) {
            self.statements()?;
        }
        self.expect_words(&[K::END, K::CASE])
    }
}
