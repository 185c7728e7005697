//! PARTITION BY KEY: which columns decide where a row is.

use crate::error;
use crate::syntax::name;
use lats_catalog::TableDef;
use lats_mysql_syntax::Tree;
use lats_mysql_syntax::tree::{PartitionBy, PartitionKind, Partitioning};
use lats_values::SqlError;

/// The columns of `PARTITION BY KEY`, which the primary key must have; none stand for the whole primary key.
pub(super) fn key_of(
    tree: &Tree,
    table: &TableDef,
    partitioning: &Partitioning,
) -> Result<Vec<u16>, SqlError> {
    let columns = match &partitioning.kind {
        PartitionKind::Key { is_linear: false, algorithm, columns } if algorithm.is_none() => {
            columns
        }
        other => return Err(error::not_supported(&format!("PARTITION BY {}", kind_name(other)))),
    };
    if partitioning.count.is_some()
        || partitioning.sub.is_some()
        || !partitioning.partitions.is_empty()
    {
        return Err(error::not_supported(
            "options of PARTITION BY: fragments are made by the cluster",
        ));
    }
    let mut found = Vec::with_capacity(columns.len());
    for column in columns {
        let column = name(tree, *column)?;
        let named = table.column(column).filter(|at| !table.columns[usize::from(*at)].hidden);
        let Some(at) = named else {
            let text = "Field in list of fields for partition function not found in table";
            return Err(error::make(1488, "HY000", text));
        };
        if !table.primary_key.contains(&at) {
            return Err(not_in("PRIMARY KEY"));
        }
        if found.contains(&at) {
            let text = format!("Duplicate partition field name '{column}'");
            return Err(error::make(1652, "HY000", &text));
        }
        found.push(at);
    }
    Ok(found)
}

/// As in MySQL: whoever looks for a unique key can tell the partition. Called for tables with PARTITION BY only; those
/// without a primary key are partitioned by one that nobody can name.
///
/// # Errors
/// 1503.
pub(super) fn check_unique_indexes(table: &TableDef) -> Result<(), SqlError> {
    let is_hidden = |at: &u16| table.columns.get(usize::from(*at)).is_some_and(|c| c.hidden);
    if table.primary_key.iter().any(is_hidden) {
        return Ok(());
    }
    let mut indexes = table.unique_indexes();
    match indexes.all(|(index, _)| has_partition_key(table, &index.columns)) {
        true => Ok(()),
        false => Err(not_in("UNIQUE INDEX")),
    }
}

/// As [`check_unique_indexes`], for the columns of an index to be made.
pub(super) fn check_unique_index(table: &TableDef, columns: &[u16]) -> Result<(), SqlError> {
    match table.partition_key.is_empty() || has_partition_key(table, columns) {
        true => Ok(()),
        false => Err(not_in("UNIQUE INDEX")),
    }
}

fn has_partition_key(table: &TableDef, columns: &[u16]) -> bool {
    let whole = table.partition_key.is_empty();
    let key = if whole { &table.primary_key } else { &table.partition_key };
    key.iter().all(|at| columns.contains(at))
}

fn not_in(key: &str) -> SqlError {
    let text = format!(
        "A {key} must include all columns in the table's partitioning function (prefixed columns \
         are not considered)."
    );
    error::make(1503, "HY000", &text)
}

fn kind_name(kind: &PartitionKind) -> &'static str {
    match kind {
        PartitionKind::Value { is_linear: true, .. } => "LINEAR HASH",
        PartitionKind::Value { by: PartitionBy::Hash(_), .. } => "HASH",
        PartitionKind::Value { by: PartitionBy::Range(_), .. } => "RANGE",
        PartitionKind::Value { by: PartitionBy::List(_), .. } => "LIST",
        PartitionKind::Key { is_linear: true, .. } => "LINEAR KEY",
        PartitionKind::Key { .. } => "KEY ALGORITHM",
        PartitionKind::RangeColumns(_) => "RANGE COLUMNS",
        PartitionKind::ListColumns(_) => "LIST COLUMNS",
    }
}
