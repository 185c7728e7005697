//! The table of all signals: numbers, sizes, who may send them; and the check at the door.

use crate::{
    HEADER_BYTES, Header, Signal, commit, control, copy, deadlock, io, list, query, restart,
};
use core::mem::size_of;
use lats_base::limits;

/// Who may send a signal to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Blocks of the same node and its shell.
    Local,
    /// Nodes of the cluster.
    Node,
    /// Clients, and SQL sessions, as well.
    Client,
    /// Clients that administer the cluster, and SQL sessions; other clients may not.
    Admin,
}

/// Bytes that no correct sender can have sent. The connection they came from is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

impl core::fmt::Display for Malformed {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "malformed signal: {}", self.0)
    }
}

/// Numbers of signals are below.
const NUMBERS_MAX: usize = 256;

macro_rules! signals {
    ($($number:literal $name:ident, $module:ident, $scope:ident;)+) => {
        /// The number of each signal. A number is never reused.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u16)]
        pub enum SignalNumber {
            $(
                #[doc = concat!("See `", stringify!($module), "::", stringify!($name), "`.")]
                $name = $number,
            )+
        }

        impl SignalNumber {
            /// The signal with this number, if this version knows it.
            #[inline]
            pub fn from_number(number: u16) -> Option<Self> {
                // A table: every signal is looked up several times on its way.
                const KNOWN: [Option<SignalNumber>; NUMBERS_MAX] = {
                    let mut known = [None; NUMBERS_MAX];
                    $(known[$number] = Some(SignalNumber::$name);)+
                    known
                };
                KNOWN.get(usize::from(number)).copied().flatten()
            }

            /// Bytes of its fixed body.
            #[inline]
            pub fn body_bytes(self) -> usize {
                match self {
                    $(Self::$name => size_of::<$module::$name>(),)+
                }
            }

            /// Bytes of the fixed body of the signal with this number; none if this version does not know it.
            #[inline]
            pub(crate) fn body_bytes_of(number: u16) -> usize {
                const BYTES: [usize; NUMBERS_MAX] = {
                    let mut bytes = [0; NUMBERS_MAX];
                    $(bytes[$number] = size_of::<$module::$name>();)+
                    bytes
                };
                BYTES.get(usize::from(number)).copied().unwrap_or(0)
            }

            /// Who may send it.
            #[inline]
            pub fn scope(self) -> Scope {
                match self {
                    $(Self::$name => Scope::$scope,)+
                }
            }
        }
    };
}

