//! How many more nodes may fail, and what a cluster without a leader waits for: what `latsdb status` says of the future.

use crate::{say::say, status::decoded};
use lats_base::{Incarnation, NodeId};
use lats_client::net::Client;
use lats_node::control::Status;
use serde_json::{Value, json};
use std::{collections::BTreeSet, time::Duration};

/// How long a node may take to say what it knows.
const PATIENCE: Duration = Duration::from_millis(500);
/// A voter that was not heard for so long does not count, in ms; nor for less than two leases.
const UNHEARD_MIN_MS: u64 = 1_000;

/// What may fail now, so that the others go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MayFail {
    voters: usize,
    voters_heard: usize,
    voters_needed: usize,
    /// Of the node group that has the fewest.
    full_replicas: usize,
    has_leader: bool,
}

impl MayFail {
    pub(crate) fn of(status: &Status) -> Self {
        let view = &status.view;
        let voters = view.members.iter().filter(|m| m.alive);
        let heard = voters.clone().filter(|m| is_heard(status, m.node) == Some(true));
        let voters = voters.count();
        let full = |group: &lats_catalog::Group| {
            let replicas = group.replicas.iter().filter(|r| r.in_sync);
            replicas.filter(|r| is_heard(status, r.node) == Some(true)).count()
        };
        let has_rows = view.groups.iter().filter(|g| !g.is_lost());
        Self {
            voters,
            voters_heard: heard.count(),
            voters_needed: voters / 2 + 1,
            full_replicas: has_rows.map(full).min().unwrap_or_default(),
            has_leader: status.leader.is_some(),
        }
    }

    /// Machines that fall silent: nobody can tell a dead one from one that is cut off, so a majority of the voters must be left.
    fn machines(&self) -> usize {
        let spare = self.voters_heard.saturating_sub(self.voters_needed);
        if self.has_leader { spare.min(self.processes()) } else { 0 }
    }

    /// Processes that end: their guardians say so.
    fn processes(&self) -> usize {
        if self.has_leader { self.full_replicas.saturating_sub(1) } else { 0 }
    }

    pub(crate) fn as_json(&self) -> Value {
        json!({
            "machines": self.machines(),
            "processes": self.processes(),
            "voters": self.voters,
            "voters_heard": self.voters_heard,
            "voters_needed": self.voters_needed,
            "full_replicas": self.full_replicas,
        })
    }

    pub(crate) fn words(&self) -> String {
        let Self { voters, voters_heard, voters_needed, full_replicas, .. } = *self;
        format!(
            "may fail  {} more machines ({voters_heard} of {voters} voters are heard, {voters_needed} are needed), {} more processes \
             ({full_replicas} full replicas of each node group)",
            self.machines(),
            self.processes(),
        )
    }
}

/// True if the node was heard lately; none if the node that answers does not ask it.
pub(crate) fn is_heard(status: &Status, node: NodeId) -> Option<bool> {
    let limit = UNHEARD_MIN_MS.max(2 * status.view.config.lease_ms);
    let sign = status.life_signs.iter().find(|sign| sign.node == node)?;
    sign.heard_ms.map(|ms| ms <= limit)
}

/// What is known of the cluster.
pub(crate) struct Outlook {
    /// The status as the leader knows it, for only that one asks all voters; without one, as the first one has said.
    pub(crate) status: Status,
    /// Without a leader: what all data nodes have said that can be reached.
    pub(crate) without_leader: Vec<Status>,
}

impl Outlook {
    /// Asks on: a node has said this.
    pub(crate) async fn of(client: &Client, first: Status) -> Self {
        if first.leader.is_some() {
            let status = of_leader(client, first).await;
            return Self { status, without_leader: Vec::new() };
        }
        let all = of_all(client, &first).await;
        match all.iter().find(|status| status.leader.is_some()) {
            Some(other) => {
                let status = of_leader(client, other.clone()).await;
                Self { status, without_leader: Vec::new() }
            }
            None => Self { status: first, without_leader: all },
        }
    }

    /// Without a leader: who waits, and for what.
    pub(crate) fn waits_json(&self) -> Value {
        let waiting = self.without_leader.iter().filter(|status| !status.waits_for.is_empty());
        let waits = waiting.map(|s| (s.node.to_string(), Value::from(s.waits_for.clone())));
        Value::Object(waits.collect())
    }

