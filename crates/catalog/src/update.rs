//! What has changed in a catalog since a version: it travels instead of the whole (SCHEMA-6).

use crate::{
    Catalog, TableDef, ViewDef,
    relations::{NUMBER_BYTES, bytes_of},
};
use alloc::{
    collections::{BTreeSet, VecDeque},
    string::String,
    sync::Arc,
    vec::Vec,
};
use lats_base::TableId;
use serde::{Deserialize, Serialize};

/// A catalog remembers its last changes, so many definitions of them.
const REMEMBERED: usize = 4_096;

/// More definitions than are made between two restarts of a cluster.
pub const VERSIONS_BETWEEN_RESTARTS_BITS: u32 = 32;

/// What has changed since a version. It fits every version from that one on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CatalogChanges {
    /// The version that it is told from.
    pub since: u64,
    /// The version that it leads to.
    pub version: u64,
    /// All databases, if there are others now.
    pub databases: Option<Vec<String>>,
    /// As [`Catalog::next_table_id`].
    pub next_table_id: u32,
    /// Tables that are new or have changed.
    pub tables: Vec<Arc<TableDef>>,
    /// Views that are new or have changed.
    pub views: Vec<Arc<ViewDef>>,
    /// Tables and views that are gone.
    pub gone: Vec<TableId>,
}

/// What makes an older catalog a newer one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum CatalogUpdate {
    /// All of it: the older one is too old, or unknown.
    Whole(Catalog),
    /// What has changed.
    Changes(CatalogChanges),
}

impl CatalogUpdate {
    /// The version that it leads to.
    pub fn version(&self) -> u64 {
        match self {
            Self::Whole(catalog) => catalog.version,
            Self::Changes(changes) => changes.version,
        }
    }
}

/// What a catalog remembers of its changes. It is no part of what the catalog says: a process that has been told the whole catalog
/// remembers nothing of what was before.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    /// All changes after this version are remembered.
    since: u64,
    /// The version that has changed a definition, in the order of the versions.
    touched: VecDeque<(u64, TableId)>,
    /// The version that has changed the databases last.
    databases: u64,
    /// Encoded bytes of all definitions; none: they were not counted yet.
    bytes: Option<usize>,
}

impl PartialEq for History {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl History {
    fn note(&mut self, version: u64, ids: impl Iterator<Item = TableId>, databases: bool) {
        if self.since == 0 {
            // Nothing is known of what has led to the version before this one.
            self.since = version.saturating_sub(1);
        }
        if databases {
            self.databases = version;
        }
        self.touched.extend(ids.map(|id| (version, id)));
        while self.touched.len() > REMEMBERED
            && let Some((version, _)) = self.touched.pop_front()
        {
            // Others of the same version may be forgotten next.
            self.since = self.since.max(version);
        }
    }
}

impl Catalog {
    /// Encoded bytes of all definitions. (All nodes must agree on it, wherever they have their catalogs from.)
    pub(crate) fn definition_bytes(&mut self) -> usize {
        match self.history.bytes {
            Some(bytes) => bytes,
            None => {
                let names = bytes_of_names(&self.databases);
                let bytes = self.tables.bytes() + self.views.bytes() + names;
                self.history.bytes = Some(bytes);
                bytes
            }
        }
    }

    /// Gives how many bytes there are after changes.
    pub(crate) fn bytes_after(&self, before: usize, changes: &Changes) -> usize {
        let mut seen = BTreeSet::new();
        let mut bytes = before;
        for (id, former) in changes.tables.iter().filter(|(id, _)| seen.insert(*id)) {
            bytes += self.tables.get(id).map_or(0, bytes_of);
            bytes = bytes.saturating_sub(former.as_ref().map_or(0, bytes_of));
        }
        seen.clear();
        for (id, former) in changes.views.iter().filter(|(id, _)| seen.insert(*id)) {
            bytes += self.views.get(id).map_or(0, bytes_of);
            bytes = bytes.saturating_sub(former.as_ref().map_or(0, bytes_of));
        }
        if let Some(former) = &changes.databases {
            bytes =
                (bytes + bytes_of_names(&self.databases)).saturating_sub(bytes_of_names(former));
        }
        bytes
    }