signals! {
    // Transactions: docs/protocols/commit.md.
    1 TcKeyReq, commit, Client;
    2 TcKeyConf, commit, Node;
    3 TcKeyRef, commit, Node;
    4 OutcomeReq, commit, Client;
    5 OutcomeConf, commit, Node;
    6 InterruptOrd, commit, Client;
    10 PrepareReq, commit, Node;
    11 PrepareConf, commit, Node;
    12 PrepareRef, commit, Node;
    13 ReplicateReq, commit, Node;
    14 ReplicateConf, commit, Node;
    15 DecideReq, commit, Node;
    16 DecideConf, commit, Node;
    17 CommitReq, commit, Node;
    18 CommitConf, commit, Node;
    19 AbortReq, commit, Node;
    20 AbortConf, commit, Node;
    21 CompleteOrd, commit, Node;
    22 TakeOverRep, commit, Node;
    23 TakeOverEndRep, commit, Node;
    24 OutcomeFindReq, commit, Node;
    25 OutcomeFindConf, commit, Node;
    26 EndingResumeOrd, commit, Local;
    27 BatchResumeOrd, commit, Local;
    31 CompleteConf, commit, Node;
    32 TakeOverEndedRep, commit, Node;
    // Hand-over of primaries: docs/protocols/hand-over.md.
    28 BatchReturnedRep, commit, Node;
    29 DrainedRep, control, Node;
    30 TakeOverReadyRep, control, Node;
    // Reads and scans: docs/protocols/read.md.
    40 ReadReq, query, Client;
    41 ReadConf, query, Node;
    42 ReadRef, query, Node;
    43 ScanReq, query, Client;
    44 ScanNextReq, query, Client;
    45 ScanCloseOrd, query, Client;
    46 ScanConf, query, Node;
    47 ScanRef, query, Node;
    48 ScanResumeOrd, query, Local;
    // Finding deadlocks: docs/protocols/deadlock.md.
    50 LockWaitRep, deadlock, Node;
    51 ProbeOrd, deadlock, Node;
    // Copying a replica: docs/protocols/rejoin.md.
    60 CopyRowsOrd, copy, Node;
    61 CopyRowsConf, copy, Node;
    62 CopyEndOrd, copy, Node;
    63 FragmentsSyncedRep, copy, Local;
    64 CopyResumeOrd, copy, Local;
    65 OutcomesOrd, copy, Node;
    66 AdoptReq, copy, Node;
    67 AdoptOrd, copy, Node;
    68 AdoptChangesReq, copy, Node;
    69 CopySinceReq, copy, Node;
    // Control: docs/protocols/membership.md.
    80 RaftOrd, control, Node;
    81 LeaseReq, control, Node;
    82 LeaseConf, control, Node;
    83 SuspectRep, control, Node;
    84 JoinReq, control, Node;
    85 JoinConf, control, Node;
    86 JoinRef, control, Node;
    88 InstalledRep, control, Node;
    90 MapReq, control, Client;
    91 MapConf, control, Node;
    92 CatalogReq, control, Client;
    93 CatalogConf, control, Node;
    94 ChangeReq, control, Admin;
    95 ChangeConf, control, Node;
    96 ChangeRef, control, Node;
    170 ChangeHeardOrd, control, Admin;
    97 StatusReq, control, Client;
    98 StatusConf, control, Node;
    100 ViewOrd, control, Local;
    101 CatalogOrd, control, Local;
    102 LeaseOrd, control, Local;
    103 LinkUpRep, control, Local;
    104 LinkDownRep, control, Local;
    105 ClientGoneRep, control, Local;
    106 CloseLinkOrd, control, Local;
    107 AddressesOrd, control, Local;
    108 StopOrd, control, Local;
    109 InstallConf, control, Local;
    110 EverywhereRep, control, Node;
    111 HeartbeatOrd, control, Node;
    112 CatalogResumeOrd, control, Local;
    113 LeaderLeftOrd, control, Node;
    // Ends of processes, and numbers of lives: docs/protocols/lives.md.
    162 CertificateOrd, control, Admin;
    163 LifeKnownOrd, control, Local;
    164 NeverJoinedRep, control, Node;
    // Stopping a node: docs/protocols/hand-over.md.
    114 StopNodeReq, control, Admin;
    115 LeaveOrd, control, Admin;
    116 QuietRep, control, Local;
    117 LeaveRep, control, Node;
    119 NoteOrd, control, Local;
    // Ending a node: docs/protocols/close.md.
    160 CloseOrd, control, Local;
    161 CloseRep, control, Node;
    // Data nodes that are silent and cannot be replaced: docs/protocols/membership.md.
    118 DeclareDeadReq, control, Admin;
    // Epochs: docs/protocols/epoch.md.
    120 EpochOrd, control, Node;
    121 EpochBarrierReq, control, Local;
    122 EpochBarrierConf, control, Local;
    123 EpochDoneRep, control, Node;
    124 EpochReq, control, Client;
    125 EpochConf, control, Node;
    // Figures: docs/threads.md.
    126 FiguresReq, control, Client;
    127 FiguresConf, control, Node;
    128 EpochUsedRep, control, Node;
    // Sessions of MySQL clients: docs/protocols/sessions.md.
    150 SessionsReq, control, Admin;
    151 SessionsConf, control, Node;
    155 LateRep, control, Local;
    156 LaneProbeOrd, control, Node;
    171 ReceivedOrd, control, Node;
    // Files: docs/protocols/durability.md.
    129 IoWriteReq, io, Local;
    130 IoConf, io, Local;
    131 IoRef, io, Local;
    132 EpochDurableRep, io, Node;
    133 LogBehindRep, io, Node;
    134 IoReadReq, io, Local;
    135 IoReadConf, io, Local;
    136 IoListReq, io, Local;
    137 IoListConf, io, Local;
    138 IoRemoveReq, io, Local;
    139 EpochWantedRep, control, Node;
    153 DirectoryRep, io, Local;
    // Restarts of the whole cluster: docs/protocols/restart.md.
    140 SurveyReq, restart, Local;
    141 SurveyRep, restart, Local;
    142 RestoreReq, restart, Local;
    143 RestoredRep, restart, Local;
    144 RestartRep, restart, Node;
    145 RestartReq, restart, Node;
    146 RestartConf, restart, Node;
    147 RestartOrd, restart, Node;
    148 RestoredOrd, restart, Local;
}

