//! Functions and other operands that begin with a keyword.

use super::expr::level::{CONCAT, SIMPLE};
use super::{Parser, Result};
use crate::Keyword;
use crate::token::Kind;
use crate::tree::{
    Expr, ExprId, JsonDefault, JsonValue, List, MatchMode, SideId, TemporalKind, Text, TrimSide,
    UnaryOp,
};
use Keyword as K;

/// How many arguments a function takes whose name is a keyword, and that has no grammar of its own.
fn arity(name: Keyword) -> Option<(usize, usize)> {
    Some(match name {
        K::DATE | K::DAY | K::HOUR | K::MINUTE | K::MONTH | K::SECOND | K::TIME | K::YEAR => (1, 1),
        K::ASCII | K::CHARSET | K::COLLATION | K::MICROSECOND | K::QUARTER | K::REVERSE => (1, 1),
        K::TIMESTAMP | K::WEEK | K::LOG => (1, 2),
        K::LEFT | K::RIGHT | K::MOD | K::REPEAT | K::TRUNCATE | K::POINT => (2, 2),
        K::FORMAT => (2, 3),
        K::IF | K::REPLACE => (3, 3),
        K::INSERT => (4, 4),
        K::DATABASE | K::SCHEMA | K::ROW_COUNT | K::USER | K::SESSION_USER | K::SYSTEM_USER => {
            (0, 0)
        }
        K::COALESCE | K::LINESTRING | K::MULTILINESTRING | K::MULTIPOINT | K::MULTIPOLYGON => {
            (1, usize::MAX)
        }
        K::POLYGON => (1, usize::MAX),
        K::GEOMETRYCOLLECTION | K::GEOMCOLLECTION => (0, usize::MAX),
        _ => return None,
    })
}

