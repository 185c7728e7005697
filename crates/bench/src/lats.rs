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
mod spread;
mod table;
mod timeline;
mod wish;

pub use args::{Kind, LatsArgs, Workload};
pub use wish::{Wish, wish};

use crate::{Place, mysql::Server, native, patience::Patience};
use anyhow::Context;
use course::Course;
use figures::{Event, Figures, Measured};
use lats_base::{Duration, Instant, prng::Prng};
use lats_client::net::Client;
use ledger::Verdict;
use load::{End, Ended, Load, Record, Terms};
use scene::Scene;
use schedule::Schedule;
use show::Whole;
use spread::Spread;
use std::{io::Write, sync::Arc};
use table::{Access, Pool, Table};
use timeline::Timeline;

/// What the cluster must do before or after the load, it does within this.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(120);

/// A cluster that is ended whatever happens.
struct Stage {
    scene: Box<dyn Scene>,
    keeps_log: bool,
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.scene.end(self.keeps_log);
    }
}

/// Runs the gauge on a cluster that was started for it, and ends the cluster. What was wrong: an operation that failed or never came back, or
/// a contradiction in the ledger.
///
/// # Errors
/// If the cluster does not do what it must, or the result cannot be written, or if it was told to end before.
pub fn run(
    args: &LatsArgs,
    scene: Box<dyn Scene>,
    drawn_seed: u64,
    wish: &Wish,
    out: &mut dyn Write,
) -> anyhow::Result<u64> {
    let seed = args.seed.unwrap_or(drawn_seed >> 16);
    let mut stage = Stage { scene, keeps_log: true };
    let measured = measure(args, &mut *stage.scene, (seed, wish), out);
    stage.keeps_log = !matches!(measured, Ok(0)) && !wish.is_told();
    let (log, keeps_log) = (stage.scene.ground().log.clone(), stage.keeps_log);
    drop(stage);
    if keeps_log {
        writeln!(out, "the cluster's log: {}", log.display())?;
    }
    measured
}

fn measure(
    args: &LatsArgs,
    scene: &mut dyn Scene,
    (seed, wish): (u64, &Wish),
    out: &mut dyn Write,
) -> anyhow::Result<u64> {
    writeln!(out, "{}", args.words(seed))?;
    let place = scene.ground().place.clone();
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let prepared = prepare(args, (&place, scene), out);
    let (client, table) = tokio.block_on(wish.unless_told(prepared))?;
    let load = begin_load(args, (&place, &table), seed, wish)?;
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
    let mut events = Vec::new();
    let happening = happen(args, (&mut course, &mut events), &load, out);
    let happened = tokio.block_on(wish.unless_told(happening));
    let begun = load.begun;
    let until = clock();
    // Also if something has failed.
    let ended = load.end(wish)?;
    wish.check()?;
    // All nodes are to be there: the rows are read wherever their primaries are then.
    let reading = async {
        course::wait_whole(&client, course.scene, clock).await?;
        let read = within(PATIENCE, async { Ok(table.all(&client).await?) });
        read.await.context("the rows cannot be read")
    };
    let rows = match &happened {
        Ok(()) => tokio.block_on(wish.unless_told(reading)),
        // It says why.
        Err(_) => Err(anyhow::anyhow!("the load was broken off")),
    };
    wish.check()?;
    let rows_read = rows.as_deref().ok();
    let failed = conclude(args, seed, (begun, until), (events, ended), rows_read, out)?;
    happened?;
    rows?;
    Ok(failed)
}

