//! Tables, or views: by their ids, and by their names.
//!
//! Definitions are shared: a copy of a catalog has the same ones, and a definition that changes is replaced. So a catalog with ten
//! thousand tables is changed, and what has changed in it is told, at the price of the tables that are concerned.

use crate::{TableDef, ViewDef};
use alloc::{
    borrow::Borrow,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    vec::Vec,
};
use core::{cmp::Ordering, ops::Deref};
use lats_base::TableId;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A table or a view.
pub trait Relation: Clone + Serialize {
    /// Its id.
    fn id(&self) -> TableId;
    /// Its database and name; none if nobody can name it.
    fn place(&self) -> Option<(&str, &str)>;
}

impl Relation for TableDef {
    fn id(&self) -> TableId {
        self.id
    }

    fn place(&self) -> Option<(&str, &str)> {
        self.index_of.is_none().then_some((&self.database, &self.name))
    }
}

impl Relation for ViewDef {
    fn id(&self) -> TableId {
        self.id
    }

    fn place(&self) -> Option<(&str, &str)> {
        Some((&self.database, &self.name))
    }
}

/// Definitions by id, which is also how they are read (see [`BTreeMap`]), and by name. They are changed as a whole.
#[derive(Clone, Debug)]
pub struct Relations<T: Relation> {
    by_id: BTreeMap<TableId, Arc<T>>,
    by_name: BTreeSet<ByName<T>>,
    /// What stood under each id that was changed, since [`Relations::changes`] was called.
    former: Vec<(TableId, Option<Arc<T>>)>,
}

impl<T: Relation> Default for Relations<T> {
    fn default() -> Self {
        Self { by_id: BTreeMap::new(), by_name: BTreeSet::new(), former: Vec::new() }
    }
}

impl<T: Relation> Deref for Relations<T> {
    type Target = BTreeMap<TableId, Arc<T>>;

    fn deref(&self) -> &Self::Target {
        &self.by_id
    }
}

impl<T: Relation + PartialEq> PartialEq for Relations<T> {
    fn eq(&self, other: &Self) -> bool {
        self.by_id == other.by_id
    }
}

impl<T: Relation> Relations<T> {
    /// The one with this name. Names are case-sensitive.
    pub fn named(&self, database: &str, name: &str) -> Option<&Arc<T>> {
        let place: (&str, &str) = (database, name);
        let key: &dyn Placed = &place;
        self.by_name.get(key).map(|found| &found.0)
    }

    /// All definitions, by id.
    pub fn definitions(&self) -> impl Iterator<Item = &T> {
        self.by_id.values().map(Arc::as_ref)
    }

    /// Puts a definition in the place of what had its id.
    pub fn insert(&mut self, definition: impl Into<Arc<T>>) {
        let definition = definition.into();
        let id = definition.id();
        self.remove(id);
        if definition.place().is_some() {
            self.by_name.replace(ByName(Arc::clone(&definition)));
        }
        self.by_id.insert(id, definition);
    }

    /// Takes out all but those that are meant.
    pub fn retain(&mut self, mut is_meant: impl FnMut(&T) -> bool) {
        let gone: Vec<TableId> =
            self.by_id.values().filter(|def| !is_meant(def)).map(|def| def.id()).collect();
        gone.into_iter().for_each(|id| drop(self.remove(id)));
    }

    /// Takes out all.
    pub fn clear(&mut self) {
        self.retain(|_| false);
    }

    /// Changes one; false if there is none.
    pub(crate) fn change(&mut self, id: TableId, change: impl FnOnce(&mut T)) -> bool {
        let Some(found) = self.by_id.get(&id) else { return false };
        let mut changed = T::clone(found);
        change(&mut changed);
        self.insert(changed);
        true
    }

    /// Takes one out.
    pub fn remove(&mut self, id: TableId) -> Option<Arc<T>> {
        let found = self.by_id.remove(&id);
        self.former.push((id, found.clone()));
        if let Some(place) = found.as_ref().and_then(|found| found.place()) {
            let key: &dyn Placed = &place;
            // Somebody else may have its name by now.
            if self.by_name.get(key).is_some_and(|named| named.0.id() == id) {
                self.by_name.remove(key);
            }
        }
        found
    }

    /// What was changed since this was called last, with what stood there before each change.
    pub(crate) fn changes(&mut self) -> Vec<(TableId, Option<Arc<T>>)> {
        core::mem::take(&mut self.former)
    }

    /// Takes changes back, the last one first.
    pub(crate) fn take_back(&mut self, changes: Vec<(TableId, Option<Arc<T>>)>) {
        for (id, former) in changes.into_iter().rev() {
            match former {
                Some(former) => self.insert(former),
                None => drop(self.remove(id)),
            }
        }
        self.former.clear();
    }

    /// Encoded bytes of all definitions.
    pub(crate) fn bytes(&self) -> usize {
        self.by_id.values().map(|def| bytes_of(def)).sum()
    }
}

/// The most bytes of an id, or of a length, as they are encoded.
pub(crate) const NUMBER_BYTES: usize = 5;

/// Encoded bytes of one definition, with its id in front.
pub(crate) fn bytes_of<T: Serialize>(definition: &Arc<T>) -> usize {
    // A plain tree: its size is always known.
    NUMBER_BYTES + postcard::experimental::serialized_size(&**definition).unwrap_or_default()
}

impl<T: Relation> FromIterator<T> for Relations<T> {
    fn from_iter<I: IntoIterator<Item = T>>(definitions: I) -> Self {
        let mut all = Self::default();
        definitions.into_iter().for_each(|definition| all.insert(definition));
        all.former.clear();
        all
    }
}

impl<T: Relation> Serialize for Relations<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.by_id.serialize(serializer)
    }
}

impl<'de, T: Relation + Deserialize<'de>> Deserialize<'de> for Relations<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let by_id = BTreeMap::<TableId, Arc<T>>::deserialize(deserializer)?;
        let named = by_id.values().filter(|def| def.place().is_some());
        let by_name = named.map(|def| ByName(Arc::clone(def))).collect();
        Ok(Self { by_id, by_name, former: Vec::new() })
    }
}

/// A definition, ordered by its place.
#[derive(Clone, Debug)]
struct ByName<T>(Arc<T>);

/// What has a place.
trait Placed {
    fn place(&self) -> (&str, &str);
}

impl<T: Relation> Placed for ByName<T> {
    fn place(&self) -> (&str, &str) {
        self.0.place().unwrap_or_default()
    }
}

impl Placed for (&str, &str) {
    fn place(&self) -> (&str, &str) {
        *self
    }
}

impl PartialEq for dyn Placed + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.place() == other.place()
    }
}

impl Eq for dyn Placed + '_ {}

impl PartialOrd for dyn Placed + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for dyn Placed + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        self.place().cmp(&other.place())
    }
}

impl<T: Relation> PartialEq for ByName<T> {
    fn eq(&self, other: &Self) -> bool {
        Placed::place(self) == Placed::place(other)
    }
}

impl<T: Relation> Eq for ByName<T> {}

impl<T: Relation> PartialOrd for ByName<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T: Relation> Ord for ByName<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        Placed::place(self).cmp(&Placed::place(other))
    }
}

impl<'a, T: Relation + 'a> Borrow<dyn Placed + 'a> for ByName<T> {
    fn borrow(&self) -> &(dyn Placed + 'a) {
        self
    }
}
