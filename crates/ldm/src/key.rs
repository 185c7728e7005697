//! Encoded keys. One as short as most are lies where it is used, and two of them are compared as numbers: neither
//! costs a further cache miss.

use alloc::{boxed::Box, vec::Vec};
use core::{borrow::Borrow, cmp::Ordering, ops::Deref};
use zerocopy::IntoBytes;

/// Bytes of a key that needs no memory of its own.
const SHORT_MAX: usize = size_of::<Words>();

/// The bytes of a short key, in their order. Words, because a processor that reads what it has just written waits for memory
/// unless it reads the same places, or parts of them.
type Words = [u64; 2];

/// An encoded key, ordered by its bytes.
#[derive(Clone, Debug)]
pub(crate) enum Key {
    /// Behind its end there are zeros.
    Short {
        length: u8,
        words: Words,
    },
    Long(Box<[u8]>),
}

impl Key {
    pub(crate) fn new(key: &[u8]) -> Self {
        let mut words = Words::default();
        match words.as_mut_bytes().get_mut(..key.len()) {
            Some(place) => {
                place.copy_from_slice(key);
                Self::Short { length: key.len() as u8, words }
            }
            None => Self::Long(key.into()),
        }
    }
}

impl From<Vec<u8>> for Key {
    fn from(key: Vec<u8>) -> Self {
        if key.len() <= SHORT_MAX { Self::new(&key) } else { Self::Long(key.into()) }
    }
}

impl Deref for Key {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Short { length, words } => {
                words.as_bytes().get(..usize::from(*length)).unwrap_or_default()
            }
            Self::Long(key) => key,
        }
    }
}

impl Borrow<[u8]> for Key {
    fn borrow(&self) -> &[u8] {
        self
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            // A key that is the beginning of another one comes before it.
            (Self::Short { length, words }, Self::Short { length: other_length, words: other }) => {
                let numbers = (words.map(u64::from_be), other.map(u64::from_be));
                numbers.0.cmp(&numbers.1).then(length.cmp(other_length))
            }
            _ => (**self).cmp(&**other),
        }
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Key {}

#[cfg(test)]
mod tests {
    use super::*;
    use lats_base::prng::Prng;

    #[test]
    fn keys_are_ordered_by_their_bytes_however_long_they_are() {
        let mut random = Prng::new(7);
        let mut draw = || {
            // Few different bytes, zeros among them: many keys begin alike or are equal.
            let length = random.below(20) as usize;
            (0..length).map(|_| random.below(3) as u8 * 127).collect::<Vec<u8>>()
        };
        for _ in 0..20_000 {
            let (a, b) = (draw(), draw());
            assert_eq!(Key::new(&a).cmp(&Key::from(b.clone())), a.cmp(&b), "{a:?} {b:?}");
            assert_eq!(Key::from(a.clone()) == Key::new(&b), a == b);
            assert_eq!(*Key::new(&a), *a);
        }
        assert_eq!(size_of::<Key>(), 24);
    }
}
