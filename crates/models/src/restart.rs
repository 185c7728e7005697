//! Model B: what is left when processes die and the cluster restarts, or when its survivors form the group anew.
//!
//! Two node groups of two nodes; transactions of one group or both, which carry their decision; epochs that become complete; seals in logs.
//! The rules are DURABLE-*, RESTART-1 to RESTART-3, REFORM-1, FENCE-1 and EPOCH-4, with of the design.
//!
//! Left out:
//! - Votes, leases and terms are model A's: a view is agreed on in one step, by those who are not cut off.
//! - A group's replicas hold a part in one step; take-over after a death therefore only finds parts that all living replicas have.
//! - A log has what its last seal says and nothing else; torn records, checkpoints, segments and archives are the simulator's.
//! - A restart takes one step: no death inside it. Who comes late is cut off first, and is waited for.
//! - Who dies is certified, and its disk is there at once. A client is told as soon as its transaction is decided.
//! - A run ends with its restart. A second one needs what the model lacks: restarts and commands in seals (RESTART-3, RESTART-6),
//!   epochs above all earlier ones (RESTART-10), and survivors that end (REFORM-6).
//! - Directories that are copied or old are model C's; persons' words, sequences, indexes and the catalog are left out.

mod rules;
mod scenarios;
mod words;

pub use rules::Action;
pub use scenarios::{SCENARIOS, Scenario, planted_runs};

use crate::check::always;
use stateright::{Model, Property};

/// A set of nodes, groups or transactions: bit `n` is number `n`.
pub type Set = u8;

/// Nodes 0 and 1 are group 0; 2 and 3 are group 1.
pub const NODES: usize = 4;

/// A mistake that somebody might make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// The restart epoch also holds when every group has a living full replica.
    EpochForLivingGroups,
    /// A change is logged with the epoch of its own part.
    EpochOfOnePart,
    /// A node that is being filled notes that an epoch is complete, and seals it.
    SealOfOverheardEpoch,
    /// A view without a node that lives is not on disk when it is used (FENCE-1 is off).
    UnfencedView,
    /// A damaged log is trusted (RESTART-2).
    TrustDamagedLog,
}

impl Planted {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::EpochForLivingGroups,
        Self::EpochOfOnePart,
        Self::SealOfOverheardEpoch,
        Self::UnfencedView,
        Self::TrustDamagedLog,
    ];

    /// As a person writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::EpochForLivingGroups => "epoch-for-living-groups",
            Self::EpochOfOnePart => "epoch-of-one-part",
            Self::SealOfOverheardEpoch => "seal-of-overheard-epoch",
            Self::UnfencedView => "unfenced-view",
            Self::TrustDamagedLog => "trust-damaged-log",
        }
    }
}

/// What a node does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Being {
    /// It runs.
    Alive,
    /// It has ended; its next process waits with its disk.
    Waits,
}

/// A node: its memory and its disk.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    /// Does it run?
    pub being: Being,
    /// Transactions whose part it has in memory.
    pub memory: Set,
    /// The view that it uses.
    pub view: u8,
    /// The newest epoch that it knows to be complete.
    pub complete: u8,
    /// What its log has.
    pub log: Set,
    /// The newest epoch that it has sealed.
    pub sealed: u8,
    /// The view that its disk knows.
    pub kept: u8,
    /// Its log has lost what it had.
    pub is_damaged: bool,
}

/// A transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Transaction {
    /// The epoch of each group's part; 0: it is not held there.
    pub epochs: [u8; 2],
    /// Its client was told that it is committed.
    pub is_acknowledged: bool,
}

/// Who has which rows, as agreed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct View {
    /// Full replicas.
    pub full: Set,
    /// Who is being filled.
    pub filled: Set,
    /// Transactions that a restart has made void.
    pub void: Set,
}

/// The cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// The nodes.
    pub nodes: Vec<Node>,
    /// The transactions.
    pub transactions: Vec<Transaction>,
    /// All views that were agreed on.
    pub views: Vec<View>,
    /// The epoch.
    pub epoch: u8,
    /// The newest complete one.
    pub complete: u8,
    /// The newest one that was called durable.
    pub durable: u8,
    /// A node that the others do not reach.
    pub cut: Option<u8>,
    /// Deaths that may happen yet.
    pub deaths: u8,
    /// Restarts and new groups that may come yet.
    pub restarts: u8,
    /// Cuts, damages and nodes that join that may come yet.
    pub events: [u8; 3],
    /// What did not hold, as bits of `broken`.
    pub broken: u8,
}

/// What a state may say that does not hold.
pub mod broken {
    /// An acknowledged transaction is gone, though each group had a living full replica.
    pub const ACKNOWLEDGED: u8 = 1;
    /// A durable one is gone.
    pub const DURABLE: u8 = 2;
    /// A part of a transaction is there, and another is not.
    pub const HALF: u8 = 4;
    /// What is there is not all up to one epoch.
    pub const EPOCH: u8 = 8;
}

/// Model B with its bounds.
#[derive(Clone, Debug)]
pub struct Restarts {
    /// What may happen.
    pub scenario: Scenario,
    /// A mistake in the rules.
    pub planted: Option<Planted>,
}

impl Restarts {
    pub(crate) fn errs(&self, planted: Planted) -> bool {
        self.planted == Some(planted)
    }
}

impl Model for Restarts {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let node = Node {
            being: Being::Alive,
            memory: 0,
            view: 0,
            complete: 0,
            log: 0,
            sealed: 0,
            kept: 0,
            is_damaged: false,
        };
        vec![State {
            nodes: vec![node; NODES],
            transactions: vec![Transaction::default(); self.scenario.transactions.len()],
            views: vec![View { full: 0b1111, filled: 0, void: 0 }],
            epoch: 1,
            complete: 0,
            durable: 0,
            cut: None,
            deaths: self.scenario.deaths,
            restarts: self.scenario.restarts,
            events: self.scenario.events,
            broken: 0,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        self.enabled(state, actions);
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        Some(self.after(state, action))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            always(
                "nothing acknowledged is lost while each group has a living full replica",
                |_, s: &State| s.broken & broken::ACKNOWLEDGED == 0,
            ),
            always("nothing durable is lost", |_, s: &State| s.broken & broken::DURABLE == 0),
            always("every transaction is there as a whole or not at all", |_, s: &State| {
                s.broken & broken::HALF == 0
            }),
            always("a restart gives all of its epoch, and nothing later", |_, s: &State| {
                s.broken & broken::EPOCH == 0
            }),
        ]
    }
}
