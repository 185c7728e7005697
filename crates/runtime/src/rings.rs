//! Rings from every thread of a node to every other.

use crate::ring::{Consumer, Producer, ring};
use lats_kernel::Executor;
use lats_signals::{Signal, SignalBuffer, buffer::parse};

/// A thread's ends of the rings.
pub(crate) struct Rings {
    /// To each thread; none to itself.
    to: Vec<Option<Outlet>>,
    from: Vec<Inlet>,
}

struct Outlet {
    producer: Producer,
    /// What did not fit, from here on.
    backlog: Vec<u8>,
    pushed: usize,
    /// Something was sent that its thread may not know of yet.
    fresh: bool,
}

struct Inlet {
    /// From thread 0, which has control.
    is_urgent: bool,
    consumer: Consumer,
    /// Whole signals, and maybe the first part of one.
    bytes: Vec<u8>,
}

/// A batch or two: what is under way between two threads should stay in their caches. Many threads have smaller rings.
const RING_BYTES: usize = 256 << 10;
const RING_BYTES_MIN: usize = 16 << 10;
/// All rings of a node together, as far as the least allows.
const ALL_RINGS_BYTES: usize = 256 << 20;
/// THREAD-1: a thread that cannot get rid of so much has met a stuck one, and the node fails fast.
const BACKLOG_BYTES_MAX: usize = 1 << 30;
/// Memory that is kept between bursts.
const KEPT_BYTES: usize = 2 * RING_BYTES;

/// The ends of so many threads.
pub(crate) fn mesh(threads: usize) -> Vec<Rings> {
    let fair = ALL_RINGS_BYTES / (threads * threads).max(1);
    let bytes = (fair.max(1).ilog2().min(RING_BYTES.ilog2())).max(RING_BYTES_MIN.ilog2());
    let mut all: Vec<Rings> =
        (0..threads).map(|_| Rings { to: Vec::new(), from: Vec::new() }).collect();
    for from in 0..threads {
        for to in 0..threads {
            if from == to {
                all[from].to.push(None);
                continue;
            }
            let (producer, consumer) = ring(1 << bytes);
            let outlet = Outlet { producer, backlog: Vec::new(), pushed: 0, fresh: false };
            all[from].to.push(Some(outlet));
            all[to].from.push(Inlet { is_urgent: from == 0, consumer, bytes: Vec::new() });
        }
    }
    all
}

impl Rings {
    /// Sends a signal to another thread.
    pub(crate) fn send(&mut self, thread: usize, signal: &Signal<'_>) {
        let Some(Some(outlet)) = self.to.get_mut(thread) else { return };
        outlet.fresh = true;
        let bytes = signal.bytes();
        let sent = if outlet.backlog.is_empty() { outlet.producer.push_some(bytes) } else { 0 };
        if sent < bytes.len() {
            outlet.backlog.extend_from_slice(&bytes[sent..]);
            let waits = outlet.backlog.len() - outlet.pushed;
            lats_base::require!(waits < BACKLOG_BYTES_MAX, "thread {thread} is stuck");
        }
    }

    /// Pushes on what had no room; adds the threads that something was sent to.
    pub(crate) fn flush(&mut self, news_for: &mut Vec<usize>) {
        for (thread, outlet) in self.to.iter_mut().enumerate() {
            let Some(outlet) = outlet else { continue };
            if outlet.push_backlog() | core::mem::take(&mut outlet.fresh) {
                news_for.push(thread);
            }
        }
    }

    /// Takes what has come from other threads; gives how many signals that were.
    pub(crate) fn receive(&mut self, executor: &mut Executor) -> usize {
        let inlets = self.from.iter_mut();
        let received = inlets.map(|inlet| match inlet.is_urgent {
            true => inlet.receive(executor.urgent()),
            false => inlet.receive(executor.mailbox()),
        });
        received.sum()
    }

    /// True if something has come.
    pub(crate) fn has_input(&self) -> bool {
        self.from.iter().any(|inlet| inlet.consumer.is_ready())
    }

    /// True if something had no room on its way to others.
    pub(crate) fn has_backlog(&self) -> bool {
        self.to.iter().flatten().any(|o| !o.backlog.is_empty())
    }
}

impl Outlet {
    /// True if something has gone.
    fn push_backlog(&mut self) -> bool {
        if self.backlog.is_empty() {
            return false;
        }
        let sent = self.producer.push_some(&self.backlog[self.pushed..]);
        self.pushed += sent;
        if self.pushed == self.backlog.len() {
            self.pushed = 0;
            self.backlog.clear();
            self.backlog.shrink_to(KEPT_BYTES);
        } else if self.pushed > self.backlog.len() / 2 {
            self.backlog.drain(..self.pushed);
            self.pushed = 0;
        }
        sent > 0
    }
}

impl Inlet {
    fn receive(&mut self, mailbox: &mut SignalBuffer) -> usize {
        if !self.consumer.pop_all(&mut self.bytes) {
            return 0;
        }
        let (mut used, mut count) = (0, 0);
        loop {
            let parsed = parse(&self.bytes[used..]);
            lats_base::require!(parsed.is_ok(), "another thread of this node has sent nonsense");
            let Ok(Some(signal)) = parsed else { break };
            mailbox.push_signal(&signal);
            used += signal.bytes().len();
            count += 1;
        }
        self.bytes.drain(..used);
        if self.bytes.is_empty() {
            self.bytes.shrink_to(KEPT_BYTES);
        }
        count
    }
}

#[cfg(test)]
#[cfg(not(feature = "loom"))]
mod tests {
    use super::*;
    use lats_base::NodeId;
    use lats_signals::{BlockRef, buffer::Route, control::StopOrd};

    fn push(buffer: &mut SignalBuffer, payload: &[u8]) {
        let (sender, receiver) =
            (BlockRef::shell(NodeId::new(1)), BlockRef::control(NodeId::new(1)));
        let route = Route { sender, receiver, incarnation: 1 };
        buffer.push(route, &StopOrd { status: 0 }, &[payload]);
    }

    #[test]
    fn signals_larger_than_a_ring_pass_it_in_parts_and_in_order() {
        let mut ends = mesh(2);
        let mut other = ends.pop().unwrap();
        let mut one = ends.pop().unwrap();
        let mut sent = SignalBuffer::new();
        push(&mut sent, &[1; 100]);
        push(&mut sent, &vec![2; 3 * RING_BYTES]);
        push(&mut sent, &[3; 8]);
        while let Some(signal) = sent.pop() {
            one.send(1, &signal);
        }
        let (mut mailbox, mut rounds) = (SignalBuffer::new(), 0);
        while one.has_backlog() || other.has_input() {
            let mut news = Vec::new();
            one.flush(&mut news);
            assert!(news.iter().all(|thread| *thread == 1));
            for inlet in &mut other.from {
                inlet.receive(&mut mailbox);
            }
            rounds += 1;
        }
        assert!(rounds > 3, "the large one does not fit at once");
        let got: Vec<_> =
            core::iter::from_fn(|| mailbox.pop().map(|s| (s.payload()[0], s.payload().len())))
                .collect();
        assert_eq!(got, [(1, 100), (2, 3 * RING_BYTES), (3, 8)]);
    }
}
