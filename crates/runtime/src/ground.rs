//! The directory of a node's files: whether it is there (GONE-1), and how a new one is begun (GONE-4). Protocol: `docs/protocols/gone.md`.

use lats_base::{Duration, Instant};
use rustix::io::Errno;
use std::{
    fs,
    io::{Error, ErrorKind, Result},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

/// Makes the directory anew, with what else belongs there. It says why that cannot be.
pub type BeginsAnew = Arc<dyn Fn() -> Result<()> + Send + Sync>;

/// A directory that is gone stays so for this long: whoever leaves for that has left by then.
const REST: Duration = Duration::from_millis(1_000);
/// So often it is tried to begin a new one.
const TRIED_EVERY: Duration = Duration::from_millis(500);
/// It may have another name, or none, for so long: a person renames it and back, a file system has a hiccup.
const DOUBT: Duration = Duration::from_millis(350);
/// Who waits until there is no doubt looks so often.
const DOUBT_LOOK: std::time::Duration = std::time::Duration::from_millis(10);

/// Where the files of a node are, as all threads that write some see it.
pub(crate) struct Ground {
    directory: PathBuf,
    begins_anew: BeginsAnew,
    /// Even: there is a directory, the last one that was begun; odd: the last one is gone.
    age: AtomicU64,
    /// Never held while the file system is asked for something: it may not answer.
    known: Mutex<Known>,
    /// For who waits until there is no doubt.
    rest: (Mutex<()>, Condvar),
}

#[derive(Default)]
struct Known {
    /// Device and inode.
    identity: Option<(u64, u64)>,
    /// The age that each thread has heard of.
    heard: Vec<u64>,
    /// Since when the directory is not found; nobody is told yet.
    doubted_at: Option<Instant>,
    /// When it was gone, and when it was tried last to begin a new one.
    gone_at: Instant,
    tried_at: Instant,
    /// Why there is none.
    why: String,
}

/// What a look has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// The directory is there.
    There,
    /// It is not found, which may pass: nothing is to be called safe meanwhile.
    Doubt,
    /// It is gone for good.
    Gone,
}

