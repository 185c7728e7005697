//! Filling a new replica while service goes on (docs/protocols/rejoin.md).
//!
//! From the view that names it, a syncing replica gets every row image, like a backup. What was
//! there before, the primaries copy: row by row, each when no version is on it that the replica
//! has not been sent (REJOIN-2). Of rows that its log has already they say so only (REJOIN-9).
//! What the replica does with them: `copy_in.rs`.

use crate::{Fragment, Ldm, OUTCOMES_MAX};
use alloc::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    vec::Vec,
};
use lats_base::{
    Duration, Epoch, FragmentId, Incarnation, Instant, NodeId, RefCode, RowId, TableId, hash,
};
use lats_kernel::{Ctx, Fault};
use lats_signals::{
    BlockRef, Signal,
    commit::{CHANGES_UNKNOWN, KnownOutcome},
    copy::{
        COPY_WHOLE, CopyEndOrd, CopyResumeOrd, CopyRowsConf, CopyRowsOrd, CopySinceReq, OutcomesOrd,
    },
    list::{self, Change},
};
use zerocopy::{FromBytes, IntoBytes};

/// The copying from this LDM to one syncing replica.
pub(crate) struct CopyOut {
    life: Incarnation,
    step: u32,
    /// The epoch that the replica's log can give back; none: it has not said so yet, and gets nothing.
    since: Option<Epoch>,
    /// It did not have what was to be in the log of the current fragment, and gets all rows of it.
    whole: bool,
    /// The first row that the newest batch was about; and whether it is not answered yet: the replica may want it anew.
    sent_from: u64,
    is_unanswered: bool,
    /// When the newest batch was sent, and what this data manager had done for clients by then.
    sent_at: Instant,
    served: u64,
    /// Fragments that are still to be copied, the current one first.
    pub(crate) left: VecDeque<(TableId, FragmentId)>,
    /// The next row id of the current fragment.
    next_row: u64,
    /// Rows of the current fragment that had to be passed over.
    pub(crate) passed_over: VecDeque<u64>,
    /// Changes below this number were not sent to the replica when they were made.
    pub(crate) first_number: u64,
    /// By row: such changes up to this number were sent since (REJOIN-5).
    pub(crate) adopted: BTreeMap<u64, u64>,
    /// Since when only rows are left that were passed over, and when their transactions' coordinators were
    /// last asked for adoption.
    pub(crate) waits_since: Option<Instant>,
    pub(crate) asked_at: Option<Instant>,
    /// Everything that was ever queued, so that a new table is queued once.
    queued: BTreeSet<(TableId, FragmentId)>,
}

const OUTCOMES_PER_SIGNAL: usize = 4_096;
const COPY_BATCH_ROWS: u32 = 128;
const COPY_BATCH_BYTES: usize = 64 << 10;
/// A pause between two batches is not longer than this.
const COPY_PAUSE_MAX: Duration = Duration::from_millis(5);
/// Rows, and ids without one, that one step looks at (SLICE-1).
const COPY_LOOKS: usize = 1_024;
/// How long to leave rows alone that were passed over.
const COPY_RETRY: Duration = Duration::from_micros(500);

impl Ldm {
    /// Starts copying to replicas that the view names as syncing, and ends it to others.
    pub(crate) fn plan_copies(&mut self, ctx: &mut Ctx<'_>) {
        let view = self.view.clone();
        let Some((_, group)) = view.group_of_node(ctx.node()) else { return };
        let targets: Vec<(NodeId, Incarnation)> = group
            .replicas
            .iter()
            .filter(|r| !r.in_sync && r.node != ctx.node())
            .filter_map(|r| Some((r.node, view.incarnation(r.node)?)))
            .collect();
        self.copies.retain(|node, copy| targets.contains(&(*node, copy.life)));
        for (node, life) in targets {
            let new = !self.copies.contains_key(&node);
            let copy = self.copies.entry(node).or_insert_with(|| CopyOut::new(life));
            let idle = copy.left.is_empty();
            for table in self.tables.values() {
                for fragment in table.fragments.keys() {
                    let at = (table.def.id, *fragment);
                    let mine = view.primary(*fragment) == Some(ctx.node());
                    if mine && copy.queued.insert(at) {
                        copy.left.push_back(at);
                    }
                }
            }
            if (new || idle) && !copy.left.is_empty() && copy.since.is_some() {
                self.start_fragment(node);
                ctx.send(ctx.me(), &CopyResumeOrd { target: u64::from(node.get()) });
            }
        }
        self.report_if_synced(ctx);
    }

