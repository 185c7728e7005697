//! What a seed decides before a run begins: the shape of the cluster, its disks, its clients, where processes may die.

use crate::{
    clients::SimClient,
    world::{DiskWays, Shape, World},
};
use lats_base::{Duration, NodeId, prng::Prng};
use lats_kernel::{Fault, Faults};
use lats_node::ldm::{OUTCOME_KEPT, Slices};

pub(super) fn clients(
    world: &mut World,
    shape: &Shape,
    leisure: u64,
    random: &mut Prng,
) -> Vec<SimClient> {
    let client = |number| {
        let node = NodeId::new(1 + (number as u16 - 1) % shape.data_nodes);
        let home = random.chance(2, 3).then_some(node);
        let mut client = SimClient::new(number, home, random.next_u64());
        client.leisure = leisure;
        client.reader = number > 2 && random.chance(1, 3);
        client.changes_durability = world.changes_durability;
        if let (true, Some(home)) = (client.reader, home) {
            world.readers.push((number, home));
        }
        client
    };
    (1..=world.client_count).map(client).collect()
}

pub(super) fn shape(random: &mut Prng) -> Shape {
    let (data_nodes, replicas) = match random.below(8) {
        0..4 => (2, 2),
        4..6 => (3, 3),
        6 => (4, 2),
        _ => (4, 4),
    };
    let ldm_instances = random.between(1, 3) as u32;
    let (tc_instances, threads) = (random.between(1, 2) as u32, random.between(1, 4) as usize);
    // Most transactions are small: slices as well, in most runs.
    let signals_per_turn = [2, 10, 40][random.below(3) as usize];
    let rows = random.between(1, 4) as usize * [1, 1, 64][random.below(3) as usize];
    // So are batches of scans: a few rows.
    let scans = Slices { scan_rows: rows, scan_batch_bytes: 30 * rows, ..Slices::default() };
    // Records lie across parts of logs.
    let log_bytes = [2_000, 20_000, 1 << 18][random.clone().below(3) as usize];
    let slices = if rows < 64 { scans } else { Slices::default() };
    let slices = Slices { rows, log_bytes, ..slices };
    // Some clients sleep for longer than that.
    let outcome_kept = match random.clone().below(24) {
        short @ 0..8 => Duration::from_millis(600 + 300 * short),
        _ => OUTCOME_KEPT,
    };
    // Long ones outlast the election of another leader; with short ones all times are short (PACE-1).
    // A draw between those of the usual length: the last third are the long ones.
    let is_short = (6..10).contains(&random.clone().below(24));
    let usual = [300, 300, 900][random.below(3) as usize];
    let lease_ms = if is_short { 100 } else { usual };
    Shape {
        data_nodes,
        replicas,
        ldm_instances,
        tc_instances,
        threads,
        slices,
        signals_per_turn,
        lease_ms,
        placement: None,
        waiting_bytes_max: None,
        outcome_kept,
    }
}

/// Good disks mostly.
pub(super) fn disk_ways(random: &mut Prng) -> DiskWays {
    let once_in = |random: &mut Prng, runs, from, to| {
        if random.chance(1, runs) { random.between(from, to) } else { 0 }
    };
    DiskWays {
        quick: false,
        slowness: [1, 1, 1, 20][random.below(4) as usize],
        control_slowness: 0,
        stuck: None,
        full_once_in: once_in(random, 4, 30, 1_000),
        fails_once_in: once_in(random, 4, 100, 2_000),
        unreadable_once_in: once_in(random, 4, 5, 200),
    }
}

/// How busy the clients are: from a cluster at its limit to one with little to do. Most storms are about
/// faults.
pub(super) fn leisure(random: &mut Prng, storm: bool) -> u64 {
    let mix = if storm { [1, 8, 16, 16] } else { [1, 1, 1, 8] };
    mix[random.below(4) as usize]
}

/// Crash points inside the protocols, armed rarely: the plan of disturbances does the rest.
pub(super) fn crash_points(random: &mut Prng) -> Faults {
    let points = [
        Fault::CrashAfterPrepare,
        Fault::CrashBetweenImages,
        Fault::CrashAfterReplicate,
        Fault::CrashBeforeDecide,
        Fault::CrashAfterDecide,
        Fault::CrashAfterCarry,
        Fault::CrashBeforeAnswer,
        Fault::CrashAfterAnswer,
        Fault::CrashBetweenCompletions,
        Fault::CrashInCopy,
    ];
    let mut faults = Faults::default();
    if random.chance(1, 3) {
        let point = points[random.below(points.len() as u64) as usize];
        faults.arm(point, random.between(300, 2_000));
    }
    // These are passed seldom.
    for point in [Fault::CrashInHandOver, Fault::CrashWhenReady, Fault::CrashAtHandOverEnd] {
        if random.chance(1, 12) {
            faults.arm(point, 4);
        }
    }
    if random.chance(1, 4) {
        faults.arm(Fault::LeaveLate, random.between(1, 20));
    }
    faults
}
