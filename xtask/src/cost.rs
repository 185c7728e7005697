//! `cargo xtask cost`: what operations cost a data node, counted by `valgrind` and therefore the same on every
//! run. The work itself is in `crates/cost`.

use super::{root, run};
use anyhow::{Context, bail};
use std::{collections::BTreeMap, io::Write, path::Path, process::Command};

/// Where the counts of each commit are kept.
const RECORD: &str = "docs/costs.csv";
/// What is counted: all that happens within these functions of `crates/cost`, without what happens within the last.
const COUNTED: [&str; 3] =
    ["lats_cost::cluster::counted", "lats_cost::sql::counted", "lats_cost::sql::uncounted"];
/// Caches like those of most servers, so that counts do not depend on this machine.
const CACHES: [&str; 3] = ["--I1=32768,8,64", "--D1=32768,8,64", "--LL=33554432,16,64"];

/// Functions that allocate.
const ALLOCATORS: [&str; 3] = ["__rust_alloc", "__rust_alloc_zeroed", "__rust_realloc"];

/// What one kind of work costs per operation.
#[derive(Clone, Debug, Default)]
struct Cost {
    instructions: f64,
    allocations: f64,
    /// Misses of the first level, and of the last.
    misses: f64,
    far_misses: f64,
}

/// More than what was recorded last by this factor, or by so many allocations, is a step back.
const DEARER: f64 = 1.05;
const MORE_ALLOCATIONS: f64 = 0.3;

/// What is done with the counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// They are printed.
    Print,
    /// They are kept, under the number of the commit to come.
    Record,
    /// They must not be larger than those that were kept last.
    Check,
}

/// Counts, and prints.
pub(crate) fn cost(then: Then) -> anyhow::Result<()> {
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
    let kept = std::fs::read_to_string(root().join(RECORD)).context("reading the record")?;
    let (mut lines, mut dearer) = (String::new(), Vec::new());
    let mut out = std::io::stdout();
    writeln!(
        out,
        "{:<20} {:>12} {:>12} {:>10} {:>10}",
        "per operation", "instructions", "allocations", "misses", "far"
    )?;
    let call_costs = call_costs(&program, works.lines().next_back().context("there is no work")?)?;
    for work in works.lines() {
        let found =
            count(&program, work, &call_costs).with_context(|| format!("counting {work}"))?;
        dearer.extend(is_dearer(&kept, work, &found));
        let Cost { instructions, allocations, misses, far_misses } = found;
        writeln!(
            out,
            "{work:<20} {instructions:>12.0} {allocations:>12.1} {misses:>10.1} {far_misses:>10.2}"
        )?;
        lines += &format!(
            "{commit},{work},{instructions:.0},{allocations:.1},{misses:.1},{far_misses:.2}\n"
        );
    }
    match then {
        Then::Print => Ok(()),
        Then::Record => {
            std::fs::write(root().join(RECORD), kept + &lines).context("writing the record")
        }
        Then::Check if dearer.is_empty() => Ok(()),
        Then::Check => bail!(
            "dearer than recorded (if it must be, say why in the commit that records it with \
             `cargo xtask cost --record`): {}",
            dearer.join("; ")
        ),
    }
}

