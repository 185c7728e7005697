//! Writing a redo log: records gather in memory, in the order in which they will stand in the file.

use super::{
    CHANGES, CHECKED_FROM, ChangeHead, END_BYTES, LogId, MAGIC, RecordHead, SEAL, Seal, SealBody,
    SegmentHead, VERSION, checksum,
};
use alloc::vec::Vec;
use lats_base::{Epoch, FragmentId, RowId, TableId, TransactionId, hash, require};
use zerocopy::{FromBytes, IntoBytes};

/// A record of so many bytes takes no further change: it must fit into a signal.
const RECORD_BYTES: usize = 512 << 10;

/// Records that are to be written.
#[derive(Debug)]
pub struct Writer {
    log: LogId,
    log_hash: u64,
    /// The number of the last record.
    last: u64,
    segment: u32,
    /// The segment with which the log begins, and how many times the cluster has been restarted.
    origin: u32,
    restarts: u32,
    /// What was taken is of no later epoch.
    before: Epoch,
    /// Where the next bytes stand in the segment; none: a new one is to be begun.
    offset: Option<u64>,
    buffer: Vec<u8>,
    /// Where the record begins that changes are added to, and whose changes they are.
    open: Option<(usize, TransactionId, Epoch)>,
    open_changes: u32,
}

/// Records that are to be written together.
#[derive(Debug)]
pub struct Taken {
    /// The segment.
    pub segment: u32,
    /// Where in it.
    pub offset: u64,
    /// The bytes; the last [`END_BYTES`] are overwritten by the next write.
    pub bytes: Vec<u8>,
    /// The number of the last record.
    pub last_record: u64,
    /// The newest epoch that is sealed by one of them.
    pub sealed: Option<Epoch>,
    /// The newest epoch of a seal among them that says that the log is whole.
    pub whole: Option<Epoch>,
}

/// The first records that wait: their length, the number of the last of them, what they seal, and their newest epoch.
struct First {
    length: usize,
    last: u64,
    sealed: Option<Epoch>,
    whole: Option<Epoch>,
    newest: Epoch,
}

/// A row's place: table, fragment, row id.
pub type Place = (TableId, FragmentId, RowId);

impl Writer {
    /// An empty log, the first one in its place.
    pub fn new(log: LogId) -> Self {
        Self {
            log,
            log_hash: log.hash(),
            last: 0,
            segment: 0,
            origin: 1,
            restarts: 0,
            before: Epoch::default(),
            offset: None,
            buffer: Vec::new(),
            open: None,
            open_changes: 0,
        }
    }

    /// There are segments of former lives up to this one: a new log is begun behind them.
    pub fn begin_behind(&mut self, segment: u32) {
        require!(self.buffer.is_empty() && self.offset.is_none(), "nothing is written yet");
        (self.segment, self.origin, self.last) = (segment, segment + 1, 0);
        self.before = Epoch::default();
    }

    /// As [`Self::begin_behind`]; but the log there, which begins with the segment `origin` and has so many records, none of a
    /// later epoch than `newest`, goes on.
    pub fn go_on_behind(&mut self, segment: u32, origin: u32, (last_record, newest): (u64, Epoch)) {
        self.begin_behind(segment);
        (self.origin, self.last, self.before) = (origin, last_record, newest);
    }

    /// What waits for being written is not wanted any more, nor is what was: nothing is written yet, and segments go on behind the
    /// last one.
    pub fn forget(&mut self) {
        self.buffer.clear();
        (self.offset, self.open, self.open_changes) = (None, None, 0);
    }

    /// The last segment that was begun.
    pub fn segment(&self) -> u32 {
        self.segment
    }

    /// Segments that are begun from now on say that the log begins with this one.
    pub fn begin_log_with(&mut self, origin: u32) {
        self.origin = origin;
    }

    /// What is taken next stands in a new segment: its number.
    pub fn begin_segment(&mut self) -> u32 {
        self.offset = None;
        self.segment + 1
    }

    /// Segments that are begun from now on say that the cluster has been restarted so many times.
    pub fn set_restarts(&mut self, restarts: u32) {
        self.restarts = restarts;
    }

    /// Bytes that wait for being written.
    pub fn waiting_bytes(&self) -> usize {
        self.buffer.len()
    }

    /// The number of the last record.
    pub fn last_record(&self) -> u64 {
        self.last
    }

