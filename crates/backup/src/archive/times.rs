//! When epochs had ended, as nodes have noted it (ARCHIVE-5).

use super::{Known, in_words};
use crate::BackupError;
use lats_base::{Epoch, NodeId, hash};
use std::{
    fs::{self, File},
    io::{self, ErrorKind},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

const MAGIC: [u8; 8] = *b"LATSTIME";
const VERSION: u32 = 1;

/// A node that archives notes the time once a second at least. Where more than this lies between two entries, in ms, nobody knows
/// what happened when.
const HEARD_MS: u64 = 5_000;

/// The head of a file of times: 32 bytes.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(super) struct Head {
    magic: [u8; 8],
    version: u32,
    node: u32,
    cluster: u64,
    /// Of all before it.
    checksum: u64,
}

/// By then this epoch, and all before it, had ended, and so many commands were known after so many restarts of the cluster: 40
/// bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(super) struct Ended {
    /// ms since 1970, by the clock of the node that has written it.
    pub(super) at_ms: u64,
    pub(super) epoch: Epoch,
    commands: u64,
    restarts: u64,
    /// Of all before it.
    checksum: u64,
}

/// XXH3-64 of all but the last eight bytes.
fn sum(bytes: &[u8]) -> u64 {
    hash::partition_hash(&bytes[..bytes.len() - size_of::<u64>()])
}

impl Head {
    pub(super) fn new(cluster: u64, node: NodeId) -> Self {
        let node = u32::from(node.get());
        let mut head = Self { magic: MAGIC, version: VERSION, node, cluster, checksum: 0 };
        head.checksum = sum(head.as_bytes());
        head
    }

    /// None: the file is no file of times, or was not begun; another version has written it.
    fn read(bytes: &[u8]) -> Option<Self> {
        let (head, _) = Self::read_from_prefix(bytes).ok()?;
        let is_ours = head.magic == MAGIC && head.version == VERSION;
        (is_ours && head.checksum == sum(head.as_bytes())).then_some(head)
    }

    fn node(&self) -> Option<NodeId> {
        u16::try_from(self.node).ok().map(NodeId::new)
    }
}

impl Ended {
    pub(super) fn new(at_ms: u64, epoch: Epoch, (restarts, commands): Known) -> Self {
        let mut ended = Self { at_ms, epoch, commands, restarts, checksum: 0 };
        ended.checksum = sum(ended.as_bytes());
        ended
    }

    fn known(&self) -> Known {
        (self.restarts, self.commands)
    }

    fn is_whole(&self) -> bool {
        self.checksum == sum(self.as_bytes())
    }
}

/// A file of times.
#[derive(Debug)]
pub(super) struct Noted {
    pub(super) path: PathBuf,
    /// Who has written it.
    pub(super) node: NodeId,
    pub(super) first: Ended,
    pub(super) last: Ended,
}

impl Noted {
    /// Reads only where it begins and ends. None: it is of another cluster, says nothing, or was one of a running node and has gone.
    fn open(path: &Path, cluster: u64) -> io::Result<Option<Self>> {
        let file = match File::open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let count = (file.metadata()?.len() as usize).saturating_sub(size_of::<Head>())
            / size_of::<Ended>();
        let mut bytes = [0; size_of::<Head>()];
        if count == 0 {
            return Ok(None);
        }
        file.read_exact_at(&mut bytes, 0)?;
        let head = Head::read(&bytes).filter(|head| head.cluster == cluster);
        let Some(node) = head.and_then(|head| head.node()) else { return Ok(None) };
        let first = first_whole(&file, 0..count)?;
        let last = first_whole(&file, (0..count).rev())?;
        let path = path.to_path_buf();
        Ok(first.zip(last).map(|(first, last)| Self { path, node, first, last }))
    }

    /// What it says.
    fn entries(&self) -> Result<Vec<Ended>, BackupError> {
        match fs::read(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(BackupError::file(&self.path)(error)),
            Ok(bytes) => Ok(entries(&bytes).collect()),
        }
    }
}

