//! Waking a thread that sleeps in `epoll`, only when it does sleep.

use rustix::{
    event::{EventfdFlags, eventfd},
    fd::OwnedFd,
};
use std::sync::atomic::{AtomicU8, Ordering, fence};

/// One per thread. Ringing costs a system call only if the thread sleeps.
#[derive(Debug)]
pub struct Doorbell {
    fd: OwnedFd,
    state: AtomicU8,
}

const AWAKE: u8 = 0;
/// It looks at its doorbell again and again.
const SPINNING: u8 = 1;
const SLEEPING: u8 = 2;

impl Doorbell {
    /// A new doorbell.
    pub fn new() -> std::io::Result<Self> {
        let fd = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Self { fd, state: AtomicU8::new(AWAKE) })
    }

    /// Its file descriptor, for `epoll`.
    pub fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    /// Wakes the thread if it does not work. Call it after publishing.
    pub fn ring(&self) {
        // Pairs with the fence in `stops_working`: either this sees that it has stopped, or it sees what was
        // published.
        fence(Ordering::SeqCst);
        if self.state.load(Ordering::Relaxed) == AWAKE {
            return;
        }
        if self.state.swap(AWAKE, Ordering::Relaxed) == SLEEPING {
            // The counter cannot overflow: it is read after each wake.
            let _ = rustix::io::write(&self.fd, &1u64.to_ne_bytes());
        }
    }

    /// True if ringing would cost a system call. Call it after publishing.
    pub fn is_asleep(&self) -> bool {
        fence(Ordering::SeqCst);
        self.state.load(Ordering::Relaxed) == SLEEPING
    }

    /// The thread is about to sleep: it must look at its rings once more after this.
    pub fn going_to_sleep(&self) {
        self.stops_working(SLEEPING);
    }

    /// The thread is about to look at [`Self::has_rung`] for a while: it must look at its rings once more after this.
    pub fn going_to_spin(&self) {
        self.stops_working(SPINNING);
    }

    fn stops_working(&self, state: u8) {
        self.state.store(state, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// True if somebody has rung since [`Self::going_to_spin`].
    pub fn has_rung(&self) -> bool {
        self.state.load(Ordering::Relaxed) == AWAKE
    }

    /// The thread works.
    pub fn awake(&self) {
        self.state.store(AWAKE, Ordering::Relaxed);
    }

    /// The thread was woken through the file descriptor.
    pub fn woken(&self) {
        self.awake();
        let mut count = [0; 8];
        let _ = rustix::io::read(&self.fd, &mut count);
    }
}
