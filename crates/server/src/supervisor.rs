//! Keeps the processes of a cluster on this machine running.

use crate::cluster_file::ClusterFile;
use anyhow::{Context, bail};
use lats_client::net::{Client, ClientOptions};
use lats_runtime::clock;
use std::{
    collections::BTreeMap,
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
    tokio: tokio::runtime::Runtime,
}

/// The file that says which process supervises a directory.
fn pid_file(data_dir: &Path) -> PathBuf {
    data_dir.join("supervisor.pid")
}

/// The file that says that the cluster serves.
pub(crate) fn serving_file(data_dir: &Path) -> PathBuf {
    data_dir.join("serving.pid")
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
        std::fs::write(pid_file(data_dir), std::process::id().to_string())
            .with_context(|| format!("cannot write into {}", data_dir.display()))?;
        // The nodes' command lines tell it to other commands, which may run elsewhere.
        let data_dir = std::path::absolute(data_dir).context("no such directory")?;
        Ok(Self { data_dir, cluster, data_threads, children: BTreeMap::new(), tokio })
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
        }
        let child = command.spawn().with_context(|| format!("cannot start node {node_id}"))?;
        println!("latsdb: node {node_id} runs as process {}", child.id());
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
        loop {
            let signalled = self.tokio.block_on(next_signal(Duration::from_millis(20)));
            if signalled {
                println!("latsdb: stopping the cluster");
                self.kill_all();
                return Ok(ExitCode::SUCCESS);
            }
            for node_id in self.dead() {
                let Some(delay) = restart else { continue };
                println!("latsdb: node {node_id} has died; it starts again in {delay:?}");
                if self.data_nodes_alive() == 0 {
                    self.kill_all();
                    bail!(
                        "all data nodes have died; rows are kept in memory only in this version, so \
                         they are gone. Start again with an empty cluster"
                    );
                }
                pause(delay);
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

    fn data_nodes_alive(&self) -> usize {
        let data = |id: &&u16| self.cluster.node(**id).is_some_and(|n| n.data);
        self.children.keys().filter(data).count()
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
