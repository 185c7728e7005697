//! What is known about tables' rows and indexes, for who plans queries. Nothing here is exact, and plans are right whatever it says.
//!
//! Rows are spread over fragments by a hash, so that a few fragments say what all are like. Of each ordered index, entries from places
//! about equally far apart are compared with their neighbours: that says how many values there are.

use crate::TableDef;
use alloc::vec::Vec;
use lats_base::IndexId;
use lats_values::{ColumnType, key_value_bytes};

/// What an index is like at one place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Entries in the fragment's index.
    pub entries: u64,
    /// Bytes of the row at the place.
    pub row_bytes: u32,
    /// Pairs of neighbours that were compared; none if the sample stands for one entry alone.
    pub pairs: u32,
    /// Of how many pairs the values up to this column differ.
    pub changes: Vec<u32>,
    /// The row itself; empty if it is too long, and in samples of secondary indexes.
    pub image: Vec<u8>,
}

impl Sample {
    /// Appends its bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.entries.to_le_bytes());
        let counts = [self.row_bytes, self.pairs, self.changes.len() as u32];
        for number in counts.iter().chain(&self.changes) {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&self.image);
    }

    /// What was encoded; none if it is no sample.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (entries, rest) = bytes.split_first_chunk::<8>()?;
        let (row_bytes, rest) = rest.split_first_chunk::<4>()?;
        let (pairs, rest) = rest.split_first_chunk::<4>()?;
        let (columns, rest) = rest.split_first_chunk::<4>()?;
        let columns = usize::try_from(u32::from_le_bytes(*columns)).ok()?;
        let (changes, image) = rest.split_at_checked(columns.checked_mul(4)?)?;
        let changes = changes.chunks_exact(4);
        let changes = changes.map(|n| n.try_into().map_or(0, u32::from_le_bytes)).collect();
        Some(Self {
            entries: u64::from_le_bytes(*entries),
            row_bytes: u32::from_le_bytes(*row_bytes),
            pairs: u32::from_le_bytes(*pairs),
            changes,
            image: image.to_vec(),
        })
    }
}

/// Rows that are kept of a table.
const IMAGES_MAX: usize = 512;

/// What is known about a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableStatistics {
    /// Its rows.
    pub rows: f64,
    /// Its indexes; the primary key's first.
    pub indexes: Vec<IndexStatistics>,
    /// Some rows.
    pub images: Vec<Vec<u8>>,
}

/// What is known about an ordered index.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IndexStatistics {
    /// Which.
    pub index: IndexId,
    /// Its own columns.
    pub columns: Vec<u16>,
    /// How many values its first column has, its first two, and so on.
    pub distinct: Vec<f64>,
}

/// Samples of the fragments that were looked at.
#[derive(Debug, Default)]
pub struct Gathered {
    fragments: u32,
    entries: u64,
    samples: Vec<(Vec<u8>, Sample)>,
    /// A fragment has more entries than were sampled.
    is_partial: bool,
}

impl Gathered {
    /// Nothing was looked at yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a fragment's samples: keys and what belongs to them.
    pub fn add(&mut self, samples: Vec<(Vec<u8>, Sample)>) {
        self.fragments += 1;
        let entries = samples.first().map_or(0, |(_, sample)| sample.entries);
        self.entries += entries;
        self.is_partial |= entries != samples.len() as u64;
        self.samples.extend(samples);
    }

    /// Entries in these fragments.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// Entries in all of so many fragments.
    pub fn rows(&self, fragments: u32) -> f64 {
        match self.fragments {
            0 => 0.0,
            some => self.entries as f64 * f64::from(fragments.max(some)) / f64::from(some),
        }
    }

    /// Some rows.
    pub fn images(&self) -> Vec<Vec<u8>> {
        let with_rows = || self.samples.iter().map(|(_, s)| &s.image).filter(|i| !i.is_empty());
        let step = with_rows().count().div_ceil(IMAGES_MAX).max(1);
        with_rows().step_by(step).cloned().collect()
    }

