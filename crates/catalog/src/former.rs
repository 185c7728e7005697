//! What earlier releases have written: their files stay readable.

use crate::{Catalog, TableDef};
use alloc::{collections::BTreeMap, string::String, vec::Vec};
use lats_base::{RefCode, TableId};
use serde::{Deserialize, Serialize};

/// The format of releases without views.
pub const FORMAT_BEFORE_VIEWS: u8 = 1;

/// A catalog as it was before there were views.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CatalogBeforeViews {
    /// As [`Catalog::version`].
    pub version: u64,
    /// As [`Catalog::databases`].
    pub databases: Vec<String>,
    /// As [`Catalog::tables`].
    pub tables: BTreeMap<TableId, TableDef>,
    /// As [`Catalog::next_table_id`].
    pub next_table_id: u32,
}

impl From<CatalogBeforeViews> for Catalog {
    fn from(former: CatalogBeforeViews) -> Self {
        let CatalogBeforeViews { version, databases, tables, next_table_id } = former;
        let tables = tables.into_values().collect();
        Self { version, databases, tables, next_table_id, ..Self::default() }
    }
}

/// Decodes a record that a release without views has written.
///
/// # Errors
/// As [`crate::decode`].
pub fn decode_before_views<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, RefCode> {
    crate::decode_format(FORMAT_BEFORE_VIEWS, bytes)
}
