//! Reading beside the owner: what others may do with a data manager's rows while its own thread has other work
//! (QUERY-1, QUERY-2). Protocol: `docs/protocols/threads.md`.

use crate::{Ldm, Reader, scan::OpenScan};
use alloc::collections::BTreeMap;
use lats_base::{Duration, Epoch, Instant};
use lats_kernel::Ctx;
use lats_signals::{
    BlockRef, Signal, SignalNumber,
    query::{SCAN_PENDING, SCAN_TO_LOCK, ScanReq},
};

/// What of a request is left to the owner.
pub enum Left {
    /// Nothing: it is answered.
    Nothing,
    /// All of it.
    All,
    /// The scan has begun, and goes on there: see [`Ldm::take_over`].
    Rest(OpenScan),
}

/// Scans that clients have closed lately: one that another thread has begun may come here later, and is not wanted
/// any more (QUERY-2).
#[derive(Default)]
pub(crate) struct Closed(BTreeMap<(BlockRef, u64), Instant>);

/// No signal takes so long from one thread to another.
const KEPT: Duration = Duration::from_millis(2_000);
/// What is forgotten early costs an open scan for a while.
const CLOSED_MAX: usize = 1 << 14;

impl Closed {
    pub(crate) fn note(&mut self, scan: (BlockRef, u64), now: Instant) {
        if self.0.len() < CLOSED_MAX {
            self.0.insert(scan, now);
        }
    }

    pub(crate) fn contains(&self, scan: (BlockRef, u64)) -> bool {
        self.0.contains_key(&scan)
    }

    pub(crate) fn forget(&mut self, now: Instant) {
        self.0.retain(|_, since| now.since(*since) < KEPT);
    }
}

impl Ldm {
    /// True for signals that [`Self::serve_beside`] may be asked to serve.
    pub fn may_serve_beside(signal: &Signal<'_>) -> bool {
        match signal.number() {
            Some(SignalNumber::ReadReq) => true,
            // The owner keeps what snapshots need, and knows of rows that are only pending.
            Some(SignalNumber::ScanReq) => {
                let req = signal.body::<ScanReq>();
                let by_owner = SCAN_PENDING | SCAN_TO_LOCK;
                req.as_of == Epoch::default() && req.flags & by_owner == 0
            }
            _ => false,
        }
    }

    /// Serves a read, or begins a scan, without changing anything (QUERY-1).
    pub fn serve_beside(
        &self,
        signal: &Signal<'_>,
        reader: &mut Reader,
        ctx: &mut Ctx<'_>,
    ) -> Left {
        if self.is_from_the_dead(signal, ctx) {
            return Left::Nothing;
        }
        match signal.number() {
            Some(SignalNumber::ReadReq) => {
                self.read(signal, reader, ctx);
                Left::Nothing
            }
            Some(SignalNumber::ScanReq) => self.begin_scan(signal, ctx),
            _ => Left::All,
        }
    }

    /// Others will read beside its owner.
    pub fn share(&mut self) {
        self.is_shared = true;
    }

    /// So many rows were read by [`Self::serve_beside`].
    pub fn note_reads(&mut self, rows: u64) {
        self.reader.reads += rows;
    }

    /// The owner goes on with a scan that another one has begun, unless its client has closed it meanwhile (QUERY-2).
    pub fn take_over(&mut self, open: OpenScan) {
        if !self.closed.contains(open.of) {
            self.scans.insert(open.of, *open.scan);
        }
    }
}
