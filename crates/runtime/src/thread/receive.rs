//! What comes into the node: from sockets, from clients in this process, from other threads.

use super::{Thread, shell::Waiting};
use crate::{
    clock,
    connection::{Connection, ReadEnd, Stage},
    output::Flushed,
};
use lats_signals::{
    BlockKind, BlockRef, Body, Lane, Malformed, Principal, Scope,
    buffer::{Route, parse},
    control::{ClientGoneRep, LinkDownRep},
};
use rustix::event::epoll;

pub(crate) const TOKEN_BELL: u64 = 0;
pub(crate) const TOKEN_LISTENER: u64 = 1;
pub(crate) const TOKEN_FIRST_CONNECTION: u64 = 16;
/// What a stranger may say at once: more than a greeting and a proof.
const STRANGER_READ_BYTES: usize = 1 << 10;
/// Memory that a connection keeps between bursts, in reads.
const KEPT_READS: usize = 4;

impl Thread {
    /// What its thread has slept for.
    pub(super) fn take_events(&mut self, events: impl Iterator<Item = epoll::Event>) {
        for event in events {
            let (id, flags) = (event.data.u64(), event.flags);
            match id {
                TOKEN_BELL => self.place.bell.woken(),
                TOKEN_LISTENER => self.accept(),
                _ => self.on_event(id, flags),
            }
        }
    }

