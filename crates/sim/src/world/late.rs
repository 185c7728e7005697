//! Threads and connections that are late although their nodes are well: nobody is removed for that (THREAD-5, LATE-1).

use super::{Event, LOST_POWER, SimNode, World};
use crate::{faults::Disturbance, network::End};
use lats_base::{Duration, Incarnation, Instant, NodeId, prng::Prng};
use lats_kernel::Executor;
use lats_node::Placement;
use lats_signals::{BlockKind, Lane, SignalNumber, buffer::parse, control::LateRep};
use std::collections::BTreeMap;

/// What is late in a world, and what must not come of it.
pub(super) struct Late {
    /// Its own numbers: the rest of a run is drawn the same with it and without.
    pub(super) random: Prng,
    /// Faults that may well remove somebody: so many of them have happened.
    unrest: u64,
    unrest_at: Option<Instant>,
    spared: Vec<Spared>,
    /// An answer that rests on a lease that is over.
    wrong: Option<String>,
}

/// These lives are members at the end of a time in which nothing happened but that somebody was late.
#[derive(Debug)]
struct Spared {
    lives: Vec<(NodeId, Incarnation)>,
    unrest: u64,
    until: Instant,
}

/// How a node's threads are late.
#[derive(Clone, Copy, Debug, Default)]
pub struct Busy {
    /// Since when all but control's do nothing, and until when.
    since: Instant,
    pub(super) until: Instant,
    /// When control was told.
    told_at: Instant,
}

/// How a node's threads stand still inside rounds.
#[derive(Clone, Debug, Default)]
pub struct Stuck {
    /// Each from its next round on, before this.
    pub until: Instant,
    /// All but the first one only with such a signal in the mailbox.
    pub at: Option<SignalNumber>,
    /// When the round that a thread has begun last has ended.
    ends: BTreeMap<usize, Instant>,
}

/// The shell looks so often whether threads are late, and tells control of threads that are so late.
const LOOK: Duration = Duration::from_millis(20);
const TOLD: Duration = Duration::from_millis(100);
/// What has gone wrong so long ago is over, and nobody will be removed for it any more.
const OVER: Duration = Duration::from_millis(4_000);
/// An end of a link may notice so much later than the other one that it is up.
const UP_LATER_US: u64 = 2_000;

impl Busy {
    /// The threads go on.
    pub fn end(&mut self, now: Instant) {
        self.until = self.until.min(now);
    }
}

impl Late {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            random: Prng::new(seed.rotate_left(48)),
            unrest: 0,
            unrest_at: None,
            spared: Vec::new(),
            wrong: None,
        }
    }
}

impl World {
    /// A placement with control in a thread of its own, as nodes have it if nobody says otherwise; in some runs it stays with others.
    pub(super) fn set_control_apart(&mut self, mut placement: Placement) -> Placement {
        let first = placement.threads.first_mut();
        if let Some(first) = first.filter(|first| first.len() > 1)
            && self.late.random.chance(3, 4)
        {
            let is_control = |block: &(BlockKind, u32)| block.0 == BlockKind::Control;
            let (control, others) = first.drain(..).partition(is_control);
            *first = others;
            placement.threads.insert(0, control);
        }
        placement
    }

    /// The connection that a signal takes.
    pub(super) fn lane(&self, from: End, to: End, packet: &[u8]) -> Lane {
        let of_nodes = matches!((from, to), (End::Node(_), End::Node(_)));
        match parse(packet) {
            Ok(Some(signal)) if of_nodes => lats_node::lane(&signal, &self.faults),
            _ => Lane::Data,
        }
    }

    /// How much later than now an end notices that a link is up.
    pub(super) fn up_later(&mut self) -> Duration {
        Duration::from_micros(self.late.random.between(0, UP_LATER_US))
    }

    /// What lateness is drawn from.
    pub(crate) fn lateness(&mut self) -> &mut Prng {
        &mut self.late.random
    }

