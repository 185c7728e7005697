//! Scans of one fragment: at the nearest replica, as long as that knows the newest version of each row (READ-4).

use super::{
    Answer, ClientCore, Request, Ticket,
    calls::{Call, Kind},
    error_of,
};
use crate::{
    api::{KeyRange, Scan},
    batch::ScanBatch,
};
use lats_base::limits::BATCH_BYTES_MAX;
use lats_base::{Epoch, FragmentId, NodeId, RefCode, TransactionId};
use lats_signals::{
    BlockRef, Signal,
    list::{self, Range},
    query::{
        SCAN_ANY_REPLICA, SCAN_FEW, SCAN_FIRST, SCAN_INDEX_KEYS, SCAN_ORDERED, SCAN_PENDING,
        SCAN_PRIMARY_KEYS, SCAN_REVERSE, SCAN_SAMPLE, SCAN_TO_LOCK, ScanCloseOrd, ScanConf,
        ScanNextReq, ScanRef, ScanReq,
    },
};
use std::sync::Arc;

/// A scan of one fragment: where it runs, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanHandle {
    ldm: BlockRef,
    scan: u64,
}

impl ScanHandle {
    /// The number under which its answers come.
    pub fn ticket(self) -> Ticket {
        self.scan
    }
}

/// A scan that has begun at a backup: what is needed to go on at the primary, and where it is now.
#[derive(Debug)]
pub(super) struct BackupScan {
    at: BlockRef,
    req: ScanReq,
    program: Arc<[u8]>,
}

impl ClientCore {
    /// Opens a scan of one fragment at the nearest replica that can do it, and asks for its first batch; `as_of`: of the
    /// snapshot of this epoch, for which the scan of every fragment must ask alike.
    ///
    /// # Errors
    /// When no replica can be reached now; [`RefCode::RequestTooLarge`].
    pub fn open_scan(
        &mut self,
        scan: &Scan,
        fragment: FragmentId,
        transaction: Option<u64>,
        as_of: Option<Epoch>,
    ) -> Result<(ScanHandle, Ticket), RefCode> {
        self.open_part(scan, (fragment, None), (transaction, as_of), 0)
    }

    /// Opens a scan of one fragment that gives no rows, but says what the index is like at some places.
    ///
    /// # Errors
    /// When no replica can be reached now.
    pub fn open_sample(
        &mut self,
        scan: &Scan,
        fragment: FragmentId,
    ) -> Result<(ScanHandle, Ticket), RefCode> {
        self.open_part(scan, (fragment, None), (None, None), SCAN_SAMPLE)
    }

    /// Opens a scan of one fragment; with `only`, for those of its ranges that have these numbers.
    pub(crate) fn open_part(
        &mut self,
        scan: &Scan,
        (fragment, only): (FragmentId, Option<&[u32]>),
        (transaction, as_of): (Option<u64>, Option<Epoch>),
        more_flags: u32,
    ) -> Result<(ScanHandle, Ticket), RefCode> {
        if as_of == Some(Epoch::default()) {
            // The first epoch is not complete yet.
            return Err(RefCode::EpochNotComplete);
        }
        // Its own changes are at primaries.
        let has_changes = transaction.is_some_and(|s| self.is_started(s));
        let anywhere = as_of.is_none() && !scan.pending && !scan.to_lock && !has_changes;
        let node = self.scan_place(fragment, anywhere)?;
        let at_backup = self.map.view.primary(fragment) != Some(node);
        let mut payload = Vec::new();
        let mut push = |number: u32, range: &KeyRange| {
            list::push_range(&mut payload, number, &range.lower, range.upper.as_deref());
        };
        match only {
            None => (0..).zip(&scan.ranges).for_each(|(number, range)| push(number, range)),
            Some(numbers) => {
                let of = |number: &u32| Some((*number, scan.ranges.get(*number as usize)?));
                numbers.iter().filter_map(of).for_each(|(number, range)| push(number, range));
            }
        }
        if payload.len() + scan.program.len() > BATCH_BYTES_MAX {
            return Err(RefCode::RequestTooLarge);
        }
        // Only who merges several fragments needs the keys that they are ordered by.
        let merges = scan.ordered && self.fragment_count(scan.table) > 1;
        let flags = [
            (scan.ordered, SCAN_ORDERED),
            (scan.reverse, SCAN_REVERSE),
            (merges, SCAN_INDEX_KEYS),
            (scan.primary_keys, SCAN_PRIMARY_KEYS),
            (scan.pending, SCAN_PENDING),
            (scan.to_lock, SCAN_TO_LOCK),
            (at_backup, SCAN_ANY_REPLICA),
            (scan.few, SCAN_FEW),
            (scan.first_of_range, SCAN_FIRST),
        ];
        let ticket = self.call(node, Kind::Scan);
        let body = ScanReq {
            transaction: transaction.map_or(TransactionId::NONE, |s| self.transaction_id(s)),
            scan: ticket,
            reply_to: BlockRef::default(),
            limit: scan.limit.unwrap_or(u64::MAX),
            as_of: as_of.unwrap_or_default(),
            table: scan.table,
            schema_version: scan.schema_version,
            fragment,
            index: scan.index,
            range_count: only.map_or(scan.ranges.len(), <[u32]>::len) as u32,
            program_bytes: scan.program.len() as u32,
            flags: flags.iter().filter(|(set, _)| *set).map(|(_, flag)| flag).sum::<u32>()
                | more_flags,
        };
        let handle = ScanHandle { ldm: self.ldm_of(node, fragment), scan: ticket };
        self.send(handle.ldm, &body, &[&payload, &scan.program]);
        if at_backup {
            let program = scan.program.clone();
            self.backup_scans.insert(ticket, BackupScan { at: handle.ldm, req: body, program });
        }
        Ok((handle, ticket))
    }