/// What was measured is shown, also if the rest has failed. How much was wrong.
fn conclude(
    args: &LatsArgs,
    seed: u64,
    (begun, until): (Instant, Instant),
    (events, ended): (Vec<Event>, Ended),
    rows: Option<&[(u64, u64)]>,
    out: &mut dyn Write,
) -> anyhow::Result<u64> {
    let verdict = rows.map(|rows| ended.shared.ledger.check(rows));
    let timeline = Timeline::new(ended.records);
    let figures = |event: &Event| Figures::of(event, begun, &timeline);
    let measured: Vec<Measured> = events.into_iter().map(|e| (e.clone(), figures(&e))).collect();
    let result = show::Result {
        args,
        seed,
        begun,
        bins: &bins::bins(timeline.all(), begun, until),
        events: &measured,
        whole: Whole::of(&timeline, &ended.open, (begun, until), ended.seen_at),
        verdict: verdict.as_ref(),
        errors: &ended.errors,
        late_us: lateness(timeline.all()),
    };
    hand_out(&result, out)?;
    let is_wrong = |r: &&Record| matches!(r.end, End::Refused | End::Unsent | End::Open);
    let failed = timeline.all().iter().filter(is_wrong).count();
    Ok(failed as u64 + u64::from(!verdict.as_ref().is_some_and(Verdict::is_right)))
}

/// Does something, or says that it takes too long.
async fn within<T>(
    patience: std::time::Duration,
    work: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<T> {
    let done = tokio::time::timeout(patience, work).await;
    done.with_context(|| format!("the cluster does not answer for {} s", patience.as_secs()))?
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
        "answers: the least to the most of bins of 10 ms, and their mean; red at the ground: errors. Latency: median (blue), worst (orange)"
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
    let table = within(PATIENCE, Table::create(&client, args)).await?;
    let mut said_at = (place.clock)();
    for first in (0..args.rows).step_by(table::LOADED_AT_ONCE as usize) {
        let rows = first..args.rows.min(first + table::LOADED_AT_ONCE);
        let patience = Patience::new(place.clock);
        within(PATIENCE, table.insert(&client, rows, patience)).await?;
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
    (place, table): (&Place, &Arc<Table>),
    seed: u64,
    wish: &Wish,
) -> anyhow::Result<Load> {
    let schedule = Schedule::new(args.workload, args.rows, args.rate, seed);
    let (outstanding, drain) = (args.outstanding, load::DRAIN);
    let terms = Terms { schedule, rows: args.rows, outstanding, drain, seed };
    let (place, table, args, wish) = (place.clone(), table.clone(), args.clone(), wish.clone());
    let clock = place.clock;
    let access = async move || {
        let connecting = async {
            anyhow::Ok(match args.sql {
                false => Access::Native(native::connect(&place, 1).await?, table),
                true => {
                    let server = Server::ours(&place).await?;
                    Access::Sql(Pool::new(server, args.connections, args.row_bytes).await?)
                }
            })
        };
        wish.unless_told(within(PATIENCE, connecting)).await
    };
    Load::begin(terms, clock, access)
}

/// All events, each told when it is over.
async fn happen(
    args: &LatsArgs,
    (course, events): (&mut Course<'_>, &mut Vec<Event>),
    load: &Load,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let plan = args.plan();
    let count = plan.len();
    for (number, (what, planned_s)) in plan.into_iter().enumerate() {
        for event in course.next(what, planned_s).await? {
            let some = Timeline::new(load.shared.of(&event));
            let figures = Figures::of(&event, load.begun, &some);
            let line = show::event_line(&(event.clone(), figures));
            writeln!(out, "{} of {count}: {line}", number + 1)?;
            out.flush()?;
            events.push(event);
        }
    }
    let rest = args.calm_ms * if count == 0 { 2 } else { 1 };
    tokio::time::sleep(std::time::Duration::from_millis(rest)).await;
    Ok(())
}

/// How late operations began that were sent, in us.
fn lateness(records: &[Record]) -> Option<Spread<u64>> {
    let sent = records.iter().filter(|r| r.end != End::Unsent);
    let mut late: Vec<u64> = sent.map(|r| r.sent.since(r.due).as_nanos() / 1_000).collect();
    late.sort_unstable();
    Spread::of(&late)
}
