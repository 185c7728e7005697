//! Threads that write to sockets for others who have too much to do.

use crate::{
    doorbell::Doorbell,
    output::{Flushed, Output},
};
use rustix::event::epoll;
use std::sync::{Arc, Mutex, PoisonError};

/// One of them.
pub(crate) struct Sender {
    bell: Doorbell,
    waiting: Mutex<Vec<Arc<Output>>>,
}

/// Gives a filled output to the thread that writes it: always the same one.
pub(crate) fn pass_on(senders: &[Arc<Sender>], output: &Arc<Output>) {
    let address = Arc::as_ptr(output) as usize;
    // Allocations are aligned: the lowest bits say nothing.
    let sender = &senders[(address >> 6) % senders.len()];
    sender.lock().push(output.clone());
    sender.bell.ring();
}

impl Sender {
    pub(crate) fn new() -> std::io::Result<Arc<Self>> {
        Ok(Arc::new(Self { bell: Doorbell::new()?, waiting: Mutex::default() }))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Output>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes and sleeps, for ever.
    pub(crate) fn run(&self) -> std::io::Result<()> {
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&poll, self.bell.fd(), epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
        let mut outputs = Vec::new();
        loop {
            core::mem::swap(&mut outputs, &mut *self.lock());
            if outputs.is_empty() {
                self.bell.going_to_sleep();
                if self.lock().is_empty() {
                    let mut events = Vec::with_capacity(1);
                    let _ = epoll::wait(&poll, rustix::buffer::spare_capacity(&mut events), None);
                    self.bell.woken();
                } else {
                    self.bell.awake();
                }
            }
            // The same one may be there many times: all but the first find nothing.
            let again: Vec<_> = outputs.drain(..).filter(|o| o.flush() == Flushed::More).collect();
            self.lock().extend(again);
        }
    }
}
