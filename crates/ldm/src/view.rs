//! A new view or catalog: fragments, promotion, orphaned transactions (TAKEOVER-1, TAKEOVER-2).

use crate::{Ldm, Table, fragment::Fragment, lock::LockMode, transaction::Op};
use alloc::{sync::Arc, vec::Vec};
use lats_base::{Epoch, FragmentId, NodeId, RefCode, SortedMap, TableId, TransactionId, require};
use lats_catalog::{CatalogChanges, CatalogUpdate, Member, Spread, TableDef, View};
use lats_kernel::Ctx;
use lats_signals::{
    BlockRef, Signal, SignalBuffer,
    commit::{
        TAKE_OVER_CARRIED, TAKE_OVER_COMMITTED, TAKE_OVER_DECIDED, TAKE_OVER_PREPARED,
        TakeOverEndRep, TakeOverRep,
    },
    control::InstallConf,
};

/// A primary gives fewer numbers than this many bits have within one view (COMMIT-8).
pub(crate) const NUMBERS_PER_VIEW_BITS: u32 = 40;

impl Ldm {
    pub(crate) fn on_view_ord(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let Ok(view) = lats_catalog::decode::<View>(signal.payload()) else { return };
        if view.number <= self.view.number {
            return;
        }
        let next = self.view.number.get() + 1;
        let is_of_new_group = view.restarts > self.view.restarts;
        require!(next == 1 || view.number.get() == next || is_of_new_group, "VIEW-10");
        // What was copied in the former view is taken as it is there.
        while self.take_arrived(ctx) {}
        let before = core::mem::replace(&mut self.view, view);
        if self.view.is_in_sync(ctx.node()) {
            (self.restore, self.former) = (None, None);
            self.redo.iter_mut().for_each(|redo| redo.note_in_sync());
            if before.is_replica_of_own_group(ctx.node()) && !before.is_in_sync(ctx.node()) {
                self.note_filled(ctx);
            }
        } else if next == 1 {
            self.begin_filling(ctx);
            self.begin_to_be_filled(ctx);
        }
        let joined_in = self.view.joined_in(ctx.node(), ctx.incarnation());
        self.joined_in = joined_in.unwrap_or(self.joined_in);
        let died = |m: &&Member| m.alive && !self.view.is_alive(m.node, m.incarnation);
        if before.members.iter().any(|m| died(&m)) {
            self.inherited_when = Epoch::new(self.epoch.get() + 1);
        }
        self.forget_the_dead(ctx.node());
        self.reconcile_fragments(ctx.node());
        self.promote(&before, ctx.node());
        self.restart_endings();
        self.report_orphans(ctx);
        self.plan_copies(ctx);
        self.confirm_install(ctx);
        // Who is to stop becomes primary of nothing again, unless it stays after all (STOP-3).
        self.quiet &= self.closing > 0 || self.view.is_stopping(ctx.node());
        self.start_hand_over(ctx);
        self.tell_durable(ctx);
        self.ask_for_copies(ctx);
        self.replay_parked(ctx);
    }

    pub(crate) fn on_catalog_ord(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let Ok(update) = lats_catalog::decode::<CatalogUpdate>(signal.payload()) else { return };
        if update.version() > self.catalog_version {
            match &update {
                CatalogUpdate::Whole(catalog) => {
                    self.install_catalog(catalog);
                    self.reconcile_fragments(ctx.node());
                }
                CatalogUpdate::Changes(changes) => self.install_changes(changes, ctx.node()),
            }
            self.plan_copies(ctx);
            self.start_catalog_work(ctx);
        }
        self.confirm_install(ctx);
        self.replay_parked(ctx);
    }

    /// INDEX-2: a catalog counts as installed when its indexes are built.
    pub(crate) fn confirm_install(&mut self, ctx: &mut Ctx<'_>) {
        if self.catalog_work.builds.is_empty() {
            self.built_catalog = self.catalog_version;
        }
        let body = InstallConf { view: self.view.number, catalog_version: self.built_catalog };
        ctx.send(BlockRef::control(ctx.node()), &body);
    }

    pub(crate) fn install_catalog(&mut self, catalog: &lats_catalog::Catalog) {
        self.install_tables(catalog);
        self.catalog_version = catalog.version;
        self.next_table = TableId::new(catalog.next_table_id);
    }

    /// SCHEMA-6: control tells what has changed since what it has told before.
    fn install_changes(&mut self, changes: &CatalogChanges, node: NodeId) {
        require!(changes.since <= self.catalog_version, "SCHEMA-6: changes that follow");
        self.remove_tables(&changes.gone);
        self.put_tables(changes.tables.iter());
        self.catalog_version = changes.version;
        self.next_table = TableId::new(changes.next_table_id);
        let (view, instance, epoch) = (&self.view, self.instance, self.epoch);
        for def in &changes.tables {
            if let Some(table) = self.tables.get_mut(&def.id) {
                reconcile(table, view, (node, instance), epoch);
            }
        }
    }

