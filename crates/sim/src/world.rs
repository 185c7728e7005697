//! The simulated cluster: nodes, their executors, and the events that move them.

mod late;
mod links;
mod storage;

use crate::{
    disk::Disk,
    faults::Disturbance,
    network::{End, Fate, Network},
    outcome::Tally,
};
pub use late::{Busy, Stuck};
use lats_base::{Duration, Incarnation, Instant, NodeId, Nonce, prng::Prng};
use lats_catalog::{ClusterConfig, Member, Roles};
use lats_kernel::{Budget, Executor, Fault, Faults};
use lats_node::{
    NodeConfig, Placement, RedoFiles, build,
    control::{Founding, Origin, Start},
    ldm::Slices,
};
use lats_signals::{
    BlockKind, BlockRef, Lane, Principal, Signal, SignalBuffer, SignalNumber,
    buffer::{Route, parse},
    control::{CloseLinkOrd, CloseOrd, LeaveOrd, RESTART, STATUS_REMOVED, StopNodeReq, StopOrd},
    io::{IoListReq, IoReadReq, IoRemoveReq, IoWriteReq},
};
use std::collections::{BTreeMap, BTreeSet};
pub use storage::DiskWays;
use storage::Storage;

/// What happens at some instant.
#[derive(Debug)]
pub enum Event {
    /// A thread of a node looks at its mailbox and timers.
    Wake(NodeId, usize),
    /// A packet arrives.
    Arrive {
        /// Who has sent it.
        from: End,
        /// Whom it is for.
        to: End,
        /// The connection it was sent over.
        generation: u64,
        /// The signal.
        packet: Vec<u8>,
    },
    /// A signal passes between threads of a node.
    Cross {
        /// The node.
        node: NodeId,
        /// The life of it that has sent the signal.
        life: Incarnation,
        /// The receiving thread.
        thread: usize,
        /// The signal.
        packet: Vec<u8>,
    },
    /// A disk has done what it was asked to.
    Disk {
        /// The node.
        node: NodeId,
        /// The life of it that has asked.
        life: Incarnation,
        /// Which of its directories it was asked of.
        directory: u64,
        /// Who is answered.
        to: BlockRef,
        /// What was asked.
        asked: Asked,
    },
    /// An end notices that its connection to the other is closed.
    Notice {
        /// Who notices.
        end: End,
        /// The other end.
        other: End,
        /// The connection that is closed.
        generation: u64,
    },
    /// Two ends connect, if both are there.
    Connect(End, End),
    /// A client acts.
    Client(u32),
    /// A node notices that its link to the other one is up.
    Up(NodeId, NodeId, u64),
    /// A planned disturbance.
    Disturb(Disturbance),
}

/// What a disk is asked to do.
#[derive(Clone, Copy, Debug)]
pub enum Asked {
    /// To write, which has been done but for a sync; what is wrong, or 0.
    Write(IoWriteReq, u32),
    /// To read.
    Read(IoReadReq),
    /// To say which files there are.
    List(IoListReq),
    /// To remove a file.
    Remove(IoRemoveReq),
}

/// A node, alive or not.
pub struct SimNode {
    /// What it is built from.
    pub config: NodeConfig,
    /// Its threads; empty while it is dead.
    pub executors: Vec<Executor>,
    /// It does nothing before this.
    pub paused_until: Instant,
    /// Its threads stand still inside rounds.
    pub stuck: Stuck,
    /// It gets little processor time before this.
    pub slow_until: Instant,
    /// It gets none at all now and then, for some milliseconds.
    pub starves: bool,
    /// Its threads but control's do nothing.
    pub busy: Busy,
    next_wake: Vec<Option<Instant>>,
    last_cross: BTreeMap<(usize, usize), Instant>,
}

impl SimNode {
    /// True while its process runs.
    pub fn is_alive(&self) -> bool {
        !self.executors.is_empty()
    }

    /// This life of it.
    pub fn life(&self) -> Incarnation {
        self.config.incarnation
    }
}

