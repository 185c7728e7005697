//! What a log can give back, found by reading it once from its first segment to its last (RESTART-2).

use super::{Record, RecordKind, Segment};
use lats_base::Epoch;

/// What was found in a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// The newest sealed epoch that was not made void by a restart of the cluster.
    pub restorable: Epoch,
    /// No change is of a later epoch.
    pub newest: Epoch,
    /// The newest epoch that was known to be durable in the whole cluster.
    pub durable: Epoch,
    /// The number of the last record.
    pub last_record: u64,
    /// Segments that do not continue what stands before them: it has been damaged.
    pub passed_over: u32,
    /// The segment with which the log begins.
    origin: u32,
}

/// Changes of later epochs are void in segments that were written after so many restarts of the cluster; `restored`: the
/// epoch that each restart has begun with.
pub fn void_after(restored: &[Epoch], restarts: u32) -> Epoch {
    restored.get(restarts as usize).copied().unwrap_or(Epoch::new(u64::MAX))
}

impl Survey {
    /// Nothing has been read yet of a log that begins with this segment.
    pub fn of(origin: u32) -> Self {
        Self { origin, ..Self::default() }
    }

    /// True if the segment continues the log.
    fn continues(&self, segment: &Segment<'_>) -> bool {
        match self.last_record {
            0 => segment.number == u64::from(self.origin),
            last => segment.next_record() == last + 1,
        }
    }

    /// Reads the next segment, if it continues the log, and shows its records.
    pub fn read<'f>(
        &mut self,
        segment: &mut Segment<'f>,
        restored: &[Epoch],
        mut show: impl FnMut(&Record<'f>),
    ) {
        if !self.continues(segment) {
            self.passed_over += 1;
            return;
        }
        let void_after = void_after(restored, segment.restarts);
        self.last_record = segment.next_record() - 1;
        for record in segment.by_ref() {
            self.last_record = record.number;
            match record.kind {
                RecordKind::Seal => {
                    self.restorable = self.restorable.max(record.epoch.min(void_after));
                    self.durable = self.durable.max(record.durable.min(void_after));
                }
                RecordKind::Changes => self.newest = self.newest.max(record.epoch),
            }
            show(&record);
        }
    }
}
