//! Reading a file from its beginning to its end, past the page cache: what is read once needs no place there. While one part is
//! looked at, a thread reads what comes next.

use crate::blocks::{BLOCK_BYTES, aligned, block_of, open_direct};
use std::{
    fs::File,
    io::{Error, ErrorKind, Result},
    os::unix::fs::FileExt,
    path::Path,
    sync::{
        Arc,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
};

/// A file that is being read.
pub(crate) struct Sequential {
    file: Arc<File>,
    file_bytes: u64,
    /// The piece of it that was read last.
    piece: Piece,
    ahead: Option<Ahead>,
}

/// A thread that reads pieces.
struct Ahead {
    ask: SyncSender<(Arc<File>, Piece)>,
    answers: Receiver<(Piece, Result<()>)>,
    /// It reads one.
    is_busy: bool,
}

/// A piece of a file.
#[derive(Default)]
struct Piece {
    begin: u64,
    bytes: usize,
    /// Room for whole blocks, and some to spare: they begin at a multiple of their size.
    room: Vec<u8>,
}

/// So much is read at once: a disk does not become faster with more.
const PIECE_BYTES: usize = 1 << 20;
/// Who asks for less at a file's beginning does not want the rest.
const READS_ON_BYTES: usize = 16 << 10;

impl Sequential {
    /// Opens a file that nobody writes any more, and makes sure that it is safe: a process that has died may have written it a moment
    /// ago, and who reads it counts on it.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let (file, _) = open_direct(File::options().read(true), path)?;
        file.sync_data()?;
        let file_bytes = file.metadata()?.len();
        let mut opened =
            Self { file: Arc::new(file), file_bytes, piece: Piece::default(), ahead: None };
        if let Err(error) = opened.piece.read(&opened.file, 0, BLOCK_BYTES) {
            if error.kind() != ErrorKind::InvalidInput {
                return Err(error);
            }
            // This device wants larger blocks.
            opened.file = Arc::new(File::open(path)?);
        }
        Ok(opened)
    }

    pub(crate) fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// Puts so many bytes from `offset` on, or all that there are, in `buffer`.
    pub(crate) fn read(&mut self, offset: u64, bytes: usize, buffer: &mut Vec<u8>) -> Result<()> {
        buffer.clear();
        let end = self.file_bytes.min(offset + bytes as u64);
        let mut at = offset;
        while at < end {
            if self.piece.from(at).is_empty() {
                self.read_piece(at, bytes)?;
            }
            let there = self.piece.from(at);
            let some = &there[..there.len().min((end - at) as usize)];
            if some.is_empty() {
                return Err(Error::from(ErrorKind::UnexpectedEof));
            }
            buffer.extend_from_slice(some);
            at += some.len() as u64;
        }
        Ok(())
    }

    /// The piece with this byte, and asks for the one behind it.
    fn read_piece(&mut self, at: u64, asked: usize) -> Result<()> {
        let begin = block_of(at);
        let read_ahead = self.ahead.as_mut().and_then(Ahead::take);
        let free = match read_ahead {
            Some((piece, done)) if piece.begin == begin => {
                done?;
                core::mem::replace(&mut self.piece, piece)
            }
            other => {
                self.piece.read(&self.file, begin, PIECE_BYTES)?;
                other.map(|(piece, _)| piece).unwrap_or_default()
            }
        };
        let next = self.piece.begin + self.piece.bytes as u64;
        if asked >= READS_ON_BYTES && next < self.file_bytes {
            // Where there is no thread to be had it is read when it is asked for.
            let ahead = self.ahead.take().or_else(|| Ahead::start().ok());
            self.ahead =
                ahead.and_then(|ahead| ahead.read(&self.file, Piece { begin: next, ..free }));
        }
        Ok(())
    }
}

