//! A primary that is handed over while all live: the former one lets go of everything, the next one
//! waits until nothing is under way (HANDOVER-2 to HANDOVER-4; `docs/protocols/hand-over.md`).

use crate::{Ldm, TIMER_HAND_OVER, transaction::Transaction};
use alloc::collections::BTreeSet;
use lats_base::{Duration, FragmentId, NodeId, TransactionId, ViewNumber};
use lats_catalog::View;
use lats_kernel::{Ctx, Fault};
use lats_signals::{
    BlockRef, Signal,
    commit::{BatchReturnedRep, PrepareReq},
    control::{CLOSE_ALL, CLOSE_BEGUN, DrainedRep, QuietRep, TakeOverReadyRep},
    list::{self, Operation},
};

/// What this data manager knows of a hand-over that it has a part in.
#[derive(Debug, Default)]
pub(crate) struct HandOver {
    view: ViewNumber,
    /// It has let go of what it hands over, and takes no more of it.
    drained: bool,
    /// The former primaries that have.
    released_by: BTreeSet<NodeId>,
    /// It can become primary.
    ready: bool,
    /// A transaction that was in the way at the last look: most often it still is.
    in_the_way: TransactionId,
}

/// How often it looks whether what was under way has ended.
const LOOK_AGAIN: Duration = Duration::from_micros(500);

/// True if the fragment goes from this node to another one.
fn leaves(view: &View, fragment: FragmentId, me: NodeId) -> bool {
    view.primary(fragment) == Some(me) && view.next_primary(fragment).is_some()
}

/// True if the fragment comes to this node.
fn arrives(view: &View, fragment: FragmentId, me: NodeId) -> bool {
    view.next_primary(fragment) == Some(me)
}

/// True if the operations need a fragment that is meant.
fn touches(operations: &[u8], is_meant: impl Fn(FragmentId) -> bool) -> bool {
    list::items::<Operation>(operations).any(|(head, _)| is_meant(head.fragment))
}

impl Ldm {
    /// A view begins a hand-over, or ends one, in whichever way.
    pub(crate) fn start_hand_over(&mut self, ctx: &mut Ctx<'_>) {
        self.hand_over = None;
        if self.view.hands_over() {
            self.hand_over = Some(HandOver { view: self.view.number, ..HandOver::default() });
            self.look_at_hand_over(ctx);
        }
    }

    /// STOP-3: says that nobody scans here any more, when this node is to stop and is primary of nothing.
    pub(crate) fn be_quiet(&mut self, ctx: &mut Ctx<'_>) {
        let me = ctx.node();
        if self.quiet || !self.scans.is_empty() || !self.view.is_stopping(me) {
            return;
        }
        if self.view.primary_slots(me) == 0 {
            self.quiet = true;
            let (view, epoch) = (self.view.number, self.epoch);
            ctx.send(BlockRef::control(me), &QuietRep { view, epoch, closing: 0 });
        }
    }

    /// CLOSE-2: a primary that does not end yet brings a change after all. It is said before the change is confirmed.
    pub(crate) fn stir_at_the_end(&mut self, ctx: &mut Ctx<'_>) {
        if self.closing == CLOSE_ALL && core::mem::take(&mut self.quiet) {
            let (view, epoch, closing) = (self.view.number, self.epoch, CLOSE_BEGUN);
            ctx.send(BlockRef::control(ctx.node()), &QuietRep { view, epoch, closing });
        }
    }

    /// CLOSE-2: says that nothing is under way here that could still commit, when nobody brings anything new.
    pub(crate) fn be_quiet_at_the_end(&mut self, ctx: &mut Ctx<'_>) {
        if self.closing < CLOSE_ALL || self.quiet || !self.transactions.is_empty() {
            return;
        }
        self.quiet = true;
        let (view, epoch, closing) = (self.view.number, self.epoch, self.closing);
        ctx.send(BlockRef::control(ctx.node()), &QuietRep { view, epoch, closing });
    }

    pub(crate) fn look_at_hand_over(&mut self, ctx: &mut Ctx<'_>) {
        self.drain(ctx);
        self.get_ready(ctx);
        let me = ctx.node();
        let unfinished = self.hand_over.as_ref().is_some_and(|h| {
            (!h.drained && !self.heirs(me).is_empty()) || (!h.ready && !self.givers(me).is_empty())
        });
        if unfinished {
            ctx.after(LOOK_AGAIN, TIMER_HAND_OVER);
        }
    }

