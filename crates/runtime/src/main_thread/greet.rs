//! Opening and closing connections: who is at the other end, and what control must know of it.

use super::{ClientAt, MainThread};
use crate::{
    clock,
    connection::{Connection, Stage},
};
use lats_base::{NodeId, RefCode, limits};
use lats_signals::{
    BlockRef, Body, Malformed,
    buffer::Route,
    control::{ClientGoneRep, LinkDownRep, LinkUpRep},
    hello::{Hello, HelloKind},
};
use rustix::{event::epoll, fd::OwnedFd};
use socket2::{Domain, Socket, Type};
use std::net::SocketAddr;

impl MainThread {
    pub(super) fn accept(&mut self) {
        while let Ok((stream, _)) = self.listener.accept() {
            if self.connections.len() >= limits::CLIENTS_PER_NODE_MAX + limits::NODES_MAX {
                // Closing it is all that can be said to somebody whose protocol is unknown.
                continue;
            }
            let _ = stream.set_nonblocking(true);
            let _ = stream.set_nodelay(true);
            self.add(OwnedFd::from(stream), Stage::Greeting);
        }
    }

    fn add(&mut self, socket: OwnedFd, stage: Stage) -> u64 {
        let id = self.next_connection;
        self.next_connection += 1;
        let mut flags = epoll::EventFlags::IN;
        if stage == Stage::Connecting {
            flags |= epoll::EventFlags::OUT;
        }
        let connection = Connection::new(socket, stage, clock::now());
        let data = epoll::EventData::new_u64(id);
        let _ = epoll::add(&self.epoll, &*connection.socket, data, flags);
        self.connections.insert(id, connection);
        id
    }

    /// Opens the links that are due.
    pub(super) fn open_links(&mut self) {
        let now = clock::now();
        for (node, address) in self.links.due(now) {
            let socket = match connecting(address) {
                Ok(socket) => socket,
                Err(e) if e.kind() == std::io::ErrorKind::ConnectionRefused => {
                    self.is_gone(node);
                    continue;
                }
                Err(_) => continue,
            };
            let id = self.add(socket, Stage::Connecting);
            if let Some(connection) = self.connections.get_mut(&id) {
                connection.node = node;
            }
            if let Some(peer) = self.links.peers.get_mut(&node) {
                peer.attempt = Some(id);
            }
        }
        self.drop_the_silent(now);
    }

