//! What a load has done, and how long its transactions took.

use anyhow::Context;
use hdrhistogram::Histogram;
use lats_base::Duration;
use serde_json::{Value, json};

/// Longer times count as this, in us.
const LONGEST_US: u64 = 60_000_000;
/// Decimal digits to which times are kept apart.
const DIGITS: u8 = 3;

/// What some clients have measured.
#[derive(Debug)]
pub(crate) struct Measure {
    /// Operations of transactions that were done.
    pub(crate) operations: u64,
    /// Operations that were not done.
    pub(crate) errors: u64,
    /// Attempts at transactions that met an error that passes, and were made again.
    pub(crate) retries: u64,
    /// The first error, for a person.
    pub(crate) first_error: Option<String>,
    /// Times of transactions, in us.
    times: Histogram<u64>,
}

impl Measure {
    pub(crate) fn new() -> anyhow::Result<Self> {
        let times = Histogram::new_with_bounds(1, LONGEST_US, DIGITS);
        let times = times.context("no histogram has these bounds")?;
        Ok(Self { operations: 0, errors: 0, retries: 0, first_error: None, times })
    }

    /// A transaction with so many operations has been done, so many of them in vain.
    pub(crate) fn note(&mut self, operations: usize, errors: usize, took: Duration) {
        self.operations += (operations - errors) as u64;
        self.errors += errors as u64;
        self.times.saturating_record((took.as_nanos() / 1_000).max(1));
    }

    /// One has failed.
    pub(crate) fn fail(&mut self, operations: usize, error: &impl ToString) {
        self.errors += operations as u64;
        self.first_error.get_or_insert_with(|| error.to_string());
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.operations += other.operations;
        self.errors += other.errors;
        self.retries += other.retries;
        self.first_error = self.first_error.take().or(other.first_error);
        // Both have the same bounds.
        let _ = self.times.add(other.times);
    }

    /// How long a transaction took that was slower than this part of all, in us.
    pub(crate) fn quantile_us(&self, quantile: f64) -> u64 {
        self.times.value_at_quantile(quantile)
    }

    pub(crate) fn record(&self, took: Duration) -> Value {
        json!({
            "ops_per_second": self.operations_per_second(took).round(),
            "p50_us": self.quantile_us(0.5),
            "p99_us": self.quantile_us(0.99),
            "p999_us": self.quantile_us(0.999),
            "max_us": self.times.max(),
            "errors": self.errors,
            "retries": self.retries,
            "first_error": self.first_error,
        })
    }

    pub(crate) fn operations_per_second(&self, took: Duration) -> f64 {
        self.operations as f64 * 1e9 / took.as_nanos().max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_several_clients_measured_is_added() {
        let mut one = Measure::new().unwrap();
        let mut other = Measure::new().unwrap();
        for ms in 1..=100 {
            one.note(10, 0, Duration::from_millis(ms));
            other.note(10, 1, Duration::from_millis(100 + ms));
        }
        other.fail(5, &"broken");
        one.add(other);
        let record = one.record(Duration::from_millis(2_000));
        assert_eq!(record["ops_per_second"], 950.0);
        assert_eq!(
            (record["errors"].as_u64(), one.first_error.as_deref()),
            (Some(105), Some("broken"))
        );
        let near = |wanted_us: u64, us: &Value| {
            us.as_u64().unwrap().abs_diff(wanted_us) <= wanted_us / 500
        };
        assert!(near(100_000, &record["p50_us"]), "{record}");
        assert!(near(198_000, &record["p99_us"]), "{record}");
        assert!(near(200_000, &record["max_us"]), "{record}");
    }

    #[test]
    fn what_takes_too_long_or_no_time_counts() {
        let mut measure = Measure::new().unwrap();
        measure.note(1, 0, Duration::from_nanos(1));
        measure.note(1, 0, Duration::from_millis(1_000_000));
        assert_eq!((measure.operations, measure.quantile_us(0.1)), (2, 1));
        assert!(measure.quantile_us(1.0) >= LONGEST_US);
    }
}
