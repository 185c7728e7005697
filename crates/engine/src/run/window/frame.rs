//! Functions over the frame of a row.

use super::{Keyed, argument};
use crate::ir::{Bound, WindowFunction as W};
use crate::physical::WindowCall;
use crate::run::memory::Held;
use crate::run::{Params, Run};
use alloc::format;
use alloc::{sync::Arc, vec::Vec};
use lats_values::{Accumulator, SqlError, Value};

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
    (part, peers, at): Place<'_>,
    params: &Params,
    so_far: &mut Option<SoFar>,
) -> Result<Option<Value>, SqlError> {
    let frame = frame(run, call, (part, peers, at), params)?;
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
                Some(known) if known.from == from && known.to <= to => known,
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
    (part, (first_peer, last_peer), at): Place<'_>,
    params: &Params,
) -> Result<Option<(usize, usize)>, SqlError> {
    let mut distance = |bound: &Bound| match bound {
        Bound::Preceding(expr) | Bound::Following(expr) => {
            match run.eval(expr, &part[at].row, params)? {
                Value::Int(n) if n >= 0 => Ok(n),
                Value::UInt(n) => Ok(i64::try_from(n).unwrap_or(i64::MAX)),
                _ => Err(wrong_frame()),
            }
        }
        Bound::Unbounded | Bound::CurrentRow => Ok(0),
    };
    let (before, behind) = (distance(&call.frame.start)?, distance(&call.frame.end)?);
    let here = i64::try_from(at).unwrap_or(i64::MAX);
    let is_range = call.frame.is_range;
    let place = |row: usize| i64::try_from(row).unwrap_or(i64::MAX);
    let from = match call.frame.start {
        Bound::Unbounded => 0,
        Bound::CurrentRow if is_range => place(first_peer),
        Bound::CurrentRow => here,
        Bound::Preceding(_) => here.saturating_sub(before),
        Bound::Following(_) => here.saturating_add(before),
    };
    let to = match call.frame.end {
        Bound::Unbounded => place(part.len()) - 1,
        Bound::CurrentRow if is_range => place(last_peer),
        Bound::CurrentRow => here,
        Bound::Preceding(_) => here.saturating_sub(behind),
        Bound::Following(_) => here.saturating_add(behind),
    };
    let (from, to) = (from.max(0), to.min(place(part.len()) - 1));
    if from > to {
        return Ok(None);
    }
    Ok(usize::try_from(from).ok().zip(usize::try_from(to).ok()))
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
