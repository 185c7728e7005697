//! The transaction coordinator: routes operations to primaries, runs prepare, decide, commit and
//! complete, takes over from dead coordinators, and tells clients the outcome.
//!
//! Each file is one activity of `docs/protocols/commit.md`.
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;
#[cfg(test)]
extern crate std;

mod abort;
mod adopt;
mod carry;
mod close;
mod commit;
mod complete;
mod deadlock;
mod epoch;
mod hand_over;
mod index;
mod outcome;
mod prepare;
mod request;
mod silence;
mod takeover;
#[cfg(test)]
mod tests;
mod transaction;
mod view;

use alloc::{
    collections::{BTreeMap, BTreeSet},
    format,
    string::String,
    vec::Vec,
};
use lats_base::{
    Duration, IdMap, Instant, NodeId, NodeSet, SortedMap, Spare, TableId, TransactionId, ViewNumber,
};
use lats_catalog::{Spread, View};
use lats_kernel::{Block, Ctx, TimerToken};
use lats_signals::{BlockRef, Signal, SignalBuffer, SignalNumber};
use transaction::Transaction;

/// How a table's rows are spread.
#[derive(Clone, Debug)]
pub(crate) struct TableRoute {
    pub(crate) spread: Spread,
    /// It is the hidden table of a unique index: only the coordinator writes it.
    pub(crate) is_index: bool,
}

/// The transaction coordinator.
pub struct Tc {
    pub(crate) view: View,
    pub(crate) catalog_version: u64,
    pub(crate) tables: SortedMap<TableId, TableRoute, 1>,
    pub(crate) transactions: IdMap<TransactionId, Transaction>,
    pub(crate) lease_until: Instant,
    /// Data nodes that cannot be asked (SILENT-1).
    pub(crate) silent: NodeSet,
    pub(crate) epochs: epoch::Epochs,
    pub(crate) completions: complete::Completions,
    pub(crate) takeover: takeover::TakeOver,
    pub(crate) queries: BTreeMap<u64, outcome::Query>,
    pub(crate) next_query: u64,
    /// Lives to which a link was lost: what comes from them has gaps (VIEW-5).
    pub(crate) severed: BTreeMap<NodeId, u32>,
    pub(crate) parked: SignalBuffer,
    /// The first view that has this life of the node.
    pub(crate) joined_in: ViewNumber,
    pub(crate) held: hand_over::Held,
    /// Its node is to stop: it has no transactions, and takes no more (STOP-2).
    pub(crate) quiet: bool,
    /// What control has said of the end of this node: 0, or `CLOSE_…` (CLOSE-2).
    pub(crate) closing: u64,
    /// Memory of lists of requests that are over.
    pub(crate) spare_lists: Spare<Vec<u8>, 64, { 64 << 10 }>,
    pub(crate) counters: Counters,
}

/// What a coordinator has done, for status and tests.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    /// Transactions committed.
    pub commits: u64,
    /// Those of them whose row images carried the decision: one round trip.
    pub carried: u64,
    /// Transactions rolled back, for whatever reason.
    pub aborts: u64,
    /// Transactions that were rolled back to end a deadlock.
    pub deadlocks: u64,
    /// Transactions of dead coordinators that were resolved here.
    pub taken_over: u64,
}

impl Default for Tc {
    fn default() -> Self {
        Self::new()
    }
}

impl Tc {
    /// A coordinator without a view: it refuses everything until it gets one.
    pub fn new() -> Self {
        Self {
            view: View::default(),
            catalog_version: 0,
            tables: SortedMap::new(),
            transactions: IdMap::new(),
            lease_until: Instant::ZERO,
            silent: NodeSet::EMPTY,
            epochs: epoch::Epochs::default(),
            completions: complete::Completions::default(),
            takeover: takeover::TakeOver::default(),
            queries: BTreeMap::new(),
            next_query: 1,
            severed: BTreeMap::new(),
            parked: SignalBuffer::new(),
            joined_in: ViewNumber::default(),
            held: hand_over::Held::default(),
            quiet: false,
            closing: 0,
            spare_lists: Spare::default(),
            counters: Counters::default(),
        }
    }

