//! Files: threads that read, write and sync in the place of blocks, which never wait for a disk.
//!
//! Each block's requests are done by one thread, in their order. There are few of them: a block has one write or read
//! under way, and some removals.

use crate::{
    doorbell::Doorbell,
    thread::{Homes, News},
};
use lats_base::NodeId;
use lats_signals::{
    BlockKind, BlockRef, Body, Signal, SignalBuffer, SignalNumber,
    buffer::Route,
    io::{
        FILE_CONTROL, FILE_REDO, FileName, IO_FAILED, IO_FULL, IO_MISSING, IoConf, IoListConf,
        IoListReq, IoReadConf, IoReadReq, IoRef, IoRemoveReq, IoWriteReq, WRITE_SYNC,
    },
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io::{Error, ErrorKind, Result},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, PoisonError},
};

/// What waits for one of these threads.
#[derive(Default)]
pub(crate) struct Io {
    waiting: Mutex<SignalBuffer>,
    filled: Condvar,
}

/// Whom answers go to.
pub(crate) struct Answers {
    pub(crate) node: NodeId,
    pub(crate) life: u32,
    pub(crate) homes: Arc<Homes>,
    pub(crate) news: Arc<[News]>,
    pub(crate) bells: Vec<Arc<Doorbell>>,
}

/// The thread that does a block's requests, of so many.
pub(crate) fn thread_of(block: BlockRef, threads: usize) -> usize {
    let others = usize::from(block.kind() == Some(BlockKind::Ldm));
    (block.instance as usize + others) % threads.max(1)
}

impl Io {
    pub(crate) fn ask(&self, signal: &Signal<'_>) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push_signal(signal);
        self.filled.notify_one();
    }

    fn wait(&self, taken: &mut SignalBuffer) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        while waiting.is_empty() {
            waiting = self.filled.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        core::mem::swap(&mut *waiting, taken);
    }

    /// Does what is asked for, for ever.
    pub(crate) fn run(&self, mut files: Files, answers: &Answers) {
        let mut taken = SignalBuffer::new();
        loop {
            self.wait(&mut taken);
            while let Some(signal) = taken.pop() {
                files.serve(&signal, answers);
            }
            taken.compact();
        }
    }
}

impl Answers {
    fn send<B: Body>(&self, to: BlockRef, body: &B, payload: &[u8]) {
        let Some(kind) = to.kind() else { return };
        let Some(thread) = self.homes.thread_of(kind, to.instance) else { return };
        let sender = BlockRef::io(self.node);
        let mut answer = SignalBuffer::new();
        answer.push(Route { sender, receiver: to, incarnation: self.life }, body, &[payload]);
        if let Some(answer) = answer.pop() {
            self.news[thread].signal(&answer);
            self.bells[thread].ring();
        }
    }

    fn refuse(&self, to: BlockRef, request: u64, error: &Error) {
        let code = match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => IO_FULL,
            ErrorKind::NotFound => IO_MISSING,
            _ => IO_FAILED,
        };
        self.send(to, &IoRef { request, code, reserved: 0 }, &[]);
    }
}

/// The files of some blocks.
pub(crate) struct Files {
    directory: PathBuf,
    open: BTreeMap<FileName, File>,
    /// Written, or created, since the last sync.
    dirty: BTreeSet<FileName>,
    created: bool,
    /// The last write found no room.
    is_full: bool,
    buffer: Vec<u8>,
}

impl Files {
    pub(crate) fn new(directory: &Path) -> Self {
        Self {
            directory: directory.to_path_buf(),
            open: BTreeMap::new(),
            dirty: BTreeSet::new(),
            created: false,
            is_full: false,
            buffer: Vec::new(),
        }
    }

    fn serve(&mut self, signal: &Signal<'_>, answers: &Answers) {
        let to = signal.sender();
        match signal.number() {
            Some(SignalNumber::IoWriteReq) => {
                let asked = signal.body::<IoWriteReq>();
                let request = asked.request;
                match self.write(&asked, signal.payload()) {
                    Ok(()) => {
                        self.is_full = false;
                        answers.send(to, &IoConf { request }, &[]);
                    }
                    Err(error) => {
                        self.tell(asked.file, &error);
                        answers.refuse(to, request, &error);
                    }
                }
            }
            Some(SignalNumber::IoReadReq) => {
                let asked = signal.body::<IoReadReq>();
                let request = asked.request;
                match self.read(&asked) {
                    Ok(file_bytes) => {
                        answers.send(to, &IoReadConf { request, file_bytes }, &self.buffer);
                    }
                    Err(error) => {
                        self.tell_unread(&self.path(asked.file), &error);
                        answers.refuse(to, request, &error);
                    }
                }
            }
            Some(SignalNumber::IoListReq) => {
                let asked = signal.body::<IoListReq>();
                match self.list(asked.kind, asked.instance) {
                    Ok(numbers) => {
                        let bytes: Vec<u8> =
                            numbers.into_iter().flat_map(u32::to_le_bytes).collect();
                        answers.send(to, &IoListConf { request: asked.request }, &bytes);
                    }
                    Err(error) => {
                        self.tell_unread(&self.directory, &error);
                        answers.refuse(to, asked.request, &error);
                    }
                }
            }
            Some(SignalNumber::IoRemoveReq) => {
                let asked = signal.body::<IoRemoveReq>();
                self.open.remove(&asked.file);
                self.dirty.remove(&asked.file);
                match fs::remove_file(self.path(asked.file)) {
                    Ok(()) => answers.send(to, &IoConf { request: asked.request }, &[]),
                    Err(error) => {
                        if error.kind() != ErrorKind::NotFound {
                            let path = self.path(asked.file);
                            tracing::warn!(%error, "cannot remove {}, which nobody needs any more", path.display());
                        }
                        answers.refuse(to, asked.request, &error);
                    }
                }
            }
            _ => {}
        }
    }

