//! The redo log of a data manager: what is committed is written down, and sealed epoch by epoch
//! (REDO-1 to REDO-4, DURABLE-1 to DURABLE-3). Protocol: `docs/protocols/durability.md`.

use crate::{
    Ldm,
    backlog::Backlog,
    checkpoint::{Checkpoint, Lengths},
    gone::Footing,
    row::{Row, Version},
    transaction::Transaction,
};
use alloc::{boxed::Box, collections::BTreeMap, vec::Vec};
use lats_base::{Epoch, Incarnation, NodeId, TransactionId, ViewNumber};
use lats_files::redo::{END_BYTES, LogId, Place, Seal, Taken, Writer};
use lats_kernel::{Ctx, Fault};
use lats_signals::{
    BlockRef, Signal,
    control::{LeaseOrd, STATUS_DISK_FAILED, StopOrd},
    copy::CopyRowsConf,
    io::{
        EpochDurableRep, FILE_REDO, FileName, IO_FULL, IO_GONE, IoConf, IoRef, IoRemoveReq,
        IoWriteReq, ROOM_RETRY, WRITE_ANEW, WRITE_SYNC,
    },
};

/// How a data manager keeps its log.
#[derive(Clone, Copy, Debug)]
pub struct RedoConfig {
    /// The cluster that the files belong to.
    pub cluster: u64,
    /// The node, and this life of it.
    pub node: NodeId,
    /// See `node`.
    pub life: Incarnation,
    /// A new segment is begun when one has so many bytes.
    pub segment_bytes: u64,
    /// With so much that waits for being written, changes are refused (REDO-4).
    pub waiting_bytes_max: usize,
}

/// The log, and what is not in it yet.
pub(crate) struct Redo {
    segment_bytes: u64,
    waiting_bytes_max: usize,
    pub(crate) backlog: Backlog,
    writer: Writer,
    under_way: Option<UnderWay>,
    /// Memory for records.
    room: Vec<u8>,
    /// Images of transactions that have not ended here, of which the rows have newer ones already (REDO-3).
    passed: BTreeMap<(TransactionId, Place, u64), Passed>,
    requests: u64,
    /// What the leader wants to be durable, what of that is sealed in the log, and what was sent to the disk.
    wanted: Epoch,
    /// None of it depends on a later command of the control group.
    commands: u64,
    sealed: Epoch,
    sent: Epoch,
    /// The newest epoch that a seal has called durable in the whole cluster.
    noted: Epoch,
    /// What survives a loss of power: up to this epoch, and up to this record.
    durable: Epoch,
    durable_record: u64,
    /// What control was told.
    told: (ViewNumber, Epoch),
    /// The record of the last row that was copied from another replica, and the epoch in which copying ended: until they are
    /// durable this replica is not whole.
    copied_record: u64,
    copied_epoch: Epoch,
    /// It has all rows, and waits for that; then the log is whole, as one of its seals must say that is durable (REJOIN-8).
    pub(crate) waits_to_be_whole: bool,
    is_whole: bool,
    /// It was found whole, and stays it: what other primaries copy once more is there, and what is changed comes beside it (REJOIN-8).
    stays_whole: bool,
    says_whole: Option<Epoch>,
    /// The newest epoch that is durable in the whole cluster.
    cluster_durable: Epoch,
    /// Answers to copied rows that wait until the log is not behind any more.
    held: Vec<(BlockRef, CopyRowsConf)>,
    /// A write was refused for want of room; it is asked for again then.
    stuck: bool,
    pub(crate) footing: Footing,
    /// Files of former lives, while it is not known which of them the log goes on with; then those that nobody needs any more.
    former: Vec<u32>,
    /// The last of them.
    behind: u32,
    /// The oldest file that the log needs.
    oldest: u32,
    pub(crate) checkpoint: Option<Checkpoint>,
    pub(crate) lengths: Lengths,
}

/// A change that its row does not show any more: its key, and its image.
struct Passed {
    key: Box<[u8]>,
    image: Option<Box<[u8]>>,
}

/// A write that is not answered yet.
struct UnderWay {
    request: u64,
    file: FileName,
    taken: Taken,
}

