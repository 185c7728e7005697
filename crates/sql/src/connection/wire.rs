//! A client's socket with its codec. What comes in and what goes out are apart, so that a statement's rows can be sent while
//! somebody looks whether the client is still there.

use super::{Options, account};
use crate::session::Kept;
use crate::sessions::{Handle, Why};
use lats_mysql_wire::{
    HandshakeResponse, Login, LoginOutcome, Nonce, Packet, PacketDecoder, PacketWriter, WireError,
};
use lats_values::SqlError;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf};

/// Bytes that are read at once.
const READ_BYTES: usize = 16 << 10;
/// Smaller packets are read without asking whether there is memory.
const SMALL_PACKET_BYTES: usize = 64 << 10;
/// How long a client may pause within a packet: `net_read_timeout`.
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// Space that is kept for what is sent.
const KEPT_OUTPUT_BYTES: usize = 256 << 10;
/// Bytes that may come in while a statement runs; the end of a client that sends more is seen later.
const AHEAD_BYTES_MAX: usize = 64 << 10;

/// The socket with its codec.
pub(super) struct Wire<T> {
    pub(super) input: Input<T>,
    pub(super) output: WriteHalf<T>,
    pub(super) writer: PacketWriter,
    pub(super) handle: Arc<Handle>,
}

/// What comes in.
pub(super) struct Input<T> {
    io: ReadHalf<T>,
    pub(super) decoder: PacketDecoder,
    buffer: Box<[u8]>,
    /// What a large packet takes.
    kept: Kept,
    /// There was no memory for the packet that comes.
    refusal: Option<SqlError>,
}

/// What a client has sent.
pub(super) struct Received {
    pub(super) packet: Packet,
    /// There was no memory for it: this is its answer.
    pub(super) refusal: Option<SqlError>,
}

impl<T: AsyncRead> Input<T> {
    /// Reads some bytes; false at the end.
    async fn read(&mut self) -> io::Result<bool> {
        let count = self.io.read(&mut self.buffer).await?;
        match self.buffer.get(..count) {
            Some(bytes) if count > 0 => self.decoder.feed(bytes),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Reads until the client has closed, and drops what comes: a socket that is closed with input that nobody has read takes its
    /// last output with it.
    pub(super) async fn pass_over(&mut self) {
        while matches!(self.io.read(&mut self.buffer).await, Ok(count) if count > 0) {}
    }

    /// Asks for memory for a large packet that has begun, and forgets the packet if there is none. Before its bytes come it is
    /// asked whether there is room for all that is announced; what is counted is what has come.
    fn hold_packet(&mut self) {
        let Some((announced, space)) = self.decoder.unfinished() else { return };
        if announced <= SMALL_PACKET_BYTES || space < self.kept.bytes() {
            return;
        }
        let is_new = self.kept.bytes() == 0;
        let held = match is_new {
            true => self.kept.becomes(announced).map(|()| self.kept.shrink_to(space)),
            false => self.kept.becomes(space),
        };
        if let Err(refusal) = held {
            self.decoder.pass_over();
            self.kept.shrink_to(0);
            self.refusal = Some(refusal);
        }
    }

    /// A packet's bytes are no more than what its statement holds from now on: `bytes` of it are kept.
    pub(super) fn packet_is_done(&mut self) {
        self.kept.shrink_to(0);
    }

    /// Waits until the client is gone, and keeps what it sends meanwhile.
    async fn end(&mut self) {
        while self.decoder.buffered_bytes() < AHEAD_BYTES_MAX {
            match self.read().await {
                Ok(true) => {}
                Ok(false) | Err(_) => return,
            }
        }
        std::future::pending().await
    }

    /// Runs a statement, which is ended when its client is gone. Statements are large: none is moved.
    pub(super) async fn with_end_watched<R>(
        &mut self,
        handle: &Handle,
        mut statement: Pin<&mut impl Future<Output = R>>,
    ) -> R {
        tokio::select! {
            biased;
            result = &mut statement => result,
            () = self.end() => {
                handle.end(Why::Gone);
                statement.await
            }
        }
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Wire<T> {
    pub(super) fn new(io: T, handle: Arc<Handle>, kept: Kept) -> Self {
        let (input, output) = tokio::io::split(io);
        let buffer = vec![0; READ_BYTES].into_boxed_slice();
        let decoder = PacketDecoder::new();
        let input = Input { io: input, decoder, buffer, kept, refusal: None };
        Self { input, output, writer: PacketWriter::new(), handle }
    }

    /// Sends all that was written. A client that does not read does not keep a session that is killed.
    pub(super) async fn send(&mut self) -> io::Result<()> {
        if self.writer.bytes().is_empty() {
            return Ok(());
        }
        let output = &mut self.output;
        let sent = async {
            output.write_all(self.writer.bytes()).await?;
            output.flush().await
        };
        tokio::select! {
            biased;
            sent = sent => sent?,
            () = self.handle.ended(Why::Connection) => return Err(io::ErrorKind::ConnectionAborted.into()),
        }
        self.writer.clear();
        self.writer.shrink_to(KEPT_OUTPUT_BYTES);
        Ok(())
    }

    /// The next packet; none when the client closes, or has lost the thread and was told so.
    pub(super) async fn receive(&mut self) -> io::Result<Option<Received>> {
        loop {
            match self.input.decoder.next_packet() {
                Ok(Some(packet)) => {
                    let refusal = self.input.refusal.take();
                    return Ok(Some(Received { packet, refusal }));
                }
                Ok(None) => self.input.hold_packet(),
                Err(error) => {
                    self.leave(&error).await?;
                    return Ok(None);
                }
            }
            let is_within = self.input.decoder.is_within_packet();
            let read = self.input.read();
            let more = match is_within {
                false => read.await?,
                // Who stops in the middle of a packet does not keep its memory for ever.
                true => match tokio::time::timeout(PAUSE_MAX, read).await {
                    Ok(more) => more?,
                    Err(_) => {
                        self.writer.start_reply(0);
                        self.writer.err(
                            1159,
                            b"08S01",
                            "Got timeout reading communication packets",
                        );
                        self.send().await?;
                        self.output.shutdown().await?;
                        return Ok(None);
                    }
                },
            };
            if !more {
                return Ok(None);
            }
        }
    }

    async fn leave(&mut self, error: &WireError) -> io::Result<()> {
        self.writer.start_reply(0);
        self.writer.wire_err(error);
        self.send().await?;
        self.output.shutdown().await
    }

    pub(super) async fn login(
        &mut self,
        nonce: Nonce,
        options: &Options,
    ) -> io::Result<Option<Box<HandshakeResponse>>> {
        let mut login = Login::new(options.connection_id, nonce, &options.host);
        login.greet(&mut self.writer);
        self.send().await?;
        loop {
            let Some(Received { packet, .. }) = self.receive().await? else { return Ok(None) };
            match login.on_packet(&packet, account, &mut self.writer) {
                LoginOutcome::Continue => self.send().await?,
                LoginOutcome::Accepted(response) => return Ok(Some(response)),
                LoginOutcome::Refused => {
                    self.send().await?;
                    self.output.shutdown().await?;
                    return Ok(None);
                }
            }
        }
    }
}
