//! Checkpoints: rows that have not changed for long are written into the log once more, so that what stands before can go
//! (CHECKPOINT-1 to CHECKPOINT-4). Protocol: `docs/protocols/durability.md`.

use crate::{Ldm, TIMER_CHECKPOINT, redo::Redo};
use alloc::collections::VecDeque;
use lats_base::{Duration, Epoch, FragmentId, RowId, TableId};
use lats_kernel::{Ctx, Fault};

/// A checkpoint that is being taken.
#[derive(Debug)]
pub(crate) struct Checkpoint {
    /// The segment with which the log will begin.
    segment: u32,
    /// Rows that were changed in later epochs are in that segment, or in one behind it.
    upto: Epoch,
    /// Fragments whose rows are still to be written, and the next row of the first one.
    left: VecDeque<(TableId, FragmentId)>,
    next_row: u64,
    /// How many bytes will have been logged when all is written that this checkpoint has added, and what clients had logged that
    /// steps have made up for.
    logged: u64,
    /// The newest epoch of a row that was written.
    newest: Epoch,
    /// All rows are written: in records up to this one, with changes of epochs up to this one.
    ends: Option<(u64, Epoch)>,
}

impl Checkpoint {
    /// Of all rows, as they are when their turn comes: nothing of them is in the log (GONE-4).
    pub(crate) fn of_all(left: VecDeque<(TableId, FragmentId)>) -> Self {
        let (upto, newest) = (Epoch::new(u64::MAX), Epoch::default());
        Self { segment: 0, upto, left, next_row: 0, logged: 0, newest, ends: None }
    }

    pub(crate) fn ends(&self) -> Option<(u64, Epoch)> {
        self.ends
    }
}

/// What is known of the length of a log.
#[derive(Debug, Default)]
pub(crate) struct Lengths {
    /// Bytes from its first segment on, and those of them before the segment that the checkpoint under way begins with.
    pub(crate) log: u64,
    before: u64,
    /// Bytes logged by this life.
    pub(crate) logged: u64,
    /// Its first segment says that the log begins later than it did; files up to that one can go when it is safe.
    switch: Option<(u32, u32)>,
}

/// Between two steps.
const STEP: Duration = Duration::from_millis(1);
/// So much is written with a step, and as much as was logged since the last one: a checkpoint ends soon enough.
const STEP_BYTES: u64 = 32 << 10;
/// And no more than this: the rest with the next steps.
const STEP_BYTES_MAX: u64 = 256 << 10;
/// Rows, and ids without one, that a step looks at (SLICE-1).
const STEP_LOOKS: usize = 2_048;
/// A log has more segments than this before a checkpoint is worth it,
const SEGMENTS_MIN: u64 = 4;
/// and so many times the bytes that its rows have in memory.
const TIMES_MEMORY: u64 = 2;

impl Redo {
    /// CHECKPOINT-2: the log may begin with a new segment now: nothing that is logged later is older than what is logged.
    fn may_begin_checkpoint(&self, memory_bytes: u64) -> bool {
        let longest = self.segment_bytes() * SEGMENTS_MIN + memory_bytes * TIMES_MEMORY;
        self.checkpoint.is_none()
            && self.lengths.switch.is_none()
            && self.lengths.log > longest
            && !self.leaks()
    }

    /// CHECKPOINT-3: when all of it is durable, and nobody can want an older state back, the log begins later.
    pub(crate) fn end_checkpoint(&mut self, ctx: &mut Ctx<'_>) {
        if self.end_writing_anew() {
            return;
        }
        let Some((record, epoch)) = self.checkpoint.as_ref().and_then(|c| c.ends) else { return };
        if !self.is_durable(record, epoch) && !ctx.fault(Fault::BugTrimEarly) {
            return;
        }
        if let Some(checkpoint) = self.checkpoint.take() {
            let segment = self.begin_log_with(checkpoint.segment);
            self.lengths.switch = Some((segment, checkpoint.segment));
        }
    }

