//! A client's connection: bytes in, statements run, bytes out.
//!
//! Each connection is one task. A panic in it ends that task: its transaction is rolled back and
//! its socket closed, and no other connection notices.

mod commands;
mod cursor;
mod sink;
pub mod statements;
mod wire;

use crate::error;
use crate::session::{Client, Kept, Kind, Session, Shared};
use crate::sessions::Why;
use crate::store::Store;
use crate::variables::MAX_ALLOWED_PACKET;
use lats_mysql_wire::{
    AccountPassword, Capabilities, Command, HandshakeResponse, Nonce, OkPacket, PacketWriter,
    StatementParameters, StatusFlags,
};
use lats_values::SqlError;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, watch};
use wire::{Received, Wire};

/// How long a client may take to log in.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a client that has killed its own session, or is sent elsewhere, may take to hear of it.
const GOODBYE: Duration = Duration::from_millis(100);
/// The one account there is; it has no password, and listeners are on loopback only.
const ACCOUNT: &str = "root";

/// What a connection is told about itself.
#[derive(Clone, Debug)]
pub struct Options {
    /// CONNECTION_ID().
    pub connection_id: u32,
    /// Randomness for the login's challenge.
    pub random: [u8; 20],
    /// Randomness that stays here.
    pub secret: [u8; 20],
    /// Where the client connects from.
    pub host: String,
}

/// A thread that serves clients: its runtime, and what its sessions share.
pub struct Host<S> {
    runtime: Handle,
    shared: Arc<Shared<S>>,
    connections: Arc<AtomicUsize>,
}

impl<S: Store> Host<S> {
    /// A thread without clients. Its runtime must be running.
    pub fn new(runtime: Handle, shared: Shared<S>) -> Self {
        Self { runtime, shared: Arc::new(shared), connections: Arc::default() }
    }

