//! `cargo xtask sim`: runs seeds and scenarios, prints the failing ones; looks for planted bugs.

use clap::Parser;
use lats_sim::{
    Kind,
    many::{Many, Totals},
    planted::{Found, PLANTED, Planted},
    scenarios::SCENARIOS,
};
use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

/// Runs simulated clusters, each decided by a seed. Exit status 1 if any fails.
#[derive(Parser)]
struct Args {
    /// How many seeds to run.
    #[arg(long, default_value_t = 100)]
    seeds: u64,
    /// Run for so many minutes instead of a number of seeds.
    #[arg(long, conflicts_with = "seeds")]
    minutes: Option<f64>,
    /// The first seed (or the only one, with `--seeds 1`); drawn from the clock if not given.
    #[arg(long)]
    seed: Option<u64>,
    /// Run each seed twice and compare.
    #[arg(long)]
    twice: bool,
    /// Plant a bug, and stop at the first run that fails.
    #[arg(long)]
    bug: Option<String>,
    /// Print what happens.
    #[arg(long, short)]
    verbose: bool,
    /// Long runs with hundreds of faults each.
    #[arg(long)]
    storm: bool,
    /// Short runs with two node groups, one of which is lost at the end.
    #[arg(long, conflicts_with = "storm")]
    outage: bool,
    /// Short runs with two node groups, all nodes of which die in the end.
    #[arg(long, conflicts_with_all = ["storm", "outage"])]
    blackout: bool,
    /// Short runs in which all nodes are told to end, and start again.
    #[arg(long, conflicts_with_all = ["storm", "outage", "blackout"])]
    closing: bool,
    /// Any set of nodes fails at any instant, but for one full replica of each group.
    #[arg(long, conflicts_with_all = ["storm", "outage", "blackout", "closing"])]
    any_set: bool,
    /// A scenario, with the delays of each seed; `all` for each of them.
    #[arg(long, conflicts_with_all = ["storm", "outage", "blackout", "closing", "any_set"])]
    scenario: Option<String>,
    /// Look for planted bugs, each as it is written down: all of them, or every fifth from the one that a number chooses.
    #[arg(long, num_args = 0..=1, default_missing_value = "all", value_name = "NUMBER",
          conflicts_with_all = ["bug", "twice", "storm", "outage", "blackout", "closing", "any_set", "scenario",
          "minutes"])]
    planted: Option<String>,
    /// Write what was counted and found into a file, as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Threads.
    #[arg(long, default_value_t = 2)]
    jobs: u64,
}

/// Planted bugs are looked for in so many turns.
const TURNS: usize = 5;

impl Args {
    fn kind(&self) -> Result<Kind, String> {
        if let Some(name) = &self.scenario {
            let found = SCENARIOS.iter().find(|s| s.name == name);
            let names: Vec<_> = SCENARIOS.iter().map(|s| s.name).collect();
            let none = format!("no such scenario: {name}; there are: {names:?}");
            return found.map(|s| Kind::Scenario(s.name)).ok_or(none);
        }
        Ok(match (self.storm, self.outage, self.blackout) {
            (true, ..) => Kind::Storm,
            (_, true, _) => Kind::Outage,
            (_, _, true) => Kind::Blackout,
            _ if self.closing => Kind::Closing,
            _ if self.any_set => Kind::AnySet,
            _ => Kind::Mixed,
        })
    }

    fn bug(&self) -> Result<Option<&'static Planted>, String> {
        let Some(name) = &self.bug else { return Ok(None) };
        let names: Vec<_> = PLANTED.iter().map(|p| p.name).collect();
        let none = format!("no such bug: {name}; there are: {names:?}");
        PLANTED.iter().find(|p| p.name == name).map(Some).ok_or(none)
    }
}

#[expect(clippy::print_stdout, reason = "a command-line tool")]
fn main() -> ExitCode {
    let args = Args::parse();
    if args.planted.is_some() {
        // A panic is how some of them are found: what it says is in the report.
        std::panic::set_hook(Box::new(|_| ()));
    }
    let ended = match &args.planted {
        Some(which) => look_for_planted(which, &args),
        None => run_seeds(&args),
    };
    ended.unwrap_or_else(|text| {
        println!("sim: {text}");
        ExitCode::from(2)
    })
}

#[expect(clippy::disallowed_methods, reason = "a command-line tool: times are printed")]
fn clock() -> std::time::Instant {
    std::time::Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "the clock draws fresh seeds, which are printed")]
fn fresh_seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(1, |t| t.as_micros() as u64 % 1_000_000_000)
}