/// The shape of a simulated cluster.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Data nodes.
    pub data_nodes: u16,
    /// Replicas of each group.
    pub replicas: u16,
    /// LDM instances.
    pub ldm_instances: u32,
    /// TC instances.
    pub tc_instances: u32,
    /// Threads of each data node.
    pub threads: usize,
    /// How much a data manager does before it gives way.
    pub slices: Slices,
    /// Signals that a thread handles at most before others get their turn.
    pub signals_per_turn: u64,
    /// How long leases last.
    pub lease_ms: u64,
    /// How long outcomes of transactions are kept.
    pub outcome_kept: Duration,
    /// Where the blocks of data nodes live; drawn if this does not say it.
    pub placement: Option<Placement>,
    /// With so many bytes that wait for a disk changes are refused; drawn if this does not say it.
    pub waiting_bytes_max: Option<usize>,
}

/// The simulated cluster.
pub struct World {
    /// Virtual time.
    pub now: Instant,
    /// All choices of the world.
    pub random: Prng,
    /// The nodes.
    pub nodes: BTreeMap<NodeId, SimNode>,
    /// The links.
    pub network: Network,
    /// Packets for clients: taken by their owner.
    pub for_clients: Vec<ForClient>,
    /// Clients whose processes do nothing, and until when.
    pub asleep: BTreeMap<u32, Instant>,
    /// How long outcomes of transactions are kept.
    pub outcome_kept: Duration,
    /// How many clients there are.
    pub client_count: u32,
    /// Clients that only read, and that prefer a node.
    pub readers: Vec<(u32, NodeId)>,
    events: BTreeMap<(Instant, u64), Event>,
    event_count: u64,
    faults: Faults,
    signals_per_turn: u64,
    /// Crash points: armed in a node only while the cluster can lose it.
    pub crash_points: Faults,
    /// The time of disturbances is over.
    pub calm: bool,
    /// Their disks.
    pub disks: BTreeMap<NodeId, Disk>,
    /// How the disks are.
    pub disk_ways: DiskWays,
    /// Redo logs are archived.
    pub archives: bool,
    /// Nodes that were away may have other disks when they come back.
    pub replaces_disks: bool,
    /// What the cluster's commits wait for changes now and then.
    pub changes_durability: bool,
    /// After a loss of all nodes a person lets the cluster begin without disks that are gone.
    pub partial: bool,
    storage: Storage,
    /// All processes that there were.
    processes: BTreeMap<NodeId, BTreeMap<Incarnation, Nonce>>,
    /// Lives that end without a guardian: only their next ones certify it.
    pub unguarded: BTreeSet<(NodeId, Incarnation)>,
    late: late::Late,
    /// Digest of everything that was delivered: equal for equal seeds.
    pub digest: u64,
    /// Signals delivered.
    pub delivered: u64,
    /// When a data node was killed after which nobody has committed yet.
    pub killed_at: Option<Instant>,
    /// Nodes that ended themselves, with their status.
    pub ended: Vec<(NodeId, u64)>,
    /// Nodes that have ended are not started again.
    pub stays_down: bool,
    /// What nodes have told people.
    pub notes: Vec<(NodeId, String)>,
    /// Nodes that ended themselves, or lost their power, and why.
    pub stops: Vec<(NodeId, String)>,
    /// Faults that have happened.
    pub tally: Tally,
    /// What a scenario waits for on links.
    pub traps: Vec<Trap>,
}

/// A link in one direction is cut as soon as a signal of this number is sent over it: that signal, and what follows it, stays away
/// until the scenario lets it through.
#[derive(Clone, Copy, Debug)]
pub struct Trap {
    /// The sender.
    pub from: End,
    /// The receiver.
    pub to: End,
    /// The signal.
    pub number: SignalNumber,
    /// So many of them pass before.
    pub pass: u32,
}

/// News for a client.
pub enum ForClient {
    /// A packet from a node.
    Packet(u32, Vec<u8>),
    /// The link to a node is up.
    Up(u32, NodeId),
    /// The link to a node is gone.
    Down(u32, NodeId),
}

/// Why a process ended at a named point of a protocol.
pub const CRASH_POINT: &str = "a crash point";
/// What is said of a process that has died because its machine has no power.
pub const LOST_POWER: &str = "its power is lost";

