//! What a coordinator does while primaries are handed over: it lets no new transaction near them, and
//! sends again what came too late (HANDOVER-1, HANDOVER-3; `docs/protocols/hand-over.md`).

use crate::{
    Tc,
    request::Parts,
    transaction::{Returned, State},
};
use lats_base::{RefCode, TransactionId};
use lats_catalog::SEQUENCES_TABLE;
use lats_kernel::Ctx;
use lats_signals::{
    BlockRef, Signal, SignalBuffer,
    commit::{BatchReturnedRep, PART_OF_MANY, TcKeyReq},
    list::{self, Operation},
};

/// Requests that wait for the end of a hand-over.
#[derive(Default)]
pub(crate) struct Held {
    requests: SignalBuffer,
}

/// Bytes of requests that one coordinator holds; those that come then are not held back, and may delay the
/// hand-over.
const HELD_BYTES_MAX: usize = 64 << 20;

impl Held {
    pub(crate) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Nobody is left to be answered.
    pub(crate) fn forget_client(&mut self, client: BlockRef) {
        let mut all = core::mem::take(&mut self.requests);
        while let Some(signal) = all.pop() {
            if signal.sender() != client {
                self.requests.push_signal(&signal);
            }
        }
    }
}

impl Tc {
    /// HANDOVER-1: true if the request would begin a transaction with rows whose primary is being handed
    /// over. It waits, and holds nothing meanwhile that others could wait for.
    pub(crate) fn hold_back(&mut self, req: &TcKeyReq, signal: &Signal<'_>) -> bool {
        if !self.view.hands_over()
            || self.transactions.contains_key(&req.transaction)
            || !self.needs_moving_rows(signal.payload())
        {
            return false;
        }
        let fits = self.held.requests.len_bytes() + signal.bytes().len() <= HELD_BYTES_MAX;
        if fits {
            self.held.requests.push_signal(signal);
        }
        fits
    }

    fn needs_moving_rows(&self, operations: &[u8]) -> bool {
        list::items::<Operation>(operations).any(|(head, [key, _, _])| {
            // Whoever wants numbers may hold such rows in another transaction.
            let table = self.tables.get(&head.table).filter(|_| head.table != SEQUENCES_TABLE);
            table.is_some_and(|t| self.view.next_primary(t.spread.fragment_of(key)).is_some())
        })
    }

    /// The hand-over has ended, or another one has begun.
    pub(crate) fn release_held(&mut self, ctx: &mut Ctx<'_>) {
        let mut held = core::mem::take(&mut self.held.requests);
        while let Some(signal) = held.pop() {
            lats_kernel::Block::handle(self, &signal, ctx);
        }
    }

    /// HANDOVER-3: a batch has met a primary that is none any more, and did nothing there.
    pub(crate) fn on_batch_returned_rep(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let rep = signal.body::<BatchReturnedRep>();
        if self.park_newer(rep.view, signal) {
            return;
        }
        let id = rep.transaction;
        let Some(t) = self.transactions.get_mut(&id) else { return };
        let Some(batch) = t.batches.remove(&rep.batch) else { return };
        t.returned.push(Returned {
            operations: signal.payload().to_vec(),
            reads_with_lock: batch.reads_with_lock,
            of_index: batch.of_index,
        });
        self.send_returned(id, ctx);
        self.when_settled(id, ctx);
    }

    /// Sends what was given back to whoever is primary now: one batch at a time to each data manager, which
    /// may still be at work on another one of the transaction.
    pub(crate) fn send_returned(&mut self, id: TransactionId, ctx: &mut Ctx<'_>) {
        let Some(t) = self.transactions.get_mut(&id) else { return };
        if t.returned.is_empty() {
            return;
        }
        let returned = core::mem::take(&mut t.returned);
        if t.state != State::Preparing {
            // It is being rolled back, and this part of it has nothing to take back.
            return;
        }
        let statement = t.request.as_ref().map_or(t.statement, |r| r.statement);
        for batch in returned {
            let parts = match self.route_again(&batch.operations, batch.reads_with_lock) {
                Ok(parts) => parts,
                // The index is gone meanwhile: the row was changed by another definition.
                Err(RefCode::TableUnknown) if batch.of_index => {
                    return self.refuse_request(id, RefCode::SchemaVersionOld.into(), ctx);
                }
                Err(code) => return self.refuse_request(id, code.into(), ctx),
            };
            let Some(t) = self.transactions.get_mut(&id) else { return };
            let busy = |at: &BlockRef| t.batches.values().any(|b| b.primary == *at && !b.executed);
            if parts.keys().any(busy) {
                t.returned.push(batch);
            } else {
                // The images may not carry the decision any more: the new primary is elsewhere.
                self.send_batches(id, (statement, PART_OF_MANY, 0), (parts, batch.of_index), ctx);
            }
        }
    }

    fn route_again(&self, operations: &[u8], reads_with_lock: bool) -> Result<Parts, RefCode> {
        let mut parts = Parts::new();
        for (mut head, strings) in list::items::<Operation>(operations) {
            let primary = self.route(&mut head, strings[0])?;
            let part = parts.get_or_default(primary);
            part.reads_with_lock = reads_with_lock;
            part.count += 1;
            list::push(&mut part.operations, &head, strings);
        }
        Ok(parts)
    }
}
