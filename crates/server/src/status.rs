//! `latsdb status`.

use crate::say::say;
use crate::{
    cluster_file::ClusterFile,
    disks,
    outlook::{self, MayFail, Outlook},
    random, secret, supervisor,
};
use anyhow::Context;
use lats_base::{NodeId, RefCode};
use lats_catalog::{Member, VERSIONS_BETWEEN_RESTARTS_BITS};
use lats_client::{
    Secret,
    net::{Client, ClientOptions},
};
use lats_node::control::Status;
use lats_runtime::{DiskFigures, NodeFigures, clock};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap, net::SocketAddr, path::PathBuf, process::ExitCode, time::Duration,
};

/// Show the state of a cluster.
#[derive(clap::Args)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    pub(crate) target: Target,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Which cluster.
#[derive(clap::Args)]
pub(crate) struct Target {
    /// The cluster's directory.
    #[arg(long, default_value = "./latsdb-data")]
    data_dir: PathBuf,
    /// The native address of one of its nodes, instead of a directory.
    #[arg(long, value_name = "HOST:PORT")]
    address: Option<String>,
    /// The cluster's secret [default: the file `secret` in the cluster's directory].
    #[arg(long, value_name = "FILE", env = SECRET_VARIABLE)]
    secret_file: Option<PathBuf>,
}

/// Names the secret for commands that get it in no other way.
pub(crate) const SECRET_VARIABLE: &str = "LATSDB_SECRET_FILE";
const PATIENCE: Duration = Duration::from_secs(5);
/// A member that was not heard for so long, or says itself that it is so late, is shown as late, in ms.
const LATE_MS: u64 = 100;
const UNHEARD_MS: u64 = 250;
/// How long a node may take to say what it knows of itself.
const FIGURES_PATIENCE: Duration = Duration::from_millis(500);

impl Target {
    /// The cluster in a directory.
    pub(crate) fn of_directory(data_dir: PathBuf) -> Self {
        Self { data_dir, address: None, secret_file: None }
    }

    /// The directory of the cluster: of one that is named by an address, where its nodes on this
    /// machine have it.
    pub(crate) fn directory(&self) -> anyhow::Result<PathBuf> {
        let Some(address) = &self.address else { return Ok(self.data_dir.clone()) };
        let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let status = tokio.block_on(state(self))?;
        let lines = status.view.members.iter().filter_map(pid_of).filter_map(command_line);
        let directories = lines.filter_map(|line| directory_in(&line).map(PathBuf::from));
        let ours = |directory: &PathBuf| {
            let file = ClusterFile::read(directory).ok();
            file.is_some_and(|f| f.cluster_id == status.view.config.cluster_id)
        };
        // A node that was added later has a directory of its own.
        let supervised = |directory: &PathBuf| supervisor::running(directory).is_some();
        directories.into_iter().filter(ours).find(supervised).with_context(|| {
            format!(
                "no `latsdb start` on this machine runs the cluster at {address}; stop each of its \
                 nodes where it runs (`latsdb status` shows them), by SIGTERM"
            )
        })
    }

    /// Why it may not answer.
    fn why(&self) -> String {
        let known =
            self.address.is_none().then(|| supervisor::last_words(&self.data_dir)).flatten();
        known.unwrap_or_else(|| "does it run?".to_string())
    }

    /// How a client finds it.
    pub(crate) fn client_options(&self) -> anyhow::Result<ClientOptions> {
        let (addresses, cluster_id) = match &self.address {
            Some(address) => (vec![crate::join::resolve(address)?], 0),
            None => {
                let cluster = ClusterFile::read(&self.data_dir)?;
                (cluster.addresses(), cluster.cluster_id)
            }
        };
        let file = self.secret_file.clone().unwrap_or_else(|| secret::path(&self.data_dir));
        let secret = Some(secret::read(&file)?);
        let seed = random::number()?;
        let admin = true;
        Ok(ClientOptions { addresses, cluster_id, secret, admin, seed, ..ClientOptions::default() })
    }

    /// A client of the cluster. Call it within a tokio runtime.
    pub(crate) async fn connect(&self) -> anyhow::Result<Client> {
        connected(self.client_options()?, || self.why()).await
    }
}

