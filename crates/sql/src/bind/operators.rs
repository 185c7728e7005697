//! Operators, conditions and CASE.

use super::{Binder, lazy};
use crate::error;
use lats_mysql_syntax::tree::{self, ExprId, List, Truth};
use lats_values::{
    BinaryOp, ColumnType, EvalContext, Expr, Function, SqlError, TypeKind, UnaryOp, Value,
};

/// Operators in a row, such as those of `1+1+1`: expressions are as deep as their chains are long.
const CHAIN_MAX: usize = 2_500;

/// 1210.
fn wrong_escape() -> SqlError {
    error::make(1210, "HY000", "Incorrect arguments to ESCAPE")
}

/// Hexadecimal literals are strings of bytes, and numbers where a number is wanted.
pub(crate) fn hex_beside(expr: Expr, number: bool) -> Expr {
    match expr {
        Expr::Literal(Value::Bytes(bytes)) if number => {
            let start = bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len());
            if bytes.len() - start > 8 {
                // More than 64 bits: the greatest number, as in MySQL.
                return Expr::Literal(Value::UInt(u64::MAX));
            }
            let whole = bytes.iter().fold(0_u64, |whole, byte| whole << 8 | u64::from(*byte));
            Expr::Literal(Value::UInt(whole))
        }
        other => other,
    }
}

pub(super) fn is_comparison(op: tree::BinaryOp) -> bool {
    use tree::BinaryOp as T;
    matches!(
        op,
        T::Equal
            | T::NullSafeEqual
            | T::NotEqual
            | T::Less
            | T::LessEqual
            | T::Greater
            | T::GreaterEqual
    )
}

/// The operator of `values` for one of the syntax; none for those that are functions.
pub(super) fn value_op(op: tree::BinaryOp) -> Option<BinaryOp> {
    use tree::BinaryOp as T;
    Some(match op {
        T::Xor => BinaryOp::Xor,
        T::Equal => BinaryOp::Equal,
        T::NullSafeEqual => BinaryOp::NullSafeEqual,
        T::NotEqual => BinaryOp::NotEqual,
        T::Less => BinaryOp::Less,
        T::LessEqual => BinaryOp::LessOrEqual,
        T::Greater => BinaryOp::Greater,
        T::GreaterEqual => BinaryOp::GreaterOrEqual,
        T::BitOr => BinaryOp::BitOr,
        T::BitAnd => BinaryOp::BitAnd,
        T::ShiftLeft => BinaryOp::ShiftLeft,
        T::ShiftRight => BinaryOp::ShiftRight,
        T::Add => BinaryOp::Add,
        T::Subtract => BinaryOp::Subtract,
        T::Multiply => BinaryOp::Multiply,
        T::Divide => BinaryOp::Divide,
        T::IntegerDivide => BinaryOp::IntDivide,
        T::Modulo => BinaryOp::Modulo,
        T::BitXor => BinaryOp::BitXor,
        T::Concat | T::SoundsLike | T::MemberOf => return None,
    })
}

