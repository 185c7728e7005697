//! Opening connections: who is at the other end, and what control must know of it.

use super::{Thread, shell::Greeted};
use crate::{
    clock,
    connection::{Connection, Stage},
    output::Output,
};
use lats_base::{Duration, Instant, RefCode, limits};
use lats_signals::{
    BlockRef, Malformed,
    control::{LinkDownRep, LinkUpRep},
    hello::{Hello, HelloKind},
};
use rustix::fd::OwnedFd;
use socket2::{Domain, Socket, Type};
use std::{net::SocketAddr, sync::Arc};

/// Who has not said its name after this has no business here.
pub(super) const GREETING_PATIENCE: Duration = Duration::from_millis(3_000);

impl Thread {
    pub(super) fn accept(&mut self) {
        loop {
            let Some(shell) = &self.shell else { return };
            let Ok((stream, _)) = shell.listener.accept() else { return };
            let is_new = |c: &&Connection| matches!(c.stage, Stage::Greeting | Stage::Connecting);
            let all = shell.greeted.len() + self.connections.values().filter(is_new).count();
            if all >= limits::CLIENTS_PER_NODE_MAX + limits::NODES_MAX {
                // Closing it is all that can be said to somebody whose protocol is unknown.
                continue;
            }
            let _ = stream.set_nonblocking(true);
            let _ = stream.set_nodelay(true);
            self.watch(Connection::new(OwnedFd::from(stream), Stage::Greeting, clock::now()));
        }
    }

    /// Opens the links that are due.
    pub(super) fn open_links(&mut self, now: Instant) {
        let due = self.shell.as_mut().map_or_else(Vec::new, |shell| shell.links.due(now));
        for (node, address) in due {
            let socket = match connecting(address) {
                Ok(socket) => socket,
                Err(e) if e.kind() == std::io::ErrorKind::ConnectionRefused => {
                    self.is_gone(node);
                    continue;
                }
                Err(_) => continue,
            };
            let mut connection = Connection::new(socket, Stage::Connecting, now);
            connection.node = node;
            let id = self.watch(connection);
            let peers = self.shell.as_mut().map(|shell| &mut shell.links.peers);
            if let Some(peer) = peers.and_then(|peers| peers.get_mut(&node)) {
                peer.attempt = Some(id);
            }
        }
        self.drop_the_silent(now);
    }

    fn own_hello(&self) -> Hello {
        let cluster_id = self.shell.as_ref().map_or(0, |shell| shell.cluster_id);
        Hello::node(self.place.node.get(), self.place.life, cluster_id)
    }

    /// The kernel says how an attempt to connect has ended.
    pub(super) fn on_connected(&mut self, id: u64) {
        let hello = self.own_hello();
        let Some(connection) = self.connections.get_mut(&id) else { return };
        match rustix::net::sockopt::socket_error(&*connection.socket) {
            Ok(Ok(())) => {
                connection.stage = Stage::Greeting;
                if let Some(sending) = connection.sending() {
                    sending.watch(&self.place.epoll, id, false);
                }
                say(&connection.output, &hello);
            }
            Ok(Err(rustix::io::Errno::CONNREFUSED)) => {
                let node = connection.node;
                self.close(id, true);
                self.is_gone(node);
            }
            Ok(Err(_)) | Err(_) => self.close(id, false),
        }
    }

    /// The port of a node refuses: the life that we had a link to is gone for certain.
    fn is_gone(&mut self, node: u16) {
        let peers = self.shell.as_mut().map(|shell| &mut shell.links.peers);
        let Some(peer) = peers.and_then(|peers| peers.get_mut(&node)) else { return };
        if peer.last_life != 0 && !peer.told_gone {
            peer.told_gone = true;
            let body = LinkDownRep {
                node: u64::from(node),
                incarnation: u64::from(peer.last_life),
                gone: 1,
            };
            self.tell(BlockRef::control(self.place.node), &body);
        }
    }

    /// The other side says who it is.
    pub(super) fn greet(&mut self, id: u64) -> Result<(), Malformed> {
        let own = self.own_hello();
        let Some(connection) = self.connections.get_mut(&id) else { return Ok(()) };
        let Some(hello) = connection.take_hello()? else { return Ok(()) };
        if hello.refusal != 0 {
            let code = RefCode::from_number(hello.refusal);
            tracing::warn!(node = hello.node, "the other side refuses: {code}");
            return Err(Malformed("refused by the other side"));
        }
        if let Some(code) = hello.misfit(own.cluster_id) {
            say(&connection.output, &own.refusing(code));
            return Err(Malformed("another cluster or version"));
        }
        let answers = !connection.outgoing;
        match hello.kind() {
            Some(HelloKind::Client) if answers => self.greet_client(id, &own),
            Some(HelloKind::Node) => return self.greet_node(id, &hello, &own),
            _ => return Err(Malformed("not a greeting for us")),
        }
        Ok(())
    }

