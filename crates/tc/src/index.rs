//! Unique indexes at the coordinator: when the rows of a request have been changed, it changes the
//! entries of their unique indexes in the same transaction. A key that another row has makes it take
//! the request back. Protocol: docs/protocols/unique-index.md.

use crate::{
    Tc,
    request::Parts,
    transaction::{State, Transaction},
};
use alloc::{collections::BTreeMap, vec::Vec};
use lats_base::{FragmentId, IndexId, RefCode, TableId, TransactionId, limits};
use lats_catalog::unique;
use lats_kernel::{Ctx, Fault};
use lats_signals::{
    commit::{FLAG_ROLLBACK, PART_OF_MANY},
    list::{
        self, IndexChange, LOCK_SKIP, OUTCOME_HAS_ROW, OUTCOME_WAITED, Operation, OperationKind,
        Outcome, OutcomeKind,
    },
};

/// What a request does to unique indexes.
#[derive(Debug, Default)]
pub(crate) struct IndexWork {
    /// [`IndexChange`]s that the primaries of rows have named and that are not under way yet.
    changes: Vec<u8>,
    /// Those under way, by the index of their operation.
    sent: Vec<Sent>,
    /// By operation of the client: the index, and the entry of the row that has the key.
    duplicates: BTreeMap<u32, (IndexId, Vec<u8>)>,
    /// Bytes of these entries.
    duplicate_bytes: usize,
}

/// Bytes of the entries that an answer names: more duplicates are told as operations taken back.
const DUPLICATE_BYTES_MAX: usize = 1 << 20;

/// A change of an entry that is under way.
#[derive(Debug)]
struct Sent {
    operation: u32,
    index: IndexId,
    /// The entry's row in the hidden table.
    row: Vec<u8>,
}

impl IndexWork {
    pub(crate) fn add_changes(&mut self, changes: &[u8]) {
        self.changes.extend_from_slice(changes);
    }

    /// UNIQUE-3: an entry that another row has is a duplicate. (One that leads to the same row was
    /// made by a writer while the index was being built.)
    pub(crate) fn take_outcomes(&mut self, outcomes: &[u8]) {
        for (outcome, [taken, _, _]) in list::items::<Outcome>(outcomes) {
            let Some(sent) = self.sent.get(outcome.index as usize) else { continue };
            if outcome.kind != OutcomeKind::Exists as u32 || sent.row == taken {
                continue;
            }
            let former = self.duplicates.get(&sent.operation);
            let first = former.is_none_or(|d| sent.index < d.0);
            let bytes = self.duplicate_bytes - former.map_or(0, |d| d.1.len()) + taken.len();
            if first && (bytes <= DUPLICATE_BYTES_MAX || self.duplicates.is_empty()) {
                self.duplicate_bytes = bytes;
                self.duplicates.insert(sent.operation, (sent.index, taken.to_vec()));
            }
        }
    }

    /// The outcomes of a request that is taken back.
    fn undone(&self, outcomes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        for (outcome, _) in list::items::<Outcome>(outcomes) {
            let mut row = Vec::new();
            let kind = match (self.duplicates.get(&outcome.index), outcome.kind) {
                (Some((index, entry)), _) => {
                    row.extend_from_slice(&index.get().to_le_bytes());
                    row.extend_from_slice(entry);
                    OutcomeKind::Duplicate as u32
                }
                (None, kind) if kind == OutcomeKind::Done as u32 => OutcomeKind::Undone as u32,
                (None, kind) => kind,
            };
            let has_row = if row.is_empty() { 0 } else { OUTCOME_HAS_ROW };
            let flags = outcome.flags & OUTCOME_WAITED | has_row;
            let outcome = Outcome { kind, flags, row_bytes: row.len() as u32, ..outcome };
            list::push(&mut out, &outcome, [&row, &[], &[]]);
        }
        out
    }
}

/// A hidden table, a key in it, and the row there.
type Entry<'a> = (TableId, &'a [u8], &'a [u8]);

/// A row that is changed more than once in a request may get a key and lose it again: what comes and
/// goes with the same row leaves its entry as it was.
fn net(changes: &[u8]) -> Vec<(IndexChange, [&[u8]; 3])> {
    let mut last: BTreeMap<Entry<'_>, (i32, IndexChange)> = BTreeMap::new();
    // The changes of one row come from one primary, in their order.
    for (change, [key, row, _]) in list::items::<IndexChange>(changes) {
        let entry = last.entry((change.table, key, row)).or_insert((0, change));
        entry.0 += if change.inserts == 0 { -1 } else { 1 };
        entry.1 = change;
    }
    let changed = last.into_iter().filter(|(_, (sum, _))| *sum != 0);
    changed.map(|((_, key, row), (_, change))| (change, [key, row, &[][..]])).collect()
}

