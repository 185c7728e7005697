//! Links to the other nodes: who is linked, and whom to connect to.
//!
//! A link is two connections, one for each lane (THREAD-5). It is up while both are there, and outlives them (LINK-1).

use crate::{
    connection::NODE_OUTPUT_MAX,
    output::{Output, link::LinkOutput},
};
use lats_base::{Duration, Instant, Nonce};
use lats_signals::Lane;
use std::{collections::BTreeMap, net::SocketAddr, sync::Arc};

/// What is known of another node.
#[derive(Clone, Default)]
pub(crate) struct Peer {
    pub(crate) address: Option<SocketAddr>,
    /// It is a live member, or one that we join through.
    pub(crate) wanted: bool,
    /// The connections of the link, by the number of the lane.
    lanes: [LaneEnd; Lane::ALL.len()],
    /// What belongs to the link to the process of `last`, by the number of the lane; and which link to it that is (LINK-4).
    outputs: Option<[Arc<Output>; Lane::ALL.len()]>,
    number: u32,
    /// The lane of rows of the link before, which is over: blocks are told before anything comes by another one.
    ended: Option<Arc<Output>>,
    /// The process that the newest connection was to; life 0 if there never was one.
    pub(crate) last: Process,
    /// The process that is a member, if the node has one.
    pub(crate) member: Option<Process>,
    /// When a connection of the link has ended.
    lost_at: Option<Instant>,
    /// When the log was told why there is no link.
    pub(crate) told_why: Option<Instant>,
}

/// Which process of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) life: u32,
    pub(crate) nonce: Nonce,
}

/// One connection of a link, or the attempt to open it.
#[derive(Clone, Debug, Default)]
struct LaneEnd {
    connection: Option<u64>,
    attempt: Option<Attempt>,
    retry_at: Instant,
    /// Attempts since the link was lost that somebody took and dropped.
    dropped: u32,
}

/// A connection that we are opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attempt {
    pub(crate) id: u64,
    pub(crate) begun: Instant,
    /// The life that has answered, and has not proved it yet; 0 before.
    pub(crate) life: u32,
}

impl Peer {
    /// A node that we want to be linked to.
    pub(crate) fn wanted_at(address: SocketAddr) -> Self {
        Self { address: Some(address), wanted: true, ..Self::default() }
    }

    fn lane(&self, lane: Lane) -> &LaneEnd {
        &self.lanes[lane as usize]
    }

