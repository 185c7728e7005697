//! Which epochs are durable, and which are to become so (DURABLE-2, DURABLE-3). Protocol:
//! `docs/protocols/durability.md`.

use crate::{Control, TICK, TIMER_EPOCH, epoch::least};
use lats_base::{Duration, Epoch, Instant, NodeId, ViewNumber, require};
use lats_kernel::{Ctx, Fault};
use lats_signals::{
    BlockKind, BlockRef, Signal,
    control::{EpochOrd, EpochWantedRep},
    io::EpochDurableRep,
};
use std::collections::{BTreeMap, BTreeSet};

/// What a node knows of epochs on disks.
#[derive(Debug, Default)]
pub(crate) struct Durable {
    /// What is committed up to this epoch is to be made durable.
    pub(crate) seal: Epoch,
    /// None of it depends on a later command than the one with this number (RESTART-6).
    pub(crate) commands: u64,
    /// The newest epoch known to be durable, and when that became known.
    pub(crate) durable: Epoch,
    pub(crate) grew_at: Instant,
    /// A seal that is under way, and the commands that it needs; and how many the state on each disk knows at least.
    sealing: (Epoch, u64),
    pub(crate) kept_everywhere: u64,
    /// Leader: nothing was decided in a later epoch, as far as it was told.
    used: Epoch,
    /// Up to where the data managers of this node are, and in which view.
    ldms: BTreeMap<BlockRef, (ViewNumber, Epoch)>,
    /// Leader: up to where nodes are.
    nodes: BTreeMap<NodeId, (ViewNumber, Epoch)>,
    /// Clients that wait for epochs to be durable, with the numbers of their requests; the newest such epoch that is known
    /// here; and when a timer will look whether the next one is to begin.
    waiters: BTreeSet<(Epoch, BlockRef, u64)>,
    wanted: Epoch,
    looks_at: Instant,
}

/// No epoch is shorter, however many wait for disks.
const EPOCH_MIN: Duration = Duration::from_micros(500);
/// EPOCH-8: nor than this, if nobody waits. It bounds what epochs cost a busy cluster whose disks are fast.
const EPOCH_PACE: Duration = Duration::from_millis(5);
/// Clients that may wait at one node.
const WAITERS_MAX: usize = 1 << 16;

impl Durable {
    /// Up to where all data managers of this node are.
    pub(crate) fn own<'b>(
        &self,
        view: ViewNumber,
        blocks: impl Iterator<Item = &'b BlockRef>,
    ) -> Option<Epoch> {
        least(view, blocks.filter(|b| b.kind() == Some(BlockKind::Ldm)), &self.ldms)
    }

    /// Leader: true if all that was used is durable.
    pub(crate) fn has_all(&self) -> bool {
        self.durable >= self.used
    }

    pub(crate) fn note_used(&mut self, epoch: Epoch) {
        self.used = self.used.max(epoch);
    }

    /// GONE-2: nothing is on the disk of this node any more.
    pub(crate) fn forget_own(&mut self, me: NodeId) {
        self.ldms.clear();
        self.nodes.remove(&me);
    }

    /// Leader: a node has said in this view how far it is.
    pub(crate) fn note_node(&mut self, node: NodeId, view: ViewNumber, durable: Epoch) {
        self.nodes.insert(node, (view, durable));
    }

    pub(crate) fn hear(&mut self, ord: &EpochOrd, now: Instant) {
        if ord.durable > self.durable {
            self.grew_at = now;
        }
        let known_before = self.commands;
        self.seal = self.seal.max(ord.seal);
        self.commands = self.commands.max(ord.commands);
        self.durable = self.durable.max(ord.durable);
        self.note_kept(known_before);
    }

    /// DURABLE-5: when a seal's epoch is durable, the state on each disk knows the commands that were known before that seal.
    fn note_kept(&mut self, known_before: u64) {
        let (seal, commands) = self.sealing;
        if self.durable >= seal {
            self.kept_everywhere = self.kept_everywhere.max(commands);
            let is_under_way = self.seal > self.durable;
            self.sealing = if is_under_way { (self.seal, known_before) } else { (self.durable, 0) };
        }
    }
}

