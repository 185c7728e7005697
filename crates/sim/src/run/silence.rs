//! All nodes of a group fall silent, one after the other, and nothing proves that they have died: cut off from
//! everybody, or without power (SILENT-1 to SILENT-4; `docs/protocols/membership.md`). Clients go on: whatever needs
//! their rows must be refused soon, the rows of the other groups must be served, and every request must be answered.
//! Then the nodes come back, or their machines start anew, or a person declares the last one dead.

use super::Run;
use crate::{checkers, clients::SimClient, faults::Disturbance, network::End, world::Event};
use lats_base::{Duration, NodeId, prng::Prng};
use lats_node::control::Control;

/// How the silence ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// The cables are mended: nothing is lost.
    CablesMended,
    /// The machines had lost their power, and start again: without rows.
    MachinesBack,
    /// Somebody says that the machines will not come back.
    DeclaredDead,
}

/// Longer than it takes to remove a node, or to notice that one is silent, with the longest lease.
const NOTICED: Duration = Duration::from_millis(6_000);
/// How long clients go on in the end.
const SERVED: Duration = Duration::from_millis(1_500);
/// How long a client waits at most: for the outcome of a commit that only the silent know.
const ANSWERED: Duration = Duration::from_millis(16_000);
/// How long it takes at most to give up a node that was declared dead.
const GIVEN_UP: Duration = Duration::from_millis(5_000);
/// A machine without power does nothing for longer than this lasts.
const OFF: Duration = Duration::from_millis(1_000_000);
const REST: Duration = Duration::from_millis(3_000);
/// How long it takes at most until packets come through again, in ms.
const RESENT_MS: u64 = 3_000;
const STEP: Duration = Duration::from_millis(20);

impl Run {
    /// True if a group was lost by it.
    pub(super) fn silence_a_group(&mut self, random: &mut Prng) -> Result<bool, String> {
        let view = checkers::newest_view(&self.world).ok_or("no node lives")?.clone();
        if view.groups.len() < 2 || random.chance(1, 2) {
            return Ok(false);
        }
        self.commit_replicated()?;
        let at = random.below(view.groups.len() as u64) as usize;
        let mut nodes: Vec<NodeId> = view.groups[at].nodes.clone();
        if random.chance(1, 2) {
            nodes.reverse();
        }
        let ends = [Ending::CablesMended, Ending::MachinesBack, Ending::DeclaredDead];
        let outside = |c: &SimClient| !c.home.is_some_and(|n| nodes.contains(&n));
        let end = match ends[random.below(3) as usize] {
            // Nobody would be left to say so.
            Ending::DeclaredDead if !self.clients.iter().any(outside) => Ending::MachinesBack,
            end => end,
        };
        self.say(&format!("node group {at} falls silent: nodes {nodes:?}, until {end:?}"));
        let lives = end == Ending::CablesMended;
        self.ledger.silence = true;
        self.world.killed_at = None;
        self.clients.iter_mut().for_each(|c| c.stopped = false);
        for node in &nodes {
            self.silence(*node, lives);
            self.world.tally.note("silence of a group");
            let last = Some(node) == nodes.last();
            self.run_while(&nodes, |control| match last {
                false => control.state().view.is_in_sync(*node),
                true => !control.silent().contains(*node),
            })?;
        }
        self.look_at_those_who_are_left(&nodes, lives)?;
        self.end_silence(&nodes, end, random)?;
        self.clients.iter_mut().for_each(|c| c.stopped = lives);
        if lives {
            self.come_to_rest()?;
            self.check_all()?;
            return Ok(false);
        }
        self.ledger.outage = true;
        // The end of one that nobody guarded is certain when its next process has said so (DEATH-2).
        self.run_while(&nodes, |control| !control.state().view.groups[at].is_lost())?;
        self.run_for(SERVED)?;
        self.clients.iter_mut().for_each(|c| c.stopped = true);
        self.run_for(ANSWERED)?;
        if let Some(busy) = self.clients.iter().find(|c| !c.is_idle()) {
            return Err(format!("after the end of a silence: {}", busy.describe()));
        }
        self.run_for(REST)?;
        self.check_what_is_left(at)?;
        Ok(true)
    }

    /// Nothing passes between the node and the others any more. A client in its process stays with it.
    fn silence(&mut self, node: NodeId, lives: bool) {
        let others: Vec<NodeId> = self.world.nodes.keys().copied().filter(|n| *n != node).collect();
        for other in others {
            self.world.network.cut(End::Node(node), End::Node(other), true);
        }
        for client in &self.clients {
            let ends = (End::Client(client.number), End::Node(node));
            if client.home != Some(node) {
                self.world.network.cut(ends.0, ends.1, true);
            }
        }
        let off_until = self.world.now.plus(OFF);
        if let Some(n) = self.world.nodes.get_mut(&node).filter(|_| !lives) {
            n.paused_until = off_until;
        }
    }

