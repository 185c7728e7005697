//! Coming back from the redo log: what it can give back, and its rows as they were in an epoch (RESTART-2, RESTART-5).
//! Protocol: `docs/protocols/restart.md`.

use crate::{Fragment, Ldm, TIMER_RESTORE};
use alloc::{boxed::Box, collections::BTreeMap, format, vec::Vec};
use lats_base::{Epoch, FragmentId, NodeId, RowId, TableId, TransactionId};
use lats_catalog::View;
use lats_files::redo::{NEWER, Record, SEGMENT_HEAD_BYTES, Segment, Survey, void_after};
use lats_kernel::{Ctx, Fault};
use lats_signals::{
    BlockRef, Signal,
    control::{NoteOrd, STATUS_WRONG_FILES, StopOrd},
    io::{FILE_REDO, FileName, IoListConf, IoListReq, IoReadConf, IoReadReq, IoRef},
    restart::{RestoreReq, RestoredRep, SurveyRep, SurveyReq},
};
use zerocopy::FromBytes;

/// Reading the log of the node's former lives.
pub(crate) struct Restore {
    cluster: u64,
    /// The epoch that each restart of the cluster has begun with.
    restored: Vec<Epoch>,
    /// The files that are there, and the first of them that the log has.
    segments: Vec<u32>,
    origin: u32,
    step: Step,
    /// The segment that is being read, and what has been read of it.
    at: usize,
    bytes: Vec<u8>,
    survey: Survey,
    log_bytes: u64,
    /// The epoch whose rows are being loaded.
    epoch: Epoch,
    restarts: u32,
    rows: BTreeMap<(TableId, FragmentId), BTreeMap<RowId, Found>>,
    requests: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Which files are there?
    Listing,
    /// Which is the last one with a head?
    FindingEnd,
    /// What is in them?
    Surveying,
    /// Control knows it.
    Surveyed,
    /// The changes of rows.
    Reading,
    /// They are made rows of fragments.
    Loading,
}

/// The newest change of a row, up to the epoch.
struct Found {
    number: u64,
    epoch: Epoch,
    key: Box<[u8]>,
    /// None: deleted.
    image: Option<Box<[u8]>>,
}

/// Requests of its own among those to io.
const REQUESTS: u64 = 1 << 63;
/// So much is read at once.
const READ_BYTES: u32 = 256 << 10;
/// Rows that are put into fragments at once (SLICE-1).
const LOAD_ROWS: usize = 4_096;
/// Outcomes of transactions in this many epochs are known again: as long as outcomes are kept.
const OUTCOME_EPOCHS: u64 = 6_000;

impl Restore {
    /// Asks for the next part of the current segment.
    fn read(&mut self, ctx: &mut Ctx<'_>) {
        let Some(number) = self.segments.get(self.at).copied() else { return };
        let bytes = if self.step == Step::FindingEnd { SEGMENT_HEAD_BYTES } else { READ_BYTES };
        self.requests += 1;
        let body = IoReadReq {
            request: REQUESTS | self.requests,
            file: FileName { kind: FILE_REDO, instance: ctx.me().instance as u16, number },
            offset: self.bytes.len() as u64,
            bytes,
            reserved: 0,
        };
        ctx.send(BlockRef::io(ctx.node()), &body);
    }

    /// The last segment that has a head says where the log begins. Gives what is wrong with files that are none of ours.
    fn find_end(&mut self, head: &[u8], node: NodeId, instance: u16) -> Result<bool, &'static str> {
        let number = self.segments[self.at];
        match Segment::open(head) {
            Err(NEWER) => Err(NEWER),
            // It was begun when the power was lost.
            Err(_) => Ok(false),
            Ok(segment) => {
                let log = segment.log;
                if (log.cluster, log.node, log.instance) != (self.cluster, node, instance) {
                    return Err("it belongs to another cluster or node");
                }
                if segment.number != u64::from(number) {
                    return Err("it was given another name");
                }
                self.origin = segment.origin;
                Ok(true)
            }
        }
    }

    /// The current segment is here as a whole.
    fn take_segment(&mut self, ctx: &mut Ctx<'_>) -> Vec<TransactionId> {
        let mut ended = Vec::new();
        let bytes = core::mem::take(&mut self.bytes);
        let number = u64::from(self.segments[self.at]);
        self.log_bytes += bytes.len() as u64;
        self.at += 1;
        let Ok(mut segment) = Segment::open(&bytes) else {
            self.survey.passed_over += 1;
            return ended;
        };
        if segment.number != number || segment.log.cluster != self.cluster {
            self.survey.passed_over += 1;
            return ended;
        }
        // RESTART-3: what this restart makes void is among it.
        let void_after = void_after(&self.restored, segment.restarts);
        let forgets = ctx.fault(Fault::BugForgetRestarts);
        let upto = if forgets { Epoch::new(u64::MAX) } else { void_after };
        let loads = self.step == Step::Reading;
        let recent = Epoch::new(upto.get().saturating_sub(OUTCOME_EPOCHS));
        let rows = &mut self.rows;
        self.survey.read(&mut segment, &self.restored, |record| {
            if loads && record.epoch <= upto {
                note_changes(rows, record);
                if record.epoch >= recent && record.transaction != TransactionId::NONE {
                    ended.push(record.transaction);
                }
            }
        });
        ended
    }
}

