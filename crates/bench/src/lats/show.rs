//! What the gauge says: lines for people, and JSON.

use super::{
    LatsArgs,
    bins::{self, Bin},
    figures::{Figures, Gap, Measured, Sight, What, event_json, ms, summary},
    ledger::Verdict,
    load::{End, Open},
    spread::Spread,
    timeline::Timeline,
};
use anyhow::Context;
use lats_base::Instant;
use serde_json::{Map, Value, json};
use std::{collections::BTreeMap, io::Write, path::Path};

/// So many operations that have not come back are listed.
const OPEN_MAX: usize = 100;

/// What the whole run shows.
#[derive(Debug, PartialEq)]
pub(super) struct Whole {
    operations: u64,
    answers: u64,
    errors: u64,
    unsent: u64,
    retries: u64,
    open: u64,
    /// From the beginning to the end of the last operation; where one has none, to the moment from which on nobody waited for it.
    gap: Gap,
    /// The oldest of those that are open.
    oldest: Vec<OpenSeen>,
}

/// An operation that has not come back.
#[derive(Clone, Copy, Debug, PartialEq)]
struct OpenSeen {
    due_ms: f64,
    age_ms: f64,
    updates: bool,
    row: u64,
    retries: u32,
}

impl OpenSeen {
    fn kind(&self) -> &'static str {
        if self.updates { "update" } else { "read" }
    }

    fn as_json(&self) -> Value {
        let Self { due_ms, age_ms, row, retries, .. } = *self;
        json!({ "due_ms": due_ms, "age_ms": age_ms, "what": self.kind(), "row": row, "retries": retries })
    }
}

impl Whole {
    pub(super) fn of(
        timeline: &Timeline,
        open: &[Open],
        (begun, until): (Instant, Instant),
        seen_at: Instant,
    ) -> Self {
        let all = timeline.all();
        let count = |end: End| all.iter().filter(|r| r.end == end).count() as u64;
        let mut oldest: Vec<&Open> = open.iter().collect();
        oldest.sort_by_key(|open| open.due);
        let seen = |open: &&Open| OpenSeen {
            due_ms: ms(open.due.since(begun)),
            age_ms: ms(seen_at.since(open.due)),
            updates: open.updates,
            row: open.row,
            retries: open.retries,
        };
        let last = all.iter().map(|r| r.ended).max().unwrap_or(until);
        Self {
            operations: all.len() as u64,
            answers: count(End::Done),
            errors: count(End::Refused) + count(End::Unknown),
            unsent: count(End::Unsent),
            retries: all.iter().map(|r| u64::from(r.retries)).sum(),
            open: open.len() as u64,
            gap: Gap::of(timeline, (begun, until.max(last))),
            oldest: oldest.iter().take(OPEN_MAX).map(seen).collect(),
        }
    }

    fn as_json(&self) -> Value {
        json!({
            "operations": self.operations,
            "answers": self.answers,
            "errors": self.errors,
            "unsent": self.unsent,
            "retries": self.retries,
            "open": self.open,
            "oldest_open_ms": self.oldest.first().map(|open| open.age_ms),
            "oldest_open": self.oldest.iter().map(OpenSeen::as_json).collect::<Vec<_>>(),
            "longest_gap_ms": self.gap.ms,
            "gap_at_ms": self.gap.at_ms,
        })
    }

    /// For a person.
    fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!(
            "{} operations were due, {} were answered, {} failed, {} were not sent; {} attempts were made again",
            self.operations, self.answers, self.errors, self.unsent, self.retries
        )];
        if let Some(oldest) = self.oldest.first() {
            lines.push(format!(
                "{} operations NEVER CAME BACK; the oldest, {} of row {}, was due after {:.0} ms and is {:.0} ms old",
                self.open,
                if oldest.updates { "an update" } else { "a read" },
                oldest.row,
                oldest.due_ms,
                oldest.age_ms
            ));
        }
        lines.push(format!(
            "longest gap of the whole run: {:.1} ms, from {:.0} ms on",
            self.gap.ms, self.gap.at_ms
        ));
        lines
    }
}

/// All that was measured.
pub(super) struct Result<'a> {
    pub(super) args: &'a LatsArgs,
    pub(super) seed: u64,
    pub(super) begun: Instant,
    pub(super) bins: &'a [Bin],
    pub(super) events: &'a [Measured],
    pub(super) whole: Whole,
    /// None if the rows could not be read.
    pub(super) verdict: Option<&'a Verdict>,
    pub(super) errors: &'a [String],
    /// How late the loader itself began operations, in us.
    pub(super) late_us: Option<Spread<u64>>,
}

