//! Rows as of the end of a run, from what they were in some epoch and from archived logs: they must be those in memory
//! (ARCHIVE-3, ARCHIVE-4).

use crate::{checkers, durability, world::World};
use lats_base::{Duration, Epoch, FragmentId, NodeId, TableId, prng::Prng};
use lats_files::redo::{Coverage, Segment, Span, first_gap, void_after};
use std::collections::BTreeMap;

/// A row's key, and where it is.
type Key = (TableId, FragmentId, Vec<u8>);
/// Rows by their keys.
type Rows = BTreeMap<Key, Vec<u8>>;

/// The rows of an epoch that was durable, as a backup has them.
pub struct Backup {
    epoch: Epoch,
    rows: Rows,
}

/// A change in a log: its number, and the row; none: it is deleted.
type Logged = (u64, Option<Vec<u8>>);

/// What the logs of one data manager of one node tell.
#[derive(Default)]
struct Told {
    spans: Vec<Span>,
    changes: Vec<(Epoch, Key, Logged)>,
}

/// Of the epochs of so long nobody may tell if the only full replica dies in the moment in which another becomes one: what was changed in
/// them before was copied, and the last seal of the dead one is older. Seals are late when disks are slow.
const SHORT_GAP: Duration = Duration::from_millis(640);

/// How many epochs that is in this run: they are shorter where somebody waits for disks (DURABLE-3).
fn short_gap(world: &World, newest: Epoch) -> u64 {
    let epochs = u128::from(newest.get()) * u128::from(SHORT_GAP.as_nanos());
    u64::try_from(epochs.div_ceil(u128::from(world.now.as_nanos().max(1)))).unwrap_or(u64::MAX)
}

/// A restart has begun with an epoch that the one before had made void: somebody had not heard of that (see `Dark::last_before`). A log
/// does not tell then that it goes on.
fn has_void_restart(restored: &[Epoch], gap: Span, short: u64) -> bool {
    restored.windows(2).any(|pair| {
        let is_in = pair[0] >= gap.after && pair[1] <= gap.upto;
        // What a restart brings is of much later epochs.
        is_in && pair[0] < pair[1] && pair[1].get() - pair[0].get() <= short
    })
}

impl Backup {
    /// The rows as they are now, or were a moment ago; none while a group is lost.
    pub fn take(world: &World, random: &mut Prng) -> Result<Option<Self>, String> {
        let epoch = durability::durable_epoch(world);
        let Some(rows) = durability::rows_on_disks(world, epoch, random)? else { return Ok(None) };
        let rows = rows.into_iter().flat_map(|(place, rows)| by_key(place, rows));
        Ok(Some(Self { epoch, rows: rows.collect() }))
    }

