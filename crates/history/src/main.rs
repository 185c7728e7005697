//! `lats-history`: makes histories through the native client, and checks histories of any client.

mod native;

use anyhow::Context;
use clap::{Parser, Subcommand};
use lats_history::Transaction;
use std::{
    io::{BufRead, BufReader},
    path::PathBuf,
    process::ExitCode,
};

/// Histories of transactions on lists.
#[derive(Parser)]
#[command(name = "lats-history", arg_required_else_help = true)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Look for anomalies in histories (files of JSON, a transaction a line), taken together.
    Check {
        /// The files.
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// Fewer committed transactions say nothing: they count as a failure.
        #[arg(long, default_value_t = 1)]
        at_least: u64,
    },
    /// Append to lists and read them through the native client, and write the history.
    Native(native::NativeArgs),
}

fn main() -> ExitCode {
    let done = match Args::parse().command {
        Command::Check { files, at_least } => check(&files, at_least),
        Command::Native(args) => native::run(&args),
    };
    done.unwrap_or_else(|error| {
        eprintln!("lats-history: {error:#}");
        ExitCode::FAILURE
    })
}

#[expect(clippy::print_stdout, reason = "a command-line tool")]
fn check(files: &[PathBuf], at_least: u64) -> anyhow::Result<ExitCode> {
    let mut history = Vec::new();
    for path in files {
        let name = path.display();
        let file = std::fs::File::open(path).with_context(|| format!("cannot read {name}"))?;
        for (line, number) in BufReader::new(file).lines().zip(1..) {
            let line = line.with_context(|| format!("cannot read {name}"))?;
            let transaction: Transaction = serde_json::from_str(&line)
                .with_context(|| format!("{name}, line {number}: this is no transaction"))?;
            history.push(transaction);
        }
    }
    let report = lats_history::check(&history);
    for anomaly in &report.anomalies {
        println!("ANOMALY: {anomaly}");
    }
    println!(
        "history: {} transactions, {} committed, {} reads, {} orders between them, {} anomalies",
        history.len(),
        report.committed,
        report.reads,
        report.orders,
        report.anomalies.len()
    );
    anyhow::ensure!(
        report.committed as u64 >= at_least,
        "only {} transactions were committed: too few to say anything",
        report.committed
    );
    Ok(ExitCode::from(u8::from(!report.anomalies.is_empty())))
}
