//! Every scenario holds as far as the test looks, and every planted error is found.

use crate::{
    check::{Limits, Told, run},
    lives::{self, Lives},
    membership::{self, Action, Being, Membership, SCENARIOS, Stage, State},
    restart::{self, Restarts},
};
use std::{fmt::Debug, hash::Hash};

/// Looked at, of each scenario; the program looks further.
const STEPS: usize = 100_000;
const STEPS_TO_AN_ERROR: usize = 3_000_000;

fn holds<M>(name: &str, model: M) -> (usize, bool)
where
    M: Told + Send + Sync + 'static,
    M::State: PartialEq + Clone + Debug + Hash + Send + Sync,
    M::Action: Debug + PartialEq + Clone,
{
    let report = run(model, Limits { threads: 2, states: STEPS });
    assert!(report.violation.is_none(), "{name}: {:#?}", report.violation);
    assert!(report.states > 1_000, "{name}: only {} states", report.states);
    (report.states, report.complete)
}

fn finds<M>(name: &str, model: M)
where
    M: Told + Send + Sync + 'static,
    M::State: PartialEq + Clone + Debug + Hash + Send + Sync,
    M::Action: Debug + PartialEq + Clone,
{
    let report = run(model, Limits { threads: 2, states: STEPS_TO_AN_ERROR });
    assert!(report.violation.is_some(), "{name} was not found in {} states", report.states);
}

#[test]
fn every_scenario_of_membership_holds() {
    for scenario in SCENARIOS {
        for stage in scenario.stages {
            let (scenario, stage) = (scenario.clone(), *stage);
            let name = format!("{} {stage:?}", scenario.name);
            holds(&name, Membership { scenario, stage, planted: None });
        }
    }
}

#[test]
fn every_scenario_of_restarts_holds() {
    for scenario in restart::SCENARIOS {
        let scenario = scenario.clone();
        holds(scenario.name, Restarts { scenario, planted: None });
    }
}

#[test]
fn lives_hold_with_all_events() {
    holds("lives", Lives { events: Lives::ALL_EVENTS, planted: None });
}

#[test]
fn all_states_of_lives_with_fewer_events_hold() {
    for events in [[1, 0, 0, 1, 0], [0, 1, 0, 0, 0], [0, 0, 1, 1, 0]] {
        let report = run(Lives { events, planted: None }, Limits { threads: 2, states: 0 });
        assert!(report.violation.is_none(), "{events:?}: {:#?}", report.violation);
        assert!(report.complete, "{events:?}");
        assert!(report.states > 100_000, "{events:?}: only {} states", report.states);
    }
}

#[test]
fn every_planted_error_is_found() {
    for model in membership::planted_runs() {
        finds(model.planted.map_or("", membership::Planted::name), model);
    }
    for model in restart::planted_runs() {
        finds(model.planted.map_or("", restart::Planted::name), model);
    }
    for planted in lives::Planted::ALL {
        finds(planted.name(), Lives { events: Lives::ALL_EVENTS, planted: Some(planted) });
    }
}

/// Two data nodes and a witness, with a lease, in this stage.
fn begun(stage: Stage) -> (Membership, State) {
    let scenario = membership::scenario("1-two-die").unwrap();
    let model = Membership { scenario, stage, planted: None };
    let first = stateright::Model::init_states(&model).remove(0);
    let state = model.after(&first, Action::Round(0)).unwrap();
    (model, state)
}

/// What becomes of node 1 when these end together.
fn goes_on(stage: Stage, ends: &[(u8, Being)]) -> bool {
    let (model, mut state) = begun(stage);
    for (life, being) in ends {
        state = model.after(&state, Action::Die(*life, *being)).unwrap();
    }
    model.comes_to_serve(state)
}

/// As above, but the witness ends first, and the others have agreed on a group without it.
fn goes_on_after_witness(stage: Stage, witness: Being, end: Being) -> bool {
    let (model, mut state) = begun(stage);
    state = model.after(&state, Action::Die(2, witness)).unwrap();
    for _ in 0..8 {
        model.turn(&mut state);
    }
    assert!(!state.is_over(0));
    model.comes_to_serve(model.after(&state, Action::Die(0, end)).unwrap())
}

#[test]
fn the_table_of_two_nodes_and_a_witness() {
    use Being::{Certified, Silent, Testified};
    use Stage::{Built, Testaments};
    for stage in [Built, Testaments] {
        // The first node alone: the witness helps, at once or after the lease.
        assert!(goes_on(stage, &[(0, Certified)]));
        assert!(goes_on(stage, &[(0, Silent)]));
        // Both, and nobody can say so.
        assert!(!goes_on(stage, &[(0, Silent), (2, Silent)]));
        assert!(!goes_on(stage, &[(0, Certified), (2, Silent)]));
        assert!(!goes_on_after_witness(stage, Silent, Silent));
    }
    // Testaments tell that nobody went on: the survivor does, at once.
    assert!(goes_on(Testaments, &[(0, Testified), (2, Testified)]));
    assert!(!goes_on(Testaments, &[(0, Certified), (2, Certified)]));
    assert!(!goes_on(Built, &[(0, Certified), (2, Certified)]));
    // With the second vote at the first node.
    assert!(goes_on_after_witness(Testaments, Silent, Testified));
    assert!(!goes_on_after_witness(Testaments, Testified, Silent));
    assert!(goes_on_after_witness(Built, Certified, Certified));
}

#[test]
fn clocks_that_differ_by_more_than_the_margin_are_noticed() {
    let of = |margin, rates| {
        let mut scenario = membership::scenario("clocks-far").unwrap();
        (scenario.margin, scenario.rates) = (margin, rates);
        // The old leader has the slow clock.
        scenario.parts = &[0b001];
        Membership { scenario, stage: Stage::Built, planted: None }
    };
    finds("a margin of 1/32 for rates of 9 %", of(32, &[&[910, 1_090, 1_090]]));
    finds("a margin of 1/5 for rates of 10 %", of(5, &[&[900, 1_100, 1_100]]));
    holds("a margin of 1/5 for rates of 9 %", of(5, &[&[910, 1_090, 1_090]]));
}
