//! `lats`: the gauge. A load that comes whatever the cluster does, nodes that are killed, frozen or cut off meanwhile, and how long nobody
//! got on: in bins of 10 ms, as JSON and as a picture. At the end a ledger says whether anything acknowledged was lost.

mod bins;
mod course;
mod figures;
mod ledger;
mod load;
mod logs;
mod picture;
pub mod scene;
mod schedule;
mod show;
mod table;

use crate::{Place, mysql::Server, native, report};
use anyhow::{Context, bail, ensure};
use clap::ValueEnum;
use course::Course;
use figures::{Event, Figures, Measured, What};
use lats_base::{Duration, prng::Prng};
use lats_client::net::Client;
use load::{End, Load, Record, Terms};
use scene::Scene;
use schedule::Schedule;
use serde_json::{Value, json};
use std::{io::Write, sync::Arc};
use table::{Access, Pool, Table};

/// Start a cluster, keep a load on it that comes at a fixed rate whatever the answers are, kill nodes meanwhile (or freeze them, or cut
/// off their machines), and measure how long nobody gets on.
///
/// Each event is followed by a rejoin of its node, which is measured, too. Latencies count from the moment at which an operation was due.
/// At the end a ledger is checked: whatever was acknowledged must be there. The exit status is 1 if it is not, or if the load met errors
/// other than those that are tried again.
///
/// One kill, with a picture: latsdb bench lats --svg kill.svg
///
/// Twenty, for "SIGKILL to first commit": latsdb bench lats --kind kill --events 20 --json kills.json
#[derive(clap::Args, Clone, Debug)]
pub struct LatsArgs {
    /// What happens, in turn: kill (SIGKILL), freeze (SIGSTOP for --lasts-ms), silent (the machine is cut off for --lasts-ms; the nodes
    /// are in network namespaces then, which needs root and `ip`).
    #[arg(long, value_delimiter = ',', default_value = "kill")]
    pub kind: Vec<Kind>,
    /// How often something happens; 0: nothing does, and the load runs for twice --calm-ms.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub events: u32,
    /// When it happens, in seconds after the load has begun, instead of --events at drawn times. What comes too soon after the event
    /// before waits for a whole cluster.
    #[arg(long, value_delimiter = ',', value_name = "SECONDS", conflicts_with = "events")]
    pub at: Vec<f64>,
    /// All nodes serve for so long before an event, and for up to twice as long: that is drawn.
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u64).range(100..=3_600_000))]
    pub calm_ms: u64,
    /// How long a node is frozen or cut off.
    #[arg(long, default_value_t = 1_500, value_parser = clap::value_parser!(u64).range(1..=600_000))]
    pub lasts_ms: u64,
    /// How long after a kill, or after the end of a freeze or a cut, the node is started again.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(0..=3_600_000))]
    pub away_ms: u64,
    /// a: YCSB A, half reads and half updates, popular rows most of all; lookups: reads of any row by its key.
    #[arg(long, default_value = "a", ignore_case = true)]
    pub workload: Workload,
    /// Operations that are due each second.
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub rate: u64,
    /// So many may wait for an answer; what is due beyond that is not sent, and counts as an error.
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub outstanding: u64,
    /// Through SQL with prepared statements, instead of the native client.
    #[arg(long)]
    pub sql: bool,
    /// With --sql: connections, round the nodes.
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub connections: u32,
    /// Rows of the table.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub rows: u64,
    /// Bytes of a row, besides its key and its counter.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=20_000))]
    pub row_bytes: u16,
    /// Data nodes.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(2..=48))]
    pub nodes: u16,
    /// Replicas of each row.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(2..=4))]
    pub replicas: u16,
    /// Memory of each node, in MiB.
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(64..))]
    pub memory_mib: u32,
    /// Nodes keep rows on disk; else in memory only.
    #[arg(long)]
    pub durable: bool,
    /// What is drawn (times, victims, rows) is drawn from this number [default: another one each time].
    #[arg(long)]
    pub seed: Option<u64>,
    /// Ports that the cluster uses: this one, and 100 more.
    #[arg(long, default_value_t = 28_306, value_parser = clap::value_parser!(u16).range(1..=65_400))]
    pub sql_port: u16,
    /// Internal: the network namespaces that this process is in.
    #[arg(long, hide = true)]
    pub net: Option<String>,
    #[command(flatten)]
    #[allow(missing_docs, reason = "it would become the text of the command's help")]
    pub output: report::Output,
}

/// What happens to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// SIGKILL.
    Kill,
    /// SIGSTOP, and SIGCONT later.
    Freeze,
    /// Its machine is cut off, and can be reached again later.
    Silent,
}

/// What clients do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Workload {
    /// YCSB A: half reads, half updates, by Zipf's law.
    A,
    /// Reads by key, each row as likely.
    Lookups,
}