    /// Something happens for which somebody may be removed.
    pub(crate) fn note_unrest(&mut self) {
        self.late.unrest += 1;
        self.late.unrest_at = Some(self.now);
    }

    /// True if the node's control has a thread of its own.
    pub fn has_control_apart(&self, node: NodeId) -> bool {
        let placement = self.nodes.get(&node).map(|n| &n.config.placement);
        placement.and_then(|p| p.threads.first()).is_some_and(|first| first.len() == 1)
    }

    /// The threads of a node do nothing for a while, but for control's.
    pub fn keep_busy(&mut self, node: NodeId, span: Duration) {
        self.spare(self.now.plus(span));
        self.hang(node, span);
    }

    /// The same for so long that the node may be removed.
    pub fn hang(&mut self, node: NodeId, span: Duration) {
        let now = self.now;
        if let Some(n) = self.nodes.get_mut(&node) {
            n.busy = Busy { since: now, until: now.plus(span), told_at: now };
        }
    }

    /// What one lane brings between two nodes stays away for a while. That control's does, nobody can tell from a cut.
    pub fn stall(&mut self, (a, b): (End, End), lane: Lane, both: bool, span: Duration) {
        match lane {
            Lane::Data => self.spare(self.now.plus(span)),
            Lane::Control => self.note_unrest(),
        }
        self.network.stall(a, b, lane, both);
        self.at(span, Event::Disturb(Disturbance::Heal(a, b)));
    }

    /// All who are members now are members then, if nothing else happens, and all is well now.
    fn spare(&mut self, until: Instant) {
        let is_over = self.late.unrest_at.is_none_or(|at| self.now.since(at) >= OVER);
        if !is_over || !self.is_whole() {
            return;
        }
        let lives = self.nodes.iter().filter(|(_, n)| n.is_alive()).map(|(id, n)| (*id, n.life()));
        let (lives, unrest) = (lives.collect(), self.late.unrest);
        self.late.spared.push(Spared { lives, unrest, until });
    }

    /// Looks whether somebody was removed for being late, or answers too late.
    ///
    /// # Errors
    /// Says who.
    pub fn check_late(&mut self) -> Result<(), String> {
        if let Some(wrong) = self.late.wrong.take() {
            return Err(wrong);
        }
        let now = self.now;
        let over = self.late.spared.extract_if(.., |s| s.until <= now).collect::<Vec<_>>();
        let Some(view) = crate::checkers::newest_view(self).filter(|_| !over.is_empty()) else {
            return Ok(());
        };
        for spared in over.iter().filter(|s| s.unrest == self.late.unrest && !self.calm) {
            let gone = spared.lives.iter().find(|(node, life)| !view.is_alive(*node, *life));
            if let Some((node, life)) = gone {
                return Err(format!("node {node} (life {life}) was removed for being late"));
            }
        }
        Ok(())
    }

    /// A process does nothing for a while: every other time from the middle of rounds on, so that what was read then leaves when
    /// others may have taken over (LEASE-7).
    pub(crate) fn pause(&mut self, node: NodeId, span: Duration) {
        let until = self.now.plus(span);
        if let Some(n) = self.nodes.get_mut(&node) {
            match span.as_millis() % 2 {
                0 => n.paused_until = until,
                _ => n.stuck.until = until,
            }
        }
    }

    /// A process gets little processor time for a while: one signal, and then others run.
    pub(crate) fn slow(&mut self, node: NodeId, span: Duration) {
        let until = self.now.plus(span);
        if let Some(n) = self.nodes.get_mut(&node) {
            (n.slow_until, n.starves) = (n.slow_until.max(until), false);
        }
    }

    /// The same on a machine that has far too much to do: now and then its threads get none for some milliseconds.
    pub(crate) fn starve(&mut self, node: NodeId, span: Duration) {
        self.slow(node, span);
        if let Some(n) = self.nodes.get_mut(&node) {
            n.starves = true;
        }
    }

