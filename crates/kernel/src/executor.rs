//! The executor: a few blocks, their mailbox and their timers, run by one thread.

use crate::{Block, Ctx, Faults, Outbox, TimerToken, ctx::Identity};
use alloc::{boxed::Box, collections::BTreeMap, string::String, vec::Vec};
use lats_base::{Instant, prng::Prng, require};
use lats_signals::{BlockKind, BlockRef, Signal, SignalBuffer};

/// How much an executor may do before it gives the thread back.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Signals to handle at most.
    pub signals: usize,
}

impl Budget {
    /// What is in the mailbox now, without what comes of it. A runtime thread looks at its clock after
    /// each round, and at its sockets and timers when its turn is over.
    pub const ROUND: Self = Self { signals: 1 };
}

/// What a step has done and what it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Signals and timers handled.
    pub handled: usize,
    /// Signals still wait.
    pub more: bool,
    /// A crash point fired: end the node.
    pub crashed: bool,
}

struct Slot {
    address: BlockRef,
    block: Box<dyn Block>,
}

/// Blocks that share a thread.
pub struct Executor {
    identity: Identity,
    slots: Vec<Slot>,
    mailbox: SignalBuffer,
    urgent: SignalBuffer,
    working: SignalBuffer,
    outgoing: SignalBuffer,
    outbox: Outbox,
    timers: BTreeMap<(Instant, u64), (usize, TimerToken)>,
    timer_count: u64,
    random: Prng,
    faults: Faults,
    /// Steps since the blocks were last told that nothing waits.
    busy_steps: u32,
    /// Signals handled, by number; the last one counts all larger numbers.
    handled: Vec<u64>,
}

/// Signal numbers that are counted each for itself.
const NUMBERS_COUNTED: usize = 256;

/// How far blocks look ahead, in bytes of signals: what a hundred of them need must fit into the processor's cache.
const LOOK_AHEAD_BYTES: usize = 6 << 10;

/// After so many steps blocks are told that nothing waits although something does.
const BUSY_STEPS_MAX: u32 = 32;

impl Executor {
    /// An executor without blocks, for one life of a node.
    pub fn new(identity: Identity, seed: u64, faults: Faults) -> Self {
        Self {
            identity,
            slots: Vec::new(),
            mailbox: SignalBuffer::new(),
            urgent: SignalBuffer::new(),
            working: SignalBuffer::new(),
            outgoing: SignalBuffer::new(),
            outbox: Outbox::default(),
            timers: BTreeMap::new(),
            timer_count: 0,
            random: Prng::new(seed),
            faults,
            busy_steps: 0,
            handled: alloc::vec![0; NUMBERS_COUNTED],
        }
    }

    /// Adds a block; it gets a timer call with token 0 at once, to set itself going.
    pub fn add(&mut self, kind: BlockKind, instance: u32, block: Box<dyn Block>) {
        let address = BlockRef::new(lats_base::NodeId::new(0), kind, instance);
        let at = self.slots.len();
        self.slots.push(Slot { address, block });
        self.set_timer(at, Instant::ZERO, 0);
    }

    /// Arms other faults than before.
    pub fn arm(&mut self, faults: Faults) {
        self.faults = faults;
    }

    /// Who the node is.
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// True if the block with this kind and instance lives here.
    pub fn hosts(&self, kind: BlockKind, instance: u32) -> bool {
        self.slot_of(kind, instance).is_some()
    }

    fn slot_of(&self, kind: BlockKind, instance: u32) -> Option<usize> {
        self.slots
            .iter()
            .position(|s| s.address.kind() == Some(kind) && s.address.instance == instance)
    }

    /// The block with this kind and instance, for checkers.
    pub fn block(&self, kind: BlockKind, instance: u32) -> Option<&dyn Block> {
        self.slot_of(kind, instance).map(|at| &*self.slots[at].block)
    }

    /// How many signals of each number its blocks have handled.
    pub fn handled_by_number(&self) -> &[u64] {
        &self.handled
    }

    /// What its blocks still hold although the cluster should be at rest.
    pub fn leaks(&self) -> Option<String> {
        self.slots.iter().find_map(|s| s.block.leaks())
    }

    /// The mailbox, for the shell to put received signals into.
    pub fn mailbox(&mut self) -> &mut SignalBuffer {
        &mut self.mailbox
    }

    /// What is handled before all that waits in the mailbox: a lease is no older than it must be (VIEW-3).
    pub fn urgent(&mut self) -> &mut SignalBuffer {
        &mut self.urgent
    }

    /// Signals for others, for the shell to take.
    pub fn outgoing(&mut self) -> &mut SignalBuffer {
        &mut self.outgoing
    }

    /// Requests to io, for the shell to take.
    pub fn for_io(&mut self) -> &mut SignalBuffer {
        &mut self.outbox.for_io
    }

    /// When the next timer is due.
    pub fn next_timer(&self) -> Option<Instant> {
        self.timers.keys().next().map(|(when, _)| *when)
    }

    /// True if signals wait to be handled.
    pub fn has_work(&self) -> bool {
        !self.mailbox.is_empty() || !self.urgent.is_empty()
    }

    /// Delivers due timers and at most `budget` signals. The same code runs under both shells, which tell the time once more
    /// before they take what is to leave: [`Self::end_round`].
    pub fn step(&mut self, now: Instant, budget: Budget) -> Progress {
        self.end_round(now);
        let mut handled = self.run_timers(now);
        if !self.urgent.is_empty() && !self.outbox.crashed {
            core::mem::swap(&mut self.urgent, &mut self.working);
            handled += self.run_working(now);
        }
        while handled < budget.signals && !self.mailbox.is_empty() && !self.outbox.crashed {
            core::mem::swap(&mut self.mailbox, &mut self.working);
            handled += self.run_working(now);
        }
        // Long work in slices keeps the mailbox filled: what waits for a quiet moment must not wait
        // for its end.
        self.busy_steps += 1;
        if (self.mailbox.is_empty() || self.busy_steps >= BUSY_STEPS_MAX) && !self.outbox.crashed {
            self.busy_steps = 0;
            self.run_idle(now);
        }
        Progress { handled, more: !self.mailbox.is_empty(), crashed: self.outbox.crashed }
    }

