//! Links over TCP: to the addresses given, and to every data node of the map.

use super::{Client, LOOK_AGAIN, Wire};
use lats_base::{NodeId, RefCode};
use lats_signals::{
    hello::{HELLO_BYTES, Hello, HelloKind, MAGIC},
    proof::{End, OPENING_BYTES, Opening, Openings, PROOF_BYTES},
};
use rustix::net::sockopt;
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
/// As nodes have them, too: `runtime/src/sockets.rs`.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(5);
const KEEPALIVE_AGAIN: Duration = Duration::from_secs(2);
const UNANSWERED_MS: u32 = 15_000;
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

    fn flush(&self, _arrived: &mut Vec<u8>) {
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
        notice_the_vanished(&stream)?;
        let hello = self.greet(&mut stream).await.inspect_err(|error| {
            let why = error.get_ref().and_then(|source| source.downcast_ref::<RefCode>());
            if let Some(code) = why {
                self.state().refused.insert(address, *code);
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
        let opener = Opening { hello, challenge: challenge()? };
        stream.write_all(&opener.to_bytes()).await?;
        let mut bytes = [0; OPENING_BYTES];
        let (hello, rest) = bytes.split_at_mut(HELLO_BYTES);
        stream.read_exact(hello).await?;
        refused(hello)?;
        stream.read_exact(rest).await?;
        let acceptor = Opening::read(&bytes).ok_or_else(|| refusal(RefCode::VersionUnsupported))?;
        // A proof is for who claims to be a node of this cluster.
        if let Some(code) = misfit(&acceptor.hello, cluster_id) {
            return Err(refusal(code));
        }
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

/// Has the system end the connection when the node has vanished without a word.
fn notice_the_vanished(stream: &TcpStream) -> std::io::Result<()> {
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, KEEPALIVE_IDLE)?;
    sockopt::set_tcp_keepintvl(stream, KEEPALIVE_AGAIN)?;
    sockopt::set_tcp_user_timeout(stream, UNANSWERED_MS)?;
    Ok(())
}

/// Random bytes that were never used before.
fn challenge() -> std::io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}

/// GREET-7: why this is no node of the cluster that is wanted, or of any if none is (0).
fn misfit(acceptor: &Hello, cluster_id: u64) -> Option<RefCode> {
    let wanted = if cluster_id == 0 { acceptor.cluster_id } else { cluster_id };
    let is_node = acceptor.kind() == Some(HelloKind::Node) && acceptor.is_possible_node();
    acceptor.misfit(wanted).or_else(|| (!is_node).then_some(RefCode::NotAMember))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::{ClientOptions, clock};
    use lats_base::Nonce;
    use lats_signals::proof::Secret;
    use tokio::net::TcpListener;

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build();
        tokio.unwrap().block_on(future)
    }

    fn client_of(addresses: Vec<SocketAddr>, cluster_id: u64) -> Client {
        let secret = Some(Secret::new([7; 32]));
        Client::start(
            ClientOptions { addresses, cluster_id, secret, ..ClientOptions::default() },
            clock::now,
        )
    }

    /// Answers a client's opening with these bytes; gives how many bytes come then.
    async fn answering(listener: &TcpListener, answer: &[u8]) -> usize {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut bytes = [0; 200];
        stream.read_exact(&mut bytes[..OPENING_BYTES]).await.unwrap();
        stream.write_all(answer).await.unwrap();
        let mut count = 0;
        while let Ok(more @ 1..) = stream.read(&mut bytes[count..]).await {
            count += more;
        }
        count
    }

    async fn listener() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    }

    #[test]
    fn only_who_claims_to_be_a_node_of_the_cluster_gets_a_proof() {
        block_on(async {
            let node = Hello::node(1, (5, Nonce::default()), 42);
            let others = [
                Hello::client(5, 42),
                Hello::node(0, (5, Nonce::default()), 42),
                Hello::node(1, (5, Nonce::default()), 43),
            ];
            for (hello, proof) in
                others.map(|hello| (hello, 0)).into_iter().chain([(node, PROOF_BYTES)])
            {
                let (listener, address) = listener().await;
                let client = client_of(vec![address], 42);
                let opening = Opening { hello, challenge: [1; 32] }.to_bytes();
                let count = tokio::select! {
                    count = answering(&listener, &opening) => count,
                    // Who has proved waits for the other's proof.
                    () = tokio::time::sleep(PATIENCE * 2) => panic!("the client does not close"),
                };
                assert_eq!(count, proof, "{hello:?}");
                drop(client);
            }
        });
    }

    #[test]
    fn a_refusal_of_one_address_ends_nothing() {
        block_on(async {
            let refusal = Hello::node(1, (5, Nonce::default()), 42).refusing(RefCode::SecretWrong);
            let (refuses, first) = listener().await;
            let (silent, second) = listener().await;
            let refusing = async {
                loop {
                    answering(&refuses, refusal.to_bytes()).await;
                }
            };
            let span = Duration::from_millis(400);
            let waits = async |addresses| {
                let begun = tokio::time::Instant::now();
                let ended = client_of(addresses, 42).ready(span).await;
                (begun.elapsed() < span, ended.unwrap_err().code)
            };
            let both = async { (waits(vec![first, second]).await, waits(vec![first]).await) };
            let (with_other, alone) = tokio::select! {
                both = both => both,
                () = refusing => unreachable!(),
            };
            assert_eq!(with_other, (false, RefCode::SecretWrong));
            assert_eq!(alone, (true, RefCode::SecretWrong));
            drop(silent);
        });
    }
}
