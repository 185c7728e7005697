//! `latsdb node --join`: a process on any machine takes the place of a node that is down.

use crate::{
    archive,
    cluster_file::{ClusterFile, NodeEntry},
    machine,
    node::NodeArgs,
    private, secret, settings, status,
};
use anyhow::{Context, bail, ensure};
use lats_base::RefCode;
use lats_catalog::Member;
use lats_client::api::StoreError;
use lats_node::control::Status;
use std::net::{SocketAddr, ToSocketAddrs};

/// What a node does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum NodeRoles {
    /// Holds data and serves SQL.
    #[value(name = "data,sql", alias = "data")]
    DataSql,
    /// Votes, and holds nothing.
    Witness,
}

/// Asks the cluster for its description, chooses the place, and writes `cluster.json` for this node.
///
/// # Errors
/// No cluster answers, no place is free, or the directory belongs to another cluster.
pub(crate) fn prepare(args: &NodeArgs, seed: &str) -> anyhow::Result<(ClusterFile, NodeEntry)> {
    let seed = resolve(seed)?;
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let secret = args.secret()?;
    let status = match tokio.block_on(status::ask(seed, secret.clone())) {
        Ok(status) => status,
        Err(error) if is_refusal(&error) => return Err(error),
        // The whole cluster may be down: it comes up again from its disks.
        Err(error) => {
            let (mut cluster, entry) = was_here(args).ok_or(error)?;
            archive::keep(&mut cluster, &args.data_dir, args.archive.as_deref())?;
            secret::write(&secret, &args.data_dir)?;
            return Ok((cluster, entry));
        }
    };
    drop(tokio);
    let member = place(&status, args)?;
    let entry = entry(member, args)?;
    let mut cluster = describe(&status, &entry, args)?;
    if ClusterFile::path(&args.data_dir).exists() {
        let former = ClusterFile::read(&args.data_dir)?;
        ensure!(
            former.cluster_id == cluster.cluster_id,
            "{} belongs to another cluster (id {}) than the one at {seed} (id {}); name another \
             directory with --data-dir",
            args.data_dir.display(),
            former.cluster_id,
            cluster.cluster_id
        );
        cluster.archive = former.archive;
    }
    archive::set(&mut cluster, args.archive.as_deref())?;
    private::directory(&args.data_dir)?;
    cluster.write(&args.data_dir)?;
    secret::write(&secret, &args.data_dir)?;
    Ok((cluster, entry))
}

/// True if somebody has answered, who does not want this node: what its directory says is no help.
fn is_refusal(error: &anyhow::Error) -> bool {
    let codes = error.chain().filter_map(|cause| cause.downcast_ref::<StoreError>());
    let mut codes = codes.map(|error| error.code);
    let refuses = [RefCode::SecretWrong, RefCode::WrongCluster, RefCode::VersionUnsupported];
    codes.any(|code| refuses.contains(&code))
}

/// The cluster and the node that have kept something in this directory.
fn was_here(args: &NodeArgs) -> Option<(ClusterFile, NodeEntry)> {
    let cluster = ClusterFile::read(&args.data_dir).ok()?;
    let is_own = |n: &&NodeEntry| n.has_files(&args.data_dir);
    let mut entry = cluster.nodes.iter().find(is_own)?.clone();
    listen_where_told(&mut entry, args).ok()?;
    let asked = args.node_id.is_none_or(|id| id == entry.node_id);
    asked.then_some((cluster, entry))
}

/// `HOST:PORT` as an address.
pub(crate) fn resolve(text: &str) -> anyhow::Result<SocketAddr> {
    let found = text.to_socket_addrs().with_context(|| format!("'{text}' is no HOST:PORT"))?;
    found.into_iter().next().with_context(|| format!("'{text}' has no address"))
}

/// The member whose place is taken: the one that is named, else the first that is down.
fn place<'a>(status: &'a Status, args: &NodeArgs) -> anyhow::Result<&'a Member> {
    let members = &status.view.members;
    let down = |m: &&Member| !m.alive && fits(m, args.roles);
    let member = match args.node_id {
        Some(id) => members
            .iter()
            .find(|m| m.node.get() == id)
            .with_context(|| format!("the cluster has no node {id}"))?,
        None => members.iter().find(down).context(
            "no such node of the cluster is down: there is no place to take. (A cluster cannot grow \
             while it runs yet.)",
        )?,
    };
    if member.alive {
        bail!("node {} is alive; only a node that is down can be replaced", member.node);
    }
    ensure!(fits(member, args.roles), "node {} has other roles than --roles says", member.node);
    Ok(member)
}

