//! One thread of a node: the sockets that it reads, its executor, and what it sends.

mod greet;
mod receive;
mod route;
mod shell;
mod welcome;

pub(crate) use receive::{TOKEN_BELL, TOKEN_FIRST_CONNECTION, TOKEN_LISTENER};
pub(crate) use route::Homes;
pub(crate) use shell::{News, SentAway, Shell, watch_input};

use crate::{
    clock,
    connection::Connection,
    directory::Outputs,
    doorbell::Doorbell,
    figures::{Board, Figures, PUBLISHED_EVERY, PUBLISHED_EVERY_SLEEP, Published},
    io::{Io, Shared},
    output::{Flushed, Output},
    pace::Pace,
    pulse::Pulse,
    reads::Reads,
    ring::Consumer,
    rings::Rings,
};
use lats_base::{Duration, Instant, NodeId};
use lats_kernel::{Budget, Executor};
use lats_signals::SignalBuffer;
use rustix::{event::epoll, fd::OwnedFd};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, atomic::AtomicU64},
};

/// What a thread works on. Another one may do so in its place while it sleeps.
pub(crate) struct Thread {
    pub(crate) place: Place,
    pub(crate) executor: Executor,
    pub(crate) rings: Rings,
    pub(crate) outputs: Outputs,
    /// Connections that it reads.
    pub(crate) connections: BTreeMap<u64, Connection>,
    /// Connections with more input than they got a turn for.
    pub(crate) hungry: BTreeSet<u64>,
    pub(crate) ports: Vec<PortInput>,
    /// Thread 0's part: everything that happens once in a node.
    pub(crate) shell: Option<Box<Shell>>,
    pub(crate) entering: SignalBuffer,
    pub(crate) reads: Reads,
    /// A signal for another thread that reads beside data managers.
    pub(crate) redirected: SignalBuffer,
    pub(crate) scratch: Vec<u8>,
    /// When it wakes by itself; none while it is awake, or sleeps until something comes.
    pub(crate) wakes_at: Option<Instant>,
    /// Outputs that others fill as fast as they are written.
    pub(crate) unsent: Vec<Arc<Output>>,
    /// Threads that something was sent to in this turn.
    pub(crate) news_for: Vec<usize>,
    pub(crate) figures: Figures,
    pub(crate) published: Arc<Published>,
    /// When its last turn ended.
    pub(crate) turn_ended: Instant,
    pub(crate) published_at: Instant,
    pub(crate) cpu_time_is_old: bool,
}

/// How long control's thread sleeps while somebody does not take what it has sent.
const BACKLOG_RETRY: Duration = Duration::from_millis(1);

/// Where a thread stands among the others.
pub(crate) struct Place {
    pub(crate) number: usize,
    /// It does nothing but control.
    pub(crate) is_control: bool,
    pub(crate) node: NodeId,
    pub(crate) life: u32,
    pub(crate) pace: Pace,
    pub(crate) homes: Arc<Homes>,
    /// What other threads have for each.
    pub(crate) news: Arc<[News]>,
    pub(crate) bell: Arc<Doorbell>,
    pub(crate) epoll: Arc<OwnedFd>,
    /// Who writes to the sockets in this thread's place, if it has too much to do.
    pub(crate) senders: Senders,
    /// Connections that were refused at the native port.
    pub(crate) refused: Arc<AtomicU64>,
    /// The figures of all threads.
    pub(crate) board: Board,
    /// Whether each thread comes on.
    pub(crate) pulses: Arc<[Pulse]>,
    /// The threads that read and write files.
    pub(crate) io: Arc<[Arc<Io>]>,
    /// Where these files are, if there are any.
    pub(crate) files: Option<Shared>,
    /// What is done with sessions of MySQL clients.
    pub(crate) sessions: crate::SessionsCall,
    /// What the process has memory for.
    pub(crate) memory: crate::MemoryCall,
    /// Told when a block ends the process.
    pub(crate) tell_stopped: std::sync::mpsc::Sender<crate::Stopped>,
}

/// The threads that send for others.
#[derive(Clone)]
pub(crate) struct Senders {
    pub(crate) threads: Arc<[Arc<crate::sender::Sender>]>,
    /// This thread never sends itself.
    pub(crate) always: bool,
}

/// A client in this process, as the thread sees it that reads from it.
pub(crate) struct PortInput {
    pub(crate) from_client: Consumer,
    pub(crate) output: Arc<Output>,
    pub(crate) slot: u32,
}

/// How long a thread may sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sleep {
    /// Not at all.
    Busy,
    /// Until then, or until something comes.
    Until(Option<Instant>),
}

impl Thread {
    /// One turn: what has come in, the executor for about so long, what goes out.
    pub(crate) fn turn(&mut self, events: impl Iterator<Item = epoll::Event>, limit: Duration) {
        let begun = clock::now();
        self.pulse().begins(begun);
        self.take_events(events);
        self.figures.turns += 1;
        // What a thread has put into its ring before it told the news comes first.
        let news = self.place.news[self.place.number].take();
        self.figures.from_threads += self.rings.receive(&mut self.executor) as u64;
        self.receive_news(news);
        self.receive_from_ports();
        self.receive_from_the_hungry();
        if self.shell.is_some() {
            self.tell_lateness(begun);
        }
        self.reads.show(&mut self.executor);
        // What is served now is served under a lease that holds now (VIEW-3).
        let now = self.execute(clock::now(), limit);
        self.route_outgoing();
        self.reads.show(&mut self.executor);
        if self.shell.is_some() {
            self.open_links(now);
        }
        self.flush();
        self.turn_ended = clock::now();
        self.pulse().ends();
        self.figures.worked(self.turn_ended.since(begun));
        self.publish_after(PUBLISHED_EVERY);
    }

