//! Reading the files of a backup: nothing in them is trusted before its checksum is right.

use crate::{
    BackupError, MANIFEST_FILE, Manifest, PartEntry, TableEntry,
    format::{
        BLOCK_BYTES_MAX, BlockHead, Head, MANIFEST_MAGIC, ManifestBeforeViews, PART_MAGIC, VERSION,
        block_sum, part_name,
    },
    place::Place,
};
use lats_base::{Epoch, TableId};
use lats_catalog::former::decode_before_views;
use std::{
    collections::BTreeMap,
    io::Read,
    path::{Path, PathBuf},
};
use zerocopy::FromBytes;

/// Rows of one table.
pub(crate) struct Block {
    pub(crate) table: TableId,
    pub(crate) rows: u32,
    pub(crate) bytes: Vec<u8>,
}

/// A file with blocks.
pub(crate) struct Part {
    path: PathBuf,
    file: Box<dyn Read + Send>,
    head: Head,
    blocks: u64,
}

/// What a backup says of itself.
///
/// # Errors
/// If there is no whole backup of a version that is known here.
pub fn manifest(place: &Place) -> Result<Manifest, BackupError> {
    if !place.has(MANIFEST_FILE)? {
        return Err(BackupError::Refused(format!(
            "{place} has no {MANIFEST_FILE}: it is no backup, or one that did not come to its end"
        )));
    }
    let path = place.path(MANIFEST_FILE);
    let mut file = Part::open(place, MANIFEST_FILE, MANIFEST_MAGIC)?;
    let block = file.next()?.ok_or_else(|| BackupError::damaged(&path, "it is cut off"))?;
    let former = |_| decode_before_views::<ManifestBeforeViews>(&block.bytes).map(Manifest::from);
    let mut manifest: Manifest = lats_catalog::decode(&block.bytes)
        .or_else(former)
        .map_err(|_| BackupError::damaged(&path, "another version of LatsDB has written it"))?;
    if (manifest.cluster, manifest.epoch) != (file.head.cluster, file.head.epoch) {
        return Err(BackupError::damaged(&path, "it contradicts itself"));
    }
    manifest.is_durable = file.head.durable == 1;
    Ok(manifest)
}

/// Opens a part of a backup.
pub(crate) fn open_part(
    place: &Place,
    manifest: &Manifest,
    entry: &PartEntry,
) -> Result<Part, BackupError> {
    let name = part_name(entry.number);
    let part = Part::open(place, &name, PART_MAGIC)?;
    let found: (u64, Epoch, u32) = (part.head.cluster, part.head.epoch, part.head.number);
    if found != (manifest.cluster, manifest.epoch, entry.number) {
        return Err(BackupError::damaged(
            &place.path(&name),
            "it belongs to another backup, or was given another name",
        ));
    }
    Ok(part)
}

impl Part {
    fn open(place: &Place, name: &str, magic: [u8; 8]) -> Result<Self, BackupError> {
        let (mut file, path) = (place.open(name)?, place.path(name));
        let mut bytes = [0; size_of::<Head>()];
        if fill(&mut file, &mut bytes).map_err(BackupError::file(&path))? < bytes.len() {
            return Err(BackupError::damaged(&path, "it is too short"));
        }
        let head = Head::read_from_bytes(&bytes)
            .map_err(|_| BackupError::damaged(&path, "it is too short"))?;
        if head.magic != magic {
            return Err(BackupError::damaged(&path, "it is no such file of a backup"));
        }
        let is_newer = head.version > VERSION;
        // Heads of other versions may have another length, and their checksums elsewhere.
        if head.checksum != head.sum() && !(is_newer && head.head_bytes as usize != bytes.len()) {
            return Err(BackupError::damaged(&path, "its head is damaged"));
        }
        if is_newer {
            return Err(BackupError::damaged(&path, "a newer version of LatsDB has written it"));
        }
        Ok(Self { path, file, head, blocks: 0 })
    }

