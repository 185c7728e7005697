//! Changes of the catalog: what each does, and why one is refused.

use crate::{
    Catalog, Change, ChangeError, ChangeErrorKind, ColumnDef, DefaultValue, IndexDef,
    SEQUENCES_TABLE, SYSTEM_DATABASE, TableDef,
};
use alloc::{
    collections::BTreeMap,
    format,
    string::{String, ToString},
    vec,
    vec::Vec,
};
use lats_base::{IndexId, TableId, limits};
use lats_values::{ColumnType, TypeKind};

pub(crate) fn initial() -> Catalog {
    let column = |name: &str| ColumnDef {
        name: name.to_string(),
        column_type: ColumnType::new(TypeKind::BigInt).unsigned().not_null(),
        default: DefaultValue::None,
        auto_increment: false,
        on_update_now: false,
        hidden: false,
    };
    let sequences = TableDef {
        id: SEQUENCES_TABLE,
        schema_version: 1,
        database: SYSTEM_DATABASE.to_string(),
        name: "sequences".to_string(),
        columns: vec![column("table_id"), column("next_value")],
        primary_key: vec![0],
        indexes: Vec::new(),
        fragment_count: 1,
        comment: "AUTO_INCREMENT values that were handed out".to_string(),
    };
    Catalog {
        version: 1,
        databases: vec![SYSTEM_DATABASE.to_string(), "test".to_string()],
        tables: BTreeMap::from([(SEQUENCES_TABLE, sequences)]),
        next_table_id: SEQUENCES_TABLE.get() + 1,
    }
}

pub(crate) fn apply(
    catalog: &mut Catalog,
    change: &Change,
    fragments: u16,
) -> Result<(), ChangeError> {
    match change {
        Change::CreateDatabase { name, if_not_exists } => {
            create_database(catalog, name, *if_not_exists)
        }
        Change::DropDatabase { name, if_exists } => drop_database(catalog, name, *if_exists),
        Change::CreateTable { table, if_not_exists } => {
            create_table(catalog, table, *if_not_exists, fragments)
        }
        Change::DropTable { database, name, if_exists } => {
            drop_table(catalog, database, name, *if_exists)
        }
        Change::TruncateTable { database, name } => truncate(catalog, database, name),
        Change::CreateIndex { database, table, name, columns } => {
            create_index(catalog, database, table, name, columns)
        }
        Change::DropIndex { database, table, name } => drop_index(catalog, database, table, name),
    }?;
    catalog.version += 1;
    Ok(())
}

fn refuse<T>(kind: ChangeErrorKind, message: String) -> Result<T, ChangeError> {
    Err(ChangeError { kind, message })
}

fn create_database(
    catalog: &mut Catalog,
    name: &str,
    if_not_exists: bool,
) -> Result<(), ChangeError> {
    if !catalog.has_database(name) {
        catalog.databases.push(name.to_string());
        return Ok(());
    }
    if if_not_exists {
        return Ok(());
    }
    let message = format!("Can't create database '{name}'; database exists");
    refuse(ChangeErrorKind::DatabaseExists, message)
}

fn drop_database(catalog: &mut Catalog, name: &str, if_exists: bool) -> Result<(), ChangeError> {
    if name == SYSTEM_DATABASE {
        let message = format!("'{name}' holds the cluster's own tables and cannot be dropped");
        return refuse(ChangeErrorKind::NotSupported, message);
    }
    if catalog.has_database(name) {
        catalog.databases.retain(|d| d != name);
        catalog.tables.retain(|_, t| t.database != name);
        return Ok(());
    }
    if if_exists {
        return Ok(());
    }
    let message = format!("Can't drop database '{name}'; database doesn't exist");
    refuse(ChangeErrorKind::DatabaseMissing, message)
}

fn create_table(
    catalog: &mut Catalog,
    table: &TableDef,
    if_not_exists: bool,
    fragments: u16,
) -> Result<(), ChangeError> {
    if !catalog.has_database(&table.database) {
        let message = format!("Unknown database '{}'", table.database);
        return refuse(ChangeErrorKind::DatabaseUnknown, message);
    }
    if catalog.table(&table.database, &table.name).is_some() {
        if if_not_exists {
            return Ok(());
        }
        let message = format!("Table '{}' already exists", table.name);
        return refuse(ChangeErrorKind::TableExists, message);
    }
    if let Some(fault) = fault_in(table) {
        return refuse(ChangeErrorKind::NotSupported, fault);
    }
    if catalog.tables.len() >= limits::TABLES_MAX {
        let message = format!("a cluster holds at most {} tables", limits::TABLES_MAX);
        return refuse(ChangeErrorKind::NotSupported, message);
    }
    insert_table(catalog, table.clone(), fragments);
    Ok(())
}

