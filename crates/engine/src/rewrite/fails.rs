//! Which expressions may end a statement, or leave a warning, for some values of their columns.
//!
//! A rewrite that computes an expression for more rows than the query as written must not do so with these: the rows that
//! nobody asked for could fail. What is not known to be harmless may fail. Constants are computed here, once: a constant that
//! fails is no better, as the query as written may have no row for which it is computed.

use crate::ir::{Call, EXTERNAL_BASE, Rel, Scalar, types::type_with, walk};
use crate::reach::Kinds;
use alloc::{boxed::Box, vec::Vec};
use lats_values::aggregate::AggregateKind;
use lats_values::{BinaryOp, ColumnType, EvalContext, Expr, Function, TypeKind, UnaryOp, Value};

/// Parts of an expression that are looked at; one with more may fail.
const PARTS_MAX: usize = 4_096;
/// Levels of an expression that is looked at.
const LEVELS_MAX: usize = 512;
/// What computing a part of a constant may cost.
const CONSTANT_WORK: u64 = 1_024;
/// Whole numbers up to here are a BIGINT.
const BIGINT_MOST: f64 = 9.2e18;
/// Decimals up to here have digits to spare.
const DECIMAL_MOST: f64 = 1e60;
/// Doubles up to here are far from the largest.
const DOUBLE_MOST: f64 = 1e300;

/// What is known of an expression, or of a part of one.
struct Part {
    fails: bool,
    of: ColumnType,
    /// How large a number may be at most, either way; none if it may not fit its type.
    most: Option<f64>,
    /// The value of a constant.
    value: Option<Value>,
    /// It is a value from outside as it is.
    is_given: bool,
}

impl Kinds<'_> {
    /// True if a plan computes something that may fail.
    pub(super) fn plan_may_fail(&self, rel: &Rel) -> bool {
        let conditions =
            matches!(rel, Rel::Filter { .. } | Rel::Scan(_) | Rel::Join { .. } | Rel::Apply { .. });
        // A condition is read as a number.
        let fails = |part: Part| part.fails || (conditions && part.is_string());
        rel.scalars().into_iter().any(|scalar| self.look(scalar).is_none_or(fails))
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
        let adds = |arg: &Part| {
            let kind = arg.of.kind;
            !kind.is_number() || kind == TypeKind::Double
        };
        let fails = |arg: &Part| {
            arg.fails
                || match call.spec.kind {
                    A::Count | A::CountStar | A::Min | A::Max | A::AnyValue => false,
                    A::GroupConcat => true,
                    _ => adds(arg),
                }
        };
        call.spec.kind == A::GroupConcat
            || call.args.iter().any(|arg| self.look(arg).is_none_or(|part| fails(&part)))
    }

    /// What is known of an expression; none if it is too large to be looked at.
    fn look(&self, expr: &Scalar) -> Option<Part> {
        let is_small =
            walk::size_within(expr, PARTS_MAX).is_some() && !walk::is_deeper(expr, LEVELS_MAX);
        is_small.then(|| self.part(expr))
    }

    fn part(&self, expr: &Scalar) -> Part {
        let of_parts: Vec<Part> = walk::children(expr).into_iter().map(|e| self.part(e)).collect();
        let of = match expr {
            Expr::Column(_) => type_with(expr, self.types, self.externals),
            other => type_above(other, &of_parts),
        };
        let value = match expr {
            Expr::Literal(value) => Some(value.clone()),
            other => constant(other, &of_parts),
        };
        let is_constant = !matches!(expr, Expr::Column(_)) && is_constant(expr, &of_parts);
        let most = match &value {
            Some(value) => within(&of, size_of_number(value)),
            None => most(expr, &of_parts, &of),
        };
        let fails = match is_constant {
            true => value.is_none(),
            false => {
                of_parts.iter().any(|part| part.fails) || fails(expr, &of_parts, most.is_none())
            }
        };
        let is_given = matches!(expr, Expr::Column(number) if *number >= EXTERNAL_BASE);
        Part { fails, of, most, value, is_given }
    }
}

