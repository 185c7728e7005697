//! What clients ask of control: the map, the catalog, changes of the catalog, the status.

use crate::{
    Control, TIMER_CHANGES,
    state::{Command, Status, temporary, unknown},
};
use lats_base::{Duration, Epoch, Instant, RefCode, limits};
use lats_catalog::{Change, ChangeError, ChangeErrorKind};
use lats_kernel::{Ctx, Fault};
use lats_signals::{
    BlockRef, Signal,
    control::{
        CatalogConf, CatalogReq, ChangeConf, ChangeHeardOrd, ChangeRef, ChangeReq, MapConf, MapReq,
        StatusConf, StatusReq,
    },
};
use std::collections::VecDeque;

/// A change of the catalog that a client of this node waits for.
#[derive(Clone, Debug)]
pub(crate) struct PendingChange {
    client: BlockRef,
    change: Change,
    since: Instant,
    /// Zero: it was not proposed yet.
    proposed_at: Instant,
    /// It is proposed when this epoch is durable (RESTART-6).
    waits_for: Epoch,
}

const CHANGES_MAX: usize = limits::CHANGES_PER_NODE_MAX;
/// So long a change is remembered after its client has read the answer: proposals of it may still be on their way between members.
const HEARD_KEPT: Duration = Duration::from_millis(60_000);
/// So many are forgotten together; and they are proposed to be, when there is no other change, from this number on.
const FORGOTTEN_AT_ONCE: usize = 256;
const FORGOTTEN_ALONE_MIN: usize = 64;
/// So many are proposed at a time: each group of them is installed together, and the others wait for it (LATE-3).
const CHANGES_AT_ONCE: usize = 16;
const CHANGE_RETRY: Duration = Duration::from_millis(200);
/// After this a client is told that its change has not come through. It may do so later.
const CHANGE_PATIENCE: Duration = Duration::from_millis(300_000);
/// The same on a node that is cut off from the others.
const CHANGE_PATIENCE_ALONE: Duration = Duration::from_millis(10_000);

/// Changes whose clients have read the answer, and when they said so, until the cluster has forgotten them (CHANGE-2).
#[derive(Debug, Default)]
pub(crate) struct Heard {
    requests: VecDeque<(Instant, u64)>,
    proposed_at: Instant,
}

impl Heard {
    fn note(&mut self, request: u64, now: Instant) {
        if self.requests.len() < CHANGES_MAX {
            self.requests.push_back((now, request));
        }
    }

    /// Those that may be forgotten now, if it is worth a proposal. What has been forgotten is none of them any more.
    fn due(
        &mut self,
        now: Instant,
        with_others: bool,
        is_known: impl Fn(u64) -> bool,
    ) -> Option<Vec<u64>> {
        let is_old = |(at, _): &&(Instant, u64)| now.since(*at) >= HEARD_KEPT;
        let old = self.requests.iter().filter(is_old).count();
        let least = if with_others { 1 } else { FORGOTTEN_ALONE_MIN };
        if old < least || now.since(self.proposed_at) < CHANGE_RETRY {
            return None;
        }
        self.requests.retain(|(_, request)| is_known(*request));
        self.proposed_at = now;
        let due = self.requests.iter().filter(is_old).map(|(_, request)| *request);
        Some(due.take(FORGOTTEN_AT_ONCE).collect()).filter(|due: &Vec<u64>| !due.is_empty())
    }
}

impl Control {
    pub(crate) fn on_map_req(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        if self.takes_for_stuck(self.late.threads_ms()) {
            // SILENT-3: it is asked for a sign of life, and who waits for such a thread is to give up.
            return;
        }
        let req = signal.body::<MapReq>();
        self.subscribers.insert(signal.sender());
        let (map, bytes) = self.encoded_map(req.request);
        ctx.send_with(signal.sender(), &map, &[&bytes]);
    }

    fn encoded_map(&self, request: u64) -> (MapConf, Vec<u8>) {
        let map = self.map();
        let body = MapConf { request, view: map.view.number, catalog_version: map.catalog_version };
        (body, lats_catalog::encode(&map))
    }

    /// Sends the map to every client that has asked for it once.
    pub(crate) fn push_maps(&mut self, ctx: &mut Ctx<'_>) {
        if self.subscribers.is_empty() {
            return;
        }
        let (map, bytes) = self.encoded_map(0);
        for client in &self.subscribers {
            ctx.send_with(*client, &map, &[&bytes]);
        }
    }

    pub(crate) fn on_catalog_req(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let req = signal.body::<CatalogReq>();
        let catalog = &self.state.catalog;
        let body = CatalogConf { request: req.request, catalog_version: catalog.version };
        ctx.send_with(signal.sender(), &body, &[&catalog.update_since(req.known)]);
    }

