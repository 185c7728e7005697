//! `latsdb bench`.

mod gauge;
mod interrupts;
mod namespaces;

use crate::status::Target;
use anyhow::{Context, bail};
use clap::Subcommand;
use lats_bench::{
    Place, flex, keys, lats,
    layouts::{self, Layout, Started},
    ycsb,
};
use std::{
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

/// Which benchmark, and where.
#[derive(clap::Args)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    which: Which,
}

#[derive(Subcommand)]
enum Which {
    /// Insert, read, update and delete rows by key through the native client.
    Flex {
        #[command(flatten)]
        target: Target,
        #[command(flatten)]
        args: flex::FlexArgs,
    },
    /// Read rows by lists of keys through SQL, beside another MySQL server if one is named.
    Keys {
        #[command(flatten)]
        target: Target,
        #[command(flatten)]
        args: keys::KeysArgs,
    },
    /// Run workloads A to F of YCSB, through the native client or SQL.
    Ycsb {
        #[command(flatten)]
        target: Target,
        #[command(flatten)]
        args: ycsb::YcsbArgs,
    },
    // Its help is that of its arguments.
    Lats(lats::LatsArgs),
    /// Compare placements of a node's modules on threads.
    Layouts {
        #[command(flatten)]
        args: layouts::LayoutsArgs,
    },
}

pub(crate) fn run(args: &BenchArgs) -> anyhow::Result<ExitCode> {
    let out = &mut std::io::stdout();
    let place = |target: &Target| {
        let options = target.client_options()?;
        anyhow::Ok(Place { options, clock: lats_runtime::clock::now })
    };
    match &args.which {
        Which::Flex { args, .. } => args.output.check(),
        Which::Keys { args, .. } => args.output.check(),
        Which::Ycsb { args, .. } => args.output.check(),
        Which::Layouts { args } => args.output.check(),
        Which::Lats(args) => args.check(),
    }?;
    let errors = match &args.which {
        Which::Flex { target, args } => flex::run(args, &place(target)?, out)?,
        Which::Keys { target, args } => keys::run(args, &place(target)?, out)?,
        Which::Ycsb { target, args } => ycsb::run(args, &place(target)?, out)?,
        Which::Layouts { args } => layouts::run(args, &|layout| start(layout, args.sql_port), out)?,
        Which::Lats(args) => gauge::run(args)?,
    };
    Ok(status(errors))
}

fn status(errors: u64) -> ExitCode {
    if errors == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A cluster of one data node, in a directory of its own that goes with it.
fn start(layout: &Layout, sql_port: u16) -> anyhow::Result<Started> {
    let directory = std::env::temp_dir().join(format!("latsdb-layouts-{}", std::process::id()));
    let data_dir = directory.join("cluster");
    std::fs::create_dir_all(&directory)
        .with_context(|| format!("cannot make {}", directory.display()))?;
    let sql_port = sql_port.to_string();
    let mut options = vec!["--nodes", "1", "--replicas", "1", "--detach", "--ephemeral"];
    options.extend(["--sql-port", &sql_port, "--thread-config", &layout.thread_config]);
    options.extend(["--read-placement", layout.reads]);
    options.extend((!layout.helping).then_some("--no-helping"));
    if let Err(error) = latsdb("start", &data_dir, &options) {
        let _ = std::fs::remove_dir_all(&directory);
        return Err(error.context(format!("cannot start `{}`", layout.name)));
    }
    let options = Target::of_directory(data_dir.clone()).client_options()?;
    let place = Place { options, clock: lats_runtime::clock::now };
    Ok(Started { place, end: Box::new(move || end(&data_dir, &directory)) })
}

fn end(data_dir: &Path, directory: &PathBuf) {
    if let Err(error) = latsdb("stop", data_dir, &[]) {
        tracing::warn!("{error:#}");
    }
    let _ = std::fs::remove_dir_all(directory);
}

/// Runs another command of this program.
fn latsdb(command: &str, data_dir: &Path, options: &[&str]) -> anyhow::Result<()> {
    let mut line = interrupts::apart(Command::new(std::env::current_exe()?));
    let done = line.arg(command).arg("--data-dir").arg(data_dir).args(options).output()?;
    if !done.status.success() {
        bail!("latsdb {command}: {}", String::from_utf8_lossy(&done.stderr).trim());
    }
    Ok(())
}
