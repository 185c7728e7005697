//! `latsdb declare-dead`: a person says what the cluster cannot see (SILENT-4; `docs/protocols/membership.md`).

use crate::{
    outlook::{self, Outlook},
    say::say,
    status::{Target, state_from},
};
use anyhow::{Context, bail};
use lats_base::{Incarnation, NodeId};
use lats_catalog::View;
use lats_client::net::Client;
use lats_node::control::Status;
use std::{process::ExitCode, time::Duration};

/// Say that a silent node is dead for certain. A node that does not answer may live, cut off from the others. If it has
/// the only full replica of its rows, the others keep its place: statements that need these rows, and changes of
/// definitions, are refused with a temporary error, and locks of its transactions stay. When its
/// machine is back, or its process is started again, all of that ends. If neither can be done, this ends it.
///
/// A witness that is gone for ever does not count as a voter any more then. Nodes that have no leader, and wait for this one
/// with their rows, go on without it.
#[derive(clap::Args)]
pub(crate) struct DeclareDeadArgs {
    /// The node, as `latsdb status` shows it.
    node_id: u16,
    #[command(flatten)]
    target: Target,
    /// Give up what was committed at that node only: the node has the only full replica of its rows, or nobody knows whether it
    /// has gone on alone.
    #[arg(long)]
    give_up_rows: bool,
    /// How long to wait until the others have removed it, or go on without it, in seconds.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    wait_s: u64,
}

const LOOK_AGAIN: Duration = Duration::from_millis(50);

pub(crate) fn run(args: &DeclareDeadArgs) -> anyhow::Result<ExitCode> {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    tokio.block_on(async {
        let client = args.target.connect().await?;
        let node = NodeId::new(args.node_id);
        let outlook = Outlook::of(&client, state_from(&client).await?).await;
        let life = match outlook.status.leader {
            Some(_) => life_to_end(&outlook.status, node, args.give_up_rows)?,
            None => life_that_is_missed(&outlook, node, args.give_up_rows)?,
        };
        let patience = Duration::from_secs(args.wait_s);
        tokio::time::timeout(patience, end(&client, (node, life), args.give_up_rows)).await.with_context(|| {
            format!(
                "the cluster has not removed node {node} within {patience:?}: a node hears it after all, or others are missing, too \
                 (`latsdb status` says who was heard when, and what is waited for)"
            )
        })??;
        say!("latsdb: node {node} is removed");
        let lost: Vec<String> =
            client.map().view.lost_groups().map(|(id, _)| id.to_string()).collect();
        if !lost.is_empty() {
            say!("latsdb: lost node groups: {}; rows of the others are served", lost.join(", "));
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// The node's life, if it can be declared dead while there is a leader.
fn life_to_end(status: &Status, node: NodeId, give_up: bool) -> anyhow::Result<Incarnation> {
    let view = &status.view;
    check_is_known(status, node)?;
    let life = view.incarnation(node).with_context(|| format!("node {node} is down already"))?;
    if !is_silent(status, node) {
        let heard = status.life_signs.iter().find(|s| s.node == node).and_then(|s| s.heard_ms);
        let heard = heard.map_or("it is not known when it was heard".to_string(), |ms| {
            format!("it lives, and was heard {ms} ms ago")
        });
        bail!(
            "node {node} is not called silent by node {}: {heard}. `latsdb stop-node {node}` stops it; a process that ends is noticed by itself",
            status.node
        );
    }
    check_consent(view, node, give_up)?;
    Ok(life)
}

fn check_is_known(status: &Status, node: NodeId) -> anyhow::Result<()> {
    let view = &status.view;
    if view.member(node).is_none() {
        let known: Vec<String> = view.members.iter().map(|m| m.node.to_string()).collect();
        bail!("the cluster has no node {node}; it has {}", known.join(", "));
    }
    Ok(())
}

/// A data node that cannot be replaced, or a voter that nobody has heard for long.
fn is_silent(status: &Status, node: NodeId) -> bool {
    status.silent.contains(&node) || outlook::is_heard(status, node) == Some(false)
}

/// REFORM-5: the life that full replicas without a leader wait for.
fn life_that_is_missed(
    outlook: &Outlook,
    node: NodeId,
    give_up: bool,
) -> anyhow::Result<Incarnation> {
    check_is_known(&outlook.status, node)?;
    let Some(life) = outlook.missed_life(node) else {
        bail!("the nodes have no leader, and do not wait for node {node}: {}", outlook.waits());
    };
    if !give_up {
        bail!(
            "without a leader nobody knows whether node {node} has gone on alone. If it can be started again with its disk, do that: nothing is \
             lost then. Else make sure that it is off, and add --give-up-rows: what it has acknowledged since the others could not hear it is lost"
        );
    }
    Ok(life)
}

/// Only who has consented to it gives up rows; the cluster does nothing without.
fn check_consent(view: &View, node: NodeId, give_up: bool) -> anyhow::Result<()> {
    let group = view.group_of_node(node).filter(|_| !view.is_replaceable(node));
    if let (Some((group, _)), false) = (group, give_up) {
        bail!(
            "node {node} has the only full replica of node group {group}: its rows are gone for good if it is \
             given up. If the machine can be brought back, do that instead. Else make sure that it is off, and \
             add --give-up-rows"
        );
    }
    Ok(())
}

async fn end(
    client: &Client,
    (node, life): (NodeId, Incarnation),
    give_up_rows: bool,
) -> anyhow::Result<()> {
    loop {
        if let Ok(first) = state_from(client).await {
            let status = Outlook::of(client, first).await.status;
            let has_leader = status.leader.is_some();
            if has_leader && !status.view.is_alive(node, life) {
                return Ok(());
            }
            if has_leader && !is_silent(&status, node) && !status.view.is_declared_dead(node) {
                bail!("node {node} is heard again by node {}, and was not removed", status.node);
            }
            // Another replica may have died meanwhile.
            check_consent(&status.view, node, give_up_rows)?;
            client.declare_dead(node, life, give_up_rows);
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}
