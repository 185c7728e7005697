//! Scans of one fragment by an ordered index: batches by credit, slices that give way (READ-3).

use crate::{Ldm, Left, Refusal, row::Row};
use alloc::{boxed::Box, vec::Vec};
use lats_base::{
    Duration, Epoch, FragmentId, IndexId, Instant, RefCode, TableId, TransactionId, limits,
};
use lats_catalog::PRIMARY_INDEX;
use lats_kernel::{Ctx, Fault};
use lats_signals::{
    BlockRef, Signal,
    list::{self, FoundRow, Range},
    query::{
        SCAN_ANY_REPLICA, SCAN_FEW, SCAN_FIRST, SCAN_INDEX_KEYS, SCAN_PENDING, SCAN_PRIMARY_KEYS,
        SCAN_REVERSE, SCAN_SAMPLE, SCAN_TO_LOCK, ScanCloseOrd, ScanConf, ScanNextReq, ScanRef,
        ScanReq, ScanResumeOrd,
    },
};
use lats_values::Program;

/// A scan between two batches.
pub(crate) struct Scan {
    transaction: TransactionId,
    /// The epoch of the snapshot that it reads; none: the newest rows.
    pub(crate) as_of: Option<Epoch>,
    table: TableId,
    schema_version: u32,
    fragment: FragmentId,
    pub(crate) index: IndexId,
    reverse: bool,
    /// What goes along with each row.
    sends_index_keys: bool,
    sends_primary_keys: bool,
    /// Only keys, and those of rows too that are not committed.
    pending: bool,
    /// Its rows will be locked (LOCK-7).
    to_lock: bool,
    /// Of each range one row is enough (READ-8).
    first_of_range: bool,
    /// Only what the index is like.
    samples: bool,
    /// What is still to be read, in the order in which it will be.
    ranges: Vec<KeyRange>,
    program: Option<Program>,
    pub(crate) left: u64,
    pub(crate) batch: Vec<u8>,
    pub(crate) batch_rows: u32,
    /// Rows of the batch at most.
    batch_max: u32,
    /// Another node has become primary since it began (HANDOVER-6).
    left_behind: bool,
    /// It may run at a backup: then this is what was to be read when the batch began (READ-4).
    anywhere: Option<Vec<KeyRange>>,
    /// This node is a backup.
    at_backup: bool,
    /// Work done by the program in this slice.
    work: u64,
    /// What it has shown so far is durable with this epoch (READ-7).
    changed: Epoch,
    used: Instant,
}

/// A scan that goes on, and whether at once or when the client asks for more.
pub struct OpenScan {
    pub(crate) of: (BlockRef, u64),
    pub(crate) scan: Box<Scan>,
    resumes: bool,
}

impl OpenScan {
    /// Has the owner go on with it if it does not wait for its client.
    pub fn wake_owner(&self, instance: u32, ctx: &mut Ctx<'_>) {
        let (reply_to, scan) = self.of;
        if self.resumes {
            ctx.send(BlockRef::ldm(ctx.node(), instance), &ScanResumeOrd { scan, reply_to });
        }
    }
}

#[derive(Clone)]
struct KeyRange {
    number: u32,
    lower: Vec<u8>,
    upper: Option<Vec<u8>>,
}

/// Scans that one LDM keeps open.
const SCANS_MAX: usize = 16_384;
/// A client that does not ask for more in this time has forgotten its scan.
const SCAN_IDLE: Duration = Duration::from_millis(60_000);

/// READ-6: rows of the first batch where few may be enough, and how many times as many each further one may have.
const FEW_ROWS: u32 = 16;
const FEW_GROWTH: u32 = 8;

enum Slice {
    /// The batch is full or the scan is at its end (`true`).
    Send(bool),
    /// The slice is over, the batch is not.
    GiveWay,
    /// Only the primary knows the newest version of a row.
    AskPrimary,
}

impl Ldm {
    pub(crate) fn on_scan_req(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let req = signal.body::<ScanReq>();
        if self.closed.contains((req.reply_to, req.scan)) {
            return;
        }
        let anywhere = req.flags & SCAN_ANY_REPLICA != 0;
        let right_place = self.check_scan_place(req.fragment, anywhere, ctx).is_ok();
        if right_place && self.park_until_built(&req, signal, ctx) {
            return;
        }
        if req.as_of != Epoch::default() {
            self.use_snapshots(ctx);
        }
        match self.open_scan(&req, signal.payload(), ctx) {
            Ok(scan) => {
                let open = self.advance_scan((req.reply_to, req.scan), scan, ctx);
                self.keep_scan(open, ctx);
            }
            Err(code) => refuse(req.reply_to, req.scan, &code.into(), ctx),
        }
    }

