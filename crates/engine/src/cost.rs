//! What steps of plans cost, in microseconds of a processor of 2026, about. Only how costs compare with each other matters.

/// A table of another process's thread is asked, and answers.
const ROUND_TRIP: f64 = 60.0;
/// The same for each further fragment.
const FRAGMENT: f64 = 4.0;
/// A data node looks at a row.
const LOOK: f64 = 0.4;
/// A row goes from a data node into an operator.
const READ: f64 = 0.8;
/// A row is read by its primary key.
const KEY: f64 = 2.0;
/// A request for a range of keys is made.
const RANGE: f64 = 1.5;
/// A fragment's index is searched for one range.
const SEEK: f64 = 0.7;
/// A row enters a hash table.
const BUILD: f64 = 0.5;
/// A row is looked up in a hash table.
const PROBE: f64 = 0.3;
/// A joined row is made.
const PAIR: f64 = 0.3;
/// A pair of rows is compared.
const COMPARE: f64 = 0.1;
/// A row passes an operator that computes something of it.
pub const PASS: f64 = 0.2;
/// A subquery's operators are made for one row.
pub const INSTANCE: f64 = 4.0;
/// Requests that a lookup join sends at once, if few rows come for each.
const AT_ONCE: f64 = 1_024.0;
/// Rows that may come for all of them.
const FOUND_AT_ONCE: f64 = 32_768.0;

/// How rows of a table are asked for with values of other rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lookup {
    /// Requests.
    pub requests: f64,
    /// Rows that data nodes look at for each.
    pub looked_at: f64,
    /// Rows that come for each.
    pub found: f64,
    /// They are read by their primary key.
    pub by_key: bool,
    /// Fragments that each request goes to.
    pub fragments: f64,
}

/// How many requests go at once, for so many rows that come for each.
pub fn at_once(found: f64) -> f64 {
    (FOUND_AT_ONCE / found.max(1.0)).clamp(1.0, AT_ONCE)
}

/// A scan of a part of a table.
pub fn scan(looked_at: f64, found: f64, fragments: f64) -> f64 {
    ROUND_TRIP + FRAGMENT * fragments + looked_at * LOOK + found * READ
}

/// Requests with values of other rows.
pub fn lookup(lookup: Lookup) -> f64 {
    let Lookup { requests, looked_at, found, by_key, fragments } = lookup;
    let trips = whole(requests / at_once(found)).max(1.0);
    let each = if by_key { KEY } else { RANGE + SEEK * fragments };
    trips * (ROUND_TRIP + FRAGMENT * fragments)
        + requests * (each + looked_at * LOOK + found * READ)
}

/// A join that keeps one side in a hash table.
pub fn hash_join(kept: f64, looked_up: f64, pairs: f64) -> f64 {
    kept * BUILD + looked_up * PROBE + pairs * PAIR
}

/// A join that looks at all pairs of rows.
pub fn nested_join(left: f64, right: f64, pairs: f64) -> f64 {
    right * PASS + left * right * COMPARE + pairs * PAIR
}

/// Rows that are put together.
pub fn pairs(count: f64) -> f64 {
    count * PAIR
}

/// Rounds up; numbers beyond those of whole numbers are as they are.
fn whole(number: f64) -> f64 {
    let below = number as u64 as f64;
    if below < number { below + 1.0 } else { below.max(number) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_rows_are_looked_up_and_many_are_hashed() {
        let by_index = |requests: f64| {
            lookup(Lookup { requests, looked_at: 4.0, found: 4.0, by_key: false, fragments: 16.0 })
        };
        let by_hash =
            |rows: f64| scan(60_000.0, 60_000.0, 16.0) + hash_join(60_000.0, rows, rows * 4.0);
        assert!(by_index(100.0) < by_hash(100.0));
        assert!(by_index(60_000.0) > by_hash(60_000.0));
        assert_eq!([whole(2.5), whole(2.0), whole(0.0)], [3.0, 2.0, 0.0]);
        assert_eq!([at_once(0.0), at_once(64.0), at_once(1e9)], [1_024.0, 512.0, 1.0]);
    }
}
