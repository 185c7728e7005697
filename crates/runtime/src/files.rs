//! The files of some blocks. Segments of redo logs are written past the page cache, into files that were used before where
//! there are any: a sync has no news of the file system's to write then, and nothing is copied twice.

use crate::{
    blocks::{BLOCK_BYTES, BlockFile, is_full},
    ground::BeginsAnew,
    sequential::Sequential,
};
use lats_signals::io::{FILE_CONTROL, FILE_REDO, FileName, IoReadReq, IoWriteReq, WRITE_SYNC};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io::{Error, ErrorKind, Result},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

/// Where a node has its files.
#[derive(Clone)]
pub struct FilesConfig {
    /// The directory.
    pub directory: PathBuf,
    /// Files that nobody needs any more are put into [`TO_ARCHIVE`], for somebody who calls [`archived`] in the end.
    pub archives: bool,
    /// Begins the directory anew when it was gone (GONE-4).
    pub begins_anew: BeginsAnew,
}

impl std::fmt::Debug for FilesConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "files in {}", self.directory.display())
    }
}

/// The directory, within that of the node, of files that nobody needs any more and that are still to be archived.
pub const TO_ARCHIVE: &str = "to-archive";

/// The files of some blocks.
pub(crate) struct Files {
    pub(crate) directory: PathBuf,
    archives: bool,
    open: BTreeMap<FileName, BlockFile>,
    /// Written, or created, since the last sync.
    dirty: BTreeSet<FileName>,
    created: bool,
    /// A sync has failed that nobody waited for.
    has_failed: bool,
    /// A file that was synced has no name any more.
    has_lost_a_file: bool,
    /// The file that each block is reading, part by part, until it writes or removes one: by kind and instance.
    reading: BTreeMap<(u16, u16), (FileName, Sequential)>,
    pub(crate) buffer: Vec<u8>,
}

/// Files of an instance that nobody needs any more are kept for its next segments: so many, or as many as it has segments.
const SPARES_MIN: usize = 4;

impl Files {
    pub(crate) fn new(directory: &Path, archives: bool) -> Self {
        Self {
            directory: directory.to_path_buf(),
            archives,
            open: BTreeMap::new(),
            dirty: BTreeSet::new(),
            created: false,
            has_failed: false,
            has_lost_a_file: false,
            reading: BTreeMap::new(),
            buffer: Vec::new(),
        }
    }

    /// The directory is gone: nothing of what is open is in the next one.
    pub(crate) fn forget(&mut self) {
        *self = Self::new(&self.directory, self.archives);
    }

    /// True if a file that was synced since the last call cannot be found again.
    pub(crate) fn take_lost_file(&mut self) -> bool {
        std::mem::take(&mut self.has_lost_a_file)
    }

    pub(crate) fn path(&self, name: FileName) -> PathBuf {
        self.directory.join(file_name(name))
    }

    fn open(&mut self, name: FileName) -> Result<&mut BlockFile> {
        if !self.open.contains_key(&name) {
            // A block goes on with one file only.
            self.open.retain(|other, _| {
                self.dirty.contains(other)
                    || (other.kind, other.instance) != (name.kind, name.instance)
            });
            let path = self.path(name);
            if name.kind == FILE_REDO && !path.try_exists()? {
                self.use_a_spare(name.instance, &path)?;
            }
            let is_new = !path.try_exists()?;
            let file = BlockFile::open(&path, name.kind == FILE_REDO)?;
            self.created |= is_new;
            self.open.insert(name, file);
        }
        self.open.get_mut(&name).ok_or_else(|| Error::from(ErrorKind::NotFound))
    }

    /// Writes, and syncs if that is asked for. When there is no room, spare files go first.
    pub(crate) fn write(&mut self, asked: &IoWriteReq, bytes: &[u8]) -> Result<()> {
        self.reading.remove(&(asked.file.kind, asked.file.instance));
        let written = |files: &mut Self| files.open(asked.file)?.write(bytes, asked.offset);
        match written(self) {
            Err(error) if is_full(&error) && self.remove_spares()? => written(self)?,
            done => done?,
        }
        self.dirty.insert(asked.file);
        if asked.flags & WRITE_SYNC != 0 { self.sync(asked.file) } else { Ok(()) }
    }