    /// Begins a scan without changing anything, unless its owner has to, who can wait for its index (QUERY-2).
    pub(crate) fn begin_scan(&self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) -> Left {
        let req = signal.body::<ScanReq>();
        let fragment = self.fragment(req.table, req.fragment);
        if fragment.is_some_and(|f| f.is_being_built(req.index)) {
            return Left::All;
        }
        match self.open_scan(&req, signal.payload(), ctx) {
            Ok(scan) => {
                let open = self.advance_scan((req.reply_to, req.scan), scan, ctx);
                open.map_or(Left::Nothing, Left::Rest)
            }
            Err(code) => {
                refuse(req.reply_to, req.scan, &code.into(), ctx);
                Left::Nothing
            }
        }
    }

    /// A scan that is not at its end waits for more credit, or for its next slice.
    fn keep_scan(&mut self, open: Option<OpenScan>, ctx: &mut Ctx<'_>) {
        let Some(open) = open else { return };
        open.wake_owner(self.instance, ctx);
        self.scans.insert(open.of, *open.scan);
    }

    fn open_scan(&self, req: &ScanReq, payload: &[u8], ctx: &mut Ctx<'_>) -> Result<Scan, RefCode> {
        if self.scans.len() >= SCANS_MAX {
            return Err(RefCode::Overloaded);
        }
        let anywhere = req.flags & SCAN_ANY_REPLICA != 0;
        let at_primary = SCAN_PENDING | SCAN_TO_LOCK;
        if anywhere && (req.as_of != Epoch::default() || req.flags & at_primary != 0) {
            return Err(RefCode::RequestMalformed);
        }
        // Who has only just begun knows no table.
        self.check_scan_place(req.fragment, anywhere, ctx)?;
        let table = self.tables.get(&req.table).ok_or(RefCode::TableUnknown)?;
        if table.def.schema_version != req.schema_version {
            return Err(RefCode::SchemaVersionOld);
        }
        let program_at = payload.len() - req.program_bytes as usize;
        let (ranges, program) = payload.split_at(program_at);
        let program = match program {
            [] => None,
            bytes => {
                let mut program = crate::programs::decode(table, bytes)?;
                program.for_many_rows();
                Some(program)
            }
        };
        let reverse = req.flags & SCAN_REVERSE != 0;
        let mut ranges: Vec<KeyRange> = list::items::<Range>(ranges)
            .map(|(range, [lower, upper, _])| KeyRange {
                number: range.number,
                lower: lower.to_vec(),
                upper: (range.has_upper != 0).then(|| upper.to_vec()),
            })
            .collect();
        // The last one is read first, so that one that is done can be popped.
        if !reverse {
            ranges.reverse();
        }
        Ok(Scan {
            transaction: req.transaction,
            as_of: (req.as_of != Epoch::default()).then_some(req.as_of),
            table: req.table,
            schema_version: req.schema_version,
            fragment: req.fragment,
            index: req.index,
            reverse,
            sends_index_keys: req.flags & SCAN_INDEX_KEYS != 0,
            sends_primary_keys: req.flags & SCAN_PRIMARY_KEYS != 0,
            samples: req.flags & SCAN_SAMPLE != 0,
            pending: req.flags & SCAN_PENDING != 0 && !ctx.fault(Fault::BugBuildWithoutPending),
            to_lock: req.flags & SCAN_TO_LOCK != 0,
            first_of_range: req.flags & SCAN_FIRST != 0,
            anywhere: anywhere.then(|| ranges.clone()),
            ranges,
            program,
            left: req.limit,
            batch: Vec::new(),
            batch_rows: 0,
            batch_max: if req.flags & SCAN_FEW != 0 { FEW_ROWS } else { u32::MAX },
            left_behind: false,
            at_backup: false,
            work: 0,
            changed: Epoch::default(),
            used: ctx.now(),
        })
    }

