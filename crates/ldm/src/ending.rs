//! Ends a transaction, or takes statements of it back, in slices (SLICE-1 to SLICE-4): a million rows
//! are as little reason to miss a lease, or to let others wait, as one.

use crate::{
    Ldm,
    ahead::GROUP,
    transaction::{Op, Transaction},
};
use alloc::{collections::VecDeque, vec::Vec};
use lats_base::{Epoch, NodeId, TransactionId, ViewNumber};
use lats_kernel::{Ctx, Fault};
use lats_signals::{
    BlockRef, Signal,
    commit::{
        ABORT_AS_BACKUP, ABORT_AS_PRIMARY, AbortConf, CHANGES_UNKNOWN, CommitConf, EndingResumeOrd,
    },
};

/// Who gave the order, and in which view.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    pub(crate) to: BlockRef,
    pub(crate) view: ViewNumber,
}

/// What is to be done with a transaction's changes and locks, and who is told when it is done.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Goal {
    /// Rows of which this node is primary become visible, and are unlocked.
    Commit { answer: Answer },
    /// All rows become visible, and the transaction is an outcome from then on.
    Complete,
    /// What statements from `from` on changed never happened: in rows of which this node is not
    /// primary, or in all. From 0: all of them, with the locks.
    TakeBack { answer: Answer, from: u32, as_backup: bool },
}

/// A transaction's end that is under way here.
#[derive(Debug)]
pub(crate) struct Ending {
    goal: Goal,
    step: Step,
}

/// First every version, with its row's lock if it is the last one of the row; then the locks that are left, and those
/// of what was taken back: a row may have been changed more than once, and nobody may lock it before the last of
/// its changes is visible (SLICE-2).
#[derive(Debug)]
enum Step {
    /// The versions of the operations before this one are dealt with, in their order (COMMIT-7).
    Versions(usize),
    /// So many operations are still to be looked at, at the front; those that stay are behind them.
    Locks(usize),
}

impl Ending {
    /// From the beginning again, with all operations that are left in their order (SLICE-3).
    fn restart(&mut self, ops: &mut VecDeque<Op>) {
        if let Step::Locks(left) = self.step {
            ops.rotate_left(left);
        }
        self.step = Step::Versions(0);
    }
}

impl Goal {
    /// UNIQUE-5: entries of unique indexes wait until the rows are visible everywhere.
    fn concerns(self, op: &Op, early: bool, is_primary: impl Fn(&Op) -> bool) -> bool {
        match self {
            Self::Commit { .. } => is_primary(op) && (early || !op.of_index),
            Self::Complete => true,
            Self::TakeBack { from, as_backup, .. } => {
                op.statement >= from && !(as_backup && is_primary(op))
            }
        }
    }
}

/// Versions of a row that take as long to look at as another row.
const VERSIONS_PER_WORK: usize = 8;

/// What a slice leaves to be done by others.
#[derive(Default)]
struct Slice {
    /// Transactions whose locks have been granted.
    granted: Vec<TransactionId>,
    done: bool,
}

fn takes_back(goal: Goal) -> bool {
    matches!(goal, Goal::TakeBack { .. })
}

impl Ldm {
    /// Starts to end a transaction, or starts again with another goal (SLICE-3).
    pub(crate) fn end(&mut self, id: TransactionId, goal: Goal, ctx: &mut Ctx<'_>) {
        let Some(t) = self.transactions.get_mut(&id) else { return };
        if let Some(ending) = &mut t.ending {
            ending.restart(&mut t.ops);
            // Its next slice is on its way.
            ending.goal = goal;
            return;
        }
        if !takes_back(goal) && t.changes.is_none() {
            // Who is being filled has had some of them only.
            let is_full = self.view.is_in_sync(ctx.node());
            t.changes = Some(if is_full { count_changes(&t.ops) } else { CHANGES_UNKNOWN });
        }
        t.ending = Some(Ending { goal, step: Step::Versions(0) });
        self.end_slice(id, ctx);
    }

