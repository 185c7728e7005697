//! How many files and sockets this process may have open.

use lats_base::limits;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files, links to nodes, native clients, and what libraries keep open.
const FOR_OTHERS: u64 = 512;

/// Raises the limit as far as the system allows. Gives how many MySQL clients it leaves room for, and says so if these are
/// fewer than there may be.
pub(crate) fn raise() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let current = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(error) => {
            tracing::warn!(%error, "cannot raise the limit of open files");
            limit.current
        }
    };
    // None: as many as the machine has.
    let clients = clients_within(current.unwrap_or(u64::MAX));
    if clients < limits::CLIENTS_PER_NODE_MAX {
        tracing::warn!(
            "this process may have only {} files open, and so {clients} MySQL clients at a time instead of {}: raise the hard limit \
             (ulimit -Hn, or LimitNOFILE= of a systemd unit)",
            current.unwrap_or_default(),
            limits::CLIENTS_PER_NODE_MAX
        );
    }
    clients
}

fn clients_within(files: u64) -> usize {
    let rest = match files > 2 * FOR_OTHERS {
        true => files - FOR_OTHERS,
        false => files / 2,
    };
    usize::try_from(rest).unwrap_or(usize::MAX).min(limits::CLIENTS_PER_NODE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_files_leave_room_for_few_clients() {
        let cases = [(100, 50), (1_024, 512), (1_025, 513), (4_096, 3_584), (u64::MAX, 4_096)];
        for (files, clients) in cases {
            assert_eq!(clients_within(files), clients, "{files}");
        }
    }
}
