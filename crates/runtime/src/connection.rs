//! One socket, and the thread that reads it: bytes in, whole signals out of them.

use crate::{
    output::{Output, SocketOutput},
    report,
};
use lats_signals::{
    Malformed, Signal,
    buffer::parse,
    hello::{HELLO_BYTES, Hello},
};
use rustix::{fd::OwnedFd, io::Errno};
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
    pub(crate) output: Arc<Output>,
    pub(crate) stage: Stage,
    /// We have opened it.
    pub(crate) outgoing: bool,
    /// The node at the other end (or the one that we try to reach), and its life once known.
    pub(crate) node: u16,
    pub(crate) life: u32,
    pub(crate) opened_at: lats_base::Instant,
    input: Vec<u8>,
}

/// What reading has led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadEnd {
    /// Nothing more is there now.
    Drained,
    /// More is there; others get their turn first.
    More,
    /// The other side has closed, or the connection broke.
    Closed,
}

/// THREAD-4: output that waits for a client that does not read, and for a node.
const CLIENT_OUTPUT_MAX: usize = 128 << 20;
const NODE_OUTPUT_MAX: usize = 1 << 30;

impl Connection {
    pub(crate) fn new(socket: OwnedFd, stage: Stage, now: lats_base::Instant) -> Self {
        let socket = Arc::new(socket);
        report::watch(&socket);
        let output = SocketOutput::new(socket.clone(), CLIENT_OUTPUT_MAX);
        Self {
            socket,
            output: Arc::new(Output::Socket(output)),
            stage,
            outgoing: stage == Stage::Connecting,
            node: 0,
            life: 0,
            opened_at: now,
            input: Vec::new(),
        }
    }

    /// The sending side.
    pub(crate) fn sending(&self) -> Option<&SocketOutput> {
        match &*self.output {
            Output::Socket(socket) => Some(socket),
            Output::Port(_) => None,
        }
    }

    /// It is the link to a node from now on: more may wait in it.
    pub(crate) fn becomes_link(&mut self, life: u32) {
        self.stage = Stage::Node;
        self.life = life;
        if let Some(sending) = self.sending() {
            sending.limit(NODE_OUTPUT_MAX);
        }
    }

    /// Reads what is there, up to a limit (a little more, or less, if a signal has begun).
    pub(crate) fn read(&mut self, limit_bytes: usize) -> ReadEnd {
        self.input.reserve(limit_bytes);
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
        kept_bytes: usize,
        mut each: impl FnMut(&Signal<'_>) -> Result<(), Malformed>,
    ) -> Result<(), Malformed> {
        let mut used = 0;
        while let Some(signal) = parse(&self.input[used..])? {
            each(&signal)?;
            used += signal.bytes().len();
        }
        self.input.drain(..used);
        // A burst must not hold its memory for ever, nor make every later read a large one.
        if self.input.is_empty() && self.input.capacity() > kept_bytes {
            self.input = Vec::new();
        }
        Ok(())
    }
}
