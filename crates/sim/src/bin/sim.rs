//! `cargo xtask sim`: runs seeds, prints the failing ones.

use clap::Parser;
use lats_kernel::Fault;
use lats_sim::{Kind, Options, Outcome, run_caught};
use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

/// Runs simulated clusters, each decided by a seed. Exit status 1 if any fails.
#[derive(Parser)]
struct Args {
    /// How many seeds to run.
    #[arg(long, default_value_t = 100)]
    seeds: u64,
    /// Run for so many minutes instead of a number of seeds.
    #[arg(long)]
    minutes: Option<u64>,
    /// The first seed (or the only one, with `--seeds 1`); drawn from the clock if not given.
    #[arg(long)]
    seed: Option<u64>,
    /// Run each seed twice and compare.
    #[arg(long)]
    twice: bool,
    /// Plant a bug: every run should fail.
    #[arg(long)]
    bug: Option<String>,
    /// Print what happens.
    #[arg(long, short)]
    verbose: bool,
    /// Long runs with hundreds of faults each.
    #[arg(long)]
    storm: bool,
    /// Short runs with two node groups, one of which is lost at the end.
    #[arg(long, conflicts_with = "storm")]
    outage: bool,
    /// Short runs with two node groups, all nodes of which die in the end.
    #[arg(long, conflicts_with_all = ["storm", "outage"])]
    blackout: bool,
    /// Threads.
    #[arg(long, default_value_t = 2)]
    jobs: u64,
}

impl Args {
    fn kind(&self) -> Kind {
        match (self.storm, self.outage, self.blackout) {
            (true, ..) => Kind::Storm,
            (_, true, _) => Kind::Outage,
            (_, _, true) => Kind::Blackout,
            _ => Kind::Mixed,
        }
    }
}

/// The planted bugs, by name.
const BUGS: &[(&str, Fault)] = &[
    ("forget-tentative-row", Fault::BugForgetTentativeRow),
    ("read-stale-backup", Fault::BugReadStaleBackup),
    ("answer-early", Fault::BugAnswerEarly),
    ("abort-decided", Fault::BugAbortDecided),
    ("carry-in-parts", Fault::BugCarryInParts),
    ("drop-carried-decision", Fault::BugDropCarriedDecision),
    ("commit-partly-held", Fault::BugCommitPartlyHeld),
    ("forget-ended", Fault::BugForgetEnded),
    ("carry-past-others", Fault::BugCarryPastOthers),
    ("lose-passed-part", Fault::BugLosePassedPart),
    ("epoch-done-early", Fault::BugEpochDoneEarly),
    ("epoch-uncounted", Fault::BugEpochUncounted),
    ("forget-older-version", Fault::BugForgetOlderVersion),
    ("confirm-first-slice", Fault::BugConfirmFirstSlice),
    ("scan-unbuilt-index", Fault::BugScanUnbuiltIndex),
    ("forget-begun-scan", Fault::BugForgetBegunScan),
    ("seal-early", Fault::BugSealEarly),
    ("forget-sync", Fault::BugForgetSync),
    ("ignore-backlog", Fault::BugIgnoreBacklog),
    ("trim-early", Fault::BugTrimEarly),
    ("forget-restarts", Fault::BugForgetRestarts),
    ("forget-gone-rows", Fault::BugForgetGoneRows),
    ("gone-too-early", Fault::BugGoneTooEarly),
    ("end-before-taken", Fault::BugEndBeforeTaken),
    ("trust-damaged-log", Fault::BugTrustDamagedLog),
    ("confirm-void", Fault::BugConfirmVoid),
    ("report-without-state", Fault::BugReportWithoutState),
    ("tell-before-joining", Fault::BugTellBeforeJoining),
    ("keep-alone", Fault::BugKeepAlone),
    ("restart-without-all", Fault::BugRestartWithoutAll),
    ("restart-beyond-state", Fault::BugRestartBeyondState),
    ("ignore-lease", Fault::BugIgnoreLease),
    ("keep-refused-statement", Fault::BugKeepRefusedStatement),
    ("share-without-lock", Fault::BugShareWithoutLock),
    ("blind-to-deadlocks", Fault::BugBlindToDeadlocks),
    ("hasty-victim", Fault::BugHastyVictim),
    ("forget-index-change", Fault::BugForgetIndexChange),
    ("show-index-early", Fault::BugShowIndexEarly),
    ("build-without-pending", Fault::BugBuildWithoutPending),
    ("hand-over-early", Fault::BugHandOverEarly),
    ("forget-open-change", Fault::BugForgetOpenChange),
    ("forget-earlier-leases", Fault::BugForgetEarlierLeases),
    ("commit-without-lost", Fault::BugCommitWithoutLost),
    ("wait-for-the-silent", Fault::BugWaitForTheSilent),
    ("forget-the-silent", Fault::BugForgetTheSilent),
];