impl Part {
    fn is_string(&self) -> bool {
        let kind = self.of.kind;
        (kind.is_text() || kind.is_bytes()) && !self.is_null()
    }

    fn is_null(&self) -> bool {
        matches!(self.value, Some(Value::Null))
    }

    /// A constant that is read as a moment once, as MySQL does it before it reads rows.
    fn is_text_of_moment(&self) -> bool {
        self.is_string()
            && match &self.value {
                Some(value) => {
                    let to = ColumnType::new(TypeKind::DateTime { fsp: 6 });
                    let arg = Box::new(Expr::Literal(value.clone()));
                    computed(&Expr::Cast { arg, to }).is_some_and(|value| !value.is_null())
                }
                None => self.is_given,
            }
    }
}

/// True if an expression is a constant by what its parts are.
fn is_constant(expr: &Scalar, parts: &[Part]) -> bool {
    let is_pure = match expr {
        Expr::Call { function, .. } => !function.is_volatile() && !function.is_variable(),
        _ => true,
    };
    is_pure && parts.iter().all(|part| part.value.is_some())
}

/// The value of a constant; none if computing it fails, or warns.
fn constant(expr: &Scalar, parts: &[Part]) -> Option<Value> {
    if matches!(expr, Expr::Column(_)) || !is_constant(expr, parts) {
        return None;
    }
    let mut values = parts.iter().filter_map(|part| part.value.clone());
    computed(&walk::map_children(expr, &mut |_| {
        Expr::Literal(values.next().unwrap_or(Value::Null))
    }))
}

fn computed(expr: &Scalar) -> Option<Value> {
    let mut context = EvalContext::within(true, CONSTANT_WORK);
    let value = lats_values::eval(expr, &Vec::<Value>::new(), &mut context).ok()?;
    context.warnings.is_empty().then_some(value)
}

/// The type of an expression by those of its parts.
fn type_above(expr: &Scalar, parts: &[Part]) -> ColumnType {
    let types: Vec<ColumnType> = parts.iter().map(|part| part.of.clone()).collect();
    let mut numbers = 0..;
    let flat = walk::map_children(expr, &mut |part| {
        let number = numbers.next().unwrap_or(0);
        if matches!(part, Expr::Literal(_)) { part.clone() } else { Expr::Column(number) }
    });
    lats_values::result_type(&flat, &types)
}

/// True if computing an expression may fail, when its parts have been computed.
fn fails(expr: &Scalar, parts: &[Part], may_not_fit: bool) -> bool {
    match (expr, parts) {
        (Expr::Literal(_) | Expr::Column(_) | Expr::IsNull { .. } | Expr::Collate { .. }, _) => {
            false
        }
        (Expr::Unary { op: UnaryOp::Not, .. }, [arg]) => arg.is_string(),
        (Expr::Unary { op: UnaryOp::Minus, .. }, _) => may_not_fit,
        (Expr::Binary { op, .. } | Expr::Compare { op, .. }, [left, right]) => {
            binary_fails(*op, left, right, may_not_fit)
        }
        (Expr::Between { .. }, [arg, low, high]) => compares(arg, low) || compares(arg, high),
        (Expr::In { .. }, [arg, list @ ..]) => list.iter().any(|item| compares(arg, item)),
        (Expr::Like { .. }, [arg, pattern]) => !arg.is_string() || !pattern.is_string(),
        (Expr::Case { operand: Some(_), .. }, [of, rest @ ..]) => {
            let mut pairs = rest.chunks_exact(2);
            pairs.any(|pair| pair.first().is_some_and(|when| compares(of, when)))
        }
        (Expr::Case { operand: None, .. }, all) => {
            all.chunks_exact(2).any(|pair| pair.first().is_some_and(Part::is_string))
        }
        (Expr::Cast { to, .. }, [arg]) => !arg.is_string() || !to.kind.is_text(),
        (Expr::Call { function, .. }, args) => !is_harmless(*function, args),
        _ => true,
    }
}

