//! All nodes are told to end at once while clients work, the witness too; then all start again (CLOSE-3).

use super::Bench;
use lats_base::{Duration, NodeId};

/// Clients work for so long before.
const WORK: Duration = Duration::from_millis(60);
/// Transfers that are under way when the nodes are told.
const STEP: Duration = Duration::from_micros(200);

pub(super) fn all_told_to_end(bench: &mut Bench) -> Result<(), String> {
    let nodes = bench.world().nodes.values();
    let homes: Vec<NodeId> = nodes.filter(|n| n.config.holds_data).map(|n| n.config.node).collect();
    let end = bench.world().now.plus(WORK);
    while bench.world().now < end {
        for (client, home) in homes.iter().enumerate() {
            if bench.is_idle(client) {
                let (from, to) = (bench.account_of(*home, 0)?, bench.account_of(*home, 1)?);
                bench.transfer(client, from, to);
            }
        }
        bench.pass(STEP)?;
    }
    bench.end_all_as_told()
}
