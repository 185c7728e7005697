//! What an archive has: of which epochs it tells everything, and when they ended (ARCHIVE-3).

use super::{
    Decode, Ended, Kept, Known, LOG_PREFIX, OPEN, STATE_PREFIX, TIMES_PREFIX, log_reader::LogReader,
};
use crate::BackupError;
use lats_base::{Epoch, NodeId};
use lats_files::{
    control,
    redo::{Coverage, Record, RecordKind, Span, first_gap, void_after},
};
use lats_values::DateTime;
use std::{
    collections::BTreeMap,
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};
use zerocopy::FromBytes;

/// What was found in the directories of an archive.
#[derive(Debug)]
pub struct Archive {
    pub(super) segments: Vec<Segment>,
    states: Vec<Kept>,
    /// What restarts have begun with.
    pub(super) restored: Vec<Epoch>,
    /// When epochs had ended, and what was known then.
    times: Vec<Time>,
    /// The logs of each data manager of each node.
    spans: BTreeMap<(NodeId, u16), Vec<Span>>,
    /// This was known when an epoch was sealed.
    commands: BTreeMap<Known, Epoch>,
}

/// ms since 1970, the epoch that had ended, what was known.
type Time = (u64, Epoch, Known);

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
        let mut files = Vec::new();
        for directory in directories {
            list(directory, DEPTH_MAX, &mut files)?;
        }
        let mut archive = Self {
            segments: Vec::new(),
            states: Vec::new(),
            restored: Vec::new(),
            times: Vec::new(),
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
        archive.states.sort_by_key(Kept::known);
        archive.restored =
            archive.states.last().map(|kept| kept.restored.clone()).unwrap_or_default();
        archive.times.sort_unstable();
        archive.times = what_is_new(std::mem::take(&mut archive.times)).collect();
        archive.survey(told)?;
        Ok(archive)
    }

    fn take_file(&mut self, path: &Path, cluster: u64, decode: Decode) -> Result<(), BackupError> {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let ends = |with: &str| path.extension().is_some_and(|e| e == with);
        if name.starts_with(LOG_PREFIX) && (ends("log") || ends(OPEN)) {
            let reader = match LogReader::open(path) {
                // It was one of a running node.
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
                opened => opened.map_err(BackupError::file(path))?,
            };
            let head = reader.head().map_err(BackupError::file(path))?;
            let Some(segment) = head.filter(|head| head.log.cluster == cluster) else {
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
            });
        } else if name.starts_with(STATE_PREFIX) && ends("state") {
            let Some(bytes) = read_if_there(path)? else { return Ok(()) };
            let content = control::open(&bytes).ok().filter(|(of, _)| of.cluster == cluster);
            self.states.extend(content.and_then(|(_, content)| decode(content)));
        } else if name.starts_with(TIMES_PREFIX) && ends("lats") {
            let Some(bytes) = read_if_there(path)? else { return Ok(()) };
            let ends =
                ends_in(&bytes).map(|end| (end.at_ms, end.epoch, (end.restarts, end.commands)));
            self.times.extend(what_is_new(ends));
        }
        Ok(())
    }

    /// Reads all logs once.
    fn survey(&mut self, told: impl Fn(u64)) -> Result<(), BackupError> {
        self.segments.sort_by_key(|s| (s.node, s.instance, s.life, s.number));
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
        let (epoch, known) = match until {
            Until::Epoch(epoch) => (epoch, (0, 0)),
            Until::Time(at_ms) => self.known_at(at_ms)?,
            Until::End => self.end(backup)?,
        };
        if epoch < backup {
            let at = self.said(backup);
            return Err(BackupError::Refused(format!(
                "the backup has the rows of epoch {backup}{at}, which is later than what is wanted: use an earlier backup"
            )));
        }
        let wanted = Span { after: backup, upto: epoch };
        if let Some((of, gap)) = self.gaps(wanted).next() {
            return Err(self.has_gap(backup, of, gap));
        }
        let kept = self.state_at(epoch, known);
        let told = self.spans.values().flatten().map(|span| span.upto).max();
        let later = told.filter(|told| until == Until::End && *told > epoch);
        let later = later.map(|later| (later, self.ended_at(later)));
        Ok(Moment { epoch, at_ms: self.ended_at(epoch), later, kept })
    }

    fn has_gap(&self, backup: Epoch, (group, instance): (usize, u16), gap: Span) -> BackupError {
        let end = self.reaches(backup);
        BackupError::Refused(format!(
            "the archive does not tell everything of the epochs {} to {} (of node group {group}, data manager {instance}): segments are \
             missing or damaged. With this backup rows can be restored up to there (--until epoch:{end}){}; or name the directories of more nodes",
            gap.after.get() + 1,
            gap.upto,
            self.said(end)
        ))
    }

    /// The newest epoch of which everything is told, and what was known then, as far as anything was noted later.
    fn end(&self, backup: Epoch) -> Result<(Epoch, Known), BackupError> {
        let wanted = Span { after: backup, upto: Epoch::new(u64::MAX) };
        if let Some((of, gap)) = self.gaps(wanted).find(|(_, gap)| gap.upto < wanted.upto) {
            return Err(self.has_gap(backup, of, gap));
        }
        let epoch = self.reaches(backup);
        let by_then = self.times.iter().filter(|(_, at, _)| *at <= epoch).map(|(.., known)| *known);
        let is_last = self.times.iter().all(|(_, at, _)| *at <= epoch);
        let newest = (u64::MAX, u64::MAX);
        Ok((epoch, if is_last { newest } else { by_then.max().unwrap_or_default() }))
    }

    /// ARCHIVE-5: the epoch that was the newest to have ended at a time, and what was known.
    fn known_at(&self, at_ms: u64) -> Result<(Epoch, Known), BackupError> {
        let (first, last) = (self.times.first(), self.times.last());
        if last.is_none_or(|(last, ..)| at_ms > *last) {
            let last = last.map(|(at_ms, ..)| in_words(*at_ms)).unwrap_or_default();
            return Err(BackupError::Refused(format!(
                "the archive goes up to {last} (UTC); restore without --until what is there, or name the directories of more nodes"
            )));
        }
        let before = self.times.iter().filter(|(at, ..)| *at <= at_ms);
        let known = |(_, epoch, known): &Time| (*epoch, *known);
        let newest = |a: (Epoch, Known), b: (Epoch, Known)| (a.0.max(b.0), a.1.max(b.1));
        before.map(known).reduce(newest).ok_or_else(|| {
            let first = first.map(|(at_ms, ..)| in_words(*at_ms)).unwrap_or_default();
            BackupError::Refused(format!("the archive begins at {first} (UTC), which is later"))
        })
    }

    /// When the epoch is known to have ended.
    fn ended_at(&self, epoch: Epoch) -> Option<u64> {
        self.times.iter().find(|(_, ended, _)| *ended >= epoch).map(|(at_ms, ..)| *at_ms)
    }

    fn said(&self, epoch: Epoch) -> String {
        let words = |at_ms| format!(", at {} (UTC)", in_words(at_ms));
        self.ended_at(epoch).map(words).unwrap_or_default()
    }

    /// The groups' nodes, and data managers of each.
    fn managers(&self) -> impl Iterator<Item = ((usize, u16), &[NodeId])> {
        let newest = self.states.last();
        let instances = newest.map_or(0, |kept| kept.instances);
        let groups = newest.into_iter().flat_map(|kept| &kept.groups).enumerate();
        groups.flat_map(move |(group, nodes)| {
            (0..instances).map(move |instance| ((group, instance), &nodes[..]))
        })
    }

    fn spans_of(&self, nodes: &[NodeId], instance: u16) -> Vec<Span> {
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
        let newest = self.states.iter().rev().find(known);
        let newest = newest.or(self.states.first()).cloned();
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
    /// Reads it; gives its bytes.
    fn survey(
        &mut self,
        restored: &[Epoch],
        coverage: &mut Coverage,
        commands: &mut BTreeMap<Known, Epoch>,
    ) -> Result<u64, BackupError> {
        let Self { path, epochs, bytes, .. } = self;
        let mut reader = match LogReader::open(path) {
            // It was one of a running node: who reads on sees what is missing.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(0),
            opened => opened.map_err(BackupError::file(path))?,
        };
        let head = reader.head().map_err(BackupError::file(path))?;
        if let Some(head) = &head {
            coverage.begin(head);
        }
        let show = |record: &Record<'_>, restarts| {
            coverage.note(record, restarts);
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
        *bytes = reader.at();
        Ok(*bytes)
    }
}

