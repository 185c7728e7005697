//! What became of transactions, until their clients have surely heard (OUTCOME-1).

use alloc::{
    collections::{BTreeMap, VecDeque},
    vec::Vec,
};
use lats_base::{ClientId, Duration, Epoch, IdMap, Instant, TransactionId};

/// A committed transaction of a client: its sequence number, its epoch, how many rows it has changed here, and since when that is
/// known here.
#[derive(Clone, Copy, Debug)]
struct Outcome {
    sequence: u64,
    epoch: Epoch,
    changes: u32,
    since: Instant,
}

/// Outcomes of completed transactions, by client, in the order of their numbers: mostly the order in which they come,
/// and that in which they are heard. And the transactions of which clients were told that they never were.
#[derive(Default)]
pub(crate) struct Outcomes {
    clients: IdMap<ClientId, VecDeque<Outcome>>,
    /// Since when they were asked for (OUTCOME-2).
    refused: BTreeMap<TransactionId, Instant>,
    /// What ended before may be missing (OUTCOME-8); none: it remembers the cluster's beginning.
    since: Option<Instant>,
    /// It will hear from another replica what that one remembers.
    inherits: bool,
}

/// How long a refused transaction stays refused: longer than any network or system keeps what was sent to a node that serves.
/// (Linux gives up a TCP connection without answers after some 16 minutes.)
pub(crate) const REFUSED_KEPT: Duration = Duration::from_millis(30 * 60_000);

impl Outcomes {
    /// Outcomes of a life that begins now in a cluster that is older.
    pub(crate) fn begun_at(now: Instant, inherits: bool) -> Self {
        Self { since: Some(now), inherits, ..Self::default() }
    }

    /// So far back it remembers, if outcomes are kept for so long.
    pub(crate) fn remembered(&self, now: Instant, kept: Duration) -> Duration {
        self.since.map_or(kept, |since| kept.min(now.since(since)))
    }

    /// Another replica has told what it remembers: this far back.
    pub(crate) fn inherit(&mut self, now: Instant, remembered: Duration) {
        let since = Instant::ZERO.plus(now.since(Instant::ZERO.plus(remembered)));
        let first = core::mem::take(&mut self.inherits);
        self.since = self.since.filter(|_| !first).max(Some(since));
    }

    /// A client is told that the transaction never was: it must stay that way. False if there is no room to note it.
    pub(crate) fn refuse(&mut self, id: TransactionId, now: Instant, most: usize) -> bool {
        let fits = self.refused.len() < most || self.refused.contains_key(&id);
        if fits {
            self.refused.insert(id, now);
        }
        fits
    }

    /// True if a client was told that the transaction never was.
    pub(crate) fn refuses(&self, id: TransactionId) -> bool {
        !self.refused.is_empty() && self.refused.contains_key(&id)
    }

    /// All transactions that it refuses.
    pub(crate) fn refused(&self) -> impl Iterator<Item = TransactionId> {
        self.refused.keys().copied()
    }