    pub(crate) fn on_change_req(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let req = signal.body::<ChangeReq>();
        let client = signal.sender();
        let refuse = |code: RefCode, ctx: &mut Ctx<'_>| {
            let body = ChangeRef { request: req.request, code: u64::from(code.number()) };
            ctx.send(client, &body);
        };
        let Ok(change) = lats_catalog::decode::<Change>(signal.payload()) else {
            return refuse(RefCode::RequestMalformed, ctx);
        };
        if signal.payload().len() > limits::CHANGE_BYTES_MAX {
            let message = format!(
                "a definition may have {} bytes; shorten its comments and default values",
                limits::CHANGE_BYTES_MAX
            );
            let error = ChangeError { kind: ChangeErrorKind::NotSupported, message };
            let code = u64::from(RefCode::CatalogConflict.number());
            let body = ChangeRef { request: req.request, code };
            return ctx.send_with(client, &body, &[&lats_catalog::encode(&error)]);
        }
        if self.closing() > 0 && !self.changes.contains_key(&req.request) {
            return refuse(RefCode::ShuttingDown, ctx);
        }
        if self.changes.len() >= CHANGES_MAX || !self.is_member() {
            return refuse(RefCode::Overloaded, ctx);
        }
        let is_known = self.changes.contains_key(&req.request)
            || self.state.change_result(req.request).is_some();
        if !is_known && !self.silent_told.is_empty() {
            return self.refuse_for_the_silent(client, req.request, ctx);
        }
        // Who asks again has waited since it asked first.
        let known = self.changes.get(&req.request).map(|p| (p.since, p.proposed_at));
        let since = known.map_or(ctx.now(), |known| known.0);
        let waits_for = self.must_be_durable_before(&change, ctx);
        let pending = PendingChange {
            client,
            change,
            since,
            proposed_at: known.map_or(Instant::ZERO, |known| known.1),
            waits_for,
        };
        self.changes.insert(req.request, pending);
        self.answer_changes(ctx);
        self.plan_changes(ctx);
    }

    /// CHANGE-2: its client has the answer, and has asked no other node.
    pub(crate) fn on_change_heard_ord(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let request = signal.body::<ChangeHeardOrd>().request;
        if self.state.change_result(request).is_some() {
            self.heard.note(request, ctx.now());
        }
    }

    /// RESTART-6: the epoch that must be durable before the change is made: the catalog is restored as it was last, and rows as
    /// they were in an epoch.
    fn must_be_durable_before(&mut self, change: &Change, ctx: &mut Ctx<'_>) -> Epoch {
        if !matches!(change, Change::IndexReady { .. }) || !self.keeps_on_disk() {
            return Epoch::default();
        }
        // Entries may have been written in an epoch that this node is about to hear of.
        let epoch = Epoch::new(self.epochs.current.get() + 2);
        self.note_epoch_used(epoch, ctx);
        epoch
    }

    /// SILENT-3: it would not be answered before the silent node has it, too.
    fn refuse_for_the_silent(&self, client: BlockRef, request: u64, ctx: &mut Ctx<'_>) {
        let nodes: Vec<String> = self.silent_told.iter().map(|n| n.to_string()).collect();
        let error = temporary(&format!(
            "node {} does not answer, and definitions are changed on all nodes; try again when it does, and see \
             `latsdb status`",
            nodes.join(", ")
        ));
        let body = ChangeRef { request, code: u64::from(RefCode::NodeSilent.number()) };
        ctx.send_with(client, &body, &[&lats_catalog::encode(&error)]);
    }

    /// With every tick: proposes what may be proposed, and again what was not heard of; the request's number keeps it from being
    /// done twice.
    pub(crate) fn repropose_changes(&mut self, ctx: &mut Ctx<'_>) {
        self.propose_changes(ctx);
        self.give_up_changes(ctx);
    }

    /// Those that wait are proposed when all that has come is handled: heartbeats do not wait for a crowd of definitions.
    fn plan_changes(&mut self, ctx: &mut Ctx<'_>) {
        if !self.changes_planned && !self.changes.is_empty() {
            self.changes_planned = true;
            ctx.after(Duration::ZERO, TIMER_CHANGES);
        }
    }

    pub(crate) fn on_changes_timer(&mut self, ctx: &mut Ctx<'_>) {
        self.changes_planned = false;
        self.propose_changes(ctx);
    }

    /// LATE-3: not more of them at a time than make little work together. Who came first is first.
    fn propose_changes(&mut self, ctx: &mut Ctx<'_>) {
        let now = ctx.now();
        // No epoch becomes durable any more, and it will be refused.
        let is_lost = self.state.view.lost_groups().next().is_some();
        let was_proposed = |p: &PendingChange| p.proposed_at > Instant::ZERO;
        let proposed = self.changes.values().filter(|p| was_proposed(p)).count();
        let mut due: Vec<(Instant, u64)> = Vec::new();
        for (request, pending) in &self.changes {
            let is_known = self.state.change_result(*request).is_some();
            let waits = pending.waits_for > self.epochs.disk.durable && !is_lost;
            let has_room = was_proposed(pending) || proposed < CHANGES_AT_ONCE;
            let is_due = now.since(pending.proposed_at) >= CHANGE_RETRY;
            if has_room && is_due && !is_known && !waits {
                due.push((pending.since, *request));
            }
        }
        due.sort_unstable();
        self.forget_heard_changes(!due.is_empty(), now);
        let mut room = CHANGES_AT_ONCE.saturating_sub(proposed);
        for (_, request) in due {
            let Some(pending) = self.changes.get_mut(&request) else { continue };
            if !was_proposed(pending) {
                if room == 0 {
                    continue;
                }
                room -= 1;
            }
            pending.proposed_at = now;
            let command = Command::Change { request, change: pending.change.clone() };
            self.consensus.propose(&command);
        }
        self.run_consensus(ctx);
    }

    /// CHANGE-2: the cluster forgets what nobody will ask for any more, mostly together with another change.
    fn forget_heard_changes(&mut self, with_others: bool, now: Instant) {
        let state = &self.state;
        let is_known = |request| state.change_result(request).is_some();
        if let Some(requests) = self.heard.due(now, with_others, is_known) {
            self.consensus.propose(&Command::ForgetChanges { requests });
        }
    }

    fn give_up_changes(&mut self, ctx: &mut Ctx<'_>) {
        let now = ctx.now();
        let hopeless = !self.silent_told.is_empty();
        let alone = !self.has_lease(now);
        let late = |p: &PendingChange| {
            let waits = now.since(p.since);
            waits >= CHANGE_PATIENCE
                || (hopeless && waits >= CHANGE_RETRY)
                || (alone && waits >= CHANGE_PATIENCE_ALONE)
        };
        for (request, pending) in self.changes.extract_if(.., |_, p| late(p)) {
            let code = u64::from(RefCode::NotServing.number());
            let error = match pending.proposed_at > Instant::ZERO {
                true => unknown(
                    "it has not reached all nodes yet, and may have been made; look whether it was",
                ),
                false => temporary("the cluster could not work on it; try again"),
            };
            let body = ChangeRef { request, code };
            ctx.send_with(pending.client, &body, &[&lats_catalog::encode(&error)]);
        }
    }

    /// Answers the changes that are refused, or made and installed everywhere.
    pub(crate) fn answer_changes(&mut self, ctx: &mut Ctx<'_>) {
        let mut answered = Vec::new();
        let forgets = ctx.fault(Fault::BugForgetAnswered);
        for (request, pending) in &self.changes {
            match self.state.change_result(*request) {
                Some(Ok(version)) if self.everywhere >= *version => {
                    let body = ChangeConf { request: *request, catalog_version: *version };
                    ctx.send(pending.client, &body);
                    answered.push(*request);
                }
                Some(Err(error)) => {
                    let code = u64::from(RefCode::CatalogConflict.number());
                    let body = ChangeRef { request: *request, code };
                    ctx.send_with(pending.client, &body, &[&lats_catalog::encode(error)]);
                    answered.push(*request);
                }
                Some(Ok(_)) | None => {}
            }
        }
        if !answered.is_empty() {
            answered.iter().for_each(|request| drop(self.changes.remove(request)));
            if forgets {
                self.consensus.propose(&Command::ForgetChanges { requests: answered });
            }
            self.plan_changes(ctx);
        }
    }

    pub(crate) fn on_status_req(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let req = signal.body::<StatusReq>();
        let status = Status {
            view: self.state.view.clone(),
            epoch: self.epochs.current,
            complete: self.epochs.complete,
            durable: self.epochs.disk.durable,
            own_durable: self.own_durable(),
            undurable_ms: ctx.now().since(self.epochs.disk.grew_at).as_millis(),
            leader: self.leader(),
            catalog_version: self.installed.1,
            node: ctx.node(),
            silent: self.silent.iter().collect(),
            life_signs: self.life_signs(ctx),
            waits_for: self.survivor.waits_for.clone(),
            misses: self.survivor.misses.clone(),
        };
        let body = StatusConf { request: req.request };
        ctx.send_with(signal.sender(), &body, &[&lats_catalog::encode(&status)]);
    }

    pub(crate) fn forget_client(&mut self, client: BlockRef) {
        self.subscribers.remove(&client);
        self.forget_waiter(client);
        self.changes.retain(|_, p| p.client != client);
    }
}
