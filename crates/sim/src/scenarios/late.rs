//! Nodes that are late, and live (THREAD-5, LATE-1, LATE-2).

use super::Bench;
use crate::{network::End, world::Shape};
use lats_base::{Duration, NodeId};
use lats_node::Placement;
use lats_signals::{BlockKind, Lane};

/// Control has a thread of its own, and everything else has another one.
pub fn control_apart() -> Shape {
    let others = vec![(BlockKind::Tc, 0), (BlockKind::Ldm, 0)];
    let threads = vec![vec![(BlockKind::Control, 0)], others];
    Shape { placement: Some(Placement { threads }), ..super::two_replicas() }
}

/// Some leases.
const SOME_LEASES: Duration = Duration::from_millis(1_500);
/// Longer than a thread may do nothing (LATE-2), and a lease.
const STUCK: Duration = Duration::from_millis(10_000);
const HANGS: Duration = Duration::from_millis(20_000);

/// No row passes between the data nodes for some leases; then one of them does no work for as long. Heartbeats pass.
pub fn rows_stand_still(bench: &mut Bench) -> Result<(), String> {
    let (one, other) = (NodeId::new(1), NodeId::new(2));
    let (from, to) = (bench.account_of(one, 0)?, bench.account_of(other, 0)?);
    bench.say("rows are late");
    bench.transfer(0, from, to);
    bench.world_mut().stall((End::Node(one), End::Node(other)), Lane::Data, true, SOME_LEASES);
    bench.pass(SOME_LEASES)?;
    bench.wait_for(0)?;
    bench.say("threads are busy");
    bench.world_mut().keep_busy(other, SOME_LEASES);
    bench.transfer(0, to, from);
    bench.pass(SOME_LEASES)?;
    bench.wait_for(0)
}

/// A thread never comes on: the others go on without its node.
pub fn stuck_thread(bench: &mut Bench) -> Result<(), String> {
    let (one, other) = (NodeId::new(1), NodeId::new(2));
    let (from, to) = (bench.account_of(one, 0)?, bench.account_of(other, 0)?);
    bench.world_mut().hang(other, HANGS);
    bench.transfer(0, from, to);
    bench.pass(STUCK)?;
    bench.wait_for(0)
}
