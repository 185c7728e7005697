//! The client as a state machine: routing by the cluster's map, transactions, fail-over.
//!
//! It does no I/O: signals to send and finished requests are taken from it, received signals and
//! lost links are given to it. The asynchronous client and the simulator's clients both drive it.

mod calls;
mod cut_off;
mod held;
mod outcome;
mod read;
mod scan;
mod silence;
#[cfg(test)]
mod tests;
mod transaction;

pub use scan::ScanHandle;
pub use transaction::Then;

use crate::api::{Committed, LockWait, RowOp, RowOpKind, RowResult, StoreError};
use crate::batch::ScanBatch;
use lats_base::limits::BATCH_BYTES_MAX;
use lats_base::{
    ClientId, Duration, Epoch, Incarnation, Instant, NodeId, Nonce, RefCode, TableId, TransactionId,
};
use lats_catalog::{Builder, Catalog, CatalogUpdate, ChangeError, ClusterMap, Spread, TableDef};
use lats_signals::{
    BlockRef, Body, Signal, SignalBuffer, SignalNumber,
    buffer::Route,
    control::{CertificateOrd, DeclareDeadReq, LeaveOrd, RESTART, StopNodeReq},
    list::{self, Operation, OperationKind},
};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

/// A request's number within its client.
pub type Ticket = u64;

/// What became of a request.
#[derive(Clone, Debug)]
pub enum Answer {
    /// Operations of a transaction, or committed reads: one result each. `committed` if the
    /// transaction is.
    Rows {
        /// The results, in the order of the operations. Empty if the transaction was committed but
        /// its answer was lost with its coordinator.
        results: Vec<RowResult>,
        /// The receipt, if the request committed.
        committed: Option<Committed>,
    },
    /// A batch of a scan of one fragment.
    Batch {
        /// The rows.
        rows: ScanBatch,
        /// There are no more.
        done: bool,
    },
    /// The catalog.
    Catalog(Arc<Catalog>),
    /// A change of the catalog was made, or refused.
    Changed(Result<u64, ChangeError>),
    /// The status record, encoded.
    Status(Vec<u8>),
    /// What a node has done with its sessions.
    Sessions {
        /// There is such a session.
        found: bool,
        /// The list of sessions, if it was asked for.
        list: Vec<u8>,
    },
    /// The epochs, as one node knows them.
    Epochs {
        /// The current one.
        current: Epoch,
        /// The newest complete one.
        complete: Epoch,
        /// The newest durable one; 0 if the cluster keeps nothing on disk.
        durable: Epoch,
        /// How many times the cluster has been restarted.
        restarts: u32,
    },
    /// Refused.
    Failed(StoreError),
}

/// The client's state machine.
pub struct ClientCore {
    id: ClientId,
    /// The node that this client prefers: the one whose process it lives in.
    home: Option<NodeId>,
    /// Its location domain, if it was told; else its home's.
    location: String,
    /// Nodes on the same host.
    near: BTreeSet<NodeId>,
    /// How far away the members are, by all that is known of places.
    distances: BTreeMap<NodeId, u8>,
    map: ClusterMap,
    /// The newest catalog that was heard of, and how the rows of each of its tables are spread.
    catalog: Arc<Catalog>,
    routes: BTreeMap<TableId, Spread>,
    links: BTreeSet<NodeId>,
    silence: silence::Silence,
    /// How long requests wait while the home is cut off, and those that were given up before their answer.
    cut_off_patience: Duration,
    abandoned: BTreeMap<Ticket, cut_off::Abandoned>,
    abandoned_scans: BTreeSet<Ticket>,
    next_sequence: u64,
    next_ticket: Ticket,
    active: BTreeSet<u64>,
    epoch_seen: Epoch,
    /// All that was read without locks is durable with this, and the newest epoch that is known to be (READ-7).
    shown: Committed,
    durable_seen: Epoch,
    transactions: BTreeMap<u64, transaction::Open>,
    requests: BTreeMap<Ticket, Request>,
    backup_scans: BTreeMap<Ticket, scan::BackupScan>,
    outgoing: SignalBuffer,
    answers: VecDeque<(Ticket, Answer)>,
    now: Instant,
    suspended: Duration,
}

enum Request {
    Step(transaction::Step),
    Held(held::Held),
    Outcome(outcome::Question),
    Read(read::Read),
    Call(calls::Call),
}

/// A request without an answer for so long goes to another node, if it can; where leases are shorter, after a lease.
const RESEND_MAX: Duration = Duration::from_millis(300);
/// A request without an answer for so long is given up.
const PATIENCE: Duration = Duration::from_millis(10_000);

