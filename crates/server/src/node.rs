//! `latsdb node`: one node in this process: the data node's threads, and SQL sessions beside them.

use crate::{
    anew::Anew,
    archive, close,
    cluster_file::{ClusterFile, NodeEntry},
    guardian,
    join::{self, NodeRoles},
    last_words,
    life::{self, Life},
    machine, open_files, ports, private, random, secret, settings,
    sql_threads::SqlThreads,
    status, supervisor,
};
use anyhow::{Context, bail};
use lats_base::{NodeId, Nonce};
use lats_catalog::{Member, Roles, View};
use lats_node::{NodeConfig, RedoFiles, control::Start, ldm::OUTCOME_KEPT};
use lats_runtime::{
    ReadPlacement, RuntimeConfig, SpinMethod, ThreadPlan, clock, files::FilesConfig, plan,
};
use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

/// Run one node: of the cluster whose `cluster.json` is in the data directory, or of one that it joins.
#[derive(clap::Args)]
pub(crate) struct NodeArgs {
    /// The cluster's directory, or with --join this node's own.
    #[arg(long, default_value = "./latsdb-data")]
    pub(crate) data_dir: PathBuf,
    /// Which node of the cluster this is; with --join by default the first one that is down.
    #[arg(long, required_unless_present = "join")]
    pub(crate) node_id: Option<u16>,
    /// Take the place of a node that is down, in the cluster that has a node here (HOST:PORT, native).
    #[arg(long, value_name = "HOST:PORT", conflicts_with_all = ["found", "cluster_id"])]
    join: Option<String>,
    /// The cluster's secret [default: the file `secret` in the data directory]; with --join it is copied there.
    #[arg(long, value_name = "FILE", env = crate::status::SECRET_VARIABLE)]
    pub(crate) secret_file: Option<PathBuf>,
    /// Listen off the loopback, though there are no accounts and no TLS yet: whoever reaches the SQL port is root, and whoever can
    /// listen on the network reads all.
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Where nodes and native clients connect (default: where the node was before).
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) listen: Option<String>,
    /// Where MySQL clients connect (default: where the node was before).
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) sql_listen: Option<String>,
    /// Where the node is: a rack, a data centre (default: what it was before).
    #[arg(long, value_name = "NAME")]
    pub(crate) location: Option<String>,
    /// What the node does; with --join: the place of such a node is taken.
    #[arg(long)]
    pub(crate) roles: Option<NodeRoles>,
    /// Memory of the node, in MiB, for rows, statements and clients (default: what `start` was told; with --join a quarter of
    /// the machine's, or of the container's).
    #[arg(long)]
    pub(crate) memory_mib: Option<usize>,
    /// Found the cluster together with the other nodes, instead of joining it.
    #[arg(long, conflicts_with = "partial")]
    found: bool,
    /// After a loss of all nodes: do not wait for nodes whose disks are gone, if others have their rows.
    #[arg(long)]
    partial: bool,
    /// Archive redo logs in this directory; `off` ends that [default: what was told before].
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) archive: Option<PathBuf>,
    /// The id that the cluster must have (a check against a wrong directory).
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    cluster_id: Option<u64>,
    /// Its threads, in the notation of docs/threads.md (default: by the processors that there are).
    #[arg(long, value_name = "MODULE={count=N,…},…")]
    thread_config: Option<String>,
    #[command(flatten)]
    pub(crate) scheduling: Scheduling,
    /// How long statements wait while this node is cut off from the majority of the cluster, in ms.
    #[arg(long, default_value_t = CUT_OFF_WAIT_MS, value_parser = clap::value_parser!(u64).range(100..=3_600_000))]
    cut_off_wait_ms: u64,
    /// Which machine this is: with it the node's next process, after the machine has been started again, proves that this one has ended
    /// [default: the machine's product UUID, if it can be read]. No two machines may have the same.
    #[arg(long, value_name = "NAME", env = "LATSDB_HOST_ID")]
    host_id: Option<String>,
    /// How many nodes share this machine's processors.
    #[arg(long, default_value_t = 1, hide = true, value_parser = clap::value_parser!(u16).range(1..))]
    nodes_here: u16,
    /// Leave in a file what is said until the node is a member, for `latsdb start`.
    #[arg(long, hide = true)]
    says: bool,
}

impl NodeArgs {
    /// The secret of the cluster that this node belongs to.
    pub(crate) fn secret(&self) -> anyhow::Result<lats_client::Secret> {
        match &self.secret_file {
            Some(file) => secret::read(file),
            None => secret::read(&secret::path(&self.data_dir)),
        }
    }
}