impl LatsArgs {
    /// Looks whether the options fit, before anything is started.
    ///
    /// # Errors
    /// Which do not, and what to do.
    pub fn check(&self) -> anyhow::Result<()> {
        self.output.check()?;
        let (nodes, replicas) = (self.nodes, self.replicas);
        ensure!(
            nodes % replicas == 0,
            "--nodes {nodes} is no multiple of --replicas {replicas}; try --nodes {}",
            nodes.next_multiple_of(replicas)
        );
        let is_time = |at: &f64| at.is_finite() && (0.0..=86_400.0).contains(at);
        ensure!(
            self.at.iter().all(is_time),
            "--at takes seconds from 0 to 86400, as in --at 3,8.5"
        );
        ensure!(self.at.is_sorted(), "--at takes times in their order, as in --at 3,8.5");
        let bytes = self.rows.saturating_mul(u64::from(self.row_bytes) + 100);
        let groups = u64::from(nodes / replicas);
        let mib = (bytes / groups) >> 20;
        ensure!(
            mib < u64::from(self.memory_mib) * 3 / 4,
            "{} rows take some {mib} MiB at each node: raise --memory-mib to {} or take fewer --rows",
            self.rows,
            mib * 3 / 2 + 64
        );
        Ok(())
    }

    /// True if nodes must be on machines of their own.
    pub fn wants_namespaces(&self) -> bool {
        self.kind.contains(&Kind::Silent) && (self.events > 0 || !self.at.is_empty())
    }

    /// What happens, and when if that was asked for.
    fn plan(&self) -> Vec<(What, Option<f64>)> {
        let times: Vec<Option<f64>> = match self.at.is_empty() {
            true => vec![None; self.events as usize],
            false => self.at.iter().copied().map(Some).collect(),
        };
        let what = |kind: &Kind| match kind {
            Kind::Kill => What::Kill,
            Kind::Freeze => What::Freeze,
            Kind::Silent => What::Silent,
        };
        self.kind.iter().map(what).cycle().zip(times).collect()
    }

    fn as_json(&self, seed: u64) -> Value {
        let kinds =
            |plan: Vec<(What, _)>| plan.iter().map(|(what, _)| what.name()).collect::<Vec<_>>();
        json!({
            "events": kinds(self.plan()),
            "at_s": self.at,
            "calm_ms": self.calm_ms,
            "lasts_ms": self.lasts_ms,
            "away_ms": self.away_ms,
            "workload": if self.workload == Workload::A { "a" } else { "lookups" },
            "rate": self.rate,
            "outstanding": self.outstanding,
            "through": if self.sql { "sql" } else { "native" },
            "connections": self.sql.then_some(self.connections),
            "rows": self.rows,
            "row_bytes": self.row_bytes,
            "nodes": self.nodes,
            "replicas": self.replicas,
            "memory_mib": self.memory_mib,
            "durable": self.durable,
            "namespaces": self.net.is_some(),
            "seed": seed,
        })
    }

    fn words(&self, seed: u64) -> String {
        format!(
            "{} nodes, {} replicas, {} rows with {} bytes each{}; workload {} through {}, {} operations/s; seed {seed}",
            self.nodes,
            self.replicas,
            self.rows,
            self.row_bytes,
            if self.durable { ", on disk, too" } else { "" },
            if self.workload == Workload::A { "A" } else { "lookups" },
            if self.sql { "SQL" } else { "the native client" },
            self.rate
        )
    }
}

/// Runs the gauge on a cluster that was started for it, and ends the cluster. What was wrong: an operation that failed, or a
/// contradiction in the ledger.
///
/// # Errors
/// If the cluster does not do what it must, or the result cannot be written.
pub fn run(
    args: &LatsArgs,
    mut scene: Box<dyn Scene>,
    drawn_seed: u64,
    out: &mut dyn Write,
) -> anyhow::Result<u64> {
    let seed = args.seed.unwrap_or(drawn_seed >> 16);
    let measured = measure(args, &mut *scene, seed, out);
    let keeps_log = !matches!(measured, Ok(0));
    let log = scene.log_path();
    scene.end(keeps_log);
    if keeps_log {
        writeln!(out, "the cluster's log: {log}")?;
    }
    measured
}