    /// SLICE-3: who is primary of what has changed.
    pub(crate) fn restart_endings(&mut self) {
        self.transactions.for_each_mut(|_, t| {
            if let Some(ending) = &mut t.ending {
                ending.restart(&mut t.ops);
            }
        });
    }

    pub(crate) fn on_ending_resume_ord(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        self.end_slice(signal.body::<EndingResumeOrd>().transaction, ctx);
    }

    /// SLICE-1: deals with some operations, and tells itself to go on.
    fn end_slice(&mut self, id: TransactionId, ctx: &mut Ctx<'_>) {
        let Some(t) = self.transactions.get_mut(&id) else { return };
        let Some(mut ending) = t.ending.take() else { return };
        let epoch = t.decided.unwrap_or_default();
        let mut ops = core::mem::take(&mut t.ops);
        let slice = self.work_on(id, &mut ending, epoch, &mut ops, ctx);
        if let Some(redo) = &mut self.redo {
            redo.end_record();
        }
        let Some(t) = self.transactions.get_mut(&id) else { return };
        t.ops = ops;
        if slice.done {
            self.ended(id, ending.goal, ctx);
        } else {
            let hasty = ctx.fault(Fault::BugConfirmFirstSlice);
            if let (Goal::Commit { answer }, true) = (ending.goal, hasty) {
                ctx.send(answer.to, &CommitConf { transaction: id, view: answer.view });
            }
            t.ending = Some(ending);
            ctx.send(ctx.me(), &EndingResumeOrd { transaction: id });
        }
        self.write_redo_if_much(ctx);
        slice.granted.into_iter().for_each(|t| self.resume_batch(t, ctx));
    }

    fn work_on(
        &mut self,
        id: TransactionId,
        ending: &mut Ending,
        epoch: Epoch,
        ops: &mut VecDeque<Op>,
        ctx: &mut Ctx<'_>,
    ) -> Slice {
        let me = ctx.node();
        let mut slice = Slice::default();
        let goal = ending.goal;
        let early = ctx.fault(Fault::BugShowIndexEarly);
        // What is logged is read; a single row's misses overlap with nothing.
        let fetches = self.redo.is_some() && ops.len() > 1 && !takes_back(goal);
        let mut work = 0;
        while work < self.config.slices.rows {
            work += 1;
            match &mut ending.step {
                Step::Versions(at) => {
                    // Of changes of one row the newest is taken back first: it stands at the end.
                    let next = match takes_back(goal) {
                        true => ops.len().checked_sub(1 + *at),
                        false => Some(*at),
                    };
                    if fetches && at.is_multiple_of(GROUP) {
                        self.fetch_versions(ops.iter().skip(*at).take(GROUP));
                    }
                    let Some(op) = next.and_then(|next| ops.get_mut(next)) else {
                        ending.step = Step::Locks(ops.len());
                        continue;
                    };
                    *at += 1;
                    if op.version != 0 && goal.concerns(op, early, |op| self.is_primary_of(op, me))
                    {
                        let granted = &mut slice.granted;
                        let looked_at = self.settle_version(id, op, (goal, epoch), granted, ctx);
                        work += looked_at / VERSIONS_PER_WORK;
                    }
                }
                Step::Locks(0) => {
                    slice.done = true;
                    break;
                }
                Step::Locks(left) => {
                    *left -= 1;
                    let Some(op) = ops.pop_front().filter(|op| !op.settled) else { continue };
                    let concerned = goal.concerns(&op, early, |op| self.is_primary_of(op, me));
                    ops.extend(self.settle_lock(id, op, concerned, goal, &mut slice.granted));
                }
            }
        }
        slice
    }

    fn is_primary_of(&self, op: &Op, me: NodeId) -> bool {
        self.view.primary(op.fragment) == Some(me)
    }

