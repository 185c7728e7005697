//! Aggregate functions: what one computes ([`AggregateSpec`]) and one group's state ([`Accumulator`]).
//!
//! An executor makes one spec for each aggregate of a statement and one accumulator for each group:
//! [`Accumulator::push`] for each row, [`Accumulator::finish_with`] at the end. States of the same
//! group that were filled from different rows are united by [`Accumulator::merge`]; GROUP_CONCAT
//! without ORDER BY then has the rows of the first state before those of the second.

mod bits;
mod concat;
mod distinct;
mod kinds;
mod result;
mod sum;
#[cfg(test)]
mod tests;
mod variance;

pub use kinds::AggregateKind;
pub use result::result_type;

use crate::{ColumnType, EvalContext, SqlError, Value, compare::sort_order, error::push_warning};
use alloc::{string::String, sync::Arc, vec::Vec};
use bits::Bits;
use concat::Concat;
use distinct::Distinct;
use lats_base::planted::{QueryBug, errs};
use sum::Sum;
use variance::Variance;

/// MySQL's default of `group_concat_max_len`, in bytes.
pub const GROUP_CONCAT_BYTES_MAX: usize = 1_024;

/// What an aggregate computes, of values of which types.
#[derive(Clone, Debug, PartialEq)]
pub struct AggregateSpec {
    /// Which function.
    pub kind: AggregateKind,
    /// With DISTINCT.
    pub distinct: bool,
    /// The types of its arguments; none for `COUNT(*)`.
    pub args: Vec<ColumnType>,
    /// ORDER BY of GROUP_CONCAT: places in what is pushed, and whether the order descends there.
    /// A place behind the arguments is an expression that only orders.
    pub order: Vec<(usize, bool)>,
    /// SEPARATOR of GROUP_CONCAT.
    pub separator: String,
    /// Bytes that GROUP_CONCAT gives at most.
    pub max_bytes: usize,
}

impl AggregateSpec {
    /// Without DISTINCT and ORDER BY, with MySQL's default separator and length.
    pub fn new(kind: AggregateKind, args: Vec<ColumnType>) -> Self {
        Self {
            kind,
            distinct: false,
            args,
            order: Vec::new(),
            separator: String::from(","),
            max_bytes: GROUP_CONCAT_BYTES_MAX,
        }
    }

    /// The same with DISTINCT.
    #[must_use]
    pub fn distinct(self) -> Self {
        Self { distinct: true, ..self }
    }

    /// The type of its result.
    pub fn result_type(&self) -> ColumnType {
        result::of_spec(self)
    }

    /// Whether values that were seen already must be told apart: MIN, MAX and the like give the
    /// same with DISTINCT and without.
    fn remembers(&self) -> bool {
        use AggregateKind::*;
        let adds = matches!(self.kind, Sum | Avg) && errs(QueryBug::SumForgetsDistinct);
        self.distinct && !adds && matches!(self.kind, Count | Sum | Avg | GroupConcat)
    }
}

/// One aggregate of one group.
#[derive(Clone, Debug)]
pub struct Accumulator {
    spec: Arc<AggregateSpec>,
    seen: Option<Distinct>,
    state: State,
    /// Warnings of [`Self::add`], which has no context to leave them in.
    pub warnings: Vec<SqlError>,
}

/// What the values so far come to.
#[derive(Clone, Debug)]
enum State {
    /// COUNT.
    Count(i64),
    /// SUM and AVG.
    Sum(Sum),
    /// MIN, MAX and ANY_VALUE; nothing yet is `None`.
    Chosen(Option<Value>),
    /// The deviations and variances.
    Variance(Variance),
    /// BIT_AND, BIT_OR and BIT_XOR.
    Bits(Bits),
    /// GROUP_CONCAT.
    Concat(Concat),
}

impl Accumulator {
    /// Nothing added yet, for an aggregate of one argument.
    pub fn new(kind: AggregateKind, distinct: bool, input: &ColumnType) -> Self {
        let spec = AggregateSpec::new(kind, Vec::from([input.clone()]));
        Self::of(Arc::new(AggregateSpec { distinct, ..spec }))
    }

    /// Nothing added yet.
    pub fn of(spec: Arc<AggregateSpec>) -> Self {
        use AggregateKind::*;
        let input = spec.args.first();
        let state = match spec.kind {
            CountStar | Count => State::Count(0),
            Sum | Avg => State::Sum(sum::Sum::new(input)),
            Min | Max | AnyValue => State::Chosen(None),
            StdPop | StdSamp | VarPop | VarSamp => State::Variance(Variance::default()),
            BitAnd | BitOr | BitXor => State::Bits(Bits::new(spec.kind, input)),
            GroupConcat => State::Concat(Concat::default()),
        };
        let seen = spec.remembers().then(Distinct::default);
        Self { spec, seen, state, warnings: Vec::new() }
    }

