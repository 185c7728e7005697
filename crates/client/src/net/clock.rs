//! The clock of programs that bring none of their own.
#![expect(clippy::disallowed_methods, reason = "the clock of a program that uses the native API")]

use lats_base::Instant;
use std::{sync::OnceLock, time};

static START: OnceLock<time::Instant> = OnceLock::new();

/// Monotonic, from a second on, so that "never" (zero) is always in the past.
pub(super) fn now() -> Instant {
    let start = START.get_or_init(time::Instant::now);
    Instant::from_nanos(start.elapsed().as_nanos() as u64 + 1_000_000_000)
}
