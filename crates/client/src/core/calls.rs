//! Calls to control: map, catalog, changes, status; and what scans share with them.

use super::{Answer, ClientCore, PATIENCE, Request, Ticket, cut_off::unknown_change, error_of};
use crate::api::{Committed, RowResult, SessionCall};
use lats_base::{Duration, Epoch, Instant, NodeId, RefCode};
use lats_catalog::{CatalogUpdate, Change, ChangeError, ChangeErrorKind};
use lats_signals::{
    BlockRef, Signal,
    control::{
        CatalogConf, CatalogReq, ChangeConf, ChangeHeardOrd, ChangeRef, ChangeReq, EpochConf,
        EpochReq, FiguresConf, FiguresReq, SessionsConf, SessionsReq, StatusConf, StatusReq,
    },
};

/// A question to one node.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) node: NodeId,
    since: Instant,
    sent_at: Instant,
    /// It has been sent over a link that was lost, and may still arrive.
    strayed: bool,
    pub(super) kind: Kind,
}

impl Call {
    pub(super) fn new(node: NodeId, now: Instant, kind: Kind) -> Self {
        Self { node, since: now, sent_at: now, strayed: false, kind }
    }

    /// When it was asked first.
    pub(super) fn since(&self) -> Instant {
        self.since
    }

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
pub(super) enum Kind {
    Scan,
    Catalog,
    Change(u64, Box<Change>),
    Status(Option<NodeId>),
    Figures(NodeId),
    /// What a node is to do with its sessions: which one, and what.
    Sessions(NodeId, u32, SessionCall),
    /// When this is durable.
    Epochs(Committed),
    /// This is committed; it is answered with these results when it is durable (DURABLE-6).
    Disks(Committed, Vec<RowResult>),
}

/// Indexes of large tables take their time to be built.
const CHANGE_PATIENCE: Duration = Duration::from_millis(300_000);
/// Disks may be full for a while.
const DISK_PATIENCE: Duration = Duration::from_millis(60_000);
/// While a node group is lost or silent nobody can know what is durable, and whoever asks is told so: it is asked again for so long.
const NOBODY_KNOWS: Duration = Duration::from_millis(5_000);

impl ClientCore {
    /// How many fragments a table has.
    pub fn fragment_count(&self, table: lats_base::TableId) -> u16 {
        self.routes.get(&table).map_or(0, lats_catalog::Spread::fragment_count)
    }

    pub(super) fn call(&mut self, node: NodeId, kind: Kind) -> Ticket {
        let ticket = self.ticket();
        self.requests.insert(ticket, Request::Call(Call::new(node, self.now, kind)));
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
        self.start_call(Kind::Status(None))
    }

    /// The same of one node: what it knows of its own disk no other one does.
    pub fn fetch_status_of(&mut self, node: NodeId) -> Ticket {
        self.start_call(Kind::Status(Some(node)))
    }

    /// Asks for what the threads of a node have done.
    pub fn fetch_figures(&mut self, node: NodeId) -> Ticket {
        self.start_call(Kind::Figures(node))
    }

    /// Asks a node for what it is to do with a session of its own.
    pub fn call_sessions(&mut self, node: NodeId, session: u32, call: SessionCall) -> Ticket {
        self.start_call(Kind::Sessions(node, session, call))
    }

    /// Asks for the current and the newest complete epoch.
    pub fn fetch_epochs(&mut self) -> Ticket {
        self.start_call(Kind::Epochs(Committed::default()))
    }

    /// Asks for the epochs when this is durable. Refused with [`RefCode::MadeVoid`] if a restart of the cluster has made it void.
    pub fn wait_until_durable(&mut self, committed: Committed) -> Ticket {
        self.start_call(Kind::Epochs(committed))
    }

    /// As [`Self::wait_until_durable`], but asks again while nobody can know, and is answered when it is.
    pub fn reach_disks(&mut self, committed: Committed) -> Ticket {
        let ticket = self.ticket();
        self.wait_for_disks(ticket, Vec::new(), committed);
        ticket
    }

