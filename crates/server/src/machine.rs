//! What this machine lets a process have: its memory, or what its container may use of it.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// How much memory there is for this process, and who says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Memory {
    pub(crate) mib: usize,
    pub(crate) whose: String,
    /// Nobody says so: nothing is refused for that.
    pub(crate) is_guess: bool,
}

/// Where control groups are.
const CGROUPS: &str = "/sys/fs/cgroup";

/// The memory of the machine, or of the container if that has less.
pub(crate) fn memory() -> Memory {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    least(in_meminfo(&text), limit_of(&own, Path::new(CGROUPS)))
}

/// Without `/proc` a small machine is assumed.
const UNKNOWN_MIB: usize = 4_096;

fn in_meminfo(text: &str) -> Option<usize> {
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: usize = total.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kib / 1_024)
}

fn least(machine: Option<usize>, group: Option<(usize, PathBuf)>) -> Memory {
    let machine_mib = machine.unwrap_or(UNKNOWN_MIB);
    match group {
        Some((mib, file)) if mib < machine_mib => {
            let whose = format!("the limit of this container ({})", file.display());
            Memory { mib, whose, is_guess: false }
        }
        _ => Memory {
            mib: machine_mib,
            whose: "this machine's memory".to_string(),
            is_guess: machine.is_none(),
        },
    }
}

/// The smallest limit of a process's control groups, in MiB, and the file that has it: those above it count, too. `own` is what
/// `/proc/self/cgroup` says.
fn limit_of(own: &str, root: &Path) -> Option<(usize, PathBuf)> {
    let files = own.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let path = path.trim_start_matches('/');
        // Version 2 has one tree without a name, version 1 one for each controller. A container may see its own group as the root.
        if controllers.is_empty() {
            Some((root.to_path_buf(), path, &["memory.max", "memory.high"][..]))
        } else if controllers.split(',').any(|name| name == "memory") {
            Some((root.join("memory"), path, &["memory.limit_in_bytes"][..]))
        } else {
            None
        }
    });
    let limits = files.flat_map(|(tree, path, names)| {
        let group = tree.join(path);
        let above: Vec<PathBuf> = group.ancestors().map(Path::to_path_buf).collect();
        let within = above.into_iter().filter(move |group| group.starts_with(&tree));
        let files = within.flat_map(move |group| names.iter().map(move |name| group.join(name)));
        files.filter_map(|file| {
            let bytes: u64 = fs::read_to_string(&file).ok()?.trim().parse().ok()?;
            Some((usize::try_from(bytes >> 20).ok()?, file))
        })
    });
    limits.min_by_key(|(mib, _)| *mib)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_a_machine_is_read() {
        assert_eq!(in_meminfo("MemFree: 1 kB\nMemTotal:       24683812 kB\n"), Some(24_105));
        assert_eq!(in_meminfo("nothing"), None);
        assert!(memory().mib > 0);
    }

    #[test]
    fn the_smallest_limit_of_all_groups_counts() {
        let root = std::env::temp_dir().join(format!("lats-groups-{}", std::process::id()));
        let group = root.join("a/b");
        fs::create_dir_all(&group).unwrap();
        fs::create_dir_all(root.join("memory/c")).unwrap();
        fs::write(group.join("memory.max"), "max\n").unwrap();
        assert_eq!(limit_of("0::/a/b\n", &root), None);
        fs::write(root.join("a/memory.max"), format!("{}\n", 512_u64 << 20)).unwrap();
        assert_eq!(limit_of("0::/a/b\n", &root), Some((512, root.join("a/memory.max"))));
        fs::write(root.join("memory.high"), format!("{}\n", 400_u64 << 20)).unwrap();
        assert_eq!(limit_of("0::/a/b\n", &root), Some((400, root.join("memory.high"))));
        fs::write(root.join("memory/c/memory.limit_in_bytes"), "104857600\n").unwrap();
        let both = "3:cpu,cpuacct:/c\n2:memory:/c\n0::/a/b\n";
        let (mib, file) = limit_of(both, &root).unwrap();
        assert_eq!(mib, 100);
        let seen = least(Some(24_105), Some((mib, file)));
        assert!(seen.whose.contains("this container") && seen.mib == 100);
        // Without a limit version 1 has a very large number.
        assert_eq!(least(Some(24_105), Some((8_796_093_022_207, root.clone()))).mib, 24_105);
        fs::remove_dir_all(root).unwrap();
    }
}