    fn install_tables(&mut self, catalog: &lats_catalog::Catalog) {
        let gone: Vec<_> =
            self.tables.keys().filter(|id| !catalog.tables.contains_key(id)).copied().collect();
        self.remove_tables(&gone);
        self.put_tables(catalog.tables.values());
    }

    fn remove_tables(&mut self, gone: &[TableId]) {
        // Those behind a table move up when it goes.
        for id in gone.iter().rev() {
            if let Some(table) = self.tables.remove(id) {
                let bytes: usize = table.fragments.values().map(Fragment::bytes).sum();
                self.memory_bytes -= bytes;
                let rubble =
                    table.fragments.into_iter().map(|(_, fragment)| fragment.into_rubble());
                self.catalog_work.rubble.extend(rubble);
            }
        }
    }

    fn put_tables<'a>(&mut self, defs: impl Iterator<Item = &'a Arc<TableDef>>) {
        for def in defs {
            let table = self.tables.get_or_insert_with(def.id, || Table {
                def: TableDef::clone(def),
                layout: def.layout(),
                spread: Spread::of(def),
                fragments: SortedMap::new(),
            });
            if table.def.schema_version == def.schema_version {
                continue;
            }
            table.def = TableDef::clone(def);
            table.layout = def.layout();
            for (at, fragment) in table.fragments.iter_mut() {
                let before = fragment.bytes();
                let (unbuilt, rubble) = fragment.change_indexes(&table.def);
                self.memory_bytes = self.memory_bytes + fragment.bytes() - before;
                self.catalog_work.rubble.extend(rubble);
                for index in unbuilt {
                    self.catalog_work.build((def.id, *at, index));
                }
            }
        }
    }

    /// Creates the fragments of which this node is a replica in the view.
    fn reconcile_fragments(&mut self, node: NodeId) {
        let (view, instance, epoch) = (&self.view, self.instance, self.epoch);
        for table in self.tables.values_mut() {
            reconcile(table, view, (node, instance), epoch);
        }
    }

    /// Takes over the fragments whose primary this node has become: what transactions hold there
    /// becomes locked, and what is known to have been committed becomes visible.
    fn promote(&mut self, before: &View, node: NodeId) {
        let view = &self.view;
        let promoted =
            |f: FragmentId| view.primary(f) == Some(node) && before.primary(f) != Some(node);
        let mut ops: Vec<(TransactionId, Op)> = Vec::new();
        for (id, t) in self.transactions.iter() {
            ops.extend(t.ops.iter().filter(|op| promoted(op.fragment)).map(|op| (id, *op)));
        }
        // COMMIT-8: the former primary may have given numbers that this replica has not heard of.
        let above = self.view.number.get() << NUMBERS_PER_VIEW_BITS;
        // READ-7: what is held here may be shown before its epoch is known. Other nodes may have heard of the next epoch.
        let held_up_to = Epoch::new(self.epoch.get() + 2);
        for table in self.tables.values_mut() {
            let own = table.fragments.iter_mut().filter(|(id, _)| {
                self.view.primary(**id) == Some(node) && before.primary(**id) != Some(node)
            });
            own.for_each(|(_, fragment)| {
                fragment.hear_number(above);
                fragment.changed = fragment.changed.max(held_up_to);
            });
        }
        let handed_over = |op: &Op| {
            before.next_primary(op.fragment) == Some(node)
                && before.primary(op.fragment).is_some_and(|former| {
                    self.view.incarnation(former).is_some()
                        && self.view.incarnation(former) == before.incarnation(former)
                })
        };
        let held = ops.iter().find(|(_, op)| handed_over(op));
        require!(held.is_none(), "HANDOVER-4: what is handed over is held by {held:?}");
        for (_, op) in &ops {
            self.settle_passed(op);
        }
        for (id, op) in &ops {
            self.lock_promoted(*id, op);
        }
    }

    /// COMMIT-6: below the topmost transaction's versions everything is committed, unless its images never
    /// reached the former primary (FAIL-5).
    fn settle_passed(&mut self, op: &Op) {
        let row = self.fragment(op.table, op.fragment).and_then(|f| f.row(op.row));
        let Some(row) = row else { return };
        let Some(top) = row.pending().last().map(|v| v.transaction) else { return };
        let passed = row.pending().iter().take_while(|v| v.transaction != top);
        let passed: Vec<(TransactionId, u64)> = passed.map(|v| (v.transaction, v.number)).collect();
        let mut newest = None;
        for (id, number) in passed {
            if self.is_undecided(id) {
                self.lose_part(id);
                self.on_fragment(op.table, op.fragment, |f, layout| {
                    f.drop_version(op.row, number, layout);
                });
                continue;
            }
            let t = self.transactions.get(&id);
            let decided = t.and_then(|t| t.decided);
            if decided.is_none() {
                self.shown_early.insert(id);
            }
            let carried = t.and_then(|t| t.carry).map(|carry| carry.epoch);
            self.keep_for_redo((op.table, op.fragment, op.row), |v| v.number == number);
            newest = Some((number, decided.or(carried).unwrap_or_default()));
        }
        let now = self.epoch;
        if let Some((number, epoch)) = newest {
            self.on_fragment(op.table, op.fragment, |f, layout| {
                f.commit_version(op.row, number, epoch, layout, false);
                f.snapshot_floor = f.snapshot_floor.max(now);
            });
        }
    }

    fn lock_promoted(&mut self, id: TransactionId, op: &Op) {
        let Some(fragment) = self.fragment_mut(op.table, op.fragment) else { return };
        let Some(row) = fragment.row_mut(op.row) else { return };
        if row.pending().last().map(|v| v.transaction) != Some(id) {
            return;
        }
        let Some(lock) = fragment.lock_mut(op.row) else { return };
        lock.acquire(id, LockMode::Exclusive, false);
        require!(lock.is_exclusive(id), "a promoted row has one writer");
    }

    /// Reports transactions whose coordinator is gone to the coordinators that take over.
    fn report_orphans(&mut self, ctx: &mut Ctx<'_>) {
        let view = self.view.clone();
        let orphans: Vec<TransactionId> = self
            .transactions
            .iter()
            .filter(|(_, t)| !view.is_alive(t.coordinator.node, t.coordinator_life))
            .map(|(id, _)| id)
            .collect();
        for id in orphans {
            self.cancel_wait(id, RefCode::NodeFailed, ctx);
            self.report_orphan(id, &view, ctx);
        }
        self.report_lost_parts(ctx);
        self.report_ended(ctx);
        let body = TakeOverEndRep { view: view.number };
        for member in view.data_nodes() {
            for instance in 0..view.config.tc_instances {
                ctx.send(BlockRef::tc(member.node, instance), &body);
            }
        }
    }

    fn report_orphan(&mut self, id: TransactionId, view: &View, ctx: &mut Ctx<'_>) {
        let Some(t) = self.transactions.get_mut(&id) else { return };
        let Some(heir) = heir_of(id, view) else { return };
        t.coordinator = heir;
        t.coordinator_life = view.incarnation(heir.node).unwrap_or_default();
        let state = match t.carry {
            _ if t.committed => TAKE_OVER_COMMITTED,
            _ if t.decided.is_some() || t.proven => TAKE_OVER_DECIDED,
            Some(_) => TAKE_OVER_CARRIED,
            None => TAKE_OVER_PREPARED,
        };
        let carry = t.carry.unwrap_or_default();
        let body = TakeOverRep {
            transaction: id,
            epoch: t.decided.unwrap_or(carry.epoch),
            view: view.number,
            carry,
            state,
            reserved: 0,
        };
        ctx.send(heir, &body);
    }

    pub(crate) fn replay_parked(&mut self, ctx: &mut Ctx<'_>) {
        let mut parked: SignalBuffer = core::mem::take(&mut self.parked);
        while let Some(signal) = parked.pop() {
            lats_kernel::Block::handle(self, &signal, ctx);
        }
    }
}

