//! The soak: what takes hours. Parts of some minutes each, one after the other, until the time is over; each appends a row to
//! `docs/soak.csv` when it ends. So it may be stopped at any moment, and goes on with the next part when it is started again.

use super::{
    git, now,
    run::Workplace,
    say,
    steps::{self, PROFILE, Phase, Step},
    target,
};
use crate::root;
use anyhow::{Context, bail};
use clap::Args;
use serde_json::Value;
use std::{collections::BTreeMap, path::Path, time::Duration};

const RECORD: &str = "docs/soak.csv";
const PAGE: &str = "docs/soak.md";
const HEAD: &str = "commit,date,part,first_seed,runs,minutes,faults,findings\n";
/// What `tests/campaign.py` calls itself.
const CAMPAIGN: &str = "campaign";
/// What protocols are made of: when one of these changes, what was found before says less.
const PROTOCOLS: [&str; 8] = [
    "docs/protocols",
    "crates/base",
    "crates/signals",
    "crates/kernel",
    "crates/ldm",
    "crates/tc",
    "crates/control",
    "crates/client/src/core",
];

/// How long the soak goes on.
#[derive(Args)]
pub(crate) struct Options {
    /// Begin no further part after so many minutes.
    #[arg(long, default_value_t = 240.0)]
    minutes: f64,
    /// Only parts whose name has this in it.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
}

/// A part of the soak.
struct Part {
    name: String,
    limit_s: u64,
    command: String,
}

/// A row of the record.
#[derive(Clone, Debug, Default, PartialEq)]
struct Row {
    commit: String,
    date: String,
    part: String,
    first_seed: String,
    runs: u64,
    minutes: f64,
    faults: BTreeMap<String, u64>,
    /// What was found; without commas.
    findings: String,
}

fn parts() -> Vec<Part> {
    let sim = target().join(PROFILE).join("sim").display().to_string();
    let simulated = |name: &str, arguments: &str| Part {
        name: name.to_string(),
        limit_s: 1_200,
        command: format!("{sim} {arguments} --json {{json}}"),
    };
    let real = |name: &str, limit_s, command: &str| Part {
        name: name.to_string(),
        limit_s,
        command: command.to_string(),
    };
    let mut parts = vec![
        simulated("seeds", "--minutes 6"),
        simulated("storms", "--minutes 4 --storm"),
        simulated("blackouts", "--minutes 4 --blackout"),
        simulated("nodes that are told to end", "--minutes 2 --closing"),
        simulated("outages", "--minutes 4 --outage"),
        simulated("any set of nodes", "--minutes 6 --any-set"),
        simulated("scenarios", "--scenario all --seeds 1000"),
        real("planted bugs", 3_600, &format!("{sim} --planted")),
        real("kills", 1_200, "python3 tests/kill.py --kills 100 --sql-port {port}"),
        real(
            "frozen nodes",
            1_200,
            "python3 tests/kill.py --fault freeze --kills 40 --sql-port {port}",
        ),
        real("routers that answer with RST", 1_200, "python3 tests/reset.py --rounds 6"),
        real(
            "all processes killed",
            1_200,
            "python3 tests/blackout.py --rounds 40 --sql-port {port}",
        ),
        real(
            "all processes of two groups killed",
            1_200,
            "python3 tests/blackout.py --nodes 4 --replicas 2 --rounds 20 --sql-port {port}",
        ),
        real(
            "kills in restarts",
            1_200,
            "python3 tests/restart_kills.py --kills 50 --rows 100000 --sql-port {port}",
        ),
        real(
            "histories",
            1_200,
            "python3 tests/history.py --nodes 3 --replicas 3 --rounds 30 --sql-port {port}",
        ),
        real(
            "TPC-C through kills",
            1_200,
            "python3 tests/tpcc.py --rounds 40 --warehouses 4 --customers 200 --sql-port {port}",
        ),
        real("partitions", 1_200, "python3 tests/partition.py --nodes 2 --replicas 2 --rounds 4"),
        real("campaign", 1_200, "python3 tests/campaign.py --minutes 12 --json {json}"),
        real("fuzzers", 2_400, "bash scripts/fuzz.sh all 300"),
        real("damaged files", 1_200, "python3 tests/damage.py --sql-port {port}"),
        real(
            "bad input",
            1_200,
            "python3 tests/with_cluster.py --sql-port {port} -- python3 tests/badinput.py --data-dir {data} --sql-port {port}",
        ),
    ];
    // What only has its turn there. The record has no commas.
    let by_turns = steps::by_turns().into_iter();
    parts.extend(
        by_turns
            .map(|step| real(&step.name.replace(',', ""), step.limit_s, &step.command.join(" "))),
    );
    parts
}

