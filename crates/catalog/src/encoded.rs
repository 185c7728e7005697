//! The encoding of a catalog, kept up to date as the catalog changes: who writes it down after each change encodes what has changed, and
//! copies the rest.

use crate::{Catalog, CatalogChanges, relations::Relation};
use alloc::{collections::BTreeMap, sync::Arc, vec::Vec};
use lats_base::TableId;
use serde::Serialize;

/// Encoded definitions of one version of a catalog.
#[derive(Debug, Default)]
pub struct EncodedCatalog {
    version: u64,
    tables: Definitions,
    views: Definitions,
}

impl EncodedCatalog {
    /// Appends the encoding of a catalog, without a format version.
    pub fn append(&mut self, catalog: &Catalog, out: &mut Vec<u8>) {
        match catalog.changes_since(self.version).filter(|_| self.version > 0) {
            Some(changes) => self.change(&changes),
            None => {
                self.tables = Definitions::of(catalog.tables.values());
                self.views = Definitions::of(catalog.views.values());
            }
        }
        self.version = catalog.version;
        push(&(catalog.version, &catalog.databases), out);
        self.tables.append(out);
        push(&catalog.next_table_id, out);
        self.views.append(out);
    }

    fn change(&mut self, changes: &CatalogChanges) {
        for id in &changes.gone {
            self.tables.replace(*id, None);
            self.views.replace(*id, None);
        }
        for def in &changes.tables {
            self.tables.replace(def.id, Some(&bytes(&(def.id, def))));
        }
        for def in &changes.views {
            self.views.replace(def.id, Some(&bytes(&(def.id, def))));
        }
    }
}

/// Ids and definitions, encoded, one after the other in the order of the ids: a map but for its length.
#[derive(Debug, Default)]
struct Definitions {
    bytes: Vec<u8>,
    lengths: BTreeMap<TableId, usize>,
}

impl Definitions {
    fn of<'a, T: Relation + 'a>(all: impl Iterator<Item = &'a Arc<T>>) -> Self {
        let mut made = Self::default();
        for def in all {
            let before = made.bytes.len();
            push(&(def.id(), def), &mut made.bytes);
            made.lengths.insert(def.id(), made.bytes.len() - before);
        }
        made
    }

    /// Puts an encoded definition in the place of the one with its id; none: takes that out.
    fn replace(&mut self, id: TableId, encoded: Option<&[u8]>) {
        let former = self.lengths.remove(&id).unwrap_or_default();
        // New ones have the largest ids: nothing moves for them.
        let behind: usize = self.lengths.range(id..).map(|(_, length)| length).sum();
        let end = self.bytes.len() - behind;
        let encoded = encoded.unwrap_or_default();
        self.bytes.splice(end - former..end, encoded.iter().copied());
        if !encoded.is_empty() {
            self.lengths.insert(id, encoded.len());
        }
    }

    fn append(&self, out: &mut Vec<u8>) {
        push(&self.lengths.len(), out);
        out.extend_from_slice(&self.bytes);
    }
}

fn bytes(value: &impl Serialize) -> Vec<u8> {
    let mut out = Vec::new();
    push(value, &mut out);
    out
}

/// Appends an encoding: that of a record is those of its fields, one after the other.
fn push(value: &impl Serialize, out: &mut Vec<u8>) {
    // Encoding into memory cannot fail: every record is a plain tree without unsized maps.
    if let Ok(bytes) = postcard::to_allocvec(value) {
        out.extend_from_slice(&bytes);
    }
}
