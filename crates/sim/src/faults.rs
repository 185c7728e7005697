//! Disturbances of a run: which, when and how many, drawn by the seed.

use crate::{
    network::End,
    world::{Event, World},
};
use lats_base::{Duration, Incarnation, NodeId, prng::Prng};
use lats_catalog::View;
use lats_node::{NodeConfig, ldm::OUTCOME_KEPT};
use lats_signals::Lane;

/// Something that goes wrong, or comes right again.
#[derive(Clone, Copy, Debug)]
pub enum Disturbance {
    /// A process ends at once; its next life starts after so many ms.
    Kill(NodeId, u64),
    /// The next life of a dead process starts.
    Restart(NodeId),
    /// A process does nothing for so many ms.
    Pause(NodeId, u64),
    /// A process gets little processor time for so many ms: one signal, and then others run.
    Slow(NodeId, u64),
    /// The threads of a process do nothing for so many ms, but for the one of control.
    Busy(NodeId, u64),
    /// What one lane of a link brings stays away for so many ms, in one or both directions.
    Stall(NodeId, NodeId, Lane, bool, u64),
    /// A connection between nodes breaks; what was under way on it is sent again (LINK-1).
    Reset(NodeId, NodeId),
    /// A link between nodes is lost, with what was under way on it (LINK-4).
    LoseLink(NodeId, NodeId),
    /// A connection of a client breaks.
    ClientReset(u32, NodeId),
    /// The process of a client does nothing for so many ms.
    Sleep(u32, u64),
    /// Packets between two nodes stay away for so many ms, in one or both directions.
    Cut(NodeId, NodeId, bool, u64),
    /// A node and a client are alone with each other for so many ms.
    Isolate(NodeId, u32, u64),
    /// What a node sends to other nodes stays away for so many ms; or what they send to it.
    OneWay(NodeId, bool, u64),
    /// A node is told to stop, and to be started again.
    Stop(NodeId),
    /// The directory of a node is gone, and for so many ms and one second there is no other (GONE-1).
    LoseDirectory(NodeId, u64),
    /// A process notices that its directory is gone (true), or has begun another one.
    Directory(NodeId, Incarnation, bool),
    /// A node that is told to stop has no MySQL clients any more; so often it says so again.
    SessionsGone(NodeId, Incarnation, u32),
    /// Packets come through again.
    Heal(End, End),
}

impl Disturbance {
    /// What it is counted as; nothing if it makes something good again.
    fn kind(self) -> Option<&'static str> {
        Some(match self {
            Self::Kill(..) => "death",
            Self::Pause(..) => "pause",
            Self::Slow(..) => "slow process",
            Self::Busy(..) => "busy threads",
            Self::Stall(_, _, Lane::Data, ..) => "stalled rows",
            Self::Stall(_, _, Lane::Control, ..) => "stalled heartbeats",
            Self::Reset(..) => "broken connection",
            Self::LoseLink(..) => "lost link",
            Self::ClientReset(..) => "broken client link",
            Self::Sleep(..) => "sleeping client",
            Self::Cut(_, _, true, _) => "cut",
            Self::Cut(_, _, false, _) => "cut in one direction",
            Self::Isolate(..) => "isolated node",
            Self::OneWay(..) => "deaf or mute node",
            Self::Stop(_) => "stop",
            Self::LoseDirectory(..) => "directory gone",
            Self::Restart(_) | Self::Heal(..) | Self::SessionsGone(..) | Self::Directory(..) => {
                return None;
            }
        })
    }
}

impl Disturbance {
    /// True if somebody may be removed for it. That control's connection stalls counts when it happens.
    fn may_remove(self) -> bool {
        let is_late = matches!(self, Self::Busy(..) | Self::Stall(..));
        let is_small = matches!(self, Self::Reset(..) | Self::ClientReset(..) | Self::Sleep(..));
        !is_late && !is_small && !self.is_good()
    }

    /// True if something comes right again, or is noticed that has happened already.
    fn is_good(self) -> bool {
        matches!(
            self,
            Self::Restart(_) | Self::Heal(..) | Self::SessionsGone(..) | Self::Directory(..)
        )
    }
}

/// Which kinds of disturbances a run has.
#[derive(Clone, Copy, Debug, Default)]
pub struct Menu {
    /// Kills with restarts.
    pub kills: bool,
    /// Pauses.
    pub pauses: bool,
    /// Times of little processor time.
    pub slow: bool,
    /// Broken connections.
    pub resets: bool,
    /// Broken connections of clients.
    pub client_resets: bool,
    /// Cuts.
    pub cuts: bool,
    /// A node cut off from all others, with a client.
    pub isolations: bool,
    /// Nodes that are told to stop.
    pub stops: bool,
    /// Directories that are removed under a process.
    pub directories: bool,
}

