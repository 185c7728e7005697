//! Disturbances of a run: which, when and how many, drawn by the seed.

use crate::{
    network::End,
    world::{Event, World},
};
use lats_base::{Duration, NodeId, prng::Prng};

/// Something that goes wrong, or comes right again.
#[derive(Clone, Copy, Debug)]
pub enum Disturbance {
    /// A process ends at once.
    Kill(NodeId),
    /// Its next life starts.
    Restart(NodeId),
    /// A process does nothing for a while, in ms.
    Pause(NodeId, u64),
    /// A connection breaks; what was under way on it is lost.
    Reset(NodeId, NodeId),
    /// Packets between two nodes stay away, in one or both directions.
    Cut(NodeId, NodeId, bool),
    /// They come through again.
    Heal(NodeId, NodeId),
}

/// Which kinds of disturbances a run has.
#[derive(Clone, Copy, Debug, Default)]
pub struct Menu {
    /// Kills with restarts.
    pub kills: bool,
    /// Pauses.
    pub pauses: bool,
    /// Broken connections.
    pub resets: bool,
    /// Cuts.
    pub cuts: bool,
}

impl Menu {
    /// Any mix.
    pub fn draw(random: &mut Prng) -> Self {
        Self {
            kills: random.chance(3, 4),
            pauses: random.chance(1, 3),
            resets: random.chance(1, 4),
            cuts: random.chance(1, 3),
        }
    }
}

/// Plans disturbances from `start` on, in turns that leave the cluster time to become whole: one
/// node of a group at a time, as a two-replica cluster must survive.
pub fn plan(world: &mut World, menu: Menu, count: u64, data_nodes: u16, random: &mut Prng) -> u64 {
    let mut at_ms = 300;
    let all = world.nodes.len() as u16;
    for _ in 0..count {
        at_ms += random.between(50, 600);
        let victim = NodeId::new(random.between(1, u64::from(data_nodes)) as u16);
        let other = NodeId::new(random.between(1, u64::from(all)) as u16);
        let kind = random.below(4);
        let mut at = |ms: u64, d: Disturbance| {
            world.at(Duration::from_millis(ms), Event::Disturb(d));
        };
        match kind {
            0 if menu.kills => {
                at(at_ms, Disturbance::Kill(victim));
                at_ms += random.between(20, 400);
                at(at_ms, Disturbance::Restart(victim));
            }
            1 if menu.pauses => {
                let span = random.between(20, 900);
                at(at_ms, Disturbance::Pause(victim, span));
                at_ms += span;
            }
            2 if menu.resets && other != victim => at(at_ms, Disturbance::Reset(victim, other)),
            3 if menu.cuts && other != victim => {
                let both = random.chance(2, 3);
                at(at_ms, Disturbance::Cut(victim, other, both));
                at_ms += random.between(50, 1_200);
                at(at_ms, Disturbance::Heal(victim, other));
            }
            _ => {}
        }
        at_ms += 1_500;
    }
    at_ms
}

impl World {
    /// True if the cluster can lose this node: every group it is in has another in-sync replica,
    /// as some live node sees it, and a majority of the voters is left.
    fn can_lose(&self, node: NodeId) -> bool {
        let Some(view) = crate::checkers::newest_view(self) else { return false };
        let group = view.group_of_node(node);
        let group_lives = group.is_none_or(|(_, g)| {
            g.replicas.iter().any(|r| {
                r.node != node
                    && r.in_sync
                    && self.nodes.get(&r.node).is_some_and(|n| n.is_alive())
            })
        });
        let whole = self.nodes.values().filter(|n| n.is_alive() && n.paused_until <= self.now);
        let majority = whole.count() > self.nodes.len() / 2 + 1 || self.nodes.len() < 3;
        group_lives && (majority || self.nodes.values().all(|n| n.is_alive()))
    }

    /// Lets a disturbance happen.
    pub fn disturb(&mut self, disturbance: Disturbance) {
        match disturbance {
            Disturbance::Kill(node) if self.can_lose(node) => self.kill(node),
            Disturbance::Kill(_) => {}
            Disturbance::Restart(node) => self.restart(node),
            Disturbance::Pause(node, ms) => {
                let until = self.now.plus(Duration::from_millis(ms));
                if self.can_lose(node)
                    && let Some(n) = self.nodes.get_mut(&node)
                {
                    n.paused_until = until;
                }
            }
            Disturbance::Reset(a, b) => self.disconnect(End::Node(a), End::Node(b), false),
            Disturbance::Cut(a, b, both) => {
                if self.can_lose(a) && self.can_lose(b) {
                    self.network.cut(End::Node(a), End::Node(b), both);
                }
            }
            Disturbance::Heal(a, b) => {
                let held = self.network.heal(End::Node(a), End::Node(b));
                held.into_iter().for_each(|(from, to, packet)| self.transmit(from, to, &packet));
            }
        }
    }
}
