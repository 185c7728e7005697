//! Why `latsdb start` waits: what each node has said or how it has ended, what can never come about, and which commands help.

use lats_base::{Duration, Instant};
use lats_node::control::WAITS_FOR_NODE;
use lats_signals::control::STATUS_WRONG_FILES;
use std::{collections::BTreeMap, path::Path};

/// Who has waited for so long wants to know why,
const PATIENCE: Duration = Duration::from_millis(5_000);
/// and again when that has changed, but not more often than this.
const SAID_EVERY: Duration = Duration::from_millis(5_000);
/// The status of a process that has found something wrong before it was a node: `main` says it in words.
const STATUS_REFUSED: i32 = 1;
/// A node that has ended so often with the same words, for so long, ends so the next time, too.
const SAME_ENDS: u32 = 3;
const SAME_FOR: Duration = Duration::from_millis(30_000);

/// How the process of a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Process {
    /// It runs, with this id.
    Runs(u32),
    /// It is started again soon.
    Due,
    /// It is not started again.
    Ended,
}

/// What is known of nodes while a cluster comes up.
pub(crate) struct Waiting {
    since: Instant,
    said_at: Option<Instant>,
    said: String,
    ends: BTreeMap<u16, End>,
}

/// How a node's process has ended last.
struct End {
    status: Option<i32>,
    words: String,
    times: u32,
    first_at: Instant,
}

impl Waiting {
    pub(crate) fn new(now: Instant) -> Self {
        Self { since: now, said_at: None, said: String::new(), ends: BTreeMap::new() }
    }

    /// The process of a node has ended, and has said this last.
    pub(crate) fn note_end(&mut self, node: u16, status: Option<i32>, words: &str, now: Instant) {
        let same = |end: &&End| end.status == status && end.words == words;
        let former = self.ends.get(&node).filter(same).map(|end| (end.times, end.first_at));
        let (times, first_at) = former.unwrap_or((0, now));
        let end = End { status, words: words.to_string(), times: times + 1, first_at };
        self.ends.insert(node, end);
    }

    /// How often it has ended in the same way.
    pub(crate) fn ends(&self, node: u16) -> u32 {
        self.ends.get(&node).map_or(0, |end| end.times)
    }

    /// A person wants the node to be tried again.
    pub(crate) fn forget(&mut self, node: u16) {
        self.ends.remove(&node);
    }

    /// True if the node will end again as it has ended, until somebody mends something.
    fn cannot_start(&self, node: u16, now: Instant) -> bool {
        self.ends.get(&node).is_some_and(|end| {
            let has_wrong_files = end.status == Some(STATUS_WRONG_FILES as i32);
            let is_refused = end.status == Some(STATUS_REFUSED);
            let lasts = end.times >= SAME_ENDS && now.since(end.first_at) >= SAME_FOR;
            has_wrong_files || is_refused && lasts
        })
    }

    /// Why the cluster cannot ever serve as it is: no data node can start, or those that run wait for one that cannot. `ended`: they are not
    /// started again; `words`: what running nodes have said last.
    pub(crate) fn hopeless(
        &self,
        data_nodes: &[u16],
        ended: &[u16],
        words: &BTreeMap<u16, String>,
        (now, data_dir): (Instant, &Path),
    ) -> Option<String> {
        let cannot = |n: &u16| ended.contains(n) || self.cannot_start(*n, now);
        let cannot: Vec<u16> = data_nodes.iter().copied().filter(cannot).collect();
        let waits = words.values().any(|text| cannot.iter().any(|node| waits_for(text, *node)));
        if cannot.is_empty() || !(waits || cannot.len() == data_nodes.len()) {
            return None;
        }
        let ends: Vec<String> = cannot.iter().map(|node| self.end_of(*node)).collect();
        let others = if cannot.len() < data_nodes.len() {
            ". If it cannot be mended, and other nodes have its rows: latsdb start --partial, with the same options"
        } else {
            ""
        };
        Some(format!(
            "the cluster in {} cannot start: {}{others}",
            data_dir.display(),
            ends.join("; ")
        ))
    }

    fn end_of(&self, node: u16) -> String {
        let Some(end) = self.ends.get(&node) else { return format!("node {node} does not run") };
        let status = match end.status {
            Some(status) => format!("exit status {status}"),
            None => "killed by a signal".to_string(),
        };
        let words = if end.words.is_empty() { "it has said nothing" } else { &end.words };
        format!("node {node} has ended ({status}): {words}")
    }

    /// What is to be said now, if anything is.
    pub(crate) fn news(
        &mut self,
        now: Instant,
        nodes: &BTreeMap<u16, Process>,
        words: &BTreeMap<u16, String>,
        data_dir: &Path,
    ) -> Option<String> {
        let rested = self.said_at.is_none_or(|at| now.since(at) >= SAID_EVERY);
        if now.since(self.since) < PATIENCE || !rested {
            return None;
        }
        let why = self.why(nodes, words, data_dir);
        if why == self.said {
            return None;
        }
        (self.said, self.said_at) = (why.clone(), Some(now));
        let seconds = now.since(self.since).as_millis() / 1_000;
        Some(format!("latsdb: the cluster does not serve yet, after {seconds} s:\n{why}"))
    }

