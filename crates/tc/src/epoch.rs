//! Epochs at the coordinator: which one a transaction gets, and which ones are done here
//! (EPOCH-2, EPOCH-4, EPOCH-5).

use crate::{Tc, transaction::State};
use alloc::collections::BTreeMap;
use lats_base::{Epoch, Instant, TransactionId, ViewNumber, limits, require};
use lats_kernel::{Ctx, Fault};
use lats_signals::{
    BlockRef, Signal,
    control::{EpochBarrierConf, EpochBarrierReq, EpochDoneRep, EpochUsedRep, LeaseOrd},
};

/// What a coordinator knows of epochs.
#[derive(Debug, Default)]
pub(crate) struct Epochs {
    /// The largest epoch seen.
    pub(crate) current: Epoch,
    /// The newest epoch for which the local data managers were asked to move on.
    asked: Epoch,
    /// From which epoch on each local data manager decides.
    ldms: BTreeMap<u32, Epoch>,
    /// How many transactions are decided and not visible at all primaries, or could still be called decided
    /// by an heir (CARRY-6), by epoch.
    unfinished: BTreeMap<Epoch, u32>,
    /// What was reported as done last.
    reported: (ViewNumber, Epoch),
    /// The newest epoch that control was told is used.
    told_used: Epoch,
}

impl Tc {
    /// EPOCH-2: whoever sees a larger epoch moves up.
    pub(crate) fn hear_epoch(&mut self, epoch: Epoch) {
        self.epochs.current = self.epochs.current.max(epoch);
    }

    /// A client's epoch counts unless it is nonsense.
    pub(crate) fn hear_client_epoch(&mut self, epoch: Epoch) {
        if epoch.get() <= self.epochs.current.get().saturating_add(limits::EPOCH_LEAD_MAX) {
            self.hear_epoch(epoch);
        }
    }

    pub(crate) fn on_lease_ord(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let body = signal.body::<LeaseOrd>();
        self.lease_until = Instant::from_nanos(body.valid_until);
        self.hear_epoch(body.epoch);
        self.hear_silence(body.silent, ctx);
        self.hear_closing(body.closing, ctx);
        if self.epochs.current <= self.epochs.asked {
            return;
        }
        self.epochs.asked = self.epochs.current;
        let body = EpochBarrierReq { epoch: self.epochs.current };
        for instance in 0..self.view.config.ldm_instances {
            ctx.send(BlockRef::ldm(ctx.node(), instance), &body);
        }
    }

    pub(crate) fn on_epoch_barrier_conf(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let epoch = signal.body::<EpochBarrierConf>().epoch;
        let known = self.epochs.ldms.entry(signal.sender().instance).or_default();
        *known = (*known).max(epoch);
        self.report_done(ctx);
    }

    /// EPOCH-4: counts what can still commit, and tells control up to where nothing can.
    fn report_done(&mut self, ctx: &mut Ctx<'_>) {
        let view = self.view.number;
        if !self.has_inherited_all() {
            return;
        }
        let ldm = |instance| self.epochs.ldms.get(&instance).copied().unwrap_or_default();
        let ldms = (0..self.view.config.ldm_instances).map(ldm).min().unwrap_or_default();
        let unfinished = self.epochs.unfinished.first_key_value().map(|(epoch, _)| *epoch);
        let uncounted = ctx.fault(Fault::BugEpochUncounted);
        let decided = unfinished.filter(|_| !uncounted).unwrap_or(self.epochs.current);
        let open = self.epochs.current.min(ldms).min(decided);
        let early = u64::from(ctx.fault(Fault::BugEpochDoneEarly));
        let done = Epoch::new((open.get() + early).saturating_sub(1));
        if (view, done) > self.epochs.reported {
            self.epochs.reported = (view, done);
            ctx.send(BlockRef::control(ctx.node()), &EpochDoneRep { done, view });
        }
    }

    /// The transaction is decided, in its epoch, which is not done before it is visible (EPOCH-4).
    pub(crate) fn count_decided(&mut self, id: TransactionId, ctx: &mut Ctx<'_>) {
        self.tell_used(ctx);
        let Some(t) = self.transactions.get(&id) else { return };
        require!(t.state == State::Deciding);
        self.count_unfinished(id, t.epoch);
    }

    /// EPOCH-7: once for each epoch.
    pub(crate) fn tell_used(&mut self, ctx: &mut Ctx<'_>) {
        let epoch = self.epochs.current;
        if self.epochs.told_used < epoch {
            self.epochs.told_used = epoch;
            ctx.send(BlockRef::control(ctx.node()), &EpochUsedRep { epoch });
        }
    }

    /// The epoch is not done before the transaction is at its end. CARRY-6: so it is with one that is rolled back,
    /// if an heir may find until then that it is decided.
    pub(crate) fn count_unfinished(&mut self, id: TransactionId, epoch: Epoch) {
        let Some(t) = self.transactions.get_mut(&id) else { return };
        require!(t.counted_in.is_none());
        t.counted_in = Some(epoch);
        *self.epochs.unfinished.entry(epoch).or_default() += 1;
    }

    /// The transaction's rows are visible at all primaries, or taken back everywhere.
    /// Whoever waits for the epoch need not wait for the next one to begin.
    pub(crate) fn count_finished(&mut self, id: TransactionId, ctx: &mut Ctx<'_>) {
        let counted_in = self.transactions.get_mut(&id).and_then(|t| t.counted_in.take());
        let Some(epoch) = counted_in else { return };
        let left = self.epochs.unfinished.get_mut(&epoch).map(|count| {
            *count -= 1;
            *count
        });
        require!(left.is_some(), "a transaction of epoch {epoch} was not counted");
        if left == Some(0) {
            self.epochs.unfinished.remove(&epoch);
            self.report_done(ctx);
        }
    }

    pub(crate) fn has_unfinished(&self) -> bool {
        !self.epochs.unfinished.is_empty()
    }
}
