//! Writing an archive, beside a node that serves: what stands in its files is copied as it comes (ARCHIVE-1, ARCHIVE-2).

use super::{
    Decode, LOG_PREFIX, OPEN, STATE_PREFIX, TIMES_PREFIX,
    log_reader::{LogReader, Read},
    times::{Ended, Head},
};
use crate::{
    BackupError,
    place::{make_directory, sync_directory},
};
use lats_base::{Epoch, Incarnation, NodeId};
use lats_files::{
    control,
    redo::{RecordKind, SEGMENT_HEAD_BYTES},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io::ErrorKind,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};
use zerocopy::IntoBytes;

/// A segment file as the node has it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogFile {
    /// The data manager.
    pub instance: u16,
    /// The number of the segment.
    pub number: u32,
    /// Where it is now.
    pub path: PathBuf,
}

/// Writes what a node has into its directory of an archive.
pub struct Archiver {
    directory: PathBuf,
    /// Whose it is: the cluster, the node.
    of: (u64, NodeId),
    decode: Decode,
    /// Segments that are in the archive as wholes.
    done: BTreeSet<(u16, u32)>,
    /// Segments that are being copied: of each data manager the newest one.
    streams: BTreeMap<(u16, u32), Stream>,
    /// A sync of them has failed, and they could not be removed: what can be read of them may not be on disk (DURABLE-4).
    suspect: BTreeSet<PathBuf>,
    /// The newest state that was copied: restarts, version of the catalog; and what is known: restarts, commands.
    state: Option<(usize, u64)>,
    known: (u64, u64),
    times: Option<TimesFile>,
    /// The newest epoch that a seal was seen of; what was said last, and when.
    sealed: Epoch,
    said: ((Epoch, (u64, u64)), u64),
    /// Something was written since the last sync.
    is_dirty: bool,
}

/// What has become of segments.
#[derive(Debug, Default)]
pub struct Copied {
    /// They are in the archive as wholes.
    pub whole: Vec<LogFile>,
    /// So are these, as they are: they have a head that cannot be read, or records are missing between them and the next ones.
    pub unreadable: Vec<LogFile>,
    /// Something went wrong with others; whoever calls again goes on where they were.
    pub failed: Option<BackupError>,
    /// There is more to be copied now.
    pub is_behind: bool,
    /// The newest segments were read to their ends.
    pub is_current: bool,
}

/// A file of times.
struct TimesFile {
    path: PathBuf,
    file: File,
    bytes: u64,
    day: u64,
}

/// A segment that is being copied.
struct Stream {
    reader: LogReader,
    to: To,
}

/// Where a segment goes.
enum To {
    /// Its head has not been read yet.
    Unknown,
    /// The archive has all of it.
    Done,
    Copy(Copy),
}

struct Copy {
    path: PathBuf,
    file: File,
    /// So much is there.
    bytes: u64,
}

/// So many segments are copied before what they have is noted, and their files are given back.
const SEGMENTS_AT_ONCE: usize = 8;
/// At rest the time is said so often.
const SAID_EVERY_MS: u64 = 1_000;
const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

impl Archiver {
    /// Goes on with what is in the directory.
    ///
    /// # Errors
    /// If it cannot be written into.
    pub fn new(directory: &Path, of: (u64, NodeId), decode: Decode) -> Result<Self, BackupError> {
        make_directory(directory)?;
        Ok(Self {
            directory: directory.to_path_buf(),
            of,
            decode,
            done: BTreeSet::new(),
            streams: BTreeMap::new(),
            suspect: BTreeSet::new(),
            state: None,
            known: (0, 0),
            times: None,
            sealed: Epoch::default(),
            said: Default::default(),
            is_dirty: false,
        })
    }

