//! What the steps of a query did, as EXPLAIN ANALYZE shows it.

use crate::plan::query::TableSource;
use lats_engine::physical::{Beyond, Op};
use lats_engine::run::{OpProfile, Profile};

/// What was read of a mention of a table.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Read {
    /// How often data nodes were waited for.
    pub(crate) trips: u64,
    /// How often it was asked: once for a scan, once for each key of a join.
    pub(crate) requests: u64,
    /// Rows that have come.
    pub(crate) rows: u64,
    /// Nanoseconds that were waited: for the first rows of each time, and in all.
    pub(crate) first: u64,
    /// In all.
    pub(crate) last: u64,
}

/// What a query did.
pub(crate) enum Actual<'a> {
    /// A query of one table: the rows that it gave, when the first and the last of them were there, and what it read.
    One {
        /// What the whole query did.
        all: Read,
        /// What it read.
        read: Read,
    },
    /// Any other: what the operators did, and what was read of each of the plan's tables.
    Many {
        /// Of operators.
        profile: &'a Profile,
        /// Of tables.
        reads: &'a [Read],
    },
}

impl Read {
    /// What an operator did.
    fn by(of: &OpProfile) -> Self {
        Self { trips: 0, requests: of.loops, rows: of.rows, first: of.first, last: of.last }
    }

    /// MySQL's words for it.
    pub(super) fn shown(&self) -> String {
        if self.requests == 0 {
            return "  (never executed)".to_owned();
        }
        let loops = self.requests as f64;
        let ms = |nanos: u64| figure(nanos as f64 / loops / 1e6);
        let (first, last) = (ms(self.first), ms(self.last));
        let rows = figure(self.rows as f64 / loops);
        format!("  (actual time={first}..{last} rows={rows} loops={})", self.requests)
    }
}

impl Actual<'_> {
    /// What an operator did.
    pub(super) fn of(&self, op: &Op) -> String {
        let Self::Many { profile, .. } = self else { return String::new() };
        let of = profile.of(op);
        Read::by(&of).shown() + &beside(&memory(of.peak_bytes))
    }

    /// What an operator that reads a table did.
    pub(super) fn of_source(&self, op: &Op, (number, source): (usize, &TableSource)) -> String {
        let Self::Many { profile, reads } = self else { return String::new() };
        let read = reads.get(number).copied().unwrap_or_default();
        Read::by(&profile.of(op)).shown() + &beside(&pushed(&read, source))
    }

    /// What a join has done instead of asking, if too many rows would have asked.
    pub(super) fn of_switch(&self, beyond: &Beyond) -> String {
        match self {
            Self::Many { profile, .. } if profile.has_switched(beyond) => {
                format!(", after {} rows a hash join", beyond.asked)
            }
            _ => String::new(),
        }
    }

    /// What a join has read of a table.
    pub(super) fn of_lookups(&self, number: usize, source: &TableSource) -> String {
        let Self::Many { reads, .. } = self else { return String::new() };
        let read = reads.get(number).copied().unwrap_or_default();
        read.shown() + &beside(&pushed(&read, source))
    }
}

fn beside(text: &str) -> String {
    match text.is_empty() {
        true => String::new(),
        false => format!(" ({text})"),
    }
}

/// What data nodes did of a read.
fn pushed(read: &Read, source: &TableSource) -> String {
    let all = source.table.types.len();
    let columns = match &source.projection {
        Some(columns) => format!(", columns={} of {all}", columns.len()),
        None => String::new(),
    };
    format!("round trips={}{columns}", read.trips)
}

/// Memory that an operator has held.
fn memory(bytes: usize) -> String {
    match bytes {
        0 => String::new(),
        _ if bytes < 10 << 20 => format!("memory={} KiB", bytes.div_ceil(1 << 10)),
        _ => format!("memory={} MiB", bytes >> 20),
    }
}

/// A number with three digits that count, and all of those before the point.
pub(super) fn figure(number: f64) -> String {
    if number >= 100.0 || number == 0.0 {
        return format!("{number:.0}");
    }
    // How many of them stand behind the point.
    let digits = (2.0 - number.log10().floor()).clamp(0.0, 9.0) as usize;
    let text = format!("{number:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits_that_count() {
        let shown = [0.0, 0.004_051, 0.0405, 0.5, 1.0, 1.25, 33.333, 99.99, 100.4, 12_345.6];
        let shown: Vec<String> = shown.into_iter().map(figure).collect();
        let wanted = ["0", "0.00405", "0.0405", "0.5", "1", "1.25", "33.3", "100", "100", "12346"];
        assert_eq!(shown, wanted);
    }
}
