//! `cargo xtask cost`: what operations cost a data node, counted by `valgrind` and therefore the same on every
//! run. The work itself is in `crates/cost`.

use super::{root, run};
use anyhow::{Context, bail};
use std::{collections::BTreeMap, io::Write, path::Path, process::Command};

/// Where the counts of each commit are kept.
const RECORD: &str = "docs/costs.csv";
/// What is counted: all that happens within this function of `crates/cost`.
const COUNTED: &str = "lats_cost::cluster::counted";
/// Caches like those of most servers, so that counts do not depend on this machine.
const CACHES: [&str; 3] = ["--I1=32768,8,64", "--D1=32768,8,64", "--LL=33554432,16,64"];

/// What one kind of work costs per operation.
#[derive(Clone, Debug, Default)]
struct Cost {
    instructions: f64,
    allocations: f64,
    /// Misses of the first level, and of the last.
    misses: f64,
    far_misses: f64,
}

/// Counts, prints, and with `record` notes the result under the number of the commit to come.
pub(crate) fn cost(record: bool) -> anyhow::Result<()> {
    run(Command::new("cargo").args([
        "build",
        "--quiet",
        "--locked",
        "--release",
        "-p",
        "lats-cost",
    ]))?;
    let program = target().join("release/lats-cost");
    let works = output(&mut Command::new(&program))?;
    let commit =
        output(Command::new("git").args(["rev-list", "--count", "HEAD"]).current_dir(root()))?;
    let commit: u64 = commit.trim().parse::<u64>().context("git says no number")? + 1;
    let mut lines = String::new();
    let mut out = std::io::stdout();
    writeln!(
        out,
        "{:<16} {:>12} {:>12} {:>10} {:>10}",
        "per operation", "instructions", "allocations", "misses", "far"
    )?;
    for work in works.lines() {
        let found = count(&program, work).with_context(|| format!("counting {work}"))?;
        let Cost { instructions, allocations, misses, far_misses } = found;
        writeln!(
            out,
            "{work:<16} {instructions:>12.0} {allocations:>12.1} {misses:>10.1} {far_misses:>10.2}"
        )?;
        lines += &format!(
            "{commit},{work},{instructions:.0},{allocations:.1},{misses:.1},{far_misses:.2}\n"
        );
    }
    if record {
        let path = root().join(RECORD);
        let mut all = std::fs::read_to_string(&path).context("reading the record")?;
        all += &lines;
        std::fs::write(&path, all).context("writing the record")?;
    }
    Ok(())
}

fn target() -> std::path::PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), Into::into)
}

fn output(command: &mut Command) -> anyhow::Result<String> {
    let name = command.get_program().display().to_string();
    let done = command.output().with_context(|| format!("cannot run {name}: is it installed?"))?;
    if !done.status.success() {
        bail!("{name} failed: {}", String::from_utf8_lossy(&done.stderr));
    }
    String::from_utf8(done.stdout).context("no text")
}

/// Counts a work. Calls are counted outside of what is measured, too, so allocations are the difference between
/// a long run and a short one.
fn count(program: &Path, work: &str) -> anyhow::Result<Cost> {
    let (short, operations) = profile(program, work, 20)?;
    let (long, more) = profile(program, work, 40)?;
    let mut cost = read(&short, operations)?;
    cost.allocations = (allocations(&long) - allocations(&short)) / (more - operations);
    Ok(cost)
}

/// The profile of so many rounds, and how many operations they were.
fn profile(program: &Path, work: &str, rounds: u32) -> anyhow::Result<(String, f64)> {
    let folder = target().join("cost");
    std::fs::create_dir_all(&folder)?;
    let profile = folder.join(work);
    let done = output(
        Command::new("valgrind")
            .args(["-q", "--tool=callgrind", "--cache-sim=yes"])
            .args(CACHES)
            .arg(format!("--toggle-collect={COUNTED}*"))
            .arg(format!("--callgrind-out-file={}", profile.display()))
            .arg(program)
            .args([work, "--rounds", &rounds.to_string()]),
    )?;
    let operations = done.trim().parse().context("the work says no number")?;
    Ok((std::fs::read_to_string(&profile)?, operations))
}

/// Reads a profile of callgrind's.
fn read(profile: &str, operations: f64) -> anyhow::Result<Cost> {
    let events = profile.lines().find_map(|l| l.strip_prefix("events: ")).context("no events")?;
    let totals = profile.lines().find_map(|l| l.strip_prefix("totals: ")).context("no totals")?;
    let numbers = totals.split_whitespace().map(|n| n.parse::<f64>().unwrap_or_default());
    let of: BTreeMap<&str, f64> = events.split_whitespace().zip(numbers).collect();
    let sum = |names: &[&str]| {
        names.iter().filter_map(|n| of.get(n)).fold(0.0, |a, b| a + b) / operations
    };
    Ok(Cost {
        instructions: sum(&["Ir"]),
        allocations: 0.0,
        misses: sum(&["I1mr", "D1mr", "D1mw"]),
        far_misses: sum(&["ILmr", "DLmr", "DLmw"]),
    })
}

/// Calls of Rust's allocation functions.
fn allocations(profile: &str) -> f64 {
    let mut names: BTreeMap<&str, &str> = BTreeMap::new();
    let (mut called, mut total) = ("", 0.0);
    for line in profile.lines() {
        if let Some(rest) = line.strip_prefix("cfn=").or_else(|| line.strip_prefix("fn=")) {
            let (id, name) = rest.split_once(' ').unwrap_or((rest, ""));
            if !name.is_empty() {
                names.insert(id, name);
            }
            if line.starts_with("cfn=") {
                called = names.get(id).copied().unwrap_or_default();
            }
        } else if let Some(rest) = line.strip_prefix("calls=") {
            let allocates = ["__rust_alloc", "__rust_alloc_zeroed", "__rust_realloc"];
            let count: f64 =
                rest.split(' ').next().and_then(|n| n.parse().ok()).unwrap_or_default();
            if allocates.iter().any(|end| called.ends_with(end)) {
                total += count;
            }
        }
    }
    total
}
