//! The way out to another node (LINK-1 to LINK-5, `docs/protocols/links.md`). It outlives connections: what the other end has not
//! acknowledged is kept, and sent again over the next connection between the same two processes.

use super::{Flushed, ROUNDS_MAX, flags, lock};
use lats_signals::{Lane, Malformed, buffer::parse, hello::Resume};
use rustix::{event::epoll, fd::OwnedFd, io::Errno, net::SendFlags, net::Shutdown};
use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

/// What belongs to one lane of a link, for as long as both processes live and nothing of it is lost.
pub(crate) struct LinkOutput {
    pub(crate) node: u16,
    pub(crate) life: u32,
    pub(crate) lane: Lane,
    /// Which of the links between the two processes it is: 1 unless earlier ones have lost something.
    pub(crate) number: u32,
    state: Mutex<State>,
    limit_bytes: usize,
    /// Bytes of whole signals that have come from the other end, and how many of these it was told of.
    received: AtomicU64,
    told: AtomicU64,
    over: AtomicBool,
    end_told: AtomicBool,
}

#[derive(Default)]
struct State {
    /// What comes next.
    filling: Vec<u8>,
    /// What the other end has not acknowledged; the position of its first byte; its size.
    kept: VecDeque<Arc<[u8]>>,
    first: u64,
    kept_bytes: usize,
    /// What of it is written next: which part, and from where in it.
    at: usize,
    offset: usize,
    open: Option<Open>,
    /// There has been a connection.
    was_open: bool,
    /// Grows whenever `open` changes: who writes to a former connection changes nothing here.
    turn: u64,
    /// Somebody writes, without the lock.
    is_written: bool,
    /// The kernel's buffer is full; the reading thread hears when there is room.
    blocked: bool,
}

/// The connection in use.
#[derive(Clone)]
struct Open {
    socket: Arc<OwnedFd>,
    /// The reading thread's epoll instance, and the connection's name there.
    poll: Arc<OwnedFd>,
    name: u64,
}

/// Something to be written.
struct Piece {
    bytes: Arc<[u8]>,
    offset: usize,
    socket: Arc<OwnedFd>,
    turn: u64,
}

enum Written {
    All,
    Blocked,
    Broken,
}

/// The other end is told so often how much has come: as much stays kept there when nothing is on the way.
const ACKNOWLEDGED_EVERY: u64 = 64 << 10;
/// What is kept is forgotten part by part: none is larger, but for a signal that is.
const PART_BYTES: usize = 256 << 10;
/// Memory that is kept between bursts.
const FILLING_KEPT_BYTES: usize = 1 << 20;

impl LinkOutput {
    /// For one lane of a link to a process; so much may wait in it or be kept.
    pub(crate) fn new(
        (node, life): (u16, u32),
        lane: Lane,
        number: u32,
        limit_bytes: usize,
    ) -> Self {
        Self {
            node,
            life,
            lane,
            number,
            state: Mutex::default(),
            limit_bytes,
            received: AtomicU64::new(0),
            told: AtomicU64::new(0),
            over: AtomicBool::new(false),
            end_told: AtomicBool::new(false),
        }
    }

