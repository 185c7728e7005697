//! What each event did to the load: from the records of its operations, and from what nodes said of it.

use super::{
    bins::{WIDTH, bins, quantile},
    load::{End, Record},
};
use lats_base::{Duration, Instant};
use serde_json::{Map, Value, json};

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum What {
    Kill,
    Freeze,
    Silent,
    /// A node that was away starts again.
    Rejoin,
}

impl What {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Freeze => "freeze",
            Self::Silent => "silent",
            Self::Rejoin => "rejoin",
        }
    }
}

/// When something was seen, and by whom.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sight {
    /// After the event.
    pub(super) ms: f64,
    /// Where the figure is from.
    pub(super) from: String,
}

/// An event.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) what: What,
    pub(super) node: u16,
    pub(super) at: Instant,
    /// What is measured of it ends here.
    pub(super) until: Instant,
    /// A time that was asked for, after the beginning.
    pub(super) planned_s: Option<f64>,
    /// Nodes have taken note of it; a rejoin: the node is in the view.
    pub(super) detected: Option<Sight>,
    /// A view that was agreed shows it; a rejoin: the node is a full replica.
    pub(super) agreed: Option<Sight>,
    pub(super) view: Option<u64>,
    /// How long the node was frozen or cut off, in ms.
    pub(super) lasted_ms: Option<f64>,
}

/// Bins with less than this part of the median before are counted.
const FEW: f64 = 0.7;
/// So much before an event is what it is compared with.
const BEFORE: Duration = Duration::from_millis(1_000);

/// What the load shows of an event. Times in ms; none if nothing was answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Figures {
    /// The first of the updates that were sent after it was acknowledged.
    pub(super) first_commit_ms: Option<f64>,
    pub(super) first_answer_ms: Option<f64>,
    /// The longest time without an acknowledged update (without an answer, if nothing is updated), and when it began.
    pub(super) longest_gap_ms: f64,
    pub(super) gap_at_ms: f64,
    /// The same in as long a time before.
    pub(super) gap_before_ms: f64,
    pub(super) window_ms: f64,
    pub(super) median_before: u64,
    pub(super) few_bins: u64,
    pub(super) dark_bins: u64,
    pub(super) errors: u64,
    pub(super) unsent: u64,
    pub(super) retries: u64,
    /// 50 %, 99 % and all, in ms.
    pub(super) latency_before: [f64; 3],
    pub(super) latency: [f64; 3],
}

fn ms(span: Duration) -> f64 {
    (span.as_nanos() / 1_000) as f64 / 1_000.0
}

impl Figures {
    /// `begun` is when the bins begin; the bin in which the event is counts as one after it.
    pub(super) fn of(event: &Event, begun: Instant, records: &[Record]) -> Self {
        let (at, until) = (event.at, event.until);
        let window = until.since(at);
        let back = |span: Duration| {
            Instant::from_nanos(at.as_nanos().saturating_sub(span.as_nanos())).max(begun)
        };
        let updates = records.iter().any(|r| r.updates && r.end == End::Done);
        let first = |commits: bool| {
            let sent_since = records
                .iter()
                .filter(|r| r.sent >= at && r.end == End::Done && (r.updates || !commits));
            sent_since.map(|r| r.ended).min().map(|ended| ms(ended.since(at)))
        };
        let gap = longest_gap(records, updates, (at, until));
        let before = longest_gap(records, updates, (back(window), at));
        let within = |r: &&Record| r.due >= at && r.due < until;
        let failed =
            |end: End| records.iter().filter(within).filter(|r| r.end == end).count() as u64;
        let all = bins(records, begun, until);
        let bin = |at: Instant| (at.since(begun).as_nanos() / WIDTH.as_nanos()) as usize;
        let (before_it, since) = all.split_at(bin(at).min(all.len()));
        let calm = before_it.iter().skip(bin(back(BEFORE))).map(|b| b.answers);
        let mut answers: Vec<u64> = calm.collect();
        answers.sort_unstable();
        let median_before = quantile(&answers, 0.5).unwrap_or_default();
        let few = |answers: u64| (answers as f64) < FEW * median_before as f64;
        Self {
            first_commit_ms: first(true),
            first_answer_ms: first(false),
            longest_gap_ms: ms(gap.1),
            gap_at_ms: ms(gap.0.since(at)),
            gap_before_ms: ms(before.1),
            window_ms: ms(window),
            median_before,
            few_bins: since.iter().filter(|b| few(b.answers)).count() as u64,
            dark_bins: since.iter().filter(|b| b.answers == 0).count() as u64,
            errors: failed(End::Refused) + failed(End::Unknown),
            unsent: failed(End::Unsent),
            retries: records.iter().filter(within).map(|r| u64::from(r.retries)).sum(),
            latency_before: latency(records, (back(BEFORE), at)),
            latency: latency(records, (at, until)),
        }
    }