    /// REJOIN-8: a replica says what it has. In later views it says the same.
    pub(crate) fn on_copy_since_req(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let CopySinceReq { view, since } = signal.body();
        if self.park_newer(view, signal) {
            return;
        }
        let (target, life) = (signal.sender().node, Incarnation::new(signal.header.incarnation));
        let copy = self.copies.get_mut(&target).filter(|c| c.life == life && c.since.is_none());
        if let Some(copy) = copy {
            copy.since = Some(since);
            self.start_fragment(target);
            ctx.send(ctx.me(), &CopyResumeOrd { target: u64::from(target.get()) });
        }
    }

    fn start_fragment(&mut self, target: NodeId) {
        let Some(copy) = self.copies.get_mut(&target) else { return };
        let Some((table, fragment)) = copy.left.front().copied() else { return };
        copy.next_row = 0;
        copy.whole = false;
        copy.passed_over.clear();
        copy.adopted.clear();
        copy.waits_since = None;
        copy.asked_at = None;
        let numbers = self.tables.get_mut(&table).and_then(|t| t.fragments.get_mut(&fragment));
        copy.first_number = numbers.map_or(0, |f| f.next_number());
    }

    pub(crate) fn on_copy_resume_ord(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let target = NodeId::new(signal.body::<CopyResumeOrd>().target as u16);
        self.copy_step(target, ctx);
    }

    /// Sends the next rows, or the end of the fragment.
    fn copy_step(&mut self, target: NodeId, ctx: &mut Ctx<'_>) {
        if self.copies.get(&target).is_none_or(|copy| copy.is_unanswered) {
            return;
        }
        // The epochs of rows that are shown early may be too small.
        if !self.shown_early.is_empty() {
            return ctx.after(COPY_RETRY, COPY_TIMER + u64::from(target.get()));
        }
        // REDO-4: each view may bring it rows that it has not confirmed to former primaries.
        if self.redo.as_ref().is_some_and(|redo| redo.backlog.hears_of(target, ctx.now())) {
            return ctx.after(COPY_PAUSE_MAX, COPY_TIMER + u64::from(target.get()));
        }
        let Some(mut copy) = self.copies.remove(&target) else { return };
        let Some((table, fragment)) = copy.left.front().copied() else {
            self.copies.insert(target, copy);
            return;
        };
        let batch = self.collect_rows(&mut copy, table, fragment);
        let to = BlockRef::ldm(target, self.instance);
        let view = self.view.number;
        if batch.count > 0 || !batch.unchanged.is_empty() {
            copy.step += 1;
            copy.is_unanswered = true;
            copy.sent_at = ctx.now();
            copy.served = self.served();
            let body = CopyRowsOrd {
                view,
                table,
                fragment,
                reserved: 0,
                row_count: batch.count,
                step: copy.step,
                first_row: RowId::new(copy.sent_from),
                digest: digest_of(batch.unchanged.iter().copied()),
                unchanged_bytes: batch.bits.len() as u32,
                reserved_too: 0,
            };
            ctx.send_with(to, &body, &[&batch.bits, &batch.rows]);
            ctx.crash_point(Fault::CrashInCopy);
        } else if copy.next_row < self.row_id_end(table, fragment) {
            ctx.send(ctx.me(), &CopyResumeOrd { target: u64::from(target.get()) });
        } else if copy.passed_over.is_empty() && self.complete < self.inherited_when {
            // REJOIN-7.
            ctx.after(COPY_RETRY, COPY_TIMER + u64::from(target.get()));
        } else if copy.passed_over.is_empty() {
            copy.left.pop_front();
            if copy.left.is_empty() {
                self.send_outcomes(to, ctx);
            }
            let epoch = self.epoch;
            ctx.send(to, &CopyEndOrd { view, table, fragment, reserved: 0, epoch });
            ctx.send(ctx.me(), &CopyResumeOrd { target: u64::from(target.get()) });
            self.copies.insert(target, copy);
            return self.start_fragment(target);
        } else {
            self.ask_for_adoption(&mut copy, target, ctx);
            ctx.after(COPY_RETRY, COPY_TIMER + u64::from(target.get()));
        }
        self.copies.insert(target, copy);
    }

