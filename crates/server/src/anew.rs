//! The directory of a node that runs was removed, or has another name: where a new one is begun, with what belongs there beside it
//! (GONE-4; `docs/protocols/gone.md`). Not where nothing belongs: under the name of a file system that is not mounted any more, or among
//! files of somebody else.

use crate::{
    cluster_file::ClusterFile,
    node::node_directory,
    private,
    secret::{self, path as secret_path},
};
use lats_client::Secret;
use lats_runtime::files::{TO_ARCHIVE, parse_file_name};
use std::{
    fs,
    io::{Error, Result},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

/// What a node knows of the places of its files since it was started.
pub(crate) struct Anew {
    data_dir: PathBuf,
    node_id: u16,
    cluster: ClusterFile,
    secret: Secret,
    /// Devices of the cluster's directory, and of the one above.
    device: u64,
    device_above: u64,
    /// Device and inode of the node's own directory.
    identity: (u64, u64),
}

impl Anew {
    /// The node's directory is there.
    ///
    /// # Errors
    /// It is not.
    pub(crate) fn new(
        data_dir: &Path,
        node_id: u16,
        cluster: ClusterFile,
        secret: Secret,
    ) -> Result<Self> {
        let data_dir = std::path::absolute(data_dir)?;
        let own = fs::metadata(node_directory(&data_dir, node_id))?;
        let above = data_dir.parent().unwrap_or(&data_dir);
        Ok(Self {
            node_id,
            cluster,
            secret,
            device: fs::metadata(&data_dir)?.dev(),
            device_above: fs::metadata(above)?.dev(),
            identity: (own.dev(), own.ino()),
            data_dir,
        })
    }

    /// Begins the directory anew.
    ///
    /// # Errors
    /// Why not, and what a person can do.
    pub(crate) fn begin(&self) -> Result<()> {
        self.find_data_dir()?;
        self.describe_cluster()?;
        let own = node_directory(&self.data_dir, self.node_id);
        if let Ok(found) = fs::metadata(&own)
            && (found.dev(), found.ino()) == self.identity
        {
            // It was there all the time, or is again; its lock is ours.
            return self.prepare(&own);
        }
        if has_files(&own) {
            return Err(Error::other(format!(
                "{} has files of a node that this one has not written: move them away",
                own.display()
            )));
        }
        self.prepare(&own)?;
        lock(&own)
    }

    /// The cluster's directory is there, or can be.
    fn find_data_dir(&self) -> Result<()> {
        let (place, above) = (&self.data_dir, self.data_dir.parent().unwrap_or(&self.data_dir));
        match fs::metadata(place) {
            Ok(found) if found.dev() == self.device => Ok(()),
            Ok(_) if ClusterFile::path(place).exists() => Ok(()),
            Ok(_) => Err(Error::other(format!(
                "{} is another file system now: mount the former one, or put this cluster's cluster.json there",
                place.display()
            ))),
            Err(_) if self.device != self.device_above => Err(Error::other(format!(
                "{} was a file system of its own: mount it",
                place.display()
            ))),
            Err(_) if fs::metadata(above)?.dev() != self.device_above => {
                Err(Error::other(format!(
                    "{} is another file system now: make {} there, if that is the right place",
                    above.display(),
                    place.display()
                )))
            }
            Err(_) => private::directory(place).map_err(Error::other),
        }
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

fn has_files(directory: &Path) -> bool {
    let files = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names = files.filter_map(|file| file.file_name().into_string().ok());
    names.any(|name| parse_file_name(&name).is_some() || name.starts_with("spare-"))
}

/// Keeps other processes away, as long as this one lives.
fn lock(directory: &Path) -> Result<()> {
    let file = fs::File::create(directory.join("lock"))?;
    file.try_lock().map_err(|_| {
        Error::other(format!("another process uses {}: end it", directory.display()))
    })?;
    core::mem::forget(file);
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
        (above, Anew::new(&data_dir, 1, cluster, secret).unwrap())
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
        fs::write(own.join("redo-0-0000000001.log"), "ours").unwrap();
        anew.begin().unwrap();
        fs::rename(&own, own.with_extension("aside")).unwrap();
        fs::create_dir(&own).unwrap();
        fs::write(own.join("redo-0-0000000001.log"), "somebody's").unwrap();
        assert!(anew.begin().unwrap_err().to_string().contains("move them away"));
        fs::remove_dir_all(&own).unwrap();
        ClusterFile::new(8, 1, Vec::new()).write(&anew.data_dir).unwrap();
        assert!(anew.begin().unwrap_err().to_string().contains("another cluster"));
        anew.cluster.write(&anew.data_dir).unwrap();
        anew.begin().unwrap();
        fs::remove_dir_all(above).unwrap();
    }
}
