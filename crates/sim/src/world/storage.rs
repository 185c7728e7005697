//! What nodes' disks do, and what becomes of them: they are slow, full or broken, and lose their power.

use super::{Asked, Event, LOST_POWER, SimNode, World};
use crate::{disk::Disk, durability::has_no_log, faults::Disturbance};
use lats_base::{Duration, Incarnation, Instant, NodeId, prng::Prng};
use lats_signals::{
    BlockKind, BlockRef, Signal, SignalNumber,
    io::{
        DirectoryRep, IO_FAILED, IO_FULL, IO_GONE, IO_MISSING, IoConf, IoListConf, IoListReq,
        IoReadConf, IoReadReq, IoRef, IoRemoveReq, IoWriteReq, WRITE_SYNC,
    },
};
use std::collections::BTreeMap;

/// How disks are in a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct DiskWays {
    /// They sync within a millisecond.
    pub quick: bool,
    /// How many times longer than a good one each takes.
    pub slowness: u64,
    /// The same for the control state, if that is more.
    pub control_slowness: u64,
    /// The disk of this node does nothing any more in the time that anybody waits.
    pub stuck: Option<NodeId>,
    /// One write of so many finds no room, for up to a second; 0: none does.
    pub full_once_in: u64,
    /// One sync of so many fails; 0: none does.
    pub fails_once_in: u64,
    /// One read of so many fails, a few times in a run; 0: none does.
    pub unreadable_once_in: u64,
}

/// What is drawn for disks, and was.
pub(super) struct Storage {
    pub(super) random: Prng,
    /// Redo logs are written into files that were used before.
    reuses_files: bool,
    /// Nodes that die may have lost their power.
    cuts_power: bool,
    /// The last life of each node that has.
    dark: BTreeMap<NodeId, Incarnation>,
    failed_at: Instant,
    full_until: BTreeMap<NodeId, Instant>,
    /// When the last read that a block has asked for is done.
    read_until: BTreeMap<(NodeId, BlockRef), Instant>,
    /// So many reads may still fail.
    reads_to_fail: u32,
    /// How often each node has had a new directory, and which of them are gone: what was asked of a former one is not done.
    directories: BTreeMap<NodeId, u64>,
    gone: BTreeMap<NodeId, Gone>,
    /// The last life of each node that has died with nothing of its log on its disk.
    logless: BTreeMap<NodeId, Incarnation>,
}

/// A directory that was removed under a process.
#[derive(Clone, Copy, Debug)]
struct Gone {
    life: Incarnation,
    /// The process has noticed it.
    is_noticed: bool,
}

/// As the runtime does it: a process looks so often whether its directory is there, and begins another one after this.
const LOOKS_EVERY_MS: u64 = 100;
const REST_MS: u64 = 1_000;

/// A node that cannot read its files ends, and tries again: none may be kept from ever coming back.
const READS_TO_FAIL: u32 = 3;

/// How many times longer than a good one a disk takes that is stuck.
const STUCK: u64 = 1_000_000;

impl Storage {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            random: Prng::new(!seed),
            reuses_files: Prng::new(seed.rotate_left(32)).chance(1, 2),
            cuts_power: Prng::new(seed.rotate_left(48)).chance(1, 2),
            dark: BTreeMap::new(),
            failed_at: Instant::ZERO,
            full_until: BTreeMap::new(),
            read_until: BTreeMap::new(),
            reads_to_fail: READS_TO_FAIL,
            directories: BTreeMap::new(),
            gone: BTreeMap::new(),
            logless: BTreeMap::new(),
        }
    }

    /// What this life has asked for, and is not done, never will be.
    fn is_dark(&self, node: NodeId, life: Incarnation) -> bool {
        self.dark.get(&node).is_some_and(|last| life <= *last)
    }
}

