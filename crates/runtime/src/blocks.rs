//! A file that is written in whole blocks, past the page cache, where the file system can do that.

use rustix::fs::OFlags;
use std::{
    fs::{File, OpenOptions},
    io::{Error, ErrorKind, Result},
    os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

/// Devices and file systems take multiples of this, at multiples of this, from memory at multiples of this.
pub(crate) const BLOCK_BYTES: usize = 4_096;

/// A file is lengthened when less than this is left of it,
const AHEAD_BYTES: u64 = 1 << 20;
/// by so much: others wait that long.
const PREPARED_BYTES: usize = 256 << 10;

/// So many blocks of what was written last are remembered.
const TAIL_BLOCKS: u64 = 2;

/// A file that grows at its end.
pub(crate) struct BlockFile {
    path: PathBuf,
    file: File,
    /// It is written past the page cache.
    direct: bool,
    /// The length of the file: what is written before that is news for nobody but the device.
    length: u64,
    /// Where the last write ended, and what stands before that in the last blocks: the next one begins there, or a little before.
    end: u64,
    tail: Vec<u8>,
    /// Room for whole blocks, and some to spare: they begin at a multiple of their size.
    room: Vec<u8>,
}

impl BlockFile {
    /// Opens a file, or creates it.
    pub(crate) fn open(path: &Path, direct: bool) -> Result<Self> {
        let (file, direct) = match direct {
            true => open_direct(&mut to_write(), path)?,
            false => (to_write().open(path)?, false),
        };
        // Who has written it may not have written whole blocks.
        let length = file.metadata()?.len().next_multiple_of(BLOCK_BYTES as u64);
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
                self.use_page_cache()?;
                self.file.write_all_at(bytes, offset)
            }
            done => done,
        }
    }

    fn use_page_cache(&mut self) -> Result<()> {
        (self.file, self.direct) = (to_write().open(&self.path)?, false);
        Ok(())
    }

    fn write_blocks(&mut self, bytes: &[u8], offset: u64) -> Result<()> {
        let begin = block_of(offset);
        let before = (offset - begin) as usize;
        let (tail_begin, tail_end) = (self.end - self.tail.len() as u64, self.end);
        let end = before + bytes.len();
        let length = end.next_multiple_of(BLOCK_BYTES);
        let blocks = aligned(&mut self.room, length);
        if tail_begin <= begin && offset <= tail_end {
            let from = (begin - tail_begin) as usize;
            blocks[..before].copy_from_slice(&self.tail[from..from + before]);
        } else {
            File::open(&self.path)?.read_exact_at(&mut blocks[..before], begin)?;
        }
        blocks[before..end].copy_from_slice(bytes);
        blocks[end..].fill(0);
        self.file.write_all_at(blocks, begin)?;
        self.length = self.length.max(begin + length as u64);
        self.end = begin + end as u64;
        let tail = block_of(self.end).saturating_sub((TAIL_BLOCKS - 1) * BLOCK_BYTES as u64);
        self.tail.clear();
        self.tail.extend_from_slice(&blocks[tail.saturating_sub(begin) as usize..end]);
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
            // This device wants larger blocks.
            Err(error) if error.kind() == ErrorKind::InvalidInput => {
                self.use_page_cache()?;
                return Ok(false);
            }
            done => done?,
        }
        self.file.sync_data()?;
        self.length += PREPARED_BYTES as u64;
        Ok(true)
    }

    /// True if it can be found again, or nobody can say.
    pub(crate) fn has_a_name(&self) -> bool {
        self.file.metadata().map_or(true, |found| found.nlink() > 0)
    }

    /// Makes safe what was written.
    pub(crate) fn sync(&self) -> Result<()> {
        self.file.sync_data()
    }
}

/// Where the block begins that this is in.
pub(crate) fn block_of(offset: u64) -> u64 {
    offset / BLOCK_BYTES as u64 * BLOCK_BYTES as u64
}

pub(crate) fn is_full(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

/// So many bytes at a multiple of [`BLOCK_BYTES`].
pub(crate) fn aligned(room: &mut Vec<u8>, length: usize) -> &mut [u8] {
    if room.len() < length + BLOCK_BYTES {
        room.resize(length + BLOCK_BYTES, 0);
    }
    let begin = room.as_ptr().align_offset(BLOCK_BYTES);
    &mut room[begin..begin + length]
}

fn to_write() -> OpenOptions {
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false);
    options
}

/// Opens a file past the page cache, where the file system can do that. False if it cannot.
pub(crate) fn open_direct(options: &mut OpenOptions, path: &Path) -> Result<(File, bool)> {
    match options.custom_flags(OFlags::DIRECT.bits() as i32).open(path) {
        Err(error) if error.kind() == ErrorKind::InvalidInput => {
            Ok((options.custom_flags(0).open(path)?, false))
        }
        opened => Ok((opened?, true)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lats_base::prng::Prng;

    #[test]
    fn a_file_of_any_length_is_gone_on_with() {
        let path = std::env::temp_dir().join(format!("lats-odd-{}", std::process::id()));
        std::fs::write(&path, vec![1; 5_000]).unwrap();
        let mut file = BlockFile::open(&path, true).unwrap();
        file.write(b"new", 0).unwrap();
        file.write(&[2; 9_000], 3).unwrap();
        while file.prepare().unwrap() {}
        file.sync().unwrap();
        let read = std::fs::read(&path).unwrap();
        assert!(read[..3] == *b"new" && read[3..9_003] == [2; 9_000]);
        assert!(read[9_003..].iter().all(|byte| *byte == 0));
        std::fs::remove_file(&path).unwrap();
    }

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
                // It overwrites what says that there is no more, as a log does; or begins anywhere.
                let back = if random.chance(3, 4) { 64 } else { random.below(9_000) as usize };
                let from = all.len().saturating_sub(back);
                // A write may be asked for once more.
                for _ in 0..random.between(1, 2) {
                    file.write(&bytes, from as u64).unwrap();
                }
                if file.direct {
                    let end = (from + bytes.len()).next_multiple_of(BLOCK_BYTES);
                    let end = all.len().min(end);
                    all[from..end].fill(0);
                }
                all.resize(all.len().max(from + bytes.len()), 0);
                all[from..from + bytes.len()].copy_from_slice(&bytes);
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
