//! Things found by their id in no time, and walked in the order of their ids now and then.

use crate::map::Map;
use alloc::vec::Vec;
use core::{fmt, hash::Hash};

/// A map that is asked for single ids all the time, mostly for the same one several times in a row, and walked
/// seldom: by hash, and sorted for a walk. Places are used again.
pub struct IdMap<K, V> {
    places: Map<K, u32>,
    values: Vec<Option<V>>,
    free: Vec<u32>,
    /// The id that was asked for last, and its place.
    last: Option<(K, u32)>,
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
        self.place(id).is_some()
    }

    fn place(&self, id: &K) -> Option<u32> {
        match self.last {
            Some((last, place)) if last == *id => Some(place),
            _ => self.places.get(id).copied(),
        }
    }

    /// The value of an id.
    pub fn get(&self, id: &K) -> Option<&V> {
        self.values.get(self.place(id)? as usize)?.as_ref()
    }

    /// The value of an id, to be changed.
    pub fn get_mut(&mut self, id: &K) -> Option<&mut V> {
        let place = self.place(id)?;
        self.last = Some((*id, place));
        self.values.get_mut(place as usize)?.as_mut()
    }

    /// The value of an id, made if it is missing.
    pub fn get_or_insert_with(&mut self, id: K, make: impl FnOnce() -> V) -> &mut V {
        let place = self.place(&id).unwrap_or_else(|| self.add(id));
        self.last = Some((id, place));
        self.values[place as usize].get_or_insert_with(make)
    }

    /// Sets the value of an id.
    pub fn insert(&mut self, id: K, value: V) {
        let place = self.place(&id).unwrap_or_else(|| self.add(id));
        self.values[place as usize] = Some(value);
    }

    /// A place for an id, without a value yet.
    fn add(&mut self, id: K) -> u32 {
        let place = self.free.pop().unwrap_or(self.values.len() as u32);
        if place as usize == self.values.len() {
            self.values.push(None);
        }
        self.places.insert(id, place);
        place
    }

    /// Takes a value out.
    pub fn remove(&mut self, id: &K) -> Option<V> {
        let place = self.places.remove(id)?;
        self.last = self.last.filter(|(last, _)| last != id);
        self.free.push(place);
        self.values.get_mut(place as usize)?.take()
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
        Self { places: Map::default(), values: Vec::new(), free: Vec::new(), last: None }
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
        assert_eq!(map.remove(&9), Some(90));
        let all: Vec<(u32, u32)> = map.iter().map(|(id, value)| (id, *value)).collect();
        assert_eq!(all, [(1, 10), (3, 31), (5, 50), (7, 70)]);
        let mut seen = Vec::new();
        map.for_each_mut(|id, value| {
            *value += 1;
            seen.push(id);
        });
        assert_eq!((seen, map.get(&5)), (map.ids(), Some(&51)));
    }

    #[test]
    fn a_place_that_is_used_again_has_another_id() {
        let mut map = IdMap::new();
        map.insert(1_u32, 10);
        assert_eq!(map.get_mut(&1), Some(&mut 10));
        assert_eq!((map.remove(&1), map.get(&1), map.len()), (Some(10), None, 0));
        assert_eq!(*map.get_or_insert_with(2, || 20), 20);
        assert_eq!((map.get(&1), map.get(&2)), (None, Some(&20)));
        assert_eq!(map.remove(&1), None);
        map.insert(2, 21);
        map.insert(1, 11);
        assert_eq!((map.get(&1), map.get(&2), map.len()), (Some(&11), Some(&21), 2));
    }
}
