//! The catalog: databases, tables, columns, indexes; and the changes that DDL makes to it.
//!
//! The catalog is control state: every change goes through the consensus log and gives it a new
//! version. Its encoding starts with a format version ([`FORMAT`]).
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;
#[cfg(test)]
extern crate std;

mod apply;
pub mod defined;
mod encoded;
pub mod former;
pub mod relations;
mod spread;
pub mod statistics;
pub mod temporary;
#[cfg(test)]
mod tests;
pub mod unique;
mod update;
pub mod view;

pub use defined::{CheckOption, ViewAlgorithm, ViewDef, ViewSecurity};
pub use encoded::EncodedCatalog;
pub use relations::Relations;
pub use spread::Spread;
pub use update::{CatalogChanges, CatalogUpdate, VERSIONS_BETWEEN_RESTARTS_BITS};
pub use view::{AfterStop, ClusterConfig, ClusterMap, Group, Member, Replica, Roles, View};

use alloc::{
    string::{String, ToString},
    sync::Arc,
    vec::Vec,
};
use lats_base::{Incarnation, IndexId, NodeId, RefCode, TableId, limits};
use lats_values::{ColumnType, RowLayout, Value};
use serde::{Deserialize, Serialize};

/// Version of the encoding written by this release: 2, since there are views in the catalog.
pub const FORMAT: u8 = 2;

/// All databases and tables of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Catalog {
    /// Grows by one with each change.
    pub version: u64,
    /// Names of the databases.
    pub databases: Vec<String>,
    /// The tables by id.
    pub tables: Relations<TableDef>,
    /// The id that the next table or view gets.
    pub next_table_id: u32,
    /// The views by id. No table has the name or the id of a view.
    pub views: Relations<ViewDef>,
    /// What it remembers of its last changes.
    #[serde(skip)]
    history: update::History,
}

/// A table's definition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableDef {
    /// Its id; never reused.
    pub id: TableId,
    /// Changes when the definition does; requests carry it.
    pub schema_version: u32,
    /// The database it is in.
    pub database: String,
    /// Its name.
    pub name: String,
    /// Its columns, in order.
    pub columns: Vec<ColumnDef>,
    /// The primary key: column positions, in key order. Never empty: a table without a key gets a
    /// hidden one (see [`ColumnDef::hidden`]).
    pub primary_key: Vec<u16>,
    /// The columns of the primary key that say in which fragment a row is: rows that have them equal are
    /// together. Empty: all of them.
    pub partition_key: Vec<u16>,
    /// Secondary ordered indexes.
    pub indexes: Vec<IndexDef>,
    /// Number of fragments its rows are spread over.
    pub fragment_count: u16,
    /// The table's comment, as given.
    pub comment: String,
    /// For the hidden table of a unique index: the table and its index (see [`unique`]).
    pub index_of: Option<(TableId, IndexId)>,
}

/// A column's definition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ColumnDef {
    /// Its name.
    pub name: String,
    /// Its type, with nullability and collation.
    pub column_type: ColumnType,
    /// What an INSERT that does not name it stores.
    pub default: DefaultValue,
    /// Filled from the table's sequence when absent, NULL or 0.
    pub auto_increment: bool,
    /// ON UPDATE CURRENT_TIMESTAMP.
    pub on_update_now: bool,
    /// The generated key of a table that was created without one: not seen by `SELECT *`.
    pub hidden: bool,
}

impl ColumnDef {
    /// A column without anything special.
    pub fn new(name: &str, column_type: ColumnType) -> Self {
        Self {
            name: name.into(),
            column_type,
            default: DefaultValue::None,
            auto_increment: false,
            on_update_now: false,
            hidden: false,
        }
    }
}

/// A column's default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum DefaultValue {
    /// None: NULL for nullable columns, else an error in strict mode.
    None,
    /// A literal, already converted to the column's type.
    Literal(Value),
    /// CURRENT_TIMESTAMP.
    Now,
}

/// The id of the ordered index that every table has on its primary key.
pub const PRIMARY_INDEX: IndexId = IndexId::new(0);

