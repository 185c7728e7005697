//! What comes into the node: from sockets, from clients in this process, from other threads.

use super::{Thread, shell::Waiting};
use crate::{
    clock,
    connection::{Connection, ReadEnd, Stage},
    output::{Flushed, Output, link::LinkOutput},
};
use lats_base::NodeId;
use lats_signals::{
    BlockKind, BlockRef, Body, Lane, Malformed, Principal, Scope, SignalNumber,
    buffer::{Route, SignalBuffer, parse},
    control::{ClientGoneRep, LinkDownRep, ReceivedOrd},
};
use rustix::event::epoll;
use std::sync::Arc;

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
            let (output, flushed) = match &connection.link {
                Some(link) => (link, link.as_link().map(|link| link.on_room(id))),
                None => (&connection.output, Some(sending.on_room())),
            };
            if flushed == Some(Flushed::More) {
                self.unsent.push(output.clone());
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
        if connection.sending().is_some_and(|s| s.is_closed())
            || connection.link().is_some_and(LinkOutput::is_over)
        {
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
                if self.move_home(id) { Ok(()) } else { self.begin_reading(id) }
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
        if connection.stage == Stage::Node && !self.resume(id)? {
            return Ok(());
        }
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
                let (node, link) = (connection.node, connection.link.clone());
                let Some(own) = link.as_deref().and_then(Output::as_link) else { return Ok(()) };
                let mut bytes = 0;
                let taken = connection.take_signals(kept, |signal| {
                    let length = signal.bytes().len() as u64;
                    if signal.number() == Some(SignalNumber::ReceivedOrd) {
                        bytes += length;
                        return own.acknowledge(signal.body::<ReceivedOrd>().bytes);
                    }
                    let local = signal.number().is_none_or(|n| n.scope() == Scope::Local);
                    if local || signal.header.sender.node.get() != node {
                        return Err(Malformed("not a node's signal"));
                    }
                    entering.push_signal(signal);
                    bytes += length;
                    Ok(())
                });
                let told = own.receive(bytes);
                if taken.is_err() {
                    // What came before it has been counted, and does not come again.
                    self.enter();
                }
                taken?;
                self.acknowledge(link, told);
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
        if let Some(sending) = connection.sending() {
            sending.watch(&self.place.epoll, id, false);
        }
        self.connections.insert(id, connection);
        if let Err(malformed) = self.begin_reading(id) {
            tracing::warn!(%malformed, "closing a connection");
            self.close(id);
        }
    }

    /// Reads a connection from now on whose other side has proved who it is.
    fn begin_reading(&mut self, id: u64) -> Result<(), Malformed> {
        let Some(connection) = self.connections.get(&id) else { return Ok(()) };
        if connection.stage == Stage::Node {
            // A connection that this one takes the place of ends before anything comes by this one.
            let same = (connection.node, connection.lane);
            let is_former = |c: &Connection| c.stage == Stage::Node && (c.node, c.lane) == same;
            let of_node = self.connections.iter().filter(|(at, c)| **at != id && is_former(c));
            let former: Vec<u64> = of_node.map(|(id, _)| *id).collect();
            former.into_iter().for_each(|id| self.close(id));
            self.say_resume(id)?;
        }
        // It may have come with more than its greeting.
        self.take_signals(id)
    }

    /// LINK-2: tells the other end what has come by the connections before this one.
    fn say_resume(&mut self, id: u64) -> Result<(), Malformed> {
        let Some(connection) = self.connections.get_mut(&id) else { return Ok(()) };
        if let Some(ended) = connection.former.take()
            && let Some(ended) = ended.as_link()
        {
            self.tell_link_end(ended);
        }
        let Some(connection) = self.connections.get(&id) else { return Ok(()) };
        if let Some(link) = connection.link() {
            connection.say(link.resume().to_bytes());
        }
        if connection.sending().is_some_and(|sending| !sending.is_drained()) {
            return Err(Malformed("it takes not even a greeting"));
        }
        Ok(())
    }

    /// LINK-2: what the other end has is known; the rest is sent from now on. False if it is not here yet.
    fn resume(&mut self, id: u64) -> Result<bool, Malformed> {
        let Some(connection) = self.connections.get_mut(&id) else { return Ok(false) };
        let Some(resume) = connection.take_resume() else { return Ok(connection.is_resumed()) };
        let Some(output) = connection.link.clone() else { return Ok(false) };
        let Some(link) = output.as_link() else { return Ok(false) };
        if resume.number > link.number {
            // LINK-4: the other end has lost something.
            connection.next_number = resume.number;
            link.end();
            return Err(Malformed("the other end has begun another link"));
        }
        if resume.number < link.number {
            return Err(Malformed("the other end has to begin another link"));
        }
        let attached = link.attach(&connection.socket, (&self.place.epoll, id), resume.received);
        if attached.is_err() {
            link.end();
        }
        attached?;
        self.unsent.push(output);
        Ok(true)
    }

    /// LINK-3: tells the other end how much has come.
    fn acknowledge(&mut self, link: Option<Arc<Output>>, told: Option<u64>) {
        let (Some(link), Some(bytes)) = (link, told) else { return };
        let (sender, receiver) = match link.as_link() {
            Some(to) => (self.place.node, NodeId::new(to.node)),
            None => return,
        };
        let route = Route {
            sender: BlockRef::shell(sender),
            receiver: BlockRef::shell(receiver),
            incarnation: self.place.life,
        };
        let mut says = SignalBuffer::new();
        says.push(route, &ReceivedOrd { bytes }, &[]);
        if let Some(signal) = says.pop()
            && link.queue(signal.bytes())
        {
            self.unsent.push(link);
        }
    }

    /// Closes a connection and tells whom it concerns.
    pub(super) fn close(&mut self, id: u64) {
        self.hungry.remove(&id);
        let Some(connection) = self.connections.remove(&id) else { return };
        self.leave(id, &connection);
        let is_over = connection.link().is_some_and(LinkOutput::is_over);
        let Connection { stage, node, life, next_number, .. } = connection;
        let closed = super::shell::Closed { id, stage, node, life, is_over, next_number };
        if self.shell.is_some() {
            self.on_closed(closed);
        } else {
            self.place.news[0].closed(closed);
            self.news_for.push(0);
        }
    }

    /// Nothing is read from this connection any more, nor written to it.
    pub(super) fn leave(&mut self, id: u64, connection: &Connection) {
        if let Some(sending) = connection.sending() {
            sending.unwatch();
            sending.close();
        }
        if let Some(link) = connection.link() {
            link.detach(id);
        }
        self.tell_end(connection);
    }

    /// THREAD-3: the end of a client or of a link is told by the thread that has brought in what came from there.
    pub(super) fn tell_end(&mut self, connection: &Connection) {
        match connection.stage {
            Stage::Client(slot) => {
                let body = ClientGoneRep { slot: u64::from(slot) };
                self.tell_blocks(&body, |_| true);
                self.tell_readers(&body);
            }
            Stage::Node => {
                if let Some(link) = connection.link.clone()
                    && let Some(link) = link.as_link().filter(|link| link.is_over())
                {
                    self.tell_link_end(link);
                }
            }
            Stage::Connecting | Stage::Greeting | Stage::Proving => {}
        }
    }

    /// VIEW-5: what comes from this life from now on has gaps. Control is told by thread 0, which knows more. Nobody but control has heard
    /// anything by control's lane.
    fn tell_link_end(&mut self, link: &LinkOutput) {
        if link.lane == Lane::Control || !link.tells_end() {
            return;
        }
        let body =
            LinkDownRep { node: u64::from(link.node), incarnation: u64::from(link.life), lost: 1 };
        self.tell_blocks(&body, |kind| kind != BlockKind::Control);
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
