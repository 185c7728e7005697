//! The clocks of this machine: the only place that reads them.
#![expect(clippy::disallowed_methods, reason = "this is where clocks are read")]

use lats_base::Instant;
use std::{sync::OnceLock, time};

static START_NS: OnceLock<u64> = OnceLock::new();

/// This process's monotonic clock. LEASE-8: it goes on while the machine is suspended, and others take over.
pub fn now() -> Instant {
    let now = nanos();
    let start = *START_NS.get_or_init(|| now);
    // One second ahead, so that "never" (zero) is always in the past.
    Instant::from_nanos(now.saturating_sub(start) + 1_000_000_000)
}

/// The kernel's clock that counts suspends: what it is ahead of `CLOCK_MONOTONIC` is the time that the machine was suspended.
fn nanos() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
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
