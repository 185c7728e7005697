//! SELECT: its options, items and clauses.

use super::{Parser, Result};
use crate::token::Kind;
use crate::tree::{Expr, ExprId, List, Select, SelectItem, SelectOptions, Text};
use crate::{Keyword, Span};
use Keyword as K;
use alloc::vec::Vec;

impl Parser<'_> {
    pub(super) fn select(&mut self) -> Result<Select> {
        // A SELECT takes more of the stack than other steps.
        self.enter()?;
        let start = self.token().start;
        self.advance();
        let hints = self.hints();
        let options = self.select_options()?;
        let items = self.select_items()?;
        if self.is_word(K::INTO) && self.query_nesting > 0 {
            return Err(self.misplaced_into(self.token().start));
        }
        let mut select = Select {
            hints,
            options,
            items,
            into: self.into()?,
            from: Vec::new(),
            is_from_dual: false,
            filter: None,
            group: List::EMPTY,
            with_rollup: false,
            having: None,
            windows: Vec::new(),
            span: Span::default(),
        };
        if self.eat_word(K::FROM) {
            if self.eat_word(K::DUAL) {
                select.is_from_dual = true;
            } else {
                select.from = self.table_references()?;
            }
        }
        select.filter = self.filter()?;
        if self.eat_word(K::GROUP) {
            self.expect_word(K::BY)?;
            select.group = self.exprs()?;
            select.with_rollup = self.eat_words(&[K::WITH, K::ROLLUP]);
        }
        if self.eat_word(K::HAVING) {
            select.having = Some(self.expr()?);
        }
        if self.eat_word(K::WINDOW) {
            select.windows = self.comma_list(|parser| {
                let name = parser.name()?;
                parser.expect_word(K::AS)?;
                Ok((name, parser.window()?))
            })?;
        }
        select.span = self.span_from(start);
        self.leave();
        Ok(select)
    }

    /// WHERE, if it comes next.
    pub(super) fn filter(&mut self) -> Result<Option<ExprId>> {
        if self.eat_word(K::WHERE) { Ok(Some(self.expr()?)) } else { Ok(None) }
    }

    /// Expressions that commas part.
    pub(super) fn exprs(&mut self) -> Result<List> {
        let mark = self.scratch.len();
        loop {
            let value = self.expr()?;
            self.scratch.push(value);
            if !self.eat(Kind::Comma) {
                return Ok(self.list_from(mark));
            }
        }
    }

    fn select_options(&mut self) -> Result<SelectOptions> {
        let mut options = SelectOptions::default();
        loop {
            let span = self.token().span();
            match self.token().word {
                K::ALL => options.is_all = true,
                K::DISTINCT | K::DISTINCTROW => options.is_distinct = true,
                K::HIGH_PRIORITY => options.high_priority = true,
                K::STRAIGHT_JOIN => options.straight_join = true,
                K::SQL_SMALL_RESULT => options.small_result = true,
                K::SQL_BIG_RESULT => options.big_result = true,
                K::SQL_CALC_FOUND_ROWS => options.calc_found_rows = true,
                // These two are names too; as options, something follows that can begin an item.
                K::SQL_BUFFER_RESULT if !self.ends_item(1) => options.buffer_result = true,
                K::SQL_NO_CACHE if !self.ends_item(1) => options.no_cache = true,
                _ => return Ok(options),
            }
            if options.is_all && options.is_distinct {
                return Err(self.usage("ALL", "DISTINCT", span));
            }
            self.advance();
        }
    }

    /// True if the token there ends an item of SELECT.
    fn ends_item(&self, ahead: usize) -> bool {
        matches!(
            self.kind_ahead(ahead),
            Kind::Comma | Kind::End | Kind::Close | Kind::Semicolon | Kind::Dot
        ) || self.word_ahead(ahead) == K::FROM
    }

    fn select_items(&mut self) -> Result<Vec<SelectItem>> {
        let mut items = Vec::new();
        if self.is(Kind::Star) {
            let span = self.token().span();
            self.advance();
            let value =
                self.tree.add_expr(Expr::Star { schema: Text::NONE, table: Text::NONE }, span);
            items.push(SelectItem { value, alias: Text::NONE, span });
            if !self.eat(Kind::Comma) {
                return Ok(items);
            }
        }
        loop {
            items.push(self.select_item()?);
            if !self.eat(Kind::Comma) {
                return Ok(items);
            }
        }
    }

    fn select_item(&mut self) -> Result<SelectItem> {
        let start = self.token().start;
        if let Some(value) = self.table_star()? {
            return Ok(SelectItem { value, alias: Text::NONE, span: self.span_from(start) });
        }
        let value = self.expr()?;
        let span = self.span_from(start);
        let alias = self.select_alias()?;
        Ok(SelectItem { value, alias, span })
    }

    /// `t.*` or `s.t.*`
    fn table_star(&mut self) -> Result<Option<ExprId>> {
        if !self.at_name() || self.kind_ahead(1) != Kind::Dot {
            return Ok(None);
        }
        let has_schema = self.kind_ahead(3) == Kind::Dot && self.kind_ahead(4) == Kind::Star;
        if !has_schema && self.kind_ahead(2) != Kind::Star {
            return Ok(None);
        }
        let start = self.token().start;
        let first = self.name()?;
        self.advance();
        let (mut schema, mut table) = (Text::NONE, first);
        if has_schema {
            (schema, table) = (first, self.name()?);
            self.advance();
        }
        self.advance();
        let span = self.span_from(start);
        Ok(Some(self.tree.add_expr(Expr::Star { schema, table }, span)))
    }

    fn select_alias(&mut self) -> Result<Text> {
        if self.eat_word(K::AS) || self.at_name() || self.is(Kind::Text) {
            return self.name_or_text();
        }
        Ok(Text::NONE)
    }
}