/// Of a row's changes the one with the largest number counts: they need not stand in that order.
fn note_changes(
    rows: &mut BTreeMap<(TableId, FragmentId), BTreeMap<RowId, Found>>,
    record: &Record<'_>,
) {
    for change in record.changes() {
        let rows = rows.entry((change.table, change.fragment)).or_default();
        if rows.get(&change.row).is_some_and(|found| found.number >= change.number) {
            continue;
        }
        let found = Found {
            number: change.number,
            epoch: record.epoch,
            key: change.key.into(),
            image: change.image.map(Into::into),
        };
        rows.insert(change.row, found);
    }
}

impl Ldm {
    /// RESTART-2: control asks what is in the log.
    pub(crate) fn on_survey_req(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let mut restored = Vec::new();
        let mut rest = signal.payload();
        while let Ok((epoch, behind)) = Epoch::read_from_prefix(rest) {
            restored.push(epoch);
            rest = behind;
        }
        self.restore = Some(Box::new(Restore {
            cluster: signal.body::<SurveyReq>().cluster,
            restored,
            segments: Vec::new(),
            origin: 0,
            step: Step::Listing,
            at: 0,
            bytes: Vec::new(),
            survey: Survey::default(),
            log_bytes: 0,
            epoch: Epoch::default(),
            restarts: 0,
            rows: BTreeMap::new(),
            requests: 0,
        }));
        let instance = ctx.me().instance as u16;
        let body = IoListReq { request: REQUESTS, kind: FILE_REDO, instance, reserved: 0 };
        ctx.send(BlockRef::io(ctx.node()), &body);
    }

    pub(crate) fn on_io_list_conf(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let request = signal.body::<IoListConf>().request;
        let Some(restore) = self.restore.as_mut().filter(|r| r.step == Step::Listing) else {
            return;
        };
        if request != REQUESTS {
            return;
        }
        let numbers = signal.payload().chunks_exact(size_of::<u32>());
        restore.segments =
            numbers.filter_map(|bytes| Some(u32::from_le_bytes(bytes.try_into().ok()?))).collect();
        restore.step = Step::FindingEnd;
        restore.at = restore.segments.len().saturating_sub(1);
        if let (Some(redo), Some(last)) = (&mut self.redo, restore.segments.last()) {
            redo.begin_behind(*last, restore.segments.clone());
        }
        match restore.segments.is_empty() {
            true => self.tell_survey(ctx),
            false => restore.read(ctx),
        }
    }

    pub(crate) fn on_io_read_conf(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let body = signal.body::<IoReadConf>();
        let Some(restore) = &mut self.restore else { return };
        if body.request != REQUESTS | restore.requests {
            return;
        }
        match restore.step {
            Step::FindingEnd => {
                let instance = ctx.me().instance as u16;
                match restore.find_end(signal.payload(), ctx.node(), instance) {
                    Err(why) => self.refuse_file(why, ctx),
                    Ok(true) => {
                        let origin = restore.origin;
                        restore.segments.retain(|segment| *segment >= origin);
                        restore.survey = Survey::of(origin);
                        (restore.step, restore.at) = (Step::Surveying, 0);
                        restore.read(ctx);
                    }
                    Ok(false) if restore.at > 0 => {
                        restore.segments.pop();
                        restore.at -= 1;
                        restore.read(ctx);
                    }
                    Ok(false) => {
                        restore.segments.clear();
                        self.tell_survey(ctx);
                    }
                }
            }
            Step::Surveying | Step::Reading => {
                restore.bytes.extend_from_slice(signal.payload());
                let more = (restore.bytes.len() as u64) < body.file_bytes;
                if more && !signal.payload().is_empty() {
                    return restore.read(ctx);
                }
                self.end_segment(ctx);
            }
            Step::Listing | Step::Surveyed | Step::Loading => {}
        }
    }

    /// A file could not be read.
    pub(crate) fn on_restore_ref(&mut self, body: &IoRef, ctx: &mut Ctx<'_>) {
        let current = self.restore.as_ref().map(|r| REQUESTS | r.requests);
        if current == Some(body.request) {
            self.refuse_file("it cannot be read; see the kernel's log", ctx);
        }
    }

    fn refuse_file(&self, why: &str, ctx: &mut Ctx<'_>) {
        let Some(restore) = &self.restore else { return };
        let number = restore.segments.get(restore.at).copied().unwrap_or_default();
        let text = format!(
            "the redo log file {number} of data manager {} cannot be used: {why}. Put the right file there, or empty this \
             node's directory: it is filled from the other replicas then",
            self.instance
        );
        let stop = StopOrd { status: STATUS_WRONG_FILES };
        ctx.send_with(BlockRef::shell(ctx.node()), &stop, &[text.as_bytes()]);
    }

