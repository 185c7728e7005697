//! The cluster that the gauge hits, as the gauge sees it. Who starts clusters implements it.

use crate::Place;
use anyhow::Context;
use std::{
    fs::File,
    io::{Read, Seek, SeekFrom},
    path::PathBuf,
};

/// What is done to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blow {
    /// SIGKILL to its process.
    Kill,
    /// SIGSTOP to its process.
    Freeze,
    /// SIGCONT to its process.
    Thaw,
    /// Nothing reaches its machine any more, and nothing comes from there.
    Cut,
    /// The machine can be reached again.
    Heal,
}

/// A node, as another one knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeSeen {
    /// Which one.
    pub node: u16,
    /// Its newest life in the view.
    pub life: u32,
    /// That life is a member.
    pub alive: bool,
    /// It holds rows.
    pub data: bool,
    /// It is a full replica.
    pub in_sync: bool,
    /// The node that says so has not heard it for longer than a removal takes, where it can be removed.
    pub silent: bool,
}

/// What a node says of its cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The number of its view.
    pub view: u64,
    /// All members.
    pub nodes: Vec<NodeSeen>,
}

impl Seen {
    /// What it says of a node.
    pub fn node(&self, node: u16) -> Option<&NodeSeen> {
        self.nodes.iter().find(|seen| seen.node == node)
    }

    /// True if this life is a member.
    pub fn is_alive(&self, node: u16, life: u32) -> bool {
        self.node(node).is_some_and(|seen| seen.alive && seen.life == life)
    }

    /// True if every node is a member that is heard, and so many data nodes are full replicas: a list that lacks a node is not whole.
    pub fn is_whole(&self, data_nodes: u16) -> bool {
        let serves = |n: &NodeSeen| n.alive && !n.silent && (n.in_sync || !n.data);
        let full = self.nodes.iter().filter(|n| n.data && n.in_sync).count();
        full == usize::from(data_nodes) && self.nodes.iter().all(serves)
    }

    /// The lives of its data nodes.
    pub(super) fn lives(&self) -> Vec<(u16, u32)> {
        let data = self.nodes.iter().filter(|n| n.data && n.alive);
        data.map(|n| (n.node, n.life)).collect()
    }
}

/// What of a cluster never changes.
#[derive(Clone, Debug)]
pub struct Ground {
    /// How the load reaches it.
    pub place: Place,
    /// How many nodes hold rows.
    pub data_nodes: u16,
    /// Reads a status record of a node.
    pub read: fn(&[u8]) -> Option<Seen>,
    /// What the nodes log.
    pub log: PathBuf,
    /// The wall clock that they log by, in us since 1970.
    pub wall_us: fn() -> i64,
}

impl Ground {
    /// How long the log is by now.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn log_length(&self) -> anyhow::Result<u64> {
        let found = std::fs::metadata(&self.log);
        Ok(found.with_context(|| format!("cannot read {}", self.log.display()))?.len())
    }

    /// What the log has from one place on.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn log_from(&self, place: u64) -> anyhow::Result<String> {
        let read = || {
            let (mut file, mut bytes) = (File::open(&self.log)?, Vec::new());
            file.seek(SeekFrom::Start(place))?;
            file.read_to_end(&mut bytes)?;
            std::io::Result::Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        read().with_context(|| format!("cannot read {}", self.log.display()))
    }
}

/// A cluster that runs for the gauge alone.
pub trait Scene {
    /// What of it never changes.
    fn ground(&self) -> &Ground;

    /// Finds a node's process, so that what is done to it next takes no time.
    ///
    /// # Errors
    /// It has none.
    fn aim(&mut self, node: u16) -> anyhow::Result<()>;

    /// Does something to the node that was aimed at.
    ///
    /// # Errors
    /// It cannot be done here.
    fn strike(&mut self, node: u16, blow: Blow) -> anyhow::Result<()>;

    /// Starts a node again whose process has ended or is about to; returns when it runs.
    ///
    /// # Errors
    /// It cannot be started.
    fn start_node(&mut self, node: u16) -> anyhow::Result<()>;

    /// Ends the cluster, and removes its files. Its log stays if `keeps_log`.
    fn end(&mut self, keeps_log: bool);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_all_data_nodes_make_a_whole() {
        let node = |node: u16, data: bool| NodeSeen {
            node,
            life: 1,
            alive: true,
            data,
            in_sync: data,
            silent: false,
        };
        let is_whole = |nodes: &[NodeSeen]| Seen { view: 1, nodes: nodes.to_vec() }.is_whole(2);
        let (one, two, witness) = (node(1, true), node(2, true), node(3, false));
        assert!(is_whole(&[one, two, witness]) && is_whole(&[one, two]));
        assert!(!is_whole(&[]) && !is_whole(&[one, witness]), "a node is missing");
        assert!(!is_whole(&[one, NodeSeen { in_sync: false, ..two }, witness]));
        assert!(!is_whole(&[one, NodeSeen { silent: true, ..two }, witness]));
        assert!(!is_whole(&[one, two, NodeSeen { alive: false, ..witness }]));
        let seen = Seen { view: 1, nodes: vec![one, NodeSeen { alive: false, ..two }, witness] };
        assert_eq!(seen.lives(), [(1, 1)]);
    }
}