impl World {
    /// A cluster that is about to be founded at time zero.
    pub fn new(shape: &Shape, seed: u64, faults: Faults) -> Self {
        let mut world = Self {
            now: Instant::from_nanos(1_000_000_000),
            random: Prng::new(seed),
            nodes: BTreeMap::new(),
            network: Network::default(),
            for_clients: Vec::new(),
            asleep: BTreeMap::new(),
            outcome_kept: shape.outcome_kept,
            client_count: 0,
            readers: Vec::new(),
            events: BTreeMap::new(),
            event_count: 0,
            faults: with_delays(faults),
            signals_per_turn: shape.signals_per_turn,
            crash_points: Faults::default(),
            calm: false,
            disks: BTreeMap::new(),
            disk_ways: DiskWays::default(),
            archives: Prng::new(seed.rotate_left(16)).chance(1, 2),
            replaces_disks: Prng::new(seed.rotate_left(24)).chance(1, 4),
            changes_durability: Prng::new(seed.rotate_left(40)).chance(1, 8),
            partial: false,
            storage: Storage::new(seed),
            processes: BTreeMap::new(),
            unguarded: BTreeSet::new(),
            late: late::Late::new(seed),
            digest: 0,
            delivered: 0,
            killed_at: None,
            ended: Vec::new(),
            stays_down: false,
            notes: Vec::new(),
            stops: Vec::new(),
            tally: Tally::default(),
            traps: Vec::new(),
        };
        let founding = founding(shape);
        for member in &founding.members {
            let config = world.config(shape, member, Start::Found(founding.clone()));
            world.add_node(config);
        }
        let ids: Vec<NodeId> = world.nodes.keys().copied().collect();
        for a in &ids {
            for b in ids.iter().filter(|b| *b > a) {
                world.at(Duration::ZERO, Event::Connect(End::Node(*a), End::Node(*b)));
            }
        }
        world
    }

    fn config(&mut self, shape: &Shape, member: &Member, start: Start) -> NodeConfig {
        let given = shape.placement.clone().filter(|_| member.roles.data);
        let placement = match (given, member.roles.data, shape.threads) {
            (Some(placement), ..) => placement,
            (_, false, _) | (_, _, 1) => {
                Placement::single(member.roles.data, shape.tc_instances, shape.ldm_instances)
            }
            (_, true, threads) => {
                let choose = |threads: usize| self.random.below(threads as u64) as usize;
                let (tcs, ldms) = (shape.tc_instances, shape.ldm_instances);
                let placement = Placement::spread(tcs, ldms, threads, choose);
                let reads = (0..threads).filter(|_| self.random.chance(1, 2));
                placement.with_queries(reads.collect::<Vec<_>>())
            }
        };
        let is_given = shape.placement.is_some() && member.roles.data;
        let placement = if is_given { placement } else { self.set_control_apart(placement) };
        let segment_bytes = 1 << self.storage.random.between(8, 18);
        let drawn = 1 << [13, 16, 22][self.storage.random.below(3) as usize];
        let waiting_bytes_max = shape.waiting_bytes_max.unwrap_or(drawn);
        NodeConfig {
            redo: Some(RedoFiles { cluster: 1, segment_bytes, waiting_bytes_max }),
            node: member.node,
            incarnation: member.incarnation,
            start,
            holds_data: member.roles.data,
            ldm_instances: shape.ldm_instances,
            tc_instances: shape.tc_instances,
            memory_bytes: 64 << 20,
            slices: shape.slices,
            outcome_kept: shape.outcome_kept,
            placement,
            seed: self.random.next_u64(),
            faults: self.faults.clone(),
        }
    }

    fn add_node(&mut self, config: NodeConfig) {
        let executors = build(&config);
        let threads = executors.len();
        let node = config.node;
        let nonce = config.start.nonce(node);
        self.processes.entry(node).or_default().insert(config.incarnation, nonce);
        self.nodes.insert(
            node,
            SimNode {
                config,
                executors,
                paused_until: Instant::ZERO,
                stuck: Stuck::default(),
                slow_until: Instant::ZERO,
                starves: false,
                busy: Busy::default(),
                next_wake: vec![None; threads],
                last_cross: BTreeMap::new(),
            },
        );
        (0..threads).for_each(|t| self.wake(node, t, Duration::ZERO));
    }

