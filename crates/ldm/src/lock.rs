//! Row locks: shared and exclusive, with a fair queue. A lock exists only for a row that is locked.

use alloc::{collections::VecDeque, vec::Vec};
use lats_base::TransactionId;

/// How a row is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LockMode {
    /// Others may share.
    Shared,
    /// Nobody else.
    Exclusive,
}

/// The lock of one row.
#[derive(Debug, Default)]
pub(crate) struct Lock {
    holders: Vec<(TransactionId, LockMode)>,
    queue: VecDeque<(TransactionId, LockMode)>,
}

/// What a request for a lock leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grant {
    /// The transaction holds it now and did not before.
    New,
    /// The transaction holds it already.
    Held,
    /// It waits in the queue.
    Queued,
    /// It would have to wait, and does not want to.
    NotFree,
    /// The queue is full.
    Full,
}

/// Transactions that may wait for one row.
const QUEUE_MAX: usize = 1_024;

impl Lock {
    /// Asks for the lock (LOCK-1). First come, first served (LOCK-2); a holder that wants more goes
    /// to the front (LOCK-3). Who does not want to wait leaves no trace (LOCK-4).
    pub(crate) fn acquire(
        &mut self,
        transaction: TransactionId,
        mode: LockMode,
        waits: bool,
    ) -> Grant {
        let held = self.holders.iter().position(|(t, _)| *t == transaction);
        if let Some(at) = held {
            let enough = self.holders[at].1 == LockMode::Exclusive || mode == LockMode::Shared;
            if enough {
                return Grant::Held;
            }
            if self.holders.len() == 1 {
                self.holders[at].1 = LockMode::Exclusive;
                return Grant::Held;
            }
        } else if self.queue.is_empty() && self.fits(mode) {
            self.holders.push((transaction, mode));
            return Grant::New;
        }
        if !waits {
            return Grant::NotFree;
        }
        if self.queue.len() >= QUEUE_MAX {
            return Grant::Full;
        }
        if held.is_some() {
            self.queue.push_front((transaction, mode));
        } else {
            self.queue.push_back((transaction, mode));
        }
        Grant::Queued
    }

    fn fits(&self, mode: LockMode) -> bool {
        self.holders.is_empty()
            || (mode == LockMode::Shared
                && self.holders.iter().all(|(_, m)| *m == LockMode::Shared))
    }

    /// True if it takes little memory, though it may have had a long queue.
    pub(crate) fn is_small(&self) -> bool {
        self.holders.capacity() <= 8 && self.queue.capacity() <= 8
    }

    /// Takes the transaction out, as holder and from the queue.
    pub(crate) fn release(&mut self, transaction: TransactionId) {
        if self.queue.is_empty() && matches!(self.holders[..], [(only, _)] if only == transaction) {
            self.holders.clear();
            return;
        }
        self.holders.retain(|(t, _)| *t != transaction);
        self.queue.retain(|(t, _)| *t != transaction);
    }

    /// Takes the transaction out of the queue only.
    pub(crate) fn leave_queue(&mut self, transaction: TransactionId) {
        self.queue.retain(|(t, _)| *t != transaction);
    }

    /// Grants to the front of the queue what can be granted now; the transactions that may go on.
    pub(crate) fn grant_next(&mut self) -> Vec<TransactionId> {
        let mut granted = Vec::new();
        while let Some((transaction, mode)) = self.queue.front().copied() {
            let held = self.holders.iter().position(|(t, _)| *t == transaction);
            match held {
                Some(at) if self.holders.len() == 1 => self.holders[at].1 = mode,
                None if self.fits(mode) => self.holders.push((transaction, mode)),
                Some(_) | None => break,
            }
            self.queue.pop_front();
            granted.push(transaction);
        }
        granted
    }

    /// Whom a transaction in the queue waits for, directly or through others in the queue: holders (with 0), and those ahead
    /// of it for whom `waiting_batch` gives a batch, with that (DEADLOCK-2).
    pub(crate) fn blockers(
        &self,
        transaction: TransactionId,
        waiting_batch: impl Fn(TransactionId) -> Option<u32>,
    ) -> Vec<(TransactionId, u32)> {
        let Some(at) = self.queue.iter().position(|(t, _)| *t == transaction) else {
            return Vec::new();
        };
        // Who shares waits for another one that shares only if somebody between them does not.
        let mut exclusive = self.queue[at].1 == LockMode::Exclusive;
        let mut found: Vec<(TransactionId, u32)> = Vec::new();
        for (ahead, mode) in self.queue.iter().take(at).rev() {
            exclusive |= *mode == LockMode::Exclusive;
            if let Some(batch) = waiting_batch(*ahead).filter(|_| exclusive) {
                found.push((*ahead, batch));
            }
        }
        let holders = self.holders.iter().filter(|(t, _)| *t != transaction);
        let blocking = holders.filter(|(_, mode)| exclusive || *mode == LockMode::Exclusive);
        for (holder, _) in blocking {
            // Who holds it and wants more is in the way until its end.
            match found.iter_mut().find(|(ahead, _)| ahead == holder) {
                Some((_, batch)) => *batch = 0,
                None => found.push((*holder, 0)),
            }
        }
        found
    }

    /// True if the transaction holds it exclusively.
    pub(crate) fn is_exclusive(&self, transaction: TransactionId) -> bool {
        self.holders.contains(&(transaction, LockMode::Exclusive))
    }

    /// True if nobody holds it or waits for it.
    pub(crate) fn is_free(&self) -> bool {
        self.holders.is_empty() && self.queue.is_empty()
    }
}

#[cfg(test)]
mod tests;