    /// A scan begins at the primary, which knows every row's newest version, or at `any` full replica, if it was asked to
    /// (READ-4). HANDOVER-6: one that has begun goes on where it is when another replica has become primary.
    fn check_scan_place(
        &self,
        fragment: FragmentId,
        any: bool,
        ctx: &mut Ctx<'_>,
    ) -> Result<(), RefCode> {
        if !self.may_serve(ctx) {
            return Err(RefCode::NotServing);
        }
        let me = ctx.node();
        let full = any && self.view.in_sync(fragment).contains(me);
        if !full && self.view.primary(fragment) != Some(me) {
            return Err(RefCode::StaleView);
        }
        Ok(())
    }

    fn run_scan(&mut self, reply_to: BlockRef, id: u64, ctx: &mut Ctx<'_>) {
        let Some(scan) = self.scans.remove(&(reply_to, id)) else { return };
        let open = self.advance_scan((reply_to, id), scan, ctx);
        self.keep_scan(open, ctx);
    }

    /// Looks at a slice of rows, and answers if a batch is full or the scan at its end. Gives the scan if it goes on.
    fn advance_scan(
        &self,
        of: (BlockRef, u64),
        mut scan: Scan,
        ctx: &mut Ctx<'_>,
    ) -> Option<OpenScan> {
        let (reply_to, id) = of;
        scan.used = ctx.now();
        let is_primary = self.view.primary(scan.fragment) == Some(ctx.node());
        scan.left_behind = !is_primary;
        scan.at_backup =
            !is_primary && scan.anywhere.is_some() && !ctx.fault(Fault::BugReadStaleBackup);
        let sliced = self
            .check_scan_place(scan.fragment, true, ctx)
            .map_err(Refusal::from)
            .and_then(|()| self.slice(&mut scan, ctx.fault(Fault::BugFirstEndsScan)));
        match sliced {
            Err(refusal) => refuse(reply_to, id, &refusal, ctx),
            Ok(Slice::GiveWay) => {
                return Some(OpenScan { of, scan: Box::new(scan), resumes: true });
            }
            Ok(Slice::AskPrimary) => ask_primary(reply_to, id, &scan, ctx),
            Ok(Slice::Send(done)) => {
                let hides = ctx.fault(Fault::BugShowUndurable);
                let changed = scan.as_of.unwrap_or(scan.changed);
                let body = ScanConf {
                    scan: id,
                    epoch: self.epoch,
                    changed: if hides { Epoch::default() } else { changed },
                    row_count: scan.batch_rows,
                    done: u32::from(done),
                };
                ctx.rests_on_lease(self.lease_until);
                ctx.send_with(reply_to, &body, &[&scan.batch]);
                scan.batch.clear();
                scan.batch_rows = 0;
                scan.batch_max = scan.batch_max.saturating_mul(FEW_GROWTH);
                if !done {
                    if let Some(begun) = &mut scan.anywhere {
                        begun.clone_from(&scan.ranges);
                    }
                    return Some(OpenScan { of, scan: Box::new(scan), resumes: false });
                }
            }
        }
        None
    }

