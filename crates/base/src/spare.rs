//! Lists that go from one request to the next, so that a steady flow of requests allocates nothing.

use alloc::{collections::VecDeque, vec::Vec};

/// A list whose memory outlives what is in it.
pub trait Reusable: Default {
    /// Forgets all that is in it.
    fn clear(&mut self);
    /// How much fits without another allocation.
    fn capacity(&self) -> usize;
}

impl<T> Reusable for Vec<T> {
    fn clear(&mut self) {
        Vec::clear(self);
    }

    fn capacity(&self) -> usize {
        Vec::capacity(self)
    }
}

impl<T> Reusable for VecDeque<T> {
    fn clear(&mut self) {
        VecDeque::clear(self);
    }

    fn capacity(&self) -> usize {
        VecDeque::capacity(self)
    }
}

/// Empty lists with memory: `LISTS` at most, none of which has room for more than `ROOM` items. The one that was
/// used last goes first: it is still in the processor's cache.
#[derive(Debug)]
pub struct Spare<L, const LISTS: usize, const ROOM: usize> {
    lists: Vec<L>,
}

impl<L, const LISTS: usize, const ROOM: usize> Default for Spare<L, LISTS, ROOM> {
    fn default() -> Self {
        Self { lists: Vec::new() }
    }
}

impl<L: Reusable, const LISTS: usize, const ROOM: usize> Spare<L, LISTS, ROOM> {
    /// An empty list, with memory if there is one.
    pub fn take(&mut self) -> L {
        self.lists.pop().unwrap_or_default()
    }

    /// Keeps a list's memory for the next one, unless there is enough.
    pub fn keep(&mut self, mut list: L) {
        if self.lists.len() < LISTS && (1..=ROOM).contains(&list.capacity()) {
            list.clear();
            self.lists.push(list);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_come_back_empty_and_large_ones_are_freed() {
        let mut spare: Spare<Vec<u8>, 2, 100> = Spare::default();
        assert_eq!(spare.take().capacity(), 0);
        let mut list = Vec::with_capacity(50);
        list.extend_from_slice(b"something");
        spare.keep(list);
        spare.keep(Vec::with_capacity(101));
        spare.keep(Vec::new());
        let list = spare.take();
        assert!(list.is_empty() && list.capacity() >= 50);
        assert_eq!(spare.take().capacity(), 0, "nothing else was kept");
        (0..3).for_each(|_| spare.keep(Vec::with_capacity(10)));
        assert_eq!(spare.lists.len(), 2);
    }
}