    fn as_json(&self) -> Map<String, Value> {
        let latency =
            |[p50, p99, max]: [f64; 3]| json!({ "p50_ms": p50, "p99_ms": p99, "max_ms": max });
        let record = json!({
            "first_commit_ms": self.first_commit_ms,
            "first_answer_ms": self.first_answer_ms,
            "longest_gap_ms": self.longest_gap_ms,
            "gap_at_ms": self.gap_at_ms,
            "gap_before_ms": self.gap_before_ms,
            "window_ms": self.window_ms,
            "median_answers_of_a_bin_before": self.median_before,
            "bins_under_70_percent": self.few_bins,
            "bins_without_answers": self.dark_bins,
            "errors": self.errors,
            "unsent": self.unsent,
            "retries": self.retries,
            "latency_before": latency(self.latency_before),
            "latency": latency(self.latency),
        });
        record.as_object().cloned().unwrap_or_default()
    }
}

/// When the longest time without an acknowledgement began, and how long it was.
fn longest_gap(
    records: &[Record],
    updates_only: bool,
    (from, until): (Instant, Instant),
) -> (Instant, Duration) {
    let done = records.iter().filter(|r| r.end == End::Done && (r.updates || !updates_only));
    let within = done.map(|r| r.ended).filter(|ended| *ended > from && *ended < until);
    let mut times: Vec<Instant> = [from, until].into_iter().chain(within).collect();
    times.sort_unstable();
    let gaps = times.windows(2).map(|pair| (pair[0], pair[1].since(pair[0])));
    gaps.max_by_key(|(_, gap)| *gap).unwrap_or((from, Duration::ZERO))
}

fn latency(records: &[Record], (from, until): (Instant, Instant)) -> [f64; 3] {
    let due = records.iter().filter(|r| r.end == End::Done && r.due >= from && r.due < until);
    let mut times: Vec<Duration> = due.map(|r| r.ended.since(r.due)).collect();
    times.sort_unstable();
    [0.5, 0.99, 1.0].map(|part| quantile(&times, part).map_or(0.0, ms))
}

/// An event with its figures.
pub(super) type Measured = (Event, Figures);

pub(super) fn event_json((event, figures): &Measured, begun: Instant) -> Value {
    let sight = |sight: &Option<Sight>| {
        sight.as_ref().map(|sight| json!({ "ms": sight.ms, "from": sight.from }))
    };
    let mut record = figures.as_json();
    let (detected, agreed) = match event.what {
        What::Rejoin => ("in_view", "full_replica"),
        _ => ("detected", "view_agreed"),
    };
    record.insert("what".into(), json!(event.what.name()));
    record.insert("node".into(), json!(event.node));
    record.insert("at_ms".into(), json!(ms(event.at.since(begun))));
    record.insert("planned_s".into(), json!(event.planned_s));
    record.insert("lasted_ms".into(), json!(event.lasted_ms));
    record.insert("view".into(), json!(event.view));
    record.insert(detected.into(), json!(sight(&event.detected)));
    record.insert(agreed.into(), json!(sight(&event.agreed)));
    Value::Object(record)
}

