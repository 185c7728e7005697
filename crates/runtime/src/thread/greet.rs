//! Opening connections, and finding out who is at the other end: `docs/protocols/greeting.md`.

use super::Thread;
use crate::{
    clock,
    connection::{Connection, Said, Stage},
    random, sockets,
    strangers::Strangers,
};
use lats_base::{Duration, Instant, RefCode, limits};
use lats_signals::{
    Lane, Malformed,
    hello::{Hello, HelloKind},
    proof::{End, Opening, Openings},
};
use rustix::fd::OwnedFd;
use socket2::{Domain, Socket, Type};
use std::net::SocketAddr;

/// Who has not proved its name after this has no business here.
pub(super) const GREETING_PATIENCE: Duration = Duration::from_millis(3_000);
/// Connections that are taken in one turn: those that have said something are heard before more of them come.
const ACCEPTED_AT_ONCE: usize = 32;

impl Thread {
    pub(super) fn accept(&mut self) {
        for _ in 0..ACCEPTED_AT_ONCE {
            let Some(shell) = &self.shell else { return };
            let Ok((stream, _)) = shell.listener.accept() else { return };
            if shell.greeted.len()
                >= limits::CLIENTS_PER_NODE_MAX + Lane::ALL.len() * limits::NODES_MAX
            {
                // Closing it is all that can be said to somebody whose protocol is unknown.
                continue;
            }
            let _ = stream.set_nonblocking(true);
            let _ = stream.set_nodelay(true);
            let connection = Connection::new(OwnedFd::from(stream), Stage::Greeting, clock::now());
            let id = self.watch(connection);
            self.make_room(|strangers| strangers.come(id));
        }
    }

    /// GREET-6: strangers that say nothing keep nobody out.
    fn make_room(&mut self, who: impl FnOnce(&mut Strangers) -> Option<u64>) {
        if let Some(leaves) = self.shell.as_mut().and_then(|shell| who(&mut shell.strangers)) {
            self.note_closed(leaves, Malformed("it has proved nothing, and made room for others"));
            self.close(leaves);
        }
    }

    /// Opens the links that are due.
    pub(super) fn open_links(&mut self, now: Instant) {
        let due = self.shell.as_mut().map_or_else(Vec::new, |shell| shell.links.due(now));
        for (node, lane, address) in due {
            let socket = match connecting(address) {
                Ok(socket) => socket,
                Err(_) => continue,
            };
            let mut connection = Connection::new(socket, Stage::Connecting, now);
            (connection.node, connection.lane) = (node, lane);
            let id = self.watch(connection);
            let peers = self.shell.as_mut().map(|shell| &mut shell.links.peers);
            if let Some(peer) = peers.and_then(|peers| peers.get_mut(&node)) {
                peer.open(lane, id, now);
            }
        }
        self.drop_the_silent(now);
    }

    fn own_hello(&self, lane: Lane) -> Hello {
        let shell = self.shell.as_ref();
        let (cluster_id, nonce) =
            shell.map(|shell| (shell.cluster_id, shell.nonce)).unwrap_or_default();
        Hello::node(self.place.node.get(), (self.place.life, nonce), cluster_id).on(lane)
    }

    fn own_opening(&self, lane: Lane) -> Result<Opening, Malformed> {
        let challenge =
            random::bytes().map_err(|_| Malformed("the operating system has no random bytes"))?;
        Ok(Opening { hello: self.own_hello(lane), challenge })
    }

    /// The kernel says how an attempt to connect has ended.
    pub(super) fn on_connected(&mut self, id: u64) {
        let lane = self.connections.get(&id).map(|c| c.lane).unwrap_or_default();
        let own = match self.own_opening(lane) {
            Ok(own) => own,
            Err(malformed) => {
                self.note_closed(id, malformed);
                return self.close(id);
            }
        };
        let Some(connection) = self.connections.get_mut(&id) else { return };
        match rustix::net::sockopt::socket_error(&*connection.socket) {
            Ok(Ok(())) => {
                connection.stage = Stage::Greeting;
                if let Some(sending) = connection.sending() {
                    sending.watch(&self.place.epoll, id, false);
                }
                connection.say(&own.to_bytes());
                connection.own = Some(Box::new(own));
            }
            Ok(Err(_)) | Err(_) => self.close(id),
        }
    }

    /// What has come on a connection whose other side has not proved yet who it is.
    pub(super) fn greet(&mut self, id: u64) -> Result<(), Malformed> {
        let stage = |thread: &Self| thread.connections.get(&id).map(|c| c.stage);
        if stage(self) == Some(Stage::Greeting) {
            self.hear_opening(id)?;
        }
        if stage(self) == Some(Stage::Proving) {
            self.hear_proof(id)?;
        }
        Ok(())
    }