impl World {
    /// A process has died: it may be that its machine has lost its power, while others go on.
    pub(super) fn may_lose_power(&mut self, node: NodeId, life: Incarnation) {
        let mut random = Prng::new(self.digest ^ u64::from(life.get()) << 32);
        if self.storage.cuts_power && random.chance(1, 2) {
            self.lose_power(node, &mut random);
            self.stops.push((node, LOST_POWER.to_string()));
            self.tally.note("loss of power");
        }
    }

    /// A dead node's machine has no power: of what was not synced anything may be there.
    pub fn lose_power(&mut self, node: NodeId, random: &mut Prng) {
        let Some(life) = self.nodes.get(&node).map(SimNode::life) else { return };
        self.storage.dark.insert(node, life);
        self.disk(node).lose_power(random);
    }

    /// The same, and nothing is there that was not synced.
    pub fn lose_power_and_all_unsynced(&mut self, node: NodeId, random: &mut Prng) {
        self.disk(node).lose_power_and_all_unsynced(random);
        self.lose_power(node, random);
    }

    /// There is no room on a node's disk for so long, unless all is calm before.
    pub fn fill_disk(&mut self, node: NodeId, span: Duration) {
        self.tally.note("full disk");
        self.storage.full_until.insert(node, self.now.plus(span));
    }

    /// GONE-1: the directory of a node is removed, or gets another name; the process notices it when it looks, and after so many
    /// ms there is another one.
    pub fn lose_directory(&mut self, node: NodeId, ms: u64) {
        let Some(n) = self.nodes.get(&node).filter(|n| n.is_alive()) else { return };
        if !n.config.holds_data || self.storage.gone.contains_key(&node) {
            return;
        }
        let life = n.life();
        self.disk(node).replace();
        *self.storage.directories.entry(node).or_default() += 1;
        self.storage.gone.insert(node, Gone { life, is_noticed: false });
        let notices_ms = self.storage.random.below(LOOKS_EVERY_MS);
        let events = [(notices_ms, true), (notices_ms + REST_MS + ms, false)];
        for (after_ms, gone) in events {
            let news = Disturbance::Directory(node, life, gone);
            self.at(Duration::from_millis(after_ms), Event::Disturb(news));
        }
    }

    /// A process notices that its directory is gone, or begins another one.
    pub(crate) fn hear_of_directory(&mut self, node: NodeId, life: Incarnation, gone: bool) {
        let Some(known) = self.storage.gone.get_mut(&node).filter(|gone| gone.life == life) else {
            return;
        };
        if gone && std::mem::replace(&mut known.is_noticed, true) {
            return;
        }
        // GONE-4: nobody may write there what was meant for the former one.
        let have_heard =
            crate::checkers::ldms(self, node).iter().all(|ldm| ldm.has_heard_of_directory());
        if !gone && !have_heard {
            let news = Disturbance::Directory(node, life, false);
            return self.at(Duration::from_millis(LOOKS_EVERY_MS), Event::Disturb(news));
        }
        if !gone {
            self.storage.gone.remove(&node);
        }
        let ldms = self.nodes.get(&node).map_or(0, |n| n.config.ldm_instances);
        let blocks = (0..ldms).map(|i| BlockRef::ldm(node, i)).chain([BlockRef::control(node)]);
        for block in blocks {
            self.tell(node, block, &DirectoryRep { gone: u64::from(gone) });
        }
    }

    /// A new process makes the directory that it needs.
    pub(super) fn make_directory(&mut self, node: NodeId) {
        if self.storage.gone.remove(&node).is_some() {
            *self.storage.directories.entry(node).or_default() += 1;
        }
    }

    /// True if what a node has on disk cannot be found again.
    pub fn has_no_directory(&self, node: NodeId) -> bool {
        self.storage.gone.contains_key(&node)
    }

    /// A process dies: if it has no log, the next process of its node does not find one (GONE-5).
    pub(super) fn note_lost_log(&mut self, node: NodeId, life: Incarnation) {
        if has_no_log(self, node) {
            self.storage.logless.insert(node, life);
        }
    }

