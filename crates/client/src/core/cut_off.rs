//! A client whose home is cut off from the majority of the cluster (SILENT-5): its requests are given up after a while.
//!
//! A node without a lease refuses what it can refuse. But what has begun before waits at it for other nodes, for as long as the
//! network is broken; and what it refuses is asked again, by several layers.

use super::{Answer, ClientCore, Request, Ticket, calls::Kind, transaction::Step};
use lats_base::{Duration, Epoch, NodeId, RefCode};
use lats_catalog::{ChangeError, ChangeErrorKind};
use lats_signals::{
    BlockRef,
    commit::{FLAG_OPEN, FLAG_ROLLBACK, TcKeyReq},
    query::ScanCloseOrd,
};

/// How long requests wait, unless the client was told otherwise.
pub(super) const PATIENCE: Duration = Duration::from_millis(5_000);
/// Questions that the home may answer by itself have so much time.
const OWN_ANSWER: Duration = Duration::from_millis(1_000);

/// Scans that were given up and have not been answered yet.
const ABANDONED_SCANS_MAX: usize = 1_024;

/// A coordinator that can refuse a request has done so by then.
const INTERRUPTED: Duration = Duration::from_millis(250);

/// A request of a transaction that nobody waits for any more: its answer may come yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Abandoned {
    sequence: u64,
    coordinator: NodeId,
    /// It was to commit or to roll back: what has come about must not be touched.
    ends: bool,
}

impl ClientCore {
    /// Sets how long requests wait while the home is cut off.
    pub fn wait_when_cut_off(&mut self, patience: Duration) {
        self.cut_off_patience = patience;
    }

    /// The home, if it has been cut off for longer than requests wait.
    pub fn cut_off(&self) -> Option<NodeId> {
        let home = self.home?;
        let since = self.silence.cut_off_since(home)?;
        (self.now.since(since) > self.cut_off_patience).then_some(home)
    }

    /// True if the home does not say that it has no lease.
    pub fn home_serves(&self) -> bool {
        self.home.is_none_or(|home| self.silence.cut_off_since(home).is_none())
    }

    /// Gives up all that waits for the cluster. Coordinators are told first to refuse what is not decided: it must not come about
    /// when others have long gone on.
    pub(super) fn give_up_requests(&mut self) {
        let since = self.home.and_then(|home| self.silence.cut_off_since(home));
        let span = since.map_or(Duration::ZERO, |since| self.now.since(since));
        let told = self.cut_off_patience.as_nanos().saturating_add(INTERRUPTED.as_nanos());
        let tickets: Vec<Ticket> = self.requests.keys().copied().collect();
        for ticket in tickets {
            match self.requests.get(&ticket) {
                Some(Request::Step(_)) => {
                    self.interrupt(ticket);
                    if let Some(Request::Step(step)) = self.requests.get_mut(&ticket) {
                        step.given_up = true;
                    }
                    if span.as_nanos() >= told {
                        self.abandon_step(ticket);
                    }
                }
                Some(Request::Held(_)) => self.give_up_held(ticket),
                Some(Request::Outcome(_)) => self.fail(ticket, RefCode::OutcomeUnknown),
                Some(Request::Read(_)) => self.fail(ticket, RefCode::NotServing),
                Some(Request::Call(call)) if matches!(call.kind, Kind::Scan) => {
                    self.give_up_scan(ticket, RefCode::NotServing);
                }
                Some(Request::Call(call)) => {
                    if matches!(call.kind, Kind::Change(..)) {
                        self.finish(ticket, Answer::Changed(Err(unknown_change())));
                    } else if let Some(code) = given_up(&call.kind, self.now.since(call.since())) {
                        self.fail(ticket, code);
                    }
                }
                None => {}
            }
        }
    }

    /// Nobody waits for the rows of a scan any more. It is closed when they come at last.
    pub(super) fn give_up_scan(&mut self, ticket: Ticket, code: RefCode) {
        self.abandoned_scans.insert(ticket);
        if self.abandoned_scans.len() > ABANDONED_SCANS_MAX {
            // Its data node forgets it after a while.
            self.abandoned_scans.pop_first();
        }
        self.fail(ticket, code);
    }

    /// Rows of a scan have come that nobody waits for.
    pub(super) fn end_abandoned_scan(&mut self, scan: Ticket, from: BlockRef, done: bool) {
        if self.abandoned_scans.remove(&scan) && !done {
            let body = ScanCloseOrd { scan, reply_to: BlockRef::default() };
            // One who reads beside the data manager may have answered.
            self.send(BlockRef::ldm(from.node, from.instance), &body, &[]);
        }
    }

