//! Connections between nodes and clients: they come about, break, and are noticed to have broken. Links between nodes outlive them (LINK-1).

use super::{Event, ForClient, World};
use crate::network::{End, ordered};
use lats_base::{Duration, Incarnation, NodeId, Nonce};
use lats_signals::{
    BlockKind, BlockRef, SignalBuffer,
    buffer::Route,
    control::{CertificateOrd, ClientGoneRep, LinkDownRep, LinkUpRep},
};

impl World {
    /// Connects two ends, if they live and are not connected. A port that nobody listens at
    /// refuses.
    pub fn on_connect(&mut self, a: End, b: End) {
        if self.network.link(a, b).open {
            return;
        }
        if self.network.link(a, b).cut != [false, false] {
            // A cut network takes no new connections.
            return self.at(Duration::from_millis(20), Event::Connect(a, b));
        }
        match (self.life_of(a), self.life_of(b)) {
            (Some(life_a), Some(life_b)) => {
                if self.network.resumes((a, life_a), (b, life_b)) {
                    let again = self.network.resume(a, b);
                    again.iter().for_each(|(from, to, packet)| self.transmit(*from, *to, packet));
                    self.note_up(a, b);
                    self.note_up(b, a);
                    return;
                }
                // LINK-4: it is another process.
                if self.network.link(a, b).lasts {
                    self.network.link(a, b).ends();
                }
                // Whoever has not noticed that the former connection is closed does so now.
                let former = self.network.link(a, b).generation;
                self.on_notice(a, b, former);
                self.on_notice(b, a, former);
                self.network.open((a, life_a), (b, life_b));
                self.note_up(a, b);
                self.note_up(b, a);
            }
            (Some(_), None) => self.on_refusal(a, b),
            (None, Some(_)) => self.on_refusal(b, a),
            (None, None) => {}
        }
    }

    /// `end` has tried to connect to `other`, whose process has ended. That is when its guardian is heard, too, if it has one.
    fn on_refusal(&mut self, end: End, other: End) {
        let generation = self.network.link(end, other).generation;
        self.on_notice(end, other, generation);
        let side = ordered(end, other).1;
        let link = self.network.link(end, other);
        let (own, life) = (link.lives[side], link.lives[1 - side]);
        let told = std::mem::replace(&mut link.certified[side], true);
        let same = self.life_of(end) == Some(own);
        if let (End::Node(node), End::Node(peer), false, true) = (end, other, told, same)
            && life.get() > 0
            && !self.unguarded.contains(&(peer, life))
        {
            let nonce = self.nonce_of(peer, life);
            let (of, incarnation) = (u64::from(peer.get()), u64::from(life.get()));
            self.tell_control(node, &CertificateOrd { node: of, incarnation, nonce });
        }
    }

    /// Which process a life of a node was.
    fn nonce_of(&self, node: NodeId, life: Incarnation) -> Nonce {
        let known = self.processes.get(&node).and_then(|lives| lives.get(&life));
        known.copied().unwrap_or_default()
    }

    fn note_up(&mut self, end: End, other: End) {
        match (end, other) {
            (End::Node(node), End::Node(peer)) => {
                // The other one may have sent something already.
                let generation = self.network.link(end, other).generation;
                let later = self.up_later();
                self.at(later, Event::Up(node, peer, generation));
            }
            (End::Client(client), End::Node(node)) => {
                self.for_clients.push(ForClient::Up(client, node));
            }
            _ => {}
        }
    }

    pub(super) fn on_up(&mut self, node: NodeId, peer: NodeId, generation: u64) {
        let link = self.network.link(End::Node(node), End::Node(peer));
        let life = link.lives[1 - ordered(End::Node(node), End::Node(peer)).1];
        let is_current = link.open && link.generation == generation;
        if is_current {
            let (node_of, incarnation) = (u64::from(peer.get()), u64::from(life.get()));
            let nonce = self.nonce_of(peer, life);
            self.tell_control(node, &LinkUpRep { node: node_of, incarnation, nonce });
        }
    }

    /// `by` ends a connection; both ends notice it after a while, unless a cut keeps the news from
    /// the other, and connect again if they can. Between nodes nothing is lost with it (LINK-1).
    pub fn disconnect(&mut self, by: End, other: End) {
        self.end_connection((by, other), true);
    }

