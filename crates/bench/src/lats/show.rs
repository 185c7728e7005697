//! What the gauge says: lines for people, and JSON.

use super::{
    LatsArgs,
    bins::{self, Bin},
    figures::{Measured, Sight, What, event_json, summary},
    ledger::Verdict,
};
use anyhow::Context;
use lats_base::Instant;
use serde_json::{Map, Value, json};
use std::{collections::BTreeMap, io::Write, path::Path};

/// All that was measured.
pub(super) struct Result<'a> {
    pub(super) args: &'a LatsArgs,
    pub(super) seed: u64,
    pub(super) begun: Instant,
    pub(super) bins: &'a [Bin],
    pub(super) events: &'a [Measured],
    pub(super) verdict: &'a Verdict,
    pub(super) errors: &'a [String],
    /// How late the loader itself began operations, in us: 50 %, 99 %, all.
    pub(super) late_us: [u64; 3],
}

/// Where figures are from.
const SOURCES: [(&str, &str); 6] = [
    (
        "detected",
        "what is named in `from`: a line of the log of a node, by its time, or the status of another node, asked each ms and so up to 2 ms late",
    ),
    (
        "view_agreed",
        "the first status of another node, asked each ms and so up to 2 ms late, that shows a view without this life of the node",
    ),
    (
        "first_commit",
        "the load: the first acknowledgement of an update that was sent after the event; with several node groups the others go on, and it may be theirs",
    ),
    (
        "longest_gap",
        "the load: the longest time without an acknowledged update from the event to the rejoin, or without an answer if nothing is updated",
    ),
    (
        "bins_under_70_percent",
        "the load: bins of 10 ms with fewer than 70 % of the median of answers in the second before the event",
    ),
    (
        "latency",
        "the load: from the moment an operation was due, by a plan made before, to its answer; temporary errors are retried each ms meanwhile",
    ),
];

/// A line about an event.
pub(super) fn event_line((event, figures): &Measured) -> String {
    let sight = |sight: &Option<Sight>| {
        sight.as_ref().map_or("not seen".to_string(), |s| format!("after {:.1} ms", s.ms))
    };
    let gap = format!(
        "longest gap {:.1} ms (before: {:.1}), {} bins under 70 %, 99 % of latencies {:.1} ms (before: {:.1})",
        figures.longest_gap_ms,
        figures.gap_before_ms,
        figures.few_bins,
        figures.latency[1],
        figures.latency_before[1]
    );
    let (node, what) = (event.node, event.what.name());
    if event.what == What::Rejoin {
        let (view, full) = (sight(&event.detected), sight(&event.agreed));
        return format!("{what} of node {node}: in the view {view}, full replica {full}, {gap}");
    }
    let agreed = match (&event.agreed, event.lasted_ms) {
        (None, Some(lasted)) => format!("not removed within {lasted:.0} ms"),
        (agreed, _) => format!("view agreed {}", sight(agreed)),
    };
    let first = figures.first_commit_ms.or(figures.first_answer_ms);
    let first = first.map_or("none".to_string(), |ms| format!("after {ms:.1} ms"));
    let of = if figures.first_commit_ms.is_some() { "commit" } else { "answer" };
    format!(
        "{what} of node {node}: detected {}, {agreed}, first {of} {first}, {gap}",
        sight(&event.detected)
    )
}

