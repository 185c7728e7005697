//! Files: threads that read, write and sync in the place of blocks, which never wait for a disk.
//!
//! Each block's requests are done by one thread, in their order. There are few of them: a block has one write or read
//! under way, and some removals.

use crate::{
    blocks::is_full,
    clock,
    disk::{Disk, DiskFigures},
    doorbell::Doorbell,
    files::{Files, FilesConfig},
    ground::{Found, Ground, is_gone, is_missing},
    thread::{Homes, News},
};
use lats_base::{Duration, Instant, NodeId};
use lats_signals::{
    BlockKind, BlockRef, Body, Signal, SignalBuffer, SignalNumber,
    buffer::Route,
    io::{
        DirectoryRep, IO_FAILED, IO_FULL, IO_GONE, IO_MISSING, IoConf, IoListConf, IoListReq,
        IoReadConf, IoReadReq, IoRef, IoRemoveReq, IoWriteReq, WRITE_ANEW, WRITE_SYNC,
    },
};
use std::{
    io::{Error, ErrorKind},
    path::Path,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
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
    /// The blocks that this thread serves, and all such threads.
    pub(crate) blocks: Vec<BlockRef>,
    pub(crate) threads: Arc<[Arc<Io>]>,
}

/// The thread that does a block's requests, of so many.
pub(crate) fn thread_of(block: BlockRef, threads: usize) -> usize {
    let others = usize::from(block.kind() == Some(BlockKind::Ldm));
    (block.instance as usize + others) % threads.max(1)
}

impl Io {
    pub(crate) fn ask(&self, signal: &Signal<'_>) {
        self.waiting().push_signal(signal);
        self.filled.notify_one();
    }

    fn waiting(&self) -> MutexGuard<'_, SignalBuffer> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes all of these requests, mostly without a copy; the buffer that it leaves is empty.
    pub(crate) fn ask_all(&self, requests: &mut SignalBuffer) {
        let mut waiting = self.waiting();
        if waiting.is_empty() {
            core::mem::swap(&mut *waiting, requests);
        }
        while let Some(signal) = requests.pop() {
            waiting.push_signal(&signal);
        }
        requests.compact();
        // Who wakes up would wait for it.
        drop(waiting);
        self.filled.notify_one();
    }

    /// Waits for requests, or until the ground has another age; the first thread no longer than until it has to look.
    fn wait(&self, taken: &mut SignalBuffer, served: &Served) {
        let mut waiting = self.waiting();
        while waiting.is_empty() && served.ground.age() == served.age {
            if served.number == 0 {
                let span = std::time::Duration::from_millis(LOOKS_EVERY_MS);
                let waited = self.filled.wait_timeout(waiting, span);
                waiting = waited.unwrap_or_else(PoisonError::into_inner).0;
                break;
            }
            waiting = self.filled.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        core::mem::swap(&mut *waiting, taken);
    }

    /// The thread looks whether the ground is what it was.
    fn wake(&self) {
        // Whoever is about to wait has looked before, or hears of it.
        drop(self.waiting());
        self.filled.notify_one();
    }

    /// Does what is asked for, for ever.
    pub(crate) fn run(&self, mut served: Served, answers: &Answers) {
        let mut taken = SignalBuffer::new();
        loop {
            self.wait(&mut taken, &served);
            served.look(answers);
            while let Some(signal) = taken.pop() {
                served.serve(&signal, answers);
            }
            taken.compact();
            while self.is_idle() && served.files.prepare() {}
        }
    }

    fn is_idle(&self) -> bool {
        self.waiting().is_empty()
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
        self.refuse_with(to, request, code);
    }

    fn refuse_with(&self, to: BlockRef, request: u64, code: u32) {
        self.send(to, &IoRef { request, code, reserved: 0 }, &[]);
    }
}

/// Where a node's files are, as its file threads share it.
#[derive(Clone)]
pub(crate) struct Shared {
    ground: Arc<Ground>,
    disk: Arc<Disk>,
}

impl Shared {
    pub(crate) fn new(files: &FilesConfig, threads: usize) -> Self {
        let ground = Ground::new(&files.directory, files.begins_anew.clone(), threads);
        Self { ground: Arc::new(ground), disk: Arc::default() }
    }