/// So much is written without waiting for a seal.
const WRITE_BYTES: usize = 128 << 10;
/// So much is written at once, or one record.
const WRITE_BYTES_MAX: usize = 2 << 20;
/// Old files that are removed with each write.
const REMOVED_AT_ONCE: usize = 1;

impl Redo {
    pub(crate) fn new(config: RedoConfig, instance: u32) -> Self {
        let RedoConfig { cluster, node, life, segment_bytes, waiting_bytes_max } = config;
        let log = LogId { cluster, node, instance: instance as u16, life };
        Self {
            segment_bytes,
            waiting_bytes_max,
            backlog: Backlog::default(),
            writer: Writer::new(log),
            under_way: None,
            room: Vec::new(),
            passed: BTreeMap::new(),
            requests: 0,
            wanted: Epoch::default(),
            commands: 0,
            sealed: Epoch::default(),
            sent: Epoch::default(),
            noted: Epoch::default(),
            durable: Epoch::default(),
            durable_record: 0,
            told: Default::default(),
            copied_record: 0,
            copied_epoch: Epoch::default(),
            waits_to_be_whole: false,
            is_whole: false,
            stays_whole: false,
            says_whole: None,
            cluster_durable: Epoch::default(),
            held: Vec::new(),
            stuck: false,
            footing: Footing::default(),
            former: Vec::new(),
            behind: 0,
            oldest: 1,
            checkpoint: None,
            lengths: Lengths::default(),
        }
    }

    /// There are files of former lives, up to this one: the log begins anew behind them, unless it is told to go on.
    pub(crate) fn begin_behind(&mut self, segment: u32, former: Vec<u32>) {
        self.writer.begin_behind(segment);
        (self.behind, self.former, self.oldest) = (segment, former, segment + 1);
    }

    /// RESTART-5: the former life's log, which begins with the segment `origin`, goes on, and is durable up to this epoch.
    pub(crate) fn go_on_with(
        &mut self,
        origin: u32,
        (last_record, newest, bytes): (u64, Epoch, u64),
        epoch: Epoch,
    ) {
        self.lengths.log = bytes;
        // A log without a whole record has nothing to go on with.
        if origin > 0 && last_record > 0 {
            self.oldest = origin;
            // What is of later epochs is void (RESTART-3).
            self.writer.go_on_behind(self.behind, origin, (last_record, newest.min(epoch)));
            self.former.retain(|segment| *segment < origin);
        }
        (self.sealed, self.sent, self.durable, self.noted) = (epoch, epoch, epoch, epoch);
        self.cluster_durable = epoch;
    }

    /// REJOIN-8: as [`Self::go_on_with`]; but what the former log has of rows is old, and others will say which have changed
    /// since.
    pub(crate) fn go_on_filling(&mut self, origin: u32, read: (u64, Epoch)) {
        self.begin_anew();
        self.oldest = origin;
        self.writer.go_on_behind(self.behind, origin, read);
        self.former.retain(|segment| *segment < origin);
    }

    /// What was loaded from the former log is not wanted: the log begins anew after all.
    pub(crate) fn begin_anew(&mut self) {
        self.writer.begin_behind(self.behind);
        for segment in self.oldest..=self.behind {
            if !self.former.contains(&segment) {
                self.former.push(segment);
            }
        }
        self.oldest = self.behind + 1;
        self.lengths = Lengths::default();
        (self.sealed, self.sent, self.durable, self.noted) = Default::default();
        self.cluster_durable = Epoch::default();
    }

    /// GONE-2: nothing of the log can be found again, and nothing is durable here.
    pub(crate) fn forget_all(&mut self) {
        self.writer.forget();
        (self.under_way, self.stuck, self.checkpoint) = (None, false, None);
        self.lengths = Lengths::default();
        (self.sealed, self.sent, self.noted) = Default::default();
        (self.durable, self.durable_record, self.told) = Default::default();
        (self.copied_record, self.copied_epoch) = Default::default();
        (self.is_whole, self.stays_whole, self.waits_to_be_whole) = (false, false, false);
        self.says_whole = None;
    }

    /// GONE-4: a new log is begun behind whatever there was.
    pub(crate) fn begin_behind_all(&mut self) {
        self.behind = self.writer.segment();
        self.begin_anew();
    }

