//! Being filled: what a syncing replica does with the rows that primaries copy to it (docs/protocols/rejoin.md).

use crate::{Ldm, TIMER_FILLING};
use alloc::{format, vec::Vec};
use lats_base::{Duration, Epoch, FragmentId, Instant, RowId, TableId, require};
use lats_kernel::{Ctx, Fault};
use lats_signals::{
    BlockRef, Signal,
    control::NoteOrd,
    copy::{COPY_WHOLE, CopyEndOrd, CopyRowsConf, CopyRowsOrd, FragmentsSyncedRep},
    list::{self, Change},
};

/// A batch of rows that is still to be taken.
pub(crate) struct Arrived {
    ord: CopyRowsOrd,
    from: BlockRef,
    /// Rows that the log has as they are.
    unchanged: Vec<RowId>,
    /// The others: changes, one after the other.
    rows: Vec<u8>,
    is_confirmed: bool,
}

/// What this life has been filled with: rows that primaries have spoken of, some of them twice if one has died.
#[derive(Default)]
pub(crate) struct Filled {
    began: Instant,
    from_log: u64,
    copied: u64,
    /// What the counter of replicated rows was when the last batch came.
    replicated: u64,
}

/// With [`Fault::TakeLate`]: longer than answers of other nodes take.
const LATE: Duration = Duration::from_millis(3);

impl Ldm {
    pub(crate) fn begin_filling(&mut self, ctx: &Ctx<'_>) {
        self.filled = Filled { began: ctx.now(), ..Filled::default() };
    }

    /// Whoever operates the node reads where the time went.
    pub(crate) fn note_filled(&self, ctx: &mut Ctx<'_>) {
        let Filled { began, from_log, copied, .. } = self.filled;
        let took_ms = ctx.now().since(began).as_millis();
        let text = format!(
            "data manager {} has all rows again after {took_ms} ms: {from_log} from its log, {copied} from other replicas",
            self.instance
        );
        let shell = BlockRef::shell(ctx.node());
        ctx.send_with(shell, &NoteOrd { loud: 0 }, &[text.as_bytes()]);
    }

    /// REJOIN-6: a batch is confirmed when the one before it, of the same primary, is taken: the primary looks for the next one while
    /// this one is taken. That it can be taken is certain by then. While clients' changes come, it is confirmed when it is taken itself:
    /// a part of the time is theirs.
    pub(crate) fn on_copy_rows_ord(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let ord = signal.body::<CopyRowsOrd>();
        if self.park_newer(ord.view, signal) || self.park_unknown_table(ord.table, signal) {
            return;
        }
        // REJOIN-3: it is a full replica meanwhile, and keeps no marks of deletions any more.
        if self.view.is_in_sync(ctx.node()) {
            return;
        }
        let from = signal.sender();
        let (bits, rows) =
            signal.payload().split_at_checked(ord.unchanged_bytes as usize).unwrap_or_default();
        let Some(unchanged) = self.find_unchanged(&ord, bits) else {
            return self.confirm_copied(&ord, COPY_WHOLE, from, ctx);
        };
        let waiting = self.arrived.iter().filter(|batch| batch.from == from).count();
        require!(waiting < 2, "REJOIN-6: two batches of a primary wait already");
        let is_confirmed = waiting == 0 && self.is_quiet();
        self.filled.replicated = self.counters.replicated;
        if is_confirmed {
            self.confirm_copied(&ord, 0, from, ctx);
        }
        let rows = rows.to_vec();
        self.arrived.push_back(Arrived { ord, from, unchanged, rows, is_confirmed });
        let pause = if ctx.fault(Fault::TakeLate) { LATE } else { Duration::ZERO };
        ctx.after(pause, TIMER_FILLING);
    }

    /// No client's change has come since the last batch.
    fn is_quiet(&self) -> bool {
        self.filled.replicated == self.counters.replicated
    }

    /// Goes on with what has arrived, a batch at a time (SLICE-1), or with a fragment's end.
    pub(crate) fn go_on_being_filled(&mut self, ctx: &mut Ctx<'_>) {
        if !self.take_arrived(ctx)
            && let Some(ord) = self.ends.pop_front()
        {
            self.end_copy(&ord, ctx);
        }
    }

