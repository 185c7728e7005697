//! A cluster at rest: nobody asks it for anything (EPOCH-7, REST-1, REST-2).

use lats_base::{Duration, NodeId};
use lats_kernel::Faults;
use lats_node::{control::Control, ldm::OUTCOME_KEPT};
use lats_signals::{BlockKind, control::EpochUsedRep};
use lats_sim::world::{Event, Shape, World};
use std::collections::BTreeMap;

/// Two replicas and a witness that have nothing to do, two seconds after they were founded.
struct Resting {
    world: World,
    /// How often each node has looked for work.
    wakes: BTreeMap<NodeId, u32>,
}

impl Resting {
    fn new(seed: u64) -> Self {
        let shape = Shape {
            data_nodes: 2,
            replicas: 2,
            ldm_instances: 1,
            tc_instances: 1,
            threads: 1,
            slices: Default::default(),
            signals_per_turn: 40,
            lease_ms: 300,
            placement: None,
            waiting_bytes_max: None,
            outcome_kept: OUTCOME_KEPT,
        };
        let world = World::new(&shape, seed, Faults::default());
        let mut resting = Self { world, wakes: BTreeMap::new() };
        resting.pass(Duration::from_millis(2_000));
        resting.wakes.clear();
        resting
    }

    fn pass(&mut self, span: Duration) {
        let end = self.world.now.plus(span);
        while let Some(event) = self.world.next_event(end) {
            if let Event::Wake(node, _) = event {
                *self.wakes.entry(node).or_default() += 1;
            }
            let left = self.world.dispatch(event);
            if let Some(Event::Disturb(disturbance)) = left {
                panic!("nothing was planned, but {disturbance:?} happens");
            }
        }
    }

    fn control(&self, node: NodeId) -> &Control {
        let executor = &self.world.nodes[&node].executors[0];
        let block = executor.block(BlockKind::Control, 0).expect("each node has one");
        block.as_any().downcast_ref().expect("it is what it says")
    }

    fn leader(&self) -> NodeId {
        let ids = self.world.nodes.keys().copied();
        ids.into_iter().find(|n| self.control(*n).is_leader()).expect("somebody leads")
    }

    /// The leader's current epoch.
    fn epoch(&self) -> u64 {
        self.control(self.leader()).epochs().0.get()
    }
}

#[test]
fn nodes_at_rest_wake_up_a_few_times_per_epoch() {
    for seed in 1..20 {
        let mut resting = Resting::new(seed);
        let (view, epoch) = (resting.control(NodeId::new(1)).state().view.number, resting.epoch());
        resting.pass(Duration::from_millis(10_000));
        assert_eq!(resting.control(NodeId::new(1)).state().view.number, view, "nobody was missed");
        let epochs = resting.epoch() - epoch;
        assert!((150..=225).contains(&epochs), "seed {seed}: {epochs} epochs in 10 s");
        for (node, wakes) in &resting.wakes {
            // Each signal wakes a simulated thread by itself: more often than packets do in reality. Control's thread wakes the others.
            assert!(
                *wakes < 3_500,
                "seed {seed}: {node} has looked for work {wakes} times in 10 s"
            );
        }
        let (_, complete) = resting.control(resting.leader()).epochs();
        assert!(resting.epoch() - complete.get() < 10, "epochs become complete");
    }
}

#[test]
fn whoever_uses_an_epoch_has_the_next_one_begin_at_once() {
    let mut resting = Resting::new(7);
    let other = *resting.world.nodes.keys().find(|n| **n != resting.leader()).expect("three");
    let from = resting.epoch();
    // Somewhere between two epochs.
    while resting.epoch() == from {
        resting.pass(Duration::from_millis(1));
    }
    resting.pass(Duration::from_millis(15));
    let (epoch, _) = resting.control(other).epochs();
    assert_eq!(resting.epoch(), epoch.get(), "the last one is known everywhere");
    resting.world.tell_control(other, &EpochUsedRep { epoch });
    resting.pass(Duration::from_millis(5));
    assert_eq!(resting.epoch(), epoch.get() + 1, "it has begun within 5 ms");
    // They go on like that while somebody may use them.
    resting.pass(Duration::from_millis(100));
    let lively = resting.epoch() - epoch.get();
    assert!((9..=12).contains(&lively), "{lively} epochs in 105 ms");
    resting.pass(Duration::from_millis(1_000));
    let more = resting.epoch() - epoch.get() - lively;
    assert!(more < 35, "{more} epochs in a second that nobody has used");
}

#[test]
fn a_death_at_rest_is_noticed_at_once() {
    for seed in 1..20 {
        let mut resting = Resting::new(seed);
        let victim = NodeId::new(1 + (seed % 2) as u16);
        let survivor = NodeId::new(2 - (seed % 2) as u16);
        resting.world.kill(victim);
        // Its guardian says so.
        resting.world.unguarded.clear();
        resting.pass(Duration::from_millis(100));
        let view = &resting.control(survivor).state().view;
        let dead = view.member(victim).is_some_and(|m| !m.alive);
        assert!(dead, "seed {seed}: {survivor} still counts on {victim}");
    }
}

#[test]
fn a_silent_node_at_rest_is_removed_when_its_lease_is_over() {
    for seed in 1..20 {
        let mut resting = Resting::new(seed);
        let leader = resting.leader();
        let silent = NodeId::new(if leader == NodeId::new(1) { 2 } else { 1 });
        let until = resting.world.now.plus(Duration::from_millis(5_000));
        resting.world.nodes.get_mut(&silent).expect("it is there").paused_until = until;
        resting.pass(Duration::from_millis(500));
        let view = &resting.control(leader).state().view;
        let removed = view.member(silent).is_some_and(|m| !m.alive);
        assert!(removed, "seed {seed}: {leader} still counts on {silent}");
    }
}
