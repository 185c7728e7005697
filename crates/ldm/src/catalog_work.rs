//! What a new catalog leaves to do, in slices: indexes are built, and what was dropped is freed
//! (INDEX-1 to INDEX-3; `docs/protocols/catalog.md`).

use crate::{Ldm, fragment::Rubble};
use alloc::{collections::VecDeque, vec::Vec};
use lats_base::{FragmentId, IndexId, TableId};
use lats_kernel::{Ctx, Fault};
use lats_signals::{Signal, control::CatalogResumeOrd, query::ScanReq};

/// The work and how far it has come.
#[derive(Default)]
pub(crate) struct CatalogWork {
    pub(crate) builds: VecDeque<Build>,
    pub(crate) rubble: Vec<Rubble>,
    /// The order to go on is on its way.
    going: bool,
}

/// An index of a fragment that is being built; it knows how far it is.
pub(crate) type Build = (TableId, FragmentId, IndexId);

impl CatalogWork {
    /// Queues an index to be built, unless it is queued already.
    pub(crate) fn build(&mut self, build: Build) {
        if !self.builds.contains(&build) {
            self.builds.push_back(build);
        }
    }
}

impl Ldm {
    pub(crate) fn start_catalog_work(&mut self, ctx: &mut Ctx<'_>) {
        let work = &mut self.catalog_work;
        let some = !work.builds.is_empty() || !work.rubble.is_empty();
        if some && !work.going {
            work.going = true;
            ctx.send(ctx.me(), &CatalogResumeOrd { reserved: 0 });
        }
    }

    pub(crate) fn on_catalog_resume_ord(&mut self, ctx: &mut Ctx<'_>) {
        self.catalog_work.going = false;
        self.clear_rubble_away();
        if !self.catalog_work.builds.is_empty() {
            self.build_slice();
            if self.catalog_work.builds.is_empty() {
                self.confirm_install(ctx);
                self.replay_parked(ctx);
            }
        }
        self.start_catalog_work(ctx);
    }

    fn build_slice(&mut self) {
        let Some((table, fragment, index)) = self.catalog_work.builds.front().copied() else {
            return;
        };
        let rows = self.config.slices.rows;
        let done =
            self.on_fragment(table, fragment, |f, layout| f.build_index(index, rows, layout));
        if done != Some(false) {
            self.catalog_work.builds.pop_front();
        }
    }

    fn clear_rubble_away(&mut self) {
        let rows = self.config.slices.rows;
        if self.catalog_work.rubble.last_mut().is_none_or(|r| r.clear_away(rows)) {
            self.catalog_work.rubble.pop();
        }
    }

    /// INDEX-3: parks a scan by an index that is being built; true if parked.
    pub(crate) fn park_until_built(
        &mut self,
        req: &ScanReq,
        signal: &Signal<'_>,
        ctx: &mut Ctx<'_>,
    ) -> bool {
        let fragment = self.fragment(req.table, req.fragment);
        let unbuilt = fragment.is_some_and(|f| f.is_being_built(req.index));
        let waits = unbuilt && !ctx.fault(Fault::BugScanUnbuiltIndex);
        if waits {
            self.parked.push_signal(signal);
        }
        waits
    }
}
