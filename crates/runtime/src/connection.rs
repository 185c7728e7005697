//! One socket, and the thread that reads it: bytes in, whole signals out of them.

use crate::{
    output::{Output, SocketOutput, link::LinkOutput},
    report,
};
use lats_signals::{
    Lane, Malformed, Principal, Signal,
    buffer::parse,
    hello::{HELLO_BYTES, Hello, MAGIC, RESUME_BYTES, Resume},
    proof::{OPENING_BYTES, Opening, Openings, PROOF_BYTES},
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
    /// The other side has said who it is, and has not proved it yet.
    Proving,
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
    /// Which of the connections between two nodes it is, if it is one.
    pub(crate) lane: Lane,
    pub(crate) opened_at: lats_base::Instant,
    /// What the client at the other end may do.
    pub(crate) principal: Principal,
    /// What this end has said first, and then what both have, until the greeting is over.
    pub(crate) own: Option<Box<Opening>>,
    pub(crate) said: Option<Box<Openings>>,
    /// Of a node: the link that it belongs to, which is written to in the place of `output`.
    pub(crate) link: Option<Arc<Output>>,
    /// The lane of rows of a link that is over, of whose end the blocks must hear before anything comes by this connection.
    pub(crate) former: Option<Arc<Output>>,
    /// The number of the link that the other end has begun, if it is another one.
    pub(crate) next_number: u32,
    /// The other end has said what has come to it (LINK-2).
    is_resumed: bool,
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

/// What the other side has said first.
pub(crate) enum Said {
    /// A greeting without what should follow it: a refusal, or one that is refused.
    Alone(Hello),
    /// The whole.
    Opening(Opening),
}

/// THREAD-4: output that waits for a client that does not read, and for a node.
pub(crate) const CLIENT_OUTPUT_MAX: usize = 128 << 20;
pub(crate) const NODE_OUTPUT_MAX: usize = 1 << 30;

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
            lane: Lane::Data,
            opened_at: now,
            principal: Principal::Client,
            own: None,
            said: None,
            link: None,
            former: None,
            next_number: 0,
            is_resumed: false,
            input: Vec::new(),
        }
    }

    /// The sending side.
    pub(crate) fn sending(&self) -> Option<&SocketOutput> {
        match &*self.output {
            Output::Socket(socket) => Some(socket),
            Output::Link(_) | Output::Port(_) => None,
        }
    }

    /// The lane of a link that it belongs to, if it leads to a node.
    pub(crate) fn link(&self) -> Option<&LinkOutput> {
        self.link.as_deref()?.as_link()
    }

    /// It belongs to the link to a node from now on.
    pub(crate) fn becomes_link(&mut self, life: u32, link: Arc<Output>) {
        self.stage = Stage::Node;
        self.life = life;
        self.link = Some(link);
    }

    /// LINK-2: what the other end says first, once it is here.
    pub(crate) fn take_resume(&mut self) -> Option<Resume> {
        if self.is_resumed {
            return None;
        }
        let resume = Resume::read(self.input.first_chunk::<RESUME_BYTES>()?);
        self.input.drain(..RESUME_BYTES);
        self.is_resumed = true;
        Some(resume)
    }

    /// True if signals may come now.
    pub(crate) fn is_resumed(&self) -> bool {
        self.is_resumed
    }

    /// Says something at once: nobody else knows this connection yet.
    pub(crate) fn say(&self, bytes: &[u8]) {
        self.output.queue(bytes);
        let _ = self.output.flush();
    }

    /// GREET-5: tells the opener that its connection is in use from now on.
    pub(crate) fn accept(&self, proof: Option<[u8; PROOF_BYTES]>) {
        if let Some(proof) = proof {
            self.say(&proof);
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

    /// True until the other side has proved who it is.
    pub(crate) fn is_new(&self) -> bool {
        matches!(self.stage, Stage::Connecting | Stage::Greeting | Stage::Proving)
    }

    /// GREET-1: what the other side says first, once it is here. A greeting that `refused` has a reason against, or that is
    /// itself a refusal, comes alone: what follows it in another version is not known.
    pub(crate) fn take_opening(
        &mut self,
        refused: impl Fn(&Hello) -> bool,
    ) -> Result<Option<Said>, Malformed> {
        if !MAGIC.starts_with(&self.input[..self.input.len().min(MAGIC.len())]) {
            return Err(Malformed("no greeting"));
        }
        let Some(bytes) = self.input.get(..HELLO_BYTES) else { return Ok(None) };
        let hello = Hello::read(bytes).ok_or(Malformed("no greeting"))?;
        if hello.refusal != 0 || refused(&hello) {
            return Ok(Some(Said::Alone(hello)));
        }
        let Some(bytes) = self.input.get(..OPENING_BYTES) else { return Ok(None) };
        let opening = Opening::read(bytes).ok_or(Malformed("no greeting"))?;
        self.input.drain(..OPENING_BYTES);
        Ok(Some(Said::Opening(opening)))
    }

    /// The other side's proof, once it is here, or its refusal: a proof begins like a greeting once in 2⁶⁴ times. What only begins
    /// like one is taken for a proof, which it is not: nobody sends on and on before the connection is closed.
    pub(crate) fn take_proof(&mut self) -> Option<Result<[u8; PROOF_BYTES], Hello>> {
        if self.input.starts_with(&MAGIC)
            && let Some(refusal) = Hello::read(self.input.get(..HELLO_BYTES)?)
        {
            return Some(Err(refusal));
        }
        let proof = *self.input.first_chunk()?;
        self.input.drain(..PROOF_BYTES);
        Some(Ok(proof))
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
