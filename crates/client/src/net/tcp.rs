//! Links over TCP: to the addresses given, and to every data node of the map.

use super::{Client, LOOK_AGAIN, Wire};
use lats_base::{NodeId, RefCode};
use lats_signals::{
    hello::{HELLO_BYTES, Hello, MAGIC},
    proof::{End, OPENING_BYTES, Opening, Openings, PROOF_BYTES},
};
use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpStream, tcp::OwnedReadHalf, tcp::OwnedWriteHalf},
    sync::Notify,
};

struct TcpWire {
    buffer: Mutex<Vec<u8>>,
    written: Notify,
    closed: Notify,
}

const BUFFER_BYTES_MAX: usize = 16 << 20;
/// Read at once, unless an answer is longer.
const READ_BYTES: usize = 8 << 10;
const RETRY: Duration = Duration::from_millis(20);
const PATIENCE: Duration = Duration::from_millis(2_000);

impl Wire for TcpWire {
    fn send(&self, signal: &[u8]) -> bool {
        let mut buffer = self.buffer.lock().unwrap_or_else(PoisonError::into_inner);
        if buffer.len() + signal.len() > BUFFER_BYTES_MAX {
            return false;
        }
        buffer.extend_from_slice(signal);
        true
    }

    fn flush(&self) {
        self.written.notify_one();
    }

    fn close(&self) {
        self.closed.notify_one();
    }
}

impl Client {
    /// Keeps links to all data nodes.
    pub(super) async fn keep_links(self) {
        loop {
            let changed = self.inner.changed.notified();
            let missing = self.missing_links();
            let again = if missing.is_empty() { LOOK_AGAIN } else { RETRY };
            for address in missing {
                if !self.state().connecting.insert(address) {
                    continue;
                }
                let client = self.clone();
                tokio::spawn(async move {
                    // A dead one refuses at once; one that is silent does not.
                    let _ = tokio::time::timeout(PATIENCE, client.clone().link_to(address)).await;
                    client.state().connecting.remove(&address);
                });
            }
            let _ = tokio::time::timeout(again, changed).await;
        }
    }

    fn missing_links(&self) -> Vec<SocketAddr> {
        let map = self.map();
        let known = map.view.data_nodes().filter(|m| Some(m.node) != self.inner.options.home);
        let missing: Vec<SocketAddr> = known
            .filter(|m| !self.is_attached(m.node))
            .filter_map(|m| m.native_address.parse().ok())
            .collect();
        let lost = self.state().wires.is_empty() && self.inner.options.home.is_none();
        if lost { self.inner.options.addresses.clone() } else { missing }
    }

    async fn link_to(self, address: SocketAddr) -> std::io::Result<()> {
        let mut stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let hello = self.greet(&mut stream).await.inspect_err(|error| {
            let why = error.get_ref().and_then(|source| source.downcast_ref::<RefCode>());
            if let Some(code) = why {
                self.state().refused = Some(*code);
            }
        })?;
        let node = NodeId::new(hello.node);
        let wire = Arc::new(TcpWire {
            buffer: Mutex::new(Vec::new()),
            written: Notify::new(),
            closed: Notify::new(),
        });
        let link: Arc<dyn Wire> = wire.clone();
        if stream.local_addr()?.ip() == stream.peer_addr()?.ip() {
            self.with(|core| core.note_near(node));
        }
        let (reader, writer) = stream.into_split();
        if !self.attach(node, link.clone()) {
            return Ok(());
        }
        tokio::spawn(async move {
            // Whichever ends first ends the link.
            tokio::select! {
                _ = self.read_from(reader) => {}
                _ = write_to(writer, &wire) => {}
                () = wire.closed.notified() => {}
            }
            self.detach(node, &link);
        });
        Ok(())
    }

    /// Both sides prove that they know the cluster's secret (GREET-1, GREET-2).
    async fn greet(&self, stream: &mut TcpStream) -> std::io::Result<Hello> {
        let options = &self.inner.options;
        let secret = options.secret.clone().ok_or_else(|| refusal(RefCode::SecretWrong))?;
        let (id, cluster_id) = (self.random(), options.cluster_id);
        let hello = match options.admin {
            true => Hello::admin(id, cluster_id),
            false => Hello::client(id, cluster_id),
        };
        let opener = Opening { hello, challenge: challenge() };
        stream.write_all(&opener.to_bytes()).await?;
        let mut bytes = [0; OPENING_BYTES];
        let (hello, rest) = bytes.split_at_mut(HELLO_BYTES);
        stream.read_exact(hello).await?;
        refused(hello)?;
        stream.read_exact(rest).await?;
        let acceptor = Opening::read(&bytes).ok_or_else(|| refusal(RefCode::VersionUnsupported))?;
        let both = Openings { opener, acceptor };
        stream.write_all(&both.proof(&secret, End::Opener)).await?;
        let mut proof = [0; HELLO_BYTES];
        stream.read_exact(&mut proof[..PROOF_BYTES]).await?;
        if proof.starts_with(&MAGIC) {
            stream.read_exact(&mut proof[PROOF_BYTES..]).await?;
            refused(&proof)?;
        }
        match both.proves(&secret, End::Acceptor, &proof[..PROOF_BYTES]) {
            true => Ok(acceptor.hello),
            false => Err(refusal(RefCode::SecretWrong)),
        }
    }

    async fn read_from(&self, mut reader: OwnedReadHalf) -> std::io::Result<()> {
        let mut bytes = Vec::with_capacity(READ_BYTES);
        while reader.read_buf(&mut bytes).await? > 0 {
            match self.feed(&bytes) {
                Ok(used) => {
                    bytes.drain(..used);
                }
                Err(_) => return Ok(()),
            }
            if bytes.is_empty() {
                bytes.shrink_to(READ_BYTES);
            } else if bytes.capacity() - bytes.len() < READ_BYTES / 2 {
                // Of a long answer there is more each time.
                bytes.reserve(READ_BYTES.max(bytes.len()));
            }
            // Whoever has got an answer asks the next thing before more answers are read: so that the node has
            // something to do.
            tokio::task::yield_now().await;
        }
        Ok(())
    }
}

fn refusal(code: RefCode) -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::PermissionDenied, code)
}

/// An error if this greeting is a refusal, or none.
fn refused(bytes: &[u8]) -> std::io::Result<()> {
    match Hello::read(bytes) {
        Some(hello) if hello.refusal == 0 => Ok(()),
        Some(hello) => Err(refusal(RefCode::from_number(hello.refusal))),
        None => Err(refusal(RefCode::VersionUnsupported)),
    }
}

/// Random bytes that were never used before.
fn challenge() -> [u8; 32] {
    let mut bytes = [0; 32];
    let mut filled = 0;
    while filled < bytes.len() {
        let rest = &mut bytes[filled..];
        // Only a signal can interrupt it; then it is asked again.
        if let Ok(count) = rustix::rand::getrandom(rest, rustix::rand::GetRandomFlags::empty()) {
            filled += count;
        }
    }
    bytes
}

async fn write_to(mut writer: OwnedWriteHalf, wire: &TcpWire) -> std::io::Result<()> {
    loop {
        let bytes =
            std::mem::take(&mut *wire.buffer.lock().unwrap_or_else(PoisonError::into_inner));
        if bytes.is_empty() {
            wire.written.notified().await;
        } else {
            writer.write_all(&bytes).await?;
        }
    }
}