impl Menu {
    /// Any mix.
    pub fn draw(random: &mut Prng) -> Self {
        Self {
            kills: random.chance(3, 4),
            pauses: random.chance(1, 3),
            slow: random.chance(1, 3),
            resets: random.chance(1, 4),
            client_resets: random.chance(1, 3),
            cuts: random.chance(1, 3),
            isolations: random.chance(1, 3),
            stops: random.chance(1, 3),
            // Its own numbers: other disturbances are the same with it and without.
            directories: random.clone().chance(1, 3),
        }
    }
}

/// More disturbances than this are a storm.
const CALM_MAX: u64 = 8;

/// How many disturbances a run has: now and then a storm of them.
pub fn draw_count(random: &mut Prng) -> u64 {
    if random.chance(1, 20) { random.between(20, 60) } else { random.between(1, CALM_MAX) }
}

/// How long a process is down. Now and then the next one is there before anybody has noticed (VIEW-11).
fn restart_ms(random: &mut Prng) -> u64 {
    match random.between(20, 1_000) {
        ms if ms % 16 == 0 => ms % 6,
        ms => ms,
    }
}

/// Plans disturbances; gives the time of the last one, in ms. Each waits until the cluster can
/// bear it.
pub fn plan(world: &mut World, menu: Menu, count: u64, random: &mut Prng) -> u64 {
    let mut at_ms = 300;
    let mut kills_ms = Vec::new();
    let all = world.nodes.len() as u64;
    let clients = u64::from(world.client_count);
    // Most of the time there is peace between two disturbances; in a storm there is not.
    let pause_ms = if count > CALM_MAX { 400 } else { 2_100 };
    for _ in 0..count {
        at_ms += random.between(50, pause_ms);
        let victim = NodeId::new(random.between(1, all) as u16);
        let other = NodeId::new(random.between(1, all) as u16);
        let disturbance = match random.below(8) {
            0 if menu.kills => Disturbance::Kill(victim, restart_ms(random)),
            1 if menu.pauses => Disturbance::Pause(victim, random.between(20, 900)),
            2 if menu.resets && other != victim && random.chance(1, 2) => {
                Disturbance::Reset(victim, other)
            }
            2 if menu.resets && other != victim => Disturbance::LoseLink(victim, other),
            3 if menu.cuts && other != victim => {
                let both = random.chance(2, 3);
                Disturbance::Cut(victim, other, both, random.between(50, 1_200))
            }
            4 if menu.client_resets => {
                Disturbance::ClientReset(random.between(1, clients) as u32, victim)
            }
            5 if menu.isolations && random.chance(1, 3) => {
                Disturbance::OneWay(victim, random.chance(1, 2), random.between(50, 1_500))
            }
            5 if menu.isolations => {
                let any = (random.between(1, clients) as u32, victim);
                // A reader in its own node's company would see what others have left behind.
                let (client, victim) = match world.readers.first() {
                    Some(reader) if random.chance(1, 2) => *reader,
                    _ => any,
                };
                Disturbance::Isolate(victim, client, random.between(50, 1_500))
            }
            7 if menu.stops => Disturbance::Stop(victim),
            6 if menu.slow => Disturbance::Slow(victim, random.between(20, 900)),
            _ => continue,
        };
        if let Disturbance::Kill(..) = disturbance {
            kills_ms.push(at_ms);
        }
        world.at(Duration::from_millis(at_ms), Event::Disturb(disturbance));
    }
    if menu.directories {
        plan_directories(world, at_ms, &mut random.clone());
    }
    plan_sleeps(world, &kills_ms);
    // Half of the deaths are followed by another one before the cluster is whole again.
    for kill_ms in kills_ms {
        if random.chance(1, 2) {
            continue;
        }
        let victim = NodeId::new(random.between(1, all) as u16);
        let second_ms = kill_ms + random.between(0, 1_500);
        let second = Disturbance::Kill(victim, restart_ms(random));
        world.at(Duration::from_millis(second_ms), Event::Disturb(second));
        at_ms = at_ms.max(second_ms);
    }
    plan_lateness(world, at_ms);
    at_ms
}

/// One or two directories are gone, at any time, now and then two at once.
fn plan_directories(world: &mut World, until_ms: u64, random: &mut Prng) {
    let all = world.nodes.len() as u64;
    let mut at_ms = 300;
    for _ in 0..random.between(1, 2) {
        at_ms += if random.chance(1, 3) { 0 } else { random.below(until_ms) };
        let node = NodeId::new(random.between(1, all) as u16);
        let lost = Disturbance::LoseDirectory(node, random.between(0, 1_000));
        world.at(Duration::from_millis(at_ms), Event::Disturb(lost));
    }
}

