//! Buffers of signals, and signals read in place.

use crate::{BlockRef, Body, HEADER_BYTES, Header, Malformed, SignalNumber};
use alloc::vec::Vec;
use lats_base::{limits, require};
use zerocopy::{FromBytes, FromZeros, IntoBytes};

/// A signal inside a buffer.
#[derive(Clone, Copy, Debug)]
pub struct Signal<'a> {
    /// Its header.
    pub header: Header,
    bytes: &'a [u8],
}

impl<'a> Signal<'a> {
    /// Reads the signal at the start of `bytes`, which were checked when they entered the process.
    fn at(bytes: &'a [u8]) -> Self {
        let read = Header::read_from_prefix(bytes);
        require!(read.is_ok());
        let header = read.map_or_else(|_| unreachable_header(), |(header, _)| header);
        require!(header.length_bytes as usize <= bytes.len());
        Self { header, bytes: &bytes[..header.length_bytes as usize] }
    }

    /// Its number.
    #[inline]
    pub fn number(&self) -> Option<SignalNumber> {
        SignalNumber::from_number(self.header.number)
    }

    /// Its fixed part. The caller has looked at the number.
    pub fn body<B: Body>(&self) -> B {
        require!(self.header.number == B::NUMBER as u16);
        let read = B::read_from_prefix(&self.bytes[HEADER_BYTES..]);
        require!(read.is_ok(), "signal {} is shorter than its body", self.header.number);
        read.map_or_else(|_| B::new_zeroed(), |(body, _)| body)
    }

    /// Its payload; empty if it has none.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        let start = HEADER_BYTES + SignalNumber::body_bytes_of(self.header.number);
        &self.bytes[start..start + self.header.payload_bytes as usize]
    }

    /// The whole signal.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Who sent it.
    pub fn sender(&self) -> BlockRef {
        self.header.sender
    }
}

fn unreachable_header() -> Header {
    Header::new_zeroed()
}

/// A queue of signals in one piece of memory. Reused, so that a steady flow allocates nothing.
#[derive(Debug, Default)]
pub struct SignalBuffer {
    bytes: Vec<u8>,
    read_at: usize,
    count: usize,
}

impl SignalBuffer {
    /// An empty buffer.
    pub fn new() -> Self {
        Self::default()
    }

    /// Bytes that wait in it.
    pub fn len_bytes(&self) -> usize {
        self.bytes.len() - self.read_at
    }

    /// Signals that wait in it.
    pub fn count(&self) -> usize {
        self.count
    }

    /// True if nothing waits in it.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Appends a signal built from its parts.
    pub fn push<B: Body>(&mut self, route: Route, body: &B, payload: &[&[u8]]) {
        let payload_bytes: usize = payload.iter().map(|p| p.len()).sum();
        let total = HEADER_BYTES + core::mem::size_of::<B>() + payload_bytes;
        let padded = total.next_multiple_of(8);
        require!(padded <= limits::SIGNAL_BYTES_MAX, "signal of {padded} bytes");
        let header = Header {
            length_bytes: padded as u32,
            number: B::NUMBER as u16,
            version: 1,
            flags: 0,
            sender: route.sender,
            receiver: route.receiver,
            incarnation: route.incarnation,
            payload_bytes: payload_bytes as u32,
        };
        self.bytes.extend_from_slice(header.as_bytes());
        self.bytes.extend_from_slice(body.as_bytes());
        payload.iter().for_each(|p| self.bytes.extend_from_slice(p));
        self.bytes.resize(self.bytes.len() + padded - total, 0);
        self.count += 1;
    }

    /// Appends a signal that was checked before.
    pub fn push_signal(&mut self, signal: &Signal<'_>) {
        self.bytes.extend_from_slice(signal.bytes);
        self.count += 1;
    }

    /// Appends a checked signal under a new sender, receiver and life.
    pub fn push_rerouted(&mut self, signal: &Signal<'_>, route: Route) {
        let at = self.bytes.len();
        self.push_signal(signal);
        let mut header = signal.header;
        header.sender = route.sender;
        header.receiver = route.receiver;
        header.incarnation = route.incarnation;
        self.bytes[at..at + HEADER_BYTES].copy_from_slice(header.as_bytes());
    }

    /// Appends a checked signal for another receiver.
    pub fn push_for(&mut self, signal: &Signal<'_>, receiver: BlockRef) {
        let (sender, incarnation) = (signal.header.sender, signal.header.incarnation);
        self.push_rerouted(signal, Route { sender, receiver, incarnation });
    }

    /// Takes the oldest signal.
    pub fn pop(&mut self) -> Option<Signal<'_>> {
        if self.count == 0 {
            return None;
        }
        let signal = Signal::at(&self.bytes[self.read_at..]);
        self.read_at += signal.bytes.len();
        self.count -= 1;
        Some(signal)
    }

    /// The signals that come next: as many as fit into so many bytes, at least one if there is any.
    pub fn upcoming(&self, bytes: usize) -> Upcoming<'_> {
        Upcoming { bytes: &self.bytes[self.read_at..], count: self.count, room: bytes }
    }

    /// Forgets what was read. Call it when a round of [`Self::pop`] is over.
    pub fn compact(&mut self) {
        if self.count == 0 {
            self.bytes.clear();
        } else {
            self.bytes.drain(..self.read_at);
        }
        self.read_at = 0;
    }
}

/// Signals that wait in a buffer, oldest first.
#[derive(Clone, Debug)]
pub struct Upcoming<'a> {
    bytes: &'a [u8],
    count: usize,
    room: usize,
}

impl<'a> Iterator for Upcoming<'a> {
    type Item = Signal<'a>;

    fn next(&mut self) -> Option<Signal<'a>> {
        if self.count == 0 || self.room == 0 {
            return None;
        }
        let signal = Signal::at(self.bytes);
        self.bytes = &self.bytes[signal.bytes.len()..];
        self.count -= 1;
        self.room = self.room.saturating_sub(signal.bytes.len());
        Some(signal)
    }
}

/// Who a new signal is from and for.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// The sending block.
    pub sender: BlockRef,
    /// The receiving block.
    pub receiver: BlockRef,
    /// The sending node's life.
    pub incarnation: u32,
}

/// Looks for a whole signal at the start of received bytes.
///
/// `Ok(None)` means that more bytes are needed. The signal was checked.
///
/// # Errors
/// [`Malformed`] if no correct sender can have sent these bytes: close the connection.
pub fn parse(bytes: &[u8]) -> Result<Option<Signal<'_>>, Malformed> {
    let Ok((header, _)) = Header::read_from_prefix(bytes) else {
        return Ok(None);
    };
    let length = crate::table::check_header(&header)?;
    if bytes.len() < length {
        return Ok(None);
    }
    let signal = Signal { header, bytes: &bytes[..length] };
    crate::check(&signal)?;
    Ok(Some(signal))
}
