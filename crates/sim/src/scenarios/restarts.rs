//! Restarts from disks that know different things: redo logs have sealed epochs, and the control files do not know yet of a change
//! of definitions that the rows of these epochs depend on. The cluster comes back with an earlier epoch (RESTART-6).

use super::Bench;
use lats_base::Duration;
use lats_catalog::Change;
use lats_client::core::{Answer, Then};

/// So many times slower than a good disk: no control file is synced before power is lost.
const STUCK: u64 = 1_000_000;
/// Badges before the change of definitions, and after it.
const BADGES: i64 = 8;

/// A unique index is dropped, and rows come that have no entries in it. Then all nodes lose their power before a control file says
/// that it is dropped. Of two transfers one is durable by then.
pub(super) fn late_definitions(bench: &mut Bench) -> Result<(), String> {
    insert_badges(bench, 0)?;
    bench.transfer(1, 1, 2);
    bench.settle()?;
    // Time for all this to come to disks, definitions as well.
    bench.pass(Duration::from_millis(500))?;
    bench.world_mut().disk_ways.control_slowness = STUCK;
    let table = bench.ledger().badges.table.name().to_string();
    let (database, name) = ("test".to_string(), "by_column".to_string());
    let catalog = bench.change(0, Change::DropIndex { database, table, name })?;
    bench.ledger().badges.table.learn(&catalog);
    insert_badges(bench, BADGES)?;
    bench.transfer(1, 2, 1);
    bench.settle()?;
    // Redo logs are synced in a few milliseconds, epoch by epoch.
    bench.pass(Duration::from_millis(100))?;
    bench.black_out();
    bench.come_back()
}

/// A client inserts badges, from this one on.
fn insert_badges(bench: &mut Bench, first: i64) -> Result<(), String> {
    let table = bench.ledger().badges.table.clone();
    let insert = |badge: i64| table.insert(&[badge, badge, 0]);
    let rows: Vec<_> = (first..first + BADGES).map(insert).collect();
    let sequence = bench.begin_transaction(0);
    let ticket = bench.step(0, sequence, &rows, Then::Commit);
    match bench.wait_for_answer(0, ticket)? {
        Answer::Rows { committed: Some(_), .. } => Ok(()),
        other => Err(format!("badges were to be inserted: {other:?}")),
    }
}