impl Parser<'_> {
    /// An operand that begins with a keyword.
    pub(super) fn keyword_operand(&mut self, start: u32) -> Result<ExprId> {
        let word = self.token().word;
        if self.kind_ahead(1) == Kind::Open {
            return self.keyword_call(word, start);
        }
        let expr = match word {
            K::NULL => Expr::Null,
            K::TRUE => Expr::True,
            K::FALSE => Expr::False,
            K::BINARY => return self.unary(UnaryOp::Binary, start),
            K::NOT if self.mode.high_not_precedence => return self.unary(UnaryOp::Bang, start),
            K::CASE => return self.case(start),
            K::INTERVAL => return self.interval_first(),
            K::MATCH => return self.match_against(start),
            K::CURRENT_DATE
            | K::CURRENT_TIME
            | K::CURRENT_TIMESTAMP
            | K::LOCALTIME
            | K::LOCALTIMESTAMP => {
                Expr::Function { name: word, arguments: List::EMPTY, has_parentheses: false }
            }
            K::UTC_DATE | K::UTC_TIME | K::UTC_TIMESTAMP | K::CURRENT_USER => {
                Expr::Function { name: word, arguments: List::EMPTY, has_parentheses: false }
            }
            K::DATE if self.kind_ahead(1) == Kind::Text => {
                return self.temporal(TemporalKind::Date, start);
            }
            K::TIME if self.kind_ahead(1) == Kind::Text => {
                return self.temporal(TemporalKind::Time, start);
            }
            K::TIMESTAMP if self.kind_ahead(1) == Kind::Text => {
                return self.temporal(TemporalKind::Timestamp, start);
            }
            _ if word.is_reserved() && Self::is_called(word) => {
                return Err(self.error_at(self.ahead(1).start));
            }
            _ => return self.column_or_call(start),
        };
        self.advance();
        let span = self.span_from(start);
        Ok(self.tree.add_expr(expr, span))
    }

    /// True if a parenthesis can follow a reserved word where an operand begins.
    fn is_called(word: Keyword) -> bool {
        let is_special = matches!(
            word,
            K::EXISTS | K::ROW | K::CONVERT | K::CHAR | K::VALUES | K::DEFAULT | K::GROUPING
        );
        is_special || arity(word).is_some() || Self::is_aggregate(word)
    }

    fn temporal(&mut self, kind: TemporalKind, start: u32) -> Result<ExprId> {
        let expr = self.temporal_literal(kind)?;
        let span = self.span_from(start);
        Ok(self.tree.add_expr(expr, span))
    }

    /// A keyword that a parenthesis follows.
    #[inline(never)]
    fn keyword_call(&mut self, word: Keyword, start: u32) -> Result<ExprId> {
        if let Some((min, max)) = arity(word) {
            return self.plain_call(word, min, max, start);
        }
        let expr = match word {
            K::BINARY => return self.unary(UnaryOp::Binary, start),
            K::NOT if self.mode.high_not_precedence => return self.unary(UnaryOp::Bang, start),
            K::CASE => return self.case(start),
            K::INTERVAL => return self.interval_first(),
            K::MATCH => return self.match_against(start),
            K::EXISTS => {
                self.advance();
                Expr::Exists(self.subquery()?)
            }
            K::ROW => self.row()?,
            K::CAST => self.cast()?,
            K::CONVERT => self.convert()?,
            K::CHAR => self.char_function()?,
            K::TRIM => self.trim()?,
            K::SUBSTRING | K::SUBSTR | K::MID => self.substring(word)?,
            K::POSITION => self.position()?,
            K::EXTRACT => self.extract()?,
            K::GET_FORMAT => self.get_format()?,
            K::TIMESTAMPADD | K::TIMESTAMPDIFF => self.timestamp_function(word)?,
            K::ADDDATE | K::SUBDATE | K::DATE_ADD | K::DATE_SUB => self.date_arithmetic(word)?,
            K::WEIGHT_STRING => self.weight_string()?,
            K::VALUES | K::DEFAULT => self.column_function(word)?,
            K::JSON_VALUE => self.json_value()?,
            K::GROUPING => return self.plain_call(word, 1, usize::MAX, start),
            K::CURRENT_DATE | K::CURDATE | K::UTC_DATE | K::CURRENT_USER => {
                return self.plain_call(word, 0, 0, start);
            }
            K::CURRENT_TIME
            | K::CURTIME
            | K::CURRENT_TIMESTAMP
            | K::NOW
            | K::SYSDATE
            | K::LOCALTIME => self.precision_function(word)?,
            K::LOCALTIMESTAMP | K::UTC_TIME | K::UTC_TIMESTAMP => self.precision_function(word)?,
            _ if Self::is_aggregate(word) => self.aggregate(word)?,
            K::NULL | K::TRUE | K::FALSE => return Err(self.error_at(self.ahead(1).start)),
            _ => return self.column_or_call(start),
        };
        let span = self.span_from(start);
        Ok(self.tree.add_expr(expr, span))
    }

    /// Expressions up to the closing parenthesis, which is passed.
    fn arguments(&mut self) -> Result<List> {
        let mark = self.scratch.len();
        if !self.is(Kind::Close) {
            loop {
                let value = self.expr()?;
                self.scratch.push(value);
                if !self.eat(Kind::Comma) {
                    break;
                }
            }
        }
        self.expect(Kind::Close)?;
        Ok(self.list_from(mark))
    }

    fn plain_call(&mut self, name: Keyword, min: usize, max: usize, start: u32) -> Result<ExprId> {
        self.advance();
        self.advance();
        let mark = self.scratch.len();
        while self.scratch.len() - mark < max
            && !(self.is(Kind::Close) && self.scratch.len() == mark && min == 0)
        {
            let value = self.expr()?;
            self.scratch.push(value);
            if self.scratch.len() - mark == max || !self.is(Kind::Comma) {
                break;
            }
            self.advance();
        }
        if self.scratch.len() - mark < min {
            return Err(self.error());
        }
        self.expect(Kind::Close)?;
        let arguments = self.list_from(mark);
        let span = self.span_from(start);
        Ok(self.tree.add_expr(Expr::Function { name, arguments, has_parentheses: true }, span))
    }

    /// `NOW(6)`: the number of digits is a literal.
    fn precision_function(&mut self, name: Keyword) -> Result<Expr> {
        self.advance();
        self.advance();
        let mark = self.scratch.len();
        if self.is(Kind::Integer) {
            let value = self.operand()?;
            self.scratch.push(value);
        }
        self.expect(Kind::Close)?;
        let arguments = self.list_from(mark);
        Ok(Expr::Function { name, arguments, has_parentheses: true })
    }

    fn row(&mut self) -> Result<Expr> {
        self.advance();
        self.advance();
        let mark = self.scratch.len();
        let first = self.expr()?;
        self.scratch.push(first);
        while self.eat(Kind::Comma) {
            let value = self.expr()?;
            self.scratch.push(value);
        }
        if self.scratch.len() - mark < 2 {
            return Err(self.error());
        }
        self.expect(Kind::Close)?;
        let list = self.list_from(mark);
        Ok(Expr::Row { list, is_named: true })
    }

    #[inline(never)]
    fn case(&mut self, start: u32) -> Result<ExprId> {
        self.advance();
        let operand = if self.is_word(K::WHEN) { None } else { Some(self.expr()?) };
        let mark = self.scratch.len();
        self.expect_word(K::WHEN)?;
        loop {
            let condition = self.expr()?;
            self.expect_word(K::THEN)?;
            let result = self.expr()?;
            self.scratch.extend([condition, result]);
            if !self.eat_word(K::WHEN) {
                break;
            }
        }
        let otherwise = if self.eat_word(K::ELSE) { Some(self.expr()?) } else { None };
        self.expect_word(K::END)?;
        let whens = self.list_from(mark);
        let span = self.span_from(start);
        Ok(self.tree.add_expr(Expr::Case { operand, whens, otherwise }, span))
    }

    fn cast(&mut self) -> Result<Expr> {
        self.advance();
        self.advance();
        let value = self.expr()?;
        let (mut zone, mut is_interval) = (Text::NONE, false);
        if self.eat_words(&[K::AT, K::TIME]) {
            self.expect_word(K::ZONE)?;
            is_interval = self.eat_word(K::INTERVAL);
            zone = self.text()?;
        }
        self.expect_word(K::AS)?;
        let data_type = self.cast_type(true)?;
        self.expect(Kind::Close)?;
        Ok(Expr::Cast { value, data_type, zone, is_interval, is_convert: false })
    }

    fn convert(&mut self) -> Result<Expr> {
        self.advance();
        self.advance();
        let value = self.expr()?;
        if self.eat_word(K::USING) {
            let charset = self.charset_name()?;
            self.expect(Kind::Close)?;
            return Ok(Expr::ConvertUsing { value, charset });
        }
        self.expect(Kind::Comma)?;
        let data_type = self.cast_type(false)?;
        self.expect(Kind::Close)?;
        Ok(Expr::Cast { value, data_type, zone: Text::NONE, is_interval: false, is_convert: true })
    }

    fn char_function(&mut self) -> Result<Expr> {
        self.advance();
        self.advance();
        let mark = self.scratch.len();
        loop {
            let value = self.expr()?;
            self.scratch.push(value);
            if !self.eat(Kind::Comma) {
                break;
            }
        }
        let charset = if self.eat_word(K::USING) { self.charset_name()? } else { Text::NONE };
        self.expect(Kind::Close)?;
        let list = self.list_from(mark);
        Ok(Expr::Char { list, charset })
    }

    fn trim(&mut self) -> Result<Expr> {
        self.advance();
        self.advance();
        let side = match self.eat_one_of(&[K::BOTH, K::LEADING, K::TRAILING]) {
            Some(K::BOTH) => TrimSide::Both,
            Some(K::LEADING) => TrimSide::Leading,
            Some(_) => TrimSide::Trailing,
            None => TrimSide::None,
        };
        let mark = self.scratch.len();
        if side == TrimSide::None || !self.is_word(K::FROM) {
            let value = self.expr()?;
            self.scratch.push(value);
        }
        if self.scratch.len() == mark || self.is_word(K::FROM) || side != TrimSide::None {
            self.expect_word(K::FROM)?;
            let value = self.expr()?;
            self.scratch.push(value);
        }
        self.expect(Kind::Close)?;
        let list = self.list_from(mark);
        Ok(Expr::Trim { side, list })
    }

    fn substring(&mut self, name: Keyword) -> Result<Expr> {
        self.advance();
        self.advance();
        let mark = self.scratch.len();
        let text = self.expr()?;
        self.scratch.push(text);
        let has_words = self.is_word(K::FROM);
        if has_words {
            self.advance();
        } else {
            self.expect(Kind::Comma)?;
        }
        let from = self.expr()?;
        self.scratch.push(from);
        let has_length = if has_words { self.eat_word(K::FOR) } else { self.eat(Kind::Comma) };
        if has_length {
            let length = self.expr()?;
            self.scratch.push(length);
        }
        self.expect(Kind::Close)?;
        let list = self.list_from(mark);
        Ok(Expr::Substring { list, has_words, name })
    }

    fn position(&mut self) -> Result<Expr> {
        self.advance();
        self.advance();
        let part = self.bit_expr()?;
        self.expect_word(K::IN)?;
        let text = self.expr()?;
        self.expect(Kind::Close)?;
        Ok(Expr::Position { part, text })
    }

    fn extract(&mut self) -> Result<Expr> {
        self.advance();
        self.advance();
        let unit = self.interval_unit()?;
        self.expect_word(K::FROM)?;
        let value = self.expr()?;
        self.expect(Kind::Close)?;
        Ok(Expr::Extract { unit, value })
    }

    fn get_format(&mut self) -> Result<Expr> {
        self.advance();
        self.advance();
        let kind = self.expect_one_of(&[K::DATE, K::TIME, K::TIMESTAMP, K::DATETIME])?;
        self.expect(Kind::Comma)?;
        let style = self.expr()?;
        self.expect(Kind::Close)?;
        Ok(Expr::GetFormat { kind, style })
    }

    fn timestamp_function(&mut self, name: Keyword) -> Result<Expr> {
        self.advance();
        self.advance();
        let unit = self.simple_unit()?;
        self.expect(Kind::Comma)?;
        let first = self.expr()?;
        self.expect(Kind::Comma)?;
        let second = self.expr()?;
        self.expect(Kind::Close)?;
        let list = self.tree.add_list(&[first, second]);
        Ok(Expr::Timestamp { name, unit, list })
    }

    /// DATE_ADD and its like; ADDDATE and SUBDATE also take a number of days.
    fn date_arithmetic(&mut self, name: Keyword) -> Result<Expr> {
        self.advance();
        self.advance();
        let value = self.expr()?;
        self.expect(Kind::Comma)?;
        if !self.is_word(K::INTERVAL) && matches!(name, K::ADDDATE | K::SUBDATE) {
            let days = self.expr()?;
            self.expect(Kind::Close)?;
            let arguments = self.tree.add_list(&[value, days]);
            return Ok(Expr::Function { name, arguments, has_parentheses: true });
        }
        self.expect_word(K::INTERVAL)?;
        let amount = self.expr()?;
        let unit = self.interval_unit()?;
        self.expect(Kind::Close)?;
        Ok(Expr::DateArithmetic { name, value, amount, unit })
    }

    fn weight_string(&mut self) -> Result<Expr> {
        self.advance();
        self.advance();
        let value = self.expr()?;
        let (mut kind, mut length) = (K::None, Text::NONE);
        if self.eat_word(K::AS) {
            kind = self.expect_one_of(&[K::CHAR, K::BINARY])?;
            self.expect(Kind::Open)?;
            length = self.integer()?;
            self.expect(Kind::Close)?;
        }
        self.expect(Kind::Close)?;
        Ok(Expr::WeightString { value, kind, length })
    }

    fn column_function(&mut self, word: Keyword) -> Result<Expr> {
        self.advance();
        self.advance();
        let column = self.column()?;
        self.expect(Kind::Close)?;
        Ok(if word == K::VALUES { Expr::Values(column) } else { Expr::DefaultOf(column) })
    }

    #[inline(never)]
    fn match_against(&mut self, start: u32) -> Result<ExprId> {
        self.advance();
        let has_parentheses = self.eat(Kind::Open);
        let mark = self.scratch.len();
        loop {
            let column = self.column()?;
            self.scratch.push(column);
            if !self.eat(Kind::Comma) {
                break;
            }
        }
        if has_parentheses {
            self.expect(Kind::Close)?;
        }
        self.expect_word(K::AGAINST)?;
        self.expect(Kind::Open)?;
        let against = self.climb(super::expr::level::BIT)?;
        let mode = self.match_mode()?;
        self.expect(Kind::Close)?;
        let columns = self.list_from(mark);
        let span = self.span_from(start);
        Ok(self.tree.add_expr(Expr::Match { columns, has_parentheses, against, mode }, span))
    }

    fn match_mode(&mut self) -> Result<MatchMode> {
        if self.eat_words(&[K::IN, K::NATURAL, K::LANGUAGE, K::MODE]) {
            let expands = self.eat_words(&[K::WITH, K::QUERY, K::EXPANSION]);
            return Ok(if expands {
                MatchMode::NaturalLanguageWithExpansion
            } else {
                MatchMode::NaturalLanguage
            });
        }
        if self.eat_words(&[K::IN, K::BOOLEAN, K::MODE]) {
            return Ok(MatchMode::Boolean);
        }
        let expands = self.eat_words(&[K::WITH, K::QUERY, K::EXPANSION]);
        Ok(if expands { MatchMode::WithExpansion } else { MatchMode::None })
    }

    fn json_value(&mut self) -> Result<Expr> {
        self.advance();
        self.advance();
        let document = self.climb(CONCAT.min(SIMPLE))?;
        self.expect(Kind::Comma)?;
        let path = self.text()?;
        let returning =
            if self.eat_word(K::RETURNING) { Some(self.cast_type(false)?) } else { None };
        let (on_empty, on_error) = self.json_defaults(false)?;
        self.expect(Kind::Close)?;
        self.tree.json_values.push(JsonValue { document, path, returning, on_empty, on_error });
        Ok(Expr::JsonValue(SideId(self.tree.json_values.len() as u32 - 1)))
    }

    /// `… ON EMPTY … ON ERROR`; JSON_TABLE takes them in any order.
    pub(super) fn json_defaults(
        &mut self,
        in_any_order: bool,
    ) -> Result<(Option<JsonDefault>, Option<JsonDefault>)> {
        let (mut on_empty, mut on_error) = (None, None);
        while matches!(self.token().word, K::ERROR | K::NULL | K::DEFAULT) {
            let default = match self.expect_one_of(&[K::ERROR, K::NULL, K::DEFAULT])? {
                K::ERROR => JsonDefault::Error,
                K::NULL => JsonDefault::Null,
                _ => JsonDefault::Default(self.signed_literal()?),
            };
            self.expect_word(K::ON)?;
            let is_empty = self.expect_one_of(&[K::EMPTY, K::ERROR])? == K::EMPTY;
            let is_known = if is_empty { on_empty.is_some() } else { on_error.is_some() };
            if is_known || (is_empty && on_error.is_some() && !in_any_order) {
                return Err(self.error_at(self.last_span().start));
            }
            if is_empty {
                on_empty = Some(default);
            } else {
                on_error = Some(default);
            }
        }
        Ok((on_empty, on_error))
    }

    /// A literal, with a sign if it is a number.
    pub(super) fn signed_literal(&mut self) -> Result<ExprId> {
        let start = self.token().start;
        let op = match self.token().kind {
            Kind::Minus => Some(UnaryOp::Minus),
            Kind::Plus => Some(UnaryOp::Plus),
            _ => None,
        };
        if let Some(op) = op {
            self.advance();
            if !matches!(self.token().kind, Kind::Integer | Kind::Decimal | Kind::Float) {
                return Err(self.error());
            }
            let value = self.operand()?;
            let span = self.span_from(start);
            return Ok(self.tree.add_expr(Expr::Unary(op, value), span));
        }
        if self.at_literal() { self.operand() } else { Err(self.error()) }
    }

    pub(super) fn at_literal(&self) -> bool {
        match self.token().kind {
            Kind::Integer | Kind::Decimal | Kind::Float | Kind::Hex | Kind::Bits => true,
            Kind::Text | Kind::National | Kind::Introducer => true,
            Kind::Word => match self.token().word {
                K::NULL | K::TRUE | K::FALSE => true,
                K::DATE | K::TIME | K::TIMESTAMP => self.kind_ahead(1) == Kind::Text,
                _ => false,
            },
            _ => false,
        }
    }

    /// Arguments of a function whose parenthesis comes next.
    pub(super) fn arguments_in_parentheses(&mut self) -> Result<List> {
        self.expect(Kind::Open)?;
        self.arguments()
    }
}
