//! Histories of transactions, and what is wrong with them.
//!
//! Clients append unique elements to lists and read whole lists. What they were told, and when, is a
//! history. From the lists that were read follows who wrote and read before whom; a circle in this order
//! is an anomaly. The method is that of Elle (K. Kingsbury, P. Alvaro: "Elle: Inferring Isolation
//! Anomalies from Experimental Observations", VLDB 2020), here for strict serializability of transactions
//! that lock what they touch, and for linearizability of single lists that are read without locks.
#![forbid(unsafe_code)]

mod graph;
mod versions;

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// What a transaction did to a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// It appended an element that nobody else ever appends.
    Append {
        /// The list.
        list: u64,
        /// The element.
        element: u64,
    },
    /// It read the whole list.
    Read {
        /// The list.
        list: u64,
        /// Its elements.
        elements: Vec<u64>,
    },
}

impl Action {
    fn list(&self) -> u64 {
        match self {
            Self::Append { list, .. } | Self::Read { list, .. } => *list,
        }
    }
}

/// What its client was told of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It is committed.
    Committed,
    /// It is rolled back.
    RolledBack,
    /// Nothing.
    Unknown,
}

/// A transaction as its client has seen it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transaction {
    /// Who.
    pub client: u64,
    /// When the client began it, in ns of a clock that all clients share.
    pub begun_ns: u64,
    /// When the client heard of its end. Means nothing if the outcome is unknown.
    pub ended_ns: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// It locked all that it read. (One that did not reads one list at one moment.)
    pub locks: bool,
    /// What it did, in its order.
    pub actions: Vec<Action>,
}

/// What a history shows.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// What is wrong, for a person. Empty: nothing.
    pub anomalies: Vec<String>,
    /// Transactions that count as committed.
    pub committed: usize,
    /// Reads that were checked.
    pub reads: usize,
    /// Orders between transactions that followed from them.
    pub orders: usize,
}

/// Looks for anomalies.
pub fn check(history: &[Transaction]) -> Report {
    let mut report = Report::default();
    let versions = versions::infer(history, &mut report);
    let known: Vec<usize> = (0..history.len()).filter(|at| versions.happened(*at)).collect();
    report.committed = known.len();
    let locked: Vec<usize> = known.iter().copied().filter(|at| history[*at].locks).collect();
    let lists: BTreeSet<u64> =
        history.iter().flat_map(|t| t.actions.iter().map(Action::list)).collect();
    graph::look_for_circles(history, &versions, &locked, None, &mut report);
    for list in lists {
        let touches = |at: &usize| history[*at].actions.iter().any(|a| a.list() == list);
        let about: Vec<usize> = known.iter().copied().filter(touches).collect();
        graph::look_for_circles(history, &versions, &about, Some(list), &mut report);
    }
    report
}

#[cfg(test)]
mod tests;