/// Gives the table its id and puts it into the catalog.
fn insert_table(catalog: &mut Catalog, mut table: TableDef, fragments: u16) {
    table.id = TableId::new(catalog.next_table_id);
    catalog.next_table_id += 1;
    table.schema_version = 1;
    table.fragment_count = fragments;
    catalog.tables.insert(table.id, table);
}

/// What is wrong with a definition that a client sent, if anything.
fn fault_in(table: &TableDef) -> Option<String> {
    let columns = table.columns.len();
    if columns == 0 || columns > limits::COLUMNS_MAX {
        return Some(format!("a table has 1 to {} columns", limits::COLUMNS_MAX));
    }
    if table.indexes.len() > limits::INDEXES_MAX {
        return Some(format!("a table has at most {} indexes", limits::INDEXES_MAX));
    }
    let keys = table.indexes.iter().map(|i| &i.columns).chain([&table.primary_key]);
    for key in keys {
        if key.is_empty() || key.len() > limits::KEY_COLUMNS_MAX {
            return Some(format!("a key has 1 to {} columns", limits::KEY_COLUMNS_MAX));
        }
        if key.iter().any(|c| usize::from(*c) >= columns) {
            return Some("a key names a column that is not there".to_string());
        }
    }
    if table.primary_key.iter().any(|c| table.columns[usize::from(*c)].column_type.nullable) {
        return Some("a primary key column cannot be NULL".to_string());
    }
    let mut ids: Vec<IndexId> = table.indexes.iter().map(|i| i.id).collect();
    ids.sort_unstable();
    ids.dedup();
    if ids.len() != table.indexes.len() || ids.first() == Some(&IndexId::new(0)) {
        return Some("index ids are not 1, 2, 3, …".to_string());
    }
    None
}

fn drop_table(
    catalog: &mut Catalog,
    database: &str,
    name: &str,
    if_exists: bool,
) -> Result<(), ChangeError> {
    match catalog.table(database, name).map(|t| t.id) {
        Some(SEQUENCES_TABLE) => refuse(
            ChangeErrorKind::NotSupported,
            format!("'{database}.{name}' belongs to the cluster and cannot be dropped"),
        ),
        Some(id) => {
            catalog.tables.remove(&id);
            Ok(())
        }
        None if if_exists => Ok(()),
        None => missing(database, name),
    }
}

fn missing<T>(database: &str, name: &str) -> Result<T, ChangeError> {
    refuse(ChangeErrorKind::TableMissing, format!("Table '{database}.{name}' doesn't exist"))
}

fn truncate(catalog: &mut Catalog, database: &str, name: &str) -> Result<(), ChangeError> {
    let Some(table) = catalog.table(database, name).cloned() else {
        return missing(database, name);
    };
    if table.id == SEQUENCES_TABLE {
        let message = format!("'{database}.{name}' belongs to the cluster");
        return refuse(ChangeErrorKind::NotSupported, message);
    }
    catalog.tables.remove(&table.id);
    let fragments = table.fragment_count;
    insert_table(catalog, table, fragments);
    Ok(())
}

fn create_index(
    catalog: &mut Catalog,
    database: &str,
    table: &str,
    name: &str,
    columns: &[u16],
) -> Result<(), ChangeError> {
    let Some(id) = catalog.table(database, table).map(|t| t.id) else {
        return missing(database, table);
    };
    let Some(table) = catalog.tables.get_mut(&id) else {
        return missing(database, table);
    };
    if table.indexes.iter().any(|i| i.name.eq_ignore_ascii_case(name)) {
        return refuse(ChangeErrorKind::NotSupported, format!("Duplicate key name '{name}'"));
    }
    let next = table.indexes.iter().map(|i| i.id.get()).max().unwrap_or(0) + 1;
    let mut changed = table.clone();
    changed.indexes.push(IndexDef {
        id: IndexId::new(next),
        name: name.to_string(),
        columns: columns.to_vec(),
    });
    changed.schema_version += 1;
    if let Some(fault) = fault_in(&changed) {
        return refuse(ChangeErrorKind::NotSupported, fault);
    }
    *table = changed;
    Ok(())
}

fn drop_index(
    catalog: &mut Catalog,
    database: &str,
    table: &str,
    name: &str,
) -> Result<(), ChangeError> {
    let Some(id) = catalog.table(database, table).map(|t| t.id) else {
        return missing(database, table);
    };
    let Some(table) = catalog.tables.get_mut(&id) else {
        return missing(database, table);
    };
    let Some(at) = table.indexes.iter().position(|i| i.name.eq_ignore_ascii_case(name)) else {
        let text = format!("Can't DROP '{name}'; check that column/key exists");
        return refuse(ChangeErrorKind::IndexMissing, text);
    };
    table.indexes.remove(at);
    table.schema_version += 1;
    Ok(())
}