    /// Remembers changes that are made, in the catalog's version.
    pub(crate) fn remember(&mut self, changes: &Changes, bytes: usize) {
        let tables = changes.tables.iter().map(|(id, _)| *id);
        let ids: BTreeSet<TableId> =
            tables.chain(changes.views.iter().map(|(id, _)| *id)).collect();
        self.history.note(self.version, ids.into_iter(), changes.databases.is_some());
        self.history.bytes = Some(bytes);
    }

    /// What has changed since a version; none if that is not remembered.
    pub fn changes_since(&self, version: u64) -> Option<CatalogChanges> {
        let history = &self.history;
        let is_remembered = history.since > 0 && history.since <= version;
        if !(is_remembered || version == self.version) || version > self.version {
            return None;
        }
        let later = history.touched.iter().rev().take_while(|(at, _)| *at > version);
        let ids: BTreeSet<TableId> = later.map(|(_, id)| *id).collect();
        let is_gone = |id: &TableId| !self.tables.contains_key(id) && !self.views.contains_key(id);
        Some(CatalogChanges {
            since: version,
            version: self.version,
            databases: (history.databases > version).then(|| self.databases.clone()),
            next_table_id: self.next_table_id,
            tables: ids.iter().filter_map(|id| self.tables.get(id).cloned()).collect(),
            views: ids.iter().filter_map(|id| self.views.get(id).cloned()).collect(),
            gone: ids.into_iter().filter(is_gone).collect(),
        })
    }

    /// An encoded [`CatalogUpdate`] for who has a version; 0 for who has none.
    pub fn update_since(&self, version: u64) -> Vec<u8> {
        match self.changes_since(version) {
            Some(changes) if version > 0 => crate::encode(&CatalogUpdate::Changes(changes)),
            // The same bytes as those of the enum, without a copy of the catalog.
            _ => crate::encode(&WholeRef::Whole(self)),
        }
    }

    /// SCHEMA-6: the cluster restarts. Definitions may be void whose versions clients have heard of: no version is given twice.
    pub fn begin_again(&mut self, restarts: u32) {
        self.version = self.version.max(u64::from(restarts) << VERSIONS_BETWEEN_RESTARTS_BITS) + 1;
        self.history = History::default();
    }

    /// True if an update does not have all that has changed since this version.
    pub fn is_far_from(&self, update: &CatalogUpdate) -> bool {
        matches!(update, CatalogUpdate::Changes(changes) if changes.since > self.version)
    }

    /// Becomes newer. What leads to an older version, or to this one, changes nothing, and neither does what begins later
    /// ([`Catalog::is_far_from`]).
    pub fn update(&mut self, update: CatalogUpdate) {
        if self.is_far_from(&update) || update.version() <= self.version {
            return;
        }
        match update {
            CatalogUpdate::Whole(whole) => *self = whole,
            CatalogUpdate::Changes(changes) => self.take_changes(changes),
        }
    }

    fn take_changes(&mut self, changes: CatalogChanges) {
        self.version = changes.version;
        self.next_table_id = changes.next_table_id;
        if let Some(databases) = changes.databases {
            self.databases = databases;
        }
        for id in changes.gone {
            self.tables.remove(id);
            self.views.remove(id);
        }
        // Names may have been exchanged: what has one now comes after what had it.
        changes.tables.iter().for_each(|def| drop(self.tables.remove(def.id)));
        changes.tables.into_iter().for_each(|def| self.tables.insert(def));
        changes.views.iter().for_each(|def| drop(self.views.remove(def.id)));
        changes.views.into_iter().for_each(|def| self.views.insert(def));
        // Who is told does not tell others.
        (self.history, _) = (History::default(), (self.tables.changes(), self.views.changes()));
    }
}

fn bytes_of_names(databases: &[String]) -> usize {
    databases.iter().map(|name| NUMBER_BYTES + name.len()).sum()
}

#[derive(Serialize)]
enum WholeRef<'a> {
    Whole(&'a Catalog),
}

/// What a change has changed.
#[derive(Debug)]
pub(crate) struct Changes {
    pub(crate) tables: Vec<(TableId, Option<Arc<TableDef>>)>,
    pub(crate) views: Vec<(TableId, Option<Arc<ViewDef>>)>,
    /// The databases as they were, if they have changed.
    pub(crate) databases: Option<Vec<String>>,
}