/// Where figures are from.
const SOURCES: [(&str, &str); 7] = [
    (
        "detected",
        "the log: the first line in which the leader says that the cluster is to go on without the node, by its time; if the node was not removed, \
         the first status in which another node does not hear it",
    ),
    (
        "view_agreed",
        "the log: the first line in which a node goes on by a view without this life of the node, by its time",
    ),
    (
        "from",
        "which line or status it was; a status is asked for again 1 ms or more after all other nodes have answered, and what it shows came about \
         at that node between `not_yet_ms` and `ms`",
    ),
    (
        "first_commit",
        "the load: the first acknowledgement of an update that was sent after the event; with several node groups the others go on, and it may be theirs",
    ),
    (
        "longest_gap",
        "the load: the longest time without an acknowledged update from the event to the rejoin, or without an answer if nothing is updated; of the \
         whole run: also while open operations were waited for at the end",
    ),
    (
        "bins_under_70_percent",
        "the load: bins of 10 ms with fewer than 70 % of the median of answers in the second before the event",
    ),
    (
        "latency",
        "the load: from the moment an operation was due, by a plan made before, to its answer; temporary errors are retried each ms meanwhile; what \
         is open at the end counts with its age; of fewer than 100 values there is no 99 %",
    ),
];

/// A line about an event.
pub(super) fn event_line((event, figures): &Measured) -> String {
    let sight = |sight: &Option<Sight>| {
        sight.as_ref().map_or("not seen".to_string(), |s| format!("after {:.1} ms", s.ms))
    };
    let gap = load_words(figures);
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
    let detected = match &event.detected {
        None => "not detected".to_string(),
        detected => format!("detected {}", sight(detected)),
    };
    format!("{what} of node {node}: {detected}, {agreed}, first {of} {first}, {gap}")
}

