//! What an archive has: of which epochs it tells everything, and when they ended (ARCHIVE-3).

use super::{
    Decode, Kept, Known, LOG_PREFIX, OPEN, STATE_PREFIX, TIMES_PREFIX, in_words,
    log_reader::LogReader,
    times::{At, Doubt, Times},
};
use crate::BackupError;
use lats_base::{Epoch, NodeId};
use lats_files::{
    control,
    redo::{self, Coverage, Record, RecordKind, Span, first_gap, void_after},
};
use std::{
    collections::BTreeMap,
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

/// What was found in the directories of an archive.
#[derive(Debug)]
pub struct Archive {
    pub(super) segments: Vec<Segment>,
    pub(super) states: Vec<(PathBuf, Kept)>,
    /// What restarts have begun with.
    pub(super) restored: Vec<Epoch>,
    /// When epochs had ended, and what was known then.
    pub(super) times: Times,
    /// The logs of each data manager of each node.
    pub(super) spans: BTreeMap<(NodeId, u16), Vec<Span>>,
    /// This was known when an epoch was sealed.
    commands: BTreeMap<Known, Epoch>,
}

/// A segment file of it.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    pub(super) path: PathBuf,
    pub(super) node: NodeId,
    pub(super) instance: u16,
    number: u64,
    life: u32,
    restarts: u32,
    /// So much of it could be read.
    pub(super) bytes: u64,
    /// Its changes are of these epochs.
    pub(super) epochs: (Epoch, Epoch),
    /// It, and those behind it, tell everything of the epochs after this one, whatever has become of those before it.
    pub(super) tells_after: Option<Epoch>,
}

/// Up to when rows are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// As of the newest moment that is there.
    End,
    /// As of a time, in ms since 1970.
    Time(u64),
    /// As of an epoch.
    Epoch(Epoch),
}

/// What can be restored.
#[derive(Clone, Debug)]
pub struct Moment {
    /// The rows are those of this epoch.
    pub epoch: Epoch,
    /// It had ended by then, in ms since 1970, if that is known.
    pub at_ms: Option<u64>,
    /// The logs of some data managers go on up to this epoch, and when that had ended.
    pub later: Option<(Epoch, Option<u64>)>,
    /// The clocks of nodes did not agree.
    pub doubt: Option<Doubt>,
    /// The definitions as they were then.
    pub kept: Kept,
}

impl Archive {
    /// Reads what is in these directories, and in those within them, of a cluster. It may be a lot: `told` hears how many bytes have
    /// been read.
    ///
    /// # Errors
    /// If there is nothing of that cluster, or a file cannot be read.
    pub fn open(
        directories: &[PathBuf],
        cluster: u64,
        decode: Decode,
        told: impl Fn(u64),
    ) -> Result<Self, BackupError> {
        let files = list(directories)?;
        let mut archive = Self {
            segments: Vec::new(),
            states: Vec::new(),
            restored: Vec::new(),
            times: Times::default(),
            spans: BTreeMap::new(),
            commands: BTreeMap::new(),
        };
        for path in &files {
            archive.take_file(path, cluster, decode)?;
        }
        if archive.segments.is_empty() || archive.states.is_empty() {
            return Err(BackupError::Refused(format!(
                "there are no redo logs and states of cluster {cluster:016x} in {}; name the directory that its nodes archive into",
                directories.iter().map(|d| d.display().to_string()).collect::<Vec<_>>().join(", ")
            )));
        }
        archive.states.sort_by_key(|(_, kept)| kept.known());
        archive.times.sort();
        archive.restored = archive.newest().map(|kept| kept.restored.clone()).unwrap_or_default();
        archive.survey(told)?;
        Ok(archive)
    }