/// Goes on until the time is over.
pub(crate) fn soak(options: &Options) -> anyhow::Result<()> {
    let workplace = Workplace::new()?;
    let build = Step {
        name: "build".to_string(),
        command: vec!["bash".into(), "scripts/build_checked.sh".into(), PROFILE.into()],
        limit_s: 1_800,
        prepares: true,
    };
    let phase = |step| Phase { at_once: 1, of_processes: true, steps: vec![step] };
    if workplace.run(&phase(build), false)?.iter().any(|outcome| outcome.failed > 0) {
        bail!("the soak cannot begin: the build has failed");
    }
    let mut parts = parts();
    parts.retain(|part| options.only.as_ref().is_none_or(|text| part.name.contains(text.as_str())));
    if parts.is_empty() {
        bail!("no part of the soak has such a name");
    }
    let (begun, mut found) = (now(), 0);
    // Where the last one has stopped.
    let mut at = rows()?.len();
    let json = std::env::temp_dir().join(format!("latsdb-soak-{}.json", std::process::id()));
    while begun.elapsed() < Duration::from_secs_f64(60.0 * options.minutes) {
        let part = &parts[at % parts.len()];
        at += 1;
        let command = part.command.replace("{json}", &json.display().to_string());
        let step = Step {
            name: format!("soak: {}", part.name),
            command: command.split_whitespace().map(str::to_string).collect(),
            limit_s: part.limit_s,
            prepares: false,
        };
        let outcome = workplace.run(&phase(step), true)?.pop().context("the part did not run")?;
        let mut row = Row {
            commit: git(&["rev-parse", "--short", "HEAD"])?,
            date: git(&["log", "-1", "--format=%cs"])?,
            part: part.name.clone(),
            runs: outcome.passed + outcome.failed,
            minutes: outcome.seconds / 60.0,
            ..Row::default()
        };
        row.read_json(&json);
        if outcome.failed > 0 {
            found += 1;
            let folder = outcome.folder.display();
            row.findings =
                format!("{} see {folder}", row.findings).trim().replace([',', '\n'], ";");
        }
        append(&row)?;
        let _ = std::fs::remove_file(&json);
    }
    workplace.clear(found == 0)?;
    say(&format!("the sums are in {PAGE}; {found} parts have found something"));
    if found > 0 {
        bail!("the soak has found something: {RECORD} and the folders that it names say what");
    }
    Ok(())
}

impl Row {
    /// What the simulator or the campaign has written down.
    fn read_json(&mut self, path: &Path) {
        let Ok(text) = std::fs::read_to_string(path) else { return };
        let Ok(said) = serde_json::from_str::<Value>(&text) else { return };
        self.first_seed = said["first_seed"].to_string();
        self.runs = said["runs"].as_u64().unwrap_or_default();
        let faults = said["faults"].as_object().into_iter().flatten();
        self.faults = faults.map(|(k, n)| (k.clone(), n.as_u64().unwrap_or_default())).collect();
        let findings = said["findings"].as_array().into_iter().flatten();
        let findings: Vec<&str> = findings.filter_map(|f| f["repeat"].as_str()).collect();
        self.findings = findings.join("; ");
    }

    fn line(&self) -> String {
        let faults: Vec<String> = self.faults.iter().map(|(k, n)| format!("{k}={n}")).collect();
        format!(
            "{},{},{},{},{},{:.1},{},{}\n",
            self.commit,
            self.date,
            self.part,
            self.first_seed,
            self.runs,
            self.minutes,
            faults.join(";"),
            self.findings
        )
    }

    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.splitn(8, ',');
        let mut next = || fields.next().map(str::to_string);
        let (commit, date, part, first_seed) = (next()?, next()?, next()?, next()?);
        let (runs, minutes) = (next()?.parse().ok()?, next()?.parse().ok()?);
        let faults = next()?;
        let pairs = faults.split(';').filter_map(|one| one.split_once('='));
        let faults = pairs.filter_map(|(k, n)| Some((k.to_string(), n.parse().ok()?))).collect();
        Some(Self { commit, date, part, first_seed, runs, minutes, faults, findings: next()? })
    }
}

