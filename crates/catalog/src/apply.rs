//! Changes of the catalog: what each does, and why one is refused.

mod rename;
mod views;

use crate::{
    Builder, Catalog, Change, ChangeError, ChangeErrorKind, ColumnDef, IndexDef, SEQUENCES_TABLE,
    SYSTEM_DATABASE, TableDef, Unique, unique,
};
use alloc::{
    format,
    string::{String, ToString},
    vec,
    vec::Vec,
};
use lats_base::{IndexId, TableId, limits};
use lats_values::{ColumnType, TypeKind};

pub(crate) fn initial() -> Catalog {
    let column =
        |name: &str| ColumnDef::new(name, ColumnType::new(TypeKind::BigInt).unsigned().not_null());
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
        partition_key: Vec::new(),
        index_of: None,
    };
    Catalog {
        version: 1,
        databases: vec![SYSTEM_DATABASE.to_string(), "test".to_string()],
        tables: core::iter::once(sequences).collect(),
        next_table_id: SEQUENCES_TABLE.get() + 1,
        ..Catalog::default()
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
        Change::CreateIndex { database, table, name, columns, builder } => {
            create_index(catalog, (database, table), name, columns, *builder)
        }
        Change::DropIndex { database, table, name } => drop_index(catalog, database, table, name),
        Change::IndexReady { table, entries } => index_ready(catalog, *table, *entries),
        Change::DropBuild { table, entries } => drop_build(catalog, *table, *entries),
        // The view has it; the new version says that it is known.
        Change::SetDurability { .. } => Ok(()),
        Change::PutView { view, way } => views::put(catalog, view, *way),
        Change::DropView { database, name, if_exists } => {
            views::drop(catalog, database, name, *if_exists)
        }
        Change::Rename { pairs } => rename::rename(catalog, pairs),
        Change::DropViews { views, if_exists } => views::drop_all(catalog, views, *if_exists),
        Change::CreateTemporary { table } => create_temporary(catalog, table, fragments),
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
    if name.is_empty() {
        return refuse(ChangeErrorKind::NotSupported, "a database needs a name".to_string());
    }
    check_name(name)?;
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
        let own = catalog.tables.values().filter(|t| t.index_of.is_none() && t.database == name);
        let own: Vec<TableId> = own.map(|t| t.id).collect();
        own.into_iter().for_each(|id| remove_table(catalog, id));
        catalog.views.retain(|v| v.database != name);
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
    if catalog.has_relation(&table.database, &table.name) {
        return if if_not_exists { Ok(()) } else { exists(&table.name) };
    }
    add_table(catalog, table, fragments)
}

/// Adds a table if there is none of its name, and if it is one that there may be.
fn add_table(catalog: &mut Catalog, table: &TableDef, fragments: u16) -> Result<(), ChangeError> {
    if catalog.has_relation(&table.database, &table.name) {
        return exists(&table.name);
    }
    let columns = table.columns.iter().map(|c| &c.name);
    let mut names = columns.chain(table.indexes.iter().map(|i| &i.name)).chain([&table.name]);
    names.try_for_each(|name| check_name(name))?;
    if table.comment.chars().count() > limits::COMMENT_CHARS_MAX {
        let message = format!(
            "Comment for table '{}' is too long (max = {})",
            table.name,
            limits::COMMENT_CHARS_MAX
        );
        return refuse(ChangeErrorKind::CommentTooLong, message);
    }
    if let Some(fault) = fault_in(table) {
        return refuse(ChangeErrorKind::NotSupported, fault);
    }
    check_table_count(catalog, 1 + table.unique_indexes().count())?;
    insert_table(catalog, table.clone(), fragments);
    Ok(())
}

fn create_temporary(
    catalog: &mut Catalog,
    table: &TableDef,
    fragments: u16,
) -> Result<(), ChangeError> {
    if table.owner().is_none() {
        let message = "a temporary table has a name that says whose it is".to_string();
        return refuse(ChangeErrorKind::NotSupported, message);
    }
    add_table(catalog, table, fragments)
}