    /// All rows are in the log, the newest of them of this epoch.
    pub(crate) fn be_whole_since(&mut self, epoch: Epoch) {
        self.copied_epoch = epoch;
        (self.is_whole, self.stays_whole) = (true, true);
    }

    /// Files that nobody needs any more are removed, a few at a time.
    fn remove_former(&mut self, ctx: &mut Ctx<'_>) {
        for number in self.former.drain(..self.former.len().min(REMOVED_AT_ONCE)) {
            let instance = ctx.me().instance as u16;
            let file = FileName { kind: FILE_REDO, instance, number };
            ctx.ask_io(&IoRemoveReq { request: 0, file }, &[]);
        }
    }

    /// REDO-3: what is passed over is kept until its transaction ends here.
    pub(crate) fn keep_passed(&mut self, place: Place, key: &[u8], version: &Version) {
        let kept = Passed { key: key.into(), image: version.image.clone() };
        self.passed.insert((version.transaction, place, version.number), kept);
    }

    /// Logs a change that is about to become the committed one (REDO-1). It may have been passed over, or shown early.
    pub(crate) fn log_commit(
        &mut self,
        (id, epoch): (TransactionId, Epoch),
        (place, number): (Place, u64),
        row: Option<&Row>,
    ) {
        let change = row.and_then(|row| {
            let pending = row.pending();
            Some((row, pending, pending.iter().position(|v| v.number == number)?))
        });
        let Some((row, pending, at)) = change else {
            return self.log_passed((id, epoch), place, number);
        };
        // What of others it passes over is kept.
        let others = pending[..at].iter().filter(|v| v.transaction != id);
        others.for_each(|version| self.keep_passed(place, &row.key, version));
        let image = pending[at].image.as_deref();
        self.log((id, epoch), place, number, &row.key, image);
    }

    fn log_passed(&mut self, of: (TransactionId, Epoch), place: Place, number: u64) {
        if let Some(passed) = self.passed.remove(&(of.0, place, number)) {
            self.log(of, place, number, &passed.key, passed.image.as_deref());
        }
    }

    fn log(
        &mut self,
        of: (TransactionId, Epoch),
        place: Place,
        number: u64,
        key: &[u8],
        image: Option<&[u8]>,
    ) {
        if !self.is_mute() {
            self.writer.change(of, place, number, key, image);
        }
    }

    /// The transaction is over here.
    pub(crate) fn forget(&mut self, id: TransactionId) {
        while let Some(at) = self.passed.range((id, FIRST, 0)..).next().map(|(at, _)| *at)
            && at.0 == id
        {
            self.passed.remove(&at);
        }
    }

    /// A row is logged as it is: it was copied from another replica, or is part of a checkpoint.
    pub(crate) fn log_row(
        &mut self,
        epoch: Epoch,
        place: Place,
        number: u64,
        key: &[u8],
        image: &[u8],
    ) {
        self.log((TransactionId::NONE, epoch), place, number, key, Some(image));
    }

    /// A row is logged as deleted that another replica does not have any more (REJOIN-9).
    pub(crate) fn log_deletion(&mut self, epoch: Epoch, place: Place, number: u64, key: &[u8]) {
        self.log((TransactionId::NONE, epoch), place, number, key, None);
    }

    /// Ends the record of a transaction, or of a part of it.
    pub(crate) fn end_record(&mut self) {
        self.writer.end();
    }

    /// REDO-2: rows that have changed while others were copied have no older version here.
    pub(crate) fn copied_up_to(&mut self, epoch: Epoch) {
        if !self.stays_whole {
            self.copied_epoch = self.copied_epoch.max(epoch);
        }
    }

    pub(crate) fn end_copied(&mut self) {
        self.writer.end();
        self.copied_record = self.writer.last_record();
    }

    /// REDO-2: true if all rows that were copied from other replicas are durable, and nobody will ask for the state of an
    /// earlier epoch than theirs.
    pub(crate) fn has_all_copied(&self) -> bool {
        self.durable_record >= self.copied_record && self.cluster_durable >= self.copied_epoch
    }

