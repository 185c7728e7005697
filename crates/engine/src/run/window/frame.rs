//! Functions over the frame of a row.

use super::{Keyed, argument};
use crate::ir::{Bound, WindowFunction as W};
use crate::physical::{OrderKey, WindowCall};
use crate::run::memory::Held;
use crate::run::sort::compare;
use crate::run::{Params, Run};
use alloc::format;
use alloc::{sync::Arc, vec::Vec};
use core::cmp::Ordering;
use lats_base::planted::{QueryBug, errs};
use lats_values::{Accumulator, Expr, SqlError, Value, sort_order};

/// What an aggregate function has taken of a part: the rows from one on up to another one.
pub(super) struct SoFar {
    accumulator: Accumulator,
    from: usize,
    to: usize,
    held: Held,
}

impl SoFar {
    /// Releases what one holds, if there is one.
    pub(super) fn free(this: Option<Self>, run: &mut Run<'_>) {
        if let Some(mut this) = this {
            this.held.free(run);
        }
    }
}

/// A part, the peers of the row, and the row.
type Place<'k> = (&'k [Keyed], (usize, usize), usize);

/// The value of a function over the rows of the frame; none if it takes longer, and is to be asked for again.
pub(super) fn value(
    run: &mut Run<'_>,
    call: &WindowCall,
    keys: &[OrderKey],
    (part, peers, at): Place<'_>,
    params: &Params,
    so_far: &mut Option<SoFar>,
) -> Result<Option<Value>, SqlError> {
    let frame = frame(run, call, keys, (part, peers, at), params)?;
    let rows = frame.map_or(&[][..], |(from, to)| &part[from..=to]);
    let of = |run: &mut Run<'_>, keyed: Option<&Keyed>| match keyed {
        Some(keyed) => Ok(argument(run, call, 0, &keyed.row, params)?.unwrap_or(Value::Null)),
        None => Ok(Value::Null),
    };
    let value = match &call.function {
        W::FirstValue => of(run, rows.first()),
        W::LastValue => of(run, rows.last()),
        W::NthValue => {
            let nth = match argument(run, call, 1, &part[at].row, params)? {
                Some(Value::Int(n)) if n > 0 => n.unsigned_abs() as usize,
                Some(Value::UInt(n)) if n > 0 => usize::try_from(n).unwrap_or(usize::MAX),
                _ => return Err(wrong_arguments("nth_value")),
            };
            of(run, rows.get(nth - 1))
        }
        W::Aggregate(spec) => {
            let (from, to) = frame.map_or((0, 0), |(from, to)| (from, to + 1));
            // A frame that only grows goes on where the row before has ended.
            let mut known = match so_far.take() {
                Some(known)
                    if (known.from == from || errs(QueryBug::FrameForgetsToShrink))
                        && known.to <= to =>
                {
                    known
                }
                other => {
                    SoFar::free(other, run);
                    let accumulator = Accumulator::of(Arc::clone(spec));
                    SoFar { accumulator, from, to: from, held: Held::default() }
                }
            };
            for keyed in part.get(known.to..to).unwrap_or_default() {
                let mut values = Vec::with_capacity(call.args.len());
                for (expr, _) in &call.args {
                    values.push(run.eval(expr, &keyed.row, params)?);
                }
                let before = known.accumulator.bytes();
                known.accumulator.push(&values, &mut run.context)?;
                known.held.grow(run, known.accumulator.bytes().saturating_sub(before))?;
                known.to += 1;
                if run.spend(1) && known.to < to {
                    *so_far = Some(known);
                    return Ok(None);
                }
            }
            known.to = known.to.max(to);
            let value = known.accumulator.clone().finish_with(&mut run.context);
            *so_far = Some(known);
            value
        }
        _ => Ok(Value::Null),
    };
    value.map(Some)
}

