//! The local data manager: owns fragments of tables; rows, indexes, row locks, the participant's
//! side of transactions, committed reads, scans, and the copying of replicas.
//!
//! Its parts call each other directly; everything else is a signal. Each file is one activity of
//! `docs/protocols/commit.md`, `read.md` or `rejoin.md`.
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;
#[cfg(test)]
extern crate std;

mod adopt;
mod ahead;
mod backlog;
mod carry;
mod catalog_work;
mod checkpoint;
mod copy;
mod copy_in;
mod deadlock;
mod ending;
mod finish;
mod former;
mod found;
mod fragment;
mod gone;
mod hand_over;
mod index;
mod key;
mod key_index;
pub mod lease;
mod lock;
mod ordered;
mod outcomes;
mod prepare;
mod programs;
mod query;
mod read;
mod redo;
mod replicate;
mod restore;
mod row;
mod row_table;
mod sample;
mod scan;
mod snapshot;
mod spare;
#[cfg(test)]
mod tests;
mod transaction;
mod view;

pub use fragment::Fragment;
pub use query::Left;
pub use read::Reader;
pub use redo::RedoConfig;
pub use row::Image;
pub use scan::OpenScan;

use alloc::{
    boxed::Box,
    collections::{BTreeMap, BTreeSet, VecDeque},
    format,
    string::String,
    vec::Vec,
};
use lats_base::{
    Duration, Epoch, FragmentId, IdMap, Instant, NodeId, RefCode, SortedMap, Spare, TableId,
    TransactionId, ViewNumber, limits,
};
use lats_catalog::{Catalog, Spread, TableDef, View};
use lats_kernel::{Block, Ctx, Fault, TimerToken};
use lats_signals::{
    BlockRef, Signal, SignalBuffer, SignalNumber,
    control::{EpochBarrierConf, EpochBarrierReq, LeaseOrd},
    copy::CopyEndOrd,
};
use lats_values::RowLayout;
use transaction::Transaction;

/// A table as this LDM holds it.
pub(crate) struct Table {
    pub(crate) def: TableDef,
    pub(crate) layout: RowLayout,
    pub(crate) spread: Spread,
    pub(crate) fragments: SortedMap<FragmentId, Fragment, 1>,
}

/// What a local data manager may use.
#[derive(Clone, Copy, Debug)]
pub struct LdmConfig {
    /// Bytes of rows and indexes; beyond, inserts and growing updates are refused.
    pub memory_bytes: usize,
    /// What it does at once.
    pub slices: Slices,
    /// Its redo log; none: nothing is written to disk.
    pub redo: Option<RedoConfig>,
    /// How long outcomes are kept for clients that do not say that they have heard them (OUTCOME-8).
    pub outcome_kept: Duration,
}

/// How much a data manager does before it gives way to other work (SLICE-1).
#[derive(Clone, Copy, Debug)]
pub struct Slices {
    /// Rows of a batch, of a transaction's end, or of work on the catalog.
    pub rows: usize,
    /// Rows that a scan looks at.
    pub scan_rows: usize,
    /// Bytes that a scan sends before it waits for more credit.
    pub scan_batch_bytes: usize,
    /// Bytes of a log that are read at once.
    pub log_bytes: u32,
}

impl Default for Slices {
    fn default() -> Self {
        Self {
            rows: limits::SLICE_ROWS,
            scan_rows: limits::SCAN_SLICE_ROWS,
            scan_batch_bytes: limits::SCAN_BATCH_BYTES,
            log_bytes: limits::LOG_READ_BYTES,
        }
    }
}

