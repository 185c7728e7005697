//! Times that follow from the lease: PACE-1 (`docs/protocols/membership.md`).

use crate::{Control, TICK};
use lats_base::Duration;

/// The lease that the times below are written for. A longer one changes none of them; with a shorter one all are shorter
/// by as much.
const USUAL_LEASE_MS: u64 = 300;

/// How soon control does what keeps a lease alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pace {
    lease_ms: u64,
}

impl Pace {
    /// That of a lease; 0: it is not known yet.
    pub(crate) fn of(lease_ms: u64) -> Self {
        let known = if lease_ms == 0 { USUAL_LEASE_MS } else { lease_ms };
        Self { lease_ms: known.min(USUAL_LEASE_MS) }
    }

    fn scaled(self, usual_ms: u64) -> Duration {
        Duration::from_nanos(usual_ms * 1_000_000 * self.lease_ms / USUAL_LEASE_MS)
    }

    /// How often a lease is renewed, and how often data nodes send each other heartbeats: a lease survives two that are lost.
    /// Whole ticks, as what is due between two ticks waits for the second one.
    pub(crate) fn renew(self) -> Duration {
        let ticks = self.scaled(50).as_nanos() / TICK.as_nanos();
        Duration::from_nanos(ticks * TICK.as_nanos())
    }

    /// Without an answer for so long a node asks everybody whether it is still a member.
    pub(crate) fn unanswered(self) -> Duration {
        self.scaled(150)
    }

    /// Who has answered a heartbeat within this time is heard: as long as three take.
    pub(crate) fn heard_lately(self) -> Duration {
        self.scaled(150)
    }

    /// A complaint about a link is forgotten so long after it was made last; who has reason to complain does so with every tick.
    /// Less than a lease: nobody loses its lease for a link that has come right again.
    pub(crate) fn complaint_lasts(self) -> Duration {
        self.scaled(200)
    }

    /// Between two ticks of a leader at rest. The others' come when they hear the leader's, or by themselves after
    /// [`rest_alone`](Self::rest_alone).
    pub(crate) fn rest(self) -> Duration {
        self.scaled(50)
    }

    /// Between two ticks of another node at rest.
    pub(crate) fn rest_alone(self) -> Duration {
        self.scaled(100)
    }

    /// A tick that comes so long after it was due comes after a pause of this process.
    pub(crate) fn paused(self) -> Duration {
        self.scaled(90)
    }

    /// So does one that comes so long after the last one.
    pub(crate) fn paused_at_rest(self) -> Duration {
        self.scaled(150)
    }

    /// What the consensus library calls a tick: its elections and heartbeats are numbers of them.
    pub(crate) fn consensus_tick(self) -> Duration {
        self.scaled(TICK.as_millis())
    }
}

impl Control {
    /// The pace of this cluster's lease.
    pub(crate) fn pace(&self) -> Pace {
        Pace::of(self.state.view.config.lease_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_fit_into_the_lease() {
        for lease_ms in [100, 150, 299, 300, 900, 10_000] {
            let (pace, lease) = (Pace::of(lease_ms), Duration::from_millis(lease_ms));
            let (renew, tick) = (pace.renew().as_nanos(), TICK.as_nanos());
            // Two renewals may be lost, and each may be a tick late.
            assert!(renew >= tick && 3 * (renew + tick) < lease.as_nanos(), "{lease_ms}");
            // VIEW-9: an echo is as old as two renewals, and one of them a tick late, when the next one comes.
            assert!(2 * renew + tick < lease.as_nanos() / 2, "{lease_ms}");
            assert!(pace.complaint_lasts().as_nanos() + tick < lease.as_nanos(), "{lease_ms}");
            // What rests does not take its own rest for a pause, or for silence.
            assert!(pace.rest_alone() < pace.paused_at_rest() && pace.consensus_tick() <= TICK);
        }
        assert_eq!(Pace::of(0), Pace::of(300));
        assert_eq!(Pace::of(900).renew(), Duration::from_millis(50));
        assert_eq!(Pace::of(120).renew(), Duration::from_millis(20));
    }
}
