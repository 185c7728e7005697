//! `latsdb bench`.

use crate::status::Target;
use clap::Subcommand;
use lats_bench::{Place, flex};
use std::process::ExitCode;

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
}

pub(crate) fn run(args: &BenchArgs) -> anyhow::Result<ExitCode> {
    let Which::Flex { target, args } = &args.which;
    let place = Place { options: target.client_options()?, clock: lats_runtime::clock::now };
    let errors = flex::run(args, &place, &mut std::io::stdout().lock())?;
    Ok(if errors == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
