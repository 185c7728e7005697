//! What became of transactions, until their clients have surely heard (OUTCOME-1).

use alloc::{collections::VecDeque, vec::Vec};
use lats_base::{ClientId, Epoch, IdMap, Instant, TransactionId};

/// A committed transaction of a client: its sequence number, its epoch, and since when that is known here.
#[derive(Clone, Copy, Debug)]
struct Outcome {
    sequence: u64,
    epoch: Epoch,
    since: Instant,
}

/// Outcomes of completed transactions, by client, in the order of their numbers: mostly the order in which they come,
/// and that in which they are heard.
#[derive(Default)]
pub(crate) struct Outcomes {
    clients: IdMap<ClientId, VecDeque<Outcome>>,
}

impl Outcomes {
    /// Notes one; what was known of it before may have been too early (CARRY-7).
    pub(crate) fn note(&mut self, id: TransactionId, epoch: Epoch, since: Instant) {
        let outcome = Outcome { sequence: id.sequence, epoch, since };
        let known = self.clients.get_or_insert_with(id.client, VecDeque::new);
        if known.back().is_none_or(|last| last.sequence < id.sequence) {
            known.push_back(outcome);
        } else {
            match known.binary_search_by_key(&id.sequence, |o| o.sequence) {
                Ok(at) => known[at] = outcome,
                Err(at) => known.insert(at, outcome),
            }
        }
    }

    /// The epoch of one.
    pub(crate) fn epoch_of(&self, id: TransactionId) -> Option<Epoch> {
        let known = self.clients.get(&id.client)?;
        let at = known.binary_search_by_key(&id.sequence, |o| o.sequence).ok()?;
        known.get(at).map(|o| o.epoch)
    }

    /// The client has heard of all below this number.
    pub(crate) fn forget_heard(&mut self, client: ClientId, below: u64) {
        let Some(known) = self.clients.get_mut(&client) else { return };
        while known.front().is_some_and(|first| first.sequence < below) {
            known.pop_front();
        }
    }

    /// Forgets those for which `keep` does not hold, then more of them while there are more than `most`; true if it
    /// was for want of room.
    pub(crate) fn forget(&mut self, keep: impl Fn(Instant) -> bool, most: usize) -> bool {
        let (mut left, mut empty) = (0, Vec::new());
        self.clients.for_each_mut(|client, known| {
            known.retain(|o| keep(o.since));
            left += known.len();
            if known.is_empty() {
                empty.push(client);
            }
        });
        for client in empty {
            self.clients.remove(&client);
        }
        let full = left > most;
        let mut too_many = left.saturating_sub(most);
        self.clients.for_each_mut(|_, known| {
            let gone = too_many.min(known.len());
            known.drain(..gone);
            too_many -= gone;
        });
        full
    }

    /// All of them, in the order of their ids.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (TransactionId, Epoch)> {
        self.clients.iter().flat_map(|(client, known)| {
            known.iter().map(move |o| (TransactionId { client, sequence: o.sequence }, o.epoch))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lats_base::Duration;

    fn id(client: u64, sequence: u64) -> TransactionId {
        TransactionId { client: ClientId::new(client), sequence }
    }

    #[test]
    fn outcomes_are_kept_in_order_and_forgotten_when_heard_or_old() {
        let mut outcomes = Outcomes::default();
        let at = |ms| Instant::ZERO.plus(Duration::from_millis(ms));
        for (sequence, ms) in [(5, 1), (7, 2), (6, 3), (7, 4)] {
            outcomes.note(id(1, sequence), Epoch::new(sequence), at(ms));
        }
        outcomes.note(id(2, 1), Epoch::new(9), at(5));
        assert_eq!(outcomes.iter().count(), 4, "7 came twice");
        let all: Vec<_> = outcomes.iter().map(|(id, _)| (id.client.get(), id.sequence)).collect();
        assert_eq!(all, [(1, 5), (1, 6), (1, 7), (2, 1)]);
        outcomes.forget_heard(ClientId::new(1), 7);
        assert_eq!((outcomes.epoch_of(id(1, 6)), outcomes.iter().count()), (None, 2));
        assert_eq!(outcomes.epoch_of(id(1, 7)), Some(Epoch::new(7)));
        assert!(!outcomes.forget(|since| since > at(4), 9), "there is room");
        assert_eq!((outcomes.epoch_of(id(1, 7)), outcomes.iter().count()), (None, 1));
        assert!(outcomes.forget(|_| true, 0));
        assert_eq!(outcomes.iter().count(), 0);
    }
}
