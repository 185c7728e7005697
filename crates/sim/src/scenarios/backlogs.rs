//! Logs that do not keep up: one node's disk is full for a while, and its peer, whose disk is not, is asked for one change after
//! the other. What waits for the full disk must stay bounded, and changes are accepted again when there is room (REDO-4).

use super::{Bench, two_replicas};
use crate::world::Shape;
use lats_base::{Duration, NodeId};
use lats_client::{
    api::RowOp,
    core::{Answer, Then},
};

/// The disk is full for so long.
const FULL: Duration = Duration::from_millis(150);
/// Each transaction changes so many rows, twice: little, compared with what may wait.
const ROWS: usize = 8;
/// Whoever was refused tries again after this.
const PAUSE: Duration = Duration::from_micros(200);
/// After the disk has room again changes are accepted soon: before so many tries, a millisecond apart.
const TRIES: u32 = 500;

/// Little may wait for disks, so that soon it does.
pub(super) fn short_logs() -> Shape {
    Shape { waiting_bytes_max: Some(8 << 10), ..two_replicas() }
}

/// A client changes rows of node 1 as fast as it can, while the disk of node 2 is full.
pub(super) fn full_disk(bench: &mut Bench) -> Result<(), String> {
    let changes = changes_at(bench, NodeId::new(1))?;
    bench.world_mut().fill_disk(NodeId::new(2), FULL);
    let end = bench.world().now.plus(FULL);
    while bench.world().now < end {
        try_to_change(bench, &changes)?;
    }
    for _ in 0..TRIES {
        if try_to_change(bench, &changes)? {
            return Ok(());
        }
        bench.pass(Duration::from_millis(1))?;
    }
    Err("there is room on all disks, and nothing can be changed".to_string())
}

/// Changes of accounts of this node, whose balances are the same in the end.
fn changes_at(bench: &mut Bench, primary: NodeId) -> Result<Vec<RowOp>, String> {
    let accounts = bench.ledger().accounts.clone();
    let ids: Result<Vec<i64>, _> = (0..ROWS).map(|nth| bench.account_of(primary, nth)).collect();
    let there_and_back = |id: i64| [accounts.add(id, 1, 1), accounts.add(id, 1, -1)];
    Ok(ids?.into_iter().flat_map(there_and_back).collect())
}

/// True if it was committed.
fn try_to_change(bench: &mut Bench, changes: &[RowOp]) -> Result<bool, String> {
    let sequence = bench.begin_transaction(0);
    let ticket = bench.step(0, sequence, changes, Then::Commit);
    let answer = bench.wait_for_answer(0, ticket)?;
    bench.pass(PAUSE)?;
    Ok(matches!(answer, Answer::Rows { committed: Some(_), .. }))
}