    /// Nobody waits: the files that are written are lengthened. False if there is nothing to do.
    pub(crate) fn prepare(&mut self) -> bool {
        let mut prepared = self.open.values_mut().map(BlockFile::prepare);
        let prepared = prepared.find(|done| !matches!(done, Ok(false)));
        self.has_failed |= matches!(prepared, Some(Err(_)));
        matches!(prepared, Some(Ok(true)))
    }

    /// Syncs what was written to the files of a block.
    fn sync(&mut self, of: FileName) -> Result<()> {
        if self.has_failed {
            return Err(Error::other("a sync that nobody waited for has failed"));
        }
        let own = |name: &FileName| (name.kind, name.instance) == (of.kind, of.instance);
        for name in self.dirty.iter().filter(|name| own(name)) {
            if let Some(file) = self.open.get(name) {
                file.sync().map_err(unsafe_now)?;
                self.has_lost_a_file |= !file.has_a_name();
            }
        }
        self.dirty.retain(|name| !own(name));
        if self.created {
            self.sync_names()?;
            self.created = false;
        }
        Ok(())
    }

    fn sync_names(&self) -> Result<()> {
        File::open(&self.directory)?.sync_all().map_err(unsafe_now)
    }

    /// Reads into the buffer; gives the file's length.
    pub(crate) fn read(&mut self, asked: &IoReadReq) -> Result<u64> {
        let goes_on = |(name, _): &(FileName, Sequential)| *name == asked.file && asked.offset > 0;
        let of = (asked.file.kind, asked.file.instance);
        let mut file = match self.reading.remove(&of).filter(goes_on) {
            Some((_, file)) => file,
            None => Sequential::open(&self.path(asked.file))?,
        };
        file.read(asked.offset, asked.bytes as usize, &mut self.buffer)?;
        let length = file.file_bytes();
        if asked.offset + u64::from(asked.bytes) < length {
            self.reading.insert(of, (asked.file, file));
        }
        Ok(length)
    }

    pub(crate) fn list(&self, kind: u16, instance: u16) -> Result<BTreeSet<u32>> {
        let own = |n: &FileName| (n.kind, n.instance) == (kind, instance);
        let numbers = self.names()?.into_iter().filter_map(|name| parse_file_name(&name));
        Ok(numbers.filter(own).map(|n| n.number).collect())
    }

    fn names(&self) -> Result<Vec<String>> {
        let entries = fs::read_dir(&self.directory)?;
        entries.map(|entry| Ok(entry?.file_name().into_string().unwrap_or_default())).collect()
    }

    /// Removes a file, or keeps it as a spare, or leaves it to who archives it (ARCHIVE-1).
    pub(crate) fn remove(&mut self, name: FileName) -> Result<()> {
        self.reading.remove(&(name.kind, name.instance));
        self.open.remove(&name);
        self.dirty.remove(&name);
        let path = self.path(name);
        if self.archives {
            return fs::rename(&path, self.directory.join(TO_ARCHIVE).join(file_name(name)));
        }
        self.retire(name, &path)
    }

    fn retire(&mut self, name: FileName, path: &Path) -> Result<()> {
        if name.kind == FILE_REDO && self.wants_spare(name)? {
            match clear_head(path) {
                Ok(()) => return fs::rename(path, self.directory.join(spare_name(name))),
                // There may be no room for that, either.
                Err(error) if is_full(&error) || error.kind() == ErrorKind::NotFound => {}
                Err(_) => self.has_failed = true,
            }
        }
        fs::remove_file(path)
    }

    /// True if there are fewer spares than other segments; what there is too much of them goes.
    fn wants_spare(&self, removed: FileName) -> Result<bool> {
        let names = self.names()?;
        let FileName { kind, instance, .. } = removed;
        let others = names.iter().filter_map(|name| parse_file_name(name));
        let others = others.filter(|n| (n.kind, n.instance) == (kind, instance) && *n != removed);
        let most = others.count().max(SPARES_MIN);
        let spares = || names.iter().filter(|name| is_spare_of(name, instance));
        self.remove_these(spares().skip(most))?;
        Ok(spares().count() < most)
    }