    /// Without a leader: the life of this node that somebody waits for.
    pub(crate) fn missed_life(&self, node: NodeId) -> Option<Incarnation> {
        let missed = self.without_leader.iter().flat_map(|status| &status.misses);
        missed.filter(|(of, _)| *of == node).map(|(_, life)| *life).max()
    }

    /// What nodes without a leader wait for, in a sentence.
    pub(crate) fn waits(&self) -> String {
        let waiting = self.without_leader.iter().filter(|status| !status.waits_for.is_empty());
        let waits = waiting.map(|s| format!("node {} waits for {}", s.node, s.waits_for));
        let waits: Vec<String> = waits.collect();
        if waits.is_empty() { "they look for one".to_string() } else { waits.join("; ") }
    }

    /// The same, for a person who has to do something.
    pub(crate) fn print_waits(&self) {
        if self.status.leader.is_some() {
            return;
        }
        say!("THERE IS NO LEADER: {}", self.waits());
        let missed = self.without_leader.iter().flat_map(|status| &status.misses);
        for node in missed.map(|(node, _)| *node).collect::<BTreeSet<NodeId>>() {
            say!(
                "node {node} may have gone on without those that wait. If it can be started again with its disk, do that: nothing is lost then. \
                 If it is gone for ever: latsdb declare-dead {node} --give-up-rows (what it has acknowledged alone is lost)"
            );
        }
    }
}

async fn of_leader(client: &Client, first: Status) -> Status {
    let Some(leader) = first.leader.filter(|leader| *leader != first.node) else { return first };
    status_of(client, leader).await.unwrap_or(first)
}

async fn status_of(client: &Client, node: NodeId) -> Option<Status> {
    let bytes = tokio::time::timeout(PATIENCE, client.status_of(node)).await.ok()?.ok()?;
    decoded(&bytes).ok()
}

async fn of_all(client: &Client, first: &Status) -> Vec<Status> {
    let mut all = vec![first.clone()];
    for member in first.view.data_nodes().filter(|m| m.node != first.node) {
        all.extend(status_of(client, member.node).await);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use lats_catalog::{ClusterConfig, Group, Member, Replica, Roles, View};
    use lats_node::control::LifeSign;

    /// Nodes 1 and 2 with rows, node 3 a witness; each was heard so many ms ago.
    fn status(heard_ms: [Option<u64>; 3]) -> Status {
        let member = |number: u16| Member {
            node: NodeId::new(number),
            incarnation: Incarnation::new(1),
            roles: Roles { data: number < 3, sql: true },
            alive: true,
            ..Member::default()
        };
        let replica = |number| Replica { node: NodeId::new(number), in_sync: true };
        let (replicas, primaries) = (vec![replica(1), replica(2)], vec![NodeId::new(1)]);
        let group = Group { replicas, primaries, ..Group::default() };
        let config = ClusterConfig { lease_ms: 300, ..ClusterConfig::default() };
        let members = (1..=3).map(member).collect();
        let signs = heard_ms.iter().zip(1..).map(|(heard_ms, node)| LifeSign {
            node: NodeId::new(node),
            heard_ms: *heard_ms,
            ..LifeSign::default()
        });
        Status {
            view: View { config, members, groups: vec![group], ..View::default() },
            leader: Some(NodeId::new(1)),
            node: NodeId::new(1),
            life_signs: signs.collect(),
            ..Status::default()
        }
    }

    fn may_fail(status: &Status) -> (usize, usize) {
        let may = MayFail::of(status);
        (may.machines(), may.processes())
    }

    #[test]
    fn each_voter_that_is_not_heard_is_one_machine_less() {
        assert_eq!(may_fail(&status([Some(0), Some(40), Some(90)])), (1, 1));
        assert_eq!(may_fail(&status([Some(0), Some(40), Some(5_000)])), (0, 1));
        assert_eq!(may_fail(&status([Some(0), Some(40), None])), (0, 1));
        assert_eq!(may_fail(&status([Some(0), Some(5_000), Some(90)])), (0, 0));
    }

    #[test]
    fn without_a_leader_nothing_may_fail() {
        let status = Status { leader: None, ..status([Some(0), Some(40), Some(90)]) };
        assert_eq!(may_fail(&status), (0, 0));
    }

    #[test]
    fn a_replica_that_is_filled_cannot_stand_in() {
        let mut status = status([Some(0), Some(40), Some(90)]);
        status.view.groups[0].replicas[1].in_sync = false;
        assert_eq!(may_fail(&status), (0, 0));
    }
}
