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
    pub(crate) attempt: Option<u64>,
    /// The life that the newest link was to; 0 if there never was one.
    pub(crate) last_life: u32,
    /// That life is known to be gone, and control has been told.
    pub(crate) told_gone: bool,
    pub(crate) retry_at: Instant,
    /// Attempts since the link was lost that somebody took and dropped.
    pub(crate) dropped: u32,
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
