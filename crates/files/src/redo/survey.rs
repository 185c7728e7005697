//! What a log can give back, found by reading it once from its first segment to its last (RESTART-2).

use super::{Record, RecordKind, Seal, Segment};
use alloc::vec::Vec;
use lats_base::Epoch;

/// What was found in a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// Sealed epochs that no restart of the cluster has made void, each with how many commands the control state must know
    /// that it is restored with (RESTART-6): for each such number the newest.
    pub steps: Vec<(u64, Epoch)>,
    /// Nothing is of a later epoch.
    pub newest: Epoch,
    /// The newest epoch that was known to be durable in the whole cluster.
    pub durable: Epoch,
    /// The number of the last record.
    pub last_record: u64,
    /// Segments that do not continue what stands before them: it has been damaged.
    pub passed_over: u32,
    /// The newest epoch of which the log had all rows, and how many times the cluster had been restarted then: the rows that
    /// the log has are those of this epoch, or of the one that the next restart has begun with if that is older (REJOIN-8).
    pub whole: (u32, Epoch),
    /// How many records were read, and how many up to the seal of that epoch.
    records: u64,
    records_of_whole: u64,
    /// The segment with which the log begins.
    origin: u32,
    /// How many times the cluster had been restarted when the last seal was written.
    restarts: u32,
    /// The same of the last segment's beginning.
    begun_after: u32,
}

/// More steps than that between two durable epochs there are only if a disk stands still, or a node group is lost for hours: the
/// last of them is given up then for the newest, which needs a state that knows more.
const STEPS_MAX: usize = 1_024;

/// Changes of later epochs are void in segments that were written after so many restarts of the cluster; `restored`: the
/// epoch that each restart has begun with.
pub fn void_after(restored: &[Epoch], restarts: u32) -> Epoch {
    let later = restored.get(restarts as usize..).unwrap_or_default();
    later.iter().copied().min().unwrap_or(Epoch::new(u64::MAX))
}

/// Of these steps the newest whose epoch can be given back together with a control state that knows so many commands.
pub fn newest_step(steps: &[(u64, Epoch)], commands: u64) -> Epoch {
    let known = steps.iter().filter(|(needed, _)| *needed <= commands);
    known.map(|(_, epoch)| *epoch).max().unwrap_or_default()
}

impl Survey {
    /// Nothing has been read yet of a log that begins with this segment.
    pub fn of(origin: u32) -> Self {
        Self { origin, ..Self::default() }
    }

    /// The newest epoch that can be given back together with a control state that knows so many commands.
    pub fn restorable(&self, commands: u64) -> Epoch {
        newest_step(&self.steps, commands)
    }

    /// How many times the cluster had been restarted when the last of its segments was begun.
    pub fn begun_after(&self) -> u32 {
        self.begun_after
    }

    /// Nobody will ask for a state before this epoch: it is durable in the whole cluster, and the log was whole.
    pub fn certain(&self) -> Epoch {
        self.durable.min(self.whole.1)
    }

    /// True if most of the log was written while rows were copied that have been, or will be, copied once more: it had better
    /// begin anew than go on growing.
    pub fn is_mostly_filling(&self) -> bool {
        self.records / 2 > self.records_of_whole
    }

    /// An epoch was sealed.
    fn note_seal(&mut self, restarts: u32, Seal { epoch, durable, commands, whole }: Seal) {
        self.durable = self.durable.max(durable);
        if restarts > self.restarts {
            // What is known to be durable was restored; later epochs of earlier lives may be void.
            self.restarts = restarts;
            self.steps.retain(|(_, epoch)| *epoch <= self.durable);
        }
        // DURABLE-5: of what was durable every state knows enough.
        let known = self.steps.iter().filter(|(_, epoch)| *epoch <= self.durable);
        if let Some(known) = known.map(|(_, epoch)| *epoch).max() {
            self.steps.retain(|(_, epoch)| *epoch > self.durable);
            self.steps.insert(0, (0, known));
        }
        if !whole {
            return;
        }
        let is_full = self.steps.len() >= STEPS_MAX;
        match self.steps.last_mut() {
            Some(last) if last.0 == commands || is_full => *last = (commands, last.1.max(epoch)),
            _ => self.steps.push((commands, epoch)),
        }
    }

    /// True if the segment continues the log.
    fn continues(&self, segment: &Segment<'_>) -> bool {
        match self.last_record {
            0 => segment.number == u64::from(self.origin),
            last => segment.next_record() == last + 1,
        }
    }

    /// Reads the next segment, if it continues the log, and shows its records, each with what is known up to there.
    pub fn read<'f>(
        &mut self,
        segment: &mut Segment<'f>,
        restored: &[Epoch],
        show: impl FnMut(&Record<'f>, &Self),
    ) {
        if self.begin(segment) {
            self.read_some(segment, restored, show);
        }
    }

    /// Of the next segment only the head has been read yet. True if it continues the log; else it is to be passed over.
    pub fn begin(&mut self, segment: &Segment<'_>) -> bool {
        let continues = self.continues(segment);
        if continues {
            self.last_record = segment.next_record() - 1;
            self.newest = self.newest.max(segment.before);
            self.begun_after = self.begun_after.max(segment.restarts);
        } else {
            self.passed_over += 1;
        }
        continues
    }

    /// Reads what is there of the segment, and shows its records.
    pub fn read_some<'f>(
        &mut self,
        segment: &mut Segment<'f>,
        restored: &[Epoch],
        mut show: impl FnMut(&Record<'f>, &Self),
    ) {
        let restarts = segment.restarts;
        let void_after = void_after(restored, restarts);
        for record in segment.by_ref() {
            self.last_record = record.number;
            self.records += 1;
            if record.kind == RecordKind::Seal {
                let Seal { epoch, durable, commands, whole } = record.seal;
                if whole {
                    self.whole = (restarts, epoch);
                    self.records_of_whole = self.records;
                }
                // The restart that has made later ones void has restored it.
                let commands = if epoch < void_after { commands } else { 0 };
                let (epoch, durable) = (epoch.min(void_after), durable.min(void_after));
                self.note_seal(restarts, Seal { epoch, durable, commands, whole });
            }
            self.newest = self.newest.max(record.epoch);
            show(&record, self);
        }
    }
}
