//! `latsdb top`: what the threads of all nodes do.

use crate::{
    say::say,
    status::{self, Target},
    supervisor::pause,
};
use anyhow::Context;
use lats_base::NodeId;
use lats_client::net::Client;
use lats_runtime::{Figures, NodeFigures};
use lats_signals::SignalNumber;
use serde_json::{Value, json};
use std::{collections::BTreeMap, io::IsTerminal, process::ExitCode, time::Duration};

/// Show what the threads of all nodes do: processor time, sleeps, batches, signals.
#[derive(clap::Args)]
pub(crate) struct TopArgs {
    #[command(flatten)]
    target: Target,
    /// How long to count each time, in seconds.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    seconds: u64,
    /// End after so many times [default: 1 if the output is no terminal, else never].
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    times: Option<u64>,
    /// Show the most frequent signals of each node as well.
    #[arg(long)]
    signals: bool,
    /// Print JSON.
    #[arg(long, conflicts_with = "metrics")]
    json: bool,
    /// Print the counters once, since each node was started, in the text format of Prometheus.
    #[arg(long)]
    metrics: bool,
}

type Sample = BTreeMap<NodeId, NodeFigures>;

pub(crate) fn run(args: &TopArgs) -> anyhow::Result<ExitCode> {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let client = tokio.block_on(args.target.connect())?;
    let take = || tokio.block_on(sample(&client));
    if args.metrics {
        print_metrics(&take()?);
        return Ok(ExitCode::SUCCESS);
    }
    let is_terminal = std::io::stdout().is_terminal() && !args.json;
    let times = args.times.unwrap_or(if is_terminal { u64::MAX } else { 1 });
    let mut before = take()?;
    for _ in 0..times {
        pause(Duration::from_secs(args.seconds));
        let now = match take() {
            Ok(now) => now,
            // While nodes die one wants to go on looking.
            Err(error) if is_terminal => {
                say!("{error:#}");
                continue;
            }
            Err(error) => return Err(error),
        };
        if is_terminal {
            // Home, and clear what is below.
            say!("\x1b[H\x1b[2J");
        }
        let rates = now
            .iter()
            .filter_map(|(node, figures)| Some((*node, rates(before.get(node)?, figures))));
        match args.json {
            true => say!("{:#}", as_json(rates)),
            false => rates.for_each(|(node, rates)| print_node(node, &rates, args.signals)),
        }
        before = now;
    }
    Ok(ExitCode::SUCCESS)
}

/// The figures of all live data nodes.
async fn sample(client: &Client) -> anyhow::Result<Sample> {
    let status = status::state_from(client).await?;
    let mut sample = Sample::new();
    for member in status.view.data_nodes().filter(|m| !status.silent.contains(&m.node)) {
        // One that has just died is left out.
        let Ok(bytes) = client.figures(member.node).await else { continue };
        let figures = lats_catalog::decode(&bytes);
        let figures = figures.map_err(|code| anyhow::anyhow!("the figures cannot be read: {code}"));
        sample.insert(member.node, figures?);
    }
    (!sample.is_empty()).then_some(sample).context("no node tells what its threads do")
}

/// What a thread has done in a span.
struct Rates {
    name: String,
    seconds: f64,
    done: Figures,
    largest_batch: u64,
}

fn rates(before: &NodeFigures, now: &NodeFigures) -> Vec<Rates> {
    let seconds = now.at_ns.saturating_sub(before.at_ns).max(1) as f64 / 1e9;
    let threads = now.threads.iter().zip(&before.threads);
    threads
        .map(|((name, now), (_, before))| Rates {
            name: name.clone(),
            seconds,
            done: difference(now, before),
            largest_batch: now.largest_batch,
        })
        .collect()
}

fn difference(now: &Figures, before: &Figures) -> Figures {
    let less = |of: fn(&Figures) -> u64| of(now).saturating_sub(of(before));
    let numbers = now.by_number.iter().enumerate().map(|(number, count)| {
        count.saturating_sub(before.by_number.get(number).copied().unwrap_or(0))
    });
    Figures {
        turns: less(|f| f.turns),
        helped: less(|f| f.helped),
        signals: less(|f| f.signals),
        largest_batch: 0,
        longest_turn_ns: now.longest_turn_ns,
        batches: less(|f| f.batches),
        busy_ns: less(|f| f.busy_ns),
        cpu_ns: less(|f| f.cpu_ns),
        sleeps: less(|f| f.sleeps),
        spins: less(|f| f.spins),
        spins_met: less(|f| f.spins_met),
        reads: less(|f| f.reads),
        from_sockets: less(|f| f.from_sockets),
        from_ports: less(|f| f.from_ports),
        from_threads: less(|f| f.from_threads),
        by_number: numbers.collect(),
        row_bytes: now.row_bytes,
    }
}

impl Rates {
    fn per_second(&self, count: u64) -> f64 {
        count as f64 / self.seconds
    }

    /// Of a whole processor.
    fn percent(&self, nanos: u64) -> f64 {
        self.per_second(nanos) / 1e7
    }

    fn mean_batch(&self) -> f64 {
        self.done.signals as f64 / self.done.batches.max(1) as f64
    }

    /// The most frequent signals, by name.
    fn signals(&self) -> Vec<(String, u64)> {
        let counted = self.done.by_number.iter().enumerate().filter(|(_, count)| **count > 0);
        let mut named: Vec<(String, u64)> =
            counted.map(|(number, count)| (signal_name(number), *count)).collect();
        named.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        named
    }
}

