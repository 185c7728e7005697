//! Packets out of a stream of bytes: lengths, continuation and sequence numbers.

use crate::error::WireError;

#[cfg(test)]
mod tests;

/// Bytes that a packet may have before the client has logged in: a stranger cannot make the server
/// hold more.
pub const LOGIN_PACKET_BYTES_MAX: usize = 64 << 10;
/// Bytes of a packet's header: three of length, one of sequence.
pub(crate) const HEADER_BYTES: usize = 4;
/// Payload bytes of a full packet, after which another packet continues the payload.
pub(crate) const FRAGMENT_BYTES_MAX: usize = 0xFF_FFFF;
/// Buffer space that is kept after a large packet was handed out.
const KEPT_CAPACITY_BYTES: usize = 64 << 10;

/// Bytes that are kept of a packet that is passed over: what the command is, and what it is about.
const HEAD_BYTES: usize = 16;
/// Space that a payload gets before any of it has come.
const FIRST_BYTES: usize = 16 << 10;

/// One payload, put together from as many packets as it took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The sequence number of its last packet; the reply goes on with the next one.
    pub sequence: u8,
    /// The bytes after the header.
    pub payload: Vec<u8>,
    /// It was passed over ([`PacketDecoder::pass_over`]): the payload is only its beginning.
    pub is_cut: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The server answers each packet with one packet until the login ends.
    Login,
    /// Every command starts at sequence number 0.
    Command,
}

/// Turns a stream of bytes into packets.
///
/// It holds what was fed and not yet taken out, so the shell must take packets out
/// (until [`PacketDecoder::next_packet`] gives `None`) before it feeds more; then the decoder never
/// holds more than `max_allowed_packet` bytes and one read. What it holds of an unfinished packet is about as much as has
/// come, whatever its header says. After an error it gives that error again: a stream that was lost once cannot be followed.
#[derive(Clone, Debug)]
pub struct PacketDecoder {
    buffer: Vec<u8>,
    /// Bytes of `buffer` that were consumed already.
    start: usize,
    /// What was taken of a payload that is not complete.
    partial: Vec<u8>,
    /// The payload's bytes so far, by the headers that have come.
    announced: usize,
    /// The fragment that is being taken.
    fragment: Option<Fragment>,
    passes_over: bool,
    expected: u8,
    phase: Phase,
    max_allowed_packet: usize,
    failure: Option<WireError>,
}

/// A packet's header, and how much of what it announces has not been taken.
#[derive(Clone, Copy, Debug)]
struct Fragment {
    length: usize,
    sequence: u8,
    missing: usize,
}

impl Default for PacketDecoder {
    fn default() -> Self {
        Self::new()
    }
}

impl PacketDecoder {
    /// The decoder of a new connection, whose greeting has sequence number 0.
    pub fn new() -> Self {
        Self {
            buffer: Vec::new(),
            start: 0,
            partial: Vec::new(),
            announced: 0,
            fragment: None,
            passes_over: false,
            expected: 1,
            phase: Phase::Login,
            max_allowed_packet: LOGIN_PACKET_BYTES_MAX,
            failure: None,
        }
    }

    /// The client has logged in: commands follow, each of at most `max_allowed_packet` bytes.
    pub fn enter_command_phase(&mut self, max_allowed_packet: usize) {
        self.phase = Phase::Command;
        self.expected = 0;
        self.max_allowed_packet = max_allowed_packet;
    }

    /// Changes the limit, in payload bytes, for the packets that follow.
    pub fn set_max_allowed_packet(&mut self, bytes: usize) {
        self.max_allowed_packet = bytes;
    }

    /// The next packet must have this sequence number, because it continues an exchange (an
    /// authentication switch inside COM_CHANGE_USER).
    pub fn expect_sequence(&mut self, sequence: u8) {
        self.expected = sequence;
    }

