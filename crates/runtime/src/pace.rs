//! How large batches are: `scheduler_responsiveness`.

use lats_base::Duration;

/// What a thread does at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pace {
    /// Read from one socket in one turn, if no signal is longer: what comes of it should stay in the processor's cache,
    /// and its answers are sent before more is read.
    pub(crate) read_bytes: usize,
    /// Worked off before the thread looks at its sockets and timers again, and sends. Long scans send themselves the
    /// order to go on: however many of them there are, leases are renewed in time.
    pub(crate) turn: Duration,
    /// Rounds of the mailbox before the thread sends.
    pub(crate) rounds: usize,
}

impl Pace {
    /// 0: large batches, which cost least; 10: everything goes on at once.
    pub(crate) fn new(responsiveness: u8) -> Self {
        let (read_kib, turn_us, rounds) = match responsiveness {
            0 => (64, 1_000, usize::MAX),
            1 => (48, 800, usize::MAX),
            2 => (32, 600, usize::MAX),
            3 => (24, 450, usize::MAX),
            4 => (16, 350, usize::MAX),
            5 => (8, 250, usize::MAX),
            6 => (8, 200, 16),
            7 => (6, 150, 8),
            8 => (4, 100, 4),
            9 => (4, 75, 2),
            _ => (2, 50, 1),
        };
        Self { read_bytes: read_kib << 10, turn: Duration::from_micros(turn_us), rounds }
    }
}