    /// True if the process of a client does nothing now.
    pub fn sleeps(&self, client: u32) -> bool {
        self.asleep.get(&client).is_some_and(|until| self.now < *until)
    }

    /// Plans an event.
    pub fn at(&mut self, span: Duration, event: Event) {
        self.at_instant(self.now.plus(span), event);
    }

    fn at_instant(&mut self, when: Instant, event: Event) {
        self.event_count += 1;
        self.events.insert((when.max(self.now), self.event_count), event);
    }

    /// The next event, if it happens before `end`; virtual time moves to it.
    pub fn next_event(&mut self, end: Instant) -> Option<Event> {
        let entry = self.events.first_entry()?;
        if entry.key().0 > end {
            self.now = end;
            return None;
        }
        let ((when, _), event) = entry.remove_entry();
        self.now = when;
        Some(event)
    }

    fn wake(&mut self, node: NodeId, thread: usize, span: Duration) {
        let when = self.now.plus(span);
        let Some(n) = self.nodes.get_mut(&node) else { return };
        let Some(planned) = n.next_wake.get_mut(thread) else { return };
        if planned.is_none_or(|p| p > when) {
            *planned = Some(when);
            self.at_instant(when, Event::Wake(node, thread));
        }
    }

    /// Does what an event says, unless it is about clients or a planned disturbance: these are given back.
    pub fn dispatch(&mut self, event: Event) -> Option<Event> {
        match event {
            Event::Wake(node, thread) => self.on_wake(node, thread),
            Event::Arrive { from, to, generation, packet } => {
                self.on_arrive(from, to, generation, packet);
            }
            Event::Cross { node, life, thread, packet } => {
                self.on_cross(node, life, thread, &packet);
            }
            Event::Disk { node, life, directory, to, asked } => {
                self.on_disk((node, life), directory, to, &asked);
            }
            Event::Notice { end, other, generation } => self.on_notice(end, other, generation),
            Event::Connect(a, b) => self.on_connect(a, b),
            Event::Up(node, peer, generation) => self.on_up(node, peer, generation),
            Event::Client(_) | Event::Disturb(_) => return Some(event),
        }
        None
    }

    /// Lets a thread work.
    fn on_wake(&mut self, node: NodeId, thread: usize) {
        let now = self.now;
        let budget = Budget { signals: self.random.between(1, self.signals_per_turn) as usize };
        if !self.crash_points.is_empty() {
            self.arm(node, thread);
        }
        let slow = self.nodes.get(&node).filter(|n| n.slow_until > now);
        let (slow, starves) = (slow.is_some(), slow.is_some_and(|n| n.starves));
        let budget = if slow { Budget { signals: 1 } } else { budget };
        let Some(n) = self.nodes.get_mut(&node) else { return };
        if n.next_wake.get(thread).copied().flatten() != Some(now) {
            return;
        }
        n.next_wake[thread] = None;
        let idle_until = n.idle_until(thread);
        if idle_until > now {
            return self.wake(node, thread, idle_until.since(now));
        }
        if thread == 0 {
            self.tell_late(node);
        }
        // What the last round has sent, if the thread has stood still in it.
        self.let_out(node, thread);
        let Some(n) = self.nodes.get_mut(&node) else { return };
        let ends = n.begin_round(thread, now);
        let Some(executor) = n.executors.get_mut(thread) else { return };
        let progress = executor.step(now, budget);
        executor.end_round(ends);
        let timer = executor.next_timer();
        if ends > now && !progress.crashed {
            return self.stick(node, thread, ends);
        }
        self.let_out(node, thread);
        if progress.crashed {
            self.stops.push((node, CRASH_POINT.to_string()));
            self.note_unrest();
            return self.kill(node);
        }
        // It may have ended itself.
        if self.nodes.get(&node).is_none_or(|n| !n.is_alive()) {
            return;
        }
        // What was put off for no time at all is done in the next turn.
        let is_due = timer.is_some_and(|timer| timer <= now);
        if let Some(timer) = timer.filter(|_| !is_due) {
            self.wake(node, thread, timer.since(now));
        }
        if progress.more || is_due {
            let longest = match (slow, starves && self.random.chance(1, 16)) {
                (false, _) => 20_000,
                (true, false) => 300_000,
                (true, true) => STARVES_NS_MAX,
            };
            let busy = Duration::from_nanos(self.random.between(500, longest));
            self.wake(node, thread, busy);
        }
    }

