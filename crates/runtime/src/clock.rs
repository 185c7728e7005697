//! The clocks of this machine: the only place that reads them.
#![expect(clippy::disallowed_methods, reason = "this is where clocks are read")]

use lats_base::Instant;
use std::{sync::OnceLock, time};

static START: OnceLock<time::Instant> = OnceLock::new();

/// This process's monotonic clock.
pub fn now() -> Instant {
    let start = START.get_or_init(time::Instant::now);
    // One second ahead, so that "never" (zero) is always in the past.
    Instant::from_nanos(start.elapsed().as_nanos() as u64 + 1_000_000_000)
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
