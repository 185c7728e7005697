//! `latsdb bench`.

use crate::status::Target;
use clap::Subcommand;
use lats_bench::{Place, flex, keys, ycsb};
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
}

pub(crate) fn run(args: &BenchArgs) -> anyhow::Result<ExitCode> {
    let out = &mut std::io::stdout().lock();
    let place = |target: &Target| {
        let options = target.client_options()?;
        anyhow::Ok(Place { options, clock: lats_runtime::clock::now })
    };
    let errors = match &args.which {
        Which::Flex { target, args } => flex::run(args, &place(target)?, out)?,
        Which::Keys { target, args } => keys::run(args, &place(target)?, out)?,
        Which::Ycsb { target, args } => ycsb::run(args, &place(target)?, out)?,
    };
    Ok(if errors == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
