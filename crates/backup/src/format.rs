//! What the files of a backup look like. Format: `docs/formats/backup.md`.

use lats_base::{Epoch, TableId, hash};
use lats_catalog::{Catalog, former::CatalogBeforeViews};
use serde::{Deserialize, Serialize};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// What the file that describes a backup is called: it is written last.
pub const MANIFEST_FILE: &str = "backup.lats";

/// What its files begin with.
pub(crate) const MANIFEST_MAGIC: [u8; 8] = *b"LATSBKUP";
pub(crate) const PART_MAGIC: [u8; 8] = *b"LATSPART";
/// The version of the format.
pub(crate) const VERSION: u32 = 1;
/// No block is longer, as it was or as it is stored.
pub(crate) const BLOCK_BYTES_MAX: u32 = 64 << 20;
/// So much of a backup is in one file, about.
pub(crate) const PART_BYTES: u64 = 1 << 30;

/// The first 48 bytes of each file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Head {
    pub(crate) magic: [u8; 8],
    pub(crate) version: u32,
    pub(crate) head_bytes: u32,
    pub(crate) cluster: u64,
    pub(crate) epoch: Epoch,
    /// The part; 0: the manifest.
    pub(crate) number: u32,
    /// Of the manifest: 1 if the epoch was on the disks of all replicas when the backup ended (ARCHIVE-4).
    pub(crate) durable: u32,
    /// Of all before it.
    pub(crate) checksum: u64,
}

/// What a block begins with: 32 bytes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub(crate) struct BlockHead {
    /// Of all behind it, and of the file's head.
    pub(crate) checksum: u64,
    /// Bytes that follow this head: compressed.
    pub(crate) stored_bytes: u32,
    /// So many bytes they were.
    pub(crate) bytes: u32,
    /// Whose rows they are.
    pub(crate) table: TableId,
    /// How many.
    pub(crate) rows: u32,
    /// 1, 2, 3, … in the file.
    pub(crate) number: u64,
}

impl Head {
    pub(crate) fn new(magic: [u8; 8], of: (u64, Epoch), number: u32, durable: bool) -> Self {
        let (version, head_bytes) = (VERSION, size_of::<Self>() as u32);
        let (cluster, epoch) = of;
        let durable = u32::from(durable);
        let mut head =
            Self { magic, version, head_bytes, cluster, epoch, number, durable, checksum: 0 };
        head.checksum = head.sum();
        head
    }

    pub(crate) fn sum(&self) -> u64 {
        hash::partition_hash(&self.as_bytes()[..size_of::<Self>() - size_of::<u64>()])
    }
}

/// The checksum of a block in the file with this head.
pub(crate) fn block_sum(file: &Head, head: &BlockHead, stored: &[u8]) -> u64 {
    let behind = hash::partition_hash(&head.as_bytes()[size_of::<u64>()..]);
    // Rotated, so that equal parts do not cancel each other.
    file.checksum ^ behind.rotate_left(1) ^ hash::partition_hash(stored).rotate_left(2)
}

/// What is in a backup.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of LatsDB that has taken it.
    pub software: String,
    /// The cluster that it was taken of.
    pub cluster: u64,
    /// The rows are those of this epoch.
    pub epoch: Epoch,
    /// When it was begun, in ms since 1970, and how long it took.
    pub taken_at_ms: u64,
    /// See `taken_at_ms`.
    pub took_ms: u64,
    /// The epoch was on the disks of all replicas in the end: no restart of the cluster has made it void since. What an archive
    /// tells of later ones can be restored on top of it.
    #[serde(skip)]
    pub is_durable: bool,
    /// The definitions of all tables.
    pub catalog: Catalog,
    /// Tables whose rows are here.
    pub tables: Vec<TableEntry>,
    /// The files with the rows.
    pub parts: Vec<PartEntry>,
}

/// A manifest as it was before there were views.
#[derive(Deserialize)]
pub(crate) struct ManifestBeforeViews {
    software: String,
    cluster: u64,
    epoch: Epoch,
    taken_at_ms: u64,
    took_ms: u64,
    catalog: CatalogBeforeViews,
    tables: Vec<TableEntry>,
    parts: Vec<PartEntry>,
}

impl From<ManifestBeforeViews> for Manifest {
    fn from(former: ManifestBeforeViews) -> Self {
        Self {
            software: former.software,
            cluster: former.cluster,
            epoch: former.epoch,
            taken_at_ms: former.taken_at_ms,
            took_ms: former.took_ms,
            is_durable: false,
            catalog: former.catalog.into(),
            tables: former.tables,
            parts: former.parts,
        }
    }
}

/// A table in a backup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableEntry {
    /// The table.
    pub table: TableId,
    /// How many rows it has.
    pub rows: u64,
    /// Their bytes, as they are in memory.
    pub bytes: u64,
}

/// A file with rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartEntry {
    /// 1, 2, 3, …
    pub number: u32,
    /// How many blocks it has.
    pub blocks: u64,
    /// Its length.
    pub bytes: u64,
}

/// What a part is called.
pub(crate) fn part_name(number: u32) -> String {
    format!("rows-{number:04}.lats")
}

/// Adds a row to a block.
pub(crate) fn push_row(block: &mut Vec<u8>, row: &[u8]) {
    block.extend_from_slice(&(row.len() as u32).to_le_bytes());
    block.extend_from_slice(row);
}

/// The rows of a block; an error behind the last one that is whole.
pub(crate) fn rows(mut block: &[u8]) -> impl Iterator<Item = Result<&[u8], &'static str>> {
    std::iter::from_fn(move || {
        if block.is_empty() {
            return None;
        }
        let row = block
            .split_first_chunk::<4>()
            .and_then(|(length, rest)| rest.split_at_checked(u32::from_le_bytes(*length) as usize));
        let (row, rest) = match row {
            Some((row, rest)) => (Ok(row), rest),
            None => (Err("a row is cut off"), &[][..]),
        };
        block = rest;
        Some(row)
    })
}
