//! `latsdb stop`.

use crate::say::say;
use crate::{
    cluster_file::ClusterFile,
    disks,
    status::{Target, decoded, figures, state_from},
    supervisor::{self, stopping},
};
use anyhow::{Context, bail};
use lats_base::NodeId;
use lats_client::net::Client;
use lats_node::control::Status;
use rustix::process::{Pid, Signal, kill_process};
use std::{path::Path, process::ExitCode, time::Duration};

/// Stop a cluster that `latsdb start` runs, when all that it has acknowledged is on its disks.
#[derive(clap::Args)]
pub(crate) struct StopArgs {
    #[command(flatten)]
    target: Target,
    /// Stop it in any case: what was committed last may be lost, and is named.
    #[arg(long)]
    force: bool,
    /// How long the disks may take to have what was committed, in seconds. After that the cluster goes on.
    #[arg(long, default_value_t = 15)]
    wait_s: u64,
}

/// Longer than the supervisor waits for its nodes.
const SUPERVISOR_ENDS: Duration = Duration::from_secs(35);
const LOOK: Duration = Duration::from_millis(20);
/// A node that works answers within this time.
const ANSWER: Duration = Duration::from_secs(1);

pub(crate) fn run(args: &StopArgs) -> anyhow::Result<ExitCode> {
    let data_dir = args.target.directory()?;
    let cluster = ClusterFile::read(&data_dir)?;
    let Some(pid) = supervisor::running(&data_dir) else {
        say!("latsdb: no cluster runs in {}", data_dir.display());
        return Ok(ExitCode::SUCCESS);
    };
    let serves = supervisor::serving_file(&data_dir).exists();
    // Somebody else may have told it already: a second signal would not let the nodes end well.
    let is_told = stopping::begun_file(&data_dir).exists() && !args.force;
    if cluster.keeps && serves && !args.force && !is_told {
        wait_for_disks(args)?;
    }
    if !is_told {
        let process = Pid::from_raw(pid).context("the pid file is damaged")?;
        kill_process(process, Signal::TERM).context("cannot signal the supervisor")?;
    }
    for _ in 0..SUPERVISOR_ENDS.as_millis() / LOOK.as_millis() {
        if supervisor::running(&data_dir).is_none() {
            return ended(&data_dir, args.force);
        }
        supervisor::pause(LOOK);
    }
    bail!("the supervisor (process {pid}) does not end")
}

/// What the supervisor has left to say.
fn ended(data_dir: &Path, force: bool) -> anyhow::Result<ExitCode> {
    match std::fs::read_to_string(stopping::file(data_dir)) {
        Ok(why) if force => say!("latsdb: stopped, but {why}"),
        Ok(why) => bail!("stopped, but {why}"),
        Err(_) => say!("latsdb: stopped"),
    }
    Ok(ExitCode::SUCCESS)
}

/// What is committed by now must become durable, or the cluster goes on.
fn wait_for_disks(args: &StopArgs) -> anyhow::Result<()> {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    tokio.block_on(async {
        let connected = args.target.connect().await;
        let client = connected.context(
            "the cluster was not stopped: it is not known whether all that was committed is on its disks; `latsdb stop --force` stops it in \
             any case",
        )?;
        // Nobody knows how long a person takes to give a node a disk.
        find_disks(&client, |state| state == disks::NO_DISK).await?;
        let patience = Duration::from_secs(args.wait_s);
        let mut said = String::new();
        let end = tokio::time::Instant::now() + patience;
        loop {
            match tokio::time::timeout_at(end, client.all_durable()).await {
                Ok(Ok(())) => return find_disks(&client, |_| true).await,
                Ok(Err(error)) => said = error.to_string(),
                Err(_) => {}
            }
            // A lost group stays lost: waiting does not help.
            if tokio::time::Instant::now() >= end || has_lost_rows(&client).await {
                return refuse(&client, &said).await;
            }
            tokio::time::sleep(LOOK).await;
        }
    })
}

/// GONE-2: what was durable once is on no disk any more, if the last full replica has lost its own.
async fn find_disks(client: &Client, counts: impl Fn(&str) -> bool) -> anyhow::Result<()> {
    let status = state_from(client).await?;
    let figures = figures(client, &status).await;
    let lost = figures.iter().filter_map(|(node, figures)| {
        let disk = figures.disk.as_ref()?;
        disks::state_of_node(disk).filter(|state| counts(state))?;
        disks::words(*node, disk)
    });
    let lost: Vec<String> = lost.collect();
    if !lost.is_empty() {
        bail!(
            "the cluster was not stopped, and goes on: {}. Stop again when that is mended; `latsdb stop --force` stops the cluster in any case, \
             and may LOSE ALL ROWS of this node",
            lost.join("; ")
        );
    }
    Ok(())
}

async fn has_lost_rows(client: &Client) -> bool {
    state_from(client).await.is_ok_and(|status| status.view.lost_groups().next().is_some())
}

/// Says what would be lost.
async fn refuse(client: &Client, said: &str) -> anyhow::Result<()> {
    let Ok(status) = state_from(client).await else {
        bail!(
            "the cluster was not stopped: it is not known what is on its disks ({said}); with --force it is stopped in any case"
        )
    };
    let status = match status.leader {
        // It knows best how long that is so.
        Some(leader) => status_of(client, leader).await.unwrap_or(status),
        None => status,
    };
    let lost = status.view.lost_groups().next();
    let behind = if lost.is_none() { who_is_behind(client, &status).await } else { Vec::new() };
    let why = match (lost, behind.is_empty()) {
        (Some((number, _)), _) => format!(
            "All nodes of node group {number} have died, and nothing becomes durable without them: `latsdb stop --force` stops the cluster"
        ),
        (None, false) => format!(
            "{}: its disk is full or slow. Make room and stop again; `latsdb stop --force` stops the cluster in any case",
            behind.join(", ")
        ),
        (None, true) => "Stop again when the disks have caught up; `latsdb stop --force` stops the cluster in any case".to_string(),
    };
    let disks = figures(client, &status).await;
    let bad = disks.iter().filter_map(|(node, f)| disks::words(*node, f.disk.as_ref()?));
    let bad: String = bad.map(|words| format!("; {words}")).collect();
    bail!(
        "the cluster was not stopped, and goes on: what was committed in the last {:.1} s (epochs {} to {}) is not on all disks, and would be \
         lost. {why}{bad}",
        status.undurable_ms as f64 / 1e3,
        status.durable.get() + 1,
        status.epoch,
    )
}

/// What a node says of itself; none if it does not answer.
async fn status_of(client: &Client, node: NodeId) -> Option<Status> {
    let asked = tokio::time::timeout(ANSWER, client.status_of(node)).await;
    decoded(&asked.ok()?.ok()?).ok()
}

/// Nodes whose disks have less than others'.
async fn who_is_behind(client: &Client, status: &Status) -> Vec<String> {
    let mut all = Vec::new();
    for member in status.view.data_nodes() {
        let said = status_of(client, member.node).await;
        all.push((member.node, said.map(|status| status.own_durable)));
    }
    let newest = all.iter().filter_map(|(_, durable)| *durable).max().unwrap_or_default();
    let behind = all.into_iter().filter_map(|(node, durable)| match durable {
        Some(durable) if durable == newest => None,
        Some(durable) => Some(format!(
            "node {node} has only what was committed up to epoch {durable} on its disk"
        )),
        None => Some(format!("node {node} does not answer")),
    });
    behind.collect()
}