fn exists(name: &str) -> Result<(), ChangeError> {
    refuse(ChangeErrorKind::TableExists, format!("Table '{name}' already exists"))
}

fn check_name(name: &str) -> Result<(), ChangeError> {
    if name.chars().count() <= limits::NAME_CHARS_MAX {
        return Ok(());
    }
    // As much of it as MySQL shows.
    let begin: String = name.chars().take(100).collect();
    refuse(ChangeErrorKind::NameTooLong, format!("Identifier name '{begin}' is too long"))
}

/// The whole catalog travels in one signal to who has none. A change that makes it smaller is always welcome.
pub(crate) fn check_size(before: usize, bytes: usize) -> Result<(), ChangeError> {
    if bytes <= limits::CATALOG_BYTES_MAX || bytes <= before {
        return Ok(());
    }
    let message = format!(
        "the definitions of all tables would need {bytes} bytes, of {} that there are; drop some tables, or \
         shorten comments and default values",
        limits::CATALOG_BYTES_MAX
    );
    refuse(ChangeErrorKind::NotSupported, message)
}

fn check_table_count(catalog: &Catalog, more: usize) -> Result<(), ChangeError> {
    if catalog.tables.len() + catalog.views.len() + more <= limits::TABLES_MAX {
        return Ok(());
    }
    let message = format!("a cluster holds at most {} tables and views", limits::TABLES_MAX);
    refuse(ChangeErrorKind::NotSupported, message)
}

/// Gives the table its id and puts it into the catalog, with the tables of its unique indexes.
fn insert_table(catalog: &mut Catalog, mut table: TableDef, fragments: u16) {
    table.id = next_id(catalog);
    table.schema_version = 1;
    table.fragment_count = fragments;
    table.index_of = None;
    for index in &mut table.indexes {
        if index.unique.is_some() {
            let entries = unique::table_def(next_id(catalog), (table.id, index.id), fragments);
            index.unique = Some(Unique { table: entries.id, builder: None });
            catalog.tables.insert(entries);
        }
    }
    catalog.tables.insert(table);
}

fn next_id(catalog: &mut Catalog) -> TableId {
    catalog.next_table_id += 1;
    TableId::new(catalog.next_table_id - 1)
}

/// Takes a table out, with the hidden tables of its indexes.
fn remove_table(catalog: &mut Catalog, id: TableId) {
    let Some(table) = catalog.tables.remove(id) else { return };
    for (_, unique) in table.unique_indexes() {
        catalog.tables.remove(unique.table);
    }
}

/// Takes indexes of a table away, with their hidden tables; false if there are none of these.
fn remove_indexes(catalog: &mut Catalog, id: TableId, gone: impl Fn(&IndexDef) -> bool) -> bool {
    let Some(table) = catalog.tables.get(&id) else { return false };
    let meant = table.indexes.iter().filter(|index| gone(index));
    let entries: Vec<TableId> = meant.filter_map(|i| i.unique.map(|u| u.table)).collect();
    if !table.indexes.iter().any(&gone) {
        return false;
    }
    catalog.tables.change(id, |def| {
        def.indexes.retain(|index| !gone(index));
        def.schema_version += 1;
    });
    entries.into_iter().for_each(|id| drop(catalog.tables.remove(id)));
    true
}

