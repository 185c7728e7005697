//! First requests of transactions for which there is no coordinator yet: they wait until a node with one can be talked to.
//!
//! A client may have been told of a witness only, or its home may be one: it learns from the map who holds data, and its links
//! there come a moment later.

use super::{ClientCore, Request, Then, Ticket};
use crate::api::RowOp;
use lats_base::{Duration, Instant, RefCode};

/// A request that waits for a coordinator.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) sequence: u64,
    operations: Vec<RowOp>,
    then: Then,
    since: Instant,
}

/// It waits for so long.
const HELD_MAX: Duration = Duration::from_millis(2_000);

impl ClientCore {
    /// There is no coordinator for a transaction now. Its first request waits if there may be one soon.
    pub(super) fn hold_step(
        &mut self,
        (ticket, since): (Ticket, Instant),
        sequence: u64,
        operations: Vec<RowOp>,
        then: Then,
    ) {
        // Before there is a map nobody knows who holds data.
        let is_known = self.map.view.number.get() > 0;
        let some_live = self.map.view.data_nodes().next().is_some();
        let is_first = !self.is_started(sequence);
        if !is_first || (is_known && !some_live) || self.now.since(since) > HELD_MAX {
            self.end(sequence);
            return self.fail(ticket, RefCode::NotServing);
        }
        let held = Held { sequence, operations, then, since };
        self.requests.insert(ticket, Request::Held(held));
    }

    /// Looks again for a coordinator.
    pub(super) fn tick_held(&mut self, ticket: Ticket) {
        let Some(Request::Held(_)) = self.requests.get(&ticket) else { return };
        let Some(Request::Held(held)) = self.requests.remove(&ticket) else { return };
        let Held { sequence, operations, then, since } = held;
        self.send_step((ticket, since), sequence, operations.into(), then);
    }

    /// There will be no coordinator for a request soon.
    pub(super) fn give_up_held(&mut self, ticket: Ticket) {
        if let Some(Request::Held(held)) = self.requests.get(&ticket) {
            let sequence = held.sequence;
            self.end(sequence);
            self.fail(ticket, RefCode::NotServing);
        }
    }

    /// A request that waits for a coordinator is to end: nothing of it was done.
    pub(super) fn interrupt_held(&mut self, ticket: Ticket) {
        if let Some(Request::Held(held)) = self.requests.get(&ticket) {
            let sequence = held.sequence;
            self.end(sequence);
            self.fail(ticket, RefCode::Interrupted);
        }
    }
}