    /// To be called by the thread itself only.
    pub(crate) fn note_cpu_time(&mut self) {
        self.reads.load().works();
        if core::mem::take(&mut self.cpu_time_is_old) {
            self.figures.cpu_ns = clock::thread_cpu_ns();
        }
    }

    /// Shows others what was done, if the last time is so long ago.
    fn publish_after(&mut self, span: Duration) {
        if self.turn_ended.since(self.published_at) < span {
            return;
        }
        self.published_at = self.turn_ended;
        self.figures.by_number.clear();
        self.figures.by_number.extend_from_slice(self.executor.handled_by_number());
        self.figures.row_bytes = lats_node::row_bytes(&self.executor) as u64;
        self.published.show(&self.figures);
        // It costs a system call: not more often than this.
        self.cpu_time_is_old = true;
    }

    /// Works the mailbox off, for about so long. Gives the time when that is done.
    fn execute(&mut self, begun: Instant, limit: Duration) -> Instant {
        let mut now = begun;
        for _ in 0..self.place.pace.rounds {
            let (waiting, since) = (self.executor.mailbox().len_bytes(), now);
            let progress = self.executor.step(now, Budget::ROUND);
            lats_base::require!(!progress.crashed, "crash points are for the simulator");
            self.figures.executed(progress.handled);
            now = clock::now();
            self.reads.learn(waiting, now.since(since).as_nanos());
            if !progress.more || now.since(begun) >= limit {
                break;
            }
        }
        // LEASE-7: rows were read by now, and nothing has left.
        self.executor.end_round(now);
        now
    }

    /// Sends what this turn has led to.
    fn flush(&mut self) {
        self.rings.flush(&mut self.news_for);
        if self.shell.is_some() {
            // Control speaks to all threads often enough for this to show who does not wake.
            let now = clock::now();
            self.news_for.iter().for_each(|thread| self.place.pulses[*thread].is_wanted(now));
        }
        let senders = &self.place.senders;
        let is_busy = self.executor.has_work() || !self.hungry.is_empty();
        let passes_on = !senders.threads.is_empty() && (senders.always || is_busy);
        let (unsent, news_for) = (&mut self.unsent, &mut self.news_for);
        for output in core::mem::take(unsent) {
            flush(&output, unsent, news_for);
        }
        for output in self.outputs.take_filled() {
            match &**output {
                Output::Socket(_) | Output::Link(_) if passes_on => {
                    crate::sender::pass_on(&senders.threads, output)
                }
                _ => flush(output, unsent, news_for),
            }
        }
        for port in self.ports.iter().filter(|p| p.waits()) {
            flush(&port.output, unsent, news_for);
        }
        let own = self.place.number;
        news_for.retain(|thread| *thread != own);
    }

    /// Its thread is about to sleep: for how long.
    pub(crate) fn going_to_sleep(&mut self) -> Sleep {
        self.publish_after(PUBLISHED_EVERY_SLEEP);
        self.place.bell.going_to_sleep();
        self.wakes_at = None;
        if self.is_busy() {
            self.place.bell.awake();
            return Sleep::Busy;
        }
        self.reads.load().goes_to_sleep();
        self.pulse().rests();
        self.wakes_at = self.next_due();
        Sleep::Until(self.wakes_at)
    }

    fn pulse(&self) -> &Pulse {
        &self.place.pulses[self.place.number]
    }

    /// True if a helper leaves something that its thread must be woken for.
    pub(crate) fn needs_its_thread(&self) -> bool {
        let sooner = self.next_due().is_some_and(|due| self.wakes_at.is_none_or(|at| due < at));
        self.is_busy() || sooner
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.executor.has_work()
            || !self.hungry.is_empty()
            || !self.unsent.is_empty()
            || self.rings.has_input()
            || (self.rings.has_backlog() && !self.place.is_control)
            || !self.place.news[self.place.number].is_empty()
            || self.ports.iter().any(|p| p.from_client.is_ready() || p.waits())
    }

    pub(crate) fn next_due(&self) -> Option<Instant> {
        let timer = self.executor.next_timer();
        let link = self.shell.as_ref().and_then(|shell| shell.links.next_attempt());
        // Who has realtime priority does not wait by looking again and again.
        let waits = self.place.is_control && self.rings.has_backlog();
        let soon = waits.then(|| clock::now().plus(BACKLOG_RETRY));
        timer.into_iter().chain(link).chain(soon).min()
    }
}

/// Sends what an output holds; notes what is left to be done, and by whom.
fn flush(output: &Arc<Output>, unsent: &mut Vec<Arc<Output>>, news_for: &mut Vec<usize>) {
    match output.flush() {
        Flushed::Done => {}
        Flushed::More => unsent.push(output.clone()),
        Flushed::Waits(reader) => news_for.push(reader),
    }
}

impl PortInput {
    fn waits(&self) -> bool {
        matches!(&*self.output, Output::Port(port) if port.waits())
    }
}
