//! Watches who waits for whom: deadlocks must end in time, and victims must have been in one
//! (DEADLOCK-1, DEADLOCK-4).

use crate::{checkers, world::World};
use lats_base::{ClientId, Duration, Instant, TransactionId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Who waits for whom.
type Graph = BTreeMap<TransactionId, BTreeSet<TransactionId>>;

/// How often it looks: a deadlock stands longer than that before it can be found.
const LOOK_EVERY: Duration = Duration::from_millis(1);
/// How long a transaction may wait in a circle while all nodes and links are whole.
const BOUND: Duration = Duration::from_millis(60);
/// How long after a node or link was missing somebody may give way to a wait that is over.
const AFTERMATH: Duration = Duration::from_millis(500);
/// Circles that are remembered, for victims that hear of it late.
const REMEMBERED: usize = 4_096;

/// What it has seen.
#[derive(Debug, Default)]
pub struct Watch {
    looked_at: Instant,
    /// When a node or link was last missing.
    hindered_at: Instant,
    /// Who is in a circle, and since when, with nothing in the way of ending it.
    since: BTreeMap<TransactionId, Instant>,
    circles: VecDeque<Graph>,
    /// How long each transaction was in a circle, in us.
    pub lasted_us: Vec<u64>,
    /// Transactions that were told to give way.
    pub victims: u64,
}

impl Watch {
    /// Looks, if it is time to.
    pub fn look(&mut self, world: &World) -> Result<(), String> {
        let now = world.now;
        if now.since(self.looked_at) < LOOK_EVERY {
            return Ok(());
        }
        self.looked_at = now;
        let hindered = !world.is_whole();
        if hindered {
            self.hindered_at = now;
        }
        let mut graph = waits(world);
        keep_circles(&mut graph);
        let ended: Vec<TransactionId> =
            self.since.keys().filter(|id| !graph.contains_key(id)).copied().collect();
        for id in ended {
            if let Some(since) = self.since.remove(&id) {
                self.lasted_us.push(now.since(since).as_nanos() / 1_000);
            }
        }
        if graph.is_empty() {
            return Ok(());
        }
        for id in graph.keys() {
            let since = self.since.entry(*id).or_insert(now);
            if hindered {
                *since = now;
            }
            let lasted = now.since(*since);
            if lasted > BOUND {
                return Err(format!("{id:?} has waited in a circle for {lasted:?}: {graph:?}"));
            }
        }
        if self.circles.back() != Some(&graph) {
            self.circles.push_back(graph);
            if self.circles.len() > REMEMBERED {
                self.circles.pop_front();
            }
        }
        Ok(())
    }

    /// A client was told that its transaction gave way: the circle that the text names stood.
    pub fn check_victim(&mut self, text: &str) -> Result<(), String> {
        self.victims += 1;
        let named = named(text);
        let pairs = || named.iter().zip(named.iter().cycle().skip(1));
        let stood = |graph: &Graph| {
            let waits = |(a, b): (&TransactionId, &TransactionId)| {
                graph.get(a).is_some_and(|blockers| blockers.contains(b))
            };
            named.len() > 1 && pairs().all(waits)
        };
        // What a dead node's locks have to do with it, its coordinator may not know yet (DEADLOCK-4).
        let disturbed = self.looked_at.since(self.hindered_at) < AFTERMATH;
        if disturbed || self.circles.iter().rev().any(stood) {
            return Ok(());
        }
        Err(format!("a victim without a deadlock: {text}"))
    }
}

/// Who waits for whom now, at all nodes.
fn waits(world: &World) -> Graph {
    let mut graph = Graph::new();
    for node in world.nodes.keys() {
        for (waiter, blockers) in
            checkers::ldms(world, *node).iter().flat_map(|ldm| ldm.lock_waits())
        {
            graph.entry(waiter).or_default().extend(blockers);
        }
    }
    graph
}

/// Leaves who is in a circle (or between two).
fn keep_circles(graph: &mut Graph) {
    loop {
        let before: usize = graph.values().map(BTreeSet::len).sum::<usize>() + graph.len();
        let waiters: BTreeSet<TransactionId> = graph.keys().copied().collect();
        graph.values_mut().for_each(|blockers| blockers.retain(|b| waiters.contains(b)));
        graph.retain(|_, blockers| !blockers.is_empty());
        let blockers: BTreeSet<TransactionId> = graph.values().flatten().copied().collect();
        graph.retain(|waiter, _| blockers.contains(waiter));
        if graph.values().map(BTreeSet::len).sum::<usize>() + graph.len() == before {
            return;
        }
    }
}

/// The transactions that an error's text names, in its order.
fn named(text: &str) -> Vec<TransactionId> {
    let words = text.split("transaction ").skip(1);
    words
        .filter_map(|rest| {
            let end = rest.find(|c: char| !c.is_ascii_hexdigit() && c != '-').unwrap_or(rest.len());
            let (client, sequence) = rest[..end].split_once('-')?;
            Some(TransactionId {
                client: ClientId::new(u64::from_str_radix(client, 16).ok()?),
                sequence: sequence.parse().ok()?,
            })
        })
        .collect()
}
