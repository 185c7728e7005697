//! Object stores: a file is an object, which is there as a whole or not at all.

use crate::BackupError;
use object_store::{
    BackoffConfig, ClientOptions, Error, MultipartUpload, ObjectStore, ObjectStoreExt,
    ObjectStoreScheme, PutMode, PutPayload, RetryConfig, aws::AmazonS3Builder,
    azure::MicrosoftAzureBuilder, gcp::GoogleCloudStorageBuilder, path::Path,
};
use std::{
    collections::VecDeque,
    io::{self, Read},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{
    runtime::Handle,
    task::{JoinHandle, JoinSet},
};
use url::Url;

/// So much is sent or asked for at once.
const CHUNK_BYTES: usize = 8 << 20;
/// So many chunks are under way.
const CHUNKS: usize = 4;
/// A request that has no answer by then has failed. One that fails is tried again for so long. Both together are less than a
/// minute: data nodes forget who reads nothing for that long.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(25);
const RETRY_TIMEOUT: Duration = Duration::from_secs(30);
/// Between two attempts there is no more time than this.
const MAX_BACKOFF: Duration = Duration::from_secs(2);
/// Whose settings are read from the environment.
const SETTINGS: [&str; 3] = ["AWS_", "AZURE_", "GOOGLE_"];

type Settings = Vec<(String, String)>;

/// The objects below a URL.
pub(super) struct Objects {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    tokio: Handle,
    /// Uploads that came to nothing are being removed there.
    aborts: Mutex<Vec<JoinHandle<object_store::Result<()>>>>,
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
        let is_setting =
            |(name, _): &(String, String)| SETTINGS.iter().any(|prefix| name.starts_with(prefix));
        let settings: Settings = variables.into_iter().filter(is_setting).collect();
        let known = ObjectStoreScheme::parse(&url).map_err(|error| refused(&error));
        let (scheme, prefix) = known?;
        let store = open_store(&scheme, &url, settings).map_err(|error| refused(&error))?;
        let store = store.ok_or_else(|| refused(&"it is no object store"))?;
        Ok(Self { store, prefix, tokio: Handle::current(), aborts: Mutex::default() })
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
            // It was told not to ask for that (AWS_CONDITIONAL_PUT).
            Err(Error::NotImplemented { .. }) => {
                self.tokio.block_on(put(PutMode::Overwrite))?;
                Ok(true)
            }
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        match self.tokio.block_on(self.store.delete(&self.at(name))) {
            // An answer was lost, and it was asked for once more.
            Err(Error::NotFound { .. }) => Ok(()),
            done => Ok(done?),
        }
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
        Ok(Upload {
            objects: self.clone(),
            upload: Some(upload),
            tasks: JoinSet::new(),
            chunk: Vec::new(),
        })
    }

    /// Waits until what came to nothing is gone.
    pub(super) fn settle(&self) -> io::Result<()> {
        let aborts =
            std::mem::take(&mut *self.aborts.lock().unwrap_or_else(PoisonError::into_inner));
        for abort in aborts {
            self.tokio.block_on(abort).map_err(io::Error::other)??;
        }
        Ok(())
    }
}

/// The store that a URL means; none: it is of no use for backups.
fn open_store(
    scheme: &ObjectStoreScheme,
    url: &Url,
    settings: Settings,
) -> object_store::Result<Option<Arc<dyn ObjectStore>>> {
    // The time is what ends it, not a number of attempts.
    let backoff = BackoffConfig { max_backoff: MAX_BACKOFF, ..BackoffConfig::default() };
    let retry = RetryConfig { backoff, max_retries: usize::MAX, retry_timeout: RETRY_TIMEOUT };
    let options = ClientOptions::new().with_timeout(REQUEST_TIMEOUT);
    macro_rules! build {
        ($builder:ty) => {{
            let builder = <$builder>::new().with_url(url.to_string()).with_retry(retry);
            let mut builder = builder.with_client_options(options);
            for (name, value) in settings {
                if let Ok(key) = name.to_ascii_lowercase().parse() {
                    builder = builder.with_config(key, value);
                }
            }
            Arc::new(builder.build()?) as _
        }};
    }
    Ok(Some(match scheme {
        ObjectStoreScheme::AmazonS3 => build!(AmazonS3Builder),
        ObjectStoreScheme::GoogleCloudStorage => build!(GoogleCloudStorageBuilder),
        ObjectStoreScheme::MicrosoftAzure => build!(MicrosoftAzureBuilder),
        // What ends with this process is no backup.
        ObjectStoreScheme::Memory if cfg!(test) => Arc::new(object_store::memory::InMemory::new()),
        // Directories have their own way.
        _ => return Ok(None),
    }))
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
    /// None: it has come to its end.
    upload: Option<Box<dyn MultipartUpload>>,
    /// Chunks that are being sent.
    tasks: JoinSet<object_store::Result<()>>,
    chunk: Vec<u8>,
}