async fn connected(options: ClientOptions, why: impl FnOnce() -> String) -> anyhow::Result<Client> {
    let shown = format!("{:?}", options.addresses);
    let client = Client::start(options, clock::now);
    let ready = client.ready(PATIENCE).await;
    ready.with_context(|| format!("no node of the cluster answers at {shown}; {}", why()))?;
    Ok(client)
}

/// The state of the cluster that has a node at this address.
pub(crate) async fn ask(address: SocketAddr, secret: Secret) -> anyhow::Result<Status> {
    let (secret, seed) = (Some(secret), random::number()?);
    let options =
        ClientOptions { addresses: vec![address], secret, seed, ..ClientOptions::default() };
    state_from(&connected(options, || "does it run?".to_string()).await?).await
}

async fn state(target: &Target) -> anyhow::Result<Status> {
    state_from(&target.connect().await?).await
}

pub(crate) async fn state_from(client: &Client) -> anyhow::Result<Status> {
    let bytes = client.status().await.context("the cluster does not tell its state")?;
    decoded(&bytes).map_err(|code| anyhow::anyhow!("the status cannot be read: {code}"))
}

/// What a node has answered. One of an earlier version does not say what came last.
pub(crate) fn decoded(bytes: &[u8]) -> Result<Status, RefCode> {
    let missing: [&[u8]; 3] = [&[], &[0; 2], &[0; 5]];
    let decoded = |missing: &&[u8]| lats_catalog::decode::<Status>(&[bytes, missing].concat());
    let first = decoded(&missing[0]);
    first.or_else(|code| missing[1..].iter().find_map(|m| decoded(m).ok()).ok_or(code))
}

pub(crate) fn run(args: &StatusArgs) -> anyhow::Result<ExitCode> {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (outlook, figures) = tokio.block_on(async {
        let client = args.target.connect().await?;
        let outlook = Outlook::of(&client, state_from(&client).await?).await;
        let figures = figures(&client, &outlook.status).await;
        anyhow::Ok((outlook, figures))
    })?;
    let status = &outlook.status;
    let mut record = as_json(status, &figures);
    record["waits_for"] = outlook.waits_json();
    for node in record["nodes"].as_array_mut().into_iter().flatten() {
        let number = node["node_id"].as_u64().unwrap_or_default();
        let threads = figures.get(&NodeId::new(number as u16)).map(|f| &f.threads);
        let turns = threads.map(|threads| threads.iter().map(|(_, f)| f.longest_turn_ns / 1_000));
        node["longest_turn_us"] = json!(turns.and_then(Iterator::max));
    }
    record["memory"] = memory_json(&figures);
    if args.json {
        say!("{record:#}");
    } else {
        print_table(&outlook, &record, &figures);
    }
    Ok(ExitCode::SUCCESS)
}

/// What nodes say of themselves; who does not answer at once is left out.
pub(crate) type Figures = BTreeMap<NodeId, NodeFigures>;

pub(crate) async fn figures(client: &Client, status: &Status) -> Figures {
    let heard = status.view.data_nodes().filter(|m| !status.silent.contains(&m.node));
    let asked: Vec<_> = heard
        .map(|member| {
            let (client, node) = (client.clone(), member.node);
            tokio::spawn(async move {
                let bytes = tokio::time::timeout(FIGURES_PATIENCE, client.figures(node)).await;
                Some((node, decoded_figures(&bytes.ok()?.ok()?)?))
            })
        })
        .collect();
    let mut all = Figures::new();
    for answer in asked {
        all.extend(answer.await.ok().flatten());
    }
    all
}

/// What the processes of nodes have memory for, by node and kind.
fn memory_json(figures: &BTreeMap<NodeId, NodeFigures>) -> Value {
    let of_node = |figures: &NodeFigures| -> Value {
        let each = figures.memory.iter().map(|of| {
            let figure = json!({
                "bytes": of.bytes,
                "most_bytes": of.most_bytes,
                "limit_bytes": of.limit_bytes,
                "refused": of.refused,
            });
            (of.name.clone(), figure)
        });
        Value::Object(each.collect())
    };
    Value::Object(figures.iter().map(|(node, of)| (node.to_string(), of_node(of))).collect())
}