    /// LIFE-3: why a process gets no link. One that is a member gets it always, and is displaced by nobody while it is linked.
    pub(crate) fn refuses(&self, process: Process, now: Instant) -> Option<&'static str> {
        let is_linked = self.lanes.iter().any(|end| end.connection.is_some());
        let was_lately = self.lost_at.is_some_and(|at| now.since(at) < COMES_BACK);
        match self.member {
            Some(member) if member == process => None,
            Some(member) if member.life == process.life => {
                Some("another process is the member with its life's number")
            }
            Some(member) if member.life > process.life => Some("an earlier life of the node"),
            Some(member) if is_linked && self.last == member => {
                Some("a former life of the node is a member, and is linked")
            }
            // One that hears nobody is told here that it is over (LIFE-3), unless a later one is there, or opens a connection again.
            _ if process.life < self.last.life && (is_linked || was_lately) => {
                Some("an earlier life of the node")
            }
            _ if process.life == self.last.life && process != self.last && is_linked => {
                Some("another process has its life's number")
            }
            _ => None,
        }
    }

    /// True if a connection that this life of the node has opened is one too many: ours is there, or on its way. Who does not
    /// answer at the address that we know may be somebody else.
    pub(crate) fn has_ours(&self, lane: Lane, life: u32, now: Instant) -> bool {
        let end = self.lane(lane);
        let is_coming = |attempt: Attempt| match attempt.life {
            0 => now.since(attempt.begun) < ANSWER,
            answered => answered == life,
        };
        (end.connection.is_some() && self.last.life == life) || end.attempt.is_some_and(is_coming)
    }

    /// True if this connection belongs to the link.
    pub(crate) fn is_linked_by(&self, id: u64) -> bool {
        self.lanes.iter().any(|end| end.connection == Some(id))
    }

    /// True if this connection is an attempt.
    pub(crate) fn is_attempt(&self, id: u64) -> bool {
        self.attempts().any(|attempt| attempt.id == id)
    }

    /// What is being opened.
    pub(crate) fn attempts(&self) -> impl Iterator<Item = Attempt> {
        self.lanes.iter().filter_map(|end| end.attempt)
    }

    /// The connections of the link that there are, in the order of lanes.
    pub(crate) fn connections(&self) -> impl Iterator<Item = u64> {
        self.lanes.iter().filter_map(|end| end.connection)
    }

    /// True while there is a connection for each lane.
    pub(crate) fn is_up(&self) -> bool {
        self.lanes.iter().all(|end| end.connection.is_some())
    }

    /// We open a connection.
    pub(crate) fn open(&mut self, lane: Lane, id: u64, now: Instant) {
        self.lanes[lane as usize].attempt = Some(Attempt { id, begun: now, life: 0 });
    }

    /// A connection with the process of this node is in use from now on.
    pub(crate) fn take(&mut self, node: u16, lane: Lane, id: u64, process: Process) -> Taken {
        let (mut former, mut ended_life) = (Vec::new(), None);
        if self.last != process || self.is_over() {
            ended_life = Some(self.last.life).filter(|life| *life != 0);
            former = self.end(0);
        }
        if self.last != process {
            (self.last, self.number) = (process, 0);
        }
        self.number += u32::from(self.outputs.is_none());
        let number = self.number;
        let outputs = self.outputs.get_or_insert_with(|| {
            Lane::ALL.map(|lane| {
                let process = (node, process.life);
                let link = LinkOutput::new(process, lane, number, NODE_OUTPUT_MAX);
                Arc::new(Output::Link(link))
            })
        });
        let output = outputs[lane as usize].clone();
        let end = &mut self.lanes[lane as usize];
        former.extend(end.connection.replace(id));
        let attempt = end.attempt.take().map(|attempt| attempt.id);
        let attempt = attempt.filter(|attempt| *attempt != id);
        let ended = if lane == Lane::Data { self.ended.take() } else { None };
        Taken { former, attempt, output, ended, ended_life }
    }

    /// LINK-4: something of the link to this process was lost.
    pub(crate) fn is_over(&self) -> bool {
        let mut links = self.outputs.iter().flatten().filter_map(|output| output.as_link());
        links.any(LinkOutput::is_over)
    }

    /// The link is over; the next one to the same process has a greater number than this. Gives its connections.
    pub(crate) fn end(&mut self, number: u32) -> Vec<u64> {
        self.number = self.number.max(number);
        if let Some(outputs) = self.outputs.take() {
            outputs.iter().for_each(|output| output.close());
            let [data, ..] = outputs;
            self.ended = Some(data);
        }
        self.lanes.iter_mut().filter_map(|end| end.connection.take()).collect()
    }
}

/// What a new connection means for the connections before it.
pub(crate) struct Taken {
    /// Connections that have to end: those of a former life, or the one that the other end has lost already.
    pub(crate) former: Vec<u64>,
    /// The attempt that is not needed any more.
    pub(crate) attempt: Option<u64>,
    /// The lane of the link that the connection belongs to.
    pub(crate) output: Arc<Output>,
    /// The lane of rows of the link before, if it is over: whose end the blocks must know first.
    pub(crate) ended: Option<Arc<Output>>,
    /// The link to this life has ended just now.
    pub(crate) ended_life: Option<u32>,
}

/// All other nodes.
#[derive(Default)]
pub(crate) struct Links {
    pub(crate) peers: BTreeMap<u16, Peer>,
}

const RETRY: Duration = Duration::from_millis(20);
/// A dying process closes its links before its port: an attempt in between succeeds, and is dropped. So
/// the next ones follow soon, at first.
const RETRY_SOON: Duration = Duration::from_micros(300);
const SOON_MAX: u32 = 6;
/// A node that lives answers an attempt sooner than this, or its own attempt is as welcome.
const ANSWER: Duration = Duration::from_millis(250);
/// A process that lives opens another connection sooner than this.
const COMES_BACK: Duration = Duration::from_millis(2_000);
/// The log says so often why there is no link to a node.
const LOG_PAUSE: Duration = Duration::from_millis(5_000);

impl Links {
    /// The peers that a connection should be opened to now, and the lane that it is for.
    pub(crate) fn due(&mut self, now: Instant) -> Vec<(u16, Lane, SocketAddr)> {
        let mut due = Vec::new();
        for (node, peer) in self.peers.iter_mut().filter(|(_, peer)| peer.wanted) {
            let Some(address) = peer.address else { continue };
            for (lane, end) in Lane::ALL.into_iter().zip(&mut peer.lanes) {
                if end.is_idle() && now >= end.retry_at {
                    end.retry_at = now.plus(RETRY);
                    due.push((*node, lane, address));
                }
            }
        }
        due
    }

