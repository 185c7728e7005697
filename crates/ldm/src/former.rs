//! What the log of a former life has of rows, while this life is being filled: rows that have not changed since are taken
//! from it (REJOIN-8, REJOIN-9). Protocol: `docs/protocols/rejoin.md`.

use crate::{Ldm, TIMER_FILLING, copy::digest_of, found::FoundRows};
use alloc::vec::Vec;
use lats_base::{Duration, Epoch, FragmentId, RowId, TableId};
use lats_kernel::{Ctx, Fault};
use lats_signals::{
    BlockRef,
    copy::{CopyEndOrd, CopyRowsOrd, CopySinceReq},
};

/// Rows that a former life had.
pub(crate) struct Former {
    /// Its log can give back this epoch.
    since: Epoch,
    /// Rows as they were then that no primary has mentioned yet.
    rows: FoundRows,
}

/// How long to wait when the log is behind.
const GONE_RETRY: Duration = Duration::from_millis(1);

impl Former {
    pub(crate) fn new(since: Epoch, rows: FoundRows) -> Self {
        Self { since, rows }
    }

    /// A primary has said what has become of the row.
    pub(crate) fn forget(&mut self, place: (TableId, FragmentId), id: RowId) {
        if let Some(rows) = self.rows.get_mut(&place) {
            rows.take(id);
        }
    }
}

impl Ldm {
    /// REJOIN-8: whoever may be primary of something hears what this replica has, in each view.
    pub(crate) fn ask_for_copies(&mut self, ctx: &mut Ctx<'_>) {
        let me = ctx.node();
        let is_filled = self.view.is_in_sync(me) || !self.view.is_replica_of_own_group(me);
        if is_filled || self.restore.is_some() {
            return;
        }
        let since = self.former.as_ref().map_or(Epoch::default(), |former| former.since);
        let body = CopySinceReq { view: self.view.number, since };
        let Some((_, group)) = self.view.group_of_node(me) else { return };
        for replica in group.replicas.iter().filter(|r| r.in_sync) {
            ctx.send(BlockRef::ldm(replica.node, self.instance), &body);
        }
    }

    /// REJOIN-9: rows that have not changed, as these bits say, are in the log: they will be taken from it. None if it does not have
    /// them all.
    pub(crate) fn find_unchanged(&self, ord: &CopyRowsOrd, bits: &[u8]) -> Option<Vec<RowId>> {
        let ids: Vec<RowId> = set_bits(bits, ord.first_row).collect();
        (self.digest_of_known(ord, &ids) == ord.digest).then_some(ids)
    }

    /// Takes rows that have not changed from the log. What is not there any more was taken for an earlier primary.
    pub(crate) fn take_unchanged(&mut self, place: (TableId, FragmentId), ids: &[RowId]) {
        let Some(mut former) = self.former.take() else { return };
        if let Some(rows) = former.rows.get_mut(&place) {
            self.on_fragment(place.0, place.1, |f, layout| f.store_found(rows, ids, layout));
        }
        self.former = Some(former);
    }

    /// Of the numbers of these rows' last changes up to the epoch of the log, as far as they are known here.
    fn digest_of_known(&self, ord: &CopyRowsOrd, ids: &[RowId]) -> u64 {
        let place = (ord.table, ord.fragment);
        let found = self.former.as_ref().and_then(|former| former.rows.get(&place));
        let held = self.fragment(ord.table, ord.fragment);
        let number = |id: &RowId| {
            let found = found.and_then(|rows| rows.get(*id)).filter(|row| row.committed.is_some());
            let taken = || held?.row(*id).map(|row| row.number);
            found.map(|row| row.number).or_else(taken).unwrap_or_default()
        };
        digest_of(ids.iter().map(|id| (*id, number(id))))
    }

    /// REJOIN-9: all rows of a fragment have been mentioned. What else is in the log has been deleted meanwhile, and the log
    /// says so before the fragment counts as copied. True if nothing is left to be said.
    pub(crate) fn log_what_is_gone(&mut self, ord: &CopyEndOrd, ctx: &mut Ctx<'_>) -> bool {
        let (Some(former), Some(redo)) = (&mut self.former, &mut self.redo) else { return true };
        let place = (ord.table, ord.fragment);
        let Some(rows) = former.rows.get_mut(&place) else { return true };
        // Void if the true deletion is, which is not of a later epoch.
        let early = Epoch::new(former.since.get() + 1);
        let epoch = if ctx.fault(Fault::BugGoneTooEarly) { early } else { ord.epoch };
        let waits = redo.is_behind();
        if !waits {
            for (id, found, (number, is_deleted)) in rows.take_first() {
                if !is_deleted && !ctx.fault(Fault::BugForgetGoneRows) {
                    redo.log_deletion(epoch, (place.0, place.1, id), number + 1, &found.key);
                }
            }
            redo.end_copied();
        }
        let is_done = rows.is_empty();
        if !is_done {
            let pause = if waits { GONE_RETRY } else { Duration::ZERO };
            self.ends.push_back(*ord);
            ctx.after(pause, TIMER_FILLING);
        }
        self.write_redo_if_much(ctx);
        is_done
    }
}

/// The rows whose bits are set; the first bit is about `first`.
fn set_bits(bits: &[u8], first: RowId) -> impl Iterator<Item = RowId> {
    bits.iter().enumerate().flat_map(move |(at, byte)| {
        let of_byte = (0..8).filter(move |bit| byte & (1 << bit) != 0);
        of_byte.map(move |bit| RowId::new(first.get().saturating_add(8 * at as u64 + bit)))
    })
}
