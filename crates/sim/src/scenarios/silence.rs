//! Nodes fall silent: the others go on in time (VIEW-2, REST-3); a complaint comes late, as one of them is slow (VIEW-5, SILENT-1).

use super::Bench;
use crate::{checkers, network::End};
use lats_base::{Duration, NodeId, prng::Prng};
use lats_catalog::View;

/// Before the leader misses the last replica of the silent group: the slow node has heard it as late as the leader has.
const HEARD: Duration = Duration::from_millis(830);
/// A pause that the slow node notices, and that the leader does not.
const SLOW: Duration = Duration::from_millis(160);
/// Longer than it takes to choose an end of a broken link.
const CHOSEN: Duration = Duration::from_millis(6_000);

/// So often a machine falls silent.
const TIMES: u64 = 4;
/// The others have gone on by then: a lease of 100 ms, 20 ms, and another election, as two may stand at once and share the votes.
const GONE_ON: Duration = Duration::from_millis(230);

/// Nobody works, so control rests. The leader's machine is cut off, or the one of the other replica, and the others go on in time.
pub fn silent_machine(bench: &mut Bench) -> Result<(), String> {
    let mut random = Prng::new(bench.world().digest);
    for time in 0..TIMES {
        bench
            .until("all is whole", |b| checkers::whole(b.world()).is_ok() && b.leader().is_ok())?;
        bench.pass(Duration::from_micros(random.between(300_000, 400_000)))?;
        let leader = bench.leader()?;
        let victim = if time % 2 == 0 { leader } else { NodeId::new(3 - leader.get().min(2)) };
        if victim.get() > 2 {
            continue;
        }
        let life = bench.world().nodes[&victim].life();
        let cut_at = bench.world().now;
        cut_off(bench, victim);
        bench.until("the others go on", |b| !b.lives().contains(&(victim, life)))?;
        let after = bench.world().now.since(cut_at);
        if after > GONE_ON {
            return Err(format!("the others went on without node {victim} after {after:?}"));
        }
        bench.say(&format!("they go on after {after:?}"));
        bench.release_all();
    }
    Ok(())
}

/// The group that does not lead is cut off, one node after the other. The node beside the leader is paused before it misses the
/// last one; it gives everybody a lease again, and complains that much later than the leader. Nobody may go for that.
pub fn late_complaint(bench: &mut Bench) -> Result<(), String> {
    let leader = bench.leader()?;
    let view = view_of(bench, &[])?;
    let (mut beside, mut silent) = (leader, Vec::new());
    for group in &view.groups {
        if group.nodes.contains(&leader) {
            beside = group.nodes.iter().copied().find(|n| *n != leader).unwrap_or(leader);
        } else {
            silent.clone_from(&group.nodes);
        }
    }
    let [first, last] = silent[..] else { return Err(format!("no second group in {view:?}")) };
    cut_off(bench, first);
    bench.until("the first one is removed", |b| {
        view_of(b, &silent).is_ok_and(|v| v.incarnation(first).is_none())
    })?;
    cut_off(bench, last);
    bench.pass(HEARD)?;
    bench.pause(beside, SLOW);
    bench.pass(CHOSEN)?;
    let nodes = &bench.world().nodes;
    let stays = |n: &NodeId| nodes.get(n).is_some_and(|s| Some(s.life()) == view.incarnation(*n));
    match [leader, beside].iter().find(|n| !stays(n)) {
        Some(gone) => Err(format!("node {gone} has gone for a link to a silent node")),
        None => Ok(()),
    }
}

fn view_of(bench: &Bench, silent: &[NodeId]) -> Result<View, String> {
    let control = checkers::newest_control(bench.world(), |n| !silent.contains(&n));
    Ok(control.ok_or("no node lives")?.state().view.clone())
}

/// A node and the client that lives there.
fn cut_off(bench: &mut Bench, node: NodeId) {
    bench.isolate(&[End::Node(node), End::Client(node.get().into())]);
}
