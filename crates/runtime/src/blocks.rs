//! A file that is written in whole blocks, past the page cache, where the file system can do that.

use rustix::fs::OFlags;
use std::{
    fs::File,
    io::{Error, ErrorKind, Result},
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

/// Devices and file systems take multiples of this, at multiples of this, from memory at multiples of this.
pub(crate) const BLOCK_BYTES: usize = 4_096;

/// A file is lengthened when less than this is left of it,
const AHEAD_BYTES: u64 = 1 << 20;
/// by so much: others wait that long.
const PREPARED_BYTES: usize = 256 << 10;

/// A file that grows at its end.
pub(crate) struct BlockFile {
    path: PathBuf,
    file: File,
    /// It is written past the page cache.
    direct: bool,
    /// The length of the file: what is written before that is news for nobody but the device.
    length: u64,
    /// Where the last write ended, and what stands in the block there before that.
    end: u64,
    tail: Vec<u8>,
    /// Room for whole blocks, and some to spare: they begin at a multiple of their size.
    room: Vec<u8>,
}

impl BlockFile {
    /// Opens a file, or creates it.
    pub(crate) fn open(path: &Path, direct: bool) -> Result<Self> {
        let (file, direct) = match open(path, direct) {
            // Not every file system can do that.
            Err(error) if direct && error.kind() == ErrorKind::InvalidInput => {
                (open(path, false)?, false)
            }
            opened => (opened?, direct),
        };
        let length = file.metadata()?.len();
        let (path, tail, room) = (path.to_path_buf(), Vec::new(), Vec::new());
        Ok(Self { path, file, direct, length, end: 0, tail, room })
    }

    /// Writes bytes; what stands behind them in their last block is overwritten with zeros.
    pub(crate) fn write(&mut self, bytes: &[u8], offset: u64) -> Result<()> {
        if !self.direct {
            return self.file.write_all_at(bytes, offset);
        }
        match self.write_blocks(bytes, offset) {
            // This device wants larger blocks.
            Err(error) if error.kind() == ErrorKind::InvalidInput => {
                (self.file, self.direct) = (open(&self.path, false)?, false);
                self.file.write_all_at(bytes, offset)
            }
            done => done,
        }
    }

    fn write_blocks(&mut self, bytes: &[u8], offset: u64) -> Result<()> {
        let before = (offset % BLOCK_BYTES as u64) as usize;
        if self.end != offset {
            self.tail.resize(before, 0);
            File::open(&self.path)?.read_exact_at(&mut self.tail, offset - before as u64)?;
            self.end = offset;
        }
        let end = before + bytes.len();
        let length = end.next_multiple_of(BLOCK_BYTES);
        let blocks = aligned(&mut self.room, length);
        blocks[..before].copy_from_slice(&self.tail);
        blocks[before..end].copy_from_slice(bytes);
        blocks[end..].fill(0);
        self.file.write_all_at(blocks, offset - before as u64)?;
        self.length = self.length.max(offset - before as u64 + length as u64);
        let last = end / BLOCK_BYTES * BLOCK_BYTES;
        self.tail.clear();
        self.tail.extend_from_slice(&blocks[last..end]);
        self.end = offset + bytes.len() as u64;
        Ok(())
    }

    /// Lengthens the file by zeros, unless some stand behind what was written: the file system has its work behind it when
    /// the next writes are synced. False if there was nothing to do, or is no room.
    ///
    /// # Errors
    /// What was written before may be lost, too (DURABLE-4).
    pub(crate) fn prepare(&mut self) -> Result<bool> {
        if !self.direct || self.length >= self.end + AHEAD_BYTES {
            return Ok(false);
        }
        let zeros = aligned(&mut self.room, PREPARED_BYTES);
        zeros.fill(0);
        match self.file.write_all_at(zeros, self.length) {
            Err(error) if is_full(&error) => return Ok(false),
            done => done?,
        }
        self.file.sync_data()?;
        self.length += PREPARED_BYTES as u64;
        Ok(true)
    }

    /// Makes safe what was written.
    pub(crate) fn sync(&self) -> Result<()> {
        self.file.sync_data()
    }
}

pub(crate) fn is_full(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

/// So many bytes at a multiple of [`BLOCK_BYTES`].
fn aligned(room: &mut Vec<u8>, length: usize) -> &mut [u8] {
    if room.len() < length + BLOCK_BYTES {
        room.resize(length + BLOCK_BYTES, 0);
    }
    let begin = room.as_ptr().align_offset(BLOCK_BYTES);
    &mut room[begin..begin + length]
}

fn open(path: &Path, direct: bool) -> Result<File> {
    let flags = if direct { OFlags::DIRECT.bits() as i32 } else { 0 };
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false).custom_flags(flags).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lats_base::prng::Prng;

    #[test]
    fn what_is_written_piece_by_piece_is_there_as_a_whole() {
        let path = std::env::temp_dir().join(format!("lats-blocks-{}", std::process::id()));
        for direct in [true, false] {
            let mut random = Prng::new(7);
            let mut file = BlockFile::open(&path, direct).unwrap();
            if direct != file.direct {
                println!("not tested: {} cannot be written past the page cache", path.display());
            }
            let mut all = Vec::new();
            for round in 0..200 {
                let most = [100, 5_000, 70_000][random.below(3) as usize];
                let bytes = vec![round as u8; random.below(most) as usize];
                // A write may be asked for once more.
                for _ in 0..random.between(1, 2) {
                    file.write(&bytes, all.len() as u64).unwrap();
                }
                all.extend(bytes);
                while random.chance(1, 3) && file.prepare().unwrap() {
                    assert!(
                        file.length <= all.len() as u64 + AHEAD_BYTES + (PREPARED_BYTES as u64)
                    );
                }
                if random.chance(1, 20) {
                    file = BlockFile::open(&path, direct).unwrap();
                }
            }
            file.sync().unwrap();
            let read = std::fs::read(&path).unwrap();
            assert!(read[..all.len()] == all[..] && read[all.len()..].iter().all(|b| *b == 0));
            std::fs::remove_file(&path).unwrap();
        }
    }
}
