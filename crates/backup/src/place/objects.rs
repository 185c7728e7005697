//! Object stores: a file is an object, which is there as a whole or not at all.

use crate::BackupError;
use object_store::{
    Error, ObjectStore, ObjectStoreExt, PutMode, PutPayload, WriteMultipart, path::Path,
};
use std::{
    collections::VecDeque,
    io::{self, Read},
    sync::Arc,
};
use tokio::{runtime::Handle, task::JoinHandle};
use url::Url;

/// So much is sent or asked for at once.
const CHUNK_BYTES: usize = 8 << 20;
/// So many chunks are under way.
const CHUNKS: usize = 4;
/// Whose settings are read from the environment.
const SETTINGS: [&str; 3] = ["AWS_", "AZURE_", "GOOGLE_"];

/// The objects below a URL.
pub(super) struct Objects {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    tokio: Handle,
}

impl Objects {
    pub(super) fn named(
        text: &str,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, BackupError> {
        let refused = |why: &dyn std::fmt::Display| {
            BackupError::Refused(format!(
                "{text} is no place for backups: {why}; name a directory, or s3://BUCKET/PATH (gs://, az://)"
            ))
        };
        let url = Url::parse(text).map_err(|error| refused(&error))?;
        // What ends with this process is no backup, and directories have their own way.
        if matches!(url.scheme(), "file" | "memory") && !(cfg!(test) && url.scheme() == "memory") {
            return Err(refused(&"it is no object store"));
        }
        let is_setting =
            |(name, _): &(String, String)| SETTINGS.iter().any(|prefix| name.starts_with(prefix));
        let settings = variables.into_iter().filter(is_setting);
        let parsed = object_store::parse_url_opts(&url, settings);
        let (store, prefix) = parsed.map_err(|error| refused(&error))?;
        Ok(Self { store: store.into(), prefix, tokio: Handle::current() })
    }

    fn at(&self, name: &str) -> Path {
        self.prefix.clone().join(name)
    }

    /// The names of all objects right below it.
    pub(super) fn names(&self) -> io::Result<Vec<String>> {
        let listed = self.tokio.block_on(self.store.list_with_delimiter(Some(&self.prefix)))?;
        let objects = listed.objects.iter().filter_map(|object| object.location.filename());
        let deeper = listed.common_prefixes.iter().filter_map(Path::filename);
        Ok(objects.chain(deeper).map(str::to_string).collect())
    }

    /// Makes an empty object. False if it is there already.
    pub(super) fn create(&self, name: &str) -> io::Result<bool> {
        let at = self.at(name);
        let put = |mode: PutMode| self.store.put_opts(&at, PutPayload::new(), mode.into());
        match self.tokio.block_on(put(PutMode::Create)) {
            Ok(_) => Ok(true),
            Err(Error::AlreadyExists { .. }) => Ok(false),
            // Stores of old cannot tell.
            Err(Error::NotImplemented { .. }) => {
                self.tokio.block_on(put(PutMode::Overwrite))?;
                Ok(true)
            }
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        Ok(self.tokio.block_on(self.store.delete(&self.at(name)))?)
    }

    /// None: it is not there.
    pub(super) fn length(&self, name: &str) -> io::Result<Option<u64>> {
        match self.tokio.block_on(self.store.head(&self.at(name))) {
            Ok(object) => Ok(Some(object.size)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn open(self: &Arc<Self>, name: &str) -> io::Result<Download> {
        let length = self.length(name)?.ok_or(io::ErrorKind::NotFound)?;
        Ok(Download {
            objects: self.clone(),
            at: self.at(name),
            length,
            asked: 0,
            under_way: VecDeque::new(),
            chunk: Vec::new(),
            read: 0,
        })
    }

    pub(super) fn upload(self: &Arc<Self>, name: &str) -> io::Result<Upload> {
        let upload = self.tokio.block_on(self.store.put_multipart(&self.at(name)))?;
        let writer = WriteMultipart::new_with_chunk_size(upload, CHUNK_BYTES);
        Ok(Upload { objects: self.clone(), writer: Some(writer) })
    }
}

/// An object that is being read.
pub(super) struct Download {
    objects: Arc<Objects>,
    at: Path,
    length: u64,
    /// So much of it was asked for.
    asked: u64,
    under_way: VecDeque<JoinHandle<object_store::Result<Vec<u8>>>>,
    chunk: Vec<u8>,
    /// So much of the chunk was read.
    read: usize,
}

impl Download {
    fn ask(&mut self) {
        while self.under_way.len() < CHUNKS && self.asked < self.length {
            let end = self.length.min(self.asked + CHUNK_BYTES as u64);
            let (store, at, range) = (self.objects.store.clone(), self.at.clone(), self.asked..end);
            let get = async move { Ok(store.get_range(&at, range).await?.to_vec()) };
            self.under_way.push_back(self.objects.tokio.spawn(get));
            self.asked = end;
        }
    }
}

impl Read for Download {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.read == self.chunk.len() {
            self.ask();
            let Some(next) = self.under_way.pop_front() else { return Ok(0) };
            self.chunk = self.objects.tokio.block_on(next).map_err(io::Error::other)??;
            self.read = 0;
        }
        let read = buffer.len().min(self.chunk.len() - self.read);
        buffer[..read].copy_from_slice(&self.chunk[self.read..self.read + read]);
        self.read += read;
        Ok(read)
    }
}

impl Drop for Download {
    fn drop(&mut self) {
        self.under_way.iter().for_each(JoinHandle::abort);
    }
}

/// An object that is being written: it is there when it has come to its end.
pub(crate) struct Upload {
    objects: Arc<Objects>,
    writer: Option<WriteMultipart>,
}

impl Upload {
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(writer) = &mut self.writer else { return Err(io::ErrorKind::BrokenPipe.into()) };
        let tokio = &self.objects.tokio;
        tokio.block_on(writer.wait_for_capacity(CHUNKS))?;
        // It sends from within tokio.
        let _within = tokio.enter();
        writer.write(bytes);
        Ok(())
    }

    pub(super) fn end(mut self) -> io::Result<()> {
        if let Some(writer) = self.writer.take() {
            self.objects.tokio.block_on(writer.finish())?;
        }
        Ok(())
    }
}

impl Drop for Upload {
    /// What was sent would stay there, and cost, where nobody sees it.
    fn drop(&mut self) {
        if let Some(writer) = self.writer.take() {
            self.objects.tokio.spawn(writer.abort());
        }
    }
}
