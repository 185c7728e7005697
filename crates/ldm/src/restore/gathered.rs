//! Rows that are gathered while a log is surveyed, so that it need not be read again. What will be asked for is not known yet
//! then, but no state of an earlier epoch than the newest that is known to be durable (RESTART-2): changes of later ones wait.

use crate::found::FoundRows;
use alloc::{collections::VecDeque, vec::Vec};
use lats_base::{Epoch, TransactionId};
use lats_files::redo::{Change, Record, changes_in};

/// What a log has of rows.
#[derive(Default)]
pub(super) struct Gathered {
    rows: FoundRows,
    /// They are as they were in an epoch that is not older than this one.
    upto: Epoch,
    /// Changes that may not be wanted.
    later: VecDeque<Later>,
    later_bytes: usize,
    /// Transactions of the last epochs.
    ended: Ended,
}

/// Transactions, and their epochs.
pub(super) type Ended = VecDeque<(Epoch, TransactionId)>;

struct Later {
    epoch: Epoch,
    changes: Vec<u8>,
}

/// With more that waits than this, while the log is read and at its end, it is read once more: what waits at the end is noted
/// in one step.
const LATER_BYTES_MAX: usize = 64 << 20;
const LATER_AT_END_BYTES_MAX: usize = 4 << 20;
/// Outcomes of transactions in this many epochs are known again: as long as outcomes are kept.
pub(super) const OUTCOME_EPOCHS: u64 = 6_000;

pub(super) fn note_changes<'f>(
    rows: &mut FoundRows,
    changes: impl Iterator<Item = Change<'f>>,
    of: Epoch,
    upto: Epoch,
) {
    for change in changes {
        let rows = rows.entry((change.table, change.fragment)).or_default();
        rows.note(change.row, (change.number, of), (change.key, change.image), upto);
    }
}

impl Gathered {
    /// A record of the log; nobody will ask for the state of an epoch before `certain`. False if too much waits.
    pub(super) fn note(&mut self, record: &Record<'_>, certain: Epoch) -> bool {
        self.upto = self.upto.max(certain);
        while let Some(later) = self.later.pop_front_if(|later| later.epoch <= certain) {
            self.later_bytes -= later.changes.len();
            note_changes(&mut self.rows, changes_in(&later.changes), later.epoch, later.epoch);
        }
        if record.epoch <= certain {
            note_changes(&mut self.rows, record.changes(), record.epoch, record.epoch);
        } else if !record.bytes().is_empty() {
            self.later_bytes += record.bytes().len();
            self.later.push_back(Later { epoch: record.epoch, changes: record.bytes().to_vec() });
        }
        // A long one has several records.
        let is_known = self.ended.back().is_some_and(|(_, id)| *id == record.transaction);
        if record.transaction != TransactionId::NONE && !is_known {
            self.ended.push_back((record.epoch, record.transaction));
        }
        let recent = Epoch::new(certain.get().saturating_sub(OUTCOME_EPOCHS));
        while self.ended.pop_front_if(|(epoch, _)| *epoch < recent).is_some() {}
        self.later_bytes <= LATER_BYTES_MAX
    }

    /// The log has ended: true if it is to be read once more.
    pub(super) fn is_too_much_at_end(&self) -> bool {
        self.later_bytes > LATER_AT_END_BYTES_MAX
    }