    fn greet_client(&mut self, id: u64, own: &Hello) {
        let (Some(shell), Some(connection)) = (&mut self.shell, self.connections.get_mut(&id))
        else {
            return;
        };
        let slot = shell.next_slot;
        shell.next_slot += 1;
        connection.stage = Stage::Client(slot);
        say(&connection.output, own);
        shell.directory.set_client(slot, Some(connection.output.clone()));
        shell.use_connection(id, connection);
    }

    fn greet_node(&mut self, id: u64, hello: &Hello, own: &Hello) -> Result<(), Malformed> {
        let (node, me) = (hello.node, self.place.node.get());
        let (Some(shell), Some(connection)) = (&mut self.shell, self.connections.get_mut(&id))
        else {
            return Ok(());
        };
        let outgoing = connection.outgoing;
        if node == me || (outgoing && connection.node != node) {
            return Err(Malformed("not the node that was expected"));
        }
        let peer = shell.links.peers.entry(node).or_default();
        if hello.incarnation < peer.last_life {
            return Err(Malformed("an earlier life of the node"));
        }
        // Both may open a connection at the same time: the larger node's stays. If the smaller one
        // has lost its end of it, we shall notice, and then its next attempt is welcome.
        let ours =
            peer.attempt.is_some() || (peer.link.is_some() && peer.last_life == hello.incarnation);
        if !outgoing && ours && me > node {
            tracing::debug!(node, "closing a connection: ours to this node is there or on its way");
            self.close(id, false);
            return Ok(());
        }
        let former = (peer.link.take(), peer.last_life);
        let attempt = peer.attempt.take().filter(|a| *a != id);
        peer.link = Some(id);
        peer.last_life = hello.incarnation;
        peer.told_gone = false;
        connection.node = node;
        connection.becomes_link(hello.incarnation);
        if !outgoing {
            say(&connection.output, own);
        }
        shell.directory.set_node(node, Some(connection.output.clone()));
        shell.use_connection(id, connection);
        if let Some(attempt) = attempt {
            self.forget(attempt);
        }
        self.note_former(node, former, hello.incarnation);
        let body = LinkUpRep { node: u64::from(node), incarnation: u64::from(hello.incarnation) };
        self.tell(BlockRef::control(self.place.node), &body);
        Ok(())
    }

    /// A new link takes the place of a former one; a new life proves the former one gone.
    fn note_former(&mut self, node: u16, former: (Option<u64>, u32), life: u32) {
        let (link, last_life) = former;
        if let Some(link) = link {
            self.forget(link);
        }
        let replaced = last_life != 0 && last_life != life;
        if link.is_some() || replaced {
            let body = LinkDownRep {
                node: u64::from(node),
                incarnation: u64::from(last_life),
                gone: u64::from(replaced),
            };
            self.tell(BlockRef::control(self.place.node), &body);
        }
    }

    /// Closes a connection that another one has taken the place of: control is told of that one.
    fn forget(&mut self, id: u64) {
        let greeted = self.shell.as_mut().and_then(|shell| shell.greeted.remove(&id));
        if let Some(greeted) = greeted {
            // The thread that reads it notices.
            greeted.output.close();
        }
        self.hungry.remove(&id);
        let Some(connection) = self.connections.remove(&id) else { return };
        if let Some(sending) = connection.sending() {
            sending.unwatch();
            sending.close();
        }
        self.tell_end(connection.stage, connection.node, connection.life);
    }
}

impl super::Shell {
    /// THREAD-2: from now on a thread reads from this connection. Those with the same node are read by the same thread: what comes
    /// by a new link comes after what came by the former one.
    fn use_connection(&mut self, id: u64, connection: &Connection) {
        let number = match connection.stage {
            Stage::Client(slot) => slot as usize,
            _ => usize::from(connection.node),
        };
        let reader = self.readers.get(number % self.readers.len().max(1));
        let greeted = Greeted {
            output: connection.output.clone(),
            life: connection.life,
            reader: reader.copied().unwrap_or(0),
        };
        self.greeted.insert(id, greeted);
    }
}

/// Says who we are, at once.
fn say(output: &Arc<Output>, hello: &Hello) {
    output.queue(hello.to_bytes());
    // Nobody else knows it yet.
    let _ = output.flush();
}

/// A socket that is connecting, without waiting for it.
fn connecting(address: SocketAddr) -> std::io::Result<OwnedFd> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    socket.set_tcp_nodelay(true)?;
    match socket.connect(&address.into()) {
        Ok(()) => {}
        Err(e) if e.raw_os_error() == Some(rustix::io::Errno::INPROGRESS.raw_os_error()) => {}
        Err(e) => return Err(e),
    }
    Ok(OwnedFd::from(socket))
}
