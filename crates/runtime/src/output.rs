//! The ways out of a node, which all its threads may use: to another node, to a client, to a client in this process.
//!
//! Whoever has something for another node puts it into that node's output itself; no thread passes it on. Each thread
//! flushes what it has filled at the end of its turn; one of them at a time writes to the socket.

pub(crate) mod link;

use self::link::LinkOutput;
use crate::{connection::CLIENT_OUTPUT_MAX, figures::MemoryUse, ring::Producer};
use rustix::{event::epoll, fd::OwnedFd, io::Errno, net::SendFlags, net::Shutdown};
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

/// One way out.
pub(crate) enum Output {
    Socket(SocketOutput),
    Link(LinkOutput),
    Port(PortOutput),
}

impl Output {
    /// Queues whole signals; false if too much waits already. What is put into a closed one is lost.
    pub(crate) fn queue(&self, bytes: &[u8]) -> bool {
        match self {
            Self::Socket(socket) => socket.queue(bytes),
            Self::Link(link) => link.queue(bytes),
            Self::Port(port) => port.queue(bytes),
        }
    }

    /// Sends what waits, unless another thread does so now; how that has ended.
    #[must_use]
    pub(crate) fn flush(&self) -> Flushed {
        match self {
            Self::Socket(socket) => socket.flush(),
            Self::Link(link) => link.flush(),
            Self::Port(port) => port.flush(),
        }
    }

    /// Ends it: the thread that reads from the other side notices.
    pub(crate) fn close(&self) {
        match self {
            Self::Socket(socket) => socket.close(),
            Self::Link(link) => link.end(),
            Self::Port(_) => {}
        }
    }

    /// The way to another node, if it is one.
    pub(crate) fn as_link(&self) -> Option<&LinkOutput> {
        match self {
            Self::Link(link) => Some(link),
            Self::Socket(_) | Self::Port(_) => None,
        }
    }
}

/// How sending has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flushed {
    /// What is left, if anything, is another's: of who writes now, or of who hears that there is room.
    Done,
    /// Others fill it as fast as it is written: whoever was told must flush again, after its other work.
    More,
    /// The client has not taken everything: this thread, which reads from it, must flush again.
    Waits(usize),
}

/// The sending side of a socket.
pub(crate) struct SocketOutput {
    socket: Arc<OwnedFd>,
    state: Mutex<Sending>,
    closed: AtomicBool,
}

struct Sending {
    /// What comes next.
    filling: Vec<u8>,
    /// What is being written, and how much of it was; with the writer while `is_written`.
    leaving: Vec<u8>,
    written: usize,
    /// Somebody writes, without the lock.
    is_written: bool,
    /// The kernel's buffer is full; the reading thread hears when there is room.
    blocked: bool,
    limit_bytes: usize,
    /// What of it all clients together are counted for.
    counted: Counted,
    /// The reading thread's epoll instance, and the socket's name there.
    watched: Option<(Arc<OwnedFd>, u64)>,
}

/// How often one flush goes on with what others have added meanwhile.
const ROUNDS_MAX: usize = 4;
/// An SQL thread that has not taken so much has met its end: the node fails fast.
const PORT_BACKLOG_MAX: usize = 1 << 30;
const MUCH_OUTPUT: usize = 1 << 20;
const MODEST_OUTPUT: usize = 8 << 20;
/// THREAD-4: output that waits for all clients together: a part of the node's memory.
const CLIENTS_OUTPUT_PART: usize = 8;
const CLIENTS_OUTPUT_MIN: usize = 16 << 20;
static CLIENTS_OUTPUT: Clients = Clients::new(CLIENTS_OUTPUT_MIN);
/// Memory that is kept between bursts.
const OUTPUT_KEPT_BYTES: usize = 1 << 20;

/// A panic in a node's thread ends the process: there is nothing to be saved from poison.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The output that waits for clients, of those for which much waits.
struct Clients {
    now: AtomicUsize,
    most: AtomicUsize,
    max: AtomicUsize,
    refused: AtomicUsize,
}