    /// True if the client's own node has all rows of a fragment.
    pub(crate) fn is_at_home(&self, fragment: FragmentId) -> bool {
        self.home.is_some() && self.replica_for(fragment) == self.home
    }

    /// Where to scan a fragment.
    fn scan_place(&self, fragment: FragmentId, anywhere: bool) -> Result<NodeId, RefCode> {
        let primary = self.map.view.route(fragment)?;
        if anywhere && let Some(node) = self.replica_for(fragment) {
            return Ok(node);
        }
        if !self.is_up(primary) {
            let silent = self.silence.is_silent(primary);
            return Err(if silent { RefCode::NodeSilent } else { RefCode::NotServing });
        }
        Ok(primary)
    }

    /// Where a scan is now.
    fn place_of(&self, handle: ScanHandle) -> BlockRef {
        self.backup_scans.get(&handle.scan).map_or(handle.ldm, |scan| scan.at)
    }

    /// Asks for the next batch. The answer comes under the scan's own number.
    pub fn next_batch(&mut self, handle: ScanHandle) -> Ticket {
        let at = self.place_of(handle);
        if !self.links.contains(&at.node) {
            // The link was lost between two batches, and the scan with it.
            self.fail(handle.scan, RefCode::NodeFailed);
            return handle.scan;
        }
        let call = Call::new(at.node, self.now, Kind::Scan);
        self.requests.insert(handle.scan, Request::Call(call));
        let body = ScanNextReq { scan: handle.scan, reply_to: BlockRef::default() };
        self.send(at, &body, &[]);
        handle.scan
    }

    /// No more is wanted of a scan.
    pub fn close_scan(&mut self, handle: ScanHandle) {
        let at = self.place_of(handle);
        self.backup_scans.remove(&handle.scan);
        self.requests.remove(&handle.scan);
        let body = ScanCloseOrd { scan: handle.scan, reply_to: BlockRef::default() };
        self.send(at, &body, &[]);
    }

    pub(super) fn on_scan_conf(&mut self, signal: &Signal<'_>) {
        let conf = signal.body::<ScanConf>();
        if !self.requests.contains_key(&conf.scan) {
            return self.end_abandoned_scan(conf.scan, signal.sender(), conf.done != 0);
        }
        let rows = ScanBatch::from_payload(signal.payload(), conf.row_count);
        self.epoch_seen = self.epoch_seen.max(conf.epoch);
        self.note_shown(conf.changed);
        let done = conf.done != 0;
        if done {
            self.backup_scans.remove(&conf.scan);
        }
        self.finish(conf.scan, Answer::Batch { rows, done });
    }

    pub(super) fn on_scan_ref(&mut self, signal: &Signal<'_>) {
        let body = signal.body::<ScanRef>();
        if !self.requests.contains_key(&body.scan) {
            return self.end_abandoned_scan(body.scan, signal.sender(), true);
        }
        if body.code == u32::from(RefCode::AskPrimary.number()) {
            return self.go_on_at_primary(body.scan, signal.payload());
        }
        self.fail(body.scan, error_of(body.code, body.errno, signal.payload()));
    }

    /// READ-4: the backup has met a row that is being changed; this is what it has not read yet.
    fn go_on_at_primary(&mut self, ticket: Ticket, ranges: &[u8]) {
        let Some(mut scan) = self.backup_scans.remove(&ticket) else {
            return self.fail(ticket, RefCode::StaleView);
        };
        let fragment = scan.req.fragment;
        let node = match self.scan_place(fragment, false) {
            Ok(node) => node,
            Err(code) => return self.fail(ticket, code),
        };
        scan.req.flags &= !SCAN_ANY_REPLICA;
        scan.req.range_count = list::items::<Range>(ranges).count() as u32;
        scan.at = self.ldm_of(node, fragment);
        self.requests.insert(ticket, Request::Call(Call::new(node, self.now, Kind::Scan)));
        self.send(scan.at, &scan.req, &[ranges, &scan.program]);
        self.backup_scans.insert(ticket, scan);
    }
}