/// The local data manager.
pub struct Ldm {
    pub(crate) config: LdmConfig,
    pub(crate) instance: u32,
    pub(crate) view: View,
    pub(crate) catalog_version: u64,
    /// The newest catalog whose indexes are built (INDEX-2).
    pub(crate) built_catalog: u64,
    pub(crate) catalog_work: catalog_work::CatalogWork,
    pub(crate) reader: Reader,
    pub(crate) tables: SortedMap<TableId, Table, 1>,
    pub(crate) transactions: IdMap<TransactionId, Transaction>,
    /// Outcomes of completed transactions, until their clients have surely heard them.
    pub(crate) outcomes: outcomes::Outcomes,
    /// Those that may still be open elsewhere (CARRY-5).
    pub(crate) ended: carry::Ended,
    /// When this epoch is complete, transactions of nodes that died before the newest view have ended (EPOCH-4).
    pub(crate) inherited_when: Epoch,
    /// Transactions that are visible here in parts, in an epoch that may be too small (CARRY-7).
    pub(crate) shown_early: BTreeSet<TransactionId>,
    /// Transactions that have lost images since they were reported as held (FAIL-5).
    pub(crate) lost_parts: Vec<TransactionId>,
    pub(crate) scans: BTreeMap<(BlockRef, u64), scan::Scan>,
    pub(crate) closed: query::Closed,
    /// Others read beside its owner.
    pub(crate) is_shared: bool,
    pub(crate) copies: BTreeMap<NodeId, copy::CopyOut>,
    pub(crate) copied: BTreeSet<(TableId, FragmentId)>,
    /// One that was not when this was looked for: of many fragments nobody looks at all after each.
    pub(crate) uncopied: Option<(TableId, FragmentId)>,
    /// Batches that wait for a row lock, by when they give up.
    pub(crate) waits: BTreeSet<(Instant, TransactionId)>,
    /// When timers will go off for them.
    pub(crate) lock_timers: BTreeSet<Instant>,
    /// Batches that wait for a row lock, by when their coordinators are told whom they wait for.
    pub(crate) reports: BTreeSet<(Instant, TransactionId)>,
    /// Lives to which a link was lost: what comes from them has gaps (VIEW-5).
    pub(crate) severed: BTreeMap<NodeId, u32>,
    pub(crate) hand_over: Option<hand_over::HandOver>,
    /// Its node is to stop, and it has nothing left to do.
    pub(crate) quiet: bool,
    /// What control has said of the end of this node: 0, or `CLOSE_…` (CLOSE-2).
    pub(crate) closing: u64,
    /// Tables from this id on are newer than our catalog.
    pub(crate) next_table: TableId,
    /// Signals from senders with a newer view or catalog than ours.
    pub(crate) parked: SignalBuffer,
    /// The first view that has this life of the node.
    pub(crate) joined_in: ViewNumber,
    pub(crate) lease_until: Instant,
    pub(crate) epoch: Epoch,
    /// The newest epoch known to be complete.
    pub(crate) complete: Epoch,
    pub(crate) snapshots: snapshot::Snapshots,
    pub(crate) memory_bytes: usize,
    pub(crate) redo: Option<Box<redo::Redo>>,
    /// Its former lives' log is being read.
    pub(crate) restore: Option<Box<restore::Restore>>,
    /// What it has of rows while this life is being filled; and fragments of which it is being logged what is gone.
    pub(crate) former: Option<Box<former::Former>>,
    pub(crate) ends: VecDeque<CopyEndOrd>,
    /// Batches of rows that primaries have copied and that are still to be taken: two of each primary at most (REJOIN-6).
    pub(crate) arrived: VecDeque<copy_in::Arrived>,
    pub(crate) filled: copy_in::Filled,
    pub(crate) programs: programs::Programs,
    /// Memory of lists of batches and of transactions that are over.
    pub(crate) spare_lists: Spare<Vec<u8>, 4, { 64 << 10 }>,
    /// Memory for a key that is to be compared.
    pub(crate) key_room: Vec<u8>,
    pub(crate) spare_ops: Spare<VecDeque<transaction::Op>, 64, 1_024>,
    pub(crate) counters: Counters,
}

/// What an LDM has done, for status and tests.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    /// Operations executed as primary.
    pub operations: u64,
    /// Rows written as backup.
    pub replicated: u64,
    /// Batches that had to wait for a row lock.
    pub lock_waits: u64,
}

const TIMER_HOUSEKEEPING: TimerToken = 0;
const TIMER_LOCK_WAITS: TimerToken = 1;
const TIMER_REPORTS: TimerToken = 2;
const TIMER_HAND_OVER: TimerToken = 3;
const TIMER_ROOM: TimerToken = 4;
const TIMER_RESTORE: TimerToken = 5;
const TIMER_CHECKPOINT: TimerToken = 6;
const TIMER_FILLING: TimerToken = 7;
const TIMER_BACKLOG: TimerToken = 8;
/// How long an outcome is kept in production.
pub const OUTCOME_KEPT: Duration = Duration::from_millis(60_000);
/// OUTCOME-7.
pub(crate) const OUTCOMES_MAX: usize = if cfg!(test) { 8 } else { 1 << 20 };

