//! What each event did to the load: from the records of its operations, and from what nodes said of it.

use super::{
    bins,
    load::End,
    spread::{Spread, quantile},
    timeline::Timeline,
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
    /// It was not so yet when somebody asked for the state before; none if nobody needs to ask.
    pub(super) not_yet_ms: Option<f64>,
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
    /// The cluster is to go on without the node; or, if it does not, the node is not heard. A rejoin: the node is in the view.
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
pub(super) const BEFORE: Duration = Duration::from_millis(1_000);

/// What the load shows of an event. Times in ms; none if nothing was answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Figures {
    /// The first of the updates that were sent after it was acknowledged.
    pub(super) first_commit_ms: Option<f64>,
    pub(super) first_answer_ms: Option<f64>,
    pub(super) gap: Gap,
    /// The same in as long a time before.
    pub(super) gap_before_ms: f64,
    pub(super) window_ms: f64,
    pub(super) median_before: u64,
    pub(super) few_bins: u64,
    pub(super) dark_bins: u64,
    pub(super) errors: u64,
    pub(super) unsent: u64,
    /// Operations that have not come back, and how old the oldest is.
    pub(super) open: u64,
    pub(super) oldest_open_ms: f64,
    pub(super) retries: u64,
    /// In ms. What has not come back counts with its age.
    pub(super) latency_before: Option<Spread<f64>>,
    pub(super) latency: Option<Spread<f64>>,
}

/// The longest time without an acknowledged update (without an answer, if nothing is updated), and when it began.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Gap {
    pub(super) ms: f64,
    /// After the beginning of the time that was looked at.
    pub(super) at_ms: f64,
}

impl Gap {
    /// In this span.
    pub(super) fn of(timeline: &Timeline, (from, until): (Instant, Instant)) -> Self {
        let mut longest = (from, Duration::ZERO);
        let mut last = from;
        let ends = timeline.acknowledged((from, until)).map(|r| r.ended);
        for ended in ends.chain([until]) {
            if ended.since(last) > longest.1 {
                longest = (last, ended.since(last));
            }
            last = ended;
        }
        Self { ms: ms(longest.1), at_ms: ms(longest.0.since(from)) }
    }
}

pub(super) fn ms(span: Duration) -> f64 {
    (span.as_nanos() / 1_000) as f64 / 1_000.0
}

impl Figures {
    /// `begun` is when the bins begin; the bin in which the event is counts as one after it.
    pub(super) fn of(event: &Event, begun: Instant, timeline: &Timeline) -> Self {
        let (at, until) = (event.at, event.until);
        let window = until.since(at);
        let back = |span: Duration| {
            Instant::from_nanos(at.as_nanos().saturating_sub(span.as_nanos())).max(begun)
        };
        let after = |ended: Instant| ms(ended.since(at));
        let within = timeline.due((at, until));
        let ended_so = |end: End| within.iter().filter(move |r| r.end == end);
        let failed = |end: End| ended_so(end).count() as u64;
        let bin = |at: Instant| bins::number(at, begun);
        let (first, middle, last) = (bin(back(BEFORE)), bin(at), bin(until).max(bin(at)));
        let mut calm = bins::answers(timeline, begun, first..middle);
        let since = bins::answers(timeline, begun, middle..last);
        calm.sort_unstable();
        let median_before = quantile(&calm, 0.5).unwrap_or_default();
        let few = |answers: u64| (answers as f64) < FEW * median_before as f64;
        let ages = ended_so(End::Open).map(|r| r.ended.since(r.due));
        Self {
            first_commit_ms: timeline.first_commit(at).map(after),
            first_answer_ms: timeline.first_answer(at).map(after),
            gap: Gap::of(timeline, (at, until)),
            gap_before_ms: Gap::of(timeline, (back(window), at)).ms,
            window_ms: ms(window),
            median_before,
            few_bins: since.iter().filter(|answers| few(**answers)).count() as u64,
            dark_bins: since.iter().filter(|answers| **answers == 0).count() as u64,
            errors: failed(End::Refused) + failed(End::Unknown),
            unsent: failed(End::Unsent),
            open: failed(End::Open),
            oldest_open_ms: ms(ages.max().unwrap_or(Duration::ZERO)),
            retries: within.iter().map(|r| u64::from(r.retries)).sum(),
            latency_before: latency(timeline, (back(BEFORE), at)),
            latency: latency(timeline, (at, until)),
        }
    }

    fn as_json(&self) -> Map<String, Value> {
        let latency = |latency: Option<Spread<f64>>| {
            latency.map(|latency| latency.as_json(["p50_ms", "p99_ms", "max_ms"]))
        };
        let record = json!({
            "first_commit_ms": self.first_commit_ms,
            "first_answer_ms": self.first_answer_ms,
            "longest_gap_ms": self.gap.ms,
            "gap_at_ms": self.gap.at_ms,
            "gap_before_ms": self.gap_before_ms,
            "window_ms": self.window_ms,
            "median_answers_of_a_bin_before": self.median_before,
            "bins_under_70_percent": self.few_bins,
            "bins_without_answers": self.dark_bins,
            "errors": self.errors,
            "unsent": self.unsent,
            "open": self.open,
            "oldest_open_ms": (self.open > 0).then_some(self.oldest_open_ms),
            "retries": self.retries,
            "latency_before": latency(self.latency_before),
            "latency": latency(self.latency),
        });
        record.as_object().cloned().unwrap_or_default()
    }
}

fn latency(timeline: &Timeline, span: (Instant, Instant)) -> Option<Spread<f64>> {
    let waited = timeline.due(span).iter().filter(|r| matches!(r.end, End::Done | End::Open));
    let mut times: Vec<f64> = waited.map(|r| ms(r.ended.since(r.due))).collect();
    times.sort_unstable_by(f64::total_cmp);
    Spread::of(&times)
}

