//! Operands: literals, columns, variables, parentheses.

use super::expr::level::{OR, SIMPLE};
use super::{Parser, Result};
use crate::Keyword;
use crate::token::Kind;
use crate::tree::{Expr, ExprId, NumberKind, Offset, QueryId, Scope, TemporalKind, Text, UnaryOp};

impl Parser<'_> {
    /// An operand: what MySQL's grammar calls a simple expression, without COLLATE behind it.
    pub(super) fn operand(&mut self) -> Result<ExprId> {
        let token = self.token();
        let start = token.start;
        let expr = match token.kind {
            Kind::Integer | Kind::Decimal | Kind::Float => self.number_literal(),
            Kind::Text | Kind::National | Kind::Introducer | Kind::Hex | Kind::Bits => {
                self.text_literal()?
            }
            Kind::Parameter => {
                self.advance();
                self.tree.parameters += 1;
                Expr::Parameter(self.tree.parameters - 1)
            }
            Kind::At => self.variable()?,
            Kind::Plus => return self.unary(UnaryOp::Plus, start),
            Kind::Minus => return self.unary(UnaryOp::Minus, start),
            Kind::Tilde => return self.unary(UnaryOp::BitNot, start),
            Kind::Bang => return self.unary(UnaryOp::Bang, start),
            Kind::Open => return self.parentheses(start),
            Kind::OpenBrace => return self.odbc(start),
            Kind::Quoted => return self.column_or_call(start),
            Kind::Word if token.word == Keyword::None => return self.column_or_call(start),
            Kind::Word => return self.keyword_operand(start),
            _ => return Err(self.error()),
        };
        let span = self.span_from(start);
        Ok(self.tree.add_expr(expr, span))
    }

    fn number_literal(&mut self) -> Expr {
        let token = self.token();
        self.advance();
        let kind = match token.kind {
            Kind::Integer => NumberKind::Integer,
            Kind::Decimal => NumberKind::Decimal,
            _ => NumberKind::Float,
        };
        Expr::Number { kind, digits: self.tree.add_text(token.span().of(self.text)) }
    }

    /// A text, with an introducer and further texts, or digits in base 16 or 2.
    pub(super) fn text_literal(&mut self) -> Result<Expr> {
        let mut charset = Text::NONE;
        if self.is(Kind::Introducer) {
            let token = self.token();
            self.advance();
            charset = self.tree.add_text(&token.span().of(self.text)[1..]);
        }
        let first = self.token();
        match first.kind {
            Kind::Hex | Kind::Bits => {
                self.advance();
                let text = first.span().of(self.text);
                let digits =
                    if text.ends_with(b"'") { &text[2..text.len() - 1] } else { &text[2..] };
                let digits = self.tree.add_text(digits);
                Ok(if first.kind == Kind::Hex {
                    Expr::Hex { charset, digits }
                } else {
                    Expr::Bits { charset, digits }
                })
            }
            Kind::Text => self.texts(charset, false),
            Kind::National if charset.is_none() => self.texts(charset, true),
            _ => Err(self.error()),
        }
    }

    fn texts(&mut self, charset: Text, is_national: bool) -> Result<Expr> {
        let start = self.tree.bytes.len();
        let first = self.token();
        self.advance();
        self.push_text(first);
        let length = (self.tree.bytes.len() - start) as u32;
        while self.is(Kind::Text) {
            let next = self.token();
            self.advance();
            self.push_text(next);
        }
        let text = self.tree.text_from(start);
        Ok(Expr::Text { charset, is_national, text, first: Offset(length) })
    }

    #[inline(never)]
    fn variable(&mut self) -> Result<Expr> {
        self.advance();
        if self.eat(Kind::At) {
            let (scope, component, name) = self.system_variable()?;
            return Ok(Expr::SystemVariable { scope, component, name });
        }
        let variable = self.variable_name()?;
        if !self.eat(Kind::Assign) {
            return Ok(Expr::UserVariable(variable));
        }
        let value = self.climb(OR)?;
        Ok(Expr::Assign { variable, value })
    }

    /// What stands behind `@@`.
    pub(super) fn system_variable(&mut self) -> Result<(Scope, Text, Text)> {
        let mut scope = Scope::None;
        if self.kind_ahead(1) == Kind::Dot {
            scope = scope_of(self.token().word);
            if scope != Scope::None {
                self.advance();
                self.advance();
            }
        }
        let first = self.name()?;
        if self.eat(Kind::Dot) {
            let name = self.name()?;
            return Ok((scope, first, name));
        }
        Ok((scope, Text::NONE, first))
    }

    #[inline(never)]
    pub(super) fn unary(&mut self, op: UnaryOp, start: u32) -> Result<ExprId> {
        self.advance();
        let value = self.climb(SIMPLE)?;
        let span = self.span_from(start);
        Ok(self.tree.add_expr(Expr::Unary(op, value), span))
    }

    /// `{d '2024-01-01'}`
    #[inline(never)]
    fn odbc(&mut self, start: u32) -> Result<ExprId> {
        self.advance();
        let name = self.name()?;
        let value = self.expr()?;
        self.expect(Kind::CloseBrace)?;
        let span = self.span_from(start);
        Ok(self.tree.add_expr(Expr::Odbc { name, value }, span))
    }

    #[inline(never)]
    fn parentheses(&mut self, start: u32) -> Result<ExprId> {
        let mark = self.scratch.len();
        if let Some(query) = self.parenthesized(mark)? {
            return Ok(query);
        }
        if self.scratch.len() - mark == 1 {
            let value = self.scratch[mark];
            self.scratch.truncate(mark);
            return Ok(value);
        }
        let list = self.list_from(mark);
        let span = self.span_from(start);
        Ok(self.tree.add_expr(Expr::Row { list, is_named: false }, span))
    }

    /// True if a query begins here, other than by a parenthesis.
    pub(super) fn at_query(&self) -> bool {
        match self.token().word {
            Keyword::SELECT | Keyword::WITH => true,
            Keyword::VALUES => self.word_ahead(1) == Keyword::ROW,
            Keyword::TABLE => Self::is_name(self.ahead(1)),
            _ => false,
        }
    }

    /// Passes what stands in parentheses: a query, which becomes an expression, or values, which are gathered.
    pub(super) fn parenthesized(&mut self, mark: usize) -> Result<Option<ExprId>> {
        self.enter_parentheses()?;
        let start = self.token().start;
        self.expect(Kind::Open)?;
        if self.at_query() {
            let query = self.query_expression()?;
            self.expect(Kind::Close)?;
            self.leave_parentheses();
            let span = self.span_from(start);
            let query = self.tree.add_query(query);
            return Ok(Some(self.tree.add_expr(Expr::Subquery(query), span)));
        }
        if self.is(Kind::Open) && self.nested(mark)? {
            self.expect(Kind::Close)?;
            self.leave_parentheses();
            // The only thing gathered is the query.
            return Ok(self.scratch.pop());
        }
        if self.scratch.len() == mark {
            let value = self.expr()?;
            self.scratch.push(value);
        }
        while self.eat(Kind::Comma) {
            let value = self.expr()?;
            self.scratch.push(value);
        }
        self.expect(Kind::Close)?;
        self.leave_parentheses();
        Ok(None)
    }

    /// Parentheses directly within parentheses. True if the whole is a query, and not an expression that begins with one.
    #[inline(never)]
    fn nested(&mut self, mark: usize) -> Result<bool> {
        let start = self.token().start;
        let inner = self.parenthesized(mark)?;
        let value = match inner {
            Some(query) if self.is(Kind::Close) => {
                self.scratch.push(query);
                return Ok(true);
            }
            Some(query) if self.continues_query() => {
                let Expr::Subquery(id) = *self.tree.expr(query) else { return Err(self.error()) };
                self.tree.exprs.pop();
                self.tree.spans.pop();
                let query = self.query_behind(id)?;
                let query = self.tree.add_query(query);
                let span = self.span_from(start);
                let query = self.tree.add_expr(Expr::Subquery(query), span);
                self.scratch.push(query);
                return Ok(true);
            }
            Some(query) => query,
            None if self.scratch.len() - mark == 1 => {
                let value = self.scratch[mark];
                self.scratch.truncate(mark);
                value
            }
            None => {
                let list = self.list_from(mark);
                let span = self.span_from(start);
                self.tree.add_expr(Expr::Row { list, is_named: false }, span)
            }
        };
        let value = self.operators(value, SIMPLE, start, OR)?;
        self.scratch.push(value);
        Ok(false)
    }

    /// True if something follows that belongs to a query.
    pub(super) fn continues_query(&self) -> bool {
        use Keyword as K;
        match self.token().word {
            K::UNION | K::EXCEPT | K::INTERSECT | K::ORDER | K::LIMIT | K::FOR | K::INTO => true,
            K::LOCK => self.word_ahead(1) == K::IN,
            _ => false,
        }
    }

    /// `(SELECT …)`, where nothing else may stand.
    pub(super) fn subquery(&mut self) -> Result<QueryId> {
        let mark = self.scratch.len();
        let start = self.token().start;
        if let Some(query) = self.parenthesized(mark)?
            && let Expr::Subquery(id) = *self.tree.expr(query)
        {
            self.tree.exprs.pop();
            self.tree.spans.pop();
            return Ok(id);
        }
        Err(self.error_at(start))
    }

    /// A name: a column, or a function if a parenthesis follows.
    #[inline(never)]
    pub(super) fn column_or_call(&mut self, start: u32) -> Result<ExprId> {
        let may_be_call = self.is_word(Keyword::None);
        let first = self.name()?;
        if may_be_call && self.is(Kind::Open) {
            return self.call(Text::NONE, first, start);
        }
        let (mut schema, mut table, mut name) = (Text::NONE, Text::NONE, first);
        if self.eat(Kind::Dot) {
            (table, name) = (first, self.name()?);
            if self.is(Kind::Open) {
                return self.call(table, name, start);
            }
            if self.eat(Kind::Dot) {
                (schema, table, name) = (first, name, self.name()?);
            }
        }
        let span = self.span_from(start);
        let column = self.tree.add_expr(Expr::Column { schema, table, name }, span);
        if !matches!(self.token().kind, Kind::Arrow | Kind::LongArrow) {
            return Ok(column);
        }
        let is_unquoted = self.is(Kind::LongArrow);
        self.advance();
        let path = self.text()?;
        let span = self.span_from(start);
        Ok(self.tree.add_expr(Expr::Arrow { column, is_unquoted, path }, span))
    }

    /// A column and nothing else.
    pub(super) fn column(&mut self) -> Result<ExprId> {
        let start = self.token().start;
        let (mut schema, mut table, mut name) = (Text::NONE, Text::NONE, self.name()?);
        if self.eat(Kind::Dot) {
            (table, name) = (name, self.name()?);
            if self.eat(Kind::Dot) {
                (schema, table, name) = (table, name, self.name()?);
            }
        }
        let span = self.span_from(start);
        Ok(self.tree.add_expr(Expr::Column { schema, table, name }, span))
    }

    fn call(&mut self, schema: Text, name: Text, start: u32) -> Result<ExprId> {
        self.advance();
        let (mark, mut is_named) = (self.scratch.len(), false);
        if !self.is(Kind::Close) {
            loop {
                let value = self.expr()?;
                self.scratch.push(value);
                // Loadable functions see the names of their arguments; no other function may have them.
                if self.eat_word(Keyword::AS) || self.at_name() || self.is(Kind::Text) {
                    is_named = true;
                    let pool = self.tree.bytes.len();
                    self.name_or_text()?;
                    self.tree.bytes.truncate(pool);
                }
                if !self.eat(Kind::Comma) {
                    break;
                }
            }
        }
        self.expect(Kind::Close)?;
        let arguments = self.list_from(mark);
        let span = self.span_from(start);
        let call = self.tree.add_expr(Expr::Call { schema, name, arguments }, span);
        if is_named {
            self.named_arguments.push(call);
        }
        Ok(call)
    }

    /// `DATE '2024-01-01'` and its like.
    pub(super) fn temporal_literal(&mut self, kind: TemporalKind) -> Result<Expr> {
        self.advance();
        let text = self.text()?;
        Ok(Expr::Temporal { kind, text })
    }
}

/// The scope that a word is.
pub(super) fn scope_of(word: Keyword) -> Scope {
    match word {
        Keyword::GLOBAL => Scope::Global,
        Keyword::SESSION => Scope::Session,
        Keyword::LOCAL => Scope::Local,
        Keyword::PERSIST => Scope::Persist,
        Keyword::PERSIST_ONLY => Scope::PersistOnly,
        _ => Scope::None,
    }
}
