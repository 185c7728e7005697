//! Machines whose memory is in several places (NUMA nodes): a node's memory is spread over all of them that it has
//! processors at. Any thread may touch any row, and the thread that keeps memory ready would put all of it into one place.
//!
//! Done by `numactl`, where it is installed: the system call has no safe wrapper.

use std::{
    path::Path,
    process::{Command, Stdio},
};

/// Where the kernel describes them.
const SYSFS: &str = "/sys/devices/system/node";

/// Set for programs that were started by [`this_program`].
pub(crate) const IS_PLACED: &str = "LATSDB_MEMORY_IS_PLACED";

/// The command that runs this program, with its memory spread.
///
/// # Errors
/// If the path of this program is not known.
pub(crate) fn this_program() -> std::io::Result<Command> {
    let program = std::env::current_exe()?;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let places = places(Path::new(SYSFS), allowed.unwrap_or_default());
    let mut command = match interleave("numactl", &places) {
        Some(mut command) => {
            command.arg(program);
            command
        }
        None => Command::new(program),
    };
    command.env(IS_PLACED, "1");
    Ok(command)
}

/// What is to be put before a program; none if there is nothing to spread, or it cannot be done.
fn interleave(numactl: &str, places: &[usize]) -> Option<Command> {
    if places.len() < 2 {
        return None;
    }
    let list = places.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let spread = || {
        let mut command = Command::new(numactl);
        command.arg(format!("--interleave={list}"));
        command
    };
    // In a container it may be there, and not be allowed to.
    let tried = spread().arg("true").stdin(Stdio::null()).stdout(Stdio::null()).status();
    if tried.is_ok_and(|status| status.success()) {
        return Some(spread());
    }
    tracing::warn!(
        "memory is not spread over this machine's NUMA nodes {list}: `{numactl}` is missing, or may not do it"
    );
    None
}

/// The NUMA nodes with memory at which the process has processors.
fn places(sysfs: &Path, allowed: &str) -> Vec<usize> {
    let allowed = numbers(allowed);
    let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
    let mut places = numbers(&read(&sysfs.join("has_memory")));
    places.retain(|place| {
        let cpus = numbers(&read(&sysfs.join(format!("node{place}/cpulist"))));
        cpus.iter().any(|cpu| allowed.contains(cpu))
    });
    places
}

/// `0-2,7`; what is no number is left out.
fn numbers(list: &str) -> Vec<usize> {
    const MOST: usize = 1 << 16;
    let mut found = Vec::new();
    for part in list.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.trim().parse::<usize>(), last.trim().parse::<usize>())
        {
            found.extend(first..=last.min(first.saturating_add(MOST)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(command: &Command) -> Vec<String> {
        command.get_args().map(|a| a.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn only_places_with_memory_and_own_processors_count() {
        let folder = std::env::temp_dir().join(format!("latsdb-numa-{}", std::process::id()));
        for (place, cpus) in [(0, "0-3,8-11"), (1, "4-7"), (2, "")] {
            let node = folder.join(format!("node{place}"));
            std::fs::create_dir_all(&node).unwrap();
            std::fs::write(node.join("cpulist"), format!("{cpus}\n")).unwrap();
        }
        std::fs::write(folder.join("has_memory"), "0-2\n").unwrap();
        assert_eq!(places(&folder, "\t0-11"), [0, 1], "the third has no processors");
        assert_eq!(places(&folder, "9"), [0]);
        assert_eq!(places(&folder, ""), Vec::<usize>::new());
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(places(&folder, "0-11"), Vec::<usize>::new());
    }

    #[test]
    fn memory_is_spread_where_that_works() {
        // `false` stands for one that may not, `echo` for one that may.
        assert!(interleave("echo", &[0]).is_none(), "there is one place only");
        assert!(interleave("false", &[0, 1]).is_none());
        assert!(interleave("latsdb-no-such-program", &[0, 1]).is_none());
        let command = interleave("echo", &[0, 2]).unwrap();
        assert_eq!(arguments(&command), ["--interleave=0,2"]);
    }
}
