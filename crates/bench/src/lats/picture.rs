//! The picture: answers and latencies over the whole run, and around the event with the longest gap. Dark on light.

use super::{
    bins::{Bin, WIDTH},
    figures::{Measured, What},
    spread::quantile,
};
use anyhow::Context;
use lats_base::Instant;
use plotters::{
    coord::{Shift, ranged1d::ValueFormatter, types::RangedCoordf64},
    prelude::*,
};
use std::path::Path;

const SIZE: (u32, u32) = (1_200, 1_180);
const HEAD_HEIGHT: u32 = 84;
/// So many bins are drawn side by side at most: of more, each column shows the least and the most of several.
const COLUMNS_MAX: usize = 900;
/// Around the worst event, in s.
const BEFORE_S: f64 = 0.2;
const AFTER_S: f64 = 0.8;

const BLUE_DARK: RGBColor = RGBColor(31, 90, 160);
const BLUE_LIGHT: RGBColor = RGBColor(158, 196, 230);
const ORANGE: RGBColor = RGBColor(214, 110, 0);
const RED_DARK: RGBColor = RGBColor(190, 20, 30);
const GREEN_DARK: RGBColor = RGBColor(20, 120, 50);

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Some bins, drawn as one.
struct Column {
    /// In the middle, in s.
    at: f64,
    /// Answers a second: fewest, mean, most.
    answers: [f64; 3],
    errors: u64,
    bins: usize,
    /// The middle one of the medians, and the worst of all, in ms.
    latency_ms: [f64; 2],
}

/// Draws it.
pub(super) fn draw(
    path: &Path,
    title: &[String],
    bins: &[Bin],
    events: &[Measured],
    begun: Instant,
) -> anyhow::Result<()> {
    let drawn = draw_all(path, title, bins, &marks(events, begun));
    drawn.with_context(|| format!("cannot draw {}", path.display()))
}

/// An event in the picture.
struct Mark {
    at: f64,
    what: What,
    words: String,
    gap_ms: f64,
}

fn marks(events: &[Measured], begun: Instant) -> Vec<Mark> {
    let mark = |(event, figures): &Measured| Mark {
        at: seconds(event.at.since(begun)),
        what: event.what,
        words: format!("{} {}", event.what.name(), event.node),
        gap_ms: figures.gap.ms,
    };
    events.iter().map(mark).collect()
}

fn seconds(span: lats_base::Duration) -> f64 {
    span.as_nanos() as f64 / 1e9
}

