//! Signals that find deadlocks. Protocol: docs/protocols/deadlock.md.

use crate::{BlockRef, Signal, body};
use core::mem::size_of;
use lats_base::TransactionId;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

body! {
    /// LDM → TC: a batch of yours waits for a row lock; payload: [`Blocker`]s, then the row's name.
    LockWaitRep {
        /// The transaction that waits.
        transaction: TransactionId,
        /// The batch that waits.
        batch: u32,
        /// Number of blockers.
        blocker_count: u32,
        /// Bytes of the row's name.
        row_bytes: u32,
        /// Not used yet; zero.
        reserved: u32,
    }
}
body! {
    /// TC → TC: looks for a circle, and then confirms it; payload: the path, [`Waiter`]s.
    ProbeOrd {
        /// Whom the last of the path waits for: the next to be looked at.
        target: TransactionId,
        /// Of the first of the path: how much it has done, as the choice of victim counts it.
        operations: u64,
        /// Grows with each search of the first of the path.
        round: u64,
        /// Number of waiters in the path.
        path_count: u32,
        /// 0: searching; else the place in the path of the waiter that is to confirm. The path's
        /// length: all others have, and the first is to conclude.
        confirms: u32,
    }
}

/// A transaction that another one waits for.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Blocker {
    /// The transaction.
    pub transaction: TransactionId,
    /// Its coordinator.
    pub coordinator: BlockRef,
    /// 0: it holds the lock, and does so until it ends. Else its batch that is ahead in the row's queue, which may leave
    /// the queue before the transaction ends (LOCK-6).
    pub ahead_batch: u32,
    /// Not used yet; zero.
    pub reserved: u32,
}

/// A transaction on the path of a probe: it waits for the one behind it.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Waiter {
    /// The transaction.
    pub transaction: TransactionId,
    /// Its coordinator.
    pub coordinator: BlockRef,
    /// The batch that waits.
    pub batch: u32,
    /// What it waits for: [`Blocker::ahead_batch`] of the transaction behind it on the path.
    pub ahead_batch: u32,
}

/// True if the payload of a [`LockWaitRep`] holds its blockers and the name exactly.
pub(crate) fn check_wait(signal: &Signal<'_>) -> bool {
    let body = signal.body::<LockWaitRep>();
    let blockers = (body.blocker_count as usize).saturating_mul(size_of::<Blocker>());
    blockers.saturating_add(body.row_bytes as usize) == signal.payload().len()
}

/// True if the payload of a [`ProbeOrd`] holds its path exactly, and is not empty.
pub(crate) fn check_probe(signal: &Signal<'_>) -> bool {
    let body = signal.body::<ProbeOrd>();
    let path = (body.path_count as usize).saturating_mul(size_of::<Waiter>());
    body.path_count > 0 && body.confirms <= body.path_count && path == signal.payload().len()
}