/// What an event did to the load.
fn load_words(figures: &Figures) -> String {
    let latency = |latency: Option<Spread<f64>>| match latency {
        None => "none".to_string(),
        Some(Spread { p99: Some(p99), worst, .. }) => format!("{p99:.1} (99 %), {worst:.1} ms"),
        Some(Spread { median, worst, .. }) => format!("{median:.1} (median), {worst:.1} ms"),
    };
    let open = match figures.open {
        0 => String::new(),
        open => format!(
            ", {open} operations have NOT COME BACK, the oldest for {:.0} ms",
            figures.oldest_open_ms
        ),
    };
    format!(
        "longest gap {:.1} ms (before: {:.1}), {} bins under 70 %, latencies to {} (before: {}){open}",
        figures.gap.ms,
        figures.gap_before_ms,
        figures.few_bins,
        latency(figures.latency),
        latency(figures.latency_before)
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
            print_kind(what, &events, out)?;
        }
        writeln!(out)?;
        for line in self.whole.lines() {
            writeln!(out, "{line}")?;
        }
        for error in self.errors {
            writeln!(out, "    {error}")?;
        }
        if let Some(late) = self.late_us {
            let most = late.p99.map_or(String::new(), |p99| format!("{p99} us at 99 %, "));
            writeln!(
                out,
                "the loader began operations late by {most}{} us at most: that is in all latencies",
                late.worst
            )?;
        }
        for (what, from) in &SOURCES[..2] {
            writeln!(out, "{what}: {from}")?;
        }
        let unknown = || "ledger: NOT CHECKED; the rows could not be read".to_string();
        writeln!(out, "{}", self.verdict.map_or_else(unknown, Verdict::words))?;
        out.flush()?;
        Ok(())
    }

    fn record(&self) -> Vec<(String, Value)> {
        let kinds = self.by_kind().into_iter().map(|(what, events)| {
            let mut figures = Map::new();
            figures.insert("count".into(), json!(events.len()));
            for (name, of) in summary(&events) {
                let of = of.map(|of| of.as_json(["median", "p99", "worst"]));
                figures.insert(name.into(), json!(of));
            }
            (what.name().to_string(), Value::Object(figures))
        });
        let kinds: Map<String, Value> = kinds.collect();
        let events: Vec<Value> = self.events.iter().map(|e| event_json(e, self.begun)).collect();
        let sources = SOURCES.iter().map(|(name, from)| ((*name).to_string(), json!(from)));
        let late = self.late_us.map(|late| late.as_json(["p50", "p99", "max"]));
        let parts = [
            ("config", self.args.as_json(self.seed)),
            ("summary", Value::Object(kinds)),
            ("load", self.whole.as_json()),
            ("ledger", json!(self.verdict.map(Verdict::as_json))),
            ("events", json!(events)),
            ("errors", json!(self.errors)),
            ("loader_late_us", json!(late)),
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

/// What the events of a kind have in common. The 99th percentile of few events would be the worst one.
fn print_kind(what: What, events: &[&Measured], out: &mut dyn Write) -> anyhow::Result<()> {
    let updates = events.iter().any(|(_, figures)| figures.first_commit_ms.is_some());
    let shown = |name: &str| match name {
        "first_commit_ms" => updates && what != What::Rejoin,
        "first_answer_ms" => !updates && what != What::Rejoin,
        _ => true,
    };
    let mut summary = summary(events);
    summary.retain(|(name, of)| shown(name) && (*name != "p99_ms" || of.is_some()));
    let has_p99 = summary.iter().any(|(_, of)| of.is_some_and(|of| of.p99.is_some()));
    let head = format!("{}, {} times", what.name(), events.len());
    let most = if has_p99 { "     99 %" } else { "" };
    writeln!(out, "\n{head:<40} {:>9} {most} {:>9}", "median", "worst")?;
    for (name, of) in summary {
        let words = words(what, name);
        let Some(Spread { median, p99, worst }) = of else {
            writeln!(out, "{words:<40} {:>29}", "not seen each time")?;
            continue;
        };
        let most = p99.map_or(String::new(), |p99| format!("{p99:>9.1}"));
        writeln!(out, "{words:<40} {median:>9.1} {most} {worst:>9.1}")?;
    }
    Ok(())
}

/// What a figure is, for a person.
fn words(what: What, name: &str) -> &'static str {
    match (name, what) {
        ("detected_ms", What::Rejoin) => "  start to a place in the view, ms",
        ("detected_ms", _) => "  event to the decision to go on, ms",
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

#[cfg(test)]
mod tests {
    use super::{
        super::{bins::tests::record, load::Record},
        *,
    };

    fn at(ms: u64) -> Instant {
        Instant::ZERO.plus(lats_base::Duration::from_millis(ms))
    }

    #[test]
    fn an_open_operation_is_in_the_gap_the_json_and_the_text() {
        let mut all: Vec<Record> = (0..100).map(|ms| record(ms, ms, true, End::Done)).collect();
        all.push(record(40, 5_000, true, End::Open));
        let open = [Open::planned(at(40), true, 7)];
        let timeline = Timeline::new(all);
        let whole = Whole::of(&timeline, &open, (at(0), at(100)), at(5_000));
        assert_eq!((whole.operations, whole.answers, whole.open), (101, 100, 1));
        assert_eq!(whole.gap, Gap { ms: 4_901.0, at_ms: 99.0 });
        let json = whole.as_json();
        assert_eq!((&json["open"], &json["oldest_open_ms"]), (&json!(1), &json!(4_960.0)));
        assert_eq!(json["oldest_open"][0]["row"], 7);
        let lines = whole.lines().join("\n");
        for words in ["1 operations NEVER CAME BACK", "row 7", "4960 ms old", "4901.0 ms"] {
            assert!(lines.contains(words), "{words}: {lines}");
        }
        let answered: Vec<Record> =
            timeline.all().iter().filter(|r| r.end == End::Done).copied().collect();
        let none = Whole::of(&Timeline::new(answered), &[], (at(0), at(100)), at(5_000));
        assert_eq!((none.gap.ms, none.lines().len()), (1.0, 2));
        assert_eq!(none.as_json()["oldest_open_ms"], Value::Null);
    }

    #[test]
    fn the_line_of_an_event_says_what_has_not_come_back() {
        let figures = Figures { open: 3, oldest_open_ms: 1_234.0, ..Figures::default() };
        assert!(
            load_words(&figures)
                .contains("3 operations have NOT COME BACK, the oldest for 1234 ms")
        );
        assert!(!load_words(&Figures::default()).contains("COME BACK"));
    }

    #[test]
    fn few_events_have_no_column_of_99_percent() {
        let event = || {
            let event = super::super::figures::tests::event(0, 10);
            (event, Figures { first_commit_ms: Some(2.0), ..Figures::default() })
        };
        for (count, has_p99) in [(20, false), (100, true)] {
            let all: Vec<Measured> = (0..count).map(|_| event()).collect();
            let mut out = Vec::new();
            print_kind(What::Kill, &all.iter().collect::<Vec<_>>(), &mut out).unwrap();
            let text = String::from_utf8(out).unwrap();
            let head = text.lines().nth(1).unwrap();
            assert_eq!(head.contains("99 %"), has_p99, "{text}");
        }
    }
}