/// Creates the fragments of a table that a data manager is to have.
fn reconcile(table: &mut Table, view: &View, (node, instance): (NodeId, u32), now: Epoch) {
    let in_sync = view.is_in_sync(node);
    for id in 0..table.def.fragment_count {
        let fragment = FragmentId::new(id);
        let mine = view.ldm_instance(fragment) == instance && view.is_replica(node, fragment);
        if !mine {
            continue;
        }
        let held = table.fragments.get_or_insert_with(fragment, || {
            let mut new = Fragment::new(&table.def);
            new.syncing = !in_sync;
            if view.primary(fragment) == Some(node) {
                // COMMIT-8: a former primary may have used the table before it was known here.
                new.hear_number(view.number.get() << NUMBERS_PER_VIEW_BITS);
            }
            new
        });
        if held.syncing && in_sync {
            held.end_sync();
            // SNAP-3: copies bring the newest versions only.
            held.snapshot_floor = now;
        }
    }
}

/// The coordinator that takes a dead one's transaction over: the in-sync node that wins by hash
/// (rendezvous hashing: another node's death does not move the transaction again).
pub(crate) fn heir_of(id: TransactionId, view: &View) -> Option<BlockRef> {
    let weight = |node: NodeId| {
        let mixed = id.hash() ^ u64::from(node.get()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed.wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 16
    };
    let nodes = view.data_nodes().map(|m| m.node).filter(|n| view.is_in_sync(*n));
    let node = nodes.max_by_key(|n| (weight(*n), n.get()))?;
    let instances = u64::from(view.config.tc_instances.max(1));
    Some(BlockRef::tc(node, (id.hash() % instances) as u32))
}
