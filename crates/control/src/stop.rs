//! A node that is told to stop leaves when nobody needs it any more (STOP-1 to STOP-3;
//! `docs/protocols/hand-over.md`).

use crate::{Control, state::Command};
use lats_base::{Duration, Instant, NodeId};
use lats_catalog::{AfterStop, View};
use lats_kernel::Ctx;
use lats_signals::{
    BlockRef, Signal,
    control::{LeaveRep, RESTART, StopNodeReq},
};
use std::collections::BTreeSet;

/// This node on its way out.
#[derive(Debug, Default)]
pub(crate) struct Leave {
    /// Since when its sessions are gone, or are not waited for any more.
    asked_at: Option<Instant>,
    /// Its coordinators without transactions, which take no new ones, and data managers without scans.
    quiet: BTreeSet<BlockRef>,
}

/// Transactions of native clients that do not end are rolled back after this (STOP-3).
const TRANSACTIONS_END: Duration = Duration::from_millis(10_000);

impl Control {
    /// A person wants a node to stop.
    pub(crate) fn on_stop_node_req(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let req = signal.body::<StopNodeReq>();
        let node = NodeId::new(req.node as u16);
        let then = if req.then == RESTART { AfterStop::Restart } else { AfterStop::StayDown };
        if let Some(incarnation) = self.state.view.incarnation(node)
            && u64::from(incarnation.get()) == req.incarnation
        {
            // Who asked looks at the view, and asks again.
            self.propose(&Command::Stop { node, incarnation, then }, ctx);
        }
    }

    /// The sessions of this process are gone.
    pub(crate) fn on_leave_ord(&mut self, ctx: &Ctx<'_>) {
        self.leave_taking.asked_at.get_or_insert(ctx.now());
    }

    pub(crate) fn on_quiet_rep(&mut self, signal: &Signal<'_>) {
        self.leave_taking.quiet.insert(signal.sender());
    }

    pub(crate) fn stop_tick(&mut self, ctx: &mut Ctx<'_>) {
        let me = ctx.node();
        if self.state.view.is_stopping(me) && self.is_ready_to_leave(ctx) {
            match self.leader() {
                Some(leader) if leader != me => {
                    let incarnation = u64::from(ctx.incarnation().get());
                    ctx.send(BlockRef::control(leader), &LeaveRep { incarnation });
                }
                _ => self.peers.entry(me).or_default().leaves = true,
            }
        }
        if self.is_leader() {
            self.let_go(ctx);
        }
    }

    fn is_ready_to_leave(&self, ctx: &Ctx<'_>) -> bool {
        let roles = self.state.view.member(ctx.node()).map(|m| m.roles).unwrap_or_default();
        let asked_at = self.leave_taking.asked_at;
        let sessions_gone = !roles.sql || asked_at.is_some();
        let late = asked_at.is_some_and(|at| ctx.now().since(at) > TRANSACTIONS_END);
        let all_quiet = self.leave_taking.quiet.len() >= self.blocks.len();
        sessions_gone && (late || all_quiet)
    }

    pub(crate) fn on_leave_rep(&mut self, signal: &Signal<'_>) {
        let (node, life) = (signal.sender().node, signal.header.incarnation);
        let alive = self.state.view.incarnation(node).is_some_and(|l| l.get() == life);
        if alive && self.state.view.is_stopping(node) {
            self.peers.entry(node).or_default().leaves = true;
        }
    }

    /// Leader: true if the node is on its way out and primary of nothing. It gets no lease any more.
    pub(crate) fn is_leaving(&self, node: NodeId) -> bool {
        let view = &self.state.view;
        let ready = self.peers.get(&node).is_some_and(|p| p.leaves);
        ready && view.is_stopping(node) && !is_primary(view, node)
    }

    /// Leader: removes who is on its way out, when its last lease has run out: it may be asked for rows
    /// until then. Leaves its own removal to another leader.
    fn let_go(&mut self, ctx: &mut Ctx<'_>) {
        let (me, now) = (ctx.node(), ctx.now());
        let members = self.state.view.members.iter().map(|m| m.node);
        let Some(node) = members.clone().find(|n| self.is_leaving(*n)) else { return };
        if node == me {
            let stays = |n: &NodeId| *n != me && !self.state.view.is_stopping(*n);
            let able = |n: &NodeId| self.state.view.is_in_sync(*n) && stays(n);
            let heir = members.clone().find(able).or_else(|| members.clone().find(stays));
            if let Some(life) = heir.and_then(|n| self.state.view.incarnation(n)) {
                self.consensus.transfer_leadership(heir.unwrap_or_default(), life);
                self.run_consensus(ctx);
            }
            return;
        }
        let peer = self.peers.get(&node).copied().unwrap_or_default();
        let lease_over = self.old_leases_are_over(now) && now >= peer.granted_until;
        if !peer.removing && (lease_over || !self.holds_data(node)) && !self.is_last_in_sync(node) {
            self.remove(node, ctx);
        }
    }

    /// How this process ends, now that the cluster has removed it.
    pub(crate) fn exit_status(&self, ctx: &Ctx<'_>) -> u64 {
        let stopping = self.state.view.member(ctx.node()).and_then(|m| m.stopping);
        match stopping {
            Some(AfterStop::StayDown) => STATUS_STOPPED,
            Some(AfterStop::Restart) | None => STATUS_REMOVED,
        }
    }
}

/// The exit status of a process that was removed: another one should be started.
const STATUS_REMOVED: u64 = 3;
/// The exit status of a process that was told to stop, and is not to be started again.
pub const STATUS_STOPPED: u64 = 5;

fn is_primary(view: &View, node: NodeId) -> bool {
    view.groups.iter().any(|g| g.primaries.contains(&node) || g.next.contains(&node))
}