/// A line of `status`: what each node has.
fn print_memory(memory: &Value) {
    let mib = |of: &Value, name: &str| of[name].as_u64().unwrap_or_default() >> 20;
    let nodes = memory.as_object().into_iter().flatten();
    let shown = nodes.map(|(node, of)| {
        let (all, refused) = (&of["all"], &of["all"]["refused"]);
        let (now, limit, most) =
            (mib(all, "bytes"), mib(all, "limit_bytes"), mib(all, "most_bytes"));
        format!("node {node}: {now} of {limit} MiB, at most {most}, refused {refused} times")
    });
    let shown: Vec<String> = shown.collect();
    if !shown.is_empty() {
        say!("memory  {}", shown.join("; "));
    }
}

/// A node of an earlier version says nothing of its memory, or its disk: they come last.
fn decoded_figures(bytes: &[u8]) -> Option<NodeFigures> {
    let missing: [&[u8]; 3] = [&[], &[0], &[0, 0]];
    let decoded = |missing: &[u8]| lats_catalog::decode(&[bytes, missing].concat()).ok();
    missing.into_iter().find_map(decoded)
}

fn as_json(status: &Status, figures: &Figures) -> Value {
    let disk_of = |m: &Member| figures.get(&m.node).and_then(|f| f.disk.as_ref());
    let nodes = status.view.members.iter().map(|m| node_json(status, m, disk_of(m)));
    let nodes: Vec<Value> = nodes.collect();
    json!({
        "view": status.view.number.get(),
        "epoch": {
            "current": status.epoch.get(),
            "complete": status.complete.get(),
            "durable": status.view.config.keeps.then(|| status.durable.get()),
        },
        "leader": status.leader.map(|n| n.get()),
        "catalog_version": status.catalog_version,
        "insecure": insecure(status),
        "may_fail": MayFail::of(status).as_json(),
        "lost_node_groups": status.view.lost_groups().map(|(id, _)| id.get()).collect::<Vec<_>>(),
        "refused_connections": figures.values().map(|f| f.refused).sum::<u64>(),
        "nodes": nodes,
    })
}

/// The nodes that others than this machine's processes can reach, without accounts and TLS.
fn insecure(status: &Status) -> Vec<u16> {
    let is_open = |address: &String| {
        address.parse::<SocketAddr>().is_ok_and(|address| !address.ip().is_loopback())
    };
    let open = |m: &&Member| is_open(&m.native_address) || is_open(&m.sql_address);
    status.view.members.iter().filter(open).map(|m| m.node.get()).collect()
}

fn node_json(status: &Status, member: &Member, disk: Option<&DiskFigures>) -> Value {
    let view = &status.view;
    let group = view.group_of_node(member.node).map(|(id, _)| id.get());
    let in_sync = member.alive && view.is_in_sync(member.node);
    let roles: Vec<&str> = match (member.roles.data, member.roles.sql) {
        (false, false) => vec!["witness"],
        (data, sql) => [("data", data), ("sql", sql)]
            .into_iter()
            .filter_map(|(name, has)| has.then_some(name))
            .collect(),
    };
    let state = match (member.alive, member.roles.data, in_sync) {
        (false, _, _) => "down",
        _ if status.silent.contains(&member.node) => "silent",
        _ if outlook::is_heard(status, member.node) == Some(false) => "unheard",
        _ if view.is_stopping(member.node) => "stopping",
        (true, true, true) => disk.and_then(disks::state_of_node).unwrap_or("serving"),
        (true, false, _) => "serving",
        (true, true, false) => "syncing",
    };
    let sign = status.life_signs.iter().find(|sign| sign.node == member.node);
    json!({
        "node_id": member.node.get(),
        "heard_ms": sign.and_then(|sign| sign.heard_ms),
        "late_ms": sign.map(|sign| sign.late_ms),
        "pid": pid_of(member),
        "roles": roles,
        "state": state,
        "node_group": group,
        "location": member.location,
        "in_sync": in_sync,
        "disk": disk.map(disks::as_json),
        "primary_slots": view.primary_slots(member.node),
        "native_address": member.native_address,
        "sql_address": member.sql_address,
    })
}

/// The process that listens on the node's port, as this machine knows it. A founder's record is the
/// same on all nodes and so holds no pid.
fn pid_of(member: &Member) -> Option<u32> {
    if member.pid != 0 {
        return Some(member.pid);
    }
    let port = member.native_address.rsplit(':').next().and_then(|p| p.parse::<u16>().ok())?;
    node_processes(member.node.get(), |line| listens_for(line, port)).next()
}

