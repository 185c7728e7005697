//! Looks at the models' states, as far as it is told to: `models --model a --scenario 2 --bound 5000000`.
#![forbid(unsafe_code)]

use clap::{Parser, ValueEnum};
use lats_models::{
    check::{Limits, Report, run},
    lives::{self, Lives},
    membership::{Membership, Planted, SCENARIOS, Scenario, Stage, planted_runs},
    restart::{self, Restarts},
};
use std::io::Write;

/// Looks at all states of a model, and tells how it comes to one that must not be.
#[derive(Parser)]
struct Args {
    /// Which model.
    #[arg(long, default_value = "a")]
    model: Which,
    /// Only scenarios whose names begin so.
    #[arg(long, default_value = "")]
    scenario: String,
    /// Give up after so many different states; 0: look at all.
    #[arg(long, default_value_t = 2_000_000)]
    bound: usize,
    /// How many threads look.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=64))]
    threads: u8,
    /// Only these rules of model A.
    #[arg(long)]
    stage: Option<StageOf>,
    /// A mistake that is to be found, in all scenarios of that name; `all`: each where it is looked for.
    #[arg(long)]
    planted: Option<String>,
    /// More deaths than the scenario has.
    #[arg(long, default_value_t = 0)]
    more_deaths: u8,
    /// More cuts of the network.
    #[arg(long, default_value_t = 0)]
    more_cuts: u8,
    /// Longer logs, and more terms.
    #[arg(long, default_value_t = 0)]
    longer: u8,
    /// The margin of leases is this part of one.
    #[arg(long)]
    margin: Option<u16>,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Which {
    /// Membership.
    A,
    /// Restarts.
    B,
    /// Numbers of lives.
    C,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum StageOf {
    /// As the code is.
    Built,
    /// The design with testaments.
    Testaments,
}

impl StageOf {
    fn stage(self) -> Stage {
        match self {
            Self::Built => Stage::Built,
            Self::Testaments => Stage::Testaments,
        }
    }
}

impl Args {
    fn limits(&self) -> Limits {
        Limits { threads: usize::from(self.threads), states: self.bound }
    }

    fn widened(&self, scenario: &Scenario) -> Scenario {
        let mut scenario = scenario.clone();
        scenario.deaths += self.more_deaths;
        scenario.cuts += self.more_cuts;
        scenario.log += self.longer;
        scenario.terms = (scenario.terms + self.longer).min(15);
        scenario.margin = self.margin.unwrap_or(scenario.margin);
        scenario
    }

    fn memberships(&self) -> anyhow::Result<Vec<Membership>> {
        let planted = match self.planted.as_deref() {
            None => None,
            Some("all") => return Ok(planted_runs()),
            Some(name) => Some(named(name, &Planted::ALL, Planted::name)?),
        };
        let meant = SCENARIOS.iter().filter(|s| s.name.starts_with(&self.scenario));
        let all = meant.flat_map(|s| s.stages.iter().map(move |stage| (s, *stage)));
        let all = all.filter(|(_, stage)| self.stage.is_none_or(|s| s.stage() == *stage));
        let runs = all.map(|(s, stage)| Membership { scenario: self.widened(s), stage, planted });
        Ok(runs.collect())
    }

    fn lives(&self) -> anyhow::Result<Vec<Lives>> {
        let mut events = Lives::ALL_EVENTS;
        events[3] += self.more_cuts;
        let planted = match self.planted.as_deref() {
            None => vec![None],
            Some("all") => lives::Planted::ALL.into_iter().map(Some).collect(),
            Some(name) => vec![Some(named(name, &lives::Planted::ALL, lives::Planted::name)?)],
        };
        Ok(planted.into_iter().map(|planted| Lives { events, planted }).collect())
    }

    fn restarts(&self) -> anyhow::Result<Vec<Restarts>> {
        let planted = match self.planted.as_deref() {
            None => None,
            Some("all") => return Ok(restart::planted_runs()),
            Some(name) => Some(named(name, &restart::Planted::ALL, restart::Planted::name)?),
        };
        let meant = restart::SCENARIOS.iter().filter(|s| s.name.starts_with(&self.scenario));
        let widened = meant.map(|s| {
            let mut scenario = s.clone();
            scenario.deaths += self.more_deaths;
            scenario.events[0] += self.more_cuts;
            scenario.epochs += self.longer;
            scenario
        });
        Ok(widened.map(|scenario| Restarts { scenario, planted }).collect())
    }
}

/// A planted error by its name.
fn named<P: Copy>(name: &str, all: &[P], of: fn(P) -> &'static str) -> anyhow::Result<P> {
    let found = all.iter().copied().find(|p| of(*p) == name);
    found.ok_or_else(|| anyhow::anyhow!("no planted error of this model is called {name:?}"))
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let mut violations = 0;
    match args.model {
        Which::A => {
            for model in args.memberships()? {
                let planted = model.planted.map_or("", Planted::name);
                let name = format!("{} {:?} {planted}", model.scenario.name, model.stage);
                violations += u32::from(told(&name, &run(model, args.limits()))?);
            }
        }
        Which::B => {
            for model in args.restarts()? {
                let planted = model.planted.map_or("", restart::Planted::name);
                let name = format!("{} {planted}", model.scenario.name);
                violations += u32::from(told(&name, &run(model, args.limits()))?);
            }
        }
        Which::C => {
            for model in args.lives()? {
                let name = format!("lives {}", model.planted.map_or("", lives::Planted::name));
                violations += u32::from(told(&name, &run(model, args.limits()))?);
            }
        }
    }
    anyhow::ensure!(violations == 0, "{violations} runs came to a state that must not be");
    Ok(())
}

/// Prints what was seen; true if something must not be.
fn told(name: &str, report: &Report) -> anyhow::Result<bool> {
    let mut out = std::io::stdout();
    let how = if report.complete { "all" } else { "not all" };
    let (states, depth, took) = (report.states, report.depth, report.took.as_secs_f64());
    writeln!(out, "{name}: {states} states ({how}), {depth} steps deep, {took:.1} s")?;
    if let Some((property, steps)) = &report.violation {
        writeln!(out, "  does not hold: {property}")?;
        for step in steps {
            writeln!(out, "  - {step}")?;
        }
    }
    Ok(report.violation.is_some())
}