    /// Something was synced, in this segment last: if that says where the log begins, what stands before can go.
    pub(crate) fn trim(&mut self, synced: u32) {
        if let Some((_, begins)) = self.lengths.switch.take_if(|(said_in, _)| *said_in <= synced) {
            self.lengths.log -= self.lengths.before;
            self.forget_before(begins);
        }
    }
}

impl Ldm {
    /// With every write: is it time?
    pub(crate) fn begin_checkpoint(&mut self, ctx: &mut Ctx<'_>) {
        let memory_bytes = self.memory_bytes as u64;
        let may = self.shown_early.is_empty() && self.view.is_in_sync(ctx.node());
        let Some(redo) =
            self.redo.as_mut().filter(|redo| may && redo.may_begin_checkpoint(memory_bytes))
        else {
            return;
        };
        let segment = redo.begin_segment();
        redo.lengths.before = redo.lengths.log;
        let logged = redo.lengths.logged;
        let all = self.tables.values().flat_map(|t| t.fragments.keys().map(|f| (t.def.id, *f)));
        let (left, upto) = (all.collect(), self.epoch);
        let newest = Epoch::default();
        let begun = Checkpoint { segment, upto, left, next_row: 0, logged, newest, ends: None };
        redo.checkpoint = Some(begun);
        ctx.after(STEP, TIMER_CHECKPOINT);
    }

    /// Writes some rows. CHECKPOINT-4: as many bytes as clients have logged, and some more, unless the disk is behind.
    pub(crate) fn checkpoint_step(&mut self, ctx: &mut Ctx<'_>) {
        let Some(mut redo) = self.redo.take() else { return };
        let may = self.shown_early.is_empty() && !redo.is_behind();
        if let Some(mut checkpoint) = redo.checkpoint.take_if(|c| c.ends.is_none()) {
            if may {
                self.write_rows(&mut checkpoint, &mut redo);
            }
            redo.checkpoint = Some(checkpoint);
            ctx.after(STEP, TIMER_CHECKPOINT);
        }
        self.redo = Some(redo);
        self.write_anew(ctx);
        self.write_redo_if_much(ctx);
    }

    fn write_rows(&self, checkpoint: &mut Checkpoint, redo: &mut Redo) {
        let clients = redo.lengths.logged.saturating_sub(checkpoint.logged);
        let clients = clients.min(STEP_BYTES_MAX - STEP_BYTES);
        let before = redo.waiting_bytes();
        let most = before + (STEP_BYTES + clients) as usize;
        for _ in 0..STEP_LOOKS {
            let Some((table, fragment)) = checkpoint.left.front().copied() else { break };
            let held = self.fragment(table, fragment);
            let end = held.map_or(0, |f| f.row_id_end());
            if checkpoint.next_row >= end {
                checkpoint.left.pop_front();
                checkpoint.next_row = 0;
                continue;
            }
            let id = RowId::new(checkpoint.next_row);
            checkpoint.next_row += 1;
            let Some(row) = held.and_then(|f| f.row(id)) else { continue };
            let Some(image) = row.committed.as_ref().filter(|_| row.epoch <= checkpoint.upto)
            else {
                continue;
            };
            let place = (table, fragment, id);
            redo.log_row(row.epoch, place, row.number, &row.key, &image.bytes);
            checkpoint.newest = checkpoint.newest.max(row.epoch);
            if redo.waiting_bytes() >= most {
                break;
            }
        }
        redo.end_record();
        checkpoint.logged += clients + (redo.waiting_bytes() - before) as u64;
        // CHECKPOINT-2: and an image that is kept may be of a later epoch than any that is known here.
        if checkpoint.left.is_empty() && !redo.leaks() {
            checkpoint.ends = Some((redo.last_record(), self.epoch.max(checkpoint.newest)));
        }
    }
}
