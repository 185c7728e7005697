//! The values that an aggregate with DISTINCT has seen.

use crate::{Value, compare::group_key};
use alloc::{boxed::Box, collections::BTreeMap, vec::Vec};

/// Keys of what was seen; with the value where two states can only be united by it.
#[derive(Clone, Debug, Default)]
pub(super) struct Distinct {
    seen: BTreeMap<Box<[u8]>, Value>,
    key_bytes: usize,
}

/// The key of values: the same for those that DISTINCT takes as equal.
pub(super) fn key_of(values: &[Value]) -> Box<[u8]> {
    let mut key = Vec::new();
    group_key(values, &mut key);
    key.into()
}

impl Distinct {
    /// Whether the values are new; with `keep` the first one stays with its key.
    pub(super) fn insert(&mut self, values: &[Value], keep: bool) -> bool {
        let value = if keep { values.first().cloned() } else { None };
        self.insert_keyed(key_of(values), value.unwrap_or(Value::Null))
    }

    pub(super) fn insert_key(&mut self, key: Box<[u8]>) -> bool {
        self.insert_keyed(key, Value::Null)
    }

    pub(super) fn insert_keyed(&mut self, key: Box<[u8]>, value: Value) -> bool {
        if self.seen.contains_key(&key) {
            return false;
        }
        self.key_bytes += key.len();
        self.seen.insert(key, value);
        true
    }

    pub(super) fn into_values(self) -> impl Iterator<Item = (Box<[u8]>, Value)> {
        self.seen.into_iter()
    }

    /// The memory that it takes beside itself: keys, their values, and the places for them.
    pub(super) fn bytes(&self) -> usize {
        // Numbers, which are what is kept, own no memory worth counting; texts are as long as keys.
        2 * self.key_bytes + self.seen.len() * size_of::<(Box<[u8]>, Value)>()
    }
}