    fn row_id_end(&self, table: TableId, fragment: FragmentId) -> u64 {
        self.fragment(table, fragment).map_or(0, Fragment::row_id_end)
    }

    /// REJOIN-4, OUTCOME-3: what a client may ask about a transaction that is older than the replica.
    fn send_outcomes(&self, to: BlockRef, ctx: &mut Ctx<'_>) {
        let known = |(transaction, epoch, changes)| {
            let (epoch, refused): (Epoch, u32) = (epoch, 0);
            KnownOutcome { transaction, epoch, changes, refused }
        };
        let held = self.transactions.iter().filter(|(_, t)| t.committed);
        let held = held.map(|(id, t)| {
            (id, t.decided.unwrap_or_default(), t.changes.unwrap_or(CHANGES_UNKNOWN))
        });
        let ended = self.outcomes.iter();
        let mut all: Vec<KnownOutcome> = held.chain(ended).map(known).collect();
        let refused = |id| KnownOutcome { transaction: id, refused: 1, ..Default::default() };
        all.extend(self.outcomes.refused().map(refused));
        let remembered = self.outcomes.remembered(ctx.now(), self.config.outcome_kept);
        let body = OutcomesOrd { remembered_ms: remembered.as_millis() };
        let parts = all.len().div_ceil(OUTCOMES_PER_SIGNAL).max(1);
        for part in 0..parts {
            let some = all.iter().skip(part * OUTCOMES_PER_SIGNAL).take(OUTCOMES_PER_SIGNAL);
            let some: Vec<KnownOutcome> = some.copied().collect();
            ctx.send_with(to, &body, &[some.as_bytes()]);
        }
    }

    pub(crate) fn on_outcomes_ord(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let now = ctx.now();
        let remembered = Duration::from_millis(signal.body::<OutcomesOrd>().remembered_ms);
        self.outcomes.inherit(now, remembered.min(self.config.outcome_kept));
        let mut rest = signal.payload();
        while let Ok((entry, behind)) = KnownOutcome::read_from_prefix(rest) {
            let id = entry.transaction;
            if entry.refused != 0 {
                // Those who have told the client keep it in mind.
                self.outcomes.refuse(id, now, OUTCOMES_MAX);
            } else if self.outcomes.find(id).is_none_or(|known| known.1 == CHANGES_UNKNOWN) {
                self.outcomes.note(id, (entry.epoch, entry.changes), now);
            }
            rest = behind;
        }
    }

    /// The next rows that can be copied.
    fn collect_rows(&self, copy: &mut CopyOut, table: TableId, fragment: FragmentId) -> Batch {
        let mut batch = Batch::default();
        let Some(held) = self.fragment(table, fragment) else {
            // The table was dropped meanwhile: nothing of it is left to be visited again.
            copy.passed_over.clear();
            return batch;
        };
        let since = copy.since.filter(|since| !copy.whole && *since > Epoch::default());
        copy.sent_from = copy.next_row;
        let mut revisits = copy.passed_over.len();
        for _ in 0..COPY_LOOKS {
            if batch.count >= COPY_BATCH_ROWS || batch.rows.len() >= COPY_BATCH_BYTES {
                break;
            }
            let is_new = copy.next_row < held.row_id_end();
            let id = if is_new {
                copy.next_row += 1;
                copy.next_row - 1
            } else if revisits > 0
                // If it does not have unchanged rows, it gets the same rows once more, and no others.
                && batch.unchanged.is_empty()
                && let Some(id) = copy.passed_over.pop_front()
            {
                revisits -= 1;
                id
            } else {
                break;
            };
            let Some(row) = held.row(RowId::new(id)) else { continue };
            let sent = copy.adopted.get(&id).copied().unwrap_or_default();
            if row.pending().iter().any(|v| v.number < copy.first_number && v.number > sent) {
                copy.passed_over.push_back(id);
                continue;
            }
            let Some(image) = row.committed.as_ref() else { continue };
            if is_new && since.is_some_and(|since| row.epoch <= since) {
                batch.say_unchanged(copy.sent_from, id, row.number);
                continue;
            }
            let change = Change {
                table,
                fragment,
                deleted: 0,
                row_id: RowId::new(id),
                version: row.number,
                over: 0,
                epoch: row.epoch.get(),
                key_bytes: row.key.len() as u32,
                row_bytes: image.bytes.len() as u32,
            };
            list::push(&mut batch.rows, &change, [&row.key, &image.bytes, &[]]);
            batch.count += 1;
        }
        batch
    }