    /// LINK-4: something of it is lost, or its processes are not both there any more.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// Ends it for ever: nothing is kept any more, and the thread that reads by its connection notices.
    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::Release);
        let mut state = lock(&self.state);
        let open = state.open.take();
        *state = State { turn: state.turn + 1, ..State::default() };
        if let Some(open) = open {
            let _ = rustix::net::shutdown(&*open.socket, Shutdown::Both);
        }
    }

    /// True for the first who asks: the blocks are told once of its end.
    pub(crate) fn tells_end(&self) -> bool {
        !self.end_told.swap(true, Ordering::AcqRel)
    }

    /// LINK-2: what is said first by a new connection.
    pub(crate) fn resume(&self) -> Resume {
        let received = self.received.load(Ordering::Acquire);
        self.told.store(received, Ordering::Release);
        Resume::new(self.number, received)
    }

    /// LINK-3: so much more has come from the other end. If it is to be told: how much in all.
    pub(crate) fn receive(&self, bytes: u64) -> Option<u64> {
        let received = self.received.fetch_add(bytes, Ordering::AcqRel) + bytes;
        if received - self.told.load(Ordering::Acquire) < ACKNOWLEDGED_EVERY {
            return None;
        }
        self.told.store(received, Ordering::Release);
        Some(received)
    }

    /// LINK-3: the other end has so much. It may have more than we know to be written: whoever writes says so afterwards.
    pub(crate) fn acknowledge(&self, to: u64) -> Result<(), Malformed> {
        let is_possible = {
            let mut state = lock(&self.state);
            state.forget(to);
            to <= state.end()
        };
        if is_possible || self.is_over() {
            return Ok(());
        }
        // LINK-5.
        self.end();
        Err(Malformed("it acknowledges what was not sent"))
    }

    /// LINK-2: from now on this connection is written to, from what the other end has not.
    pub(crate) fn attach(
        &self,
        socket: &Arc<OwnedFd>,
        (poll, name): (&Arc<OwnedFd>, u64),
        from: u64,
    ) -> Result<(), Malformed> {
        let mut state = lock(&self.state);
        if self.is_over() {
            return Err(Malformed("the link has ended"));
        }
        if from < state.first || from > state.end() {
            return Err(Malformed("it lacks what was acknowledged, or has what was not sent"));
        }
        state.at = state.kept.len();
        state.forget(from);
        (state.at, state.offset) = (0, (from - state.first) as usize);
        state.skip_written();
        state.open = Some(Open { socket: socket.clone(), poll: poll.clone(), name });
        state.was_open = true;
        state.turn += 1;
        (state.is_written, state.blocked) = (false, false);
        Ok(())
    }

    /// Its connection has ended, if it is this one.
    pub(crate) fn detach(&self, name: u64) {
        let mut state = lock(&self.state);
        if state.open.as_ref().is_some_and(|open| open.name == name) {
            state.open = None;
            state.turn += 1;
            (state.is_written, state.blocked) = (false, false);
        }
    }

    pub(crate) fn queue(&self, bytes: &[u8]) -> bool {
        if self.is_over() {
            return true;
        }
        let mut state = lock(&self.state);
        let is_repeated = || parse(bytes).is_ok_and(|s| s.is_some_and(|s| Lane::is_repeated(&s)));
        if state.open.is_none() && state.was_open && is_repeated() {
            return true;
        }
        if state.kept_bytes + state.filling.len() + bytes.len() > self.limit_bytes {
            return false;
        }
        state.filling.extend_from_slice(bytes);
        if state.filling.len() >= PART_BYTES {
            state.keep_filling();
        }
        true
    }

    /// The kernel has room again.
    #[must_use]
    pub(crate) fn on_room(&self, name: u64) -> Flushed {
        {
            let mut state = lock(&self.state);
            if state.open.as_ref().is_some_and(|open| open.name == name) {
                state.blocked = false;
                state.watch_room();
            }
        }
        self.flush()
    }

    #[must_use]
    pub(crate) fn flush(&self) -> Flushed {
        let mut next = lock(&self.state).begin();
        let mut rounds = 0;
        while let Some(mut piece) = next {
            rounds += 1;
            let ended = write(&mut piece);
            let mut state = lock(&self.state);
            if state.turn != piece.turn {
                // Another connection is in use, and somebody else writes.
                return Flushed::Done;
            }
            state.is_written = false;
            state.offset = piece.offset;
            match ended {
                Written::All => state.skip_written(),
                Written::Blocked => {
                    state.blocked = true;
                    state.watch_room();
                    return Flushed::Done;
                }
                Written::Broken => {
                    state.open = None;
                    state.turn += 1;
                    let _ = rustix::net::shutdown(&*piece.socket, Shutdown::Both);
                    return Flushed::Done;
                }
            }
            if rounds == ROUNDS_MAX {
                let is_done = state.kept.len() == state.at && state.filling.is_empty();
                return if is_done { Flushed::Done } else { Flushed::More };
            }
            next = state.begin();
        }
        Flushed::Done
    }
}

impl State {
    /// What is to be written now, by us.
    fn begin(&mut self) -> Option<Piece> {
        if self.is_written || self.blocked {
            return None;
        }
        let socket = self.open.as_ref()?.socket.clone();
        if self.at == self.kept.len() {
            self.keep_filling();
        }
        let bytes = self.kept.get(self.at)?.clone();
        self.is_written = true;
        Some(Piece { bytes, offset: self.offset, socket, turn: self.turn })
    }

    /// What was filled is a part of what is kept.
    fn keep_filling(&mut self) {
        if self.filling.is_empty() {
            return;
        }
        self.kept_bytes += self.filling.len();
        self.kept.push_back(Arc::from(&self.filling[..]));
        self.filling.clear();
        self.filling.shrink_to(FILLING_KEPT_BYTES);
    }

    /// Goes on to the next part if one is written.
    fn skip_written(&mut self) {
        while self.kept.get(self.at).is_some_and(|part| part.len() <= self.offset) {
            self.offset -= self.kept[self.at].len();
            self.at += 1;
        }
    }

    /// The position behind all that is kept.
    fn end(&self) -> u64 {
        self.first + self.kept_bytes as u64
    }

    /// Parts that the other end has, and that were written.
    fn forget(&mut self, to: u64) {
        while self.at > 0
            && let Some(part) = self.kept.front()
            && self.first + part.len() as u64 <= to
        {
            self.first += part.len() as u64;
            self.kept_bytes -= part.len();
            self.at -= 1;
            self.kept.pop_front();
        }
    }

    /// Asks about room for output only while there is none.
    fn watch_room(&self) {
        if let Some(open) = &self.open {
            let data = epoll::EventData::new_u64(open.name);
            let _ = epoll::modify(&*open.poll, &*open.socket, data, flags(self.blocked));
        }
    }
}

fn write(piece: &mut Piece) -> Written {
    while piece.offset < piece.bytes.len() {
        let rest = &piece.bytes[piece.offset..];
        match rustix::net::send(&*piece.socket, rest, SendFlags::NOSIGNAL) {
            Ok(count) => piece.offset += count,
            Err(Errno::AGAIN) => return Written::Blocked,
            Err(Errno::INTR) => {}
            Err(_) => return Written::Broken,
        }
    }
    Written::All
}

#[cfg(test)]
mod tests;
