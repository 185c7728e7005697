//! A coordinator of a node that is to stop, or to end: it begins nothing any more, and says when nothing is left
//! (STOP-2, CLOSE-2; `docs/protocols/close.md`).

use crate::{
    Tc,
    transaction::{State, Transaction},
};
use alloc::vec::Vec;
use lats_base::{RefCode, TransactionId};
use lats_kernel::Ctx;
use lats_signals::{
    BlockRef,
    control::{CLOSE_ALL, QuietRep},
};

impl Tc {
    /// What control says of the end of this node.
    pub(crate) fn hear_closing(&mut self, closing: u64, ctx: &mut Ctx<'_>) {
        if closing <= self.closing {
            return;
        }
        (self.closing, self.quiet) = (closing, false);
        // What waits for a hand-over would begin.
        self.release_held(ctx);
        if closing == CLOSE_ALL {
            let ids: Vec<TransactionId> = self.transactions.ids();
            ids.into_iter().for_each(|id| self.abort(id, RefCode::ShuttingDown.into(), ctx));
        }
    }

    /// STOP-2: says that this coordinator has nothing left to do, when its node is to stop or to end.
    pub(crate) fn be_quiet(&mut self, ctx: &mut Ctx<'_>) {
        let is_told = self.closing > 0 || self.view.is_stopping(ctx.node());
        if !is_told || (self.quiet && self.closing == 0) {
            return;
        }
        // Of what was rolled back at the end some clients do not ask any more.
        let is_over = |t: &Transaction| self.closing == CLOSE_ALL && t.state == State::Aborted;
        let is_quiet = self.held.is_empty()
            && !self.has_unfinished()
            && self.transactions.iter().all(|(_, t)| is_over(t));
        if is_quiet != self.quiet {
            self.quiet = is_quiet;
            // An heir may have something to do again: what a dead coordinator had decided.
            let closing = if is_quiet { self.closing } else { 0 };
            let (view, epoch) = (self.view.number, self.epochs.current);
            ctx.send(BlockRef::control(ctx.node()), &QuietRep { view, epoch, closing });
        }
    }
}