    /// The rows as they were in this epoch, and transactions that had ended in the last ones before it, or later; none if it is
    /// too late for that, or too much waits. What waited and is of an epoch behind `void_after` is void.
    pub(super) fn into_rows(
        mut self,
        epoch: Epoch,
        void_after: Epoch,
    ) -> Option<(FoundRows, Ended)> {
        if epoch.min(void_after) < self.upto || self.is_too_much_at_end() {
            return None;
        }
        for later in self.later.into_iter().filter(|later| later.epoch <= void_after) {
            note_changes(&mut self.rows, changes_in(&later.changes), later.epoch, epoch);
        }
        self.ended.retain(|(at, _)| *at <= void_after);
        Some((self.rows, self.ended))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lats_base::{ClientId, FragmentId, Incarnation, NodeId, RowId, TableId, prng::Prng};
    use lats_files::redo::{LogId, Seal, Segment, Survey, Writer};
    use std::{collections::BTreeMap, vec::Vec};

    /// Changes of 20 rows, some epochs out of order as checkpoints and take-overs bring them, and a seal now and then.
    fn log(random: &mut Prng) -> (Vec<u8>, u64) {
        let id = LogId { cluster: 7, node: NodeId::new(2), instance: 1, life: Incarnation::new(1) };
        let mut writer = Writer::new(id);
        let (mut epoch, mut number, mixed) = (10, 0, random.below(8));
        for sequence in 1..random.between(2, 200) {
            let of = epoch + random.below(4);
            for _ in 0..random.between(1, 3) {
                number += 1;
                let row = random.below(20);
                let image = [number as u8; 9];
                let image = random.chance(4, 5).then_some(&image[..]);
                let place = (TableId::new(3), FragmentId::new(4), RowId::new(row));
                let transaction = TransactionId { client: ClientId::new(9), sequence };
                // Numbers need not come in their order.
                let number = number ^ mixed;
                writer.change((transaction, Epoch::new(of)), place, number, &[row as u8], image);
            }
            writer.end();
            if random.chance(1, 4) {
                let durable = Epoch::new(epoch - random.below(3));
                let epoch = Epoch::new(epoch);
                writer.seal(Seal { epoch, durable, commands: 1, whole: true });
            }
            epoch += random.below(3);
        }
        (writer.take(Vec::new(), 1 << 20, 1 << 20).bytes, epoch + 4)
    }

    /// Row, key, image, number of what counts, and what the newest change of all is.
    type Shown = (u64, Vec<u8>, Option<Vec<u8>>, u64, (u64, bool));

    fn shown(rows: FoundRows) -> Vec<Shown> {
        let mut shown = Vec::new();
        for mut rows in rows.into_values() {
            while !rows.is_empty() {
                for (id, row, newest) in rows.take_first() {
                    let image = row.committed.map(|image| image.bytes.to_vec());
                    shown.push((id.get(), row.key.to_vec(), image, row.number, newest));
                }
            }
        }
        shown
    }

    #[test]
    fn what_is_gathered_is_what_is_read_once_more() {
        let mut known_late = 0;
        for seed in 0..300 {
            let mut random = Prng::new(seed);
            let (bytes, end) = log(&mut random);
            let mut survey = Survey::of(1);
            let mut gathered = Gathered::default();
            let mut segment = Segment::open(&bytes).unwrap();
            survey.read(&mut segment, &[], |record, so_far| {
                assert!(gathered.note(record, so_far.certain()));
            });
            let upto = Epoch::new(random.between(survey.certain().get(), end));
            let void_after = [random.between(survey.certain().get(), end), u64::MAX];
            let void_after = Epoch::new(void_after[random.below(2) as usize]);
            let counts = |record: &Record<'_>| record.epoch <= void_after;
            let mut again = BTreeMap::new();
            for record in Segment::open(&bytes).unwrap().filter(counts) {
                note_changes(&mut again, record.changes(), record.epoch, upto);
            }
            known_late += usize::from(!gathered.later.is_empty());
            let (rows, ended) = gathered.into_rows(upto, void_after).unwrap();
            assert_eq!(shown(rows), shown(again), "seed {seed}");
            let known =
                Segment::open(&bytes).unwrap().filter(counts).map(|r| (r.epoch, r.transaction));
            let known = known.filter(|(_, transaction)| *transaction != TransactionId::NONE);
            assert!(known.eq(ended), "seed {seed}");
        }
        assert!(known_late > 100, "changes waited in {known_late} logs");
    }

    #[test]
    fn an_earlier_epoch_is_read_once_more() {
        let mut random = Prng::new(5);
        let (bytes, _) = log(&mut random);
        let (mut survey, mut gathered) = (Survey::of(1), Gathered::default());
        survey.read(&mut Segment::open(&bytes).unwrap(), &[], |record, so_far| {
            gathered.note(record, so_far.certain());
        });
        let before = Epoch::new(survey.certain().get() - 1);
        assert!(gathered.into_rows(before, Epoch::new(u64::MAX)).is_none());
    }
}
