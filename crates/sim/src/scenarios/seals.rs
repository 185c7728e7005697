//! Seals of epochs: a backup hears late that a transaction has ended, of an epoch that is complete already (EPOCH-4). What it
//! seals must be in its log, and so be there when all power is lost (REDO-1, DURABLE-1).

use super::Bench;
use lats_base::{Duration, NodeId};
use lats_signals::SignalNumber;

/// So many times it is looked at what disks have while the completion is on its way.
const LOOKS: u32 = 12;
/// All this time is shorter than a lease: nobody is missed.
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// A transfer ends at its primaries, and its epoch becomes complete; one backup still waits for the completion.
pub(super) fn late_completion(bench: &mut Bench) -> Result<(), String> {
    let (coordinator, backup) = followers(bench)?;
    let client = usize::from(coordinator.get()) - 1;
    // What was done before has ended everywhere by then.
    bench.pass(Duration::from_millis(50))?;
    bench.hold(coordinator, backup, SignalNumber::CompleteOrd);
    let (from, to) = (bench.account_of(coordinator, 0)?, bench.account_of(coordinator, 1)?);
    bench.transfer(client, from, to);
    bench.wait_for(client)?;
    bench.until_held(coordinator, backup, SignalNumber::CompleteOrd)?;
    let epoch = bench.ledger().transfer_epochs.values().copied().max();
    let epoch = epoch.ok_or("the transfer was refused")?;
    let is_complete = |bench: &mut Bench| bench.complete_epoch() >= epoch;
    bench.until("the epoch of the transfer is complete", is_complete)?;
    for _ in 0..LOOKS {
        bench.pass(BETWEEN_LOOKS)?;
        bench.check_disks()?;
    }
    bench.release(coordinator, backup);
    Ok(())
}

/// Two data nodes that do not lead: the leader's orders come through on all links.
fn followers(bench: &Bench) -> Result<(NodeId, NodeId), String> {
    let leader = bench.leader()?;
    let all = bench.world().nodes.keys().copied();
    let others: Vec<NodeId> = all.filter(|node| *node != leader).collect();
    match others[..] {
        [first, second] => Ok((first, second)),
        _ => Err(format!("node {leader} leads {others:?}")),
    }
}
