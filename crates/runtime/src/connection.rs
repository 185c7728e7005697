//! One socket: bytes in, whole signals out of them; signals in, bytes out.

use crate::report;
use lats_signals::{
    Malformed, Signal,
    buffer::parse,
    hello::{HELLO_BYTES, Hello},
};
use rustix::{fd::OwnedFd, io::Errno, net::SendFlags};
use std::sync::Arc;

/// Where a connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// We have opened it; the kernel has not said yet whether it came about.
    Connecting,
    /// The other side has not said yet who it is.
    Greeting,
    /// A node.
    Node,
    /// A client, with this slot.
    Client(u32),
}

/// A connection.
pub(crate) struct Connection {
    pub(crate) socket: Arc<OwnedFd>,
    pub(crate) stage: Stage,
    /// We have opened it.
    pub(crate) outgoing: bool,
    /// The node at the other end (or the one that we try to reach), and its life once known.
    pub(crate) node: u16,
    pub(crate) life: u32,
    pub(crate) opened_at: lats_base::Instant,
    input: Vec<u8>,
    output: Vec<u8>,
    written: usize,
    /// The kernel's buffer is full; we wait for it to say that there is room.
    pub(crate) blocked: bool,
}

/// What reading has led to.
pub(crate) enum ReadEnd {
    /// Nothing more is there now.
    Drained,
    /// More is there; others get their turn first.
    More,
    /// The other side has closed, or the connection broke.
    Closed,
}

/// Read from one socket in one turn, if no signal is longer: what comes of it must stay in the processor's cache, and its
/// answers are sent before more is read.
const READ_BYTES: usize = 8 << 10;
/// Memory that is kept between bursts.
const INPUT_KEPT_BYTES: usize = 4 * READ_BYTES;
const OUTPUT_KEPT_BYTES: usize = 1 << 20;
/// Output that waits for a client that does not read, and for a node.
const CLIENT_OUTPUT_MAX: usize = 128 << 20;
const NODE_OUTPUT_MAX: usize = 1 << 30;

impl Connection {
    pub(crate) fn new(socket: OwnedFd, stage: Stage, now: lats_base::Instant) -> Self {
        let socket = Arc::new(socket);
        report::watch(&socket);
        Self {
            socket,
            stage,
            outgoing: stage == Stage::Connecting,
            node: 0,
            life: 0,
            opened_at: now,
            input: Vec::new(),
            output: Vec::new(),
            written: 0,
            blocked: false,
        }
    }

    /// Reads what is there, up to a limit.
    pub(crate) fn read(&mut self) -> ReadEnd {
        self.input.reserve(READ_BYTES);
        let room = self.input.capacity() - self.input.len();
        loop {
            let spare = rustix::buffer::spare_capacity(&mut self.input);
            return match rustix::io::read(&*self.socket, spare) {
                Ok(0) => ReadEnd::Closed,
                Ok(n) if n == room => ReadEnd::More,
                Ok(_) | Err(Errno::AGAIN) => ReadEnd::Drained,
                Err(Errno::INTR) => continue,
                Err(_) => ReadEnd::Closed,
            };
        }
    }

    /// The greeting, once it is here; `Err` if what came is none.
    pub(crate) fn take_hello(&mut self) -> Result<Option<Hello>, Malformed> {
        if self.input.len() < HELLO_BYTES {
            return Ok(None);
        }
        let hello = Hello::read(&self.input[..HELLO_BYTES]);
        self.input.drain(..HELLO_BYTES);
        hello.map(Some).ok_or(Malformed("no greeting"))
    }

    /// Gives each whole signal to `each`.
    pub(crate) fn take_signals(
        &mut self,
        mut each: impl FnMut(&Signal<'_>) -> Result<(), Malformed>,
    ) -> Result<(), Malformed> {
        let mut used = 0;
        while let Some(signal) = parse(&self.input[used..])? {
            each(&signal)?;
            used += signal.bytes().len();
        }
        self.input.drain(..used);
        // A burst must not hold its memory for ever, nor make every later read a large one.
        if self.input.is_empty() && self.input.capacity() > INPUT_KEPT_BYTES {
            self.input = Vec::new();
        }
        Ok(())
    }

    /// Queues bytes; false if too much waits already.
    pub(crate) fn queue(&mut self, bytes: &[u8]) -> bool {
        let limit = match self.stage {
            Stage::Client(_) => CLIENT_OUTPUT_MAX,
            Stage::Connecting | Stage::Greeting | Stage::Node => NODE_OUTPUT_MAX,
        };
        if self.output.len() - self.written + bytes.len() > limit {
            return false;
        }
        self.output.extend_from_slice(bytes);
        true
    }

    /// What is always behind must not grow by all that was ever written.
    fn let_go_of_written(&mut self) {
        if self.written > self.output.len() / 2 {
            self.output.drain(..self.written);
            self.written = 0;
        }
    }

    /// Writes what waits; false if the connection broke.
    pub(crate) fn flush(&mut self) -> bool {
        while self.written < self.output.len() {
            let rest = &self.output[self.written..];
            match rustix::net::send(&*self.socket, rest, SendFlags::NOSIGNAL) {
                Ok(n) => self.written += n,
                Err(Errno::AGAIN) => {
                    self.blocked = true;
                    self.let_go_of_written();
                    return true;
                }
                Err(Errno::INTR) => {}
                Err(_) => return false,
            }
        }
        self.output.clear();
        self.written = 0;
        self.blocked = false;
        if self.output.capacity() > OUTPUT_KEPT_BYTES {
            self.output = Vec::new();
        }
        true
    }
}
