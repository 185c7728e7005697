//! A node that is told to stop leaves when nobody needs it any more (STOP-1 to STOP-3;
//! `docs/protocols/hand-over.md`).

use crate::{Control, TICK, state::Command};
use lats_base::{Duration, Instant, NodeId, ViewNumber};
use lats_catalog::{AfterStop, Member};
use lats_kernel::{Ctx, Fault};
use lats_signals::{
    BlockRef, Signal,
    control::{
        LeaveRep, QuietRep, RESTART, STATUS_DISK_FAILED, STATUS_ENDED, STATUS_NOT_DURABLE,
        STATUS_REMOVED, STATUS_STOPPED, StopNodeReq,
    },
};
use std::collections::BTreeSet;

/// This node on its way out.
#[derive(Debug, Default)]
pub(crate) struct Leave {
    /// The view in which it was told to stop, or zero.
    told_in: ViewNumber,
    /// Since when its sessions are gone, or are not waited for any more; without SQL: since it was told.
    asked_at: Option<Instant>,
    /// Its coordinators without transactions, which take no new ones, and data managers without scans.
    quiet: BTreeSet<BlockRef>,
}

/// Transactions of native clients that do not end are rolled back after this (STOP-3).
const TRANSACTIONS_END: Duration = Duration::from_millis(10_000);
/// After this, if the process was told to end (CLOSE-1).
const TOLD_TO_END: Duration = Duration::from_millis(3_000);