fn first_whole(file: &File, mut numbers: impl Iterator<Item = usize>) -> io::Result<Option<Ended>> {
    let found = numbers.find_map(|number| {
        let mut ended = Ended::new_zeroed();
        let at = size_of::<Head>() + number * size_of::<Ended>();
        match file.read_exact_at(ended.as_mut_bytes(), at as u64) {
            Ok(()) => ended.is_whole().then_some(Ok(ended)),
            Err(error) => Some(Err(error)),
        }
    });
    found.transpose()
}

/// The whole entries of a file of times.
fn entries(bytes: &[u8]) -> impl Iterator<Item = Ended> {
    let entries = bytes.get(size_of::<Head>()..).unwrap_or_default();
    let entries = entries.as_chunks::<{ size_of::<Ended>() }>().0.iter();
    let entries = entries.filter_map(|bytes| Ended::read_from_bytes(bytes).ok());
    entries.filter(Ended::is_whole)
}

/// The times in such a file, each with the epoch that had ended; and false if it is damaged.
pub fn times_in(bytes: &[u8]) -> (Vec<(u64, Epoch)>, bool) {
    if Head::read(bytes).is_none() {
        return (Vec::new(), false);
    }
    let times: Vec<_> = entries(bytes).map(|ended| (ended.at_ms, ended.epoch)).collect();
    let whole = times.len() == (bytes.len() - size_of::<Head>()) / size_of::<Ended>();
    (times, whole)
}

/// All files of times of a cluster. They may be large: what is in them is read when it is asked for.
#[derive(Debug, Default)]
pub(super) struct Times {
    files: Vec<Noted>,
}

/// What was known at a time.
#[derive(Debug)]
pub(super) struct At {
    pub(super) epoch: Epoch,
    pub(super) known: Known,
    pub(super) doubt: Option<Doubt>,
}

/// What a file says of a time.
#[derive(Clone, Copy, Debug)]
struct Heard {
    node: NodeId,
    /// The last entry by then.
    ended: Ended,
    /// There is another one soon after.
    goes_on: bool,
}

/// The clocks of nodes did not agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Doubt {
    /// At the time that was asked for this node had noted no later epoch than this.
    pub slow: (NodeId, Epoch),
    /// And this one had noted this.
    pub fast: (NodeId, Epoch),
}

impl Times {
    /// Takes a file, if it is one of this cluster.
    pub(super) fn take_file(&mut self, path: &Path, cluster: u64) -> Result<(), BackupError> {
        let noted = Noted::open(path, cluster).map_err(BackupError::file(path))?;
        self.files.extend(noted);
        Ok(())
    }

    /// All files are taken.
    pub(super) fn sort(&mut self) {
        self.files.sort_by_key(|noted| (noted.node, noted.first.at_ms, noted.last.at_ms));
    }

    pub(super) fn files(&self) -> &[Noted] {
        &self.files
    }

    /// The newest epoch that is noted.
    pub(super) fn newest(&self) -> Epoch {
        self.files.iter().map(|noted| noted.last.epoch).max().unwrap_or_default()
    }

    /// ARCHIVE-5: the epoch that was the newest to have ended at a time, and what was known.
    pub(super) fn at(&self, at_ms: u64) -> Result<At, BackupError> {
        let mut heard = Vec::new();
        for noted in &self.files {
            let goes_so_far = at_ms <= noted.last.at_ms.saturating_add(HEARD_MS);
            if noted.first.at_ms > at_ms || !goes_so_far {
                continue;
            }
            // A clock may have been set back: what was noted then is left out.
            let entries = noted.entries()?;
            let is_later = |ended: &Ended| ended.at_ms > at_ms;
            let count = entries.iter().position(is_later).unwrap_or(entries.len());
            let ended = entries[..count].last();
            let ended = ended.filter(|ended| at_ms <= ended.at_ms.saturating_add(HEARD_MS));
            let next = entries.get(count);
            let goes_on = next.is_some_and(|next| next.at_ms <= at_ms.saturating_add(HEARD_MS));
            heard.extend(ended.map(|ended| Heard { node: noted.node, ended: *ended, goes_on }));
        }
        let last = self.files.iter().map(|noted| noted.last.at_ms).max();
        let fast = heard.iter().max_by_key(|heard| heard.ended.epoch);
        let (Some(fast), true) = (fast, last.is_some_and(|last| at_ms <= last)) else {
            return Err(self.nobody_knows(at_ms)?);
        };
        let known = heard.iter().map(|heard| heard.ended.known()).max().unwrap_or_default();
        let doubt = self.doubt(&heard, fast, at_ms)?;
        Ok(At { epoch: fast.ended.epoch, known, doubt })
    }