impl Binder<'_> {
    /// A binary operator. Chains to the left, such as `1+1+1`, are walked without recursion.
    pub(super) fn binary(
        &mut self,
        id: ExprId,
        _: tree::BinaryOp,
        _: ExprId,
        _: ExprId,
    ) -> Result<Expr, SqlError> {
        let tree = self.tree();
        let mut pending = Vec::new();
        let mut first = id;
        while let tree::Expr::Binary(op, left, right) = *tree.expr(first) {
            if pending.len() == CHAIN_MAX {
                let text = "Thread stack overrun: too many operators in one expression";
                return Err(error::make(1436, "HY000", text));
            }
            pending.push((op, left, right));
            first = left;
            if self.compares_rows(op, left, right) {
                break;
            }
        }
        let mut bound: Option<Expr> = None;
        while let Some((op, left, right)) = pending.pop() {
            bound = Some(match bound {
                None if self.compares_rows(op, left, right) => {
                    self.row_comparison(op, left, right)?
                }
                None => {
                    let left = self.bind(left)?;
                    self.operator(op, left, right)?
                }
                Some(left) => self.operator(op, left, right)?,
            });
        }
        bound.ok_or_else(|| error::internal("an operator was expected"))
    }

    fn compares_rows(&self, op: tree::BinaryOp, left: ExprId, right: ExprId) -> bool {
        is_comparison(op) && (self.is_row(left) || self.is_row(right))
    }

    fn operator(
        &mut self,
        op: tree::BinaryOp,
        left: Expr,
        right: ExprId,
    ) -> Result<Expr, SqlError> {
        let right = self.bind(right)?;
        let Some(bound) = value_op(op) else {
            return match op {
                tree::BinaryOp::Concat => {
                    Ok(Expr::Call { function: Function::Concat, args: vec![left, right] })
                }
                tree::BinaryOp::SoundsLike => {
                    let sound = |arg| Expr::Call { function: Function::Soundex, args: vec![arg] };
                    Ok(self.combine(BinaryOp::Equal, sound(left), sound(right)))
                }
                _ => Err(error::not_supported("MEMBER OF")),
            };
        };
        self.check_collations(bound, &left, &right)?;
        Ok(self.combine(bound, left, right))
    }

    /// An operator over two bound operands.
    pub(super) fn combine(&self, op: BinaryOp, left: Expr, right: Expr) -> Expr {
        use BinaryOp as B;
        let compares = op.is_comparison();
        let calculates =
            matches!(op, B::Add | B::Subtract | B::Multiply | B::Divide | B::IntDivide | B::Modulo);
        let (left, right) = match self.assigns_variables() && (compares || calculates) {
            true => self.as_operands(compares, left, right),
            false => (left, right),
        };
        // Arithmetic is done with numbers; comparisons if the other side is one.
        let (for_left, for_right) =
            (!compares || self.is_number(&right), !compares || self.is_number(&left));
        let mut left = hex_beside(left, for_left);
        let mut right = hex_beside(right, for_right);
        if compares {
            left = self.of_variable(left, &right);
            right = self.of_variable(right, &left);
        }
        if compares && self.context.connection_collation.is_some() {
            self.of_connection(&mut left, &[&right]);
            self.of_connection(&mut right, &[&left]);
        }
        let left = Box::new(left);
        if matches!(op, B::Divide | B::IntDivide | B::Modulo) {
            right = self.divisor(right);
        }
        Expr::Binary { op, left, right: Box::new(right) }
    }

    /// What is divided by: NULL in the place of zero, where nothing is to be said of that.
    pub(super) fn divisor(&self, divisor: Expr) -> Expr {
        if !self.context.quiet_division {
            return divisor;
        }
        let args = vec![divisor, Expr::Literal(Value::Int(0))];
        Expr::Call { function: Function::NullIf, args }
    }

    /// True if the expression gives numbers.
    pub(super) fn is_number(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Literal(value) => matches!(
                value,
                Value::Int(_)
                    | Value::UInt(_)
                    | Value::Decimal(_)
                    | Value::Double(_)
                    | Value::Float(_)
            ),
            other => self.type_of(other).kind.is_number(),
        }
    }

    /// AND and OR are put together as a balanced tree: data nodes limit the depth.
    pub(super) fn chain(&mut self, list: List, op: BinaryOp) -> Result<Expr, SqlError> {
        let mut terms = Vec::with_capacity(list.len());
        let guards = self.guards();
        for id in self.tree().list(list) {
            let term = hex_beside(self.bind(*id)?, true);
            // What decides leaves the rest unlooked at.
            self.guard(|| match op {
                BinaryOp::And => lazy::not_false(term.clone()),
                _ => lazy::not_true(term.clone()),
            });
            terms.push(term);
        }
        self.unguard(guards);
        balanced(terms, op).ok_or_else(|| error::internal("a condition was expected"))
    }

    pub(super) fn unary(&mut self, op: tree::UnaryOp, arg: ExprId) -> Result<Expr, SqlError> {
        use tree::UnaryOp as U;
        let op = match op {
            U::Plus => return self.bind(arg),
            U::Binary => {
                let to = ColumnType::new(TypeKind::LongBlob);
                return Ok(Expr::Cast { arg: Box::new(self.bind(arg)?), to });
            }
            U::Minus => {
                // The literal -9223372036854775808 is a BIGINT.
                if let tree::Expr::Number { digits, .. } = *self.tree().expr(arg) {
                    let digits = self.name(digits)?;
                    return super::number(&format!("-{digits}")).map(Expr::Literal);
                }
                UnaryOp::Minus
            }
            U::Not | U::Bang => UnaryOp::Not,
            U::BitNot => UnaryOp::BitNot,
        };
        let arg = hex_beside(self.bind(arg)?, true);
        Ok(Expr::Unary { op, arg: Box::new(arg) })
    }

    /// `IS [NOT] TRUE` and `IS [NOT] FALSE` never give NULL.
    pub(super) fn is(
        &mut self,
        value: ExprId,
        is_not: bool,
        truth: Truth,
    ) -> Result<Expr, SqlError> {
        let bound = self.bind(value)?;
        let wanted = match truth {
            Truth::Null | Truth::Unknown => {
                return Ok(Expr::IsNull { arg: Box::new(bound), negated: is_not });
            }
            Truth::True => true,
            Truth::False => false,
        };
        let bound = hex_beside(bound, true);
        let condition = match wanted {
            true => bound,
            false => Expr::Unary { op: UnaryOp::Not, arg: Box::new(bound) },
        };
        let (yes, no) = if is_not { (0, 1) } else { (1, 0) };
        Ok(Expr::Case {
            operand: None,
            branches: vec![(condition, Expr::Literal(Value::Int(yes)))],
            otherwise: Some(Box::new(Expr::Literal(Value::Int(no)))),
        })
    }

    pub(super) fn in_list(
        &mut self,
        value: ExprId,
        is_not: bool,
        list: List,
    ) -> Result<Expr, SqlError> {
        let items = self.tree().list(list);
        if self.is_row(value) || items.iter().any(|item| self.is_row(*item)) {
            return self.row_in_list(value, is_not, items);
        }
        let arg = self.bind(value)?;
        let number = self.is_number(&arg);
        let mut bound = Vec::with_capacity(items.len());
        for item in items {
            bound.push(hex_beside(self.bind(*item)?, number));
        }
        let mut arg = hex_beside(arg, bound.iter().any(|item| self.is_number(item)));
        let others: Vec<&Expr> = bound.iter().collect();
        self.check_list_mix(&arg, &others)?;
        self.of_connection(&mut arg, &others);
        let arg = self.of_others(arg, &others);
        let arg = Box::new(self.of_all(arg, &others));
        Ok(Expr::In { arg, list: bound.into(), negated: is_not })
    }

    /// 1267 and the like for a list of IN. Long lists are made of constants, which give way.
    fn check_list_mix(&self, arg: &Expr, items: &[&Expr]) -> Result<(), SqlError> {
        let is_constant = |item: &&&Expr| matches!(item, Expr::Literal(_));
        if items.iter().all(|item| is_constant(&item)) {
            return Ok(());
        }
        let all: Vec<&Expr> = std::iter::once(arg).chain(items.iter().copied()).collect();
        self.check_mix(" IN ", &all)
    }

    pub(super) fn between(
        &mut self,
        value: ExprId,
        is_not: bool,
        bounds: List,
    ) -> Result<Expr, SqlError> {
        let [low, high] = *self.tree().list(bounds) else {
            return Err(error::internal("BETWEEN has two bounds"));
        };
        let (mut arg, low, high) = (self.bind(value)?, self.bind(low)?, self.bind(high)?);
        self.check_mix("between", &[&arg, &low, &high])?;
        self.of_connection(&mut arg, &[&low, &high]);
        let arg = self.of_others(arg, &[&low, &high]);
        let arg = self.of_all(arg, &[&low, &high]);
        let number = self.is_number(&arg) || self.is_number(&low) || self.is_number(&high);
        let read = |expr: Expr| Box::new(hex_beside(expr, number));
        Ok(Expr::Between { arg: read(arg), low: read(low), high: read(high), negated: is_not })
    }

    pub(super) fn like(
        &mut self,
        value: ExprId,
        is_not: bool,
        pattern: List,
    ) -> Result<Expr, SqlError> {
        let (pattern, escape) = match *self.tree().list(pattern) {
            [pattern] => (pattern, self.context.no_escapes.then_some('\0')),
            [pattern, escape] => (pattern, self.escape(escape)?),
            _ => return Err(wrong_escape()),
        };
        let (mut arg, pattern) = (self.bind(value)?, self.bind(pattern)?);
        self.check_mix("like", &[&arg, &pattern])?;
        self.of_connection(&mut arg, &[&pattern]);
        let (arg, pattern) = (Box::new(arg), Box::new(pattern));
        Ok(Expr::Like { arg, pattern, escape, negated: is_not })
    }

    /// The one character of ESCAPE: the zero character for none at all, nothing for the default.
    fn escape(&mut self, id: ExprId) -> Result<Option<char>, SqlError> {
        let bound = self.bind(id)?;
        if !crate::expr::is_constant(&bound) {
            return Err(wrong_escape());
        }
        if crate::expr::has_externals(&bound) {
            return Err(error::not_supported("ESCAPE with a value from outside"));
        }
        let source = crate::expr::RowSource::constant(&[]);
        let value = lats_values::eval(&bound, &source, &mut EvalContext::new(false))?;
        let Some(bytes) = value.as_bytes() else { return Ok(None) };
        let text = core::str::from_utf8(&bytes).map_err(|_| wrong_escape())?;
        let mut chars = text.chars();
        match (chars.next(), chars.next()) {
            (None, _) if self.context.no_escapes => Err(wrong_escape()),
            (None, _) => Ok(Some('\0')),
            (Some(only), None) => Ok(Some(only)),
            _ => Err(wrong_escape()),
        }
    }

    pub(super) fn case(
        &mut self,
        operand: Option<ExprId>,
        whens: List,
        otherwise: Option<ExprId>,
    ) -> Result<Expr, SqlError> {
        let operand = operand.map(|e| self.bind(e)).transpose()?.map(Box::new);
        let whens = self.tree().list(whens);
        let mut branches = Vec::with_capacity(whens.len() / 2);
        let guards = self.guards();
        for pair in whens.chunks_exact(2) {
            let condition = hex_beside(self.bind(pair[0])?, operand.is_none());
            let holds = || match &operand {
                Some(operand) => {
                    let (op, left) = (BinaryOp::Equal, operand.clone());
                    Expr::Binary { op, left, right: Box::new(condition.clone()) }
                }
                None => condition.clone(),
            };
            let before = self.guards();
            self.guard(holds);
            let result = self.bind(pair[1])?;
            self.unguard(before);
            self.guard(|| lazy::not_true(holds()));
            branches.push((condition, result));
        }
        let otherwise = otherwise.map(|e| self.bind(e)).transpose()?.map(Box::new);
        self.unguard(guards);
        // What a subquery depends on compares two by two.
        let operand = operand.map(|operand| match self.has_queries {
            true => operand,
            false => {
                let whens: Vec<&Expr> = branches.iter().map(|(when, _)| when).collect();
                Box::new(self.of_all(*operand, &whens))
            }
        });
        Ok(self.as_one_type(Expr::Case { operand, branches, otherwise }))
    }
}

/// One tree of equal depth everywhere.
pub fn balanced(mut terms: Vec<Expr>, op: BinaryOp) -> Option<Expr> {
    while terms.len() > 1 {
        let mut pairs = Vec::with_capacity(terms.len().div_ceil(2));
        let mut rest = terms.into_iter();
        while let Some(left) = rest.next() {
            pairs.push(match rest.next() {
                Some(right) => Expr::Binary { op, left: Box::new(left), right: Box::new(right) },
                None => left,
            });
        }
        terms = pairs;
    }
    terms.pop()
}
