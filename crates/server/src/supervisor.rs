//! Keeps the processes of a cluster on this machine running.

pub(crate) mod stopping;

use crate::say::say;
use crate::{
    close,
    cluster_file::ClusterFile,
    last_words,
    options::ThreadOptions,
    secret,
    waiting::{Process, Waiting},
};
use anyhow::{Context, bail};
use lats_base::{Instant as Time, NodeId};
use lats_catalog::Change;
use lats_client::net::{Client, ClientOptions};
use lats_runtime::clock;
use lats_signals::control::{STATUS_ENDED, STATUS_NOT_DURABLE, STATUS_STOPPED, STATUS_WRONG_FILES};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    process::{Child, ExitCode, Stdio},
    time::Duration,
};
use tokio::signal::unix;

/// The processes of a cluster.
pub(crate) struct Supervisor {
    data_dir: PathBuf,
    cluster: ClusterFile,
    threads: ThreadOptions,
    partial: bool,
    /// What commits are to wait for from this start on; none: what they have waited for.
    pub(crate) to_disk: Option<bool>,
    /// When nodes are to be started again.
    due: BTreeMap<u16, Time>,
    children: BTreeMap<u16, Child>,
    /// Nodes whose process is not the one that founded the cluster: it had to be filled.
    started_again: BTreeSet<u16>,
    /// Nodes that somebody else has told to end, and that have; and whether they have lost nothing.
    told_to_end: BTreeMap<u16, bool>,
    /// Since when a node group has no full replica.
    lost_since: Option<Time>,
    /// Groups of which somebody was told that they are lost.
    told_lost: BTreeSet<Vec<NodeId>>,
    /// Since when the directory is not found, while the cluster comes up.
    missing_since: Option<Time>,
    /// What is known of nodes that come up; none when the cluster serves.
    waiting: Option<Waiting>,
    /// The cluster has served: nodes may still be on their way.
    serves: bool,
    tokio: tokio::runtime::Runtime,
}

/// How long a group may seem to be without a full replica: longer than it takes to elect a leader and to
/// hear of its view.
const LOST_GRACE: Duration = Duration::from_secs(5);

/// How often it is looked whether nodes have died that are coming up.
const LOOK: Duration = Duration::from_millis(100);
/// What nodes have said so long ago need not be true any more.
const WORDS_LAST: Duration = Duration::from_secs(12);
/// How long `start` waits for the last nodes of a cluster that serves.
const OTHERS_PATIENCE: Duration = Duration::from_secs(60);
/// A directory that is not found for so long is gone.
const MISSING: Duration = Duration::from_millis(500);
/// Nodes that have ended so often in the same way are started again less often.
const FEW_ENDS: u32 = 5;
const SLOW_RESTART: Duration = Duration::from_secs(5);
/// How long a change of what commits wait for may take. Nodes that die meanwhile are not started again.
const DURABILITY_PATIENCE: Duration = Duration::from_secs(5);

/// The file that says which process supervises a directory.
fn pid_file(data_dir: &Path) -> PathBuf {
    data_dir.join("supervisor.pid")
}

/// The file that says that the cluster serves.
pub(crate) fn serving_file(data_dir: &Path) -> PathBuf {
    data_dir.join("serving.pid")
}

/// The file that says why a cluster that comes up does not serve yet.
pub(crate) fn starting_file(data_dir: &Path) -> PathBuf {
    data_dir.join("starting.txt")
}

/// The file that has what a node that is no member yet has said last.
pub(crate) fn words_file(data_dir: &Path, node_id: u16) -> PathBuf {
    data_dir.join(format!("node-{node_id}.says"))
}

/// The file that says why the cluster has ended, if it was not told to.
fn last_words_file(data_dir: &Path) -> PathBuf {
    data_dir.join("ended.txt")
}

/// The file in which a node's process says that it is a full replica: its process id.
pub(crate) fn full_file(data_dir: &Path, node_id: u16) -> PathBuf {
    data_dir.join(format!("node-{node_id}.full"))
}

