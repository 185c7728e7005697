//! Finds transactions that wait for each other in a circle (`docs/protocols/deadlock.md`).
//!
//! Whoever has waited for a while sends a probe to the coordinators of those it waits for; it is
//! passed on along their waits. A probe that comes home has walked a circle, which then walks once
//! more to confirm that it still stands.

use crate::{
    Tc,
    transaction::{Batch, Refusal, State, Transaction, Wait},
};
use alloc::{format, string::String, vec::Vec};
use core::cmp::Reverse;
use lats_base::{RefCode, TransactionId};
use lats_kernel::{Ctx, Fault};
use lats_signals::{
    Signal,
    deadlock::{Blocker, LockWaitRep, ProbeOrd, Waiter},
};
use zerocopy::{FromBytes, IntoBytes};

/// Transactions in a circle that can be found; longer ones end by the lock timeout.
const PATH_MAX: usize = 32;
/// Searches that a transaction begins because of those of others, between two reports of its own.
const NUDGES_MAX: u32 = 16;
/// Searches of others that a waiting transaction remembers; beyond, it passes none on.
const SEEN_MAX: usize = 1_024;

/// DEADLOCK-3: of a circle, the one whose key is the largest gives way: that which has done least.
fn victim_key(operations: u64, id: TransactionId) -> (Reverse<u64>, u64, TransactionId) {
    (Reverse(operations), id.hash(), id)
}

impl Transaction {
    /// The batches that wait for locks, as last reported, with their numbers.
    fn waits(&self) -> impl Iterator<Item = (u32, &Wait)> {
        let open = |b: &&Batch| self.state == State::Preparing && !b.executed;
        let waiting = self.batches.iter().filter(move |(_, b)| open(b));
        waiting.filter_map(|(number, b)| Some((*number, b.wait.as_ref()?)))
    }

    fn wait(&self, batch: u32) -> Option<&Wait> {
        self.waits().find(|(number, _)| *number == batch).map(|(_, wait)| wait)
    }

    /// True if its batch still waits for the other transaction, or for that batch of it.
    fn waits_for(&self, waiter: &Waiter, other: TransactionId) -> bool {
        let is_next = |b: &Blocker| {
            b.transaction == other && (b.ahead_batch == 0 || b.ahead_batch == waiter.ahead_batch)
        };
        self.wait(waiter.batch).is_some_and(|w| w.blockers.iter().any(is_next))
    }

    /// DEADLOCK-4: true if it is still in the way of one who waits for its end, or for its batch that is ahead in a queue. One
    /// that was refused has left the queue, and the transaction lives on (LOCK-6); one that is executed holds the lock.
    fn is_in_the_way(&self, ahead_batch: u32) -> bool {
        let may_wait = self.waits_from..self.next_batch;
        ahead_batch == 0 || (self.state == State::Preparing && may_wait.contains(&ahead_batch))
    }
}

impl Tc {
    /// DEADLOCK-1: a batch has waited for a while: search from it.
    pub(crate) fn on_lock_wait_rep(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let rep = signal.body::<LockWaitRep>();
        let row_at = signal.payload().len() - rep.row_bytes as usize;
        let (mut rest, row) = signal.payload().split_at(row_at);
        let mut blockers = Vec::new();
        while let Ok((blocker, behind)) = Blocker::read_from_prefix(rest) {
            blockers.push(blocker);
            rest = behind;
        }
        let Some(t) = self.transactions.get_mut(&rep.transaction) else { return };
        let Some(batch) = t.batches.get_mut(&rep.batch) else { return };
        if t.state != State::Preparing || batch.executed {
            return;
        }
        batch.wait = Some(Wait { blockers, row: row.to_vec() });
        t.nudges = 0;
        self.search_from(rep.transaction, Some(rep.batch), ctx);
    }

    /// Begins a search, along one wait of a transaction or all.
    fn search_from(&mut self, id: TransactionId, only: Option<u32>, ctx: &mut Ctx<'_>) {
        let Some(t) = self.transactions.get_mut(&id) else { return };
        t.searches += 1;
        let body = ProbeOrd {
            target: TransactionId::NONE,
            operations: t.operations as u64,
            round: t.searches,
            path_count: 0,
            confirms: 0,
        };
        self.pass_on(&body, &[], id, only, ctx);
    }

    /// Sends a probe to everyone whom a transaction waits for (with one of its batches, or any).
    fn pass_on(
        &self,
        probe: &ProbeOrd,
        path: &[Waiter],
        id: TransactionId,
        only: Option<u32>,
        ctx: &mut Ctx<'_>,
    ) {
        let Some(t) = self.transactions.get(&id) else { return };
        for (batch, wait) in t.waits().filter(|(batch, _)| only.is_none_or(|o| o == *batch)) {
            for blocker in &wait.blockers {
                let (coordinator, ahead_batch) = (ctx.me(), blocker.ahead_batch);
                let me = Waiter { transaction: id, coordinator, batch, ahead_batch };
                let path: Vec<Waiter> = path.iter().copied().chain([me]).collect();
                let body = ProbeOrd {
                    target: blocker.transaction,
                    path_count: path.len() as u32,
                    ..*probe
                };
                ctx.send_with(blocker.coordinator, &body, &[path.as_bytes()]);
            }
        }
    }