    /// What they say about an index of a table.
    pub fn index(mut self, table: &TableDef, index: IndexId) -> Option<IndexStatistics> {
        let columns = table.key_columns(index)?.to_vec();
        self.samples.sort_by(|a, b| a.0.cmp(&b.0));
        let fragments = u32::from(table.fragment_count).max(1);
        let all = !self.is_partial && self.fragments >= fragments;
        let kinds: Option<Vec<&ColumnType>> = columns
            .iter()
            .map(|column| table.columns.get(usize::from(*column)).map(|c| &c.column_type))
            .collect();
        let seen = distinct_prefixes(&kinds?, self.samples.iter().map(|(key, _)| &key[..]));
        let rows = self.rows(fragments);
        let distinct = seen
            .into_iter()
            .enumerate()
            .map(|(at, seen)| if all { seen } else { self.distinct(at, seen, rows, fragments) })
            .collect();
        Some(IndexStatistics { index, columns, distinct })
    }

    /// How many values the first columns have in the whole table.
    fn distinct(&self, at: usize, seen: f64, rows: f64, fragments: u32) -> f64 {
        let pairs: f64 = self.samples.iter().map(|(_, s)| f64::from(s.pairs)).sum();
        let changes = self.samples.iter().filter_map(|(_, s)| s.changes.get(at));
        let changes: f64 = changes.map(|count| f64::from(*count)).sum();
        let within = if pairs > 0.0 { changes / pairs } else { 1.0 };
        // Few changes are chance; then there are at least as many values as were seen.
        let in_fragment = rows / f64::from(fragments) * within;
        if in_fragment <= seen {
            return seen.min(rows);
        }
        // A value's rows are spread over the fragments: one fragment sees fewer of them than there are.
        let rows_for_each = spread_group(1.0 / within.max(1e-9), fragments);
        (rows / rows_for_each).max(seen).min(rows)
    }
}

/// How many rows a value has, of which each fragment that has any of them has so many.
fn spread_group(in_fragment: f64, fragments: u32) -> f64 {
    let share = 1.0 / f64::from(fragments);
    let expected = |group: u32| {
        let none = power(1.0 - share, group);
        f64::from(group) * share / (1.0 - none).max(1e-12)
    };
    let (mut low, mut high) = (1_u32, 1_u32 << 30);
    while low < high {
        let middle = low + (high - low) / 2;
        match expected(middle) < in_fragment {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    if low > 1 {
        // Between the two numbers of rows next to it.
        let (below, above) = (expected(low - 1), expected(low));
        let part = (in_fragment - below) / (above - below).max(1e-12);
        return f64::from(low - 1) + part.clamp(0.0, 1.0);
    }
    f64::from(low)
}

fn power(base: f64, mut exponent: u32) -> f64 {
    let (mut result, mut square) = (1.0, base);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result *= square;
        }
        square *= square;
        exponent >>= 1;
    }
    result
}

