//! What a log can give back, found by reading it once from its first segment to its last (RESTART-2).

use super::{Record, RecordKind, Segment};
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
    /// The segment with which the log begins.
    origin: u32,
    /// How many times the cluster had been restarted when the last seal was written.
    restarts: u32,
}

/// More steps than that between two durable epochs there are only if a disk stands still; later seals do not count then.
const STEPS_MAX: usize = 1_024;

/// Changes of later epochs are void in segments that were written after so many restarts of the cluster; `restored`: the
/// epoch that each restart has begun with.
pub fn void_after(restored: &[Epoch], restarts: u32) -> Epoch {
    restored.get(restarts as usize).copied().unwrap_or(Epoch::new(u64::MAX))
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

    /// An epoch was sealed.
    fn note_seal(&mut self, restarts: u32, (commands, epoch): (u64, Epoch)) {
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
        let count = self.steps.len();
        match self.steps.last_mut() {
            Some(last) if last.0 == commands => last.1 = last.1.max(epoch),
            _ if count < STEPS_MAX => self.steps.push((commands, epoch)),
            _ => {}
        }
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
        let restarts = segment.restarts;
        let void_after = void_after(restored, restarts);
        self.last_record = segment.next_record() - 1;
        for record in segment.by_ref() {
            self.last_record = record.number;
            match record.kind {
                RecordKind::Seal => {
                    self.durable = self.durable.max(record.durable.min(void_after));
                    // The restart that has made later ones void has restored it.
                    let commands = if record.epoch < void_after { record.commands } else { 0 };
                    let epoch = record.epoch.min(void_after);
                    self.note_seal(restarts, (commands, epoch));
                }
                RecordKind::Changes => {}
            }
            self.newest = self.newest.max(record.epoch);
            show(&record);
        }
    }
}
