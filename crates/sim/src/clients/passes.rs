//! Passes: a table that gets a unique index while everybody writes to it, and loses it again
//! (UNIQUE-7). The first client builds, as a SQL session would; all others write on.

use super::{Doing, Ledger, SimClient};
use crate::tables::Numbers;
use lats_base::{FragmentId, RefCode, TableId};
use lats_catalog::Change;
use lats_client::{
    api::{AsOf, KeyRange, PRIMARY_INDEX, RowOp, RowOutcome, RowResult, Scan},
    core::{Answer, ScanHandle, Then, Ticket},
};

/// What a client does with passes.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// It changes rows, and may keep its transaction for a while.
    Writing { rows: Vec<i64>, stays: Option<u64>, ticket: Ticket },
    /// It keeps its transaction, which may so become older than the index.
    Staying { rows: Vec<i64>, sequence: u64, pauses: u64 },
    /// It changes the catalog.
    Changing { ticket: Ticket },
    /// It looks what there is to do: after a change, or again after something has failed.
    Looking { ticket: Option<Ticket>, looks: u32 },
    /// It collects the keys of all rows.
    Collecting {
        entries: TableId,
        fragment: u16,
        handle: ScanHandle,
        keys: Vec<Vec<u8>>,
        ticket: Ticket,
    },
    /// It enters these rows, the last ones first.
    Entering { entries: TableId, keys: Vec<Vec<u8>>, entered: usize, ticket: Ticket },
}

const NAME: &str = "by_pass";
/// Rows of each client.
const ROWS: u64 = 40;
/// There are a few more passes than rows, so that now and then two want the same.
const PASSES: u64 = 20_000;
/// Rows that are entered by one transaction.
const ENTERED_AT_ONCE: usize = 16;
/// How often a client looks whether an index turns up whose making has failed for it.
const LOOKS: u32 = 40;

impl Step {
    pub(super) fn ticket(&self) -> Option<Ticket> {
        match self {
            Self::Looking { ticket, .. } => *ticket,
            Self::Staying { .. } => None,
            Self::Writing { ticket, .. }
            | Self::Changing { ticket }
            | Self::Collecting { ticket, .. }
            | Self::Entering { ticket, .. } => Some(*ticket),
        }
    }
}

impl SimClient {
    pub(super) fn start_pass(&mut self, ledger: &Ledger) {
        if self.number == 1 && self.random.chance(1, 8) {
            return self.change_index(ledger);
        }
        let rows =
            [(); 2].map(|()| i64::from(self.number) * 1_000 + self.random.below(ROWS) as i64);
        let operations = rows.map(|row| self.pass_write(row, ledger));
        self.note_lost_passes(&rows, ledger);
        let sequence = self.core.begin();
        let goes_on = self.random.chance(1, 2);
        let then = if goes_on { Then::GoOn } else { Then::Commit };
        let ticket = self.core.step(sequence, &operations, then);
        let stays = goes_on.then_some(sequence);
        self.doing = Doing::Pass(Step::Writing { rows: rows.to_vec(), stays, ticket });
    }

    fn pass_write(&mut self, row: i64, ledger: &Ledger) -> RowOp {
        let pass = self.random.below(PASSES) as i64;
        match self.random.below(4) {
            0 => ledger.passes.insert(&[row, pass]),
            1 => ledger.passes.write(&[row, pass]),
            2 => ledger.passes.add(row, 1, 1),
            _ => ledger.passes.delete(row),
        }
    }

    fn note_lost_passes(&mut self, rows: &[i64], ledger: &Ledger) {
        let rows: Vec<(&Numbers, i64)> = rows.iter().map(|row| (&ledger.passes, *row)).collect();
        self.note_lost_rows(&rows);
    }

    /// Begins with the index, or drops it.
    fn change_index(&mut self, ledger: &Ledger) {
        let (database, table) = ("test".to_string(), ledger.passes.name().to_string());
        let name = NAME.to_string();
        let change = match ledger.pass_index {
            true => Change::DropIndex { database, table, name },
            false => {
                let builder = Some(self.core.builder());
                Change::CreateIndex { database, table, name, columns: vec![1], builder }
            }
        };
        self.propose(change);
    }