    /// How the disk is, for a person.
    pub(crate) fn figures(&self) -> DiskFigures {
        self.disk.figures(self.ground.directory(), self.ground.why_gone())
    }
}

/// A thread's files, and what it has told of them.
pub(crate) struct Served {
    number: usize,
    files: Files,
    ground: Arc<Ground>,
    disk: Arc<Disk>,
    /// The age of the ground that blocks were told of.
    age: u64,
    /// When a write found no room last, and when that was told of.
    full_at: Instant,
    full_told_at: Option<Instant>,
    has_told: bool,
    measured_at: Option<Instant>,
}

/// The first thread looks so often whether the directory is there: a node at rest writes nothing.
const LOOKS_EVERY_MS: u64 = 100;
/// And so often how much room there is.
const MEASURES_EVERY: Duration = Duration::from_millis(1_000);
/// A disk that is full again and again is told of so often.
const FULL_TOLD_EVERY: Duration = Duration::from_millis(10_000);
/// Room that is not used up at once is told of.
const ROOM_LASTS: Duration = Duration::from_millis(1_000);
/// A write is done so often again when its directory was away meanwhile.
const WRITES_AGAIN: usize = 3;

impl Served {
    pub(crate) fn new(number: usize, files: &FilesConfig, shared: &Shared) -> Self {
        Self {
            number,
            files: Files::new(&files.directory, files.archives),
            ground: shared.ground.clone(),
            disk: shared.disk.clone(),
            age: shared.ground.age(),
            full_at: Instant::ZERO,
            full_told_at: None,
            has_told: false,
            measured_at: None,
        }
    }

    /// GONE-1: the first thread looks whether the directory is there, and begins a new one when it can.
    fn look(&mut self, answers: &Answers) {
        if self.number == 0 {
            self.ground.look();
            self.ground.begin_anew(clock::now());
            let now = clock::now();
            if self.measured_at.is_none_or(|at| now.since(at) >= MEASURES_EVERY) {
                self.measured_at = Some(now);
                self.disk.measure(&self.files.directory);
            }
        }
        self.hear(answers);
    }

    /// GONE-2: the blocks hear that the directory is gone, or that there is another one, before anything else that this thread says.
    fn hear(&mut self, answers: &Answers) {
        while self.ground.age() != self.age {
            // Whoever was told that it is gone is told that there is one again.
            self.age += 1;
            self.files.forget();
            let gone = is_gone(self.age);
            if gone {
                self.disk.lost(&answers.blocks);
            }
            for block in &answers.blocks {
                answers.send(*block, &DirectoryRep { gone: u64::from(gone) }, &[]);
            }
            self.ground.hear(self.number, self.age);
            answers.threads.iter().for_each(|other| other.wake());
        }
    }

    fn serve(&mut self, signal: &Signal<'_>, answers: &Answers) {
        self.hear(answers);
        let to = signal.sender();
        match signal.number() {
            Some(SignalNumber::IoWriteReq) => self.write(signal, answers),
            // GONE-2: what has the directory's name now may be somebody's copy. Nobody waits for a file to be removed.
            Some(SignalNumber::IoRemoveReq) if self.ground.settle().0 == Found::Gone => {
                self.hear(answers);
                answers.refuse_with(to, signal.body::<IoRemoveReq>().request, IO_GONE);
            }
            Some(SignalNumber::IoReadReq) => {
                let asked = signal.body::<IoReadReq>();
                let request = asked.request;
                match self.files.read(&asked) {
                    Ok(file_bytes) => {
                        answers.send(to, &IoReadConf { request, file_bytes }, &self.files.buffer);
                    }
                    Err(error) => {
                        self.tell_unread(&self.files.path(asked.file), &error);
                        self.refuse(to, request, &error, answers);
                    }
                }
            }
            Some(SignalNumber::IoListReq) => {
                let asked = signal.body::<IoListReq>();
                match self.files.list(asked.kind, asked.instance) {
                    Ok(numbers) => {
                        let bytes: Vec<u8> =
                            numbers.into_iter().flat_map(u32::to_le_bytes).collect();
                        answers.send(to, &IoListConf { request: asked.request }, &bytes);
                    }
                    Err(error) => {
                        self.tell_unread(&self.files.directory, &error);
                        self.refuse(to, asked.request, &error, answers);
                    }
                }
            }
            Some(SignalNumber::IoRemoveReq) => {
                let asked = signal.body::<IoRemoveReq>();
                match self.files.remove(asked.file) {
                    Ok(()) => answers.send(to, &IoConf { request: asked.request }, &[]),
                    Err(error) => {
                        if error.kind() != ErrorKind::NotFound {
                            let path = self.files.path(asked.file);
                            tracing::warn!(%error, "cannot remove {}, which nobody needs any more", path.display());
                        }
                        answers.refuse(to, asked.request, &error);
                    }
                }
            }
            _ => {}
        }
    }