impl Ldm {
    /// An LDM without a view or a catalog: it serves nothing until it gets them.
    pub fn new(instance: u32, config: LdmConfig) -> Self {
        Self {
            config,
            instance,
            view: View::default(),
            catalog_version: 0,
            built_catalog: 0,
            catalog_work: catalog_work::CatalogWork::default(),
            reader: Reader::default(),
            tables: SortedMap::new(),
            transactions: IdMap::new(),
            outcomes: outcomes::Outcomes::default(),
            ended: carry::Ended::default(),
            inherited_when: Epoch::default(),
            shown_early: BTreeSet::new(),
            lost_parts: Vec::new(),
            scans: BTreeMap::new(),
            closed: query::Closed::default(),
            is_shared: false,
            copies: BTreeMap::new(),
            copied: BTreeSet::new(),
            uncopied: None,
            waits: BTreeSet::new(),
            lock_timers: BTreeSet::new(),
            reports: BTreeSet::new(),
            severed: BTreeMap::new(),
            hand_over: None,
            quiet: false,
            closing: 0,
            next_table: TableId::new(0),
            parked: SignalBuffer::new(),
            joined_in: ViewNumber::default(),
            lease_until: Instant::ZERO,
            epoch: Epoch::default(),
            complete: Epoch::default(),
            snapshots: snapshot::Snapshots::default(),
            memory_bytes: 0,
            redo: config.redo.map(|redo| Box::new(redo::Redo::new(redo, instance))),
            restore: None,
            former: None,
            ends: VecDeque::new(),
            arrived: VecDeque::new(),
            filled: copy_in::Filled::default(),
            programs: programs::Programs::default(),
            spare_lists: Spare::default(),
            key_room: Vec::new(),
            spare_ops: Spare::default(),
            counters: Counters::default(),
        }
    }

    /// The fragments it holds, for checkers.
    pub fn fragments(&self) -> impl Iterator<Item = (TableId, FragmentId, &Fragment)> {
        self.tables
            .values()
            .flat_map(|t| t.fragments.iter().map(|(id, fragment)| (t.def.id, *id, fragment)))
    }

    /// It may answer until then.
    pub fn lease_until(&self) -> Instant {
        self.lease_until
    }

    /// Bytes of rows and indexes in use.
    pub fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    /// The view it works in.
    pub fn view(&self) -> &View {
        &self.view
    }

    pub(crate) fn fragment(&self, table: TableId, fragment: FragmentId) -> Option<&Fragment> {
        self.tables.get(&table)?.fragments.get(&fragment)
    }

    pub(crate) fn fragment_mut(
        &mut self,
        table: TableId,
        fragment: FragmentId,
    ) -> Option<&mut Fragment> {
        self.tables.get_mut(&table)?.fragments.get_mut(&fragment)
    }

    /// True while this node may answer anything (VIEW-3).
    pub(crate) fn may_serve(&self, ctx: &mut Ctx<'_>) -> bool {
        ctx.now() < self.lease_until || ctx.fault(Fault::BugIgnoreLease)
    }

    /// Parks a signal whose sender has installed a view that we have not; one whose sender did not know this life of
    /// the node was meant for an earlier one, and is dropped (VIEW-11). True if it is dealt with.
    pub(crate) fn park_newer(&mut self, view: ViewNumber, signal: &Signal<'_>) -> bool {
        let newer = view > self.view.number;
        if newer {
            self.parked.push_signal(signal);
        }
        newer || view < self.joined_in
    }

    /// Parks a signal about a table that our catalog does not have yet; true if parked.
    pub(crate) fn park_unknown_table(&mut self, table: TableId, signal: &Signal<'_>) -> bool {
        let newer = table >= self.next_table;
        if newer {
            self.parked.push_signal(signal);
        }
        newer
    }

    /// Moves to a larger epoch when one is heard of.
    pub(crate) fn hear_epoch(&mut self, epoch: Epoch) {
        self.epoch = self.epoch.max(epoch);
    }

    /// True if the signal comes from a removed life of a node, or from one that signals were lost
    /// of: drop it (VIEW-4, VIEW-5).
    fn is_from_the_dead(&self, signal: &Signal<'_>, ctx: &Ctx<'_>) -> bool {
        let sender = signal.header.sender;
        if sender.node == ctx.node() || sender.node.get() == 0 {
            return false;
        }
        let theirs = signal.header.incarnation;
        let severed = self.severed.get(&sender.node).is_some_and(|life| theirs <= *life);
        let current = self.view.member(sender.node).map(|m| (m.alive, m.incarnation.get()));
        match current {
            // An unknown or newer life: its view is newer than ours.
            None => severed,
            Some((alive, life)) => severed || theirs < life || (theirs == life && !alive),
        }
    }

