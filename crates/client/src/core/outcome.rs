//! Finding out what became of a commit whose coordinator was lost. The answer is "unknown" only if a node group is lost or
//! silent, or if the client comes so late that nobody remembers (OUTCOME-8).

use super::{ClientCore, PATIENCE, Request, Ticket};
use crate::api::Committed;
use lats_base::{Duration, Instant, RefCode};
use lats_signals::{
    BlockRef, Signal,
    commit::{
        CHANGES_UNKNOWN, OUTCOME_ABORTED, OUTCOME_COMMITTED, OUTCOME_FORGOTTEN, OUTCOME_LOST,
        OutcomeConf, OutcomeReq, is_remembered,
    },
};

/// A commit whose answer is lost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lost {
    pub(super) sequence: u64,
    /// If it is committed it is to be durable, too.
    pub(super) to_disk: bool,
    /// When it was asked for.
    pub(super) sent: Moment,
    /// The whole transaction was in that request, whose results are lost, too.
    pub(super) wants_changes: bool,
}

/// A moment of this client: by its clock, and how long its machine had been suspended by then, which that clock may not count.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    at: Instant,
    suspended: Duration,
}

impl Moment {
    /// How long ago it was; at least a whole millisecond more than it seems.
    fn age_ms(self, now: Self) -> u64 {
        let suspended = now.suspended.as_millis().saturating_sub(self.suspended.as_millis());
        now.at.since(self.at).as_millis() + suspended + 1
    }
}

/// A question about a transaction.
#[derive(Debug)]
pub(super) struct Question {
    of: Lost,
    since: Instant,
    asked_at: Option<Instant>,
}

/// How long the outcome is asked for while somebody is silent.
const SILENT_PATIENCE: Duration = Duration::from_millis(1_000);
const ASK_AGAIN: Duration = Duration::from_millis(5);
/// How long a client that knows that it has committed asks for how many rows it has changed.
const CHANGES_PATIENCE: Duration = Duration::from_millis(500);

impl ClientCore {
    /// How long this machine has been suspended since it was booted (OUTCOME-8).
    pub fn set_suspended(&mut self, suspended: Duration) {
        self.suspended = suspended;
    }

    pub(super) fn moment(&self) -> Moment {
        Moment { at: self.now, suspended: self.suspended }
    }

    pub(super) fn ask_outcome(&mut self, ticket: Ticket, of: Lost) {
        let question = Question { of, since: self.now, asked_at: None };
        self.requests.insert(ticket, Request::Outcome(question));
        self.tick_outcome(ticket);
    }

    pub(super) fn tick_outcome(&mut self, ticket: Ticket) {
        let now = self.now;
        let node = self.any_data_node();
        let Some(Request::Outcome(question)) = self.requests.get_mut(&ticket) else { return };
        // SILENT-3: only the coordinator knows, and it may stay silent for long; or its heirs wait for somebody who does.
        let silent = self.silence.is_anybody_silent();
        if now.since(question.since) > if silent { SILENT_PATIENCE } else { PATIENCE } {
            let sequence = question.of.sequence;
            self.end(sequence);
            return self.fail(ticket, RefCode::OutcomeUnknown);
        }
        let asked = question.asked_at.is_some_and(|at| now.since(at) < ASK_AGAIN);
        let (Some(node), false) = (node, asked) else { return };
        question.asked_at = Some(now);
        let Lost { sequence, sent, .. } = question.of;
        let transaction = self.transaction_id(sequence);
        let age_ms = sent.age_ms(self.moment());
        let body = OutcomeReq { transaction, request: ticket, age_ms };
        self.send(BlockRef::tc(node, 0), &body, &[]);
    }

    pub(super) fn on_outcome_conf(&mut self, signal: &Signal<'_>) {
        let conf = signal.body::<OutcomeConf>();
        let Some(Request::Outcome(question)) = self.requests.get(&conf.request) else { return };
        let (of, asked_since) = (question.of, question.since);
        let OutcomeConf { epoch, restarts, changes, .. } = conf;
        // OUTCOME-8: the answer may have been on its way for long, or the client may have slept.
        let age_ms = of.sent.age_ms(self.moment());
        let is_remembered = is_remembered(age_ms, u64::from(conf.remembered_ms));
        match conf.outcome {
            OUTCOME_COMMITTED => {
                let is_patient = self.now.since(asked_since) < CHANGES_PATIENCE;
                if of.wants_changes && changes == CHANGES_UNKNOWN && is_patient {
                    // Some replicas have not heard the end yet: it is asked again.
                    return;
                }
                // Some who have had a part may have forgotten it: then the sum is too small.
                let known = of.wants_changes && is_remembered && changes != CHANGES_UNKNOWN;
                let changes = Some(changes).filter(|_| known);
                self.settle(conf.request, of, Some(Committed { epoch, restarts, changes }));
            }
            OUTCOME_ABORTED if is_remembered => self.settle(conf.request, of, None),
            OUTCOME_ABORTED | OUTCOME_FORGOTTEN | OUTCOME_LOST => {
                self.end(of.sequence);
                self.fail(conf.request, RefCode::OutcomeUnknown);
            }
            // Asked again.
            _ => {}
        }
    }
}