impl Piece {
    /// What it has from this byte of the file on.
    fn from(&self, at: u64) -> &[u8] {
        let skip = self.room.as_ptr().align_offset(BLOCK_BYTES);
        let held = at.checked_sub(self.begin).filter(|from| *from < self.bytes as u64);
        held.and_then(|from| self.room.get(skip..)?.get(from as usize..self.bytes))
            .unwrap_or_default()
    }

    fn read(&mut self, file: &File, begin: u64, bytes: usize) -> Result<()> {
        (self.begin, self.bytes) = (begin, 0);
        let room = aligned(&mut self.room, bytes);
        while self.bytes < bytes {
            match file.read_at(&mut room[self.bytes..], begin + self.bytes as u64) {
                Ok(0) => break,
                Ok(read) => self.bytes += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            // The file ends within a block.
            if !self.bytes.is_multiple_of(BLOCK_BYTES) {
                break;
            }
        }
        Ok(())
    }
}

impl Ahead {
    fn start() -> Result<Self> {
        let (ask, asked) = sync_channel::<(Arc<File>, Piece)>(1);
        let (answer, answers) = sync_channel(1);
        // It ends when nobody asks any more.
        thread::Builder::new().name("lats-read".into()).spawn(move || {
            for (file, mut piece) in asked {
                let begin = piece.begin;
                let done = piece.read(&file, begin, PIECE_BYTES);
                if answer.send((piece, done)).is_err() {
                    break;
                }
            }
        })?;
        Ok(Self { ask, answers, is_busy: false })
    }

    /// None if the thread is gone: then nothing is read ahead.
    fn read(mut self, file: &Arc<File>, piece: Piece) -> Option<Self> {
        self.ask.send((file.clone(), piece)).ok()?;
        self.is_busy = true;
        Some(self)
    }

    /// The piece that was asked for, if there is one.
    fn take(&mut self) -> Option<(Piece, Result<()>)> {
        if !core::mem::take(&mut self.is_busy) {
            return None;
        }
        self.answers.recv().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lats_base::prng::Prng;
    use std::fs;

    #[test]
    fn parts_of_a_file_of_any_length_are_read_in_any_order() {
        let path = std::env::temp_dir().join(format!("lats-sequential-{}", std::process::id()));
        let mut random = Prng::new(3);
        for length in [0, 1, 4_096, 5_000, 1 << 20, (3 << 20) + 17, 5 << 20] {
            let bytes: Vec<u8> = (0..length).map(|_| random.below(256) as u8).collect();
            fs::write(&path, &bytes).unwrap();
            for part in [100, 60_000, 256 << 10, 3 << 20] {
                let mut file = Sequential::open(&path).unwrap();
                assert_eq!(file.file_bytes(), length as u64);
                let (mut buffer, mut all) = (Vec::new(), Vec::new());
                while all.len() < length && part >= 60_000 {
                    file.read(all.len() as u64, part, &mut buffer).unwrap();
                    all.extend_from_slice(&buffer);
                }
                assert!(part < 60_000 || all == bytes);
                for _ in 0..20 {
                    let from = random.below(length as u64 + 9_000) as usize;
                    file.read(from as u64, part, &mut buffer).unwrap();
                    let end = bytes.len().min(from + part);
                    assert_eq!(buffer, bytes[from.min(end)..end], "{length}, {part} from {from}");
                }
            }
        }
        assert!(Sequential::open(&path.with_extension("none")).is_err());
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_file_that_became_shorter_ends_with_an_error() {
        let path = std::env::temp_dir().join(format!("lats-shorter-{}", std::process::id()));
        fs::write(&path, vec![1; 6 << 20]).unwrap();
        let mut file = Sequential::open(&path).unwrap();
        let mut buffer = Vec::new();
        file.read(0, 256 << 10, &mut buffer).unwrap();
        File::options().write(true).open(&path).unwrap().set_len(3 << 20).unwrap();
        assert!(file.read(3 << 20, 256 << 10, &mut buffer).is_err());
        fs::remove_file(&path).unwrap();
    }
}
