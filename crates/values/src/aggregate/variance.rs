//! Variances and standard deviations, in one pass that keeps its precision (Welford's method).

use super::AggregateKind;
use crate::{EvalContext, SqlError, Value, expr::to_double};
use lats_base::planted::{QueryBug, errs};

/// How many values, their mean, and the sum of the squares of their distances from it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Variance {
    count: i64,
    mean: f64,
    squares: f64,
}

impl Variance {
    pub(super) fn add(&mut self, value: &Value, ctx: &mut EvalContext) -> Result<(), SqlError> {
        let number = to_double(value, ctx)?;
        self.count += 1;
        let distance = number - self.mean;
        self.mean += distance / self.count as f64;
        self.squares += distance * (number - self.mean);
        Ok(())
    }

    /// As if the values of both had been added to one.
    pub(super) fn merge(&mut self, other: Self) {
        if other.count == 0 {
            return;
        }
        let count = self.count + other.count;
        let distance = other.mean - self.mean;
        let share = other.count as f64 / count as f64;
        self.squares += other.squares + distance * distance * self.count as f64 * share;
        self.mean += distance * share;
        self.count = count;
    }

    /// NULL for no values, and of a sample for one value.
    ///
    /// # Errors
    /// 1690 where it is too large for a double.
    pub(super) fn finish(self, kind: AggregateKind) -> Result<Value, SqlError> {
        use AggregateKind::{StdPop, StdSamp, VarSamp};
        let degrees = self.count - i64::from(matches!(kind, StdSamp | VarSamp));
        if degrees == 0 && self.count == 1 && errs(QueryBug::SampleOfOne) {
            return Ok(Value::Double(0.0));
        }
        if degrees <= 0 {
            return Ok(Value::Null);
        }
        let variance = self.squares / degrees as f64;
        let root = matches!(kind, StdPop | StdSamp);
        if !variance.is_finite() {
            let name = kind.name().to_ascii_lowercase();
            return Err(SqlError::out_of_range_expr("DOUBLE", &name));
        }
        Ok(Value::Double(if root { libm::sqrt(variance) } else { variance }))
    }
}
