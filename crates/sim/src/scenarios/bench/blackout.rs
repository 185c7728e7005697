//! All nodes die, and come up again from their disks: what that needs of the bench.

use super::Bench;
use crate::durability;
use lats_base::{Epoch, NodeId};

impl Bench {
    /// Waits until all that was decided is durable.
    pub fn until_durable(&mut self) -> Result<(), String> {
        self.until("all is durable", |bench| durability::all_is_durable(bench.world()))
    }

    /// From now on the disk of this node does nothing that it is asked to.
    pub fn stick_disk(&mut self, node: NodeId) {
        self.say(&format!("the disk of node {node} is stuck"));
        self.world_mut().disk_ways.stuck = Some(node);
    }

    /// All nodes die at once, and come up again with good disks: gives the epoch that the cluster begins with. The ledger knows
    /// nothing of what that makes void: let all transfers be durable before.
    pub fn restart_all(&mut self) -> Result<Epoch, String> {
        self.say("all nodes die");
        self.world_mut().tally.note("blackout");
        self.world_mut().disk_ways.stuck = None;
        self.run.end_all();
        let epoch = self.run.wait_for_restart()?.ok_or("the cluster was not restarted")?;
        self.say(&format!("the cluster is up again, as it was in epoch {epoch}"));
        Ok(epoch)
    }

    /// All nodes die and lose their power; the clients are gone as well.
    pub fn black_out(&mut self) {
        self.run.lose_all_at_once();
    }

    /// All nodes are told to end, now, and start again when all have: nothing that was acknowledged may be gone.
    pub fn end_all_as_told(&mut self) -> Result<(), String> {
        let world = self.world();
        let told = world.nodes.keys().map(|node| (world.now, *node)).collect();
        self.run.close_all(told, None)?;
        self.run.come_back_at_once()
    }

    /// They are started again: what they have then must be the state of one epoch.
    pub fn come_back(&mut self) -> Result<(), String> {
        self.run.come_back_at_once()
    }
}
