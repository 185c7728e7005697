//! Links: streams of signals that stay in order, are late, are held by cuts, and end by resets.

use lats_base::{Duration, Incarnation, Instant, NodeId, prng::Prng};
use lats_signals::Lane;
use std::collections::{BTreeMap, VecDeque};

/// One end of a link: a node, or a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// A node.
    Node(NodeId),
    /// A client, by its number.
    Client(u32),
}

/// A connection between two ends; between two nodes one for each lane, which are there together (THREAD-5).
#[derive(Clone, Debug, Default)]
pub struct Link {
    /// Grows with each new connection; what was sent over an older one is lost, or sent again if the link `lasts`.
    pub generation: u64,
    /// It is open.
    pub open: bool,
    /// Packets of each direction are held until the cut is healed.
    pub cut: [bool; 2],
    /// The same for one lane of each direction.
    stalled: [[bool; 2]; 2],
    /// The lives that the newest connection was between; 0 for clients.
    pub lives: [Incarnation; 2],
    /// Each end knows that the newest connection is closed.
    pub noticed: [bool; 2],
    /// Each end was told since that the other's process has ended.
    pub certified: [bool; 2],
    /// For each direction and lane.
    last_arrival: [[Instant; 2]; 2],
    /// What an end had sent when it closed the newest connection still arrives up to then, in each direction.
    pub last_words: [Instant; 2],
    held: [Vec<Vec<u8>>; 2],
    /// Both ends are nodes, and nothing was lost between these lives: what has not arrived is sent again over the next connection
    /// (LINK-1).
    pub lasts: bool,
    /// What has not arrived yet, for each direction and lane.
    unheard: [[VecDeque<Vec<u8>>; 2]; 2],
}

/// All links.
#[derive(Debug, Default)]
pub struct Network {
    links: BTreeMap<(End, End), Link>,
    /// No packet is late.
    pub steady: bool,
}

/// What becomes of a packet.
pub enum Fate {
    /// It arrives then, over that connection.
    Arrives(Instant, u64),
    /// It waits for the cut to be healed, or for the next connection if the link lasts; else it is lost.
    Held,
}

/// The two ends in order, and which of them `a` is.
pub fn ordered(a: End, b: End) -> ((End, End), usize) {
    if a <= b { ((a, b), 0) } else { ((b, a), 1) }
}

impl Link {
    /// LINK-4: what has not arrived is lost, and both ends are to notice.
    pub fn ends(&mut self) {
        self.lasts = false;
        self.noticed = [false; 2];
        self.unheard = Default::default();
    }
}

impl Network {
    /// The link between two ends.
    pub fn link(&mut self, a: End, b: End) -> &mut Link {
        self.links.entry(ordered(a, b).0).or_default()
    }

    /// Opens a new connection between these lives.
    pub fn open(&mut self, a: (End, Incarnation), b: (End, Incarnation)) {
        let link = self.link(a.0, b.0);
        link.generation += 1;
        link.open = true;
        link.held = Default::default();
        link.lives = if a.0 <= b.0 { [a.1, b.1] } else { [b.1, a.1] };
        link.noticed = [false; 2];
        link.certified = [false; 2];
        link.lasts = matches!((a.0, b.0), (End::Node(_), End::Node(_)));
        link.unheard = Default::default();
    }

    /// LINK-2: a new connection between the lives of the former one. What has not arrived is to be sent again: sender, receiver, packet.
    pub fn resume(&mut self, a: End, b: End) -> Vec<(End, End, Vec<u8>)> {
        let ((first, second), _) = ordered(a, b);
        let link = self.link(a, b);
        link.generation += 1;
        link.open = true;
        link.noticed = [false; 2];
        link.certified = [false; 2];
        let [there, back] = std::mem::take(&mut link.unheard);
        let there = there.into_iter().flatten().map(|p| (first, second, p));
        there.chain(back.into_iter().flatten().map(|p| (second, first, p))).collect()
    }

    /// True if a new connection between these lives goes on where the former one has ended.
    pub fn resumes(&mut self, a: (End, Incarnation), b: (End, Incarnation)) -> bool {
        let lives = if a.0 <= b.0 { [a.1, b.1] } else { [b.1, a.1] };
        let link = self.link(a.0, b.0);
        link.lasts && link.lives == lives
    }

    /// A packet between nodes has arrived.
    pub fn heard(&mut self, from: End, to: End, lane: Lane) {
        let direction = ordered(from, to).1;
        self.link(from, to).unheard[direction][lane as usize].pop_front();
    }

