//! Pictures of results.

use anyhow::Context;
use plotters::prelude::*;
use serde_json::{Map, Value};
use std::path::Path;

/// What was measured of one kind of work.
struct Row {
    name: String,
    per_second: f64,
    /// 50 %, 99 % and 99.9 % of all took at most so long, in us.
    quantiles_us: [f64; 3],
}

const COLOURS: [RGBColor; 10] = [
    RGBColor(31, 119, 180),
    RGBColor(255, 127, 14),
    RGBColor(44, 160, 44),
    RGBColor(214, 39, 40),
    RGBColor(148, 103, 189),
    RGBColor(140, 86, 75),
    RGBColor(23, 190, 207),
    RGBColor(127, 127, 127),
    RGBColor(188, 189, 34),
    RGBColor(227, 119, 194),
];

/// Draws each measure in a record: a bar for operations per second, and marks for the times.
pub(crate) fn bars(path: &Path, title: &str, record: &Map<String, Value>) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    collect(record, "", &mut rows);
    draw_bars(path, title, &rows).with_context(|| format!("cannot draw {}", path.display()))
}

fn collect(record: &Map<String, Value>, name: &str, rows: &mut Vec<Row>) {
    let number = |key: &str| record.get(key).and_then(Value::as_f64);
    let quantiles = [number("p50_us"), number("p99_us"), number("p999_us")];
    if let (Some(per_second), [Some(p50), Some(p99), Some(p999)]) =
        (number("ops_per_second"), quantiles)
    {
        rows.push(Row { name: name.to_string(), per_second, quantiles_us: [p50, p99, p999] });
        return;
    }
    for (key, value) in record {
        if let Value::Object(inner) = value {
            collect(inner, format!("{name} {key}").trim(), rows);
        }
    }
}

const WIDTH: i32 = 900;
const ROW_HEIGHT: i32 = 30;
const HEAD_HEIGHT: i32 = 70;
/// Where names, bars and times begin, and where the times end.
const COLUMNS: [i32; 4] = [10, 190, 560, 880];

