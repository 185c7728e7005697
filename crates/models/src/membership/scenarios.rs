//! The scenarios of model A: what may happen, and how often.

use super::{Membership, Planted, Set, Stage, state::Being};

/// Bounds of a run.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its number and a word.
    pub name: &'static str,
    /// For which rules it is meant.
    pub stages: &'static [Stage],
    /// Data nodes that found the cluster.
    pub data: usize,
    /// The witness among the founders, as a set.
    pub witness: Set,
    /// Lives that may come later.
    pub spares: usize,
    /// Spare lives may join as new nodes.
    pub joins: bool,
    /// How many processes may end.
    pub deaths: u8,
    /// Which.
    pub mortal: Set,
    /// In which ways.
    pub ends: &'static [Being],
    /// How often the network may be cut.
    pub cuts: u8,
    /// Between these and the others.
    pub parts: &'static [Set],
    /// How many pauses there may be.
    pub pauses: u8,
    /// Whose.
    pub pausable: Set,
    /// How many guardians may die.
    pub guardians: u8,
    /// How many disks may come back.
    pub returns: u8,
    /// How many commits are acknowledged.
    pub acks: u8,
    /// Terms of one group; the first one counts.
    pub terms: u8,
    /// How many times the group is formed anew.
    pub eras: u8,
    /// A leader proposes nothing when its log is as long.
    pub log: u8,
    /// Votes and confirmations may be late.
    pub late: bool,
    /// Leases may become shorter.
    pub shorter: bool,
    /// Time stops between deadlines, too.
    pub half_leases: bool,
    /// The margin is this part of a lease.
    pub margin: u16,
    /// Rates of clocks in thousandths, one list for each first state.
    pub rates: &'static [&'static [u16]],
    /// The property about service is looked at, too.
    pub judges_service: bool,
}

impl Scenario {
    /// How many lives there are at first.
    pub fn founders(&self) -> usize {
        self.data + self.witness.count_ones() as usize
    }
}

const BUILT: &[Stage] = &[Stage::Built];
const DESIGN: &[Stage] = &[Stage::Testaments];
const BOTH: &[Stage] = &[Stage::Built, Stage::Testaments];
const CERTAIN_OR_SILENT: &[Being] = &[Being::Certified, Being::Silent];
const ALL_ENDS: &[Being] = &[Being::Testified, Being::Certified, Being::Silent];
const RIGHT: &[&[u16]] = &[&[]];

const BASE: Scenario = Scenario {
    name: "",
    stages: BOTH,
    data: 2,
    witness: 0b100,
    spares: 0,
    joins: false,
    deaths: 2,
    mortal: 0b111,
    ends: ALL_ENDS,
    cuts: 0,
    parts: &[],
    pauses: 0,
    pausable: 0,
    guardians: 0,
    returns: 0,
    acks: 1,
    terms: 2,
    eras: 2,
    log: 3,
    late: false,
    shorter: false,
    half_leases: false,
    margin: 32,
    rates: RIGHT,
    judges_service: false,
};