    fn on_link_down(&mut self, signal: &Signal<'_>) {
        let body = signal.body::<lats_signals::control::LinkDownRep>();
        let life = self.severed.entry(NodeId::new(body.node as u16)).or_default();
        *life = (*life).max(body.incarnation as u32);
    }

    fn on_client_gone(&mut self, slot: u64, ctx: &Ctx<'_>) {
        let client = BlockRef::new(ctx.node(), lats_signals::BlockKind::Client, slot as u32);
        self.scans.retain(|(reply_to, _), _| *reply_to != client);
    }

    fn housekeep(&mut self, ctx: &mut Ctx<'_>) {
        let now = ctx.now();
        self.outcomes.forget(now, self.config.outcome_kept, OUTCOMES_MAX);
        self.drop_idle_scans(now);
        self.closed.forget(now);
        self.note_durable(ctx);
        ctx.after(Duration::from_millis(1_000), TIMER_HOUSEKEEPING);
    }
}

impl Ldm {
    /// Bytes of its redo log that wait for being written, and how many may before changes are refused.
    pub fn redo_backlog(&self) -> (usize, usize) {
        self.redo.as_ref().map_or((0, 0), |redo| redo.waiting())
    }
}

impl Block for Ldm {
    fn withdraw(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) -> bool {
        lease::withdraw(signal, ctx)
    }

    fn handle(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        if self.is_from_the_dead(signal, ctx) {
            return;
        }
        let Some(number) = signal.number() else { return };
        match number {
            SignalNumber::PrepareReq => self.on_prepare_req(signal, ctx),
            SignalNumber::ReplicateReq => self.on_replicate_req(signal, ctx),
            SignalNumber::DecideReq => self.on_decide_req(signal, ctx),
            SignalNumber::CommitReq => self.on_commit_req(signal, ctx),
            SignalNumber::AbortReq => self.on_abort_req(signal, ctx),
            SignalNumber::CompleteOrd => self.on_complete_ord(signal, ctx),
            SignalNumber::BatchResumeOrd => self.on_batch_resume_ord(signal, ctx),
            SignalNumber::EndingResumeOrd => self.on_ending_resume_ord(signal, ctx),
            SignalNumber::DrainedRep => self.on_drained_rep(signal, ctx),
            SignalNumber::OutcomeFindReq => self.on_outcome_find_req(signal, ctx),
            SignalNumber::ReadReq => self.on_read_req(signal, ctx),
            SignalNumber::ScanReq => self.on_scan_req(signal, ctx),
            SignalNumber::ScanNextReq => self.on_scan_next_req(signal, ctx),
            SignalNumber::ScanResumeOrd => self.on_scan_resume_ord(signal, ctx),
            SignalNumber::ScanCloseOrd => self.on_scan_close_ord(signal, ctx),
            SignalNumber::CopySinceReq => self.on_copy_since_req(signal, ctx),
            SignalNumber::RestoredOrd => self.on_restored_ord(signal),
            SignalNumber::CopyRowsOrd => self.on_copy_rows_ord(signal, ctx),
            SignalNumber::CopyRowsConf => self.on_copy_rows_conf(signal, ctx),
            SignalNumber::OutcomesOrd => self.on_outcomes_ord(signal, ctx),
            SignalNumber::CopyEndOrd => self.on_copy_end_ord(signal, ctx),
            SignalNumber::AdoptOrd => self.on_adopt_ord(signal, ctx),
            SignalNumber::AdoptChangesReq => self.on_adopt_changes_req(signal, ctx),
            SignalNumber::CopyResumeOrd => self.on_copy_resume_ord(signal, ctx),
            SignalNumber::ViewOrd => self.on_view_ord(signal, ctx),
            SignalNumber::CatalogOrd => self.on_catalog_ord(signal, ctx),
            SignalNumber::CatalogResumeOrd => self.on_catalog_resume_ord(ctx),
            SignalNumber::LeaseOrd => {
                let body = signal.body::<LeaseOrd>();
                self.quiet &= body.closing <= self.closing;
                self.closing = self.closing.max(body.closing);
                self.lease_until = Instant::from_nanos(body.valid_until);
                self.hear_epoch(body.epoch);
                self.complete = self.complete.max(body.complete);
                self.ended.forget_inherited(self.complete);
                self.release_versions(ctx);
                self.want_durable(&body, ctx);
            }
            SignalNumber::EpochBarrierReq => {
                self.hear_epoch(signal.body::<EpochBarrierReq>().epoch);
                ctx.send(signal.sender(), &EpochBarrierConf { epoch: self.epoch });
            }
            SignalNumber::IoConf => self.on_io_conf(signal, ctx),
            SignalNumber::IoRef => self.on_io_ref(signal, ctx),
            SignalNumber::IoListConf => self.on_io_list_conf(signal, ctx),
            SignalNumber::IoReadConf => self.on_io_read_conf(signal, ctx),
            SignalNumber::SurveyReq => self.on_survey_req(signal, ctx),
            SignalNumber::RestoreReq => self.on_restore_req(signal, ctx),
            SignalNumber::DirectoryRep => self.on_directory_rep(signal, ctx),
            SignalNumber::LogBehindRep => self.on_log_behind_rep(signal, ctx),
            SignalNumber::LinkDownRep => self.on_link_down(signal),
            SignalNumber::ClientGoneRep => {
                let body = signal.body::<lats_signals::control::ClientGoneRep>();
                self.on_client_gone(body.slot, ctx);
            }
            // Signals of other blocks: a sender of another version, or a client that errs.
            _ => {}
        }
    }

