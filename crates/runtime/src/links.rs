//! Links to the other nodes: who is linked, whom to connect to, whose process is gone.

use lats_base::{Duration, Instant};
use std::{collections::BTreeMap, net::SocketAddr};

/// What is known of another node.
#[derive(Clone, Debug, Default)]
pub(crate) struct Peer {
    pub(crate) address: Option<SocketAddr>,
    /// It is a live member, or one that we join through.
    pub(crate) wanted: bool,
    /// The connection that is its link.
    pub(crate) link: Option<u64>,
    /// A connection that is being opened.
    pub(crate) attempt: Option<Attempt>,
    /// The life that the newest link was to; 0 if there never was one.
    pub(crate) last_life: u32,
    /// That life is known to be gone, and control has been told.
    pub(crate) told_gone: bool,
    pub(crate) retry_at: Instant,
    /// Attempts since the link was lost that somebody took and dropped.
    pub(crate) dropped: u32,
    /// When the log was told why there is no link.
    pub(crate) told_why: Option<Instant>,
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
    /// True if a connection that this life of the node has opened is one too many: ours is there, or on its way. Who does not
    /// answer at the address that we know may be somebody else.
    pub(crate) fn has_ours(&self, life: u32, now: Instant) -> bool {
        let is_coming = |attempt: Attempt| match attempt.life {
            0 => now.since(attempt.begun) < ANSWER,
            answered => answered == life,
        };
        (self.link.is_some() && self.last_life == life) || self.attempt.is_some_and(is_coming)
    }

    /// True if this connection is the attempt.
    pub(crate) fn is_attempt(&self, id: u64) -> bool {
        self.attempt.is_some_and(|attempt| attempt.id == id)
    }
}

/// All other nodes.
#[derive(Debug, Default)]
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
/// The log says so often why there is no link to a node.
const LOG_PAUSE: Duration = Duration::from_millis(5_000);

impl Links {
    /// The peers that a connection should be opened to now.
    pub(crate) fn due(&mut self, now: Instant) -> Vec<(u16, SocketAddr)> {
        let mut due = Vec::new();
        for (node, peer) in &mut self.peers {
            let idle = peer.wanted && peer.link.is_none() && peer.attempt.is_none();
            if let Some(address) = peer.address.filter(|_| idle && now >= peer.retry_at) {
                peer.retry_at = now.plus(RETRY);
                due.push((*node, address));
            }
        }
        due
    }

    /// The link to a node is lost: whether its process is gone is to be found out at once.
    pub(crate) fn lost(&mut self, node: u16, now: Instant) {
        if let Some(peer) = self.peers.get_mut(&node) {
            peer.link = None;
            peer.retry_at = now;
            peer.dropped = 0;
        }
    }

    /// An attempt has ended in nothing.
    pub(crate) fn failed(&mut self, node: u16, now: Instant) {
        if let Some(peer) = self.peers.get_mut(&node) {
            peer.attempt = None;
            peer.dropped += 1;
            if peer.dropped <= SOON_MAX {
                let wait = Duration::from_nanos(RETRY_SOON.as_nanos() << peer.dropped);
                peer.retry_at = peer.retry_at.min(now.plus(wait));
            }
        }
    }

    /// An attempt has had an answer, which is not proved yet.
    pub(crate) fn answered(&mut self, node: u16, id: u64, life: u32) {
        let attempt = self.peers.get_mut(&node).and_then(|peer| peer.attempt.as_mut());
        if let Some(attempt) = attempt.filter(|attempt| attempt.id == id) {
            attempt.life = life;
        }
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
        let waiting = self
            .peers
            .values()
            .filter(|p| p.wanted && p.address.is_some() && p.link.is_none() && p.attempt.is_none());
        waiting.map(|p| p.retry_at).min()
    }

    /// The connection that links to a node.
    pub(crate) fn link(&self, node: u16) -> Option<u64> {
        self.peers.get(&node)?.link
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_that_nobody_answers_does_not_keep_the_node_out() {
        let at = |ms: u64| Instant::ZERO.plus(Duration::from_millis(ms));
        let mut links = Links::default();
        let attempt = Some(Attempt { id: 20, begun: at(1_000), life: 0 });
        links.peers.insert(2, Peer { attempt, ..Peer::default() });
        let has_ours = |links: &Links, life, ms| links.peers[&2].has_ours(life, at(ms));
        assert!(has_ours(&links, 7, 1_100));
        assert!(!has_ours(&links, 7, 1_300));
        links.answered(2, 19, 7);
        assert!(!has_ours(&links, 7, 1_300), "another connection has an answer");
        links.answered(2, 20, 7);
        assert!(has_ours(&links, 7, 1_300));
        assert!(!has_ours(&links, 8, 1_300), "a later life has come");
    }
}
