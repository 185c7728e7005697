//! What happens once in a node, in the thread where control lives: links, news of closed connections, the end.

use super::Thread;
use crate::{
    Stopped, addresses, clock,
    connection::{Connection, Stage},
    directory::Directory,
    figures,
    links::{Links, Process},
    pulse,
    strangers::Strangers,
};
use lats_base::{Duration, Instant, NodeId, Nonce};
use lats_catalog::View;
use lats_signals::{
    BlockRef, Body, Malformed, Signal, SignalBuffer, SignalNumber,
    buffer::Route,
    control::{
        CloseLinkOrd, FiguresConf, FiguresReq, LateRep, LifeKnownOrd, LinkDownRep, NoteOrd,
        SessionsConf, SessionsReq, StopOrd,
    },
    proof::Secret,
};
use rustix::event::epoll;
use std::{
    collections::BTreeMap,
    net::{SocketAddr, TcpListener},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

/// The part of thread 0.
pub(crate) struct Shell {
    pub(crate) cluster_id: u64,
    pub(crate) secret: Secret,
    /// Strangers that were sent away and are not in the log yet.
    pub(crate) sent_away: SentAway,
    pub(crate) strangers: Strangers,
    pub(crate) listener: TcpListener,
    pub(crate) links: Links,
    pub(crate) directory: Arc<Directory>,
    /// Connections whose other side has said who it is, wherever they are read.
    pub(crate) greeted: BTreeMap<u64, Greeted>,
    pub(crate) next_connection: u64,
    pub(crate) next_slot: u32,
    /// The threads that read sockets.
    pub(crate) readers: Vec<usize>,
    pub(crate) on_view: Box<dyn FnMut(&View) + Send>,
    pub(crate) on_known_life: Box<dyn FnMut(u32) + Send>,
    /// Which process this is.
    pub(crate) nonce: Nonce,
    /// Control knows that a thread is late; and when the log was told.
    pub(crate) told_late: bool,
    pub(crate) said_late: Option<Instant>,
    /// When this thread, with all others, went on after a pause.
    pub(crate) resumed_at: Instant,
}

/// Strangers that were sent away: the log has a line a second for them, however many come.
pub(crate) struct SentAway {
    count: Arc<AtomicU64>,
    said_at: Option<Instant>,
    unsaid: u64,
}

impl SentAway {
    /// None yet; `count` shows others how many there are.
    pub(crate) fn counted(count: Arc<AtomicU64>) -> Self {
        Self { count, said_at: None, unsaid: 0 }
    }

    /// One more.
    pub(crate) fn note(&mut self, why: &str, now: Instant) {
        self.unsaid += 1;
        self.count.fetch_add(1, Ordering::Relaxed);
        if self.said_at.is_some_and(|at| now.since(at) < LOG_PAUSE) {
            return;
        }
        tracing::warn!(
            connections = self.unsaid,
            "refused at the native port, the last one: {why}"
        );
        (self.said_at, self.unsaid) = (Some(now), 0);
    }
}

const LOG_PAUSE: Duration = Duration::from_millis(1_000);

/// A connection that is in use.
pub(crate) struct Greeted {
    /// Its socket: whoever shuts it tells the thread that reads.
    pub(crate) socket: Arc<rustix::fd::OwnedFd>,
    /// The thread that reads it.
    pub(crate) reader: usize,
}

/// A connection that its thread has closed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Closed {
    pub(crate) id: u64,
    pub(crate) stage: Stage,
    pub(crate) node: u16,
    pub(crate) life: u32,
    /// Of a node: the link is over (LINK-4), and the number that the other end has given the next one, or 0.
    pub(crate) is_over: bool,
    pub(crate) next_number: u32,
}

/// What other threads have for one, beside signals.
#[derive(Default)]
pub(crate) struct News {
    some: AtomicBool,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
pub(crate) struct Waiting {
    pub(crate) connections: Vec<(u64, Connection)>,
    pub(crate) closed: Vec<Closed>,
    pub(crate) signals: SignalBuffer,
}

impl News {
    pub(crate) fn is_empty(&self) -> bool {
        !self.some.load(Ordering::Acquire)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What has come since the last call.
    pub(crate) fn take(&self) -> Waiting {
        if self.is_empty() {
            return Waiting::default();
        }
        let mut waiting = self.lock();
        self.some.store(false, Ordering::Release);
        core::mem::take(&mut waiting)
    }

    fn add(&self, what: impl FnOnce(&mut Waiting)) {
        let mut waiting = self.lock();
        what(&mut waiting);
        self.some.store(true, Ordering::Release);
    }

    pub(crate) fn closed(&self, closed: Closed) {
        self.add(|waiting| waiting.closed.push(closed));
    }

    pub(crate) fn signal(&self, signal: &Signal<'_>) {
        self.add(|waiting| waiting.signals.push_signal(signal));
    }

    pub(crate) fn adopt(&self, id: u64, connection: Connection) {
        self.add(|waiting| waiting.connections.push((id, connection)));
    }
}

impl Thread {
    /// Any thread answers clients, writes to the log and ends the process: data managers ask for it, too. What concerns links comes from
    /// control, in the shell's own thread.
    pub(super) fn on_shell_signal(&mut self, signal: &Signal<'_>) {
        match signal.number() {
            Some(SignalNumber::FiguresReq) => self.on_figures_req(signal),
            Some(SignalNumber::SessionsReq) => self.on_sessions_req(signal),
            Some(SignalNumber::NoteOrd) => {
                let text = String::from_utf8_lossy(signal.payload());
                if signal.body::<NoteOrd>().loud != 0 {
                    tracing::warn!("{text}");
                } else {
                    tracing::info!("{text}");
                }
            }
            Some(SignalNumber::StopOrd) => {
                let status = signal.body::<StopOrd>().status as i32;
                let why = String::from_utf8_lossy(signal.payload()).into_owned();
                // Nobody listens any more only if the process is ending already.
                let _ = self.place.tell_stopped.send(Stopped { status, why });
            }
            _ => self.on_link_signal(signal),
        }
    }