    /// Looks at a slice of rows.
    fn slice(&self, scan: &mut Scan, first_ends_all: bool) -> Result<Slice, Refusal> {
        let table = self.tables.get(&scan.table).ok_or(RefCode::TableUnknown)?;
        if table.def.schema_version != scan.schema_version {
            return Err(RefCode::SchemaVersionOld.into());
        }
        let fragment = table.fragments.get(&scan.fragment).ok_or(RefCode::StaleView)?;
        if let Some(epoch) = scan.as_of {
            self.check_snapshot(epoch, fragment)?;
        }
        let columns = fragment.index_key(scan.index).ok_or(RefCode::IndexUnknown)?;
        if scan.samples {
            crate::sample::add(scan, table, fragment)?;
            return Ok(Slice::Send(true));
        }
        let mut looked_at = 0;
        let mut own = Vec::new();
        scan.work = 0;
        scan.changed = scan.changed.max(fragment.changed);
        while let Some(range) = scan.ranges.pop() {
            // An empty range takes its time, too.
            looked_at += 1;
            if looked_at > self.config.slices.scan_rows {
                scan.ranges.push(range);
                return Ok(Slice::GiveWay);
            }
            let mut entries = fragment
                .range(scan.index, &range.lower, range.upper.as_deref())
                .ok_or(RefCode::IndexUnknown)?;
            loop {
                let next = if scan.reverse { entries.next_back() } else { entries.next() };
                let Some((entry, id)) = next else { break };
                looked_at += 1;
                let before = scan.batch_rows;
                let row = fragment.row(id).ok_or(RefCode::StaleView)?;
                if scan.at_backup && !row.pending().is_empty() {
                    return Ok(Slice::AskPrimary);
                }
                if row.busy.is_some() {
                    scan.changed = scan.changed.max(self.decided_in(row));
                }
                self.take_seen(scan, (table, range.number), columns, (entry, row), &mut own)?;
                let full = scan.batch.len() >= self.config.slices.scan_batch_bytes
                    || scan.batch_rows >= scan.batch_max
                    || scan.left == 0;
                let long = looked_at >= self.config.slices.scan_rows;
                let is_enough = scan.first_of_range && scan.batch_rows > before;
                if is_enough && first_ends_all {
                    return Ok(Slice::Send(true));
                }
                if full || long || scan.work >= limits::SCAN_SLICE_WORK {
                    if !is_enough {
                        scan.ranges.push(rest_of(&range, entry, scan.reverse));
                    }
                    return Ok(if full { Slice::Send(scan.left == 0) } else { Slice::GiveWay });
                }
                if is_enough {
                    break;
                }
            }
        }
        Ok(Slice::Send(true))
    }

    /// Adds a row to the batch if the scan sees a version of it that has this entry, and that passes the filter.
    fn take_seen(
        &self,
        scan: &mut Scan,
        of: (&crate::Table, u32),
        columns: &[u16],
        (entry, row): (&[u8], &Row),
        own: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        if scan.pending {
            add(scan, of.1, (entry, &row.key), |_, _| ());
        } else if scan.to_lock && is_changed_by_others(row, scan.transaction) {
            take_any(scan, of, entry, row);
        } else if let Some(image) = self.seen(scan, row)? {
            // There are entries of all versions of a row. At rest it has one, and its primary key is always the same.
            let is_sure = scan.index == PRIMARY_INDEX || row.busy.is_none();
            let mut is_own = || {
                own.clear();
                of.0.layout.key_of(image, columns, own);
                *own == entry
            };
            debug_assert!(row.busy.is_some() || is_own(), "an entry of no version");
            if is_sure || is_own() {
                take(scan, of, (entry, &row.key), image)?;
            }
        }
        Ok(())
    }

    /// The image of a row that a scan sees.
    fn seen<'r>(&self, scan: &Scan, row: &'r Row) -> Result<Option<&'r [u8]>, RefCode> {
        match scan.as_of {
            Some(epoch) => self.as_of(row, epoch),
            // What is pending here came after the scan: the fragment was drained.
            None if scan.left_behind => Ok(row.seen_by(scan.transaction)),
            None => self.visible(row, scan.fragment, scan.transaction),
        }
    }

    pub(crate) fn on_scan_next_req(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let req = signal.body::<ScanNextReq>();
        if self.scans.contains_key(&(req.reply_to, req.scan)) {
            self.run_scan(req.reply_to, req.scan, ctx);
        } else {
            refuse(req.reply_to, req.scan, &RefCode::ScanUnknown.into(), ctx);
        }
    }

    pub(crate) fn on_scan_resume_ord(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let req = signal.body::<ScanResumeOrd>();
        self.run_scan(req.reply_to, req.scan, ctx);
    }

    pub(crate) fn on_scan_close_ord(&mut self, signal: &Signal<'_>, ctx: &Ctx<'_>) {
        let req = signal.body::<ScanCloseOrd>();
        if self.scans.remove(&(req.reply_to, req.scan)).is_none() && self.is_shared {
            self.closed.note((req.reply_to, req.scan), ctx.now());
        }
    }

    pub(crate) fn drop_idle_scans(&mut self, now: Instant) {
        self.scans.retain(|_, s| now.since(s.used) < SCAN_IDLE);
    }
}