fn fits(member: &Member, roles: Option<NodeRoles>) -> bool {
    match roles {
        None => true,
        Some(NodeRoles::DataSql) => member.roles.data,
        Some(NodeRoles::Witness) => !member.roles.data,
    }
}

fn entry(member: &Member, args: &NodeArgs) -> anyhow::Result<NodeEntry> {
    let former = |text: &str| text.parse::<SocketAddr>().ok();
    let native = former(&member.native_address).context("the cluster tells no address")?;
    let sql = former(&member.sql_address);
    let mut entry = NodeEntry {
        node_id: member.node.get(),
        data: member.roles.data,
        native_address: native,
        sql_address: sql,
        location: member.location.clone(),
    };
    listen_where_told(&mut entry, args)?;
    Ok(entry)
}

/// `--listen` and `--sql-listen` go before what the cluster's description says.
pub(crate) fn listen_where_told(entry: &mut NodeEntry, args: &NodeArgs) -> anyhow::Result<()> {
    if let Some(location) = &args.location {
        settings::location(location)?;
        entry.location.clone_from(location);
    }
    if let Some(text) = &args.listen {
        entry.native_address = resolve(text)?;
    }
    if let Some(text) = &args.sql_listen {
        ensure!(entry.data, "node {} is a witness and serves no SQL", entry.node_id);
        entry.sql_address = Some(resolve(text)?);
    }
    ensure!(
        entry.sql_address != Some(entry.native_address),
        "--listen and --sql-listen are both {}: nodes and MySQL clients need a port each",
        entry.native_address
    );
    for address in [Some(entry.native_address), entry.sql_address].into_iter().flatten() {
        ensure!(
            !address.ip().is_unspecified() && address.port() != 0,
            "{address} cannot be told to others: name an address of this machine that they reach"
        );
    }
    Ok(())
}

/// Until there are accounts and TLS, a node that others can reach says that it wants that.
pub(crate) fn stay_on_the_loopback(entry: &NodeEntry, insecure: bool) -> anyhow::Result<()> {
    let mut addresses = [Some(entry.native_address), entry.sql_address].into_iter().flatten();
    let Some(open) = addresses.find(|address| !address.ip().is_loopback()) else { return Ok(()) };
    ensure!(
        insecure,
        "{open} can be reached from other machines, and there are no accounts and no TLS yet: use addresses of the loopback \
         (127.0.0.0/8), or say --insecure if the network is yours alone"
    );
    tracing::warn!(%open, "--insecure: whoever reaches the SQL port is root, and nothing is encrypted");
    Ok(())
}

/// The cluster as this node's directory describes it.
fn describe(status: &Status, own: &NodeEntry, args: &NodeArgs) -> anyhow::Result<ClusterFile> {
    let config = &status.view.config;
    let mut nodes = Vec::with_capacity(status.view.members.len());
    for member in &status.view.members {
        if member.node.get() == own.node_id {
            nodes.push(own.clone());
            continue;
        }
        nodes.push(NodeEntry {
            node_id: member.node.get(),
            data: member.roles.data,
            native_address: member
                .native_address
                .parse()
                .context("the cluster tells no address")?,
            sql_address: member.sql_address.parse().ok(),
            location: member.location.clone(),
        });
    }
    let memory_mib =
        args.memory_mib.unwrap_or_else(|| settings::default_memory_mib(1, &machine::memory()));
    let mut cluster = ClusterFile::new(config.cluster_id, config.replicas, nodes);
    cluster.ldm_instances = config.ldm_instances;
    cluster.tc_instances = config.tc_instances;
    (cluster.keeps, cluster.to_disk) = (config.keeps, config.to_disk);
    (cluster.memory_mib, cluster.lease_ms) = (memory_mib, config.lease_ms);
    Ok(cluster)
}
