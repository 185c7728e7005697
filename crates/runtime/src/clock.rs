//! The clocks of this machine: the only place that reads them.
#![expect(clippy::disallowed_methods, reason = "this is where clocks are read")]

use lats_base::Instant;
use rustix::time::{ClockId, clock_gettime};
use std::{
    sync::{
        OnceLock,
        atomic::{AtomicI64, Ordering::Relaxed},
    },
    time,
};

static START_NS: OnceLock<i64> = OnceLock::new();
static SUSPENDED: Suspended = Suspended(AtomicI64::new(i64::MIN));

/// This process's monotonic clock (LEASE-8). It runs as fast as the machine's counter: nobody sets or slews it, so that two of them differ by
/// their oscillators only. It goes on while the machine is suspended, and others take over.
pub fn now() -> Instant {
    // In this order: a suspend in between makes it late for a moment, as one right after would.
    let ran = nanos(ClockId::MonotonicRaw);
    let now = ran + SUSPENDED.look(|| nanos(ClockId::Boottime), || nanos(ClockId::Monotonic));
    let start = *START_NS.get_or_init(|| now);
    // One second ahead, so that "never" (zero) is always in the past.
    Instant::from_nanos((now - start).max(0) as u64 + 1_000_000_000)
}

fn nanos(clock: ClockId) -> i64 {
    let now = clock_gettime(clock);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// For how long this machine has been suspended, in ns, but for an offset that stays the same (in a time namespace it may be negative).
///
/// `CLOCK_BOOTTIME` counts suspends and `CLOCK_MONOTONIC` does not; both are slewed alike. A thread may lose the processor between the two, so
/// what it finds is too little at most.
struct Suspended(AtomicI64);

/// What two looks differ by without a suspend, at most.
const JITTER_NS: i64 = 1_000;
/// A thread that reads three clocks within this time was not interrupted for long.
const AT_ONCE_NS: i64 = 100_000;
const LOOKS_MAX: u32 = 1_000;

impl Suspended {
    fn look(&self, boottime: impl Fn() -> i64, monotonic: impl Fn() -> i64) -> i64 {
        let counted = boottime();
        let found = counted - monotonic();
        let known = self.0.load(Relaxed);
        if found <= known.saturating_add(JITTER_NS) {
            return known;
        }
        let exact = Self::look_closely(boottime, monotonic).max(found);
        self.0.fetch_max(exact, Relaxed).max(exact)
    }

    /// Again until it was not interrupted: what is found late would be a jump of the clock.
    fn look_closely(boottime: impl Fn() -> i64, monotonic: impl Fn() -> i64) -> i64 {
        let mut most = i64::MIN;
        for _ in 0..LOOKS_MAX {
            let before = monotonic();
            let counted = boottime();
            let after = monotonic();
            most = most.max(counted - after);
            if after - before < AT_ONCE_NS {
                break;
            }
        }
        most
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
        let suspended = Suspended(AtomicI64::new(i64::MIN));
        let look = |boottime: i64, monotonic: i64| suspended.look(|| boottime, || monotonic);
        assert_eq!(look(5_000_000, 6_000_000), -1_000_000, "a time namespace");
        // The thread has lost the processor between the two.
        assert_eq!(look(6_000_000, 7_100_000), -1_000_000);
        // Readings differ by some nanoseconds.
        assert_eq!(look(7_000_000, 7_999_970), -1_000_000);
        assert_eq!(look(3_007_000_000, 8_000_000), 2_999_000_000, "three seconds");
        assert_eq!(look(3_008_000_000, 10_000_000), 2_999_000_000);
    }

    #[test]
    fn the_first_look_is_not_too_small() {
        let (suspended, now) = (Suspended(AtomicI64::new(i64::MIN)), std::cell::Cell::new(0));
        // The first time the thread loses the processor for 3 ms between the two clocks.
        let read = || {
            let at: i64 = now.get();
            now.set(at + if at == 0 { 3_000_000 } else { 20 });
            at
        };
        let found = suspended.look(|| read() + 7_000_000, read);
        assert!((6_999_000..=7_000_000).contains(&found), "{found}");
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
