//! Which life of its node a process is, and what it can say of the lives before it (LIFE-1, LIFE-2, DEATH-2; `docs/protocols/lives.md`): the file
//! `life.json` in the node's directory.

use crate::random;
use anyhow::Context;
use lats_base::{Incarnation, Nonce};
use lats_node::control::Origin;
use serde::{Deserialize, Serialize};
use std::{
    fs,
    io::Write as _,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

/// A life of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Life {
    /// Its number.
    pub(crate) number: Incarnation,
    /// Which process it is, and whose end it certifies.
    pub(crate) origin: Origin,
    content: Content,
}

/// What the file has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Content {
    /// Version of its format.
    format: u32,
    /// The number of the newest life that is known.
    number: u32,
    /// The process that has written it.
    nonce: [u64; 2],
    /// Where that ran.
    place: Place,
    /// Lives before it, each of which has ended before the next began.
    ended: Vec<(u32, [u64; 2])>,
}

/// Where a process runs, and has its files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    /// Drawn by the kernel when it starts.
    boot_id: String,
    /// The machine, where that can be known: a copy of it has another.
    host_id: Option<String>,
    /// The node's directory.
    device: u64,
    inode: u64,
    /// The process: its number where it counts its processes (a namespace), and when it began, in ticks since the kernel did.
    #[serde(default)]
    process: Option<(String, u32, u64)>,
}

const FORMAT: u32 = 1;
/// So many former lives are named: those that never were members, after the last one that was.
const ENDED_MAX: usize = 64;

impl Place {
    /// Of a process that has its files in this directory; `host_id`: the machine, as a person has named it.
    ///
    /// # Errors
    /// The directory is not there.
    pub(crate) fn here(directory: &Path, host_id: Option<&str>) -> anyhow::Result<Self> {
        let line = |path: &str| fs::read_to_string(path).ok().map(|text| text.trim().to_string());
        let found = fs::metadata(directory)
            .with_context(|| format!("{} is not there", directory.display()))?;
        let named = host_id.map(str::to_string);
        Ok(Self {
            boot_id: line("/proc/sys/kernel/random/boot_id").unwrap_or_default(),
            host_id: named.or_else(|| line("/sys/class/dmi/id/product_uuid")),
            device: found.dev(),
            inode: found.ino(),
            process: this_process(),
        })
    }

    /// DEATH-2: true if who holds the lock of this directory knows that who has held it before, and ran there, has ended.
    fn follows(&self, former: &Self) -> bool {
        let same_kernel = !self.boot_id.is_empty() && self.boot_id == former.boot_id;
        let same_machine = self.host_id.is_some() && self.host_id == former.host_id;
        let same_directory = (self.device, self.inode) == (former.device, former.inode);
        // Its files may have come to another directory since: then it is looked for.
        let has_ended = same_kernel && has_ended(former.process.as_ref());
        same_directory && (same_kernel || same_machine) || has_ended
    }
}

/// Where this process is counted, its number there, and when it began.
fn this_process() -> Option<(String, u32, u64)> {
    let pid = std::process::id();
    Some((namespace()?, pid, began(pid)?))
}

fn namespace() -> Option<String> {
    Some(fs::read_link("/proc/self/ns/pid").ok()?.to_string_lossy().into_owned())
}

/// When a process began, in ticks; none if there is none.
fn began(pid: u32) -> Option<u64> {
    let line = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in brackets, may have blanks in it; the state comes next, and the 20th word is meant.
    line.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

/// True if a process that ran on this kernel, and is counted where this one is, has surely ended: its number is free, or another's.
fn has_ended(process: Option<&(String, u32, u64)>) -> bool {
    let Some((counted, pid, at)) = process else { return false };
    let is_seen = began(std::process::id()).is_some() && namespace().as_ref() == Some(counted);
    is_seen && began(*pid) != Some(*at)
}

impl Life {
    /// Begins the next life of the node whose directory this is, and writes it down: nothing may be said under its number before. The
    /// caller holds the directory's lock. `known`: the newest life that other nodes know, asked if nothing is written here.
    ///
    /// # Errors
    /// The file cannot be written, or is none.
    pub(crate) fn begin(
        directory: &Path,
        place: Place,
        known: impl FnOnce() -> u32,
    ) -> anyhow::Result<Self> {
        let former = read(directory)?;
        let last = former.as_ref().map_or_else(known, |former| former.number);
        let number = last.checked_add(1).filter(|n| *n < u32::MAX);
        let number = number.context("this node has had as many lives as there can be")?;
        let nonce = [random::number()?, random::number()?];
        Self::write(directory, former, place, (number, nonce))
    }

    /// Begins the first life of a node that founds a cluster.
    ///
    /// # Errors
    /// As [`Self::begin`].
    pub(crate) fn found(directory: &Path, place: Place, nonce: Nonce) -> anyhow::Result<Self> {
        Self::write(directory, None, place, (1, nonce.halves()))
    }

    fn write(
        directory: &Path,
        former: Option<Content>,
        place: Place,
        (number, nonce): (u32, [u64; 2]),
    ) -> anyhow::Result<Self> {
        let mut ended = Vec::new();
        if let Some(former) = former.filter(|former| place.follows(&former.place)) {
            ended = former.ended;
            ended.push((former.number, former.nonce));
            let surplus = ended.len().saturating_sub(ENDED_MAX);
            ended.drain(..surplus);
        }
        let content = Content { format: FORMAT, number, nonce, place, ended };
        keep(directory, &content)?;
        let process =
            |(number, nonce): &(u32, [u64; 2])| (Incarnation::new(*number), Nonce::new(*nonce));
        let ended = content.ended.iter().map(process).collect();
        let origin = Origin { nonce: Nonce::new(nonce), ended };
        Ok(Self { number: Incarnation::new(number), origin, content })
    }

    /// LIFE-2: others know of a later life than this one.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn note_known(&self, directory: &Path, known: u32) -> anyhow::Result<()> {
        let number = self.content.number.max(known);
        keep(directory, &Content { number, ..self.content.clone() })
    }

    /// The directory was begun anew, by this process.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn keep_in(&self, directory: &Path) -> anyhow::Result<()> {
        let host_id = self.content.place.host_id.as_deref();
        let place = Place::here(directory, host_id)?;
        keep(directory, &Content { place, ..self.content.clone() })
    }
}

