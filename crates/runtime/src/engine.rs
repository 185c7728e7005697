//! What drives a thread's work: that thread itself, and others while it sleeps.
//!
//! Who has put something into a sleeping thread's ring or port, and has nothing else to do, does that thread's work
//! itself: nobody has to be woken for it, and what the signals need is in this processor's cache. Under load all
//! threads are awake, and each takes what it is given: the pipeline comes and goes by itself.

use crate::{
    clock,
    doorbell::Doorbell,
    gate::Gate,
    report,
    spin::Spinner,
    thread::{Sleep, Thread},
};
use lats_base::{Duration, Instant};
use rustix::{
    event::{Timespec, epoll},
    fd::OwnedFd,
};
use std::sync::{Arc, OnceLock};

/// A thread's work and what it sleeps on.
pub(crate) struct Engine {
    gate: Gate<Thread>,
    bell: Arc<Doorbell>,
    epoll: Arc<OwnedFd>,
    turn: Duration,
    /// All threads of the node, once there are all.
    all: Arc<OnceLock<Vec<Arc<Engine>>>>,
    number: usize,
    /// Others may do this thread's work, and it may do theirs.
    helping: bool,
}

/// What a helper works off before it goes back to its own work, for each thread that it helps.
const HELP: Duration = Duration::from_micros(50);
/// Threads that are helped before others are woken.
const HELPS_MAX: usize = 16;
/// Sockets that one look at them tells of.
const EVENTS_MAX: usize = 256;
/// A wait that is none.
const NO_TIME: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

impl Engine {
    pub(crate) fn new(
        thread: Thread,
        all: Arc<OnceLock<Vec<Arc<Self>>>>,
        helping: bool,
    ) -> Arc<Self> {
        let place = &thread.place;
        let (bell, epoll) = (place.bell.clone(), place.epoll.clone());
        let (turn, number) = (place.pace.turn, place.number);
        Arc::new(Self { gate: Gate::new(thread), bell, epoll, turn, all, number, helping })
    }

    /// The thread itself: works, waits and sleeps, for ever.
    pub(crate) fn run(&self, mut spinner: Spinner) {
        let mut events: Vec<epoll::Event> = Vec::with_capacity(EVENTS_MAX);
        let mut news_for = Vec::new();
        loop {
            self.work(&mut events, &mut news_for);
            let idle_since = spinner.learns().then(clock::now);
            if !self.spin(&mut spinner, &mut events) {
                self.sleep(&mut events);
            }
            if let Some(since) = idle_since {
                spinner.note(clock::now().since(since));
            }
        }
    }

    /// Works until there is nothing left to do.
    fn work(&self, events: &mut Vec<epoll::Event>, news_for: &mut Vec<usize>) {
        loop {
            let is_busy = {
                let mut thread = self.gate.enter();
                thread.turn(events.drain(..), self.turn);
                thread.note_cpu_time();
                core::mem::swap(&mut thread.news_for, news_for);
                thread.is_busy()
            };
            let passed_on = !news_for.is_empty();
            self.pass_on(news_for, !is_busy && self.helping);
            if !is_busy && !passed_on && !self.gate.is_wanted() {
                return;
            }
            self.look(events, Some(&NO_TIME));
        }
    }

    /// Looks for something to do for a while; false if there was nothing.
    fn spin(&self, spinner: &mut Spinner, events: &mut Vec<epoll::Event>) -> bool {
        let limit = spinner.time();
        if limit == Duration::ZERO {
            return false;
        }
        self.bell.going_to_spin();
        let mut thread = self.gate.enter();
        thread.figures.spins += 1;
        let (busy, begun) = (thread.is_busy(), clock::now());
        let due = thread.next_due().map_or(begun.plus(limit), |due| due.min(begun.plus(limit)));
        drop(thread);
        let mut met = busy;
        while !met && clock::now() < due {
            self.look(events, Some(&NO_TIME));
            met = self.bell.has_rung() || self.gate.is_wanted() || !events.is_empty();
            core::hint::spin_loop();
        }
        self.bell.awake();
        if met {
            self.gate.enter().figures.spins_met += 1;
        }
        met
    }

    fn sleep(&self, events: &mut Vec<epoll::Event>) {
        let sleep = {
            let mut thread = self.gate.enter();
            thread.figures.sleeps += 1;
            thread.going_to_sleep()
        };
        let wait = match sleep {
            Sleep::Busy => return,
            _ if self.gate.is_wanted() => Some(NO_TIME),
            Sleep::Until(timer) => until(timer),
        };
        self.look(events, wait.as_ref());
        self.bell.awake();
    }

    fn look(&self, events: &mut Vec<epoll::Event>, wait: Option<&Timespec>) {
        let _ = epoll::wait(&self.epoll, rustix::buffer::spare_capacity(events), wait);
    }

    /// Something was sent to these threads: does their work, if they sleep and we have time; else wakes them.
    fn pass_on(&self, news_for: &mut Vec<usize>, mut has_time: bool) {
        let Some(all) = self.all.get() else { return };
        let mut helped = 0;
        while let Some(number) = news_for.pop() {
            if number == self.number {
                continue;
            }
            let engine = &all[number];
            has_time &= helped < HELPS_MAX;
            if has_time && engine.helping && engine.bell.is_asleep() {
                helped += 1;
                engine.help(news_for);
            } else {
                engine.bell.ring();
            }
        }
    }

    /// Does this thread's work in its place, unless somebody does already; adds whom it has sent something to.
    fn help(&self, news_for: &mut Vec<usize>) {
        let wake = self.gate.help(|thread| {
            thread.figures.helped += 1;
            thread.turn(std::iter::empty(), HELP);
            news_for.append(&mut thread.news_for);
            thread.needs_its_thread()
        });
        if wake {
            self.bell.ring();
        }
    }

    /// A client in this process has put something into a port of this thread: its own thread does what there is to do.
    pub(crate) fn help_from_outside(&self) {
        if !self.helping {
            return self.bell.ring();
        }
        let _inside = report::Inside::the_node();
        let mut news_for = Vec::new();
        self.help(&mut news_for);
        if news_for.is_empty() {
            return;
        }
        let Some(all) = self.all.get() else { return };
        for _ in 0..HELPS_MAX {
            let Some(number) = news_for.pop() else { return };
            let engine = &all[number];
            if engine.helping && engine.bell.is_asleep() {
                engine.help(&mut news_for);
            } else {
                engine.bell.ring();
            }
        }
        news_for.into_iter().for_each(|number| all[number].bell.ring());
    }
}

/// How long to sleep for a timer.
fn until(timer: Option<Instant>) -> Option<Timespec> {
    let nanos = timer?.since(clock::now()).as_nanos();
    Some(Timespec {
        tv_sec: (nanos / 1_000_000_000) as i64,
        tv_nsec: (nanos % 1_000_000_000) as i64,
    })
}
