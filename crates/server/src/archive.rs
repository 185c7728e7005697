//! A node that archives: a thread beside it copies what stands in its files (`docs/protocols/archive.md`).

pub(crate) mod upkeep;

use crate::{cluster_file::ClusterFile, node::node_directory};
use anyhow::{Context, bail};
use lats_backup::{
    BackupError,
    archive::{Archiver, Copied, Kept, LogFile},
};
use lats_base::NodeId;
use lats_runtime::{
    clock,
    files::{self, TO_ARCHIVE},
};
use lats_signals::io::{FILE_CONTROL, FILE_REDO, FileName};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{ErrorKind, Write},
    panic::AssertUnwindSafe,
    path::{Path, PathBuf},
    time::Duration,
};

/// Where a node of a cluster archives.
pub(crate) fn directory(archive: &Path, cluster: u64, node: u16) -> PathBuf {
    node_directory(&directory_of_cluster(archive, cluster), node)
}

fn directory_of_cluster(archive: &Path, cluster: u64) -> PathBuf {
    archive.join(format!("{cluster:016x}"))
}

/// What `--archive` says to end it.
pub(crate) const OFF: &str = "off";

/// Nodes archive only where this file is: a file system that is not mounted has none.
const MARKER: &str = "latsdb-archive";
const MARKER_TEXT: &str =
    "An archive of LatsDB. Nodes write into this directory as long as this file is in it.\n";

/// Archives are not in object stores.
pub(crate) fn is_directory(path: &Path) -> anyhow::Result<()> {
    match path.to_string_lossy().contains("://") {
        true => bail!(
            "archives are directories: mount what {} means, and name where that is",
            path.display()
        ),
        false => Ok(()),
    }
}

/// What `--archive` says, if it says something. A directory that is new to the cluster is made.
pub(crate) fn set(cluster: &mut ClusterFile, told: Option<&Path>) -> anyhow::Result<()> {
    let Some(path) = told else { return Ok(()) };
    if path == Path::new(OFF) {
        cluster.archive = None;
        return Ok(());
    }
    is_directory(path)?;
    let failed = || format!("cannot archive into {}", path.display());
    // Whoever reads it may work elsewhere.
    let path = std::path::absolute(path).with_context(failed)?;
    if cluster.archive.as_ref() != Some(&path) {
        lats_backup::make_directory(&path).with_context(failed)?;
        match fs::File::create_new(path.join(MARKER)) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => made
                .and_then(|mut file| {
                    file.write_all(MARKER_TEXT.as_bytes())?;
                    file.sync_all()?;
                    fs::File::open(&path)?.sync_all()
                })
                .with_context(failed)?,
        }
        cluster.archive = Some(path);
    }
    Ok(())
}

/// What a node is told is kept: it holds for its next lives, too.
pub(crate) fn keep(
    cluster: &mut ClusterFile,
    data_dir: &Path,
    told: Option<&Path>,
) -> anyhow::Result<()> {
    let former = cluster.archive.clone();
    set(cluster, told)?;
    if cluster.archive != former {
        let mut kept = ClusterFile::read(data_dir)?;
        kept.archive.clone_from(&cluster.archive);
        kept.write(data_dir)?;
    }
    Ok(())
}

/// New records are looked for so often: epochs are as old as that when their end is noted.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// What was copied is made safe with every so many looks.
const SYNC_EVERY: u32 = 10;
/// A disk that fails is tried again, and that is said, so often.
const RETRY: Duration = Duration::from_secs(1);
const SAID_EVERY: u32 = 60;

/// ARCHIVE-1: begins to archive what is in a node's directory, if that is wanted, in a thread of its own.
pub(crate) fn begin(files: &Path, cluster: &ClusterFile, node: u16) -> anyhow::Result<()> {
    let Some(archive) = &cluster.archive else { return is_off(files) };
    let aside = files.join(TO_ARCHIVE);
    fs::create_dir_all(&aside).with_context(|| format!("cannot make {}", aside.display()))?;
    let mut work = Work {
        files: files.to_path_buf(),
        archive: archive.clone(),
        directory: directory(archive, cluster.cluster_id, node),
        of: (cluster.cluster_id, NodeId::new(node)),
        archiver: None,
        state: 0,
        has_gone: false,
        failures: 0,
    };
    let named = std::thread::Builder::new().name("lats-archive".to_string());
    named.spawn(move || work.run_for_ever())?;
    Ok(())
}

/// The node does not archive: what a former life has put aside for that is not wanted.
fn is_off(files: &Path) -> anyhow::Result<()> {
    let aside = files.join(TO_ARCHIVE);
    let (count, bytes) = size_of(&aside);
    if count > 0 {
        tracing::warn!(
            "{count} files ({} MiB) that waited for being archived are removed: this node does not archive any more",
            bytes >> 20
        );
    }
    match fs::remove_dir_all(&aside) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", aside.display()))
        }
        _ => Ok(()),
    }
}

/// How many files there are, and their bytes.
fn size_of(directory: &Path) -> (usize, u64) {
    let files = fs::read_dir(directory).into_iter().flatten().flatten();
    let bytes = files.map(|file| file.metadata().map_or(0, |metadata| metadata.len()));
    bytes.fold((0, 0), |(count, all), bytes| (count + 1, all + bytes))
}

