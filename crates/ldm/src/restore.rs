//! Coming back from the redo log: what it can give back, and its rows as they were in an epoch (RESTART-2, RESTART-5).
//! Protocol: `docs/protocols/restart.md`.

mod gathered;
mod log_files;

use crate::{
    Fragment, Ldm, TIMER_RESTORE, decode_catalog, former::Former, found::FoundRows,
    outcomes::Outcomes,
};
use alloc::{boxed::Box, collections::BTreeMap, format, vec::Vec};
use gathered::{Ended, Gathered, OUTCOME_EPOCHS, note_changes};
use lats_base::{Epoch, FragmentId, SortedMap, TableId, TransactionId};
use lats_catalog::View;
use lats_files::redo::{Record, Survey, void_after};
use lats_kernel::Ctx;
use lats_signals::{
    BlockRef, Signal,
    commit::CHANGES_UNKNOWN,
    control::{NoteOrd, STATUS_WRONG_FILES, StopOrd},
    io::{IoListConf, IoReadConf, IoRef},
    restart::{RestoreReq, RestoredOrd, RestoredRep, SurveyRep, SurveyReq},
};
use log_files::LogFiles;
use zerocopy::FromBytes;

/// What is to be made of the log of the node's former lives.
pub(crate) struct Restore {
    files: LogFiles,
    step: Step,
    /// The whole log, as it was found.
    found: Survey,
    /// The epoch whose rows are being loaded.
    epoch: Epoch,
    restarts: u32,
    rows: FoundRows,
    /// What was found when the log was surveyed, and which restarts of the cluster were known then.
    gathered: Option<Gathered>,
    /// Transactions that it has shown, whose outcomes are still to be noted.
    ended: Ended,
    surveyed_with: Vec<Epoch>,
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
    /// The changes of rows, which others will say of whether they have changed since (REJOIN-8).
    Resuming,
}

/// So many of them are noted at once (SLICE-1).
const ENDED_AT_ONCE: usize = 4_096;

impl Restore {
    /// Reads the log once more.
    fn begin(&mut self, step: Step) {
        self.step = step;
        // For an attempt that came to nothing some may have been read, or loaded.
        self.rows.clear();
        self.ended.clear();
        self.files.begin();
    }

    /// Takes what was found when the log was surveyed, as it was in the epoch that is wanted. False if the log must be read once
    /// more.
    fn take_gathered(&mut self) -> bool {
        let gathered = self.gathered.take();
        let (known, restored) = (&self.surveyed_with, &self.files.restored);
        // RESTART-3: what later restarts have made void can only be what was written after the last one that was known.
        let fits = restored.starts_with(known) && self.found.begun_after() as usize <= known.len();
        let void_after = void_after(restored, known.len() as u32);
        let gathered = gathered.filter(|_| fits);
        let Some(known) = gathered.and_then(|rows| rows.into_rows(self.epoch, void_after)) else {
            return false;
        };
        (self.rows, self.ended) = known;
        true
    }
}

/// A list of epochs, 8 bytes each.
fn epochs(mut bytes: &[u8]) -> Vec<Epoch> {
    let mut epochs = Vec::new();
    while let Ok((epoch, behind)) = Epoch::read_from_prefix(bytes) {
        epochs.push(epoch);
        bytes = behind;
    }
    epochs
}

impl Ldm {
    /// RESTART-2: control asks what is in the log.
    pub(crate) fn on_survey_req(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let restored = epochs(signal.payload());
        let (cluster, part) = (signal.body::<SurveyReq>().cluster, self.config.slices.log_bytes);
        let mut files = LogFiles::new(cluster, restored, part, ctx);
        files.list(ctx);
        self.restore = Some(Box::new(Restore {
            files,
            step: Step::Listing,
            found: Survey::default(),
            epoch: Epoch::default(),
            restarts: 0,
            rows: BTreeMap::new(),
            gathered: Some(Gathered::default()),
            ended: Ended::default(),
            surveyed_with: Vec::new(),
        }));
    }

