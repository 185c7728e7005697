//! What would be left if every node lost its power now: read from the disks, it must be the state of one epoch, and
//! not of an earlier one than was called durable (DURABLE-1 to DURABLE-3).

use crate::{
    checkers::{self, AllRows, Found, Rows},
    clients::Ledger,
    disk::Disk,
    world::World,
};
use lats_base::{Epoch, FragmentId, NodeId, TableId, prng::Prng};
use lats_catalog::View;
use lats_files::redo::{Segment, Survey, void_after};
use lats_node::control::Control;
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
    /// The newest epoch that its seals call durable.
    durable: Epoch,
    /// Some of it does not continue what stands before: it has been damaged, and others fill the node.
    is_damaged: bool,
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
    if ledger.on_disk > newest {
        let told = ledger.on_disk;
        return Err(format!("a client was told that epoch {told} is durable; disks have {newest}"));
    }
    // RESTART-2: nobody begins with an earlier epoch than one that a seal calls durable.
    let oldest = left.said_durable().max(durable);
    if oldest > newest.max(durable) {
        // GONE-5: the logs of a node are written anew, and one of them is whole already. The restart waits for a person.
        let is_anew = |node: &NodeId| world.directory(*node) > 0;
        let why = format!("a seal calls epoch {oldest} durable, and disks have {newest}");
        return if left.logs.keys().any(is_anew) { Ok(()) } else { Err(why) };
    }
    let epoch = Epoch::new(random.between(oldest.get(), newest.get().max(oldest.get())));
    is_state_of(epoch, &left.rows_as_of(epoch)?, ledger)
}

/// The newest epoch that all full replicas could give back if all nodes lost their power now; none if a group is lost.
pub fn newest_on_disks(world: &World, random: &mut Prng) -> Option<Epoch> {
    let left = Left::of(world, random)?;
    left.logs.values().map(|log| log.sealed).min()
}

/// Rows are those that there were in this epoch, as far as clients know.
fn is_state_of(epoch: Epoch, rows: &AllRows, ledger: &Ledger) -> Result<(), String> {
    let found = Found::among(rows.iter().map(|(place, rows)| (*place, rows)), ledger)?;
    for (transfer, at) in &ledger.transfer_epochs {
        match found.history.contains_key(transfer) {
            false if *at <= epoch => {
                return Err(format!("transfer {transfer} is not on the disks at epoch {epoch}"));
            }
            true if *at > epoch => {
                return Err(format!("transfer {transfer} of {at} is on the disks at {epoch}"));
            }
            _ => {}
        }
    }
    if found.balances.is_empty() && found.history.is_empty() {
        // The accounts are younger than that.
        return Ok(());
    }
    checkers::balances_add_up(ledger, &found.balances, &found.history)
        .map_err(|why| format!("on the disks at epoch {epoch}: {why}"))
}

/// What was known when all nodes died, and what is on their disks since then.
pub struct Dark {
    durable: Epoch,
    restored: Vec<Epoch>,
    instances: u16,
    logs: BTreeMap<NodeId, Log>,
    /// One that lives on: it may be able to lead alone.
    spared: Option<NodeId>,
}

impl Dark {
    /// All nodes are about to die.
    pub fn falls(world: &World, ledger: &Ledger) -> Self {
        let states = world.nodes.values().filter_map(|n| Some(checkers::control(n)?.state()));
        let newest = states.max_by_key(|state| (state.view.restarts, state.commands));
        let view = newest.map(|state| &state.view);
        Self {
            durable: durable_epoch(world).max(ledger.on_disk),
            restored: newest.map(|state| state.restored.clone()).unwrap_or_default(),
            instances: view.map_or(0, |view| view.config.ldm_instances as u16),
            logs: BTreeMap::new(),
            spared: None,
        }
    }

    /// The cluster is up again: restarted, or led by who was spared.
    pub fn is_over(&self, world: &World) -> bool {
        let restarts = |c: &Control| c.state().restored.len() > self.restored.len();
        let controls = || world.nodes.values().filter_map(checkers::control);
        controls().any(|c| restarts(c) && c.is_leader())
            || (self.spared.is_some()
                && !controls().any(restarts)
                && checkers::whole(world).is_ok())
    }

    /// They are dead.
    pub fn with_disks(mut self, world: &World, spared: Option<NodeId>) -> Self {
        self.spared = spared;
        for (node, disk) in &world.disks {
            self.logs.insert(*node, Log::read(disk, *node, self.instances, &self.restored));
        }
        self
    }

    /// All nodes have ended as they were told to: whatever clients were told is there.
    pub fn with_all_of(mut self, ledger: &Ledger) -> Self {
        let newest = ledger.transfer_epochs.values().copied().max();
        self.durable = self.durable.max(newest.unwrap_or_default());
        self
    }

    /// A disk has lost a bit: what its seals said last may be gone, and what nobody's seals call durable may be gone then
    /// (RESTART-2).
    pub fn with_rot(mut self) -> Self {
        let said = self.logs.values().map(|log| log.durable).max();
        self.durable = self.durable.min(said.unwrap_or_default());
        self
    }

