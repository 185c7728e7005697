//! So many nodes die that no majority is left, while a full replica lives: it waits with its memory, and the group is formed anew without
//! the loss of anything that was acknowledged (REFORM-1 to REFORM-4, FENCE-1; `docs/protocols/restart.md`).

use super::Bench;
use crate::{checkers, network::End};
use lats_base::{Duration, Incarnation, NodeId, prng::Prng};
use lats_node::control::Control;
use lats_signals::SignalNumber;

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
    goes_on(bench, (survivor, life))
}

/// The last full replica lives on, and serves with others in the end.
fn goes_on(bench: &mut Bench, (survivor, life): (NodeId, Incarnation)) -> Result<(), String> {
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

/// One of two nodes is silent, and the leader proposes to remove it. Before anybody has heard that, the leader dies, and the witness agrees when
/// nobody else is left. The silent node has all rows and wakes up: nothing was acknowledged without it.
pub(super) fn removal_not_agreed(bench: &mut Bench) -> Result<(), String> {
    let [leader, silent, witness] = [1, 2, 3].map(NodeId::new);
    work_for(bench, Duration::from_millis(20))?;
    if bench.leader()? != leader {
        return Ok(());
    }
    let mut random = Prng::new(bench.world().digest);
    bench.pause(silent, Duration::from_millis(2 * random.between(500, 900)));
    // The leader judges only while its own lease has half of its time left (VIEW-9).
    bench.pass(Duration::from_millis(180))?;
    bench.pause(witness, Duration::from_millis(2 * random.between(200, 500)));
    let proposes = |bench: &mut Bench| {
        let control = checkers::control(&bench.world().nodes[&leader]);
        control.is_some_and(Control::changes_members)
    };
    let end = bench.world().now.plus(Duration::from_millis(150));
    while !proposes(bench) {
        if bench.world().now >= end || bench.lives().len() < 3 {
            return Ok(());
        }
        bench.pass(Duration::from_micros(200))?;
    }
    bench.kill(leader);
    let life = bench.world().nodes[&silent].life();
    goes_on(bench, (silent, life))
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

/// How often all are cut off, until they form the group anew before the former one has elected a leader.
const TRIES: u32 = 4;

/// Nobody hears anybody for a while, and nobody can be removed. Then all form the group anew, and one of them hears late that it was formed:
/// meanwhile it asks for a lease with the number of the former group, and the others do not send it away (REFORM-3).
pub(super) fn begun_without_it(bench: &mut Bench) -> Result<(), String> {
    let [one, late, begun] = [1, 2, 3].map(NodeId::new);
    let lives = bench.lives();
    let mut tries = 0;
    while !gather_anew(bench, [one, late, begun], 0)? {
        tries += 1;
        if tries == TRIES || bench.lives() != lives {
            return Ok(());
        }
    }
    // It asks every 50 ms.
    bench.pass(Duration::from_millis(120))?;
    bench.release(one, late);
    bench.pass(Duration::from_millis(1_000))?;
    if bench.lives() != lives || restarts_of(bench, late) == 0 {
        return Err(format!("{lives:?} lived, and now there are {:?}", bench.lives()));
    }
    Ok(())
}

/// The same, but whoever has asked dies, and the one that has begun cannot be heard. The other one asks for a group of its own. When it hears
/// that the first one was formed, it takes part in that: it had promised to.
pub(super) fn two_gatherings(bench: &mut Bench) -> Result<(), String> {
    let [one, late, begun] = [1, 2, 3].map(NodeId::new);
    let lives = bench.lives();
    // The disk of whoever asks does not know that the group was formed.
    if !gather_anew(bench, [one, late, begun], VERY_SLOW)? {
        return Ok(());
    }
    bench.world_mut().network.cut(End::Node(late), End::Node(begun), true);
    bench.kill(one);
    // What it had said is lost. Its next life is there after a second, so all are accounted for.
    bench.release(one, late);
    bench.world_mut().disk_ways.control_slowness = 0;
    bench.pass(Duration::from_millis(2_500))?;
    if restarts_of(bench, late) > 0 {
        return Err("a second group was formed".to_string());
    }
    bench.release_all();
    bench.until("both are in one group", |bench| restarts_of(bench, late) > 0)?;
    bench.pass(Duration::from_millis(500))?;
    let stays = |node| {
        let life = lives.iter().find(|(n, _)| *n == node);
        life.is_some_and(|life| bench.lives().contains(life))
    };
    if !stays(late) || !stays(begun) {
        return Err(format!("{lives:?} lived, and now there are {:?}", bench.lives()));
    }
    Ok(())
}

/// The first one asks the two others to form the group anew; its word that it was formed comes to the last one, and stays on its way to
/// the other. False if the former group has elected a leader before that.
fn gather_anew(
    bench: &mut Bench,
    [one, late, begun]: [NodeId; 3],
    slowness: u64,
) -> Result<bool, String> {
    work_for(bench, Duration::from_millis(5))?;
    for (a, b) in [(one, late), (one, begun), (late, begun)] {
        // What the control group exchanges is not kept for the next connection (LINK-3).
        bench.world_mut().disconnect(End::Node(a), End::Node(b));
    }
    for node in [one, late, begun] {
        bench.isolate(&[End::Node(node)]);
    }
    bench.pass(Duration::from_millis(1_500))?;
    if bench.leader().is_ok() {
        return Err("somebody leads whom nobody hears".to_string());
    }
    bench.world_mut().disk_ways.control_slowness = slowness;
    bench.release_all();
    bench.hold(one, late, SignalNumber::RestartOrd);
    bench
        .until("somebody leads", |bench| restarts_of(bench, begun) > 0 || bench.leader().is_ok())?;
    match (restarts_of(bench, begun), restarts_of(bench, late)) {
        (0, _) => {
            bench.world_mut().disk_ways.control_slowness = 0;
            bench.release(one, late);
            Ok(false)
        }
        (_, 0) => Ok(true),
        _ => Err("all have begun".to_string()),
    }
}

/// How many times the group was formed anew, as this node knows.
fn restarts_of(bench: &Bench, node: NodeId) -> u32 {
    let it = &bench.world().nodes[&node];
    checkers::control(it).map_or(0, |control| control.state().view.restarts)
}