    fn take_file(&mut self, path: &Path, cluster: u64, decode: Decode) -> Result<(), BackupError> {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let ends = |with: &str| path.extension().is_some_and(|e| e == with);
        if let Some(head) = head_of(path)? {
            let Some(segment) = Some(head).filter(|head| head.log.cluster == cluster) else {
                return Ok(());
            };
            self.segments.push(Segment {
                path: path.to_path_buf(),
                node: segment.log.node,
                instance: segment.log.instance,
                number: segment.number,
                life: segment.log.life.get(),
                restarts: segment.restarts,
                bytes: 0,
                epochs: (Epoch::new(u64::MAX), Epoch::default()),
                tells_after: None,
            });
        } else if name.starts_with(STATE_PREFIX) && ends("state") {
            let Some(bytes) = read_if_there(path)? else { return Ok(()) };
            let content = control::open(&bytes).ok().filter(|(of, _)| of.cluster == cluster);
            let kept = content.and_then(|(_, content)| decode(content));
            self.states.extend(kept.map(|kept| (path.to_path_buf(), kept)));
        } else if name.starts_with(TIMES_PREFIX) && ends("lats") {
            self.times.take_file(path, cluster)?;
        }
        Ok(())
    }

    /// Reads all logs once.
    fn survey(&mut self, told: impl Fn(u64)) -> Result<(), BackupError> {
        self.segments.sort_by_key(|s| (s.node, s.instance, s.order()));
        let mut coverages: BTreeMap<(NodeId, u16), Coverage> = BTreeMap::new();
        let Self { segments, restored, commands, .. } = self;
        for segment in segments {
            if segment.restarts as usize > restored.len() {
                return Err(BackupError::Refused(format!(
                    "{} was written after {} restarts of the cluster, and no state here knows more than {}: name the \
                     directories of more nodes",
                    segment.path.display(),
                    segment.restarts,
                    restored.len()
                )));
            }
            let of = (segment.node, segment.instance);
            let coverage = coverages.entry(of).or_insert_with(|| Coverage::new(restored));
            told(segment.survey(restored, coverage, commands)?);
        }
        let spans = coverages.into_iter().map(|(of, coverage)| (of, coverage.spans()));
        self.spans = spans.collect();
        Ok(())
    }

    /// What can be restored on top of a backup.
    ///
    /// # Errors
    /// Why nothing can.
    pub fn moment(&self, backup: Epoch, until: Until) -> Result<Moment, BackupError> {
        let (epoch, known, doubt) = match until {
            Until::Epoch(epoch) => (epoch, (0, 0), None),
            Until::Time(at_ms) => {
                let At { epoch, known, doubt } = self.times.at(at_ms)?;
                (epoch, known, doubt)
            }
            Until::End => {
                let (epoch, known) = self.end(backup)?;
                (epoch, known, None)
            }
        };
        if epoch < backup {
            let at = self.said(backup)?;
            return Err(BackupError::Refused(format!(
                "the backup has the rows of epoch {backup}{at}, which is later than what is wanted: use an earlier backup"
            )));
        }
        let wanted = Span { after: backup, upto: epoch };
        if let Some((of, gap)) = self.gaps(wanted).next() {
            return Err(self.has_gap(backup, of, gap)?);
        }
        let kept = self.state_at(epoch, known);
        let told = self.spans.values().flatten().map(|span| span.upto).max();
        let later = told.filter(|told| until == Until::End && *told > epoch);
        let later = later.map(|later| Ok::<_, BackupError>((later, self.ended_at(later)?)));
        let (at_ms, later) = (self.ended_at(epoch)?, later.transpose()?);
        Ok(Moment { epoch, at_ms, later, doubt, kept })
    }

    fn has_gap(
        &self,
        backup: Epoch,
        (group, instance): (usize, u16),
        gap: Span,
    ) -> Result<BackupError, BackupError> {
        let end = self.reaches(backup);
        Ok(BackupError::Refused(format!(
            "the archive does not tell everything of the epochs {} to {} (of node group {group}, data manager {instance}): segments are \
             missing or damaged. With this backup rows can be restored up to there (--until epoch:{end}){}; or name the directories of more nodes",
            gap.after.get() + 1,
            gap.upto,
            self.said(end)?
        )))
    }

