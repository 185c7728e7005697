//! Scans of one fragment, and calls to control: map, catalog, changes, status.

use super::{Answer, ClientCore, PATIENCE, RESEND, Request, Ticket, error_of};
use crate::{api::Scan, batch::ScanBatch};
use lats_base::{Duration, Epoch, FragmentId, Instant, NodeId, RefCode, TransactionId};
use lats_catalog::{Catalog, Change, ChangeError};
use lats_signals::{
    BlockRef, Signal,
    control::{
        CatalogConf, CatalogReq, ChangeConf, ChangeRef, ChangeReq, EpochConf, EpochReq,
        FiguresConf, FiguresReq, StatusConf, StatusReq,
    },
    list::{self, Range},
    query::{
        SCAN_INDEX_KEYS, SCAN_ORDERED, SCAN_PENDING, SCAN_PRIMARY_KEYS, SCAN_REVERSE, ScanCloseOrd,
        ScanConf, ScanNextReq, ScanRef, ScanReq,
    },
};

/// A question to one node.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) node: NodeId,
    since: Instant,
    sent_at: Instant,
    kind: Kind,
}

impl Call {
    pub(super) fn describe(&self, ticket: Ticket) -> String {
        format!(
            "{ticket}: {:?} at node {} since {} us",
            self.kind,
            self.node,
            self.since.as_nanos() / 1_000
        )
    }
}

#[derive(Debug)]
enum Kind {
    Scan,
    Catalog,
    Change(u64, Box<Change>),
    Status,
    Figures(NodeId),
    Epochs,
}

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

/// Indexes of large tables take their time to be built.
const CHANGE_PATIENCE: Duration = Duration::from_millis(300_000);

impl ClientCore {
    /// How many fragments a table has.
    pub fn fragment_count(&self, table: lats_base::TableId) -> u16 {
        self.routes.get(&table).map_or(0, lats_catalog::Spread::fragment_count)
    }