    /// Takes the rows of the oldest batch; false if there is none.
    pub(crate) fn take_arrived(&mut self, ctx: &mut Ctx<'_>) -> bool {
        let Some(batch) = self.arrived.pop_front() else { return false };
        self.filled.from_log += batch.unchanged.len() as u64;
        self.filled.copied += u64::from(batch.ord.row_count);
        self.take_unchanged((batch.ord.table, batch.ord.fragment), &batch.unchanged);
        if !batch.rows.is_empty() {
            self.take_copied(&batch.ord, &batch.rows);
            self.write_redo_if_much(ctx);
        }
        let is_quiet = self.is_quiet();
        let mut behind = self.arrived.iter_mut().filter(|next| next.from == batch.from);
        if !batch.is_confirmed {
            self.confirm_copied(&batch.ord, 0, batch.from, ctx);
        } else if let Some(next) = behind.next().filter(|_| is_quiet) {
            next.is_confirmed = true;
            let ord = next.ord;
            self.confirm_copied(&ord, 0, batch.from, ctx);
        }
        true
    }

    fn take_copied(&mut self, ord: &CopyRowsOrd, rows: &[u8]) {
        let mut redo = self.redo.take();
        for (change, [key, row, _]) in list::items::<Change>(rows) {
            let (id, epoch) = (change.row_id, Epoch::new(change.epoch));
            self.hear_epoch(epoch);
            if let Some(former) = &mut self.former {
                former.forget((ord.table, ord.fragment), id);
            }
            let stored = self.on_fragment(ord.table, ord.fragment, |f, layout| {
                // REJOIN-3: a newer row got the id, or the key lives on under another id: history.
                f.make_room(id, key) && f.store_copy(id, change.version, epoch, row.into(), layout)
            });
            if let (Some(true), Some(redo)) = (stored, &mut redo) {
                let place = (ord.table, ord.fragment, id);
                redo.log_row(epoch, place, change.version, key, row);
            }
        }
        self.redo = redo.map(|mut redo| {
            redo.end_copied();
            redo
        });
    }

    fn confirm_copied(&mut self, ord: &CopyRowsOrd, code: u32, to: BlockRef, ctx: &mut Ctx<'_>) {
        let CopyRowsOrd { view, table, fragment, step, .. } = *ord;
        let conf = CopyRowsConf { view, table, fragment, reserved: 0, step, code };
        match &mut self.redo {
            Some(redo) => redo.confirm_copied(to, conf),
            None => ctx.send(to, &conf),
        }
        self.look_at_backlog(ctx);
    }

    pub(crate) fn on_copy_end_ord(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let ord = signal.body::<CopyEndOrd>();
        if self.park_newer(ord.view, signal) || self.park_unknown_table(ord.table, signal) {
            return;
        }
        self.hear_epoch(ord.epoch);
        if self.view.is_in_sync(ctx.node()) {
            return;
        }
        if self.arrived.is_empty() || ctx.fault(Fault::BugEndBeforeTaken) {
            return self.end_copy(&ord, ctx);
        }
        self.ends.push_back(ord);
        ctx.after(Duration::ZERO, TIMER_FILLING);
    }

    /// All rows of a fragment were mentioned.
    pub(crate) fn end_copy(&mut self, ord: &CopyEndOrd, ctx: &mut Ctx<'_>) {
        if !self.log_what_is_gone(ord, ctx) {
            return;
        }
        if let Some(redo) = &mut self.redo {
            redo.copied_up_to(ord.epoch);
        }
        self.copied.insert((ord.table, ord.fragment));
        self.report_if_synced(ctx);
    }

    /// True if a fragment has not been filled. The last one is remembered: it is likely to be filled last.
    fn lacks_fragments(&mut self) -> bool {
        let known = self.uncopied.filter(|at| !self.copied.contains(at));
        let is_there = |(table, fragment): &(TableId, FragmentId)| {
            self.tables.get(table).is_some_and(|t| t.fragments.get(fragment).is_some())
        };
        if known.as_ref().is_some_and(is_there) {
            return true;
        }
        let lacking = self.fragments().map(|(table, fragment, _)| (table, fragment));
        self.uncopied = lacking.filter(|at| !self.copied.contains(at)).last();
        self.uncopied.is_some()
    }

    /// Tells control when every fragment of this LDM has been filled.
    pub(crate) fn report_if_synced(&mut self, ctx: &mut Ctx<'_>) {
        let waits = self.view.is_replica_of_own_group(ctx.node());
        if !waits || self.view.is_in_sync(ctx.node()) || self.tables.is_empty() {
            return;
        }
        let all = !self.lacks_fragments();
        // REDO-2, REJOIN-8.
        let is_whole = self.redo.as_mut().is_none_or(|redo| redo.is_whole_with(all));
        if all && is_whole {
            let body = FragmentsSyncedRep {
                view: self.view.number,
                catalog_version: self.catalog_version,
                instance: self.instance,
                reserved: 0,
            };
            ctx.send(BlockRef::control(ctx.node()), &body);
        }
    }
}
