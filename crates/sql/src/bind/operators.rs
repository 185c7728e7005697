//! Operators, where MySQL's precedence differs from the parser's.

use super::Binder;
use crate::error;
use lats_values::{BinaryOp, Expr, SqlError, UnaryOp, Value};
use sqlparser::ast::{self, BinaryOperator, UnaryOperator, ValueWithSpan};

/// True for what no precedence can tear apart.
pub(super) fn is_primary(expr: &ast::Expr) -> bool {
    use ast::Expr as E;
    match expr {
        E::UnaryOp { op: UnaryOperator::Minus | UnaryOperator::Plus, expr } => is_primary(expr),
        E::Identifier(_)
        | E::CompoundIdentifier(_)
        | E::Value(_)
        | E::Nested(_)
        | E::Function(_)
        | E::Case { .. }
        | E::Cast { .. }
        | E::Substring { .. }
        | E::Trim { .. }
        | E::Extract { .. }
        | E::Ceil { .. }
        | E::Floor { .. }
        | E::Position { .. }
        | E::Convert { .. } => true,
        _ => false,
    }
}

/// True for predicates and logic without parentheses: MySQL binds them less tightly than the
/// operands of LIKE, IN and BETWEEN.
fn is_loose(expr: &ast::Expr) -> bool {
    use ast::Expr as E;
    match expr {
        E::BinaryOp { op, .. } => {
            is_comparison(op) || matches!(op, BinaryOperator::And | BinaryOperator::Or)
        }
        E::UnaryOp { op: UnaryOperator::Not, .. } => true,
        E::Like { .. } | E::InList { .. } | E::Between { .. } => true,
        E::IsNull(_) | E::IsNotNull(_) | E::IsTrue(_) | E::IsNotTrue(_) => true,
        E::IsFalse(_) | E::IsNotFalse(_) | E::IsUnknown(_) | E::IsNotUnknown(_) => true,
        _ => false,
    }
}

fn is_comparison(op: &BinaryOperator) -> bool {
    use BinaryOperator as B;
    matches!(op, B::Eq | B::NotEq | B::Lt | B::LtEq | B::Gt | B::GtEq | B::Spaceship)
}

/// Hexadecimal literals are strings of bytes, and numbers where a number is wanted.
pub(crate) fn hex_beside(expr: Expr, number: bool) -> Expr {
    match expr {
        Expr::Literal(Value::Bytes(bytes)) if number && bytes.len() <= 8 => {
            let whole = bytes.iter().fold(0_u64, |whole, byte| whole << 8 | u64::from(*byte));
            Expr::Literal(Value::UInt(whole))
        }
        other => other,
    }
}

fn ambiguous(op: &str) -> SqlError {
    error::not_supported(&format!("{op} between expressions without parentheses"))
}

