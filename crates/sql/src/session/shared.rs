//! What the sessions of a process share.

use super::cache::PlanCache;
use super::memory::{MemoryFigure, Meter, NodeMemory};
use crate::sessions::Sessions;
use crate::store::Store;
use crate::variables::Variables;
use lats_base::{TableId, limits::CLIENTS_PER_NODE_MAX};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What the sessions of a process share.
pub struct Shared<S> {
    /// The cluster.
    pub store: S,
    /// Microseconds since 1970.
    pub now_micros: fn() -> i64,
    /// Nanoseconds, of a clock that only goes forward.
    pub(crate) clock: fn() -> u64,
    /// The open sessions of the process.
    sessions: Arc<Sessions>,
    /// What all threads of the process have in common.
    common: Arc<Common>,
    memory: Arc<NodeMemory>,
}

#[derive(Debug)]
struct Common {
    globals: Mutex<Variables>,
    places: Arc<Semaphore>,
    places_max: AtomicUsize,
    sequences: Mutex<BTreeMap<TableId, crate::exec::sequence::Cached>>,
    watches: Arc<Semaphore>,
    planners: Arc<Semaphore>,
    plans: PlanCache,
}

/// Indexes that are watched at a time because their making has failed: each for up to an hour.
const WATCHES_MAX: usize = 64;
/// Long statements that are read and planned at a time: they share processors with all others.
pub(super) const PLANNERS_MAX: usize = 2;

impl<S: Store> Shared<S> {
    /// For the sessions of a process.
    pub fn new(store: S, now_micros: fn() -> i64) -> Self {
        let common = Common {
            globals: Mutex::new(Variables::default()),
            places: Arc::new(Semaphore::new(CLIENTS_PER_NODE_MAX)),
            places_max: AtomicUsize::new(CLIENTS_PER_NODE_MAX),
            sequences: Mutex::new(BTreeMap::new()),
            watches: Arc::new(Semaphore::new(WATCHES_MAX)),
            planners: Arc::new(Semaphore::new(PLANNERS_MAX)),
            plans: PlanCache::default(),
        };
        let sessions = Sessions::of_node(0);
        let (common, memory) = (Arc::new(common), Arc::default());
        Self { store, now_micros, clock: || 0, sessions, common, memory }
    }

    /// The same with these open sessions, which a node knows of.
    #[must_use]
    pub fn with_sessions(self, sessions: Arc<Sessions>) -> Self {
        Self { sessions, ..self }
    }

    /// The same for sessions of another thread, which has a store of its own.
    #[must_use]
    pub fn beside(&self, store: S) -> Self {
        let (now_micros, clock) = (self.now_micros, self.clock);
        let (sessions, common) = (self.sessions.clone(), self.common.clone());
        let memory = Arc::clone(&self.memory);
        Self { store, now_micros, clock, sessions, common, memory }
    }

    /// The same with a clock for EXPLAIN ANALYZE: nanoseconds that only go forward.
    #[must_use]
    pub fn measured_by(self, clock: fn() -> u64) -> Self {
        Self { clock, ..self }
    }

    /// The same with so many bytes of memory for the process, and how it is measured; to be said before there are clients.
    #[must_use]
    pub fn with_memory(mut self, bytes_max: usize, meter: Meter) -> Self {
        self.memory = Arc::new(NodeMemory::new(bytes_max, meter));
        self
    }

    /// What people see of its memory.
    pub fn memory_figures(&self) -> impl Fn() -> Vec<MemoryFigure> + Send + Sync + 'static {
        let memory = Arc::clone(&self.memory);
        move || memory.figures()
    }

    /// What statements of this process may hold together.
    pub(crate) fn memory(&self) -> &Arc<NodeMemory> {
        &self.memory
    }

    /// The same with places for so many clients at most; to be said before there are any.
    #[must_use]
    pub fn with_places(self, count: usize) -> Self {
        let max = &self.common.places_max;
        let less = max.load(Ordering::Relaxed).saturating_sub(count);
        let count = max.load(Ordering::Relaxed) - self.common.places.forget_permits(less);
        max.store(count, Ordering::Relaxed);
        self.globals().describe_places(count);
        self
    }

    /// Places for clients, taken or not.
    pub(crate) fn places_max(&self) -> usize {
        self.common.places_max.load(Ordering::Relaxed)
    }

    /// The same for a server on this port.
    #[must_use]
    pub fn on_port(self, port: u16) -> Self {
        self.globals().describe(port);
        self
    }

    /// What a session that begins now has.
    pub(super) fn defaults(&self) -> Variables {
        let mut variables = self.globals().clone();
        if self.store.commits_to_disk() {
            variables.wait_for_disks_by_default();
        }
        variables
    }

    /// Plans that sessions have made.
    pub(super) fn plans(&self) -> &PlanCache {
        &self.common.plans
    }

    /// Places for connections.
    pub(crate) fn places(&self) -> &Arc<Semaphore> {
        &self.common.places
    }

    /// A place for a task that watches an index whose making has failed, if there is one.
    pub(crate) fn watch(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.common.watches).try_acquire_owned().ok()
    }

    /// Places for long statements that are planned.
    pub(super) fn planners(&self) -> &Arc<Semaphore> {
        &self.common.planners
    }

    /// The open sessions of the process.
    pub(crate) fn sessions(&self) -> &Arc<Sessions> {
        &self.sessions
    }

    /// Cached ranges of AUTO_INCREMENT values.
    pub(crate) fn sequences(
        &self,
    ) -> MutexGuard<'_, BTreeMap<TableId, crate::exec::sequence::Cached>> {
        self.common.sequences.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn globals(&self) -> MutexGuard<'_, Variables> {
        self.common.globals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