/// Where outcomes are kept for a short time only, each death has a client that falls asleep before, and sleeps for longer or not
/// (OUTCOME-8).
fn plan_sleeps(world: &mut World, kills_ms: &[u64]) {
    let kept_ms = world.outcome_kept.as_millis();
    if kept_ms >= OUTCOME_KEPT.as_millis() {
        return;
    }
    let clients = u64::from(world.client_count);
    for kill_ms in kills_ms {
        let random = world.lateness();
        let client = random.between(1, clients) as u32;
        let at_us = (kill_ms * 1_000).saturating_sub(random.below(2_000));
        // Replicas that are filled remember for as long once more.
        let sleep_ms = random.between(kept_ms / 4, 3 * kept_ms + 4_000);
        let sleep = Disturbance::Sleep(client, sleep_ms);
        world.at(Duration::from_micros(at_us), Event::Disturb(sleep));
    }
}

/// Some of the time threads and connections are late. Nobody is removed for that.
fn plan_lateness(world: &mut World, end_ms: u64) {
    let all = world.nodes.len() as u64;
    for _ in 0..world.lateness().below(4) {
        let random = world.lateness();
        let at_ms = random.between(300, end_ms);
        let victim = NodeId::new(random.between(1, all) as u16);
        let other = NodeId::new(random.between(1, all) as u16);
        let both = random.chance(2, 3);
        let disturbance = match random.below(4) {
            0 | 1 => Disturbance::Busy(victim, random.between(50, 3_000)),
            _ if other == victim => continue,
            2 => Disturbance::Stall(victim, other, Lane::Data, both, random.between(50, 3_000)),
            _ => Disturbance::Stall(victim, other, Lane::Control, both, random.between(50, 600)),
        };
        world.at(Duration::from_millis(at_ms), Event::Disturb(disturbance));
    }
}

/// How long a disturbance waits when the cluster cannot bear it now.
const POSTPONED: Duration = Duration::from_millis(50);

impl World {
    /// True if the cluster can lose one of these nodes: all others are full members that can talk
    /// to each other, so that they hold all data and a majority of the votes.
    pub(crate) fn can_lose(&self, one_of: &[NodeId]) -> bool {
        self.is_whole_without(one_of) && one_of.iter().any(|n| self.holds_on(*n))
    }

