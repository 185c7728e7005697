//! Disks of simulated nodes: what was written is safe when it was synced; of the rest a loss of power leaves what it
//! likes.

use lats_base::prng::Prng;
use lats_signals::io::{FILE_REDO, FileName};
use std::collections::BTreeMap;

/// The disk of a node. It outlives the node's processes.
#[derive(Clone, Debug, Default)]
pub struct Disk {
    files: BTreeMap<FileName, File>,
    /// Removed, as far as processes can see.
    removed: BTreeMap<FileName, File>,
    /// New redo logs are written into files that were removed, where there are any.
    reuses: bool,
    /// Such files, of each instance.
    spares: BTreeMap<u16, Vec<File>>,
    /// Redo logs are archived before they are removed: what was in them, of each instance.
    archives: bool,
    archived: BTreeMap<u16, Vec<Vec<u8>>>,
    /// Something in a redo log is another now than what was written.
    pub has_rotted: bool,
}

#[derive(Clone, Debug, Default)]
struct File {
    durable: Vec<u8>,
    /// Written since, in order: where, and what.
    unsynced: Vec<(usize, Vec<u8>)>,
}

/// A device writes so many bytes as a whole, or not at all.
const SECTOR: usize = 512;

impl Disk {
    /// An empty disk; `reuses`: new redo logs are written into files that were removed, as the runtime does it; `archives`: what
    /// was in them is kept.
    pub fn new(reuses: bool, archives: bool) -> Self {
        Self { reuses, archives, ..Self::default() }
    }

    /// Writes into a file.
    pub fn write(&mut self, file: FileName, offset: u64, bytes: &[u8]) {
        if !self.files.contains_key(&file) {
            let spare = self.spares.get_mut(&file.instance).filter(|_| file.kind == FILE_REDO);
            self.files.insert(file, spare.and_then(Vec::pop).unwrap_or_default());
        }
        if let Some(file) = self.files.get_mut(&file) {
            file.unsynced.push((offset as usize, bytes.to_vec()));
        }
    }

    /// Makes safe what was written to the files of one block.
    pub fn sync(&mut self, kind: u16, instance: u16) {
        let own = |name: &FileName| (name.kind, name.instance) == (kind, instance);
        self.files.iter_mut().filter(|(name, _)| own(name)).for_each(|(_, file)| file.sync());
    }

    /// Removes a file; a loss of power may bring it back. REDO-5: it may be kept as a spare: without its head, which is safe before its
    /// name goes.
    pub fn remove(&mut self, file: FileName) {
        let Some(mut removed) = self.files.remove(&file) else { return };
        if self.archives && file.kind == FILE_REDO {
            self.archived.entry(file.instance).or_default().push(removed.whole());
        }
        if self.reuses && file.kind == FILE_REDO {
            removed.sync();
            put(&mut removed.durable, 0, &[0; SECTOR]);
            self.spares.entry(file.instance).or_default().push(removed.clone());
        }
        self.removed.insert(file, removed);
    }

    /// What is in a file; from now on that is safe.
    pub fn read_file(&mut self, name: FileName) -> Option<&[u8]> {
        let file = self.files.get_mut(&name)?;
        file.sync();
        Some(&file.durable)
    }

    /// The device or its driver drops what was not synced, and says so only once.
    pub fn fail(&mut self, kind: u16, instance: u16) {
        let own = |name: &FileName| (name.kind, name.instance) == (kind, instance);
        let files = self.files.iter_mut().filter(|(name, _)| own(name));
        files.for_each(|(_, file)| file.unsynced.clear());
    }

    /// What was not synced was only in a cache of the device, and is gone when its power is.
    pub fn forget_unsynced(&mut self) {
        self.files.values_mut().for_each(|file| file.unsynced.clear());
    }

    /// Power is lost: each write that was not synced is there, is not there, or is there in parts, whatever came before or
    /// after it.
    pub fn lose_power(&mut self, random: &mut Prng) {
        self.archive_what_is_not_safe(random);
        for (name, file) in std::mem::take(&mut self.removed) {
            if random.chance(1, 2) {
                self.files.entry(name).or_insert(file);
            }
        }
        for file in self.files.values_mut() {
            for (offset, bytes) in std::mem::take(&mut file.unsynced) {
                match random.below(3) {
                    0 => {}
                    1 => put(&mut file.durable, offset, &bytes),
                    _ => tear(&mut file.durable, offset, &bytes, random),
                }
            }
        }
    }

    /// The power goes, and nothing is there that was not synced.
    pub fn lose_power_and_all_unsynced(&mut self, random: &mut Prng) {
        self.files.values_mut().for_each(|file| file.unsynced.clear());
        self.lose_power(random);
    }

