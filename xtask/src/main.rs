//! Automation of this repository: `cargo xtask check`, `sim`, `planted`, `planted-sql`, `tidy`, `cost`, `ci`, `soak`.

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
    /// Look for all planted bugs of queries, with generated statements beside MariaDB; see `tests/differ_planted.py --help`.
    #[command(disable_help_flag = true)]
    PlantedSql {
        /// What the script is given.
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
        Task::PlantedSql { arguments } => planted_sql(&arguments),
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

/// Builds a server that can have a planted bug of queries, and looks for each of them.
fn planted_sql(arguments: &[String]) -> anyhow::Result<()> {
    // In a folder of its own: no other server may be able to err on purpose.
    const FOLDER: &str = "target/planted";
    let build = ["build", "--locked", "--profile", "checked", "-p", "latsdb"];
    let of_its_own = ["--features", "planted", "--target-dir", FOLDER];
    run(Command::new("cargo").args(build).args(of_its_own))?;
    let binary = format!("{FOLDER}/checked/latsdb");
    let script = ["tests/with_mariadb.sh", "python3", "tests/differ_planted.py"];
    let options = ["--binary", &binary, "--oracle-port", "{port}"];
    run(Command::new("bash").args(script).args(options).args(arguments))
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
