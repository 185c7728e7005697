//! The directory of this node is gone, and with it all that it had on disk (GONE-1 to GONE-5). It leaves, if other nodes have its rows
//! in full; else it goes on, and all of it is written anew when there is a directory again. Protocol: `docs/protocols/gone.md`.

use crate::{Control, restart::Phase, state::Command};
use lats_base::{Duration, Epoch, Instant, NodeId};
use lats_catalog::AfterStop;
use lats_kernel::{Ctx, Fault};
use lats_signals::{
    BlockRef, Signal,
    control::{NoteOrd, STATUS_DISK_FAILED, StopOrd},
    io::{DirectoryRep, EpochDurableRep},
};

/// What a node has lost, until all of it is on disk again.
#[derive(Debug)]
pub(crate) struct Lost {
    /// There is no directory.
    is_gone: bool,
    /// What its data managers said of earlier epochs is not true any more.
    floor: Epoch,
    /// Since when; and when the others were told last.
    since: Instant,
    told_at: Instant,
    /// People were told that it goes on.
    goes_on: bool,
}

/// All are told so often: the leader may be a new one.
const TOLD_EVERY: Duration = Duration::from_millis(100);
/// Directories that are gone at once are noticed within this time.
const AT_ONCE: Duration = Duration::from_millis(250);

/// What a node says when it goes.
pub(crate) const WHY: &str = "its directory is gone, another one has its name, or its disk has failed, and other nodes have its rows; the next \
                              process is filled from them";

impl Control {
    pub(crate) fn on_directory_rep(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        if !self.keeps_on_disk() {
            return;
        }
        if signal.body::<DirectoryRep>().gone != 0 {
            self.lose_directory(ctx);
        } else if let Some(lost) = &mut self.lost {
            lost.is_gone = false;
            self.keep_state(ctx);
        }
    }

    fn lose_directory(&mut self, ctx: &mut Ctx<'_>) {
        let is_member = self.restart.phase == Phase::Running && self.joined;
        if !is_member || ctx.fault(Fault::BugLeaveTheLast) {
            let stop = StopOrd { status: STATUS_DISK_FAILED };
            let why = "its directory is gone, another one has its name, or its disk has failed; the next process begins without what was in it";
            return ctx.send_with(BlockRef::shell(ctx.node()), &stop, &[why.as_bytes()]);
        }
        self.keep.forget_files();
        self.epochs.disk.forget_own(ctx.node());
        let (floor, goes_on, since) = (self.epochs.current, false, ctx.now());
        self.lost = Some(Lost { is_gone: true, floor, since, told_at: Instant::ZERO, goes_on });
        self.directory_tick(ctx);
    }

    /// GONE-3: whose rows others have in full leaves; the view decides, so that of two such nodes one stays.
    pub(crate) fn directory_tick(&mut self, ctx: &mut Ctx<'_>) {
        let (me, now) = (ctx.node(), ctx.now());
        let Some(lost) = &mut self.lost else { return };
        if now.since(lost.told_at) < TOLD_EVERY {
            return;
        }
        lost.told_at = now;
        let is_gone = lost.is_gone;
        let all_are_heard = now.since(lost.since) >= AT_ONCE;
        self.tell_nothing_is_durable(ctx);
        if !all_are_heard {
            return;
        }
        let view = &self.state.view;
        if view.is_replaceable(me) && self.is_on_another_disk(me, ctx) {
            let leaves = is_gone || !view.is_in_sync(me);
            if leaves && !view.is_stopping(me) {
                let (incarnation, then) = (ctx.incarnation(), AfterStop::Restart);
                self.propose(&Command::Stop { node: me, incarnation, then }, ctx);
            }
        } else if is_gone {
            self.say_that_it_goes_on(ctx);
        }
    }

    fn say_that_it_goes_on(&mut self, ctx: &mut Ctx<'_>) {
        let Some(lost) = &mut self.lost else { return };
        if !core::mem::replace(&mut lost.goes_on, true) {
            let text = "THE DIRECTORY OF THIS NODE IS GONE, and no other node has all of its rows on a disk: it goes on with them in memory only, \
                        and writes all of them anew when there can be a directory again (`latsdb status --address`, and this log, say what to do). \
                        Do not end it before";
            let shell = BlockRef::shell(ctx.node());
            ctx.send_with(shell, &NoteOrd { loud: 1 }, &[text.as_bytes()]);
        }
    }

    /// GONE-2: what it had reported is not on its disk any more. All hear it: nobody else may leave for this node's sake.
    fn tell_nothing_is_durable(&mut self, ctx: &mut Ctx<'_>) {
        let (me, durable, view) = (ctx.node(), Epoch::default(), self.state.view.number);
        for node in self.alive().iter().filter(|n| *n != me) {
            ctx.send(BlockRef::control(node), &EpochDurableRep { durable, view });
        }
        self.epochs.disk.note_node(me, view, durable);
    }

    /// A node has nothing on its disk, or has all there again. That holds until it says something else, or its life ends: a node that is
    /// late says nothing for a while.
    pub(crate) fn note_lost(&mut self, node: NodeId, durable: Epoch) {
        match self.state.view.incarnation(node) {
            Some(life) if durable == Epoch::default() => {
                self.lost_others.insert(node, life);
            }
            _ => drop(self.lost_others.remove(&node)),
        }
    }

    /// True if the node has its directory, and all of its rows there, as far as is known.
    pub(crate) fn has_disk(&self, node: NodeId, ctx: &Ctx<'_>) -> bool {
        if node == ctx.node() {
            return self.lost.is_none();
        }
        let said = self.lost_others.get(&node).copied();
        said.is_none() || said != self.state.view.incarnation(node)
    }

    /// GONE-3: true if another full replica stays that has its directory.
    pub(crate) fn is_on_another_disk(&self, node: NodeId, ctx: &Ctx<'_>) -> bool {
        let view = &self.state.view;
        let Some((_, group)) = view.group_of_node(node) else { return true };
        let stays = |n: NodeId| !view.is_stopping(n) && !view.is_declared_dead(n);
        let others = group.replicas.iter().filter(|r| r.in_sync && r.node != node);
        group.is_lost() || others.map(|r| r.node).any(|n| stays(n) && self.has_disk(n, ctx))
    }

    /// True while there is no directory.
    pub(crate) fn has_no_directory(&self) -> bool {
        self.lost.as_ref().is_some_and(|lost| lost.is_gone)
    }

    /// GONE-5: true if what its data managers have on disk may be reported. The first time, all is on disk again, and all hear it.
    pub(crate) fn may_report(&mut self, durable: Epoch, ctx: &mut Ctx<'_>) -> bool {
        let Some(lost) = &self.lost else { return true };
        let is_back = !lost.is_gone && durable >= lost.floor;
        if is_back {
            self.lost = None;
            let (me, view) = (ctx.node(), self.state.view.number);
            for node in self.alive().iter().filter(|n| *n != me) {
                ctx.send(BlockRef::control(node), &EpochDurableRep { durable, view });
            }
        }
        is_back
    }
}
