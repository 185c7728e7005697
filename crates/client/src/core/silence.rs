//! Nodes that do not answer: what others say of them, and what their own links say (SILENT-3;
//! `docs/protocols/membership.md`).

use super::{ClientCore, Request};
use lats_base::{Duration, Instant, NodeId};
use lats_signals::{BlockRef, control::MapReq};
use std::collections::{BTreeMap, BTreeSet};

/// What is known of nodes that do not answer.
#[derive(Debug, Default)]
pub(super) struct Silence {
    /// Whom each linked node does not hear, while it serves itself.
    told: BTreeMap<NodeId, Vec<NodeId>>,
    /// When something came over each link last, and when an answer was last asked for.
    heard: BTreeMap<NodeId, Heard>,
    /// Since when linked nodes say that they have no lease.
    cut_off: BTreeMap<NodeId, Instant>,
    to_close: BTreeSet<NodeId>,
    watched_at: Instant,
}

#[derive(Clone, Copy, Debug, Default)]
struct Heard {
    at: Instant,
    asked_at: Option<Instant>,
    /// The first question since.
    waits_since: Option<Instant>,
}

/// A link is closed when no sign comes for so long: longer than it takes to remove a dead node, or to wake up from
/// most pauses.
const DEAF: Duration = Duration::from_millis(2_500);

/// A client that looks so late was paused.
const OVERSLEPT: Duration = Duration::from_millis(1_000);

impl Silence {
    pub(super) fn meet(&mut self, node: NodeId, now: Instant) {
        self.heard.insert(node, Heard { at: now, ..Heard::default() });
    }

    pub(super) fn forget(&mut self, node: NodeId) {
        self.heard.remove(&node);
        self.told.remove(&node);
        self.cut_off.remove(&node);
        self.to_close.remove(&node);
    }

    pub(super) fn hear(&mut self, node: NodeId, now: Instant) {
        if let Some(heard) = self.heard.get_mut(&node) {
            *heard = Heard { at: now, ..Heard::default() };
        }
    }

    pub(super) fn learn(&mut self, from: NodeId, silent: &[NodeId], now: Instant) {
        let (itself, others): (Vec<NodeId>, Vec<NodeId>) =
            silent.iter().partition(|node| **node == from);
        match itself.is_empty() {
            true => drop(self.cut_off.remove(&from)),
            false => drop(self.cut_off.entry(from).or_insert(now)),
        }
        if others.is_empty() {
            self.told.remove(&from);
        } else if self.heard.contains_key(&from) {
            self.told.insert(from, others);
        }
    }

    /// Since when a node says that it has no lease.
    pub(super) fn cut_off_since(&self, node: NodeId) -> Option<Instant> {
        self.cut_off.get(&node).copied()
    }

    /// Who is no member any more says nothing.
    pub(super) fn keep_members(&mut self, is_member: impl Fn(NodeId) -> bool) {
        self.told.retain(|node, _| is_member(*node));
    }

    /// True if nothing has come from the node for this long.
    pub(super) fn is_unheard(&self, node: NodeId, now: Instant, span: Duration) -> bool {
        self.heard.get(&node).is_none_or(|heard| now.since(heard.at) > span)
    }

    /// Whoever has not looked for long has not read what came meanwhile either.
    fn begin_watch(&mut self, now: Instant) {
        if now.since(self.watched_at) > OVERSLEPT {
            self.heard.values_mut().for_each(|heard| *heard = Heard { at: now, ..*heard });
            self.heard.values_mut().for_each(|heard| heard.waits_since = None);
        }
        self.watched_at = now;
    }

    /// True if a node that serves says so of any other.
    pub(super) fn is_anybody_silent(&self) -> bool {
        !self.told.is_empty()
    }

    /// True if a node that serves says so.
    pub(super) fn is_silent(&self, node: NodeId) -> bool {
        self.told.values().any(|silent| silent.contains(&node))
    }
}

impl ClientCore {
    /// Asks for signs of life where requests wait, and gives up links that bring none: the connection to a machine that
    /// has lost its power stays open for a quarter of an hour.
    pub(super) fn watch_links(&mut self) {
        let now = self.now;
        self.silence.begin_watch(now);
        let mut awaited: BTreeSet<NodeId> = BTreeSet::new();
        for request in self.requests.values() {
            match request {
                Request::Step(step) => drop(awaited.insert(step.coordinator)),
                Request::Call(call) => drop(awaited.insert(call.node)),
                Request::Read(read) => awaited.extend(read.asked.iter().copied()),
                Request::Outcome(_) | Request::Held(_) => {}
            }
        }
        // The node whose process this is ends with it.
        let awaited = awaited.into_iter().filter(|n| Some(*n) != self.home);
        let resend_after = self.resend_after();
        for node in awaited.collect::<Vec<NodeId>>() {
            // One that others do not hear either gets less time, and least one that was removed: others know what became of its work.
            let patience = match (self.life_of(node), self.silence.is_silent(node)) {
                (None, _) => Duration::from_nanos(resend_after.as_nanos() / 4),
                (Some(_), true) => resend_after,
                (Some(_), false) => DEAF,
            };
            let Some(heard) = self.silence.heard.get_mut(&node) else { continue };
            let last = heard.asked_at.unwrap_or(heard.at);
            if heard.waits_since.is_some_and(|at| now.since(at) > patience) {
                self.silence.heard.remove(&node);
                self.silence.to_close.insert(node);
            } else if now.since(last) > resend_after {
                heard.asked_at = Some(now);
                heard.waits_since.get_or_insert(now);
                let body = MapReq { request: 0, known_view: Default::default() };
                self.send(BlockRef::control(node), &body, &[]);
            }
        }
    }

    /// A node whose link is to be closed, because nothing comes over it although it was asked to.
    pub fn next_to_close(&mut self) -> Option<NodeId> {
        self.silence.to_close.pop_first()
    }
}
