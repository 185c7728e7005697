//! What would be left if every node lost its power now: read from the disks, it must be the state of one epoch, and
//! not of an earlier one than was called durable (DURABLE-1 to DURABLE-3).

use crate::{
    checkers::{self, Found, Rows},
    clients::Ledger,
    disk::Disk,
    world::World,
};
use lats_base::{Epoch, FragmentId, Incarnation, NodeId, TableId, prng::Prng};
use lats_catalog::View;
use lats_files::redo::{RecordKind, Segment};
use lats_signals::io::FILE_REDO;
use std::collections::BTreeMap;

/// A committed change as a log has it: key, image, number, epoch.
#[derive(Clone, Debug)]
struct Logged {
    key: Vec<u8>,
    image: Option<Vec<u8>>,
    number: u64,
    epoch: Epoch,
}

/// What the logs of a node say.
#[derive(Default)]
struct Log {
    /// The newest epoch that all its data managers have sealed.
    sealed: Epoch,
    /// All changes, by row.
    changes: BTreeMap<(TableId, FragmentId, u64), Vec<Logged>>,
}

/// What the nodes' disks hold when each loses its power in its own way.
struct Left {
    view: View,
    /// Tables that are not dropped.
    tables: Vec<TableId>,
    logs: BTreeMap<NodeId, Log>,
}

/// The newest epoch that a live node has called durable.
pub fn durable_epoch(world: &World) -> Epoch {
    let known = world.nodes.values().filter_map(|n| Some(checkers::control(n)?.durable_epoch()));
    known.max().unwrap_or_default()
}

/// If all nodes lost their power now, nothing durable would be lost, and the replicas' disks would agree.
pub fn survives_power_loss(
    world: &World,
    ledger: &Ledger,
    random: &mut Prng,
) -> Result<(), String> {
    let durable = durable_epoch(world);
    let Some(left) = Left::of(world, random) else { return Ok(()) };
    for (node, log) in &left.logs {
        if log.sealed < durable {
            return Err(format!(
                "epoch {durable} was called durable; node {node} has only {} on its disk",
                log.sealed
            ));
        }
    }
    let newest = left.logs.values().map(|log| log.sealed).min().unwrap_or_default();
    let epoch = Epoch::new(random.between(durable.get(), newest.get().max(durable.get())));
    let rows = left.rows_as_of(epoch)?;
    let found = Found::among(rows.iter().map(|(place, rows)| (*place, rows)), ledger)?;
    for (transfer, _) in ledger.transfer_epochs.iter().filter(|(_, at)| **at <= epoch) {
        if !found.history.contains_key(transfer) {
            return Err(format!("transfer {transfer} is not on the disks at epoch {epoch}"));
        }
    }
    if found.balances.is_empty() && found.history.is_empty() {
        // The accounts are younger than that.
        return Ok(());
    }
    checkers::balances_add_up(ledger, &found.balances, &found.history)
        .map_err(|why| format!("on the disks at epoch {epoch}: {why}"))
}

/// REDO-4: what waits for a disk is bounded: whoever is behind has all others refuse changes, and only transactions that were
/// under way go on.
pub fn backlog_is_bounded(world: &World) -> Result<(), String> {
    for node in world.nodes.keys() {
        for ldm in checkers::ldms(world, *node) {
            let (waiting, most) = ldm.redo_backlog();
            if waiting > most + UNDER_WAY_BYTES {
                return Err(format!(
                    "{waiting} bytes wait for the disk of node {node}; {most} may"
                ));
            }
        }
    }
    Ok(())
}

/// What simulated clients, and a batch of copied rows, bring at most when others refuse changes already.
const UNDER_WAY_BYTES: usize = 64 << 10;

/// In peace everything becomes durable soon, and is what is in memory.
pub fn disks_match_memory(world: &World, random: &mut Prng) -> Result<(), String> {
    let Some(left) = Left::of(world, random) else { return Ok(()) };
    let durable = durable_epoch(world);
    for (node, log) in &left.logs {
        let memory = checkers::rows(world, *node);
        let newest =
            memory.values().flat_map(|rows| rows.values().map(|(_, _, epoch)| *epoch)).max();
        if newest.unwrap_or_default() > durable {
            return Err(format!("node {node} has rows of {newest:?}; durable is {durable}"));
        }
        for (place, rows) in &memory {
            let disk = log.rows_as_of(durable).remove(place).unwrap_or_default();
            if disk != *rows {
                return Err(format!(
                    "disk and memory: {}",
                    checkers::difference(*node, *node, *place, Some(&disk), rows)
                ));
            }
        }
    }
    Ok(())
}

