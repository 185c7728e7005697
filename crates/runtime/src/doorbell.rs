//! Doorbells: how a thread that sleeps in `epoll` is woken, once.

use rustix::{
    event::{EventfdFlags, eventfd},
    fd::OwnedFd,
};
use std::sync::atomic::{AtomicBool, Ordering, fence};

/// One per thread. Ringing costs a system call only if the thread sleeps.
#[derive(Debug)]
pub struct Doorbell {
    fd: OwnedFd,
    sleeping: AtomicBool,
}

impl Doorbell {
    /// A new doorbell.
    pub fn new() -> std::io::Result<Self> {
        let fd = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Self { fd, sleeping: AtomicBool::new(false) })
    }

    /// Its file descriptor, for `epoll`.
    pub fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    /// Wakes the thread if it sleeps. Call it after publishing.
    pub fn ring(&self) {
        // Pairs with the fence in `going_to_sleep`: either this sees "sleeping", or the sleeper
        // sees what was published.
        fence(Ordering::SeqCst);
        if self.sleeping.swap(false, Ordering::Relaxed) {
            // The counter cannot overflow: it is read after each wake.
            let _ = rustix::io::write(&self.fd, &1u64.to_ne_bytes());
        }
    }

    /// The thread is about to sleep: it must look at its rings once more after this.
    pub fn going_to_sleep(&self) {
        self.sleeping.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// The thread is awake.
    pub fn awake(&self) {
        self.sleeping.store(false, Ordering::Relaxed);
        let mut count = [0; 8];
        let _ = rustix::io::read(&self.fd, &mut count);
    }
}
