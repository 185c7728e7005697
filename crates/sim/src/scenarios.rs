//! Scenarios: situations that a planted bug needs, and that drawn faults bring about too seldom.
//!
//! A scenario writes down what clients do, which signals are late and who dies. It sets up the situation and knows nothing of
//! the bug: without it the run is clean. Only delays are drawn, by the seed. [`Bench`] is what it is written with.

mod backlogs;
mod bench;
mod carry;
mod closing;
mod definitions;
mod deletions;
mod directories;
mod interrupts;
mod last_moments;
mod late;
mod leases;
mod restarts;
mod scans;
mod seals;
mod silence;
mod sleep;
mod survivors;

pub use bench::Bench;

use crate::{Options, Outcome, world::Shape};
use lats_base::Duration;
use lats_node::ldm::OUTCOME_KEPT;

/// A situation that is written down.
#[derive(Clone, Copy)]
pub struct Scenario {
    /// What the command line calls it.
    pub name: &'static str,
    /// The cluster that it happens in.
    pub shape: fn() -> Shape,
    /// Clients; the first one lives at node 1, the second one at node 2, and so on.
    pub clients: u32,
    /// What happens.
    pub play: fn(&mut Bench) -> Result<(), String>,
}

/// All scenarios.
pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "late-completion",
        shape: three_replicas,
        clients: 3,
        play: seals::late_completion,
    },
    Scenario {
        name: "scans-begun-beside",
        shape: scans::read_beside,
        clients: 2,
        play: scans::long_scans,
    },
    Scenario {
        name: "full-disk-at-backup",
        shape: backlogs::short_logs,
        clients: 2,
        play: backlogs::full_disk,
    },
    Scenario {
        name: "late-definitions",
        shape: two_replicas,
        clients: 2,
        play: restarts::late_definitions,
    },
    Scenario {
        name: "death-between-completions",
        shape: two_data_managers,
        clients: 1,
        play: carry::death_between_completions,
    },
    Scenario {
        name: "overtaken-completion",
        shape: three_replicas,
        clients: 2,
        play: carry::overtaken_completion,
    },
    Scenario {
        name: "void-deletion",
        shape: two_replicas,
        clients: 1,
        play: deletions::void_deletion,
    },
    Scenario {
        name: "leader-cut-off",
        shape: long_leases,
        clients: 3,
        play: leases::leader_cut_off,
    },
    Scenario {
        name: "link-comes-right",
        shape: short_leases,
        clients: 3,
        play: leases::link_comes_right,
    },
    Scenario {
        name: "paused-inside-a-round",
        shape: late::control_apart,
        clients: 2,
        play: leases::paused_inside_a_round,
    },
    Scenario {
        name: "late-complaint",
        shape: two_groups,
        clients: 4,
        play: silence::late_complaint,
    },
    Scenario {
        name: "silent-machine",
        shape: short_leases_of_two,
        clients: 2,
        play: silence::silent_machine,
    },
    Scenario {
        name: "both-directories-gone",
        shape: two_replicas,
        clients: 1,
        play: directories::both_gone,
    },
    Scenario {
        name: "directory-gone",
        shape: two_data_managers,
        clients: 1,
        play: directories::one_gone,
    },
    Scenario {
        name: "rows-stand-still",
        shape: late::control_apart,
        clients: 2,
        play: late::rows_stand_still,
    },
    Scenario {
        name: "stuck-thread",
        shape: late::control_apart,
        clients: 2,
        play: late::stuck_thread,
    },
    Scenario {
        name: "rows-never-pass",
        shape: late::control_apart,
        clients: 2,
        play: late::rows_never_pass,
    },
    Scenario {
        name: "late-interrupt",
        shape: two_replicas,
        clients: 1,
        play: interrupts::late_interrupt,
    },
    Scenario {
        name: "all-told-to-end",
        shape: two_replicas,
        clients: 2,
        play: closing::all_told_to_end,
    },
    Scenario { name: "long-sleep", shape: short_memory, clients: 1, play: sleep::long_sleep },
    Scenario {
        name: "lost-answer-to-drop",
        shape: two_replicas,
        clients: 2,
        play: definitions::lost_answer_to_drop,
    },
    Scenario {
        name: "last-moments",
        shape: two_replicas,
        clients: 2,
        play: last_moments::last_moments,
    },
    Scenario { name: "survivor-of-two", shape: two_replicas, clients: 2, play: survivors::of_two },
    Scenario {
        name: "survivor-of-three",
        shape: three_replicas,
        clients: 2,
        play: survivors::of_three,
    },
    Scenario {
        name: "survivor-of-slow-disks",
        shape: two_replicas,
        clients: 2,
        play: survivors::of_slow_disks,
    },
    Scenario {
        name: "removed-survivor",
        shape: two_replicas,
        clients: 2,
        play: survivors::removed_survivor,
    },
    Scenario {
        name: "removal-not-agreed",
        shape: two_replicas,
        clients: 2,
        play: survivors::removal_not_agreed,
    },
    Scenario {
        name: "begun-without-it",
        shape: three_replicas,
        clients: 3,
        play: survivors::begun_without_it,
    },
    Scenario { name: "two-askers", shape: three_replicas, clients: 3, play: survivors::two_askers },
    Scenario {
        name: "promise-to-the-dead",
        shape: three_groups,
        clients: 2,
        play: survivors::promise_to_the_dead,
    },
    Scenario {
        name: "two-gatherings",
        shape: three_replicas,
        clients: 3,
        play: survivors::two_gatherings,
    },
];

