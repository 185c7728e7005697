//! The hash index on the primary key: extendible hashing (R. Fagin, J. Nievergelt, N. Pippenger,
//! H. R. Strong: "Extendible Hashing — A Fast Access Method for Dynamic Files", 1979). It grows by splitting
//! one small segment at a time: a single table would hash millions of keys anew at once, while everybody waits.

use alloc::{vec, vec::Vec};
use hashbrown::HashTable;
use lats_base::require;

/// Row ids by the hash of their keys.
#[derive(Debug)]
pub(crate) struct KeyIndex {
    /// The segment of each value of the hash's first bits; as many bits as `depth`.
    directory: Vec<u32>,
    depth: u32,
    segments: Vec<Segment>,
}

#[derive(Debug)]
struct Segment {
    ids: HashTable<Slot>,
    /// How many of the bits all its hashes have in common.
    depth: u32,
}

/// An id of 48 bits, and what of its hash is ever looked at: so no row is needed to move it.
#[derive(Clone, Copy, Debug)]
struct Slot {
    id_low: u32,
    hash_low: u32,
    id_high: u16,
    hash_high: u16,
}

impl Slot {
    fn new(hash: u64, id: u64) -> Self {
        require!(id < 1 << 48, "row ids have 48 bits");
        let tag = hash >> (u64::BITS - TAG_BITS) << HIGH_BITS;
        let hash_high = (tag | hash >> u32::BITS & HIGH) as u16;
        Self {
            id_low: id as u32,
            hash_low: hash as u32,
            id_high: (id >> u32::BITS) as u16,
            hash_high,
        }
    }

    fn id(self) -> u64 {
        u64::from(self.id_low) | u64::from(self.id_high) << u32::BITS
    }

    /// The hash, without the bits that nobody looks at.
    fn hash(self) -> u64 {
        let high = u64::from(self.hash_high);
        let tag = high >> HIGH_BITS << (u64::BITS - TAG_BITS);
        tag | (high & HIGH) << u32::BITS | u64::from(self.hash_low)
    }
}

/// The bits of a hash that tables compare: its last ones.
const TAG_BITS: u32 = 7;
/// The bits that choose a segment and a place in it: its first ones.
const HASH_BITS: u32 = u32::BITS + HIGH_BITS;
const HIGH_BITS: u32 = 9;
const HIGH: u64 = (1 << HIGH_BITS) - 1;
/// Ids after which a segment is split: as many as fit into a table of 1,024 places.
const SEGMENT_MAX: usize = 896;
/// The bits that choose the segment begin here: a segment's table uses those below, and the last seven.
const SHIFT: u32 = 20;
/// Places of the directory for each segment: more only come about when many hashes are alike, be it by
/// design. Then segments grow instead.
const PLACES_MAX: usize = 8;

impl KeyIndex {
    pub(crate) fn new() -> Self {
        let segment = Segment { ids: HashTable::new(), depth: 0 };
        Self { directory: vec![0], depth: 0, segments: vec![segment] }
    }

    fn place(&self, hash: u64) -> usize {
        (hash >> SHIFT) as usize & (self.directory.len() - 1)
    }

    fn segment(&self, hash: u64) -> usize {
        self.directory[self.place(hash)] as usize
    }

    /// The id with this hash for which `is_it` holds.
    pub(crate) fn find(&self, hash: u64, is_it: impl Fn(u64) -> bool) -> Option<u64> {
        let ids = &self.segments[self.segment(hash)].ids;
        ids.find(hash, |slot| slot.hash_low == hash as u32 && is_it(slot.id()))
            .map(|slot| slot.id())
    }

    /// An id whose hash looks like this one: most often the one that [`Self::find`] would find.
    pub(crate) fn guess(&self, hash: u64) -> Option<u64> {
        let ids = &self.segments[self.segment(hash)].ids;
        ids.find(hash, |_| true).map(|slot| slot.id())
    }

    /// Enters an id that is not there.
    pub(crate) fn insert(&mut self, hash: u64, id: u64) {
        let mut at = self.segment(hash);
        while self.segments[at].ids.len() >= SEGMENT_MAX && self.may_split(at) {
            self.split(at);
            at = self.segment(hash);
        }
        let slot = Slot::new(hash, id);
        self.segments[at].ids.insert_unique(slot.hash(), slot, |other| other.hash());
    }

    /// Takes an id out; false if it was not there.
    pub(crate) fn remove(&mut self, hash: u64, id: u64) -> bool {
        let at = self.segment(hash);
        match self.segments[at].ids.find_entry(hash, |other| other.id() == id) {
            Ok(entry) => {
                entry.remove();
                true
            }
            Err(_) => false,
        }
    }

    fn may_split(&self, at: usize) -> bool {
        let fits = self.directory.len() < PLACES_MAX * self.segments.len();
        SHIFT + self.depth < HASH_BITS && (self.segments[at].depth < self.depth || fits)
    }

    /// One more bit tells the ids of a segment apart.
    fn split(&mut self, at: usize) {
        let bit = self.segments[at].depth;
        if bit == self.depth {
            // Every segment gets twice as many places.
            self.directory.extend_from_within(..);
            self.depth += 1;
        }
        let is_set = |slot: &mut Slot| slot.hash() >> (SHIFT + bit) & 1 == 1;
        let mut moved = HashTable::with_capacity(SEGMENT_MAX);
        for slot in self.segments[at].ids.extract_if(is_set) {
            moved.insert_unique(slot.hash(), slot, |other| other.hash());
        }
        self.segments[at].depth = bit + 1;
        let new = self.segments.len() as u32;
        self.segments.push(Segment { ids: moved, depth: bit + 1 });
        for (place, segment) in self.directory.iter_mut().enumerate() {
            if *segment as usize == at && place >> bit & 1 == 1 {
                *segment = new;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lats_base::hash::partition_hash;

    fn hash_of(id: &u64) -> u64 {
        partition_hash(&id.to_le_bytes())
    }

    fn find(index: &KeyIndex, id: u64) -> Option<u64> {
        index.find(hash_of(&id), |other| other == id)
    }

    #[test]
    fn what_was_entered_is_found_and_nothing_else() {
        let mut index = KeyIndex::new();
        for id in 0..50_000 {
            index.insert(hash_of(&id), id);
            assert_eq!(find(&index, id + 1), None);
        }
        assert!(index.segments.iter().all(|s| s.ids.len() <= SEGMENT_MAX));
        assert!(index.segments.len() >= 49 && index.directory.len() <= 256);
        assert!((0..50_000).all(|id| find(&index, id) == Some(id)));
        for id in (0..50_000).step_by(3) {
            assert!(index.remove(hash_of(&id), id));
            assert!(!index.remove(hash_of(&id), id));
        }
        assert!((0..50_000).all(|id| find(&index, id).is_some() == (id % 3 != 0)));
    }

    #[test]
    fn equal_hashes_are_borne() {
        let mut index = KeyIndex::new();
        for id in 0..3_000 {
            index.insert(7 << SHIFT, id);
        }
        assert_eq!(index.find(7 << SHIFT, |id| id == 2_999), Some(2_999));
        assert!(index.directory.len() <= 64, "{} places", index.directory.len());
    }
}