    fn remove_these<'n>(&self, names: impl Iterator<Item = &'n String>) -> Result<()> {
        for name in names {
            match fs::remove_file(self.directory.join(name)) {
                // Another thread has been quicker.
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// A spare file, if there is one, gets this name, and has it for good before anything stands in it.
    fn use_a_spare(&self, instance: u16, path: &Path) -> Result<()> {
        let spare = self.names()?.into_iter().find(|name| is_spare_of(name, instance));
        match spare.map(|spare| fs::rename(self.directory.join(spare), path)) {
            Some(Ok(())) => self.sync_names(),
            // Another thread has removed it, for want of room.
            Some(Err(error)) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// True if there were any.
    fn remove_spares(&self) -> Result<bool> {
        let spares: Vec<_> = self.names()?.into_iter().filter(|name| is_spare(name)).collect();
        self.remove_these(spares.iter())?;
        Ok(!spares.is_empty())
    }
}

/// A file of [`TO_ARCHIVE`] has been archived: it may be used again, or goes.
///
/// # Errors
/// If it cannot be removed.
pub fn archived(directory: &Path, name: FileName) -> Result<()> {
    Files::new(directory, true).retire(name, &directory.join(TO_ARCHIVE).join(file_name(name)))
}

/// DURABLE-4: a sync that has failed, for want of room or whatever else, is never tried again.
fn unsafe_now(error: Error) -> Error {
    Error::other(error)
}

/// REDO-5: a spare file begins with zeros that are safe: whoever finds it under another name, after a loss of power, takes it for
/// one that was never begun.
fn clear_head(path: &Path) -> Result<()> {
    let file = File::options().write(true).open(path)?;
    file.write_all_at(&[0; BLOCK_BYTES], 0)?;
    file.sync_data()
}

/// What a segment is called that nobody needs any more, and the next one may have.
fn spare_name(FileName { instance, number, .. }: FileName) -> String {
    format!("spare-{instance}-{number:010}.log")
}

fn is_spare(name: &str) -> bool {
    name.starts_with("spare-")
}

fn is_spare_of(name: &str, instance: u16) -> bool {
    name.strip_prefix("spare-")
        .and_then(|rest| rest.split_once('-'))
        .is_some_and(|(of, rest)| of.parse() == Ok(instance) && rest.ends_with(".log"))
}

/// What a file is called in the node's directory.
pub fn file_name(name: FileName) -> String {
    let FileName { kind, instance, number } = name;
    match kind {
        FILE_CONTROL => format!("control-{number:010}.state"),
        FILE_REDO => format!("redo-{instance}-{number:010}.log"),
        kind => format!("file-{kind}-{instance}-{number:010}"),
    }
}

/// The file with this name, if it is one of ours.
pub fn parse_file_name(text: &str) -> Option<FileName> {
    let (stem, _) = text.rsplit_once('.')?;
    let mut parts = stem.split('-');
    let (kind, instance) = match parts.next()? {
        "control" => (FILE_CONTROL, 0),
        "redo" => (FILE_REDO, parts.next()?.parse().ok()?),
        _ => return None,
    };
    let name = FileName { kind, instance, number: parts.next()?.parse().ok()? };
    (file_name(name) == text).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_read_as_they_are_written() {
        for (kind, instance) in [(FILE_CONTROL, 0), (FILE_REDO, 0), (FILE_REDO, 12)] {
            let name = FileName { kind, instance, number: 4_000_000_000 };
            assert_eq!(parse_file_name(&file_name(name)), Some(name));
        }
        for other in ["lock", "redo-1.log", "redo-0-1.log", "control-0000000001.log", "x-1-2"] {
            assert_eq!(parse_file_name(other), None, "{other}");
        }
        let name = FileName { kind: FILE_REDO, instance: 12, number: 3 };
        assert!(is_spare_of(&spare_name(name), 12) && !is_spare_of(&spare_name(name), 1));
        assert_eq!(parse_file_name(&spare_name(name)), None);
    }

    fn in_directory(path: &Path, archives: bool) -> Files {
        Files::new(path, archives)
    }

    fn directory(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("lats-files-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        path
    }

    fn name(number: u32) -> FileName {
        FileName { kind: FILE_REDO, instance: 1, number }
    }

    fn write(number: u32, offset: u64, flags: u32) -> IoWriteReq {
        IoWriteReq { request: 1, file: name(number), offset, flags, waiting_kib: 0 }
    }

    #[test]
    fn what_is_written_is_read_and_listed_until_it_is_removed() {
        let path = directory("read");
        let mut files = in_directory(&path, false);
        files.write(&write(1, 0, 0), b"hello").unwrap();
        files.write(&write(1, 5, WRITE_SYNC), b" world").unwrap();
        files.write(&write(2, 0, WRITE_SYNC), b"!").unwrap();
        assert!(files.dirty.is_empty());
        let read = IoReadReq { request: 2, file: name(1), offset: 3, bytes: 4, reserved: 0 };
        assert!(files.read(&read).unwrap() >= 11);
        assert_eq!(files.buffer, b"lo w");
        files.read(&IoReadReq { offset: 9, ..read }).unwrap();
        assert_eq!(files.buffer[..2], *b"ld");
        assert!(files.buffer[2..].iter().all(|byte| *byte == 0), "nothing stands behind it");
        assert_eq!(files.list(FILE_REDO, 1).unwrap(), BTreeSet::from([1, 2]));
        assert_eq!(files.list(FILE_REDO, 0).unwrap(), BTreeSet::new());
        files.remove(name(1)).unwrap();
        assert_eq!(files.read(&read).unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(files.list(FILE_REDO, 1).unwrap(), BTreeSet::from([2]));
        assert_eq!(files.remove(name(1)).unwrap_err().kind(), ErrorKind::NotFound);
        fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn a_file_that_was_removed_is_missed_with_the_next_sync() {
        let path = directory("missed");
        let mut files = in_directory(&path, false);
        files.write(&write(1, 0, WRITE_SYNC), b"hello").unwrap();
        assert!(!files.take_lost_file());
        fs::remove_file(path.join(file_name(name(1)))).unwrap();
        files.write(&write(1, 5, WRITE_SYNC), b" world").unwrap();
        assert!(files.take_lost_file() && !files.take_lost_file());
        files.forget();
        files.write(&write(2, 0, WRITE_SYNC), b"anew").unwrap();
        assert!(!files.take_lost_file());
        fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn what_is_to_be_archived_waits_for_that() {
        let path = directory("archive");
        fs::create_dir(path.join(TO_ARCHIVE)).unwrap();
        let mut files = in_directory(&path, true);
        files.write(&write(1, 0, WRITE_SYNC), b"hello").unwrap();
        files.remove(name(1)).unwrap();
        let left = path.join(TO_ARCHIVE).join(file_name(name(1)));
        assert_eq!(fs::read(&left).unwrap()[..5], *b"hello");
        assert!(files.list(FILE_REDO, 1).unwrap().is_empty());
        files.write(&write(2, 0, WRITE_SYNC), b"other").unwrap();
        assert_eq!(fs::read(&left).unwrap()[..5], *b"hello", "nobody writes into it");
        archived(&path, name(1)).unwrap();
        assert!(!left.exists() && path.join(spare_name(name(1))).exists());
        let control = FileName { kind: FILE_CONTROL, instance: 0, number: 1 };
        files.write(&IoWriteReq { file: control, ..write(1, 0, WRITE_SYNC) }, b"state").unwrap();
        files.remove(control).unwrap();
        archived(&path, control).unwrap();
        assert_eq!(fs::read_dir(path.join(TO_ARCHIVE)).unwrap().count(), 0);
        fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn a_removed_segment_serves_again_but_its_head_is_gone() {
        let path = directory("spare");
        let mut files = in_directory(&path, false);
        files.write(&write(1, 0, WRITE_SYNC), &[7; 3 * BLOCK_BYTES]).unwrap();
        for number in 2..12 {
            files.write(&write(number, 0, WRITE_SYNC), b"!").unwrap();
        }
        files.remove(name(1)).unwrap();
        let spare = path.join(spare_name(name(1)));
        assert_eq!(fs::read(&spare).unwrap()[..BLOCK_BYTES], [0; BLOCK_BYTES]);
        files.write(&write(12, 0, 0), b"new").unwrap();
        assert!(!spare.exists());
        let bytes = fs::read(path.join(file_name(name(12)))).unwrap();
        assert_eq!((&bytes[..4], bytes.len()), (&b"new\0"[..], 3 * BLOCK_BYTES));
        for number in 2..12 {
            files.remove(name(number)).unwrap();
        }
        let kept = files.names().unwrap().iter().filter(|name| is_spare(name)).count();
        assert_eq!(kept, SPARES_MIN, "one segment is left");
        assert!(files.remove_spares().unwrap() && !files.remove_spares().unwrap());
        files.has_failed = true;
        files.write(&write(12, 3, 0), b"er").unwrap();
        files.write(&write(12, 5, WRITE_SYNC), b"!").unwrap_err();
        fs::remove_dir_all(path).unwrap();
    }
}
