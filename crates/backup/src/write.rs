//! Writing the files of a backup.

use crate::{
    BackupError, MANIFEST_FILE, Manifest, PartEntry,
    format::{BlockHead, Head, MANIFEST_MAGIC, PART_BYTES, PART_MAGIC, block_sum, part_name},
    place::{Output, Place},
};
use lats_base::{Epoch, TableId};
use std::{io, path::PathBuf};
use zerocopy::IntoBytes;
use zstd::bulk::Compressor;

/// So much waits for the disk at most: nobody reads from the cluster meanwhile, and it forgets who does not read.
const SYNC_BYTES: u64 = 32 << 20;
/// A good deal smaller, at some 400 MB/s.
const LEVEL: i32 = 1;

/// Writes blocks into parts.
pub(crate) struct Writer {
    place: Place,
    of: (u64, Epoch),
    compressor: Compressor<'static>,
    open: Option<Part>,
    parts: Vec<PartEntry>,
}

/// A file that blocks are added to.
struct Part {
    file: Output,
    path: PathBuf,
    head: Head,
    entry: PartEntry,
    synced: u64,
}

impl Writer {
    /// Of this cluster and epoch.
    pub(crate) fn new(place: &Place, of: (u64, Epoch)) -> Result<Self, BackupError> {
        let compressor = Compressor::new(LEVEL).map_err(BackupError::file(&place.path("")))?;
        Ok(Self { place: place.clone(), of, compressor, open: None, parts: Vec::new() })
    }

    /// Adds rows of a table; gives the bytes that they take.
    pub(crate) fn add(
        &mut self,
        table: TableId,
        rows: u32,
        block: &[u8],
    ) -> Result<u64, BackupError> {
        if self.open.as_ref().is_some_and(|part| part.entry.bytes >= PART_BYTES) {
            self.end_part()?;
        }
        let mut part = match self.open.take() {
            Some(part) => part,
            None => {
                let number = self.parts.len() as u32 + 1;
                let head = Head::new(PART_MAGIC, self.of, number, false);
                Part::begin(&self.place, (&part_name(number), false), head)?
            }
        };
        let stored = part.add((table, rows), block, &mut self.compressor)?;
        self.open = Some(part);
        Ok(stored)
    }

    fn end_part(&mut self) -> Result<(), BackupError> {
        if let Some(part) = self.open.take() {
            part.file.end().map_err(BackupError::file(&part.path))?;
            self.parts.push(part.entry);
        }
        Ok(())
    }

    /// Everything is written: says so. Before that the directory is no backup.
    pub(crate) fn finish(mut self, mut manifest: Manifest) -> Result<Manifest, BackupError> {
        self.end_part()?;
        manifest.parts = std::mem::take(&mut self.parts);
        let head = Head::new(MANIFEST_MAGIC, self.of, 0, manifest.is_durable);
        let mut part = Part::begin(&self.place, (MANIFEST_FILE, true), head)?;
        let content = lats_catalog::encode(&manifest);
        part.add((TableId::new(0), 0), &content, &mut self.compressor)?;
        part.file.end().map_err(BackupError::file(&part.path))?;
        self.place.show(MANIFEST_FILE)?;
        Ok(manifest)
    }
}

impl Part {
    fn begin(
        place: &Place,
        (name, is_last): (&str, bool),
        head: Head,
    ) -> Result<Self, BackupError> {
        let (mut file, path) = (place.create(name, is_last)?, place.path(name));
        file.write_all(head.as_bytes()).map_err(BackupError::file(&path))?;
        let bytes = size_of::<Head>() as u64;
        let entry = PartEntry { number: head.number, blocks: 0, bytes };
        Ok(Self { file, path, head, entry, synced: 0 })
    }

    fn add(
        &mut self,
        (table, rows): (TableId, u32),
        block: &[u8],
        compressor: &mut Compressor<'_>,
    ) -> Result<u64, BackupError> {
        let stored = compressor.compress(block).map_err(BackupError::file(&self.path))?;
        self.entry.blocks += 1;
        let mut head = BlockHead {
            checksum: 0,
            stored_bytes: stored.len() as u32,
            bytes: block.len() as u32,
            table,
            rows,
            number: self.entry.blocks,
        };
        head.checksum = block_sum(&self.head, &head, &stored);
        let write = |file: &mut Output| -> io::Result<()> {
            file.write_all(head.as_bytes())?;
            file.write_all(&stored)
        };
        write(&mut self.file).map_err(BackupError::file(&self.path))?;
        let length = (size_of::<BlockHead>() + stored.len()) as u64;
        self.entry.bytes += length;
        if self.entry.bytes >= self.synced + SYNC_BYTES {
            self.file.settle().map_err(BackupError::file(&self.path))?;
            self.synced = self.entry.bytes;
        }
        Ok(length)
    }
}
