//! A node is cut off, and believes in a lease that it had before: nobody may commit without it until that is over (VIEW-2, LEASE-6).

use super::Bench;
use crate::network::End;
use lats_base::Duration;
use lats_signals::SignalNumber;

/// Longer than a signal is on its way there and back.
const ON_THE_WAY: Duration = Duration::from_millis(20);

/// A link that brings nothing for so long is complained of, with the shortest lease: what came last was some milliseconds old (VIEW-5).
const COMPLAINED: Duration = Duration::from_millis(82);

/// Longer than a lease, and until all is well again.
const STUCK: Duration = Duration::from_millis(900);
const WELL: Duration = Duration::from_millis(6_000);

/// A process stands still after it has read a row, and before the answer leaves: its lease is over when it goes on (LEASE-7).
pub fn paused_inside_a_round(bench: &mut Bench) -> Result<(), String> {
    let leader = bench.leader()?;
    let others = bench.lives().into_iter().map(|(node, _)| node);
    let node = others.filter(|n| *n != leader && n.get() <= 2).min().ok_or("no other data node")?;
    let (reader, writer) = (usize::from(node.get()) - 1, 2 - usize::from(node.get()));
    let register = bench.register_beside(node)?;
    bench.write(writer, register);
    bench.wait_for(writer)?;
    bench.stick(node, STUCK, SignalNumber::ReadReq);
    bench.read(reader, register);
    bench.pass(STUCK)?;
    bench.write(writer, register);
    bench.pass(WELL)?;
    bench.wait_for(reader)?;
    bench.wait_for(writer)
}

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

/// Two followers do not hear each other until they complain, and then they do. Complaints are forgotten before a lease is over, so
/// nobody is removed (VIEW-5, PACE-1).
pub fn link_comes_right(bench: &mut Bench) -> Result<(), String> {
    let (leader, lives) = (bench.leader()?, bench.lives());
    let followers: Vec<End> =
        lives.iter().map(|(node, _)| *node).filter(|n| *n != leader).map(End::Node).collect();
    let [one, other] = followers[..] else { return Err(format!("no two followers in {lives:?}")) };
    bench.world_mut().network.cut(one, other, true);
    bench.pass(COMPLAINED)?;
    bench.release_all();
    bench.pass(WELL)?;
    if bench.lives() == lives {
        Ok(())
    } else {
        Err(format!("{lives:?} lived, and now there are {:?}", bench.lives()))
    }
}