impl ClientCore {
    /// After so long another node is asked: whoever has died is replaced after a lease.
    fn resend_after(&self) -> Duration {
        match self.map.view.config.lease_ms {
            0 => RESEND_MAX,
            lease_ms => Duration::from_millis(lease_ms).min(RESEND_MAX),
        }
    }

    /// A client with an id that no other has.
    pub fn new(id: ClientId, home: Option<NodeId>) -> Self {
        Self {
            id,
            home,
            location: String::new(),
            near: BTreeSet::new(),
            distances: BTreeMap::new(),
            map: ClusterMap::default(),
            catalog: Arc::default(),
            routes: BTreeMap::new(),
            links: BTreeSet::new(),
            silence: silence::Silence::default(),
            cut_off_patience: cut_off::PATIENCE,
            abandoned: BTreeMap::new(),
            abandoned_scans: BTreeSet::new(),
            next_sequence: 1,
            next_ticket: 1,
            active: BTreeSet::new(),
            epoch_seen: Epoch::default(),
            shown: Committed::default(),
            durable_seen: Epoch::default(),
            transactions: BTreeMap::new(),
            requests: BTreeMap::new(),
            backup_scans: BTreeMap::new(),
            outgoing: SignalBuffer::new(),
            answers: VecDeque::new(),
            now: Instant::ZERO,
            suspended: Duration::ZERO,
        }
    }

    /// Where this client is: it prefers nodes there.
    pub fn set_location(&mut self, location: &str) {
        self.location = location.to_string();
        self.measure_distances();
    }

    /// A node is on the same host.
    pub fn note_near(&mut self, node: NodeId) {
        self.near.insert(node);
        self.measure_distances();
    }

    fn measure_distances(&mut self) {
        let members = self.map.view.members.iter().map(|m| m.node);
        self.distances = members.map(|node| (node, self.measure_distance(node))).collect();
    }

    /// How far away a node is. Every read asks.
    fn distance(&self, node: NodeId) -> u8 {
        self.distances.get(&node).copied().unwrap_or(u8::MAX)
    }

    /// The own process, the own host, the own location, others.
    fn measure_distance(&self, node: NodeId) -> u8 {
        let place = |n: NodeId| self.map.view.member(n).map(|m| m.location.as_str());
        let own = match self.location.as_str() {
            "" => self.home.and_then(place),
            told => Some(told),
        };
        match node {
            n if Some(n) == self.home => 0,
            n if self.near.contains(&n) => 1,
            n if own.is_some_and(|l| !l.is_empty()) && place(n) == own => 2,
            _ => 3,
        }
    }

    /// Signals to send: the receiver says to which node.
    pub fn outgoing(&mut self) -> &mut SignalBuffer {
        &mut self.outgoing
    }

    /// What time it is, for requests that are made now.
    pub fn set_time(&mut self, now: Instant) {
        self.now = now;
    }

    /// The next finished request.
    pub fn next_answer(&mut self) -> Option<(Ticket, Answer)> {
        self.answers.pop_front()
    }

    /// The newest map.
    pub fn map(&self) -> &ClusterMap {
        &self.map
    }

    /// What it knows and waits for, for a person.
    pub fn describe(&self) -> String {
        let waiting = self.requests.iter().map(|(ticket, request)| match request {
            Request::Step(step) => format!("{ticket}: step at node {}", step.coordinator),
            Request::Held(_) => format!("{ticket}: step without a coordinator"),
            Request::Read(_) => format!("{ticket}: read"),
            Request::Outcome(_) => format!("{ticket}: outcome"),
            Request::Call(call) => call.describe(*ticket),
        });
        let waiting: Vec<String> = waiting.collect();
        format!("view {}, links {:?}, waits for {waiting:?}", self.map.view.number, self.links)
    }

    /// True once there is a map and a link to go by.
    pub fn is_ready(&self) -> bool {
        self.map.view.number.get() > 0 && !self.links.is_empty()
    }

    /// Tells how the rows of each table are spread.
    /// A node that is on its way back may tell of a catalog that is long gone.
    pub fn learn_catalog(&mut self, update: CatalogUpdate) {
        if update.version() <= self.catalog.version || self.catalog.is_far_from(&update) {
            return;
        }
        let route = |t: &Arc<TableDef>| (t.id, Spread::of(t));
        match &update {
            CatalogUpdate::Whole(whole) => self.routes = whole.tables.values().map(route).collect(),
            CatalogUpdate::Changes(changes) => {
                changes.gone.iter().for_each(|id| drop(self.routes.remove(id)));
                self.routes.extend(changes.tables.iter().map(route));
            }
        }
        match update {
            CatalogUpdate::Whole(whole) => self.catalog = Arc::new(whole),
            changes => Arc::make_mut(&mut self.catalog).update(changes),
        }
    }