    fn on_timer(&mut self, token: TimerToken, ctx: &mut Ctx<'_>) {
        match token {
            TIMER_LOCK_WAITS => self.give_up_lock_waits(ctx),
            TIMER_REPORTS => self.report_waits(ctx),
            TIMER_HAND_OVER => self.look_at_hand_over(ctx),
            TIMER_ROOM => self.write_again(ctx),
            TIMER_RESTORE => self.load(ctx),
            TIMER_CHECKPOINT => self.checkpoint_step(ctx),
            TIMER_FILLING => self.go_on_being_filled(ctx),
            TIMER_BACKLOG => self.tell_backlog_again(ctx),
            copy if copy >= copy::COPY_TIMER => self.on_copy_timer(copy, ctx),
            _ => self.housekeep(ctx),
        }
    }

    fn on_idle(&mut self, ctx: &mut Ctx<'_>) {
        if self.closing > 0 {
            self.be_quiet_at_the_end(ctx);
        } else if self.scans.is_empty() {
            self.be_quiet(ctx);
        }
    }

    fn look_ahead(&self, upcoming: lats_signals::buffer::Upcoming<'_>) {
        self.fetch_ahead(upcoming);
    }

    fn leaks(&self) -> Option<String> {
        if let Some((id, t)) = self.transactions.iter().next() {
            return Some(format!("ldm {} holds transaction {id:?}: {t:?}", self.instance));
        }
        if !self.waits.is_empty() || !self.reports.is_empty() || !self.parked.is_empty() {
            return Some(format!("ldm {} holds waits or parked signals", self.instance));
        }
        if !self.arrived.is_empty() || !self.ends.is_empty() {
            return Some(format!("ldm {} holds rows that were copied to it", self.instance));
        }
        if let Some((of, _)) = self.scans.first_key_value() {
            return Some(format!("ldm {} holds scan {of:?}, which nobody reads", self.instance));
        }
        if self.redo.as_ref().is_some_and(|redo| redo.leaks()) {
            return Some(format!("ldm {} keeps images for its redo log", self.instance));
        }
        self.fragments().find_map(|(table, id, f)| {
            f.leaks().map(|leak| format!("ldm {}: table {table}/{id}: {leak}", self.instance))
        })
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}

/// The text that travels with a refusal: MySQL's error as `SQLSTATE` and message.
pub(crate) fn error_text(error: &lats_values::SqlError) -> Vec<u8> {
    let mut text = error.sqlstate.to_vec();
    text.extend_from_slice(error.message.as_bytes());
    text
}

/// Why an operation cannot go on.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) code: RefCode,
    pub(crate) sql: Option<lats_values::SqlError>,
}

impl From<RefCode> for Refusal {
    fn from(code: RefCode) -> Self {
        Self { code, sql: None }
    }
}

impl From<lats_values::SqlError> for Refusal {
    fn from(sql: lats_values::SqlError) -> Self {
        Self { code: RefCode::ProgramFailed, sql: Some(sql) }
    }
}

impl Refusal {
    /// MySQL's error number, and the text.
    pub(crate) fn parts(&self) -> (u32, Vec<u8>) {
        self.sql.as_ref().map_or((0, Vec::new()), |e| (u32::from(e.errno), error_text(e)))
    }
}

/// The tables of a catalog, laid out: used when a catalog is installed.
pub(crate) fn decode_catalog(bytes: &[u8]) -> Option<Catalog> {
    Catalog::decode(bytes).ok()
}