/// Processes that run a node with this number, of whatever cluster, whose command lines fit.
pub(crate) fn node_processes(node: u16, fits: impl Fn(&str) -> bool) -> impl Iterator<Item = u32> {
    let wanted = format!("\0--node-id\0{node}\0");
    processes(move |line| {
        line.split('\0').nth(1) == Some("node") && line.contains(&wanted) && fits(line)
    })
}

/// Processes of this machine whose command lines (words, each with a zero byte after it) fit.
pub(crate) fn processes(fits: impl Fn(&str) -> bool) -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(move |pid| command_line(*pid).is_some_and(|line| fits(&line)))
}

fn command_line(pid: u32) -> Option<String> {
    std::fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()
}

pub(crate) fn directory_in(command_line: &str) -> Option<&str> {
    command_line.split('\0').skip_while(|word| *word != "--data-dir").nth(1)
}

/// True if the node process with this command line belongs to the cluster with this port.
fn listens_for(command_line: &str, port: u16) -> bool {
    let cluster =
        directory_in(command_line).and_then(|d| ClusterFile::read(std::path::Path::new(d)).ok());
    cluster.is_some_and(|c| c.nodes.iter().any(|n| n.native_address.port() == port))
}

fn print_table(outlook: &Outlook, record: &Value, figures: &Figures) {
    let status = &outlook.status;
    say!(
        "view {}  epoch {}  leader {}  catalog {}  refused connections {}",
        status.view.number,
        status.epoch,
        status.leader.map_or("none".to_string(), |n| n.to_string()),
        // Since the last restart of the cluster; its number is left out.
        status.catalog_version & ((1 << VERSIONS_BETWEEN_RESTARTS_BITS) - 1),
        record["refused_connections"]
    );
    print_memory(&record["memory"]);
    say!("{}", MayFail::of(status).words());
    outlook.print_waits();
    let open = insecure(status);
    if !open.is_empty() {
        say!(
            "INSECURE: nodes {open:?} listen off the loopback; there are no accounts and no TLS, so whoever reaches them is root"
        );
    }
    for (id, group) in status.view.lost_groups() {
        let nodes: Vec<String> = group.nodes.iter().map(ToString::to_string).collect();
        say!(
            "node group {id} IS LOST: nodes {} have all died, and with them a part of every table",
            nodes.join(", ")
        );
    }
    for node in status.silent.iter().filter(|n| !status.view.is_replaceable(**n)) {
        say!(
            "node {node} IS SILENT, and has the only full replica of its rows: statements that need them are refused \
             until it is heard again. If its machine is off for good: latsdb declare-dead {node}"
        );
    }
    for (node, figures) in figures {
        if let Some(words) = figures.disk.as_ref().and_then(|disk| disks::words(*node, disk)) {
            say!("{words}");
        }
    }
    print_the_late(status);
    say!(
        "{:>4}  {:<9} {:>8} {:<12} {:>5}  {:>9}  {:<21} {:<21}",
        "node",
        "state",
        "heard",
        "roles",
        "group",
        "primaries",
        "native",
        "sql"
    );
    for node in record["nodes"].as_array().into_iter().flatten() {
        let roles: Vec<&str> =
            node["roles"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        say!(
            "{:>4}  {:<9} {:>8} {:<12} {:>5}  {:>9}  {:<21} {:<21}",
            node["node_id"].as_u64().unwrap_or_default(),
            node["state"].as_str().unwrap_or_default(),
            node["heard_ms"].as_u64().map_or("-".to_string(), |ms| format!("{ms} ms")),
            roles.join("+"),
            node["node_group"].as_u64().map_or("-".to_string(), |g| g.to_string()),
            node["primary_slots"].as_u64().unwrap_or_default(),
            node["native_address"].as_str().unwrap_or_default(),
            node["sql_address"].as_str().unwrap_or_default(),
        );
    }
}

/// Nodes that live, and do not come on: all others wait for them with each commit.
fn print_the_late(status: &Status) {
    for sign in status.life_signs.iter().filter(|sign| !status.silent.contains(&sign.node)) {
        let node = sign.node;
        if sign.late_ms >= LATE_MS {
            say!("node {node} IS LATE: one of its threads has not come on for {} ms", sign.late_ms);
        }
        match sign.heard_ms {
            Some(ms) if ms >= UNHEARD_MS => {
                say!("node {node} IS LATE: node {} has not heard it for {ms} ms", status.node);
            }
            _ => {}
        }
    }
}
