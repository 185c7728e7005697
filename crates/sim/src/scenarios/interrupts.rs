//! A client wants its request to end when that is decided already: it is answered as if nobody had asked (STATEMENT-3).

use super::Bench;
use lats_base::{Duration, NodeId};
use lats_signals::SignalNumber;

const FIRST: NodeId = NodeId::new(1);
const SECOND: NodeId = NodeId::new(2);

/// Longer than a signal is on its way.
const ON_THE_WAY: Duration = Duration::from_millis(10);

/// Money moves between rows of two primaries, so that row images carry no decision. A replica confirms the decision late, and
/// the interruption comes before that.
pub(super) fn late_interrupt(bench: &mut Bench) -> Result<(), String> {
    let (from, to) = (bench.account_of(FIRST, 0)?, bench.account_of(SECOND, 0)?);
    bench.hold(SECOND, FIRST, SignalNumber::DecideConf);
    bench.transfer(0, from, to);
    bench.until_held(SECOND, FIRST, SignalNumber::DecideConf)?;
    bench.interrupt(0);
    bench.pass(ON_THE_WAY)?;
    bench.release(SECOND, FIRST);
    bench.wait_for(0)
}