    /// ARCHIVE-2: what was written is archived, it may be before it is safe here.
    fn archive_what_is_not_safe(&mut self, random: &mut Prng) {
        if !self.archives {
            return;
        }
        for (name, file) in self.files.iter().filter(|(name, _)| name.kind == FILE_REDO) {
            if !file.unsynced.is_empty() && random.chance(1, 2) {
                self.archived.entry(name.instance).or_default().push(file.whole());
            }
        }
    }

    /// Another disk takes its place, with nothing on it. What was archived is somewhere else.
    pub fn replace(&mut self) {
        for (name, file) in std::mem::take(&mut self.files) {
            if self.archives && name.kind == FILE_REDO {
                self.archived.entry(name.instance).or_default().push(file.whole());
            }
        }
        self.removed.clear();
        self.spares.clear();
    }

    /// A bit somewhere in a file of one kind and instance is another one now; false if there is none.
    pub fn rot(&mut self, kind: u16, instance: u16, random: &mut Prng) -> bool {
        let own = |name: &FileName| (name.kind, name.instance) == (kind, instance);
        let files = self.files.iter_mut().filter(|(name, _)| own(name)).map(|(_, file)| file);
        let mut files: Vec<&mut File> = files.filter(|file| !file.durable.is_empty()).collect();
        if files.is_empty() {
            return false;
        }
        let file = files.swap_remove(random.below(files.len() as u64) as usize);
        let at = random.below(file.durable.len() as u64) as usize;
        file.durable[at] ^= 1 << random.below(8);
        self.has_rotted |= kind == FILE_REDO;
        true
    }

    /// All files of an instance's redo log are gone; false if there is none.
    pub fn lose_log(&mut self, instance: u16) -> bool {
        let before = self.files.len();
        let is_other = |name: &FileName| (name.kind, name.instance) != (FILE_REDO, instance);
        self.removed.retain(|name, _| is_other(name));
        self.files.retain(|name, _| is_other(name));
        let lost = self.files.len() < before;
        self.has_rotted |= lost;
        lost
    }

    /// What is in the files of one kind and instance, in the order of their numbers.
    pub fn read(&self, kind: u16, instance: u16) -> BTreeMap<u32, Vec<u8>> {
        let own = |name: &FileName| (name.kind, name.instance) == (kind, instance);
        let files = self.files.iter().filter(|(name, _)| own(name));
        files.map(|(name, file)| (name.number, file.whole())).collect()
    }

    /// What is in the redo logs of an instance, and was in those that were removed, in no order.
    pub fn archived(&self, instance: u16) -> Vec<Vec<u8>> {
        let removed = self.archived.get(&instance).into_iter().flatten().cloned();
        removed.chain(self.read(FILE_REDO, instance).into_values()).collect()
    }
}

impl File {
    fn whole(&self) -> Vec<u8> {
        let mut bytes = self.durable.clone();
        self.unsynced.iter().for_each(|(offset, part)| put(&mut bytes, *offset, part));
        bytes
    }

    fn sync(&mut self) {
        for (offset, bytes) in std::mem::take(&mut self.unsynced) {
            put(&mut self.durable, offset, &bytes);
        }
    }
}

fn put(file: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    let end = offset + bytes.len();
    if file.len() < end {
        file.resize(end, 0);
    }
    file[offset..end].copy_from_slice(bytes);
}

/// Some sectors of a write.
fn tear(file: &mut Vec<u8>, offset: usize, bytes: &[u8], random: &mut Prng) {
    let mut at = 0;
    while at < bytes.len() {
        let end = ((offset + at) / SECTOR + 1) * SECTOR - offset;
        let end = end.min(bytes.len());
        if random.chance(1, 2) {
            put(file, offset + at, &bytes[at..end]);
        }
        at = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_synced_survives_and_the_rest_may_not() {
        let name = FileName { kind: 1, instance: 0, number: 1 };
        let (mut lost, mut kept, mut torn) = (0, 0, 0);
        for seed in 0..200 {
            let mut disk = Disk::default();
            disk.write(name, 0, &[1; 1_000]);
            disk.sync(1, 0);
            disk.write(name, 1_000, &[2; 2_000]);
            assert_eq!(disk.read(1, 0)[&1].len(), 3_000, "a process reads what it has written");
            disk.lose_power(&mut Prng::new(seed));
            let file = &disk.read(1, 0)[&1];
            assert_eq!(file[..1_000], [1; 1_000]);
            let twos = file.iter().filter(|b| **b == 2).count();
            match twos {
                0 => lost += 1,
                2_000 => kept += 1,
                _ => torn += 1,
            }
        }
        assert!(lost > 20 && kept > 20 && torn > 20, "{lost} {kept} {torn}");
    }
}
