//! Which expressions may end a statement, or leave a warning, for some values of their columns.
//!
//! A rewrite that computes an expression for more rows than the query as written must not do so with these: the rows that
//! nobody asked for could fail. What is no constant and not known to be harmless may fail.

use crate::ir::{Call, EXTERNAL_BASE, Rel, Scalar, types::type_with, walk};
use crate::reach::Kinds;
use lats_values::aggregate::AggregateKind;
use lats_values::{BinaryOp, ColumnType, Expr, Function, TypeKind, UnaryOp, Value};

/// Parts of an expression that are looked at; one with more may fail.
const PARTS_MAX: usize = 4_096;
/// Whole numbers up to here are a BIGINT.
const BIGINT_MOST: f64 = 9.2e18;
/// Decimals up to here have digits to spare.
const DECIMAL_MOST: f64 = 1e60;
/// Doubles up to here are far from the largest.
const DOUBLE_MOST: f64 = 1e300;

impl Kinds<'_> {
    fn type_of(&self, expr: &Scalar) -> ColumnType {
        type_with(expr, self.types, self.externals)
    }

    /// True if a plan computes something that may fail.
    pub(super) fn plan_may_fail(&self, rel: &Rel) -> bool {
        rel.scalars().into_iter().any(|scalar| self.may_fail(scalar))
            || matches!(rel, Rel::Aggregate { calls, .. } if self.calls_may_fail(calls))
            || matches!(rel, Rel::Window { .. } | Rel::Recursive { .. })
            || rel.inputs().into_iter().any(|input| self.plan_may_fail(input))
    }

    /// True if an aggregate function may fail, or one of its arguments.
    pub(super) fn calls_may_fail(&self, calls: &[Call]) -> bool {
        calls.iter().any(|call| self.call(call))
    }

    fn call(&self, call: &Call) -> bool {
        use AggregateKind as A;
        let inexact = |arg: &Scalar| {
            let kind = self.type_of(arg).kind;
            !kind.is_number() || kind == TypeKind::Double
        };
        let adds = match call.spec.kind {
            A::Count | A::CountStar | A::Min | A::Max | A::AnyValue => false,
            A::GroupConcat => true,
            _ => call.args.iter().any(inexact),
        };
        adds || call.args.iter().any(|arg| self.may_fail(arg))
    }

    /// True if an expression may fail.
    pub(super) fn may_fail(&self, expr: &Scalar) -> bool {
        walk::size_within(expr, PARTS_MAX).is_none() || self.part(expr)
    }

    fn part(&self, expr: &Scalar) -> bool {
        // What is the same for all rows fails for the first one as for others.
        if is_constant(expr) {
            return false;
        }
        let own = match expr {
            Expr::Literal(_) | Expr::Column(_) | Expr::IsNull { .. } | Expr::Collate { .. } => {
                false
            }
            Expr::Unary { op: UnaryOp::Not, arg } => self.is_string(arg),
            Expr::Unary { op: UnaryOp::Minus, .. } => self.most(expr).is_none(),
            Expr::Unary { .. } => true,
            Expr::Binary { op, left, right } | Expr::Compare { op, left, right, .. } => {
                self.binary(*op, left, right, expr)
            }
            Expr::Between { arg, low, high, .. } => {
                self.compares(arg, low) || self.compares(arg, high)
            }
            Expr::In { arg, list, .. } => list.iter().any(|item| self.compares(arg, item)),
            Expr::Like { arg, pattern, .. } => !self.is_string(arg) || !self.is_string(pattern),
            Expr::Case { operand, branches, .. } => operand
                .as_deref()
                .is_some_and(|of| branches.iter().any(|(when, _)| self.compares(of, when))),
            Expr::Cast { arg, to } => !self.is_string(arg) || !to.kind.is_text(),
            Expr::Call { function, args } => !self.is_harmless(*function, args),
        };
        own || walk::children(expr).into_iter().any(|child| self.part(child))
    }

    fn binary(&self, op: BinaryOp, left: &Scalar, right: &Scalar, whole: &Scalar) -> bool {
        use BinaryOp as B;
        match op {
            B::And | B::Or | B::Xor => self.is_string(left) || self.is_string(right),
            B::Add | B::Subtract | B::Multiply | B::Divide => self.most(whole).is_none(),
            B::IntDivide | B::Modulo => true,
            _ if op.is_comparison() => self.compares(left, right),
            // Operators of bits.
            _ => ![left, right].into_iter().all(|side| self.type_of(side).kind.is_integer()),
        }
    }

    /// True if comparing two values may fail.
    fn compares(&self, a: &Scalar, b: &Scalar) -> bool {
        if [a, b].into_iter().any(|side| matches!(side, Expr::Literal(Value::Null))) {
            return false;
        }
        let (of_a, of_b) = (self.type_of(a).kind, self.type_of(b).kind);
        let is_text = |kind: TypeKind| kind.is_text() || kind.is_bytes();
        let is_number = |kind: TypeKind| kind.is_number();
        let constant_text = |kind, expr| is_text(kind) && is_constant(expr);
        let alike = (is_number(of_a) && is_number(of_b))
            || (is_text(of_a) && is_text(of_b))
            || (is_moment(of_a) && (is_moment(of_b) || constant_text(of_b, b)))
            || (is_moment(of_b) && constant_text(of_a, a))
            || matches!((of_a, of_b), (TypeKind::Time { .. }, TypeKind::Time { .. }));
        !alike
    }

    fn is_string(&self, expr: &Scalar) -> bool {
        let kind = self.type_of(expr).kind;
        kind.is_text() || kind.is_bytes()
    }

    fn is_harmless(&self, function: Function, args: &[Scalar]) -> bool {
        use Function as F;
        let of_moment = || args.iter().all(|arg| is_moment(self.type_of(arg).kind));
        match function {
            F::IfNull | F::Coalesce | F::IsNull | F::If => true,
            F::Greatest | F::Least | F::NullIf => {
                args.iter().zip(args.iter().skip(1)).all(|(a, b)| !self.compares(a, b))
            }
            F::Length | F::CharLength | F::Lower | F::Upper | F::Left | F::Right | F::Substring => {
                let mut rest = args.iter().skip(1);
                args.first().is_some_and(|text| self.is_string(text))
                    && rest.all(|number| self.type_of(number).kind.is_integer())
            }
            F::Trim | F::LTrim | F::RTrim => args.iter().all(|arg| self.is_string(arg)),
            F::Date | F::Year | F::Quarter | F::Month | F::Day | F::Extract { .. } => of_moment(),
            F::Abs | F::Sign | F::Floor | F::Ceil => args
                .first()
                .is_some_and(|arg| self.most(arg).is_some_and(|most| most < BIGINT_MOST)),
            _ => false,
        }
    }

    /// How large a number may be at most, either way; none if it may not fit its type.
    fn most(&self, expr: &Scalar) -> Option<f64> {
        let whole = self.type_of(expr);
        let most = match expr {
            Expr::Unary { op: UnaryOp::Minus, arg } => self.most(arg)?,
            Expr::Binary { op, left, right } => {
                let (a, b) = (self.most(left)?, self.most(right)?);
                match op {
                    BinaryOp::Add => a + b,
                    // Without a sign there is nothing below zero.
                    BinaryOp::Subtract if whole.unsigned && whole.kind.is_integer() => return None,
                    BinaryOp::Subtract => a + b,
                    BinaryOp::Multiply => a * b,
                    BinaryOp::Divide => a / divisor(right)?,
                    _ => of_type(&whole)?,
                }
            }
            Expr::Literal(Value::Int(value)) => value.unsigned_abs() as f64,
            Expr::Literal(Value::UInt(value)) => *value as f64,
            Expr::Literal(Value::Decimal(value)) => {
                let value = value.to_f64();
                if value < 0.0 { -value } else { value }
            }
            _ => return of_type(&whole),
        };
        let limit = match whole.kind {
            TypeKind::Decimal { .. } => DECIMAL_MOST,
            TypeKind::Double | TypeKind::Float => DOUBLE_MOST,
            kind if kind.is_integer() => BIGINT_MOST,
            _ => return None,
        };
        (most <= limit).then_some(most)
    }
}

