//! A log whose directory is gone: nothing of it can be found again. What is logged meanwhile goes nowhere; when there is a directory
//! again, all rows are written into a new log, and until that is whole on disk nothing here counts as durable (GONE-2, GONE-4, GONE-5).
//! Protocol: `docs/protocols/gone.md`.

use crate::{Ldm, TIMER_CHECKPOINT, checkpoint::Checkpoint, redo::Redo};
use alloc::format;
use lats_base::{Duration, Epoch};
use lats_kernel::{Ctx, Fault};
use lats_signals::{BlockRef, Signal, control::NoteOrd, io::DirectoryRep};

/// What the log stands on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Footing {
    /// Its files.
    #[default]
    Files,
    /// Nothing: the directory is gone.
    Gone,
    /// There is a directory again, and the log is begun as soon as it can be.
    Empty,
    /// All rows are being written into it; nothing is durable before a seal that says that the log is whole.
    Anew,
}

/// It is looked again whether a new log can be begun.
const BEGINS_AGAIN: Duration = Duration::from_millis(1);

impl Redo {
    /// True while what is logged goes nowhere.
    pub(crate) fn is_mute(&self) -> bool {
        matches!(self.footing, Footing::Gone | Footing::Empty)
    }

    /// True until all rows are in the new log.
    pub(crate) fn is_incomplete(&self) -> bool {
        self.footing != Footing::Files
    }

    fn lose_files(&mut self) {
        self.footing = Footing::Gone;
        self.forget_all();
    }

    /// The last write is safe: may what it seals be called durable?
    pub(crate) fn may_claim(&mut self, whole: Option<Epoch>, ctx: &mut Ctx<'_>) -> bool {
        let is_complete =
            |ctx: &mut Ctx<'_>| whole.is_some() || ctx.fault(Fault::BugClaimUnwritten);
        if self.footing == Footing::Anew && is_complete(ctx) {
            self.footing = Footing::Files;
            let instance = ctx.me().instance;
            let text =
                format!("data manager {instance} has all its rows in a new redo log, on disk");
            let shell = BlockRef::shell(ctx.node());
            ctx.send_with(shell, &NoteOrd { loud: 0 }, &[text.as_bytes()]);
        }
        self.footing == Footing::Files
    }

    /// All rows are in the new log, the newest of them of this epoch: from the next seal of that or a later one on it is whole.
    pub(crate) fn end_writing_anew(&mut self) -> bool {
        let Some((_, epoch)) = self.checkpoint.as_ref().and_then(|c| c.ends()) else {
            return false;
        };
        let ends = self.footing == Footing::Anew;
        if ends {
            self.checkpoint = None;
            self.be_whole_since(epoch);
        }
        ends
    }
}

impl Ldm {
    /// The directory of the node is gone, or there is one again.
    pub(crate) fn on_directory_rep(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let gone = signal.body::<DirectoryRep>().gone != 0;
        let Some(redo) = &mut self.redo else { return };
        if gone {
            redo.lose_files();
            self.look_at_backlog(ctx);
        } else if redo.footing == Footing::Gone {
            redo.footing = Footing::Empty;
            self.write_anew(ctx);
        }
    }

    /// GONE-4: begins a new log, when no image is kept that was passed over, as a checkpoint does (CHECKPOINT-2).
    pub(crate) fn write_anew(&mut self, ctx: &mut Ctx<'_>) {
        let may = self.shown_early.is_empty() && self.view.is_in_sync(ctx.node());
        let Some(redo) = &mut self.redo else { return };
        if redo.footing != Footing::Empty {
            return;
        }
        if may && !redo.leaks() {
            redo.footing = Footing::Anew;
            redo.begin_behind_all();
            let all = self.tables.values().flat_map(|t| t.fragments.keys().map(|f| (t.def.id, *f)));
            redo.checkpoint = Some(Checkpoint::of_all(all.collect()));
        }
        ctx.after(BEGINS_AGAIN, TIMER_CHECKPOINT);
    }

    /// True once it knows that its directory is gone, until there is a log again; or if it keeps none. For the simulator.
    pub fn has_heard_of_directory(&self) -> bool {
        self.redo.as_ref().is_none_or(|redo| redo.is_incomplete())
    }

    /// True while nothing that it has committed counts as on its disk (GONE-5). For the simulator.
    pub fn has_no_log(&self) -> bool {
        self.redo.as_ref().is_some_and(|redo| redo.is_incomplete())
    }
}