    /// True if this life has died with nothing of its log on its disk.
    pub(crate) fn has_lost_log(&self, node: NodeId, life: Incarnation) -> bool {
        self.storage.logless.get(&node) == Some(&life)
    }

    /// How many directories the node has lost, and how many were made in their place.
    pub(crate) fn directory(&self, node: NodeId) -> u64 {
        self.storage.directories.get(&node).copied().unwrap_or_default()
    }

    /// A read may fail.
    fn may_read_fail(&mut self) -> bool {
        let once_in = self.disk_ways.unreadable_once_in;
        let chosen = once_in > 0 && self.storage.random.chance(1, once_in);
        let fails = chosen && self.storage.reads_to_fail > 0;
        self.storage.reads_to_fail -= u32::from(fails);
        if fails {
            self.tally.note("failed read");
        }
        fails
    }

    /// A block wants something of its node's disk.
    pub(super) fn on_io_signal(&mut self, node: NodeId, signal: &Signal<'_>) {
        let Some(life) = self.nodes.get(&node).map(SimNode::life) else { return };
        let (least, most) = (2_000, 100_000);
        let (asked, least, most) = match signal.number() {
            Some(SignalNumber::IoWriteReq) => {
                let asked = signal.body::<IoWriteReq>();
                let code = self.write_to_disk(node, &asked, signal.payload());
                let syncs = asked.flags & WRITE_SYNC != 0;
                let sync_ns = if self.disk_ways.quick { 900_000 } else { 3_000_000 };
                let (least, most) = if syncs { (50_000, sync_ns) } else { (least, most) };
                (Asked::Write(asked, code), least, most)
            }
            Some(SignalNumber::IoReadReq) => (Asked::Read(signal.body()), least, most),
            Some(SignalNumber::IoListReq) => (Asked::List(signal.body()), least, most),
            Some(SignalNumber::IoRemoveReq) => (Asked::Remove(signal.body()), least, most),
            _ => return,
        };
        let of_control = signal.sender().kind() == Some(BlockKind::Control);
        let for_control = if of_control { self.disk_ways.control_slowness } else { 0 };
        let for_stuck = if self.disk_ways.stuck == Some(node) { STUCK } else { 0 };
        let slowness = self.disk_ways.slowness.max(for_control).max(for_stuck).max(1);
        let takes = Duration::from_nanos(self.storage.random.between(least, most) * slowness);
        let (mut done, to) = (self.now.plus(takes), signal.sender());
        if matches!(asked, Asked::Read(_)) {
            // They are answered in their order.
            let last = self.storage.read_until.entry((node, to)).or_default();
            done = done.max(last.plus(Duration::from_nanos(1)));
            *last = done;
        }
        let directory = self.directory(node);
        self.at_instant(done, Event::Disk { node, life, directory, to, asked });
    }

    /// Writes, unless there is no room; what is wrong, or 0.
    fn write_to_disk(&mut self, node: NodeId, asked: &IoWriteReq, bytes: &[u8]) -> u32 {
        let (ways, random) = (self.disk_ways, &mut self.storage.random);
        let fills = !self.calm && ways.full_once_in > 0 && random.chance(1, ways.full_once_in);
        let until = self.storage.full_until.entry(node).or_default();
        if fills {
            self.tally.note("full disk");
            *until = self.now.plus(Duration::from_millis(random.between(0, 1_000)));
        }
        if !self.calm && (fills || self.now < *until) {
            return IO_FULL;
        }
        if self.has_no_directory(node) {
            // Until somebody looks, that is no different.
            return 0;
        }
        self.disk(node).write(asked.file, asked.offset, bytes);
        0
    }

    pub(super) fn disk(&mut self, node: NodeId) -> &mut Disk {
        let (reuses, archives) = (self.storage.reuses_files, self.archives);
        self.disks.entry(node).or_insert_with(|| Disk::new(reuses, archives))
    }

