//! Agreement among those who are left (VIEW-8).

use super::*;
use crate::state::Founding;
use lats_catalog::{Member, Roles};
use std::sync::Arc;

/// A control group without a network: messages are passed by hand.
struct Group {
    nodes: Vec<(Consensus, Arc<ControlState>)>,
    gone: Vec<u64>,
}

fn life(node: u16) -> u64 {
    raft_id(NodeId::new(node), Incarnation::new(1))
}

fn group(count: u16) -> Group {
    let member = |node: u16| Member {
        node: NodeId::new(node),
        incarnation: Incarnation::new(1),
        roles: Roles { data: true, sql: true },
        ..Member::default()
    };
    let founding = Founding {
        config: Default::default(),
        members: (1..=count).map(member).collect(),
        number: 1,
    };
    let state = Arc::new(ControlState::found(&founding));
    let voters: Vec<u64> = (1..=count).map(life).collect();
    let node = |n: u16| (Consensus::found(life(n), voters.clone(), &state), state.clone());
    Group { nodes: (1..=count).map(node).collect(), gone: Vec::new() }
}

impl Group {
    /// Lets the nodes talk until nothing more is said. Only those who `hear` get messages.
    fn talk(&mut self, hear: &[u16]) {
        for _ in 0..100 {
            let mut said = Vec::new();
            for (consensus, state) in &mut self.nodes {
                if !self.gone.contains(&consensus.id()) {
                    consensus.consent(|id| self.gone.contains(&id));
                    said.extend(consensus.advance(state).messages);
                }
            }
            said.retain(|m| hear.iter().any(|n| life(*n) == m.to) && !self.gone.contains(&m.to));
            if said.is_empty() {
                return;
            }
            for message in said {
                let to = self.nodes.iter_mut().find(|(c, _)| c.id() == message.to);
                to.unwrap().0.hear(Consensus::read(&message.bytes).unwrap());
            }
        }
        panic!("they never come to an end");
    }

    fn node(&mut self, number: u16) -> &mut Consensus {
        &mut self.nodes[usize::from(number) - 1].0
    }

    fn voters(&self, node: u16) -> Vec<u64> {
        let mut voters = self.nodes[usize::from(node) - 1].0.voters();
        voters.sort_unstable();
        voters
    }

    fn remove(&mut self, by: u16, node: u16) {
        let (node, incarnation) = (NodeId::new(node), Incarnation::new(1));
        assert!(self.node(by).propose(&Command::Remove { node, incarnation, certified: true }));
    }
}

#[test]
fn one_of_two_goes_on_when_the_other_is_gone() {
    let mut group = group(2);
    group.node(1).campaign();
    group.talk(&[1]);
    assert!(!group.node(1).is_leader(), "the other one may live");
    group.gone = vec![life(2)];
    group.node(1).campaign();
    group.talk(&[1]);
    assert!(group.node(1).is_leader());
    group.remove(1, 2);
    group.talk(&[1]);
    assert_eq!(group.voters(1), [life(1)]);
    assert!(!group.nodes[0].1.view.is_alive(NodeId::new(2), Incarnation::new(1)));
}

#[test]
fn half_of_four_must_be_of_one_mind() {
    let mut group = group(4);
    group.gone = vec![life(3), life(4)];
    group.node(1).campaign();
    group.talk(&[1]);
    assert!(!group.node(1).is_leader(), "node 2 was not asked");
    group.node(1).campaign();
    group.talk(&[1, 2]);
    assert!(group.node(1).is_leader());
    group.remove(1, 3);
    group.talk(&[1]);
    assert_eq!(group.voters(1).len(), 4, "node 2 has not agreed");
    group.node(1).tick();
    (0..10).for_each(|_| group.node(1).tick());
    group.talk(&[1, 2]);
    assert_eq!(group.voters(1), [1, 2, 4].map(life));
    group.remove(1, 4);
    group.talk(&[1, 2]);
    assert_eq!(group.voters(2), [1, 2].map(life));
}

#[test]
fn less_than_half_decides_nothing() {
    for count in [3, 5] {
        let mut group = group(count);
        group.gone = (2..=count).map(life).take(usize::from(count) / 2 + 1).collect();
        let left: Vec<u16> = (1..=count).filter(|n| !group.gone.contains(&life(*n))).collect();
        group.node(1).campaign();
        group.talk(&left);
        assert!(!group.node(1).is_leader());
    }
}

#[test]
fn who_inherits_a_change_of_voters_waits_for_a_majority() {
    let mut group = group(4);
    group.node(4).campaign();
    group.talk(&[1, 2, 3, 4]);
    assert!(group.node(4).is_leader());
    // Node 1 hears of the removal of node 2, but not that it is agreed on; 3 and 4 may know.
    group.remove(4, 2);
    let (consensus, state) = &mut group.nodes[3];
    for message in consensus.advance(state).messages.into_iter().filter(|m| m.to == life(1)) {
        group.nodes[0].0.hear(Consensus::read(&message.bytes).unwrap());
    }
    group.gone = vec![life(3), life(4)];
    group.node(1).forget_leader(NodeId::new(4), Incarnation::new(1));
    group.node(2).forget_leader(NodeId::new(4), Incarnation::new(1));
    for _ in 0..3 {
        group.node(1).campaign();
        group.talk(&[1, 2]);
        group.node(2).campaign();
        group.talk(&[1, 2]);
    }
    assert!(!group.node(1).is_leader() && !group.node(2).is_leader());
}

#[test]
fn who_inherits_the_removal_of_one_of_the_gone_goes_on() {
    let mut group = group(4);
    group.node(3).campaign();
    group.talk(&[1, 2, 3, 4]);
    assert!(group.node(3).is_leader());
    // Node 4 dies, its removal reaches node 1, and the leader dies, too.
    group.remove(3, 4);
    let (consensus, state) = &mut group.nodes[2];
    for message in consensus.advance(state).messages.into_iter().filter(|m| m.to == life(1)) {
        group.nodes[0].0.hear(Consensus::read(&message.bytes).unwrap());
    }
    group.gone = vec![life(3), life(4)];
    group.node(1).forget_leader(NodeId::new(3), Incarnation::new(1));
    group.node(2).forget_leader(NodeId::new(3), Incarnation::new(1));
    group.node(2).campaign();
    group.talk(&[1, 2]);
    assert!(!group.node(2).is_leader(), "node 1 knows more");
    group.node(1).campaign();
    group.talk(&[1, 2]);
    assert!(group.node(1).is_leader());
    assert_eq!(group.voters(1), [1, 2, 3].map(life));
    group.remove(1, 3);
    group.talk(&[1, 2]);
    assert_eq!(group.voters(2), [1, 2].map(life));
}

#[test]
fn all_are_ready_to_vote_for_the_first_that_stands() {
    let mut group = group(3);
    group.node(1).campaign();
    group.talk(&[1, 2, 3]);
    assert_eq!(group.node(3).leader(), Some(NodeId::new(1)));
    // Node 1 falls silent, and nobody certifies an end. Node 2 stands before node 3 would.
    let stands_at = ELECTION_TICKS + 2 * RANK_TICKS;
    for _ in 0..=stands_at {
        (2..=3).for_each(|node| group.node(node).tick());
        group.talk(&[2, 3]);
    }
    assert!(group.node(2).is_leader());
}