fn is_constant(expr: &Scalar) -> bool {
    let mut found = false;
    walk::visit_numbers(expr, &mut |number| found |= number < EXTERNAL_BASE);
    !found && !walk::is_volatile(expr)
}

fn is_moment(kind: TypeKind) -> bool {
    matches!(kind, TypeKind::Date | TypeKind::DateTime { .. } | TypeKind::Timestamp { .. })
}

/// A constant by which it is safe to divide.
fn divisor(expr: &Scalar) -> Option<f64> {
    let value = match expr {
        Expr::Literal(Value::Int(value)) => value.unsigned_abs() as f64,
        Expr::Literal(Value::UInt(value)) => *value as f64,
        Expr::Literal(Value::Decimal(value)) => value.to_f64(),
        _ => return None,
    };
    (value > 0.0).then_some(value)
}

/// The largest value of a type of numbers; none for doubles, which go up to the last.
fn of_type(of: &ColumnType) -> Option<f64> {
    Some(match of.kind {
        TypeKind::Decimal { precision, scale } => {
            (0..precision.saturating_sub(scale)).fold(1.0, |most, _| most * 10.0)
        }
        TypeKind::Float => 3.5e38,
        TypeKind::Year => 2_155.0,
        kind => {
            let bytes = kind.integer_bytes()?;
            (0..bytes).fold(1.0, |most, _| most * 256.0) / if of.unsigned { 1.0 } else { 2.0 }
        }
    })
}
