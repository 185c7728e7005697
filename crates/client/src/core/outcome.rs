//! Finding out what became of a commit whose coordinator was lost. The answer is never "unknown"
//! while all node groups live.

use super::{ClientCore, PATIENCE, Request, Ticket};
use crate::api::Committed;
use lats_base::{Duration, Instant, RefCode};
use lats_signals::{
    BlockRef, Signal,
    commit::{OUTCOME_ABORTED, OUTCOME_COMMITTED, OUTCOME_LOST, OutcomeConf, OutcomeReq},
};

/// A question about a transaction.
#[derive(Debug)]
pub(super) struct Question {
    sequence: u64,
    /// If it is committed it is to be durable, too.
    to_disk: bool,
    since: Instant,
    asked_at: Option<Instant>,
}

/// How long the outcome is asked for while somebody is silent.
const SILENT_PATIENCE: Duration = Duration::from_millis(1_000);
const ASK_AGAIN: Duration = Duration::from_millis(5);

impl ClientCore {
    pub(super) fn ask_outcome(&mut self, ticket: Ticket, sequence: u64, to_disk: bool) {
        let question = Question { sequence, to_disk, since: self.now, asked_at: None };
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
            return self.fail(ticket, RefCode::OutcomeUnknown);
        }
        let asked = question.asked_at.is_some_and(|at| now.since(at) < ASK_AGAIN);
        let (Some(node), false) = (node, asked) else { return };
        question.asked_at = Some(now);
        let sequence = question.sequence;
        let transaction = self.transaction_id(sequence);
        self.send(BlockRef::tc(node, 0), &OutcomeReq { transaction, request: ticket }, &[]);
    }

    pub(super) fn on_outcome_conf(&mut self, signal: &Signal<'_>) {
        let conf = signal.body::<OutcomeConf>();
        let Some(Request::Outcome(question)) = self.requests.get(&conf.request) else { return };
        let of = (question.sequence, question.to_disk);
        match conf.outcome {
            OUTCOME_COMMITTED => {
                let OutcomeConf { epoch, restarts, .. } = conf;
                self.settle(conf.request, of, Some(Committed { epoch, restarts }));
            }
            OUTCOME_ABORTED => self.settle(conf.request, of, None),
            OUTCOME_LOST => {
                self.end(of.0);
                self.fail(conf.request, RefCode::OutcomeUnknown);
            }
            // Asked again.
            _ => {}
        }
    }
}
