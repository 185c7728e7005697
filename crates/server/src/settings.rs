//! What settings may be. Everything that is wrong is said before anything is made or started: which setting, what is allowed, and why.

use crate::{
    archive,
    cluster_file::ClusterFile,
    machine::{self, Memory},
    options::{Durability, Options},
};
use anyhow::{bail, ensure};
use std::path::{Path, PathBuf};

/// No cluster has more data nodes.
const NODES_MAX: u16 = 48;
/// A node with less has no room for its catalog and its buffers.
pub(crate) const MEMORY_MIB_MIN: usize = 64;
/// Nobody means more than an hour.
const WAIT_MS_MAX: u64 = 3_600_000;
/// How long leases may last. With less than that a renewal that comes with the next tick of 10 ms is late already.
pub(crate) const LEASES_MS: std::ops::RangeInclusive<u64> = 100..=10_000;
/// A name of a location domain is not longer.
const LOCATION_BYTES_MAX: usize = 64;

/// Checks what the command line and the file say together.
///
/// # Errors
/// Which setting is wrong, what is allowed, and why.
pub(crate) fn check(args: &Options) -> anyhow::Result<()> {
    shape(args)?;
    ports(args)?;
    what_memory(args)?;
    what_is_kept(args)?;
    directories(args)?;
    waits(args)?;
    locations(args)?;
    threads(args)
}

fn shape(args: &Options) -> anyhow::Result<()> {
    let Options { nodes, replicas, .. } = *args;
    ensure!(
        (1..=4).contains(&replicas),
        "--replicas {replicas} is not allowed: each row has 1 to 4 replicas, on different nodes"
    );
    ensure!(
        (1..=NODES_MAX).contains(&nodes),
        "--nodes {nodes} is not allowed: a cluster has 1 to {NODES_MAX} data nodes"
    );
    ensure!(
        replicas <= nodes,
        "--replicas {replicas} needs as many data nodes, and --nodes is {nodes}: replicas of a row are on different nodes"
    );
    ensure!(
        nodes.is_multiple_of(replicas),
        "--nodes {nodes} is not a multiple of --replicas ({replicas}): each node group has that many nodes"
    );
    Ok(())
}

/// How many nodes there are, a witness too: two data nodes need a third voter; a single one decides alone.
pub(crate) fn node_count(data_nodes: u16) -> u16 {
    data_nodes + u16::from(data_nodes == 2)
}

fn ports(args: &Options) -> anyhow::Result<()> {
    let range = |first: u16, count: u16| u32::from(first)..u32::from(first) + u32::from(count);
    let sql = range(args.sql_port, args.nodes);
    let native = range(args.native_port, node_count(args.nodes));
    for (name, range) in [("--sql-port", &sql), ("--native-port", &native)] {
        ensure!(
            range.start > 0 && range.end <= 65_536,
            "{name} {} is not allowed: each node takes the next port, and ports are 1 to 65535",
            range.start
        );
    }
    ensure!(
        sql.end <= native.start || native.end <= sql.start,
        "--sql-port {} and --native-port {} collide: MySQL clients get the ports {} to {}, nodes and native clients {} to {}",
        sql.start,
        native.start,
        sql.start,
        sql.end - 1,
        native.start,
        native.end - 1
    );
    Ok(())
}

/// What was said now must fit; what a cluster has had before is used again.
fn what_memory(args: &Options) -> anyhow::Result<()> {
    let there_is = machine::memory();
    if args.says_memory {
        return memory(args.memory_mib, args.nodes, &there_is);
    }
    let is_new = !ClusterFile::path(&args.data_dir).exists();
    ensure!(
        !is_new || memory(args.memory_mib, args.nodes, &there_is).is_ok(),
        "{} data node(s) need {MEMORY_MIB_MIN} MiB each at least, and {} is {} MiB: run fewer nodes here (--nodes)",
        args.nodes,
        there_is.whose,
        there_is.mib
    );
    Ok(())
}

