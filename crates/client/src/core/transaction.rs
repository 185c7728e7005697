//! Transactions: begin, operations, commit, rollback.

use super::{
    Answer, ClientCore, Request, Ticket, all_results, error_of,
    outcome::{Lost, Moment},
    place_results, push_operation,
};
use crate::api::{Committed, RowOp, RowResult};
use lats_base::{Instant, NodeId, RefCode};
use lats_signals::{
    BlockRef, Signal,
    commit::{
        FLAG_COMMIT, FLAG_COMMITTED, FLAG_OPEN, FLAG_ROLLBACK, FLAG_ROLLBACK_TO, InterruptOrd,
        TcKeyConf, TcKeyRef, TcKeyReq,
    },
};
use std::borrow::Cow;

/// A transaction that this client has begun.
#[derive(Debug, Default)]
pub(super) struct Open {
    /// Chosen with the first operation.
    coordinator: Option<NodeId>,
    /// The link to its coordinator was lost, and so it was rolled back.
    lost: bool,
    /// Its commit is answered when it is durable, or not; none: as the cluster says.
    to_disk: Option<bool>,
    statement: u32,
}

/// A request under way at a coordinator.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) coordinator: NodeId,
    pub(super) sequence: u64,
    pub(super) commits: bool,
    pub(super) ends: bool,
    /// The client itself has ended it, because its home is cut off (SILENT-5).
    pub(super) given_up: bool,
    /// It commits, and is answered when that is durable (DURABLE-6).
    pub(super) to_disk: bool,
    sent: Moment,
    /// The whole transaction is in this request.
    is_whole: bool,
    results: Vec<Option<RowResult>>,
}

/// What to do in a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// Keep it open.
    GoOn,
    /// Commit it with these operations.
    Commit,
    /// Roll it back.
    RollBack,
    /// Take back what statements from this one on wrote.
    RollBackTo(u32),
}

impl ClientCore {
    /// Begins a transaction, whose commit waits for what the cluster says. Nothing is sent before its first operation.
    pub fn begin(&mut self) -> u64 {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        self.active.insert(sequence);
        self.transactions.insert(sequence, Open::default());
        sequence
    }

    /// Forgets a transaction that has no operations, or whose end was answered.
    pub fn forget(&mut self, sequence: u64) {
        self.transactions.remove(&sequence);
        self.active.remove(&sequence);
    }

    /// True if the transaction's commit waits for disks.
    pub fn waits_for_disks(&self, sequence: u64) -> bool {
        let said = self.transactions.get(&sequence).and_then(|open| open.to_disk);
        said.unwrap_or(self.map.view.config.to_disk)
    }

    /// The transaction's commit is to be answered when it is durable, or when it is in the memory of all replicas.
    pub fn commit_to_disk(&mut self, sequence: u64, to_disk: bool) {
        if let Some(open) = self.transactions.get_mut(&sequence) {
            open.to_disk = Some(to_disk);
        }
    }

    /// The number that the transaction's next statement will have.
    pub fn next_statement(&self, sequence: u64) -> u32 {
        self.transactions.get(&sequence).map_or(1, |t| t.statement + 1)
    }

    /// True if the transaction holds operations.
    pub fn is_started(&self, sequence: u64) -> bool {
        self.transactions.get(&sequence).is_some_and(|t| t.coordinator.is_some())
    }

    /// True until the transaction is committed or rolled back.
    pub fn is_open(&self, sequence: u64) -> bool {
        self.transactions.get(&sequence).is_some_and(|t| !t.lost)
    }

    /// True if the link to its coordinator was lost between two requests.
    pub fn is_lost(&self, sequence: u64) -> bool {
        self.transactions.get(&sequence).is_some_and(|t| t.lost)
    }

