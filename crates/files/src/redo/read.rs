//! Reading a redo log: record by record, until the first one that was not written as a whole.

use super::{
    CHANGES, CHECKED_FROM, ChangeHead, END_BYTES, LogId, MAGIC, OTHER_VERSION, RecordHead, SEAL,
    SEGMENT_HEAD_BYTES, Seal, SealBody, SegmentHead, VERSION, checksum,
};
use lats_base::{Epoch, FragmentId, RowId, TableId, TransactionId, hash};
use zerocopy::{FromBytes, IntoBytes};

/// Why a log goes no further.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The file ends behind a record.
    Clean,
    /// Zeros say so, behind the last record that was written.
    Zeros,
    /// What stands there is no record of this log, or no whole one: a torn write, or damage.
    Broken {
        /// Bytes from the start of the file.
        at: usize,
        /// What is wrong with it.
        why: &'static str,
    },
}

/// A segment file.
#[derive(Clone, Debug)]
pub struct Segment<'f> {
    bytes: &'f [u8],
    at: usize,
    log_hash: u64,
    /// The log that it belongs to.
    pub log: LogId,
    /// Its number in the log.
    pub number: u64,
    /// The segment with which the log begins.
    pub origin: u32,
    /// How many times the cluster had been restarted when it was begun.
    pub restarts: u32,
    /// Records of earlier segments are of no later epoch.
    pub before: Epoch,
    next_record: u64,
    end: End,
    /// What is there of the next record is right, as far as it goes.
    cut_off: bool,
}

/// What a record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// Rows that a transaction has changed, or a part of them.
    Changes,
    /// Everything of its epoch and of earlier ones stands before it.
    Seal,
}

/// A record of the log.
#[derive(Clone, Copy, Debug)]
pub struct Record<'f> {
    /// 1, 2, 3, … in the log.
    pub number: u64,
    /// What it says.
    pub kind: RecordKind,
    /// The epoch of its changes, or the one that is sealed.
    pub epoch: Epoch,
    /// Whose changes they are.
    pub transaction: TransactionId,
    /// What a seal says; of changes: nothing.
    pub seal: Seal,
    changes: &'f [u8],
}

/// A committed change of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change<'f> {
    /// The row's table.
    pub table: TableId,
    /// Its fragment.
    pub fragment: FragmentId,
    /// Its place there.
    pub row: RowId,
    /// The change's number within the fragment.
    pub number: u64,
    /// The row's primary key.
    pub key: &'f [u8],
    /// The row; none if it is deleted.
    pub image: Option<&'f [u8]>,
}

