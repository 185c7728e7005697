//! Reading the redo log of former lives, segment by segment and part by part (RESTART-5, SLICE-1).

use alloc::vec::Vec;
use lats_base::{Epoch, NodeId};
use lats_files::redo::{OTHER_VERSION, Record, SEGMENT_HEAD_BYTES, Segment, Survey, void_after};
use lats_kernel::{Ctx, Fault};
use lats_signals::io::{FILE_REDO, FileName, IoListReq, IoReadReq};

/// The files of a log, and how far they have been read.
pub(super) struct LogFiles {
    cluster: u64,
    node: NodeId,
    instance: u16,
    /// The epoch that each restart of the cluster has begun with.
    pub(super) restored: Vec<Epoch>,
    /// The files that are there; then those from the log's first one on.
    pub(super) segments: Vec<u32>,
    pub(super) origin: u32,
    /// The segment that is being read; what of its file has been asked for, and what of that is not part of a record yet.
    at: usize,
    segment: Option<Segment<'static>>,
    offset: u64,
    bytes: Vec<u8>,
    pub(super) survey: Survey,
    /// The bytes of all files that were read.
    pub(super) log_bytes: u64,
    /// So much is read at once (SLICE-1).
    part_bytes: u32,
    /// Up to where the file has been asked for.
    asked: u64,
    /// The newest request, and the one whose answer comes next.
    requests: u64,
    awaited: u64,
    /// Something stands where a segment's head should be, and is none.
    has_bad_head: bool,
}

/// Requests of its own among those to io.
const REQUESTS: u64 = 1 << 63;
/// So many parts are asked for: the next one is read while one is looked at.
const READS_AHEAD: u64 = 2;
/// So much of the next part is put to what is left of one, at least.
const MORE_BYTES: usize = 4 << 10;

impl LogFiles {
    pub(super) fn new(cluster: u64, restored: Vec<Epoch>, part_bytes: u32, ctx: &Ctx<'_>) -> Self {
        Self {
            cluster,
            node: ctx.node(),
            instance: ctx.me().instance as u16,
            restored,
            segments: Vec::new(),
            origin: 0,
            at: 0,
            segment: None,
            offset: 0,
            bytes: Vec::new(),
            survey: Survey::default(),
            log_bytes: 0,
            part_bytes: part_bytes.max(SEGMENT_HEAD_BYTES),
            asked: 0,
            requests: 0,
            awaited: 0,
            has_bad_head: false,
        }
    }

    /// Asks which files there are.
    pub(super) fn list(&mut self, ctx: &mut Ctx<'_>) {
        let request = self.next_request();
        let body = IoListReq { request, kind: FILE_REDO, instance: self.instance, reserved: 0 };
        ctx.ask_io(&body, &[]);
    }

    /// They are these; the last ones are looked at first.
    pub(super) fn are(&mut self, segments: Vec<u32>) {
        self.at = segments.len().saturating_sub(1);
        self.segments = segments;
        self.has_bad_head = false;
    }

    /// RESTART-2: none of the heads can be read, and one was written: it is not known what was durable, but there was something. (A head
    /// is written as a whole, or not at all.)
    pub(super) fn is_unreadable(&self) -> bool {
        self.has_bad_head && self.segments.is_empty()
    }

    /// Answers that are on their way are none.
    fn next_request(&mut self) -> u64 {
        self.requests += 1;
        self.awaited = self.requests;
        REQUESTS | self.requests
    }

    /// True if this is the answer that is waited for.
    pub(super) fn waits_for(&self, request: u64) -> bool {
        request == REQUESTS | self.awaited
    }

    fn forget_answers(&mut self) {
        self.awaited = self.requests + 1;
    }

    /// The file that is being read.
    pub(super) fn current(&self) -> u32 {
        self.segments.get(self.at).copied().unwrap_or_default()
    }

    /// Asks for the head of the current segment.
    pub(super) fn read_head(&mut self, ctx: &mut Ctx<'_>) {
        self.read_bytes(SEGMENT_HEAD_BYTES, ctx);
    }

    /// Asks for the first part of the current segment.
    pub(super) fn read(&mut self, ctx: &mut Ctx<'_>) {
        self.asked = u64::from(self.part_bytes);
        self.read_bytes(self.part_bytes, ctx);
    }

    fn read_bytes(&mut self, bytes: u32, ctx: &mut Ctx<'_>) {
        let (request, file) = (self.next_request(), self.file());
        ctx.ask_io(&IoReadReq { request, file, offset: 0, bytes, reserved: 0 }, &[]);
    }

