//! A coordinator dies when it has told of a commit, and before all replicas have heard of the transaction's end: what they know then must be
//! enough for its heirs (CARRY-1, CARRY-7).

use super::Bench;
use crate::network::End;
use lats_base::{Duration, NodeId};
use lats_signals::SignalNumber;

const FIRST: NodeId = NodeId::new(1);
const SECOND: NodeId = NodeId::new(2);
const THIRD: NodeId = NodeId::new(3);

/// Longer than a signal is on its way.
const ON_THE_WAY: Duration = Duration::from_millis(10);

/// CARRY-1: a transaction has changed rows of two data managers in two requests, the second of which commits. Of the replica's data
/// managers one has heard of the end, the other has not, when the coordinator dies with the primaries.
pub fn death_between_completions(bench: &mut Bench) -> Result<(), String> {
    // Data managers are told in their order: the one that has executed the last request is told first.
    let from = bench.account_of_ldm(FIRST, 1, 0)?;
    let to = bench.account_of_ldm(FIRST, 0, 0)?;
    bench.next_row_of_ldm(0, FIRST, 0)?;
    bench.hold(FIRST, SECOND, SignalNumber::CompleteOrd);
    bench.transfer_in_halves(0, from, to);
    bench.wait_for(0)?;
    let (first, second) = (End::Node(FIRST), End::Node(SECOND));
    let both_wait =
        |bench: &mut Bench| bench.count_held(first, second, SignalNumber::CompleteOrd) == 2;
    bench.until("two completions are on their way", both_wait)?;
    bench.let_through(FIRST, SECOND, 1);
    bench.pass(ON_THE_WAY)?;
    bench.kill(FIRST);
    Ok(())
}

/// CARRY-7: a transaction is committed, and the next change of its row has come to the replicas before they hear of that; then the
/// coordinator dies, which is primary as well.
pub fn overtaken_completion(bench: &mut Bench) -> Result<(), String> {
    let from = bench.account_of(FIRST, 0)?;
    let others = [bench.account_of(FIRST, 1)?, bench.account_of(FIRST, 2)?];
    for client in 0..2 {
        bench.next_row_of_ldm(client, FIRST, 0)?;
    }
    bench.hold(THIRD, FIRST, SignalNumber::ReplicateConf);
    bench.transfer(0, from, others[0]);
    bench.until_held(THIRD, FIRST, SignalNumber::ReplicateConf)?;
    // It waits for the row's lock, so that its images leave as soon as the row is unlocked: before the coordinator
    // hears of that, and tells of the end.
    bench.transfer(1, from, others[1]);
    bench.pass(ON_THE_WAY)?;
    for replica in [SECOND, THIRD] {
        bench.hold(FIRST, replica, SignalNumber::CompleteOrd);
    }
    bench.hold(SECOND, FIRST, SignalNumber::ReplicateConf);
    bench.let_through(THIRD, FIRST, 1);
    bench.wait_for(0)?;
    for replica in [SECOND, THIRD] {
        bench.until_held(FIRST, replica, SignalNumber::CompleteOrd)?;
        bench.until_held(replica, FIRST, SignalNumber::ReplicateConf)?;
    }
    bench.kill(FIRST);
    Ok(())
}
