//! Hash maps for look-ups in blocks: a fixed seed, so that equal histories give equal maps.

/// A hash map with a fixed seed. Its order means nothing: where something is iterated, use a
/// `BTreeMap`, or collect and sort.
pub type Map<K, V> = hashbrown::HashMap<K, V, foldhash::fast::FixedState>;
