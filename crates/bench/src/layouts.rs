//! `layouts`: the same work under different placements of a node's modules on its threads, over a growing load. (Article
//! s0 does so with RonDB.)

use crate::{
    Place, draw,
    flex::{self, FlexArgs},
    report,
    ycsb::{self, Workload, YcsbArgs},
};
use serde_json::{Map, Value, json};
use std::io::Write;

/// Start a cluster of one data node under each placement of its modules on threads, measure key lookups, updates, a
/// mixed load and range scans over a growing load, and compare. Takes some minutes. The exit status is 1 if there were errors.
#[derive(clap::Args, Clone, Debug)]
pub struct LayoutsArgs {
    /// How long each point is measured, for each kind of work.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub seconds: u64,
    /// Operations in flight.
    #[arg(long, value_delimiter = ',', default_value = "1,8,64,512", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub loads: Vec<u32>,
    /// Rows of each table.
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(10_000..))]
    pub rows: u64,
    /// Threads of the client.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub client_threads: u32,
    /// Data managers of the setup with many, and receive threads of the other [default: the processors, at least 2].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub many: Option<u32>,
    /// Ports that the clusters use: this one, and 100 more.
    #[arg(long, default_value_t = 27_306, value_parser = clap::value_parser!(u16).range(1..=65_400))]
    pub sql_port: u16,
    #[command(flatten)]
    #[allow(missing_docs, reason = "it would become the text of the command's help")]
    pub output: report::Output,
}

/// A placement.
#[derive(Clone, Debug)]
pub struct Layout {
    /// For people.
    pub name: &'static str,
    /// As `latsdb start --thread-config` takes it.
    pub thread_config: String,
    /// Threads with nothing to do work for those that sleep.
    pub helping: bool,
    /// Who does reads, as `latsdb start --read-placement` takes it.
    pub reads: &'static str,
}

/// A cluster that runs.
pub struct Started {
    /// How to reach it.
    pub place: Place,
    /// Ends it.
    pub end: Box<dyn FnOnce()>,
}

fn layouts(many: u32) -> Vec<Layout> {
    let layout = |name, config: &str| Layout {
        name,
        thread_config: config.into(),
        helping: true,
        reads: "adaptive",
    };
    let queries = "recv+query={count=1},ldm={count=1}";
    let pipeline = "recv={count=1},tc={count=1},ldm={count=1}";
    vec![
        layout("one thread", ""),
        layout("recv | rest", "recv={count=1},main+tc+ldm={count=1}"),
        layout("recv | tc | ldm", pipeline),
        Layout { helping: false, ..layout("recv | tc | ldm, fixed", pipeline) },
        layout(
            "recv | tc | ldm | send",
            "recv={count=1},tc={count=1},ldm={count=1,nosend=1},send={count=1}",
        ),
        layout("LDM setup", &format!("recv={{count=1}},ldm={{count={many}}}")),
        layout("Receive setup", &format!("recv={{count={many}}}")),
        layout("recv, query | ldm", queries),
        Layout { reads: "receiver", ..layout("recv, query | ldm, receiver reads", queries) },
        Layout { reads: "owner", ..layout("recv, query | ldm, owner reads", queries) },
    ]
}