    /// Arms the crash points if the cluster can lose the node now.
    fn arm(&mut self, node: NodeId, thread: usize) {
        let points = if !self.calm && self.can_lose(&[node]) {
            self.crash_points.clone()
        } else {
            self.faults.clone()
        };
        if let Some(e) = self.nodes.get_mut(&node).and_then(|n| n.executors.get_mut(thread)) {
            e.arm(points);
        }
    }

    fn route(&mut self, node: NodeId, thread: usize, signal: &Signal<'_>) {
        let to = signal.header.receiver;
        let local = to.node == node || to.node.get() == 0;
        match to.kind() {
            Some(BlockKind::Client) if local => {
                self.transmit(End::Node(node), End::Client(to.instance), signal.bytes());
            }
            Some(BlockKind::Shell) if local => self.on_shell_signal(node, signal),
            _ if local => self.cross(node, thread, signal),
            _ => self.transmit(End::Node(node), End::Node(to.node), signal.bytes()),
        }
    }

    /// Between threads: in order, a little late.
    fn cross(&mut self, node: NodeId, from: usize, signal: &Signal<'_>) {
        let span = Duration::from_nanos(self.random.between(200, 30_000));
        let when = self.now.plus(span);
        let Some((thread, packet)) = self.home_of(node, signal) else { return };
        let Some(n) = self.nodes.get_mut(&node) else { return };
        let last = n.last_cross.entry((from, thread)).or_default();
        *last = when.max(*last);
        let (when, life) = (*last, n.config.incarnation);
        self.at_instant(when, Event::Cross { node, life, thread, packet });
    }

    /// The thread that a signal goes to, and the signal: reads may be done by one that reads beside its data manager.
    fn home_of(&mut self, node: NodeId, signal: &Signal<'_>) -> Option<(usize, Vec<u8>)> {
        let placement = &self.nodes.get(&node)?.config.placement;
        let to = signal.header.receiver;
        let beside: Vec<usize> = match lats_node::may_be_served_beside(signal) {
            true => placement.queries_of(to.instance).collect(),
            false => Vec::new(),
        };
        let all = beside.len() as u64 + 1;
        let Some(thread) = beside.get(self.random.below(all) as usize) else {
            return Some((placement.thread_of(to)?, signal.bytes().to_vec()));
        };
        let mut redirected = SignalBuffer::new();
        redirected.push_for(signal, BlockRef::query(to.node, to.instance));
        Some((*thread, redirected.pop()?.bytes().to_vec()))
    }

    /// A signal from another thread has arrived.
    fn on_cross(&mut self, node: NodeId, life: Incarnation, thread: usize, packet: &[u8]) {
        let same = self.nodes.get(&node).is_some_and(|n| n.life() == life && n.is_alive());
        if same {
            self.deliver_to_thread(node, thread, packet);
        }
    }

    fn deliver_to_thread(&mut self, node: NodeId, thread: usize, packet: &[u8]) {
        self.delivered += 1;
        let mixed = lats_base::hash::partition_hash(packet) ^ self.now.as_nanos();
        self.digest = self.digest.rotate_left(5).wrapping_mul(0x100_0000_01b3) ^ mixed;
        let Some(n) = self.nodes.get_mut(&node) else { return };
        let Some(executor) = n.executors.get_mut(thread) else { return };
        if let Ok(Some(signal)) = parse(packet) {
            executor.mailbox().push_signal(&signal);
        }
        let wait = Duration::from_nanos(self.random.between(200, 5_000));
        self.wake(node, thread, wait);
    }

