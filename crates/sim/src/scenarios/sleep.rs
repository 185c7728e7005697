//! A client sleeps for longer than anybody remembers what became of its transaction (OUTCOME-8).

use super::Bench;
use crate::network::End;
use lats_base::{Duration, ErrorClass, NodeId, prng::Prng};
use lats_client::{
    api::LockMode,
    core::{Answer, Then},
};
use lats_signals::SignalNumber;

const SECOND: NodeId = NodeId::new(2);
const CLIENT: End = End::Client(1);

/// The client sleeps for so many ms, mostly for longer than outcomes are kept: two seconds, and the second of housekeeping, from
/// the moment on when the other node is back and has heard of it.
const LONG_MS: (u64, u64) = (5_500, 12_000);
const SHORT_MS: (u64, u64) = (100, 5_500);

/// What the client was told last.
#[derive(Debug, PartialEq, Eq)]
enum Told {
    Committed,
    Unknown,
    /// Surely not: as a SQL session does, it runs the statement again.
    RolledBack(String),
}

/// A client counts one up, and its coordinator dies when that is committed and before the client has read so. It asks when it has
/// slept, and counts again only if it is told that nothing has happened.
pub(super) fn long_sleep(bench: &mut Bench) -> Result<(), String> {
    let mut random = Prng::new(bench.world().digest);
    let counter = bench.account_of(SECOND, 0)?;
    bench.hold_ends(End::Node(SECOND), CLIENT, SignalNumber::TcKeyConf);
    let commits = commit(bench, counter);
    bench.until("the answer is on its way", |bench| {
        bench.holds(End::Node(SECOND), CLIENT, SignalNumber::TcKeyConf)
    })?;
    // The other replica may hear of the end, or learn it as the heir.
    bench.pass(Duration::from_micros(random.below(2_000)))?;
    let (least, most) = if random.chance(1, 8) { SHORT_MS } else { LONG_MS };
    bench.put_to_sleep(0, Duration::from_millis(random.between(least, most)));
    bench.lose(End::Node(SECOND), CLIENT);
    bench.kill(SECOND);
    bench.until("the client is awake", |bench| !bench.sleeps(0))?;
    let mut told = hear(bench, commits)?;
    while let Told::RolledBack(why) = &told {
        bench.say(&format!("the client counts again: {why}"));
        let commits = commit(bench, counter);
        told = hear(bench, commits)?;
    }
    match (count(bench, counter)?, told) {
        (1, _) => Ok(()),
        (counted, told) => Err(format!("it has counted to {counted}; it was told: {told:?}")),
    }
}

fn commit(bench: &mut Bench, counter: i64) -> u64 {
    let sequence = bench.begin_transaction(0);
    let add = [bench.ledger().accounts.add(counter, 1, 1)];
    bench.step(0, sequence, &add, Then::Commit)
}

fn hear(bench: &mut Bench, ticket: u64) -> Result<Told, String> {
    match bench.wait_for_answer(0, ticket)? {
        Answer::Rows { committed: Some(receipt), .. } => match receipt.changes {
            None | Some(1) => Ok(Told::Committed),
            Some(changes) => Err(format!("told of {changes} changes")),
        },
        Answer::Failed(error) => match error.class() {
            ErrorClass::UnknownOutcome => Ok(Told::Unknown),
            _ => Ok(Told::RolledBack(error.to_string())),
        },
        other => Err(format!("an answer to a commit: {other:?}")),
    }
}

/// What the counter has; and back to nothing, for the ledger knows of no counting.
fn count(bench: &mut Bench, counter: i64) -> Result<i64, String> {
    let look = [bench.ledger().accounts.read(counter, LockMode::Exclusive)];
    let sequence = bench.begin_transaction(0);
    let looks = bench.step(0, sequence, &look, Then::GoOn);
    let Answer::Rows { results, .. } = bench.wait_for_answer(0, looks)? else {
        return Err("the counter cannot be read".to_string());
    };
    let row = results.first().and_then(|result| result.row.as_deref());
    let counted = row.map_or(0, |row| bench.ledger().accounts.numbers(row)[1]);
    let back = [bench.ledger().accounts.add(counter, 1, -counted)];
    let ends = bench.step(0, sequence, &back, Then::Commit);
    bench.wait_for_answer(0, ends)?;
    Ok(counted)
}