    fn propose(&mut self, change: Change) {
        let ticket = self.core.change(self.random.next_u64(), change);
        self.doing = Doing::Pass(Step::Changing { ticket });
    }

    /// True if it builds a unique index: it tries again and again what can be done later.
    pub fn is_building(&self) -> bool {
        use Step::{Collecting, Entering, Looking};
        matches!(&self.doing, Doing::Pass(Looking { .. } | Collecting { .. } | Entering { .. }))
    }

    /// Goes on where nothing is awaited.
    pub(super) fn go_on_building(&mut self, ledger: &Ledger) {
        // What was proposed may have been on its way all the time.
        let newer = self.watched.is_some_and(|v| self.core.map().catalog_version > v);
        if newer && matches!(self.doing, Doing::Nothing) {
            self.watched = None;
            self.doing = Doing::Pass(Step::Looking { ticket: None, looks: 0 });
        }
        if let Doing::Pass(Step::Looking { ticket: waiting @ None, .. }) = &mut self.doing {
            *waiting = Some(self.core.fetch_catalog());
        }
        if let Doing::Pass(Step::Staying { rows, sequence, pauses }) = &mut self.doing {
            *pauses = pauses.saturating_sub(1);
            if *pauses == 0 {
                let (rows, sequence) = (std::mem::take(rows), *sequence);
                self.note_lost_passes(&rows, ledger);
                let ticket = self.core.step(sequence, &[], Then::Commit);
                self.doing = Doing::Pass(Step::Writing { rows, stays: None, ticket });
            }
        }
    }

    pub(super) fn after_pass(&mut self, step: Step, answer: Answer, ledger: &mut Ledger) {
        let looking = |looks| Doing::Pass(Step::Looking { ticket: None, looks });
        match (step, answer) {
            (Step::Writing { rows, stays, .. }, answer) => {
                self.after_pass_write(rows, stays, &answer, ledger);
            }
            (Step::Looking { looks, .. }, Answer::Catalog(catalog)) => {
                let found = self.look(&catalog, ledger);
                match looks {
                    0 => self.watched = (!found).then_some(catalog.version),
                    _ if !found => self.doing = looking(looks - 1),
                    _ => {}
                }
            }
            (
                Step::Collecting { entries, fragment, handle, mut keys, .. },
                Answer::Batch { rows, done },
            ) => {
                keys.extend(rows.iter().map(|row| row.primary_key.to_vec()));
                match done {
                    true => self.collect(entries, fragment + 1, keys, ledger),
                    false => {
                        let ticket = self.core.next_batch(handle);
                        let step = Step::Collecting { entries, fragment, handle, keys, ticket };
                        self.doing = Doing::Pass(step);
                    }
                }
            }
            (Step::Entering { entries, mut keys, entered, .. }, Answer::Rows { results, .. }) => {
                if results.iter().any(|r| r.outcome == RowOutcome::Duplicate) {
                    ledger.refusals += 1;
                    return self.give_up_building(entries, ledger);
                }
                keys.truncate(keys.len() - entered);
                self.enter(entries, keys, ledger);
            }
            (
                Step::Collecting { entries, .. } | Step::Entering { entries, .. },
                Answer::Failed(e),
            ) if e.code == RefCode::NodeGroupLost => self.give_up_building(entries, ledger),
            (Step::Staying { .. }, _) => {}
            (Step::Changing { .. }, Answer::Changed(Ok(_))) => self.doing = looking(0),
            // It may turn up yet, and nobody would fill it.
            (Step::Changing { .. } | Step::Looking { .. }, _) => self.doing = looking(LOOKS),
            // It is done again from the start; entries that are there already do no harm.
            (Step::Collecting { .. } | Step::Entering { .. }, _) => self.doing = looking(0),
        }
    }