impl Control {
    /// The newest epoch that this node knows to be durable.
    pub fn durable_epoch(&self) -> Epoch {
        self.epochs.disk.durable
    }

    /// The newest epoch that all data managers of this node have on disk.
    pub(crate) fn own_durable(&self) -> Epoch {
        let own = self.epochs.disk.own(self.state.view.number, self.blocks.keys());
        own.unwrap_or_default()
    }

    /// Leader, with every epoch: DURABLE-2.
    pub(crate) fn choose_seal(&mut self) {
        require!(
            self.consensus.has_settled(),
            "RESTART-6: it knows all commands of its predecessors"
        );
        let in_sync = |g: &lats_catalog::Group| g.replicas.iter().all(|r| r.in_sync);
        let whole = self.state.view.groups.iter().all(in_sync);
        let nodes = self.data_nodes();
        let disk = &mut self.epochs.disk;
        // GONE-5: a node without its directory has said that it has less than was durable once, and seals are to follow its rows.
        let is_behind = |(_, had): &(ViewNumber, Epoch)| *had < disk.durable;
        let lacks = nodes.iter().any(|node| disk.nodes.get(node).is_some_and(is_behind));
        if disk.durable < disk.used || !whole || lacks {
            disk.seal = disk.seal.max(self.epochs.complete);
            disk.commands = disk.commands.max(self.state.commands);
        }
    }

    /// A data manager of this node, or another node, has written what it was to write.
    pub(crate) fn on_epoch_durable_rep(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let rep = signal.body::<EpochDurableRep>();
        let sender = signal.sender();
        if sender.kind() == Some(BlockKind::Control) {
            self.note_lost(sender.node, rep.durable);
            let disk = &mut self.epochs.disk;
            disk.nodes.insert(sender.node, (rep.view, rep.durable));
            return self.count_durable(ctx);
        }
        self.epochs.disk.ldms.insert(sender, (rep.view, rep.durable));
        self.report_durable(ctx);
    }

    /// DURABLE-5: the leader hears how far this node is, when the control state is on its disk, too.
    pub(crate) fn report_durable(&mut self, ctx: &mut Ctx<'_>) {
        if !self.state_is_kept() && !ctx.fault(Fault::BugReportWithoutState) {
            return;
        }
        let disk = &self.epochs.disk;
        let own = disk.own(self.state.view.number, self.blocks.keys());
        let Some(durable) = own else { return };
        if !self.may_report(durable, ctx) {
            return;
        }
        match self.leader() {
            Some(leader) if leader != ctx.node() => {
                let body = EpochDurableRep { durable, view: self.state.view.number };
                ctx.send(BlockRef::control(leader), &body);
            }
            _ => {
                let view = self.state.view.number;
                self.epochs.disk.nodes.insert(ctx.node(), (view, durable));
                self.count_durable(ctx);
            }
        }
    }

    /// DURABLE-3: an epoch is durable when every live data node has it on disk, in this view.
    fn count_durable(&mut self, ctx: &mut Ctx<'_>) {
        if self.state.view.lost_groups().next().is_some() {
            // RESTART-3: what is left of its rows is of an earlier epoch.
            return;
        }
        let nodes = self.data_nodes();
        let disk = &mut self.epochs.disk;
        let least = least(self.state.view.number, nodes.iter(), &disk.nodes);
        let durable = disk.durable.max(least.unwrap_or_default());
        if durable > disk.durable {
            let was_wanted = disk.wanted > disk.durable;
            (disk.durable, disk.grew_at) = (durable, ctx.now());
            disk.note_kept(0);
            if was_wanted && self.is_leader() {
                self.tell_those_with_data(ctx);
            }
            self.hurry_epoch(ctx);
            self.answer_waiters(ctx);
        }
    }

