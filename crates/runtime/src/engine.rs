//! What drives thread 0's work: that thread itself, and whoever has put something into a port while it sleeps.
//!
//! A statement of a client in this process is then executed by the client's own thread, as far as this node can, and
//! no thread has to be woken for it. Under load thread 0 is awake, and takes what it is given: the pipeline comes and
//! goes by itself.

use crate::{
    doorbell::Doorbell,
    gate::Gate,
    main_thread::{MainThread, Sleep},
    report, worker,
};
use lats_base::Duration;
use rustix::{event::epoll, fd::OwnedFd};
use std::sync::Arc;

/// Thread 0's work and what it sleeps on.
pub(crate) struct Engine {
    gate: Gate<MainThread>,
    bell: Arc<Doorbell>,
    epoll: Arc<OwnedFd>,
}

/// What a helper works off before it goes back to its own work.
const HELP: Duration = Duration::from_micros(50);
/// Sockets that one look at them tells of.
const EVENTS_MAX: usize = 256;

impl Engine {
    pub(crate) fn new(main: MainThread) -> Arc<Self> {
        let (bell, epoll) = (main.bell(), main.epoll());
        Arc::new(Self { gate: Gate::new(main), bell, epoll })
    }

    /// Thread 0: works and sleeps, for ever.
    pub(crate) fn run(&self) {
        let mut events: Vec<epoll::Event> = Vec::with_capacity(EVENTS_MAX);
        loop {
            let sleep = {
                let mut main = self.gate.enter();
                main.take_events(events.drain(..));
                main.turn(worker::TURN);
                main.going_to_sleep()
            };
            let wait = match sleep {
                _ if self.gate.is_wanted() => worker::NO_TIME.into(),
                Sleep::Busy => worker::NO_TIME.into(),
                Sleep::Until(timer) => worker::until(timer),
            };
            let room = rustix::buffer::spare_capacity(&mut events);
            let _ = epoll::wait(&self.epoll, room, wait.as_ref());
        }
    }

    /// Any other thread: something was put into a port.
    pub(crate) fn help(&self) {
        let _inside = report::Inside::the_node();
        let wake = self.gate.help(|main| {
            main.turn(HELP);
            main.needs_its_thread()
        });
        if wake {
            self.bell.ring();
        }
    }
}