    /// Adds a row: the values of the arguments, then those of expressions that only order.
    ///
    /// # Errors
    /// Overflow, and in strict mode what would be a warning.
    pub fn push(&mut self, values: &[Value], ctx: &mut EvalContext) -> Result<(), SqlError> {
        let kind = self.spec.kind;
        let args = values.get(..self.spec.args.len()).unwrap_or(values);
        let counts_nulls = matches!(kind, AggregateKind::CountStar | AggregateKind::AnyValue);
        let counts_nulls = counts_nulls
            || (kind == AggregateKind::Count
                && args.len() == 1
                && errs(QueryBug::CountCountsNulls));
        let looked_at = match errs(QueryBug::CountLooksAtFirst) {
            true => args.get(..1).unwrap_or_default(),
            false => args,
        };
        if !counts_nulls && looked_at.iter().any(Value::is_null) {
            return Ok(());
        }
        if let Some(seen) = &mut self.seen
            && !seen.insert(args, matches!(self.state, State::Sum(_)))
        {
            return Ok(());
        }
        let first = args.first().unwrap_or(&Value::Null);
        match &mut self.state {
            State::Count(count) => *count += 1,
            State::Sum(sum) => sum.add(first, ctx)?,
            State::Chosen(chosen) => choose(kind, chosen, first),
            State::Variance(variance) => variance.add(first, ctx)?,
            State::Bits(bits) => bits.add(first, ctx)?,
            State::Concat(concat) => concat.add(args, values, &self.spec),
        }
        Ok(())
    }

    /// Adds a value of an aggregate of one argument; warnings stay in [`Self::warnings`].
    ///
    /// # Errors
    /// Overflow.
    pub fn add(&mut self, value: &Value) -> Result<(), SqlError> {
        let mut ctx = EvalContext::new(false);
        self.push(core::slice::from_ref(value), &mut ctx)?;
        for warning in ctx.warnings {
            push_warning(&mut self.warnings, warning);
        }
        Ok(())
    }

    /// Adds what another accumulator of the same spec has taken, as if its rows came after these.
    ///
    /// # Errors
    /// Overflow, as in [`Self::push`].
    pub fn merge(&mut self, other: Self, ctx: &mut EvalContext) -> Result<(), SqlError> {
        for warning in other.warnings {
            push_warning(&mut self.warnings, warning);
        }
        if let (Some(seen), Some(more)) = (&mut self.seen, other.seen) {
            return merge_distinct(&self.spec, &mut self.state, seen, (more, other.state), ctx);
        }
        match (&mut self.state, other.state) {
            (State::Count(count), State::Count(more)) => *count += more,
            (State::Sum(sum), State::Sum(more)) => sum.merge(&more)?,
            (State::Chosen(chosen), State::Chosen(Some(value))) => {
                choose(self.spec.kind, chosen, &value);
            }
            (State::Variance(variance), State::Variance(more)) => variance.merge(more),
            (State::Bits(bits), State::Bits(more)) => bits.merge(&more)?,
            (State::Concat(concat), State::Concat(more)) => concat.merge(more, &self.spec),
            _ => {}
        }
        Ok(())
    }

    /// The memory that it takes, in bytes: its own and that of what it holds.
    pub fn bytes(&self) -> usize {
        let held = match &self.state {
            State::Chosen(Some(Value::Text(text, _))) => text.len(),
            State::Chosen(Some(Value::Bytes(bytes))) => bytes.len(),
            State::Concat(concat) => concat.bytes(),
            _ => 0,
        };
        size_of::<Self>() + held + self.seen.as_ref().map_or(0, Distinct::bytes)
    }

    /// The result: NULL for no values, except that counts are 0 and bits are neutral.
    pub fn finish(self) -> Value {
        self.finish_with(&mut EvalContext::new(false)).unwrap_or(Value::Null)
    }

    /// The same; a GROUP_CONCAT that was cut leaves warning 1260.
    ///
    /// # Errors
    /// In strict mode what would be a warning.
    pub fn finish_with(self, ctx: &mut EvalContext) -> Result<Value, SqlError> {
        Ok(match self.state {
            State::Count(count) => Value::Int(count),
            State::Sum(sum) if self.spec.kind == AggregateKind::Avg => sum.average(),
            State::Sum(sum) => sum.total(),
            State::Chosen(chosen) => chosen.unwrap_or(Value::Null),
            State::Variance(variance) => variance.finish(self.spec.kind)?,
            State::Bits(bits) => bits.finish(),
            State::Concat(concat) => concat.finish(&self.spec, ctx)?,
        })
    }
}

/// Keeps the value if it is the first one, or further out.
fn choose(kind: AggregateKind, chosen: &mut Option<Value>, value: &Value) {
    let better = match (&chosen, kind) {
        (None, _) => true,
        (Some(_), AggregateKind::AnyValue) => false,
        (Some(best), AggregateKind::Max) => sort_order(value, best).is_gt(),
        (Some(best), _) => sort_order(value, best).is_lt(),
    };
    if better {
        *chosen = Some(value.clone());
    }
}

/// Adds only what was not seen here.
fn merge_distinct(
    spec: &AggregateSpec,
    state: &mut State,
    seen: &mut Distinct,
    (more, other): (Distinct, State),
    ctx: &mut EvalContext,
) -> Result<(), SqlError> {
    if let (State::Concat(concat), State::Concat(other)) = (&mut *state, other) {
        concat.merge_new(other, spec, |key| seen.insert_key(key.into()));
        return Ok(());
    }
    for (key, value) in more.into_values() {
        if !seen.insert_keyed(key, value.clone()) {
            continue;
        }
        match state {
            State::Count(count) => *count += 1,
            State::Sum(sum) => sum.add(&value, ctx)?,
            _ => {}
        }
    }
    Ok(())
}
