//! Prepare: collect the answers of primaries and backups (COMMIT-1, COMMIT-2).

use crate::{
    Tc,
    transaction::{Debt, Refusal, Request, State},
};
use lats_base::{NodeSet, RefCode, TransactionId};
use lats_kernel::{Ctx, Fault};
use lats_signals::{
    BlockRef, Signal,
    commit::{AbortReq, CANCEL_WAIT, PrepareConf, PrepareRef, ReplicateConf},
    list::{self, Outcome, OutcomeKind},
};

impl Tc {
    pub(crate) fn on_prepare_conf(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let conf = signal.body::<PrepareConf>();
        if self.park_newer(conf.view, signal) {
            return;
        }
        self.hear_epoch(conf.epoch);
        // Of the replicas it was sent to, those that have died since will not answer.
        let same_life = self.view.data_nodes().filter(|m| m.joined_in <= conf.view);
        let alive = same_life.map(|m| m.node).collect();
        let Some(t) = self.transactions.get_mut(&conf.transaction) else { return };
        let Some(batch) = t.batches.get_mut(&conf.batch) else { return };
        // Once it is decided its epoch stands: what else is adopted then changes nothing (REJOIN-5).
        if t.counted_in.is_none() {
            t.epoch = t.epoch.max(conf.epoch);
        }
        batch.executed = true;
        batch.wait = None;
        batch.backups = conf.backups.and(alive);
        let early = batch.early;
        early.iter().for_each(|n| {
            batch.backups.remove(n);
        });
        let payload = signal.payload();
        let mut walked = list::items::<Outcome>(payload);
        let done = walked
            .by_ref()
            .take(conf.result_count as usize)
            .filter(|(o, _)| o.kind == OutcomeKind::Done as u32)
            .count();
        let (outcomes, changes) = payload.split_at(payload.len() - walked.rest().len());
        let of_index = batch.of_index;
        let participant = t.participants.get_or_default(batch.primary);
        participant.primary |= conf.holds != 0;
        participant.only_locks |= batch.reads_with_lock || done < batch.operations as usize;
        let instance = batch.primary.instance;
        for node in conf.backups.and(alive).iter() {
            t.participants.get_or_default(BlockRef::ldm(node, instance)).backup = true;
        }
        let fits = match &mut t.request {
            Some(request) if of_index => {
                request.index_work.take_outcomes(outcomes);
                true
            }
            Some(request) => {
                request.index_work.add_changes(changes);
                request.take_outcomes(outcomes, conf.result_count)
            }
            None => true,
        };
        let decided = conf.carried != 0 && self.hear_carried(&conf, ctx);
        if !decided && !fits {
            self.abort(conf.transaction, RefCode::BatchTooLarge.into(), ctx);
        }
        self.send_returned(conf.transaction, ctx);
        self.change_indexes(conf.transaction, ctx);
        self.forget_settled(conf.transaction, conf.batch, ctx);
        self.stop_waiting_for_the_silent(conf.transaction, ctx);
    }

    pub(crate) fn on_replicate_conf(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let conf = signal.body::<ReplicateConf>();
        let Some(t) = self.transactions.get_mut(&conf.transaction) else { return };
        let Some(batch) = t.batches.get_mut(&conf.batch) else { return };
        let node = signal.sender().node;
        if batch.executed {
            batch.backups.remove(node);
        } else {
            batch.early.insert(node);
        }
        t.participants.get_or_default(signal.sender()).backup = true;
        self.forget_settled(conf.transaction, conf.batch, ctx);
    }

    pub(crate) fn on_prepare_ref(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let body = signal.body::<PrepareRef>();
        let Some(t) = self.transactions.get_mut(&body.transaction) else { return };
        let Some(batch) = t.batches.remove(&body.batch) else { return };
        // What the batch did before it was refused is still there.
        let participant = t.participants.get_or_default(batch.primary);
        participant.primary = true;
        participant.only_locks = true;
        // An index that is not there (any more): the row was changed by another definition.
        let unknown = u32::from(RefCode::TableUnknown.number());
        let code = match body.code {
            code if batch.of_index && code == unknown => RefCode::SchemaVersionOld.number().into(),
            code => code,
        };
        let refusal = Refusal { code, errno: body.errno, text: signal.payload().to_vec() };
        // What answers so was told to, because another part of the request was refused first.
        let cancelled = body.code == u32::from(RefCode::TransactionAborted.number());
        if t.state != State::Preparing {
            t.returned.clear();
        }
        match t.state {
            State::Preparing => self.refuse_request(body.transaction, refusal, ctx),
            State::SettlingStatement if refusal.ends_transaction() && !cancelled => {
                self.abort(body.transaction, refusal, ctx);
            }
            _ => self.when_settled(body.transaction, ctx),
        }
    }

    fn forget_settled(&mut self, id: TransactionId, batch: u32, ctx: &mut Ctx<'_>) {
        let Some(t) = self.transactions.get_mut(&id) else { return };
        if t.batches.get(&batch).is_some_and(|b| b.is_settled()) {
            t.batches.remove(&batch);
            self.when_settled(id, ctx);
        }
    }

    /// Goes on when all that was sent has been answered.
    pub(crate) fn when_settled(&mut self, id: TransactionId, ctx: &mut Ctx<'_>) {
        let Some(t) = self.transactions.get_mut(&id) else { return };
        if t.state != State::Preparing {
            // They have done nothing.
            t.returned.clear();
        }
        let passes_over = t.state == State::Settling && t.debt != Debt::Last;
        let silent = if passes_over { self.silent } else { NodeSet::EMPTY };
        let answered = t.batches.values().all(|b| b.waits_only_for(silent));
        if !answered || !t.returned.is_empty() {
            return;
        }
        match t.state {
            State::Preparing if t.has_duplicates() => self.take_back_request(id, ctx),
            State::Preparing if t.needs_any_of(self.silent) => {
                self.abort(id, RefCode::NodeSilent.into(), ctx);
            }
            State::Preparing if t.request.as_ref().is_some_and(Request::commits) => {
                if ctx.crash_point(Fault::CrashBeforeDecide) {
                    return;
                }
                self.decide(id, ctx);
            }
            State::Preparing => {
                t.state = State::Idle;
                self.answer(id, false, ctx);
                self.forget_if_untouched(id);
            }
            State::Settling => self.start_abort(id, ctx),
            State::SettlingStatement => self.take_request_back(id, ctx),
            State::Deciding => self.when_decided(id, ctx),
            State::Idle
            | State::RollingBack
            | State::Committing
            | State::Aborting
            | State::Aborted => {}
        }
    }

    /// A transaction that holds nothing anywhere needs no end.
    pub(crate) fn forget_if_untouched(&mut self, id: TransactionId) {
        let untouched = self
            .transactions
            .get(&id)
            .is_some_and(|t| t.participants.values().all(|p| !p.primary && !p.backup));
        if untouched {
            self.transactions.remove(&id);
        }
    }

    /// Makes the batches that wait for locks answer at once.
    pub(crate) fn cancel_waits(&mut self, id: TransactionId, ctx: &mut Ctx<'_>) {
        let Some(t) = self.transactions.get(&id) else { return };
        let body = AbortReq {
            transaction: id,
            view: self.view.number,
            from_statement: CANCEL_WAIT,
            part: 0,
        };
        for batch in t.batches.values().filter(|b| !b.executed) {
            ctx.send(batch.primary, &body);
        }
    }

    /// The refusal of transactions that lost a node they needed.
    pub(crate) fn node_failed() -> Refusal {
        RefCode::NodeFailed.into()
    }
}
