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

/// One payload, put together from as many packets as it took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The sequence number of its last packet; the reply goes on with the next one.
    pub sequence: u8,
    /// The bytes after the header.
    pub payload: Vec<u8>,
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
/// holds more than `max_allowed_packet` bytes and one read. After an error it gives that error
/// again: a stream that was lost once cannot be followed.
#[derive(Clone, Debug)]
pub struct PacketDecoder {
    buffer: Vec<u8>,
    /// Bytes of `buffer` that were consumed already.
    start: usize,
    /// The payload so far of a packet that is continued.
    partial: Vec<u8>,
    expected: u8,
    phase: Phase,
    max_allowed_packet: usize,
    failure: Option<WireError>,
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

    fn advance(&mut self) -> Result<Option<Packet>, WireError> {
        while let Some((length, sequence)) = self.peek_header() {
            self.check_header(length, sequence)?;
            let from = self.start.saturating_add(HEADER_BYTES);
            let Some(payload) = self.buffer.get(from..from.saturating_add(length)) else {
                break;
            };
            self.partial.extend_from_slice(payload);
            self.start = from.saturating_add(length);
            self.expected = sequence.wrapping_add(1);
            if length < FRAGMENT_BYTES_MAX {
                return Ok(Some(self.complete(sequence)));
            }
        }
        self.compact();
        Ok(None)
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
        let bytes = self.partial.len().saturating_add(length);
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
        Packet { sequence, payload: core::mem::take(&mut self.partial) }
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