/// Says so if a work costs clearly more than when it was recorded last.
fn is_dearer(kept: &str, work: &str, found: &Cost) -> Option<String> {
    let line = kept.lines().rev().find(|line| line.split(',').nth(1) == Some(work))?;
    let number = |at: usize| line.split(',').nth(at).and_then(|n| n.parse::<f64>().ok());
    let (instructions, allocations) = (number(2)?, number(3)?);
    let dearer = found.instructions > instructions * DEARER
        || found.allocations > allocations + MORE_ALLOCATIONS;
    dearer.then(|| {
        format!(
            "{work}: {:.0} instructions after {instructions:.0}, {:.1} allocations after {allocations:.1}",
            found.instructions, found.allocations
        )
    })
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

/// Counts a work.
fn count(program: &Path, work: &str, call_costs: &BTreeMap<&str, f64>) -> anyhow::Result<Cost> {
    let limits = COUNTED.map(|name| format!("--toggle-collect={name}*"));
    let limits = limits.iter().map(String::as_str).chain(["--cache-sim=yes"]);
    let options: Vec<&str> = limits.chain(CACHES.iter().copied()).collect();
    let (profile, operations) = profile(program, work, &options)?;
    let mut cost = read(&profile, operations)?;
    for (name, (instructions, _)) in allocators(&profile) {
        let per_call = call_costs.get(name).context("an allocation function is new")?;
        cost.allocations += instructions / per_call / operations;
    }
    Ok(cost)
}

/// The profile of some rounds, and how many operations they were.
fn profile(program: &Path, work: &str, options: &[&str]) -> anyhow::Result<(String, f64)> {
    let folder = target().join("cost");
    std::fs::create_dir_all(&folder)?;
    let profile = folder.join(work);
    let done = output(
        Command::new("valgrind")
            .args(["-q", "--tool=callgrind"])
            .args(options)
            .arg(format!("--callgrind-out-file={}", profile.display()))
            .arg(program)
            .arg(work),
    )?;
    let operations = done.trim().parse().context("the work says no number")?;
    Ok((std::fs::read_to_string(&profile)?, operations))
}

/// Instructions of a call of each of Rust's allocation functions, without what they call. In a limited profile calls
/// are counted outside of the limits, too, but instructions are not: this tells how many calls they were.
fn call_costs(program: &Path, work: &str) -> anyhow::Result<BTreeMap<&'static str, f64>> {
    let (profile, _) = profile(program, work, &[])?;
    let cost = |(name, (instructions, calls)): (_, (f64, f64))| (name, instructions / calls);
    Ok(allocators(&profile).into_iter().map(cost).collect())
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

/// Instructions of Rust's allocation functions themselves, and calls of them.
fn allocators(profile: &str) -> BTreeMap<&'static str, (f64, f64)> {
    let which = |name: &str| ALLOCATORS.into_iter().find(|end| name.ends_with(end));
    let mut names: BTreeMap<&str, &str> = BTreeMap::new();
    let mut found: BTreeMap<&'static str, (f64, f64)> = BTreeMap::new();
    let (mut here, mut called, mut behind_call) = ("", "", false);
    let number = |line: &str, at: usize| {
        line.split(' ').nth(at).and_then(|n| n.parse::<f64>().ok()).unwrap_or_default()
    };
    for line in profile.lines() {
        if let Some(rest) = line.strip_prefix("cfn=").or_else(|| line.strip_prefix("fn=")) {
            let (id, name) = rest.split_once(' ').unwrap_or((rest, ""));
            if !name.is_empty() {
                names.insert(id, name);
            }
            let name = names.get(id).copied().unwrap_or_default();
            *(if line.starts_with('c') { &mut called } else { &mut here }) = name;
        } else if let Some(rest) = line.strip_prefix("calls=") {
            behind_call = true;
            if let Some(which) = which(called) {
                found.entry(which).or_default().1 += number(rest, 0);
            }
        } else if line.starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first))
            && !core::mem::take(&mut behind_call)
            && let Some(which) = which(here)
        {
            found.entry(which).or_default().0 += number(line, 1);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_costs_more_than_it_did_is_named() {
        let kept = "commit,work,instructions\n1,read,900,0.0,1,1\n2,read,1000,0.0,1,1\n2,write,5000,2.0,1,1\n";
        let cost =
            |instructions, allocations| Cost { instructions, allocations, ..Cost::default() };
        assert_eq!(is_dearer(kept, "read", &cost(1_049.0, 0.0)), None);
        assert!(is_dearer(kept, "read", &cost(1_051.0, 0.0)).is_some_and(|s| s.contains("1000")));
        assert_eq!(is_dearer(kept, "write", &cost(5_000.0, 2.2)), None);
        assert!(is_dearer(kept, "write", &cost(4_000.0, 2.4)).is_some());
        assert_eq!(is_dearer(kept, "new", &cost(1e9, 9.0)), None);
    }
}
