//! Backups: all rows as of one epoch, in files that any cluster can be filled from.
//!
//! A backup is a client: it reads a snapshot of all tables at once (`docs/protocols/snapshot.md`) while the cluster serves, and
//! writes compressed blocks with checksums. Restoring is another client, which creates the tables and writes the rows: so
//! neither the number of nodes nor that of their threads matters. File formats: `docs/formats/backup.md`.
#![forbid(unsafe_code)]

pub mod archive;
mod format;
mod place;
mod read;
mod restore;
mod take;
#[cfg(test)]
mod tests;
mod verify;
mod write;

pub use format::{MANIFEST_FILE, Manifest, PartEntry, TableEntry};
pub use place::{Place, make_directory};
pub use read::{PartFound, manifest, survey_part};
pub use restore::{Later, Restored, Wanted, restore, would_restore};
pub use take::take;
pub use verify::{Verified, verify};

use lats_client::api::StoreError;
use std::{
    io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

/// Why something could not be done.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// A file cannot be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A file is not what was written once.
    #[error("{}: {why}", path.display())]
    Damaged {
        /// Which one.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The cluster has refused.
    #[error("the cluster has refused: {0}")]
    Store(#[from] StoreError),
    /// A restore has not come to its end.
    #[error("{error}. Tables that were created by then, and may lack rows: {}; drop them before you try again", tables.join(", "))]
    Incomplete {
        /// Why.
        error: Box<BackupError>,
        /// What it has left.
        tables: Vec<String>,
    },
    /// It cannot be done like that.
    #[error("{0}")]
    Refused(String),
}

impl BackupError {
    fn file(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |error| Self::File { path, error }
    }

    /// Something has failed, and so has the removal of what was written by then.
    fn left(error: &Self, place: &Place, left: &Self) -> Self {
        Self::Refused(format!(
            "{error}; what was written to {place} by then may still be there: {left}"
        ))
    }

    /// A task has not come to its end.
    fn died(error: &tokio::task::JoinError) -> Self {
        Self::Refused(format!("a part of the work has failed: {error}"))
    }

    fn damaged(path: &Path, why: impl Into<String>) -> Self {
        Self::Damaged { path: path.to_path_buf(), why: why.into() }
    }
}

/// How far the work is, for whoever shows it.
#[derive(Debug, Default)]
pub struct Progress {
    /// Rows that were read, or written.
    pub rows: AtomicU64,
    /// Their bytes.
    pub bytes: AtomicU64,
    /// Bytes of files.
    pub stored: AtomicU64,
    /// How often it has begun anew.
    pub tries: AtomicU64,
}

impl Progress {
    fn add(&self, rows: u64, bytes: u64, stored: u64) {
        self.rows.fetch_add(rows, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.stored.fetch_add(stored, Ordering::Relaxed);
    }

    fn begin_anew(&self) {
        for counter in [&self.rows, &self.bytes, &self.stored] {
            counter.store(0, Ordering::Relaxed);
        }
        self.tries.fetch_add(1, Ordering::Relaxed);
    }
}

/// Does work that waits for disks or the network, in a thread for that.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, BackupError> + Send + 'static,
) -> Result<T, BackupError> {
    tokio::task::spawn_blocking(work).await.map_err(|error| BackupError::died(&error))?
}