    /// A connection of the link to a node has ended: another one is opened at once, if it can be.
    pub(crate) fn lost(&mut self, node: u16, id: u64, now: Instant) {
        let Some(peer) = self.peers.get_mut(&node) else { return };
        for end in peer.lanes.iter_mut().filter(|end| end.connection == Some(id)) {
            end.open_again(now);
            end.connection = None;
            peer.lost_at = Some(now);
        }
    }

    /// LINK-4: the link to a node is over, and another one is made. Gives the connections of it that there are.
    pub(crate) fn over(&mut self, node: u16, number: u32, now: Instant) -> Vec<u64> {
        let Some(peer) = self.peers.get_mut(&node) else { return Vec::new() };
        peer.lanes.iter_mut().for_each(|end| end.open_again(now));
        peer.end(number)
    }

    /// An attempt has ended in nothing.
    pub(crate) fn failed(&mut self, node: u16, id: u64, now: Instant) {
        let Some(end) = self.end_of_attempt(node, id) else { return };
        end.attempt = None;
        end.dropped += 1;
        if end.dropped <= SOON_MAX {
            let wait = Duration::from_nanos(RETRY_SOON.as_nanos() << end.dropped);
            end.retry_at = end.retry_at.min(now.plus(wait));
        }
    }

    /// An attempt has had an answer, which is not proved yet.
    pub(crate) fn answered(&mut self, node: u16, id: u64, life: u32) {
        let end = self.end_of_attempt(node, id);
        if let Some(attempt) = end.and_then(|end| end.attempt.as_mut()) {
            attempt.life = life;
        }
    }

    fn end_of_attempt(&mut self, node: u16, id: u64) -> Option<&mut LaneEnd> {
        let lanes = &mut self.peers.get_mut(&node)?.lanes;
        lanes.iter_mut().find(|end| end.attempt.is_some_and(|attempt| attempt.id == id))
    }

    /// An attempt has ended for a reason that a person should know, from time to time.
    pub(crate) fn note_refused(&mut self, node: u16, why: &str, now: Instant) {
        let Some(peer) = self.peers.get_mut(&node) else { return };
        if peer.told_why.is_some_and(|at| now.since(at) < LOG_PAUSE) {
            return;
        }
        peer.told_why = Some(now);
        let address = peer.address.map(|address| address.to_string()).unwrap_or_default();
        tracing::warn!(node, address, "no link to this node: {why}");
    }

    /// When the next attempt is due.
    pub(crate) fn next_attempt(&self) -> Option<Instant> {
        let wanted = self.peers.values().filter(|peer| peer.wanted && peer.address.is_some());
        let idle = wanted.flat_map(|peer| &peer.lanes).filter(|end| end.is_idle());
        idle.map(|end| end.retry_at).min()
    }
}

impl LaneEnd {
    /// At once, unless the last attempt has only just begun.
    fn open_again(&mut self, now: Instant) {
        (self.retry_at, self.dropped) = (self.retry_at.max(now), 0);
    }

    fn is_idle(&self) -> bool {
        self.connection.is_none() && self.attempt.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO.plus(Duration::from_millis(ms))
    }

    fn process(life: u32) -> Process {
        Process { life, nonce: Nonce::new([u64::from(life), 1]) }
    }

    #[test]
    fn a_member_is_displaced_by_nobody_while_it_is_linked() {
        let mut peer = Peer::default();
        let copy = Process { nonce: Nonce::new([9, 9]), ..process(7) };
        assert_eq!(peer.refuses(process(7), at(9_000)), None);
        peer.take(2, Lane::Data, 20, process(7));
        assert!(
            peer.refuses(copy, at(9_000)).is_some()
                && peer.refuses(process(6), at(9_000)).is_some()
        );
        assert_eq!(peer.refuses(process(8), at(9_000)), None, "neither is a member");
        peer.member = Some(process(7));
        assert_eq!(peer.refuses(process(7), at(9_000)), None);
        assert!(
            [process(8), copy, process(6)].iter().all(|p| peer.refuses(*p, at(9_000)).is_some())
        );
        peer.end(0);
        assert_eq!(
            peer.refuses(process(8), at(9_000)),
            None,
            "it can say why it should become one"
        );
        peer.take(2, Lane::Data, 21, process(8));
        assert_eq!(peer.refuses(process(7), at(9_000)), None, "the member was only cut off");
        peer.member = None;
        assert!(peer.refuses(process(7), at(9_000)).is_some());
        peer.end(0);
        peer.lost_at = Some(at(8_000));
        assert!(peer.refuses(process(7), at(9_000)).is_some(), "the later one may come back");
        assert_eq!(peer.refuses(process(7), at(11_000)), None, "it hears that it is over");
    }