    /// A node ends itself when its disk fails: as often as the cluster can lose it.
    fn may_disk_fail(&mut self, node: NodeId) -> bool {
        let (once_in, now) = (self.disk_ways.fails_once_in, self.now);
        let chosen = once_in > 0 && self.storage.random.chance(1, once_in);
        let rested = now.since(self.storage.failed_at) > Duration::from_millis(100);
        let fails = chosen && !self.calm && rested && self.can_lose(&[node]);
        if fails {
            self.storage.failed_at = now;
            self.tally.note("failed sync");
        }
        fails
    }

    pub(super) fn on_disk(
        &mut self,
        (node, life): (NodeId, Incarnation),
        directory: u64,
        to: BlockRef,
        asked: &Asked,
    ) {
        if self.storage.is_dark(node, life) {
            return;
        }
        let code = match self.is_gone(node, directory, asked) {
            true => IO_GONE,
            false => self.finish_on_disk(node, asked),
        };
        if self.nodes.get(&node).is_none_or(|n| !n.is_alive() || n.life() != life) {
            return;
        }
        let disk = self.disk(node);
        match *asked {
            Asked::Write(IoWriteReq { request, .. }, _)
            | Asked::Read(IoReadReq { request, .. })
            | Asked::List(IoListReq { request, .. })
            | Asked::Remove(IoRemoveReq { request, .. })
                if code != 0 =>
            {
                self.tell(node, to, &IoRef { request, code, reserved: 0 });
            }
            Asked::Write(IoWriteReq { request, .. }, _)
            | Asked::Remove(IoRemoveReq { request, .. }) => {
                self.tell(node, to, &IoConf { request });
            }
            Asked::Read(IoReadReq { request, file, offset, bytes, .. }) => {
                let Some(found) = disk.read_file(file) else {
                    let body = IoRef { request, code: IO_MISSING, reserved: 0 };
                    return self.tell(node, to, &body);
                };
                let (file_bytes, from) = (found.len() as u64, found.len().min(offset as usize));
                let end = found.len().min(from + bytes as usize);
                let part = found[from..end].to_vec();
                self.tell_with(node, to, &IoReadConf { request, file_bytes }, &part);
            }
            Asked::List(IoListReq { request, kind, instance, .. }) => {
                let numbers = disk.read(kind, instance).into_keys();
                let bytes: Vec<u8> = numbers.flat_map(u32::to_le_bytes).collect();
                self.tell_with(node, to, &IoListConf { request }, &bytes);
            }
        }
    }

    /// True if a process sees now that what it has done is not where it should be. It hears that first.
    fn is_gone(&mut self, node: NodeId, directory: u64, asked: &Asked) -> bool {
        let is_former = self.directory(node) != directory;
        let Some(gone) = self.storage.gone.get(&node).copied() else { return is_former };
        let looks = match asked {
            Asked::Write(asked, code) => asked.flags & WRITE_SYNC != 0 || *code != 0,
            _ => true,
        };
        if looks {
            self.hear_of_directory(node, gone.life, true);
        }
        looks || gone.is_noticed
    }

    /// What is done when the time that it takes is over; what is wrong, or 0.
    fn finish_on_disk(&mut self, node: NodeId, asked: &Asked) -> u32 {
        match asked {
            Asked::Write(asked, 0) if asked.flags & WRITE_SYNC != 0 => {
                let fails = self.may_disk_fail(node);
                let disk = self.disk(node);
                if fails {
                    disk.fail(asked.file.kind, asked.file.instance);
                    return IO_FAILED;
                }
                disk.sync(asked.file.kind, asked.file.instance);
                0
            }
            Asked::Write(_, code) => *code,
            Asked::Remove(asked) => {
                self.disk(node).remove(asked.file);
                0
            }
            Asked::Read(_) if self.may_read_fail() => IO_FAILED,
            Asked::Read(_) | Asked::List(_) => 0,
        }
    }
}
