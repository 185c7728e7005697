//! Connections of others that have proved nothing yet: how many may wait, and which of them makes room (GREET-6).
//!
//! Who has said nothing that could be proved competes with its like alone. So a crowd that only connects drives out nobody who
//! waits for an answer to a greeting.

use std::collections::BTreeSet;

/// Each of the two kinds has so many places.
pub(crate) const PLACES: usize = 256;

/// The connections, by their numbers: a later one has a larger number.
#[derive(Debug, Default)]
pub(crate) struct Strangers {
    silent: BTreeSet<u64>,
    greeting: BTreeSet<u64>,
}

impl Strangers {
    /// One more has connected. Gives the one that has to go for it, if one has to.
    pub(crate) fn come(&mut self, id: u64) -> Option<u64> {
        place(&mut self.silent, id)
    }

    /// One has said a greeting that it may prove. Gives the one that has to go for it, if one has to.
    pub(crate) fn greets(&mut self, id: u64) -> Option<u64> {
        self.silent.remove(&id);
        place(&mut self.greeting, id)
    }

    /// One is gone, or is no stranger any more.
    pub(crate) fn leaves(&mut self, id: u64) {
        let _ = self.silent.remove(&id) || self.greeting.remove(&id);
    }

    /// Those that are too old.
    pub(crate) fn overdue(&self, is_too_old: impl Fn(u64) -> bool) -> Vec<u64> {
        let old = |kind: &BTreeSet<u64>| {
            kind.iter().copied().take_while(|id| is_too_old(*id)).collect::<Vec<u64>>()
        };
        [old(&self.silent), old(&self.greeting)].concat()
    }
}

/// Takes a place; the oldest goes if there are too many.
fn place(places: &mut BTreeSet<u64>, id: u64) -> Option<u64> {
    places.insert(id);
    if places.len() > PLACES { places.pop_first() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crowd_that_says_nothing_drives_out_nobody_who_greets() {
        let mut strangers = Strangers::default();
        assert_eq!((strangers.come(0), strangers.greets(0)), (None, None));
        let gone: Vec<u64> = (1..1_000).filter_map(|id| strangers.come(id)).collect();
        assert_eq!(gone, (1..1_000 - PLACES as u64).collect::<Vec<u64>>());
        // Whoever comes last has a place, and keeps it when it greets.
        assert_eq!((strangers.come(1_000), strangers.greets(1_000)), (Some(744), None));
    }

    #[test]
    fn the_oldest_of_those_who_greet_makes_room() {
        let mut strangers = Strangers::default();
        let places = PLACES as u64;
        assert_eq!((0..=places).filter_map(|id| strangers.come(id)).collect::<Vec<_>>(), [0]);
        assert!((1..=places).all(|id| strangers.greets(id).is_none()));
        strangers.leaves(7);
        assert_eq!((strangers.come(900), strangers.greets(900)), (None, None));
        assert_eq!((strangers.come(901), strangers.greets(901)), (None, Some(1)));
    }

    #[test]
    fn who_is_too_old_is_found_among_both() {
        let mut strangers = Strangers::default();
        assert!((0..10).all(|id| strangers.come(id).is_none()));
        let _ = strangers.greets(1);
        strangers.leaves(2);
        assert_eq!(strangers.overdue(|id| id < 5), [0, 3, 4, 1]);
    }
}
