//! `latsdb stop-node` and `latsdb start-node`: one node leaves its cluster without any transaction being
//! lost, and comes back (STOP-1 to STOP-3; `docs/protocols/hand-over.md`).

use crate::{
    cluster_file::ClusterFile,
    say::say,
    status::{Target, state_from},
    supervisor,
};
use anyhow::{Context, bail};
use lats_base::{Incarnation, NodeId};
use lats_catalog::View;
use lats_client::net::Client;
use std::{process::ExitCode, time::Duration};

/// Stop one node of a running cluster: its primaries move to other replicas first, its MySQL clients are
/// asked to go elsewhere between two transactions, and no transaction fails that ends within a minute.
#[derive(clap::Args)]
pub(crate) struct StopNodeArgs {
    /// The node, as `latsdb status` shows it.
    node_id: u16,
    #[command(flatten)]
    target: Target,
    /// Let `latsdb start` start it again at once, with the binary that is there by then.
    #[arg(long)]
    restart: bool,
    /// How long to wait for it, in seconds. It goes on after that.
    #[arg(long, default_value_t = 90, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    wait_s: u64,
}

/// Start a node again that was stopped with `stop-node`.
#[derive(clap::Args)]
pub(crate) struct StartNodeArgs {
    /// The node.
    node_id: u16,
    /// The cluster's directory.
    #[arg(long, default_value = "./latsdb-data")]
    data_dir: std::path::PathBuf,
}

const LOOK_AGAIN: Duration = Duration::from_millis(50);

pub(crate) fn stop(args: &StopNodeArgs) -> anyhow::Result<ExitCode> {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    tokio.block_on(async {
        let client = args.target.connect().await?;
        let node = NodeId::new(args.node_id);
        let view = state_from(&client).await?.view;
        let life = life_to_stop(&view, node)?;
        say!("latsdb: node {node} is to stop");
        let patience = Duration::from_secs(args.wait_s);
        let gone = wait_until_gone(&client, (node, life), args.restart);
        tokio::time::timeout(patience, gone).await.with_context(|| {
            format!(
                "node {node} has not stopped within {patience:?}; it ends when its transactions and \
                 clients do (`latsdb status` shows it)"
            )
        })??;
        say!("latsdb: node {node} has stopped");
        if args.restart {
            let back = wait_until_back(&client, node);
            tokio::time::timeout(patience, back).await.with_context(|| {
                format!("node {node} is not back after {patience:?}; the cluster's log says why")
            })?;
            say!("latsdb: node {node} is a full replica again");
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// The node's life, if it can be stopped.
fn life_to_stop(view: &View, node: NodeId) -> anyhow::Result<Incarnation> {
    if view.member(node).is_none() {
        let known: Vec<String> = view.members.iter().map(|m| m.node.to_string()).collect();
        bail!("the cluster has no node {node}; it has {}", known.join(", "));
    }
    let life = view.incarnation(node).with_context(|| format!("node {node} is down already"))?;
    if !view.is_replaceable(node) {
        bail!(
            "node {node} has the only full replica of its data: without it rows are gone. Wait for another \
             one (`latsdb status` shows them), or end the whole cluster with `latsdb stop`"
        );
    }
    Ok(life)
}

async fn wait_until_gone(
    client: &Client,
    (node, life): (NodeId, Incarnation),
    restart: bool,
) -> anyhow::Result<()> {
    loop {
        // A node that is on its way out may have answered.
        if let Ok(status) = state_from(client).await {
            if !status.view.is_alive(node, life) {
                return Ok(());
            }
            if !status.view.is_stopping(node) {
                life_to_stop(&status.view, node)?;
                client.stop_node(node, restart);
            }
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

async fn wait_until_back(client: &Client, node: NodeId) {
    loop {
        let view = state_from(client).await.map(|s| s.view).unwrap_or_default();
        let data = view.member(node).is_some_and(|m| m.roles.data);
        if view.incarnation(node).is_some() && (!data || view.is_in_sync(node)) {
            return;
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

pub(crate) fn start(args: &StartNodeArgs) -> anyhow::Result<ExitCode> {
    let cluster = ClusterFile::read(&args.data_dir)?;
    let node_id = args.node_id;
    if !cluster.nodes.iter().any(|n| n.node_id == node_id) {
        bail!("the cluster in {} has no node {node_id}", args.data_dir.display());
    }
    let Some(pid) = supervisor::running(&args.data_dir) else {
        bail!(
            "no `latsdb start` runs in {}; `latsdb node --data-dir {} --node-id {node_id}` runs the node here",
            args.data_dir.display(),
            args.data_dir.display()
        );
    };
    let file = supervisor::start_file(&args.data_dir, node_id);
    std::fs::write(&file, b"").with_context(|| format!("cannot write {}", file.display()))?;
    for _ in 0..250 {
        if !file.exists() {
            say!("latsdb: node {node_id} starts");
            return Ok(ExitCode::SUCCESS);
        }
        supervisor::pause(Duration::from_millis(20));
    }
    // It must not start again some day when nobody thinks of it any more.
    let _ = std::fs::remove_file(&file);
    bail!(
        "node {node_id} was not started: its process still runs (`latsdb status` shows it), or \
         `latsdb start` (process {pid}) does not answer"
    )
}