    fn load(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Serves a client in this thread. It stays there: its statements wake nobody else.
    fn take(
        &self,
        socket: std::net::TcpStream,
        options: Options,
        stopping: Stopping,
        place: OwnedSemaphorePermit,
    ) {
        let (shared, counted) = (self.shared.clone(), Counted::new(&self.connections));
        self.runtime.spawn(async move {
            let id = options.connection_id;
            let served = match TcpStream::from_std(socket) {
                Ok(socket) => serve(shared, socket, options, stopping).await,
                Err(error) => Err(error),
            };
            if let Err(error) = served {
                tracing::debug!(connection = id, %error, "a client's connection ended");
            }
            drop((counted, place));
        });
    }
}

/// A connection that a thread has, however its task ends.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(connections: &Arc<AtomicUsize>) -> Self {
        connections.fetch_add(1, Ordering::Relaxed);
        Self(connections.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Serves clients of a listener until the node is to stop (STOP-2); ends when all of them are gone, or when
/// the node stays after all. Each goes to the thread that has the fewest, of which there must be one. `random` gives
/// fresh randomness for each connection.
///
/// # Errors
/// What the listener says.
pub async fn listen<S: Store>(
    hosts: &[Host<S>],
    listener: TcpListener,
    random: fn() -> io::Result<[u8; 20]>,
    mut stopping: Stopping,
) -> io::Result<()> {
    let Some(first) = hosts.first() else { return Ok(()) };
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            true = stops(&mut stopping) => break,
        };
        let (socket, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of file descriptors, or a client that left at once: others may still come.
                tracing::warn!(%error, "accepting a client failed");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let (random, secret) = match (random(), random()) {
            (Ok(random), Ok(secret)) => (random, secret),
            (Err(error), _) | (_, Err(error)) => {
                tracing::warn!(%error, "no random bytes for a client");
                continue;
            }
        };
        let options = Options {
            connection_id: first.shared.sessions().number(),
            random,
            secret,
            host: if peer.ip().is_loopback() { "localhost".into() } else { peer.ip().to_string() },
        };
        let Ok(place) = Arc::clone(first.shared.places()).try_acquire_owned() else {
            tokio::spawn(refuse(socket));
            continue;
        };
        // Requests and replies are small: waiting to fill packets would only delay them.
        let _ = socket.set_nodelay(true);
        let host = hosts.iter().min_by_key(|host| host.load()).unwrap_or(first);
        // It is in non-blocking mode, and stays so.
        match socket.into_std() {
            Ok(socket) => host.take(socket, options, stopping.clone(), place),
            Err(error) => tracing::warn!(%error, "a client's socket cannot be passed on"),
        }
    }
    drop(listener);
    let all = u32::try_from(first.shared.places_max()).unwrap_or(u32::MAX);
    tokio::select! {
        // It is never closed.
        all_gone = first.shared.places().acquire_many(all) => drop(all_gone),
        _ = stopping.wait_for(|stops| !*stops) => {}
    }
    Ok(())
}

/// Becomes true when the node is to stop.
pub type Stopping = watch::Receiver<bool>;

/// True when it is, false when that cannot be any more.
async fn stops(stopping: &mut Stopping) -> bool {
    stopping.wait_for(|stops| *stops).await.is_ok()
}

async fn refuse<T: AsyncWrite + Unpin>(mut io: T) {
    let mut writer = PacketWriter::new();
    writer.err(1040, b"08004", "Too many connections");
    let _ = io.write_all(writer.bytes()).await;
    let _ = io.shutdown().await;
}

/// Serves one client until it leaves.
///
/// # Errors
/// What reading and writing gives. A client that breaks the protocol is told so and left.
pub async fn serve<S, T>(
    shared: Arc<Shared<S>>,
    io: T,
    options: Options,
    stopping: Stopping,
) -> io::Result<()>
where
    S: Store,
    T: AsyncRead + AsyncWrite + Unpin + Send,
{
    let about = (&options.host[..], (shared.now_micros)());
    let memory = shared.memory();
    let entry = shared.sessions().enter(options.connection_id, about, Some(memory));
    let kept = Kept::nothing(memory, entry.handle(), Kind::Packets);
    let mut wire = Wire::new(io, Arc::clone(entry.handle()), kept);
    let nonce = Nonce::from_random(options.random);
    let login = wire.login(nonce, &options);
    let response = match tokio::time::timeout(LOGIN_TIMEOUT, login).await {
        Ok(response) => response?,
        Err(_) => return Err(io::ErrorKind::TimedOut.into()),
    };
    let Some(response) = response else { return Ok(()) };
    let mut connection = Connection::new(wire, shared, nonce, &options, &response);
    connection.start(&response).await?;
    connection.run(stopping).await
}

fn account(name: &str) -> Option<AccountPassword> {
    (name == ACCOUNT).then_some(AccountPassword::Empty)
}

/// What is kept of a prepared statement besides the session's part.
struct Bound {
    parameters: StatementParameters,
    /// An error of COM_STMT_SEND_LONG_DATA, which has no reply of its own.
    failure: Option<SqlError>,
    /// What its long data takes.
    kept: Kept,
    /// Rows that wait to be fetched.
    cursor: Option<Cursor>,
}

impl Bound {
    /// Its parameters could not be kept: the execution that they are for has the error, and they take no memory.
    fn fail(&mut self, failure: SqlError) {
        self.parameters.reset();
        self.kept.shrink_to(0);
        self.failure = Some(failure);
    }
}

/// Rows of a result that wait to be fetched.
struct Cursor {
    /// As they will be sent.
    rows: VecDeque<Box<[u8]>>,
    kept: Kept,
}

struct Connection<S: Store, T> {
    wire: Wire<T>,
    shared: Arc<Shared<S>>,
    session: Session<S>,
    client: Client,
    nonce: Nonce,
    capabilities: Capabilities,
    multi_statements: bool,
    statements: BTreeMap<u32, Bound>,
}

impl<S, T> Connection<S, T>
where
    S: Store,
    T: AsyncRead + AsyncWrite + Unpin + Send,
{
    fn new(
        wire: Wire<T>,
        shared: Arc<Shared<S>>,
        nonce: Nonce,
        options: &Options,
        response: &HandshakeResponse,
    ) -> Self {
        let capabilities = response.capabilities;
        let client = Client {
            connection_id: options.connection_id,
            user: response.user.clone(),
            host: options.host.clone(),
            found_rows: capabilities.contains(Capabilities::FOUND_ROWS),
            interactive: capabilities.contains(Capabilities::INTERACTIVE),
            secret: options.secret,
            handle: Arc::clone(&wire.handle),
        };
        client.handle.describe(&client.user, None);
        Self {
            wire,
            session: Session::new(Arc::clone(&shared), client.clone()),
            shared,
            client,
            nonce,
            capabilities,
            multi_statements: capabilities.contains(Capabilities::MULTI_STATEMENTS),
            statements: BTreeMap::new(),
        }
    }

    /// Selects the database that the login named, and says OK.
    async fn start(&mut self, response: &HandshakeResponse) -> io::Result<()> {
        let limit = usize::try_from(MAX_ALLOWED_PACKET).unwrap_or(usize::MAX);
        self.wire.input.decoder.enter_command_phase(limit);
        if let Some(database) = response.database.as_deref().filter(|name| !name.is_empty())
            && let Err(error) = self.session.use_database(database)
        {
            self.wire.writer.err(error.errno, &error.sqlstate, &error.message);
            self.wire.send().await?;
            return Err(io::Error::other(error.message));
        }
        self.ok();
        self.wire.send().await
    }

    async fn run(&mut self, mut stopping: Stopping) -> io::Result<()> {
        let handle = Arc::clone(&self.client.handle);
        loop {
            // STOP-2: between two transactions a client can go elsewhere.
            let free = !self.session.transaction_is_open();
            let packet = tokio::select! {
                biased;
                // Who sends without end is looked at behind each command.
                packet = self.wire.receive() => packet?,
                () = handle.ended(Why::Connection) => {
                    self.end_of_the_idle().await;
                    break;
                }
                true = stops(&mut stopping), if free => {
                    self.send_elsewhere().await?;
                    break;
                }
            };
            let Some(Received { packet, refusal }) = packet else { break };
            let is_over = || handle.why().is_some_and(|why| why >= Why::Connection);
            // It has come together with what ends the session.
            if is_over() {
                self.end_of_the_idle().await;
                break;
            }
            self.wire.writer.start_reply(packet.sequence);
            match (refusal, Command::parse(&packet.payload, self.capabilities)) {
                (Some(refusal), command) => self.refuse(refusal, command.ok().as_ref()),
                (None, Ok(Command::Quit)) => break,
                (None, Ok(command)) => self.command(command).await?,
                (None, Err(error)) => self.wire.writer.wire_err(&error),
            }
            drop(packet);
            self.wire.input.packet_is_done();
            // SESSION-6: whatever a client asks for is a sign of life.
            handle.rest((self.shared.now_micros)());
            if is_over() {
                self.say_goodbye().await;
                break;
            }
            self.wire.send().await?;
        }
        self.session.rollback().await;
        Ok(())
    }

    /// There was no memory for a command's packet.
    fn refuse(&mut self, refusal: SqlError, command: Option<&Command<'_>>) {
        let Some(Command::StmtSendLongData { statement_id, .. }) = command else {
            self.err(&refusal);
            return;
        };
        // It has no reply: the execution has it.
        if let Some(bound) = self.statements.get_mut(statement_id) {
            bound.fail(refusal);
        }
    }

    /// STOP-2: the node is to stop. A statement that is on its way by now is answered by this, and nobody runs it. The client
    /// can read it whatever it sends meanwhile.
    async fn send_elsewhere(&mut self) -> io::Result<()> {
        let error = error::sent_elsewhere();
        self.wire.writer.start_reply(0);
        self.err(&error);
        self.wire.send().await?;
        self.wire.output.shutdown().await?;
        let _ = tokio::time::timeout(GOODBYE, self.wire.input.pass_over()).await;
        Ok(())
    }

    /// Who has asked nothing for too long is told so, as in MySQL.
    async fn end_of_the_idle(&mut self) {
        if self.client.handle.why() != Some(Why::Idle) {
            return;
        }
        self.wire.writer.start_reply(0);
        let text = "The client was disconnected by the server because of inactivity. See wait_timeout and interactive_timeout for \
                    configuring this behavior.";
        self.wire.writer.err(4031, b"HY000", text);
        // It is gone, or does not read.
        let (output, bytes) = (&mut self.wire.output, self.wire.writer.bytes());
        let _ = tokio::time::timeout(GOODBYE, output.write_all(bytes)).await;
    }

    /// As in MySQL, who was killed by another session hears nothing but the end of the connection.
    async fn say_goodbye(&mut self) {
        if self.session.ends_itself() {
            // It is gone, or does not read.
            let (output, bytes) = (&mut self.wire.output, self.wire.writer.bytes());
            let _ = tokio::time::timeout(GOODBYE, output.write_all(bytes)).await;
        }
    }

    fn status(&self) -> StatusFlags {
        StatusFlags::NONE
            .with(StatusFlags::AUTOCOMMIT, self.session.autocommit())
            .with(StatusFlags::IN_TRANS, self.session.transaction_is_open())
    }

    fn ok(&mut self) {
        let status = self.status();
        self.wire.writer.ok(&OkPacket { status, ..OkPacket::default() });
    }

    fn err(&mut self, error: &SqlError) {
        self.wire.writer.err(error.errno, &error.sqlstate, &error.message);
    }
}