#[derive(Default)]
struct Totals {
    kind: Kind,
    runs: u64,
    commits: u64,
    aborts: u64,
    reads: u64,
    refusals: u64,
    snapshots: u64,
    restores: u64,
    waits: u64,
    index_changes: u64,
    hand_overs: (u64, u64),
    faults: u64,
    signals: u64,
    unknown: u64,
    views: u64,
    failovers_us: Vec<u64>,
    deadlock_victims: u64,
    deadlocks_us: Vec<u64>,
    failures: Vec<(u64, String)>,
}

impl Totals {
    fn add(&mut self, seed: u64, outcome: Outcome) {
        self.runs += 1;
        self.commits += outcome.commits;
        self.aborts += outcome.aborts;
        self.reads += outcome.reads;
        self.refusals += outcome.refusals;
        self.snapshots += outcome.snapshots;
        self.restores += outcome.restores;
        self.waits += outcome.waits;
        self.index_changes += outcome.index_changes;
        self.faults += outcome.faults;
        self.hand_overs.0 += outcome.hand_overs.0;
        self.hand_overs.1 += outcome.hand_overs.1;
        self.signals += outcome.signals;
        self.unknown += outcome.unknown;
        self.views += outcome.views.saturating_sub(1);
        self.failovers_us.extend(outcome.failovers_us);
        self.deadlock_victims += outcome.deadlock_victims;
        self.deadlocks_us.extend(outcome.deadlocks_us);
        if let Some(failure) = outcome.failure {
            self.failures.push((seed, failure));
        }
    }

    fn merge(&mut self, other: Self) {
        self.runs += other.runs;
        self.commits += other.commits;
        self.aborts += other.aborts;
        self.reads += other.reads;
        self.refusals += other.refusals;
        self.snapshots += other.snapshots;
        self.restores += other.restores;
        self.waits += other.waits;
        self.index_changes += other.index_changes;
        self.faults += other.faults;
        self.hand_overs.0 += other.hand_overs.0;
        self.hand_overs.1 += other.hand_overs.1;
        self.signals += other.signals;
        self.unknown += other.unknown;
        self.views += other.views;
        self.failovers_us.extend(other.failovers_us);
        self.deadlock_victims += other.deadlock_victims;
        self.deadlocks_us.extend(other.deadlocks_us);
        self.failures.extend(other.failures);
    }
}