/// The file that asks the supervisor to start a node again.
pub(crate) fn start_file(data_dir: &Path, node_id: u16) -> PathBuf {
    data_dir.join(format!("node-{node_id}.start"))
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
    let line = std::fs::read_to_string(format!("/proc/{raw}/cmdline")).unwrap_or_default();
    (alive && line.split('\0').nth(1) == Some("start")).then_some(raw)
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
        threads: ThreadOptions,
    ) -> anyhow::Result<Self> {
        let tokio = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("cannot start the supervisor")?;
        let _ = std::fs::remove_file(serving_file(data_dir));
        let _ = std::fs::remove_file(starting_file(data_dir));
        let _ = std::fs::remove_file(last_words_file(data_dir));
        let _ = std::fs::remove_file(stopping::file(data_dir));
        let _ = std::fs::remove_file(stopping::begun_file(data_dir));
        for node in &cluster.nodes {
            let _ = std::fs::remove_file(start_file(data_dir, node.node_id));
        }
        std::fs::write(pid_file(data_dir), std::process::id().to_string())
            .with_context(|| format!("cannot write into {}", data_dir.display()))?;
        // The nodes' command lines tell it to other commands, which may run elsewhere.
        let data_dir = std::path::absolute(data_dir).context("no such directory")?;
        Ok(Self {
            data_dir,
            cluster,
            threads,
            partial: false,
            to_disk: None,
            due: BTreeMap::new(),
            children: BTreeMap::new(),
            started_again: BTreeSet::new(),
            told_to_end: BTreeMap::new(),
            lost_since: None,
            told_lost: BTreeSet::new(),
            missing_since: None,
            waiting: Some(Waiting::new(clock::now())),
            serves: false,
            tokio,
        })
    }

    /// The signals that end the cluster, from now on.
    pub(crate) fn signals(&self) -> anyhow::Result<Signals> {
        Ok(self.tokio.block_on(async { Signals::new() })?)
    }

    /// Starts all nodes: as founders, unless a cluster is there already.
    /// `partial`: they do not wait for each other's disks. True if it is founded.
    pub(crate) fn start_all(&mut self, partial: bool) -> anyhow::Result<bool> {
        let founds = !self.cluster.has_files(&self.data_dir);
        self.partial = partial;
        if founds {
            self.cluster.founding = crate::random::number()?;
            self.cluster.write(&self.data_dir)?;
        }
        for node in self.cluster.nodes.clone() {
            self.start(node.node_id, founds)?;
        }
        Ok(founds)
    }

    fn start(&mut self, node_id: u16, found: bool) -> anyhow::Result<()> {
        let mut command = crate::numa::this_program()?;
        command
            .arg("node")
            .arg("--data-dir")
            .arg(&self.data_dir)
            .args(["--node-id", &node_id.to_string()])
            .args(["--cluster-id", &self.cluster.cluster_id.to_string()])
            .args(["--scheduler-responsiveness", &self.threads.responsiveness.to_string()])
            .args(["--spin-method", &self.threads.spin_method])
            .args(["--read-placement", &self.threads.read_placement])
            .args(["--cut-off-wait-ms", &self.threads.cut_off_wait_ms.to_string()])
            .arg("--says")
            .args(["--nodes-here", &self.data_nodes().to_string()])
            .envs([crate::memory::PURGE_DELAY])
            // Whatever cluster the commands of this shell talk to, this is another one.
            .env_remove(crate::status::SECRET_VARIABLE)
            .stdin(Stdio::null());
        if self.threads.no_helping {
            command.arg("--no-helping");
        }
        if let Some(config) = &self.threads.config {
            command.args(["--thread-config", config]);
        }
        if found {
            command.arg("--found");
        } else {
            if self.partial {
                command.arg("--partial");
            }
            self.started_again.insert(node_id);
        }
        self.told_to_end.remove(&node_id);
        let child = command.spawn().with_context(|| format!("cannot start node {node_id}"))?;
        say!("latsdb: node {node_id} runs as process {}", child.id());
        self.children.insert(node_id, child);
        Ok(())
    }

    fn data_nodes(&self) -> usize {
        self.cluster.nodes.iter().filter(|n| n.data).count()
    }

    fn client_options(&self) -> ClientOptions {
        ClientOptions {
            addresses: self.cluster.addresses(),
            cluster_id: self.cluster.cluster_id,
            // A node that could not read it has not started either.
            secret: secret::read(&secret::path(&self.data_dir)).ok(),
            admin: true,
            // The client draws a number of its own, too.
            seed: crate::random::number().unwrap_or_default(),
            ..ClientOptions::default()
        }
    }

    /// Waits until every SQL port answers, and says so in a file.
    /// Nodes that die meanwhile are started again, unless `restart` is none.
    pub(crate) fn wait_until_serving(
        &mut self,
        patience: Duration,
        restart: Option<Duration>,
        signals: &mut Signals,
    ) -> anyhow::Result<()> {
        let options = self.client_options();
        let client = self.tokio.block_on(async { Client::start(options, clock::now) });
        let end = clock::now().plus(span(patience));
        // Nodes may die while the cluster comes up.
        while let Err(error) = self.tokio.block_on(client.ready(LOOK)) {
            if clock::now() > end {
                let why = self.why();
                self.kill_all();
                bail!("the cluster does not serve: {error}:\n{why}");
            }
            self.tend(restart, signals)?;
        }
        // From here on clients commit: what becomes of one node or of the directory ends nothing.
        self.serves = true;
        self.set_durability(&client);
        drop(client);
        self.wait_for_greetings(restart, signals)?;
        // What was asked for this start does not hold for later lives of nodes.
        self.partial = false;
        self.waiting = None;
        let _ = std::fs::remove_file(starting_file(&self.data_dir));
        // Where there is no room for it now it is written later.
        self.stay_known();
        Ok(())
    }

    /// The cluster serves: waits for the SQL ports of all its nodes, but not for ever.
    fn wait_for_greetings(
        &mut self,
        restart: Option<Duration>,
        signals: &mut Signals,
    ) -> anyhow::Result<()> {
        let end = clock::now().plus(span(OTHERS_PATIENCE));
        for node in self.cluster.nodes.clone() {
            let Some(address) = node.sql_address else { continue };
            while !self.greets(address) {
                self.tend(restart, signals)?;
                let id = node.node_id;
                let runs = self.children.contains_key(&id) || self.due.contains_key(&id);
                if !runs || clock::now() > end {
                    let what = if runs { "serve yet" } else { "run" };
                    say!("latsdb: node {id} does not {what}; the cluster serves without it");
                    break;
                }
            }
        }
        Ok(())
    }

    /// What nodes that run have said last, if they are no members yet.
    fn words(&self) -> BTreeMap<u16, String> {
        let said = |(node, child): (&u16, &Child)| {
            let file = words_file(&self.data_dir, *node);
            let written = std::fs::metadata(&file).ok()?.modified().ok()?;
            // Who waits says so again and again.
            let is_true = written.elapsed().is_ok_and(|ago| ago <= WORDS_LAST);
            let (pid, words) = last_words::read(&file)?;
            (is_true && pid == child.id()).then_some((*node, words))
        };
        self.children.iter().filter_map(said).collect()
    }

    fn states(&self) -> BTreeMap<u16, Process> {
        let state = |node: u16| match self.children.get(&node) {
            Some(child) => Process::Runs(child.id()),
            None if self.due.contains_key(&node) => Process::Due,
            None => Process::Ended,
        };
        self.cluster.nodes.iter().map(|n| (n.node_id, state(n.node_id))).collect()
    }

    /// What is known of each node while the cluster comes up.
    fn why(&self) -> String {
        let waiting = self.waiting.as_ref();
        waiting.map(|w| w.why(&self.states(), &self.words(), &self.data_dir)).unwrap_or_default()
    }

    /// While the cluster comes up: ends that if it cannot come about, and says why it takes long.
    fn explain(&mut self) -> anyhow::Result<()> {
        let (words, states, now) = (self.words(), self.states(), clock::now());
        let is_missing = matches!(ClusterFile::path(&self.data_dir).try_exists(), Ok(false));
        self.missing_since = if is_missing { self.missing_since.or(Some(now)) } else { None };
        let is_gone = self.missing_since.is_some_and(|at| now.since(at) >= span(MISSING));
        let serves = self.serves;
        let ended =
            |n: &u16| states.get(n) == Some(&Process::Ended) && !self.told_to_end.contains_key(n);
        let Some(waiting) = &mut self.waiting else { return Ok(()) };
        let nodes = self.cluster.nodes.iter();
        let data_nodes: Vec<u16> = nodes.filter(|n| n.data).map(|n| n.node_id).collect();
        let ended: Vec<u16> = data_nodes.iter().copied().filter(ended).collect();
        let gone = is_gone.then(|| {
            format!(
                "the directory {} is gone, or its cluster.json is: put it back, or start a new cluster",
                self.data_dir.display()
            )
        });
        let hopeless = || waiting.hopeless(&data_nodes, &ended, &words, (now, &self.data_dir));
        if let Some(why) = gone.or_else(hopeless).filter(|_| !serves) {
            self.kill_all();
            bail!(why);
        }
        if let Some(news) = waiting.news(now, &states, &words, &self.data_dir) {
            say!("{news}");
            let file = starting_file(&self.data_dir);
            let fresh = file.with_extension("new");
            let _ = std::fs::write(&fresh, &news).and_then(|()| std::fs::rename(&fresh, &file));
        }
        Ok(())
    }

    /// A cluster that was there already may have had another default.
    fn set_durability(&mut self, client: &Client) {
        let Some(to_disk) =
            self.to_disk.take().filter(|wanted| *wanted != client.commits_to_disk())
        else {
            return;
        };
        let change = Change::SetDurability { to_disk };
        let asked =
            async { tokio::time::timeout(DURABILITY_PATIENCE, client.change(change)).await };
        let what = match self.tokio.block_on(asked) {
            Ok(Ok(Ok(()))) => return,
            Ok(Ok(Err(error))) => format!("was refused ({})", error.message),
            Ok(Err(error)) => format!("may not have been set ({error})"),
            Err(_) => "may not have been set (nobody has answered in time)".to_string(),
        };
        let wanted = if to_disk { "disk" } else { "replicated" };
        say!(
            "latsdb: --durability {wanted} {what}; when the cluster is whole, run \
             `SET PERSIST durability = '{wanted}'`: once more does no harm"
        );
    }

    /// True if a MySQL server answers there; it is waited for a little.
    fn greets(&self, address: std::net::SocketAddr) -> bool {
        // A server that serves speaks first.
        let speaks = async {
            let stream = tokio::net::TcpStream::connect(address).await.ok()?;
            let mut byte = [0];
            stream.peek(&mut byte).await.ok().filter(|read| *read > 0)
        };
        self.tokio.block_on(async {
            let heard = tokio::time::timeout(Duration::from_millis(200), speaks).await;
            if matches!(heard, Ok(Some(_))) {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
            false
        })
    }

    /// While the cluster comes up: nodes that have died are started again, and a signal ends it.
    fn tend(&mut self, restart: Option<Duration>, signals: &mut Signals) -> anyhow::Result<()> {
        if self.tokio.block_on(signals.end_within(Duration::ZERO)) {
            stopping::stop(self, signals)?;
            bail!("it was told to stop before the cluster served");
        }
        self.start_wanted();
        self.note_deaths(restart);
        if self.children.is_empty() && self.due.is_empty() {
            let why = self.why();
            self.kill_all();
            bail!("all nodes that were started here have ended:\n{why}");
        }
        self.explain()?;
        self.start_due();
        Ok(())
    }

    /// Starts dead nodes again until a signal ends the cluster.
    pub(crate) fn supervise(
        mut self,
        restart: Option<Duration>,
        mut signals: Signals,
    ) -> anyhow::Result<ExitCode> {
        loop {
            if self.tokio.block_on(signals.end_within(Duration::from_millis(20))) {
                say!("latsdb: stopping the cluster");
                return stopping::stop(&mut self, &mut signals);
            }
            self.stay_known();
            self.start_wanted();
            self.note_deaths(restart);
            if restart.is_some() && !self.cluster.keeps {
                self.end_if_rows_are_gone()?;
            }
            if self.children.is_empty() && self.due.is_empty() {
                self.kill_all();
                if self.told_to_end.len() == self.cluster.nodes.len() {
                    say!("latsdb: all nodes were told to end, and have");
                    let all_safe = self.told_to_end.values().all(|is_safe| *is_safe);
                    return Ok(if all_safe { ExitCode::SUCCESS } else { ExitCode::FAILURE });
                }
                bail!("all nodes that were started here have died");
            }
            self.start_due();
        }
    }

    /// The directory may have been begun anew by a node (GONE-4): other commands are to find this process again.
    fn stay_known(&self) {
        let files = [pid_file, serving_file].map(|file| file(&self.data_dir));
        if files.iter().all(|file| file.exists()) {
            return;
        }
        // Somebody may have put another cluster's directory there.
        let found = ClusterFile::read(&self.data_dir);
        if found.is_ok_and(|found| found.cluster_id == self.cluster.cluster_id) {
            for file in files.iter().filter(|file| !file.exists()) {
                let _ = std::fs::write(file, std::process::id().to_string());
            }
        }
    }

    /// Plans to start nodes again whose processes have ended.
    fn note_deaths(&mut self, restart: Option<Duration>) {
        let pids: BTreeMap<u16, u32> = self.children.iter().map(|(n, c)| (*n, c.id())).collect();
        for (node_id, status) in self.dead() {
            let words = last_words::read(&words_file(&self.data_dir, node_id));
            let words = words.filter(|(pid, _)| pids.get(&node_id) == Some(pid));
            if let Some(waiting) = &mut self.waiting {
                let words = words.unwrap_or_default().1;
                waiting.note_end(node_id, status, &words, clock::now());
            }
            let ended = |known: i32| status == Some(known);
            let is_safe = ended(STATUS_ENDED as i32);
            if ended(STATUS_STOPPED as i32) {
                self.told_to_end.insert(node_id, true);
            } else if is_safe || ended(STATUS_NOT_DURABLE as i32) || ended(close::STATUS_IMPATIENT)
            {
                self.told_to_end.insert(node_id, is_safe);
            }
            match restart {
                _ if is_safe => {
                    say!(
                        "latsdb: node {node_id} was told to end; `latsdb start-node {node_id}` starts it again"
                    );
                }
                _ if status == Some(STATUS_STOPPED as i32) => {
                    say!(
                        "latsdb: node {node_id} was stopped; `latsdb start-node {node_id}` starts it again"
                    );
                }
                _ if self.told_to_end.contains_key(&node_id) => {
                    say!(
                        "latsdb: node {node_id} was told to end, and not all of its last commits are known to be on disk, see above; \
                         `latsdb start-node {node_id}` starts it again"
                    );
                }
                _ if status == Some(STATUS_WRONG_FILES as i32) => {
                    say!(
                        "latsdb: node {node_id} cannot use its files, see above; when that is mended, `latsdb start-node {node_id}` \
                         starts it again"
                    );
                }
                Some(delay) => {
                    let ends = self.waiting.as_ref().map_or(0, |w| w.ends(node_id));
                    let delay = if ends >= FEW_ENDS { delay.max(SLOW_RESTART) } else { delay };
                    say!("latsdb: node {node_id} has died; it starts again in {delay:?}");
                    self.due.insert(node_id, clock::now().plus(span(delay)));
                }
                // Somebody else may start another in its place.
                None => say!("latsdb: node {node_id} has died"),
            }
        }
    }

    /// Starts the nodes whose time has come.
    fn start_due(&mut self) {
        let now = clock::now();
        let due: Vec<u16> = self.due.extract_if(.., |_, at| *at <= now).map(|(id, _)| id).collect();
        for node_id in due {
            if let Err(error) = self.start(node_id, false) {
                say!("latsdb: {error:#}; it is tried again");
                self.due.insert(node_id, now.plus(span(Duration::from_secs(1))));
            }
        }
    }

    /// Starts the nodes that a person wants to have back (`latsdb start-node`), as soon as their former
    /// processes have ended. Whoever wants it sees by the file's disappearance that it was done.
    fn start_wanted(&mut self) {
        for node_id in self.cluster.nodes.iter().map(|n| n.node_id).collect::<Vec<u16>>() {
            let file = start_file(&self.data_dir, node_id);
            if self.children.contains_key(&node_id) || !file.exists() {
                continue;
            }
            self.due.remove(&node_id);
            self.waiting.iter_mut().for_each(|waiting| waiting.forget(node_id));
            if let Err(error) = self.start(node_id, false) {
                say!("latsdb: {error:#}; it is tried again");
                self.due.insert(node_id, clock::now().plus(span(Duration::from_secs(1))));
            }
            let _ = std::fs::remove_file(file);
        }
    }

    /// Nodes whose process has ended since the last look, and their exit status.
    fn dead(&mut self) -> Vec<(u16, Option<i32>)> {
        let ended = |child: &mut Child| child.try_wait().ok().flatten();
        let dead: Vec<(u16, Option<i32>)> = self
            .children
            .iter_mut()
            .filter_map(|(node, child)| ended(child).map(|status| (*node, status.code())))
            .collect();
        for (node, _) in &dead {
            self.children.remove(node);
        }
        dead
    }

    /// True if the process is a full replica, as far as it has said.
    fn is_full(&mut self, node_id: u16) -> bool {
        let Some(child) = self.children.get(&node_id) else { return false };
        if !self.started_again.contains(&node_id) {
            return true;
        }
        let said = std::fs::read_to_string(full_file(&self.data_dir, node_id)).unwrap_or_default();
        let full = said.trim() == child.id().to_string();
        if full {
            // A process that is full stays so: it need not be asked again.
            self.started_again.remove(&node_id);
        }
        full
    }

    /// The groups that have no full replica left among the processes started here, and whether these are all.
    fn lost_groups(&mut self) -> (Vec<Vec<NodeId>>, bool) {
        let groups = self.cluster.founding().groups();
        let count = groups.len();
        let dead = |group: &Vec<NodeId>, it: &mut Self| !group.iter().any(|n| it.is_full(n.get()));
        let lost: Vec<Vec<NodeId>> = groups.into_iter().filter(|g| dead(g, self)).collect();
        let all = lost.len() == count;
        (lost, all)
    }

    /// Rows live as long as one full replica of their group does. A replica may be full before it knows
    /// and says so, hence the grace. While one group lives it goes on (LOST-1).
    fn end_if_rows_are_gone(&mut self) -> anyhow::Result<()> {
        let (lost, all) = self.lost_groups();
        if lost.is_empty() {
            self.lost_since = None;
            return Ok(());
        }
        let now = clock::now();
        let since = *self.lost_since.get_or_insert(now);
        if now.since(since) < span(LOST_GRACE) {
            return Ok(());
        }
        if !all {
            self.warn_of_lost(&lost);
            return Ok(());
        }
        let why = format!(
            "all replicas of every node group that were started here have died (nodes {lost:?}). This cluster \
             keeps its rows in memory only (`--ephemeral`), so they are gone. `latsdb start` begins again with an empty cluster"
        );
        self.kill_all();
        let _ = std::fs::write(last_words_file(&self.data_dir), &why);
        bail!(why)
    }

    /// Says once of each group that it is lost.
    fn warn_of_lost(&mut self, lost: &[Vec<NodeId>]) {
        for group in lost {
            if self.told_lost.insert(group.clone()) {
                let nodes: Vec<String> = group.iter().map(ToString::to_string).collect();
                say!(
                    "latsdb: all nodes of a node group have died ({}): its rows are gone, for this cluster \
                     keeps them in memory only (`--ephemeral`). Rows of other groups are served; save them, and start anew",
                    nodes.join(", ")
                );
            }
        }
    }

    fn kill_all(&mut self) {
        // All at once, so that none of them notes that the others have died: it would be needed for the next start.
        for child in self.children.values_mut() {
            // It may have ended by itself.
            let _ = child.kill();
        }
        for child in self.children.values_mut() {
            let _ = child.wait();
        }
        self.children.clear();
        for file in [pid_file, serving_file, starting_file] {
            let _ = std::fs::remove_file(file(&self.data_dir));
        }
    }
}

/// The signals that end the cluster, heard from one moment on.
pub(crate) struct Signals {
    term: unix::Signal,
    int: unix::Signal,
    /// Taken and ignored: a closed terminal does not end the cluster.
    _hup: unix::Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        let of = |kind| unix::signal(kind);
        Ok(Self {
            term: of(unix::SignalKind::terminate())?,
            int: of(unix::SignalKind::interrupt())?,
            _hup: of(unix::SignalKind::hangup())?,
        })
    }

    /// True if one comes within `span`, or has come since the last look.
    async fn end_within(&mut self, span: Duration) -> bool {
        tokio::select! {
            _ = self.term.recv() => true,
            _ = self.int.recv() => true,
            () = tokio::time::sleep(span) => false,
        }
    }
}