/// All of them; the same number may have one for each stage.
pub const SCENARIOS: &[Scenario] = &[
    Scenario { name: "1-two-die", judges_service: true, acks: 2, ..BASE },
    Scenario { name: "2-removers-die", cuts: 1, parts: &[0b010], ..BASE },
    Scenario {
        name: "3-taken-in-while-cut",
        spares: 1,
        joins: true,
        cuts: 1,
        parts: &[0b010],
        mortal: 0b101,
        log: 5,
        ..BASE
    },
    Scenario {
        name: "4-second-vote-moves",
        stages: DESIGN,
        data: 2,
        witness: 0,
        mortal: 0b11,
        deaths: 1,
        cuts: 2,
        parts: &[0b01],
        log: 4,
        ..BASE
    },
    Scenario {
        name: "5-five-four-five",
        data: 4,
        witness: 0b10000,
        spares: 1,
        joins: true,
        deaths: 1,
        mortal: 0b1000,
        ends: CERTAIN_OR_SILENT,
        cuts: 1,
        parts: &[0b00011],
        log: 4,
        ..BASE
    },
    Scenario {
        name: "6-two-halves",
        data: 4,
        witness: 0,
        deaths: 1,
        mortal: 0b0001,
        ends: CERTAIN_OR_SILENT,
        cuts: 1,
        parts: &[0b0011],
        log: 3,
        ..BASE
    },
    Scenario {
        name: "6-halves-die",
        stages: DESIGN,
        data: 4,
        witness: 0,
        deaths: 2,
        mortal: 0b0011,
        ends: CERTAIN_OR_SILENT,
        cuts: 1,
        parts: &[0b0011],
        terms: 1,
        eras: 1,
        ..BASE
    },
    Scenario { name: "7-late-words", late: true, deaths: 2, log: 2, acks: 1, ..BASE },
    Scenario {
        name: "8-shorter-lease",
        stages: DESIGN,
        deaths: 0,
        cuts: 1,
        parts: &[0b001],
        shorter: true,
        eras: 0,
        log: 4,
        ..BASE
    },
    Scenario { name: "leader-cut", deaths: 0, cuts: 1, parts: &[0b001], eras: 1, ..BASE },
    Scenario {
        name: "9-guardian-dies",
        guardians: 1,
        deaths: 1,
        cuts: 1,
        parts: &[0b001],
        ends: CERTAIN_OR_SILENT,
        ..BASE
    },
    Scenario {
        name: "10-pause",
        half_leases: true,
        data: 3,
        witness: 0,
        deaths: 0,
        pauses: 1,
        pausable: 0b001,
        log: 3,
        ..BASE
    },
    Scenario {
        name: "10-pause-of-two-votes",
        stages: DESIGN,
        deaths: 1,
        mortal: 0b100,
        pauses: 1,
        pausable: 0b001,
        log: 4,
        ..BASE
    },
    Scenario {
        name: "11-disks-return",
        stages: BUILT,
        data: 3,
        witness: 0,
        spares: 2,
        deaths: 2,
        mortal: 0b011,
        ends: CERTAIN_OR_SILENT,
        returns: 2,
        log: 4,
        ..BASE
    },
    Scenario {
        name: "11-seven-voters",
        stages: DESIGN,
        data: 6,
        witness: 0b1000000,
        spares: 1,
        deaths: 3,
        mortal: 0b0000111,
        ends: &[Being::Certified],
        returns: 1,
        eras: 1,
        log: 3,
        ..BASE
    },
    Scenario {
        name: "fence",
        deaths: 1,
        mortal: 0b001,
        ends: CERTAIN_OR_SILENT,
        spares: 1,
        cuts: 1,
        parts: &[0b010],
        returns: 1,
        ..BASE
    },
    Scenario {
        name: "clocks-near",
        half_leases: true,
        deaths: 0,
        cuts: 1,
        parts: &[0b001, 0b010],
        rates: &[&[985, 1_015, 1_015], &[1_015, 985, 985], &[1_015, 985, 1_015]],
        ..BASE
    },
    Scenario {
        name: "clocks-far",
        half_leases: true,
        deaths: 0,
        cuts: 1,
        parts: &[0b001, 0b010],
        margin: 5,
        rates: &[&[910, 1_090, 1_090], &[1_090, 910, 910], &[1_090, 910, 1_090]],
        ..BASE
    },
];

/// A scenario by its name.
pub fn scenario(name: &str) -> Option<Scenario> {
    SCENARIOS.iter().find(|s| s.name == name || s.name.split('-').next() == Some(name)).cloned()
}

/// Where each planted error is looked for.
pub fn planted_runs() -> Vec<Membership> {
    let of = |planted, name: &str, stage| {
        let scenario = scenario(name)?;
        Some(Membership { scenario, stage, planted: Some(planted) })
    };
    let all = [
        of(Planted::BareCertificates, "2-removers-die", Stage::Testaments),
        of(Planted::TieAsField, "6-halves-die", Stage::Testaments),
        of(Planted::DisksAsVotes, "11-disks-return", Stage::Built),
        of(Planted::CheckBeforeRead, "10-pause", Stage::Built),
        of(Planted::UnfencedView, "fence", Stage::Built),
        of(Planted::ForgetEarlierLeases, "leader-cut", Stage::Built),
        of(Planted::RefusalAsProof, "6-two-halves", Stage::Built),
        of(Planted::ShorterAtOnce, "8-shorter-lease", Stage::Testaments),
        of(Planted::GuardianWithoutNonce, "9-guardian-dies", Stage::Built),
        of(Planted::ReformWithoutAll, "2-removers-die", Stage::Built),
    ];
    all.into_iter().flatten().collect()
}
