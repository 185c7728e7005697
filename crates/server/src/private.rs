//! What LatsDB keeps is its user's alone: others have no access to its files and directories. The process's umask sees to what is new
//! (`main`); what was there before, made by a person or an earlier version, is seen to here. What is not LatsDB's is left as it is.

use crate::cluster_file::ClusterFile;
use anyhow::Context;
use rustix::fs::{Mode, OFlags, fchmod, fstat, open};
use std::{
    fs::{self, File},
    path::Path,
};

/// A cluster's directory, a node's in it, and what that has aside.
const DEPTH: u32 = 3;
/// Names of LatsDB's own files.
const NAMES: [&str; 12] = [
    "cluster.json",
    "secret",
    "lock",
    "life.json",
    "life.new",
    "to-archive",
    "supervisor.pid",
    "serving.pid",
    "starting.txt",
    "ended.txt",
    "stop-failed.txt",
    "stopping.txt",
];
/// How names begin of which there are many.
const BEGINNINGS: [&str; 4] = ["node-", "redo-", "control-", "spare-"];

/// Makes a directory, unless it is there, and takes away what others may do with it, and with all of LatsDB's that is in it.
///
/// # Errors
/// It cannot be made.
pub(crate) fn directory(path: &Path) -> anyhow::Result<()> {
    let is_new = !path.exists();
    fs::create_dir_all(path).with_context(|| format!("cannot make {}", path.display()))?;
    let mut closed = 0;
    if is_new || is_ours(path) || ClusterFile::path(path).exists() || is_empty(path) {
        closed += close(path);
    }
    close_all_in(path, DEPTH, &mut closed);
    if closed > 0 {
        tracing::info!(
            "others had access to {closed} files and directories in {}; they have none now",
            path.display()
        );
    }
    Ok(())
}

/// Makes a file, or empties it.
///
/// # Errors
/// It cannot be written.
pub(crate) fn file(path: &Path) -> anyhow::Result<File> {
    let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
    close(path);
    Ok(file)
}

/// True if this is what LatsDB calls its files: `node-7`, `node-7.full`, `redo-0-0000000001.log`.
fn is_ours(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let counted = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
    NAMES.contains(&&*name)
        || BEGINNINGS.iter().any(|begin| name.strip_prefix(begin).is_some_and(counted))
}

fn is_empty(path: &Path) -> bool {
    fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}

fn close_all_in(path: &Path, depth: u32, closed: &mut usize) {
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if !is_ours(&entry.path()) {
            continue;
        }
        *closed += close(&entry.path());
        if depth > 0 && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            close_all_in(&entry.path(), depth - 1, closed);
        }
    }
}

/// Links are not followed. Gives how many were open to others.
fn close(path: &Path) -> usize {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(file) = open(path, flags, Mode::empty()) else { return 0 };
    let others = Mode::RWXG | Mode::RWXO;
    let Ok(mode) = fstat(&file).map(|found| Mode::from_raw_mode(found.st_mode)) else { return 0 };
    if !mode.intersects(others) {
        return 0;
    }
    match fchmod(&file, mode - others) {
        Ok(()) => 1,
        Err(error) => {
            tracing::warn!(%error, "others have access to {}: chmod go= it", path.display());
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs::Permissions, os::unix::fs::PermissionsExt};

    #[test]
    fn what_was_open_to_others_is_closed_and_what_is_not_ours_is_left_alone() {
        let path = std::env::temp_dir().join(format!("lats-private-{}", std::process::id()));
        let node = path.join("node-1");
        fs::create_dir_all(&node).unwrap();
        let (log, link) = (node.join("redo-0-0000000001.log"), node.join("control-1"));
        let (outside, tool) = (path.with_extension("outside"), path.join("tool"));
        [&log, &outside, &tool, &path.join("cluster.json")]
            .into_iter()
            .for_each(|file| fs::write(file, "x").unwrap());
        std::os::unix::fs::symlink(&outside, &link).unwrap();
        let set = |path: &Path, mode| {
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        };
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        for (path, open) in
            [(&path, 0o2755), (&node, 0o755), (&log, 0o644), (&outside, 0o644), (&tool, 0o755)]
        {
            set(path, open);
        }
        directory(&path).unwrap();
        assert_eq!((mode(&path), mode(&node), mode(&log)), (0o2700, 0o700, 0o600));
        assert_eq!((mode(&outside), mode(&tool)), (0o644, 0o755));
        set(&outside, 0o666);
        file(&outside).unwrap();
        assert_eq!(mode(&outside), 0o600);
        fs::remove_dir_all(&path).unwrap();
        // Somebody's directory.
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("tool"), "x").unwrap();
        set(&path, 0o755);
        directory(&path).unwrap();
        assert_eq!(mode(&path), 0o755);
        fs::remove_dir_all(&path).unwrap();
        fs::remove_file(outside).unwrap();
    }
}
