//! Automation of this repository: `cargo xtask sim`, `cargo xtask tidy`.

use anyhow::{Context, bail};
use clap::{Parser, Subcommand};
use std::process::Command;

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
}

fn main() -> anyhow::Result<()> {
    match Args::parse().task {
        Task::Sim { arguments } => run(
            Command::new("cargo")
                .args(["run", "--quiet", "--profile", "sim", "-p", "lats-sim", "--"])
                .args(arguments),
        ),
        Task::Tidy => run(Command::new("cargo").args(["test", "--quiet", "-p", "xtask"])),
    }
}

fn run(command: &mut Command) -> anyhow::Result<()> {
    let status = command.status().context("cannot run cargo")?;
    if !status.success() {
        bail!("{command:?} has failed");
    }
    Ok(())
}

#[cfg(test)]
mod tidy;