    /// Sends a packet over a link.
    pub fn transmit(&mut self, from: End, to: End, packet: &[u8]) {
        self.transmit_some(from, to, packet, false);
    }

    /// A packet that was held goes on.
    pub fn go_on(&mut self, from: End, to: End, packet: &[u8]) {
        self.transmit_some(from, to, packet, true);
    }

    fn transmit_some(&mut self, from: End, to: End, packet: &[u8], again: bool) {
        if !self.traps.is_empty() {
            self.spring(from, to, packet);
        }
        let lane = self.lane(from, to, packet);
        if !self.network.link(from, to).open
            && parse(packet).is_ok_and(|s| s.is_some_and(|s| Lane::is_repeated(&s)))
        {
            return;
        }
        let ends = (from, to, lane);
        let fate = self.network.send(ends, again, self.now, &mut self.random, packet);
        if let Fate::Arrives(when, generation) = fate {
            let packet = packet.to_vec();
            self.at_instant(when, Event::Arrive { from, to, generation, packet });
        }
    }

    /// Lets so many packets through that are held on a link in this direction, or all: then it is whole again.
    pub fn let_through(&mut self, from: End, to: End, count: Option<usize>) {
        let packets = self.network.let_through(from, to, count);
        let stays_cut = self.network.set_cut(from, to, false);
        packets.iter().for_each(|packet| self.go_on(from, to, packet));
        self.network.set_cut(from, to, stays_cut);
    }

    /// Cuts a link if a trap waits for this signal.
    fn spring(&mut self, from: End, to: End, packet: &[u8]) {
        let Ok(Some(signal)) = parse(packet) else { return };
        let number = signal.number();
        let meets = |t: &Trap| (t.from, t.to, Some(t.number)) == (from, to, number);
        let Some(at) = self.traps.iter().position(meets) else { return };
        if self.traps[at].pass > 0 {
            self.traps[at].pass -= 1;
            return;
        }
        self.traps.remove(at);
        self.network.cut(from, to, false);
    }

    /// A packet has arrived.
    fn on_arrive(&mut self, from: End, to: End, generation: u64, packet: Vec<u8>) {
        if !self.network.arrives(from, to, self.now, generation) {
            return;
        }
        if self.network.link(from, to).lasts {
            let lane = self.lane(from, to, &packet);
            self.network.heard(from, to, lane);
        }
        match (from, to) {
            (_, End::Client(client)) => self.for_clients.push(ForClient::Packet(client, packet)),
            (End::Client(client), End::Node(node)) => self.enter(client, node, &packet),
            (End::Node(_), End::Node(node)) => {
                if let Ok(Some(signal)) = parse(&packet) {
                    self.deliver(node, &signal);
                }
            }
        }
    }

    fn deliver(&mut self, node: NodeId, signal: &Signal<'_>) {
        if !self.nodes.get(&node).is_some_and(SimNode::is_alive) {
            return;
        }
        let receiver = signal.header.receiver;
        if receiver.kind() == Some(BlockKind::Client) {
            return self.transmit(End::Node(node), End::Client(receiver.instance), signal.bytes());
        }
        if let Some((thread, packet)) = self.home_of(node, signal) {
            self.deliver_to_thread(node, thread, &packet);
        }
    }

    /// What a client sends goes through the same door as in production.
    fn enter(&mut self, client: u32, node: NodeId, packet: &[u8]) {
        let Some(life) = self.nodes.get(&node).map(SimNode::life) else { return };
        let Ok(Some(signal)) = parse(packet) else { return };
        let sender = BlockRef::new(node, BlockKind::Client, client);
        let mut out = SignalBuffer::new();
        if lats_signals::admit(&signal, Principal::Admin, sender, life.get(), &mut out).is_ok() {
            while let Some(signal) = out.pop() {
                self.deliver(node, &signal);
            }
        }
    }

