//! A node that archives: a thread beside it copies what stands in its files (`docs/protocols/archive.md`).

use crate::node::node_directory;
use anyhow::Context;
use lats_backup::{
    BackupError,
    archive::{Archiver, Kept, LogFile},
};
use lats_runtime::{
    clock,
    files::{self, TO_ARCHIVE},
};
use lats_signals::io::{FILE_CONTROL, FILE_REDO, FileName};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
    time::Duration,
};

/// Where a node of a cluster archives.
pub(crate) fn directory(archive: &Path, cluster: u64, node: u16) -> PathBuf {
    node_directory(&archive.join(format!("{cluster:016x}")), node)
}

/// Makes the directory of an archive; gives its name for whoever works elsewhere.
pub(crate) fn prepare(archive: &Path) -> anyhow::Result<PathBuf> {
    fs::create_dir_all(archive)
        .and_then(|()| archive.canonicalize())
        .with_context(|| format!("cannot archive into {}", archive.display()))
}

/// New records are looked for so often: epochs are as old as that when their end is noted.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// What was copied is made safe with every so many looks.
const SYNC_EVERY: u32 = 10;
/// A disk that fails is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// Begins to archive what is in a node's directory, in a thread of its own.
pub(crate) fn begin(files: &Path, archive: &Path) -> anyhow::Result<()> {
    let archiver = Archiver::new(archive, decode)
        .with_context(|| format!("cannot archive into {}", archive.display()))?;
    let aside = files.join(TO_ARCHIVE);
    fs::create_dir_all(&aside).with_context(|| format!("cannot make {}", aside.display()))?;
    let mut work = Work { files: files.to_path_buf(), archiver, state: 0 };
    let named = std::thread::Builder::new().name("lats-archive".to_string());
    named.spawn(move || work.run())?;
    Ok(())
}

/// The node does not archive: what a former life has put aside for that is not wanted.
pub(crate) fn is_off(files: &Path) -> anyhow::Result<()> {
    let aside = files.join(TO_ARCHIVE);
    match fs::remove_dir_all(&aside) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", aside.display()))
        }
        _ => Ok(()),
    }
}

/// What an archive needs to know of a control state.
pub(crate) fn decode(content: &[u8]) -> Option<Kept> {
    let (_, state) = lats_node::control::decode_kept(content).ok()?;
    let groups = state.view.groups.iter().map(|group| group.nodes.clone()).collect();
    Some(Kept {
        commands: state.commands,
        restored: state.restored,
        groups,
        instances: u16::try_from(state.view.config.ldm_instances).ok()?,
        catalog: state.catalog,
    })
}

struct Work {
    files: PathBuf,
    archiver: Archiver,
    /// The newest control file that was copied.
    state: u32,
}

impl Work {
    fn run(&mut self) {
        let mut told = false;
        loop {
            for look in 0..SYNC_EVERY {
                let done = self.look(look + 1 == SYNC_EVERY);
                let pause = match done {
                    Ok(()) if told => {
                        tracing::info!("archiving goes on");
                        told = false;
                        LOOK_EVERY
                    }
                    Ok(()) => LOOK_EVERY,
                    Err(error) => {
                        if !std::mem::replace(&mut told, true) {
                            tracing::error!(
                                "archiving waits, and files that are to be archived stay on the node's disk: {error}; make room, or mend the archive's disk"
                            );
                        }
                        RETRY
                    }
                };
                crate::supervisor::pause(pause);
            }
        }
    }

    fn look(&mut self, syncs: bool) -> Result<(), BackupError> {
        let mut there = BTreeMap::new();
        // What is put aside meanwhile is found in one of them at least.
        names(&self.files, &mut there)?;
        names(&self.files.join(TO_ARCHIVE), &mut there)?;
        let logs = there.iter().filter(|(name, _)| name.kind == FILE_REDO);
        let logs: BTreeSet<LogFile> = logs.map(|(name, path)| log_file(*name, path)).collect();
        let whole = self.archiver.copy_logs(&logs)?;
        self.copy_states(&there)?;
        self.archiver.note_time(u64::try_from(clock::unix_micros() / 1_000).unwrap_or_default())?;
        if syncs {
            self.archiver.sync()?;
        }
        let is_aside =
            |path: &Path| path.parent().is_some_and(|parent| parent.ends_with(TO_ARCHIVE));
        for log in whole.iter().filter(|log| is_aside(&log.path)) {
            self.retire(FileName { kind: FILE_REDO, instance: log.instance, number: log.number })?;
        }
        let states =
            there.iter().filter(|(name, path)| name.kind == FILE_CONTROL && is_aside(path));
        for (name, _) in states {
            self.retire(*name)?;
        }
        Ok(())
    }

    /// Copies states that are new, in their order.
    fn copy_states(&mut self, there: &BTreeMap<FileName, PathBuf>) -> Result<(), BackupError> {
        let states = there.iter().filter(|(name, _)| name.kind == FILE_CONTROL);
        for (name, path) in states {
            if name.number <= self.state {
                continue;
            }
            let bytes = match fs::read(path) {
                Ok(bytes) => bytes,
                // It was put aside a moment ago.
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
                Err(error) => return Err(BackupError::File { path: path.clone(), error }),
            };
            if self.archiver.copy_state(&bytes)? {
                self.state = name.number;
            }
        }
        Ok(())
    }

    fn retire(&self, name: FileName) -> Result<(), BackupError> {
        match files::archived(&self.files, name) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                let path = self.files.join(TO_ARCHIVE).join(files::file_name(name));
                Err(BackupError::File { path, error })
            }
            _ => Ok(()),
        }
    }
}

fn log_file(name: FileName, path: &Path) -> LogFile {
    LogFile { instance: name.instance, number: name.number, path: path.to_path_buf() }
}

fn names(directory: &Path, names: &mut BTreeMap<FileName, PathBuf>) -> Result<(), BackupError> {
    let failed = |error| BackupError::File { path: directory.to_path_buf(), error };
    for entry in fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        if let Some(name) = name.and_then(files::parse_file_name) {
            names.insert(name, path);
        }
    }
    Ok(())
}
