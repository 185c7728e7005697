//! The asynchronous client: many concurrent requests over one link per node.

mod clock;
mod scan;
mod statistics;
mod tcp;
mod transaction;

pub use scan::ScanStream;
pub use statistics::KnownTables;
pub use transaction::Transaction;

use crate::{
    api::{Committed, RowOp, RowResult, Scan, SessionCall, StoreError},
    core::{Answer, ClientCore, Ticket},
};
use lats_base::{ClientId, Epoch, Incarnation, Instant, NodeId, Nonce, RefCode, ViewNumber};
use lats_catalog::{Builder, Catalog, Change, ChangeError, ClusterMap};
use lats_signals::{SignalNumber, buffer::parse, proof::Secret};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};
use tokio::sync::{Notify, oneshot};

/// Something that carries signals to one node. What comes back is given to [`Client::feed`], or is taken by the client.
pub trait Wire: Send + Sync {
    /// Sends a whole signal; false if there is no room for it now.
    fn send(&self, signal: &[u8]) -> bool;
    /// Called after a few signals were sent. What has come back meanwhile may be appended to `arrived`, if all that comes over this
    /// wire is taken ([`Self::take`]).
    fn flush(&self, arrived: &mut Vec<u8>);
    /// Appends what has come over a wire whose answers are taken, not fed.
    fn take(&self, _arrived: &mut Vec<u8>) {}
    /// Nothing comes over it any more: end it.
    fn close(&self) {}
}

/// A client of a cluster. Clones share its links.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    state: Mutex<State>,
    catalog: RwLock<Arc<Catalog>>,
    /// The map or the links have changed.
    changed: Notify,
    /// Something waits that time may run out for, and nobody looks at the clock.
    waits: Notify,
    clock: fn() -> Instant,
    random: Mutex<lats_base::prng::Prng>,
    /// Answers that were there at once since one has let others go first.
    answered_in_row: AtomicU32,
    options: ClientOptions,
}

/// How a client finds its cluster.
#[derive(Clone, Debug, Default)]
pub struct ClientOptions {
    /// Addresses of nodes to start from.
    pub addresses: Vec<SocketAddr>,
    /// The cluster it must be, or 0.
    pub cluster_id: u64,
    /// The cluster's secret: without it no node of another process is talked to.
    pub secret: Option<Secret>,
    /// The client also changes definitions, stops nodes, and ends sessions.
    pub admin: bool,
    /// The node whose process this client lives in; it is preferred for everything.
    pub home: Option<NodeId>,
    /// The location domain that this client is in; empty: its home's, or none.
    pub location: String,
    /// Is mixed into the client's id and its other random numbers.
    pub seed: u64,
    /// It reads and writes no rows, and does not follow definitions.
    pub without_catalog: bool,
    /// How long requests wait while the home is cut off from the majority; none: 5 seconds.
    pub cut_off_wait: Option<Duration>,
    /// What is known about tables, which clients of one process may share.
    pub known: KnownTables,
}

struct State {
    core: ClientCore,
    waiters: BTreeMap<Ticket, oneshot::Sender<Answer>>,
    wires: BTreeMap<NodeId, Outlet>,
    /// Addresses that are being connected to.
    connecting: BTreeSet<SocketAddr>,
    /// Why addresses have refused this client since it had a link.
    refused: BTreeMap<SocketAddr, RefCode>,
    /// Somebody looks at the clock from time to time.
    is_timed: bool,
    /// The request that is being made, and its answer if that is there at once.
    asks: Option<Ticket>,
    answer: Option<Answer>,
}

struct Outlet {
    wire: Arc<dyn Wire>,
    /// Signals that had no room.
    backlog: Vec<u8>,
    /// What has come over a wire whose answers are taken; its last signal may be there in part.
    arrived: Vec<u8>,
    /// Signals were sent since it was last flushed.
    is_touched: bool,
    /// Something has arrived that was not looked at.
    has_news: bool,
}

