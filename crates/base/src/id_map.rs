//! Things found by their id in no time, and walked in the order of their ids now and then.

use crate::map::Map;
use alloc::{boxed::Box, vec::Vec};
use core::{fmt, hash::Hash};

/// A map that is asked for single ids all the time, and walked seldom: by hash, and sorted for a walk. Values
/// stay where they are, however large they are.
pub struct IdMap<K, V> {
    places: Map<K, Box<V>>,
}

impl<K: Copy + Ord + Hash, V> IdMap<K, V> {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// True if this one is there.
    pub fn contains_key(&self, id: &K) -> bool {
        self.places.contains_key(id)
    }

    /// The value of an id.
    pub fn get(&self, id: &K) -> Option<&V> {
        self.places.get(id).map(|value| &**value)
    }

    /// The value of an id, to be changed.
    pub fn get_mut(&mut self, id: &K) -> Option<&mut V> {
        self.places.get_mut(id).map(|value| &mut **value)
    }

    /// The value of an id, made if it is missing.
    pub fn get_or_insert_with(&mut self, id: K, make: impl FnOnce() -> V) -> &mut V {
        self.places.entry(id).or_insert_with(|| Box::new(make()))
    }

    /// Sets the value of an id.
    pub fn insert(&mut self, id: K, value: V) {
        self.places.insert(id, Box::new(value));
    }

    /// Takes a value out.
    pub fn remove(&mut self, id: &K) -> Option<Box<V>> {
        self.places.remove(id)
    }

    /// All ids, sorted.
    pub fn ids(&self) -> Vec<K> {
        let mut ids: Vec<K> = self.places.keys().copied().collect();
        ids.sort_unstable();
        ids
    }

    /// All of them in the order of their ids. Sorts: not for every request.
    pub fn iter(&self) -> impl Iterator<Item = (K, &V)> {
        self.ids().into_iter().filter_map(|id| Some((id, self.get(&id)?)))
    }

    /// Does something with each, in the order of their ids. Sorts: not for every request.
    pub fn for_each_mut(&mut self, mut work: impl FnMut(K, &mut V)) {
        for id in self.ids() {
            if let Some(value) = self.get_mut(&id) {
                work(id, value);
            }
        }
    }
}

impl<K, V> Default for IdMap<K, V> {
    fn default() -> Self {
        Self { places: Map::default() }
    }
}

impl<K: Copy + Ord + Hash + fmt::Debug, V: fmt::Debug> fmt::Debug for IdMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::IdMap;
    use std::vec::Vec;

    #[test]
    fn walks_are_in_the_order_of_ids() {
        let mut map = IdMap::new();
        for id in [5_u32, 1, 9, 3] {
            map.insert(id, id * 10);
        }
        *map.get_or_insert_with(3, || 0) += 1;
        map.get_or_insert_with(7, || 70);
        assert_eq!(map.remove(&9).map(|v| *v), Some(90));
        let all: Vec<(u32, u32)> = map.iter().map(|(id, value)| (id, *value)).collect();
        assert_eq!(all, [(1, 10), (3, 31), (5, 50), (7, 70)]);
        let mut seen = Vec::new();
        map.for_each_mut(|id, value| {
            *value += 1;
            seen.push(id);
        });
        assert_eq!((seen, map.get(&5)), (map.ids(), Some(&51)));
    }
}