    fn on_shell_signal(&mut self, node: NodeId, signal: &Signal<'_>) {
        match signal.number() {
            Some(SignalNumber::CloseLinkOrd) => {
                let body = signal.body::<CloseLinkOrd>();
                let other = NodeId::new(body.node as u16);
                let life = self.nodes.get(&other).map(SimNode::life);
                // Only the connection to the life that is meant.
                if life.is_some_and(|l| l.get() == body.incarnation as u32) {
                    self.lose_link(End::Node(node), End::Node(other));
                }
            }
            Some(SignalNumber::NoteOrd) => {
                let text = String::from_utf8_lossy(signal.payload()).into_owned();
                self.notes.push((node, text));
            }
            Some(SignalNumber::StopOrd) => {
                let why = String::from_utf8_lossy(signal.payload()).into_owned();
                self.note_end(&why, signal.body::<StopOrd>().status == STATUS_REMOVED);
                self.stops.push((node, why));
                self.ended.push((node, signal.body::<StopOrd>().status));
                self.kill(node);
            }
            _ => {}
        }
    }

    /// Tells the control block of a node something about a link.
    pub fn tell_control<B: lats_signals::Body>(&mut self, node: NodeId, body: &B) {
        self.tell(node, BlockRef::control(node), body);
    }

    fn tell<B: lats_signals::Body>(&mut self, node: NodeId, to: BlockRef, body: &B) {
        self.tell_with(node, to, body, &[]);
    }

    fn tell_with<B: lats_signals::Body>(
        &mut self,
        node: NodeId,
        to: BlockRef,
        body: &B,
        payload: &[u8],
    ) {
        let Some(n) = self.nodes.get(&node).filter(|n| n.is_alive()) else { return };
        let route =
            Route { sender: BlockRef::shell(node), receiver: to, incarnation: n.life().get() };
        let mut buffer = SignalBuffer::new();
        buffer.push(route, body, &[payload]);
        if let Some(signal) = buffer.pop() {
            self.deliver(node, &signal);
        }
    }

    fn life_of(&self, end: End) -> Option<Incarnation> {
        match end {
            End::Node(n) => self.nodes.get(&n).filter(|n| n.is_alive()).map(SimNode::life),
            // Those that are dismissed connect no more.
            End::Client(n) => (n <= self.client_count).then(Incarnation::default),
        }
    }

    /// Ends a process at once.
    pub fn kill(&mut self, node: NodeId) {
        let Some(n) = self.nodes.get(&node).filter(|n| n.is_alive()) else { return };
        let life = n.life();
        self.note_lost_log(node, life);
        let Some(n) = self.nodes.get_mut(&node) else { return };
        n.executors.clear();
        if n.config.holds_data {
            self.killed_at = Some(self.now);
        }
        n.next_wake.iter_mut().for_each(|w| *w = None);
        n.stuck = Stuck::default();
        if self.random.chance(1, 12) {
            self.unguarded.insert((node, life));
        }
        self.may_lose_power(node, life);
        let others: Vec<End> = self
            .nodes
            .keys()
            .filter(|o| **o != node)
            .map(|o| End::Node(*o))
            .chain((1..=self.client_count).map(End::Client))
            .collect();
        others.into_iter().for_each(|o| self.disconnect(End::Node(node), o));
        if self.stays_down {
            return;
        }
        // As the supervisor does.
        self.at(SUPERVISOR, Event::Disturb(Disturbance::Restart(node)));
    }

    /// Tells a node to stop; what its supervisor starts then is another life.
    pub fn stop(&mut self, node: NodeId) {
        let Some(life) = self.nodes.get(&node).map(SimNode::life) else { return };
        let body = StopNodeReq {
            node: u64::from(node.get()),
            incarnation: u64::from(life.get()),
            then: RESTART,
        };
        self.tell_control(node, &body);
        let sessions_end = Duration::from_millis(self.random.between(0, 600));
        self.at(sessions_end, Event::Disturb(Disturbance::SessionsGone(node, life, SESSION_LOOKS)));
    }

    /// Tells the process of a node to end.
    pub fn close(&mut self, node: NodeId) {
        let Some(life) = self.nodes.get(&node).map(SimNode::life) else { return };
        self.tell_control(node, &CloseOrd { reserved: 0 });
        let sessions_end = Duration::from_millis(self.random.between(0, 600));
        self.at(sessions_end, Event::Disturb(Disturbance::SessionsGone(node, life, SESSION_LOOKS)));
    }

