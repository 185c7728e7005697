//! The hidden table of a unique index: for each key of the index the primary key of the row that
//! has it. Its rows are spread by that key, and everything that holds for rows holds for them.
//!
//! Protocol: docs/protocols/unique-index.md.

use crate::{ColumnDef, TableDef};
use alloc::{format, string::String, vec, vec::Vec};
use lats_base::{IndexId, TableId, limits};
use lats_values::{ColumnType, RowLayout, SqlError, TypeKind, Value, encode_key_value};

/// The definition's version of every hidden table: it never changes.
pub const SCHEMA_VERSION: u32 = 1;

/// The hidden table of an index.
pub fn table_def(id: TableId, of: (TableId, IndexId), fragment_count: u16) -> TableDef {
    let column = |name: &str| ColumnDef::new(name, column_type());
    TableDef {
        id,
        schema_version: SCHEMA_VERSION,
        // No database has this name, so nobody can name the table.
        database: String::new(),
        name: format!("{}.{}", of.0, of.1),
        columns: vec![column("index_key"), column("primary_key")],
        primary_key: vec![0],
        indexes: Vec::new(),
        fragment_count,
        comment: String::new(),
        partition_key: Vec::new(),
        index_of: Some(of),
    }
}

fn column_type() -> ColumnType {
    ColumnType::new(TypeKind::VarBinary { bytes: limits::KEY_BYTES_MAX as u16 }).not_null()
}

fn layout() -> RowLayout {
    RowLayout::new(&[column_type(), column_type()])
}

/// The key under which an encoded index key stands in the hidden table.
pub fn key(index_key: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(index_key.len() + 8);
    encode_key_value(&column_type(), &Value::Bytes(index_key.into()), &mut out);
    out
}

/// The hidden table's row.
///
/// # Errors
/// If a key is larger than a key may be.
pub fn row(index_key: &[u8], primary_key: &[u8]) -> Result<Vec<u8>, SqlError> {
    let mut out = Vec::with_capacity(index_key.len() + primary_key.len() + 16);
    let values = [Value::Bytes(index_key.into()), Value::Bytes(primary_key.into())];
    layout().encode(&values, &mut out)?;
    Ok(out)
}

/// The primary key that a row of the hidden table leads to.
pub fn primary_key_of(row: &[u8]) -> Vec<u8> {
    match layout().value(row, 1) {
        Value::Bytes(key) => key.to_vec(),
        _ => Vec::new(),
    }
}