fn draw_bars(path: &Path, title: &str, rows: &[Row]) -> anyhow::Result<()> {
    let height = HEAD_HEIGHT + 20 + ROW_HEIGHT * rows.len() as i32;
    let root = SVGBackend::new(path, (WIDTH as u32, height as u32)).into_drawing_area();
    root.fill(&WHITE)?;
    let font = |size: i32| ("sans-serif", size).into_font();
    let text = |words: String, at: (i32, i32), size: i32| Text::new(words, at, font(size));
    root.draw(&text(title.to_string(), (COLUMNS[0], 10), 20))?;
    root.draw(&text("operations per second".to_string(), (COLUMNS[1], 42), 14))?;
    let scale = "time: 50 % | 99 % | 99.9 %, a tick each tenfold from 10 us";
    root.draw(&text(scale.to_string(), (COLUMNS[2] - 30, 42), 14))?;
    let most = rows.iter().map(|r| r.per_second).fold(1.0, f64::max);
    let bar_width = f64::from(COLUMNS[2] - COLUMNS[1] - 90);
    for (number, row) in rows.iter().enumerate() {
        let top = HEAD_HEIGHT + ROW_HEIGHT * number as i32;
        let bottom = top + ROW_HEIGHT - 10;
        root.draw(&text(row.name.clone(), (COLUMNS[0], top + 3), 14))?;
        let right = COLUMNS[1] + (row.per_second / most * bar_width) as i32;
        root.draw(&Rectangle::new([(COLUMNS[1], top), (right, bottom)], COLOURS[0].filled()))?;
        let figure = format!("{:.0}", row.per_second);
        root.draw(&text(figure, (right + 6, top + 3), 14))?;
        draw_times(&root, row, top, bottom)?;
    }
    root.present()?;
    Ok(())
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

/// Times from 10 us to 10 s, one after the other, each tenfold as wide as the last.
fn draw_times(root: &Area<'_>, row: &Row, top: i32, bottom: i32) -> anyhow::Result<()> {
    let width = f64::from(COLUMNS[3] - COLUMNS[2]);
    let place = |us: f64| COLUMNS[2] + ((us.max(10.0).log10() - 1.0) / 6.0 * width) as i32;
    for tenfold in 1..=7 {
        let x = place(10_f64.powi(tenfold));
        root.draw(&PathElement::new(vec![(x, top), (x, bottom)], RGBColor(220, 220, 220)))?;
    }
    let [p50, p99, p999] = row.quantiles_us.map(place);
    let middle = i32::midpoint(top, bottom);
    root.draw(&PathElement::new(vec![(p50, middle), (p999, middle)], BLACK))?;
    for (x, colour) in [p50, p99, p999].into_iter().zip([COLOURS[2], COLOURS[1], COLOURS[3]]) {
        let mark = [(x - 2, top + 3), (x + 2, bottom - 3)];
        root.draw(&Rectangle::new(mark, colour.filled()))?;
    }
    Ok(())
}

/// One picture in a row of them: lines over a load.
pub(crate) struct Panel {
    pub(crate) title: String,
    /// Name, and what was reached at each load.
    pub(crate) lines: Vec<(String, Vec<(f64, f64)>)>,
}

/// Draws operations per second over what is in flight, a picture for each panel.
pub(crate) fn lines(path: &Path, panels: &[Panel]) -> anyhow::Result<()> {
    draw_lines(path, panels).with_context(|| format!("cannot draw {}", path.display()))
}

fn draw_lines(path: &Path, panels: &[Panel]) -> anyhow::Result<()> {
    let root = SVGBackend::new(path, (520 * panels.len().max(1) as u32, 460)).into_drawing_area();
    root.fill(&WHITE)?;
    for (panel, area) in panels.iter().zip(root.split_evenly((1, panels.len().max(1)))) {
        let points = || panel.lines.iter().flat_map(|(_, points)| points);
        let most = points().map(|(_, y)| *y).fold(1.0, f64::max);
        let last = points().map(|(x, _)| *x).fold(2.0, f64::max);
        let mut chart = ChartBuilder::on(&area)
            .caption(&panel.title, ("sans-serif", 18))
            .margin(10)
            .x_label_area_size(40)
            .y_label_area_size(70)
            .build_cartesian_2d((1.0..last).log_scale(), 0.0..most * 1.15)?;
        chart
            .configure_mesh()
            .light_line_style(WHITE)
            .x_desc("operations in flight")
            .y_desc("operations per second")
            .draw()?;
        for (number, (name, points)) in panel.lines.iter().enumerate() {
            let colour = COLOURS[number % COLOURS.len()];
            let line = LineSeries::new(points.iter().copied(), colour.stroke_width(2));
            chart.draw_series(line)?.label(name).legend(move |(x, y)| {
                PathElement::new(vec![(x, y), (x + 16, y)], colour.stroke_width(2))
            });
        }
        // All have the same lines: one legend, where lines over a growing load are not.
        if std::ptr::eq(panel, &panels[0]) {
            let legend = SeriesLabelPosition::UpperLeft;
            chart.configure_series_labels().position(legend).draw()?;
        }
    }
    root.present()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_measure_of_a_record_is_drawn() {
        let one =
            |ops: f64| json!({ "ops_per_second": ops, "p50_us": 5, "p99_us": 90, "p999_us": 1e9 });
        let record = json!({
            "latsdb": { "A": { "read": one(1e6), "update": one(5e5), "ops_per_second": 1.5e6 } },
            "config": { "seconds": 1 },
        });
        let path = std::env::temp_dir().join(format!("lats-draw-{}.svg", std::process::id()));
        bars(&path, "a title", record.as_object().unwrap()).unwrap();
        let drawn = std::fs::read_to_string(&path).unwrap();
        for words in ["a title", "latsdb A read", "latsdb A update", "1000000", "500000"] {
            assert!(drawn.contains(words), "{words}: {drawn}");
        }
        let line = |name: &str| (name.to_string(), vec![(1.0, 10.0), (64.0, 500.0)]);
        let panel = Panel { title: "reads".to_string(), lines: vec![line("one"), line("two")] };
        lines(&path, &[panel]).unwrap();
        let drawn = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        assert!(drawn.contains("one") && drawn.contains("two") && drawn.contains("polyline"));
    }
}