/// Of times in their order: those that say more than all before them; and the last one.
fn what_is_new(times: impl IntoIterator<Item = Time>) -> impl Iterator<Item = Time> {
    let mut times = times.into_iter().peekable();
    let mut newest = (Epoch::default(), (0, 0));
    std::iter::from_fn(move || {
        loop {
            let (at_ms, epoch, known) = times.next()?;
            let now = (newest.0.max(epoch), newest.1.max(known));
            if std::mem::replace(&mut newest, now) != now || times.peek().is_none() {
                return Some((at_ms, epoch, known));
            }
        }
    })
}

/// A time in words.
pub fn in_words(at_ms: u64) -> String {
    let micros = i64::try_from(at_ms).unwrap_or(i64::MAX).saturating_mul(1_000);
    let time = DateTime::from_unix_micros(micros, 3);
    time.map_or_else(|| format!("{at_ms} ms after 1970"), |time| time.to_string())
}

/// The whole entries of a file of times.
fn ends_in(bytes: &[u8]) -> impl Iterator<Item = Ended> {
    let entries = bytes.as_chunks::<{ size_of::<Ended>() }>().0.iter();
    let entries = entries.filter_map(|bytes| Ended::read_from_bytes(bytes).ok());
    entries.filter(|ended| ended.checksum == ended.sum())
}

/// The times in such a file, each with the epoch that had ended; and false if some of them are damaged.
pub fn times_in(bytes: &[u8]) -> (Vec<(u64, Epoch)>, bool) {
    let times: Vec<_> = ends_in(bytes).map(|ended| (ended.at_ms, ended.epoch)).collect();
    let whole = times.len() == bytes.len() / size_of::<Ended>();
    (times, whole)
}

/// None: it was one of a running node, and has gone.
fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, BackupError> {
    match fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        read => read.map(Some).map_err(BackupError::file(path)),
    }
}

/// Directories within directories are looked into so far.
const DEPTH_MAX: usize = 3;

fn list(directory: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<(), BackupError> {
    for entry in fs::read_dir(directory).map_err(BackupError::file(directory))? {
        let path = entry.map_err(BackupError::file(directory))?.path();
        match path.is_dir() {
            true if depth > 0 => list(&path, depth - 1, files)?,
            true => {}
            false => files.push(path),
        }
    }
    Ok(())
}
