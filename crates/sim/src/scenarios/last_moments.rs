//! What is lost when all nodes die at once, of commits that wait for no disk: the last two epochs and two syncs, not more
//! (EPOCH-8).

use super::Bench;
use crate::durability;
use lats_base::{Duration, Epoch, Instant, prng::Prng};
use std::collections::BTreeMap;

/// So often it is looked at what would be lost.
const LOOKS: u32 = 50;
/// Between two looks pass so many microseconds, at most.
const PAUSE_US: u64 = 12_000;
/// What may be lost with disks that sync within a millisecond, and a network without late packets: two epochs and two syncs.
const LOST_MAX: Duration = Duration::from_millis(12);
/// So many epochs that were used, the current one too.
const EPOCHS_MAX: usize = 2;

/// When each epoch was first used, as clients were told.
#[derive(Default)]
struct Told {
    at: BTreeMap<Epoch, Instant>,
    transfers: usize,
}

impl Told {
    /// Clients were told of more transfers meanwhile.
    fn hear(&mut self, bench: &mut Bench) {
        let now = bench.world().now;
        let epochs = &bench.ledger().transfer_epochs;
        if epochs.len() > self.transfers {
            self.transfers = epochs.len();
            epochs.values().for_each(|epoch| {
                self.at.entry(*epoch).or_insert(now);
            });
        }
    }

    /// What would be lost now, if it is more than may be.
    fn check(&mut self, bench: &Bench, random: &mut Prng) -> Result<(), String> {
        let Some(kept) = durability::newest_on_disks(bench.world(), random) else { return Ok(()) };
        let now = bench.world().now;
        self.at.retain(|epoch, _| *epoch > kept);
        let Some((first, at)) = self.at.first_key_value() else { return Ok(()) };
        let (lost, epochs) = (now.since(*at), self.at.len());
        if lost > LOST_MAX || epochs > EPOCHS_MAX {
            return Err(format!(
                "if all nodes died now, the last {} us would be lost: {epochs} epochs, the first of them {first}",
                lost.as_nanos() / 1_000
            ));
        }
        Ok(())
    }
}

/// Two clients move money all the time.
pub(super) fn last_moments(bench: &mut Bench) -> Result<(), String> {
    let mut random = Prng::new(bench.world().digest);
    bench.world_mut().disk_ways.quick = true;
    bench.world_mut().network.steady = true;
    let nodes = bench.world().nodes.values();
    let homes: Vec<_> = nodes.filter(|n| n.config.holds_data).map(|n| n.config.node).collect();
    let mut told = Told::default();
    for _ in 0..LOOKS {
        let end = bench.world().now.plus(Duration::from_micros(random.between(1, PAUSE_US)));
        while bench.world().now < end {
            for (client, home) in homes.iter().enumerate() {
                if bench.is_idle(client) {
                    let (from, to) = (bench.account_of(*home, 0)?, bench.account_of(*home, 1)?);
                    bench.transfer(client, from, to);
                }
            }
            bench.pass(Duration::from_micros(100))?;
            told.hear(bench);
        }
        told.check(bench, &mut random)?;
    }
    Ok(())
}