    /// The same, and what was on the way between two nodes is lost (LINK-4).
    pub fn lose_link(&mut self, by: End, other: End) {
        self.end_connection((by, other), false);
    }

    fn end_connection(&mut self, (by, other): (End, End), lasts: bool) {
        let did_last = self.network.link(by, other).lasts;
        let was_open = self.network.close((by, other), lasts, self.now, &mut self.random);
        if !was_open && (lasts || !did_last) {
            return;
        }
        let side = ordered(by, other).1;
        let link = self.network.link(by, other);
        let (generation, cut, last_word) = (link.generation, link.cut[side], link.last_words[side]);
        let (first, second) = (self.random.between(50, 3_000), self.random.between(50, 3_000));
        let notice = |end, other| Event::Notice { end, other, generation };
        self.at(Duration::from_micros(first), notice(by, other));
        if !cut {
            let when = self.now.plus(Duration::from_micros(second)).max(last_word);
            self.at_instant(when, notice(other, by));
        }
        self.at(Duration::from_millis(5), Event::Connect(by, other));
    }

    fn tell_link_down(&mut self, node: NodeId, peer: NodeId, life: Incarnation) {
        let body = LinkDownRep {
            node: u64::from(peer.get()),
            incarnation: u64::from(life.get()),
            lost: 1,
        };
        self.tell_all(node, &body);
    }

    fn tell_all<B: lats_signals::Body>(&mut self, node: NodeId, body: &B) {
        let Some(n) = self.nodes.get(&node) else { return };
        let blocks: Vec<BlockRef> = n
            .config
            .placement
            .threads
            .iter()
            .flatten()
            .filter(|(kind, _)| *kind != BlockKind::Query)
            .map(|(kind, instance)| BlockRef::new(node, *kind, *instance))
            .collect();
        blocks.into_iter().for_each(|b| self.tell(node, b, body));
    }

    /// All that read beside data managers, in whichever threads.
    fn tell_readers<B: lats_signals::Body>(&mut self, node: NodeId, body: &B) {
        let Some(n) = self.nodes.get(&node).filter(|n| n.is_alive()) else { return };
        let (sender, incarnation) = (BlockRef::shell(node), n.life().get());
        let threads = n.config.placement.threads.clone();
        for (thread, blocks) in threads.iter().enumerate() {
            for (_, instance) in blocks.iter().filter(|(kind, _)| *kind == BlockKind::Query) {
                let mut buffer = SignalBuffer::new();
                let receiver = BlockRef::query(node, *instance);
                buffer.push(Route { sender, receiver, incarnation }, body, &[]);
                if let Some(signal) = buffer.pop() {
                    self.deliver_to_thread(node, thread, signal.bytes());
                }
            }
        }
    }

    /// An end notices that a connection is closed.
    pub(super) fn on_notice(&mut self, end: End, other: End, generation: u64) {
        let side = ordered(end, other).1;
        let link = self.network.link(end, other);
        if link.generation != generation || generation == 0 {
            return;
        }
        if std::mem::replace(&mut link.noticed[side], true) {
            return;
        }
        let (own, life, lasts) = (link.lives[side], link.lives[1 - side], link.lasts);
        if self.life_of(end) != Some(own) {
            // Its successor knows nothing of that connection.
            return;
        }
        match (end, other) {
            (End::Node(node), End::Node(peer)) => {
                // It tries to connect again at once.
                if lasts {
                    let (node_of, incarnation) = (u64::from(peer.get()), u64::from(life.get()));
                    let body = LinkDownRep { node: node_of, incarnation, lost: 0 };
                    self.tell_control(node, &body);
                } else {
                    self.tell_link_down(node, peer, life);
                }
                let wait = Duration::from_micros(self.random.between(50, 500));
                self.at(wait, Event::Connect(end, other));
            }
            (End::Client(client), End::Node(node)) => {
                self.for_clients.push(ForClient::Down(client, node));
            }
            (End::Node(node), End::Client(client)) => {
                let body = ClientGoneRep { slot: u64::from(client) };
                self.tell_all(node, &body);
                self.tell_readers(node, &body);
            }
            (End::Client(_), End::Client(_)) => {}
        }
    }
}
