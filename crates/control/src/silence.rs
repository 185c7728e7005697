//! Data nodes that are silent and cannot be replaced (SILENT-1 to SILENT-4; `docs/protocols/membership.md`).

use crate::{Control, state::Command};
use lats_base::{Duration, NodeId, NodeSet};
use lats_kernel::Ctx;
use lats_signals::{BlockRef, Signal, control::DeclareDeadReq};

impl Control {
    /// SILENT-1: whoever could be replaced is removed by now. Tells clients when that changes; the blocks hear of it
    /// with every tick.
    pub(crate) fn note_silence(&mut self, ctx: &mut Ctx<'_>) {
        let (now, patience) = (ctx.now(), self.silence_patience());
        let lasts = |n: &NodeId| {
            let since = self.peers.get(n).and_then(|p| p.broken_since);
            since.is_some_and(|at| now.since(at) > patience)
        };
        let me = ctx.node();
        let silent =
            self.data_nodes().into_iter().filter(|n| *n != me && (lasts(n) || self.is_stuck(*n)));
        self.silent = silent.collect();
        // Who is cut off itself does not know who is silent.
        let told = if self.has_lease(now) { self.silent } else { NodeSet::EMPTY };
        // SILENT-5: it tells of itself that it does not serve.
        let cut_off = (now >= self.serves_until(ctx)).then_some(me);
        if (told, cut_off) != (self.silent_told, self.cut_off_told) {
            (self.silent_told, self.cut_off_told) = (told, cut_off);
            self.push_maps(ctx);
        }
    }

    /// Twice as long as it takes to wait out the leases of a node that can be replaced.
    fn silence_patience(&self) -> Duration {
        Duration::from_millis(2 * self.state.view.config.lease_ms)
    }

    /// SILENT-4: a person knows that a node is dead. The leader believes it if nobody hears the node either.
    pub(crate) fn on_declare_dead_req(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let req = signal.body::<DeclareDeadReq>();
        let node = NodeId::new(req.node as u16);
        // Who asked looks at the view, and asks again, if this life is not the one that is a member.
        let life = self.state.view.incarnation(node);
        let life = life.filter(|l| u64::from(l.get()) == req.incarnation);
        let Some(leader) = self.leader() else { return self.take_word(&req, ctx) };
        let Some(incarnation) = life else { return };
        if self.is_leader() {
            if node != ctx.node() && self.is_unheard(node, ctx) {
                let give_up_rows = req.give_up_rows != 0;
                self.propose(&Command::DeclareDead { node, incarnation, give_up_rows }, ctx);
            }
        } else if leader != ctx.node() && signal.sender().node == ctx.node() {
            ctx.send(BlockRef::control(leader), &req);
        }
    }

    /// Leader: nobody has heard the node for long, and the leader is not itself the one that hears nobody.
    fn is_unheard(&self, node: NodeId, ctx: &Ctx<'_>) -> bool {
        let now = ctx.now();
        let since = self.became_leader_at.unwrap_or(now);
        let heard = self.peers.get(&node).and_then(|p| p.heard_at).unwrap_or(since);
        self.may_judge(now)
            && now.since(heard) > self.silence_patience()
            // Nobody but the leader asks witnesses.
            && (!self.holds_data(node) || self.is_unheard_by_all(node, ctx))
    }

    /// SILENT-4: one that lives after all ends itself: the others go on without its rows.
    pub(crate) fn leave_if_declared_dead(&mut self, ctx: &mut Ctx<'_>) -> bool {
        let declared = self.state.view.is_declared_dead(ctx.node());
        if declared {
            self.leave(
                "it was silent for so long that it was declared dead; a new process can join",
                ctx,
            );
        }
        declared
    }
}