/// Adds a row to the batch if the filter holds for it.
fn take(
    scan: &mut Scan,
    (table, range): (&crate::Table, u32),
    (entry, key): (&[u8], &[u8]),
    image: &[u8],
) -> Result<(), Refusal> {
    if let Some(program) = &scan.program {
        let mut work_left = limits::PROGRAM_WORK_MAX;
        let passes = program.matches_within(&table.layout, image, &mut work_left)?;
        scan.work += limits::PROGRAM_WORK_MAX - work_left;
        if !passes {
            return Ok(());
        }
    }
    let write = |out: &mut Vec<u8>, program: Option<&Program>| match program {
        Some(program) => program.project(&table.layout, image, out),
        None => out.extend_from_slice(image),
    };
    add(scan, range, (entry, key), write);
    Ok(())
}

/// LOCK-7: others have changed it, and have not committed yet, as far as is known here.
fn is_changed_by_others(row: &Row, transaction: TransactionId) -> bool {
    row.pending().iter().any(|version| version.transaction != transaction)
}

/// LOCK-7: adds a row to the batch if the filter holds for any of its versions, or cannot be computed of one. Whoever locks
/// the row looks at the version that it has then.
fn take_any(scan: &mut Scan, (table, range): (&crate::Table, u32), entry: &[u8], row: &Row) {
    let mut work_left = limits::PROGRAM_WORK_MAX;
    let passes = |image: &&[u8]| match &scan.program {
        Some(program) => {
            program.matches_within(&table.layout, image, &mut work_left).unwrap_or(true)
        }
        None => true,
    };
    let image = row.images().find(passes);
    scan.work += limits::PROGRAM_WORK_MAX - work_left;
    let Some(image) = image else { return };
    let write = |out: &mut Vec<u8>, program: Option<&Program>| match program {
        Some(program) => program.project(&table.layout, image, out),
        None => out.extend_from_slice(image),
    };
    add(scan, range, (entry, &row.key), write);
}

/// Adds a row to the batch; `write` appends its projection by the scan's program.
fn add(
    scan: &mut Scan,
    range: u32,
    (entry, key): (&[u8], &[u8]),
    write: impl FnOnce(&mut Vec<u8>, Option<&Program>),
) {
    let entry = if scan.sends_index_keys { entry } else { &[] };
    let key = if scan.sends_primary_keys { key } else { &[] };
    let program = scan.program.as_ref();
    let write = |out: &mut Vec<u8>| write(out, program);
    list::push_written(&mut scan.batch, [entry, key], write, |row_bytes| FoundRow {
        index_key_bytes: entry.len() as u32,
        primary_key_bytes: key.len() as u32,
        row_bytes: row_bytes as u32,
        range,
    });
    scan.batch_rows += 1;
    scan.left = scan.left.saturating_sub(1);
}

/// What is left of a range when everything up to `entry` was read.
fn rest_of(range: &KeyRange, entry: &[u8], reverse: bool) -> KeyRange {
    if reverse {
        let upper = Some(entry.to_vec());
        return KeyRange { lower: range.lower.clone(), upper, number: range.number };
    }
    // From the smallest key above `entry`.
    let lower = entry.iter().copied().chain([0]).collect();
    KeyRange { lower, upper: range.upper.clone(), number: range.number }
}

/// READ-4: says what is left to be read since the last batch, for the primary.
fn ask_primary(reply_to: BlockRef, id: u64, scan: &Scan, ctx: &mut Ctx<'_>) {
    let left = scan.anywhere.as_deref().unwrap_or_default();
    let counts_anew = ctx.fault(Fault::BugCountRangesAnew);
    let (mut payload, mut count) = (Vec::new(), 0);
    let mut push = |range: &KeyRange| {
        let number = if counts_anew { count } else { range.number };
        count += 1;
        list::push_range(&mut payload, number, &range.lower, range.upper.as_deref());
    };
    // The last one is read first.
    match scan.reverse {
        true => left.iter().for_each(&mut push),
        false => left.iter().rev().for_each(&mut push),
    }
    let body = ScanRef { scan: id, code: u32::from(RefCode::AskPrimary.number()), errno: 0 };
    ctx.send_with(reply_to, &body, &[&payload]);
}

fn refuse(reply_to: BlockRef, scan: u64, refusal: &Refusal, ctx: &mut Ctx<'_>) {
    let (errno, text) = refusal.parts();
    let body = ScanRef { scan, code: u32::from(refusal.code.number()), errno };
    ctx.send_with(reply_to, &body, &[&text]);
}