    fn on_link_signal(&mut self, signal: &Signal<'_>) {
        let Some(shell) = &mut self.shell else { return };
        match signal.number() {
            Some(SignalNumber::CloseLinkOrd) => {
                let body = signal.body::<CloseLinkOrd>();
                self.close_link(body.node as u16, body.incarnation as u32);
            }
            Some(SignalNumber::AddressesOrd) => {
                let sent =
                    lats_catalog::decode::<(View, BTreeMap<NodeId, Nonce>)>(signal.payload());
                if let Ok((view, nonces)) = sent {
                    let addresses = addresses(&view, &nonces);
                    let lost = set_addresses(&mut shell.links, self.place.node, &addresses);
                    (shell.on_view)(&view);
                    lost.into_iter().for_each(|id| self.close(id));
                }
            }
            Some(SignalNumber::LifeKnownOrd) => {
                (shell.on_known_life)(signal.body::<LifeKnownOrd>().known as u32);
            }
            _ => {}
        }
    }

    /// Any thread can answer.
    fn on_figures_req(&mut self, signal: &Signal<'_>) {
        let refused = self.place.refused.load(Ordering::Relaxed);
        let disk = self.place.files.as_ref().map(crate::io::Shared::figures);
        let memory = (self.place.memory)();
        let figures = figures::read(&self.place.board, refused, disk, memory, clock::now());
        let body = FiguresConf { request: signal.body::<FiguresReq>().request };
        self.answer_client(signal, &body, &lats_catalog::encode(&figures));
    }

    /// Any thread can do this.
    fn on_sessions_req(&mut self, signal: &Signal<'_>) {
        let SessionsReq { request, session, what, statement } = signal.body::<SessionsReq>();
        let (found, list) = (self.place.sessions)(session, what, statement);
        let body = SessionsConf { request, found: u32::from(found), reserved: 0 };
        self.answer_client(signal, &body, &list);
    }

    fn answer_client<B: Body>(&mut self, asked: &Signal<'_>, body: &B, payload: &[u8]) {
        let sender = BlockRef::shell(self.place.node);
        let route = Route { sender, receiver: asked.sender(), incarnation: self.place.life };
        let mut answer = SignalBuffer::new();
        answer.push(route, body, &[payload]);
        if let Some(answer) = answer.pop() {
            self.send_to_client(asked.sender().instance, &answer);
        }
    }

    /// Sends a signal of the shell to a block of this node.
    pub(super) fn tell<B: Body>(&mut self, receiver: BlockRef, body: &B) {
        let sender = BlockRef::shell(self.place.node);
        let route = Route { sender, receiver, incarnation: self.place.life };
        self.entering.push(route, body, &[]);
        self.enter();
    }

    /// LATE-1: tells control how late the thread is that is most behind, and once when none is any more.
    pub(super) fn tell_lateness(&mut self, now: Instant) {
        let Some(shell) = &mut self.shell else { return };
        if now.since(self.turn_ended) >= pulse::PAUSED {
            shell.resumed_at = now;
        }
        let since = (shell.resumed_at, now);
        let (thread, late) = pulse::latest(&self.place.pulses, self.place.number, since);
        let is_late = late >= pulse::LATE;
        if !is_late && !shell.told_late {
            return;
        }
        shell.told_late = is_late;
        let says = shell.said_late.is_none_or(|at| now.since(at) >= pulse::SAID);
        if late >= pulse::SAID && says {
            shell.said_late = Some(now);
            let name =
                self.place.board.get().and_then(|board| board.get(thread)).map(|(name, _)| name);
            let late_ms = late.as_millis();
            tracing::warn!(
                thread,
                name,
                late_ms,
                "a thread of this node has not come on for so long"
            );
        }
        let late_ms = if is_late { late.as_millis() } else { 0 };
        let body = LateRep { late_ms, thread: thread as u64 };
        self.tell(BlockRef::control(self.place.node), &body);
    }