    /// GREET-1: the other side says who it is. Nothing is believed yet.
    fn hear_opening(&mut self, id: u64) -> Result<(), Malformed> {
        let Some(shell) = &self.shell else { return Ok(()) };
        let (cluster_id, secret) = (shell.cluster_id, shell.secret.clone());
        let misfit = |hello: &Hello| hello.misfit(cluster_id);
        let Some(connection) = self.connections.get_mut(&id) else { return Ok(()) };
        let said = match connection.take_opening(|hello| misfit(hello).is_some())? {
            None => return Ok(()),
            Some(Said::Opening(said)) => said,
            Some(Said::Alone(hello)) => return self.end_greeting(id, &hello, misfit(&hello)),
        };
        let outgoing = connection.outgoing;
        if let Some(code) = self.unwelcome(id, &said.hello) {
            return self.end_greeting(id, &said.hello, Some(code));
        }
        let own = self.connections.get_mut(&id).and_then(|c| c.own.take());
        let lane = said.hello.lane().unwrap_or_default();
        let own = own.map_or_else(|| self.own_opening(lane), |own| Ok(*own))?;
        let Some(connection) = self.connections.get_mut(&id) else { return Ok(()) };
        let (node, life) = (connection.node, said.hello.incarnation);
        let both = if outgoing {
            let both = Openings { opener: own, acceptor: said };
            connection.say(&both.proof(&secret, End::Opener));
            both
        } else {
            connection.say(&own.to_bytes());
            Openings { opener: said, acceptor: own }
        };
        connection.said = Some(Box::new(both));
        connection.stage = Stage::Proving;
        match &mut self.shell {
            Some(shell) if outgoing => shell.links.answered(node, id, life),
            _ => self.make_room(|strangers| strangers.greets(id)),
        }
        Ok(())
    }

    /// GREET-4: why such a greeting is not to go on, whether it can be proved or not.
    fn unwelcome(&self, id: u64, hello: &Hello) -> Option<RefCode> {
        let (shell, connection) = (self.shell.as_ref()?, self.connections.get(&id)?);
        if hello.kind() != Some(HelloKind::Node) {
            // Clients open connections, and nobody else.
            return connection.outgoing.then_some(RefCode::NotAMember);
        }
        let node = hello.node;
        let asked = (connection.node, Some(connection.lane));
        let expected = !connection.outgoing || asked == (node, hello.lane());
        let known = expected && shell.links.peers.contains_key(&node);
        let possible = hello.is_possible_node() && node != self.place.node.get();
        (!known || !possible).then_some(RefCode::NotAMember)
    }

    /// A greeting ends without a link: the other side has refused, or we do.
    fn end_greeting(
        &mut self,
        id: u64,
        hello: &Hello,
        code: Option<RefCode>,
    ) -> Result<(), Malformed> {
        if hello.refusal != 0 {
            return Err(Malformed(RefCode::from_number(hello.refusal).text()));
        }
        let code = code.unwrap_or(RefCode::NotAMember);
        let lane = hello.lane().unwrap_or_default();
        let refusal = self.own_hello(lane).refusing(code);
        if let Some(connection) = self.connections.get(&id) {
            connection.say(refusal.to_bytes());
        }
        Err(Malformed(code.text()))
    }

    /// GREET-2: the other side proves that it knows the secret. From here on its greeting is believed.
    fn hear_proof(&mut self, id: u64) -> Result<(), Malformed> {
        let Some(secret) = self.shell.as_ref().map(|shell| shell.secret.clone()) else {
            return Ok(());
        };
        let Some(connection) = self.connections.get_mut(&id) else { return Ok(()) };
        let Some(both) = connection.said.as_deref().copied() else { return Ok(()) };
        let (from, hello) = match connection.outgoing {
            true => (End::Acceptor, both.acceptor.hello),
            false => (End::Opener, both.opener.hello),
        };
        match connection.take_proof() {
            None => return Ok(()),
            Some(Ok(proof)) if both.proves(&secret, from, &proof) => {}
            Some(Ok(_)) => return self.end_greeting(id, &hello, Some(RefCode::SecretWrong)),
            Some(Err(refusal)) => return self.end_greeting(id, &refusal, None),
        }
        connection.said = None;
        let accepted = (!connection.outgoing).then(|| both.proof(&secret, End::Acceptor));
        match hello.kind() {
            Some(HelloKind::Node) => return self.welcome_node(id, &hello, accepted),
            _ => self.welcome_client(id, &hello, accepted),
        }
        Ok(())
    }
}

/// A socket that is connecting, without waiting for it.
fn connecting(address: SocketAddr) -> std::io::Result<OwnedFd> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    socket.set_tcp_nodelay(true)?;
    sockets::notice_the_vanished(&socket, sockets::LINK)?;
    match socket.connect(&address.into()) {
        Ok(()) => {}
        Err(e) if e.raw_os_error() == Some(rustix::io::Errno::INPROGRESS.raw_os_error()) => {}
        Err(e) => return Err(e),
    }
    Ok(OwnedFd::from(socket))
}
