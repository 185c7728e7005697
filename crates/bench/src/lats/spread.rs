//! How values are spread: the middle one, the worst one, and what 99 % do not exceed, where there are enough of them for that.

use serde_json::Value;

/// Of fewer values the 99th percentile is the worst value, and says nothing of its own.
const ENOUGH: usize = 100;

/// Some values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Spread<T> {
    pub(super) median: T,
    pub(super) p99: Option<T>,
    pub(super) worst: T,
}

impl<T: Copy + Into<Value>> Spread<T> {
    /// Of values in order; none if there are none.
    pub(super) fn of(sorted: &[T]) -> Option<Self> {
        let p99 = quantile(sorted, 0.99).filter(|_| sorted.len() >= ENOUGH);
        Some(Self { median: quantile(sorted, 0.5)?, p99, worst: *sorted.last()? })
    }

    /// With these names.
    pub(super) fn as_json(&self, [median, p99, worst]: [&str; 3]) -> Value {
        let values = [(median, Some(self.median)), (p99, self.p99), (worst, Some(self.worst))];
        let values = values.into_iter().filter_map(|(name, value)| Some((name, value?)));
        values.map(|(name, value)| (name.to_string(), value.into())).collect()
    }
}

/// The smallest of these, which are in order, that this part of all does not exceed.
pub(super) fn quantile<T: Copy>(sorted: &[T], part: f64) -> Option<T> {
    let rank = (part * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.clamp(1, sorted.len().max(1)) - 1).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn quantiles_are_of_what_was_seen() {
        let some: Vec<u64> = (1..=20).collect();
        let parts = [0.0, 0.5, 0.95, 0.99, 1.0].map(|part| quantile(&some, part));
        assert_eq!(parts, [Some(1), Some(10), Some(19), Some(20), Some(20)]);
        assert_eq!(quantile::<u64>(&[], 0.5), None);
    }

    #[test]
    fn few_values_have_no_99_percent() {
        let names = ["median", "p99", "worst"];
        let of = |count: u64| Spread::of(&(1..=count).collect::<Vec<u64>>());
        assert_eq!(of(0), None);
        assert_eq!(of(99), Some(Spread { median: 50, p99: None, worst: 99 }));
        assert_eq!(of(200), Some(Spread { median: 100, p99: Some(198), worst: 200 }));
        assert_eq!(of(99).unwrap().as_json(names), json!({ "median": 50, "worst": 99 }));
        assert_eq!(of(200).unwrap().as_json(names)["p99"], 198);
    }
}
