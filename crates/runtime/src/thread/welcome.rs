//! A connection whose other side has proved who it is becomes a client's, or the link to a node; and what control must know of it.

use super::{Thread, shell::Greeted};
use crate::{
    clock,
    connection::{Connection, Stage},
    links::{Peer, Process, Taken},
    output::Output,
    sockets,
};
use lats_signals::{
    BlockRef, Lane, Malformed, Principal,
    control::LinkUpRep,
    hello::{Hello, HelloKind},
    proof::PROOF_BYTES,
};

use std::sync::Arc;

/// What tells the opener of a connection that it is accepted, and by whom.
type Proof = [u8; PROOF_BYTES];

impl Thread {
    /// A client has proved itself; `accepted` tells it that it may begin.
    pub(super) fn welcome_client(&mut self, id: u64, hello: &Hello, accepted: Option<Proof>) {
        let (Some(shell), Some(connection)) = (&mut self.shell, self.connections.get_mut(&id))
        else {
            return;
        };
        shell.strangers.leaves(id);
        let slot = shell.next_slot;
        shell.next_slot += 1;
        connection.stage = Stage::Client(slot);
        connection.principal = match hello.kind() {
            Some(HelloKind::Admin) => Principal::Admin,
            _ => Principal::Client,
        };
        connection.accept(accepted);
        shell.directory.set_client(slot, Some(connection.output.clone()));
        shell.use_connection(id, connection);
    }

    /// A node has proved itself: the connection becomes one of the link to it.
    pub(super) fn welcome_node(
        &mut self,
        id: u64,
        hello: &Hello,
        accepted: Option<Proof>,
    ) -> Result<(), Malformed> {
        let (node, me) = (hello.node, self.place.node.get());
        let (Some(shell), Some(connection)) = (&mut self.shell, self.connections.get_mut(&id))
        else {
            return Ok(());
        };
        let (outgoing, life) = (connection.outgoing, hello.incarnation);
        let process = Process { life, nonce: hello.nonce() };
        let lane = hello.lane().unwrap_or_default();
        let peer = shell.links.peers.entry(node).or_default();
        if let Some(why) = peer.refuses(process, clock::now()) {
            return Err(Malformed(why));
        }
        // Both may open a connection at the same time: the larger node's stays. If the smaller one
        // has lost its end of it, we shall notice, and then its next attempt is welcome.
        let ours = peer.has_ours(lane, life, clock::now());
        if !outgoing && ours && me > node {
            tracing::debug!(node, "closing a connection: ours to this node is there or on its way");
            self.close(id);
            return Ok(());
        }
        shell.strangers.leaves(id);
        // A cut that ends is no death: control decides about nodes that are silent (VIEW-5).
        if let Err(error) = sockets::wait_for_ever(&connection.socket) {
            tracing::warn!(node, %error, "the time limit of a link cannot be taken away");
        }
        let taken = peer.take(node, lane, id, process);
        let Taken { former, attempt, output, ended, ended_life } = taken;
        (connection.node, connection.lane) = (node, lane);
        connection.becomes_link(life, output.clone());
        connection.former = ended;
        connection.accept(accepted);
        shell.use_connection(id, connection);
        if ended_life.is_some() {
            shell.directory.forget_node(node);
        }
        former.into_iter().chain(attempt).for_each(|id| self.forget(id));
        if let Some(life) = ended_life {
            self.tell_control_of_end(node, life, true);
        }
        self.note_lane(node, (lane, output), process);
        Ok(())
    }

    /// THREAD-5: a link is up when it has a connection for each lane.
    fn note_lane(&mut self, node: u16, (lane, output): (Lane, Arc<Output>), process: Process) {
        let Some(shell) = &self.shell else { return };
        shell.directory.set_lane(node, lane, output);
        if shell.links.peers.get(&node).is_some_and(Peer::is_up) {
            let (incarnation, nonce) = (u64::from(process.life), process.nonce);
            let body = LinkUpRep { node: u64::from(node), incarnation, nonce };
            self.tell(BlockRef::control(self.place.node), &body);
        }
    }

    /// Closes a connection that another one has taken the place of: control is told of that one.
    pub(super) fn forget(&mut self, id: u64) {
        let greeted = self.shell.as_mut().and_then(|shell| {
            shell.strangers.leaves(id);
            shell.greeted.remove(&id)
        });
        if let Some(greeted) = greeted {
            // The thread that reads it notices.
            let _ = rustix::net::shutdown(&*greeted.socket, rustix::net::Shutdown::Both);
        }
        self.hungry.remove(&id);
        let Some(connection) = self.connections.remove(&id) else { return };
        self.leave(id, &connection);
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
        // THREAD-5: control reads what control says.
        let reader = match (connection.stage, connection.lane) {
            (Stage::Node, Lane::Control) => None,
            _ => self.readers.get(number % self.readers.len().max(1)),
        };
        let greeted =
            Greeted { socket: connection.socket.clone(), reader: reader.copied().unwrap_or(0) };
        self.greeted.insert(id, greeted);
    }
}
