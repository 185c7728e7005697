//! Installing views and catalogs in the blocks of this node, and knowing where they are installed.

use crate::{
    Control, Start,
    restart::{Phase, Restart},
};
use lats_base::{Duration, Instant, ViewNumber};
use lats_catalog::View;
use lats_kernel::{Ctx, Fault};
use lats_signals::{
    BlockKind, BlockRef, Signal,
    control::{
        AddressesOrd, CatalogOrd, EverywhereRep, InstallConf, InstalledRep, NoteOrd, ViewOrd,
    },
    restart::RestoredOrd,
};
use zerocopy::IntoBytes;

/// How long the next catalog waits for blocks that install one.
const CATALOG_PAUSE: Duration = Duration::from_millis(20);

impl Control {
    /// Tells the blocks and the shell of this node what has changed. VIEW-10: no view is left out, for blocks report
    /// to heirs of the view that follows a death.
    pub(crate) fn install(&mut self, views: &[View], ctx: &mut Ctx<'_>) {
        if !self.joined {
            if !self.me_alive(ctx) {
                return;
            }
            self.joined = true;
            self.restart = Restart::is_over();
            // LEASE-6: nothing that was granted before it had a vote counts on it.
            self.lease.former_heard_at = ctx.now();
        } else if !self.me_alive(ctx) {
            return self.leave_when_told(ctx);
        }
        if self.waits_for_fence(ctx) {
            return self.unfenced.extend_from_slice(views);
        }
        let unfenced = std::mem::take(&mut self.unfenced);
        let views: Vec<View> = unfenced.into_iter().chain(views.iter().cloned()).collect();
        let (view, catalog) = (self.state.view.number, self.state.catalog.version);
        if self.told.0 == ViewNumber::default() {
            let restored = &self.state.restored;
            let is_filled = u64::from(!self.state.view.is_in_sync(ctx.node()));
            let body = RestoredOrd { is_filled };
            for ldm in self.blocks.keys().filter(|b| b.kind() == Some(BlockKind::Ldm)) {
                ctx.send_with(*ldm, &body, &[restored.as_bytes()]);
            }
        }
        if self.catalog_waits(ctx.now()) {
            return;
        }
        let views = &views[..];
        // The catalog goes first: a view makes replicas, and those are made of tables.
        if catalog > self.told.1 {
            self.catalog_told_at = ctx.now();
            let bytes = self.state.catalog.update_since(self.told.1);
            for block in self.blocks.keys() {
                ctx.send_with(*block, &CatalogOrd { catalog_version: catalog }, &[&bytes]);
            }
        }
        if view > self.told.0 {
            let newest = core::slice::from_ref(&self.state.view);
            let views = if views.is_empty() { newest } else { views };
            for each in views.iter().filter(|each| each.number > self.told.0) {
                let bytes = lats_catalog::encode(each);
                for block in self.blocks.keys() {
                    ctx.send_with(*block, &ViewOrd { view: each.number }, &[&bytes]);
                }
            }
            let bytes = lats_catalog::encode(&(&self.state.view, &self.state.nonces));
            self.note_view(ctx);
            self.note_members(ctx);
            self.forget_links(ctx);
            let shell = BlockRef::shell(ctx.node());
            ctx.send_with(shell, &AddressesOrd { view }, &[&bytes]);
            self.meet_new_lives(ctx);
        }
        self.told = (view, catalog);
        self.tell_lease(ctx);
        if self.blocks.is_empty() {
            self.installed = self.told;
            self.report_installed(ctx);
        }
    }

    /// Who is a member is in the log of every node, whenever it changes.
    fn note_members(&mut self, ctx: &mut Ctx<'_>) {
        let view = &self.state.view;
        let full = |n| if view.is_in_sync(n) { "" } else { " (no full replica)" };
        let members = view.members.iter().filter(|m| m.alive);
        let members: Vec<String> = members
            .map(|m| format!("node {} life {}{}", m.node, m.incarnation, full(m.node)))
            .collect();
        let text = format!("members: {}", members.join(", "));
        if self.members_noted != text {
            let line = format!("view {}: {text}", view.number);
            ctx.send_with(BlockRef::shell(ctx.node()), &NoteOrd { loud: 0 }, &[line.as_bytes()]);
            self.members_noted = text;
        }
    }

    /// LATE-3: while blocks install a catalog the next ones are gathered for a moment. A new view waits for nothing.
    fn catalog_waits(&self, now: Instant) -> bool {
        let (view, catalog) = self.told;
        let installs = self.blocks.values().any(|(_, confirmed)| *confirmed < catalog);
        let lately = now.since(self.catalog_told_at) < CATALOG_PAUSE;
        installs && lately && view == self.state.view.number
    }