    /// What is known of each node, and which commands help.
    pub(crate) fn why(
        &self,
        nodes: &BTreeMap<u16, Process>,
        words: &BTreeMap<u16, String>,
        data_dir: &Path,
    ) -> String {
        let mut lines = Vec::new();
        for (node, process) in nodes {
            let said = words.get(node).map(String::as_str);
            lines.push(match process {
                Process::Runs(pid) => match said {
                    Some(said) => format!("node {node} (process {pid}) says: {said}"),
                    None => format!(
                        "node {node} (process {pid}) runs: it reads its files, or waits for the others"
                    ),
                },
                Process::Due => format!("{}; it is started again", self.end_of(*node)),
                Process::Ended => format!(
                    "{}; when that is mended: latsdb start-node {node} --data-dir {}",
                    self.end_of(*node),
                    data_dir.display()
                ),
            });
        }
        let place = data_dir.display();
        if words.values().any(|text| text.starts_with(WAITS_FOR_NODE)) {
            lines.push(format!(
                "to start without the missing disks: latsdb stop --data-dir {place}, then start with --partial"
            ));
        }
        lines.push(format!("to give up: latsdb stop --data-dir {place}"));
        lines.iter().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
    }
}

/// True if a node has said that it waits for another.
fn waits_for(words: &str, node: u16) -> bool {
    let Some(rest) = words.strip_prefix(WAITS_FOR_NODE) else { return false };
    let list = rest.split(" is there").next().unwrap_or_default();
    list.split(", ").any(|number| number.parse() == Ok(node))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRONG_FILES: Option<i32> = Some(STATUS_WRONG_FILES as i32);

    fn at(ms: u64) -> Instant {
        Instant::ZERO.plus(Duration::from_millis(ms))
    }

    #[test]
    fn after_five_seconds_it_is_said_once_why_the_cluster_does_not_serve() {
        let mut waiting = Waiting::new(at(0));
        let nodes = BTreeMap::from([(1, Process::Runs(77)), (2, Process::Due)]);
        let mut words = BTreeMap::from([(1, format!("{WAITS_FOR_NODE}2 is there with its disk"))]);
        waiting.note_end(2, Some(1), "cannot listen on 127.0.0.1:4307", at(0));
        let place = Path::new("/data");
        assert_eq!(waiting.news(at(4_999), &nodes, &words, place), None);
        let text = waiting.news(at(5_000), &nodes, &words, place).unwrap();
        for part in [
            "node 1 (process 77) says: the cluster starts",
            "node 2 has ended (exit status 1): cannot listen",
            "--partial",
            "latsdb stop --data-dir /data",
        ] {
            assert!(text.contains(part), "{text}");
        }
        assert_eq!(waiting.news(at(20_000), &nodes, &words, place), None, "nothing has changed");
        words.clear();
        assert!(
            waiting.news(at(20_000), &nodes, &words, place).unwrap().contains("reads its files")
        );
        words.insert(1, "x".to_string());
        assert_eq!(waiting.news(at(24_999), &nodes, &words, place), None, "not that often");
        assert!(waiting.news(at(25_000), &nodes, &words, place).unwrap().contains("after 25 s"));
    }

    #[test]
    fn what_cannot_come_about_is_known() {
        let mut waiting = Waiting::new(at(0));
        let (place, nodes) = (Path::new("/data"), [1, 2]);
        let mut words = BTreeMap::from([(2, format!("{WAITS_FOR_NODE}11, 3 is there with"))]);
        waiting.note_end(1, WRONG_FILES, "a newer version has written it", at(0));
        let why = |it: &Waiting, ended: &[u16], words: &BTreeMap<u16, String>, ms| {
            it.hopeless(&nodes, ended, words, (at(ms), place)).unwrap_or_default()
        };
        assert_eq!(why(&waiting, &[], &words, 0), "", "node 2 may do without it");
        words.insert(2, format!("{WAITS_FOR_NODE}3, 1 is there with its disk"));
        assert!(why(&waiting, &[], &words, 0).contains("a newer version"));
        words.clear();
        for ms in [0, 10, 29_999] {
            waiting.note_end(2, Some(1), "no directory", at(ms));
            assert_eq!(why(&waiting, &[], &words, ms), "", "that may pass");
        }
        assert!(why(&waiting, &[], &words, 30_000).contains("no directory"));
        waiting.forget(2);
        assert_eq!(why(&waiting, &[], &words, 40_000), "");
        waiting.note_end(2, Some(3), "removed", at(0));
        waiting.note_end(2, Some(3), "removed", at(1));
        waiting.note_end(2, Some(3), "removed", at(2));
        assert_eq!(why(&waiting, &[], &words, 90_000), "", "that passes");
        assert!(why(&waiting, &[2], &words, 0).contains("removed"), "nobody starts it again");
    }
}