/// True when all that was decided is durable.
pub fn all_is_durable(world: &World) -> bool {
    let durable = durable_epoch(world);
    let view = checkers::newest_view(world);
    let nodes = view.into_iter().flat_map(View::data_nodes).map(|m| m.node);
    nodes.into_iter().all(|node| {
        let rows = checkers::rows(world, node);
        rows.values().flat_map(|rows| rows.values()).all(|(_, _, epoch)| *epoch <= durable)
    })
}

impl Left {
    /// None if a node group is lost.
    fn of(world: &World, random: &mut Prng) -> Option<Self> {
        let view = checkers::newest_view(world)?.clone();
        if view.groups.iter().any(|g| g.is_lost()) {
            return None;
        }
        let in_sync = view.groups.iter().flat_map(|g| &g.replicas).filter(|r| r.in_sync);
        let nodes: Vec<NodeId> = in_sync.map(|r| r.node).collect();
        let mut logs = BTreeMap::new();
        for node in nodes {
            let mut disk = world.disks.get(&node).cloned().unwrap_or_default();
            disk.lose_power(random);
            let life = view.incarnation(node)?;
            let instances = view.config.ldm_instances as u16;
            logs.insert(node, Log::read(&disk, node, life, instances));
        }
        let catalogs =
            world.nodes.values().filter_map(|n| Some(&checkers::control(n)?.state().catalog));
        let newest = catalogs.max_by_key(|catalog| catalog.version)?;
        let tables = newest.tables.keys().copied().collect();
        Some(Self { view, tables, logs })
    }

    /// The rows of all groups, which all replicas must have.
    fn rows_as_of(&self, epoch: Epoch) -> Result<BTreeMap<(TableId, FragmentId), Rows>, String> {
        let mut all = BTreeMap::new();
        for group in &self.view.groups {
            let mut first: Option<(NodeId, BTreeMap<_, Rows>)> = None;
            for replica in group.replicas.iter().filter(|r| r.in_sync) {
                let rows = self.logs[&replica.node].rows_as_of(epoch);
                let Some((other, theirs)) = &first else {
                    first = Some((replica.node, rows));
                    continue;
                };
                let both = rows.keys().chain(theirs.keys());
                for place in both.filter(|(table, _)| self.tables.contains(table)) {
                    let empty = Rows::new();
                    let (a, b) = (theirs.get(place), rows.get(place).unwrap_or(&empty));
                    if a.unwrap_or(&empty) != b {
                        let text = checkers::difference(*other, replica.node, *place, a, b);
                        return Err(format!("disks at epoch {epoch}: {text}"));
                    }
                }
            }
            all.extend(first.map(|(_, rows)| rows).unwrap_or_default());
        }
        Ok(all)
    }
}

impl Log {
    fn read(disk: &Disk, node: NodeId, life: Incarnation, instances: u16) -> Self {
        let mut log = Self { sealed: Epoch::new(u64::MAX), changes: BTreeMap::new() };
        for instance in 0..instances {
            let sealed = log.read_instance(disk, node, life, instance);
            log.sealed = log.sealed.min(sealed);
        }
        log
    }

    /// Reads segments as long as one continues the other; gives the newest sealed epoch.
    fn read_instance(
        &mut self,
        disk: &Disk,
        node: NodeId,
        life: Incarnation,
        instance: u16,
    ) -> Epoch {
        let (mut sealed, mut next) = (Epoch::default(), 1);
        for (number, bytes) in disk.read(FILE_REDO, instance) {
            let Ok(mut segment) = Segment::open(&bytes) else { break };
            let own = (segment.log.node, segment.log.life, segment.log.instance);
            let is_next = segment.number == u64::from(number) && segment.next_record() == next;
            if own != (node, life, instance) || !is_next {
                break;
            }
            for record in segment.by_ref() {
                if record.kind == RecordKind::Seal {
                    sealed = sealed.max(record.epoch);
                }
                for change in record.changes() {
                    let place = (change.table, change.fragment, change.row.get());
                    self.changes.entry(place).or_default().push(Logged {
                        key: change.key.to_vec(),
                        image: change.image.map(<[u8]>::to_vec),
                        number: change.number,
                        epoch: record.epoch,
                    });
                }
            }
            // Behind the last record may stand what was there before. If it is damage, the next segment does not continue it.
            next = segment.next_record();
        }
        sealed
    }

    /// The rows with what had been committed by then.
    fn rows_as_of(&self, epoch: Epoch) -> BTreeMap<(TableId, FragmentId), Rows> {
        let mut rows: BTreeMap<(TableId, FragmentId), Rows> = BTreeMap::new();
        for ((table, fragment, row), changes) in &self.changes {
            let known = changes.iter().filter(|c| c.epoch <= epoch);
            let Some(newest) = known.max_by_key(|c| c.number) else { continue };
            if let Some(image) = &newest.image {
                let shown = (image.clone(), newest.number, newest.epoch);
                let of = rows.entry((*table, *fragment)).or_default();
                of.insert((*row, newest.key.clone()), shown);
            }
        }
        rows
    }
}
