//! All checks: `bash scripts/test.sh`, or a part of them. What the steps are stands in `steps.rs`, how one is run in `run.rs`.

mod outcome;
mod quick;
mod record;
mod run;
mod soak;
mod steps;

pub(crate) use quick::{Options as QuickOptions, quick};
pub(crate) use soak::{Options as SoakOptions, soak};

use crate::root;
use anyhow::{Context, bail};
use clap::Args;
use outcome::Outcome;
use run::Workplace;
use std::{
    path::PathBuf,
    process::Command,
    time::{Duration, Instant},
};

/// The whole must not take longer than this.
const LIMIT: Duration = Duration::from_secs(40 * 60);

/// What the checks are to do.
#[derive(Args)]
pub(crate) struct Options {
    /// Append the seconds of each step to docs/ci-times.csv.
    #[arg(long)]
    record: bool,
    /// Only steps whose name has this in it, and builds.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Go on after a step that fails.
    #[arg(long)]
    keep_going: bool,
    /// List the steps, and run none.
    #[arg(long)]
    list: bool,
    /// Run each step so many times.
    #[arg(long, default_value_t = 1, value_name = "N")]
    times: u32,
    /// Run two busy loops beside the tests of real processes.
    #[arg(long)]
    busy: bool,
    /// Seconds that setting up has taken before.
    #[arg(long, default_value_t = 0, hide = true)]
    prepared_s: u64,
}

/// Runs all checks.
pub(crate) fn checks(options: &Options) -> anyhow::Result<()> {
    let begun = now();
    let is_cold = !target().join(steps::PROFILE).join("latsdb").exists();
    let commit = commit_number();
    let mut phases = steps::phases(commit);
    if let Some(text) = &options.only {
        for phase in &mut phases {
            phase.steps.retain(|step| step.prepares || step.name.contains(text.as_str()));
        }
    } else if !options.list {
        steps::leave_out(&mut phases, commit);
    }
    if options.list {
        say("limit  step");
        for step in phases.iter().flat_map(|phase| &phase.steps) {
            say(&format!("{:>4} s  {}: {}", step.limit_s, step.name, step.command.join(" ")));
        }
        return Ok(());
    }
    let workplace = Workplace::new()?;
    let mut outcomes = Vec::new();
    if options.prepared_s > 0 {
        outcomes.push(Outcome::of_setup(options.prepared_s));
    }
    for phase in &phases {
        let rounds = if phase.is_repeated() { options.times } else { 1 };
        let busy = options.busy && phase.of_processes;
        let _loops = if busy { run::busy_loops(2)? } else { Vec::new() };
        for _ in 0..rounds {
            outcomes.extend(workplace.run(phase, options.keep_going)?);
            if outcomes.iter().any(|o| o.failed > 0) && !options.keep_going {
                break;
            }
        }
        if outcomes.iter().any(|o| o.failed > 0) && !options.keep_going {
            break;
        }
    }
    let took = begun.elapsed() + Duration::from_secs(options.prepared_s);
    conclude(options, &outcomes, took, is_cold, workplace)
}

/// Prints the table, keeps the record, and says how it ended.
fn conclude(
    options: &Options,
    outcomes: &[Outcome],
    took: Duration,
    is_cold: bool,
    workplace: Workplace,
) -> anyhow::Result<()> {
    say(&outcome::table(outcomes));
    let kept: Vec<String> =
        outcomes.iter().filter(|o| o.failed > 0).map(Outcome::what_is_left).collect();
    let failed: u64 = outcomes.iter().map(|o| o.failed).sum();
    let passed: u64 = outcomes.iter().map(|o| o.passed).sum();
    let is_whole = options.only.is_none() && options.times == 1 && failed == 0;
    if options.record && is_whole {
        record::append(outcomes, took, is_cold)?;
    }
    if !kept.is_empty() {
        say(&kept.join("\n"));
    }
    workplace.clear(failed == 0)?;
    let temperature = if is_cold { "cold" } else { "warm" };
    say(&format!("\n== {} steps in {} s, {temperature}", outcomes.len(), took.as_secs()));
    let late = is_whole && took > LIMIT;
    if late {
        say(&format!(
            "== TOO SLOW: all checks must end within {} s; make steps faster or move work into the soak",
            LIMIT.as_secs()
        ));
    }
    let skipped: u64 = outcomes.iter().map(|o| o.skipped).sum();
    let skips = if skipped > 0 { format!(", {skipped} skipped") } else { String::new() };
    say(&format!("{passed} passed, {} failed{skips}", failed + u64::from(late)));
    if failed > 0 || late {
        bail!("the checks have failed; the lines above say where, and how to run a step again");
    }
    Ok(())
}

/// Where cargo builds.
fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), Into::into)
}

/// How many commits there are: it chooses which planted bugs have their turn. 0 without git.
fn commit_number() -> usize {
    let said = git(&["rev-list", "--count", "HEAD"]).unwrap_or_default();
    said.parse().unwrap_or_default()
}

/// What git says, without the end of the line.
fn git(arguments: &[&str]) -> anyhow::Result<String> {
    let done = Command::new("git").args(arguments).current_dir(root()).output();
    let done = done.context("cannot run git")?;
    if !done.status.success() {
        bail!("git {}: {}", arguments.join(" "), String::from_utf8_lossy(&done.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&done.stdout).trim().to_string())
}

#[expect(clippy::disallowed_methods, reason = "a command-line tool: it says how long things take")]
fn now() -> Instant {
    Instant::now()
}

#[expect(clippy::print_stdout, reason = "a command-line tool")]
fn say(text: &str) {
    println!("{text}");
}