/// A secondary index.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IndexDef {
    /// Its id within the table; never reused there.
    pub id: IndexId,
    /// Its name.
    pub name: String,
    /// Its columns, in order. The primary key's columns follow implicitly.
    pub columns: Vec<u16>,
    /// For a unique index: where its entries are.
    pub unique: Option<Unique>,
}

/// What makes an index unique: a hidden table with a row for each of its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unique {
    /// The hidden table; filled in by the catalog.
    pub table: TableId,
    /// Who fills it with the rows that were there before it (UNIQUE-7). None: it is complete, and
    /// may be read.
    pub builder: Option<Builder>,
}

/// The process that builds an index; when it dies, so does what it has begun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Builder {
    /// The node.
    pub node: NodeId,
    /// Its life.
    pub incarnation: Incarnation,
}

/// A change of the catalog, as DDL asks for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Change {
    /// CREATE DATABASE.
    CreateDatabase {
        /// Its name.
        name: String,
        /// Do nothing if it exists.
        if_not_exists: bool,
    },
    /// DROP DATABASE, with its tables.
    DropDatabase {
        /// Its name.
        name: String,
        /// Do nothing if it is missing.
        if_exists: bool,
    },
    /// CREATE TABLE. `id`, `schema_version` and `fragment_count` of 0 are filled in.
    CreateTable {
        /// The definition.
        table: TableDef,
        /// Do nothing if it exists.
        if_not_exists: bool,
    },
    /// DROP TABLE.
    DropTable {
        /// Its database.
        database: String,
        /// Its name.
        name: String,
        /// Do nothing if it is missing.
        if_exists: bool,
    },
    /// TRUNCATE TABLE: the same definition under a new id, empty.
    TruncateTable {
        /// Its database.
        database: String,
        /// Its name.
        name: String,
    },
    /// CREATE INDEX: each fragment builds it in place when it installs the catalog.
    CreateIndex {
        /// The table's database.
        database: String,
        /// The table.
        table: String,
        /// The index's name.
        name: String,
        /// Its columns.
        columns: Vec<u16>,
        /// For a unique index: who fills it. Writers are held to it from now on; it may be read
        /// after [`Change::IndexReady`].
        builder: Option<Builder>,
    },
    /// DROP INDEX.
    DropIndex {
        /// The table's database.
        database: String,
        /// The table.
        table: String,
        /// The index's name.
        name: String,
    },
    /// A unique index is complete.
    IndexReady {
        /// Its table.
        table: TableId,
        /// The index's hidden table.
        entries: TableId,
    },
    /// A unique index cannot be completed: it goes away again.
    DropBuild {
        /// Its table.
        table: TableId,
        /// The index's hidden table.
        entries: TableId,
    },
    /// What commits wait for, unless a session or transaction says otherwise ([`ClusterConfig::to_disk`]).
    SetDurability {
        /// For the disks of all replicas; false: for their memory.
        to_disk: bool,
    },
    /// CREATE VIEW and ALTER VIEW. The id is filled in.
    PutView {
        /// The definition.
        view: ViewDef,
        /// There is none of this name, there may be one, or there must be one.
        way: PutWay,
    },
    /// DROP VIEW.
    DropView {
        /// Its database.
        database: String,
        /// Its name.
        name: String,
        /// Do nothing if it is missing.
        if_exists: bool,
    },
    /// RENAME TABLE, of tables and views.
    Rename {
        /// What it is called, and what it is to be called, one after the other; all or none.
        pairs: Vec<(Place, Place)>,
    },
    /// DROP VIEW of several.
    DropViews {
        /// The views; all go or none.
        views: Vec<Place>,
        /// Do nothing about those that are missing.
        if_exists: bool,
    },
    /// CREATE TEMPORARY TABLE. It goes away by [`Change::DropTable`], or with the process that its name says (see [`temporary`]).
    CreateTemporary {
        /// The definition; in no database, and with a name of [`temporary::name`].
        table: TableDef,
    },
}

/// A database, and a table or view in it.
pub type Place = (String, String);