    pub(crate) fn on_probe_ord(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let probe = signal.body::<ProbeOrd>();
        let mut path = Vec::new();
        let mut rest = signal.payload();
        while let Ok((waiter, behind)) = Waiter::read_from_prefix(rest) {
            path.push(waiter);
            rest = behind;
        }
        let Some(first) = path.first().copied() else { return };
        if ctx.fault(Fault::BugBlindToDeadlocks) {
            return;
        }
        if probe.confirms > 0 {
            self.confirm(&probe, &path, ctx);
        } else if probe.target == first.transaction {
            // It has come home. Does the circle still stand?
            self.ask_to_confirm(&probe, 1, &path, ctx);
        } else if ctx.fault(Fault::BugHastyVictim) {
            let body = ProbeOrd { confirms: probe.path_count, ..probe };
            ctx.send_with(first.coordinator, &body, &[path.as_bytes()]);
        } else {
            self.search_on(&probe, &path, ctx);
        }
    }

    fn search_on(&mut self, probe: &ProbeOrd, path: &[Waiter], ctx: &mut Ctx<'_>) {
        let Some(t) = self.transactions.get_mut(&probe.target) else { return };
        let (first, last) = (path[0].transaction, path[path.len() - 1]);
        let in_the_way = t.is_in_the_way(last.ahead_batch);
        if !in_the_way || t.waits().next().is_none() || path.len() >= PATH_MAX {
            return;
        }
        // DEADLOCK-3: if this one would give way rather than the first, its own search finds the
        // same circle: the time has come for it.
        let own = victim_key(t.operations as u64, probe.target);
        if own > victim_key(probe.operations, first) {
            if t.nudges < NUDGES_MAX {
                t.nudges += 1;
                self.search_from(probe.target, None, ctx);
            }
            return;
        }
        let known = t.seen_searches.len();
        match t.seen_searches.get_mut(&first) {
            Some(round) if *round >= probe.round => return,
            Some(round) => *round = probe.round,
            None if known >= SEEN_MAX => return,
            None => {
                t.seen_searches.insert(first, probe.round);
            }
        }
        self.pass_on(probe, path, probe.target, None, ctx);
    }

    /// DEADLOCK-4: each of the circle says that it is still in the way of the one before it and waits for the next, the first last.
    fn confirm(&mut self, probe: &ProbeOrd, path: &[Waiter], ctx: &mut Ctx<'_>) {
        let length = path.len();
        let place = probe.confirms as usize % length;
        let (waiter, next) = (path[place], path[(place + 1) % length]);
        let before = path[(place + length - 1) % length];
        let hasty = ctx.fault(Fault::BugHastyVictim);
        let stands = self.transactions.get(&waiter.transaction).is_some_and(|t| {
            let stands = t.is_in_the_way(before.ahead_batch);
            (stands && t.waits_for(&waiter, next.transaction))
                || (hasty && t.wait(waiter.batch).is_some())
        });
        if !stands {
            return;
        }
        if place > 0 {
            return self.ask_to_confirm(probe, place as u32 + 1, path, ctx);
        }
        self.give_way(waiter, path, ctx);
    }

    fn ask_to_confirm(&self, probe: &ProbeOrd, place: u32, path: &[Waiter], ctx: &mut Ctx<'_>) {
        let body = ProbeOrd { confirms: place, path_count: path.len() as u32, ..*probe };
        let to = path[place as usize % path.len()].coordinator;
        ctx.send_with(to, &body, &[path.as_bytes()]);
    }

    /// DEADLOCK-5: rolls the first of the circle back, and says who was in it.
    fn give_way(&mut self, victim: Waiter, path: &[Waiter], ctx: &mut Ctx<'_>) {
        let Some(t) = self.transactions.get(&victim.transaction) else { return };
        let Some(wait) = t.wait(victim.batch) else { return };
        let others: Vec<String> = path[1..].iter().map(|w| name(w.transaction)).collect();
        let text = format!(
            "40001Deadlock found when trying to get lock; try restarting transaction: {} waited \
             for the row {}, locked by {}, which waited for it",
            name(victim.transaction),
            String::from_utf8_lossy(&wait.row),
            others.join(", which waited for "),
        );
        self.counters.deadlocks += 1;
        let refusal = Refusal {
            code: u32::from(RefCode::Deadlock.number()),
            errno: 1213,
            text: text.into_bytes(),
        };
        self.abort(victim.transaction, refusal, ctx);
    }
}

/// What a transaction is called in an error's text.
fn name(id: TransactionId) -> String {
    format!("transaction {:x}-{}", id.client.get(), id.sequence)
}