    fn tell_unread(&self, path: &Path, error: &Error) {
        tracing::error!(%error, "cannot read {}", path.display());
    }

    /// A full disk is asked again and again, and told of once.
    fn tell(&mut self, file: FileName, error: &Error) {
        let path = self.path(file);
        match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded if self.is_full => {}
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                self.is_full = true;
                tracing::warn!(
                    "the disk of {} is full: changes are refused when what waits for it is too much; make room",
                    path.display()
                );
            }
            _ => tracing::error!(%error, "cannot write {}", path.display()),
        }
    }

    fn path(&self, name: FileName) -> PathBuf {
        self.directory.join(file_name(name))
    }

    fn open(&mut self, name: FileName) -> Result<&File> {
        if !self.open.contains_key(&name) {
            // A block goes on with one file only.
            self.open.retain(|other, _| {
                self.dirty.contains(other)
                    || (other.kind, other.instance) != (name.kind, name.instance)
            });
            let path = self.directory.join(file_name(name));
            let mut options = File::options();
            let file = options.read(true).write(true).create(true).truncate(false).open(path)?;
            self.created = true;
            self.open.insert(name, file);
        }
        self.open.get(&name).ok_or_else(|| Error::from(ErrorKind::NotFound))
    }

    fn write(&mut self, asked: &IoWriteReq, bytes: &[u8]) -> Result<()> {
        self.open(asked.file)?.write_all_at(bytes, asked.offset)?;
        self.dirty.insert(asked.file);
        if asked.flags & WRITE_SYNC == 0 {
            return Ok(());
        }
        let (kind, instance) = (asked.file.kind, asked.file.instance);
        let own = |name: &FileName| (name.kind, name.instance) == (kind, instance);
        for name in self.dirty.iter().filter(|name| own(name)) {
            if let Some(file) = self.open.get(name) {
                file.sync_data().map_err(unsafe_now)?;
            }
        }
        self.dirty.retain(|name| !own(name));
        if self.created {
            File::open(&self.directory)?.sync_all().map_err(unsafe_now)?;
            self.created = false;
        }
        Ok(())
    }

    /// Reads into the buffer; gives the file's length.
    fn read(&mut self, asked: &IoReadReq) -> Result<u64> {
        let file = File::open(self.path(asked.file))?;
        if asked.offset == 0 {
            // A process that has died may have written it a moment ago: who reads it counts on it.
            file.sync_data()?;
        }
        let length = file.metadata()?.len();
        let bytes = length.saturating_sub(asked.offset).min(u64::from(asked.bytes));
        self.buffer.resize(bytes as usize, 0);
        file.read_exact_at(&mut self.buffer, asked.offset)?;
        Ok(length)
    }

    fn list(&self, kind: u16, instance: u16) -> Result<BTreeSet<u32>> {
        let mut numbers = BTreeSet::new();
        for entry in fs::read_dir(&self.directory)? {
            let name = entry?.file_name();
            let parsed = name.to_str().and_then(parse_file_name);
            let own = parsed.filter(|n| (n.kind, n.instance) == (kind, instance));
            numbers.extend(own.map(|n| n.number));
        }
        Ok(numbers)
    }
}

/// DURABLE-4: a sync that has failed, for want of room or whatever else, is never tried again.
fn unsafe_now(error: Error) -> Error {
    Error::other(error)
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
    }

    fn directory(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("lats-io-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        path
    }

    fn write(number: u32, offset: u64, flags: u32) -> IoWriteReq {
        let file = FileName { kind: FILE_REDO, instance: 1, number };
        IoWriteReq { request: 1, file, offset, flags, reserved: 0 }
    }

    #[test]
    fn what_is_written_is_read_and_listed_until_it_is_removed() {
        let path = directory("read");
        let mut files = Files::new(&path);
        files.write(&write(1, 0, 0), b"hello").unwrap();
        files.write(&write(1, 5, WRITE_SYNC), b" world").unwrap();
        files.write(&write(2, 0, WRITE_SYNC), b"!").unwrap();
        assert!(files.dirty.is_empty());
        let file = FileName { kind: FILE_REDO, instance: 1, number: 1 };
        let read = IoReadReq { request: 2, file, offset: 3, bytes: 4, reserved: 0 };
        assert_eq!(files.read(&read).unwrap(), 11);
        assert_eq!(files.buffer, b"lo w");
        assert_eq!(files.read(&IoReadReq { offset: 9, ..read }).unwrap(), 11);
        assert_eq!(files.buffer, b"ld");
        assert_eq!(files.list(FILE_REDO, 1).unwrap(), BTreeSet::from([1, 2]));
        assert_eq!(files.list(FILE_REDO, 0).unwrap(), BTreeSet::new());
        fs::remove_file(files.path(file)).unwrap();
        assert_eq!(files.read(&read).unwrap_err().kind(), ErrorKind::NotFound);
        fs::remove_dir_all(path).unwrap();
    }
}
