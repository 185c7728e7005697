//! The planted bugs: mistakes that somebody might make, switched on by name. For each of them this list says how the
//! simulator must find it. A checker that never failed is not trusted (`docs/testing.md`).

use crate::Kind;
use lats_kernel::Fault;

/// How a planted bug is found: by one of these runs, the first of which that fails ends the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Runs of this kind.
    pub kind: Kind,
    /// The first seed.
    pub first: u64,
    /// So many seeds at most.
    pub seeds: u64,
}

/// A planted bug.
#[derive(Clone, Copy, Debug)]
pub struct Planted {
    /// What the command line calls it.
    pub name: &'static str,
    /// What is armed.
    pub fault: Fault,
    /// How it is found.
    pub found: Found,
    /// In runs that a seed decides it errs once in so many visits.
    pub once_in: u64,
    /// A death that it needs to show: the crash point, and how often it fires there.
    pub death: Option<(Fault, u64)>,
}

/// A bug that has many occasions errs at one of so many.
const SOMETIMES: u64 = 5;
/// A bug that has few occasions takes them all.
const ALWAYS: u64 = 1;

const fn bug(name: &'static str, fault: Fault, found: Found, once_in: u64) -> Planted {
    Planted { name, fault, found, once_in, death: None }
}

const fn with_death(planted: Planted, death: Fault, once_in: u64) -> Planted {
    Planted { death: Some((death, once_in)), ..planted }
}

/// Found by ordinary runs, of so many at most.
const fn mixed(seeds: u64) -> Found {
    of_kind(Kind::Mixed, seeds)
}

const fn of_kind(kind: Kind, seeds: u64) -> Found {
    Found { kind, first: 1, seeds }
}