    fn after_pass_write(
        &mut self,
        rows: Vec<i64>,
        stays: Option<u64>,
        answer: &Answer,
        ledger: &mut Ledger,
    ) {
        let committed = matches!(answer, Answer::Rows { committed: Some(_), .. });
        if committed && self.is_lost {
            ledger.violate(format!("passes {rows:?} were committed, although rows are lost"));
        }
        ledger.commits += u64::from(committed);
        let changed = match answer {
            Answer::Rows { results, .. } => changed(rows, results),
            _ => Vec::new(),
        };
        if let Some(sequence) = stays.filter(|sequence| self.core.is_open(*sequence)) {
            let pauses = self.random.between(1, 25);
            self.doing = Doing::Pass(Step::Staying { rows: changed, sequence, pauses });
        } else if !committed {
            ledger.aborts += 1;
        }
    }

    /// What the catalog says about the index: nothing, being built, or complete. True if there is one.
    fn look(&mut self, catalog: &lats_catalog::Catalog, ledger: &mut Ledger) -> bool {
        let Some(def) = catalog.tables.get(&ledger.passes.id) else { return false };
        ledger.passes.schema_version = def.schema_version;
        let index = def.indexes.iter().find(|i| i.name == NAME);
        ledger.pass_index = index.is_some();
        if let Some(index) = index
            && let Some(unique) = index.unique.filter(|u| u.builder.is_some())
        {
            self.collect(unique.table, 0, Vec::new(), ledger);
        }
        index.is_some()
    }

    fn collect(&mut self, entries: TableId, fragment: u16, keys: Vec<Vec<u8>>, ledger: &Ledger) {
        if fragment >= self.core.fragment_count(ledger.passes.id) {
            return self.enter(entries, keys, ledger);
        }
        let scan = Scan {
            table: ledger.passes.id,
            schema_version: ledger.passes.schema_version,
            index: PRIMARY_INDEX,
            ranges: vec![KeyRange::default()],
            ordered: false,
            reverse: false,
            primary_keys: true,
            program: Default::default(),
            limit: None,
            pending: true,
            to_lock: false,
            few: false,
            first_of_range: false,
            as_of: AsOf::Newest,
        };
        let opened: Result<_, RefCode> =
            self.core.open_scan(&scan, FragmentId::new(fragment), None, None);
        self.doing = match opened {
            Ok((handle, ticket)) => {
                Doing::Pass(Step::Collecting { entries, fragment, handle, keys, ticket })
            }
            Err(RefCode::NodeGroupLost) => return self.give_up_building(entries, ledger),
            Err(_) => Doing::Pass(Step::Looking { ticket: None, looks: 0 }),
        };
    }

    /// What cannot be built is taken away again.
    fn give_up_building(&mut self, entries: TableId, ledger: &Ledger) {
        self.propose(Change::DropBuild { table: ledger.passes.id, entries });
    }

    fn enter(&mut self, entries: TableId, keys: Vec<Vec<u8>>, ledger: &Ledger) {
        let entered = keys.len().min(ENTERED_AT_ONCE);
        if entered == 0 {
            return self.propose(Change::IndexReady { table: ledger.passes.id, entries });
        }
        let last = &keys[keys.len() - entered..];
        let operations: Vec<RowOp> =
            last.iter().map(|key| ledger.passes.reindex(key.clone())).collect();
        let sequence = self.core.begin();
        let ticket = self.core.step(sequence, &operations, Then::Commit);
        self.doing = Doing::Pass(Step::Entering { entries, keys, entered, ticket });
    }
}

/// Those of the rows that the transaction has something at.
fn changed(rows: Vec<i64>, results: &[RowResult]) -> Vec<i64> {
    let done = rows.into_iter().zip(results).filter(|(_, r)| r.outcome == RowOutcome::Done);
    done.map(|(row, _)| row).collect()
}

/// The table of passes, which will get this id.
pub(super) fn table(id: u32) -> Numbers {
    Numbers::new(id, "passes", &["id", "pass"], None)
}
