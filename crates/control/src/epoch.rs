//! Epochs at control: the leader moves them on, and knows which are complete (EPOCH-1, EPOCH-4,
//! EPOCH-6). Protocol: `docs/protocols/epoch.md`.

use crate::{Control, TICK, membership::EARLY, state::Command};
use lats_base::{Duration, Epoch, Instant, NodeId, ViewNumber};
use lats_catalog::Member;
use lats_kernel::{Ctx, Fault};
use lats_signals::{
    BlockKind, BlockRef, Signal,
    control::{EpochConf, EpochDoneRep, EpochOrd, EpochReq, EpochUsedRep},
};
use std::collections::BTreeMap;

/// What a node knows of epochs.
#[derive(Debug)]
pub(crate) struct Epochs {
    /// The largest seen.
    pub(crate) current: Epoch,
    /// The newest complete one.
    pub(crate) complete: Epoch,
    /// Up to where the coordinators of this node are done, and in which view.
    coordinators: BTreeMap<BlockRef, (ViewNumber, Epoch)>,
    /// Leader: up to where nodes are done.
    nodes: BTreeMap<NodeId, (ViewNumber, Epoch)>,
    /// Leader: the term in which it has moved above all earlier leaders' epochs.
    led_term: u64,
    asked_at: Instant,
    /// Leader: when the last epoch began, and when one was last used (EPOCH-7).
    pub(crate) began_at: Instant,
    used_at: Instant,
    /// The newest epoch that the leader was told is used.
    told_used: Epoch,
    /// The newest one of which no leader could be told.
    untold_used: Epoch,
    pub(crate) disk: crate::durable::Durable,
}

/// How many epochs the group agrees on at once: ten seconds of a busy cluster. Each time its state is written to disks.
pub(crate) const WINDOW: u64 = 2_000;
/// How long epochs follow each other with every tick after one was used, and what they last when none is (EPOCH-7).
const BUSY: Duration = Duration::from_millis(200);
const IDLE_EPOCH: Duration = Duration::from_millis(50);
/// EPOCH-8: what no timer has ended by then a tick does.
const PACED_MAX: Duration = Duration::from_millis(20);
/// How long to wait for the group's answer.
const RETRY: Duration = Duration::from_millis(100);

impl Default for Epochs {
    fn default() -> Self {
        Self {
            current: Epoch::new(1),
            complete: Epoch::default(),
            coordinators: BTreeMap::new(),
            nodes: BTreeMap::new(),
            led_term: 0,
            asked_at: Instant::ZERO,
            began_at: Instant::ZERO,
            used_at: Instant::ZERO,
            told_used: Epoch::default(),
            untold_used: Epoch::default(),
            disk: crate::durable::Durable::default(),
        }
    }
}

impl Control {
    /// The current epoch and the newest complete one, as this node knows them.
    pub fn epochs(&self) -> (Epoch, Epoch) {
        (self.epochs.current, self.epochs.complete)
    }

    pub(crate) fn hear_epoch(&mut self, epoch: Epoch) {
        self.epochs.current = self.epochs.current.max(epoch);
    }

    /// Leader, with every tick: the next epoch begins, if anybody uses them or the last one was long (EPOCH-7).
    pub(crate) fn advance_epoch_in_time(&mut self, ctx: &mut Ctx<'_>) {
        let now = ctx.now();
        let lasted = now.plus(EARLY).since(self.epochs.began_at);
        let (is_used, is_paced) = (self.epochs_are_used(now), self.is_paced());
        // A timer of its own ends an epoch that keeps pace with the disks (EPOCH-8).
        let shortest = if is_paced {
            PACED_MAX
        } else if is_used {
            TICK
        } else {
            IDLE_EPOCH
        };
        if lasted >= shortest {
            if self.advance_epoch(ctx) {
                self.tell_all_epochs(ctx);
            }
        } else if is_used && self.consensus.has_settled() {
            // EPOCH-8: the last one has begun between two ticks, of which these were not told.
            let members = &self.state.view.members;
            self.tell_members(members.iter().filter(|m| m.alive && !m.roles.data), ctx);
        }
    }

    /// True if one was used lately.
    pub(crate) fn epochs_are_used(&self, now: Instant) -> bool {
        now.since(self.epochs.used_at) < BUSY
    }