    /// The newest epoch of which everything is told, and what was known then, as far as anything was noted later.
    fn end(&self, backup: Epoch) -> Result<(Epoch, Known), BackupError> {
        let wanted = Span { after: backup, upto: Epoch::new(u64::MAX) };
        if let Some((of, gap)) = self.gaps(wanted).find(|(_, gap)| gap.upto < wanted.upto) {
            return Err(self.has_gap(backup, of, gap)?);
        }
        let epoch = self.reaches(backup);
        let is_last = self.times.newest() <= epoch;
        let known = if is_last { (u64::MAX, u64::MAX) } else { self.times.known_by(epoch)? };
        Ok((epoch, known))
    }

    /// When the epoch is known to have ended, in ms since 1970.
    ///
    /// # Errors
    /// If what was noted cannot be read.
    pub fn ended_at(&self, epoch: Epoch) -> Result<Option<u64>, BackupError> {
        self.times.ended_at(epoch)
    }

    fn said(&self, epoch: Epoch) -> Result<String, BackupError> {
        let words = |at_ms| format!(", at {} (UTC)", in_words(at_ms));
        Ok(self.ended_at(epoch)?.map(words).unwrap_or_default())
    }

    /// The newest state.
    fn newest(&self) -> Option<&Kept> {
        self.states.last().map(|(_, kept)| kept)
    }

    /// The groups' nodes, and data managers of each.
    pub(super) fn managers(&self) -> impl Iterator<Item = ((usize, u16), &[NodeId])> {
        let newest = self.newest();
        let instances = newest.map_or(0, |kept| kept.instances);
        let groups = newest.into_iter().flat_map(|kept| &kept.groups).enumerate();
        groups.flat_map(move |(group, nodes)| {
            (0..instances).map(move |instance| ((group, instance), &nodes[..]))
        })
    }

    pub(super) fn spans_of(&self, nodes: &[NodeId], instance: u16) -> Vec<Span> {
        let spans = nodes.iter().filter_map(|node| self.spans.get(&(*node, instance)));
        spans.flatten().copied().collect()
    }

    /// Which data managers nobody tells everything of.
    fn gaps(&self, wanted: Span) -> impl Iterator<Item = ((usize, u16), Span)> {
        self.managers().filter_map(move |(of, nodes)| {
            Some((of, first_gap(&self.spans_of(nodes, of.1), wanted)?))
        })
    }

    /// From a backup on everything is told up to this epoch.
    fn reaches(&self, backup: Epoch) -> Epoch {
        let wanted = Span { after: backup, upto: Epoch::new(u64::MAX) };
        self.gaps(wanted).map(|(_, gap)| gap.after).min().unwrap_or(backup)
    }

    /// The nodes whose logs are to be read for these epochs: one of each group that has all, or all of them.
    pub(super) fn tellers(&self, wanted: Span) -> Vec<(NodeId, u16)> {
        let mut tellers = Vec::new();
        for ((_, instance), nodes) in self.managers() {
            let has_all =
                |node: &&NodeId| first_gap(&self.spans_of(&[**node], instance), wanted).is_none();
            match nodes.iter().find(has_all) {
                Some(node) => tellers.push((*node, instance)),
                None => tellers.extend(nodes.iter().map(|node| (*node, instance))),
            }
        }
        tellers
    }

    /// The newest state that was known when an epoch was sealed, or that knows no more than this: definitions change also while no
    /// rows do.
    fn state_at(&self, epoch: Epoch, known: Known) -> Kept {
        let sealed = self.commands.iter().filter(|(_, at)| **at <= epoch);
        let by_then = sealed.map(|(known, _)| *known).fold(known, Known::max);
        let known = |kept: &&Kept| kept.known() <= by_then;
        let states = || self.states.iter().map(|(_, kept)| kept);
        let newest = states().rev().find(known).or(states().next()).cloned();
        newest.unwrap_or_else(|| Kept {
            commands: 0,
            restored: Vec::new(),
            groups: Vec::new(),
            instances: 0,
            catalog: Default::default(),
        })
    }
}

impl Segment {
    /// Where it stands in its log. Lives follow each other within one restart of the cluster; clocks, which they are numbered by,
    /// may have been set back before the next.
    pub(super) fn order(&self) -> (u32, u32, u64) {
        (self.restarts, self.life, self.number)
    }