/// How a node's threads work.
#[derive(clap::Args, Clone, Copy, Debug)]
pub(crate) struct Scheduling {
    /// 0: large batches, which cost least, to 10: answers as soon as possible.
    #[arg(long, default_value_t = RESPONSIVENESS, value_parser = clap::value_parser!(u8).range(0..=10))]
    pub(crate) scheduler_responsiveness: u8,
    /// How threads wait: static (as long as `spintime` of thread_config says), cost-based, or latency-optimised.
    #[arg(long, default_value = SPIN_METHOD)]
    pub(crate) spin_method: SpinMethod,
    /// Who does reads where threads have the module `query`: adaptive (whoever is likely to have done it first), receiver
    /// (the thread that has read it from its socket), or owner (the data manager).
    #[arg(long, default_value = READ_PLACEMENT)]
    pub(crate) read_placement: ReadPlacement,
    /// A thread with nothing to do wakes those that it has work for, instead of doing it in their place.
    #[arg(long)]
    pub(crate) no_helping: bool,
}

pub(crate) const RESPONSIVENESS: u8 = 5;
pub(crate) const CUT_OFF_WAIT_MS: u64 = 5_000;
pub(crate) const SPIN_METHOD: &str = "static";
pub(crate) const READ_PLACEMENT: &str = "adaptive";

pub(crate) fn run(args: &NodeArgs) -> anyhow::Result<ExitCode> {
    crate::memory::prepare();
    let wishes = close::Wishes::hear()?;
    if let Some(node_id) = args.node_id.filter(|_| args.says) {
        last_words::begin(supervisor::words_file(&args.data_dir, node_id));
    }
    let (cluster, entry) = match &args.join {
        Some(seed) => join::prepare(args, seed)?,
        None => described(args)?,
    };
    let node_id = entry.node_id;
    if entry.data {
        let fits = settings::memory(cluster.memory_mib, args.nodes_here, &machine::memory());
        match fits {
            Err(error) if args.memory_mib.is_some() => return Err(error),
            Err(_) => tracing::warn!(
                "this node was given {} MiB once, which is more than its part of what there is here: rows beyond that end it, or the system swaps",
                cluster.memory_mib
            ),
            Ok(()) => {}
        }
        crate::memory::keep_ahead(cluster.memory_mib << 20)
            .context("cannot start the thread that keeps memory ready")?;
    }
    join::stay_on_the_loopback(&entry, args.insecure)?;
    let native = ports::bind(entry.native_address, "nodes and native clients")?;
    let sql = entry.sql_address.map(ports::hold).transpose()?;
    let clients = open_files::raise();
    let life = begin_life(args, &cluster, &entry)?;
    let mut runtime = runtime_config(args, &cluster, &entry, (native, life))?;
    let memory_bytes = cluster.memory_mib << 20;
    let sql =
        sql.map(|port| SqlThreads::prepare(node_id, (port, clients), memory_bytes, &mut runtime));
    let sql = sql.transpose()?;
    let cut_off_wait = std::time::Duration::from_millis(args.cut_off_wait_ms);
    let sql = sql.map(|sql| sql.waiting_when_cut_off(cut_off_wait));
    let running = lats_runtime::start(runtime).context("cannot start the node's threads")?;
    tracing::info!(node = node_id, native = %entry.native_address, "node started");
    let ending = sql.as_ref().map(SqlThreads::ending);
    if let Some(sql) = sql {
        sql.start()?;
    }
    lats_runtime::ends::complete();
    wishes.pass_on(running.closer(), ending)?;
    let stopped = running.wait();
    tracing::warn!(node = node_id, "node stops: {}", stopped.why);
    last_words::note(&stopped.why);
    std::process::exit(stopped.status);
}

/// The node as `cluster.json` describes it.
fn described(args: &NodeArgs) -> anyhow::Result<(ClusterFile, NodeEntry)> {
    let mut cluster = ClusterFile::read(&args.data_dir)?;
    if args.cluster_id.is_some_and(|id| id != cluster.cluster_id) {
        bail!(
            "{} belongs to another cluster (id {}); name the right directory with --data-dir",
            args.data_dir.display(),
            cluster.cluster_id
        );
    }
    let node_id = args.node_id.context("--node-id says which node of the cluster this is")?;
    let entry = cluster.nodes.iter_mut().find(|n| n.node_id == node_id);
    let entry = entry.with_context(|| format!("the cluster has no node {node_id}"))?;
    join::listen_where_told(entry, args)?;
    if args.roles.is_some_and(|roles| (roles == NodeRoles::DataSql) != entry.data) {
        bail!("node {node_id} has other roles in this cluster than --roles says");
    }
    let entry = entry.clone();
    cluster.memory_mib = args.memory_mib.unwrap_or(cluster.memory_mib);
    archive::keep(&mut cluster, &args.data_dir, args.archive.as_deref())?;
    Ok((cluster, entry))
}

