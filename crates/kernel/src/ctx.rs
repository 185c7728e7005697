//! All that a block sees of the world.

use crate::{Fault, Faults};
use alloc::vec::Vec;
use lats_base::{Duration, Incarnation, Instant, NodeId, prng::Prng};
use lats_signals::{BlockRef, Body, Signal, SignalBuffer, buffer::Route};

/// A block's own name for a timer; given back when it is due.
pub type TimerToken = u64;

/// What a block has sent and asked for while it handled signals.
#[derive(Debug, Default)]
pub struct Outbox {
    /// Signals, in the order in which they were sent.
    pub signals: SignalBuffer,
    /// Requests to io: they may be large, and are passed on as they lie.
    pub for_io: SignalBuffer,
    /// Timers: when, and with which token.
    pub timers: Vec<(Instant, TimerToken)>,
    /// The node has met an armed crash point: the shell ends it at once.
    pub crashed: bool,
    /// Answers of this round are right only if a lease still holds when the round has ended: the first end of these leases.
    pub lease_until: Option<Instant>,
}

/// The identity of the node that a block runs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The node.
    pub node: NodeId,
    /// Its life.
    pub incarnation: Incarnation,
}

/// A block's view of the world while it handles one signal.
pub struct Ctx<'a> {
    now: Instant,
    me: BlockRef,
    identity: Identity,
    outbox: &'a mut Outbox,
    random: &'a mut Prng,
    faults: &'a Faults,
}

impl<'a> Ctx<'a> {
    /// A context for one call of a block.
    pub fn new(
        now: Instant,
        me: BlockRef,
        identity: Identity,
        outbox: &'a mut Outbox,
        random: &'a mut Prng,
        faults: &'a Faults,
    ) -> Self {
        Self { now, me, identity, outbox, random, faults }
    }

    /// The node's monotonic clock.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// This block's own address.
    pub fn me(&self) -> BlockRef {
        self.me
    }

    /// The node this block is on.
    pub fn node(&self) -> NodeId {
        self.identity.node
    }

    /// The life of the node this block is on.
    pub fn incarnation(&self) -> Incarnation {
        self.identity.incarnation
    }

    /// Sends a signal without payload.
    pub fn send<B: Body>(&mut self, to: BlockRef, body: &B) {
        self.send_with(to, body, &[]);
    }

    /// Sends a signal with a payload given in pieces.
    pub fn send_with<B: Body>(&mut self, to: BlockRef, body: &B, payload: &[&[u8]]) {
        let route = self.route(to);
        self.outbox.signals.push(route, body, payload);
    }

    /// Asks for work on files of this node. Nothing reaches io in another way.
    pub fn ask_io<B: Body>(&mut self, body: &B, payload: &[&[u8]]) {
        let route = self.route(BlockRef::io(self.identity.node));
        self.outbox.for_io.push(route, body, payload);
    }

    /// Passes a signal on as it is, as if its sender had sent it to `to`.
    pub fn forward(&mut self, to: BlockRef, signal: &Signal<'_>) {
        let route = self.route(to);
        self.outbox.signals.push_rerouted(signal, route);
    }

    fn route(&self, receiver: BlockRef) -> Route {
        Route { sender: self.me, receiver, incarnation: self.identity.incarnation.get() }
    }

    /// Has [`crate::Block::on_timer`] called with `token` when `span` has passed.
    pub fn after(&mut self, span: Duration, token: TimerToken) {
        self.outbox.timers.push((self.now.plus(span), token));
    }

    /// What it sends now tells of rows, and is right only if the lease that ends then still holds when the round has ended
    /// (LEASE-7): else [`crate::Block::withdraw`] is called with it.
    pub fn rests_on_lease(&mut self, until: Instant) {
        let first = self.outbox.lease_until.map_or(until, |first| first.min(until));
        self.outbox.lease_until = Some(first);
    }

    /// Random numbers that the seed decides.
    pub fn random(&mut self) -> &mut Prng {
        self.random
    }

    /// True if this armed fault fires now. Always false in production.
    pub fn fault(&mut self, fault: Fault) -> bool {
        if self.faults.is_empty() {
            return false;
        }
        match self.faults.rate(fault) {
            Some(rate) => self.random.chance(1, rate),
            None => false,
        }
    }

    /// Ends the node if this armed crash point fires; true if so: return at once.
    pub fn crash_point(&mut self, fault: Fault) -> bool {
        let crashes = self.fault(fault);
        self.outbox.crashed |= crashes;
        crashes
    }
}