    /// FENCE-1: what removes a data node that may still hold its rows is on this node's disk first: whoever finds the disks later must
    /// not take that node's memory for the newest.
    fn waits_for_fence(&self, ctx: &mut Ctx<'_>) -> bool {
        let is_member = self.joined && self.told.0 > ViewNumber::default();
        let is_new = self.told.0 < self.state.view.number && self.keep.lacks(self.state.fence);
        is_member && is_new && !self.has_no_directory() && !ctx.fault(Fault::BugUnfencedView)
    }

    /// With every tick, and when a catalog is installed: the newest one, if it has waited.
    pub(crate) fn install_what_waits(&mut self, ctx: &mut Ctx<'_>) {
        let (view, catalog) = self.told;
        let waits = view == self.state.view.number && catalog < self.state.catalog.version;
        if waits || !self.unfenced.is_empty() {
            self.install(&[], ctx);
        }
    }

    /// What was known of a former life does not hold for the next one, which starts its time now.
    fn meet_new_lives(&mut self, ctx: &Ctx<'_>) {
        let now = ctx.now();
        let former = |n| self.peers.get(&n).map(|p| p.incarnation);
        let new = |n| self.state.view.incarnation(n) != former(n);
        self.broken.retain(|b| !b.is_about(new));
        for member in self.state.view.members.iter().filter(|m| m.alive) {
            let peer = self.peers.entry(member.node).or_default();
            if peer.incarnation != member.incarnation {
                *peer = crate::Peer {
                    incarnation: member.incarnation,
                    link: peer.link,
                    had_link: peer.had_link,
                    lost_link: peer.lost_link,
                    heard_at: Some(now),
                    fresh_at: now,
                    rows_passed_at: now,
                    ..Default::default()
                };
            }
        }
    }

    /// True once there has been a link to every other data node (VIEW-7). Founders wait for this;
    /// for the others the leader has seen to it.
    pub(crate) fn had_all_links(&self, ctx: &Ctx<'_>) -> bool {
        let others = self.state.view.data_nodes().filter(|m| m.node != ctx.node());
        others
            .into_iter()
            .all(|m| self.peers.get(&m.node).is_some_and(|p| p.had_link >= m.incarnation))
    }

    pub(crate) fn on_install_conf(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let conf = signal.body::<InstallConf>();
        let Some(known) = self.blocks.get_mut(&signal.sender()) else { return };
        *known = (conf.view, conf.catalog_version);
        if self.restart.phase != Phase::Running {
            // It loads rows, and so it has a catalog.
            return;
        }
        let view = self.blocks.values().map(|k| k.0).min().unwrap_or_default();
        let catalog = self.blocks.values().map(|k| k.1).min().unwrap_or_default();
        if (view, catalog) != self.installed {
            self.installed = (view, catalog);
            self.report_installed(ctx);
            self.propose_synced(ctx);
            self.push_maps(ctx);
        }
        self.install_what_waits(ctx);
    }

    fn report_installed(&mut self, ctx: &mut Ctx<'_>) {
        let (view, catalog_version) = self.installed;
        match self.leader() {
            Some(leader) if leader != ctx.node() => {
                let body = InstalledRep { view, catalog_version };
                ctx.send(BlockRef::control(leader), &body);
            }
            _ => self.count_installed(ctx),
        }
    }

    pub(crate) fn on_installed_rep(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let rep = signal.body::<InstalledRep>();
        let peer = self.peers.entry(signal.sender().node).or_default();
        peer.installed = (rep.view, rep.catalog_version);
        self.count_installed(ctx);
    }

    /// Leader: which catalog has every live data node? Tells all when that grows.
    pub(crate) fn count_installed(&mut self, ctx: &mut Ctx<'_>) {
        if !self.is_leader() {
            return;
        }
        let mut least: (ViewNumber, u64) = (ViewNumber::new(u64::MAX), u64::MAX);
        for node in self.data_nodes() {
            let known = if node == ctx.node() {
                self.installed
            } else {
                self.peers.get(&node).map(|p| p.installed).unwrap_or_default()
            };
            least = (least.0.min(known.0), least.1.min(known.1));
        }
        if least.1 == u64::MAX || least.1 <= self.everywhere {
            return;
        }
        self.everywhere = least.1;
        let body = EverywhereRep { view: least.0, catalog_version: least.1 };
        let me = ctx.node();
        for node in self.alive().iter().filter(|n| *n != me) {
            ctx.send(BlockRef::control(node), &body);
        }
        self.answer_changes(ctx);
    }

    pub(crate) fn on_everywhere_rep(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let rep = signal.body::<EverywhereRep>();
        self.everywhere = self.everywhere.max(rep.catalog_version);
        self.answer_changes(ctx);
    }

    /// The map as clients of this node should use it.
    pub(crate) fn map(&self) -> lats_catalog::ClusterMap {
        lats_catalog::ClusterMap {
            view: self.state.view.clone(),
            catalog_version: self.installed.1,
            silent: self.silent_told.iter().chain(self.cut_off_told).collect(),
        }
    }

    /// True once this process was taken in.
    pub(crate) fn is_member(&self) -> bool {
        self.joined || matches!(self.start, Start::Found(_))
    }
}