    /// Runs operations in a transaction. One that is told [`RefCode::RequestTooLarge`] is as it was before.
    pub fn step(&mut self, sequence: u64, operations: &[RowOp], then: Then) -> Ticket {
        let ticket = self.ticket();
        if self.transactions.get(&sequence).is_some_and(|t| t.lost) {
            self.end(sequence);
            self.fail(ticket, RefCode::CoordinatorFailed);
            return ticket;
        }
        if self.cut_off().is_some() && !self.is_started(sequence) {
            // Nothing is sent that would come about when the network is whole again.
            self.end(sequence);
            self.fail(ticket, RefCode::NotServing);
            return ticket;
        }
        if !super::fit(operations) {
            self.fail(ticket, RefCode::RequestTooLarge);
            return ticket;
        }
        self.send_step((ticket, self.now), sequence, Cow::Borrowed(operations), then);
        ticket
    }

    /// Sends a request that is wanted since then, if there is a coordinator for it.
    pub(super) fn send_step(
        &mut self,
        (ticket, since): (Ticket, Instant),
        sequence: u64,
        operations: Cow<'_, [RowOp]>,
        then: Then,
    ) {
        let whole = then == Then::Commit;
        let Some(coordinator) = self.coordinator_of(sequence, &operations, whole) else {
            return self.hold_step((ticket, since), sequence, operations.into_owned(), then);
        };
        let mut payload = Vec::new();
        for (index, op) in operations.iter().enumerate() {
            push_operation(&mut payload, op, self.fragment_of(op), index);
        }
        let (flags, rollback_to) = match then {
            Then::GoOn => (0, 0),
            Then::Commit => (FLAG_COMMIT, 0),
            Then::RollBack => (FLAG_ROLLBACK, 0),
            Then::RollBackTo(statement) => (FLAG_ROLLBACK_TO, statement),
        };
        let statement = self.next_statement(sequence);
        let mut to_disk = false;
        if let Some(open) = self.transactions.get_mut(&sequence) {
            open.statement = statement;
            let wanted = open.to_disk.unwrap_or(self.map.view.config.to_disk);
            to_disk = wanted && then == Then::Commit;
        }
        let body = TcKeyReq {
            transaction: self.transaction_id(sequence),
            request: ticket,
            answered_below: self.active.first().copied().unwrap_or(self.next_sequence),
            epoch_seen: self.epoch_seen,
            statement,
            rollback_to,
            operation_count: operations.len() as u32,
            flags,
        };
        self.send(self.tc_of(coordinator, sequence), &body, &[&payload]);
        let step = Step {
            coordinator,
            sequence,
            commits: then == Then::Commit,
            ends: matches!(then, Then::Commit | Then::RollBack),
            given_up: false,
            to_disk,
            sent: self.moment(),
            is_whole: whole && statement == 1 && !operations.is_empty(),
            results: vec![None; operations.len()],
        };
        self.requests.insert(ticket, Request::Step(step));
    }

    /// Wants a request of a transaction to end. Its answer comes as ever: it says whether the request was refused, or was
    /// through already (STATEMENT-3).
    pub fn interrupt(&mut self, ticket: Ticket) {
        self.interrupt_held(ticket);
        let Some(Request::Step(step)) = self.requests.get(&ticket) else { return };
        let (sequence, coordinator) = (step.sequence, step.coordinator);
        let body = InterruptOrd { transaction: self.transaction_id(sequence), request: ticket };
        self.send(self.tc_of(coordinator, sequence), &body, &[]);
    }

    /// The coordinator's block that runs a transaction.
    pub(super) fn tc_of(&self, coordinator: NodeId, sequence: u64) -> BlockRef {
        let instances = u64::from(self.map.view.config.tc_instances.max(1));
        BlockRef::tc(coordinator, (sequence % instances) as u32)
    }