impl<'f> Segment<'f> {
    /// Opens a segment file.
    ///
    /// # Errors
    /// What is wrong with its first bytes.
    pub fn open(bytes: &'f [u8]) -> Result<Self, &'static str> {
        let (head, _) = SegmentHead::read_from_prefix(bytes).map_err(|_| "it is too short")?;
        let checked = &head.as_bytes()[..size_of::<SegmentHead>() - size_of::<u64>()];
        if head.magic != MAGIC {
            return Err("it is no redo log");
        }
        // Heads of other versions may have another length, and their checksums elsewhere. (One bit that turns over changes one of the
        // two only.)
        if head.version != VERSION && head.head_bytes != SEGMENT_HEAD_BYTES {
            return Err(OTHER_VERSION);
        }
        if head.checksum != hash::partition_hash(checked) {
            return Err("its head is damaged");
        }
        if head.version != VERSION {
            return Err(OTHER_VERSION);
        }
        if head.head_bytes != SEGMENT_HEAD_BYTES {
            return Err("its head is damaged");
        }
        Ok(Self {
            bytes,
            at: head.head_bytes as usize,
            log_hash: head.log.hash(),
            log: head.log,
            number: head.segment,
            origin: head.origin,
            restarts: head.restarts,
            before: head.before,
            next_record: head.first_record,
            end: End::Clean,
            cut_off: false,
        })
    }

    /// The same segment, if these bytes stand in the file behind what was read.
    pub fn go_on<'n>(&self, bytes: &'n [u8]) -> Segment<'n> {
        Segment { bytes, at: 0, end: End::Clean, cut_off: false, ..*self }
    }

    /// How many of its bytes were read: behind them stands no whole record.
    pub fn bytes_read(&self) -> usize {
        self.at
    }

    /// True if no further record can be read, whatever stands behind these bytes.
    pub fn is_over(&self) -> bool {
        self.end != End::Clean && !self.cut_off
    }

    /// The number of its next record.
    pub fn next_record(&self) -> u64 {
        self.next_record
    }

    /// Why there was no further record.
    pub fn end(&self) -> &End {
        &self.end
    }

    fn read(&mut self) -> Result<Option<Record<'f>>, &'static str> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        if rest.is_empty() {
            return Ok(None);
        }
        self.cut_off = true;
        if rest.get(..END_BYTES).is_some_and(|end| end == [0; END_BYTES]) {
            (self.cut_off, self.end) = (false, End::Zeros);
            return Ok(None);
        }
        let (head, _) = RecordHead::read_from_prefix(rest).map_err(|_| "the head is cut off")?;
        let length = head.length_bytes as usize;
        if length < size_of::<RecordHead>() || !length.is_multiple_of(8) {
            self.cut_off = false;
            return Err("its length is impossible");
        }
        let record = rest.get(..length).ok_or("it is cut off")?;
        self.cut_off = false;
        if checksum(self.log_hash, &record[CHECKED_FROM..]) != head.checksum {
            return Err("the checksum is another");
        }
        if head.number != self.next_record {
            return Err("records before it are missing");
        }
        let kind = match head.kind {
            CHANGES => RecordKind::Changes,
            SEAL => RecordKind::Seal,
            _ => return Err("a newer version has written it"),
        };
        let body = &record[size_of::<RecordHead>()..];
        let (number, epoch, transaction) = (head.number, head.epoch, head.transaction);
        let (seal, changes) = match kind {
            RecordKind::Changes => (Seal::default(), body),
            RecordKind::Seal => (read_seal(epoch, body)?, &[][..]),
        };
        self.at += length;
        self.next_record += 1;
        Ok(Some(Record { number, kind, epoch, transaction, seal, changes }))
    }
}

impl<'f> Iterator for Segment<'f> {
    type Item = Record<'f>;

    fn next(&mut self) -> Option<Record<'f>> {
        if self.end != End::Clean {
            return None;
        }
        match self.read() {
            Ok(record) => record,
            Err(why) => {
                self.end = End::Broken { at: self.at, why };
                None
            }
        }
    }
}

impl<'f> Record<'f> {
    /// Its changes.
    pub fn changes(&self) -> impl Iterator<Item = Change<'f>> + use<'f> {
        changes_in(self.changes)
    }

    /// True if its changes are those of a transaction, as they were made (ARCHIVE-4); false if rows were written down once more, or
    /// were found gone.
    pub fn tells_of_change(&self) -> bool {
        self.transaction != TransactionId::NONE
    }

    /// Its changes as they stand in the file.
    pub fn bytes(&self) -> &'f [u8] {
        self.changes
    }
}

/// Changes that stand one behind the other.
pub fn changes_in(mut bytes: &[u8]) -> impl Iterator<Item = Change<'_>> {
    core::iter::from_fn(move || {
        let (change, behind) = read_change(bytes)?;
        bytes = behind;
        Some(change)
    })
}

fn read_seal(epoch: Epoch, body: &[u8]) -> Result<Seal, &'static str> {
    let (body, _) = SealBody::read_from_prefix(body).map_err(|_| "it is cut off")?;
    let SealBody { durable, commands, whole } = body;
    Ok(Seal { epoch, durable, commands, whole: whole != 0 })
}

fn read_change(bytes: &[u8]) -> Option<(Change<'_>, &[u8])> {
    let (head, behind) = ChangeHead::read_from_prefix(bytes).ok()?;
    let (key, rest) = behind.split_at_checked(head.key_bytes as usize)?;
    let image = rest.get(..head.image_bytes as usize)?;
    let length = size_of::<ChangeHead>() + key.len() + image.len();
    let change = Change {
        table: head.table,
        fragment: head.fragment,
        row: head.row,
        number: head.number,
        key,
        image: (head.deleted == 0).then_some(image),
    };
    Some((change, bytes.get(length.next_multiple_of(8)..)?))
}
