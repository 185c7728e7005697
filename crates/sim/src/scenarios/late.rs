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
/// Nearly as long as a thread may do nothing (LATE-2), and as the lane of rows may be silent, of which the last second may not count;
/// by the end there was time for the rest, a lease, and what is on its way.
const STUCK_NOT_YET_MS: u64 = 8_800;
const ROWS_NOT_YET_MS: u64 = 7_500;
const END_MS: u64 = 10_500;
const FOR_EVER: Duration = Duration::from_millis(1_000_000);

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

/// A thread never comes on: the others go on without its node, and not before it is time.
pub fn stuck_thread(bench: &mut Bench) -> Result<(), String> {
    let (one, other) = (NodeId::new(1), NodeId::new(2));
    let (from, to) = (bench.account_of(one, 0)?, bench.account_of(other, 0)?);
    bench.world_mut().hang(other, FOR_EVER);
    bench.transfer(0, from, to);
    goes_after(bench, STUCK_NOT_YET_MS)
}

/// The lane of rows passes nothing any more: one of its ends goes, although heartbeats pass.
pub fn rows_never_pass(bench: &mut Bench) -> Result<(), String> {
    let (one, other) = (NodeId::new(1), NodeId::new(2));
    let (from, to) = (bench.account_of(one, 0)?, bench.account_of(other, 0)?);
    bench.world_mut().note_unrest();
    bench.world_mut().stall((End::Node(one), End::Node(other)), Lane::Data, true, FOR_EVER);
    bench.transfer(0, from, to);
    goes_after(bench, ROWS_NOT_YET_MS)
}

/// All are members until it is time, and one of them not much longer. The transfer ends then.
fn goes_after(bench: &mut Bench, not_yet_ms: u64) -> Result<(), String> {
    let before = bench.lives();
    bench.pass(Duration::from_millis(not_yet_ms))?;
    if bench.lives() != before {
        return Err("a node was removed too early".to_string());
    }
    bench.pass(Duration::from_millis(END_MS - not_yet_ms))?;
    if bench.lives() == before {
        return Err("nobody was removed for what never comes on".to_string());
    }
    bench.wait_for(0)
}