/// Requests are refused while so much waits for one node.
const BACKLOG_BYTES_MAX: usize = 64 << 20;
/// How long [`Client::connect`] waits for an answer.
const CONNECT_PATIENCE: Duration = Duration::from_secs(10);
/// What a wire whose answers are taken keeps for the next ones.
const ARRIVED_KEPT_BYTES: usize = 64 << 10;
/// An answer that is there at once costs a thread some tens of microseconds: others wait for a millisecond at most.
const ANSWERED_IN_ROW_MAX: u32 = 15;
const TICK: Duration = Duration::from_millis(5);
/// Whoever waits for changes looks again after so long even if it hears of none.
const LOOK_AGAIN: Duration = Duration::from_millis(1_000);

impl Client {
    /// A client that connects to the cluster in the background. Must be called within a tokio
    /// runtime. `clock` is a monotonic clock.
    pub fn start(options: ClientOptions, clock: fn() -> Instant) -> Self {
        // Another client's transactions must never have the ids of ours, whatever seed it was given.
        let mut random = lats_base::prng::Prng::new(options.seed ^ from_the_system());
        let id = ClientId::new(random.next_u64() | 1);
        let mut core = ClientCore::new(id, options.home);
        core.set_location(&options.location);
        core.set_suspended(clock::suspended());
        if let Some(wait) = options.cut_off_wait {
            core.wait_when_cut_off(lats_base::Duration::from_nanos(wait.as_nanos() as u64));
        }
        let state = State {
            core,
            waiters: BTreeMap::new(),
            wires: BTreeMap::new(),
            connecting: BTreeSet::new(),
            refused: BTreeMap::new(),
            is_timed: false,
            asks: None,
            answer: None,
        };
        let inner = Inner {
            state: Mutex::new(state),
            catalog: RwLock::new(Arc::new(Catalog::default())),
            changed: Notify::new(),
            waits: Notify::new(),
            clock,
            random: Mutex::new(random),
            answered_in_row: AtomicU32::new(0),
            options,
        };
        let client = Self { inner: Arc::new(inner) };
        tokio::spawn(client.clone().keep_time());
        tokio::spawn(client.clone().keep_links());
        if !client.inner.options.without_catalog {
            tokio::spawn(client.clone().keep_catalog());
        }
        client
    }

    /// A client of the cluster to which the nodes at these addresses belong, ready for work; `secret` is what the file `secret` in
    /// the directory of `latsdb start` has. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// [`RefCode::NotServing`] if none of them answers within ten seconds, [`RefCode::SecretWrong`] if they have another secret.
    pub async fn connect(addresses: Vec<SocketAddr>, secret: Secret) -> Result<Self, StoreError> {
        let secret = Some(secret);
        let options = ClientOptions { addresses, secret, ..ClientOptions::default() };
        let client = Self::start(options, clock::now);
        client.ready(CONNECT_PATIENCE).await?;
        Ok(client)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere does not make the state wrong: each change of it is complete.
        let mut state = self.inner.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.core.set_time((self.inner.clock)());
        state
    }

