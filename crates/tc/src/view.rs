//! A new view or catalog: what it means for the transactions under way (FAIL-1 to FAIL-4).

use crate::{
    TableRoute, Tc,
    transaction::{State, Transaction},
};
use alloc::{collections::BTreeSet, vec::Vec};
use lats_base::{NodeId, RefCode, TableId, TransactionId, require};
use lats_catalog::{CatalogUpdate, Spread, TableDef, View};
use lats_kernel::{Ctx, Fault};
use lats_signals::{BlockRef, Signal, control::InstallConf};

impl Tc {
    pub(crate) fn on_view_ord(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let Ok(view) = lats_catalog::decode::<View>(signal.payload()) else { return };
        if view.number <= self.view.number {
            return;
        }
        let before = core::mem::replace(&mut self.view, view);
        let joined_in = self.view.joined_in(ctx.node(), ctx.incarnation());
        self.joined_in = joined_in.unwrap_or(self.joined_in);
        self.quiet &= self.closing > 0 || self.view.is_stopping(ctx.node());
        let dead: BTreeSet<NodeId> = before
            .members
            .iter()
            .filter(|m| m.alive && !self.view.is_alive(m.node, m.incarnation))
            .map(|m| m.node)
            .collect();
        if !dead.is_empty() {
            self.completions.lose_nodes(&dead);
            let ids = self.transactions.ids();
            ids.into_iter().for_each(|id| self.lose_nodes(id, &dead, ctx));
            self.lose_nodes_in_queries(&dead, ctx);
        }
        self.resolve_when_reported(ctx);
        self.confirm_install(ctx);
        if self.view.hands_over() {
            self.flush_all_completions(ctx);
        }
        let mut parked = core::mem::take(&mut self.parked);
        while let Some(signal) = parked.pop() {
            lats_kernel::Block::handle(self, &signal, ctx);
        }
        self.release_held(ctx);
        self.cancel_what_was_kept_aside(ctx);
    }

    /// A batch that was kept aside during a hand-over may have missed that it is cancelled (ABORT-1).
    fn cancel_what_was_kept_aside(&mut self, ctx: &mut Ctx<'_>) {
        let settling = |t: &Transaction| {
            matches!(t.state, State::Settling | State::SettlingStatement)
                && t.batches.values().any(|b| !b.executed)
        };
        let ids = self.transactions.iter().filter(|(_, t)| settling(t)).map(|(id, _)| id);
        let ids: Vec<TransactionId> = ids.collect();
        ids.into_iter().for_each(|id| self.cancel_waits(id, ctx));
    }

    pub(crate) fn on_catalog_ord(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let Ok(update) = lats_catalog::decode::<CatalogUpdate>(signal.payload()) else { return };
        if update.version() > self.catalog_version {
            match &update {
                CatalogUpdate::Whole(catalog) => {
                    self.tables = catalog.tables.values().map(|t| route_of(t)).collect();
                }
                CatalogUpdate::Changes(changes) => {
                    require!(
                        changes.since <= self.catalog_version,
                        "SCHEMA-6: changes that follow"
                    );
                    changes.gone.iter().rev().for_each(|id| drop(self.tables.remove(id)));
                    for (id, route) in changes.tables.iter().map(|t| route_of(t)) {
                        self.tables.insert(id, route);
                    }
                }
            }
            self.catalog_version = update.version();
            self.abort_on_dropped_tables(ctx);
        }
        self.confirm_install(ctx);
    }

    /// SCHEMA-1: rows of a dropped table are gone; the rest of their transaction must not be committed.
    fn abort_on_dropped_tables(&mut self, ctx: &mut Ctx<'_>) {
        let dropped = |t: &Transaction| t.tables.iter().any(|id| !self.tables.contains_key(id));
        let torn = self.transactions.iter().filter(|(_, t)| dropped(t));
        let torn: Vec<TransactionId> = torn.map(|(id, _)| id).collect();
        for id in torn {
            self.abort(id, RefCode::TableDropped.into(), ctx);
        }
    }

    fn confirm_install(&self, ctx: &mut Ctx<'_>) {
        let body = InstallConf { view: self.view.number, catalog_version: self.catalog_version };
        ctx.send(BlockRef::control(ctx.node()), &body);
    }

    /// What the loss of nodes means for one transaction.
    fn lose_nodes(&mut self, id: TransactionId, dead: &BTreeSet<NodeId>, ctx: &mut Ctx<'_>) {
        let Some(t) = self.transactions.get_mut(&id) else { return };
        let is_dead = |at: &BlockRef| dead.contains(&at.node);
        let lost_primary = t.participants.iter().any(|(at, p)| p.primary && is_dead(at));
        // FAIL-1: locks without row images died with their primary.
        let lost_locks =
            t.participants.iter().any(|(at, p)| p.primary && p.only_locks && is_dead(at));
        // FAIL-2: a batch whose primary died before all of its replicas had confirmed may never be
        // confirmed: its answer, or its row images, died too.
        let lost_batch = t.batches.values().any(|b| is_dead(&b.primary));
        // LOST-5: what it did in a group that is lost cannot be committed any more.
        let lost_group = t.participants.iter().any(|(at, p)| {
            let group = self.view.group_of_node(at.node);
            (p.primary || p.backup) && is_dead(at) && group.is_some_and(|(_, g)| g.is_lost())
        });
        t.participants.retain(|at, _| !is_dead(at));
        t.waiting.retain(|at| !is_dead(at));
        t.batches.retain(|_, b| !is_dead(&b.primary));
        for batch in t.batches.values_mut() {
            dead.iter().for_each(|n| {
                batch.backups.remove(*n);
            });
        }
        t.batches.retain(|_, b| !b.is_settled());
        let state = t.state;
        if lost_batch {
            // Its row images may be anywhere.
            let everyone = self.all_ldms();
            let Some(t) = self.transactions.get_mut(&id) else { return };
            for ldm in everyone {
                let participant = t.participants.get_or_default(ldm);
                participant.primary = true;
                participant.backup = true;
            }
        } else if lost_primary && let Some(t) = self.transactions.get_mut(&id) {
            // FAIL-3: backups have become primaries of some of its rows.
            t.participants.values_mut().filter(|p| p.backup).for_each(|p| p.primary = true);
        }
        let lost_group = lost_group && !ctx.fault(Fault::BugCommitWithoutLost);
        self.go_on_after_loss(id, state, lost_batch || lost_locks || lost_group, ctx);
    }

    fn go_on_after_loss(
        &mut self,
        id: TransactionId,
        state: State,
        must_abort: bool,
        ctx: &mut Ctx<'_>,
    ) {
        match state {
            State::Idle | State::Preparing | State::SettlingStatement | State::RollingBack
                if must_abort =>
            {
                self.abort(id, Self::node_failed(), ctx);
            }
            State::Idle | State::Aborted => {}
            State::Preparing | State::SettlingStatement | State::Settling => {
                self.when_settled(id, ctx);
            }
            State::RollingBack | State::Aborting => self.repeat_abort(id, ctx),
            State::Deciding => self.when_decided(id, ctx),
            State::Committing => {
                // FAIL-4: whoever is primary now must make the rows visible.
                let Some(t) = self.transactions.get(&id) else { return };
                let everyone = t.participants.keys().copied().collect();
                self.send_commit(id, everyone, ctx);
            }
        }
    }
}

fn route_of(table: &TableDef) -> (TableId, TableRoute) {
    (table.id, TableRoute { spread: Spread::of(table), is_index: table.index_of.is_some() })
}