    /// Runs while this holds of what the others know of the silent; it must end in time.
    fn run_while(
        &mut self,
        silent: &[NodeId],
        holds: impl Fn(&Control) -> bool,
    ) -> Result<(), String> {
        let end = self.world.now.plus(NOTICED);
        loop {
            let heard = |n: NodeId| !silent.contains(&n);
            let control = checkers::newest_control(&self.world, heard).ok_or("no node lives")?;
            if !holds(control) {
                return Ok(());
            }
            if self.world.now > end {
                return Err(format!("nothing came of it in {NOTICED:?}: {}", control.describe()));
            }
            self.run_for(STEP)?;
        }
    }

    /// SILENT-2, SILENT-3: the others serve what they have, and nobody waits.
    fn look_at_those_who_are_left(&mut self, silent: &[NodeId], lives: bool) -> Result<(), String> {
        // Commits that the silent were to take part in are waited for, for a while.
        self.run_for(ANSWERED)?;
        let commits = self.ledger.commits;
        let outside = |c: &SimClient| !c.home.is_some_and(|n| silent.contains(&n));
        let writes = |c: &SimClient| outside(c) && !c.reader && !c.is_building();
        let until = self.world.now.plus(ANSWERED);
        while self.ledger.commits == commits
            && self.clients.iter().any(writes)
            && self.world.now < until
        {
            self.run_for(STEP)?;
        }
        self.world.killed_at = None;
        if self.ledger.commits == commits && self.clients.iter().any(writes) {
            let clients: Vec<String> = self.clients.iter().map(|c| c.describe()).collect();
            return Err(format!(
                "nothing committed in {ANSWERED:?}, though a node group serves: {clients:?}"
            ));
        }
        self.clients.iter_mut().for_each(|c| c.stopped = true);
        self.run_for(ANSWERED)?;
        // A client dies with the machine that it lives on.
        let dead = |home: Option<NodeId>| !lives && home.is_some_and(|n| silent.contains(&n));
        let mut living = self.clients.iter().filter(|c| !dead(c.home));
        if let Some(busy) = living.find(|c| !c.is_idle() && !c.is_building()) {
            let left = checkers::left_over(&self.world);
            return Err(format!(
                "nobody says that a node group is silent: {}; {left}",
                busy.describe()
            ));
        }
        // Who waits for a definition asks for no rows: definitions do not change meanwhile (SILENT-3).
        let asks = |c: &SimClient| outside(c) && !c.is_building();
        if self.ledger.refused_as_silent == 0 && self.clients.iter().any(asks) {
            let clients: Vec<String> = self.clients.iter().map(|c| c.describe()).collect();
            return Err(format!("nobody was told that a node group is silent: {clients:?}"));
        }
        Ok(())
    }

    fn end_silence(
        &mut self,
        nodes: &[NodeId],
        end: Ending,
        random: &mut Prng,
    ) -> Result<(), String> {
        if let (Ending::DeclaredDead, Some(last)) = (end, nodes.last()) {
            let until = self.world.now.plus(GIVEN_UP);
            loop {
                let heard = |n: NodeId| !nodes.contains(&n);
                let control =
                    checkers::newest_control(&self.world, heard).ok_or("no node lives")?;
                let Some(life) = control.state().view.incarnation(*last) else { break };
                if self.world.now > until {
                    return Err(format!("node {last} was declared dead, and is still a member"));
                }
                let asks = |c: &&mut SimClient| !c.home.is_some_and(|h| nodes.contains(&h));
                let number = self.clients.iter_mut().find(asks).map(|client| {
                    client.core.declare_dead(*last, life, true);
                    client.number
                });
                self.flush(number.ok_or("no client to ask")? as usize - 1);
                self.run_for(STEP)?;
            }
        }
        for node in nodes {
            if end != Ending::CablesMended {
                if let Some(n) = self.world.nodes.get_mut(node) {
                    n.paused_until = self.world.now;
                }
                self.world.kill(*node);
            }
            let all = self.world.nodes.keys().map(|n| End::Node(*n));
            let clients = self.clients.iter().map(|c| End::Client(c.number));
            let others: Vec<End> = all.chain(clients).collect();
            for other in others {
                // Packets that were lost are sent again after a while, which is not the same for all.
                let later =
                    if end == Ending::CablesMended { random.between(0, RESENT_MS) } else { 0 };
                let heal = Event::Disturb(Disturbance::Heal(End::Node(*node), other));
                self.world.at(Duration::from_millis(later), heal);
            }
        }
        Ok(())
    }
}