    /// True if a log that is being filled, and has `all` rows now, can give back what it seals (REJOIN-8).
    pub(crate) fn is_whole_with(&mut self, all: bool) -> bool {
        if self.stays_whole {
            return all;
        }
        self.is_whole = all && self.has_all_copied();
        let says_so = self.says_whole.is_some_and(|epoch| epoch >= self.copied_epoch);
        self.waits_to_be_whole = all && !(self.is_whole && says_so);
        self.stays_whole = self.is_whole && says_so;
        self.stays_whole
    }

    /// The view says that this replica has all rows.
    pub(crate) fn note_in_sync(&mut self) {
        if !self.is_incomplete() {
            (self.is_whole, self.stays_whole) = (true, true);
        }
    }

    /// True if the last seal does not say that the log is whole, which it is since (REJOIN-8).
    fn may_say_whole(&self) -> bool {
        let is_whole = self.is_whole && self.sealed >= self.copied_epoch;
        is_whole && self.says_whole.is_some_and(|said| said < self.sealed)
    }

    fn seal(&mut self, epoch: Epoch) {
        (self.sealed, self.noted) = (epoch, self.cluster_durable);
        let whole = self.is_whole && epoch >= self.copied_epoch;
        // GONE-5: no earlier epoch can be given back any more, so no restart may begin with one by itself.
        let is_first = whole && self.footing == Footing::Anew;
        let durable = if is_first { epoch } else { self.cluster_durable };
        let commands = self.commands;
        self.writer.seal(Seal { epoch, durable, commands, whole });
    }

    /// True if the record is, and everything of the epoch in the whole cluster.
    pub(crate) fn is_durable(&self, record: u64, epoch: Epoch) -> bool {
        self.durable_record >= record && self.cluster_durable >= epoch
    }

    pub(crate) fn is_behind(&self) -> bool {
        self.backlog.is_behind()
    }

    pub(crate) fn segment_bytes(&self) -> u64 {
        self.segment_bytes
    }

    pub(crate) fn waiting_bytes(&self) -> usize {
        self.writer.waiting_bytes()
    }

    pub(crate) fn last_record(&self) -> u64 {
        self.writer.last_record()
    }

    /// What is written next stands in a new segment: its number.
    pub(crate) fn begin_segment(&mut self) -> u32 {
        self.writer.begin_segment()
    }

    /// From the next segment on, whose number is given, the log says that it begins with this one.
    pub(crate) fn begin_log_with(&mut self, origin: u32) -> u32 {
        self.writer.begin_log_with(origin);
        self.writer.begin_segment()
    }

    /// Segments before this one are not needed any more.
    pub(crate) fn forget_before(&mut self, segment: u32) {
        self.former.extend(self.oldest..segment);
        self.oldest = segment;
    }

    /// Bytes that wait for being written, and how many may.
    pub(crate) fn waiting(&self) -> (usize, usize) {
        (self.writer.waiting_bytes(), self.waiting_bytes_max)
    }

    /// So much is written without waiting for a seal.
    fn is_much(&self) -> bool {
        self.writer.waiting_bytes() >= WRITE_BYTES.min(self.waiting_bytes_max / 4)
    }

    /// True if the log has begun or ended to be behind.
    pub(crate) fn look_at_backlog(&mut self, ctx: &mut Ctx<'_>) -> bool {
        let changed = self.backlog.changes(self.waiting());
        if !self.is_behind() {
            self.held.drain(..).for_each(|(to, conf)| ctx.send(to, &conf));
        }
        changed
    }

    /// Answers to copied rows, when there is room in the log for more (REDO-4).
    pub(crate) fn confirm_copied(&mut self, to: BlockRef, conf: CopyRowsConf) {
        self.held.push((to, conf));
    }

    pub(crate) fn leaks(&self) -> bool {
        !self.passed.is_empty()
    }
}

const FIRST: Place =
    (lats_base::TableId::new(0), lats_base::FragmentId::new(0), lats_base::RowId::new(0));

impl Ldm {
    /// REDO-3: a row is about to show changes of transactions that have not ended here, or to make way for another row.
    pub(crate) fn keep_for_redo(&mut self, place: Place, which: impl Fn(&Version) -> bool) {
        let Some(mut redo) = self.redo.take() else { return };
        let (table, fragment, row) = place;
        if let Some(row) = self.fragment(table, fragment).and_then(|f| f.row(row)) {
            let versions = row.pending().iter().filter(|v| which(v));
            versions.for_each(|version| redo.keep_passed(place, &row.key, version));
        }
        self.redo = Some(redo);
    }

