//! Thread 0: sockets, ports, and the first executor.

mod greet;
mod route;

use crate::{
    RuntimeConfig, Stopped,
    connection::{Connection, ReadEnd, Stage},
    doorbell::Doorbell,
    links::{Links, Peer},
    port::NodeEnd,
    worker::Ends,
};
use lats_base::{Duration, Instant, NodeId};
use lats_kernel::Executor;
use lats_node::Placement;
use lats_signals::{Malformed, SignalBuffer};
use rustix::{
    event::epoll,
    fd::{AsFd, OwnedFd},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::TcpListener,
    sync::{Arc, mpsc},
};

/// The thread that owns everything that leaves the process.
pub(crate) struct MainThread {
    executor: Executor,
    ends: Ends,
    placement: Placement,
    node: NodeId,
    life: u32,
    cluster_id: u64,
    epoll: Arc<OwnedFd>,
    /// When its thread wakes by itself; none while it is awake, or sleeps until something comes.
    wakes_at: Option<Instant>,
    listener: TcpListener,
    connections: BTreeMap<u64, Connection>,
    next_connection: u64,
    links: Links,
    /// Clients by slot: connections and ports.
    clients: BTreeMap<u32, ClientAt>,
    next_slot: u32,
    ports: Vec<PortState>,
    /// Connections with output to write.
    dirty: BTreeSet<u64>,
    /// Connections with more input than they got a turn for.
    hungry: BTreeSet<u64>,
    entering: SignalBuffer,
    scratch: Vec<u8>,
    tell_stopped: mpsc::Sender<Stopped>,
    on_view: Box<dyn FnMut(&lats_catalog::View) + Send>,
}

#[derive(Clone, Copy, Debug)]
enum ClientAt {
    Connection(u64),
    Port(usize),
}

struct PortState {
    end: NodeEnd,
    slot: u32,
    /// Signals that had no room in the ring.
    backlog: Vec<u8>,
    fresh: bool,
}

/// How long its thread may sleep.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sleep {
    /// Not at all.
    Busy,
    /// Until then, or until something comes.
    Until(Option<Instant>),
}

const TOKEN_BELL: u64 = 0;
const TOKEN_LISTENER: u64 = 1;
const TOKEN_FIRST_CONNECTION: u64 = 16;
/// Who has not said its name after this has no business here.
const GREETING_PATIENCE: Duration = Duration::from_millis(3_000);

