//! Which epochs are durable, and which are to become so (DURABLE-2, DURABLE-3). Protocol:
//! `docs/protocols/durability.md`.

use crate::{Control, epoch::least};
use lats_base::{Epoch, NodeId, ViewNumber};
use lats_kernel::Ctx;
use lats_signals::{BlockKind, BlockRef, Signal, io::EpochDurableRep};
use std::collections::BTreeMap;

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
}

impl Durable {
    pub(crate) fn note_used(&mut self, epoch: Epoch) {
        self.used = self.used.max(epoch);
    }

    pub(crate) fn hear(&mut self, seal: Epoch, durable: Epoch) {
        self.seal = self.seal.max(seal);
        self.durable = self.durable.max(durable);
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

    /// DURABLE-3: an epoch is durable when every live data node has it on disk, in this view.
    fn count_durable(&mut self) {
        let nodes = self.data_nodes();
        let disk = &mut self.epochs.disk;
        let least = least(self.state.view.number, nodes.iter(), &disk.nodes);
        disk.durable = disk.durable.max(least.unwrap_or_default());
    }
}