    /// Whose death ends what this client is building: the node that it works through.
    pub fn builder(&self) -> Builder {
        let node = self.any_node().unwrap_or_default();
        Builder { node, incarnation: self.life_of(node).unwrap_or_default() }
    }

    /// Requests that are not finished.
    pub fn pending(&self) -> usize {
        self.requests.len()
    }

    /// Time goes on: repeats what may be repeated, gives up what took too long.
    pub fn tick(&mut self, now: Instant) {
        self.now = now;
        self.watch_links();
        if self.cut_off().is_some() {
            self.give_up_requests();
        }
        let tickets: Vec<Ticket> = self.requests.keys().copied().collect();
        for ticket in tickets {
            match self.requests.get(&ticket) {
                Some(Request::Read(_)) => self.tick_read(ticket),
                Some(Request::Outcome(_)) => self.tick_outcome(ticket),
                Some(Request::Call(_)) => self.tick_call(ticket),
                Some(Request::Held(_)) => self.tick_held(ticket),
                Some(Request::Step(_)) | None => {}
            }
        }
    }

    /// A link is up: asks for the map over it.
    pub fn link_up(&mut self, node: NodeId) {
        self.links.insert(node);
        self.silence.meet(node, self.now);
        let body = lats_signals::control::MapReq { request: 0, known_view: Default::default() };
        self.send(BlockRef::control(node), &body, &[]);
        // Questions that had nobody to go to.
        self.tick(self.now);
    }

    /// A link is gone, and with it what was under way on it.
    pub fn link_down(&mut self, node: NodeId) {
        if !self.links.remove(&node) {
            return;
        }
        self.silence.forget(node);
        self.lose_open_transactions(node);
        self.forget_abandoned(node);
        let tickets: Vec<Ticket> = self.requests.keys().copied().collect();
        for ticket in tickets {
            match self.requests.get(&ticket) {
                Some(Request::Step(step)) if step.coordinator == node => self.lose_step(ticket),
                Some(Request::Read(_)) => self.lose_read(ticket, node),
                Some(Request::Outcome(_)) => self.tick_outcome(ticket),
                Some(Request::Call(call)) if call.node == node => self.lose_call(ticket),
                _ => {}
            }
        }
    }

    /// A signal has come in.
    pub fn receive(&mut self, signal: &Signal<'_>) {
        let Some(number) = signal.number() else { return };
        self.silence.hear(signal.sender().node, self.now);
        match number {
            SignalNumber::TcKeyConf => self.on_tc_key_conf(signal),
            SignalNumber::TcKeyRef => self.on_tc_key_ref(signal),
            SignalNumber::OutcomeConf => self.on_outcome_conf(signal),
            SignalNumber::ReadConf => self.on_read_conf(signal),
            SignalNumber::ReadRef => self.on_read_ref(signal),
            SignalNumber::ScanConf => self.on_scan_conf(signal),
            SignalNumber::ScanRef => self.on_scan_ref(signal),
            SignalNumber::MapConf => self.on_map_conf(signal),
            SignalNumber::CatalogConf => self.on_catalog_conf(signal),
            SignalNumber::ChangeConf => self.on_change_conf(signal),
            SignalNumber::ChangeRef => self.on_change_ref(signal),
            SignalNumber::StatusConf => self.on_status_conf(signal),
            SignalNumber::FiguresConf => self.on_figures_conf(signal),
            SignalNumber::SessionsConf => self.on_sessions_conf(signal),
            SignalNumber::EpochConf => self.on_epoch_conf(signal),
            // Not for clients: a node of another version.
            _ => {}
        }
    }

    fn on_map_conf(&mut self, signal: &Signal<'_>) {
        let Ok(map) = lats_catalog::decode::<ClusterMap>(signal.payload()) else { return };
        self.silence.learn(signal.sender().node, &map.silent, self.now);
        let newer = map.view.number > self.map.view.number
            || (map.view.number == self.map.view.number
                && map.catalog_version > self.map.catalog_version);
        if newer {
            self.silence.keep_members(|n| map.view.incarnation(n).is_some());
            self.map = map;
            self.measure_distances();
        }
    }

    fn ticket(&mut self) -> Ticket {
        self.next_ticket += 1;
        self.next_ticket - 1
    }

