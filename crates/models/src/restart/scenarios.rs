//! The scenarios of model B.

use super::{Planted, Restarts, Set};

/// Bounds of a run.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its number and a word.
    pub name: &'static str,
    /// The groups of each transaction.
    pub transactions: &'static [Set],
    /// The last epoch.
    pub epochs: u8,
    /// How many processes may die.
    pub deaths: u8,
    /// Which.
    pub mortal: Set,
    /// Cuts, damages, and nodes that join.
    pub events: [u8; 3],
    /// Who may be cut off.
    pub cuttable: Set,
    /// Whose disks never write.
    pub slow: Set,
    /// Restarts and new groups.
    pub restarts: u8,
}

const BASE: Scenario = Scenario {
    name: "",
    transactions: &[0b11, 0b01],
    epochs: 2,
    deaths: 4,
    mortal: 0b1111,
    events: [0, 0, 0],
    cuttable: 0,
    slow: 0,
    restarts: 1,
};

/// All of them.
pub const SCENARIOS: &[Scenario] = &[
    Scenario { name: "12-one-group-lives", mortal: 0b1110, deaths: 3, ..BASE },
    Scenario { name: "13-one-lives-in-each", mortal: 0b0110, deaths: 2, ..BASE },
    Scenario {
        name: "14-removed-by-a-disk",
        transactions: &[0b01],
        mortal: 0b1101,
        deaths: 3,
        events: [1, 0, 0],
        cuttable: 0b0010,
        ..BASE
    },
    Scenario { name: "15-slow-disk", slow: 0b0010, mortal: 0b1101, deaths: 3, ..BASE },
    Scenario { name: "16-damaged-log", transactions: &[0b11], events: [0, 1, 0], ..BASE },
    Scenario {
        name: "17-late-survivor",
        transactions: &[0b11],
        mortal: 0b1101,
        deaths: 3,
        events: [1, 0, 0],
        cuttable: 0b0010,
        ..BASE
    },
    Scenario { name: "19-ephemeral", slow: 0b1111, mortal: 0b0110, deaths: 2, ..BASE },
    Scenario {
        name: "filled",
        transactions: &[0b01],
        mortal: 0b0011,
        deaths: 2,
        events: [0, 0, 1],
        ..BASE
    },
];

/// Where each planted error is looked for.
pub fn planted_runs() -> Vec<Restarts> {
    let of = |planted, name: &str| {
        let scenario = SCENARIOS.iter().find(|s| s.name == name)?.clone();
        Some(Restarts { scenario, planted: Some(planted) })
    };
    let all = [
        of(Planted::EpochForLivingGroups, "13-one-lives-in-each"),
        of(Planted::EpochOfOnePart, "12-one-group-lives"),
        of(Planted::SealOfOverheardEpoch, "filled"),
        of(Planted::UnfencedView, "14-removed-by-a-disk"),
        of(Planted::TrustDamagedLog, "16-damaged-log"),
    ];
    all.into_iter().flatten().collect()
}
