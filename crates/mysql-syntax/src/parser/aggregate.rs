//! Aggregate and window functions, and windows.

use super::{Parser, Result};
use crate::Keyword;
use crate::token::Kind;
use crate::tree::{
    Aggregate, Bound, Direction, Expr, Frame, List, Nulls, OrderItem, Over, SideId, Text, Window,
};
use Keyword as K;
use alloc::vec::Vec;

impl Parser<'_> {
    pub(super) fn is_aggregate(word: Keyword) -> bool {
        Self::is_window_function(word)
            || matches!(
                word,
                K::AVG
                    | K::BIT_AND
                    | K::BIT_OR
                    | K::BIT_XOR
                    | K::COUNT
                    | K::GROUP_CONCAT
                    | K::JSON_ARRAYAGG
                    | K::JSON_OBJECTAGG
                    | K::MAX
                    | K::MIN
                    | K::STD
                    | K::STDDEV
                    | K::STDDEV_POP
                    | K::STDDEV_SAMP
                    | K::ST_COLLECT
                    | K::SUM
                    | K::VARIANCE
                    | K::VAR_POP
                    | K::VAR_SAMP
            )
    }

    fn is_window_function(word: Keyword) -> bool {
        matches!(
            word,
            K::CUME_DIST
                | K::DENSE_RANK
                | K::FIRST_VALUE
                | K::LAG
                | K::LAST_VALUE
                | K::LEAD
                | K::NTH_VALUE
                | K::NTILE
                | K::PERCENT_RANK
                | K::RANK
                | K::ROW_NUMBER
        )
    }

    #[inline(never)]
    pub(super) fn aggregate(&mut self, name: Keyword) -> Result<Expr> {
        self.enter()?;
        self.advance();
        self.advance();
        let mut call = Aggregate {
            name,
            is_distinct: false,
            is_all: false,
            arguments: List::EMPTY,
            order: Vec::new(),
            separator: Text::NONE,
            from_first: false,
            nulls: Nulls::None,
            over: Over::None,
        };
        if Self::is_window_function(name) {
            self.window_call(&mut call)?;
        } else {
            self.aggregate_call(&mut call)?;
        }
        self.leave();
        self.tree.calls.push(call);
        Ok(Expr::Aggregate(SideId(self.tree.calls.len() as u32 - 1)))
    }

    fn aggregate_call(&mut self, call: &mut Aggregate) -> Result<()> {
        let mark = self.scratch.len();
        let name = call.name;
        let may_be_distinct = matches!(
            name,
            K::AVG | K::COUNT | K::GROUP_CONCAT | K::MAX | K::MIN | K::SUM | K::ST_COLLECT
        );
        call.is_distinct = may_be_distinct && self.eat_word(K::DISTINCT);
        call.is_all = !call.is_distinct && name != K::GROUP_CONCAT && self.eat_word(K::ALL);
        if name == K::COUNT && self.is(Kind::Star) && !call.is_distinct {
            let span = self.token().span();
            self.advance();
            let star =
                self.tree.add_expr(Expr::Star { schema: Text::NONE, table: Text::NONE }, span);
            self.scratch.push(star);
        } else {
            let max = match name {
                K::GROUP_CONCAT => usize::MAX,
                K::COUNT if call.is_distinct => usize::MAX,
                K::JSON_OBJECTAGG => 2,
                _ => 1,
            };
            loop {
                if name == K::JSON_OBJECTAGG && self.scratch.len() > mark {
                    self.eat_word(K::ALL);
                }
                let value = self.expr()?;
                self.scratch.push(value);
                if self.scratch.len() - mark == max || !self.eat(Kind::Comma) {
                    break;
                }
            }
            if name == K::JSON_OBJECTAGG && self.scratch.len() - mark < 2 {
                return Err(self.error());
            }
        }
        call.arguments = self.list_from(mark);
        if name == K::GROUP_CONCAT {
            call.order = self.order_by()?;
            if self.eat_word(K::SEPARATOR) {
                call.separator = self.text_or_digits()?;
            }
        }
        self.expect(Kind::Close)?;
        if self.is_word(K::OVER) {
            call.over = self.over()?;
        }
        Ok(())
    }

    fn window_call(&mut self, call: &mut Aggregate) -> Result<()> {
        let mark = self.scratch.len();
        match call.name {
            K::LEAD | K::LAG => {
                let value = self.expr()?;
                self.scratch.push(value);
                if self.eat(Kind::Comma) {
                    let offset = self.window_number()?;
                    self.scratch.push(offset);
                    if self.eat(Kind::Comma) {
                        let default = self.expr()?;
                        self.scratch.push(default);
                    }
                }
            }
            K::FIRST_VALUE | K::LAST_VALUE => {
                let value = self.expr()?;
                self.scratch.push(value);
            }
            K::NTH_VALUE => {
                let value = self.expr()?;
                self.scratch.push(value);
                self.expect(Kind::Comma)?;
                let number = self.window_number()?;
                self.scratch.push(number);
            }
            K::NTILE => {
                let number = self.window_number()?;
                self.scratch.push(number);
            }
            _ => {}
        }
        call.arguments = self.list_from(mark);
        self.expect(Kind::Close)?;
        let has_nulls =
            matches!(call.name, K::LEAD | K::LAG | K::FIRST_VALUE | K::LAST_VALUE | K::NTH_VALUE);
        if call.name == K::NTH_VALUE && self.eat_word(K::FROM) {
            if self.is_word(K::LAST) {
                return Err(alloc::boxed::Box::new(crate::SyntaxError::unsupported(
                    "FROM LAST",
                    self.token().start,
                )));
            }
            self.expect_word(K::FIRST)?;
            call.from_first = true;
        }
        if has_nulls && matches!(self.token().word, K::RESPECT | K::IGNORE) {
            if self.is_word(K::IGNORE) {
                let at = self.token().start;
                return Err(alloc::boxed::Box::new(crate::SyntaxError::unsupported(
                    "IGNORE NULLS",
                    at,
                )));
            }
            self.advance();
            self.expect_word(K::NULLS)?;
            call.nulls = Nulls::Respect;
        }
        call.over = self.over()?;
        Ok(())
    }

    /// A number of rows: a literal, a parameter, or a variable.
    fn window_number(&mut self) -> Result<crate::tree::ExprId> {
        match self.token().kind {
            Kind::Integer | Kind::Hex | Kind::Parameter | Kind::At => self.operand(),
            _ if self.at_name() && self.is_in_program => self.column(),
            _ if self.is_word(K::NULL) => self.operand(),
            _ => Err(self.error()),
        }
    }

    fn over(&mut self) -> Result<Over> {
        self.expect_word(K::OVER)?;
        if self.is(Kind::Open) {
            return Ok(Over::Window(self.window()?));
        }
        Ok(Over::Name(self.name()?))
    }

    /// `(base PARTITION BY … ORDER BY … frame)`
    pub(super) fn window(&mut self) -> Result<SideId> {
        let start = self.token().start;
        self.expect(Kind::Open)?;
        let base = if self.at_name() { self.name()? } else { Text::NONE };
        let mut partition = List::EMPTY;
        if self.eat_word(K::PARTITION) {
            self.expect_word(K::BY)?;
            let mark = self.scratch.len();
            loop {
                let value = self.expr()?;
                self.scratch.push(value);
                if !self.eat(Kind::Comma) {
                    break;
                }
            }
            partition = self.list_from(mark);
        }
        let order = self.order_by()?;
        let frame = self.frame()?;
        self.expect(Kind::Close)?;
        let span = self.span_from(start);
        self.tree.windows.push(Window { base, partition, order, frame, span });
        Ok(SideId(self.tree.windows.len() as u32 - 1))
    }

    fn frame(&mut self) -> Result<Option<Frame>> {
        let unit = self.token().word;
        if !matches!(unit, K::ROWS | K::RANGE | K::GROUPS) {
            return Ok(None);
        }
        let at = self.token().start;
        self.advance();
        let has_end = self.eat_word(K::BETWEEN);
        let start = self.bound(has_end)?;
        let mut end = None;
        if has_end {
            self.expect_word(K::AND)?;
            end = Some(self.bound(true)?);
        }
        let unsupported = if unit == K::GROUPS {
            Some("GROUPS")
        } else if self.eat_word(K::EXCLUDE) {
            Some("EXCLUDE")
        } else {
            None
        };
        if let Some(what) = unsupported {
            return Err(alloc::boxed::Box::new(crate::SyntaxError::unsupported(what, at)));
        }
        Ok(Some(Frame { is_range: unit == K::RANGE, start, end }))
    }

    fn bound(&mut self, may_follow: bool) -> Result<Bound> {
        if self.eat_word(K::CURRENT) {
            self.expect_word(K::ROW)?;
            return Ok(Bound::CurrentRow);
        }
        if self.eat_word(K::UNBOUNDED) {
            let word = self.expect_one_of(if may_follow {
                &[K::PRECEDING, K::FOLLOWING]
            } else {
                &[K::PRECEDING]
            })?;
            return Ok(if word == K::PRECEDING {
                Bound::UnboundedPreceding
            } else {
                Bound::UnboundedFollowing
            });
        }
        let (value, unit) = if self.eat_word(K::INTERVAL) {
            let value = self.expr()?;
            (value, self.interval_unit()?)
        } else {
            let is_number = matches!(
                self.token().kind,
                Kind::Integer | Kind::Decimal | Kind::Float | Kind::Parameter
            );
            if !is_number && !self.is(Kind::At) {
                return Err(self.error());
            }
            (self.operand()?, K::None)
        };
        let word = self.expect_one_of(if may_follow {
            &[K::PRECEDING, K::FOLLOWING]
        } else {
            &[K::PRECEDING]
        })?;
        Ok(if word == K::PRECEDING {
            Bound::Preceding { value, unit }
        } else {
            Bound::Following { value, unit }
        })
    }

    /// ORDER BY, if it comes next.
    pub(super) fn order_by(&mut self) -> Result<Vec<OrderItem>> {
        if !self.eat_word(K::ORDER) {
            return Ok(Vec::new());
        }
        self.expect_word(K::BY)?;
        self.comma_list(|parser| {
            let value = parser.expr()?;
            Ok(OrderItem { value, direction: parser.direction() })
        })
    }

    /// ASC or DESC, if it comes next.
    pub(super) fn direction(&mut self) -> Direction {
        if self.eat_word(K::ASC) {
            Direction::Ascending
        } else if self.eat_word(K::DESC) {
            Direction::Descending
        } else {
            Direction::None
        }
    }
}