    /// `by` ends the connection, or dies. Of what it has sent some still arrives, in order, or all; what is on the
    /// way to it is lost, unless the link `lasts`. True if there was a connection.
    pub fn close(
        &mut self,
        (by, other): (End, End),
        lasts: bool,
        now: Instant,
        random: &mut Prng,
    ) -> bool {
        let direction = ordered(by, other).1;
        let link = self.link(by, other);
        let was = link.open;
        link.open = false;
        link.generation += 1;
        if link.lasts && !lasts {
            link.ends();
        }
        link.held = Default::default();
        link.last_words = [Instant::ZERO; 2];
        let last = link.last_arrival[direction].into_iter().max().unwrap_or_default();
        if was && last > now {
            let left = last.since(now).as_nanos();
            let heard = if random.chance(1, 2) { left } else { random.between(0, left) };
            link.last_words[direction] = now.plus(Duration::from_nanos(heard));
        }
        was
    }

    /// True if a packet of that connection arrives now: it stands, or this is of its sender's last words.
    pub fn arrives(&mut self, from: End, to: End, now: Instant, generation: u64) -> bool {
        let direction = ordered(from, to).1;
        let link = self.link(from, to);
        let closed_since =
            !link.open && link.generation == generation + 1 && !link.noticed[1 - direction];
        link.generation == generation || (closed_since && now <= link.last_words[direction])
    }

    /// Sends a packet, or sends one `again` that was held.
    pub fn send(
        &mut self,
        (from, to, lane): (End, End, Lane),
        again: bool,
        now: Instant,
        random: &mut Prng,
        packet: &[u8],
    ) -> Fate {
        let (key, direction) = ordered(from, to);
        let link = self.links.entry(key).or_default();
        let lane = lane as usize;
        if link.lasts && !again {
            link.unheard[direction][lane].push_back(packet.to_vec());
        }
        if !link.open {
            return Fate::Held;
        }
        if link.cut[direction] || link.stalled[direction][lane] {
            link.held[direction].push(packet.to_vec());
            return Fate::Held;
        }
        let last = &mut link.last_arrival[direction][lane];
        let arrival = now.plus(delay(self.steady, random)).max(*last);
        *last = arrival;
        Fate::Arrives(arrival, link.generation)
    }

    /// Cuts one or both directions.
    pub fn cut(&mut self, a: End, b: End, both: bool) {
        let direction = ordered(a, b).1;
        let link = self.link(a, b);
        link.cut[direction] = true;
        link.cut[1 - direction] |= both;
    }

    /// Holds what one lane brings, in one or both directions.
    pub fn stall(&mut self, a: End, b: End, lane: Lane, both: bool) {
        let direction = ordered(a, b).1;
        let link = self.link(a, b);
        link.stalled[direction][lane as usize] = true;
        link.stalled[1 - direction][lane as usize] |= both;
    }

    /// Heals a cut; what was held goes on now: sender, receiver, packet.
    pub fn heal(&mut self, a: End, b: End) -> Vec<(End, End, Vec<u8>)> {
        let ((first, second), _) = ordered(a, b);
        let link = self.link(a, b);
        link.cut = [false, false];
        link.stalled = Default::default();
        let held = std::mem::take(&mut link.held);
        let [there, back] = held;
        let there = there.into_iter().map(|p| (first, second, p));
        there.chain(back.into_iter().map(|p| (second, first, p))).collect()
    }

    /// Lets so many packets through that a cut holds in this direction, or all of them: then the direction is whole again.
    pub fn let_through(&mut self, from: End, to: End, count: Option<usize>) -> Vec<Vec<u8>> {
        let direction = ordered(from, to).1;
        let link = self.link(from, to);
        link.cut[direction] = count.is_some();
        let held = &mut link.held[direction];
        let count = count.unwrap_or(held.len()).min(held.len());
        held.drain(..count).collect()
    }

    /// Cuts a direction or not; what it was.
    pub fn set_cut(&mut self, from: End, to: End, cut: bool) -> bool {
        let direction = ordered(from, to).1;
        std::mem::replace(&mut self.link(from, to).cut[direction], cut)
    }

    /// Packets that a cut holds in this direction.
    pub fn held(&self, from: End, to: End) -> &[Vec<u8>] {
        let (key, direction) = ordered(from, to);
        self.links.get(&key).map_or(&[], |link| &link.held[direction])
    }

    /// True if packets can pass in both directions.
    pub fn is_whole(&self, a: End, b: End) -> bool {
        self.links.get(&ordered(a, b).0).is_some_and(|l| {
            l.open && l.cut == [false, false] && l.stalled == <[[bool; 2]; 2]>::default()
        })
    }
}

/// Mostly tens of microseconds, sometimes milliseconds.
fn delay(steady: bool, random: &mut Prng) -> Duration {
    if !steady && random.chance(1, 100) {
        Duration::from_micros(random.between(500, 8_000))
    } else {
        Duration::from_micros(random.between(15, 120))
    }
}