    fn write(&mut self, signal: &Signal<'_>, answers: &Answers) {
        let (to, asked) = (signal.sender(), signal.body::<IoWriteReq>());
        let request = asked.request;
        if is_gone(self.age) {
            return answers.refuse_with(to, request, IO_GONE);
        }
        let written = self.write_where_it_is(&asked, signal.payload());
        // GONE-2: what cannot be found again is not safe.
        if self.ground.age() != self.age {
            self.hear(answers);
            return answers.refuse_with(to, request, IO_GONE);
        }
        match written {
            Ok(()) => {
                self.note_room();
                let behind =
                    asked.waiting_kib.saturating_sub((signal.payload().len() >> 10) as u32);
                self.disk.written(to, behind, asked.flags & WRITE_ANEW != 0);
                answers.send(to, &IoConf { request }, &[]);
            }
            Err(error) => {
                self.disk.is_full(to, asked.waiting_kib, signal.payload().len());
                self.tell_full(&asked, &error);
                answers.refuse(to, request, &error);
            }
        }
    }

    /// Writes, and does it again if the directory was not there for a moment. A disk that has failed is none any more (DURABLE-4).
    fn write_where_it_is(&mut self, asked: &IoWriteReq, bytes: &[u8]) -> Result<(), Error> {
        for _ in 0..WRITES_AGAIN {
            // Files are opened by name, and what has the directory's name now may be somebody's copy.
            if self.ground.settle().0 == Found::Gone {
                return Ok(());
            }
            let written = self.write_once(asked, bytes);
            let failed = written.as_ref().err().filter(|error| !is_full(error));
            if asked.flags & WRITE_SYNC == 0 && failed.is_none() {
                return written;
            }
            let (found, was_away) = self.ground.settle();
            if found == Found::Gone {
                return written;
            }
            if let Some(error) = failed.filter(|error| !was_away || !is_missing(error)) {
                let path = self.files.path(asked.file);
                tracing::error!(%error, "cannot write {}", path.display());
                let why = "its disk has failed; see the kernel's log, and replace it";
                self.ground.has_lost(why);
                return written;
            }
            if !was_away {
                return written;
            }
        }
        self.ground.has_lost("it was away again and again");
        Ok(())
    }

    fn write_once(&mut self, asked: &IoWriteReq, bytes: &[u8]) -> Result<(), Error> {
        let syncs = asked.flags & WRITE_SYNC != 0;
        if syncs {
            self.disk.sync_begins(self.number);
        }
        let written = self.files.write(asked, bytes);
        if syncs {
            self.disk.sync_ends(self.number);
        }
        if self.files.take_lost_file() {
            self.ground.has_lost("files were removed from it");
        }
        written
    }

    /// An error may mean that the directory is gone.
    fn refuse(&mut self, to: BlockRef, request: u64, error: &Error, answers: &Answers) {
        if self.ground.settle().0 == Found::Gone {
            self.hear(answers);
            return answers.refuse_with(to, request, IO_GONE);
        }
        answers.refuse(to, request, error);
    }

    fn tell_unread(&self, path: &Path, error: &Error) {
        tracing::error!(%error, "cannot read {}", path.display());
    }

    /// A full disk is asked again and again, and told of now and then.
    fn tell_full(&mut self, asked: &IoWriteReq, error: &Error) {
        let (path, now) = (self.files.path(asked.file), clock::now());
        self.full_at = now;
        let rested = self.full_told_at.is_none_or(|at| now.since(at) >= FULL_TOLD_EVERY);
        if self.has_told || !rested {
            return;
        }
        (self.full_told_at, self.has_told) = (Some(now), true);
        self.disk.measure(&self.files.directory);
        let lacks = match error.kind() {
            ErrorKind::QuotaExceeded => "the quota of its user is used up",
            _ => "if some are, there are no inodes left (`df -i`)",
        };
        tracing::warn!(
            "the disk of {} is full: {} bytes are free; {lacks}. {} KiB wait for being written. Changes are refused (error 1021) when that is too \
             much: make room, and all goes on by itself",
            path.display(),
            self.disk.free_bytes(),
            asked.waiting_kib
        );
    }

    /// A write has found room.
    fn note_room(&mut self) {
        if self.has_told && clock::now().since(self.full_at) >= ROOM_LASTS {
            self.has_told = false;
            tracing::info!("there is room again on the disk of {}", self.files.directory.display());
        }
    }
}