/// Nothing is said under the number of a life before that is on disk (LIFE-1).
fn begin_life(args: &NodeArgs, cluster: &ClusterFile, entry: &NodeEntry) -> anyhow::Result<Life> {
    let files = node_directory(&args.data_dir, entry.node_id);
    lock(&files)?;
    let place = life::Place::here(&files, args.host_id.as_deref())?;
    let node = NodeId::new(entry.node_id);
    let life = match args.found {
        true => Life::found(&files, place, Nonce::of_founder(cluster.founding, node))?,
        false => Life::begin(&files, place, || known_life(args, cluster, node))?,
    };
    guardian::begin(&args.data_dir, entry.node_id, &life, args.secret_file.as_deref())?;
    Ok(life)
}

/// The newest life of this node that other nodes know; 0 if none answers. A node whose directory is empty begins above it.
fn known_life(args: &NodeArgs, cluster: &ClusterFile, node: NodeId) -> u32 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let (Ok(runtime), Ok(secret)) = (runtime, args.secret()) else { return 0 };
    let others = cluster.nodes.iter().filter(|n| n.node_id != node.get());
    let mut known = others.filter_map(|other| {
        let asked = status::ask(other.native_address, secret.clone());
        let answer = runtime.block_on(async { tokio::time::timeout(ASKED_FOR, asked).await });
        answer.ok()?.ok()?.view.member(node).map(|m| m.incarnation.get())
    });
    known.next().unwrap_or_default()
}

fn runtime_config(
    args: &NodeArgs,
    cluster: &ClusterFile,
    entry: &NodeEntry,
    (listener, life): (std::net::TcpListener, Life),
) -> anyhow::Result<RuntimeConfig> {
    let node = NodeId::new(entry.node_id);
    let others = cluster.nodes.iter().filter(|n| n.node_id != entry.node_id);
    let peers: Vec<_> = others.map(|n| (NodeId::new(n.node_id), n.native_address)).collect();
    let incarnation = life.number;
    let start = if args.found {
        Start::Found(cluster.founding())
    } else {
        let member = Member {
            node,
            incarnation,
            roles: Roles { data: entry.data, sql: entry.data },
            native_address: entry.native_address.to_string(),
            sql_address: entry.sql_address.map(|a| a.to_string()).unwrap_or_default(),
            location: entry.location.clone(),
            pid: std::process::id(),
            ..Member::default()
        };
        let seeds = peers.iter().map(|(n, _)| *n).collect();
        Start::Join { member, origin: life.origin.clone(), seeds, partial: args.partial }
    };
    let (tc, ldm) = (cluster.tc_instances, cluster.ldm_instances);
    let threads = threads(args, entry)?;
    let placed = if entry.data { (tc, ldm) } else { (0, 0) };
    let placement = plan::placement(&threads, placed.0, placed.1);
    let redo = redo_files(cluster, entry);
    let files = node_directory(&args.data_dir, entry.node_id);
    if redo.is_some() {
        archive::begin(&files, cluster, entry.node_id)?;
    }
    note_threads(entry.node_id, &threads);
    let full = supervisor::full_file(&args.data_dir, entry.node_id);
    let memory_bytes = cluster.memory_mib << 20;
    Ok(RuntimeConfig {
        threads,
        responsiveness: args.scheduling.scheduler_responsiveness,
        spin_method: args.scheduling.spin_method,
        reads: args.scheduling.read_placement,
        helping: !args.scheduling.no_helping,
        node: NodeConfig {
            redo,
            node,
            incarnation,
            start,
            holds_data: entry.data,
            ldm_instances: ldm,
            tc_instances: tc,
            memory_bytes: crate::memory::for_rows(memory_bytes),
            slices: Default::default(),
            outcome_kept: OUTCOME_KEPT,
            placement,
            seed: random::number()?,
            faults: Default::default(),
        },
        cluster_id: cluster.cluster_id,
        secret: args.secret()?,
        listener,
        peers,
        ports: Vec::new(),
        sessions: std::sync::Arc::new(|_, _, _| (false, Vec::new())),
        memory: std::sync::Arc::new(move || crate::memory::figures(memory_bytes)),
        files: redo
            .map(|_| files_config(args, cluster, entry.node_id, (files.clone(), life.clone())))
            .transpose()?,
        on_view: Box::new(mark_when_full(full, node)),
        on_known_life: Box::new(move |known| {
            if let Err(error) = life.note_known(&files, known) {
                tracing::warn!("{error:#}");
            }
        }),
    })
}

