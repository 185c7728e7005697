//! The directory of a node that runs was removed, or has another name: where a new one is begun, with what belongs there beside it
//! (GONE-4; `docs/protocols/gone.md`). Not where nothing belongs: under the name of a file system that is not mounted any more, or among
//! files of somebody else.

use crate::{
    cluster_file::ClusterFile,
    life::Life,
    node::node_directory,
    private,
    secret::{self, path as secret_path},
};
use lats_client::Secret;
use lats_runtime::files::{TO_ARCHIVE, parse_file_name};
use std::{
    fs,
    io::{Error, ErrorKind, Result},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

/// What a node knows of the places of its files.
pub(crate) struct Anew {
    data_dir: PathBuf,
    node_id: u16,
    cluster: ClusterFile,
    /// What the next process is to find (LIFE-1).
    life: Option<Life>,
    secret: Secret,
    /// Devices of the cluster's directory, and of the one above.
    device: u64,
    device_above: u64,
    own: Mutex<Own>,
}

/// The node's own directory, the one that was begun last.
struct Own {
    /// Device and inode.
    identity: (u64, u64),
    /// Keeps other processes away. None: the lock of the first one, which somebody else holds.
    lock: Option<fs::File>,
}

impl Anew {
    /// The node's directory is there.
    ///
    /// # Errors
    /// It is not.
    pub(crate) fn new(
        data_dir: &Path,
        node_id: u16,
        (cluster, life): (ClusterFile, Option<Life>),
        secret: Secret,
    ) -> Result<Self> {
        let data_dir = std::path::absolute(data_dir)?;
        let own = fs::metadata(node_directory(&data_dir, node_id))?;
        let above = data_dir.parent().unwrap_or(&data_dir);
        Ok(Self {
            node_id,
            cluster,
            life,
            secret,
            device: fs::metadata(&data_dir)?.dev(),
            device_above: fs::metadata(above)?.dev(),
            own: Mutex::new(Own { identity: identity(&own), lock: None }),
            data_dir,
        })
    }

    /// Begins the directory anew.
    ///
    /// # Errors
    /// Why not, and what a person can do.
    pub(crate) fn begin(&self) -> Result<()> {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        let place = node_directory(&self.data_dir, self.node_id);
        self.find_data_dir()?;
        self.find_own(&place, own.identity)?;
        self.describe_cluster()?;
        self.prepare(&place)?;
        let found = fs::metadata(&place)?;
        let is_held = identity(&found) == own.identity && place.join("lock").exists();
        if !is_held || own.lock.is_some() {
            lock(&place, &mut own)?;
        }
        if let Some(life) = &self.life {
            life.keep_in(&place).map_err(Error::other)?;
        }
        own.identity = identity(&found);
        let _ = fs::remove_file(self.consent());
        Ok(())
    }

    /// With this file a person says that the place is the right one, though it is on another device.
    fn consent(&self) -> PathBuf {
        self.data_dir.join(format!("node-{}.begin-anew", self.node_id))
    }

    fn is_wanted_here(&self) -> bool {
        self.consent().exists()
    }

    /// The cluster's directory is there, or can be.
    fn find_data_dir(&self) -> Result<()> {
        let (place, above) = (&self.data_dir, self.data_dir.parent().unwrap_or(&self.data_dir));
        let consent = self.consent();
        let (shown, consent) = (place.display(), consent.display());
        match fs::metadata(place) {
            Ok(found) if found.dev() == self.device || self.is_wanted_here() => Ok(()),
            Ok(_) => Err(Error::other(format!(
                "{shown} is another file system now: mount the former one; if that is lost for good, make the file {consent}"
            ))),
            Err(_) if self.device != self.device_above => Err(Error::other(format!(
                "{shown} was a file system of its own: mount it; if that is lost for good, make the file {consent}"
            ))),
            Err(_) if fs::metadata(above)?.dev() != self.device_above => {
                Err(Error::other(format!(
                    "{} is another file system now: mount the former one; if that is lost for good, make the file {consent}",
                    above.display()
                )))
            }
            Err(_) => private::directory(place).map_err(Error::other),
        }
    }

    /// Nothing is in the way. What the last directory has on its disk stays as it is: it is all that there is, should this process end now.
    fn find_own(&self, place: &Path, former: (u64, u64)) -> Result<()> {
        let shown = place.display();
        let found = match fs::metadata(place) {
            Ok(found) => Some(found),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let device = match &found {
            Some(found) => found.dev(),
            None => fs::metadata(&self.data_dir)?.dev(),
        };
        if device != former.0 && !self.is_wanted_here() {
            return Err(Error::other(format!(
                "{shown} was on another file system: mount it; if that is lost for good, make the file {}",
                self.consent().display()
            )));
        }
        let Some(found) = found else { return Ok(()) };
        if !has_files(place)? {
            return Ok(());
        }
        if identity(&found) == former {
            return Err(Error::other(format!(
                "{shown} is there, with what this node had written before: a restart would find that. Move it, or its files, to another place on \
                 the same disk, and all rows are written into a new {shown}; remove them when `latsdb status` says `serving`"
            )));
        }
        Err(Error::other(format!(
            "{shown} has files of a node that this one has not written: move them away"
        )))
    }

    /// What other commands read there.
    fn describe_cluster(&self) -> Result<()> {
        if ClusterFile::path(&self.data_dir).exists() {
            let found = ClusterFile::read(&self.data_dir).map_err(Error::other)?;
            if found.cluster_id != self.cluster.cluster_id {
                let place = self.data_dir.display();
                return Err(Error::other(format!("{place} belongs to another cluster now")));
            }
        } else {
            self.cluster.write(&self.data_dir).map_err(Error::other)?;
        }
        if secret_path(&self.data_dir).exists() {
            return Ok(());
        }
        secret::write(&self.secret, &self.data_dir).map_err(Error::other)
    }

    fn prepare(&self, own: &Path) -> Result<()> {
        private::directory(own).map_err(Error::other)?;
        if self.cluster.archive.is_some() {
            private::directory(&own.join(TO_ARCHIVE)).map_err(Error::other)?;
        }
        fs::File::open(&self.data_dir)?.sync_all()
    }
}

fn identity(found: &fs::Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}

fn has_files(directory: &Path) -> Result<bool> {
    for file in fs::read_dir(directory)? {
        let name = file?.file_name().into_string().unwrap_or_default();
        if parse_file_name(&name).is_some() || name.starts_with("spare-") {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Keeps other processes away, as long as this one lives. A lock that is held already stays so.
fn lock(directory: &Path, own: &mut Own) -> Result<()> {
    let path = directory.join("lock");
    let is_ours = |held: &fs::File| {
        let (held, found) = (held.metadata()?, fs::metadata(&path)?);
        Ok::<bool, Error>(identity(&held) == identity(&found))
    };
    if own.lock.as_ref().is_some_and(|held| is_ours(held).unwrap_or_default()) {
        return Ok(());
    }
    let file = fs::File::create(&path)?;
    file.try_lock().map_err(|_| {
        Error::other(format!("another process uses {}: end it", directory.display()))
    })?;
    own.lock = Some(file);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(name: &str) -> (PathBuf, Anew) {
        let above = std::env::temp_dir().join(format!("lats-anew-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&above);
        let data_dir = above.join("data");
        fs::create_dir_all(node_directory(&data_dir, 1)).unwrap();
        let cluster = ClusterFile::new(7, 1, Vec::new());
        cluster.write(&data_dir).unwrap();
        let secret = Secret::new([7; 32]);
        secret::write(&secret, &data_dir).unwrap();
        (above, Anew::new(&data_dir, 1, (cluster, None), secret).unwrap())
    }

    #[test]
    fn all_of_it_is_made_again() {
        let (above, anew) = place("all");
        fs::remove_dir_all(&anew.data_dir).unwrap();
        anew.begin().unwrap();
        assert_eq!(ClusterFile::read(&anew.data_dir).unwrap(), anew.cluster);
        assert_eq!(secret::read(&secret_path(&anew.data_dir)).unwrap(), anew.secret);
        assert!(node_directory(&anew.data_dir, 1).is_dir());
        fs::remove_dir_all(&above).unwrap();
        assert!(anew.begin().is_err(), "nobody knows whether that is the right place");
    }

    #[test]
    fn files_of_others_and_other_clusters_are_left_alone() {
        let (above, anew) = place("others");
        let own = node_directory(&anew.data_dir, 1);
        let refused = |words: &str| {
            let why = anew.begin().unwrap_err().to_string();
            assert!(why.contains(words), "{why}");
        };
        let log = own.join("redo-0-0000000001.log");
        // Twice, for the directory that was begun last is its own, too.
        for _ in 0..2 {
            fs::write(&log, "ours").unwrap();
            refused("Move it, or its files");
            let aside = own.with_extension("aside");
            let _ = fs::remove_dir_all(&aside);
            fs::rename(&own, &aside).unwrap();
            anew.begin().unwrap();
            assert!(own.join("lock").exists() && !log.exists());
            anew.begin().unwrap();
        }
        fs::rename(&own, own.with_extension("third")).unwrap();
        fs::create_dir(&own).unwrap();
        fs::write(&log, "somebody's").unwrap();
        refused("move them away");
        fs::remove_dir_all(&own).unwrap();
        ClusterFile::new(8, 1, Vec::new()).write(&anew.data_dir).unwrap();
        refused("another cluster");
        anew.cluster.write(&anew.data_dir).unwrap();
        anew.begin().unwrap();
        fs::remove_dir_all(above).unwrap();
    }

    #[test]
    fn another_device_is_not_written_to_without_a_word_of_a_person() {
        let (above, anew) = place("device");
        anew.own.lock().unwrap().identity.0 += 1;
        fs::remove_dir_all(node_directory(&anew.data_dir, 1)).unwrap();
        assert!(anew.begin().unwrap_err().to_string().contains("another file system"));
        fs::write(anew.consent(), "").unwrap();
        anew.begin().unwrap();
        assert!(!anew.is_wanted_here() && node_directory(&anew.data_dir, 1).is_dir());
        fs::remove_dir_all(above).unwrap();
    }
}
