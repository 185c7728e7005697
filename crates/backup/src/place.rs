//! Where a backup is: in a directory, or in an object store. One process writes there, and removes nothing but what is its own.

pub(crate) mod directory;
mod objects;

pub use directory::make as make_directory;
pub(crate) use directory::sync_directory;

use crate::{BackupError, MANIFEST_FILE};
use objects::{Objects, Upload};
use std::{
    fmt,
    fs::{self, File},
    io::{self, BufReader, Read, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

/// It is there as long as a backup is being written, or was not finished.
const UNFINISHED_FILE: &str = "unfinished";

/// A directory, or what stands below a URL of an object store (`s3://BUCKET/PATH`, `gs://`, `az://`).
///
/// What it does waits for disks or for the network: not in a task, but in a thread that may block.
#[derive(Clone)]
pub struct Place {
    /// As it was named.
    name: PathBuf,
    objects: Option<Arc<Objects>>,
}

/// A file that is being written.
pub(crate) enum Output {
    File(File),
    Object(Upload),
}

impl Place {
    /// What a person has named: a URL, or else a directory. Credentials and settings of object stores are taken from `variables`
    /// (`AWS_ACCESS_KEY_ID`, `AWS_REGION`, `AWS_ENDPOINT_URL`, …). It is used within tokio.
    ///
    /// # Errors
    /// If it is no URL of an object store that is known.
    pub fn named(
        text: &str,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, BackupError> {
        let objects = match text.contains("://") {
            true => Some(Arc::new(Objects::named(text, variables)?)),
            false => None,
        };
        Ok(Self { name: PathBuf::from(text), objects })
    }

    /// A directory.
    pub fn directory(path: &Path) -> Self {
        Self { name: path.to_path_buf(), objects: None }
    }

    /// What a file is called in words.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.name.join(name)
    }

    /// Takes possession of it: nothing may be there.
    pub(crate) fn prepare(&self) -> Result<(), BackupError> {
        let is_ours = match &self.objects {
            None => directory::prepare(&self.name)?,
            Some(objects) => {
                let names = || objects.names().map_err(self.failed(""));
                let create =
                    || objects.create(UNFINISHED_FILE).map_err(self.failed(UNFINISHED_FILE));
                names()?.is_empty() && create()? && self.is_alone(objects)?
            }
        };
        match is_ours {
            true => Ok(()),
            false => Err(BackupError::Refused(format!(
                "{self} is not empty; name a new one for each backup"
            ))),
        }
    }

    /// Somebody may have come and gone between the first look and the mark, which does not stay then.
    fn is_alone(&self, objects: &Objects) -> Result<bool, BackupError> {
        let listed = objects.names().map_err(self.failed(""));
        if listed.as_ref().is_ok_and(|names| *names == [UNFINISHED_FILE]) {
            return Ok(true);
        }
        match (listed, self.release()) {
            (Ok(_), Ok(())) => Ok(false),
            (Err(error), Ok(())) => Err(error),
            (Ok(_), Err(left)) => Err(left),
            (Err(error), Err(left)) => Err(BackupError::left(&error, self, &left)),
        }
    }

    /// What an attempt has left is no backup: what says that it is one goes first.
    pub(crate) fn clear(&self) -> Result<(), BackupError> {
        let mut names = match &self.objects {
            None => directory::names(&self.name)?,
            Some(objects) => {
                objects.settle().map_err(self.failed(""))?;
                objects.names().map_err(self.failed(""))?
            }
        };
        names.retain(|name| name.starts_with("rows-") || name.starts_with(MANIFEST_FILE));
        names.sort_by_key(|name| !name.starts_with(MANIFEST_FILE));
        names.iter().try_for_each(|name| self.remove(name))
    }

    /// Nothing will be written there any more.
    pub(crate) fn release(&self) -> Result<(), BackupError> {
        self.remove(UNFINISHED_FILE)?;
        self.sync()
    }

    fn remove(&self, name: &str) -> Result<(), BackupError> {
        let removed = match &self.objects {
            None => fs::remove_file(self.path(name)),
            Some(objects) => objects.remove(name),
        };
        removed.map_err(self.failed(name))
    }

    fn sync(&self) -> Result<(), BackupError> {
        if self.objects.is_some() { Ok(()) } else { sync_directory(&self.name) }
    }

    /// True if there is such a file.
    pub(crate) fn has(&self, name: &str) -> Result<bool, BackupError> {
        let has = match &self.objects {
            None => self.path(name).try_exists(),
            Some(objects) => objects.length(name).map(|length| length.is_some()),
        };
        has.map_err(self.failed(name))
    }

    /// Reads a file from its beginning.
    pub(crate) fn open(&self, name: &str) -> Result<Box<dyn Read + Send>, BackupError> {
        let opened = match &self.objects {
            None => File::open(self.path(name))
                .map(|file| Box::new(BufReader::with_capacity(1 << 20, file)) as _),
            Some(objects) => objects.open(name).map(|object| Box::new(object) as _),
        };
        opened.map_err(self.failed(name))
    }

    /// A new file. It may be there under another name until it is shown.
    pub(crate) fn create(&self, name: &str, is_last: bool) -> Result<Output, BackupError> {
        let created = match &self.objects {
            // Nobody else takes a backup into this directory.
            None if is_last => File::create_new(self.path(&hidden(name))).map(Output::File),
            None => File::create_new(self.path(name)).map(Output::File),
            // It is there when it is whole.
            Some(objects) => objects.upload(name).map(Output::Object),
        };
        created.map_err(self.failed(name))
    }

    /// What was created as the last file has its name.
    pub(crate) fn show(&self, name: &str) -> Result<(), BackupError> {
        if self.objects.is_none() {
            let shown = fs::rename(self.path(&hidden(name)), self.path(name));
            shown.map_err(self.failed(name))?;
        }
        self.sync()
    }

    fn failed(&self, name: &str) -> impl FnOnce(io::Error) -> BackupError + use<> {
        let path = self.path(name);
        move |error| BackupError::File { path, error }
    }
}

fn hidden(name: &str) -> String {
    format!("{name}.tmp")
}

impl From<&Path> for Place {
    fn from(path: &Path) -> Self {
        Self { name: path.to_path_buf(), objects: None }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.display().fmt(f)
    }
}

impl Output {
    /// What was written is on its way: no more than some of it is only in memory.
    pub(crate) fn settle(&mut self) -> io::Result<()> {
        match self {
            Self::File(file) => file.sync_data(),
            Self::Object(_) => Ok(()),
        }
    }

    /// All of it is there, for good.
    pub(crate) fn end(self) -> io::Result<()> {
        match self {
            Self::File(file) => file.sync_all(),
            Self::Object(upload) => upload.end(),
        }
    }

    pub(crate) fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::File(file) => file.write_all(bytes),
            Self::Object(upload) => upload.write(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_may_be_named_from_here() {
        let name = format!("lats-place-here-{}", std::process::id());
        let directory = Path::new(&name).join("b");
        let place = Place::from(&*directory);
        place.prepare().unwrap();
        place.release().unwrap();
        fs::remove_dir_all(name).unwrap();
    }

    #[test]
    fn one_backup_is_written_into_a_directory() {
        let above = std::env::temp_dir().join(format!("lats-place-{}", std::process::id()));
        let _ = fs::remove_dir_all(&above);
        let directory = above.join("a/b");
        let place = Place::from(&*directory);
        place.prepare().unwrap();
        let refused = place.prepare().unwrap_err().to_string();
        assert!(refused.contains("name a new one"), "{refused}");
        fs::write(directory.join("rows-0001.lats"), b"r").unwrap();
        fs::write(directory.join(MANIFEST_FILE), b"m").unwrap();
        fs::write(directory.join("mine"), b"?").unwrap();
        place.clear().unwrap();
        assert!(place.prepare().is_err(), "it is still ours");
        place.release().unwrap();
        let left = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().file_name());
        assert_eq!(left.collect::<Vec<_>>(), ["mine"]);
        fs::remove_dir_all(&above).unwrap();
    }
}
