//! `lats`: the gauge. A load that comes whatever the cluster does, nodes that are killed, frozen or cut off meanwhile, and how long nobody
//! got on: in bins of 10 ms, as JSON and as a picture. At the end a ledger says whether anything acknowledged was lost.

mod args;
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

pub use args::{Kind, LatsArgs, Workload};

use crate::{Place, mysql::Server, native};
use anyhow::{Context, bail};
use course::Course;
use figures::{Event, Figures, Measured};
use lats_base::{Duration, prng::Prng};
use lats_client::net::Client;
use load::{End, Load, Record, Terms};
use scene::Scene;
use schedule::Schedule;
use std::{io::Write, sync::Arc};
use table::{Access, Pool, Table};

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
    let until = clock();
    // Also if something has failed.
    let (begun, ended) = (load.begun, load.end());
    let (events, (shared, records, errors)) = (happened?, ended?);
    // All nodes are to be there: the rows are read wherever their primaries are then.
    let rows = tokio.block_on(async {
        course::wait_whole(&client, course.scene, clock).await?;
        let patience = std::time::Duration::from_secs(120);
        let rows = tokio::time::timeout(patience, table.all(&client)).await;
        anyhow::Ok(rows.context("the rows cannot be read within two minutes")??)
    })?;
    let verdict = shared.ledger.check(&rows);
    let figures = |event: &Event| Figures::of(event, begun, &records);
    let measured: Vec<Measured> = events.into_iter().map(|e| (e.clone(), figures(&e))).collect();
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
        "answers: the least to the most of bins of 10 ms, and their mean; red at the ground: errors. Latency: median (blue), 99 % (orange)"
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
