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

/// All tell each other what they have within this time.
const LATE: Duration = Duration::from_millis(90);
/// How often all are cut off, until they form the group anew before the former one has elected a leader, and as a scenario wants it.
const TRIES: u32 = 32;

/// Nobody hears anybody for a while, and nobody can be removed. Then all form the group anew, and one of them hears late that it was formed:
/// meanwhile it asks for a lease with the number of the former group, and the others do not send it away (REFORM-3). Where a leader was
/// elected in between, logs differ, and two may ask at once (REFORM-7).
pub(super) fn begun_without_it(bench: &mut Bench) -> Result<(), String> {
    let [one, late, begun] = [1, 2, 3].map(NodeId::new);
    let lives = bench.lives();
    let is_it = |_: &Bench, by: [u32; 3]| (by[0] > 0 || by[2] > 0) && by[1] == 0;
    if !gather_anew(bench, [one, late, begun], 0, is_it)? {
        return Ok(());
    }
    let before = restarts_of(bench, late);
    // It asks every 50 ms.
    bench.pass(Duration::from_millis(120))?;
    release_from(bench, late, [one, begun]);
    bench.pass(Duration::from_millis(1_000))?;
    if bench.lives() != lives || restarts_of(bench, late) == before {
        return Err(format!("{lives:?} lived, and now there are {:?}", bench.lives()));
    }
    Ok(())
}

/// Twice nobody hears anybody for a while. The first time the former group elects a leader in the end, and its log grows. The second time each one
/// hears too late what the others have, and takes its own log for the newest: several ask at once, with the same number. In the end one of them
/// has all, or they stay in the former group (REFORM-7).
pub(super) fn two_askers(bench: &mut Bench) -> Result<(), String> {
    let nodes = [1, 2, 3].map(NodeId::new);
    let held = [SignalNumber::RestartReq, SignalNumber::RestartRep];
    let lives = bench.lives();
    for _ in 0..TRIES {
        for number in held {
            let asked = ask_at_once(bench, nodes, number)?;
            if bench.lives() != lives {
                return Err(format!("{lives:?} lived, and now there are {:?}", bench.lives()));
            }
            if asked {
                return Ok(());
            }
        }
    }
    Err("no two ever ask at once".to_string())
}

/// Nobody hears anybody, and then the first signal of this number stays on each link, with all behind it, until two ask or somebody leads. True if
/// two have asked.
fn ask_at_once(
    bench: &mut Bench,
    nodes: [NodeId; 3],
    number: SignalNumber,
) -> Result<bool, String> {
    for (from, to) in pairs(nodes) {
        bench.hold(from, to, number);
    }
    cut_all_off(bench, nodes)?;
    let req = SignalNumber::RestartReq;
    let has_asked = |bench: &Bench, from: NodeId| {
        nodes.iter().any(|to| bench.holds(End::Node(from), End::Node(*to), req))
    };
    let ask = |bench: &Bench| nodes.iter().filter(|n| has_asked(bench, **n)).count() > 1;
    let end = bench.world().now.plus(LATE);
    bench.until("two ask, or somebody leads", |bench| {
        ask(bench) || bench.leader().is_ok() || bench.world().now >= end
    })?;
    let asked = ask(bench);
    all_are_led(bench, nodes)?;
    Ok(asked)
}

fn pairs(nodes: [NodeId; 3]) -> impl Iterator<Item = (NodeId, NodeId)> {
    nodes.into_iter().flat_map(move |a| nodes.map(|b| (a, b))).filter(|(a, b)| a != b)
}

/// Nothing is held any more, and all are in one group that has a leader.
fn all_are_led(bench: &mut Bench, nodes: [NodeId; 3]) -> Result<(), String> {
    bench.world_mut().traps.clear();
    pairs(nodes).for_each(|(from, to)| bench.release(from, to));
    bench.until("somebody leads all", |bench| {
        let formed = restarts_of(bench, nodes[0]);
        bench.leader().is_ok() && nodes.iter().all(|n| restarts_of(bench, *n) == formed)
    })?;
    bench.pass(Duration::from_millis(100))
}

/// Nobody hears anybody for a while. Then node 1 hears all, and only node 2 hears node 1, and promises to form the group anew. Node 1 dies, and the
/// others go on without it. Node 2 is the last full replica of its rows: it hears that its promise is void, and goes on with them (REFORM-7).
pub(super) fn promise_to_the_dead(bench: &mut Bench) -> Result<(), String> {
    let (asker, bound) = (NodeId::new(1), NodeId::new(2));
    let all = [1, 2, 3, 4, 5, 6].map(NodeId::new);
    work_for(bench, Duration::from_millis(5))?;
    let life = bench.world().nodes[&bound].life();
    for node in all {
        bench.isolate(&[End::Node(node)]);
    }
    let mut random = Prng::new(bench.world().digest);
    bench.pass(Duration::from_micros(random.between(1_500_000, 1_900_000)))?;
    for other in all.into_iter().filter(|n| *n != asker) {
        bench.release(other, asker);
    }
    bench.release(asker, bound);
    let has_promised = |bench: &mut Bench| {
        let control = checkers::control(&bench.world().nodes[&bound]);
        control.is_some_and(|control| control.promises().iter().any(|p| p.1 == asker))
    };
    bench.until("node 2 has promised", has_promised)?;
    bench.kill(asker);
    bench.release_all();
    bench.until("node 2 hears a leader", |bench| {
        let control = checkers::control(&bench.world().nodes[&bound]);
        control.is_some_and(|control| control.knows_leader() && control.promises().is_empty())
    })?;
    bench.pass(Duration::from_millis(500))?;
    match bench.lives().contains(&(bound, life)) {
        true => Ok(()),
        false => Err("node 2 was removed, which had all rows of its group".to_string()),
    }
}