/// Memory of so many nodes here.
///
/// # Errors
/// It is too little for a node, or more than there is.
pub(crate) fn memory(mib: usize, nodes: u16, there_is: &Memory) -> anyhow::Result<()> {
    ensure!(
        mib >= MEMORY_MIB_MIN,
        "--memory-mib {mib} is not allowed: a node needs {MEMORY_MIB_MIN} MiB at least, for its catalog and buffers"
    );
    let most = there_is.mib / usize::from(nodes.max(1));
    ensure!(
        mib <= most || there_is.is_guess,
        "--memory-mib {mib} is not allowed: {nodes} data node(s) here can have {most} MiB each at most, for {} is {} MiB",
        there_is.whose,
        there_is.mib
    );
    Ok(())
}

/// Without a word about it: a quarter of what there is, or less for many nodes.
pub(crate) fn default_memory_mib(nodes: u16, there_is: &Memory) -> usize {
    let share = there_is.mib * 3 / 4 / usize::from(nodes.max(1));
    (there_is.mib / 4).min(share).max(MEMORY_MIB_MIN)
}

fn what_is_kept(args: &Options) -> anyhow::Result<()> {
    let archives = args.archive.as_deref().is_some_and(|path| path != Path::new(archive::OFF));
    if args.ephemeral && args.durability == Some(Durability::Disk) {
        bail!(
            "--durability disk needs disks, and --ephemeral keeps nothing there; leave one of them out"
        );
    }
    if args.ephemeral && archives {
        bail!("--archive keeps redo logs, and --ephemeral writes none; leave one of them out");
    }
    if args.ephemeral && args.partial {
        bail!(
            "--partial starts a cluster again from a part of its disks, and --ephemeral keeps nothing there; leave one of them out"
        );
    }
    Ok(())
}

fn directories(args: &Options) -> anyhow::Result<()> {
    let data_dir = &args.data_dir;
    ensure!(
        !data_dir.as_os_str().is_empty(),
        "--data-dir is empty: name the directory of the cluster"
    );
    let own = resolved(data_dir)?;
    ensure!(
        own.file_name().is_some() && !own.ends_with(".."),
        "--data-dir {} is not allowed: the cluster needs a directory of its own, and its log lies beside that",
        data_dir.display()
    );
    if own.exists() && !own.is_dir() {
        bail!("--data-dir {} is not allowed: it is no directory", data_dir.display());
    }
    let above = own.ancestors().skip(1).find(|path| path.exists());
    if let Some(file) = above.filter(|path| !path.is_dir()) {
        bail!(
            "--data-dir {} is not allowed: {} is no directory",
            data_dir.display(),
            file.display()
        );
    }
    let Some(path) = args.archive.as_deref().filter(|path| *path != Path::new(archive::OFF)) else {
        return Ok(());
    };
    ensure!(!path.as_os_str().is_empty(), "--archive is empty: name a directory, or `off`");
    archive::is_directory(path)?;
    let archive = resolved(path)?;
    if archive.starts_with(&own) || own.starts_with(&archive) {
        bail!(
            "--archive {} and --data-dir {} lie in each other: an archive is for the day when the data directory is gone; name another \
             place, on another disk",
            path.display(),
            data_dir.display()
        );
    }
    if archive.exists() && !archive.is_dir() {
        bail!("--archive {} is not allowed: it is no directory", path.display());
    }
    Ok(())
}

/// The path from the root on, without links as far as it exists.
fn resolved(path: &Path) -> anyhow::Result<PathBuf> {
    let absolute = std::path::absolute(path)?;
    let known = absolute.ancestors().find_map(|above| {
        let rest = absolute.strip_prefix(above).ok()?;
        let above = std::fs::canonicalize(above).ok()?;
        Some(if rest.as_os_str().is_empty() { above } else { above.join(rest) })
    });
    Ok(known.unwrap_or(absolute))
}

