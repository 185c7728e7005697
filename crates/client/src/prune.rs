//! Which fragments a scan can find rows in: those of the partition keys that all its ranges bind.

use crate::api::{KeyRange, PRIMARY_INDEX, Scan};
use lats_base::FragmentId;
use lats_catalog::{Spread, TableDef};
use lats_values::{key_value_bytes, next_prefix};
use std::collections::BTreeMap;

/// Scans with more ranges than this go to all fragments.
const RANGES_MAX: usize = 16_384;

/// A fragment to scan, and the numbers of the ranges to look for there; none for all of them.
pub(crate) type Part = (FragmentId, Option<Vec<u32>>);

/// The fragments to scan, in their order: all, unless each range has one value of the partition key.
pub(crate) fn parts(table: &TableDef, scan: &Scan) -> Vec<Part> {
    let spread = Spread::of(table);
    let all = || (0..spread.fragment_count()).map(|number| (FragmentId::new(number), None));
    if scan.ranges.len() > RANGES_MAX || spread.fragment_count() <= 1 {
        return all().collect();
    }
    let mut found: BTreeMap<FragmentId, Vec<u32>> = BTreeMap::new();
    for (number, range) in (0..).zip(&scan.ranges) {
        match only_fragment(table, &spread, scan, range) {
            Some(fragment) => found.entry(fragment).or_default().push(number),
            None => return all().collect(),
        }
    }
    found.into_iter().map(|(fragment, numbers)| (fragment, Some(numbers))).collect()
}

/// The fragment of all rows in a range, if its bounds bind the partition key.
fn only_fragment(
    table: &TableDef,
    spread: &Spread,
    scan: &Scan,
    range: &KeyRange,
) -> Option<FragmentId> {
    let primary = &table.primary_key;
    let partition = if table.partition_key.is_empty() { primary } else { &table.partition_key };
    let secondary = match scan.index {
        PRIMARY_INDEX => &[][..],
        id => &table.index(id)?.columns[..],
    };
    let mut bound: Vec<(u16, &[u8])> = Vec::new();
    let mut at = 0;
    for column in secondary.iter().chain(primary) {
        let kind = &table.columns.get(usize::from(*column))?.column_type;
        let Some(bytes) = range.lower.get(at..).and_then(|rest| key_value_bytes(kind, rest)) else {
            break;
        };
        if !is_within(range, at + bytes) {
            break;
        }
        bound.push((*column, &range.lower[at..at + bytes]));
        at += bytes;
    }
    let value = |column: &u16| bound.iter().find(|(c, _)| c == column).map(|(_, bytes)| *bytes);
    // In the order of the primary key, as the fragment is computed.
    let mut partition_key = Vec::new();
    for column in primary.iter().filter(|c| partition.contains(c)) {
        partition_key.extend_from_slice(value(column)?);
    }
    Some(spread.fragment_of_partition(&partition_key))
}

/// True if all keys in the range begin with so many bytes of its lower bound.
fn is_within(range: &KeyRange, bytes: usize) -> bool {
    let end = next_prefix(&range.lower[..bytes]);
    match (&range.upper, &end) {
        (Some(upper), Some(end)) => upper <= end,
        (_, None) => true,
        (None, Some(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::AsOf;
    use lats_base::{IndexId, TableId};
    use lats_catalog::{ColumnDef, IndexDef};
    use lats_values::{ColumnType, TypeKind, Value, encode_key_value};
    use std::sync::Arc;

    fn table() -> TableDef {
        let column = |name: &str| ColumnDef::new(name, ColumnType::new(TypeKind::Int).not_null());
        let index = |id, columns: &[u16]| IndexDef {
            id: IndexId::new(id),
            name: id.to_string(),
            columns: columns.to_vec(),
            unique: None,
        };
        TableDef {
            id: TableId::new(1),
            schema_version: 1,
            database: "test".to_string(),
            name: "t".to_string(),
            columns: ["a", "b", "c"].map(column).to_vec(),
            primary_key: vec![0, 1],
            partition_key: vec![1],
            indexes: vec![index(1, &[1]), index(2, &[2])],
            fragment_count: 16,
            comment: String::new(),
            index_of: None,
        }
    }

    fn key(values: &[i64]) -> Vec<u8> {
        let kind = ColumnType::new(TypeKind::Int).not_null();
        let mut key = Vec::new();
        values.iter().for_each(|v| encode_key_value(&kind, &Value::Int(*v), &mut key));
        key
    }

    /// How many fragments are scanned for rows whose keys begin with these values.
    fn scanned(index: u16, prefixes: &[&[i64]]) -> usize {
        let range = |prefix: &&[i64]| {
            let lower = key(prefix);
            KeyRange { upper: next_prefix(&lower), lower }
        };
        let scan = Scan {
            table: TableId::new(1),
            schema_version: 1,
            index: IndexId::new(index),
            ranges: prefixes.iter().map(range).collect(),
            ordered: false,
            reverse: false,
            primary_keys: false,
            program: Arc::default(),
            limit: None,
            pending: false,
            to_lock: false,
            few: false,
            first_of_range: false,
            as_of: AsOf::Newest,
        };
        let table = table();
        let found = parts(&table, &scan);
        for prefix in prefixes.iter().filter(|p| !p.is_empty() && (index == 1 || p.len() == 2)) {
            // By index 1 the first value is column b, by the primary key the second.
            let b = if index == 1 { prefix[0] } else { prefix[1] };
            let row = Spread::of(&table).fragment_of(&key(&[7, b]));
            assert!(
                found.iter().any(|(fragment, _)| *fragment == row),
                "rows of {prefix:?} are in {row}, not in {found:?}"
            );
        }
        found.len()
    }

    #[test]
    fn ranges_that_bind_the_partition_key_are_in_one_fragment() {
        assert_eq!(scanned(0, &[&[7, 5]]), 1);
        assert_eq!(scanned(1, &[&[5]]), 1);
        assert_eq!(scanned(1, &[&[5, 3]]), 1);
        assert_eq!(scanned(2, &[&[9, 3, 5]]), 1);
        assert!((2..=3).contains(&scanned(1, &[&[1], &[2], &[3]])));
    }

    #[test]
    fn other_ranges_are_in_all() {
        assert_eq!(scanned(0, &[&[7]]), 16);
        assert_eq!(scanned(0, &[&[]]), 16);
        assert_eq!(scanned(2, &[&[9]]), 16);
        assert_eq!(scanned(1, &[&[5], &[]]), 16);
    }
}