    /// Reads it; gives its bytes.
    fn survey(
        &mut self,
        restored: &[Epoch],
        coverage: &mut Coverage,
        commands: &mut BTreeMap<Known, Epoch>,
    ) -> Result<u64, BackupError> {
        let Self { path, epochs, bytes, tells_after, .. } = self;
        let mut alone = Coverage::new(restored);
        let mut reader = match LogReader::open(path) {
            // It was one of a running node: who reads on sees what is missing.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(0),
            opened => opened.map_err(BackupError::file(path))?,
        };
        let head = reader.head().map_err(BackupError::file(path))?;
        if let Some(head) = &head {
            coverage.begin(head);
            alone.begin(head);
        }
        let show = |record: &Record<'_>, restarts| {
            coverage.note(record, restarts);
            alone.note(record, restarts);
            match record.kind {
                RecordKind::Seal if record.epoch <= void_after(restored, restarts) => {
                    let known = (u64::from(restarts), record.seal.commands);
                    let since = commands.entry(known).or_insert(record.epoch);
                    *since = record.epoch.min(*since);
                }
                RecordKind::Changes if record.tells_of_change() => {
                    *epochs = (epochs.0.min(record.epoch), epochs.1.max(record.epoch));
                }
                RecordKind::Changes | RecordKind::Seal => {}
            }
        };
        let _ = reader.read_all(show).map_err(BackupError::file(path))?;
        if let Some(end) = reader.segment() {
            coverage.note_place(end);
        }
        *tells_after = alone.spans().first().map(|span| span.after);
        *bytes = reader.at();
        Ok(*bytes)
    }
}

/// None: it was one of a running node, and has gone.
fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, BackupError> {
    match fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        read => read.map(Some).map_err(BackupError::file(path)),
    }
}

/// The head of a segment file; none: it is something else, or was one of a running node and has gone.
fn head_of(path: &Path) -> Result<Option<redo::Segment<'static>>, BackupError> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is_log = path.extension().is_some_and(|ends| ends == "log" || ends == OPEN);
    if !name.starts_with(LOG_PREFIX) || !is_log {
        return Ok(None);
    }
    match LogReader::open(path).and_then(|reader| reader.head()) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        head => head.map_err(BackupError::file(path)),
    }
}

/// The heads of all segments in these directories.
pub(super) fn heads(
    directories: &[PathBuf],
) -> Result<Vec<(PathBuf, redo::Segment<'static>)>, BackupError> {
    let mut heads = Vec::new();
    for path in list(directories)? {
        let head = head_of(&path)?;
        heads.extend(head.map(|head| (path, head)));
    }
    Ok(heads)
}

/// Directories within directories are looked into so far.
const DEPTH_MAX: usize = 3;

/// All files there.
fn list(directories: &[PathBuf]) -> Result<Vec<PathBuf>, BackupError> {
    let mut files = Vec::new();
    for directory in directories {
        list_within(directory, DEPTH_MAX, &mut files)?;
    }
    Ok(files)
}

fn list_within(
    directory: &Path,
    depth: usize,
    files: &mut Vec<PathBuf>,
) -> Result<(), BackupError> {
    // What file systems keep for themselves.
    let hidden = |name: &str| name.starts_with('.') || name == "lost+found";
    let name = directory.file_name().and_then(|name| name.to_str());
    if depth < DEPTH_MAX && name.is_some_and(hidden) {
        return Ok(());
    }
    let entries = match fs::read_dir(directory) {
        // It was one of a running node.
        Err(error) if error.kind() == ErrorKind::NotFound && depth < DEPTH_MAX => return Ok(()),
        entries => entries.map_err(BackupError::file(directory))?,
    };
    for entry in entries {
        let path = entry.map_err(BackupError::file(directory))?.path();
        match path.is_dir() {
            true if depth > 0 => list_within(&path, depth - 1, files)?,
            true => {}
            false => files.push(path),
        }
    }
    Ok(())
}