    /// The next block; none: the file ends behind the last one.
    pub(crate) fn next(&mut self) -> Result<Option<Block>, BackupError> {
        let mut bytes = [0; size_of::<BlockHead>()];
        match fill(&mut self.file, &mut bytes).map_err(BackupError::file(&self.path))? {
            0 => return Ok(None),
            read if read < bytes.len() => return Err(self.damaged("it is cut off")),
            _ => {}
        }
        let head = BlockHead::read_from_bytes(&bytes).map_err(|_| self.damaged("it is cut off"))?;
        if head.stored_bytes > BLOCK_BYTES_MAX || head.bytes > BLOCK_BYTES_MAX {
            return Err(self.damaged("its length is impossible"));
        }
        let mut stored = vec![0; head.stored_bytes as usize];
        if fill(&mut self.file, &mut stored).map_err(BackupError::file(&self.path))? < stored.len()
        {
            return Err(self.damaged("it is cut off"));
        }
        if block_sum(&self.head, &head, &stored) != head.checksum {
            return Err(self.damaged("the checksum is another"));
        }
        if head.number != self.blocks + 1 {
            return Err(self.damaged("blocks before it are missing"));
        }
        let bytes = zstd::bulk::decompress(&stored, head.bytes as usize)
            .map_err(|_| self.damaged("it cannot be decompressed"))?;
        if bytes.len() != head.bytes as usize {
            return Err(self.damaged("it has another length"));
        }
        self.blocks += 1;
        Ok(Some(Block { table: head.table, rows: head.rows, bytes }))
    }

    fn damaged(&self, why: &str) -> BackupError {
        BackupError::damaged(&self.path, format!("block {}: {why}", self.blocks + 1))
    }

    /// All blocks of the part must have been read by now.
    pub(crate) fn is_whole(&self, entry: &PartEntry) -> Result<(), BackupError> {
        if self.blocks == entry.blocks {
            return Ok(());
        }
        let why = format!("it has {} of its {} blocks", self.blocks, entry.blocks);
        Err(BackupError::damaged(&self.path, why))
    }

    /// How many blocks were read.
    pub(crate) fn blocks(&self) -> u64 {
        self.blocks
    }
}

/// What a file with rows has.
#[derive(Clone, Debug)]
pub struct PartFound {
    /// The cluster that it was taken of.
    pub cluster: u64,
    /// The rows are those of this epoch.
    pub epoch: Epoch,
    /// 1, 2, 3, …
    pub number: u32,
    /// How many whole blocks it has.
    pub blocks: u64,
    /// What it has of each table.
    pub tables: BTreeMap<TableId, TableEntry>,
    /// Why nothing can be read behind these blocks. None: there is nothing.
    pub fault: Option<String>,
}

/// Reads a file with rows for people, without the rest of its backup.
///
/// # Errors
/// If nothing of it can be read.
pub fn survey_part(path: &Path) -> Result<PartFound, BackupError> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let place = Place::directory(path.parent().unwrap_or(Path::new("")));
    let mut part = Part::open(&place, name, PART_MAGIC)?;
    let Head { cluster, epoch, number, .. } = part.head;
    let (mut tables, mut fault) = (BTreeMap::<TableId, TableEntry>::new(), None);
    loop {
        match part.next() {
            Ok(Some(block)) => {
                let table = tables.entry(block.table).or_default();
                table.rows += u64::from(block.rows);
                // Each row has its length before it.
                let lengths = u64::from(block.rows) * size_of::<u32>() as u64;
                table.bytes += (block.bytes.len() as u64).saturating_sub(lengths);
            }
            Ok(None) => break,
            Err(error) => {
                fault = Some(error.to_string());
                break;
            }
        }
    }
    Ok(PartFound { cluster, epoch, number, blocks: part.blocks(), tables, fault })
}

/// Reads until the buffer is full or the file ends.
fn fill(file: &mut impl Read, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
