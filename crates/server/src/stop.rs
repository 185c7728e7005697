//! `latsdb stop`.

use crate::say::say;
use crate::{cluster_file::ClusterFile, status::Target, supervisor};
use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process};
use std::{process::ExitCode, time::Duration};

/// Stop a cluster that `latsdb start` runs.
#[derive(clap::Args)]
pub(crate) struct StopArgs {
    #[command(flatten)]
    target: Target,
}

pub(crate) fn run(args: &StopArgs) -> anyhow::Result<ExitCode> {
    let data_dir = args.target.directory()?;
    ClusterFile::read(&data_dir)?;
    let Some(pid) = supervisor::running(&data_dir) else {
        say!("latsdb: no cluster runs in {}", data_dir.display());
        return Ok(ExitCode::SUCCESS);
    };
    let process = Pid::from_raw(pid).context("the pid file is damaged")?;
    kill_process(process, Signal::TERM).context("cannot signal the supervisor")?;
    for _ in 0..500 {
        if supervisor::running(&data_dir).is_none() {
            say!("latsdb: stopped");
            return Ok(ExitCode::SUCCESS);
        }
        supervisor::pause(Duration::from_millis(20));
    }
    bail!("the supervisor (process {pid}) does not end")
}