/// What stands under the name of a view that is put into the catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PutWay {
    /// Nothing: CREATE VIEW.
    New,
    /// Nothing, or a view: CREATE OR REPLACE VIEW.
    NewOrReplace,
    /// A view: ALTER VIEW.
    Replace,
}

/// Why the catalog refuses a change. `kind` picks the client's error number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeError {
    /// What kind of refusal it is.
    pub kind: ChangeErrorKind,
    /// What happened, for a person.
    pub message: String,
}

/// Kinds of refused changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChangeErrorKind {
    /// The database exists already (MySQL 1007).
    DatabaseExists,
    /// No such database, to be dropped (MySQL 1008).
    DatabaseMissing,
    /// No such database, to put a table in (MySQL 1049).
    DatabaseUnknown,
    /// The table exists already (MySQL 1050).
    TableExists,
    /// No such table (MySQL 1051 or 1146).
    TableMissing,
    /// No such index, to be dropped (MySQL 1091).
    IndexMissing,
    /// A limit was reached, or the definition is not one we support.
    NotSupported,
    /// The cluster cannot do it now; retry (MySQL 1297).
    Temporary,
    /// The name of something is too long (MySQL 1059).
    NameTooLong,
    /// A comment is too long (MySQL 1628).
    CommentTooLong,
    /// A part of all tables is lost (MySQL 1296).
    NodeGroupLost,
    /// A table where a view is meant, or the other way round (MySQL 1347).
    WrongObject,
    /// A view into another database (MySQL 1450).
    SchemaChange,
    /// Nobody knows whether it was made (50029): it is not simply asked for again.
    OutcomeUnknown,
}

impl ChangeErrorKind {
    /// True if asking again may help, and does no harm where it does not matter whether the change was made before.
    pub fn may_pass(self) -> bool {
        matches!(self, Self::Temporary | Self::OutcomeUnknown)
    }
}

impl TableDef {
    /// A table that is to be created: without indexes; its id and fragments are given to it then.
    pub fn new(database: &str, name: &str, columns: Vec<ColumnDef>, primary_key: Vec<u16>) -> Self {
        Self {
            id: TableId::default(),
            schema_version: 0,
            database: database.to_string(),
            name: name.to_string(),
            columns,
            primary_key,
            indexes: Vec::new(),
            fragment_count: 0,
            comment: String::new(),
            partition_key: Vec::new(),
            index_of: None,
        }
    }

    /// The layout of its rows.
    pub fn layout(&self) -> RowLayout {
        let types: Vec<ColumnType> = self.columns.iter().map(|c| c.column_type.clone()).collect();
        RowLayout::new(&types)
    }

    /// The position of the column with this name (case is ignored, as MySQL does).
    pub fn column(&self, name: &str) -> Option<u16> {
        let at = self.columns.iter().position(|c| c.name.eq_ignore_ascii_case(name))?;
        u16::try_from(at).ok()
    }

    /// The index with this id.
    pub fn index(&self, id: IndexId) -> Option<&IndexDef> {
        self.indexes.iter().find(|i| i.id == id)
    }

    /// The columns of an index, without those of the primary key behind them.
    pub fn key_columns(&self, id: IndexId) -> Option<&[u16]> {
        match id {
            PRIMARY_INDEX => Some(&self.primary_key),
            id => self.index(id).map(|index| &index.columns[..]),
        }
    }

    /// Its unique indexes, with the hidden table of each.
    pub fn unique_indexes(&self) -> impl Iterator<Item = (&IndexDef, Unique)> {
        self.indexes.iter().filter_map(|index| Some((index, index.unique?)))
    }
}

impl Catalog {
    /// The catalog of a new cluster: the system database with the sequences table.
    pub fn initial() -> Self {
        apply::initial()
    }

    /// The table with this name. Database and table names are case-sensitive.
    pub fn table(&self, database: &str, name: &str) -> Option<&TableDef> {
        self.tables.named(database, name).map(Arc::as_ref)
    }