fn rows() -> anyhow::Result<Vec<Row>> {
    let kept = std::fs::read_to_string(root().join(RECORD)).unwrap_or_else(|_| HEAD.to_string());
    let parse = |line: &str| Row::parse(line).with_context(|| format!("{RECORD}: {line}"));
    kept.lines().skip(1).map(parse).collect()
}

fn append(row: &Row) -> anyhow::Result<()> {
    let path = root().join(RECORD);
    let kept = std::fs::read_to_string(&path).unwrap_or_else(|_| HEAD.to_string());
    std::fs::write(&path, kept + &row.line()).with_context(|| format!("writing {RECORD}"))?;
    write_page()
}

/// Writes the page of sums anew.
fn write_page() -> anyhow::Result<()> {
    let arguments = ["log", "-1", "--format=%h", "--"].into_iter().chain(PROTOCOLS);
    let since = git(&arguments.collect::<Vec<_>>())?;
    let is_later = |row: &Row| git(&["merge-base", "--is-ancestor", &since, &row.commit]).is_ok();
    let rows: Vec<Row> = rows()?.into_iter().filter(is_later).collect();
    std::fs::write(root().join(PAGE), page(&since, &rows))
        .with_context(|| format!("writing {PAGE}"))
}

fn page(since: &str, rows: &[Row]) -> String {
    let mut parts: BTreeMap<&str, (u64, f64, u64)> = BTreeMap::new();
    let (mut faults, mut real) = (BTreeMap::<&str, u64>::new(), BTreeMap::<&str, u64>::new());
    for row in rows {
        let sums = parts.entry(&row.part).or_default();
        *sums =
            (sums.0 + row.runs, sums.1 + row.minutes, sums.2 + u64::from(!row.findings.is_empty()));
        for (kind, n) in &row.faults {
            let sum = if row.part == CAMPAIGN { &mut real } else { &mut faults };
            let sum = sum.entry(kind.as_str()).or_default();
            // Times are no sums.
            *sum = if kind.ends_with("(ms)") { (*sum).max(*n) } else { *sum + n };
        }
    }
    let mut text = format!(
        "# Soak\n\n\
         The soak runs for hours what the checks run a slice of: `bash scripts/test.sh --long --minutes N`.\n\
         This page is written by it, from `docs/soak.csv`.\n\
         It has the sums since commit {since}, the last change of a protocol or of a block.\n\n\
         | part | runs | minutes | parts with findings |\n| --- | --- | --- | --- |\n"
    );
    for (part, (runs, minutes, findings)) in &parts {
        text += &format!("| {part} | {runs} | {minutes:.0} | {findings} |\n");
    }
    for (place, faults) in
        [("in the simulator", faults), ("of the campaign, on real processes", real)]
    {
        if faults.is_empty() {
            continue;
        }
        text += &format!("\n| fault {place} | times |\n| --- | --- |\n");
        for (kind, times) in faults {
            text += &format!("| {kind} | {times} |\n");
        }
    }
    let findings: Vec<&Row> = rows.iter().filter(|row| !row.findings.is_empty()).collect();
    if !findings.is_empty() {
        text += "\n| found at | part | what |\n| --- | --- | --- |\n";
        for row in findings {
            text += &format!("| {} | {} | {} |\n", row.commit, row.part, row.findings);
        }
    }
    text
}

#[test]
fn rows_are_read_as_they_are_written_and_summed_up() {
    let row = Row {
        commit: "abc1234".into(),
        date: "2026-03-01".into(),
        part: "storms".into(),
        first_seed: "17".into(),
        runs: 40,
        minutes: 4.5,
        faults: BTreeMap::from([("death".to_string(), 7), ("cut".to_string(), 2)]),
        findings: "cargo xtask sim --seed 17".into(),
    };
    let read = Row::parse(row.line().trim_end()).unwrap();
    assert_eq!(read, row);
    let text = page("abc1234", &[row.clone(), Row { findings: String::new(), ..row }]);
    assert!(text.contains("| storms | 80 | 9 | 1 |"), "{text}");
    assert!(text.contains("| death | 14 |"), "{text}");
    let faults = |ms| BTreeMap::from([("kill".to_string(), 3), ("longest (ms)".to_string(), ms)]);
    let campaign = |ms| Row { part: CAMPAIGN.into(), faults: faults(ms), ..Row::default() };
    let text = page("abc1234", &[campaign(20), campaign(70), campaign(50)]);
    assert!(text.contains("| kill | 9 |") && text.contains("| longest (ms) | 70 |"), "{text}");
}