/// What the leader knows of a node that is to stop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Leaves {
    /// It has not said anything.
    #[default]
    No,
    /// It has nothing left to do.
    Ready,
    /// What it has left to do is not waited for any more.
    Late,
}

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
        if self.state.view.is_stopping(ctx.node()) {
            self.leave_taking.asked_at.get_or_insert(ctx.now());
        }
    }

    /// A new view: whoever stays after all, or begins to stop, has said nothing of its leaving yet.
    pub(crate) fn note_stops(&mut self, ctx: &Ctx<'_>) {
        let view = &self.state.view;
        let stay = self.peers.iter_mut().filter(|(node, _)| !view.is_stopping(**node));
        stay.for_each(|(_, peer)| peer.leaves = Leaves::No);
        if !view.is_stopping(ctx.node()) {
            self.leave_taking = Leave::default();
        } else if self.leave_taking.told_in == ViewNumber::default() {
            self.leave_taking.told_in = view.number;
            self.leave_taking.asked_at = (!self.serves_sql(ctx.node())).then(|| ctx.now());
        }
    }

    fn serves_sql(&self, node: NodeId) -> bool {
        let serves = |m: &Member| m.roles.sql && !m.sql_address.is_empty();
        self.state.view.member(node).is_some_and(serves)
    }

    pub(crate) fn on_quiet_rep(&mut self, signal: &Signal<'_>, ctx: &Ctx<'_>) {
        let rep = signal.body::<QuietRep>();
        self.note_quiet_at_the_end(signal.sender(), &rep);
        // What it said of an earlier stop has passed.
        let told_in = self.leave_taking.told_in;
        if self.state.view.is_stopping(ctx.node()) && rep.view >= told_in {
            self.leave_taking.quiet.insert(signal.sender());
        }
    }

    pub(crate) fn stop_tick(&mut self, ctx: &mut Ctx<'_>) {
        let me = ctx.node();
        if self.state.view.is_stopping(me)
            && let Some(leaves) = self.readiness(ctx)
        {
            match self.leader() {
                Some(leader) if leader != me => {
                    let incarnation = u64::from(ctx.incarnation().get());
                    let late = u64::from(leaves == Leaves::Late);
                    ctx.send(BlockRef::control(leader), &LeaveRep { incarnation, late });
                }
                _ => self.peers.entry(me).or_default().leaves = leaves,
            }
        }
        if self.is_leader() {
            self.let_go(ctx);
        }
    }

    fn readiness(&self, ctx: &mut Ctx<'_>) -> Option<Leaves> {
        let asked_at = self.leave_taking.asked_at;
        let patience = if self.is_told_to_end() { TOLD_TO_END } else { TRANSACTIONS_END };
        let overdue = asked_at.is_some_and(|at| ctx.now().since(at) > patience);
        // GONE-3: what it does meanwhile is on no disk of its own.
        if overdue || self.lost.is_some() || ctx.fault(Fault::LeaveLate) {
            return Some(Leaves::Late);
        }
        let all_quiet = self.leave_taking.quiet.len() >= self.blocks.len();
        (all_quiet && asked_at.is_some()).then_some(Leaves::Ready)
    }

    pub(crate) fn on_leave_rep(&mut self, signal: &Signal<'_>) {
        let (node, life) = (signal.sender().node, signal.header.incarnation);
        let alive = self.state.view.incarnation(node).is_some_and(|l| l.get() == life);
        if alive && self.state.view.is_stopping(node) {
            let late = signal.body::<LeaveRep>().late != 0;
            let leaves = if late { Leaves::Late } else { Leaves::Ready };
            self.peers.entry(node).or_default().leaves = leaves;
        }
    }

    /// Leader: true if the node is on its way out and primary of nothing. It gets no lease any more.
    pub(crate) fn is_leaving(&self, node: NodeId, ctx: &Ctx<'_>) -> bool {
        let view = &self.state.view;
        let leaves = self.peers.get(&node).map(|p| p.leaves).unwrap_or_default();
        // Whose transactions do not end leaves without a hand-over: backups take over, as from the dead.
        let takes = view.moves().any(|(_, to)| to == node);
        let free = leaves == Leaves::Late || (view.primary_slots(node) == 0 && !takes);
        // GONE-3: whoever has the only directory stays, or has none like the others.
        let is_free = free && !self.is_last_in_sync(node) && self.is_on_another_disk(node, ctx);
        leaves != Leaves::No && view.is_stopping(node) && is_free
    }

    /// Leader: true if another full replica of the node's group lives, as far as can be known.
    fn is_replaced(&self, node: NodeId, ctx: &Ctx<'_>) -> bool {
        let view = &self.state.view;
        let Some((_, group)) = view.group_of_node(node) else { return true };
        // Who was heard within two renewals, and a tick after each, is taken to live.
        let nanos = self.pace().renew().as_nanos() + TICK.as_nanos();
        let span = Duration::from_nanos(2 * nanos);
        let lately = |n: NodeId| {
            let heard = self.peers.get(&n).and_then(|p| p.heard_at);
            n == ctx.node() || heard.is_some_and(|at| ctx.now().since(at) <= span)
        };
        let others = group.replicas.iter().filter(|r| r.in_sync && r.node != node);
        // CLOSE-1: one that ends soon itself does not stay.
        let stays = |n: NodeId| !view.is_stopping(n) && self.stage_of(n) == 0;
        others.map(|r| r.node).any(|n| stays(n) && lately(n))
    }

    /// Leader: removes who is on its way out, when its last lease has run out: it may be asked for rows
    /// until then. Leaves its own removal to another leader.
    fn let_go(&mut self, ctx: &mut Ctx<'_>) {
        let (me, now) = (ctx.node(), ctx.now());
        let members = self.state.view.members.iter().map(|m| m.node);
        let Some(node) = members.clone().find(|n| self.is_leaving(*n, ctx)) else { return };
        if node == me {
            let stays =
                |m: &&Member| m.alive && m.stopping.is_none() && !self.gone.contains_key(&m.node);
            let members = || self.state.view.members.iter().filter(stays);
            let full = members().find(|m| self.state.view.is_in_sync(m.node));
            let heir = full.or_else(|| members().next()).map(|m| (m.node, m.incarnation));
            if let Some((heir, life)) = heir {
                self.consensus.transfer_leadership(heir, life);
                self.run_consensus(ctx);
            }
            return;
        }
        let peer = self.peers.get(&node).copied().unwrap_or_default();
        let lease_over = self.old_leases_are_over(now) && now >= peer.granted_until;
        let safe = !self.holds_data(node)
            || (lease_over && self.is_quiet(ctx) && self.is_replaced(node, ctx));
        if !peer.removing && safe {
            self.remove(node, "it was told to stop", ctx);
        }
    }

    /// How this process ends, now that the cluster has removed it.
    pub(crate) fn exit_status(&self, ctx: &Ctx<'_>) -> u64 {
        if self.lost.is_some() {
            return STATUS_DISK_FAILED;
        }
        let stopping = self.state.view.member(ctx.node()).and_then(|m| m.stopping);
        if self.is_told_to_end() {
            // CLOSE-1: one that was removed is replaced. Else it ends for a reason of its own.
            let is_replaced = !self.me_alive(ctx) || !self.is_last_in_sync(ctx.node());
            let is_given_up = self.state.view.is_declared_dead(ctx.node());
            let is_safe = is_replaced && !is_given_up;
            return if is_safe { STATUS_ENDED } else { STATUS_NOT_DURABLE };
        }
        match stopping {
            Some(AfterStop::StayDown) => STATUS_STOPPED,
            Some(AfterStop::Restart) | None => STATUS_REMOVED,
        }
    }
}
