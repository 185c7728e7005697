//! Whether each thread of a node comes on: what control is told of its own node (LATE-1; `docs/protocols/membership.md`).

use lats_base::{Duration, Instant};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// One per thread. Nothing depends on it but what control is told, so no order is promised.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct Pulse {
    /// When the turn began that it is in; 0: it is in none.
    turn_began: AtomicU64,
    /// When something was sent to it that it may not have looked at yet; 0: nothing.
    wanted_since: AtomicU64,
}

/// Control hears of threads that are so late, and of their end.
pub(crate) const LATE: Duration = Duration::from_millis(100);
/// Who asks was paused itself, if it has not asked for so long: what it has missed counts for nobody.
pub(crate) const PAUSED: Duration = Duration::from_millis(500);
/// The log has a line for a thread that is so late, and not more often than that.
pub(crate) const SAID: Duration = Duration::from_millis(1_000);

impl Pulse {
    /// A turn begins: it looks at all that was sent.
    pub(crate) fn begins(&self, now: Instant) {
        self.wanted_since.store(0, Relaxed);
        self.turn_began.store(now.as_nanos(), Relaxed);
    }

    pub(crate) fn ends(&self) {
        self.turn_began.store(0, Relaxed);
    }

    /// It sleeps, and nothing waits.
    pub(crate) fn rests(&self) {
        self.wanted_since.store(0, Relaxed);
    }

    /// Something was sent to it, and it is about to be woken.
    pub(crate) fn is_wanted(&self, now: Instant) {
        if self.wanted_since.load(Relaxed) == 0 {
            self.wanted_since.store(now.as_nanos(), Relaxed);
        }
    }

    /// For how long it has not come on, if nothing counts that was before `since`.
    fn behind(&self, since: Instant, now: Instant) -> Duration {
        let began = [self.turn_began.load(Relaxed), self.wanted_since.load(Relaxed)];
        let first = began.into_iter().filter(|at| *at != 0).min();
        first.map_or(Duration::ZERO, |at| now.since(Instant::from_nanos(at).max(since)))
    }
}

/// The thread that is most behind, but for one, and for how long.
pub(crate) fn latest(
    pulses: &[Pulse],
    own: usize,
    (since, now): (Instant, Instant),
) -> (usize, Duration) {
    let others = (0..pulses.len()).filter(|thread| *thread != own);
    let behind = others.map(|thread| (thread, pulses[thread].behind(since, now)));
    behind.max_by_key(|(_, late)| *late).unwrap_or((own, Duration::ZERO))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_works_long_or_does_not_wake_is_behind() {
        let at = |ms: u64| Instant::ZERO.plus(Duration::from_millis(ms));
        let pulses: [Pulse; 3] = Default::default();
        let late_since = |since, ms| {
            let (thread, late) = latest(&pulses, 0, (at(since), at(ms)));
            (thread, late.as_millis())
        };
        let late = |ms| late_since(0, ms);
        pulses[0].begins(at(1));
        assert_eq!(late(900).1, 0, "who asks comes on");
        pulses[1].begins(at(100));
        assert_eq!(late(350), (1, 250));
        pulses[2].is_wanted(at(50));
        pulses[2].is_wanted(at(200));
        assert_eq!(late(350), (2, 300), "since it was first wanted");
        assert_eq!(late_since(320, 350).1, 30, "all were paused until then");
        pulses[2].begins(at(350));
        pulses[1].ends();
        assert_eq!(late(351), (2, 1));
        pulses[2].ends();
        assert_eq!(late(9_000).1, 0, "who sleeps is not late");
        pulses[2].is_wanted(at(9_000));
        pulses[2].rests();
        assert_eq!(late(9_500).1, 0);
    }
}