    /// True if all nodes are full members that can talk to each other.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_whole_without(&[])
    }

    fn is_whole_without(&self, without: &[NodeId]) -> bool {
        let Some(view) = crate::checkers::newest_view(self) else { return false };
        let others: Vec<NodeId> =
            self.nodes.keys().copied().filter(|n| !without.contains(n)).collect();
        let whole = |id: &NodeId| {
            self.nodes.get(id).is_some_and(|n| {
                n.is_alive()
                    && n.is_awake(self.now)
                    && view.is_alive(*id, n.life())
                    && crate::checkers::control(n)
                        .is_some_and(|c| c.is_calm(without) && c.knows_leader())
                    && (!n.config.holds_data || view.is_in_sync(*id))
            })
        };
        let linked = |a: &NodeId| {
            let nearer = others.iter().filter(|b| *b > a);
            nearer.into_iter().all(|b| self.network.is_whole(End::Node(*a), End::Node(*b)))
        };
        // Whoever is to stop may have been removed already.
        let stays = |r: &lats_catalog::Replica| {
            r.in_sync && others.contains(&r.node) && !view.is_stopping(r.node)
        };
        let holds_all = view.groups.iter().all(|g| g.is_lost() || g.replicas.iter().any(stays));
        holds_all && others.iter().all(|n| whole(n) && linked(n))
    }

    /// True if the cluster survives the death of this process although others are dead or on their
    /// way back (VIEW-8): what is left holds all data, can talk, knows of no other trouble, and is at
    /// least half of whoever may have a vote.
    fn can_lose_too(&self, victim: NodeId) -> bool {
        let Some(view) = crate::checkers::newest_view(self) else { return false };
        let dead = |id: &NodeId| self.nodes.get(id).is_none_or(|n| !n.is_alive());
        let full = |id: &NodeId| {
            let n = self.nodes.get(id).filter(|n| n.is_alive());
            n.is_some_and(|n| {
                view.is_alive(*id, n.life()) && (!n.config.holds_data || view.is_in_sync(*id))
            })
        };
        let all: Vec<NodeId> = self.nodes.keys().copied().collect();
        let (left, lost): (Vec<NodeId>, Vec<NodeId>) =
            all.iter().copied().partition(|id| *id != victim && full(id));
        let calm = |id: &NodeId| {
            let node = self.nodes.get(id);
            node.and_then(crate::checkers::control).is_some_and(|c| c.is_calm(&lost))
        };
        let awake = all.iter().all(|id| self.nodes.get(id).is_some_and(|n| n.is_awake(self.now)));
        // Links to the dead are closed; those among the living must pass.
        let linked = |a: &NodeId| {
            let others = all.iter().filter(|b| *b > a && !dead(b));
            others.into_iter().all(|b| self.network.is_whole(End::Node(*a), End::Node(*b)))
        };
        let stays = |r: &lats_catalog::Replica| {
            r.in_sync && left.contains(&r.node) && !view.is_stopping(r.node)
        };
        let holds_all = view.groups.iter().all(|g| g.replicas.iter().any(stays));
        awake
            && !dead(&victim)
            && holds_all
            && left.iter().all(calm)
            && all.iter().filter(|id| !dead(id)).all(linked)
            && self.half_survives(view, victim)
            && left.iter().all(|id| self.can_decide_without(*id, victim))
            // A change of voters that it has proposed may be on its way to them.
            && self.can_decide_without(victim, NodeId::default())
    }

    /// True if the node could decide with half of the voters that it knows of, if it had to: what those who
    /// die have agreed on without it, nobody would know.
    fn can_decide_without(&self, node: NodeId, victim: NodeId) -> bool {
        let control = self.nodes.get(&node).and_then(crate::checkers::control);
        let Some(voters) = control.and_then(|c| c.settled_voters()) else { return false };
        let survives = |(id, life): &&(NodeId, Incarnation)| {
            *id != victim && self.nodes.get(id).is_some_and(|n| n.is_alive() && n.life() == *life)
        };
        2 * voters.iter().filter(survives).count() >= voters.len()
    }

    /// Counts votes: now, and when all who are on their way have become members.
    fn half_survives(&self, view: &View, victim: NodeId) -> bool {
        let members: Vec<(NodeId, Incarnation)> =
            view.members.iter().filter(|m| m.alive).map(|m| (m.node, m.incarnation)).collect();
        let alive = self.nodes.iter().filter(|(_, n)| n.is_alive()).map(|(id, n)| (*id, n.life()));
        let alive: Vec<(NodeId, Incarnation)> = alive.collect();
        let coming = alive.iter().filter(|life| !members.contains(life));
        let later: Vec<(NodeId, Incarnation)> = members.iter().chain(coming).copied().collect();
        [members, later].iter().all(|voters| {
            let survivors = voters.iter().filter(|life| life.0 != victim && alive.contains(life));
            2 * survivors.count() >= voters.len()
        })
    }

    /// True if the cluster goes on without what is on the node's disk, and it is to be lost.
    pub(crate) fn may_replace_disk_of(&self, config: &NodeConfig) -> bool {
        let (node, life) = (config.node, config.incarnation);
        let chosen = || Prng::new(self.digest ^ u64::from(life.get())).chance(1, 4);
        let Some(view) = crate::checkers::newest_view(self) else { return false };
        let is_up =
            |n: NodeId| self.nodes.get(&n).is_some_and(|n| view.is_alive(n.config.node, n.life()));
        let holds = |r: &lats_catalog::Replica| r.in_sync && r.node != node && is_up(r.node);
        let mut others = view.members.iter().filter(|m| m.alive);
        // Who had been taken in, and has nothing on its disk when all nodes have died, counts as missing (RESTART-1).
        self.replaces_disks
            && !self.calm
            && !view.groups.is_empty()
            // Nobody has died whom the others still count on.
            && others.all(|m| m.node != node && is_up(m.node))
            && view.groups.iter().all(|group| group.replicas.iter().any(holds))
            && chosen()
    }

    /// Counts a disturbance that has happened.
    pub(crate) fn note(&mut self, disturbance: Disturbance) {
        if let Some(kind) = disturbance.kind() {
            self.tally.note(kind);
        }
    }

    /// True if there is something to lose.
    fn holds_on(&self, node: NodeId) -> bool {
        self.nodes.get(&node).is_some_and(|n| n.is_alive() && n.is_awake(self.now))
    }

    /// True if the cluster, as a whole, is one that survives the disturbance.
    fn can_bear(&self, disturbance: Disturbance) -> bool {
        match disturbance {
            Disturbance::Kill(node, _) => self.can_lose(&[node]) || self.can_lose_too(node),
            Disturbance::LoseDirectory(node, _) => {
                self.can_lose(&[node]) || self.is_alone_with_rows(node)
            }
            Disturbance::Busy(node, _) => self.has_control_apart(node) && self.can_lose(&[node]),
            Disturbance::Pause(node, _)
            | Disturbance::Slow(node, _)
            | Disturbance::Stop(node)
            | Disturbance::Isolate(node, ..)
            | Disturbance::OneWay(node, ..) => self.can_lose(&[node]),
            // One of both will have to go; which one, the cluster decides.
            Disturbance::LoseLink(a, b)
            | Disturbance::Cut(a, b, _, _)
            | Disturbance::Stall(a, b, ..) => self.can_lose(&[a]) && self.can_lose(&[b]),
            Disturbance::Reset(..)
            | Disturbance::Restart(_)
            | Disturbance::Heal(..)
            | Disturbance::SessionsGone(..)
            | Disturbance::Directory(..)
            | Disturbance::ClientReset(..)
            | Disturbance::Sleep(..) => true,
        }
    }

    /// GONE-3: it has the only full replica of its rows, and does not end whatever becomes of its directory.
    fn is_alone_with_rows(&self, node: NodeId) -> bool {
        crate::checkers::newest_view(self)
            .is_some_and(|view| view.is_in_sync(node) && !view.is_replaceable(node))
            && self.holds_on(node)
    }

    /// Lets a disturbance happen, or puts it off; true if it happened.
    pub fn disturb(&mut self, disturbance: Disturbance) -> bool {
        if self.calm && !disturbance.is_good() {
            // It was put off until the end of all faults: what follows counts on everybody.
            return false;
        }
        if !self.can_bear(disturbance) {
            self.at(POSTPONED, Event::Disturb(disturbance));
            return false;
        }
        if disturbance.may_remove() {
            self.note_unrest();
        }
        match disturbance {
            Disturbance::Kill(node, ms) => {
                self.kill(node);
                self.at(Duration::from_millis(ms), Event::Disturb(Disturbance::Restart(node)));
            }
            Disturbance::Restart(node) => self.restart(node),
            Disturbance::Pause(node, ms) => self.pause(node, Duration::from_millis(ms)),
            Disturbance::Slow(node, ms) => self.slow(node, Duration::from_millis(ms)),
            Disturbance::Busy(node, ms) => self.keep_busy(node, Duration::from_millis(ms)),
            Disturbance::Stall(a, b, lane, both, ms) => {
                let ends = (End::Node(a), End::Node(b));
                self.stall(ends, lane, both, Duration::from_millis(ms));
            }
            Disturbance::Stop(node) => self.stop(node),
            Disturbance::LoseDirectory(node, ms) => self.lose_directory(node, ms),
            Disturbance::Directory(node, life, gone) => self.hear_of_directory(node, life, gone),
            Disturbance::SessionsGone(node, life, looks) => self.end_sessions(node, life, looks),
            Disturbance::Reset(a, b) => self.disconnect(End::Node(a), End::Node(b)),
            Disturbance::LoseLink(a, b) => self.lose_link(End::Node(a), End::Node(b)),
            Disturbance::ClientReset(client, node) => {
                self.disconnect(End::Client(client), End::Node(node));
            }
            Disturbance::Sleep(client, ms) => {
                self.asleep.insert(client, self.now.plus(Duration::from_millis(ms)));
            }
            Disturbance::Cut(a, b, both, ms) => {
                self.cut(End::Node(a), End::Node(b), both, ms);
            }
            Disturbance::Isolate(node, client, ms) => {
                let others: Vec<NodeId> =
                    self.nodes.keys().copied().filter(|n| *n != node).collect();
                for other in others {
                    self.cut(End::Node(node), End::Node(other), true, ms);
                    self.cut(End::Client(client), End::Node(other), true, ms);
                }
            }
            Disturbance::OneWay(node, mute, ms) => {
                let others: Vec<NodeId> =
                    self.nodes.keys().copied().filter(|n| *n != node).collect();
                for other in others {
                    let (from, to) = if mute { (node, other) } else { (other, node) };
                    self.cut(End::Node(from), End::Node(to), false, ms);
                }
            }
            Disturbance::Heal(a, b) => {
                let held = self.network.heal(a, b);
                held.into_iter().for_each(|(from, to, packet)| self.go_on(from, to, &packet));
            }
        }
        true
    }

    pub(crate) fn cut(&mut self, a: End, b: End, both: bool, ms: u64) {
        self.network.cut(a, b, both);
        self.at(Duration::from_millis(ms), Event::Disturb(Disturbance::Heal(a, b)));
    }
}