    /// A node that goes on notes an epoch some tenths of a second after another one, unless their clocks differ; and one whose clock
    /// was set back has noted the same time twice.
    fn doubt(
        &self,
        heard: &[Heard],
        fast: &Heard,
        at_ms: u64,
    ) -> Result<Option<Doubt>, BackupError> {
        let of = |heard: &Heard| (heard.node, heard.ended.epoch);
        let told = |slow: &Heard| Some(Doubt { slow: of(slow), fast: of(fast) });
        let before = |slow: &&Heard| slow.ended.epoch < fast.ended.epoch;
        if let Some(twice) = heard.iter().filter(before).find(|slow| slow.node == fast.node) {
            return Ok(told(twice));
        }
        let slow = heard.iter().filter(before).filter(|slow| slow.goes_on);
        let Some(slow) = slow.min_by_key(|slow| slow.ended.epoch) else { return Ok(None) };
        let noted = self.ended_for(slow.node, fast.ended.epoch)?;
        let differs = noted.is_some_and(|noted| noted > at_ms.saturating_add(HEARD_MS));
        Ok(if differs { told(slow) } else { None })
    }

    fn nobody_knows(&self, at_ms: u64) -> Result<BackupError, BackupError> {
        let (mut before, mut after): (Option<Ended>, Option<Ended>) = (None, None);
        for noted in &self.files {
            for ended in noted.entries()? {
                if ended.at_ms <= at_ms {
                    let former = before.filter(|before| before.at_ms >= ended.at_ms);
                    before = Some(former.unwrap_or(ended));
                } else {
                    let former = after.filter(|after| after.at_ms <= ended.at_ms);
                    after = Some(former.unwrap_or(ended));
                }
            }
        }
        let words = |ended: Ended| in_words(ended.at_ms);
        Ok(BackupError::Refused(match (before, after) {
            (Some(before), Some(after)) => format!(
                "nobody has noted the time between {} and {} (UTC): the cluster did not run, or its archive was away. Restore --until one of these two \
                 times, or --until epoch:N of something in between, N from {} to {}",
                words(before),
                words(after),
                before.epoch,
                after.epoch
            ),
            (Some(last), None) => format!(
                "the archive goes up to {} (UTC); restore without --until what is there, or name the directories of more nodes",
                words(last)
            ),
            (None, Some(first)) => {
                format!("the archive begins at {} (UTC), which is later", words(first))
            }
            (None, None) => {
                "nobody has noted the time; restore without --until, or --until epoch:N".to_string()
            }
        }))
    }

    /// When the epoch is known to have ended, in ms since 1970.
    pub(super) fn ended_at(&self, epoch: Epoch) -> Result<Option<u64>, BackupError> {
        let mut nodes: Vec<NodeId> = self.files.iter().map(|noted| noted.node).collect();
        nodes.dedup();
        let mut first = None;
        for node in nodes {
            let ended = self.ended_for(node, epoch)?;
            first = first.into_iter().chain(ended).min();
        }
        Ok(first)
    }

    fn ended_for(&self, node: NodeId, epoch: Epoch) -> Result<Option<u64>, BackupError> {
        let mut files = self.files.iter().filter(|noted| noted.node == node);
        let Some(noted) = files.find(|noted| noted.last.epoch >= epoch) else { return Ok(None) };
        let entries = noted.entries()?;
        Ok(entries.iter().find(|ended| ended.epoch >= epoch).map(|ended| ended.at_ms))
    }