    /// Notes one; what was known of it before may have been too early (CARRY-7).
    pub(crate) fn note(
        &mut self,
        id: TransactionId,
        (epoch, changes): (Epoch, u32),
        since: Instant,
    ) {
        let outcome = Outcome { sequence: id.sequence, epoch, changes, since };
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

    /// The epoch of one, and how many rows it has changed here.
    pub(crate) fn find(&self, id: TransactionId) -> Option<(Epoch, u32)> {
        let known = self.clients.get(&id.client)?;
        let at = known.binary_search_by_key(&id.sequence, |o| o.sequence).ok()?;
        known.get(at).map(|o| (o.epoch, o.changes))
    }

    /// The client has heard of all below this number.
    pub(crate) fn forget_heard(&mut self, client: ClientId, below: u64) {
        let Some(known) = self.clients.get_mut(&client) else { return };
        while known.front().is_some_and(|first| first.sequence < below) {
            known.pop_front();
        }
    }

    /// Forgets those that are older than they are kept, then more of them while there are more than `most`.
    pub(crate) fn forget(&mut self, now: Instant, kept: Duration, most: usize) {
        self.refused.retain(|_, since| now.since(*since) < REFUSED_KEPT.max(kept));
        let keep = |since: Instant| now.since(since) < kept;
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
        if left > most {
            self.since = Some(now);
        }
        let mut too_many = left.saturating_sub(most);
        self.clients.for_each_mut(|_, known| {
            let gone = too_many.min(known.len());
            known.drain(..gone);
            too_many -= gone;
        });
    }

    /// All of them, in the order of their ids.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (TransactionId, Epoch, u32)> {
        let id = |client, sequence| TransactionId { client, sequence };
        self.clients.iter().flat_map(move |(client, known)| {
            known.iter().map(move |o| (id(client, o.sequence), o.epoch, o.changes))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(client: u64, sequence: u64) -> TransactionId {
        TransactionId { client: ClientId::new(client), sequence }
    }

    #[test]
    fn outcomes_are_kept_in_order_and_forgotten_when_heard_or_old() {
        let mut outcomes = Outcomes::default();
        let at = |ms| Instant::ZERO.plus(Duration::from_millis(ms));
        for (sequence, ms) in [(5, 1), (7, 2), (6, 3), (7, 4)] {
            outcomes.note(id(1, sequence), (Epoch::new(sequence), 1), at(ms));
        }
        outcomes.note(id(2, 1), (Epoch::new(9), 3), at(5));
        assert_eq!(outcomes.iter().count(), 4, "7 came twice");
        let all: Vec<_> = outcomes.iter().map(|(id, ..)| (id.client.get(), id.sequence)).collect();
        assert_eq!(all, [(1, 5), (1, 6), (1, 7), (2, 1)]);
        outcomes.forget_heard(ClientId::new(1), 7);
        assert_eq!((outcomes.find(id(1, 6)), outcomes.iter().count()), (None, 2));
        assert_eq!(outcomes.find(id(1, 7)), Some((Epoch::new(7), 1)));
        let (kept, ms) = (Duration::from_millis(10), Duration::from_millis);
        outcomes.forget(at(14), kept, 9);
        assert_eq!(outcomes.remembered(at(14), kept), kept, "there is room");
        assert_eq!((outcomes.find(id(1, 7)), outcomes.iter().count()), (None, 1));
        outcomes.forget(at(14), kept, 0);
        assert_eq!(outcomes.iter().count(), 0);
        assert_eq!(outcomes.remembered(at(17), kept), ms(3));
        assert_eq!(outcomes.remembered(at(99), kept), kept);
    }

    #[test]
    fn who_was_filled_remembers_as_far_back_as_those_who_have_told_it() {
        let (kept, ms) = (Duration::from_millis(60), Duration::from_millis);
        let at = |time| Instant::ZERO.plus(ms(time));
        let mut outcomes = Outcomes::begun_at(at(100), true);
        assert_eq!(outcomes.remembered(at(110), kept), ms(10));
        outcomes.inherit(at(120), ms(50));
        assert_eq!(outcomes.remembered(at(120), kept), ms(50));
        outcomes.inherit(at(125), ms(40));
        assert_eq!(outcomes.remembered(at(125), kept), ms(40), "another one remembers less");
        outcomes.inherit(at(130), ms(60));
        assert_eq!(outcomes.remembered(at(130), kept), ms(45));
        assert_eq!(
            Outcomes::default().remembered(at(1), kept),
            kept,
            "it was there from the beginning"
        );
    }

    #[test]
    fn a_refused_transaction_stays_refused_for_longer_than_outcomes_are_kept() {
        let (kept, at) = (Duration::from_millis(60), |time| Instant::ZERO.plus(time));
        let mut outcomes = Outcomes::default();
        assert!(outcomes.refuse(id(1, 1), at(kept), 1));
        assert!(outcomes.refuse(id(1, 1), at(kept), 1), "it was noted before");
        assert!(!outcomes.refuse(id(1, 2), at(kept), 1), "there is no room");
        outcomes.forget(at(REFUSED_KEPT), kept, 9);
        assert!(outcomes.refuses(id(1, 1)) && !outcomes.refuses(id(1, 2)));
        outcomes.forget(at(REFUSED_KEPT).plus(kept), kept, 9);
        assert!(!outcomes.refuses(id(1, 1)));
    }
}