    fn finish(&mut self, ticket: Ticket, answer: Answer) {
        self.requests.remove(&ticket);
        self.answers.push_back((ticket, answer));
    }

    fn fail(&mut self, ticket: Ticket, error: impl Into<StoreError>) {
        self.backup_scans.remove(&ticket);
        self.finish(ticket, Answer::Failed(error.into()));
    }

    fn send<B: Body>(&mut self, to: BlockRef, body: &B, payload: &[&[u8]]) {
        let route = Route { sender: BlockRef::default(), receiver: to, incarnation: 0 };
        self.outgoing.push(route, body, payload);
    }

    fn life_of(&self, node: NodeId) -> Option<Incarnation> {
        self.map.view.incarnation(node)
    }

    /// True if the node can be talked to and is a live member.
    fn is_up(&self, node: NodeId) -> bool {
        self.links.contains(&node) && self.life_of(node).is_some()
    }

    /// The home, if it can be talked to and has coordinators.
    fn usable_home(&self) -> Option<NodeId> {
        let holds_data = |n: &NodeId| self.map.view.data_nodes().any(|m| m.node == *n);
        self.home.filter(|n| self.is_up(*n) && !self.map.view.is_stopping(*n)).filter(holds_data)
    }

    /// Asks for this life of a node to stop: the view will say whether it does (STOP-1).
    pub fn stop_node(&mut self, node: NodeId, restart: bool) {
        let incarnation = self.life_of(node).unwrap_or_default();
        let body = StopNodeReq {
            node: u64::from(node.get()),
            incarnation: u64::from(incarnation.get()),
            then: if restart { RESTART } else { 0 },
        };
        if let Some(to) = self.any_node() {
            self.send(BlockRef::control(to), &body, &[]);
        }
    }

    /// Says that this life of a node is over, though the cluster cannot see it (SILENT-4): the view will say whether
    /// the cluster believes it.
    pub fn declare_dead(&mut self, node: NodeId, incarnation: Incarnation, give_up_rows: bool) {
        let body = DeclareDeadReq {
            node: u64::from(node.get()),
            incarnation: u64::from(incarnation.get()),
            give_up_rows: u64::from(give_up_rows),
        };
        // Without a leader each decides for itself (REFORM-5).
        for to in self.links.iter().copied().filter(|to| *to != node).collect::<Vec<NodeId>>() {
            self.send(BlockRef::control(to), &body, &[]);
        }
    }

    /// Tells all nodes that a process has ended (DEATH-1).
    pub fn certify(&mut self, node: NodeId, incarnation: Incarnation, nonce: Nonce) {
        let (of, incarnation) = (u64::from(node.get()), u64::from(incarnation.get()));
        let body = CertificateOrd { node: of, incarnation, nonce };
        for to in self.links.iter().copied().filter(|to| *to != node).collect::<Vec<NodeId>>() {
            self.send(BlockRef::control(to), &body, &[]);
        }
    }

    /// Tells the home, which is to stop, that nobody uses this client any more (STOP-3).
    pub fn leave_home(&mut self) {
        if let Some(home) = self.home {
            self.send(BlockRef::control(home), &LeaveOrd { reserved: 0 }, &[]);
        }
    }

    /// A node with coordinators to talk to: the home if it can be, else any. A witness has none.
    fn any_data_node(&self) -> Option<NodeId> {
        let up = |n: &NodeId| self.is_up(*n) && !self.silence.is_silent(*n);
        let stays = |n: &NodeId| !self.map.view.is_stopping(*n);
        let in_sync = |n: &NodeId| up(n) && self.map.view.is_in_sync(*n) && stays(n);
        let nearest = |wanted: &dyn Fn(&NodeId) -> bool| {
            let nodes = self.map.view.data_nodes().map(|m| m.node).filter(wanted);
            nodes.min_by_key(|n| self.distance(*n))
        };
        nearest(&in_sync).or_else(|| nearest(&up))
    }

    /// A node to ask about the cluster, one that holds data if it can be.
    fn any_node(&self) -> Option<NodeId> {
        self.any_data_node().or_else(|| self.links.first().copied())
    }

    fn fragment_of(&self, op: &RowOp) -> lats_base::FragmentId {
        // Of a table that is not known yet, the data node says so.
        self.routes.get(&op.table).map_or_else(Default::default, |s| s.fragment_of(&op.key))
    }

    fn ldm_of(&self, node: NodeId, fragment: lats_base::FragmentId) -> BlockRef {
        BlockRef::ldm(node, self.map.view.ldm_instance(fragment))
    }
}