/// An event with its figures.
pub(super) type Measured = (Event, Figures);

pub(super) fn event_json((event, figures): &Measured, begun: Instant) -> Value {
    let sight = |sight: &Option<Sight>| {
        sight.as_ref().map(|s| json!({ "ms": s.ms, "not_yet_ms": s.not_yet_ms, "from": s.from }))
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

/// What several events of a kind have in common: the name of a figure, and how it is spread; none if an event has no such figure.
pub(super) fn summary(of: &[&Measured]) -> Vec<(&'static str, Option<Spread<f64>>)> {
    type Figure = fn(&Measured) -> Option<f64>;
    let figures: [(&'static str, Figure); 8] = [
        ("detected_ms", |(e, _)| e.detected.as_ref().map(|s| s.ms)),
        ("view_agreed_ms", |(e, _)| e.agreed.as_ref().map(|s| s.ms)),
        ("first_commit_ms", |(_, f)| f.first_commit_ms),
        ("first_answer_ms", |(_, f)| f.first_answer_ms),
        ("longest_gap_ms", |(_, f)| Some(f.gap.ms)),
        ("bins_under_70_percent", |(_, f)| Some(f.few_bins as f64)),
        ("p99_ms", |(_, f)| f.latency?.p99),
        ("max_ms", |(_, f)| Some(f.latency?.worst)),
    ];
    let over_all = |figure: Figure| {
        let mut all: Vec<f64> = of.iter().filter_map(|one| figure(one)).collect();
        all.sort_unstable_by(f64::total_cmp);
        // One that was never seen is worse than all others.
        Spread::of(&all).filter(|_| all.len() == of.len())
    };
    figures.into_iter().map(|(name, figure)| (name, over_all(figure))).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::{
        super::{bins::tests::record, load::Record},
        *,
    };

    fn at(ms: u64) -> Instant {
        Instant::ZERO.plus(Duration::from_millis(ms))
    }

    pub(in super::super) fn event(from: u64, until: u64) -> Event {
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

    fn figures(records: &[Record]) -> Figures {
        Figures::of(&event(1_000, 1_500), Instant::ZERO, &Timeline::new(records.to_vec()))
    }

    /// An answer each ms, with none from 1,000 to 1,033 but for what was due then and was answered afterwards.
    fn records() -> Vec<Record> {
        let ended = |due: u64| if (1_000..1_033).contains(&due) { 1_033 } else { due };
        (0..2_000).map(|due| record(due, ended(due), due % 2 == 0, End::Done)).collect()
    }

    #[test]
    fn a_hole_is_measured_from_the_event_on() {
        let figures = figures(&records());
        assert_eq!(figures.first_commit_ms, Some(33.0));
        assert_eq!(figures.gap, Gap { ms: 33.0, at_ms: 0.0 });
        assert_eq!(figures.gap_before_ms, 2.0);
        assert_eq!((figures.median_before, figures.few_bins, figures.dark_bins), (10, 3, 3));
        let none = Spread { median: 0.0, p99: Some(0.0), worst: 0.0 };
        assert_eq!(figures.latency_before, Some(none));
        assert_eq!(figures.latency, Some(Spread { p99: Some(28.0), worst: 33.0, ..none }));
    }

    #[test]
    fn what_was_sent_before_the_event_is_no_first_commit() {
        let some = [record(999, 1_001, true, End::Done), record(1_002, 1_020, true, End::Done)];
        let both = figures(&some);
        assert_eq!((both.first_commit_ms, both.first_answer_ms), (Some(20.0), Some(20.0)));
        assert_eq!(both.gap.ms, 480.0);
        assert_eq!(figures(&some[..1]).first_commit_ms, None);
    }

    #[test]
    fn what_never_comes_back_shows_in_latency_gap_and_number() {
        // All updates hang from the event on, and reads go on.
        let mut some = records();
        for hung in some.iter_mut().filter(|r| r.updates && r.due >= at(1_000)) {
            (hung.end, hung.ended) = (End::Open, at(21_000));
        }
        let figures = figures(&some);
        assert_eq!((figures.open, figures.oldest_open_ms), (250, 20_000.0));
        assert_eq!((figures.first_commit_ms, figures.first_answer_ms), (None, Some(33.0)));
        assert_eq!(figures.gap.ms, 500.0, "reads are no updates");
        assert_eq!(figures.latency.unwrap().worst, 20_000.0);
        assert_eq!(figures.as_json()["oldest_open_ms"], 20_000.0);
        // No update was ever acknowledged: reads do not stand for them.
        some.retain(|r| !r.updates || r.end == End::Open);
        assert_eq!(self::figures(&some).gap.ms, 500.0);
    }

    #[test]
    fn the_worst_of_several_shows_and_one_without_an_end_leaves_no_figure() {
        let measured = |first: Option<f64>| {
            (event(0, 10), Figures { first_commit_ms: first, ..Figures::default() })
        };
        let of = |all: &[Measured]| {
            let summary = summary(&all.iter().collect::<Vec<_>>());
            summary.into_iter().find(|(name, _)| *name == "first_commit_ms").unwrap().1
        };
        let few = [measured(Some(3.0)), measured(Some(50.0)), measured(Some(1.0))];
        assert_eq!(of(&few), Some(Spread { median: 3.0, p99: None, worst: 50.0 }));
        assert_eq!(of(&[measured(Some(1.0)), measured(None)]), None);
        let many: Vec<Measured> = (1..=100).map(|ms| measured(Some(f64::from(ms)))).collect();
        assert_eq!(of(&many).unwrap().p99, Some(99.0));
        assert_eq!(of(&many[1..]).unwrap().p99, None);
    }
}
