//! A directory with a backup.

use super::UNFINISHED_FILE;
use crate::BackupError;
use std::{
    fs::{self, File},
    io::ErrorKind,
    path::{Path, PathBuf},
};

/// Makes the directory, and takes possession of it. False if there is something in it.
pub(super) fn prepare(directory: &Path) -> Result<bool, BackupError> {
    make(directory)?;
    let mut entries = fs::read_dir(directory).map_err(BackupError::file(directory))?;
    let is_empty = entries.next().is_none();
    let path = directory.join(UNFINISHED_FILE);
    match is_empty.then(|| File::create_new(&path)) {
        Some(Err(error)) if error.kind() != ErrorKind::AlreadyExists => {
            Err(BackupError::file(&path)(error))
        }
        made => Ok(matches!(made, Some(Ok(_)))),
    }
}

/// Makes the directory, if it is not there, so that it stays.
///
/// # Errors
/// If that cannot be done.
pub fn make(directory: &Path) -> Result<(), BackupError> {
    let is_new = |path: &&Path| !path.as_os_str().is_empty() && !path.exists();
    let made: Vec<PathBuf> =
        directory.ancestors().take_while(is_new).map(Path::to_path_buf).collect();
    fs::create_dir_all(directory).map_err(BackupError::file(directory))?;
    // A new directory is safe when the one above it is.
    for path in made {
        let path = path.canonicalize().map_err(BackupError::file(&path))?;
        path.parent().map_or(Ok(()), sync_directory)?;
    }
    Ok(())
}

/// What is in it.
pub(super) fn names(directory: &Path) -> Result<Vec<String>, BackupError> {
    let entries = fs::read_dir(directory).map_err(BackupError::file(directory))?.flatten();
    Ok(entries.filter_map(|entry| entry.file_name().into_string().ok()).collect())
}

/// What was created, renamed or removed in a directory is safe.
pub(crate) fn sync_directory(path: &Path) -> Result<(), BackupError> {
    let synced = File::open(path).and_then(|directory| directory.sync_all());
    synced.map_err(BackupError::file(path))
}
