//! INSERT and REPLACE.

use super::expr::level::SIMPLE;
use super::{Parser, Result};
use crate::Keyword;
use crate::token::Kind;
use crate::tree::{
    Assignment, Expr, ExprId, Insert, InsertSource, List, Priority, Statement, Text,
};
use Keyword as K;
use alloc::boxed::Box;
use alloc::vec::Vec;

impl Parser<'_> {
    pub(super) fn insert(&mut self) -> Result<Statement> {
        let is_replace = self.is_word(K::REPLACE);
        self.advance();
        let hints = self.hints();
        let priority = match self.eat_one_of(&[K::LOW_PRIORITY, K::DELAYED]) {
            Some(K::LOW_PRIORITY) => Priority::Low,
            Some(_) => Priority::Delayed,
            None if !is_replace && self.eat_word(K::HIGH_PRIORITY) => Priority::High,
            None => Priority::None,
        };
        let is_ignore = !is_replace && self.eat_word(K::IGNORE);
        self.eat_word(K::INTO);
        let table = self.table_name()?;
        let partitions = self.partitions()?;
        let columns = self.insert_columns()?;
        let is_set = columns.is_none() && self.is_word(K::SET);
        let source = if is_set {
            self.advance();
            InsertSource::Set(self.assignments()?)
        } else if matches!(self.token().word, K::VALUES | K::VALUE) && self.word_ahead(1) != K::ROW
        {
            self.advance();
            InsertSource::Rows(self.rows()?)
        } else if self.at_query() || self.is(Kind::Open) {
            InsertSource::Query(self.query()?)
        } else {
            return Err(self.error());
        };
        let (mut row_alias, mut column_aliases) = (Text::NONE, Vec::new());
        let may_have_alias = !is_replace && !matches!(source, InsertSource::Query(_));
        if may_have_alias && self.eat_word(K::AS) {
            row_alias = self.name()?;
            if self.is(Kind::Open) {
                column_aliases = self.names_in_parentheses()?;
            }
        }
        let mut on_duplicate = Vec::new();
        if !is_replace && self.eat_word(K::ON) {
            self.expect_words(&[K::DUPLICATE, K::KEY, K::UPDATE])?;
            on_duplicate = self.assignments()?;
        }
        Ok(Statement::Insert(Box::new(Insert {
            is_replace,
            hints,
            priority,
            is_ignore,
            table,
            partitions,
            columns,
            source,
            row_alias,
            column_aliases,
            on_duplicate,
        })))
    }

    /// `(a, b)`, unless a query stands in the parentheses.
    fn insert_columns(&mut self) -> Result<Option<Vec<ExprId>>> {
        if !self.is(Kind::Open) {
            return Ok(None);
        }
        let is_query = matches!(self.word_ahead(1), K::SELECT | K::WITH | K::TABLE | K::VALUES);
        if is_query || self.kind_ahead(1) == Kind::Open {
            return Ok(None);
        }
        self.advance();
        if self.eat(Kind::Close) {
            return Ok(Some(Vec::new()));
        }
        let columns = self.comma_list(Self::column)?;
        self.expect(Kind::Close)?;
        Ok(Some(columns))
    }

    fn rows(&mut self) -> Result<Vec<List>> {
        self.comma_list(Self::row_of_values)
    }

    /// `(1, DEFAULT, …)`; it may be empty.
    pub(super) fn row_of_values(&mut self) -> Result<List> {
        self.expect(Kind::Open)?;
        let mark = self.scratch.len();
        if !self.is(Kind::Close) {
            loop {
                let value = self.expr_or_default()?;
                self.scratch.push(value);
                if !self.eat(Kind::Comma) {
                    break;
                }
            }
        }
        self.expect(Kind::Close)?;
        Ok(self.list_from(mark))
    }

    /// An expression, or DEFAULT.
    pub(super) fn expr_or_default(&mut self) -> Result<ExprId> {
        let token = self.token();
        if token.word == K::DEFAULT && self.kind_ahead(1) != Kind::Open {
            self.advance();
            return Ok(self.tree.add_expr(Expr::Default, token.span()));
        }
        // Most values are literals.
        if matches!(token.kind, Kind::Integer | Kind::Text | Kind::Decimal | Kind::Parameter) {
            let value = self.operand()?;
            if matches!(self.token().kind, Kind::Comma | Kind::Close) {
                return Ok(value);
            }
            return self.operators(value, SIMPLE, token.start, super::expr::level::OR);
        }
        self.expr()
    }

    /// `a = 1, b = DEFAULT`
    pub(super) fn assignments(&mut self) -> Result<Vec<Assignment>> {
        self.comma_list(|parser| {
            let column = parser.column()?;
            if !parser.eat(Kind::Assign) {
                parser.expect(Kind::Equal)?;
            }
            let value = parser.expr_or_default()?;
            Ok(Assignment { column, value })
        })
    }
}
