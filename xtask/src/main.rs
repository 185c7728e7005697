//! Automation of this repository: `cargo xtask sim`, `cargo xtask tidy`, `cargo xtask cost`,
//! `cargo xtask ci`.

use anyhow::{Context, bail};
use clap::{Parser, Subcommand};
use cost::Then;
use std::{
    path::{Path, PathBuf},
    process::Command,
};

mod cost;
#[cfg(test)]
mod tidy;

/// Automation of this repository.
#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Run the simulator: `cargo xtask sim --seeds 1000`; see `--help` there.
    #[command(disable_help_flag = true)]
    Sim {
        /// What the simulator is given.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Check the house rules (also run by `cargo test -p xtask`).
    Tidy,
    /// Count what operations cost a data node, with valgrind: instructions, allocations, cache misses.
    Cost {
        /// Add the counts to docs/costs.csv, under the number of the commit to come.
        #[arg(long)]
        record: bool,
        /// Fail if anything costs clearly more than it did when it was recorded last.
        #[arg(long, conflicts_with = "record")]
        check: bool,
    },
    /// Run everything that must pass before a change lands: `scripts/test.sh`.
    Ci,
}

fn main() -> anyhow::Result<()> {
    match Args::parse().task {
        Task::Sim { arguments } => run(Command::new("cargo")
            .args(["run", "--quiet", "--locked", "--profile", "sim", "-p", "lats-sim", "--"])
            .args(arguments)),
        Task::Tidy => {
            run(Command::new("cargo").args(["test", "--quiet", "--locked", "-p", "xtask"]))
        }
        Task::Cost { record, check } => cost::cost(match (record, check) {
            (true, _) => Then::Record,
            (_, true) => Then::Check,
            _ => Then::Print,
        }),
        Task::Ci => run(Command::new("bash").arg(root().join("scripts/test.sh")).env("CI", "true")),
    }
}

/// The folder of the workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Runs a program in the folder of the workspace, and passes its failure on.
fn run(command: &mut Command) -> anyhow::Result<()> {
    let program = command.get_program().to_owned();
    let status = command
        .current_dir(root())
        .status()
        .with_context(|| format!("cannot run {}", program.display()))?;
    if !status.success() {
        bail!("{} ended with {status}; what it printed above says why", program.display());
    }
    Ok(())
}