fn path(directory: &Path) -> PathBuf {
    directory.join("life.json")
}

fn read(directory: &Path) -> anyhow::Result<Option<Content>> {
    let path = path(directory);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    match serde_json::from_str::<Content>(&text) {
        Ok(content) if content.format <= FORMAT => Ok(Some(content)),
        Ok(content) => anyhow::bail!(
            "{} has format {}; this version of LatsDB reads format {FORMAT}",
            path.display(),
            content.format
        ),
        // It says only what others know better.
        Err(error) => {
            tracing::warn!(%error, "{} is damaged, and passed over", path.display());
            Ok(None)
        }
    }
}

fn keep(directory: &Path, content: &Content) -> anyhow::Result<()> {
    let path = path(directory);
    let fresh = path.with_extension("new");
    let write = || {
        let mut file = fs::File::create(&fresh)?;
        file.write_all(&serde_json::to_vec(content)?)?;
        file.sync_all()?;
        fs::rename(&fresh, &path)?;
        fs::File::open(directory)?.sync_all()
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(name: &str) -> PathBuf {
        let place = std::env::temp_dir().join(format!("lats-life-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&place);
        fs::create_dir_all(&place).unwrap();
        place
    }

    fn next(directory: &Path) -> Life {
        let place = Place::here(directory, None).unwrap();
        Life::begin(directory, place, || 40).unwrap()
    }

    #[test]
    fn lives_are_counted_and_each_certifies_those_before_it() {
        let place = directory("counted");
        let first = next(&place);
        assert_eq!((first.number.get(), first.origin.ended.len()), (41, 0));
        let second = next(&place);
        assert_eq!(second.number.get(), 42);
        assert_eq!(second.origin.ended, [(first.number, first.origin.nonce)]);
        second.note_known(&place, 99).unwrap();
        let third = next(&place);
        assert_eq!(third.number.get(), 100);
        assert!(third.origin.ended.contains(&(first.number, first.origin.nonce)));
        fs::remove_dir_all(&place).unwrap();
    }

    #[test]
    fn a_copy_and_another_machine_certify_nothing() {
        let (here, copy) = (directory("here"), directory("copy"));
        let first = next(&here);
        fs::copy(path(&here), path(&copy)).unwrap();
        let copied = next(&copy);
        assert_eq!((copied.number.get(), copied.origin.ended.len()), (42, 0));
        let elsewhere =
            Place { boot_id: "another".into(), process: None, ..Place::here(&here, None).unwrap() };
        let moved = Life::begin(&here, elsewhere.clone(), || 0).unwrap();
        assert!(moved.origin.ended.is_empty());
        // The same machine, started again.
        let named = |boot_id: &str| Place {
            boot_id: boot_id.into(),
            host_id: Some("rack-7".into()),
            ..elsewhere.clone()
        };
        Life::begin(&here, named("third"), || 0).unwrap();
        let again = Life::begin(&here, named("fourth"), || 0).unwrap();
        assert_eq!(again.origin.ended.len(), 1);
        assert!(again.origin.nonce != first.origin.nonce);
        again.keep_in(&copy).unwrap();
        assert_eq!(next(&copy).number.get(), again.number.get() + 1);
        [here, copy].iter().for_each(|place| fs::remove_dir_all(place).unwrap());
    }

    #[test]
    fn who_has_ended_on_this_kernel_is_looked_for() {
        let (here, moved) = (directory("ended"), directory("moved"));
        let first = next(&here);
        let mut content = first.content.clone();
        let other = Place::here(&moved, None).unwrap();
        assert!(!other.follows(&content.place), "this process lives");
        if let Some((_, _, at)) = &mut content.place.process {
            *at += 1;
        }
        assert!(other.follows(&content.place), "its number is another's now");
        [here, moved].iter().for_each(|place| fs::remove_dir_all(place).unwrap());
    }

    #[test]
    fn a_damaged_file_is_passed_over_and_a_newer_one_refused() {
        let place = directory("damaged");
        fs::write(path(&place), "{").unwrap();
        assert_eq!(next(&place).number.get(), 41);
        let text = fs::read_to_string(path(&place)).unwrap();
        fs::write(path(&place), text.replace("\"format\":1", "\"format\":2")).unwrap();
        let here = Place::here(&place, None).unwrap();
        assert!(Life::begin(&place, here, || 0).is_err());
        fs::remove_dir_all(&place).unwrap();
    }
}
