//! `latsdb stop`.

use crate::{cluster_file::ClusterFile, supervisor};
use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process};
use std::{path::PathBuf, process::ExitCode, time::Duration};

/// Stop a cluster that `latsdb start` runs.
#[derive(clap::Args)]
pub(crate) struct StopArgs {
    /// The cluster's directory.
    #[arg(long, default_value = "./latsdb-data")]
    data_dir: PathBuf,
}

pub(crate) fn run(args: &StopArgs) -> anyhow::Result<ExitCode> {
    ClusterFile::read(&args.data_dir)?;
    let Some(pid) = supervisor::running(&args.data_dir) else {
        println!("latsdb: no cluster runs in {}", args.data_dir.display());
        return Ok(ExitCode::SUCCESS);
    };
    let process = Pid::from_raw(pid).context("the pid file is damaged")?;
    kill_process(process, Signal::TERM).context("cannot signal the supervisor")?;
    for _ in 0..500 {
        if supervisor::running(&args.data_dir).is_none() {
            println!("latsdb: stopped");
            return Ok(ExitCode::SUCCESS);
        }
        supervisor::pause(Duration::from_millis(20));
    }
    bail!("the supervisor (process {pid}) does not end")
}
