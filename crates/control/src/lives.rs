//! Which process is which life of a node, and whose end is certain (LIFE-1 to LIFE-3, DEATH-1 to DEATH-4; `docs/protocols/lives.md`).

use crate::Control;
use lats_base::{Incarnation, NodeId, Nonce};
use lats_catalog::Member;
use lats_kernel::Ctx;
use lats_signals::{
    BlockRef, Signal,
    control::{CertificateOrd, JoinRef, LifeKnownOrd},
};
use serde::{Deserialize, Serialize};

/// What a process knows of itself, and of the lives of its node before it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Which process it is.
    pub nonce: Nonce,
    /// Former lives whose end it certifies: it holds the lock of the directory that they have held, on the machine that they ran on
    /// (DEATH-2).
    pub ended: Vec<(Incarnation, Nonce)>,
}

/// A process that wants to become a member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Applicant {
    pub(crate) member: Member,
    pub(crate) origin: Origin,
    /// The lives of nodes that it has links to (VIEW-7).
    pub(crate) linked: Vec<(NodeId, Incarnation, Nonce)>,
}

impl Control {
    /// Which process the newest life of a node is, as the group has agreed.
    pub(crate) fn nonce_of(&self, node: NodeId) -> Nonce {
        self.state.nonces.get(&node).copied().unwrap_or_default()
    }

    /// DEATH-1: a guardian has seen a process end.
    pub(crate) fn on_certificate_ord(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let CertificateOrd { node, incarnation, nonce } = signal.body();
        let life = Incarnation::new(incarnation as u32);
        self.hear_certificate((NodeId::new(node as u16), life, nonce), ctx);
    }

    /// DEATH-3: a certificate that is about another process than the life that the view names says nothing.
    pub(crate) fn hear_certificate(
        &mut self,
        (node, life, nonce): (NodeId, Incarnation, Nonce),
        ctx: &mut Ctx<'_>,
    ) {
        let is_meant = self.state.view.is_alive(node, life) && self.nonce_of(node) == nonce;
        if is_meant && node != ctx.node() {
            self.is_gone(node, life, ctx);
        }
    }

    /// DEATH-2: a new process of a node certifies the end of the life that the view has of it, if it can.
    pub(crate) fn hear_origin(&mut self, node: NodeId, origin: &Origin, ctx: &mut Ctx<'_>) {
        for (life, nonce) in &origin.ended {
            self.hear_certificate((node, *life, *nonce), ctx);
        }
    }

    /// LIFE-2: this number was another process's, or a later one is known.
    pub(crate) fn tell_over(&self, node: NodeId, life: Incarnation, ctx: &mut Ctx<'_>) {
        let known = self.state.view.member(node).map(|m| m.incarnation).unwrap_or_default();
        let code = u64::from(lats_base::RefCode::StaleView.number());
        let (token, known) = (u64::from(life.get()), u64::from(known.get()));
        ctx.send(BlockRef::control(node), &JoinRef { token, code, known });
    }

    /// LIFE-2: the next process of this node begins above the newest life that anybody knows of it.
    pub(crate) fn note_known_life(&self, known: u64, ctx: &mut Ctx<'_>) {
        if known >= u64::from(ctx.incarnation().get()) {
            ctx.send(BlockRef::shell(ctx.node()), &LifeKnownOrd { known });
        }
    }

    /// True if this life of a node is over, by the newest view that is known here.
    pub(crate) fn is_over(&self, node: NodeId, life: Incarnation) -> bool {
        self.state.view.is_over(node, life)
    }
}