fn draw_all(path: &Path, title: &[String], bins: &[Bin], marks: &[Mark]) -> anyhow::Result<()> {
    let root = SVGBackend::new(path, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    for (line, at) in title.iter().zip([(20, 10), (20, 36), (20, 58)]) {
        let size = if at.1 == 10 { 22 } else { 16 };
        root.draw(&Text::new(line.clone(), at, ("sans-serif", size).into_font()))?;
    }
    let (_, body) = root.split_vertically(HEAD_HEIGHT);
    let areas = body.split_evenly((4, 1));
    let all = columns(bins, (0, bins.len()));
    let end = bins.len() as f64 * seconds(WIDTH);
    let whole = (0.0, end.max(seconds(WIDTH)));
    answers(&areas[0], "whole run: answers a second", whole, &all, marks)?;
    latencies(&areas[1], "whole run: latency from the due time, ms", whole, &all, marks)?;
    let struck = marks.iter().filter(|mark| mark.what != What::Rejoin);
    if let Some(worst) = struck.max_by(|a, b| a.gap_ms.total_cmp(&b.gap_ms)) {
        let near = ((worst.at - BEFORE_S).max(0.0), (worst.at + AFTER_S).min(whole.1));
        let bin = |at: f64| ((at / seconds(WIDTH)) as usize).min(bins.len());
        let some = columns(bins, (bin(near.0), bin(near.1)));
        let of =
            format!("{}, the event with the longest gap ({:.1} ms)", worst.words, worst.gap_ms);
        answers(&areas[2], &format!("{of}: answers a second"), near, &some, marks)?;
        latencies(&areas[3], &format!("{of}: latency, ms"), near, &some, marks)?;
    }
    root.present()?;
    Ok(())
}

fn columns(bins: &[Bin], (from, until): (usize, usize)) -> Vec<Column> {
    let together = (until - from).div_ceil(COLUMNS_MAX).max(1);
    let rate = |answers: u64| answers as f64 / seconds(WIDTH);
    let column = |(number, some): (usize, &[Bin])| {
        let all = || some.iter().map(|b| b.answers);
        let worst = some.iter().map(|b| b.latency_us.worst).max().unwrap_or_default();
        let mut medians: Vec<u64> = some.iter().map(|b| b.latency_us.median).collect();
        medians.sort_unstable();
        let median = medians[medians.len() / 2];
        Column {
            at: (from as f64 + (number as f64 + 0.5) * together as f64) * seconds(WIDTH),
            answers: [
                rate(all().min().unwrap_or_default()),
                rate(all().sum::<u64>()) / some.len() as f64,
                rate(all().max().unwrap_or_default()),
            ],
            errors: some.iter().map(|b| b.errors + b.unsent + b.open).sum(),
            bins: some.len(),
            latency_ms: [median, worst].map(|us| us as f64 / 1_000.0),
        }
    };
    bins[from..until].chunks(together).enumerate().map(column).collect()
}

type Chart<'a, 'b, Y> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, Y>>;

fn builder<'a, 'b>(area: &'a Area<'b>, caption: &str) -> ChartBuilder<'a, 'static, SVGBackend<'b>> {
    let mut builder = ChartBuilder::on(area);
    builder
        .caption(caption, ("sans-serif", 17))
        .margin(8)
        .x_label_area_size(26)
        .y_label_area_size(64);
    builder
}

fn draw_mesh<Y: Ranged<ValueType = f64> + ValueFormatter<f64>>(
    chart: &mut Chart<'_, '_, Y>,
    label: &dyn Fn(&f64) -> String,
) -> anyhow::Result<()> {
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .label_style(("sans-serif", 14))
        .x_label_formatter(&|at| format!("{at:.1} s"))
        .y_label_formatter(label)
        .draw()?;
    Ok(())
}

fn answers(
    area: &Area<'_>,
    caption: &str,
    (from, until): (f64, f64),
    columns: &[Column],
    marks: &[Mark],
) -> anyhow::Result<()> {
    // One bin of those that were waited for may have very many.
    let mut most: Vec<f64> = columns.iter().map(|c| c.answers[2]).collect();
    most.sort_by(f64::total_cmp);
    let usual = quantile(&most, 0.95).unwrap_or_default();
    let top = (usual * 2.0).max(100.0);
    let mut chart = builder(area, caption).build_cartesian_2d(from..until, 0.0..top)?;
    draw_mesh(&mut chart, &|rate| format!("{rate:.0}"))?;
    let half = columns.windows(2).next().map_or(0.005, |pair| (pair[1].at - pair[0].at) / 2.0);
    let bars = columns.iter().map(|c| {
        let (low, high) = (c.answers[0].min(top), c.answers[2].min(top));
        // One bin is a bar from the ground; of several, it is shown how far they are apart.
        let low = if c.bins == 1 { 0.0 } else { low };
        Rectangle::new([(c.at - half, low), (c.at + half, high)], BLUE_LIGHT.filled())
    });
    chart.draw_series(bars)?;
    let means = columns.iter().map(|c| (c.at, c.answers[1].min(top)));
    chart.draw_series(LineSeries::new(means, BLUE_DARK.stroke_width(1)))?;
    let failed = columns.iter().filter(|c| c.errors > 0).map(|c| {
        Rectangle::new([(c.at - half, 0.0), (c.at + half, top / 20.0)], RED_DARK.filled())
    });
    chart.draw_series(failed)?;
    draw_marks(&mut chart, marks, (from, until), [0.0, top * 0.88, top])
}