    /// Somebody uses epochs: the leader lets them follow each other again.
    pub(crate) fn note_epoch_used(&mut self, epoch: Epoch, ctx: &mut Ctx<'_>) {
        match self.leader() {
            Some(leader) if leader != ctx.node() && self.epochs.told_used < epoch => {
                self.epochs.told_used = epoch;
                ctx.send(BlockRef::control(leader), &EpochUsedRep { epoch });
            }
            Some(leader) if leader == ctx.node() => {
                self.epochs.used_at = ctx.now();
                let (now, disk) = (ctx.now(), &mut self.epochs.disk);
                if disk.has_all() {
                    // What is used from now on is the first that is not durable.
                    disk.grew_at = now;
                }
                disk.note_used(epoch.max(self.epochs.current));
                let lasted = ctx.now().since(self.epochs.began_at);
                if lasted > TICK && self.joined && self.advance_epoch(ctx) {
                    self.tell_those_with_data(ctx);
                }
                self.hurry_epoch(ctx);
            }
            // It is told when there is one.
            None => self.epochs.untold_used = self.epochs.untold_used.max(epoch),
            Some(_) => {}
        }
    }

    /// With every tick: what could not be told yet.
    pub(crate) fn tell_untold_use(&mut self, ctx: &mut Ctx<'_>) {
        if self.epochs.untold_used > Epoch::default() && self.knows_leader() {
            let epoch = std::mem::take(&mut self.epochs.untold_used);
            self.note_epoch_used(epoch, ctx);
        }
    }

    /// Leader: the next epoch begins, unless the group has not agreed on it yet (EPOCH-1). False if the leader has not settled.
    pub(crate) fn advance_epoch(&mut self, ctx: &mut Ctx<'_>) -> bool {
        if !self.consensus.has_settled() {
            return false;
        }
        self.rise_above_earlier_epochs();
        self.epochs.began_at = ctx.now();
        let (now, ceiling) = (ctx.now(), self.state.epoch_ceiling.get());
        let current = self.epochs.current.get();
        if current.saturating_add(WINDOW / 2) > ceiling && now.since(self.epochs.asked_at) >= RETRY
        {
            self.epochs.asked_at = now;
            let ceiling = Epoch::new(current.saturating_add(WINDOW));
            self.propose(&Command::EpochCeiling { ceiling }, ctx);
        }
        if current < ceiling {
            self.epochs.current = Epoch::new(current + 1);
        }
        self.choose_seal();
        true
    }

    /// Leader: tells all members where epochs are.
    fn tell_all_epochs(&self, ctx: &mut Ctx<'_>) {
        self.tell_members(self.state.view.members.iter().filter(|m| m.alive), ctx);
    }

    /// Leader, between two ticks: tells those that commit, and write to disks. Others hear of it with the next tick.
    pub(crate) fn tell_those_with_data(&mut self, ctx: &mut Ctx<'_>) {
        self.tell_members(self.state.view.data_nodes(), ctx);
        self.tell_lease(ctx);
    }