fn measure(
    args: &LatsArgs,
    scene: &mut dyn Scene,
    seed: u64,
    out: &mut dyn Write,
) -> anyhow::Result<u64> {
    writeln!(out, "{}", args.words(seed))?;
    let place = scene.place();
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (client, table) = tokio.block_on(prepare(args, (&place, scene), out))?;
    let load = begin_load(args, &place, &table, seed)?;
    let clock = place.clock;
    let millis = Duration::from_millis;
    let mut course = Course {
        scene,
        client: client.clone(),
        clock,
        random: Prng::new(seed ^ 0x5eed),
        calm: millis(args.calm_ms),
        away: millis(args.away_ms),
        lasts: millis(args.lasts_ms),
        begun: load.begun,
        whole_at: load.begun,
    };
    let happened = tokio.block_on(async {
        tokio::select! {
            events = happen(args, &mut course, &load, out) => events,
            _ = tokio::signal::ctrl_c() => bail!("interrupted; its cluster is ended, and nothing was written"),
        }
    });
    let events = match happened {
        Ok(events) => events,
        Err(error) => {
            let _ = load.end();
            return Err(error);
        }
    };
    let (begun, until) = (load.begun, clock());
    let (shared, records, errors) = load.end()?;
    // Every row is looked at when all replicas are there: what one of them lacks shows.
    let rows = tokio.block_on(async {
        course::wait_whole(&client, course.scene, clock).await?;
        let patience = std::time::Duration::from_secs(120);
        let rows = tokio::time::timeout(patience, table.all(&client)).await;
        anyhow::Ok(rows.context("the rows cannot be read within two minutes")??)
    })?;
    let verdict = shared.ledger.check(&rows);
    let measured: Vec<Measured> = events
        .into_iter()
        .map(|event| {
            let figures = Figures::of(&event, begun, &records);
            (event, figures)
        })
        .collect();
    let result = show::Result {
        args,
        seed,
        begun,
        bins: &bins::bins(&records, begun, until),
        events: &measured,
        verdict: &verdict,
        errors: &errors,
        late_us: lateness(&records),
    };
    hand_out(&result, out)?;
    let failed = records.iter().filter(|r| r.end == End::Refused || r.end == End::Unsent).count();
    Ok(failed as u64 + u64::from(!verdict.is_right()))
}

/// Prints, writes and draws what was measured.
fn hand_out(result: &show::Result<'_>, out: &mut dyn Write) -> anyhow::Result<()> {
    let (args, output) = (result.args, &result.args.output);
    result.print(out)?;
    match &output.json {
        Some(_) if !output.prints_table() => {
            let mut stdout = std::io::stdout().lock();
            stdout.write_all(result.json().as_bytes())?;
        }
        Some(path) => result.write_json(path)?,
        None => {}
    }
    let Some(path) = &output.svg else { return Ok(()) };
    let title = [
        "latsdb bench lats".to_string(),
        args.words(result.seed),
        "answers: least to most of the bins of 10 ms, and their mean; red at the ground: errors. Latency: median (blue), 99 % (orange), \
         worst (red)"
            .to_string(),
    ];
    picture::draw(path, &title, result.bins, result.events, result.begun)
}

/// The table, with its rows.
async fn prepare(
    args: &LatsArgs,
    (place, scene): (&Place, &dyn Scene),
    out: &mut dyn Write,
) -> anyhow::Result<(Client, Arc<Table>)> {
    const SAY_AGAIN: Duration = Duration::from_millis(2_000);
    let client = native::connect(place, 0).await?;
    course::wait_whole(&client, scene, place.clock).await?;
    let table = Table::create(&client, args).await?;
    let mut said_at = (place.clock)();
    for first in (0..args.rows).step_by(table::LOADED_AT_ONCE as usize) {
        table.insert(&client, first..args.rows.min(first + table::LOADED_AT_ONCE)).await?;
        let now = (place.clock)();
        if now.since(said_at) >= SAY_AGAIN {
            writeln!(out, "loading: {first} of {} rows", args.rows)?;
            said_at = now;
        }
    }
    Ok((client, table))
}

fn begin_load(
    args: &LatsArgs,
    place: &Place,
    table: &Arc<Table>,
    seed: u64,
) -> anyhow::Result<Load> {
    let schedule = Schedule::new(args.workload, args.rows, args.rate, seed);
    let terms = Terms { schedule, rows: args.rows, outstanding: args.outstanding, seed };
    let (place, table, args) = (place.clone(), table.clone(), args.clone());
    let clock = place.clock;
    let access = async move || {
        anyhow::Ok(match args.sql {
            false => Access::Native(native::connect(&place, 1).await?, table),
            true => {
                let server = Server::ours(&place).await?;
                Access::Sql(Pool::new(server, args.connections, args.row_bytes).await?)
            }
        })
    };
    Load::begin(terms, clock, access)
}

/// All events, each told when it is over.
async fn happen(
    args: &LatsArgs,
    course: &mut Course<'_>,
    load: &Load,
    out: &mut dyn Write,
) -> anyhow::Result<Vec<Event>> {
    let plan = args.plan();
    let count = plan.len();
    let mut events = Vec::new();
    for (number, (what, planned_s)) in plan.into_iter().enumerate() {
        for event in course.next(what, planned_s).await? {
            let figures = Figures::of(&event, load.begun, &load.shared.of(&event));
            let line = show::event_line(&(event.clone(), figures));
            writeln!(out, "{} of {count}: {line}", number + 1)?;
            out.flush()?;
            events.push(event);
        }
    }
    let rest = args.calm_ms * if count == 0 { 2 } else { 1 };
    tokio::time::sleep(std::time::Duration::from_millis(rest)).await;
    Ok(events)
}

/// How late operations began that were sent, in us: 50 %, 99 %, all.
fn lateness(records: &[Record]) -> [u64; 3] {
    let sent = records.iter().filter(|r| r.end != End::Unsent);
    let mut late: Vec<u64> = sent.map(|r| r.sent.since(r.due).as_nanos() / 1_000).collect();
    late.sort_unstable();
    [0.5, 0.99, 1.0].map(|part| bins::quantile(&late, part).unwrap_or_default())
}