/// The first and the last row of the frame; none if it is empty.
fn frame(
    run: &mut Run<'_>,
    call: &WindowCall,
    keys: &[OrderKey],
    place: Place<'_>,
    params: &Params,
) -> Result<Option<(usize, usize)>, SqlError> {
    let (part, (first_peer, last_peer), at) = place;
    let is_range = call.frame.is_range;
    // Rows before `from` and those from `end` on are outside.
    let from = match &call.frame.start {
        Bound::Unbounded => 0,
        Bound::CurrentRow if is_range => first_peer,
        Bound::CurrentRow => at,
        Bound::Preceding(by) => at.saturating_sub(rows(run, by, part, at, params)?),
        Bound::Following(by) => at.saturating_add(rows(run, by, part, at, params)?),
        Bound::Value { distance, limit } => {
            match value_limit(run, (distance, limit), place, params)? {
                None if errs(QueryBug::NullRangeOfAll) => 0,
                None => first_peer,
                Some(limit) => part
                    .partition_point(|row| order_with(keys, &row.order, &limit) == Ordering::Less),
            }
        }
    };
    let end = match &call.frame.end {
        Bound::Unbounded => part.len(),
        Bound::CurrentRow if is_range && !errs(QueryBug::RangeEndsAtRow) => last_peer + 1,
        Bound::CurrentRow => at + 1,
        Bound::Preceding(by) => (at + 1).saturating_sub(rows(run, by, part, at, params)?),
        Bound::Following(by) => (at + 1).saturating_add(rows(run, by, part, at, params)?),
        Bound::Value { distance, limit } => {
            match value_limit(run, (distance, limit), place, params)? {
                None => last_peer + 1,
                Some(limit) => part.partition_point(|row| {
                    order_with(keys, &row.order, &limit) != Ordering::Greater
                }),
            }
        }
    };
    let least = usize::from(from == 0 && errs(QueryBug::FrameIsNeverEmpty));
    let end = end.max(least).min(part.len());
    Ok(end.checked_sub(1).filter(|_| from < end).map(|last| (from, last)))
}

/// A distance in rows.
fn rows(
    run: &mut Run<'_>,
    by: &Expr,
    part: &[Keyed],
    at: usize,
    params: &Params,
) -> Result<usize, SqlError> {
    match run.eval(by, &part[at].row, params)? {
        Value::Int(n) if n >= 0 => Ok(usize::try_from(n).unwrap_or(usize::MAX)),
        Value::UInt(n) => Ok(usize::try_from(n).unwrap_or(usize::MAX)),
        _ => Err(wrong_frame()),
    }
}

/// Up to which value the frame goes; none if the row's own value is NULL.
fn value_limit(
    run: &mut Run<'_>,
    (distance, limit): (&Expr, &Expr),
    (part, _, at): Place<'_>,
    params: &Params,
) -> Result<Option<Value>, SqlError> {
    let row = &part[at];
    let distance = run.eval(distance, &row.row, params)?;
    if distance.is_null() || is_negative(&distance) {
        return Err(wrong_frame());
    }
    if row.order.first().is_none_or(Value::is_null) {
        return Ok(None);
    }
    Ok(Some(run.eval(limit, &row.row, params)?).filter(|limit| !limit.is_null()))
}

/// Numbers below zero, and texts such as `-1:30`, which spans of time may be.
fn is_negative(distance: &Value) -> bool {
    match distance {
        Value::Text(text, _) => text.trim_start().starts_with('-'),
        other => sort_order(other, &Value::Int(0)) == Ordering::Less,
    }
}

/// Where a row is, compared with a value of the order's only key.
fn order_with(keys: &[OrderKey], order: &[Value], limit: &Value) -> Ordering {
    compare(keys, order, core::slice::from_ref(limit))
}

/// 1210.
pub(super) fn wrong_arguments(function: &str) -> SqlError {
    SqlError::new(1210, *b"HY000", format!("Incorrect arguments to {function}"))
}

fn wrong_frame() -> SqlError {
    let text =
        "Window '<unnamed window>': frame start or end is negative, NULL or of non-integral type";
    SqlError::new(3586, *b"HY000", text.into())
}
