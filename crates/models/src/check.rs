//! Runs a model: every state in the order of its distance from the first one, so that a trace is as short as can be.

use stateright::{Checker, HasDiscoveries, Model, Property};
use std::{fmt::Debug, hash::Hash, time::Duration};

/// A model whose actions and states can be told to a person.
pub trait Told: Model<State: Clone + Debug + Hash + Send + Sync, Action: Clone> {
    /// What happens, in a few words.
    fn words(&self, action: &Self::Action) -> String;

    /// What a state looks like, one line for each process.
    fn picture(&self, state: &Self::State) -> String;
}

/// How far to look.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Threads that look.
    pub threads: usize,
    /// Give up after so many different states (a batch more may be looked at); 0: look at all.
    pub states: usize,
}

/// What was seen.
#[derive(Clone, Debug)]
pub struct Report {
    /// Different states.
    pub states: usize,
    /// Steps from the first state to the furthest one.
    pub depth: usize,
    /// How long it took.
    pub took: Duration,
    /// All states were looked at.
    pub complete: bool,
    /// The property that does not hold, and how it comes to that.
    pub violation: Option<(&'static str, Vec<String>)>,
}

/// Looks at all states, until a property does not hold.
#[expect(clippy::disallowed_methods, reason = "a tool that tells how long it took")]
pub fn run<M>(model: M, limits: Limits) -> Report
where
    M: Told + Send + Sync + 'static,
    M::State: PartialEq,
    M::Action: Debug + PartialEq,
{
    let began = std::time::Instant::now();
    let mut builder =
        model.checker().threads(limits.threads).finish_when(HasDiscoveries::AnyFailures);
    if limits.states > 0 {
        builder = builder.target_state_count(limits.states);
    }
    let checker = builder.spawn_bfs().join();
    let model = checker.model();
    let names: Vec<&'static str> = model.properties().iter().map(|p| p.name).collect();
    let found = names.into_iter().find_map(|name| Some((name, checker.discovery(name)?)));
    let violation = found.map(|(name, path)| {
        let last = path.last_state().clone();
        let mut lines: Vec<String> =
            path.into_actions().iter().map(|action| model.words(action)).collect();
        lines.push(model.picture(&last));
        (name, lines)
    });
    let states = checker.unique_state_count();
    let was_cut_short = limits.states > 0 && checker.state_count() >= limits.states;
    let complete = violation.is_none() && !was_cut_short;
    Report { states, depth: checker.max_depth(), took: began.elapsed(), complete, violation }
}

/// A property that holds in every state.
pub fn always<M: Model>(name: &'static str, holds: fn(&M, &M::State) -> bool) -> Property<M> {
    Property::always(name, holds)
}
