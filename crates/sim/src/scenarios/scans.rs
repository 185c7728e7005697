//! Scans of which a thread beside the data manager reads the first slice: the owner goes on with the rest, so that all rows come,
//! and nobody keeps a scan that is over (QUERY-2).

use super::{Bench, two_replicas};
use crate::world::Shape;
use lats_node::{Placement, ldm::Slices};

/// Each scan may begin at the owner or beside it, by chance: after so many both have happened.
const SCANS: usize = 12;

/// One thread of each data node runs all its blocks, and another one reads beside its data manager. Slices are much shorter than
/// fragments, and batches longer than slices, so that a scan goes on without its client.
pub(super) fn read_beside() -> Shape {
    let shape = two_replicas();
    let mut placement = Placement::single(true, shape.tc_instances, shape.ldm_instances);
    placement.threads.push(Vec::new());
    let placement = Some(placement.with_queries([1]));
    let slices = Slices { scan_rows: 2, scan_batch_bytes: 150, ..Slices::default() };
    Shape { threads: 2, placement, slices, ..shape }
}

/// Clients at both nodes scan the accounts.
pub(super) fn long_scans(bench: &mut Bench) -> Result<(), String> {
    let (accounts, count) = (bench.ledger().accounts.clone(), bench.ledger().account_count);
    for at in 0..SCANS {
        let mut rows = bench.scan(at % 2, &accounts)?;
        rows.sort_unstable();
        let shown: Vec<i64> = rows.iter().map(|row| row[0]).collect();
        if !shown.iter().copied().eq(0..count) {
            return Err(format!("a scan of {count} accounts has shown these: {shown:?}"));
        }
    }
    Ok(())
}