    /// The kernel says how an attempt to connect has ended.
    pub(super) fn on_connected(&mut self, id: u64) {
        let hello = Hello::node(self.node.get(), self.life, self.cluster_id);
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let error = rustix::net::sockopt::socket_error(&*connection.socket);
        match error {
            Ok(Ok(())) => {
                connection.stage = Stage::Greeting;
                connection.queue(hello.to_bytes());
                self.dirty.insert(id);
                self.watch_output(id);
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
        let Some(peer) = self.links.peers.get_mut(&node) else { return };
        if peer.last_life != 0 && !peer.told_gone {
            peer.told_gone = true;
            let body = LinkDownRep {
                node: u64::from(node),
                incarnation: u64::from(peer.last_life),
                gone: 1,
            };
            self.tell(BlockRef::control(self.node), &body);
        }
    }

    /// The other side says who it is.
    pub(super) fn greet(&mut self, id: u64) -> Result<(), Malformed> {
        let Some(connection) = self.connections.get_mut(&id) else { return Ok(()) };
        let Some(hello) = connection.take_hello()? else { return Ok(()) };
        let own = Hello::node(self.node.get(), self.life, self.cluster_id);
        if hello.refusal != 0 {
            let code = RefCode::from_number(hello.refusal);
            tracing::warn!(node = hello.node, "the other side refuses: {code}");
            return Err(Malformed("refused by the other side"));
        }
        if let Some(code) = hello.misfit(self.cluster_id) {
            connection.queue(own.refusing(code).to_bytes());
            connection.flush();
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
        let slot = self.new_slot(ClientAt::Connection(id));
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.stage = Stage::Client(slot);
            connection.queue(own.to_bytes());
            self.dirty.insert(id);
        }
    }

    fn greet_node(&mut self, id: u64, hello: &Hello, own: &Hello) -> Result<(), Malformed> {
        let node = hello.node;
        let Some(connection) = self.connections.get_mut(&id) else { return Ok(()) };
        let outgoing = connection.outgoing;
        if node == self.node.get() || (outgoing && connection.node != node) {
            return Err(Malformed("not the node that was expected"));
        }
        let peer = self.links.peers.entry(node).or_default();
        if hello.incarnation < peer.last_life {
            return Err(Malformed("an earlier life of the node"));
        }
        // Both may open a connection at the same time: the larger node's stays. If the smaller one
        // has lost its end of it, we shall notice, and then its next attempt is welcome.
        let ours =
            peer.attempt.is_some() || (peer.link.is_some() && peer.last_life == hello.incarnation);
        if !outgoing && ours && self.node.get() > node {
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
        connection.life = hello.incarnation;
        connection.stage = Stage::Node;
        if !outgoing {
            connection.queue(own.to_bytes());
            self.dirty.insert(id);
        }
        if let Some(attempt) = attempt {
            self.forget(attempt);
        }
        self.note_former(node, former, hello.incarnation);
        let body = LinkUpRep { node: u64::from(node), incarnation: u64::from(hello.incarnation) };
        self.tell(BlockRef::control(self.node), &body);
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
            self.tell(BlockRef::control(self.node), &body);
        }
    }

    fn forget(&mut self, id: u64) {
        if let Some(connection) = self.connections.remove(&id) {
            let _ = epoll::delete(&self.epoll, &*connection.socket);
        }
        self.dirty.remove(&id);
        self.hungry.remove(&id);
    }

    /// Closes a connection and tells whom it concerns.
    pub(super) fn close(&mut self, id: u64, refused: bool) {
        let Some(connection) = self.connections.get(&id) else { return };
        let (stage, node, life) = (connection.stage, connection.node, connection.life);
        self.forget(id);
        if let Some(peer) = self.links.peers.get(&node) {
            let (is_attempt, is_link) = (peer.attempt == Some(id), peer.link == Some(id));
            if is_attempt {
                self.links.failed(node, clock::now());
            }
            if is_link {
                self.links.lost(node, clock::now());
                let body = LinkDownRep {
                    node: u64::from(node),
                    incarnation: u64::from(life),
                    gone: u64::from(refused),
                };
                self.tell(BlockRef::control(self.node), &body);
            }
        }
        if let Stage::Client(slot) = stage {
            self.clients.remove(&slot);
            self.tell_client_gone(slot);
        }
    }

    fn tell_client_gone(&mut self, slot: u32) {
        let blocks: Vec<BlockRef> = self
            .placement
            .threads
            .iter()
            .flatten()
            .map(|(kind, instance)| BlockRef::new(self.node, *kind, *instance))
            .collect();
        let body = ClientGoneRep { slot: u64::from(slot) };
        blocks.into_iter().for_each(|block| self.tell(block, &body));
    }

    /// Sends a signal of the shell to a block of this node.
    pub(super) fn tell<B: Body>(&mut self, receiver: BlockRef, body: &B) {
        let sender = BlockRef::shell(self.node);
        let route = Route { sender, receiver, incarnation: self.life };
        self.entering.push(route, body, &[]);
        self.enter();
    }

    /// Control has removed a life of a node: its link is closed.
    pub(super) fn close_link(&mut self, node: u16, life: u32) {
        let link = self.links.link(node);
        if let Some(id) = link
            && self.connections.get(&id).is_some_and(|c| c.life == life)
        {
            self.close(id, false);
        }
    }

    /// The cluster's nodes have changed.
    pub(super) fn set_addresses(&mut self, addresses: &[(NodeId, u32, SocketAddr)]) {
        for (node, peer) in &mut self.links.peers {
            peer.wanted = addresses.iter().any(|(n, _, _)| n.get() == *node);
        }
        for (node, _, address) in addresses {
            if *node == self.node {
                continue;
            }
            let peer = self.links.peers.entry(node.get()).or_default();
            peer.address = Some(*address);
            peer.wanted = true;
        }
    }
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