impl Ground {
    /// The directory, which so many threads write into.
    pub(crate) fn new(directory: &Path, begins_anew: BeginsAnew, threads: usize) -> Self {
        let (identity, heard) = (identity(directory).ok(), vec![0; threads]);
        let known = Known { identity, heard, ..Known::default() };
        let (age, known) = (AtomicU64::new(0), Mutex::new(known));
        let directory = directory.to_path_buf();
        Self { directory, begins_anew, age, known, rest: Default::default() }
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How old it is, as somebody has noticed.
    pub(crate) fn age(&self) -> u64 {
        self.age.load(Ordering::Acquire)
    }

    /// Looks whether it is there: the same one, under its name.
    pub(crate) fn look(&self) -> Found {
        self.look_at(crate::clock::now())
    }

    fn look_at(&self, now: Instant) -> Found {
        let age = self.age();
        if is_gone(age) {
            return Found::Gone;
        }
        let found = identity(&self.directory);
        let mut known = self.known();
        let why = match found {
            Ok(found) if Some(found) == known.identity => {
                known.doubted_at = None;
                return Found::There;
            }
            Ok(_) => "another directory has its name",
            Err(error) if is_missing(&error) => "it was removed, or has another name",
            // Nobody can say: whoever writes will see.
            Err(_) => return Found::There,
        };
        let since = *known.doubted_at.get_or_insert(now);
        if now.since(since) < DOUBT {
            return Found::Doubt;
        }
        self.lose(&mut known, age, why);
        Found::Gone
    }

    /// Looks until there is no doubt. The flag: there was some, and the directory is there after all.
    pub(crate) fn settle(&self) -> (Found, bool) {
        let mut doubted = false;
        loop {
            match self.look() {
                Found::Doubt => doubted = true,
                found => return (found, doubted),
            }
            let (lock, rest) = &self.rest;
            let held = lock.lock().unwrap_or_else(PoisonError::into_inner);
            drop(rest.wait_timeout(held, DOUBT_LOOK));
        }
    }

    /// Nothing that stands on it counts any more: a file that was written a moment ago is gone, or the disk has failed.
    pub(crate) fn has_lost(&self, why: &str) {
        let mut known = self.known();
        let age = self.age();
        if !is_gone(age) {
            self.lose(&mut known, age, why);
        }
    }

    fn lose(&self, known: &mut Known, age: u64, why: &str) {
        // Two threads may have looked.
        if self.age.compare_exchange(age, age + 1, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            (known.gone_at, known.doubted_at) = (crate::clock::now(), None);
            known.why = why.to_string();
            tracing::error!("THE DIRECTORY {} IS GONE: {why}", self.directory.display());
        }
    }

    /// A thread knows how old the directory is: whatever it does from now on is about that one.
    pub(crate) fn hear(&self, thread: usize, age: u64) {
        if let Some(heard) = self.known().heard.get_mut(thread) {
            *heard = age;
        }
    }

    /// Why there is no directory; none if there is one.
    pub(crate) fn why_gone(&self) -> Option<String> {
        is_gone(self.age()).then(|| self.known().why.clone())
    }

    /// Begins a new directory, when all threads have heard that the last one is gone. True if there is one now. One thread calls it.
    pub(crate) fn begin_anew(&self, now: Instant) -> bool {
        let age = self.age();
        if !is_gone(age) || !self.may_try(age, now) {
            return false;
        }
        let begun = (self.begins_anew)().and_then(|()| identity(&self.directory));
        let mut known = self.known();
        match begun {
            Ok(identity) => known.identity = Some(identity),
            Err(error) => {
                let (place, why) = (self.directory.display(), format!("{error}"));
                if known.why != why {
                    tracing::error!("no new directory {place} can be begun: {why}");
                    known.why = why;
                }
                return false;
            }
        }
        tracing::warn!("a new directory {} is begun", self.directory.display());
        self.age.store(age + 1, Ordering::Release);
        true
    }

    /// All threads know, and who leaves for that has left.
    fn may_try(&self, age: u64, now: Instant) -> bool {
        let mut known = self.known();
        let all_know = known.heard.iter().all(|heard| *heard == age);
        let rested = now.since(known.gone_at) >= REST && now.since(known.tried_at) >= TRIED_EVERY;
        if all_know && rested {
            known.tried_at = now;
        }
        all_know && rested
    }
}

/// True if this is the age of a directory that is gone.
pub(crate) fn is_gone(age: u64) -> bool {
    age % 2 == 1
}

/// Device and inode of what has this name.
fn identity(directory: &Path) -> Result<(u64, u64)> {
    let found = fs::metadata(directory)?;
    Ok((found.dev(), found.ino()))
}

/// True if the name is nobody's, or there is no way to it: its server has dropped it, its device is gone.
pub(crate) fn is_missing(error: &Error) -> bool {
    let number = Errno::from_io_error(error);
    let is_lost = matches!(number, Some(Errno::STALE | Errno::NODEV | Errno::NXIO));
    is_lost || matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ground(name: &str) -> (PathBuf, Ground) {
        let path = std::env::temp_dir().join(format!("lats-ground-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        let own = path.clone();
        let ground = Ground::new(&path, Arc::new(move || fs::create_dir(&own)), 2);
        (path, ground)
    }

    fn late(ground: &Ground, ms: u64) -> Instant {
        ground.known().gone_at.plus(Duration::from_millis(ms))
    }

    #[test]
    fn a_directory_that_is_removed_is_begun_anew_when_all_threads_know() {
        let (path, ground) = ground("removed");
        assert_eq!(ground.look(), Found::There);
        fs::remove_dir(&path).unwrap();
        assert_eq!((ground.look(), ground.age()), (Found::Doubt, 0));
        assert_eq!((ground.settle().0, ground.age()), (Found::Gone, 1));
        assert!(ground.why_gone().unwrap().contains("removed"));
        ground.hear(0, 1);
        assert!(
            !ground.begin_anew(late(&ground, 2_000)),
            "a thread may still write what it was asked for before"
        );
        ground.hear(1, 1);
        assert!(!ground.begin_anew(late(&ground, 500)), "too soon");
        assert!(ground.begin_anew(late(&ground, 2_000)));
        assert_eq!((ground.look(), ground.age(), ground.why_gone()), (Found::There, 2, None));
        assert!(!ground.begin_anew(late(&ground, 9_000)));
        fs::remove_dir(path).unwrap();
    }

    #[test]
    fn another_name_and_another_directory_are_noticed() {
        let (path, ground) = ground("renamed");
        let aside = path.with_extension("aside");
        fs::rename(&path, &aside).unwrap();
        fs::create_dir(&path).unwrap();
        assert_eq!(ground.settle().0, Found::Gone);
        assert!(ground.why_gone().unwrap().contains("another directory"));
        (0..2).for_each(|thread| ground.hear(thread, 1));
        assert!(!ground.begin_anew(late(&ground, 2_000)), "somebody's directory is there");
        assert!(ground.why_gone().unwrap().contains("exists"));
        fs::remove_dir(&path).unwrap();
        assert!(!ground.begin_anew(late(&ground, 2_100)), "not that often");
        assert!(ground.begin_anew(late(&ground, 2_600)));
        fs::remove_dir(path).unwrap();
        fs::remove_dir(aside).unwrap();
    }

    #[test]
    fn a_directory_that_has_lost_a_file_is_gone() {
        let (path, ground) = ground("file");
        ground.has_lost("files were removed from it");
        assert_eq!((ground.look(), ground.age()), (Found::Gone, 1));
        fs::remove_dir(path).unwrap();
    }

    #[test]
    fn a_directory_that_is_there_again_soon_was_never_gone() {
        let (path, ground) = ground("hiccup");
        let aside = path.with_extension("moved");
        for _ in 0..2 {
            let begun = crate::clock::now();
            let after = |ms| begun.plus(Duration::from_millis(ms));
            fs::rename(&path, &aside).unwrap();
            assert_eq!(
                (ground.look_at(begun), ground.look_at(after(349))),
                (Found::Doubt, Found::Doubt)
            );
            fs::rename(&aside, &path).unwrap();
            assert_eq!((ground.look_at(after(900)), ground.age()), (Found::There, 0));
        }
        fs::remove_dir(path).unwrap();
    }
}
