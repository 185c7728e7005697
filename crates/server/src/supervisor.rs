//! Keeps the processes of a cluster on this machine running.

use crate::cluster_file::ClusterFile;
use crate::say::say;
use anyhow::{Context, bail};
use lats_base::{Instant as Time, NodeId};
use lats_client::net::{Client, ClientOptions};
use lats_runtime::clock;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    process::{Child, Command, ExitCode, Stdio},
    time::Duration,
};

/// The processes of a cluster.
pub(crate) struct Supervisor {
    data_dir: PathBuf,
    cluster: ClusterFile,
    data_threads: usize,
    children: BTreeMap<u16, Child>,
    /// Nodes that have started again and are not full replicas yet.
    empty: BTreeSet<u16>,
    /// When the cluster was asked who is filled.
    asked: Time,
    tokio: tokio::runtime::Runtime,
}

/// How often the cluster is asked whether nodes that have started again are filled.
const ASK_AGAIN: Duration = Duration::from_millis(500);
const ASK_PATIENCE: Duration = Duration::from_millis(300);

/// The file that says which process supervises a directory.
fn pid_file(data_dir: &Path) -> PathBuf {
    data_dir.join("supervisor.pid")
}

/// The file that says that the cluster serves.
pub(crate) fn serving_file(data_dir: &Path) -> PathBuf {
    data_dir.join("serving.pid")
}

/// The file that says why the cluster has ended, if it was not told to.
fn last_words_file(data_dir: &Path) -> PathBuf {
    data_dir.join("ended.txt")
}

/// Why the cluster in a directory has ended, if it was not told to.
pub(crate) fn last_words(data_dir: &Path) -> Option<String> {
    std::fs::read_to_string(last_words_file(data_dir)).ok()
}

/// The process that supervises a directory, if it lives.
pub(crate) fn running(data_dir: &Path) -> Option<i32> {
    let text = std::fs::read_to_string(pid_file(data_dir)).ok()?;
    let raw: i32 = text.trim().parse().ok()?;
    let pid = rustix::process::Pid::from_raw(raw)?;
    let alive = rustix::process::test_kill_process(pid).is_ok();
    // A pid is used again some day: look whether it is one of ours.
    let name = std::fs::read_to_string(format!("/proc/{raw}/comm")).unwrap_or_default();
    (alive && name.trim() == "latsdb").then_some(raw)
}

/// A span of the nodes' clock.
fn span(duration: Duration) -> lats_base::Duration {
    lats_base::Duration::from_micros(duration.as_micros() as u64)
}

/// Waits, outside any asynchronous work.
#[expect(clippy::disallowed_methods, reason = "a command-line tool that waits for processes")]
pub(crate) fn pause(span: Duration) {
    std::thread::sleep(span);
}

impl Supervisor {
    pub(crate) fn new(
        data_dir: &Path,
        cluster: ClusterFile,
        data_threads: usize,
    ) -> anyhow::Result<Self> {
        let tokio = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("cannot start the supervisor")?;
        let _ = std::fs::remove_file(serving_file(data_dir));
        let _ = std::fs::remove_file(last_words_file(data_dir));
        std::fs::write(pid_file(data_dir), std::process::id().to_string())
            .with_context(|| format!("cannot write into {}", data_dir.display()))?;
        // The nodes' command lines tell it to other commands, which may run elsewhere.
        let data_dir = std::path::absolute(data_dir).context("no such directory")?;
        Ok(Self {
            data_dir,
            cluster,
            data_threads,
            children: BTreeMap::new(),
            empty: BTreeSet::new(),
            asked: clock::now(),
            tokio,
        })
    }

    /// Starts all nodes as founders.
    pub(crate) fn start_all(&mut self) -> anyhow::Result<()> {
        for node in self.cluster.nodes.clone() {
            self.start(node.node_id, true)?;
        }
        Ok(())
    }

    fn start(&mut self, node_id: u16, found: bool) -> anyhow::Result<()> {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .arg("node")
            .arg("--data-dir")
            .arg(&self.data_dir)
            .args(["--node-id", &node_id.to_string()])
            .args(["--cluster-id", &self.cluster.cluster_id.to_string()])
            .args(["--data-threads", &self.data_threads.to_string()])
            // Rows in huge pages: faster, and a killed process is gone sooner.
            .env("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1")
            .stdin(Stdio::null());
        if found {
            command.arg("--found");
        } else {
            self.empty.insert(node_id);
        }
        let child = command.spawn().with_context(|| format!("cannot start node {node_id}"))?;
        say!("latsdb: node {node_id} runs as process {}", child.id());
        self.children.insert(node_id, child);
        Ok(())
    }

    /// Waits until every SQL port answers, and says so in a file.
    pub(crate) fn wait_until_serving(&mut self, patience: Duration) -> anyhow::Result<()> {
        let options = ClientOptions {
            addresses: self.cluster.addresses(),
            cluster_id: self.cluster.cluster_id,
            seed: crate::random::number(),
            home: None,
        };
        let ready = self.tokio.block_on(async {
            let client = Client::start(options, clock::now);
            client.ready(patience).await
        });
        if let Err(error) = ready {
            self.kill_all();
            bail!("the nodes have started, but the cluster does not serve: {error}");
        }
        self.wait_for_sql(patience)?;
        let file = serving_file(&self.data_dir);
        std::fs::write(&file, std::process::id().to_string())
            .with_context(|| format!("cannot write {}", file.display()))
    }

