//! Telling a client that lost its coordinator what became of its transaction (OUTCOME-1).

use crate::Tc;
use alloc::{
    collections::{BTreeMap, BTreeSet},
    vec::Vec,
};
use lats_base::{Duration, Epoch, Instant, NodeGroupId, NodeId, TransactionId};
use lats_kernel::Ctx;
use lats_signals::{
    BlockRef, Signal,
    commit::{
        CHANGES_UNKNOWN, OUTCOME_ABORTED, OUTCOME_COMMITTED, OUTCOME_FORGOTTEN, OUTCOME_HIDDEN,
        OUTCOME_LOST, OUTCOME_PENDING, OutcomeConf, OutcomeFindConf, OutcomeFindReq, OutcomeReq,
        is_remembered,
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
    /// How long ago the client has asked for the commit, and what all know who have answered (OUTCOME-8).
    age_ms: u64,
    remembered_ms: u32,
    /// By node group and data manager: how many rows it has changed there (OUTCOME-9).
    changes: BTreeMap<(NodeGroupId, u32), u32>,
}

/// OUTCOME-1: "committed" at one beats "pending" at another, and that beats "nothing known", which proves something only if
/// all say so who may have known more (OUTCOME-8). But first all rows must be visible (OUTCOME-5).
fn rank(outcome: u32) -> u32 {
    match outcome {
        OUTCOME_FORGOTTEN => 1,
        OUTCOME_PENDING => 2,
        OUTCOME_COMMITTED => 3,
        OUTCOME_HIDDEN => 4,
        _ => 0,
    }
}

impl Query {
    /// OUTCOME-9: how many rows a committed transaction has changed, or [`CHANGES_UNKNOWN`]: each data manager that had a part
    /// has counted them, and so have the replicas of its rows.
    fn changes(&self) -> u32 {
        let sum = |sum: u32, changes: &u32| {
            sum.checked_add(*changes).filter(|_| *changes != CHANGES_UNKNOWN)
        };
        let sum = self.changes.values().try_fold(0, sum);
        // Some may have forgotten their part already.
        let is_whole = self.outcome == OUTCOME_COMMITTED
            && is_remembered(self.age_ms, u64::from(self.remembered_ms));
        sum.filter(|_| is_whole).unwrap_or(CHANGES_UNKNOWN)
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
                remembered_ms: 0,
                changes: CHANGES_UNKNOWN,
            };
            return ctx.send(signal.sender(), &conf);
        }
        let query = self.next_query;
        self.next_query += 1;
        let body = OutcomeFindReq {
            transaction: req.transaction,
            request: query,
            view: self.view.number,
            age_ms: req.age_ms,
        };
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
                age_ms: req.age_ms,
                remembered_ms: u32::MAX,
                changes: BTreeMap::new(),
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
        let from = signal.sender();
        // Whoever is being filled knows less than others of its group, who answer too.
        if self.view.is_in_sync(from.node) {
            query.remembered_ms = query.remembered_ms.min(conf.remembered_ms);
        }
        let is_part = matches!(conf.outcome, OUTCOME_COMMITTED | OUTCOME_PENDING | OUTCOME_HIDDEN);
        if let Some((group, _)) = self.view.group_of_node(from.node).filter(|_| is_part) {
            let place = (group, from.instance);
            let changes = query.changes.entry(place).or_insert(CHANGES_UNKNOWN);
            // A replica that was filled may not have had all of them.
            *changes = match (*changes, conf.changes) {
                (CHANGES_UNKNOWN, other) | (other, CHANGES_UNKNOWN) => other,
                (one, other) => one.max(other),
            };
        }
        self.answer_query(conf.request, ctx);
    }

    fn answer_query(&mut self, id: u64, ctx: &mut Ctx<'_>) {
        if !self.queries.get(&id).is_some_and(|q| q.waiting.is_empty()) {
            return;
        }
        let Some(query) = self.queries.remove(&id) else { return };
        let is_lost = self.view.lost_groups().next().is_some();
        let outcome = match query.outcome {
            // OUTCOME-5.
            OUTCOME_HIDDEN => OUTCOME_PENDING,
            // LOST-4.
            OUTCOME_ABORTED | OUTCOME_FORGOTTEN if is_lost => OUTCOME_LOST,
            known => known,
        };
        // OUTCOME-9: what a lost group has changed nobody can count.
        let changes = if is_lost { CHANGES_UNKNOWN } else { query.changes() };
        let conf = OutcomeConf {
            transaction: query.transaction,
            request: query.request,
            epoch: query.epoch,
            outcome,
            restarts: self.view.restarts,
            remembered_ms: query.remembered_ms,
            changes,
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