impl Binder<'_> {
    pub(super) fn binary(
        &mut self,
        left: &ast::Expr,
        op: &BinaryOperator,
        right: &ast::Expr,
    ) -> Result<Expr, SqlError> {
        match op {
            BinaryOperator::And => return self.chain(left, right, op, BinaryOp::And),
            BinaryOperator::Or => return self.chain(left, right, op, BinaryOp::Or),
            BinaryOperator::Plus | BinaryOperator::Minus => {
                if let ast::Expr::Interval(interval) = right {
                    return self.add_interval(left, interval, *op == BinaryOperator::Minus);
                }
                if let (ast::Expr::Interval(interval), BinaryOperator::Plus) = (left, op) {
                    return self.add_interval(right, interval, false);
                }
            }
            _ => {}
        }
        let bound = binary_op(op)?;
        let tight_only = !matches!(
            op,
            BinaryOperator::Plus
                | BinaryOperator::Minus
                | BinaryOperator::Multiply
                | BinaryOperator::Divide
                | BinaryOperator::Modulo
                | BinaryOperator::MyIntegerDivide
        ) && !is_comparison(op);
        let div = matches!(op, BinaryOperator::MyIntegerDivide);
        if (tight_only && !(is_primary(left) && is_primary(right))) || (div && !is_primary(right)) {
            return Err(ambiguous(&op.to_string()));
        }
        if is_comparison(op) && is_loose(right) {
            return Err(ambiguous(&op.to_string()));
        }
        if is_comparison(op) && is_loose(left) && !is_comparison_chain(left) {
            return Err(ambiguous(&op.to_string()));
        }
        let (left, right) = (self.bind(left)?, self.bind(right)?);
        // Arithmetic is done with numbers; comparisons if the other side is one.
        let computes = !is_comparison(op);
        let (for_left, for_right) =
            (computes || self.is_number(&right), computes || self.is_number(&left));
        let left = Box::new(hex_beside(left, for_left));
        let right = Box::new(hex_beside(right, for_right));
        Ok(Expr::Binary { op: bound, left, right })
    }

    /// True if the expression gives numbers.
    fn is_number(&self, expr: &Expr) -> bool {
        let types = self.table.map_or(&[][..], |table| &table.types);
        let literal =
            matches!(expr, Expr::Literal(_) | Expr::Column(0..crate::expr::AGGREGATE_BASE));
        literal && crate::expr::type_of(expr, types, &[], &[]).kind.is_number()
    }

    /// AND and OR chains are walked without recursion and put together as a balanced tree: data
    /// nodes limit the depth.
    fn chain(
        &mut self,
        left: &ast::Expr,
        right: &ast::Expr,
        op: &BinaryOperator,
        bound: BinaryOp,
    ) -> Result<Expr, SqlError> {
        let mut operands = vec![right];
        let mut next = left;
        while let ast::Expr::BinaryOp { left, op: inner, right } = next {
            if inner != op {
                break;
            }
            operands.push(right);
            next = left;
        }
        operands.push(next);
        operands.reverse();
        let terms: Result<Vec<Expr>, SqlError> =
            operands.into_iter().map(|operand| self.bind(operand)).collect();
        balanced(terms?, bound).ok_or_else(|| error::syntax("near an operator"))
    }

    pub(super) fn unary(&mut self, op: UnaryOperator, expr: &ast::Expr) -> Result<Expr, SqlError> {
        let op = match op {
            UnaryOperator::Plus => return self.bind(expr),
            UnaryOperator::Minus => UnaryOp::Minus,
            UnaryOperator::Not => UnaryOp::Not,
            UnaryOperator::BangNot if is_primary(expr) => UnaryOp::Not,
            UnaryOperator::BitwiseNot if is_primary(expr) => UnaryOp::BitNot,
            other => return Err(ambiguous(&other.to_string())),
        };
        if op == UnaryOp::Minus
            && let ast::Expr::Value(ValueWithSpan { value: ast::Value::Number(text, _), .. }) = expr
        {
            return super::literals::number(&format!("-{text}")).map(Expr::Literal);
        }
        Ok(Expr::Unary { op, arg: Box::new(self.bind(expr)?) })
    }

    pub(super) fn is_null(&mut self, expr: &ast::Expr, negated: bool) -> Result<Expr, SqlError> {
        Ok(Expr::IsNull { arg: Box::new(self.bind(expr)?), negated })
    }

    /// `IS [NOT] TRUE` and `IS [NOT] FALSE` never give NULL.
    pub(super) fn is_truth(
        &mut self,
        expr: &ast::Expr,
        wanted: bool,
        negated: bool,
    ) -> Result<Expr, SqlError> {
        let condition = self.bind(expr)?;
        let condition = match wanted {
            true => condition,
            false => Expr::Unary { op: UnaryOp::Not, arg: Box::new(condition) },
        };
        let (yes, no) = if negated { (0, 1) } else { (1, 0) };
        Ok(Expr::Case {
            operand: None,
            branches: vec![(condition, Expr::Literal(Value::Int(yes)))],
            otherwise: Some(Box::new(Expr::Literal(Value::Int(no)))),
        })
    }

    pub(super) fn in_list(
        &mut self,
        expr: &ast::Expr,
        list: &[ast::Expr],
        negated: bool,
    ) -> Result<Expr, SqlError> {
        if is_loose(expr) {
            return Err(ambiguous("IN"));
        }
        let arg = Box::new(self.bind(expr)?);
        let number = self.is_number(&arg);
        let list = list.iter().map(|e| Ok(hex_beside(self.bind(e)?, number)));
        let list: Result<Vec<Expr>, SqlError> = list.collect();
        Ok(Expr::In { arg, list: list?.into(), negated })
    }

    pub(super) fn between(
        &mut self,
        parts: [&ast::Expr; 3],
        negated: bool,
    ) -> Result<Expr, SqlError> {
        if parts.iter().any(|part| is_loose(part)) {
            return Err(ambiguous("BETWEEN"));
        }
        let [arg, low, high] = parts;
        let arg = Box::new(self.bind(arg)?);
        let number = self.is_number(&arg);
        let mut bound = |e| Ok::<_, SqlError>(Box::new(hex_beside(self.bind(e)?, number)));
        let (low, high) = (bound(low)?, bound(high)?);
        Ok(Expr::Between { arg, low, high, negated })
    }

    pub(super) fn like(
        &mut self,
        expr: &ast::Expr,
        pattern: &ast::Expr,
        escape: Option<&ValueWithSpan>,
        negated: bool,
    ) -> Result<Expr, SqlError> {
        if is_loose(expr) || is_loose(pattern) {
            return Err(ambiguous("LIKE"));
        }
        let escape = match escape.map(|v| &v.value) {
            None => None,
            Some(ast::Value::SingleQuotedString(text) | ast::Value::DoubleQuotedString(text)) => {
                let mut chars = text.chars();
                match (chars.next(), chars.next()) {
                    (Some(only), None) => Some(only),
                    _ => return Err(error::make(1210, "HY000", "Incorrect arguments to ESCAPE")),
                }
            }
            Some(_) => return Err(error::make(1210, "HY000", "Incorrect arguments to ESCAPE")),
        };
        let (arg, pattern) = (Box::new(self.bind(expr)?), Box::new(self.bind(pattern)?));
        Ok(Expr::Like { arg, pattern, escape, negated })
    }

    pub(super) fn case(
        &mut self,
        operand: Option<&ast::Expr>,
        conditions: &[ast::CaseWhen],
        otherwise: Option<&ast::Expr>,
    ) -> Result<Expr, SqlError> {
        let operand = operand.map(|e| self.bind(e)).transpose()?.map(Box::new);
        let mut branches = Vec::with_capacity(conditions.len());
        for when in conditions {
            branches.push((self.bind(&when.condition)?, self.bind(&when.result)?));
        }
        let otherwise = otherwise.map(|e| self.bind(e)).transpose()?.map(Box::new);
        Ok(self.as_one_type(Expr::Case { operand, branches, otherwise }))
    }
}