    /// Adds a committed change of a row to the open record, if that is of the same transaction and epoch, or to a new one; `image`: none if the row is deleted.
    pub fn change(
        &mut self,
        (transaction, epoch): (TransactionId, Epoch),
        (table, fragment, row): Place,
        number: u64,
        key: &[u8],
        image: Option<&[u8]>,
    ) {
        let ends = |(start, of, at): (usize, TransactionId, Epoch)| {
            (of, at) != (transaction, epoch) || self.buffer.len() - start >= RECORD_BYTES
        };
        if self.open.is_some_and(ends) {
            self.end();
        }
        if self.open.is_none() {
            self.open = Some((self.buffer.len(), transaction, epoch));
            let head = RecordHead { kind: CHANGES, epoch, transaction, ..RecordHead::default() };
            self.buffer.extend_from_slice(head.as_bytes());
        }
        self.open_changes += 1;
        let bytes = image.unwrap_or_default();
        let head = ChangeHead {
            table,
            fragment,
            deleted: u16::from(image.is_none()),
            row,
            number,
            key_bytes: key.len() as u32,
            image_bytes: bytes.len() as u32,
        };
        self.buffer.extend_from_slice(head.as_bytes());
        self.buffer.extend_from_slice(key);
        self.buffer.extend_from_slice(bytes);
        self.buffer.resize(self.buffer.len().next_multiple_of(8), 0);
    }

    /// Ends the open record, if there is one.
    pub fn end(&mut self) {
        let Some((start, ..)) = self.open.take() else { return };
        let count = core::mem::take(&mut self.open_changes);
        self.finish(start, count);
    }

    /// Says that everything of this epoch and of earlier ones stands before this record.
    pub fn seal(&mut self, seal: Seal) {
        require!(self.open.is_none(), "a record ends before the next one begins");
        let Seal { epoch, durable, commands, whole } = seal;
        let start = self.buffer.len();
        let head = RecordHead { kind: SEAL, epoch, ..RecordHead::default() };
        self.buffer.extend_from_slice(head.as_bytes());
        let body = SealBody { durable, commands, whole: u64::from(whole) };
        self.buffer.extend_from_slice(body.as_bytes());
        self.finish(start, 0);
    }

    fn finish(&mut self, start: usize, change_count: u32) {
        self.last += 1;
        let record = &mut self.buffer[start..];
        let length_bytes = record.len() as u32;
        let head = RecordHead::read_from_prefix(record);
        require!(head.is_ok(), "a record begins with its head");
        if let Ok((head, _)) = head {
            let head = RecordHead { length_bytes, number: self.last, change_count, ..head };
            record[..size_of::<RecordHead>()].copy_from_slice(head.as_bytes());
        }
        let sum = checksum(self.log_hash, &record[CHECKED_FROM..]);
        record[..CHECKED_FROM].copy_from_slice(&sum.to_le_bytes());
    }

    /// Takes what is to be written next: all records, or the first ones that have so many bytes, one at least. `room` is memory
    /// for it. A new segment is begun when the last one has `segment_bytes`.
    pub fn take(&mut self, mut room: Vec<u8>, most_bytes: usize, segment_bytes: u64) -> Taken {
        require!(self.open.is_none(), "a record ends before it is written");
        let First { length, last: last_record, sealed, whole, newest } =
            self.first_records(most_bytes);
        room.clear();
        let mut bytes = if length == self.buffer.len() {
            core::mem::replace(&mut self.buffer, room)
        } else {
            room.extend(self.buffer.drain(..length));
            room
        };
        let offset = match self.offset {
            Some(offset) if offset < segment_bytes => offset,
            _ => {
                self.segment += 1;
                let head = self.segment_head(&bytes);
                bytes.splice(0..0, head.as_bytes().iter().copied());
                0
            }
        };
        self.offset = Some(offset + bytes.len() as u64);
        self.before = self.before.max(newest);
        bytes.resize(bytes.len() + END_BYTES, 0);
        Taken { segment: self.segment, offset, bytes, last_record, sealed, whole }
    }

    fn first_records(&self, most_bytes: usize) -> First {
        let newest = Epoch::default();
        let mut first = First { length: 0, last: self.last, sealed: None, whole: None, newest };
        while let Ok((head, body)) = RecordHead::read_from_prefix(&self.buffer[first.length..]) {
            let end = first.length + head.length_bytes as usize;
            if first.length > 0 && end > most_bytes {
                break;
            }
            (first.length, first.last) = (end, head.number);
            first.newest = first.newest.max(head.epoch);
            if head.kind == SEAL {
                first.sealed = Some(head.epoch);
                if SealBody::read_from_prefix(body).is_ok_and(|(body, _)| body.whole != 0) {
                    first.whole = Some(head.epoch);
                }
            }
        }
        first
    }

    fn segment_head(&self, records: &[u8]) -> SegmentHead {
        let first = RecordHead::read_from_prefix(records);
        let mut head = SegmentHead {
            magic: MAGIC,
            version: VERSION,
            head_bytes: size_of::<SegmentHead>() as u32,
            log: self.log,
            segment: u64::from(self.segment),
            first_record: first.map_or(self.last + 1, |(head, _)| head.number),
            origin: self.origin,
            restarts: self.restarts,
            before: self.before,
            checksum: 0,
        };
        let checked = size_of::<SegmentHead>() - size_of::<u64>();
        head.checksum = hash::partition_hash(&head.as_bytes()[..checked]);
        head
    }
}
