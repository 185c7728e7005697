//! What `latsdb status` says of the nodes' disks.

use lats_base::NodeId;
use lats_runtime::DiskFigures;
use serde_json::{Value, json};

/// Syncs that take longer are said to be slow: commits that wait for disks, and restarts, feel them.
const SLOW_US: u64 = 100_000;
/// And one that is under way for longer.
const STUCK_US: u64 = 1_000_000;

/// Of fewer syncs 99 of 100 are all of them: one of a minute is not called slow for that.
const SYNCS_MIN: u64 = 100;

/// What the state of a node is called that has no disk.
pub(crate) const NO_DISK: &str = "no disk";

const MIB: u64 = 1 << 20;

/// What the disk is called in one word.
fn state(disk: &DiskFigures) -> &'static str {
    match disk {
        DiskFigures { gone: Some(_), .. } => "gone",
        DiskFigures { is_full: true, .. } => "full",
        DiskFigures { writes_anew: true, .. } => "writes anew",
        _ if disk.sync_last_us > SLOW_US => "slow",
        _ if disk.sync_p99_us > SLOW_US && disk.syncs >= SYNCS_MIN => "slow",
        _ if disk.sync_under_way_us > STUCK_US => "slow",
        _ => "good",
    }
}

/// How the state of a node that serves is called, if that of its disk says more.
pub(crate) fn state_of_node(disk: &DiskFigures) -> Option<&'static str> {
    match state(disk) {
        "gone" => Some(NO_DISK),
        "writes anew" => Some("rewriting"),
        _ => None,
    }
}

pub(crate) fn as_json(disk: &DiskFigures) -> Value {
    json!({
        "path": disk.path,
        "state": state(disk),
        "why_gone": disk.gone,
        "free_bytes": disk.free_bytes,
        "total_bytes": disk.total_bytes,
        "wanted_bytes": disk.is_full.then_some(disk.wanted_bytes),
        "waiting_bytes": disk.waiting_bytes,
        "sync_last_us": disk.sync_last_us,
        "sync_p99_us": disk.sync_p99_us,
        "sync_under_way_us": disk.sync_under_way_us,
        "syncs_in_a_minute": disk.syncs,
    })
}

/// What a person is to know and to do; nothing if the disk is good.
pub(crate) fn words(node: NodeId, disk: &DiskFigures) -> Option<String> {
    let DiskFigures { path, waiting_bytes, .. } = disk;
    let waiting_kib = waiting_bytes / 1_024;
    Some(match state(disk) {
        "gone" => format!(
            "node {node} HAS NO DISK: {path}: {}. It goes on while it has the only full replica of its rows, in memory, and nothing of them is on \
             its disk. Do not end it: let there be a place for {path} again, and it writes all of them anew",
            disk.gone.as_deref().unwrap_or_default()
        ),
        "writes anew" => format!(
            "node {node} WRITES ITS ROWS ANEW into {path}, whose former files are gone: do not end it before that is done"
        ),
        "full" => format!(
            "node {node}: THE DISK IS FULL: {path}: {} of {} MiB are free, a write of {} KiB found no room, {waiting_kib} KiB wait. Changes are \
             refused when that is too much: make room, and all goes on by itself",
            disk.free_bytes / MIB,
            disk.total_bytes / MIB,
            disk.wanted_bytes.div_ceil(1_024)
        ),
        "slow" => format!(
            "node {node}: the disk is slow: {path}: of the last minute's {} syncs 99 of 100 took up to {} ms, the last one {} ms, one is under way \
             for {} ms; {waiting_kib} KiB wait",
            disk.syncs,
            disk.sync_p99_us / 1_000,
            disk.sync_last_us / 1_000,
            disk.sync_under_way_us / 1_000
        ),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_not_good_is_said() {
        let good = DiskFigures { path: "/data/node-1".to_string(), ..DiskFigures::default() };
        let node = NodeId::new(1);
        assert_eq!((words(node, &good), state_of_node(&good)), (None, None));
        let gone = DiskFigures { gone: Some("it was removed".to_string()), ..good.clone() };
        assert!(words(node, &gone).unwrap().contains("it was removed"));
        assert_eq!(state_of_node(&gone), Some(NO_DISK));
        let anew = DiskFigures { writes_anew: true, ..good.clone() };
        assert_eq!((state_of_node(&anew), state(&anew)), (Some("rewriting"), "writes anew"));
        let full = DiskFigures { is_full: true, free_bytes: 3 * MIB, ..good.clone() };
        assert!(words(node, &full).unwrap().contains("3 of 0 MiB are free"));
        let slow = DiskFigures { sync_p99_us: 300_000, syncs: 100, ..good.clone() };
        assert!(words(node, &slow).unwrap().contains("300 ms"));
        assert_eq!(state(&DiskFigures { sync_under_way_us: 2_000_000, ..good }), "slow");
    }
}