impl Result<'_> {
    fn by_kind(&self) -> BTreeMap<What, Vec<&Measured>> {
        let mut kinds: BTreeMap<What, Vec<&Measured>> = BTreeMap::new();
        self.events.iter().for_each(|one| kinds.entry(one.0.what).or_default().push(one));
        kinds
    }

    /// The table for people.
    pub(super) fn print(&self, out: &mut dyn Write) -> anyhow::Result<()> {
        for (what, events) in self.by_kind() {
            let head = format!("{}, {} times", what.name(), events.len());
            writeln!(out, "\n{head:<40} {:>9} {:>9} {:>9}", "median", "99 %", "worst")?;
            let updates = events.iter().any(|(_, figures)| figures.first_commit_ms.is_some());
            let shown = |name: &str| match name {
                "first_commit_ms" => updates && what != What::Rejoin,
                "first_answer_ms" => !updates && what != What::Rejoin,
                _ => true,
            };
            for (name, figures) in summary(&events).into_iter().filter(|(name, _)| shown(name)) {
                let Some(figures) = figures else {
                    writeln!(out, "{:<40} {:>29}", words(what, name), "not seen each time")?;
                    continue;
                };
                let [median, most, worst] = figures;
                writeln!(out, "{:<40} {median:>9.1} {most:>9.1} {worst:>9.1}", words(what, name))?;
            }
        }
        let sum = |of: fn(&Bin) -> u64| self.bins.iter().map(of).sum::<u64>();
        writeln!(
            out,
            "\n{} operations were due, {} were answered, {} failed, {} were not sent; {} attempts were made again",
            sum(|b| b.due),
            sum(|b| b.answers),
            sum(|b| b.errors),
            sum(|b| b.unsent),
            sum(|b| b.retries)
        )?;
        for error in self.errors {
            writeln!(out, "    {error}")?;
        }
        let [_, late, latest] = self.late_us;
        writeln!(
            out,
            "the loader began operations late by {late} us at 99 %, {latest} us at most: that is in all latencies"
        )?;
        for (what, from) in &SOURCES[..2] {
            writeln!(out, "{what}: {from}")?;
        }
        writeln!(out, "{}", self.verdict.words())?;
        out.flush()?;
        Ok(())
    }

    fn record(&self) -> Vec<(String, Value)> {
        let kinds = self.by_kind().into_iter().map(|(what, events)| {
            let mut figures = Map::new();
            figures.insert("count".into(), json!(events.len()));
            for (name, of) in summary(&events) {
                let of = of.map(|[median, most, worst]| json!({ "median": median, "p99": most, "worst": worst }));
                figures.insert(name.into(), json!(of));
            }
            (what.name().to_string(), Value::Object(figures))
        });
        let kinds: Map<String, Value> = kinds.collect();
        let events: Vec<Value> = self.events.iter().map(|e| event_json(e, self.begun)).collect();
        let sources = SOURCES.iter().map(|(name, from)| ((*name).to_string(), json!(from)));
        let [p50, p99, max] = self.late_us;
        let parts = [
            ("config", self.args.as_json(self.seed)),
            ("summary", Value::Object(kinds)),
            ("ledger", self.verdict.as_json()),
            ("events", json!(events)),
            ("errors", json!(self.errors)),
            ("loader_late_us", json!({ "p50": p50, "p99": p99, "max": max })),
            ("sources", Value::Object(sources.collect())),
            ("bins", bins::as_json(self.bins)),
        ];
        parts.into_iter().map(|(name, part)| (name.to_string(), part)).collect()
    }

    /// The whole as JSON: a line for each part, and for each column of the bins.
    pub(super) fn json(&self) -> String {
        let line = |name: &String, part: &Value| format!("{}: {part}", json!(name));
        let record = self.record();
        let parts = record.iter().map(|(name, part)| match part.as_object() {
            Some(columns) if name == "bins" => {
                let columns: Vec<String> =
                    columns.iter().map(|(name, column)| line(name, column)).collect();
                format!("{}: {{\n    {}\n  }}", json!(name), columns.join(",\n    "))
            }
            _ => line(name, part),
        });
        format!("{{\n  {}\n}}\n", parts.collect::<Vec<_>>().join(",\n  "))
    }

    pub(super) fn write_json(&self, path: &Path) -> anyhow::Result<()> {
        let written = std::fs::write(path, self.json());
        written.with_context(|| format!("cannot write {}", path.display()))
    }
}

/// What a figure is, for a person.
fn words(what: What, name: &str) -> &'static str {
    match (name, what) {
        ("detected_ms", What::Rejoin) => "  start to a place in the view, ms",
        ("detected_ms", _) => "  event to its detection, ms",
        ("view_agreed_ms", What::Rejoin) => "  start to a full replica, ms",
        ("view_agreed_ms", _) => "  event to a view without it, ms",
        ("first_commit_ms", _) => "  event to the first commit, ms",
        ("first_answer_ms", _) => "  event to the first answer, ms",
        ("longest_gap_ms", _) => "  longest gap, ms",
        ("bins_under_70_percent", _) => "  bins under 70 % of the median",
        ("max_ms", _) => "  worst latency meanwhile, ms",
        _ => "  99 % of latencies meanwhile, ms",
    }
}