    /// What it has done.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    pub(crate) fn may_serve(&self, ctx: &Ctx<'_>) -> bool {
        ctx.now() < self.lease_until
    }

    /// Parks a signal whose sender has installed a view that we have not; one whose sender did not know this life of
    /// the node was meant for an earlier one, and is dropped (VIEW-11). True if it is dealt with.
    pub(crate) fn park_newer(&mut self, view: ViewNumber, signal: &Signal<'_>) -> bool {
        let newer = view > self.view.number;
        if newer {
            self.parked.push_signal(signal);
        }
        newer || view < self.joined_in
    }

    /// Every LDM of every live data node.
    pub(crate) fn all_ldms(&self) -> BTreeSet<BlockRef> {
        let instances = self.view.config.ldm_instances;
        let nodes = self.view.data_nodes().map(|m| m.node);
        nodes.flat_map(|n| (0..instances).map(move |i| BlockRef::ldm(n, i))).collect()
    }

    fn on_link_down(&mut self, signal: &Signal<'_>) {
        let body = signal.body::<lats_signals::control::LinkDownRep>();
        let life = self.severed.entry(NodeId::new(body.node as u16)).or_default();
        *life = (*life).max(body.incarnation as u32);
    }

    /// True if the signal comes from a removed life of a node, or from one that signals were lost
    /// of: drop it (VIEW-4, VIEW-5).
    fn is_from_the_dead(&self, signal: &Signal<'_>, ctx: &Ctx<'_>) -> bool {
        let sender = signal.header.sender;
        if sender.node == ctx.node() || sender.node.get() == 0 {
            return false;
        }
        let theirs = signal.header.incarnation;
        if self.severed.get(&sender.node).is_some_and(|life| theirs <= *life) {
            return true;
        }
        self.view.member(sender.node).is_some_and(|m| {
            theirs < m.incarnation.get() || (theirs == m.incarnation.get() && !m.alive)
        })
    }
}

impl Block for Tc {
    fn handle(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        if self.is_from_the_dead(signal, ctx) {
            return;
        }
        let Some(number) = signal.number() else { return };
        match number {
            SignalNumber::TcKeyReq => self.on_tc_key_req(signal, ctx),
            SignalNumber::InterruptOrd => self.on_interrupt_ord(signal, ctx),
            SignalNumber::PrepareConf => self.on_prepare_conf(signal, ctx),
            SignalNumber::PrepareRef => self.on_prepare_ref(signal, ctx),
            SignalNumber::BatchReturnedRep => self.on_batch_returned_rep(signal, ctx),
            SignalNumber::AdoptReq => self.on_adopt_req(signal, ctx),
            SignalNumber::ReplicateConf => self.on_replicate_conf(signal, ctx),
            SignalNumber::DecideConf => self.on_decide_conf(signal, ctx),
            SignalNumber::CommitConf => self.on_commit_conf(signal, ctx),
            SignalNumber::AbortConf => self.on_abort_conf(signal, ctx),
            SignalNumber::CompleteConf => self.on_complete_conf(signal),
            SignalNumber::TakeOverRep => self.on_take_over_rep(signal),
            SignalNumber::TakeOverEndedRep => self.on_take_over_ended_rep(signal),
            SignalNumber::TakeOverEndRep => self.on_take_over_end_rep(signal, ctx),
            SignalNumber::LockWaitRep => self.on_lock_wait_rep(signal, ctx),
            SignalNumber::ProbeOrd => self.on_probe_ord(signal, ctx),
            SignalNumber::OutcomeReq => self.on_outcome_req(signal, ctx),
            SignalNumber::OutcomeFindConf => self.on_outcome_find_conf(signal, ctx),
            SignalNumber::ViewOrd => self.on_view_ord(signal, ctx),
            SignalNumber::CatalogOrd => self.on_catalog_ord(signal, ctx),
            SignalNumber::LinkDownRep => self.on_link_down(signal),
            SignalNumber::ClientGoneRep => self.on_client_gone_rep(signal, ctx),
            SignalNumber::LeaseOrd => self.on_lease_ord(signal, ctx),
            SignalNumber::EpochBarrierConf => self.on_epoch_barrier_conf(signal, ctx),
            // Signals of other blocks: a sender of another version, or a client that errs.
            _ => {}
        }
    }

    fn on_timer(&mut self, _token: TimerToken, ctx: &mut Ctx<'_>) {
        self.drop_old_queries(ctx);
        if !self.may_serve(ctx) {
            // The view that they wait for may never come here.
            self.release_held(ctx);
        }
        ctx.after(Duration::from_millis(1_000), 0);
    }

    fn on_idle(&mut self, ctx: &mut Ctx<'_>) {
        self.flush_all_completions(ctx);
        self.be_quiet(ctx);
    }

    fn leaks(&self) -> Option<String> {
        if let Some((id, t)) = self.transactions.iter().next() {
            return Some(format!("tc holds transaction {id:?}: {t:?}"));
        }
        if self.has_unfinished() {
            return Some(format!("tc counts unfinished transactions: {:?}", self.epochs));
        }
        let held = [
            ("completions", self.completions.is_empty()),
            ("parked signals", self.parked.is_empty()),
            ("requests", self.held.is_empty()),
        ];
        let what = held.iter().find(|(_, none)| !none);
        what.map(|(what, _)| format!("tc holds {what}"))
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}
