//! Where reads are done: by the thread that has received them, by another one that reads beside data managers, or by
//! the data manager's own thread.
//!
//! Each thread says how much work waits there, by the time that its work has taken lately; a read goes where it is
//! likely to be done first.

use lats_kernel::Executor;
use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
};

/// Who does the reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadPlacement {
    /// Whoever is likely to have done it first.
    #[default]
    Adaptive,
    /// The thread that has received it, if it has the module `query`.
    Receiver,
    /// The data manager that owns the fragment.
    Owner,
}

impl std::str::FromStr for ReadPlacement {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "adaptive" => Ok(Self::Adaptive),
            "receiver" => Ok(Self::Receiver),
            "owner" => Ok(Self::Owner),
            _ => Err(format!("`{name}` is not adaptive, receiver or owner")),
        }
    }
}

/// How much there is to do in a thread, as others see it. Nothing depends on it but where work goes.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct Load {
    waiting_ns: AtomicU64,
    asleep: AtomicBool,
}

impl Load {
    /// How long something that is sent there now is likely to wait.
    fn delay_ns(&self) -> u64 {
        let wake_ns = if self.asleep.load(Relaxed) { WAKE_NS } else { HOP_NS };
        self.waiting_ns.load(Relaxed) + wake_ns
    }

    pub(crate) fn goes_to_sleep(&self) {
        self.asleep.store(true, Relaxed);
    }

    /// To be called by the thread itself, not by those who help it.
    pub(crate) fn works(&self) {
        self.asleep.store(false, Relaxed);
    }
}

/// What it costs to hand something to another thread that works, and to one that sleeps.
const HOP_NS: u64 = 1_000;
const WAKE_NS: u64 = 20_000;
/// What a byte of signals costs before anything was measured, in 1/256 ns, and the most that is believed.
const BYTE_COST: u64 = 5 << 8;
const BYTE_COST_MAX: u64 = 1_000 << 8;
/// Work that says something about its cost.
const MEASURED_BYTES_MIN: usize = 1 << 10;

/// A thread's choice.
pub(crate) struct Reads {
    placement: ReadPlacement,
    own: usize,
    loads: Arc<[Load]>,
    /// What a byte of signals takes here, in 1/256 ns: an average over the last turns.
    byte_cost: u64,
    /// Whose turn it is to be looked at.
    next: usize,
}

impl Reads {
    pub(crate) fn new(placement: ReadPlacement, own: usize, loads: Arc<[Load]>) -> Self {
        Self { placement, own, loads, byte_cost: BYTE_COST, next: 0 }
    }

    /// The thread for a read of so many bytes: the owner, or one of those that read beside it. `waiting` bytes of
    /// signals wait in this thread.
    pub(crate) fn choose(
        &mut self,
        owner: usize,
        beside: &[usize],
        (bytes, waiting): (usize, usize),
    ) -> usize {
        let own_reads = owner == self.own || beside.contains(&self.own);
        match self.placement {
            ReadPlacement::Owner => return owner,
            ReadPlacement::Receiver => return if own_reads { self.own } else { owner },
            ReadPlacement::Adaptive => {}
        }
        // Of many others two are enough to balance the load (M. Mitzenmacher: "The Power of Two Choices in Randomized
        // Load Balancing", 2001).
        let others = beside.len();
        self.next = self.next.wrapping_add(1);
        let some = (0..others.min(2)).map(|at| beside[(self.next + at) % others]);
        let own = own_reads.then_some(self.own);
        let candidates = own.into_iter().chain([owner]).chain(some);
        let cost = waiting as u64;
        let chosen = candidates
            .min_by_key(|thread| match *thread == self.own {
                true => self.in_ns(cost),
                false => self.loads[*thread].delay_ns(),
            })
            .unwrap_or(owner);
        if chosen != self.own {
            self.loads[chosen].waiting_ns.fetch_add(self.in_ns(bytes as u64), Relaxed);
        }
        chosen
    }

    fn in_ns(&self, bytes: u64) -> u64 {
        bytes.saturating_mul(self.byte_cost) >> 8
    }

    /// So many bytes of signals wait here.
    pub(crate) fn show(&self, executor: &mut Executor) {
        let waiting = executor.mailbox().len_bytes() as u64;
        self.loads[self.own].waiting_ns.store(self.in_ns(waiting), Relaxed);
    }

    /// So many bytes of signals took so long.
    pub(crate) fn learn(&mut self, bytes: usize, nanos: u64) {
        if bytes >= MEASURED_BYTES_MIN {
            let cost = ((nanos << 8) / bytes as u64).min(BYTE_COST_MAX);
            self.byte_cost = (7 * self.byte_cost + cost) / 8;
        }
    }

    pub(crate) fn load(&self) -> &Load {
        &self.loads[self.own]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads(placement: ReadPlacement, threads: usize) -> Reads {
        Reads::new(placement, 0, (0..threads).map(|_| Load::default()).collect())
    }

    #[test]
    fn fixed_choices_are_what_their_names_say() {
        let mut receiver = reads(ReadPlacement::Receiver, 3);
        assert_eq!(receiver.choose(1, &[0, 2], (100, 1 << 20)), 0);
        assert_eq!(receiver.choose(1, &[2], (100, 0)), 1, "it cannot read beside others");
        assert_eq!(reads(ReadPlacement::Owner, 3).choose(1, &[0, 2], (100, 0)), 1);
    }

    #[test]
    fn a_read_stays_while_little_waits_and_goes_where_least_waits() {
        let mut reads = reads(ReadPlacement::Adaptive, 4);
        assert_eq!(reads.choose(1, &[0, 2], (100, 0)), 0);
        reads.loads[1].waiting_ns.store(50_000, Relaxed);
        assert_eq!(reads.choose(1, &[0, 2], (100, 1 << 20)), 2);
        reads.loads[2].goes_to_sleep();
        reads.loads[1].waiting_ns.store(5_000, Relaxed);
        assert_eq!(reads.choose(1, &[0, 2], (100, 1 << 20)), 1, "waking costs more than waiting");
    }

    #[test]
    fn many_reads_spread_though_nobody_says_how_much_waits() {
        let mut reads = reads(ReadPlacement::Adaptive, 4);
        let mut done = [0; 4];
        for _ in 0..300 {
            done[reads.choose(1, &[0, 2, 3], (1_000, 1 << 20))] += 1;
        }
        assert!(done[0] == 0 && done[1..].iter().all(|n| *n > 50), "{done:?}");
    }

    #[test]
    fn what_work_takes_is_learnt_slowly() {
        let mut reads = reads(ReadPlacement::Adaptive, 1);
        reads.learn(100, 1_000_000);
        assert_eq!(reads.byte_cost, BYTE_COST, "too little to tell");
        (0..50).for_each(|_| reads.learn(10_000, 100_000));
        assert!((9 << 8..11 << 8).contains(&reads.byte_cost));
    }
}