    /// Control has removed a life of a node: its link is closed.
    fn close_link(&mut self, node: u16, life: u32) {
        let Some(shell) = &mut self.shell else { return };
        let Some(peer) = shell.links.peers.get(&node).filter(|p| p.last.life == life) else {
            return;
        };
        let had_link = peer.connections().next().is_some();
        let connections = shell.links.over(node, 0, clock::now());
        shell.directory.forget_node(node);
        connections.into_iter().for_each(|id| self.forget(id));
        if had_link {
            self.tell_control_of_end(node, life, true);
        }
    }

    /// A connection to this life has ended; with `lost` the link has (LINK-4): signals were lost, or the life is gone.
    pub(super) fn tell_control_of_end(&mut self, node: u16, life: u32, lost: bool) {
        let (node, incarnation) = (u64::from(node), u64::from(life));
        let body = LinkDownRep { node, incarnation, lost: u64::from(lost) };
        self.tell(BlockRef::control(self.place.node), &body);
    }

    /// A connection is closed, wherever it was read.
    pub(super) fn on_closed(&mut self, closed: Closed) {
        let Closed { id, stage, node, life, is_over, next_number } = closed;
        let now = clock::now();
        let Some(shell) = &mut self.shell else { return };
        shell.greeted.remove(&id);
        shell.strangers.leaves(id);
        if let Stage::Client(slot) = stage {
            shell.directory.set_client(slot, None);
        }
        let peer = shell.links.peers.get(&node);
        let (is_attempt, is_link) =
            peer.map_or((false, false), |p| (p.is_attempt(id), p.is_linked_by(id)));
        if is_attempt {
            shell.links.failed(node, id, now);
        }
        if is_link && is_over {
            let connections = shell.links.over(node, next_number.saturating_sub(1), now);
            shell.directory.forget_node(node);
            connections.into_iter().filter(|other| *other != id).for_each(|id| self.forget(id));
            self.tell_control_of_end(node, life, true);
        } else if is_link {
            // LINK-1: that is no end of the link.
            shell.links.lost(node, id, now);
            self.tell_control_of_end(node, life, false);
        }
    }

    /// Gives a connection whose other side has said who it is to the thread that is to read it; false if that is this
    /// one.
    pub(super) fn move_home(&mut self, id: u64) -> bool {
        let greeted = self.shell.as_ref().and_then(|shell| shell.greeted.get(&id));
        let Some(reader) = greeted.map(|g| g.reader).filter(|r| *r != self.place.number) else {
            return false;
        };
        let Some(connection) = self.connections.remove(&id) else { return false };
        if let Some(sending) = connection.sending() {
            sending.unwatch();
        }
        self.place.news[reader].adopt(id, connection);
        self.news_for.push(reader);
        true
    }

    /// A number for something that `epoll` tells thread 0 about.
    pub(super) fn watch(&mut self, connection: Connection) -> u64 {
        let Some(shell) = &mut self.shell else { return 0 };
        let id = shell.next_connection;
        shell.next_connection += 1;
        if let Some(sending) = connection.sending() {
            sending.watch(&self.place.epoll, id, connection.stage == Stage::Connecting);
        }
        self.connections.insert(id, connection);
        id
    }

    /// Connections that never said who they are.
    pub(super) fn drop_the_silent(&mut self, now: Instant) {
        let Some(shell) = &self.shell else { return };
        let patience = super::greet::GREETING_PATIENCE;
        let opened_at = |id: u64| self.connections.get(&id).map(|c| c.opened_at);
        let silent = shell
            .strangers
            .overdue(|id| opened_at(id).is_none_or(|opened| now.since(opened) > patience));
        let attempts = shell.links.peers.values().flat_map(|peer| peer.attempts());
        let old = attempts.filter(|attempt| now.since(attempt.begun) > patience);
        let silent = [silent, old.map(|attempt| attempt.id).collect()].concat();
        for id in silent {
            self.note_closed(id, Malformed("it has proved nothing in time"));
            self.close(id);
        }
    }
}

/// The cluster's nodes have changed. Gives the attempts to connect to where a node is not any more.
fn set_addresses(
    links: &mut Links,
    own: NodeId,
    addresses: &[(u16, Process, SocketAddr)],
) -> Vec<u64> {
    let mut lost = Vec::new();
    for (node, peer) in &mut links.peers {
        let member = addresses.iter().find(|(n, _, _)| n == node).map(|(_, process, _)| *process);
        (peer.wanted, peer.member) = (member.is_some(), member);
    }
    for (node, process, address) in addresses {
        if *node == own.get() {
            continue;
        }
        let peer = links.peers.entry(*node).or_default();
        peer.member = Some(*process);
        if peer.address != Some(*address) {
            lost.extend(peer.attempts().map(|attempt| attempt.id));
        }
        peer.address = Some(*address);
        peer.wanted = true;
    }
    lost
}

/// Has `epoll` tell of the listener and of a thread's doorbell.
pub(crate) fn watch_input(
    poll: &rustix::fd::OwnedFd,
    what: impl rustix::fd::AsFd,
    token: u64,
) -> std::io::Result<()> {
    epoll::add(poll, what, epoll::EventData::new_u64(token), epoll::EventFlags::IN)?;
    Ok(())
}