    /// DURABLE-2: the leader wants everything up to this epoch to be durable.
    pub(crate) fn want_durable(&mut self, ord: &LeaseOrd, ctx: &mut Ctx<'_>) {
        let LeaseOrd { seal, commands, durable, .. } = *ord;
        let Some(redo) = &mut self.redo else { return };
        redo.wanted = redo.wanted.max(seal);
        redo.commands = redo.commands.max(commands);
        redo.cluster_durable = redo.cluster_durable.max(durable);
        if redo.waits_to_be_whole {
            self.report_if_synced(ctx);
        }
        self.write_redo(ctx);
    }

    /// Transactions have ended, of which some may have been all that a seal has waited for (DURABLE-1).
    pub(crate) fn seal_what_was_held_back(&mut self, ctx: &mut Ctx<'_>) {
        let waits = |redo: &Redo| redo.wanted > redo.sealed && redo.under_way.is_none();
        if self.redo.as_ref().is_some_and(|redo| waits(redo)) {
            self.write_redo(ctx);
        }
    }

    /// Seals and writes what is to be written, unless the last write is still under way.
    pub(crate) fn write_redo(&mut self, ctx: &mut Ctx<'_>) {
        let Some(mut redo) = self.redo.take() else { return };
        // The files are those of the former life while that one may be a member, as far as control's file says (RESTART-4).
        let is_member = self.joined_in != ViewNumber::default()
            && redo.wanted > Epoch::default()
            && !redo.is_mute();
        redo.end_checkpoint(ctx);
        redo.writer.set_restarts(self.view.restarts);
        if redo.under_way.is_none() && is_member {
            let seal = redo.wanted.min(self.sealable(ctx));
            if seal > redo.sealed {
                redo.seal(seal);
            }
            if redo.sealed > redo.sent || redo.is_much() {
                redo.write(ctx);
            }
        }
        self.redo = Some(redo);
        self.look_at_backlog(ctx);
    }

    /// Once a second: the last seal of a busy time says that its own epoch is durable everywhere, or nobody's log would
    /// (RESTART-2).
    pub(crate) fn note_durable(&mut self, ctx: &mut Ctx<'_>) {
        let Some(redo) = self.redo.as_mut().filter(|redo| !redo.is_mute()) else { return };
        let is_known = redo.noted >= redo.sealed || redo.cluster_durable < redo.sealed;
        if is_known && !redo.may_say_whole() || redo.under_way.is_some() || redo.waiting_bytes() > 0
        {
            return;
        }
        redo.seal(redo.sealed);
        redo.write(ctx);
    }

    /// As [`Self::write_redo`], if much waits.
    pub(crate) fn write_redo_if_much(&mut self, ctx: &mut Ctx<'_>) {
        if self.redo.as_ref().is_some_and(|redo| redo.is_much()) {
            self.write_redo(ctx);
        }
    }

    /// DURABLE-1: everything that is committed here up to this epoch is in the log. What is complete is decided, and
    /// decided at all replicas; this one may have to hear of the end.
    fn sealable(&self, ctx: &mut Ctx<'_>) -> Epoch {
        if ctx.fault(Fault::BugSealEarly) {
            return self.complete;
        }
        if !self.shown_early.is_empty() {
            return Epoch::default();
        }
        let complete = self.complete;
        let open_in = |t: &Transaction| {
            let decided = t.decided.or(t.carry.map(|carry| carry.epoch));
            let changes = || t.ops.iter().any(|op| op.version != 0);
            decided.filter(|at| *at <= complete && changes())
        };
        let open = self.transactions.iter().filter_map(|(_, t)| open_in(t)).min();
        open.map_or(complete, |open| Epoch::new(open.get().saturating_sub(1)))
    }

