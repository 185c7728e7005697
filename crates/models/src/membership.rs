//! Model A: who is in the cluster, who may answer, and who forms the group anew.
//!
//! Lives vote, agree on views, hold leases, die, are certified dead, and come back with disks.
//! Stage 1 is as the code is: VIEW-*, LEASE-*, DEATH-*, FENCE-1, REFORM-1 to REFORM-4 (`docs/protocols/membership.md`, `lives.md`, `restart.md`).
//! Stage 2 is the design that is not built: testaments, second votes, learners, and survivors that go on as a certified minority.
//!
//! What is exact: terms, votes, logs with entries that only some have, what is applied, installed and on disk, who knows of which end,
//! clocks of different rates.
//! What counts as acknowledged is a number: each acknowledgement is held by all data nodes of the view in which it was made.
//!
//! Left out:
//! - One node group; a group without a living full replica is model B.
//! - A message passes at once or not at all, except votes and confirmations in runs with `late`, which pass at any time, also after the end.
//! - The network is whole, or in two parts; no rings, bridges or one-way cuts.
//! - A leader exchanges leases with all whom it reaches at once; LEASE-1 (a lease counts from when it was asked for) makes later answers shorter.
//! - A gathering takes one step: no two at once, and no death inside one (simulator).
//! - Logs are short, terms few, and each fault happens as often as the scenario says.
//! - Times are steps between deadlines and half leases; a clock has one rate for all of a run.
//! - Catalogs, rows, transactions, epochs and unique indexes.
//! - Q-4's second way (a survivor's lease at the last certificate), words of persons (X), L-4's lengths from reports, L-7, L-8.

mod actions;
mod config;
mod events;
mod reform;
mod scenarios;
mod state;
mod words;

pub use actions::Action;
pub use config::{Command, Config, Entry};
pub use scenarios::{SCENARIOS, Scenario, planted_runs, scenario};
pub use state::{Being, Life, State};

use crate::check::always;
use stateright::{Model, Property};

/// A set of lives: bit `n` is life `n`.
pub type Set = u8;

/// Which rules hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// As the code is.
    Built,
    /// Testaments, second votes, learners, certified minorities.
    Testaments,
}

/// A mistake that somebody might make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// A certificate without a testament strikes a life out of what the survivors must be half of.
    BareCertificates,
    /// Half of the voters decide if they have the one with the smallest id.
    TieAsField,
    /// A disk that has come back gives its former life's vote towards a majority.
    DisksAsVotes,
    /// A vote is added in one step, and though a data node is silent.
    AddWithoutAnnouncing,
    /// The lease is compared with the clock before the row is read.
    CheckBeforeRead,
    /// A view without an uncertified life is used before it is on disk.
    UnfencedView,
    /// A new leader does not wait for what earlier leaders have granted.
    ForgetEarlierLeases,
    /// A refused connection counts as a certificate.
    RefusalAsProof,
    /// A shorter lease counts for waiting at once.
    ShorterAtOnce,
    /// A new guardian speaks of a process that it has not started.
    GuardianWithoutNonce,
    /// A group is formed anew although a data node is not accounted for.
    ReformWithoutAll,
}

impl Planted {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::BareCertificates,
        Self::TieAsField,
        Self::DisksAsVotes,
        Self::AddWithoutAnnouncing,
        Self::CheckBeforeRead,
        Self::UnfencedView,
        Self::ForgetEarlierLeases,
        Self::RefusalAsProof,
        Self::ShorterAtOnce,
        Self::GuardianWithoutNonce,
        Self::ReformWithoutAll,
    ];

    /// As a person writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::BareCertificates => "bare-certificates",
            Self::TieAsField => "tie-as-field",
            Self::DisksAsVotes => "disks-as-votes",
            Self::AddWithoutAnnouncing => "add-without-announcing",
            Self::CheckBeforeRead => "check-before-read",
            Self::UnfencedView => "unfenced-view",
            Self::ForgetEarlierLeases => "forget-earlier-leases",
            Self::RefusalAsProof => "refusal-as-proof",
            Self::ShorterAtOnce => "shorter-at-once",
            Self::GuardianWithoutNonce => "guardian-without-nonce",
            Self::ReformWithoutAll => "reform-without-all",
        }
    }
}

/// Model A with its bounds.
#[derive(Clone, Debug)]
pub struct Membership {
    /// What may happen, and how often.
    pub scenario: Scenario,
    /// The rules.
    pub stage: Stage,
    /// A mistake in them.
    pub planted: Option<Planted>,
}

impl Membership {
    /// True with this mistake.
    pub(crate) fn errs(&self, planted: Planted) -> bool {
        self.planted == Some(planted)
    }

    /// True for what only the design has.
    pub(crate) fn has_testaments(&self) -> bool {
        self.stage == Stage::Testaments
    }
}

/// What must hold. The names are what a report says.
pub mod properties {
    /// Two branches of the history have acknowledged something.
    pub const ONE_BRANCH: &str = "no two eras both acknowledge";
    /// Who answers has everything that was acknowledged.
    pub const ANSWERS: &str = "a removed life never answers after its lease";
    /// The state that a new group begins with knows of every acknowledging view.
    pub const KNOWS: &str =
        "a group that is formed anew knows every configuration that acknowledged";
    /// What was agreed on is the same everywhere.
    pub const AGREED: &str = "lives of one era agree on what was agreed on";
    /// Whoever can serve again by the table does, if nothing else fails.
    pub const SERVES: &str = "who should serve again does";
}

impl Model for Membership {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        self.scenario.rates.iter().map(|rates| State::first(&self.scenario, rates)).collect()
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        self.protocol_actions(state, actions);
        self.fault_actions(state, actions);
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        self.after(state, action)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut all = vec![
            always(properties::ONE_BRANCH, |_, s: &State| !s.two_branches),
            always(properties::ANSWERS, Self::answers_are_new),
            always(properties::KNOWS, |_, s: &State| !s.ignorant),
            always(properties::AGREED, |_, s: &State| s.logs_agree()),
        ];
        if self.scenario.judges_service {
            all.push(always(properties::SERVES, Self::serves_again));
        }
        all
    }
}
