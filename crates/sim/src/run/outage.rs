//! The last act of a run with several node groups: all nodes of one die, and nobody has its rows any more
//! (LOST-1 to LOST-5; `docs/protocols/membership.md`). Clients go on: whatever needs these rows must be
//! refused soon, the rows of the other groups must be served and be there, and nothing may stay behind.

use super::Run;
use crate::checkers;
use lats_base::{Duration, NodeId, prng::Prng};

/// From the first death of the group to the last one, at most, in ms: at once; before the first is noticed;
/// before it is back; while it is being filled.
const GAPS_MS: [u64; 4] = [0, 5, 900, 1_400];
/// How long clients go on then.
const GO_ON: Duration = Duration::from_millis(2_000);
/// How long before the end they must have committed something.
const SERVED: Duration = Duration::from_millis(1_000);
/// How long a client waits for any answer at most.
const ANSWERED: Duration = Duration::from_millis(1_000);
/// Long enough for versions that were kept for snapshots to be let go.
const REST: Duration = Duration::from_millis(3_000);

impl Run {
    /// Kills a node group and looks at what is left.
    pub(super) fn lose_a_group(&mut self, random: &mut Prng) -> Result<(), String> {
        let view = checkers::newest_view(&self.world).ok_or("no node lives")?.clone();
        if view.groups.len() < 2 {
            return Ok(());
        }
        self.commit_replicated()?;
        let at = random.below(view.groups.len() as u64) as usize;
        let mut nodes: Vec<NodeId> = view.groups[at].nodes.clone();
        if random.chance(1, 2) {
            nodes.reverse();
        }
        let longest = GAPS_MS[random.below(4) as usize];
        let gap_ms = random.between(0, longest);
        self.say(&format!("node group {at} dies: nodes {nodes:?}, {gap_ms} ms apart"));
        self.ledger.outage = true;
        self.world.killed_at = None;
        self.clients.iter_mut().for_each(|c| c.stopped = false);
        for node in &nodes {
            self.run_for(Duration::from_millis(gap_ms))?;
            self.world.kill(*node);
            // Half of the voters can go on only if the ends of the others are certain.
            self.world.unguarded.clear();
            self.world.tally.note("death of a group");
        }
        // The first may be whole again by now, or about to be called so.
        for _ in 0..3 {
            let view = checkers::newest_view(&self.world).ok_or("no node lives")?;
            let full: Vec<NodeId> = nodes.iter().copied().filter(|n| view.is_in_sync(*n)).collect();
            full.into_iter().for_each(|n| self.world.kill(n));
            self.world.unguarded.clear();
            self.run_for(Duration::from_millis(20))?;
        }
        self.run_for(GO_ON)?;
        let commits = self.ledger.commits;
        self.run_for(SERVED)?;
        self.world.killed_at = None;
        if self.ledger.commits == commits {
            return Err(format!("nothing committed in {SERVED:?}, though a node group lives"));
        }
        self.clients.iter_mut().for_each(|c| c.stopped = true);
        self.run_for(ANSWERED)?;
        if let Some(busy) = self.clients.iter().find(|c| !c.is_idle()) {
            return Err(format!("a node group is lost, and nobody says so: {}", busy.describe()));
        }
        self.run_for(REST)?;
        self.check_what_is_left(at)
    }

    pub(super) fn check_what_is_left(&mut self, lost: usize) -> Result<(), String> {
        let view = checkers::newest_view(&self.world).ok_or("no node lives")?;
        let known: Vec<usize> = view.lost_groups().map(|(id, _)| usize::from(id.get())).collect();
        if known != [lost] {
            return Err(format!("group {lost} is lost, and view {} says {known:?}", view.number));
        }
        if self.ledger.refused_as_lost == 0 {
            let clients: Vec<String> = self.clients.iter().map(|c| c.describe()).collect();
            return Err(format!("nobody was told that a node group is lost: {clients:?}"));
        }
        checkers::nothing_left(&self.world)?;
        checkers::epochs_move(&self.world)?;
        checkers::replicas_equal(&self.world)?;
        checkers::indexes_match(&self.world)?;
        checkers::survivors_hold(&self.world, &self.ledger)
    }
}
