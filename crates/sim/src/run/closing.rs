//! Nodes are told to end, at random moments or all at once, while clients work and others die; then all start again (CLOSE-1 to
//! CLOSE-6; `docs/protocols/close.md`). What was acknowledged must be there if all have ended as they say that is safe.

use super::Run;
use crate::{
    durability::Dark,
    world::{SimNode, World},
};
use lats_base::{Duration, Instant, NodeId, prng::Prng};
use lats_signals::control::{STATUS_ENDED, STATUS_STOPPED};

/// A node that is told to end has ended by then: a second more than it may take.
const ENDED_MS: u64 = 21_000;
/// All are told within this time, if not at once.
const SPREAD_MS: u64 = 2_500;
/// Others die while it is under way, if they do, within this time.
const DEATH_MS: u64 = 1_500;

impl Run {
    /// All nodes are told to end, more than once.
    pub(super) fn close_and_come_back(&mut self, random: &mut Prng) -> Result<(), String> {
        for round in 1..=random.between(1, 2) {
            if round > 1 {
                self.begin_anew(round)?;
            }
            self.clients.iter_mut().for_each(|c| c.stopped = false);
            self.run_for(Duration::from_millis(random.between(1, 800)))?;
            if random.chance(1, 3) {
                self.let_one_go(random)?;
            }
            let victim = self.draw_victim(random);
            let told = self.tell_all(random);
            self.close_all(told, victim)?;
            self.come_back_at_once()?;
        }
        Ok(())
    }

    /// One node is told to end while all others go on: it leaves, and what it is replaced by becomes whole (CLOSE-1).
    fn let_one_go(&mut self, random: &mut Prng) -> Result<(), String> {
        let all: Vec<NodeId> = self.world.nodes.keys().copied().collect();
        let node = all[random.below(all.len() as u64) as usize];
        self.say(&format!("node {node} is told to end, alone"));
        self.world.tally.note("end of one node");
        let (life, end) =
            (self.world.nodes[&node].life(), self.world.now.plus(Duration::from_millis(ENDED_MS)));
        self.world.ended.clear();
        self.world.close(node);
        while self.world.nodes[&node].is_alive() && self.world.nodes[&node].life() == life {
            if self.world.now >= end {
                self.describe_nodes();
                return Err(format!("node {node} was told to end, and is still there"));
            }
            self.run_for(Duration::from_millis(1))?;
        }
        if self.world.ended != [(node, STATUS_ENDED)] {
            return Err(format!("node {node} alone was to end, and well: {:?}", self.world.ended));
        }
        self.heal();
        self.come_to_rest()?;
        self.check_all()?;
        self.clients.iter_mut().for_each(|c| c.stopped = false);
        self.run_for(Duration::from_millis(random.between(1, 300)))
    }

    /// Who is to die meanwhile, and when; mostly nobody.
    fn draw_victim(&self, random: &mut Prng) -> Option<(NodeId, Instant)> {
        let all: Vec<NodeId> = self.world.nodes.keys().copied().collect();
        let victim = all[random.below(all.len() as u64) as usize];
        let at = self.world.now.plus(Duration::from_millis(random.between(0, DEATH_MS)));
        random.chance(1, 3).then_some((victim, at))
    }

    /// When each node is told.
    fn tell_all(&self, random: &mut Prng) -> Vec<(Instant, NodeId)> {
        let spread_ms = [0, 0, 50, SPREAD_MS][random.below(4) as usize];
        let nodes = self.world.nodes.keys();
        let at = |random: &mut Prng| Duration::from_millis(random.between(0, spread_ms));
        nodes.map(|node| (self.world.now.plus(at(random)), *node)).collect()
    }

    /// Ends all nodes; none starts again before the last one has ended.
    pub(crate) fn close_all(
        &mut self,
        mut told: Vec<(Instant, NodeId)>,
        mut victim: Option<(NodeId, Instant)>,
    ) -> Result<(), String> {
        let dark = Dark::falls(&self.world, &self.ledger);
        self.world.ended.clear();
        self.world.stays_down = true;
        // Some end while others serve: a node group may be lost for a while.
        self.ledger.outage = true;
        let end = self.world.now.plus(Duration::from_millis(ENDED_MS + SPREAD_MS));
        while self.world.nodes.values().any(SimNode::is_alive) {
            let now = self.world.now;
            for (_, node) in told.extract_if(.., |(at, _)| *at <= now) {
                self.say(&format!("node {node} is told to end"));
                self.world.close(node);
            }
            if let Some((node, _)) = victim.take_if(|(_, at)| *at <= now)
                && self.world.can_lose(&[node])
            {
                self.say(&format!("node {node} dies"));
                self.world.tally.note("death of one that ends");
                self.world.kill(node);
            }
            if now >= end {
                self.describe_nodes();
                return Err("a node that was told to end has not ended in its time".to_string());
            }
            self.run_for(Duration::from_millis(1))?;
        }
        self.world.stays_down = false;
        self.ledger.outage = false;
        self.clients.iter_mut().for_each(|client| client.give_up(&mut self.ledger));
        self.world.tally.note("end of all nodes");
        let unsafe_end =
            |(_, status): &(NodeId, u64)| ![STATUS_ENDED, STATUS_STOPPED].contains(status);
        let was_safe = !self.world.ended.iter().any(unsafe_end);
        self.say(&format!("all nodes have ended: {:?}", self.world.ended));
        self.dismiss_clients(None);
        let dark = dark.with_disks(&self.world, None);
        if !was_safe {
            self.world.tally.note("end that may lose something");
        }
        self.dark = Some(if was_safe { dark.with_all_of(&self.ledger) } else { dark });
        restart_all(&mut self.world);
        Ok(())
    }
}

fn restart_all(world: &mut World) {
    let nodes: Vec<NodeId> = world.nodes.keys().copied().collect();
    nodes.into_iter().for_each(|node| world.restart(node));
}
