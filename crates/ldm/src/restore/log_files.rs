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
    requests: u64,
    /// Something stands where a segment's head should be, and is none.
    has_bad_head: bool,
}

/// Requests of its own among those to io.
const REQUESTS: u64 = 1 << 63;
/// So much is read at once (SLICE-1). The next part is read while this one is looked at.
const READ_BYTES: u32 = 256 << 10;

impl LogFiles {
    pub(super) fn new(cluster: u64, restored: Vec<Epoch>, ctx: &Ctx<'_>) -> Self {
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
            requests: 0,
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

    fn next_request(&mut self) -> u64 {
        self.requests += 1;
        REQUESTS | self.requests
    }

    /// True if this is the answer that is waited for.
    pub(super) fn waits_for(&self, request: u64) -> bool {
        request == REQUESTS | self.requests
    }

    /// The file that is being read.
    pub(super) fn current(&self) -> u32 {
        self.segments.get(self.at).copied().unwrap_or_default()
    }

    /// Asks for the head of the current segment.
    pub(super) fn read_head(&mut self, ctx: &mut Ctx<'_>) {
        self.read_bytes(SEGMENT_HEAD_BYTES, ctx);
    }

    /// Asks for the next part of the current segment.
    pub(super) fn read(&mut self, ctx: &mut Ctx<'_>) {
        self.read_bytes(READ_BYTES, ctx);
    }

    fn read_bytes(&mut self, bytes: u32, ctx: &mut Ctx<'_>) {
        let file = FileName { kind: FILE_REDO, instance: self.instance, number: self.current() };
        let (request, offset) = (self.next_request(), self.offset);
        ctx.ask_io(&IoReadReq { request, file, offset, bytes, reserved: 0 }, &[]);
    }

    /// Begins with the first segment.
    pub(super) fn begin(&mut self) {
        self.survey = Survey::of(self.origin);
        (self.at, self.offset, self.log_bytes, self.segment) = (0, 0, 0, None);
        self.bytes.clear();
        // An answer that is on its way is none.
        self.requests += 1;
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
        self.bytes.extend_from_slice(part);
        self.offset += part.len() as u64;
        if is_first {
            self.open()?;
        }
        let mut is_over = part.is_empty() || self.offset >= file_bytes || self.segment.is_none();
        if !is_over {
            self.read(ctx);
        }
        if let Some(segment) = &self.segment {
            let mut segment = segment.go_on(&self.bytes);
            let forgets = ctx.fault(Fault::BugForgetRestarts);
            let upto = void_after(&self.restored, segment.restarts);
            self.survey.read_some(&mut segment, &self.restored, |record, survey| {
                if record.epoch <= upto || forgets {
                    show(record, survey.certain());
                }
            });
            is_over |= segment.is_over();
            let read = segment.bytes_read();
            self.segment = Some(segment.go_on(&[]));
            self.bytes.drain(..read);
        }
        if is_over {
            self.log_bytes += self.offset - self.bytes.len() as u64;
            (self.at, self.offset, self.segment) = (self.at + 1, 0, None);
            self.bytes.clear();
        }
        let is_last = self.at >= self.segments.len();
        if is_last {
            // An answer that is on its way is none.
            self.requests += 1;
        } else if is_over {
            self.read(ctx);
        }
        Ok(is_last)
    }

    /// The first part of the current segment is here. One that has no head, because it was begun when the power was lost, or
    /// does not continue what was read, is passed over.
    fn open(&mut self) -> Result<(), &'static str> {
        let segment = match Segment::open(&self.bytes) {
            Err(OTHER_VERSION) => return Err(OTHER_VERSION),
            Err(_) => return Ok(()),
            Ok(segment) => segment,
        };
        self.is_own(&segment)?;
        let (read, segment) = (segment.bytes_read(), segment.go_on(&[]));
        self.bytes.drain(..read);
        if segment.number != u64::from(self.current()) {
            self.survey.passed_over += 1;
        } else if self.survey.begin(&segment) {
            self.segment = Some(segment);
        }
        Ok(())
    }
}