    /// Those who become primary in the place of this node, and those in whose place it does.
    fn heirs(&self, me: NodeId) -> BTreeSet<NodeId> {
        self.view.moves().filter(|(from, _)| *from == me).map(|(_, to)| to).collect()
    }

    fn givers(&self, me: NodeId) -> BTreeSet<NodeId> {
        self.view.moves().filter(|(_, to)| *to == me).map(|(from, _)| from).collect()
    }

    /// HANDOVER-2: nothing of what it hands over is locked or under way any more.
    fn drain(&mut self, ctx: &mut Ctx<'_>) {
        let me = ctx.node();
        let heirs = self.heirs(me);
        let hasty = ctx.fault(Fault::BugHandOverEarly);
        let waits = |h: &HandOver| !h.drained && !heirs.is_empty();
        if !self.hand_over.as_ref().is_some_and(waits) || (self.is_held(me, leaves) && !hasty) {
            return;
        }
        let Some(hand_over) = &mut self.hand_over else { return };
        hand_over.drained = true;
        let body = DrainedRep { view: hand_over.view };
        if ctx.crash_point(Fault::CrashInHandOver) {
            return;
        }
        heirs.into_iter().for_each(|n| ctx.send(BlockRef::ldm(n, self.instance), &body));
    }

    pub(crate) fn on_drained_rep(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let view = signal.body::<DrainedRep>().view;
        if self.park_newer(view, signal) {
            return;
        }
        if let Some(hand_over) = self.hand_over.as_mut().filter(|h| h.view == view) {
            hand_over.released_by.insert(signal.sender().node);
            self.get_ready(ctx);
        }
    }

    /// HANDOVER-4: what the former primary has sent is through, too: nothing needs its locks here.
    fn get_ready(&mut self, ctx: &mut Ctx<'_>) {
        let me = ctx.node();
        let givers = self.givers(me);
        let released =
            |h: &HandOver| !h.ready && !givers.is_empty() && givers.is_subset(&h.released_by);
        let hasty = ctx.fault(Fault::BugHandOverEarly);
        if !self.hand_over.as_ref().is_some_and(released) || (self.is_held(me, arrives) && !hasty) {
            return;
        }
        if ctx.crash_point(Fault::CrashWhenReady) {
            return;
        }
        if let Some(hand_over) = &mut self.hand_over {
            hand_over.ready = true;
            ctx.send(BlockRef::control(me), &TakeOverReadyRep { view: hand_over.view });
        }
    }

    /// True if a transaction holds a row of such a fragment, or a batch of it may.
    fn is_held(&mut self, me: NodeId, is_meant: fn(&View, FragmentId, NodeId) -> bool) -> bool {
        let Some(hand_over) = &mut self.hand_over else { return false };
        let view = &self.view;
        let meant = |fragment| is_meant(view, fragment, me);
        let holds = |t: &Transaction| {
            t.ops.iter().any(|op| meant(op.fragment))
                || t.waiting.as_ref().is_some_and(|w| touches(&w.rest, meant))
                || t.paused.as_ref().is_some_and(|p| touches(&p.operations[p.done_bytes..], meant))
        };
        if self.transactions.get(&hand_over.in_the_way).is_some_and(holds) {
            return true;
        }
        let found = self.transactions.iter().find(|(_, t)| holds(t));
        hand_over.in_the_way = found.map(|(id, _)| id).unwrap_or_default();
        found.is_some()
    }

    /// HANDOVER-3: keeps a batch that comes too late until the hand-over has ended, and gives one back
    /// that comes even later. True if it is dealt with.
    pub(crate) fn turn_away(
        &mut self,
        req: &PrepareReq,
        signal: &Signal<'_>,
        ctx: &mut Ctx<'_>,
    ) -> bool {
        let (view, me) = (&self.view, ctx.node());
        let drained = self.hand_over.as_ref().is_some_and(|h| h.drained);
        if drained && touches(signal.payload(), |f| leaves(view, f, me)) {
            self.parked.push_signal(signal);
            return true;
        }
        // A coordinator that knows this view knows who is primary.
        let late = req.view < view.number;
        let elsewhere = late && touches(signal.payload(), |f| view.primary(f) != Some(me));
        if elsewhere {
            let body = BatchReturnedRep {
                transaction: req.transaction,
                view: view.number,
                batch: req.batch,
                reserved: 0,
            };
            ctx.send_with(signal.sender(), &body, &[signal.payload()]);
        }
        elsewhere
    }
}
