//! Maps and sets of a few things, sorted, without memory of their own while they are small. Where there may be
//! thousands, use a `BTreeMap`: entering one here moves all those behind it.

use core::fmt;
use smallvec::SmallVec;

/// A sorted map; up to `N` entries lie in it.
#[derive(Clone)]
pub struct SortedMap<K, V, const N: usize> {
    entries: SmallVec<[(K, V); N]>,
}

/// A sorted set; up to `N` items lie in it.
#[derive(Clone)]
pub struct SortedSet<T, const N: usize> {
    items: SmallVec<[T; N]>,
}

impl<K: Ord, V, const N: usize> SortedMap<K, V, N> {
    /// An empty one.
    pub const fn new() -> Self {
        Self { entries: SmallVec::new_const() }
    }

    fn place(&self, key: &K) -> Result<usize, usize> {
        self.entries.binary_search_by(|(k, _)| k.cmp(key))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The value of a key.
    pub fn get(&self, key: &K) -> Option<&V> {
        self.place(key).ok().and_then(|at| self.entries.get(at)).map(|(_, value)| value)
    }

    /// The value of a key, to be changed.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let at = self.place(key).ok()?;
        self.entries.get_mut(at).map(|(_, value)| value)
    }

    /// The value of a key, made if it is missing.
    pub fn get_or_insert_with(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        let at = match self.place(&key) {
            Ok(at) => at,
            Err(at) => {
                self.entries.insert(at, (key, make()));
                at
            }
        };
        &mut self.entries[at].1
    }

    /// Sets the value of a key.
    pub fn insert(&mut self, key: K, value: V) {
        match self.place(&key) {
            Ok(at) => self.entries[at].1 = value,
            Err(at) => self.entries.insert(at, (key, value)),
        }
    }

    /// Takes a value out.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        self.place(key).ok().map(|at| self.entries.remove(at).1)
    }

    /// All of them, sorted.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&K, &V)> {
        self.entries.iter().map(|(key, value)| (key, value))
    }

    /// All of them, sorted, with values that can be changed.
    pub fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = (&K, &mut V)> {
        self.entries.iter_mut().map(|(key, value)| (&*key, value))
    }

    /// True if the key is there.
    pub fn contains_key(&self, key: &K) -> bool {
        self.place(key).is_ok()
    }

    /// All keys, sorted.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &K> {
        self.entries.iter().map(|(key, _)| key)
    }

    /// All values, by their keys' order.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> {
        self.entries.iter().map(|(_, value)| value)
    }

    /// All values, to be changed.
    pub fn values_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut V> {
        self.entries.iter_mut().map(|(_, value)| value)
    }

    /// Keeps those for which this holds.
    pub fn retain(&mut self, mut keep: impl FnMut(&K, &mut V) -> bool) {
        self.entries.retain(|(key, value)| keep(key, value));
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.entries.clear();
    }
}

impl<K, V, const N: usize> IntoIterator for SortedMap<K, V, N> {
    type Item = (K, V);
    type IntoIter = smallvec::IntoIter<[(K, V); N]>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.into_iter()
    }
}

impl<K: Ord, V: Default, const N: usize> SortedMap<K, V, N> {
    /// The value of a key; the default, if it is missing.
    pub fn get_or_default(&mut self, key: K) -> &mut V {
        self.get_or_insert_with(key, V::default)
    }
}

impl<T: Ord, const N: usize> SortedSet<T, N> {
    /// An empty one.
    pub const fn new() -> Self {
        Self { items: SmallVec::new_const() }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// True if this one is in it.
    pub fn contains(&self, item: &T) -> bool {
        self.items.binary_search(item).is_ok()
    }

    /// Enters one; false if it is there already.
    pub fn insert(&mut self, item: T) -> bool {
        match self.items.binary_search(&item) {
            Ok(_) => false,
            Err(at) => {
                self.items.insert(at, item);
                true
            }
        }
    }

    /// Takes one out; false if it is not there.
    pub fn remove(&mut self, item: &T) -> bool {
        self.items.binary_search(item).map(|at| self.items.remove(at)).is_ok()
    }

    /// All of them, sorted.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.items.iter()
    }

    /// Keeps those for which this holds.
    pub fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        self.items.retain(|item| keep(item));
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.items.clear();
    }
}

impl<K: Ord, V, const N: usize> Default for SortedMap<K, V, N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Ord, const N: usize> Default for SortedSet<T, N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Ord, V, const N: usize> FromIterator<(K, V)> for SortedMap<K, V, N> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(iter: I) -> Self {
        let mut map = Self::new();
        iter.into_iter().for_each(|(key, value)| map.insert(key, value));
        map
    }
}

impl<T: Ord, const N: usize> FromIterator<T> for SortedSet<T, N> {
    fn from_iter<I: IntoIterator<Item = T>>(iter: I) -> Self {
        let mut set = Self::new();
        for item in iter {
            set.insert(item);
        }
        set
    }
}

impl<K: Ord + fmt::Debug, V: fmt::Debug, const N: usize> fmt::Debug for SortedMap<K, V, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<T: Ord + fmt::Debug, const N: usize> fmt::Debug for SortedSet<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::{SortedMap, SortedSet};
    use crate::prng::Prng;
    use std::{
        collections::{BTreeMap, BTreeSet},
        vec::Vec,
    };

    #[test]
    fn they_are_like_trees() {
        let mut random = Prng::new(1);
        for _ in 0..200 {
            let mut map: SortedMap<u64, u64, 3> = SortedMap::new();
            let mut set: SortedSet<u64, 3> = SortedSet::new();
            let (mut tree, mut items) = (BTreeMap::new(), BTreeSet::new());
            for step in 0..60 {
                let key = random.below(9);
                match random.below(5) {
                    0 => {
                        map.insert(key, step);
                        tree.insert(key, step);
                        assert_eq!(set.insert(key), items.insert(key));
                    }
                    1 => {
                        *map.get_or_default(key) += 1;
                        *tree.entry(key).or_default() += 1;
                    }
                    2 => {
                        assert_eq!(map.remove(&key), tree.remove(&key));
                        assert_eq!(set.remove(&key), items.remove(&key));
                    }
                    3 if random.chance(1, 4) => {
                        map.retain(|k, v| (*k + *v) % 3 != 0);
                        tree.retain(|k, v| (*k + *v) % 3 != 0);
                        set.retain(|i| *i != key);
                        items.retain(|i| *i != key);
                    }
                    _ => {
                        assert_eq!(map.get(&key), tree.get(&key));
                        assert_eq!(set.contains(&key), items.contains(&key));
                    }
                }
                assert_eq!(map.iter().collect::<Vec<_>>(), tree.iter().collect::<Vec<_>>());
                assert_eq!(set.iter().collect::<Vec<_>>(), items.iter().collect::<Vec<_>>());
                assert_eq!((map.len(), set.is_empty()), (tree.len(), items.is_empty()));
            }
        }
    }
}