/// Two replicas of all rows and a witness; one block of each kind, in one thread.
pub fn two_replicas() -> Shape {
    Shape {
        data_nodes: 2,
        replicas: 2,
        ldm_instances: 1,
        tc_instances: 1,
        threads: 1,
        slices: Default::default(),
        signals_per_turn: 40,
        lease_ms: 300,
        placement: None,
        waiting_bytes_max: None,
        outcome_kept: OUTCOME_KEPT,
    }
}

/// The same with two data managers on each node.
pub fn two_data_managers() -> Shape {
    Shape { ldm_instances: 2, ..two_replicas() }
}

/// The same, where outcomes are forgotten soon.
pub fn short_memory() -> Shape {
    Shape { outcome_kept: Duration::from_millis(2_000), ..two_replicas() }
}

/// Three replicas of all rows.
pub fn three_replicas() -> Shape {
    Shape { data_nodes: 3, replicas: 3, ..two_replicas() }
}

/// The same with leases that last longer than it takes until there is another leader.
pub fn long_leases() -> Shape {
    Shape { lease_ms: 900, ..three_replicas() }
}

/// The same with the shortest leases that there are: all times are short (PACE-1).
pub fn short_leases() -> Shape {
    Shape { lease_ms: 100, ..three_replicas() }
}

/// Two replicas and a witness with such leases.
pub fn short_leases_of_two() -> Shape {
    Shape { lease_ms: 100, ..two_replicas() }
}

/// Two node groups of two replicas each, with long leases.
pub fn two_groups() -> Shape {
    Shape { data_nodes: 4, lease_ms: 900, ..two_replicas() }
}

/// Three node groups of two replicas each.
pub fn three_groups() -> Shape {
    Shape { data_nodes: 6, ..two_replicas() }
}

/// Plays a scenario with the delays of a seed; a name that there is not is a failure.
pub fn play(name: &str, options: &Options) -> Outcome {
    let Some(scenario) = SCENARIOS.iter().find(|s| s.name == name) else {
        let names: Vec<_> = SCENARIOS.iter().map(|s| s.name).collect();
        let failure = Some(format!("no such scenario: {name}; there are: {names:?}"));
        return Outcome { failure, ..Outcome::default() };
    };
    Bench::play(scenario, options)
}
