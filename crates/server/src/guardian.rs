//! The guardian of a node: a small process beside it that sees it end, and tells the other nodes so (DEATH-1; `docs/protocols/lives.md`).
//! It ends nothing and starts nothing.

use crate::{cluster_file::ClusterFile, life::Life, random, secret};
use anyhow::Context;
use lats_base::{Incarnation, NodeId, Nonce};
use lats_client::net::{Client, ClientOptions};
use lats_runtime::{
    clock,
    ends::{self, Ends},
};
use rustix::{
    event::{PollFd, PollFlags, poll},
    fd::OwnedFd,
    process::{Pid, PidfdFlags, getppid, pidfd_open},
};
use std::{
    path::{Path, PathBuf},
    process::{Child, Command, ExitCode, Stdio},
    time::Duration,
};
use tokio::{signal::unix, sync::oneshot};

/// Watch a node's process, and tell the other nodes when it has ended. `latsdb node` starts it.
#[derive(clap::Args)]
pub(crate) struct GuardianArgs {
    #[arg(long)]
    data_dir: PathBuf,
    #[arg(long)]
    node_id: u16,
    #[arg(long)]
    life: u32,
    /// Which process it is: 32 hexadecimal digits.
    #[arg(long)]
    nonce: String,
    /// Its number, while it lives.
    #[arg(long)]
    pid: i32,
    /// Where its threads show that they live.
    #[arg(long)]
    ends: Option<String>,
    /// The cluster's secret [default: the file `secret` in the data directory].
    #[arg(long)]
    secret_file: Option<PathBuf>,
}

/// How often the others are told, and how long: until they have removed the life from the view.
const TELL_EVERY: Duration = Duration::from_millis(20);
const TELL_FOR: Duration = Duration::from_secs(10);
/// Nobody is told for longer if no other node can be reached: they have ended, too, and the next process says what is to be said.
const NOBODY_FOR: Duration = Duration::from_millis(300);
/// How soon another guardian is started in the place of one that has ended.
const AGAIN: Duration = Duration::from_secs(1);
/// How often it is looked whether it sees this node's threads, and how many times.
const LOOK: Duration = Duration::from_millis(100);
const WATCHED_WITHIN: u32 = 100;

/// Starts the guardian of this process, and another one whenever it ends.
///
/// # Errors
/// The thread that sees to it cannot be started.
pub(crate) fn begin(
    data_dir: &Path,
    node_id: u16,
    life: &Life,
    secret_file: Option<&Path>,
) -> anyhow::Result<()> {
    let mut command = crate::numa::this_program()?;
    command
        .arg("guardian")
        .args(["--node-id", &node_id.to_string()])
        .args(["--life", &life.number.to_string()])
        .args(["--nonce", &life.origin.nonce.to_string()])
        .args(["--pid", &std::process::id().to_string()])
        .arg("--data-dir")
        .arg(data_dir)
        // Nobody waits for the end of its output.
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if let Some(file) = secret_file {
        command.arg("--secret-file").arg(file);
    }
    match ends::begin() {
        Ok(place) => drop(command.args(["--ends", &place])),
        Err(error) => {
            tracing::warn!(%error, "this node's end is noticed only when its memory is freed");
        }
    }
    let first = command.spawn();
    let keep = move || keep_one(command, first.ok());
    std::thread::Builder::new()
        .name("guardian".into())
        .spawn(keep)
        .context("cannot start the thread that keeps a guardian")?;
    Ok(())
}

fn keep_one(mut command: Command, mut running: Option<Child>) {
    loop {
        match &mut running {
            Some(child) => {
                look_for_watch(child);
                let ended = child.wait();
                tracing::warn!(
                    "the guardian of this node has ended ({ended:?}); another one is started"
                );
            }
            None => tracing::warn!("no guardian can be started: this node's end is noticed late"),
        }
        crate::supervisor::pause(AGAIN);
        ends::unwatched();
        running = command.spawn().ok();
    }
}

