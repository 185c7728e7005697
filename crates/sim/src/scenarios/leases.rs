//! A node is cut off, and believes in a lease that it had before: nobody may commit without it until that is over (VIEW-2, LEASE-6).

use super::Bench;
use crate::network::End;
use lats_base::Duration;

/// Longer than a signal is on its way there and back.
const ON_THE_WAY: Duration = Duration::from_millis(20);

/// The leader is cut off together with a client that reads there. The others elect another one, and a client commits a value there as
/// soon as that can be done; then the first client reads.
pub fn leader_cut_off(bench: &mut Bench) -> Result<(), String> {
    let leader = bench.leader()?;
    // Each client lives at a node.
    let reader = usize::from(leader.get()) - 1;
    let writer = (reader + 1) % 3;
    // A primary that is cut off could not commit anything.
    let register = bench.register_beside(leader)?;
    bench.write(writer, register);
    bench.wait_for(writer)?;
    bench.isolate(&[End::Node(leader), End::Client(reader as u32 + 1)]);
    bench.write(writer, register);
    bench.wait_for(writer)?;
    bench.read(reader, register);
    // If anybody answers now, it is the leader that was.
    bench.pass(ON_THE_WAY)
}
