//! Who came before whom: a circle in that order is an anomaly.

use crate::{
    Outcome, Report, Transaction,
    versions::{Versions, name, reads_of_others},
};
use petgraph::{algo::tarjan_scc, graphmap::DiGraphMap};
use std::collections::{BTreeMap, BTreeSet, VecDeque, btree_map::Entry};

/// Why one transaction comes before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    /// Both appended to the list, the other one next.
    Overwrites(u64),
    /// The other has read what it appended.
    IsRead(u64),
    /// It has not read what the other appended.
    MissesNext(u64),
    /// Its client had heard of its end before the other began.
    Earlier,
}

impl Why {
    fn text(self) -> String {
        match self {
            Self::Overwrites(list) => format!("appended to list {list} before"),
            Self::IsRead(list) => format!("was seen in list {list} by"),
            Self::MissesNext(list) => format!("did not see in list {list} what was appended by"),
            Self::Earlier => "had ended before the begin of".to_string(),
        }
    }
}

type Graph = DiGraphMap<usize, Why>;

/// Circles that are shown; there may be many more.
const SHOWN_MAX: usize = 5;

/// Looks for circles among these transactions, by what they did to one list or to all.
pub(crate) fn look_for_circles(
    history: &[Transaction],
    versions: &Versions,
    among: &[usize],
    list: Option<u64>,
    report: &mut Report,
) {
    let mut graph = Graph::new();
    let members: BTreeSet<usize> = among.iter().copied().collect();
    for at in &members {
        graph.add_node(*at);
    }
    add_data_orders(history, versions, &members, list, &mut graph);
    add_time_orders(history, among, &mut graph);
    report.orders += graph.edge_count();
    let circles = tarjan_scc(&graph).into_iter().filter(|part| part.len() > 1);
    for part in circles.take(SHOWN_MAX) {
        let circle = shortest_circle(&graph, &part);
        let steps: Vec<String> = circle
            .windows(2)
            .map(|two| {
                let why = graph.edge_weight(two[0], two[1]).map_or(String::new(), |w| w.text());
                format!("{} {why}", name(history, two[0]))
            })
            .collect();
        let last = circle.last().map(|at| format!("T{at}")).unwrap_or_default();
        let what = list.map_or("transactions".to_string(), |l| format!("list {l}"));
        report.anomalies.push(format!("{what}: a circle: {}, {last}", steps.join(", ")));
    }
}

fn add_data_orders(
    history: &[Transaction],
    versions: &Versions,
    members: &BTreeSet<usize>,
    only: Option<u64>,
    graph: &mut Graph,
) {
    let mut add = |from: usize, to: usize, why: Why| {
        if from != to && members.contains(&from) && members.contains(&to) {
            graph.add_edge(from, to, why);
        }
    };
    let meant = |list: &u64| only.is_none_or(|wanted| wanted == *list);
    for (list, known) in versions.lists.iter().filter(|(list, _)| meant(list)) {
        let writer = |element: &u64| versions.writers.get(&(*list, *element)).copied();
        let writers: Vec<usize> = known.order.iter().filter_map(writer).collect();
        for two in writers.windows(2) {
            add(two[0], two[1], Why::Overwrites(*list));
        }
        for late in known.unread.iter().filter_map(writer) {
            writers.last().into_iter().for_each(|last| add(*last, late, Why::Overwrites(*list)));
        }
    }
    let mut nowhere = Report::default();
    for at in members {
        for (list, elements) in reads_of_others(history, *at, &mut nowhere) {
            if !meant(&list) {
                continue;
            }
            let writer = |element: &u64| versions.writers.get(&(list, *element)).copied();
            if let Some(seen) = elements.last().and_then(writer) {
                add(seen, *at, Why::IsRead(list));
            }
            let Some(known) = versions.lists.get(&list) else { continue };
            match known.order.get(elements.len()).and_then(writer) {
                Some(next) => add(*at, next, Why::MissesNext(list)),
                None => {
                    let unread = known.unread.iter().filter_map(writer);
                    unread.for_each(|late| add(*at, late, Why::MissesNext(list)));
                }
            }
        }
    }
}

/// Each transaction comes after those that had ended before it began; it is enough to name the last of
/// them, which stand for those before.
fn add_time_orders(history: &[Transaction], among: &[usize], graph: &mut Graph) {
    let mut moments: Vec<(u64, bool, usize)> = Vec::new();
    for at in among {
        let t = &history[*at];
        moments.push((t.begun_ns, true, *at));
        if t.outcome == Outcome::Committed {
            moments.push((t.ended_ns, false, *at));
        }
    }
    // At the same moment, those who begin come first: nothing is known of their order.
    moments.sort_by_key(|(when, begins, at)| (*when, !*begins, *at));
    let mut last: BTreeSet<usize> = BTreeSet::new();
    for (_, begins, at) in moments {
        if begins {
            for earlier in &last {
                if !graph.contains_edge(*earlier, at) {
                    graph.add_edge(*earlier, at, Why::Earlier);
                }
            }
        } else {
            last.retain(|earlier| history[*earlier].ended_ns >= history[at].begun_ns);
            last.insert(at);
        }
    }
}

/// A shortest way from the first of these back to itself; all of them reach each other.
fn shortest_circle(graph: &Graph, part: &[usize]) -> Vec<usize> {
    let inside: BTreeSet<usize> = part.iter().copied().collect();
    let mut best: Vec<usize> = Vec::new();
    for start in part.iter().take(20) {
        let mut from: BTreeMap<usize, usize> = BTreeMap::new();
        let mut queue = VecDeque::from([*start]);
        while let Some(at) = queue.pop_front() {
            if at == *start && !from.is_empty() && from.contains_key(start) {
                break;
            }
            for next in graph.neighbors(at).filter(|n| inside.contains(n)) {
                if let Entry::Vacant(place) = from.entry(next) {
                    place.insert(at);
                    queue.push_back(next);
                }
            }
        }
        let mut circle = vec![*start];
        let mut at = *start;
        while let Some(before) = from.get(&at) {
            circle.push(*before);
            at = *before;
            if at == *start {
                break;
            }
        }
        circle.reverse();
        if best.is_empty() || circle.len() < best.len() {
            best = circle;
        }
    }
    best
}