/// What is wrong with a definition that a client sent, if anything.
fn fault_in(table: &TableDef) -> Option<String> {
    let columns = table.columns.len();
    if columns == 0 || columns > limits::COLUMNS_MAX {
        return Some(format!("a table has 1 to {} columns", limits::COLUMNS_MAX));
    }
    let mut kinds = table.columns.iter().map(|column| column.column_type.kind);
    if let Some(kind) = kinds.find(|kind| !kind.is_valid()) {
        return Some(format!(
            "there are no columns of type {} with these limits",
            kind.base_name()
        ));
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
            remove_table(catalog, id);
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
    if table.unique_indexes().any(|(_, u)| u.builder.is_some()) {
        let message = format!("an index of '{database}.{name}' is being built; retry");
        return refuse(ChangeErrorKind::Temporary, message);
    }
    remove_table(catalog, table.id);
    let fragments = table.fragment_count;
    insert_table(catalog, table, fragments);
    Ok(())
}

fn create_index(
    catalog: &mut Catalog,
    (database, table): (&str, &str),
    name: &str,
    columns: &[u16],
    builder: Option<Builder>,
) -> Result<(), ChangeError> {
    let Some(table) = catalog.table(database, table).cloned() else {
        return missing(database, table);
    };
    if table.indexes.iter().any(|i| i.name.eq_ignore_ascii_case(name)) {
        return refuse(ChangeErrorKind::NotSupported, format!("Duplicate key name '{name}'"));
    }
    check_name(name)?;
    let next = table.indexes.iter().map(|i| i.id.get()).max().unwrap_or(0) + 1;
    let mut changed = table;
    changed.indexes.push(IndexDef {
        id: IndexId::new(next),
        name: name.to_string(),
        columns: columns.to_vec(),
        unique: None,
    });
    changed.schema_version += 1;
    if let Some(fault) = fault_in(&changed) {
        return refuse(ChangeErrorKind::NotSupported, fault);
    }
    if builder.is_some() {
        check_table_count(catalog, 1)?;
        let of = (changed.id, IndexId::new(next));
        let entries = unique::table_def(next_id(catalog), of, changed.fragment_count);
        if let Some(index) = changed.indexes.last_mut() {
            index.unique = Some(Unique { table: entries.id, builder });
        }
        catalog.tables.insert(entries);
    }
    catalog.tables.insert(changed);
    Ok(())
}

fn drop_index(
    catalog: &mut Catalog,
    database: &str,
    table: &str,
    name: &str,
) -> Result<(), ChangeError> {
    let Some(found) = catalog.table(database, table).map(|t| t.id) else {
        return missing(database, table);
    };
    let named = |i: &IndexDef| i.name.eq_ignore_ascii_case(name);
    if !remove_indexes(catalog, found, named) {
        let message = format!("Can't DROP '{name}'; check that column/key exists");
        return refuse(ChangeErrorKind::IndexMissing, message);
    }
    Ok(())
}

/// True for the index that is being built. (The id of an index may be given again; that of its hidden table is not.)
fn is_build(index: &IndexDef, entries: TableId) -> bool {
    index.unique.is_some_and(|u| u.table == entries && u.builder.is_some())
}

fn build_is_gone<T>() -> Result<T, ChangeError> {
    let message = "the index that was being built is gone".to_string();
    refuse(ChangeErrorKind::IndexMissing, message)
}

fn index_ready(catalog: &mut Catalog, table: TableId, entries: TableId) -> Result<(), ChangeError> {
    let found = catalog.tables.get(&table);
    let at = found.and_then(|def| def.indexes.iter().position(|i| is_build(i, entries)));
    let Some(at) = at else { return build_is_gone() };
    catalog.tables.change(table, |def| {
        if let Some(unique) = &mut def.indexes[at].unique {
            unique.builder = None;
        }
        def.schema_version += 1;
    });
    Ok(())
}

fn drop_build(catalog: &mut Catalog, table: TableId, entries: TableId) -> Result<(), ChangeError> {
    if remove_indexes(catalog, table, |index| is_build(index, entries)) {
        return Ok(());
    }
    build_is_gone()
}

pub(crate) fn drop_builds_of(catalog: &mut Catalog, builder: Builder) {
    let is_own = |i: &IndexDef| i.unique.is_some_and(|u| u.builder == Some(builder));
    let own = catalog.tables.values().filter(|def| def.owner() == Some(builder));
    let own: Vec<TableId> = own.map(|def| def.id).collect();
    let building = catalog.tables.values().filter(|def| def.indexes.iter().any(is_own));
    let building: Vec<TableId> = building.map(|def| def.id).collect();
    let changed = !own.is_empty() || !building.is_empty();
    own.into_iter().for_each(|id| remove_table(catalog, id));
    for id in building {
        remove_indexes(catalog, id, is_own);
    }
    if changed {
        catalog.version += 1;
    }
}