    /// Whoever has not heard that a restart has made its last epochs void takes part in the next one with these: nothing is in them,
    /// and the state is that of the epoch which the former restart began with.
    fn last_before(&self, epoch: Epoch) -> Epoch {
        let from_disks = self.restored.iter().rev().find(|epoch| epoch.get() < u64::MAX);
        let began = from_disks.copied().filter(|began| *began < epoch);
        let is_void = |began: &Epoch| {
            let mut changes = self.logs.values().flat_map(|log| log.changes.values().flatten());
            !changes.any(|change| *began < change.epoch && change.epoch <= epoch)
        };
        began.filter(is_void).unwrap_or(epoch)
    }

    /// The cluster is up again, and nobody has changed anything yet: it must have what its full replicas had in the epoch
    /// that it says, and that must not be older than the durable one. Gives that epoch, if there was a restart.
    pub fn check(&self, world: &World, ledger: &Ledger) -> Result<Option<Epoch>, String> {
        let control = checkers::newest_control(world, |_| true).ok_or("no node lives")?;
        let state = control.state();
        let new = state.restored.get(self.restored.len()..).unwrap_or_default();
        // Those who lived have lost nothing when they formed the group anew (REFORM-1).
        let from_disks = new.iter().rev().find(|epoch| epoch.get() < u64::MAX);
        let Some(epoch) = from_disks.copied() else { return Ok(None) };
        if epoch < self.durable {
            let durable = self.durable;
            return Err(format!("restarted at {epoch}, although {durable} was called durable"));
        }
        let needed = self.last_before(epoch);
        let mut all = BTreeMap::new();
        let full = state.view.groups.iter().flat_map(|g| &g.replicas).filter(|r| r.in_sync);
        let is_here = |n: &NodeId| {
            let node = &world.nodes[n];
            node.is_alive() && state.view.is_alive(*n, node.life())
        };
        let full: Vec<NodeId> = full.map(|r| r.node).filter(is_here).collect();
        for node in full.iter().copied() {
            // One whose log is damaged or old was filled by another.
            let had = |log: &&Log| log.sealed >= needed && Some(node) != self.spared;
            let Some(log) = self.logs.get(&node).filter(had) else { continue };
            let expected = log.rows_as_of(epoch);
            let memory = checkers::rows(world, node);
            for (place, rows) in &memory {
                let empty = Rows::new();
                let disk = expected.get(place).unwrap_or(&empty);
                // What a damaged log lacks has come from others, unless it was whole again by then.
                if disk != rows && (!log.is_damaged || log.sealed >= epoch) {
                    let text = checkers::difference(node, node, *place, Some(disk), rows);
                    return Err(format!("restarted at epoch {epoch}, disk and memory: {text}"));
                }
            }
            all.extend(memory);
        }
        let had = |n: &NodeId| Some(*n) == self.spared || self.logs[n].sealed >= needed;
        let first = |g: &lats_catalog::Group| !g.nodes.iter().any(had);
        if let Some(group) = state.view.groups.iter().find(|g| first(g)) {
            return Err(format!("restarted at epoch {epoch}, which nobody of {group:?} had"));
        }
        let is_here = |g: &lats_catalog::Group| {
            g.nodes.iter().any(|n| {
                self.logs[n].sealed >= needed && Some(*n) != self.spared && full.contains(n)
            })
        };
        if state.view.groups.iter().all(is_here) {
            is_state_of(epoch, &all, ledger)?;
        }
        Ok(Some(epoch))
    }
}

/// REDO-4: what waits for a disk is bounded: whoever is behind has all others refuse changes, and only transactions that were
/// under way go on.
pub fn backlog_is_bounded(world: &World) -> Result<(), String> {
    let view = checkers::newest_view(world);
    for node in world.nodes.keys() {
        let is_full = view.is_some_and(|view| view.is_in_sync(*node));
        let under_way = if is_full { UNDER_WAY_BYTES } else { UNDER_WAY_BYTES + COPIES_BYTES };
        for ldm in checkers::ldms(world, *node) {
            let (waiting, most) = ldm.redo_backlog();
            if waiting > most + under_way {
                return Err(format!(
                    "{waiting} bytes wait for the disk of node {node}; {most} may"
                ));
            }
        }
    }
    Ok(())
}

/// What a step of a checkpoint and simulated clients bring at most when a log is behind already; and batches of copied rows, two from
/// each primary (REJOIN-6).
const UNDER_WAY_BYTES: usize = 40 << 10;
const COPIES_BYTES: usize = 200 << 10;

/// The rows as of an epoch that is durable, from the disks of full replicas when power is lost; none if a group is lost, or was written anew since.
pub(crate) fn rows_on_disks(
    world: &World,
    epoch: Epoch,
    random: &mut Prng,
) -> Result<Option<AllRows>, String> {
    // GONE-5: a log that was written anew has the newest rows only.
    let left = Left::of(world, random).filter(|left| left.said_durable() <= epoch);
    left.map(|left| left.rows_as_of(epoch)).transpose()
}

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

