//! Fairness and upgrades of row locks.

use super::{Grant, Lock, LockMode::*};
use lats_base::{ClientId, TransactionId};
use std::vec;

fn t(n: u64) -> TransactionId {
    TransactionId { client: ClientId::new(1), sequence: n }
}

#[test]
fn shared_locks_go_together_and_exclusive_alone() {
    let mut lock = Lock::default();
    assert_eq!(lock.acquire(t(1), Shared), Grant::New);
    assert_eq!(lock.acquire(t(2), Shared), Grant::New);
    assert_eq!(lock.acquire(t(3), Exclusive), Grant::Queued);
    // Fair: a later reader does not overtake the waiting writer.
    assert_eq!(lock.acquire(t(4), Shared), Grant::Queued);
    lock.release(t(1));
    assert_eq!(lock.grant_next(), vec![]);
    lock.release(t(2));
    assert_eq!(lock.grant_next(), vec![t(3)]);
    lock.release(t(3));
    assert_eq!(lock.grant_next(), vec![t(4)]);
    lock.release(t(4));
    assert!(lock.is_free());
}

#[test]
fn a_holder_upgrades_before_the_queue() {
    let mut lock = Lock::default();
    assert_eq!(lock.acquire(t(1), Shared), Grant::New);
    assert_eq!(lock.acquire(t(2), Shared), Grant::New);
    assert_eq!(lock.acquire(t(3), Exclusive), Grant::Queued);
    assert_eq!(lock.acquire(t(1), Exclusive), Grant::Queued);
    lock.release(t(2));
    assert_eq!(lock.grant_next(), vec![t(1)]);
    assert!(lock.is_exclusive(t(1)));
    assert_eq!(lock.acquire(t(1), Shared), Grant::Held);
}
