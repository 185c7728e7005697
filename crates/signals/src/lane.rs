//! The two connections between two nodes (THREAD-5; `docs/protocols/threads.md`).

use crate::{BlockKind, Signal, SignalNumber};

/// Which of the connections between two nodes a signal takes. What control says never waits behind rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    /// What all other blocks say.
    #[default]
    Data,
    /// What control says to control: heartbeats, leases, the consensus log.
    Control,
}

impl Lane {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Data, Self::Control];

    /// Its number in greetings.
    pub fn number(self) -> u32 {
        self as u32
    }

    /// The lane with this number.
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|lane| lane.number() == number)
    }

    /// True if senders say the same again and again, and a later one makes up for it: it is not kept for a connection that is not there
    /// (LINK-3). The log of the control group is sent again, too.
    pub fn is_repeated(signal: &Signal<'_>) -> bool {
        matches!(
            signal.number(),
            Some(
                SignalNumber::HeartbeatOrd
                    | SignalNumber::LaneProbeOrd
                    | SignalNumber::LeaseReq
                    | SignalNumber::LeaseConf
                    | SignalNumber::SuspectRep
                    | SignalNumber::JoinReq
                    | SignalNumber::JoinRef
                    | SignalNumber::RestartRep
                    | SignalNumber::CloseRep
                    | SignalNumber::RaftOrd
            )
        )
    }

    /// The lane of a signal from one node to another. All signals of one block to another one take the same, and stay in order, but for
    /// the probe of the lane of rows.
    pub fn of(signal: &Signal<'_>) -> Self {
        let is_control = |kind| kind == Some(BlockKind::Control);
        let both = is_control(signal.sender().kind()) && is_control(signal.header.receiver.kind());
        let probes = || signal.number() == Some(SignalNumber::LaneProbeOrd);
        if both && !probes() { Self::Control } else { Self::Data }
    }
}
