//! The state that a cluster begins with again, after all its nodes have died (RESTART-3).

use super::ControlState;
use crate::epoch::WINDOW;
use lats_base::{Epoch, NodeId, Nonce, ViewNumber};
use lats_catalog::{Builder, Group, Member, Replica};
use std::collections::BTreeMap;

/// A data node that takes part in a restart.
#[derive(Clone, Debug)]
pub(crate) struct Participant {
    /// As it is now: its new life, and its addresses.
    pub(crate) member: Member,
    /// Which process it is.
    pub(crate) nonce: Nonce,
    /// It can give back its rows as they were in the epoch.
    pub(crate) is_full: bool,
}

impl ControlState {
    /// How many times the cluster has been restarted.
    pub(crate) fn restarts(&self) -> u32 {
        self.restored.len() as u32
    }

    /// This state, for a restart with this number, at this epoch, with these nodes; `newest`: there are changes up to that
    /// epoch, which are void if they are later.
    pub(crate) fn again(
        &self,
        restarts: u32,
        (epoch, newest): (Epoch, Epoch),
        participants: &BTreeMap<NodeId, Participant>,
    ) -> Self {
        let mut state = self.clone();
        state.begin_anew(restarts, newest);
        // No restart that nobody has begun has left anything.
        state.restored.resize(restarts as usize, epoch);
        let view = &mut state.view;
        for member in &mut view.members {
            let (node, incarnation) = (member.node, member.incarnation);
            // UNIQUE-7.
            state.catalog.drop_builds_of(Builder { node, incarnation });
            member.alive = false;
            if let Some(now) = participants.get(&member.node) {
                *member = Member { alive: true, joined_in: view.number, ..now.member.clone() };
                state.nonces.insert(member.node, now.nonce);
            }
            (member.stopping, member.declared_dead) = (None, false);
        }
        view.groups.iter_mut().for_each(|group| begin_again(group, participants));
        state
    }

    /// What a group begins with that is formed anew. RESTART-10: numbers of views and epochs are larger than those that only the dead
    /// may have known.
    pub(crate) fn begin_anew(&mut self, restarts: u32, newest: Epoch) {
        self.commands += 1;
        let ceiling = self.epoch_ceiling.max(newest).get().saturating_add(2 * WINDOW);
        self.epoch_ceiling = Epoch::new(ceiling);
        self.view.number = ViewNumber::new(self.view.number.get() + VIEWS_SKIPPED);
        self.view.restarts = restarts;
        self.view.groups.iter_mut().for_each(|group| group.next.clear());
        self.catalog.begin_again(restarts);
    }

    /// The epoch that the last restart from disks has begun with.
    pub(crate) fn restored_at(&self) -> Epoch {
        let all = self.restored.iter().rev().copied();
        all.into_iter().find(|epoch| epoch.get() < u64::MAX).unwrap_or_default()
    }
}

/// More views than are agreed on while somebody lives who does not know them.
const VIEWS_SKIPPED: u64 = 1_000;

fn begin_again(group: &mut Group, participants: &BTreeMap<NodeId, Participant>) {
    let present = group.nodes.iter().filter_map(|n| Some((*n, participants.get(n)?)));
    group.replicas =
        present.map(|(node, p)| Replica { node, in_sync: p.is_full && group.had(node) }).collect();
    group.next.clear();
    let full: Vec<NodeId> = group.replicas.iter().filter(|r| r.in_sync).map(|r| r.node).collect();
    group.primaries = (0..group.nodes.len())
        .map(|slot| {
            let made_for = group.nodes.get(slot).filter(|n| full.contains(n));
            made_for.or(full.get(slot % full.len().max(1))).copied().unwrap_or_default()
        })
        .collect();
    group.last.clear();
}
