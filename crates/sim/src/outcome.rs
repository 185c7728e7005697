//! What runs have counted, and how they ended.

use std::collections::BTreeMap;

/// Faults that happened, by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally(BTreeMap<&'static str, u64>);

impl Tally {
    /// One more of a kind has happened.
    pub fn note(&mut self, kind: &'static str) {
        *self.0.entry(kind).or_default() += 1;
    }

    /// How many there were.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// Each kind and how often it has happened, in the order of their names.
    pub fn kinds(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.0.iter().map(|(kind, count)| (*kind, *count))
    }

    fn add(&mut self, other: &Self) {
        other.kinds().for_each(|(kind, count)| *self.0.entry(kind).or_default() += count);
    }
}

/// How a run ended.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The first thing that was found wrong.
    pub failure: Option<String>,
    /// Equal for equal seeds.
    pub digest: u64,
    /// What it has counted.
    pub counts: Counts,
}

/// What one run has counted, or several.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Runs.
    pub runs: u64,
    /// Faults that happened.
    pub faults: Tally,
    /// Signals delivered.
    pub signals: u64,
    /// Transactions committed.
    pub commits: u64,
    /// Transactions refused.
    pub aborts: u64,
    /// Reads checked.
    pub reads: u64,
    /// Statements refused in transactions that went on.
    pub refusals: u64,
    /// Snapshots checked.
    pub snapshots: u64,
    /// Restores from backups and archives that told everything.
    pub restores: u64,
    /// Transfers that were known to be durable when their clients went on.
    pub waits: u64,
    /// Indexes that were created or dropped.
    pub index_changes: u64,
    /// Hand-overs of primaries that came through, and that were called off.
    pub hand_overs: (u64, u64),
    /// Outcomes that clients were not told although the cluster lived.
    pub unknown: u64,
    /// Changes of the view.
    pub views: u64,
    /// Virtual time, in ms.
    pub virtual_ms: u64,
    /// From the death of each data node to the next commit of a client, in us.
    pub failovers_us: Vec<u64>,
    /// Transactions that gave way in a deadlock.
    pub deadlock_victims: u64,
    /// How long each transaction was in a deadlock, in us.
    pub deadlocks_us: Vec<u64>,
}

impl Counts {
    /// Adds what other runs have counted.
    pub fn add(&mut self, other: &Self) {
        self.runs += other.runs;
        self.faults.add(&other.faults);
        self.signals += other.signals;
        self.commits += other.commits;
        self.aborts += other.aborts;
        self.reads += other.reads;
        self.refusals += other.refusals;
        self.snapshots += other.snapshots;
        self.restores += other.restores;
        self.waits += other.waits;
        self.index_changes += other.index_changes;
        self.hand_overs.0 += other.hand_overs.0;
        self.hand_overs.1 += other.hand_overs.1;
        self.unknown += other.unknown;
        self.views += other.views;
        self.virtual_ms += other.virtual_ms;
        self.failovers_us.extend(&other.failovers_us);
        self.deadlock_victims += other.deadlock_victims;
        self.deadlocks_us.extend(&other.deadlocks_us);
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} faults, {} commits, {} refused, {} statements refused within a transaction, {} reads and {} snapshots \
             checked, {} restores, {} waits for disks, {} indexes built or dropped, {} view changes, {} hand-overs and \
             {} called off, {} unknown outcomes, {} signals",
            self.faults.total(),
            self.commits,
            self.aborts,
            self.refusals,
            self.reads,
            self.snapshots,
            self.restores,
            self.waits,
            self.index_changes,
            self.views,
            self.hand_overs.0,
            self.hand_overs.1,
            self.unknown,
            self.signals,
        )
    }
}
