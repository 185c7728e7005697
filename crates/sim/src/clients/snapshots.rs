//! Clients that read all accounts as of an epoch.

use super::{Doing, Ledger, SimClient};
use lats_base::Epoch;
use lats_client::core::{Answer, ScanHandle, Ticket};

/// A snapshot of the accounts that is being read.
#[derive(Clone, Debug)]
pub(super) struct Snapshot {
    epoch: Epoch,
    /// The fragments that are not at their end.
    open: Vec<ScanHandle>,
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
        let mut snapshot = Snapshot { epoch, open: Vec::new(), rows: 0, sum: 0 };
        for fragment in 0..self.core.fragment_count(scan.table) {
            let fragment = lats_base::FragmentId::new(fragment);
            match self.core.open_scan(&scan, fragment, None, Some(epoch)) {
                Ok((handle, _)) => snapshot.open.push(handle),
                Err(_) => return self.close_snapshot(&snapshot),
            }
        }
        self.doing = Doing::Scanning(snapshot);
    }

    fn close_snapshot(&mut self, snapshot: &Snapshot) {
        snapshot.open.iter().for_each(|handle| self.core.close_scan(*handle));
    }

    /// Transfers move amounts: whatever a snapshot shows, the sum of all balances is the same.
    pub(super) fn on_snapshot_answer(
        &mut self,
        mut snapshot: Snapshot,
        ticket: Ticket,
        answer: &Answer,
        ledger: &mut Ledger,
    ) {
        let Some(at) = snapshot.open.iter().position(|h| h.ticket() == ticket) else {
            self.doing = Doing::Scanning(snapshot);
            return;
        };
        let Answer::Batch { rows, done } = answer else {
            snapshot.open.swap_remove(at);
            return self.close_snapshot(&snapshot);
        };
        snapshot.rows += rows.len() as i64;
        snapshot.sum += rows.iter().map(|r| ledger.accounts.numbers(r.row)[1]).sum::<i64>();
        if *done {
            snapshot.open.swap_remove(at);
        } else {
            self.core.next_batch(snapshot.open[at]);
        }
        if !snapshot.open.is_empty() {
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
