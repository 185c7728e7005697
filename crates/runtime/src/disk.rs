//! What is known of a node's disk, for people: how long it takes to sync, whether it has room, what waits for it.

use crate::clock;
use lats_base::{Duration, Instant};
use lats_signals::BlockRef;
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// How a node's disk is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskFigures {
    /// The node's directory.
    pub path: String,
    /// Why there is none, if there is none (GONE-1).
    pub gone: Option<String>,
    /// Rows are being written anew: not all of them are on it (GONE-5).
    pub writes_anew: bool,
    /// A write has found no room lately.
    pub is_full: bool,
    /// Bytes of the last such write.
    pub wanted_bytes: u64,
    /// Bytes that are free, and all.
    pub free_bytes: u64,
    /// See `free_bytes`.
    pub total_bytes: u64,
    /// Bytes that waited for being written, when some were last.
    pub waiting_bytes: u64,
    /// How long the last sync has taken, in µs; and how long the one that is under way has until now.
    pub sync_last_us: u64,
    /// See `sync_last_us`; 0: none is.
    pub sync_under_way_us: u64,
    /// Of the syncs of the last minute, 99 of 100 took no longer, in µs.
    pub sync_p99_us: u64,
    /// How many these are.
    pub syncs: u64,
}

/// The disk, as the threads that write to it see it.
#[derive(Default)]
pub(crate) struct Disk(Mutex<Seen>);

#[derive(Default)]
struct Seen {
    blocks: BTreeMap<(u16, u32), Writes>,
    full_at: Option<Instant>,
    wanted_bytes: u64,
    room: (u64, u64),
    syncs: Syncs,
    /// When the sync began that a thread is in.
    under_way: BTreeMap<usize, Instant>,
}

/// What a block has written last.
#[derive(Default)]
struct Writes {
    waiting_kib: u32,
    leaves_gaps: bool,
}

/// A disk that was full so long ago is not called full.
const FULL_LASTS: Duration = Duration::from_millis(1_000);

impl Disk {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A block's write is done; `leaves_gaps`: it is one of many that write all rows anew.
    pub(crate) fn written(&self, block: BlockRef, waiting_kib: u32, leaves_gaps: bool) {
        let mut seen = self.seen();
        seen.blocks.insert(key(block), Writes { waiting_kib, leaves_gaps });
    }

    /// Nothing that these have written can be found again.
    pub(crate) fn lost(&self, blocks: &[BlockRef]) {
        let mut seen = self.seen();
        for block in blocks {
            seen.blocks.entry(key(*block)).or_default().leaves_gaps = true;
        }
    }

    /// A write of a block has found no room.
    pub(crate) fn is_full(&self, block: BlockRef, waiting_kib: u32, bytes: usize) {
        let mut seen = self.seen();
        (seen.full_at, seen.wanted_bytes) = (Some(clock::now()), bytes as u64);
        seen.blocks.entry(key(block)).or_default().waiting_kib = waiting_kib;
    }

    pub(crate) fn sync_begins(&self, thread: usize) {
        self.seen().under_way.insert(thread, clock::now());
    }

    pub(crate) fn sync_ends(&self, thread: usize) {
        let (mut seen, now) = (self.seen(), clock::now());
        if let Some(began) = seen.under_way.remove(&thread) {
            seen.syncs.add(now, now.since(began));
        }
    }

    /// Looks how much room there is.
    pub(crate) fn measure(&self, directory: &Path) {
        if let Ok(found) = rustix::fs::statvfs(directory) {
            self.seen().room = (found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize);
        }
    }

    /// Bytes that are free, as far as is known.
    pub(crate) fn free_bytes(&self) -> u64 {
        self.seen().room.0
    }

    /// All of it, for a person.
    pub(crate) fn figures(&self, path: &Path, gone: Option<String>) -> DiskFigures {
        let (seen, now) = (self.seen(), clock::now());
        let waiting = seen.blocks.values().map(|b| u64::from(b.waiting_kib) << 10).sum();
        let longest = seen.under_way.values().map(|began| now.since(*began)).max();
        let (sync_p99_us, syncs) = seen.syncs.quantile(now, 99);
        DiskFigures {
            path: path.display().to_string(),
            gone,
            writes_anew: seen.blocks.values().any(|b| b.leaves_gaps),
            is_full: seen.full_at.is_some_and(|at| now.since(at) < FULL_LASTS),
            wanted_bytes: seen.wanted_bytes,
            free_bytes: seen.room.0,
            total_bytes: seen.room.1,
            waiting_bytes: waiting,
            // What was long ago says nothing.
            sync_last_us: if syncs > 0 { seen.syncs.last_us } else { 0 },
            sync_under_way_us: longest.unwrap_or_default().as_nanos() / 1_000,
            sync_p99_us,
            syncs,
        }
    }
}

