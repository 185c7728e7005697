//! SUM and AVG.

use super::result::exact_digits;
use crate::{ColumnType, Decimal, EvalContext, SqlError, Value, compare::Number, expr::to_number};

/// What has been added up so far, and of how many values.
#[derive(Clone, Debug)]
pub(super) struct Sum {
    count: i64,
    total: Total,
}

/// Exact for exact numbers.
#[derive(Clone, Debug)]
enum Total {
    Decimal(Decimal),
    Double(f64),
}

impl Total {
    fn add(&self, number: Number) -> Result<Self, SqlError> {
        let sum = match (self, number) {
            (Self::Decimal(sum), number @ (Number::Int(_) | Number::Decimal(_))) => {
                let exact = number.into_decimal().unwrap_or_else(Decimal::zero);
                let sum = sum.add(&exact);
                Self::Decimal(sum.map_err(|_| SqlError::out_of_range_expr("DECIMAL", "sum()"))?)
            }
            (Self::Decimal(sum), Number::Double(v)) => Self::Double(sum.to_f64() + v),
            (Self::Double(sum), number) => Self::Double(sum + number.to_f64()),
        };
        match &sum {
            Self::Double(v) if !v.is_finite() => {
                Err(SqlError::out_of_range_expr("DOUBLE", "sum()"))
            }
            _ => Ok(sum),
        }
    }
}

impl Sum {
    pub(super) fn new(input: Option<&ColumnType>) -> Self {
        let total = match input.and_then(exact_digits) {
            Some((_, scale)) => Total::Decimal(Decimal::new(0, scale)),
            None => Total::Double(0.0),
        };
        Self { count: 0, total }
    }

    pub(super) fn add(&mut self, value: &Value, ctx: &mut EvalContext) -> Result<(), SqlError> {
        self.total = self.total.add(to_number(value, ctx)?)?;
        self.count += 1;
        Ok(())
    }

    pub(super) fn merge(&mut self, other: &Self) -> Result<(), SqlError> {
        self.total = self.total.add(match &other.total {
            Total::Decimal(sum) => Number::Decimal(sum.clone()),
            Total::Double(sum) => Number::Double(*sum),
        })?;
        self.count += other.count;
        Ok(())
    }

    pub(super) fn total(self) -> Value {
        match self.total {
            _ if self.count == 0 => Value::Null,
            Total::Decimal(sum) => Value::Decimal(sum),
            Total::Double(sum) => Value::Double(sum),
        }
    }

    pub(super) fn average(self) -> Value {
        match self.total {
            _ if self.count == 0 => Value::Null,
            Total::Decimal(sum) => {
                sum.div(&Decimal::from(self.count)).map_or(Value::Null, Value::Decimal)
            }
            Total::Double(sum) => Value::Double(sum / self.count as f64),
        }
    }
}
