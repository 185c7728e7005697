//! Directories that are removed under nodes (GONE-1 to GONE-5; `docs/protocols/gone.md`).

use super::Bench;
use crate::durability;
use lats_base::{Duration, NodeId};

/// The directories of both replicas are gone at once, while clients go on. Nobody leaves for the sake of a node that has nothing on its disk,
/// either: both go on, and write all rows anew. Then all nodes lose their power.
pub(super) fn both_gone(bench: &mut Bench) -> Result<(), String> {
    bench.transfer(0, 1, 2);
    bench.settle()?;
    bench.pass(Duration::from_millis(300))?;
    for node in [1, 2] {
        bench.say(&format!("the directory of node {node} is gone"));
        bench.world_mut().lose_directory(NodeId::new(node), 100);
    }
    bench.pass(Duration::from_millis(250))?;
    let had = durability::durable_epoch(bench.world());
    // The first of them is begun anew after more than a second.
    for round in 0..120 {
        let nobody = [1, 2].iter().all(|n| durability::has_no_log(bench.world(), NodeId::new(*n)));
        if nobody && durability::durable_epoch(bench.world()) > had {
            return Err("an epoch has become durable, and no node has a log".to_string());
        }
        bench.transfer(0, 1 + round % 2, 2 - round % 2);
        bench.pass(Duration::from_millis(15))?;
        bench.settle()?;
        bench.check_disks()?;
    }
    if bench.world().nodes.values().any(|n| n.life().get() > 1) {
        return Err("a node has left, and no other had its rows on a disk".to_string());
    }
    bench.until("all is on disks again", |bench| durability::all_is_durable(bench.world()))?;
    bench.check_disks()?;
    bench.black_out();
    bench.come_back()
}

/// One node's directory is gone: it leaves, though it might have gone on; the next process is filled by the other.
pub(super) fn one_gone(bench: &mut Bench) -> Result<(), String> {
    bench.transfer(0, 1, 2);
    bench.settle()?;
    bench.pass(Duration::from_millis(300))?;
    let node = NodeId::new(2);
    bench.say("the directory of node 2 is gone");
    bench.world_mut().lose_directory(node, 100);
    let life = bench.world().nodes[&node].life();
    let end = bench.world().now.plus(Duration::from_millis(1_000));
    let is_there = |bench: &Bench| {
        let it = &bench.world().nodes[&node];
        it.is_alive() && it.life() == life
    };
    while is_there(bench) && bench.world().now < end {
        if bench.is_idle(0) {
            bench.transfer(0, 1, 2);
        }
        bench.pass(Duration::from_millis(5))?;
        bench.check_disks()?;
    }
    if is_there(bench) {
        return Err("a node without a directory has not left within a second".to_string());
    }
    bench.settle()
}
