//! The directory that a backup is written into: one process writes there, and removes nothing but what is its own.

use crate::{BackupError, MANIFEST_FILE};
use std::{
    fs::{self, File},
    io::ErrorKind,
    path::{Path, PathBuf},
};

/// It is there as long as a backup is being written, or was not finished.
const UNFINISHED_FILE: &str = "unfinished";

/// Makes the directory, which must be empty or new, and takes possession of it.
pub(crate) fn prepare(directory: &Path) -> Result<(), BackupError> {
    make(directory)?;
    let mut entries = fs::read_dir(directory).map_err(BackupError::file(directory))?;
    let is_empty = entries.next().is_none();
    let path = directory.join(UNFINISHED_FILE);
    match is_empty.then(|| File::create_new(&path)) {
        Some(Ok(_)) => Ok(()),
        Some(Err(error)) if error.kind() != ErrorKind::AlreadyExists => {
            Err(BackupError::file(&path)(error))
        }
        _ => Err(BackupError::Refused(format!(
            "{} is not empty; name a new directory for each backup",
            directory.display()
        ))),
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

/// What an attempt has left is no backup: what says that it is one goes first.
pub(crate) fn clear(directory: &Path) -> Result<(), BackupError> {
    let entries = fs::read_dir(directory).map_err(BackupError::file(directory))?.flatten();
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.retain(|name| name.starts_with("rows-") || name.starts_with(MANIFEST_FILE));
    names.sort_by_key(|name| !name.starts_with(MANIFEST_FILE));
    for path in names.into_iter().map(|name| directory.join(name)) {
        fs::remove_file(&path).map_err(BackupError::file(&path))?;
    }
    Ok(())
}

/// Nothing will be written there any more.
pub(crate) fn release(directory: &Path) -> Result<(), BackupError> {
    let path = directory.join(UNFINISHED_FILE);
    fs::remove_file(&path).map_err(BackupError::file(&path))
}

/// What was created, renamed or removed in a directory is safe.
pub(crate) fn sync_directory(path: &Path) -> Result<(), BackupError> {
    let synced = File::open(path).and_then(|directory| directory.sync_all());
    synced.map_err(BackupError::file(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_may_be_named_from_here() {
        let name = format!("lats-place-here-{}", std::process::id());
        let directory = Path::new(&name).join("b");
        prepare(&directory).unwrap();
        release(&directory).unwrap();
        fs::remove_dir_all(name).unwrap();
    }

    #[test]
    fn one_backup_is_written_into_a_directory() {
        let above = std::env::temp_dir().join(format!("lats-place-{}", std::process::id()));
        let _ = fs::remove_dir_all(&above);
        let directory = above.join("a/b");
        prepare(&directory).unwrap();
        let refused = prepare(&directory).unwrap_err().to_string();
        assert!(refused.contains("name a new directory"), "{refused}");
        fs::write(directory.join("rows-0001.lats"), b"r").unwrap();
        fs::write(directory.join(MANIFEST_FILE), b"m").unwrap();
        fs::write(directory.join("mine"), b"?").unwrap();
        clear(&directory).unwrap();
        assert!(prepare(&directory).is_err(), "it is still ours");
        release(&directory).unwrap();
        let left = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().file_name());
        assert_eq!(left.collect::<Vec<_>>(), ["mine"]);
        fs::remove_dir_all(&above).unwrap();
    }
}