/// `a = b = c` groups from the left in both; so does `a IS NULL = b`.
fn is_comparison_chain(expr: &ast::Expr) -> bool {
    use ast::Expr as E;
    match expr {
        E::BinaryOp { op, .. } => is_comparison(op),
        E::IsNull(_) | E::IsNotNull(_) => true,
        _ => false,
    }
}

fn binary_op(op: &BinaryOperator) -> Result<BinaryOp, SqlError> {
    Ok(match op {
        BinaryOperator::Plus => BinaryOp::Add,
        BinaryOperator::Minus => BinaryOp::Subtract,
        BinaryOperator::Multiply => BinaryOp::Multiply,
        BinaryOperator::Divide => BinaryOp::Divide,
        BinaryOperator::Modulo => BinaryOp::Modulo,
        BinaryOperator::MyIntegerDivide => BinaryOp::IntDivide,
        BinaryOperator::Eq => BinaryOp::Equal,
        BinaryOperator::Spaceship => BinaryOp::NullSafeEqual,
        BinaryOperator::NotEq => BinaryOp::NotEqual,
        BinaryOperator::Lt => BinaryOp::Less,
        BinaryOperator::LtEq => BinaryOp::LessOrEqual,
        BinaryOperator::Gt => BinaryOp::Greater,
        BinaryOperator::GtEq => BinaryOp::GreaterOrEqual,
        BinaryOperator::BitwiseAnd => BinaryOp::BitAnd,
        BinaryOperator::BitwiseOr => BinaryOp::BitOr,
        BinaryOperator::BitwiseXor => BinaryOp::BitXor,
        BinaryOperator::PGBitwiseShiftLeft => BinaryOp::ShiftLeft,
        BinaryOperator::PGBitwiseShiftRight => BinaryOp::ShiftRight,
        other => return Err(error::not_supported(&format!("operator {other}"))),
    })
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
