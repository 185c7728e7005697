//! Transactions that lock rows in all modes and look at them twice (LOCK-1, LOCK-4).

use super::{Answer, Doing, Ledger, SimClient, Ticket};
use lats_base::RefCode;
use lats_client::{
    api::{LockMode, LockWait, RowOp, RowOutcome},
    core::Then,
};

/// One request of so many is interrupted as soon as it is sent.
const INTERRUPTED_OF: u64 = 5;

impl Doing {
    /// True if the client has asked for its request to be taken back, and this was the request.
    pub(super) fn may_be_interrupted(&self, asked: Option<Ticket>) -> bool {
        match self {
            Self::Holding { ticket, .. } | Self::Finishing { ticket, .. } => Some(*ticket) == asked,
            _ => false,
        }
    }
}

impl SimClient {
    /// STATEMENT-3: whatever comes of it is what the client is told.
    pub(super) fn interrupt_some(&mut self, ticket: Ticket) {
        if ticket.is_multiple_of(INTERRUPTED_OF) {
            self.interrupt(ticket);
        }
    }

    fn interrupt(&mut self, ticket: Ticket) {
        self.interrupted = Some(ticket);
        self.core.interrupt(ticket);
    }

    /// Wants the end of the transfer that is under way.
    pub fn interrupt_transfer(&mut self) {
        if let Doing::Finishing { ticket, .. } = self.doing {
            self.interrupt(ticket);
        }
    }

    /// Locks two accounts, in any mode, with or without patience.
    pub(super) fn start_holding(&mut self, ledger: &Ledger) {
        let count = ledger.account_count as u64;
        let first = self.random.below(count) as i64;
        let second = (first + 1 + self.random.below(count - 1) as i64) % ledger.account_count;
        let accounts = [first, second];
        let wait = match self.random.below(4) {
            0 => LockWait::Refuse,
            1 => LockWait::Skip,
            _ => LockWait::Wait,
        };
        let reads = accounts.map(|account| {
            let exclusive = self.random.chance(1, 3);
            let mode = if exclusive { LockMode::Exclusive } else { LockMode::Shared };
            RowOp { wait, ..ledger.accounts.read(account, mode) }
        });
        let sequence = self.core.begin();
        let ticket = self.core.step(sequence, &reads, Then::GoOn);
        self.interrupt_some(ticket);
        self.doing = Doing::Holding { sequence, accounts, wait, ticket };
    }

    pub(super) fn after_holding(
        &mut self,
        sequence: u64,
        accounts: [i64; 2],
        wait: LockWait,
        answer: &Answer,
        ledger: &mut Ledger,
    ) {
        let Answer::Rows { results, .. } = answer else {
            let too_soon = matches!(answer, Answer::Failed(e) if e.code == RefCode::LockNotFree);
            if too_soon && wait != LockWait::Refuse {
                ledger.violate(format!("client {}: it would have waited", self.number));
            }
            return self.end_without_changes(sequence);
        };
        let balances = [0, 1].map(|at| results[at].row.as_deref().map(|r| ledger.balance_in(r)));
        let skipped = results.iter().any(|r| r.outcome == RowOutcome::Skipped);
        if skipped && wait != LockWait::Skip {
            ledger.violate(format!("client {}: skipped a row unasked", self.number));
        }
        // The second look reads without locks, or makes them exclusive.
        let mode = if self.random.chance(1, 3) { LockMode::Exclusive } else { LockMode::Committed };
        let again = accounts.map(|account| ledger.accounts.read(account, mode));
        let then = if self.random.chance(1, 2) { Then::Commit } else { Then::GoOn };
        let ticket = self.core.step(sequence, &again, then);
        self.doing = Doing::LookingAgain { sequence, accounts, balances, ticket };
    }

    /// What the transaction has locked, nobody else has changed.
    pub(super) fn after_looking_again(
        &mut self,
        sequence: u64,
        accounts: [i64; 2],
        balances: [Option<i64>; 2],
        answer: &Answer,
        ledger: &mut Ledger,
    ) {
        if let Answer::Rows { results, .. } = answer {
            for ((result, account), before) in results.iter().zip(accounts).zip(balances) {
                let after = result.row.as_deref().map(|r| ledger.balance_in(r));
                if before.is_some() && after != before {
                    ledger.violate(format!(
                        "account {account}: {before:?} became {after:?} while it was locked"
                    ));
                }
            }
        }
        self.end_without_changes(sequence);
    }

    fn end_without_changes(&mut self, sequence: u64) {
        if self.core.is_open(sequence) {
            let ticket = self.core.step(sequence, &[], Then::RollBack);
            self.doing = Doing::Ending { ticket };
        }
    }
}
