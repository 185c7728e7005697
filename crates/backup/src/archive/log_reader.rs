//! Reading a segment file piece by piece, also one that is being written.

use super::OPEN;
use lats_files::redo::{Record, SEGMENT_HEAD_BYTES, Segment};
use std::{fs::File, io, os::unix::fs::FileExt, path::Path};

/// So much is read at once, and so much if a record is longer.
const CHUNK_BYTES: usize = 1 << 20;
const CHUNK_BYTES_MAX: usize = 64 << 20;

/// A segment file.
pub(super) struct LogReader {
    file: File,
    /// Whole records end here.
    at: u64,
    segment: Option<Segment<'static>>,
    buffer: Vec<u8>,
    whole_bytes: usize,
}

/// What can be read of a file.
pub(super) enum Read {
    /// More records.
    Some,
    /// There are no more, yet.
    Nothing,
    /// It is no redo log of this version, or has no head yet.
    Unreadable(&'static str),
}

impl LogReader {
    /// Opens a segment of an archive. One that was the newest may have its last name by now.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = match File::open(path) {
            Err(error)
                if error.kind() == io::ErrorKind::NotFound
                    && path.extension().is_some_and(|e| e == OPEN) =>
            {
                File::open(path.with_extension("log"))
            }
            opened => opened,
        };
        file.map(Self::new)
    }

    pub(super) fn new(file: File) -> Self {
        Self { file, at: 0, segment: None, buffer: Vec::new(), whole_bytes: 0 }
    }

    /// Its head, once something was read.
    pub(super) fn segment(&self) -> Option<&Segment<'static>> {
        self.segment.as_ref()
    }

    /// Where the last whole record ends.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// What was read last: whole records, and the head if it is the first.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[..self.whole_bytes]
    }

    /// Reads its head only; none if there is none.
    pub(super) fn head(&self) -> io::Result<Option<Segment<'static>>> {
        let mut bytes = [0; SEGMENT_HEAD_BYTES as usize];
        let length = read_at(&self.file, &mut bytes, 0)?;
        Ok(Segment::open(&bytes[..length]).ok().map(|segment| segment.go_on(&[])))
    }

    /// Reads some more whole records, and shows them.
    pub(super) fn read(&mut self, mut show: impl FnMut(&Record<'_>, u32)) -> io::Result<Read> {
        let mut chunk_bytes = CHUNK_BYTES;
        loop {
            self.buffer.resize(chunk_bytes, 0);
            let length = read_at(&self.file, &mut self.buffer, self.at)?;
            let bytes = &self.buffer[..length];
            let mut segment = match &self.segment {
                Some(segment) => segment.go_on(bytes),
                None => match Segment::open(bytes) {
                    Ok(segment) => segment,
                    Err(why) => return Ok(Read::Unreadable(why)),
                },
            };
            let restarts = segment.restarts;
            segment.by_ref().for_each(|record| show(&record, restarts));
            let is_cut_off = length == chunk_bytes && !segment.is_over();
            let begins = self.segment.is_none();
            self.whole_bytes = segment.bytes_read();
            self.segment = Some(segment.go_on(&[]));
            self.at += self.whole_bytes as u64;
            match () {
                () if self.whole_bytes > 0 || begins => return Ok(Read::Some),
                () if is_cut_off && chunk_bytes < CHUNK_BYTES_MAX => chunk_bytes *= 2,
                () => return Ok(Read::Nothing),
            }
        }
    }

    /// Reads to the end of what is there now. An error in words if it is no segment.
    pub(super) fn read_all(
        &mut self,
        mut show: impl FnMut(&Record<'_>, u32),
    ) -> io::Result<Result<(), &'static str>> {
        loop {
            match self.read(&mut show)? {
                Read::Some => {}
                Read::Nothing => return Ok(Ok(())),
                Read::Unreadable(why) => return Ok(Err(why)),
            }
        }
    }
}

/// Reads until the buffer is full or the file ends.
fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], at + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