    /// EPOCH-3: makes a change the committed one, and unlocks its row; or takes it back. Gives how many versions of
    /// the row it had to look at.
    fn settle_version(
        &mut self,
        id: TransactionId,
        op: &mut Op,
        (goal, epoch): (Goal, Epoch),
        granted: &mut Vec<TransactionId>,
        ctx: &mut Ctx<'_>,
    ) -> usize {
        let takes_back = matches!(goal, Goal::TakeBack { .. });
        op.settled = !takes_back;
        let keep = self.snapshots.keeps() && !ctx.fault(Fault::BugForgetOlderVersion);
        let mut redo = self.redo.take();
        let done = self.on_fragment(op.table, op.fragment, |f, layout| {
            if takes_back {
                f.drop_version(op.row, op.version, layout);
                return None;
            }
            let mut versions = 0;
            if let Some(row) = f.row_mut(op.row) {
                versions = row.pending().len();
                // The transaction's last change of the row settles all of them.
                let last = row.pending().iter().rev().find(|v| v.transaction == id);
                if last.is_some_and(|v| v.number > op.version) {
                    return None;
                }
                row.unlock(id, granted);
            }
            if let Some(redo) = &mut redo {
                let at = ((op.table, op.fragment, op.row), op.version);
                redo.log_commit((id, epoch), at, f.row(op.row));
            }
            Some((versions, f.commit_version(op.row, op.version, epoch, layout, keep)))
        });
        self.redo = redo;
        let Some((versions, kept)) = done.flatten() else { return 0 };
        if kept {
            self.snapshots.note(epoch, (op.table, op.fragment, op.row));
        }
        versions
    }

    /// Unlocks a row if the goal says so; gives the operation back if it stays.
    fn settle_lock(
        &mut self,
        id: TransactionId,
        op: Op,
        concerned: bool,
        goal: Goal,
        granted: &mut Vec<TransactionId>,
    ) -> Option<Op> {
        match goal {
            _ if !concerned => Some(op),
            Goal::TakeBack { as_backup: true, .. } => None,
            // LOCK-5: locks stay until the end of the transaction.
            Goal::TakeBack { from: 1.., .. } => Some(Op { version: 0, ..op }),
            _ => {
                self.unlock(id, &op, granted);
                None
            }
        }
    }

    /// Unlocks a row; those who waited for it may go on.
    fn unlock(&mut self, id: TransactionId, op: &Op, granted: &mut Vec<TransactionId>) {
        self.on_fragment(op.table, op.fragment, |f, _| {
            let Some(row) = f.row_mut(op.row) else { return };
            row.unlock(id, granted);
            f.come_to_rest(op.row);
            f.collect(op.row);
        });
    }

    /// SLICE-4: nobody hears of the end before all of it is done.
    fn ended(&mut self, id: TransactionId, goal: Goal, ctx: &mut Ctx<'_>) {
        match goal {
            Goal::Commit { answer } => {
                ctx.send(answer.to, &CommitConf { transaction: id, view: answer.view });
            }
            Goal::Complete => {
                let changes = self.transactions.get(&id).and_then(|t| t.changes);
                let epoch = self.forget_transaction(id).unwrap_or_default();
                let known = (epoch, changes.unwrap_or(CHANGES_UNKNOWN));
                self.outcomes.note(id, known, ctx.now());
            }
            Goal::TakeBack { answer, from, as_backup } => {
                let is_over = |t: &Transaction| from == 0 && (!as_backup || t.ops.is_empty());
                if self.transactions.get(&id).is_some_and(is_over) {
                    self.forget_transaction(id);
                }
                ctx.send(answer.to, &taken_back(id, answer, from, as_backup));
            }
        }
    }
}

/// OUTCOME-9: how many changes of rows a transaction has made here.
fn count_changes(ops: &VecDeque<Op>) -> u32 {
    ops.iter().filter(|op| op.version != 0 && !op.of_index).count() as u32
}

/// The answer to an order to take something back.
pub(crate) fn taken_back(
    transaction: TransactionId,
    answer: Answer,
    from: u32,
    as_backup: bool,
) -> AbortConf {
    let part = if as_backup { ABORT_AS_BACKUP } else { ABORT_AS_PRIMARY };
    AbortConf { transaction, view: answer.view, from_statement: from, part }
}