/// Says whether the guardian sees the ends of this node's threads, or only that of the process (DEATH-1).
fn look_for_watch(guardian: &mut Child) {
    let mut looks = 0;
    while looks < WATCHED_WITHIN {
        match ends::is_watched() {
            Some(true) => {
                return tracing::info!(
                    guardian = guardian.id(),
                    "the guardian sees this node's threads"
                );
            }
            Some(false) => looks += 1,
            // The node is still starting.
            None => {}
        }
        if !matches!(guardian.try_wait(), Ok(None)) {
            return;
        }
        crate::supervisor::pause(LOOK);
    }
    tracing::warn!(
        "the guardian does not see this node's threads: its end is noticed when its memory is freed"
    );
}

pub(crate) fn run(args: &GuardianArgs) -> anyhow::Result<ExitCode> {
    // A terminal's signals are for the node.
    let _ = rustix::process::setsid();
    // Held before the parent is looked at: the number is not another process's then.
    let pid = Pid::from_raw(args.pid).context("--pid is the number of a process")?;
    let watched = pidfd_open(pid, PidfdFlags::NONBLOCK);
    let is_orphan = getppid() != Some(pid);
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    tokio.block_on(async {
        // What ends all processes of a unit ends the node first.
        let kinds = [unix::SignalKind::terminate(), unix::SignalKind::interrupt()];
        let _heard = kinds.map(unix::signal);
        let client = Client::start(client_options(args)?, clock::now);
        if !is_orphan {
            let watched = watched.context("cannot watch the process")?;
            tokio::select! {
                done = ended(watched) => done?,
                () = threads_ended(args.ends.as_deref()) => {}
            }
        }
        tell(&client, args).await
    })
}

fn client_options(args: &GuardianArgs) -> anyhow::Result<ClientOptions> {
    let cluster = ClusterFile::read(&args.data_dir)?;
    let file = args.secret_file.clone().unwrap_or_else(|| secret::path(&args.data_dir));
    let others = cluster.nodes.iter().filter(|n| n.node_id != args.node_id);
    Ok(ClientOptions {
        addresses: others.map(|n| n.native_address).collect(),
        cluster_id: cluster.cluster_id,
        secret: Some(secret::read(&file)?),
        admin: true,
        without_catalog: true,
        seed: random::number()?,
        ..ClientOptions::default()
    })
}

/// Waits until the process has ended: all its threads are gone, and its files and sockets are closed.
async fn ended(process: OwnedFd) -> anyhow::Result<()> {
    let wait = move || loop {
        let mut watched = [PollFd::new(&process, PollFlags::IN)];
        match poll(&mut watched, None) {
            Err(rustix::io::Errno::INTR) => {}
            ended => return ended,
        }
    };
    in_its_thread(wait).await.context("cannot watch the process")??;
    Ok(())
}

/// Waits until no thread of the process is left that may send anything, which is long before its memory is freed; for ever, if that
/// cannot be known.
async fn threads_ended(place: Option<&str>) {
    let known = place.map(Ends::of).and_then(Result::ok);
    if let Some(ends) = known
        && in_its_thread(move || ends.wait()).await.is_ok_and(|have_ended| have_ended)
    {
        return;
    }
    std::future::pending().await
}

/// Runs something that nobody can end: the process does not wait for it.
async fn in_its_thread<R: Send + 'static>(
    work: impl FnOnce() -> R + Send + 'static,
) -> anyhow::Result<R> {
    let (done, answer) = oneshot::channel();
    // Nobody may wait for it any more.
    std::thread::Builder::new().spawn(move || drop(done.send(work())))?;
    Ok(answer.await?)
}

/// Tells the others, until none has that life in its view.
async fn tell(client: &Client, args: &GuardianArgs) -> anyhow::Result<ExitCode> {
    let nonce = u128::from_str_radix(&args.nonce, 16).context("--nonce has 32 digits")?;
    let nonce = Nonce::new([(nonce >> 64) as u64, nonce as u64]);
    let (node, life) = (NodeId::new(args.node_id), Incarnation::new(args.life));
    let knows = || client.map().view.number.get() > 0;
    let (mut left, mut unheard) = (TELL_FOR, NOBODY_FOR);
    while !(left.is_zero()
        || unheard.is_zero()
        || knows() && !client.map().view.is_alive(node, life))
    {
        client.certify(node, life, nonce);
        tokio::time::sleep(TELL_EVERY).await;
        left = left.saturating_sub(TELL_EVERY);
        unheard = if client.has_links() { NOBODY_FOR } else { unheard.saturating_sub(TELL_EVERY) };
    }
    Ok(ExitCode::SUCCESS)
}
