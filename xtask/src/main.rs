//! Automation of this repository: `cargo xtask check`, `sim`, `planted`, `tidy`, `cost`, `ci`, `soak`.

use anyhow::{Context, bail};
use clap::{Parser, Subcommand};
use cost::Then;
use std::{
    path::{Path, PathBuf},
    process::Command,
};

mod checks;
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
    /// Run everything that must pass before a change lands. `bash scripts/test.sh` installs what that needs, and does this.
    Ci(checks::Options),
    /// Run what takes hours: fresh seeds, all planted bugs, kills of real processes (`bash scripts/test.sh --long`).
    Soak(checks::SoakOptions),
    /// Look for all planted bugs.
    #[command(disable_help_flag = true)]
    Planted {
        /// What the simulator is given.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Check what has changed, in a few minutes: format, lints, house rules, unit tests, a hundred seeds.
    Check(checks::QuickOptions),
}

/// What runs the house rules.
const TIDY: [&str; 7] = ["test", "--quiet", "--locked", "--profile", "checked", "-p", "xtask"];
/// What runs the simulator.
const SIM: [&str; 7] = ["run", "--quiet", "--locked", "--profile", "checked", "-p", "lats-sim"];

fn main() -> anyhow::Result<()> {
    match Args::parse().task {
        Task::Sim { arguments } => run(Command::new("cargo").args(SIM).arg("--").args(arguments)),
        Task::Planted { arguments } => {
            run(Command::new("cargo").args(SIM).args(["--", "--planted"]).args(arguments))
        }
        Task::Check(options) => checks::quick(&options),
        Task::Tidy => run(Command::new("cargo").args(TIDY)),
        Task::Cost { record, check } => cost::cost(match (record, check) {
            (true, _) => Then::Record,
            (_, true) => Then::Check,
            _ => Then::Print,
        }),
        Task::Ci(options) => checks::checks(&options),
        Task::Soak(options) => checks::soak(&options),
    }
}

/// The folder of the workspace.
fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().map_or_else(|| own.to_path_buf(), Path::to_path_buf)
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
