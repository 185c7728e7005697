//! The cluster that the gauge hits, as the gauge sees it. Who starts clusters implements it.

use crate::Place;

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
    /// It is not heard, and is a member still.
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

    /// True if every node serves.
    pub fn is_whole(&self) -> bool {
        self.nodes.iter().all(|n| n.alive && !n.silent && (n.in_sync || !n.data))
    }
}

/// A cluster that runs for the gauge alone.
pub trait Scene {
    /// How the load reaches it.
    fn place(&self) -> Place;

    /// Reads a status record of a node.
    fn read(&self, status: &[u8]) -> Option<Seen>;

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

    /// What the nodes have logged by now.
    fn log(&self) -> String;

    /// Where that is, for a person.
    fn log_path(&self) -> String;

    /// The wall clock that nodes log by, in us since 1970.
    fn wall_us(&self) -> i64;

    /// Ends the cluster. Its log stays if `keeps_log`.
    fn end(&mut self, keeps_log: bool);
}
