//! Files: threads that read, write and sync in the place of blocks, which never wait for a disk.
//!
//! Each block's requests are done by one thread, in their order. There are few of them: a block has one write or read
//! under way, and some removals.

use crate::{
    blocks::is_full,
    doorbell::Doorbell,
    files::{Files, FilesConfig},
    thread::{Homes, News},
};
use lats_base::NodeId;
use lats_signals::{
    BlockKind, BlockRef, Body, Signal, SignalBuffer, SignalNumber,
    buffer::Route,
    io::{
        FileName, IO_FAILED, IO_FULL, IO_MISSING, IoConf, IoListConf, IoListReq, IoReadConf,
        IoReadReq, IoRef, IoRemoveReq, IoWriteReq,
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

    fn wait(&self, taken: &mut SignalBuffer) {
        let mut waiting = self.waiting();
        while waiting.is_empty() {
            waiting = self.filled.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        core::mem::swap(&mut *waiting, taken);
    }

    /// Does what is asked for, for ever.
    pub(crate) fn run(&self, files: &FilesConfig, answers: &Answers) {
        let mut served = Served { files: Files::new(files), is_full: false };
        let mut taken = SignalBuffer::new();
        loop {
            self.wait(&mut taken);
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
        self.send(to, &IoRef { request, code, reserved: 0 }, &[]);
    }
}

/// A thread's files, and what it has told of them.
struct Served {
    files: Files,
    /// The last write found no room.
    is_full: bool,
}

impl Served {
    fn serve(&mut self, signal: &Signal<'_>, answers: &Answers) {
        let to = signal.sender();
        match signal.number() {
            Some(SignalNumber::IoWriteReq) => {
                let asked = signal.body::<IoWriteReq>();
                let request = asked.request;
                match self.files.write(&asked, signal.payload()) {
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
                match self.files.read(&asked) {
                    Ok(file_bytes) => {
                        answers.send(to, &IoReadConf { request, file_bytes }, &self.files.buffer);
                    }
                    Err(error) => {
                        self.tell_unread(&self.files.path(asked.file), &error);
                        answers.refuse(to, request, &error);
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
                        answers.refuse(to, asked.request, &error);
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

    fn tell_unread(&self, path: &Path, error: &Error) {
        tracing::error!(%error, "cannot read {}", path.display());
    }

    /// A full disk is asked again and again, and told of once.
    fn tell(&mut self, file: FileName, error: &Error) {
        let path = self.files.path(file);
        if !is_full(error) {
            return tracing::error!(%error, "cannot write {}", path.display());
        }
        if !std::mem::replace(&mut self.is_full, true) {
            tracing::warn!(
                "the disk of {} is full: changes are refused when what waits for it is too much; make room",
                path.display()
            );
        }
    }
}