    fn links() -> Links {
        let mut links = Links::default();
        links.peers.insert(2, Peer::wanted_at("127.0.0.1:1".parse().unwrap()));
        links
    }

    #[test]
    fn an_attempt_that_nobody_answers_does_not_keep_the_node_out() {
        let mut links = links();
        links.peers.get_mut(&2).unwrap().open(Lane::Control, 20, at(1_000));
        let has_ours = |links: &Links, life, ms| {
            let peer = &links.peers[&2];
            assert!(!peer.has_ours(Lane::Data, life, at(ms)), "the other lane has none");
            peer.has_ours(Lane::Control, life, at(ms))
        };
        assert!(has_ours(&links, 7, 1_100));
        assert!(!has_ours(&links, 7, 1_300));
        links.answered(2, 19, 7);
        assert!(!has_ours(&links, 7, 1_300), "another connection has an answer");
        links.answered(2, 20, 7);
        assert!(has_ours(&links, 7, 1_300));
        assert!(!has_ours(&links, 8, 1_300), "a later life has come");
    }

    fn take(peer: &mut Peer, lane: Lane, id: u64, life: u32) -> Taken {
        peer.take(2, lane, id, process(life))
    }

    fn number(taken: &Taken) -> u32 {
        taken.output.as_link().unwrap().number
    }

    #[test]
    fn a_link_outlives_its_connections() {
        let mut links = links();
        let both = [(2, Lane::Data), (2, Lane::Control)];
        let due = |links: &mut Links, ms| -> Vec<_> {
            links.due(at(ms)).into_iter().map(|(node, lane, _)| (node, lane)).collect()
        };
        assert_eq!(due(&mut links, 1), both);
        let peer = links.peers.get_mut(&2).unwrap();
        peer.open(Lane::Data, 20, at(1));
        let first = take(peer, Lane::Data, 20, 7);
        assert!(first.former.is_empty() && first.attempt.is_none() && !peer.is_up());
        take(peer, Lane::Control, 21, 7);
        assert!(peer.is_up() && peer.is_linked_by(20) && peer.is_linked_by(21));
        links.lost(2, 20, at(30));
        assert_eq!(due(&mut links, 30), both[..1], "the other lane has its connection");
        assert_eq!(links.peers[&2].lost_at, Some(at(30)));
        let peer = links.peers.get_mut(&2).unwrap();
        let again = take(peer, Lane::Data, 22, 7);
        assert!(Arc::ptr_eq(&first.output, &again.output) && peer.is_up());
        let displaces = take(peer, Lane::Data, 23, 7);
        assert_eq!((displaces.former, displaces.ended_life), (vec![22], None));
        assert!(Arc::ptr_eq(&first.output, &displaces.output) && number(&again) == 1);
    }

    #[test]
    fn a_link_ends_with_its_process_or_when_something_is_lost() {
        let mut links = links();
        let peer = links.peers.get_mut(&2).unwrap();
        let first = take(peer, Lane::Data, 20, 7);
        take(peer, Lane::Control, 21, 7);
        let later = take(peer, Lane::Control, 22, 8);
        assert_eq!((later.former, later.ended_life), (vec![20, 21], Some(7)), "a later life");
        assert!(later.ended.is_none() && first.output.as_link().unwrap().is_over());
        let rows = take(peer, Lane::Data, 23, 8);
        assert!(rows.ended.is_some_and(|ended| Arc::ptr_eq(&ended, &first.output)));
        assert_eq!((rows.ended_life, rows.output.as_link().unwrap().number), (None, 1));
        rows.output.close();
        assert!(peer.is_over());
        let third = take(peer, Lane::Data, 24, 8);
        assert_eq!((&third.former, third.ended_life), (&vec![23, 22], Some(8)));
        assert_eq!(number(&third), 2, "too much waited in it");
        assert!(third.ended.is_some());
        assert_eq!(links.over(2, 6, at(40)), [24], "the other end has begun the seventh");
        let peer = links.peers.get_mut(&2).unwrap();
        assert_eq!(number(&take(peer, Lane::Control, 25, 8)), 7);
    }
}