    /// A write is done: it, and all that was written before, is durable if it has brought a seal.
    pub(crate) fn on_io_conf(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let request = signal.body::<IoConf>().request;
        let Some(redo) = &mut self.redo else { return };
        let Some(done) = redo.under_way.take_if(|write| write.request == request) else { return };
        redo.backlog.note_room(false);
        let bytes = (done.taken.bytes.len() - END_BYTES) as u64;
        redo.lengths.log += bytes;
        redo.lengths.logged += bytes;
        if let Some(sealed) = done.taken.sealed {
            if redo.may_claim(done.taken.whole, ctx) {
                redo.durable = sealed;
            }
            redo.says_whole = redo.says_whole.max(done.taken.whole);
            redo.durable_record = done.taken.last_record;
            redo.trim(done.taken.segment);
            redo.remove_former(ctx);
        }
        redo.room = done.taken.bytes;
        if redo.waits_to_be_whole {
            self.report_if_synced(ctx);
        }
        self.tell_durable(ctx);
        self.begin_checkpoint(ctx);
        self.write_redo(ctx);
    }

    pub(crate) fn on_io_ref(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let body = signal.body::<IoRef>();
        self.on_restore_ref(&body, ctx);
        let Some(redo) = &mut self.redo else { return };
        if redo.under_way.as_ref().is_none_or(|write| write.request != body.request) {
            return;
        }
        if body.code == IO_GONE {
            // Whoever has the files says so.
            return redo.under_way = None;
        }
        if body.code != IO_FULL {
            // DURABLE-4: what a failed device has of earlier writes nobody knows.
            let stop = StopOrd { status: STATUS_DISK_FAILED };
            let why = "its disk has failed while the redo log was written; see the kernel's log, and replace it";
            return ctx.send_with(BlockRef::shell(ctx.node()), &stop, &[why.as_bytes()]);
        }
        redo.stuck = true;
        redo.backlog.note_room(true);
        // That may make room.
        redo.remove_former(ctx);
        ctx.after(ROOM_RETRY, crate::TIMER_ROOM);
    }

    /// There may be room on the disk again.
    pub(crate) fn write_again(&mut self, ctx: &mut Ctx<'_>) {
        let Some(redo) = &mut self.redo else { return };
        if core::mem::take(&mut redo.stuck)
            && let Some(write) = &redo.under_way
        {
            write.ask(redo.is_incomplete(), redo.writer.waiting_bytes(), ctx);
        }
    }

    /// DURABLE-3: tells control up to where all is durable, in each view anew.
    pub(crate) fn tell_durable(&mut self, ctx: &mut Ctx<'_>) {
        let view = self.view.number;
        let Some(redo) = &mut self.redo else { return };
        if (view, redo.durable) > redo.told && redo.durable > Epoch::default() {
            redo.told = (view, redo.durable);
            let body = EpochDurableRep { durable: redo.durable, view };
            ctx.send(BlockRef::control(ctx.node()), &body);
        }
    }
}

impl Redo {
    fn write(&mut self, ctx: &mut Ctx<'_>) {
        let room = core::mem::take(&mut self.room);
        let taken = self.writer.take(room, WRITE_BYTES_MAX, self.segment_bytes);
        self.requests += 1;
        self.sent = taken.sealed.unwrap_or(self.sent);
        let instance = ctx.me().instance as u16;
        let file = FileName { kind: FILE_REDO, instance, number: taken.segment };
        let write = UnderWay { request: self.requests, file, taken };
        write.ask(self.is_incomplete(), self.writer.waiting_bytes(), ctx);
        self.under_way = Some(write);
    }
}

impl UnderWay {
    /// `waiting`: so many bytes wait behind it.
    fn ask(&self, is_incomplete: bool, waiting: usize, ctx: &mut Ctx<'_>) {
        let syncs = self.taken.sealed.is_some() && !ctx.fault(Fault::BugForgetSync);
        let leaves_gaps = is_incomplete && self.taken.whole.is_none();
        let flags = if syncs { WRITE_SYNC } else { 0 } | if leaves_gaps { WRITE_ANEW } else { 0 };
        let (request, file, offset) = (self.request, self.file, self.taken.offset);
        let waiting_kib =
            u32::try_from((waiting + self.taken.bytes.len()) >> 10).unwrap_or(u32::MAX);
        let body = IoWriteReq { request, file, offset, flags, waiting_kib };
        ctx.ask_io(&body, &[&self.taken.bytes]);
    }
}
