//! `latsdb`: the one binary. Starts clusters and nodes, shows their state, runs SQL.

mod anew;
mod archive;
mod backup;
mod bench;
mod close;
mod cluster_file;
mod declare_dead;
mod disks;
mod guardian;
mod inspect;
mod join;
mod last_words;
mod life;
mod machine;
mod memory;
mod node;
mod numa;
mod open_files;
mod options;
mod outlook;
#[cfg(feature = "planted")]
mod planted;
mod ports;
mod private;
mod random;
mod say;
mod secret;
mod settings;
mod shell;
mod sql_threads;
mod start;
mod status;
mod stop;
mod stop_node;
mod store;
mod supervisor;
mod top;
mod waiting;

use anyhow::Context;
use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Its memory comes in huge pages, where the system has them: these are freed quickly when a process is killed.
#[global_allocator]
static ALLOCATOR: lats_alloc::Allocator = lats_alloc::Allocator;

/// LatsDB: a replicated in-memory database that speaks the MySQL protocol.
#[derive(Parser)]
#[command(name = "latsdb", version, arg_required_else_help = true)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start a whole cluster on this machine and keep it running.
    Start(options::StartArgs),
    /// Stop a cluster that `start` runs.
    Stop(stop::StopArgs),
    /// Show the state of a cluster.
    Status(status::StatusArgs),
    /// Run SQL statements.
    Sql(shell::SqlArgs),
    /// Stop one node of a cluster, so that no transaction fails.
    StopNode(stop_node::StopNodeArgs),
    /// Start a node that was stopped with `stop-node`.
    StartNode(stop_node::StartNodeArgs),
    /// Say that a silent node is dead for certain, so that the others give it up.
    DeclareDead(declare_dead::DeclareDeadArgs),
    /// Run one node (what `start` does for each).
    Node(node::NodeArgs),
    #[command(hide = true)]
    Guardian(guardian::GuardianArgs),
    Backup(backup::BackupArgs),
    Restore(backup::RestoreArgs),
    /// See what nodes have archived, and remove what is not needed any more.
    Archive(archive::upkeep::ArchiveArgs),
    /// Measure a running cluster.
    Bench(bench::BenchArgs),
    Top(top::TopArgs),
    Inspect(inspect::InspectArgs),
}

fn main() -> ExitCode {
    // What this process writes is its user's alone: rows, logs, the secret.
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    #[cfg(feature = "planted")]
    planted::choose();
    let command = Args::parse().command;
    match begin_to_log().and_then(|()| run(command)) {
        Ok(code) => code,
        Err(error) => {
            let text = format!("{error:#}");
            last_words::note(&text);
            // One line for scripts: what happened, and what to do.
            eprintln!("latsdb: {text}");
            ExitCode::FAILURE
        }
    }
}

/// Logs go to standard error.
fn begin_to_log() -> anyhow::Result<()> {
    use tracing_subscriber::{
        EnvFilter, Layer, filter::LevelFilter, fmt, layer::SubscriberExt, registry,
        util::SubscriberInitExt,
    };
    let wanted = std::env::var_os(EnvFilter::DEFAULT_ENV).unwrap_or_default();
    let filter = match &*wanted.to_string_lossy() {
        "" => EnvFilter::new("info"),
        wanted => EnvFilter::try_new(wanted).with_context(|| {
            format!(
                "RUST_LOG={wanted} is no filter of logs: write `info`, or `warn,lats_runtime=debug`"
            )
        })?,
    };
    let log = fmt::layer().with_writer(std::io::stderr).with_filter(filter);
    registry().with(log).with(last_words::Listener.with_filter(LevelFilter::INFO)).init();
    Ok(())
}

fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Start(args) => start::run(&args),
        Command::Stop(args) => stop::run(&args),
        Command::Status(args) => status::run(&args),
        Command::Sql(args) => shell::run(&args),
        Command::StopNode(args) => stop_node::stop(&args),
        Command::StartNode(args) => stop_node::start(&args),
        Command::DeclareDead(args) => declare_dead::run(&args),
        Command::Node(args) => node::run(&args),
        Command::Guardian(args) => guardian::run(&args),
        Command::Backup(args) => backup::backup(&args),
        Command::Restore(args) => backup::restore(&args),
        Command::Archive(args) => archive::upkeep::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Inspect(args) => inspect::run(&args),
    }
}