    /// Waits until the client knows the cluster's map and catalog, or gives up.
    ///
    /// # Errors
    /// If that takes longer than `patience`: the code with which a node has refused the client, or [`RefCode::NotServing`].
    /// Sooner with [`RefCode::SecretWrong`], if each address says so: waiting does not help.
    pub async fn ready(&self, patience: Duration) -> Result<(), StoreError> {
        let wait = async {
            loop {
                if self.state().core.is_ready() && self.catalog().version > 0 {
                    return Ok(());
                }
                if self.is_locked_out() {
                    return Err(RefCode::SecretWrong.into());
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        match tokio::time::timeout(patience, wait).await {
            Ok(done) => done,
            Err(_) => Err(self.refused().unwrap_or(RefCode::NotServing).into()),
        }
    }

    /// The node that this client lives in, if it has been cut off from the majority for longer than requests wait.
    pub fn cut_off(&self) -> Option<NodeId> {
        self.state().core.cut_off()
    }

    /// True if the node that this client lives in does not say that it is cut off.
    pub fn home_serves(&self) -> bool {
        self.state().core.home_serves()
    }

    /// Why no node talks to this client.
    fn refused(&self) -> Option<RefCode> {
        let state = self.state();
        state.refused.values().next().copied().filter(|_| state.wires.is_empty())
    }

    /// True if every address finds the secret wrong. One alone may be somebody else by now, and proves nothing.
    fn is_locked_out(&self) -> bool {
        let (state, addresses) = (self.state(), &self.inner.options.addresses);
        let refuses = |address| state.refused.get(address) == Some(&RefCode::SecretWrong);
        state.wires.is_empty() && !addresses.is_empty() && addresses.iter().all(refuses)
    }

    /// The newest catalog that this client knows.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.inner.catalog.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The newest map that this client knows.
    pub fn map(&self) -> ClusterMap {
        self.state().core.map().clone()
    }

    /// Whose death ends what this client is building.
    pub fn builder(&self) -> Builder {
        self.with(|core| core.builder())
    }

    /// A random number.
    pub fn random(&self) -> u64 {
        self.inner.random.lock().unwrap_or_else(PoisonError::into_inner).next_u64()
    }

    /// Runs `work` on the state machine and sends what it wants sent.
    fn with<R>(&self, work: impl FnOnce(&mut ClientCore) -> R) -> R {
        let mut state = self.state();
        let result = work(&mut state.core);
        self.pump(&mut state);
        self.time(&mut state);
        result
    }

    /// Makes a request and returns where its answer is, or will come.
    fn request(&self, work: impl FnOnce(&mut ClientCore) -> Ticket) -> Pending {
        let mut state = self.state();
        let crowded = state.wires.values().any(|w| w.backlog.len() > BACKLOG_BYTES_MAX);
        if crowded {
            return Pending::answered(Answer::Failed(RefCode::Overloaded.into()));
        }
        let ticket = work(&mut state.core);
        // What an earlier request has left, if it has panicked, is nobody's.
        (state.asks, state.answer) = (Some(ticket), None);
        self.pump(&mut state);
        state.asks = None;
        let pending = match state.answer.take() {
            Some(answer) => Pending::answered(answer),
            None => {
                let (sender, receiver) = oneshot::channel();
                state.waiters.insert(ticket, sender);
                Pending::Waits(receiver)
            }
        };
        self.time(&mut state);
        pending
    }

    /// Has somebody look at the clock if something waits. A client that waits for nothing wakes nobody.
    fn time(&self, state: &mut State) {
        if !state.is_timed && state.waits() {
            state.is_timed = true;
            self.inner.waits.notify_one();
        }
    }

    /// The answer; who gives up waiting for it may wait again. Now and then one that was there at once lets others go first: its task
    /// might meet nothing that it has to wait for.
    async fn answer_of(&self, pending: &mut Pending) -> Answer {
        let lost = || Answer::Failed(RefCode::NotServing.into());
        match pending {
            Pending::Answered(answer) => {
                let in_row = &self.inner.answered_in_row;
                if in_row.fetch_add(1, Ordering::Relaxed) >= ANSWERED_IN_ROW_MAX {
                    in_row.store(0, Ordering::Relaxed);
                    tokio::task::yield_now().await;
                }
                answer.take().unwrap_or_else(lost)
            }
            Pending::Waits(receiver) => receiver.await.unwrap_or_else(|_| lost()),
        }
    }

    async fn ask(&self, work: impl FnOnce(&mut ClientCore) -> Ticket) -> Answer {
        self.answer_of(&mut self.request(work)).await
    }

    /// Committed reads outside any transaction, at the nearest replicas. If commits wait for disks by the cluster's default
    /// ([`Self::commits_to_disk`]), so does the answer, until all that it shows is there (READ-7).
    ///
    /// # Errors
    /// As the data nodes or the routing refuse; as [`Self::reads_durable`].
    pub async fn read(&self, operations: Vec<RowOp>) -> Result<Vec<RowResult>, StoreError> {
        let results = self.read_replicated(operations).await?;
        if self.commits_to_disk() {
            self.reads_durable().await?;
        }
        Ok(results)
    }

    /// As [`Self::read`]; but it shows what is in the memory of all replicas, and waits for no disk.
    ///
    /// # Errors
    /// As the data nodes or the routing refuse.
    pub async fn read_replicated(
        &self,
        operations: Vec<RowOp>,
    ) -> Result<Vec<RowResult>, StoreError> {
        match self.ask(|core| core.read(operations)).await {
            Answer::Rows { results, .. } => Ok(results),
            other => Err(unexpected(other)),
        }
    }

    /// Begins a transaction. It costs nothing until its first operation. Its commit waits for disks if that is the cluster's
    /// default ([`Self::commits_to_disk`]).
    pub fn begin(&self) -> Transaction {
        let sequence = self.with(ClientCore::begin);
        Transaction::new(self.clone(), sequence)
    }

    /// As [`Self::begin`]; but its commit waits for the memory of all replicas only.
    pub fn begin_replicated(&self) -> Transaction {
        let sequence = self.with(|core| {
            let sequence = core.begin();
            core.commit_to_disk(sequence, false);
            sequence
        });
        Transaction::new(self.clone(), sequence)
    }

    /// True if commits wait for disks, unless a transaction says otherwise.
    pub fn commits_to_disk(&self) -> bool {
        self.state().core.map().view.config.to_disk
    }

    /// A scan outside any transaction; it waits for disks as [`Self::read`] does.
    pub fn scan(&self, scan: Scan) -> ScanStream {
        ScanStream::new(self.clone(), scan, None, self.commits_to_disk())
    }

    /// As [`Self::scan`]; but it shows what is in the memory of all replicas, and waits for no disk.
    pub fn scan_replicated(&self, scan: Scan) -> ScanStream {
        ScanStream::new(self.clone(), scan, None, false)
    }

    /// Waits until all that this client has read by now without locks, in whatever transaction or outside, is on the disks of all
    /// replicas (READ-7).
    ///
    /// # Errors
    /// [`RefCode::ReadNotOnDisk`] if that takes very long, or if it was lost with all replicas; [`RefCode::NothingKept`].
    pub async fn reads_durable(&self) -> Result<(), StoreError> {
        let Some(shown) = self.state().core.shown() else { return Ok(()) };
        match self.durable(shown).await {
            Err(error) if matches!(error.code, RefCode::NotOnDisk | RefCode::MadeVoid) => {
                Err(RefCode::ReadNotOnDisk.into())
            }
            ended => ended,
        }
    }

    /// Changes the catalog; done when every serving node has the change, and this client too.
    ///
    /// # Errors
    /// The outer error when the cluster could not be asked; the inner when it refuses.
    pub async fn change(&self, change: Change) -> Result<Result<(), ChangeError>, StoreError> {
        let number = self.random();
        match self.ask(|core| core.change(number, change)).await {
            Answer::Changed(Ok(_)) => {
                // It is made, whether or not the catalog can be read now: an error would have it made again.
                let _ = self.fetch_catalog().await;
                Ok(Ok(()))
            }
            Answer::Changed(Err(error)) => Ok(Err(error)),
            other => Err(unexpected(other)),
        }
    }

    /// Reads the catalog anew.
    ///
    /// # Errors
    /// When no node answers.
    pub async fn fetch_catalog(&self) -> Result<(), StoreError> {
        match self.ask(ClientCore::fetch_catalog).await {
            Answer::Catalog(catalog) => {
                let mut known = self.inner.catalog.write().unwrap_or_else(PoisonError::into_inner);
                if catalog.version > known.version {
                    *known = catalog;
                }
                Ok(())
            }
            other => Err(unexpected(other)),
        }
    }

    /// The cluster's status record, encoded (see `lats_control::Status`).
    ///
    /// # Errors
    /// When no node answers.
    pub async fn status(&self) -> Result<Vec<u8>, StoreError> {
        match self.ask(ClientCore::fetch_status).await {
            Answer::Status(bytes) => Ok(bytes),
            other => Err(unexpected(other)),
        }
    }

    /// The same, as one node knows it.
    ///
    /// # Errors
    /// When the node does not answer.
    pub async fn status_of(&self, node: NodeId) -> Result<Vec<u8>, StoreError> {
        match self.ask(|core| core.fetch_status_of(node)).await {
            Answer::Status(bytes) => Ok(bytes),
            other => Err(unexpected(other)),
        }
    }

    /// What the threads of a node have done, encoded (see `lats_runtime::NodeFigures`).
    ///
    /// # Errors
    /// When the node does not answer.
    pub async fn figures(&self, node: NodeId) -> Result<Vec<u8>, StoreError> {
        match self.ask(|core| core.fetch_figures(node)).await {
            Answer::Status(bytes) => Ok(bytes),
            other => Err(unexpected(other)),
        }
    }

    /// Has a node do something with a session of its own: whether there is such a session, and the list if it was asked for.
    ///
    /// # Errors
    /// When the node does not answer.
    pub async fn sessions(
        &self,
        node: NodeId,
        session: u32,
        call: SessionCall,
    ) -> Result<(bool, Vec<u8>), StoreError> {
        match self.ask(|core| core.call_sessions(node, session, call)).await {
            Answer::Sessions { found, list } => Ok((found, list)),
            other => Err(unexpected(other)),
        }
    }

    /// Asks for a node to stop; whether it does is to be seen in the map or the status.
    pub fn stop_node(&self, node: NodeId, restart: bool) {
        self.tell(|core| core.stop_node(node, restart));
    }

    /// Says that a node which the cluster only finds silent is dead for certain: its rows may be given up if nobody else
    /// has them, or nothing is done then. Whether the cluster believes it is to be seen in the map or the status.
    pub fn declare_dead(&self, node: NodeId, incarnation: Incarnation, give_up_rows: bool) {
        self.tell(|core| core.declare_dead(node, incarnation, give_up_rows));
    }

    /// True if there is a link to any node.
    pub fn has_links(&self) -> bool {
        !self.state().wires.is_empty()
    }

    /// Tells all nodes that there are links to that a process has ended (DEATH-1).
    pub fn certify(&self, node: NodeId, incarnation: Incarnation, nonce: Nonce) {
        self.tell(|core| core.certify(node, incarnation, nonce));
    }

    /// Tells the own node, which is to stop, that nobody uses this client any more.
    pub fn leave_home(&self) {
        self.tell(ClientCore::leave_home);
    }

    fn tell(&self, what: impl FnOnce(&mut ClientCore)) {
        let mut state = self.state();
        what(&mut state.core);
        self.pump(&mut state);
    }

    /// The newest complete epoch: what a scan as of it reads is consistent.
    ///
    /// # Errors
    /// When no node answers.
    pub async fn complete_epoch(&self) -> Result<Epoch, StoreError> {
        match self.ask(ClientCore::fetch_epochs).await {
            Answer::Epochs { complete, .. } => Ok(complete),
            other => Err(unexpected(other)),
        }
    }

    /// Waits until this transaction, and everything that was committed up to its epoch, is on the disks of all replicas.
    ///
    /// # Errors
    /// [`RefCode::NotOnDisk`] if that takes very long, [`RefCode::NothingKept`] if nothing is kept on disk, [`RefCode::MadeVoid`] if
    /// all replicas have died meanwhile, and it was lost with them.
    pub async fn durable(&self, committed: Committed) -> Result<(), StoreError> {
        match self.ask(|core| core.reach_disks(committed)).await {
            Answer::Rows { .. } => Ok(()),
            other => Err(unexpected(other)),
        }
    }

    /// As if something were committed now: it is durable when everything is that is committed by now, by whomever.
    ///
    /// # Errors
    /// When no node answers.
    pub async fn committed_by_now(&self) -> Result<Committed, StoreError> {
        match self.ask(ClientCore::fetch_epochs).await {
            // Other nodes may have heard of the next one.
            Answer::Epochs { current, restarts, .. } => {
                let epoch = Epoch::new(current.get() + 1);
                Ok(Committed { epoch, restarts, changes: None })
            }
            other => Err(unexpected(other)),
        }
    }

    /// Waits until everything that is committed by now, by whomever, is on the disks of all replicas, and with it the definitions
    /// (DURABLE-5).
    ///
    /// # Errors
    /// As [`Self::durable`], and when no node answers; [`RefCode::NotOnDisk`] if the cluster is restarted meanwhile, for what was lost
    /// then depends on what it was.
    pub async fn all_durable(&self) -> Result<(), StoreError> {
        match self.durable(self.committed_by_now().await?).await {
            Err(error) if error.code == RefCode::MadeVoid => Err(RefCode::NotOnDisk.into()),
            ended => ended,
        }
    }

    /// A link to a node is up; false if there is one already, which stays.
    pub fn attach(&self, node: NodeId, wire: Arc<dyn Wire>) -> bool {
        let mut state = self.state();
        if state.wires.contains_key(&node) {
            return false;
        }
        state.wires.insert(node, Outlet::new(wire));
        state.refused.clear();
        state.core.link_up(node);
        self.pump(&mut state);
        self.time(&mut state);
        drop(state);
        self.inner.changed.notify_waiters();
        true
    }

    /// This link to a node is gone. (Another one may have taken its place.)
    pub fn detach(&self, node: NodeId, wire: &Arc<dyn Wire>) {
        let mut state = self.state();
        if state.wires.get(&node).is_some_and(|outlet| Arc::ptr_eq(&outlet.wire, wire)) {
            state.wires.remove(&node);
            state.core.set_suspended(clock::suspended());
            state.core.link_down(node);
            self.pump(&mut state);
            self.time(&mut state);
            drop(state);
            self.inner.changed.notify_waiters();
        }
    }

    /// Ends a link that brings nothing any more.
    fn close(&self, node: NodeId) {
        let wire = self.state().wires.get(&node).map(|outlet| outlet.wire.clone());
        if let Some(wire) = wire {
            self.detach(node, &wire);
            wire.close();
        }
    }

    fn is_attached(&self, node: NodeId) -> bool {
        self.state().wires.contains_key(&node)
    }

    /// Takes whole signals that have come from a node; how many bytes they were.
    ///
    /// # Errors
    /// [`RefCode::RequestMalformed`] if these bytes are no signals: close the link.
    pub fn feed(&self, bytes: &[u8]) -> Result<usize, RefCode> {
        let mut state = self.state();
        let newest = state.newest();
        let used = state.hear(bytes)?;
        self.pump(&mut state);
        self.tell_if_newer(&state, newest);
        Ok(used)
    }

    /// Takes what has come over a wire whose answers are taken ([`Wire::take`]), of which nobody is told but by this.
    pub fn take_from(&self, node: NodeId) {
        let mut state = self.state();
        let newest = state.newest();
        if let Some(outlet) = state.wires.get_mut(&node) {
            outlet.wire.take(&mut outlet.arrived);
            state.hear_arrived(node);
        }
        self.pump(&mut state);
        self.tell_if_newer(&state, newest);
    }

    /// Sends what is to be sent, takes what is answered meanwhile, and hands that out. No answer leads to more than one request.
    fn pump(&self, state: &mut State) {
        let newest = state.newest();
        loop {
            let took = state.send_all();
            state.hand_out();
            if !took || state.core.outgoing().is_empty() {
                break;
            }
        }
        self.tell_if_newer(state, newest);
    }

    /// Wakes those who wait for another map, if there is one.
    fn tell_if_newer(&self, state: &State, newest: (ViewNumber, u64)) {
        if state.newest() != newest {
            self.inner.changed.notify_waiters();
        }
    }

    async fn keep_time(self) {
        loop {
            self.inner.waits.notified().await;
            loop {
                tokio::time::sleep(TICK).await;
                let mut state = self.state();
                if !state.waits() {
                    state.is_timed = false;
                    break;
                }
                let now = (self.inner.clock)();
                state.core.set_suspended(clock::suspended());
                state.core.tick(now);
                self.pump(&mut state);
                let dead = core::iter::from_fn(|| state.core.next_to_close()).collect::<Vec<_>>();
                drop(state);
                dead.into_iter().for_each(|node| self.close(node));
            }
        }
    }

    /// Reads the catalog whenever the cluster has a newer one.
    async fn keep_catalog(self) {
        loop {
            let changed = self.inner.changed.notified();
            let newest = self.state().core.map().catalog_version;
            if newest > self.catalog().version && self.fetch_catalog().await.is_ok() {
                continue;
            }
            let _ = tokio::time::timeout(LOOK_AGAIN, changed).await;
        }
    }
}

/// A number that no other process has: the standard library draws the keys of its hashers from the operating system.
fn from_the_system() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}

impl State {
    /// Time may run out for something.
    fn waits(&self) -> bool {
        self.core.pending() > 0 || self.wires.values().any(|w| !w.backlog.is_empty())
    }

    /// What tells a newer map from an older one.
    fn newest(&self) -> (ViewNumber, u64) {
        (self.core.map().view.number, self.core.map().catalog_version)
    }

    /// Whole signals that have come; how many bytes they were.
    fn hear(&mut self, bytes: &[u8]) -> Result<usize, RefCode> {
        let mut used = 0;
        loop {
            match parse(&bytes[used..]) {
                Ok(Some(signal)) => {
                    if signal.number() == Some(SignalNumber::OutcomeConf) {
                        self.core.set_suspended(clock::suspended());
                    }
                    self.core.receive(&signal);
                    used += signal.bytes().len();
                }
                Ok(None) => return Ok(used),
                Err(_) => return Err(RefCode::RequestMalformed),
            }
        }
    }

    /// Takes what lies at the outlet to a node; true if something did.
    fn hear_arrived(&mut self, node: NodeId) -> bool {
        let Some(outlet) = self.wires.get_mut(&node) else { return false };
        if outlet.arrived.is_empty() {
            return false;
        }
        let mut arrived = std::mem::take(&mut outlet.arrived);
        // Only the own process answers like this: what cannot be read there is a defect of this program.
        let used = self.hear(&arrived).unwrap_or_else(|code| {
            tracing::error!(%code, %node, "a signal from the own process cannot be read");
            arrived.len()
        });
        arrived.drain(..used);
        if arrived.is_empty() {
            arrived.shrink_to(ARRIVED_KEPT_BYTES);
        }
        if let Some(outlet) = self.wires.get_mut(&node) {
            outlet.arrived = arrived;
        }
        used > 0
    }

    /// Sends what is to be sent; true if answers have come meanwhile.
    fn send_all(&mut self) -> bool {
        let mut outgoing = std::mem::take(self.core.outgoing());
        while let Some(signal) = outgoing.pop() {
            let Some(outlet) = self.wires.get_mut(&signal.header.receiver.node) else { continue };
            if !outlet.backlog.is_empty() || !outlet.wire.send(signal.bytes()) {
                outlet.backlog.extend_from_slice(signal.bytes());
            }
            outlet.is_touched = true;
        }
        outgoing.compact();
        *self.core.outgoing() = outgoing;
        for outlet in self.wires.values_mut() {
            if outlet.push_backlog() | std::mem::take(&mut outlet.is_touched) {
                let before = outlet.arrived.len();
                outlet.wire.flush(&mut outlet.arrived);
                outlet.has_news = outlet.arrived.len() > before;
            }
        }
        let mut took = false;
        let news = |(node, outlet): (&NodeId, &mut Outlet)| {
            std::mem::take(&mut outlet.has_news).then_some(*node)
        };
        while let Some(node) = self.wires.iter_mut().find_map(news) {
            took |= self.hear_arrived(node);
        }
        took
    }

    /// Hands out what was answered.
    fn hand_out(&mut self) {
        while let Some((ticket, answer)) = self.core.next_answer() {
            if self.asks == Some(ticket) {
                self.answer = Some(answer);
            } else if let Some(waiter) = self.waiters.remove(&ticket) {
                // Whoever asked may have gone.
                let _ = waiter.send(answer);
            }
        }
    }
}

/// Where the answer to a request is.
enum Pending {
    /// It was there when the request returned; none once it was taken.
    Answered(Option<Answer>),
    /// It will come.
    Waits(oneshot::Receiver<Answer>),
}

impl Pending {
    fn answered(answer: Answer) -> Self {
        Self::Answered(Some(answer))
    }
}

impl Outlet {
    fn new(wire: Arc<dyn Wire>) -> Self {
        let (backlog, arrived) = (Vec::new(), Vec::new());
        Self { wire, backlog, arrived, is_touched: false, has_news: false }
    }

    fn push_backlog(&mut self) -> bool {
        let mut sent = 0;
        while let Ok(Some(signal)) = parse(&self.backlog[sent..]) {
            if !self.wire.send(signal.bytes()) {
                break;
            }
            sent += signal.bytes().len();
        }
        self.backlog.drain(..sent);
        sent > 0
    }
}

fn unexpected(answer: Answer) -> StoreError {
    match answer {
        Answer::Failed(error) => error,
        _ => RefCode::Unrecognised.into(),
    }
}
