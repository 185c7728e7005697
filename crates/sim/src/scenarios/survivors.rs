//! So many nodes die that no majority is left, while a full replica lives: it waits with its memory, and the group is formed anew without
//! the loss of anything that was acknowledged (REFORM-1 to REFORM-4, FENCE-1; `docs/protocols/restart.md`).

use super::Bench;
use crate::network::End;
use lats_base::{Duration, Incarnation, NodeId, prng::Prng};

/// The first death comes within this time, and the second one within the other.
const BEFORE_US: u64 = 30_000;
const BETWEEN_US: u64 = 60_000;
/// How much slower the disk of a node is that has little on it when it dies.
const SLOW: u64 = 200;
const VERY_SLOW: u64 = 4_000;

/// One of two nodes dies, and the witness with it.
pub(super) fn of_two(bench: &mut Bench) -> Result<(), String> {
    die_together(bench, [1, 3], 2)
}

/// Two of three nodes die.
pub(super) fn of_three(bench: &mut Bench) -> Result<(), String> {
    die_together(bench, [1, 2], 3)
}

/// The same, and what the dead have on their disks is long behind.
pub(super) fn of_slow_disks(bench: &mut Bench) -> Result<(), String> {
    bench.world_mut().disk_ways.control_slowness = SLOW;
    die_together(bench, [1, 3], 2)
}

fn die_together(bench: &mut Bench, dead: [u16; 2], survivor: u16) -> Result<(), String> {
    let mut random = Prng::new(bench.world().digest);
    let survivor = NodeId::new(survivor);
    let life = bench.world().nodes[&survivor].life();
    work_for(bench, Duration::from_micros(random.between(1_000, BEFORE_US)))?;
    bench.kill(NodeId::new(dead[0]));
    work_for(bench, Duration::from_micros(random.between(0, BETWEEN_US)))?;
    bench.kill(NodeId::new(dead[1]));
    let lives = |bench: &Bench| {
        let it = &bench.world().nodes[&survivor];
        it.is_alive() && it.life() == life
    };
    let serves = |bench: &Bench| {
        let lives = bench.lives();
        lives.contains(&(survivor, life)) && lives.iter().any(|(_, life)| life.get() > 1)
    };
    bench.until("the survivor serves, with others", |bench| !lives(bench) || serves(bench))?;
    if !lives(bench) {
        return Err(format!("node {survivor} has ended, and was the last full replica"));
    }
    Ok(())
}

/// The clients that live at living nodes move money all the time.
fn work_for(bench: &mut Bench, span: Duration) -> Result<(), String> {
    let end = bench.world().now.plus(span);
    while bench.world().now < end {
        for client in 0..2 {
            if bench.is_idle(client) {
                bench.transfer(client, 1, 2);
            }
        }
        bench.pass(Duration::from_micros(200))?;
    }
    Ok(())
}

/// A node is cut off; the others remove it, and acknowledge changes without it. Then these die, and the cut ends: what the first one has in
/// its memory is older than what they have acknowledged, and the disk of the other says so.
pub(super) fn removed_survivor(bench: &mut Bench) -> Result<(), String> {
    let (one, two, witness) = (NodeId::new(1), NodeId::new(2), NodeId::new(3));
    // Nothing is written in time that nobody waits for.
    bench.world_mut().disk_ways.control_slowness = VERY_SLOW;
    bench.isolate(&[End::Node(two), End::Client(2)]);
    let is_removed = |bench: &mut Bench| !bench.lives().contains(&(two, Incarnation::new(1)));
    bench.until("node 2 is removed", is_removed)?;
    let register = bench.register_at(one)?;
    // What was under way when node 2 fell silent is refused; then changes are made without it.
    for _ in 0..5 {
        bench.write(0, register);
        bench.wait_for(0)?;
        bench.pass(Duration::from_millis(2))?;
    }
    // Its row is in the log soon; what the control state says of the removal may take longer, unless that was waited for.
    bench.pass(Duration::from_millis(60))?;
    bench.world_mut().stays_down = true;
    bench.kill(one);
    bench.kill(witness);
    bench.world_mut().stays_down = false;
    // What was not synced is gone.
    let mut random = Prng::new(bench.world().digest);
    bench.world_mut().lose_power_and_all_unsynced(one, &mut random);
    bench.release_all();
    bench.pass(Duration::from_millis(2_000))?;
    if bench.leader().is_ok() {
        return Err("node 2 serves, and does not have what was acknowledged without it".to_string());
    }
    bench.world_mut().disk_ways.control_slowness = 0;
    for node in [one, witness] {
        bench.world_mut().restart(node);
    }
    Ok(())
}
