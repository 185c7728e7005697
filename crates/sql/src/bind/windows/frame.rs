//! Frames of windows.

use crate::bind::Binder;
use crate::error;
use lats_base::planted::{QueryBug, errs};
use lats_engine::ir::{Bound, Frame, Scalar, SortKey};
use lats_mysql_syntax::Keyword as K;
use lats_mysql_syntax::tree;
use lats_values::{BinaryOp, ColumnType, Expr, Function, SqlError, TypeKind, Value};

/// How a window without a name is called in messages.
pub(super) const UNNAMED: &str = "<unnamed window>";

/// What a bound is bound with.
struct Around<'a> {
    order: &'a [SortKey],
    name: &'a str,
    is_range: bool,
}

impl Around<'_> {
    fn error(&self, number: u16, what: &str) -> SqlError {
        error::make(number, "HY000", &format!("Window '{}'{what}", self.name))
    }

    fn illegal(&self) -> SqlError {
        self.error(3586, ": frame start or end is negative, NULL or of non-integral type")
    }
}

impl Binder<'_> {
    /// The frame; without one, all up to the row's peers, or the whole part without an order.
    pub(super) fn frame(
        &mut self,
        frame: Option<&tree::Frame>,
        order: &[SortKey],
        name: Option<&str>,
    ) -> Result<Frame, SqlError> {
        let Some(frame) = frame else {
            let is_whole = order.is_empty() || errs(QueryBug::WindowFrameOfWholePart);
            let end = if is_whole { Bound::Unbounded } else { Bound::CurrentRow };
            return Ok(Frame { is_range: true, start: Bound::Unbounded, end });
        };
        let is_range = frame.is_range;
        let around = Around { order, name: name.unwrap_or(UNNAMED), is_range };
        check_bounds(frame, &around)?;
        let start = self.bound(&frame.start, &around)?;
        let end = match &frame.end {
            Some(end) => self.bound(end, &around)?,
            None => Bound::CurrentRow,
        };
        Ok(Frame { is_range, start, end })
    }

    fn bound(&mut self, bound: &tree::Bound, around: &Around<'_>) -> Result<Bound, SqlError> {
        let (id, unit, is_before) = match *bound {
            tree::Bound::CurrentRow => return Ok(Bound::CurrentRow),
            tree::Bound::UnboundedPreceding | tree::Bound::UnboundedFollowing => {
                return Ok(Bound::Unbounded);
            }
            tree::Bound::Preceding { value, unit } => (value, unit, true),
            tree::Bound::Following { value, unit } => (value, unit, false),
        };
        let distance = self.bind(id)?;
        if !crate::expr::is_constant(&distance) {
            return Err(around.error(3590, " has a non-constant frame bound."));
        }
        if let Expr::Literal(value) = &distance
            && (value.is_null() || (unit == K::None && !is_distance(value, around.is_range)))
        {
            return Err(around.illegal());
        }
        if around.is_range {
            return self.range_bound(distance, unit, is_before, around);
        }
        if unit != K::None {
            return Err(around.error(3596, ": INTERVAL can only be used with RANGE frames."));
        }
        Ok(if is_before { Bound::Preceding(distance) } else { Bound::Following(distance) })
    }

    /// As far as the value of the only key of the order, less or more by the distance.
    fn range_bound(
        &self,
        distance: Scalar,
        unit: K,
        is_before: bool,
        around: &Around<'_>,
    ) -> Result<Bound, SqlError> {
        let key = match around.order {
            [key] => Some((key, self.type_of(&key.value))),
            _ => None,
        };
        let fits = |of: &ColumnType| of.kind.is_number() || is_moment(of.kind);
        let Some((key, of)) = key.filter(|(_, of)| fits(of)) else {
            let what = " with RANGE N PRECEDING/FOLLOWING frame requires exactly one deterministic ORDER BY expression, of numeric or temporal type";
            return Err(around.error(3587, what));
        };
        // In descending order, what comes before is larger.
        let subtracts = is_before != key.descending;
        let limit = match (is_moment(of.kind), unit) {
            (true, K::None) => {
                let what = " with RANGE frame has ORDER BY expression of datetime type. Only INTERVAL bound value allowed.";
                return Err(around.error(3588, what));
            }
            (false, K::None) => shifted_number(key.value.clone(), &of, distance.clone(), subtracts),
            (true, unit) => {
                let unit = super::super::special::interval_unit(unit)?;
                let function = match subtracts {
                    true => Function::DateSub { unit },
                    false => Function::DateAdd { unit },
                };
                Expr::Call { function, args: vec![key.value.clone(), distance.clone()] }
            }
            (false, _) => {
                let what = " with RANGE frame has ORDER BY expression of numeric type, INTERVAL bound value not allowed.";
                return Err(around.error(3589, what));
            }
        };
        Ok(Bound::Value { distance, limit })
    }
}

/// Combinations that name no rows.
fn check_bounds(frame: &tree::Frame, around: &Around<'_>) -> Result<(), SqlError> {
    use tree::Bound as B;
    if matches!(frame.start, B::UnboundedFollowing) {
        return Err(around.error(3584, ": frame start cannot be UNBOUNDED FOLLOWING."));
    }
    if matches!(frame.end, Some(B::UnboundedPreceding)) {
        return Err(around.error(3585, ": frame end cannot be UNBOUNDED PRECEDING."));
    }
    let end = frame.end.unwrap_or(B::CurrentRow);
    let is_wrong = matches!(
        (&frame.start, &end),
        (B::Following { .. }, B::CurrentRow | B::Preceding { .. })
            | (B::CurrentRow, B::Preceding { .. })
    );
    if is_wrong { Err(around.illegal()) } else { Ok(()) }
}

/// Whether a constant may be a distance: rows are counted by whole numbers, values by any.
fn is_distance(value: &Value, is_range: bool) -> bool {
    match value {
        Value::Int(number) => *number >= 0,
        Value::UInt(_) => true,
        other if is_range => {
            let order = lats_values::sort_order(other, &Value::Int(0));
            !other.is_string() && order.is_ge()
        }
        _ => false,
    }
}

fn is_moment(kind: TypeKind) -> bool {
    kind.is_temporal() && kind != TypeKind::Year
}

/// A number less or more by a distance. As in MySQL, what is out of the range of the type is an error.
fn shifted_number(value: Scalar, of: &ColumnType, distance: Scalar, subtracts: bool) -> Scalar {
    let value = match of.kind {
        TypeKind::Year => {
            let to = ColumnType::new(TypeKind::BigInt);
            Expr::Cast { arg: Box::new(value), to }
        }
        _ => value,
    };
    let op = if subtracts { BinaryOp::Subtract } else { BinaryOp::Add };
    Expr::Binary { op, left: Box::new(value), right: Box::new(distance) }
}