    pub(crate) fn on_io_list_conf(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let request = signal.body::<IoListConf>().request;
        let listing = |r: &&mut Box<Restore>| r.step == Step::Listing && r.files.waits_for(request);
        let Some(restore) = self.restore.as_mut().filter(listing) else { return };
        let numbers = signal.payload().chunks_exact(size_of::<u32>());
        let segments: Vec<u32> =
            numbers.filter_map(|bytes| Some(u32::from_le_bytes(bytes.try_into().ok()?))).collect();
        restore.step = Step::FindingEnd;
        if let (Some(redo), Some(last)) = (&mut self.redo, segments.last()) {
            redo.begin_behind(*last, segments.clone());
        }
        let is_empty = segments.is_empty();
        restore.files.are(segments);
        match is_empty {
            true => self.tell_survey(ctx),
            false => restore.files.read_head(ctx),
        }
    }

    pub(crate) fn on_io_read_conf(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let body = signal.body::<IoReadConf>();
        let Some(restore) = self.restore.as_mut().filter(|r| r.files.waits_for(body.request))
        else {
            return;
        };
        if restore.step == Step::FindingEnd {
            return self.find_end(signal.payload(), ctx);
        }
        let mut ended = Vec::new();
        let (step, epoch, rows) = (restore.step, restore.epoch, &mut restore.rows);
        let recent = Epoch::new(epoch.get().saturating_sub(OUTCOME_EPOCHS));
        let gathered = &mut restore.gathered;
        let show = |record: &Record<'_>, certain| match step {
            Step::Surveying => {
                let fits = gathered.as_mut().is_none_or(|rows| rows.note(record, certain));
                if !fits {
                    *gathered = None;
                }
            }
            Step::Reading if record.epoch <= epoch => {
                note_changes(rows, record.changes(), record.epoch, epoch);
                if record.epoch >= recent && record.transaction != TransactionId::NONE {
                    ended.push(record.transaction);
                }
            }
            Step::Resuming => note_changes(rows, record.changes(), record.epoch, epoch),
            _ => {}
        };
        let read = restore.files.take((signal.payload(), body.file_bytes), show, ctx);
        for transaction in ended {
            self.outcomes.note(transaction, (epoch, CHANGES_UNKNOWN), ctx.now());
        }
        match (read, step) {
            (Err(why), _) => self.refuse_file(why, ctx),
            (Ok(false), _) => {}
            (Ok(true), Step::Surveying) => self.end_survey(ctx),
            (Ok(true), Step::Resuming) => self.end_resuming(ctx),
            (Ok(true), Step::Reading) => self.begin_loading(ctx),
            (Ok(true), _) => {}
        }
    }

    fn find_end(&mut self, head: &[u8], ctx: &mut Ctx<'_>) {
        let Some(restore) = &mut self.restore else { return };
        match restore.files.find_end(head) {
            Err(why) => self.refuse_file(why, ctx),
            Ok(true) => {
                restore.step = Step::Surveying;
                restore.files.begin();
                restore.files.read(ctx);
            }
            Ok(false) if restore.files.segments.is_empty() => self.tell_survey(ctx),
            Ok(false) => restore.files.read_head(ctx),
        }
    }

    /// A file could not be read.
    pub(crate) fn on_restore_ref(&mut self, body: &IoRef, ctx: &mut Ctx<'_>) {
        if self.restore.as_ref().is_some_and(|r| r.files.waits_for(body.request)) {
            self.refuse_file("it cannot be read; see the kernel's log", ctx);
        }
    }

    fn refuse_file(&self, why: &str, ctx: &mut Ctx<'_>) {
        let file = self.restore.as_ref().map(|r| r.files.current()).unwrap_or_default();
        self.refuse_log(&format!("file {file} of the redo log"), why, ctx);
    }

    fn refuse_log(&self, what: &str, why: &str, ctx: &mut Ctx<'_>) {
        let text = format!(
            "{what} of data manager {} cannot be used: {why}. Put the right files there, or empty this \
             node's directory: it is filled from the other replicas then",
            self.instance
        );
        let stop = StopOrd { status: STATUS_WRONG_FILES };
        ctx.send_with(BlockRef::shell(ctx.node()), &stop, &[text.as_bytes()]);
    }

    fn end_survey(&mut self, ctx: &mut Ctx<'_>) {
        if let Some(restore) = &mut self.restore {
            restore.found = restore.files.survey.clone();
            restore.surveyed_with = restore.files.restored.clone();
            // Given back now, while nobody counts on this node yet: there may be much of it.
            let begins_anew =
                restore.found.whole.1 == Epoch::default() || restore.found.is_mostly_filling();
            restore.gathered.take_if(|rows| begins_anew || rows.is_too_much_at_end());
        }
        self.tell_survey(ctx);
    }

    fn tell_survey(&mut self, ctx: &mut Ctx<'_>) {
        let Some(restore) = &mut self.restore else { return };
        restore.step = Step::Surveyed;
        let Survey { newest, mut durable, passed_over, .. } = restore.found;
        let instance = self.instance;
        if restore.files.is_unreadable() {
            // More than this log can give back, however much it was.
            durable = durable.max(Epoch::new(1));
            let text = format!(
                "the redo log of data manager {instance} is damaged: none of its segments has a head that can be read; another replica gives back its rows"
            );
            let (shell, note) = (BlockRef::shell(ctx.node()), NoteOrd { loud: 0 });
            ctx.send_with(shell, &note, &[text.as_bytes()]);
        }
        let body = SurveyRep { newest, durable, instance, reserved: 0 };
        let steps = lats_catalog::encode(&restore.found.steps);
        ctx.send_with(BlockRef::control(ctx.node()), &body, &[&steps]);
        if passed_over > 0 {
            let text = format!(
                "the redo log of data manager {instance} is damaged: {passed_over} of its segments do not continue what stands before \
                 them. It gives back what stands before; another replica gives back what is missing"
            );
            ctx.send_with(BlockRef::shell(ctx.node()), &NoteOrd { loud: 0 }, &[text.as_bytes()]);
        }
    }

    /// RESTART-5: the rows as they were in this epoch are wanted.
    pub(crate) fn on_restore_req(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let known = lats_catalog::decode::<(View, Vec<Epoch>, Vec<u8>)>(signal.payload());
        let Ok((view, restored, catalog)) = known else { return };
        let Some(catalog) = decode_catalog(&catalog) else { return };
        let before = |step| matches!(step, Step::Listing | Step::FindingEnd | Step::Surveying);
        let Some(restore) = self.restore.as_mut().filter(|r| !before(r.step)) else { return };
        let RestoreReq { epoch, restarts } = signal.body();
        restore.files.restored = restored;
        (restore.epoch, restore.restarts) = (epoch, restarts as u32);
        let reads = !restore.take_gathered();
        if reads {
            restore.begin(Step::Reading);
        }
        // Checkpoints have replaced what was committed long ago, and refusals were never logged.
        self.outcomes = Outcomes::begun_at(ctx.now(), false);
        self.hear_epoch(epoch);
        self.forget_catalog();
        self.install_catalog(&catalog);
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
        match self.restore.as_mut().filter(|r| reads && !r.files.segments.is_empty()) {
            Some(restore) => restore.files.read(ctx),
            None => self.begin_loading(ctx),
        }
    }

    /// These are the restarts that the cluster has had.
    pub(crate) fn on_restored_ord(&mut self, signal: &Signal<'_>) {
        if signal.body::<RestoredOrd>().is_filled != 0 {
            self.forget_catalog();
        }
        if let Some(restore) = &mut self.restore {
            restore.files.restored = epochs(signal.payload());
        }
    }

    /// REJOIN-8: the node is taken in as a replica that is to be filled; it may have been about to take part in a restart
    /// that came to nothing. Its log goes on, and what it has of rows is read meanwhile.
    pub(crate) fn begin_to_be_filled(&mut self, ctx: &mut Ctx<'_>) {
        self.outcomes = Outcomes::begun_at(ctx.now(), true);
        let Some(restore) = &mut self.restore else { return };
        let (restarts, whole) = restore.found.whole;
        restore.epoch = whole.min(void_after(&restore.files.restored, restarts));
        let Survey { last_record, newest, .. } = restore.found;
        let origin = restore.files.origin;
        let Some(redo) = &mut self.redo else { return };
        if restore.epoch == Epoch::default() || restore.found.is_mostly_filling() {
            redo.begin_anew();
            self.restore = None;
            return;
        }
        redo.go_on_filling(origin, (last_record, newest));
        match restore.take_gathered() {
            true => self.end_resuming(ctx),
            false => {
                restore.begin(Step::Resuming);
                restore.files.read(ctx);
            }
        }
    }

    /// All rows of the log are here.
    fn end_resuming(&mut self, ctx: &mut Ctx<'_>) {
        let Some(restore) = self.restore.take() else { return };
        if let Some(redo) = &mut self.redo {
            redo.lengths.log += restore.files.log_bytes;
        }
        self.former = Some(Box::new(Former::new(restore.epoch, restore.rows)));
        self.ask_for_copies(ctx);
    }

    /// What an attempt to restart has brought may never have been agreed on: tables may be missing in it, or too many.
    fn forget_catalog(&mut self) {
        self.clear_fragments();
        self.tables = SortedMap::new();
        (self.catalog_version, self.built_catalog) = (0, 0);
        self.next_table = TableId::new(0);
    }

    fn clear_fragments(&mut self) {
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
            let Survey { last_record, newest, .. } = restore.files.survey;
            let read = (last_record, newest, restore.files.log_bytes);
            redo.go_on_with(restore.files.origin, read, restore.epoch);
        }
        self.load(ctx);
    }

    /// Makes some of what was read rows of fragments.
    pub(crate) fn load(&mut self, ctx: &mut Ctx<'_>) {
        let Some(restore) = self.restore.as_mut().filter(|r| r.step == Step::Loading) else {
            return;
        };
        if !restore.ended.is_empty() {
            let (upto, now) = (restore.epoch, ctx.now());
            let recent = Epoch::new(upto.get().saturating_sub(OUTCOME_EPOCHS));
            let some = restore.ended.drain(..restore.ended.len().min(ENDED_AT_ONCE));
            for (_, transaction) in some.filter(|(at, _)| (recent..=upto).contains(at)) {
                self.outcomes.note(transaction, (upto, CHANGES_UNKNOWN), now);
            }
            return ctx.after(lats_base::Duration::ZERO, TIMER_RESTORE);
        }
        let Some(((table, fragment), mut rows)) = restore.rows.pop_first() else {
            // It may be asked for another epoch, until there is a view.
            restore.step = Step::Surveyed;
            let body = RestoredRep { instance: self.instance, restarts: restore.restarts };
            return ctx.send(BlockRef::control(ctx.node()), &body);
        };
        let some = rows.first_ids();
        // In an epoch a key is in one row.
        let fits =
            self.on_fragment(table, fragment, |f, layout| f.store_found(&mut rows, &some, layout));
        if fits.is_none() {
            // Of tables that were dropped there are no fragments.
            drop(rows.take_first());
        }
        if let Some(restore) = self.restore.as_mut().filter(|_| !rows.is_empty()) {
            restore.rows.insert((table, fragment), rows);
        }
        if fits == Some(false) {
            return self.refuse_log("the redo log", "its rows contradict each other", ctx);
        }
        ctx.after(lats_base::Duration::ZERO, TIMER_RESTORE);
    }
}