    /// The directory is another one than it was, or was emptied: everything that is still there of the node is copied once more.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn begin_anew(&mut self) -> Result<(), BackupError> {
        let suspect = std::mem::take(&mut self.suspect);
        let new = Self::new(&self.directory, self.of, self.decode)?;
        *self = Self { suspect, is_dirty: true, ..new };
        Ok(())
    }

    /// Copies what is new in the node's logs: all of its segments that are still there.
    pub fn copy_logs(&mut self, logs: &BTreeSet<LogFile>) -> Copied {
        let mut copied = Copied { is_current: true, ..Copied::default() };
        let (mut later, mut fresh) = (logs.iter().skip(1), 0);
        for log in logs {
            let next = later.next().filter(|next| next.instance == log.instance);
            let at = (log.instance, log.number);
            if self.done.contains(&at) {
                copied.whole.push(log.clone());
                continue;
            }
            if fresh == SEGMENTS_AT_ONCE {
                (copied.is_behind, copied.is_current) = (true, false);
                break;
            }
            match self.copy_log(log, next, &mut copied.unreadable) {
                Ok(true) => {
                    fresh += 1;
                    self.done.insert(at);
                    copied.whole.push(log.clone());
                }
                Ok(false) => {}
                Err(error) => {
                    copied.is_current &= next.is_some();
                    copied.failed.get_or_insert(error);
                }
            }
        }
        let there = |at: &(u16, u32)| logs.iter().any(|log| (log.instance, log.number) == *at);
        self.done.retain(there);
        self.streams.retain(|at, _| there(at));
        copied
    }

    /// True if it is in the archive as a whole: nothing follows in the last segment of a log only for now.
    fn copy_log(
        &mut self,
        log: &LogFile,
        next: Option<&LogFile>,
        unreadable: &mut Vec<LogFile>,
    ) -> Result<bool, BackupError> {
        let mut stream = match self.streams.remove(&(log.instance, log.number)) {
            Some(stream) => stream,
            None => {
                let file = match File::open(&log.path) {
                    // It has been put aside; next time it is found there.
                    Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
                    opened => opened.map_err(BackupError::file(&log.path))?,
                };
                Stream { reader: LogReader::new(file), to: To::Unknown }
            }
        };
        // If that fails, all of it is read again.
        let is_readable = self.copy_stream(log, &mut stream)?;
        let Some(next) = next else {
            // Its head may still come; what is under another head is read anew.
            if is_readable {
                self.streams.insert((log.instance, log.number), stream);
            }
            return Ok(false);
        };
        let is_damaged = match &stream.to {
            To::Copy(_) => breaks_off(&stream.reader, next)?,
            To::Unknown | To::Done => !is_readable,
        };
        // As long as that fails it does not count as whole.
        if is_damaged && self.keep_unreadable(log)? {
            unreadable.push(log.clone());
        }
        if let To::Copy(to) = &stream.to {
            self.end(to)?;
        }
        Ok(true)
    }

    /// A segment is there as a whole.
    fn end(&mut self, to: &Copy) -> Result<(), BackupError> {
        let whole = to.path.with_extension("log");
        let synced = to.file.sync_all().map_err(BackupError::file(&to.path));
        let named =
            synced.and_then(|()| fs::rename(&to.path, &whole).map_err(BackupError::file(&whole)));
        let done = named.and_then(|()| sync_directory(&self.directory));
        if done.is_err() {
            self.distrust(to.path.clone());
            self.distrust(whole);
        }
        done
    }

    /// DURABLE-4: a sync that has failed says nothing the next time. All of the file is written anew.
    fn distrust(&mut self, path: PathBuf) {
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                self.suspect.insert(path);
            }
            _ => {}
        }
    }

    /// A file that is damaged goes into the archive as it is, for people. False if it was never begun.
    fn keep_unreadable(&self, log: &LogFile) -> Result<bool, BackupError> {
        let bytes = fs::read(&log.path).map_err(BackupError::file(&log.path))?;
        if bytes.iter().take(SEGMENT_HEAD_BYTES as usize).all(|byte| *byte == 0) {
            return Ok(false);
        }
        let LogFile { instance, number, .. } = log;
        let name = format!("{LOG_PREFIX}{instance}-{number:010}.unreadable");
        self.write_whole(&self.directory.join(name), &bytes)?;
        Ok(true)
    }

    /// The file is there with these bytes, or it is not there.
    fn write_whole(&self, path: &Path, bytes: &[u8]) -> Result<(), BackupError> {
        let fresh = path.with_extension("new");
        let write = || {
            let mut file = File::create(&fresh)?;
            std::io::Write::write_all(&mut file, bytes)?;
            file.sync_all()?;
            fs::rename(&fresh, path)
        };
        write().map_err(BackupError::file(path))?;
        sync_directory(&self.directory)
    }

    /// False if it has no head.
    fn copy_stream(&mut self, log: &LogFile, stream: &mut Stream) -> Result<bool, BackupError> {
        loop {
            let sealed = &mut self.sealed;
            let show = |record: &lats_files::redo::Record<'_>, _| {
                if record.kind == RecordKind::Seal {
                    *sealed = (*sealed).max(record.seal.epoch);
                }
            };
            match stream.reader.read(show).map_err(BackupError::file(&log.path))? {
                Read::Some => {}
                Read::Nothing => return Ok(true),
                Read::Unreadable(_) => return Ok(false),
            }
            let Some(life) = stream.reader.segment().map(|segment| segment.log.life) else {
                return Ok(false);
            };
            if matches!(stream.to, To::Unknown) {
                stream.to = self.begin(log, life)?;
            }
            let To::Copy(to) = &mut stream.to else { return Ok(true) };
            let bytes = stream.reader.bytes();
            let from = stream.reader.at() - bytes.len() as u64;
            // A former process of this node has copied what stands before.
            let new = usize::try_from(to.bytes.saturating_sub(from)).unwrap_or(usize::MAX);
            if let Some(new) = bytes.get(new..).filter(|new| !new.is_empty()) {
                let written = to.file.write_all_at(new, to.bytes);
                written.map_err(BackupError::file(&to.path))?;
                to.bytes += new.len() as u64;
                self.is_dirty = true;
            }
        }
    }

    /// The file of a segment.
    fn begin(&mut self, log: &LogFile, life: Incarnation) -> Result<To, BackupError> {
        let LogFile { instance, number, .. } = log;
        let name = format!("{LOG_PREFIX}{instance}-{number:010}-{:010}.log", life.get());
        let path = self.directory.join(name);
        let open = path.with_extension(OPEN);
        for path in [&path, &open] {
            if self.suspect.contains(path) {
                match fs::remove_file(path) {
                    Err(error) if error.kind() != ErrorKind::NotFound => {
                        return Err(BackupError::file(path)(error));
                    }
                    _ => self.suspect.remove(path),
                };
            }
        }
        if path.try_exists().map_err(BackupError::file(&path))? {
            return Ok(To::Done);
        }
        let path = open;
        let file = File::options().read(true).write(true).create(true).truncate(false).open(&path);
        let file = file.map_err(BackupError::file(&path))?;
        let mut there = LogReader::new(file.try_clone().map_err(BackupError::file(&path))?);
        // What does not end with a whole record is written again.
        let _ = there.read_all(|_, _| {}).map_err(BackupError::file(&path))?;
        let bytes = there.at();
        file.set_len(bytes).map_err(BackupError::file(&path))?;
        Ok(To::Copy(Copy { path, file, bytes }))
    }

    /// Copies a control file, unless it says nothing new. False if it is not whole, yet.
    ///
    /// # Errors
    /// If the archive cannot be written.
    pub fn copy_state(&mut self, bytes: &[u8]) -> Result<bool, BackupError> {
        let Ok((_, content)) = control::open(bytes) else { return Ok(false) };
        let Some(kept) = (self.decode)(content) else { return Ok(false) };
        let state = (kept.restored.len(), kept.catalog.version);
        if self.state.is_none_or(|copied| copied != state) {
            let name =
                format!("{STATE_PREFIX}{:010}-{:020}.state", kept.restored.len(), kept.commands);
            self.write_whole(&self.directory.join(name), bytes)?;
            self.state = Some(state);
        }
        self.known = self.known.max((kept.restored.len() as u64, kept.commands));
        Ok(true)
    }

    /// The epochs that were seen as sealed had ended by now, and the states that were copied were known: all that is there was copied.
    ///
    /// # Errors
    /// If the archive cannot be written.
    pub fn note_time(&mut self, now_ms: u64) -> Result<(), BackupError> {
        let (said, at_ms) = self.said;
        let (is_old, now) =
            (now_ms >= at_ms.saturating_add(SAID_EVERY_MS), (self.sealed, self.known));
        if self.sealed == Epoch::default() || (said == now && !is_old) {
            return Ok(());
        }
        let day = now_ms / DAY_MS;
        if self.times.as_ref().is_some_and(|times| times.day != day) {
            self.sync()?;
            self.times = None;
        }
        let times = match &mut self.times {
            Some(times) => times,
            None => {
                let path = self.directory.join(format!("{TIMES_PREFIX}{now_ms:015}.lats"));
                let file = File::create(&path).map_err(BackupError::file(&path))?;
                let head = Head::new(self.of.0, self.of.1);
                if let Err(error) = file.write_all_at(head.as_bytes(), 0) {
                    // A full disk is tried again and again.
                    let _ = fs::remove_file(&path);
                    return Err(BackupError::file(&path)(error));
                }
                let bytes = size_of::<Head>() as u64;
                self.times.insert(TimesFile { path, file, bytes, day })
            }
        };
        let ended = Ended::new(now_ms, self.sealed, self.known);
        let written = times.file.write_all_at(ended.as_bytes(), times.bytes);
        written.map_err(BackupError::file(&times.path))?;
        times.bytes += size_of::<Ended>() as u64;
        (self.said, self.is_dirty) = ((now, now_ms), true);
        Ok(())
    }

    /// What was written is safe.
    ///
    /// # Errors
    /// If that cannot be done: then it is written anew.
    pub fn sync(&mut self) -> Result<(), BackupError> {
        if !std::mem::take(&mut self.is_dirty) {
            return Ok(());
        }
        let synced = self.sync_files();
        if synced.is_err() {
            self.times = None;
            for stream in std::mem::take(&mut self.streams).into_values() {
                if let To::Copy(to) = stream.to {
                    self.distrust(to.path);
                }
            }
        }
        synced
    }

    fn sync_files(&self) -> Result<(), BackupError> {
        let logs = self.streams.values().filter_map(|stream| match &stream.to {
            To::Copy(to) => Some((&to.path, &to.file)),
            To::Unknown | To::Done => None,
        });
        let times = self.times.iter().map(|times| (&times.path, &times.file));
        for (path, file) in logs.chain(times) {
            file.sync_data().map_err(BackupError::file(path))?;
        }
        sync_directory(&self.directory)
    }
}

/// True if records are missing between a segment, of which all that can be read was, and the next one of the same life.
fn breaks_off(reader: &LogReader, next: &LogFile) -> Result<bool, BackupError> {
    let file = match File::open(&next.path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        opened => opened.map_err(BackupError::file(&next.path))?,
    };
    let head = LogReader::new(file).head().map_err(BackupError::file(&next.path))?;
    Ok(reader.segment().zip(head).is_some_and(|(here, next)| {
        here.log.life == next.log.life
            && here.number + 1 == next.number
            && here.next_record() != next.next_record()
    }))
}
