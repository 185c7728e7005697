//! Readers that show what they have read only when it is durable (READ-7).

use super::{Doing, Ledger, SimClient};
use lats_base::Epoch;
use lats_client::core::{Answer, Ticket};

/// A value that somebody was shown as durable.
#[derive(Clone, Debug)]
pub(super) struct Showing {
    register: i64,
    value: i64,
    /// What it waits for.
    epoch: Epoch,
    pub(super) ticket: Ticket,
}

impl SimClient {
    /// Waits until the value of a register that it has just read is durable.
    pub(super) fn show(&mut self, register: i64, value: i64, ledger: &mut Ledger) {
        match self.core.shown() {
            None => ledger.note_shown((register, value), self.core.durable_seen()),
            Some(shown) => {
                let ticket = self.core.wait_until_durable(shown);
                let epoch = shown.epoch;
                self.doing = Doing::Showing(Showing { register, value, epoch, ticket });
            }
        }
    }

    pub(super) fn after_showing(showing: &Showing, answer: &Answer, ledger: &mut Ledger) {
        // Else a node group is lost, or disks are slow: nothing is shown.
        if let Answer::Epochs { durable, .. } = answer
            && *durable >= showing.epoch
        {
            ledger.note_shown((showing.register, showing.value), *durable);
        }
    }
}

impl Ledger {
    /// This value of a register was shown when epochs up to this one were durable.
    fn note_shown(&mut self, value: (i64, i64), durable: Epoch) {
        self.waits += 1;
        let known = self.shown.entry(value).or_insert(durable);
        *known = durable.min(*known);
        self.check_shown(value);
    }

    /// READ-7: a value that was shown is durable with an epoch that was.
    pub(super) fn check_shown(&mut self, value: (i64, i64)) {
        let (Some(epoch), Some(durable)) = (self.value_epochs.get(&value), self.shown.get(&value))
        else {
            return;
        };
        if epoch > durable {
            let (register, number) = value;
            let text = format!(
                "register {register}: {number} was shown as durable with epoch {durable}, and is of epoch {epoch}"
            );
            self.violate(text);
        }
    }
}
