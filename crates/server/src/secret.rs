//! The cluster's secret: a file that nodes, commands and native clients read. Who knows it may do everything.

use anyhow::Context;
use lats_client::Secret;
use lats_runtime::random;
use std::{
    io::Write,
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

/// Where the secret of the cluster in a data directory is.
pub(crate) fn path(data_dir: &Path) -> PathBuf {
    data_dir.join("secret")
}

/// The secret in a file.
///
/// # Errors
/// The file cannot be read, or holds something else.
pub(crate) fn read(file: &Path) -> anyhow::Result<Secret> {
    let text = std::fs::read_to_string(file).with_context(|| {
        format!(
            "cannot read the cluster's secret, {}; name it with --secret-file (it is the file `secret` in the directory of \
             `latsdb start`)",
            file.display()
        )
    })?;
    let others = std::fs::metadata(file).map_or(0, |m| m.permissions().mode() & 0o077);
    if others != 0 {
        tracing::warn!("other users can read {}: chmod 600 it", file.display());
    }
    text.parse().with_context(|| format!("{} holds something else", file.display()))
}

/// Makes a secret for the cluster in this directory, unless it has one; true if it had none.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn make(data_dir: &Path) -> anyhow::Result<bool> {
    if path(data_dir).exists() {
        return read(&path(data_dir)).map(|_| false);
    }
    let bytes = random::bytes().context("the operating system has no random bytes")?;
    write(&Secret::new(bytes), data_dir).map(|()| true)
}

/// Puts a secret into a data directory, whole or not at all.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn write(secret: &Secret, data_dir: &Path) -> anyhow::Result<()> {
    let path = path(data_dir);
    let fresh = path.with_extension("new");
    let write = || {
        // A file that somebody else has left there may be open to others.
        let _ = std::fs::remove_file(&fresh);
        let mut file =
            std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
        writeln!(file, "{}", secret.text())?;
        // A cluster that comes up again without its secret would lock all others out.
        file.sync_all()?;
        std::fs::rename(&fresh, &path)?;
        std::fs::File::open(data_dir)?.sync_all()
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_made_once_and_for_its_owner_alone() {
        let directory = std::env::temp_dir().join(format!("lats-secret-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        assert!(make(&directory).unwrap());
        let first = read(&path(&directory)).unwrap();
        assert!(!make(&directory).unwrap());
        assert_eq!(read(&path(&directory)).unwrap(), first);
        let mode = std::fs::metadata(path(&directory)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        std::fs::write(path(&directory), "something else").unwrap();
        assert!(make(&directory).is_err() && read(&path(&directory)).is_err());
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
