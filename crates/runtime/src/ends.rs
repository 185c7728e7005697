//! The ends of a process's threads, as another process sees them: at once, and before the kernel has freed the process's memory
//! (DEATH-1; `docs/protocols/lives.md`).
//!
//! A thread that serves holds a lock in shared memory for as long as it lives. When it ends, however it does, the kernel marks that
//! lock and wakes whoever waits for it: Linux's robust futexes, by way of POSIX's robust mutexes. That is one of the first things it
//! does for a thread that ends; closing sockets and files comes after all memory of the process is freed, which takes long.
#![allow(unsafe_code, reason = "mutexes that two processes share")]

use rustix::{
    fd::{AsRawFd, BorrowedFd, OwnedFd},
    fs::{MemfdFlags, ftruncate, memfd_create},
    mm::{MapFlags, ProtFlags, mmap},
};
use std::{
    cell::UnsafeCell,
    mem::MaybeUninit,
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

/// Threads that may count. A process with more is watched by its pidfd alone.
const THREADS_MAX: usize = 512;

/// What both processes see. All zeros until somebody writes it.
#[repr(C)]
struct Shared {
    /// Threads that were announced, in the order of their places, and those that have taken their locks.
    announced: AtomicU32,
    entered: AtomicU32,
    /// No more are announced.
    is_complete: AtomicU32,
    /// Somebody waits for their ends.
    is_watched: AtomicU32,
    locks: [UnsafeCell<libc::pthread_mutex_t>; THREADS_MAX],
}

/// The memory that a process shares with the one that watches it.
pub struct Ends {
    shared: &'static Shared,
}

// SAFETY: the locks are used by the functions of POSIX alone, which may be called by any thread; all else is atomic.
unsafe impl Send for Ends {}
// SAFETY: as above.
unsafe impl Sync for Ends {}

/// Those of this process, and the file that they are in.
static OWN: OnceLock<(Ends, OwnedFd)> = OnceLock::new();

/// A thread that will count: to be given to it.
#[must_use]
pub struct Announced(Option<u32>);

/// From now on threads of this process may count; where the other process finds the memory.
///
/// # Errors
/// The operating system gives no such memory, or this was called before.
pub fn begin() -> std::io::Result<String> {
    let file = memfd_create("latsdb-ends", MemfdFlags::CLOEXEC)?;
    ftruncate(&file, size_of::<Shared>() as u64)?;
    let ends = Ends::map(&file)?;
    ends.prepare()?;
    let place = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
    match OWN.set((ends, file)) {
        Ok(()) => Ok(place),
        Err(_) => Err(std::io::ErrorKind::AlreadyExists.into()),
    }
}

/// A thread is about to start that will send something to nodes or clients.
pub fn announce() -> Announced {
    let place = OWN.get().map(|(ends, _)| ends.shared.announced.fetch_add(1, Ordering::SeqCst));
    Announced(place)
}

/// True if another process waits for the ends of this one's threads; none: they have not all been announced.
pub fn is_watched() -> Option<bool> {
    let (ends, _) = OWN.get()?;
    let is_complete = ends.shared.is_complete.load(Ordering::SeqCst) == 1;
    is_complete.then(|| ends.shared.is_watched.load(Ordering::SeqCst) == 1)
}

/// Whoever has waited has ended; another process will.
pub fn unwatched() {
    if let Some((ends, _)) = OWN.get() {
        ends.shared.is_watched.store(0, Ordering::SeqCst);
    }
}

/// All threads have been announced.
pub fn complete() {
    if let Some((ends, _)) = OWN.get() {
        ends.shared.is_complete.store(1, Ordering::SeqCst);
    }
}

impl Announced {
    /// To be called by the thread itself, before it does anything: it counts until it ends.
    pub fn enter(self) {
        if let (Some(place), Some((ends, _))) = (self.0, OWN.get()) {
            ends.enter(place);
        }
    }
}

impl Ends {
    /// Those of another process.
    ///
    /// # Errors
    /// The file cannot be opened, or is none of these.
    pub fn of(place: &str) -> std::io::Result<Self> {
        let file = std::fs::File::options().read(true).write(true).open(place)?;
        if file.metadata()?.len() != size_of::<Shared>() as u64 {
            return Err(std::io::ErrorKind::InvalidData.into());
        }
        Self::map(&file)
    }

    fn map(file: impl std::os::fd::AsFd) -> std::io::Result<Self> {
        let file: BorrowedFd<'_> = file.as_fd();
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses an address where nothing is, and the mapping is never taken away.
        let memory = unsafe {
            mmap(std::ptr::null_mut(), size_of::<Shared>(), protection, MapFlags::SHARED, file, 0)?
        };
        // SAFETY: the file has that size, the memory begins at a page, all zeros are valid for each field, and what changes in it is
        // atomic or in a cell.
        Ok(Self { shared: unsafe { &*memory.cast::<Shared>() } })
    }

    /// Makes the locks.
    fn prepare(&self) -> std::io::Result<()> {
        let mut how = MaybeUninit::<libc::pthread_mutexattr_t>::uninit();
        // SAFETY: `how` is initialised before it is used, and the locks are memory of their type that nobody uses yet.
        unsafe {
            done(libc::pthread_mutexattr_init(how.as_mut_ptr()))?;
            let how = how.as_mut_ptr();
            done(libc::pthread_mutexattr_setpshared(how, libc::PTHREAD_PROCESS_SHARED))?;
            done(libc::pthread_mutexattr_setrobust(how, libc::PTHREAD_MUTEX_ROBUST))?;
            for lock in &self.shared.locks {
                done(libc::pthread_mutex_init(lock.get(), how))?;
            }
            done(libc::pthread_mutexattr_destroy(how))
        }
    }

    fn enter(&self, place: u32) {
        let Some(lock) = self.shared.locks.get(place as usize) else { return };
        // SAFETY: the lock was made by `prepare`, and is never destroyed. It is never given back, either.
        let taken = unsafe { libc::pthread_mutex_lock(lock.get()) };
        // The second one: somebody else has held it and has ended, which nobody should.
        if taken == 0 || taken == libc::EOWNERDEAD {
            self.shared.entered.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Waits until all threads that count have ended. False if that cannot be known: wait for the process then.
    pub fn wait(&self) -> bool {
        let shared = self.shared;
        let count = loop {
            // First: the number of those that were announced is final then.
            let is_complete = shared.is_complete.load(Ordering::SeqCst) == 1;
            let announced = shared.announced.load(Ordering::SeqCst);
            if announced as usize > THREADS_MAX {
                return false;
            }
            if is_complete && shared.entered.load(Ordering::SeqCst) == announced {
                break announced as usize;
            }
            pause();
        };
        if count == 0 {
            return false;
        }
        shared.is_watched.store(1, Ordering::SeqCst);
        let have_ended = shared.locks.iter().take(count).all(has_ended);
        if !have_ended {
            shared.is_watched.store(0, Ordering::SeqCst);
        }
        have_ended
    }
}

/// Waits until the thread that holds a lock has ended; false if none has held it.
fn has_ended(lock: &UnsafeCell<libc::pthread_mutex_t>) -> bool {
    // SAFETY: the lock was made by `prepare`, and is never destroyed.
    match unsafe { libc::pthread_mutex_lock(lock.get()) } {
        libc::EOWNERDEAD => true,
        0 => {
            // SAFETY: this thread has just taken it. Nobody may wait for it in vain.
            unsafe { libc::pthread_mutex_unlock(lock.get()) };
            false
        }
        _ => false,
    }
}

#[expect(clippy::disallowed_methods, reason = "nobody rings: the other process is only beginning")]
fn pause() {
    std::thread::sleep(LOOK_AGAIN);
}

/// How often it is looked whether all threads have been announced, when a node starts.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

fn done(status: i32) -> std::io::Result<()> {
    match status {
        0 => Ok(()),
        error => Err(std::io::Error::from_raw_os_error(error)),
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "ends of threads are what is tested")]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn ends_of_threads_are_seen_when_all_that_count_have_ended() {
        let file = memfd_create("latsdb-ends-test", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&file, size_of::<Shared>() as u64).unwrap();
        let ends: &'static Ends = Box::leak(Box::new(Ends::map(&file).unwrap()));
        ends.prepare().unwrap();
        let place = format!("/proc/self/fd/{}", file.as_raw_fd());
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let number = ends.shared.announced.fetch_add(1, Ordering::SeqCst);
                let (end, ends_now) = mpsc::channel::<()>();
                let thread = std::thread::spawn(move || {
                    ends.enter(number);
                    // Until it is told to end.
                    let _ = ends_now.recv();
                });
                (thread, end)
            })
            .collect();
        ends.shared.is_complete.store(1, Ordering::SeqCst);
        let (seen, sees) = mpsc::channel();
        std::thread::spawn(move || seen.send(Ends::of(&place).unwrap().wait()));
        let mut left = threads.into_iter();
        let last = left.next().unwrap();
        for (thread, end) in left {
            drop(end);
            thread.join().unwrap();
        }
        let early = sees.recv_timeout(Duration::from_millis(100));
        assert!(early.is_err(), "one of them lives");
        drop(last.1);
        last.0.join().unwrap();
        assert_eq!(sees.recv_timeout(Duration::from_secs(10)), Ok(true));
    }

    #[test]
    fn ends_are_not_known_of_a_lock_that_nobody_holds() {
        let file = memfd_create("latsdb-ends-test", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&file, size_of::<Shared>() as u64).unwrap();
        let ends = Ends::map(&file).unwrap();
        ends.prepare().unwrap();
        ends.shared.is_complete.store(1, Ordering::SeqCst);
        assert!(!ends.wait(), "no thread counts");
        ends.shared.announced.store(1, Ordering::SeqCst);
        ends.shared.entered.store(1, Ordering::SeqCst);
        assert!(!ends.wait(), "it was free");
        assert!(Ends::of("/proc/self/exe").is_err(), "that is another file");
    }
}