#[expect(clippy::print_stdout, reason = "a command-line tool")]
#[expect(clippy::disallowed_methods, reason = "the clock draws a fresh seed and ends the run")]
fn main() -> std::process::ExitCode {
    let args = Args::parse();
    let started = std::time::Instant::now();
    let drawn = || {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.map_or(1, |t| t.as_micros() as u64 % 1_000_000_000)
    };
    let first = args.seed.unwrap_or_else(drawn);
    let bug = match args.bug.as_deref() {
        None => None,
        Some(name) => match BUGS.iter().find(|(n, _)| *n == name) {
            Some((_, fault)) => Some(*fault),
            None => {
                let names: Vec<_> = BUGS.iter().map(|(n, _)| *n).collect();
                println!("no such bug: {name}; there are: {names:?}");
                return std::process::ExitCode::from(2);
            }
        },
    };
    println!("sim: seeds from {first}; repeat one with `cargo xtask sim --seeds 1 --seed N -v`");
    let end = args.minutes.map(|m| started + Duration::from_secs(60 * m));
    let jobs = args.jobs.max(1);
    let mut totals = Totals { kind: args.kind(), ..Totals::default() };
    // One failing seed shows that a planted bug is found.
    let found = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs)
            .map(|job| {
                let (args, found) = (&args, &found);
                scope.spawn(move || {
                    let mut own = Totals::default();
                    let mut index = job;
                    loop {
                        let over = match end {
                            Some(end) => std::time::Instant::now() >= end,
                            None => index >= args.seeds,
                        };
                        if over || found.load(Ordering::Relaxed) {
                            return own;
                        }
                        let seed = first.wrapping_add(index);
                        index += jobs;
                        own.add(seed, one(seed, bug, args));
                        if bug.is_some() && !own.failures.is_empty() {
                            found.store(true, Ordering::Relaxed);
                        }
                    }
                })
            })
            .collect();
        for worker in workers {
            match worker.join() {
                Ok(own) => totals.merge(own),
                Err(_) => totals.failures.push((0, "a worker panicked".to_string())),
            }
        }
    });
    report(&mut totals, started.elapsed())
}

/// Runs a seed, twice if asked to.
fn one(seed: u64, bug: Option<Fault>, args: &Args) -> Outcome {
    let options = Options { seed, bug, kind: args.kind(), verbose: args.verbose };
    let mut outcome = run_caught(&options);
    if args.twice && outcome.failure.is_none() {
        let again = run_caught(&options);
        if again.digest != outcome.digest {
            outcome.failure = Some("the same seed gave another run".to_string());
        }
    }
    outcome
}

#[expect(clippy::print_stdout, reason = "a command-line tool")]
fn report(totals: &mut Totals, took: Duration) -> std::process::ExitCode {
    totals.failures.sort();
    for (seed, failure) in &totals.failures {
        println!("seed {seed} FAILED: {failure}");
        let kind = match totals.kind {
            Kind::Mixed => "",
            Kind::Storm => " --storm",
            Kind::Outage => " --outage",
            Kind::Blackout => " --blackout",
        };
        println!("    repeat: cargo xtask sim --seeds 1 --seed {seed}{kind} -v");
    }
    println!(
        "sim: {} runs, {} failed; {} faults, {} commits, {} refused, {} statements refused within a \
         transaction, {} reads and {} snapshots checked, {} restores, {} waits for disks, {} indexes built or dropped, {} view changes, \
         {} hand-overs and {} called off, {} unknown outcomes, {} signals in {:.1} s",
        totals.runs,
        totals.failures.len(),
        totals.faults,
        totals.commits,
        totals.aborts,
        totals.refusals,
        totals.reads,
        totals.snapshots,
        totals.restores,
        totals.waits,
        totals.index_changes,
        totals.views,
        totals.hand_overs.0,
        totals.hand_overs.1,
        totals.unknown,
        totals.signals,
        took.as_secs_f64()
    );
    println!(
        "sim: {} data nodes died; first commit after it: {}",
        totals.failovers_us.len(),
        spread(&mut totals.failovers_us)
    );
    println!(
        "sim: {} transactions gave way in deadlocks; time in one: {}",
        totals.deadlock_victims,
        spread(&mut totals.deadlocks_us)
    );
    std::process::ExitCode::from(u8::from(!totals.failures.is_empty()))
}

/// How times are spread.
fn spread(times_us: &mut [u64]) -> String {
    times_us.sort_unstable();
    let worst = times_us.len().saturating_sub(1);
    let part = |percent: usize| times_us.get(worst * percent / 100).unwrap_or(&0);
    let (median, ninety, ninety_nine, longest) = (part(50), part(90), part(99), part(100));
    format!("median {median} us, 90% {ninety} us, 99% {ninety_nine} us, longest {longest} us")
}
