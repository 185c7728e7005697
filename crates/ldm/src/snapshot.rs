//! Snapshots as of an epoch: older versions of rows, kept while somebody may read them
//! (SNAP-1 to SNAP-5). Protocol: `docs/protocols/snapshot.md`.

use crate::{Ldm, fragment::Fragment, row::Row};
use alloc::{collections::BTreeMap, vec::Vec};
use lats_base::{Duration, Epoch, FragmentId, Instant, RefCode, RowId, TableId};
use lats_kernel::Ctx;
use lats_values::RowLayout;

/// A version that a newer committed one has replaced.
#[derive(Debug)]
pub(crate) struct Older {
    pub(crate) epoch: Epoch,
    /// None: the row was deleted then.
    pub(crate) image: Option<alloc::boxed::Box<[u8]>>,
}

/// What an LDM keeps for snapshots.
#[derive(Debug, Default)]
pub(crate) struct Snapshots {
    /// From this epoch on there are older versions; none: nobody has asked for a snapshot lately.
    floor: Option<Epoch>,
    used: Instant,
    /// Rows with older versions, by the epoch of the version above.
    kept: BTreeMap<Epoch, Vec<(TableId, FragmentId, RowId)>>,
}

/// How long older versions are kept for snapshots that are yet to be opened, in epochs.
const SLACK_EPOCHS: u64 = 100;
/// When nobody has opened a snapshot for so long, older versions are not kept any more.
const UNUSED: Duration = Duration::from_millis(2_000);
/// Rows that are looked at in one go.
const RELEASED_AT_ONCE: usize = 4_096;

impl Snapshots {
    /// True if a replaced version must be kept (SNAP-2).
    pub(crate) fn keeps(&self) -> bool {
        self.floor.is_some()
    }

    pub(crate) fn note(&mut self, epoch: Epoch, at: (TableId, FragmentId, RowId)) {
        self.kept.entry(epoch).or_default().push(at);
    }
}

impl Ldm {
    /// SNAP-1, SNAP-3: true if the fragment has all versions that a snapshot of this epoch needs.
    pub(crate) fn check_snapshot(&self, epoch: Epoch, fragment: &Fragment) -> Result<(), RefCode> {
        if epoch > self.complete {
            return Err(RefCode::EpochNotComplete);
        }
        if !self.shown_early.is_empty() {
            return Err(RefCode::StaleView);
        }
        let floor = self.snapshots.floor.ok_or(RefCode::SnapshotTooOld)?;
        if epoch < floor.max(fragment.snapshot_floor) {
            return Err(RefCode::SnapshotTooOld);
        }
        Ok(())
    }

    /// Somebody asks for a snapshot: from now on older versions are kept (SNAP-2). The first one
    /// to ask is refused, and comes again with a newer epoch.
    pub(crate) fn use_snapshots(&mut self, ctx: &Ctx<'_>) {
        self.snapshots.used = ctx.now();
        // Every version that was replaced before now gave way to one of an epoch up to this one.
        self.snapshots.floor.get_or_insert(self.epoch);
    }

    /// SNAP-1: the image of a row that a snapshot shows. A version that is decided in an epoch
    /// that is complete counts, though it is not visible to others here yet. One of which it is not known
    /// whether it is decided (CARRY-4) is waited for: the reader comes again.
    pub(crate) fn as_of<'r>(
        &self,
        row: &'r Row,
        epoch: Epoch,
    ) -> Result<Option<&'r [u8]>, RefCode> {
        for version in row.pending().iter().rev() {
            let Some(t) = self.transactions.get(&version.transaction) else { continue };
            if t.decided.is_some_and(|decided| decided <= epoch) {
                return Ok(version.image.as_deref());
            }
            let carry = t.carry.filter(|_| t.decided.is_none());
            if carry.is_some_and(|carry| carry.epoch <= epoch) {
                return Err(RefCode::StaleView);
            }
        }
        if row.epoch <= epoch {
            return Ok(row.committed.as_ref().map(|i| &*i.bytes));
        }
        let older = row.older().iter().rev().find(|o| o.epoch <= epoch);
        Ok(older.and_then(|o| o.image.as_deref()))
    }

    /// SNAP-4: lets go of versions that no snapshot needs any more.
    pub(crate) fn release_versions(&mut self, ctx: &Ctx<'_>) {
        if self.snapshots.floor.is_none() && self.snapshots.kept.is_empty() {
            return;
        }
        let horizon = self.snapshot_horizon(ctx.now());
        if let Some(floor) = &mut self.snapshots.floor {
            *floor = (*floor).max(horizon);
        }
        let mut left = RELEASED_AT_ONCE;
        while let Some(mut entry) = self.snapshots.kept.first_entry() {
            if *entry.key() > horizon || left == 0 {
                break;
            }
            let rows = entry.get_mut();
            let part = rows.split_off(rows.len().saturating_sub(left));
            if rows.is_empty() {
                entry.remove();
            }
            left -= part.len();
            for (table, fragment, row) in part {
                self.on_fragment(table, fragment, |f, layout| f.release(row, horizon, layout));
            }
        }
    }

    /// No snapshot of an epoch before this one is read any more.
    fn snapshot_horizon(&mut self, now: Instant) -> Epoch {
        let open = self.scans.values().filter_map(|s| s.as_of).min();
        if self.memory_bytes > self.config.memory_bytes {
            // SNAP-5: rows come first. Open snapshots are refused from now on.
            self.snapshots.floor = None;
            return Epoch::new(u64::MAX);
        }
        if open.is_none() && now.since(self.snapshots.used) >= UNUSED {
            self.snapshots.floor = None;
            return Epoch::new(u64::MAX);
        }
        let slack = Epoch::new(self.complete.get().saturating_sub(SLACK_EPOCHS));
        open.map_or(slack, |pinned| pinned.min(slack))
    }
}

impl Fragment {
    /// Drops older versions of a row that no snapshot from `horizon` on can see.
    pub(crate) fn release(&mut self, id: RowId, horizon: Epoch, layout: &RowLayout) {
        let Some(row) = self.row_mut(id) else { return };
        let above = row.older().iter().skip(1).map(|o| o.epoch).chain([row.epoch]);
        let gone = above.take_while(|epoch| *epoch <= horizon).count().min(row.older().len());
        let Some(busy) = row.busy.as_mut() else { return };
        let dropped: Vec<Older> = busy.older.drain(..gone).collect();
        self.come_to_rest(id);
        self.forget_images(id, dropped.into_iter().filter_map(|o| o.image), layout);
        self.collect(id);
    }
}