/// Bytes of an operation beside its key, row and program, with the padding behind it.
const OPERATION_BYTES: usize = core::mem::size_of::<Operation>() + 24;

/// The most bytes that operations take in a message.
fn bytes_of(operations: &[RowOp]) -> usize {
    let bytes = |op: &RowOp| OPERATION_BYTES + op.key.len() + op.row.len() + op.program.len();
    operations.iter().map(bytes).sum()
}

/// True if operations fit into one message, wherever they go to.
fn fit(operations: &[RowOp]) -> bool {
    bytes_of(operations) <= BATCH_BYTES_MAX
}

/// Appends an operation in the form in which signals carry it.
fn push_operation(out: &mut Vec<u8>, op: &RowOp, fragment: lats_base::FragmentId, index: usize) {
    let head = Operation {
        table: op.table,
        schema_version: op.schema_version,
        fragment,
        kind: kind_of(op.kind) as u16,
        key_bytes: op.key.len() as u32,
        row_bytes: op.row.len() as u32,
        program_bytes: op.program.len() as u32,
        index: index as u32,
        flags: match op.wait {
            LockWait::Wait => 0,
            LockWait::AtMost(ms) => ms.clamp(1, list::LOCK_WAIT_MS_MAX) << list::LOCK_WAIT_SHIFT,
            LockWait::Refuse => list::LOCK_NOWAIT,
            LockWait::Skip => list::LOCK_SKIP,
        },
    };
    list::push(out, &head, [&op.key, &op.row, &op.program]);
}

fn kind_of(kind: RowOpKind) -> OperationKind {
    use crate::api::LockMode;
    match kind {
        RowOpKind::Read(LockMode::Committed) => OperationKind::Read,
        RowOpKind::Read(LockMode::Shared) => OperationKind::ReadShared,
        RowOpKind::Read(LockMode::Exclusive) => OperationKind::ReadExclusive,
        RowOpKind::Insert => OperationKind::Insert,
        RowOpKind::Update => OperationKind::Update,
        RowOpKind::Write => OperationKind::Write,
        RowOpKind::Delete => OperationKind::Delete,
        RowOpKind::Reindex => OperationKind::Reindex,
    }
}

/// The error that a refusal carries.
fn error_of(code: u32, errno: u32, text: &[u8]) -> StoreError {
    let code = RefCode::from_number(code as u16);
    let sql = (errno != 0 && text.len() >= 5).then(|| {
        let mut sqlstate = *b"HY000";
        sqlstate.copy_from_slice(&text[..5]);
        let message = String::from_utf8_lossy(&text[5..]).into_owned();
        lats_values::SqlError { errno: errno as u16, sqlstate, message }
    });
    StoreError { code, sql }
}

/// Puts an outcome list into its places.
fn place_results(payload: &[u8], results: &mut [Option<RowResult>]) {
    use crate::api::RowOutcome;
    use lats_signals::list::{OUTCOME_HAS_ROW, OUTCOME_WAITED, Outcome, OutcomeKind};
    for (head, [row, _, _]) in list::items::<Outcome>(payload) {
        let outcome = match OutcomeKind::from_number(head.kind) {
            Some(OutcomeKind::Done) => RowOutcome::Done,
            Some(OutcomeKind::Unchanged) => RowOutcome::Unchanged,
            Some(OutcomeKind::NotMatched) => RowOutcome::NotMatched,
            Some(OutcomeKind::Exists) => RowOutcome::Exists,
            Some(OutcomeKind::Skipped) => RowOutcome::Skipped,
            Some(OutcomeKind::Duplicate) => RowOutcome::Duplicate,
            Some(OutcomeKind::Undone) => RowOutcome::Undone,
            Some(OutcomeKind::Missing) | None => RowOutcome::Missing,
        };
        let row = (head.flags & OUTCOME_HAS_ROW != 0).then(|| row.to_vec());
        let waited = head.flags & OUTCOME_WAITED != 0;
        if let Some(place) = results.get_mut(head.index as usize) {
            *place = Some(RowResult { outcome, row, waited });
        }
    }
}

/// The results when all are there.
fn all_results(results: &mut Vec<Option<RowResult>>) -> Option<Vec<RowResult>> {
    if results.iter().any(Option::is_none) {
        return None;
    }
    Some(std::mem::take(results).into_iter().flatten().collect())
}

impl ClientCore {
    fn transaction_id(&self, sequence: u64) -> TransactionId {
        TransactionId { client: self.id, sequence }
    }
}
