//! Trying again after errors that pass.

use lats_base::{Duration, Instant};

/// How long something is tried, and what lies between two attempts.
const SPAN: Duration = Duration::from_millis(10_000);
const PAUSE: std::time::Duration = std::time::Duration::from_millis(2);

/// Of one transaction or operation.
pub(crate) struct Patience {
    clock: fn() -> Instant,
    begun: Instant,
    /// Attempts after the first one.
    pub(crate) retries: u64,
}

impl Patience {
    pub(crate) fn new(clock: fn() -> Instant) -> Self {
        Self { clock, begun: clock(), retries: 0 }
    }

    /// How long it has taken up to now.
    pub(crate) fn took(&self) -> Duration {
        (self.clock)().since(self.begun)
    }

    /// Waits until it may be tried again; false if it has been tried for long enough.
    pub(crate) async fn again(&mut self) -> bool {
        let patient = self.took() < SPAN;
        if patient {
            self.retries += 1;
            tokio::time::sleep(PAUSE).await;
        }
        patient
    }
}
