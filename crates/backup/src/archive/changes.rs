//! What has become of rows since a backup, from the logs of an archive: of each key its last change (ARCHIVE-4).

use super::{Archive, log_reader::LogReader};
use crate::BackupError;
use lats_base::{TableId, hash};
use lats_files::redo::{Change, Record, Span, void_after};
use std::collections::BTreeMap;

/// The keys that are restored at once: those whose hash leaves this remainder. As many as fit into memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pass {
    modulus: u64,
    remainder: u64,
}

impl Pass {
    fn takes(&self, key: &[u8]) -> bool {
        hash::partition_hash(key) % self.modulus == self.remainder
    }
}

/// Passes that are still to be done.
#[derive(Debug)]
pub(crate) struct Passes(Vec<Pass>);

impl Passes {
    pub(crate) fn new() -> Self {
        Self(vec![Pass { modulus: 1, remainder: 0 }])
    }

    /// Half of its keys are left for another pass.
    fn halve(&mut self, Pass { modulus, remainder }: Pass) -> Pass {
        self.0.push(Pass { modulus: 2 * modulus, remainder: remainder + modulus });
        Pass { modulus: 2 * modulus, remainder }
    }
}

/// The last change of a key, by its number within the key's fragment, and the row; none: it is deleted.
struct Last {
    number: u64,
    image: Option<Box<[u8]>>,
}

/// The last changes of the keys of a pass.
pub(crate) struct Changes {
    pass: Pass,
    by_key: BTreeMap<(TableId, Box<[u8]>), Last>,
    bytes: usize,
}

/// What an entry needs beside key and image, about.
const ENTRY_BYTES: usize = 128;

impl Changes {
    /// Reads the logs of these epochs, for some tables. If there is more than `bytes_max` the pass becomes smaller. None: all passes
    /// are done.
    pub(crate) fn read(
        archive: &Archive,
        (wanted, is_wanted): (Span, impl Fn(TableId) -> bool),
        passes: &mut Passes,
        bytes_max: usize,
    ) -> Result<Option<Self>, BackupError> {
        let Some(pass) = passes.0.pop() else { return Ok(None) };
        let mut changes = Self { pass, by_key: BTreeMap::new(), bytes: 0 };
        let tellers = archive.tellers(wanted);
        for segment in &archive.segments {
            let (first, last) = segment.epochs;
            let is_between = last > wanted.after && first <= wanted.upto;
            if !is_between || !tellers.contains(&(segment.node, segment.instance)) {
                continue;
            }
            let reader = LogReader::open(&segment.path);
            let mut reader = reader.map_err(BackupError::file(&segment.path))?;
            let show = |record: &Record<'_>, restarts| {
                let upto = wanted.upto.min(void_after(&archive.restored, restarts));
                if record.tells_of_change() && record.epoch > wanted.after && record.epoch <= upto {
                    record.changes().filter(|c| is_wanted(c.table)).for_each(|c| changes.note(&c));
                    changes.shrink(passes, bytes_max);
                }
            };
            let read = reader.read_all(show).map_err(BackupError::file(&segment.path))?;
            if read.is_err() || reader.at() < segment.bytes {
                let why = "it was damaged, or used again, while it was being read; if it is a file of a running node, name its archive instead";
                return Err(BackupError::damaged(&segment.path, why));
            }
        }
        Ok(Some(changes))
    }

    /// What does not fit is left for another pass.
    fn shrink(&mut self, passes: &mut Passes, bytes_max: usize) {
        while self.bytes > bytes_max && self.by_key.len() > 1 {
            self.pass = passes.halve(self.pass);
            let (pass, mut bytes) = (self.pass, 0);
            self.by_key.retain(|(_, key), last| {
                let takes = pass.takes(key);
                bytes += if takes { bytes_of(key, last.image.as_deref()) } else { 0 };
                takes
            });
            self.bytes = bytes;
        }
    }

    fn note(&mut self, change: &Change<'_>) {
        if !self.pass.takes(change.key) {
            return;
        }
        let place = (change.table, change.key.into());
        let former = self.by_key.get(&place);
        if former.is_some_and(|last| last.number > change.number) {
            return;
        }
        self.bytes -= former.map_or(0, |last| bytes_of(change.key, last.image.as_deref()));
        self.bytes += bytes_of(change.key, change.image);
        let last = Last { number: change.number, image: change.image.map(Into::into) };
        self.by_key.insert(place, last);
    }

    /// True if the row of a backup is as it was, and its turn is now.
    pub(crate) fn leaves(&self, table: TableId, key: &[u8]) -> bool {
        self.pass.takes(key) && !self.by_key.contains_key(&(table, key.into()))
    }

    /// The rows that were changed, and are there.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (TableId, &[u8])> {
        let images = self.by_key.iter().map(|((table, _), last)| (*table, &last.image));
        images.filter_map(|(table, image)| Some((table, image.as_deref()?)))
    }
}

fn bytes_of(key: &[u8], image: Option<&[u8]>) -> usize {
    ENTRY_BYTES + key.len() + image.map_or(0, <[u8]>::len)
}