    /// What was known when a node noted no later epoch than this.
    pub(super) fn known_by(&self, epoch: Epoch) -> Result<Known, BackupError> {
        let mut known = Known::default();
        for node in self.files.chunk_by(|a, b| a.node == b.node) {
            let Some(noted) = node.iter().rfind(|noted| noted.first.epoch <= epoch) else {
                continue;
            };
            let entries = noted.entries()?;
            let by_then = entries.iter().filter(|ended| ended.epoch <= epoch);
            known = known.max(by_then.map(Ended::known).max().unwrap_or_default());
        }
        Ok(known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLUSTER: u64 = 7;

    /// Each node's times: (ms, epoch).
    fn times(name: &str, nodes: &[&[(u64, u64)]]) -> Times {
        let directory =
            std::env::temp_dir().join(format!("lats-times-{name}-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let mut times = Times::default();
        for (number, entries) in (1_u16..).zip(nodes) {
            let mut bytes = Head::new(CLUSTER, NodeId::new(number)).as_bytes().to_vec();
            for (at_ms, epoch) in *entries {
                let ended = Ended::new(*at_ms, Epoch::new(*epoch), (0, *epoch));
                bytes.extend_from_slice(ended.as_bytes());
            }
            bytes.extend_from_slice(b"cut off");
            let path = directory.join(format!("times-{number}.lats"));
            fs::write(&path, &bytes).unwrap();
            times.take_file(&path, CLUSTER + 1).unwrap();
            assert_eq!(times.files.len(), usize::from(number) - 1, "it is another cluster's");
            times.take_file(&path, CLUSTER).unwrap();
            assert!(times_in(&bytes).1 && !times_in(&bytes[1..]).1);
        }
        times.sort();
        times
    }

    #[test]
    fn the_newest_epoch_that_was_noted_by_then_counts() {
        let one: Vec<(u64, u64)> = (1..=100).map(|at| (1_000 * at, 10 * at)).collect();
        let two: Vec<(u64, u64)> = (1..=100).map(|at| (1_000 * at + 300, 10 * at + 3)).collect();
        let times = times("newest", &[&one, &two]);
        let at = |at_ms| times.at(at_ms).unwrap();
        assert_eq!((at(50_200).epoch.get(), at(50_300).epoch.get()), (500, 503));
        assert_eq!((at(50_300).known, at(50_300).doubt), ((0, 503), None));
        assert_eq!(times.ended_at(Epoch::new(502)).unwrap(), Some(50_300));
        assert_eq!(times.known_by(Epoch::new(502)).unwrap(), (0, 500));
        let said = |at_ms| times.at(at_ms).unwrap_err().to_string();
        assert!(said(999).contains("begins at 1970-01-01 00:00:01.000"), "{}", said(999));
        assert!(said(100_301).contains("goes up to 1970-01-01 00:01:40.300"), "{}", said(100_301));
    }

    #[test]
    fn where_nobody_has_noted_the_time_nobody_guesses() {
        let one = [(1_000, 10), (2_000, 20), (60_000, 30), (61_000, 40)];
        let times = times("hole", &[&one, &[(1_500, 15), (2_500, 25), (62_000, 45)]]);
        assert_eq!(times.at(4_000).unwrap().epoch.get(), 25);
        let said = times.at(30_000).unwrap_err().to_string();
        assert!(said.contains("00:00:02.500 and 1970-01-01 00:01:00.000"), "{said}");
        assert!(said.contains("N from 25 to 30"), "{said}");
    }

    #[test]
    fn clocks_that_do_not_agree_are_noticed() {
        let one: Vec<(u64, u64)> = (1..=100).map(|at| (1_000 * at, 10 * at)).collect();
        // Its clock is ten seconds behind.
        let two: Vec<(u64, u64)> = (1..=100).map(|at| (1_000 * at, 10 * (at + 10))).collect();
        let at = times("clocks", &[&one, &two]).at(50_000).unwrap();
        let of = |node, epoch| (NodeId::new(node), Epoch::new(epoch));
        assert_eq!(at.epoch.get(), 600);
        assert_eq!(at.doubt, Some(Doubt { slow: of(1, 500), fast: of(2, 600) }));
        // A node that is away for a while says nothing of clocks.
        let one = [(49_000, 490), (90_000, 900)];
        assert_eq!(times("away", &[&one, &two]).at(50_000).unwrap().doubt, None);
    }

    #[test]
    fn a_clock_that_is_set_back_leaves_out_what_it_notes_twice() {
        let one = [(1_000, 10), (2_000, 20), (1_000, 30), (2_000, 40), (3_000, 50)];
        let times = times("back", &[&one]);
        assert_eq!(times.at(2_000).unwrap().epoch.get(), 40, "all that was noted by then");
        assert_eq!(times.at(1_500).unwrap().epoch.get(), 10);
    }
}