    /// Appends bytes that arrived.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.failure.is_none() {
            self.buffer.extend_from_slice(bytes);
        }
    }

    /// Bytes that are held and not handed out yet.
    pub fn buffered_bytes(&self) -> usize {
        self.buffer.len().saturating_sub(self.start).saturating_add(self.partial.len())
    }

    /// The next whole packet, or `None` until more bytes are fed.
    pub fn next_packet(&mut self) -> Result<Option<Packet>, WireError> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        self.advance().inspect_err(|error| {
            self.failure = Some(error.clone());
            self.buffer = Vec::new();
            self.partial = Vec::new();
            self.start = 0;
        })
    }

    /// Bytes that the packet which is unfinished will have at least, and those for which there is space: nothing between
    /// packets, and of what is passed over.
    pub fn unfinished(&self) -> Option<(usize, usize)> {
        let is_taken = self.announced > 0 && !self.passes_over;
        is_taken.then_some((self.announced, self.partial.capacity()))
    }

    /// True if some of a packet has come, and not all.
    pub fn is_within_packet(&self) -> bool {
        self.fragment.is_some() || self.announced > 0 || self.start < self.buffer.len()
    }

    /// Forgets the bytes of the unfinished packet, those that come too: it is handed out when its end has come.
    pub fn pass_over(&mut self) {
        self.passes_over = true;
        self.partial.truncate(HEAD_BYTES);
        self.partial.shrink_to_fit();
    }

    fn advance(&mut self) -> Result<Option<Packet>, WireError> {
        loop {
            let Some(fragment) = self.fragment else {
                let Some((length, sequence)) = self.peek_header() else { break };
                self.check_header(length, sequence)?;
                self.start = self.start.saturating_add(HEADER_BYTES);
                if self.announced == 0 && length < FRAGMENT_BYTES_MAX {
                    // The usual case: all of it is here.
                    let end = self.start.saturating_add(length);
                    if let Some(payload) = self.buffer.get(self.start..end) {
                        self.partial.extend_from_slice(payload);
                        self.start = end;
                        return Ok(Some(self.complete(sequence)));
                    }
                }
                self.announced = self.announced.saturating_add(length);
                self.fragment = Some(Fragment { length, sequence, missing: length });
                continue;
            };
            let missing = self.take(fragment.missing);
            if missing > 0 {
                self.fragment = Some(Fragment { missing, ..fragment });
                break;
            }
            self.fragment = None;
            self.expected = fragment.sequence.wrapping_add(1);
            if fragment.length < FRAGMENT_BYTES_MAX {
                return Ok(Some(self.complete(fragment.sequence)));
            }
        }
        self.compact();
        Ok(None)
    }

    /// Takes what there is of so many bytes into the payload; how many are missing still.
    fn take(&mut self, wanted: usize) -> usize {
        let waiting = self.buffer.get(self.start..).unwrap_or_default();
        let taken = waiting.get(..wanted).unwrap_or(waiting);
        let room = match self.passes_over {
            true => HEAD_BYTES.saturating_sub(self.partial.len()),
            false => taken.len(),
        };
        let kept = taken.get(..room).unwrap_or(taken);
        let needed = self.partial.len().saturating_add(kept.len());
        if needed > self.partial.capacity() {
            // Half as much again, so that all copies together cost linear time; never more than will come.
            let more = (needed + needed / 2).max(FIRST_BYTES).min(self.announced);
            self.partial.reserve_exact(more.max(needed).saturating_sub(self.partial.len()));
        }
        self.partial.extend_from_slice(kept);
        self.start = self.start.saturating_add(taken.len());
        wanted.saturating_sub(taken.len())
    }

    fn peek_header(&self) -> Option<(usize, u8)> {
        let &[a, b, c, sequence] = self.buffer.get(self.start..)?.first_chunk()?;
        Some((u32::from_le_bytes([a, b, c, 0]) as usize, sequence))
    }

    /// Refuses a packet by its header alone, before its bytes are waited for.
    fn check_header(&self, length: usize, sequence: u8) -> Result<(), WireError> {
        if sequence != self.expected {
            return Err(WireError::OutOfOrder { expected: self.expected, found: sequence });
        }
        let bytes = self.announced.saturating_add(length);
        if bytes > self.max_allowed_packet {
            return Err(WireError::PacketTooLarge { bytes, limit: self.max_allowed_packet });
        }
        Ok(())
    }

    fn complete(&mut self, sequence: u8) -> Packet {
        self.expected = match self.phase {
            // The server's one packet in between takes a number.
            Phase::Login => sequence.wrapping_add(2),
            Phase::Command => 0,
        };
        self.compact();
        self.announced = 0;
        let is_cut = core::mem::take(&mut self.passes_over);
        Packet { sequence, payload: core::mem::take(&mut self.partial), is_cut }
    }

    /// Gives consumed bytes back, but not so often that many small packets cost quadratic time.
    fn compact(&mut self) {
        if self.start == self.buffer.len() {
            self.buffer.clear();
            self.start = 0;
            self.buffer.shrink_to(KEPT_CAPACITY_BYTES);
        } else if self.start > self.buffer.len() / 2 {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
    }
}
