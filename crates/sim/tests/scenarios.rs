//! Scenarios: without a bug they are clean whatever the delays are, and the planted bugs that they are for show in them.

use lats_sim::{Kind, Options, planted::PLANTED, run_caught, scenarios::SCENARIOS};

/// Without a bug so many draws of delays must pass. The checks draw many fresh ones besides, in a step of their own.
const CLEAN: u64 = 5;
/// With its bug planted a scenario must fail for so many seeds of the first so many.
const FOUND: usize = 9;
const SEEDS: u64 = 12;

#[test]
fn every_scenario_passes_whatever_the_delays_are() {
    for scenario in SCENARIOS {
        for seed in 1..=CLEAN {
            let kind = Kind::Scenario(scenario.name);
            let outcome = run_caught(&Options { seed, kind, ..Options::default() });
            let repeat = format!("cargo xtask sim --seeds 1 --seed {seed}{} -v", kind.option());
            assert_eq!(outcome.failure, None, "repeat: {repeat}");
        }
    }
}

#[test]
fn scenarios_find_their_planted_bugs_with_most_delays() {
    for planted in PLANTED {
        let kind = planted.found.kind;
        if !matches!(kind, Kind::Scenario(_)) {
            continue;
        }
        let fails = |seed: &u64| {
            let options = Options { seed: *seed, bug: Some(planted), kind, verbose: false };
            run_caught(&options).failure.is_some()
        };
        let count = (1..=SEEDS).filter(fails).count();
        println!("{}: found by {count} of {SEEDS} seeds", planted.name);
        assert!(count >= FOUND, "{}: found by {count} of {SEEDS} seeds", planted.name);
    }
}