impl MainThread {
    pub(crate) fn new(
        config: RuntimeConfig,
        executor: Executor,
        ends: Ends,
        tell_stopped: mpsc::Sender<Stopped>,
    ) -> std::io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let token = |t| epoll::EventData::new_u64(t);
        let input = epoll::EventFlags::IN;
        epoll::add(&epoll, ends.bell.fd(), token(TOKEN_BELL), input)?;
        config.listener.set_nonblocking(true)?;
        epoll::add(&epoll, config.listener.as_fd(), token(TOKEN_LISTENER), input)?;
        let mut links = Links::default();
        for (node, address) in &config.peers {
            let peer = Peer { address: Some(*address), wanted: true, ..Peer::default() };
            links.peers.insert(node.get(), peer);
        }
        let mut main = Self {
            executor,
            ends,
            placement: config.node.placement,
            node: config.node.node,
            life: config.node.incarnation.get(),
            cluster_id: config.cluster_id,
            epoll: Arc::new(epoll),
            wakes_at: None,
            listener: config.listener,
            connections: BTreeMap::new(),
            next_connection: TOKEN_FIRST_CONNECTION,
            links,
            clients: BTreeMap::new(),
            next_slot: 1,
            ports: Vec::new(),
            dirty: BTreeSet::new(),
            hungry: BTreeSet::new(),
            entering: SignalBuffer::new(),
            scratch: Vec::new(),
            tell_stopped,
            on_view: config.on_view,
        };
        for end in config.ports {
            let slot = main.new_slot(ClientAt::Port(main.ports.len()));
            main.ports.push(PortState { end, slot, backlog: Vec::new(), fresh: false });
        }
        Ok(main)
    }

    fn new_slot(&mut self, at: ClientAt) -> u32 {
        let slot = self.next_slot;
        self.next_slot += 1;
        self.clients.insert(slot, at);
        slot
    }

    pub(crate) fn bell(&self) -> Arc<Doorbell> {
        self.ends.bell.clone()
    }

    pub(crate) fn epoll(&self) -> Arc<OwnedFd> {
        self.epoll.clone()
    }

    /// One turn: what has come in, the executor for about so long, what goes out.
    pub(crate) fn turn(&mut self, limit: Duration) {
        // Other threads send everything that leaves the node through this one.
        let entering = &mut self.entering;
        self.ends.receive(|signal| entering.push_signal(signal));
        self.enter();
        self.receive_from_ports();
        let hungry = core::mem::take(&mut self.hungry);
        hungry.into_iter().for_each(|id| self.on_readable(id));
        let progress = crate::worker::turn(&mut self.executor, limit);
        lats_base::require!(!progress.crashed, "crash points are for the simulator");
        self.route_outgoing();
        self.open_links();
        self.flush();
    }

    fn flush(&mut self) {
        self.ends.flush();
        for id in core::mem::take(&mut self.dirty) {
            let Some(connection) = self.connections.get_mut(&id) else { continue };
            let was_blocked = connection.blocked;
            if !connection.flush() {
                self.close(id, false);
                continue;
            }
            if connection.blocked != was_blocked {
                self.watch_output(id);
            }
        }
        self.flush_ports();
    }

    /// Asks `epoll` about room for output only while there is none.
    fn watch_output(&self, id: u64) {
        let Some(connection) = self.connections.get(&id) else { return };
        let mut flags = epoll::EventFlags::IN;
        if connection.blocked || connection.stage == Stage::Connecting {
            flags |= epoll::EventFlags::OUT;
        }
        let data = epoll::EventData::new_u64(id);
        let _ = epoll::modify(&self.epoll, &*connection.socket, data, flags);
    }

    /// Its thread is about to sleep: for how long.
    pub(crate) fn going_to_sleep(&mut self) -> Sleep {
        self.ends.bell.going_to_sleep();
        self.wakes_at = None;
        if self.is_busy() {
            return Sleep::Busy;
        }
        self.wakes_at = self.next_due();
        Sleep::Until(self.wakes_at)
    }

    /// True if a helper leaves something that its thread must be woken for.
    pub(crate) fn needs_its_thread(&self) -> bool {
        let sooner = self.next_due().is_some_and(|due| self.wakes_at.is_none_or(|at| due < at));
        self.is_busy() || sooner
    }

    fn is_busy(&self) -> bool {
        let waits = |p: &PortState| p.end.from_client.is_ready() || !p.backlog.is_empty();
        self.executor.has_work()
            || !self.hungry.is_empty()
            || self.ends.has_work()
            || self.ports.iter().any(waits)
    }

    fn next_due(&self) -> Option<Instant> {
        let timer = self.executor.next_timer();
        let link = self.links.next_attempt();
        timer.into_iter().chain(link).min()
    }

    /// What its thread has slept for.
    pub(crate) fn take_events(&mut self, events: impl Iterator<Item = epoll::Event>) {
        for event in events {
            let (id, flags) = (event.data.u64(), event.flags);
            match id {
                TOKEN_BELL => self.ends.bell.awake(),
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
        if flags.contains(epoll::EventFlags::OUT) {
            self.dirty.insert(id);
        }
        let readable = epoll::EventFlags::IN | epoll::EventFlags::HUP | epoll::EventFlags::ERR;
        if flags.intersects(readable) {
            self.on_readable(id);
        }
    }

    fn on_readable(&mut self, id: u64) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let end = connection.read();
        let taken = match connection.stage {
            Stage::Greeting => self.greet(id).and_then(|()| self.take_signals(id)),
            _ => self.take_signals(id),
        };
        if let Err(malformed) = taken {
            tracing::warn!(%malformed, "closing a connection");
            return self.close(id, false);
        }
        match end {
            ReadEnd::Drained => {}
            // Unless the greeting has closed it.
            ReadEnd::More if self.connections.contains_key(&id) => {
                self.hungry.insert(id);
            }
            ReadEnd::More => {}
            ReadEnd::Closed => self.close(id, false),
        }
    }

    /// Moves whole signals from a connection into the node.
    fn take_signals(&mut self, id: u64) -> Result<(), Malformed> {
        let Some(connection) = self.connections.get_mut(&id) else { return Ok(()) };
        let entering = &mut self.entering;
        match connection.stage {
            Stage::Connecting | Stage::Greeting => return Ok(()),
            Stage::Client(slot) => {
                let client =
                    lats_signals::BlockRef::new(self.node, lats_signals::BlockKind::Client, slot);
                let life = self.life;
                connection
                    .take_signals(|signal| lats_signals::admit(signal, client, life, entering))?;
            }
            Stage::Node => {
                let node = connection.node;
                connection.take_signals(|signal| {
                    let local =
                        signal.number().is_none_or(|n| n.scope() == lats_signals::Scope::Local);
                    if local || signal.header.sender.node.get() != node {
                        return Err(Malformed("not a node's signal"));
                    }
                    entering.push_signal(signal);
                    Ok(())
                })?;
            }
        }
        self.enter();
        Ok(())
    }

    fn receive_from_ports(&mut self) {
        for at in 0..self.ports.len() {
            let port = &mut self.ports[at];
            self.scratch.clear();
            if !port.end.from_client.pop_all(&mut self.scratch) {
                continue;
            }
            let client =
                lats_signals::BlockRef::new(self.node, lats_signals::BlockKind::Client, port.slot);
            let mut rest = &self.scratch[..];
            while let Ok(Some(signal)) = lats_signals::buffer::parse(rest) {
                // In-process clients are our own code: what they may not send is not sent.
                let _ = lats_signals::admit(&signal, client, self.life, &mut self.entering);
                rest = &rest[signal.bytes().len()..];
            }
            self.enter();
        }
    }

    fn flush_ports(&mut self) {
        for port in &mut self.ports {
            let mut sent = 0;
            while let Ok(Some(signal)) = lats_signals::buffer::parse(&port.backlog[sent..]) {
                if !port.end.to_client.push(signal.bytes()) {
                    break;
                }
                sent += signal.bytes().len();
            }
            port.backlog.drain(..sent);
            if port.fresh || sent > 0 {
                (port.end.wake_client)();
                port.fresh = false;
            }
        }
    }

    /// Connections that never said who they are.
    fn drop_the_silent(&mut self, now: Instant) {
        let silent: Vec<u64> = self
            .connections
            .iter()
            .filter(|(_, c)| matches!(c.stage, Stage::Greeting | Stage::Connecting))
            .filter(|(_, c)| now.since(c.opened_at) > GREETING_PATIENCE)
            .map(|(id, _)| *id)
            .collect();
        silent.into_iter().for_each(|id| self.close(id, false));
    }
}