    /// What a thread has sent leaves.
    pub(super) fn let_out(&mut self, node: NodeId, thread: usize) {
        let Some(n) = self.nodes.get_mut(&node) else { return };
        let Some(executor) = n.executors.get_mut(thread) else { return };
        let mut outgoing = std::mem::take(executor.outgoing());
        let mut for_io = std::mem::take(executor.for_io());
        while let Some(signal) = outgoing.pop() {
            self.route(node, thread, &signal);
        }
        while let Some(signal) = for_io.pop() {
            self.on_io_signal(node, &signal);
        }
    }

    /// A thread stands still in a round, which ends then, and what it has sent stays. LEASE-7: no answer is among it that rests on
    /// a lease that is over when it leaves.
    pub(super) fn stick(&mut self, node: NodeId, thread: usize, ends: Instant) {
        self.tally.note("round that lasts long");
        let wrong = self.nodes.get_mut(&node).and_then(|n| n.late_answer(thread, ends));
        if let Some(what) = wrong {
            self.late.wrong = Some(format!("node {node}: {what}"));
        }
        self.wake(node, thread, ends.since(self.now));
    }

    /// A process has ended itself.
    pub(super) fn note_end(&mut self, why: &str, was_removed: bool) {
        if !was_removed || why == LOST_POWER {
            self.note_unrest();
        }
    }

    /// LATE-1: what the shell tells control.
    pub(super) fn tell_late(&mut self, node: NodeId) {
        let now = self.now;
        let Some(busy) = self.nodes.get_mut(&node).map(|n| &mut n.busy) else { return };
        let is_over = busy.until <= now;
        if busy.since == Instant::ZERO || now.since(busy.told_at) < LOOK {
            return;
        }
        let late = now.since(busy.since);
        busy.told_at = now;
        if is_over {
            *busy = Busy::default();
        }
        let late_ms = if is_over || late < TOLD { 0 } else { late.as_millis() };
        self.tell_control(node, &LateRep { late_ms, thread: 1 });
    }
}

impl SimNode {
    /// True if it gets all the processor time it wants.
    pub fn is_awake(&self, now: Instant) -> bool {
        let stands_still = self.paused_until.max(self.stuck.until);
        stands_still.max(self.slow_until).max(self.busy.until) <= now
    }

    /// Until when this thread does nothing.
    pub(super) fn idle_until(&self, thread: usize) -> Instant {
        let busy = if thread > 0 { self.busy.until } else { Instant::ZERO };
        let round = self.stuck.ends.get(&thread).copied().unwrap_or(Instant::ZERO);
        self.paused_until.max(busy).max(round)
    }

    /// What a thread has read and is about to send, although the lease of the data manager is over by then.
    fn late_answer(&mut self, thread: usize, leaves: Instant) -> Option<String> {
        let sent = self.executors.get_mut(thread)?.outgoing();
        let reads = [Some(SignalNumber::ReadConf), Some(SignalNumber::ScanConf)];
        let told = sent.upcoming(usize::MAX).filter(|signal| reads.contains(&signal.number()));
        let told: Vec<_> =
            told.filter_map(|s| Some((s.number()?, s.header.sender.instance))).collect();
        told.into_iter().find_map(|(number, instance)| {
            let ldm = self.executors.iter().find_map(|e| lats_node::ldm_in(e, instance))?;
            let is_over = ldm.lease_until() <= leaves;
            is_over.then(|| format!("{number:?} leaves when the lease is over (LEASE-7)"))
        })
    }

    /// A thread begins a round: when that has ended.
    pub(super) fn begin_round(&mut self, thread: usize, now: Instant) -> Instant {
        let number = self.stuck.at.filter(|_| thread > 0);
        let waits = |number: SignalNumber| {
            let mailbox = self.executors.get_mut(thread).map(Executor::mailbox);
            mailbox.is_some_and(|m| m.upcoming(usize::MAX).any(|s| s.number() == Some(number)))
        };
        let sticks = number.is_none_or(waits);
        let ends = if sticks { self.stuck.until.max(now) } else { now };
        self.stuck.ends.insert(thread, ends);
        ends
    }
}
