//! Queries: set operations, and what belongs to a query as a whole.

use super::{Parser, Result};
use crate::token::Kind;
use crate::tree::{
    Body, BodyId, CommonTable, Expr, ExprId, FileFormat, Into, IntoTarget, Limit, Lock, LockKind,
    LockWait, Offset, Query, QueryId, SetOp, SetQuantifier, Text, With,
};
use crate::{Keyword, Span, SyntaxError};
use Keyword as K;
use alloc::boxed::Box;
use alloc::vec::Vec;

impl Parser<'_> {
    /// A query with all its clauses.
    pub(super) fn query_expression(&mut self) -> Result<Query> {
        self.enter()?;
        let start = self.token().start;
        let with = self.with()?;
        let query = self.query_with(with, start)?;
        self.leave();
        Ok(query)
    }

    /// What follows WITH.
    pub(super) fn query_with(&mut self, with: Option<Box<With>>, start: u32) -> Result<Query> {
        let body = self.query_body()?;
        self.query_clauses(with, body, start)
    }

    /// A query in the arena.
    pub(super) fn query(&mut self) -> Result<QueryId> {
        let query = self.query_expression()?;
        Ok(self.tree.add_query(query))
    }

    pub(super) fn with(&mut self) -> Result<Option<Box<With>>> {
        if !self.eat_word(K::WITH) {
            return Ok(None);
        }
        let is_recursive = self.eat_word(K::RECURSIVE);
        let tables = self.comma_list(|parser| {
            let name = parser.name()?;
            let columns =
                if parser.is(Kind::Open) { parser.names_in_parentheses()? } else { Vec::new() };
            parser.expect_word(K::AS)?;
            let query = parser.subquery()?;
            Ok(CommonTable { name, columns, query })
        })?;
        Ok(Some(Box::new(With { is_recursive, tables })))
    }

    /// The clauses behind the body.
    fn query_clauses(
        &mut self,
        with: Option<Box<With>>,
        body: BodyId,
        start: u32,
    ) -> Result<Query> {
        let order = self.order_by()?;
        let limit = self.limit()?;
        let may_have_into = self.query_nesting == 0;
        let at = self.token().start;
        let mut into = if may_have_into { self.into()? } else { None };
        let locks = self.locks()?;
        let mut is_into_last = false;
        if may_have_into && into.is_none() && !locks.is_empty() {
            into = self.into()?;
            is_into_last = into.is_some();
        }
        if into.is_some() && self.has_into(body) {
            let message = "Multiple INTO clauses in one query block.";
            return Err(Box::new(SyntaxError::new(3953, "42000", message, at)));
        }
        let into = into.map(Box::new);
        let span = self.span_from(start);
        Ok(Query { with, body, order, limit, into, locks, is_into_last, span })
    }

    fn is_plain(query: &Query) -> bool {
        let has_tail = !query.order.is_empty() || query.limit.is_some() || !query.locks.is_empty();
        query.with.is_none() && query.into.is_none() && !has_tail
    }

    /// Goes on behind a query in parentheses, which is the last one in the arena.
    pub(super) fn query_behind(&mut self, id: QueryId) -> Result<Query> {
        let start = self.tree.query(id).span.start;
        let left = self.body_of_last_query();
        let term = self.query_term(left)?;
        let body = self.query_sets(term)?;
        self.query_clauses(None, body, start)
    }

    /// The query that was read last, as the body of another.
    fn body_of_last_query(&mut self) -> BodyId {
        match self.tree.queries.pop() {
            Some(query) if Self::is_plain(&query) => query.body,
            Some(query) => {
                let id = self.tree.add_query(query);
                self.tree.add_body(Body::Nested(id))
            }
            None => BodyId(0),
        }
    }

    fn query_body(&mut self) -> Result<BodyId> {
        let primary = self.query_primary()?;
        let term = self.query_term(primary)?;
        self.query_sets(term)
    }

    /// True if a body has INTO in it.
    fn has_into(&self, mut body: BodyId) -> bool {
        loop {
            match self.tree.body(body) {
                Body::Select(select) => return select.into.is_some(),
                Body::Nested(query) => return self.tree.query(*query).into.is_some(),
                Body::Set { right, .. } => body = *right,
                _ => return false,
            }
        }
    }

    /// INTO may not stand in a query that others follow or contain.
    pub(super) fn misplaced_into(&self, at: u32) -> Box<SyntaxError> {
        let message = "Misplaced INTO clause, INTO is not allowed inside subqueries, and must be placed at end for UNION clauses.";
        Box::new(SyntaxError::new(3954, "HY000", message, at))
    }

    /// Both sides of a set operation.
    fn combine(
        &mut self,
        op: SetOp,
        quantifier: SetQuantifier,
        left: BodyId,
        right: BodyId,
    ) -> Result<BodyId> {
        let is_nested = matches!(self.tree.body(right), Body::Nested(_));
        if self.has_into(left) || (is_nested && self.has_into(right)) {
            return Err(self.misplaced_into(self.token().start));
        }
        Ok(self.tree.add_body(Body::Set { op, quantifier, left, right }))
    }

    /// UNION and EXCEPT, from the left.
    fn query_sets(&mut self, mut left: BodyId) -> Result<BodyId> {
        while let Some(word) = self.eat_one_of(&[K::UNION, K::EXCEPT]) {
            let op = if word == K::UNION { SetOp::Union } else { SetOp::Except };
            let quantifier = self.quantifier();
            let primary = self.query_primary()?;
            let right = self.query_term(primary)?;
            left = self.combine(op, quantifier, left, right)?;
        }
        Ok(left)
    }

    /// INTERSECT, which binds more tightly.
    fn query_term(&mut self, mut left: BodyId) -> Result<BodyId> {
        while self.eat_word(K::INTERSECT) {
            let quantifier = self.quantifier();
            let right = self.query_primary()?;
            left = self.combine(SetOp::Intersect, quantifier, left, right)?;
        }
        Ok(left)
    }

    fn quantifier(&mut self) -> SetQuantifier {
        if self.eat_word(K::ALL) {
            SetQuantifier::All
        } else if self.eat_word(K::DISTINCT) {
            SetQuantifier::Distinct
        } else {
            SetQuantifier::None
        }
    }

    fn query_primary(&mut self) -> Result<BodyId> {
        match self.token().word {
            K::SELECT => {
                let select = self.select()?;
                Ok(self.tree.add_body(Body::Select(Box::new(select))))
            }
            K::VALUES => {
                self.advance();
                let rows = self.comma_list(|parser| {
                    parser.expect_word(K::ROW)?;
                    parser.row_of_values()
                })?;
                Ok(self.tree.add_body(Body::Values(rows)))
            }
            K::TABLE => {
                self.advance();
                let table = self.table_name()?;
                Ok(self.tree.add_body(Body::Table(table)))
            }
            _ if self.is(Kind::Open) => {
                self.enter()?;
                self.advance();
                let query = self.query_expression()?;
                self.expect(Kind::Close)?;
                self.leave();
                self.tree.add_query(query);
                Ok(self.body_of_last_query())
            }
            _ => Err(self.error()),
        }
    }

    pub(super) fn limit(&mut self) -> Result<Option<Limit>> {
        if !self.eat_word(K::LIMIT) {
            return Ok(None);
        }
        let first = self.limit_number()?;
        if self.eat(Kind::Comma) {
            let count = self.limit_number()?;
            return Ok(Some(Limit { count, offset: Some(first), is_comma: true }));
        }
        let offset = if self.eat_word(K::OFFSET) { Some(self.limit_number()?) } else { None };
        Ok(Some(Limit { count: first, offset, is_comma: false }))
    }

    /// LIMIT with one number, as UPDATE and DELETE have it.
    pub(super) fn simple_limit(&mut self) -> Result<Option<Limit>> {
        if !self.eat_word(K::LIMIT) {
            return Ok(None);
        }
        let count = self.limit_number()?;
        Ok(Some(Limit { count, offset: None, is_comma: false }))
    }

    pub(super) fn limit_number(&mut self) -> Result<ExprId> {
        match self.token().kind {
            Kind::Integer | Kind::Parameter => self.operand(),
            _ if self.at_name() && self.is_in_program => {
                let (start, name) = (self.token().start, self.name()?);
                let span = self.span_from(start);
                Ok(self
                    .tree
                    .add_expr(Expr::Column { schema: Text::NONE, table: Text::NONE, name }, span))
            }
            _ if self.at_name() => {
                let token = self.token();
                let name = alloc::string::String::from_utf8_lossy(token.span().of(self.text));
                let message = alloc::format!("Undeclared variable: {name}");
                Err(Box::new(SyntaxError::new(1327, "42000", &message, token.start)))
            }
            _ => Err(self.error()),
        }
    }

    fn locks(&mut self) -> Result<Vec<Lock>> {
        let mut locks = Vec::new();
        loop {
            if self.eat_words(&[K::LOCK, K::IN]) {
                self.expect_words(&[K::SHARE, K::MODE])?;
                locks.push(Lock {
                    kind: LockKind::ShareMode,
                    of: Vec::new(),
                    wait: LockWait::Wait,
                });
                return Ok(locks);
            }
            if !matches!(self.word_ahead(1), K::UPDATE | K::SHARE) || !self.eat_word(K::FOR) {
                return Ok(locks);
            }
            let word = self.expect_one_of(&[K::UPDATE, K::SHARE])?;
            let kind = if word == K::UPDATE { LockKind::Update } else { LockKind::Share };
            let of = if self.eat_word(K::OF) { self.table_names()? } else { Vec::new() };
            let wait = if self.eat_word(K::NOWAIT) {
                LockWait::NoWait
            } else if self.eat_word(K::SKIP) {
                self.expect_word(K::LOCKED)?;
                LockWait::SkipLocked
            } else {
                LockWait::Wait
            };
            locks.push(Lock { kind, of, wait });
        }
    }

    pub(super) fn into(&mut self) -> Result<Option<Into>> {
        if !self.is_word(K::INTO) {
            return Ok(None);
        }
        self.advance();
        if self.eat_word(K::DUMPFILE) {
            return Ok(Some(Into::Dumpfile(self.text()?)));
        }
        if self.eat_word(K::OUTFILE) {
            let file = self.text()?;
            let charset = if self.eat_charset() { self.charset_name()? } else { Text::NONE };
            let format = self.file_format()?;
            return Ok(Some(Into::Outfile { file, charset, format }));
        }
        let targets = self.comma_list(|parser| {
            if parser.eat(Kind::At) {
                return Ok(IntoTarget::User(parser.variable_name()?));
            }
            let token = parser.token();
            let name = parser.name_or_text()?;
            if parser.is_in_program {
                return Ok(IntoTarget::Local(name));
            }
            let name = alloc::string::String::from_utf8_lossy(parser.tree.text(name)).into_owned();
            let message = alloc::format!("Undeclared variable: {name}");
            Err(Box::new(SyntaxError::new(1327, "42000", &message, token.start)))
        })?;
        Ok(Some(Into::Variables(targets)))
    }

    /// FIELDS and LINES.
    pub(super) fn file_format(&mut self) -> Result<FileFormat> {
        let mut format = FileFormat::default();
        if self.eat_one_of(&[K::FIELDS, K::COLUMNS]).is_some() {
            format.has_fields = true;
            loop {
                if self.eat_word(K::TERMINATED) {
                    format.fields_terminated = Some(self.format_text()?);
                } else if self.eat_word(K::OPTIONALLY) {
                    self.expect_word(K::ENCLOSED)?;
                    format.is_optionally = true;
                    format.enclosed = Some(self.format_text()?);
                } else if self.eat_word(K::ENCLOSED) {
                    format.enclosed = Some(self.format_text()?);
                } else if self.eat_word(K::ESCAPED) {
                    format.escaped = Some(self.format_text()?);
                } else {
                    break;
                }
            }
            let is_empty = format.fields_terminated.is_none() && format.enclosed.is_none();
            if is_empty && format.escaped.is_none() {
                return Err(self.error());
            }
        }
        if self.eat_word(K::LINES) {
            format.has_lines = true;
            loop {
                if self.eat_word(K::TERMINATED) {
                    format.lines_terminated = Some(self.format_text()?);
                } else if self.eat_word(K::STARTING) {
                    format.lines_starting = Some(self.format_text()?);
                } else {
                    break;
                }
            }
            if format.lines_terminated.is_none() && format.lines_starting.is_none() {
                return Err(self.error());
            }
        }
        Ok(format)
    }

    fn format_text(&mut self) -> Result<ExprId> {
        self.expect_word(K::BY)?;
        match self.token().kind {
            Kind::Text | Kind::Hex | Kind::Bits => {
                let start = self.token().start;
                let (kind, token) = (self.token().kind, self.token());
                if kind == Kind::Text {
                    let text = self.text()?;
                    let first = Offset(self.tree.text(text).len() as u32);
                    let expr = Expr::Text { charset: Text::NONE, is_national: false, text, first };
                    return Ok(self.tree.add_expr(expr, token.span()));
                }
                let expr = self.text_literal()?;
                let span: Span = self.span_from(start);
                Ok(self.tree.add_expr(expr, span))
            }
            _ => Err(self.error()),
        }
    }
}