    /// Opens a scan of one fragment at its primary, and asks for its first batch; `as_of`: of the
    /// snapshot of this epoch, for which the scan of every fragment must ask alike.
    ///
    /// # Errors
    /// When the primary cannot be reached now.
    pub fn open_scan(
        &mut self,
        scan: &Scan,
        fragment: FragmentId,
        transaction: Option<u64>,
        as_of: Option<Epoch>,
    ) -> Result<(ScanHandle, Ticket), RefCode> {
        let node = self.map.view.route(fragment)?;
        if !self.is_up(node) {
            let silent = self.silence.is_silent(node);
            return Err(if silent { RefCode::NodeSilent } else { RefCode::NotServing });
        }
        if as_of == Some(Epoch::default()) {
            // The first epoch is not complete yet.
            return Err(RefCode::EpochNotComplete);
        }
        let ticket = self.call(node, Kind::Scan);
        let handle = ScanHandle { ldm: self.ldm_of(node, fragment), scan: ticket };
        let mut payload = Vec::new();
        for range in &scan.ranges {
            let upper = range.upper.as_deref();
            let head = Range {
                lower_bytes: range.lower.len() as u32,
                upper_bytes: upper.map_or(0, <[u8]>::len) as u32,
                has_upper: u32::from(upper.is_some()),
                reserved: 0,
            };
            list::push(&mut payload, &head, [&range.lower, upper.unwrap_or_default(), &[]]);
        }
        // Only who merges several fragments needs the keys that they are ordered by.
        let merges = scan.ordered && self.fragment_count(scan.table) > 1;
        let flags = [
            (scan.ordered, SCAN_ORDERED),
            (scan.reverse, SCAN_REVERSE),
            (merges, SCAN_INDEX_KEYS),
            (scan.primary_keys, SCAN_PRIMARY_KEYS),
            (scan.pending, SCAN_PENDING),
        ];
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
            range_count: scan.ranges.len() as u32,
            program_bytes: scan.program.len() as u32,
            flags: flags.iter().filter(|(set, _)| *set).map(|(_, flag)| flag).sum(),
        };
        self.send(handle.ldm, &body, &[&payload, &scan.program]);
        Ok((handle, ticket))
    }

    /// Asks for the next batch. The answer comes under the scan's own number.
    pub fn next_batch(&mut self, handle: ScanHandle) -> Ticket {
        if !self.links.contains(&handle.ldm.node) {
            // The link was lost between two batches, and the scan with it.
            self.fail(handle.scan, RefCode::NodeFailed);
            return handle.scan;
        }
        let call =
            Call { node: handle.ldm.node, since: self.now, sent_at: self.now, kind: Kind::Scan };
        self.requests.insert(handle.scan, Request::Call(call));
        let body = ScanNextReq { scan: handle.scan, reply_to: BlockRef::default() };
        self.send(handle.ldm, &body, &[]);
        handle.scan
    }

    /// No more is wanted of a scan.
    pub fn close_scan(&mut self, handle: ScanHandle) {
        self.requests.remove(&handle.scan);
        let body = ScanCloseOrd { scan: handle.scan, reply_to: BlockRef::default() };
        self.send(handle.ldm, &body, &[]);
    }

    fn call(&mut self, node: NodeId, kind: Kind) -> Ticket {
        let ticket = self.ticket();
        let call = Call { node, since: self.now, sent_at: self.now, kind };
        self.requests.insert(ticket, Request::Call(call));
        ticket
    }

    /// Asks for the catalog.
    pub fn fetch_catalog(&mut self) -> Ticket {
        self.start_call(Kind::Catalog)
    }

    /// Asks for a change of the catalog. `request` is a number that nobody else uses.
    pub fn change(&mut self, request: u64, change: Change) -> Ticket {
        self.start_call(Kind::Change(request, Box::new(change)))
    }

    /// Asks for the status record.
    pub fn fetch_status(&mut self) -> Ticket {
        self.start_call(Kind::Status)
    }

    /// Asks for what the threads of a node have done.
    pub fn fetch_figures(&mut self, node: NodeId) -> Ticket {
        self.start_call(Kind::Figures(node))
    }

    /// Asks for the current and the newest complete epoch.
    pub fn fetch_epochs(&mut self) -> Ticket {
        self.start_call(Kind::Epochs)
    }

    fn start_call(&mut self, kind: Kind) -> Ticket {
        let node = self.any_node().unwrap_or_default();
        let ticket = self.call(node, kind);
        self.send_call(ticket);
        ticket
    }

    fn send_call(&mut self, ticket: Ticket) {
        let now = self.now;
        let Some(Request::Call(mut call)) = self.requests.remove(&ticket) else { return };
        let node = match call.kind {
            Kind::Figures(node) => Some(node).filter(|n| self.links.contains(n)),
            _ => self.any_node(),
        };
        call.node = node.unwrap_or_default();
        call.sent_at = now;
        if let Some(node) = node {
            let to = BlockRef::control(node);
            match &call.kind {
                Kind::Catalog => self.send(to, &CatalogReq { request: ticket }, &[]),
                Kind::Epochs => self.send(to, &EpochReq { request: ticket }, &[]),
                Kind::Status => self.send(to, &StatusReq { request: ticket }, &[]),
                Kind::Figures(_) => {
                    self.send(BlockRef::shell(node), &FiguresReq { request: ticket }, &[]);
                }
                Kind::Change(request, change) => {
                    let bytes = lats_catalog::encode(change);
                    self.send(to, &ChangeReq { request: *request }, &[&bytes]);
                }
                Kind::Scan => {}
            }
        }
        self.requests.insert(ticket, Request::Call(call));
    }

    pub(super) fn tick_call(&mut self, ticket: Ticket) {
        let now = self.now;
        let Some(Request::Call(call)) = self.requests.get(&ticket) else { return };
        let waits = now.since(call.since);
        let scan = matches!(call.kind, Kind::Scan);
        let change = matches!(call.kind, Kind::Change(..));
        let unheard = self.silence.is_unheard(call.node, now, RESEND);
        if scan && waits > RESEND && unheard && self.silence.is_silent(call.node) {
            return self.fail(ticket, RefCode::NodeSilent);
        }
        if waits > if change { CHANGE_PATIENCE } else { PATIENCE } {
            self.fail(ticket, RefCode::NotServing);
        } else if !scan && now.since(call.sent_at) > RESEND {
            self.send_call(ticket);
        }
    }

    pub(super) fn lose_call(&mut self, ticket: Ticket) {
        let Some(Request::Call(call)) = self.requests.get(&ticket) else { return };
        if matches!(call.kind, Kind::Scan) {
            return self.fail(ticket, RefCode::NodeFailed);
        }
        self.send_call(ticket);
    }

    pub(super) fn on_scan_conf(&mut self, signal: &Signal<'_>) {
        let conf = signal.body::<ScanConf>();
        if !self.requests.contains_key(&conf.scan) {
            return;
        }
        let rows = ScanBatch::from_payload(signal.payload(), conf.row_count);
        self.epoch_seen = self.epoch_seen.max(conf.epoch);
        self.finish(conf.scan, Answer::Batch { rows, done: conf.done != 0 });
    }

    pub(super) fn on_scan_ref(&mut self, signal: &Signal<'_>) {
        let body = signal.body::<ScanRef>();
        if self.requests.contains_key(&body.scan) {
            self.fail(body.scan, error_of(body.code, body.errno, signal.payload()));
        }
    }

    pub(super) fn on_catalog_conf(&mut self, signal: &Signal<'_>) {
        let conf = signal.body::<CatalogConf>();
        if let Ok(catalog) = Catalog::decode(signal.payload()) {
            self.learn_catalog(&catalog);
            if catalog.version < self.catalog_version {
                // Another node knows better: the request is sent again.
                return;
            }
            if self.requests.contains_key(&conf.request) {
                self.finish(conf.request, Answer::Catalog(Box::new(catalog)));
            }
        }
    }

    fn change_ticket(&self, asked: u64) -> Option<Ticket> {
        self.requests.iter().find_map(|(ticket, request)| match request {
            Request::Call(Call { kind: Kind::Change(number, _), .. }) if *number == asked => {
                Some(*ticket)
            }
            _ => None,
        })
    }

    pub(super) fn on_change_conf(&mut self, signal: &Signal<'_>) {
        let conf = signal.body::<ChangeConf>();
        if let Some(ticket) = self.change_ticket(conf.request) {
            self.finish(ticket, Answer::Changed(Ok(conf.catalog_version)));
        }
    }

    pub(super) fn on_change_ref(&mut self, signal: &Signal<'_>) {
        let body = signal.body::<ChangeRef>();
        let Some(ticket) = self.change_ticket(body.request) else { return };
        match lats_catalog::decode::<ChangeError>(signal.payload()) {
            Ok(error) => self.finish(ticket, Answer::Changed(Err(error))),
            Err(_) => self.fail(ticket, error_of(body.code as u32, 0, &[])),
        }
    }

    pub(super) fn on_epoch_conf(&mut self, signal: &Signal<'_>) {
        let conf = signal.body::<EpochConf>();
        if self.requests.contains_key(&conf.request) {
            let answer = Answer::Epochs { current: conf.current, complete: conf.complete };
            self.finish(conf.request, answer);
        }
    }

    pub(super) fn on_figures_conf(&mut self, signal: &Signal<'_>) {
        let conf = signal.body::<FiguresConf>();
        if self.requests.contains_key(&conf.request) {
            self.finish(conf.request, Answer::Status(signal.payload().to_vec()));
        }
    }

    pub(super) fn on_status_conf(&mut self, signal: &Signal<'_>) {
        let conf = signal.body::<StatusConf>();
        if self.requests.contains_key(&conf.request) {
            self.finish(conf.request, Answer::Status(signal.payload().to_vec()));
        }
    }
}