    /// Asks for further parts of it. They are answered in their order.
    fn read_ahead(&mut self, file_bytes: u64, ctx: &mut Ctx<'_>) {
        while self.asked < file_bytes && self.requests < self.awaited + READS_AHEAD - 1 {
            self.requests += 1;
            let (request, offset) = (REQUESTS | self.requests, self.asked);
            let (file, bytes) = (self.file(), self.part_bytes);
            ctx.ask_io(&IoReadReq { request, file, offset, bytes, reserved: 0 }, &[]);
            self.asked += u64::from(bytes);
        }
    }

    fn file(&self) -> FileName {
        FileName { kind: FILE_REDO, instance: self.instance, number: self.current() }
    }

    /// Begins with the first segment.
    pub(super) fn begin(&mut self) {
        self.survey = Survey::of(self.origin);
        (self.at, self.offset, self.log_bytes, self.segment) = (0, 0, 0, None);
        self.bytes.clear();
        self.forget_answers();
    }

    /// The last segment that has a head says where the log begins: true if this is it. Else there may be one before it.
    ///
    /// # Errors
    /// What is wrong with a file that is none of ours.
    pub(super) fn find_end(&mut self, head: &[u8]) -> Result<bool, &'static str> {
        match Segment::open(head) {
            Err(OTHER_VERSION) => Err(OTHER_VERSION),
            // It was begun when the power was lost.
            Err(_) => {
                self.has_bad_head |= head.iter().any(|byte| *byte != 0);
                self.segments.truncate(self.at);
                self.at = self.at.saturating_sub(1);
                Ok(false)
            }
            Ok(segment) => {
                self.is_own(&segment)?;
                if segment.number != u64::from(self.current()) {
                    return Err("it was given another name");
                }
                self.origin = segment.origin;
                self.segments.retain(|number| *number >= segment.origin);
                Ok(true)
            }
        }
    }

    fn is_own(&self, segment: &Segment<'_>) -> Result<(), &'static str> {
        let log = segment.log;
        let own = (log.cluster, log.node, log.instance) == (self.cluster, self.node, self.instance);
        if own { Ok(()) } else { Err("it belongs to another cluster or node") }
    }

    /// Shows the records of the next part of the current segment, unless a restart of the cluster has made them void
    /// (RESTART-3), and asks for the part after it; gives true when there is nothing more to read.
    ///
    /// # Errors
    /// What is wrong with a file that is none of ours.
    pub(super) fn take(
        &mut self,
        (part, file_bytes): (&[u8], u64),
        mut show: impl FnMut(&Record<'_>, Epoch),
        ctx: &mut Ctx<'_>,
    ) -> Result<bool, &'static str> {
        let is_first = self.offset == 0;
        self.offset += part.len() as u64;
        self.awaited += 1;
        let ends = self.offset >= file_bytes || part.is_empty();
        let part = if is_first { self.open(part)? } else { part };
        let mut is_over = ends || self.segment.is_none();
        if !is_over {
            self.read_ahead(file_bytes, ctx);
        }
        if let Some(mut segment) = self.segment.take() {
            let forgets = ctx.fault(Fault::BugForgetRestarts);
            let upto = void_after(&self.restored, segment.restarts);
            let show = |record: &Record<'_>, certain| {
                if record.epoch <= upto || forgets {
                    show(record, certain);
                }
            };
            is_over |= self.show_part(&mut segment, part, show);
            self.segment = Some(segment);
        }
        if is_over {
            let of_log = self.segment.is_some();
            self.log_bytes += if of_log { self.offset - self.bytes.len() as u64 } else { 0 };
            (self.at, self.offset, self.segment) = (self.at + 1, 0, None);
            self.bytes.clear();
        }
        let is_last = self.at >= self.segments.len();
        if is_last {
            self.forget_answers();
        } else if is_over {
            self.read(ctx);
        }
        Ok(is_last)
    }

    /// Shows the records of a part where they are; one that lies across two parts is put together first. What is left is kept for
    /// the next part. True if no further record can be read, whatever that has.
    fn show_part(
        &mut self,
        segment: &mut Segment<'static>,
        part: &[u8],
        mut show: impl FnMut(&Record<'_>, Epoch),
    ) -> bool {
        let (mut at, mut is_over) = (0, false);
        while at < part.len() && !is_over {
            let rest = &part[at..];
            let begun = self.bytes.len();
            // Its length is not known here: with twice as much as there is it may be whole.
            let more = if begun == 0 { 0 } else { rest.len().min(begun.max(MORE_BYTES)) };
            self.bytes.extend_from_slice(&rest[..more]);
            let bytes = if begun == 0 { rest } else { &self.bytes };
            let mut of_these = segment.go_on(bytes);
            self.survey.read_some(&mut of_these, &self.restored, |record, survey| {
                show(record, survey.certain());
            });
            is_over = of_these.is_over();
            let read = of_these.bytes_read();
            *segment = of_these.go_on(&[]);
            if begun == 0 {
                at += read;
                break;
            }
            at += more;
            if read > 0 {
                // That one is whole; what stands behind it is read where it is.
                at -= self.bytes.len() - read;
                self.bytes.clear();
            }
        }
        self.bytes.extend_from_slice(&part[at..]);
        is_over
    }

    /// The first part of the current segment is here; gives what stands behind its head. One that has no head, because it was begun
    /// when the power was lost, or does not continue what was read, is passed over.
    fn open<'p>(&mut self, part: &'p [u8]) -> Result<&'p [u8], &'static str> {
        let segment = match Segment::open(part) {
            Err(OTHER_VERSION) => return Err(OTHER_VERSION),
            Err(_) => return Ok(part),
            Ok(segment) => segment,
        };
        self.is_own(&segment)?;
        let (read, segment) = (segment.bytes_read(), segment.go_on(&[]));
        if segment.number != u64::from(self.current()) {
            self.survey.passed_over += 1;
        } else if self.survey.begin(&segment) {
            self.segment = Some(segment);
        }
        Ok(&part[read..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lats_base::{FragmentId, Incarnation, RowId, TableId, TransactionId, prng::Prng};
    use lats_files::redo::{LogId, Seal, Writer};
    use std::vec;

    fn log(random: &mut Prng) -> Vec<u8> {
        let id = LogId { cluster: 7, node: NodeId::new(2), instance: 1, life: Incarnation::new(1) };
        let mut writer = Writer::new(id);
        for number in 1..random.between(2, 60) {
            let place = (TableId::new(3), FragmentId::new(4), RowId::new(number));
            let image = vec![number as u8; random.between(1, 9_000) as usize];
            let epoch = Epoch::new(number);
            writer.change((TransactionId::NONE, epoch), place, number, b"key", Some(&image));
            writer.end();
            if random.chance(1, 4) {
                writer.seal(Seal { epoch, durable: epoch, commands: 1, whole: true });
            }
        }
        let mut bytes = writer.take(Vec::new(), 1 << 20, 1 << 20).bytes;
        if random.chance(1, 3) {
            // Something is wrong with a record.
            let at = random.between(SEGMENT_HEAD_BYTES.into(), bytes.len() as u64 - 1) as usize;
            bytes[at] ^= 1;
        }
        bytes
    }

    fn files() -> LogFiles {
        LogFiles {
            cluster: 7,
            node: NodeId::new(2),
            instance: 1,
            restored: Vec::new(),
            segments: vec![1],
            origin: 1,
            at: 0,
            segment: None,
            offset: 0,
            bytes: Vec::new(),
            survey: Survey::of(1),
            log_bytes: 0,
            part_bytes: 0,
            asked: 0,
            requests: 0,
            awaited: 0,
            has_bad_head: false,
        }
    }

    /// The numbers and bytes of the records that are read, and how much is left.
    fn read_in_parts(bytes: &[u8], part_bytes: usize) -> (Vec<(u64, usize)>, usize) {
        let (mut files, mut records) = (files(), Vec::new());
        let mut parts = bytes.chunks(part_bytes);
        let mut part = files.open(parts.next().unwrap()).unwrap();
        let mut segment = files.segment.take().unwrap();
        loop {
            let show = |r: &Record<'_>, _| records.push((r.number, r.bytes().len()));
            let is_over = files.show_part(&mut segment, part, show);
            match parts.next() {
                Some(next) if !is_over => part = next,
                next => {
                    let unread =
                        next.map_or(0, <[u8]>::len) + parts.map(<[u8]>::len).sum::<usize>();
                    return (records, files.bytes.len() + unread);
                }
            }
        }
    }

    #[test]
    fn what_is_read_in_parts_is_what_is_read_as_a_whole() {
        for seed in 0..200 {
            let mut random = Prng::new(seed);
            let bytes = log(&mut random);
            let whole = read_in_parts(&bytes, bytes.len());
            for _ in 0..5 {
                let part_bytes = random.between(SEGMENT_HEAD_BYTES.into(), 20_000) as usize;
                assert_eq!(read_in_parts(&bytes, part_bytes), whole, "seed {seed}, {part_bytes}");
            }
        }
    }
}