impl Upload {
    pub(super) fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(CHUNK_BYTES - self.chunk.len()));
            self.chunk.extend_from_slice(now);
            bytes = later;
            if self.chunk.len() == CHUNK_BYTES {
                self.send()?;
            }
        }
        Ok(())
    }

    /// Sends the chunk; waits if too many are under way.
    fn send(&mut self) -> io::Result<()> {
        self.wait_for_less_than(CHUNKS)?;
        if let Some(upload) = &mut self.upload {
            let sent = upload.put_part(PutPayload::from(std::mem::take(&mut self.chunk)));
            self.tasks.spawn_on(sent, &self.objects.tokio);
        }
        Ok(())
    }

    fn wait_for_less_than(&mut self, count: usize) -> io::Result<()> {
        while self.tasks.len() >= count {
            let Some(sent) = self.objects.tokio.block_on(self.tasks.join_next()) else { break };
            sent.map_err(io::Error::other)??;
        }
        Ok(())
    }

    pub(super) fn end(mut self) -> io::Result<()> {
        if !self.chunk.is_empty() {
            self.send()?;
        }
        self.wait_for_less_than(1)?;
        if let Some(upload) = &mut self.upload {
            self.objects.tokio.block_on(upload.complete())?;
        }
        self.upload = None;
        Ok(())
    }
}

impl Drop for Upload {
    /// What was sent would stay there, and cost, where nobody sees it.
    fn drop(&mut self) {
        let Some(mut upload) = self.upload.take() else { return };
        let mut tasks = std::mem::take(&mut self.tasks);
        let abort = self.objects.tokio.spawn(async move {
            tasks.shutdown().await;
            upload.abort().await
        });
        self.objects.aborts.lock().unwrap_or_else(PoisonError::into_inner).push(abort);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn objects(tokio: &tokio::runtime::Runtime) -> Arc<Objects> {
        Arc::new(tokio.block_on(async { Objects::named("memory:///a/b", []) }).unwrap())
    }

    #[test]
    fn an_object_is_created_once() {
        let tokio = tokio::runtime::Runtime::new().unwrap();
        let objects = objects(&tokio);
        assert!(objects.create("x").unwrap() && !objects.create("x").unwrap());
        assert_eq!(objects.names().unwrap(), ["x"]);
        objects.remove("x").unwrap();
        assert!(objects.create("x").unwrap());
    }

    #[test]
    fn an_object_is_there_when_it_has_come_to_its_end() {
        let tokio = tokio::runtime::Runtime::new().unwrap();
        let objects = objects(&tokio);
        let mut upload = objects.upload("x").unwrap();
        upload.write(&vec![7; 5 * CHUNK_BYTES / 2]).unwrap();
        drop(upload);
        objects.settle().unwrap();
        assert_eq!(objects.length("x").unwrap(), None);
        let mut upload = objects.upload("x").unwrap();
        upload.write(&[1; 10]).unwrap();
        upload.write(&vec![2; 5 * CHUNK_BYTES]).unwrap();
        upload.end().unwrap();
        let mut bytes = Vec::new();
        objects.open("x").unwrap().read_to_end(&mut bytes).unwrap();
        assert!(
            bytes.len() == 10 + 5 * CHUNK_BYTES && bytes[..11] == [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2]
        );
    }
}