    /// The coordinator: where the primaries of a whole transaction are, if they are all at one
    /// node, so that its row images can carry the decision (CARRY-1); else the home node; else
    /// where the first row's primary is.
    fn coordinator_of(
        &mut self,
        sequence: u64,
        operations: &[RowOp],
        whole: bool,
    ) -> Option<NodeId> {
        let chosen = self.transactions.get(&sequence).and_then(|t| t.coordinator);
        if let Some(node) = chosen {
            return self.links.contains(&node).then_some(node);
        }
        // STOP-2: whoever is to stop takes no new transactions.
        let takes = |n: &NodeId| !self.map.view.is_stopping(*n) && !self.silence.is_silent(*n);
        let up = |n: &NodeId| self.is_up(*n) && takes(n);
        let mut primaries = operations.iter().map(|op| self.map.view.primary(self.fragment_of(op)));
        let primary = primaries.next().flatten().filter(up);
        let only = primary.filter(|_| whole && primaries.all(|other| other == primary));
        let node =
            only.or_else(|| self.usable_home()).or(primary).or_else(|| self.any_data_node())?;
        self.transactions.entry(sequence).or_default().coordinator = Some(node);
        Some(node)
    }

    pub(super) fn end(&mut self, sequence: u64) {
        self.transactions.remove(&sequence);
        self.active.remove(&sequence);
    }

    pub(super) fn on_tc_key_conf(&mut self, signal: &Signal<'_>) {
        let conf = signal.body::<TcKeyConf>();
        let Some(Request::Step(step)) = self.requests.get_mut(&conf.request) else {
            return self.end_abandoned(conf.request, false, conf.flags);
        };
        place_results(signal.payload(), &mut step.results);
        let (sequence, ends, to_disk) = (step.sequence, step.ends, step.to_disk);
        let results = all_results(&mut step.results);
        let TcKeyConf { epoch, restarts, .. } = conf;
        let committed = (conf.flags & FLAG_COMMITTED != 0).then_some(Committed {
            epoch,
            restarts,
            changes: None,
        });
        if ends {
            self.end(sequence);
        }
        self.epoch_seen = self.epoch_seen.max(conf.epoch);
        match (results, committed) {
            (Some(results), Some(receipt)) if to_disk => {
                self.wait_for_disks(conf.request, results, receipt);
            }
            (Some(results), _) => self.finish(conf.request, Answer::Rows { results, committed }),
            (None, _) => self.fail(conf.request, RefCode::Unrecognised),
        }
    }

    pub(super) fn on_tc_key_ref(&mut self, signal: &Signal<'_>) {
        let body = signal.body::<TcKeyRef>();
        let Some(Request::Step(step)) = self.requests.get(&body.request) else {
            return self.end_abandoned(body.request, true, body.flags);
        };
        let error = error_of(body.code, body.errno, signal.payload());
        if step.given_up && error.code == RefCode::Interrupted {
            return self.give_up_transaction(body.request, body.flags);
        }
        if body.flags & FLAG_OPEN == 0 {
            self.end(step.sequence);
        }
        self.fail(body.request, error);
    }

    /// Transactions between two requests whose coordinator was lost are rolled back: a coordinator
    /// that lives does so when it loses its client.
    pub(super) fn lose_open_transactions(&mut self, node: NodeId) {
        for open in self.transactions.values_mut().filter(|t| t.coordinator == Some(node)) {
            open.lost = true;
        }
    }

    /// The coordinator is lost. What was not to commit is rolled back; about the rest we ask.
    pub(super) fn lose_step(&mut self, ticket: Ticket) {
        let Some(Request::Step(step)) = self.requests.remove(&ticket) else { return };
        if step.commits {
            let Step { sequence, to_disk, sent, is_whole: wants_changes, .. } = step;
            return self.ask_outcome(ticket, Lost { sequence, to_disk, sent, wants_changes });
        }
        self.end(step.sequence);
        self.fail(ticket, RefCode::CoordinatorFailed);
    }

    /// The transaction's outcome is known.
    pub(super) fn settle(&mut self, ticket: Ticket, of: Lost, committed: Option<Committed>) {
        self.end(of.sequence);
        match committed {
            Some(receipt) => {
                self.epoch_seen = self.epoch_seen.max(receipt.epoch);
                if of.to_disk {
                    return self.wait_for_disks(ticket, Vec::new(), receipt);
                }
                let answer = Answer::Rows { results: Vec::new(), committed: Some(receipt) };
                self.finish(ticket, answer);
            }
            None => self.fail(ticket, RefCode::CoordinatorFailed),
        }
    }
}