    /// The MySQL clients of a node that is to stop are gone: it says so until its process ends.
    pub fn end_sessions(&mut self, node: NodeId, life: Incarnation, looks: u32) {
        if looks > 0 && self.life_of(End::Node(node)) == Some(life) {
            self.tell_control(node, &LeaveOrd { reserved: 0 });
            let again = Event::Disturb(Disturbance::SessionsGone(node, life, looks - 1));
            self.at(Duration::from_millis(100), again);
        }
    }

    /// Starts a new life of a dead node; it joins.
    pub fn restart(&mut self, node: NodeId) {
        let seeds: Vec<NodeId> = self.nodes.keys().copied().filter(|id| *id != node).collect();
        let Some(n) = self.nodes.get(&node).filter(|n| !n.is_alive()) else { return };
        let mut config = n.config.clone();
        config.incarnation = Incarnation::new(config.incarnation.get() + 1);
        if self.may_replace_disk_of(&config) {
            self.disk(node).replace();
        }
        self.make_directory(node);
        let member = Member {
            node,
            incarnation: config.incarnation,
            roles: Roles { data: config.holds_data, sql: config.holds_data },
            sql_address: sql_address(node),
            ..Member::default()
        };
        let former = self.processes.get(&node).into_iter().flatten();
        let ended = former.map(|(life, nonce)| (*life, *nonce)).collect();
        let nonce = Nonce::new([self.random.next_u64(), self.random.next_u64()]);
        let origin = Origin { nonce, ended };
        config.start = Start::Join { member, origin, seeds, partial: self.partial };
        config.seed = self.random.next_u64();
        self.add_node(config);
        let others: Vec<End> = self
            .nodes
            .keys()
            .filter(|o| **o != node)
            .map(|o| End::Node(*o))
            .chain((1..=self.client_count).map(End::Client))
            .collect();
        for other in others {
            self.at(Duration::from_millis(1), Event::Connect(End::Node(node), other));
        }
    }
}

/// How often a node is told that its MySQL clients are gone: longer than any stop takes.
const SESSION_LOOKS: u32 = 200;

/// Where a node serves MySQL clients: every other one does.
fn sql_address(node: NodeId) -> String {
    if node.get() % 2 == 1 { "sql".to_string() } else { String::new() }
}

/// A thread of a starved process gets no processor time for so long at most, in ns.
const STARVES_NS_MAX: u64 = 60_000_000;

/// How long a dead process stays dead, unless something else is planned for it.
const SUPERVISOR: Duration = Duration::from_millis(1_000);

fn founding(shape: &Shape) -> Founding {
    let data = 1..=shape.data_nodes;
    // Two nodes need a third voter; more have a majority of their own.
    let witness = (shape.data_nodes < 3).then_some(shape.data_nodes + 1);
    let member = |node: u16, holds_data: bool| Member {
        node: NodeId::new(node),
        incarnation: Incarnation::new(1),
        roles: Roles { data: holds_data, sql: holds_data },
        sql_address: sql_address(NodeId::new(node)),
        ..Member::default()
    };
    Founding {
        config: ClusterConfig {
            cluster_id: 1,
            replicas: shape.replicas,
            ldm_instances: shape.ldm_instances,
            tc_instances: shape.tc_instances,
            lease_ms: shape.lease_ms,
            lock_wait_ms: 100,
            keeps: true,
            to_disk: false,
        },
        members: data.map(|n| member(n, true)).chain(witness.map(|n| member(n, false))).collect(),
        number: 1,
    }
}

/// Whoever reads beside a data manager now and then meets its owner at work, which in the simulator takes turns with it; and what a
/// data manager has put off is sometimes still to be done when the next signals come, which there take long.
fn with_delays(mut faults: Faults) -> Faults {
    faults.arm(Fault::OwnerIsBusy, 4);
    faults.arm(Fault::TakeLate, 4);
    faults
}