    /// The view with this name.
    pub fn view(&self, database: &str, name: &str) -> Option<&ViewDef> {
        self.views.named(database, name).map(Arc::as_ref)
    }

    /// True if there is a table or a view with this name.
    pub fn has_relation(&self, database: &str, name: &str) -> bool {
        self.table(database, name).is_some() || self.view(database, name).is_some()
    }

    /// True if there is a database with this name.
    pub fn has_database(&self, name: &str) -> bool {
        self.databases.iter().any(|d| d == name)
    }

    /// Makes a change, or refuses it and stays as it was.
    ///
    /// # Errors
    /// Says why the change was refused.
    pub fn apply(&mut self, change: &Change, fragments: u16) -> Result<(), ChangeError> {
        let (version, next_table_id) = (self.version, self.next_table_id);
        let of_databases =
            matches!(change, Change::CreateDatabase { .. } | Change::DropDatabase { .. });
        let databases = of_databases.then(|| self.databases.clone());
        let before = self.definition_bytes();
        let applied = apply::apply(self, change, fragments);
        let changes = self.take_note_of(databases);
        let bytes = self.bytes_after(before, &changes);
        let result = applied.and_then(|()| apply::check_size(before, bytes));
        match result {
            Ok(()) => self.remember(&changes, bytes),
            Err(_) => {
                (self.version, self.next_table_id) = (version, next_table_id);
                self.tables.take_back(changes.tables);
                self.views.take_back(changes.views);
                if let Some(databases) = changes.databases {
                    self.databases = databases;
                }
            }
        }
        result
    }

    fn take_note_of(&mut self, databases: Option<Vec<String>>) -> update::Changes {
        let (tables, views) = (self.tables.changes(), self.views.changes());
        update::Changes { tables, views, databases }
    }

    /// A node's life is over: the indexes that it was building go away, and its temporary tables.
    pub fn drop_builds_of(&mut self, builder: Builder) {
        let (version, before) = (self.version, self.definition_bytes());
        apply::drop_builds_of(self, builder);
        let changes = self.take_note_of(None);
        if self.version > version {
            let bytes = self.bytes_after(before, &changes);
            self.remember(&changes, bytes);
        }
    }

    /// Its encoding: the format version, then the catalog.
    pub fn encode(&self) -> Vec<u8> {
        encode(self)
    }

    /// Reads what [`Catalog::encode`] wrote.
    ///
    /// # Errors
    /// [`RefCode::VersionUnsupported`] for another format, [`RefCode::RequestMalformed`] for bytes
    /// that are no catalog.
    pub fn decode(bytes: &[u8]) -> Result<Self, RefCode> {
        decode(bytes)
    }
}

/// Encodes any catalog record with the format version in front.
pub fn encode<T: Serialize>(record: &T) -> Vec<u8> {
    let mut out = alloc::vec![FORMAT];
    // Encoding into memory cannot fail: every record is a plain tree without unsized maps.
    if let Ok(bytes) = postcard::to_allocvec(record) {
        out.extend_from_slice(&bytes);
    }
    out
}

/// Decodes what [`encode`] wrote.
///
/// # Errors
/// As [`Catalog::decode`].
pub fn decode<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, RefCode> {
    decode_format(FORMAT, bytes)
}

fn decode_format<'a, T: Deserialize<'a>>(format: u8, bytes: &'a [u8]) -> Result<T, RefCode> {
    match bytes.split_first() {
        Some((found, rest)) if *found == format => {
            postcard::from_bytes(rest).map_err(|_| RefCode::RequestMalformed)
        }
        Some(_) => Err(RefCode::VersionUnsupported),
        None => Err(RefCode::RequestMalformed),
    }
}

/// The name of the system database.
pub const SYSTEM_DATABASE: &str = "latsdb";
/// The table of AUTO_INCREMENT sequences: (table_id BIGINT UNSIGNED primary key, next_value BIGINT UNSIGNED).
pub const SEQUENCES_TABLE: TableId = TableId::new(1);
const _: () = assert!(limits::COLUMNS_MAX <= u16::MAX as usize);
