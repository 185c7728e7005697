//! Fairness and upgrades of row locks.

use super::{Grant, Lock, LockMode, LockMode::*};
use lats_base::{ClientId, TransactionId};
use std::vec;

fn t(n: u64) -> TransactionId {
    TransactionId { client: ClientId::new(1), sequence: n }
}

/// Asks for the lock and waits if need be.
fn ask(lock: &mut Lock, transaction: TransactionId, mode: LockMode) -> Grant {
    lock.acquire(transaction, mode, true)
}

#[test]
fn shared_locks_go_together_and_exclusive_alone() {
    let mut lock = Lock::default();
    assert_eq!(ask(&mut lock, t(1), Shared), Grant::New);
    assert_eq!(ask(&mut lock, t(2), Shared), Grant::New);
    assert_eq!(ask(&mut lock, t(3), Exclusive), Grant::Queued);
    // Fair: a later reader does not overtake the waiting writer.
    assert_eq!(ask(&mut lock, t(4), Shared), Grant::Queued);
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
    assert_eq!(ask(&mut lock, t(1), Shared), Grant::New);
    assert_eq!(ask(&mut lock, t(2), Shared), Grant::New);
    assert_eq!(ask(&mut lock, t(3), Exclusive), Grant::Queued);
    assert_eq!(ask(&mut lock, t(1), Exclusive), Grant::Queued);
    lock.release(t(2));
    assert_eq!(lock.grant_next(), vec![t(1)]);
    assert!(lock.is_exclusive(t(1)));
    assert_eq!(ask(&mut lock, t(1), Shared), Grant::Held);
}

#[test]
fn who_does_not_wait_leaves_no_trace() {
    let mut lock = Lock::default();
    assert_eq!(lock.acquire(t(1), Shared, false), Grant::New);
    assert_eq!(lock.acquire(t(2), Exclusive, false), Grant::NotFree);
    assert_eq!(lock.acquire(t(2), Shared, false), Grant::New);
    assert_eq!(lock.acquire(t(1), Exclusive, false), Grant::NotFree);
    assert_eq!(ask(&mut lock, t(3), Exclusive), Grant::Queued);
    // Nor does it overtake who waits.
    assert_eq!(lock.acquire(t(4), Shared, false), Grant::NotFree);
    lock.release(t(1));
    assert_eq!(lock.grant_next(), vec![]);
    assert_eq!(lock.acquire(t(2), Exclusive, false), Grant::Held);
    lock.release(t(2));
    assert_eq!(lock.grant_next(), vec![t(3)]);
    lock.release(t(3));
    assert!(lock.is_free());
}

#[test]
fn whatever_happens_holders_are_compatible_and_nobody_waits_for_a_free_lock() {
    let mut random = lats_base::prng::Prng::new(7);
    for _ in 0..200 {
        let mut lock = Lock::default();
        let mut waiting = std::vec::Vec::new();
        for _ in 0..200 {
            let who = t(1 + random.below(6));
            if waiting.contains(&who) || random.chance(2, 5) {
                lock.release(who);
                waiting.retain(|w| *w != who);
                let granted = lock.grant_next();
                assert!(granted.iter().all(|g| waiting.contains(g)));
                waiting.retain(|w| !granted.contains(w));
            } else {
                let mode = if random.chance(1, 2) { Shared } else { Exclusive };
                let grant = lock.acquire(who, mode, random.chance(4, 5));
                if grant == Grant::Queued {
                    waiting.push(who);
                }
            }
            let alone = lock.holders.iter().all(|(_, mode)| *mode == Shared);
            assert!(alone || lock.holders.len() == 1, "{lock:?}");
            let queued: std::vec::Vec<_> = lock.queue.iter().map(|(w, _)| *w).collect();
            assert!(queued.len() == waiting.len() && waiting.iter().all(|w| queued.contains(w)));
            assert!(waiting.is_empty() || !lock.holders.is_empty(), "{lock:?}");
        }
    }
}

#[test]
fn who_waits_knows_for_whom() {
    let mut lock = Lock::default();
    ask(&mut lock, t(1), Shared);
    ask(&mut lock, t(2), Shared);
    ask(&mut lock, t(3), Exclusive);
    ask(&mut lock, t(4), Shared);
    ask(&mut lock, t(5), Shared);
    // Those ahead wait with batch 7.
    let (all, none) = (|_| Some(7), |_| None);
    assert_eq!(lock.blockers(t(3), all), vec![(t(1), 0), (t(2), 0)]);
    // Those who share wait for each other only across one who does not.
    assert_eq!(lock.blockers(t(4), all), vec![(t(3), 7), (t(1), 0), (t(2), 0)]);
    assert_eq!(lock.blockers(t(5), all), vec![(t(3), 7), (t(1), 0), (t(2), 0)]);
    assert_eq!(lock.blockers(t(5), none), vec![(t(1), 0), (t(2), 0)]);
    assert_eq!(lock.blockers(t(1), all), vec![]);
    // Two who want more wait for each other.
    assert_eq!(ask(&mut lock, t(1), Exclusive), Grant::Queued);
    assert_eq!(ask(&mut lock, t(2), Exclusive), Grant::Queued);
    assert_eq!(lock.blockers(t(1), none), vec![(t(2), 0)]);
    assert_eq!(lock.blockers(t(2), none), vec![(t(1), 0)]);
    // Who is ahead and holds it stays in the way when its batch leaves the queue.
    assert_eq!(lock.blockers(t(2), all), vec![(t(1), 0)]);
    // An exclusive one behind those who share waits for all of them.
    let mut lock = Lock::default();
    ask(&mut lock, t(1), Exclusive);
    ask(&mut lock, t(2), Shared);
    ask(&mut lock, t(3), Shared);
    ask(&mut lock, t(4), Exclusive);
    assert_eq!(lock.blockers(t(3), all), vec![(t(1), 0)]);
    assert_eq!(lock.blockers(t(4), all), vec![(t(3), 7), (t(2), 7), (t(1), 0)]);
}