fn waits(args: &Options) -> anyhow::Result<()> {
    let cut_off = args.threads.cut_off_wait_ms;
    ensure!(
        (100..=WAIT_MS_MAX).contains(&cut_off),
        "--cut-off-wait-ms {cut_off} is not allowed: 100 to {WAIT_MS_MAX}; in less the cluster cannot have found out who lives"
    );
    ensure!(
        args.restart_delay_ms <= WAIT_MS_MAX,
        "--restart-delay-ms {} is not allowed: 0 to {WAIT_MS_MAX}; --no-restart leaves dead nodes alone",
        args.restart_delay_ms
    );
    ensure!(
        !args.restarts_disagree,
        "--no-restart starts no node again, and --restart-delay-ms says when to; leave one of them out"
    );
    ensure!(
        args.lease_ms.is_none_or(|ms| LEASES_MS.contains(&ms)),
        "--lease-ms {} is not allowed: {} to {}; a healthy node must have time to renew its lease, and a silent one is waited for so long",
        args.lease_ms.unwrap_or_default(),
        LEASES_MS.start(),
        LEASES_MS.end()
    );
    Ok(())
}

fn locations(args: &Options) -> anyhow::Result<()> {
    ensure!(
        args.locations.len() <= usize::from(node_count(args.nodes)),
        "--locations names {} location domains, and the cluster has {} nodes: each domain needs one",
        args.locations.len(),
        node_count(args.nodes)
    );
    args.locations.iter().try_for_each(|name| location(name))
}

/// The name of a location domain.
///
/// # Errors
/// If it is none.
pub(crate) fn location(name: &str) -> anyhow::Result<()> {
    let fits = !name.is_empty() && name.len() <= LOCATION_BYTES_MAX;
    ensure!(
        fits && name == name.trim() && !name.chars().any(char::is_control),
        "the location domain {name:?} is not allowed: a name has 1 to {LOCATION_BYTES_MAX} bytes, no blanks around it, and no control \
         characters"
    );
    Ok(())
}

/// What its nodes would refuse is better said before there are any.
fn threads(args: &Options) -> anyhow::Result<()> {
    use lats_runtime::{ReadPlacement, SpinMethod, plan};
    let threads = &args.threads;
    let named = |option: &'static str| move |error: String| anyhow::anyhow!("{option}: {error}");
    if let Some(config) = &threads.config {
        let plans = plan::parse(config).map_err(|e| named("--thread-config")(e.to_string()))?;
        if args.nodes > 1 && plans.iter().any(|p| p.cpus.len() == 1) {
            bail!(
                "--thread-config with cpubind, or with a cpuset of one processor, binds the threads of one node, and {} are to run here; \
                 use a larger cpuset, or start each node with `latsdb node`",
                args.nodes
            );
        }
    }
    ensure!(
        threads.responsiveness <= 10,
        "--scheduler-responsiveness {} is not allowed: 0 (large batches) to 10 (answers as soon as possible)",
        threads.responsiveness
    );
    let spin = threads.spin_method.parse::<SpinMethod>().map(drop);
    spin.map_err(|error| named("--spin-method")(error.to_string()))?;
    let reads = threads.read_placement.parse::<ReadPlacement>().map(drop);
    reads.map_err(|error| named("--read-placement")(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there_is(mib: usize) -> Memory {
        Memory { mib, whose: "this machine's memory".to_string(), is_guess: false }
    }

    #[test]
    fn memory_is_what_a_node_needs_and_the_machine_has() {
        let wrong = |mib, nodes| memory(mib, nodes, &there_is(8_192)).unwrap_err().to_string();
        assert!(wrong(0, 1).contains("64 MiB at least"));
        assert!(wrong(100_000_000_000_000, 2).contains("4096 MiB each at most"));
        assert!(wrong(4_097, 2).contains("this machine's memory is 8192 MiB"));
        memory(4_096, 2, &there_is(8_192)).unwrap();
        memory(64, 48, &there_is(8_192)).unwrap();
        memory(8_192, 2, &Memory { is_guess: true, ..there_is(4_096) }).unwrap();
    }

    #[test]
    fn the_default_fits_for_any_number_of_nodes() {
        for (mib, nodes) in [(24_000, 1), (24_000, 2), (8_000, 4), (8_000, 48), (512, 2)] {
            let each = default_memory_mib(nodes, &there_is(mib));
            memory(each, nodes, &there_is(mib)).unwrap();
        }
        assert_eq!(default_memory_mib(2, &there_is(24_000)), 6_000);
        assert_eq!(default_memory_mib(48, &there_is(24_000)), 375);
    }
}