    fn tell_members<'m>(&self, members: impl Iterator<Item = &'m Member>, ctx: &mut Ctx<'_>) {
        let (epoch, complete) = (self.epochs.current, self.epochs.complete);
        let disk = &self.epochs.disk;
        let (seal, commands, durable) = (disk.seal, disk.commands, disk.durable);
        let body = EpochOrd { epoch, complete, seal, commands, durable };
        let me = ctx.node();
        for member in members.filter(|m| m.node != me) {
            ctx.send(BlockRef::control(member.node), &body);
        }
    }

    /// Leader, when it has settled and before it grants anything: EPOCH-6, above all that earlier leaders can
    /// have called complete.
    pub(crate) fn rise_above_earlier_epochs(&mut self) {
        let term = self.consensus.term();
        if self.epochs.led_term != term {
            self.epochs.led_term = term;
            self.hear_epoch(Epoch::new(self.state.epoch_ceiling.get() + 1));
            // Earlier leaders may have known of used epochs that are not durable yet.
            self.epochs.disk.note_used(self.epochs.current);
        }
    }

    pub(crate) fn on_epoch_ord(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let body = signal.body::<EpochOrd>();
        self.hear_epoch(body.epoch);
        self.epochs.complete = self.epochs.complete.max(body.complete);
        self.epochs.disk.hear(&body, ctx.now());
        self.answer_waiters(ctx);
        if self.joined {
            self.tick_with_leader(ctx);
            self.tell_lease(ctx);
        }
    }

    pub(crate) fn on_epoch_used_rep(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        self.note_epoch_used(signal.body::<EpochUsedRep>().epoch, ctx);
    }

    pub(crate) fn on_epoch_req(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let EpochReq { request, durable, restarts, .. } = signal.body();
        let is_new = !self.joined && !ctx.fault(Fault::BugTellBeforeJoining);
        if is_new || restarts > self.state.restarts() {
            // This node knows less than whoever asks, who asks again.
            return;
        }
        let asks_about_former = durable > Epoch::default() && restarts < self.state.restarts();
        if asks_about_former && self.is_just_restarted() {
            // DURABLE-7: no disk may know of the restart yet, and the next one may begin without what this one has restored.
            return self.note_epoch_used(self.epochs.current, ctx);
        }
        if self.is_void(durable, restarts) && !ctx.fault(Fault::BugConfirmVoid) {
            return self.answer_epochs((signal.sender(), request), true, ctx);
        }
        // A client may ask for what it likes; nobody has committed in epochs so far ahead.
        let durable = durable.min(Epoch::new(self.epochs.current.get() + WINDOW));
        // Who asks waits for one to be complete, or durable.
        self.note_epoch_used(self.epochs.current.max(durable), ctx);
        // With a lost or silent group nothing more becomes durable: whoever asks hears so, and gives up.
        let is_lost = self.state.view.lost_groups().next().is_some();
        let stands = is_lost || !self.silent_told.is_empty();
        if durable <= self.epochs.disk.durable || !self.state.view.config.keeps || stands {
            return self.tell_epochs((signal.sender(), request), ctx);
        }
        self.wait_for_disks(durable, (signal.sender(), request), ctx);
    }

    /// True until something has become durable since the last restart.
    fn is_just_restarted(&self) -> bool {
        let restored = self.state.restored_at();
        self.state.view.config.keeps && self.epochs.disk.durable <= restored
    }

    /// DURABLE-7: what was committed in this epoch, after so many restarts, was lost with a later one.
    fn is_void(&self, epoch: Epoch, restarts: u32) -> bool {
        let later = self.state.restored.get(restarts as usize..).unwrap_or_default();
        later.iter().any(|restored| epoch > *restored)
    }

    pub(crate) fn tell_epochs(&self, asked: (BlockRef, u64), ctx: &mut Ctx<'_>) {
        self.answer_epochs(asked, false, ctx);
    }

    fn answer_epochs(&self, (client, request): (BlockRef, u64), is_void: bool, ctx: &mut Ctx<'_>) {
        let keeps = self.state.view.config.keeps;
        let durable = if keeps { self.epochs.disk.durable } else { Epoch::default() };
        let (current, complete) = (self.epochs.current, self.epochs.complete);
        let (restarts, is_void) = (self.state.restarts(), u32::from(is_void));
        ctx.send(client, &EpochConf { request, current, complete, durable, restarts, is_void });
    }

    /// A coordinator of this node, or another node, is done with epochs.
    pub(crate) fn on_epoch_done_rep(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let rep = signal.body::<EpochDoneRep>();
        let sender = signal.sender();
        self.hear_epoch(Epoch::new(rep.done.get().saturating_add(1)));
        if sender.kind() == Some(BlockKind::Control) {
            self.epochs.nodes.insert(sender.node, (rep.view, rep.done));
            return self.count_complete(ctx);
        }
        self.epochs.coordinators.insert(sender, (rep.view, rep.done));
        let own = self.blocks.keys().filter(|b| b.kind() == Some(BlockKind::Tc));
        let Some(done) = least(self.state.view.number, own, &self.epochs.coordinators) else {
            return;
        };
        match self.leader() {
            Some(leader) if leader != ctx.node() => {
                ctx.send(BlockRef::control(leader), &EpochDoneRep { done, view: rep.view });
            }
            _ => {
                self.epochs.nodes.insert(ctx.node(), (rep.view, done));
                self.count_complete(ctx);
            }
        }
    }

    /// EPOCH-4: an epoch is complete when every live data node is done with it, in this view. The
    /// group must have agreed on it, so that a new leader begins above it.
    fn count_complete(&mut self, ctx: &mut Ctx<'_>) {
        if !self.consensus.has_settled() {
            return;
        }
        let nodes = self.data_nodes();
        let done = least(self.state.view.number, nodes.iter(), &self.epochs.nodes);
        let done = done.unwrap_or_default().min(self.state.epoch_ceiling);
        if done > self.epochs.complete {
            self.epochs.complete = done;
            self.hurry_seal(ctx);
        }
    }
}

/// The least of the reports, if all are there and of this view.
pub(crate) fn least<'k, K: Ord + 'k>(
    view: ViewNumber,
    all: impl Iterator<Item = &'k K>,
    reports: &BTreeMap<K, (ViewNumber, Epoch)>,
) -> Option<Epoch> {
    let of_view = |key| reports.get(key).filter(|(v, _)| *v == view).map(|(_, done)| *done);
    all.map(of_view).min().flatten()
}
