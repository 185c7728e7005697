//! The answer to DROP TABLE is lost with a node, and its client asks again when there is a newer table of that name (CHANGE-1).

use super::Bench;
use crate::{network::End, tables::Numbers};
use lats_base::{Duration, NodeId, prng::Prng};
use lats_catalog::Change;
use lats_client::core::Answer;
use lats_signals::SignalNumber;

const FIRST: NodeId = NodeId::new(1);
const CLIENT: End = End::Client(1);
/// Other tables, some of which are made meanwhile.
const OTHERS: [&str; 4] = ["one", "two", "three", "four"];
/// A proposal that is on its way has been agreed on by then.
const AGREED: Duration = Duration::from_millis(400);

fn table(name: &'static str) -> Change {
    Numbers::new(100, name, &["id", "value"], None).creation()
}

pub(super) fn lost_answer_to_drop(bench: &mut Bench) -> Result<(), String> {
    let mut random = Prng::new(bench.world().digest);
    bench.change(0, table("t"))?;
    bench.hold_ends(End::Node(FIRST), CLIENT, SignalNumber::ChangeConf);
    let drop = Change::DropTable { database: "test".into(), name: "t".into(), if_exists: false };
    let dropped = bench.ask_for_change(0, drop);
    bench.until("the answer is on its way", |bench| {
        bench.holds(End::Node(FIRST), CLIENT, SignalNumber::ChangeConf)
    })?;
    bench.change(1, table("t"))?;
    for other in OTHERS.iter().take(random.below(5) as usize) {
        bench.change(1, table(other))?;
    }
    bench.pass(AGREED)?;
    bench.lose(End::Node(FIRST), CLIENT);
    bench.kill(FIRST);
    match bench.wait_for_answer(0, dropped)? {
        Answer::Changed(Ok(_)) => {}
        other => return Err(format!("it was dropped, and its client is told: {other:?}")),
    }
    let catalog = bench.definitions(1)?;
    match catalog.tables.values().any(|table| table.name == "t") {
        true => Ok(()),
        false => Err("one DROP TABLE has dropped two tables".to_string()),
    }
}
