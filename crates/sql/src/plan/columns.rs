//! The columns of a result: what sessions and clients are told of them.

use lats_mysql_wire::{ColumnDefinitions, ColumnFlags, ColumnInfo};
use lats_values::{ColumnType, Look};
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

/// What a client is told about a column of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnMeta {
    /// The database of its table.
    pub database: String,
    /// The alias of its table.
    pub table: String,
    /// The table.
    pub org_table: String,
    /// Its name in the result.
    pub name: String,
    /// Its name in the table; empty for expressions.
    pub org_name: String,
    /// Its type.
    pub column_type: ColumnType,
    /// It is in the primary key.
    pub primary_key: bool,
    /// An index begins with it.
    pub indexed: bool,
    /// It is a unique index by itself.
    pub unique: bool,
    /// AUTO_INCREMENT.
    pub auto_increment: bool,
    /// How its values are shown, beside what its type says.
    pub look: Look,
}

impl ColumnMeta {
    /// For an expression.
    pub fn expression(name: &str, column_type: ColumnType) -> Self {
        Self {
            database: String::new(),
            table: String::new(),
            org_table: String::new(),
            name: name.to_owned(),
            org_name: String::new(),
            column_type,
            primary_key: false,
            indexed: false,
            unique: false,
            auto_increment: false,
            look: Look::default(),
        }
    }

    /// For what is computed.
    pub fn computed(name: &str, column_type: ColumnType, look: Look) -> Self {
        Self { look, ..Self::expression(name, column_type) }
    }

    /// For a table's column.
    pub fn column(table: &crate::table::Table, alias: &str, at: u16, name: &str) -> Self {
        let def = table.def.columns.get(usize::from(at));
        Self {
            database: table.def.database.clone(),
            table: alias.to_owned(),
            org_table: table.def.name.clone(),
            org_name: def.map_or_else(String::new, |c| c.name.clone()),
            primary_key: table.def.primary_key.contains(&at),
            indexed: table.def.indexes.iter().any(|i| i.columns.first() == Some(&at)),
            unique: table.def.unique_indexes().any(|(i, _)| i.columns == [at]),
            auto_increment: def.is_some_and(|c| c.auto_increment),
            ..Self::expression(
                name,
                table
                    .types
                    .get(usize::from(at))
                    .cloned()
                    .unwrap_or_else(|| ColumnType::new(lats_values::TypeKind::BigInt)),
            )
        }
    }
}

impl ColumnMeta {
    /// How it looks on the wire.
    pub(crate) fn info(&self) -> ColumnInfo<'_> {
        ColumnInfo {
            schema: &self.database,
            table: &self.table,
            org_table: &self.org_table,
            name: &self.name,
            org_name: &self.org_name,
            column_type: &self.column_type,
            flags: ColumnFlags::NONE
                .with(ColumnFlags::PRIMARY_KEY, self.primary_key)
                .with(ColumnFlags::PART_KEY, self.primary_key || self.indexed)
                .with(ColumnFlags::UNIQUE_KEY, self.unique)
                .with(ColumnFlags::MULTIPLE_KEY, self.indexed && !self.unique)
                .with(ColumnFlags::AUTO_INCREMENT, self.auto_increment),
            look: self.look,
        }
    }
}

/// The columns of a result. Copies share what each run of a plan needs of them.
#[derive(Clone, Debug)]
pub struct Columns(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    columns: Box<[ColumnMeta]>,
    types: Box<[ColumnType]>,
    /// The columns of doubles with a fixed number of digits.
    fixed: Box<[(usize, u8)]>,
    /// Made when a client is told of the columns for the first time.
    definitions: OnceLock<ColumnDefinitions>,
}

impl Columns {
    /// Their types.
    pub(crate) fn types(&self) -> &[ColumnType] {
        &self.0.types
    }

    /// The columns of doubles with a fixed number of digits, and that number.
    pub(crate) fn fixed(&self) -> &[(usize, u8)] {
        &self.0.fixed
    }

    /// What clients are told of them.
    pub(crate) fn definitions(&self) -> &ColumnDefinitions {
        self.0.definitions.get_or_init(|| self.iter().map(ColumnMeta::info).collect())
    }
}

impl Deref for Columns {
    type Target = [ColumnMeta];

    fn deref(&self) -> &[ColumnMeta] {
        &self.0.columns
    }
}

impl FromIterator<ColumnMeta> for Columns {
    fn from_iter<I: IntoIterator<Item = ColumnMeta>>(columns: I) -> Self {
        let columns: Box<[ColumnMeta]> = columns.into_iter().collect();
        let types = columns.iter().map(|column| column.column_type.clone()).collect();
        let fixed = columns.iter().enumerate();
        let fixed = fixed.filter_map(|(at, of)| Some((at, of.look.decimals?))).collect();
        Self(Arc::new(Shared { columns, types, fixed, definitions: OnceLock::new() }))
    }
}

impl<const N: usize> From<[ColumnMeta; N]> for Columns {
    fn from(columns: [ColumnMeta; N]) -> Self {
        columns.into_iter().collect()
    }
}