impl Transaction {
    pub(crate) fn has_duplicates(&self) -> bool {
        self.request.as_ref().is_some_and(|r| !r.index_work.duplicates.is_empty())
    }
}

impl Tc {
    /// UNIQUE-2: when all rows of the request are changed, their entries are: first those that go
    /// away, then those that come, so that rows can exchange their keys.
    pub(crate) fn change_indexes(&mut self, id: TransactionId, ctx: &mut Ctx<'_>) {
        let forgets = ctx.fault(Fault::BugForgetIndexChange);
        let Some(t) = self.transactions.get_mut(&id) else { return };
        let executed = t.batches.values().all(|b| b.executed) && t.returned.is_empty();
        let Some(request) = &mut t.request else { return };
        if t.state != State::Preparing || !executed || request.index_work.changes.is_empty() {
            return;
        }
        let statement = request.statement;
        let changes = core::mem::take(&mut request.index_work.changes);
        let (parts, sent) = match self.split_index_changes(&changes, forgets) {
            Ok(split) => split,
            Err(code) => return self.refuse_request(id, code.into(), ctx),
        };
        let Some(t) = self.transactions.get_mut(&id) else { return };
        t.changes_index = true;
        t.operations += sent.len();
        if t.operations > limits::OPERATIONS_PER_TRANSACTION_MAX {
            return self.refuse_request(id, RefCode::OperationLimit.into(), ctx);
        }
        if let Some(request) = &mut t.request {
            request.index_work.sent = sent;
        }
        let flags = if parts.len() > 1 { PART_OF_MANY } else { 0 };
        self.send_batches(id, (statement, flags, 0), (parts, true), ctx);
    }

    fn split_index_changes(
        &self,
        changes: &[u8],
        forgets: bool,
    ) -> Result<(Parts, Vec<Sent>), RefCode> {
        if changes.len() > limits::INDEX_CHANGE_BYTES_MAX {
            return Err(RefCode::OperationLimit);
        }
        let mut sorted = net(changes);
        sorted.sort_by_key(|(change, _)| (change.inserts, change.operation, change.index));
        sorted.truncate(sorted.len().saturating_sub(usize::from(forgets)));
        let mut parts = Parts::new();
        let mut sent = Vec::with_capacity(sorted.len());
        for (change, [key, row, _]) in sorted {
            let kind = match change.inserts {
                0 => OperationKind::Delete,
                _ => OperationKind::Insert,
            };
            let mut head = Operation {
                table: change.table,
                schema_version: unique::SCHEMA_VERSION,
                fragment: FragmentId::default(),
                kind: kind as u16,
                key_bytes: key.len() as u32,
                row_bytes: row.len() as u32,
                program_bytes: 0,
                index: sent.len() as u32,
                // It waits for the entry as it would for the row; but a row is never left out for it.
                flags: change.flags & !LOCK_SKIP,
            };
            // A table that this coordinator does not know: the primary's catalog is another.
            let primary = self.route(&mut head, key).map_err(|code| match code {
                RefCode::TableUnknown => RefCode::SchemaVersionOld,
                other => other,
            })?;
            let part = parts.get_or_default(primary);
            part.count += 1;
            list::push(&mut part.operations, &head, [key, row, &[]]);
            sent.push(Sent { operation: change.operation, index: change.index, row: row.to_vec() });
        }
        Ok((parts, sent))
    }

    /// UNIQUE-3: takes everything back that the request did, and says why. If it was to commit, the
    /// transaction is rolled back, for a commit of half of it is what nobody asked for.
    pub(crate) fn take_back_request(&mut self, id: TransactionId, ctx: &mut Ctx<'_>) {
        let Some(t) = self.transactions.get_mut(&id) else { return };
        let Some(request) = &mut t.request else { return };
        request.outcomes = request.index_work.undone(&request.outcomes);
        request.index_work = IndexWork::default();
        if request.commits() {
            // As if the client had asked for it: it gets the outcomes.
            request.flags = FLAG_ROLLBACK;
            return self.abort(id, RefCode::KeyExists.into(), ctx);
        }
        let statement = request.statement;
        self.roll_back_to(id, statement, ctx);
    }
}
