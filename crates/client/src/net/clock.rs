//! The clock of programs that bring none of their own.
#![expect(clippy::disallowed_methods, reason = "the clock of a program that uses the native API")]

use lats_base::{Duration, Instant};
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::{sync::OnceLock, time};

static START: OnceLock<time::Instant> = OnceLock::new();

/// Monotonic, from a second on, so that "never" (zero) is always in the past.
pub(super) fn now() -> Instant {
    let start = START.get_or_init(time::Instant::now);
    Instant::from_nanos(start.elapsed().as_nanos() as u64 + 1_000_000_000)
}

/// How long this machine has been suspended since it was booted; the monotonic clock does not count that (OUTCOME-8).
pub(super) fn suspended() -> Duration {
    let nanos = |time: Timespec| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
    loop {
        let before = nanos(clock_gettime(ClockId::Monotonic));
        let with = nanos(clock_gettime(ClockId::Boottime));
        let after = nanos(clock_gettime(ClockId::Monotonic));
        // Else the thread was interrupted between the two.
        if after.saturating_sub(before) < READ_WITHIN_NS {
            return Duration::from_nanos(with.saturating_sub(before));
        }
    }
}

/// Both clocks are read in this time.
const READ_WITHIN_NS: u64 = 500_000;