/// All planted bugs that the simulator must find. (Those of [`BY_UNIT_TESTS`] need a bench of their own.)
pub const PLANTED: &[Planted] = &[
    bug("forget-tentative-row", Fault::BugForgetTentativeRow, mixed(60), SOMETIMES),
    bug("read-stale-backup", Fault::BugReadStaleBackup, mixed(60), SOMETIMES),
    bug("answer-early", Fault::BugAnswerEarly, mixed(60), SOMETIMES),
    with_death(
        bug("abort-decided", Fault::BugAbortDecided, mixed(60), ALWAYS),
        Fault::CrashAfterDecide,
        200,
    ),
    bug("carry-in-parts", Fault::BugCarryInParts, mixed(60), SOMETIMES),
    with_death(
        bug("drop-carried-decision", Fault::BugDropCarriedDecision, mixed(800), ALWAYS),
        Fault::CrashAfterAnswer,
        200,
    ),
    with_death(
        bug("commit-partly-held", Fault::BugCommitPartlyHeld, mixed(800), ALWAYS),
        Fault::CrashBetweenImages,
        200,
    ),
    with_death(
        bug("forget-ended", Fault::BugForgetEnded, mixed(800), ALWAYS),
        Fault::CrashBetweenCompletions,
        200,
    ),
    bug(
        "carry-past-others",
        Fault::BugCarryPastOthers,
        of_kind(Kind::Scenario("death-between-completions"), 20),
        ALWAYS,
    ),
    bug(
        "lose-passed-part",
        Fault::BugLosePassedPart,
        of_kind(Kind::Scenario("overtaken-completion"), 20),
        ALWAYS,
    ),
    bug("epoch-done-early", Fault::BugEpochDoneEarly, mixed(60), SOMETIMES),
    bug("epoch-uncounted", Fault::BugEpochUncounted, mixed(800), ALWAYS),
    bug("forget-older-version", Fault::BugForgetOlderVersion, mixed(60), SOMETIMES),
    bug("keep-refused-statement", Fault::BugKeepRefusedStatement, mixed(60), SOMETIMES),
    bug("share-without-lock", Fault::BugShareWithoutLock, mixed(60), SOMETIMES),
    bug("blind-to-deadlocks", Fault::BugBlindToDeadlocks, mixed(60), ALWAYS),
    bug("hasty-victim", Fault::BugHastyVictim, mixed(60), SOMETIMES),
    bug("forget-index-change", Fault::BugForgetIndexChange, mixed(60), SOMETIMES),
    bug("show-index-early", Fault::BugShowIndexEarly, mixed(800), ALWAYS),
    bug("build-without-pending", Fault::BugBuildWithoutPending, mixed(800), ALWAYS),
    bug("forget-open-change", Fault::BugForgetOpenChange, mixed(60), ALWAYS),
    bug("hand-over-early", Fault::BugHandOverEarly, mixed(1_500), ALWAYS),
    bug(
        "forget-begun-scan",
        Fault::BugForgetBegunScan,
        of_kind(Kind::Scenario("scans-begun-beside"), 20),
        SOMETIMES,
    ),
    bug("seal-late", Fault::BugSealLate, of_kind(Kind::Scenario("last-moments"), 20), ALWAYS),
    bug("close-early", Fault::BugCloseEarly, of_kind(Kind::Closing, 60), ALWAYS),
    bug("seal-early", Fault::BugSealEarly, of_kind(Kind::Scenario("late-completion"), 20), ALWAYS),
    bug("forget-sync", Fault::BugForgetSync, mixed(800), SOMETIMES),
    bug(
        "ignore-backlog",
        Fault::BugIgnoreBacklog,
        of_kind(Kind::Scenario("full-disk-at-backup"), 20),
        ALWAYS,
    ),
    bug("trim-early", Fault::BugTrimEarly, mixed(800), ALWAYS),
    bug("forget-restarts", Fault::BugForgetRestarts, mixed(800), ALWAYS),
    bug("forget-gone-rows", Fault::BugForgetGoneRows, mixed(800), SOMETIMES),
    bug(
        "gone-too-early",
        Fault::BugGoneTooEarly,
        of_kind(Kind::Scenario("void-deletion"), 20),
        ALWAYS,
    ),
    bug("end-before-taken", Fault::BugEndBeforeTaken, mixed(800), SOMETIMES),
    bug("trust-damaged-log", Fault::BugTrustDamagedLog, mixed(800), ALWAYS),
    bug("confirm-void", Fault::BugConfirmVoid, mixed(800), ALWAYS),
    bug("report-without-state", Fault::BugReportWithoutState, mixed(800), ALWAYS),
    bug("tell-before-joining", Fault::BugTellBeforeJoining, mixed(800), ALWAYS),
    bug("restart-without-all", Fault::BugRestartWithoutAll, mixed(800), ALWAYS),
    bug(
        "restart-beyond-state",
        Fault::BugRestartBeyondState,
        of_kind(Kind::Scenario("late-definitions"), 20),
        ALWAYS,
    ),
    bug("keep-alone", Fault::BugKeepAlone, of_kind(Kind::Blackout, 400), ALWAYS),
    bug(
        "send-promised-away",
        Fault::BugSendPromisedAway,
        of_kind(Kind::Scenario("begun-without-it"), 20),
        ALWAYS,
    ),
    bug(
        "never-gives-in",
        Fault::BugNeverGivesIn,
        of_kind(Kind::Scenario("two-askers"), 20),
        ALWAYS,
    ),
    bug(
        "bound-to-the-dead",
        Fault::BugBoundToTheDead,
        of_kind(Kind::Scenario("promise-to-the-dead"), 20),
        ALWAYS,
    ),
    bug("ignore-lease", Fault::BugIgnoreLease, of_kind(Kind::Storm, 100), ALWAYS),
    bug(
        "check-before-read",
        Fault::BugCheckBeforeRead,
        of_kind(Kind::Scenario("paused-inside-a-round"), 20),
        ALWAYS,
    ),
    bug(
        "forget-earlier-leases",
        Fault::BugForgetEarlierLeases,
        of_kind(Kind::Scenario("leader-cut-off"), 20),
        ALWAYS,
    ),
    bug("commit-without-lost", Fault::BugCommitWithoutLost, of_kind(Kind::Outage, 200), ALWAYS),
    bug("wait-for-the-silent", Fault::BugWaitForTheSilent, of_kind(Kind::Outage, 200), ALWAYS),
    bug("forget-the-silent", Fault::BugForgetTheSilent, of_kind(Kind::Outage, 200), ALWAYS),
    bug(
        "answered-by-silence",
        Fault::BugAnsweredBySilence,
        of_kind(Kind::Scenario("late-complaint"), 20),
        ALWAYS,
    ),
    bug(
        "forget-answered",
        Fault::BugForgetAnswered,
        of_kind(Kind::Scenario("lost-answer-to-drop"), 20),
        ALWAYS,
    ),
    bug("forget-age", Fault::BugForgetAge, of_kind(Kind::Scenario("long-sleep"), 20), ALWAYS),
    bug(
        "interrupt-decided",
        Fault::BugInterruptDecided,
        of_kind(Kind::Scenario("late-interrupt"), 20),
        ALWAYS,
    ),
    bug(
        "leave-the-last",
        Fault::BugLeaveTheLast,
        of_kind(Kind::Scenario("both-directories-gone"), 20),
        ALWAYS,
    ),
    bug(
        "claim-unwritten",
        Fault::BugClaimUnwritten,
        of_kind(Kind::Scenario("both-directories-gone"), 20),
        ALWAYS,
    ),
    bug(
        "heartbeats-behind-data",
        Fault::BugHeartbeatsBehindData,
        of_kind(Kind::Scenario("rows-stand-still"), 20),
        ALWAYS,
    ),
    bug(
        "reform-without-all",
        Fault::BugReformWithoutAll,
        of_kind(Kind::Scenario("removed-survivor"), 20),
        ALWAYS,
    ),
    bug(
        "unfenced-view",
        Fault::BugUnfencedView,
        of_kind(Kind::Scenario("removed-survivor"), 20),
        SOMETIMES,
    ),
    bug("show-undurable", Fault::BugShowUndurable, mixed(60), SOMETIMES),
    bug("first-ends-scan", Fault::BugFirstEndsScan, mixed(400), ALWAYS),
    bug("count-ranges-anew", Fault::BugCountRangesAnew, mixed(400), ALWAYS),
];

/// Planted bugs that tests of one data manager find, and the file with the test.
pub const BY_UNIT_TESTS: &[(Fault, &str)] = &[
    (Fault::BugConfirmFirstSlice, "crates/ldm/src/tests.rs"),
    (Fault::BugScanUnbuiltIndex, "crates/ldm/src/tests.rs"),
];