    pub(crate) fn on_copy_rows_conf(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let conf = signal.body::<CopyRowsConf>();
        let target = signal.sender().node;
        let answered = self.copies.get_mut(&target).filter(|c| c.step == conf.step);
        let current = answered.is_some_and(|copy| core::mem::take(&mut copy.is_unanswered));
        if current && conf.code == COPY_WHOLE {
            self.send_all_of_fragment(target);
            self.copy_step(target, ctx);
        } else if current && conf.code == u32::from(RefCode::MemoryFull.number()) {
            ctx.after(COPY_RETRY, COPY_TIMER + u64::from(target.get()));
        } else if current {
            match self.copy_pause(target, ctx.now()) {
                Some(pause) => ctx.after(pause, COPY_TIMER + u64::from(target.get())),
                None => self.copy_step(target, ctx),
            }
        }
    }

    /// REJOIN-9: the replica has taken nothing of the newest batch.
    fn send_all_of_fragment(&mut self, target: NodeId) {
        if let Some(copy) = self.copies.get_mut(&target) {
            copy.whole = true;
            copy.next_row = copy.sent_from;
            let from = copy.sent_from;
            copy.passed_over.retain(|id| *id < from);
        }
    }

    /// REJOIN-6: a third of the time belongs to clients alone, if there are any.
    fn copy_pause(&self, target: NodeId, now: Instant) -> Option<Duration> {
        let copy = self.copies.get(&target)?;
        let busy = self.served() != copy.served;
        let half = Duration::from_nanos(now.since(copy.sent_at).as_nanos() / 2);
        busy.then(|| half.min(COPY_PAUSE_MAX))
    }

    /// Counts what this data manager does for clients.
    fn served(&self) -> u64 {
        self.counters.operations + self.reader.reads + self.counters.replicated
    }

    /// A retry is due.
    pub(crate) fn on_copy_timer(&mut self, token: u64, ctx: &mut Ctx<'_>) {
        self.copy_step(NodeId::new((token - COPY_TIMER) as u16), ctx);
    }
}

/// Timer tokens from here on are retries of copies, by node.
pub(crate) const COPY_TIMER: u64 = 1 << 32;

/// XXH3-64 of rows' ids and numbers (REJOIN-9).
pub(crate) fn digest_of(rows: impl Iterator<Item = (RowId, u64)>) -> u64 {
    let words: Vec<u64> = rows.flat_map(|(id, number)| [id.get(), number]).collect();
    hash::partition_hash(words.as_bytes())
}

/// Rows that are sent together.
#[derive(Default)]
struct Batch {
    /// A bit for each row that has not changed, from the batch's first row on; and these rows with their numbers.
    bits: Vec<u8>,
    unchanged: Vec<(RowId, u64)>,
    /// The others.
    rows: Vec<u8>,
    count: u32,
}

impl Batch {
    fn say_unchanged(&mut self, first: u64, id: u64, number: u64) {
        let bit = (id - first) as usize;
        if self.bits.len() <= bit / 8 {
            self.bits.resize((bit / 8 + 1).next_multiple_of(size_of::<u64>()), 0);
        }
        self.bits[bit / 8] |= 1 << (bit % 8);
        self.unchanged.push((RowId::new(id), number));
    }
}

impl CopyOut {
    fn new(life: Incarnation) -> Self {
        Self {
            life,
            step: 0,
            since: None,
            whole: false,
            sent_from: 0,
            is_unanswered: false,
            sent_at: Instant::ZERO,
            served: 0,
            left: VecDeque::new(),
            next_row: 0,
            passed_over: VecDeque::new(),
            first_number: 0,
            adopted: BTreeMap::new(),
            waits_since: None,
            asked_at: None,
            queued: BTreeSet::new(),
        }
    }
}
