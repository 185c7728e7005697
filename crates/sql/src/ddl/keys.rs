//! Keys and indexes of tables: what MySQL checks of them, their names and their order.

use super::table::to_be_filled;
use crate::error;
use crate::syntax::{name, optional_name};
use lats_base::{IndexId, limits};
use lats_catalog::{ColumnDef, DefaultValue, IndexDef, TableDef};
use lats_mysql_syntax::tree::{KeyDef, KeyKind, KeyOption, KeyPart, KeyValue, Text};
use lats_mysql_syntax::{Keyword, Tree};
use lats_values::{Collation, ColumnType, SqlError, TypeKind, Value};

/// Adds a key that stands beside the columns.
pub(super) fn add_key(table: &mut TableDef, tree: &Tree, key: &KeyDef) -> Result<(), SqlError> {
    check_form(key)?;
    let columns = key_columns(tree, &key.parts, &table.columns)?;
    if key.kind == KeyKind::Primary {
        if !table.primary_key.is_empty() {
            return Err(multiple_primary_keys());
        }
        table.primary_key = columns;
        return Ok(());
    }
    let written = if key.name.is_some() { key.name } else { key.constraint };
    let name = optional_name(tree, written)?;
    add_index(table, name, columns, key.kind == KeyKind::Unique)
}

/// Refuses keys that are no B-trees over whole columns. (HASH is taken as MySQL's other engines take it.)
pub(super) fn check_form(key: &KeyDef) -> Result<(), SqlError> {
    if matches!(key.kind, KeyKind::Fulltext | KeyKind::Spatial) {
        return Err(error::not_supported("FULLTEXT and SPATIAL indexes"));
    }
    let mut algorithms = vec![key.algorithm];
    for option in &key.options {
        match option {
            KeyOption::Using(algorithm) => algorithms.push(*algorithm),
            KeyOption::BlockSize(_) | KeyOption::Comment(_) | KeyOption::Visible => {}
            KeyOption::Invisible => return Err(error::not_supported("invisible indexes")),
            KeyOption::Parser(_) => return Err(error::not_supported("WITH PARSER")),
            KeyOption::EngineAttribute(_) | KeyOption::SecondaryEngineAttribute(_) => {
                return Err(error::not_supported("ENGINE_ATTRIBUTE"));
            }
        }
    }
    match algorithms.contains(&Keyword::RTREE) {
        true => Err(error::not_supported("USING RTREE")),
        false => Ok(()),
    }
}

/// The positions of a key's columns. ASC and DESC give the same index: it is read in both directions.
pub(super) fn key_columns(
    tree: &Tree,
    parts: &[KeyPart],
    columns: &[ColumnDef],
) -> Result<Vec<u16>, SqlError> {
    let mut found = Vec::with_capacity(parts.len());
    for part in parts {
        let KeyValue::Column { name: column, length } = part.value else {
            return Err(error::not_supported("index prefixes and expressions in indexes"));
        };
        let column = name(tree, column)?;
        let at = columns.iter().position(|c| !c.hidden && c.name.eq_ignore_ascii_case(column));
        let Some(at) = at.and_then(|at| u16::try_from(at).ok()) else {
            let text = format!("Key column '{column}' doesn't exist in table");
            return Err(error::make(1072, "42000", &text));
        };
        if found.contains(&at) {
            return Err(duplicate_column(column));
        }
        check_prefix(tree, length, &columns[usize::from(at)])?;
        found.push(at);
    }
    if found.len() > limits::KEY_COLUMNS_MAX {
        let text =
            format!("Too many key parts specified; max {} parts allowed", limits::KEY_COLUMNS_MAX);
        return Err(error::make(1070, "42000", &text));
    }
    check_key(&found, columns)?;
    Ok(found)
}

/// A prefix that is as long as its column is none.
fn check_prefix(tree: &Tree, length: Text, column: &ColumnDef) -> Result<(), SqlError> {
    let Some(digits) = optional_name(tree, length)? else { return Ok(()) };
    let length = digits.parse().unwrap_or(u64::MAX);
    if length == 0 {
        let text = format!("Key part '{}' length cannot be 0", column.name);
        return Err(error::make(1391, "HY000", &text));
    }
    let whole = match column.column_type.kind {
        TypeKind::Char { chars } | TypeKind::VarChar { chars } => u64::from(chars),
        TypeKind::Binary { bytes } | TypeKind::VarBinary { bytes } => u64::from(bytes),
        kind if is_blob(kind) => u64::MAX,
        _ => 0,
    };
    if length == whole {
        return Ok(());
    }
    if length > whole {
        let text = "Incorrect prefix key; the used key part isn't a string, the used length is \
                    longer than the key part, or the storage engine doesn't support unique prefix keys";
        return Err(error::make(1089, "HY000", text));
    }
    Err(error::not_supported("index prefixes and expressions in indexes"))
}

/// What the columns of a key must be.
fn check_key(key: &[u16], columns: &[ColumnDef]) -> Result<(), SqlError> {
    let of = key.iter().filter_map(|at| columns.get(usize::from(*at)));
    let mut bytes = 0usize;
    for column in of {
        if is_blob(column.column_type.kind) {
            let text = format!(
                "BLOB/TEXT column '{}' used in key specification without a key length",
                column.name
            );
            return Err(error::make(1170, "42000", &text));
        }
        bytes += column.column_type.max_bytes();
    }
    if bytes > limits::KEY_BYTES_MAX {
        let text = format!(
            "Specified key was too long; max key length is {} bytes",
            limits::KEY_BYTES_MAX
        );
        return Err(error::make(1071, "42000", &text));
    }
    Ok(())
}