    /// LEASE-7: all that was sent so far has read its rows by now. What rests on a lease that is over does not leave, and does
    /// not reach blocks here either.
    pub fn end_round(&mut self, now: Instant) {
        if self.outbox.lease_until.take().is_some_and(|until| until <= now) {
            self.withdraw(now);
        }
    }

    /// Shows the blocks what they have sent, so that they can send something else.
    fn withdraw(&mut self, now: Instant) {
        let mut sent = core::mem::take(&mut self.outgoing);
        while let Some(signal) = sent.pop() {
            if !self.is_withdrawn(&signal, now) {
                self.outgoing.push_signal(&signal);
            }
        }
        let mut waiting = core::mem::take(&mut self.mailbox);
        while let Some(signal) = waiting.pop() {
            if !self.is_withdrawn(&signal, now) {
                self.mailbox.push_signal(&signal);
            }
        }
        // What goes in its place rests on nothing.
        self.outbox.lease_until = None;
    }

    fn is_withdrawn(&mut self, signal: &Signal<'_>, now: Instant) -> bool {
        let sender = signal.header.sender;
        let own = sender.node == self.identity.node;
        let slot = sender.kind().filter(|_| own).and_then(|k| self.slot_of(k, sender.instance));
        let Some(at) = slot else { return false };
        let mut withdrawn = false;
        self.call(at, now, |block, ctx| withdrawn = block.withdraw(signal, ctx));
        withdrawn
    }

    fn run_working(&mut self, now: Instant) -> usize {
        let mut working = core::mem::take(&mut self.working);
        let mut handled = 0;
        let mut known = 0;
        while !working.is_empty() {
            if known == 0 {
                known = self.look_ahead(&working);
            }
            known -= 1;
            let Some(signal) = working.pop() else { break };
            self.deliver(&signal, now);
            handled += 1;
            if self.outbox.crashed {
                break;
            }
        }
        working.compact();
        self.working = working;
        handled
    }

    /// Shows the blocks what comes next; gives how many signals they have seen.
    fn look_ahead(&self, working: &SignalBuffer) -> usize {
        let upcoming = working.upcoming(LOOK_AHEAD_BYTES);
        self.slots.iter().for_each(|slot| slot.block.look_ahead(upcoming.clone()));
        upcoming.count()
    }

    fn deliver(&mut self, signal: &Signal<'_>, now: Instant) {
        let receiver = signal.header.receiver;
        let slot = receiver.kind().and_then(|kind| self.slot_of(kind, receiver.instance));
        // A receiver that is not here: the sender is of another version or has an old map.
        let Some(at) = slot else { return };
        self.handled[usize::from(signal.header.number).min(NUMBERS_COUNTED - 1)] += 1;
        self.call(at, now, |block, ctx| block.handle(signal, ctx));
    }

    /// Those that are due and were set before: what a block puts off for no time at all gives way to others (SLICE-1).
    fn run_timers(&mut self, now: Instant) -> usize {
        let (mut handled, newest) = (0, self.timer_count);
        while let Some(entry) = self.timers.first_entry() {
            let (when, number) = *entry.key();
            if when > now || number > newest || self.outbox.crashed {
                break;
            }
            let (at, token) = entry.remove();
            self.call(at, now, |block, ctx| block.on_timer(token, ctx));
            handled += 1;
        }
        handled
    }

    fn run_idle(&mut self, now: Instant) {
        for at in 0..self.slots.len() {
            self.call(at, now, |block, ctx| block.on_idle(ctx));
        }
    }

    fn call(&mut self, at: usize, now: Instant, work: impl FnOnce(&mut dyn Block, &mut Ctx<'_>)) {
        let slot = &mut self.slots[at];
        let mut me = slot.address;
        me.node = self.identity.node;
        let mut ctx =
            Ctx::new(now, me, self.identity, &mut self.outbox, &mut self.random, &self.faults);
        work(&mut *slot.block, &mut ctx);
        self.collect(at);
    }

    /// Sorts what a block has sent into the own mailbox and the shell's.
    fn collect(&mut self, at: usize) {
        let timers = core::mem::take(&mut self.outbox.timers);
        for (when, token) in &timers {
            self.set_timer(at, *when, *token);
        }
        self.outbox.timers = timers;
        self.outbox.timers.clear();
        if self.outbox.signals.is_empty() {
            return;
        }
        let mut sent = core::mem::take(&mut self.outbox.signals);
        while let Some(signal) = sent.pop() {
            if self.is_local(signal.header.receiver) {
                self.mailbox.push_signal(&signal);
            } else {
                self.outgoing.push_signal(&signal);
            }
        }
        sent.compact();
        self.outbox.signals = sent;
    }

    fn is_local(&self, receiver: BlockRef) -> bool {
        let own = receiver.node == self.identity.node || receiver.node.get() == 0;
        own && receiver.kind().is_some_and(|kind| self.hosts(kind, receiver.instance))
    }

    fn set_timer(&mut self, at: usize, when: Instant, token: TimerToken) {
        require!(self.timers.len() < 1 << 20, "timers are bounded by transactions and waits");
        self.timer_count += 1;
        self.timers.insert((when, self.timer_count), (at, token));
    }
}
