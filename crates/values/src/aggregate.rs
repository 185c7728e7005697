//! COUNT, SUM, MIN, MAX and AVG.

#[cfg(test)]
mod tests;

use crate::{
    ColumnType, Decimal, EvalContext, SqlError, TypeKind, Value,
    compare::{Number, group_key, sort_order},
    expr::to_number,
};
use alloc::{collections::BTreeSet, vec::Vec};

/// An aggregate function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AggregateKind {
    /// `COUNT(*)`.
    CountStar,
    /// `COUNT(x)`.
    Count,
    /// `SUM(x)`.
    Sum,
    /// `MIN(x)`.
    Min,
    /// `MAX(x)`.
    Max,
    /// `AVG(x)`.
    Avg,
}

/// The type of an aggregate over values of type `input`.
pub fn result_type(kind: AggregateKind, input: &ColumnType) -> ColumnType {
    match kind {
        AggregateKind::CountStar | AggregateKind::Count => {
            ColumnType::new(TypeKind::BigInt).not_null()
        }
        AggregateKind::Min | AggregateKind::Max => ColumnType { nullable: true, ..input.clone() },
        AggregateKind::Sum | AggregateKind::Avg => {
            let average = kind == AggregateKind::Avg;
            let Some((whole, scale)) = exact_digits(input) else {
                return ColumnType::new(TypeKind::Double);
            };
            let (whole, scale) = if average { (whole, scale + 4) } else { (whole + 22, scale) };
            let scale = scale.min(30);
            let precision = (whole + scale).min(65);
            ColumnType::new(TypeKind::Decimal { precision, scale })
        }
    }
}

/// Digits before and behind the point of an exact type.
fn exact_digits(input: &ColumnType) -> Option<(u8, u8)> {
    Some(match input.kind {
        TypeKind::TinyInt => (3, 0),
        TypeKind::SmallInt => (5, 0),
        TypeKind::MediumInt => (8, 0),
        TypeKind::Int => (10, 0),
        TypeKind::BigInt => (if input.unsigned { 20 } else { 19 }, 0),
        TypeKind::Year => (4, 0),
        TypeKind::Decimal { precision, scale } => (precision.saturating_sub(scale), scale),
        TypeKind::Date => (8, 0),
        TypeKind::Time { fsp } => (7, fsp),
        TypeKind::DateTime { fsp } | TypeKind::Timestamp { fsp } => (14, fsp),
        _ => return None,
    })
}

/// What has been added up so far.
#[derive(Clone, Debug)]
enum Total {
    Decimal(Decimal),
    Double(f64),
}

/// One aggregate of one group.
#[derive(Clone, Debug)]
pub struct Accumulator {
    kind: AggregateKind,
    /// Keys of the values seen, for DISTINCT.
    seen: Option<BTreeSet<Vec<u8>>>,
    count: i64,
    total: Total,
    extreme: Value,
    /// Warnings that text other than numbers left.
    pub warnings: Vec<SqlError>,
}

impl Accumulator {
    /// Nothing added yet.
    pub fn new(kind: AggregateKind, distinct: bool, input: &ColumnType) -> Self {
        let exact = exact_digits(input);
        let total = match exact {
            Some((_, scale)) => Total::Decimal(Decimal::new(0, scale)),
            None => Total::Double(0.0),
        };
        Self {
            kind,
            seen: distinct.then(BTreeSet::new),
            count: 0,
            total,
            extreme: Value::Null,
            warnings: Vec::new(),
        }
    }

    /// Adds a value; NULLs count only for `COUNT(*)`.
    pub fn add(&mut self, value: &Value) -> Result<(), SqlError> {
        if self.kind == AggregateKind::CountStar {
            self.count += 1;
            return Ok(());
        }
        if value.is_null() || !self.is_new(value) {
            return Ok(());
        }
        self.count += 1;
        match self.kind {
            AggregateKind::Sum | AggregateKind::Avg => self.add_number(value),
            AggregateKind::Min | AggregateKind::Max => {
                self.keep_extreme(value);
                Ok(())
            }
            AggregateKind::Count | AggregateKind::CountStar => Ok(()),
        }
    }

    fn is_new(&mut self, value: &Value) -> bool {
        let Some(seen) = &mut self.seen else { return true };
        let mut key = Vec::new();
        group_key(core::slice::from_ref(value), &mut key);
        seen.insert(key)
    }

    fn add_number(&mut self, value: &Value) -> Result<(), SqlError> {
        let mut ctx = EvalContext::new(false);
        let number = to_number(value, &mut ctx)?;
        for warning in ctx.warnings {
            crate::error::push_warning(&mut self.warnings, warning);
        }
        self.total = match (&self.total, number) {
            (Total::Decimal(sum), number @ (Number::Int(_) | Number::Decimal(_))) => {
                let exact = number.into_decimal().unwrap_or_else(Decimal::zero);
                let sum = sum.add(&exact);
                Total::Decimal(sum.map_err(|_| SqlError::out_of_range_expr("DECIMAL", "sum()"))?)
            }
            (Total::Decimal(sum), Number::Double(v)) => Total::Double(sum.to_f64() + v),
            (Total::Double(sum), number) => Total::Double(sum + number.to_f64()),
        };
        match &self.total {
            Total::Double(sum) if !sum.is_finite() => {
                Err(SqlError::out_of_range_expr("DOUBLE", "sum()"))
            }
            _ => Ok(()),
        }
    }

    fn keep_extreme(&mut self, value: &Value) {
        let order = sort_order(value, &self.extreme);
        let wanted = self.kind == AggregateKind::Max;
        if self.extreme.is_null() || (if wanted { order.is_gt() } else { order.is_lt() }) {
            self.extreme = value.clone();
        }
    }

    /// The result: NULL for no values, except that counts are 0.
    pub fn finish(self) -> Value {
        match self.kind {
            AggregateKind::CountStar | AggregateKind::Count => Value::Int(self.count),
            AggregateKind::Min | AggregateKind::Max => self.extreme,
            _ if self.count == 0 => Value::Null,
            AggregateKind::Sum => match self.total {
                Total::Decimal(sum) => Value::Decimal(sum),
                Total::Double(sum) => Value::Double(sum),
            },
            AggregateKind::Avg => match self.total {
                Total::Decimal(sum) => {
                    let quotient = sum.div(&Decimal::from(self.count));
                    quotient.map_or(Value::Null, Value::Decimal)
                }
                Total::Double(sum) => Value::Double(sum / self.count as f64),
            },
        }
    }
}