    /// A client waits for an epoch to be durable.
    pub(crate) fn wait_for_disks(
        &mut self,
        epoch: Epoch,
        (client, request): (BlockRef, u64),
        ctx: &mut Ctx<'_>,
    ) {
        if self.epochs.disk.waiters.len() >= WAITERS_MAX {
            // It hears how far epochs are, and asks again.
            return self.tell_epochs((client, request), ctx);
        }
        self.epochs.disk.waiters.insert((epoch, client, request));
        match self.leader() {
            Some(leader) if leader != ctx.node() && epoch > self.epochs.disk.wanted => {
                self.epochs.disk.wanted = epoch;
                ctx.send(BlockRef::control(leader), &EpochWantedRep { epoch });
            }
            Some(leader) if leader == ctx.node() => self.want_epoch(epoch, ctx),
            _ => {}
        }
    }

    pub(crate) fn on_epoch_wanted_rep(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        if self.is_leader() {
            self.want_epoch(signal.body::<EpochWantedRep>().epoch, ctx);
        }
    }

    /// Leader: DURABLE-6. The next epoch begins, for this one can be complete only then.
    pub(crate) fn want_epoch(&mut self, epoch: Epoch, ctx: &mut Ctx<'_>) {
        let disk = &mut self.epochs.disk;
        disk.wanted = disk.wanted.max(epoch);
        disk.note_used(epoch);
        self.hurry_epoch(ctx);
        self.hurry_seal(ctx);
    }

    /// Leader, between two ticks: the next epoch begins when the current one has lasted long enough.
    pub(crate) fn hurry_epoch(&mut self, ctx: &mut Ctx<'_>) {
        if !self.is_leader() || !self.joined {
            return;
        }
        let Some(shortest) = self.shortest_epoch() else { return };
        let (now, due) = (ctx.now(), self.epochs.began_at.plus(shortest));
        if now >= due {
            if self.advance_epoch(ctx) {
                self.tell_those_with_data(ctx);
            }
        } else if self.epochs.disk.looks_at <= now || due < self.epochs.disk.looks_at {
            self.epochs.disk.looks_at = due;
            ctx.after(due.since(now), TIMER_EPOCH);
        }
    }

    /// How long the current epoch is to last, unless a tick decides that. DURABLE-6 if somebody waits for it. EPOCH-8 if it is used:
    /// when all before it is durable, it ends soon; a disk that is not as fast has the time of a tick.
    fn shortest_epoch(&self) -> Option<Duration> {
        let (disk, current) = (&self.epochs.disk, self.epochs.current);
        let former = Epoch::new(current.get().saturating_sub(1));
        if disk.wanted >= current {
            return Some(EPOCH_MIN);
        }
        self.is_paced().then_some(if disk.durable >= former { EPOCH_PACE } else { TICK })
    }

    /// True if the current epoch is used, and is to be written to disks.
    pub(crate) fn is_paced(&self) -> bool {
        self.state.view.config.keeps && self.epochs.disk.used >= self.epochs.current
    }

    /// Leader: what is complete is sealed at once, if any of it was used (EPOCH-8).
    pub(crate) fn hurry_seal(&mut self, ctx: &mut Ctx<'_>) {
        let disk = &self.epochs.disk;
        let waits = disk.used > disk.durable && self.epochs.complete > disk.seal;
        let writes = self.state.view.config.keeps && waits && !ctx.fault(Fault::BugSealLate);
        if writes && self.is_leader() && self.consensus.has_settled() {
            self.choose_seal();
            self.tell_those_with_data(ctx);
        }
    }

    /// Tells those that wait for epochs that are durable now.
    pub(crate) fn answer_waiters(&mut self, ctx: &mut Ctx<'_>) {
        let durable = self.epochs.disk.durable;
        while let Some(first) = self.epochs.disk.waiters.first().copied().filter(|w| w.0 <= durable)
        {
            self.epochs.disk.waiters.remove(&first);
            self.tell_epochs((first.1, first.2), ctx);
        }
    }

    pub(crate) fn forget_waiter(&mut self, client: BlockRef) {
        self.epochs.disk.waiters.retain(|(_, waiter, _)| *waiter != client);
    }
}