    fn on_event(&mut self, id: u64, flags: epoll::EventFlags) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if connection.stage == Stage::Connecting {
            return self.on_connected(id);
        }
        if flags.contains(epoll::EventFlags::OUT)
            && let Some(sending) = connection.sending()
        {
            match sending.on_room() {
                Flushed::More => self.unsent.push(connection.output.clone()),
                Flushed::Done | Flushed::Waits(_) => {}
            }
        }
        let readable = epoll::EventFlags::IN | epoll::EventFlags::HUP | epoll::EventFlags::ERR;
        if flags.intersects(readable) {
            self.on_readable(id);
        }
    }

    pub(super) fn receive_from_the_hungry(&mut self) {
        let hungry = core::mem::take(&mut self.hungry);
        hungry.into_iter().for_each(|id| self.on_readable(id));
    }

    fn on_readable(&mut self, id: u64) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if connection.sending().is_some_and(|s| s.is_closed()) {
            // We have closed it: what may still be in it has come too late.
            return self.close(id);
        }
        let limit_bytes = match connection.is_new() {
            true => STRANGER_READ_BYTES,
            false => self.place.pace.read_bytes,
        };
        let end = connection.read(limit_bytes);
        self.figures.reads += 1;
        let taken = match connection.stage {
            Stage::Greeting | Stage::Proving => self.greet(id).and_then(|()| {
                // Whoever reads it takes all its signals: they stay in order.
                if self.move_home(id) { Ok(()) } else { self.take_signals(id) }
            }),
            _ => self.take_signals(id),
        };
        if let Err(malformed) = taken {
            self.note_closed(id, malformed);
            return self.close(id);
        }
        match end {
            ReadEnd::Drained => {}
            // Unless it was closed, or is with another thread.
            ReadEnd::More if self.connections.contains_key(&id) => {
                self.hungry.insert(id);
            }
            ReadEnd::More => {}
            ReadEnd::Closed => self.close(id),
        }
    }

    /// What came on a connection is the reason to close it. Anybody can come to the port: the log stays small.
    pub(super) fn note_closed(&mut self, id: u64, malformed: Malformed) {
        let new = self.connections.get(&id).filter(|c| c.is_new());
        match (&mut self.shell, new) {
            (Some(shell), Some(new)) if new.outgoing => {
                shell.links.note_refused(new.node, malformed.0, clock::now());
            }
            (Some(shell), Some(_)) => shell.sent_away.note(malformed.0, clock::now()),
            _ => tracing::warn!(%malformed, "closing a connection"),
        }
    }

    /// Moves whole signals from a connection into the node.
    pub(super) fn take_signals(&mut self, id: u64) -> Result<(), Malformed> {
        let Some(connection) = self.connections.get_mut(&id) else { return Ok(()) };
        let kept = KEPT_READS * self.place.pace.read_bytes;
        let before = self.entering.count();
        let entering = &mut self.entering;
        match connection.stage {
            Stage::Connecting | Stage::Greeting | Stage::Proving => return Ok(()),
            Stage::Client(slot) => {
                let client = BlockRef::new(self.place.node, BlockKind::Client, slot);
                let (life, principal) = (self.place.life, connection.principal);
                connection.take_signals(kept, |signal| {
                    lats_signals::admit(signal, principal, client, life, entering)
                })?;
            }
            Stage::Node => {
                let node = connection.node;
                connection.take_signals(kept, |signal| {
                    let local = signal.number().is_none_or(|n| n.scope() == Scope::Local);
                    if local || signal.header.sender.node.get() != node {
                        return Err(Malformed("not a node's signal"));
                    }
                    entering.push_signal(signal);
                    Ok(())
                })?;
            }
        }
        self.figures.from_sockets += (self.entering.count() - before) as u64;
        self.enter();
        Ok(())
    }

    pub(super) fn receive_from_ports(&mut self) {
        for at in 0..self.ports.len() {
            let port = &mut self.ports[at];
            self.scratch.clear();
            if !port.from_client.pop_all(&mut self.scratch) {
                continue;
            }
            let client = BlockRef::new(self.place.node, BlockKind::Client, port.slot);
            let mut rest = &self.scratch[..];
            while let Ok(Some(signal)) = parse(rest) {
                // In-process clients are our own code: what they may not send is not sent.
                let (life, entering) = (self.place.life, &mut self.entering);
                let _ = lats_signals::admit(&signal, Principal::Admin, client, life, entering);
                rest = &rest[signal.bytes().len()..];
                self.figures.from_ports += 1;
            }
            self.enter();
        }
    }

    /// What other threads have for this one.
    pub(super) fn receive_news(&mut self, waiting: Waiting) {
        for (id, connection) in waiting.connections {
            self.adopt(id, connection);
        }
        for closed in waiting.closed {
            self.on_closed(closed);
        }
        let mut signals = waiting.signals;
        while let Some(signal) = signals.pop() {
            self.entering.push_signal(&signal);
        }
        if !self.entering.is_empty() {
            self.enter();
        }
    }

    /// A connection whose other side has said who it is: from now on we read it.
    fn adopt(&mut self, id: u64, connection: Connection) {
        // A link that this one takes the place of ends before anything comes by this one.
        let same = (connection.node, connection.lane);
        let is_former = |c: &Connection| c.stage == Stage::Node && (c.node, c.lane) == same;
        let of_node = self.connections.iter().filter(|(_, c)| is_former(c));
        let former: Vec<u64> = of_node.map(|(id, _)| *id).collect();
        if connection.stage == Stage::Node {
            former.into_iter().for_each(|id| self.close(id));
        }
        if let Some(sending) = connection.sending() {
            sending.watch(&self.place.epoll, id, false);
        }
        self.connections.insert(id, connection);
        // It may have come with more than its greeting.
        if let Err(malformed) = self.take_signals(id) {
            tracing::warn!(%malformed, "closing a connection");
            self.close(id);
        }
    }

    /// Closes a connection and tells whom it concerns.
    pub(super) fn close(&mut self, id: u64) {
        self.hungry.remove(&id);
        let Some(connection) = self.connections.remove(&id) else { return };
        if let Some(sending) = connection.sending() {
            sending.unwatch();
            sending.close();
        }
        self.tell_end(&connection);
        let Connection { stage, node, life, .. } = connection;
        let closed = super::shell::Closed { id, stage, node, life };
        if self.shell.is_some() {
            self.on_closed(closed);
        } else {
            self.place.news[0].closed(closed);
            self.news_for.push(0);
        }
    }

    /// THREAD-3: the end of a client or of a link is told by the thread that has brought in what came from there.
    pub(super) fn tell_end(&mut self, connection: &Connection) {
        let Connection { stage, node, life, lane, .. } = connection;
        match *stage {
            Stage::Client(slot) => {
                let body = ClientGoneRep { slot: u64::from(slot) };
                self.tell_blocks(&body, |_| true);
                self.tell_readers(&body);
            }
            // Nobody but control has heard anything by this one.
            Stage::Node if *lane == Lane::Control => {}
            // VIEW-5: what comes from this life from now on has gaps. Control is told by thread 0, which knows more.
            Stage::Node => {
                let (node, incarnation) = (u64::from(*node), u64::from(*life));
                let body = LinkDownRep { node, incarnation };
                self.tell_blocks(&body, |kind| kind != BlockKind::Control);
            }
            Stage::Connecting | Stage::Greeting | Stage::Proving => {}
        }
    }

    /// QUERY-2: they have got all that the client had asked for before.
    fn tell_readers(&mut self, body: &impl Body) {
        let homes = self.place.homes.clone();
        let (sender, incarnation) = (BlockRef::shell(self.place.node), self.place.life);
        for (instance, thread) in homes.readers() {
            let receiver = BlockRef::query(self.place.node, instance);
            let route = Route { sender, receiver, incarnation };
            if thread == self.place.number {
                self.executor.mailbox().push(route, body, &[]);
                continue;
            }
            self.redirected.push(route, body, &[]);
            self.send_redirected(thread);
        }
    }

    fn tell_blocks(&mut self, body: &impl Body, whom: impl Fn(BlockKind) -> bool) {
        let homes = self.place.homes.clone();
        for (kind, instance) in homes.blocks().filter(|(kind, _)| whom(*kind)) {
            let receiver = BlockRef::new(self.place.node, kind, instance);
            let sender = BlockRef::shell(self.place.node);
            let route = Route { sender, receiver, incarnation: self.place.life };
            self.entering.push(route, body, &[]);
        }
        self.enter();
    }
}