fn signal_name(number: usize) -> String {
    let known = u16::try_from(number).ok().and_then(SignalNumber::from_number);
    known.map_or_else(|| format!("number {number}"), |known| format!("{known:?}"))
}

fn print_node(node: NodeId, threads: &[Rates], signals: bool) {
    say!(
        "node {:<17} {:>4} {:>6} {:>7} {:>9} {:>9} {:>9} {:>6} {:>7} {:>9} {:>9} {:>9}",
        node.get(),
        "cpu%",
        "busy%",
        "helped%",
        "sleeps/s",
        "spins/s",
        "signals/s",
        "batch",
        "largest",
        "sockets/s",
        "ports/s",
        "threads/s"
    );
    for rates in threads {
        let done = &rates.done;
        say!(
            "  {:<20} {:>4.0} {:>6.0} {:>7.0} {:>9.0} {:>9.0} {:>9.0} {:>6.1} {:>7} {:>9.0} {:>9.0} {:>9.0}",
            rates.name,
            rates.percent(done.cpu_ns),
            rates.percent(done.busy_ns),
            done.helped as f64 * 100.0 / done.turns.max(1) as f64,
            rates.per_second(done.sleeps),
            rates.per_second(done.spins),
            rates.per_second(done.signals),
            rates.mean_batch(),
            rates.largest_batch,
            rates.per_second(done.from_sockets),
            rates.per_second(done.from_ports),
            rates.per_second(done.from_threads),
        );
        if signals {
            for (name, count) in rates.signals().into_iter().take(SIGNALS_SHOWN) {
                say!("      {name:<24} {:>10.0}/s", rates.per_second(count));
            }
        }
    }
}

const SIGNALS_SHOWN: usize = 8;

fn as_json(nodes: impl Iterator<Item = (NodeId, Vec<Rates>)>) -> Value {
    let nodes: Vec<Value> = nodes
        .map(|(node, threads)| {
            let threads: Vec<Value> = threads.iter().map(thread_json).collect();
            json!({ "node_id": node.get(), "threads": threads })
        })
        .collect();
    json!({ "nodes": nodes })
}

fn thread_json(rates: &Rates) -> Value {
    let done = &rates.done;
    let signals: serde_json::Map<_, _> = rates
        .signals()
        .into_iter()
        .map(|(name, count)| (name, json!(rates.per_second(count))))
        .collect();
    json!({
        "modules": rates.name,
        "cpu_percent": rates.percent(done.cpu_ns),
        "busy_percent": rates.percent(done.busy_ns),
        "turns_per_second": rates.per_second(done.turns),
        "helped_turns_per_second": rates.per_second(done.helped),
        "sleeps_per_second": rates.per_second(done.sleeps),
        "spins_per_second": rates.per_second(done.spins),
        "spins_met_per_second": rates.per_second(done.spins_met),
        "signals_per_second": rates.per_second(done.signals),
        "mean_batch": rates.mean_batch(),
        "largest_batch": rates.largest_batch,
        "reads_per_second": rates.per_second(done.reads),
        "from_sockets_per_second": rates.per_second(done.from_sockets),
        "from_ports_per_second": rates.per_second(done.from_ports),
        "from_threads_per_second": rates.per_second(done.from_threads),
        "signals": signals,
    })
}

/// A counter: its name, what it counts, and where it is.
type Counter = (&'static str, &'static str, fn(&Figures) -> f64);

const COUNTERS: [Counter; 12] = [
    ("cpu_seconds", "Processor time of the thread", |f| f.cpu_ns as f64 / 1e9),
    ("busy_seconds", "Time in turns, by whoever did them", |f| f.busy_ns as f64 / 1e9),
    ("turns", "Turns", |f| f.turns as f64),
    ("helped_turns", "Turns that other threads have done", |f| f.helped as f64),
    ("sleeps", "How often the thread has slept", |f| f.sleeps as f64),
    ("spins", "How often the thread has looked for work before sleeping", |f| f.spins as f64),
    ("signals", "Signals and timers handled", |f| f.signals as f64),
    ("batches", "Rounds of the mailbox", |f| f.batches as f64),
    ("reads", "Reads of sockets", |f| f.reads as f64),
    ("signals_from_sockets", "Signals from sockets", |f| f.from_sockets as f64),
    ("signals_from_ports", "Signals from clients in the same process", |f| f.from_ports as f64),
    ("signals_from_threads", "Signals from other threads", |f| f.from_threads as f64),
];

fn print_metrics(sample: &Sample) {
    let threads = || {
        sample.iter().flat_map(|(node, figures)| {
            let numbered = figures.threads.iter().enumerate();
            numbered.map(move |(at, (name, figures))| {
                (format!("node=\"{node}\",thread=\"{at}\",modules=\"{name}\""), figures)
            })
        })
    };
    for (name, help, read) in COUNTERS {
        say!("# HELP latsdb_thread_{name}_total {help}.");
        say!("# TYPE latsdb_thread_{name}_total counter");
        for (labels, figures) in threads() {
            say!("latsdb_thread_{name}_total{{{labels}}} {}", read(figures));
        }
    }
    say!("# HELP latsdb_thread_handled_total Signals handled, by kind.");
    say!("# TYPE latsdb_thread_handled_total counter");
    for (labels, figures) in threads() {
        for (number, count) in figures.by_number.iter().enumerate().filter(|(_, c)| **c > 0) {
            let signal = signal_name(number);
            say!("latsdb_thread_handled_total{{{labels},signal=\"{signal}\"}} {count}");
        }
    }
}
