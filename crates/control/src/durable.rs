//! Which epochs are durable, and which are to become so (DURABLE-2, DURABLE-3). Protocol:
//! `docs/protocols/durability.md`.

use crate::{Control, epoch::least};
use lats_base::{Duration, Epoch, Instant, NodeId, ViewNumber};
use lats_kernel::Ctx;
use lats_signals::{
    BlockKind, BlockRef, Signal,
    control::EpochOrd,
    io::{EpochDurableRep, LogBehindRep},
};
use std::collections::{BTreeMap, BTreeSet};

/// What a node knows of epochs on disks.
#[derive(Debug, Default)]
pub(crate) struct Durable {
    /// What is committed up to this epoch is to be made durable.
    pub(crate) seal: Epoch,
    /// The newest epoch known to be durable.
    pub(crate) durable: Epoch,
    /// Leader: nothing was decided in a later epoch, as far as it was told.
    used: Epoch,
    /// Up to where the data managers of this node are, and in which view.
    ldms: BTreeMap<BlockRef, (ViewNumber, Epoch)>,
    /// Leader: up to where nodes are.
    nodes: BTreeMap<NodeId, (ViewNumber, Epoch)>,
    /// Data managers of this node whose logs are behind; and whether some node's are, as the leader says.
    behind_here: BTreeSet<BlockRef>,
    cluster_behind: bool,
    heard_at: Instant,
    /// Leader: when nodes said so last.
    behind: BTreeMap<NodeId, Instant>,
}

/// Who is behind says so with every tick.
const BEHIND_LASTS: Duration = Duration::from_millis(50);
const LEADER_SAYS_SO: Duration = Duration::from_millis(200);

impl Durable {
    pub(crate) fn note_used(&mut self, epoch: Epoch) {
        self.used = self.used.max(epoch);
    }

    pub(crate) fn hear(&mut self, ord: &EpochOrd, now: Instant) {
        self.seal = self.seal.max(ord.seal);
        self.durable = self.durable.max(ord.durable);
        (self.cluster_behind, self.heard_at) = (ord.behind != 0, now);
    }

    /// REDO-4: true if some disk in the cluster does not keep up, as far as is known here.
    pub(crate) fn is_behind(&self) -> bool {
        self.cluster_behind || !self.behind_here.is_empty()
    }
}

impl Control {
    /// The newest epoch that this node knows to be durable.
    pub fn durable_epoch(&self) -> Epoch {
        self.epochs.disk.durable
    }

    /// Leader, with every epoch: DURABLE-2.
    pub(crate) fn choose_seal(&mut self) {
        let in_sync = |g: &lats_catalog::Group| g.replicas.iter().all(|r| r.in_sync);
        let whole = self.state.view.groups.iter().all(in_sync);
        let disk = &mut self.epochs.disk;
        if disk.durable < disk.used || !whole {
            disk.seal = disk.seal.max(self.epochs.complete);
        }
    }

    /// A data manager of this node, or another node, has written what it was to write.
    pub(crate) fn on_epoch_durable_rep(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let rep = signal.body::<EpochDurableRep>();
        let sender = signal.sender();
        let disk = &mut self.epochs.disk;
        if sender.kind() == Some(BlockKind::Control) {
            disk.nodes.insert(sender.node, (rep.view, rep.durable));
            return self.count_durable();
        }
        disk.ldms.insert(sender, (rep.view, rep.durable));
        self.report_durable(ctx);
    }

    /// DURABLE-5: the leader hears how far this node is, when the control state is on its disk, too.
    pub(crate) fn report_durable(&mut self, ctx: &mut Ctx<'_>) {
        if !self.state_is_kept() {
            return;
        }
        let disk = &self.epochs.disk;
        let own = self.blocks.keys().filter(|b| b.kind() == Some(BlockKind::Ldm));
        let Some(durable) = least(self.state.view.number, own, &disk.ldms) else { return };
        match self.leader() {
            Some(leader) if leader != ctx.node() => {
                let body = EpochDurableRep { durable, view: self.state.view.number };
                ctx.send(BlockRef::control(leader), &body);
            }
            _ => {
                let view = self.state.view.number;
                self.epochs.disk.nodes.insert(ctx.node(), (view, durable));
                self.count_durable();
            }
        }
    }

    /// REDO-4: a data manager of this node, or another node, is behind with its log.
    pub(crate) fn on_log_behind_rep(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let (sender, body) = (signal.sender(), signal.body::<LogBehindRep>());
        let disk = &mut self.epochs.disk;
        if sender.kind() == Some(BlockKind::Control) && body.behind != 0 {
            disk.behind.insert(sender.node, ctx.now());
        } else if sender.kind() == Some(BlockKind::Control) {
            disk.behind.remove(&sender.node);
        } else if body.behind != 0 {
            disk.behind_here.insert(sender);
        } else {
            disk.behind_here.remove(&sender);
            self.tell_caught_up(ctx);
        }
        self.tell_backlog(ctx);
        self.tell_lease(ctx);
    }

    /// With every tick: tells the leader that this node is behind, or knows who is.
    pub(crate) fn tell_backlog(&mut self, ctx: &mut Ctx<'_>) {
        let leader = self.leader();
        let (now, disk) = (ctx.now(), &mut self.epochs.disk);
        if leader == Some(ctx.node()) {
            disk.behind.retain(|_, heard_at| now.since(*heard_at) < BEHIND_LASTS);
            disk.cluster_behind = !disk.behind.is_empty() || !disk.behind_here.is_empty();
        } else {
            // A leader that is not heard may have died before it could take its word back.
            disk.cluster_behind &= now.since(disk.heard_at) < LEADER_SAYS_SO;
            if let Some(leader) = leader.filter(|_| !disk.behind_here.is_empty()) {
                ctx.send(BlockRef::control(leader), &LogBehindRep { behind: 1 });
            }
        }
    }

    fn tell_caught_up(&mut self, ctx: &mut Ctx<'_>) {
        let leader = self.leader().filter(|leader| *leader != ctx.node());
        if let Some(leader) = leader.filter(|_| self.epochs.disk.behind_here.is_empty()) {
            ctx.send(BlockRef::control(leader), &LogBehindRep { behind: 0 });
        }
    }

    /// DURABLE-3: an epoch is durable when every live data node has it on disk, in this view.
    fn count_durable(&mut self) {
        if self.state.view.lost_groups().next().is_some() {
            // RESTART-3: what is left of its rows is of an earlier epoch.
            return;
        }
        let nodes = self.data_nodes();
        let disk = &mut self.epochs.disk;
        let least = least(self.state.view.number, nodes.iter(), &disk.nodes);
        disk.durable = disk.durable.max(least.unwrap_or_default());
    }
}
