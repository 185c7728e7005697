//! All nodes die, and the cluster begins again with an earlier epoch than some have heard of: what they have heard must be void on
//! every disk (REJOIN-9, RESTART-3).

use super::Bench;
use crate::checkers;
use lats_base::{Duration, NodeId};
use lats_client::{
    api::RowOp,
    core::{Answer, Then},
};

const FIRST: NodeId = NodeId::new(1);
const SECOND: NodeId = NodeId::new(2);

/// Longer than logs take to write what they have, and than rows take to be copied.
const A_WHILE: Duration = Duration::from_millis(200);

/// A row is deleted while a node is away. The node comes back, and is filled: the row that its log has is not mentioned to it. Then
/// all nodes die, and no disk has sealed the deletion.
pub fn void_deletion(bench: &mut Bench) -> Result<(), String> {
    let (from, to) = (bench.account_of(FIRST, 0)?, bench.account_of(FIRST, 1)?);
    bench.transfer(0, from, to);
    bench.wait_for(0)?;
    bench.until_durable()?;
    let row = bench.ledger().transfers.keys().next().copied().ok_or("no transfer")?;
    bench.kill(SECOND);
    bench.transfer(0, from, to);
    bench.wait_for(0)?;
    // The cluster will begin with this epoch at least: it is newer than any that the dead one can give back.
    bench.until_durable()?;
    bench.stick_disk(FIRST);
    // A write is under way from now on, so that the deletion is in none.
    let touch = [bench.ledger().accounts.add(from, 1, 0)];
    commit(bench, &touch)?;
    bench.pass(A_WHILE)?;
    let deletion = [bench.ledger().history.delete(row)];
    commit(bench, &deletion)?;
    let is_filled = |bench: &mut Bench| {
        let view = checkers::newest_view(bench.world());
        view.is_some_and(|v| v.is_replica_of_own_group(SECOND) && !v.is_in_sync(SECOND))
    };
    bench.until("node 2 is back, and is being filled", is_filled)?;
    bench.pass(A_WHILE)?;
    bench.restart_all()?;
    Ok(())
}

/// Commits what the ledger need not know.
fn commit(bench: &mut Bench, operations: &[RowOp]) -> Result<(), String> {
    let sequence = bench.begin_transaction(0);
    let ticket = bench.step(0, sequence, operations, Then::Commit);
    match bench.wait_for_answer(0, ticket)? {
        Answer::Rows { committed: Some(_), .. } => Ok(()),
        other => Err(format!("not committed: {other:?}")),
    }
}
