//! Threads beside thread 0: an executor, rings to and from every other thread, a doorbell.

use crate::{
    clock,
    doorbell::Doorbell,
    ring::{Consumer, Producer, ring},
};
use lats_base::NodeId;
use lats_kernel::{Budget, Executor, Progress};
use lats_node::Placement;
use lats_signals::{Signal, buffer::parse};
use rustix::{
    event::{Timespec, epoll},
    fd::OwnedFd,
};
use std::sync::Arc;

/// A thread's ends of the rings.
pub(crate) struct Ends {
    pub(crate) bell: Arc<Doorbell>,
    /// To each other thread, with its doorbell; what did not fit waits in the backlog.
    to: Vec<Option<Outlet>>,
    from: Vec<Consumer>,
    scratch: Vec<u8>,
}

struct Outlet {
    producer: Producer,
    bell: Arc<Doorbell>,
    backlog: Vec<u8>,
    fresh: bool,
}

const RING_BYTES: usize = 4 << 20;
/// A thread that cannot get rid of so much has met a stuck one: the node fails fast.
const BACKLOG_BYTES_MAX: usize = 1 << 30;

/// Rings from every thread to every other.
pub(crate) fn mesh(bells: &[Arc<Doorbell>]) -> Vec<Ends> {
    let mut all: Vec<Ends> = bells
        .iter()
        .map(|bell| Ends {
            bell: bell.clone(),
            to: Vec::new(),
            from: Vec::new(),
            scratch: Vec::new(),
        })
        .collect();
    for from in 0..bells.len() {
        for (to, bell) in bells.iter().enumerate() {
            if from == to {
                all[from].to.push(None);
                continue;
            }
            let (producer, consumer) = ring(RING_BYTES);
            let outlet = Outlet { producer, bell: bell.clone(), backlog: Vec::new(), fresh: false };
            all[from].to.push(Some(outlet));
            all[to].from.push(consumer);
        }
    }
    all
}

impl Ends {
    /// Sends a signal to another thread.
    pub(crate) fn send(&mut self, thread: usize, signal: &Signal<'_>) {
        let Some(Some(outlet)) = self.to.get_mut(thread) else { return };
        outlet.fresh = true;
        if !outlet.backlog.is_empty() || !outlet.producer.push(signal.bytes()) {
            outlet.backlog.extend_from_slice(signal.bytes());
            let backlog = outlet.backlog.len();
            lats_base::require!(backlog < BACKLOG_BYTES_MAX, "thread {thread} is stuck");
        }
    }

    /// Pushes on what had no room, and wakes the threads that something was sent to.
    pub(crate) fn flush(&mut self) {
        for outlet in self.to.iter_mut().flatten() {
            let mut sent = 0;
            while let Ok(Some(signal)) = parse(&outlet.backlog[sent..]) {
                if !outlet.producer.push(signal.bytes()) {
                    break;
                }
                sent += signal.bytes().len();
            }
            outlet.backlog.drain(..sent);
            if outlet.fresh || sent > 0 {
                outlet.bell.ring();
                outlet.fresh = false;
            }
        }
    }

    /// Takes what has come from other threads.
    pub(crate) fn receive(&mut self, mut each: impl FnMut(&Signal<'_>)) {
        for consumer in &mut self.from {
            self.scratch.clear();
            if !consumer.pop_all(&mut self.scratch) {
                continue;
            }
            let mut rest = &self.scratch[..];
            while let Ok(Some(signal)) = parse(rest) {
                each(&signal);
                rest = &rest[signal.bytes().len()..];
            }
        }
    }

    /// True if something waits, in either direction.
    pub(crate) fn has_work(&self) -> bool {
        self.from.iter().any(Consumer::is_ready)
            || self.to.iter().flatten().any(|o| !o.backlog.is_empty())
    }
}

/// A thread with an executor and nothing else.
pub(crate) struct Worker {
    executor: Executor,
    ends: Ends,
    placement: Placement,
    node: NodeId,
    epoll: OwnedFd,
}

impl Worker {
    pub(crate) fn new(
        executor: Executor,
        ends: Ends,
        placement: Placement,
        node: NodeId,
    ) -> std::io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let data = epoll::EventData::new_u64(0);
        epoll::add(&epoll, ends.bell.fd(), data, epoll::EventFlags::IN)?;
        Ok(Self { executor, ends, placement, node, epoll })
    }

    pub(crate) fn run(mut self) {
        loop {
            let mailbox = self.executor.mailbox();
            self.ends.receive(|signal| mailbox.push_signal(signal));
            turn(&mut self.executor, TURN);
            let mut outgoing = core::mem::take(self.executor.outgoing());
            while let Some(signal) = outgoing.pop() {
                let receiver = signal.header.receiver;
                let own = receiver.node == self.node || receiver.node.get() == 0;
                let thread = self.placement.thread_of(receiver).filter(|_| own);
                self.ends.send(thread.unwrap_or(0), &signal);
            }
            outgoing.compact();
            *self.executor.outgoing() = outgoing;
            self.ends.flush();
            self.sleep();
        }
    }

    fn sleep(&mut self) {
        if self.executor.has_work() || self.ends.has_work() {
            return;
        }
        self.ends.bell.going_to_sleep();
        if !self.ends.has_work() {
            let wait = until(self.executor.next_timer());
            let mut events = Vec::with_capacity(1);
            let _ = epoll::wait(
                &self.epoll,
                rustix::buffer::spare_capacity(&mut events),
                wait.as_ref(),
            );
        }
        self.ends.bell.awake();
    }
}

/// What a thread works off before it looks at its sockets and timers again. Long scans send themselves
/// the order to go on: however many of them there are, leases are renewed in time.
pub(crate) const TURN: lats_base::Duration = lats_base::Duration::from_micros(250);

/// A wait that is none.
pub(crate) const NO_TIME: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// One turn of an executor.
pub(crate) fn turn(executor: &mut Executor, limit: lats_base::Duration) -> Progress {
    let begun = clock::now();
    let mut now = begun;
    loop {
        let progress = executor.step(now, Budget::ROUND);
        now = clock::now();
        if !progress.more || progress.crashed || now.since(begun) >= limit {
            return progress;
        }
    }
}

/// How long to sleep for a timer.
pub(crate) fn until(timer: Option<lats_base::Instant>) -> Option<Timespec> {
    let nanos = timer?.since(clock::now()).as_nanos();
    Some(Timespec {
        tv_sec: (nanos / 1_000_000_000) as i64,
        tv_nsec: (nanos % 1_000_000_000) as i64,
    })
}
