//! How a comparison compares: decided where the operands' types are known, and carried by the comparison, so that a data node need not
//! find it out again from what stands beside what.

use crate::compare::{Number, compare_in};
use crate::{Collation, ColumnType, Expr, SqlError, TypeKind, Value};
use alloc::{boxed::Box, vec::Vec};
use core::cmp::Ordering;
use serde::{Deserialize, Serialize};

/// How two values are compared. Its numbers travel: new ones come at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Comparator {
    /// As the types of the values say, and the operands' collations. Also for values of types that are not expected.
    ByValues,
    /// Byte by byte.
    Binary,
    /// Texts by the weights of a collation, whatever collations they have themselves.
    Text(Collation),
    /// Whole numbers.
    Integer,
    /// Exact numbers.
    Decimal,
    /// Numbers as doubles.
    Double,
    /// DATE, DATETIME and TIMESTAMP as moments.
    Moment,
    /// TIME.
    Time,
}

/// What is known of an operand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// A column of the table: its values have the column's type and collation.
    Column,
    /// A constant: its collation gives way to a column's.
    Constant,
    /// Any other: its values may have other types than it seems.
    Unknown,
}

impl Comparator {
    /// The order of two values that are not NULL; none if they are of other types than was expected.
    pub(super) fn order(self, a: &Value, b: &Value) -> Option<Result<Ordering, SqlError>> {
        let number = |v: &Value| match v {
            Value::Int(_) | Value::UInt(_) => Some(Comparator::Integer),
            Value::Decimal(_) => Some(Comparator::Decimal),
            Value::Float(_) | Value::Double(_) => Some(Comparator::Double),
            _ => None,
        };
        let numbers = |of: Comparator, rest: &[Comparator]| {
            let (x, y) = (number(a)?, number(b)?);
            let fits = |c: &Comparator| *c == of || rest.contains(c);
            (fits(&x) && fits(&y)).then(|| Number::of(a).cmp(&Number::of(b)))
        };
        let order = match (self, a, b) {
            (Self::Text(collation), Value::Text(x, _), Value::Text(y, _)) => {
                crate::collation::compare(collation, x, y)
            }
            (Self::Binary, Value::Bytes(x), Value::Bytes(y)) => x.cmp(y),
            (Self::Integer, ..) => numbers(self, &[])?,
            (Self::Decimal, ..) => numbers(self, &[Self::Integer])?,
            (Self::Double, ..) => numbers(self, &[Self::Integer, Self::Decimal])?,
            (
                Self::Moment,
                Value::Date(_) | Value::DateTime(_),
                Value::Date(_) | Value::DateTime(_),
            )
            | (Self::Time, Value::Time(_), Value::Time(_)) => {
                return Some(compare_in(a, b, Collation::Binary));
            }
            _ => return None,
        };
        Some(Ok(order))
    }

    /// For operands of these types.
    fn of((a, x): (Origin, &ColumnType), (b, y): (Origin, &ColumnType)) -> Self {
        use TypeKind as T;
        let is_number = |t: &ColumnType| t.kind.is_number() && t.kind != T::Year;
        let is_exact = |t: &ColumnType| matches!(t.kind, T::Decimal { .. });
        let is_moment =
            |t: &ColumnType| matches!(t.kind, T::Date | T::DateTime { .. } | T::Timestamp { .. });
        let both = |test: &dyn Fn(&ColumnType) -> bool| test(x) && test(y);
        if both(&|t| t.kind.is_text()) {
            return match (a, b) {
                (Origin::Column, Origin::Constant) => Self::Text(x.collation),
                (Origin::Constant, Origin::Column) => Self::Text(y.collation),
                (Origin::Column, Origin::Column) if x.collation == y.collation => {
                    Self::Text(x.collation)
                }
                _ => Self::ByValues,
            };
        }
        match () {
            () if both(&is_number) && (x.kind.is_real() || y.kind.is_real()) => Self::Double,
            () if both(&is_number) && (is_exact(x) || is_exact(y)) => Self::Decimal,
            () if both(&is_number) => Self::Integer,
            () if both(&|t| t.kind.is_bytes()) => Self::Binary,
            () if both(&is_moment) => Self::Moment,
            () if both(&|t| matches!(t.kind, T::Time { .. })) => Self::Time,
            () => Self::ByValues,
        }
    }
}

/// Names how the comparisons of a condition over a table's columns compare. What stands for values from outside has numbers behind the
/// columns: of those, `constant` tells constants, whose types are not known before they come.
pub fn name_comparators(expr: &mut Expr, columns: &[ColumnType], constant: &dyn Fn(u32) -> bool) {
    let mut left = Vec::from([expr]);
    while let Some(expr) = left.pop() {
        if let Expr::Binary { op, left: a, right: b } = expr
            && op.is_comparison()
        {
            let by = between(a, b, columns, constant);
            let op = *op;
            if by != Comparator::ByValues {
                let taken =
                    |e: &mut Box<Expr>| core::mem::replace(e, Box::new(Expr::Literal(Value::Null)));
                let (a, b) = (taken(a), taken(b));
                *expr = Expr::Compare { op, by, left: a, right: b };
            }
        }
        // A list of constants has no comparisons in it, and stays sorted if it is.
        left.extend(match expr {
            Expr::In { arg, .. } => Vec::from([&mut **arg]),
            other => other.children_mut(),
        });
    }
}

fn between(
    a: &Expr,
    b: &Expr,
    columns: &[ColumnType],
    constant: &dyn Fn(u32) -> bool,
) -> Comparator {
    let of = |expr: &Expr| match expr {
        Expr::Column(number) => match columns.get(*number as usize) {
            Some(column) => (Origin::Column, Some(column.clone())),
            None if constant(*number) => (Origin::Constant, None),
            None => (Origin::Unknown, None),
        },
        Expr::Literal(Value::Null) => (Origin::Unknown, None),
        Expr::Literal(_) => (Origin::Constant, Some(super::result_type(expr, columns))),
        _ => (Origin::Unknown, None),
    };
    match (of(a), of(b)) {
        ((x, Some(left)), (y, Some(right))) => Comparator::of((x, &left), (y, &right)),
        // A constant whose type is not known: it is compared as a text only if it is one.
        ((Origin::Column, Some(column)), (Origin::Constant, None))
        | ((Origin::Constant, None), (Origin::Column, Some(column)))
            if column.kind.is_text() =>
        {
            Comparator::Text(column.collation)
        }
        _ => Comparator::ByValues,
    }
}
