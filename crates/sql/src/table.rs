//! Tables as plans hold them.

use crate::error;
use lats_catalog::{Catalog, SYSTEM_DATABASE, TableDef};
use lats_mysql_syntax::Tree;
use lats_mysql_syntax::tree::TableName;
use lats_values::{ColumnType, RowLayout, SqlError, Value};
use std::sync::Arc;

/// A table's definition with what is derived from it.
#[derive(Debug)]
pub struct Table {
    /// The definition.
    pub def: TableDef,
    /// The columns' types.
    pub types: Vec<ColumnType>,
    /// The layout of its rows.
    pub layout: RowLayout,
}

impl Table {
    /// From the catalog's definition.
    pub fn new(def: &TableDef) -> Self {
        let types: Vec<ColumnType> = def.columns.iter().map(|c| c.column_type.clone()).collect();
        Self { def: def.clone(), layout: RowLayout::new(&types), types }
    }

    /// Positions of the columns that `*` stands for.
    pub fn visible(&self) -> impl Iterator<Item = u16> + '_ {
        let numbered = self.def.columns.iter().enumerate();
        numbered.filter(|(_, c)| !c.hidden).filter_map(|(at, _)| u16::try_from(at).ok())
    }

    /// A visible column's position.
    pub fn column(&self, name: &str) -> Option<u16> {
        self.def.column(name).filter(|at| !self.def.columns[usize::from(*at)].hidden)
    }

    /// A column's name.
    pub fn column_name(&self, at: u16) -> &str {
        self.def.columns.get(usize::from(at)).map_or("", |c| &c.name)
    }

    /// True if it has unique indexes, complete or not.
    pub fn has_unique_index(&self) -> bool {
        self.def.unique_indexes().next().is_some()
    }

    /// The number in a column of a row image; 0 if it is none, or not positive.
    pub fn positive(&self, row: &[u8], column: u16) -> u64 {
        match self.layout.value(row, column) {
            Value::Int(number) => u64::try_from(number).unwrap_or(0),
            Value::UInt(number) => number,
            _ => 0,
        }
    }

    /// The encoded primary key of a row image.
    pub fn key_of(&self, row: &[u8]) -> Vec<u8> {
        let mut key = Vec::with_capacity(16);
        self.layout.key_of(row, &self.def.primary_key, &mut key);
        key
    }
}

/// Finds a table.
///
/// # Errors
/// 1046, 1049, 1146.
pub fn find_table(
    catalog: &Catalog,
    tree: &Tree,
    name: &TableName,
    database: Option<&str>,
) -> Result<Arc<Table>, SqlError> {
    let (database, table) = crate::syntax::split_name(tree, name, database)?;
    find(catalog, &database, &table).map(|def| Arc::new(Table::new(def)))
}

/// Finds a table's definition.
///
/// # Errors
/// 1049, 1146; 1347 for a view.
pub fn find<'a>(
    catalog: &'a Catalog,
    database: &str,
    table: &str,
) -> Result<&'a TableDef, SqlError> {
    if crate::show::is_virtual_database(database) {
        return Err(error::not_supported(&format!("{database}.{table}; use SHOW")));
    }
    if !catalog.has_database(database) {
        return Err(error::unknown_database(database));
    }
    catalog.table(database, table).ok_or_else(|| match catalog.view(database, table) {
        Some(_) => error::wrong_object(database, table, "BASE TABLE"),
        None => error::unknown_table(database, table),
    })
}

/// Refuses changes of the tables that only the cluster itself writes.
///
/// # Errors
/// 1044.
pub fn check_not_system(database: &str) -> Result<(), SqlError> {
    if database == SYSTEM_DATABASE || crate::show::is_virtual_database(database) {
        let text = format!("Access denied to database '{database}'");
        return Err(error::make(1044, "42000", &text));
    }
    Ok(())
}