fn binary_fails(op: BinaryOp, left: &Part, right: &Part, may_not_fit: bool) -> bool {
    use BinaryOp as B;
    match op {
        B::And | B::Or | B::Xor => left.is_string() || right.is_string(),
        B::Add | B::Subtract | B::Multiply | B::Divide => may_not_fit,
        B::IntDivide | B::Modulo => true,
        _ if op.is_comparison() => compares(left, right),
        // Operators of bits.
        _ => ![left, right].into_iter().all(|side| side.of.kind.is_integer()),
    }
}

/// True if comparing two values may fail.
fn compares(a: &Part, b: &Part) -> bool {
    if a.is_null() || b.is_null() {
        return false;
    }
    let (of_a, of_b) = (a.of.kind, b.of.kind);
    let alike = (of_a.is_number() && of_b.is_number())
        || (a.is_string() && b.is_string())
        || (is_moment(of_a) && (is_moment(of_b) || b.is_text_of_moment()))
        || (is_moment(of_b) && a.is_text_of_moment())
        || matches!((of_a, of_b), (TypeKind::Time { .. }, TypeKind::Time { .. }));
    !alike
}

fn is_harmless(function: Function, args: &[Part]) -> bool {
    use Function as F;
    let of_moment = || args.iter().all(|arg| is_moment(arg.of.kind));
    match function {
        F::IfNull | F::Coalesce | F::IsNull => true,
        F::If => args.first().is_some_and(|condition| !condition.is_string()),
        F::Greatest | F::Least | F::NullIf => {
            args.iter().zip(args.iter().skip(1)).all(|(a, b)| !compares(a, b))
        }
        F::Length | F::CharLength | F::Lower | F::Upper | F::Left | F::Right | F::Substring => {
            let mut rest = args.iter().skip(1);
            args.first().is_some_and(Part::is_string)
                && rest.all(|number| number.of.kind.is_integer())
        }
        F::Trim | F::LTrim | F::RTrim => args.iter().all(Part::is_string),
        F::Date | F::Year | F::Quarter | F::Month | F::Day | F::Extract { .. } => of_moment(),
        F::Abs | F::Sign | F::Floor | F::Ceil => {
            args.first().is_some_and(|arg| arg.most.is_some_and(|most| most < BIGINT_MOST))
        }
        _ => false,
    }
}

/// How large a number may be at most, either way; none if it may not fit its type.
fn most(expr: &Scalar, parts: &[Part], of: &ColumnType) -> Option<f64> {
    use BinaryOp as B;
    let most = match (expr, parts) {
        (Expr::Unary { op: UnaryOp::Minus, .. }, [arg]) => arg.most?,
        (
            Expr::Binary { op: op @ (B::Add | B::Subtract | B::Multiply | B::Divide), .. },
            [left, right],
        ) => {
            let (a, b) = (left.most?, right.most?);
            match op {
                // Without a sign there is nothing below zero.
                B::Subtract if of.unsigned && of.kind.is_integer() => return None,
                B::Add | B::Subtract => a + b,
                B::Multiply => a * b,
                _ => a / divisor(right)?,
            }
        }
        _ => return of_type(of),
    };
    within(of, Some(most))
}

/// The same, if a number of this type may be so large.
fn within(of: &ColumnType, most: Option<f64>) -> Option<f64> {
    let limit = match of.kind {
        TypeKind::Decimal { .. } => DECIMAL_MOST,
        TypeKind::Double | TypeKind::Float => DOUBLE_MOST,
        kind if kind.is_integer() => BIGINT_MOST,
        _ => return None,
    };
    most.filter(|most| *most <= limit)
}

fn is_moment(kind: TypeKind) -> bool {
    matches!(kind, TypeKind::Date | TypeKind::DateTime { .. } | TypeKind::Timestamp { .. })
}

/// A constant by which it is safe to divide.
fn divisor(part: &Part) -> Option<f64> {
    part.value.as_ref().and_then(size_of_number).filter(|value| *value > 0.0)
}

/// How far an exact number is from zero.
fn size_of_number(value: &Value) -> Option<f64> {
    Some(match value {
        Value::Int(value) => value.unsigned_abs() as f64,
        Value::UInt(value) => *value as f64,
        Value::Decimal(value) => {
            let value = value.to_f64();
            if value < 0.0 { -value } else { value }
        }
        _ => return None,
    })
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
