//! Telling a client that lost its coordinator what became of its transaction (OUTCOME-1).

use crate::Tc;
use alloc::{
    collections::{BTreeMap, BTreeSet},
    vec::Vec,
};
use lats_base::{Duration, Epoch, Instant, NodeId, TransactionId};
use lats_kernel::Ctx;
use lats_signals::{
    BlockRef, Signal,
    commit::{
        OUTCOME_ABORTED, OUTCOME_COMMITTED, OUTCOME_HIDDEN, OUTCOME_LOST, OUTCOME_PENDING,
        OutcomeConf, OutcomeFindConf, OutcomeFindReq, OutcomeReq,
    },
};

/// A question under way.
#[derive(Debug)]
pub(crate) struct Query {
    pub(crate) client: BlockRef,
    request: u64,
    transaction: TransactionId,
    waiting: BTreeSet<BlockRef>,
    outcome: u32,
    epoch: Epoch,
    since: Instant,
}

/// OUTCOME-1: "committed" at one beats "pending" at another, and that beats "nothing known". But
/// first all rows must be visible (OUTCOME-5).
fn rank(outcome: u32) -> u32 {
    match outcome {
        OUTCOME_PENDING => 1,
        OUTCOME_COMMITTED => 2,
        OUTCOME_HIDDEN => 3,
        _ => 0,
    }
}

const QUERIES_MAX: usize = 65_536;
const QUERY_AGE_MAX: Duration = Duration::from_millis(5_000);

impl Tc {
    pub(crate) fn on_outcome_req(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let req = signal.body::<OutcomeReq>();
        let busy = self.transactions.contains_key(&req.transaction)
            || self.queries.len() >= QUERIES_MAX
            || !self.may_serve(ctx);
        let waiting = self.all_ldms();
        if busy || waiting.is_empty() {
            let conf = OutcomeConf {
                transaction: req.transaction,
                request: req.request,
                epoch: Epoch::default(),
                outcome: OUTCOME_PENDING,
                restarts: self.view.restarts,
            };
            return ctx.send(signal.sender(), &conf);
        }
        let query = self.next_query;
        self.next_query += 1;
        let body =
            OutcomeFindReq { transaction: req.transaction, request: query, view: self.view.number };
        waiting.iter().for_each(|to| ctx.send(*to, &body));
        self.queries.insert(
            query,
            Query {
                client: signal.sender(),
                request: req.request,
                transaction: req.transaction,
                waiting,
                outcome: OUTCOME_ABORTED,
                epoch: Epoch::default(),
                since: ctx.now(),
            },
        );
    }

    pub(crate) fn on_outcome_find_conf(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let conf = signal.body::<OutcomeFindConf>();
        let Some(query) = self.queries.get_mut(&conf.request) else { return };
        query.waiting.remove(&signal.sender());
        if rank(conf.outcome) > rank(query.outcome) {
            query.outcome = conf.outcome;
        }
        query.epoch = query.epoch.max(conf.epoch);
        self.answer_query(conf.request, ctx);
    }

    fn answer_query(&mut self, id: u64, ctx: &mut Ctx<'_>) {
        if !self.queries.get(&id).is_some_and(|q| q.waiting.is_empty()) {
            return;
        }
        let Some(query) = self.queries.remove(&id) else { return };
        let outcome = match query.outcome {
            // OUTCOME-5.
            OUTCOME_HIDDEN => OUTCOME_PENDING,
            // LOST-4.
            OUTCOME_ABORTED if self.view.lost_groups().next().is_some() => OUTCOME_LOST,
            known => known,
        };
        let conf = OutcomeConf {
            transaction: query.transaction,
            request: query.request,
            epoch: query.epoch,
            outcome,
            restarts: self.view.restarts,
        };
        ctx.send(query.client, &conf);
    }

    pub(crate) fn lose_nodes_in_queries(&mut self, dead: &BTreeSet<NodeId>, ctx: &mut Ctx<'_>) {
        let mut settled = Vec::new();
        let queries: &mut BTreeMap<u64, Query> = &mut self.queries;
        for (id, query) in queries {
            query.waiting.retain(|at| !dead.contains(&at.node));
            // The dead may have known more: ask again when the take-over is through.
            if query.outcome == OUTCOME_ABORTED {
                query.outcome = OUTCOME_PENDING;
            }
            settled.push(*id);
        }
        settled.into_iter().for_each(|id| self.answer_query(id, ctx));
    }

    pub(crate) fn drop_old_queries(&mut self, ctx: &mut Ctx<'_>) {
        let now = ctx.now();
        self.queries.retain(|_, q| now.since(q.since) < QUERY_AGE_MAX);
    }
}