/// The same, but whoever has asked dies, and the one that has begun cannot be heard. The other one asks for a group of its own. When it hears
/// that the first one was formed, it takes part in that: it had promised to.
pub(super) fn two_gatherings(bench: &mut Bench) -> Result<(), String> {
    let [one, late, begun] = [1, 2, 3].map(NodeId::new);
    let lives = bench.lives();
    // The disk of whoever asks does not know that the group was formed.
    let is_it = |bench: &Bench, by: [u32; 3]| {
        let has_asked = bench.holds(End::Node(one), End::Node(late), SignalNumber::RestartOrd);
        has_asked && by[0] > 0 && by[2] > 0 && by[1] == 0
    };
    if !gather_anew(bench, [one, late, begun], VERY_SLOW, is_it)? {
        return Ok(());
    }
    let before = restarts_of(bench, late);
    bench.world_mut().traps.clear();
    bench.world_mut().network.cut(End::Node(late), End::Node(begun), true);
    bench.kill(one);
    // What it had said is lost. Its next life is there after a second, so all are accounted for.
    bench.release(one, late);
    bench.world_mut().disk_ways.control_slowness = 0;
    bench.pass(Duration::from_millis(2_500))?;
    if restarts_of(bench, late) > before {
        return Err("a second group was formed".to_string());
    }
    bench.release_all();
    bench.until("both are in one group", |bench| restarts_of(bench, late) > before)?;
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

/// All are cut off until the group is formed anew, as a scenario wants it: by how many formations each node is ahead then. False if a node was
/// removed, as members of the former group had elected a leader before.
fn gather_anew(
    bench: &mut Bench,
    nodes: [NodeId; 3],
    slowness: u64,
    is_it: impl Fn(&Bench, [u32; 3]) -> bool,
) -> Result<bool, String> {
    let lives = bench.lives();
    for _ in 0..TRIES {
        let by = gather(bench, nodes, slowness)?;
        if is_it(bench, by) {
            return Ok(true);
        }
        bench.world_mut().disk_ways.control_slowness = 0;
        all_are_led(bench, nodes)?;
        if bench.lives() != lives {
            return Ok(false);
        }
    }
    Err("the group is never formed as the scenario wants it".to_string())
}

/// Nobody hears anybody, until all could form the group anew. The word that it was formed stays on its way to `late`.
fn gather(
    bench: &mut Bench,
    [one, late, begun]: [NodeId; 3],
    slowness: u64,
) -> Result<[u32; 3], String> {
    for from in [one, begun] {
        bench.hold(from, late, SignalNumber::RestartOrd);
    }
    bench.world_mut().disk_ways.control_slowness = slowness;
    let before = [one, late, begun].map(|n| restarts_of(bench, n));
    cut_all_off(bench, [one, late, begun])?;
    let ahead = |bench: &Bench| {
        let now = [one, late, begun].map(|n| restarts_of(bench, n));
        [0, 1, 2].map(|i| now[i] - before[i])
    };
    // Whoever asks begins first, and the other one a moment later.
    let have_begun = |bench: &Bench| ahead(bench).iter().filter(|n| **n > 0).count() > 1;
    bench.until("somebody leads", |bench| have_begun(bench) || bench.leader().is_ok())?;
    Ok(ahead(bench))
}

/// Nobody hears anybody, until nobody leads and all could form the group anew. Then the network is whole again.
fn cut_all_off(bench: &mut Bench, [one, late, begun]: [NodeId; 3]) -> Result<(), String> {
    work_for(bench, Duration::from_millis(5))?;
    for (a, b) in [(one, late), (one, begun), (late, begun)] {
        // What the control group exchanges is not kept for the next connection (LINK-3).
        bench.world_mut().disconnect(End::Node(a), End::Node(b));
    }
    for node in [one, late, begun] {
        bench.isolate(&[End::Node(node)]);
    }
    let mut random = Prng::new(bench.world().digest);
    bench.pass(Duration::from_micros(random.between(1_500_000, 1_900_000)))?;
    if bench.leader().is_ok() {
        return Err("somebody leads whom nobody hears".to_string());
    }
    bench.release_all();
    Ok(())
}

/// What others have sent to `late` comes, and nothing is held any more.
fn release_from(bench: &mut Bench, late: NodeId, others: [NodeId; 2]) {
    bench.world_mut().traps.clear();
    for other in others {
        bench.release(other, late);
    }
}

/// How many times the group was formed anew, as this node knows.
fn restarts_of(bench: &Bench, node: NodeId) -> u32 {
    let it = &bench.world().nodes[&node];
    checkers::control(it).map_or(0, |control| control.state().view.restarts)
}
