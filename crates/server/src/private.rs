//! What LatsDB keeps is its user's alone: files have the mode 0600, directories 0700. The process's umask sees to what is new (`main`);
//! what was there before, made by a person or an earlier version, is seen to here.

use anyhow::Context;
use std::{
    fs::{self, File, Permissions},
    os::unix::fs::PermissionsExt,
    path::Path,
};

const FILE: u32 = 0o600;
const DIRECTORY: u32 = 0o700;
/// A cluster's directory, a node's in it, and what that has aside.
const DEPTH: u32 = 3;

/// Makes a directory, unless it is there, and takes away what others may do with it, and with all that is in it.
///
/// # Errors
/// It cannot be made.
pub(crate) fn directory(path: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(path).with_context(|| format!("cannot make {}", path.display()))?;
    close(path, DEPTH);
    Ok(())
}

/// Makes a file, or empties it.
///
/// # Errors
/// It cannot be written.
pub(crate) fn file(path: &Path) -> anyhow::Result<File> {
    let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
    close(path, 0);
    Ok(file)
}

/// Links are not followed.
fn close(path: &Path, depth: u32) {
    let Ok(found) = fs::symlink_metadata(path) else { return };
    let wanted = if found.is_dir() { DIRECTORY } else { FILE };
    let is_ours = found.is_dir() || found.is_file();
    if is_ours && found.permissions().mode() & 0o077 != 0 {
        match fs::set_permissions(path, Permissions::from_mode(wanted)) {
            Ok(()) => tracing::info!("others had access to {}; they have none now", path.display()),
            Err(error) => {
                tracing::warn!(%error, "others have access to {}: chmod {wanted:o} it", path.display());
            }
        }
    }
    let entries = (found.is_dir() && depth > 0).then(|| fs::read_dir(path).ok()).flatten();
    for entry in entries.into_iter().flatten().flatten() {
        close(&entry.path(), depth - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_open_to_others_is_closed_and_links_are_left_alone() {
        let path = std::env::temp_dir().join(format!("lats-private-{}", std::process::id()));
        let node = path.join("node-1");
        fs::create_dir_all(&node).unwrap();
        let outside = path.with_extension("outside");
        fs::write(&outside, "x").unwrap();
        fs::write(node.join("redo"), "x").unwrap();
        std::os::unix::fs::symlink(&outside, node.join("link")).unwrap();
        let set = |path: &Path, mode| {
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        };
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        for (path, open) in
            [(&path, 0o755), (&node, 0o755), (&node.join("redo"), 0o644), (&outside, 0o644)]
        {
            set(path, open);
        }
        directory(&path).unwrap();
        assert_eq!((mode(&path), mode(&node), mode(&node.join("redo"))), (0o700, 0o700, 0o600));
        assert_eq!(mode(&outside), 0o644);
        set(&outside, 0o666);
        file(&outside).unwrap();
        assert_eq!(mode(&outside), 0o600);
        fs::remove_dir_all(&path).unwrap();
        fs::remove_file(outside).unwrap();
    }
}
