//! Operators, by precedence climbing. MySQL's grammar has classes of expressions that say which operators may follow:
//! `a LIKE b + 1` and `a IS TRUE IS NULL` are no expressions.

use super::{Parser, Result};
use crate::token::Kind;
use crate::tree::{BinaryOp, Expr, ExprId, Truth, UnaryOp};
use crate::{Keyword, Span};

/// Levels of precedence, and classes of expressions by the loosest operator in them.
pub(super) mod level {
    pub(crate) const OR: u8 = 1;
    pub(crate) const XOR: u8 = 2;
    pub(crate) const AND: u8 = 3;
    pub(crate) const NOT: u8 = 4;
    /// IS TRUE and its like, which nothing but AND, XOR and OR may follow.
    pub(crate) const TRUTH: u8 = 4;
    pub(crate) const COMPARISON: u8 = 6;
    pub(crate) const PREDICATE: u8 = 7;
    pub(crate) const BIT: u8 = 8;
    pub(crate) const CONCAT: u8 = 14;
    pub(crate) const SIMPLE: u8 = 15;
}
use level::{AND, BIT, COMPARISON, CONCAT, NOT, OR, PREDICATE, SIMPLE, TRUTH, XOR};

impl Parser<'_> {
    /// Any expression.
    pub(super) fn expr(&mut self) -> Result<ExprId> {
        self.climb(OR)
    }

    /// An expression without logic and comparison.
    pub(super) fn bit_expr(&mut self) -> Result<ExprId> {
        self.climb(BIT)
    }

    /// An expression whose operators bind at least so tightly.
    pub(super) fn climb(&mut self, min: u8) -> Result<ExprId> {
        self.enter()?;
        let start = self.token().start;
        let word = self.token().word;
        let (left, class) = if word == Keyword::NOT && min <= NOT && !self.mode.high_not_precedence
        {
            (self.negation(start)?, NOT)
        } else {
            (self.operand()?, SIMPLE)
        };
        let found = self.operators(left, class, start, min)?;
        self.leave();
        Ok(found)
    }

    #[inline(never)]
    fn negation(&mut self, start: u32) -> Result<ExprId> {
        self.advance();
        let value = self.climb(NOT)?;
        let span = self.span_from(start);
        Ok(self.tree.add_expr(Expr::Unary(UnaryOp::Not, value), span))
    }

    /// All operators behind an expression of this class that bind at least so tightly.
    pub(super) fn operators(
        &mut self,
        mut left: ExprId,
        mut class: u8,
        start: u32,
        min: u8,
    ) -> Result<ExprId> {
        loop {
            let token = self.token();
            // Most expressions of a list end here.
            if matches!(token.kind, Kind::Comma | Kind::Close | Kind::End) {
                return Ok(left);
            }
            if let Some((op, level)) = self.bit_operator() {
                if level < min || class < BIT {
                    return Ok(left);
                }
                left = self.bit_operation(left, op, level, start)?;
                class = level;
                continue;
            }
            let found = match token.kind {
                Kind::Word => self.word_operator(left, class, start, min)?,
                Kind::PipePipe if self.mode.pipes_as_concat => {
                    self.concat(left, class, start, min)?
                }
                Kind::PipePipe if min <= OR => Some((self.logic_list(left, OR, start)?, OR)),
                Kind::AndAnd if min <= AND => Some((self.logic_list(left, AND, start)?, AND)),
                _ if min <= COMPARISON && class >= COMPARISON => self.comparison(left, start)?,
                _ => None,
            };
            match found {
                Some((expr, new)) => (left, class) = (expr, new),
                None => return Ok(left),
            }
        }
    }

    /// The operator between numbers that comes next, and its level.
    fn bit_operator(&self) -> Option<(BinaryOp, u8)> {
        Some(match self.token().kind {
            Kind::Plus => (BinaryOp::Add, 11),
            Kind::Minus => (BinaryOp::Subtract, 11),
            Kind::Star => (BinaryOp::Multiply, 12),
            Kind::Slash => (BinaryOp::Divide, 12),
            Kind::Percent => (BinaryOp::Modulo, 12),
            Kind::Pipe => (BinaryOp::BitOr, 8),
            Kind::Ampersand => (BinaryOp::BitAnd, 9),
            Kind::ShiftLeft => (BinaryOp::ShiftLeft, 10),
            Kind::ShiftRight => (BinaryOp::ShiftRight, 10),
            Kind::Caret => (BinaryOp::BitXor, 13),
            Kind::Word => match self.token().word {
                Keyword::DIV => (BinaryOp::IntegerDivide, 12),
                Keyword::MOD => (BinaryOp::Modulo, 12),
                _ => return None,
            },
            _ => return None,
        })
    }

    fn binary(&mut self, op: BinaryOp, left: ExprId, right: ExprId, start: u32) -> ExprId {
        let span = self.span_from(start);
        self.tree.add_expr(Expr::Binary(op, left, right), span)
    }

    fn bit_operation(
        &mut self,
        left: ExprId,
        op: BinaryOp,
        level: u8,
        start: u32,
    ) -> Result<ExprId> {
        self.advance();
        if level == 11 && self.is_word(Keyword::INTERVAL) {
            return self.plus_interval(left, op == BinaryOp::Subtract, start);
        }
        let right = self.climb(level + 1)?;
        Ok(self.binary(op, left, right, start))
    }

    /// `left + INTERVAL …`: an interval, or the function INTERVAL as an operand.
    #[inline(never)]
    fn plus_interval(&mut self, value: ExprId, is_minus: bool, start: u32) -> Result<ExprId> {
        let interval_start = self.token().start;
        self.advance();
        match self.interval_amount(interval_start)? {
            Interval::Amount(amount) => {
                let unit = self.interval_unit()?;
                let span = self.span_from(start);
                let expr = Expr::AddInterval { value, amount, unit, is_minus, is_first: false };
                Ok(self.tree.add_expr(expr, span))
            }
            Interval::Function(function) => {
                let right = self.operators(function, SIMPLE, interval_start, 12)?;
                let op = if is_minus { BinaryOp::Subtract } else { BinaryOp::Add };
                Ok(self.binary(op, value, right, start))
            }
        }
    }

    /// What follows INTERVAL: an amount, or the arguments of the function.
    pub(super) fn interval_amount(&mut self, interval_start: u32) -> Result<Interval> {
        if !self.is(Kind::Open) {
            return Ok(Interval::Amount(self.expr()?));
        }
        let start = self.token().start;
        let mark = self.scratch.len();
        let first = self.parenthesized(mark)?;
        if let Some(value) = first {
            return Ok(Interval::Amount(self.operators(value, SIMPLE, start, OR)?));
        }
        if self.scratch.len() - mark == 1 {
            let value = self.scratch[mark];
            self.scratch.truncate(mark);
            return Ok(Interval::Amount(self.operators(value, SIMPLE, start, OR)?));
        }
        let arguments = self.list_from(mark);
        let span = self.span_from(interval_start);
        let function = Expr::Function { name: Keyword::INTERVAL, arguments, has_parentheses: true };
        let function = self.tree.add_expr(function, span);
        Ok(Interval::Function(function))
    }

    /// `INTERVAL amount unit + value`, or the function INTERVAL.
    #[inline(never)]
    pub(super) fn interval_first(&mut self) -> Result<ExprId> {
        let start = self.token().start;
        self.advance();
        match self.interval_amount(start)? {
            Interval::Function(function) => Ok(function),
            Interval::Amount(amount) => {
                let unit = self.interval_unit()?;
                self.expect(Kind::Plus)?;
                let value = self.climb(NOT)?;
                let span = self.span_from(start);
                let expr =
                    Expr::AddInterval { value, amount, unit, is_minus: false, is_first: true };
                Ok(self.tree.add_expr(expr, span))
            }
        }
    }

    /// DAY, HOUR_MINUTE and the like.
    pub(super) fn interval_unit(&mut self) -> Result<Keyword> {
        use Keyword as K;
        let compound = [
            K::DAY_HOUR,
            K::DAY_MICROSECOND,
            K::DAY_MINUTE,
            K::DAY_SECOND,
            K::HOUR_MICROSECOND,
            K::HOUR_MINUTE,
            K::HOUR_SECOND,
            K::MINUTE_MICROSECOND,
            K::MINUTE_SECOND,
            K::SECOND_MICROSECOND,
            K::YEAR_MONTH,
        ];
        if let Some(unit) = self.eat_one_of(&compound) {
            return Ok(unit);
        }
        self.simple_unit()
    }

    /// A unit of one word, as TIMESTAMPADD takes it.
    pub(super) fn simple_unit(&mut self) -> Result<Keyword> {
        use Keyword as K;
        let unit = match self.token().word {
            K::SQL_TSI_DAY => K::DAY,
            K::SQL_TSI_HOUR => K::HOUR,
            K::SQL_TSI_MINUTE => K::MINUTE,
            K::SQL_TSI_MONTH => K::MONTH,
            K::SQL_TSI_QUARTER => K::QUARTER,
            K::SQL_TSI_SECOND => K::SECOND,
            K::SQL_TSI_WEEK => K::WEEK,
            K::SQL_TSI_YEAR => K::YEAR,
            unit @ (K::DAY | K::HOUR | K::MICROSECOND | K::MINUTE | K::MONTH) => unit,
            unit @ (K::QUARTER | K::SECOND | K::WEEK | K::YEAR) => unit,
            _ => return Err(self.error()),
        };
        self.advance();
        Ok(unit)
    }

    #[inline(never)]
    fn concat(
        &mut self,
        left: ExprId,
        class: u8,
        start: u32,
        min: u8,
    ) -> Result<Option<(ExprId, u8)>> {
        if min > CONCAT || class < CONCAT {
            return Ok(None);
        }
        self.advance();
        let right = self.climb(SIMPLE)?;
        Ok(Some((self.binary(BinaryOp::Concat, left, right, start), CONCAT)))
    }

    /// `a AND b AND …` or `a OR b OR …`, as one flat list.
    #[inline(never)]
    fn logic_list(&mut self, left: ExprId, level: u8, start: u32) -> Result<ExprId> {
        let mark = self.scratch.len();
        self.scratch.push(left);
        loop {
            let token = self.token();
            let continues = if level == AND {
                token.word == Keyword::AND || token.kind == Kind::AndAnd
            } else {
                token.word == Keyword::OR
                    || (token.kind == Kind::PipePipe && !self.mode.pipes_as_concat)
            };
            if !continues {
                break;
            }
            self.advance();
            let right = self.climb(level + 1)?;
            self.scratch.push(right);
        }
        let list = self.list_from(mark);
        let span = self.span_from(start);
        let expr = if level == AND { Expr::And(list) } else { Expr::Or(list) };
        Ok(self.tree.add_expr(expr, span))
    }

    fn comparison_operator(&self) -> Option<BinaryOp> {
        Some(match self.token().kind {
            Kind::Equal => BinaryOp::Equal,
            Kind::NullSafeEqual => BinaryOp::NullSafeEqual,
            Kind::NotEqual => BinaryOp::NotEqual,
            Kind::Less => BinaryOp::Less,
            Kind::LessEqual => BinaryOp::LessEqual,
            Kind::Greater => BinaryOp::Greater,
            Kind::GreaterEqual => BinaryOp::GreaterEqual,
            _ => return None,
        })
    }

    #[inline(never)]
    fn comparison(&mut self, left: ExprId, start: u32) -> Result<Option<(ExprId, u8)>> {
        let Some(op) = self.comparison_operator() else { return Ok(None) };
        self.advance();
        let word = self.token().word;
        let is_quantified = matches!(word, Keyword::ALL | Keyword::ANY | Keyword::SOME);
        if is_quantified && self.kind_ahead(1) == Kind::Open && op != BinaryOp::NullSafeEqual {
            self.advance();
            let query = self.subquery()?;
            let span = self.span_from(start);
            let expr = Expr::Quantified { op, left, is_all: word == Keyword::ALL, query };
            return Ok(Some((self.tree.add_expr(expr, span), COMPARISON)));
        }
        let right = self.climb(PREDICATE)?;
        Ok(Some((self.binary(op, left, right, start), COMPARISON)))
    }

    /// An operator that is a word.
    fn word_operator(
        &mut self,
        left: ExprId,
        class: u8,
        start: u32,
        min: u8,
    ) -> Result<Option<(ExprId, u8)>> {
        use Keyword as K;
        Ok(match self.token().word {
            K::AND if min <= AND => Some((self.logic_list(left, AND, start)?, AND)),
            K::OR if min <= OR => Some((self.logic_list(left, OR, start)?, OR)),
            K::XOR if min <= XOR => {
                self.advance();
                let right = self.climb(AND)?;
                Some((self.binary(BinaryOp::Xor, left, right, start), XOR))
            }
            K::IS if class >= COMPARISON => self.is_test(left, start, min)?,
            K::COLLATE if class >= SIMPLE => {
                self.advance();
                let collation = self.collation_name()?;
                let span = self.span_from(start);
                Some((self.tree.add_expr(Expr::Collate { value: left, collation }, span), SIMPLE))
            }
            K::NOT
            | K::IN
            | K::BETWEEN
            | K::LIKE
            | K::REGEXP
            | K::RLIKE
            | K::MEMBER
            | K::SOUNDS
                if min <= PREDICATE && class >= BIT =>
            {
                self.predicate(left, start)?
            }
            _ => None,
        })
    }

    #[inline(never)]
    fn is_test(&mut self, value: ExprId, start: u32, min: u8) -> Result<Option<(ExprId, u8)>> {
        let is_not = self.word_ahead(1) == Keyword::NOT;
        let (truth, class) = match self.word_ahead(1 + usize::from(is_not)) {
            Keyword::NULL => (Truth::Null, COMPARISON),
            Keyword::TRUE => (Truth::True, TRUTH),
            Keyword::FALSE => (Truth::False, TRUTH),
            Keyword::UNKNOWN => (Truth::Unknown, TRUTH),
            _ if min > TRUTH => return Ok(None),
            _ => {
                self.advance();
                self.eat_word(Keyword::NOT);
                return Err(self.error());
            }
        };
        if min > class {
            return Ok(None);
        }
        (0..2 + usize::from(is_not)).for_each(|_| self.advance());
        let span = self.span_from(start);
        Ok(Some((self.tree.add_expr(Expr::Is { value, is_not, truth }, span), class)))
    }

    /// IN, BETWEEN, LIKE, REGEXP, MEMBER OF, SOUNDS LIKE.
    #[inline(never)]
    fn predicate(&mut self, value: ExprId, start: u32) -> Result<Option<(ExprId, u8)>> {
        use Keyword as K;
        let is_not = self.is_word(K::NOT);
        let expr = match self.word_ahead(usize::from(is_not)) {
            K::IN => {
                self.pass_operator(is_not);
                self.in_list(value, is_not)?
            }
            K::BETWEEN => {
                self.pass_operator(is_not);
                let low = self.climb(BIT)?;
                self.expect_word(K::AND)?;
                let high = self.climb(PREDICATE)?;
                let bounds = self.tree.add_list(&[low, high]);
                Expr::Between { value, is_not, bounds }
            }
            K::LIKE => {
                self.pass_operator(is_not);
                let pattern = self.climb(CONCAT)?;
                let mark = self.scratch.len();
                self.scratch.push(pattern);
                if self.eat_word(K::ESCAPE) {
                    let escape = self.climb(CONCAT)?;
                    self.scratch.push(escape);
                }
                let pattern = self.list_from(mark);
                Expr::Like { value, is_not, pattern }
            }
            K::REGEXP | K::RLIKE => {
                self.pass_operator(is_not);
                let pattern = self.climb(BIT)?;
                Expr::Regexp { value, is_not, pattern }
            }
            K::MEMBER
                if !is_not && (self.word_ahead(1) == K::OF || self.kind_ahead(1) == Kind::Open) =>
            {
                self.advance();
                self.eat_word(K::OF);
                self.expect(Kind::Open)?;
                let array = self.climb(CONCAT)?;
                self.expect(Kind::Close)?;
                Expr::Binary(BinaryOp::MemberOf, value, array)
            }
            K::SOUNDS if !is_not && self.word_ahead(1) == K::LIKE => {
                self.advance();
                self.advance();
                let other = self.climb(BIT)?;
                Expr::Binary(BinaryOp::SoundsLike, value, other)
            }
            _ => return Ok(None),
        };
        let span: Span = self.span_from(start);
        Ok(Some((self.tree.add_expr(expr, span), PREDICATE)))
    }

    fn pass_operator(&mut self, is_not: bool) {
        self.advance();
        if is_not {
            self.advance();
        }
    }

    fn in_list(&mut self, value: ExprId, is_not: bool) -> Result<Expr> {
        let mark = self.scratch.len();
        if let Some(query) = self.parenthesized(mark)? {
            let Expr::Subquery(query) = *self.tree.expr(query) else { return Err(self.error()) };
            // The query itself is the right side, not an expression.
            self.tree.exprs.pop();
            self.tree.spans.pop();
            return Ok(Expr::InQuery { value, is_not, query });
        }
        let list = self.list_from(mark);
        Ok(Expr::In { value, is_not, list })
    }
}

/// What follows the word INTERVAL.
pub(super) enum Interval {
    Amount(ExprId),
    Function(ExprId),
}