pub(super) fn add_index(
    table: &mut TableDef,
    name: Option<&str>,
    columns: Vec<u16>,
    unique: bool,
) -> Result<(), SqlError> {
    check_key(&columns, &table.columns)?;
    let name = match name {
        Some(name) => {
            check_name(name)?;
            name.to_owned()
        }
        None => free_name(table, &columns),
    };
    if table.indexes.iter().any(|i| i.name.eq_ignore_ascii_case(&name)) {
        return Err(duplicate_index(&name));
    }
    let number = u16::try_from(table.indexes.len() + 1).unwrap_or(u16::MAX);
    if usize::from(number) > limits::INDEXES_MAX {
        let text = format!("Too many keys specified; max {} keys allowed", limits::INDEXES_MAX);
        return Err(error::make(1069, "42000", &text));
    }
    let unique = unique.then(to_be_filled);
    table.indexes.push(IndexDef { id: IndexId::new(number), name, columns, unique });
    Ok(())
}

/// A name that an index may have: PRIMARY is that of the primary key.
pub(super) fn check_name(name: &str) -> Result<(), SqlError> {
    if name.eq_ignore_ascii_case("PRIMARY") {
        let text = format!("Incorrect index name '{name}'");
        return Err(error::make(1280, "42000", &text));
    }
    super::check_name(name, 1280, "index")
}

/// MySQL's order: unique indexes without NULLs, other unique ones, the rest.
pub(super) fn order_indexes(table: &mut TableDef) {
    let columns = &table.columns;
    let has_nulls =
        |i: &IndexDef| i.columns.iter().any(|c| columns[usize::from(*c)].column_type.nullable);
    table.indexes.sort_by_key(|i| (i.unique.is_none(), i.unique.is_some() && has_nulls(i)));
    for (index, number) in table.indexes.iter_mut().zip(1u16..) {
        index.id = IndexId::new(number);
    }
}

/// MySQL names an index after its first column, and counts from 2 where that is taken.
fn free_name(table: &TableDef, columns: &[u16]) -> String {
    let first = columns.first().and_then(|c| table.columns.get(usize::from(*c)));
    let base = first.map_or("key", |c| c.name.as_str());
    let taken = |name: &str| {
        name.eq_ignore_ascii_case("PRIMARY")
            || table.indexes.iter().any(|i| i.name.eq_ignore_ascii_case(name))
    };
    if !taken(base) {
        return base.to_owned();
    }
    let mut number = 2;
    while taken(&format!("{base}_{number}")) {
        number += 1;
    }
    format!("{base}_{number}")
}

/// The one column that is numbered by itself, if there is one; it must lead a key.
pub(super) fn check_automatic(table: &TableDef) -> Result<(), SqlError> {
    let numbered = table.columns.iter().zip(0u16..);
    let automatic: Vec<u16> =
        numbered.filter(|(c, _)| c.auto_increment).map(|(_, at)| at).collect();
    let leads_key = |at: &u16| {
        table.primary_key.first() == Some(at)
            || table.indexes.iter().any(|i| i.columns.first() == Some(at))
    };
    if automatic.len() > 1 || !automatic.iter().all(leads_key) {
        let text = "Incorrect table definition; there can be only one auto column and it must be \
                    defined as a key";
        return Err(error::make(1075, "42000", text));
    }
    Ok(())
}

/// Completes the primary key. `nullable` are the columns for which NULL was written.
pub(super) fn finish_keys(table: &mut TableDef, nullable: &[u16]) -> Result<(), SqlError> {
    check_automatic(table)?;
    if table.primary_key.is_empty() {
        let at = u16::try_from(table.columns.len()).unwrap_or(u16::MAX);
        table.columns.push(hidden_key());
        table.primary_key = vec![at];
    }
    check_key(&table.primary_key, &table.columns)?;
    for at in &table.primary_key {
        let column = &mut table.columns[usize::from(*at)];
        column.column_type.nullable = false;
        if nullable.contains(at) || column.default == DefaultValue::Literal(Value::Null) {
            let text = "All parts of a PRIMARY KEY must be NOT NULL; if you need NULL in a key, \
                        use UNIQUE instead";
            return Err(error::make(1171, "42000", text));
        }
    }
    Ok(())
}

fn hidden_key() -> ColumnDef {
    let column_type = ColumnType {
        collation: Collation::Binary,
        ..ColumnType::new(TypeKind::BigInt).unsigned().not_null()
    };
    ColumnDef { hidden: true, ..ColumnDef::new("$latsdb_key", column_type) }
}

pub(super) fn is_blob(kind: TypeKind) -> bool {
    matches!(
        kind,
        TypeKind::TinyText
            | TypeKind::Text
            | TypeKind::MediumText
            | TypeKind::LongText
            | TypeKind::TinyBlob
            | TypeKind::Blob
            | TypeKind::MediumBlob
            | TypeKind::LongBlob
    )
}

pub(super) fn duplicate_column(name: &str) -> SqlError {
    error::make(1060, "42S21", &format!("Duplicate column name '{name}'"))
}

pub(super) fn duplicate_index(name: &str) -> SqlError {
    error::make(1061, "42000", &format!("Duplicate key name '{name}'"))
}

pub(super) fn multiple_primary_keys() -> SqlError {
    error::make(1068, "42000", "Multiple primary key defined")
}
