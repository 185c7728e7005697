//! Finding rows by the keys of a unique index, without locks. No I/O: it says what to read, and is
//! given what was read.
//!
//! An entry may be read before a change and its row after it, so rows are believed and entries are
//! not (UNIQUE-6): an entry names every row that may have the key, and these are looked at.

use crate::api::{LockMode, LockWait, RowOp, RowOpKind, RowOutcome, RowResult, StoreError};
use lats_base::{Duration, RefCode, TableId};
use lats_catalog::{IndexDef, TableDef, unique};
use lats_signals::list::{self, Holder};
use lats_values::RowLayout;
use std::sync::Arc;

/// Rounds without an end: somebody's commit hangs for longer than a failure is handled in. With their pauses they last 5.5 s.
const ROUNDS_MAX: u32 = 600;
/// Rounds without a pause, and rounds before pauses become longer: a commit that is not over by then waits for a failure to be
/// handled.
const EAGER_ROUNDS: u32 = 3;
const SHORT_ROUNDS: u32 = 50;
const SHORT_PAUSE: Duration = Duration::from_millis(1);
const LONG_PAUSE: Duration = Duration::from_millis(10);

/// A search for the rows with some keys of a unique index.
#[derive(Clone, Debug)]
pub struct UniqueLookup {
    table: TableId,
    schema_version: u32,
    entries: TableId,
    layout: RowLayout,
    columns: Vec<u16>,
    sought: Vec<Sought>,
    phase: Phase,
    rounds: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Entries,
    Rows,
}

#[derive(Clone, Debug)]
struct Sought {
    index_key: Vec<u8>,
    /// The entry as it was read, and as it was read in the round before.
    holders: Vec<u8>,
    before: Option<Vec<u8>>,
    state: State,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Open,
    Absent,
    Found(FoundByKey),
}

/// A row that has the key that was sought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundByKey {
    /// Its primary key.
    pub primary_key: Vec<u8>,
    /// Its image, whole.
    pub row: Vec<u8>,
}

impl UniqueLookup {
    /// A search for encoded keys of an index, which must be unique and complete.
    pub fn new(table: &TableDef, index: &IndexDef, keys: Vec<Vec<u8>>) -> Option<Self> {
        let unique = index.unique.filter(|u| u.builder.is_none())?;
        let sought =
            |index_key| Sought { index_key, holders: Vec::new(), before: None, state: State::Open };
        Some(Self {
            table: table.id,
            schema_version: table.schema_version,
            entries: unique.table,
            layout: table.layout(),
            columns: index.columns.clone(),
            sought: keys.into_iter().map(sought).collect(),
            phase: Phase::Entries,
            rounds: 0,
        })
    }

    /// What to read next: committed reads, at any replica. Nothing: it is over.
    pub fn next_reads(&self) -> Vec<RowOp> {
        let open = self.sought.iter().filter(|s| s.state == State::Open);
        match self.phase {
            Phase::Entries => {
                open.map(|s| self.read_of(self.entries, unique::key(&s.index_key))).collect()
            }
            Phase::Rows => open
                .flat_map(|s| primary_keys(&s.holders))
                .map(|key| self.read_of(self.table, key))
                .collect(),
        }
    }

    fn read_of(&self, table: TableId, key: Vec<u8>) -> RowOp {
        let of_entries = table == self.entries;
        RowOp {
            table,
            schema_version: if of_entries { unique::SCHEMA_VERSION } else { self.schema_version },
            kind: RowOpKind::Read(LockMode::Committed),
            key,
            row: Vec::new(),
            program: Arc::default(),
            wait: LockWait::Wait,
        }
    }

    /// Takes the results of [`Self::next_reads`].
    ///
    /// # Errors
    /// When it does not come to an end.
    pub fn take(&mut self, results: Vec<RowResult>) -> Result<(), StoreError> {
        match self.phase {
            Phase::Entries => {
                self.take_entries(results);
                self.phase = Phase::Rows;
            }
            Phase::Rows => {
                self.take_rows(results);
                self.phase = Phase::Entries;
                self.rounds += 1;
            }
        }
        if self.rounds > ROUNDS_MAX {
            return Err(RefCode::StaleView.into());
        }
        Ok(())
    }

    /// How long the next reads should wait for a commit that is under way.
    pub fn pause(&self) -> Option<Duration> {
        let waits = self.phase == Phase::Entries && self.rounds >= EAGER_ROUNDS;
        waits.then_some(if self.rounds < SHORT_ROUNDS { SHORT_PAUSE } else { LONG_PAUSE })
    }

    /// What was found, in the order of the keys.
    pub fn found(self) -> Vec<Option<FoundByKey>> {
        let found = |s: Sought| match s.state {
            State::Found(row) => Some(row),
            State::Open | State::Absent => None,
        };
        self.sought.into_iter().map(found).collect()
    }

    fn take_entries(&mut self, results: Vec<RowResult>) {
        let open = self.sought.iter_mut().filter(|s| s.state == State::Open);
        for (sought, result) in open.zip(results) {
            let holders = result.row.filter(|_| result.outcome == RowOutcome::Done);
            let Some(holders) = holders else {
                // Nobody has the key, and nobody is about to.
                sought.state = State::Absent;
                continue;
            };
            // The entry is what it was before its only row was seen not to have the key: so nobody
            // had it then. With two rows, one may have passed it to the other between the looks.
            let same = sought.before.take().is_some_and(|before| before == holders);
            if same && primary_keys(&holders).count() == 1 {
                sought.state = State::Absent;
            }
            sought.holders = holders;
        }
    }

    fn take_rows(&mut self, results: Vec<RowResult>) {
        let mut results = results.into_iter();
        for sought in self.sought.iter_mut().filter(|s| s.state == State::Open) {
            sought.before = Some(sought.holders.clone());
            for primary_key in primary_keys(&sought.holders.clone()) {
                let Some(row) = results.next().and_then(|r| r.row) else { continue };
                let mut own = Vec::new();
                self.layout.key_of(&row, &self.columns, &mut own);
                if own == sought.index_key {
                    sought.state = State::Found(FoundByKey { primary_key, row });
                }
            }
        }
    }
}

/// An entry as data nodes give it: for stores that stand in for a cluster.
pub fn holder(version: u64, primary_key: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let head = Holder { version, primary_key_bytes: primary_key.len() as u32, reserved: 0 };
    list::push(&mut out, &head, [primary_key, &[], &[]]);
    out
}

fn primary_keys(holders: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    list::items::<Holder>(holders).map(|(_, [key, _, _])| key.to_vec())
}