/// How many different beginnings sorted keys have: of one column, of two, and so on.
fn distinct_prefixes<'k>(kinds: &[&ColumnType], keys: impl Iterator<Item = &'k [u8]>) -> Vec<f64> {
    let mut counts = alloc::vec![0.0; kinds.len()];
    let mut before: Option<&[u8]> = None;
    for key in keys {
        let mut end = 0;
        for (kind, count) in kinds.iter().zip(&mut counts) {
            let bytes = key.get(end..).and_then(|rest| key_value_bytes(kind, rest));
            end = end.saturating_add(bytes.unwrap_or(usize::MAX)).min(key.len());
            if before.is_none_or(|before| before.get(..end) != key.get(..end)) {
                *count += 1.0;
            }
        }
        before = Some(key);
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ColumnDef, IndexDef, PRIMARY_INDEX};
    use alloc::string::{String, ToString};
    use lats_base::TableId;
    use lats_values::{TypeKind, Value, encode_key_value};

    fn table(fragment_count: u16) -> TableDef {
        let column = |name: &str| ColumnDef::new(name, ColumnType::new(TypeKind::Int).not_null());
        let (id, name) = (IndexId::new(1), "i".to_string());
        TableDef {
            id: TableId::new(1),
            schema_version: 1,
            database: "test".to_string(),
            name: "t".to_string(),
            columns: ["a", "b"].map(column).to_vec(),
            primary_key: alloc::vec![0],
            partition_key: Vec::new(),
            indexes: alloc::vec![IndexDef { id, name, columns: alloc::vec![1], unique: None }],
            fragment_count,
            comment: String::new(),
            index_of: None,
        }
    }

    fn key(values: [i64; 2]) -> Vec<u8> {
        let mut out = Vec::new();
        let kind = ColumnType::new(TypeKind::Int).not_null();
        values.iter().for_each(|value| encode_key_value(&kind, &Value::Int(*value), &mut out));
        out
    }

    /// A fragment with every sixteenth row, sampled as a data manager does.
    fn fragment(rows: i64, group: i64) -> Gathered {
        let mut random = lats_base::prng::Prng::new(7);
        let mine: Vec<i64> = (0..rows).filter(|_| random.chance(1, 16)).collect();
        let keys: Vec<Vec<u8>> = mine.iter().map(|a| key([*a / group, *a])).collect();
        let runs: Vec<&[Vec<u8>]> = keys.chunks(64).collect();
        let step = (runs.len() / 200).max(1);
        let samples = runs.iter().step_by(step).map(|run| {
            let changed = run.windows(2).filter(|pair| pair[0][..5] != pair[1][..5]).count();
            let sample = Sample {
                entries: keys.len() as u64,
                row_bytes: 80,
                pairs: run.len() as u32 - 1,
                changes: alloc::vec![changed as u32],
                image: alloc::vec![1; 9],
            };
            (run[0].clone(), sample)
        });
        let mut gathered = Gathered::new();
        gathered.add(samples.collect());
        gathered
    }

    fn is_near(found: f64, wanted: f64) -> bool {
        (found / wanted - 1.0).abs() < 0.3
    }

    #[test]
    fn one_fragment_tells_how_many_rows_and_values_there_are() {
        for group in [1, 2, 4, 30, 1_000, 20_000] {
            let rows = 600_000;
            let gathered = fragment(rows, group);
            assert!(is_near(gathered.rows(16), rows as f64));
            assert!((100..=IMAGES_MAX).contains(&gathered.images().len()));
            let index = gathered.index(&table(16), IndexId::new(1)).unwrap();
            let wanted = (rows / group) as f64;
            assert!(is_near(index.distinct[0], wanted), "{group}: {:?}", index.distinct);
        }
    }

    #[test]
    fn small_tables_are_counted() {
        let mut gathered = Gathered::new();
        for fragment in 0..16 {
            let own = (0..25).filter(|a| a % 16 == fragment);
            let sample = Sample { changes: alloc::vec![0], ..Sample::default() };
            let count = own.clone().count() as u64;
            gathered.add(
                own.map(|a| (key([a % 5, a]), Sample { entries: count, ..sample.clone() }))
                    .collect(),
            );
        }
        assert_eq!(gathered.rows(16), 25.0);
        let index = gathered.index(&table(16), IndexId::new(1)).unwrap();
        assert_eq!(index.distinct, [5.0]);
        assert!(Gathered::new().index(&table(16), PRIMARY_INDEX).is_some());
        assert!(Gathered::new().index(&table(16), IndexId::new(9)).is_none());
    }

    #[test]
    fn samples_come_back() {
        let (changes, image) = (alloc::vec![1, 60], alloc::vec![7; 3]);
        let sample = Sample { entries: 1 << 40, row_bytes: 7, pairs: 63, changes, image };
        let mut bytes = Vec::new();
        sample.encode(&mut bytes);
        assert_eq!(Sample::decode(&bytes), Some(sample));
        assert_eq!(Sample::decode(&bytes[..15]), None);
        assert_eq!(Sample::decode(&bytes[..23]), None);
    }
}