    fn wait_for_sql(&mut self, patience: Duration) -> anyhow::Result<()> {
        for address in self.cluster.nodes.iter().filter_map(|n| n.sql_address) {
            let greets = async {
                loop {
                    // A server that serves speaks first.
                    if let Ok(stream) = tokio::net::TcpStream::connect(address).await {
                        let mut byte = [0];
                        let heard = tokio::time::timeout(
                            Duration::from_millis(200),
                            stream.peek(&mut byte),
                        );
                        if heard.await.is_ok_and(|n| n.is_ok_and(|n| n > 0)) {
                            return;
                        }
                    }
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            };
            let served =
                self.tokio.block_on(async { tokio::time::timeout(patience, greets).await });
            if served.is_err() {
                self.kill_all();
                bail!("no MySQL server answers on {address}");
            }
        }
        Ok(())
    }

    /// Starts dead nodes again until a signal ends the cluster.
    pub(crate) fn supervise(mut self, restart: Option<Duration>) -> anyhow::Result<ExitCode> {
        let mut due: BTreeMap<u16, Time> = BTreeMap::new();
        loop {
            let signalled = self.tokio.block_on(next_signal(Duration::from_millis(20)));
            if signalled {
                say!("latsdb: stopping the cluster");
                self.kill_all();
                return Ok(ExitCode::SUCCESS);
            }
            self.look_who_is_filled();
            for node_id in self.dead() {
                match restart {
                    Some(delay) => {
                        say!("latsdb: node {node_id} has died; it starts again in {delay:?}");
                        due.insert(node_id, clock::now().plus(span(delay)));
                        self.end_if_rows_are_gone()?;
                    }
                    // Somebody else may start another in its place.
                    None => say!("latsdb: node {node_id} has died"),
                }
            }
            if self.children.is_empty() && due.is_empty() {
                self.kill_all();
                bail!("all nodes that were started here have died");
            }
            let now = clock::now();
            let now_due: Vec<u16> =
                due.extract_if(.., |_, at| *at <= now).map(|(id, _)| id).collect();
            for node_id in now_due {
                self.start(node_id, false)?;
            }
        }
    }

    /// Nodes whose process has ended since the last look.
    fn dead(&mut self) -> Vec<u16> {
        let ended = |child: &mut Child| child.try_wait().is_ok_and(|status| status.is_some());
        let dead: Vec<u16> = self
            .children
            .iter_mut()
            .filter_map(|(node, child)| ended(child).then_some(*node))
            .collect();
        for node in &dead {
            self.children.remove(node);
        }
        dead
    }

    /// Asks the cluster, now and then, which nodes that have started again hold all rows by now.
    fn look_who_is_filled(&mut self) {
        if self.empty.is_empty() || clock::now().since(self.asked) < span(ASK_AGAIN) {
            return;
        }
        self.asked = clock::now();
        let addresses: Vec<_> = self.cluster.addresses();
        let asked = async {
            for address in addresses {
                let answer = tokio::time::timeout(ASK_PATIENCE, crate::status::ask(address)).await;
                if let Ok(Ok(status)) = answer {
                    return Some(status);
                }
            }
            None
        };
        let Some(status) = self.tokio.block_on(asked) else { return };
        let view = &status.view;
        self.empty.retain(|id| {
            let life = view.member(NodeId::new(*id)).filter(|m| m.alive);
            let ours = life
                .is_some_and(|m| self.children.get(id).is_some_and(|child| child.id() == m.pid));
            let filled = life.is_some_and(|m| !m.roles.data || view.is_in_sync(m.node));
            !(ours && filled)
        });
    }

    /// Rows live as long as one full replica of their group does.
    fn end_if_rows_are_gone(&mut self) -> anyhow::Result<()> {
        let data: Vec<u16> =
            self.cluster.nodes.iter().filter(|n| n.data).map(|n| n.node_id).collect();
        let holds = |id: &u16| self.children.contains_key(id) && !self.empty.contains(id);
        let replicas = usize::from(self.cluster.replicas.max(1));
        let Some(lost) = data.chunks(replicas).find(|group| !group.iter().any(holds)) else {
            return Ok(());
        };
        let why = format!(
            "all replicas of a node group have died (nodes {lost:?}). Rows are kept in memory only \
             in this version, so they are gone. `latsdb start` begins again with an empty cluster"
        );
        self.kill_all();
        let _ = std::fs::write(last_words_file(&self.data_dir), &why);
        bail!(why)
    }

    fn kill_all(&mut self) {
        for child in self.children.values_mut() {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
        self.children.clear();
        let _ = std::fs::remove_file(pid_file(&self.data_dir));
        let _ = std::fs::remove_file(serving_file(&self.data_dir));
    }
}

/// True if a signal to end has come within `span`.
async fn next_signal(span: Duration) -> bool {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut term), Ok(mut int)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        return false;
    };
    tokio::select! {
        _ = term.recv() => true,
        _ = int.recv() => true,
        () = tokio::time::sleep(span) => false,
    }
}
