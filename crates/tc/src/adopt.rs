//! Open transactions that are older than a syncing replica: it takes part in them from now on
//! (REJOIN-5; `docs/protocols/rejoin.md`).

use crate::{
    Tc,
    transaction::{Batch, State},
};
use lats_kernel::Ctx;
use lats_signals::{
    Signal,
    copy::{AdoptOrd, AdoptReq},
};

impl Tc {
    /// A primary has changes for a syncing replica. They are a batch like any other: whatever ends the
    /// transaction, or takes back a part of it, waits until the replica has them, and then tells it, too.
    pub(crate) fn on_adopt_req(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let req = signal.body::<AdoptReq>();
        if self.park_newer(req.view, signal) {
            return;
        }
        let (primary, view) = (signal.sender(), self.view.number);
        let Some(t) = self.transactions.get_mut(&req.transaction) else { return };
        let open = matches!(t.state, State::Idle | State::Preparing);
        // It may be in the middle of its first batch there.
        let here = t.participants.get(&primary).is_some_and(|p| p.primary)
            || t.batches.values().any(|b| b.primary == primary && !b.adopts());
        // CARRY-4: it may be decided before we hear of it, and the replica would not know.
        let carries = t.carry.parts > 1;
        if !open || !here || carries || t.batches.values().any(Batch::adopts) {
            // It is about to end, or will be asked for again.
            return;
        }
        let batch = t.add_batch(Batch::new(primary, 0));
        let (transaction, target) = (req.transaction, req.target);
        ctx.send(primary, &AdoptOrd { transaction, view, target, batch, reserved: 0 });
    }
}
