//! Clients that read all accounts as of an epoch.

use super::{Doing, Ledger, SimClient, sweep::Sweep};
use lats_base::Epoch;
use lats_client::core::{Answer, Ticket};

/// A snapshot of the accounts that is being read.
#[derive(Clone, Debug)]
pub(super) struct Snapshot {
    epoch: Epoch,
    sweep: Sweep,
    rows: i64,
    sum: i64,
}

impl SimClient {
    /// Opens the scans of a snapshot: of the newest complete epoch, or of one not long before.
    pub(super) fn start_snapshot(&mut self, complete: Epoch, ledger: &Ledger) {
        let back = self.random.below(60) * self.random.below(2);
        let epoch = Epoch::new(complete.get().saturating_sub(back));
        let mut scan = ledger.accounts.scan();
        if let Some(index) = ledger.accounts.by_second.filter(|_| self.random.chance(1, 2)) {
            scan.index = index;
        }
        if let Some(sweep) = self.start_sweep(&scan, Some(epoch)) {
            self.doing = Doing::Scanning(Snapshot { epoch, sweep, rows: 0, sum: 0 });
        }
    }

    /// Transfers move amounts: whatever a snapshot shows, the sum of all balances is the same.
    pub(super) fn on_snapshot_answer(
        &mut self,
        mut snapshot: Snapshot,
        ticket: Ticket,
        answer: &Answer,
        ledger: &mut Ledger,
    ) {
        let Some(at) = snapshot.sweep.position(ticket) else {
            self.doing = Doing::Scanning(snapshot);
            return;
        };
        let Answer::Batch { rows, done } = answer else {
            return self.give_up_sweep(snapshot.sweep, at);
        };
        snapshot.rows += rows.len() as i64;
        snapshot.sum += rows.iter().map(|r| ledger.accounts.numbers(r.row)[1]).sum::<i64>();
        self.sweep_on(&mut snapshot.sweep, at, *done);
        if !snapshot.sweep.is_over() {
            self.doing = Doing::Scanning(snapshot);
            return;
        }
        ledger.snapshots += 1;
        if (snapshot.rows, snapshot.sum) != (ledger.account_count, 0) {
            ledger.violate(format!(
                "the snapshot of epoch {} shows {} of {} accounts; their sum is {}",
                snapshot.epoch, snapshot.rows, ledger.account_count, snapshot.sum
            ));
        }
    }
}
