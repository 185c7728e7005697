//! The clocks of this machine: the only place that reads them.
#![expect(clippy::disallowed_methods, reason = "this is where clocks are read")]

use lats_base::Instant;
use rustix::time::{ClockId, clock_gettime};
use std::{
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time,
};

static START_NS: OnceLock<u64> = OnceLock::new();
static SUSPENDED: Suspended = Suspended(AtomicU64::new(0));

/// This process's monotonic clock (LEASE-8). It runs as fast as the machine's counter: nobody sets or slews it, so that two of them differ by
/// their oscillators only. It goes on while the machine is suspended, and others take over.
pub fn now() -> Instant {
    // In this order: a suspend in between makes it late for a moment, as one right after would.
    let ran = nanos(ClockId::MonotonicRaw);
    let now = ran
        .saturating_add(SUSPENDED.look(|| nanos(ClockId::Boottime), || nanos(ClockId::Monotonic)));
    let start = *START_NS.get_or_init(|| now);
    // One second ahead, so that "never" (zero) is always in the past.
    Instant::from_nanos(now.saturating_sub(start) + 1_000_000_000)
}

fn nanos(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// For how long this machine has been suspended since it was booted, in ns.
///
/// `CLOCK_BOOTTIME` counts suspends and `CLOCK_MONOTONIC` does not; both are slewed alike. A thread may lose the processor between the two, so
/// what it finds is too little at most, and the largest that any has found is right.
struct Suspended(AtomicU64);

/// What two looks differ by without a suspend, at most.
const JITTER_NS: u64 = 1_000;

impl Suspended {
    fn look(&self, boottime: impl Fn() -> u64, monotonic: impl Fn() -> u64) -> u64 {
        let counted = boottime();
        let found = counted.saturating_sub(monotonic());
        let known = self.0.load(Relaxed);
        if found <= known.saturating_add(JITTER_NS) {
            return known;
        }
        self.0.fetch_max(found, Relaxed).max(found)
    }
}

/// Microseconds since 1970, for SQL's NOW() and for numbers of lives.
pub fn unix_micros() -> i64 {
    let since = time::SystemTime::now().duration_since(time::UNIX_EPOCH);
    since.map_or(0, |t| i64::try_from(t.as_micros()).unwrap_or(i64::MAX))
}

/// Processor time that the calling thread has used, in ns.
pub(crate) fn thread_cpu_ns() -> u64 {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    used.tv_sec as u64 * 1_000_000_000 + used.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suspends_are_counted_and_interruptions_are_not() {
        let suspended = Suspended(AtomicU64::new(0));
        let look = |boottime: u64, monotonic: u64| suspended.look(|| boottime, || monotonic);
        assert_eq!(look(5_000_000, 5_000_040), 0, "never suspended");
        assert_eq!(look(5_000_000, 4_000_000), 1_000_000, "before the process began");
        // The thread has lost the processor between the two.
        assert_eq!(look(6_000_000, 5_900_000), 1_000_000);
        // Readings differ by some nanoseconds.
        assert_eq!(look(7_000_000, 5_999_970), 1_000_000);
        assert_eq!(look(3_007_000_000, 6_000_000), 3_001_000_000, "three seconds");
        assert_eq!(look(3_008_000_000, 8_000_000), 3_001_000_000);
    }

    #[test]
    fn the_clock_never_goes_back() {
        let mut last = now();
        for _ in 0..10_000 {
            let next = now();
            assert!(next >= last && last.as_nanos() >= 1_000_000_000);
            last = next;
        }
    }
}