    /// Restores the rows of the newest durable epoch: all are in memory, and no others. Some files of the archive may be lost: false if it
    /// does not tell everything then.
    pub fn restores(&self, world: &World, random: &mut Prng) -> Result<bool, String> {
        let Some(control) = checkers::newest_control(world, |_| true) else { return Ok(false) };
        let state = control.state();
        let wanted = Span { after: self.epoch, upto: durability::durable_epoch(world) };
        let mut last: BTreeMap<_, Logged> = BTreeMap::new();
        let (loses, mut tells) = (random.chance(1, 2), true);
        for group in &state.view.groups {
            for instance in 0..state.view.config.ldm_instances as u16 {
                let tell = |node| tell(world, (node, instance), &state.restored, loses, random);
                let mut told: Vec<Told> = group.nodes.iter().copied().map(tell).collect();
                let spans: Vec<Span> = told.iter().flat_map(|t| t.spans.clone()).collect();
                let has_rotted =
                    |node: &NodeId| world.disks.get(node).is_some_and(|disk| disk.has_rotted);
                // What is committed while a directory is gone is in no archive (`docs/protocols/gone.md`).
                let was_gone = |node: &NodeId| world.directory(*node) > 0;
                let has_lost = |node: &NodeId| has_rotted(node) || was_gone(node);
                let excused = loses || group.nodes.iter().any(has_lost);
                let mut from = wanted;
                while let Some(gap) = first_gap(&spans, from) {
                    let short = short_gap(world, wanted.upto);
                    let is_short = gap.upto.get() - gap.after.get() <= short;
                    let excused = excused || has_void_restart(&state.restored, gap, short);
                    if !excused && (!is_short || gap.upto == wanted.upto) {
                        return Err(format!(
                            "nothing of the archives is lost, and nobody tells of the epochs after {} up to {} (instance {instance}, nodes {:?}: {spans:?})",
                            gap.after, gap.upto, group.nodes
                        ));
                    }
                    (from.after, tells) = (gap.upto, false);
                }
                // One node that tells everything is enough.
                let alone = told.iter().position(|told| first_gap(&told.spans, wanted).is_none());
                told.swap(0, alone.unwrap_or(0));
                let tellers = if alone.is_some() { 1 } else { told.len() };
                let changes = told.into_iter().take(tellers).flat_map(|told| told.changes);
                let between = |epoch: Epoch| epoch > wanted.after && epoch <= wanted.upto;
                for (_, key, logged) in changes.filter(|(epoch, ..)| between(*epoch)) {
                    let newest = last.entry(key).or_insert((0, None));
                    if logged.0 >= newest.0 {
                        *newest = logged;
                    }
                }
            }
        }
        if !tells {
            return Ok(false);
        }
        let mut rows = self.rows.clone();
        for (key, (_, image)) in last {
            rows.remove(&key);
            rows.extend(image.map(|image| (key, image)));
        }
        rows.retain(|(table, ..), _| state.catalog.tables.contains_key(table));
        self.compare(&rows, world, wanted)?;
        Ok(true)
    }

    fn compare(&self, restored: &Rows, world: &World, wanted: Span) -> Result<(), String> {
        let mut memory = Rows::new();
        for node in world.nodes.keys() {
            for (place, rows) in checkers::rows(world, *node) {
                memory.extend(by_key(place, rows));
            }
        }
        let all = restored.keys().chain(memory.keys());
        match all.into_iter().find(|key| restored.get(*key) != memory.get(*key)) {
            None => Ok(()),
            Some(key) => Err(format!(
                "restored from epoch {} to {}: {key:?} is {:?}, in memory {:?}",
                wanted.after,
                wanted.upto,
                restored.get(key),
                memory.get(key)
            )),
        }
    }
}

fn by_key(
    (table, fragment): (TableId, FragmentId),
    rows: checkers::Rows,
) -> impl Iterator<Item = (Key, Vec<u8>)> {
    rows.into_iter().map(move |((_, key), (image, ..))| ((table, fragment, key), image))
}

fn tell(
    world: &World,
    (node, instance): (NodeId, u16),
    restored: &[Epoch],
    loses: bool,
    random: &mut Prng,
) -> Told {
    let Some(disk) = world.disks.get(&node) else { return Told::default() };
    let files = disk.archived(instance);
    let own = |bytes| {
        let segment = Segment::open(bytes).ok()?;
        ((segment.log.node, segment.log.instance) == (node, instance)).then_some(segment)
    };
    let mut segments: Vec<Segment<'_>> = files.iter().filter_map(|bytes| own(bytes)).collect();
    segments.sort_by_key(|segment| (segment.log.life, segment.number));
    let mut coverage = Coverage::new(restored);
    let mut told = Told::default();
    for mut segment in segments {
        if loses && random.chance(1, 6) {
            continue;
        }
        coverage.begin(&segment);
        let (restarts, void_after) = (segment.restarts, void_after(restored, segment.restarts));
        for record in segment.by_ref() {
            coverage.note(&record, restarts);
            let counts = record.tells_of_change() && record.epoch <= void_after;
            for change in record.changes().filter(|_| counts) {
                let key = (change.table, change.fragment, change.key.to_vec());
                let logged = (change.number, change.image.map(<[u8]>::to_vec));
                told.changes.push((record.epoch, key, logged));
            }
        }
        coverage.note_place(&segment);
    }
    told.spans = coverage.spans();
    told
}
