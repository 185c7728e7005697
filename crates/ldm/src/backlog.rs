//! Logs that do not keep up (REDO-4): whoever sends changes to one hears of it, and refuses new ones. Protocol:
//! `docs/protocols/durability.md`.

use crate::{Ldm, TIMER_BACKLOG};
use alloc::collections::BTreeMap;
use lats_base::{Duration, Instant, NodeId, RefCode};
use lats_kernel::{Ctx, Fault};
use lats_signals::{
    BlockRef, Signal,
    io::{BEHIND, BEHIND_FULL, KEEPS_UP, LogBehindRep},
};

/// Who is behind, here and at the other replicas of the same rows.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    /// Half of what may wait for this node's disk does, until a quarter is left.
    is_behind: bool,
    /// That is so, if it is, because its disk is full.
    is_full: bool,
    /// The others that are, when they said so last, and whether their disks are full.
    others: BTreeMap<NodeId, (Instant, bool)>,
    /// A timer will say it again.
    tells_again: bool,
}

/// Who is behind says so as often as this: somebody may be new, or have lost a link.
const TOLD_EVERY: Duration = Duration::from_millis(10);
/// Who has not been heard for so long does not count, whatever has become of its last word. A process that was stopped for a
/// shorter time has not forgotten who is behind when it goes on.
const LASTS: Duration = Duration::from_millis(1_000);

impl Backlog {
    /// True if this log does not keep up.
    pub(crate) fn is_behind(&self) -> bool {
        self.is_behind
    }

    /// Why new changes are refused, if they would meet a log that does not keep up.
    pub(crate) fn refuses(&self, now: Instant) -> Option<RefCode> {
        let heard = self.others.iter().filter(|(node, _)| self.hears_of(**node, now));
        let others = heard.map(|(_, (_, is_full))| *is_full);
        let is_full = others.chain(self.is_behind.then_some(self.is_full)).max()?;
        Some(if is_full { RefCode::DiskFull } else { RefCode::Overloaded })
    }

    /// True if this node has said that it is behind.
    pub(crate) fn hears_of(&self, node: NodeId, now: Instant) -> bool {
        self.others.get(&node).is_some_and(|(heard, _)| now.since(*heard) < LASTS)
    }

    /// The last write has found no room, or some.
    pub(crate) fn note_room(&mut self, is_full: bool) {
        self.is_full = is_full;
    }

    /// What others are told.
    fn word(&self) -> u64 {
        match (self.is_behind, self.is_full) {
            (false, _) => KEEPS_UP,
            (true, false) => BEHIND,
            (true, true) => BEHIND_FULL,
        }
    }

    /// So many bytes wait, and so many may. True if that makes this log begin or end to be behind.
    pub(crate) fn changes(&mut self, (waiting, most): (usize, usize)) -> bool {
        let changed = if self.is_behind { waiting < most / 4 } else { waiting >= most / 2 };
        self.is_behind ^= changed;
        changed
    }

    fn hear(&mut self, from: NodeId, word: u64, now: Instant) {
        if word == KEEPS_UP {
            self.others.remove(&from);
        } else {
            self.others.insert(from, (now, word == BEHIND_FULL));
        }
    }
}

impl Ldm {
    /// Looks whether the log keeps up.
    pub(crate) fn look_at_backlog(&mut self, ctx: &mut Ctx<'_>) {
        let Some(redo) = &mut self.redo else { return };
        let changed = redo.look_at_backlog(ctx);
        if changed {
            self.tell_backlog(ctx);
        }
    }

    /// All replicas of the rows here send changes to it, or may do so soon: their data managers of the same number.
    fn tell_backlog(&mut self, ctx: &mut Ctx<'_>) {
        let Some(redo) = &mut self.redo else { return };
        let (behind, word) = (redo.backlog.is_behind(), redo.backlog.word());
        let me = ctx.node();
        let group = self.view.group_of_node(me);
        let replicas = group.into_iter().flat_map(|(_, group)| &group.replicas);
        for node in replicas.map(|r| r.node).filter(|node| *node != me) {
            let body = LogBehindRep { behind: word };
            ctx.send(BlockRef::ldm(node, self.instance), &body);
        }
        if behind && !core::mem::replace(&mut redo.backlog.tells_again, true) {
            ctx.after(TOLD_EVERY, TIMER_BACKLOG);
        }
    }

    /// Who is no replica any more does not count.
    pub(crate) fn forget_the_dead(&mut self, me: NodeId) {
        let (Some(redo), view) = (&mut self.redo, &self.view) else { return };
        let group = view.group_of_node(me).map(|(_, group)| group);
        let is_replica = |node| group.is_some_and(|g| g.replicas.iter().any(|r| r.node == node));
        redo.backlog.others.retain(|node, _| is_replica(*node));
    }

    /// It is still behind.
    pub(crate) fn tell_backlog_again(&mut self, ctx: &mut Ctx<'_>) {
        let Some(redo) = &mut self.redo else { return };
        redo.backlog.tells_again = false;
        if redo.backlog.is_behind() {
            self.tell_backlog(ctx);
        }
    }

    /// Another replica is behind, or keeps up again.
    pub(crate) fn on_log_behind_rep(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let word = signal.body::<LogBehindRep>().behind;
        if let Some(redo) = self.redo.as_mut().filter(|_| !ctx.fault(Fault::BugIgnoreBacklog)) {
            redo.backlog.hear(signal.sender().node, word, ctx.now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_here_or_elsewhere_is_named() {
        let (now, other) = (Instant::ZERO, NodeId::new(2));
        let mut backlog = Backlog::default();
        backlog.note_room(true);
        assert_eq!(
            (backlog.refuses(now), backlog.word()),
            (None, KEEPS_UP),
            "there is room in memory"
        );
        assert!(backlog.changes((60, 100)));
        assert_eq!((backlog.refuses(now), backlog.word()), (Some(RefCode::DiskFull), BEHIND_FULL));
        backlog.note_room(false);
        assert_eq!((backlog.refuses(now), backlog.word()), (Some(RefCode::Overloaded), BEHIND));
        backlog.hear(other, BEHIND_FULL, now);
        assert_eq!(backlog.refuses(now), Some(RefCode::DiskFull));
        assert!(backlog.changes((10, 100)));
        backlog.hear(other, BEHIND, now);
        assert_eq!(backlog.refuses(now), Some(RefCode::Overloaded));
        assert_eq!(backlog.refuses(now.plus(LASTS)), None, "it was not heard for long");
        backlog.hear(other, KEEPS_UP, now);
        assert_eq!(backlog.refuses(now), None);
    }
}
