//! CREATE TABLE: from its text to a definition for the catalog.

use super::columns::column_def;
use super::options::TableOptions;
use super::{keys, not_unique, partition, place};
use crate::error::{self, Failure};
use crate::session::Session;
use crate::store::Store;
use crate::table::find;
use lats_base::{IndexId, TableId, limits};
use lats_catalog::{ColumnDef, IndexDef, TableDef, Unique};
use lats_mysql_syntax::Tree;
use lats_mysql_syntax::tree::{Partitioning, TableElement, TableName};
use lats_values::SqlError;

/// What the columns of a row may take together by their declaration, as in MySQL.
const ROW_BYTES_DECLARED_MAX: usize = 65_535;

impl<S: Store> Session<S> {
    /// The definition of a table under another name: CREATE TABLE … LIKE.
    pub(super) fn table_like(
        &self,
        tree: &Tree,
        source: &TableName,
        to: &(String, String),
    ) -> Result<TableDef, Failure> {
        let from = place(tree, source, self.database.as_deref())?;
        if from == *to {
            return Err(not_unique(&to.1).into());
        }
        let catalog = self.catalog();
        let source = find(&catalog, &from.0, &from.1)?;
        // Indexes that are being built are not there yet.
        let complete = |index: &&IndexDef| index.unique.is_none_or(|u| u.builder.is_none());
        let numbered = source.indexes.iter().filter(complete).zip(1u16..);
        let indexes = numbered.map(|(index, number)| IndexDef {
            id: IndexId::new(number),
            unique: index.unique.map(|_| to_be_filled()),
            ..index.clone()
        });
        let (database, name) = to.clone();
        Ok(TableDef {
            id: TableId::new(0),
            schema_version: 0,
            fragment_count: 0,
            database,
            name,
            indexes: indexes.collect(),
            ..source.clone()
        })
    }
}

/// A unique index without the table of its entries, which the catalog gives it.
pub(super) fn to_be_filled() -> Unique {
    Unique { table: TableId::new(0), builder: None }
}

pub(super) fn table_def(
    tree: &Tree,
    (elements, selected): (&[TableElement], &[ColumnDef]),
    options: TableOptions,
    partitioning: Option<&Partitioning>,
    (database, name): (String, String),
) -> Result<TableDef, SqlError> {
    let mut table = TableDef::new(&database, &name, Vec::new(), Vec::new());
    table.comment.clone_from(&options.comment);
    let nullable = add_columns(&mut table, tree, (elements, selected), &options)?;
    check_size(&table)?;
    for element in elements {
        match element {
            TableElement::Column(_) => {}
            TableElement::Key(key) => keys::add_key(&mut table, tree, key)?,
            TableElement::ForeignKey(_) => return Err(error::not_supported("FOREIGN KEY")),
            TableElement::Check(_) => return Err(error::not_supported("CHECK constraints")),
        }
    }
    keys::order_indexes(&mut table);
    keys::finish_keys(&mut table, &nullable)?;
    if let Some(partitioning) = partitioning {
        table.partition_key = partition::key_of(tree, &table, partitioning)?;
        partition::check_unique_indexes(&table)?;
    }
    Ok(table)
}

/// Adds the columns, and the keys that their definitions ask for. Gives the columns for which NULL was written.
fn add_columns(
    table: &mut TableDef,
    tree: &Tree,
    (elements, selected): (&[TableElement], &[ColumnDef]),
    options: &TableOptions,
) -> Result<Vec<u16>, SqlError> {
    let (mut uniques, mut nullable) = (Vec::new(), Vec::new());
    let columns = elements.iter().filter_map(|element| match element {
        TableElement::Column(column) => Some(column),
        _ => None,
    });
    for (column, at) in columns.zip(0u16..) {
        let column = column_def(tree, column, options.collation)?;
        if table.column(&column.def.name).is_some() {
            return Err(keys::duplicate_column(&column.def.name));
        }
        if column.is_key && !table.primary_key.is_empty() {
            return Err(keys::multiple_primary_keys());
        }
        table.columns.push(column.def);
        if column.is_key {
            table.primary_key = vec![at];
        }
        uniques.extend(column.is_unique.then_some(at));
        nullable.extend(column.is_null.then_some(at));
    }
    // The columns of CREATE TABLE … SELECT that have no definition come behind the others.
    for column in selected {
        if table.column(&column.name).is_none() {
            table.columns.push(column.clone());
        }
    }
    if table.columns.is_empty() {
        return Err(error::make(1113, "42000", "A table must have at least 1 column"));
    }
    // One place is left for the key that the cluster may add.
    if table.columns.len() >= limits::COLUMNS_MAX {
        return Err(error::make(1117, "HY000", "Too many columns"));
    }
    for at in uniques {
        keys::add_index(table, None, vec![at], true)?;
    }
    Ok(nullable)
}

fn check_size(table: &TableDef) -> Result<(), SqlError> {
    let types = table.columns.iter().map(|column| &column.column_type);
    let fixed = types.filter(|t| !keys::is_blob(t.kind));
    if fixed.map(|t| t.max_bytes()).sum::<usize>() <= ROW_BYTES_DECLARED_MAX {
        return Ok(());
    }
    let text = format!(
        "Row size too large. The maximum row size for the used table type, not counting BLOBs, \
         is {ROW_BYTES_DECLARED_MAX}. This includes storage overhead, check the manual. You have to \
         change some columns to TEXT or BLOBs"
    );
    Err(error::make(1118, "42000", &text))
}