/// Checks a header before the rest has arrived; gives the signal's length in bytes.
///
/// # Errors
/// [`Malformed`] for a number, version or length that no correct sender uses.
pub(crate) fn check_header(header: &Header) -> Result<usize, Malformed> {
    let number = SignalNumber::from_number(header.number).ok_or(Malformed("unknown number"))?;
    if header.version != 1 {
        return Err(Malformed("unknown layout version"));
    }
    let length = header.length_bytes as usize;
    if length > limits::SIGNAL_BYTES_MAX {
        return Err(Malformed("too long"));
    }
    let content = HEADER_BYTES + number.body_bytes() + header.payload_bytes as usize;
    if content.next_multiple_of(8) != length {
        return Err(Malformed("the length does not fit the body and payload"));
    }
    Ok(length)
}

/// Checks the lists inside a signal's payload, so that blocks can walk them without looking back.
///
/// # Errors
/// [`Malformed`] if a list does not fill its payload exactly.
pub fn check(signal: &Signal<'_>) -> Result<(), Malformed> {
    let payload = signal.payload();
    let fits = match signal.number() {
        Some(SignalNumber::TcKeyReq) => list::check::<list::Operation>(
            payload,
            signal.body::<commit::TcKeyReq>().operation_count,
        ),
        Some(SignalNumber::PrepareReq) => list::check::<list::Operation>(
            payload,
            signal.body::<commit::PrepareReq>().operation_count,
        ),
        Some(SignalNumber::ReadReq) => {
            list::check::<list::Operation>(payload, signal.body::<query::ReadReq>().operation_count)
        }
        Some(SignalNumber::ReplicateReq) => {
            list::check::<list::Change>(payload, signal.body::<commit::ReplicateReq>().change_count)
        }
        Some(SignalNumber::CopyRowsOrd) => copy::check_rows(signal),
        Some(SignalNumber::AdoptChangesReq) => list::check::<list::OpenChange>(
            payload,
            signal.body::<copy::AdoptChangesReq>().change_count,
        ),
        Some(SignalNumber::TcKeyConf) => {
            list::check::<list::Outcome>(payload, signal.body::<commit::TcKeyConf>().result_count)
        }
        Some(SignalNumber::PrepareConf) => {
            let body = signal.body::<commit::PrepareConf>();
            let (outcomes, changes) = (body.result_count, body.index_change_count);
            list::check_both::<list::Outcome, list::IndexChange>(payload, outcomes, changes)
        }
        Some(SignalNumber::ReadConf) => {
            list::check::<list::Outcome>(payload, signal.body::<query::ReadConf>().result_count)
        }
        Some(SignalNumber::ScanConf) => {
            list::check::<list::FoundRow>(payload, signal.body::<query::ScanConf>().row_count)
        }
        Some(SignalNumber::ScanReq) => query::check_scan(signal),
        Some(SignalNumber::LockWaitRep) => deadlock::check_wait(signal),
        Some(SignalNumber::ProbeOrd) => deadlock::check_probe(signal),
        Some(SignalNumber::CompleteOrd | SignalNumber::TakeOverEndedRep) => {
            payload.len().is_multiple_of(size_of::<commit::CompleteEntry>())
        }
        Some(SignalNumber::OutcomesOrd) => {
            payload.len().is_multiple_of(size_of::<commit::KnownOutcome>())
        }
        Some(_) => true,
        None => false,
    };
    if fits { Ok(()) } else { Err(Malformed("the payload's list does not fit")) }
}