    /// A request at the coordinator. What it holds is let go when the answer comes at last.
    fn abandon_step(&mut self, ticket: Ticket) {
        let Some(Request::Step(step)) = self.requests.remove(&ticket) else { return };
        let code = if step.commits { RefCode::OutcomeUnknown } else { RefCode::NotServing };
        // Its number stays in use until then.
        self.transactions.remove(&step.sequence);
        let Step { sequence, coordinator, ends, .. } = step;
        let abandoned = Abandoned { sequence, coordinator, ends };
        self.abandoned.insert(ticket, abandoned);
        self.fail(ticket, code);
    }

    /// The coordinator has refused a request that this client has given up: the whole transaction is given up, as its error says.
    pub(super) fn give_up_transaction(&mut self, ticket: Ticket, flags: u32) {
        let Some(Request::Step(step)) = self.requests.get(&ticket) else { return };
        let Step { sequence, coordinator, .. } = *step;
        self.transactions.remove(&sequence);
        self.abandoned.insert(ticket, Abandoned { sequence, coordinator, ends: false });
        self.end_abandoned(ticket, true, flags);
        self.fail(ticket, RefCode::NotServing);
    }

    /// The answer to a request that was given up; `flags` are the answer's.
    pub(super) fn end_abandoned(&mut self, ticket: Ticket, refused: bool, flags: u32) {
        let Some(Abandoned { sequence, coordinator, ends }) = self.abandoned.remove(&ticket) else {
            return;
        };
        // A transaction that was refused lives on if the answer says so.
        let is_open = if refused { flags & FLAG_OPEN != 0 } else { !ends };
        if is_open {
            let body = TcKeyReq {
                transaction: self.transaction_id(sequence),
                request: self.ticket(),
                answered_below: self.active.first().copied().unwrap_or(self.next_sequence),
                epoch_seen: self.epoch_seen,
                statement: 1,
                rollback_to: 0,
                operation_count: 0,
                flags: FLAG_ROLLBACK,
            };
            self.send(self.tc_of(coordinator, sequence), &body, &[]);
        }
        self.active.remove(&sequence);
    }

    /// The link to a coordinator is lost: it rolls back what is open.
    pub(super) fn forget_abandoned(&mut self, node: NodeId) {
        let lost = self.abandoned.extract_if(.., |_, a| a.coordinator == node);
        for (_, abandoned) in lost {
            self.active.remove(&abandoned.sequence);
        }
    }
}

/// A change of the catalog that was given up may come about when the network is whole again.
pub(super) fn unknown_change() -> ChangeError {
    ChangeError {
        kind: ChangeErrorKind::OutcomeUnknown,
        message: format!(
            "it has not been confirmed, and may come about yet; look whether it did before you run it again (LDB-{})",
            RefCode::OutcomeUnknown.number()
        ),
    }
}

/// The code with which a question is given up that was asked so long ago.
fn given_up(kind: &Kind, waits: Duration) -> Option<RefCode> {
    match kind {
        Kind::Disks(..) => Some(RefCode::NotOnDisk),
        Kind::Epochs(committed) if committed.epoch > Epoch::default() => Some(RefCode::NotOnDisk),
        _ => (waits > OWN_ANSWER).then_some(RefCode::NotServing),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lats_base::{ClientId, Instant};

    fn at(ms: u64) -> Instant {
        Instant::ZERO.plus(Duration::from_millis(ms))
    }

    #[test]
    fn requests_end_when_the_home_was_cut_off_for_long_and_not_before() {
        let home = NodeId::new(1);
        let mut core = ClientCore::new(ClientId::new(7), Some(home));
        core.set_time(at(1_000));
        core.link_up(home);
        core.silence.learn(home, &[home], at(1_000));
        let catalog = core.fetch_catalog();
        core.tick(at(5_900));
        assert_eq!((core.cut_off(), core.next_answer().is_none()), (None, true));
        core.tick(at(6_100));
        assert_eq!(core.cut_off(), Some(home));
        let (ticket, answer) = core.next_answer().unwrap();
        assert_eq!(ticket, catalog);
        assert!(matches!(answer, super::super::Answer::Failed(e) if e.code == RefCode::NotServing));
        // It says later that it serves.
        core.silence.learn(home, &[NodeId::new(2)], at(6_200));
        assert!(core.cut_off().is_none() && core.silence.is_silent(NodeId::new(2)));
    }

    #[test]
    fn others_that_are_cut_off_are_no_reason() {
        let (home, other) = (NodeId::new(1), NodeId::new(2));
        let mut core = ClientCore::new(ClientId::new(7), Some(home));
        core.wait_when_cut_off(Duration::from_millis(10));
        core.link_up(other);
        core.silence.learn(other, &[other], at(1_000));
        core.set_time(at(9_000));
        assert_eq!(core.cut_off(), None);
        assert!(!core.silence.is_silent(other));
    }
}
