//! TEMPORARY tables of a session. Each is a table of the cluster in no database, so that its rows are stored, read and rolled back as
//! all others; the session alone knows under which name it stands. Statements of the session are planned from a catalog in which its
//! temporary tables have the places of what they hide.
//!
//! A table goes away when it is dropped, or with its session; if the process dies, with the process (`catalog/src/temporary.rs`).

use super::Session;
use crate::error;
use crate::store::Store;
use lats_catalog::{Catalog, Change, TableDef, temporary};
use lats_values::SqlError;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Temporary tables of a session.
const TABLES_MAX: usize = 1_000;
/// How long a table that could not be dropped is tried to be dropped.
const TRIES: u32 = 3_600;
const PAUSE: Duration = Duration::from_secs(1);

/// A database, and a name in it.
type Place = (String, String);

/// The temporary tables of a session.
pub(crate) struct Temporaries<S: Store> {
    store: S,
    /// The names under which they are stored, by those that the session gave them.
    names: BTreeMap<Place, String>,
    /// Tables that are dropped when the transaction has ended which may have changed them.
    dropped: Vec<String>,
    /// The catalog with them, made from the catalog that had its version.
    known: Mutex<Option<Arc<Catalog>>>,
}

impl<S: Store> Temporaries<S> {
    pub(super) fn new(store: S) -> Self {
        Self { store, names: BTreeMap::new(), dropped: Vec::new(), known: Mutex::new(None) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// True if there is one at this place.
    pub(crate) fn has(&self, database: &str, name: &str) -> bool {
        !self.names.is_empty() && self.names.contains_key(&(database.to_owned(), name.to_owned()))
    }

    /// The catalog as the session sees it.
    pub(super) fn catalog(&self, base: Arc<Catalog>) -> Arc<Catalog> {
        if self.names.is_empty() {
            return base;
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match &*known {
            Some(catalog) if catalog.version == base.version => Arc::clone(catalog),
            _ => {
                let made = Arc::new(self.beside(&base));
                *known = Some(Arc::clone(&made));
                made
            }
        }
    }

    /// The catalog in which the session's tables have the places of others.
    fn beside(&self, base: &Catalog) -> Catalog {
        // One look at all tables finds those of the session, and one more what they hide.
        let is_temporary =
            |table: &&Arc<TableDef>| table.database.is_empty() && table.index_of.is_none();
        let stored: BTreeMap<&str, &Arc<TableDef>> =
            base.tables.values().filter(is_temporary).map(|t| (t.name.as_str(), t)).collect();
        let own: BTreeMap<(&str, &str), &Arc<TableDef>> = self
            .names
            .iter()
            .filter_map(|((database, name), at)| {
                Some(((database.as_str(), name.as_str()), *stored.get(at.as_str())?))
            })
            .collect();
        let is_hidden = |database: &str, name: &str| own.contains_key(&(database, name));
        let mut catalog = base.clone();
        catalog.tables.retain(|table| !is_hidden(&table.database, &table.name));
        catalog.views.retain(|view| !is_hidden(&view.database, &view.name));
        let mut databases: BTreeSet<&str> = base.databases.iter().map(String::as_str).collect();
        for ((database, name), def) in own {
            let def =
                TableDef { database: database.into(), name: name.into(), ..TableDef::clone(def) };
            catalog.tables.insert(def);
            if databases.insert(database) {
                catalog.databases.push(database.to_owned());
            }
        }
        catalog
    }

    fn forget(&self) {
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl<S: Store> Drop for Temporaries<S> {
    fn drop(&mut self) {
        let names = std::mem::take(&mut self.names).into_values();
        let all: Vec<String> = names.chain(std::mem::take(&mut self.dropped)).collect();
        clean_up(&self.store, all);
    }
}

/// Drops tables, also when nobody waits for it.
fn clean_up<S: Store>(store: &S, names: Vec<String>) {
    // Without a runtime the process ends, and its tables with it.
    if !names.is_empty()
        && let Ok(runtime) = tokio::runtime::Handle::try_current()
    {
        runtime.spawn(drop_all(store.clone(), names));
    }
}

async fn drop_all<S: Store>(store: S, mut names: Vec<String>) {
    for _ in 0..TRIES {
        let mut left = Vec::new();
        for name in names {
            match store.change(drop_of(&name)).await {
                Ok(Err(refused)) if refused.kind.may_pass() => left.push(name),
                Err(_) => left.push(name),
                Ok(_) => {}
            }
        }
        if left.is_empty() {
            return;
        }
        names = left;
        tokio::time::sleep(PAUSE).await;
    }
}

fn drop_of(name: &str) -> Change {
    Change::DropTable { database: String::new(), name: name.to_owned(), if_exists: true }
}

impl<S: Store> Session<S> {
    /// The newest catalog, with the session's temporary tables.
    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        self.temporaries.catalog(self.shared.store.catalog())
    }

    /// The database and the name under which a table is stored.
    pub(crate) fn stored(&self, place: Place) -> Place {
        match self.temporaries.names.get(&place) {
            Some(name) => (String::new(), name.clone()),
            None => place,
        }
    }

    /// A name for a new temporary table to be stored under.
    ///
    /// # Errors
    /// 1235 if the session has too many.
    pub(crate) fn new_temporary(&self) -> Result<String, SqlError> {
        // Those that wait for the end of the transaction are there, too.
        let count = self.temporaries.names.len() + self.temporaries.dropped.len();
        if count >= TABLES_MAX {
            let what = format!("more than {TABLES_MAX} TEMPORARY tables in a session");
            return Err(error::not_supported(&what));
        }
        let number = self.shared.plans().new_number();
        Ok(temporary::name(self.shared.store.builder(), number))
    }

    /// The temporary table that is stored under this name is there.
    pub(crate) fn add_temporary(&mut self, place: Place, stored: String) {
        self.temporaries.names.insert(place, stored);
        self.forget_temporaries();
    }

    /// A temporary table that is dropped unless this is told to forget it.
    pub(crate) fn left(&self, name: String) -> Left<S> {
        Left { store: self.shared.store.clone(), name }
    }

    /// Drops a temporary table, if there is one: at once, or when the transaction has ended that may have changed it.
    pub(crate) async fn drop_temporary(&mut self, place: &Place) -> bool {
        let Some(stored) = self.temporaries.names.remove(place) else { return false };
        self.temporaries.dropped.push(stored);
        self.forget_temporaries();
        if !self.transaction_is_open() {
            self.drop_dropped().await;
        }
        true
    }

    /// The transaction that may have changed dropped tables has ended.
    pub(super) async fn drop_dropped(&mut self) {
        for name in std::mem::take(&mut self.temporaries.dropped) {
            // What is cancelled or refused here is done without anybody who waits.
            let left = self.left(name);
            if let Ok(Ok(())) = self.shared.store.change(drop_of(&left.name)).await {
                left.forget();
            }
        }
    }

    fn forget_temporaries(&mut self) {
        self.temporaries.forget();
        self.forget_plans();
    }
}

/// A table that is still to be dropped.
pub(crate) struct Left<S: Store> {
    store: S,
    name: String,
}

impl<S: Store> Left<S> {
    /// It is dropped, or there is somebody else who drops it.
    pub(crate) fn forget(mut self) {
        self.name.clear();
    }
}

impl<S: Store> Drop for Left<S> {
    fn drop(&mut self) {
        if !self.name.is_empty() {
            clean_up(&self.store, vec![std::mem::take(&mut self.name)]);
        }
    }
}
