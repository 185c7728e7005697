//! A data manager that others read beside its own thread: the memory that query threads share (QUERY-1).
//!
//! Its owner changes it alone; whoever only reads may do so together with others. A reader sees it as it is between
//! two signals of its owner's, so it could have been one of them. Checked with loom:
//! `cargo test -p lats-node --features loom` (see docs/testing.md).

#[cfg(feature = "loom")]
use loom::sync::{
    Arc, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard,
    atomic::{AtomicBool, AtomicU64, Ordering},
};
#[cfg(not(feature = "loom"))]
use std::sync::{
    Arc, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard,
    atomic::{AtomicBool, AtomicU64, Ordering},
};
use std::{any::Any, sync::PoisonError};

use lats_kernel::{Block, Ctx, Executor, Fault, TimerToken};
use lats_ldm::{Ldm, Left, OpenScan, Reader};
use lats_signals::{BlockKind, BlockRef, Signal, SignalNumber, buffer::Upcoming};

/// Something that one changes and many read.
pub(crate) struct Shared<T>(Arc<RwLock<T>>);

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Shared<T> {
    pub(crate) fn new(inside: T) -> Self {
        Self(Arc::new(RwLock::new(inside)))
    }

    /// A panic inside ends the process: nobody meets what it leaves.
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// None while somebody changes it.
    pub(crate) fn try_read(&self) -> Option<RwLockReadGuard<'_, T>> {
        self.0.try_read().ok()
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the owner is to hear of those who read beside it.
pub(crate) struct Inbox<T = OpenScan>(Arc<Heard<T>>);

struct Heard<T> {
    /// Rows that were read.
    reads: AtomicU64,
    /// Scans that were begun, for the owner to go on with.
    scans: Mutex<Vec<T>>,
    /// There is one.
    some: AtomicBool,
}

impl<T> Clone for Inbox<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Inbox<T> {
    pub(crate) fn new() -> Self {
        let (reads, some) = (AtomicU64::new(0), AtomicBool::new(false));
        Self(Arc::new(Heard { reads, scans: Mutex::new(Vec::new()), some }))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<T>> {
        self.0.scans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, scan: T) {
        self.lock().push(scan);
        self.0.some.store(true, Ordering::Release);
    }

    /// What came before any signal that the owner has got.
    fn take(&self) -> Vec<T> {
        // Mostly there is none: that is only looked at.
        if !self.0.some.load(Ordering::Acquire) {
            return Vec::new();
        }
        self.0.some.store(false, Ordering::Relaxed);
        core::mem::take(&mut *self.lock())
    }

    fn take_reads(&self) -> u64 {
        match self.0.reads.load(Ordering::Relaxed) {
            0 => 0,
            _ => self.0.reads.swap(0, Ordering::Relaxed),
        }
    }
}

/// A data manager in its own thread. Nobody else changes it.
pub(crate) struct Owner {
    pub(crate) ldm: Shared<Ldm>,
    pub(crate) begun: Inbox,
    pub(crate) reader: Reader,
}

/// One who reads beside it, in another thread.
pub(crate) struct Query {
    pub(crate) ldm: Shared<Ldm>,
    pub(crate) begun: Inbox,
    pub(crate) instance: u32,
    pub(crate) reader: Reader,
}

impl Owner {
    /// To change it alone, with all that others have begun.
    fn alone(&mut self) -> RwLockWriteGuard<'_, Ldm> {
        let mut ldm = self.ldm.write();
        let beside = self.begun.take_reads();
        ldm.note_reads(beside + self.reader.take_reads());
        self.begun.take().into_iter().for_each(|scan| ldm.take_over(scan));
        ldm
    }
}

impl Query {
    /// True if it is served, or begun. The owner does what it can better do: nobody waits for it here, with a time
    /// and a lease that grow old (VIEW-3).
    fn serve(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) -> bool {
        let busy = ctx.fault(Fault::OwnerIsBusy);
        let Some(ldm) = self.ldm.try_read().filter(|_| !busy) else { return false };
        let left = ldm.serve_beside(signal, &mut self.reader, ctx);
        drop(ldm);
        self.begun.0.reads.fetch_add(self.reader.take_reads(), Ordering::Relaxed);
        match left {
            Left::Nothing => true,
            Left::All => false,
            Left::Rest(_) if ctx.fault(Fault::BugForgetBegunScan) => true,
            Left::Rest(scan) => {
                scan.wake_owner(self.instance, ctx);
                self.begun.put(scan);
                true
            }
        }
    }
}

impl Block for Owner {
    fn withdraw(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) -> bool {
        lats_ldm::lease::withdraw(signal, ctx)
    }

    fn handle(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        // By key others may read at the same time.
        if signal.number() == Some(SignalNumber::ReadReq) {
            self.ldm.read().serve_beside(signal, &mut self.reader, ctx);
        } else {
            self.alone().handle(signal, ctx);
        }
    }

    fn on_timer(&mut self, token: TimerToken, ctx: &mut Ctx<'_>) {
        self.alone().on_timer(token, ctx);
    }

    fn on_idle(&mut self, ctx: &mut Ctx<'_>) {
        self.alone().on_idle(ctx);
    }

    fn look_ahead(&self, upcoming: Upcoming<'_>) {
        self.ldm.read().look_ahead(upcoming);
    }

    fn leaks(&self) -> Option<String> {
        self.ldm.read().leaks()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Block for Query {
    fn withdraw(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) -> bool {
        lats_ldm::lease::withdraw(signal, ctx)
    }

    fn handle(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        // What a client that is gone had begun here is with the owner by now (QUERY-2).
        let gone = signal.number() == Some(SignalNumber::ClientGoneRep);
        if gone || (Ldm::may_serve_beside(signal) && !self.serve(signal, ctx)) {
            // Nobody passes it on to us again (QUERY-3).
            ctx.forward(BlockRef::ldm(ctx.node(), self.instance), signal);
        }
    }

    fn on_timer(&mut self, _: TimerToken, _: &mut Ctx<'_>) {}

    fn on_idle(&mut self, _: &mut Ctx<'_>) {}

    fn look_ahead(&self, upcoming: Upcoming<'_>) {
        let mine = |signal: Signal<'_>| {
            let to = signal.header.receiver;
            to.kind() == Some(BlockKind::Query) && to.instance == self.instance
        };
        if upcoming.clone().any(mine)
            && let Some(ldm) = self.ldm.try_read()
        {
            ldm.look_ahead(upcoming);
        }
    }

    fn leaks(&self) -> Option<String> {
        None
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A data manager, for checkers.
pub enum LdmView<'a> {
    /// Nobody shares it.
    Own(&'a Ldm),
    /// Others read it, too.
    Shared(RwLockReadGuard<'a, Ldm>),
}

impl core::ops::Deref for LdmView<'_> {
    type Target = Ldm;

    fn deref(&self) -> &Ldm {
        match self {
            Self::Own(ldm) => ldm,
            Self::Shared(guard) => guard,
        }
    }
}

/// The data manager with this instance, if it lives in this executor.
pub fn ldm_in(executor: &Executor, instance: u32) -> Option<LdmView<'_>> {
    let block = executor.block(BlockKind::Ldm, instance)?.as_any();
    match block.downcast_ref::<Owner>() {
        Some(owner) => Some(LdmView::Shared(owner.ldm.read())),
        None => block.downcast_ref::<Ldm>().map(LdmView::Own),
    }
}

/// Bytes of rows and indexes of the data managers in an executor.
pub fn row_bytes(executor: &Executor) -> usize {
    // No machine has threads for more.
    const INSTANCES: u32 = 64;
    let here = (0..INSTANCES).filter_map(|instance| ldm_in(executor, instance));
    here.map(|ldm| ldm.memory_bytes()).sum()
}

#[cfg(all(test, feature = "loom"))]
mod every_interleaving {
    use super::Shared;
    use loom::{
        sync::{
            Arc,
            atomic::{AtomicU64, Ordering},
        },
        thread,
    };

    /// A row and its index entry, and the newest change that a client was told of.
    #[derive(Clone)]
    struct Model {
        rows: Shared<(u64, u64)>,
        told: Arc<AtomicU64>,
    }

    impl Model {
        /// A reader sees all of a change or nothing of it, and no less than what anybody was told of before.
        fn read(&self) {
            let told = self.told.load(Ordering::Acquire);
            let rows = self.rows.read();
            assert_eq!(rows.0, rows.1);
            assert!(rows.0 >= told);
        }

        fn change(&self, to: u64) {
            let mut rows = self.rows.write();
            rows.0 = to;
            rows.1 = to;
            drop(rows);
            self.told.store(to, Ordering::Release);
        }
    }

    #[test]
    fn readers_see_whole_changes_and_all_that_was_answered() {
        let mut limits = loom::model::Builder::new();
        limits.preemption_bound = Some(3);
        limits.check(|| {
            let model = Model { rows: Shared::new((0, 0)), told: Arc::new(AtomicU64::new(0)) };
            let readers: Vec<_> = (0..2)
                .map(|_| {
                    let model = model.clone();
                    thread::spawn(move || {
                        model.read();
                        model.read();
                    })
                })
                .collect();
            model.change(1);
            model.change(2);
            readers.into_iter().for_each(|reader| reader.join().unwrap());
            model.read();
        });
    }

    /// A reader begins a scan and tells the owner by a signal, twice; with each the owner must find the scan.
    #[test]
    fn what_a_reader_has_begun_is_there_when_its_signal_comes() {
        loom::model(|| {
            let inbox = super::Inbox::<u64>::new();
            let signal = Arc::new(AtomicU64::new(0));
            let reader = {
                let (inbox, signal) = (inbox.clone(), signal.clone());
                thread::spawn(move || {
                    for scan in 1..=2 {
                        inbox.put(scan);
                        signal.store(scan, Ordering::Release);
                    }
                })
            };
            let mut found = Vec::new();
            for _ in 0..2 {
                let told = signal.load(Ordering::Acquire);
                found.extend(inbox.take());
                assert!(found.len() as u64 >= told, "{found:?} after signal {told}");
            }
            reader.join().unwrap();
            found.extend(inbox.take());
            assert_eq!(found, [1, 2]);
        });
    }
}