impl Clients {
    const fn new(max: usize) -> Self {
        let [now, most, refused] = [const { AtomicUsize::new(0) }; 3];
        Self { now, most, max: AtomicUsize::new(max), refused }
    }

    /// True if so much more fits within so much.
    fn grow(&self, more: usize, max: usize) -> bool {
        let within = |now: usize| now.checked_add(more).filter(|now| *now <= max);
        let before = self.now.fetch_update(Ordering::Relaxed, Ordering::Relaxed, within);
        match before {
            Ok(before) => self.most.fetch_max(before + more, Ordering::Relaxed),
            Err(_) => self.refused.fetch_add(1, Ordering::Relaxed),
        };
        before.is_ok()
    }

    fn shrink(&self, bytes: usize) {
        self.now.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// THREAD-4: the node's data managers may have so many bytes; of the nodes of a process, the largest counts.
pub(crate) fn limit_by(memory_bytes: usize) {
    let max = (memory_bytes / CLIENTS_OUTPUT_PART).min(CLIENT_OUTPUT_MAX);
    CLIENTS_OUTPUT.max.fetch_max(max, Ordering::Relaxed);
}

/// What people see of it.
pub(crate) fn memory_use() -> MemoryUse {
    let number = |of: &AtomicUsize| of.load(Ordering::Relaxed) as u64;
    MemoryUse {
        name: MemoryUse::NATIVE_OUTPUT.to_string(),
        bytes: number(&CLIENTS_OUTPUT.now),
        most_bytes: number(&CLIENTS_OUTPUT.most),
        limit_bytes: number(&CLIENTS_OUTPUT.max),
        refused: number(&CLIENTS_OUTPUT.refused),
    }
}

/// What of a client's output is counted with that of all others.
#[derive(Default)]
struct Counted(usize);

impl Counted {
    /// So much waits for the client now; false if it is too much for all of them.
    fn becomes(&mut self, bytes: usize, all: &Clients) -> bool {
        if bytes <= MUCH_OUTPUT || bytes <= self.0 {
            return true;
        }
        let more = bytes - self.0;
        let max = all.max.load(Ordering::Relaxed);
        // Who has little of it is not who makes it too much: as much again is for them.
        let fits = all.grow(more, if bytes <= MODEST_OUTPUT { 2 * max } else { max });
        self.0 += if fits { more } else { 0 };
        fits
    }

    /// No more than so much waits now.
    fn shrinks_to(&mut self, bytes: usize, all: &Clients) {
        let kept = if bytes <= MUCH_OUTPUT { 0 } else { bytes.min(self.0) };
        if kept < self.0 {
            all.shrink(self.0 - kept);
            self.0 = kept;
        }
    }

    /// Nothing waits any more.
    fn clear(&mut self, all: &Clients) {
        all.shrink(std::mem::take(&mut self.0));
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.clear(&CLIENTS_OUTPUT);
    }
}

enum Written {
    All,
    Blocked,
    Broken,
}

impl SocketOutput {
    /// For a socket; so much may wait in it.
    pub(crate) fn new(socket: Arc<OwnedFd>, limit_bytes: usize) -> Self {
        let state = Sending {
            filling: Vec::new(),
            leaving: Vec::new(),
            written: 0,
            is_written: false,
            blocked: false,
            limit_bytes,
            counted: Counted::default(),
            watched: None,
        };
        Self { socket, state: Mutex::new(state), closed: AtomicBool::new(false) }
    }

    /// True if nothing waits in it.
    pub(crate) fn is_drained(&self) -> bool {
        let state = lock(&self.state);
        state.filling.is_empty() && state.leaving.is_empty() && !state.is_written
    }

    /// Tells `epoll` of the socket under this name; also about room to write, while it is wanted.
    pub(crate) fn watch(&self, poll: &Arc<OwnedFd>, name: u64, connecting: bool) {
        let mut state = lock(&self.state);
        let flags = flags(state.blocked || connecting);
        let data = epoll::EventData::new_u64(name);
        let _ = match &state.watched {
            Some((current, _)) if Arc::ptr_eq(current, poll) => {
                epoll::modify(poll, &*self.socket, data, flags)
            }
            _ => epoll::add(poll, &*self.socket, data, flags),
        };
        state.watched = Some((poll.clone(), name));
    }

    /// No `epoll` instance tells of it any more.
    pub(crate) fn unwatch(&self) {
        if let Some((poll, _)) = lock(&self.state).watched.take() {
            let _ = epoll::delete(&*poll, &*self.socket);
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        let _ = rustix::net::shutdown(&*self.socket, Shutdown::Both);
    }

    pub(crate) fn queue(&self, bytes: &[u8]) -> bool {
        if self.is_closed() {
            return true;
        }
        let mut state = lock(&self.state);
        let waits = state.filling.len() + state.leaving.len() - state.written;
        let waits = waits + bytes.len();
        if waits > state.limit_bytes {
            return false;
        }
        if !state.counted.becomes(waits, &CLIENTS_OUTPUT) {
            return false;
        }
        state.filling.extend_from_slice(bytes);
        true
    }

    /// The kernel has room again.
    #[must_use]
    pub(crate) fn on_room(&self) -> Flushed {
        {
            let mut state = lock(&self.state);
            state.blocked = false;
            state.watch_room(&self.socket);
        }
        self.flush()
    }

    #[must_use]
    pub(crate) fn flush(&self) -> Flushed {
        let Some((mut leaving, mut written)) = self.begin() else { return Flushed::Done };
        let mut rounds = 0;
        loop {
            rounds += 1;
            let ended = self.write(&leaving, &mut written);
            let mut state = lock(&self.state);
            match ended {
                Written::All => {
                    leaving.clear();
                    written = 0;
                    if state.filling.is_empty() {
                        leaving.shrink_to(OUTPUT_KEPT_BYTES);
                        state.end(leaving, 0);
                        return Flushed::Done;
                    }
                    if rounds == ROUNDS_MAX {
                        state.end(leaving, 0);
                        return Flushed::More;
                    }
                    // Others have filled it meanwhile, and rely on us.
                    core::mem::swap(&mut leaving, &mut state.filling);
                }
                Written::Blocked => {
                    state.blocked = true;
                    state.watch_room(&self.socket);
                    state.end(leaving, written);
                    return Flushed::Done;
                }
                Written::Broken => {
                    state.end(Vec::new(), 0);
                    drop(state);
                    self.close();
                    return Flushed::Done;
                }
            }
        }
    }

    /// What is to be written now, by us.
    fn begin(&self) -> Option<(Vec<u8>, usize)> {
        let mut state = lock(&self.state);
        if state.is_written || state.blocked {
            return None;
        }
        if state.leaving.is_empty() {
            let Sending { leaving, filling, .. } = &mut *state;
            core::mem::swap(leaving, filling);
        }
        if state.leaving.is_empty() {
            return None;
        }
        state.is_written = true;
        Some((core::mem::take(&mut state.leaving), core::mem::take(&mut state.written)))
    }

    fn write(&self, bytes: &[u8], written: &mut usize) -> Written {
        while *written < bytes.len() {
            match rustix::net::send(&*self.socket, &bytes[*written..], SendFlags::NOSIGNAL) {
                Ok(count) => *written += count,
                Err(Errno::AGAIN) => return Written::Blocked,
                Err(Errno::INTR) => {}
                Err(_) => return Written::Broken,
            }
        }
        Written::All
    }
}

impl Sending {
    fn end(&mut self, leaving: Vec<u8>, written: usize) {
        self.leaving = leaving;
        self.written = written;
        self.is_written = false;
        let waits = self.filling.len() + self.leaving.len() - self.written;
        self.counted.shrinks_to(waits, &CLIENTS_OUTPUT);
    }

    /// Asks about room for output only while there is none.
    fn watch_room(&self, socket: &OwnedFd) {
        if let Some((poll, name)) = &self.watched {
            let data = epoll::EventData::new_u64(*name);
            let _ = epoll::modify(&**poll, socket, data, flags(self.blocked));
        }
    }
}

fn flags(room: bool) -> epoll::EventFlags {
    let input = epoll::EventFlags::IN;
    if room { input | epoll::EventFlags::OUT } else { input }
}

/// The way to a client in this process.
pub(crate) struct PortOutput {
    state: Mutex<PortState>,
    /// Signals wait that had no room in the ring.
    waits: AtomicBool,
    /// The thread that reads from the client.
    reader: usize,
    wake_client: Arc<dyn Fn() + Send + Sync>,
}

struct PortState {
    producer: Producer,
    backlog: Vec<u8>,
    pushed: usize,
    fresh: bool,
}

impl PortOutput {
    pub(crate) fn new(
        producer: Producer,
        reader: usize,
        wake_client: Arc<dyn Fn() + Send + Sync>,
    ) -> Self {
        let state = PortState { producer, backlog: Vec::new(), pushed: 0, fresh: false };
        Self { state: Mutex::new(state), waits: AtomicBool::new(false), reader, wake_client }
    }

    pub(crate) fn waits(&self) -> bool {
        self.waits.load(Ordering::Relaxed)
    }

    fn queue(&self, bytes: &[u8]) -> bool {
        let mut state = lock(&self.state);
        state.fresh = true;
        let sent = if state.backlog.is_empty() { state.producer.push_some(bytes) } else { 0 };
        if sent < bytes.len() {
            state.backlog.extend_from_slice(&bytes[sent..]);
            self.waits.store(true, Ordering::Relaxed);
            let waits = state.backlog.len() - state.pushed;
            lats_base::require!(waits < PORT_BACKLOG_MAX, "an SQL thread takes nothing");
        }
        true
    }

    fn flush(&self) -> Flushed {
        let mut state = lock(&self.state);
        let state = &mut *state;
        let sent = state.producer.push_some(&state.backlog[state.pushed..]);
        state.pushed += sent;
        if state.pushed == state.backlog.len() {
            state.backlog.clear();
            state.backlog.shrink_to(OUTPUT_KEPT_BYTES);
            state.pushed = 0;
            self.waits.store(false, Ordering::Relaxed);
        } else if state.pushed > state.backlog.len() / 2 {
            state.backlog.drain(..state.pushed);
            state.pushed = 0;
        }
        let waits = !state.backlog.is_empty();
        if core::mem::take(&mut state.fresh) | (sent > 0) {
            (self.wake_client)();
        }
        if waits { Flushed::Waits(self.reader) } else { Flushed::Done }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_who_do_not_read_are_counted_together() {
        const MIB: usize = 1 << 20;
        let all = Clients::new(128 * MIB);
        let mut clients: Vec<_> = (0..5).map(|_| Counted::default()).collect();
        let [first, second, third, fourth, fifth] = &mut clients[..] else { panic!("five") };
        assert!(
            first.becomes(MIB, &all) && all.now.load(Ordering::Relaxed) == 0,
            "that is not much"
        );
        for client in [&mut *first, second, third] {
            assert!(client.becomes(20 * MIB, &all) && client.becomes(40 * MIB, &all));
        }
        assert!(!fourth.becomes(9 * MIB, &all) && fifth.becomes(MIB, &all));
        assert_eq!(all.now.load(Ordering::Relaxed), 120 * MIB);
        assert!(fourth.becomes(7 * MIB, &all), "that is modest");
        assert_eq!(all.now.load(Ordering::Relaxed), 127 * MIB);
        assert!(fifth.becomes(8 * MIB, &all) && !fifth.becomes(9 * MIB, &all));
        second.shrinks_to(30 * MIB, &all);
        assert!(!second.becomes(39 * MIB, &all));
        second.shrinks_to(MIB, &all);
        assert!(fourth.becomes(9 * MIB, &all));
        all.now.fetch_add(256 * MIB, Ordering::Relaxed);
        assert!(!second.becomes(2 * MIB, &all), "that is bounded, too");
        all.shrink(256 * MIB);
        clients.iter_mut().for_each(|client| client.clear(&all));
        assert_eq!(all.now.load(Ordering::Relaxed), 0);
    }
}