/// What one placement has reached: by kind of work, for each load.
type Reached = Vec<(&'static str, Vec<(f64, f64)>)>;

/// Runs the benchmark: `start` starts a cluster. How many operations were in vain.
///
/// # Errors
/// If a cluster cannot be started or does not answer, or the result cannot be written.
pub fn run(
    args: &LayoutsArgs,
    start: &dyn Fn(&Layout) -> anyhow::Result<Started>,
    out: &mut impl Write,
) -> anyhow::Result<u64> {
    let processors = std::thread::available_parallelism().map_or(2, |n| n.get().clamp(2, 64));
    let many = args.many.unwrap_or(processors as u32);
    let (mut record, mut errors, mut all) = (Map::new(), 0, Vec::new());
    for layout in layouts(many) {
        let Started { place, end } = start(&layout)?;
        let measured = measure(args, &place);
        end();
        let (measured, in_vain) = measured?;
        errors += in_vain;
        let reached = reached(&measured);
        if args.output.prints_table() {
            print(&layout, &reached, out)?;
        }
        let place = json!({
            "thread_config": layout.thread_config,
            "helping": layout.helping,
            "reads": layout.reads,
        });
        record.insert(layout.name.to_string(), json!({ "place": place, "loads": measured }));
        all.push((layout.name, reached));
    }
    record.insert("config".to_string(), args.as_json(many));
    report::write_json(record, &args.output, out)?;
    if let Some(path) = &args.output.svg {
        draw::lines(path, &panels(&all))?;
    }
    Ok(errors)
}

/// One placement at all loads.
fn measure(args: &LayoutsArgs, place: &Place) -> anyhow::Result<(Map<String, Value>, u64)> {
    let (mut loads, mut errors, mut runs) = (Map::new(), 0, 0);
    for load in &args.loads {
        let client_threads = args.client_threads.min(*load);
        let flex = FlexArgs {
            operations: 1,
            transactions: *load,
            client_threads,
            rows: args.rows,
            columns: 1,
            column_bytes: 100,
            seconds: args.seconds,
            output: report::Output::default(),
        };
        runs += 1;
        let (mut point, in_vain) = flex::measure(&flex, &place.with_new_clients(runs))?;
        let ycsb = YcsbArgs {
            workloads: vec![Workload::A, Workload::E],
            records: args.rows,
            seconds: args.seconds,
            connections: *load,
            client_threads,
            sql: false,
            peer: None,
            output: report::Output::default(),
        };
        runs += 1;
        let (scans, scans_in_vain) = ycsb::measure(&ycsb, &place.with_new_clients(runs))?;
        errors += in_vain + scans_in_vain;
        point.insert("ycsb".to_string(), scans);
        loads.insert(load.to_string(), Value::Object(point));
    }
    Ok((loads, errors))
}

/// What is compared: a name, and where it is in the record of a point.
const KINDS: [(&str, &str); 4] = [
    ("key lookups", "/read/ops_per_second"),
    ("updates by key", "/update/ops_per_second"),
    ("reads, as many updates", "/ycsb/A/read/ops_per_second"),
    ("range scans", "/ycsb/E/scan/ops_per_second"),
];

fn reached(loads: &Map<String, Value>) -> Reached {
    let line = |path: &str| {
        let points = loads
            .iter()
            .filter_map(|(load, point)| Some((load.parse().ok()?, point.pointer(path)?.as_f64()?)));
        let mut points: Vec<(f64, f64)> = points.collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points
    };
    KINDS.iter().map(|(name, path)| (*name, line(path))).collect()
}

fn print(layout: &Layout, reached: &Reached, out: &mut impl Write) -> anyhow::Result<()> {
    writeln!(out, "{}", layout.name)?;
    for (kind, points) in reached {
        let points = points.iter().map(|(load, rate)| format!("{load:>6}: {rate:>9.0}"));
        writeln!(out, "    {kind:<24} {}", points.collect::<Vec<_>>().join("  "))?;
    }
    out.flush()?;
    Ok(())
}

fn panels(all: &[(&str, Reached)]) -> Vec<draw::Panel> {
    let panel = |(at, (title, _)): (usize, &(&str, &str))| draw::Panel {
        title: (*title).to_string(),
        lines: all
            .iter()
            .map(|(layout, reached)| ((*layout).to_string(), reached[at].1.clone()))
            .collect(),
    };
    KINDS.iter().enumerate().map(panel).collect()
}

impl LayoutsArgs {
    fn as_json(&self, many: u32) -> Value {
        json!({
            "seconds": self.seconds,
            "loads": self.loads,
            "rows": self.rows,
            "client_threads": self.client_threads,
            "many": many,
        })
    }
}
