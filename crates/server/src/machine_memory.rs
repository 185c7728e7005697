//! How much memory there is: the machine's, or what the container or the unit that this process runs in may have.

use std::path::Path;

/// What is assumed where the system does not say.
const UNKNOWN_BYTES: u64 = 4 << 30;
/// Where control groups are, and where this process is among them.
const GROUPS: &str = "/sys/fs/cgroup";
const OWN_GROUPS: &str = "/proc/self/cgroup";

/// Bytes of memory that this process and all others in its container may have.
pub(crate) fn machine_memory() -> u64 {
    let installed = installed(&read(Path::new("/proc/meminfo"))).unwrap_or(UNKNOWN_BYTES);
    let own = read(Path::new(OWN_GROUPS));
    limit_of_groups(&own, &|path| read(&Path::new(GROUPS).join(path)))
        .map_or(installed, |limit| installed.min(limit))
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// The machine's memory, as `/proc/meminfo` has it.
fn installed(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()?.checked_mul(1_024)
}

/// The smallest limit of the groups that the process is in, of both versions; `file` gives a file below the groups' directory.
fn limit_of_groups(own: &str, file: &dyn Fn(&str) -> String) -> Option<u64> {
    let mut limits = Vec::new();
    for line in own.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(group)) = (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        let (below, names): (&str, &[&str]) = match controllers {
            "" => ("", &["memory.max", "memory.high"]),
            _ if controllers.split(',').any(|controller| controller == "memory") => {
                ("memory/", &["memory.limit_in_bytes"])
            }
            _ => continue,
        };
        // The limits of the groups around it count, too. In a container the process may see its own group as the outermost.
        let mut group = group.trim_matches('/');
        loop {
            let paths =
                names.iter().map(|name| format!("{below}{group}/{name}").replace("//", "/"));
            limits.extend(paths.filter_map(|path| number(&file(path.trim_start_matches('/')))));
            if group.is_empty() {
                break;
            }
            group = group.rsplit_once('/').map_or("", |(around, _)| around);
        }
    }
    limits.into_iter().min()
}

/// A limit; none for "max", and for the largest number, which says so in the first version.
fn number(text: &str) -> Option<u64> {
    text.trim().parse::<u64>().ok().filter(|bytes| *bytes > 0 && *bytes < 1 << 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn limit(own: &str, files: &[(&str, &str)]) -> Option<u64> {
        let files: BTreeMap<&str, &str> = files.iter().copied().collect();
        limit_of_groups(own, &|path| files.get(path).copied().unwrap_or_default().to_owned())
    }

    #[test]
    fn the_smallest_limit_around_the_process_counts() {
        let files = [
            ("a/b/memory.max", "max\n"),
            ("a/b/memory.high", "3000000000\n"),
            ("a/memory.max", "2147483648\n"),
        ];
        assert_eq!(limit("0::/a/b\n", &files), Some(2_147_483_648));
        assert_eq!(limit("0::/\n", &[("memory.max", "536870912")]), Some(536_870_912));
        assert_eq!(limit("0::/\n", &[("memory.max", "max")]), None);
        assert_eq!(limit("", &files), None);
    }

    #[test]
    fn groups_of_the_first_version_count_too() {
        let own = "5:cpu,cpuacct:/x\n4:memory:/docker/abc\n0::/\n";
        let files = [
            ("memory/docker/abc/memory.limit_in_bytes", "1073741824"),
            ("memory/memory.limit_in_bytes", "9223372036854771712"),
        ];
        assert_eq!(limit(own, &files), Some(1 << 30));
    }

    #[test]
    fn the_machine_has_memory() {
        assert_eq!(installed("MemTotal:       16 kB\nMemFree: 3 kB\n"), Some(16_384));
        assert_eq!(installed("nothing"), None);
        assert!(machine_memory() > 64 << 20);
    }
}