/// What several events of a kind have in common: name of a figure, and its median, 99 % and worst.
pub(super) fn summary(of: &[&Measured]) -> Vec<(&'static str, Option<[f64; 3]>)> {
    type Figure = fn(&Measured) -> Option<f64>;
    let figures: [(&'static str, Figure); 8] = [
        ("detected_ms", |(e, _)| e.detected.as_ref().map(|s| s.ms)),
        ("view_agreed_ms", |(e, _)| e.agreed.as_ref().map(|s| s.ms)),
        ("first_commit_ms", |(_, f)| f.first_commit_ms),
        ("first_answer_ms", |(_, f)| f.first_answer_ms),
        ("longest_gap_ms", |(_, f)| Some(f.longest_gap_ms)),
        ("bins_under_70_percent", |(_, f)| Some(f.few_bins as f64)),
        ("p99_ms", |(_, f)| Some(f.latency[1])),
        ("max_ms", |(_, f)| Some(f.latency[2])),
    ];
    let over_all = |figure: Figure| {
        let mut all: Vec<f64> = of.iter().filter_map(|one| figure(one)).collect();
        all.sort_by(f64::total_cmp);
        // One that was never seen is worse than all others.
        let whole = all.len() == of.len() && !all.is_empty();
        whole.then(|| [0.5, 0.99, 1.0].map(|part| quantile(&all, part).unwrap_or_default()))
    };
    figures.into_iter().map(|(name, figure)| (name, over_all(figure))).collect()
}

#[cfg(test)]
mod tests {
    use super::{super::bins::tests::record, *};

    fn at(ms: u64) -> Instant {
        Instant::ZERO.plus(Duration::from_millis(ms))
    }

    fn event(from: u64, until: u64) -> Event {
        Event {
            what: What::Kill,
            node: 2,
            at: at(from),
            until: at(until),
            planned_s: None,
            detected: None,
            agreed: None,
            view: None,
            lasted_ms: None,
        }
    }

    /// An answer each ms, with none from 1,000 to 1,033 but for what was due then and was answered afterwards.
    fn records() -> Vec<Record> {
        let ended = |due: u64| if (1_000..1_033).contains(&due) { 1_033 } else { due };
        (0..2_000).map(|due| record(due, ended(due), due % 2 == 0, End::Done)).collect()
    }

    #[test]
    fn a_hole_is_measured_from_the_event_on() {
        let figures = Figures::of(&event(1_000, 1_500), Instant::ZERO, &records());
        assert_eq!(figures.first_commit_ms, Some(33.0));
        assert_eq!((figures.longest_gap_ms, figures.gap_at_ms), (33.0, 0.0));
        assert_eq!(figures.gap_before_ms, 2.0);
        assert_eq!((figures.median_before, figures.few_bins, figures.dark_bins), (10, 3, 3));
        assert_eq!(figures.latency_before, [0.0, 0.0, 0.0]);
        assert_eq!((figures.latency[0], figures.latency[2]), (0.0, 33.0));
    }

    #[test]
    fn what_was_sent_before_the_event_is_no_first_commit() {
        let some = [record(999, 1_001, true, End::Done), record(1_002, 1_020, true, End::Done)];
        let figures = Figures::of(&event(1_000, 1_500), Instant::ZERO, &some);
        assert_eq!((figures.first_commit_ms, figures.first_answer_ms), (Some(20.0), Some(20.0)));
        assert_eq!(figures.longest_gap_ms, 480.0);
        let none = Figures::of(&event(1_000, 1_500), Instant::ZERO, &some[..1]);
        assert_eq!(none.first_commit_ms, None);
    }

    #[test]
    fn the_worst_of_several_shows_and_one_without_an_end_leaves_no_figure() {
        let measured = |first: Option<f64>| {
            (event(0, 10), Figures { first_commit_ms: first, ..Figures::default() })
        };
        let all = [measured(Some(3.0)), measured(Some(50.0)), measured(Some(1.0))];
        let of = |all: &[Measured]| {
            let summary = summary(&all.iter().collect::<Vec<_>>());
            summary.into_iter().find(|(name, _)| *name == "first_commit_ms").unwrap().1
        };
        assert_eq!(of(&all), Some([3.0, 50.0, 50.0]));
        assert_eq!(of(&[measured(Some(1.0)), measured(None)]), None);
    }
}