/// What an archive needs to know of a control state.
pub(crate) fn decode(content: &[u8]) -> Option<Kept> {
    let state = lats_node::control::decode_kept(content).ok()?.state;
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
    /// The archive, and what this node has there.
    archive: PathBuf,
    directory: PathBuf,
    /// The cluster, and the node.
    of: (u64, NodeId),
    archiver: Option<Archiver>,
    /// The newest control file that was copied.
    state: u32,
    /// The archive, or what this node has there, was not there at the last look.
    has_gone: bool,
    /// So many looks, one after the other, have failed.
    failures: u32,
}

impl Work {
    /// What panics here has been told already; nothing of the node depends on it.
    fn run_for_ever(&mut self) {
        loop {
            let _ = std::panic::catch_unwind(AssertUnwindSafe(|| self.run()));
            (self.archiver, self.state) = (None, 0);
            crate::supervisor::pause(RETRY);
        }
    }

    fn run(&mut self) {
        loop {
            for look in 0..SYNC_EVERY {
                let pause = match self.look(look + 1 == SYNC_EVERY) {
                    Ok(is_behind) => {
                        if std::mem::take(&mut self.failures) > 0 {
                            tracing::info!("archiving goes on");
                        }
                        if is_behind { Duration::ZERO } else { LOOK_EVERY }
                    }
                    Err(error) => {
                        self.complain(&error);
                        RETRY
                    }
                };
                crate::supervisor::pause(pause);
            }
        }
    }

    fn complain(&mut self, error: &BackupError) {
        if self.failures.is_multiple_of(SAID_EVERY) {
            let (count, bytes) = size_of(&self.files.join(TO_ARCHIVE));
            tracing::error!(
                "archiving waits, and files that are to be archived stay on the node's disk ({count} files, {} MiB in {}): {error}; make room there, or mend that disk",
                bytes >> 20,
                self.files.display()
            );
        }
        self.failures = self.failures.saturating_add(1);
    }

    /// One look at everything; what fails does not keep the rest from being archived. True if there is more to do.
    fn look(&mut self, syncs: bool) -> Result<bool, BackupError> {
        let mut there = BTreeMap::new();
        // What is put aside meanwhile is found in one of them at least.
        names(&self.files, &mut there)?;
        names(&self.files.join(TO_ARCHIVE), &mut there)?;
        let archiver = self.archiver()?;
        let logs = there.iter().filter(|(name, _)| name.kind == FILE_REDO);
        let logs: BTreeSet<LogFile> = logs.map(|(name, path)| log_file(*name, path)).collect();
        let Copied { whole, unreadable, failed, is_behind, is_current } = archiver.copy_logs(&logs);
        for log in unreadable {
            tracing::error!(
                "{} is damaged; it was archived as it is, and restoring needs what another node has archived",
                log.path.display()
            );
        }
        let mut done = failed.map_or(Ok(()), Err);
        done = done.and(self.copy_states(&there));
        // The same one: what was whole a moment ago is so in no other.
        let Some(archiver) = &mut self.archiver else { return done.map(|()| is_behind) };
        if is_current {
            done = done.and(archiver.note_time(now_ms()));
        }
        if syncs {
            done = done.and(archiver.sync());
        }
        let is_aside =
            |path: &Path| path.parent().is_some_and(|parent| parent.ends_with(TO_ARCHIVE));
        for log in whole.iter().filter(|log| is_aside(&log.path)) {
            let name = FileName { kind: FILE_REDO, instance: log.instance, number: log.number };
            done = done.and(self.retire(name));
        }
        let (upto, is_control) = (self.state, |name: &FileName| name.kind == FILE_CONTROL);
        let states = there.iter().filter(|(name, path)| is_control(name) && is_aside(path));
        for (name, _) in states.filter(|(name, _)| name.number <= upto) {
            done = done.and(self.retire(*name));
        }
        done.map(|()| is_behind)
    }

    /// Where it goes to, as long as that is there.
    fn archiver(&mut self) -> Result<&mut Archiver, BackupError> {
        if self.archiver.is_none() || self.failures > 0 {
            let marker = self.archive.join(MARKER);
            if !marker.try_exists().unwrap_or(false) {
                self.has_gone = true;
                return Err(BackupError::Refused(format!(
                    "there is no {}: the archive is not mounted, or was removed (if it is to begin anew, make that file)",
                    marker.display()
                )));
            }
        }
        match &mut self.archiver {
            Some(archiver) => {
                let has_gone = self.has_gone || self.failures > 0 && !self.directory.is_dir();
                if has_gone {
                    // What was copied may not be there any more.
                    archiver.begin_anew()?;
                    (self.has_gone, self.state) = (false, 0);
                }
                Ok(archiver)
            }
            none => {
                self.has_gone = false;
                Ok(none.insert(Archiver::new(&self.directory, self.of, decode)?))
            }
        }
    }

    /// Copies states that are new, in their order.
    fn copy_states(&mut self, there: &BTreeMap<FileName, PathBuf>) -> Result<(), BackupError> {
        let Some(archiver) = &mut self.archiver else { return Ok(()) };
        let states = there.iter().filter(|(name, _)| name.kind == FILE_CONTROL);
        let (mut done, copied) = (Ok(()), self.state);
        for (name, path) in states.filter(|(name, _)| name.number > copied) {
            match fs::read(path) {
                Ok(bytes) => {
                    if archiver.copy_state(&bytes)? {
                        self.state = name.number;
                    }
                }
                // It was put aside a moment ago.
                Err(error) if error.kind() == ErrorKind::NotFound => return done,
                // A newer one knows more.
                Err(error) => done = Err(BackupError::File { path: path.clone(), error }),
            }
        }
        done
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

fn now_ms() -> u64 {
    u64::try_from(clock::unix_micros() / 1_000).unwrap_or_default()
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