    fn end_segment(&mut self, ctx: &mut Ctx<'_>) {
        let Some(restore) = &mut self.restore else { return };
        let (ended, epoch) = (restore.take_segment(ctx), restore.epoch);
        let is_last = restore.at >= restore.segments.len();
        if !is_last {
            restore.read(ctx);
        } else if restore.step == Step::Surveying {
            self.tell_survey(ctx);
        } else {
            self.begin_loading(ctx);
        }
        for transaction in ended {
            self.outcomes.note(transaction, epoch, ctx.now());
        }
    }

    fn tell_survey(&mut self, ctx: &mut Ctx<'_>) {
        let Some(restore) = &mut self.restore else { return };
        restore.step = Step::Surveyed;
        let Survey { newest, durable, passed_over, .. } = restore.survey;
        let instance = self.instance;
        let body = SurveyRep { newest, durable, instance, reserved: 0 };
        let steps = lats_catalog::encode(&restore.survey.steps);
        ctx.send_with(BlockRef::control(ctx.node()), &body, &[&steps]);
        if passed_over > 0 {
            let text = format!(
                "the redo log of data manager {instance} is damaged: {passed_over} of its segments do not continue what stands before \
                 them. It gives back what stands before; another replica gives back what is missing"
            );
            ctx.send_with(
                BlockRef::shell(ctx.node()),
                &NoteOrd { reserved: 0 },
                &[text.as_bytes()],
            );
        }
    }

    /// RESTART-5: the rows as they were in this epoch are wanted.
    pub(crate) fn on_restore_req(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let known = lats_catalog::decode::<(View, Vec<Epoch>)>(signal.payload());
        let Ok((view, restored)) = known else { return };
        let before = |step| matches!(step, Step::Listing | Step::FindingEnd | Step::Surveying);
        let Some(restore) = self.restore.as_mut().filter(|r| !before(r.step)) else { return };
        let RestoreReq { epoch, restarts } = signal.body();
        restore.restored = restored;
        (restore.epoch, restore.restarts) = (epoch, restarts as u32);
        restore.step = Step::Reading;
        (restore.survey, restore.log_bytes) = (Survey::of(restore.origin), 0);
        restore.bytes.clear();
        // For an attempt that came to nothing some may have been read, or loaded.
        restore.rows.clear();
        (restore.at, restore.requests) = (0, restore.requests + 1);
        self.hear_epoch(epoch);
        self.clear_fragments();
        for table in self.tables.values_mut() {
            for id in (0..table.def.fragment_count).map(FragmentId::new) {
                let mine = view.ldm_instance(id) == self.instance;
                if mine && view.is_replica(ctx.node(), id) {
                    let fragment =
                        table.fragments.get_or_insert_with(id, || Fragment::new(&table.def));
                    fragment.snapshot_floor = epoch;
                }
            }
        }
        match self.restore.as_mut().filter(|r| !r.segments.is_empty()) {
            Some(restore) => restore.read(ctx),
            None => self.begin_loading(ctx),
        }
    }

    pub(crate) fn clear_fragments(&mut self) {
        for table in self.tables.values_mut() {
            for (_, fragment) in core::mem::take(&mut table.fragments) {
                self.memory_bytes -= fragment.bytes();
                self.catalog_work.rubble.push(fragment.into_rubble());
            }
        }
    }

    fn begin_loading(&mut self, ctx: &mut Ctx<'_>) {
        let Some(restore) = &mut self.restore else { return };
        restore.step = Step::Loading;
        if let Some(redo) = &mut self.redo {
            let read = (restore.survey.last_record, restore.log_bytes);
            redo.go_on_with(restore.origin, read, restore.epoch);
        }
        self.load(ctx);
    }

    /// Makes some of what was read rows of fragments.
    pub(crate) fn load(&mut self, ctx: &mut Ctx<'_>) {
        let Some(restore) = self.restore.as_mut().filter(|r| r.step == Step::Loading) else {
            return;
        };
        let Some(mut entry) = restore.rows.first_entry() else {
            // It may be asked for another epoch, until there is a view.
            restore.step = Step::Surveyed;
            let body = RestoredRep { instance: self.instance, restarts: restore.restarts };
            return ctx.send(BlockRef::control(ctx.node()), &body);
        };
        let (table, fragment) = *entry.key();
        let rows = entry.get_mut();
        let mut some = Vec::new();
        while some.len() < LOAD_ROWS
            && let Some(row) = rows.pop_first()
        {
            some.push(row);
        }
        if rows.is_empty() {
            entry.remove();
        }
        // Of tables that were dropped there are no fragments.
        let fits = self.on_fragment(table, fragment, |f, layout| {
            some.into_iter().all(|(id, found)| {
                f.hear_number(found.number);
                let Some(image) = found.image else { return true };
                // In an epoch a key is in one row.
                let free = f.make_room(id, &found.key);
                free && f.store_copy(id, found.number, found.epoch, Some(&image), layout)
            })
        });
        if fits == Some(false) {
            return self.refuse_file("its rows contradict each other", ctx);
        }
        ctx.after(lats_base::Duration::ZERO, TIMER_RESTORE);
    }
}
