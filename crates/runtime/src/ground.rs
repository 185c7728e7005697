//! The directory of a node's files: whether it is there (GONE-1), and how a new one is begun (GONE-4). Protocol: `docs/protocols/gone.md`.

use lats_base::Duration;
use std::{
    fs,
    io::{Error, ErrorKind, Result},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

/// Makes the directory anew, with what else belongs there. It says why that cannot be.
pub type BeginsAnew = Arc<dyn Fn() -> Result<()> + Send + Sync>;

/// A directory that is gone stays so for this long: whoever leaves for that has left by then.
const REST: Duration = Duration::from_millis(1_000);
/// So often it is tried to begin a new one.
const TRIED_EVERY: Duration = Duration::from_millis(500);

/// Where the files of a node are, as all threads that write some see it.
pub(crate) struct Ground {
    directory: PathBuf,
    begins_anew: BeginsAnew,
    /// Even: there is a directory, the last one that was begun; odd: the last one is gone.
    age: AtomicU64,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// Device and inode.
    identity: Option<(u64, u64)>,
    /// The age that each thread has heard of.
    heard: Vec<u64>,
    /// When it was gone, and when it was tried last to begin a new one.
    gone_at: lats_base::Instant,
    tried_at: lats_base::Instant,
    /// Why there is none.
    why: String,
}

impl Ground {
    /// The directory, which so many threads write into.
    pub(crate) fn new(directory: &Path, begins_anew: BeginsAnew, threads: usize) -> Self {
        let (identity, heard) = (identity(directory).ok(), vec![0; threads]);
        let known = Known { identity, heard, ..Known::default() };
        let (age, known) = (AtomicU64::new(0), Mutex::new(known));
        Self { directory: directory.to_path_buf(), begins_anew, age, known }
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
    pub(crate) fn look(&self) -> u64 {
        let age = self.age();
        if is_gone(age) {
            return age;
        }
        let found = identity(&self.directory);
        let mut known = self.known();
        match found {
            Ok(found) if Some(found) == known.identity => {}
            Ok(_) => self.lose(&mut known, age, "another directory has its name"),
            Err(error) if is_missing(&error) => {
                self.lose(&mut known, age, "it was removed, or has another name");
            }
            // Nobody can say: whoever writes will see.
            Err(_) => {}
        }
        self.age()
    }

    /// A file of it is gone that was written a moment ago.
    pub(crate) fn has_lost_a_file(&self) {
        let mut known = self.known();
        let age = self.age();
        if !is_gone(age) {
            self.lose(&mut known, age, "files were removed from it");
        }
    }

    fn lose(&self, known: &mut Known, age: u64, why: &str) {
        // Two threads may have looked.
        if self.age.compare_exchange(age, age + 1, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            known.gone_at = crate::clock::now();
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

    /// Begins a new directory, when all threads have heard that the last one is gone. True if there is one now.
    pub(crate) fn begin_anew(&self, now: lats_base::Instant) -> bool {
        let mut known = self.known();
        let age = self.age();
        let all_know = known.heard.iter().all(|heard| *heard == age);
        let rested = now.since(known.gone_at) >= REST && now.since(known.tried_at) >= TRIED_EVERY;
        if !is_gone(age) || !all_know || !rested {
            return false;
        }
        known.tried_at = now;
        if let Err(error) = (self.begins_anew)() {
            let why = format!("{error}");
            if known.why != why {
                tracing::error!(
                    "no new directory {} can be begun: {why}",
                    self.directory.display()
                );
                known.why = why;
            }
            return false;
        }
        known.identity = identity(&self.directory).ok();
        tracing::warn!("a new directory {} is begun", self.directory.display());
        self.age.store(age + 1, Ordering::Release);
        true
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

/// True if the name is nobody's, or there is no way to it.
fn is_missing(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lats_base::Instant;

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
        assert_eq!(ground.look(), 0);
        fs::remove_dir(&path).unwrap();
        assert_eq!((ground.look(), ground.look()), (1, 1));
        assert!(ground.why_gone().unwrap().contains("removed"));
        ground.hear(0, 1);
        assert!(
            !ground.begin_anew(late(&ground, 2_000)),
            "a thread may still write what it was asked for before"
        );
        ground.hear(1, 1);
        assert!(!ground.begin_anew(late(&ground, 500)), "too soon");
        assert!(ground.begin_anew(late(&ground, 2_000)));
        assert_eq!((ground.look(), ground.why_gone()), (2, None));
        assert!(!ground.begin_anew(late(&ground, 9_000)));
        fs::remove_dir(path).unwrap();
    }

    #[test]
    fn another_name_and_another_directory_are_noticed() {
        let (path, ground) = ground("renamed");
        let aside = path.with_extension("aside");
        fs::rename(&path, &aside).unwrap();
        fs::create_dir(&path).unwrap();
        assert_eq!(ground.look(), 1);
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
        ground.has_lost_a_file();
        assert_eq!(ground.look(), 1);
        fs::remove_dir(path).unwrap();
    }
}
