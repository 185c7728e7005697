//! How the rows of a table are spread over its fragments: by a hash of the primary key, or of the part of it
//! that is the partition key.

use crate::TableDef;
use alloc::{borrow::Cow, vec::Vec};
use lats_base::{FragmentId, hash};
use lats_values::{ColumnType, key_value_bytes};

/// What is needed to tell the fragment of a row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spread {
    fragment_count: u16,
    /// The columns of the primary key up to the last one that belongs to the partition key, and whether
    /// each does. Empty: the whole key counts.
    columns: Vec<(ColumnType, bool)>,
}

impl Spread {
    /// Of a table.
    pub fn of(table: &TableDef) -> Self {
        let belongs = |column: &u16| table.partition_key.contains(column);
        let count = table.primary_key.iter().rposition(belongs).map_or(0, |last| last + 1);
        let columns = table.primary_key.iter().take(count);
        let typed = columns.filter_map(|column| {
            let def = table.columns.get(usize::from(*column))?;
            Some((def.column_type.clone(), belongs(column)))
        });
        let whole = table.partition_key.is_empty();
        let columns = if whole { Vec::new() } else { typed.collect() };
        Self { fragment_count: table.fragment_count, columns }
    }

    /// How many fragments there are.
    pub fn fragment_count(&self) -> u16 {
        self.fragment_count
    }

    /// The fragment of the row with this encoded primary key. (What is no primary key of the table is in
    /// some fragment, too, the same for everybody.)
    pub fn fragment_of(&self, key: &[u8]) -> FragmentId {
        self.fragment_of_partition(&self.partition_key_of(key).unwrap_or(Cow::Borrowed(key)))
    }

    /// As [`Self::fragment_of`], with the hash of the whole key, by which the fragment finds it.
    pub fn place_of(&self, key: &[u8]) -> (FragmentId, u64) {
        let hash = hash::partition_hash(key);
        match self.columns.is_empty() {
            true => (self.fragment_of_hash(hash), hash),
            false => (self.fragment_of(key), hash),
        }
    }

    fn fragment_of_hash(&self, hash: u64) -> FragmentId {
        let bucket = hash::bucket_of(hash);
        FragmentId::new((bucket % u32::from(self.fragment_count.max(1))) as u16)
    }

    /// The fragment of the rows with this encoded partition key.
    pub fn fragment_of_partition(&self, partition_key: &[u8]) -> FragmentId {
        self.fragment_of_hash(hash::partition_hash(partition_key))
    }

    fn partition_key_of<'k>(&self, key: &'k [u8]) -> Option<Cow<'k, [u8]>> {
        if self.columns.is_empty() {
            return Some(Cow::Borrowed(key));
        }
        let leading = self.columns.iter().all(|(_, belongs)| *belongs);
        let (mut at, mut parts) = (0, Vec::new());
        for (column, belongs) in &self.columns {
            let bytes = key_value_bytes(column, key.get(at..)?)?;
            if *belongs && !leading {
                parts.extend_from_slice(&key[at..at + bytes]);
            }
            at += bytes;
        }
        Some(if leading { Cow::Borrowed(&key[..at]) } else { Cow::Owned(parts) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ColumnDef;
    use alloc::{string::ToString, vec};
    use lats_base::TableId;
    use lats_values::{TypeKind, Value, encode_key_value};

    fn table(partition_key: &[u16]) -> TableDef {
        let column = |name: &str, kind| ColumnDef::new(name, ColumnType::new(kind).not_null());
        TableDef {
            id: TableId::new(1),
            schema_version: 1,
            database: "test".to_string(),
            name: "t".to_string(),
            columns: vec![
                column("a", TypeKind::Int),
                column("b", TypeKind::VarChar { chars: 20 }),
                column("c", TypeKind::BigInt),
            ],
            primary_key: vec![0, 1, 2],
            partition_key: partition_key.to_vec(),
            indexes: Vec::new(),
            fragment_count: 64,
            comment: "".to_string(),
            index_of: None,
        }
    }

    fn key(table: &TableDef, a: i64, b: &str, c: i64) -> Vec<u8> {
        let text = Value::Text(b.into(), table.columns[1].column_type.collation);
        let mut key = Vec::new();
        for (column, value) in table.columns.iter().zip([Value::Int(a), text, Value::Int(c)]) {
            encode_key_value(&column.column_type, &value, &mut key);
        }
        key
    }

    #[test]
    fn rows_with_the_same_partition_key_are_together() {
        let of = |(table, spread): &(TableDef, Spread), a, b: &str, c| {
            spread.fragment_of(&key(table, a, b, c))
        };
        for columns in [&[0][..], &[1], &[2], &[0, 1], &[1, 2], &[0, 2]] {
            let table = table(columns);
            let both = (table.clone(), Spread::of(&table));
            let (mut same, mut others) = (true, 0);
            for n in 0..50 {
                let other = |column: u16| if columns.contains(&column) { 7 } else { n };
                let text = if columns.contains(&1) { "x y".to_string() } else { n.to_string() };
                same &= of(&both, other(0), &text, other(2)) == of(&both, 7, "x y", 7);
                others += usize::from(of(&both, n, &n.to_string(), n) != of(&both, 7, "x y", 7));
            }
            assert!(same, "partition key {columns:?}");
            assert!(others > 40, "partition key {columns:?} does not spread");
        }
    }

    #[test]
    fn without_a_partition_key_the_whole_key_counts() {
        let (none, all) = (table(&[]), table(&[0, 1, 2]));
        let key = key(&none, 1, "one", 2);
        assert_eq!(Spread::of(&none).fragment_of(&key), Spread::of(&all).fragment_of(&key));
        assert_eq!(
            Spread::of(&all).fragment_of(b"no key"),
            Spread::of(&none).fragment_of(b"no key")
        );
    }
}