/// GONE-2: the log of a node is gone, and not written anew yet.
pub(crate) fn has_no_log(world: &World, node: NodeId) -> bool {
    world.has_no_directory(node) || checkers::ldms(world, node).iter().any(|ldm| ldm.has_no_log())
}

/// True when all that was decided is durable.
pub fn all_is_durable(world: &World) -> bool {
    if world.nodes.keys().any(|node| has_no_log(world, *node)) {
        return false;
    }
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
        let states = world.nodes.values().filter_map(|n| Some(checkers::control(n)?.state()));
        let newest = states.max_by_key(|state| (state.view.restarts, state.commands))?.clone();
        let view = newest.view.clone();
        if view.groups.iter().any(|g| g.is_lost()) {
            return None;
        }
        // GONE-5: who has no log claims nothing.
        let has_lost = |n| view.incarnation(n).is_some_and(|life| world.has_lost_log(n, life));
        let has_log = |r: &lats_catalog::Replica| {
            r.in_sync && !has_no_log(world, r.node) && !has_lost(r.node)
        };
        if view.groups.iter().any(|g| !g.replicas.iter().any(has_log)) {
            return None;
        }
        let in_sync = view.groups.iter().flat_map(|g| &g.replicas).filter(|r| has_log(r));
        let nodes: Vec<NodeId> = in_sync.map(|r| r.node).collect();
        let mut logs = BTreeMap::new();
        for node in nodes {
            let mut disk = world.disks.get(&node).cloned().unwrap_or_default();
            disk.lose_power(random);
            let instances = view.config.ldm_instances as u16;
            logs.insert(node, Log::read(&disk, node, instances, &newest.restored));
        }
        let tables = newest.catalog.tables.keys().copied().collect();
        Some(Self { view, tables, logs })
    }

    /// The newest epoch that a seal calls durable.
    fn said_durable(&self) -> Epoch {
        self.logs.values().map(|log| log.durable).max().unwrap_or_default()
    }

    /// The rows of all groups, which all replicas must have.
    fn rows_as_of(&self, epoch: Epoch) -> Result<AllRows, String> {
        let mut all = BTreeMap::new();
        for group in &self.view.groups {
            let mut first: Option<(NodeId, BTreeMap<_, Rows>)> = None;
            for replica in group.replicas.iter().filter(|r| r.in_sync) {
                let Some(log) = self.logs.get(&replica.node) else { continue };
                let rows = log.rows_as_of(epoch);
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

fn segments_from<'f>(
    files: &'f BTreeMap<u32, Vec<u8>>,
    origin: u32,
    own: impl Fn(u32, &'f [u8]) -> Option<Segment<'f>>,
) -> impl Iterator<Item = Segment<'f>> {
    files.range(origin..).filter_map(move |(number, bytes)| own(*number, bytes))
}

impl Log {
    fn read(disk: &Disk, node: NodeId, instances: u16, restored: &[Epoch]) -> Self {
        let mut log = Self { sealed: Epoch::new(u64::MAX), ..Self::default() };
        for instance in 0..instances {
            let sealed = log.read_instance(disk, node, instance, restored);
            log.sealed = log.sealed.min(sealed);
        }
        log
    }

    /// Reads the segments that continue each other; gives the newest epoch that can be restored.
    fn read_instance(
        &mut self,
        disk: &Disk,
        node: NodeId,
        instance: u16,
        restored: &[Epoch],
    ) -> Epoch {
        let files = disk.read(FILE_REDO, instance);
        let own = |number: u32, bytes| {
            let segment = Segment::open(bytes).ok()?;
            let log = segment.log;
            let fits = (log.node, log.instance, segment.number);
            (fits == (node, instance, u64::from(number))).then_some(segment)
        };
        let mut segments = files.iter().filter_map(|(number, bytes)| own(*number, bytes));
        let Some(origin) = segments.next_back().map(|last| last.origin) else {
            return Epoch::default();
        };
        let mut survey = Survey::of(origin);
        for mut segment in segments_from(&files, origin, own) {
            let void_after = void_after(restored, segment.restarts);
            survey.read(&mut segment, restored, |record, _| {
                for change in record.changes().filter(|_| record.epoch <= void_after) {
                    let place = (change.table, change.fragment, change.row.get());
                    self.changes.entry(place).or_default().push(Logged {
                        key: change.key.to_vec(),
                        image: change.image.map(<[u8]>::to_vec),
                        number: change.number,
                        epoch: record.epoch,
                    });
                }
            });
        }
        self.durable = self.durable.max(survey.durable);
        self.is_damaged |= survey.passed_over > 0;
        survey.restorable(u64::MAX)
    }

    /// The rows with what had been committed by then.
    fn rows_as_of(&self, epoch: Epoch) -> AllRows {
        let mut rows = AllRows::new();
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