fn latencies(
    area: &Area<'_>,
    caption: &str,
    (from, until): (f64, f64),
    columns: &[Column],
    marks: &[Mark],
) -> anyhow::Result<()> {
    const LEAST_MS: f64 = 0.05;
    let worst = columns.iter().map(|c| c.latency_ms[1]).fold(10.0, f64::max);
    let top = worst * 3.0;
    let scale = (LEAST_MS..top).log_scale();
    let mut chart = builder(area, caption).build_cartesian_2d(from..until, scale)?;
    let label = |ms: &f64| if *ms < 1.0 { format!("{ms:.1}") } else { format!("{ms:.0}") };
    draw_mesh(&mut chart, &label)?;
    for (at, colour) in [(1, ORANGE), (0, BLUE_DARK)] {
        // A bin in which nothing was due that was answered has no latency.
        let some = columns.iter().filter(|c| c.latency_ms[1] > 0.0);
        let points = some.map(|c| (c.at, c.latency_ms[at].max(LEAST_MS)));
        chart.draw_series(LineSeries::new(points, colour.stroke_width(1)))?;
    }
    let second = LEAST_MS * (top / LEAST_MS).powf(0.88);
    draw_marks(&mut chart, marks, (from, until), [LEAST_MS, second, top])
}

/// A line where each event is, with its name where there is room: rejoins in a row below the others.
fn draw_marks<Y: Ranged<ValueType = f64>>(
    chart: &mut Chart<'_, '_, Y>,
    marks: &[Mark],
    (from, until): (f64, f64),
    [ground, second_row, first_row]: [f64; 3],
) -> anyhow::Result<()> {
    let mut free_from = [from; 2];
    for mark in marks.iter().filter(|m| m.at >= from && m.at <= until) {
        let is_rejoin = mark.what == What::Rejoin;
        let (colour, row) =
            if is_rejoin { (GREEN_DARK, second_row) } else { (RED_DARK, first_row) };
        let line =
            PathElement::new(vec![(mark.at, ground), (mark.at, first_row)], colour.stroke_width(1));
        chart.draw_series([line])?;
        let free = &mut free_from[usize::from(is_rejoin)];
        if mark.at >= *free {
            let font = ("sans-serif", 14).into_font().color(&colour);
            chart.draw_series([Text::new(format!(" {}", mark.words), (mark.at, row), font)])?;
            *free = mark.at + (until - from) * 0.075;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{super::spread::Spread, *};

    #[test]
    fn a_picture_has_the_events_and_both_scales() {
        let bin = |at: usize| Bin {
            due: 20,
            answers: if (100..103).contains(&at) { 0 } else { 20 },
            errors: u64::from(at == 101),
            latency_us: Spread { median: 300, p99: None, worst: 4_000 },
            ..Bin::default()
        };
        let bins: Vec<Bin> = (0..2_500).map(bin).collect();
        let mark = |at: f64, what: What| Mark {
            at,
            what,
            words: format!("{} 2", what.name()),
            gap_ms: 30.5,
        };
        let marks = [mark(1.0, What::Kill), mark(2.0, What::Rejoin), mark(9.0, What::Silent)];
        let path = std::env::temp_dir().join(format!("lats-gauge-{}.svg", std::process::id()));
        draw_all(&path, &["a title".to_string()], &bins, &marks).unwrap();
        let drawn = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        for words in ["a title", "kill 2", "rejoin 2", "silent 2", "30.5 ms", "2000", "polyline"] {
            assert!(drawn.contains(words), "{words}");
        }
    }

    #[test]
    fn a_column_of_several_bins_shows_the_emptiest() {
        let bin = |at: usize| Bin { answers: if at == 1 { 0 } else { 20 }, ..Bin::default() };
        let bins: Vec<Bin> = (0..2 * COLUMNS_MAX).map(bin).collect();
        let columns = columns(&bins, (0, bins.len()));
        assert_eq!(columns.len(), COLUMNS_MAX);
        assert_eq!(columns[0].answers, [0.0, 1_000.0, 2_000.0]);
        assert_eq!(columns[1].answers, [2_000.0; 3]);
    }
}