fn redo_files(cluster: &ClusterFile, entry: &NodeEntry) -> Option<RedoFiles> {
    (entry.data && cluster.keeps).then_some(RedoFiles {
        cluster: cluster.cluster_id,
        segment_bytes: SEGMENT_BYTES,
        waiting_bytes_max: WAITING_BYTES_MAX,
    })
}

fn files_config(
    args: &NodeArgs,
    cluster: &ClusterFile,
    node_id: u16,
    (directory, life): (PathBuf, Life),
) -> anyhow::Result<FilesConfig> {
    let anew = Anew::new(&args.data_dir, node_id, (cluster.clone(), Some(life)), args.secret()?)
        .with_context(|| format!("{} is not there", directory.display()))?;
    let begins_anew = std::sync::Arc::new(move || anew.begin());
    Ok(FilesConfig { directory, archives: cluster.archive.is_some(), begins_anew })
}

fn note_threads(node_id: u16, threads: &[ThreadPlan]) {
    let names: Vec<_> = threads.iter().map(ThreadPlan::name).collect();
    tracing::info!(node = node_id, "threads: {}", names.join(", "));
}

/// Where a node's files are.
pub(crate) fn node_directory(data_dir: &Path, node_id: u16) -> PathBuf {
    data_dir.join(format!("node-{node_id}"))
}

/// Makes the directory, and keeps other processes away from it as long as this one lives.
fn lock(directory: &Path) -> anyhow::Result<()> {
    let sync_parent = || match directory.parent() {
        Some(parent) => std::fs::File::open(parent)?.sync_all(),
        None => Ok(()),
    };
    private::directory(directory)?;
    sync_parent().with_context(|| format!("cannot make {}", directory.display()))?;
    let path = directory.join("lock");
    let file =
        std::fs::File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
    let end = clock::now().plus(LOCK_PATIENCE);
    let used = || format!("another process uses {}", directory.display());
    let mut said = false;
    while file.try_lock().is_err() {
        if !std::mem::replace(&mut said, true) {
            last_words::note(&format!("{}; it is waited for", used()));
        }
        if clock::now() > end {
            bail!("{}; end it first, or name another directory", used());
        }
        supervisor::pause(std::time::Duration::from_millis(10));
    }
    // It is unlocked when the process ends.
    core::mem::forget(file);
    Ok(())
}

/// A segment of a redo log.
const SEGMENT_BYTES: u64 = 16 << 20;
/// With so much that waits for the disk in one data manager changes are refused.
const WAITING_BYTES_MAX: usize = 16 << 20;
/// How long another node may take to say which lives it knows.
const ASKED_FOR: std::time::Duration = std::time::Duration::from_millis(500);
/// A former process of the node may still be ending.
const LOCK_PATIENCE: lats_base::Duration = lats_base::Duration::from_millis(10_000);

/// The node's threads, as told or by the processors that there are. Who holds no data needs one.
fn threads(args: &NodeArgs, entry: &NodeEntry) -> anyhow::Result<Vec<ThreadPlan>> {
    match &args.thread_config {
        _ if !entry.data => {
            // What it does is control's, and that it reads.
            let all = ThreadPlan::of(&[plan::Module::Main, plan::Module::Recv]);
            Ok(vec![all])
        }
        Some(text) => plan::parse(text).map_err(anyhow::Error::msg),
        None => {
            Ok(plan::automatic(plan::Processors::of_this_machine(usize::from(args.nodes_here))))
        }
    }
}

/// Says in a file, once, that this process is a full replica: from then on its end is the end of rows if
/// the others are gone.
fn mark_when_full(file: PathBuf, node: NodeId) -> impl FnMut(&View) + Send {
    let mut marked = false;
    move |view| {
        if view.members.iter().any(|m| m.node == node && m.alive) {
            last_words::end();
        }
        if !marked && view.is_in_sync(node) {
            match std::fs::write(&file, std::process::id().to_string()) {
                Ok(()) => marked = true,
                Err(error) => tracing::warn!(%error, "cannot write {}", file.display()),
            }
        }
    }
}