    /// A transaction is committed, and nobody has said yet that it is durable.
    pub(super) fn wait_for_disks(
        &mut self,
        ticket: Ticket,
        results: Vec<RowResult>,
        committed: Committed,
    ) {
        if committed.epoch == Epoch::default() {
            // It has changed nothing.
            return self.finish(ticket, Answer::Rows { results, committed: Some(committed) });
        }
        let call = Call::new(NodeId::default(), self.now, Kind::Disks(committed, results));
        self.requests.insert(ticket, Request::Call(call));
        self.send_call(ticket);
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
            Kind::Figures(node) | Kind::Sessions(node, ..) | Kind::Status(Some(node)) => {
                Some(node).filter(|n| self.links.contains(n))
            }
            _ => self.any_node(),
        };
        // A link that is not chosen any more may bring it later.
        call.strayed |= call.node != NodeId::default() && Some(call.node) != node;
        call.node = node.unwrap_or_default();
        call.sent_at = now;
        if let Some(node) = node {
            let to = BlockRef::control(node);
            match &call.kind {
                Kind::Catalog => {
                    let known = self.catalog.version;
                    self.send(to, &CatalogReq { request: ticket, known }, &[]);
                }
                Kind::Epochs(committed) | Kind::Disks(committed, _) => {
                    let Committed { epoch: durable, restarts, .. } = *committed;
                    let body = EpochReq { request: ticket, durable, restarts, reserved: 0 };
                    self.send(to, &body, &[]);
                }
                Kind::Status(_) => self.send(to, &StatusReq { request: ticket }, &[]),
                Kind::Figures(_) => {
                    self.send(BlockRef::shell(node), &FiguresReq { request: ticket }, &[]);
                }
                Kind::Sessions(_, session, call) => {
                    let (what, statement) = (call.number(), call.statement());
                    let body = SessionsReq { request: ticket, session: *session, what, statement };
                    self.send(BlockRef::shell(node), &body, &[]);
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
        let resend_after = self.resend_after();
        let unheard = self.silence.is_unheard(call.node, now, resend_after);
        if scan && waits > resend_after && unheard && self.silence.is_silent(call.node) {
            return self.give_up_scan(ticket, RefCode::NodeSilent);
        }
        let asks = matches!(call.kind, Kind::Epochs(c) if c.epoch > Epoch::default());
        let disk = asks || matches!(call.kind, Kind::Disks(..));
        if disk && waits > DISK_PATIENCE {
            self.fail(ticket, RefCode::NotOnDisk);
        } else if scan && waits > PATIENCE {
            self.give_up_scan(ticket, RefCode::NotServing);
        } else if change && waits > CHANGE_PATIENCE {
            self.finish(ticket, Answer::Changed(Err(unknown_change())));
        } else if !disk && !change && waits > PATIENCE {
            self.fail(ticket, RefCode::NotServing);
        } else if !scan && now.since(call.sent_at) > resend_after {
            self.send_call(ticket);
        }
    }

    pub(super) fn lose_call(&mut self, ticket: Ticket) {
        let Some(Request::Call(call)) = self.requests.get_mut(&ticket) else { return };
        call.strayed = true;
        if matches!(call.kind, Kind::Scan) {
            return self.fail(ticket, RefCode::NodeFailed);
        }
        if matches!(call.kind, Kind::Change(..)) && self.now.since(call.since) > CHANGE_PATIENCE {
            // It comes too late to ask again: nobody may remember that it was made (CHANGE-2).
            return self.finish(ticket, Answer::Changed(Err(unknown_change())));
        }
        self.send_call(ticket);
    }

    pub(super) fn on_catalog_conf(&mut self, signal: &Signal<'_>) {
        let conf = signal.body::<CatalogConf>();
        let Ok(update) = lats_catalog::decode::<CatalogUpdate>(signal.payload()) else { return };
        let version = update.version();
        self.learn_catalog(update);
        // Else another node knows better, or more is missing than it tells: the request is sent again.
        if version == self.catalog.version && self.requests.contains_key(&conf.request) {
            self.finish(conf.request, Answer::Catalog(self.catalog.clone()));
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
            self.confirm_change(ticket, conf.request, signal.sender().node);
            self.finish(ticket, Answer::Changed(Ok(conf.catalog_version)));
        }
    }

    pub(super) fn on_change_ref(&mut self, signal: &Signal<'_>) {
        let body = signal.body::<ChangeRef>();
        let Some(ticket) = self.change_ticket(body.request) else { return };
        let strayed = self.has_strayed(ticket);
        self.confirm_change(ticket, body.request, signal.sender().node);
        let code = error_of(body.code as u32, 0, &[]);
        let error = lats_catalog::decode::<ChangeError>(signal.payload());
        // This node has not made it; but another one may have been asked, too (CHANGE-1).
        match error {
            Ok(error) if strayed && error.kind == ChangeErrorKind::Temporary => {
                self.finish(ticket, Answer::Changed(Err(unknown_change())));
            }
            Ok(error) => self.finish(ticket, Answer::Changed(Err(error))),
            Err(_) if strayed => self.finish(ticket, Answer::Changed(Err(unknown_change()))),
            Err(_) => self.fail(ticket, code),
        }
    }

    fn has_strayed(&self, ticket: Ticket) -> bool {
        matches!(self.requests.get(&ticket), Some(Request::Call(call)) if call.strayed)
    }

    /// CHANGE-2: nobody will ask for this change any more, unless a request for it is still on its way over another link.
    fn confirm_change(&mut self, ticket: Ticket, request: u64, node: NodeId) {
        if !self.has_strayed(ticket) {
            self.send(BlockRef::control(node), &ChangeHeardOrd { request }, &[]);
        }
    }

    pub(super) fn on_epoch_conf(&mut self, signal: &Signal<'_>) {
        let conf = signal.body::<EpochConf>();
        let EpochConf { request, current, complete, durable, restarts, is_void } = conf;
        self.note_durable(durable, restarts);
        // Nothing becomes durable then, until all nodes are started again.
        let is_lost = self.map.view.lost_groups().next().is_some();
        let Some(Request::Call(call)) = self.requests.get_mut(&request) else { return };
        if is_void != 0 {
            return self.fail(request, RefCode::MadeVoid);
        }
        let Kind::Disks(committed, results) = &mut call.kind else {
            let answer = Answer::Epochs { current, complete, durable, restarts };
            return self.finish(request, answer);
        };
        if durable >= committed.epoch {
            let (results, committed) = (core::mem::take(results), Some(*committed));
            self.finish(request, Answer::Rows { results, committed });
        } else if durable == Epoch::default() {
            self.fail(request, RefCode::NothingKept);
        } else if is_lost || self.now.since(call.since) > NOBODY_KNOWS {
            self.fail(request, RefCode::NotOnDisk);
        }
        // Else it is asked again.
    }

    pub(super) fn on_figures_conf(&mut self, signal: &Signal<'_>) {
        let conf = signal.body::<FiguresConf>();
        if self.requests.contains_key(&conf.request) {
            self.finish(conf.request, Answer::Status(signal.payload().to_vec()));
        }
    }

    pub(super) fn on_sessions_conf(&mut self, signal: &Signal<'_>) {
        let conf = signal.body::<SessionsConf>();
        if self.requests.contains_key(&conf.request) {
            let list = signal.payload().to_vec();
            self.finish(conf.request, Answer::Sessions { found: conf.found != 0, list });
        }
    }

    pub(super) fn on_status_conf(&mut self, signal: &Signal<'_>) {
        let conf = signal.body::<StatusConf>();
        if self.requests.contains_key(&conf.request) {
            self.finish(conf.request, Answer::Status(signal.payload().to_vec()));
        }
    }
}
