//! The end of a cluster: all nodes are told to end, and say whether anything is lost (`docs/protocols/close.md`).

use super::{Signals, Supervisor, span};
use crate::say::say;
use anyhow::bail;
use lats_runtime::clock;
use lats_signals::control::{STATUS_ENDED, STATUS_REMOVED, STATUS_STOPPED};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

/// Longer than a node that is told to end takes.
const NODES_END: Duration = Duration::from_secs(25);
/// How often it is looked for nodes that have ended.
const LOOK: Duration = Duration::from_millis(20);

/// The file that says what may be lost after the last stop.
pub(crate) fn file(data_dir: &Path) -> PathBuf {
    data_dir.join("stop-failed.txt")
}

/// The file that says that the nodes were told to end.
pub(crate) fn begun_file(data_dir: &Path) -> PathBuf {
    data_dir.join("stopping.txt")
}

/// Ends the nodes; who is told once more meanwhile kills them.
pub(super) fn stop(it: &mut Supervisor, signals: &mut Signals) -> anyhow::Result<ExitCode> {
    it.due.clear();
    let _ = std::fs::write(begun_file(&it.data_dir), "");
    tell_all(it);
    let (told_at, mut failures) = (clock::now(), Vec::new());
    while !it.children.is_empty() && clock::now().since(told_at) < span(NODES_END) {
        for (node_id, status) in it.dead() {
            let ended = |known: u64| status == Some(known as i32);
            if ![STATUS_ENDED, STATUS_STOPPED, STATUS_REMOVED].into_iter().any(ended) {
                let status = status.map_or("a signal".to_string(), |s| format!("status {s}"));
                failures.push(format!("node {node_id} has ended with {status}"));
            }
        }
        // A supervisor and a container host may both pass on the same wish.
        let insists = it.tokio.block_on(signals.end_within(LOOK));
        if insists && clock::now().since(told_at) >= span(Duration::from_secs(1)) {
            failures.push("a second signal has ended all nodes at once".to_string());
            break;
        }
    }
    let late = it.children.keys().map(|n| format!("node {n} was killed"));
    failures.extend(late);
    let data_dir = it.data_dir.clone();
    let why = (!failures.is_empty()).then(|| {
        format!(
            "{}; what was committed last may be lost (the cluster's log says more)",
            failures.join(", ")
        )
    });
    if let Some(why) = &why {
        let _ = std::fs::write(file(&data_dir), why);
    }
    it.kill_all();
    let _ = std::fs::remove_file(begun_file(&data_dir));
    match why {
        Some(why) => bail!("the cluster is stopped, but {why}"),
        None => {
            say!("latsdb: the cluster is stopped");
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn tell_all(it: &Supervisor) {
    for child in it.children.values() {
        if let Some(pid) = Pid::from_raw(child.id() as i32) {
            // It may have ended by itself. A person may have told it, too: this is no second wish.
            let _ = kill_process(pid, Signal::USR1);
        }
    }
}