fn key(block: BlockRef) -> (u16, u32) {
    (block.kind().map_or(0, |kind| kind as u16), block.instance)
}

/// How long syncs have taken in the last minute.
#[derive(Default)]
struct Syncs {
    last_us: u64,
    /// By the number of their ten seconds: counts by length.
    slots: BTreeMap<u64, BTreeMap<u32, u64>>,
}

const SLOT: u64 = Duration::from_millis(10_000).as_nanos();
const SLOTS: u64 = 6;

impl Syncs {
    fn add(&mut self, now: Instant, took: Duration) {
        self.last_us = took.as_nanos() / 1_000;
        let slot = now.as_nanos() / SLOT;
        self.slots.retain(|number, _| number + SLOTS > slot);
        *self.slots.entry(slot).or_default().entry(class(self.last_us)).or_default() += 1;
    }

    /// So many of 100 took no longer than this, in µs; and how many there were.
    fn quantile(&self, now: Instant, of_100: u64) -> (u64, u64) {
        let slot = now.as_nanos() / SLOT;
        let mut all: BTreeMap<u32, u64> = BTreeMap::new();
        for counts in self.slots.range((slot + 1).saturating_sub(SLOTS)..).map(|(_, c)| c) {
            counts.iter().for_each(|(class, count)| *all.entry(*class).or_default() += count);
        }
        let count: u64 = all.values().sum();
        let wanted = (count * of_100).div_ceil(100);
        let mut passed = 0;
        let found = all.iter().find(|(_, count)| {
            passed += **count;
            passed >= wanted
        });
        (found.map_or(0, |(class, _)| end_of(*class)), count)
    }
}

/// Lengths that differ by less than a quarter of an octave are one class.
fn class(us: u64) -> u32 {
    let octave = us.max(4).ilog2();
    octave * 4 + ((us.max(4) >> (octave - 2)) & 3) as u32
}

/// The longest of a class.
fn end_of(class: u32) -> u64 {
    let (octave, quarter) = (class / 4, u64::from(class % 4));
    ((5 + quarter) << (octave - 2)) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_of_the_last_minute() {
        let at = |s: u64| Instant::ZERO.plus(Duration::from_millis(1_000 * s));
        let mut syncs = Syncs::default();
        assert_eq!(syncs.quantile(at(0), 99), (0, 0));
        syncs.add(at(1), Duration::from_millis(900));
        for _ in 0..999 {
            syncs.add(at(30), Duration::from_micros(100));
        }
        let (p99, count) = syncs.quantile(at(30), 99);
        assert!((100..125).contains(&p99) && count == 1_000, "{p99} {count}");
        assert!(syncs.quantile(at(30), 100).0 >= 900_000);
        let (longest, count) = syncs.quantile(at(62), 100);
        assert!(longest < 125 && count == 999, "{longest} {count}");
        assert_eq!(syncs.quantile(at(200), 99), (0, 0));
    }

    #[test]
    fn a_class_ends_where_the_next_one_begins() {
        for us in [0, 4, 5, 7, 8, 100, 1_023, 1_024, 900_000, u64::from(u32::MAX)] {
            let end = end_of(class(us));
            assert!(
                us <= end && class(end) == class(us) && class(end + 1) == class(us) + 1,
                "{us} {end}"
            );
        }
    }

    #[test]
    fn what_is_lost_is_shown_until_all_of_it_is_written_anew() {
        use lats_base::NodeId;
        let node = NodeId::new(1);
        let blocks = [BlockRef::control(node), BlockRef::ldm(node, 0)];
        let disk = Disk::default();
        let shown = || disk.figures(Path::new("/d"), None);
        assert!(!shown().writes_anew);
        disk.lost(&blocks);
        disk.written(blocks[0], 0, false);
        assert!(shown().writes_anew);
        disk.written(blocks[1], 2_048, true);
        assert!(shown().writes_anew && shown().waiting_bytes == 2 << 20);
        disk.written(blocks[1], 0, false);
        assert!(!shown().writes_anew && shown().waiting_bytes == 0);
        disk.is_full(blocks[1], 512, 4_096);
        assert!(shown().is_full && shown().wanted_bytes == 4_096);
    }
}