#[expect(clippy::print_stdout, reason = "a command-line tool")]
fn run_seeds(args: &Args) -> Result<ExitCode, String> {
    let started = clock();
    let first = args.seed.unwrap_or_else(fresh_seed);
    let kinds = match args.scenario.as_deref() {
        Some("all") => SCENARIOS.iter().map(|s| Kind::Scenario(s.name)).collect(),
        _ => vec![args.kind()?],
    };
    let end = args.minutes.map(|m| started + Duration::from_secs_f64(60.0 * m));
    println!("sim: seeds from {first}; repeat one with `cargo xtask sim --seeds 1 --seed N -v`");
    let mut all = Totals::default();
    for kind in kinds {
        let many = Many {
            first,
            seeds: if end.is_some() { u64::MAX } else { args.seeds },
            kind,
            bug: args.bug()?,
            twice: args.twice,
            verbose: args.verbose,
            jobs: args.jobs,
        };
        let totals = many.run(&|| end.is_some_and(|end| clock() >= end));
        for (seed, failure) in &totals.failures {
            println!("seed {seed} FAILED: {failure}");
            println!("    repeat: {}", repeat(*seed, kind, args.bug.as_deref()));
        }
        all.counts.add(&totals.counts);
        all.failures.extend(totals.failures);
    }
    report(&mut all, started.elapsed());
    if let Some(path) = &args.json {
        write_json(path, args, first, &all, started.elapsed())?;
    }
    Ok(ExitCode::from(u8::from(!all.failures.is_empty())))
}

fn repeat(seed: u64, kind: Kind, bug: Option<&str>) -> String {
    let bug = bug.map(|name| format!(" --bug {name}")).unwrap_or_default();
    format!("cargo xtask sim --seeds 1 --seed {seed}{}{bug} -v", kind.option())
}

/// Each planted bug must be found in the runs that its entry names.
#[expect(clippy::print_stdout, reason = "a command-line tool")]
fn look_for_planted(which: &str, args: &Args) -> Result<ExitCode, String> {
    let turn = match which {
        "all" => None,
        number => Some(number.parse::<usize>().map_err(|_| "--planted takes a number")? % TURNS),
    };
    let (started, mut found, mut blind) = (clock(), 0, 0);
    for (at, planted) in PLANTED.iter().enumerate() {
        if turn.is_some_and(|turn| at % TURNS != turn) {
            continue;
        }
        let since = clock();
        let Found { kind, first, seeds } = planted.found;
        let (bug, twice, verbose, jobs) = (Some(planted), false, false, args.jobs);
        let totals = Many { first, seeds, kind, bug, twice, verbose, jobs }.run(&|| false);
        let (name, runs, took) = (planted.name, totals.counts.runs, since.elapsed().as_secs_f64());
        match totals.failures.first() {
            Some((seed, failure)) => {
                found += 1;
                let text: String = failure.chars().take(100).collect();
                let option = kind.option();
                println!(
                    "{name}: found in {took:.1} s, {runs} runs, by seed {seed}{option}: {text}"
                );
            }
            None => {
                blind += 1;
                println!(
                    "{name}: NOT FOUND in {took:.1} s, {runs} runs: cargo xtask sim --seed {first} --seeds {seeds}{} --bug {name}",
                    kind.option()
                );
            }
        }
    }
    println!("planted bugs: {:.1} s", started.elapsed().as_secs_f64());
    println!("{found} passed, {blind} failed");
    Ok(ExitCode::from(u8::from(blind > 0)))
}

#[expect(clippy::print_stdout, reason = "a command-line tool")]
fn report(totals: &mut Totals, took: Duration) {
    let counts = &mut totals.counts;
    let failed = totals.failures.len();
    let kinds: Vec<String> = counts.faults.kinds().map(|(k, n)| format!("{k} {n}")).collect();
    println!("sim: faults by kind: {}", kinds.join(", "));
    println!(
        "sim: {} data nodes died; first commit after it: {}",
        counts.failovers_us.len(),
        spread(&mut counts.failovers_us)
    );
    println!(
        "sim: {} transactions gave way in deadlocks; time in one: {}",
        counts.deadlock_victims,
        spread(&mut counts.deadlocks_us)
    );
    println!("sim: {} runs, {failed} failed; {counts} in {:.1} s", counts.runs, took.as_secs_f64());
}

/// How times are spread.
fn spread(times_us: &mut [u64]) -> String {
    times_us.sort_unstable();
    let worst = times_us.len().saturating_sub(1);
    let part = |percent: usize| times_us.get(worst * percent / 100).unwrap_or(&0);
    let (median, ninety, ninety_nine, longest) = (part(50), part(90), part(99), part(100));
    format!("median {median} us, 90% {ninety} us, 99% {ninety_nine} us, longest {longest} us")
}

fn write_json(
    path: &Path,
    args: &Args,
    first: u64,
    totals: &Totals,
    took: Duration,
) -> Result<(), String> {
    let faults: serde_json::Map<String, serde_json::Value> =
        totals.counts.faults.kinds().map(|(kind, n)| (kind.to_string(), n.into())).collect();
    let kind = args.kind().unwrap_or_default();
    let findings = totals.failures.iter().map(|(seed, text)| {
        serde_json::json!({ "seed": seed, "failure": text, "repeat": repeat(*seed, kind, args.bug.as_deref()) })
    });
    let text = serde_json::json!({
        "first_seed": first,
        "runs": totals.counts.runs,
        "commits": totals.counts.commits,
        "minutes": took.as_secs_f64() / 60.0,
        "faults": faults,
        "findings": findings.collect::<Vec<_>>(),
    });
    std::fs::write(path, format!("{text:#}\n")).map_err(|e| format!("{}: {e}", path.display()))
}
